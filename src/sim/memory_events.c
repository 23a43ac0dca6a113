/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory_events.c - tensors are put behind the parts that allocate and that
 * free them, parts are of ops, ops in streams, and streams run in order: a
 * device's events are a few lists in order, to be merged.  A list that is not
 * in order, as of marks, is sorted.
 */
#include "sim/memory_events.h"

#include <string.h>

/* Of one device: what is always there; what its ops of each stream, its marks,
 * and ops of other devices allocate; what they free. */
#define KINDS (SC_N_STREAMS + 2)
#define LISTS (1 + 2 * KINDS)

/* Tensors that stay, or have no bytes. */
#define NOT_AT_ALL (SC_NONE - 1)

typedef struct state {
    const sc_graph *g;
    const sc_result *r;
    sc_arena *a;
    uint32_t n_parts;
    uint32_t *home;             /* [n_parts] list of what they allocate on the
                                   device of their op */
    const sc_time *start, *end; /* [n_parts] */
    /* [n] each: part behind which a tensor is allocated, SC_NONE: it is always
     * there; and whose end frees it */
    uint32_t *part[2];
    uint32_t *by_part; /* [n] tensors behind parts */
    uint32_t *head;    /* [n_parts + 2] into by_part */
    uint32_t *list;    /* [n_classes * LISTS + 2] into event */
    mem_event *event;
} state;

/* ---- lists ----------------------------------------------------------------- */

static uint32_t home_of(const sc_graph *g, sc_op op)
{
    bool mark = g->kind[op] == SC_OP_MARK;
    uint32_t place = sc_op_place(g, op), none = g->n_classes * LISTS;
    if (place == sc_op_place(g, op + 1) || g->cls[place] == SC_NONE)
        return none;
    return g->cls[place] * LISTS + 1 + (mark ? SC_N_STREAMS : g->stream[op]);
}

static bool find_parts(state *s)
{
    const sc_graph *g = s->g;
    s->home = SC_RAW_N(s->a, uint32_t, s->n_parts);
    if (!s->home) return false;
    if (!g->part_head) {
        for (sc_op i = 0; i < g->n_ops; i++) s->home[i] = home_of(g, i);
        return true;
    }
    sc_time *start = SC_RAW_N(s->a, sc_time, s->n_parts);
    sc_time *end = SC_RAW_N(s->a, sc_time, s->n_parts);
    if (!start || !end) return false;
    for (sc_op i = 0; i < g->n_ops; i++) {
        sc_time at = s->r->start[i];
        uint32_t first = g->part_head[i], home = home_of(g, i);
        for (uint32_t k = first; k < g->part_head[i + 1]; k++) {
            s->home[k] = home;
            start[k] = at;
            end[k] = at = sc_part_end(g, s->r, i, k - first);
        }
    }
    s->start = start;
    s->end = end;
    return true;
}

/* Of all that free a tensor the one that ends last. */
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

static uint32_t list_of(const state *s, uint32_t device, uint32_t part,
                        int frees)
{
    uint32_t first = device * LISTS, own;
    if (part == SC_NONE) return first;
    own = s->home[part] - first;
    return first + (own < KINDS ? own : KINDS) + (frees ? KINDS : 0);
}

static void put(state *s, uint32_t tensor, int frees)
{
    const sc_lifetime *t = &s->g->lifetime[tensor];
    uint32_t part = s->part[frees][tensor];
    sc_time from = t->first == SC_NONE ? 0 : s->start[t->first];
    mem_event e = {.t = from, .tensor = tensor};
    mem_turn turn = t->first == SC_NONE ? MEM_STANDING : MEM_ALLOCATED;
    if (frees) {
        sc_time end = s->end[part];
        turn = end > from ? MEM_FREED : MEM_FREED_AT_ONCE;
        if (end > from) e.t = end;
    }
    e.order = (uint64_t)turn << 32 | (turn == MEM_ALLOCATED ? part : 0);
    s->event[s->list[list_of(s, t->device, part, frees) + 1]++] = e;
}

/* Allocations, or frees, in the order of parts. */
static void fill(state *s, int frees)
{
    uint32_t *head = s->head, n = s->g->n_lifetimes;
    const uint32_t *part = s->part[frees];
    memset(head, 0, ((size_t)s->n_parts + 2) * sizeof *head);
    for (uint32_t i = 0; i < n; i++) {
        if (part[i] == SC_NONE)
            put(s, i, frees);
        else if (part[i] != NOT_AT_ALL)
            head[part[i] + 2]++;
    }
    for (uint32_t k = 0; k < s->n_parts; k++) head[k + 2] += head[k + 1];
    for (uint32_t i = 0; i < n; i++)
        if (part[i] < NOT_AT_ALL) s->by_part[head[part[i] + 1]++] = i;
    for (uint32_t k = 0; k < head[s->n_parts]; k++)
        put(s, s->by_part[k], frees);
}

/* Where tensors stand, and how many in each list. */
static void count(state *s)
{
    const sc_graph *g = s->g;
    for (uint32_t i = 0; i < g->n_lifetimes; i++) {
        const sc_lifetime *t = &g->lifetime[i];
        s->part[0][i] = t->bytes ? t->first : NOT_AT_ALL;
        s->part[1][i] = t->bytes ? last_of(s, t) : NOT_AT_ALL;
        for (int frees = 0; frees < 2; frees++) {
            uint32_t part = s->part[frees][i];
            if (part != NOT_AT_ALL)
                s->list[list_of(s, t->device, part, frees) + 2]++;
        }
    }
    for (size_t l = 0; l < (size_t)g->n_classes * LISTS; l++)
        s->list[l + 2] += s->list[l + 1];
}

/* ---- merging --------------------------------------------------------------- */

static bool is_before(const mem_event *a, const mem_event *b)
{
    return a->t != b->t ? a->t < b->t : a->order < b->order;
}

static bool is_first(const mem_event *a, const mem_event *b)
{
    if (a->t != b->t) return a->t < b->t;
    return a->order != b->order ? a->order < b->order : a->tensor < b->tensor;
}

/* End of what is in order from `at` on. */
static uint32_t in_order(const mem_event *e, uint32_t n, uint32_t at)
{
    while (++at < n && is_first(&e[at - 1], &e[at])) continue;
    return at < n ? at : n;
}

/* Every two neighbours that are in order each as one; how many are left. */
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

/* A list that is not in order has few places where it is not: it is merged from
 * what lies between them.  `other` has as much room. */
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

/* Of all but `but` the list that goes on first; SC_NONE: there is none. */
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
        do {
            *out++ = *r->at++;
        } while (r->at < r->end && (!next || !is_before(next, r->at)));
        if (r->at == r->end) *r = from[--n];
        at = other == n ? at : other;
    }
    return out;
}

static bool merge_all(state *s, mem_events *out)
{
    uint32_t n_classes = s->g->n_classes;
    size_t lists = (size_t)n_classes * LISTS;
    mem_event *to = SC_RAW_N(s->a, mem_event, s->list[lists]);
    out->at = to;
    out->first = SC_NEW_N(s->a, uint32_t, (size_t)n_classes + 1);
    if (!out->at || !out->first) return false;
    for (uint32_t d = 0; d < n_classes; d++) {
        run from[LISTS];
        uint32_t n = 0;
        const uint32_t *list = s->list + (size_t)d * LISTS;
        for (uint32_t l = 0; l < LISTS; l++) {
            mem_event *e = s->event + list[l];
            if (list[l] == list[l + 1]) continue;
            sort(e, list[l + 1] - list[l], to);
            from[n++] = (run){e, s->event + list[l + 1]};
        }
        to = merge(from, n, to);
        out->first[d + 1] = (uint32_t)(to - out->at);
    }
    return true;
}

sc_status mem_events_list(const sc_graph *g, const sc_result *r, sc_arena *a,
                          mem_events *out, sc_err *err)
{
    uint32_t n = g->n_lifetimes;
    if (n > SC_NONE / 2 || g->n_classes > SC_NONE / LISTS)
        return sc_error(err, SC_EINPUT, SC_C_TOO_BIG, sc_pos_none(), NULL,
                        "more than %u tensors, or %u classes", SC_NONE / 2,
                        SC_NONE / LISTS);
    uint32_t n_parts = sc_part_first(g, g->n_ops);
    state s = {.g = g,
               .r = r,
               .a = a,
               .n_parts = n_parts,
               .start = r->start,
               .end = r->end,
               .part = {SC_RAW_N(a, uint32_t, n), SC_RAW_N(a, uint32_t, n)},
               .by_part = SC_RAW_N(a, uint32_t, n),
               .head = SC_RAW_N(a, uint32_t, (size_t)n_parts + 2),
               .list = SC_NEW_N(a, uint32_t, (size_t)g->n_classes * LISTS + 2)};
    if (!s.part[0] || !s.part[1] || !s.by_part || !s.head || !s.list ||
        !find_parts(&s))
        return sc_error_nomem(err);
    count(&s);
    s.event = SC_RAW_N(a, mem_event, s.list[(size_t)g->n_classes * LISTS + 1]);
    if (!s.event) return sc_error_nomem(err);
    fill(&s, 0);
    fill(&s, 1);
    return merge_all(&s, out) ? SC_OK : sc_error_nomem(err);
}
