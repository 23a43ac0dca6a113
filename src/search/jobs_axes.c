/* SPDX-License-Identifier: Apache-2.0 */
/* jobs_axes.c - the order of the axes of a search: what needs prices of its own
 * first, what changes only the end of a step last. */
#include "search/jobs_axes.h"

#include <string.h>

static void append(search_builder *b, const sc_search_option *o)
{
    for (uint32_t i = 0; i < N_OPEN; i++)
        if (strcmp(search_open_names[i], o->key->name) == 0) b->at[i] = b->n;
    b->option[b->n++] = *o;
}

static const sc_search_option *given_of(const sc_search_option *given,
                                        uint32_t n, const char *name)
{
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(given[i].key->name, name) == 0) return &given[i];
    return NULL;
}

static const sc_search_option *option_of(const search_builder *b,
                                         const sc_search_option *given,
                                         uint32_t n, uint32_t which)
{
    const sc_search_option *own = given_of(given, n, search_open_names[which]);
    return own ? own : &b->own[which];
}

/* Combinations of values that share the passes of their steps. */
#define ENDS_MOST 1024

static bool have_ends(const search_builder *b, const sc_search_option *given,
                      uint32_t n)
{
    if (b->net || b->files) return false;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < given[i].axis.n; k++) {
            sc_job job = *b->job;
            sc_search_option_set(&given[i], k, &job);
            if (!sc_points_have_ends(&job, b->run->hw)) return false;
        }
    return sc_points_have_ends(b->job, b->run->hw);
}

/* Axes that change only the end of a step come last, because points that differ
 * only in them share everything else: bits by index of `given`, and the open
 * axis of ZeRO. */
static uint64_t ends_of(const search_builder *b, const sc_search_option *given,
                        uint32_t n, bool *zero)
{
    const sc_search_option *z = option_of(b, given, n, ZERO);
    uint64_t bits = 0, all = 1;
    *zero = false;
    if (!have_ends(b, given, n)) return 0;
    for (uint32_t i = 0; i < n && i < 64; i++) {
        const sc_search_option *o = &given[i];
        if (search_is_open(o->key->name) || o->axis.n < 2 ||
            !sc_job_ends(o->key) || all * o->axis.n > ENDS_MOST)
            continue;
        bits |= (uint64_t)1 << i;
        all *= o->axis.n;
    }
    *zero = sc_points_shares(b->run->sw, search_open_names[ZERO]) &&
            z->axis.n > 1 && bits != 0 && all * z->axis.n <= ENDS_MOST;
    for (uint32_t i = 0; i < z->axis.n; i++)
        *zero = *zero && z->axis.value[i] >= 0 && z->axis.value[i] <= 1;
    return bits;
}

/* Axes that need another sc_points first, then the open ones, then others.
 * Few prices are shared by points of different tp, cp or ep, so these have
 * their own sc_points too, which bounds memory. */
void search_order_axes(search_builder *b, const sc_search_option *given,
                       uint32_t n, sc_search_jobs *out)
{
    const sc_software *sw = b->run->sw;
    bool zero_shares = sc_points_shares(sw, search_open_names[ZERO]);
    uint64_t ends = ends_of(b, given, n, &out->zero_ends);
    if (b->files) append(b, b->files);
    for (uint32_t i = 0; i < n; i++)
        if (!sc_points_shares(sw, given[i].key->name) &&
            !search_is_open(given[i].key->name) && !given[i].job &&
            !(i < 64 && ends >> i & 1))
            append(b, &given[i]);
    if (!zero_shares) append(b, option_of(b, given, n, ZERO));
    for (uint32_t i = 0; i < N_OPEN; i++) {
        if (i == ZERO && (!zero_shares || out->zero_ends)) continue;
        append(b, option_of(b, given, n, i));
        if (i == EP) out->n_own = b->n;
        if (i == DP) out->n_mesh = b->n;
    }
    for (uint32_t i = 0; i < n; i++)
        if (sc_points_shares(sw, given[i].key->name) &&
            !search_is_open(given[i].key->name))
            append(b, &given[i]);
    out->n_passes = b->n;
    if (out->zero_ends) append(b, option_of(b, given, n, ZERO));
    for (uint32_t i = 0; i < n; i++)
        if (i < 64 && ends >> i & 1) append(b, &given[i]);
}
