/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schema.h - tables with a row for each key. The reader of files, the
 * command-line parser, --help and shell completion all use them.
 *
 * A table describes the fields of one C struct. Defaults are text in the form
 * that people write, and the same code parses them.
 */
#ifndef SC_BASE_SCHEMA_H
#define SC_BASE_SCHEMA_H

#include "base/doc.h"
#include "base/units.h"
#include "base/util.h"

typedef enum sc_type {
    SC_T_QUANTITY, /* double, in the base unit of `unit` */
    SC_T_INT,      /* int64_t */
    SC_T_BOOL,     /* bool: true/false/yes/no/on/off */
    SC_T_TRISTATE, /* int: 1 or 0, read as SC_T_BOOL; negative: not given */
    SC_T_STRING,   /* const char *, in the arena */
    SC_T_ENUM,     /* int: index into `names` (NULL-terminated) */
    SC_T_LIST,     /* const char **, NULL-terminated, in the arena; NULL: none.
                      Every option adds one; in files it is a word or a list */
    SC_T_NODE      /* const sc_node *: the caller reads it (files only) */
} sc_type;

typedef struct sc_key {
    const char *name; /* key in files; NULL ends a table */
    sc_type type;
    sc_unit unit;             /* of a quantity */
    size_t offset;            /* offsetof in the target struct */
    const char *def;          /* default as text; NULL: the field keeps its
                                 value */
    double min, max;          /* limits of a number; both 0: any finite
                                 number */
    const char *const *names; /* of an enum */
    const char *flag;         /* "--tp"; NULL: not on the command line */
    const char *meta;         /* "N", "FILE" in --help */
    const char *help;         /* one line */
    const char *group;        /* title in --help; NULL: none */
    bool required;            /* in files */
    uint8_t words;            /* that one option of a list takes; 0: one */
} sc_key;

/* Whether an option of this row takes no value: "--sp", "--no-sp". */
static inline bool sc_key_is_flag(const sc_key *k)
{
    return k->type == SC_T_BOOL || k->type == SC_T_TRISTATE;
}

/* The present name of a key that files and commands may still call by this
 * former name (without dashes); NULL: there is no such key. */
const char *sc_key_renamed(const char *name, size_t len);

/* Which keys were given, by index into the table: bit i of given[i / 64]. */
typedef struct sc_given {
    uint64_t bits[4];
} sc_given;

bool sc_given_has(const sc_given *g, const sc_key *keys, const char *name);
void sc_given_set(sc_given *g, const sc_key *keys, const char *name);

/* Writes the defaults of all rows that have one. */
sc_status sc_schema_defaults(const sc_key *keys, void *target, sc_arena *a,
                             sc_err *err);

/* Reads map `node` into `target` (an empty file is an empty map).  Unknown keys
 * name the nearest known one; all errors are collected before it returns, and
 * nothing is written if there was one.  A quoted scalar is legal for a quantity
 * with its unit ("8GB" in JSON), not for a bare number.  `given` may be NULL. */
sc_status sc_schema_read(const sc_key *keys, const sc_node *node, void *target,
                         sc_given *given, sc_arena *a, sc_err *err);

/* Sets one field from text (`pos` is used in diagnostics). */
sc_status sc_schema_set(const sc_key *key, const char *text, sc_pos pos,
                        void *target, sc_arena *a, sc_err *err);

/* Sets the field from a value that sc_schema_read() has checked; of a list,
 * each word of it. */
sc_status sc_schema_set_node(const sc_key *key, const sc_node *value,
                             void *target, sc_arena *a, sc_err *err);

/* Copies one field to a struct of the same table, or compares it there. */
void sc_schema_copy(const sc_key *key, const void *from, void *to);
bool sc_schema_same(const sc_key *key, const void *x, const void *y);
/* The same for a field that lies at `offset` in the other struct. */
void sc_schema_copy_from(const sc_key *key, const void *from, size_t offset,
                         void *to);

/* Command line.  Parses argv[0..argc) (without program and command name) as
 * options of the tables (several, each with its own target): "--flag value",
 * "--flag=value"; a bool flag takes no value ("--no-flag" clears it).  The last
 * of several equal options wins, but for lists, which have them all.  A word that is no option is positional:
 * collected in `positional`.  "--" ends the options.  Every error is SC_EUSAGE;
 * unknown options name the nearest.  Targets and `given` (which the caller
 * has zeroed) are only written when there was no error. */
typedef struct sc_opt_set {
    const sc_key *keys;
    void *target;
    sc_given given;
} sc_opt_set;

typedef struct sc_words {
    const char **w; /* [n] borrowed from argv; NULL ends */
    uint32_t n;
} sc_words;

sc_status sc_opt_parse(int argc, char *const *argv, sc_opt_set *sets,
                       uint32_t n_sets, sc_words *positional, sc_arena *a,
                       sc_err *err);

/* Text of one row's value as a person would write it ("80GiB"). */
void sc_schema_print(const sc_key *key, const void *target, char *buf,
                     size_t size);

/* Appends the help of one row, in the columns of `t`. */
void sc_schema_help_row(const sc_key *key, sc_text *t);

/* Help lines of a table as an arena string; NULL when out of memory. */
char *sc_schema_help(const sc_key *keys, sc_arena *a);
#endif
