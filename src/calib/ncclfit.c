/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ncclfit.c - fits a cluster's profile to its nccl-tests logs.
 *
 * The rows decide which parameters are fitted. Each candidate gives a column of
 * derivatives of the predicted logarithms, in units of its prior. The largest
 * column is taken and its direction is removed from the others, until the rest
 * is noise or enough are taken.
 *
 * The built-in fit gives fractions that depend on the cluster a narrow prior or
 * none (sd 0), so that sc_fit() can't vary them as far as a cluster may differ.
 * They are varied here, in turn with sc_fit() on the other parameters.
 */
#include "base/number.h"
#include "calib/calib_nccltests.h"
#include "calib/network.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const double group_rows = 10; /* each group counts as this many rows */
static const double fraction_prior = 0.3; /* of these: sd of the log */
static const double noise = 0.3; /* a parameter needs a column with at least
                                    this norm */
static const double small_bytes = 1048576;

enum { MAX_ROUNDS = 6, SEARCH_STEPS = 40, LOG_PARAMETERS = 12 };

/* Fractions that differ more between clusters than the fit's priors allow. */
static const char *const constants[] = {
    "net_fraction", "all_to_all_net_fraction", "pcie_fraction", NULL};

typedef struct candidate {
    sc_param param;
    bool constant;
    double prior;
    double *column; /* [n rows] */
} candidate;

typedef struct ncclfit {
    sc_arena *a;
    network_rows rows;
    double *log_meas, *weight;
    uint32_t limit; /* of parameters */
    uint32_t n_free, n_constant;
    sc_param free[SC_NCCL_FIT_MAX];
    sc_param constant[SC_NCCL_FIT_MAX];
} ncclfit;

static bool starts(const char *s, const char *prefix)
{
    return strncmp(s, prefix, strlen(prefix)) == 0;
}

/* ---- rows on the machine ---------------------------------------------------------- */

sc_status sc_nccl_row_predict(const sc_nccl_row *row, const sc_hw *hw,
                              const sc_cost *c, double *seconds, sc_err *err)
{
    sc_place at = network_place(hw, row->ranks, row->nodes);
    sc_coll_price price;
    SC_TRY(sc_cost_coll(c, hw, row->coll, row->bytes, &at, -1, &price, err));
    *seconds = price.seconds;
    return SC_OK;
}

static sc_status refuse(const sc_nccl_row *r, sc_code code, sc_err *err,
                        const char *hint, const char *what)
{
    return sc_error(err, SC_EINPUT, code, r->pos, hint,
                    "%s of %u ranks on %u nodes: %s", sc_coll_names[r->coll],
                    (unsigned)r->ranks, (unsigned)r->nodes, what);
}

static sc_status check_row(const sc_nccl_row *r, const sc_hw *hw,
                           const sc_cost *c, sc_arena *a, sc_err *err)
{
    const sc_device *d = NULL;
    if (*r->device && (sc_device_find(r->device, a, &d, NULL) != SC_OK ||
                       strcmp(d->name, hw->device->name) != 0)) {
        char what[120];
        snprintf(what, sizeof what, "'%.50s' is not the cluster's %.40s",
                 r->device, hw->device->name);
        return refuse(r, SC_C_CONFLICT, err, "name the cluster they ran on",
                      what);
    }
    if (r->nodes > hw->n_nodes || r->ranks / r->nodes > hw->node_size) {
        char what[120];
        snprintf(what, sizeof what, "the cluster has %u x %u devices",
                 (unsigned)hw->n_nodes, (unsigned)hw->node_size);
        return refuse(r, SC_C_CONFLICT, err, "name the cluster they ran on",
                      what);
    }
    double seconds;
    if (sc_nccl_row_predict(r, hw, c, &seconds, NULL) != SC_OK)
        return refuse(r, SC_C_UNSUPPORTED, err, NULL,
                      "can't be priced on this cluster");
    return SC_OK;
}

static uint32_t find_group(network_rows *rows, const network_row *r,
                           const char *gpu)
{
    for (uint32_t i = 0; i < rows->n_groups; i++) {
        const network_group *g = &rows->group[i];
        if (g->ranks == r->at.n && g->nodes == r->at.nodes &&
            g->coll == r->coll)
            return i;
    }
    rows->group[rows->n_groups] =
        (network_group){gpu, "", r->at.n, r->at.nodes, 0, r->coll};
    return rows->n_groups++;
}

/* Reports one error for each table of a log. */
static sc_status check_rows(const sc_nccl_row *rows, uint32_t n,
                            const sc_hw *hw, const sc_cost *c, sc_arena *a,
                            sc_err *err)
{
    sc_status status = SC_OK;
    const sc_nccl_row *bad = NULL;
    if (n == 0)
        return sc_error(err, SC_EINPUT, SC_C_MISSING, sc_pos_none(), NULL,
                        "there are no rows of nccl-tests to fit on");
    for (uint32_t i = 0; i < n; i++) {
        if (bad && rows[i].table == bad->table &&
            rows[i].pos.file == bad->pos.file)
            continue;
        sc_status s = check_row(&rows[i], hw, c, a, err);
        if (s == SC_OK) continue;
        bad = &rows[i];
        if (status == SC_OK) status = s;
    }
    return status;
}

static sc_status weigh(ncclfit *f, sc_err *err)
{
    f->log_meas = SC_NEW_N(f->a, double, f->rows.n);
    f->weight = SC_NEW_N(f->a, double, f->rows.n);
    if (!f->log_meas || !f->weight) return sc_error_nomem(err);
    for (uint32_t i = 0; i < f->rows.n; i++) {
        const network_row *r = &f->rows.row[i];
        f->log_meas[i] = log(r->seconds);
        f->weight[i] = group_rows / f->rows.group[r->group].n;
    }
    return SC_OK;
}

static sc_status prepare(ncclfit *f, const sc_nccl_row *rows, uint32_t n,
                         const sc_hw *hw, sc_err *err)
{
    f->rows.row = SC_NEW_N(f->a, network_row, n);
    f->rows.group = SC_NEW_N(f->a, network_group, n);
    if (!f->rows.row || !f->rows.group) return sc_error_nomem(err);
    for (uint32_t i = 0; i < n; i++) {
        network_row *r = &f->rows.row[i];
        *r =
            (network_row){.hw = hw,
                          .at = network_place(hw, rows[i].ranks, rows[i].nodes),
                          .coll = rows[i].coll,
                          .algorithm = -1,
                          .harness = NETWORK_NONE,
                          .bytes = rows[i].bytes,
                          .seconds = rows[i].time_s,
                          .line = rows[i].pos.line};
        r->group = find_group(&f->rows, r, hw->device->name);
        f->rows.group[r->group].n++;
    }
    f->rows.n = n;
    return weigh(f, err);
}

/* ---- which parameters ---------------------------------------------------------------- */

static void predict(const ncclfit *f, const sc_cost *c, double *out)
{
    for (uint32_t i = 0; i < f->rows.n; i++)
        out[i] = log(network_predict(&f->rows.row[i], c));
}

/* Computes how the weighted residuals change if the parameter moves by its
 * prior's sd, in units of the fit's scale of errors. */
static void derive(const ncclfit *f, const sc_cost *c, const double *base,
                   candidate *k)
{
    static const double step = 0.02;
    const sc_param_info *p = &sc_params[k->param];
    sc_cost moved = *c;
    double h = c->p[k->param] * exp(step) <= p->hi ? step : -step;
    moved.p[k->param] *= exp(h);
    predict(f, &moved, k->column);
    for (uint32_t i = 0; i < f->rows.n; i++) {
        double d = (k->column[i] - base[i]) / h * k->prior / 0.08;
        k->column[i] = isfinite(d) ? d * sqrt(f->weight[i]) : 0;
    }
}

static double dot(const double *a, const double *b, uint32_t n)
{
    double sum = 0;
    for (uint32_t i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}

static uint32_t candidates(candidate *out)
{
    uint32_t n = 0;
    for (int i = 0; i < (int)SC_N_PARAMS; i++) {
        const sc_param_info *p = &sc_params[i];
        if (p->set != SC_SET_NETWORK || starts(p->name, "harness")) continue;
        if (!(p->centre > 0) || !(p->hi > p->lo)) continue;
        bool constant = false;
        for (const char *const *w = constants; *w; w++)
            constant = constant || strcmp(*w, p->name) == 0;
        if (!constant && !(p->sd > 0)) continue;
        out[n++] = (candidate){(sc_param)i, constant,
                               constant ? fraction_prior : p->sd, NULL};
    }
    return n;
}

static void select_candidate(ncclfit *f, candidate *k)
{
    if (k->constant)
        f->constant[f->n_constant++] = k->param;
    else
        f->free[f->n_free++] = k->param;
}

static sc_status choose(ncclfit *f, const sc_cost *c, sc_err *err)
{
    candidate k[SC_N_PARAMS];
    uint32_t n = candidates(k), rows = f->rows.n;
    double *base = SC_NEW_N(f->a, double, rows);
    if (!base) return sc_error_nomem(err);
    predict(f, c, base);
    for (uint32_t i = 0; i < n; i++) {
        k[i].column = SC_NEW_N(f->a, double, rows);
        if (!k[i].column) return sc_error_nomem(err);
        derive(f, c, base, &k[i]);
    }
    while (f->n_free + f->n_constant < f->limit) {
        uint32_t best = n;
        double most = noise * noise;
        for (uint32_t i = 0; i < n; i++) {
            double norm = dot(k[i].column, k[i].column, rows);
            if (norm <= most) continue;
            most = norm;
            best = i;
        }
        if (best == n) break;
        select_candidate(f, &k[best]);
        double *q = k[best].column;
        for (uint32_t i = 0; i < n; i++) {
            if (i == best) continue;
            double part = dot(k[i].column, q, rows) / most;
            for (uint32_t j = 0; j < rows; j++) k[i].column[j] -= part * q[j];
        }
        memset(q, 0, rows * sizeof *q);
    }
    return SC_OK;
}

/* ---- fit -------------------------------------------------------------------------------- */

static sc_status model(void *ctx, const sc_cost *c, double *log_pred,
                       sc_err *err)
{
    (void)err;
    predict(ctx, c, log_pred);
    return SC_OK;
}

static sc_status fit_free(ncclfit *f, uint32_t n_free, sc_cost *c,
                          sc_fit_result *res, sc_err *err)
{
    sc_fit_problem p = {.n_rows = f->rows.n,
                        .n_free = n_free,
                        .free = f->free,
                        .log_meas = f->log_meas,
                        .weight = f->weight,
                        .model = model,
                        .ctx = f};
    return sc_fit(&p, c, res, f->a, err);
}

/* The cost of the rows and of the constant's prior if the constant is
 * exp(x). */
static sc_status cost_at(ncclfit *f, const sc_cost *at, sc_param p, double x,
                         sc_fit_result *res, double *out, sc_err *err)
{
    sc_cost c = *at;
    c.p[p] = exp(x);
    SC_TRY(fit_free(f, 0, &c, res, err));
    double d = (x - log(sc_params[p].centre)) / fraction_prior;
    *out = res->cost_before + d * d;
    return SC_OK;
}

/* Finds one constant by golden-section search; the others stay fixed. */
static sc_status fit_constant(ncclfit *f, sc_param p, sc_cost *c,
                              sc_fit_result *res, sc_err *err)
{
    static const double golden = 0.6180339887498949;
    double lo = log(sc_params[p].lo), hi = log(sc_params[p].hi);
    double a = hi - golden * (hi - lo), b = lo + golden * (hi - lo), va, vb;
    SC_TRY(cost_at(f, c, p, a, res, &va, err));
    SC_TRY(cost_at(f, c, p, b, res, &vb, err));
    for (int i = 0; i < SEARCH_STEPS; i++) {
        if (va <= vb) {
            hi = b, b = a, vb = va;
            a = hi - golden * (hi - lo);
            SC_TRY(cost_at(f, c, p, a, res, &va, err));
        } else {
            lo = a, a = b, va = vb;
            b = lo + golden * (hi - lo);
            SC_TRY(cost_at(f, c, p, b, res, &vb, err));
        }
    }
    double now;
    SC_TRY(cost_at(f, c, p, log(c->p[p]), res, &now, err));
    double v = exp((lo + hi) / 2);
    if ((va < vb ? va : vb) < now) c->p[p] = v;
    return SC_OK;
}

/* The standard error, 1 / sqrt(half the second derivative of the cost), while
 * the others stay fixed. */
static sc_status constant_error(ncclfit *f, sc_param p, const sc_cost *c,
                                sc_fit_result *res, double *out, sc_err *err)
{
    static const double h = 0.02;
    double x = log(c->p[p]), v[3];
    for (int i = 0; i < 3; i++)
        SC_TRY(cost_at(f, c, p, x + (i - 1) * h, res, &v[i], err));
    double curve = (v[0] - 2 * v[1] + v[2]) / (h * h);
    *out = curve > 0 ? 1 / sqrt(curve / 2) : fraction_prior;
    return SC_OK;
}

static sc_status alternate(ncclfit *f, sc_cost *c, sc_fit_result *res,
                           sc_err *err)
{
    double last = INFINITY;
    for (int round = 0; round < MAX_ROUNDS; round++) {
        for (uint32_t i = 0; i < f->n_constant; i++)
            SC_TRY(fit_constant(f, f->constant[i], c, res, err));
        SC_TRY(fit_free(f, f->n_free, c, res, err));
        if (f->n_constant == 0 || last - res->cost_after < 1e-6 * (1 + last))
            break;
        last = res->cost_after;
    }
    return SC_OK;
}

/* ---- results --------------------------------------------------------------------------- */

typedef struct group_error {
    double sum;
    uint32_t n;
} group_error;

/* The mean error of each group's rows above 1 MiB, or of all its rows if it has
 * none above. */
static sc_status errors(const ncclfit *f, const sc_cost *c, group_error *e,
                        double *mean, sc_err *err)
{
    group_error *all = SC_NEW_N(f->a, group_error, f->rows.n_groups);
    if (!all) return sc_error_nomem(err);
    memset(e, 0, f->rows.n_groups * sizeof *e);
    for (uint32_t i = 0; i < f->rows.n; i++) {
        const network_row *r = &f->rows.row[i];
        double d = fabs(network_predict(r, c) / r->seconds - 1);
        all[r->group].sum += d;
        all[r->group].n++;
        if (r->bytes <= small_bytes) continue;
        e[r->group].sum += d;
        e[r->group].n++;
    }
    *mean = 0;
    for (uint32_t g = 0; g < f->rows.n_groups; g++) {
        if (e[g].n == 0) e[g] = all[g];
        *mean += e[g].sum / e[g].n / f->rows.n_groups;
    }
    return SC_OK;
}

/* Counts the rows whose prediction the constant changes at least half as much
 * as that of the row which it changes most. */
static sc_status moved_rows(ncclfit *f, const sc_cost *c, sc_param p,
                            double *out, sc_err *err)
{
    candidate k = {p, true, fraction_prior, SC_NEW_N(f->a, double, f->rows.n)};
    double *base = SC_NEW_N(f->a, double, f->rows.n), most = 0;
    if (!k.column || !base) return sc_error_nomem(err);
    predict(f, c, base);
    derive(f, c, base, &k);
    for (uint32_t i = 0; i < f->rows.n; i++)
        most = fmax(most, fabs(k.column[i]) / sqrt(f->weight[i]));
    *out = 0;
    for (uint32_t i = 0; i < f->rows.n && most > 0; i++)
        *out += fabs(k.column[i]) / sqrt(f->weight[i]) >= most / 2;
    return SC_OK;
}

static void add_network(const network_row *r, sc_cost *c)
{
    const sc_hw *hw = r->hw;
    double nics = 0;
    for (uint32_t i = 0; i < hw->n_dims; i++)
        if (hw->dim[i].ports > 0) nics = hw->dim[i].ports * hw->dim[i].port_bw;
    for (uint32_t i = 0; i < c->n_calibrated; i++) {
        sc_calibrated *k = &c->calibrated[i];
        if (strcmp(k->device, hw->device->name) != 0 || k->nic_bw != nics)
            continue;
        if (r->at.nodes > k->nodes) k->nodes = r->at.nodes;
        return;
    }
    if (c->n_calibrated == SC_CALIBRATED) return;
    sc_calibrated *k = &c->calibrated[c->n_calibrated++];
    *k = (sc_calibrated){.nic_bw = nics, .nodes = r->at.nodes};
    snprintf(k->device, sizeof k->device, "%s", hw->device->name);
}

/* Lists the networks between nodes that the rows measured. */
static void mark_calibrated(const ncclfit *f, sc_cost *c, sc_nccl_fit *out)
{
    for (uint32_t i = 0; i < f->rows.n; i++)
        if (f->rows.row[i].at.nodes > 1) add_network(&f->rows.row[i], c);
    out->n_calibrated = c->n_calibrated;
    memcpy(out->calibrated, c->calibrated, sizeof out->calibrated);
}

static sc_status collect(ncclfit *f, const sc_cost *before, const sc_cost *c,
                         sc_fit_result *res, sc_nccl_fit *out, sc_err *err)
{
    for (uint32_t i = 0; i < f->n_constant; i++) {
        uint32_t n = out->n++;
        out->param[n] = f->constant[i];
        SC_TRY(constant_error(f, f->constant[i], c, res, &out->se_log[n], err));
        SC_TRY(moved_rows(f, c, f->constant[i], &out->rows[n], err));
    }
    sc_cost at = *c; /* with the free parameters at their final values */
    SC_TRY(fit_free(f, f->n_free, &at, res, err));
    for (uint32_t i = 0; i < f->n_free; i++) {
        uint32_t n = out->n++;
        out->param[n] = f->free[i];
        out->se_log[n] = res->se_log[f->free[i]];
        out->rows[n] = res->rows[f->free[i]];
    }
    for (uint32_t i = 0; i < out->n; i++) {
        out->value[i] = c->p[out->param[i]];
        out->before[i] = before->p[out->param[i]];
    }
    out->n_rows = f->rows.n;
    out->n_groups = f->rows.n_groups;
    return SC_OK;
}

static void report_all(const ncclfit *f, const sc_nccl_fit *fit,
                       const group_error *before, const group_error *after,
                       sc_text *t)
{
    sc_text_add(t, "mean |error| %28s rows    before     fitted\n", "");
    for (uint32_t g = 0; g < f->rows.n_groups; g++) {
        const network_group *gr = &f->rows.group[g];
        sc_text_add(
            t, "  %-14s %4u ranks %3u nodes  %4u  %6.1f %%   %6.1f %%  %s\n",
            sc_coll_names[gr->coll], (unsigned)gr->ranks, (unsigned)gr->nodes,
            (unsigned)after[g].n, 100 * before[g].sum / before[g].n,
            100 * after[g].sum / after[g].n, gr->gpu);
    }
    sc_text_add(t, "mean over %u groups: %.1f %% before, %.1f %% fitted\n",
                (unsigned)fit->n_groups, 100 * fit->error_before,
                100 * fit->error_after);
    for (uint32_t i = 0; i < fit->n; i++) {
        const sc_param_info *p = &sc_params[fit->param[i]];
        sc_text_add(t, "  %-22s %10.4g %-8s +- %4.1f %%  before %10.4g\n",
                    p->name, fit->value[i], p->unit, 100 * fit->se_log[i],
                    fit->before[i]);
    }
}

static sc_status fit_rows(ncclfit *f, sc_cost *inout, sc_nccl_fit *out,
                          sc_text *report, sc_err *err)
{
    sc_nccl_fit fit = {0};
    sc_cost c = *inout;
    SC_TRY(choose(f, inout, err));
    sc_fit_result *res = SC_NEW(f->a, sc_fit_result);
    group_error *before = SC_NEW_N(f->a, group_error, f->rows.n_groups);
    group_error *after = SC_NEW_N(f->a, group_error, f->rows.n_groups);
    if (!res || !before || !after) return sc_error_nomem(err);
    SC_TRY(errors(f, inout, before, &fit.error_before, err));
    SC_TRY(alternate(f, &c, res, err));
    SC_TRY(collect(f, inout, &c, res, &fit, err));
    SC_TRY(errors(f, &c, after, &fit.error_after, err));
    mark_calibrated(f, &c, &fit);
    if (report) report_all(f, &fit, before, after, report);
    c.hash = sc_hash(c.p, sizeof c.p, 0);
    *inout = c;
    *out = fit;
    return SC_OK;
}

sc_status sc_fit_nccl_tests(const sc_nccl_row *rows, uint32_t n,
                            const sc_hw *hw, sc_cost *inout, sc_nccl_fit *out,
                            sc_text *report, sc_arena *a, sc_err *err)
{
    ncclfit f = {.a = a, .limit = LOG_PARAMETERS};
    SC_TRY(check_rows(rows, n, hw, inout, a, err));
    SC_TRY(prepare(&f, rows, n, hw, err));
    return fit_rows(&f, inout, out, report, err);
}

sc_status sc_fit_network_table(const sc_csv *table, sc_cost *inout,
                               sc_nccl_fit *out, sc_text *report, sc_arena *a,
                               sc_err *err)
{
    ncclfit f = {.a = a, .limit = SC_NCCL_FIT_MAX};
    SC_TRY(network_read(table, inout, a, &f.rows, err));
    if (f.rows.n == 0)
        return sc_error(err, SC_EINPUT, SC_C_MISSING, sc_pos_file(table->file),
                        "`stepcast validate` says why, row by row",
                        "no row of the table can be expressed");
    SC_TRY(weigh(&f, err));
    SC_TRY(fit_rows(&f, inout, out, report, err));
    if (report && f.rows.n < f.rows.n_table)
        sc_text_add(report, "%u of %u rows can't be expressed\n",
                    f.rows.n_table - f.rows.n, f.rows.n_table);
    return SC_OK;
}

static void put_number(sc_text *t, const char *key, double v, int digits)
{
    char buf[40];
    number_print(v, digits, buf, sizeof buf);
    sc_text_add(t, "    %s: %s\n", key, isfinite(v) ? buf : "null");
}

void sc_nccl_fit_write(const sc_nccl_fit *fit, const char *from, sc_text *out)
{
    sc_text_add(out, "# Written by `stepcast calibrate`.\n");
    for (const char *line = from; *line != '\0';) {
        size_t len = strcspn(line, "\n");
        sc_text_add(out, "# %.*s\n", (int)len, line);
        line += len + (line[len] == '\n');
    }
    sc_text_add(out,
                "# %u rows in %u groups; mean error %.1f %%, %.1f %% before.\n"
                "# standard_error is of the logarithm of the value.\n"
                "parameters:\n",
                (unsigned)fit->n_rows, (unsigned)fit->n_groups,
                100 * fit->error_after, 100 * fit->error_before);
    for (uint32_t i = 0; i < fit->n; i++) {
        const sc_param_info *p = &sc_params[fit->param[i]];
        sc_text_add(out, "  %s:\n", p->name);
        put_number(out, "value", fit->value[i], 6);
        sc_text_add(out, "    unit: \"%s\"\n", p->unit);
        put_number(out, "before", fit->before[i], 6);
        put_number(out, "standard_error", fit->se_log[i], 2);
    }
    if (fit->n_calibrated > 0) sc_text_add(out, "calibrated:\n");
    for (uint32_t i = 0; i < fit->n_calibrated; i++) {
        const sc_calibrated *k = &fit->calibrated[i];
        char rate[40];
        number_print(k->nic_bw / 1e9, 9, rate, sizeof rate);
        sc_text_add(out, "  - {device: %s, nodes: %u, nic_bw: %sGB/s}\n",
                    k->device, (unsigned)k->nodes, rate);
    }
}
