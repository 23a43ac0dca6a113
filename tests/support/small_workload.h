/* SPDX-License-Identifier: Apache-2.0 */
/*
 * small_workload.h - workloads, systems and networks written by hand.
 *
 * Each rank has a list of nodes; sw_build() makes a class of each, or one class
 * of all where the first rank's nodes are everybody's.
 */
#ifndef TESTS_SMALL_WORKLOAD_H
#define TESTS_SMALL_WORKLOAD_H

#include "sim/sim_workload.h"

#include <string.h>

enum { SW_DEPS = 4, SW_RANKS = 64, SW_NODES = 48, SW_GROUPS = 64 };

typedef struct sw_node {
    uint8_t kind, coll, flags;
    uint64_t size;
    sc_time duration;
    uint32_t group, peer, tag, dims; /* themselves, not slots */
    uint32_t n_deps, deps[SW_DEPS];
    const char *name;
} sw_node;

typedef struct sw {
    uint32_t n_ranks, n_groups;
    uint32_t n[SW_RANKS];
    sw_node node[SW_RANKS][SW_NODES];
    sc_rank_group group[SW_GROUPS];
    bool one_class;
    sc_workload w;
} sw;

static inline sw_node *sw_add(sw *s, uint32_t rank, uint8_t kind, uint64_t size)
{
    sw_node *x = &s->node[rank][s->n[rank]++];
    *x = (sw_node){.kind = kind, .size = size, .group = SC_TASK_WORLD};
    return x;
}

static inline sw_node *sw_comp(sw *s, uint32_t rank, sc_time duration)
{
    sw_node *x = sw_add(s, rank, SC_TASK_COMP, 0);
    x->duration = duration;
    return x;
}

static inline sw_node *sw_coll(sw *s, uint32_t rank, uint32_t coll,
                               uint64_t size, uint32_t group)
{
    sw_node *x = sw_add(s, rank, SC_TASK_COLL, size);
    x->coll = (uint8_t)coll;
    x->group = group;
    return x;
}

static inline sw_node *sw_pair(sw *s, uint32_t rank, uint8_t kind,
                               uint32_t peer, uint64_t size, uint32_t tag)
{
    sw_node *x = sw_add(s, rank, kind, size);
    x->peer = peer;
    x->tag = tag;
    return x;
}

/* `x` waits for node `on` of its rank. */
static inline void sw_after(sw_node *x, uint32_t on)
{
    x->deps[x->n_deps++] = on;
}

static inline uint32_t sw_group(sw *s, uint32_t n, const uint32_t *ranks)
{
    s->group[s->n_groups] = (sc_rank_group){"g", n, ranks};
    return s->n_groups++;
}

/* The slot of `value`, which is new where it was not named before. */
static inline uint32_t sw_slot(uint32_t *table, uint32_t *n, uint32_t value)
{
    uint32_t i = 0;
    while (i < *n && table[i] != value) i++;
    if (i == *n) table[(*n)++] = value;
    return i;
}

static inline void sw_edges(const sw *s, uint32_t rank, sc_task_list *l)
{
    for (uint32_t i = 0; i < l->n_tasks; i++) {
        const sw_node *x = &s->node[rank][i];
        l->n_preds[i] = x->n_deps;
        for (uint32_t k = 0; k < x->n_deps; k++) l->succ_head[x->deps[k] + 1]++;
    }
    for (uint32_t i = 0; i < l->n_tasks; i++)
        l->succ_head[i + 1] += l->succ_head[i];
    uint32_t at[SW_NODES];
    memcpy(at, l->succ_head, sizeof at);
    for (uint32_t i = 0; i < l->n_tasks; i++)
        for (uint32_t k = 0; k < s->node[rank][i].n_deps; k++)
            l->succ[at[s->node[rank][i].deps[k]]++] = i;
}

static inline void sw_list(const sw *s, uint32_t rank, sc_arena *a,
                           sc_task_list *l, sc_rank_trace *r)
{
    uint32_t n = s->n[rank], cap = n + 1;
    uint32_t *groups = SC_NEW_N(a, uint32_t, cap);
    uint32_t *peers = SC_NEW_N(a, uint32_t, cap);
    uint32_t *tags = SC_NEW_N(a, uint32_t, cap);
    *l = (sc_task_list){.n_tasks = n,
                        .kind = SC_NEW_N(a, uint8_t, cap),
                        .coll = SC_NEW_N(a, uint8_t, cap),
                        .flags = SC_NEW_N(a, uint8_t, cap),
                        .n_preds = SC_NEW_N(a, uint32_t, cap),
                        .succ_head = SC_NEW_N(a, uint32_t, SW_NODES + 1),
                        .succ = SC_NEW_N(a, uint32_t, cap * SW_DEPS),
                        .duration = SC_NEW_N(a, sc_time, cap),
                        .size = SC_NEW_N(a, uint64_t, cap),
                        .group = SC_NEW_N(a, uint32_t, cap),
                        .peer = SC_NEW_N(a, uint32_t, cap),
                        .tag = SC_NEW_N(a, uint32_t, cap),
                        .id = SC_NEW_N(a, uint64_t, cap),
                        .ops = SC_NEW_N(a, uint64_t, cap),
                        .priority = SC_NEW_N(a, uint32_t, cap),
                        .dims = SC_NEW_N(a, uint32_t, cap),
                        .name = SC_NEW_N(a, const char *, cap)};
    for (uint32_t i = 0; i < n; i++) {
        const sw_node *x = &s->node[rank][i];
        bool pair = x->kind == SC_TASK_SEND || x->kind == SC_TASK_RECV;
        l->kind[i] = x->kind;
        l->coll[i] = x->coll;
        l->flags[i] = x->flags;
        l->duration[i] = x->duration;
        l->size[i] = x->size;
        l->dims[i] = x->dims;
        l->id[i] = i;
        l->name[i] = x->name ? x->name : "";
        l->group[i] = x->group;
        l->peer[i] = x->peer;
        if (x->kind != SC_TASK_COMP && x->group != SC_TASK_WORLD)
            l->group[i] = sw_slot(groups, &l->n_groups, x->group);
        if (!pair) continue;
        l->peer[i] = sw_slot(peers, &l->n_peers, x->peer);
        l->tag[i] = sw_slot(tags, &l->n_tags, x->tag);
    }
    for (uint32_t i = 0; i < n; i++) l->n_deps += s->node[rank][i].n_deps;
    sw_edges(s, rank, l);
    *r = (sc_rank_trace){.groups = groups, .peers = peers, .tags = tags};
}

static inline const sc_workload *sw_build(sw *s, sc_arena *a)
{
    sc_workload *w = &s->w;
    *w = (sc_workload){.n_ranks = s->n_ranks,
                       .n_classes = s->one_class ? 1 : s->n_ranks,
                       .n_groups = s->n_groups,
                       .n_jobs = 1,
                       .classes = SC_NEW_N(a, sc_task_list, s->n_ranks),
                       .ranks = SC_NEW_N(a, sc_rank_trace, s->n_ranks),
                       .groups = s->group,
                       .jobs = SC_NEW(a, sc_rank_job)};
    w->jobs[0] = (sc_rank_job){"w", 0, s->n_ranks};
    for (uint32_t r = 0; r < s->n_ranks; r++) {
        sw_list(s, r, a, &w->classes[s->one_class ? 0 : r], &w->ranks[r]);
        w->ranks[r].cls = s->one_class ? 0 : r;
    }
    return w;
}

/* One chunk at a time, no cost of adding. */
static inline sc_system sw_system(uint32_t splits, uint32_t n_dims,
                                  sc_ccl_kind kind)
{
    sc_system s = {.active_chunks = 1,
                   .splits = splits,
                   .endpoint_delay_ns = 10,
                   .comm_slots = 1,
                   .port_limit = true};
    for (int op = 0; op < SC_N_CCL_OPS; op++) {
        s.ccl[op].n = n_dims;
        for (uint32_t i = 0; i < n_dims; i++)
            s.ccl[op].dim[i] = (sc_ccl){.kind = kind};
    }
    return s;
}

static inline sc_network sw_network(sc_dim_kind kind, uint32_t size,
                                    double gib_per_s, double latency_ns)
{
    sc_network n = {.n_dims = 1, .n_ranks = size};
    n.dim[0] = (sc_net_dim){kind, size, gib_per_s, latency_ns, {0}};
    return n;
}

static inline void sw_dim(sc_network *n, sc_dim_kind kind, uint32_t size,
                          double gib_per_s, double latency_ns)
{
    n->dim[n->n_dims++] = (sc_net_dim){kind, size, gib_per_s, latency_ns, {0}};
    n->n_ranks *= size;
}

#endif
