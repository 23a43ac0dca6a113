/* SPDX-License-Identifier: Apache-2.0 */
/* join.c - several jobs on one machine. */
#include "trace/trace.h"

#include <string.h>

/* The numbers of ranks, groups and classes before the current job. */
typedef struct offsets {
    uint32_t ranks, classes, groups, jobs;
} offsets;

static const uint32_t *shifted(const uint32_t *v, uint32_t n, uint32_t by,
                               sc_arena *a)
{
    if (by == 0) return v;
    uint32_t *out = SC_NEW_N(a, uint32_t, n);
    for (uint32_t i = 0; out && i < n; i++) out[i] = v[i] + by;
    return out;
}

static sc_status put_ranks(const sc_workload *w, const offsets *at, sc_arena *a,
                           sc_workload *out, sc_err *err)
{
    for (uint32_t r = 0; r < w->n_ranks; r++) {
        const sc_rank_trace *from = &w->ranks[r];
        const sc_task_list *l = &w->classes[from->cls];
        /* neighbours of a class often share a table */
        const sc_rank_trace *prev = r > 0 ? from - 1 : NULL;
        sc_rank_trace *to = &out->ranks[at->ranks + r];
        to->cls = from->cls + at->classes;
        to->job = from->job + at->jobs;
        to->tags = from->tags;
        to->groups = prev && prev->groups == from->groups
                         ? to[-1].groups
                         : shifted(from->groups, l->n_groups, at->groups, a);
        to->peers = prev && prev->peers == from->peers
                        ? to[-1].peers
                        : shifted(from->peers, l->n_peers, at->ranks, a);
        if (to->groups == NULL || to->peers == NULL) return sc_error_nomem(err);
    }
    return SC_OK;
}

static sc_status put_rest(const sc_workload *w, const offsets *at, sc_arena *a,
                          sc_workload *out, sc_err *err)
{
    if (w->n_classes > 0)
        memcpy(out->classes + at->classes, w->classes,
               w->n_classes * sizeof *w->classes);
    for (uint32_t g = 0; g < w->n_groups; g++) {
        sc_rank_group *to = &out->groups[at->groups + g];
        *to = w->groups[g];
        to->rank = shifted(to->rank, to->n, at->ranks, a);
        if (to->rank == NULL) return sc_error_nomem(err);
    }
    for (uint32_t j = 0; j < w->n_jobs; j++) {
        out->jobs[at->jobs + j] = w->jobs[j];
        out->jobs[at->jobs + j].first += at->ranks;
    }
    return SC_OK;
}

static bool add(uint32_t *sum, uint32_t n)
{
    if (n > UINT32_MAX - 1 - *sum) return false;
    *sum += n;
    return true;
}

sc_status sc_workload_join(const sc_workload *jobs, uint32_t n, sc_arena *a,
                           sc_workload *out, sc_err *err)
{
    sc_workload w = {.n_ranks = 0};
    offsets at = {0};
    for (uint32_t i = 0; i < n; i++)
        if (!add(&w.n_ranks, jobs[i].n_ranks) ||
            !add(&w.n_classes, jobs[i].n_classes) ||
            !add(&w.n_groups, jobs[i].n_groups) ||
            !add(&w.n_jobs, jobs[i].n_jobs))
            return sc_error(
                err, SC_EINPUT, SC_C_TOO_BIG, sc_pos_none(), NULL,
                "all jobs together are too large for one simulation");
    w.classes = SC_NEW_N(a, sc_task_list, w.n_classes);
    w.ranks = SC_NEW_N(a, sc_rank_trace, w.n_ranks);
    w.groups = SC_NEW_N(a, sc_rank_group, w.n_groups);
    w.jobs = SC_NEW_N(a, sc_rank_job, w.n_jobs);
    if (!w.classes || !w.ranks || !w.groups || !w.jobs)
        return sc_error_nomem(err);
    for (uint32_t i = 0; i < n; i++) {
        SC_TRY(put_ranks(&jobs[i], &at, a, &w, err));
        SC_TRY(put_rest(&jobs[i], &at, a, &w, err));
        at.ranks += jobs[i].n_ranks;
        at.classes += jobs[i].n_classes;
        at.groups += jobs[i].n_groups;
        at.jobs += jobs[i].n_jobs;
    }
    *out = w;
    return SC_OK;
}

sc_status sc_workload_idle(uint32_t n, sc_arena *a, sc_workload *out,
                           sc_err *err)
{
    sc_workload w = {.n_ranks = n, .n_classes = 1, .n_jobs = 1};
    w.classes = SC_NEW(a, sc_task_list);
    w.ranks = SC_NEW_N(a, sc_rank_trace, n);
    w.groups = SC_NEW_N(a, sc_rank_group, 0);
    w.jobs = SC_NEW(a, sc_rank_job);
    uint32_t *none = SC_NEW(a, uint32_t);
    if (!w.classes || !w.ranks || !w.groups || !w.jobs || !none)
        return sc_error_nomem(err);
    w.classes->succ_head = none;
    *w.jobs = (sc_rank_job){.name = "idle", .n = n};
    for (uint32_t r = 0; r < n; r++)
        w.ranks[r] =
            (sc_rank_trace){.groups = none, .peers = none, .tags = none};
    *out = w;
    return SC_OK;
}
