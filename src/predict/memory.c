/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory.c - computes the memory of every pipeline device as a sum over its
 * layers.
 *
 * weights: kept parameters x bytes, and what ZeRO-3 has gathered
 * gradients: kept gradients x bytes
 * optimizer: states and master weights
 * activations: kept per micro-batch (Korthikanti et al. 2022, section 4) x
 * micro-batches in flight, plus the working memory of one layer
 *
 * All are taken at the moment of a step at which their sum is largest.
 */
#include "plan/plan_strategy.h"
#include "predict/memory_group.h"

#include <math.h>

/* Gradients that stay unsharded until they are reduced. */
typedef struct waiting {
    double bytes, s;
} waiting;

typedef struct stage_sum {
    double params_kept, frozen, grads, optim;
    double params, widest, root;  /* gathered: all, the widest layer, the root
                                  * unit */
    double trained, root_trained; /* parameters of these that have gradients */
    double head_new; /* the head's gradient, which waits for the root's */
    double ends;     /* bytes that the head saves */
    double blocks;   /* bytes that the blocks save per micro-batch */
    waiting block, head;
    double above;      /* bytes that the blocks without recomputation save */
    double working;    /* largest working memory of a layer */
    double unreduced;  /* unreduced gradients at that time */
    const char *worst; /* the name of that layer */
    double logits;
    double residual; /* residuals of compressed gradients */
    double gathers;  /* layers whose weights are gathered before use */
    double fetched;  /* weights of the largest layer that are copied
                                 * in for a pass */
    double exchanges, exchange; /* asynchronous exchanges that scatter, and
                                   the largest input of one */
} stage_sum;

/* Parameters of a gathered layer that have gradients, in the format of
 * matrix products. */
static double trained(const sc_segment *b)
{
    double frozen = b->params_kept > 0 ? b->frozen_kept / b->params_kept : 0;
    return b->gathered * (1 - frozen);
}

/* Bytes per gradient after a backward pass of FSDP2: one copy in the format
 * of weights, and one cast to the format of the reduction. */
static double new_gradient_bytes(const sc_run *r)
{
    if (!r->sw->root_group || r->forward_only) return 0;
    double low = sc_precision_bytes(SC_BF16);
    return sc_run_stays_gathered(r) ? low : low + r->sw->reduce_bytes;
}

static void add_weights(const sc_run *r, stage_sum *s, uint8_t kind,
                        const sc_segment *b, double n)
{
    s->params_kept += n * b->params_kept;
    s->frozen += n * b->frozen_kept;
    s->grads += n * b->grads_kept;
    s->optim += n * b->optim_kept;
    s->residual += n * b->residual;
    s->gathers += b->gather.bytes > 0 ? n : 0;
    s->logits += b->logits;
    s->exchanges += n * b->scatters;
    s->exchange = fmax(s->exchange, b->scattered);
    s->fetched = fmax(s->fetched, b->away * b->fetched);
    if (kind == SC_LAYER_HEAD) s->ends += b->saved;
    waiting own = {b->last, b->grad.seconds / b->buckets};
    if (kind == SC_LAYER_HEAD) s->head = own;
    if (kind == SC_LAYER_BLOCK && own.bytes > s->block.bytes) s->block = own;
    if (b->gather.bytes <= 0) return;
    s->params += n * b->gathered;
    s->trained += n * trained(b);
    if (kind == SC_LAYER_BLOCK || !r->sw->root_group) {
        s->widest = fmax(s->widest, b->gathered);
        return;
    }
    s->root += n * b->gathered;
    s->root_trained += n * trained(b);
    if (kind == SC_LAYER_HEAD)
        s->head_new = sc_precision_bytes(SC_BF16) * trained(b);
}

/* Blocks of a stage that are recomputed together. */
static double group_of(const sc_run *r, const struct sc_stage *st)
{
    if (r->recompute != SC_RC_FULL || r->rc_group == 0) return 1;
    return fmax(1, fmin(r->rc_group, st->blocks));
}

static void offer(stage_sum *s, const char *path, double working,
                  double unreduced)
{
    if (s->worst && working + unreduced <= s->working + s->unreduced) return;
    s->working = working;
    s->unreduced = unreduced;
    s->worst = path;
}

/* Fraction of a bucket that fills while the previous one is exchanged. */
static double made_beside(const sc_segment *b, double s)
{
    double c = b->bwd_s / b->buckets;
    return s < c ? s / c : 1;
}

static double beside_waiting(const waiting *above, const sc_segment *b)
{
    return above->bytes + made_beside(b, above->s) * b->first;
}

/* Bytes of a layer's unreduced gradients. FSDP2 holds all of them and the
 * head's; other programs hold two buffers, one of which fills while the
 * other waits. */
static double unreduced_of(const sc_run *r, const stage_sum *s, uint8_t kind,
                           const sc_segment *b)
{
    double one = b->grad.seconds / b->buckets;
    if (r->forward_only) return 0;
    if (r->sw->root_group && kind == SC_LAYER_BLOCK && b->gather.bytes > 0)
        return new_gradient_bytes(r) * trained(b) + s->head_new;
    if (r->sw->root_group) return 0;
    double most = b->bulk + made_beside(b, one) * (b->pair - b->bulk);
    if (kind != SC_LAYER_HEAD) most = fmax(most, beside_waiting(&s->block, b));
    if (kind == SC_LAYER_BLOCK) most = fmax(most, beside_waiting(&s->head, b));
    return most;
}

/* Finds the layer whose passes need most memory besides saved activations.
 * When its backward pass begins, the head and all later blocks have freed
 * theirs. */
static void worst_layer(const sc_run *r, stage_sum *s, uint32_t entry,
                        const sc_segment *b, double group)
{
    const sc_layer *l = &r->model->layer[entry % r->model->n_layers];
    double unreduced = unreduced_of(r, s, l->kind, b);
    double more = l->kind == SC_LAYER_HEAD ? 0 : -s->ends;
    if (l->kind == SC_LAYER_BLOCK && entry < r->model->n_layers)
        more += (group - 1) * b->recompute_held - s->above;
    if (r->sw->root_group) {
        offer(s, l->path, b->working + more, unreduced);
        return;
    }
    offer(s, l->path, b->working + more, 0);
    if (l->kind == SC_LAYER_EMBED) more -= s->blocks;
    offer(s, l->path, b->grads_held + more, unreduced);
}

/* Layers of a segment in a stage that save activations for the backward
 * pass. Of layers that are recomputed together, only the first saves any. */
static double keepers(const sc_plan *p, const struct sc_stage *st,
                      uint32_t entry)
{
    const sc_run *r = &p->run;
    uint32_t l = entry % r->model->n_layers;
    double group = group_of(r, st), n = st->n[entry];
    if (group <= 1 || r->model->layer[l].kind != SC_LAYER_BLOCK) return n;
    return n * ceil(st->blocks / group) / st->blocks;
}

static stage_sum sum_of(const sc_plan *p, const sc_segment *segments,
                        uint32_t dev)
{
    const sc_run *r = &p->run;
    stage_sum s = {0};
    uint32_t layers = r->model->n_layers, chunks = sc_run_chunks(r);
    segments = sc_plan_segments(p, segments, dev);
    for (int pass = 0; pass < 2; pass++)
        for (uint32_t c = 0; c < chunks; c++)
            for (uint32_t l = 0; l < sc_run_segments(r); l++) {
                const struct sc_stage *st = &p->stage[sc_run_stage(r, dev, c)];
                uint32_t n = st->n[l];
                if (!n) continue;
                if (pass)
                    worst_layer(r, &s, l, &segments[l], group_of(r, st));
                else
                    add_weights(r, &s, r->model->layer[l % layers].kind,
                                &segments[l], n);
                if (!pass && st->embed &&
                    r->model->layer[l % layers].kind == SC_LAYER_BLOCK)
                    s.blocks += keepers(p, st, l) * segments[l].saved;
                if (!pass && l >= layers)
                    s.above += n * segments[l].saved / chunks;
            }
    return s;
}

/* Computes the same by walking the device's order, for split backward passes
 * and for schedules from a file. */
static sc_status walked(const sc_plan *p, const sc_segment *segments,
                        uint32_t dev, sc_arena *a, double *out, sc_err *err)
{
    const sc_run *r = &p->run;
    uint32_t chunks = sc_run_chunks(r);
    segments = sc_plan_segments(p, segments, dev);
    sc_arena_mark mark = sc_arena_save(a);
    double *kept = SC_NEW_N(a, double, chunks);
    double *late = SC_NEW_N(a, double, chunks);
    sc_slot *order = SC_NEW_N(a, sc_slot, sc_run_slots(r));
    if (!kept || !late || !order) return sc_error_nomem(err);
    for (uint32_t c = 0; c < chunks; c++)
        for (uint32_t l = 0; l < sc_run_segments(r); l++) {
            uint32_t v = sc_run_stage(r, dev, c);
            kept[c] += keepers(p, &p->stage[v], l) * segments[l].saved;
            late[c] += p->stage[v].n[l] * segments[l].wgrad_held;
        }
    *out = sc_schedule_held(order, sc_run_order(r, dev, order), kept, late);
    sc_arena_restore(a, mark);
    return SC_OK;
}

static double saved(const sc_segment *b)
{
    return b->saved;
}

static double offloaded(const sc_segment *b)
{
    return b->offloaded;
}

/* Bytes that all chunks of a device save for the backward pass, in its own or
 * in another memory. */
static double activations(const sc_plan *p, const sc_segment *segments,
                          uint32_t dev, uint32_t in_flight,
                          sc_segment_property of)
{
    const sc_run *r = &p->run;
    uint32_t pp = r->size[SC_AX_PP];
    segments = sc_plan_segments(p, segments, dev);
    if (r->forward_only) return 0;
    double chunk = 0, ends = 0;
    for (uint32_t v = dev; v < p->n_stages; v += pp) {
        uint32_t last = r->model->n_layers - 1;
        for (uint32_t l = 0; l < sc_run_segments(r); l++)
            if (l != last)
                chunk += keepers(p, &p->stage[v], l) * of(&segments[l]);
        /* The head's backward pass follows its forward pass at once. */
        if (p->stage[v].head) ends += of(&segments[last]);
    }
    if (r->schedule == SC_SCH_GPIPE) ends *= r->ga;
    return chunk / r->vpp * in_flight + ends;
}

/* The same of that of `n` equal devices which saves most. */
static sc_status most_kept(const sc_plan *p, const sc_segment *segments,
                           uint32_t first, uint32_t n, sc_arena *a, double *out,
                           sc_err *err)
{
    const sc_run *r = &p->run;
    bool odd = p->uneven && r->vpp > 1; /* chunks differ */
    bool walk = !r->forward_only && (r->order || odd || sc_run_splits(r));
    uint32_t most = 0;
    *out = 0;
    for (uint32_t dev = first; dev < first + n; dev++) {
        double kept = 0;
        if (walk) {
            SC_TRY(walked(p, segments, dev, a, &kept, err));
            *out = fmax(*out, kept);
            continue;
        }
        uint32_t own = sc_schedule_in_flight(r->schedule, r->size[SC_AX_PP],
                                             r->vpp, r->ga, dev);
        if (own > most) most = own;
    }
    if (!walk) *out = activations(p, segments, first, most, saved);
    return SC_OK;
}

/* Bytes of weights and activations of `n` equal devices that expanded memory
 * keeps for the one with most. */
static double expanded(const sc_plan *p, const sc_segment *segments,
                       const memory_group *g, double weights)
{
    const sc_run *r = &p->run;
    uint32_t most = 0;
    if (sc_run_offload_tier(r) != SC_TIER_EXPANDED) return 0;
    for (uint32_t dev = g->first; dev < g->first + g->n && r->offload > 0;
         dev++) {
        uint32_t own =
            r->order ? r->ga
                     : sc_schedule_in_flight(r->schedule, r->size[SC_AX_PP],
                                             r->vpp, r->ga, dev);
        if (own > most) most = own;
    }
    return weights + activations(p, segments, g->first, most, offloaded);
}

/* Bytes of gathered weights: of the current layer and the prefetched ones.
 * Collectives run on their own streams, so other streams can't reuse their
 * buffers. */
static double gathered(const sc_run *r, const stage_sum *s)
{
    double one = s->root + s->widest;
    bool both = r->zero == 2 && !r->forward_only; /* kept for both passes */
    double used = both || sc_run_stays_gathered(r) ? s->params : one;
    double ahead = fmin((double)r->sw->prefetch, fmax(0, s->gathers - 1));
    if (both) ahead = 0;
    return sc_precision_bytes(SC_BF16) * (used + s->root + ahead * s->widest);
}

/* Bytes per element of kept gradients. */
static double gradient_bytes(const sc_software *sw)
{
    double low = sc_precision_bytes(SC_BF16), sum = sw->grad_bytes;
    return sw->two_gradients && sum > low ? sum + low : sum;
}

/* Bytes of buffers between stages: an activation and a gradient, each sent
 * and received. Some programs have receive buffers for each micro-batch, and
 * the input of the loss on the last stage. */
static double transfers(const sc_run *r, const stage_sum *s)
{
    double ga = r->ga, sent = sc_run_send_bytes(r);
    if (r->size[SC_AX_PP] == 1 || !r->sw->batch_buffers || r->forward_only)
        return 4 * sent;
    return 2 * ga * sc_run_chunks(r) * sent + (ga - 1) * s->logits;
}

/* Bytes of exchanges that the host has issued ahead of the device. */
static double issued_ahead(const sc_run *r, const stage_sum *s, uint32_t dev)
{
    uint32_t pp = r->size[SC_AX_PP], micro = r->ga < pp ? r->ga : pp;
    if (r->forward_only || dev > 0) return 0;
    return s->exchange * sc_exchanges_ahead(r->sw, r->size[SC_AX_TP], pp, micro,
                                            s->exchanges);
}

/* Finds the common peak of activations and gradients: during the backward
 * pass of the worst layer, or when the root unit's gradients are reduced at
 * the end. */
static void worst_moment(const sc_run *r, const stage_sum *s, double kept,
                         memory_group *g)
{
    double root = new_gradient_bytes(r) * s->root_trained;
    g->worst = s->worst;
    g->activations = kept + s->working;
    if (r->forward_only) return;
    g->unreduced =
        sc_run_stays_gathered(r) ? s->trained * r->sw->reduce_bytes : 0;
    if (root > g->activations + s->unreduced) {
        g->activations = 0;
        g->worst = "the last reduction";
        g->unreduced += root;
    } else {
        g->unreduced += s->unreduced;
    }
}

static memory_group group_of_sum(const sc_plan *p, const sc_segment *segments,
                                 const stage_sum *s, uint32_t dev, uint32_t n,
                                 double kept)
{
    const sc_run *r = &p->run;
    const sc_software *sw = r->sw;
    memory_group g = {.first = dev,
                      .n = n,
                      .expanded_capacity = r->hw->expanded.bytes,
                      .grads = s->grads,
                      .optim = s->optim,
                      .capacity =
                          (double)sc_plan_hw(p, dev)->device->mem_bytes};
    double low = sc_precision_bytes(SC_BF16);
    double each = r->forward_only ? low : sw->weight_bytes;
    /* Frozen weights are kept in the format of matrix products. */
    double frozen = r->precision >= SC_FP8 ? 1 : low;
    double kept_weights =
        (s->params_kept - s->frozen) * each + s->frozen * frozen;
    double away = r->offload_weights * kept_weights;
    g.weights = kept_weights - away + gathered(r, s) +
                (1 + (double)sw->prefetch) * s->fetched;
    g.expanded = expanded(p, segments, &g, away);
    worst_moment(r, s, kept, &g);
    g.buffers = transfers(r, s);
    if (sc_run_dp(r) > 1 && !r->forward_only)
        g.buffers += sw->bucket_bytes + sw->flat_bytes;
    g.others = s->residual + issued_ahead(r, s, dev);
    if (r->size[SC_AX_PP] > 1 && !r->forward_only)
        g.activations *= 1 + sw->stage_reserve;
    return g;
}

sc_stage_memory predict_group_memory(const sc_run *r, const memory_group *g,
                                     double optim)
{
    const sc_software *sw = r->sw;
    sc_stage_memory m = {.weights = g->weights,
                         .activations = g->activations,
                         .communication = g->buffers,
                         .capacity = g->capacity,
                         .expanded = g->expanded,
                         .expanded_capacity = g->expanded_capacity,
                         .worst = g->worst};
    if (!r->forward_only) {
        /* the host sums gradients after each micro-batch */
        bool host = r->optim_tier >= SC_TIER_CPU && sc_run_reductions(r) > 1;
        m.gradients = (host ? 0 : g->grads) * gradient_bytes(sw) + g->unreduced;
        if (r->optim_tier == SC_TIER_DEVICE)
            m.optimizer = optim * sw->optim_bytes;
        if (r->optim_tier == SC_TIER_EXPANDED)
            m.expanded += optim * sw->optim_bytes;
        if (sc_run_dp(r) > 1 && r->zero == 0)
            m.communication += g->grads * sw->copy_bytes;
    }
    m.communication += g->others;
    m.other = sw->memory_overhead;
    double used =
        m.weights + m.gradients + m.optimizer + m.activations + m.communication;
    m.allocated = used + m.other;
    m.peak = floor(m.allocated - m.other) * (1 + sw->fragmentation) + m.other;
    return m;
}

double predict_full(const sc_stage_memory *m, double expanded)
{
    double full = m->peak / m->capacity;
    if (expanded <= m->expanded_capacity) return full;
    return fmax(full, 1 + expanded / fmax(1, m->expanded_capacity));
}

/* A pool of all devices holds what they need together. */
static bool one_pool(const sc_hw *hw)
{
    return hw->expanded.pool >= hw->n_devices;
}

double predict_stages_full(const sc_hw *hw, const sc_stage_memory *m,
                           uint32_t n)
{
    double full = 0, sum = 0;
    for (uint32_t i = 0; i < n; i++) sum += m[i].expanded;
    for (uint32_t i = 0; i < n; i++)
        full = fmax(
            full, predict_full(&m[i], one_pool(hw) ? sum / n : m[i].expanded));
    return full;
}

memory_most predict_groups_most(const sc_run *r, const memory_group *g,
                                uint32_t n, const double *optim, double scale)
{
    memory_most most = {0};
    bool pool = one_pool(r->hw);
    double sum = 0, devices = 0;
    for (uint32_t i = 0; i < n && pool; i++) {
        double own = optim ? optim[i] : g[i].optim;
        sum += g[i].n * predict_group_memory(r, &g[i], own).expanded;
        devices += g[i].n;
    }
    for (uint32_t i = 0; i < n; i++) {
        double own = optim ? optim[i] : g[i].optim;
        sc_stage_memory m = predict_group_memory(r, &g[i], own);
        m.peak *= scale;
        most.peak = fmax(most.peak, m.peak);
        most.full = fmax(most.full,
                         predict_full(&m, pool ? sum / devices : m.expanded));
    }
    return most;
}

uint32_t predict_like_next(const sc_plan *p, uint32_t dev)
{
    uint32_t pp = p->run.size[SC_AX_PP], n = 1;
    if (dev == 0 || sc_run_placement(&p->run) == SC_SCH_DUALPIPE) return 1;
    while (dev + n + 1 < pp && sc_plan_devices_alike(p, dev, dev + n)) n++;
    return n;
}

sc_status predict_memory_groups(const sc_plan *p, const sc_segment *segments,
                                sc_arena *a, memory_group *out, uint32_t *n,
                                sc_err *err)
{
    uint32_t pp = p->run.size[SC_AX_PP], k = 0;
    for (uint32_t dev = 0; dev < pp; k++) {
        uint32_t like = predict_like_next(p, dev);
        stage_sum s = sum_of(p, segments, dev);
        double kept;
        SC_TRY(most_kept(p, segments, dev, like, a, &kept, err));
        out[k] = group_of_sum(p, segments, &s, dev, like, kept);
        dev += like;
    }
    *n = k;
    return SC_OK;
}

sc_status sc_predict_memory(const sc_plan *p, const sc_segment *segments,
                            sc_arena *a, sc_stage_memory *out, sc_err *err)
{
    stage_sum s;
    for (uint32_t dev = 0; dev < p->run.size[SC_AX_PP]; dev++) {
        if (dev == 0 || !sc_plan_devices_alike(p, dev, dev - 1))
            s = sum_of(p, segments, dev);
        double kept;
        SC_TRY(most_kept(p, segments, dev, 1, a, &kept, err));
        memory_group g = group_of_sum(p, segments, &s, dev, 1, kept);
        out[dev] = predict_group_memory(&p->run, &g, g.optim);
    }
    return SC_OK;
}

/* The allocator frees inputs of exchanges that have run before it fails, so a
 * run whose host runs ahead reports no more than there is. */
static double most_reported(const sc_run *r, const sc_stage_memory *m)
{
    if (r->sw->exchanges_ahead == 0 || r->size[SC_AX_PP] > 1) return INFINITY;
    return (m->capacity - m->other) / (1 + r->sw->fragmentation) + m->other;
}

double sc_predict_reported_memory(const sc_prediction *p)
{
    int what = p->run.sw->memory_report;
    double most = 0;
    uint32_t n = what == SC_REPORT_FIRST && p->n_stages > 0 ? 1 : p->n_stages;
    for (uint32_t i = 0; i < n; i++) {
        const sc_stage_memory *m = &p->memory[i];
        double all = what >= SC_REPORT_ALLOCATED ? m->allocated : m->peak;
        all = fmin(all, most_reported(&p->run, m));
        most = fmax(most, what == SC_REPORT_DEVICE ? all : all - m->other);
    }
    return most;
}
