/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sensitivity.c - which parameters a predicted step depends on most: each is
 * moved alone and the same configuration composed again by the fast engine.
 */
#include <stepcast/predict.h>

#include <math.h>

static const double up = 1.1; /* the change that is asked about */

static sc_status step_with(const sc_run *run, const sc_cost *cost, sc_arena *a,
                           double *step_s, sc_err *err)
{
    sc_run r = *run;
    sc_plan plan;
    sc_block *blocks = NULL;
    sc_arena_mark mark = sc_arena_save(a);
    r.cost = cost;
    sc_status s = sc_plan_build(&r, a, &plan, err);
    if (s == SC_OK) s = sc_blocks_price(&plan, a, &blocks, err);
    if (s == SC_OK) s = sc_predict_fast(&plan, blocks, a, step_s, err);
    sc_arena_restore(a, mark);
    return s;
}

/* Keeps the largest, in falling order; equal ones in order of the table. */
static void keep(sc_sensitivity x, sc_sensitivity *out, uint32_t *n)
{
    uint32_t at = *n;
    while (at > 0 && fabs(x.change) > fabs(out[at - 1].change)) at--;
    if (at == SC_SENSITIVITY_MAX) return;
    if (*n < SC_SENSITIVITY_MAX) (*n)++;
    for (uint32_t i = *n - 1; i > at; i--) out[i] = out[i - 1];
    out[at] = x;
}

sc_status sc_predict_sensitivity(const sc_run *run, sc_arena *a,
                                 sc_sensitivity out[SC_SENSITIVITY_MAX],
                                 uint32_t *n, sc_err *err)
{
    static const double least = 1e-4; /* smaller changes are not told */
    double base = 0;
    uint32_t found = 0;
    sc_sensitivity most[SC_SENSITIVITY_MAX];
    SC_TRY(step_with(run, run->cost, a, &base, err));
    for (int i = 0; i < (int)SC_N_PARAMS; i++) {
        sc_cost moved = *run->cost;
        double v = moved.p[i], step;
        /* At its limit it is moved down, and the change told from there. */
        bool down = v * up > sc_params[i].hi;
        moved.p[i] = down ? v / up : v * up;
        if (!(v > 0) || moved.p[i] < sc_params[i].lo) continue;
        SC_TRY(step_with(run, &moved, a, &step, err));
        double change = down ? base / step - 1 : step / base - 1;
        if (fabs(change) < least) continue;
        keep((sc_sensitivity){sc_params[i].name, change}, most, &found);
    }
    for (uint32_t i = 0; i < found; i++) out[i] = most[i];
    *n = found;
    return SC_OK;
}
