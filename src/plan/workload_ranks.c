/* SPDX-License-Identifier: Apache-2.0 */
/* workload_ranks.c - tasks of devices as classes of ranks: slots, what they
 * mean for every rank, communicators. */
#include "plan/plan_internal.h"
#include "plan/workload.h"

#include <string.h>

uint32_t work_members(const sc_run *r, uint32_t axes)
{
    uint32_t n = 1;
    if (axes & (LOWER_ENDS | LOWER_MIRROR)) return 2;
    for (uint32_t ax = 0; ax < SC_N_AX; ax++)
        if (axes >> ax & 1) n *= r->size[ax];
    return n;
}

/* Rank with the coordinates on `axes` set to 0. */
static uint32_t base_of(const sc_plan *p, uint32_t axes, uint32_t rank)
{
    uint32_t base = rank, left = rank, pp = p->run.size[SC_AX_PP];
    for (uint32_t i = 0; i < SC_N_AX; i++) {
        sc_axis ax = plan_inner_first[i];
        uint32_t n = p->run.size[ax];
        if (n < 2) continue;
        if (axes >> ax & 1) base -= left % n * p->stride[ax];
        left /= n;
    }
    if (axes & LOWER_MIRROR) {
        uint32_t at = (rank - base) / p->stride[SC_AX_PP];
        base += (at < pp - 1 - at ? at : pp - 1 - at) * p->stride[SC_AX_PP];
    }
    return base;
}

/* Rising: axes from neighbours outwards. */
static void members(const sc_plan *p, uint32_t axes, uint32_t base,
                    uint32_t *out)
{
    uint32_t n = 1;
    out[0] = base;
    if (axes & LOWER_MIRROR) {
        uint32_t stride = p->stride[SC_AX_PP];
        uint32_t at = stride > 0 ? base / stride : 0;
        out[1] = base + (p->run.size[SC_AX_PP] - 1 - 2 * at) * stride;
        return;
    }
    if (axes & LOWER_ENDS) {
        out[1] = base + p->stride[SC_AX_PP] * (p->run.size[SC_AX_PP] - 1);
        return;
    }
    for (uint32_t i = 0; i < SC_N_AX; i++) {
        sc_axis ax = plan_inner_first[i];
        if (!(axes >> ax & 1)) continue;
        for (uint32_t k = 1; k < p->run.size[ax]; k++)
            for (uint32_t m = 0; m < n; m++)
                out[k * n + m] = out[m] + k * p->stride[ax];
        n *= p->run.size[ax];
    }
}

/* ---- lists of tasks ---------------------------------------------------------- */

static bool room(sc_task_list *l, sc_arena *a)
{
    uint32_t n = l->n_tasks;
    return (l->kind = SC_NEW_N(a, uint8_t, n)) &&
           (l->coll = SC_NEW_N(a, uint8_t, n)) &&
           (l->flags = SC_NEW_N(a, uint8_t, n)) &&
           (l->n_preds = SC_NEW_N(a, uint32_t, n)) &&
           (l->succ_head = SC_NEW_N(a, uint32_t, (size_t)n + 1)) &&
           (l->succ = SC_NEW_N(a, uint32_t, l->n_deps)) &&
           (l->duration = SC_NEW_N(a, sc_time, n)) &&
           (l->size = SC_NEW_N(a, uint64_t, n)) &&
           (l->group = SC_NEW_N(a, uint32_t, n)) &&
           (l->peer = SC_NEW_N(a, uint32_t, n)) &&
           (l->tag = SC_NEW_N(a, uint32_t, n)) &&
           (l->id = SC_NEW_N(a, uint64_t, n)) &&
           (l->ops = SC_NEW_N(a, uint64_t, n)) &&
           (l->priority = SC_NEW_N(a, uint32_t, n)) &&
           (l->dims = SC_NEW_N(a, uint32_t, n)) &&
           (l->name = SC_NEW_N(a, const char *, n));
}

static sc_status edges(const work_side *s, sc_task_list *l, sc_arena *a,
                       sc_err *err)
{
    uint32_t *at = SC_NEW_N(a, uint32_t, l->n_tasks);
    if (!at) return sc_error_nomem(err);
    for (uint32_t k = 0; k < s->n_preds; k++) l->succ_head[s->pred[k] + 1]++;
    for (uint32_t i = 0; i < l->n_tasks; i++) {
        l->succ_head[i + 1] += l->succ_head[i];
        at[i] = l->succ_head[i];
    }
    for (uint32_t i = 0; i < l->n_tasks; i++)
        for (uint32_t k = 0; k < s->task[i].n_preds; k++)
            l->succ[at[s->pred[s->task[i].pred + k]]++] = i;
    return SC_OK;
}

/* Slots in the order in which tasks name them: `order` is what was named, by
 * new slot, `slot` the new one of an old one. */
typedef struct renaming {
    uint32_t n, *slot, *order;
} renaming;

static bool renaming_init(renaming *r, uint32_t n, sc_arena *a)
{
    r->n = 0;
    r->slot = SC_NEW_N(a, uint32_t, n);
    r->order = SC_NEW_N(a, uint32_t, n);
    if (!r->slot || !r->order) return false;
    for (uint32_t i = 0; i < n; i++) r->slot[i] = SC_NONE;
    return true;
}

static uint32_t renamed(renaming *r, uint32_t old, uint32_t value)
{
    if (r->slot[old] == SC_NONE) {
        r->order[r->n] = value;
        r->slot[old] = r->n++;
    }
    return r->slot[old];
}

typedef struct slots {
    renaming axes, peer, tag;
} slots;

static void fill(const work_side *s, slots *x, sc_task_list *l)
{
    for (uint32_t i = 0; i < l->n_tasks; i++) {
        const work_task *t = &s->task[i];
        l->kind[i] = t->kind;
        l->coll[i] = t->coll;
        l->flags[i] = t->flags;
        l->n_preds[i] = t->n_preds;
        l->duration[i] = t->duration;
        l->size[i] = t->size;
        l->ops[i] = t->ops;
        l->id[i] = i;
        l->name[i] = t->name;
        if (t->kind == SC_TASK_COLL)
            l->group[i] = t->group == SC_TASK_WORLD
                              ? SC_TASK_WORLD
                              : renamed(&x->axes, t->group, s->axes[t->group]);
        if (t->kind != SC_TASK_SEND && t->kind != SC_TASK_RECV) continue;
        l->peer[i] = renamed(&x->peer, t->peer, s->peer[t->peer]);
        l->tag[i] = renamed(&x->tag, t->tag, s->tag[t->tag]);
    }
    l->n_groups = x->axes.n;
    l->n_peers = x->peer.n;
    l->n_tags = x->tag.n;
}

static sc_status list(const work_side *s, slots *x, sc_arena *a,
                      sc_task_list *l, sc_err *err)
{
    *l = (sc_task_list){.n_tasks = s->n, .n_deps = s->n_preds};
    if (!room(l, a) || !renaming_init(&x->axes, s->n_groups, a) ||
        !renaming_init(&x->peer, s->n_peers, a) ||
        !renaming_init(&x->tag, s->n_tags, a))
        return sc_error_nomem(err);
    fill(s, x, l);
    return edges(s, l, a, err);
}

/* ---- ranks and communicators --------------------------------------------------- */

/* A group that a rank names for the first time. */
static sc_status open_group(const sc_plan *p, uint32_t axes, uint32_t base,
                            sc_arena *a, sc_workload *w, uint32_t *cap,
                            sc_err *err)
{
    uint32_t n = work_members(&p->run, axes);
    uint32_t *rank = SC_NEW_N(a, uint32_t, n);
    sc_rank_group *at = sc_grow(a, w->groups, w->n_groups, cap, 64, sizeof *at);
    const char *name = sc_sprintf(a, "%u", w->n_groups + 1);
    if (!rank || !at || !name) return sc_error_nomem(err);
    members(p, axes, base, rank);
    w->groups = at;
    w->groups[w->n_groups++] = (sc_rank_group){name, n, rank};
    return SC_OK;
}

/* By axes, one bit per axis, LOWER_ENDS and LOWER_MIRROR: number of the group of a rank's
 * base, 0: not named yet. */
typedef struct group_map {
    uint32_t *of[LOWER_MIRROR << 1];
} group_map;

static sc_status rank_groups(const sc_plan *p, const slots *x, uint32_t rank,
                             group_map *map, sc_arena *a, sc_workload *w,
                             uint32_t *cap, sc_err *err)
{
    uint32_t *groups = SC_NEW_N(a, uint32_t, x->axes.n);
    if (!groups) return sc_error_nomem(err);
    for (uint32_t k = 0; k < x->axes.n; k++) {
        uint32_t axes = x->axes.order[k];
        uint32_t base = base_of(p, axes, rank);
        if (!map->of[axes]) map->of[axes] = SC_NEW_N(a, uint32_t, w->n_ranks);
        if (!map->of[axes]) return sc_error_nomem(err);
        if (map->of[axes][base] == 0) {
            SC_TRY(open_group(p, axes, base, a, w, cap, err));
            map->of[axes][base] = w->n_groups;
        }
        groups[k] = map->of[axes][base] - 1;
    }
    w->ranks[rank].groups = groups;
    return SC_OK;
}

static sc_status rank_peers(const sc_plan *p, const slots *x, uint32_t rank,
                            sc_arena *a, sc_workload *w, sc_err *err)
{
    uint32_t *peers = SC_NEW_N(a, uint32_t, x->peer.n);
    uint32_t base = base_of(p, 1u << SC_AX_PP, rank);
    if (!peers) return sc_error_nomem(err);
    for (uint32_t k = 0; k < x->peer.n; k++)
        peers[k] = base + x->peer.order[k] * p->stride[SC_AX_PP];
    w->ranks[rank].peers = peers;
    return SC_OK;
}

sc_status work_finish(const sc_plan *p, const work_side *side, sc_arena *a,
                      sc_workload *out, sc_err *err)
{
    uint32_t pp = p->run.size[SC_AX_PP], n = p->run.hw->n_devices, cap = 0;
    sc_workload w = {.n_ranks = n, .n_classes = pp, .n_jobs = 1};
    slots *x = SC_NEW_N(a, slots, pp);
    group_map *map = SC_NEW(a, group_map);
    w.classes = SC_NEW_N(a, sc_task_list, pp);
    w.ranks = SC_NEW_N(a, sc_rank_trace, n);
    w.jobs = SC_NEW(a, sc_rank_job);
    if (!x || !map || !w.classes || !w.ranks || !w.jobs)
        return sc_error_nomem(err);
    w.jobs[0] = (sc_rank_job){p->run.model->name, 0, n};
    for (uint32_t c = 0; c < pp; c++)
        SC_TRY(list(&side[c], &x[c], a, &w.classes[c], err));
    /* stages are outermost */
    for (uint32_t r = 0, c = 0; r < n; r++) {
        if (r == (c + 1) * p->stride[SC_AX_PP]) c++;
        w.ranks[r].cls = c;
        w.ranks[r].tags = x[c].tag.order;
        SC_TRY(rank_groups(p, &x[c], r, map, a, &w, &cap, err));
        SC_TRY(rank_peers(p, &x[c], r, a, &w, err));
    }
    *out = w;
    return SC_OK;
}
