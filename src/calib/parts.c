/* SPDX-License-Identifier: Apache-2.0 */
/* parts.c - computes errors of rows that were left out together, and of kinds
 * of models. */
#include "calib/stats.h"

#include <math.h>
#include <string.h>

static const char *kind_of(const sc_valid_row *r)
{
    return sc_model_kind_names[r->kind];
}

/* Figures of whole runs in other units than that of the table. */
static const char *unit_of(const sc_valid_row *r)
{
    return r->unit ? r->family : NULL;
}

static bool named(calib_label label, const sc_valid_row *r, const char *name)
{
    const char *own = label(r);
    return own && strcmp(own, name) == 0;
}

/* Sums the rows that have the name of row `i`; `rows` is 0 if an earlier row
 * has it. */
static sc_valid_part judge(const sc_validation *v, calib_label label,
                           uint32_t i)
{
    sc_valid_part p = {.name = label(&v->rows[i])};
    uint32_t inside = 0, intervals = 0;
    for (uint32_t j = 0; j < v->n_rows; j++) {
        const sc_valid_row *r = &v->rows[j];
        if (!r->counted || !named(label, r, p.name)) continue;
        if (j < i) return (sc_valid_part){.rows = 0};
        double error = r->predicted / r->median - 1;
        p.rows++;
        p.mape += fabs(error);
        p.bias += error;
        inside += calib_inside(r);
        if (isfinite(r->low)) intervals++;
    }
    if (p.rows == 0) return p;
    p.mape /= p.rows;
    p.bias /= p.rows;
    p.coverage = intervals ? (double)inside / p.rows : NAN;
    return p;
}

static void add(sc_validation *v, calib_label label, bool is_kind)
{
    for (uint32_t i = 0; i < v->n_rows; i++) {
        if (!v->rows[i].counted || !label(&v->rows[i])) continue;
        sc_valid_part p = judge(v, label, i);
        p.is_kind = is_kind;
        if (p.rows > 0) v->parts[v->n_parts++] = p;
    }
}

static double mean_of_parts(const sc_validation *v)
{
    double sum = 0;
    uint32_t n = 0;
    for (uint32_t i = 0; i < v->n_parts; i++) {
        if (v->parts[i].is_kind || v->parts[i].rows == 0) continue;
        sum += v->parts[i].mape;
        n++;
    }
    return n ? sum / n : NAN;
}

sc_status calib_summarise_parts(sc_validation *out, calib_label label,
                                sc_arena *a, sc_err *err)
{
    out->n_parts = 0;
    out->parts = SC_NEW_N(a, sc_valid_part, (size_t)out->n_rows + SC_N_KINDS);
    if (!out->parts) return sc_error_nomem(err);
    add(out, label, false);
    /* only training runs have a model */
    if (strcmp(out->unit, "s") == 0) add(out, kind_of, true);
    if (strcmp(out->unit, "h") == 0) add(out, unit_of, true);
    out->family_mape = mean_of_parts(out);
    return SC_OK;
}
