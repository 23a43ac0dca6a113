/* SPDX-License-Identifier: Apache-2.0 */
/*
 * network.h - one layer of each kind of a run by the network of its operators:
 * what segments are the sums of, item by item.
 */
#ifndef TESTS_NETWORK_H
#define TESTS_NETWORK_H

#include "plan/plan_segment.h"
#include "plan/program.h"
#include "prediction.h"

#include <stdio.h>
#include <string.h>

typedef enum phase { FORWARD, BACKWARD } phase; /* with what is made again */

typedef struct network {
    segment_network net;
    sc_net_run job;
    sc_net_plan plan;
    net_program prog;
} network;

/* The job of a run on a network. */
static inline sc_net_run job_of(const sc_run *r, const sc_net *g)
{
    sc_strategy *s = SC_NEW(&f.a, sc_strategy);
    assert_non_null(s);
    if (sc_strategy_of_run(r, &f.a, s, &f.err) != SC_OK)
        fail_msg("%s: %s", r->model->name, f.err.d[0].msg);
    return (sc_net_run){.hw = r->hw,
                        .net = g,
                        .strategy = s,
                        .sw = r->sw,
                        .cost = r->cost,
                        .micro = r->mbs,
                        .ga = r->ga,
                        .precision = r->precision,
                        .recipe = r->recipe,
                        .optimizer = "adam",
                        .grad_bytes = r->sw->reduce_bytes,
                        .opts = r->opts};
}

static inline network network_of(const sc_run *r)
{
    network n;
    memset(&n, 0, sizeof n);
    bool rules = r->strategy && r->strategy->n_rules > 0;
    assert_int_equal(segment_network_of(r, rules, NULL, &f.a, &n.net, &f.err),
                     SC_OK);
    n.job = job_of(r, n.net.net);
    if (sc_net_plan_compile(&n.job, &f.a, &n.plan, &f.err) != SC_OK)
        fail_msg("%s", f.err.d[0].msg);
    n.prog = *n.plan.program;
    return n;
}

/* An item of the layer that stands for `kind`, in one of its passes. */
static inline bool in_layer(const network *n, const program_item *it,
                            uint32_t kind, phase in)
{
    bool forward = it->pass == SC_PASS_FWD && !it->recomputed;
    return it->op != SC_NONE && !it->once && !it->copy &&
           it->cat != SC_CAT_HOST &&
           n->net.part[it->op] == n->net.chosen[kind] &&
           forward == (in == FORWARD);
}

/* Bits of SC_AX_* for axes of the strategy's mesh. */
static inline uint32_t axes_of(const network *n, uint32_t mesh)
{
    uint32_t out = 0;
    for (uint32_t ax = 0; ax < SC_N_AX; ax++) {
        int at = sc_strategy_axis(n->job.strategy, (sc_axis)ax);
        if (at >= 0 && mesh >> at & 1) out |= 1u << ax;
    }
    return out;
}

/* Name in its layer of the operator that an item is of. */
static inline const char *name_of(const network *n, const program_item *it)
{
    const char *path = n->net.net->op[it->op].path;
    const char *dot = strrchr(path, '.');
    return dot ? dot + 1 : path;
}

/* Exchanges of activations. */
static inline bool moves_tokens(const network *n, const program_item *it)
{
    if (it->exchange == SC_NONE || n->plan.exchange[it->exchange].grad)
        return false;
    return it->out == SC_NONE ||
           n->prog.value[it->out].what != VALUE_WEIGHT_USED;
}

typedef struct moved {
    uint32_t n;
    double bytes, seconds;
} moved;

/* Collectives of one kind over exactly these axes (SC_AX_*; 0: any). */
static inline moved moved_over(const network *n, uint32_t kind, phase in,
                               sc_coll coll, uint32_t axes)
{
    moved sum = {0, 0, 0};
    for (uint32_t i = 0; i < n->prog.n_items; i++) {
        const program_item *it = &n->prog.item[i];
        if (!in_layer(n, it, kind, in) || !moves_tokens(n, it)) continue;
        const sc_net_exchange *x = &n->plan.exchange[it->exchange];
        if (x->coll != coll || (axes && axes_of(n, x->axes) != axes)) continue;
        sum.n++;
        sum.bytes += x->bytes;
        sum.seconds += it->seconds;
    }
    return sum;
}

/* Kernels of operators whose names begin so. */
static inline sc_price kernels_of(const network *n, uint32_t kind, phase in,
                                  const char *prefix)
{
    sc_price sum = {0};
    for (uint32_t i = 0; i < n->prog.n_items; i++) {
        const program_item *it = &n->prog.item[i];
        if (!in_layer(n, it, kind, in) || it->exchange != SC_NONE ||
            strncmp(name_of(n, it), prefix, strlen(prefix)) != 0)
            continue;
        sum.seconds += it->price.seconds;
        sum.flops += it->price.flops;
        sum.bytes += it->price.bytes;
        sum.launches += it->price.launches;
    }
    return sum;
}

/* Bytes on one rank of an operator's result, or of its weight. */
static inline double bytes_of(const network *n, uint32_t kind, const char *name,
                              value_kind what)
{
    for (uint32_t i = 0; i < n->prog.n_items; i++) {
        const program_item *it = &n->prog.item[i];
        if (!in_layer(n, it, kind, FORWARD) || it->exchange != SC_NONE ||
            strcmp(name_of(n, it), name) != 0)
            continue;
        if (what == VALUE_ACT) return n->prog.value[it->out].bytes;
        for (uint32_t k = 0; k < it->n_in; k++)
            if (n->prog.value[it->in[k]].what == what)
                return n->prog.value[it->in[k]].bytes;
    }
    fail_msg("no such value of %s", name);
    return 0;
}

static inline double flops_of(const network *n, uint32_t kind,
                              const char *prefix)
{
    return kernels_of(n, kind, FORWARD, prefix).flops +
           kernels_of(n, kind, BACKWARD, prefix).flops;
}

#endif
