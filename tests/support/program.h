/* SPDX-License-Identifier: Apache-2.0 */
/*
 * program.h - programs of operator networks written by hand: equal operators in
 * a chain, cut into stages on a mesh of pipeline devices and replicas.
 *
 * In stage v operator k is "s<v>.o<k>".  Stages are numbered as the schedule
 * has them.
 */
#ifndef TESTS_PROGRAM_H
#define TESTS_PROGRAM_H

#include "fixture.h"
#include "plan/program.h"

#include <stdio.h>
#include <string.h>

#ifndef TOY_ITEMS
#define TOY_ITEMS 8192
#endif
#ifndef TOY_VALUES
#define TOY_VALUES 8192
#endif

typedef struct toy {
    sc_schedule schedule;
    uint32_t pp, vpp, dp, ga, ops; /* operators of a stage */
    double fwd, dgrad, wgrad;      /* seconds of a stage */
    double send, reduce, update;   /* of a transfer, a stage's gradients */
    bool joint;                    /* backward passes as one item */
    int zero;                      /* 0, 1, 3 */
    double gather;                 /* of one weight */
    bool forward_only, unfold, checkpoint; /* checkpoint: all made again */
    uint8_t tier;                          /* of activations */
    double act_bytes, weight_bytes;
    double update_bytes; /* of an update; 0: 1 */
    bool grad_overlap, p2p_overlap;
    double offload;      /* share of activations */
    uint8_t states;      /* tier of the optimizer's */
    const char *machine; /* NULL: none */
    int64_t checkpoint_every;
    bool checkpoint_async, checkpoint_disk;
    double parts;  /* seconds of a gather in front of each operator, and of a
                     scatter behind it */
    bool bucketed; /* updated weights of a stage as one gather */
    double gather_latency;                /* of that one, within its time */
    const uint32_t *in_flight;            /* [pp]; NULL */
    const struct sc_schedule_file *order; /* NULL */
    const sc_rules *rules;

    /* what is built of it */
    sc_cost cost; /* where there is a machine */
    sc_net_run job;
    sc_strategy strategy;
    sc_software sw;
    sc_net net;
    sc_net_plan plan;
    net_program prog;
    uint32_t n_stages;
    uint32_t *act, *grad; /* [n_stages * ops] values of the last stage's ops */
} toy;

static inline uint32_t toy_value(toy *t, value_kind what, uint32_t stage,
                                 uint32_t tensor, double bytes,
                                 const char *name)
{
    static const char *const words[] = {"in",     "out",         "out grad",
                                        "weight", "weight used", "weight grad",
                                        "grad",   "state",       "weight new"};
    program_value *v = &t->prog.value[t->prog.n_values];
    assert_true(t->prog.n_values < TOY_VALUES);
    *v = (program_value){.name = sc_sprintf(&arena, "%s %s", name, words[what]),
                         .tensor = tensor,
                         .what = (uint8_t)what,
                         .stage = stage,
                         .bytes = bytes,
                         .made = SC_NONE};
    return t->prog.n_values++;
}

/* Reads up to four values; SC_NONE ends them. */
static inline program_item *toy_item(toy *t, const program_item *like,
                                     uint32_t a, uint32_t b, uint32_t c,
                                     uint32_t d)
{
    const uint32_t in[] = {a, b, c, d};
    assert_true(t->prog.n_items < TOY_ITEMS);
    uint32_t *own = SC_NEW_N(&arena, uint32_t, 4);
    program_item *it = &t->prog.item[t->prog.n_items];
    *it = *like;
    it->in = own;
    it->n_in = 0;
    for (size_t k = 0; k < 4 && in[k] != SC_NONE; k++) own[it->n_in++] = in[k];
    if (it->out != SC_NONE && t->prog.value[it->out].made == SC_NONE)
        t->prog.value[it->out].made = t->prog.n_items;
    t->prog.n_items++;
    return it;
}

static inline program_item toy_kernel(uint32_t stage, uint32_t op,
                                      sc_op_pass pass, double seconds,
                                      uint32_t out)
{
    return (program_item){
        .pass = (uint8_t)pass,
        .cat = pass == SC_PASS_UPDATE ? SC_CAT_OPTIMIZER : SC_CAT_COMPUTE,
        .stage = stage,
        .to = SC_NONE,
        .op = op,
        .exchange = SC_NONE,
        .price = {.seconds = seconds, .flops = seconds > 0, .bytes = 1},
        .out = out};
}

static inline uint32_t toy_device(const toy *t, uint32_t stage)
{
    return sc_schedule_device(t->schedule, t->pp, t->vpp, stage, 0, t->ga);
}

/* Over the replicas of a stage's device, or from each to one of `to`. */
static inline program_item toy_exchange(toy *t, uint32_t stage, uint32_t to,
                                        uint32_t op, sc_coll coll,
                                        sc_op_pass pass, double seconds,
                                        double bytes, uint32_t out)
{
    uint32_t i = t->plan.n_exchanges++;
    bool pair = to != SC_NONE;
    uint32_t *rank = SC_NEW_N(&arena, uint32_t, 2 * (size_t)t->dp);
    for (uint32_t r = 0; r < t->dp; r++) {
        if (!pair) rank[r] = toy_device(t, stage) * t->dp + r;
        if (pair) rank[2 * r] = toy_device(t, stage) * t->dp + r;
        if (pair) rank[2 * r + 1] = toy_device(t, to) * t->dp + r;
    }
    t->plan.exchange[i] = (sc_net_exchange){.path = t->net.op[op].path,
                                            .tensor = "out",
                                            .why = "",
                                            .origin = "",
                                            .pass = (uint8_t)pass,
                                            .coll = (uint8_t)coll,
                                            .p2p = pair,
                                            .stage = stage,
                                            .n_groups = pair ? t->dp : 1,
                                            .size = pair ? 2 : t->dp,
                                            .rank = rank,
                                            .bytes = bytes,
                                            .seconds = seconds};
    return (program_item){.pass = (uint8_t)pass,
                          .cat = pair ? SC_CAT_PP : SC_CAT_DP,
                          .stage = stage,
                          .to = to,
                          .op = op,
                          .exchange = i,
                          .seconds = seconds,
                          .bytes = bytes,
                          .out = out};
}

static inline uint32_t toy_stages(const toy *t)
{
    return sc_schedule_stages(t->schedule, t->pp, t->vpp);
}

static inline void toy_graph(toy *t)
{
    uint32_t n = t->n_stages * t->ops;
    t->net = (sc_net){.name = "toy",
                      .n_ops = n,
                      .n_tensors = 2 * n + 1,
                      .op = SC_NEW_N(&arena, sc_net_op, n),
                      .tensor = SC_NEW_N(&arena, sc_tensor, 2 * n + 1)};
    for (uint32_t i = 0; i < n; i++)
        t->net.op[i] = (sc_net_op){
            .path = sc_sprintf(&arena, "s%u.%u", i / t->ops, i % t->ops),
            .type = SC_NET_LINEAR};
}

/* Over tensor-parallel ranks. */
static inline uint32_t toy_parts(toy *t, uint32_t op, sc_coll coll, uint32_t x)
{
    uint32_t v = op / t->ops;
    if (t->parts <= 0) return x;
    uint32_t out =
        toy_value(t, VALUE_ACT, v, 2 * op + 1, t->act_bytes, "parts");
    program_item e = toy_exchange(t, v, SC_NONE, op, coll, SC_PASS_FWD,
                                  t->parts, t->act_bytes, out);
    e.cat = SC_CAT_TP;
    toy_item(t, &e, x, SC_NONE, SC_NONE, SC_NONE);
    return out;
}

/* What one operator has for the whole step. */
typedef struct toy_op {
    uint32_t weight, used, grad, kept, state, fresh, out, again, out_grad;
} toy_op;

static inline void toy_forward(toy *t, uint32_t v, toy_op *o, uint32_t *x,
                               bool again)
{
    for (uint32_t k = 0; k < t->ops; k++) {
        uint32_t op = v * t->ops + k;
        const char *path = t->net.op[op].path;
        toy_op *a = &o[op];
        if (!again) {
            a->weight =
                toy_value(t, VALUE_WEIGHT, v, 2 * op,
                          t->weight_bytes / (t->zero == 3 ? t->dp : 1), path);
            a->used = a->weight;
        }
        if (t->zero == 3) {
            a->used = toy_value(t, VALUE_WEIGHT_USED, v, 2 * op,
                                t->weight_bytes, path);
            program_item g =
                toy_exchange(t, v, SC_NONE, op, SC_ALL_GATHER, SC_PASS_FWD,
                             t->gather, t->weight_bytes, a->used);
            g.recomputed = again;
            toy_item(t, &g, a->weight, SC_NONE, SC_NONE, SC_NONE);
        }
        uint32_t out =
            toy_value(t, VALUE_ACT, v, 2 * op + 1, t->act_bytes, path);
        t->prog.value[out].tier = again ? SC_TIER_DEVICE : t->tier;
        program_item f = toy_kernel(v, op, SC_PASS_FWD, t->fwd / t->ops, out);
        f.recomputed = again;
        *x = toy_parts(t, op, SC_ALL_GATHER, *x);
        toy_item(t, &f, *x, a->used, SC_NONE, SC_NONE);
        if (!again) a->out = out;
        a->again = out;
        *x = toy_parts(t, op, SC_REDUCE_SCATTER, out);
    }
}

/* Backward of a stage from the gradient `dy` of its result; writes that of
 * its input `x`. */
static inline uint32_t toy_backward(toy *t, uint32_t v, toy_op *o, uint32_t x,
                                    uint32_t dy)
{
    for (uint32_t k = t->ops; k-- > 0;) {
        uint32_t op = v * t->ops + k;
        const char *path = t->net.op[op].path;
        toy_op *a = &o[op];
        uint32_t in = k ? o[op - 1].again : x;
        if (t->zero == 3) {
            a->used = toy_value(t, VALUE_WEIGHT_USED, v, 2 * op,
                                t->weight_bytes, path);
            program_item g =
                toy_exchange(t, v, SC_NONE, op, SC_ALL_GATHER, SC_PASS_DGRAD,
                             t->gather, t->weight_bytes, a->used);
            toy_item(t, &g, a->weight, SC_NONE, SC_NONE, SC_NONE);
        }
        uint32_t dx =
            toy_value(t, VALUE_ACT_GRAD, v, 2 * op + 1, t->act_bytes, path);
        a->grad =
            toy_value(t, VALUE_WEIGHT_GRAD, v, 2 * op, t->weight_bytes, path);
        if (t->joint) {
            program_item b = toy_kernel(v, op, SC_PASS_BWD,
                                        (t->dgrad + t->wgrad) / t->ops, dx);
            toy_item(t, &b, dy, a->used, in, SC_NONE);
            t->prog.value[a->grad].made = t->prog.n_items - 1;
        } else {
            program_item d =
                toy_kernel(v, op, SC_PASS_DGRAD, t->dgrad / t->ops, dx);
            toy_item(t, &d, dy, a->used, SC_NONE, SC_NONE);
            program_item w =
                toy_kernel(v, op, SC_PASS_WGRAD, t->wgrad / t->ops, a->grad);
            toy_item(t, &w, dy, in, SC_NONE, SC_NONE);
        }
        a->kept = a->grad;
        if (t->zero == 3) {
            a->kept = toy_value(t, VALUE_GRAD_KEPT, v, 2 * op,
                                t->weight_bytes / t->dp, path);
            program_item s = toy_exchange(t, v, SC_NONE, op, SC_REDUCE_SCATTER,
                                          SC_PASS_WGRAD, t->reduce / t->ops,
                                          t->weight_bytes, a->kept);
            t->plan.exchange[s.exchange].grad = true;
            toy_item(t, &s, a->grad, SC_NONE, SC_NONE, SC_NONE);
        }
        dy = dx;
    }
    return dy;
}

static inline void toy_once(toy *t, uint32_t v, toy_op *o)
{
    double shard = t->zero ? t->weight_bytes / t->dp : t->weight_bytes;
    for (uint32_t k = t->ops; k-- > 0;) {
        uint32_t op = v * t->ops + k;
        toy_op *a = &o[op];
        const char *path = t->net.op[op].path;
        if (t->zero == 3 || t->dp == 1) continue;
        a->kept = toy_value(t, VALUE_GRAD_KEPT, v, 2 * op, shard, path);
        program_item s = toy_exchange(
            t, v, SC_NONE, op, t->zero ? SC_REDUCE_SCATTER : SC_ALL_REDUCE,
            SC_PASS_WGRAD, t->reduce / t->ops, t->weight_bytes, a->kept);
        t->plan.exchange[s.exchange].grad = true;
        s.once = true;
        toy_item(t, &s, a->grad, SC_NONE, SC_NONE, SC_NONE);
    }
    for (uint32_t k = 0; k < t->ops; k++) {
        uint32_t op = v * t->ops + k;
        toy_op *a = &o[op];
        const char *path = t->net.op[op].path;
        a->state = toy_value(t, VALUE_STATE, v, 2 * op, 6 * shard, path);
        a->fresh = toy_value(t, VALUE_WEIGHT_NEW, v, 2 * op, shard, path);
        program_item u =
            toy_kernel(v, op, SC_PASS_UPDATE, t->update / t->ops, a->fresh);
        u.once = true;
        if (t->update_bytes > 0) u.price.bytes = t->update_bytes;
        toy_item(t, &u, a->weight, a->kept, a->state, SC_NONE);
        if (t->zero != 1 || t->bucketed) continue;
        program_item g =
            toy_exchange(t, v, SC_NONE, op, SC_ALL_GATHER, SC_PASS_UPDATE,
                         t->gather, t->weight_bytes, SC_NONE);
        g.once = true;
        toy_item(t, &g, a->fresh, SC_NONE, SC_NONE, SC_NONE);
    }
    if (!t->bucketed) return;
    uint32_t *in = SC_NEW_N(&arena, uint32_t, t->ops);
    for (uint32_t k = 0; k < t->ops; k++) in[k] = o[v * t->ops + k].fresh;
    program_item g =
        toy_exchange(t, v, SC_NONE, v * t->ops, SC_ALL_GATHER, SC_PASS_UPDATE,
                     t->gather * t->ops, t->weight_bytes * t->ops, SC_NONE);
    g.latency = t->gather_latency;
    g.once = true;
    program_item *own = toy_item(t, &g, in[0], SC_NONE, SC_NONE, SC_NONE);
    own->in = in;
    own->n_in = t->ops;
}

/* A value of stage `v` at its neighbour. */
static inline uint32_t toy_send(toy *t, uint32_t v, uint32_t to, uint32_t op,
                                value_kind what, sc_op_pass pass, uint32_t x)
{
    uint32_t out = toy_value(t, what, to, 2 * op + 1, t->act_bytes, "received");
    program_item s = toy_exchange(t, v, to, op, SC_SENDRECV, pass, t->send,
                                  t->act_bytes, out);
    toy_item(t, &s, x, SC_NONE, SC_NONE, SC_NONE);
    return out;
}

/* Items by stage; gradients that come from later stages are made known
 * first. */
static inline void toy_program(toy *t)
{
    uint32_t n = t->n_stages;
    toy_op *o = SC_NEW_N(&arena, toy_op, (size_t)n * t->ops);
    uint32_t *dy = SC_NEW_N(&arena, uint32_t, n);
    uint32_t x =
        toy_value(t, VALUE_INPUT, 0, 2 * n * t->ops, t->act_bytes, "data");
    for (uint32_t v = 0; v < n; v++) {
        uint32_t last = (v + 1) * t->ops - 1, in = x;
        toy_forward(t, v, o, &x, false);
        uint32_t y = x;
        if (v + 1 < n)
            y = toy_send(t, v, v + 1, last, VALUE_ACT, SC_PASS_FWD, x);
        if (!t->forward_only) {
            uint32_t again = in;
            if (t->checkpoint) toy_forward(t, v, o, &again, true);
            /* of the last: from its own result */
            dy[v] = v + 1 < n ? toy_value(t, VALUE_ACT_GRAD, v, 2 * last + 1,
                                          t->act_bytes, "received")
                              : x;
            uint32_t dx = toy_backward(t, v, o, in, dy[v]);
            if (v) {
                program_item s = toy_exchange(t, v, v - 1, v * t->ops,
                                              SC_SENDRECV, SC_PASS_DGRAD,
                                              t->send, t->act_bytes, dy[v - 1]);
                toy_item(t, &s, dx, SC_NONE, SC_NONE, SC_NONE);
            }
            toy_once(t, v, o);
        }
        x = y;
    }
}

/* Everything of `t` below its first part. */
static inline void toy_build(toy *t)
{
    if (!t->vpp) t->vpp = 1;
    if (!t->dp) t->dp = 1;
    if (!t->ops) t->ops = 1;
    t->vpp = sc_schedule_chunks(t->schedule, t->vpp);
    t->n_stages = toy_stages(t);
    toy_graph(t);
    t->strategy = (sc_strategy){
        .file = "toy.yml",
        .n_axes = 2,
        .axis = {{.name = "pp", .size = t->pp, .is = SC_AX_PP},
                 {.name = "dp", .size = t->dp, .is = SC_AX_DP}},
        .zero_axis = -1,
        .context_parallel = -1,
        .schedule = (int)t->schedule,
        .grad_overlap = t->grad_overlap,
        .p2p_overlap = t->p2p_overlap,
        .optimizer_tier = t->states ? t->states : -1,
        .offload_activations = t->offload,
        .checkpoint_every = t->checkpoint_every,
        .checkpoint_async = t->checkpoint_async,
        .checkpoint_tier = t->checkpoint_disk ? SC_TIER_NVME : SC_TIER_CPU,
        .n_in_flight = t->in_flight ? t->pp : 0,
        .in_flight = t->in_flight};
    t->sw.prefetch = 1;
    sc_cost_centres(&t->cost);
    t->job = (sc_net_run){.hw = t->machine ? machine(t->machine) : NULL,
                          .cost = t->machine ? &t->cost : NULL,
                          .net = &t->net,
                          .strategy = &t->strategy,
                          .sw = &t->sw,
                          .rules = t->rules,
                          .micro = 1,
                          .ga = t->ga,
                          .forward_only = t->forward_only,
                          .order = t->order,
                          .unfold = t->unfold};
    t->plan =
        (sc_net_plan){.job = &t->job,
                      .n_stages = t->n_stages,
                      .n_ranks = t->pp * t->dp,
                      .exchange = SC_NEW_N(&arena, sc_net_exchange, TOY_ITEMS)};
    t->prog =
        (net_program){.value = SC_NEW_N(&arena, program_value, TOY_VALUES),
                      .item = SC_NEW_N(&arena, program_item, TOY_ITEMS)};
    t->plan.program = &t->prog;
    toy_program(t);
}

static inline void toy_lower(toy *t)
{
    toy_build(t);
    if (sc_net_plan_lower(&t->plan, &arena, &err) != SC_OK) no_error();
    assert_int_equal(err.n, 0);
}

#endif
