/* SPDX-License-Identifier: Apache-2.0 */
/* validate.c - predicts measured rows and compares them, row by row. */
#include "calib/curves.h"
#include "calib/kernel_table.h"
#include "calib/kernel_validate.h"
#include "calib/network.h"
#include "calib/power_table.h"
#include "calib/row.h"
#include "calib/stats.h"
#include "calib/whole_table.h"

static bool chosen(const calib_run *run, const sc_validate_opts *o)
{
    return (!o->family || sc_glob(o->family, run->family)) &&
           (!o->where || sc_glob(o->where, run->id));
}

static sc_status predict_rows(calib_run *run, uint32_t n,
                              const sc_validate_opts *o, sc_arena *a,
                              sc_validation *v, sc_err *err)
{
    sc_arena scratch;
    sc_arena_init(&scratch, a->limit);
    sc_status s = SC_OK;
    v->n_rows = 0;
    for (uint32_t i = 0; i < n && s == SC_OK; i++) {
        if (!chosen(&run[i], o)) continue;
        s = calib_row_predict(&run[i], o->cost, o->engine, a, &scratch,
                              &v->rows[v->n_rows++],
                              (calib_row_also){.interval = true}, err);
        sc_progress_tell(o->progress, "rows predicted", i + 1, n);
    }
    sc_arena_free(&scratch);
    return s;
}

/* The kinds of tables. */
typedef enum kind { RUNS, CURVES, KERNELS, POWER, WHOLE, UNKNOWN } kind;

static kind kind_of(const sc_csv *t)
{
    if (calib_curves_table(t)) return CURVES;
    if (calib_whole_table(t)) return WHOLE;
    if (calib_runs_table(t)) return RUNS;
    if (calib_kernel_is_table(t)) return KERNELS;
    return calib_power_table(t) ? POWER : UNKNOWN;
}

/* All tables have to be of one kind. */
static sc_status find_kind(const sc_csv *tables, uint32_t n, kind *out,
                           sc_err *err)
{
    sc_status first = SC_OK;
    *out = UNKNOWN;
    for (uint32_t i = 0; i < n; i++) {
        kind k = kind_of(&tables[i]);
        sc_status s = SC_OK;
        if (k == UNKNOWN)
            s = sc_error(err, SC_EINPUT, SC_C_UNSUPPORTED,
                         (sc_pos){tables[i].file, 1, 1},
                         "data/validation/README.md lists the columns",
                         "this is no table of training runs, collectives, "
                         "kernels, power or whole runs");
        else if (i > 0 && k != *out)
            s = sc_error(err, SC_EINPUT, SC_C_CONFLICT,
                         (sc_pos){tables[i].file, 1, 1},
                         "validate them one after the other",
                         "the tables are of different kinds");
        if (i == 0) *out = k;
        if (first == SC_OK) first = s;
    }
    return first;
}

static sc_status validate_runs(const sc_csv *tables, uint32_t n_tables,
                               const sc_validate_opts *o, sc_arena *a,
                               sc_validation *out, sc_err *err)
{
    calib_run *run = NULL;
    uint32_t n = 0;
    sc_validation v = {.unit = "s"};
    SC_TRY(calib_runs_read(tables, n_tables, a, &run, &n, err));
    v.rows = SC_NEW_N(a, sc_valid_row, n);
    if (!v.rows) return sc_error_nomem(err);
    SC_TRY(predict_rows(run, n, o, a, &v, err));
    SC_TRY(calib_mark_repeats(v.rows, v.n_rows, a, err));
    SC_TRY(calib_summarise(&v, a, err));
    *out = v;
    return SC_OK;
}

static sc_status check_kernels(const sc_csv *t, sc_arena *a, sc_err *err)
{
    calib_kernel_row *rows = NULL;
    uint32_t n = 0;
    return calib_kernel_rows_read(t, a, &rows, &n, err);
}

sc_status sc_table_check(const sc_csv *table, sc_arena *a, sc_err *err)
{
    kind k;
    SC_TRY(find_kind(table, 1, &k, err));
    if (k == CURVES) return network_check(table, err);
    if (k == KERNELS) return check_kernels(table, a, err);
    if (k == WHOLE) return calib_whole_check(table, err);
    return k == POWER ? calib_power_check(table, err)
                      : calib_runs_check(table, a, err);
}

sc_status sc_validate(const sc_csv *tables, uint32_t n_tables,
                      const sc_validate_opts *o, sc_arena *a,
                      sc_validation *out, sc_err *err)
{
    sc_validate_opts opts = *o;
    sc_cost builtin;
    kind k;
    if (!opts.cost) {
        SC_TRY(sc_cost_builtin(a, &builtin, err));
        opts.cost = &builtin;
    }
    SC_TRY(find_kind(tables, n_tables, &k, err));
    switch (k) {
    case CURVES:
        return calib_curves_validate(tables, n_tables, &opts, a, out, err);
    case KERNELS:
        return calib_kernel_validate(tables, n_tables, &opts, a, out, err);
    case POWER:
        return calib_power_validate(tables, n_tables, &opts, a, out, err);
    case WHOLE:
        return calib_whole_validate(tables, n_tables, &opts, a, out, err);
    default: return validate_runs(tables, n_tables, &opts, a, out, err);
    }
}
