/* SPDX-License-Identifier: Apache-2.0 */
/*
 * links.c - which links several jobs use, and how long operations wait for them.
 *
 * The engine knows by how much sharing lengthens an operation, but not on which
 * link.  An operation is counted for the fullest shared link of its route.
 */
#include "base/map.h"
#include "jobs/internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct moved {
    uint64_t link;
    uint32_t job;
    double bytes; /* of a step */
} moved;

typedef struct table {
    const jobs_run *x;
    uint32_t n, n_kinds;
    sc_jobs_link *link; /* [n]; then [n_kinds] one of each kind */
    sc_map kind_of;     /* by link */
} table;

static int by_link(const void *p, const void *q)
{
    const moved *x = p, *y = q;
    if (x->link != y->link) return x->link < y->link ? -1 : 1;
    return (x->job > y->job) - (x->job < y->job);
}

/* Fullest first, then by link. */
static int by_fraction(const void *p, const void *q)
{
    const sc_jobs_link *x = p, *y = q;
    float a = (float)x->fraction, b = (float)y->fraction;
    if (a != b) return a > b ? -1 : 1;
    return (x->link > y->link) - (x->link < y->link);
}

/* What all jobs move over all links in a step. */
static sc_status collect(const jobs_run *x, moved **out, size_t *n, sc_err *err)
{
    size_t all = 0, at = 0;
    for (uint32_t j = 0; j < x->n; j++) all += x->alone[j].run.n_links;
    moved *m = SC_NEW_N(x->a, moved, all);
    if (!m) return sc_error_nomem(err);
    for (uint32_t j = 0; j < x->n; j++) {
        const sc_result *r = &x->alone[j].run;
        for (uint32_t k = 0; k < r->n_links; k++)
            m[at++] = (moved){r->link[k], j, r->link_bytes[k]};
    }
    if (all) qsort(m, all, sizeof *m, by_link);
    *out = m;
    *n = all;
    return SC_OK;
}

static bool same_load(const jobs_run *x, const sc_jobs_link *p,
                      const sc_jobs_link *q)
{
    if (p->bw != q->bw) return false;
    for (uint32_t j = 0; j < x->n; j++)
        if ((float)p->load[j] != (float)q->load[j]) return false;
    return true;
}

/* Links with the loads of several jobs. */
static sc_status find_shared(table *t, sc_err *err)
{
    const jobs_run *x = t->x;
    moved *m = NULL;
    size_t n = 0, shared = 0, end;
    SC_TRY(collect(x, &m, &n, err));
    for (size_t k = 0; k < n; k++)
        shared += k + 1 < n && m[k + 1].link == m[k].link;
    t->link = SC_NEW_N(x->a, sc_jobs_link, shared);
    if (!t->link) return sc_error_nomem(err);
    for (size_t k = 0; k < n; k = end) {
        for (end = k; end < n && m[end].link == m[k].link;) end++;
        if (end - k < 2) continue;
        sc_jobs_link *l = &t->link[t->n++];
        l->link = m[k].link;
        l->bw = sc_hw_link_bw(x->hw, l->link);
        l->alike = 1;
        if (!(l->load = SC_NEW_N(x->a, double, x->n)))
            return sc_error_nomem(err);
        for (size_t i = k; i < end; i++) {
            double load = m[i].bytes / x->job[m[i].job].step_s;
            l->load[m[i].job] = load;
            l->fraction += load / l->bw;
        }
    }
    if (t->n) qsort(t->link, t->n, sizeof *t->link, by_fraction);
    return SC_OK;
}

/* Keeps one link of those with equal loads. */
static sc_status join_alike(table *t, sc_err *err)
{
    uint32_t first = 0; /* kind of the first link as full as this one */
    for (uint32_t i = 0; i < t->n; i++) {
        const sc_jobs_link own = t->link[i];
        if (t->n_kinds > 0 &&
            (float)t->link[t->n_kinds - 1].fraction != (float)own.fraction)
            first = t->n_kinds;
        uint32_t k = first;
        while (k < t->n_kinds && !same_load(t->x, &t->link[k], &own)) k++;
        if (k == t->n_kinds) {
            t->link[t->n_kinds++] = own;
        } else {
            t->link[k].alike++;
        }
        if (!sc_map_set(&t->kind_of, t->x->a, own.link, k))
            return sc_error_nomem(err);
    }
    return SC_OK;
}

/* ---- waits ---------------------------------------------------------------- */

/* Of each traffic, the kind of its fullest shared link; SC_NONE: it has none. */
static uint32_t *fullest(const table *t, const sc_graph *g)
{
    uint32_t *kind = SC_NEW_N(t->x->a, uint32_t, g->n_traffic);
    for (uint32_t k = 0; kind && k < g->n_traffic; k++) {
        const sc_traffic *f = &g->traffics[k];
        kind[k] = SC_NONE;
        for (uint32_t i = 0; i < f->n; i++) {
            uint32_t at = sc_map_get(&t->kind_of, f->link[i]);
            if (at != SC_MAP_END && at < kind[k]) kind[k] = at;
        }
    }
    return kind;
}

/* By how much an operation takes longer than alone, in a measured step. */
static double waits(const jobs_run *x, uint32_t j, sc_op i)
{
    const jobs_line *l = &x->line[j];
    const jobs_alone *alone = &x->alone[j];
    double sum = 0;
    for (uint32_t s = 0; s < x->n_steps[j]; s++)
        sum += sc_time_to_s(x->run.shared[l->base[x->first[j] + s] + i]);
    sum /= x->n_steps[j];
    sum -= sc_time_to_s(alone->run.shared[alone->line.base[0] + i]);
    return sum > 0 ? sum : 0;
}

/* The class whose operations wait longest. */
static sc_status slowest_class(const jobs_run *x, uint32_t j,
                               const double *wait, uint32_t *out, sc_err *err)
{
    const sc_graph *g = &x->alone[j].step.graph;
    double *sum = SC_NEW_N(x->a, double, g->n_classes);
    if (!sum) return sc_error_nomem(err);
    *out = 0;
    for (sc_op i = 0; i < g->n_ops; i++)
        for (uint32_t p = sc_op_place(g, i); p < sc_op_place(g, i + 1); p++)
            sum[g->cls[p]] += wait[i];
    for (uint32_t c = 1; c < g->n_classes; c++)
        if (sum[c] > sum[*out]) *out = c;
    return SC_OK;
}

static bool is_on(const sc_graph *g, sc_op i, uint32_t cls)
{
    for (uint32_t p = sc_op_place(g, i); p < sc_op_place(g, i + 1); p++)
        if (g->cls[p] == cls) return true;
    return false;
}

/* Lists the links with waits, the longest first. */
static sc_status list_links(const table *t, const double *sum,
                            sc_jobs_part *job, sc_err *err)
{
    job->link = SC_NEW_N(t->x->a, uint32_t, t->n_kinds);
    job->link_s = SC_NEW_N(t->x->a, double, t->n_kinds);
    if (!job->link || !job->link_s) return sc_error_nomem(err);
    for (uint32_t k = 0; k < t->n_kinds; k++) {
        if (!(sum[k] > 0)) continue;
        uint32_t at = job->n_links++;
        for (; at > 0 && job->link_s[at - 1] < sum[k]; at--) {
            job->link[at] = job->link[at - 1];
            job->link_s[at] = job->link_s[at - 1];
        }
        job->link[at] = k;
        job->link_s[at] = sum[k];
    }
    return SC_OK;
}

static sc_status job_waits(const table *t, uint32_t j, sc_err *err)
{
    const jobs_run *x = t->x;
    const sc_graph *g = &x->alone[j].step.graph;
    sc_jobs_part *job = &x->job[j];
    uint32_t cls = 0, *kind = fullest(t, g);
    double *wait = SC_NEW_N(x->a, double, g->n_ops);
    double *sum = SC_NEW_N(x->a, double, t->n_kinds);
    if (!kind || !wait || !sum) return sc_error_nomem(err);
    for (sc_op i = 0; i < g->n_ops; i++)
        if (g->traffic[i] != SC_NONE) wait[i] = waits(x, j, i);
    SC_TRY(slowest_class(x, j, wait, &cls, err));
    for (sc_op i = 0; i < g->n_ops; i++) {
        if (!(wait[i] > 0) || !is_on(g, i, cls)) continue;
        uint32_t k = kind[g->traffic[i]];
        if (k == SC_NONE) continue;
        job->waits_s[g->cat[i]] += wait[i];
        sum[k] += wait[i];
    }
    return list_links(t, sum, job, err);
}

sc_status jobs_links(const jobs_run *x, sc_jobs_result *out, sc_err *err)
{
    table t = {.x = x};
    SC_TRY(find_shared(&t, err));
    SC_TRY(join_alike(&t, err));
    for (uint32_t j = 0; j < x->n; j++) SC_TRY(job_waits(&t, j, err));
    out->link = t.link;
    out->n_links = t.n_kinds;
    return SC_OK;
}
