/* SPDX-License-Identifier: Apache-2.0 */
/*
 * split.c - every moment of a step belongs to what the device does: kernels come
 * before collectives, these before copies, and what is left belongs to what the
 * next op waits for.
 */
#include "replay/split.h"

#include <stdlib.h>

static int compare_busy(const void *x, const void *y)
{
    const replay_busy *a = x, *b = y;
    if (a->from != b->from) return a->from < b->from ? -1 : 1;
    return (a->to > b->to) - (a->to < b->to);
}

void replay_sort_busy(replay_busy *v, uint32_t n)
{
    if (n) qsort(v, n, sizeof *v, compare_busy);
    for (uint32_t i = 0; i < n; i++) {
        v[i].latest = v[i].to;
        if (i && v[i - 1].latest > v[i].to) v[i].latest = v[i - 1].latest;
    }
}

/* A moment at which an op begins, works or ends. */
typedef struct edge {
    sc_time at;
    uint8_t class;
    int8_t step;  /* of the number that run */
    bool arrived; /* the change is of those that work, not of those that run */
} edge;

static int compare_edges(const void *x, const void *y)
{
    const edge *a = x, *b = y;
    return (a->at > b->at) - (a->at < b->at);
}

static sc_time clip(sc_time t, sc_time from, sc_time to)
{
    return t < from ? from : t > to ? to : t;
}

static uint32_t list_edges(const replay_busy *v, uint32_t n, sc_time from,
                           sc_time to, edge *out)
{
    uint32_t k = 0;
    for (uint32_t i = 0; i < n; i++) {
        sc_time a = clip(v[i].from, from, to), b = clip(v[i].to, from, to);
        sc_time w = clip(v[i].arrived, from, to);
        if (b <= a) continue;
        out[k++] = (edge){a, v[i].class, 1, false};
        out[k++] = (edge){b, v[i].class, -1, false};
        if (v[i].class != SC_REPLAY_COMM) continue;
        out[k++] = (edge){w, v[i].class, 1, true};
        out[k++] = (edge){b, v[i].class, -1, true};
    }
    if (k) qsort(out, k, sizeof *out, compare_edges);
    return k;
}

/* Whether the first op that starts at `at` or later waited for the host. */
static bool host_bound(const replay_busy *v, uint32_t n, sc_time at)
{
    uint32_t i = 0;
    SC_FIRST(i, n, mid, v[mid].from >= at)
    return i == n || v[i].host_bound;
}

sc_status replay_split(const replay_busy *v, uint32_t n, sc_time from,
                       sc_time to, sc_arena *tmp, sc_replay_split *out,
                       sc_err *err)
{
    int running[SC_N_REPLAY_CLASSES] = {0}, working = 0;
    uint32_t first = 0, end = 0;
    SC_FIRST(first, n, mid, v[mid].latest > from)
    SC_FIRST(end, n, mid, v[mid].from >= to)
    if (end < first) end = first;
    sc_arena_mark mark = sc_arena_save(tmp);
    edge *e = SC_RAW_N(tmp, edge, 4 * (size_t)(end - first));
    if (!e) return sc_error_nomem(err);
    uint32_t k = list_edges(v + first, end - first, from, to, e);
    *out = (sc_replay_split){0};
    sc_time last = from;
    for (uint32_t i = 0; i <= k; i++) {
        sc_time at = i < k ? e[i].at : to, dt = at - last;
        if (dt > 0) {
            if (running[SC_REPLAY_COMPUTE]) {
                out->compute += dt;
            } else if (running[SC_REPLAY_COMM]) {
                out->exposed_comm += dt;
                if (!working) out->waiting += dt;
            } else if (running[SC_REPLAY_MEMORY]) {
                out->memory += dt;
            } else if (host_bound(v, n, at)) {
                out->host_bound += dt;
            } else {
                out->idle += dt;
            }
        }
        last = at;
        if (i < k && e[i].arrived) working += e[i].step;
        if (i < k && !e[i].arrived) running[e[i].class] += e[i].step;
    }
    sc_arena_restore(tmp, mark);
    return SC_OK;
}

/* A collective is exposed where nothing else runs, copies included. */
static sc_status exposed(const replay_busy *v, uint32_t n, sc_time from,
                         sc_time to, sc_arena *tmp, sc_time *out, sc_err *err)
{
    replay_busy *w = SC_RAW_N(tmp, replay_busy, n);
    sc_replay_split s;
    if (!w) return sc_error_nomem(err);
    for (uint32_t i = 0; i < n; i++) {
        w[i] = v[i];
        if (w[i].class == SC_REPLAY_MEMORY) w[i].class = SC_REPLAY_COMPUTE;
    }
    SC_TRY(replay_split(w, n, from, to, tmp, &s, err));
    *out = s.exposed_comm;
    return SC_OK;
}

sc_status replay_facts(const replay_busy *v, uint32_t n, sc_time from,
                       sc_time to, sc_arena *tmp, sc_replay_facts *out,
                       sc_err *err)
{
    uint32_t first = 0, end = 0;
    sc_replay_split s;
    SC_FIRST(first, n, mid, v[mid].from >= from)
    SC_FIRST(end, n, mid, v[mid].from >= to)
    sc_time until = to;
    for (uint32_t i = first; i < end; i++) {
        out->kernels++;
        out->busy_sum += v[i].to - v[i].from;
        if (v[i].to > until) until = v[i].to;
        if (v[i].class != SC_REPLAY_COMM) continue;
        out->collectives++;
        out->collective_sum += v[i].to - v[i].from;
    }
    SC_TRY(replay_split(v + first, end - first, from, until, tmp, &s, err));
    out->busy_union = s.compute + s.exposed_comm + s.memory;
    return exposed(v + first, end - first, from, until, tmp, &out->exposed_comm,
                   err);
}
