/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unfold.c - from classes of ranks to ranks.
 *
 * An instance of a class, or of an op, is one setting of its free axes, numbered with the
 * last axis fastest.  A dependency joins the instances that agree on every
 * axis free in both classes.  Members of a communicator start together: each
 * waits for a mark that waits for what any member waits for.
 */
#include "graph/builder.h"

#include <stdio.h>
#include <string.h>

typedef struct unfolder {
    const sc_graph *g;
    sc_graph_builder *b;
    sc_arena *a;
    uint32_t *cls_base; /* [n_classes] first new class */
    uint32_t *cls;      /* [n_ops] the first class: its axes are the op's */
    sc_op *base;        /* [n_ops] first new op */
    uint32_t *marks;    /* [n_ops] joins, at base - marks; 0: none */
    uint32_t *several;  /* [n_classes] room for the classes of one op */
    uint64_t n_ops;
} unfolder;

static uint32_t free_axes(const unfolder *u, uint32_t cls)
{
    return ((1u << u->g->n_axes) - 1) & ~u->g->classes[cls].fixed;
}

static uint32_t instances(const unfolder *u, uint32_t cls)
{
    return (uint32_t)u->g->classes[cls].multiplicity;
}

/* Number k, counted over `axes`, as coordinates there. */
static void to_coord(const sc_graph *g, uint32_t axes, uint32_t k,
                     uint32_t coord[SC_AXES])
{
    for (uint32_t ax = g->n_axes; ax-- > 0;) {
        if (!(axes >> ax & 1)) continue;
        coord[ax] = k % g->axis_size[ax];
        k /= g->axis_size[ax];
    }
}

static uint32_t from_coord(const sc_graph *g, uint32_t axes,
                           const uint32_t coord[SC_AXES])
{
    uint32_t k = 0;
    for (uint32_t ax = 0; ax < g->n_axes; ax++)
        if (axes >> ax & 1) k = k * g->axis_size[ax] + coord[ax];
    return k;
}

/* Communicators of op i; 0 where no join is needed. */
static uint32_t n_joins(const unfolder *u, sc_op i)
{
    const sc_graph *g = u->g;
    if (g->kind[i] != SC_OP_COLL || g->group[i] == SC_NONE) return 0;
    uint32_t n = instances(u, u->cls[i]);
    uint32_t outside = free_axes(u, u->cls[i]) & ~g->groups[g->group[i]].span;
    uint32_t joins = graph_ranks(g->axis_size, g->n_axes, ~outside);
    return joins < n ? joins : 0;
}

/* The new op that instance k of op i waits with: its join or itself. */
static sc_op waits_at(const unfolder *u, sc_op i, uint32_t k)
{
    if (u->marks[i] == 0) return u->base[i] + k;
    uint32_t axes = free_axes(u, u->cls[i]), coord[SC_AXES] = {0};
    to_coord(u->g, axes, k, coord);
    axes &= ~u->g->groups[u->g->group[i]].span;
    return u->base[i] - u->marks[i] + from_coord(u->g, axes, coord);
}

static sc_status too_many(uint64_t max_ops, sc_err *err)
{
    return sc_error(err, SC_EINPUT, SC_C_TOO_BIG, sc_pos_none(), NULL,
                    "the graph unfolds to more than %llu ops",
                    (unsigned long long)max_ops);
}

/* Numbers the new ops; refuses what is too large before building it. */
static sc_status lay_out(unfolder *u, uint64_t max_ops, sc_err *err)
{
    const sc_graph *g = u->g;
    uint64_t n = 0, deps = 0, limit = max_ops < SC_NONE ? max_ops : SC_NONE - 1;
    for (sc_op i = 0; i < g->n_ops; i++) {
        u->marks[i] = n_joins(u, i);
        u->base[i] = (sc_op)(n + u->marks[i]);
        n += (uint64_t)u->marks[i] + instances(u, u->cls[i]);
        if (n > limit) return too_many(max_ops, err);
    }
    u->n_ops = n;
    for (sc_op i = 0; i < g->n_ops; i++) {
        for (uint32_t k = g->succ_head[i]; k < g->succ_head[i + 1]; k++) {
            uint32_t q = u->cls[g->succ[k]];
            uint32_t extra = free_axes(u, q) & ~free_axes(u, u->cls[i]);
            deps += (uint64_t)instances(u, u->cls[i]) *
                    graph_ranks(g->axis_size, g->n_axes, ~extra);
            if (deps / 16 > limit) return too_many(max_ops, err);
        }
    }
    return SC_OK;
}

static sc_status add_classes(unfolder *u, uint64_t max_ops, sc_err *err)
{
    const sc_graph *g = u->g;
    uint64_t n = 0, all = (1u << g->n_axes) - 1;
    for (uint32_t c = 0; c < g->n_classes; c++) {
        u->cls_base[c] = (uint32_t)n;
        n += g->classes[c].multiplicity;
        if (n > max_ops || n >= SC_NONE / 2) return too_many(max_ops, err);
    }
    for (uint32_t c = 0; c < g->n_classes; c++) {
        const sc_class *of = &g->classes[c];
        if (g->n_axes == 0) sc_graph_add_device(u->b, of->name, of->rank, 1);
        for (uint32_t k = 0; k < instances(u, c) && g->n_axes; k++) {
            uint32_t coord[SC_AXES] = {0};
            char at[SC_AXES * 12] = "";
            size_t len = 0;
            memcpy(coord, of->coord, sizeof coord);
            to_coord(g, free_axes(u, c), k, coord);
            for (uint32_t ax = 0; ax < g->n_axes; ax++)
                if (!(of->fixed >> ax & 1))
                    len += (size_t)snprintf(at + len, sizeof at - len, "%c%u",
                                            len ? '.' : '@', coord[ax]);
            const char *name = sc_sprintf(u->a, "%s%s", of->name, at);
            if (!name) return sc_error_nomem(err);
            sc_graph_add_class(u->b, name, (uint32_t)all, coord);
        }
    }
    return SC_OK;
}

/* The rank of class `to` that the rank at `coord` of another class talks to:
 * the one that agrees where both are free, and where only the other knows. */
static uint32_t peer_of(const unfolder *u, uint32_t to,
                        const uint32_t coord[SC_AXES])
{
    return u->cls_base[to] + from_coord(u->g, free_axes(u, to), coord);
}

static void add_op(unfolder *u, sc_op i)
{
    const sc_graph *g = u->g;
    uint32_t cls = u->cls[i];
    for (uint32_t k = 0; k < u->marks[i]; k++) {
        uint32_t coord[SC_AXES] = {0};
        to_coord(g, free_axes(u, cls) & ~g->groups[g->group[i]].span, k, coord);
        sc_op_desc join = {.name = "join",
                           .kind = SC_OP_MARK,
                           .stream = SC_S_HOST,
                           .cat = SC_CAT_OTHER,
                           .cls = peer_of(u, cls, coord),
                           .group = g->group[i],
                           .peer = SC_NONE,
                           .traffic = SC_NONE};
        sc_graph_add_op(u->b, &join);
    }
    uint32_t from = sc_op_place(g, i), n = sc_op_place(g, i + 1) - from;
    for (uint32_t k = 0; k < instances(u, cls); k++) {
        uint32_t coord[SC_AXES] = {0};
        sc_op_desc d = graph_op_desc(g, i);
        memcpy(coord, g->classes[cls].coord, sizeof coord);
        to_coord(g, free_axes(u, cls), k, coord);
        d.cls = u->cls_base[cls] + k;
        if (d.dev) d.dev = u->several;
        for (uint32_t c = 0; c < n; c++)
            u->several[c] = peer_of(u, g->cls[from + c], coord);
        if (d.peer != SC_NONE) d.peer = peer_of(u, d.peer, coord);
        sc_graph_add_op(u->b, &d);
    }
}

/* Every instance of p before the instances of q that agree with it. */
static void add_deps(unfolder *u, sc_op p, sc_op q)
{
    const sc_graph *g = u->g;
    uint32_t fp = free_axes(u, u->cls[p]), fq = free_axes(u, u->cls[q]);
    uint32_t extra = fq & ~fp;
    uint32_t n = graph_ranks(g->axis_size, g->n_axes, ~extra);
    for (uint32_t k = 0; k < instances(u, u->cls[p]); k++) {
        uint32_t coord[SC_AXES] = {0};
        to_coord(g, fp, k, coord);
        for (uint32_t e = 0; e < n; e++) {
            to_coord(g, extra, e, coord);
            sc_graph_add_dep(u->b, u->base[p] + k,
                             waits_at(u, q, from_coord(g, fq, coord)));
        }
    }
}

static void add_joins(unfolder *u, sc_op i, sc_op before_in_stream)
{
    for (uint32_t k = 0; k < instances(u, u->cls[i]); k++) {
        sc_op join = waits_at(u, i, k);
        sc_graph_add_dep(u->b, join, u->base[i] + k);
        if (before_in_stream != SC_NONE)
            sc_graph_add_dep(u->b, u->base[before_in_stream] + k, join);
    }
}

/* What has no one meaning among several ranks, and the axes of every op. */
static sc_status prepare(unfolder *u, sc_err *err)
{
    const sc_graph *g = u->g;
    const char *fault = NULL;
    for (uint32_t c = 0; c < g->n_classes; c++) {
        if (g->classes[c].multiplicity == 1) continue;
        if (g->n_axes == 0) fault = "a class of several ranks has no axes";
        if (g->n_traffic) fault = "a class of several ranks has traffic";
        if (g->n_lifetimes) fault = "a class of several ranks has tensors";
    }
    if (g->part_head) fault = "an op has parts";
    for (sc_op i = 0; i < g->n_ops; i++) {
        uint32_t from = sc_op_place(g, i), to = sc_op_place(g, i + 1);
        if (from == to) fault = "a mark is on no class";
        u->cls[i] = from < to ? g->cls[from] : 0;
        for (uint32_t p = from; p < to; p++)
            if (free_axes(u, g->cls[p]) != free_axes(u, u->cls[i]))
                fault = "an op is on classes of different axes";
    }
    if (!fault) return SC_OK;
    return sc_error(err, SC_EINPUT, SC_C_UNSUPPORTED, sc_pos_none(), NULL,
                    "the graph can't be unfolded: %s", fault);
}

static sc_status copy_rest(unfolder *u, sc_err *err)
{
    const sc_graph *g = u->g;
    for (uint32_t t = 0; t < g->n_traffic; t++)
        sc_graph_add_traffic(u->b, &g->traffics[t]);
    sc_lifetime *all = SC_NEW_N(u->a, sc_lifetime, g->n_lifetimes);
    if (!all) return sc_error_nomem(err);
    for (uint32_t i = 0; i < g->n_lifetimes; i++) {
        sc_op *last = SC_NEW_N(u->a, sc_op, g->lifetime[i].n_last);
        if (!last) return sc_error_nomem(err);
        all[i] = g->lifetime[i];
        all[i].device = u->cls_base[all[i].device];
        if (all[i].first != SC_NONE) all[i].first = u->base[all[i].first];
        for (uint32_t k = 0; k < all[i].n_last; k++)
            last[k] = u->base[all[i].last[k]];
        all[i].last = last;
    }
    sc_graph_set_lifetimes(u->b, g->n_lifetimes, all);
    return SC_OK;
}

/* The op before `i` in each of its queues; then `i` is the last there. */
static void follow_streams(unfolder *u, sc_op *last, sc_op i)
{
    const sc_graph *g = u->g;
    for (uint32_t p = sc_op_place(g, i); p < sc_op_place(g, i + 1); p++) {
        sc_op *l = &last[(size_t)g->cls[p] * SC_N_STREAMS + g->stream[i]];
        if (u->marks[i]) add_joins(u, i, *l);
        if (g->kind[i] != SC_OP_MARK) *l = i;
    }
}

sc_status sc_graph_unfold(const sc_graph *g, uint64_t max_ops, sc_arena *a,
                          sc_graph *out, sc_err *err)
{
    unfolder u = {.g = g, .b = sc_graph_builder_new(a), .a = a};
    size_t slots = (size_t)g->n_classes * SC_N_STREAMS;
    sc_op *last = SC_NEW_N(a, sc_op, slots);
    if (!u.b || !last || !(u.cls_base = SC_NEW_N(a, uint32_t, g->n_classes)) ||
        !(u.cls = SC_NEW_N(a, uint32_t, g->n_ops)) ||
        !(u.base = SC_NEW_N(a, sc_op, g->n_ops)) ||
        !(u.marks = SC_NEW_N(a, uint32_t, g->n_ops)) ||
        !(u.several = SC_NEW_N(a, uint32_t, g->n_classes)))
        return sc_error_nomem(err);
    memset(last, 0xff, slots * sizeof *last);
    SC_TRY(prepare(&u, err));
    SC_TRY(lay_out(&u, max_ops, err));

    for (uint32_t ax = 0; ax < g->n_axes; ax++)
        sc_graph_add_axis(u.b, g->axis_name[ax], g->axis_size[ax]);
    for (uint32_t k = 0; k < g->n_groups; k++)
        sc_graph_add_group(u.b, g->groups[k].name, g->groups[k].span);
    SC_TRY(add_classes(&u, max_ops, err));
    SC_TRY(copy_rest(&u, err));
    sc_graph_reserve(u.b, (uint32_t)u.n_ops, 0);
    for (sc_op i = 0; i < g->n_ops; i++) {
        add_op(&u, i);
        follow_streams(&u, last, i);
        for (uint32_t k = g->succ_head[i]; k < g->succ_head[i + 1]; k++)
            add_deps(&u, i, g->succ[k]);
    }
    return sc_graph_build(u.b, a, out, err);
}
