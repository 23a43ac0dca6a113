/* SPDX-License-Identifier: Apache-2.0 */
/*
 * build.c - freezes a builder: topological ids, CSR successors.
 */
#include "graph/builder.h"

#include <stdio.h>
#include <string.h>

#define CYCLE_SHOWN 4 /* ops of a cycle that an error names */

/* ---- order --------------------------------------------------------------- */

typedef struct last_ops {
    sc_op *of; /* [n_classes * SC_N_STREAMS] */
    graph_deps *out;
    sc_arena *a;
} last_ops;

static bool join_stream(last_ops *l, uint32_t cls, uint8_t stream, sc_op i)
{
    sc_op *last = &l->of[(size_t)cls * SC_N_STREAMS + stream];
    if (*last != SC_NONE && !graph_deps_add(l->out, l->a, *last, i))
        return false;
    *last = i;
    return true;
}

/* Adds the order within streams as dependencies; marks belong to no stream. */
static bool stream_deps(const sc_graph_builder *b, sc_arena *a, graph_deps *out)
{
    size_t slots = (size_t)b->g.n_classes * SC_N_STREAMS;
    last_ops last = {SC_NEW_N(a, sc_op, slots), out, a};
    const graph_spread *s = b->spread, *end = s ? s + b->n_spread : s;
    if (!last.of) return false;
    memset(last.of, 0xff, slots * sizeof *last.of);
    sc_op i = 0;
    for (const graph_op_chunk *c = b->op_first; c; c = c->next) {
        for (uint32_t k = 0; k < c->n; k++, i++) {
            bool wide = s < end && s->op == i, ok = true;
            const uint32_t *cls = wide ? s->cls : &c->cols.cls[k];
            uint32_t n = wide ? s->n : 1;
            if (wide) s++;
            if (c->cols.kind[k] == SC_OP_MARK) continue;
            for (uint32_t d = 0; d < n && ok; d++)
                ok = join_stream(&last, cls[d], c->cols.stream[k], i);
            if (!ok) return false;
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

static sc_status cycle_error(const sc_graph_builder *b,
                             const graph_cycle *cycle, sc_err *err)
{
    char names[CYCLE_SHOWN * 48 + 32];
    uint32_t shown = cycle->n < CYCLE_SHOWN ? cycle->n : CYCLE_SHOWN;
    size_t at = 0;
    for (uint32_t k = 0; k < shown; k++)
        at += (size_t)snprintf(names + at, sizeof names - at, "%s\"%.40s\"",
                               k ? ", " : "", op_name(b, cycle->op[k]));
    if (shown < cycle->n)
        snprintf(names + at, sizeof names - at, " and %u more",
                 cycle->n - shown);
    return sc_error(err, SC_EINPUT, SC_C_CYCLE, sc_pos_none(),
                    "the order of ops on one stream counts as a dependency",
                    "dependency cycle: each of %s waits for the one before",
                    names);
}

static sc_status renumber(const sc_graph_builder *b, sc_arena *a, sc_op **id,
                          sc_err *err)
{
    graph_deps streams = {0};
    graph_cycle cycle = {0};
    if (!stream_deps(b, a, &streams)) return sc_error_nomem(err);
    const graph_deps *deps[] = {&b->deps, &streams};
    SC_TRY(graph_order(deps, 2, b->g.n_ops, a, id, &cycle, err));
    return cycle.n ? cycle_error(b, &cycle, err) : SC_OK;
}

/* ---- classes, traffic ----------------------------------------------------- */

static sc_status freeze_classes(const sc_graph_builder *b, sc_arena *a,
                                sc_graph *g, sc_err *err)
{
    sc_traffic *t = SC_NEW_N(a, sc_traffic, g->n_traffic);
    g->classes = SC_NEW_N(a, sc_class, g->n_classes);
    if (!t || !g->classes) return sc_error_nomem(err);
    if (g->n_traffic) memcpy(t, b->traffics, g->n_traffic * sizeof *t);
    if (g->n_classes)
        memcpy(g->classes, b->g.classes, g->n_classes * sizeof *g->classes);
    g->traffics = t;
    return SC_OK;
}

static sc_status check_unique(const sc_graph *g, sc_arena *a, sc_err *err)
{
    sc_map index = {0};
    const char **names = SC_NEW_N(a, const char *, g->n_classes);
    if (!names) return sc_error_nomem(err);
    for (uint32_t i = 0; i < g->n_classes; i++) {
        const char *name = g->classes[i].name;
        if (!name || !*name)
            return sc_error(err, SC_EINPUT, SC_C_RANGE, sc_pos_none(), NULL,
                            "class %u has no name", i);
        if (sc_map_name(&index, names, name) != SC_MAP_END)
            return sc_error(err, SC_EINPUT, SC_C_DUPLICATE, sc_pos_none(), NULL,
                            "two classes are named \"%.80s\"", name);
        names[i] = name;
        if (!sc_map_add_name(&index, a, name, i)) return sc_error_nomem(err);
    }
    return SC_OK;
}

/* ---- ops ----------------------------------------------------------------- */

/* Checks that no class occurs twice; `seen` has room for one op of each class. */
static sc_status check_spread(const sc_graph_builder *b, sc_arena *a,
                              sc_err *err)
{
    sc_op *seen = SC_NEW_N(a, sc_op, b->g.n_classes);
    if (!seen) return sc_error_nomem(err);
    for (uint32_t k = 0; k < b->n_spread; k++) {
        const graph_spread *s = &b->spread[k];
        for (uint32_t d = 0; d < s->n; d++) {
            if (seen[s->cls[d]] == k + 1)
                return sc_error(err, SC_EINPUT, SC_C_DUPLICATE, sc_pos_none(),
                                NULL, "op %u \"%.80s\" is on \"%.80s\" twice",
                                s->op, op_name(b, s->op),
                                b->g.classes[s->cls[d]].name);
            seen[s->cls[d]] = k + 1;
        }
    }
    return SC_OK;
}

/* Fills the lists of classes if some ops are not on exactly one class. */
static void copy_places(const sc_graph_builder *b, const sc_op *id,
                        const uint32_t *first, sc_graph *g)
{
    uint32_t *head = g->cls_head;
    for (sc_op i = 0; i < g->n_ops; i++) head[i + 1] = 1;
    for (uint32_t k = 0; k < b->n_spread; k++) {
        sc_op i = b->spread[k].op;
        head[(id ? id[i] : i) + 1] = b->spread[k].n;
    }
    for (sc_op i = 0; i < g->n_ops; i++) {
        head[i + 1] += head[i];
        if (head[i + 1] > head[i]) g->cls[head[i]] = first[i];
    }
    for (uint32_t k = 0; k < b->n_spread; k++) {
        const graph_spread *s = &b->spread[k];
        uint32_t at = head[id ? id[s->op] : s->op];
        if (s->n) memcpy(g->cls + at, s->cls, s->n * sizeof *s->cls);
    }
}

static sc_status spread_places(const sc_graph_builder *b, sc_arena *a,
                               const sc_op *id, sc_graph *g, sc_err *err)
{
    const uint32_t *first = g->cls;
    g->cls_head = SC_NEW_N(a, uint32_t, (size_t)g->n_ops + 1);
    g->cls = SC_NEW_N(a, uint32_t, b->n_places);
    if (!g->cls_head || !g->cls) return sc_error_nomem(err);
    copy_places(b, id, first, g);
    return SC_OK;
}

static sc_status copy_lifetimes(const sc_graph_builder *b, sc_arena *a,
                                const sc_op *id, sc_graph *g, sc_err *err)
{
    for (uint32_t i = 0; i < g->n_lifetimes; i++) {
        const sc_lifetime *l = &b->g.lifetime[i];
        const char *fault = graph_lifetime_fault(g, l);
        if (fault)
            return sc_error(err, SC_EINPUT, SC_C_RANGE, sc_pos_none(), NULL,
                            "tensor %u \"%.80s\" %s", i, l->name ? l->name : "",
                            fault);
    }
    if (!id || g->n_lifetimes == 0) return SC_OK;
    sc_lifetime *all = SC_NEW_N(a, sc_lifetime, g->n_lifetimes);
    if (!all) return sc_error_nomem(err);
    for (uint32_t i = 0; i < g->n_lifetimes; i++) {
        sc_op *last = SC_NEW_N(a, sc_op, b->g.lifetime[i].n_last);
        if (!last) return sc_error_nomem(err);
        all[i] = b->g.lifetime[i];
        if (all[i].first != SC_NONE) all[i].first = id[all[i].first];
        for (uint32_t k = 0; k < all[i].n_last; k++)
            last[k] = id[all[i].last[k]];
        all[i].last = last;
    }
    g->lifetime = all;
    return SC_OK;
}

/* Numbers the parts if an op has several. */
static sc_status number_parts(const sc_graph_builder *b, sc_arena *a,
                              const sc_op *id, sc_graph *g, sc_err *err)
{
    if (b->n_several == 0) return SC_OK;
    if (id || b->n_parts >= SC_NONE)
        return sc_error(err, SC_EBUG, SC_C_BUG, sc_pos_none(), NULL,
                        "%llu parts of ops that are not in order",
                        (unsigned long long)b->n_parts);
    g->parts = SC_NEW_N(a, const sc_parts *, g->n_ops);
    g->part_head = SC_NEW_N(a, uint32_t, (size_t)g->n_ops + 1);
    if (!g->parts || !g->part_head) return sc_error_nomem(err);
    for (uint32_t k = 0; k < b->n_several; k++)
        g->parts[b->several[k].op] = b->several[k].parts;
    for (sc_op i = 0; i < g->n_ops; i++)
        g->part_head[i + 1] =
            g->part_head[i] + (g->parts[i] ? g->parts[i]->n : 1);
    return SC_OK;
}

/* Puts the columns in the order of new ids; keeps the builder's own columns if
 * the order stays. */
static sc_status copy_ops(const sc_graph_builder *b, sc_arena *a,
                          const sc_op *id, sc_graph *g, sc_err *err)
{
#define TAKE(column, type) g->column = b->op_first->cols.column;
#define COPY(column, type) g->column[to] = c->cols.column[k];
    if (b->arena == a && !id && b->op_first && !b->op_first->next) {
        GRAPH_COLUMNS(TAKE)
        return SC_OK;
    }
    if (!graph_columns_alloc(a, g->n_ops, g)) return sc_error_nomem(err);
    sc_op i = 0;
    for (const graph_op_chunk *c = b->op_first; c; c = c->next) {
        for (uint32_t k = 0; k < c->n; k++, i++) {
            sc_op to = id ? id[i] : i;
            GRAPH_COLUMNS(COPY)
        }
    }
#undef TAKE
#undef COPY
    return SC_OK;
}

static sc_status check_builder(const sc_graph_builder *b, sc_err *err)
{
    if (b->fault.status)
        return sc_error(err, b->fault.status, b->fault.code, sc_pos_none(),
                        NULL, "%s", b->fault.msg);
    if (b->deps.n && b->deps.max_ref >= b->g.n_ops)
        return sc_error(err, SC_EINPUT, SC_C_REFERENCE, sc_pos_none(), NULL,
                        "a dependency names op %u of %u", b->deps.max_ref,
                        b->g.n_ops);
    return SC_OK;
}

/* New ids live as long as the temporary arena, so callers get a copy. */
static sc_status copy_ids(const sc_op *id, uint32_t n, sc_arena *a, sc_op **out,
                          sc_err *err)
{
    if (out) *out = NULL;
    if (!out || !id) return SC_OK;
    *out = SC_RAW_N(a, sc_op, n);
    if (!*out) return sc_error_nomem(err);
    memcpy(*out, id, n * sizeof *id);
    return SC_OK;
}

sc_status sc_graph_build_ids(sc_graph_builder *b, sc_arena *a, sc_graph *out,
                             sc_op **ids, sc_err *err)
{
    SC_TRY(check_builder(b, err));
    sc_graph g = b->g;
    SC_TRY(freeze_classes(b, a, &g, err));
    if (!(g.succ_head = SC_NEW_N(a, uint32_t, (size_t)g.n_ops + 2)) ||
        !(g.succ = SC_NEW_N(a, sc_op, b->deps.n)) ||
        !(g.n_preds = SC_NEW_N(a, uint32_t, g.n_ops)))
        return sc_error_nomem(err);
    sc_arena tmp;
    sc_op *id = NULL;
    sc_arena_init(&tmp, a->limit);
    sc_status s = check_unique(&g, &tmp, err);
    if (!s) s = check_spread(b, &tmp, err);
    if (!s && b->deps.backwards) s = renumber(b, &tmp, &id, err);
    if (!s)
        g.n_deps =
            graph_csr(&b->deps, id, g.n_ops, g.succ_head, g.succ, g.n_preds);
    if (!s) s = copy_ops(b, a, id, &g, err);
    if (!s) s = number_parts(b, a, id, &g, err);
    if (!s && b->n_spread) s = spread_places(b, a, id, &g, err);
    if (!s) s = copy_lifetimes(b, a, id, &g, err);
    if (!s) s = copy_ids(id, g.n_ops, a, ids, err);
    sc_arena_free(&tmp);
    if (!s) *out = g;
    return s;
}

sc_status sc_graph_build(sc_graph_builder *b, sc_arena *a, sc_graph *out,
                         sc_err *err)
{
    return sc_graph_build_ids(b, a, out, NULL, err);
}
