/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nsys_db.c - rows of a database that may be anybody's.
 *
 * The file is opened for reading only and as one that does not change.  Only
 * whole plain tables are read, so no view, trigger, index or function of the
 * file runs, and a table has no more rows than its file has room for.
 */
#include "trace/nsys.h"

#ifdef STEPCAST_SQLITE

#include "base/scan.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#define LEAST_ROW 4 /* bytes of a row in a page */

static sc_status failed(const nsys_db *d, int code)
{
    static const char hint[] = "export it again: nsys export --type sqlite";
    const char *what = d->db ? d->lite.errmsg(d->db) : "out of memory";
    sc_pos at = sc_pos_file(d->file);
    switch (code & 0xff) {
    case SQLITE_NOMEM: return sc_error_nomem(d->err);
    case SQLITE_CANTOPEN:
    case SQLITE_IOERR:
    case SQLITE_PERM:
    case SQLITE_BUSY:
        return sc_error(d->err, SC_EIO, SC_C_IO, at, NULL, "can't read: %.150s",
                        what);
    default:
        return sc_error(d->err, SC_EINPUT, SC_C_SYNTAX, at, hint,
                        "the database can't be read: %.150s", what);
    }
}

static void protect(nsys_db *d)
{
    static const struct {
        int what, value;
    } limits[] = {
        {SQLITE_LIMIT_LENGTH, 64 << 20},   {SQLITE_LIMIT_SQL_LENGTH, 1 << 20},
        {SQLITE_LIMIT_COLUMN, 500},        {SQLITE_LIMIT_EXPR_DEPTH, 50},
        {SQLITE_LIMIT_COMPOUND_SELECT, 4}, {SQLITE_LIMIT_VDBE_OP, 25000},
        {SQLITE_LIMIT_ATTACHED, 0},        {SQLITE_LIMIT_TRIGGER_DEPTH, 1},
        {SQLITE_LIMIT_WORKER_THREADS, 0}};

    /* older versions know fewer of these */
    static const struct {
        int what, on;
    } switches[] = {
        {SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0},
        {SQLITE_DBCONFIG_ENABLE_TRIGGER, 0},
#ifdef SQLITE_DBCONFIG_DEFENSIVE
        {SQLITE_DBCONFIG_DEFENSIVE, 1},
#endif
#ifdef SQLITE_DBCONFIG_ENABLE_VIEW
        {SQLITE_DBCONFIG_ENABLE_VIEW, 0},
#endif
#ifdef SQLITE_DBCONFIG_TRUSTED_SCHEMA
        {SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},
#endif
    };

    for (size_t i = 0; i < SC_COUNT(limits); i++)
        d->lite.limit(d->db, limits[i].what, limits[i].value);
    for (size_t i = 0; i < SC_COUNT(switches); i++)
        d->lite.db_config(d->db, switches[i].what, switches[i].on, NULL);
}

static sc_status prepare(const nsys_db *d, const char *sql, sqlite3_stmt **out)
{
    int got = d->lite.prepare_v2(d->db, sql, -1, out, NULL);
    return got == SQLITE_OK ? SC_OK : failed(d, got);
}

/* ---- schema -------------------------------------------------------------- */

/* Whether there is such a table; SC_EINPUT for what has its name and is none. */
static sc_status is_table(const nsys_db *d, const char *table, bool *is)
{
    sqlite3_stmt *q;
    nsys_row row = {d, NULL};
    size_t len;
    *is = false;
    SC_TRY(prepare(d,
                   "SELECT sql FROM main.sqlite_master WHERE name = ?1 COLLATE "
                   "nocase AND type IN ('table', 'view')",
                   &q));
    row.q = q;
    d->lite.bind_text(q, 1, table, -1, SQLITE_STATIC);
    int got = d->lite.step(q);
    const char *sql = got == SQLITE_ROW ? nsys_text(&row, 0, &len) : NULL;
    bool plain = sql && strncasecmp(sql, "CREATE TABLE ", 13) == 0;
    sc_status s = SC_OK;
    if (got != SQLITE_ROW && got != SQLITE_DONE) s = failed(d, got);
    if (got == SQLITE_ROW && !plain)
        s = sc_error(d->err, SC_EINPUT, SC_C_TYPE, sc_pos_file(d->file),
                     "export it again: nsys export --type sqlite",
                     "%s is not a plain table", table);
    d->lite.finalize(q);
    *is = plain;
    return s;
}

/* Marks the columns of `names` that a table has; generated ones are not listed.
 * `*key`: the first of them is its key. */
static sc_status find_columns(const nsys_db *d, const char *table,
                              const char *const *names, bool *has, bool *key)
{
    sqlite3_stmt *q;
    char sql[160];
    int got;
    *key = false;
    snprintf(sql, sizeof sql, "PRAGMA main.table_info(\"%s\")", table);
    SC_TRY(prepare(d, sql, &q));
    nsys_row row = {d, q};
    while ((got = d->lite.step(q)) == SQLITE_ROW) {
        size_t len;
        const char *name = nsys_text(&row, 1, &len);
        for (uint32_t i = 0; name && names[i]; i++) {
            if (strcasecmp(name, names[i]) != 0) continue;
            has[i] = true;
            if (i == 0) *key = nsys_int_or(&row, 5, 0) == 1;
        }
    }
    d->lite.finalize(q);
    return got == SQLITE_DONE ? SC_OK : failed(d, got);
}

static const char *const string_columns[] = {"id", "value", NULL};

/* Only a key finds a text without reading them all. */
static sc_status find_strings(nsys_db *d)
{
    bool is, key, has[2] = {false};
    SC_TRY(is_table(d, "StringIds", &is));
    if (!is) return SC_OK;
    SC_TRY(find_columns(d, "StringIds", string_columns, has, &key));
    if (!has[0] || !has[1] || !key)
        return sc_error(d->err, SC_EINPUT, SC_C_TYPE, sc_pos_file(d->file),
                        "export it again: nsys export --type sqlite",
                        "StringIds has no key id with a value");
    return prepare(d, "SELECT value FROM main.StringIds WHERE id = ?1",
                   &d->string);
}

/* ---- opening ------------------------------------------------------------- */

static sc_status opened(nsys_db *d, uint64_t bytes)
{
    d->most_rows = bytes / LEAST_ROW;
    protect(d);
    int got = d->lite.exec(d->db,
                           "PRAGMA trusted_schema = off;"
                           "PRAGMA cell_size_check = on;"
                           "PRAGMA query_only = on;"
                           "PRAGMA mmap_size = 0;",
                           NULL, NULL, NULL);
    if (got != SQLITE_OK) return failed(d, got);
    return find_strings(d);
}

/* "file:PATH?immutable=1", in which three characters mean something else, as do
 * two slashes at the begin. */
static bool uri_of(const char *path, char *out, size_t size)
{
    size_t n = (size_t)snprintf(out, size, *path == '/' ? "file://" : "file:");
    for (; *path && n + 4 < size; path++) {
        bool special = *path == '%' || *path == '?' || *path == '#';
        n += (size_t)snprintf(out + n, size - n, special ? "%%%02X" : "%c",
                              (unsigned char)*path);
    }
    return !*path &&
           (size_t)snprintf(out + n, size - n, "?immutable=1") < size - n;
}

sc_status nsys_db_open(nsys_db *d, const char *path, sc_err *err)
{
    char uri[4200];
    struct stat st;
    *d = (nsys_db){.file = path, .err = err};
    SC_TRY(sc_sqlite_load(&d->lite, sc_pos_file(path), "", err));
    if (stat(path, &st) != 0 || !uri_of(path, uri, sizeof uri))
        return sc_error(err, SC_EIO, SC_C_IO, sc_pos_file(path), NULL,
                        "can't open: %s", sc_errno_text(errno));
    int got = d->lite.open_v2(uri, &d->db,
                              SQLITE_OPEN_READONLY | SQLITE_OPEN_URI |
                                  SQLITE_OPEN_PRIVATECACHE,
                              NULL);
    if (got != SQLITE_OK) return failed(d, got);
    return opened(d, (uint64_t)st.st_size);
}

sc_status nsys_db_open_memory(nsys_db *d, const char *data, size_t len,
                              const char *file, sc_err *err)
{
    *d = (nsys_db){.file = file, .err = err};
    SC_TRY(sc_sqlite_load(&d->lite, sc_pos_file(file), "", err));
    if (!d->lite.deserialize)
        return sc_error(err, SC_EINPUT, SC_C_UNSUPPORTED, sc_pos_file(file),
                        "give the name of a file",
                        "this SQLite reads no database from memory");
    int got = d->lite.open_v2(":memory:", &d->db, SQLITE_OPEN_READWRITE, NULL);
    if (got != SQLITE_OK) return failed(d, got);
    /* the signature is for databases that SQLite may change, unlike this one */
    unsigned char *bytes;
    memcpy(&bytes, &data, sizeof bytes);
    got = d->lite.deserialize(d->db, "main", bytes, (sqlite3_int64)len,
                              (sqlite3_int64)len, SQLITE_DESERIALIZE_READONLY);
    if (got != SQLITE_OK) return failed(d, got);
    return opened(d, len);
}

void nsys_db_close(nsys_db *d)
{
    if (d->string) d->lite.finalize(d->string);
    if (d->db) d->lite.close(d->db);
}

/* ---- rows ---------------------------------------------------------------- */

/* Without indexes, which may contradict the table. */
static sc_status select_columns(const nsys_db *d, const char *table,
                                const char *const *columns, sqlite3_stmt **out)
{
    bool has[32] = {false}, key;
    char sql[1200];
    int n = snprintf(sql, sizeof sql, "SELECT ");
    SC_TRY(find_columns(d, table, columns, has, &key));
    for (uint32_t i = 0; columns[i]; i++)
        n +=
            snprintf(sql + n, sizeof sql - (size_t)n,
                     has[i] ? "%s\"%s\"" : "%sNULL", i ? ", " : "", columns[i]);
    snprintf(sql + n, sizeof sql - (size_t)n, " FROM main.\"%s\" NOT INDEXED",
             table);
    return prepare(d, sql, out);
}

sc_status nsys_rows(nsys_db *d, const char *table, const char *const *columns,
                    sc_status (*each)(void *ctx, const nsys_row *row),
                    void *ctx, bool *found)
{
    sqlite3_stmt *q;
    int got = SQLITE_DONE;
    uint64_t n = 0;
    sc_status s = SC_OK;
    SC_TRY(is_table(d, table, found));
    if (!*found) return SC_OK;
    SC_TRY(select_columns(d, table, columns, &q));
    nsys_row row = {d, q};
    while (s == SC_OK && (got = d->lite.step(q)) == SQLITE_ROW) {
        if (++n > d->most_rows)
            s = sc_error(d->err, SC_EINPUT, SC_C_SYNTAX, sc_pos_file(d->file),
                         "export it again: nsys export --type sqlite",
                         "%s has more rows than the file has room for", table);
        else
            s = each(ctx, &row);
    }
    if (s == SC_OK && got != SQLITE_DONE) s = failed(d, got);
    d->lite.finalize(q);
    return s;
}

/* ---- values -------------------------------------------------------------- */

const char *nsys_text(const nsys_row *r, int column, size_t *len)
{
    if (r->d->lite.column_type(r->q, column) != SQLITE_TEXT) return NULL;
    const void *text = r->d->lite.column_text(r->q, column);
    *len = (size_t)r->d->lite.column_bytes(r->q, column);
    return text;
}

bool nsys_int(const nsys_row *r, int column, int64_t *out)
{
    size_t len = 0;
    int type = r->d->lite.column_type(r->q, column);
    *out = 0;
    if (type == SQLITE_INTEGER || type == SQLITE_FLOAT) {
        *out = r->d->lite.column_int64(r->q, column);
        return true;
    }
    const char *text = nsys_text(r, column, &len);
    if (!text || !len || len > 40) return false;
    return scan_int(&(scan_token){SCAN_STRING, text, (uint32_t)len}, out);
}

int64_t nsys_int_or(const nsys_row *r, int column, int64_t none)
{
    int64_t v;
    return nsys_int(r, column, &v) ? v : none;
}

sc_status nsys_string(nsys_db *d, int64_t id, const char **out, size_t *len)
{
    *out = NULL;
    if (!d->string) return SC_OK;
    d->lite.reset(d->string);
    d->lite.bind_int64(d->string, 1, id);
    int got = d->lite.step(d->string);
    if (got == SQLITE_ROW)
        *out = nsys_text(&(nsys_row){d, d->string}, 0, len);
    else if (got != SQLITE_DONE)
        return failed(d, got);
    return SC_OK;
}

#endif
