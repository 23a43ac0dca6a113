/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel_network.c - networks of PyTorch as the kernels of their operators.
 *
 * A row of the table is an operator of a run, in NeuSight's words: its kind,
 * the shapes of its operands and the sizes of its products.  All rows of a run
 * become one row of kernels, because only the whole pass was measured.  Which
 * kernels a backward pass has follows from PyTorch's derivatives of the
 * operators, each a kernel of its own in eager mode.
 */
#include "calib/kernel_reader.h"
#include "cost/cost_alone.h"

#include <math.h>
#include <string.h>

#define DIMS     8
#define OPERANDS 8
#define MOST     1e12 /* elements of a tensor */

/* The length of a dim, and of all of them. */
typedef struct shape {
    uint32_t n;
    uint64_t dim[DIMS];
    double elements;
} shape;

typedef struct operator_row {
    kernel_reader *rd;
    const char *op, *name;
    uint64_t times;
    uint32_t n_in;
    shape in[OPERANDS], out;
    shape sizes; /* of a product, or rows and their width */
} operator_row;

/* ---- shapes ---------------------------------------------------------------- */

/* Reads the next "(4, 1024)" and moves behind it; false: there is none, or it is
 * too large. */
static bool next_shape(const char **text, shape *out)
{
    const char *p = strchr(*text, '(');
    *out = (shape){.elements = 1};
    if (!p) return false;
    for (; *p && *p != ')'; p++) {
        double v = 0;
        if (*p < '0' || *p > '9') continue;
        for (; *p >= '0' && *p <= '9' && v <= MOST; p++) v = 10 * v + *p - '0';
        if (v < 1 || out->n == DIMS || v * out->elements > MOST) return false;
        out->dim[out->n++] = (uint64_t)v;
        out->elements *= v;
        p--;
    }
    *text = p;
    return out->n > 0;
}

static uint64_t last(const shape *s)
{
    return s->n ? s->dim[s->n - 1] : 1;
}

/* The sizes of "[['Linear', (4096, 1280, 3840)]]". */
static shape sizes_of(const char *list, const char *op)
{
    shape s = {0};
    const char *at = strstr(list, op);
    if (at) (void)next_shape(&at, &s);
    return s;
}

/* ---- kernels --------------------------------------------------------------- */

static void push(const operator_row *x, sc_kernel k)
{
    kernel_push_times(x->rd, k, x->times);
}

static void push_tensors(const operator_row *x, sc_kernel_kind kind,
                         double tensors)
{
    push(x, sc_kernel_moves(kind, SC_FP32, 4 * tensors * x->out.elements));
}

/* Rows of the result. */
static uint64_t rows_of(const operator_row *x)
{
    return (uint64_t)(x->out.elements / (double)last(&x->out));
}

static void push_rows(const operator_row *x, sc_kernel_kind kind, bool backward)
{
    push(x, sc_kernel_rows(kind, SC_FP32, rows_of(x), last(&x->out), backward));
}

static void push_product(const operator_row *x, uint64_t batch, uint64_t m,
                         uint64_t n, uint64_t k)
{
    push(x, sc_kernel_product(SC_FP32, batch, m, n, k));
}

static void push_lookup(const operator_row *x, bool backward)
{
    uint64_t n = rows_of(x);
    push(x, sc_kernel_gather(SC_FP32, n, n, last(&x->out), n, backward));
}

/* Whether an operand is repeated; numbers of Python are none. */
static bool repeats(const operator_row *x)
{
    for (uint32_t i = 0; i < x->n_in; i++)
        if (x->in[i].elements < x->out.elements) return true;
    return false;
}

/* All operands and the result. */
static double bytes_of(const operator_row *x)
{
    double n = x->out.elements;
    for (uint32_t i = 0; i < x->n_in; i++) n += x->in[i].elements;
    return 4 * n;
}

static void push_elements(const operator_row *x, bool scattered)
{
    uint64_t n = scattered ? (uint64_t)x->out.elements : 1;
    push(x, sc_kernel_scattered(SC_FP32, bytes_of(x), n));
}

static bool is(const operator_row *x, const char *op)
{
    return strcmp(x->op, op) == 0;
}

static bool starts(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* ---- forward --------------------------------------------------------------- */

/* A tensor whose dims were exchanged is copied; another is as it should be. */
static bool copies(const operator_row *x)
{
    const char *from = kernel_text(x->rd, K_PREV);
    return strstr(from, "transpose") || strstr(from, "permute");
}

/* Operators that NeuSight's list has no kernels for. */
static void forward_other(const operator_row *x)
{
    if (strstr(x->name, "embed") && x->out.n > 2)
        push_lookup(x, false);
    else if ((starts(x->name, "max") || starts(x->name, "masked_fill")) &&
             x->out.n > 2)
        push_elements(x, repeats(x));
}

/* Element-wise operators that a compiler joined read and write once. */
static void forward_fused(const operator_row *x)
{
    const char *list = kernel_text(x->rd, K_FORWARD);
    if (strstr(list, "VECsoftmax"))
        push_rows(x, SC_K_SOFTMAX, false);
    else if (strstr(list, "VECln"))
        push_rows(x, SC_K_NORM, false);
    else if (strstr(list, "VEC"))
        push_elements(x, false);
}

static void forward(const operator_row *x)
{
    const uint64_t *s = x->sizes.dim;
    if (is(x, "Linear") && x->sizes.n == 3)
        push_product(x, 1, s[0], s[2], s[1]);
    else if (is(x, "BMM") && x->sizes.n == 4)
        push_product(x, s[0], s[1], s[3], s[2]);
    else if (is(x, "VECsoftmax"))
        push_rows(x, SC_K_SOFTMAX, false);
    else if (is(x, "VECln"))
        push_rows(x, SC_K_NORM, false);
    else if (is(x, "dropout"))
        push_rows(x, SC_K_DROPOUT, false);
    else if (is(x, "EMBEDDING"))
        push_lookup(x, false);
    else if (is(x, "mean"))
        push(x, sc_kernel_moves(SC_K_REDUCE, SC_FP32, bytes_of(x)));
    else if (is(x, "fused"))
        forward_fused(x);
    else if (is(x, "contiguous") && copies(x))
        push_elements(x, true);
    else if (starts(x->op, "VEC") || is(x, "where") || is(x, "rsqrt") ||
             is(x, "cumsum"))
        push_elements(x, repeats(x));
    else if (is(x, "misc"))
        forward_other(x);
}

/* ---- backward -------------------------------------------------------------- */

/* Tensors of the size of the result that each element-wise kernel of the
 * derivative reads and writes; 0 ends. */
static const struct {
    const char *op;
    double tensors[3];
} derivative[] = {
    {"VECmulu", {2}},
    {"VECdivu", {2}},
    {"VECdiv", {2}}, /* by a constant */
    {"VECmul", {3, 3}},
    {"VECpowu", {2, 2, 3}}, /* the power, times the exponent, the chain */
    {"VECtanh", {3}},
    {"VECrelu", {3}},
    {"VECgelu", {3}},
    {"VECsoftmax", {3}}, /* gradient times result, before the kernel */
    {"where", {2}},
    {"rsqrt", {2, 2, 3}},
};

static void backward_product(const operator_row *x)
{
    const uint64_t *s = x->sizes.dim;
    if (is(x, "Linear") && x->sizes.n == 3) {
        push_product(x, 1, s[0], s[1], s[2]);
        push_product(x, 1, s[2], s[1], s[0]);
        push(x, sc_kernel_moves(SC_K_REDUCE, SC_FP32,
                                4 * (double)(s[0] + 1) * (double)s[2]));
    } else if (is(x, "BMM") && x->sizes.n == 4) {
        push_product(x, s[0], s[1], s[2], s[3]);
        push_product(x, s[0], s[2], s[3], s[1]);
    }
}

/* The gradient of a table is as large as the table. */
static void backward_lookup(const operator_row *x)
{
    const char *list = kernel_text(x->rd, K_BACKWARD);
    shape table;
    push_lookup(x, true);
    if (next_shape(&list, &table))
        push(x, sc_kernel_moves(SC_K_ELEMENT, SC_FP32, 4 * table.elements));
}

static void backward(const operator_row *x)
{
    backward_product(x);
    for (size_t i = 0; i < SC_COUNT(derivative); i++)
        for (int k = 0; is(x, derivative[i].op) && k < 3; k++)
            if (derivative[i].tensors[k] > 0)
                push_tensors(x, SC_K_ELEMENT, derivative[i].tensors[k]);
    if (is(x, "VECsoftmax")) push_rows(x, SC_K_SOFTMAX, true);
    if (is(x, "VECln")) {
        push_rows(x, SC_K_NORM, true);
        push_tensors(x, SC_K_REDUCE, 2); /* of scale and shift */
    }
    if (is(x, "dropout")) push_rows(x, SC_K_DROPOUT, true);
    if (is(x, "EMBEDDING")) backward_lookup(x);
}

/* The gradient of each weight is added to what earlier passes left. */
static void accumulate(const operator_row *x)
{
    const char *list = kernel_text(x->rd, K_ACCUMULATE);
    while ((list = strstr(list, "[1, ")) && x->rd->n_parts < KERNEL_PARTS) {
        double v = 0;
        for (list += 4; *list >= '0' && *list <= '9' && v < MOST; list++)
            v = 10 * v + *list - '0';
        if (v > 0) push(x, sc_kernel_moves(SC_K_ELEMENT, SC_FP32, 3 * 4 * v));
    }
}

/* ---- waits ----------------------------------------------------------------- */

/* A choice of rows by a mask has a size that only the device knows, so the host
 * waits for it and then launches on an idle device. */
static bool waits(const operator_row *x)
{
    if (is(x, "count") || is(x, "setitem")) return true;
    return is(x, "getitem") && x->n_in == 2 && x->in[1].n + 1 == x->in[0].n &&
           x->in[1].elements > 1;
}

/* ---- rows ------------------------------------------------------------------ */

static void read_shapes(operator_row *x)
{
    const char *in = kernel_text(x->rd, K_SHAPES);
    const char *out = kernel_text(x->rd, K_SHAPE);
    while (x->n_in < OPERANDS && next_shape(&in, &x->in[x->n_in])) x->n_in++;
    (void)next_shape(&out, &x->out);
    x->sizes = sizes_of(kernel_text(x->rd, K_FORWARD), x->op);
}

/* The row of the run, which is the last one or new. */
static calib_kernel_row *run_row(kernel_reader *rd, bool training)
{
    const char *run = kernel_text(rd, K_RUN);
    double s = kernel_number(rd, K_RUN_SECONDS);
    if (rd->bad) return NULL;
    if (rd->n && rd->run && strcmp(rd->run, run) == 0)
        return &rd->rows[rd->n - 1];
    calib_kernel_row *r = kernel_row(rd, kernel_text(rd, K_NS_DEVICE),
                                     training ? "training" : "inference", run);
    if (!r) return NULL;
    rd->run = run;
    r->seconds = s;
    r->software = "pytorch";
    r->dtype = "fp32";
    r->reason = "a run without kernels";
    return r;
}

void kernel_read_network(kernel_reader *rd)
{
    bool training = kernel_whole(rd, K_TRAINING) != 0;
    operator_row x = {.rd = rd,
                      .op = kernel_text(rd, K_GRAPH_OP),
                      .name = kernel_text(rd, K_NAME),
                      .times = kernel_whole(rd, K_TIMES)};
    calib_kernel_row *r = run_row(rd, training);
    if (!r) return;
    rd->n_parts = 0;
    read_shapes(&x);
    if (waits(&x)) r->waits += (uint32_t)x.times;
    if (x.out.n) forward(&x);
    if (x.out.n && training) {
        backward(&x);
        accumulate(&x);
    }
    kernel_append(rd, r);
}
