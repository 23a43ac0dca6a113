/* SPDX-License-Identifier: Apache-2.0 */
/* sqlite.c - loads SQLite. */
#include "base/sqlite.h"

#include <stdio.h>

#ifdef STEPCAST_SQLITE

#include "base/util.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

#define LIBRARY "libsqlite3.so.0"

static const struct {
    const char *name;
    size_t at;
} functions[] = {

#define ROW(name) {"sqlite3_" #name, offsetof(sc_sqlite, name)},
    SC_SQLITE_FUNCTIONS(ROW)
#undef ROW
};

static bool find(void *library, const char *name, sc_sqlite *out, size_t at)
{
    /* POSIX says that a function's address fits a void pointer */
    void *f = dlsym(library, name);
    memcpy((char *)out + at, &f, sizeof f);
    return f != NULL;
}

sc_status sc_sqlite_load(sc_sqlite *out, sc_pos at, const char *instead,
                         sc_err *err)
{
    char hint[200];
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    bool found = library != NULL;
    for (size_t i = 0; found && i < SC_COUNT(functions); i++)
        found = find(library, functions[i].name, out, functions[i].at);
    if (found)
        (void)find(library, "sqlite3_deserialize", out,
                   offsetof(sc_sqlite, deserialize));
    if (found) return SC_OK;
    snprintf(hint, sizeof hint, "install the package libsqlite3-0%s", instead);
    return sc_error(err, SC_EINPUT, SC_C_UNSUPPORTED, at, hint,
                    "SQLite can't be loaded: %.200s", dlerror());
}

#else

sc_status sc_sqlite_load(sc_sqlite *out, sc_pos at, const char *instead,
                         sc_err *err)
{
    char hint[200];
    (void)out;
    snprintf(hint, sizeof hint,
             "build stepcast where libsqlite3-dev is installed%s", instead);
    return sc_error(err, SC_EINPUT, SC_C_UNSUPPORTED, at, hint,
                    "this program was built without SQLite");
}

#endif
