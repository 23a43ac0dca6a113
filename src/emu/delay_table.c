/* SPDX-License-Identifier: Apache-2.0 */
/*
 * delay_table.c - reads table:FILE, the times that a benchmark of collectives
 * measured, as its log (delay_log.c) or as
 *
 *   op,ranks,bytes,time_us,cpu_us
 *   all_reduce,2,1024,61.3,20.1
 *
 * where a line that begins with # is a comment.  Several rows for the same point
 * count with their median; a larger size never takes less than a smaller one.
 */
#include "emu/delay_file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct columns {
    int op, ranks, bytes, time, cpu;
} columns;

/* ---- cells */

static void keep(sc_status *first, sc_status s)
{
    if (*first == SC_OK) *first = s;
}

static sc_status find_columns(const sc_csv *t, columns *c, sc_err *err)
{
    static const char *const names[] = {"op",      "ranks",  "bytes",
                                        "time_us", "cpu_us", NULL};
    int *col[] = {&c->op, &c->ranks, &c->bytes, &c->time, &c->cpu};
    sc_status first = SC_OK;
    for (uint32_t k = 0; k < SC_COUNT(col); k++) {
        *col[k] = sc_csv_col(t, names[k]);
        if (*col[k] < 0 && col[k] != &c->cpu)
            keep(&first,
                 sc_error(err, SC_EINPUT, SC_C_MISSING, sc_pos_file(t->file),
                          "the header is op,ranks,bytes,time_us[,cpu_us]",
                          "no column '%s'", names[k]));
    }
    for (uint32_t k = 0; k < t->n_cols; k++) {
        bool known = false;
        for (uint32_t i = 0; names[i] != NULL; i++)
            known = known || strcmp(names[i], t->header[k]) == 0;
        if (!known)
            keep(&first,
                 sc_error(err, SC_EINPUT, SC_C_UNKNOWN_KEY,
                          sc_pos_file(t->file),
                          "the header is op,ranks,bytes,time_us[,cpu_us]",
                          "unknown column '%s'", t->header[k]));
    }
    return first;
}

static sc_status number(const sc_csv *t, uint32_t r, int col, double low,
                        double high, double *out, sc_err *err)
{
    const char *text = sc_csv_get(t, r, col);
    sc_pos pos = sc_csv_pos(t, r, col);
    SC_TRY(sc_unit_parse(text, SC_U_NONE, pos, out, err));
    if (*out >= low && *out <= high) return SC_OK;
    return sc_error(err, SC_EINPUT, SC_C_RANGE, pos, NULL,
                    "%s '%s' is outside [%g, %g]", t->header[col], text, low,
                    high);
}

static sc_status whole(const sc_csv *t, uint32_t r, int col, double low,
                       double high, double *out, sc_err *err)
{
    SC_TRY(number(t, r, col, low, high, out, err));
    if (*out == floor(*out)) return SC_OK;
    return sc_error(err, SC_EINPUT, SC_C_TYPE, sc_csv_pos(t, r, col), NULL,
                    "%s '%s' is not a whole number", t->header[col],
                    sc_csv_get(t, r, col));
}

static sc_status read_op(const sc_csv *t, uint32_t r, int col, uint32_t *out,
                         sc_err *err)
{
    const char *text = sc_csv_get(t, r, col);
    *out = sc_coll_find(text);
    if (*out < SC_N_CALLED_COLLS) return SC_OK;
    const char *near = sc_nearest(text, sc_coll_names);
    char hint[80] = "";
    if (near) snprintf(hint, sizeof hint, "did you mean %s?", near);
    return sc_error(err, SC_EINPUT, SC_C_UNKNOWN_NAME, sc_csv_pos(t, r, col),
                    near ? hint
                         : "the names are those in `collectives` of --json",
                    "unknown operation '%.60s'", text);
}

static sc_status read_row(const sc_csv *t, uint32_t r, const columns *c,
                          delay_row *out, sc_err *err)
{
    sc_status first = SC_OK;
    double ranks = 0, time = 0, cpu = 0;
    keep(&first, read_op(t, r, c->op, &out->op, err));
    keep(&first, whole(t, r, c->ranks, 2, 1e9, &ranks, err));
    keep(&first, whole(t, r, c->bytes, 0, DELAY_MAX_BYTES, &out->bytes, err));
    keep(&first, number(t, r, c->time, 0, DELAY_MAX_US, &time, err));
    out->cpu = -1;
    if (c->cpu >= 0 && *sc_csv_get(t, r, c->cpu)) {
        keep(&first, number(t, r, c->cpu, 0, DELAY_MAX_US, &cpu, err));
        out->cpu = cpu * 1e-6;
    }
    out->ranks = first == SC_OK ? (uint32_t)ranks : 0; /* out of range if
                                                          reading failed */
    out->time = time * 1e-6;
    return first;
}

/* ---- curves */

static int compare_rows(const void *p, const void *q)
{
    const delay_row *a = p, *b = q;
    if (a->op != b->op) return a->op < b->op ? -1 : 1;
    if (a->ranks != b->ranks) return a->ranks < b->ranks ? -1 : 1;
    if (a->bytes != b->bytes) return a->bytes < b->bytes ? -1 : 1;
    if (a->time != b->time) return a->time < b->time ? -1 : 1;
    return (a->cpu > b->cpu) - (a->cpu < b->cpu);
}

/* Median of the values in n rows; < 0: no row has one. */
static double typical_value(const delay_row *r, uint32_t n, bool cpu,
                            double *room)
{
    uint32_t k = 0;
    for (uint32_t i = 0; i < n; i++) {
        double v = cpu ? r[i].cpu : r[i].time;
        if (v >= 0) room[k++] = v;
    }
    return k == 0 ? -1 : sc_quantile(room, k, 0.5);
}

static void set_ends(delay_curve *c)
{
    uint32_t n = c->n;
    if (n == 1) {
        c->tail = c->bytes[0] > 0 ? c->value[0] / c->bytes[0] : 0;
    } else if (n > 1) {
        double head = (c->value[1] - c->value[0]) / (c->bytes[1] - c->bytes[0]);
        double most = c->bytes[0] > 0 ? c->value[0] / c->bytes[0] : 0;
        c->head = fmin(head, most);
        c->tail = (c->value[n - 1] - c->value[n - 2]) /
                  (c->bytes[n - 1] - c->bytes[n - 2]);
    }
}

/* Makes the curve of one operation and group size. */
static bool make_curve(const delay_row *r, uint32_t n, bool cpu, sc_arena *a,
                       delay_curve *out)
{
    double *bytes = SC_NEW_N(a, double, n), *value = SC_NEW_N(a, double, n);
    double *room = SC_NEW_N(a, double, n);
    if (bytes == NULL || value == NULL || room == NULL) return false;
    *out = (delay_curve){.bytes = bytes, .value = value};
    for (uint32_t k = 0, first = 0; k < n; first = k) {
        while (k < n && r[k].bytes == r[first].bytes) k++;
        double v = typical_value(r + first, k - first, cpu, room);
        if (v < 0) continue;
        if (out->n > 0 && v < value[out->n - 1]) v = value[out->n - 1];
        bytes[out->n] = r[first].bytes;
        value[out->n++] = v;
    }
    set_ends(out);
    return true;
}

static bool make_op(const delay_row *r, uint32_t n, sc_arena *a,
                    delay_op_rows *out)
{
    uint32_t groups = 0;
    for (uint32_t k = 0; k < n; k++)
        groups += k == 0 || r[k].ranks != r[k - 1].ranks;
    out->at = SC_NEW_N(a, delay_rows, groups);
    if (out->at == NULL) return false;
    for (uint32_t k = 0, first = 0; k < n; first = k) {
        while (k < n && r[k].ranks == r[first].ranks) k++;
        delay_rows *o = &out->at[out->n++];
        o->ranks = r[first].ranks;
        if (!make_curve(r + first, k - first, false, a, &o->time) ||
            !make_curve(r + first, k - first, true, a, &o->cpu))
            return false;
    }
    return true;
}

/* A copy in which comments are blank lines, so that line numbers stay. */
static char *without_comments(const char *text, size_t *len, sc_arena *a)
{
    char *copy = sc_alloc(a, *len + 1, 1);
    bool start = true, comment = false;
    size_t n = 0;
    for (size_t i = 0; copy != NULL && i < *len; i++) {
        if (start) comment = text[i] == '#';
        start = text[i] == '\n';
        if (!comment || start) copy[n++] = text[i];
    }
    *len = n;
    return copy;
}

static sc_status read_rows(const char *text, size_t len, const char *file,
                           sc_arena *a, delay_row **out, uint32_t *n,
                           sc_err *err)
{
    sc_csv t = {0};
    columns c;
    char *copy = without_comments(text, &len, a);
    if (copy == NULL) return sc_error_nomem(err);
    sc_status first = sc_csv_read(copy, len, file, a, &t, err);
    if (t.n_cols == 0) return first;
    SC_TRY(find_columns(&t, &c, err));
    delay_row *r = SC_NEW_N(a, delay_row, t.n_rows);
    if (r == NULL) return sc_error_nomem(err);
    for (uint32_t k = 0; k < t.n_rows; k++)
        keep(&first, read_row(&t, k, &c, &r[k], err));
    SC_TRY(first);
    if (t.n_rows == 0)
        return sc_error(err, SC_EINPUT, SC_C_MISSING, sc_pos_file(file), NULL,
                        "the table has no row below the header");
    *out = r;
    *n = t.n_rows;
    return SC_OK;
}

sc_status delay_table_read(const char *text, size_t len, const char *file,
                           uint32_t ranks, sc_arena *a, delay_file *out,
                           sc_err *err)
{
    delay_file f = {.name = file, .table = true};
    delay_row *r = NULL;
    uint32_t n = 0;
    if (delay_log_is(text, len))
        SC_TRY(delay_log_read(text, len, file, ranks, a, &r, &n, err));
    else if (ranks > 0)
        return sc_error(err, SC_EINPUT, SC_C_CONFLICT, sc_pos_file(file),
                        "ranks= is for logs that do not name the number",
                        "a table has a column 'ranks'");
    else
        SC_TRY(read_rows(text, len, file, a, &r, &n, err));
    qsort(r, n, sizeof *r, compare_rows);
    for (uint32_t k = 0, from = 0; k < n; from = k) {
        while (k < n && r[k].op == r[from].op) k++;
        if (!make_op(r + from, k - from, a, &f.op[r[from].op]))
            return sc_error_nomem(err);
    }
    *out = f;
    return SC_OK;
}
