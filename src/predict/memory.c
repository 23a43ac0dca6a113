/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory.c - memory of every pipeline device, from the layers' own tensors.
 *
 * weights      kept parameters x bytes, and what ZeRO-3 has gathered
 * gradients    kept gradients x bytes
 * optimizer    states and master weights
 * activations  kept per micro-batch (Korthikanti et al. 2022, section 4) x
 *              micro-batches in flight, plus what one layer needs at work
 */
#include "predict/internal.h"

#include <math.h>

typedef struct stage_sum {
    double params_kept, frozen, grads, optim;
    double params, widest, root; /* gathered: all, the widest layer, the ends */
    double working;              /* the worst layer's transient */
    double fresh;                /* its gradients, not yet reduced */
    double logits;
} stage_sum;

/* Weights stay gathered, and gradients unreduced, from the first to the last
 * micro-batch. */
static bool stays_whole(const sc_run *r)
{
    return r->sw->stage_gather && r->zero >= 3 && r->size[SC_AX_PP] > 1 &&
           !r->forward_only;
}

/* Gradients of a layer as its backward pass leaves them: as wide as the
 * weights, and cast to the precision they are reduced in. */
static double fresh_gradients(const sc_run *r, const sc_block *b)
{
    if (!r->sw->root_group || b->gather_bytes <= 0) return 0;
    double each = sc_precision_bytes(SC_BF16);
    if (!stays_whole(r)) each += r->sw->reduce_bytes;
    return b->params * each;
}

static void add(const sc_run *r, stage_sum *s, uint32_t layer,
                const sc_block *b, double n)
{
    if (n <= 0) return;
    bool end = r->model->layer[layer].kind != SC_LAYER_BLOCK;
    double fresh = end ? 0 : fresh_gradients(r, b);
    s->params_kept += n * b->params_kept;
    s->frozen += n * b->frozen_kept;
    s->grads += n * b->grads_kept;
    s->optim += n * b->optim_kept;
    s->logits += b->logits;
    if (b->working + fresh > s->working + s->fresh) {
        s->working = b->working;
        s->fresh = fresh;
    }
    if (b->gather_bytes <= 0) return;
    s->params += n * b->params;
    if (end && r->sw->root_group)
        s->root += n * b->params;
    else
        s->widest = fmax(s->widest, b->params);
}

/* Bytes kept for the backward pass by all chunks of a device. */
static double activations(const sc_plan *p, const sc_block *blocks,
                          uint32_t dev)
{
    const sc_run *r = &p->run;
    uint32_t pp = r->size[SC_AX_PP];
    if (r->forward_only) return 0;
    double chunk = 0, ends = 0;
    for (uint32_t v = dev; v < p->n_stages; v += pp) {
        uint32_t last = r->model->n_layers - 1;
        for (uint32_t l = 0; l < last; l++)
            chunk += p->stage[v].n[l] * blocks[l].saved;
        /* The head's backward follows its forward at once. */
        if (p->stage[v].head) ends += blocks[last].saved;
    }
    uint32_t n = sc_schedule_in_flight(r->schedule, pp, r->vpp, r->ga, dev);
    if (r->schedule == SC_SCH_GPIPE) ends *= r->ga;
    return chunk / r->vpp * n + ends;
}

/* Weights in the layout of the products.  A layer, and the next one on its
 * way; buffers of collectives belong to streams of their own, whose memory the
 * rest does not use again. */
static double gathered(const sc_run *r, const stage_sum *s)
{
    double one = s->root + s->widest;
    double used = stays_whole(r) ? s->params : one;
    return sc_precision_bytes(SC_BF16) * (used + one);
}

static double gradients(const sc_run *r, const stage_sum *s)
{
    const sc_software *sw = r->sw;
    double low = sc_precision_bytes(SC_BF16), sum = sw->grad_bytes;
    if (r->forward_only) return 0;
    if (sw->two_gradients && sum > low) sum += low;
    double whole = stays_whole(r) ? s->params * sw->reduce_bytes : 0;
    return s->grads * sum + whole + s->fresh;
}

/* Between stages an activation and a gradient are under way, each being sent
 * and received; or each micro-batch has its own buffers for what comes in, and
 * the last stage keeps what it handed to the loss. */
static double transfers(const sc_run *r, const stage_sum *s,
                        const sc_step_costs *c)
{
    double ga = r->ga;
    if (r->size[SC_AX_PP] == 1 || !r->sw->batch_buffers || r->forward_only)
        return 4 * c->send_bytes;
    return 2 * ga * r->vpp * c->send_bytes + (ga - 1) * s->logits;
}

static sc_stage_memory device_memory(const sc_plan *p, const sc_block *blocks,
                                     uint32_t dev, const sc_step_costs *c)
{
    const sc_run *r = &p->run;
    const sc_software *sw = r->sw;
    uint32_t pp = r->size[SC_AX_PP];
    stage_sum s = {0};
    for (uint32_t v = dev; v < p->n_stages; v += pp)
        for (uint32_t l = 0; l < r->model->n_layers; l++)
            add(r, &s, l, &blocks[l], p->stage[v].n[l]);
    sc_stage_memory m = {0};
    double low = sc_precision_bytes(SC_BF16);
    double each = r->forward_only ? low : sw->weight_bytes;
    /* Weights that are never updated are kept as the products take them. */
    double still = r->precision >= SC_FP8 ? 1 : low;
    m.weights =
        (s.params_kept - s.frozen) * each + s.frozen * still + gathered(r, &s);
    m.gradients = gradients(r, &s);
    if (!r->forward_only) m.optimizer = s.optim * sw->optim_bytes;
    m.activations = activations(p, blocks, dev) + s.working;
    m.communication = transfers(r, &s, c);
    if (sc_run_dp(r) > 1 && !r->forward_only)
        m.communication += sw->bucket_bytes + sw->flat_bytes;
    m.other = sw->memory_overhead;
    double used =
        m.weights + m.gradients + m.optimizer + m.activations + m.communication;
    m.allocated = used + m.other;
    m.peak = used * (1 + sw->fragmentation) + m.other;
    return m;
}

sc_status sc_predict_memory(const sc_plan *p, const sc_block *blocks,
                            sc_arena *a, sc_stage_memory *out, sc_err *err)
{
    (void)a;
    for (uint32_t dev = 0; dev < p->run.size[SC_AX_PP]; dev++) {
        sc_step_costs c;
        SC_TRY(sc_plan_step_costs(p, blocks, dev, &c, err));
        out[dev] = device_memory(p, blocks, dev, &c);
    }
    return SC_OK;
}

double sc_predict_reported_memory(const sc_prediction *p)
{
    bool part = p->run.sw->memory_report == SC_REPORT_ALLOCATOR;
    double most = 0;
    for (uint32_t i = 0; i < p->n_stages; i++) {
        const sc_stage_memory *m = &p->memory[i];
        most = fmax(most, part ? m->peak - m->other : m->peak);
    }
    return most;
}
