/* SPDX-License-Identifier: Apache-2.0 */
/*
 * build.c - the execution graph of a replay.
 *
 * Threads of the host and streams of devices are classes of the graph.  An item
 * of a thread is the work before it and, if it waits, the end of the call; a
 * device op is its gap and its kernel, behind the latency of its launch, which is
 * a delay on no stream.
 */
#include "replay/build.h"

const char replay_later[] = "other ranks begin earlier";

typedef struct builder {
    const sc_replay_model *m;
    const sc_replay_change *c;
    sc_arena *a;
    sc_graph_builder *g;
    replay_built *out;
    replay_durations *dur; /* [n_ranks] */
    uint32_t **stream;     /* [n_ranks][n_streams] classes */
    sc_op **latency;       /* [n_ranks][n_ops] delays of launches; SC_NONE */
    uint32_t n, cap_owner, cap_span, cap_busy;
    sc_op *coll; /* [n_colls] */
    bool failed;
} builder;

static sc_op add_op(builder *b, const sc_op_desc *d, uint32_t rank,
                    uint32_t span)
{
    uint32_t *owner = sc_grow_raw(b->a, b->out->owner, b->n, &b->cap_owner, 256,
                                  sizeof *owner);
    uint32_t *spans =
        sc_grow_raw(b->a, b->out->span, b->n, &b->cap_span, 256, sizeof *spans);
    sc_time *busy =
        sc_grow(b->a, b->out->busy, b->n, &b->cap_busy, 256, sizeof *busy);
    if (!owner || !spans || !busy) {
        b->failed = true;
        return 0;
    }
    b->out->owner = owner;
    b->out->span = spans;
    b->out->busy = busy;
    owner[b->n] = rank;
    busy[b->n] = 0;
    spans[b->n] = span;
    b->n++;
    return sc_graph_add_op(b->g, d);
}

static const char *name_of(const replay_rank *r, uint32_t span)
{
    return span == REPLAY_NONE ? "" : r->m->name[replay_span(r, span)->name];
}

/* The work of a thread between two times of its window. */
static sc_time work_between(const builder *b, uint32_t rank, uint32_t thread,
                            sc_time since, sc_time until)
{
    const replay_pace *pace = b->dur[rank].pace;
    sc_time from = b->m->rank[rank].from, work = until - since;
    if (!pace || work <= 0) return work;
    double t = (double)work +
               replay_pace_added(&pace[thread], from + since, from + until);
    return t < 0 ? 0 : t < 4e18 ? (sc_time)(t + 0.5) : (sc_time)4e18;
}

static sc_op add_host(builder *b, uint32_t rank, const char *name, sc_time work,
                      uint32_t cls, uint32_t span)
{
    double t = (double)(work > 0 ? work : 0) * b->dur[rank].host;
    sc_op_desc d = {.name = name,
                    .work = work > 0 ? work : 0,
                    .cls = cls,
                    .traffic = SC_NONE,
                    .kind = SC_OP_HOST,
                    .stream = SC_S_HOST,
                    .cat = SC_CAT_HOST};
    if (b->dur[rank].host != 1)
        d.work = t < 4e18 ? (sc_time)(t + 0.5) : (sc_time)4e18;
    return add_op(b, &d, rank, span);
}

static sc_op add_delay(builder *b, uint32_t rank, const char *name,
                       sc_time work)
{
    sc_op_desc d = {.name = name,
                    .work = work,
                    .cls = SC_NONE,
                    .traffic = SC_NONE,
                    .kind = SC_OP_MARK,
                    .stream = SC_S_HOST,
                    .cat = SC_CAT_HOST};
    return add_op(b, &d, rank, REPLAY_NONE);
}

static bool has_wait(const replay_item *it)
{
    return it->kind == REPLAY_WAIT || it->kind == REPLAY_RESUME || it->queued ||
           it->waits.n > 0;
}

/* Kernels of one launch of a CUDA graph need no work of the host between. */
static bool in_graph(const builder *b, const replay_rank *r, uint32_t i)
{
    const replay_item *it = &r->item[i];
    if (!b->c->cuda_graphs || it->kind != REPLAY_LAUNCH) return false;
    if (it->waits.n) return false;
    const replay_item *prev = NULL;
    if (it->before != REPLAY_NONE)
        prev = &r->item[it->before];
    else if (i && r->item[i - 1].thread == it->thread)
        prev = &r->item[i - 1];
    return prev && prev->kind == REPLAY_LAUNCH && prev->waits.n == 0;
}

/* A launch of a kernel that was fused with the one before is not made. */
static bool merged(const builder *b, uint32_t rank, const replay_item *it)
{
    return it->kind == REPLAY_LAUNCH && it->device != REPLAY_NONE &&
           b->dur[rank].merged[it->device];
}

/* The part of a thread that was added so far. */
typedef struct thread_end {
    sc_time at;           /* until when */
    uint32_t waiting[16]; /* calls that contain others and have not returned */
    uint32_t n;
} thread_end;

static void add_leave(builder *b, uint32_t rank, uint32_t i, uint32_t cls,
                      thread_end *end)
{
    const replay_item *it = &b->m->rank[rank].item[i];
    sc_time behind = it->leave - end->at; /* of calls inside */
    sc_time tail = it->tail < behind ? it->tail : behind;
    b->out->rank[rank].leave[i] = add_host(
        b, rank, name_of(&b->m->rank[rank], it->span), tail, cls, it->span);
    end->at = it->leave;
}

/* Returns of calls up to a time, inner ones first. */
static void return_until(builder *b, uint32_t rank, sc_time until, uint32_t cls,
                         thread_end *end)
{
    const replay_rank *r = &b->m->rank[rank];
    while (end->n && r->item[end->waiting[end->n - 1]].leave <= until)
        add_leave(b, rank, end->waiting[--end->n], cls, end);
}

static void add_enter(builder *b, uint32_t rank, uint32_t i, uint32_t cls,
                      thread_end *end)
{
    const replay_rank *r = &b->m->rank[rank];
    const replay_item *it = &r->item[i];
    bool first = i == r->thread_head[it->thread];
    sc_time since = end->at, work;
    if (it->before != REPLAY_NONE) since = r->item[it->before].leave;
    work = work_between(b, rank, it->thread, since, it->enter);
    if (in_graph(b, r, i) || merged(b, rank, it)) work = 0;
    sc_op op = add_host(b, rank, name_of(r, it->span), work, cls, it->span);
    b->out->rank[rank].enter[i] = b->out->rank[rank].leave[i] = op;
    end->at = it->enter;
    /* a rank begins when its window does */
    if (first && it->before == REPLAY_NONE && r->offset)
        sc_graph_add_dep(b->g, add_delay(b, rank, replay_later, r->offset), op);
}

/* A call may contain others, which come before its return. */
static void add_items(builder *b, uint32_t rank, const uint32_t *cls)
{
    const replay_rank *r = &b->m->rank[rank];
    const replay_built_rank *x = &b->out->rank[rank];
    for (uint32_t t = 0; t < r->n_threads; t++) {
        thread_end end = {.n = 0};
        for (uint32_t i = r->thread_head[t]; i < r->thread_head[t + 1]; i++) {
            return_until(b, rank, r->item[i].enter, cls[t], &end);
            add_enter(b, rank, i, cls[t], &end);
            if (!has_wait(&r->item[i])) continue;
            if (end.n == SC_COUNT(end.waiting))
                add_leave(b, rank, end.waiting[--end.n], cls[t], &end);
            end.waiting[end.n++] = i;
        }
        while (end.n) add_leave(b, rank, end.waiting[--end.n], cls[t], &end);
    }
    for (uint32_t i = 0; i < r->n_items; i++)
        if (r->item[i].before != REPLAY_NONE)
            sc_graph_add_dep(b->g, x->leave[r->item[i].before], x->enter[i]);
}

/* ---- devices ------------------------------------------------------------- */

static uint8_t kind_of(const sc_trace_span *s)
{
    return s->kind == SC_SPAN_COLL                             ? SC_OP_COLL
           : s->kind == SC_SPAN_COPY || s->kind == SC_SPAN_SET ? SC_OP_MEM
                                                               : SC_OP_COMPUTE;
}

/* The delay from the launch to the earliest start of an op, less its gap; a
 * rank's ops of unknown launch start with its window at the earliest. */
static sc_op add_latency(builder *b, uint32_t rank, uint32_t i)
{
    const replay_rank *r = &b->m->rank[rank];
    const replay_device_op *op = &r->op[i];
    const char *name = name_of(r, op->span);
    if (op->item == REPLAY_NONE) {
        if (op->prev != REPLAY_NONE) return SC_NONE;
        sc_time at =
            r->offset + (op->start > op->gap ? op->start - op->gap : 0);
        return at ? add_delay(b, rank, name, at) : SC_NONE;
    }
    sc_op d = add_delay(b, rank, name, op->latency - op->gap);
    sc_graph_add_dep(b->g, b->out->rank[rank].enter[op->item], d);
    return d;
}

static bool skips_wait(const builder *b, const replay_rank *r, uint32_t op,
                       uint32_t before)
{
    if (!b->c->overlap) return false;
    return replay_span(r, r->op[before].span)->kind == SC_SPAN_COLL &&
           replay_span(r, r->op[op].span)->kind != SC_SPAN_COLL;
}

static void add_waits(builder *b, uint32_t rank, uint32_t i, sc_op op)
{
    const replay_rank *r = &b->m->rank[rank];
    const replay_waits *w = &r->op[i].waits;
    for (uint32_t k = 0; k < w->n; k++) {
        uint32_t before = r->wait[w->first + k];
        if (!skips_wait(b, r, i, before))
            sc_graph_add_dep(b->g, b->out->rank[rank].op[before], op);
    }
}

/* Behind the dispatch of what fills the device: a delay from the start of that
 * op, which depends on the same as the op itself. */
static void add_drain(builder *b, uint32_t rank, uint32_t i, sc_op op)
{
    const replay_rank *r = &b->m->rank[rank];
    const replay_built_rank *x = &b->out->rank[rank];
    const replay_device_op *own = &r->op[i];
    if (own->drains == REPLAY_NONE) return;
    const replay_device_op *other = &r->op[own->drains];
    double part = other->dur > 0 ? (double)own->drain / (double)other->dur : 1;
    double t = (part < 1 ? part : 1) * (double)x->dur[own->drains];
    if (other->coll != REPLAY_NONE) {
        /* of which the time is known when it ends */
        sc_graph_add_dep(b->g, x->op[own->drains], op);
        return;
    }
    sc_op delay = add_delay(b, rank, name_of(r, own->span),
                            other->gap + (sc_time)t - own->gap > 0
                                ? other->gap + (sc_time)t - own->gap
                                : 0);
    sc_op latency = b->latency[rank][own->drains];
    if (latency != SC_NONE) sc_graph_add_dep(b->g, latency, delay);
    if (other->prev != REPLAY_NONE)
        sc_graph_add_dep(b->g, x->op[other->prev], delay);
    add_waits(b, rank, own->drains, delay);
    sc_graph_add_dep(b->g, delay, op);
}

static sc_time scaled(sc_time t, double factor)
{
    double v = (double)t * factor + 0.5;
    if (factor == 1) return t;
    return v < 4e18 ? (sc_time)v : (sc_time)4e18;
}

/* The factor on the time of a device op. */
static double factor_of(const builder *b, uint32_t rank, uint32_t i)
{
    const replay_device_op *op = &b->m->rank[rank].op[i];
    return op->dur > 0 ? (double)b->dur[rank].op[i] / (double)op->dur : 1;
}

/* By how much a member ends later than the first one. */
static sc_time lag_of(const builder *b, uint32_t rank, uint32_t i)
{
    const replay_coll *c = &b->m->coll[b->m->rank[rank].op[i].coll];
    if (b->dur[rank].priced[i]) return 0;
    for (uint32_t k = 0; k < c->n; k++)
        if (c->rank[k] == rank && c->op[k] == i)
            return scaled(c->lag[k], factor_of(b, rank, i));
    return 0;
}

/* A member of a collective arrives; the collective itself is one op on the
 * streams of all members, added with its last one. */
static void add_member(builder *b, uint32_t rank, uint32_t i, sc_op latency)
{
    const replay_rank *r = &b->m->rank[rank];
    replay_built_rank *x = &b->out->rank[rank];
    const replay_device_op *op = &r->op[i];
    sc_op arrive = add_delay(b, rank, name_of(r, op->span), op->gap);
    if (latency != SC_NONE) sc_graph_add_dep(b->g, latency, arrive);
    x->arrive[i] = arrive;
    x->op[i] = b->coll[op->coll];
    x->dur[i] = 0; /* from its arrival on */
    sc_graph_add_dep(b->g, arrive, b->coll[op->coll]);
    sc_time lag = lag_of(b, rank, i);
    if (lag == 0) return;
    x->op[i] = add_delay(b, rank, name_of(r, op->span), lag);
    sc_graph_add_dep(b->g, b->coll[op->coll], x->op[i]);
}

static void add_device_op(builder *b, uint32_t rank, uint32_t i)
{
    const replay_rank *r = &b->m->rank[rank];
    replay_built_rank *x = &b->out->rank[rank];
    const replay_device_op *op = &r->op[i];
    const sc_trace_span *s = replay_span(r, op->span);
    sc_op latency = add_latency(b, rank, i);
    b->latency[rank][i] = latency;
    x->arrive[i] = SC_NONE;
    if (op->coll != REPLAY_NONE) {
        add_member(b, rank, i, latency);
        return;
    }
    bool gap = !b->dur[rank].merged[i];
    sc_op_desc d = {.name = name_of(r, op->span),
                    .work = (gap ? op->gap : 0) + b->dur[rank].op[i],
                    .cls = b->stream[rank][op->stream],
                    .traffic = SC_NONE,
                    .kind = kind_of(s),
                    .stream = SC_S_COMPUTE,
                    .cat = SC_CAT_COMPUTE};
    x->dur[i] = b->dur[rank].op[i];
    x->op[i] = add_op(b, &d, rank, op->span);
    if (!b->failed) b->out->busy[x->op[i]] = x->dur[i];
    if (latency != SC_NONE) sc_graph_add_dep(b->g, latency, x->op[i]);
}

/* What a collective takes after the last arrival. */
static sc_time coll_time(const builder *b, const replay_coll *c)
{
    uint32_t rank = c->rank[0], op = c->op[0];
    if (b->dur[rank].priced[op]) return b->dur[rank].op[op];
    return scaled(c->dur, factor_of(b, rank, op));
}

/* Collectives come first in the order of ops, but not in that of streams, so
 * streams are ordered by dependencies. */
static void add_colls(builder *b)
{
    for (uint32_t i = 0; i < b->m->n_colls; i++) {
        const replay_coll *c = &b->m->coll[i];
        const replay_rank *r = &b->m->rank[c->rank[0]];
        const replay_device_op *op = &r->op[c->op[0]];
        sc_op_desc d = {.name = name_of(r, op->span),
                        .work = coll_time(b, c),
                        .cls = SC_NONE,
                        .traffic = SC_NONE,
                        .kind = SC_OP_MARK,
                        .stream = SC_S_COMM,
                        .cat = SC_CAT_DP};
        b->coll[i] = add_op(b, &d, c->rank[0], op->span);
    }
}

/* Behind the op before on the stream, and behind what the op waits for. */
static void order_devices(builder *b, uint32_t rank)
{
    const replay_rank *r = &b->m->rank[rank];
    const replay_built_rank *x = &b->out->rank[rank];
    for (uint32_t i = 0; i < r->n_ops; i++) {
        const replay_device_op *op = &r->op[i];
        sc_op first = x->arrive[i] != SC_NONE ? x->arrive[i] : x->op[i];
        if (op->prev != REPLAY_NONE)
            sc_graph_add_dep(b->g, x->op[op->prev], first);
        add_waits(b, rank, i, first);
        add_drain(b, rank, i, first);
        if (op->earliest)
            sc_graph_add_dep(
                b->g,
                add_delay(b, rank, replay_later, r->offset + op->earliest),
                first);
        if (op->frees != REPLAY_NONE)
            sc_graph_add_dep(b->g, x->op[op->frees], x->leave[op->item]);
    }
}

static bool skips_sync(const builder *b, const replay_item *it)
{
    return b->c->no_sync && it->kind == REPLAY_WAIT;
}

static void order_hosts(builder *b, uint32_t rank)
{
    const replay_rank *r = &b->m->rank[rank];
    const replay_built_rank *x = &b->out->rank[rank];
    for (uint32_t i = 0; i < r->n_items; i++) {
        const replay_item *it = &r->item[i];
        for (uint32_t k = 0; k < it->waits.n && !skips_sync(b, it); k++)
            sc_graph_add_dep(b->g, x->op[r->wait[it->waits.first + k]],
                             x->leave[i]);
    }
}

/* ---- the whole ----------------------------------------------------------- */

static bool add_classes(builder *b, uint32_t rank, uint32_t *thread)
{
    const replay_rank *r = &b->m->rank[rank];
    for (uint32_t i = 0; i < r->n_threads + r->n_streams; i++) {
        bool host = i < r->n_threads;
        uint32_t k = host ? i : i - r->n_threads;
        const sc_lane *l = &r->m->lanes[host ? r->thread[k] : r->stream[k]];
        const char *name = sc_sprintf(b->a,
                                      host ? "rank %u thread %u (%lld)"
                                           : "rank %u stream %u (%lld)",
                                      r->rank, k, (long long)l->tid);
        if (!name) return false;
        uint32_t cls = sc_graph_add_class(b->g, name, r->rank, 1);
        if (host)
            thread[k] = cls;
        else
            b->stream[rank][k] = cls;
    }
    return true;
}

static sc_status add_rank(builder *b, uint32_t rank, sc_err *err)
{
    const replay_rank *r = &b->m->rank[rank];
    replay_built_rank *x = &b->out->rank[rank];
    uint32_t *thread = SC_NEW_N(b->a, uint32_t, r->n_threads);
    b->stream[rank] = SC_NEW_N(b->a, uint32_t, r->n_streams);
    b->latency[rank] = SC_NEW_N(b->a, sc_op, r->n_ops);
    x->enter = SC_NEW_N(b->a, sc_op, r->n_items);
    x->leave = SC_NEW_N(b->a, sc_op, r->n_items);
    x->op = SC_NEW_N(b->a, sc_op, r->n_ops);
    x->arrive = SC_NEW_N(b->a, sc_op, r->n_ops);
    x->dur = SC_NEW_N(b->a, sc_time, r->n_ops);
    if (!thread || !b->stream[rank] || !b->latency[rank] || !x->enter ||
        !x->leave || !x->op || !x->arrive || !x->dur ||
        !add_classes(b, rank, thread))
        return sc_error_nomem(err);
    add_items(b, rank, thread);
    for (uint32_t i = 0; i < r->n_ops; i++) add_device_op(b, rank, i);
    order_devices(b, rank);
    order_hosts(b, rank);
    return SC_OK;
}

/* The window ends when the last step has ended, and when devices have done what
 * they had done by then.  What they had left to do belongs to later steps, as what
 * they were busy with at its begin belongs to earlier ones. */
static void add_end(builder *b)
{
    b->out->end = add_delay(b, 0, "end", 0);
    for (uint32_t k = 0; k < b->m->n_ranks; k++) {
        const replay_rank *r = &b->m->rank[k];
        const replay_built_rank *x = &b->out->rank[k];
        sc_time to = b->m->measured - r->offset;
        for (uint32_t s = 0; s < r->n_streams; s++) {
            uint32_t i = r->stream_head[s + 1];
            while (i > r->stream_head[s] && replay_end(r, i - 1) > to) i--;
            if (i > r->stream_head[s])
                sc_graph_add_dep(b->g, x->op[i - 1], b->out->end);
        }
        for (uint32_t s = 0; s < r->n_steps; s++)
            if (r->step[s].end != REPLAY_NONE)
                sc_graph_add_dep(b->g, x->leave[r->step[s].end], b->out->end);
    }
}

static void map_ids(sc_op *v, uint32_t n, const sc_op *id)
{
    for (uint32_t i = 0; i < n; i++)
        if (v[i] != SC_NONE) v[i] = id[v[i]];
}

/* Ops by their ids in the graph. */
static sc_status renumber(builder *b, const sc_op *id, sc_err *err)
{
    replay_built *out = b->out;
    uint32_t *owner = SC_NEW_N(b->a, uint32_t, b->n);
    uint32_t *span = SC_NEW_N(b->a, uint32_t, b->n);
    if (!id) return SC_OK;
    sc_time *busy = SC_NEW_N(b->a, sc_time, b->n);
    if (!owner || !span || !busy) return sc_error_nomem(err);
    for (uint32_t i = 0; i < b->n; i++) {
        busy[id[i]] = out->busy[i];
        owner[id[i]] = out->owner[i];
        span[id[i]] = out->span[i];
    }
    out->owner = owner;
    out->span = span;
    out->busy = busy;
    out->end = id[out->end];
    for (uint32_t k = 0; k < b->m->n_ranks; k++) {
        const replay_rank *r = &b->m->rank[k];
        replay_built_rank *x = &out->rank[k];
        map_ids(x->enter, r->n_items, id);
        map_ids(x->leave, r->n_items, id);
        map_ids(x->op, r->n_ops, id);
        map_ids(x->arrive, r->n_ops, id);
    }
    return SC_OK;
}

sc_status replay_build(const sc_replay_model *m, const sc_replay_change *c,
                       sc_arena *a, replay_built *out, sc_err *err)
{
    sc_op *id;
    *out = (replay_built){.rank = SC_NEW_N(a, replay_built_rank, m->n_ranks)};
    builder b = {.m = m, .c = c, .a = a, .out = out};
    b.g = sc_graph_builder_new(a);
    b.dur = SC_NEW_N(a, replay_durations, m->n_ranks);
    b.stream = SC_NEW_N(a, uint32_t *, m->n_ranks);
    b.latency = SC_NEW_N(a, sc_op *, m->n_ranks);
    b.coll = SC_NEW_N(a, sc_op, m->n_colls);
    if (!b.g || !out->rank || !b.dur || !b.stream || !b.latency || !b.coll)
        return sc_error_nomem(err);
    for (uint32_t i = 0; i < m->n_ranks; i++)
        SC_TRY(replay_durations_of(m, i, c, a, &b.dur[i], err));
    add_colls(&b);
    for (uint32_t i = 0; i < m->n_ranks; i++) SC_TRY(add_rank(&b, i, err));
    add_end(&b);
    if (b.failed) return sc_error_nomem(err);
    SC_TRY(sc_graph_build_ids(b.g, a, &out->graph, &id, err));
    return renumber(&b, id, err);
}
