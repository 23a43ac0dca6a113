/* SPDX-License-Identifier: Apache-2.0 */
/* kernelfit_samples.c - rows of tables of kernels as samples of one form. */
#include "calib/kernelfit.h"

#include <math.h>
#include <string.h>

/* Rows whose other kernels are priced at more than this fraction of the
 * measured time say too little. */
#define OTHERS 0.6

sc_status kernelfit_read(const sc_csv *tables, uint32_t n_tables, sc_arena *a,
                         kernelfit_rows *out, sc_err *err)
{
    sc_status first = SC_OK;
    *out = (kernelfit_rows){0};
    uint32_t cap = 0;
    for (uint32_t i = 0; i < n_tables; i++) {
        calib_kernel_row *row = NULL;
        uint32_t n = 0;
        sc_status s = calib_kernel_rows_read(&tables[i], a, &row, &n, err);
        if (first == SC_OK) first = s;
        for (uint32_t j = 0; s == SC_OK && j < n; j++) {
            out->row =
                sc_grow(a, out->row, out->n, &cap, 4096, sizeof *out->row);
            if (!out->row) return sc_error_nomem(err);
            out->row[out->n++] = row[j];
        }
    }
    return first;
}

/* Shapes decide the fold, not devices, so a shape that one device lacks in a
 * fold is not known from another one. */
static uint8_t fold_of(const kernelfit_sample *s)
{
    uint64_t h = 0;
    for (uint32_t i = 0; i < s->n; i++)
        h = sc_hash(s->use[i].at, sizeof s->use[i].at, h);
    return (uint8_t)(h % KERNELFIT_FOLDS);
}

/* False if the row has no kernel of this kind and class, or mostly others. */
static bool make_sample(const sc_cost *c, const calib_kernel_row *r,
                        sc_fit_class fit, sc_form_kind kind,
                        kernelfit_sample *out)
{
    bool timed = isfinite(r->cast_seconds);
    double others = timed ? r->cast_seconds : 0;
    *out = (kernelfit_sample){.weight = 1};
    if (r->reason || r->launch != CALIB_LAUNCH_GRAPH) return false;
    for (uint32_t i = 0; i < r->n_parts; i++) {
        sc_form_use use;
        bool has = sc_form_use_of(c, r->device, &r->part[i], &use);
        /* Rows are for the kind of their first kernel. */
        if (i == 0 && !(has && use.fit == fit && use.kind == kind))
            return false;
        if (has && use.fit == fit && use.kind == kind &&
            out->n < KERNELFIT_PARTS)
            out->use[out->n++] = use;
        else if (!has || !timed || !sc_form_is_cast(use.kind))
            others += sc_cost_kernel(c, r->device, &r->part[i]).seconds;
    }
    if (out->n == 0 || others > OTHERS * r->seconds) return false;
    out->seconds = r->seconds - others;
    out->fold = fold_of(out);
    return true;
}

sc_status kernelfit_samples(const kernelfit_rows *rows, sc_fit_class fit,
                            sc_form_kind kind, const sc_device *device,
                            sc_arena *a, kernelfit_sample **out, uint32_t *n,
                            sc_err *err)
{
    kernelfit_sample *s = SC_NEW_N(a, kernelfit_sample, (size_t)rows->n + 1);
    if (!s) return sc_error_nomem(err);
    *n = 0;
    for (uint32_t i = 0; i < rows->n; i++) {
        const calib_kernel_row *r = &rows->row[i];
        if (device && strcmp(r->device->name, device->name) != 0) continue;
        if (make_sample(rows->cost, r, fit, kind, &s[*n])) ++*n;
    }
    *out = s;
    return SC_OK;
}
