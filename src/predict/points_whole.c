/* SPDX-License-Identifier: Apache-2.0 */
/*
 * points_whole.c - evaluates jobs whose steps are not composed of segments:
 * networks of operators, strategies with rules outside the search of `predict`,
 * pools of replicas, steps that wait for checkpoints. Each is predicted as a
 * whole.
 */
#include "predict/points.h"

#include <math.h>

sc_status points_whole_open(const sc_job *job, sc_arena *a, sc_run *base,
                            predict_notes *unread, sc_err *err)
{
    sc_job own = *job;
    SC_TRY(predict_net_software(job, base, a, &base->sw, err));
    if (base->model->net) own.seq = 1;
    return predict_base(&own, a, base, unread, err);
}

/* 9 x 9 results of windows of 5 x 5 need 13 x 13 products by Winograd's
 * algorithm, the largest of its tiles, instead of 45 x 45. */
static double saved_by_tiles(const sc_model *m)
{
    const sc_net *g = m->net;
    for (uint32_t i = 0; g && i < g->n_ops; i++)
        for (uint32_t k = 0; k < g->op[i].n_iter; k++)
            if (g->op[i].iter[k].halo > 0) return 169.0 / 2025;
    return 1;
}

sc_status points_whole_run(const sc_job *job, const sc_inputs *in, sc_arena *a,
                           sc_point *out, double *flops, sc_err *err)
{
    sc_prediction p;
    sc_job own = *job;
    sc_arena_mark mark = sc_arena_save(a);
    own.engine = SC_ENGINE_FAST;
    own.brief = true;
    SC_TRY(sc_predict(&own, in->hw, in->model, in->sw, in->cost, a, &p, err));
    *out = (sc_point){.step_s = p.step_time_s, .fits = p.fits};
    for (uint32_t i = 0; i < p.n_stages; i++)
        out->peak = fmax(out->peak, p.memory[i].peak);
    out->full = predict_stages_full(in->hw, p.memory, p.n_stages);
    double executed = p.net->plan.flops - p.net->plan.recomputed_flops;
    *flops =
        fmin(executed, p.net->plan.model_flops) * saved_by_tiles(in->model);
    sc_arena_restore(a, mark);
    return SC_OK;
}
