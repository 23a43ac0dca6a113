/* SPDX-License-Identifier: Apache-2.0 */
/* query_sqlite.c - rows of a search in a database. */
#include "cli/query.h"

#ifdef STEPCAST_SQLITE

#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static sc_status failed(const cli *c, sqlite3 *db, const char *at)
{
    return sc_error(c->err, SC_EIO, SC_C_IO, sc_pos_file(at), NULL, "%.200s",
                    db ? sqlite3_errmsg(db) : "SQLite is out of memory");
}

static sc_status run(const cli *c, sqlite3 *db, const char *sql, const char *at)
{
    return sql && sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK
               ? SC_OK
               : failed(c, db, at);
}

/* "create table points (...)" and "insert into points values (?, ...)". */
static sc_status make_table(cli *c, sqlite3 *db, const sc_store_reader *r,
                            const char *at, sqlite3_stmt **insert, uint32_t *n)
{
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
    SC_TRY(run(c, db, sc_sprintf(c->arena, "create table points (%s)", columns),
               at));
    const char *sql =
        sc_sprintf(c->arena, "insert into points values (%s)", marks);
    if (!sql) return sc_error_nomem(c->err);
    return sqlite3_prepare_v2(db, sql, -1, insert, NULL) == SQLITE_OK
               ? SC_OK
               : failed(c, db, at);
}

static sc_status insert_row(const cli *c, sqlite3 *db, const sc_store_reader *r,
                            sqlite3_stmt *insert, uint32_t n, const char *at)
{
    char buf[64];
    bool fine = true;
    for (uint32_t i = 0; i < n; i++)
        /* columns of numbers turn the text into one */
        fine = fine && sqlite3_bind_text(insert, (int)i + 1,
                                         query_value(r, i, buf, sizeof buf), -1,
                                         SQLITE_TRANSIENT) == SQLITE_OK;
    fine = fine && sqlite3_step(insert) == SQLITE_DONE;
    sqlite3_reset(insert);
    return fine ? SC_OK : failed(c, db, at);
}

static sc_status insert_lines(cli *c, sqlite3 *db, const char *text,
                              const char *at)
{
    sqlite3_stmt *insert = NULL;
    SC_TRY(run(c, db, "create table search (line text)", at));
    if (sqlite3_prepare_v2(db, "insert into search values (?)", -1, &insert,
                           NULL) != SQLITE_OK)
        return failed(c, db, at);
    bool fine = true;
    while (*text && fine) {
        size_t n = strcspn(text, "\n");
        fine = sqlite3_bind_text(insert, 1, text, (int)n, SQLITE_TRANSIENT) ==
                   SQLITE_OK &&
               sqlite3_step(insert) == SQLITE_DONE;
        sqlite3_reset(insert);
        text += n + (text[n] == '\n');
    }
    sqlite3_finalize(insert);
    return fine ? SC_OK : failed(c, db, at);
}

static sc_status fill(cli *c, sqlite3 *db, sc_store_reader *r, const char *at)
{
    sqlite3_stmt *insert = NULL;
    uint32_t n = 0;
    bool is = true;
    SC_TRY(run(c, db, "begin", at));
    SC_TRY(insert_lines(c, db, r->head.identity, at));
    SC_TRY(make_table(c, db, r, at, &insert, &n));
    sc_status s = SC_OK;
    while (s == SC_OK && is) {
        s = sc_store_next(r, &is, c->err);
        if (s == SC_OK && is) s = insert_row(c, db, r, insert, n, at);
    }
    sqlite3_finalize(insert);
    return s == SC_OK ? run(c, db, "commit", at) : s;
}

sc_status query_to_sqlite(cli *c, sc_store_reader *r, const char *file)
{
    sqlite3 *db = NULL;
    const char *tmp = sc_sprintf(c->arena, "%s.tmp%ld", file, (long)getpid());
    if (!tmp) return sc_error_nomem(c->err);
    sc_status s =
        sqlite3_open(tmp, &db) == SQLITE_OK ? SC_OK : failed(c, db, file);
    if (s == SC_OK) s = fill(c, db, r, file);
    if (sqlite3_close(db) != SQLITE_OK && s == SC_OK) s = failed(c, db, file);
    if (s == SC_OK && rename(tmp, file) != 0)
        s = sc_error(c->err, SC_EIO, SC_C_IO, sc_pos_file(file), NULL,
                     "can't write: %s", sc_errno_text(errno));
    if (s != SC_OK) unlink(tmp);
    return s;
}

static sc_status print_rows(cli *c, sqlite3 *db, sqlite3_stmt *q, sc_text *t)
{
    int n = sqlite3_column_count(q), got;
    for (int i = 0; i < n; i++)
        query_cell(sqlite3_column_name(q, i), i == 0, t);
    if (n) sc_text_add(t, "\n");
    while ((got = sqlite3_step(q)) == SQLITE_ROW) {
        for (int i = 0; i < n; i++) {
            const unsigned char *v = sqlite3_column_text(q, i);
            query_cell(v ? (const char *)v : "", i == 0, t);
        }
        sc_text_add(t, "\n");
    }
    if (got != SQLITE_DONE) return failed(c, db, "--sql");
    return t->failed ? sc_error_nomem(c->err) : cli_emit(c, t->buf, t->len);
}

sc_status query_sql(cli *c, sc_store_reader *r, const char *sql)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *q = NULL;
    sc_text t;
    sc_status s = sqlite3_open(":memory:", &db) == SQLITE_OK
                      ? SC_OK
                      : failed(c, db, "--sql");
    if (s == SC_OK) s = fill(c, db, r, "--sql");
    if (s == SC_OK && sqlite3_prepare_v2(db, sql, -1, &q, NULL) != SQLITE_OK)
        s = sc_error(c->err, SC_EUSAGE, SC_C_SYNTAX, sc_pos_file("--sql"),
                     "for example SELECT tp, min(step_time_s) FROM points "
                     "GROUP BY tp",
                     "%.200s", sqlite3_errmsg(db));
    sc_text_init(&t);
    if (s == SC_OK && q) s = print_rows(c, db, q, &t);
    sc_text_free(&t);
    sqlite3_finalize(q);
    sqlite3_close(db);
    return s;
}

#else

static sc_status none(const cli *c, const char *at)
{
    return sc_error(c->err, SC_EINPUT, SC_C_UNSUPPORTED, sc_pos_file(at),
                    "build stepcast where libsqlite3-dev is installed, or "
                    "print CSV",
                    "this program was built without SQLite");
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
