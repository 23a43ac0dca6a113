/* SPDX-License-Identifier: Apache-2.0 */
/* world.c - memory, the queue of events, and the loop over them. */
#include "sim/world.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void *sim_mem_alloc(sim_world *w, size_t bytes)
{
    void *p = sc_blocks_alloc(&w->blocks, bytes);
    if (p) return memset(p, 0, bytes);
    if (w->status == SC_OK) w->status = sc_error_nomem(w->err);
    memset(w->scratch, 0, sizeof w->scratch);
    return bytes <= sizeof w->scratch ? w->scratch : NULL;
}

void sim_mem_free(sim_world *w, void *p, size_t bytes)
{
    if (p != (void *)w->scratch) sc_blocks_free(&w->blocks, p, bytes);
}

void sim_warn(sim_world *w, uint32_t what, const char *fmt, ...)
{
    if (w->warned >> what & 1) return;
    w->warned |= 1u << what;
    char line[400];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    const char *all = sc_sprintf(w->a, "%swarning: %s\n",
                                 w->warnings ? w->warnings : "", line);
    if (all) w->warnings = all;
}

/* ---- the queue --------------------------------------------------------- */

static void too_late(sim_world *w, uint32_t rank)
{
    char file[SIM_PATH];
    if (w->status == SC_OK)
        w->status = sc_error(w->err, SC_EINPUT, SC_C_RANGE,
                             sim_rank_pos(w->w, rank, file, sizeof file),
                             "check durations, sizes and bandwidths",
                             "rank %u: a task ends after more than 26 days, "
                             "the limit of a simulation",
                             rank);
}

static bool grow(sim_world *w, sim_bucket *b)
{
    uint32_t cap = b->cap ? 2 * b->cap : 32;
    sim_item *v =
        b->cap < UINT32_MAX / 2 ? sim_mem_alloc(w, cap * sizeof *v) : NULL;
    if (w->status != SC_OK || !v) return false;
    if (b->n) memcpy(v, b->item, b->n * sizeof *v);
    sim_mem_free(w, b->item, b->cap * sizeof *v);
    b->item = v;
    b->cap = cap;
    return true;
}

static void push_in(sim_world *w, sim_item x)
{
    sim_queue *q = &w->q;
    unsigned b = radix_bucket(&q->order, x.due);
    sim_bucket *to = &q->bucket[b];
    if (to->n == to->cap && !grow(w, to)) return;
    to->item[to->n++] = x;
    radix_fill(&q->order, b);
}

void sim_push(sim_world *w, sim_event *e, sc_time due)
{
    if (due < w->q.order.now || due > SC_TIME_MAX / 4) {
        too_late(w, e->rank < w->n_ranks ? w->rank[e->rank].id : 0);
        due = w->q.order.now;
    }
    e->due = due;
    push_in(w, (sim_item){due, e});
}

/* Events keep their order of insertion: a bucket is redistributed before any
 * new event of the same time can be added. */
static void advance(sim_world *w)
{
    sim_queue *q = &w->q;
    unsigned b = radix_lowest(&q->order);
    sim_bucket *from = &q->bucket[b];
    sc_time min = from->item[0].due;
    for (uint32_t i = 1; i < from->n; i++)
        if (from->item[i].due < min) min = from->item[i].due;
    radix_empty(&q->order, b, min);
    for (uint32_t i = 0; i < from->n; i++) push_in(w, from->item[i]);
    from->n = 0;
}

static bool sim_pending(const sim_world *w)
{
    return w->q.taken < w->q.bucket[0].n;
}

static sim_event *sim_get(sim_world *w)
{
    sim_queue *q = &w->q;
    if (!sim_pending(w)) {
        q->taken = q->bucket[0].n = 0;
        if (!q->order.full) return NULL;
        advance(w);
        if (!sim_pending(w)) return NULL; /* out of memory */
    }
    return q->bucket[0].item[q->taken++].event;
}

/* ---- calls that a rank schedules for itself ---------------------------- */

static sim_batch *batch_at(sim_world *w, sim_rank *r, sc_time due)
{
    for (sim_batch *b = r->batches; b; b = b->next)
        if (b->e.due == due) return b;
    sim_batch *b = sim_mem_alloc(w, sizeof *b);
    b->e.kind = SIM_EV_BATCH;
    b->e.rank = (uint32_t)(r - w->rank);
    b->next = r->batches;
    r->batches = b;
    sim_push(w, &b->e, due);
    return b;
}

void sim_later(sim_world *w, sim_rank *r, sc_time delay, uint32_t kind,
               void *what, uint64_t size, uint32_t task)
{
    if (w->status != SC_OK) return;
    if (delay < 0 || delay > SC_TIME_MAX / 4 - w->q.order.now) {
        too_late(w, r->id);
        return;
    }
    sim_batch *b = batch_at(w, r, w->q.order.now + delay);
    sim_call *c = sim_mem_alloc(w, sizeof *c);
    if (w->status != SC_OK) return;
    c->kind = kind;
    c->what = what;
    c->size = size;
    c->task = task;
    if (b->last)
        b->last->next = c;
    else
        b->first = c;
    b->last = c;
}

static void call(sim_world *w, sim_rank *r, sim_call *c)
{
    switch (c->kind) {
    case SIM_CALL_TASK: sim_task_done(w, r, c->task); break;
    case SIM_CALL_BUNDLE: sim_bundle_call(w, r, c); break;
    case SIM_CALL_POOL: sim_pool_next(w, c); break;
    case SIM_CALL_CUSTOM: sim_custom_done(w, c->what, c->task); break;
    case SIM_CALL_BUS: sim_bus_call(w, r, c); break;
    }
}

/* Calls that are added for the present time while the batch runs join it. */
static void run_batch(sim_world *w, sim_batch *b)
{
    sim_rank *r = &w->rank[b->e.rank];
    while (b->first && w->status == SC_OK) {
        sim_call *c = b->first;
        call(w, r, c);
        b->first = c->next;
        sim_mem_free(w, c, sizeof *c);
    }
    for (sim_batch **p = &r->batches; *p; p = &(*p)->next)
        if (*p == b) {
            *p = b->next;
            break;
        }
    sim_mem_free(w, b, sizeof *b);
}

sc_time sim_ns(const sim_world *w, double ns)
{
    sc_time q = w->rules->quantum;
    double units = ns * (1000.0 / (double)q); /* exact for whole ns */
    if (!(units > 0)) return 0;
    if (units >= 4e18 / (double)q) return SC_TIME_MAX / 2;
    return (sc_time)units * q;
}

static sc_status too_many_events(const sim_world *w)
{
    return sc_error(w->err, SC_EINPUT, SC_C_TOO_BIG, (sc_pos){0}, NULL,
                    "more than %llu events",
                    (unsigned long long)w->o->max_events);
}

/* ---- machines with a clock from outside -------------------------------- */

void sim_ticker_resolve(sim_world *w, sim_ticker *x)
{
    sc_time due = sc_flows_next(x->flows);
    if (due == SC_TIME_MAX || due == x->due) return;
    sim_event *e = sim_mem_alloc(w, sizeof *e);
    e->kind = x->kind;
    x->due = due;
    sim_push(w, e, due > w->q.order.now ? due : w->q.order.now);
}

/* A tick that was superseded finds no flow that has ended. */
uint32_t sim_ticker_ends(sim_world *w, sim_ticker *x, sim_event *e,
                         const sc_flow_end **end)
{
    sim_mem_free(w, e, sizeof *e);
    x->due = -1;
    uint32_t n = sc_flows_advance(x->flows, w->q.order.now, end);
    if (n != SC_FLOW_NONE) return n;
    if (w->status == SC_OK) w->status = sc_error_nomem(w->err);
    return 0;
}

void sim_loop(sim_world *w)
{
    uint64_t limit = w->o->max_events ? w->o->max_events : UINT64_MAX;
    sim_event *e;
    while (w->status == SC_OK) {
        if (w->together && !sim_pending(w) && sim_rendezvous_resolve(w))
            continue;
        if (w->machine && !sim_pending(w)) sim_machine_resolve(w);
        if (w->tier && !sim_pending(w)) sim_tier_resolve(w);
        if ((e = sim_get(w)) == NULL) {
            if (w->tier && sim_tier_release(w)) continue;
            break;
        }
        if (w->n_events++ >= limit) w->status = too_many_events(w);
        if ((w->n_events & 0xfff) == 0)
            sc_progress_tell(w->o->progress, "events", w->n_events, 0);
        switch (e->kind) {
        case SIM_EV_BATCH: run_batch(w, (sim_batch *)e); break;
        case SIM_EV_HOP: sim_wire_hop(w, (sim_message *)e); break;
        case SIM_EV_ARRIVE: sim_wire_arrive(w, (sim_message *)e); break;
        case SIM_EV_FLOW: sim_machine_flow(w, e); break;
        case SIM_EV_TIER: sim_tier_tick(w, e); break;
        case SIM_EV_FREE: sim_wire_free(w, (sim_link_event *)e); break;
        case SIM_EV_DEFERRED: sim_transfer_resume(w, (sim_deferred *)e); break;
        }
    }
}
