/* SPDX-License-Identifier: Apache-2.0 */
/* net_result.c - computes the result of an executed step: rates, memory,
 * categories. */
#include "plan/plan_host.h"
#include "predict/net.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Copies the axes that a run has, as sc_strategy_to_job() does. A job with
 * these axes therefore means the same as the file. */
static void axes(const sc_strategy *s, sc_run *r)
{
    for (uint32_t ax = 0; ax < SC_N_AX; ax++) r->size[ax] = 1;
    for (uint32_t i = 0; i < s->n_axes; i++) {
        sc_axis is = s->axis[i].is;
        if (is == SC_AX_FSDP) is = SC_AX_DP;
        if (is < SC_N_AX) r->size[is] *= s->axis[i].size;
    }
}

static void choices(const net_prediction *x, const sc_net_step *step, sc_run *r)
{
    const sc_net_run *g = step->job;
    axes(&x->tree, r);
    r->vpp = x->tree.virtual_stages > 0 ? (uint32_t)x->tree.virtual_stages : 1;
    r->mbs = g->micro;
    r->ga = g->ga;
    r->zero = x->tree.zero > 0 ? (int)x->tree.zero : 0;
    r->recompute =
        x->tree.recompute > 0 ? (sc_recompute)x->tree.recompute : SC_RC_NONE;
    r->schedule = r->order                ? SC_SCH_FILE
                  : x->tree.schedule >= 0 ? (sc_schedule)x->tree.schedule
                                          : SC_SCH_1F1B;
    r->opts = g->opts;
    if (x->tree.offload_activations >= 0)
        r->offload = x->tree.offload_activations;
    r->offload_weights = x->tree.offload_weights;
    r->offload_to = x->tree.offload_to;
    if (x->tree.optimizer_tier > 0)
        r->optim_tier = (uint8_t)x->tree.optimizer_tier;
    r->gbs = (uint64_t)llround(step->plan.samples);
    if (r->seq == 0) r->seq = 1;
}

/* Seconds that no kernel or link explains: data, logging, launching the
 * step; on a device that is not slower than others. */
static double fixed_alone(const sc_run *r, const sc_rules *rules)
{
    if (rules->nothing_fixed) return 0;
    if (r->model->net) return r->cost->p[SC_P_GRAPH_FIXED];
    if (r->forward_only) return 0;
    return sc_plan_step_fixed(r);
}

double predict_net_fixed(const sc_run *r, const sc_rules *rules)
{
    double slow = r->model->net ? 1 : sc_plan_slow_factor(r);
    return fixed_alone(r, rules) * slow;
}

/* Seconds that a step waits for an overlapped checkpoint, because writing it
 * takes longer than the steps between two checkpoints. */
static double behind(double step_s, const sc_net_save *c)
{
    return c->async ? fmax(0, c->write_s / c->every - step_s) : 0;
}

static void checkpoints(net_prediction *x, const sc_net_step *step,
                        sc_prediction *p)
{
    const sc_net_save *c = &step->plan.save;
    if (c->every <= 0 || (step->fast && step->layers)) return;
    double wait = behind(p->step_time_s, c);
    p->step_time_s += wait;
    p->time_breakdown_s[SC_CAT_OTHER] += wait;
    p->other_engine_s += behind(p->other_engine_s, c);
    predict_note(&x->assume,
                 "a checkpoint of %.4g GB every %.0f steps: %.3g s to copy to "
                 "the host, %.3g s to write%s",
                 c->bytes / 1e9, c->every, c->copy_s, c->write_s,
                 c->async ? ", while training goes on" : "");
    if (x->net_run.storage_bw <= 0 && x->tree.checkpoint_tier == SC_TIER_DEVICE)
        predict_note(&x->assume, "storage accepts %.3g GB/s from each host",
                     PLAN_STORAGE_BW / 1e9);
    if (wait > 0)
        predict_note(&x->warn,
                     "checkpoints are made faster than the storage accepts "
                     "them, so steps wait %.3g s",
                     wait);
}

/* The mean over all devices, which may differ. */
static double mean_peak(const sc_run *r)
{
    double sum = 0;
    for (uint32_t i = 0; i < r->hw->n_devices; i++) {
        const sc_device *d = sc_hw_device_at(r->hw, i);
        double peak = d->peak[r->precision];
        sum += peak > 0 ? peak : d->vector_flops;
    }
    return sum / r->hw->n_devices;
}

/* FLOP of the model. Padding of the vocabulary is executed but is not
 * counted. */
static double model_flops(const net_prediction *x, const sc_net_step *step,
                          const sc_run *r)
{
    if (x->model == r->model) return step->plan.model_flops;
    return sc_model_flops(r->model, r->gbs, r->seq, r->forward_only);
}

static void rates(net_prediction *x, const sc_net_step *step, sc_prediction *p)
{
    const sc_run *r = &p->run;
    double n = r->hw->n_devices, t = p->step_time_s;
    double peak = mean_peak(r), model = model_flops(x, step, r);
    p->samples_per_s = (double)r->gbs / t;
    p->tokens_per_s = p->samples_per_s * (double)r->seq;
    p->tokens_per_s_per_device = p->tokens_per_s / n;
    p->model_tflops_per_device = model / t / n / 1e12;
    p->mfu = model / t / n / peak;
    p->hfu = (model + step->plan.recomputed_flops) / t / n / peak;
    if (p->mfu > 1 && !x->job->op_times && p->level == 0)
        predict_note(
            &x->assume,
            "MFU is above 100 %%: convolutions by Winograd's algorithm "
            "execute fewer operations than MFU counts");
}

/* The name of the largest tensor at the peak. */
static const char *largest(const sc_graph *g, const sc_mem_device *m,
                           sc_arena *a)
{
    sc_text name;
    if (m->n_top == 0) return "nothing";
    sc_text_init(&name);
    sc_lifetime_name(&g->lifetime[m->top[0]], &name);
    const char *kept = name.failed ? NULL : sc_strdup(a, name.buf);
    sc_text_free(&name);
    return kept;
}

/* If a stage has several devices (one per rank), the fullest represents it. */
static sc_status memory(const net_prediction *x, const sc_net_step *step,
                        sc_prediction *p, sc_err *err)
{
    const sc_graph *e = &step->plan.step;
    uint32_t stages = p->run.size[SC_AX_PP];
    int pp = sc_strategy_axis(&x->tree, SC_AX_PP);
    p->n_stages = stages;
    p->memory = SC_NEW_N(x->a, sc_stage_memory, stages);
    if (!p->memory) return sc_error_nomem(err);
    p->memory_capacity_bytes = (double)x->hw->device->mem_bytes;
    p->fits = predict_net_fits(step);
    double full;
    for (uint32_t d = 0; d < e->n_classes; d++) {
        const sc_mem_device *m = &step->memory[d];
        sc_stage_memory *s = &p->memory[sc_strategy_coordinate(
            &x->tree, pp, e->classes[d].rank)];
        double other = x->sw->memory_overhead;
        double peak = predict_net_peak(step, d);
        if (peak < s->peak) continue;
        const uint64_t *k = m->by_kind;
        *s = (sc_stage_memory){
            .weights = (double)k[SC_MEM_WEIGHT],
            .gradients = (double)k[SC_MEM_GRAD],
            .optimizer = (double)k[SC_MEM_OPTIM],
            .activations = (double)k[SC_MEM_ACTIVATION],
            .communication = (double)k[SC_MEM_COMM],
            .other = (double)k[SC_MEM_OTHER] + other,
            .allocated = (double)m->peak_live + other,
            .peak = peak,
            .capacity = (double)predict_net_capacity(step, d),
            .worst = largest(e, m, x->a),
        };
        if (!s->worst) return sc_error_nomem(err);
    }
    for (uint32_t i = 0; i < stages && step->plan.expanded; i++) {
        p->memory[i].expanded = step->plan.expanded[i];
        p->memory[i].expanded_capacity = x->hw->expanded.bytes;
    }
    full = predict_stages_full(x->hw, p->memory, stages);
    p->fits_probability = predict_fits_run(&p->run, full);
    p->fits = p->fits && p->fits_probability >= SC_MAY_FIT;
    return SC_OK;
}

/* FLOP of the device that executes most, each relative to its own peak, as
 * if all were the slowest. */
static sc_status busiest_flops(const sc_net_step *step, const sc_run *run,
                               sc_arena *a, double *most, sc_err *err)
{
    double slow = predict_best_peak(run->hw->device, run->precision);
    const sc_graph *e = &step->plan.step;
    double *sum = SC_NEW_N(a, double, e->n_classes);
    if (!sum) return sc_error_nomem(err);
    for (sc_op i = 0; i < e->n_ops; i++)
        for (uint32_t k = sc_op_place(e, i); k < sc_op_place(e, i + 1); k++)
            sum[e->cls[k]] += e->flops[i];
    if (!isnan(step->clock_s)) sum = step->clock.flops;
    *most = 0;
    for (uint32_t d = 0; d < e->n_classes; d++) {
        const sc_device *own = sc_hw_device_at(run->hw, e->classes[d].rank);
        double peak = predict_best_peak(own, run->precision);
        *most = fmax(*most, sum[d] * slow / peak);
    }
    return SC_OK;
}

/* Warns of the largest tensors on a device that is too full. */
static void overflow(net_prediction *x, const sc_net_step *step)
{
    char names[240] = "none";
    for (uint32_t d = 0; d < step->plan.step.n_classes; d++) {
        const sc_mem_device *m = &step->memory[d];
        size_t at = 0;
        if (predict_net_fits_on(step, d)) continue;
        for (uint32_t i = 0; i < m->n_top && i < 4; i++) {
            const sc_lifetime *t = &step->plan.step.lifetime[m->top[i]];
            char size[32];
            sc_text name;
            sc_unit_print_short((double)t->bytes, SC_U_BYTES, size,
                                sizeof size);
            sc_text_init(&name);
            sc_lifetime_name(t, &name);
            int n = snprintf(names + at, sizeof names - at, "%s%s %s",
                             i ? ", " : "", name.buf, size);
            sc_text_free(&name);
            if (n < 0 || (size_t)n >= sizeof names - at) {
                names[at] = '\0'; /* drops the name that was cut off */
                break;
            }
            at += (size_t)n;
        }
        predict_note(
            &x->warn,
            "does not fit on %s at %.4g ms; the largest tensors are %s",
            step->plan.step.classes[d].name, 1e-9 * (double)m->peak_t, names);
        return;
    }
}

/* Collectives that lose less of a step are not named. */
#define SLOW_CHOICE_STEP 1e-3

/* Warns of choices of NCCL that are priced much slower than others. */
static sc_status slow_choices(net_prediction *x, const sc_net_step *step,
                              double step_s, sc_err *err)
{
    const sc_net_slow *slow = NULL;
    uint32_t n = 0;
    if (x->job->brief || x->rules->ring_simple) return SC_OK;
    SC_TRY(sc_net_plan_slow(&step->plan, x->a, &slow, &n, err));
    for (uint32_t i = 0; i < n; i++) {
        const sc_net_exchange *e = slow[i].exchange;
        sc_text t;
        if (slow[i].seconds < SLOW_CHOICE_STEP * step_s) continue;
        sc_text_init(&t);
        sc_cost_coll_slow_text(&slow[i].choice, (sc_coll)e->coll, e->bytes,
                               e->place, slow[i].seconds, &t);
        if (!t.failed) predict_note(&x->warn, "%s", t.buf);
        sc_text_free(&t);
    }
    return SC_OK;
}

sc_status predict_net_result(net_prediction *x, sc_net_step *step,
                             sc_prediction *p, sc_err *err)
{
    choices(x, step, &p->run);
    step->fixed_s = predict_net_fixed(&p->run, x->rules);
    step->fixed_alone_s = fixed_alone(&p->run, x->rules);
    p->step_time_s = sc_time_to_s(step->run.makespan);
    for (uint32_t c = 0; c < SC_N_CATS; c++)
        p->time_breakdown_s[c] = sc_time_to_s(step->cat[c]);
    p->time_breakdown_s[SC_CAT_OTHER] += step->fixed_s;
    p->step_time_s += step->fixed_s;
    p->other_engine_s = NAN;
    if (!x->job->brief && !step->fast)
        p->other_engine_s =
            p->step_time_s + step->clock_s - sc_time_to_s(step->run.makespan);
    double flops = 0;
    SC_TRY(busiest_flops(step, &p->run, x->a, &flops, err));
    predict_traits(p);
    predict_level(
        p, flops / predict_best_peak(p->run.hw->device, p->run.precision),
        &x->assume);
    checkpoints(x, step, p);
    rates(x, step, p);
    SC_TRY(memory(x, step, p, err));
    predict_money(x->job, p);
    overflow(x, step);
    SC_TRY(slow_choices(x, step, p->step_time_s, err));
    p->step_time_low_s = p->step_time_high_s = NAN;
    if (!x->job->brief) predict_interval_notes(p, &x->assume, &x->warn);
    return predict_bounds(p, flops, err);
}
