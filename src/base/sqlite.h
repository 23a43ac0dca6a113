/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sqlite.h - SQLite, which is loaded only when a database is read or written:
 * its symbols would double the time that every start of the program takes.
 */
#ifndef BASE_SQLITE_H
#define BASE_SQLITE_H

#include "base/err.h"

#ifdef STEPCAST_SQLITE

#include <sqlite3.h>

/* What is called of it. */
#define SC_SQLITE_FUNCTIONS(X) \
    X(open_v2)                 \
    X(close)                   \
    X(errmsg)                  \
    X(exec)                    \
    X(prepare_v2)              \
    X(bind_text)               \
    X(bind_double)             \
    X(bind_int64)              \
    X(step)                    \
    X(reset)                   \
    X(finalize)                \
    X(column_count)            \
    X(column_name)             \
    X(column_type)             \
    X(column_int64)            \
    X(column_text)             \
    X(column_bytes)            \
    X(limit)                   \
    X(db_config)

typedef struct sc_sqlite {
#define SC_SQLITE_MEMBER(name) __typeof__(&sqlite3_##name) name;
    SC_SQLITE_FUNCTIONS(SC_SQLITE_MEMBER)
#undef SC_SQLITE_MEMBER
    /* NULL: builds before 3.36 may lack it */
    __typeof__(&sqlite3_deserialize) deserialize;
} sc_sqlite;

#else
typedef struct sc_sqlite sc_sqlite;
#endif

/* `instead` is what else the user can do: ", or print CSV". Errors: SC_EINPUT,
 * SQLite is not installed, or stepcast was built without it. */
sc_status sc_sqlite_load(sc_sqlite *out, sc_pos at, const char *instead,
                         sc_err *err);

#endif
