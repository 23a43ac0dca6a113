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
    double gathers; /* layers whose weights are gathered before use */
    double params_kept, frozen, grads, optim, saved, gathered, working,
        residual;
} stage_sum;

static void add(stage_sum *s, const sc_block *b, double n)
{
    if (n <= 0) return;
    s->params_kept += n * b->params_kept;
    s->frozen += n * b->frozen_kept;
    s->grads += n * b->grads_kept;
    s->optim += n * b->optim_kept;
    s->residual += n * b->residual;
    s->gathers += b->gather_bytes > 0 ? n : 0;
    s->working = fmax(s->working, b->working);
    if (b->gather_bytes > 0) s->gathered = fmax(s->gathered, b->params);
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

static sc_stage_memory device_memory(const sc_plan *p, const sc_block *blocks,
                                     uint32_t dev, const sc_step_costs *c)
{
    const sc_run *r = &p->run;
    const sc_software *sw = r->sw;
    uint32_t pp = r->size[SC_AX_PP];
    stage_sum s = {0};
    for (uint32_t v = dev; v < p->n_stages; v += pp)
        for (uint32_t l = 0; l < r->model->n_layers; l++)
            add(&s, &blocks[l], p->stage[v].n[l]);
    sc_stage_memory m = {0};
    double low = sc_precision_bytes(SC_BF16);
    double each = r->forward_only ? low : sw->weight_bytes;
    /* Weights that are never updated are kept as the products take them. */
    double still = r->precision >= SC_FP8 ? 1 : low;
    /* Gathered: this layer and those ahead. */
    double live = fmin(1 + (double)sw->prefetch, s.gathers);
    m.weights = (s.params_kept - s.frozen) * each + s.frozen * still +
                live * s.gathered * low;
    if (!r->forward_only) {
        double sum = sw->grad_bytes;
        if (sw->two_gradients && sum > low) sum += low;
        m.gradients = s.grads * sum;
        m.optimizer = s.optim * sw->optim_bytes;
    }
    m.activations = activations(p, blocks, dev) + s.working;
    m.communication = 4 * c->send_bytes;
    if (sc_run_dp(r) > 1 && !r->forward_only)
        m.communication += sw->bucket_bytes + sw->flat_bytes;
    m.communication += s.residual;
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
