/* SPDX-License-Identifier: Apache-2.0 */
/* space_mesh.c - lists the meshes and batches that a job leaves open. */
#include "predict/space_mesh.h"

#include <stdio.h>

static sc_status add_mesh(search_space *x, const sc_run *r)
{
    mesh *all = sc_grow(x->a, x->mesh, x->n, &x->cap, 64, sizeof *all);
    if (!all) return sc_error_nomem(x->err);
    x->mesh = all;
    x->mesh[x->n] = (mesh){.run = *r, .at = x->n};
    x->n++;
    return SC_OK;
}

static sc_status refuse(search_space *x, const char *flag, int64_t value,
                        const char *hint, const char *what)
{
    char option[40];
    snprintf(option, sizeof option, "%s %lld", flag, (long long)value);
    if (x->refused.n == 0)
        (void)sc_error(&x->refused, SC_EINPUT, SC_C_DIVIDE, sc_pos_file(option),
                       hint, "%s", what);
    return SC_OK;
}

static sc_status refuse_parts(search_space *x, uint64_t replicas)
{
    char what[100];
    snprintf(what, sizeof what,
             "%llu replicas cannot have as many equal micro-batches",
             (unsigned long long)replicas);
    return refuse(x, "--accumulation", x->job->accumulation,
                  "global batch = micro-batch x dp x micro-batches", what);
}

static sc_status list_batches(search_space *x, sc_run r)
{
    uint64_t replicas = sc_run_dp(&r), per = r.gbs / replicas;
    uint64_t given = (uint64_t)x->job->mbs;
    uint64_t parts = (uint64_t)x->job->accumulation;
    if (parts && (per % parts != 0 || (given && given != per / parts)))
        return refuse_parts(x, replicas);
    if (parts) given = per / parts;
    if (r.gbs % replicas != 0) {
        if (!given && !x->job->dp) return SC_OK;
        r.mbs = given ? given : 1; /* the checks report an illegal batch */
        r.ga = 1;
        return add_mesh(x, &r);
    }
    for (uint64_t m = given ? given : 1;
         given || (m <= BATCH_USUAL && m <= per); m++) {
        if (!given && per % m != 0) continue;
        r.mbs = m;
        r.ga = (uint32_t)(per / m ? per / m : 1);
        SC_TRY(add_mesh(x, &r));
        if (given) break;
    }
    return SC_OK;
}

/* Keeps the error in case no choice is legal. With all other degrees given,
 * the smallest dp with such groups gives the number of devices needed. */
static sc_status refuse_experts(search_space *x, const sc_run *r, uint64_t tp,
                                uint64_t dp)
{
    char what[100], hint[160];
    uint64_t ep = (uint64_t)x->job->ep, part = ep % tp == 0 ? ep / tp : ep;
    uint64_t devices = part * tp * r->size[SC_AX_PP] * r->size[SC_AX_CP];
    snprintf(what, sizeof what,
             "dp x tp has no groups of %llu ranks: dp is %llu, tp is %llu",
             (unsigned long long)ep, (unsigned long long)dp,
             (unsigned long long)tp);
    int at = snprintf(hint, sizeof hint, "use dp %llu, which ",
                      (unsigned long long)part);
    if (part > dp && x->job->tp && x->job->pp && !x->job->hsdp)
        predict_needs(x->base.hw, devices, hint + at, sizeof hint - (size_t)at);
    else
        snprintf(
            hint, sizeof hint,
            "ep must divide dp, or be a multiple of tp that divides dp x tp");
    return refuse(x, "--ep", x->job->ep, hint, what);
}

static sc_status refuse_groups(search_space *x, uint64_t dp)
{
    char what[80];
    snprintf(what, sizeof what, "%lld does not divide dp %llu",
             (long long)x->job->hsdp, (unsigned long long)dp);
    return refuse(x, "--hsdp", x->job->hsdp,
                  "use groups of equal size, for example the ranks of a node",
                  what);
}

/* Ranks of dp among the `ep` ranks that share the experts; 0: there is no
 * such group. If experts are not split over tp (etp 1), or dp is too small, the
 * group includes the ranks of tp first, as in Megatron-Core. */
static uint64_t expert_axis(const search_space *x, uint64_t ep, uint64_t tp,
                            uint64_t dp, bool *over)
{
    bool split = x->base.sw->etp != 1 && dp % ep == 0;
    *over = !split && tp > 1 && ep > 1 && ep % tp == 0 && dp % (ep / tp) == 0;
    uint64_t axis = *over ? ep / tp : ep;
    return dp % axis == 0 ? axis : 0;
}

/* Lists the given ep, or as many ranks of one node as possible, or more. */
static sc_status list_experts(search_space *x, sc_run r, uint64_t tp,
                              uint64_t dp)
{
    uint64_t experts = (uint64_t)r.model->t.experts;
    uint64_t given = (uint64_t)x->job->ep, ep = given ? given : 1, axis;
    uint64_t shard = x->job->hsdp ? (uint64_t)x->job->hsdp : dp;
    bool can = space_has(x->law.axes, SC_AX_EP);
    if (dp % shard != 0) return refuse_groups(x, dp);
    for (uint64_t e = 2; can && !given && e <= r.hw->node_size; e++)
        if (experts && experts % e == 0 &&
            expert_axis(x, e, tp, shard, &r.experts_over_tp))
            ep = e;
    while ((axis = expert_axis(x, ep, tp, shard, &r.experts_over_tp))) {
        r.size[SC_AX_EP] = (uint32_t)axis;
        r.size[SC_AX_DP] = (uint32_t)(shard / axis);
        r.size[SC_AX_REP] = (uint32_t)(dp / shard);
        SC_TRY(list_batches(x, r));
        ep *= 2;
        if (!can || given || !experts || experts % ep != 0) return SC_OK;
    }
    return given ? refuse_experts(x, &r, tp, shard) : SC_OK;
}

static sc_status list_mesh(search_space *x, uint64_t tp, uint64_t pp,
                           uint64_t cp)
{
    uint64_t n = x->base.hw->n_devices, inner = tp * pp * cp;
    uint64_t dp = x->job->dp ? (uint64_t)x->job->dp : n / inner;
    bool closed = x->job->tp && x->job->pp;
    if ((dp == 0 || dp * inner != n) && !closed) return SC_OK;
    if (dp == 0) dp = 1;
    sc_run r = x->base;
    r.size[SC_AX_TP] = (uint32_t)tp;
    r.size[SC_AX_PP] = (uint32_t)pp;
    r.size[SC_AX_CP] = (uint32_t)cp;
    r.size[SC_AX_EP] = 1;
    r.size[SC_AX_DP] = (uint32_t)dp;
    r.sp = x->job->sp >= 0 ? x->job->sp
                           : x->law.sp && tp > 1 && r.seq % (tp * cp) == 0;
    return list_experts(x, r, tp, dp);
}

static bool tp_legal(const search_space *x, uint64_t tp)
{
    const sc_transformer *t = &x->base.model->t;
    if (x->job->tp) return (uint64_t)x->job->tp == tp;
    if (tp > 1 && !space_has(x->law.axes, SC_AX_TP)) return false;
    return (tp <= x->base.hw->node_size || x->unusual) &&
           (uint64_t)t->heads % tp == 0 && (uint64_t)t->ffn % tp == 0;
}

static bool pp_legal(const search_space *x, uint64_t pp)
{
    uint64_t layers = (uint64_t)x->base.model->t.layers;
    sc_assert(pp > 0);
    if (x->job->pp) return (uint64_t)x->job->pp == pp;
    if (pp > 1 && !space_has(x->law.axes, SC_AX_PP)) return false;
    bool even = layers % pp == 0 || (layers + 2) % pp == 0;
    return pp <= layers && (x->unusual || (even && pp <= PIPELINE_USUAL));
}

/* Context parallelism is only tried for long sequences. */
static bool cp_legal(const search_space *x, uint64_t cp)
{
    const sc_run *r = &x->base;
    if (x->job->cp) return (uint64_t)x->job->cp == cp;
    if (cp == 1) return true;
    if (!space_has(x->law.axes, SC_AX_CP) || r->seq % cp != 0) return false;
    return x->unusual ||
           (r->seq >= CONTEXT_LONG && r->seq / cp >= CONTEXT_USUAL);
}

static sc_status list_contexts(search_space *x, uint64_t tp, uint64_t pp)
{
    uint64_t n = x->base.hw->n_devices, given = (uint64_t)x->job->cp;
    uint64_t ranks = n / (tp * pp);
    for (uint64_t cp = given ? given : 1; given || cp <= ranks; cp++) {
        bool legal = cp_legal(x, cp) && (given || ranks % cp == 0);
        if (legal) SC_TRY(list_mesh(x, tp, pp, cp));
        if (given) break;
        if (ranks == 0) break;
    }
    return ranks == 0 && !given ? list_mesh(x, tp, pp, 1) : SC_OK;
}

sc_status space_meshes(search_space *x)
{
    uint64_t n = x->base.hw->n_devices;
    uint64_t tp_given = (uint64_t)x->job->tp, pp_given = (uint64_t)x->job->pp;
    uint64_t max_tp = tp_given ? tp_given : n, max_pp = pp_given ? pp_given : n;
    x->n = 0;
    for (uint64_t tp = tp_given ? tp_given : 1; tp <= max_tp; tp++) {
        if (!tp_legal(x, tp) || (!tp_given && n % tp != 0)) continue;
        for (uint64_t pp = pp_given ? pp_given : 1; pp <= max_pp; pp++) {
            if (!pp_legal(x, pp) || (!pp_given && n % (tp * pp) != 0)) continue;
            SC_TRY(list_contexts(x, tp, pp));
        }
    }
    return SC_OK;
}
