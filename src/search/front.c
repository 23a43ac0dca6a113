/* SPDX-License-Identifier: Apache-2.0 */
/* front.c - the front of configurations and of machines. */
#include "search/search_front.h"

#include <math.h>
#include <stdlib.h>

const char *const sc_search_dim_names[] = {
    "time", "memory", "devices", "money", "power", "capital", NULL};

/* A search has one number of devices, so its own front of score and memory has
 * all points that may be on the joint one. */
static sc_search_member member(const sc_search_machine *s,
                               const sc_search_row *row, sc_search_goal goal,
                               const sc_machine_bill *bill)
{
    double n = s->in.hw->n_devices, step_s = row->point.step_s;
    bool usd = goal == SC_GOAL_COST || goal == SC_GOAL_TOKENS_PER_USD;
    double time = usd ? step_s : row->score;
    double money = usd ? row->score : step_s * n;
    return (sc_search_member){.jobs = &s->jobs,
                              .row = row,
                              .at = {time, row->point.peak, n, money,
                                     isnan(bill->watts) ? 0 : bill->watts,
                                     isnan(bill->usd) ? 0 : bill->usd}};
}

static int order(const void *a, const void *b)
{
    const sc_search_member *x = a, *y = b;
    for (int d = 0; d < (int)SC_N_DIMS; d++)
        if (x->at[d] != y->at[d]) return x->at[d] < y->at[d] ? -1 : 1;
    return 0;
}

bool sc_search_covers(const double *x, const double *y, uint32_t dims)
{
    for (uint32_t d = 0; d < SC_N_DIMS; d++)
        if (dims >> d & 1 && x[d] > y[d]) return false;
    return true;
}

/* Of rows that are equal in `dims` the first in the order is kept. */
static uint32_t thin(sc_search_member *m, uint32_t n, uint32_t dims)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n; i++) {
        bool covered = false;
        for (uint32_t k = 0; k < n && !covered; k++)
            covered = k != i && sc_search_covers(m[k].at, m[i].at, dims) &&
                      (k < i || !sc_search_covers(m[i].at, m[k].at, dims));
        if (!covered) m[n + kept++] = m[i];
    }
    return kept;
}

sc_status sc_search_front_of(const sc_search_member *all, uint32_t n_all,
                             uint32_t dims, sc_arena *a, sc_search_member **out,
                             uint32_t *n, sc_err *err)
{
    sc_search_member *m = SC_NEW_N(a, sc_search_member, 2 * (size_t)n_all + 1);
    if (!m) return sc_error_nomem(err);
    for (uint32_t i = 0; i < n_all; i++) m[i] = all[i];
    qsort(m, n_all, sizeof *m, order);
    *n = thin(m, n_all, dims);
    *out = &m[n_all];
    return SC_OK;
}

sc_status sc_search_front(const sc_search_machine *const *size,
                          uint32_t n_sizes, sc_search_goal goal, uint32_t dims,
                          sc_arena *a, sc_search_member **out, uint32_t *n,
                          sc_err *err)
{
    uint32_t all = 0;
    bool bills = dims >> SC_DIM_POWER & 1 || dims >> SC_DIM_CAPITAL & 1;
    for (uint32_t i = 0; i < n_sizes; i++) all += size[i]->found.n_front;
    sc_search_member *m = SC_NEW_N(a, sc_search_member, (size_t)all + 1);
    if (!m) return sc_error_nomem(err);
    all = 0;
    for (uint32_t i = 0; i < n_sizes; i++) {
        const sc_search_machine *s = size[i];
        sc_machine_bill bill = {0};
        if (bills)
            SC_TRY(sc_machine_bill_of(&s->job, s->in.hw, s->in.cost, a, &bill,
                                      err));
        for (uint32_t k = 0; k < s->found.n_front; k++)
            m[all++] = member(s, &s->found.front[k], goal, &bill);
    }
    return sc_search_front_of(m, all, dims, a, out, n, err);
}
