/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel.c - the time of one kernel from its shape.
 *
 * A GEMM takes the cheapest of a few tile shapes and split-K factors. Its tiles
 * run in whole waves over the device's units, each with a prologue, and take at
 * least the time to move the operands. A convolution is priced as the
 * equivalent product, with any split, and with the traffic of its own tensors.
 * Unfused attention products are batched and have their own rate. Fused
 * attention has a rate per kernel generation. All other kernels are priced by
 * their bytes.
 */
#include "cost/winograd.h"
#include "hw/hw_arch.h"

#include <math.h>
#include <string.h>

const char *const sc_attention_names[] = {"unfused", "flash1",  "flash2",
                                          "cudnn",   "te-2024", NULL};

/* Per-SM rate of an A100 at which gemm_k0 was fitted. */
#define A100_UNIT_FLOPS (312e12 / 108)

static const sc_arch *arch_of(const sc_device *d)
{
    return sc_arch_of(d->arch);
}

/* Boards with the same chip have clocks that depend on their power. */
static double power_factor(const sc_cost *c, const sc_device *d)
{
    if (d->power_w <= 0) return 1;
    sc_fit_class fit = arch_of(d)->fit;
    if (fit == SC_FIT_HOPPER)
        return pow(fmin(1, d->power_w / 700), c->p[SC_P_POWER_HOPPER]);
    if (fit == SC_FIT_BLACKWELL)
        return pow(d->power_w / 1000, c->p[SC_P_POWER_BLACKWELL]);
    return 1;
}

/* Fraction of the peak that large products reach. */
static double gemm_fraction(const sc_cost *c, const sc_device *d,
                            sc_precision precision, sc_scaling scaling)
{
    bool low = precision == SC_FP8 || precision == SC_FP4;
    double row = low && scaling == SC_SCALE_ROW ? c->p[SC_P_FP8_ROW] : 1;
    switch (arch_of(d)->fit) {
    case SC_FIT_HOPPER:
        return row * c->p[low ? SC_P_GEMM_HOPPER_FP8 : SC_P_GEMM_HOPPER];
    case SC_FIT_BLACKWELL:
        if (precision == SC_FP4) return c->p[SC_P_GEMM_BLACKWELL_FP4];
        if (!low) return c->p[SC_P_GEMM_BLACKWELL];
        return c->p[scaling == SC_SCALE_TENSOR ? SC_P_GEMM_BLACKWELL_FP8
                                               : SC_P_GEMM_BLACKWELL_MX];
    case SC_FIT_TPU: return c->p[SC_P_GEMM_TPU];
    case SC_FIT_TPU6: return c->p[SC_P_GEMM_TPU6];
    case SC_FIT_OTHER: return c->p[SC_P_GEMM_OTHER];
    default: return c->p[SC_P_GEMM_AMPERE];
    }
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

/* FLOP/s of large products.  A board's rate follows from its power, so if a
 * datasheet gives the board a higher peak than the chip, the chip's peak is
 * used. */
static double product_rate(const sc_cost *c, const sc_device *d,
                           sc_precision precision, sc_scaling scaling)
{
    double rate = peak_of(d, precision) * d->chip_fraction;
    if (arch_of(d)->ultra && precision >= SC_FP16)
        rate *= c->p[SC_P_ULTRA_GEMM];
    rate *= gemm_fraction(c, d, precision, scaling) * power_factor(c, d);
    return rate;
}

/* Operands in 16 bits load more slowly if their rows are not aligned to 16
 * bytes. */
static double alignment(const sc_cost *c, uint64_t n, uint64_t k)
{
    double f = c->p[SC_P_GEMM_ODD] - 1;
    uint64_t both = n | k;
    if (both % 8 == 0) return 1;
    if (both % 4 == 0) return 1 + f / 4;
    if (both % 2 == 0) return 1 + f / 2;
    return 1 + f;
}

typedef struct tile {
    uint32_t m, n;
    int small; /* power of gemm_tile_small */
} tile;

static const tile tiles[] = {
    {256, 128, 0}, {128, 256, 0}, {128, 128, 1}, {64, 64, 3}};

/* Libraries split the sum of a product into a few parts.  For the gradient of a
 * convolution's weights, the sum over all positions of all samples is split
 * until it fills the device. */
#define GEMM_SPLIT 4
#define CONV_SPLIT 1024

static double tile_time(const sc_cost *c, const sc_device *d,
                        const sc_kernel *k, double rate, double bw)
{
    uint32_t split = k->kind == SC_K_CONV ? CONV_SPLIT : GEMM_SPLIT;
    double units = d->units ? d->units : 1;
    /* The prologue takes constant time, so faster units lose more depth.  A
     * systolic array loses the time to fill and drain it. */
    double faster = rate / units / (A100_UNIT_FLOPS * c->p[SC_P_GEMM_AMPERE]);
    double k0 = d->array ? 2.0 * d->array : c->p[SC_P_GEMM_K0] * faster;
    double best = INFINITY;
    for (size_t t = 0; t < SC_COUNT(tiles); t++) {
        double tm = tiles[t].m, tn = tiles[t].n;
        double n_tiles = ceil((double)k->m / tm) * ceil((double)k->n / tn) *
                         (double)k->batch;
        double eff = 1;
        for (int i = 0; i < tiles[t].small; i++) eff *= c->p[SC_P_TILE_SMALL];
        for (uint32_t q = 1; q <= split; q *= 2) {
            double waves = ceil(q * n_tiles / units);
            double s = waves * units * tm * tn * 2 * ((double)k->k / q + k0) /
                       (rate * eff);
            if (q > 1)
                s += (double)k->batch * (double)k->m * (double)k->n *
                     (4.0 * q + 4) / bw;
            if (s < best) best = s;
        }
    }
    return best;
}

/* FLOP and bytes through memory, which do not depend on the device. */
sc_price sc_kernel_amount(const sc_kernel *k)
{
    double b = (double)k->batch, m = (double)k->m, n = (double)k->n,
           depth = (double)k->k, e = sc_precision_bytes(k->precision);
    sc_price p = {.bytes = k->bytes, .launches = k->launches ? k->launches : 1};
    if (k->kind == SC_K_GEMM || k->kind == SC_K_CONV)
        p.flops = 2 * b * m * n * depth;
    if (k->kind == SC_K_GEMM)
        p.bytes =
            b * (e * (m * depth + n * depth) + fmax(2, e) * m * n) + k->bytes;
    if (k->kind == SC_K_QUANTIZE) p.bytes += (2 + e) * m * depth;
    if (k->kind != SC_K_FLASH) return p;
    p.flops = 4 * b * m * n * depth;
    /* Blocks of 128 on the diagonal are computed completely. */
    if (k->causal) p.flops *= 0.5 * (1 + 128.0 / fmax(128, n));
    p.bytes = fmax(2, e) * b * depth * (2.0 * m + 2.0 * n);
    if (k->backward) {
        p.flops *= 2.5; /* five products instead of two */
        p.bytes *= 2;
    }
    return p;
}

static sc_price price_gemm(const sc_cost *c, const sc_device *d,
                           const sc_kernel *k)
{
    double bw = d->mem_bw * c->p[SC_P_MEM_EFF];
    double rate = product_rate(c, d, k->precision, k->scaling);
    double m = (double)k->m, n = (double)k->n, kk = (double)k->k;
    bool half = k->precision == SC_FP16 || k->precision == SC_BF16;
    sc_price p = sc_kernel_amount(k);
    double t;
    p.limit = "compute";
    if (k->grouped) {
        t = tile_time(c, d, k,
                      fmin(rate * c->p[SC_P_GROUPED], peak_of(d, k->precision)),
                      bw);
    } else if (k->batch > 1) {
        double least = fmin(m, fmin(n, kk));
        double pad = 64 * ceil(least / 64) / least;
        rate *= c->p[SC_P_BMM];
        if (half && (k->n % 8 || k->k % 8)) {
            /* no tensor-core kernel for strided batches supports such rows */
            rate = fmin(rate, d->vector_flops * gemm_fraction(c, d, SC_FP32,
                                                              SC_SCALE_TENSOR));
            p.limit = "unaligned";
            pad = 1;
        }
        t = p.flops * pad / rate;
    } else {
        double al = half ? alignment(c, k->n, k->k) : 1;
        if (al > 1) p.limit = "unaligned";
        t = al * tile_time(c, d, k, rate, bw);
    }
    double move = p.bytes / bw;
    if (move > t) p.limit = "memory";
    p.seconds = fmax(t, move) + c->p[SC_P_LAUNCH];
    return p;
}

/* Groups with fewer channels than a fragment of the matrix units run on the
 * vector units. */
#define CONV_LEAST 8

static sc_price price_direct(const sc_cost *c, const sc_device *d,
                             const sc_kernel *k, double factor)
{
    double bw = d->mem_bw * c->p[SC_P_MEM_EFF];
    double rate = product_rate(c, d, k->precision, SC_SCALE_TENSOR) * factor;
    sc_price p = sc_kernel_amount(k);
    p.limit = "compute";
    bool vector = k->batch > 1 && k->n < CONV_LEAST;
    double t = vector
                   ? p.flops / (d->vector_flops *
                                gemm_fraction(c, d, SC_FP32, SC_SCALE_TENSOR))
                   : tile_time(c, d, k, rate, bw);
    double move = p.bytes / bw;
    if (move > t) p.limit = "memory";
    p.seconds = fmax(t, move) + c->p[SC_P_LAUNCH];
    return p;
}

/* The fastest algorithm: libraries try them or use heuristics from trials. */
static sc_price price_conv(const sc_cost *c, const sc_device *d,
                           const sc_kernel *k)
{
    double conv = c->p[SC_P_CONV];
    sc_price best = price_direct(c, d, k, conv);
    kernel_winograd w;
    for (uint32_t i = 0; kernel_winograd_of(d, k, i, &w); i++) {
        sc_price p = w.fused ? price_direct(c, d, &w.product, conv * w.rate)
                             : price_gemm(c, d, &w.product);
        p.bytes += w.moved;
        p.seconds += w.moved / (d->mem_bw * c->p[SC_P_MEM_EFF]) +
                     w.transforms * c->p[SC_P_LAUNCH];
        if (p.seconds < best.seconds) best = p;
    }
    best.launches = k->launches ? k->launches : 1;
    return best;
}

/* Fraction of the 16-bit peak by generation of kernel and device. */
static double flash_fraction(const sc_cost *c, const sc_device *d,
                             sc_attention_kernel kernel)
{
    const sc_arch *a = arch_of(d);
    if (a->fit == SC_FIT_BLACKWELL) {
        double u = a->ultra ? c->p[SC_P_ULTRA_ATTN] : 1;
        return u * c->p[SC_P_CUDNN_BLACKWELL];
    }
    bool h = a->fit == SC_FIT_HOPPER;
    switch (kernel) {
    case SC_ATTN_FLASH1:
        return c->p[h ? SC_P_FLASH1_HOPPER : SC_P_FLASH1_AMPERE];
    case SC_ATTN_FLASH2:
        return c->p[h ? SC_P_FLASH2_HOPPER : SC_P_FLASH2_AMPERE];
    case SC_ATTN_TE2024:
        return c->p[h ? SC_P_TE2024_HOPPER : SC_P_FLASH2_AMPERE];
    default: return c->p[h ? SC_P_CUDNN_HOPPER : SC_P_FLASH2_AMPERE];
    }
}

static double flash_rate(const sc_cost *c, const sc_device *d,
                         sc_attention_kernel kernel, sc_precision pr)
{
    double peak = peak_of(d, pr);
    double share = flash_fraction(c, d, kernel);
    if (arch_of(d)->fit >= SC_FIT_TPU) /* no fit of its attention kernels
                                          exists */
        share = fmin(share, gemm_fraction(c, d, pr, SC_SCALE_TENSOR));
    return peak * d->chip_fraction * share * power_factor(c, d);
}

static sc_price price_flash(const sc_cost *c, const sc_device *d,
                            const sc_kernel *k)
{
    double bw = d->mem_bw * c->p[SC_P_MEM_EFF];
    sc_precision pr = k->precision < SC_FP16 ? k->precision : SC_BF16;
    if (d->peak[SC_BF16] <= 0) pr = SC_FP16;
    sc_price p = sc_kernel_amount(k);
    p.limit = "compute";
    double rate = flash_rate(c, d, k->attention, pr);
    if (k->backward) rate *= c->p[SC_P_FLASH_BWD];
    double t = p.flops / rate, move = p.bytes / bw;
    if (move > t) p.limit = "memory";
    p.seconds = fmax(t, move) + c->p[SC_P_LAUNCH];
    return p;
}

sc_price sc_cost_kernel(const sc_cost *c, const sc_device *d,
                        const sc_kernel *k)
{
    if (k->kind == SC_K_GEMM) return price_gemm(c, d, k);
    if (k->kind == SC_K_FLASH) return price_flash(c, d, k);
    if (k->kind == SC_K_CONV) return price_conv(c, d, k);
    sc_price p = sc_kernel_amount(k);
    uint32_t n = p.launches;
    p.limit = "memory";
    double move = p.bytes / (d->mem_bw * c->p[SC_P_MEM_EFF]);
    p.seconds = move + n * c->p[SC_P_LAUNCH];
    if (move < n * c->p[SC_P_LAUNCH]) p.limit = "launch";
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
    if (p.flops > 0)
        sc_text_add(out, "  %4.1f %% of peak, limited by %s",
                    100 * p.flops / p.seconds / peak_of(d, k->precision),
                    p.limit);
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
