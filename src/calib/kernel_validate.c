/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_validate.c - predicts measured kernels and compares them. */
#include "calib/kernel_validate.h"

#include "calib/kernel_table.h"
#include "calib/stats.h"
#include "cost/cost_alone.h"

#include <math.h>
#include <string.h>

static bool chosen(const sc_valid_row *r, const sc_validate_opts *o)
{
    return (!o->family || sc_glob(o->family, r->family)) &&
           (!o->where || sc_glob(o->where, r->id));
}

static sc_status fill(const calib_kernel_row *k, const sc_cost *c, sc_arena *a,
                      sc_valid_row *out, sc_err *err)
{
    *out =
        (sc_valid_row){.id = k->id,
                       .family = sc_sprintf(a, "%s %s", k->operation, k->dtype),
                       .device = k->device_text,
                       .model = k->software,
                       .dtype = k->dtype,
                       .reason = k->reason,
                       .measured = k->seconds > 0 ? k->seconds : NAN,
                       .median = k->seconds,
                       .predicted = NAN,
                       .error = NAN,
                       .mem_measured = NAN,
                       .mem_predicted = NAN,
                       .low = NAN,
                       .high = NAN,
                       .hw_device = k->device->name,
                       .n_warnings = k->n_warnings,
                       .warnings = k->warning};
    if (!out->family) return sc_error_nomem(err);
    if (!out->reason) out->predicted = calib_kernel_predict(k, c);
    if (!out->reason && !isfinite(out->predicted))
        out->reason = "a collective that this machine can't run";
    out->counted = out->reason == NULL;
    if (out->counted) out->error = out->predicted / out->measured - 1;
    return SC_OK;
}

static sc_status add_table(const sc_csv *t, const sc_validate_opts *o,
                           sc_arena *a, sc_validation *v, uint32_t *cap,
                           sc_err *err)
{
    calib_kernel_row *row = NULL;
    uint32_t n = 0;
    SC_TRY(calib_kernel_rows_read(t, a, &row, &n, err));
    for (uint32_t i = 0; i < n; i++) {
        v->rows = sc_grow(a, v->rows, v->n_rows, cap, 256, sizeof *v->rows);
        if (!v->rows) return sc_error_nomem(err);
        sc_valid_row *r = &v->rows[v->n_rows];
        SC_TRY(fill(&row[i], o->cost, a, r, err));
        v->n_rows += chosen(r, o);
        sc_progress_tell(o->progress, "kernels predicted", i + 1, n);
    }
    return SC_OK;
}

sc_status calib_kernel_validate(const sc_csv *tables, uint32_t n_tables,
                                const sc_validate_opts *o, sc_arena *a,
                                sc_validation *out, sc_err *err)
{
    sc_validation v = {.unit = "s", .kernels = true};
    sc_validate_opts opts = *o;
    sc_cost burst = *o->cost;
    burst.burst = true;
    if (!burst.alone) SC_TRY(sc_cost_alone(a, &burst, err));
    opts.cost = &burst;
    uint32_t cap = 0;
    sc_status first = SC_OK;
    for (uint32_t i = 0; i < n_tables; i++) {
        sc_status s = add_table(&tables[i], &opts, a, &v, &cap, err);
        if (first == SC_OK) first = s;
    }
    SC_TRY(first);
    SC_TRY(calib_summarise(&v, a, err));
    *out = v;
    return SC_OK;
}
