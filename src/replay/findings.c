/* SPDX-License-Identifier: Apache-2.0 */
/* findings.c - what the step would gain without this or that, each simulated
 * again. */
#include "replay/model.h"

#include <stdlib.h>
#include <string.h>

#define LEAST     0.005 /* of the window */
#define KERNELS   3     /* that are tried at half their time */
#define KINDS     6     /* of collectives that are tried without their time */
#define MAX_FOUND 24

typedef struct finder {
    const sc_replay_model *m;
    const sc_replay_result *base;
    const sc_replay_change *c;
    sc_arena *a;
    sc_err *err;
    sc_replay_finding *found;
    uint32_t n;
} finder;

static sc_status try(finder *f, const sc_replay_change *c, const char *kind,
                     const char *text, const char *hint)
{
    sc_arena tmp;
    sc_replay_result r;
    if (!text) return sc_error_nomem(f->err);
    sc_arena_init(&tmp, f->a->limit);
    sc_status s = sc_replay_run(f->m, c, &tmp, &r, f->err);
    sc_time saves = s == SC_OK ? f->base->predicted - r.predicted : 0;
    sc_arena_free(&tmp);
    SC_TRY(s);
    if ((double)saves < LEAST * (double)f->base->predicted) return SC_OK;
    if (f->n < MAX_FOUND)
        f->found[f->n++] = (sc_replay_finding){kind, text, hint, saves};
    return SC_OK;
}

/* The rank for which the others wait longest. */
static uint32_t slowest(const finder *f, sc_time *waited)
{
    const sc_replay_result *r = f->base;
    sc_time least = SC_TIME_MAX;
    uint32_t rank = 0;
    *waited = 0;
    for (uint32_t k = 0; k < r->n_ranks; k++) {
        sc_time own = 0;
        for (uint32_t i = 0; i < r->rank[k].n_steps; i++)
            own += r->rank[k].step[i].split.waiting;
        if (own < least) {
            least = own;
            rank = k;
        }
        if (own > *waited) *waited = own;
    }
    return rank;
}

static sc_status stragglers(finder *f)
{
    sc_replay_change c = *f->c;
    sc_time waited;
    uint32_t rank = slowest(f, &waited);
    if (f->m->n_ranks < 2) return SC_OK;
    c.drop_straggler = true;
    return try(f, &c, "straggler",
               sc_sprintf(f->a,
                          "ranks wait for each other up to %.3g ms, least of "
                          "all rank %u; saved if none were slower than the "
                          "median rank",
                          (double)waited / 1e9, f->base->rank[rank].rank),
               "balance the work of the ranks, or replace the slow device");
}

/* A name as a pattern that matches only it, up to its own stars. */
static sc_status without(finder *f, const char *name, double factor,
                         const char *kind, const char *text, const char *hint)
{
    sc_replay_change c = *f->c;
    sc_replay_glob *g = SC_NEW_N(f->a, sc_replay_glob, c.n_globs + (size_t)1);
    if (!g) return sc_error_nomem(f->err);
    if (c.n_globs) memcpy(g, c.glob, c.n_globs * sizeof *g);
    g[c.n_globs++] = (sc_replay_glob){name, factor};
    c.glob = g;
    return try(f, &c, kind, text, hint);
}

static sc_status by_kernel(finder *f)
{
    sc_replay_kernel *k;
    uint32_t n, tried = 0, kinds = 0;
    SC_TRY(sc_replay_kernels(f->m, f->base, f->a, &k, &n, f->err));
    for (uint32_t i = 0; i < n; i++) {
        double ms = (double)k[i].total / 1e9;
        if (k[i].class == SC_REPLAY_COMM && kinds++ < KINDS)
            SC_TRY(without(
                f, k[i].name, 0, "collective",
                sc_sprintf(f->a,
                           "%llu collectives %.60s take %.3g ms; saved if they "
                           "took none",
                           (unsigned long long)k[i].count, k[i].name, ms),
                "overlap them with kernels, or use a faster network"));
        if (k[i].class == SC_REPLAY_COMPUTE && tried++ < KERNELS)
            SC_TRY(without(
                f, k[i].name, 0.5, "kernel",
                sc_sprintf(f->a,
                           "%llu kernels %.60s take %.3g ms; saved if they "
                           "were twice as fast",
                           (unsigned long long)k[i].count, k[i].name, ms),
                "a faster kernel or a lower precision"));
    }
    return SC_OK;
}

/* Sums over all steps of all ranks. */
static sc_time sum_host_bound(const sc_replay_result *r)
{
    sc_time sum = 0;
    for (uint32_t k = 0; k < r->n_ranks; k++)
        for (uint32_t i = 0; i < r->rank[k].n_steps; i++)
            sum += r->rank[k].step[i].split.host_bound;
    return sum;
}

static sc_status of_the_host(finder *f)
{
    sc_replay_change c = *f->c;
    double idle = (double)sum_host_bound(f->base) / 1e9 /
                  (f->m->n_ranks ? f->m->n_ranks : 1);
    c.cuda_graphs = true;
    SC_TRY(try(f, &c, "launches",
               sc_sprintf(f->a,
                          "devices wait %.3g ms for the host; saved if the "
                          "launches between two waits were one CUDA graph",
                          idle),
               "CUDA graphs, or torch.compile with mode=reduce-overhead"));
    c = *f->c;
    c.factor[SC_REPLAY_HOST] *= 0.5;
    SC_TRY(try(f, &c, "host",
               sc_sprintf(f->a, "saved if all work of the host took half the "
                                "time"),
               "a faster CPU, fewer operators, more workers that load data"));
    c = *f->c;
    c.no_sync = true;
    return try(f, &c, "synchronization",
               sc_sprintf(f->a, "saved if the host never waited for the device "
                                "(.item(), synchronize())"),
               "read values of the device later, or not in each step");
}

static sc_status of_devices(finder *f)
{
    sc_replay_change c = *f->c;
    c.factor[SC_REPLAY_MEMORY] = 0;
    SC_TRY(try(f, &c, "copies",
               sc_sprintf(f->a, "saved if copies and memsets took no time"),
               "pinned memory and non_blocking copies"));
    c = *f->c;
    c.fuse = true;
    SC_TRY(try(f, &c, "fusion",
               sc_sprintf(f->a, "saved if element-wise kernels in a row were "
                                "one kernel"),
               "torch.compile, or fused operators and optimizers"));
    c = *f->c;
    c.overlap = true;
    return try(f, &c, "overlap",
               sc_sprintf(f->a, "saved if no kernel waited for a collective: "
                                "the most that overlap can give"),
               "overlap collectives with the backward pass");
}

static int by_savings(const void *p, const void *q)
{
    const sc_replay_finding *a = p, *b = q;
    if (a->saves != b->saves) return a->saves > b->saves ? -1 : 1;
    return strcmp(a->text, b->text);
}

sc_status sc_replay_find(const sc_replay_model *m, const sc_replay_result *r,
                         const sc_replay_change *c, sc_arena *a,
                         sc_replay_finding **out, uint32_t *n, sc_err *err)
{
    finder f = {m, r, c, a, err, SC_NEW_N(a, sc_replay_finding, MAX_FOUND), 0};
    if (!f.found) return sc_error_nomem(err);
    SC_TRY(stragglers(&f));
    SC_TRY(by_kernel(&f));
    SC_TRY(of_the_host(&f));
    SC_TRY(of_devices(&f));
    if (f.n) qsort(f.found, f.n, sizeof *f.found, by_savings);
    *out = f.found;
    *n = f.n;
    return SC_OK;
}
