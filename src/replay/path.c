/* SPDX-License-Identifier: Apache-2.0 */
/* path.c - the critical path by call paths, and kernels by name. */
#include "replay/build.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- names --------------------------------------------------------------- */

#define MAX_DEPTH 16

/* Numbers of steps differ between traces. */
static bool is_step(const replay_rank *r, uint32_t span)
{
    return replay_span(r, span)->kind == SC_SPAN_STEP;
}

/* The call that launched a device span; REPLAY_NONE. */
static uint32_t call_of(const replay_rank *r, uint32_t op)
{
    uint32_t item = r->op[op].item;
    return item == REPLAY_NONE ? REPLAY_NONE : r->item[item].span;
}

void replay_path(const replay_rank *r, uint32_t inner, char *buf, size_t size)
{
    uint32_t x[MAX_DEPTH], n = 0;
    size_t at = 0;
    for (uint32_t i = inner; i != REPLAY_NONE && n < MAX_DEPTH;
         i = r->parent[i])
        if (!is_step(r, i)) x[n++] = i;
    buf[0] = '\0';
    for (uint32_t i = n; i-- > 0 && at < size;) {
        const char *name = r->m->name[replay_span(r, x[i])->name];
        int len =
            snprintf(buf + at, size - at, "%s%s", i + 1 < n ? " > " : "", name);
        if (len > 0) at += (size_t)len;
    }
}

static void path_of(const replay_rank *r, uint32_t call, uint32_t span,
                    char *buf, size_t size)
{
    replay_path(r, call == REPLAY_NONE ? REPLAY_NONE : r->parent[call], buf,
                size);
    if (buf[0]) return;
    snprintf(buf, size, "%s",
             span == REPLAY_NONE ? "program"
                                 : r->m->name[replay_span(r, span)->name]);
}

/* ---- entries ------------------------------------------------------------- */

typedef struct entries {
    const sc_replay_model *m;
    const sc_replay_result *r;
    sc_arena *a;
    sc_err *err;
    sc_map map;
    sc_replay_entry *e;
    uint32_t n, cap;
    uint32_t **op_of; /* [n_ranks][spans] device op; REPLAY_NONE */
} entries;

static sc_status index_ops(entries *x)
{
    x->op_of = SC_NEW_N(x->a, uint32_t *, x->m->n_ranks);
    if (!x->op_of) return sc_error_nomem(x->err);
    for (uint32_t k = 0; k < x->m->n_ranks; k++) {
        const replay_rank *r = &x->m->rank[k];
        x->op_of[k] = SC_RAW_N(x->a, uint32_t, r->m->n_spans);
        if (!x->op_of[k]) return sc_error_nomem(x->err);
        memset(x->op_of[k], 0xff, r->m->n_spans * sizeof **x->op_of);
        for (uint32_t i = 0; i < r->n_ops; i++) x->op_of[k][r->op[i].span] = i;
    }
    return SC_OK;
}

static sc_status add(entries *x, uint8_t class, const char *path, sc_time t)
{
    uint64_t hash = sc_hash(path, strlen(path), class);
    uint32_t at = 0, i;
    while ((i = sc_map_next(&x->map, hash, &at)) != SC_MAP_END)
        if (x->e[i].class == class && strcmp(x->e[i].path, path) == 0) break;
    if (i == SC_MAP_END) {
        sc_replay_entry *grown =
            sc_grow(x->a, x->e, x->n, &x->cap, 64, sizeof *grown);
        char *copy = sc_strdup(x->a, path);
        if (!grown || !copy || !sc_map_add(&x->map, x->a, hash, x->n))
            return sc_error_nomem(x->err);
        x->e = grown;
        i = x->n++;
        x->e[i] = (sc_replay_entry){.path = copy, .class = class};
    }
    x->e[i].time += t;
    x->e[i].count++;
    return SC_OK;
}

static sc_status add_op(entries *x, sc_op i)
{
    const sc_graph *g = x->r->graph;
    const replay_rank *r = &x->m->rank[x->r->owner[i]];
    uint32_t span = x->r->span[i], op = REPLAY_NONE;
    sc_time t = x->r->run->end[i] - x->r->run->start[i];
    char path[1024];
    if (t == 0) return SC_OK;
    if (g->kind[i] == SC_OP_HOST) {
        path_of(r, span, span, path, sizeof path);
        return add(x, SC_REPLAY_HOST, path, t);
    }
    if (span == REPLAY_NONE)
        return add(x, SC_N_REPLAY_CLASSES,
                   g->name[i] == replay_later ? replay_later
                                              : "latency of launches",
                   t);
    op = x->op_of[x->r->owner[i]][span];
    path_of(r, op == REPLAY_NONE ? REPLAY_NONE : call_of(r, op), span, path,
            sizeof path);
    return add(x, (uint8_t)replay_class_of(replay_span(r, span)), path, t);
}

static int by_time(const void *p, const void *q)
{
    const sc_replay_entry *a = p, *b = q;
    if (a->time != b->time) return a->time > b->time ? -1 : 1;
    return strcmp(a->path, b->path);
}

sc_status sc_replay_entries(const sc_replay_model *m, const sc_replay_result *r,
                            sc_arena *a, sc_replay_entry **out, uint32_t *n,
                            sc_err *err)
{
    entries x = {.m = m, .r = r, .a = a, .err = err};
    SC_TRY(index_ops(&x));
    for (sc_op i = r->end; i != SC_NONE; i = r->run->cause[i])
        SC_TRY(add_op(&x, i));
    if (x.n) qsort(x.e, x.n, sizeof *x.e, by_time);
    *out = x.e;
    *n = x.n;
    return SC_OK;
}

/* ---- kernels ------------------------------------------------------------- */

typedef struct kernels {
    sc_arena *a;
    sc_replay_kernel *k;
    uint32_t n, cap;
    sc_map map;
    uint32_t **of_name; /* [n_ranks][names] number plus 1 */
} kernels;

static sc_status kernel_of(kernels *x, const sc_replay_model *m, uint32_t rank,
                           uint32_t span, uint32_t *out, sc_err *err)
{
    const replay_rank *r = &m->rank[rank];
    const sc_trace_span *s = replay_span(r, span);
    uint32_t *known = &x->of_name[rank][s->name];
    sc_arena *a = x->a;
    const char *name = r->m->name[s->name];
    uint64_t hash = sc_hash(name, strlen(name), 0);
    uint32_t at = 0, i;
    if (*known) {
        *out = *known - 1;
        return SC_OK;
    }
    while ((i = sc_map_next(&x->map, hash, &at)) != SC_MAP_END)
        if (strcmp(x->k[i].name, name) == 0) break;
    if (i == SC_MAP_END) {
        sc_replay_kernel *grown =
            sc_grow(a, x->k, x->n, &x->cap, 64, sizeof *grown);
        if (!grown || !sc_map_add(&x->map, a, hash, x->n))
            return sc_error_nomem(err);
        x->k = grown;
        i = x->n++;
        x->k[i] = (sc_replay_kernel){.name = name,
                                     .class = (uint8_t)replay_class_of(s),
                                     .slack = SC_TIME_MAX};
    }
    *known = i + 1;
    *out = i;
    return SC_OK;
}

static sc_status recorded_totals(kernels *x, const sc_replay_model *m,
                                 uint32_t rank, sc_err *err)
{
    const replay_rank *r = &m->rank[rank];
    uint32_t k;
    x->of_name[rank] = SC_NEW_N(x->a, uint32_t, r->m->n_names);
    if (!x->of_name[rank]) return sc_error_nomem(err);
    for (uint32_t i = 0; i < r->n_ops; i++) {
        SC_TRY(kernel_of(x, m, rank, r->op[i].span, &k, err));
        x->k[k].count++;
        x->k[k].total += r->op[i].dur;
    }
    return SC_OK;
}

static int by_total(const void *p, const void *q)
{
    const sc_replay_kernel *a = p, *b = q;
    if (a->total != b->total) return a->total > b->total ? -1 : 1;
    return strcmp(a->name, b->name);
}

sc_status sc_replay_kernels(const sc_replay_model *m, const sc_replay_result *r,
                            sc_arena *a, sc_replay_kernel **out, uint32_t *n,
                            sc_err *err)
{
    kernels x = {.a = a, .of_name = SC_NEW_N(a, uint32_t *, m->n_ranks)};
    sc_time *slack;
    uint8_t *on_path = SC_NEW_N(a, uint8_t, r->n_ops);
    if (!on_path || !x.of_name) return sc_error_nomem(err);
    SC_TRY(sc_result_slack(r->graph, r->run, r->end, a, &slack, err));
    for (uint32_t k = 0; k < m->n_ranks; k++)
        SC_TRY(recorded_totals(&x, m, k, err));
    for (sc_op i = r->end; i != SC_NONE; i = r->run->cause[i]) on_path[i] = 1;
    for (sc_op i = 0; i < r->n_ops; i++) {
        uint32_t span = r->span[i], k;
        if (span == REPLAY_NONE || r->graph->kind[i] == SC_OP_HOST) continue;
        SC_TRY(kernel_of(&x, m, r->owner[i], span, &k, err));
        x.k[k].predicted += r->busy[i];
        if (slack[i] < x.k[k].slack) x.k[k].slack = slack[i];
        if (on_path[i]) x.k[k].on_path += r->run->end[i] - r->run->start[i];
    }
    if (x.n) qsort(x.k, x.n, sizeof *x.k, by_total);
    *out = x.k;
    *n = x.n;
    return SC_OK;
}
