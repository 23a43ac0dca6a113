/* SPDX-License-Identifier: Apache-2.0 */
/* space.c - counts and numbers the points of a space. */
#include "search/search.h"

#include <string.h>

/* Digits that are tried while points are counted: seconds. */
#define TRIES_MOST 30000000

/* What is known of the axes from one axis on. */
typedef struct level {
    uint64_t read;     /* earlier axes that this axis or a later one reads */
    uint32_t first, n; /* rules that end with this axis */
} level;

struct sc_search_space {
    uint32_t n_axes, n_rules;
    sc_search_axis *axis;
    sc_search_rule *rule; /* sorted by their last axis */
    level *level;         /* [n_axes] */
    sc_map counts;        /* by level and digits that it reads */
    uint64_t *count;
    uint32_t cap;
    sc_arena *a;
    uint64_t with_open; /* axes with negative values; bits by index */
    uint64_t tries;
    bool failed; /* out of memory, or too many tries */
    uint64_t points;
};

/* ---- rules --------------------------------------------------------------- */

static uint64_t reads(const sc_search_rule *r)
{
    uint64_t axes = 0;
    for (uint32_t i = 0; i < r->n_when; i++)
        axes |= (uint64_t)1 << r->when[i].axis;
    if (r->kind == SC_SEARCH_WHERE) return r->left.axes;
    if (r->kind >= SC_SEARCH_IS) return axes | (uint64_t)1 << r->axis;
    return axes | r->left.axes | r->right.axes;
}

static uint32_t last_axis(const sc_search_rule *r)
{
    uint64_t axes = reads(r);
    uint32_t last = 0;
    for (uint32_t i = 0; i < SC_SEARCH_AXES; i++)
        if (axes >> i & 1) last = i;
    return last;
}

static int64_t value_of(const sc_search_space *x, const uint32_t *digit,
                        uint32_t i)
{
    return x->axis[i].value[digit[i]];
}

/* Limits keep products below 2^64: values are below 2^40 (checked), and a
 * product that would not fit counts as the largest number. */
static uint64_t product(const sc_search_space *x, const uint32_t *digit,
                        const sc_search_product *p)
{
    uint64_t all = p->times;
    for (uint32_t i = 0; i < x->n_axes; i++)
        if (p->axes >> i & 1) {
            uint64_t v = (uint64_t)value_of(x, digit, i);
            if (v > 0 && all > UINT64_MAX / v) return UINT64_MAX;
            all *= v;
        }
    return all;
}

/* Whether one of these axes has a value that is left open. */
static bool open(const sc_search_space *x, const uint32_t *digit, uint64_t axes)
{
    axes &= x->with_open;
    for (uint32_t i = 0; axes != 0; i++, axes >>= 1)
        if (axes & 1 && value_of(x, digit, i) < 0) return true;
    return false;
}

static bool applies(const sc_search_space *x, const sc_search_rule *r,
                    const uint32_t *digit)
{
    for (uint32_t i = 0; i < r->n_when; i++) {
        const sc_search_when *w = &r->when[i];
        if ((value_of(x, digit, w->axis) == w->value) == w->is_not)
            return false;
    }
    return true;
}

static bool holds(const sc_search_space *x, const sc_search_rule *r,
                  const uint32_t *digit)
{
    if (!applies(x, r, digit)) return true;
    if (r->kind == SC_SEARCH_IS) return value_of(x, digit, r->axis) == r->value;
    if (r->kind == SC_SEARCH_IS_NOT)
        return value_of(x, digit, r->axis) != r->value;
    if (open(x, digit, r->left.axes | r->right.axes)) return true;
    if (r->kind == SC_SEARCH_WHERE)
        return sc_search_where_holds(r->where, digit);
    uint64_t left = product(x, digit, &r->left);
    uint64_t right = product(x, digit, &r->right);
    if (r->kind == SC_SEARCH_AT_MOST) return left <= right;
    return left > 0 && right % left == 0;
}

bool sc_search_space_legal(const sc_search_space *x, const uint32_t *digit,
                           uint32_t i)
{
    const level *l = &x->level[i];
    for (uint32_t k = l->first; k < l->first + l->n; k++)
        if (!holds(x, &x->rule[k], digit)) return false;
    return true;
}

/* ---- counting ------------------------------------------------------------ */

/* The digits that level `i` reads, as one number. */
static uint64_t key_of(const sc_search_space *x, const uint32_t *digit,
                       uint32_t i)
{
    uint64_t key = 0;
    for (uint32_t k = 0; k < i; k++)
        if (x->level[i].read >> k & 1) key = key * x->axis[k].n + digit[k];
    return key * SC_SEARCH_AXES + i;
}

static uint64_t sum_of(uint64_t a, uint64_t b)
{
    return a + b < SC_SEARCH_MOST ? a + b : SC_SEARCH_MOST;
}

static uint64_t below(sc_search_space *x, uint32_t *digit, uint32_t i)
{
    if (i == x->n_axes) return 1;
    uint64_t key = key_of(x, digit, i), sum = 0;
    uint32_t at = sc_map_get(&x->counts, key);
    if (at != SC_MAP_END) return x->count[at];
    x->tries += x->axis[i].n;
    if (x->tries > TRIES_MOST || x->failed) {
        x->failed = true;
        return 0;
    }
    for (digit[i] = 0; digit[i] < x->axis[i].n; digit[i]++)
        if (sc_search_space_legal(x, digit, i))
            sum = sum_of(sum, below(x, digit, i + 1));
    uint64_t *all =
        sc_grow(x->a, x->count, x->counts.n, &x->cap, 1024, sizeof *all);
    if (!all) {
        x->failed = true;
        return 0;
    }
    x->count = all;
    x->count[x->counts.n] = sum;
    if (!sc_map_set(&x->counts, x->a, key, x->counts.n)) x->failed = true;
    return sum;
}

uint64_t sc_search_space_below(sc_search_space *x, const uint32_t *digit,
                               uint32_t n)
{
    uint32_t own[SC_SEARCH_AXES] = {0};
    memcpy(own, digit, n * sizeof *own);
    return below(x, own, n);
}

uint64_t sc_search_space_points(const sc_search_space *x)
{
    return x->points;
}

void sc_search_space_digits(sc_search_space *x, uint64_t index, uint32_t *digit)
{
    sc_assert(index < x->points && x->points < SC_SEARCH_MOST);
    for (uint32_t i = 0; i < x->n_axes; i++)
        for (digit[i] = 0; digit[i] < x->axis[i].n; digit[i]++) {
            if (!sc_search_space_legal(x, digit, i)) continue;
            uint64_t n = sc_search_space_below(x, digit, i + 1);
            if (index < n) break;
            index -= n;
        }
}

uint64_t sc_search_space_index(sc_search_space *x, const uint32_t *digit)
{
    uint32_t own[SC_SEARCH_AXES];
    uint64_t index = 0;
    memcpy(own, digit, x->n_axes * sizeof *own);
    for (uint32_t i = 0; i < x->n_axes; i++) {
        for (own[i] = 0; own[i] < digit[i]; own[i]++)
            if (sc_search_space_legal(x, own, i))
                index += sc_search_space_below(x, own, i + 1);
    }
    return index;
}

/* ---- set-up -------------------------------------------------------------- */

uint32_t sc_search_space_axes(const sc_search_space *x)
{
    return x->n_axes;
}

const sc_search_axis *sc_search_space_axis(const sc_search_space *x, uint32_t i)
{
    return &x->axis[i];
}

/* Sorts rules by their last axis, stably, and finds what levels read. */
static void levels(sc_search_space *x, const sc_search_rule *rule)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < x->n_axes; i++) {
        x->level[i].first = n;
        for (uint32_t k = 0; k < x->n_rules; k++)
            if (last_axis(&rule[k]) == i) x->rule[n++] = rule[k];
        x->level[i].n = n - x->level[i].first;
    }
    uint64_t read = 0;
    for (uint32_t i = x->n_axes; i-- > 0;) {
        for (uint32_t k = 0; k < x->level[i].n; k++)
            read |= reads(&x->rule[x->level[i].first + k]);
        read &= ((uint64_t)1 << i) - 1;
        x->level[i].read = read;
    }
}

/* The digits that a level reads must fit in a key of 64 bits. */
static bool keys_fit(const sc_search_space *x)
{
    for (uint32_t i = 0; i < x->n_axes; i++) {
        double keys = SC_SEARCH_AXES * SC_SEARCH_AXES;
        for (uint32_t k = 0; k < i; k++)
            if (x->level[i].read >> k & 1) keys *= x->axis[k].n;
        if (keys > 1e18) return false;
    }
    return true;
}

static sc_status check(const sc_search_axis *axis, uint32_t n, sc_err *err)
{
    const int64_t most = (int64_t)1 << 40;
    if (n > SC_SEARCH_AXES)
        return sc_error(err, SC_EINPUT, SC_C_TOO_BIG, sc_pos_none(),
                        "fix some of them", "there are more than %d axes",
                        SC_SEARCH_AXES);
    for (uint32_t i = 0; i < n; i++) {
        if (axis[i].n == 0)
            return sc_error(err, SC_EINPUT, SC_C_MISSING, sc_pos_none(), NULL,
                            "axis %s has no values", axis[i].name);
        for (uint32_t k = 0; k < axis[i].n; k++)
            if (axis[i].value[k] > most || axis[i].value[k] < -most)
                return sc_error(err, SC_EINPUT, SC_C_RANGE, sc_pos_none(), NULL,
                                "axis %s has values beyond 2^40", axis[i].name);
    }
    return SC_OK;
}

static sc_status uncounted(sc_err *err)
{
    return sc_error(err, SC_EINPUT, SC_C_TOO_BIG, sc_pos_none(),
                    "fix some axes, give fewer values, or simpler conditions",
                    "the axes have too many values to be counted");
}

sc_status sc_search_space_new(const sc_search_axis *axis, uint32_t n_axes,
                              const sc_search_rule *rule, uint32_t n_rules,
                              sc_arena *a, sc_search_space **out, sc_err *err)
{
    SC_TRY(check(axis, n_axes, err));
    sc_search_space *x = SC_NEW(a, sc_search_space);
    if (!x) return sc_error_nomem(err);
    *x = (sc_search_space){.n_axes = n_axes,
                           .n_rules = n_rules,
                           .axis = SC_NEW_N(a, sc_search_axis, n_axes + 1),
                           .rule = SC_NEW_N(a, sc_search_rule, n_rules + 1),
                           .level = SC_NEW_N(a, level, n_axes + 1),
                           .a = a};
    if (!x->axis || !x->rule || !x->level) return sc_error_nomem(err);
    memcpy(x->axis, axis, n_axes * sizeof *axis);
    for (uint32_t i = 0; i < n_axes; i++)
        for (uint32_t k = 0; k < axis[i].n; k++)
            if (axis[i].value[k] < 0) x->with_open |= (uint64_t)1 << i;
    levels(x, rule);
    if (!keys_fit(x)) return uncounted(err);
    uint32_t digit[SC_SEARCH_AXES] = {0};
    x->points = below(x, digit, 0);
    if (x->tries > TRIES_MOST) return uncounted(err);
    if (x->failed) return sc_error_nomem(err);
    *out = x;
    return SC_OK;
}
