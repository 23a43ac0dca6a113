/* SPDX-License-Identifier: Apache-2.0 */
/* workload.c - sets up a world, runs it and collects the results. */
#include "sim/compat/compat.h"

#include <math.h>

void sc_simulate_opts_init(sc_simulate_opts *o)
{
    *o = (sc_simulate_opts){.rules = sc_rules_find(NULL),
                            .links = true,
                            .queues = 1,
                            .endpoint = 1,
                            .symmetry = true};
}

/* What is missing to simulate an exchange; NULL: nothing. */
static const char *lacks(const sc_task_list *t, uint32_t i)
{
    if (t->flags[i] & SC_TASK_NO_COMM)
        return "neither the collective nor the peer is given";
    bool barrier = t->kind[i] == SC_TASK_COLL && t->coll[i] == SC_BARRIER;
    if (t->kind[i] < SC_TASK_SEND || barrier) return NULL;
    return t->flags[i] & SC_TASK_NO_SIZE ? "comm_size is missing" : NULL;
}

sc_status sim_tasks_check(const sc_workload *w, sc_err *err)
{
    for (uint32_t r = 0; r < w->n_ranks; r++) {
        uint32_t cls = w->ranks[r].cls;
        const sc_task_list *t = &w->classes[cls];
        if (r > 0 && cls <= w->ranks[r - 1].cls) continue; /* seen */
        char file[SIM_PATH];
        for (uint32_t i = 0; i < t->n_tasks; i++) {
            const char *what = lacks(t, i);
            if (!what) continue;
            return sc_error(err, SC_EINPUT, SC_C_MISSING,
                            sim_rank_pos(w, r, file, sizeof file),
                            "with replay-only the recorded time is used",
                            "rank %u, task %llu: %s", r,
                            (unsigned long long)t->id[i], what);
        }
    }
    return SC_OK;
}

/* Whether some node does more than describe a group or a process. */
static bool does_something(const sc_workload *w)
{
    for (uint32_t c = 0; c < w->n_classes; c++) {
        const sc_task_list *t = &w->classes[c];
        for (uint32_t i = 0; i < t->n_tasks; i++)
            if (t->kind[i] != SC_TASK_INVALID && t->kind[i] != SC_TASK_METADATA)
                return true;
    }
    return false;
}

static sc_status check(const sim_world *w)
{
    char file[SIM_PATH];
    if (!does_something(w->w))
        return sc_error(w->err, SC_EINPUT, SC_C_MISSING,
                        sim_rank_pos(w->w, 0, file, sizeof file),
                        "a trace of a training step has kernels or messages",
                        "an empty workload: all nodes are metadata");
    if (w->w->n_ranks > w->n_npus)
        return sc_error(w->err, SC_EINPUT, SC_C_CONFLICT, w->net->pos,
                        "the product of its dimensions must be the ranks",
                        "%u ranks on a network of %u", w->w->n_ranks,
                        w->n_npus);
    return SC_OK;
}

/* The speed of the rank's device relative to that of rank 0. */
static void init_device(const sim_world *w, sim_rank *r)
{
    const sc_hw *hw = w->o->devices;
    r->peak_share = r->mem_share = 1;
    if (!hw || r->id >= hw->n_devices) return;
    const sc_device *mine = sc_hw_device_at(hw, r->id);
    const sc_device *first = sc_hw_device_at(hw, 0);
    if (mine->peak[SC_BF16] > 0 && first->peak[SC_BF16] > 0)
        r->peak_share = mine->peak[SC_BF16] / first->peak[SC_BF16];
    else if (mine->peak[SC_FP16] > 0 && first->peak[SC_FP16] > 0)
        r->peak_share = mine->peak[SC_FP16] / first->peak[SC_FP16];
    if (mine->mem_bw > 0 && first->mem_bw > 0)
        r->mem_share = mine->mem_bw / first->mem_bw;
}

static sc_status init_rank(sim_world *w, uint32_t i, uint32_t id)
{
    sim_rank *r = &w->rank[i];
    uint32_t queues = w->net->n_dims * w->o->queues * w->comm_slots;
    r->id = id;
    r->trace = &w->w->ranks[id];
    r->tasks = &w->w->classes[r->trace->cls];
    init_device(w, r);
    r->queues = sc_alloc(w->a, queues, sizeof *r->queues);
    r->next_queue = sc_alloc(w->a, w->net->n_dims, sizeof *r->next_queue);
    r->trees = sc_alloc(w->a, (size_t)SC_N_CCL_OPS * w->net->n_dims, 1);
    r->slot_used = sc_alloc(w->a, w->comm_slots, sizeof *r->slot_used);
    if (!r->queues || !r->next_queue || !r->trees || !r->slot_used)
        return sc_error_nomem(w->err);
    for (uint32_t d = 0; d < w->net->n_dims; d++)
        r->next_queue[d].last = w->o->queues / 2;
    return SC_OK;
}

static sc_status init_ranks(sim_world *w)
{
    SC_TRY(sim_symmetry(w));
    w->rank = sc_alloc(w->a, w->n_ranks, sizeof *w->rank);
    w->by_group = sc_alloc(w->a, (size_t)w->w->n_groups + w->w->n_jobs,
                           sizeof(sim_comm *));
    if (!w->rank || !w->by_group) return sc_error_nomem(w->err);
    for (uint32_t i = 0; i < w->n_ranks; i++)
        SC_TRY(init_rank(w, i, w->symmetric ? w->representative[i] : i));
    return SC_OK;
}

/* A rank never uses more slots than it has tasks. */
static uint32_t useful_slots(const sim_world *w)
{
    uint32_t most = 1;
    for (uint32_t i = 0; i < w->w->n_classes; i++)
        if (w->w->classes[i].n_tasks > most) most = w->w->classes[i].n_tasks;
    return w->sys->comm_slots < most ? w->sys->comm_slots : most;
}

static void init_scalars(sim_world *w)
{
    const sc_system *s = w->sys;
    uint32_t active = s->active_chunks ? s->active_chunks : 1;
    w->rules = w->o->rules;
    w->n_npus = w->net->n_ranks;
    sc_time e = sim_ns(w, s->endpoint_delay_ns);
    w->endpoint = sim_ns(w, (double)e / 1000 * w->o->endpoint);
    w->queue_limit = (active + w->o->queues - 1) / w->o->queues;
    w->together = !w->rules->collectives_start_alone && !s->replay_only;
    w->comm_slots = 1;
    if (!w->rules->collectives_start_alone && s->comm_slots > 1)
        w->comm_slots = useful_slots(w);
    w->hooks = (sim_hooks){.queue = sim_stream_queue,
                           .split = sim_schedule_split,
                           .halving = sim_plan_halving};
    sim_compat_init(w);
}

static sc_status collect_spans(sim_world *w, sc_simulate_result *out)
{
    if (!w->o->record) return SC_OK;
    out->span = SC_NEW_N(w->a, sc_task_span *, out->n_ranks);
    if (!out->span) return sc_error_nomem(w->err);
    for (uint32_t i = 0; i < out->n_ranks; i++)
        out->span[i] = w->rank[w->index[i]].span;
    return SC_OK;
}

/* A run takes at least as long as its most loaded link needs. */
static void last_link(sim_world *w, sc_simulate_result *out)
{
    uint32_t dim = 0;
    sc_time most = sim_loads_most(w, &dim);
    if (most <= out->makespan) return;
    sim_warn(w, SIM_WARN_LINKS,
             "the makespan is the time that the most loaded link of dimension "
             "%u needs for what it carries; the closed formulas of its "
             "messages end %.1f %% earlier; --fidelity chunk simulates how "
             "messages wait for links",
             dim, 100 - 100 * (double)out->makespan / (double)most);
    out->makespan = most;
}

static sc_status collect(sim_world *w, sc_simulate_result *out)
{
    uint32_t n = w->w->n_ranks;
    out->n_ranks = n;
    out->n_simulated = w->n_ranks;
    out->n_events = w->n_events;
    out->n_messages = w->n_messages;
    out->n_tasks = w->n_tasks;
    out->rank = sc_alloc(w->a, n, sizeof *out->rank);
    if (!out->rank) return sc_error_nomem(w->err);
    for (uint32_t i = 0; i < n; i++) {
        sc_rank_times *t = &out->rank[i];
        *t = w->rank[w->index[i]].out;
        t->idle = t->finish - t->compute - t->exposed - t->stalled;
        if (w->rules->idle_is_exposed) {
            t->exposed = t->finish - t->compute;
            t->stalled = t->idle = 0;
        }
        out->n_finished += t->finished;
        if (t->finished && t->finish > out->makespan) out->makespan = t->finish;
    }
    if (out->n_finished == n) {
        sim_pair_unreceived(w);
        last_link(w, out);
    }
    out->warnings = w->warnings ? w->warnings : "";
    SC_TRY(collect_spans(w, out));
    return sim_links_use(w, out);
}

sc_status sim_world_init(sim_world *w)
{
    init_scalars(w);
    w->blocks.a = w->a;
    SC_TRY(check(w));
    /* incomplete exchanges can only be replayed */
    if (!w->sys->replay_only) SC_TRY(sim_tasks_check(w->w, w->err));
    SC_TRY(sim_wire_init(w));
    SC_TRY(sim_in_network_init(w));
    SC_TRY(init_ranks(w));
    SC_TRY(sim_loads_init(w));
    SC_TRY(sim_rendezvous_init(w));
    SC_TRY(sim_tasks_init(w));
    SC_TRY(sim_pair_init(w));
    return sim_pool_init(w);
}

void sim_world_run(sim_world *w)
{
    for (uint32_t i = 0; i < w->n_ranks; i++) sim_task_begin(w, &w->rank[i]);
    sim_loop(w);
}

static sc_status run(const sim_request *q, const sc_simulate_opts *o,
                     sc_arena *a, sim_world *x, sc_simulate_result *out,
                     sc_err *err)
{
    *x = (sim_world){.w = q->w,
                     .sys = q->sys,
                     .net = q->net,
                     .pool = q->pool,
                     .o = o,
                     .a = a,
                     .err = err};
    SC_TRY(sim_world_init(x));
    sim_world_run(x);
    *out = (sc_simulate_result){0};
    if (x->disorder) return SC_OK;
    SC_TRY(x->status);
    return collect(x, out);
}

bool sim_is_stuck(const sim_world *x, const sc_simulate_result *out)
{
    return x->disorder || out->n_finished < x->w->n_ranks;
}

/* As run(); if it gets stuck, once more with all ranks simulated. */
sc_status sim_run_apart(const sim_request *q, sc_simulate_opts *o, sc_arena *a,
                        sim_world *x, sc_simulate_result *out, sc_err *err)
{
    SC_TRY(run(q, o, a, x, out, err));
    if (!sim_is_stuck(x, out) || !x->symmetric) return SC_OK;
    o->symmetry = false;
    return run(q, o, a, x, out, err);
}

sc_status sc_simulate(const sc_workload *w, const sc_system *sys,
                      const sc_network *net, const sc_pool *pool,
                      const sc_simulate_opts *o, sc_arena *a,
                      sc_simulate_result *out, sc_err *err)
{
    sc_err own;
    sc_err_init(&own);
    if (!err) err = &own;
    sim_request q = {w, sys, net, pool};
    sc_simulate_opts plain = *o;
    sim_world *x = SC_NEW(a, sim_world);
    if (!x) return sc_error_nomem(err);
    SC_TRY(sim_run_apart(&q, &plain, a, x, out, err));
    if (!sim_is_stuck(x, out)) return SC_OK;
    if (!x->disorder) SC_TRY(sim_deadlock(x, out));
    if (!o->rules->collectives_start_alone) return SC_OK;
    plain.symmetry = o->symmetry;
    return sim_run_together(&q, &plain, a, x, out, err);
}
