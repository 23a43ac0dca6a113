/* SPDX-License-Identifier: Apache-2.0 */
/* stepfit.c - the step set of parameters, fitted on measured runs. */
#include "calib/stepfit.h"

#include "calib/row.h"
#include "calib/stats.h"

#include <math.h>
#include <string.h>

/* ---- preparation -------------------------------------------------------------- */

static sc_status fast_with(sc_plan *p, uint32_t ga, const sc_block *block,
                           sc_arena *scratch, double *step, sc_err *err)
{
    uint32_t kept = p->run.ga;
    p->run.ga = ga;
    sc_status s = sc_predict_fast(p, block, scratch, step, err);
    p->run.ga = kept;
    return s;
}

/* Once the pipeline is full, every further pp micro-batches take as long: two
 * short steps give a long one.  What that misses is in log_event. */
static sc_status fast_step(sc_plan *p, const sc_block *block, sc_arena *scratch,
                           double *step, sc_err *err)
{
    uint32_t pp = p->run.size[SC_AX_PP], ga = p->run.ga, low = pp + ga % pp;
    if (ga < 4 * pp) return fast_with(p, ga, block, scratch, step, err);
    double t0, t1;
    SC_TRY(fast_with(p, low, block, scratch, &t0, err));
    SC_TRY(fast_with(p, low + pp, block, scratch, &t1, err));
    *step = t0 + (t1 - t0) * (ga - low) / pp;
    return SC_OK;
}

/* By the fast engine, times what the event engine added. */
static sc_status price(calib_fit_row *f, const sc_cost *c, sc_arena *scratch,
                       double *log_pred, sc_err *err)
{
    sc_arena_reset(scratch);
    f->plan.run.cost = c;
    uint32_t n = f->plan.run.model->n_layers;
    sc_block *block = SC_NEW_N(scratch, sc_block, n);
    if (!block) return sc_error_nomem(err);
    for (uint32_t i = 0; i < n; i++)
        SC_TRY(sc_block_price(&f->plan, i, scratch, &block[i], err));
    double step;
    SC_TRY(fast_step(&f->plan, block, scratch, &step, err));
    *log_pred = log(step) + f->log_event;
    return SC_OK;
}

/* A step of a graph takes a while: one of a configuration that came before has
 * the same.  (Of transformers, remarks say things too.) */
static bool same_graph(const calib_run *run, uint32_t i, sc_valid_row *rows,
                       sc_run *choice)
{
    if (run[i].reason || !run[i].model->graph) return false;
    for (uint32_t j = 0; j < i; j++) {
        if (run[j].reason || run[j].config_key != run[i].config_key) continue;
        rows[i] = rows[j];
        choice[i] = choice[j];
        rows[i].id = run[i].id;
        rows[i].measured = rows[i].median = run[i].measured;
        rows[i].error = rows[i].predicted / run[i].measured - 1;
        rows[i].mem_measured = run[i].mem_measured;
        rows[i].counted = false;
        return rows[j].reason == NULL && !run[i].unscored;
    }
    return false;
}

static sc_status predict_all(const calib_run *run, const sc_cost *at,
                             sc_arena *a, sc_arena *scratch, calib_fit_set *set,
                             sc_run *choice, sc_err *err)
{
    for (uint32_t i = 0; i < set->n_rows; i++) {
        if (same_graph(run, i, set->rows, choice)) continue;
        SC_TRY(calib_row_predict(&run[i], at, SC_ENGINE_EVENT, a, scratch,
                                 &set->rows[i], &choice[i], err));
    }
    return calib_mark_repeats(set->rows, set->n_rows, a, err);
}

/* Plans of the rows that count, and what the event engine adds to each. */
static sc_status keep_plans(const calib_run *run, const sc_run *choice,
                            const sc_cost *at, sc_arena *a, sc_arena *scratch,
                            calib_fit_set *set, sc_err *err)
{
    for (uint32_t i = 0; i < set->n_rows; i++) {
        if (!set->rows[i].counted) continue;
        if (run[i].model->graph) {
            set->graph[set->n_graphs++] =
                (calib_graph_row){&set->rows[i], &run[i], choice[i].mbs};
            continue;
        }
        calib_fit_row *f = &set->fit[set->n++];
        double log_fast;
        f->row = &set->rows[i];
        SC_TRY(sc_plan_build(&choice[i], a, &f->plan, err));
        SC_TRY(price(f, at, scratch, &log_fast, err));
        f->log_event = log(f->row->predicted) - log_fast;
    }
    return SC_OK;
}

sc_status calib_fit_prepare(const calib_run *run, uint32_t n, const sc_cost *at,
                            sc_arena *a, calib_fit_set *out, sc_err *err)
{
    calib_fit_set set = {.n_rows = n};
    sc_run *choice = SC_NEW_N(a, sc_run, n);
    set.rows = SC_NEW_N(a, sc_valid_row, n);
    set.fit = SC_NEW_N(a, calib_fit_row, n);
    set.graph = SC_NEW_N(a, calib_graph_row, n);
    if (!choice || !set.rows || !set.fit || !set.graph)
        return sc_error_nomem(err);
    sc_arena scratch;
    sc_arena_init(&scratch, a->limit);
    sc_status s = predict_all(run, at, a, &scratch, &set, choice, err);
    if (s == SC_OK) s = keep_plans(run, choice, at, a, &scratch, &set, err);
    sc_arena_free(&scratch);
    if (s == SC_OK) *out = set;
    return s;
}

/* ---- fit ------------------------------------------------------------------- */

typedef struct context {
    calib_fit_row **row; /* [n] those in use */
    uint32_t n;
    sc_arena scratch;
} context;

static sc_status price_all(void *ctx, const sc_cost *c, double *log_pred,
                           sc_err *err)
{
    context *k = ctx;
    for (uint32_t i = 0; i < k->n; i++)
        SC_TRY(price(k->row[i], c, &k->scratch, &log_pred[i], err));
    return SC_OK;
}

double calib_family_weight(double rows)
{
    return CALIB_FAMILY_WEIGHT * fmin(1, rows / CALIB_FAMILY_FULL) / rows;
}

static double family_weight(const context *k, uint32_t i)
{
    double rows = 0;
    for (uint32_t j = 0; j < k->n; j++)
        rows += strcmp(k->row[j]->row->family, k->row[i]->row->family) == 0;
    return calib_family_weight(rows);
}

uint32_t calib_fit_free(sc_param_set set, sc_param *out)
{
    uint32_t n = 0;
    for (int i = 0; i < (int)SC_N_PARAMS; i++) {
        if (sc_params[i].set != set || !(sc_params[i].sd > 0)) continue;
        out[n++] = (sc_param)i;
    }
    return n;
}

void calib_fit_centre(sc_param_set set, sc_cost *inout)
{
    sc_param p[SC_N_PARAMS];
    uint32_t n = calib_fit_free(set, p);
    for (uint32_t j = 0; j < n; j++) inout->p[p[j]] = sc_params[p[j]].centre;
}

sc_status calib_fit_step(const calib_fit_set *set, const bool *use,
                         sc_cost *inout, sc_fit_result *out, sc_arena *a,
                         sc_err *err)
{
    sc_param free_params[SC_N_PARAMS];
    uint32_t n_free = calib_fit_free(SC_SET_STEP, free_params);
    context k = {.row = SC_NEW_N(a, calib_fit_row *, set->n)};
    double *log_meas = SC_NEW_N(a, double, set->n);
    double *weight = SC_NEW_N(a, double, set->n);
    if (!k.row || !log_meas || !weight) return sc_error_nomem(err);
    for (uint32_t i = 0; i < set->n; i++) {
        if (use && !use[i]) continue;
        log_meas[k.n] = log(set->fit[i].row->median);
        k.row[k.n++] = &set->fit[i];
    }
    for (uint32_t i = 0; i < k.n; i++) weight[i] = family_weight(&k, i);
    sc_fit_problem problem = {.n_rows = k.n,
                              .n_free = n_free,
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
