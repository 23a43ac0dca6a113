/* SPDX-License-Identifier: Apache-2.0 */
/* strategy_run.c - writes a run as a strategy. */
#include "plan/internal.h"
#include "plan/plan.h"
#include "plan/strategy.h"

/* Axes from the outermost to the innermost, as plan_axes.h numbers ranks. */
static const uint8_t outer_first[] = {SC_AX_PP, SC_AX_REP, SC_AX_DP,
                                      SC_AX_EP, SC_AX_CP,  SC_AX_TP};

/* Translates a list of a strategy's axes to the run's mesh.  `as`
 * [SC_MESH_AXES] has the index there, or SC_NONE for an axis of size 1. */
static sc_axes moved(sc_axes list, const uint32_t *as)
{
    sc_axes out = 0;
    for (uint32_t at = 0; list; list >>= 4) {
        uint32_t axis = as[(list & 15) - 1];
        if (axis != SC_NONE) out |= (sc_axes)(axis + 1) << (4 * at++);
    }
    return out;
}

static void find_axes(const sc_strategy *from, const sc_strategy *to,
                      uint32_t as[SC_MESH_AXES])
{
    for (uint32_t i = 0; i < SC_MESH_AXES; i++) as[i] = SC_NONE;
    for (uint32_t i = 0; i < from->n_axes; i++) {
        int ax = plan_run_axis(from, i);
        int at = ax < 0 ? -1 : sc_strategy_axis(to, (sc_axis)ax);
        if (at >= 0 && from->axis[i].size > 1) as[i] = (uint32_t)at;
    }
}

static bool move_rule(sc_strategy_rule *r, const uint32_t *as, sc_arena *a)
{
    sc_rule_split *own = SC_NEW_N(a, sc_rule_split, r->n_split);
    if (!own) return false;
    for (uint32_t i = 0; i < r->n_split; i++) {
        own[i] = r->split[i];
        own[i].axes = moved(own[i].axes, as);
    }
    r->split = own;
    r->assign = moved(r->assign, as);
    return true;
}

static sc_status move_rules(sc_strategy *s, const sc_strategy *from,
                            sc_arena *a, sc_err *err)
{
    uint32_t as[SC_MESH_AXES];
    sc_strategy_rule *own = SC_NEW_N(a, sc_strategy_rule, s->n_rules);
    if (!own) return sc_error_nomem(err);
    find_axes(from, s, as);
    for (uint32_t i = 0; i < s->n_rules; i++) {
        own[i] = from->rule[i];
        if (!move_rule(&own[i], as, a)) return sc_error_nomem(err);
    }
    s->rule = own;
    s->zero_axis = -1; /* dp is the axis that shards in the run's mesh */
    return SC_OK;
}

/* Stages on unequal devices have unequal numbers of blocks, which the strategy
 * must list. */
static sc_status list_cuts(const sc_run *r, sc_arena *a, sc_strategy *s,
                           sc_err *err)
{
    sc_plan p;
    if (s->cuts != SC_CUT_EVEN || r->size[SC_AX_PP] == 1 || !r->hw->n_groups)
        return SC_OK;
    SC_TRY(sc_plan_build(r, a, &p, err));
    if (!p.uneven) return SC_OK;
    s->cut = SC_NEW_N(a, sc_strategy_cut, p.n_stages);
    if (!s->cut) return sc_error_nomem(err);
    for (uint32_t v = 0; v < p.n_stages; v++)
        s->cut[v] = (sc_strategy_cut){NULL, p.stage[v].blocks, sc_pos_none()};
    s->cuts = SC_CUT_LIST;
    s->n_cuts = p.n_stages;
    return SC_OK;
}

bool plan_divides_products(const sc_run *r)
{
    const sc_strategy *s = r->strategy;
    bool none = s && s->n_axes > 0 && s->tensor_parallel == 0;
    return r->size[SC_AX_TP] > 1 && !none;
}

static void recompute_method(const sc_run *r, sc_strategy *s)
{
    bool full = r->recompute == SC_RC_FULL;
    s->rc_method = full && r->rc_first > 0   ? SC_RCM_BLOCK
                   : full && r->rc_group > 0 ? SC_RCM_UNIFORM
                                             : -1;
    s->rc_blocks = s->rc_method == SC_RCM_BLOCK     ? r->rc_first
                   : s->rc_method == SC_RCM_UNIFORM ? r->rc_group
                                                    : 0;
}

sc_status sc_strategy_of_run(const sc_run *r, sc_arena *a, sc_strategy *out,
                             sc_err *err)
{
    sc_strategy s;
    sc_strategy_init(&s);
    if (r->strategy) s = *r->strategy;
    s.n_axes = 0;
    for (size_t i = 0; i < SC_COUNT(outer_first); i++) {
        uint32_t ax = outer_first[i];
        if (r->size[ax] > 1) sc_strategy_add_axis(&s, (sc_axis)ax, r->size[ax]);
    }
    if (s.n_axes == 0) sc_strategy_add_axis(&s, SC_AX_DP, 1);
    s.global = (int64_t)r->gbs;
    s.micro = (int64_t)r->mbs;
    s.seq = (int64_t)r->seq;
    s.precision = (int)r->recipe;
    s.tensor_parallel = plan_divides_products(r) ? 1 + r->sp : 0;
    s.experts_over_tp = r->experts_over_tp;
    s.zero = r->zero;
    s.recompute = (int)r->recompute;
    recompute_method(r, &s);
    s.context_parallel = r->sw->cp_comm;
    s.schedule = r->order ? -1 : (int)r->schedule;
    s.virtual_stages = r->vpp;
    s.offload_activations = r->offload;
    s.offload_weights = r->offload_weights;
    s.offload_to = r->offload_to;
    s.optimizer_tier = r->optim_tier;
    s.checkpoint_every = r->checkpoint_every;
    s.checkpoint_async = r->checkpoint_async;
    SC_TRY(list_cuts(r, a, &s, err));
    if (r->strategy) SC_TRY(move_rules(&s, r->strategy, a, err));
    *out = s;
    return SC_OK;
}
