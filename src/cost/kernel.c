/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel.c - the time of one kernel from its shape.
 *
 * Matrix products, fused attention and casts have a form for each class of
 * generations (cost_kernel.h).  A convolution is priced as the equivalent
 * product, with any split, and with the traffic of its own tensors.  Unfused
 * attention products are batched and have their own rate.  All other kernels
 * are priced by their bytes.
 */
#include "cost/kernel.h"

#include "cost/lookup.h"
#include "cost/winograd.h"
#include "hw/hw_arch.h"

#include <math.h>
#include <string.h>

const char *const sc_attention_names[] = {"unfused", "flash1",  "flash2",
                                          "cudnn",   "te-2024", NULL};

static const sc_arch *arch_of(const sc_device *d)
{
    return sc_arch_of(d->arch);
}

/* ---- rates ----------------------------------------------------------------- */

/* Watts of a board of the class with the usual clock: of an A100 of 400 W for
 * each of its units (3.7 W; 3.75 W for a V100 of 300 W). */
#define AMPERE_UNIT_W (400.0 / 108)
/* Watts per peak FLOP/s of an L40S, by its datasheet. */
#define ADA_FLOP_W (350 / 362e12)

/* Ada's units need more power at their peak than boards have, so a board with
 * twice the peak and the same power is not faster. A board with enough power has
 * the rate that was expected before any row. */
static double ada_factor(const sc_cost *c, const sc_device *d)
{
    double peak = d->peak[SC_FP16] > 0 ? d->peak[SC_FP16] : d->peak[SC_BF16];
    if (peak <= 0) return 1;
    double usual = sc_params[SC_P_SUSTAINED_ADA].centre;
    double most = fmax(1, usual / c->p[SC_P_SUSTAINED_ADA]);
    return fmin(d->power_w / peak / ADA_FLOP_W, most);
}

/* Boards with the same chip have clocks that depend on their power. */
static double power_factor(const sc_cost *c, const sc_device *d)
{
    if (d->power_w <= 0) return 1;
    sc_fit_class fit = arch_of(d)->fit;
    if (fit == SC_FIT_ADA) return ada_factor(c, d);
    if (fit == SC_FIT_AMPERE && d->units > 0)
        return pow(fmin(1, d->power_w / (AMPERE_UNIT_W * d->units)),
                   c->p[SC_P_POWER_HOPPER]);
    if (fit == SC_FIT_HOPPER)
        return pow(fmin(1, d->power_w / 700), c->p[SC_P_POWER_HOPPER]);
    if (fit == SC_FIT_BLACKWELL)
        return pow(d->power_w / 1000, c->p[SC_P_POWER_BLACKWELL]);
    /* No class of others has boards that differ in power alone. */
    return d->usual_power_w > 0 ? cbrt(d->power_w / d->usual_power_w) : 1;
}

/* Rate of the matrix units in a training step over that in a table of kernels,
 * which run alone and too shortly to heat the device.  A board's clock under
 * load follows from its power, so if a datasheet gives the board a higher peak
 * than the chip, the chip's peak is used. */
static double sustained(const sc_cost *c, const sc_device *d)
{
    static const sc_param level[SC_N_FIT_CLASSES] = {
        [SC_FIT_AMPERE] = SC_P_SUSTAINED_AMPERE,
        [SC_FIT_HOPPER] = SC_P_SUSTAINED_HOPPER,
        [SC_FIT_BLACKWELL] = SC_P_SUSTAINED_BLACKWELL,
        [SC_FIT_ADA] = SC_P_SUSTAINED_ADA,
        [SC_FIT_CDNA] = SC_P_SUSTAINED_CDNA,
        [SC_FIT_GAUDI] = SC_P_SUSTAINED_GAUDI,
        [SC_FIT_TPU] = SC_P_SUSTAINED_TPU,
        [SC_FIT_TPU6] = SC_P_SUSTAINED_TPU6};
    const sc_arch *a = arch_of(d);
    if (c->burst) return 1;
    double more = a->ultra ? c->p[SC_P_ULTRA_GEMM] : 1;
    if (a->fit == SC_FIT_TPU6) more = c->p[SC_P_SUSTAINED_TPU];
    return c->p[level[a->fit]] * power_factor(c, d) * d->chip_fraction * more;
}

/* Peak of the units for this precision; a device without them uses the next
 * wider precision. */
static double peak_of(const sc_device *d, sc_precision p)
{
    if (d->peak[p] > 0) return d->peak[p];
    if (p == SC_FP4 && d->peak[SC_FP8] > 0) return d->peak[SC_FP8];
    if ((p == SC_FP4 || p == SC_FP8) && d->peak[SC_BF16] > 0)
        return d->peak[SC_BF16];
    if (p != SC_FP32 && d->peak[SC_FP16] > 0) return d->peak[SC_FP16];
    return d->vector_flops > 0 ? d->vector_flops : d->peak[SC_FP32];
}

static sc_form_device machine(const sc_cost *c, const sc_device *d,
                              sc_precision precision)
{
    return (sc_form_device){.units = d->units ? d->units : 1,
                            .flops = peak_of(d, precision) * sustained(c, d),
                            .bandwidth = d->mem_bw};
}

/* The kind of form of a product; a device without units for a precision has
 * that of the wider one, as for the peak. */
static sc_form_kind product_kind(const sc_device *d, const sc_kernel *k)
{
    static const sc_form_kind grouped[] = {
        [SC_FORM_GEMM] = SC_FORM_GROUPED,
        [SC_FORM_GEMM_FP8] = SC_FORM_GROUPED_FP8,
        [SC_FORM_GEMM_BLOCK] = SC_FORM_GROUPED_BLOCK,
        [SC_FORM_GEMM_FP4] = SC_FORM_GROUPED_FP4,
        [SC_FORM_GEMM_INT8] = SC_FORM_GEMM_INT8};
    sc_form_kind kind = SC_FORM_GEMM;
    if (k->precision == SC_FP4 && d->peak[SC_FP4] > 0)
        kind = SC_FORM_GEMM_FP4;
    else if (k->precision == SC_INT8 && d->peak[SC_INT8] > 0)
        kind = SC_FORM_GEMM_INT8;
    else if ((k->precision == SC_FP8 || k->precision == SC_FP4) &&
             d->peak[SC_FP8] > 0)
        kind = k->scaling == SC_SCALE_BLOCK ? SC_FORM_GEMM_BLOCK
                                            : SC_FORM_GEMM_FP8;
    return k->grouped ? grouped[kind] : kind;
}

static const sc_form *product_form(const sc_cost *c, const sc_device *d,
                                   const sc_kernel *k)
{
    return sc_form_of(c->forms, arch_of(d)->fit, product_kind(d, k));
}

/* Operands in 16 bits load more slowly if their rows are not aligned to 16
 * bytes. */
static double alignment(const sc_cost *c, const sc_kernel *k)
{
    double f = c->p[SC_P_GEMM_ODD] - 1;
    uint64_t both = k->n | k->k;
    bool half = k->precision == SC_FP16 || k->precision == SC_BF16;
    if (!half || k->grouped || both % 8 == 0) return 1;
    if (both % 4 == 0) return 1 + f / 4;
    if (both % 2 == 0) return 1 + f / 2;
    return 1 + f;
}

/* Libraries split the sum of a product into a few parts.  For the gradient of a
 * convolution's weights, the sum over all positions of all samples is split
 * until it fills the device. */
#define GEMM_SPLIT 8
#define CONV_SPLIT 1024

/* Five products instead of two. */
#define BACKWARD_FLOPS 2.5
/* Time of a score outside of the matrix units: its exponential again, and its
 * derivative, p (dp - d), with a second conversion to 16 bits.  So units that
 * wait for exponentials in a forward pass are busier in a backward pass. */
#define BACKWARD_SCORE 2

/* Tensors that a kernel over rows reads and writes once, as PyTorch's kernels
 * do: a backward pass reads the result's gradient and a value of the forward
 * pass; a batch norm reads its input twice; rotary positions are two tables
 * and one tensor in place; the input of a gate is twice as wide. */
static double tensors_of(const sc_kernel *k)
{
    switch (k->kind) {
    case SC_K_TRANSPOSE:
    case SC_K_DROPOUT:
    case SC_K_ROPE: return 2;
    case SC_K_SOFTMAX:
    case SC_K_RMS_NORM:
    case SC_K_NORM: return k->backward ? 3 : 2;
    case SC_K_BATCH_NORM: return k->backward ? 5 : 3;
    case SC_K_GATE: return k->backward ? 5 : 3;
    default: return 0;
    }
}

/* Rows that are gathered once, the sums, and an index of 8 bytes each.  The
 * gradients of rows are read and added to. */
static double gathered(const sc_kernel *k, double e)
{
    double rows = (double)k->m, different = (double)k->n;
    double row = e * (double)k->k, sums = (double)k->batch * row;
    if (different <= 0 || different > rows) different = rows;
    return (k->backward ? 2 : 1) * different * row + sums + 8 * rows;
}

/* FLOP and bytes through memory, which do not depend on the device. */
sc_price sc_kernel_amount(const sc_kernel *k)
{
    double b = (double)k->batch, m = (double)k->m, n = (double)k->n,
           depth = (double)k->k, e = sc_precision_bytes(k->precision);
    sc_price p = {.bytes = k->bytes, .launches = k->launches ? k->launches : 1};
    if (k->kind == SC_K_GEMM || k->kind == SC_K_CONV)
        p.flops = 2 * b * m * n * depth;
    if (k->kind == SC_K_QUANTIZE) p.bytes += (2 + e) * b * m * depth;
    if (k->kind == SC_K_AMAX) p.bytes += 2 * b * m * depth;
    if (k->kind == SC_K_GEMM)
        p.bytes =
            b * (e * (m * depth + n * depth) + fmax(2, e) * m * n) + k->bytes;
    p.bytes += tensors_of(k) * e * m * depth;
    if (k->kind == SC_K_DROPOUT) p.bytes += m * depth;
    if (k->kind == SC_K_GATHER) p.bytes += gathered(k, e);
    if (k->kind != SC_K_FLASH) return p;
    p.flops = 4 * b * m * n * depth;
    /* Blocks of 128 on the diagonal are computed completely. */
    if (k->causal) p.flops *= 0.5 * (1 + 128.0 / fmax(128, n));
    if (k->band > 0 && k->band < k->n)
        p.flops *= fmin(1, (k->band + 128.0) / n);
    double values = (double)(k->v_dim ? k->v_dim : k->k);
    double group = k->kv_group ? k->kv_group : 1;
    p.flops *= 0.5 * (1 + values / depth);
    p.bytes = fmax(2, e) * b * (depth + values) * (m + n / group);
    if (k->backward) {
        p.flops *= BACKWARD_FLOPS;
        p.bytes *= 2;
    }
    return p;
}

/* A price is never below the bound of the peak. */
static sc_price bounded(const sc_device *d, sc_precision precision, sc_price p)
{
    p.seconds = fmax(p.seconds, p.flops / peak_of(d, precision));
    return p;
}

static sc_form_product shape_of(const sc_device *d, const sc_kernel *k,
                                double bytes)
{
    return (sc_form_product){.m = (double)k->m,
                             .n = (double)k->n,
                             .k = (double)k->k,
                             .batch = (double)k->batch,
                             .bytes = bytes,
                             .split =
                                 k->kind == SC_K_CONV ? CONV_SPLIT : GEMM_SPLIT,
                             .array = d->array};
}

/* Operands scaled by rows or by 32 elements, and grouped products of a class
 * without a table of them, are slower than the form that is used for them.  The
 * table of FP4 products is of an inference library. */
static double slower(const sc_cost *c, const sc_device *d, const sc_kernel *k)
{
    bool low = k->precision == SC_FP8 || k->precision == SC_FP4;
    sc_form_kind kind = product_kind(d, k);
    double f = 1;
    if (low && k->scaling == SC_SCALE_ROW) f = c->p[SC_P_FP8_ROW];
    if (kind == SC_FORM_GEMM_FP8 && k->scaling == SC_SCALE_MX &&
        arch_of(d)->mx_products)
        f = c->p[SC_P_MXFP8];
    if (kind == SC_FORM_GEMM_FP4 && !c->burst) f = c->p[SC_P_FP4_LIBRARY];
    bool tpu = arch_of(d)->fit == SC_FIT_TPU || arch_of(d)->fit == SC_FIT_TPU6;
    if (tpu && k->precision == SC_INT8 && d->peak[SC_INT8] > 0)
        f *= c->p[SC_P_TPU_INT8];
    if (!k->grouped) return f;
    sc_kernel one = *k;
    one.grouped = false;
    bool none = product_form(c, d, k) == product_form(c, d, &one);
    return none ? f * c->p[SC_P_GROUPED] : f;
}

/* The device's level of this kind of kernel or the nearest kind that was
 * measured.  Attention has other units than products, so it is expected half of
 * the way. */
double kernel_level(const sc_cost *c, const sc_device *d, sc_form_kind kind)
{
    for (int k = (int)kind; k >= 0; k = sc_form_nearest((sc_form_kind)k))
        for (uint32_t i = 0; i < c->n_levels; i++)
            if (c->level[i].kind == k &&
                strcmp(c->level[i].device, d->name) == 0)
                return c->level[i].factor;
    if (!sc_form_is_attention(kind)) return 1;
    return sqrt(kernel_level(c, d, SC_FORM_GEMM));
}

/* The form's time of a kernel with this shape. */
static double form_time(const sc_cost *c, const sc_device *d,
                        const sc_form_use *use)
{
    const sc_form *f = sc_form_of(c->forms, use->fit, use->kind);
    double level = c->n_levels ? kernel_level(c, d, use->kind) : 1;
    return level * sc_form_physical(&f->c, use) *
           sc_form_factor(&f->table, use->at);
}

/* What would have to be faster: the start takes more than half of the time, or
 * memory or units take longer. */
static const char *limit_of(const sc_cost *c, const sc_form_use *use,
                            const sc_price *p)
{
    const sc_form *f = sc_form_of(c->forms, use->fit, use->kind);
    if (f->c.start > 0.5 * p->seconds) return "launch";
    bool memory = p->bytes / use->on.bandwidth > p->flops / use->on.flops;
    return memory ? "memory" : "compute";
}

static void use_product(const sc_cost *c, const sc_device *d,
                        const sc_kernel *k, sc_form_use *out)
{
    out->kind = product_kind(d, k);
    out->on = machine(c, d, k->precision);
    out->on.flops *= slower(c, d, k) / alignment(c, k);
    out->product = shape_of(d, k, sc_kernel_amount(k).bytes);
}

/* Batched products with the same shape (unfused attention). */
static sc_price batched_price(const sc_cost *c, const sc_device *d,
                              const sc_kernel *k, const sc_form_use *use)
{
    const sc_form *f = product_form(c, d, k);
    sc_price p = sc_kernel_amount(k);
    double m = (double)k->m, n = (double)k->n, kk = (double)k->k;
    double least = fmin(m, fmin(n, kk));
    double pad = 64 * ceil(least / 64) / least;
    bool half = k->precision == SC_FP16 || k->precision == SC_BF16;
    double rate =
        machine(c, d, k->precision).flops * f->c.rate[0] * c->p[SC_P_BMM];
    bool vector = half && (k->n % 8 || k->k % 8);
    if (vector) {
        /* no tensor-core kernel for strided batches supports such rows */
        rate = fmin(rate, d->vector_flops * f->c.rate[0]);
        pad = 1;
    }
    double t = p.flops * pad / rate, move = p.bytes / (d->mem_bw * f->c.memory);
    p.seconds = f->c.start + fmax(t, move);
    p.limit = limit_of(c, use, &p);
    if (vector && t > move) p.limit = "unaligned";
    return p;
}

static sc_price price_gemm(const sc_cost *c, const sc_device *d,
                           const sc_kernel *k)
{
    sc_price p = sc_kernel_amount(k);
    sc_form_use use;
    sc_form_use_of(c, d, k, &use);
    if (k->batch > 1 && !k->grouped)
        return bounded(d, k->precision, batched_price(c, d, k, &use));
    p.seconds = form_time(c, d, &use);
    p.limit = limit_of(c, &use, &p);
    if (alignment(c, k) > 1 && strcmp(p.limit, "compute") == 0)
        p.limit = "unaligned";
    return bounded(d, k->precision, p);
}

static bool on_vector_units(const sc_device *d, sc_precision p)
{
    return p == SC_FP32 && !d->array && d->vector_flops > 0 &&
           d->peak[p] <= d->vector_flops;
}

/* Groups with fewer channels than a fragment of the matrix units run on the
 * vector units. */
#define CONV_LEAST 8

static sc_price price_direct(const sc_cost *c, const sc_device *d,
                             const sc_kernel *k, double factor)
{
    const sc_form *f = product_form(c, d, k);
    sc_price p = sc_kernel_amount(k);
    double move = p.bytes / (d->mem_bw * f->c.memory);
    p.limit = "compute";
    if (k->batch > 1 && k->n < CONV_LEAST) {
        double t = p.flops / (d->vector_flops * f->c.rate[0]);
        p.seconds = f->c.start + fmax(t, move);
    } else {
        bool vector = on_vector_units(d, k->precision);
        sc_form_use use = {.kind = product_kind(d, k),
                           .on = machine(c, d, k->precision),
                           .product = shape_of(d, k, p.bytes)};
        bool half = k->precision == SC_FP16 || k->precision == SC_BF16;
        if (half && !vector && k->padded > 1) use.product.k *= k->padded;
        if (vector && !k->window.weights) use.product.split = 1;
        if (!vector) use.on.flops *= factor;
        p.seconds =
            sc_form_physical(vector ? &sc_form_vector_conv : &f->c, &use);
    }
    if (move > 0.5 * p.seconds) p.limit = "memory";
    return bounded(d, k->precision, p);
}

/* The kernel that transforms tiles and multiplies them holds 32 tiles and 32
 * channels of all products of a tile.  Rate and prologue are fitted to the rows
 * with `winograd` of NeuSight's convolutions in fp32, which lack other kernels'
 * names. */
#define FUSED_SIDE     32.0
#define FUSED_RATE     0.53
#define FUSED_PROLOGUE 10.0

static sc_price price_fused(const sc_cost *c, const sc_device *d,
                            const sc_kernel *k)
{
    sc_price p = sc_kernel_amount(k);
    sc_form_device on = machine(c, d, k->precision);
    double blocks =
        ceil((double)k->m / FUSED_SIDE) * ceil((double)k->n / FUSED_SIDE);
    double wave = on.units * FUSED_SIDE * FUSED_SIDE * 2 * (double)k->batch /
                  (on.flops * FUSED_RATE);
    double t = ceil(blocks / on.units) * wave * ((double)k->k + FUSED_PROLOGUE);
    double move = p.bytes / (d->mem_bw * sc_form_vector_conv.memory);
    p.seconds = sc_form_vector_conv.start + fmax(t, move);
    p.limit = move > t ? "memory" : "compute";
    return bounded(d, k->precision, p);
}

/* The fastest algorithm: libraries try them or use heuristics from trials. */
static sc_price price_conv(const sc_cost *c, const sc_device *d,
                           const sc_kernel *k)
{
    double conv = c->p[SC_P_CONV];
    sc_price best = price_direct(c, d, k, conv);
    kernel_winograd w;
    for (uint32_t i = 0; kernel_winograd_of(d, k, i, &w); i++) {
        sc_price p = w.fused ? price_fused(c, d, &w.product)
                             : price_gemm(c, d, &w.product);
        p.bytes += w.moved;
        p.seconds += w.moved / (d->mem_bw * c->p[SC_P_MEM_EFF]) +
                     w.transforms * c->p[SC_P_LAUNCH];
        if (p.seconds < best.seconds) best = p;
    }
    best.launches = k->launches ? k->launches : 1;
    return best;
}

/* Rate of older attention kernels over those of the measured tables:
 * FlashAttention 2 on Ampere, cuDNN and FlashAttention 3 on Hopper. */
static double older_attention(const sc_cost *c, const sc_device *d,
                              sc_attention_kernel kernel)
{
    bool h = arch_of(d)->fit == SC_FIT_HOPPER;
    if (arch_of(d)->fit == SC_FIT_BLACKWELL) return 1;
    switch (kernel) {
    case SC_ATTN_FLASH1:
        return c->p[h ? SC_P_FLASH1_HOPPER : SC_P_FLASH1_AMPERE];
    case SC_ATTN_FLASH2: return h ? c->p[SC_P_FLASH2_HOPPER] : 1;
    case SC_ATTN_TE2024: return h ? c->p[SC_P_TE2024_HOPPER] : 1;
    default: return 1;
    }
}

/* Scores are computed in FP8 only by kernels that say so. */
static sc_precision attention_precision(const sc_device *d, const sc_kernel *k)
{
    if (k->precision == SC_FP8 && k->low_scores && d->peak[SC_FP8] > 0)
        return SC_FP8;
    if (d->peak[SC_BF16] <= 0) return SC_FP16;
    return k->precision < SC_FP16 ? k->precision : SC_BF16;
}

static sc_form_kind attention_kind(const sc_device *d, const sc_kernel *k)
{
    if (attention_precision(d, k) == SC_FP8) return SC_FORM_ATTENTION_FP8;
    if (k->band > 0 && k->band < k->n) return SC_FORM_ATTENTION_WINDOW;
    if (k->v_dim > 0 && k->v_dim < k->k) return SC_FORM_ATTENTION_LATENT;
    return SC_FORM_ATTENTION;
}

/* The level of products is the clock at which they reach the limit of the
 * board's power.  Power grows with the work per cycle and the cube of the clock,
 * as voltage falls with it, so attention, of which the matrix units do less per
 * cycle, reaches the limit at a higher clock. */
static double cooler(const sc_cost *c, const sc_device *d, const sc_kernel *k,
                     const sc_form_use *use)
{
    double level = sustained(c, d) / power_factor(c, d);
    double part = c->p[SC_P_MATRIX_POWER];
    if (c->burst || level >= 1 || d->power_w <= 0) return 1;
    sc_form_use burst = *use;
    burst.on.flops /= sustained(c, d);
    sc_form_place(&burst);
    double peak = peak_of(d, attention_precision(d, k));
    double busy = sc_kernel_amount(k).flops / (form_time(c, d, &burst) * peak);
    double product = product_form(c, d, k)->c.rate[0];
    double draws = 1 - part + part * fmin(1, busy / product);
    return fmin(1 / level, pow(draws, -1.0 / 3));
}

static void use_attention(const sc_cost *c, const sc_device *d,
                          const sc_kernel *k, sc_form_use *out)
{
    double work = k->backward ? BACKWARD_FLOPS / c->p[SC_P_FLASH_BWD] : 1;
    out->kind = attention_kind(d, k);
    out->on = machine(c, d, attention_precision(d, k));
    out->on.flops *= older_attention(c, d, k->attention) / work;
    /* Blackwell Ultra computes twice as many exponentials in the same time. */
    double exponentials = arch_of(d)->ultra ? 0.5 : 1;
    if (k->backward) exponentials *= BACKWARD_SCORE / work;
    out->attention =
        (sc_form_attention){.queries = (double)k->m,
                            .keys = (double)k->n,
                            .heads = (double)k->batch,
                            .size = (double)k->k,
                            .values = (double)(k->v_dim ? k->v_dim : k->k),
                            .band = k->band,
                            .causal = k->causal,
                            .exponentials = exponentials,
                            .bytes = sc_kernel_amount(k).bytes};
    out->on.flops *= cooler(c, d, k, out);
}

bool sc_form_use_of(const sc_cost *c, const sc_device *d, const sc_kernel *k,
                    sc_form_use *out)
{
    *out = (sc_form_use){.fit = arch_of(d)->fit};
    switch (k->kind) {
    case SC_K_CONV:
    case SC_K_GEMM: use_product(c, d, k, out); break;
    case SC_K_FLASH: use_attention(c, d, k, out); break;
    case SC_K_QUANTIZE:
    case SC_K_AMAX:
        out->kind = k->kind == SC_K_AMAX ? SC_FORM_AMAX : SC_FORM_QUANTIZE;
        out->on = machine(c, d, SC_BF16);
        out->bytes = sc_kernel_amount(k).bytes / (double)k->batch;
        break;
    default: return false;
    }
    sc_form_place(out);
    return true;
}

static sc_price price_flash(const sc_cost *c, const sc_device *d,
                            const sc_kernel *k)
{
    sc_price p = sc_kernel_amount(k);
    sc_form_use use;
    sc_form_use_of(c, d, k, &use);
    p.seconds = form_time(c, d, &use);
    p.limit = limit_of(c, &use, &p);
    return bounded(d, attention_precision(d, k), p);
}

static sc_price price_cast(const sc_cost *c, const sc_device *d,
                           const sc_kernel *k)
{
    sc_price p = sc_kernel_amount(k);
    sc_form_use use;
    sc_form_use_of(c, d, k, &use);
    p.seconds = (double)k->batch * form_time(c, d, &use);
    p.limit = limit_of(c, &use, &p);
    return p;
}

/* Start-up of a kernel in a captured graph, as in tables of kernels: the
 * smallest casts and products of data/aiconfigurator take 1.3 to 2.6 us. */
#define CAPTURED_LAUNCH 1.6e-6

sc_price sc_cost_kernel(const sc_cost *c, const sc_device *d,
                        const sc_kernel *k)
{
    if (k->kind == SC_K_GEMM) return price_gemm(c, d, k);
    if (k->kind == SC_K_FLASH) return price_flash(c, d, k);
    if (k->kind == SC_K_CONV) return price_conv(c, d, k);
    if (k->kind == SC_K_QUANTIZE || k->kind == SC_K_AMAX)
        return price_cast(c, d, k);
    sc_price p = sc_kernel_amount(k);
    uint32_t n = p.launches;
    p.limit = "memory";
    if (k->reads.lookups.count > 0) lookup_move(d, k, &p);
    double move = k->reads.lookups.count > 0
                      ? p.seconds / c->p[SC_P_MEM_EFF]
                      : p.bytes / (d->mem_bw * c->p[SC_P_MEM_EFF]);
    double launch = n * (c->burst ? CAPTURED_LAUNCH : c->p[SC_P_LAUNCH]);
    p.seconds = move + launch;
    if (move < launch) p.limit = "launch";
    return p;
}

void sc_cost_explain_kernel(const sc_cost *c, const sc_device *d,
                            const sc_kernel *k, sc_text *out)
{
    sc_price p = sc_cost_kernel(c, d, k);
    char t[32], f[32], b[32];
    sc_unit_print_short(p.seconds, SC_U_TIME, t, sizeof t);
    sc_unit_print_short(p.flops, SC_U_FLOP, f, sizeof f);
    sc_unit_print_short(p.bytes, SC_U_BYTES, b, sizeof b);
    sc_text_add(out, "  %-22s %9s  %9s  %9s", k->name ? k->name : "kernel", t,
                f, b);
    sc_precision units =
        k->kind == SC_K_FLASH ? attention_precision(d, k) : k->precision;
    if (p.flops > 0)
        sc_text_add(out, "  %4.1f %% of peak, limited by %s",
                    100 * p.flops / p.seconds / peak_of(d, units), p.limit);
    else
        sc_text_add(out, "  %4.1f %% of memory bandwidth, limited by %s",
                    100 * p.bytes / p.seconds / d->mem_bw, p.limit);
    bool product = k->kind == SC_K_GEMM || k->kind == SC_K_CONV;
    if (product)
        sc_text_add(out, "  (%llu x %llu x %llu", (unsigned long long)k->m,
                    (unsigned long long)k->n, (unsigned long long)k->k);
    if (product && k->batch > 1)
        sc_text_add(out, ", batch %llu", (unsigned long long)k->batch);
    sc_text_add(out, product ? ")\n" : "\n");
}
