/* SPDX-License-Identifier: Apache-2.0 */
/*
 * event.c - the event loop.
 *
 * A slot is one stream of one class and holds the op that runs there. An op is
 * in one queue on each of its classes and starts when it is first in all of
 * them: its successor in a queue waits for it as for a dependency. Ready ops
 * therefore need no search, and nothing is ever chosen.
 *
 * At each timestamp everything due completes, then everything ready starts (and
 * completes, if it takes no time), then the classes whose set of running ops
 * changed get new rates. An op is re-timed only if its rate differs:
 *
 *   left -= (now - since) * rate;  since = now;  rate = new rate;
 *   due = now + ceil(left / rate)
 *
 * in double precision (exact while only rate 1 applies).
 *
 * Most ops are plain: they run on one class and share no link. An op on several
 * classes has the least of their rates and is timed in its home, the slot of
 * its first class. An op that shares links is timed like this for its latency
 * and is a flow afterwards. The flow machine's next event has a slot, too.
 */
#include "sim/parts.h"

#include <string.h>

typedef enum phase {
    PLAIN,
    JOINED,  /* has several parts, otherwise plain */
    TICKER,  /* the flow machine's slot */
    SEVERAL, /* on several classes, in the queue until it completes */
    LATENCY, /* in the queue until it moves */
    ARRIVED, /* its latency is over */
    MOVES
} phase;

/* Further state of an op that is not plain, at its home. */
typedef struct flight {
    sim_path *path;
    double lost; /* ps lost to overlap until slot.since */
    bool marked; /* to be timed anew */
} flight;

typedef struct engine {
    const sc_graph *g;
    sc_result *r;
    sim_net *net;
    sim_rates rates;
    const sim_rates *const *of_class; /* as sim_run */
    sim_radix queue;
    uint32_t *waits;  /* [n_ops] completions it still waits for */
    sc_op *next;      /* [places] op behind it in that queue */
    sc_op *ready;     /* [n_ops] stack */
    uint32_t *dirty;  /* [n_classes] stack of classes to re-time */
    uint8_t *marked;  /* [n_classes] is on that stack */
    flight *flight;   /* [slots] */
    double *there;    /* [slots] rate of what is not plain, by its class */
    uint32_t *retime; /* [slots] stack of homes to be timed anew */
    sim_seq *seq;     /* [slots] NULL: no op has parts */
    uint32_t n_ready, n_dirty, n_retime, n_done, ticker;
    sc_time flows_at; /* time to which flows were advanced */
    bool flows_due;   /* the flow machine's event is due */
    bool all_plain;
    bool failed; /* out of memory */
} engine;

static inline uint32_t slot_at(const engine *e, sc_op i, uint32_t place)
{
    return e->g->cls[place] * SC_N_STREAMS + e->g->stream[i];
}

static inline uint32_t home_of(const engine *e, sc_op i)
{
    return slot_at(e, i, sc_op_place(e->g, i));
}

/* ---- queues -------------------------------------------------------------- */

/* Adds op `i`, at `place`, to the end of that queue. */
static inline void join_queue(engine *e, uint32_t *last, sc_op i,
                              uint32_t place)
{
    uint32_t *before = &last[slot_at(e, i, place)];
    if (*before != SC_NONE) {
        e->next[*before] = i;
        e->waits[i]++;
    }
    *before = place;
}

static void link_ops(engine *e, uint32_t *last)
{
    const sc_graph *g = e->g;
    const uint32_t *head = g->cls_head;
    memcpy(e->waits, g->n_preds, g->n_ops * sizeof *e->waits);
    for (sc_op i = 0; i < g->n_ops; i++) {
        bool queued = g->kind[i] != SC_OP_MARK;
        if (!head && queued) join_queue(e, last, i, i);
        for (uint32_t p = head ? head[i] : 1; head && queued && p < head[i + 1];
             p++)
            join_queue(e, last, i, p);
        if (e->waits[i] == 0) e->ready[e->n_ready++] = i;
    }
}

static bool engine_init(engine *e, const sim_run *run, sc_arena *a,
                        sc_result *r)
{
    const sc_graph *g = run->g;
    uint32_t slots = g->n_classes * SC_N_STREAMS;
    uint32_t places = sc_op_place(g, g->n_ops);
    sim_slot *slot = SC_NEW_N(a, sim_slot, (size_t)slots + 1);
    *e = (engine){
        .g = g, .net = run->net, .r = r, .ticker = slots, .flows_at = -1};
    e->rates = *run->rates;
    e->of_class = run->of_class;
    e->all_plain = !g->cls_head && !run->net->flows;
    uint32_t *last; /* [slots] last place of the queue */
    if (!slot || !(e->waits = SC_NEW_N(a, uint32_t, g->n_ops)) ||
        !(e->next = SC_NEW_N(a, sc_op, places)) ||
        !(e->ready = SC_NEW_N(a, sc_op, g->n_ops)) ||
        !(e->dirty = SC_NEW_N(a, uint32_t, g->n_classes)) ||
        !(e->marked = SC_NEW_N(a, uint8_t, g->n_classes)) ||
        !(e->flight = SC_NEW_N(a, flight, slots)) ||
        !(e->there = SC_NEW_N(a, double, slots)) ||
        !(e->retime = SC_NEW_N(a, uint32_t, slots)) ||
        (g->parts && !(e->seq = SC_NEW_N(a, sim_seq, slots))) ||
        !(last = SC_NEW_N(a, uint32_t, slots)))
        return false;
    memset(e->next, 0xff, places * sizeof *e->next);
    memset(last, 0xff, slots * sizeof *last);
    for (uint32_t s = 0; s <= slots; s++) slot[s].op = SC_NONE;
    slot[slots].phase = TICKER;
    radix_init(&e->queue, slot);
    link_ops(e, last);
    return true;
}

/* ---- completion ---------------------------------------------------------- */

static inline void mark_dirty(engine *e, uint32_t cls)
{
    if (e->marked[cls]) return;
    e->marked[cls] = 1;
    e->dirty[e->n_dirty++] = cls;
}

static void mark_retime(engine *e, uint32_t home)
{
    if (e->flight[home].marked) return;
    e->flight[home].marked = true;
    e->retime[e->n_retime++] = home;
}

/* Op `i` has completed at `now`: op `s` waits for one op less. */
static inline void release(engine *e, sc_op s, sc_op i, sc_time now)
{
    /* the cause is the last one; of equals, the largest id */
    if (e->r->start[s] < now || i > e->r->cause[s]) e->r->cause[s] = i;
    e->r->start[s] = now;
    if (--e->waits[s] == 0) e->ready[e->n_ready++] = s;
}

static inline void release_queue(engine *e, uint32_t place, sc_op i,
                                 sc_time now)
{
    e->r->finish[e->g->cls[place]] = now;
    if (e->next[place] != SC_NONE) release(e, e->next[place], i, now);
}

static inline void complete(engine *e, sc_op i, sc_time now)
{
    const sc_graph *g = e->g;
    e->r->end[i] = now;
    e->n_done++;
    for (uint32_t k = g->succ_head[i]; k < g->succ_head[i + 1]; k++)
        release(e, g->succ[k], i, now);
    if (!g->cls_head) {
        release_queue(e, i, i, now);
        return;
    }
    for (uint32_t p = g->cls_head[i]; p < g->cls_head[i + 1]; p++)
        release_queue(e, p, i, now);
}

/* An op that is not plain leaves its classes; time lost to overlap and time
 * lost on links are separated. */
static void leave(engine *e, sc_op i, sc_time now)
{
    const sc_graph *g = e->g;
    uint32_t home = home_of(e, i);
    flight *f = &e->flight[home];
    const sim_slot *s = &e->queue.slot[home];
    if (s->phase == MOVES) {
        sc_time late = now - e->r->start[i] - g->work[i];
        f->lost += (1 - s->rate) * (double)(now - s->since);
        if (f->lost < (double)late)
            e->r->shared[i] = late - (sc_time)(f->lost + 0.5);
        sim_net_free(e->net, g->traffic[i], f->path);
    }
    for (uint32_t p = sc_op_place(g, i); p < sc_op_place(g, i + 1); p++) {
        e->queue.slot[slot_at(e, i, p)].op = SC_NONE;
        mark_dirty(e, g->cls[p]);
    }
    complete(e, i, now);
}

static void complete_due(engine *e, sc_time now)
{
    while (e->queue.head[0] != SC_NONE) {
        uint32_t s = e->queue.head[0];
        sim_slot *x = &e->queue.slot[s];
        sc_op i = x->op;
        radix_unlink(&e->queue, s);
        if (x->phase == JOINED &&
            !parts_ended(e->g, e->r, x, &e->seq[s], now)) {
            mark_dirty(e, s / SC_N_STREAMS);
        } else if (x->phase <= JOINED) {
            x->op = SC_NONE;
            mark_dirty(e, s / SC_N_STREAMS);
            complete(e, i, now);
        } else if (x->phase == LATENCY) {
            x->phase = ARRIVED;
            mark_retime(e, s);
        } else if (x->phase == TICKER) {
            e->flows_due = true;
        } else {
            leave(e, i, now);
        }
    }
}

static void complete_flows(engine *e, sc_time now)
{
    const sc_flow_end *end;
    e->flows_due = false;
    e->flows_at = now;
    uint32_t n = sc_flows_advance(e->net->flows, now, &end);
    e->failed |= n == SC_FLOW_NONE;
    for (uint32_t k = 0; k < n && !e->failed; k++)
        leave(e, (sc_op)end[k].tag, now);
}

/* ---- start --------------------------------------------------------------- */

/* Starts an op that is not plain, at its home. */
static void start_other(engine *e, sc_op i, uint32_t home, bool moves)
{
    const sc_graph *g = e->g;
    sim_slot *s = &e->queue.slot[home];
    s->phase = !moves ? SEVERAL : g->latency[i] > 0 ? LATENCY : ARRIVED;
    if (moves) s->left = (double)g->latency[i];
    e->flight[home].lost = 0;
    for (uint32_t p = sc_op_place(g, i) + 1; p < sc_op_place(g, i + 1); p++) {
        sim_slot *other = &e->queue.slot[slot_at(e, i, p)];
        other->op = i;
        other->bit = s->bit;
        other->phase = SEVERAL;
        mark_dirty(e, g->cls[p]);
    }
    mark_retime(e, home);
}

static inline void start(engine *e, sc_op i, sc_time now)
{
    const sc_graph *g = e->g;
    if (now == 0) e->r->cause[i] = SC_NONE;
    if (g->work[i] == 0) {
        complete(e, i, now);
        return;
    }
    uint32_t cls = g->cls[sc_op_place(g, i)];
    uint32_t home = cls * SC_N_STREAMS + g->stream[i];
    sim_slot *s = &e->queue.slot[home];
    s->op = i;
    s->since = now;
    s->rate = 0;
    s->left = (double)g->work[i];
    s->bit = (uint8_t)sim_bit(g, i);
    s->phase = PLAIN;
    mark_dirty(e, cls);
    if (g->parts && g->parts[i]) {
        s->phase = JOINED;
        parts_start(g, s, &e->seq[home]);
        return;
    }
    if (e->all_plain) return;
    bool moves = sim_net_has(e->net, g, i);
    if (moves || sc_op_place(g, i + 1) - sc_op_place(g, i) > 1)
        start_other(e, i, home, moves);
}

/* ---- rates --------------------------------------------------------------- */

/* Kinds that run on a class, without slot `but`. */
static unsigned kinds_beside(const engine *e, uint32_t first, unsigned but)
{
    const sim_slot *x = &e->queue.slot[first];
    unsigned kinds = 0;
    for (unsigned s = 0; s < SC_N_STREAMS; s++)
        if (s != but && x[s].op != SC_NONE) kinds |= sim_bits(e->g, x[s].op);
    return kinds;
}

static void resolve_parts(engine *e, const sim_rates *rates, uint32_t first,
                          sc_time now)
{
    for (unsigned s = 0; s < SC_N_STREAMS; s++) {
        sim_slot *x = &e->queue.slot[first + s];
        if (x->op != SC_NONE && x->phase == JOINED)
            parts_beside(rates, e->g, e->r, x, &e->seq[first + s],
                         kinds_beside(e, first, s), now);
    }
}

/* Rates on one class. */
static inline void rate_class(engine *e, uint32_t cls, sc_time now)
{
    uint32_t first = cls * SC_N_STREAMS;
    const sim_slot *x = &e->queue.slot[first];
    const sim_rates *rates = e->of_class ? e->of_class[cls] : &e->rates;
    unsigned once = 0, twice = 0; /* kinds running on one, on two streams */
    if (e->seq) resolve_parts(e, rates, first, now);
    for (unsigned s = 0; s < SC_N_STREAMS; s++) {
        unsigned bit = x[s].op != SC_NONE ? x[s].bit : 0;
        twice |= once & bit;
        once |= bit;
    }
    for (unsigned s = 0; s < SC_N_STREAMS; s++) {
        sc_op i = x[s].op;
        if (i == SC_NONE) continue;
        unsigned bit = x[s].bit;
        double rate = sim_rate(rates, bit, (once & ~bit) | (twice & bit));
        if (x[s].phase == PLAIN) {
            if (rate == x[s].rate) continue;
            radix_retime(&e->queue, first + s, e->g->work[i], rate, now);
            e->r->n_events++;
        } else if (x[s].phase == JOINED) {
            if (rate == x[s].rate) continue;
            parts_retime(e->g, &e->queue, first + s, &e->seq[first + s], rate,
                         now);
            e->r->n_events++;
        } else if (rate != e->there[first + s]) {
            e->there[first + s] = rate;
            mark_retime(e, home_of(e, i));
        }
    }
}

/* Re-times an op that is not plain. */
static void retime(engine *e, uint32_t home, sc_time now)
{
    const sc_graph *g = e->g;
    sim_slot *s = &e->queue.slot[home];
    flight *f = &e->flight[home];
    sc_op i = s->op;
    double rate = 1;
    for (uint32_t p = sc_op_place(g, i); p < sc_op_place(g, i + 1); p++) {
        double there = e->there[slot_at(e, i, p)];
        rate = there < rate ? there : rate;
    }
    if (rate == s->rate && s->phase != ARRIVED) return;
    e->r->n_events++;
    f->lost += (1 - s->rate) * (double)(now - s->since);
    if (s->phase == SEVERAL || s->phase == LATENCY) {
        sc_time work = s->phase == SEVERAL ? g->work[i] : g->latency[i];
        radix_retime(&e->queue, home, work, rate, now);
        return;
    }
    s->since = now;
    s->rate = rate;
    if (e->flows_at != now) complete_flows(e, now);
    if (s->phase == MOVES) {
        sim_net_rate(e->net, f->path, g->traffic[i], rate);
        return;
    }
    s->phase = MOVES;
    f->path = sim_net_post(e->net, g, i, rate, now);
    e->failed |= !f->path;
}

static inline void set_rates(engine *e, sc_time now)
{
    while (e->n_dirty) {
        uint32_t cls = e->dirty[--e->n_dirty];
        e->marked[cls] = 0;
        rate_class(e, cls, now);
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
        if (e->queue.slot[s].op != SC_NONE) return e->queue.slot[s].op;
    return 0;
}

sc_status sim_events(const sim_run *run, sc_arena *a, sc_result *r, sc_err *err)
{
    engine e;
    if (!engine_init(&e, run, a, r)) return sc_error_nomem(err);
    do {
        sc_time now = e.queue.order.now;
        if (now == SC_TIME_MAX)
            return sim_too_long(e.g, first_running(&e), err);
        complete_due(&e, now);
        if (e.flows_due) complete_flows(&e, now);
        while (e.n_ready) start(&e, e.ready[--e.n_ready], now);
        set_rates(&e, now);
        if (e.flows_at == now) set_ticker(&e);
        if (e.failed) return sc_error_nomem(err);
    } while (radix_advance(&e.queue));
    for (sc_op i = 0; i < e.g->n_ops; i++)
        r->overlapped[i] =
            r->end[i] - r->start[i] - e.g->work[i] - r->shared[i];
    r->n_events += e.n_done;
    if (e.n_done == e.g->n_ops) return SC_OK;
    return sim_stopped(e.g, e.n_done, err);
}
