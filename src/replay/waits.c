/* SPDX-License-Identifier: Apache-2.0 */
/*
 * waits.c - what streams and the host wait for.
 *
 * Newer traces state it: the device's own record of a wait names the stream and
 * the event.  In others it follows from the order of calls: a stream that takes
 * over from another one waits for it, and a call that synchronizes waits for
 * kernels that were launched before and had ended by its return.
 */
#include "replay/model.h"

#include <stdlib.h>

/* Clocks of host and device agree to about a microsecond. */
#define SLACK 1500000
/* ps */
#define LEAST_LATE 100000000
#define MOST_LATE  5000000000

typedef struct pair {
    uint32_t of_item; /* 1: an item waits; 0: a device op */
    uint32_t owner, op;
} pair;

typedef struct finder {
    replay_rank *r;
    sc_arena *tmp;
    sc_err *err;
    pair *pairs;
    uint32_t n, cap;
    sc_map sync, record; /* spans by correlation */
} finder;

static sc_status add(finder *f, bool of_item, uint32_t owner, uint32_t op)
{
    pair *grown =
        sc_grow_raw(f->tmp, f->pairs, f->n, &f->cap, 64, sizeof *grown);
    if (!grown) return sc_error_nomem(f->err);
    f->pairs = grown;
    f->pairs[f->n++] = (pair){of_item, owner, op};
    return SC_OK;
}

/* The last op of a stream that was launched before `at`; REPLAY_NONE. */
static uint32_t last_launched(const replay_rank *r, uint32_t stream, sc_time at)
{
    uint32_t first = r->stream_head[stream], i = first;
    SC_FIRST(i, r->stream_head[stream + 1], mid, replay_launched(r, mid) >= at)
    return i > first ? i - 1 : REPLAY_NONE;
}

/* The first op of a stream that was launched at `at` or later. */
static uint32_t next_launched(const replay_rank *r, uint32_t stream, sc_time at)
{
    uint32_t i = r->stream_head[stream], end = r->stream_head[stream + 1];
    SC_FIRST(i, end, mid, replay_launched(r, mid) >= at)
    return i < end ? i : REPLAY_NONE;
}

static uint32_t stream_of_tid(const replay_rank *r, int64_t tid)
{
    for (uint32_t i = 0; i < r->n_streams; i++)
        if (r->m->lanes[r->stream[i]].tid == tid) return i;
    return REPLAY_NONE;
}

static const sc_trace_span *find(const finder *f, const sc_map *map,
                                 uint32_t id)
{
    uint32_t i = id ? sc_map_get(map, id) : SC_MAP_END;
    return i == SC_MAP_END ? NULL : replay_span(f->r, i);
}

static const sc_trace_span_args *args_of(const replay_rank *r,
                                         const sc_trace_span *s)
{
    return &r->m->args[s->args];
}

static sc_status index_spans(finder *f)
{
    for (uint64_t i = 0; i < f->r->m->n_spans; i++) {
        const sc_trace_span *s = sc_trace_span_at(f->r->m, i);
        bool record = s->kind == SC_SPAN_CALL && s->detail == SC_CALL_RECORD;
        if (!s->id || (s->kind != SC_SPAN_SYNC && !record)) continue;
        sc_map *map = record ? &f->record : &f->sync;
        if (sc_map_get(map, s->id) != SC_MAP_END) continue;
        if (!sc_map_set(map, f->tmp, s->id, (uint32_t)i))
            return sc_error_nomem(f->err);
    }
    return SC_OK;
}

/* ---- streams ------------------------------------------------------------- */

static uint32_t thread_of_lane(const replay_rank *r, uint32_t lane)
{
    for (uint32_t i = 0; i < r->n_threads; i++)
        if (r->thread[i] == lane) return i;
    return REPLAY_NONE;
}

/* The device op of the last launch of a thread before `at`, or of the first one
 * from then on. */
static uint32_t launch_beside(const replay_rank *r, uint32_t thread, sc_time at,
                              bool after)
{
    uint32_t first = r->thread_head[thread], end = r->thread_head[thread + 1];
    uint32_t i = first;
    SC_FIRST(i, end, mid, r->item[mid].enter >= at)
    if (after) {
        for (; i < end; i++)
            if (r->item[i].device != REPLAY_NONE) return r->item[i].device;
        return REPLAY_NONE;
    }
    while (i-- > first)
        if (r->item[i].device != REPLAY_NONE) return r->item[i].device;
    return REPLAY_NONE;
}

/* The first op that any thread launches from `at` on. */
static uint32_t launch_anywhere(const replay_rank *r, sc_time at)
{
    uint32_t best = REPLAY_NONE;
    for (uint32_t s = 0; s < r->n_streams; s++) {
        uint32_t op = next_launched(r, s, at);
        if (op == REPLAY_NONE) continue;
        if (best == REPLAY_NONE ||
            replay_launched(r, op) < replay_launched(r, best))
            best = op;
    }
    return best;
}

/* Whether `op` can have waited for `before`. Of very short ones, which may both
 * seem to, only that which starts later. */
static bool follows(const replay_rank *r, uint32_t op, uint32_t before)
{
    return before != REPLAY_NONE && op != REPLAY_NONE &&
           r->op[before].stream != r->op[op].stream &&
           r->op[before].start < r->op[op].start &&
           replay_end(r, before) <= r->op[op].start + SLACK;
}

static sc_status stated_wait(finder *f, const sc_trace_span *sync, sc_time at)
{
    const replay_rank *r = f->r;
    const sc_trace_span_args *x = args_of(r, sync);
    const sc_trace_span *record = find(f, &f->record, x->record);
    uint32_t from = stream_of_tid(r, x->wait_stream);
    uint32_t to = stream_of_tid(r, r->m->lanes[sync->lane].tid);
    if (from == REPLAY_NONE || to == REPLAY_NONE) return SC_OK;
    sc_time recorded = record ? record->start - r->from : at;
    uint32_t before = last_launched(r, from, recorded);
    uint32_t op = next_launched(r, to, at);
    return follows(r, op, before) ? add(f, false, op, before) : SC_OK;
}

/* The op of another stream that ended last before `op` started, of those that
 * were the last ones launched. */
static uint32_t latest_of_others(const replay_rank *r, uint32_t op, sc_time at)
{
    uint32_t best = REPLAY_NONE;
    for (uint32_t s = 0; s < r->n_streams; s++) {
        uint32_t x =
            s == r->op[op].stream ? REPLAY_NONE : last_launched(r, s, at);
        if (!follows(r, op, x)) continue;
        if (best == REPLAY_NONE || replay_end(r, x) > replay_end(r, best))
            best = x;
    }
    return best;
}

static sc_status guessed_wait(finder *f, uint32_t lane, sc_time at)
{
    const replay_rank *r = f->r;
    uint32_t thread = thread_of_lane(r, lane), prev = REPLAY_NONE;
    uint32_t next = REPLAY_NONE;
    if (thread != REPLAY_NONE) {
        prev = launch_beside(r, thread, at, false);
        next = launch_beside(r, thread, at, true);
    }
    if (next == REPLAY_NONE) next = launch_anywhere(r, at);
    if (next == REPLAY_NONE) return SC_OK;
    if (follows(r, next, prev)) {
        prev = last_launched(r, r->op[prev].stream, at);
        if (follows(r, next, prev)) return add(f, false, next, prev);
    }
    prev = latest_of_others(r, next, at);
    return prev == REPLAY_NONE ? SC_OK : add(f, false, next, prev);
}

static sc_status stream_waits(finder *f)
{
    const replay_rank *r = f->r;
    for (uint64_t i = 0; i < r->m->n_spans; i++) {
        const sc_trace_span *s = sc_trace_span_at(r->m, i);
        if (s->kind != SC_SPAN_CALL || s->detail != SC_CALL_STREAM_WAIT)
            continue;
        sc_time at = s->start - r->from;
        if (at < 0 || s->start >= r->to) continue;
        const sc_trace_span *sync = find(f, &f->sync, s->id);
        SC_TRY(sync ? stated_wait(f, sync, at) : guessed_wait(f, s->lane, at));
    }
    return SC_OK;
}

/* ---- the host ------------------------------------------------------------ */

static sc_time end_of(const replay_rank *r, const replay_item *it)
{
    const sc_trace_span *s = replay_span(r, it->span);
    return s->start + s->dur - r->from;
}

/* Waits of an item for the last op of each stream, or of the stream whose last
 * op ended last; only ops that had ended by the return of the call count. */
static sc_status wait_for_last(finder *f, uint32_t item, bool all,
                               uint32_t stream)
{
    const replay_rank *r = f->r;
    const replay_item *it = &r->item[item];
    sc_time end = end_of(r, it) + SLACK;
    uint32_t best = REPLAY_NONE;
    for (uint32_t s = 0; s < r->n_streams; s++) {
        if (stream != REPLAY_NONE && s != stream) continue;
        uint32_t op = last_launched(r, s, it->enter);
        if (op == REPLAY_NONE || replay_end(r, op) > end) continue;
        if (all) SC_TRY(add(f, true, item, op));
        if (best == REPLAY_NONE || replay_end(r, op) > replay_end(r, best))
            best = op;
    }
    return all || best == REPLAY_NONE ? SC_OK : add(f, true, item, best);
}

/* An event may be anywhere in a stream: the op that ended last before the call
 * returned. */
static sc_status wait_for_event(finder *f, uint32_t item)
{
    const replay_rank *r = f->r;
    const replay_item *it = &r->item[item];
    sc_time end = end_of(r, it) + SLACK;
    uint32_t best = REPLAY_NONE;
    for (uint32_t s = 0; s < r->n_streams; s++) {
        uint32_t op = last_launched(r, s, it->enter);
        while (op != REPLAY_NONE && replay_end(r, op) > end)
            op = r->op[op].prev;
        if (op == REPLAY_NONE) continue;
        if (best == REPLAY_NONE || replay_end(r, op) > replay_end(r, best))
            best = op;
    }
    return best == REPLAY_NONE ? SC_OK : add(f, true, item, best);
}

/* A copy from or to memory that is not pinned returns when it is done. */
static sc_status wait_for_copy(finder *f, uint32_t item)
{
    const replay_rank *r = f->r;
    uint32_t op = r->item[item].device;
    if (op == REPLAY_NONE) return SC_OK;
    bool copy = replay_span(r, r->op[op].span)->kind == SC_SPAN_COPY;
    if (!copy || replay_end(r, op) > end_of(r, &r->item[item])) return SC_OK;
    return add(f, true, item, op);
}

/* A worker's record may end after the thread that it woke has gone on: by up to
 * 1.2 % of the wait in data/validation/replay, where both share a core. */
static sc_time late_record(const replay_item *it)
{
    sc_time part = (it->leave - it->enter) / 50;
    if (part > MOST_LATE) return MOST_LATE;
    return part > LEAST_LATE ? part : LEAST_LATE;
}

/* A collective that a thread of the host runs. */
static bool on_worker(const replay_rank *r, uint32_t op)
{
    const sc_trace_span *s = replay_span(r, r->op[op].span);
    return s->kind == SC_SPAN_COLL && s->id == 0;
}

/* The collective of a worker that ended last in the gap. */
static sc_status wait_in_gap(finder *f, uint32_t item)
{
    const replay_rank *r = f->r;
    const replay_item *it = &r->item[item];
    sc_time until = it->leave + late_record(it);
    uint32_t best = REPLAY_NONE;
    for (uint32_t s = 0; s < r->n_streams; s++) {
        uint32_t i = r->stream_head[s], first = i;
        SC_FIRST(i, r->stream_head[s + 1], mid, replay_end(r, mid) > until)
        if (i == first || !on_worker(r, i - 1)) continue;
        if (replay_end(r, i - 1) <= it->enter ||
            replay_launched(r, i - 1) >= it->leave)
            continue;
        if (best == REPLAY_NONE || replay_end(r, i - 1) > replay_end(r, best))
            best = i - 1;
    }
    return best == REPLAY_NONE ? SC_OK : add(f, true, item, best);
}

static sc_status host_wait(finder *f, uint32_t item)
{
    const replay_rank *r = f->r;
    if (r->item[item].kind == REPLAY_RESUME) return wait_in_gap(f, item);
    const sc_trace_span *s = replay_span(r, r->item[item].span);
    const sc_trace_span *sync = find(f, &f->sync, s->id);
    uint32_t stream = REPLAY_NONE;
    switch (s->detail) {
    case SC_CALL_COPY: return wait_for_copy(f, item);
    case SC_CALL_EVENT_SYNC: return wait_for_event(f, item);
    case SC_CALL_DEVICE_SYNC: return wait_for_last(f, item, true, REPLAY_NONE);
    case SC_CALL_STREAM_SYNC:
        if (sync) stream = stream_of_tid(r, r->m->lanes[sync->lane].tid);
        return wait_for_last(f, item, false, stream);
    default: return SC_OK;
    }
}

static sc_status host_waits(finder *f)
{
    replay_rank *r = f->r;
    for (uint32_t i = 0; i < r->n_items; i++)
        if (r->item[i].span != REPLAY_NONE) SC_TRY(host_wait(f, i));
    return SC_OK;
}

/* ---- lists --------------------------------------------------------------- */

static int compare_pairs(const void *x, const void *y)
{
    const pair *a = x, *b = y;
    if (a->of_item != b->of_item) return a->of_item < b->of_item ? -1 : 1;
    if (a->owner != b->owner) return a->owner < b->owner ? -1 : 1;
    return (a->op > b->op) - (a->op < b->op);
}

static sc_status keep_lists(finder *f, sc_arena *a)
{
    replay_rank *r = f->r;
    r->wait = SC_NEW_N(a, uint32_t, f->n);
    if (!r->wait) return sc_error_nomem(f->err);
    if (f->n) qsort(f->pairs, f->n, sizeof *f->pairs, compare_pairs);
    for (uint32_t i = 0; i < f->n; i++) {
        const pair *p = &f->pairs[i];
        if (i && compare_pairs(p, p - 1) == 0) continue;
        replay_waits *w =
            p->of_item ? &r->item[p->owner].waits : &r->op[p->owner].waits;
        if (w->n == 0) w->first = r->n_waits;
        w->n++;
        r->wait[r->n_waits++] = p->op;
    }
    return SC_OK;
}

/* After the call returned, and how long that was after what it waited for. */
static void find_tails(replay_rank *r)
{
    for (uint32_t i = 0; i < r->n_items; i++) {
        replay_item *it = &r->item[i];
        if (it->kind != REPLAY_WAIT && it->waits.n == 0) continue;
        sc_time since = it->enter;
        for (uint32_t k = 0; k < it->waits.n; k++) {
            sc_time end = replay_end(r, r->wait[it->waits.first + k]);
            if (end > since) since = end;
        }
        if (it->kind != REPLAY_RESUME) it->leave = end_of(r, it);
        it->tail = it->leave > since ? it->leave - since : 0;
    }
}

sc_status replay_find_waits(replay_rank *r, sc_arena *a, sc_err *err)
{
    sc_arena tmp;
    sc_arena_init(&tmp, a->limit);
    finder f = {.r = r, .tmp = &tmp, .err = err};
    sc_status s = index_spans(&f);
    if (s == SC_OK) s = stream_waits(&f);
    if (s == SC_OK) s = host_waits(&f);
    if (s == SC_OK) s = keep_lists(&f, a);
    sc_arena_free(&tmp);
    SC_TRY(s);
    find_tails(r);
    return SC_OK;
}
