/* SPDX-License-Identifier: Apache-2.0 */
/*
 * infer_low.c - exchanges of operands that are cast to low precision before.
 *
 * Transformer Engine casts the part of an operand that a rank of a tensor
 * parallel group has, and gathers the cast parts (gather_along_first_dim with a
 * quantizer): the inputs of column-parallel products and the gradients of
 * row-parallel ones.  Results and the gradients of inputs are reduced in 16
 * bits.  Weights are cast once per step; programs may keep and gather them in
 * low precision.
 */
#include "plan/infer.h"
#include "plan/internal.h"

static bool low_product(const inference *f, uint32_t op)
{
    const sc_net_op *o = &f->g->op[op];
    bool low = f->job->precision == SC_FP8 || f->job->precision == SC_FP4;
    return low && f->job->sw->low_gather && o->type == SC_NET_LINEAR &&
           o->n_weight > 0 && !o->keep_bf16;
}

/* A value that another kind of reader needs too, such as an adapter in 16 bits,
 * is gathered before it is cast. */
static bool only_low_readers(const inference *f, uint32_t tensor)
{
    const infer_kept *kept = &f->kept[tensor];
    for (uint32_t i = 0; i < kept->n_readers; i++)
        if (!low_product(f, kept->reader[i])) return false;
    return kept->n_readers > 0;
}

static bool splits_tp(const inference *f, const layout *l)
{
    return layout_dim_of(l, (uint32_t)f->tp) != LAYOUT_DIMS;
}

/* Fraction of an operand that a rank casts. */
static double part(const inference *f, const layout *is, const layout *need)
{
    bool gathers = splits_tp(f, is) && !splits_tp(f, need);
    return gathers ? 1.0 / f->mesh.size[f->tp] : 1;
}

void infer_low_parts(const inference *f, uint32_t op, double *input,
                     double *gradient)
{
    const sc_net_op *o = &f->g->op[op];
    *input = *gradient = 1;
    if (f->tp < 0 || !low_product(f, op)) return;
    layout in = infer_port(f, op, &o->in[0], false);
    layout out = infer_port(f, op, &o->out, false);
    if (only_low_readers(f, o->in[0].tensor))
        *input = part(f, &f->kept[o->in[0].tensor].l, &in);
    *gradient = part(f, &f->kept[o->out.tensor].grad, &out);
}

/* A gradient with one scale per block is gathered twice, in blocks of rows and
 * of columns, if both products of the backward pass read it. */
double infer_low_bytes(const inference *f, const infer_why *w,
                       const infer_coll *c)
{
    bool operand = w->what == VALUE_ACT || w->what == VALUE_ACT_GRAD;
    bool over_tp = f->tp >= 0 && c->axes == 1u << f->tp;
    if (!operand || !over_tp || c->coll != SC_ALL_GATHER || w->op == SC_NONE ||
        !low_product(f, w->op))
        return 1;
    const sc_net_op *o = &f->g->op[w->op];
    bool gradient = w->what == VALUE_ACT_GRAD && w->of == o->out.tensor;
    bool input = w->what == VALUE_ACT && w->of == o->in[0].tensor &&
                 only_low_readers(f, w->of);
    if (!gradient && !input) return 1;
    double each = sc_precision_bytes(f->job->precision);
    bool learns = f->g->tensor[o->weight[0].tensor].learns;
    bool twice = gradient && learns && f->job->recipe != SC_RECIPE_FP8 &&
                 f->job->recipe != SC_RECIPE_FP8_ROW;
    return (twice ? 2 : 1) * each / sc_value_bytes(f->job->precision);
}

bool plan_low_weight(const sc_net *g, uint32_t op, uint32_t k)
{
    const sc_net_op *o = &g->op[op];
    bool product = o->type == SC_NET_LINEAR || o->type == SC_NET_EXPERT;
    return product && k == 0 && !o->keep_bf16;
}

double infer_low_gathered(const inference *f, uint32_t tensor)
{
    uint32_t op = f->g->tensor[tensor].op;
    bool low = f->g->op[op].n_weight > 0 &&
               f->g->op[op].weight[0].tensor == tensor &&
               plan_low_weight(f->g, op, 0);
    return low ? plan_low_gathered(f->job->sw, f->job->recipe) : 1;
}

double infer_low_cast(inference *f, uint32_t op, uint32_t k, double parts)
{
    const infer_rule *by;
    layout kept;
    uint32_t tensor = f->g->op[op].weight[k].tensor;
    if (f->s->zero >= 3 || !plan_low_weight(f->g, op, k) ||
        infer_weight_kept(f, op, k, &kept, &by) != SC_OK)
        return 0;
    return plan_low_cast(f->job->sw, f->job->recipe,
                         infer_slowest(f, f->node[op].stage)) *
           parts * infer_fraction(f, tensor, &kept, (1u << SC_TENSOR_DIMS) - 1);
}
