/* SPDX-License-Identifier: Apache-2.0 */
/* larger.c - suggests more machines or shorter sequences if no other choice
 * makes a job fit. */
#include "predict/internal.h"

#include <stdlib.h>
#include <string.h>

enum { SHORTEST = 64 };

/* Changes one option so that less memory is needed, unless the run already
 * has it. The rest is inferred. */
static bool spare(sc_job *j, const sc_run *r, uint32_t i)
{
    sc_job was = *j;
    int64_t tp = r->size[SC_AX_TP], pp = r->size[SC_AX_PP];
    int64_t node = r->hw->node_size;
    switch (i) {
    case 0:
        if (r->forward_only || r->recompute == SC_RC_FULL) return false;
        j->recompute = SC_RC_FULL;
        break;
    case 1:
        if (r->mbs == 1) return false;
        j->mbs = 1;
        j->accumulation = 0;
        break;
    case 2:
        if (r->zero == 3 || sc_run_dp(r) == 1) return false;
        j->zero = 3;
        break;
    case 3: j->tp = 2 * tp; break;
    case 4:
        if (tp == node || 2 * tp == node) return false;
        j->tp = node;
        break;
    case 5: j->pp = 2 * pp; break;
    case 6: j->pp = 4 * pp; break;
    case 7:
        if (r->sp || tp == 1) return false;
        j->sp = true;
        break;
    case 8:
        if (pp == 1 || (r->schedule == SC_SCH_1F1B && r->vpp == 1))
            return false;
        j->schedule = SC_SCH_1F1B;
        j->schedule_file = NULL;
        j->vpp = j->vpp ? 1 : 0;
        break;
    default: return false;
    }
    if (j->zero == 3) j->fsdp = was.fsdp;
    if (j->dp && (i == 3 || i == 4)) j->dp = j->dp * tp / j->tp;
    if (j->dp && (i == 5 || i == 6)) j->dp = j->dp * pp / j->pp;
    return (was.dp == 0) == (j->dp == 0);
}

/* Changes the one option that saves most memory; false: none saves any. */
static bool save_most(const sc_prediction *p, predict_memo *memo, sc_job *job,
                      predict_eval *now)
{
    enum { SPARE = 9 };

    const sc_job from = *job;
    const predict_eval before = *now;
    for (uint32_t i = 0; i < SPARE; i++) {
        predict_eval e;
        sc_job one = from;
        if (!spare(&one, &before.run, i) ||
            !predict_guess(&one, p, 0, memo, &e) || !(e.peak < now->peak))
            continue;
        *now = e;
        *job = one;
    }
    return now->peak < before.peak;
}

/* Changes as many options as needed, each time the one that saves most. */
bool predict_smallest(const sc_prediction *p, predict_memo *memo, sc_job *inout,
                      predict_eval *out)
{
    enum { STEPS = 4 };

    sc_job job = *inout;
    predict_eval now;
    if (!predict_guess(&job, p, 0, memo, &now)) return false;
    for (int step = 0; step < STEPS && !now.fits; step++) {
        if (!save_most(p, memo, &job, &now)) break;
        /* the operator network may need more memory */
        if (now.fits && !predict_variant(&job, p, memo, &now)) return false;
    }
    *inout = job;
    return predict_variant(&job, p, memo, out);
}

/* Finds the number of a machine's units: after the colon of "dgx-h100:4", or
 * in the last dimension of a one-line machine. Returns its length, or 0: `*at` is
 * where a name without a number would have it, or NULL: there can be none. */
static size_t number_of_units(const char *spec, const char **at)
{
    static const char digits[] = "0123456789";
    size_t len = strcspn(spec, ";");
    const char *dim = NULL, *colon = NULL;
    for (const char *s = spec; s < spec + len; s++) {
        if (strncmp(s, " x ", 3) == 0) dim = s + 3;
        if (*s == '@' && !dim) dim = spec;
        if (*s == ':') colon = s;
    }
    *at = NULL;
    if (dim) {
        *at = dim + strcspn(dim, digits);
        return strspn(*at, digits);
    }
    if (sc_hw_is_file(spec)) return 0;
    *at = colon ? colon + 1 : spec + len;
    return strspn(*at, digits);
}

uint64_t sc_cluster_units(const char *spec)
{
    const char *at;
    size_t n = number_of_units(spec, &at);
    if (n == 0) return at ? 1 : 0;
    return strtoull(at, NULL, 10);
}

const char *sc_cluster_resized(const char *spec, uint64_t units, sc_arena *a)
{
    const char *at;
    size_t n = number_of_units(spec, &at);
    unsigned long long u = units;
    if (!at) return sc_sprintf(a, "%s:%llu", spec, u);
    return sc_sprintf(a, "%.*s%s%llu%s", (int)(at - spec), spec,
                      n == 0 && at > spec && at[-1] != ':' ? ":" : "", u,
                      at + n);
}

/* The next size: a power of two, or `first` times one, whichever is smaller. */
static uint64_t next_size(uint64_t now, uint64_t first)
{
    uint64_t power = 1, doubled = first;
    while (power <= now) power *= 2;
    while (doubled <= now) doubled *= 2;
    return power < doubled ? power : doubled;
}

double predict_least_bytes(const sc_job *job, const sc_run *r)
{
    double weight = sc_value_bytes(r->precision), state = r->sw->optim_bytes;
    if (job->tree || job->optimizer) return 0;
    if (weight >= 4) state = 8; /* two moments, no master weights */
    if (r->forward_only || r->optim_tier >= SC_TIER_CPU) state = 0;
    if (sc_run_offload_tier(r) >= SC_TIER_CPU) weight *= 1 - r->offload_weights;
    return weight * (double)(r->model->params + r->model->mtp_params) +
           state * (double)r->model->trained_params;
}

bool predict_too_small(const sc_job *job, const sc_run *r, const sc_hw *hw)
{
    double room = 0;
    for (uint32_t i = 0; i < hw->n_devices; i++)
        room += (double)sc_hw_device_at(hw, i)->mem_bytes + hw->expanded.bytes;
    return predict_least_bytes(job, r) > room;
}

/* Whether the job fits; the operator network is run only if segments do not
 * decide. */
static bool fits(const sc_job *job, const sc_prediction *p, predict_memo *memo,
                 predict_eval *e)
{
    double most = PREDICT_TOO_FULL * predict_most_full(p->run.cost);
    if (!predict_guess(job, p, 0, memo, e) || e->full > most) return false;
    return predict_variant(job, p, memo, e) && e->fits;
}

/* Inferred choices may change with the cluster, but the batch may not. */
static bool fits_on(const sc_job *job, const sc_prediction *p, bool change,
                    predict_memo *memo, sc_job *next, predict_eval *e)
{
    sc_job open = *next;
    predict_eval again;
    open.gbs = (int64_t)p->run.gbs;
    open.dp = 0;
    if (!change && !fits(&open, p, memo, e)) return false;
    if (change && (!predict_smallest(p, memo, &open, e) || !e->fits))
        return false;
    if (change) *next = open;
    next->gbs = job->gbs;
    next->dp = job->dp ? sc_run_dp(&e->run) : 0;
    if (job->gbs && !job->dp) return true; /* given by the user */
    if (predict_guess(next, p, 0, memo, &again) &&
        predict_same_run(&again.run, &e->run))
        return true;
    if (predict_variant(next, p, memo, e) && e->fits &&
        e->run.gbs == p->run.gbs)
        return true;
    next->gbs = (int64_t)p->run.gbs;
    return predict_variant(next, p, memo, e) && e->fits;
}

static sc_status more_machines(const sc_job *job, uint32_t over, uint32_t most,
                               bool change, predict_memo *memo, sc_arena *a,
                               sc_prediction *p, sc_err *err)
{
    const char *spec = job->cluster ? job->cluster : p->run.hw->name;
    uint64_t first = sc_cluster_units(spec);
    if (first == 0) return SC_OK; /* the machine of a file */
    /* If other options may change too, each size takes long to try. */
    uint64_t step = change ? 4 : 1, units;
    units = next_size(over * first, first);
    for (; units <= most * first; units = next_size(step * units, first)) {
        const sc_hw *hw = NULL;
        predict_eval e;
        sc_err quiet;
        sc_job next = *job;
        sc_err_init(&quiet);
        next.cluster = sc_cluster_resized(spec, units, a);
        if (!next.cluster || sc_job_machine(&next, a, &hw, &quiet) != SC_OK)
            return SC_OK;
        if (predict_too_small(job, &p->run, hw)) continue;
        predict_memo on = {.a = a,
                           .model = memo->model,
                           .sw = memo->sw,
                           .hw = hw,
                           .by_events = memo->by_events,
                           .variant = memo->variant};
        if (fits_on(job, p, change, &on, &next, &e))
            return predict_keep(job, &next, &e, a, p, err);
    }
    return SC_OK;
}

sc_status predict_larger(const sc_job *job, uint32_t over, uint32_t most,
                         bool change, predict_memo *memo, sc_arena *a,
                         sc_prediction *p, sc_err *err)
{
    SC_TRY(more_machines(job, over, most, change, memo, a, p, err));
    if (!change || predict_too_small(job, &p->run, p->run.hw)) return SC_OK;
    for (uint64_t seq = p->run.seq / 2; seq >= SHORTEST; seq /= 2) {
        predict_eval e;
        sc_job next = *job;
        if (p->n_suggestions) break;
        next.seq = (int64_t)seq;
        next.gbs = (int64_t)p->run.gbs;
        if (fits(&next, p, memo, &e))
            return predict_keep(job, &next, &e, a, p, err);
    }
    return SC_OK;
}
