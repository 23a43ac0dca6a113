/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel_operator.c - rows of NeuSight's tables (an operator of PyTorch) and of
 * Vidur's (the operators of a transformer layer) as kernels.
 */
#include "calib/kernel_reader.h"
#include "cost/cost_alone.h"

#include <string.h>

static const double ms = 1e-3;

static sc_kernel named(sc_kernel k, const char *name)
{
    k.name = name;
    return k;
}

static sc_kernel element(const char *name, sc_precision p, double bytes)
{
    return named(sc_kernel_moves(SC_K_ELEMENT, p, bytes), name);
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

/* Element-wise operators have two operands or one. */
static sc_kernel vector(const char *op, sc_precision p, uint64_t rows,
                        uint64_t width)
{
    static const char *const binary[] = {"add", "mul", "div", "pow", "sub"};
    double tensors = 2, each = sc_precision_bytes(p);
    if (strcmp(op, "ln") == 0)
        return named(sc_kernel_rows(SC_K_NORM, p, rows, width, false), op);
    if (strcmp(op, "softmax") == 0)
        return named(sc_kernel_rows(SC_K_SOFTMAX, p, rows, width, false), op);
    for (size_t i = 0; i < SC_COUNT(binary); i++)
        if (strcmp(op, binary[i]) == 0) tensors = 3;
    return element(op, p, each * tensors * (double)rows * (double)width);
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
    sc_kernel k = sc_kernel_product(p, 1, b * to * to, out, in * side * side);
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
        /* N is summed over: the grids of the kernels are ceil(K / tile) times
         * ceil(M / tile). */
        uint64_t k = kernel_whole(rd, K_NS_N);
        uint64_t n = kernel_whole(rd, K_NS_K);
        bool one = strcmp(op, "linear") == 0; /* one weight for all samples */
        kernel_push(rd,
                    sc_kernel_product(p, one ? 1 : b, one ? b * m : m, n, k));
        return NULL;
    }
    if (rd->col[K_H] < 0) return "an operator without its sizes";
    uint64_t h = kernel_whole(rd, K_H);
    kernel_push(rd, vector(op, p, b, h));
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
    /* Its rows of training and of test differ by a factor of up to 3 for the
     * same shapes. */
    if (strcmp(op, "linear") == 0 && strcmp(r->device->name, "p4") == 0)
        reason = "NeuSight's rows of linear layers on the P4 contradict others";
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
    uint64_t ffn = x->ffn / x->tp, embd = x->embd;
    if (kv == 0) kv = 1;
    if (strcmp(op, "attn_pre_proj") == 0)
        return sc_kernel_product(p, 1, t, (q + 2 * kv) * x->dim, embd);
    if (strcmp(op, "attn_post_proj") == 0)
        return sc_kernel_product(p, 1, t, embd, q * x->dim);
    if (strcmp(op, "mlp_up_proj") == 0)
        return sc_kernel_product(p, 1, t, (uint64_t)x->gates * ffn, embd);
    if (strcmp(op, "mlp_down_proj") == 0)
        return sc_kernel_product(p, 1, t, embd, ffn);
    if (strcmp(op, "attn_rope") == 0)
        return named(sc_kernel_rows(SC_K_ROPE, p, t, (q + kv) * x->dim, false),
                     op);
    if (strcmp(op, "mlp_act") == 0)
        return named(sc_kernel_rows(SC_K_GATE, p, t, ffn, false), op);
    if (strcmp(op, "add") == 0)
        return element(op, p, 2.0 * 3 * (double)t * (double)embd);
    if (strcmp(op, "emb") != 0)
        return named(sc_kernel_rows(SC_K_RMS_NORM, p, t, embd, false), op);
    return named(sc_kernel_gather(p, t, t, embd, t, false), op);
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
        if (x.tp > 1 && strcmp(ops[i], "emb") == 0)
            r->reason = "a part of a table needs other kernels, for a mask";
        if (x.tp > x.heads || x.tp > x.ffn)
            r->reason = "more ranks than heads or columns";
        else
            kernel_push(rd, layer_kernel(&x, ops[i]));
        kernel_finish(rd, r);
    }
}
