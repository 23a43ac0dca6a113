/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_shape.c - rows of the tables of data/aiconfigurator as kernels. */
#include "calib/kernel_reader.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool starts(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* Reads the measured seconds, and drops the row after an error. */
static bool seconds(kernel_reader *rd, double *out)
{
    *out = kernel_number(rd, K_SECONDS);
    return !rd->bad;
}

/* The cast of m x k activations to low precision, or the search for the scale
 * of the whole tensor. */
static sc_kernel cast(sc_kernel_kind kind, sc_precision p, sc_scaling scaling,
                      double m, double k)
{
    return (sc_kernel){.kind = kind,
                       .precision = p,
                       .scaling = scaling,
                       .batch = 1,
                       .m = (uint64_t)m,
                       .n = 1,
                       .k = (uint64_t)k,
                       .name = kind == SC_K_AMAX ? "amax" : "quantize"};
}

static sc_kernel moves(const char *name, double bytes, uint32_t launches)
{
    return (sc_kernel){.kind = SC_K_MEMORY,
                       .precision = SC_BF16,
                       .batch = 1,
                       .bytes = bytes,
                       .launches = launches,
                       .name = name};
}

static bool is_low(sc_precision p)
{
    return p == SC_FP8 || p == SC_FP4;
}

/* ---- products ------------------------------------------------------------ */

/* Products in fp8, fp8-block and nvfp4 include the cast of the activations;
 * int8 does not. */
void kernel_read_gemm(kernel_reader *rd)
{
    double m = (double)kernel_whole(rd, K_M);
    double n = (double)kernel_whole(rd, K_N);
    double k = (double)kernel_whole(rd, K_K), s;
    double alone = kernel_optional_seconds(rd, K_CAST_SECONDS);
    if (!seconds(rd, &s)) return;
    calib_kernel_row *r =
        kernel_row(rd, kernel_text(rd, K_DEVICE), "gemm", NULL);
    if (!r) return;
    sc_kernel g = {.kind = SC_K_GEMM,
                   .batch = 1,
                   .m = (uint64_t)m,
                   .n = (uint64_t)n,
                   .k = (uint64_t)k,
                   .name = "gemm"};
    kernel_precision(r, r->dtype, &g.precision, &g.scaling);
    r->seconds = s;
    r->cast_seconds = alone;
    kernel_push(rd, g);
    if (is_low(g.precision))
        kernel_push(rd, cast(SC_K_QUANTIZE, g.precision, g.scaling, m, k));
    if (g.precision == SC_FP8 && g.scaling == SC_SCALE_TENSOR)
        kernel_push(rd, cast(SC_K_AMAX, g.precision, g.scaling, m, k));
    kernel_finish(rd, r);
}

void kernel_read_quant(kernel_reader *rd)
{
    double m = (double)kernel_whole(rd, K_M);
    double k = (double)kernel_whole(rd, K_K), s;
    if (!seconds(rd, &s)) return;
    const char *operation = kernel_text(rd, K_OPERATION);
    calib_kernel_row *r =
        kernel_row(rd, kernel_text(rd, K_DEVICE), operation, NULL);
    if (!r) return;
    sc_precision p;
    sc_scaling scaling;
    kernel_precision(r, r->dtype, &p, &scaling);
    r->seconds = s;
    if (strcmp(operation, "amax") == 0) {
        kernel_push(rd, cast(SC_K_AMAX, p, scaling, m, k));
    } else {
        if (strcmp(operation, "quantize") != 0)
            kernel_warn(r, "unknown operation; priced as quantize");
        kernel_push(rd, cast(SC_K_QUANTIZE, p, scaling, m, k));
    }
    kernel_finish(rd, r);
}

/* ---- attention ----------------------------------------------------------- */

/* The kernels of these programs are those of their time; only FlashAttention 2
 * is named. */
static sc_attention_kernel attention_kernel(const char *name)
{
    return strstr(name, "fa2") ? SC_ATTN_FLASH2 : SC_ATTN_CUDNN;
}

/* Whether the timed region includes writing keys and values to the cache. The
 * attention of vLLM 0.18 and 0.19 alone does not (README.md of the table), and
 * encoders of images have no cache. */
static bool writes_cache(const char *software, bool causal)
{
    return causal && !starts(software, "vllm-0.18") &&
           !starts(software, "vllm-0.19");
}

void kernel_read_attention(kernel_reader *rd)
{
    uint64_t batch = kernel_whole(rd, K_BATCH);
    uint64_t heads = kernel_whole(rd, K_HEADS);
    uint64_t kv = kernel_optional(rd, K_KV_HEADS, heads);
    uint64_t dim = kernel_whole(rd, K_HEAD_DIM);
    uint64_t seq = kernel_whole(rd, K_SEQ);
    bool causal = kernel_optional(rd, K_CAUSAL, 1) == 1;
    uint64_t window = kernel_optional(rd, K_WINDOW, 0);
    double s;
    if (!seconds(rd, &s)) return;
    calib_kernel_row *r =
        kernel_row(rd, kernel_text(rd, K_DEVICE),
                   causal ? "attention" : "attention bidirectional", NULL);
    if (!r) return;
    sc_kernel f = {.kind = SC_K_FLASH,
                   .batch = batch * heads,
                   .m = seq,
                   .n = seq,
                   .k = dim,
                   .causal = causal,
                   .attention = attention_kernel(kernel_text(rd, K_KERNEL)),
                   .kv_group = (uint32_t)(heads > kv ? heads / kv : 1),
                   .v_dim = (uint32_t)dim,
                   .band = (uint32_t)window,
                   .name = "attention"};
    kernel_precision(r, r->dtype, &f.precision, &f.scaling);
    f.low_scores = f.precision == SC_FP8;
    r->seconds = s;
    kernel_push(rd, f);
    double cached = 2.0 * (double)batch * (double)(seq * kv) * (double)dim;
    if (writes_cache(r->software, causal))
        kernel_push(
            rd,
            moves("cache", (2 + sc_precision_bytes(f.precision)) * cached, 1));
    kernel_finish(rd, r);
}

/* The layer rotates queries and keys and writes the cache. */
void kernel_read_mla(kernel_reader *rd)
{
    uint64_t batch = kernel_whole(rd, K_BATCH);
    uint64_t heads = kernel_whole(rd, K_HEADS);
    uint64_t dim = kernel_whole(rd, K_QK_DIM);
    uint64_t v_dim = kernel_whole(rd, K_V_DIM);
    uint64_t seq = kernel_whole(rd, K_SEQ);
    bool causal = kernel_optional(rd, K_CAUSAL, 1) == 1;
    double s;
    if (!seconds(rd, &s)) return;
    calib_kernel_row *r =
        kernel_row(rd, kernel_text(rd, K_DEVICE), "mla", NULL);
    if (!r) return;
    sc_kernel f = {.kind = SC_K_FLASH,
                   .batch = batch * heads,
                   .m = seq,
                   .n = seq,
                   .k = dim,
                   .causal = causal,
                   .attention = SC_ATTN_CUDNN,
                   .kv_group = 1,
                   .v_dim = (uint32_t)v_dim,
                   .name = "attention"};
    kernel_precision(r, r->dtype, &f.precision, &f.scaling);
    r->seconds = s;
    kernel_push(rd, f);
    /* the query is read and written; keys and values are copied */
    double rows = (double)batch * (double)(seq * heads);
    kernel_push(rd, moves("rope and cache",
                          2 * 2 * rows * (double)(dim + dim + v_dim), 1));
    kernel_finish(rd, r);
}

/* ---- experts ------------------------------------------------------------- */

/* Expected largest of n normal numbers, n = 1, 2, 4 ... 1024: the integral of
 * their order statistic. */
static const double largest[] = {0,      0.5642, 1.0294, 1.4236, 1.7660, 2.0697,
                                 2.3437, 2.5946, 2.8269, 3.0439, 3.2482};

static double expected_largest(double n)
{
    static const size_t last = SC_COUNT(largest) - 1;
    double at = fmin(log2(n), (double)last);
    size_t i = (size_t)fmin(at, (double)last - 1);
    return largest[i] + (at - (double)i) * (largest[i + 1] - largest[i]);
}

/* Mean of x^power of the density x^-alpha on [1, most]. */
static double moment(double alpha, double most, double power)
{
    double e = 1 - alpha, f = e + power;
    double norm = fabs(e) < 1e-9 ? log(most) : (pow(most, e) - 1) / e;
    double sum = fabs(f) < 1e-9 ? log(most) : (pow(most, f) - 1) / f;
    return sum / norm;
}

/* A rank's load is the sum over its experts; sums are taken as normal. */
double calib_kernel_skew(double alpha, double most, double experts, double ep)
{
    if (ep <= 1 || experts < ep || !(most > 1) || !(alpha > 0)) return 1;
    double mean = moment(alpha, most, 1), square = moment(alpha, most, 2);
    double cv = sqrt(fmax(0, square / (mean * mean) - 1));
    return fmin(ep, 1 + expected_largest(ep) * cv / sqrt(experts / ep));
}

typedef struct moe_shape {
    double tokens, hidden, inter, experts, topk, ep, tp;
    double pairs; /* token-expert pairs on the rank */
    bool gated;
    sc_precision precision;
    sc_scaling scaling;
} moe_shape;

/* The measuring program draws the loads of experts between 1 and 0.8 of the
 * tokens, or between 0.01 and 2 if there are fewer pairs than experts. */
static double skew_of(const moe_shape *x, const char *distribution)
{
    static const char law[] = "power_law_";
    if (!starts(distribution, law)) return 1;
    double alpha = strtod(distribution + sizeof law - 1, NULL);
    bool few = x->tokens * x->topk <= x->experts;
    return calib_kernel_skew(alpha, few ? 200 : 0.8 * x->tokens, x->experts,
                             x->ep);
}

/* Number of experts of the rank that get tokens. Behind DeepEP, uniform loads
 * fill blocks of 128 rows one after the other: those rows take less time than
 * the weights of all experts need. */
static double active_experts(const moe_shape *x, bool even, bool blocks)
{
    double local = x->experts / x->ep;
    if (blocks) return fmax(1, fmin(local, ceil(x->pairs / 128)));
    double drawn = local * (1 - pow(1 - 1 / local, x->pairs));
    return fmax(1, round(even ? fmin(local, x->pairs) : drawn));
}

static sc_kernel expert_product(const moe_shape *x, double active, double n,
                                double k)
{
    return (sc_kernel){.kind = SC_K_GEMM,
                       .precision = x->precision,
                       .scaling = x->scaling,
                       .batch = (uint64_t)active,
                       .m = (uint64_t)fmax(1, round(x->pairs / active)),
                       .n = (uint64_t)fmax(1, n),
                       .k = (uint64_t)fmax(1, k),
                       .grouped = true,
                       .name = "experts"};
}

/* Behind DeepEP the tokens are routed and sorted already. */
static void push_experts(kernel_reader *rd, const moe_shape *x, double active,
                         bool routed)
{
    double inter = x->inter / x->tp, up = (x->gated ? 2 : 1) * inter;
    double low = is_low(x->precision) ? sc_precision_bytes(x->precision) : 2;
    kernel_push(rd, expert_product(x, active, up, x->hidden));
    kernel_push(rd, expert_product(x, active, x->hidden, inter));
    if (!routed) {
        kernel_push(rd, moves("routing", 2 * 4 * x->tokens * x->experts, 3));
        kernel_push(rd, moves("permute", (2 + 2) * x->pairs * x->hidden, 1));
    }
    kernel_push(rd, moves("activation", x->pairs * (2 * up + low * inter), 1));
    kernel_push(
        rd, moves("finalise",
                  2 * (x->pairs + x->tokens / (routed ? x->ep : 1)) * x->hidden,
                  1));
    if (is_low(x->precision) && !routed)
        kernel_push(rd, cast(SC_K_QUANTIZE, x->precision, x->scaling,
                             fmax(1, x->pairs), x->hidden));
}

/* SGLang's Triton kernel is timed with the tokens that have an expert on the
 * rank, at most all, each with all its experts there: one shape takes 57.7,
 * 57.5, 57.0, 57.5 ms on 1, 2, 4, 8 ranks with 8 experts per token (A100), and
 * time falls as topk^2 / ep beyond. */
static double pairs_of(const moe_shape *x, const char *distribution,
                       const char *kernel)
{
    double all = x->tokens * x->topk, skew = skew_of(x, distribution);
    if (strstr(kernel, "triton"))
        return fmin(all, all * skew * x->topk / x->ep);
    return all * skew / x->ep;
}

void kernel_read_moe(kernel_reader *rd)
{
    moe_shape x = {
        .tokens = (double)kernel_whole(rd, K_TOKENS),
        .hidden = (double)kernel_whole(rd, K_HIDDEN),
        .inter = (double)kernel_whole(rd, K_INTER),
        .gated = kernel_optional(rd, K_GATED, 1) == 1,
        .experts = (double)kernel_whole(rd, K_EXPERTS),
        .topk = (double)kernel_whole(rd, K_TOPK),
        .ep = (double)kernel_optional(rd, K_EP, 1),
        .tp = (double)kernel_optional(rd, K_TP, 1),
    };
    double s;
    if (!seconds(rd, &s)) return;
    calib_kernel_row *r =
        kernel_row(rd, kernel_text(rd, K_DEVICE), "moe", NULL);
    if (!r) return;
    r->seconds = s;
    if (x.ep > x.experts || x.tp > x.inter) {
        r->reason = "more ranks than experts or columns";
        return;
    }
    const char *distribution = kernel_text(rd, K_DISTRIBUTION);
    kernel_precision(r, r->dtype, &x.precision, &x.scaling);
    x.pairs = pairs_of(&x, distribution, kernel_text(rd, K_KERNEL));
    bool even = strcmp(distribution, "balanced") == 0;
    bool uniform = strcmp(distribution, "uniform") == 0;
    if (!even && !uniform && !starts(distribution, "power_law_"))
        kernel_warn(r, "unknown distribution; priced as uniform");
    bool routed = strstr(r->software, "deepep") != NULL;
    if (routed) r->launch = CALIB_LAUNCH_PROGRAM;
    push_experts(rd, &x, active_experts(&x, even, routed && uniform), routed);
    kernel_finish(rd, r);
}
