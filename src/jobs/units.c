/* SPDX-License-Identifier: Apache-2.0 */
/* units.c - which nodes of the machine each job has. */
#include "jobs/jobs.h"

#include <stdlib.h>
#include <string.h>

#define FREE     UINT32_MAX
#define HOW      "write a number of nodes, 0..7, 0..14/2, or a list of these"
#define MAX_UNIT 999999999u

typedef struct room {
    const sc_hw *hw;
    const char *name; /* "node" */
    sc_jobs_part *job;
    uint32_t n, leaf;
    uint32_t *of; /* [n] job of each unit */
    sc_arena *a;
    sc_err *err;
} room;

/* ---- words ---------------------------------------------------------------- */

static bool number(const char **at, uint32_t *out)
{
    uint64_t n = 0;
    const char *from = *at;
    for (; **at >= '0' && **at <= '9' && n <= MAX_UNIT; ++*at)
        n = 10 * n + (uint64_t)(**at - '0');
    *out = (uint32_t)n;
    return *at > from && n <= MAX_UNIT;
}

/* Reads "3", "0..7" or "0..14/2". */
static bool range(const char *text, uint32_t *first, uint32_t *last,
                  uint32_t *step)
{
    *step = 1;
    if (!number(&text, first)) return false;
    *last = *first;
    if (*text == '\0') return true;
    if (strncmp(text, "..", 2) != 0) return false;
    text += 2;
    if (!number(&text, last) || *last < *first) return false;
    if (*text == '\0') return true;
    if (*text++ != '/') return false;
    return number(&text, step) && *step > 0 && *text == '\0';
}

static bool is_count(const sc_node *n)
{
    return n->kind == SC_N_SCALAR && n->text[0] &&
           strspn(n->text, "0123456789") == strlen(n->text);
}

static sc_status wrong(room *r, const sc_node *at)
{
    return sc_error(r->err, SC_EINPUT, SC_C_TYPE, at->pos, HOW,
                    "not a number or list of %ss", r->name);
}

/* ---- named units ---------------------------------------------------------- */

static sc_status add(room *r, uint32_t j, uint32_t unit, const sc_node *at,
                     uint32_t *list)
{
    if (unit >= r->n)
        return sc_error(r->err, SC_EINPUT, SC_C_RANGE, at->pos, NULL,
                        "%s %u is not on a machine of %u %ss", r->name, unit,
                        r->n, r->name);
    if (r->of[unit] == j)
        return sc_error(r->err, SC_EINPUT, SC_C_DUPLICATE, at->pos, NULL,
                        "%s %u is named twice", r->name, unit);
    if (r->of[unit] != FREE)
        return sc_error(r->err, SC_EINPUT, SC_C_CONFLICT, at->pos,
                        "parts of a machine do not overlap",
                        "%s %u already belongs to job %.40s", r->name, unit,
                        r->job[r->of[unit]].of->name);
    r->of[unit] = j;
    list[r->job[j].n_units++] = unit;
    return SC_OK;
}

static sc_status add_word(room *r, uint32_t j, const sc_node *at,
                          uint32_t *list)
{
    uint32_t first, last, step;
    if (at->kind != SC_N_SCALAR || !range(at->text, &first, &last, &step))
        return wrong(r, at);
    for (uint64_t u = first; u <= last; u += step)
        SC_TRY(add(r, j, (uint32_t)u, at, list));
    return SC_OK;
}

static sc_status name_units(room *r, uint32_t j, const sc_node *n)
{
    sc_jobs_part *job = &r->job[j];
    uint32_t *list = SC_NEW_N(r->a, uint32_t, r->n);
    if (!list) return sc_error_nomem(r->err);
    job->unit = list;
    if (n->kind == SC_N_SCALAR) {
        SC_TRY(add_word(r, j, n, list));
    } else if (n->kind == SC_N_SEQ && n->n > 0) {
        for (const sc_node *w = n->child; w; w = w->next)
            SC_TRY(add_word(r, j, w, list));
    } else {
        return wrong(r, n);
    }
    if (job->of->placement == SC_PLACE_PACKED) return SC_OK;
    return sc_error(r->err, SC_EINPUT, SC_C_CONFLICT, n->pos,
                    "give a number of nodes with a placement",
                    "the %ss of a scattered job are named", r->name);
}

/* ---- counted units -------------------------------------------------------- */

/* The unit that comes `i`-th in the order of a placement. */
static uint32_t in_order(const room *r, sc_placement how, uint64_t i)
{
    if (how == SC_PLACE_PACKED) return (uint32_t)i;
    uint64_t leaves = (r->n + r->leaf - 1) / r->leaf;
    uint64_t unit = i % leaves * r->leaf + i / leaves;
    return unit < r->n ? (uint32_t)unit : FREE;
}

static int by_number(const void *p, const void *q)
{
    const uint32_t *x = p, *y = q;
    return (*x > *y) - (*x < *y);
}

static sc_status count_units(room *r, uint32_t j, const sc_node *n)
{
    sc_jobs_part *job = &r->job[j];
    const char *text = n->text;
    uint32_t wanted, left = 0;
    if (!number(&text, &wanted) || wanted == 0) return wrong(r, n);
    for (uint32_t u = 0; u < r->n; u++) left += r->of[u] == FREE;
    if (wanted > left)
        return sc_error(r->err, SC_EINPUT, SC_C_RANGE, n->pos, NULL,
                        "%u %ss are more than the %u of %u that no other job "
                        "has",
                        wanted, r->name, left, r->n);
    uint32_t *list = SC_NEW_N(r->a, uint32_t, wanted);
    if (!list) return sc_error_nomem(r->err);
    uint64_t leaves = (r->n + r->leaf - 1) / r->leaf;
    for (uint64_t i = 0; i < leaves * r->leaf && job->n_units < wanted; i++) {
        uint32_t u = in_order(r, job->of->placement, i);
        if (u >= r->n || r->of[u] != FREE) continue;
        r->of[u] = j;
        list[job->n_units++] = u;
    }
    qsort(list, wanted, sizeof *list, by_number);
    job->unit = list;
    return SC_OK;
}

static sc_status count_leaves(room *r, sc_jobs_part *job)
{
    bool *seen = SC_NEW_N(r->a, bool, (size_t)r->n / r->leaf + 1);
    if (!seen) return sc_error_nomem(r->err);
    job->n_leaves = 0;
    for (uint32_t i = 0; i < job->n_units; i++) {
        bool *at = &seen[job->unit[i] / r->leaf];
        job->n_leaves += !*at;
        *at = true;
    }
    return SC_OK;
}

sc_status sc_jobs_place(sc_jobs_part *job, uint32_t n_jobs, const sc_hw *hw,
                        sc_arena *a, sc_err *err)
{
    room r = {.hw = hw,
              .name = sc_hw_unit_name(hw),
              .job = job,
              .n = sc_hw_units(hw),
              .leaf = sc_hw_leaf_units(hw),
              .a = a,
              .err = err};
    sc_status first = SC_OK, s;
    if (!(r.of = SC_NEW_N(a, uint32_t, r.n))) return sc_error_nomem(err);
    memset(r.of, 0xff, r.n * sizeof *r.of);
    /* Named units first: counted ones are among the others. */
    for (uint32_t counted = 0; counted < 2; counted++)
        for (uint32_t j = 0; j < n_jobs; j++) {
            const sc_node *n = job[j].of->nodes;
            if (!n && counted) continue;
            if (n && is_count(n) != (counted == 1)) continue;
            s = !n        ? sc_error(err, SC_EINPUT, SC_C_MISSING,
                                     job[j].of->node->key_pos, HOW,
                                     "job %.40s has no nodes", job[j].of->name)
                : counted ? count_units(&r, j, n)
                          : name_units(&r, j, n);
            if (first == SC_OK) first = s;
        }
    for (uint32_t j = 0; j < n_jobs && first == SC_OK; j++)
        first = count_leaves(&r, &job[j]);
    return first;
}
