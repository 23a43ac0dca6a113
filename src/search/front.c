/* SPDX-License-Identifier: Apache-2.0 */
/* front.c - the front of searches on several numbers of devices. */
#include "search/search_sizes.h"

#include <stdlib.h>

const char *const sc_search_dim_names[] = {"time", "memory", "devices", "money",
                                           NULL};

/* A search has one number of devices, so its own front of score and memory has
 * all points that may be on the joint one. */
static sc_search_member member(const sc_search_machine *s,
                               const sc_search_row *row, sc_search_goal goal)
{
    double n = s->in.hw->n_devices, step_s = row->point.step_s;
    bool usd = goal == SC_GOAL_COST || goal == SC_GOAL_TOKENS_PER_USD;
    double time = usd ? step_s : row->score;
    double money = usd ? row->score : step_s * n;
    return (sc_search_member){&s->jobs, row, {time, row->point.peak, n, money}};
}

static int order(const void *a, const void *b)
{
    const sc_search_member *x = a, *y = b;
    for (int d = 0; d < (int)SC_N_DIMS; d++)
        if (x->at[d] != y->at[d]) return x->at[d] < y->at[d] ? -1 : 1;
    return 0;
}

static bool covers(const sc_search_member *x, const sc_search_member *y,
                   uint32_t dims)
{
    for (uint32_t d = 0; d < SC_N_DIMS; d++)
        if (dims >> d & 1 && x->at[d] > y->at[d]) return false;
    return true;
}

/* Of rows that are equal in `dims` the first in the order is kept. */
static uint32_t thin(sc_search_member *m, uint32_t n, uint32_t dims)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n; i++) {
        bool covered = false;
        for (uint32_t k = 0; k < n && !covered; k++)
            covered = k != i && covers(&m[k], &m[i], dims) &&
                      (k < i || !covers(&m[i], &m[k], dims));
        if (!covered) m[n + kept++] = m[i];
    }
    return kept;
}

sc_status sc_search_front(const sc_search_machine *const *size,
                          uint32_t n_sizes, sc_search_goal goal, uint32_t dims,
                          sc_arena *a, sc_search_member **out, uint32_t *n,
                          sc_err *err)
{
    uint32_t all = 0;
    for (uint32_t i = 0; i < n_sizes; i++) all += size[i]->found.n_front;
    sc_search_member *m = SC_NEW_N(a, sc_search_member, 2 * (size_t)all + 1);
    if (!m) return sc_error_nomem(err);
    all = 0;
    for (uint32_t i = 0; i < n_sizes; i++)
        for (uint32_t k = 0; k < size[i]->found.n_front; k++)
            m[all++] = member(size[i], &size[i]->found.front[k], goal);
    qsort(m, all, sizeof *m, order);
    *n = thin(m, all, dims);
    *out = &m[all];
    return SC_OK;
}
