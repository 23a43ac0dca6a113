/* SPDX-License-Identifier: Apache-2.0 */
/*
 * steps.c - finds the repeated sequence of operations in a run.
 *
 * Operations are letters: kind, group, bytes, peer, asynchronous or not;
 * without the bytes if less than half of the run repeats because sizes vary.
 * For a few positions in the run, the longest stretch through each that repeats
 * with period p is computed for all p from two tables of common prefixes (Main
 * and Lorentz 1984), so a run of n operations takes O(n). The longest stretch
 * of all is the training. If a shorter sequence of different operations makes
 * up all of it except for operations of a few bytes, those are logging between
 * steps. steps_time.c decides from times how many sequences make a step.
 */
#include "emu/steps.h"

#include <string.h>

#define PLACES    15u
#define TINY      ((uint64_t)4096) /* bytes of an operation between steps */
#define ONE_OFFS  8u               /* in a row */
#define MARKS     3u               /* of the program, at least */
#define LEAST_RUN ((uint64_t)2)    /* repetitions */
#define LOOPS     6u               /* (bounds the positions that are tried) */

typedef struct stretch {
    uint64_t from, to, period; /* [from, to) */
} stretch;

typedef struct search {
    const sc_emu_run *r;
    sc_arena *a;
    sc_err *err;
    uint64_t n;
    uint64_t *letter;       /* [n] */
    uint64_t *text;         /* [2 n + 1] */
    uint64_t *ahead, *back; /* [2 n + 1] lengths of common prefixes */
    uint64_t *at;           /* [n] repetitions */
    uint64_t pattern;       /* result: an occurrence of the sequence */
    stretch found;
    bool sure;
} search;

static void spell(search *s, bool bytes)
{
    for (uint64_t i = 0; i < s->n; i++) {
        const sc_emu_record *o = &s->r->record[i];
        const uint64_t parts[] = {o->coll, o->group, bytes ? o->bytes : 0,
                                  o->peer, o->flags & SC_EMU_ASYNC};
        s->letter[i] = sc_hash(parts, sizeof parts, 0) | 1;
    }
}

void emu_prefixes(const uint64_t *text, uint64_t n, uint64_t *z)
{
    uint64_t l = 0, r = 0;
    if (n > 0) z[0] = n;
    for (uint64_t i = 1; i < n; i++) {
        uint64_t k = i < r ? (z[i - l] < r - i ? z[i - l] : r - i) : 0;
        while (i + k < n && text[k] == text[i + k]) k++;
        z[i] = k;
        if (i + k > r) {
            l = i;
            r = i + k;
        }
    }
}

/* Stretches through `at`: calls keep() with each period and extent. */
static void through(search *s, uint64_t at, uint64_t most, stretch *best)
{
    uint64_t n = s->n;
    emu_prefixes(s->letter + at, n - at, s->ahead);
    /* the text before `at` and before at + p, reversed */
    for (uint64_t i = 0; i < at; i++) s->text[i] = s->letter[at - 1 - i];
    s->text[at] = 0;
    for (uint64_t i = 0; i < n; i++) s->text[at + 1 + i] = s->letter[n - 1 - i];
    emu_prefixes(s->text, at + 1 + n, s->back);
    for (uint64_t p = 1; p <= most && at + p < n; p++) {
        uint64_t b = at ? s->back[at + 1 + (n - (at + p))] : 0;
        uint64_t from = at - b, to = at + p + s->ahead[p];
        if (to - from < LEAST_RUN * p || to - from <= best->to - best->from)
            continue;
        *best = (stretch){from, to, p};
    }
}

/* The longest stretch whose period is at most `most`; period 0: none. */
static stretch longest(search *s, uint64_t from, uint64_t to, uint64_t most)
{
    stretch best = {0};
    for (uint32_t k = 1; k <= PLACES; k++)
        through(s, from + (to - from) * k / (PLACES + 1), most, &best);
    return best;
}

/* ---- a sequence and its other occurrences -------------------------------- */

static bool stands(const search *s, uint64_t pattern, uint64_t p, uint64_t at)
{
    return at + p <= s->n && memcmp(s->letter + pattern, s->letter + at,
                                    p * sizeof *s->letter) == 0;
}

/* Whether none of the program's operations is in flight at record `at`. */
static bool quiet(const search *s, uint64_t at, uint64_t p)
{
    const sc_emu_record *o = s->r->record;
    if (at >= s->n) return true;
    for (uint64_t i = at > p ? at - p : 0; i < at; i++)
        if ((o[i].flags & SC_EMU_ASYNC) &&
            (o[i].resumed ? o[i].resumed : o[i].end) > o[at].post)
            return false;
    return true;
}

/* Whether its operations differ and no operation is in flight at its ends. */
static bool is_step(const search *s, uint64_t pattern, uint64_t p)
{
    bool same = true;
    for (uint64_t i = 1; i < p; i++)
        same = same && s->letter[pattern + i] == s->letter[pattern];
    return !same && quiet(s, pattern + p, p);
}

static bool tiny(const search *s, uint64_t at)
{
    return s->r->record[at].bytes <= TINY;
}

/* The next occurrence at `at` or behind one-off operations; UINT64_MAX:
 * none. */
static uint64_t again(const search *s, uint64_t pattern, uint64_t p,
                      uint64_t at)
{
    for (uint32_t k = 0; k <= ONE_OFFS && at < s->n; k++, at++) {
        if (stands(s, pattern, p, at)) return at;
        if (!tiny(s, at)) break;
    }
    return UINT64_MAX;
}

/* The same to the left: the occurrence ends at `to` or before one-offs. */
static uint64_t before(const search *s, uint64_t pattern, uint64_t p,
                       uint64_t to)
{
    for (uint32_t k = 0; k <= ONE_OFFS && to >= p; k++, to--) {
        if (stands(s, pattern, p, to - p)) return to - p;
        if (!tiny(s, to - 1)) break;
    }
    return UINT64_MAX;
}

/* The extent of repetitions with one-offs between them. */
static stretch reach(const search *s, uint64_t pattern, uint64_t p)
{
    stretch x = {pattern, pattern + p, p};
    for (uint64_t at; (at = before(s, pattern, p, x.from)) != UINT64_MAX;)
        x.from = at;
    for (uint64_t at; (at = again(s, pattern, p, x.to)) != UINT64_MAX;)
        x.to = at + p;
    return x;
}

/* Where repetitions begin: steps end with the last operation of the stretch, or
 * where nothing is in flight. */
static uint64_t aligned(const search *s, const stretch *x)
{
    uint64_t last = x->to - x->period;
    for (uint64_t k = 0; k < x->period && last - k >= x->from; k++) {
        if (quiet(s, last - k, x->period)) return last - k;
        if (last == k) break;
    }
    return last;
}

/* The first records of the repetitions of x. */
static uint64_t starts(const search *s, uint64_t pattern, const stretch *x)
{
    uint64_t n = 0, p = x->period;
    for (uint64_t at = x->from; at != UINT64_MAX && at + p <= x->to;
         at = again(s, pattern, p, at + p))
        s->at[n++] = at;
    return n;
}

/* How many repetitions of x make a step; x becomes the stretch of steps. */
static sc_status in_time(search *s, uint64_t *pattern, stretch *x,
                         steps_unit *u)
{
    *u = (steps_unit){.at = s->at, .n = starts(s, *pattern, x)};
    SC_TRY(steps_unit_find(s->r, s->a, u, s->err));
    if (u->many == 1 || u->n == 0) return SC_OK;
    *pattern = u->at[u->n - 1];
    *x = reach(s, *pattern, u->many * x->period);
    return SC_OK;
}

/* Removes incomplete repetitions and one-offs at the ends. */
static bool covers(const search *s, const stretch *x, const stretch *whole)
{
    uint64_t from = x->from, to = x->to;
    while (from > whole->from && tiny(s, from - 1)) from--;
    while (to < whole->to && tiny(s, to)) to++;
    return from < whole->from + x->period && to + x->period > whole->to;
}

/* A shorter sequence that makes up the stretch except for one-offs; `steps`:
 * one that can be a step by itself. */
static bool refined(search *s, const stretch *whole, bool steps,
                    uint64_t *pattern, stretch *out)
{
    stretch best = longest(s, whole->from, whole->to, whole->period / 2);
    if (best.period == 0) return false;
    for (uint64_t k = 0; k < best.period; k++) {
        uint64_t at = best.to - best.period - k;
        if (at < best.from || (steps && !is_step(s, at, best.period))) continue;
        stretch x = reach(s, at, best.period);
        if (covers(s, &x, whole)) {
            *pattern = at;
            *out = x;
            return true;
        }
    }
    return false;
}

/* The same for a loop of layers or of steps. It is one of steps if times show
 * fewer repetitions per step than the whole has, or if there are enough
 * repetitions to exclude more. */
static sc_status loop(search *s, const stretch *whole, bool *found)
{
    uint64_t pattern = 0, reps = (whole->to - whole->from) / whole->period;
    stretch x = {0};
    steps_unit u;
    *found = false;
    if (!refined(s, whole, false, &pattern, &x)) return SC_OK;
    double each = (double)starts(s, pattern, &x) * (double)whole->period /
                  (double)(whole->to - whole->from);
    SC_TRY(in_time(s, &pattern, &x, &u));
    s->sure = false;
    if (!u.sure || reps < LOOPS || (double)u.many > each - 0.5) return SC_OK;
    *found = s->sure = true;
    s->pattern = pattern;
    s->found = x;
    return SC_OK;
}

static stretch repeated(search *s)
{
    stretch x = longest(s, 0, s->n, s->n / 2);
    if (2 * (x.to - x.from) >= s->n) return x;
    spell(s, false);
    stretch y = longest(s, 0, s->n, s->n / 2);
    if (y.to - y.from < 2 * (x.to - x.from) + 2 * LEAST_RUN) {
        spell(s, true);
        return x;
    }
    s->sure = y.period > 1;
    return y;
}

/* The given period: `period` operations. */
static void given(search *s, uint64_t period)
{
    if (period > s->n) return;
    stretch x = longest(s, 0, s->n, period);
    uint64_t end = x.period && period % x.period == 0 ? x.to : s->n;
    if (end < period) end = s->n;
    s->pattern = end - period;
    s->found = (stretch){end % period, end, period};
}

static sc_status find(search *s)
{
    bool found = false;
    steps_unit u;
    stretch x = repeated(s);
    if (x.period == 0) return SC_OK;
    if (!refined(s, &x, true, &s->pattern, &s->found)) {
        if (x.period > 1) SC_TRY(loop(s, &x, &found));
        if (found) return SC_OK;
        s->pattern = aligned(s, &x);
        s->found = reach(s, s->pattern, x.period);
    }
    SC_TRY(in_time(s, &s->pattern, &s->found, &u));
    s->sure = u.sure && (s->sure || u.many > 1);
    return SC_OK;
}

/* ---- steps --------------------------------------------------------------- */

/* The end of the last of the records; SC_TIME_MAX: one has not ended. */
static sc_time ended(const search *s, uint64_t first, uint64_t n)
{
    sc_time end = 0;
    for (uint64_t i = first; i < first + n; i++)
        if (s->r->record[i].end > end) end = s->r->record[i].end;
    return end;
}

static sc_status list(const search *s, bool forced, sc_emu_step **out,
                      uint32_t *n)
{
    sc_emu_step *step = NULL;
    uint32_t cap = 0, count = 0;
    const stretch *x = &s->found;
    uint64_t p = x->period, at = x->from;
    sc_time last = at > 0 ? ended(s, at - 1, 1) : SC_TIME_MAX;
    while (at != UINT64_MAX && at + p <= x->to) {
        sc_time end = ended(s, at, p);
        if (end == SC_TIME_MAX) break;
        if (last != SC_TIME_MAX && last <= end) {
            step = sc_grow(s->a, step, count, &cap, 64, sizeof *step);
            if (!step) return sc_error_nomem(s->err);
            step[count++] = (sc_emu_step){last, end, at, p};
        }
        last = end;
        at = forced ? at + p : again(s, s->pattern, p, at + p);
    }
    *out = step;
    *n = count;
    return SC_OK;
}

/* The first mark ends start-up and the first step. */
static sc_status marked(const sc_emu_run *r, sc_arena *a, sc_emu_step **out,
                        uint32_t *n, sc_err *err)
{
    uint32_t count = (uint32_t)r->n_marks - 1;
    sc_emu_step *step = SC_NEW_N(a, sc_emu_step, count);
    if (!step) return sc_error_nomem(err);
    for (uint32_t i = 0; i < count; i++) {
        const sc_emu_mark *m = &r->mark[i];
        step[i] = (sc_emu_step){m[0].at, m[1].at, m[0].record,
                                m[1].record - m[0].record};
    }
    *out = step;
    *n = count;
    return SC_OK;
}

sc_status sc_emu_steps(const sc_emu_run *r, uint64_t period, sc_arena *a,
                       sc_emu_step **out, uint32_t *n, bool *sure, sc_err *err)
{
    search s = {.r = r, .a = a, .err = err, .n = r->n_records, .sure = true};
    *out = NULL;
    *n = 0;
    if (sure) *sure = true;
    if (r->n_marks >= MARKS && period == 0 && r->n_marks <= UINT32_MAX)
        return marked(r, a, out, n, err);
    s.letter = SC_NEW_N(a, uint64_t, s.n + 1);
    s.text = SC_NEW_N(a, uint64_t, 2 * s.n + 2);
    s.ahead = SC_NEW_N(a, uint64_t, s.n + 1);
    s.back = SC_NEW_N(a, uint64_t, 2 * s.n + 2);
    s.at = SC_NEW_N(a, uint64_t, s.n + 1);
    if (!s.letter || !s.text || !s.ahead || !s.back || !s.at)
        return sc_error_nomem(err);
    spell(&s, true);
    if (s.n > 0 && period)
        given(&s, period);
    else if (s.n > 0)
        SC_TRY(find(&s));
    if (sure) *sure = s.sure;
    return s.found.period ? list(&s, period != 0, out, n) : SC_OK;
}
