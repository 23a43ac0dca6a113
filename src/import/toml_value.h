/* SPDX-License-Identifier: Apache-2.0 */
/* toml_value.h - shared by the files of the reader of TOML. */
#ifndef IMPORT_TOML_VALUE_H
#define IMPORT_TOML_VALUE_H

#include "base/doc.h"

#include <stdbool.h>

/* A node with state that only the reader needs. */
typedef struct toml_node {
    sc_node node;
    sc_node *last;     /* child */
    bool open;         /* a table that no header has defined yet */
    bool dotted;       /* made by a dotted key: no header may define it */
    bool inline_table; /* { ... }: nothing may be added */
    bool tables;       /* an array of [[tables]] */
} toml_node;

typedef struct toml {
    const char *text;
    size_t len, at; /* the next byte */
    size_t line_at; /* first byte of the line, */
    uint32_t line;  /* its number */
    int depth;      /* of arrays and inline tables */
    const char *file;
    sc_arena *a;
    sc_err *err;
    sc_status status; /* of the first error */
    toml_node lost;   /* receives keys of tables with errors */
} toml;

sc_pos toml_pos(const toml *t, size_t at);
/* Both record an error and return false. */
bool toml_error(toml *t, sc_code code, size_t at, const char *hint,
                const char *what);
bool toml_nomem(toml *t);

/* Moves past blanks; past a comment; past the end of a line, if there is
 * one. */
void toml_blanks(toml *t);
void toml_comment(toml *t);
bool toml_newline(toml *t);

/* Adds a new last child; NULL after an error. */
toml_node *toml_add(toml *t, sc_node *parent, const char *key, size_t at,
                    sc_node_kind kind);

/* Reads "key = value" into `table`. */
bool toml_pair(toml *t, sc_node *table);

/* Reads the value at the next byte into `out`. */
bool toml_value(toml *t, toml_node *out);

/* Reads a quoted string at the next byte; NULL after an error. `lines`: strings
 * in """ and ''' may have several lines. */
const char *toml_string(toml *t, bool lines);

#endif
