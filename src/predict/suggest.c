/* SPDX-License-Identifier: Apache-2.0 */
/*
 * suggest.c - suggests the smallest changes that help: one changed choice, or
 * two together.
 *
 * Candidates are ranked by segments with everything else unchanged. The
 * reported effect is that of the printed options: they are predicted like any
 * other job, by the fast engine and with open choices inferred again, unless
 * segments show that this is useless. If the job was predicted by events or
 * messages, the step is scaled by its ratio to the fast engine's.
 */
#include "predict/space.h"
#include "predict/suggest_moves.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CANDIDATES = SUGGEST_MOVES * SUGGEST_MOVES, TRIES = 10 };

/* Largest factor on the number of machines: first attempt, last attempt. */
enum { LARGER = 16, LARGEST = 256 };

/* Memory below this fraction is clearly smaller. */
static const double smaller = 0.9;

typedef struct candidate {
    sc_job job;
    predict_eval e; /* its step as the network would predict it */
    uint32_t n;     /* choices changed */
    uint32_t at;    /* order of generation, which breaks ties */
} candidate;

typedef struct search {
    const sc_job *job;
    const sc_run *run;
    predict_eval now;
    double by_segments; /* the network's step over that of segments */
    predict_memo *memo;
    sc_arena *a;
    bool done[SUGGEST_MOVES];        /* whether the move alone is possible */
    predict_eval one[SUGGEST_MOVES]; /* and its result */
    candidate *c;
    uint32_t n;
    uint32_t changed[SC_COUNT(((sc_prediction *)0)->suggestion)]; /* choices */
    sc_run tried[2 * TRIES]; /* by the operator network */
    uint32_t n_tried;
    const struct search_space *searched; /* the job's search; NULL: none */
    bool less; /* the job fits, but clearly less memory is needed */
} search;

/* ---- what a job would be ------------------------------------------------- */

/* Whether a run fits by the network of its operators and the requested engine,
 * whose allocator may hold more than the fast one's. */
static bool network_fits(const sc_job *job, const sc_run *run, sc_arena *a,
                         bool *fits)
{
    sc_job j = *job;
    sc_prediction q;
    sc_err quiet;
    sc_err_init(&quiet);
    j.brief = true;
    j.no_symmetry = j.each = false;
    j.fidelity = SC_FIDELITY_ANALYTIC;
    if (predict_chosen(&j, run, NULL, NULL, a, &q, &quiet) != SC_OK)
        return false;
    *fits = q.fits_probability >= PREDICT_LIKELY;
    return true;
}

bool predict_refine(const sc_job *job, predict_memo *memo, predict_eval *e)
{
    e->step_s *= memo->by_events;
    e->fits = predict_fits_run(&e->run, e->full) >= PREDICT_LIKELY;
    if (job->engine == SC_ENGINE_FAST) return true;
    double full = e->full / predict_most_full(e->run.cost);
    if (full >= PREDICT_TOO_FULL || full * PREDICT_TOO_FULL <= 1) return true;
    return network_fits(job, &e->run, memo->variant, &e->fits);
}

bool predict_variant(const sc_job *next, const sc_prediction *p,
                     predict_memo *memo, predict_eval *out)
{
    return predict_guess(next, p, 0, memo, out) &&
           predict_refine(next, memo, out);
}

bool predict_guess(const sc_job *next, const sc_prediction *p, double beat_s,
                   predict_memo *memo, predict_eval *out)
{
    sc_err quiet;
    sc_err_init(&quiet);
    sc_arena_reset(memo->variant);
    memo->beat_s = beat_s;
    sc_status s = predict_by_segments(next, memo->hw, &p->run, memo,
                                      memo->variant, out, &quiet);
    memo->beat_s = 0;
    return s == SC_OK;
}

sc_status predict_keep(const sc_job *job, const sc_job *next,
                       const predict_eval *e, sc_arena *a, sc_prediction *p,
                       sc_err *err)
{
    for (uint32_t i = 0; i < p->n_suggestions; i++)
        if (p->suggestion[i].step_time_s == e->step_s &&
            p->suggestion[i].peak == e->peak)
            return SC_OK; /* the same run with other options */
    if (p->n_suggestions == SC_COUNT(p->suggestion)) return SC_OK;
    const char *text = sc_job_options(job, next, a);
    if (!text) return sc_error_nomem(err);
    p->suggestion[p->n_suggestions++] =
        (sc_suggestion){text, e->step_s, e->peak, e->fits};
    return SC_OK;
}

/* ---- candidates ---------------------------------------------------------- */

/* Whether the search has covered the moves: they only change open choices,
 * for which the inferred ones are the best. With all choices given, a run
 * may leave less free memory than the search requires. */
static bool looked_at(const search *x, const suggest_move *m, uint32_t n,
                      const sc_job *next, const sc_run *r)
{
    const sc_job *j = x->job;
    if (!x->searched) return false;
    if (suggest_divided(next)) return false;
    for (uint32_t i = 0; i < n; i++) {
        bool degree = m[i].what <= M_CP;
        if (m[i].what == M_SP || m[i].what == M_SCHEDULE ||
            suggest_said(j, m[i].what) || (degree && j->dp))
            return false;
    }
    return predict_looked_at(x->searched, r);
}

/* False: the change is impossible or useless. */
static bool evaluate(search *x, const suggest_move *m, uint32_t n, double beat,
                     candidate *out)
{
    sc_run r = *x->run;
    bool chunks = false, schedule = false;
    sc_err quiet;
    sc_err_init(&quiet);
    for (uint32_t i = 0; i < n; i++) {
        if (!suggest_change(&r, m[i])) return false;
        chunks = chunks || m[i].what == M_CHUNKS;
        schedule = schedule || m[i].what == M_SCHEDULE;
    }
    if (!suggest_resolve(&r, chunks)) return false;
    out->job = suggest_job(x->job, x->run, &r, chunks, schedule);
    out->n = n;
    if (sc_job_outside(&out->job, r.sw) && !sc_job_outside(x->job, r.sw))
        return false;
    if (looked_at(x, m, n, &out->job, &r)) return false;
    /* if the job does not fit, a change must fit or need clearly less memory */
    double most = x->now.fits ? 0 : smaller * x->now.peak;
    sc_status s = predict_evaluate(&r, beat / x->by_segments, most, x->memo,
                                   &out->e, &quiet);
    out->e.step_s *= x->by_segments;
    return s == SC_OK;
}

static void add(search *x, const candidate *c)
{
    x->c[x->n] = *c;
    x->c[x->n].at = x->n;
    x->n++;
}

/* Whether the job, of which `now` are the numbers, needs nothing else after a
 * change. */
static bool enough(const search *x, const predict_eval *e,
                   const predict_eval *now)
{
    return e->fits && (!x->less || e->peak < smaller * now->peak);
}

static bool helps(const search *x, const predict_eval *e,
                  const predict_eval *now)
{
    if (x->less) return enough(x, e, now);
    if (now->fits) return e->fits && e->step_s < PREDICT_FASTER * now->step_s;
    return e->fits || e->peak < smaller * now->peak;
}

static uint32_t singles(search *x)
{
    uint32_t good = 0;
    /* If the job does not fit, a change may be slower by any amount. */
    double beat = x->now.fits ? x->now.step_s : INFINITY;
    for (uint32_t i = 0; i < SUGGEST_MOVES; i++) {
        candidate c;
        x->done[i] = evaluate(x, &suggest_moves[i], 1, beat, &c);
        if (!x->done[i]) continue;
        x->one[i] = c.e;
        if (!helps(x, &c.e, &x->now)) continue;
        good += c.e.fits;
        add(x, &c);
    }
    return good;
}

/* Step by segments from which a change hardly helps. It is half way to a
 * clearly faster step, since segments are not exact. 0: no limit. */
static double worth(const search *x)
{
    double gain = (1 + PREDICT_FASTER) / 2;
    return x->now.fits ? gain * x->now.step_s / x->by_segments : 0;
}

/* Changes one option, and infers the open choices again. */
static void inferred_anew(search *x, const sc_prediction *p)
{
    const sc_job *j = x->job;
    bool open = suggest_open(j);
    for (uint32_t i = 0; open && i < SUGGEST_MOVES; i++) {
        candidate c = {.n = 1};
        sc_run r = *x->run;
        if (!suggest_said(j, suggest_moves[i].what) ||
            !suggest_change(&r, suggest_moves[i]))
            continue;
        c.job = suggest_job(j, x->run, &r, suggest_moves[i].what == M_CHUNKS,
                            false);
        if (!predict_guess(&c.job, p, worth(x), x->memo, &c.e)) continue;
        c.e.step_s *= x->by_segments;
        if (helps(x, &c.e, &x->now)) add(x, &c);
    }
}

/* Tries two choices together, which must be clearly better than either
 * alone. */
static void pairs(search *x)
{
    for (uint32_t i = 0; i < SUGGEST_MOVES; i++)
        for (uint32_t k = i + 1; k < SUGGEST_MOVES; k++) {
            candidate c;
            const uint32_t part[] = {i, k};
            const suggest_move m[] = {suggest_moves[i], suggest_moves[k]};
            double beat =
                x->now.fits ? PREDICT_FASTER * x->now.step_s : INFINITY;
            bool alone = false;
            if (m[0].what == m[1].what) continue;
            for (uint32_t j = 0; j < 2; j++) {
                const predict_eval *e = &x->one[part[j]];
                if (!x->done[part[j]] || !enough(x, e, &x->now)) continue;
                alone = true;
                beat = fmin(beat, PREDICT_FASTER * e->step_s);
            }
            if (!x->now.fits && alone) continue;
            if (!evaluate(x, m, 2, beat, &c)) continue;
            if (enough(x, &c.e, &x->now) && c.e.step_s < beat) add(x, &c);
        }
}

static int better(const void *a, const void *b)
{
    const candidate *x = a, *y = b;
    if (x->e.fits != y->e.fits) return x->e.fits ? -1 : 1;
    if (x->n != y->n) return x->n < y->n ? -1 : 1;
    double s = x->e.fits ? x->e.step_s : x->e.peak;
    double t = y->e.fits ? y->e.step_s : y->e.peak;
    if (s != t) return s < t ? -1 : 1;
    return x->at < y->at ? -1 : 1;
}

/* Moves the last suggestion to its place: fewer changes first, then faster
 * ones. */
static void rank_last(search *x, uint32_t changed, sc_prediction *p)
{
    uint32_t i = p->n_suggestions - 1;
    const sc_suggestion last = p->suggestion[i];
    for (; i > 0 && x->changed[i - 1] == changed &&
           p->suggestion[i - 1].step_time_s > last.step_time_s;
         i--) {
        p->suggestion[i] = p->suggestion[i - 1];
        x->changed[i] = x->changed[i - 1];
    }
    p->suggestion[i] = last;
    x->changed[i] = changed;
}

/* Whether segments show that a candidate is useless or was tried; `e` is
 * their result. */
static bool hopeless(const search *x, const predict_eval *e, bool fitting)
{
    for (uint32_t i = 0; i < x->n_tried; i++)
        if (predict_same_run(&e->run, &x->tried[i])) return true;
    double most = predict_most_full(e->run.cost);
    if (fitting && e->full > PREDICT_TOO_FULL * most) return true;
    return !x->now.fits && !fitting && e->peak >= x->now.peak;
}

/* Whether the prediction confirms a candidate, compared with `now`. */
static bool holds(search *x, const sc_job *job, bool fitting,
                  const predict_eval *now, const sc_prediction *p,
                  predict_eval *out)
{
    if (!predict_guess(job, p, worth(x), x->memo, out) ||
        hopeless(x, out, fitting))
        return false;
    x->tried[x->n_tried++] = out->run;
    return predict_refine(job, x->memo, out) && out->fits == fitting &&
           helps(x, out, now);
}

/* Keeps candidates that the prediction confirms, as options. */
static sc_status confirm(search *x, bool fitting, sc_prediction *p, sc_err *err)
{
    predict_eval now = {.step_s = p->step_time_s, .fits = x->now.fits};
    uint32_t tries = 0;
    for (uint32_t i = 0; i < p->n_stages; i++)
        now.peak = fmax(now.peak, p->memory[i].peak);
    for (uint32_t i = 0; i < x->n && tries < TRIES; i++) {
        predict_eval e;
        if (p->n_suggestions == SC_COUNT(p->suggestion)) break;
        if (x->c[i].e.fits != fitting) continue;
        tries++;
        const sc_job *job = &x->c[i].job;
        if (!holds(x, job, fitting, &now, p, &e)) continue;
        uint32_t kept = p->n_suggestions;
        SC_TRY(predict_keep(x->job, job, &e, x->a, p, err));
        if (p->n_suggestions > kept) rank_last(x, x->c[i].n, p);
    }
    return SC_OK;
}

/* If no small change makes it fit: several changes, more machines, or both;
 * else the choice that comes closest. */
static sc_status last_resort(search *x, sc_prediction *p, sc_err *err)
{
    predict_memo *memo = x->memo;
    predict_eval e = x->now;
    sc_job job = *x->job;
    bool none = predict_too_small(x->job, x->run, p->run.hw);
    bool can = !none && predict_smallest(p, memo, &job, &e);
    if (can && e.fits) SC_TRY(predict_keep(x->job, &job, &e, x->a, p, err));
    SC_TRY(predict_larger(x->job, 1, LARGER, false, memo, x->a, p, err));
    if (p->n_suggestions == 0)
        SC_TRY(predict_larger(x->job, 1, LARGER, true, memo, x->a, p, err));
    if (p->n_suggestions == 0)
        SC_TRY(
            predict_larger(x->job, LARGER, LARGEST, false, memo, x->a, p, err));
    if (p->n_suggestions == 0) SC_TRY(confirm(x, false, p, err));
    if (p->n_suggestions == 0 && none)
        can = predict_smallest(p, memo, &job, &e);
    if (p->n_suggestions == 0 && can && e.peak < x->now.peak)
        SC_TRY(predict_keep(x->job, &job, &e, x->a, p, err));
    return SC_OK;
}

/* Finds candidates, which change one choice or two. */
static void candidates(search *x, const sc_prediction *p)
{
    if (singles(x) < SC_COUNT(p->suggestion)) {
        inferred_anew(x, p);
        pairs(x);
    }
    qsort(x->c, x->n, sizeof *x->c, better);
}

static sc_status open_search(const sc_job *job, double fast_s, bool less,
                             predict_memo *memo, sc_arena *a, sc_prediction *p,
                             search **out, sc_err *err)
{
    search *x = SC_NEW(a, search);
    if (!x) return sc_error_nomem(err);
    *x = (search){.job = job,
                  .run = &p->run,
                  .memo = memo,
                  .a = a,
                  .c = SC_NEW_N(a, candidate, CANDIDATES),
                  .less = less};
    if (!x->c) return sc_error_nomem(err);
    SC_TRY(predict_evaluate(x->run, DBL_MIN, INFINITY, memo, &x->now, err));
    x->by_segments = memo->by_events = p->step_time_s / fast_s;
    x->now.step_s = p->step_time_s;
    x->now.fits = p->fits && !less;
    x->now.slower = false;
    *out = x;
    return SC_OK;
}

static sc_status suggest(const sc_job *job, double fast_s, predict_memo *memo,
                         sc_arena *a, sc_prediction *p, sc_err *err)
{
    search *x;
    SC_TRY(open_search(job, fast_s, false, memo, a, p, &x, err));
    if (p->fits) x->searched = predict_searched(job, x->run, memo, a);
    candidates(x, p);
    SC_TRY(confirm(x, true, p, err));
    if (p->fits) return SC_OK;
    if (p->n_suggestions == 0) return last_resort(x, p, err);
    if (p->n_suggestions < SC_COUNT(p->suggestion))
        return predict_larger(job, 1, LARGER, false, memo, a, p, err);
    return SC_OK;
}

sc_status predict_suggest(const sc_job *job, double fast_s, predict_memo *memo,
                          sc_arena *a, sc_prediction *p, sc_err *err)
{
    sc_arena variant;
    sc_arena_init(&variant, a->limit);
    memo->variant = &variant;
    sc_status s = suggest(job, fast_s, memo, a, p, err);
    memo->variant = NULL;
    sc_arena_free(&variant);
    return s;
}

static sc_status shrink(const sc_job *job, predict_memo *memo, sc_arena *a,
                        sc_prediction *p, sc_err *err)
{
    predict_shape layers;
    const predict_shape *of = &layers;
    double fast_s;
    search *x;
    SC_TRY(predict_layers(&p->run, memo, &layers, err));
    SC_TRY(predict_steps(&of, 1, NULL, a, &fast_s, err));
    SC_TRY(open_search(job, fast_s, true, memo, a, p, &x, err));
    candidates(x, p);
    return confirm(x, true, p, err);
}

sc_status sc_predict_smaller(const sc_job *job, const sc_prediction *p,
                             sc_arena *a, sc_suggestion out[SC_SUGGESTIONS],
                             uint32_t *n, sc_err *err)
{
    const sc_run *r = &p->run;
    sc_arena own, variant;
    sc_prediction q = *p;
    sc_arena_init(&own, a->limit);
    sc_arena_init(&variant, a->limit);
    predict_memo memo = {.a = &own,
                         .model = r->model,
                         .sw = r->sw,
                         .hw = r->hw,
                         .variant = &variant};
    q.n_suggestions = 0;
    /* what saves memory is found by segments, which networks do not have */
    bool segments = p->net && !predict_by_net(job, r->model);
    sc_status s = segments ? shrink(job, &memo, &own, &q, err) : SC_OK;
    *n = 0;
    for (uint32_t i = 0; i < q.n_suggestions && s == SC_OK; i++) {
        out[i] = q.suggestion[i];
        out[i].change = sc_strdup(a, out[i].change);
        if (!out[i].change) s = sc_error_nomem(err);
        *n = i + 1;
    }
    sc_arena_free(&variant);
    sc_arena_free(&own);
    return s;
}
