/* SPDX-License-Identifier: Apache-2.0 */
/* step_fixed.c - the time of a step that no kernel or link explains. */
#include "plan/internal.h"
#include "plan/program.h"

/* Weights of a block, and of what is outside the blocks. */
static void count_weights(const sc_net *g, uint32_t *inside, uint32_t *outside)
{
    const char *first = NULL;
    *inside = *outside = 0;
    for (uint32_t i = 0; i < g->n_ops; i++) {
        const sc_net_op *o = &g->op[i];
        bool block = infer_in_block(o->path);
        if (block && !first) first = o->path;
        if (!block) *outside += o->n_weight;
        if (block && infer_same_unit(first, o->path)) *inside += o->n_weight;
    }
}

/* Slices that the host makes for the gather of updated weights: one of each
 * weight of the stage with most blocks for each replica. */
static double slices(const sc_run *r)
{
    uint32_t inside, outside, stages = sc_run_stages(r);
    uint32_t dp = r->size[SC_AX_DP];
    if (r->zero != 1 || dp < 2 || !r->model->kinds) return 0;
    count_weights(r->model->kinds, &inside, &outside);
    uint32_t blocks = (r->model->n_blocks + stages - 1) / stages;
    return (double)dp * ((double)blocks * inside + (stages > 1 ? 0 : outside));
}

static double value_of(const sc_run *r, size_t key)
{
    return sc_software_value(r->sw, key, r->cost);
}

double sc_plan_step_fixed(const sc_run *r)
{
    const double *p = r->cost->p;
    double own = value_of(r, offsetof(sc_software, step_fixed_s));
    double slice = value_of(r, offsetof(sc_software, weight_slice_s));
    double s = own > 0 ? own : p[SC_P_STEP_FIXED];
    if (r->sw->capture == SC_CAPTURE_STEP)
        s *= p[SC_P_STEP_CAPTURED];
    else if (r->sw->step_ahead)
        s *= p[SC_P_STEP_AHEAD];
    return s + slices(r) * slice;
}
