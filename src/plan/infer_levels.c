/* SPDX-License-Identifier: Apache-2.0 */
/*
 * infer_levels.c - compiles repeated layers and repeated stages once, and
 * writes the program of the whole network from the result.
 */
#include "plan/fold.h"

enum { WHOLE, LEVELS = 3 };

/* Inference on the whole network and on its folded versions. */
typedef struct levels {
    uint32_t n;
    inference level[LEVELS];  /* [n] */
    infer_fold *fold[LEVELS]; /* [n] from the level before; NULL in the first */
    sc_net_plan plan;
    struct infer_groups *groups;
} levels;

static inference *last(levels *l)
{
    return &l->level[l->n - 1];
}

/* ---- folding --------------------------------------------------------- */

/* Whether repeated stages can be left out.  Neighbouring stages must always be
 * on different devices, which excludes V schedules. */
static bool stages_alike(const inference *f)
{
    for (uint32_t v = 1; v < f->n_stages; v++)
        if (infer_device(f, v) == infer_device(f, v - 1)) return false;
    return f->n_stages >= INFER_FOLD;
}

static sc_status fold(levels *l, bool stages)
{
    infer_fold *d = NULL;
    SC_TRY(infer_fold_make(last(l), stages, &d));
    if (!d) return SC_OK;
    SC_TRY(infer_fold_infer(last(l), d, &l->level[l->n]));
    l->fold[l->n++] = d;
    return SC_OK;
}

static bool has_stages(const levels *l, uint32_t level)
{
    return level > WHOLE && l->fold[level]->run[0].stage_step > 0;
}

/* Finds runs of repeated layers in the last level's network; NULL: none. */
static sc_status layers_of(levels *l, infer_fold **out)
{
    *out = NULL;
    if (l->n < 2 || has_stages(l, 1)) return SC_OK;
    *out = l->fold[1];
    return l->n == 2 ? SC_OK
                     : infer_fold_within(last(l), l->fold[1], l->fold[2], out);
}

/* Infers both passes of the last level.  `*ok`: the program of the whole
 * network can be written from them. */
static sc_status compile(levels *l, bool *ok)
{
    inference *f = last(l);
    infer_fold *layers;
    SC_TRY(layers_of(l, &layers));
    SC_TRY(infer_passes(f));
    *ok = true;
    if (layers) SC_TRY(infer_regular(f, layers, ok));
    if (*ok && has_stages(l, l->n - 1))
        SC_TRY(infer_regular(f, l->fold[l->n - 1], ok));
    return SC_OK;
}

static sc_status compile_all(levels *l)
{
    inference *f = &l->level[WHOLE];
    bool ok = false;
    SC_TRY(infer_prepare(f));
    /* Buckets that are counted together need the depths of all operators, and
     * uneven splits need all weights, so such networks are not folded. */
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

/* ---- the program ----------------------------------------------------- */

sc_status sc_net_plan_compile(const sc_net_run *job, sc_arena *a,
                              sc_net_plan *out, sc_err *err)
{
    levels *l = SC_NEW(a, levels);
    net_program *prog = SC_NEW(a, net_program);
    if (!l || !prog) return sc_error_nomem(err);
    SC_TRY(infer_vocabulary(job, a, &job, err));
    l->n = 1;
    l->plan = (sc_net_plan){
        .job = job, .n_ranks = (uint32_t)sc_strategy_ranks(job->strategy)};
    inference *f = &l->level[WHOLE];
    *f = (inference){.job = job,
                     .g = job->net,
                     .s = job->strategy,
                     .rules = job->rules ? job->rules : sc_rules_find(NULL),
                     .a = a,
                     .p = &l->plan,
                     .err = err,
                     .groups = &l->groups,
                     .prog = prog};
    SC_TRY(compile_all(l));
    l->plan.n_compiled = last(l)->g->n_ops;
    for (uint32_t i = l->n - 1; i > WHOLE; i--)
        SC_TRY(infer_unfold(&l->level[i - 1], l->fold[i], &l->level[i]));
    SC_TRY(infer_close(f));
    *out = l->plan;
    out->program = prog;
    return SC_OK;
}
