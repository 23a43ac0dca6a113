/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory.c - memory over time, from the lifetimes of tensors.
 *
 * At one moment frees come first, then allocations in the order of their ops,
 * then frees of what lived for that moment only.  What is always there comes
 * before everything.
 */
#include <stepcast/sim_memory.h>

#include "sim/memory_alloc.h"

#include <stdlib.h>
#include <string.h>

#define TOP 16 /* tensors named at the peak */

typedef enum turn { STANDING, FREED, ALLOCATED, FREED_AT_ONCE } turn;

typedef struct event {
    sc_time t;
    uint64_t order; /* turn, then op */
    uint32_t tensor;
    bool frees;
} event;

typedef struct memory {
    const sc_lifetime *tensor;
    uint32_t n;
    const sc_mem_opts *o;
    sc_arena *a;
    event *event;    /* by device, then time */
    uint32_t *first; /* [n_classes + 1] into event */
    uint32_t *block; /* [n] */
    uint32_t *until; /* [n] event of its end; SC_NONE: stays */
} memory;

/* ---- events -------------------------------------------------------------- */

static uint64_t order_of(turn at, sc_op op)
{
    return (uint64_t)at << 32 | op;
}

static uint32_t events_of(const sc_result *r, const sc_lifetime *t,
                          uint32_t tensor, event out[2])
{
    sc_time from = 0, to = 0;
    if (t->bytes == 0) return 0;
    out[0] = (event){.order = order_of(STANDING, 0), .tensor = tensor};
    if (t->first != SC_NONE) {
        from = r->start[t->first];
        out[0].t = from;
        out[0].order = order_of(ALLOCATED, t->first);
    }
    if (t->n_last == 0) return 1;
    for (uint32_t k = 0; k < t->n_last; k++)
        if (r->end[t->last[k]] > to) to = r->end[t->last[k]];
    if (to < from) to = from;
    out[1] = (event){.t = to, .tensor = tensor, .frees = true};
    out[1].order = order_of(to > from ? FREED : FREED_AT_ONCE, tensor);
    return 2;
}

static int compare_events(const void *p, const void *q)
{
    const event *a = p, *b = q;
    if (a->t != b->t) return a->t < b->t ? -1 : 1;
    if (a->order != b->order) return a->order < b->order ? -1 : 1;
    return (a->tensor > b->tensor) - (a->tensor < b->tensor);
}

/* Runs of one kind of events, one for each device. */
typedef struct runs {
    event *at;
    uint32_t *first; /* [n_classes + 1] */
} runs;

/* Allocations mostly come in order. */
static void sort(event *e, uint32_t n)
{
    uint32_t k = 1;
    while (k < n && compare_events(&e[k - 1], &e[k]) <= 0) k++;
    if (k < n) qsort(e, n, sizeof *e, compare_events);
}

/* First (0) or second (1) events of all tensors. */
static bool fill_runs(const memory *m, const sc_graph *g, const sc_result *r,
                      uint32_t which, runs *out)
{
    event e[2];
    out->at = SC_NEW_N(m->a, event, m->n);
    out->first = SC_NEW_N(m->a, uint32_t, (size_t)g->n_classes + 2);
    if (!out->at || !out->first) return false;
    for (uint32_t i = 0; i < m->n; i++) {
        const sc_lifetime *t = &m->tensor[i];
        bool has = t->bytes > 0 && (which == 0 || t->n_last > 0);
        out->first[t->device + 2] += has;
    }
    for (uint32_t d = 0; d < g->n_classes; d++)
        out->first[d + 2] += out->first[d + 1];
    for (uint32_t i = 0; i < m->n; i++)
        if (events_of(r, &m->tensor[i], i, e) > which)
            out->at[out->first[m->tensor[i].device + 1]++] = e[which];
    for (uint32_t d = 0; d < g->n_classes; d++)
        sort(out->at + out->first[d], out->first[d + 1] - out->first[d]);
    return true;
}

static sc_status list_events(memory *m, const sc_graph *g, const sc_result *r,
                             sc_err *err)
{
    runs from, to;
    if (m->n > SC_NONE / 2)
        return sc_error(err, SC_EINPUT, SC_C_TOO_BIG, sc_pos_none(), NULL,
                        "more than %u tensors", SC_NONE / 2);
    m->event = SC_NEW_N(m->a, event, 2 * (size_t)m->n);
    m->first = SC_NEW_N(m->a, uint32_t, (size_t)g->n_classes + 1);
    m->block = SC_NEW_N(m->a, uint32_t, m->n);
    m->until = SC_NEW_N(m->a, uint32_t, m->n);
    if (!m->event || !m->first || !m->block || !m->until ||
        !fill_runs(m, g, r, 0, &from) || !fill_runs(m, g, r, 1, &to))
        return sc_error_nomem(err);
    uint32_t n = 0;
    for (uint32_t d = 0; d < g->n_classes; d++) {
        uint32_t i = from.first[d], j = to.first[d];
        while (i < from.first[d + 1] || j < to.first[d + 1]) {
            bool frees = i == from.first[d + 1] ||
                         (j < to.first[d + 1] &&
                          compare_events(&to.at[j], &from.at[i]) < 0);
            m->event[n++] = frees ? to.at[j++] : from.at[i++];
        }
        m->first[d + 1] = n;
    }
    return SC_OK;
}

/* ---- one device ---------------------------------------------------------- */

/* Keeps the largest, of equals the first. */
static void add_top(const memory *m, sc_mem_device *d, uint32_t tensor)
{
    uint64_t bytes = m->tensor[tensor].bytes;
    uint32_t at = d->n_top;
    if (at == TOP && m->tensor[d->top[TOP - 1]].bytes >= bytes) return;
    if (at < TOP) d->n_top++;
    if (at == TOP) at--;
    for (; at > 0 && m->tensor[d->top[at - 1]].bytes < bytes; at--)
        d->top[at] = d->top[at - 1];
    d->top[at] = tensor;
}

/* What is there after event `peak`. */
static void describe_peak(const memory *m, const event *e, uint32_t n,
                          uint32_t peak, sc_mem_device *d)
{
    for (uint32_t k = 0; k <= peak && k < n; k++) {
        uint32_t i = e[k].tensor;
        if (e[k].frees || m->until[i] <= peak) continue;
        d->by_kind[m->tensor[i].kind] += alloc_rounded(m->tensor[i].bytes);
        add_top(m, d, i);
    }
}

static sc_status run_device(memory *m, uint32_t device, sc_mem_device *d,
                            sc_err *err)
{
    const event *e = m->event + m->first[device];
    uint32_t n = m->first[device + 1] - m->first[device], peak = 0;
    uint64_t limit = UINT64_MAX, capacity = m->o->capacity;
    alloc x;
    if (m->o->capacity_of) capacity = m->o->capacity_of[device];
    if (capacity > 0)
        limit = capacity > m->o->context ? capacity - m->o->context : 0;
    alloc_init(&x, m->a, limit);
    d->n = n;
    for (uint32_t k = 0; k < n; k++)
        if (!e[k].frees) m->until[e[k].tensor] = SC_NONE;
    for (uint32_t k = 0; k < n; k++) {
        uint32_t i = e[k].tensor;
        if (e[k].frees) {
            x.live -= alloc_rounded(m->tensor[i].bytes);
            alloc_give(&x, m->block[i]);
            m->until[i] = k;
        } else {
            m->block[i] = alloc_take(&x, m->tensor[i].bytes);
            if (m->block[i] == ALLOC_NONE) return sc_error_nomem(err);
        }
        d->at[k] = (sc_mem_point){e[k].t, x.live, x.reserved};
        if (x.reserved > d->peak_reserved) d->peak_reserved = x.reserved;
        if (x.live <= d->peak_live) continue;
        d->peak_live = x.live;
        d->peak_t = e[k].t;
        peak = k;
    }
    describe_peak(m, e, n, peak, d);
    d->fits = d->peak_reserved <= limit &&
              (capacity == 0 || m->o->context <= capacity);
    return SC_OK;
}

sc_status sc_memory_run(const sc_graph *g, const sc_result *r,
                        const sc_mem_opts *o, sc_arena *a, sc_mem_device **out,
                        sc_err *err)
{
    sc_arena scratch;
    sc_arena_init(&scratch, 0);
    memory m = {
        .tensor = g->lifetime, .n = g->n_lifetimes, .o = o, .a = &scratch};
    sc_mem_device *all = SC_NEW_N(a, sc_mem_device, g->n_classes);
    sc_status s = all ? list_events(&m, g, r, err) : sc_error_nomem(err);
    for (uint32_t d = 0; d < g->n_classes && s == SC_OK; d++) {
        uint32_t events = m.first[d + 1] - m.first[d];
        all[d].at = SC_NEW_N(a, sc_mem_point, events);
        all[d].top = SC_NEW_N(a, uint32_t, TOP);
        s = all[d].at && all[d].top ? run_device(&m, d, &all[d], err)
                                    : sc_error_nomem(err);
    }
    sc_arena_free(&scratch);
    if (s == SC_OK) *out = all;
    return s;
}
