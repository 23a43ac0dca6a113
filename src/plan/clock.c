/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock.c - the fast sink of the walk along the schedule.  Operations get their
 * times as they are issued, and no graph is built.
 *
 * The walk issues an operation after all operations that it waits for, and
 * streams are in-order queues.  So an operation starts when its predecessors
 * and the last operations of its streams have ended, as in the event engine.
 * Two things differ from that engine: links are not shared, and the slowdown of
 * kernels is exact only for exchanges that were issued before them.
 *
 * If all times that a slot depends on are, relative to its start, equal to
 * those of an earlier slot of its stage, its result is looked up
 * (clock_slots.c).  Pipelines reach such a steady state soon, so each further
 * micro-batch costs little more than a look-up.
 */
#include "plan/clock.h"

#include <string.h>

/* ---- kernels that overlap exchanges ------------------------------------- */

/* Extra time for each second during which an operation overlaps kernels. */
static double slowing(const lower_clock *c, uint8_t kind, uint8_t stream)
{
    if (kind != SC_OP_COLL || stream == SC_S_COMPUTE) return 0;
    return c->slow[stream == SC_S_GRAD];
}

static sc_time least(sc_time a, sc_time b)
{
    return a < b ? a : b;
}

static sc_time stretch(double slow, sc_time overlap)
{
    return overlap > 0 ? (sc_time)(slow * (double)overlap + 0.5) : 0;
}

/* Slows kernels that run for `work` from `start` on and the exchanges of stream
 * `s` that overlap them.  Returns the time that the kernels lose. */
static sc_time overlap_exchanges(lower_clock *c, clock_stream *s, double slow,
                                 sc_time start, sc_time work)
{
    if (slow <= 0 || s->to <= start) return 0; /* the usual case */
    sc_time from = s->from > start ? s->from : start;
    sc_time left = work - (from - start);
    if (s->to <= from || left <= 0) return 0;
    c->overlapped = true;
    sc_time lost = stretch(slow, least(left, s->to - from));
    for (uint32_t k = 0; k < CLOCK_RECENT; k++) {
        clock_op *o = &c->op[s->recent[k]];
        if (s->recent[k] != SC_NONE && o->end > from)
            o->end += stretch(slow, least(left, o->end - from));
    }
    s->to += lost;
    if (s->to > c->last) c->last = s->to;
    return lost;
}

/* Slows an exchange that starts during kernels issued before it, such as one of
 * all gradients at the end of a pass.  Returns the time that it loses. */
static sc_time overlap_kernels(lower_clock *c, uint32_t dev, double slow,
                               sc_time start, sc_time work)
{
    clock_stream *l = clock_stream_of(c, dev, SC_S_COMPUTE);
    sc_time from = l->from > start ? l->from : start;
    if (slow <= 0 || l->to <= from || l->kernels == 0) return 0;
    c->overlapped = true;
    double fraction = (double)l->kernels / (double)(l->to - l->from);
    sc_time lost = stretch(slow * (fraction < 1 ? fraction : 1),
                           least(work, l->to - from));
    l->to += lost;
    if (l->to > c->last) c->last = l->to;
    c->cat[dev][SC_CAT_COMPUTE] += lost;
    if (l->recent[0] != SC_NONE) c->op[l->recent[0]].end = l->to;
    return lost;
}

/* ---- where the time of a device goes ------------------------------------ */

/* Assigns a wait for operation `cause` to the category of that operation, if it
 * runs on this device (with those right before it on its stream) or sends to
 * this device.  What these do not cover is bubble. */
static void wait_for(lower_clock *c, uint32_t dev, sc_op cause, sc_time wait)
{
    sc_time *cat = c->cat[dev], covered = 0;
    if (wait <= 0) return;
    const clock_op *why = cause == SC_NONE ? NULL : &c->op[cause];
    if (why && why->dev == dev && why->kind != SC_OP_MARK) {
        const clock_stream *l = clock_stream_of(c, dev, why->stream);
        bool unbroken = why->end <= l->to && why->start >= l->from;
        covered = least(wait, why->end - (unbroken ? l->from : why->start));
    } else if (why && why->kind == SC_OP_P2P) {
        covered = least(wait, why->end - why->start);
    }
    if (covered > 0) cat[why->cat] += covered;
    cat[SC_CAT_BUBBLE] += wait - covered;
}

/* ---- operations --------------------------------------------------------- */

static sc_time kernels_of(const sc_parts *p)
{
    sc_time sum = 0;
    for (uint32_t k = 0; k < p->n; k++)
        if (p->kind[k] == SC_OP_COMPUTE)
            sum += p->end[k] - (k ? p->end[k - 1] : 0);
    return sum;
}

static void occupy(lower_clock *c, uint32_t dev, sc_op op, sc_time kernels)
{
    const clock_op *o = &c->op[op];
    clock_stream *l = clock_stream_of(c, dev, o->stream);
    if (o->stream == SC_S_COMPUTE) {
        wait_for(c, dev, c->cause, o->start - l->to);
        for (uint32_t k = 0; c->parts && k < SC_N_CATS; k++)
            c->cat[dev][k] += c->parts->by_cat[k];
        if (!c->parts) c->cat[dev][o->cat] += o->end - o->start;
    }
    if (o->start > l->to || l->to == 0) {
        l->from = o->start;
        l->kernels = 0;
    }
    l->kernels += kernels;
    l->to = o->end;
    for (uint32_t k = CLOCK_RECENT; --k > 0;) l->recent[k] = l->recent[k - 1];
    l->recent[0] = op;
}

void clock_close(lower_clock *c)
{
    if (!c->open) return;
    sc_op op = c->n - 1;
    clock_op *o = &c->op[op];
    sc_time work = c->work, lost = 0;
    bool kernels = o->kind == SC_OP_COMPUTE && o->stream == SC_S_COMPUTE;
    c->open = false;
    if (o->kind == SC_OP_MARK) {
        o->end = o->start;
        return;
    }
    for (uint32_t k = 0; k < c->n_dev && !lost; k++) {
        if (kernels) {
            clock_stream *grad = clock_stream_of(c, c->dev[k], SC_S_GRAD);
            clock_stream *comm = clock_stream_of(c, c->dev[k], SC_S_COMM);
            sc_time g = overlap_exchanges(c, grad, c->slow[1], o->start, work);
            sc_time m = overlap_exchanges(c, comm, c->slow[0], o->start, work);
            lost = g > m ? g : m;
        } else {
            double slow = slowing(c, o->kind, o->stream);
            lost = overlap_kernels(c, c->dev[k], slow, o->start, work);
        }
    }
    o->end = o->start + work + lost;
    if (o->end > c->last) c->last = o->end;
    sc_time of_kernels = kernels ? o->end - o->start : 0;
    if (c->parts) of_kernels = kernels_of(c->parts);
    for (uint32_t k = 0; k < c->n_dev; k++)
        occupy(c, c->dev[k], op, of_kernels);
}

sc_op clock_new(lower_clock *c, const clock_op *op)
{
    if (c->n == c->cap) {
        clock_op *all =
            sc_reserve(c->a, c->op, c->n, &c->cap, 4096, sizeof *all);
        if (!all) {
            c->failed = true;
            return SC_NONE;
        }
        c->op = all;
    }
    c->op[c->n] = *op;
    return c->n++;
}

sc_op clock_add(lower_clock *c, const lower_item *t, const sc_op_desc *d)
{
    clock_close(c);
    clock_op o = {.kind = t->work ? t->kind : SC_OP_MARK,
                  .stream = d->stream,
                  .cat = d->cat,
                  .dev = d->n_dev ? d->dev[0] : SC_NONE};
    c->n_dev = o.kind == SC_OP_MARK ? 0 : d->n_dev;
    c->work = t->work;
    c->parts = d->parts;
    c->cause = SC_NONE;
    for (uint32_t k = 0; k < c->n_dev; k++) {
        sc_time to = clock_stream_of(c, d->dev[k], o.stream)->to;
        c->dev[k] = d->dev[k];
        if (to > o.start) o.start = to;
    }
    sc_op op = clock_new(c, &o);
    c->open = op != SC_NONE;
    return op;
}

bool clock_is_quiet(const lower_clock *c, uint32_t dev)
{
    sc_time kernels = clock_stream_of(c, dev, SC_S_COMPUTE)->to;
    return clock_stream_of(c, dev, SC_S_GRAD)->to <= kernels &&
           clock_stream_of(c, dev, SC_S_COMM)->to <= kernels;
}

void clock_after(lower_clock *c, sc_op before, sc_op after)
{
    if (before == SC_NONE || after == SC_NONE) return;
    sc_time end = c->op[before].end;
    if (end < c->op[after].start) return;
    if (end > c->op[after].start || c->cause == SC_NONE) c->cause = before;
    c->op[after].start = end;
}

/* ---- rows --------------------------------------------------------------- */

sc_status clock_row(lowering *g, uint32_t mb)
{
    lower_clock *c = g->clock;
    size_t n = (size_t)g->prog->n_items * g->members;
    if (g->row[mb]) return SC_OK;
    if (c->n_spare) {
        g->row[mb] = c->spare[--c->n_spare];
        return SC_OK;
    }
    g->row[mb] = SC_RAW_N(g->a, sc_op, n);
    if (!g->row[mb]) return sc_error_nomem(g->err);
    memset(g->row[mb], 0xff, n * sizeof(sc_op));
    return SC_OK;
}

void clock_row_done(lowering *g, uint32_t mb)
{
    lower_clock *c = g->clock;
    size_t n = (size_t)g->prog->n_items * g->members;
    if (c->left[mb] == SC_NONE || --c->left[mb] > 0) return;
    if (c->issued[mb])
        memset(g->row[mb], 0xff, n * sizeof(sc_op));
    else
        clock_slots_clear(g, g->row[mb]);
    c->spare[c->n_spare++] = g->row[mb];
    g->row[mb] = NULL;
}

/* Once-a-step items use the first two rows and read the last micro-batch of
 * each pass, so these rows are kept. */
static sc_status rows_new(lowering *g, lower_clock *c)
{
    uint32_t n = g->ga < 2 ? 2 : g->ga;
    c->left = SC_NEW_N(g->a, uint32_t, n);
    c->issued = SC_NEW_N(g->a, bool, n);
    c->spare = SC_NEW_N(g->a, sc_op *, n);
    if (!c->left || !c->issued || !c->spare) return sc_error_nomem(g->err);
    for (uint32_t k = 0; k < g->n_slots; k++) c->left[g->slot[k].mb]++;
    c->left[0] = c->left[1] = SC_NONE;
    for (uint32_t k = 0; k < g->n_inst; k++)
        for (uint32_t part = 0; part < 3; part++)
            if (g->inst[k].last[part] != SC_NONE)
                c->left[g->inst[k].last[part]] = SC_NONE;
    SC_TRY(clock_row(g, 0));
    return clock_row(g, 1);
}

/* ---- the step ----------------------------------------------------------- */

static sc_status clock_of(lowering *g, const double slow[2], lower_clock *c)
{
    size_t n_streams = (size_t)g->pp * SC_N_STREAMS;
    *c = (lower_clock){.a = g->a, .slow = {slow[0], slow[1]}};
    c->stream = SC_NEW_N(g->a, clock_stream, n_streams);
    c->dev = SC_NEW_N(g->a, uint32_t, g->pp);
    c->cat = sc_alloc(g->a, g->pp, sizeof *c->cat);
    if (!c->stream || !c->dev || !c->cat) return sc_error_nomem(g->err);
    for (size_t k = 0; k < n_streams; k++)
        memset(c->stream[k].recent, 0xff, sizeof c->stream[k].recent);
    SC_TRY(rows_new(g, c));
    return clock_slots_new(g, c);
}

/* The stream that is the last to be busy before `at` and after the last kernel;
 * NULL: none. */
static const clock_stream *busy_before(const lower_clock *c, uint32_t dev,
                                       sc_time at)
{
    const clock_stream *best = NULL;
    sc_time most = clock_stream_of(c, dev, SC_S_COMPUTE)->to;
    for (uint32_t st = SC_S_COMPUTE + 1; st < SC_N_STREAMS; st++) {
        const clock_stream *l = clock_stream_of(c, dev, st);
        sc_time end = least(l->to, at);
        if (l->from >= at || end <= most || l->recent[0] == SC_NONE) continue;
        best = l;
        most = end;
    }
    return best;
}

/* Assigns the time after a device's last kernel to the streams that are busy
 * then, from the end of the step backwards. */
static void last_wait(lower_clock *c, uint32_t dev)
{
    sc_time done = clock_stream_of(c, dev, SC_S_COMPUTE)->to, at = c->last;
    const clock_stream *l;
    while (at > done && (l = busy_before(c, dev, at)) != NULL) {
        sc_time end = least(l->to, at), from = l->from > done ? l->from : done;
        c->cat[dev][SC_CAT_BUBBLE] += at - end;
        c->cat[dev][c->op[l->recent[0]].cat] += end - from;
        at = from;
    }
    if (at > done) c->cat[dev][SC_CAT_BUBBLE] += at - done;
}

/* Reports the times of the busiest device, which waits least. */
static void result(const lowering *g, lower_clock *c, sc_net_clock *out)
{
    clock_close(c);
    out->makespan = c->last;
    out->n_slots = g->n_slots;
    out->n_issued = c->n_issued;
    sc_time least_wait = -1;
    for (uint32_t dev = 0; dev < g->pp; dev++) {
        const sc_time *cat = c->cat[dev];
        last_wait(c, dev);
        if (least_wait >= 0 && cat[SC_CAT_BUBBLE] >= least_wait) continue;
        least_wait = cat[SC_CAT_BUBBLE];
        memcpy(out->cat, cat, sizeof out->cat);
    }
}

/* Sums FLOPs by the passes of slots, as most slots are looked up and not
 * issued. */
static sc_status executed(const lowering *g, sc_net_clock *out)
{
    enum { PARTS = (LOWER_FWD | LOWER_X | LOWER_W) + 1 };

    double(*of)[PARTS] = sc_alloc(g->a, g->p->n_stages, sizeof *of);
    out->flops = SC_NEW_N(g->a, double, g->pp);
    if (!of || !out->flops) return sc_error_nomem(g->err);
    for (uint32_t i = 0; i < g->prog->n_items; i++) {
        const lower_item *t = &g->item[i];
        const program_item *it = &g->prog->item[i];
        for (uint32_t parts = 1; parts < PARTS; parts++)
            if (!it->once && !t->none && (t->part & parts))
                of[it->stage][parts] += t->flops;
    }
    for (uint32_t k = 0; k < g->n_slots; k++)
        out->flops[g->slot[k].dev] += of[g->slot[k].stage][g->slot[k].parts];
    return SC_OK;
}

sc_status sc_net_plan_clock(sc_net_plan *p, const double slow[2], bool memory,
                            sc_arena *a, sc_net_clock *out, sc_err *err)
{
    net_program prog;
    lower_clock c;
    lowering g = {.p = p, .a = a, .err = err, .clock = &c};
    SC_TRY(lower_begin(&g, &prog));
    SC_TRY(lower_comms_begin(&g));
    SC_TRY(clock_of(&g, slow, &c));
    SC_TRY(lower_runs_prepare(&g));
    SC_TRY(lower_walk(&g));
    if (c.failed) return sc_error_nomem(err);
    clock_slots_share(&g, &c);
    result(&g, &c, out);
    SC_TRY(executed(&g, out));
    return memory ? clock_memory(&g, out) : SC_OK;
}
