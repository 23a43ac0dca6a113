/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rounds.c - the engine in which streams start the op that became ready first.
 *
 * "First" is counted in rounds. In each round, every op that is first in all
 * its queues starts: exchanges, then exchanges of gradients, then kernels. Ops
 * that become ready in a round join their queues before the next one, in the
 * order of ids. Times follow from that: an op starts when its predecessors have
 * ended and its streams are free, so an op that is first but waits long blocks
 * those behind it.
 *
 * If a kernel would run during the first gradient exchange of its device that
 * has not ended when the kernel starts, the whole kernel is slowed, but not its
 * latency.
 */
#include "sim/run.h"

#include <stdlib.h>
#include <string.h>

typedef struct rounds {
    const sim_run *run;
    const sc_graph *g;
    sc_result *r;
    uint32_t *waits; /* [n_ops] predecessors that have not ended */
    bool *after;     /* [n_ops] depends on a gradient exchange, or is one */
    sc_op *op_at;    /* [places] */
    uint32_t *next;  /* [places] the next place in the queue */
    uint32_t *head;  /* [slots] first place that has not started */
    uint32_t *last;  /* [slots] last place */
    /* [n_classes] place of the first gradient exchange that had not ended when
     * last looked at */
    uint32_t *live;
    sc_time *clock;  /* [slots] end of the op that started last */
    sc_op *busy;     /* [slots] that op */
    uint32_t *taken; /* [slots] round in which the slot last started one */
    uint32_t *held;  /* [n_classes] round in which gradients are held back */
    sc_op *ready;    /* [n_ops] */
    sc_op *passed;   /* [n_ops] marks to complete */
    sc_op *order;    /* [n_ops] as started */
    uint32_t n_ready, n_passed, n_done;
    uint32_t n_other; /* remaining ops that do not depend on gradients */
    uint32_t round;
    sc_op too_long; /* SC_NONE: no op ends too late */
} rounds;

static inline uint32_t slot_of(const rounds *e, uint32_t place, sc_op i)
{
    return e->g->cls[place] * SC_N_STREAMS + e->g->stream[i];
}

static bool is_grad(const sc_graph *g, sc_op i)
{
    return sim_bit(g, i) == 1u << SIM_GRAD;
}

static bool rounds_init(rounds *e, const sim_run *run, sc_arena *a,
                        sc_result *r)
{
    const sc_graph *g = run->g;
    size_t slots = (size_t)g->n_classes * SC_N_STREAMS;
    uint32_t places = sc_op_place(g, g->n_ops);
    *e = (rounds){.run = run, .g = g, .r = r, .too_long = SC_NONE};
    if (!(e->waits = SC_NEW_N(a, uint32_t, g->n_ops)) ||
        !(e->after = SC_NEW_N(a, bool, g->n_ops)) ||
        !(e->op_at = SC_NEW_N(a, sc_op, places)) ||
        !(e->next = SC_NEW_N(a, uint32_t, places)) ||
        !(e->head = SC_NEW_N(a, uint32_t, slots)) ||
        !(e->last = SC_NEW_N(a, uint32_t, slots)) ||
        !(e->live = SC_NEW_N(a, uint32_t, g->n_classes)) ||
        !(e->clock = SC_NEW_N(a, sc_time, slots)) ||
        !(e->busy = SC_NEW_N(a, sc_op, slots)) ||
        !(e->taken = SC_NEW_N(a, uint32_t, slots)) ||
        !(e->held = SC_NEW_N(a, uint32_t, g->n_classes)) ||
        !(e->ready = SC_NEW_N(a, sc_op, g->n_ops)) ||
        !(e->passed = SC_NEW_N(a, sc_op, g->n_ops)))
        return false;
    memset(e->next, 0xff, places * sizeof *e->next);
    memset(e->head, 0xff, slots * sizeof *e->head);
    memset(e->last, 0xff, slots * sizeof *e->last);
    memset(e->live, 0xff, g->n_classes * sizeof *e->live);
    return true;
}

/* ---- readiness ----------------------------------------------------------- */

static void set_ready(rounds *e, sc_op i)
{
    if (e->g->kind[i] == SC_OP_MARK)
        e->passed[e->n_passed++] = i;
    else
        e->ready[e->n_ready++] = i;
}

static void complete(rounds *e, sc_op i, sc_time end)
{
    const sc_graph *g = e->g;
    sc_result *r = e->r;
    r->end[i] = end;
    if (end > r->makespan) r->makespan = end;
    e->order[e->n_done++] = i;
    for (uint32_t p = sc_op_place(g, i); p < sc_op_place(g, i + 1); p++)
        if (end > r->finish[g->cls[p]]) r->finish[g->cls[p]] = end;
    for (uint32_t k = g->succ_head[i]; k < g->succ_head[i + 1]; k++) {
        sc_op s = g->succ[k];
        if (end > r->start[s] || r->cause[s] == SC_NONE ||
            (end == r->start[s] && i > r->cause[s]))
            r->cause[s] = i;
        if (end > r->start[s]) r->start[s] = end;
        if (--e->waits[s] == 0) set_ready(e, s);
    }
}

static void pass_marks(rounds *e)
{
    while (e->n_passed) {
        sc_op i = e->passed[--e->n_passed];
        if (e->r->start[i] == 0) e->r->cause[i] = SC_NONE;
        complete(e, i, e->r->start[i]);
    }
}

/* Ops that depend on gradients do not count as other work. */
static void prepare(rounds *e)
{
    const sc_graph *g = e->g;
    for (sc_op i = 0; i < g->n_ops; i++) {
        e->r->cause[i] = SC_NONE;
        if (is_grad(g, i)) e->after[i] = true;
        for (uint32_t k = g->succ_head[i]; k < g->succ_head[i + 1]; k++) {
            e->waits[g->succ[k]]++;
            if (e->after[i]) e->after[g->succ[k]] = true;
        }
        e->n_other += !e->after[i] && g->kind[i] != SC_OP_MARK;
        for (uint32_t p = sc_op_place(g, i); p < sc_op_place(g, i + 1); p++)
            e->op_at[p] = i;
    }
    for (sc_op i = 0; i < g->n_ops; i++)
        if (e->waits[i] == 0) set_ready(e, i);
}

static int compare_ops(const void *p, const void *q)
{
    sc_op a = *(const sc_op *)p, b = *(const sc_op *)q;
    return (a > b) - (a < b);
}

static void join_queues(rounds *e)
{
    const sc_graph *g = e->g;
    if (e->n_ready > 1)
        qsort(e->ready, e->n_ready, sizeof *e->ready, compare_ops);
    for (uint32_t k = 0; k < e->n_ready; k++) {
        sc_op i = e->ready[k];
        for (uint32_t p = sc_op_place(g, i); p < sc_op_place(g, i + 1); p++) {
            uint32_t s = slot_of(e, p, i);
            if (e->last[s] != SC_NONE) e->next[e->last[s]] = p;
            if (e->head[s] == SC_NONE) e->head[s] = p;
            if (g->stream[i] == SC_S_GRAD && e->live[g->cls[p]] == SC_NONE)
                e->live[g->cls[p]] = p;
            e->last[s] = p;
        }
    }
    e->n_ready = 0;
}

/* ---- start --------------------------------------------------------------- */

/* Whether a kernel in [from, to) overlaps the first unfinished gradient
 * exchange of a device. */
static bool overlaps_gradients(rounds *e, uint32_t device, sc_time from,
                               sc_time to)
{
    uint32_t *live = &e->live[device];
    uint32_t head = e->head[device * SC_N_STREAMS + SC_S_GRAD];
    while (*live != head && (e->r->end[e->op_at[*live]] <= from ||
                             !is_grad(e->g, e->op_at[*live])))
        *live = e->next[*live];
    return *live != head && e->r->start[e->op_at[*live]] < to;
}

/* By how much an op that starts at `at` exceeds its work. */
static sc_time slowed_by(rounds *e, sc_op i, sc_time at)
{
    const sc_graph *g = e->g;
    double gamma = e->run->gamma;
    if (!e->run->rules->overlap_whole || !(gamma > 0)) return 0;
    sc_time from = at + g->latency[i], to = at + g->work[i];
    bool slowed = is_grad(g, i) && e->n_other > 0;
    if (g->kind[i] == SC_OP_COMPUTE)
        for (uint32_t p = sc_op_place(g, i); p < sc_op_place(g, i + 1); p++)
            slowed = slowed || overlaps_gradients(e, g->cls[p], from, to);
    if (!slowed) return 0;
    if (is_grad(g, i)) from = at;
    double longer = (double)(to - from) * gamma + 0.5;
    return longer < (double)SC_TIME_MAX ? (sc_time)longer : SC_TIME_MAX;
}

static bool can_start(const rounds *e, sc_op i)
{
    const sc_graph *g = e->g;
    for (uint32_t p = sc_op_place(g, i); p < sc_op_place(g, i + 1); p++) {
        uint32_t s = slot_of(e, p, i);
        if (e->head[s] != p || e->taken[s] == e->round) return false;
        if (is_grad(g, i) && e->held[g->cls[p]] == e->round) return false;
    }
    return true;
}

/* A transfer has started: gradients wait until it ends. */
static void hold_gradients(rounds *e, sc_op i, sc_time end)
{
    const sc_graph *g = e->g;
    for (uint32_t p = sc_op_place(g, i); p < sc_op_place(g, i + 1); p++) {
        uint32_t s = g->cls[p] * SC_N_STREAMS + SC_S_GRAD;
        e->held[g->cls[p]] = e->round;
        if (end <= e->clock[s]) continue;
        e->clock[s] = end;
        e->busy[s] = i;
    }
}

static void start(rounds *e, sc_op i)
{
    const sc_graph *g = e->g;
    sc_time at = e->r->start[i];
    sc_op why = e->r->cause[i];
    for (uint32_t p = sc_op_place(g, i); p < sc_op_place(g, i + 1); p++) {
        uint32_t s = slot_of(e, p, i);
        bool later = e->clock[s] > at;
        if (later || (e->clock[s] == at && at > 0 &&
                      (why == SC_NONE || e->busy[s] > why)))
            why = e->busy[s];
        if (later) at = e->clock[s];
    }
    sc_time room = SC_TIME_MAX - at - g->work[i];
    sc_time longer = room > 0 ? slowed_by(e, i, at) : 0;
    if (longer >= room) {
        e->too_long = i;
        return;
    }
    sc_time end = at + g->work[i] + longer;
    e->r->start[i] = at;
    e->r->cause[i] = at > 0 ? why : SC_NONE;
    e->r->overlapped[i] = longer;
    e->n_other -= !e->after[i];
    for (uint32_t p = sc_op_place(g, i); p < sc_op_place(g, i + 1); p++) {
        uint32_t s = slot_of(e, p, i);
        e->head[s] = e->next[p];
        e->clock[s] = end;
        e->busy[s] = i;
        e->taken[s] = e->round;
    }
    if (g->kind[i] == SC_OP_P2P && e->run->rules->transfers_first)
        hold_gradients(e, i, end);
    complete(e, i, end);
}

static bool start_stream(rounds *e, unsigned stream)
{
    bool any = false;
    for (uint32_t d = 0; d < e->g->n_classes && e->too_long == SC_NONE; d++) {
        uint32_t p = e->head[d * SC_N_STREAMS + stream];
        /* an op of several devices is started from its first */
        if (p == SC_NONE || sc_op_place(e->g, e->op_at[p]) != p) continue;
        if (!can_start(e, e->op_at[p])) continue;
        start(e, e->op_at[p]);
        any = true;
    }
    return any;
}

sc_status sim_rounds(const sim_run *run, sc_arena *a, sc_op *order,
                     sc_result *r, sc_err *err)
{
    static const uint8_t sequence[SC_N_STREAMS] = {
        SC_S_COMM, SC_S_P2P,  SC_S_P2P_ODD, SC_S_COPY,
        SC_S_HOST, SC_S_GRAD, SC_S_COMPUTE};
    rounds e;
    if (!rounds_init(&e, run, a, r)) return sc_error_nomem(err);
    e.order = order;
    prepare(&e);
    for (bool any = true; any && e.too_long == SC_NONE;) {
        any = false;
        e.round++;
        pass_marks(&e);
        join_queues(&e);
        for (unsigned k = 0; k < SC_N_STREAMS; k++)
            any |= start_stream(&e, sequence[k]);
        any |= e.n_ready > 0 || e.n_passed > 0;
    }
    r->n_events = e.n_done;
    if (e.too_long != SC_NONE) return sim_too_long(e.g, e.too_long, err);
    if (e.n_done == e.g->n_ops) return SC_OK;
    return sim_stopped(e.g, e.n_done, err);
}
