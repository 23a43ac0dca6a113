/* SPDX-License-Identifier: Apache-2.0 */
/* recipe.c - names of precisions and of recipes of low precision. */
#include "hw/hw_arch.h"
#include "plan/internal.h"

#include <string.h>

const char *const sc_recipe_names[] = {"fp32",      "tf32",    "fp16", "bf16",
                                       "fp8",       "nvfp4",   "int8", "mxfp8",
                                       "fp8-block", "fp8-row", NULL};

sc_precision sc_recipe_precision(sc_recipe r)
{
    if (r == SC_RECIPE_NVFP4) return SC_FP4;
    if (r == SC_RECIPE_INT8) return SC_INT8;
    return r >= SC_RECIPE_FP8 ? SC_FP8 : (sc_precision)r;
}

static const char *scales_of(sc_recipe r)
{
    switch (r) {
    case SC_RECIPE_MXFP8: return "one scale per 32 elements";
    case SC_RECIPE_NVFP4: return "one scale per 16 elements";
    case SC_RECIPE_FP8_BLOCK:
        return "one scale per 128 elements, per 128 x 128 of weights";
    case SC_RECIPE_FP8_ROW: return "one scale per row";
    default: return "one scale per tensor";
    }
}

void plan_recipe_head(sc_recipe recipe, const sc_software *sw, sc_text *out)
{
    sc_text_add(out,
                "precision %s\n  products of both passes in %s, %s; separate "
                "kernels cast the operands%s\n",
                sc_recipe_names[recipe],
                sc_precision_names[sc_recipe_precision(recipe)],
                scales_of(recipe),
                sw->fused_cast ? ", fused with their neighbours" : "");
}

/* ---- weights --------------------------------------------------------- */

static bool gathers_low(const sc_software *sw, sc_recipe recipe)
{
    return sw->low_params &&
           (recipe == SC_RECIPE_FP8 || recipe == SC_RECIPE_FP8_BLOCK);
}

double plan_low_gathered(const sc_software *sw, sc_recipe recipe)
{
    double low = sc_precision_bytes(sc_recipe_precision(recipe));
    return gathers_low(sw, recipe) ? low / sc_precision_bytes(SC_BF16) : 1;
}

/* The first micro-batch casts, the others use its copies (Transformer Engine,
 * is_first_microbatch); weights that are kept in low precision are cast by the
 * optimizer.  A copy for each layout that products read. */
double plan_low_cast(const sc_software *sw, sc_recipe recipe,
                     const sc_device *d)
{
    sc_precision p = sc_recipe_precision(recipe);
    double wide = sc_precision_bytes(SC_BF16), low = sc_precision_bytes(p);
    if ((p != SC_FP8 && p != SC_FP4) || sw->fused_cast) return 0;
    bool tensor = recipe == SC_RECIPE_FP8;
    bool once = tensor && sc_arch_of(d->arch)->mx_products;
    if (gathers_low(sw, recipe)) return once ? 0 : 2 * low;
    bool finds = p == SC_FP4 || (tensor && sw->fp8_scaling == SC_FP8_CURRENT);
    return (finds ? 2 : 1) * wide + (once ? 1 : 2) * low;
}

/* ---- kernels --------------------------------------------------------- */

static sc_scaling scaling_of(sc_recipe recipe, const sc_device *d)
{
    switch (recipe) {
    case SC_RECIPE_MXFP8:
    case SC_RECIPE_NVFP4: return SC_SCALE_MX;
    case SC_RECIPE_FP8_BLOCK:
        /* Transformer Engine uses MXFP8 on devices that support it. */
        return sc_arch_of(d->arch)->mx_products ? SC_SCALE_MX : SC_SCALE_BLOCK;
    case SC_RECIPE_FP8_ROW: return SC_SCALE_ROW;
    default: return SC_SCALE_TENSOR;
    }
}

sc_op_facts plan_software_facts(const sc_software *sw, const sc_device *d,
                                sc_precision precision, sc_recipe recipe,
                                bool accumulates)
{
    double next = accumulates ? sw->next_logit_bytes : 0;
    return (sc_op_facts){.precision = precision,
                         .scaling = scaling_of(recipe, d),
                         .attention = (uint8_t)sw->attention,
                         .fused = sw->fused,
                         .single_pass = sw->single_pass,
                         .fused_softmax = sw->fused_softmax,
                         .fused_cast = sw->fused_cast,
                         .fused_accumulate = sw->fused_accumulate,
                         .grouped_loop = sw->grouped_loop && !sw->fused_experts,
                         .fused_experts = sw->fused_experts,
                         .delayed_scaling = sw->fp8_scaling == SC_FP8_DELAYED,
                         .any_layout = sc_arch_of(d->arch)->mx_products,
                         .low_activations = sw->low_activations,
                         .low_attention = sw->low_attention,
                         .pad_head_dim = sw->pad_head_dim,
                         .attended = sw->attended,
                         .logit_bytes = sw->logit_bytes + next,
                         .split_logits = sw->split_logit_bytes,
                         .accum_bytes = accumulates ? sw->accum_bytes : 0,
                         .loss_bytes = sw->loss_bytes};
}
