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

/* Sums the rows that have the name of row `i`; `rows` is 0 if an earlier row
 * has it. */
static sc_valid_part judge(const sc_validation *v, calib_label label,
                           uint32_t i)
{
    sc_valid_part p = {.name = label(&v->rows[i])};
    uint32_t inside = 0;
    for (uint32_t j = 0; j < v->n_rows; j++) {
        const sc_valid_row *r = &v->rows[j];
        if (!r->counted || strcmp(label(r), p.name) != 0) continue;
        if (j < i) return (sc_valid_part){.rows = 0};
        double error = r->predicted / r->median - 1;
        p.rows++;
        p.mape += fabs(error);
        p.bias += error;
        inside += calib_inside(r);
    }
    if (p.rows == 0) return p;
    p.mape /= p.rows;
    p.bias /= p.rows;
    p.coverage = (double)inside / p.rows;
    return p;
}

static void add(sc_validation *v, calib_label label, bool is_kind)
{
    for (uint32_t i = 0; i < v->n_rows; i++) {
        if (!v->rows[i].counted) continue;
        sc_valid_part p = judge(v, label, i);
        p.is_kind = is_kind;
        if (p.rows > 0) v->parts[v->n_parts++] = p;
    }
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
    return SC_OK;
}
