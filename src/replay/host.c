/* SPDX-License-Identifier: Apache-2.0 */
/* host.c - overheads of operators on the host, and a host with those of another
 * trace. */
#include "replay/host.h"

#include <stdlib.h>
#include <string.h>

/* A part of a thread's time. */
typedef struct part {
    sc_host_part is;
    uint32_t name; /* index into the names of the trace */
    sc_time from, to;
} part;

typedef sc_status visit(void *user, const part *p);

typedef struct walker {
    const replay_rank *r;
    visit *see;
    void *user;
    sc_time at; /* what came before has been seen */
    bool begun; /* `at` is known */
    bool open;  /* an operator */
    uint32_t name;
    sc_time end;
    uint32_t calls; /* of it so far */
} walker;

static sc_status pass(walker *w, sc_host_part is, uint32_t name, sc_time to)
{
    part p = {is, name, w->at, to};
    bool inside = w->begun && p.from >= w->r->from && to <= w->r->to;
    w->at = to;
    w->begun = true;
    return inside && to > p.from ? w->see(w->user, &p) : SC_OK;
}

static sc_status close_op(walker *w, sc_time now)
{
    if (!w->open || now < w->end) return SC_OK;
    w->open = false;
    return pass(w, w->calls ? SC_HOST_T3 : SC_HOST_T5, w->name, w->end);
}

static bool may_wait(const sc_trace_span *s)
{
    return s->detail == SC_CALL_STREAM_SYNC ||
           s->detail == SC_CALL_DEVICE_SYNC ||
           s->detail == SC_CALL_EVENT_SYNC || s->detail == SC_CALL_COPY;
}

static sc_status see_call(walker *w, const sc_trace_span *s)
{
    sc_time end = s->start + s->dur;
    if (s->start < w->at) return SC_OK; /* inside another call */
    if (w->open)
        SC_TRY(pass(w, w->calls ? SC_HOST_T5 : SC_HOST_T2, w->name, s->start));
    w->calls++;
    w->at = may_wait(s) ? end : s->start;
    w->begun = true;
    return may_wait(s) ? SC_OK : pass(w, SC_HOST_T4, s->name, end);
}

static sc_status walk(const replay_rank *r, uint32_t lane, visit *see,
                      void *user)
{
    walker w = {.r = r, .see = see, .user = user};
    for (uint32_t i = r->host_head[lane]; i < r->host_head[lane + 1]; i++) {
        const sc_trace_span *s = replay_span(r, r->host[i]);
        SC_TRY(close_op(&w, s->start));
        if (s->kind == SC_SPAN_CALL) SC_TRY(see_call(&w, s));
        if (s->kind != SC_SPAN_OP || w.open || s->start < w.at) continue;
        SC_TRY(pass(&w, SC_HOST_T1, 0, s->start));
        w.open = true;
        w.name = s->name;
        w.end = s->start + s->dur;
        w.calls = 0;
    }
    return close_op(&w, SC_TIME_MAX);
}

/* ---- statistics ---------------------------------------------------------- */

typedef struct sample {
    uint32_t of; /* index into the overheads */
    double dur;
} sample;

typedef struct collector {
    sc_host_overheads *out;
    const replay_rank *r;
    uint32_t cap, n, cap_samples;
    sample *all; /* [n] */
    sc_arena *a, *tmp;
    sc_err *err;
} collector;

static uint64_t key_of(sc_host_part is, const char *name)
{
    return sc_hash(name, strlen(name), (uint64_t)is);
}

static uint32_t find(const sc_host_overheads *o, sc_host_part is,
                     const char *name)
{
    uint32_t at = 0, i;
    uint64_t key = key_of(is, name);
    while ((i = sc_map_next(&o->by_name, key, &at)) != SC_MAP_END)
        if (o->of[i].part == is && strcmp(o->of[i].name, name) == 0) break;
    return i;
}

const sc_host_overhead *sc_host_overhead_of(const sc_host_overheads *o,
                                            sc_host_part is, const char *name)
{
    uint32_t i = find(o, is, name);
    return i == SC_MAP_END ? NULL : &o->of[i];
}

static sc_status collect(void *user, const part *p)
{
    collector *c = user;
    sc_host_overheads *o = c->out;
    const char *name = c->r->m->name[p->name];
    uint32_t i = find(o, p->is, name);
    if (i == SC_MAP_END) {
        sc_host_overhead *grown =
            sc_grow(c->a, o->of, o->n, &c->cap, 64, sizeof *grown);
        if (!grown || !sc_map_add(&o->by_name, c->a, key_of(p->is, name), o->n))
            return sc_error_nomem(c->err);
        o->of = grown;
        i = o->n++;
        o->of[i] = (sc_host_overhead){.name = name, .part = (uint8_t)p->is};
    }
    sample *all =
        sc_grow_raw(c->tmp, c->all, c->n, &c->cap_samples, 256, sizeof *all);
    if (!all) return sc_error_nomem(c->err);
    c->all = all;
    all[c->n++] = (sample){i, (double)(p->to - p->from)};
    o->of[i].n++;
    o->of[i].total += p->to - p->from;
    return SC_OK;
}

static int by_owner(const void *p, const void *q)
{
    const sample *a = p, *b = q;
    if (a->of != b->of) return a->of < b->of ? -1 : 1;
    return (a->dur > b->dur) - (a->dur < b->dur);
}

static void average(const sample *v, uint32_t n, sc_host_overhead *out)
{
    double low = v[n / 4].dur, high = v[n - 1 - n / 4].dur, sum = 0;
    double reach = 1.5 * (high - low);
    uint32_t used = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (v[i].dur < low - reach || v[i].dur > high + reach) continue;
        sum += v[i].dur;
        used++;
    }
    out->mean = sum / used;
    out->most = high + reach;
}

static int by_total(const void *p, const void *q)
{
    const sc_host_overhead *a = p, *b = q;
    if (a->total != b->total) return a->total > b->total ? -1 : 1;
    if (a->part != b->part) return a->part < b->part ? -1 : 1;
    return strcmp(a->name, b->name);
}

static sc_status finish(collector *c)
{
    sc_host_overheads *o = c->out;
    if (c->n) qsort(c->all, c->n, sizeof *c->all, by_owner);
    for (uint32_t i = 0, end; i < c->n; i = end) {
        for (end = i; end < c->n && c->all[end].of == c->all[i].of;) end++;
        average(c->all + i, end - i, &o->of[c->all[i].of]);
    }
    if (o->n) qsort(o->of, o->n, sizeof *o->of, by_total);
    sc_map_clear(&o->by_name);
    for (uint32_t i = 0; i < o->n; i++)
        if (!sc_map_add(&o->by_name, c->a,
                        key_of((sc_host_part)o->of[i].part, o->of[i].name), i))
            return sc_error_nomem(c->err);
    return SC_OK;
}

sc_status sc_host_overheads_of(const sc_replay_model *const *m, uint32_t n,
                               sc_arena *a, sc_host_overheads *out, sc_err *err)
{
    sc_arena tmp;
    sc_status s = SC_OK;
    *out = (sc_host_overheads){.n = 0};
    sc_arena_init(&tmp, a->limit);
    collector c = {.out = out, .a = a, .tmp = &tmp, .err = err};
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < m[i]->n_ranks; k++) {
            c.r = &m[i]->rank[k];
            for (uint32_t l = 0; s == SC_OK && l < c.r->m->n_lanes; l++)
                if (!c.r->m->lanes[l].device) s = walk(c.r, l, collect, &c);
        }
    if (s == SC_OK) s = finish(&c);
    sc_arena_free(&tmp);
    return s;
}

/* ---- another host -------------------------------------------------------- */

typedef struct changer {
    const replay_rank *r;
    const sc_host_overheads *own, *o;
    replay_pace *out;
} changer;

static sc_status change(void *user, const part *p)
{
    changer *c = user;
    const char *name = c->r->m->name[p->name];
    const sc_host_overhead *there = sc_host_overhead_of(c->o, p->is, name);
    const sc_host_overhead *here = sc_host_overhead_of(c->own, p->is, name);
    double dur = (double)(p->to - p->from);
    if (!there || !here || dur > here->most) return SC_OK;
    replay_pace_add(c->out, p->from, 0);
    replay_pace_add(c->out, p->to, there->mean - dur);
    return SC_OK;
}

sc_status replay_host_pace(const replay_rank *r, uint32_t lane,
                           const sc_host_overheads *own,
                           const sc_host_overheads *o, sc_arena *a,
                           replay_pace *out, sc_err *err)
{
    uint32_t n = r->host_head[lane + 1] - r->host_head[lane];
    changer c = {r, own, o, out};
    /* each span ends at most two parts */
    if (!replay_pace_new(4 * n + 4, a, out)) return sc_error_nomem(err);
    return walk(r, lane, change, &c);
}
