/* SPDX-License-Identifier: Apache-2.0 */
/* Fits the `network` parameters, and computes the errors of network tables. */
#include "calib/network.h"

#include <math.h>

/* A group counts as this many independent rows, however many rows it has. */
static const double group_rows = 10;

static const double small_bytes = 1048576;

double network_predict(const network_row *r, const sc_cost *c)
{
    sc_coll_price price;
    if (sc_cost_coll(c, r->hw, r->coll, r->bytes, &r->at, r->algorithm, &price,
                     NULL) != SC_OK)
        return NAN;
    double floor;
    switch (r->harness) {
    case NETWORK_BENCH: return price.seconds + c->p[SC_P_HARNESS_BENCH];
    case NETWORK_HOST:
        floor = c->p[SC_P_HARNESS_HOST0] + c->p[SC_P_HARNESS_HOST1] * r->at.n;
        return price.seconds > floor ? price.seconds : floor;
    case NETWORK_NONE: break;
    }
    return price.seconds;
}

/* ---- report ---------------------------------------------------------------------- */

typedef struct error_sum {
    double sum[2]; /* [1]: of sizes up to small_bytes */
    uint32_t n[2];
} error_sum;

static void mean_cell(sc_text *report, double sum, uint32_t n)
{
    if (n > 0)
        sc_text_add(report, " %6.1f %% (%3u)", 100 * sum / n, n);
    else
        sc_text_add(report, "        - (  0)");
}

static void report_group(const network_group *g, const error_sum *e,
                         sc_text *report)
{
    sc_text_add(report, "  %-14s %4u ranks %3u nodes %-14s", g->gpu, g->ranks,
                g->nodes, sc_coll_names[g->coll]);
    mean_cell(report, e->sum[0], e->n[0]);
    mean_cell(report, e->sum[1], e->n[1]);
    sc_text_add(report, "\n");
}

static void report_skips(const network_rows *rows, sc_text *report)
{
    sc_text_add(report, "%u of %u rows used\n", rows->n, rows->n_table);
    for (int i = NETWORK_USED + 1; i < NETWORK_N_SKIPS; i++)
        if (rows->skipped[i] > 0)
            sc_text_add(report, "  %4u skipped: %s\n", rows->skipped[i],
                        network_skip_names[i]);
}

static void add_group(const network_group *g, const error_sum *e,
                      sc_network_score *out, uint32_t n_small[2])
{
    int several = g->nodes > 1;
    if (e->n[0] > 0) {
        out->groups[several]++;
        out->used[several] += e->n[0];
        out->error[several] += e->sum[0] / e->n[0];
    }
    if (e->n[1] > 0) {
        n_small[several]++;
        out->error_small[several] += e->sum[1] / e->n[1];
    }
}

static sc_status score(const network_rows *rows, const sc_cost *c,
                       sc_network_score *out, sc_text *report, sc_arena *a,
                       sc_err *err)
{
    error_sum *e = SC_NEW_N(a, error_sum, rows->n_groups);
    if (!e) return sc_error_nomem(err);
    for (uint32_t i = 0; i < rows->n; i++) {
        const network_row *r = &rows->row[i];
        int small = r->bytes <= small_bytes;
        e[r->group].sum[small] += fabs(network_predict(r, c) / r->seconds - 1);
        e[r->group].n[small]++;
    }
    *out = (sc_network_score){.rows = rows->n_table,
                              .skipped = rows->n_table - rows->n};
    uint32_t n_small[2] = {0, 0};
    if (report)
        sc_text_add(report,
                    "mean |error| (rows) %34s above 1 MiB  up to "
                    "1 MiB\n",
                    "");
    for (uint32_t g = 0; g < rows->n_groups; g++) {
        add_group(&rows->group[g], &e[g], out, n_small);
        if (report) report_group(&rows->group[g], &e[g], report);
    }
    for (int k = 0; k < 2; k++) {
        if (out->groups[k] > 0) out->error[k] /= out->groups[k];
        if (n_small[k] > 0) out->error_small[k] /= n_small[k];
        if (report && out->groups[k] > 0)
            sc_text_add(report, "%s: mean over %u groups %.1f %% above 1 MiB\n",
                        k ? "several nodes" : "one node", out->groups[k],
                        100 * out->error[k]);
    }
    if (report) report_skips(rows, report);
    return SC_OK;
}

sc_status sc_network_check(const sc_csv *table, const sc_cost *c,
                           sc_network_score *out, sc_text *report, sc_arena *a,
                           sc_err *err)
{
    network_rows rows;
    SC_TRY(network_read(table, c, a, &rows, err));
    return score(&rows, c, out, report, a, err);
}

/* ---- fit -------------------------------------------------------------------------- */

static sc_status model(void *ctx, const sc_cost *c, double *log_pred,
                       sc_err *err)
{
    (void)err;
    const network_rows *rows = ctx;
    for (uint32_t i = 0; i < rows->n; i++)
        log_pred[i] = log(network_predict(&rows->row[i], c));
    return SC_OK;
}

static uint32_t free_params(sc_param out[SC_N_PARAMS])
{
    uint32_t n = 0;
    for (int i = 0; i < (int)SC_N_PARAMS; i++)
        if (sc_params[i].set == SC_SET_NETWORK && sc_params[i].sd > 0)
            out[n++] = (sc_param)i;
    return n;
}

static void report_params(const sc_fit_problem *p, const sc_fit_result *r,
                          sc_text *report)
{
    sc_text_add(report, "cost %.2f -> %.2f in %u iterations\n", r->cost_before,
                r->cost_after, r->iterations);
    for (uint32_t j = 0; j < p->n_free; j++) {
        const sc_param_info *i = &sc_params[p->free[j]];
        sc_text_add(report,
                    "  %-18s %10.4g %-8s +- %4.1f %%  centre %10.4g  "
                    "rows %.0f\n",
                    i->name, r->value[p->free[j]], i->unit,
                    100 * r->se_log[p->free[j]], i->centre,
                    r->rows[p->free[j]]);
    }
}

sc_status network_fit(network_rows *rows, sc_cost *inout, sc_fit_result *out,
                      sc_text *report, sc_arena *a, sc_err *err)
{
    sc_param params[SC_N_PARAMS];
    double *log_meas = SC_NEW_N(a, double, rows->n);
    double *weight = SC_NEW_N(a, double, rows->n);
    if (!log_meas || !weight) return sc_error_nomem(err);
    for (uint32_t i = 0; i < rows->n; i++) {
        log_meas[i] = log(rows->row[i].seconds);
        weight[i] = group_rows / rows->group[rows->row[i].group].n;
    }
    sc_fit_problem p = {.n_rows = rows->n,
                        .n_free = free_params(params),
                        .free = params,
                        .log_meas = log_meas,
                        .weight = weight,
                        .model = model,
                        .ctx = rows};
    SC_TRY(sc_fit(&p, inout, out, a, err));
    if (!report) return SC_OK;
    sc_network_score sc;
    SC_TRY(score(rows, inout, &sc, report, a, err));
    report_params(&p, out, report);
    return SC_OK;
}

sc_status sc_fit_network(const sc_csv *table, sc_cost *inout,
                         sc_fit_result *out, sc_text *report, sc_arena *a,
                         sc_err *err)
{
    network_rows rows;
    sc_cost c = *inout;
    sc_fit_result res;
    SC_TRY(network_read(table, inout, a, &rows, err));
    SC_TRY(network_fit(&rows, &c, &res, report, a, err));
    *inout = c;
    *out = res;
    return SC_OK;
}
