/* SPDX-License-Identifier: Apache-2.0 */
/* net_layers.c - builds operators without a sliding window. */
#include "model/net_build.h"

#include <string.h>

static const uint8_t same[SC_TENSOR_DIMS] = {0, 1, 2, 3, 4, 5};

/* ---- products */

static sc_iter_dim *units(sc_net_op *op, uint8_t at, uint32_t n)
{
    op->iter[at].units = n == op->iter[at].extent ? 0 : n;
    return &op->iter[at];
}

/* Adds iteration dims for all dims of `t` but the last `n`: batch, then
 * FREE. */
static unsigned leading(sc_net_op *op, const sc_tensor *t, unsigned n)
{
    sc_tensor some = *t;
    some.n_dim = (uint8_t)(t->n_dim - n);
    build_iters_of(op, &some);
    return some.n_dim;
}

net_value build_linear_named(net_builder *b, const char *name, net_value x,
                             const build_product *p)
{
    sc_net_op *op = build_open(b, name, SC_NET_LINEAR, 1, &x);
    if (!op) return SC_NONE;
    sc_tensor t = *build_tensor(b, x);
    if (t.n_dim < 2)
        return build_wrong(b, name, "there is nothing to multiply");
    unsigned n = leading(op, &t, 1);
    sc_tensor_dim *last = &t.dim[n];
    uint64_t in = last->extent;
    const char *in_name = p->out_name ? last->name : "in";
    const char *out_name = p->out_name ? p->out_name : "out";
    const sc_tensor_dim weight[] = {{out_name, p->out, false},
                                    {in_name, in, false}};
    if (strcmp(in_name, out_name) == 0) in_name = "in", out_name = "out";
    uint8_t from = build_iter(op, in_name, SC_I_REDUCE, in);
    uint8_t to = build_iter(op, out_name, SC_I_FREE, p->out);
    if (p->in_units) (void)units(op, from, p->in_units);
    if (p->out_units) (void)units(op, to, p->out_units);
    const uint8_t ws[] = {to, from};
    uint8_t at[SC_TENSOR_DIMS];
    memcpy(at, same, sizeof at);
    at[n] = from;
    build_port(&op->in[0], at, t.n_dim);
    if (p->weight == SC_NONE) {
        (void)build_weight(b, op, "weight", 2, weight, ws);
    } else {
        build_weight_of(op, p->weight, 2, ws);
    }
    if (p->bias) (void)build_weight(b, op, "bias", 1, weight, ws);
    double rows = 1.0;
    for (unsigned i = 0; i < n; i++) rows *= (double)t.dim[i].extent;
    op->flops = 2.0 * rows * (double)in * (double)p->out;
    at[n] = to;
    last->extent = p->out;
    if (p->out_name) last->name = p->out_name;
    return build_close(b, op, t.n_dim, t.dim, at);
}

net_value build_linear(net_builder *b, const char *name, net_value x,
                       uint64_t out, bool bias)
{
    build_product p = {.out = out, .weight = SC_NONE, .bias = bias};
    return build_linear_named(b, name, x, &p);
}

net_value build_matmul(net_builder *b, const char *name, net_value x,
                       net_value y, bool bt)
{
    const net_value in[] = {x, y};
    sc_net_op *op = build_open(b, name, SC_NET_MATMUL, 2, in);
    if (!op) return SC_NONE;
    sc_tensor t = *build_tensor(b, x);
    const sc_tensor *u = build_tensor(b, y);
    unsigned d = t.n_dim;
    if (d < 3 || u->n_dim != d ||
        u->dim[bt ? d - 1 : d - 2].extent != t.dim[d - 1].extent)
        return build_wrong(b, name, "the factors of a product do not fit");
    unsigned n = leading(op, &t, 2);
    sc_tensor_dim cols = u->dim[bt ? d - 2 : d - 1];
    uint8_t m = build_iter(op, "m", SC_I_FREE, t.dim[n].extent);
    uint8_t c = build_iter(op, "n", SC_I_FREE, cols.extent);
    uint8_t k = build_iter(op, "k", SC_I_REDUCE, t.dim[d - 1].extent);
    uint8_t xs[SC_TENSOR_DIMS], ys[SC_TENSOR_DIMS];
    memcpy(xs, same, sizeof xs);
    memcpy(ys, same, sizeof ys);
    xs[n] = m;
    xs[n + 1] = k;
    ys[n] = bt ? c : k;
    ys[n + 1] = bt ? k : c;
    build_port(&op->in[0], xs, d);
    build_port(&op->in[1], ys, d);
    op->flops = 2.0 * sc_tensor_elements(&t, 1.0) * (double)cols.extent;
    t.dim[d - 1] = cols;
    if (strcmp(cols.name, t.dim[n].name) == 0) t.dim[d - 1].name = "n";
    xs[n + 1] = c;
    return build_close(b, op, d, t.dim, xs);
}

/* A table may be split by rows: each rank adds up the rows that it has.  A table
 * with one result for each sample is that of a recommendation model, whose
 * programs update it row by row; those of words have a result for each
 * position. */
static net_value embed(net_builder *b, const char *name, net_value ids,
                       const sc_tensor_dim table[2], uint32_t lookups,
                       net_value weight)
{
    sc_net_op *op = build_open(b, name, SC_NET_EMBED, 1, &ids);
    if (!op) return SC_NONE;
    sc_tensor t = *build_tensor(b, ids);
    unsigned n = leading(op, &t, lookups > 1 ? 1 : 0);
    uint8_t at[SC_TENSOR_DIMS];
    memcpy(at, same, sizeof at);
    if (lookups > 1) at[n] = build_iter(op, "lookups", SC_I_OPAQUE, lookups);
    build_port(&op->in[0], at, t.n_dim);
    const uint8_t ws[] = {build_iter(op, "vocab", SC_I_REDUCE, table[0].extent),
                          build_iter(op, "hidden", SC_I_FREE, table[1].extent)};
    if (weight == SC_NONE)
        (void)build_weight(b, op, "weight", 2, table, ws);
    else
        build_weight_of(op, weight, 2, ws);
    op->lookups = lookups;
    op->sparse = n == 1;
    t.dim[n] = table[1];
    at[n] = ws[1];
    return build_close(b, op, n + 1, t.dim, at);
}

net_value build_embed(net_builder *b, const char *name, net_value ids,
                      uint64_t rows, uint64_t width, uint32_t lookups)
{
    const sc_tensor_dim table[] = {{"vocab", rows, false},
                                   {"hidden", width, false}};
    return embed(b, name, ids, table, lookups, SC_NONE);
}

net_value build_embed_of(net_builder *b, const char *name, net_value ids,
                         net_value table)
{
    const sc_tensor *w = build_tensor(b, table);
    if (!w || ids == SC_NONE) return SC_NONE;
    const sc_tensor_dim dim[] = {w->dim[0], w->dim[1]};
    return embed(b, name, ids, dim, 1, table);
}

void build_attention_parts(sc_net_op *op)
{
    if (op->n_in != 2 || op->in[0].tensor != op->in[1].tensor) return;
    double q = (double)op->heads * op->qk_dim;
    double kv = (double)op->kv_heads * ((double)op->qk_dim + op->v_dim);
    op->in[0].part = (float)(q / (q + kv));
    op->in[1].part = (float)(kv / (q + kv));
}

/* The positions of queries may be divided, those of keys may not; one value may
 * hold both. */
sc_net_op *build_attention_open(net_builder *b, const char *name,
                                const build_attend *w)
{
    const net_value in[] = {w->q, w->k == SC_NONE ? w->q : w->k, w->v};
    unsigned n_in = w->v == SC_NONE ? 2 : 3;
    sc_net_op *op = build_open(b, name, SC_NET_ATTENTION, n_in, in);
    if (!op) return NULL;
    sc_tensor t = *build_tensor(b, w->q);
    if (t.n_dim != 3) {
        (void)build_wrong(b, name, "attention needs an input with rows");
        return NULL;
    }
    build_iters_of(op, &t);
    op->iter[2].extent = w->out;
    (void)units(op, 2, w->heads);
    build_port(&op->in[0], same, 3);
    uint64_t keys = build_extent(b, in[1], 1);
    const uint8_t at[] = {0, build_iter(op, "keys", SC_I_OPAQUE, keys), 2};
    build_port(&op->in[1], at, 3);
    if (n_in > 2) build_port(&op->in[2], at, 3);
    uint64_t seen = w->seen && w->seen < keys ? w->seen : keys;
    op->causal = w->causal;
    op->cross = w->cross;
    op->heads = w->heads;
    op->kv_heads = w->kv_heads ? w->kv_heads : w->heads;
    op->qk_dim = (uint32_t)w->qk_dim;
    op->v_dim = (uint32_t)w->v_dim;
    build_attention_parts(op);
    op->window = seen < keys ? seen : 0;
    op->flops = 2.0 * (double)w->heads * (double)(w->qk_dim + w->v_dim) *
                (double)t.dim[1].extent * (double)seen;
    return op;
}

net_value build_attention_close(net_builder *b, sc_net_op *op)
{
    sc_tensor t = *build_tensor(b, op->in[0].tensor);
    t.dim[2].extent = op->iter[2].extent;
    return build_close(b, op, 3, t.dim, same);
}

net_value build_attention(net_builder *b, const char *name,
                          const build_attend *w)
{
    sc_net_op *op = build_attention_open(b, name, w);
    return op ? build_attention_close(b, op) : SC_NONE;
}

/* ---- norms */

static void scale_and_shift(net_builder *b, sc_net_op *op, uint8_t at,
                            bool bias)
{
    const sc_tensor_dim dim = {op->iter[at].name, op->iter[at].extent, false};
    (void)build_weight(b, op, "weight", 1, &dim, &at);
    if (bias) (void)build_weight(b, op, "bias", 1, &dim, &at);
}

static sc_net_op *open_same(net_builder *b, const char *name, sc_net_type type,
                            net_value x, sc_tensor *t)
{
    sc_net_op *op = build_open(b, name, type, 1, &x);
    if (!op) return NULL;
    *t = *build_tensor(b, x);
    build_iters_of(op, t);
    build_port(&op->in[0], same, t->n_dim);
    return op;
}

/* Statistics cover the samples of one rank, but all positions. */
net_value build_batch_norm(net_builder *b, const char *name, net_value x)
{
    sc_tensor t;
    sc_net_op *op = open_same(b, name, SC_NET_BATCH_NORM, x, &t);
    if (!op) return SC_NONE;
    for (unsigned i = 2; i < t.n_dim; i++) op->iter[i].kind = SC_I_REDUCE;
    scale_and_shift(b, op, 1, true);
    return build_close(b, op, t.n_dim, t.dim, same);
}

net_value build_layer_norm(net_builder *b, const char *name, net_value x,
                           bool bias)
{
    sc_tensor t;
    sc_net_op *op = open_same(b, name, SC_NET_NORM, x, &t);
    if (!op) return SC_NONE;
    uint8_t last = (uint8_t)(t.n_dim - 1);
    op->iter[last].kind = SC_I_OPAQUE;
    scale_and_shift(b, op, last, bias);
    return build_close(b, op, t.n_dim, t.dim, same);
}

net_value build_group_norm(net_builder *b, const char *name, net_value x,
                           uint32_t groups)
{
    sc_tensor t;
    sc_net_op *op = open_same(b, name, SC_NET_NORM, x, &t);
    if (!op) return SC_NONE;
    if (groups) (void)units(op, 1, groups);
    for (unsigned i = 2; i < t.n_dim; i++) op->iter[i].sums = true;
    scale_and_shift(b, op, 1, true);
    return build_close(b, op, t.n_dim, t.dim, same);
}

/* ---- element by element */

/* Words for functions in model files and traces. */
static const struct {
    const char *word;
    sc_net_fn fn;
} functions[] = {{"sum", SC_F_SUM},
                 {"add", SC_F_SUM},
                 {"add_", SC_F_SUM},
                 {"product", SC_F_PRODUCT},
                 {"mul", SC_F_PRODUCT},
                 {"mul_", SC_F_PRODUCT},
                 {"scale and shift", SC_F_SCALE},
                 {"relu", SC_F_RELU},
                 {"relu_", SC_F_RELU},
                 {"relu2", SC_F_RELU2},
                 {"gelu", SC_F_GELU},
                 {"geglu", SC_F_GELU},
                 {"silu", SC_F_SILU},
                 {"silu_", SC_F_SILU},
                 {"swiglu", SC_F_SILU},
                 {"sigmoid", SC_F_SIGMOID},
                 {"tanh", SC_F_TANH}};

void build_function(sc_net_op *op, const char *word)
{
    op->detail = word;
    if (op->type != SC_NET_ACT && op->type != SC_NET_ELEMENTWISE) return;
    op->fn = op->type == SC_NET_ELEMENTWISE && !word ? SC_F_SUM : SC_F_OTHER;
    for (size_t i = 0; word && i < SC_COUNT(functions); i++)
        if (strcmp(word, functions[i].word) == 0)
            op->fn = (uint8_t)functions[i].fn;
}

static net_value pointwise(net_builder *b, const char *name, sc_net_type type,
                           net_value x, const char *detail)
{
    sc_tensor t;
    sc_net_op *op = open_same(b, name, type, x, &t);
    if (!op) return SC_NONE;
    build_function(op, detail);
    if (type == SC_NET_SOFTMAX) op->iter[t.n_dim - 1].kind = SC_I_OPAQUE;
    return build_close(b, op, t.n_dim, t.dim, same);
}

net_value build_act(net_builder *b, const char *name, net_value x,
                    const char *what)
{
    return pointwise(b, name, SC_NET_ACT, x, what);
}

net_value build_act_gated(net_builder *b, const char *name, net_value x,
                          const char *what)
{
    sc_tensor t;
    sc_net_op *op = open_same(b, name, SC_NET_ACT, x, &t);
    if (!op) return SC_NONE;
    unsigned last = t.n_dim - 1U;
    t.dim[last].extent /= 2;
    op->iter[last].extent = t.dim[last].extent;
    build_function(op, what);
    op->gated = true;
    return build_close(b, op, t.n_dim, t.dim, same);
}

net_value build_dropout(net_builder *b, const char *name, net_value x)
{
    return pointwise(b, name, SC_NET_DROPOUT, x, NULL);
}

net_value build_softmax(net_builder *b, const char *name, net_value x)
{
    return pointwise(b, name, SC_NET_SOFTMAX, x, NULL);
}

net_value build_elementwise(net_builder *b, const char *name, net_value x,
                            net_value y, const char *what)
{
    if (y == SC_NONE) return pointwise(b, name, SC_NET_ELEMENTWISE, x, what);
    const net_value in[] = {x, y};
    sc_net_op *op = build_open(b, name, SC_NET_ELEMENTWISE, 2, in);
    if (!op) return SC_NONE;
    sc_tensor t = *build_tensor(b, x);
    const sc_tensor *u = build_tensor(b, y);
    build_iters_of(op, &t);
    build_port(&op->in[0], same, t.n_dim);
    for (unsigned i = 0; i < u->n_dim; i++) {
        bool whole = i < t.n_dim && u->dim[i].extent == t.dim[i].extent;
        if (i >= t.n_dim || (!whole && u->dim[i].extent != 1))
            return build_wrong(b, name, "the terms do not fit");
        if (whole) op->in[1].at[i] = (uint8_t)i;
    }
    build_function(op, what);
    return build_close(b, op, t.n_dim, t.dim, same);
}

/* ---- moves */

net_value build_concat(net_builder *b, const char *name, const net_value *v,
                       unsigned n, unsigned dim)
{
    sc_net_op *op = build_open(b, name, SC_NET_CONCAT, n, v);
    if (!op) return SC_NONE;
    sc_tensor t = *build_tensor(b, v[0]);
    uint64_t sum = 0;
    for (unsigned i = 0; i < n; i++) {
        const sc_tensor *u = build_tensor(b, v[i]);
        bool fits = u->n_dim == t.n_dim && dim < t.n_dim;
        for (unsigned k = 0; fits && k < t.n_dim; k++)
            fits = k == dim || u->dim[k].extent == t.dim[k].extent;
        if (!fits) return build_wrong(b, name, "the parts do not fit");
        sum += u->dim[dim].extent;
        build_port(&op->in[i], same, t.n_dim);
    }
    t.dim[dim].extent = sum;
    build_iters_of(op, &t);
    op->iter[dim].kind = SC_I_OPAQUE;
    return build_close(b, op, t.n_dim, t.dim, same);
}

net_value build_slice(net_builder *b, const char *name, net_value x,
                      unsigned dim, uint64_t extent)
{
    sc_tensor t;
    sc_net_op *op = open_same(b, name, SC_NET_SLICE, x, &t);
    if (!op) return SC_NONE;
    if (dim >= t.n_dim || extent == 0 || extent > t.dim[dim].extent)
        return build_wrong(b, name, "the slice is larger than its input");
    t.dim[dim].extent = op->iter[dim].extent = extent;
    op->iter[dim].kind = SC_I_OPAQUE;
    return build_close(b, op, t.n_dim, t.dim, same);
}

net_value build_view(net_builder *b, const char *name, net_value x,
                     const build_dim *dim, unsigned n, bool copy)
{
    sc_tensor t;
    sc_net_op *op = open_same(b, name, SC_NET_VIEW, x, &t);
    if (!op) return SC_NONE;
    if (n > SC_TENSOR_DIMS) return build_wrong(b, name, "too many dims");
    bool kept[SC_TENSOR_DIMS] = {false};
    sc_tensor_dim out[SC_TENSOR_DIMS];
    uint8_t at[SC_TENSOR_DIMS];
    double after = 1.0;
    for (unsigned i = 0; i < n; i++) {
        int from = dim[i].from;
        bool batch = from >= 0 && t.dim[from].batch;
        out[i] = (sc_tensor_dim){dim[i].name, dim[i].extent, batch};
        at[i] = from < 0 ? SC_NO_ITER : (uint8_t)from;
        after *= (double)dim[i].extent;
        if (from < 0) continue;
        kept[from] = true;
        /* a dim with fewer elements on one side is cut there */
        if (dim[i].extent < op->iter[from].extent)
            op->iter[from].units = (uint32_t)dim[i].extent;
    }
    if (after != sc_tensor_elements(&t, 1.0))
        return build_wrong(b, name, "a view must keep the number of elements");
    for (unsigned i = 0; i < t.n_dim; i++)
        if (!kept[i]) op->iter[i].kind = SC_I_OPAQUE;
    op->copy = copy;
    return build_close(b, op, n, out, at);
}

net_value build_flatten(net_builder *b, const char *name, net_value x)
{
    const sc_tensor *t = build_tensor(b, x);
    if (!t || t->n_dim < 2)
        return build_wrong(b, name, "there is nothing to flatten");
    uint64_t batch = t->dim[0].extent;
    const build_dim dim[] = {
        {"batch", batch, 0},
        {t->dim[1].name, (uint64_t)sc_tensor_elements(t, 1.0) / batch, 1}};
    return build_view(b, name, x, dim, 2, false);
}

net_value build_loss(net_builder *b, const char *name, net_value x,
                     net_value target, bool reduce)
{
    const net_value in[] = {x, target};
    sc_net_op *op = build_open(b, name, SC_NET_LOSS, 2, in);
    if (!op) return SC_NONE;
    sc_tensor t = *build_tensor(b, x);
    build_iters_of(op, &t);
    unsigned n = t.n_dim - 1U;
    op->iter[n].kind = reduce ? SC_I_REDUCE : SC_I_OPAQUE;
    build_port(&op->in[0], same, t.n_dim);
    const sc_tensor *u = build_tensor(b, target);
    for (unsigned i = 0; i < u->n_dim; i++)
        if (i < t.n_dim && u->dim[i].extent == t.dim[i].extent)
            op->in[1].at[i] = (uint8_t)i;
    return build_close(b, op, n, t.dim, same);
}
