/* SPDX-License-Identifier: Apache-2.0 */
/*
 * et_match.c - which span of the profiler is which operator of an execution
 * trace.
 *
 * Newer profilers state the number of the record function.  Otherwise the order
 * tells: both list what a thread calls in the order in which it began.  A thread
 * belongs to the lane that has most of its operators by name, and the two lists
 * are compared from a place on where they are equal for a while; what only one
 * of them has is skipped.  An execution trace of one step fits a profile of many
 * at its first step, and the others repeat it.
 */
#include "trace/et.h"

#include <stdlib.h>
#include <string.h>

#define NONE         UINT32_MAX
#define MOST_THREADS 256
#define ANCHOR       16 /* operators by which a place is found */
#define SHORT_ANCHOR 4  /* the same, if that links less than half */
#define MOST_PLACES  32 /* that are compared, and anchors that are looked for */
#define REACH        32 /* operators that are skipped in both lists */
#define AGREE        4  /* that have to be equal behind them */

typedef struct matcher {
    et_ops *x;
    const sc_profiled *m;
    sc_arena *tmp;
    uint32_t n;      /* spans below */
    uint32_t *order; /* [n] spans of operators by lane, as they began */
    uint32_t *head;  /* [lanes + 1] into it */
    bool *named;     /* [names] operators of both traces */
    uint32_t *ops;   /* [x->n] those with such names, by thread */
    uint32_t *taken; /* [lanes] 1: belongs to a thread */
    uint32_t *count; /* [names] zeroed */
    uint32_t *span;  /* [x->n] by order */
    uint32_t linked;
} matcher;

/* ---- lists --------------------------------------------------------------- */

typedef struct key {
    sc_time start, dur;
    uint32_t lane, number, span;
} key;

static int compare(const void *p, const void *q)
{
    const key *a = p, *b = q;
    if (a->lane != b->lane) return a->lane < b->lane ? -1 : 1;
    if (a->number != b->number) return a->number < b->number ? -1 : 1;
    if (a->start != b->start) return a->start < b->start ? -1 : 1;
    if (a->dur != b->dur) return a->dur > b->dur ? -1 : 1;
    return (a->span > b->span) - (a->span < b->span);
}

static bool is_host_op(const sc_trace_span *s)
{
    return s->kind <= SC_SPAN_STEP;
}

/* Numbers tell the order better than times, which are often equal, but only if
 * all spans of a lane have one. */
static sc_status list_spans(matcher *k)
{
    const sc_profiled *m = k->m;
    bool *partly = SC_NEW_N(k->tmp, bool, m->n_lanes);
    key *keys = SC_RAW_N(k->tmp, key, m->n_spans);
    k->order = SC_RAW_N(k->tmp, uint32_t, m->n_spans);
    k->head = SC_NEW_N(k->tmp, uint32_t, (size_t)m->n_lanes + 1);
    if (!partly || !keys || !k->order || !k->head)
        return sc_error_nomem(k->x->p.err);
    for (uint64_t i = 0; i < m->n_spans; i++) {
        const sc_trace_span *s = sc_trace_span_at(m, i);
        if (!is_host_op(s)) continue;
        partly[s->lane] |= s->id == 0;
        keys[k->n++] = (key){s->start, s->dur, s->lane, s->id, (uint32_t)i};
    }
    for (uint32_t i = 0; i < k->n; i++)
        if (partly[keys[i].lane]) keys[i].number = 0;
    if (k->n) qsort(keys, k->n, sizeof *keys, compare);
    for (uint32_t i = 0; i < k->n; i++) {
        k->order[i] = keys[i].span;
        k->head[keys[i].lane + 1]++;
    }
    for (uint32_t i = 0; i < m->n_lanes; i++) k->head[i + 1] += k->head[i];
    return SC_OK;
}

static uint32_t name_at(const matcher *k, uint32_t i)
{
    return sc_trace_span_at(k->m, k->order[i])->name;
}

/* ---- by number ----------------------------------------------------------- */

static sc_status match_numbers(matcher *k, uint32_t *span, uint32_t *linked)
{
    sc_map map = {0};
    bool *done = SC_NEW_N(k->tmp, bool, k->m->n_spans); /* has a node */
    if (!done) return sc_error_nomem(k->x->p.err);
    *linked = 0;
    memset(span, 0xff, k->x->n * sizeof *span);
    for (uint32_t i = 0; i < k->n; i++) {
        uint32_t id = sc_trace_span_at(k->m, k->order[i])->id;
        if (!id || sc_map_get(&map, id) != SC_MAP_END) continue;
        if (!sc_map_set(&map, k->tmp, id, k->order[i]))
            return sc_error_nomem(k->x->p.err);
    }
    for (uint32_t i = 0; i < k->x->n; i++) {
        const et_op *op = &k->x->op[i];
        uint32_t s = sc_map_get(&map, op->record);
        if (s == SC_MAP_END || done[s] ||
            sc_trace_span_at(k->m, s)->name != op->name)
            continue;
        done[s] = true;
        span[i] = s;
        ++*linked;
    }
    return SC_OK;
}

/* ---- by order ------------------------------------------------------------ */

/* Names of a thread and of a lane. */
typedef struct lists {
    const uint32_t *e, *k;
    uint32_t n, m;
    uint32_t anchor;
    uint32_t *to; /* [n] place in k; NONE */
} lists;

static bool equal(const lists *l, uint32_t i, uint32_t j, uint32_t n)
{
    return i + n <= l->n && j + n <= l->m &&
           memcmp(l->e + i, l->k + j, n * sizeof *l->e) == 0;
}

/* The first place from `j` on that has the `n` names from `i` on; NONE. */
static uint32_t find(const lists *l, uint32_t i, uint32_t n, uint32_t j)
{
    for (; (uint64_t)j + n <= l->m; j++)
        if (l->k[j] == l->e[i] && equal(l, i, j, n)) return j;
    return NONE;
}

/* Skips the fewest that are in one list only. */
static bool skip(const lists *l, uint32_t *i, uint32_t *j)
{
    for (uint32_t d = 1; d <= REACH; d++)
        for (uint32_t a = 0; a <= d; a++) {
            uint32_t left = *i + a < l->n ? l->n - *i - a : 0;
            uint32_t n = left < AGREE ? left : AGREE;
            if (!n || !equal(l, *i + a, *j + d - a, n)) continue;
            *i += a;
            *j += d - a;
            return true;
        }
    return false;
}

/* How many operators from `i` on are an anchor; fewer at the end, and of a short
 * lane. */
static uint32_t anchor_at(const lists *l, uint32_t i)
{
    uint32_t n = l->n - i < l->anchor ? l->n - i : l->anchor;
    return n < l->m ? n : l->m;
}

/* The next anchor of the thread that is in the lane, too. */
static bool next_anchor(const lists *l, uint32_t *i, uint32_t *j)
{
    for (uint32_t t = 0; t < MOST_PLACES && *i < l->n; t++, *i += l->anchor) {
        uint32_t at = find(l, *i, anchor_at(l, *i), *j);
        if (at == NONE) continue;
        *j = at;
        return true;
    }
    return false;
}

/* Links from two places on; how many were. */
static uint32_t walk(lists *l, uint32_t i, uint32_t j)
{
    uint32_t linked = 0;
    memset(l->to, 0xff, l->n * sizeof *l->to);
    while (i < l->n && j < l->m) {
        if (l->e[i] == l->k[j]) {
            l->to[i++] = j++;
            linked++;
        } else if (!skip(l, &i, &j)) {
            i++;
            if (!next_anchor(l, &i, &j)) break;
        }
    }
    return linked;
}

/* Of the places where the thread may begin in the lane, that which links most;
 * of equal ones the first. */
static uint32_t align(lists *l, uint32_t anchor)
{
    uint32_t i = 0, j = 0, best = 0, best_i = 0, best_j = 0;
    l->anchor = anchor;
    if (l->m == 0 || !next_anchor(l, &i, &j)) return 0;
    uint32_t n = anchor_at(l, i);
    for (uint32_t t = 0; t < MOST_PLACES && j != NONE && best < l->n; t++) {
        uint32_t linked = walk(l, i, j);
        if (linked > best) {
            best = linked;
            best_i = i;
            best_j = j;
        }
        j = find(l, i, n, j + 1);
    }
    return best ? walk(l, best_i, best_j) : 0;
}

/* The lane that has most of a thread's operators; NONE. */
static uint32_t lane_of(matcher *k, const uint32_t *names, uint32_t n)
{
    uint32_t best = NONE, most = 0;
    for (uint32_t l = 0; l < k->m->n_lanes; l++) {
        uint32_t same = 0;
        if (k->taken[l] || k->head[l] == k->head[l + 1]) continue;
        for (uint32_t i = 0; i < n; i++) k->count[names[i]]++;
        for (uint32_t i = k->head[l]; i < k->head[l + 1]; i++) {
            uint32_t *left = &k->count[name_at(k, i)];
            same += *left > 0;
            *left -= *left > 0;
        }
        for (uint32_t i = 0; i < n; i++) k->count[names[i]] = 0;
        if (same > most) {
            most = same;
            best = l;
        }
    }
    return best;
}

/* Spans of later steps that call the same from begin to end. */
static void repeat(const lists *l, const uint32_t *op, const uint32_t *spans,
                   uint32_t *node)
{
    if (l->n < ANCHOR || l->to[l->n - 1] - l->to[0] != l->n - 1) return;
    uint32_t at = l->to[0];
    while ((at = find(l, 0, l->n, at + l->n)) != NONE)
        for (uint32_t i = 0; i < l->n; i++) node[spans[at + i]] = op[i] + 1;
}

/* One thread: operators [from, to) of k->ops. */
static sc_status match_thread(matcher *k, uint32_t from, uint32_t to,
                              uint32_t *node)
{
    uint32_t n = to - from, m = 0;
    const uint32_t *op = k->ops + from;
    sc_arena_mark mark = sc_arena_save(k->tmp);
    uint32_t *e = SC_RAW_N(k->tmp, uint32_t, n);
    uint32_t *where = SC_RAW_N(k->tmp, uint32_t, n);
    if (!e || !where) return sc_error_nomem(k->x->p.err);
    for (uint32_t i = 0; i < n; i++) e[i] = k->x->op[op[i]].name;
    uint32_t lane = lane_of(k, e, n);
    if (lane == NONE) return SC_OK;
    uint32_t all = k->head[lane + 1] - k->head[lane];
    uint32_t *names = SC_RAW_N(k->tmp, uint32_t, all);
    uint32_t *spans = SC_RAW_N(k->tmp, uint32_t, all);
    if (!names || !spans) return sc_error_nomem(k->x->p.err);
    for (uint32_t i = k->head[lane]; i < k->head[lane + 1]; i++) {
        names[m] = name_at(k, i);
        spans[m] = k->order[i];
        m += k->named[names[m]];
    }
    lists l = {e, names, n, m, ANCHOR, where};
    uint32_t linked = align(&l, ANCHOR);
    if (linked < n / 2) linked = align(&l, SHORT_ANCHOR);
    for (uint32_t i = 0; linked && i < n; i++)
        if (where[i] != NONE) k->span[op[i]] = spans[where[i]];
    if (linked == n) repeat(&l, op, spans, node);
    k->taken[lane] = linked > 0;
    k->linked += linked;
    sc_arena_restore(k->tmp, mark);
    return SC_OK;
}

typedef struct range {
    uint32_t from, to;
} range;

static int longer(const void *p, const void *q)
{
    const range *a = p, *b = q;
    uint32_t n = a->to - a->from, m = b->to - b->from;
    if (n != m) return n > m ? -1 : 1;
    return (a->from > b->from) - (a->from < b->from);
}

/* Threads with most operators choose their lanes first. */
static sc_status match_order(matcher *k, uint32_t *node)
{
    const et_ops *x = k->x;
    range thread[MOST_THREADS];
    uint32_t n = 0, n_threads = 0;
    for (uint32_t i = 0; i < x->n; i++) {
        if (!k->named[x->op[i].name]) continue;
        bool same = n && x->op[k->ops[n - 1]].thread == x->op[i].thread;
        if (!same && n_threads == MOST_THREADS) break;
        if (!same) thread[n_threads++].from = n;
        k->ops[n++] = i;
        thread[n_threads - 1].to = n;
    }
    qsort(thread, n_threads, sizeof *thread, longer);
    for (uint32_t i = 0; i < n_threads; i++)
        SC_TRY(match_thread(k, thread[i].from, thread[i].to, node));
    return SC_OK;
}

/* Names of operators that both have. */
static void find_named(matcher *k)
{
    for (uint32_t i = 0; i < k->n; i++) k->count[name_at(k, i)] = 1;
    for (uint32_t i = 0; i < k->x->n; i++)
        k->named[k->x->op[i].name] = k->count[k->x->op[i].name] > 0;
    memset(k->count, 0, k->m->n_names * sizeof *k->count);
}

/* ---- the whole ----------------------------------------------------------- */

static sc_status alloc(matcher *k)
{
    const sc_profiled *m = k->m;
    k->named = SC_NEW_N(k->tmp, bool, m->n_names);
    k->count = SC_NEW_N(k->tmp, uint32_t, m->n_names);
    k->taken = SC_NEW_N(k->tmp, uint32_t, m->n_lanes);
    k->ops = SC_RAW_N(k->tmp, uint32_t, k->x->n);
    k->span = SC_RAW_N(k->tmp, uint32_t, k->x->n);
    if (!k->named || !k->count || !k->taken || !k->ops || !k->span)
        return sc_error_nomem(k->x->p.err);
    memset(k->span, 0xff, k->x->n * sizeof *k->span);
    return SC_OK;
}

static void count(const matcher *k, const uint32_t *span, uint32_t *node,
                  sc_et_linked *out)
{
    out->spans = k->n;
    for (uint64_t i = 0; i < k->m->n_spans; i++) out->repeats += node[i] != 0;
    for (uint32_t i = 0; i < k->x->n; i++) {
        if (span[i] == NONE) continue;
        node[span[i]] = i + 1;
        out->linked++;
    }
    out->spans_linked = out->linked + out->repeats;
}

sc_status et_match(et_ops *x, uint32_t *span, uint32_t *node, sc_et_linked *out)
{
    matcher k = {.x = x, .m = &x->p.m, .tmp = x->tmp};
    uint32_t by_number;
    SC_TRY(alloc(&k));
    SC_TRY(list_spans(&k));
    SC_TRY(match_numbers(&k, span, &by_number));
    out->by_record = true;
    if (by_number < x->n) {
        find_named(&k);
        SC_TRY(match_order(&k, node));
        out->by_record = by_number >= k.linked;
        if (!out->by_record) memcpy(span, k.span, x->n * sizeof *span);
        if (out->by_record) memset(node, 0, x->p.m.n_spans * sizeof *node);
    }
    count(&k, span, node, out);
    return SC_OK;
}
