/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emit.c - a replay as tasks of ranks, with gaps of the host, the order of
 * devices and flows of data as dependencies.
 *
 * Delays of the graph are no tasks: what waits for one waits for what it waits
 * for.
 */
#include "replay/model.h"

#include <string.h>

typedef struct edge {
    uint32_t before, after; /* tasks */
} edge;

typedef struct emitter {
    const sc_replay_model *m;
    const sc_replay_result *r;
    sc_arena *a, *tmp;
    sc_err *err;
    uint32_t rank;  /* of which tasks are listed */
    uint32_t *coll; /* [n_ops] the collective of several ranks that an op is;
                          REPLAY_NONE */
    uint32_t *task; /* [n_ops] of this rank; REPLAY_NONE: none */
    uint32_t
        *in_head; /* [n_ops + 1] predecessors of ops, with those in queues */
    sc_op *in;
    edge *edges;
    uint32_t n, n_edges, cap_edges;
    sc_op *seen;        /* [n_ops] the op for which it was visited, plus 1 */
    sc_op *stack;       /* [n_ops] to visit */
    sc_op *flow_head;   /* [n_ops] the last flow into an op, plus 1 */
    sc_op *flow_next;   /* [flows of the rank] the one before it */
    sc_op *flow_from;   /* [flows of the rank] op */
    uint64_t n_unknown; /* collectives with a duration only */
    sc_map groups;      /* numbers of w->groups by their members */
    uint32_t cap_groups;
    uint32_t *group_slot; /* [n_groups] of this rank; REPLAY_NONE */
    uint32_t *peer_slot;  /* [n_ranks] the same */
    uint32_t *slots[2];   /* groups and peers of this rank by slot */
    sc_workload *w;
} emitter;

static bool queued(const sc_graph *g, sc_op i)
{
    return replay_queue(g, i) != SC_NONE;
}

/* ---- predecessors -------------------------------------------------------- */

/* The lists of predecessors; ops of a queue follow each other. */
static sc_status list_predecessors(emitter *e)
{
    const sc_graph *g = e->r->graph;
    size_t queues = (size_t)g->n_classes * SC_N_STREAMS;
    sc_op *last = SC_RAW_N(e->tmp, sc_op, queues);
    uint32_t *at = SC_NEW_N(e->tmp, uint32_t, (size_t)g->n_ops + 1);
    e->in_head = SC_NEW_N(e->tmp, uint32_t, (size_t)g->n_ops + 2);
    e->in = SC_RAW_N(e->tmp, sc_op, (size_t)g->n_deps + g->n_ops);
    if (!last || !at || !e->in_head || !e->in) return sc_error_nomem(e->err);
    for (sc_op i = 0; i < g->n_ops; i++)
        e->in_head[i + 1] = e->in_head[i] + g->n_preds[i] + queued(g, i);
    memcpy(at, e->in_head, g->n_ops * sizeof *at);
    for (size_t q = 0; q < queues; q++) last[q] = SC_NONE;
    for (sc_op i = 0; i < g->n_ops; i++) {
        for (uint32_t k = g->succ_head[i]; k < g->succ_head[i + 1]; k++)
            e->in[at[g->succ[k]]++] = i;
        uint32_t q = replay_queue(g, i);
        if (q == SC_NONE) continue;
        e->in[at[i]++] = last[q];
        last[q] = i;
    }
    return SC_OK;
}

static sc_status add_edge(emitter *e, sc_op before, sc_op after)
{
    edge *grown = sc_grow_raw(e->tmp, e->edges, e->n_edges, &e->cap_edges, 256,
                              sizeof *grown);
    if (!grown) return sc_error_nomem(e->err);
    e->edges = grown;
    e->edges[e->n_edges++] = (edge){e->task[before], e->task[after]};
    return SC_OK;
}

/* Flows of data of the rank that its waits keep anyway, so that the times are the
 * same with them. */
static sc_status list_flows(emitter *e)
{
    const replay_rank *r = &e->m->rank[e->rank];
    uint32_t n = r->n_flows;
    e->flow_next = SC_NEW_N(e->tmp, sc_op, n);
    e->flow_from = SC_NEW_N(e->tmp, sc_op, n);
    sc_arena_mark mark = sc_arena_save(e->tmp);
    bool *covered = SC_NEW_N(e->tmp, bool, n);
    sc_op *node = SC_NEW_N(e->tmp, sc_op, r->n_ops);
    if (!covered || !node || !e->flow_next || !e->flow_from)
        return sc_error_nomem(e->err);
    memset(e->flow_head, 0, e->r->n_ops * sizeof *e->flow_head);
    if (n == 0) return SC_OK;
    SC_TRY(replay_cover_flows(e->m, e->rank, e->r->graph, e->r->owner,
                              e->r->span, e->tmp, node, covered, e->err));
    for (uint32_t k = 0; k < n; k++) {
        if (!covered[k]) continue;
        sc_op after = node[r->flow[k].after];
        e->flow_from[k] = node[r->flow[k].before];
        e->flow_next[k] = e->flow_head[after];
        e->flow_head[after] = k + 1;
    }
    sc_arena_restore(e->tmp, mark);
    return SC_OK;
}

static sc_status add_flows(emitter *e, sc_op i)
{
    for (uint32_t k = e->flow_head[i]; k; k = e->flow_next[k - 1]) {
        sc_op before = e->flow_from[k - 1];
        if (e->task[before] == REPLAY_NONE || e->seen[before] == i + 1)
            continue;
        e->seen[before] = i + 1;
        SC_TRY(add_edge(e, before, i));
    }
    return SC_OK;
}

/* The tasks that op `i` waits for, through delays. */
static sc_status find_edges(emitter *e, sc_op i)
{
    uint32_t n = 0;
    e->stack[n++] = i;
    while (n) {
        sc_op x = e->stack[--n];
        for (uint32_t k = e->in_head[x]; k < e->in_head[x + 1]; k++) {
            sc_op p = e->in[k];
            if (p == SC_NONE || e->seen[p] == i + 1) continue;
            e->seen[p] = i + 1;
            if (e->task[p] == REPLAY_NONE) {
                bool delay = !queued(e->r->graph, p);
                if (delay && e->coll[p] == REPLAY_NONE) e->stack[n++] = p;
                continue;
            }
            SC_TRY(add_edge(e, p, i));
        }
    }
    return add_flows(e, i);
}

/* ---- tasks --------------------------------------------------------------- */

/* The device op of a collective on a rank; REPLAY_NONE. */
static uint32_t member(const replay_coll *c, uint32_t rank)
{
    for (uint32_t k = 0; k < c->n; k++)
        if (c->rank[k] == rank) return c->op[k];
    return REPLAY_NONE;
}

/* A collective has the span of its first member. */
static sc_status find_colls(emitter *e)
{
    const sc_graph *g = e->r->graph;
    sc_map map = {0};
    memset(e->coll, 0xff, g->n_ops * sizeof *e->coll);
    for (uint32_t k = 0; k < e->m->n_colls; k++) {
        const replay_coll *c = &e->m->coll[k];
        uint32_t span = e->m->rank[c->rank[0]].op[c->op[0]].span;
        if (!sc_map_set(&map, e->tmp, (uint64_t)c->rank[0] << 32 | span, k))
            return sc_error_nomem(e->err);
    }
    for (sc_op i = 0; i < g->n_ops; i++) {
        if (queued(g, i) || g->stream[i] != SC_S_COMM) continue;
        uint64_t key = (uint64_t)e->r->owner[i] << 32 | e->r->span[i];
        uint32_t k = sc_map_get(&map, key);
        if (k != SC_MAP_END) e->coll[i] = k;
    }
    return SC_OK;
}

static void number_tasks(emitter *e)
{
    const sc_graph *g = e->r->graph;
    e->n = 0;
    for (sc_op i = 0; i < g->n_ops; i++) {
        bool here = queued(g, i) && e->r->owner[i] == e->rank;
        if (e->coll[i] != REPLAY_NONE)
            here = member(&e->m->coll[e->coll[i]], e->rank) != REPLAY_NONE;
        e->task[i] = here ? e->n++ : REPLAY_NONE;
    }
}

/* The number of the group of some of the ranks. */
static sc_status find_group(emitter *e, const replay_coll *c, uint32_t *out)
{
    sc_workload *w = e->w;
    uint64_t key = sc_hash(c->rank, c->n * sizeof *c->rank, c->n);
    uint32_t at = 0;
    while ((*out = sc_map_next(&e->groups, key, &at)) != SC_MAP_END)
        if (w->groups[*out].n == c->n &&
            memcmp(w->groups[*out].rank, c->rank, c->n * sizeof *c->rank) == 0)
            return SC_OK;
    sc_rank_group *grown =
        sc_grow(e->a, w->groups, w->n_groups, &e->cap_groups, 8, sizeof *grown);
    const char *name = sc_sprintf(e->a, "%u", w->n_groups + 1);
    if (!grown || !name || !sc_map_add(&e->groups, e->a, key, w->n_groups))
        return sc_error_nomem(e->err);
    w->groups = grown;
    *out = w->n_groups++;
    w->groups[*out] = (sc_rank_group){name, c->n, c->rank};
    return SC_OK;
}

/* The slot of a group or a peer: slots are numbered by their first use. */
static uint32_t slot_of(uint32_t *slot_of_number, uint32_t *slots, uint32_t *n,
                        uint32_t number)
{
    uint32_t *slot = &slot_of_number[number];
    if (*slot == REPLAY_NONE) {
        slots[*n] = number;
        *slot = (*n)++;
    }
    return *slot;
}

static void fill_message(emitter *e, const replay_coll *c, uint32_t t,
                         bool send, sc_task_list *l)
{
    uint32_t peer = c->rank[c->rank[0] == e->rank];
    l->kind[t] = send ? SC_TASK_SEND : SC_TASK_RECV;
    l->coll[t] = SC_ALL_REDUCE; /* says nothing */
    l->peer[t] = slot_of(e->peer_slot, e->slots[1], &l->n_peers, peer);
    l->n_tags = 1;
}

static sc_status fill_coll(emitter *e, const replay_coll *c, uint32_t t,
                           sc_task_list *l)
{
    uint64_t bytes;
    uint32_t group;
    sc_coll coll = replay_coll_kind(&e->m->rank[e->rank], member(c, e->rank),
                                    c->n, &bytes);
    bool known = coll < SC_SENDRECV && bytes > 0 &&
                 sc_coll_is_message(coll) == c->message;
    l->kind[t] = SC_TASK_COLL;
    l->coll[t] = known ? (uint8_t)coll : SC_ALL_REDUCE;
    l->flags[t] = known ? 0 : SC_TASK_NO_COMM;
    /* of what is gathered, a member's share */
    l->size[t] = known && coll == SC_ALL_GATHER ? bytes / c->n : bytes;
    e->n_unknown += !known;
    if (!known) return SC_OK;
    if (c->message) {
        fill_message(e, c, t, coll == SC_SEND, l);
        return SC_OK;
    }
    if (c->n == e->m->n_ranks) return SC_OK;
    SC_TRY(find_group(e, c, &group));
    l->group[t] = slot_of(e->group_slot, e->slots[0], &l->n_groups, group);
    return SC_OK;
}

static sc_status fill(emitter *e, sc_op i, uint32_t t, sc_task_list *l)
{
    const sc_graph *g = e->r->graph;
    l->id[t] = t;
    l->name[t] = g->name[i];
    l->duration[t] = g->work[i];
    l->kind[t] = SC_TASK_COMP;
    l->flags[t] = SC_TASK_NO_OPS;
    l->group[t] = SC_TASK_WORLD;
    if (e->coll[i] != REPLAY_NONE) {
        return fill_coll(e, &e->m->coll[e->coll[i]], t, l);
    } else if (g->kind[i] == SC_OP_HOST) {
        l->flags[t] |= SC_TASK_CPU;
    } else if (g->kind[i] == SC_OP_COLL) {
        l->kind[t] = SC_TASK_COLL;
        l->flags[t] = SC_TASK_NO_COMM | SC_TASK_NO_SIZE;
        e->n_unknown++;
    }
    return SC_OK;
}

/* Edges were found by rising task behind them, so lists are ascending. */
static sc_status fill_edges(emitter *e, sc_task_list *l)
{
    uint32_t *at = SC_NEW_N(e->tmp, uint32_t, e->n);
    if (!at) return sc_error_nomem(e->err);
    for (uint32_t k = 0; k < e->n_edges; k++) {
        l->succ_head[e->edges[k].before + 1]++;
        l->n_preds[e->edges[k].after]++;
    }
    for (uint32_t i = 0; i < e->n; i++) {
        l->succ_head[i + 1] += l->succ_head[i];
        at[i] = l->succ_head[i];
    }
    for (uint32_t k = 0; k < e->n_edges; k++)
        l->succ[at[e->edges[k].before]++] = e->edges[k].after;
    return SC_OK;
}

/* No slot is used yet: there are at most as many groups as collectives. */
static sc_status begin_slots(emitter *e, sc_rank_trace *out)
{
    uint32_t n[2] = {e->m->n_colls, e->m->n_ranks};
    memset(e->group_slot, 0xff, n[0] * sizeof *e->group_slot);
    memset(e->peer_slot, 0xff, n[1] * sizeof *e->peer_slot);
    for (int i = 0; i < 2; i++) {
        e->slots[i] = SC_NEW_N(e->a, uint32_t, n[i]);
        if (!e->slots[i]) return sc_error_nomem(e->err);
    }
    out->groups = e->slots[0];
    out->peers = e->slots[1];
    out->tags = SC_NEW_N(e->a, uint32_t, 1);
    return out->tags ? SC_OK : sc_error_nomem(e->err);
}

static sc_status emit_rank(emitter *e, sc_task_list *l)
{
    uint32_t n_ops = e->r->n_ops;
    number_tasks(e);
    SC_TRY(list_flows(e));
    e->n_edges = 0;
    memset(e->seen, 0, n_ops * sizeof *e->seen);
    for (sc_op i = 0; i < n_ops; i++)
        if (e->task[i] != REPLAY_NONE) SC_TRY(find_edges(e, i));
    *l = (sc_task_list){.n_tasks = e->n, .n_deps = e->n_edges};
    if (!sc_task_list_alloc(l, e->a)) return sc_error_nomem(e->err);
    for (sc_op i = 0; i < n_ops; i++)
        if (e->task[i] != REPLAY_NONE) SC_TRY(fill(e, i, e->task[i], l));
    return fill_edges(e, l);
}

/* ---- the whole ----------------------------------------------------------- */

static sc_status emit(emitter *e, sc_workload *w)
{
    uint32_t n = e->m->n_ranks, n_ops = e->r->n_ops;
    *w = (sc_workload){.n_ranks = n, .n_classes = n, .n_jobs = 1};
    w->classes = SC_NEW_N(e->a, sc_task_list, n);
    w->ranks = SC_NEW_N(e->a, sc_rank_trace, n);
    e->w = w;
    e->group_slot = SC_RAW_N(e->tmp, uint32_t, e->m->n_colls);
    e->peer_slot = SC_RAW_N(e->tmp, uint32_t, n);
    w->jobs = SC_NEW_N(e->a, sc_rank_job, 1);
    e->coll = SC_RAW_N(e->tmp, uint32_t, n_ops);
    e->task = SC_RAW_N(e->tmp, uint32_t, n_ops);
    e->seen = SC_RAW_N(e->tmp, sc_op, n_ops);
    e->stack = SC_RAW_N(e->tmp, sc_op, n_ops);
    e->flow_head = SC_NEW_N(e->tmp, sc_op, n_ops);
    if (!w->classes || !w->ranks || !w->jobs || !e->group_slot ||
        !e->peer_slot || !e->coll || !e->task || !e->seen || !e->stack ||
        !e->flow_head)
        return sc_error_nomem(e->err);
    w->jobs[0] = (sc_rank_job){"replay", 0, n};
    SC_TRY(list_predecessors(e));
    SC_TRY(find_colls(e));
    for (uint32_t k = 0; k < n; k++) {
        e->rank = k;
        w->ranks[k].cls = k;
        SC_TRY(begin_slots(e, &w->ranks[k]));
        SC_TRY(emit_rank(e, &w->classes[k]));
    }
    return SC_OK;
}

sc_status sc_replay_workload(const sc_replay_model *m,
                             const sc_replay_result *r, sc_arena *a,
                             sc_text *warnings, sc_workload *out, sc_err *err)
{
    sc_arena tmp;
    for (uint32_t k = 0; k < m->n_ranks; k++)
        if (m->rank[k].rank != k)
            return sc_error(err, SC_EINPUT, SC_C_MISSING,
                            sc_pos_file(m->rank[k].m->file),
                            "give the traces of all ranks in their order",
                            "this is rank %u, and Chakra traces begin with "
                            "rank 0 and leave none out",
                            m->rank[k].rank);
    sc_arena_init(&tmp, a->limit);
    emitter e = {.m = m, .r = r, .a = a, .tmp = &tmp, .err = err};
    sc_status s = emit(&e, out);
    sc_arena_free(&tmp);
    SC_TRY(s);
    if (e.n_unknown)
        sc_text_add(
            warnings,
            "%llu collectives have a duration and no size in the Chakra "
            "traces, because not all of their ranks are given or the "
            "traces do not state it\n",
            (unsigned long long)e.n_unknown);
    return sc_workload_check(out, err);
}
