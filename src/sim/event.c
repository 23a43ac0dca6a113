/* SPDX-License-Identifier: Apache-2.0 */
/*
 * event.c - the event loop.
 *
 * A slot is one stream of one class: it holds the op that runs there.  At
 * each timestamp everything due completes, then everything ready starts (and,
 * where it takes no time, completes), then the classes whose set of running
 * ops changed get new rates.  An op is re-timed only if its rate differs:
 *
 *   left -= (now - since) * rate;  since = now;  rate = new rate;
 *   due = now + ceil(left / rate)
 *
 * in double precision (exact while nothing but rate 1 applies).  Nothing is
 * chosen, as streams are in-order queues, so the order within a timestamp
 * can't show in the result.
 */
#include "sim/radix.h"
#include "sim/sim.h"

#include <string.h>

typedef struct engine {
    const sc_graph *g;
    sc_result *r;
    sim_radix queue;
    uint32_t *waits; /* [n_ops] completions it still waits for */
    sc_op *next;     /* [n_ops] op behind it in its stream */
    sc_op *ready;    /* [n_ops] stack */
    uint32_t *dirty; /* [n_classes] stack of classes to re-time */
    uint8_t *marked; /* [n_classes] is on that stack */
    uint32_t n_ready, n_dirty, n_done;
    /* rate of a kind beside a set of kinds, bit per kind up to SC_OP_MEM */
    double rate[SC_N_OP_KINDS][1 << (SC_OP_MEM + 1)];
} engine;

static void fill_rates(engine *e, const sc_sim_opts *o)
{
    for (unsigned x = 0; x < SC_N_OP_KINDS; x++) {
        for (unsigned set = 0; set < 1u << (SC_OP_MEM + 1); set++) {
            double least = 1;
            for (unsigned y = 0; y <= SC_OP_MEM && x <= SC_OP_MEM; y++)
                if ((set >> y & 1) && o->rate[x][y] < least)
                    least = o->rate[x][y];
            e->rate[x][set] = least;
        }
    }
}

/* `last` is room for one op per slot. */
static void link_streams(engine *e, sc_op *last, size_t slots)
{
    const sc_graph *g = e->g;
    memset(last, 0xff, slots * sizeof *last);
    for (sc_op i = 0; i < g->n_ops; i++) {
        e->waits[i] = g->n_preds[i];
        e->next[i] = SC_NONE;
        if (g->kind[i] == SC_OP_MARK) continue;
        sc_op *l = &last[(size_t)g->cls[i] * SC_N_STREAMS + g->stream[i]];
        if (*l != SC_NONE) {
            e->next[*l] = i;
            e->waits[i]++;
        }
        *l = i;
    }
}

static bool engine_init(engine *e, const sc_graph *g, const sc_sim_opts *o,
                        sc_arena *a, sc_result *r)
{
    size_t slots = (size_t)g->n_classes * SC_N_STREAMS;
    sim_slot *slot = SC_NEW_N(a, sim_slot, slots);
    e->g = g;
    e->r = r;
    e->n_ready = e->n_dirty = e->n_done = 0;
    if (!slot || !(e->waits = SC_NEW_N(a, uint32_t, g->n_ops)) ||
        !(e->next = SC_NEW_N(a, sc_op, g->n_ops)) ||
        !(e->ready = SC_NEW_N(a, sc_op, g->n_ops)) ||
        !(e->dirty = SC_NEW_N(a, uint32_t, g->n_classes)) ||
        !(e->marked = SC_NEW_N(a, uint8_t, g->n_classes)))
        return false;
    sc_op *last = SC_NEW_N(a, sc_op, slots);
    if (!last) return false;
    fill_rates(e, o);
    link_streams(e, last, slots);
    for (size_t s = 0; s < slots; s++) slot[s].op = SC_NONE;
    radix_init(&e->queue, slot);
    for (sc_op i = 0; i < g->n_ops; i++)
        if (e->waits[i] == 0) e->ready[e->n_ready++] = i;
    return true;
}

static inline void mark_dirty(engine *e, uint32_t cls)
{
    if (e->marked[cls]) return;
    e->marked[cls] = 1;
    e->dirty[e->n_dirty++] = cls;
}

/* Op `i` has completed at `now`: one thing less to wait for. */
static inline void release(engine *e, sc_op s, sc_op i, sc_time now)
{
    /* of all that it waits for, the last; of equals, the largest id */
    if (e->r->start[s] < now || i > e->r->cause[s]) e->r->cause[s] = i;
    e->r->start[s] = now;
    if (--e->waits[s] == 0) e->ready[e->n_ready++] = s;
}

static inline void complete(engine *e, sc_op i, sc_time now)
{
    const sc_graph *g = e->g;
    e->r->end[i] = now;
    e->r->finish[g->cls[i]] = now;
    e->n_done++;
    for (uint32_t k = g->succ_head[i]; k < g->succ_head[i + 1]; k++)
        release(e, g->succ[k], i, now);
    if (e->next[i] != SC_NONE) release(e, e->next[i], i, now);
}

static inline void start(engine *e, sc_op i, sc_time now)
{
    const sc_graph *g = e->g;
    if (now == 0) e->r->cause[i] = SC_NONE;
    if (g->work[i] == 0) {
        complete(e, i, now);
        return;
    }
    sim_slot *x =
        &e->queue.slot[(size_t)g->cls[i] * SC_N_STREAMS + g->stream[i]];
    x->op = i;
    x->since = now;
    x->rate = 0;
    x->left = (double)g->work[i];
    x->bit = (uint8_t)(1u << g->kind[i] & ((2u << SC_OP_MEM) - 1));
    mark_dirty(e, g->cls[i]);
}

static inline void retime(engine *e, uint32_t s, double rate, sc_time now)
{
    sc_time work = e->g->work[e->queue.slot[s].op];
    radix_retime(&e->queue, s, work, rate, now);
    e->r->n_events++;
}

static inline void retime_class(engine *e, uint32_t cls, sc_time now)
{
    uint32_t first = cls * SC_N_STREAMS;
    const sim_slot *x = &e->queue.slot[first];
    unsigned once = 0, twice = 0; /* kinds running on one, on two streams */
    for (unsigned s = 0; s < SC_N_STREAMS; s++) {
        unsigned bit = x[s].op != SC_NONE ? x[s].bit : 0;
        twice |= once & bit;
        once |= bit;
    }
    for (unsigned s = 0; s < SC_N_STREAMS; s++) {
        if (x[s].op == SC_NONE) continue;
        unsigned beside = (once & ~x[s].bit) | (twice & x[s].bit);
        double rate = e->rate[e->g->kind[x[s].op]][beside];
        if (rate != x[s].rate) retime(e, first + s, rate, now);
    }
}

static void complete_due(engine *e, sc_time now)
{
    while (e->queue.head[0] != SC_NONE) {
        uint32_t s = e->queue.head[0];
        sc_op i = e->queue.slot[s].op;
        radix_unlink(&e->queue, s);
        e->queue.slot[s].op = SC_NONE;
        mark_dirty(e, e->g->cls[i]);
        complete(e, i, now);
    }
}

sc_status sim_events(const sc_graph *g, const sc_sim_opts *o, sc_arena *a,
                     sc_result *r, sc_err *err)
{
    engine e;
    if (g->n_classes > SC_NONE / SC_N_STREAMS)
        return sc_error(err, SC_EINPUT, SC_C_TOO_BIG, sc_pos_none(), NULL,
                        "more than %u classes", SC_NONE / SC_N_STREAMS);
    if (!engine_init(&e, g, o, a, r)) return sc_error_nomem(err);
    do {
        sc_time now = e.queue.last;
        if (now == SC_TIME_MAX)
            return sim_too_long(g, e.queue.slot[e.queue.head[0]].op, err);
        complete_due(&e, now);
        while (e.n_ready) start(&e, e.ready[--e.n_ready], now);
        while (e.n_dirty) {
            uint32_t cls = e.dirty[--e.n_dirty];
            e.marked[cls] = 0;
            retime_class(&e, cls, now);
        }
    } while (radix_settle(&e.queue));
    r->n_events += e.n_done;
    if (e.n_done == g->n_ops) return SC_OK;
    return sc_error(err, SC_EBUG, SC_C_BUG, sc_pos_none(), NULL,
                    "the engine stopped after %u of %u ops", e.n_done,
                    g->n_ops);
}
