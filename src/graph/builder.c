/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/builder.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *const sc_op_kind_names[] = {"compute", "coll", "p2p", "mem",
                                        "host",    "mark", NULL};

const char *const sc_stream_names[] = {"compute", "comm", "grad", "p2p",
                                       "copy",    "host", NULL};

const char *const sc_cat_names[] = {
    "compute",        "exposed_tp", "exposed_pp", "exposed_dp",
    "exposed_cp",     "exposed_ep", "bubble",     "host",
    "memory_offload", "optimizer",  "other",      NULL};

uint8_t graph_default_stream(unsigned kind)
{
    static const uint8_t stream[SC_N_OP_KINDS] = {
        SC_S_COMPUTE, SC_S_COMM, SC_S_P2P, SC_S_COPY, SC_S_HOST, SC_S_HOST};
    return stream[kind];
}

uint8_t graph_default_cat(unsigned kind, unsigned stream)
{
    static const uint8_t cat[SC_N_OP_KINDS] = {SC_CAT_COMPUTE, SC_CAT_TP,
                                               SC_CAT_PP,      SC_CAT_OFFLOAD,
                                               SC_CAT_HOST,    SC_CAT_OTHER};
    if (kind == SC_OP_COLL && stream == SC_S_GRAD) return SC_CAT_DP;
    return cat[kind];
}

uint32_t graph_ranks(const uint32_t *axis_size, uint32_t n_axes, uint32_t fixed)
{
    uint64_t n = 1;
    for (uint32_t ax = 0; ax < n_axes; ax++) {
        if (!(fixed >> ax & 1)) n *= axis_size[ax];
        if (n >= SC_NONE) return 0;
    }
    return (uint32_t)n;
}

void graph_fail(graph_fault *f, sc_code code, const char *fmt, ...)
{
    if (f->status) return;
    f->status = code == SC_C_MEMORY ? SC_ENOMEM : SC_EINPUT;
    f->code = code;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(f->msg, sizeof f->msg, fmt, ap);
    va_end(ap);
}

void graph_fail_nomem(graph_fault *f)
{
    graph_fail(f, SC_C_MEMORY, "out of memory building a graph");
}

const char *graph_op_fault(unsigned kind, unsigned stream, unsigned cat,
                           sc_time work, double flops)
{
    if (kind >= SC_N_OP_KINDS) return "has no legal kind";
    if (stream >= SC_N_STREAMS) return "has no legal stream";
    if (cat >= SC_N_CATS || cat == SC_CAT_BUBBLE)
        return "has no legal category";
    if (work < 0) return "has negative work";
    if (work && kind == SC_OP_MARK) return "is a mark with work";
    if (!(flops >= 0) || flops - flops != 0)
        return "has negative or infinite flops";
    return NULL;
}

sc_graph_builder *sc_graph_builder_new(sc_arena *a)
{
    sc_graph_builder *b = SC_NEW(a, sc_graph_builder);
    if (!b) return NULL;
    b->arena = a;
    b->next_ops = graph_next_chunk(0);
    return b;
}

void sc_graph_reserve(sc_graph_builder *b, uint32_t n_ops, uint32_t n_deps)
{
    if (!b->op_first && n_ops) b->next_ops = n_ops;
    if (n_deps) graph_deps_reserve(&b->deps, n_deps);
}

uint32_t sc_graph_add_axis(sc_graph_builder *b, const char *name, uint32_t size)
{
    if (b->n_axes == SC_AXES) {
        graph_fail(&b->fault, SC_C_TOO_BIG, "more than %d axes", SC_AXES);
        return 0;
    }
    if (size == 0)
        graph_fail(&b->fault, SC_C_RANGE, "axis \"%.80s\" has size 0", name);
    b->axis_name[b->n_axes] = name;
    b->axis_size[b->n_axes] = size;
    return b->n_axes++;
}

/* Room for one more element; NULL (and a kept error) when out of memory. */
static void *grow(sc_graph_builder *b, void *old, uint32_t n, uint32_t *cap,
                  size_t size)
{
    if (n < *cap) return old;
    if (n >= SC_NONE / 2) {
        graph_fail(&b->fault, SC_C_TOO_BIG, "more than %u classes or groups",
                   SC_NONE / 2);
        return NULL;
    }
    uint32_t want = n ? 2 * n : 8;
    void *p = sc_alloc(b->arena, want, size);
    if (!p) {
        graph_fail_nomem(&b->fault);
        return NULL;
    }
    if (n) memcpy(p, old, n * size);
    *cap = want;
    return p;
}

uint32_t sc_graph_add_class(sc_graph_builder *b, const char *name,
                            uint32_t fixed, const uint32_t *coord)
{
    sc_class *all =
        grow(b, b->classes, b->n_classes, &b->cap_classes, sizeof *all);
    if (!all) return 0;
    b->classes = all;
    sc_class *c = &all[b->n_classes];
    c->name = name;
    c->fixed = fixed;
    for (uint32_t ax = 0; ax < SC_AXES; ax++)
        if (fixed >> ax & 1) c->coord[ax] = coord[ax];
    return b->n_classes++;
}

uint32_t sc_graph_add_group(sc_graph_builder *b, const char *name,
                            uint32_t span)
{
    sc_group *all =
        grow(b, b->groups, b->n_groups, &b->cap_groups, sizeof *all);
    if (!all) return 0;
    b->groups = all;
    all[b->n_groups].name = name;
    all[b->n_groups].span = span;
    return b->n_groups++;
}

bool graph_columns_alloc(sc_arena *a, uint32_t n, sc_graph *g)
{
    return (g->work = SC_NEW_N(a, sc_time, n)) &&
           (g->cls = SC_NEW_N(a, uint32_t, n)) &&
           (g->kind = SC_NEW_N(a, uint8_t, n)) &&
           (g->stream = SC_NEW_N(a, uint8_t, n)) &&
           (g->cat = SC_NEW_N(a, uint8_t, n)) &&
           (g->bytes = SC_NEW_N(a, uint64_t, n)) &&
           (g->flops = SC_NEW_N(a, double, n)) &&
           (g->group = SC_NEW_N(a, uint32_t, n)) &&
           (g->peer = SC_NEW_N(a, uint32_t, n)) &&
           (g->name = SC_NEW_N(a, const char *, n));
}

static graph_op_chunk *op_room(sc_graph_builder *b)
{
    if (b->op_last && b->op_last->n < b->op_last->cap) return b->op_last;
    graph_op_chunk *c = SC_NEW(b->arena, graph_op_chunk);
    if (!c || !graph_columns_alloc(b->arena, b->next_ops, &c->cols)) {
        graph_fail_nomem(&b->fault);
        return NULL;
    }
    c->cap = b->next_ops;
    b->next_ops = graph_next_chunk(c->cap);
    if (b->op_last) b->op_last->next = c;
    if (!b->op_first) b->op_first = c;
    b->op_last = c;
    return c;
}

/* A reason to refuse the op, or NULL. */
static const char *op_fault(const sc_graph_builder *b, const sc_op_desc *op)
{
    if (b->n_ops >= SC_NONE - 1) return "is one too many (2^32 - 2 fit)";
    if (op->cls >= b->n_classes) return "is of no known class";
    if (op->group != SC_NONE && op->group >= b->n_groups)
        return "is of no known group";
    if (op->peer != SC_NONE && op->peer >= b->n_classes)
        return "has no known peer";
    return graph_op_fault(op->kind, op->stream, op->cat, op->work, op->flops);
}

sc_op sc_graph_add_op(sc_graph_builder *b, const sc_op_desc *op)
{
    const char *fault = op_fault(b, op);
    if (fault) {
        graph_fail(&b->fault, SC_C_RANGE, "op %u \"%.80s\" %s", b->n_ops,
                   op->name ? op->name : "", fault);
        return 0;
    }
    graph_op_chunk *c = op_room(b);
    if (!c) return 0;
    sc_graph *g = &c->cols;
    uint32_t i = c->n++;
    g->work[i] = op->work;
    g->cls[i] = op->cls;
    g->kind[i] = op->kind;
    g->stream[i] = op->stream;
    g->cat[i] = op->cat;
    g->bytes[i] = op->bytes;
    g->flops[i] = op->flops;
    g->group[i] = op->group;
    g->peer[i] = op->peer;
    g->name[i] = op->name ? op->name : "";
    return b->n_ops++;
}

void sc_graph_add_dep(sc_graph_builder *b, sc_op before, sc_op after)
{
    if (b->deps.n >= SC_NONE - 1)
        graph_fail(&b->fault, SC_C_TOO_BIG, "more than 2^32 - 2 dependencies");
    else if (!graph_deps_add(&b->deps, b->arena, before, after))
        graph_fail_nomem(&b->fault);
}
