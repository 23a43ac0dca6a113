/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graph_levels.c - a network compiled with layers that repeat once, then
 * stages; and the program written out again.
 */
#include "plan/graph_fold.h"

#include <string.h>

enum { WHOLE, LEVELS = 3 };

/* Inference on the whole network, and on what folding leaves of it. */
struct gi_levels {
    uint32_t n;
    infer level[LEVELS];   /* [n] */
    gi_fold *fold[LEVELS]; /* [n] from the level before; NULL of the whole */
    sc_gplan plan;
    gp_program prog;
    struct gi_groups *groups;
};

typedef struct gi_levels levels;

static infer *last(levels *l)
{
    return &l->level[l->n - 1];
}

/* ---- folding -------------------------------------------------------------- */

/* Stages can be left out where neighbours are always on different devices:
 * not where a schedule turns round. */
static bool stages_alike(const infer *f)
{
    for (uint32_t v = 1; v < f->n_stages; v++)
        if (gi_device(f, v) == gi_device(f, v - 1)) return false;
    return f->n_stages >= GI_FOLD;
}

static sc_status fold(levels *l, bool stages)
{
    gi_fold *d = NULL;
    SC_TRY(gi_fold_make(last(l), stages, &d));
    if (!d) return SC_OK;
    SC_TRY(gi_fold_infer(last(l), d, &l->level[l->n]));
    l->fold[l->n++] = d;
    return SC_OK;
}

static bool has_stages(const levels *l, uint32_t level)
{
    return level > WHOLE && l->fold[level]->run[0].stage_step > 0;
}

/* Runs of layers in the network of the last level; NULL: none. */
static sc_status layers_of(levels *l, gi_fold **out)
{
    *out = NULL;
    if (l->n < 2 || has_stages(l, 1)) return SC_OK;
    *out = l->fold[1];
    return l->n == 2 ? SC_OK
                     : gi_fold_within(last(l), l->fold[1], l->fold[2], out);
}

/* How many layers of its stage an operator of the last level stands for. */
static sc_status count(levels *l, const gi_fold *layers)
{
    infer *f = last(l);
    uint32_t n = f->g->n_ops;
    uint32_t *times = SC_NEW_N(f->a, uint32_t, n);
    uint32_t *block = SC_NEW_N(f->a, uint32_t, n);
    if (!times || !block) return sc_error_nomem(f->err);
    for (uint32_t op = 0; op < n; op++) times[op] = 1;
    for (uint32_t i = 0; layers && i < layers->n_runs; i++) {
        const gi_run *r = &layers->run[i];
        for (uint32_t k = 0; k < r->n_ops; k++) {
            uint32_t op = r->first + GI_REP_MID2 * r->n_ops + k;
            times[op] = r->count - GI_REPS + 1;
            block[op] = i + 1;
        }
    }
    f->times_of = times;
    f->block_of = block;
    return SC_OK;
}

/* Both passes of the last level; `*ok`: it can be written out. */
static sc_status compile(levels *l, bool *ok)
{
    infer *f = last(l);
    gi_fold *layers;
    SC_TRY(layers_of(l, &layers));
    if (l->n > 1) SC_TRY(count(l, layers));
    SC_TRY(gi_passes(f));
    *ok = true;
    if (layers) SC_TRY(gi_regular(f, layers, f, ok));
    if (*ok && has_stages(l, l->n - 1))
        SC_TRY(gi_regular(f, l->fold[l->n - 1], f, ok));
    return SC_OK;
}

static sc_status compile_all(levels *l)
{
    infer *f = &l->level[WHOLE];
    bool ok = false;
    SC_TRY(gi_prepare(f));
    /* Buckets that are counted together need depths of the whole network,
     * updates the cuts of all its weights. */
    bool whole = f->job->unrolled || f->ragged;
    if (!whole && !f->rules->buckets_counted_together) {
        SC_TRY(fold(l, false));
        if (stages_alike(f)) SC_TRY(fold(l, true));
    }
    for (;;) {
        SC_TRY(compile(l, &ok));
        if (ok) return SC_OK;
        l->n--;
    }
}

/* ---- what stands for what ------------------------------------------------- */

static sc_status stages_as(const levels *l, const uint32_t **out)
{
    const infer *f = &l->level[WHOLE];
    const gi_fold *d = has_stages(l, l->n - 1) ? l->fold[l->n - 1] : NULL;
    uint32_t *as = SC_NEW_N(f->a, uint32_t, f->n_stages);
    if (!as) return sc_error_nomem(f->err);
    for (uint32_t s = 0; s < f->n_stages; s++) as[s] = s;
    for (uint32_t i = 0; d && i < d->n_runs; i++) {
        const gi_run *r = &d->run[i];
        uint32_t step = r->stage_step, mid = r->stage + GI_REP_MID2 * step;
        for (uint32_t s = mid; s < r->stage + (r->count - 1) * step; s++)
            as[s] = mid + (s - mid) % step;
    }
    *out = as;
    return SC_OK;
}

static sc_status whole_op(const infer *f, const uint32_t **out)
{
    uint32_t *of = SC_NEW_N(f->a, uint32_t, f->g->n_ops);
    if (!of) return sc_error_nomem(f->err);
    for (uint32_t op = 0; op < f->g->n_ops; op++) of[op] = op;
    *out = f->whole ? f->whole : of;
    return SC_OK;
}

/* ---- the folded program --------------------------------------------------- */

static void *copy(sc_arena *a, const void *from, uint32_t n, size_t size)
{
    void *to = sc_alloc(a, n, size);
    if (to && n) memcpy(to, from, n * size);
    return to;
}

/* An inference that goes on where `f` is, which stays as it is. */
static sc_status go_on(const infer *f, infer *out)
{
    infer i = *f;
    i.prog = copy(f->a, f->prog, 1, sizeof *f->prog);
    i.p = copy(f->a, f->p, 1, sizeof *f->p);
    if (!i.prog || !i.p) return sc_error_nomem(f->err);
    gp_program *p = i.prog;
    p->value = copy(f->a, p->value, p->n_values, sizeof *p->value);
    i.order = copy(f->a, f->order, p->n_items, sizeof *f->order);
    i.wgrad = copy(f->a, f->wgrad, f->n_wgrads, sizeof *f->wgrad);
    if (!p->value || !i.order || !i.wgrad) return sc_error_nomem(f->err);
    i.cap_values = p->n_values;
    i.cap_order = p->n_items;
    i.cap_wgrads = f->n_wgrads;
    i.stage_as = NULL; /* what is left stands on its own devices */
    *out = i;
    return SC_OK;
}

static sc_status counts(const infer *f, gp_folded *out)
{
    uint32_t n = f->prog->n_items, values = f->prog->n_values;
    uint32_t *times = SC_NEW_N(f->a, uint32_t, n), *held = f->held;
    if (!f->times_of) held = SC_NEW_N(f->a, uint32_t, values);
    if (!times || !held) return sc_error_nomem(f->err);
    for (uint32_t i = 0; i < n; i++) times[i] = f->order[i].times;
    for (uint32_t v = 0; !f->times_of && v < values; v++) held[v] = 1;
    out->times = times;
    out->held = held;
    return SC_OK;
}

/* Both passes of what folding leaves. */
static sc_status start(const sc_gjob *job, sc_arena *a, sc_err *err,
                       levels **out)
{
    levels *l = SC_NEW(a, levels);
    if (!l) return sc_error_nomem(err);
    SC_TRY(gi_vocabulary(job, a, &job, err));
    l->n = 1;
    l->plan = (sc_gplan){.job = job,
                         .n_ranks = (uint32_t)sc_strategy_ranks(job->strategy)};
    l->level[WHOLE] =
        (infer){.job = job,
                .g = job->graph,
                .s = job->strategy,
                .rules = job->rules ? job->rules : sc_rules_find(NULL),
                .a = a,
                .p = &l->plan,
                .err = err,
                .times = 1,
                .groups = &l->groups,
                .prog = &l->prog};
    *out = l;
    return compile_all(l);
}

sc_status gp_compile(const sc_gjob *job, sc_arena *a, sc_gplan *p,
                     gp_folded *out, sc_err *err)
{
    gp_folded c = {0};
    infer end;
    SC_TRY(start(job, a, err, &c.levels));
    levels *l = c.levels;
    SC_TRY(stages_as(l, &c.stage_as));
    SC_TRY(whole_op(last(l), &c.op));
    end = *last(l);
    if (l->n > 1) SC_TRY(go_on(last(l), &end));
    SC_TRY(gi_close(&end, c.stage_as));
    SC_TRY(counts(&end, &c));
    c.g = end.g;
    c.prog = *end.prog;
    c.exchange = end.p->exchange;
    *p = *end.p;
    *out = c;
    return SC_OK;
}

static sc_status expand(levels *l, sc_gplan *p, gp_program *out)
{
    infer *f = &l->level[WHOLE];
    for (uint32_t i = l->n - 1; i > WHOLE; i--)
        SC_TRY(gi_unfold(&l->level[i - 1], l->fold[i], &l->level[i]));
    SC_TRY(gi_close(f, NULL));
    f->p->n_compiled = last(l)->g->n_ops;
    *p = *f->p;
    *out = *f->prog;
    return SC_OK;
}

sc_status gp_infer(const sc_gjob *job, sc_arena *a, sc_gplan *p,
                   gp_program *out, sc_err *err)
{
    levels *l;
    SC_TRY(start(job, a, err, &l));
    return expand(l, p, out);
}

/* Stage that sends to `to`, as `from` sends to `like`. */
static uint32_t sender(const levels *l, uint32_t from, uint32_t like,
                       uint32_t to)
{
    const uint32_t *as = l->level[l->n - 1].stage_as;
    const gi_fold *d = has_stages(l, l->n - 1) ? l->fold[l->n - 1] : NULL;
    for (uint32_t i = 0; d && i < d->n_runs; i++) {
        const gi_run *r = &d->run[i];
        uint32_t n = r->count * r->stage_step;
        if (from - r->stage < n && to - r->stage < n)
            return to + as[from] - as[like];
    }
    return from;
}

sc_status gp_send_at(const gp_folded *c, uint32_t item, uint32_t stage,
                     gp_item *out)
{
    levels *l = c->levels;
    gp_item it = c->prog.item[item];
    sc_gexchange x = c->exchange[it.exchange];
    it.stage = sender(l, it.stage, it.to, stage);
    it.to = stage;
    SC_TRY(gi_exchange_at(&l->level[WHOLE], &it, &x));
    *out = it;
    return SC_OK;
}
