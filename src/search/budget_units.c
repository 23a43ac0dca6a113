/* SPDX-License-Identifier: Apache-2.0 */
/* budget_units.c - numbers of units of machines that a budget allows. */
#include "search/budget.h"

#include <stdlib.h>

/* Largest numbers of units that are tried for one over which the job can be
 * divided, and the largest of all. */
enum { TRIED = 256, MOST_UNITS = 1 << 20 };

typedef struct units {
    sc_search_question q;
    const sc_machine_axis *axis;
    uint32_t n;
    sc_arena *a;  /* of what is kept */
    sc_arena own; /* of one machine */
    sc_err *err;
    uint64_t batch; /* samples of a step */
    uint32_t n_found, cap_found;
    uint64_t *found;
    uint32_t n_largest, cap_largest;
    sc_search_largest *largest;
} units;

static sc_status add(units *x, uint64_t n)
{
    for (uint32_t i = 0; i < x->n_found; i++)
        if (x->found[i] == n) return SC_OK;
    uint64_t *all =
        sc_grow(x->a, x->found, x->n_found, &x->cap_found, 64, sizeof *all);
    if (!all) return sc_error_nomem(x->err);
    x->found = all;
    all[x->n_found++] = n;
    return SC_OK;
}

/* The job on a machine with so many units. */
static sc_status resized(units *x, const char *spec, uint64_t n, sc_job *out)
{
    *out = *x->q.job;
    sc_arena_reset(&x->own);
    out->cluster = sc_cluster_resized(spec, n, &x->own);
    return out->cluster ? SC_OK : sc_error_nomem(x->err);
}

static sc_status allowed(units *x, const char *spec, uint64_t n, bool *yes)
{
    sc_job job;
    const sc_hw *hw;
    sc_err why;
    search_over over;
    sc_err_init(&why);
    SC_TRY(resized(x, spec, n, &job));
    sc_status s = sc_job_machine(&job, &x->own, &hw, &why);
    *yes = false;
    if (s == SC_EINPUT) return SC_OK;
    if (s != SC_OK) return sc_error_nomem(x->err);
    SC_TRY(search_budget_over(&x->q, &job, &x->own, &over, x->err));
    *yes = !over.is;
    return SC_OK;
}

/* The largest number within the budget: power and money rise with it. */
static sc_status most_of(units *x, const char *spec, uint64_t *out)
{
    uint64_t low = 0, high = 1;
    sc_status s = SC_OK;
    bool yes = true;
    while (yes && high <= MOST_UNITS) {
        SC_TRY(allowed(x, spec, high, &yes));
        if (yes) low = high;
        if (yes) high *= 2;
    }
    low++; /* the first that is not allowed is from here to `high` */
    SC_FIRST(low, high, mid,
             s != SC_OK || (s = allowed(x, spec, mid, &yes)) != SC_OK || !yes);
    SC_TRY(s);
    low--;
    *out = low;
    return SC_OK;
}

/* The largest number up to `most` over which the job can be divided. */
static sc_status divides(units *x, const char *spec, uint64_t most,
                         uint64_t *out)
{
    *out = 0;
    for (uint64_t n = most; n > 0 && most - n < TRIED; n--) {
        sc_job job;
        sc_search_machine m;
        bool legal;
        sc_err why;
        SC_TRY(resized(x, spec, n, &job));
        SC_TRY(sc_search_machine_open(&x->q, &job, &x->own, &m, &legal, &why,
                                      x->err));
        if (!legal) continue;
        *out = n;
        return SC_OK;
    }
    return SC_OK;
}

/* Devices of one unit; 0: one can't be built. */
static sc_status devices_of(units *x, const char *spec, uint64_t *out)
{
    sc_job job;
    const sc_hw *hw;
    sc_err why;
    sc_err_init(&why);
    SC_TRY(resized(x, spec, 1, &job));
    *out = 0;
    if (sc_job_machine(&job, &x->own, &hw, &why) == SC_OK) *out = hw->n_devices;
    return SC_OK;
}

static sc_status add_ladder(units *x, const char *spec, sc_search_largest *l)
{
    uint64_t most, per;
    SC_TRY(most_of(x, spec, &most));
    *l = (sc_search_largest){.spec = sc_cluster_resized(spec, most, x->a)};
    if (!l->spec) return sc_error_nomem(x->err);
    SC_TRY(devices_of(x, spec, &per));
    SC_TRY(divides(x, spec, most, &l->divides));
    l->units = most;
    if (l->divides > 0) SC_TRY(add(x, l->divides));
    for (uint64_t n = 1; n <= most; n *= 2) SC_TRY(add(x, n));
    for (uint64_t n = 1; per > 0 && n <= most && n <= x->batch / per; n++)
        if (x->batch % (n * per) == 0) SC_TRY(add(x, n));
    return SC_OK;
}

static sc_status spec_of(units *x, const uint32_t *digit, const char **out)
{
    sc_job job = *x->q.job;
    SC_TRY(sc_machine_set(x->axis, x->n, digit, x->a, &job, x->err));
    *out = job.cluster;
    if (sc_cluster_units(job.cluster) > 0) return SC_OK;
    return sc_error(
        x->err, SC_EINPUT, SC_C_UNSUPPORTED, sc_pos_file("--cluster-budget"),
        "give a cluster with a number: dgx-h100:64",
        "the number of nodes of %.60s can't be changed", job.cluster);
}

/* The least machine of a combination allows most units, the best one fewest. */
static sc_status add_combination(units *x, uint32_t *digit)
{
    sc_search_largest least, best;
    bool ordered = false;
    const char *spec;
    for (uint32_t i = 0; i < x->n; i++) {
        ordered = ordered || x->axis[i].ordered;
        if (x->axis[i].ordered) digit[i] = 0;
    }
    SC_TRY(spec_of(x, digit, &spec));
    SC_TRY(add_ladder(x, spec, &least));
    sc_search_largest *all = sc_grow(x->a, x->largest, x->n_largest,
                                     &x->cap_largest, 16, sizeof *all);
    if (!all) return sc_error_nomem(x->err);
    x->largest = all;
    all[x->n_largest++] = least;
    if (!ordered) return SC_OK;
    for (uint32_t i = 0; i < x->n; i++)
        if (x->axis[i].ordered) digit[i] = x->axis[i].n - 1;
    SC_TRY(spec_of(x, digit, &spec));
    return add_ladder(x, spec, &best);
}

static sc_status add_all(units *x, uint32_t *digit, uint32_t i)
{
    if (i == x->n) return add_combination(x, digit);
    uint32_t n = x->axis[i].ordered ? 1 : x->axis[i].n;
    for (digit[i] = 0; digit[i] < n; digit[i]++)
        SC_TRY(add_all(x, digit, i + 1));
    return SC_OK;
}

static int rising(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static sc_status as_axis(units *x, sc_machine_axis *out)
{
    const char *text = "";
    if (x->n_found == 0)
        return sc_error(x->err, SC_EINPUT, SC_C_CONFLICT,
                        sc_pos_file("--cluster-budget"),
                        "give a larger budget, or other machines",
                        "the budget does not allow one unit of any machine");
    qsort(x->found, x->n_found, sizeof *x->found, rising);
    for (uint32_t i = 0; i < x->n_found && text; i++)
        text = sc_sprintf(x->a, "%s%s%llu", text, i ? "," : "",
                          (unsigned long long)x->found[i]);
    if (!text) return sc_error_nomem(x->err);
    const sc_node values =
        sc_search_word(text, sc_pos_file("--cluster-budget"));
    return sc_machine_axis_read("nodes", &values, x->a, out, x->err);
}

sc_status sc_search_units(const sc_search_question *q,
                          const sc_machine_axis *axis, uint32_t n, sc_arena *a,
                          sc_machine_axis *out,
                          const sc_search_largest **largest,
                          uint32_t *n_largest, sc_err *err)
{
    uint32_t digit[SC_MACHINE_AXES];
    sc_job own = *q->job;
    sc_points *points;
    units x = {.q = *q, .axis = axis, .n = n, .a = a, .err = err};
    SC_TRY(sc_search_jobs_batch(q->job, q->in, a, &own, &points, err));
    x.q.job = &own;
    const sc_run *run = sc_points_run(points);
    x.batch = (uint64_t)(sc_search_tokens(run) / (double)run->seq + 0.5);
    sc_arena_init(&x.own, a->limit);
    sc_status s = add_all(&x, digit, 0);
    sc_arena_free(&x.own);
    if (s == SC_OK) s = as_axis(&x, out);
    if (s != SC_OK) return s;
    *largest = x.largest;
    *n_largest = x.n_largest;
    return SC_OK;
}
