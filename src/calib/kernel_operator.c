/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel_operator.c - rows of NeuSight's tables (an operator of PyTorch) and of
 * Vidur's (the operators of a transformer layer) as kernels.
 */
#include "calib/kernel_reader.h"

#include <string.h>

static const double ms = 1e-3;

static sc_kernel moves(const char *name, sc_precision p, double bytes)
{
    return (sc_kernel){.kind = SC_K_MEMORY,
                       .precision = p,
                       .batch = 1,
                       .bytes = bytes,
                       .launches = 1,
                       .name = name};
}

static sc_kernel product(sc_precision p, uint64_t batch, uint64_t m, uint64_t n,
                         uint64_t k)
{
    return (sc_kernel){.kind = SC_K_GEMM,
                       .precision = p,
                       .batch = batch,
                       .m = m,
                       .n = n,
                       .k = k,
                       .name = "gemm"};
}

/* ---- NeuSight ------------------------------------------------------------ */

/* Values are fp32 and products run in fp32, except if the name of the kernel
 * says otherwise. */
static sc_precision precision_of(const char *kernel)
{
    if (strstr(kernel, "tf32")) return SC_TF32;
    if (strstr(kernel, "bf16") || strstr(kernel, "_BB")) return SC_BF16;
    if (strstr(kernel, "f16") || strstr(kernel, "h884") ||
        strstr(kernel, "s16816") || strstr(kernel, "_HB"))
        return SC_FP16;
    return SC_FP32;
}

static const char *const precision_names[] = {[SC_FP32] = "fp32",
                                              [SC_TF32] = "tf32",
                                              [SC_FP16] = "fp16",
                                              [SC_BF16] = "bf16"};

/* Tensors that are read or written, by operator: two operands or one, or a
 * first pass over each row for its mean or maximum. Rows of up to 1,024 values
 * stay in registers (softmax_warp_forward). */
static double passes_of(const char *op, uint64_t width)
{
    static const char *const binary[] = {"add", "mul", "div", "pow", "sub"};
    for (size_t i = 0; i < SC_COUNT(binary); i++)
        if (strcmp(op, binary[i]) == 0) return 3;
    if (strcmp(op, "ln") == 0) return 3;
    if (strcmp(op, "softmax") == 0) return width > 1024 ? 3 : 2;
    return 2;
}

static const char *push_conv(kernel_reader *rd, sc_precision p)
{
    uint64_t b = kernel_whole(rd, K_B);
    uint64_t in = kernel_whole(rd, K_IN);
    uint64_t out = kernel_whole(rd, K_OUT);
    uint64_t side = kernel_whole(rd, K_SIDE); /* so spelled */
    uint64_t size = kernel_whole(rd, K_SIZE_IN);
    uint64_t stride = kernel_whole(rd, K_STRIDE);
    uint64_t pad = kernel_whole(rd, K_PADDING);
    if (size + 2 * pad < side) return "the window is larger than its input";
    uint64_t to = (size + 2 * pad - side) / stride + 1;
    sc_kernel k = product(p, 1, b * to * to, out, in * side * side);
    double e = sc_precision_bytes(p);
    k.kind = SC_K_CONV;
    k.name = "conv";
    k.bytes = e * ((double)(b * in) * (double)(size * size) +
                   (double)(k.n * k.k) + (double)k.m * (double)k.n);
    if (stride == 1)
        k.window = (sc_window){.side = side < 256 ? (uint8_t)side : 0,
                               .rows = (uint32_t)to,
                               .cols = (uint32_t)to};
    kernel_push(rd, k);
    return NULL;
}

/* Returns the reason why there is no kernel. */
static const char *push_operator(kernel_reader *rd, const char *op,
                                 sc_precision p)
{
    if (rd->col[K_SIDE] >= 0) return push_conv(rd, p);
    uint64_t b = kernel_whole(rd, K_B);
    if (rd->col[K_NS_K] >= 0) {
        uint64_t m = kernel_whole(rd, K_NS_M);
        uint64_t n = kernel_whole(rd, K_NS_N);
        uint64_t k = kernel_whole(rd, K_NS_K);
        bool one = strcmp(op, "linear") == 0; /* one weight for all samples */
        kernel_push(rd, product(p, one ? 1 : b, one ? b * m : m, n, k));
        return NULL;
    }
    if (rd->col[K_H] < 0) return "an operator without its sizes";
    uint64_t h = kernel_whole(rd, K_H);
    double e = sc_precision_bytes(p) * (double)b * (double)h;
    kernel_push(rd, moves(op, p, e * passes_of(op, h)));
    return NULL;
}

void kernel_read_operator(kernel_reader *rd)
{
    const char *op = kernel_text(rd, K_OPNAME);
    double s = kernel_number(rd, K_LATENCY) * ms;
    sc_precision p = precision_of(kernel_text(rd, K_NS_KERNEL));
    calib_kernel_row *r =
        rd->bad ? NULL : kernel_row(rd, kernel_text(rd, K_NS_DEVICE), op, NULL);
    if (!r) return;
    r->seconds = s;
    r->launch = CALIB_LAUNCH_EAGER;
    r->software = "pytorch";
    r->dtype = precision_names[p];
    const char *reason = push_operator(rd, op, p);
    if (reason) r->reason = reason;
    kernel_finish(rd, r);
}

/* ---- Vidur --------------------------------------------------------------- */

/* The device is only in the path: compute/a100/..., network/a100_dgx/... */
static void find_path_device(kernel_reader *rd)
{
    rd->path_device = rd->path_folder = "";
    for (const char *at = rd->t->file ? rd->t->file : ""; *at;) {
        size_t n = strcspn(at, "/"), stem = strcspn(at, "/_");
        const sc_device *d;
        char *name = sc_strndup(rd->a, at, stem);
        char *folder = sc_strndup(rd->a, at, n);
        if (!name || !folder) {
            kernel_fail(rd, sc_error_nomem(rd->err));
            return;
        }
        if (sc_device_find(name, rd->a, &d, NULL) == SC_OK) {
            rd->path_device = name;
            rd->path_folder = folder;
            return;
        }
        at += n + (at[n] == '/');
    }
}

const char *kernel_path_device(kernel_reader *rd)
{
    if (!rd->path_device) find_path_device(rd);
    return rd->path_device;
}

typedef struct layer {
    uint64_t tokens, embd, ffn, heads, kv, dim, tp;
    double gates; /* matrices before the activation */
} layer;

static sc_kernel layer_kernel(const layer *x, const char *op)
{
    sc_precision p = SC_FP16;
    uint64_t t = x->tokens, q = x->heads / x->tp, kv = x->kv / x->tp;
    double row = 2.0 * (double)t, embd = (double)x->embd;
    uint64_t ffn = x->ffn / x->tp;
    if (kv == 0) kv = 1;
    if (strcmp(op, "attn_pre_proj") == 0)
        return product(p, 1, t, (q + 2 * kv) * x->dim, x->embd);
    if (strcmp(op, "attn_post_proj") == 0)
        return product(p, 1, t, x->embd, q * x->dim);
    if (strcmp(op, "mlp_up_proj") == 0)
        return product(p, 1, t, (uint64_t)x->gates * ffn, x->embd);
    if (strcmp(op, "mlp_down_proj") == 0) return product(p, 1, t, x->embd, ffn);
    if (strcmp(op, "attn_rope") == 0)
        return moves(op, p, row * 2 * (double)((q + kv) * x->dim));
    if (strcmp(op, "mlp_act") == 0)
        return moves(op, p, row * (x->gates + 1) * (double)ffn);
    if (strcmp(op, "add") == 0) return moves(op, p, row * 3 * embd);
    if (strcmp(op, "emb") != 0) /* norms, which read each row twice */
        return moves(op, p, row * 3 * embd);
    sc_kernel k = moves(op, p, row * 2 * embd);
    k.kind = SC_K_LOOKUP;
    return k;
}

static layer read_layer(kernel_reader *rd)
{
    const char *gated = kernel_text(rd, K_GATED_MLP);
    layer x = {.tokens = kernel_whole(rd, K_NUM_TOKENS),
               .embd = kernel_whole(rd, K_N_EMBD),
               .ffn = kernel_whole(rd, K_N_FFN),
               .heads = kernel_whole(rd, K_N_HEAD),
               .kv = kernel_whole(rd, K_N_KV_HEAD),
               .tp = kernel_whole(rd, K_SHARDS),
               .gates = strcmp(gated, "True") == 0 ? 2 : 1};
    x.dim = x.embd / x.heads ? x.embd / x.heads : 1;
    return x;
}

void kernel_read_layer(kernel_reader *rd)
{
    static const char *const ops[] = {"emb",
                                      "input_layernorm",
                                      "attn_pre_proj",
                                      "attn_rope",
                                      "post_attention_layernorm",
                                      "attn_post_proj",
                                      "mlp_up_proj",
                                      "mlp_act",
                                      "mlp_down_proj",
                                      "add"};
    layer x = read_layer(rd);
    const char *device = kernel_path_device(rd);
    for (size_t i = 0; i < SC_COUNT(ops) && !rd->bad; i++) {
        double s;
        if (!kernel_vidur_seconds(rd, ops[i], &s)) continue;
        calib_kernel_row *r =
            rd->bad ? NULL : kernel_row(rd, device, ops[i], ops[i]);
        if (!r) return;
        r->seconds = s;
        r->software = "vidur";
        r->dtype = "fp16";
        if (s <= 0) r->reason = "the measured time is zero";
        if (x.tp > x.heads || x.tp > x.ffn)
            r->reason = "more ranks than heads or columns";
        else
            kernel_push(rd, layer_kernel(&x, ops[i]));
        kernel_finish(rd, r);
    }
}
