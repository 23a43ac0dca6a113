/* SPDX-License-Identifier: Apache-2.0 */
/* graphfit.c - the graph set of parameters, fitted on measured steps of
 * operator graphs; what transformers determine stays. */
#include "calib/stepfit.h"

#include <math.h>
#include <string.h>

typedef struct context {
    const calib_graph_row **row; /* [n] those in use */
    uint32_t n;
    sc_arena scratch;
} context;

static sc_status price(const calib_graph_row *g, const sc_cost *c,
                       sc_arena *scratch, double *log_pred, sc_err *err)
{
    sc_job job = g->run->job;
    sc_prediction p;
    job.brief = true;
    job.mbs = (int64_t)g->mbs;
    sc_arena_reset(scratch);
    SC_TRY(sc_predict(&job, g->run->hw, g->run->model, g->run->sw, c, scratch,
                      &p, err));
    *log_pred = log(p.step_time_s);
    return SC_OK;
}

static sc_status price_all(void *ctx, const sc_cost *c, double *log_pred,
                           sc_err *err)
{
    context *k = ctx;
    for (uint32_t i = 0; i < k->n; i++)
        SC_TRY(price(k->row[i], c, &k->scratch, &log_pred[i], err));
    return SC_OK;
}

static double weight_of(const context *k, uint32_t i)
{
    double rows = 0;
    for (uint32_t j = 0; j < k->n; j++)
        rows += strcmp(k->row[j]->row->family, k->row[i]->row->family) == 0;
    return calib_family_weight(rows);
}

sc_status calib_fit_graph(const calib_fit_set *set, const bool *use,
                          sc_cost *inout, sc_fit_result *out, sc_arena *a,
                          sc_err *err)
{
    sc_param free_params[SC_N_PARAMS];
    uint32_t n = set->n_graphs;
    context k = {.row = SC_NEW_N(a, const calib_graph_row *, n)};
    double *log_meas = SC_NEW_N(a, double, n), *weight = SC_NEW_N(a, double, n);
    if (!k.row || !log_meas || !weight) return sc_error_nomem(err);
    for (uint32_t i = 0; i < n; i++) {
        if (use && !use[i]) continue;
        log_meas[k.n] = log(set->graph[i].row->median);
        k.row[k.n++] = &set->graph[i];
    }
    for (uint32_t i = 0; i < k.n; i++) weight[i] = weight_of(&k, i);
    sc_fit_problem problem = {.n_rows = k.n,
                              .n_free =
                                  calib_fit_free(SC_SET_GRAPH, free_params),
                              .free = free_params,
                              .log_meas = log_meas,
                              .weight = weight,
                              .model = price_all,
                              .ctx = &k};
    sc_arena_init(&k.scratch, a->limit);
    sc_status s = sc_fit(&problem, inout, out, a, err);
    sc_arena_free(&k.scratch);
    return s;
}
