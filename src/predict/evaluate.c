/* SPDX-License-Identifier: Apache-2.0 */
/*
 * evaluate.c - memory and step of one configuration by its blocks, no further
 * than decides: what does not fit is not priced, what can't be faster than the
 * best so far is not composed.
 *
 * Layers are kept in two parts, each by what it depends on: their passes, which
 * know nothing of the number of replicas or stages, and their weights, which
 * know nothing of the micro-batch.
 */
#include "predict/internal.h"

#include <math.h>
#include <string.h>

/* A part of all layers. */
typedef struct part {
    bool done;
    bool passes; /* of the first part: priced, not only its activations */
    sc_block b[];
} part;

/* ---- the memo ---------------------------------------------------------------- */

static struct predict_slot *slot_of(struct predict_slot *at, uint32_t size,
                                    uint64_t key)
{
    uint32_t i = (uint32_t)key & (size - 1);
    while (at[i].part && at[i].key != key) i = (i + 1) & (size - 1);
    return &at[i];
}

static sc_status grow(predict_memo *m, sc_err *err)
{
    uint32_t size = m->size ? 4 * m->size : 64;
    if (2 * (m->n + 1) <= m->size) return SC_OK;
    struct predict_slot *at = SC_NEW_N(m->a, struct predict_slot, size);
    if (!at) return sc_error_nomem(err);
    for (uint32_t i = 0; i < m->size; i++)
        if (m->slot[i].part) *slot_of(at, size, m->slot[i].key) = m->slot[i];
    m->slot = at;
    m->size = size;
    return SC_OK;
}

/* The part by a key; one that is not done is zeros, but for what an error
 * left. */
static sc_status part_of(predict_memo *m, uint64_t key, uint32_t n_layers,
                         part **out, sc_err *err)
{
    struct predict_slot *s = m->n ? slot_of(m->slot, m->size, key) : NULL;
    if (!s || !s->part) {
        SC_TRY(grow(m, err));
        s = slot_of(m->slot, m->size, key);
        *s = (struct predict_slot){
            key, sc_alloc(m->a, 1, sizeof(part) + n_layers * sizeof(sc_block))};
        if (!s->part) return sc_error_nomem(err);
        m->n++;
    }
    *out = s->part;
    return SC_OK;
}

/* ---- layers ---------------------------------------------------------------------- */

/* What is being evaluated. */
typedef struct shape {
    sc_plan plan;
    sc_block *blocks;
    part *passes; /* NULL: all is priced */
    bool kept;    /* the memo has something that was allocated for it */
} shape;

static void join_weights(sc_block *b, const sc_block *w)
{
    b->params = w->params;
    b->params_kept = w->params_kept;
    b->frozen_kept = w->frozen_kept;
    b->grads_kept = w->grads_kept;
    b->optim_kept = w->optim_kept;
    b->gather = w->gather;
    b->grad = w->grad;
    b->update = w->update;
    b->gather_bytes = w->gather_bytes;
    b->gather_s = w->gather_s;
    b->grad_bytes = w->grad_bytes;
    b->grad_s = w->grad_s;
    b->update_bytes = w->update_bytes;
    b->update_s = w->update_s;
    b->pack_s = w->pack_s;
    b->residual = w->residual;
}

static void join(const sc_block *passes, const sc_block *weights, uint32_t n,
                 sc_block *out)
{
    for (uint32_t l = 0; l < n; l++) {
        out[l] = passes[l];
        join_weights(&out[l], &weights[l]);
    }
}

static sc_status plan_of(const sc_run *run, predict_memo *m, shape *x,
                         sc_err *err)
{
    const sc_plan *of = NULL;
    SC_TRY(sc_plan_build_like(run, m->like, m->n_like, m->a, &x->plan, err));
    for (uint32_t i = 0; i < m->n_like && !of; i++)
        if (m->like[i]->placed[0] == x->plan.placed[0]) of = m->like[i];
    if (of || m->n_like == SC_COUNT(m->like)) return SC_OK;
    sc_plan *copy = SC_NEW(m->a, sc_plan);
    if (!copy) return sc_error_nomem(err);
    *copy = x->plan;
    m->like[m->n_like++] = copy;
    x->kept = true;
    return SC_OK;
}

static sc_status parts_of(predict_memo *m, shape *x, part **weights,
                          sc_err *err)
{
    const sc_run *r = &x->plan.run;
    uint32_t n = r->model->n_layers;
    SC_TRY(part_of(m, sc_plan_pass_key(r), n, &x->passes, err));
    SC_TRY(part_of(m, sc_plan_weight_key(r), n, weights, err));
    if (x->passes->done && (*weights)->done) return SC_OK;
    x->kept = true;
    for (uint32_t l = 0; !x->passes->done && l < n; l++) {
        x->passes->b[l] = (sc_block){0};
        sc_block_activations(&x->plan, l, &x->passes->b[l]);
    }
    x->passes->done = true;
    for (uint32_t l = 0; !(*weights)->done && l < n; l++) {
        (*weights)->b[l] = (sc_block){0};
        SC_TRY(sc_block_weights(&x->plan, l, &(*weights)->b[l], err));
    }
    (*weights)->done = true;
    return SC_OK;
}

/* Plan and layers, of which passes may not be priced yet. */
static sc_status shape_of(const sc_run *run, predict_memo *m, shape *x,
                          sc_err *err)
{
    uint32_t n = run->model->n_layers;
    part *weights;
    SC_TRY(plan_of(run, m, x, err));
    if (x->plan.n_kinds > 1)
        return sc_blocks_price(&x->plan, m->a, &x->blocks, err);
    SC_TRY(parts_of(m, x, &weights, err));
    x->blocks = SC_NEW_N(m->a, sc_block, n);
    if (!x->blocks) return sc_error_nomem(err);
    join(x->passes->b, weights->b, n, x->blocks);
    return SC_OK;
}

static sc_status price(shape *x, sc_arena *a, sc_err *err)
{
    uint32_t n = x->plan.run.model->n_layers;
    part *p = x->passes;
    if (!p) return SC_OK;
    for (uint32_t l = 0; !p->passes && l < n; l++)
        SC_TRY(sc_block_passes(&x->plan, l, a, &p->b[l], err));
    x->kept = x->kept || !p->passes;
    p->passes = true;
    for (uint32_t l = 0; l < n; l++) {
        sc_block weights = x->blocks[l];
        join(&p->b[l], &weights, 1, &x->blocks[l]);
    }
    return SC_OK;
}

/* ---- bounds ---------------------------------------------------------------------- */

static double block_time(const sc_block *b)
{
    return b->fwd_s + b->bwd_s;
}

/* ZeRO-3: weights come for each pass, gradients go after the second. */
static double moved_time(const sc_block *b)
{
    return b->bwd_s > 0 ? 2 * b->gather_s + b->grad_s : b->gather_s;
}

/* Sums in another order than the engine's are no reason to drop anything. */
static const double rounding = 1 - 1e-9;

/* No schedule ends before its busiest device has done all its passes; where
 * micro-batches go from the first device to the last and back, not before the
 * first has come to it, nor before the last has gone back. */
static double least_time(const sc_plan *p, const sc_block *b)
{
    const sc_run *r = &p->run;
    bool through = !r->forward_only && !r->order &&
                   sc_run_placement(r) <= SC_SCH_INTERLEAVED;
    double most = 0, outside = 0;
    for (uint32_t dev = 0; dev < r->size[SC_AX_PP]; dev++) {
        const sc_block *own = sc_plan_blocks(p, b, dev);
        double all = sc_plan_device_sum(p, b, dev, block_time);
        most = fmax(most, all * predict_passes(r) + outside);
        if (r->zero >= 3)
            most = fmax(most, sc_plan_device_sum(p, b, dev, moved_time) *
                                  predict_passes(r));
        const struct sc_stage *first = &p->stage[sc_run_stage(r, dev, 0)];
        for (uint32_t l = 0; through && l < r->model->n_layers; l++)
            outside += first->n[l] * block_time(&own[l]);
    }
    return most * sc_plan_slow_factor(r) * rounding;
}

static sc_status memory_peak(const sc_plan *p, const sc_block *blocks,
                             double scale, sc_arena *a, predict_eval *e,
                             sc_err *err)
{
    uint32_t pp = p->run.size[SC_AX_PP];
    sc_stage_memory *m = SC_NEW_N(a, sc_stage_memory, pp);
    if (!m) return sc_error_nomem(err);
    SC_TRY(sc_predict_memory(p, blocks, a, m, err));
    for (uint32_t i = 0; i < pp; i++) {
        e->peak = fmax(e->peak, scale * m[i].peak);
        e->full = fmax(e->full, scale * m[i].peak / m[i].capacity);
    }
    e->fits = e->full <= 1;
    return SC_OK;
}

static sc_status evaluate(shape *x, double beat_s, predict_memo *memo,
                          predict_eval *e, sc_err *err)
{
    sc_arena *a = memo->a;
    double scale = memo->memory_scale > 0 ? memo->memory_scale : 1;
    SC_TRY(memory_peak(&x->plan, x->blocks, scale, a, e, err));
    if (!e->fits && beat_s > 0) return SC_OK;
    SC_TRY(price(x, a, err));
    e->step_s = least_time(&x->plan, x->blocks);
    e->slower = e->step_s >= beat_s && beat_s > 0;
    if (e->slower) return SC_OK;
    return sc_predict_fast(&x->plan, x->blocks, a, &e->step_s, err);
}

sc_status predict_layers(const sc_run *run, predict_memo *memo, sc_plan *plan,
                         sc_block **blocks, sc_err *err)
{
    shape x = {.kept = true};
    SC_TRY(shape_of(run, memo, &x, err));
    SC_TRY(price(&x, memo->a, err));
    *plan = x.plan;
    *blocks = x.blocks;
    return SC_OK;
}

sc_status predict_evaluate(const sc_run *run, double beat_s, predict_memo *memo,
                           predict_eval *out, sc_err *err)
{
    sc_arena_mark mark = sc_arena_save(memo->a);
    predict_eval e = {.run = *run};
    shape x = {.kept = false};
    sc_status s = shape_of(run, memo, &x, err);
    if (s == SC_OK) s = evaluate(&x, beat_s, memo, &e, err);
    if (s == SC_OK && !x.kept) sc_arena_restore(memo->a, mark);
    if (s == SC_OK) *out = e;
    return s;
}

/* ---- bounds of what is not evaluated yet ----------------------------------------- */

typedef double bound_fn(const shape *x);

static double all_kernels(const shape *x)
{
    const sc_model *m = x->plan.run.model;
    double sum = 0;
    if (x->plan.n_kinds > 1) return 0; /* devices of several kinds */
    for (uint32_t l = 0; l < m->n_layers; l++)
        sum += m->layer[l].repeat * block_time(&x->blocks[l]);
    return sum;
}

static double shortest(const shape *x)
{
    return least_time(&x->plan, x->blocks);
}

static sc_status bound(const sc_run *run, predict_memo *m, bound_fn *of,
                       double *seconds, sc_err *err)
{
    sc_arena_mark mark = sc_arena_save(m->a);
    shape x = {.kept = false};
    sc_err why;
    sc_err_init(&why);
    sc_status s = shape_of(run, m, &x, &why);
    if (s == SC_OK) s = price(&x, m->a, &why);
    *seconds = s == SC_OK ? of(&x) : 0;
    if (s == SC_OK && !x.kept) sc_arena_restore(m->a, mark);
    if (s == SC_OK || s == SC_EINPUT) return SC_OK;
    *err = why;
    return s;
}

sc_status predict_kernels(const sc_run *run, predict_memo *memo,
                          double *seconds, sc_err *err)
{
    return bound(run, memo, all_kernels, seconds, err);
}

sc_status predict_least_time(const sc_run *run, predict_memo *memo,
                             double *seconds, sc_err *err)
{
    return bound(run, memo, shortest, seconds, err);
}
