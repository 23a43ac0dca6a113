/* SPDX-License-Identifier: Apache-2.0 */
/* memory.c - memory of devices over the window, and what holds it at the peak. */
#include "replay/model.h"

#include <stdlib.h>
#include <string.h>

#define MOST_HOLDERS 12
#define MOST_DEVICES 64 /* of a process */

typedef struct changes {
    const replay_rank *r;
    uint32_t device;
    uint32_t n;
    uint32_t *order; /* [n] changes of the device by time */
    sc_arena *a;
    sc_err *err;
} changes;

static const sc_memory_change *change_at(const changes *x, uint32_t i)
{
    return &x->r->m->change[x->order[i]];
}

typedef struct key {
    sc_time at;
    uint32_t change;
} key;

/* Changes at one time stay in the order of the file. */
static int by_time(const void *p, const void *q)
{
    const key *a = p, *b = q;
    if (a->at != b->at) return a->at < b->at ? -1 : 1;
    return (a->change > b->change) - (a->change < b->change);
}

static sc_status sort_changes(changes *x)
{
    const sc_profiled *m = x->r->m;
    key *keys = SC_RAW_N(x->a, key, m->n_changes);
    x->order = SC_RAW_N(x->a, uint32_t, m->n_changes);
    if (!keys || !x->order) return sc_error_nomem(x->err);
    x->n = 0;
    for (uint32_t i = 0; i < m->n_changes; i++)
        if (m->change[i].device == x->device)
            keys[x->n++] = (key){m->change[i].at, i};
    if (x->n == 0) return SC_OK;
    qsort(keys, x->n, sizeof *keys, by_time);
    for (uint32_t i = 0; i < x->n; i++) x->order[i] = keys[i].change;
    return SC_OK;
}

/* ---- over time ----------------------------------------------------------- */

static bool states_totals(const sc_profiled *m)
{
    for (uint32_t i = 0; i < m->n_changes; i++)
        if (m->change[i].total) return true;
    return false;
}

/* Bytes after a change, from those before it. What was allocated before the trace
 * may be freed in it, so relative bytes can't be less than none. */
static uint64_t after(const sc_memory_change *c, bool relative, uint64_t before)
{
    if (!relative) return c->total;
    if (c->bytes >= 0) return before + (uint64_t)c->bytes;
    uint64_t freed = (uint64_t)0 - (uint64_t)c->bytes;
    return before > freed ? before - freed : 0;
}

static uint32_t part_of(const replay_rank *r, sc_time at)
{
    double part = (double)(at - r->from) / (double)(r->to - r->from);
    uint32_t i = (uint32_t)(part * SC_REPLAY_BYTES);
    return i < SC_REPLAY_BYTES ? i : SC_REPLAY_BYTES - 1;
}

/* A part begins with what the one before it ended with. Returns the change that
 * reaches the peak. */
static uint32_t follow(const changes *x, sc_replay_memory *out)
{
    const replay_rank *r = x->r;
    uint64_t now = 0;
    uint32_t peak = REPLAY_NONE, next = 0;
    for (uint32_t i = 0; i < x->n && change_at(x, i)->at < r->to; i++) {
        const sc_memory_change *c = change_at(x, i);
        if (c->at >= r->from)
            for (; next <= part_of(r, c->at); next++)
                out->part[next].most = now;
        now = after(c, out->relative, now);
        if (c->at < r->from) continue;
        if (now > out->part[next - 1].most) out->part[next - 1].most = now;
        if (peak != REPLAY_NONE && now <= out->peak) continue;
        out->peak = now;
        peak = i;
    }
    for (; next < SC_REPLAY_BYTES; next++) out->part[next].most = now;
    return peak;
}

/* ---- the peak ------------------------------------------------------------ */

/* The innermost operator of a thread at a time; REPLAY_NONE. */
static uint32_t operator_at(const replay_rank *r, uint32_t lane, sc_time at)
{
    if (lane == SC_NO_LANE) return REPLAY_NONE;
    uint32_t first = r->host_head[lane], lo = first;
    SC_FIRST(lo, r->host_head[lane + 1], mid,
             replay_span(r, r->host[mid])->start > at)
    uint32_t span = lo > first ? r->host[lo - 1] : REPLAY_NONE;
    for (; span != REPLAY_NONE; span = r->parent[span]) {
        const sc_trace_span *s = replay_span(r, span);
        if (s->kind != SC_SPAN_CALL && s->start + s->dur >= at) break;
    }
    return span;
}

typedef struct holders {
    sc_map map;
    sc_replay_holder *all;
    uint32_t n, cap;
} holders;

static sc_status hold(const changes *x, holders *h, const sc_memory_change *c)
{
    char path[1024];
    uint32_t at = 0, i;
    replay_path(x->r, operator_at(x->r, c->lane, c->at), path, sizeof path);
    uint64_t hash = sc_hash(path, strlen(path), 1);
    while ((i = sc_map_next(&h->map, hash, &at)) != SC_MAP_END)
        if (strcmp(h->all[i].path, path) == 0) break;
    if (i == SC_MAP_END) {
        sc_replay_holder *grown =
            sc_grow(x->a, h->all, h->n, &h->cap, 32, sizeof *grown);
        char *copy = sc_strdup(x->a, path);
        if (!grown || !copy || !sc_map_add(&h->map, x->a, hash, h->n))
            return sc_error_nomem(x->err);
        h->all = grown;
        i = h->n++;
        h->all[i] = (sc_replay_holder){.path = copy};
    }
    h->all[i].bytes += (uint64_t)c->bytes;
    h->all[i].count++;
    return SC_OK;
}

static int by_bytes(const void *p, const void *q)
{
    const sc_replay_holder *a = p, *b = q;
    if (a->bytes != b->bytes) return a->bytes > b->bytes ? -1 : 1;
    return strcmp(a->path, b->path);
}

/* What was allocated until the peak and not freed by then. */
static sc_status find_holders(const changes *x, uint32_t peak,
                              sc_replay_memory *out)
{
    sc_map live = {.n = 0};
    bool *freed = SC_NEW_N(x->a, bool, x->n);
    holders h = {.n = 0};
    uint64_t known = 0;
    if (!freed) return sc_error_nomem(x->err);
    for (uint32_t i = 0; i <= peak; i++) {
        const sc_memory_change *c = change_at(x, i);
        uint64_t address = sc_mix(c->address);
        uint32_t at = 0, before = sc_map_next(&live, address, &at);
        if (!c->address) return SC_OK; /* not stated */
        if (before != SC_MAP_END) {
            sc_map_remove(&live, address, before);
            freed[before] = true;
        }
        if (c->bytes > 0 && !sc_map_add(&live, x->a, address, i))
            return sc_error_nomem(x->err);
    }
    for (uint32_t i = 0; i <= peak; i++) {
        const sc_memory_change *c = change_at(x, i);
        if (c->bytes <= 0 || freed[i]) continue;
        known += (uint64_t)c->bytes;
        SC_TRY(hold(x, &h, c));
    }
    if (h.n) qsort(h.all, h.n, sizeof *h.all, by_bytes);
    out->holder = h.all;
    out->n_holders = h.n < MOST_HOLDERS ? h.n : MOST_HOLDERS;
    out->before = out->peak > known ? out->peak - known : 0;
    return SC_OK;
}

static sc_status describe_peak(const changes *x, uint32_t peak,
                               sc_replay_memory *out)
{
    const replay_rank *r = x->r;
    const sc_memory_change *c = change_at(x, peak);
    char path[1024];
    replay_path(r, operator_at(r, c->lane, c->at), path, sizeof path);
    out->peak_at = c->at - r->from;
    out->peak_path = sc_strdup(x->a, path);
    if (!out->peak_path) return sc_error_nomem(x->err);
    for (uint32_t i = 0; i < r->n_steps; i++)
        if (r->step[i].from <= c->at && c->at < r->step[i].to)
            out->peak_step = r->step[i].name;
    return out->relative ? SC_OK : find_holders(x, peak, out);
}

static sc_status memory_of_device(const replay_rank *r, uint32_t device,
                                  sc_arena *a, sc_replay_memory *out,
                                  sc_err *err)
{
    changes x = {.r = r, .device = device, .a = a, .err = err};
    *out = (sc_replay_memory){
        .rank = r->rank, .device = device, .relative = !states_totals(r->m)};
    SC_TRY(sort_changes(&x));
    out->part = SC_NEW_N(a, sc_replay_bytes, SC_REPLAY_BYTES);
    if (!out->part) return sc_error_nomem(err);
    out->n_parts = SC_REPLAY_BYTES;
    for (uint32_t i = 0; i < SC_REPLAY_BYTES; i++)
        out->part[i].from = (r->to - r->from) / SC_REPLAY_BYTES * i;
    uint32_t peak = follow(&x, out);
    return peak == REPLAY_NONE ? SC_OK : describe_peak(&x, peak, out);
}

/* Of the device of the rank that needs most. */
static sc_status memory_of(const replay_rank *r, sc_arena *a,
                           sc_replay_memory *out, sc_err *err)
{
    uint32_t last = 0;
    *out = (sc_replay_memory){.rank = r->rank};
    for (uint32_t i = 0; i < r->m->n_changes; i++)
        if (r->m->change[i].device > last) last = r->m->change[i].device;
    for (uint32_t d = 0; d <= last && d < MOST_DEVICES; d++) {
        sc_replay_memory one;
        SC_TRY(memory_of_device(r, d, a, &one, err));
        if (one.peak > out->peak) *out = one;
    }
    return SC_OK;
}

sc_status sc_replay_memory_of(const sc_replay_model *m, sc_arena *a,
                              sc_replay_memory **out, uint32_t *n, sc_err *err)
{
    *n = 0;
    *out = SC_NEW_N(a, sc_replay_memory, m->n_ranks);
    if (!*out) return sc_error_nomem(err);
    for (uint32_t i = 0; i < m->n_ranks; i++) {
        const replay_rank *r = &m->rank[i];
        if (r->m->n_changes == 0 || r->to <= r->from) continue;
        SC_TRY(memory_of(r, a, &(*out)[*n], err));
        *n += (*out)[*n].peak > 0;
    }
    return SC_OK;
}
