/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sc_search_space.h - the points of a search: axes with values, and rules that
 * say which values go together.
 *
 * A point has a digit for each axis, and points are numbered in the order of
 * their digits, the first axis first.  The number of digits that an axis may
 * have depends on the digits before it, so an index is a number in a mixed
 * radix.  Counting visits no point twice: how many points follow depends only
 * on the digits that later rules read.
 */
#ifndef SEARCH_SPACE_H
#define SEARCH_SPACE_H

#include "base/base.h"

/* Most axes, and most points that are counted; more count as this many. */
#define SC_SEARCH_AXES 40
#define SC_SEARCH_MOST ((uint64_t)1 << 62)

typedef struct sc_search_axis {
    const char *name;
    uint32_t n;
    const int64_t *value; /* [n] different values */
} sc_search_axis;

typedef enum sc_search_rule_kind {
    /* Products with a negative value, which is left open, satisfy both. */
    SC_SEARCH_DIVIDES, /* the left product divides the right one */
    SC_SEARCH_AT_MOST, /* the left product is at most the right one */
    SC_SEARCH_IS,      /* axis `axis` has value `value` */
    SC_SEARCH_IS_NOT,
    SC_SEARCH_WHERE /* `where` holds; it reads the axes of `left` */
} sc_search_rule_kind;

/* A condition over values (search.h). */
typedef struct sc_search_where sc_search_where;

/* A number times the values of axes: bits by index. */
typedef struct sc_search_product {
    uint64_t times;
    uint64_t axes;
} sc_search_product;

/* A condition: axis `axis` has `value`, or has not. */
typedef struct sc_search_when {
    uint32_t axis;
    bool is_not;
    int64_t value;
} sc_search_when;

typedef struct sc_search_rule {
    sc_search_rule_kind kind;
    uint32_t n_when; /* all must hold for the rule to apply */
    sc_search_when when[3];
    sc_search_product left, right;
    uint32_t axis;
    int64_t value;
    const sc_search_where *where;
    const char *why; /* "heads must be divisible by tp" */
} sc_search_rule;

typedef struct sc_search_space sc_search_space;

/* Copies both tables.  SC_EINPUT: an axis has no values, there are too many
 * axes, or they are too long to be counted. */
sc_status sc_search_space_new(const sc_search_axis *axis, uint32_t n_axes,
                              const sc_search_rule *rule, uint32_t n_rules,
                              sc_arena *a, sc_search_space **out, sc_err *err);

uint32_t sc_search_space_axes(const sc_search_space *x);
const sc_search_axis *sc_search_space_axis(const sc_search_space *x,
                                           uint32_t i);

/* Number of legal points; SC_SEARCH_MOST: at least so many. */
uint64_t sc_search_space_points(const sc_search_space *x);
/* Number of legal points with these first `n` digits. */
uint64_t sc_search_space_below(sc_search_space *x, const uint32_t *digit,
                               uint32_t n);

/* Whether the digit of axis `i` is legal behind the digits before it. */
bool sc_search_space_legal(const sc_search_space *x, const uint32_t *digit,
                           uint32_t i);

/* The digits [n_axes] of a point, and the index of legal digits. */
void sc_search_space_digits(sc_search_space *x, uint64_t index,
                            uint32_t *digit);
uint64_t sc_search_space_index(sc_search_space *x, const uint32_t *digit);

#endif
