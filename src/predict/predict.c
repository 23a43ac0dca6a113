/* SPDX-License-Identifier: Apache-2.0 */
/* predict.c - one prediction, from the question to the numbers. */
#include "predict/internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct state {
    const sc_job *job;
    sc_plan plan;
    sc_block *blocks;    /* [model->n_layers] */
    double flops_device; /* executed per device and step, of the busiest */
    double fast_s;       /* by the fast engine, where it was asked */
} state;

static sc_status run_event(const state *x, sc_arena *a, sc_prediction *p,
                           sc_err *err)
{
    sc_graph g, unfolded;
    sc_result res;
    sc_sim_opts opts;
    SC_TRY(sc_lower(&x->plan, x->blocks, NULL, a, &g, err));
    const sc_graph *use = &g;
    if (x->job->no_symmetry) {
        SC_TRY(sc_graph_unfold(&g, 20000000, a, &unfolded, err));
        use = &unfolded;
    }
    sc_predict_rates(&x->plan, x->blocks, &opts);
    SC_TRY(sc_sim_run(use, &opts, a, &res, err));
    p->step_time_s = sc_time_to_s(res.makespan);
    /* The slowest rank: the one that waits least. */
    sc_time best[SC_N_CATS] = {0}, least = -1;
    for (uint32_t c = 0; c < use->n_classes; c++) {
        sc_time cat[SC_N_CATS];
        sc_result_breakdown(use, &res, c, res.makespan, cat);
        if (least >= 0 && cat[SC_CAT_BUBBLE] >= least) continue;
        least = cat[SC_CAT_BUBBLE];
        memcpy(best, cat, sizeof best);
    }
    for (uint32_t c = 0; c < SC_N_CATS; c++)
        p->time_breakdown_s[c] = sc_time_to_s(best[c]);
    return SC_OK;
}

static double packing(const sc_block *b)
{
    return b->pack_s;
}

/* Time of one device by category, all micro-batches. */
static double device_time(const state *x, uint32_t dev, double cat[SC_N_CATS])
{
    const sc_run *r = &x->plan.run;
    const sc_block *own = sc_plan_blocks(&x->plan, x->blocks, dev);
    double sum = 0;
    for (uint32_t c = 0; c < SC_N_CATS; c++) {
        cat[c] = 0;
        for (uint32_t k = 0; k < sc_run_chunks(r); k++)
            for (uint32_t l = 0; l < r->model->n_layers; l++)
                cat[c] += x->plan.stage[sc_run_stage(r, dev, k)].n[l] *
                          (own[l].fwd_cat[c] + own[l].bwd_cat[c]);
        cat[c] *= predict_passes(r);
        if (c == SC_CAT_COMPUTE)
            cat[c] += sc_run_reductions(r) *
                      sc_plan_device_sum(&x->plan, x->blocks, dev, packing);
        sum += cat[c];
    }
    return sum;
}

/* The fast engine has no timeline: the busiest device's own time by category,
 * the rest of the step is bubble. */
static void fast_breakdown(const state *x, sc_prediction *p)
{
    uint32_t pp = p->run.size[SC_AX_PP];
    double most = -1;
    for (uint32_t dev = 0; dev < pp; dev++) {
        double cat[SC_N_CATS], sum = device_time(x, dev, cat);
        if (sum <= most) continue;
        most = sum;
        memcpy(p->time_breakdown_s, cat, sizeof cat);
    }
    double rest = fmax(0, p->step_time_s - most);
    p->time_breakdown_s[pp > 1 ? SC_CAT_BUBBLE : SC_CAT_DP] += rest;
}

static sc_status run_engines(state *x, sc_arena *a, sc_prediction *p,
                             sc_err *err)
{
    double fast = 0;
    bool event = x->job->engine == SC_ENGINE_EVENT;
    if (!event || !x->job->brief)
        SC_TRY(sc_predict_fast(&x->plan, x->blocks, a, &fast, err));
    x->fast_s = fast;
    if (event) {
        SC_TRY(run_event(x, a, p, err));
        p->other_engine_s = fast;
        return SC_OK;
    }
    p->step_time_s = fast;
    fast_breakdown(x, p);
    p->other_engine_s = NAN;
    return SC_OK;
}

/* Seconds that a step waits for the last asynchronous checkpoint: it can't be
 * written faster than they come. */
static double behind(double step_s, const sc_step_costs *c)
{
    return fmax(0, c->save_beside_s - step_s);
}

static sc_status checkpoints(const state *x, sc_prediction *p,
                             predict_notes *assume, predict_notes *warn,
                             sc_err *err)
{
    const sc_run *r = &x->plan.run;
    double every = r->checkpoint_every, bytes = 0;
    sc_step_costs c;
    if (every <= 0 || r->forward_only) return SC_OK;
    SC_TRY(sc_plan_step_costs(&x->plan, x->blocks, 0, &c, err));
    for (uint32_t d = 0; d < r->size[SC_AX_PP]; d++)
        bytes += sc_plan_checkpoint_bytes(&x->plan, x->blocks, d);
    bytes *= (double)r->hw->n_devices / r->size[SC_AX_PP];
    double wait = behind(p->step_time_s, &c);
    p->step_time_s += wait;
    p->time_breakdown_s[SC_CAT_OTHER] += wait;
    p->other_engine_s += behind(p->other_engine_s, &c);
    double write_s = (c.save_write_s + c.save_beside_s) * every;
    predict_note(assume,
                 "a checkpoint of %.4g GB every %.0f steps: %.3g s to copy to "
                 "the host, %.3g s to write%s",
                 bytes / 1e9, every, c.save_copy_s * every, write_s,
                 r->checkpoint_async ? ", beside training" : "");
    if (r->storage_bw <= 0 &&
        (!r->strategy || r->strategy->checkpoint_tier == SC_TIER_DEVICE))
        predict_note(assume, "storage takes 2 GB/s of each host");
    if (wait > 0)
        predict_note(warn,
                     "checkpoints come faster than storage takes them: steps "
                     "wait %.3g s",
                     wait);
    return SC_OK;
}

/* Optimizer states that are not on the device. */
static void states_note(const state *x, predict_notes *assume)
{
    double most = 0;
    for (uint32_t d = 0; d < x->plan.run.size[SC_AX_PP]; d++)
        most = fmax(most, sc_plan_host_states(&x->plan, x->blocks, d));
    if (most > 0)
        predict_note(assume, "optimizer states of up to %.4g GiB per device %s",
                     most / (double)(1 << 30),
                     x->plan.run.optim_tier == SC_TIER_NVME
                         ? "on the NVMe drives of its host"
                         : "in the memory of its host");
}

/* FLOP of the forward products that are made again. */
static double recomputed_flops(const state *x)
{
    const sc_run *r = &x->plan.run;
    double sum = 0;
    for (uint32_t l = 0; l < r->model->n_layers; l++) {
        const sc_layer *layer = &r->model->layer[l];
        for (uint32_t i = 0; i < layer->n_ops; i++)
            if (x->plan.placed[l][i].recompute && !layer->still)
                sum += layer->repeat *
                       sc_operator_flops(&layer->op[i], r->gbs, r->seq);
    }
    return r->forward_only ? 0 : sum;
}

/* Of all devices. */
static double mean_peak(const sc_plan *p, sc_precision precision)
{
    uint32_t pp = p->kind ? p->run.size[SC_AX_PP] : 1;
    double sum = 0;
    for (uint32_t dev = 0; dev < pp; dev++) {
        const sc_device *d = sc_plan_hw(p, dev)->device;
        double peak = d->peak[precision];
        sum += peak > 0 ? peak : d->vector_flops;
    }
    return sum / pp;
}

static void rates(const state *x, sc_prediction *p)
{
    const sc_run *r = &p->run;
    double n = r->hw->n_devices, t = p->step_time_s;
    double model = sc_model_flops(r->model, r->gbs, r->seq, r->forward_only);
    sc_precision pr = r->precision;
    double peak = mean_peak(&x->plan, pr);
    p->samples_per_s = (double)r->gbs / t;
    p->tokens_per_s = p->samples_per_s * (double)r->seq;
    p->tokens_per_s_per_device = p->tokens_per_s / n;
    p->model_tflops_per_device = model / t / n / 1e12;
    p->mfu = model / t / n / peak;
    p->hfu = (model + recomputed_flops(x)) / t / n / peak;
}

void predict_money(const sc_job *job, sc_prediction *p)
{
    const sc_run *r = &p->run;
    const sc_hw *hw = r->hw;
    double t = p->step_time_s, busy = 0;
    for (uint32_t c = 0; c < SC_N_CATS; c++)
        if (c == SC_CAT_COMPUTE || c == SC_CAT_OPTIMIZER)
            busy += p->time_breakdown_s[c];
    p->energy_j_per_step = NAN;
    if (hw->device->power_w > 0) {
        double idle = r->cost->p[SC_P_IDLE_POWER];
        double share = idle + (1 - idle) * busy / t;
        double watts = hw->n_devices * hw->device->power_w * share +
                       hw->n_nodes * hw->node_power_w;
        p->energy_j_per_step = watts * t * (hw->pue > 0 ? hw->pue : 1);
    }
    p->cost_usd_per_step =
        job->price >= 0 ? job->price * hw->n_devices * t : NAN;
}

static sc_status memory(const state *x, sc_arena *a, sc_prediction *p,
                        sc_err *err)
{
    p->n_stages = p->run.size[SC_AX_PP];
    p->memory = SC_NEW_N(a, sc_stage_memory, p->n_stages);
    if (!p->memory) return sc_error_nomem(err);
    SC_TRY(sc_predict_memory(&x->plan, x->blocks, a, p->memory, err));
    p->memory_capacity_bytes = (double)p->run.hw->device->mem_bytes;
    p->fits = true;
    for (uint32_t i = 0; i < p->n_stages; i++)
        if (p->memory[i].peak > p->memory[i].capacity) p->fits = false;
    return SC_OK;
}

static double block_flops(const sc_block *b)
{
    return b->flops;
}

static double device_flops(const state *x)
{
    const sc_run *r = &x->plan.run;
    double most = 0, slow = predict_best_peak(r->hw->device, r->precision);
    for (uint32_t dev = 0; dev < r->size[SC_AX_PP]; dev++) {
        const sc_device *d = sc_plan_hw(&x->plan, dev)->device;
        double sum = sc_plan_device_sum(&x->plan, x->blocks, dev, block_flops);
        if (x->plan.kind) sum *= slow / predict_best_peak(d, r->precision);
        most = fmax(most, sum);
    }
    return most * predict_passes(&x->plan.run);
}

sc_status predict_keep_notes(const predict_notes *assume,
                             const predict_notes *warn, sc_arena *a,
                             sc_prediction *p, sc_err *err)
{
    p->assumptions = SC_NEW_N(a, const char *, assume->n);
    p->warnings = SC_NEW_N(a, const char *, warn->n);
    if (!p->assumptions || !p->warnings) return sc_error_nomem(err);
    memcpy(p->assumptions, assume->text, assume->n * sizeof *assume->text);
    memcpy(p->warnings, warn->text, warn->n * sizeof *warn->text);
    p->n_assumptions = assume->n;
    p->n_warnings = warn->n;
    return SC_OK;
}

static sc_status finish(const state *x, const predict_notes *assume,
                        const predict_notes *warn, sc_arena *a,
                        sc_prediction *p, sc_err *err)
{
    rates(x, p);
    predict_money(x->job, p);
    SC_TRY(predict_keep_notes(assume, warn, a, p, err));
    return predict_bounds(p, x->flops_device, err);
}

const sc_software *predict_software(const sc_job *job, const sc_software *sw,
                                    sc_arena *a)
{
    if (job->grad_overlap < 0 && job->tp_overlap < 0 && job->grad_bytes <= 0 &&
        job->prefetch < 0 && job->cp_comm < 0)
        return sw;
    sc_software *s = SC_NEW(a, sc_software);
    if (!s) return NULL;
    *s = *sw;
    if (job->grad_overlap >= 0) s->grad_overlap = job->grad_overlap;
    if (job->tp_overlap >= 0) s->tp_overlap = job->tp_overlap;
    if (job->prefetch >= 0) s->prefetch = job->prefetch;
    if (job->cp_comm >= 0) s->cp_comm = job->cp_comm;
    if (job->grad_bytes > 0) s->grad_bytes = s->reduce_bytes = job->grad_bytes;
    return s;
}

/* Some programs do more with products of one kind of scales. */
static sc_status for_recipe(const sc_job *job, const sc_software **sw,
                            sc_arena *a, sc_err *err)
{
    int recipe = job->precision >= 0 ? job->precision : (*sw)->recipe - 1;
    const char *name = recipe == SC_RECIPE_MXFP8   ? (*sw)->mxfp8
                       : recipe == SC_RECIPE_NVFP4 ? (*sw)->nvfp4
                                                   : NULL;
    bool open = (*sw)->open;
    if (!name) return SC_OK;
    SC_TRY(sc_software_find(name, NULL, sc_pos_none(), a, sw, err));
    sc_software *own = SC_NEW(a, sc_software);
    if (!own) return sc_error_nomem(err);
    *own = **sw;
    own->open = open;
    *sw = own;
    return SC_OK;
}

/* What was asked for and changes nothing. */
static void idle_options(const sc_job *job, const sc_run *r,
                         predict_notes *warn)
{
    if (job->prefetch >= 0 && r->zero < 3)
        predict_note(warn, "--prefetch changes nothing below ZeRO-3");
    if (job->cp_comm >= 0 && r->size[SC_AX_CP] == 1)
        predict_note(warn, "--cp-comm changes nothing at cp 1");
    if (job->tree && job->tree->tp_overlap > 0 && !r->sp) {
        sc_pos at = sc_strategy_pos(job->tree, "overlap", "tp");
        predict_note(warn,
                     "%s:%u:%u: tp changes nothing without megatron-sp: sums "
                     "stand between products",
                     at.file, at.line, at.col);
    }
    if (job->optimizer && strcmp(job->optimizer, "adam") != 0)
        predict_note(warn, "--optimizer changes nothing: blocks are updated by "
                           "adam");
    if (job->gamma >= 0)
        predict_note(warn, "--gamma changes nothing: blocks have rates of "
                           "overlap of their own");
    if (job->op_times)
        predict_note(warn, "--op-times changes nothing: blocks have prices of "
                           "their own");
    if (job->schedule > SC_SCH_1F1B && r->size[SC_AX_PP] == 1)
        predict_note(warn, "--schedule changes nothing at pp 1");
    if (job->wide && r->precision < SC_FP8)
        predict_note(warn, "--wide changes nothing in %s",
                     sc_recipe_names[r->recipe]);
    if (r->compress.kind != SC_GRAD_PLAIN &&
        sc_run_dp(r) * r->size[SC_AX_CP] == 1)
        predict_note(warn, "--grad-compress changes nothing at dp 1");
}

static void warnings(const sc_job *job, const sc_prediction *p,
                     predict_notes *warn)
{
    const sc_run *r = &p->run;
    idle_options(job, r, warn);
    if (r->size[SC_AX_TP] > r->hw->node_size)
        predict_note(warn, "tensor parallelism crosses nodes");
    uint32_t all = r->hw->n_devices, stride = 1;
    sc_place at = sc_hw_place(r->hw, 1, &all, &stride);
    if (!sc_cost_calibrated(r->cost, r->hw, &at))
        predict_note(warn, "the network between nodes is priced from its "
                           "nominal rate, not calibrated");
}

/* What the job says of single operators. */
static sc_status marked(const sc_job *job, sc_arena *a, const sc_model **model,
                        sc_err *err)
{
    char option[80];
    if (job->freeze) {
        snprintf(option, sizeof option, "--freeze %.60s", job->freeze);
        SC_TRY(sc_model_freeze(*model, job->freeze, sc_pos_file(option), a,
                               model, err));
    }
    if (!job->wide) return SC_OK;
    snprintf(option, sizeof option, "--wide %.60s", job->wide);
    return sc_model_widen(*model, job->wide, sc_pos_file(option), a, model,
                          err);
}

/* Stages on devices of several kinds: which, and how many blocks each. */
static void stage_note(const sc_plan *p, predict_notes *assume)
{
    char text[280];
    size_t at = 0;
    for (uint32_t v = 0; p->kind && v < p->n_stages; v++) {
        uint32_t dev = sc_run_device(&p->run, v, 0);
        const sc_device *d = sc_plan_hw(p, dev)->device;
        bool same =
            v > 0 && p->kind[dev] == p->kind[sc_run_device(&p->run, v - 1, 0)];
        if (at + 80 > sizeof text) break;
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%s%s%u",
                               v == 0 ? ""
                               : same ? " "
                                      : "; ",
                               same ? "" : d->name, same ? "" : " ",
                               p->stage[v].blocks);
    }
    if (at > 0)
        predict_note(assume, "blocks of each stage, on its own device: %s",
                     text);
}

static void notes(const sc_job *job, sc_prediction *p, predict_notes *assume,
                  predict_notes *warn)
{
    const sc_hw *hw = p->run.hw;
    predict_interval(p, job->brief, assume, warn);
    warnings(job, p, warn);
    if (hw->device_assumed)
        predict_note(assume, "device %s: the machine names none",
                     hw->device->name);
}

/* The model and the program as the job changes them. */
static sc_status change(const sc_job *job, const sc_hw *hw,
                        const sc_model **model, const sc_software **sw,
                        sc_arena *a, sc_err *err)
{
    SC_TRY(predict_check(job, hw, *model, *sw, err));
    SC_TRY(for_recipe(job, sw, a, err));
    *sw = predict_software(job, *sw, a);
    if (!*sw) return sc_error_nomem(err);
    if (!job->tree) return SC_OK;
    SC_TRY(sc_strategy_model(job->tree, *model, a, model, err));
    return sc_strategy_software(job->tree, a, sw, err);
}

static sc_status run_plan(state *x, predict_memo *memo, sc_arena *a,
                          sc_prediction *p, sc_err *err)
{
    SC_TRY(predict_layers(&p->run, memo, &x->plan, &x->blocks, err));
    x->flops_device = device_flops(x);
    SC_TRY(memory(x, a, p, err));
    return run_engines(x, a, p, err);
}

/* The memo, if it is of these. */
static predict_memo *memo_of(predict_memo *memo, const sc_hw *hw,
                             const sc_model *model, const sc_software *sw,
                             sc_arena *a)
{
    if (memo && memo->hw == hw && memo->model == model && memo->sw == sw)
        return memo;
    memo = SC_NEW(a, predict_memo);
    if (memo)
        *memo = (predict_memo){.a = a, .model = model, .sw = sw, .hw = hw};
    return memo;
}

/* Messages are of the graph that our own rules run. */
static sc_status check_fidelity(const sc_job *job, sc_err *err)
{
    if (!job->fidelity) return SC_OK;
    if (job->compat)
        return sc_error(err, SC_EINPUT, SC_C_CONFLICT,
                        sc_pos_file("--fidelity"), "leave out --compat",
                        "a compatible mode has its own network");
    if (job->engine == SC_ENGINE_EVENT) return SC_OK;
    return sc_error(err, SC_EINPUT, SC_C_CONFLICT, sc_pos_file("--engine"),
                    "--engine event, or --fidelity analytic",
                    "the fast engine sends no messages");
}

sc_status predict_again(const sc_job *job, const sc_hw *hw,
                        const sc_model *model, const sc_software *sw,
                        const sc_cost *cost, predict_memo *memo, sc_arena *a,
                        sc_prediction *out, sc_err *err)
{
    state x = {.job = job};
    sc_prediction p = {.analytic_s = NAN};
    predict_notes assume = {.arena = a}, warn = {.arena = a};
    SC_TRY(check_fidelity(job, err));
    SC_TRY(marked(job, a, &model, err));
    if (predict_by_graph(job, model))
        return predict_graph(job, hw, model, sw, cost, a, out, err);
    SC_TRY(change(job, hw, &model, &sw, a, err));
    memo = memo_of(memo, hw, model, sw, a);
    if (!memo) return sc_error_nomem(err);
    p.run = (sc_run){.hw = hw,
                     .model = model,
                     .sw = sw,
                     .cost = cost,
                     .strategy = job->tree};
    SC_TRY(predict_infer(job, a, &p.run, &assume, memo, &p.n_candidates, err));
    if (job->by_operators || job->fidelity) {
        SC_TRY(predict_operators(job, &p.run, a, &p, err));
        for (uint32_t i = 0; i < p.n_assumptions; i++)
            predict_note(&assume, "%s", p.assumptions[i]);
        for (uint32_t i = 0; i < p.n_warnings; i++)
            predict_note(&warn, "%s", p.warnings[i]);
        SC_TRY(predict_keep_notes(&assume, &warn, a, &p, err));
        *out = p;
        return SC_OK;
    }
    SC_TRY(predict_replicas(&p.run, a, &assume, err));
    SC_TRY(run_plan(&x, memo, a, &p, err));
    SC_TRY(checkpoints(&x, &p, &assume, &warn, err));
    states_note(&x, &assume);
    /* other choices would deal other micro-batches */
    bool dealt = p.run.ga * p.run.mbs * sc_run_dp(&p.run) != p.run.gbs;
    if (!job->brief && !dealt)
        SC_TRY(predict_suggest(job, x.fast_s, memo, a, &p, err));
    stage_note(&x.plan, &assume);
    notes(job, &p, &assume, &warn);
    SC_TRY(finish(&x, &assume, &warn, a, &p, err));
    *out = p;
    return SC_OK;
}

sc_status sc_predict(const sc_job *job, const sc_hw *hw, const sc_model *model,
                     const sc_software *sw, const sc_cost *cost, sc_arena *a,
                     sc_prediction *out, sc_err *err)
{
    return predict_again(job, hw, model, sw, cost, NULL, a, out, err);
}

sc_status sc_predict_load(const sc_job *job, sc_arena *a, sc_inputs *out,
                          sc_err *err)
{
    sc_inputs in = {.cost = SC_NEW(a, sc_cost)};
    if (!in.cost) return sc_error_nomem(err);
    sc_status s = SC_OK, t;
    if (!job->model)
        s = sc_error(err, SC_EUSAGE, SC_C_MISSING, sc_pos_file("--model"),
                     "`stepcast list models` shows the catalogue",
                     "no model is given");
    else
        s = sc_model_load(job->model, sc_pos_option(a, "--model", job->model),
                          a, &in.model, err);
    if (!job->cluster)
        t = sc_error(err, SC_EUSAGE, SC_C_MISSING, sc_pos_file("--cluster"),
                     "for example --cluster dgx-h100:16",
                     "no cluster is given");
    else
        t = sc_hw_build(job->cluster,
                        sc_pos_option(a, "--cluster", job->cluster), a, &in.hw,
                        err);
    if (s == SC_OK) s = t;
    t = sc_software_find(job->software, NULL,
                         sc_pos_option(a, "--software", job->software), a,
                         &in.sw, err);
    if (s == SC_OK) s = t;
    SC_TRY(s);
    SC_TRY(sc_cost_builtin(a, in.cost, err));
    *out = in;
    return SC_OK;
}

sc_status sc_predict_job(const sc_job *job, sc_arena *a, sc_prediction *out,
                         sc_err *err)
{
    sc_inputs in = {0};
    SC_TRY(sc_predict_load(job, a, &in, err));
    return sc_predict(job, in.hw, in.model, in.sw, in.cost, a, out, err);
}
