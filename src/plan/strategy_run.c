/* SPDX-License-Identifier: Apache-2.0 */
/* strategy_run.c - a run whose choices are all made, as a strategy. */
#include <stepcast/plan.h>

#include "plan/strategy.h"

/* Outer to inner, as plan.h numbers ranks. */
static const uint8_t outer_first[] = {SC_AX_PP, SC_AX_REP, SC_AX_DP,
                                      SC_AX_EP, SC_AX_CP,  SC_AX_TP};

void sc_strategy_of_run(const sc_run *r, sc_strategy *out)
{
    sc_strategy s;
    sc_strategy_init(&s);
    if (r->strategy) s = *r->strategy;
    s.n_axes = 0;
    for (size_t i = 0; i < SC_COUNT(outer_first); i++) {
        uint32_t ax = outer_first[i];
        if (r->size[ax] > 1)
            s.axis[s.n_axes++] =
                (sc_mesh_axis){sc_axis_names[ax], r->size[ax], sc_pos_none()};
    }
    if (s.n_axes == 0)
        s.axis[s.n_axes++] = (sc_mesh_axis){"dp", 1, sc_pos_none()};
    s.global = (int64_t)r->gbs;
    s.micro = (int64_t)r->mbs;
    s.seq = (int64_t)r->seq;
    s.precision = sc_recipe_names[r->recipe];
    s.tensor_parallel = r->size[SC_AX_TP] > 1 ? 1 + r->sp : 0;
    s.experts_over_tp = r->experts_over_tp;
    s.zero = r->zero;
    s.recompute = (int)r->recompute;
    s.context_parallel = sc_cp_comm_names[r->sw->cp_comm];
    s.schedule = r->order ? -1 : (int)r->schedule;
    s.virtual_stages = r->vpp;
    s.offload_activations = r->offload;
    s.optimizer_tier = r->optim_tier;
    s.checkpoint_every = r->checkpoint_every;
    s.checkpoint_async = r->checkpoint_async;
    *out = s;
}
