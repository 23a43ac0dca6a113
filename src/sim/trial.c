/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trial.c - runs a collective alone, in a world of its own, to compute the time
 * of a schedule and the order in which its streams start.
 */
#include "sim/world.h"

#define MAX_MESSAGES 2e6 /* a limit if every rank has to be simulated */

void sim_order_note(sim_world *w, const sim_stream *s)
{
    sim_trial *t = w->trial;
    if (s->rank != w->rank) return;
    uint32_t dim = s->phases[s->phase].dim;
    t->start_order[s->index * t->schedule->n_phases + s->phase] =
        t->next[dim]++;
}

/* The columns of a workload of one task. */
typedef struct one_task {
    sc_task_list list;
    sc_rank_job job;
    sc_time duration;
    uint64_t size, id, ops;
    uint32_t n_preds, succ_head[2], succ, group, peer, tag, priority, dims;
    uint8_t kind, coll, flags;
} one_task;

/* A workload of one collective of all ranks along `mask`. */
static sc_status one_collective(const sim_schedule *p, uint32_t mask,
                                uint32_t n, sc_arena *a, sc_workload *out)
{
    one_task *x = SC_NEW(a, one_task);
    out->ranks = SC_NEW_N(a, sc_rank_trace, n);
    if (!x || !out->ranks) return SC_ENOMEM;
    x->kind = SC_TASK_COLL;
    x->coll = (uint8_t)p->coll;
    x->flags = SC_TASK_DIMS;
    x->size = p->size;
    x->group = SC_TASK_WORLD;
    x->dims = mask;
    x->list = (sc_task_list){.n_tasks = 1,
                             .kind = &x->kind,
                             .coll = &x->coll,
                             .flags = &x->flags,
                             .n_preds = &x->n_preds,
                             .succ_head = x->succ_head,
                             .succ = &x->succ,
                             .group = &x->group,
                             .peer = &x->peer,
                             .tag = &x->tag,
                             .priority = &x->priority,
                             .dims = &x->dims,
                             .size = &x->size,
                             .id = &x->id,
                             .ops = &x->ops,
                             .duration = &x->duration};
    x->job = (sc_rank_job){"", 0, n};
    out->n_ranks = n;
    out->n_classes = out->n_jobs = 1;
    out->classes = &x->list;
    out->jobs = &x->job;
    return SC_OK;
}

static double messages(const sim_world *w, const sim_schedule *p)
{
    double n = 0;
    for (uint32_t i = 0; i < p->n_phases; i++) n += 2.0 * p->phase[i].n;
    return n * p->n_streams * w->n_npus;
}

static sc_time last_end(const sim_world *x)
{
    sc_time end = 0;
    for (uint32_t i = 0; i < x->n_ranks; i++) {
        if (!x->rank[i].out.finished) return SC_TIME_MAX;
        if (x->rank[i].out.finish > end) end = x->rank[i].out.finish;
    }
    return end;
}

static sc_time run_alone(const sim_world *w, sim_trial *t, bool must,
                         const sc_workload *one, sc_arena *a)
{
    sc_err err;
    sc_err_init(&err);
    sc_system sys = *w->sys;
    sc_pool pool = {.kind = SC_POOL_NONE};
    sc_simulate_opts o = *w->o;
    o.speed = NULL;
    o.devices = NULL;
    o.jitter = 0;
    o.symmetry = true;
    if (sys.dim_order == SC_DIMS_ASCENDING) o.hw = NULL; /* turns only */
    sys.n_node_ccl = 0;
    sys.replay_only = false;
    for (int i = 0; i < SC_N_CCL_OPS; i++) sys.ccl_custom[i].n = 0;
    sim_world *x = SC_NEW(a, sim_world);
    if (!x) return SC_TIME_MAX;
    *x = (sim_world){.w = one,
                     .sys = &sys,
                     .net = w->net,
                     .pool = &pool,
                     .o = &o,
                     .a = a,
                     .err = &err,
                     .trial = t};
    if (sim_world_init(x) ||
        (!must && !x->symmetric && messages(w, t->schedule) > MAX_MESSAGES))
        return SC_TIME_MAX;
    sim_world_run(x);
    return x->status ? SC_TIME_MAX : last_end(x);
}

sc_time sim_order_try(sim_world *w, sim_schedule *p, uint32_t mask, bool must)
{
    size_t n = (size_t)p->n_streams * p->n_phases;
    sim_trial t = {.schedule = p, .start_order = SC_NEW_N(w->a, uint32_t, n)};
    sc_workload one = {0};
    sc_time end = SC_TIME_MAX;
    sc_arena a;
    sc_arena_init(&a, 0);
    if (t.start_order && !one_collective(p, mask, w->n_npus, &a, &one))
        end = run_alone(w, &t, must, &one, &a);
    sc_arena_free(&a);
    if (end != SC_TIME_MAX) p->start_order = t.start_order;
    return end;
}
