/* SPDX-License-Identifier: Apache-2.0 */
/* larger.c - what is left where no other choice makes a job fit: more machines,
 * or shorter sequences. */
#include "predict/internal.h"

#include <stdlib.h>
#include <string.h>

enum { LARGEST = 256, SHORTEST = 64 };

/* Where the number stands that says how many units of a machine there are:
 * behind the colon of "dgx-h100:4", or in the last dimension of a one-line
 * machine.  Its length, 0: there is none. */
static size_t number_of_units(const char *spec, const char **at)
{
    static const char digits[] = "0123456789";
    const char *end = strpbrk(spec, ";");
    size_t len = end ? (size_t)(end - spec) : strlen(spec);
    const char *dim = NULL;
    for (const char *s = spec; s < spec + len; s++) {
        if (strncmp(s, " x ", 3) == 0) dim = s + 3;
        if (*s == '@' && !dim) dim = spec;
    }
    if (dim) {
        *at = dim + strcspn(dim, digits);
        return strspn(*at, digits);
    }
    if (strpbrk(spec, " /;") || strstr(spec, ".yml") || strstr(spec, ".xml"))
        return 0; /* a file */
    *at = strrchr(spec, ':');
    if (!*at) return 0;
    ++*at;
    return strlen(*at);
}

/* The machine with `k` times as many units; NULL: no name says so. */
static const char *enlarged(const char *spec, uint64_t k, sc_arena *a)
{
    const char *at = NULL;
    size_t n = number_of_units(spec, &at);
    if (n == 0 && (strpbrk(spec, "@ /;.") || at)) return NULL;
    if (n == 0) /* one unit, not said */
        return sc_sprintf(a, "%s:%llu", spec, (unsigned long long)k);
    unsigned long long units = strtoull(at, NULL, 10);
    return sc_sprintf(a, "%.*s%llu%s", (int)(at - spec), spec, units * k,
                      at + n);
}

/* What was inferred may change with the cluster, the batch may not. */
static bool fits_on(const sc_job *job, const sc_hw *hw, const sc_prediction *p,
                    sc_arena *a, sc_job *next, predict_eval *e)
{
    sc_job open = *next;
    open.gbs = (int64_t)p->run.gbs;
    open.dp = 0;
    open.engine = SC_ENGINE_FAST;
    if (!predict_variant(&open, hw, p, a, e) || !e->fits) return false;
    if (job->dp) next->dp = sc_run_dp(&e->run);
    if (predict_variant(next, hw, p, a, e) && e->fits &&
        e->run.gbs == p->run.gbs)
        return true;
    next->gbs = (int64_t)p->run.gbs;
    return predict_variant(next, hw, p, a, e) && e->fits;
}

static sc_status more_machines(const sc_job *job, sc_arena *a, sc_prediction *p,
                               sc_err *err)
{
    const char *spec = job->cluster ? job->cluster : p->run.hw->name;
    for (uint64_t k = 2; k <= LARGEST; k *= 2) {
        const sc_hw *hw = NULL;
        predict_eval e;
        sc_err quiet;
        sc_job next = *job;
        sc_err_init(&quiet);
        next.cluster = enlarged(spec, k, a);
        if (!next.cluster ||
            sc_hw_build(next.cluster, sc_pos_none(), a, &hw, &quiet) != SC_OK)
            return SC_OK;
        if (fits_on(job, hw, p, a, &next, &e))
            return predict_keep(job, &next, &e, a, p, err);
    }
    return SC_OK;
}

sc_status predict_larger(const sc_job *job, sc_arena *a, sc_prediction *p,
                         sc_err *err)
{
    SC_TRY(more_machines(job, a, p, err));
    sc_job next = *job;
    for (uint64_t seq = p->run.seq / 2; seq >= SHORTEST; seq /= 2) {
        predict_eval e;
        if (p->n_suggestions) break;
        next.seq = (int64_t)seq;
        next.gbs = (int64_t)p->run.gbs;
        if (predict_variant(&next, p->run.hw, p, a, &e) && e.fits)
            return predict_keep(job, &next, &e, a, p, err);
    }
    return SC_OK;
}
