/* SPDX-License-Identifier: Apache-2.0 */
/* net_build.c - builds operators from parts: iteration dims, ports, results. */
#include "model/net_build.h"

#include <stdio.h>
#include <string.h>

#define SCOPE_MAX 121
/* Weights of one operator: weight and bias. */
#define WEIGHTS 2

void build_init(net_builder *b, sc_arena *a, const char *name,
                const char *sample)
{
    *b = (net_builder){.a = a, .g = {.sample = sample}};
    b->g.name = sc_strdup(a, name);
    b->no_memory = !b->g.name;
}

net_value build_wrong(net_builder *b, const char *name, const char *why)
{
    if (!b->wrong) {
        b->wrong = b->scope ? sc_sprintf(b->a, "%s.%s", b->scope, name)
                            : sc_strdup(b->a, name);
        b->why = why;
    }
    if (!b->wrong) b->no_memory = true;
    return SC_NONE;
}

void build_scope(net_builder *b, const char *fmt, ...)
{
    char text[SCOPE_MAX];
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    b->scope = NULL;
    if (n <= 0) return;
    b->scope = sc_strdup(b->a, text);
    if (!b->scope) b->no_memory = true;
}

static bool failed(const net_builder *b)
{
    return b->no_memory || b->wrong;
}

/* ---- tensors */

static net_value add_tensor(net_builder *b, const sc_tensor *t, unsigned n,
                            const sc_tensor_dim *dim)
{
    if (failed(b)) return SC_NONE;
    if (n > SC_TENSOR_DIMS) return build_wrong(b, t->name, "too many dims");
    sc_tensor *v = sc_grow(b->a, b->g.tensor, b->g.n_tensors, &b->cap_tensors,
                           128, sizeof *v);
    if (!v) {
        b->no_memory = true;
        return SC_NONE;
    }
    b->g.tensor = v;
    v += b->g.n_tensors;
    *v = *t;
    v->n_dim = (uint8_t)n;
    memcpy(v->dim, dim, n * sizeof *dim);
    return b->g.n_tensors++;
}

const sc_tensor *build_tensor(const net_builder *b, net_value v)
{
    return v == SC_NONE ? NULL : &b->g.tensor[v];
}

uint64_t build_extent(const net_builder *b, net_value v, unsigned dim)
{
    const sc_tensor *t = build_tensor(b, v);
    return t && dim < t->n_dim ? t->dim[dim].extent : 0;
}

net_value build_input(net_builder *b, const char *name, unsigned n_dim,
                      const sc_tensor_dim *dim, unsigned bytes)
{
    sc_tensor t = {.name = name,
                   .kind = SC_TENSOR_INPUT,
                   .bytes = (uint8_t)bytes,
                   .op = SC_NONE};
    b->g.n_inputs++;
    return add_tensor(b, &t, n_dim, dim);
}

net_value build_image(net_builder *b, unsigned channels, unsigned n,
                      uint64_t side)
{
    static const char *const names[] = {"d", "h", "w"};
    sc_tensor_dim dim[5] = {{"batch", 1, true}, {"c", channels, false}};
    for (unsigned i = 0; i < n; i++)
        dim[2 + i] = (sc_tensor_dim){names[3 - n + i], side, false};
    return build_input(b, "image", 2 + n, dim, 0);
}

net_value build_labels(net_builder *b, const char *name, uint64_t per_sample)
{
    const sc_tensor_dim dim[] = {{"batch", 1, true},
                                 {"lookups", per_sample, false}};
    return build_input(b, name, per_sample > 1 ? 2 : 1, dim, 8);
}

/* ---- operators */

sc_net_op *build_open(net_builder *b, const char *name, sc_net_type type,
                      unsigned n_in, const net_value *in)
{
    if (failed(b)) return NULL;
    for (unsigned i = 0; i < n_in; i++) {
        if (in[i] < b->g.n_tensors) continue;
        (void)build_wrong(b, name, "reads a value that does not exist");
        return NULL;
    }
    sc_net_op *op =
        sc_grow(b->a, b->g.op, b->g.n_ops, &b->cap_ops, 64, sizeof *op);
    if (op) b->g.op = op;
    if (op) op += b->g.n_ops;
    sc_operand *port = SC_NEW_N(b->a, sc_operand, n_in + WEIGHTS);
    const char *path = b->scope ? sc_sprintf(b->a, "%s.%s", b->scope, name)
                                : sc_strdup(b->a, name);
    if (!op || !port || !path) {
        b->no_memory = true;
        return NULL;
    }
    *op = (sc_net_op){.path = path,
                      .type = (uint8_t)type,
                      .n_in = (uint8_t)n_in,
                      .in = port,
                      .weight = port + n_in};
    for (unsigned i = 0; i < n_in + WEIGHTS; i++)
        memset(port[i].at, SC_NO_ITER, sizeof port[i].at);
    for (unsigned i = 0; i < n_in; i++) port[i].tensor = in[i];
    memset(op->out.at, SC_NO_ITER, sizeof op->out.at);
    b->g.n_ops++;
    return op;
}

uint8_t build_iter(sc_net_op *op, const char *name, sc_iter_kind kind,
                   uint64_t extent)
{
    op->iter[op->n_iter] = (sc_iter_dim){.name = name,
                                         .kind = (uint8_t)kind,
                                         .batch = kind == SC_I_BATCH,
                                         .extent = extent};
    return op->n_iter++;
}

void build_iters_of(sc_net_op *op, const sc_tensor *t)
{
    for (unsigned i = 0; i < t->n_dim; i++) {
        bool batch = t->dim[i].batch;
        (void)build_iter(op, t->dim[i].name, batch ? SC_I_BATCH : SC_I_FREE,
                         t->dim[i].extent);
    }
}

void build_port(sc_operand *p, const uint8_t *at, unsigned n)
{
    memcpy(p->at, at, n);
}

void build_weight_of(sc_net_op *op, net_value weight, unsigned n,
                     const uint8_t *at)
{
    sc_operand *p = &op->weight[op->n_weight++];
    p->tensor = weight;
    build_port(p, at, n);
}

bool model_matches(const char *patterns, const char *path, uint64_t *hit)
{
    bool any = false;
    uint32_t i = 0;
    for (const char *p = patterns; p && *p; i++) {
        size_t n = strcspn(p, ",");
        if (sc_path_match(p, n, path)) {
            any = true;
            if (hit && i < 64) *hit |= UINT64_C(1) << i;
        }
        p += n + (p[n] == ',');
    }
    return any;
}

bool build_named(net_builder *b, const char *patterns, const char *name)
{
    char path[2 * SCOPE_MAX];
    const char *scope = b->alias ? b->alias : b->scope;
    if (!patterns) return false;
    snprintf(path, sizeof path, "%s.%s", scope ? scope : "", name);
    return model_matches(patterns, scope ? path : name, NULL);
}

/* Within the scope. */
static const char *name_of(const net_builder *b, const sc_net_op *op)
{
    return op->path + (b->scope ? strlen(b->scope) + 1 : 0);
}

net_value build_weight(net_builder *b, sc_net_op *op, const char *name,
                       unsigned n, const sc_tensor_dim *dim, const uint8_t *at)
{
    sc_tensor t = {.name = name,
                   .kind = SC_TENSOR_WEIGHT,
                   .learns =
                       !b->frozen && !build_named(b, b->freeze, name_of(b, op)),
                   .op = (uint32_t)(op - b->g.op)};
    net_value w = add_tensor(b, &t, n, dim);
    if (w != SC_NONE) build_weight_of(op, w, n, at);
    return w;
}

net_value build_close(net_builder *b, sc_net_op *op, unsigned n,
                      const sc_tensor_dim *dim, const uint8_t *at)
{
    sc_tensor t = {.name = op->path,
                   .kind = SC_TENSOR_VALUE,
                   .op = (uint32_t)(op - b->g.op)};
    for (unsigned i = 0; i < op->n_in; i++)
        t.learns |= b->g.tensor[op->in[i].tensor].learns;
    for (unsigned i = 0; i < op->n_weight; i++)
        t.learns |= b->g.tensor[op->weight[i].tensor].learns;
    net_value v = add_tensor(b, &t, n, dim);
    op->out.tensor = v;
    build_port(&op->out, at, n);
    return v;
}

sc_status build_finish(net_builder *b, const sc_net **out, sc_err *err)
{
    if (b->no_memory) return sc_error_nomem(err);
    if (b->wrong) {
        return sc_error(err, SC_EBUG, SC_C_BUG, sc_pos_none(), NULL, "%s: %s",
                        b->wrong, b->why);
    }
    if (!b->g.n_instances) build_segments(b);
    sc_net *g = b->no_memory ? NULL : SC_NEW(b->a, sc_net);
    if (!g) return sc_error_nomem(err);
    *g = b->g;
    for (uint32_t i = 0; i < g->n_tensors; i++) {
        const sc_tensor *t = &g->tensor[i];
        if (t->kind != SC_TENSOR_WEIGHT) continue;
        const sc_net_op *op = &g->op[t->op];
        double n = sc_tensor_elements(t, 1.0);
        g->params += n;
        g->active += op->type == SC_NET_EXPERT ? n / op->experts * op->topk : n;
        if (t->learns) g->learned += n;
    }
    SC_TRY(model_net_check(g, b->copied, err));
    *out = g;
    return SC_OK;
}
