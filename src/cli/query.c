/* SPDX-License-Identifier: Apache-2.0 */
/* query.c - `stepcast query`: the rows of `search --keep all`. */
#include "cli/query.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define LOG_MOST ((size_t)1 << 36)

/* Text that is held before it is written. */
enum { CHUNK = 1 << 20 };

typedef struct query_opts {
    const char *sql;
    int64_t top;
} query_opts;

#define OFF(f) offsetof(query_opts, f)

const sc_key cli_query_keys[] = {
    {.name = "top",
     .type = SC_T_INT,
     .unit = SC_U_COUNT,
     .offset = OFF(top),
     .min = 1,
     .max = 1e6,
     .flag = "--top",
     .meta = "N",
     .help = "only the N best rows, by the objective of the search"},
    {.name = "sql",
     .type = SC_T_STRING,
     .offset = OFF(sql),
     .flag = "--sql",
     .meta = "SQL",
     .help = "a query over the table `points`; its rows are printed as CSV"},
    {0},
};

/* ---- columns --------------------------------------------------------------- */

static bool has_score(const sc_store_reader *r)
{
    return *r->head.objective != '\0';
}

const char *query_column(const sc_store_reader *r, uint32_t i, sc_arena *a)
{
    const char *name = NULL;
    if (i < r->head.n) name = r->head.axis[i].name;
    if (i == r->head.n) name = "step_time_s";
    if (i == r->head.n + 1) name = "peak_bytes";
    if (i == r->head.n + 2 && has_score(r)) name = r->head.objective;
    char *own = name ? sc_strdup(a, name) : NULL;
    for (char *s = own; s && *s; s++)
        if (*s == '-') *s = '_';
    return own;
}

bool query_is_number(const sc_store_reader *r, uint32_t i)
{
    return i >= r->head.n || r->head.axis[i].number;
}

const char *query_value(const sc_store_reader *r, uint32_t i, char *buf,
                        size_t size)
{
    if (i < r->head.n) return r->head.axis[i].value[r->row.digit[i]];
    if (i == r->head.n)
        snprintf(buf, size, "%llu.%012llu",
                 (unsigned long long)(r->row.step_ps / 1000000000000u),
                 (unsigned long long)(r->row.step_ps % 1000000000000u));
    if (i == r->head.n + 1)
        snprintf(buf, size, "%llu", (unsigned long long)r->row.peak);
    if (i == r->head.n + 2) snprintf(buf, size, "%.17g", r->row.score);
    return buf;
}

void query_cell(const char *text, bool first, sc_text *out)
{
    if (!first) sc_text_add(out, ",");
    if (!strpbrk(text, ",\"\r\n")) {
        sc_text_add(out, "%s", text);
        return;
    }
    sc_text_add(out, "\"");
    for (const char *s = text; *s; s++)
        sc_text_add(out, *s == '"' ? "\"\"" : "%c", *s);
    sc_text_add(out, "\"");
}

/* ---- CSV ---------------------------------------------------------------------- */

static void add_row(const sc_store_reader *r, uint32_t n, sc_text *out)
{
    char buf[64];
    for (uint32_t i = 0; i < n; i++)
        query_cell(query_value(r, i, buf, sizeof buf), i == 0, out);
    sc_text_add(out, "\n");
}

/* Without -o, long texts are written in parts. */
static sc_status flush(cli *c, sc_text *t, bool last)
{
    if (t->failed) return sc_error_nomem(c->err);
    if (!last && (c->output || t->len < CHUNK)) return SC_OK;
    SC_TRY(cli_emit(c, t->buf, t->len));
    t->len = 0;
    t->buf[0] = '\0';
    return SC_OK;
}

static double score_of(const sc_store_reader *r, const sc_store_row *row)
{
    return has_score(r) ? row->score : (double)row->step_ps;
}

/* The best rows in their order; of equal ones the first. */
static sc_status best_rows(cli *c, sc_store_reader *r, uint64_t top,
                           sc_store_row **out, uint64_t *n)
{
    sc_store_row *all = SC_NEW_N(c->arena, sc_store_row, top + 1);
    bool is = true;
    if (!all) return sc_error_nomem(c->err);
    *out = all;
    *n = 0;
    for (;;) {
        SC_TRY(sc_store_next(r, &is, c->err));
        if (!is) return SC_OK;
        double score = score_of(r, &r->row);
        uint64_t i = *n;
        while (i > 0 && score < score_of(r, &all[i - 1])) i--;
        if (i == top) continue;
        if (*n < top) ++*n;
        memmove(&all[i + 1], &all[i], (*n - 1 - i) * sizeof *all);
        all[i] = r->row;
    }
}

static sc_status add_rows(cli *c, sc_store_reader *r, uint64_t top, uint32_t n,
                          sc_text *t)
{
    sc_store_row *row = NULL;
    uint64_t rows = 0;
    bool is = true;
    if (top > 0) SC_TRY(best_rows(c, r, top, &row, &rows));
    for (uint64_t i = 0; i < rows; i++) {
        r->row = row[i];
        add_row(r, n, t);
        SC_TRY(flush(c, t, false));
    }
    while (top == 0) {
        SC_TRY(sc_store_next(r, &is, c->err));
        if (!is) break;
        add_row(r, n, t);
        SC_TRY(flush(c, t, false));
    }
    return flush(c, t, true);
}

static sc_status to_csv(cli *c, sc_store_reader *r, uint64_t top)
{
    sc_text t;
    const char *name;
    uint32_t n = 0;
    sc_text_init(&t);
    for (; (name = query_column(r, n, c->arena)); n++)
        query_cell(name, n == 0, &t);
    sc_text_add(&t, "\n");
    sc_status s = add_rows(c, r, top, n, &t);
    sc_text_free(&t);
    return s;
}

/* ---- the command -------------------------------------------------------------- */

static bool ends_in(const char *name, const char *end)
{
    size_t n = strlen(name), m = strlen(end);
    return n > m && strcmp(name + n - m, end) == 0;
}

static sc_status check(cli *c, const query_opts *o, const sc_words *words,
                       bool database)
{
    if (words->n != 1)
        return sc_error(c->err, SC_EUSAGE, SC_C_MISSING, sc_pos_none(),
                        "for example `stepcast query rows.log`",
                        "give one file of `stepcast search --keep all`");
    if (c->json)
        return sc_error(c->err, SC_EUSAGE, SC_C_OPTION, sc_pos_file("--json"),
                        "rows are printed as CSV, or written with -o "
                        "FILE.sqlite",
                        "the option has no effect here");
    if (o->top && (o->sql || database))
        return sc_error(c->err, SC_EUSAGE, SC_C_CONFLICT, sc_pos_file("--top"),
                        "write ORDER BY and LIMIT in SQL",
                        "only CSV of all columns has the best rows");
    if (o->sql && database)
        return sc_error(c->err, SC_EUSAGE, SC_C_CONFLICT, sc_pos_file("--sql"),
                        "leave one of them out",
                        "a query is printed, not written into a database");
    return SC_OK;
}

sc_status cli_query(cli *c, int argc, char *const *argv)
{
    query_opts o = {.top = 0};
    sc_opt_set set = {cli_query_keys, &o, {{0}}};
    sc_words words = {0};
    sc_store_reader r;
    char *data = NULL;
    size_t len = 0;
    SC_TRY(cli_parse(c, argc, argv, &set, 1, &words));
    bool database = c->output && (ends_in(c->output, ".sqlite") ||
                                  ends_in(c->output, ".db"));
    SC_TRY(check(c, &o, &words, database));
    c->arena->limit = LOG_MOST;
    SC_TRY(sc_file_read(words.w[0], LOG_MOST, c->arena, &data, &len, c->err));
    SC_TRY(sc_store_open(data, len, words.w[0], c->arena, &r, c->err));
    sc_status s = database ? query_to_sqlite(c, &r, c->output)
                  : o.sql  ? query_sql(c, &r, o.sql)
                           : to_csv(c, &r, (uint64_t)o.top);
    if (s == SC_OK && !r.whole)
        cli_note(c,
                 "note: %s has no end: the search was cut off after %llu "
                 "rows\n",
                 words.w[0], (unsigned long long)r.rows);
    return s;
}
