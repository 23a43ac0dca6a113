/* SPDX-License-Identifier: Apache-2.0 */
/*
 * evaluate.c - computes memory and step time of one configuration from its
 * segments, only as far as needed: a configuration that does not fit, or can't
 * beat the best so far, is not composed.
 *
 * The memo keeps layers in two parts. Their passes do not depend on the number
 * of replicas or stages; their weights do not depend on the micro-batch.
 */
#include "predict/memory_group.h"

#include <math.h>
#include <string.h>

/* One part of all kinds of layers. */
typedef struct predict_part {
    bool done;
    uint32_t task;     /* memo->task when it was used last */
    const sc_err *why; /* why it is impossible; NULL: it is possible */
    sc_segment b[];
} part;

/* The layers of runs that differ only in their micro-batch. */
typedef struct batch {
    uint64_t mbs;
    bool adds;        /* passes add gradients to those before */
    const part *part; /* NULL: none is known */
} batch;

typedef struct batches {
    uint32_t n, cap;
    batch *of; /* [n] */
} batches;

/* ---- the memo ------------------------------------------------------------ */

/* Finds a part by its key, or adds one filled with zeros. */
static sc_status part_of(predict_memo *m, uint64_t key, uint32_t n_layers,
                         part **out, sc_err *err)
{
    uint32_t at = 0;
    *out = sc_map_next_ptr(&m->parts, key, &at);
    if (*out) return SC_OK;
    *out = sc_alloc(m->a, 1, sizeof(part) + n_layers * sizeof(sc_segment));
    if (!*out || !sc_map_add_ptr(&m->parts, m->a, key, *out))
        return sc_error_nomem(err);
    return SC_OK;
}

/* ---- layers -------------------------------------------------------------- */

/* Tolerance of bounds: sums differ by their order and by rounding to bytes. */
static const double rounding = 1 - 1e-6;

static void join_weights(sc_segment *b, const sc_segment *w)
{
    b->params = w->params;
    b->params_kept = w->params_kept;
    b->gathered = w->gathered;
    b->frozen_kept = w->frozen_kept;
    b->grads_kept = w->grads_kept;
    b->optim_kept = w->optim_kept;
    b->tables_kept = w->tables_kept;
    b->low_kept = w->low_kept;
    b->gather = w->gather;
    b->grad = w->grad;
    b->once = w->once;
    b->update = w->update;
    b->n_gradients = w->n_gradients;
    b->gradient = w->gradient;
    b->buckets = w->buckets;
    b->bulk = w->bulk;
    b->pair = w->pair;
    b->first = w->first;
    b->last = w->last;
    b->pack_s = w->pack_s;
    b->cast_s = w->cast_s;
    b->residual = w->residual;
    b->away = w->away;
}

/* Weights of layers. They do not depend on replicas or micro-batches; saved
 * activations and exchanges do. */
static sc_status weights_of(predict_memo *m, const predict_shape *x,
                            const part *lists, part **out, sc_err *err)
{
    const sc_run *r = &x->plan.run;
    uint32_t n = r->model->n_layers;
    SC_TRY(part_of(m, sc_plan_weight_key(r), n, out, err));
    part *w = *out;
    for (uint32_t l = 0; !w->done && l < n; l++) {
        w->b[l] = (sc_segment){.weight = lists->b[l].weight,
                               .n_weights = lists->b[l].n_weights,
                               .frozen_below = lists->b[l].frozen_below};
        SC_TRY(sc_segment_weights(&x->plan, m->a, &w->b[l], err));
    }
    w->done = true;
    return SC_OK;
}

static const sc_err *refused(sc_arena *a, const sc_err *err)
{
    sc_err *why = SC_NEW(a, sc_err);
    if (why) *why = *err;
    return why;
}

/* Runs that differ only in their micro-batch. */
static uint64_t batches_key(const sc_run *of)
{
    sc_run r = *of;
    r.mbs = 0;
    r.ga = 1;
    return sc_plan_pass_key(&r);
}

static bool adds_up(const sc_run *r)
{
    return !sc_run_shards(r) && r->ga > 1;
}

static sc_status keep_batch(predict_memo *m, const sc_run *r, const part *p,
                            sc_err *err)
{
    uint64_t key = batches_key(r);
    uint32_t at = 0;
    batches *all = sc_map_next_ptr(&m->batches, key, &at);
    if (!all) {
        all = SC_NEW(m->a, batches);
        if (!all || !sc_map_add_ptr(&m->batches, m->a, key, all))
            return sc_error_nomem(err);
    }
    batch *of = sc_grow(m->a, all->of, all->n, &all->cap, 4, sizeof *of);
    if (!of) return sc_error_nomem(err);
    all->of = of;
    of[all->n++] = (batch){r->mbs, adds_up(r), p};
    return SC_OK;
}

/* The nearest smaller and larger micro-batches of the same task. */
typedef struct neighbours {
    batch below, above;
} neighbours;

/* Passes that add up gradients do not bound those that do not; their `memory`
 * is equal. */
static neighbours neighbours_of(const predict_memo *m, const sc_run *r,
                                bool memory)
{
    uint32_t at = 0;
    const batches *all = sc_map_next_ptr(&m->batches, batches_key(r), &at);
    neighbours x = {.below.part = NULL};
    bool all_bound = memory || adds_up(r);
    for (uint32_t i = 0; all && i < all->n; i++) {
        const batch *k = &all->of[i];
        if (k->part->task != m->task || (k->adds && !all_bound)) continue;
        if (k->mbs <= r->mbs && (!x.below.part || k->mbs > x.below.mbs))
            x.below = *k;
        if (k->mbs >= r->mbs && (!x.above.part || k->mbs < x.above.mbs))
            x.above = *k;
    }
    return x;
}

static double scale_of(const neighbours *x, const sc_run *r)
{
    return x->above.part ? (double)r->mbs / (double)x->above.mbs : 0;
}

static double grown(double below, double above, double scale)
{
    return rounding * fmax(below, scale * above);
}

/* Blocks save less if more is computed again or split over tp.  (A head's input
 * can count for the block before it.) */
static void least_saved(const predict_memo *m, const sc_run *of, uint32_t n,
                        sc_segment *b)
{
    for (uint32_t i = 0; i < SC_RUNS_SAVING_LESS; i++) {
        sc_run r;
        if (!sc_run_saving_less(of, i, &r)) continue;
        neighbours near = neighbours_of(m, &r, true);
        double scale = scale_of(&near, &r);
        const part *x = near.below.part, *y = near.above.part;
        for (uint32_t l = 0; l < n; l++) {
            if (r.model->layer[l].kind != SC_LAYER_BLOCK) continue;
            double least =
                grown(x ? x->b[l].saved : 0, y ? y->b[l].saved : 0, scale);
            b[l].saved = fmax(b[l].saved, least);
        }
    }
}

/* Memory after the first weight gradient of a layer can be less than that
 * before its pass, and is the less then, the larger the micro-batch. */
static double least_held(const neighbours *near, const sc_run *r, uint32_t l)
{
    const batch *x = &near->below, *y = &near->above;
    double below = x->part ? x->part->b[l].grads_held : -INFINITY;
    double above = y->part ? y->part->b[l].grads_held : -INFINITY;
    if (x->part && below < 0) below *= (double)r->mbs / (double)x->mbs;
    if (above > 0) above *= scale_of(near, r);
    double least = fmax(below, above);
    return least > 0 ? least * rounding : least / rounding;
}

/* Activations grow with the micro-batch, at most in proportion to it. Those of
 * a smaller one, and those of a larger one scaled down, are therefore lower
 * bounds; the larger of both is taken.  `b` has `all` segments, `n` of them
 * one of each kind. */
static void least_activations(const predict_memo *m, const sc_run *r,
                              uint32_t n, uint32_t all, sc_segment *b)
{
    static const sc_segment none;
    neighbours near = neighbours_of(m, r, true);
    double scale = scale_of(&near, r);
    for (uint32_t l = 0; l < all; l++) {
        const sc_segment *x = near.below.part ? &near.below.part->b[l] : &none;
        const sc_segment *y = near.above.part ? &near.above.part->b[l] : &none;
        b[l].saved = grown(x->saved, y->saved, scale);
        b[l].working = grown(x->working, y->working, scale);
        b[l].wgrad_held = grown(x->wgrad_held, y->wgrad_held, scale);
        b[l].logits = grown(x->logits, y->logits, scale);
        b[l].grads_held = least_held(&near, r, l);
    }
    least_saved(m, r, n, b);
}

/* Passes take longer with a larger micro-batch, but not in proportion, except
 * that kernels fill their tiles more or less well: these fractions of the
 * passes of a smaller one, and of those of a larger one scaled down, are lower
 * bounds.  Blocks consist of many kernels; a head can be a single one.  The
 * least fractions of searches of DeepSeek-V3, Llama 3.1 405B, GPT-3 175B and
 * Llama 3 8B on H100, A100 and TPU v5p were 0.74 and 0.91 for all layers
 * together, 0.43 and 0.67 for a head. */
static const double longer[] = {[false] = 0.35, [true] = 0.6};
static const double per_sample[] = {[false] = 0.5, [true] = 0.8};

static double pass_time(const sc_segment *b)
{
    return b->fwd_s + b->bwd_s;
}

/* Sets the passes of `n` layers to lower bounds. */
static void least_passes(const neighbours *near, const sc_run *r, uint32_t n,
                         sc_segment *b)
{
    double scale = scale_of(near, r);
    for (uint32_t l = 0; l < n; l++) {
        const sc_layer *of = &r->model->layer[l % r->model->n_layers];
        bool block = of->kind == SC_LAYER_BLOCK;
        const sc_segment *x = near->below.part ? &near->below.part->b[l] : NULL;
        const sc_segment *y = near->above.part ? &near->above.part->b[l] : NULL;
        double by_x = longer[block], by_y = scale * per_sample[block];
        if (!x || (y && by_y * pass_time(y) > by_x * pass_time(x))) {
            x = y;
            by_x = by_y;
        }
        b[l].fwd_s = x ? by_x * x->fwd_s : 0;
        b[l].bwd_s = x ? by_x * x->bwd_s : 0;
    }
}

/* Whether the layers of a run keep the bounds that its neighbours give. */
static bool keeps_bounds(const predict_memo *m, const sc_run *r,
                         sc_segment *least, const part *p)
{
    neighbours near = neighbours_of(m, r, false);
    uint32_t all = sc_run_segments(r);
    least_activations(m, r, r->model->n_layers, all, least);
    least_passes(&near, r, all, least);
    for (uint32_t l = 0; l < all; l++) {
        const sc_segment *x = &least[l], *b = &p->b[l];
        if (pass_time(x) > pass_time(b) || x->saved > b->saved ||
            x->working > b->working || x->wgrad_held > b->wgrad_held ||
            x->logits > b->logits || x->grads_held > b->grads_held)
            return false;
    }
    return true;
}

/* `least` is room for bounds, which only a build with assertions needs. */
static sc_status passes_of(predict_memo *m, const sc_run *r, part *lists,
                           sc_segment *least, part **out, sc_err *err)
{
    uint32_t n = r->model->n_layers;
    SC_TRY(part_of(m, sc_plan_pass_key(r), sc_run_segments(r), out, err));
    part *p = *out;
    p->task = m->task;
    if (p->done) return SC_OK;
    if (!p->why) {
        sc_status s = sc_segment_passes(r, &m->networks, m->a, p->b, err);
        if (s == SC_EINPUT) p->why = refused(m->a, err);
        if (s != SC_OK) return s;
    }
    if (p->why) {
        *err = *p->why;
        return SC_EINPUT;
    }
    sc_assert(keeps_bounds(m, r, least, p));
    p->done = true;
    SC_TRY(keep_batch(m, r, p, err));
    if (!lists->done) memcpy(lists->b, p->b, n * sizeof *p->b);
    lists->done = true;
    return SC_OK;
}

/* `enough` (may be NULL) decides whether to price the layers. It is called
 * with x->segments, which hold their weights and lower bounds of their
 * activations. */
static sc_status parts_of(predict_memo *m, predict_shape *x,
                          predict_enough *enough, void *with, sc_err *err)
{
    const sc_run *r = &x->plan.run;
    uint32_t n = r->model->n_layers, all = sc_run_segments(r);
    part *lists, *passes, *weights = NULL;
    SC_TRY(part_of(m, sc_plan_list_key(r), n, &lists, err));
    x->lists = lists;
    if (lists->done && enough) {
        SC_TRY(weights_of(m, x, lists, &weights, err));
        for (uint32_t l = 0; l < all; l++) {
            x->segments[l] = weights->b[l % n];
            x->segments[l].bwd_s = INFINITY; /* no gradients wait */
        }
        least_activations(m, r, n, all, x->segments);
        x->weights = weights;
        SC_TRY(enough(x, with, &x->enough, err));
        if (x->enough) return SC_OK;
    }
    SC_TRY(passes_of(m, r, lists, x->segments, &passes, err));
    SC_TRY(weights_of(m, x, lists, &weights, err));
    x->weights = weights;
    for (uint32_t l = 0; l < all; l++) {
        x->segments[l] = passes->b[l];
        join_weights(&x->segments[l], &weights->b[l % n]);
    }
    return SC_OK;
}

sc_status predict_shape_of(const sc_run *run, predict_memo *m, sc_arena *a,
                           predict_enough *enough, void *with, predict_shape *x,
                           sc_err *err)
{
    *x = (predict_shape){.enough = false};
    SC_TRY(sc_plan_build(run, a, &x->plan, err));
    x->plan.prices = m->networks.prices;
    if (x->plan.n_kinds > 1)
        return sc_segments_price(&x->plan, a, &x->segments, err);
    x->segments = SC_RAW_N(a, sc_segment, sc_run_segments(run));
    if (!x->segments) return sc_error_nomem(err);
    return parts_of(m, x, enough, with, err);
}

sc_status predict_set_end(const sc_run *of, int zero, predict_memo *m,
                          predict_shape *x, sc_err *err)
{
    uint32_t n = x->plan.run.model->n_layers;
    part *weights;
    sc_run_set_end(of, zero, &x->plan.run);
    SC_TRY(weights_of(m, x, x->lists, &weights, err));
    for (uint32_t l = 0; l < sc_run_segments(&x->plan.run); l++)
        join_weights(&x->segments[l], &weights->b[l % n]);
    x->weights = weights;
    return SC_OK;
}

/* ---- bounds -------------------------------------------------------------- */

/* ZeRO-3 gathers weights for each pass and reduces gradients in the backward
 * pass, in two queues that may run at the same time. Only layers of blocks are
 * gathered again for the backward pass (fast_chunk.c). */
static double moved_time(const sc_plan *p, const sc_segment *segments,
                         uint32_t dev)
{
    const sc_run *r = &p->run;
    const sc_segment *own = sc_plan_segments(p, segments, dev);
    double gathers = 0, grads = 0;
    for (uint32_t c = 0; c < sc_run_chunks(r); c++) {
        const struct sc_stage *st = &p->stage[sc_run_stage(r, dev, c)];
        for (uint32_t l = 0; l < sc_run_segments(r); l++) {
            const sc_layer *of = &r->model->layer[l % r->model->n_layers];
            double n = st->n[l];
            if (n == 0) continue;
            bool again = own[l].bwd_s > 0 && of->kind == SC_LAYER_BLOCK;
            gathers += n * (again ? 2 : 1) * own[l].gather.seconds;
            if (own[l].bwd_s > 0) grads += n * own[l].grad.seconds;
        }
    }
    return fmax(gathers, grads);
}

/* A lower bound: the busiest device runs all its passes after the first
 * micro-batch reaches it and before the last one leaves it backwards. */
static double least_time(const sc_plan *p, const sc_segment *b)
{
    const sc_run *r = &p->run;
    bool through = !r->forward_only && !r->order &&
                   sc_run_placement(r) <= SC_SCH_INTERLEAVED;
    double most = 0, outside = 0;
    for (uint32_t dev = 0; dev < r->size[SC_AX_PP]; dev++) {
        const sc_segment *own = sc_plan_segments(p, b, dev);
        double all = sc_plan_device_sum(p, b, dev, pass_time);
        most = fmax(most, all * predict_passes(r) + outside);
        if (sc_run_shards(r) && !sc_run_stays_gathered(r))
            most = fmax(most, moved_time(p, b, dev) * predict_passes(r));
        const struct sc_stage *first = &p->stage[sc_run_stage(r, dev, 0)];
        for (uint32_t l = 0; through && l < sc_run_segments(r); l++)
            outside += first->n[l] * pass_time(&own[l]);
    }
    return most * sc_plan_slow_factor(r) * rounding;
}

static sc_status memory_peak(const sc_plan *p, const sc_segment *segments,
                             double scale, sc_arena *a, predict_eval *e,
                             sc_err *err)
{
    uint32_t n;
    memory_group *g = SC_NEW_N(a, memory_group, p->run.size[SC_AX_PP]);
    if (!g) return sc_error_nomem(err);
    SC_TRY(predict_memory_groups(p, segments, a, g, &n, err));
    memory_most most = predict_groups_most(&p->run, g, n, NULL, scale);
    e->peak = fmax(e->peak, most.peak);
    e->full = fmax(e->full, most.full);
    e->fits = e->full <= predict_most_full(p->run.cost) &&
              predict_fits_run(&p->run, e->full) >= SC_MAY_FIT;
    return SC_OK;
}

double predict_memory_scale(const predict_memo *memo)
{
    return memo->memory_scale > 0 ? memo->memory_scale : 1;
}

typedef struct question {
    predict_memo *memo;
    sc_arena *a;
    double most; /* a run that needs this peak and does not fit is useless */
    predict_eval e;
} question;

/* A run with larger activations never needs less memory. */
static sc_status hopeless(predict_shape *x, void *with, bool *enough,
                          sc_err *err)
{
    question *q = with;
    predict_eval e = {.run = q->e.run};
    SC_TRY(memory_peak(&x->plan, x->segments, predict_memory_scale(q->memo),
                       q->a, &e, err));
    *enough = !e.fits && e.peak >= q->most;
    if (*enough) q->e = e;
    return SC_OK;
}

static sc_status evaluate(predict_shape *x, double beat_s, question *q,
                          sc_err *err)
{
    predict_eval *e = &q->e;
    const predict_shape *of = x;
    if (x->enough) return SC_OK;
    SC_TRY(memory_peak(&x->plan, x->segments, predict_memory_scale(q->memo),
                       q->a, e, err));
    if (!e->fits && beat_s > 0) return SC_OK;
    e->step_s = beat_s > 0 ? predict_shortest(x) : 0;
    e->slower = beat_s > 0 && e->step_s >= beat_s;
    if (e->slower) return SC_OK;
    return predict_steps(&of, 1, NULL, q->a, &e->step_s, err);
}

sc_status predict_layers(const sc_run *run, predict_memo *memo,
                         predict_shape *out, sc_err *err)
{
    return predict_shape_of(run, memo, memo->a, NULL, NULL, out, err);
}

sc_status predict_evaluate(const sc_run *run, double beat_s, double most,
                           predict_memo *memo, predict_eval *out, sc_err *err)
{
    uint32_t known = memo->parts.n; /* parts that this run adds stay */
    sc_arena_mark mark = sc_arena_save(memo->a);
    question q = {memo, memo->a, most, {.run = *run}};
    predict_enough *enough = beat_s > 0 && most < INFINITY ? hopeless : NULL;
    predict_shape x;
    sc_status s = predict_shape_of(run, memo, memo->a, enough, &q, &x, err);
    if (s == SC_OK) s = evaluate(&x, beat_s, &q, err);
    if (s == SC_OK && memo->parts.n == known) sc_arena_restore(memo->a, mark);
    if (s == SC_OK) *out = q.e;
    return s;
}

/* ---- bounds of runs that are not evaluated yet --------------------------- */

typedef double bound_fn(const predict_shape *x);

static double all_kernels(const predict_shape *x)
{
    const sc_model *m = x->plan.run.model;
    uint32_t n = m->n_layers;
    /* The stages decide how many layers are not recomputed. */
    const sc_segment *least = x->segments + (sc_run_segments(&x->plan.run) - n);
    double sum = 0;
    if (x->plan.n_kinds > 1) return 0; /* devices of several kinds */
    for (uint32_t l = 0; l < n; l++)
        sum += m->layer[l].repeat * pass_time(&least[l]);
    return sum;
}

double predict_shortest(const predict_shape *x)
{
    return least_time(&x->plan, x->segments);
}

double predict_shortest_unpriced(const predict_memo *m, predict_shape *x)
{
    const sc_run *r = &x->plan.run;
    neighbours near = neighbours_of(m, r, false);
    if (!near.below.part && !near.above.part) return 0;
    least_passes(&near, r, sc_run_segments(r), x->segments);
    return predict_shortest(x);
}

static sc_status bound(const sc_run *run, predict_memo *m, bound_fn *of,
                       double *seconds, sc_err *err)
{
    uint32_t known = m->parts.n;
    sc_arena_mark mark = sc_arena_save(m->a);
    predict_shape x;
    sc_err why;
    sc_err_init(&why);
    sc_status s = predict_shape_of(run, m, m->a, NULL, NULL, &x, &why);
    *seconds = s == SC_OK ? of(&x) : 0;
    if (s == SC_OK && m->parts.n == known) sc_arena_restore(m->a, mark);
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
    return bound(run, memo, predict_shortest, seconds, err);
}
