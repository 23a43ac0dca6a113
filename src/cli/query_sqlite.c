/* SPDX-License-Identifier: Apache-2.0 */
/*
 * query_sqlite.c - rows of a search in a database.  SQLite is loaded only here:
 * its symbols would double the time that every start of the program takes.
 */
#include "cli/query.h"

#ifdef STEPCAST_SQLITE

#include <dlfcn.h>
#include <errno.h>
#include <sqlite3.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LIBRARY "libsqlite3.so.0"

/* What is called of it. */
static struct {
    __typeof__(&sqlite3_open) open;
    __typeof__(&sqlite3_close) close;
    __typeof__(&sqlite3_errmsg) errmsg;
    __typeof__(&sqlite3_exec) exec;
    __typeof__(&sqlite3_prepare_v2) prepare_v2;
    __typeof__(&sqlite3_bind_text) bind_text;
    __typeof__(&sqlite3_bind_double) bind_double;
    __typeof__(&sqlite3_step) step;
    __typeof__(&sqlite3_reset) reset;
    __typeof__(&sqlite3_finalize) finalize;
    __typeof__(&sqlite3_column_count) column_count;
    __typeof__(&sqlite3_column_name) column_name;
    __typeof__(&sqlite3_column_text) column_text;
} lite;

static const struct {
    const char *name;
    size_t at;
} functions[] = {
    {"sqlite3_open", offsetof(__typeof__(lite), open)},
    {"sqlite3_close", offsetof(__typeof__(lite), close)},
    {"sqlite3_errmsg", offsetof(__typeof__(lite), errmsg)},
    {"sqlite3_exec", offsetof(__typeof__(lite), exec)},
    {"sqlite3_prepare_v2", offsetof(__typeof__(lite), prepare_v2)},
    {"sqlite3_bind_text", offsetof(__typeof__(lite), bind_text)},
    {"sqlite3_bind_double", offsetof(__typeof__(lite), bind_double)},
    {"sqlite3_step", offsetof(__typeof__(lite), step)},
    {"sqlite3_reset", offsetof(__typeof__(lite), reset)},
    {"sqlite3_finalize", offsetof(__typeof__(lite), finalize)},
    {"sqlite3_column_count", offsetof(__typeof__(lite), column_count)},
    {"sqlite3_column_name", offsetof(__typeof__(lite), column_name)},
    {"sqlite3_column_text", offsetof(__typeof__(lite), column_text)}};

static sc_status load(const cli *c, const char *at)
{
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    bool found = library != NULL;
    for (size_t i = 0; found && i < SC_COUNT(functions); i++) {
        /* POSIX says that a function's address fits a void pointer */
        void *f = dlsym(library, functions[i].name);
        memcpy((char *)&lite + functions[i].at, &f, sizeof f);
        found = f != NULL;
    }
    if (found) return SC_OK;
    return sc_error(c->err, SC_EINPUT, SC_C_UNSUPPORTED, sc_pos_file(at),
                    "install the package libsqlite3-0, or print CSV",
                    "SQLite can't be loaded: %.200s", dlerror());
}

static sc_status failed(const cli *c, sqlite3 *db, const char *at)
{
    return sc_error(c->err, SC_EIO, SC_C_IO, sc_pos_file(at), NULL, "%.200s",
                    db ? lite.errmsg(db) : "SQLite is out of memory");
}

static sc_status run(const cli *c, sqlite3 *db, const char *sql, const char *at)
{
    return sql && lite.exec(db, sql, NULL, NULL, NULL) == SQLITE_OK
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
    return lite.prepare_v2(db, sql, -1, insert, NULL) == SQLITE_OK
               ? SC_OK
               : failed(c, db, at);
}

static sc_status insert_row(const cli *c, sqlite3 *db, const sc_store_reader *r,
                            sqlite3_stmt *insert, uint32_t n, const char *at)
{
    char buf[64], *end;
    bool fine = true;
    for (uint32_t i = 0; fine && i < n; i++) {
        const char *text = query_value(r, i, buf, sizeof buf);
        /* SQLite's own conversion of text is not exact */
        double v = query_is_number(r, i) ? strtod(text, &end) : 0;
        bool number = query_is_number(r, i) && *text && !*end;
        fine = (number ? lite.bind_double(insert, (int)i + 1, v)
                       : lite.bind_text(insert, (int)i + 1, text, -1,
                                        SQLITE_TRANSIENT)) == SQLITE_OK;
    }
    fine = fine && lite.step(insert) == SQLITE_DONE;
    lite.reset(insert);
    return fine ? SC_OK : failed(c, db, at);
}

static sc_status insert_lines(cli *c, sqlite3 *db, const char *text,
                              const char *at)
{
    sqlite3_stmt *insert = NULL;
    SC_TRY(run(c, db, "create table search (line text)", at));
    if (lite.prepare_v2(db, "insert into search values (?)", -1, &insert,
                        NULL) != SQLITE_OK)
        return failed(c, db, at);
    bool fine = true;
    while (*text && fine) {
        size_t n = strcspn(text, "\n");
        fine = lite.bind_text(insert, 1, text, (int)n, SQLITE_TRANSIENT) ==
                   SQLITE_OK &&
               lite.step(insert) == SQLITE_DONE;
        lite.reset(insert);
        text += n + (text[n] == '\n');
    }
    lite.finalize(insert);
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
    lite.finalize(insert);
    return s == SC_OK ? run(c, db, "commit", at) : s;
}

sc_status query_to_sqlite(cli *c, sc_store_reader *r, const char *file)
{
    SC_TRY(load(c, file));
    sqlite3 *db = NULL;
    const char *tmp = sc_sprintf(c->arena, "%s.tmp%ld", file, (long)getpid());
    if (!tmp) return sc_error_nomem(c->err);
    sc_status s =
        lite.open(tmp, &db) == SQLITE_OK ? SC_OK : failed(c, db, file);
    if (s == SC_OK) s = fill(c, db, r, file);
    if (lite.close(db) != SQLITE_OK && s == SC_OK) s = failed(c, db, file);
    if (s == SC_OK && rename(tmp, file) != 0)
        s = sc_error(c->err, SC_EIO, SC_C_IO, sc_pos_file(file), NULL,
                     "can't write: %s", sc_errno_text(errno));
    if (s != SC_OK) unlink(tmp);
    return s;
}

static sc_status print_rows(cli *c, sqlite3 *db, sqlite3_stmt *q, sc_text *t)
{
    int n = lite.column_count(q), got;
    for (int i = 0; i < n; i++) query_cell(lite.column_name(q, i), i == 0, t);
    if (n) sc_text_add(t, "\n");
    while ((got = lite.step(q)) == SQLITE_ROW) {
        for (int i = 0; i < n; i++) {
            const unsigned char *v = lite.column_text(q, i);
            query_cell(v ? (const char *)v : "", i == 0, t);
        }
        sc_text_add(t, "\n");
    }
    if (got != SQLITE_DONE) return failed(c, db, "--sql");
    return t->failed ? sc_error_nomem(c->err) : cli_emit(c, t->buf, t->len);
}

sc_status query_sql(cli *c, sc_store_reader *r, const char *sql)
{
    SC_TRY(load(c, "--sql"));
    sqlite3 *db = NULL;
    sqlite3_stmt *q = NULL;
    sc_text t;
    sc_status s = lite.open(":memory:", &db) == SQLITE_OK
                      ? SC_OK
                      : failed(c, db, "--sql");
    if (s == SC_OK) s = fill(c, db, r, "--sql");
    if (s == SC_OK && lite.prepare_v2(db, sql, -1, &q, NULL) != SQLITE_OK)
        s = sc_error(c->err, SC_EUSAGE, SC_C_SYNTAX, sc_pos_file("--sql"),
                     "for example SELECT tp, min(step_time_s) FROM points "
                     "GROUP BY tp",
                     "%.200s", lite.errmsg(db));
    sc_text_init(&t);
    if (s == SC_OK && q) s = print_rows(c, db, q, &t);
    sc_text_free(&t);
    lite.finalize(q);
    lite.close(db);
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
