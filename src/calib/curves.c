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

/* The prediction of a row and its interval, in microseconds. */
static void predict(const network_row *n, const sc_cost *c, sc_valid_row *r)
{
    sc_coll_price price;
    r->measured = r->median = 1e6 * n->seconds;
    r->predicted = 1e6 * network_predict(n, c);
    r->error = r->predicted / r->measured - 1;
    if (sc_cost_coll(c, n->hw, n->coll, n->bytes, &n->at, n->algorithm, &price,
                     NULL) != SC_OK)
        return;
    double more = r->predicted - 1e6 * price.seconds; /* of the program */
    sc_cost_coll_interval(c, n->hw, &n->at, n->bytes, &price, &r->low,
                          &r->high);
    r->low = 1e6 * r->low + more;
    r->high = 1e6 * r->high + more;
}

/* One row per row of the table; `of`: the index of its measurement, or -1. */
static sc_status table_rows(const sc_csv *t, const sc_validate_opts *o,
                            network_rows *rows, int64_t *of, sc_arena *a,
                            sc_validation *v, sc_err *err)
{
    SC_TRY(network_read(t, o->cost, a, rows, err));
    uint32_t next = 0; /* rows->row has the order of the table */
    for (uint32_t i = 0; i < t->n_rows; i++) {
        sc_valid_row *r = &v->rows[v->n_rows];
        SC_TRY(blank_row(t, i, a, r, err));
        of[v->n_rows++] = -1;
        if (next < rows->n && rows->row[next].line == t->line[i]) {
            const network_row *n = &rows->row[next];
            of[v->n_rows - 1] = next++;
            r->hw_device = n->hw->device->name;
            r->counted = true;
            predict(n, o->cost, r);
        } else {
            r->reason = "a collective, device, NIC or place that this version "
                        "can't express";
        }
    }
    return SC_OK;
}

static sc_status finish(const sc_validate_opts *o, sc_validation *v,
                        sc_arena *a, sc_err *err)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < v->n_rows; i++)
        if (chosen(&v->rows[i], o)) v->rows[kept++] = v->rows[i];
    v->n_rows = kept;
    return calib_summarise(v, a, err);
}

/* The rows of all tables: `of` is the place of each in `all`, or -1. */
static sc_status read_all(const sc_csv *tables, uint32_t n_tables,
                          const sc_validate_opts *o, network_rows *all,
                          int64_t **of, sc_arena *a, sc_validation *v,
                          sc_err *err)
{
    size_t total = 0;
    for (uint32_t i = 0; i < n_tables; i++) total += tables[i].n_rows;
    v->rows = SC_NEW_N(a, sc_valid_row, total);
    all->row = SC_NEW_N(a, network_row, total);
    all->group = SC_NEW_N(a, network_group, total);
    *of = SC_NEW_N(a, int64_t, total);
    if (!v->rows || !all->row || !all->group || !*of)
        return sc_error_nomem(err);
    for (uint32_t i = 0; i < n_tables; i++) {
        network_rows one = {0};
        uint32_t first = v->n_rows;
        SC_TRY(table_rows(&tables[i], o, &one, *of, a, v, err));
        for (uint32_t j = first; j < v->n_rows; j++)
            if ((*of)[j] >= 0) (*of)[j] += all->n;
        for (uint32_t j = 0; j < one.n; j++) {
            all->row[all->n] = one.row[j];
            all->row[all->n++].group += all->n_groups;
        }
        memcpy(all->group + all->n_groups, one.group,
               one.n_groups * sizeof *one.group);
        all->n_groups += one.n_groups;
    }
    return SC_OK;
}

sc_status calib_curves_validate(const sc_csv *tables, uint32_t n_tables,
                                const sc_validate_opts *o, sc_arena *a,
                                sc_validation *out, sc_err *err)
{
    sc_validation v = {.unit = "us"};
    network_rows all = {0};
    int64_t *of = NULL;
    SC_TRY(read_all(tables, n_tables, o, &all, &of, a, &v, err));
    SC_TRY(finish(o, &v, a, err));
    *out = v;
    return SC_OK;
}

/* ---- rows that a fit does not have ---------------------------------------- */

typedef struct study {
    const network_rows *all;
    const int64_t *of;
    calib_label label;
    sc_validation *v;
} study;

static bool same(const study *s, uint32_t i, const char *name)
{
    return s->of[i] >= 0 && strcmp(s->label(&s->v->rows[i]), name) == 0;
}

/* Fits the rows with another label than `name`, and predicts those with it. */
static sc_status without(const study *s, const char *name, sc_arena *a,
                         sc_err *err)
{
    const network_rows *all = s->all;
    network_rows part = {.n_groups = all->n_groups};
    part.row = SC_NEW_N(a, network_row, all->n);
    part.group = SC_NEW_N(a, network_group, all->n_groups);
    sc_fit_result *res = SC_NEW(a, sc_fit_result);
    sc_cost *c = SC_NEW(a, sc_cost);
    if (!part.row || !part.group || !res || !c) return sc_error_nomem(err);
    for (uint32_t i = 0; i < s->v->n_rows; i++) {
        if (s->of[i] < 0 || same(s, i, name)) continue;
        const network_row *r = &all->row[s->of[i]];
        part.row[part.n++] = *r;
        part.group[r->group].n++;
    }
    sc_cost_centres(c);
    SC_TRY(network_fit(&part, c, res, NULL, a, err));
    for (uint32_t i = 0; i < s->v->n_rows; i++)
        if (same(s, i, name)) predict(&all->row[s->of[i]], c, &s->v->rows[i]);
    return SC_OK;
}

static sc_status each_label(const study *s, const sc_validate_opts *o,
                            sc_arena *a, sc_err *err)
{
    for (uint32_t i = 0; i < s->v->n_rows; i++) {
        const char *name = s->of[i] < 0 ? NULL : s->label(&s->v->rows[i]);
        uint32_t first = 0;
        while (first < i && !(name && same(s, first, name))) first++;
        if (!name || first < i) continue;
        sc_progress_tell(o->progress, "refits without each group", i + 1,
                         s->v->n_rows);
        sc_arena_mark mark = sc_arena_save(a);
        sc_status status = without(s, name, a, err);
        sc_arena_restore(a, mark);
        SC_TRY(status);
    }
    return SC_OK;
}

sc_status calib_curves_leave_out(const sc_csv *tables, uint32_t n_tables,
                                 calib_label label, const sc_validate_opts *o,
                                 sc_arena *a, sc_validation *out, sc_err *err)
{
    sc_validation v = {.unit = "us"};
    network_rows all = {0};
    int64_t *of = NULL;
    SC_TRY(read_all(tables, n_tables, o, &all, &of, a, &v, err));
    study s = {.all = &all, .of = of, .label = label, .v = &v};
    SC_TRY(each_label(&s, o, a, err));
    SC_TRY(finish(o, &v, a, err));
    SC_TRY(calib_summarise_parts(&v, label, a, err));
    *out = v;
    return SC_OK;
}
