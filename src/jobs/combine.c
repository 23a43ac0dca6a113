/* SPDX-License-Identifier: Apache-2.0 */
/*
 * combine.c - one graph of steps of several jobs.  A step starts when all
 * operations of the one before it, and the time that none explains, are over.
 */
#include "jobs/combine.h"

#include "base/map.h"

typedef struct builder {
    sc_graph_builder *b;
    sc_arena *a;
    jobs_line *line;
    uint32_t first_class;
    sc_map moved;           /* parts by the address of the job's own */
    const sc_parts **parts; /* [n_parts] with traffics of the graph */
    uint32_t n_parts, cap;
    uint32_t *dev; /* [n_dev] */
    uint32_t n_dev;
} builder;

/* The traffics of parts are numbers of the job's table. */
static bool move_parts(builder *x, const sc_parts *p, const sc_parts **out)
{
    uint64_t key = (uintptr_t)p;
    uint32_t at = sc_map_get(&x->moved, key);
    *out = p;
    if (!p || p->n_moves == 0 || x->line->first_traffic == 0) return true;
    if (at == SC_MAP_END) {
        sc_parts *own = SC_NEW(x->a, sc_parts);
        uint32_t *traffic = SC_NEW_N(x->a, uint32_t, p->n_moves);
        const sc_parts **all =
            sc_grow(x->a, x->parts, x->n_parts, &x->cap, 64, sizeof *all);
        if (!own || !traffic || !all) return false;
        for (uint32_t k = 0; k < p->n_moves; k++)
            traffic[k] = p->traffic[k] + x->line->first_traffic;
        *own = *p;
        own->traffic = traffic;
        x->parts = all;
        at = x->n_parts++;
        all[at] = own;
        if (!sc_map_set(&x->moved, x->a, key, at)) return false;
    }
    *out = x->parts[at];
    return true;
}

/* Adds the operations of a step, the first of which is `begin` + 1. */
static bool add_ops(builder *x, sc_op begin)
{
    const sc_graph *g = &x->line->step->graph;
    sc_op base = begin + 1;
    for (sc_op i = 0; i < g->n_ops; i++) {
        uint32_t from = sc_op_place(g, i), n = sc_op_place(g, i + 1) - from;
        sc_op_desc d = {.name = g->name[i],
                        .work = g->work[i],
                        .latency = g->latency[i],
                        .cls = SC_NONE,
                        .traffic = SC_NONE,
                        .bytes = g->bytes[i],
                        .flops = g->flops[i],
                        .kind = g->kind[i],
                        .stream = g->stream[i],
                        .cat = g->cat[i]};
        if (g->traffic[i] != SC_NONE)
            d.traffic = g->traffic[i] + x->line->first_traffic;
        if (n == 1) d.cls = g->cls[from] + x->first_class;
        if (n > 1) {
            for (uint32_t k = 0; k < n; k++)
                x->dev[k] = g->cls[from + k] + x->first_class;
            d.dev = x->dev;
            d.n_dev = n;
        }
        if (g->parts && !move_parts(x, g->parts[i], &d.parts)) return false;
        sc_op op = sc_graph_add_op(x->b, &d);
        sc_assert(op == base + i);
        if (g->n_preds[i] == 0) sc_graph_add_dep(x->b, begin, op);
    }
    for (sc_op i = 0; i < g->n_ops; i++)
        for (uint32_t k = g->succ_head[i]; k < g->succ_head[i + 1]; k++)
            sc_graph_add_dep(x->b, base + i, base + g->succ[k]);
    return true;
}

static sc_op add_mark(builder *x, const char *name)
{
    const sc_op_desc d = {.name = name,
                          .cls = SC_NONE,
                          .traffic = SC_NONE,
                          .kind = SC_OP_MARK,
                          .cat = SC_CAT_OTHER};
    return sc_graph_add_op(x->b, &d);
}

/* Time of the first class that belongs to no operation. */
static sc_op add_wait(builder *x, const char *name, sc_time work)
{
    const sc_op_desc d = {.name = name,
                          .work = work,
                          .cls = x->first_class,
                          .traffic = SC_NONE,
                          .kind = SC_OP_HOST,
                          .stream = SC_S_HOST,
                          .cat = SC_CAT_OTHER};
    return sc_graph_add_op(x->b, &d);
}

static bool add_steps(builder *x)
{
    jobs_line *l = x->line;
    const sc_graph *g = &l->step->graph;
    sc_op before = SC_NONE;
    if (l->start > 0) before = add_wait(x, "start", l->start);
    for (uint32_t s = 0; s < l->n; s++) {
        sc_op begin = add_mark(x, "step");
        if (before != SC_NONE) sc_graph_add_dep(x->b, before, begin);
        if (!add_ops(x, begin)) return false;
        sc_op end = add_mark(x, "end");
        l->base[s] = begin + 1;
        for (sc_op i = 0; i < g->n_ops; i++)
            if (g->succ_head[i] == g->succ_head[i + 1])
                sc_graph_add_dep(x->b, l->base[s] + i, end);
        before = end;
        if (l->step->rest > 0) {
            before = add_wait(x, "rest", l->step->rest);
            sc_graph_add_dep(x->b, end, before);
        }
        l->begin[s] = begin;
        l->end[s] = before;
    }
    return true;
}

static bool add_line(builder *x)
{
    jobs_line *l = x->line;
    const sc_graph *g = &l->step->graph;
    l->begin = SC_NEW_N(x->a, sc_op, l->n);
    l->end = SC_NEW_N(x->a, sc_op, l->n);
    l->base = SC_NEW_N(x->a, sc_op, l->n);
    if (!l->begin || !l->end || !l->base) return false;
    if (x->n_dev < g->n_classes) {
        x->dev = SC_NEW_N(x->a, uint32_t, g->n_classes);
        x->n_dev = g->n_classes;
        if (!x->dev) return false;
    }
    for (uint32_t c = 0; c < g->n_classes; c++) {
        const sc_class *of = &g->classes[c];
        const char *name = sc_sprintf(x->a, "%s %s", l->name, of->name);
        uint32_t at = name ? sc_graph_add_class(x->b, name, of->rank,
                                                (uint32_t)of->multiplicity)
                           : SC_NONE;
        if (!name) return false;
        if (c == 0) x->first_class = at;
    }
    for (uint32_t t = 0; t < g->n_traffic; t++) {
        uint32_t at = sc_graph_add_traffic(x->b, &g->traffics[t]);
        if (t == 0) l->first_traffic = at;
    }
    return add_steps(x);
}

/* The options of each class are those of its job. */
static bool options(const jobs_line *line, uint32_t n, uint32_t n_classes,
                    sc_arena *a, sc_sim_opts *o)
{
    const sc_sim_opts **of = SC_NEW_N(a, const sc_sim_opts *, n_classes);
    uint32_t at = 0;
    if (!of) return false;
    for (uint32_t j = 0; j < n; j++)
        for (uint32_t c = 0; c < line[j].step->graph.n_classes; c++)
            of[at++] = &line[j].step->opts;
    *o = line[0].step->opts;
    o->of_class = of;
    return true;
}

sc_status jobs_combine(jobs_line *line, uint32_t n, sc_arena *a, sc_graph *out,
                       sc_sim_opts *o, sc_err *err)
{
    builder x = {.b = sc_graph_builder_new(a), .a = a};
    sc_op *moved = NULL;
    if (!x.b) return sc_error_nomem(err);
    for (uint32_t j = 0; j < n; j++) {
        x.line = &line[j];
        x.line->first_traffic = 0;
        x.moved = (sc_map){0};
        if (!add_line(&x)) return sc_error_nomem(err);
    }
    SC_TRY(sc_graph_build_ids(x.b, a, out, &moved, err));
    sc_assert(!moved);
    if (!options(line, n, out->n_classes, a, o)) return sc_error_nomem(err);
    return SC_OK;
}
