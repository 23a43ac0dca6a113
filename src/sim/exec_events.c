/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exec_events.c - the executor's event loop.
 *
 * An op is in one queue on each of its devices and starts when it is first in
 * all of them.  What is behind it in a queue waits for its completion as for a
 * dependency, so that ready ops need no search and nothing is chosen.
 *
 * At each timestamp everything due completes, then everything that can start
 * does, then the devices whose set of running ops changed get new rates, and
 * ops the least of those of their devices.  An op that shares no link is timed
 * in a slot of the queue, that of its first device; one that does is first
 * timed so for its latency and then is a flow.  The flow machine's next event
 * has a slot, too.
 */
#include "sim/exec.h"

#include <string.h>

typedef enum phase {
    PLAIN,   /* in the queue until it completes */
    LATENCY, /* in the queue until it moves */
    ARRIVED, /* is about to move */
    MOVES
} phase;

/* An op in flight, by the slot of its first device. */
typedef struct flight {
    exec_path *path;
    double lost; /* ps beside others, until slot.since */
    phase phase;
    bool marked; /* to be timed anew */
} flight;

typedef struct engine {
    const sc_exec *x;
    const exec_rates *rates;
    exec_net *net;
    sc_exec_result *r;
    sim_radix queue;
    flight *flight;   /* [slots] */
    sc_op *running;   /* [slots] */
    double *rate;     /* [slots] of what runs there, by its device */
    uint32_t *waits;  /* [n_ops] completions it still waits for */
    sc_op *next;      /* [places] op behind it in that queue */
    sc_op *go;        /* [n_ops] wait for nothing more */
    uint32_t *dirty;  /* [n_devices] stack */
    uint32_t *retime; /* [slots] stack of slots whose op is to be timed anew */
    uint8_t *marked;  /* [n_devices] is on that stack */
    uint32_t n_go, n_dirty, n_retime, n_done, ticker;
    bool failed; /* out of memory */
} engine;

static inline uint32_t slot_of(const engine *e, sc_op i, uint32_t place)
{
    return e->x->dev[place] * SC_N_STREAMS + e->x->stream[i];
}

static inline uint32_t home_of(const engine *e, sc_op i)
{
    return slot_of(e, i, e->x->dev_head[i]);
}

/* ---- queues -------------------------------------------------------------- */

/* Op `i` goes to the end of its queues. */
static void join_queues(engine *e, uint32_t *last, sc_op i)
{
    const sc_exec *x = e->x;
    for (uint32_t p = x->dev_head[i]; p < x->dev_head[i + 1]; p++) {
        uint32_t *before = &last[slot_of(e, i, p)];
        if (*before != SC_NONE) {
            e->next[*before] = i;
            e->waits[i]++;
        }
        *before = p;
    }
}

static void link_ops(engine *e, uint32_t *last)
{
    const sc_exec *x = e->x;
    for (uint32_t k = 0; k < x->succ_head[x->n_ops]; k++)
        e->waits[x->succ[k]]++;
    for (sc_op i = 0; i < x->n_ops; i++) {
        if (x->kind[i] != SC_OP_MARK) join_queues(e, last, i);
        if (e->waits[i] == 0) e->go[e->n_go++] = i;
    }
}

static bool engine_init(engine *e, const exec_run *run, sc_arena *a,
                        sc_exec_result *r)
{
    const sc_exec *x = run->x;
    uint32_t slots = x->n_devices * SC_N_STREAMS;
    uint32_t places = x->dev_head[x->n_ops];
    sim_slot *slot = SC_NEW_N(a, sim_slot, (size_t)slots + 1);
    *e = (engine){
        .x = x, .rates = run->rates, .net = run->net, .r = r, .ticker = slots};
    uint32_t *last; /* [slots] last place of the queue */
    if (!slot || !(e->flight = SC_NEW_N(a, flight, slots)) ||
        !(e->running = SC_NEW_N(a, sc_op, slots)) ||
        !(e->rate = SC_NEW_N(a, double, slots)) ||
        !(e->waits = SC_NEW_N(a, uint32_t, x->n_ops)) ||
        !(e->next = SC_NEW_N(a, sc_op, places)) ||
        !(last = SC_NEW_N(a, uint32_t, slots)) ||
        !(e->go = SC_NEW_N(a, sc_op, x->n_ops)) ||
        !(e->dirty = SC_NEW_N(a, uint32_t, x->n_devices)) ||
        !(e->retime = SC_NEW_N(a, uint32_t, slots)) ||
        !(e->marked = SC_NEW_N(a, uint8_t, x->n_devices)))
        return false;
    memset(e->next, 0xff, places * sizeof *e->next);
    memset(last, 0xff, slots * sizeof *last);
    memset(e->running, 0xff, slots * sizeof *e->running);
    for (uint32_t s = 0; s <= slots; s++) slot[s].op = SC_NONE;
    radix_init(&e->queue, slot);
    link_ops(e, last);
    return true;
}

/* ---- completion ---------------------------------------------------------- */

static inline void mark_dirty(engine *e, uint32_t device)
{
    if (e->marked[device]) return;
    e->marked[device] = 1;
    e->dirty[e->n_dirty++] = device;
}

static inline void mark_retime(engine *e, uint32_t home)
{
    if (e->flight[home].marked) return;
    e->flight[home].marked = true;
    e->retime[e->n_retime++] = home;
}

/* Op `i` has completed at `now`: one thing less for op `s` to wait for. */
static inline void release(engine *e, sc_op s, sc_op i, sc_time now)
{
    /* of all that it waits for, the last; of equals, the largest id */
    if (e->r->start[s] < now || i > e->r->cause[s]) e->r->cause[s] = i;
    e->r->start[s] = now;
    if (--e->waits[s] == 0) e->go[e->n_go++] = s;
}

static void complete(engine *e, sc_op i, sc_time now)
{
    const sc_exec *x = e->x;
    e->r->end[i] = now;
    if (now > e->r->makespan) e->r->makespan = now;
    e->n_done++;
    for (uint32_t k = x->succ_head[i]; k < x->succ_head[i + 1]; k++)
        release(e, x->succ[k], i, now);
    for (uint32_t p = x->dev_head[i]; p < x->dev_head[i + 1]; p++) {
        e->r->finish[x->dev[p]] = now;
        if (e->next[p] != SC_NONE) release(e, e->next[p], i, now);
    }
}

/* What has run leaves its devices; what was lost beside others and what on
 * links is told apart. */
static void leave(engine *e, sc_op i, sc_time now)
{
    const sc_exec *x = e->x;
    uint32_t home = home_of(e, i);
    flight *f = &e->flight[home];
    sim_slot *s = &e->queue.slot[home];
    sc_time late = now - e->r->start[i] - x->work[i];
    e->r->overlapped[i] = late;
    if (f->phase == MOVES) {
        f->lost += (1 - s->rate) * (double)(now - s->since);
        if (f->lost < (double)late)
            e->r->overlapped[i] = (sc_time)(f->lost + 0.5);
        e->r->shared[i] = late - e->r->overlapped[i];
        exec_net_free(e->net, x->traffic[i], f->path);
    }
    s->op = SC_NONE;
    for (uint32_t p = x->dev_head[i]; p < x->dev_head[i + 1]; p++) {
        e->running[slot_of(e, i, p)] = SC_NONE;
        mark_dirty(e, x->dev[p]);
    }
    complete(e, i, now);
}

static void complete_due(engine *e, sc_time now)
{
    while (e->queue.head[0] != SC_NONE) {
        uint32_t s = e->queue.head[0];
        radix_unlink(&e->queue, s);
        if (s == e->ticker) continue;
        if (e->flight[s].phase != LATENCY) {
            leave(e, e->queue.slot[s].op, now);
            continue;
        }
        e->flight[s].phase = ARRIVED;
        mark_retime(e, s);
    }
}

static void complete_flows(engine *e, sc_time now)
{
    const sc_flow_end *end;
    uint32_t n = sc_flows_advance(e->net->flows, now, &end);
    e->failed |= n == SC_FLOW_NONE;
    for (uint32_t k = 0; k < n && !e->failed; k++)
        leave(e, (sc_op)end[k].tag, now);
}

/* ---- start --------------------------------------------------------------- */

static void start(engine *e, sc_op i, sc_time now)
{
    const sc_exec *x = e->x;
    if (now == 0) e->r->cause[i] = SC_NONE;
    if (x->work[i] == 0) {
        complete(e, i, now);
        return;
    }
    uint32_t home = home_of(e, i);
    bool moves = exec_net_has(e->net, x, i);
    sim_slot *s = &e->queue.slot[home];
    flight *f = &e->flight[home];
    s->op = i;
    s->since = now;
    s->rate = 0;
    s->left = (double)(moves ? x->latency[i] : x->work[i]);
    f->lost = 0;
    f->phase = !moves ? PLAIN : x->latency[i] > 0 ? LATENCY : ARRIVED;
    for (uint32_t p = x->dev_head[i]; p < x->dev_head[i + 1]; p++) {
        e->running[slot_of(e, i, p)] = i;
        mark_dirty(e, x->dev[p]);
    }
    mark_retime(e, home);
}

/* ---- rates --------------------------------------------------------------- */

/* Rates on one device; ops for which they change are to be timed anew. */
static void rate_device(engine *e, uint32_t device)
{
    uint32_t first = device * SC_N_STREAMS;
    unsigned once = 0, twice = 0; /* kinds running on one, on two streams */
    unsigned kind[SC_N_STREAMS];
    for (unsigned s = 0; s < SC_N_STREAMS; s++) {
        sc_op i = e->running[first + s];
        kind[s] = i != SC_NONE ? exec_kind(e->x, i) : EXEC_N_KINDS;
        if (kind[s] == EXEC_N_KINDS) continue;
        twice |= once & 1u << kind[s];
        once |= 1u << kind[s];
    }
    for (unsigned s = 0; s < SC_N_STREAMS; s++) {
        sc_op i = e->running[first + s];
        if (i == SC_NONE) continue;
        double rate = 1;
        if (kind[s] < EXEC_N_KINDS) {
            unsigned own = 1u << kind[s];
            rate = e->rates->at[kind[s]][(once & ~own) | (twice & own)];
        }
        if (rate == e->rate[first + s]) continue;
        e->rate[first + s] = rate;
        mark_retime(e, home_of(e, i));
    }
}

static void retime(engine *e, uint32_t home, sc_time now)
{
    const sc_exec *x = e->x;
    sim_slot *s = &e->queue.slot[home];
    flight *f = &e->flight[home];
    sc_op i = s->op;
    double rate = 1;
    for (uint32_t p = x->dev_head[i]; p < x->dev_head[i + 1]; p++) {
        double there = e->rate[slot_of(e, i, p)];
        rate = there < rate ? there : rate;
    }
    if (rate == s->rate && f->phase != ARRIVED) return;
    e->r->n_events++;
    f->lost += (1 - s->rate) * (double)(now - s->since);
    if (f->phase == PLAIN || f->phase == LATENCY) {
        sc_time work = f->phase == PLAIN ? x->work[i] : x->latency[i];
        radix_retime(&e->queue, home, work, rate, now);
        return;
    }
    s->since = now;
    s->rate = rate;
    if (f->phase == MOVES) {
        exec_net_rate(e->net, f->path, x->traffic[i], rate);
        return;
    }
    f->phase = MOVES;
    f->path = exec_net_post(e->net, x, i, rate, now);
    e->failed |= !f->path;
}

static void set_rates(engine *e, sc_time now)
{
    while (e->n_dirty) {
        uint32_t d = e->dirty[--e->n_dirty];
        e->marked[d] = 0;
        rate_device(e, d);
    }
    while (e->n_retime) {
        uint32_t home = e->retime[--e->n_retime];
        e->flight[home].marked = false;
        if (e->queue.slot[home].op != SC_NONE) retime(e, home, now);
    }
}

/* ---- the loop ------------------------------------------------------------ */

static void set_ticker(engine *e)
{
    sim_slot *s = &e->queue.slot[e->ticker];
    sc_time next = sc_flows_next(e->net->flows);
    if (s->queued && s->due == next) return;
    if (s->queued) radix_unlink(&e->queue, e->ticker);
    if (next == SC_TIME_MAX) return;
    s->due = next;
    radix_link(&e->queue, e->ticker);
}

static sc_op first_running(const engine *e)
{
    for (uint32_t s = 0; s < e->ticker; s++)
        if (e->running[s] != SC_NONE) return e->running[s];
    return 0;
}

sc_status exec_events(const exec_run *run, sc_arena *a, sc_exec_result *r,
                      sc_err *err)
{
    engine e;
    if (!engine_init(&e, run, a, r)) return sc_error_nomem(err);
    do {
        sc_time now = e.queue.last;
        if (now == SC_TIME_MAX)
            return exec_too_long(e.x, first_running(&e), err);
        complete_due(&e, now);
        if (e.net->flows) complete_flows(&e, now);
        while (e.n_go) start(&e, e.go[--e.n_go], now);
        set_rates(&e, now);
        if (e.net->flows) set_ticker(&e);
        if (e.failed) return sc_error_nomem(err);
    } while (radix_settle(&e.queue));
    r->n_events += e.n_done;
    if (e.n_done == e.x->n_ops) return SC_OK;
    return exec_stopped(e.x, e.n_done, err);
}
