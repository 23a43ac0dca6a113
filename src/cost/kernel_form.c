/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_form.c - the physical models of kernels, and their corrections. */
#include "cost/cost_kernel.h"
#include "hw/hw_arch.h"

#include <math.h>
#include <string.h>

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

/* Tiles of cuBLAS's kernels in fp32 without matrix units: rows of the result,
 * columns, and which rate they have (names of NeuSight's kernels). */
static const tile vector_tiles[SC_FORM_TILES] = {
    {128, 128, 0}, {64, 128, 0}, {128, 64, 0}, {64, 64, 1},
    {128, 32, 1},  {32, 128, 1}, {32, 64, 2},  {32, 32, 2}};

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
static double tile_time(const sc_form_constants *c, const sc_form_device *d,
                        const sc_form_product *p, const tile *t, double depth)
{
    double best = INFINITY, bw = d->bandwidth * c->memory;
    double n = ceil(p->m / t->m) * ceil(p->n / t->n) * p->batch;
    double wave = d->units * t->m * t->n * 2 / (d->flops * c->rate[t->rate]);
    for (uint32_t parts = 1; parts <= p->split; parts *= 2) {
        double q = parts;
        double s = ceil(q * n / d->units) * wave * (p->k / q + depth);
        if (q > 1) s += p->batch * p->m * p->n * (4 * q + 4) / bw;
        best = fmin(best, s);
    }
    return best;
}

static double tiles_time(const sc_form_constants *c, const sc_form_device *d,
                         const sc_form_product *p, bool vector)
{
    double best = INFINITY, depth = prologue(c, d, p);
    const tile *list = vector ? vector_tiles : tiles;
    size_t n = vector ? SC_COUNT(vector_tiles) : SC_COUNT(tiles);
    for (size_t t = 0; t < n; t++) {
        if (vector && p->tiles && !(p->tiles >> t & 1)) continue;
        best = fmin(best, tile_time(c, d, p, &list[t], depth));
    }
    return best;
}

static double product_time(const sc_form_constants *c, const sc_form_device *d,
                           const sc_form_product *p, bool vector)
{
    double move = p->bytes / (d->bandwidth * c->memory);
    return c->start + blended(tiles_time(c, d, p, vector), move, c->blend);
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

bool sc_form_is_vector(sc_form_kind kind)
{
    return kind == SC_FORM_GEMM_FP32 || kind == SC_FORM_BMM_FP32;
}

bool sc_form_is_rows(sc_form_kind kind)
{
    return kind >= SC_FORM_ELEMENT && kind <= SC_FORM_LOOKUP;
}

static bool is_grouped(sc_form_kind kind)
{
    return kind >= SC_FORM_GROUPED && kind <= SC_FORM_GROUPED_FP4;
}

/* Rows are placed by the time of their bytes at the datasheet's bandwidth, in
 * picoseconds: forms fit devices of other bandwidths better by it than by bytes
 * or by bytes over those of the L2. */
#define ROWS_AT 1e-12

/* PyTorch's softmax has one kernel for rows of up to 1,024 values, which stay in
 * registers, and another for wider ones; no interpolation mixes both. */
#define WIDE_AT 4

static bool wide_softmax(const sc_form_use *use)
{
    return use->kind == SC_FORM_SOFTMAX && use->rows.width > SC_NARROW_ROW;
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
    } else if (sc_form_is_rows(use->kind)) {
        x[0] = use->rows.bytes / use->on.bandwidth / ROWS_AT;
        x[1] = use->rows.width * (wide_softmax(use) ? WIDE_AT : 1);
    } else if (use->kind == SC_FORM_CONV) {
        x[0] = use->conv.m;
        x[1] = use->conv.n;
        x[2] = use->conv.k;
    } else {
        x[0] = p->m;
        x[1] = is_grouped(use->kind) ? p->batch : p->n;
        x[2] = is_grouped(use->kind) ? sqrt(p->n * p->k) : p->k;
    }
    for (int i = 0; i < 3; i++) use->at[i] = log2(fmax(1, x[i]));
}

static double rows_time(const sc_form_constants *c, const sc_form_device *d,
                        const sc_form_rows *p)
{
    double more = 1 + c->rate[1] * p->waste + (p->odd ? c->depth : 0);
    double move =
        (p->bytes * more + c->rate[2] * p->again) / (d->bandwidth * c->memory);
    return c->start + blended(move, p->issue / c->rate[0], c->blend);
}

double sc_form_physical(const sc_form_constants *c, const sc_form_use *use)
{
    if (sc_form_is_attention(use->kind))
        return attention_time(c, &use->on, &use->attention);
    if (sc_form_is_cast(use->kind))
        return c->start + use->bytes / (use->on.bandwidth * c->memory);
    if (sc_form_is_rows(use->kind)) return rows_time(c, &use->on, &use->rows);
    if (use->kind == SC_FORM_CONV)
        return c->start + use->conv.seconds / c->rate[0];
    return product_time(c, &use->on, &use->product,
                        sc_form_is_vector(use->kind));
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

/* cuBLAS reads operands in vectors of four and depth in slices of eight; other
 * sizes need more instructions. */
#define SLICE 8

double sc_form_whole(const sc_form *f, const sc_form_use *use)
{
    if (!sc_form_is_vector(use->kind)) return 1;
    const double side[2] = {use->product.k, use->product.n};
    double t = 1;
    for (int i = 0; i < 2; i++)
        if (f->whole[i] > 0 && fmod(side[i], SLICE) == 0) t *= f->whole[i];
    return t;
}

double sc_form_seconds(const sc_form *f, const sc_form_use *use)
{
    return sc_form_physical(&f->c, use) * sc_form_factor(&f->table, use->at) *
           sc_form_whole(f, use);
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
static const sc_form row_kernel = {.c = {2e-6, 0.85, 4, 0.1, {1, 0.3, 0.5}},
                                   .error = NAN};
static const sc_form vector_product = {
    .c = {3e-6, 0.8, 4, 8, {0.9, 0.85, 0.75}}, .error = NAN};
static const sc_form conv = {.c = {0, 1, 4, 0, {1, 1, 1}}, .error = NAN};
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
    case SC_FORM_BMM_FP32:
    case SC_FORM_CONV: return SC_FORM_GEMM_FP32;
    case SC_FORM_RMS_NORM: return SC_FORM_NORM;
    case SC_FORM_SOFTMAX:
    case SC_FORM_NORM:
    case SC_FORM_ROPE:
    case SC_FORM_GATE:
    case SC_FORM_LOOKUP: return SC_FORM_ELEMENT;
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
    if (sc_form_is_rows(kind)) return &row_kernel;
    if (sc_form_is_vector(kind)) return &vector_product;
    if (kind == SC_FORM_CONV) return &conv;
    return sc_form_is_attention(kind) ? &fused[fit] : &product;
}

/* ---- forms of devices ---------------------------------------------------------- */

/* Libraries choose kernels by generation, so that counts first; then what the
 * forms take from a datasheet. */
static double distance(const sc_device *x, const sc_device *y)
{
    double far = strcmp(x->vendor ? x->vendor : "", y->vendor ? y->vendor : "")
                     ? 1000
                     : 0;
    double sm = sc_arch_of(x->arch)->sm, of = sc_arch_of(y->arch)->sm;
    const double ratio[] = {x->vector_flops / y->vector_flops,
                            x->mem_bw / y->mem_bw,
                            (double)x->l2_bytes / (double)y->l2_bytes};
    for (size_t i = 0; i < SC_COUNT(ratio); i++)
        far += isfinite(ratio[i]) && ratio[i] > 0 ? fabs(log2(ratio[i])) : 10;
    return far + fabs(sm - of) / 5;
}

const sc_form *sc_form_own_of(const sc_forms *forms, const sc_device *d,
                              sc_form_kind kind)
{
    const sc_form *best = NULL;
    double least = INFINITY;
    for (uint32_t i = 0; forms && i < forms->n_own; i++) {
        const sc_form_own *o = &forms->own[i];
        if (o->kind != kind) continue;
        double far =
            strcmp(o->device->name, d->name) ? 1 + distance(o->device, d) : 0;
        if (far < least) {
            least = far;
            best = o->form;
        }
    }
    return best;
}
