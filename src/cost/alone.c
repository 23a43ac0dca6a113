/* SPDX-License-Identifier: Apache-2.0 */
/* alone.c - the time of a single kernel of a trace. */
#include "base/embedded.h"
#include "cost/cost_alone.h"
#include "cost/kernel.h"
#include "hw/hw_arch.h"

#include <math.h>
#include <string.h>

/* ---- kernels by the sizes of a trace ------------------------------------------ */

sc_kernel sc_kernel_product(sc_precision p, uint64_t batch, uint64_t m,
                            uint64_t n, uint64_t k)
{
    return (sc_kernel){.kind = SC_K_GEMM,
                       .precision = p,
                       .batch = batch,
                       .m = m,
                       .n = n,
                       .k = k,
                       .name = "gemm"};
}

sc_kernel sc_kernel_rows(sc_kernel_kind kind, sc_precision p, uint64_t rows,
                         uint64_t width, bool backward)
{
    return (sc_kernel){.kind = kind,
                       .precision = p,
                       .batch = 1,
                       .m = rows,
                       .n = 1,
                       .k = width,
                       .backward = backward};
}

sc_kernel sc_kernel_moves(sc_kernel_kind kind, sc_precision p, double bytes)
{
    return (sc_kernel){.kind = kind,
                       .precision = p,
                       .batch = 1,
                       .m = 1,
                       .n = 1,
                       .k = 1,
                       .bytes = bytes};
}

sc_kernel sc_kernel_scattered(sc_precision p, double bytes, uint64_t elements)
{
    sc_kernel k = sc_kernel_moves(SC_K_ELEMENT, p, bytes);
    k.m = elements;
    return k;
}

sc_kernel sc_kernel_gather(sc_precision p, uint64_t lookups, uint64_t different,
                           uint64_t width, uint64_t sums, bool backward)
{
    return (sc_kernel){.kind = SC_K_GATHER,
                       .precision = p,
                       .batch = sums,
                       .m = lookups,
                       .n = different,
                       .k = width,
                       .backward = backward};
}

uint64_t sc_lookup_different(double table_rows, double lookups)
{
    if (!(table_rows >= 1) || !(lookups >= 1)) return 0;
    double hit = -table_rows * expm1(lookups * log1p(-1 / table_rows));
    if (table_rows <= 1) return 1;
    return (uint64_t)fmax(1, round(fmin(hit, fmin(table_rows, lookups))));
}

/* ---- forms ----------------------------------------------------------------------- */

sc_status sc_cost_alone(sc_arena *a, sc_cost *inout, sc_err *err)
{
    sc_node *root = NULL;
    const sc_embedded *e = sc_embedded_find("fit/kernels-alone.yml");
    if (!e) return SC_OK;
    SC_TRY(sc_embedded_read(e, a, &root, err));
    return sc_forms_tree(root, e->path, a, &inout->alone, err);
}

/* A device without matrix units for the precision. */
static bool on_vector_units(const sc_device *d, sc_precision p)
{
    return p == SC_FP32 && !d->array && d->vector_flops > 0 &&
           d->peak[p] <= d->vector_flops;
}

static bool kind_of(const sc_device *d, const sc_kernel *k, sc_form_kind *out)
{
    switch (k->kind) {
    case SC_K_GEMM:
        *out = k->batch > 1 ? SC_FORM_BMM_FP32 : SC_FORM_GEMM_FP32;
        return !k->grouped && on_vector_units(d, k->precision);
    case SC_K_CONV: *out = SC_FORM_CONV; break;
    case SC_K_SOFTMAX: *out = SC_FORM_SOFTMAX; break;
    case SC_K_NORM: *out = SC_FORM_NORM; break;
    case SC_K_RMS_NORM: *out = SC_FORM_RMS_NORM; break;
    case SC_K_ROPE: *out = SC_FORM_ROPE; break;
    case SC_K_GATE: *out = SC_FORM_GATE; break;
    case SC_K_LOOKUP:
    case SC_K_GATHER: *out = SC_FORM_LOOKUP; break;
    case SC_K_ELEMENT:
    case SC_K_REDUCE:
    case SC_K_OPTIMIZER:
    case SC_K_TRANSPOSE:
    case SC_K_DROPOUT:
    case SC_K_BATCH_NORM: *out = SC_FORM_ELEMENT; break;
    default: return false;
    }
    return true;
}

/* The form of this kind on any device, else of the nearest kind. */
const sc_form *sc_alone_form(const sc_cost *c, const sc_device *d,
                             sc_form_kind kind)
{
    for (int k = (int)kind; k >= 0; k = sc_form_nearest((sc_form_kind)k)) {
        const sc_form *f = sc_form_own_of(c->alone, d, (sc_form_kind)k);
        if (f) return f;
        if (kind == SC_FORM_CONV) break;
    }
    return sc_form_of(NULL, SC_FIT_AMPERE, kind);
}

/* Libraries split the sum of a product; those of batched ones never do. */
#define SPLIT 8

static double peak_of(const sc_device *d, sc_precision p)
{
    return d->peak[p] > 0 ? d->peak[p] : d->vector_flops;
}

/* Of the instructions for a step of depth of 8 x 8 values per thread, 64 multiply
 * and add, four load four operands each, and about two of eight steps' share
 * move tiles and count.  Schedulers of Volta and later issue one instruction
 * per clock, so these others take time where the vector units could start one
 * per clock too: 32 lanes for each of the four schedulers of a unit. */
#define MULTIPLY_ADDS (64.0 / 70)
#define ONE_ISSUE     70
#define LANES         128

/* Vector lanes of a unit; 0 if the catalogue does not say. */
static double lanes_of(const sc_device *d)
{
    if (d->units == 0 || d->clock_hz <= 0) return 0;
    return d->vector_flops / (2.0 * d->units * d->clock_hz);
}

static double mix_of(const sc_device *d)
{
    bool all =
        sc_arch_of(d->arch)->sm >= ONE_ISSUE && lanes_of(d) > 0.9 * LANES;
    return all ? MULTIPLY_ADDS : 1;
}

/* Watts per peak FLOP/s with which a generation's boards keep their clock in such
 * products: those of a P100 of 250 W and of an A100 of 300 W.  With less, the
 * clock falls with the cube root, as in hw.h; the P4, which has half of it, is
 * the check. */
static const struct {
    uint32_t sm;
    double watts;
} full_clock[] = {{60, 250 / 9.3e12}, {80, 300 / 19.5e12}};

static double clock_of(const sc_device *d)
{
    uint32_t sm = sc_arch_of(d->arch)->sm;
    for (size_t i = 0; i < SC_COUNT(full_clock); i++)
        if (full_clock[i].sm == sm && d->power_w > 0)
            return cbrt(
                fmin(1, d->power_w / d->vector_flops / full_clock[i].watts));
    return 1;
}

/* The rate of the device's vector units in products over that of the device that
 * the form was measured on, both as fractions of their peaks. */
static double board_of(const sc_device *d, const sc_form *f)
{
    const sc_device *of = f->device;
    if (!of) return 1;
    return mix_of(d) * clock_of(d) / (mix_of(of) * clock_of(of));
}

static sc_form_product product_of(const sc_kernel *k, double bytes,
                                  uint32_t tiles)
{
    return (sc_form_product){.m = (double)k->m,
                             .n = (double)k->n,
                             .k = (double)k->k,
                             .batch = (double)k->batch,
                             .bytes = bytes,
                             .split = k->batch > 1 ? 1 : SPLIT,
                             .tiles = tiles};
}

/* By the parameters' centres, so that no fit to steps moves it. */
static double conv_seconds(const sc_cost *c, const sc_device *d,
                           const sc_kernel *k)
{
    sc_cost centres;
    sc_cost_centres(&centres);
    centres.forms = c->forms;
    centres.burst = true;
    return sc_cost_kernel(&centres, d, k).seconds;
}

/* PyTorch's kernels take 16 bytes per thread at a time.  Its layer norm has 128
 * threads per row, its softmax of wide rows the power of two from an eighth of
 * the row up, at most 512.  Since version 2.2 that has 1,024 for any row, most of
 * which have few values; tables in fp32 are older. */
#define EACH       16.0 /* bytes */
#define MOST_BLOCK 1024.0

static bool wide_softmax(const sc_kernel *k)
{
    return k->kind == SC_K_SOFTMAX && k->k > SC_NARROW_ROW;
}

static bool fixed_block(const sc_kernel *k)
{
    return wide_softmax(k) && k->precision != SC_FP32;
}

static double block_of(const sc_kernel *k)
{
    double each = EACH / sc_precision_bytes(k->precision);
    if (k->kind == SC_K_NORM) return 128;
    if (!wide_softmax(k)) return 0;
    if (fixed_block(k)) return MOST_BLOCK;
    return exp2(ceil(log2(fmin((double)k->k / each, MOST_BLOCK) / 2)));
}

/* The threads of a fixed block that have no value skip what the others load. */
static double waste_of(const sc_kernel *k)
{
    double step = EACH / sc_precision_bytes(k->precision) * block_of(k);
    double width = (double)k->k;
    if (step <= 0 || fixed_block(k)) return 0;
    return ceil(width / step) * step / width - 1;
}

/* Threads whose instructions a unit starts per clock: four warps of 32 since
 * Volta, four times 16 of AMD's 64, and before as many as it has lanes. */
static double threads_of(const sc_device *d)
{
    if (d->vendor && strcmp(d->vendor, "amd") == 0) return 64;
    return sc_arch_of(d->arch)->sm >= ONE_ISSUE ? 128 : fmax(lanes_of(d), 16);
}

/* A thread of a softmax of wide rows runs three passes of some 100 instructions,
 * for 8 values or fewer, and two sums over the block of some 80; one of a layer
 * norm combines means and variances over the block, and updates both for each
 * value before it scales and shifts.
 * An element that is not where a vector of them would be needs its own address
 * for each operand, and one of a gathered row a division by the width too: by the
 * copies in TraceLens's traces, and by Vidur's embeddings. */
#define PER_THREAD  460.0
#define PER_NORM    250.0
#define PER_VALUE   30.0
#define PER_ELEMENT 80.0
#define PER_GATHER  240.0

static double issue_of(const sc_device *d, const sc_kernel *k)
{
    double n = 0;
    if (wide_softmax(k)) n = PER_THREAD * (double)k->m * block_of(k);
    if (k->kind == SC_K_NORM)
        n = (double)k->m * (PER_NORM * block_of(k) + PER_VALUE * (double)k->k);
    if (k->kind == SC_K_ELEMENT && k->m > 1) n = PER_ELEMENT * (double)k->m;
    if (k->kind == SC_K_GATHER)
        n = PER_GATHER * (double)k->m * (double)k->k * (k->backward ? 2 : 1);
    if (n <= 0 || d->clock_hz <= 0 || d->units == 0) return 0;
    return n / (threads_of(d) * d->units * d->clock_hz);
}

/* A softmax of wide rows reads each three times.  Two of the reads hit the L2 as
 * long as the rows in flight fit: two blocks of each SM, of four values per
 * thread at least.  A100 and H100 cache what an SM reads in one half of theirs.
 */
#define BLOCKS    2.0
#define LEAST     4096.0
#define READS     2.0
#define FITS      0.5 /* of the L2 */
#define OVERFLOWS 0.75
#define TWO_PARTS (32U << 20)

static double read_again(const sc_device *d, const sc_kernel *k)
{
    if (k->kind != SC_K_SOFTMAX || k->backward || k->k <= SC_NARROW_ROW ||
        d->l2_bytes == 0)
        return 0;
    double e = sc_precision_bytes(k->precision), width = (double)k->k;
    double l2 = (double)d->l2_bytes / (d->l2_bytes >= TWO_PARTS ? 2 : 1);
    double flight = d->units * BLOCKS * fmax(width, LEAST) * e;
    double over = (flight / l2 - FITS) / (OVERFLOWS - FITS);
    return READS * fmin(fmax(over, 0), 1) * e * (double)k->m * width;
}

static sc_form_rows rows_of(const sc_device *d, const sc_kernel *k,
                            double bytes)
{
    double e = sc_precision_bytes(k->precision);
    bool rows = k->kind == SC_K_SOFTMAX || k->kind == SC_K_NORM ||
                k->kind == SC_K_RMS_NORM;
    return (sc_form_rows){.width = (double)(k->k ? k->k : 1),
                          .bytes = bytes,
                          .again = read_again(d, k),
                          .waste = waste_of(k),
                          .issue = issue_of(d, k),
                          .odd = rows && fmod(e * (double)k->k, 32) != 0};
}

bool sc_alone_use_of(const sc_cost *c, const sc_device *d, const sc_kernel *k,
                     sc_form_use *use, const sc_form **form)
{
    sc_form_kind kind;
    if (!kind_of(d, k, &kind)) return false;
    *form = sc_alone_form(c, d, kind);
    double bytes = sc_kernel_amount(k).bytes;
    *use = (sc_form_use){.kind = kind,
                         .on = {.units = d->units ? d->units : 1,
                                .flops = peak_of(d, k->precision),
                                .bandwidth = d->mem_bw}};
    if (sc_form_is_vector(kind)) {
        use->product = product_of(k, bytes, (*form)->tiles);
        use->on.flops *= board_of(d, *form);
    } else if (kind == SC_FORM_CONV)
        use->conv = (sc_form_conv){(double)k->m, (double)k->n, (double)k->k,
                                   conv_seconds(c, d, k)};
    else
        use->rows = rows_of(d, k, bytes);
    sc_form_place(use);
    return true;
}

/* ---- prices ---------------------------------------------------------------------- */

static const char *limit_of(const sc_form *f, const sc_form_use *use,
                            const sc_price *p)
{
    if (f->c.start > 0.5 * p->seconds) return "launch";
    double move = p->bytes / use->on.bandwidth;
    return move > p->flops / use->on.flops ? "memory" : "compute";
}

/* Classes without rows in the tables of kernels have stated constants, which only
 * together with their level say what their libraries reach in 16 bits and
 * fewer; in fp32 matrix units do less work per clock, and boards have the power
 * for it. */
static bool has_rows(const sc_cost *c, const sc_device *d)
{
    return c->forms && c->forms->at[sc_arch_of(d->arch)->fit][SC_FORM_GEMM];
}

sc_price sc_kernel_alone(const sc_cost *c, const sc_device *d,
                         const sc_kernel *k)
{
    sc_form_use use;
    const sc_form *f;
    if (!sc_alone_use_of(c, d, k, &use, &f)) {
        sc_cost burst = *c;
        burst.burst = has_rows(c, d) || k->precision == SC_FP32;
        return sc_cost_kernel(&burst, d, k);
    }
    sc_price p = sc_kernel_amount(k);
    double level = c->n_levels ? kernel_level(c, d, use.kind) : 1;
    double one = level * sc_form_seconds(f, &use);
    /* Each launch of a kernel over rows starts anew. */
    p.seconds = one + (p.launches - 1) * f->c.start;
    if (sc_form_is_vector(use.kind))
        p.seconds = fmax(p.seconds, p.flops / peak_of(d, k->precision));
    p.limit = limit_of(f, &use, &p);
    return p;
}
