/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keys.h - reads a configuration tree by a table of the program's keys.
 *
 * The row of a key tells how the key is used: its value is read, it does not
 * change the time of a step, it is not modelled (a warning unless it is
 * switched off), or it changes the step too much to be ignored (an error unless
 * it is switched off). A key without a row is an error.
 */
#ifndef IMPORT_KEYS_H
#define IMPORT_KEYS_H

#include "import/sink.h"

typedef enum import_use {
    IMPORT_USED,
    IMPORT_HARMLESS,
    IMPORT_REPORTED,
    IMPORT_REFUSED
} import_use;

typedef enum import_kind {
    IMPORT_NODE, /* any node: the reader interprets it */
    IMPORT_INT,
    IMPORT_REAL,
    IMPORT_BOOL,
    IMPORT_WORD,
} import_kind;

typedef struct import_key {
    const char *
        path; /* "zero_optimization.stage"; '*' matches any characters; NULL ends */
    uint8_t use;      /* import_use */
    uint8_t kind;     /* import_kind, of a value that is used */
    uint8_t id;       /* index of the value */
    double lo, hi;    /* of a number */
    const char *hint; /* of a refused key; NULL: none */
} import_key;

/* Rows of a table. */
#define IMPORT_K_INT(path, id, lo, hi)                  \
    {                                                   \
        path, IMPORT_USED, IMPORT_INT, id, lo, hi, NULL \
    }
#define IMPORT_K_REAL(path, id, lo, hi)                  \
    {                                                    \
        path, IMPORT_USED, IMPORT_REAL, id, lo, hi, NULL \
    }
#define IMPORT_K_BOOL(path, id)                        \
    {                                                  \
        path, IMPORT_USED, IMPORT_BOOL, id, 0, 0, NULL \
    }
#define IMPORT_K_WORD(path, id)                        \
    {                                                  \
        path, IMPORT_USED, IMPORT_WORD, id, 0, 0, NULL \
    }
#define IMPORT_K_NODE(path, id)                        \
    {                                                  \
        path, IMPORT_USED, IMPORT_NODE, id, 0, 0, NULL \
    }
#define IMPORT_K_HARMLESS(path)                 \
    {                                           \
        path, IMPORT_HARMLESS, 0, 0, 0, 0, NULL \
    }
#define IMPORT_K_REPORTED(path)                 \
    {                                           \
        path, IMPORT_REPORTED, 0, 0, 0, 0, NULL \
    }
#define IMPORT_K_REFUSED(path, hint)           \
    {                                          \
        path, IMPORT_REFUSED, 0, 0, 0, 0, hint \
    }

/* Whether `name` differs from `known` by at most two letters in one place. */
bool import_is_slip(const char *name, const char *known);

/* Reads the values of `root` into v[].  The first row whose path matches counts;
 * a map without a row is searched for keys.  A row "*" at the end takes all other
 * keys but misspellings of used ones.  Null and "auto" count as not given.  All
 * errors are recorded in `to`. */
sc_status import_keys_read(import_sink *to, const import_key *keys,
                           const sc_node *root, import_value *v);

/* Whether a value is given and valid. */
static inline bool import_good(const import_value *v)
{
    return v->given && !v->bad;
}

/* The number of a valid value, otherwise `other`; whether a yes/no value is
 * yes. */
static inline double import_number(const import_value *v, double other)
{
    return import_good(v) ? v->number : other;
}

static inline bool import_yes(const import_value *v)
{
    return import_good(v) && v->number != 0;
}

/* Index of the value in `names` (NULL ends), ignoring case.  Another name is an
 * error with `hint` and marks the value as bad.  -1: not given, or an error. */
int import_choose(import_sink *to, import_value *v, const char *const *names,
                  const char *hint);

#endif
