/* SPDX-License-Identifier: Apache-2.0 */
/* memory.c - memory over time, from the lifetimes of tensors. */
#include "sim/memory_alloc.h"
#include "sim/memory_events.h"
#include "sim/sim_memory.h"

#define TOP 16 /* tensors named at the peak */

typedef struct memory {
    const sc_lifetime *tensor;
    const sc_mem_opts *o;
    sc_arena *a;
    mem_events events;
    uint32_t *block; /* [n] */
    uint32_t *until; /* [n] event of its end; SC_NONE: stays */
} memory;

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

/* Finds the tensors that are live after event `peak`. */
static void describe_peak(const memory *m, const mem_event *e, uint32_t n,
                          uint32_t peak, sc_mem_device *d)
{
    for (uint32_t k = 0; k <= peak && k < n; k++) {
        uint32_t i = e[k].tensor;
        if (mem_frees(&e[k]) || m->until[i] <= peak) continue;
        d->by_kind[m->tensor[i].kind] += alloc_rounded(m->tensor[i].bytes);
        add_top(m, d, i);
    }
}

static sc_status run_device(memory *m, uint32_t device, sc_mem_device *d,
                            sc_err *err)
{
    const mem_event *e = m->events.at + m->events.first[device];
    uint32_t n = m->events.first[device + 1] - m->events.first[device],
             peak = 0;
    uint64_t limit = UINT64_MAX, capacity = m->o->capacity;
    alloc x;
    if (m->o->capacity_of) capacity = m->o->capacity_of[device];
    if (capacity > 0)
        limit = capacity > m->o->context ? capacity - m->o->context : 0;
    alloc_init(&x, m->a, limit);
    d->n = n;
    for (uint32_t k = 0; k < n; k++) {
        uint32_t i = e[k].tensor;
        if (mem_frees(&e[k])) {
            x.live -= alloc_rounded(m->tensor[i].bytes);
            alloc_give(&x, m->block[i]);
            m->until[i] = k;
        } else {
            m->until[i] = SC_NONE;
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
    memory m = {.tensor = g->lifetime,
                .o = o,
                .a = &scratch,
                .block = SC_NEW_N(&scratch, uint32_t, g->n_lifetimes),
                .until = SC_NEW_N(&scratch, uint32_t, g->n_lifetimes)};
    sc_mem_device *all = SC_NEW_N(a, sc_mem_device, g->n_classes);
    sc_status s = all && m.block && m.until
                      ? mem_events_list(g, r, &scratch, &m.events, err)
                      : sc_error_nomem(err);
    for (uint32_t d = 0; d < g->n_classes && s == SC_OK; d++) {
        uint32_t events = m.events.first[d + 1] - m.events.first[d];
        all[d].at = SC_NEW_N(a, sc_mem_point, events);
        all[d].top = SC_NEW_N(a, uint32_t, TOP);
        s = all[d].at && all[d].top ? run_device(&m, d, &all[d], err)
                                    : sc_error_nomem(err);
    }
    sc_arena_free(&scratch);
    if (s == SC_OK) *out = all;
    return s;
}
