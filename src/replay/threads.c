/* SPDX-License-Identifier: Apache-2.0 */
/*
 * threads.c - which thread hands over to which.
 *
 * The main thread waits while autograd's thread runs the backward pass, and the
 * other way round, but no event says so.  A thread that was idle when another one
 * made its last call, and that goes on afterwards, is taken to follow it.  Idle
 * means that no operator was open.
 */
#include "replay/model.h"

#include <stdlib.h>

typedef struct ends {
    sc_time leave;
    uint32_t item;
} ends;

static int compare_ends(const void *x, const void *y)
{
    const ends *a = x, *b = y;
    if (a->leave != b->leave) return a->leave < b->leave ? -1 : 1;
    return (a->item > b->item) - (a->item < b->item);
}

typedef struct interval {
    sc_time from, to;
} interval;

/* The times in which a thread has an operator open. */
static sc_status open_times(const replay_rank *r, uint32_t thread, sc_arena *a,
                            interval **out, uint32_t *n, sc_err *err)
{
    uint32_t lane = r->thread[thread];
    uint32_t first = r->host_head[lane], end = r->host_head[lane + 1];
    *n = 0;
    *out = SC_RAW_N(a, interval, end - first);
    if (!*out) return sc_error_nomem(err);
    for (uint32_t i = first; i < end; i++) {
        const sc_trace_span *s = replay_span(r, r->host[i]);
        if (s->kind != SC_SPAN_OP) continue;
        sc_time from = s->start - r->from, to = from + s->dur;
        if (*n && from <= (*out)[*n - 1].to) {
            if (to > (*out)[*n - 1].to) (*out)[*n - 1].to = to;
        } else {
            (*out)[(*n)++] = (interval){from, to};
        }
    }
    return SC_OK;
}

static bool is_open(const interval *x, uint32_t n, sc_time at)
{
    uint32_t i = 0;
    SC_FIRST(i, n, mid, x[mid].to > at)
    return i < n && x[i].from <= at;
}

/* The last item of another thread that was left in (after, until]. */
static uint32_t last_of_others(const replay_rank *r, const ends *all,
                               uint32_t thread, sc_time after, sc_time until)
{
    uint32_t i = 0;
    SC_FIRST(i, r->n_items, mid, all[mid].leave > until)
    while (i-- > 0 && all[i].leave > after) {
        const replay_item *it = &r->item[all[i].item];
        if (it->thread != thread && it->kind <= REPLAY_WAIT) return all[i].item;
    }
    return REPLAY_NONE;
}

static sc_status hand_over(replay_rank *r, const ends *all, uint32_t thread,
                           sc_arena *tmp, sc_err *err)
{
    interval *busy;
    uint32_t n;
    SC_TRY(open_times(r, thread, tmp, &busy, &n, err));
    sc_time after = -1;
    for (uint32_t i = r->thread_head[thread]; i < r->thread_head[thread + 1];
         i++) {
        replay_item *it = &r->item[i];
        uint32_t from = last_of_others(r, all, thread, after, it->enter);
        if (from != REPLAY_NONE && !is_open(busy, n, r->item[from].leave))
            it->before = from;
        after = it->leave > it->enter ? it->leave : it->enter;
    }
    return SC_OK;
}

sc_status replay_find_handovers(replay_rank *r, sc_arena *a, sc_err *err)
{
    sc_arena tmp;
    (void)a;
    if (r->n_threads < 2) return SC_OK;
    sc_arena_init(&tmp, a->limit);
    ends *all = SC_RAW_N(&tmp, ends, r->n_items);
    sc_status s = all ? SC_OK : sc_error_nomem(err);
    for (uint32_t i = 0; all && i < r->n_items; i++)
        all[i] = (ends){r->item[i].leave, i};
    if (all) qsort(all, r->n_items, sizeof *all, compare_ends);
    for (uint32_t t = 0; s == SC_OK && t < r->n_threads; t++)
        s = hand_over(r, all, t, &tmp, err);
    sc_arena_free(&tmp);
    return s;
}
