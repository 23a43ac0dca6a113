/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace_ranks.c - makes the workload of all ranks from the nodes of real ones.
 *
 * A rank that follows another has its nodes; partners are at the same distance.
 * An evenly spaced group becomes the group of the same shape that contains the
 * rank, if such groups tile the world; any other group is shifted.
 */
#include "emu/trace.h"

#include <stdlib.h>
#include <string.h>

typedef struct ranks {
    const sc_emu_run *runs;
    const trace_class *cls;
    sc_arena *a;
    sc_err *err;
    uint32_t world, cap;
    sc_workload *w;
    sc_map groups; /* by their ranks */
} ranks;

/* ---- columns ---------------------------------------------------------------------- */

static sc_status columns(const trace_class *c, sc_task_list *l)
{
    sc_arena *a = c->a;
    size_t n = c->n;
    *l = (sc_task_list){.n_tasks = c->n,
                        .n_deps = c->n_deps,
                        .kind = SC_NEW_N(a, uint8_t, n),
                        .coll = SC_NEW_N(a, uint8_t, n),
                        .flags = SC_NEW_N(a, uint8_t, n),
                        .n_preds = SC_NEW_N(a, uint32_t, n),
                        .succ_head = SC_NEW_N(a, uint32_t, n + 1),
                        .succ = SC_NEW_N(a, uint32_t, c->n_deps),
                        .duration = SC_NEW_N(a, sc_time, n),
                        .size = SC_NEW_N(a, uint64_t, n),
                        .group = SC_NEW_N(a, uint32_t, n),
                        .peer = SC_NEW_N(a, uint32_t, n),
                        .tag = SC_NEW_N(a, uint32_t, n),
                        .id = SC_NEW_N(a, uint64_t, n),
                        .ops = SC_NEW_N(a, uint64_t, n),
                        .priority = SC_NEW_N(a, uint32_t, n),
                        .dims = SC_NEW_N(a, uint32_t, n),
                        .name = SC_NEW_N(a, const char *, n),
                        .n_groups = c->n_groups,
                        .n_peers = c->n_peers,
                        .n_tags = c->n_tags,
                        .n_once = c->n_once};
    bool ok = l->kind && l->coll && l->flags && l->n_preds && l->succ_head &&
              l->succ && l->duration && l->size && l->group && l->peer &&
              l->tag && l->id && l->ops && l->priority && l->dims && l->name;
    return ok ? SC_OK : sc_error_nomem(c->err);
}

static const char *name_of(const trace_node *t)
{
    if (t->kind == SC_TASK_COMP) return "compute";
    return t->kind == SC_TASK_COLL ? sc_coll_names[t->coll]
                                   : sc_task_kind_names[t->kind];
}

/* Dependencies point back, so successors are in rising order. */
static sc_status task_list(const trace_class *c, sc_task_list *l)
{
    SC_TRY(columns(c, l));
    for (uint32_t i = 0; i < c->n; i++) {
        const trace_node *t = &c->node[i];
        l->kind[i] = t->kind;
        l->coll[i] = t->coll;
        l->flags[i] = SC_TASK_NO_OPS;
        if (t->kind == SC_TASK_COMP) l->flags[i] |= SC_TASK_NO_SIZE;
        l->n_preds[i] = t->n_deps;
        l->duration[i] = t->duration;
        l->size[i] = t->size;
        l->group[i] = t->group;
        l->peer[i] = t->peer;
        l->tag[i] = t->tag;
        l->id[i] = i;
        l->name[i] = name_of(t);
        for (uint32_t k = 0; k < t->n_deps; k++)
            l->succ_head[c->dep[t->dep + k] + 1]++;
    }
    for (uint32_t i = 0; i < c->n; i++) l->succ_head[i + 1] += l->succ_head[i];
    uint32_t *fill = SC_NEW_N(c->a, uint32_t, (size_t)c->n + 1);
    if (!fill) return sc_error_nomem(c->err);
    for (uint32_t i = 0; i < c->n; i++)
        for (uint32_t k = 0; k < c->node[i].n_deps; k++) {
            uint32_t on = c->dep[c->node[i].dep + k];
            l->succ[l->succ_head[on] + fill[on]++] = i;
        }
    return SC_OK;
}

/* ---- groups -------------------------------------------------------------------------- */

static bool same(const sc_rank_group *g, const uint32_t *rank, uint32_t n)
{
    return g->n == n && memcmp(g->rank, rank, n * sizeof *rank) == 0;
}

/* The members of `g`, which contains `from`, as seen from `to`. */
static void shifted(const ranks *r, const sc_rank_group *g, uint32_t from,
                    uint32_t to, uint32_t *out)
{
    uint64_t world = r->world, n = g->n;
    uint64_t stride =
        n > 1 && g->rank[1] > g->rank[0] ? g->rank[1] - g->rank[0] : 0;
    bool even = stride > 0;
    for (uint32_t i = 1; i < n && even; i++)
        even = g->rank[i] == g->rank[0] + i * stride;
    uint64_t span = stride * n;
    even = even && world % span == 0 && g->rank[0] % span < stride;
    for (uint32_t i = 0; i < n; i++)
        out[i] = even ? (uint32_t)(to / span * span + to % stride + i * stride)
                      : (uint32_t)((g->rank[i] + world + to - from) % world);
}

/* The group of these members, a new one where there is none. */
static sc_status group_of(ranks *r, const uint32_t *rank, uint32_t n,
                          uint32_t *out)
{
    sc_workload *w = r->w;
    uint64_t hash = sc_hash(rank, n * sizeof *rank, 0);
    uint32_t at = 0;
    while ((*out = sc_map_next(&r->groups, hash, &at)) != SC_MAP_END)
        if (same(&w->groups[*out], rank, n)) return SC_OK;
    sc_rank_group *g =
        sc_grow(r->a, w->groups, w->n_groups, &r->cap, 64, sizeof *g);
    uint32_t *copy = SC_NEW_N(r->a, uint32_t, n);
    /* "0" may mean everyone */
    const char *name = sc_sprintf(r->a, "%u", w->n_groups + 1);
    if (!g || !copy || !name ||
        !sc_map_add(&r->groups, r->a, hash, w->n_groups))
        return sc_error_nomem(r->err);
    memcpy(copy, rank, n * sizeof *copy);
    w->groups = g;
    g[w->n_groups] = (sc_rank_group){name, n, copy};
    *out = w->n_groups++;
    return SC_OK;
}

/* ---- ranks ---------------------------------------------------------------------------- */

/* How many groups of the run with the same ranks were made before it. */
static uint32_t instance_of(const sc_emu_run *run, uint32_t group)
{
    const sc_rank_group *g = &run->group[group];
    uint32_t n = 0;
    for (uint32_t i = 0; i < group; i++)
        n += run->group[i].n > 0 && same(&run->group[i], g->rank, g->n);
    return n;
}

static sc_status traces(ranks *r, uint32_t rank, uint32_t like)
{
    const trace_class *c = &r->cls[like];
    uint32_t from = c->run->rank;
    uint32_t *groups = SC_NEW_N(r->a, uint32_t, c->n_groups);
    uint32_t *peers = SC_NEW_N(r->a, uint32_t, c->n_peers);
    uint32_t *instances = SC_NEW_N(r->a, uint32_t, c->n_groups);
    if (!groups || !peers || !instances) return sc_error_nomem(r->err);
    for (uint32_t i = 0; c->envelopes && i < c->n_groups; i++)
        instances[i] = instance_of(c->run, c->groups[i]);
    for (uint32_t i = 0; i < c->n_peers; i++)
        peers[i] = (uint32_t)(((uint64_t)c->peers[i] + r->world + rank - from) %
                              r->world);
    for (uint32_t i = 0; i < c->n_groups; i++) {
        const sc_rank_group *g = &c->run->group[c->groups[i]];
        sc_arena_mark mark = sc_arena_save(r->a);
        uint32_t *members = SC_NEW_N(r->a, uint32_t, g->n);
        if (!members) return sc_error_nomem(r->err);
        if (rank == from)
            memcpy(members, g->rank, g->n * sizeof *members);
        else
            shifted(r, g, from, rank, members);
        uint32_t before = r->w->n_groups;
        SC_TRY(group_of(r, members, g->n, &groups[i]));
        /* a known group needs no memory */
        if (r->w->n_groups == before) sc_arena_restore(r->a, mark);
    }
    r->w->ranks[rank] =
        (sc_rank_trace){.cls = like,
                        .groups = groups,
                        .peers = peers,
                        .tags = c->tags,
                        .tag_steps = c->envelopes ? c->tag_steps : NULL,
                        .instances = c->envelopes ? instances : NULL};
    return SC_OK;
}

static sc_status check(const sc_emu_run *runs, uint32_t n,
                       const sc_emu_trace_opts *o, sc_err *err)
{
    sc_pos none = sc_pos_none();
    if (n == 0)
        return sc_error(err, SC_EINPUT, SC_C_MISSING, none, NULL, "no run");
    for (uint32_t i = 0; i < n; i++)
        if (runs[i].world != runs[0].world || runs[i].rank >= runs[i].world)
            return sc_error(err, SC_EINPUT, SC_C_CONFLICT, none, NULL,
                            "runs of different worlds");
    for (uint32_t r = 0; o->like && r < runs[0].world; r++)
        if (o->like[r] >= n)
            return sc_error(err, SC_EINPUT, SC_C_RANGE, none, NULL,
                            "rank %u follows a run that does not exist", r);
    return SC_OK;
}

/* Every rank has its own tables; classes are those of the runs, plus an empty
 * one. */
static sc_status all_ranks(ranks *r, uint32_t n, const uint32_t *like)
{
    sc_workload *w = r->w;
    for (uint32_t i = 0; i < r->world; i++) w->ranks[i].cls = n;
    for (uint32_t i = 0; like && i < r->world; i++)
        SC_TRY(traces(r, i, like[i]));
    for (uint32_t i = 0; i < n; i++) SC_TRY(traces(r, r->runs[i].rank, i));
    return SC_OK;
}

/* Whether messages have the program's tags. Those of a rank that follows another
 * can differ from what its partners expect; they then meet in order. */
static bool tagged(const sc_emu_run *runs, uint32_t n,
                   const sc_emu_trace_opts *o)
{
    if (!o->like) return true;
    if (n < runs[0].world) return false;
    for (uint32_t i = 0; i < n; i++)
        for (uint64_t k = 0; k < runs[i].n_records; k++)
            if (runs[i].record[k].tag < 0) return false;
    return true;
}

sc_status sc_emu_workload(const sc_emu_run *runs, uint32_t n,
                          const sc_emu_trace_opts *o, sc_arena *a,
                          sc_workload *out, sc_err *err)
{
    SC_TRY(check(runs, n, o, err));
    uint32_t world = runs[0].world;
    sc_workload w = {.n_ranks = world,
                     .n_jobs = 1,
                     .n_classes = n + (o->like ? 0 : 1),
                     .classes = SC_NEW_N(a, sc_task_list, (size_t)n + 1),
                     .ranks = SC_NEW_N(a, sc_rank_trace, world),
                     .jobs = SC_NEW_N(a, sc_rank_job, 1)};
    trace_class *c = SC_NEW_N(a, trace_class, n);
    if (!w.classes || !w.ranks || !w.jobs || !c) return sc_error_nomem(err);
    /* Of as many steps for each rank, or messages would lack their partners. */
    uint32_t steps = UINT32_MAX;
    for (uint32_t i = 0; i < n; i++) {
        c[i].run = &runs[i];
        c[i].a = a;
        c[i].err = err;
        c[i].tagged = tagged(runs, n, o);
        c[i].envelopes = o->envelopes;
        SC_TRY(trace_steps(&c[i], o));
        if (c[i].n_steps < steps) steps = c[i].n_steps;
    }
    for (uint32_t i = 0; i < n; i++) {
        SC_TRY(trace_nodes(&c[i], o, steps));
        SC_TRY(task_list(&c[i], &w.classes[i]));
    }
    trace_class idle = {.a = a, .err = err};
    if (!o->like) SC_TRY(task_list(&idle, &w.classes[n]));
    w.jobs[0] = (sc_rank_job){"emulated", 0, world};
    ranks r = {
        .runs = runs, .cls = c, .a = a, .err = err, .world = world, .w = &w};
    SC_TRY(all_ranks(&r, n, o->like));
    SC_TRY(sc_workload_check(&w, err));
    *out = w;
    return SC_OK;
}
