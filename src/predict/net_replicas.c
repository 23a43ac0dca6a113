/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net_replicas.c - predicts replicas of a network on devices of several kinds,
 * each with its own number of micro-batches. The step is that of the slowest
 * replica, as if every node had its kind.
 */
#include "predict/net.h"

#include <string.h>

bool predict_net_mixed(const net_prediction *x)
{
    return x->tree.n_pools > 0 && x->tree.pool[0].replicas > 0;
}

static sc_status supported(const net_prediction *x, sc_err *err)
{
    const sc_strategy_pool *pool = x->tree.pool;
    uint32_t sum = 0;
    uint64_t dp = sc_strategy_replicas(&x->tree);
    for (uint32_t i = 0; i < x->tree.n_pools; i++)
        sum += x->tree.pool[i].replicas;
    if (sum != dp)
        return sc_error(err, SC_EINPUT, SC_C_CONFLICT, pool->pos, NULL,
                        "the pools have %u replicas, but the mesh has %llu",
                        sum, (unsigned long long)dp);
    if (sc_strategy_degree(&x->tree, SC_AX_PP) > 1)
        return sc_error(err, SC_EINPUT, SC_C_UNSUPPORTED, pool->pos,
                        "use pools of stages, or no pp",
                        "pools of replicas can't have a pipeline");
    for (uint32_t i = 0; i < x->tree.n_rules; i++)
        if (x->tree.rule[i].pool)
            return sc_error(
                err, SC_EINPUT, SC_C_UNSUPPORTED, x->tree.rule[i].pos,
                "name a pool of stages, or write devices: {dp: 0}",
                "operators can't run only on the replicas of pool %s",
                x->tree.rule[i].pool);
    if (x->tree.zero <= 1) return SC_OK;
    return sc_error(err, SC_EINPUT, SC_C_CONFLICT, pool->pos, "ZeRO 0 or 1",
                    "ZeRO %lld exchanges gradients after every micro-batch, "
                    "but replicas have different numbers of micro-batches",
                    (long long)x->tree.zero);
}

/* Prices one more micro-batch of a kind. */
static sc_status price(net_prediction *x, uint64_t micro, predict_kind *k,
                       sc_err *err)
{
    sc_net_step one, two;
    sc_arena_mark mark = sc_arena_save(x->a);
    x->net_run.hw = k->hw;
    SC_TRY(predict_net_run(x, micro, 1, x->a, &one, err));
    SC_TRY(predict_net_run(x, micro, 2, x->a, &two, err));
    k->one_s = sc_time_to_s(two.run.makespan - one.run.makespan);
    sc_arena_restore(x->a, mark);
    return SC_OK;
}

static sc_status kinds(net_prediction *x, uint64_t micro, predict_spread *s,
                       sc_err *err)
{
    uint32_t first = 0, all = (uint32_t)sc_strategy_replicas(&x->tree);
    s->k = SC_NEW_N(x->a, predict_kind, x->tree.n_pools);
    if (!s->k) return sc_error_nomem(err);
    for (uint32_t i = 0; i < x->tree.n_pools; i++) {
        const sc_strategy_pool *pool = &x->tree.pool[i];
        predict_kind *k = &s->k[s->n++];
        SC_TRY(predict_kind_open(x->hw, all, pool, first, k, x->a, err));
        SC_TRY(price(x, micro, k, err));
        first += pool->replicas;
    }
    return SC_OK;
}

/* Scales a plan in which all replicas have the slowest kind to `samples`. */
static void scale_samples(sc_net_plan *p, uint64_t samples)
{
    double of = (double)samples / p->samples;
    p->samples *= of;
    p->flops *= of;
    p->model_flops *= of;
    p->recomputed_flops *= of;
}

sc_status predict_net_replicas(net_prediction *x, uint64_t samples,
                               uint64_t micro, sc_net_step *out, sc_err *err)
{
    sc_strategy *alike = SC_NEW(x->a, sc_strategy);
    predict_spread s = {.all = samples / micro};
    if (!alike) return sc_error_nomem(err);
    SC_TRY(supported(x, err));
    if (samples % micro != 0)
        return sc_error(err, SC_EINPUT, SC_C_DIVIDE,
                        sc_pos_file("--micro-batch"), NULL,
                        "%llu does not divide %llu samples",
                        (unsigned long long)micro, (unsigned long long)samples);
    *alike = x->tree;
    alike->n_pools = 0; /* every node has the same kind now */
    x->net_run.strategy = alike;
    SC_TRY(kinds(x, micro, &s, err));
    SC_TRY(predict_deal(&s, &x->assume, err));
    const predict_kind *most = predict_slowest_kind(&s, x->a);
    if (!most) return sc_error_nomem(err);
    x->net_run.hw = most->hw;
    SC_TRY(predict_net_run(x, micro, most->mbs, x->a, out, err));
    scale_samples(&out->plan, samples);
    return SC_OK;
}
