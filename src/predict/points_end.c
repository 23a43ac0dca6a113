/* SPDX-License-Identifier: Apache-2.0 */
/*
 * points_end.c - memory and steps of jobs that differ only in the end of their
 * step.  What such options change is a sum over the layers of equal devices,
 * which is computed once for a cut into stages.
 */
#include "predict/points.h"

#include <math.h>
#include <string.h>

void points_copy_end(const sc_job *of, bool zero, sc_job *inout)
{
    int64_t own = inout->zero;
    for (const sc_key *k = sc_job_keys; k->name; k++)
        if (sc_job_ends(k)) sc_schema_copy(k, of, inout);
    if (!zero) inout->zero = own;
}

int points_zero(const points_ends *x, const points_job *j, uint32_t end)
{
    return x->zero ? x->of[end].base.zero : j->zero;
}

sc_status points_set_end(const points_ends *x, predict_memo *m,
                         const points_job *j, uint32_t end, predict_shape *s,
                         sc_err *err)
{
    return predict_set_end(&x->of[end].base, points_zero(x, j, end), m, s, err);
}

/* ---- cuts ---------------------------------------------------------------- */

static uint64_t key_of(const points_job *j)
{
    const sc_run *r = &j->shape.plan.run;
    uint64_t key[] = {(uint64_t)(uintptr_t)j->shape.weights,
                      r->size[SC_AX_PP],
                      sc_run_chunks(r),
                      (uint64_t)sc_run_placement(r),
                      sc_run_segments(r),
                      r->rc_first,
                      sc_run_reductions(r),
                      j->n_groups};
    return sc_hash(key, sizeof key, 0);
}

static double optim_kept(const sc_segment *b)
{
    return b->optim_kept;
}

static points_cut *new_cut(uint64_t key, uint32_t n, uint32_t groups,
                           sc_arena *a)
{
    points_cut *c = SC_NEW(a, points_cut);
    if (!c) return NULL;
    *c = (points_cut){.key = key,
                      .n_ends = n,
                      .n_groups = groups,
                      .optim = SC_NEW_N(a, double, (size_t)n *groups),
                      .cost = SC_NEW_N(a, points_cost, (size_t)n * groups),
                      .fixed_s = SC_NEW_N(a, double, n)};
    return c->optim && c->cost && c->fixed_s ? c : NULL;
}

/* Without the memo's parts nothing tells cuts apart. */
static points_cut *known_cut(points_ends *x, const points_job *j, uint64_t key)
{
    uint32_t at = 0;
    if (!j->shape.weights) return NULL;
    if (x->last && x->last->key == key && x->last->n_ends == x->n)
        return x->last;
    points_cut *c = sc_map_next_ptr(&x->cuts, key, &at);
    return c && c->n_ends == x->n ? c : NULL;
}

sc_status points_cut_of(points_ends *x, predict_memo *m, points_job *j,
                        sc_arena *a, sc_err *err)
{
    uint64_t key = key_of(j);
    predict_shape *s = &j->shape;
    sc_arena *own = s->weights ? m->a : a;
    points_cut *c = known_cut(x, j, key);
    x->last = j->cut = c;
    if (c) return SC_OK;
    c = new_cut(key, x->n, j->n_groups, own);
    if (!c) return sc_error_nomem(err);
    for (uint32_t e = 0; e < x->n; e++) {
        if (e != j->end) SC_TRY(points_set_end(x, m, j, e, s, err));
        for (uint32_t g = 0; g < j->n_groups; g++)
            c->optim[e * j->n_groups + g] = sc_plan_device_sum(
                &s->plan, s->segments, j->group[g].first, optim_kept);
    }
    if (x->n > 1) SC_TRY(points_set_end(x, m, j, j->end, s, err));
    if (s->weights && !sc_map_add_ptr(&x->cuts, m->a, key, c))
        return sc_error_nomem(err);
    j->cut = c;
    if (s->weights) x->last = c;
    return SC_OK;
}

/* ---- memory -------------------------------------------------------------- */

/* The fullest fraction that is known to fit, and the least that is known not
 * to: the more a run needs, the less likely it fits. */
typedef struct known {
    double most, fits, fails;
} known;

static bool fits(const sc_run *r, double full, known *k)
{
    if (full > k->most) return false;
    if (full <= k->fits) return true;
    if (full >= k->fails) return false;
    bool does = predict_fits_run(r, full) >= SC_MAY_FIT;
    *(does ? &k->fits : &k->fails) = full;
    return does;
}

void points_memory_of(const points_ends *x, const points_job *j, double scale,
                      double most_full, uint32_t n, sc_point_end *inout,
                      bool *any)
{
    sc_run r = j->shape.plan.run;
    known k = {predict_most_full(r.cost), -1, INFINITY};
    uint32_t groups = j->n_groups;
    *any = false;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t e = inout[i].end, *seen = &x->seen[x->of[e].like];
        if (*seen < i && x->of[inout[*seen].end].like == x->of[e].like) {
            inout[i].point = inout[*seen].point;
            continue;
        }
        *seen = i;
        const double *optim = &j->cut->optim[e * groups];
        if (x->n > 1) sc_run_set_end(&x->of[e].base, points_zero(x, j, e), &r);
        memory_most most =
            predict_groups_most(&r, j->group, groups, optim, scale);
        sc_point p = {.peak = most.peak, .full = most.full};
        p.fits = fits(&r, p.full, &k);
        inout[i].point = p;
        *any = *any || (p.fits && p.full <= most_full);
    }
}

/* ---- steps --------------------------------------------------------------- */

/* The costs of an end. */
static sc_status costs_of(points_ends *x, predict_memo *m, points_job *j,
                          uint32_t e, sc_err *err)
{
    predict_shape *s = &j->shape;
    points_cost *c = &j->cut->cost[e * j->n_groups];
    sc_step_costs all;
    if (x->n > 1) SC_TRY(points_set_end(x, m, j, e, s, err));
    for (uint32_t g = 0; g < j->n_groups; g++) {
        SC_TRY(sc_plan_step_costs(&s->plan, s->segments, j->group[g].first,
                                  NULL, &all, err));
        c[g] = (points_cost){.known = true,
                             .last = fast_last_of(&all),
                             .copies = all.host_copy_s,
                             .final = all.host_last_s};
        if (g == 0) j->cut->fixed_s[e] = all.fixed_s;
    }
    return x->n > 1 ? points_set_end(x, m, j, j->end, s, err) : SC_OK;
}

sc_status points_least_after(points_ends *x, predict_memo *m, points_job *j,
                             uint32_t e, double *seconds, sc_err *err)
{
    const points_cost *c = &j->cut->cost[e * j->n_groups];
    double sums = INFINITY, after = 0;
    if (!c->known) SC_TRY(costs_of(x, m, j, e, err));
    for (uint32_t g = 0; g < j->n_groups; g++) {
        sums = fmin(sums, c[g].last.sums);
        after = fmax(after, c[g].last.after);
    }
    *seconds = (sums + after + j->cut->fixed_s[e]) *
               sc_plan_slow_factor(&j->shape.plan.run);
    return SC_OK;
}

sc_status points_steps_of(points_ends *x, predict_memo *m, points_job *j,
                          const fast_engine *engine, uint32_t n,
                          sc_point_end *const *inout, sc_arena *a, sc_err *err)
{
    const sc_plan *p = engine->p; /* with an end of the same class */
    uint32_t groups = j->n_groups, pp = p->run.size[SC_AX_PP];
    fast_reach *reach = SC_NEW_N(a, fast_reach, pp);
    fast_last *last = SC_NEW_N(a, fast_last, groups);
    double *hides = SC_NEW_N(a, double, groups), norm, after;
    bool any = false;
    if (!reach || !last || !hides) return sc_error_nomem(err);
    uint32_t reached = fast_reaches(engine, reach);
    sc_assert(reached == groups);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t e = inout[i]->end;
        points_cost *c = &j->cut->cost[e * groups];
        if (!c->known) SC_TRY(costs_of(x, m, j, e, err));
        for (uint32_t g = 0; g < groups; g++) {
            last[g] = c[g].last;
            if (c[g].copies <= 0) continue;
            if (!any)
                for (uint32_t k = 0; k < groups; k++)
                    hides[k] = sc_plan_hides_copies(p, j->shape.segments,
                                                    j->group[k].first);
            any = true;
            last[g].out =
                sc_plan_host_out(&p->run, c[g].copies, c[g].final, hides[g]);
        }
        fast_finish(reach, last, groups, &norm, &after);
        inout[i]->point.step_s =
            fast_step(&p->run, norm, after, j->cut->fixed_s[e]);
    }
    return SC_OK;
}
