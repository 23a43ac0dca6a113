/* SPDX-License-Identifier: Apache-2.0 */
/* curves.c - predicts times of collectives and compares them with measured
 * ones. */
#include "calib/curves.h"

#include "calib/network.h"
#include "calib/stats.h"

#include <math.h>
#include <string.h>

bool calib_curves_table(const sc_csv *t)
{
    static const char *const needed[] = {
        "collective", "gpus", "nodes", "nic", "size_bytes", "busbw_GBps"};
    for (size_t i = 0; i < SC_COUNT(needed); i++)
        if (sc_csv_col(t, needed[i]) < 0) return false;
    return true;
}

static const char *get(const sc_csv *t, uint32_t row, const char *column)
{
    return sc_csv_get(t, row, sc_csv_col(t, column));
}

/* A row whose time is not predicted yet. */
static sc_status blank_row(const sc_csv *t, uint32_t i, sc_arena *a,
                           sc_valid_row *out, sc_err *err)
{
    const char *slash = t->file ? strrchr(t->file, '/') : NULL;
    const char *file = slash ? slash + 1 : t->file ? t->file : "table";
    char *id = sc_sprintf(a, "%s:%u", file, t->line[i]);
    char *family = sc_sprintf(a, "%s %s/%s", get(t, i, "collective"),
                              get(t, i, "gpus"), get(t, i, "nodes"));
    if (!id || !family) return sc_error_nomem(err);
    *out = (sc_valid_row){.id = id,
                          .family = family,
                          .device = get(t, i, "gpu"),
                          .model = get(t, i, "nic"),
                          .measured = NAN,
                          .predicted = NAN,
                          .error = NAN,
                          .median = NAN,
                          .mem_measured = NAN,
                          .mem_predicted = NAN,
                          .low = NAN,
                          .high = NAN};
    /* message sizes are no choice, so the order of rows has no meaning */
    out->config_key = out->group_key = sc_hash(id, strlen(id), 0);
    return SC_OK;
}

static bool chosen(const sc_valid_row *r, const sc_validate_opts *o)
{
    return (!o->family || sc_glob(o->family, r->family)) &&
           (!o->where || sc_glob(o->where, r->id));
}

static sc_status table_rows(const sc_csv *t, const sc_validate_opts *o,
                            sc_arena *a, sc_validation *v, sc_err *err)
{
    network_rows rows = {0};
    SC_TRY(network_read(t, o->cost, a, &rows, err));
    uint32_t next = 0; /* rows.row has the order of the table */
    for (uint32_t i = 0; i < t->n_rows; i++) {
        sc_valid_row r = {0};
        SC_TRY(blank_row(t, i, a, &r, err));
        if (next < rows.n && rows.row[next].line == t->line[i]) {
            const network_row *n = &rows.row[next++];
            r.measured = r.median = 1e6 * n->seconds;
            r.predicted = 1e6 * network_predict(n, o->cost);
            r.error = r.predicted / r.measured - 1;
        } else {
            r.reason = "a collective, device, NIC or place that this version "
                       "can't express";
        }
        if (chosen(&r, o)) v->rows[v->n_rows++] = r;
    }
    return SC_OK;
}

sc_status calib_curves_validate(const sc_csv *tables, uint32_t n_tables,
                                const sc_validate_opts *o, sc_arena *a,
                                sc_validation *out, sc_err *err)
{
    sc_validation v = {.unit = "us"};
    size_t total = 0;
    for (uint32_t i = 0; i < n_tables; i++) total += tables[i].n_rows;
    v.rows = SC_NEW_N(a, sc_valid_row, total);
    if (!v.rows) return sc_error_nomem(err);
    for (uint32_t i = 0; i < n_tables; i++)
        SC_TRY(table_rows(&tables[i], o, a, &v, err));
    for (uint32_t i = 0; i < v.n_rows; i++)
        v.rows[i].counted = v.rows[i].reason == NULL;
    SC_TRY(calib_summarise(&v, a, err));
    *out = v;
    return SC_OK;
}
