/* SPDX-License-Identifier: Apache-2.0 */
/* workload_ranks.c - tasks of devices as classes of ranks: what slots mean for
 * every rank, communicators. */
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

static sc_status rank_groups(const sc_plan *p, const work_slots *x,
                             uint32_t rank, group_map *map, sc_arena *a,
                             sc_workload *w, uint32_t *cap, sc_err *err)
{
    uint32_t *groups = SC_NEW_N(a, uint32_t, x->group.n);
    if (!groups) return sc_error_nomem(err);
    for (uint32_t k = 0; k < x->group.n; k++) {
        uint32_t axes = x->group.order[k];
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

static sc_status rank_peers(const sc_plan *p, const work_slots *x,
                            uint32_t rank, sc_arena *a, sc_workload *w,
                            sc_err *err)
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
    work_slots *x = SC_NEW_N(a, work_slots, pp);
    group_map *map = SC_NEW(a, group_map);
    w.classes = SC_NEW_N(a, sc_task_list, pp);
    w.ranks = SC_NEW_N(a, sc_rank_trace, n);
    w.jobs = SC_NEW(a, sc_rank_job);
    if (!x || !map || !w.classes || !w.ranks || !w.jobs)
        return sc_error_nomem(err);
    w.jobs[0] = (sc_rank_job){p->run.model->name, 0, n};
    for (uint32_t c = 0; c < pp; c++)
        SC_TRY(work_list(&side[c], &x[c], a, &w.classes[c], err));
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
