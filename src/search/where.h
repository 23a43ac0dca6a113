/* SPDX-License-Identifier: Apache-2.0 */
/* where.h - conditions over the values of axes. */
#ifndef SEARCH_WHERE_H
#define SEARCH_WHERE_H

#include "search/search.h"

typedef enum where_op {
    WHERE_NUMBER,
    WHERE_NAME, /* of an option or a constant */
    WHERE_WORD, /* of an option's values: full, fp8, yes */
    WHERE_AXIS, /* bound */
    WHERE_NOT,
    WHERE_MINUS,
    WHERE_OR, /* with two sides, from here on */
    WHERE_AND,
    WHERE_EQUAL,
    WHERE_UNEQUAL,
    WHERE_LESS,
    WHERE_AT_MOST,
    WHERE_MORE,
    WHERE_AT_LEAST,
    WHERE_PLUS,
    WHERE_LESS_BY,
    WHERE_TIMES,
    WHERE_OVER,
    WHERE_REST
} where_op;

typedef struct where_node {
    where_op op;
    uint32_t left, right; /* nodes */
    uint32_t at;          /* character of the text */
    const char *word;     /* of a name or word */
    const sc_key *key;    /* of an option; NULL: a constant */
    double number;
    uint32_t axis;
    const double *value; /* [axis.n] of an axis */
} where_node;

struct sc_search_where {
    const char *text;
    sc_pos pos;
    bool quoted;
    uint32_t n, cap;
    where_node *node; /* [n] the last one is the condition */
    uint64_t axes;    /* that it reads; bits by index */
};

/* The place of a character of the text. */
sc_pos where_place(const sc_search_where *w, uint32_t at);

/* A copy whose names are axes or numbers, and words numbers.  SC_EINPUT at a
 * name without a value. */
sc_status where_bind(const sc_search_where *w, const sc_job *job,
                     const sc_run *run, const sc_search_option *option,
                     uint32_t n, sc_arena *a, sc_search_where **out,
                     sc_err *err);

#endif
