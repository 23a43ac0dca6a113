/* SPDX-License-Identifier: Apache-2.0 */
/* workload.c - sets up a world, runs it, collects what it gave. */
#include "sim/world.h"

#include <math.h>

void sc_simulate_opts_init(sc_simulate_opts *o)
{
    *o = (sc_simulate_opts){.rules = sc_rules_find(NULL),
                            .links = true,
                            .queues = 1,
                            .endpoint = 1,
                            .fold = true};
}

static sc_status check(const sim_world *w)
{
    if (w->w->n_ranks > w->n_npus)
        return sc_error(w->err, SC_EINPUT, SC_C_CONFLICT, (sc_pos){0},
                        "the product of its dimensions must be the ranks",
                        "%u ranks on a network of %u", w->w->n_ranks,
                        w->n_npus);
    return SC_OK;
}

static sc_status init_rank(sim_world *w, uint32_t i, uint32_t id)
{
    sim_rank *r = &w->rank[i];
    uint32_t lanes = w->net->n_dims * w->o->queues * w->comm_slots;
    r->id = id;
    r->trace = &w->w->ranks[id];
    r->tasks = &w->w->classes[r->trace->cls];
    r->lanes = sc_alloc(w->a, lanes, sizeof *r->lanes);
    r->picks = sc_alloc(w->a, w->net->n_dims, sizeof *r->picks);
    r->trees = sc_alloc(w->a, SC_N_CCL_OPS * w->net->n_dims, 1);
    r->lanes_used = sc_alloc(w->a, w->comm_slots, sizeof *r->lanes_used);
    if (!r->lanes || !r->picks || !r->trees || !r->lanes_used)
        return sc_error_nomem(w->err);
    for (uint32_t d = 0; d < w->net->n_dims; d++)
        r->picks[d].last = w->o->queues / 2;
    return SC_OK;
}

static sc_status init_ranks(sim_world *w)
{
    SC_TRY(sim_fold(w));
    w->rank = sc_alloc(w->a, w->n_ranks, sizeof *w->rank);
    w->by_group = sc_alloc(w->a, (size_t)w->w->n_groups + w->w->n_jobs,
                           sizeof(sim_comm *));
    if (!w->rank || !w->by_group) return sc_error_nomem(w->err);
    for (uint32_t i = 0; i < w->n_ranks; i++)
        SC_TRY(init_rank(w, i, w->folded ? w->stand_in[i] : i));
    return SC_OK;
}

/* More slots than a rank has tasks are never taken. */
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
    w->lane_limit = (active + w->o->queues - 1) / w->o->queues;
    w->meets = !w->rules->collectives_start_alone && !s->replay_only;
    w->comm_slots = 1;
    if (w->meets && s->comm_slots > 1) w->comm_slots = useful_slots(w);
}

static sc_status collect(sim_world *w, sc_simulate_result *out)
{
    uint32_t n = w->w->n_ranks;
    out->n_ranks = n;
    out->n_simulated = w->n_ranks;
    out->n_events = w->n_events;
    out->n_messages = w->n_messages;
    out->n_tasks = w->n_tasks;
    out->warnings = w->warnings ? w->warnings : "";
    out->rank = sc_alloc(w->a, n, sizeof *out->rank);
    if (!out->rank) return sc_error_nomem(w->err);
    for (uint32_t i = 0; i < n; i++) {
        sc_rank_times *t = &out->rank[i];
        *t = w->rank[w->index[i]].out;
        if (w->rules->idle_is_exposed) t->exposed = t->finish - t->compute;
        out->n_finished += t->finished;
        if (t->finished && t->finish > out->makespan) out->makespan = t->finish;
    }
    return SC_OK;
}

sc_status sim_world_init(sim_world *w)
{
    init_scalars(w);
    SC_TRY(check(w));
    SC_TRY(sim_wire_init(w));
    SC_TRY(sim_offload_init(w));
    SC_TRY(init_ranks(w));
    SC_TRY(sim_meet_init(w));
    SC_TRY(sim_tasks_init(w));
    SC_TRY(sim_pair_init(w));
    return sim_pool_init(w);
}

void sim_world_run(sim_world *w)
{
    for (uint32_t i = 0; i < w->n_ranks; i++) sim_task_begin(w, &w->rank[i]);
    sim_loop(w);
}

sc_status sc_simulate(const sc_workload *w, const sc_system *sys,
                      const sc_network *net, const sc_pool *pool,
                      const sc_simulate_opts *o, sc_arena *a,
                      sc_simulate_result *out, sc_err *err)
{
    sc_err own;
    sc_err_init(&own);
    sim_world *x = SC_NEW(a, sim_world);
    if (!x) return sc_error_nomem(err);
    x->w = w;
    x->sys = sys;
    x->net = net;
    x->pool = pool;
    x->o = o;
    x->a = a;
    x->err = err ? err : &own;
    SC_TRY(sim_world_init(x));
    sim_world_run(x);
    if (x->status != SC_OK) return x->status;
    *out = (sc_simulate_result){0};
    return collect(x, out);
}
