/* SPDX-License-Identifier: Apache-2.0 */
/* nccltests.c - `stepcast calibrate --nccl-tests LOG...` and `--network
 * TABLE`: fits profiles of clusters. */
#include "cli/calibrate.h"

#include <string.h>

#define MAX_LOG ((size_t)256 << 20)

typedef struct rows {
    sc_nccl_row *row;
    uint32_t n, n_skipped;
} rows;

static sc_status add_rows(cli *c, const sc_nccl_log *log, rows *all)
{
    sc_nccl_row *r = SC_NEW_N(c->arena, sc_nccl_row, all->n + log->n_rows);
    if (!r) return sc_error_nomem(c->err);
    if (all->n) memcpy(r, all->row, all->n * sizeof *r);
    memcpy(r + all->n, log->rows, log->n_rows * sizeof *r);
    all->row = r;
    all->n += log->n_rows;
    all->n_skipped += log->n_skipped;
    return SC_OK;
}

/* Reads all logs and reports the errors of all; returns the first failure. */
static sc_status read_logs(cli *c, const char *const *file, uint32_t n,
                           const sc_nccl_opts *o, rows *all)
{
    sc_status first = SC_OK;
    for (uint32_t i = 0; i < n; i++) {
        char *text = NULL;
        size_t len = 0;
        sc_nccl_log log = {0};
        sc_status s =
            sc_file_read(file[i], MAX_LOG, c->arena, &text, &len, c->err);
        if (s == SC_OK)
            s = sc_nccl_tests_read(text, len, file[i], o, c->arena, &log,
                                   c->err);
        if (s == SC_OK) s = add_rows(c, &log, all);
        for (uint32_t k = 0; s == SC_OK && k < log.n_warnings; k++)
            cli_note(c, "%s\n", log.warnings[k]);
        if (first == SC_OK) first = s;
    }
    return first;
}

static void parameters_json(const sc_nccl_fit *fit, sc_json *j)
{
    sc_json_key(j, "parameters");
    sc_json_begin(j, '{');
    for (uint32_t i = 0; i < fit->n; i++) {
        const sc_param_info *p = &sc_params[fit->param[i]];
        sc_json_key(j, p->name);
        sc_json_begin(j, '{');
        sc_json_put_double(j, "value", fit->value[i]);
        sc_json_put_string(j, "unit", p->unit);
        sc_json_put_double(j, "before", fit->before[i]);
        sc_json_put_double(j, "standard_error", fit->se_log[i]);
        sc_json_put_double(j, "rows", fit->rows[i]);
        sc_json_end(j, '}');
    }
    sc_json_end(j, '}');
}

/* Writes predicted over measured time of every row, with the fitted
 * parameters. */
static sc_status residuals_json(cli *c, const rows *all, const sc_hw *hw,
                                const sc_cost *cost, sc_json *j)
{
    sc_json_key(j, "residuals");
    sc_json_begin(j, '[');
    for (uint32_t i = 0; i < all->n; i++) {
        const sc_nccl_row *r = &all->row[i];
        double seconds;
        SC_TRY(sc_nccl_row_predict(r, hw, cost, &seconds, c->err));
        sc_json_begin(j, '{');
        sc_json_put_string(j, "file", r->pos.file);
        sc_json_put_uint(j, "line", r->pos.line);
        sc_json_put_string(j, "collective", sc_coll_names[r->coll]);
        sc_json_put_double(j, "bytes", r->bytes);
        sc_json_put_uint(j, "ranks", r->ranks);
        sc_json_put_uint(j, "nodes", r->nodes);
        sc_json_put_double(j, "measured_s", r->time_s);
        sc_json_put_double(j, "predicted_s", seconds);
        sc_json_put_double(j, "error", seconds / r->time_s - 1);
        sc_json_end(j, '}');
    }
    sc_json_end(j, ']');
    return SC_OK;
}

static void open_json(sc_json *j, const char *cluster, const sc_nccl_fit *fit)
{
    sc_json_init(j, true);
    sc_json_begin(j, '{');
    sc_json_put_string(j, "schema", "stepcast.calibrate/1");
    if (cluster) sc_json_put_string(j, "cluster", cluster);
    sc_json_put_uint(j, "rows", fit->n_rows);
    sc_json_put_uint(j, "groups", fit->n_groups);
    sc_json_put_double(j, "error_before", fit->error_before);
    sc_json_put_double(j, "error_after", fit->error_after);
    parameters_json(fit, j);
}

static sc_status close_json(const cli *c, sc_json *j)
{
    cli to_stdout = *c; /* the file of -o is for the profile */
    to_stdout.output = NULL;
    sc_json_end(j, '}');
    return cli_emit_json(&to_stdout, j);
}

static sc_status fit_json(cli *c, const rows *all, const sc_hw *hw,
                          const sc_cost *cost, const sc_nccl_fit *fit)
{
    sc_json j;
    open_json(&j, hw->name, fit);
    sc_status s = residuals_json(c, all, hw, cost, &j);
    if (s == SC_OK) s = close_json(c, &j);
    sc_json_free(&j);
    return s;
}

/* Prints the effective rows of each parameter, which the table of values
 * lacks. */
static void rows_text(const sc_nccl_fit *fit, sc_text *out)
{
    for (uint32_t i = 0; i < fit->n; i++) {
        const char *name = sc_params[fit->param[i]].name;
        sc_text_add(out, "  %-22s effective number of rows: %.1f\n", name,
                    fit->rows[i]);
    }
}

static sc_status emit_profile(cli *c, const sc_nccl_fit *fit, const char *of,
                              const char *const *file, uint32_t n)
{
    sc_text from, profile;
    sc_text_init(&from);
    sc_text_init(&profile);
    sc_text_add(&from, "%s:\n", of);
    for (uint32_t i = 0; i < n; i++) sc_text_add(&from, "  %s\n", file[i]);
    sc_nccl_fit_write(fit, from.buf, &profile);
    sc_status s = from.failed || profile.failed ? sc_error_nomem(c->err)
                                                : cli_emit_text(c, &profile);
    sc_text_free(&from);
    sc_text_free(&profile);
    return s;
}

sc_status cli_calibrate_nccl(cli *c, const char *cluster, const sc_nccl_opts *o,
                             const char *const *file, uint32_t n)
{
    const sc_hw *hw = NULL;
    sc_cost cost;
    sc_nccl_fit fit;
    rows all = {0};
    SC_TRY(
        sc_hw_build(cluster, sc_pos_file("--cluster"), c->arena, &hw, c->err));
    if (!hw->device)
        return sc_error(c->err, SC_EINPUT, SC_C_MISSING,
                        sc_pos_file("--cluster"), "add \"; device=h100-sxm\"",
                        "the cluster has no device");
    SC_TRY(read_logs(c, file, n, o, &all));
    SC_TRY(sc_cost_builtin(c->arena, &cost, c->err));
    sc_text report;
    sc_text_init(&report);
    sc_status s = sc_fit_nccl_tests(all.row, all.n, hw, &cost, &fit, &report,
                                    c->arena, c->err);
    if (s == SC_OK && !c->json) {
        rows_text(&fit, &report);
        cli_note(c, "%s", report.buf);
    }
    sc_text_free(&report);
    SC_TRY(s);
    const char *of = sc_sprintf(c->arena, "Cluster %s; logs", hw->name);
    if (!of) return sc_error_nomem(c->err);
    if (!c->json || c->output) SC_TRY(emit_profile(c, &fit, of, file, n));
    return c->json ? fit_json(c, &all, hw, &cost, &fit) : SC_OK;
}

static sc_status table_json(const cli *c, const sc_nccl_fit *fit)
{
    sc_json j;
    open_json(&j, NULL, fit);
    sc_status s = close_json(c, &j);
    sc_json_free(&j);
    return s;
}

sc_status cli_calibrate_table(cli *c, const char *file)
{
    char *text = NULL;
    size_t len = 0;
    sc_csv table = {0};
    sc_cost cost;
    sc_nccl_fit fit;
    sc_text report;
    SC_TRY(sc_file_read(file, MAX_LOG, c->arena, &text, &len, c->err));
    SC_TRY(sc_csv_parse(text, len, file, c->arena, &table, c->err));
    SC_TRY(sc_cost_builtin(c->arena, &cost, c->err));
    sc_text_init(&report);
    sc_status s =
        sc_fit_network_table(&table, &cost, &fit, &report, c->arena, c->err);
    if (s == SC_OK && !c->json) {
        rows_text(&fit, &report);
        cli_note(c, "%s", report.buf);
    }
    sc_text_free(&report);
    SC_TRY(s);
    if (!c->json || c->output)
        SC_TRY(emit_profile(c, &fit, "Table of collectives", &file, 1));
    return c->json ? table_json(c, &fit) : SC_OK;
}
