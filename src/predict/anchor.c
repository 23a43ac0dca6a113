/* SPDX-License-Identifier: Apache-2.0 */
/* anchor.c - what own runs change in a prediction. */
#include "predict/internal.h"

#include <math.h>

/* ---- levels -------------------------------------------------------------- */

void predict_level(sc_prediction *p, double least_s, predict_notes *assume)
{
    const sc_anchors *s = p->run.cost->anchors;
    p->level = 0;
    if (!s) return;
    p->level = sc_anchors_level_of(s, &p->traits);
    double least = log(least_s / p->step_time_s);
    if (p->level < least) {
        p->level = fmin(0, least);
        predict_note(assume, "the level of own runs is limited to the time of "
                             "the device's peak");
    }
    double by = exp(p->level);
    p->step_time_s *= by;
    p->other_engine_s *= by;
    for (uint32_t c = 0; c < SC_N_CATS; c++) p->time_breakdown_s[c] *= by;
}

sc_status predict_anchor_note(sc_prediction *p, sc_arena *a, sc_err *err)
{
    const sc_anchors *s = p->run.cost->anchors;
    if (!s) return SC_OK;
    return predict_assume(
        p,
        sc_sprintf(a,
                   "own runs: %u, which scale the step by %.3g beyond "
                   "the parameters that they move, and the interval's "
                   "logarithms by %.2g",
                   s->n, exp(p->level), p->narrow),
        a, err);
}

sc_status sc_anchor_of(sc_prediction *p, const char *id, double measured_s,
                       double noise, sc_arena *a, sc_anchor *out, sc_err *err)
{
    SC_TRY(sc_predict_shares(p, a, err));
    *out = (sc_anchor){.id = id,
                       .measured_s = measured_s,
                       .predicted_s = p->step_time_s,
                       .moved_s = NAN,
                       .noise = fmax(noise, SC_ANCHOR_NOISE),
                       .traits = p->traits};
    return SC_OK;
}
