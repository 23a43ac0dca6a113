/* SPDX-License-Identifier: Apache-2.0 */
/* sure.c - judges the best rows of a search among each other. */
#include "search/search_sure.h"

sc_status sc_search_judge(const sc_search_result *found, sc_search_goal goal,
                          sc_prediction *best, sc_arena *a, sc_search_sure *out,
                          sc_err *err)
{
    const sc_pick_opts o = {.settle = true};
    uint32_t n =
        found->n_best < SC_SEARCH_JUDGED ? found->n_best : SC_SEARCH_JUDGED;
    *out = (sc_search_sure){.n = 0};
    if (n == 0 || goal == SC_GOAL_ENERGY) return SC_OK;
    sc_pick_row *row = SC_NEW_N(a, sc_pick_row, n);
    if (!row) return sc_error_nomem(err);
    for (uint32_t i = 0; i < n; i++) {
        SC_TRY(sc_predict_shares(&best[i], a, err));
        /* own runs add a level to the step of a prediction; a factor on the
         * step leaves the error of its logarithm as it is */
        const sc_search_row *of = &found->best[i];
        double level = best[i].step_time_s / of->point.step_s;
        row[i] = (sc_pick_row){.step_s = level * of->score,
                               .traits = &best[i].traits};
    }
    SC_TRY(sc_pick_judge(best[0].run.cost, row, n, &o, a, &out->pick, err));
    out->n = n;
    out->row = row;
    return SC_OK;
}
