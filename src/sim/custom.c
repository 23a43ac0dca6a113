/* SPDX-License-Identifier: Apache-2.0 */
/*
 * custom.c - a collective whose messages are in a trace: one file per member,
 * with sends, receives and kernels that start as soon as their predecessors
 * have ended.  Peers are positions in the group; sizes are the trace's.
 */
#include "sim/world.h"

typedef struct sim_custom {
    sim_stream *stream;
    const sc_task_list *tasks;
    const sc_rank_trace *trace;
    uint32_t *left;
    uint32_t going;
} sim_custom;

static void start(sim_world *w, sim_custom *c, uint32_t task)
{
    const sc_task_list *t = c->tasks;
    sim_stream *s = c->stream;
    sim_rank *r = s->rank;
    c->going++;
    uint8_t kind = t->kind[task];
    if (kind != SC_TASK_SEND && kind != SC_TASK_RECV) {
        sc_time d = t->duration[task];
        sim_later(w, r, d > 0 ? d : w->rules->quantum, SIM_CALL_CUSTOM, c, 0,
                  task);
        return;
    }
    uint32_t place = c->trace->peers[t->peer[task]];
    uint32_t peer = sim_comm_rank(w, s->coll->comm, place);
    sim_pair_key key = {.space = s->coll,
                        .size = t->size[task],
                        .src = r->id,
                        .dst = peer,
                        .tag = c->trace->tags[t->tag[task]]};
    if (kind == SC_TASK_SEND) {
        sim_pair_send(w, key, c, task);
        return;
    }
    key.src = peer;
    key.dst = r->id;
    sim_pair_receive(w, key, c, task);
}

void sim_custom_start(sim_world *w, sim_stream *s)
{
    const sc_workload *all = s->coll->schedule->custom;
    sim_custom *c = sim_mem_alloc(w, sizeof *c);
    c->stream = s;
    c->trace = &all->ranks[s->member];
    c->tasks = &all->classes[c->trace->cls];
    uint32_t n = c->tasks->n_tasks;
    c->left = sim_mem_alloc(w, n * sizeof *c->left);
    if (w->status != SC_OK) return;
    for (uint32_t i = 0; i < n; i++) c->left[i] = c->tasks->n_preds[i];
    for (uint32_t i = 0; i < n; i++)
        if (c->tasks->n_preds[i] == 0) start(w, c, i);
}

void sim_custom_done(sim_world *w, void *custom, uint32_t task)
{
    sim_custom *c = custom;
    const sc_task_list *t = c->tasks;
    c->going--;
    for (uint32_t i = t->succ_head[task]; i < t->succ_head[task + 1]; i++)
        if (--c->left[t->succ[i]] == 0) start(w, c, t->succ[i]);
    if (c->going > 0 || w->status != SC_OK) return;
    sim_stream *s = c->stream;
    sim_mem_free(w, c->left, t->n_tasks * sizeof *c->left);
    sim_mem_free(w, c, sizeof *c);
    sim_stream_leave(w, s);
}

sc_workload *sim_custom_read(sim_world *w, const char *prefix, uint32_t n)
{
    sc_workload *all = SC_NEW(w->a, sc_workload);
    if (!all) {
        w->status = sc_error_nomem(w->err);
        return NULL;
    }
    sc_trace_opts o = {0};
    w->status = sc_trace_read(prefix, n, &o, w->a, all, w->err);
    if (w->status == SC_OK) w->status = sim_tasks_check(all, w->err);
    return w->status == SC_OK ? all : NULL;
}
