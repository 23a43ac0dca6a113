/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory_events.c - orders the events of tensors by merging lists.
 *
 * Tensors are allocated and freed by parts of ops, and streams run their ops in
 * order. A device's events therefore are a few ordered lists that are merged. A
 * list that is not in order, such as that of marks, is sorted.
 */
#include "sim/memory_events.h"

#include <string.h>

/* Allocations and frees by the ops of each stream of one device, and by its
 * marks. */
#define KINDS (SC_N_STREAMS + 1)
/* Lists of a device: these, tensors that always exist, and ops of other
 * devices. */
#define LISTS (2 * KINDS + 4)

/* The list of tensors without bytes, and of frees of those that stay. */
#define NOT_AT_ALL (SC_NONE - 1)

/* Allocations, or frees. */
typedef struct side {
    uint32_t *place; /* [n] of tensors; NOT_AT_ALL: in no list */
    uint32_t *head;  /* [n_places + 2] into event */
    mem_event *event;
} side;

/* A place is a part, by the device and stream of its op and then by number; or
 * behind all parts, two for each device: of what is always there, and of parts
 * of ops of other devices. */
typedef struct state {
    const sc_graph *g;
    const sc_result *r;
    sc_arena *a;
    uint32_t n_parts, n_places;
    uint32_t *home;             /* [n_parts] device of its op * KINDS + kind */
    uint32_t *first;            /* [n_classes * KINDS + 3] places of homes */
    uint32_t *place;            /* [n_parts] */
    const sc_time *start, *end; /* [n_parts] */
    uint32_t *last;             /* [n] part whose end frees a tensor;
                                   NOT_AT_ALL */
    side side[2];
} state;

/* ---- places -------------------------------------------------------------- */

static uint32_t home_of(const sc_graph *g, sc_op op)
{
    bool mark = g->kind[op] == SC_OP_MARK;
    uint32_t place = sc_op_place(g, op), none = g->n_classes * KINDS;
    if (place == sc_op_place(g, op + 1) || g->cls[place] == SC_NONE)
        return none;
    return g->cls[place] * KINDS + (mark ? SC_N_STREAMS : g->stream[op]);
}

/* Times of parts, and their places. */
static bool find_parts(state *s)
{
    const sc_graph *g = s->g;
    uint32_t homes = g->n_classes * KINDS;
    sc_time *start = SC_RAW_N(s->a, sc_time, s->n_parts);
    sc_time *end = SC_RAW_N(s->a, sc_time, s->n_parts);
    s->home = SC_RAW_N(s->a, uint32_t, s->n_parts);
    s->place = SC_RAW_N(s->a, uint32_t, s->n_parts);
    s->first = SC_NEW_N(s->a, uint32_t, (size_t)homes + 3);
    if (!start || !end || !s->home || !s->place || !s->first) return false;
    for (sc_op i = 0; i < g->n_ops; i++) {
        sc_time at = s->r->start[i];
        uint32_t first = sc_part_first(g, i), next = sc_part_first(g, i + 1);
        uint32_t home = home_of(g, i);
        s->first[home + 2] += next - first;
        for (uint32_t k = first; k < next; k++) {
            s->home[k] = home;
            start[k] = at;
            end[k] = at = sc_part_end(g, s->r, i, k - first);
        }
    }
    for (uint32_t h = 0; h <= homes; h++) s->first[h + 2] += s->first[h + 1];
    for (uint32_t k = 0; k < s->n_parts; k++)
        s->place[k] = s->first[s->home[k] + 1]++;
    s->start = start;
    s->end = end;
    return true;
}

/* The end of the last op that frees a tensor. */
static uint32_t last_of(const state *s, const sc_lifetime *t)
{
    if (t->n_last == 0) return NOT_AT_ALL;
    uint32_t last = t->last[0];
    sc_time end = s->end[last];
    for (uint32_t k = 1; k < t->n_last; k++) {
        sc_time other = s->end[t->last[k]];
        if (other <= end) continue;
        last = t->last[k];
        end = other;
    }
    return last;
}

static uint32_t place_of(const state *s, uint32_t device, uint32_t part)
{
    if (part == NOT_AT_ALL) return NOT_AT_ALL;
    if (part == SC_NONE) return s->n_parts + 2 * device;
    bool own = s->home[part] - device * KINDS < KINDS;
    return own ? s->place[part] : s->n_parts + 2 * device + 1;
}

/* Places of tensors, and how many each place has. */
static void count(state *s)
{
    const sc_graph *g = s->g;
    for (uint32_t i = 0; i < g->n_lifetimes; i++) {
        const sc_lifetime *t = &g->lifetime[i];
        uint32_t part[2] = {NOT_AT_ALL, NOT_AT_ALL};
        if (t->bytes) part[0] = t->first;
        if (t->bytes) part[1] = last_of(s, t);
        s->last[i] = part[1];
        for (int k = 0; k < 2; k++) {
            uint32_t place = place_of(s, t->device, part[k]);
            s->side[k].place[i] = place;
            if (place != NOT_AT_ALL) s->side[k].head[place + 2]++;
        }
    }
    for (int k = 0; k < 2; k++)
        for (uint32_t p = 0; p < s->n_places; p++)
            s->side[k].head[p + 2] += s->side[k].head[p + 1];
}

static void push(side *x, uint32_t tensor, sc_time t, mem_order order,
                 uint32_t part)
{
    x->event[x->head[x->place[tensor] + 1]++] =
        (mem_event){t, (uint64_t)order << 32 | part, tensor};
}

/* Allocations and frees in the order of places. */
static void fill(state *s)
{
    for (uint32_t i = 0; i < s->g->n_lifetimes; i++) {
        uint32_t first = s->g->lifetime[i].first, last = s->last[i];
        if (s->side[0].place[i] == NOT_AT_ALL) continue;
        bool stands = first == SC_NONE;
        sc_time from = stands ? 0 : s->start[first];
        push(&s->side[0], i, from, stands ? MEM_STANDING : MEM_ALLOCATED,
             stands ? 0 : first);
        if (last == NOT_AT_ALL) continue;
        sc_time end = s->end[last];
        bool later = end > from;
        push(&s->side[1], i, later ? end : from,
             later ? MEM_FREED : MEM_FREED_AT_ONCE, 0);
    }
}

/* ---- merging ------------------------------------------------------------- */

static bool is_before(const mem_event *a, const mem_event *b)
{
    return a->t != b->t ? a->t < b->t : a->order < b->order;
}

static bool is_first(const mem_event *a, const mem_event *b)
{
    if (a->t != b->t) return a->t < b->t;
    return a->order != b->order ? a->order < b->order : a->tensor < b->tensor;
}

/* The end of the ordered run that begins at `at`. */
static uint32_t in_order(const mem_event *e, uint32_t n, uint32_t at)
{
    while (++at < n && is_first(&e[at - 1], &e[at])) continue;
    return at < n ? at : n;
}

/* Merges every two neighbouring runs; returns how many are left. */
static uint32_t pair_up(const mem_event *e, uint32_t n, mem_event *out)
{
    uint32_t left = 0;
    for (uint32_t i = 0, k, end; i < n; i = end, left++) {
        uint32_t half = k = in_order(e, n, i);
        end = half < n ? in_order(e, n, half) : n;
        while (i < half && k < end)
            *out++ = e[is_first(&e[k], &e[i]) ? k++ : i++];
        memcpy(out, e + i, (half - i) * sizeof *out);
        out += half - i;
        memcpy(out, e + k, (end - k) * sizeof *out);
        out += end - k;
    }
    return left;
}

/* A list out of order has few breaks: its runs are merged. `other` has as much
 * room. */
static void sort(mem_event *e, uint32_t n, mem_event *other)
{
    uint32_t k = 1;
    while (k < n && !is_before(&e[k], &e[k - 1])) k++;
    if (k >= n) return;
    while (pair_up(e, n, other) > 1)
        if (pair_up(other, n, e) == 1) return;
    memcpy(e, other, n * sizeof *e);
}

typedef struct run {
    const mem_event *at, *end;
} run;

/* The list other than `but` whose next event is first; SC_NONE: none. */
static uint32_t first_of(const run *from, uint32_t n, uint32_t but)
{
    uint32_t first = SC_NONE;
    for (uint32_t k = 0; k < n; k++)
        if (k != but &&
            (first == SC_NONE || is_before(from[k].at, from[first].at)))
            first = k;
    return first;
}

static mem_event *merge(run *from, uint32_t n, mem_event *out)
{
    uint32_t at = first_of(from, n, SC_NONE);
    while (n > 0) {
        uint32_t other = first_of(from, n, at);
        const mem_event *next = other == SC_NONE ? NULL : from[other].at;
        run *r = &from[at];
        sc_assert(r->at != NULL && r->at < r->end);
        do {
            *out++ = *r->at++;
        } while (r->at < r->end && (!next || !is_before(next, r->at)));
        if (r->at == r->end) *r = from[--n];
        at = other == n ? at : other;
    }
    return out;
}

/* Places from `from` on, before `to`, as a list in order. */
static void add_list(const side *x, uint32_t from, uint32_t to,
                     mem_event *other, run *runs, uint32_t *n)
{
    mem_event *e = x->event + x->head[from], *end = x->event + x->head[to];
    if (e == end) return;
    sort(e, (uint32_t)(end - e), other);
    runs[(*n)++] = (run){e, end};
}

static bool merge_all(state *s, mem_events *out)
{
    uint32_t n_classes = s->g->n_classes, n = 0;
    for (int k = 0; k < 2; k++) n += s->side[k].head[s->n_places];
    mem_event *to = SC_RAW_N(s->a, mem_event, n);
    out->at = to;
    out->first = SC_NEW_N(s->a, uint32_t, (size_t)n_classes + 1);
    if (!out->at || !out->first) return false;
    for (uint32_t d = 0; d < n_classes; d++) {
        run from[LISTS];
        n = 0;
        for (int k = 0; k < 2; k++) {
            const side *x = &s->side[k];
            uint32_t other = s->n_parts + 2 * d;
            const uint32_t *first = s->first + (size_t)d * KINDS;
            add_list(x, other, other + 1, to, from, &n);
            for (uint32_t h = 0; h < KINDS; h++)
                add_list(x, first[h], first[h + 1], to, from, &n);
            add_list(x, other + 1, other + 2, to, from, &n);
        }
        to = merge(from, n, to);
        out->first[d + 1] = (uint32_t)(to - out->at);
    }
    return true;
}

static bool side_new(state *s, side *x)
{
    uint32_t n = s->g->n_lifetimes;
    x->place = SC_RAW_N(s->a, uint32_t, n);
    x->head = SC_NEW_N(s->a, uint32_t, (size_t)s->n_places + 2);
    return x->place && x->head;
}

sc_status mem_events_list(const sc_graph *g, const sc_result *r, sc_arena *a,
                          mem_events *out, sc_err *err)
{
    uint32_t n = g->n_lifetimes, n_parts = sc_part_first(g, g->n_ops);
    if (n > SC_NONE / 2 || g->n_classes > SC_NONE / LISTS ||
        n_parts > SC_NONE - LISTS * g->n_classes)
        return sc_error(err, SC_EINPUT, SC_C_TOO_BIG, sc_pos_none(), NULL,
                        "more than %u tensors, or %u classes", SC_NONE / 2,
                        SC_NONE / LISTS);
    state s = {.g = g,
               .r = r,
               .a = a,
               .n_parts = n_parts,
               .n_places = n_parts + 2 * g->n_classes,
               .last = SC_RAW_N(a, uint32_t, n)};
    if (!s.last || !side_new(&s, &s.side[0]) || !side_new(&s, &s.side[1]) ||
        !find_parts(&s))
        return sc_error_nomem(err);
    count(&s);
    for (int k = 0; k < 2; k++) {
        side *x = &s.side[k];
        x->event = SC_RAW_N(a, mem_event, x->head[s.n_places + 1]);
        if (!x->event) return sc_error_nomem(err);
    }
    fill(&s);
    return merge_all(&s, out) ? SC_OK : sc_error_nomem(err);
}
