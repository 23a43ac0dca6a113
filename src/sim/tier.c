/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tier.c - remote memory in tiers.
 *
 * Memory groups sit behind switches outside the nodes; a link leads to them
 * from each node, and a link from each GPU to the switch of its node (Won et
 * al., "ASTRA-sim2.0", ISPASS 2023, disaggregated memory). Bytes are spread
 * evenly over all memory groups, so these act as one stage with the sum of
 * their rates. A transfer passes three stages in chunks, a store in reverse.
 * The first chunk passes one stage after the other, the rest follows through
 * all of them at once:
 *
 *  sum of latencies + sum of chunk / rate + (bytes - chunk) / slowest rate
 *
 * Transfers that use a stage at the same time share its rate, max-min fair over
 * all stages. Loads and stores have separate links; the memory serves both.
 *
 * In-switch collectives: the GPUs of a node that load and store the same sizes
 * in the same order do so together. A load comes to their switch once and is
 * multicast; stores are added there and leave once.
 */
#include "net/net_flow.h"
#include "sim/world.h"

#include <string.h>

#define STAGES 3

typedef struct user {
    sim_rank *rank;
    uint32_t task;
    sc_time since;
} user;

typedef struct transfer {
    struct transfer *next; /* transfers of the node that wait for members */
    uint32_t ordinal, node;
    bool store;
    uint32_t stage; /* stage that the first chunk passes; STAGES: the rest */
    uint32_t n, cap;
    uint64_t first, rest; /* bytes */
    user *user;           /* [cap] */
    uint32_t *link;       /* [2 + cap] */
} transfer;

typedef struct node {
    uint32_t members; /* ranks that share transfers; 0: none do */
    transfer *waiting;
} node;

struct sim_tier {
    sim_ticker ticker;
    uint32_t n_nodes, out, in; /* first links */
    node *node;
    uint32_t **ordinal; /* [n_classes][n_tasks] of loads and stores */
};

/* ---- which transfers are equal ----------------------------------------- */

static bool is_access(const sc_task_list *t, uint32_t i)
{
    return t->kind[i] == SC_TASK_LOAD || t->kind[i] == SC_TASK_STORE;
}

static bool number(sim_world *w, struct sim_tier *x)
{
    x->ordinal = sc_alloc(w->a, w->w->n_classes, sizeof *x->ordinal);
    for (uint32_t c = 0; x->ordinal && c < w->w->n_classes; c++) {
        const sc_task_list *t = &w->w->classes[c];
        x->ordinal[c] = sc_alloc(w->a, t->n_tasks, sizeof **x->ordinal);
        if (!x->ordinal[c] && t->n_tasks) return false;
        for (uint32_t i = 0, n = 0; i < t->n_tasks; i++)
            if (is_access(t, i)) x->ordinal[c][i] = n++;
    }
    return x->ordinal != NULL;
}

/* Whether the same sizes are loaded and stored in the same order. */
static bool alike(const sc_task_list *a, const sc_task_list *b)
{
    uint32_t i = 0, k = 0;
    for (;; i++, k++) {
        while (i < a->n_tasks && !is_access(a, i)) i++;
        while (k < b->n_tasks && !is_access(b, k)) k++;
        if (i == a->n_tasks || k == b->n_tasks) break;
        if (a->kind[i] != b->kind[k] || a->size[i] != b->size[k]) return false;
    }
    return i == a->n_tasks && k == b->n_tasks;
}

static uint32_t sharers(const sim_world *w, uint32_t first, uint32_t end)
{
    const sc_workload *x = w->w;
    for (uint32_t r = first + 1; r < end; r++)
        if (x->ranks[r].cls != x->ranks[r - 1].cls &&
            !alike(&x->classes[x->ranks[r].cls],
                   &x->classes[x->ranks[r - 1].cls]))
            return 0;
    return end - first > 1 ? end - first : 0;
}

/* ---- flows ------------------------------------------------------------- */

static void out_of_memory(sim_world *w)
{
    if (w->status == SC_OK) w->status = sc_error_nomem(w->err);
}

static void post(sim_world *w, transfer *t)
{
    const sc_pool *p = w->pool;
    struct sim_tier *x = w->tier;
    sc_flow f = {.weight = 1, .tag = (uint64_t)(uintptr_t)t};
    uint32_t at = t->store ? STAGES - 1 - t->stage : t->stage;
    f.bytes = t->stage < STAGES ? t->first : t->rest;
    if (t->stage == 0)
        f.latency = sim_ns(w, p->latency_ns + p->out_node_latency_ns +
                                  p->in_node_latency_ns);
    if (t->stage == STAGES) {
        f.links = t->link;
        f.n_links = 2 + t->n;
    } else { /* the GPUs' links at once */
        f.links = t->link + at;
        f.n_links = at == 2 ? t->n : 1;
    }
    if (f.bytes == 0) f.n_links = 0;
    if (sc_flows_post(x->ticker.flows, &f, w->q.order.now) == SC_FLOW_NONE)
        out_of_memory(w);
}

static void finish(sim_world *w, transfer *t)
{
    for (uint32_t i = 0; i < t->n; i++) {
        user *u = &t->user[i];
        u->rank->out.memory += w->q.order.now - u->since;
        sim_later(w, u->rank, 0, SIM_CALL_TASK, NULL, 0, u->task);
    }
    sim_mem_free(w, t->user, t->cap * sizeof *t->user);
    sim_mem_free(w, t->link, (2 + t->cap) * sizeof *t->link);
    sim_mem_free(w, t, sizeof *t);
}

/* The first chunk has passed a stage: the next stage, or the rest follows. */
static void advance(sim_world *w, transfer *t)
{
    if (t->stage == STAGES || (t->stage == STAGES - 1 && t->rest == 0)) {
        finish(w, t);
        return;
    }
    t->stage++;
    post(w, t);
}

void sim_tier_resolve(sim_world *w)
{
    sim_ticker_resolve(w, &w->tier->ticker);
}

void sim_tier_tick(sim_world *w, sim_event *e)
{
    const sc_flow_end *end;
    uint32_t n = sim_ticker_ends(w, &w->tier->ticker, e, &end);
    for (uint32_t i = 0; i < n && w->status == SC_OK; i++) {
        /* NOLINTNEXTLINE(performance-no-int-to-ptr): a tag is the transfer */
        advance(w, (transfer *)(uintptr_t)end[i].tag);
    }
}

/* ---- requests ---------------------------------------------------------- */

static transfer *new_transfer(sim_world *w, const sim_rank *r, uint32_t task,
                              uint32_t cap)
{
    struct sim_tier *x = w->tier;
    transfer *t = sim_mem_alloc(w, sizeof *t);
    t->user = sim_mem_alloc(w, cap * sizeof *t->user);
    t->link = sim_mem_alloc(w, (2 + cap) * sizeof *t->link);
    if (w->status != SC_OK) return NULL;
    uint64_t bytes = r->tasks->size[task];
    uint64_t chunk = w->pool->chunk_bytes;
    if (chunk == 0) chunk = bytes;
    t->cap = cap;
    t->node = r->id / w->pool->npus_per_node;
    t->store = r->tasks->kind[task] == SC_TASK_STORE;
    t->first = bytes < chunk ? bytes : chunk;
    t->rest = bytes - t->first;
    t->link[0] = 0;
    t->link[1] = x->out + 2 * t->node + t->store;
    return t;
}

static void join(sim_world *w, transfer *t, sim_rank *r, uint32_t task)
{
    t->link[2 + t->n] = w->tier->in + 2 * r->id + t->store;
    t->user[t->n++] = (user){r, task, w->q.order.now};
}

/* The place of a waiting transfer in its node's list, or of its successor. */
static transfer **place(node *n, uint32_t ordinal)
{
    transfer **at = &n->waiting;
    while (*at && (*at)->ordinal < ordinal) at = &(*at)->next;
    return at;
}

void sim_tier_issue(sim_world *w, sim_rank *r, uint32_t task)
{
    struct sim_tier *x = w->tier;
    node *n = &x->node[r->id / w->pool->npus_per_node];
    if (n->members == 0) {
        transfer *t = new_transfer(w, r, task, 1);
        if (!t) return;
        join(w, t, r, task);
        post(w, t);
        return;
    }
    uint32_t ordinal = x->ordinal[r->trace->cls][task];
    transfer **at = place(n, ordinal), *t = *at;
    if (!t || t->ordinal != ordinal) {
        t = new_transfer(w, r, task, n->members);
        if (!t) return;
        t->ordinal = ordinal;
        t->next = *at;
        *at = t;
    }
    join(w, t, r, task);
    if (t->n < n->members) return;
    *at = t->next;
    post(w, t);
}

/* If nothing else can happen, incomplete transfers go on without the missing
 * members, and their nodes share no more. */
bool sim_tier_release(sim_world *w)
{
    struct sim_tier *x = w->tier;
    bool any = false;
    for (uint32_t i = 0; x && i < x->n_nodes; i++) {
        node *n = &x->node[i];
        while (n->waiting) {
            transfer *t = n->waiting;
            n->waiting = t->next;
            n->members = 0;
            any = true;
            post(w, t);
        }
    }
    return any && w->status == SC_OK;
}

/* ---- set-up ------------------------------------------------------------ */

static void add_links(struct sim_tier *x, uint32_t n, double bytes_per_ns)
{
    for (uint32_t i = 0; i < n; i++)
        (void)sc_flows_add_link(x->ticker.flows, bytes_per_ns * 1e9);
}

sc_status sim_tier_init(sim_world *w)
{
    const sc_pool *p = w->pool;
    if (p->kind != SC_POOL_HIERARCHICAL) return SC_OK;
    uint32_t per_node = p->npus_per_node, n_ranks = w->w->n_ranks;
    struct sim_tier *x = w->tier = SC_NEW(w->a, struct sim_tier);
    if (!x) return sc_error_nomem(w->err);
    SC_TRY(sc_flows_new(w->a, &x->ticker.flows, w->err));
    x->ticker.due = -1;
    x->ticker.kind = SIM_EV_TIER;
    x->n_nodes = (n_ranks + per_node - 1) / per_node;
    x->node = SC_NEW_N(w->a, node, x->n_nodes);
    x->out = 1;
    x->in = x->out + 2 * x->n_nodes;
    add_links(x, 1, p->bytes_per_ns * p->groups);
    add_links(x, 2 * x->n_nodes, p->out_node_bytes_per_ns);
    add_links(x, 2 * n_ranks - 1, p->in_node_bytes_per_ns);
    uint32_t last =
        sc_flows_add_link(x->ticker.flows, p->in_node_bytes_per_ns * 1e9);
    if (last == SC_FLOW_NONE || !x->node || !number(w, x))
        return sc_error_nomem(w->err);
    for (uint32_t i = 0; p->in_switch_collectives && i < x->n_nodes; i++) {
        uint32_t first = i * per_node, end = first + per_node;
        x->node[i].members = sharers(w, first, end < n_ranks ? end : n_ranks);
    }
    return SC_OK;
}
