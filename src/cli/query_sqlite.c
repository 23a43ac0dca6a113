/* SPDX-License-Identifier: Apache-2.0 */
/* query_sqlite.c - rows of a search in a database. */
#include "base/sqlite.h"
#include "cli/query.h"

#ifdef STEPCAST_SQLITE

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct database {
    cli *c;
    sc_sqlite lite;
    sqlite3 *db;
    const char *at; /* what messages name */
} database;

static sc_status failed(const database *d)
{
    return sc_error(d->c->err, SC_EIO, SC_C_IO, sc_pos_file(d->at), NULL,
                    "%.200s",
                    d->db ? d->lite.errmsg(d->db) : "SQLite is out of memory");
}

/* Makes or opens it, empty. */
static sc_status open_database(database *d, const char *file)
{
    SC_TRY(sc_sqlite_load(&d->lite, sc_pos_file(d->at), ", or print CSV",
                          d->c->err));
    return d->lite.open_v2(file, &d->db,
                           SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE,
                           NULL) == SQLITE_OK
               ? SC_OK
               : failed(d);
}

static sc_status run(const database *d, const char *sql)
{
    return sql && d->lite.exec(d->db, sql, NULL, NULL, NULL) == SQLITE_OK
               ? SC_OK
               : failed(d);
}

/* "create table points (...)" and "insert into points values (?, ...)". */
static sc_status make_table(const database *d, const sc_store_reader *r,
                            sqlite3_stmt **insert, uint32_t *n)
{
    cli *c = d->c;
    const char *columns = "", *marks = "", *name;
    uint32_t i = 0;
    for (; (name = query_column(r, i, c->arena)); i++) {
        bool real = i == r->head.n || i > r->head.n + 1;
        const char *type = !query_is_number(r, i) ? "text"
                           : real                 ? "real"
                                                  : "integer";
        columns = sc_sprintf(c->arena, "%s%s\"%s\" %s", columns, i ? ", " : "",
                             name, type);
        marks = sc_sprintf(c->arena, "%s%s", marks, i ? ", ?" : "?");
        if (!columns || !marks) return sc_error_nomem(c->err);
    }
    *n = i;
    SC_TRY(run(d, sc_sprintf(c->arena, "create table points (%s)", columns)));
    const char *sql =
        sc_sprintf(c->arena, "insert into points values (%s)", marks);
    if (!sql) return sc_error_nomem(c->err);
    return d->lite.prepare_v2(d->db, sql, -1, insert, NULL) == SQLITE_OK
               ? SC_OK
               : failed(d);
}

static sc_status insert_row(const database *d, const sc_store_reader *r,
                            sqlite3_stmt *insert, uint32_t n)
{
    char buf[64], *end;
    bool fine = true;
    for (uint32_t i = 0; fine && i < n; i++) {
        const char *text = query_value(r, i, buf, sizeof buf);
        /* SQLite's own conversion of text is not exact */
        bool number = query_is_number(r, i) && *text;
        double v = number ? strtod(text, &end) : 0;
        number = number && !*end;
        fine = (number ? d->lite.bind_double(insert, (int)i + 1, v)
                       : d->lite.bind_text(insert, (int)i + 1, text, -1,
                                           SQLITE_TRANSIENT)) == SQLITE_OK;
    }
    fine = fine && d->lite.step(insert) == SQLITE_DONE;
    d->lite.reset(insert);
    return fine ? SC_OK : failed(d);
}

static sc_status insert_lines(const database *d, const char *text)
{
    sqlite3_stmt *insert = NULL;
    SC_TRY(run(d, "create table search (line text)"));
    if (d->lite.prepare_v2(d->db, "insert into search values (?)", -1, &insert,
                           NULL) != SQLITE_OK)
        return failed(d);
    bool fine = true;
    while (*text && fine) {
        size_t n = strcspn(text, "\n");
        fine = d->lite.bind_text(insert, 1, text, (int)n, SQLITE_TRANSIENT) ==
                   SQLITE_OK &&
               d->lite.step(insert) == SQLITE_DONE;
        d->lite.reset(insert);
        text += n + (text[n] == '\n');
    }
    d->lite.finalize(insert);
    return fine ? SC_OK : failed(d);
}

static sc_status fill(const database *d, sc_store_reader *r)
{
    sqlite3_stmt *insert = NULL;
    uint32_t n = 0;
    bool is = true;
    SC_TRY(run(d, "begin"));
    SC_TRY(insert_lines(d, r->head.identity));
    SC_TRY(make_table(d, r, &insert, &n));
    sc_status s = SC_OK;
    while (s == SC_OK && is) {
        s = sc_store_next(r, &is, d->c->err);
        if (s == SC_OK && is) s = insert_row(d, r, insert, n);
    }
    d->lite.finalize(insert);
    return s == SC_OK ? run(d, "commit") : s;
}

sc_status query_to_sqlite(cli *c, sc_store_reader *r, const char *file)
{
    database d = {.c = c, .at = file};
    const char *tmp = sc_sprintf(c->arena, "%s.tmp%ld", file, (long)getpid());
    if (!tmp) return sc_error_nomem(c->err);
    sc_status s = open_database(&d, tmp);
    if (s == SC_OK) s = fill(&d, r);
    if (d.db && d.lite.close(d.db) != SQLITE_OK && s == SC_OK) s = failed(&d);
    if (s == SC_OK && rename(tmp, file) != 0)
        s = sc_error(c->err, SC_EIO, SC_C_IO, sc_pos_file(file), NULL,
                     "can't write: %s", sc_errno_text(errno));
    if (s != SC_OK) unlink(tmp);
    return s;
}

static sc_status print_rows(const database *d, sqlite3_stmt *q, sc_text *t)
{
    int n = d->lite.column_count(q), got;
    for (int i = 0; i < n; i++)
        query_cell(d->lite.column_name(q, i), i == 0, t);
    if (n) sc_text_add(t, "\n");
    while ((got = d->lite.step(q)) == SQLITE_ROW) {
        for (int i = 0; i < n; i++) {
            const unsigned char *v = d->lite.column_text(q, i);
            query_cell(v ? (const char *)v : "", i == 0, t);
        }
        sc_text_add(t, "\n");
    }
    if (got != SQLITE_DONE) return failed(d);
    return t->failed ? sc_error_nomem(d->c->err)
                     : cli_emit(d->c, t->buf, t->len);
}

sc_status query_sql(cli *c, sc_store_reader *r, const char *sql)
{
    database d = {.c = c, .at = "--sql"};
    sqlite3_stmt *q = NULL;
    sc_text t;
    sc_status s = open_database(&d, ":memory:");
    if (s == SC_OK) s = fill(&d, r);
    if (s == SC_OK && d.lite.prepare_v2(d.db, sql, -1, &q, NULL) != SQLITE_OK)
        s = sc_error(c->err, SC_EUSAGE, SC_C_SYNTAX, sc_pos_file("--sql"),
                     "for example SELECT tp, min(step_time_s) FROM points "
                     "GROUP BY tp",
                     "%.200s", d.lite.errmsg(d.db));
    sc_text_init(&t);
    if (s == SC_OK && q) s = print_rows(&d, q, &t);
    sc_text_free(&t);
    if (q) d.lite.finalize(q);
    if (d.db) d.lite.close(d.db);
    return s;
}

#else

static sc_status none(const cli *c, const char *at)
{
    return sc_sqlite_load(NULL, sc_pos_file(at), ", or print CSV", c->err);
}

sc_status query_to_sqlite(cli *c, sc_store_reader *r, const char *file)
{
    (void)r;
    return none(c, file);
}

sc_status query_sql(cli *c, sc_store_reader *r, const char *sql)
{
    (void)r;
    (void)sql;
    return none(c, "--sql");
}

#endif
