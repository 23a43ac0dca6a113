/* SPDX-License-Identifier: Apache-2.0 */
/* validate.c - predictions beside measurements, row by row. */
#include "calib/row.h"
#include "calib/stats.h"

static bool chosen(const calib_run *run, const sc_validate_opts *o)
{
    return (!o->family || sc_glob(o->family, run->family)) &&
           (!o->where || sc_glob(o->where, run->id));
}

static sc_status predict_rows(const calib_run *run, uint32_t n,
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
                              &v->rows[v->n_rows++], NULL, err);
    }
    sc_arena_free(&scratch);
    return s;
}

sc_status sc_validate(const sc_csv *tables, uint32_t n_tables,
                      const sc_validate_opts *o, sc_arena *a,
                      sc_validation *out, sc_err *err)
{
    calib_run *run;
    uint32_t n;
    sc_validation v = {.unit = "s"};
    sc_validate_opts opts = *o;
    sc_cost builtin;
    if (!opts.cost) {
        SC_TRY(sc_cost_builtin(a, &builtin, err));
        opts.cost = &builtin;
    }
    SC_TRY(calib_runs_read(tables, n_tables, a, &run, &n, err));
    v.rows = SC_NEW_N(a, sc_valid_row, n);
    if (!v.rows) return sc_error_nomem(err);
    SC_TRY(predict_rows(run, n, &opts, a, &v, err));
    SC_TRY(calib_mark_repeats(v.rows, v.n_rows, a, err));
    SC_TRY(calib_summarise(&v, a, err));
    *out = v;
    return SC_OK;
}
