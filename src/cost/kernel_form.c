/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_form.c - the physical models of kernels, and their corrections. */
#include "cost/cost_kernel.h"

#include <math.h>

#define SC_FORM_NAME(id, name) name,
const char *const sc_form_names[] = {SC_FORMS(SC_FORM_NAME) NULL};
#undef SC_FORM_NAME

/* ---- products -------------------------------------------------------------- */

typedef struct tile {
    double m, n;
    int rate;
} tile;

static const tile tiles[] = {{256, 128, 0}, {128, 256, 0}, {128, 128, 1},
                             {128, 64, 1},  {64, 128, 1},  {64, 64, 2}};

/* (x^p + y^p)^(1/p), without overflow. */
static double blended(double x, double y, double p)
{
    double most = fmax(x, y), least = fmin(x, y);
    return most > 0 ? most * pow(1 + pow(least / most, p), 1 / p) : 0;
}

/* The prologue of a tile takes constant time, so units that are slower than the
 * matrix units of an A100, such as those for fp32, lose less depth. */
#define UNIT_FLOPS (312e12 / 108)

static double prologue(const sc_form_constants *c, const sc_form_device *d,
                       const sc_form_product *p)
{
    if (p->array > 0) return 2 * p->array;
    return c->depth * fmin(1, d->flops / d->units / UNIT_FLOPS);
}

/* Tiles run in whole waves over the units.  A sum in several parts writes and
 * reads its partial results in fp32. */
static double tiles_time(const sc_form_constants *c, const sc_form_device *d,
                         const sc_form_product *p)
{
    double best = INFINITY, bw = d->bandwidth * c->memory;
    double depth = prologue(c, d, p);
    for (size_t t = 0; t < sizeof tiles / sizeof *tiles; t++) {
        double n = ceil(p->m / tiles[t].m) * ceil(p->n / tiles[t].n) * p->batch;
        double wave = d->units * tiles[t].m * tiles[t].n * 2 /
                      (d->flops * c->rate[tiles[t].rate]);
        for (uint32_t parts = 1; parts <= p->split; parts *= 2) {
            double q = parts;
            double s = ceil(q * n / d->units) * wave * (p->k / q + depth);
            if (q > 1) s += p->batch * p->m * p->n * (4 * q + 4) / bw;
            best = fmin(best, s);
        }
    }
    return best;
}

static double product_time(const sc_form_constants *c, const sc_form_device *d,
                           const sc_form_product *p)
{
    double move = p->bytes / (d->bandwidth * c->memory);
    return c->start + blended(tiles_time(c, d, p), move, c->blend);
}

/* ---- attention ------------------------------------------------------------- */

#define BLOCK 128.0
/* Positions of the table per octave of the size of a head. */
#define HEAD_STEPS 2

/* Keys that a row of a block of queries is compared with: blocks on the
 * diagonal and at the ends of the window are computed completely. */
static double keys_each(const sc_form_attention *p)
{
    double n = p->keys;
    if (p->causal) n = n * 0.5 * (1 + fmin(1, BLOCK / n));
    if (p->band > 0 && p->band < p->keys) n = fmin(n, p->band + BLOCK);
    return n;
}

/* Each score costs two products and an exponential, which run on different
 * units (Shah et al. 2024, section 3.1). */
static double attention_time(const sc_form_constants *c,
                             const sc_form_device *d,
                             const sc_form_attention *p)
{
    double size = 32 * ceil(0.5 * (p->size + p->values) / 32);
    double rows = ceil(p->queries / BLOCK);
    bool window = p->band > 0 && p->band < p->keys;
    double keys = keys_each(p) + BLOCK * (c->depth + (window ? c->rate[2] : 0));
    double score = blended(size / 128, c->rate[1] * p->exponentials, 4) * 128;
    double idle = fmax(1, d->units / (p->heads * rows));
    double t = 4 * p->heads * rows * BLOCK * keys * score /
               (d->flops * c->rate[0]) * idle;
    return c->start +
           blended(t, p->bytes / (d->bandwidth * c->memory), c->blend);
}

/* ---- any kind --------------------------------------------------------------- */

bool sc_form_is_attention(sc_form_kind kind)
{
    return kind >= SC_FORM_ATTENTION && kind <= SC_FORM_ATTENTION_FP8;
}

bool sc_form_is_cast(sc_form_kind kind)
{
    return kind == SC_FORM_QUANTIZE || kind == SC_FORM_AMAX;
}

static bool is_grouped(sc_form_kind kind)
{
    return kind >= SC_FORM_GROUPED && kind <= SC_FORM_GROUPED_FP4;
}

/* Products by their three sizes; grouped products by the rows of an expert,
 * the number of experts, and the size of a weight. */
void sc_form_place(sc_form_use *use)
{
    const sc_form_product *p = &use->product;
    const sc_form_attention *q = &use->attention;
    double x[3] = {1, 1, 1};
    if (sc_form_is_attention(use->kind)) {
        x[0] = q->keys;
        x[1] = q->heads * ceil(q->queries / BLOCK);
        x[2] = pow(0.5 * (q->size + q->values), HEAD_STEPS);
    } else if (sc_form_is_cast(use->kind)) {
        x[0] = use->bytes;
    } else {
        x[0] = p->m;
        x[1] = is_grouped(use->kind) ? p->batch : p->n;
        x[2] = is_grouped(use->kind) ? sqrt(p->n * p->k) : p->k;
    }
    for (int i = 0; i < 3; i++) use->at[i] = log2(fmax(1, x[i]));
}

double sc_form_physical(const sc_form_constants *c, const sc_form_use *use)
{
    if (sc_form_is_attention(use->kind))
        return attention_time(c, &use->on, &use->attention);
    if (sc_form_is_cast(use->kind))
        return c->start + use->bytes / (use->on.bandwidth * c->memory);
    return product_time(c, &use->on, &use->product);
}

/* ---- corrections ------------------------------------------------------------ */

void sc_form_corners(const sc_form_table *t, const double at[3],
                     uint32_t index[8], double weight[8])
{
    uint32_t low[3];
    double part[3];
    for (int i = 0; i < 3; i++) {
        double last = (double)t->count[i] - 1;
        double x = fmin(fmax(at[i] - t->first[i], 0), last);
        low[i] = (uint32_t)fmin(floor(x), fmax(last - 1, 0));
        part[i] = x - low[i];
    }
    for (uint32_t j = 0; j < 8; j++) {
        weight[j] = 1;
        index[j] = 0;
        for (int i = 0; i < 3; i++) {
            uint32_t up = j >> i & 1;
            weight[j] *= up ? part[i] : 1 - part[i];
            if (low[i] + up >= t->count[i]) up = 0;
            index[j] = index[j] * t->count[i] + low[i] + up;
        }
    }
}

double sc_form_factor(const sc_form_table *t, const double at[3])
{
    uint32_t index[8];
    double weight[8], sum = 0;
    if (t->count[0] == 0) return 1;
    sc_form_corners(t, at, index, weight);
    for (int j = 0; j < 8; j++) sum += weight[j] * t->log[index[j]];
    return exp(1e-3 * sum);
}

/* ---- forms without a fit ----------------------------------------------------- */

/* Products: start-up and memory as in the fits of the classes that have tables.
 * Rates: medians of those fits for 16 bits, because no table of measured
 * products of these classes exists; their level is fitted on steps
 * (`sustained_*`). */
#define PRODUCT              \
    {                        \
        3e-6, 0.8, 4, 100,   \
        {                    \
            0.78, 0.74, 0.66 \
        }                    \
    }
/* Attention: FlashAttention 2 on an A100 reaches 190 to 200 of 312 TFLOP/s with
 * the causal mask (Dao 2023, figure 5). */
#define FUSED                  \
    {                          \
        1.2e-5, 0.6, 1.5, 0.3, \
        {                      \
            0.62, 0.5, 1       \
        }                      \
    }

static const sc_form product = {.c = PRODUCT, .error = NAN};
/* [1]: an exponential takes 1/16 of a clock of an SM on all of them, the
 * products of a score with heads of 128 take 512 operations of 1024 (Ada), 2048
 * (Ampere), 4096 (Hopper) or 8192 (Blackwell) per clock. */
#define FUSED_FOR(class_, exponentials)                                  \
    [class_] = {.c = {1.2e-5, 0.6, 1.5, 0.3, {0.62, (exponentials), 1}}, \
                .error = NAN}
static const sc_form fused[SC_N_FIT_CLASSES] = {
    FUSED_FOR(SC_FIT_AMPERE, 0.25), FUSED_FOR(SC_FIT_HOPPER, 0.5),
    FUSED_FOR(SC_FIT_BLACKWELL, 1), FUSED_FOR(SC_FIT_ADA, 0.125),
    FUSED_FOR(SC_FIT_CDNA, 0.5),    FUSED_FOR(SC_FIT_GAUDI, 0.5),
    FUSED_FOR(SC_FIT_TPU, 0.5),     FUSED_FOR(SC_FIT_TPU6, 0.5)};
static const sc_form cast = {.c = {3e-6, 0.75, 4, 0, {1, 1, 1}}, .error = NAN};

/* Fitted to the implicit products (scudnn) among NeuSight's convolutions in fp32
 * on A100, V100, P100, T4 and P4. */
const sc_form_constants sc_form_vector_conv = {
    3e-6, 0.8, 4, 300, {0.8, 0.75, 0.66}};

int sc_form_nearest(sc_form_kind kind)
{
    switch (kind) {
    case SC_FORM_GEMM_FP8:
    case SC_FORM_GEMM_INT8:
    case SC_FORM_GEMM_FP4:
    case SC_FORM_GROUPED: return SC_FORM_GEMM;
    case SC_FORM_GEMM_BLOCK: return SC_FORM_GEMM_FP8;
    case SC_FORM_GROUPED_FP8: return SC_FORM_GROUPED;
    case SC_FORM_GROUPED_BLOCK:
    case SC_FORM_GROUPED_FP4: return SC_FORM_GROUPED_FP8;
    case SC_FORM_ATTENTION_WINDOW:
    case SC_FORM_ATTENTION_LATENT:
    case SC_FORM_ATTENTION_FP8: return SC_FORM_ATTENTION;
    default: return -1;
    }
}

const sc_form *sc_form_of(const sc_forms *forms, sc_fit_class fit,
                          sc_form_kind kind)
{
    for (int k = (int)kind; forms && k >= 0;
         k = sc_form_nearest((sc_form_kind)k))
        if (forms->at[fit][k]) return forms->at[fit][k];
    if (sc_form_is_cast(kind)) return &cast;
    return sc_form_is_attention(kind) ? &fused[fit] : &product;
}
