/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flows.c - which kernels read what others have written.
 *
 * An execution trace names the tensors of each operator.  Kernels in the order of
 * their launches read and write those of the operator around their launch, so a
 * kernel depends on the last one that wrote a part of a storage that it reads.
 * Views launch nothing and need no case of their own.
 */
#include "replay/model.h"

#include <stdlib.h>

#define MOST_PARTS  64                  /* of one storage that are told apart */
#define MOST_CLOCKS (UINT64_C(1) << 28) /* numbers that a check may hold */

/* ---- writers and readers ------------------------------------------------- */

/* A part of a storage, and the device op that wrote it last. */
typedef struct part {
    uint64_t first, n;
    uint32_t op, span;
    uint32_t next; /* of the storage, plus 1 */
} part;

typedef struct finder {
    replay_rank *r;
    const sc_profiled *m;
    sc_arena *a, *tmp;
    sc_err *err;
    sc_map storages; /* numbers of lists */
    uint32_t n_storages, cap_storages;
    uint32_t *head; /* [n_storages] newest part, plus 1 */
    part *parts;
    uint32_t n_parts, cap_parts, cap_flows;
    bool *done; /* [spans] a kernel of the operator has read its inputs */
} finder;

typedef struct launch {
    sc_time at;
    uint32_t op;
} launch;

static int by_launch(const void *x, const void *y)
{
    const launch *a = x, *b = y;
    if (a->at != b->at) return a->at < b->at ? -1 : 1;
    return (a->op > b->op) - (a->op < b->op);
}

/* The span around the launch of a device op that has a node with tensors. */
static uint32_t user_of(const finder *f, uint32_t op)
{
    const replay_rank *r = f->r;
    uint32_t item = r->op[op].item;
    if (item == REPLAY_NONE) return REPLAY_NONE;
    uint32_t span = r->item[item].comm;
    if (span == REPLAY_NONE) span = r->item[item].op;
    for (; span != REPLAY_NONE; span = r->parent[span]) {
        uint32_t node = f->m->node[span];
        if (node && f->m->use_head[node - 1] < f->m->use_head[node])
            return span;
    }
    return REPLAY_NONE;
}

/* The list of a storage; NULL if out of memory. */
static uint32_t *list_of(finder *f, uint64_t storage)
{
    uint32_t i = sc_map_get(&f->storages, storage);
    if (i != SC_MAP_END) return &f->head[i];
    uint32_t *grown = sc_grow(f->tmp, f->head, f->n_storages, &f->cap_storages,
                              64, sizeof *grown);
    if (!grown || !sc_map_set(&f->storages, f->tmp, storage, f->n_storages))
        return NULL;
    f->head = grown;
    f->head[f->n_storages] = 0;
    return &f->head[f->n_storages++];
}

static sc_status add_flow(finder *f, uint32_t before, uint32_t after)
{
    replay_rank *r = f->r;
    for (uint32_t i = r->n_flows; i-- && r->flow[i].after == after;)
        if (r->flow[i].before == before) return SC_OK;
    replay_flow *grown = sc_grow_raw(f->a, r->flow, r->n_flows, &f->cap_flows,
                                     64, sizeof *grown);
    if (!grown) return sc_error_nomem(f->err);
    r->flow = grown;
    r->flow[r->n_flows++] = (replay_flow){before, after};
    return SC_OK;
}

static bool overlap(const part *p, const sc_trace_use *u)
{
    return p->first < u->first + u->n && u->first < p->first + p->n;
}

static sc_status read_part(finder *f, const sc_trace_use *u, uint32_t op,
                           uint32_t span)
{
    const uint32_t *head = list_of(f, u->storage);
    if (!head) return sc_error_nomem(f->err);
    for (uint32_t i = *head; i; i = f->parts[i - 1].next) {
        const part *p = &f->parts[i - 1];
        if (overlap(p, u) && p->span != span) SC_TRY(add_flow(f, p->op, op));
    }
    return SC_OK;
}

/* What the part covers as a whole is overwritten. */
static sc_status write_part(finder *f, const sc_trace_use *u, uint32_t op,
                            uint32_t span)
{
    part *grown = sc_grow_raw(f->tmp, f->parts, f->n_parts, &f->cap_parts, 256,
                              sizeof *grown);
    if (!grown) return sc_error_nomem(f->err);
    f->parts = grown;
    uint32_t *head = list_of(f, u->storage), n = 1;
    if (!head) return sc_error_nomem(f->err);
    f->parts[f->n_parts++] = (part){u->first, u->n, op, span, *head};
    *head = f->n_parts;
    for (uint32_t *at = &f->parts[*head - 1].next; *at;) {
        const part *p = &f->parts[*at - 1];
        if (n == MOST_PARTS ||
            (p->first >= u->first && p->first + p->n <= u->first + u->n)) {
            *at = p->next;
            continue;
        }
        at = &f->parts[*at - 1].next;
        n++;
    }
    return SC_OK;
}

static sc_status use(finder *f, uint32_t op)
{
    uint32_t span = user_of(f, op);
    if (span == REPLAY_NONE) return SC_OK;
    uint32_t node = f->m->node[span];
    uint32_t from = f->m->use_head[node - 1], to = f->m->use_head[node];
    for (uint32_t i = from; i < to && !f->done[span]; i++)
        if (f->m->use[i].read) SC_TRY(read_part(f, &f->m->use[i], op, span));
    f->done[span] = true;
    for (uint32_t i = from; i < to; i++)
        if (f->m->use[i].written)
            SC_TRY(write_part(f, &f->m->use[i], op, span));
    return SC_OK;
}

static sc_status find_flows(finder *f)
{
    const replay_rank *r = f->r;
    uint32_t n = 0;
    launch *order = SC_RAW_N(f->tmp, launch, r->n_ops);
    f->done = SC_NEW_N(f->tmp, bool, f->m->n_spans);
    if (!order || !f->done) return sc_error_nomem(f->err);
    for (uint32_t i = 0; i < r->n_ops; i++)
        if (r->op[i].item != REPLAY_NONE)
            order[n++] = (launch){replay_launched(r, i), i};
    if (n) qsort(order, n, sizeof *order, by_launch);
    for (uint32_t i = 0; i < n; i++) SC_TRY(use(f, order[i].op));
    return SC_OK;
}

sc_status replay_find_flows(replay_rank *r, sc_arena *a, sc_err *err)
{
    sc_arena tmp;
    if (!r->m->node) return SC_OK;
    sc_arena_init(&tmp, a->limit);
    finder f = {.r = r, .m = r->m, .a = a, .tmp = &tmp, .err = err};
    sc_status s = find_flows(&f);
    sc_arena_free(&tmp);
    return s;
}

/* ---- what a graph keeps -------------------------------------------------- */

/* For each op of the graph and each stream of the rank, how many ops of the
 * stream have ended when the op begins. */
typedef struct clocks {
    const sc_replay_model *m;
    const replay_rank *r;
    const sc_graph *g;
    uint32_t *at; /* [g->n_ops][n_streams] */
} clocks;

static uint32_t *clock_of(const clocks *c, sc_op i)
{
    return c->at + (size_t)i * c->r->n_streams;
}

static void merge(const clocks *c, sc_op from, sc_op to)
{
    const uint32_t *x = clock_of(c, from);
    uint32_t *y = clock_of(c, to);
    for (uint32_t s = 0; s < c->r->n_streams; s++)
        if (x[s] > y[s]) y[s] = x[s];
}

static uint32_t place(const replay_rank *r, uint32_t op)
{
    return op - r->stream_head[r->op[op].stream] + 1;
}

/* The graph's ops of device ops; a collective is that of its first member. */
static sc_status find_nodes(const sc_replay_model *m, uint32_t rank,
                            const sc_graph *g, const uint32_t *owner,
                            const uint32_t *span, sc_arena *a, sc_op *node,
                            sc_err *err)
{
    const replay_rank *r = &m->rank[rank];
    sc_map map = {0};
    for (sc_op i = 0; i < g->n_ops; i++) {
        uint64_t key = (uint64_t)owner[i] << 32 | span[i];
        if (span[i] == REPLAY_NONE || sc_map_get(&map, key) != SC_MAP_END)
            continue;
        if (!sc_map_set(&map, a, key, i)) return sc_error_nomem(err);
    }
    for (uint32_t i = 0; i < r->n_ops; i++) {
        uint32_t of = rank, op = i, coll = r->op[i].coll;
        if (coll != REPLAY_NONE) {
            of = m->coll[coll].rank[0];
            op = m->coll[coll].op[0];
        }
        uint32_t at =
            sc_map_get(&map, (uint64_t)of << 32 | m->rank[of].op[op].span);
        node[i] = at == SC_MAP_END ? SC_NONE : at;
    }
    return SC_OK;
}

/* Ids are a topological order. `own` [g->n_ops] has the device op of an op, plus
 * 1. */
static sc_status run_clocks(const clocks *c, const uint32_t *own, sc_arena *a,
                            sc_err *err)
{
    const sc_graph *g = c->g;
    size_t queues = (size_t)g->n_classes * SC_N_STREAMS;
    sc_op *last = SC_RAW_N(a, sc_op, queues);
    if (!last) return sc_error_nomem(err);
    for (size_t q = 0; q < queues; q++) last[q] = SC_NONE;
    for (sc_op i = 0; i < g->n_ops; i++) {
        uint32_t q = replay_queue(g, i);
        if (q != SC_NONE && last[q] != SC_NONE) merge(c, last[q], i);
        if (q != SC_NONE) last[q] = i;
        if (own[i])
            clock_of(c, i)[c->r->op[own[i] - 1].stream] =
                place(c->r, own[i] - 1);
        for (uint32_t k = g->succ_head[i]; k < g->succ_head[i + 1]; k++)
            merge(c, i, g->succ[k]);
    }
    return SC_OK;
}

sc_status replay_cover_flows(const sc_replay_model *m, uint32_t rank,
                             const sc_graph *g, const uint32_t *owner,
                             const uint32_t *span, sc_arena *a, sc_op *node,
                             bool *covered, sc_err *err)
{
    const replay_rank *r = &m->rank[rank];
    uint64_t n = (uint64_t)g->n_ops * r->n_streams;
    clocks c = {m, r, g, NULL};
    uint32_t *own = SC_NEW_N(a, uint32_t, g->n_ops);
    SC_TRY(find_nodes(m, rank, g, owner, span, a, node, err));
    if (n > MOST_CLOCKS) n = 0;
    c.at = SC_NEW_N(a, uint32_t, n);
    if (!own || !c.at) return sc_error_nomem(err);
    for (uint32_t i = 0; i < r->n_ops; i++)
        if (node[i] != SC_NONE) own[node[i]] = i + 1;
    if (n) SC_TRY(run_clocks(&c, own, a, err));
    for (uint32_t i = 0; i < r->n_flows; i++) {
        const replay_flow *f = &r->flow[i];
        uint32_t stream = r->op[f->before].stream;
        bool known = n && node[f->before] != SC_NONE &&
                     node[f->after] != SC_NONE &&
                     node[f->before] < node[f->after];
        covered[i] = known && clock_of(&c, node[f->after])[stream] >=
                                  place(r, f->before);
    }
    return SC_OK;
}

/* Adds a rank's flows between streams, and those that are not kept. */
static sc_status count_lost(const sc_replay_model *m, uint32_t rank,
                            const sc_graph *g, const uint32_t *owner,
                            const uint32_t *span, sc_arena *a,
                            uint64_t *between, uint64_t *lost, sc_err *err)
{
    const replay_rank *r = &m->rank[rank];
    if (r->n_flows == 0) return SC_OK;
    sc_op *node = SC_NEW_N(a, sc_op, r->n_ops);
    bool *covered = SC_NEW_N(a, bool, r->n_flows);
    if (!node || !covered) return sc_error_nomem(err);
    SC_TRY(replay_cover_flows(m, rank, g, owner, span, a, node, covered, err));
    for (uint32_t i = 0; i < r->n_flows; i++) {
        const replay_flow *f = &r->flow[i];
        if (r->op[f->before].stream == r->op[f->after].stream) continue;
        ++*between;
        *lost += !covered[i];
    }
    return SC_OK;
}

sc_status replay_check_flows(const sc_replay_model *m, const sc_graph *g,
                             const uint32_t *owner, const uint32_t *span,
                             sc_arena *a, sc_text *warnings, sc_err *err)
{
    uint64_t between = 0, lost = 0;
    for (uint32_t k = 0; k < m->n_ranks; k++) {
        sc_arena_mark mark = sc_arena_save(a);
        SC_TRY(count_lost(m, k, g, owner, span, a, &between, &lost, err));
        sc_arena_restore(a, mark);
    }
    if (lost)
        sc_text_add(warnings,
                    "%llu of %llu times that a kernel reads what another "
                    "stream has written, no wait between the two is known: "
                    "with changes it may begin before its data are there\n",
                    (unsigned long long)lost, (unsigned long long)between);
    return SC_OK;
}
