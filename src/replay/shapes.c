/* SPDX-License-Identifier: Apache-2.0 */
/* shapes.c - operators of PyTorch as kernels of the one list of kernels. */
#include "replay/shapes.h"

#include <stdio.h>
#include <string.h>

/* ---- reading ------------------------------------------------------------- */

void shape_read(const char *text, shape_inputs *out)
{
    struct shape_tensor t = {.n_dims = 0};
    uint32_t depth = 0;
    bool open = false; /* a list whose elements may be dims */
    out->n = 0;
    for (const char *p = text; *p;) {
        if (*p == '[') {
            depth++;
            open = true;
            t.n_dims = 0;
        } else if (*p == ']') {
            /* the outermost list has the tensors */
            if (open && depth > 1 && out->n < SHAPE_TENSORS)
                out->tensor[out->n++] = t;
            open = false;
            if (depth) depth--;
        } else if (*p >= '0' && *p <= '9') {
            uint64_t v = 0;
            for (; *p >= '0' && *p <= '9'; p++)
                v = v > UINT32_MAX ? v : 10 * v + (uint64_t)(*p - '0');
            if (open && t.n_dims < SHAPE_DIMS) t.dim[t.n_dims++] = v;
            continue;
        }
        p++;
    }
}

uint64_t shape_elements(const struct shape_tensor *t)
{
    uint64_t n = t->n_dims > 0;
    for (uint32_t i = 0; i < t->n_dims; i++)
        n = t->dim[i] && n > UINT64_C(1) << 48 ? n : n * t->dim[i];
    return n;
}

sc_precision shape_precision(const char *types)
{
    static const struct {
        const char *word;
        sc_precision p;
    } words[] = {{"BFloat16", SC_BF16}, {"Half", SC_FP16},
                 {"Float8", SC_FP8},    {"float", SC_FP32},
                 {"double", SC_FP32},   {"signed char", SC_INT8}};

    const char *first = NULL;
    sc_precision p = SC_FP32;
    for (size_t i = 0; i < SC_COUNT(words); i++) {
        const char *at = strstr(types, words[i].word);
        if (!at || (first && at >= first)) continue;
        first = at;
        p = words[i].p;
    }
    return p;
}

uint32_t shape_element_bytes(const char *types)
{
    static const struct {
        const char *word;
        uint32_t bytes;
    } words[] = {{"BFloat16", 2}, {"Half", 2}, {"Float8", 1}, {"ong", 8},
                 {"ouble", 8},    {"hort", 2}, {"char", 1},   {"Char", 1},
                 {"Byte", 1},     {"ool", 1},  {"loat", 4},   {"nt", 4}};

    const char *first = NULL;
    uint32_t bytes = 4;
    for (size_t i = 0; i < SC_COUNT(words); i++) {
        const char *at = strstr(types, words[i].word);
        if (!at || (first && at >= first)) continue;
        first = at;
        bytes = words[i].bytes;
    }
    return bytes;
}

/* ---- operators ----------------------------------------------------------- */

typedef struct shapes {
    const shape_inputs *in;
    sc_precision p;
    bool backward;
    const char *name, *concrete;
} shapes;

static const struct shape_tensor *tensor(const shapes *x, uint32_t i,
                                         uint32_t dims)
{
    const struct shape_tensor *t = &x->in->tensor[i];
    return i < x->in->n && t->n_dims >= dims ? t : NULL;
}

/* The first two tensors with `dims` dims or more, in order. */
static bool two(const shapes *x, uint32_t dims, const struct shape_tensor **a,
                const struct shape_tensor **b)
{
    *a = *b = NULL;
    for (uint32_t i = 0; i < x->in->n && !*b; i++) {
        const struct shape_tensor *t = tensor(x, i, dims);
        if (t && *a) *b = t;
        if (t && !*a) *a = t;
    }
    return *b != NULL;
}

static uint64_t last(const struct shape_tensor *t)
{
    return t->dim[t->n_dims - 1];
}

static bool product(const shapes *x, sc_kernel *out)
{
    const struct shape_tensor *a, *b;
    if (!two(x, 2, &a, &b) || last(a) == 0) return false;
    *out = sc_kernel_product(x->p, 1, shape_elements(a) / last(a), last(b),
                             last(a));
    return true;
}

/* The weight has a row for each output. */
static bool linear(const shapes *x, sc_kernel *out)
{
    const struct shape_tensor *a, *b;
    if (!two(x, 2, &a, &b) || last(a) == 0) return false;
    *out = sc_kernel_product(x->p, 1, shape_elements(a) / last(a), b->dim[0],
                             last(a));
    return true;
}

static bool batched(const shapes *x, sc_kernel *out)
{
    const struct shape_tensor *a, *b;
    if (!two(x, 3, &a, &b)) return false;
    *out = sc_kernel_product(x->p, a->dim[0], a->dim[1], last(b), a->dim[2]);
    return true;
}

/* The first two lists of two numbers among the scalar inputs; false if there are
 * fewer. */
static bool two_lists(const char *text, uint64_t out[2][2])
{
    uint32_t n = 0;
    for (const char *p = strchr(text, '['); p && n < 2; p = strchr(p, '[')) {
        shape_inputs in;
        char list[64];
        const char *end = strchr(++p, ']');
        size_t len = end ? (size_t)(end - p) : sizeof list;
        if (len + 5 > sizeof list || memchr(p, '"', len)) continue;
        snprintf(list, sizeof list, "[[%.*s]]", (int)len, p);
        shape_read(list, &in);
        if (in.n != 1 || in.tensor[0].n_dims != 2) continue;
        out[n][0] = in.tensor[0].dim[0];
        out[n++][1] = in.tensor[0].dim[1];
    }
    return n == 2;
}

/* Positions of a window along one side. */
static uint64_t positions(uint64_t side, uint64_t window, uint64_t stride,
                          uint64_t padding)
{
    if (stride == 0 || side + 2 * padding < window) return 0;
    return (side + 2 * padding - window) / stride + 1;
}

/* Libraries' operators (cudnn_, miopen_) have the padding before the stride. */
static uint64_t convolved(const shapes *x, const struct shape_tensor *a,
                          const struct shape_tensor *w)
{
    uint64_t list[2][2], n = 1;
    bool library = strstr(x->name, "cudnn_") || strstr(x->name, "miopen_");
    if (!two_lists(x->concrete, list)) return a->dim[2] * a->dim[3];
    for (uint32_t i = 0; i < 2; i++)
        n *= positions(a->dim[2 + i], w->dim[2 + i], list[library][i],
                       list[!library][i]);
    return n;
}

static bool convolution(const shapes *x, sc_kernel *out)
{
    const struct shape_tensor *a, *w;
    if (!two(x, 4, &a, &w)) return false;
    /* of two tensors without a window, whose size only the trace's list of
     * scalars could say */
    if (strstr(x->name, "backward_weight")) return false;
    uint64_t side;
    const struct shape_tensor *third = tensor(x, 2, 4);
    if (x->backward) {
        /* the gradient of the result comes first, often before the input */
        side = a->dim[2] * a->dim[3];
        if (third && third != w) {
            a = w;
            w = third;
        }
    } else {
        side = convolved(x, a, w);
    }
    uint64_t m = a->dim[0] * side, k = w->dim[1] * w->dim[2] * w->dim[3];
    double e = sc_precision_bytes(x->p);
    *out = (sc_kernel){.kind = SC_K_CONV,
                       .precision = x->p,
                       .batch = 1,
                       .m = m,
                       .n = w->dim[0],
                       .k = k,
                       .bytes = e * ((double)shape_elements(a) +
                                     (double)shape_elements(w) +
                                     (double)m * (double)w->dim[0])};
    return m && k && w->dim[0];
}

/* Queries and keys as samples, positions, heads, sizes; scaled_dot_product has
 * heads before positions. */
static bool fused_attention(const shapes *x, bool heads_first, sc_kernel *out)
{
    const struct shape_tensor *q, *key;
    if (!two(x, 4, &q, &key)) return false;
    if (x->backward && x->in->n > 2 && x->in->tensor[2].n_dims >= 4) {
        q = &x->in->tensor[1];
        key = &x->in->tensor[2];
    }
    int head = heads_first ? 1 : 2, at = heads_first ? 2 : 1;
    *out = (sc_kernel){.kind = SC_K_FLASH,
                       .precision = x->p,
                       .batch = q->dim[0] * q->dim[head],
                       .m = q->dim[at],
                       .n = key->dim[at],
                       .k = q->dim[3],
                       .attention = SC_ATTN_FLASH2,
                       .backward = x->backward};
    return out->batch && out->m && out->n && out->k;
}

static bool rows(const shapes *x, sc_kernel_kind kind, sc_kernel *out)
{
    const struct shape_tensor *t = tensor(x, 0, 1);
    if (!t || last(t) == 0) return false;
    *out = sc_kernel_rows(kind, x->p, shape_elements(t) / last(t), last(t),
                          x->backward);
    return true;
}

static bool channels(const shapes *x, sc_kernel *out)
{
    const struct shape_tensor *t = tensor(x, 0, 2);
    if (!t || t->dim[1] == 0) return false;
    *out = sc_kernel_rows(SC_K_BATCH_NORM, x->p, shape_elements(t) / t->dim[1],
                          t->dim[1], x->backward);
    return true;
}

static bool gather(const shapes *x, sc_kernel *out)
{
    const struct shape_tensor *t = tensor(x, 0, 2);
    uint64_t n = 0;
    for (uint32_t i = 1; t && i < x->in->n && !n; i++)
        n = shape_elements(&x->in->tensor[i]);
    if (!t || !n || last(t) == 0) return false;
    *out = sc_kernel_gather(x->p, n,
                            sc_lookup_different((double)t->dim[0], (double)n),
                            last(t), n, x->backward);
    return true;
}

static bool moves(const shapes *x, sc_kernel_kind kind, sc_kernel *out)
{
    uint64_t sum = 0, most = 0;
    for (uint32_t i = 0; i < x->in->n; i++) {
        uint64_t n = shape_elements(&x->in->tensor[i]);
        sum += n;
        if (n > most) most = n;
    }
    if (most == 0) return false;
    *out = sc_kernel_moves(kind, x->p,
                           (double)(sum + most) * sc_precision_bytes(x->p));
    return true;
}

typedef enum family {
    PRODUCT,
    LINEAR,
    BATCHED,
    CONVOLUTION,
    FUSED,
    FUSED_HEADS,
    SOFTMAX,
    NORM,
    RMS_NORM,
    BATCH_NORM,
    GATHER,
    REDUCE,
    OPTIMIZER
} family;

/* By words of the operator's name; the first that is found counts. */
static const struct {
    const char *word;
    family is;
} families[] = {
    {"scaled_dot_product", FUSED_HEADS},
    {"flash_attention", FUSED},
    {"efficient_attention", FUSED},
    {"baddbmm", BATCHED},
    {"bmm", BATCHED},
    {"addmm", PRODUCT},
    {"_scaled_mm", PRODUCT},
    {"aten::mm", PRODUCT},
    {"aten::matmul", PRODUCT},
    {"aten::linear", LINEAR},
    {"convolution", CONVOLUTION},
    {"softmax", SOFTMAX},
    {"rms_norm", RMS_NORM},
    {"layer_norm", NORM},
    {"batch_norm", BATCH_NORM},
    {"embedding", GATHER},
    {"index_select", GATHER},
    {"aten::sum", REDUCE},
    {"aten::mean", REDUCE},
    {"aten::max", REDUCE},
    {"aten::all", REDUCE},
    {"aten::_fused_", OPTIMIZER},
    {"aten::_foreach_", OPTIMIZER},
};

static bool of_family(const shapes *x, family is, sc_kernel *out)
{
    switch (is) {
    case PRODUCT: return product(x, out);
    case LINEAR: return linear(x, out);
    case BATCHED: return batched(x, out);
    case CONVOLUTION: return convolution(x, out);
    case FUSED: return fused_attention(x, false, out);
    case FUSED_HEADS: return fused_attention(x, true, out);
    case SOFTMAX: return rows(x, SC_K_SOFTMAX, out);
    case NORM: return rows(x, SC_K_NORM, out);
    case RMS_NORM: return rows(x, SC_K_RMS_NORM, out);
    case BATCH_NORM: return channels(x, out);
    case GATHER: return gather(x, out);
    case REDUCE: return moves(x, SC_K_REDUCE, out);
    case OPTIMIZER: return moves(x, SC_K_OPTIMIZER, out);
    }
    return false;
}

/* What is not known of a product is no reason to take it for a copy. */
static bool only_moves(const shapes *x, family is, sc_kernel *out)
{
    return is != CONVOLUTION && moves(x, SC_K_ELEMENT, out);
}

bool shape_kernel(const char *name, const shape_inputs *in, sc_precision p,
                  const char *concrete, sc_kernel *out)
{
    shapes x = {in, p, strstr(name, "backward") || strstr(name, "Backward"),
                name, concrete};
    for (size_t i = 0; i < SC_COUNT(families); i++)
        if (strstr(name, families[i].word))
            return of_family(&x, families[i].is, out) ||
                   only_moves(&x, families[i].is, out);
    return moves(&x, SC_K_ELEMENT, out);
}

bool shape_kind(const char *name, sc_kernel_kind *out, bool *batched)
{
    static const sc_kernel_kind kinds[] = {
        [PRODUCT] = SC_K_GEMM,       [LINEAR] = SC_K_GEMM,
        [BATCHED] = SC_K_GEMM,       [CONVOLUTION] = SC_K_CONV,
        [FUSED] = SC_K_FLASH,        [FUSED_HEADS] = SC_K_FLASH,
        [SOFTMAX] = SC_K_SOFTMAX,    [NORM] = SC_K_NORM,
        [RMS_NORM] = SC_K_RMS_NORM,  [BATCH_NORM] = SC_K_BATCH_NORM,
        [GATHER] = SC_K_GATHER,      [REDUCE] = SC_K_REDUCE,
        [OPTIMIZER] = SC_K_OPTIMIZER};
    for (size_t i = 0; i < SC_COUNT(families); i++) {
        if (!strstr(name, families[i].word)) continue;
        *out = kinds[families[i].is];
        *batched = families[i].is == BATCHED;
        return true;
    }
    return false;
}

/* The operator's name without its namespace, up to a suffix: "aten::add_" and
 * "aten::add" are "add". */
static bool is_called(const char *name, const char *word)
{
    const char *own = strstr(name, "::");
    size_t n = strlen(word);
    own = own ? own + 2 : name;
    own += *own == '_';
    return strncmp(own, word, n) == 0 &&
           (!own[n] || strcmp(own + n, "_") == 0 ||
            strcmp(own + n, "_backward") == 0);
}

bool shape_known(const char *name)
{
    static const char *const elementwise[] = {
        "add",         "sub",         "rsub",       "mul",
        "div",         "neg",         "abs",        "exp",
        "log",         "sqrt",        "rsqrt",      "pow",
        "tanh",        "sigmoid",     "silu",       "relu",
        "gelu",        "elu",         "hardswish",  "clamp",
        "fill",        "zero_",       "copy",       "to_copy",
        "clone",       "where",       "dropout",    "native_dropout",
        "threshold",   "leaky_relu",  "erf",        "sin",
        "cos",         "cat",         "eq",         "ne",
        "lt",          "gt",          "le",         "ge",
        "masked_fill", "contiguous",  "addcmul",    "addcdiv",
        "lerp",        "bitwise_and", "bitwise_or", "logical_and",
        "logical_not", "reciprocal",  "maximum",    "minimum",
        "floor",       "round",       "sign"};
    sc_kernel_kind kind;
    bool batched;
    if (shape_kind(name, &kind, &batched)) return true;
    for (size_t i = 0; i < SC_COUNT(elementwise); i++)
        if (is_called(name, elementwise[i])) return true;
    return false;
}
