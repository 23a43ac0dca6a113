/* SPDX-License-Identifier: Apache-2.0 */
/* jobs_expanded.c - what expanded memory keeps, as axes of a search
 * (docs/memory.md). */
#include "plan/plan_strategy.h"
#include "search/jobs_axes.h"

#include <string.h>

static bool is_said(const sc_search_option *given, uint32_t n, const sc_job *j)
{
    for (const sc_key *k = sc_job_keys; k->name; k++)
        if (sc_job_keeps_away(k) && sc_job_has(j, k)) return true;
    for (uint32_t i = 0; i < n; i++)
        if (sc_job_keeps_away(given[i].key)) return true;
    return false;
}

bool search_expands(const sc_job *job, const sc_inputs *in,
                    const sc_search_option *given, uint32_t n)
{
    const sc_expanded *x = &in->hw->expanded;
    return x->bytes > 0 && !x->spread && !in->model->net &&
           !is_said(given, n, job);
}

/* Expanded memory keeps none or all of a kind of data. */
static sc_search_option kind_of(const sc_key *k)
{
    static const int64_t two[] = {0, 1},
                         tiers[] = {SC_TIER_DEVICE, SC_TIER_EXPANDED};
    static const double fractions[] = {0, 1};
    bool tier = k->type == SC_T_ENUM;
    return (sc_search_option){.key = k,
                              .axis = {k->name, 2, tier ? tiers : two},
                              .quantity = tier ? NULL : fractions};
}

uint32_t search_expanded_axes(const sc_job *job, sc_search_option *out)
{
    uint32_t n = 0;
    for (const sc_key *k = sc_job_keys; k->name; k++)
        if (search_moves(job, k)) out[n++] = kind_of(k);
    return n;
}
