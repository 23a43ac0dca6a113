/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace.c - turns runs of real ranks into a workload.
 *
 * A run is a sequence of points in time: the program reaches an operation, or
 * begins to wait for one. Between moments it computes: each such interval
 * becomes a compute node that depends on the last compute node and on the
 * operations that the program has waited for since. In a replay each node
 * therefore begins at its recorded time; on another network waits change and
 * computation does not.
 */
#include "emu/trace.h"

#include <stdlib.h>
#include <string.h>

/* ---- nodes of a run ------------------------------------------------------ */

static sc_status node(trace_class *c, const trace_node *what, uint32_t *out)
{
    trace_node *at = sc_grow(c->a, c->node, c->n, &c->cap, 256, sizeof *at);
    if (!at) return sc_error_nomem(c->err);
    c->node = at;
    c->node[c->n] = *what;
    c->node[c->n].dep = c->n_deps;
    *out = c->n++;
    return SC_OK;
}

/* The latest node waits for `on`. */
static sc_status depend(trace_class *c, uint32_t on)
{
    trace_node *last = &c->node[c->n - 1];
    for (uint32_t i = 0; i < last->n_deps; i++)
        if (c->dep[last->dep + i] == on) return SC_OK;
    uint32_t *at =
        sc_grow(c->a, c->dep, c->n_deps, &c->cap_deps, 256, sizeof *at);
    if (!at) return sc_error_nomem(c->err);
    c->dep = at;
    c->dep[c->n_deps++] = on;
    last->n_deps++;
    return SC_OK;
}

/* Operations that the program has waited for, on which its next node
 * depends. */
static sc_status has(trace_class *c, uint32_t on)
{
    uint32_t *at = sc_grow(c->a, c->had, c->n_had, &c->cap_had, 16, sizeof *at);
    if (!at) return sc_error_nomem(c->err);
    c->had = at;
    c->had[c->n_had++] = on;
    return SC_OK;
}

static sc_status behind(trace_class *c)
{
    for (uint32_t i = 0; i < c->n_had; i++) SC_TRY(depend(c, c->had[i]));
    return SC_OK;
}

/* The program computes until `t`. */
static sc_status compute(trace_class *c, sc_time t)
{
    uint32_t at = 0;
    if (t <= c->now) return SC_OK;
    trace_node what = {.kind = SC_TASK_COMP, .duration = t - c->now};
    SC_TRY(node(c, &what, &at));
    SC_TRY(behind(c));
    c->n_had = 0;
    c->now = t;
    return has(c, at);
}

/* ---- moments ------------------------------------------------------------- */

/* Moments: posts and beginnings of waits. At one time: first posts and blocking
 * calls that take no time, in the order of the records, then waits for
 * operations that have ended, then waits that take time. */
static int by_time(const void *x, const void *y)
{
    const trace_moment *a = x, *b = y;
    if (a->t != b->t) return a->t < b->t ? -1 : 1;
    if (a->late != b->late) return a->late - b->late;
    if (a->record != b->record) return a->record < b->record ? -1 : 1;
    return a->wait - b->wait;
}

static sc_time end_of(const trace_class *c, const sc_emu_record *o)
{
    sc_time end = o->end;
    if (end == SC_TIME_MAX) end = o->resumed;
    if (end == 0 || end == SC_TIME_MAX) end = c->run->totals.now;
    return end > o->post ? end : o->post;
}

/* Weak progress: an operation is posted when the program next enters the
 * library, or when it began, if that was in a test, which has no record. */
static void release(const trace_class *c, trace_moment *m, uint32_t n)
{
    sc_time inside = SC_TIME_MAX;
    for (uint32_t i = n; i-- > 0;) {
        const sc_emu_record *o = &c->run->record[m[i].record];
        if (m[i].wait || !(o->flags & SC_EMU_HELD)) {
            inside = m[i].t;
            continue;
        }
        sc_time t = o->begin < inside ? o->begin : inside;
        if (t > m[i].t && t < SC_TIME_MAX) m[i].t = t;
    }
    qsort(m, n, sizeof *m, by_time);
}

static uint32_t moments(const trace_class *c, trace_moment *m)
{
    uint32_t n = 0;
    for (uint64_t i = c->first; i < c->last; i++) {
        const sc_emu_record *o = &c->run->record[i];
        sc_time post = o->post > c->begin ? o->post : c->begin;
        m[n++] = (trace_moment){post, i, false, 0};
        if (o->resumed == 0) continue; /* the program did not wait for it */
        sc_time from = post;
        bool async = o->flags & SC_EMU_ASYNC;
        if (async && o->resumed - o->waited > post)
            from = o->resumed - o->waited;
        m[n++] = (trace_moment){from, i, true, o->resumed > from ? 2 : async};
    }
    qsort(m, n, sizeof *m, by_time);
    release(c, m, n);
    return n;
}

static uint32_t slot(uint32_t *slots, uint32_t *n, uint32_t value)
{
    for (uint32_t i = 0; i < *n; i++)
        if (slots[i] == value) return i;
    slots[*n] = value;
    return (*n)++;
}

/* Of the root in its group. */
static uint32_t position(const sc_rank_group *g, uint32_t rank)
{
    for (uint32_t i = 0; i < g->n; i++)
        if (g->rank[i] == rank) return i;
    return 0;
}

/* The same operation in the next repetition, or in the one before; NULL: there
 * is none. */
static const sc_emu_record *other_round(const trace_class *c,
                                        const sc_emu_record *o, bool *next)
{
    const sc_emu_totals *t = &c->run->totals;
    uint64_t i = (uint64_t)(o - c->run->record), n = c->run->n_records;
    if (t->loop == 0 || t->loop > n || i < t->loop_from) return NULL;
    *next = i < n - t->loop;
    if (*next) return o + t->loop;
    return i - t->loop_from >= t->loop ? o - t->loop : NULL;
}

/* What a round adds to the tag. */
static int32_t tag_step(const trace_class *c, const sc_emu_record *o)
{
    bool next;
    const sc_emu_totals *t = &c->run->totals;
    const sc_emu_record *x = other_round(c, o, &next);
    if (!c->envelopes || !x || o->tag < 0 || x->tag < 0) return 0;
    int64_t step = next ? (int64_t)x->tag - o->tag : (int64_t)o->tag - x->tag;
    step *= (int64_t)((c->run->n_records - t->loop_from) / t->loop);
    return step >= INT32_MIN && step <= INT32_MAX ? (int32_t)step : 0;
}

static sc_status tag_slot(trace_class *c, int32_t tag, int32_t step,
                          uint32_t *out)
{
    uint32_t t = c->tagged ? (uint32_t)tag : 0;
    uint64_t key = (uint64_t)(uint32_t)step << 32 | t;
    *out = sc_map_get(&c->tag_slots, key);
    if (*out != SC_MAP_END) return SC_OK;
    uint32_t *at =
        sc_grow(c->a, c->tags, c->n_tags, &c->cap_tags, 16, sizeof *at);
    int32_t *steps = sc_grow(c->a, c->tag_steps, c->n_tags, &c->cap_steps, 16,
                             sizeof *steps);
    if (!at || !steps || !sc_map_set(&c->tag_slots, c->a, key, c->n_tags))
        return sc_error_nomem(c->err);
    c->tags = at;
    c->tags[c->n_tags] = t;
    c->tag_steps = steps;
    c->tag_steps[c->n_tags] = step;
    *out = c->n_tags++;
    return SC_OK;
}

static sc_status message(trace_class *c, const sc_emu_record *o,
                         trace_node *out)
{
    bool send = o->coll == SC_SEND, next;
    const sc_emu_record *x = other_round(c, o, &next);
    *out = (trace_node){.kind = send ? SC_TASK_SEND : SC_TASK_RECV,
                        .size = o->bytes,
                        .group = SC_TASK_WORLD,
                        .peer = slot(c->peers, &c->n_peers, o->peer)};
    /* A communicator of one step has another number in the next one. */
    if (c->envelopes && (!x || x->group == o->group))
        out->group = slot(c->groups, &c->n_groups, o->group);
    return tag_slot(c, o->tag, tag_step(c, o), &out->tag);
}

static trace_node collective(trace_class *c, const sc_emu_record *o)
{
    const sc_rank_group *g = &c->run->group[o->group];
    trace_node t = {.kind = SC_TASK_COLL,
                    /* Chakra has no scan */
                    .coll = o->coll == SC_SCAN ? SC_ALL_REDUCE : o->coll,
                    .size = o->bytes,
                    .group = SC_TASK_WORLD,
                    .peer = position(g, o->peer)};
    if (o->coll == SC_ALL_GATHER || o->coll == SC_GATHER)
        t.size = (o->bytes + g->n - 1) / g->n;
    if (g->n != c->run->world)
        t.group = slot(c->groups, &c->n_groups, o->group);
    return t;
}

static sc_status post(trace_class *c, const trace_moment *m, uint32_t *nodes)
{
    const sc_emu_record *o = &c->run->record[m->record];
    bool p2p = o->coll == SC_SEND || o->coll == SC_RECV;
    if (c->envelopes && c->run->totals.loop && !c->n_once &&
        m->record >= c->run->totals.loop_from)
        c->n_once = c->n;
    SC_TRY(compute(c, m->t));
    if (p2p && o->peer >= c->run->world) return SC_OK; /* it got no message */
    trace_node t;
    if (p2p)
        SC_TRY(message(c, o, &t));
    else
        t = collective(c, o);
    t.duration = end_of(c, o) - m->t;
    if (t.duration < 0) t.duration = 0;
    uint32_t *at = &nodes[m->record - c->first];
    SC_TRY(node(c, &t, at));
    SC_TRY(behind(c));
    /* a device's queue, which the program does not wait for */
    if (o->stream == 0 || o->stream >= TRACE_STREAMS) return SC_OK;
    uint32_t last = c->queue[o->stream];
    if (last != 0 && c->queue_end[o->stream] <= m->t)
        SC_TRY(depend(c, last - 1));
    c->queue[o->stream] = *at + 1;
    c->queue_end[o->stream] = end_of(c, o);
    return SC_OK;
}

static sc_status wait_for(trace_class *c, const trace_moment *m,
                          const uint32_t *nodes)
{
    sc_time end = end_of(c, &c->run->record[m->record]);
    SC_TRY(compute(c, m->t));
    if (end > c->now) c->now = end;
    return has(c, nodes[m->record - c->first]);
}

sc_status trace_steps(trace_class *c, const sc_emu_trace_opts *o)
{
    if (!o->steps) return SC_OK;
    SC_TRY(sc_emu_steps(c->run, o->period, c->a, &c->step, &c->n_steps, NULL,
                        c->err));
    if (c->n_steps == 0)
        return sc_error(
            c->err, SC_EINPUT, SC_C_MISSING, sc_pos_none(),
            "give the number of operations of a step with --step-collectives",
            "rank %u: no repeated step was found", c->run->rank);
    return SC_OK;
}

/* The records of the last `n` steps, or all, and the start of the first one. */
static void extent(trace_class *c, uint32_t n)
{
    c->last = c->run->n_records;
    c->until = c->run->totals.now;
    /* How long a library takes to start differs from run to run. */
    if (c->envelopes && c->last > 0) c->begin = c->run->record[0].post;
    if (c->n_steps == 0) return;
    const sc_emu_step *first = &c->step[c->n_steps - n];
    const sc_emu_step *last = &c->step[c->n_steps - 1];
    c->first = first->first;
    c->last = last->first + last->n;
    c->begin = first->begin;
    c->until = last->end;
}

/* The program itself said where the last step ended: behind its operations. */
static bool outlasts(const trace_class *c)
{
    for (uint64_t i = c->first; i < c->last; i++)
        if (end_of(c, &c->run->record[i]) >= c->until) return false;
    return true;
}

sc_status trace_nodes(trace_class *c, const sc_emu_trace_opts *o,
                      uint32_t n_steps)
{
    extent(c, n_steps);
    uint64_t n = c->last - c->first;
    if (n > TRACE_RECORDS)
        return sc_error(c->err, SC_EINPUT, SC_C_TOO_BIG, sc_pos_none(), NULL,
                        "rank %u has %llu operations", c->run->rank,
                        (unsigned long long)n);
    trace_moment *m = SC_NEW_N(c->a, trace_moment, 2 * n);
    uint32_t *nodes = SC_NEW_N(c->a, uint32_t, n);
    c->now = c->begin;
    c->groups = SC_NEW_N(c->a, uint32_t, c->run->n_groups);
    c->peers = SC_NEW_N(c->a, uint32_t, c->run->world);
    if (!m || !nodes || !c->groups || !c->peers) return sc_error_nomem(c->err);
    uint32_t n_moments = moments(c, m);
    for (uint32_t i = 0; i < n_moments && m[i].t <= c->until; i++)
        SC_TRY(m[i].wait ? wait_for(c, &m[i], nodes) : post(c, &m[i], nodes));
    /* the computation after its last operation */
    return !o->steps || outlasts(c) ? compute(c, c->until) : SC_OK;
}
