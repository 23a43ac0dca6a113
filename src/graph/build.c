/* SPDX-License-Identifier: Apache-2.0 */
/*
 * build.c - freezes a builder: topological ids, CSR successors.
 */
#include "graph/builder.h"
#include "graph/map.h"

#include <string.h>

/* In-stream order as dependencies; marks belong to no stream. */
static bool stream_deps(const sc_graph_builder *b, sc_arena *a, graph_deps *out)
{
    size_t slots = (size_t)b->n_classes * SC_N_STREAMS;
    sc_op *last = SC_NEW_N(a, sc_op, slots);
    if (!last) return false;
    memset(last, 0xff, slots * sizeof *last);
    sc_op i = 0;
    for (const graph_op_chunk *c = b->op_first; c; c = c->next) {
        for (uint32_t k = 0; k < c->n; k++, i++) {
            if (c->cols.kind[k] == SC_OP_MARK) continue;
            sc_op *l = &last[(size_t)c->cols.cls[k] * SC_N_STREAMS +
                             c->cols.stream[k]];
            if (*l != SC_NONE && !graph_deps_add(out, a, *l, i)) return false;
            *l = i;
        }
    }
    return true;
}

static const char *op_name(const sc_graph_builder *b, sc_op i)
{
    const graph_op_chunk *c = b->op_first;
    for (; i >= c->n; c = c->next) i -= c->n;
    return c->cols.name[i];
}

static sc_status renumber(const sc_graph_builder *b, sc_arena *a, sc_op **id,
                          sc_err *err)
{
    graph_deps streams = {0};
    graph_cycle cycle = {0};
    if (!stream_deps(b, a, &streams)) return sc_error_nomem(err);
    const graph_deps *deps[] = {&b->deps, &streams};
    SC_TRY(graph_order(deps, 2, b->n_ops, a, id, &cycle, err));
    if (cycle.n == 0) return SC_OK;
    sc_pos pos = sc_pos_file(b->file);
    if (b->line) pos.line = b->line[cycle.op[0]];
    return sc_error(err, SC_EINPUT, SC_C_CYCLE, pos,
                    "the order of ops on one stream counts as a dependency",
                    "dependency cycle through op \"%.80s\"",
                    op_name(b, cycle.op[0]));
}

/* ---- freezing ------------------------------------------------------------ */

static void copy_op(sc_graph *to, sc_op i, const sc_graph *from, uint32_t k)
{
    to->work[i] = from->work[k];
    to->cls[i] = from->cls[k];
    to->kind[i] = from->kind[k];
    to->stream[i] = from->stream[k];
    to->cat[i] = from->cat[k];
    to->bytes[i] = from->bytes[k];
    to->flops[i] = from->flops[k];
    to->group[i] = from->group[k];
    to->peer[i] = from->peer[k];
    to->name[i] = from->name[k];
}

static sc_status range_error(sc_err *err, const char *what, const char *name,
                             const char *why)
{
    return sc_error(err, SC_EINPUT, SC_C_RANGE, sc_pos_none(), NULL,
                    "%s \"%.80s\" %s", what, name, why);
}

static sc_status check_names(sc_arena *a, const char *what, const void *first,
                             size_t stride, uint32_t n, sc_err *err)
{
    graph_map m;
    if (!graph_map_init(&m, a, n)) return sc_error_nomem(err);
    for (uint32_t i = 0; i < n; i++) {
        const char *name;
        memcpy(&name, (const char *)first + i * stride, sizeof name);
        if (!name) return range_error(err, what, "", "has no name");
        if (graph_map_add(&m, name, strlen(name), i))
            return sc_error(err, SC_EINPUT, SC_C_DUPLICATE, sc_pos_none(), NULL,
                            "two %ss are named \"%.80s\"", what, name);
    }
    return SC_OK;
}

static sc_status freeze_mesh(const sc_graph_builder *b, sc_arena *a,
                             sc_graph *g, sc_err *err)
{
    g->n_axes = b->n_axes;
    memcpy(g->axis_name, b->axis_name, sizeof g->axis_name);
    memcpy(g->axis_size, b->axis_size, sizeof g->axis_size);
    g->n_classes = b->n_classes;
    g->n_groups = b->n_groups;
    g->classes = SC_NEW_N(a, sc_class, b->n_classes);
    g->groups = SC_NEW_N(a, sc_group, b->n_groups);
    if (!g->classes || !g->groups) return sc_error_nomem(err);
    if (graph_ranks(g->axis_size, g->n_axes, 0) == 0)
        return sc_error(err, SC_EINPUT, SC_C_TOO_BIG, sc_pos_none(), NULL,
                        "the axes span more than 2^32 - 2 ranks");
    uint32_t axes = (1u << g->n_axes) - 1;
    for (uint32_t c = 0; c < g->n_classes; c++) {
        sc_class *k = &g->classes[c];
        *k = b->classes[c];
        if (k->fixed & ~axes)
            return range_error(err, "class", k->name, "fixes an unknown axis");
        for (uint32_t ax = 0; ax < g->n_axes; ax++)
            if ((k->fixed >> ax & 1) && k->coord[ax] >= g->axis_size[ax])
                return range_error(err, "class", k->name,
                                   "has a coordinate beyond its axis");
        k->multiplicity = graph_ranks(g->axis_size, g->n_axes, k->fixed);
    }
    for (uint32_t i = 0; i < g->n_groups; i++) {
        g->groups[i] = b->groups[i];
        if (g->groups[i].span & ~axes)
            return range_error(err, "group", g->groups[i].name,
                               "spans an unknown axis");
        g->groups[i].size =
            graph_ranks(g->axis_size, g->n_axes, ~g->groups[i].span);
    }
    return SC_OK;
}

static sc_status check_unique(const sc_graph *g, sc_arena *a, sc_err *err)
{
    for (uint32_t ax = 0; ax < g->n_axes; ax++)
        for (uint32_t bx = 0; bx < ax; bx++)
            if (strcmp(g->axis_name[ax], g->axis_name[bx]) == 0)
                return sc_error(err, SC_EINPUT, SC_C_DUPLICATE, sc_pos_none(),
                                NULL, "two axes are named \"%.80s\"",
                                g->axis_name[ax]);
    SC_TRY(check_names(a, "class", &g->classes->name, sizeof *g->classes,
                       g->n_classes, err));
    return check_names(a, "group", &g->groups->name, sizeof *g->groups,
                       g->n_groups, err);
}

sc_status sc_graph_build(sc_graph_builder *b, sc_arena *a, sc_graph *out,
                         sc_err *err)
{
    if (b->fault.status)
        return sc_error(err, b->fault.status, b->fault.code,
                        sc_pos_file(b->file), NULL, "%s", b->fault.msg);
    if (b->deps.n && b->deps.max_ref >= b->n_ops)
        return sc_error(err, SC_EINPUT, SC_C_REFERENCE, sc_pos_file(b->file),
                        NULL, "a dependency names op %u of %u", b->deps.max_ref,
                        b->n_ops);
    sc_graph g = {0};
    SC_TRY(freeze_mesh(b, a, &g, err));
    g.n_ops = b->n_ops;
    bool reuse = b->arena == a && !b->deps.backwards && b->op_first &&
                 !b->op_first->next;
    if (reuse) {
        const sc_graph *cols = &b->op_first->cols;
        g.work = cols->work, g.cls = cols->cls, g.kind = cols->kind;
        g.stream = cols->stream, g.cat = cols->cat, g.bytes = cols->bytes;
        g.flops = cols->flops, g.group = cols->group, g.peer = cols->peer;
        g.name = cols->name;
    } else if (!graph_columns_alloc(a, g.n_ops, &g)) {
        return sc_error_nomem(err);
    }
    if (!(g.succ_head = SC_NEW_N(a, uint32_t, (size_t)g.n_ops + 2)) ||
        !(g.succ = SC_NEW_N(a, sc_op, b->deps.n)) ||
        !(g.n_preds = SC_NEW_N(a, uint32_t, g.n_ops)))
        return sc_error_nomem(err);

    sc_arena_mark mark = sc_arena_save(a);
    sc_op *id = NULL;
    SC_TRY(check_unique(&g, a, err));
    if (b->deps.backwards) SC_TRY(renumber(b, a, &id, err));
    g.n_deps = graph_csr(&b->deps, id, g.n_ops, g.succ_head, g.succ, g.n_preds);
    sc_op i = 0;
    for (const graph_op_chunk *c = b->op_first; c && !reuse; c = c->next)
        for (uint32_t k = 0; k < c->n; k++, i++)
            copy_op(&g, id ? id[i] : i, &c->cols, k);
    sc_arena_restore(a, mark);
    *out = g;
    return SC_OK;
}
