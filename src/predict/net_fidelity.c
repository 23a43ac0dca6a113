/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net_fidelity.c - simulates a step of a network message by message on the
 * machine's links. The times become a result of the step's graph, so that
 * categories, memory and timelines are computed as usual.
 */
#include "predict/net.h"
#include "sim/sim_workload.h"
#include "trace/trace_machine.h"

#include <math.h>
#include <string.h>

/* The machine of a simulation. */
typedef struct site {
    sc_system system;
    sc_network network;
    sc_pool pool;
    sc_simulate_opts o;
} site;

/* Opens a machine as `simulate --network` does: by its dimensions if these
 * are its whole network, else by its links and routes. */
static sc_status open_site(const net_prediction *x, const sc_net_step *step,
                           const sc_workload *w, double slow, site *s,
                           sc_err *err)
{
    sc_trace_machine m = {.hw = x->hw, .precision = x->net_run.precision};
    if (sc_workload_has_copies(w))
        m.remote_bw = sc_net_copy_bw(step->job, &m.remote_latency_s);
    sc_pos pos = predict_machine_pos(x->job, x->a);
    sc_trace_machine_system(&m, &s->system, &s->pool);
    s->system.comm_slots = SC_N_STREAMS; /* as many as programs have */
    SC_TRY(sc_trace_machine_network(x->hw, pos, &s->network, err));
    sc_simulate_opts_init(&s->o);
    s->o.flows = x->job->fidelity == SC_FIDELITY_FLOW;
    if (s->o.flows || !sc_trace_machine_is_network(x->hw)) s->o.hw = x->hw;
    if (x->hw->n_groups > 0) s->o.devices = x->hw;
    s->o.symmetry = !x->job->no_symmetry;
    s->o.record = true;
    s->o.progress = x->job->progress;
    double *speed = SC_NEW_N(x->a, double, w->n_ranks);
    if (!speed) return sc_error_nomem(err);
    for (uint32_t r = 0; r < w->n_ranks; r++) speed[r] = slow;
    s->o.speed = speed;
    return SC_OK;
}

/* ---- times --------------------------------------------------------------- */

typedef struct timing {
    const sc_net_workload *w;
    const sc_simulate_result *sim;
    uint32_t *rank; /* [n_classes] one rank of each class */
    sc_result *r;
    sc_time *ready; /* [n_ops] end of `cause` */
    sc_op *last;    /* [n_classes * SC_N_STREAMS] last op of a stream */
} timing;

static void stretch(const timing *t, uint32_t cls, uint32_t task,
                    sc_time *start, sc_time *end)
{
    if (task == SC_NONE) return;
    const sc_task_span *s = &t->sim->span[t->rank[cls]][task];
    if (*start < 0 || s->start < *start) *start = s->start;
    if (s->end > *end) *end = s->end;
}

/* A task lasts from its first start to its last end on any device; a
 * transfer ends when it arrives. -1: the op has no task. */
static void task_times(const timing *t, sc_op i)
{
    const sc_graph *g = &t->w->plan.step;
    sc_time start = -1, end = -1, posted = 0;
    for (uint32_t k = sc_op_place(g, i); k < sc_op_place(g, i + 1); k++)
        stretch(t, g->cls[k], t->w->task[k], &start, &end);
    stretch(t, t->w->receiver[i], t->w->receive[i], &posted, &end);
    t->r->start[i] = start;
    t->r->end[i] = end;
}

/* Finds the dependency that ended last. */
static void because(timing *t, sc_op i, sc_op of)
{
    sc_result *r = t->r;
    bool early = r->start[i] >= 0 && r->end[of] > r->start[i];
    if (early || (r->cause[i] != SC_NONE && r->end[of] < t->ready[i])) return;
    r->cause[i] = of;
    t->ready[i] = r->end[of];
}

/* Of ops that overlap others of the compute stream only the remaining time
 * counts. */
static void in_stream(timing *t, sc_op i, sc_op *last)
{
    sc_result *r = t->r;
    if (*last != SC_NONE) {
        sc_time busy = r->end[*last];
        bool compute = t->w->plan.step.stream[i] == SC_S_COMPUTE;
        if (compute && r->start[i] < busy) r->start[i] = busy;
        if (compute && r->end[i] < busy) r->end[i] = busy;
        because(t, i, *last);
    }
    *last = i;
}

static void resolve(timing *t, sc_op i)
{
    const sc_graph *g = &t->w->plan.step;
    sc_result *r = t->r;
    uint32_t from = sc_op_place(g, i), to = sc_op_place(g, i + 1);
    if (r->start[i] < 0)
        r->start[i] = r->end[i] = t->ready[i];
    else
        for (uint32_t k = from; k < to; k++)
            in_stream(t, i, &t->last[g->cls[k] * SC_N_STREAMS + g->stream[i]]);
    for (uint32_t k = from; k < to; k++)
        if (r->end[i] > r->finish[g->cls[k]]) r->finish[g->cls[k]] = r->end[i];
    for (uint32_t k = g->succ_head[i]; k < g->succ_head[i + 1]; k++)
        because(t, g->succ[k], i);
}

static bool room(const sc_graph *g, sc_arena *a, timing *t)
{
    sc_result *r = t->r;
    r->n_ops = g->n_ops;
    r->start = SC_NEW_N(a, sc_time, g->n_ops);
    r->end = SC_NEW_N(a, sc_time, g->n_ops);
    r->cause = SC_NEW_N(a, sc_op, g->n_ops);
    r->shared = SC_NEW_N(a, sc_time, g->n_ops);
    r->overlapped = SC_NEW_N(a, sc_time, g->n_ops);
    r->finish = SC_NEW_N(a, sc_time, g->n_classes);
    t->ready = SC_NEW_N(a, sc_time, g->n_ops);
    t->rank = SC_NEW_N(a, uint32_t, t->w->work.n_classes);
    t->last = SC_NEW_N(a, sc_op, (size_t)g->n_classes * SC_N_STREAMS);
    return r->start && r->end && r->cause && r->shared && r->overlapped &&
           r->finish && t->ready && t->rank && t->last;
}

static sc_status result_of(const sc_net_workload *w,
                           const sc_simulate_result *sim, sc_arena *a,
                           sc_result *out, sc_err *err)
{
    const sc_graph *g = &w->plan.step;
    sc_result r = {.makespan = sim->makespan, .n_events = sim->n_events};
    timing t = {.w = w, .sim = sim, .r = &r};
    if (!room(g, a, &t)) return sc_error_nomem(err);
    for (uint32_t k = w->work.n_ranks; k-- > 0;)
        t.rank[w->work.ranks[k].cls] = k;
    memset(r.cause, 0xff, g->n_ops * sizeof *r.cause);
    memset(t.last, 0xff, (size_t)g->n_classes * SC_N_STREAMS * sizeof *t.last);
    for (sc_op i = 0; i < g->n_ops; i++) task_times(&t, i);
    for (sc_op i = 0; i < g->n_ops; i++) resolve(&t, i);
    *out = r;
    return SC_OK;
}

/* Collects the links of the machine that carried messages. */
static sc_status links_of(const sc_simulate_result *sim, sc_arena *a,
                          sc_result *r, sc_err *err)
{
    r->n_links = (uint32_t)sim->n_links;
    r->link = SC_NEW_N(a, uint64_t, r->n_links);
    r->link_bytes = SC_NEW_N(a, double, r->n_links);
    if (!r->link || !r->link_bytes) return sc_error_nomem(err);
    for (uint32_t i = 0; i < r->n_links; i++) {
        r->link[i] = sim->link[i].link;
        r->link_bytes[i] = (double)sim->link[i].bytes;
    }
    return SC_OK;
}

/* ---- the step ------------------------------------------------------------ */

static sc_status simulate(net_prediction *x, sc_net_step *step, sc_err *err)
{
    sc_net_workload *w = SC_NEW(x->a, sc_net_workload);
    site *s = SC_NEW(x->a, site);
    sc_simulate_result sim;
    if (!w || !s) return sc_error_nomem(err);
    SC_TRY(sc_net_plan_workload(step->job, 0, true, x->a, w, err));
    SC_TRY(open_site(x, step, &w->work, w->slow, s, err));
    SC_TRY(sc_simulate(&w->work, &s->system, &s->network, &s->pool, &s->o, x->a,
                       &sim, err));
    SC_TRY(sc_simulate_deadlock(&w->work, &sim, err));
    step->plan = w->plan;
    SC_TRY(result_of(w, &sim, x->a, &step->run, err));
    if (s->o.hw) SC_TRY(links_of(&sim, x->a, &step->run, err));
    SC_TRY(predict_net_memory(x, x->a, step, err));
    predict_net_parts(step);
    return SC_OK;
}

static sc_status simulate_some(net_prediction *x, const sc_net_step *of,
                               uint32_t ga, sc_net_step *out, sc_err *err)
{
    sc_net_run *job = SC_NEW(x->a, sc_net_run);
    if (!job) return sc_error_nomem(err);
    *job = *of->job;
    job->ga = ga;
    *out = (sc_net_step){.job = job};
    return simulate(x, out, err);
}

/* If the step is composed from two short ones, these are simulated, too. */
sc_status predict_net_simulate(net_prediction *x, sc_net_step *step,
                               sc_err *err)
{
    uint32_t pp = (uint32_t)sc_strategy_degree(step->job->strategy, SC_AX_PP);
    sc_net_step one, two;
    if (x->hw->n_devices < 2) return SC_OK; /* there are no exchanges */
    step->clock_s = NAN;
    if (!step->low) return simulate(x, step, err);
    SC_TRY(simulate_some(x, step, step->low, &one, err));
    SC_TRY(simulate_some(x, step, step->low + pp, &two, err));
    predict_net_compose(x, step->low, &one, &two, step);
    return SC_OK;
}
