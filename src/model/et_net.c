/* SPDX-License-Identifier: Apache-2.0 */
/*
 * et_net.c - joins the operators of a trace by their tensors.
 *
 * A tensor that no operator made is a parameter if an operator uses it as one
 * (the weight of a linear layer), and input data otherwise.  An operator that
 * reads only such tensors (the transpose of a weight, the mask of attention)
 * makes another view of the same parameter, or data.  The extents include the
 * batch of the trace.
 */
#include "model/et_build.h"
#include "model/net_row.h"
#include "model/read.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

et_value *et_entry(et_builder *g, const et_tensor *t)
{
    uint64_t key[2] = {t->id, t->storage}, hash = sc_hash(key, sizeof key, 0);
    uint32_t at = 0, i;
    while ((i = sc_map_next(&g->by_id, hash, &at)) != SC_MAP_END)
        if (g->entry[i].id == t->id && g->entry[i].storage == t->storage)
            return &g->entry[i];
    i = g->n_entries++;
    (void)sc_map_add(&g->by_id, g->a, hash, i); /* the map has room for all
                                                   entries */
    g->entry[i] = (et_value){t->id, t->storage, SC_NONE, SC_NONE, SC_NONE, i};
    return &g->entry[i];
}

bool et_is_leaf(et_builder *g, const et_tensor *t)
{
    return et_entry(g, t)->value == SC_NONE;
}

/* Dims of a tensor, batch first.  False if it has no elements. */
static bool et_dims(const et_tensor *t, sc_tensor_dim dim[SC_TENSOR_DIMS],
                    unsigned *n)
{
    static const char *const names[] = {"batch", "c", "h", "w", "x", "y"};
    *n = t->n_dim;
    for (unsigned i = 0; i < t->n_dim; i++)
        if (t->dim[i] == 0) return false;
    if (t->n_dim == 0) {
        dim[0] = (sc_tensor_dim){"one", 1, false};
        *n = 1;
    } else if (t->n_dim > SC_TENSOR_DIMS) {
        double rest = et_elements(t) / (double)t->dim[0];
        dim[0] = (sc_tensor_dim){names[0], t->dim[0], true};
        dim[1] = (sc_tensor_dim){"rest", (uint64_t)rest, false};
        *n = 2;
    } else {
        for (unsigned i = 0; i < t->n_dim; i++)
            dim[i] = (sc_tensor_dim){names[i], t->dim[i], i == 0};
    }
    return true;
}

static net_value add_input(et_builder *g, const et_tensor *t)
{
    sc_tensor_dim dim[SC_TENSOR_DIMS];
    unsigned n;
    if (!et_dims(t, dim, &n)) return SC_NONE;
    const char *name = sc_sprintf(g->a, "data.%u", g->inputs++);
    if (!name) {
        g->b.no_memory = true;
        return SC_NONE;
    }
    return build_input(&g->b, name, n, dim, t->bytes);
}

static bool same_dims(const sc_tensor *v, const sc_tensor_dim *dim, unsigned n)
{
    bool same = v->n_dim == n;
    for (unsigned i = 0; same && i < n; i++)
        same = v->dim[i].extent == dim[i].extent;
    return same;
}

/* The same bytes under other dims: a view that the trace does not record. */
static net_value viewed(et_builder *g, net_value v, const sc_tensor_dim *dim,
                        unsigned n)
{
    build_dim to[SC_TENSOR_DIMS];
    double elements = 1.0;
    const sc_tensor *t = build_tensor(&g->b, v);
    for (unsigned i = 0; i < n; i++) {
        bool batch = dim[i].batch && t->dim[0].batch;
        to[i] = (build_dim){dim[i].name, dim[i].extent, batch ? 0 : -1};
        elements *= (double)dim[i].extent;
    }
    if (elements != sc_tensor_elements(t, 1.0)) return SC_NONE;
    if (t->dim[0].batch && !dim[0].batch) return SC_NONE;
    const char *path = sc_sprintf(g->a, "view.hidden.%u", g->b.g.n_ops);
    if (path) return build_view(&g->b, path, v, to, n, false);
    g->b.no_memory = true;
    return SC_NONE;
}

net_value et_use(et_builder *g, const et_tensor *t)
{
    sc_tensor_dim dim[SC_TENSOR_DIMS];
    unsigned n;
    et_value *e = et_entry(g, t);
    if (!et_dims(t, dim, &n)) return SC_NONE;
    if (e->value != SC_NONE) {
        if (same_dims(build_tensor(&g->b, e->value), dim, n)) return e->value;
        net_value v = viewed(g, e->value, dim, n);
        if (v != SC_NONE || g->b.no_memory) return v;
    }
    e->value = add_input(g, t);
    return e->value;
}

/* ---- operators of any kind */

/* Maps each input dim to a dim of the result: batch to batch, the others from
 * the last dim on, like broadcasting. */
static void align(const sc_net_op *op, const sc_tensor *x,
                  const sc_tensor_dim *dim, unsigned n,
                  uint8_t at[SC_TENSOR_DIMS])
{
    unsigned skip = op->n_iter - n; /* number of iteration dims before those of
                                       the result */
    memset(at, SC_NO_ITER, SC_TENSOR_DIMS);
    if (x->dim[0].batch) at[0] = 0;
    for (unsigned i = 0; i < x->n_dim; i++) {
        unsigned behind = x->n_dim - i;
        if (x->dim[i].batch || behind > n) continue;
        unsigned k = n - behind;
        if (!dim[k].batch && dim[k].extent == x->dim[i].extent)
            at[i] = (uint8_t)(k + skip);
    }
}

static uint64_t batch_of(const et_builder *g, const net_value *in, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (build_tensor(&g->b, in[i])->dim[0].batch)
            return build_extent(&g->b, in[i], 0);
    return 0;
}

/* Adds the result's dims as iteration dims, after the inputs' batch if the
 * result has no batch. */
static void add_iters(sc_net_op *op, const sc_tensor_dim *dim, unsigned n,
                      uint64_t batch, uint8_t at[SC_TENSOR_DIMS])
{
    unsigned skip = !dim[0].batch && batch > 0;
    if (skip) (void)build_iter(op, "batch", SC_I_BATCH, batch);
    for (unsigned i = 0; i < n; i++)
        at[i] =
            build_iter(op, dim[i].name, dim[i].batch ? SC_I_BATCH : SC_I_FREE,
                       dim[i].extent);
}

static void add_port(et_builder *g, sc_net_op *op, unsigned i,
                     const sc_tensor_dim *dim, unsigned n)
{
    uint8_t at[SC_TENSOR_DIMS];
    const sc_tensor *x = build_tensor(&g->b, op->in[i].tensor);
    align(op, x, dim, n, at);
    if (x->dim[0].batch && !op->iter[0].batch) at[0] = SC_NO_ITER;
    build_port(&op->in[i], at, x->n_dim);
    /* A dim can't be divided if an input lacks a part of it. */
    for (uint8_t k = 0; k < op->n_iter; k++)
        if (!op->iter[k].batch && !memchr(at, k, x->n_dim))
            op->iter[k].kind = SC_I_OPAQUE;
    if (op->iter[0].batch && at[0] == 0 &&
        x->dim[0].extent < op->iter[0].extent)
        op->iter[0].units = (uint32_t)x->dim[0].extent;
}

/* Whether a tensor holds a single constant number. */
static bool is_constant(et_builder *g, const et_tensor *t)
{
    return t->n_dim == 0 && et_is_leaf(g, t);
}

net_value et_shaped(et_op *o, sc_net_type type, const et_tensor *out,
                    double flops)
{
    et_builder *g = o->g;
    net_value in[ET_ARGS];
    sc_tensor_dim dim[SC_TENSOR_DIMS];
    unsigned n;
    uint8_t at[SC_TENSOR_DIMS];
    uint32_t n_in = 0;
    if (!et_dims(out, dim, &n)) return SC_NONE;
    for (uint32_t i = 0; i < o->n_in; i++) {
        if (is_constant(g, &o->in[i])) continue;
        in[n_in] = et_use(g, &o->in[i]);
        if (in[n_in] == SC_NONE) return SC_NONE;
        const sc_tensor *x = build_tensor(&g->b, in[n_in++]);
        if (same_dims(x, dim, n)) memcpy(dim, x->dim, n * sizeof *dim);
    }
    if (n_in == 0) return SC_NONE;
    uint64_t batch = batch_of(g, in, n_in);
    if (batch == 0) dim[0].batch = false;
    sc_net_op *op = build_open(&g->b, o->path, type, n_in, in);
    if (!op) return SC_NONE;
    add_iters(op, dim, n, batch, at);
    for (uint32_t i = 0; i < n_in; i++) add_port(g, op, i, dim, n);
    op->flops = flops;
    build_function(op, o->what);
    return build_close(&g->b, op, n, dim, at);
}

/* A view of a whole parameter or constant is that leaf itself. */
static void pass_leaf(et_builder *g, const et_op *o)
{
    if (o->n_in != 1) return;
    uint32_t leaf = et_entry(g, &o->in[0])->leaf;
    for (uint32_t i = 0; i < o->n->n_out; i++) {
        et_value *e = et_entry(g, &o->n->out[i]);
        e->value = SC_NONE;
        if (et_elements(&o->n->out[i]) == et_elements(&o->in[0]))
            e->leaf = leaf;
    }
}

static void collect(et_op *o)
{
    const et_node *n = o->n;
    for (uint32_t i = 0; i < n->n_in; i++)
        for (uint32_t k = 0; k < n->in[i].n && o->n_in < ET_ARGS; k++)
            o->in[o->n_in++] = n->in[i].t[k];
}

/* Operators that make a parameter a value of the network. */
static bool starts_net(const char *what)
{
    static const char *const words[] = {
        "conv", "linear", "mm", "matmul", "embedding", "attention", NULL};
    for (const char *const *w = words; *w; w++)
        if (strstr(what, *w)) return true;
    return false;
}

static sc_status add_node(et_builder *g, const et_node *n, uint32_t index,
                          sc_err *err)
{
    et_op o = {.g = g, .n = n};
    const char *name = strstr(n->name, "::");
    bool known = true, values = false;
    o.what = name ? name + 2 : n->name;
    o.path = sc_sprintf(g->a, "%s.%u", o.what, index);
    if (!o.path) return sc_error_nomem(err);
    collect(&o);
    for (uint32_t i = 0; i < o.n_in; i++) values |= !et_is_leaf(g, &o.in[i]);
    if (!values && !starts_net(o.what)) {
        pass_leaf(g, &o);
        return SC_OK;
    }
    net_value v = et_add(&o, &known);
    if (!known && g->t->matched && !g->b.no_memory && starts_net(o.what))
        return sc_error(err, SC_EINPUT, SC_C_UNSUPPORTED, n->pos,
                        "give an execution trace (docs/model-file.md)",
                        "what %s computes does not follow from the shapes of "
                        "its arguments",
                        n->name);
    if (v == SC_NONE && !known && !g->b.no_memory)
        v = et_shaped(&o, SC_NET_ELEMENTWISE, &n->out[0], 0);
    if (g->b.no_memory) return sc_error_nomem(err);
    if (g->b.wrong)
        return sc_error(err, SC_EINPUT, SC_C_CONFLICT, n->pos, NULL, "%s: %s",
                        n->name, g->b.why);
    if (!known && v != SC_NONE) {
        sc_net_op *op = &g->b.g.op[g->b.g.n_ops - 1];
        op->detail = sc_sprintf(
            g->a, "%s is not known; it is priced by the bytes it moves",
            n->name);
        if (!op->detail) return sc_error_nomem(err);
        if (g->n_unknown++ == 0) g->unknown = n->name;
    }
    if (v == SC_NONE) return SC_OK; /* a constant */
    g->b.g.tensor[v].bytes = n->out[0].bytes;
    for (uint32_t i = 0; i < n->n_out; i++)
        if (i == 0 || et_is_leaf(g, &n->out[i]))
            et_entry(g, &n->out[i])->value = v;
    return SC_OK;
}

/* ---- the trace */

static sc_status init(et_builder *g, const et_trace *t, const uint32_t *index,
                      uint32_t n, const char *name, sc_err *err)
{
    uint64_t most = 64;
    for (uint32_t i = 0; i < n; i++) {
        const et_node *e = &t->node[index[i]];
        most += e->n_out;
        for (uint32_t k = 0; k < e->n_in; k++) most += e->in[k].n;
    }
    if (most > UINT32_MAX / 4) return sc_error_nomem(err);
    g->entry = SC_NEW_N(g->a, et_value, most);
    if (!g->entry || !sc_map_reserve(&g->by_id, g->a, (uint32_t)most))
        return sc_error_nomem(err);
    g->t = t;
    build_init(&g->b, g->a, name, "batch of the trace");
    g->b.g.fixed = true;
    return SC_OK;
}

/* A word on what a profiler's trace does not record. */
static bool note_matched(et_builder *g, bool tied)
{
    const char *unknown = g->b.g.note;
    g->b.g.note = sc_sprintf(
        g->a,
        "the profiler's trace does not tell which tensors are one: results and "
        "arguments are matched by their shapes%s%s%s",
        tied ? "; the linear layer of the shape of an embedding table shares "
               "its weight"
             : "",
        unknown ? "; " : "", unknown ? unknown : "");
    return g->b.g.note != NULL;
}

static sc_status finish(et_builder *g, bool tied, const char *file,
                        const sc_net **out, sc_err *err)
{
    if (g->n_unknown > 0) {
        bool some = g->n_unknown > 1;
        g->b.g.note = sc_sprintf(
            g->a,
            "%u operator%s of the trace %s not known (%s%s) and counted "
            "by the bytes moved",
            g->n_unknown, some ? "s" : "", some ? "are" : "is", g->unknown,
            some ? " ..." : "");
        if (!g->b.g.note) return sc_error_nomem(err);
    }
    if (g->t->matched && !note_matched(g, tied)) return sc_error_nomem(err);
    return net_row_finish(&g->b, sc_pos_file(file), out, err);
}

static sc_status build(const et_trace *t, const uint32_t *index, uint32_t n,
                       bool tied, const char *file, sc_arena *a,
                       const sc_net **out, sc_err *err)
{
    et_builder g = {.a = a};
    const char *name = model_stem(file, a);
    if (!name) return sc_error_nomem(err);
    SC_TRY(init(&g, t, index, n, name, err));
    for (uint32_t i = 0; i < n; i++)
        SC_TRY(add_node(&g, &t->node[index[i]], i, err));
    return finish(&g, tied, file, out, err);
}

/* ---- a profiler's trace */

static void tie(et_trace *t)
{
    for (uint32_t i = 0; i < t->n_ties; i++) {
        t->tie[i].weight->id = t->tie[i].table->id;
        t->tie[i].weight->storage = t->tie[i].table->storage;
    }
}

static bool agrees(const et_trace *t, const sc_net *g)
{
    return fabs(g->learned - t->gradients) <= 0.02 * t->gradients;
}

/* Gradients show what the shapes do not: weights that are used twice, and
 * operators that were not understood. Without them, a linear layer with the shape
 * of an embedding table is taken as tied to it. */
static sc_status build_matched(et_trace *t, const uint32_t *index, uint32_t n,
                               const char *file, sc_arena *a,
                               const sc_net **out, sc_err *err)
{
    bool tied = t->n_ties > 0 && t->gradients <= 0;
    const sc_net *g;
    if (tied) tie(t);
    SC_TRY(build(t, index, n, tied, file, a, &g, err));
    if (t->gradients > 0 && t->n_ties > 0 && !agrees(t, g)) {
        tie(t);
        SC_TRY(build(t, index, n, true, file, a, &g, err));
    }
    if (t->gradients > 0 && !agrees(t, g))
        return sc_error(err, SC_EINPUT, SC_C_CONFLICT, sc_pos_file(file),
                        "give an execution trace, which tells which tensors "
                        "are one (docs/model-file.md)",
                        "the forward pass has %.0f trained parameters by its "
                        "shapes, but the backward pass makes gradients of %.0f",
                        g->learned, t->gradients);
    *out = g;
    return SC_OK;
}

sc_status sc_net_read_trace(const char *text, size_t len, const char *file,
                            sc_arena *a, const sc_net **out, sc_err *err)
{
    et_trace t;
    uint32_t *index, n;
    if (et_kind_of(text, len) == SC_ET_EVENTS)
        SC_TRY(et_kineto_read(text, len, file, a, &t, err));
    else
        SC_TRY(et_read(text, len, file, a, &t, err));
    SC_TRY(et_forward(&t, a, &index, &n, err));
    if (t.matched) return build_matched(&t, index, n, file, a, out, err);
    return build(&t, index, n, false, file, a, out, err);
}
