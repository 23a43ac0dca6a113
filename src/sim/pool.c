/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool.c - loads and stores of remote memory.
 *
 * An access takes latency + bytes / rate; ranks that share a memory are served
 * one after the other. Memory in tiers is in tier.c.
 */
#include "sim/world.h"

#include <math.h>

typedef struct request {
    struct request *next;
    sim_rank *rank;
    uint32_t task;
} request;

typedef struct server {
    bool busy;
    request *head, *tail;
} server;

struct sim_memory {
    server *server; /* one, or one per node */
};

static server *server_of(sim_world *w, const sim_rank *r)
{
    switch (w->pool->kind) {
    case SC_POOL_PER_NODE:
        return &w->memory->server[r->id / w->pool->npus_per_node];
    case SC_POOL_SHARED: return &w->memory->server[0];
    default: return NULL;
    }
}

static void serve(sim_world *w, server *s, sim_rank *r, uint32_t task)
{
    const sc_pool *p = w->pool;
    double rate =
        w->rules->quantum > 1 ? floor(p->bytes_per_ns) : p->bytes_per_ns;
    sc_time t = sim_ns(w, p->latency_ns) +
                sim_ns(w, (double)r->tasks->size[task] / rate);
    r->out.memory += t;
    sim_later(w, r, t, SIM_CALL_TASK, NULL, 0, task);
    if (!s) return;
    sim_later(w, r, t, SIM_CALL_POOL, s, 0, 0);
    s->busy = true;
}

void sim_pool_issue(sim_world *w, sim_rank *r, uint32_t task)
{
    if (w->pool->kind == SC_POOL_NONE) {
        char file[SIM_PATH];
        w->status = sc_error(w->err, SC_EINPUT, SC_C_CONFLICT,
                             sim_rank_pos(w->w, r->id, file, sizeof file),
                             "give --memory a file with a memory-type",
                             "rank %u, task %llu loads or stores remote "
                             "memory, which the system does not have",
                             r->id, (unsigned long long)r->tasks->id[task]);
        return;
    }
    if (w->tier) {
        sim_tier_issue(w, r, task);
        return;
    }
    server *s = server_of(w, r);
    if (!s || !s->busy) {
        serve(w, s, r, task);
        return;
    }
    request *q = sim_mem_alloc(w, sizeof *q);
    q->rank = r;
    q->task = task;
    if (s->tail)
        s->tail->next = q;
    else
        s->head = q;
    s->tail = q;
}

void sim_pool_next(sim_world *w, sim_call *c)
{
    server *s = c->what;
    request *q = s->head;
    s->busy = false;
    if (!q) return;
    s->head = q->next;
    if (!s->head) s->tail = NULL;
    serve(w, s, q->rank, q->task);
    sim_mem_free(w, q, sizeof *q);
}

sc_status sim_pool_init(sim_world *w)
{
    uint32_t n = 1, per_node = w->pool->npus_per_node;
    bool nodes = w->pool->kind == SC_POOL_PER_NODE ||
                 w->pool->kind == SC_POOL_HIERARCHICAL;
    if (nodes) {
        n = (w->n_npus + per_node - 1) / per_node;
        if (w->pool->nodes < n)
            return sc_error(
                w->err, SC_EINPUT, SC_C_CONFLICT, w->pool->pos,
                "num-nodes x num-npus-per-node has to be the number of ranks",
                "the memory file has %u nodes of %u, the network "
                "%u ranks",
                w->pool->nodes, per_node, w->n_npus);
    }
    w->memory = SC_NEW(w->a, struct sim_memory);
    if (w->memory) w->memory->server = SC_NEW_N(w->a, server, n);
    if (!w->memory || !w->memory->server) return sc_error_nomem(w->err);
    return sim_tier_init(w);
}
