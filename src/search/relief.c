/* SPDX-License-Identifier: Apache-2.0 */
/* relief.c - what the host's memory has to keep if nothing fits on the devices. */
#include "plan/plan_strategy.h"
#include "search/jobs_axes.h"
#include "search/search_machine.h"

#include <math.h>
#include <stdatomic.h>

/* One fitting row is enough. */
static void tell(void *with, const sc_search_sofar *s)
{
    if (isfinite(s->best)) atomic_store((atomic_bool *)with, true);
}

static bool stop(void *with)
{
    return atomic_load((atomic_bool *)with);
}

static sc_status fits(const sc_search_question *q, const sc_job *job,
                      sc_arena *a, bool *legal, bool *yes, sc_err *err)
{
    sc_search_jobs jobs;
    sc_search_result f;
    sc_err why;
    atomic_bool found = false;
    const sc_search_options o = {.top = 1,
                                 .threads = q->o->threads,
                                 .keep_free = q->o->keep_free,
                                 .only_best = true,
                                 .goal = SC_GOAL_STEP_TIME,
                                 .stop = stop,
                                 .tell = tell,
                                 .with = &found};
    sc_err_init(&why);
    sc_status s =
        sc_search_jobs_open(job, q->in, q->given, q->n_given, a, &jobs, &why);
    if (s == SC_OK)
        s = sc_search_jobs_where(&jobs, q->where, q->n_where, a, &why);
    *legal = s == SC_OK;
    *yes = false;
    if (s == SC_EINPUT) return SC_OK;
    if (s != SC_OK) *err = why;
    SC_TRY(s);
    SC_TRY(sc_search_run(&jobs, &o, a, &f, err));
    *yes = f.n_best > 0;
    return SC_OK;
}

static bool is_given(const sc_search_question *q, const sc_key *k)
{
    bool is = sc_job_has(q->job, k);
    for (uint32_t i = 0; i < q->n_given; i++) is = is || q->given[i].key == k;
    return is;
}

/* Keeps all data of a kind in the host's memory. */
static bool move(const sc_search_question *q, const sc_key *k, sc_job *job)
{
    if (!search_moves(job, k) || is_given(q, k)) return false;
    if (k->type == SC_T_ENUM)
        *(int *)((char *)job + k->offset) = SC_TIER_CPU;
    else
        *(double *)((char *)job + k->offset) = 1;
    return true;
}

sc_status sc_search_relief(const sc_search_question *q, sc_arena *a,
                           const char **options, bool *yes, sc_err *err)
{
    sc_job job = *q->job;
    bool legal, any = false;
    *options = NULL;
    *yes = false;
    if (q->in->model->net || job.tree || q->in->hw->device->host_bw <= 0)
        return SC_OK;
    /* optimizer states first: of all data a step uses them least often */
    for (int tier = 1; tier >= 0; tier--)
        for (const sc_key *k = sc_job_keys; k->name && !*yes; k++) {
            const sc_job before = job;
            sc_arena_mark mark = sc_arena_save(a);
            if ((k->type == SC_T_ENUM) != tier || !move(q, k, &job)) continue;
            SC_TRY(fits(q, &job, a, &legal, yes, err));
            sc_arena_restore(a, mark);
            if (!legal) job = before;
            any = any || legal;
        }
    if (any) *options = sc_job_options(q->job, &job, a);
    return any && !*options ? sc_error_nomem(err) : SC_OK;
}
