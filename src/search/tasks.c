/* SPDX-License-Identifier: Apache-2.0 */
/* tasks.c - the tasks of a search: all points of one mesh are one. */
#include "search/run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Most tasks; and points beyond which a search needs a limit of time. */
enum { TASKS_MOST = 1 << 18 };

#define POINTS_MOST 100000000000

/* With a limit of time, tasks beyond the most are not reached. */
static bool enough(const search *x)
{
    return x->n_tasks == TASKS_MOST && x->o->stop;
}

static sc_status list_tasks(search *x, uint32_t *digit, uint32_t i, sc_err *err)
{
    const sc_search_jobs *jobs = x->jobs;
    uint32_t n = jobs->n_mesh;
    if (i < n) {
        for (digit[i] = 0; digit[i] < jobs->option[i].axis.n && !enough(x);
             digit[i]++)
            if (sc_search_space_legal(jobs->space, digit, i))
                SC_TRY(list_tasks(x, digit, i + 1, err));
        return SC_OK;
    }
    if (sc_search_space_below(jobs->space, digit, n) == 0) return SC_OK;
    if (x->n_tasks == TASKS_MOST)
        return sc_error(err, SC_EINPUT, SC_C_TOO_BIG, sc_pos_none(),
                        "give fewer values of axes, or --budget 10s",
                        "the space has more than %d meshes", TASKS_MOST);
    uint32_t *all = sc_grow(x->a, x->digits, x->n_tasks, &x->cap_tasks, 256,
                            n * sizeof *all);
    if (!all) return sc_error_nomem(err);
    x->digits = all;
    memcpy(&all[(size_t)x->n_tasks++ * n], digit, n * sizeof *all);
    return SC_OK;
}

static sc_status check_size(const search *x, sc_err *err)
{
    uint64_t n = sc_search_space_points(x->jobs->space);
    if (x->o->stop || n <= POINTS_MOST) return SC_OK;
    return sc_error(err, SC_EINPUT, SC_C_TOO_BIG, sc_pos_none(),
                    "give fewer values of axes, or --budget 10s",
                    "the space has %s%.3g points",
                    n == SC_SEARCH_MOST ? "more than " : "", (double)n);
}

/* ---- order ---------------------------------------------------------------- */

/* Tasks whose best points are likely to be fast come first, because bounds then
 * exclude more. Only how long a search takes depends on it. */
typedef struct place {
    double group; /* the least estimate of tasks with its first digits */
    uint32_t at;
} place;

static int by_estimate(const void *a, const void *b)
{
    const place *x = a, *y = b;
    if (x->group != y->group) return x->group < y->group ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

/* The value of an axis in a task; 1: there is no such axis. */
static double degree(const search *x, const uint32_t *digit, const char *name)
{
    for (uint32_t i = 0; i < x->jobs->n_mesh; i++) {
        const sc_search_option *o = &x->jobs->option[i];
        if (strcmp(o->key->name, name) == 0)
            return fmax(1, (double)o->axis.value[digit[i]]);
    }
    return 1;
}

/* How much longer than without division a step takes by its bubble, and by
 * exchanges of activations, which are slow between nodes. */
static double estimate(const search *x, const uint32_t *digit)
{
    double node = x->jobs->in->hw->node_size, pp = degree(x, digit, "pp");
    double inner = degree(x, digit, "tp") * degree(x, digit, "cp");
    double passes = fmax(1, (double)sc_points_run(x->jobs->points)->gbs /
                                degree(x, digit, "dp"));
    return (1 + (pp - 1) / passes) * (1 + 0.1 * log2(inner)) *
           fmax(1, inner / node);
}

static sc_status order_tasks(search *x, sc_err *err)
{
    uint32_t n = x->jobs->n_mesh, own = x->jobs->n_own;
    place *p = SC_NEW_N(x->a, place, x->n_tasks);
    uint32_t *sorted = SC_NEW_N(x->a, uint32_t, (size_t)x->n_tasks * n);
    if (!p || !sorted) return sc_error_nomem(err);
    for (uint32_t first = 0, end; first < x->n_tasks; first = end) {
        const uint32_t *d = &x->digits[(size_t)first * n];
        double group = INFINITY;
        for (end = first; end < x->n_tasks; end++) {
            const uint32_t *e = &x->digits[(size_t)end * n];
            if (memcmp(d, e, own * sizeof *d) != 0) break;
            group = fmin(group, estimate(x, e));
        }
        for (uint32_t i = first; i < end; i++) p[i] = (place){group, i};
    }
    qsort(p, x->n_tasks, sizeof *p, by_estimate);
    for (uint32_t i = 0; i < x->n_tasks; i++)
        memcpy(&sorted[(size_t)i * n], &x->digits[(size_t)p[i].at * n],
               n * sizeof *sorted);
    x->digits = sorted;
    return SC_OK;
}

/* Parts get every n-th task, so that each has some of the promising ones. */
static void keep_part(search *x)
{
    size_t n = x->jobs->n_mesh;
    uint32_t kept = 0;
    if (x->o->shards < 2) return;
    for (uint32_t i = x->o->shard - 1; i < x->n_tasks; i += x->o->shards)
        memmove(&x->digits[kept++ * n], &x->digits[i * n],
                n * sizeof *x->digits);
    x->n_tasks = kept;
}

sc_status search_tasks(search *x, sc_err *err)
{
    uint32_t digit[SC_SEARCH_AXES];
    SC_TRY(check_size(x, err));
    SC_TRY(list_tasks(x, digit, 0, err));
    SC_TRY(order_tasks(x, err));
    keep_part(x);
    return SC_OK;
}
