/* SPDX-License-Identifier: Apache-2.0 */
/* predict.c - computes one prediction, from the job to its numbers. */
#include "predict/internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct state {
    const sc_job *job;
    predict_shape layers;
    double fast_s; /* of segments */
} state;

/* Notes optimizer states that are not on the device. */
static void states_note(const state *x, predict_notes *assume)
{
    double most = 0;
    for (uint32_t d = 0; d < x->layers.plan.run.size[SC_AX_PP]; d++)
        most = fmax(
            most, sc_plan_host_states(&x->layers.plan, x->layers.segments, d));
    if (most > 0)
        predict_note(assume, "optimizer states of up to %.4g GiB per device %s",
                     most / SC_GIB,
                     x->layers.plan.run.optim_tier == SC_TIER_NVME
                         ? "on the NVMe drives of its host"
                         : "in the memory of its host");
}

sc_status predict_keep_notes(const predict_notes *assume,
                             const predict_notes *warn, sc_arena *a,
                             sc_prediction *p, sc_err *err)
{
    p->assumptions = SC_NEW_N(a, const char *, assume->n);
    p->warnings = SC_NEW_N(a, const char *, warn->n);
    if (!p->assumptions || !p->warnings || assume->failed || warn->failed)
        return sc_error_nomem(err);
    for (uint32_t i = 0; i < assume->n; i++)
        p->assumptions[i] = assume->text[i];
    for (uint32_t i = 0; i < warn->n; i++) p->warnings[i] = warn->text[i];
    p->n_assumptions = assume->n;
    p->n_warnings = warn->n;
    return SC_OK;
}

sc_status predict_assume(sc_prediction *p, const char *text, sc_arena *a,
                         sc_err *err)
{
    const char **all = SC_NEW_N(a, const char *, (size_t)p->n_assumptions + 1);
    if (!all || !text) return sc_error_nomem(err);
    for (uint32_t i = 0; i < p->n_assumptions; i++) all[i] = p->assumptions[i];
    all[p->n_assumptions++] = text;
    p->assumptions = all;
    return SC_OK;
}

const sc_software *predict_software(const sc_job *job, const sc_software *sw,
                                    sc_arena *a)
{
    if (job->grad_bytes <= 0 && job->optim_bytes <= 0 &&
        !sc_program_options_any(&job->program))
        return sw;
    sc_software *s = SC_NEW(a, sc_software);
    if (!s) return NULL;
    *s = *sw;
    sc_program_options_apply(&job->program, s);
    if (job->grad_bytes > 0 && job->grad_bytes != s->grad_bytes)
        s->grad_bytes = s->reduce_bytes = job->grad_bytes;
    if (job->optim_bytes > 0) {
        /* the update reads and writes each state */
        s->update_bytes += 2 * (job->optim_bytes - s->optim_bytes);
        if (s->update_bytes < 0) s->update_bytes = 0;
        s->optim_bytes = job->optim_bytes;
    }
    return s;
}

/* Some programs have a profile of their own for the recipes MXFP8 and NVFP4, or
 * for ZeRO-1. */
static sc_status for_recipe(const sc_job *job, const sc_software **sw,
                            sc_arena *a, sc_err *err)
{
    int recipe = job->precision >= 0 ? job->precision : (*sw)->recipe - 1;
    const char *name = recipe == SC_RECIPE_MXFP8   ? (*sw)->mxfp8
                       : recipe == SC_RECIPE_NVFP4 ? (*sw)->nvfp4
                       : job->zero == 1            ? (*sw)->zero1
                                                   : NULL;
    bool open = (*sw)->open;
    const char *nearest = (*sw)->nearest;
    if (!name) return SC_OK;
    bool unread = (*sw)->unread;
    SC_TRY(sc_software_find(name, NULL, sc_pos_none(), a, sw, err));
    if (unread) SC_TRY(sc_software_unread(*sw, a, sw, err));
    sc_software *own = SC_NEW(a, sc_software);
    if (!own) return sc_error_nomem(err);
    *own = **sw;
    own->open = open;
    own->nearest = nearest;
    *sw = own;
    return SC_OK;
}

static void warnings(const sc_job *job, const sc_prediction *p,
                     predict_notes *warn)
{
    const sc_run *r = &p->run;
    predict_idle(job, r, warn);
    if (job->tree && job->tree->tp_overlap > 0 && !r->sp)
        predict_tp_idle(job->tree, warn);
    uint32_t idle = sc_run_idle_stages(r);
    if (idle > 0 && r->sw->idle_stages < 1)
        predict_note(warn,
                     "%s leaves the last %u of %u stages without any part of "
                     "the model; %.0f %% of such runs do not fail",
                     r->sw->name, idle, sc_run_stages(r),
                     100 * r->sw->idle_stages);
    if (r->size[SC_AX_TP] > r->hw->node_size)
        predict_note(warn, "tensor parallelism crosses nodes");
    int64_t longest = r->model->t.max_seq;
    if (longest > 0 && r->seq > (uint64_t)longest)
        predict_note(warn,
                     "sequences of %llu tokens are longer than the %lld that "
                     "%s is published for",
                     (unsigned long long)r->seq, (long long)longest,
                     r->model->name);
    uint32_t all = r->hw->n_devices, stride = 1;
    sc_place at = sc_hw_place(r->hw, 1, &all, &stride);
    if (!sc_cost_calibrated(r->cost, r->hw, &at))
        predict_note(warn, "the network between nodes is priced from its "
                           "nominal rate, not calibrated");
}

/* Marks the single operators that the job names. */
static sc_status marked(const sc_job *job, sc_arena *a, const sc_model **model,
                        sc_err *err)
{
    char option[80];
    if (job->freeze) {
        snprintf(option, sizeof option, "--freeze %.60s", job->freeze);
        SC_TRY(sc_model_freeze(*model, job->freeze, sc_pos_file(option), a,
                               model, err));
    }
    if (!job->keep_bf16) return SC_OK;
    snprintf(option, sizeof option, "--keep-bf16 %.60s", job->keep_bf16);
    return sc_model_keep_bf16(*model, job->keep_bf16, sc_pos_file(option), a,
                              model, err);
}

/* Notes which stages are on which kind of device, and how many blocks each
 * has. */
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
        predict_note(assume, "layers of each stage, by its kind of device: %s",
                     text);
}

static void notes(const sc_job *job, sc_prediction *p, predict_notes *assume,
                  predict_notes *warn)
{
    const sc_hw *hw = p->run.hw;
    warnings(job, p, warn);
    if (p->run.sw->nearest) predict_note(warn, "%s", p->run.sw->nearest);
    if (hw->nearest) predict_note(warn, "%s", hw->nearest);
    if (job->mean_tokens > 0)
        predict_note(assume,
                     "%lld tokens of a sample are computed: the others are "
                     "padding",
                     (long long)job->mean_tokens);
    if (job->document_tokens > 0 &&
        job->document_tokens == p->run.sw->tuned_tokens)
        predict_note(assume,
                     "samples are packed from documents of %lld tokens: usual "
                     "of fine-tuning with %s",
                     (long long)job->document_tokens, p->run.sw->name);
    if (hw->device->like)
        predict_note(assume,
                     "device %s: figures of its file with the fits of %s; "
                     "figures that the file leaves out are those of %s",
                     hw->device->name, hw->device->arch, hw->device->like);
    if (hw->device_assumed)
        predict_note(assume,
                     "device %s: the machine's description does not name one",
                     hw->device->name);
    if (job->power_cap > 0 && hw->device->usual_power_w <= 0)
        predict_note(warn,
                     "--power-cap %g W changes nothing: no device may use more",
                     job->power_cap);
    if (job->expanded_fraction > 0)
        predict_note(assume,
                     "%.4g %% of every tensor are in expanded memory: both "
                     "memories together reach %.0f GB/s",
                     100 * job->expanded_fraction, hw->device->mem_bw / 1e9);
    const char *nodes = sc_hw_assumed(hw, assume->arena);
    if (nodes != NULL) predict_note(assume, "%s", nodes);
}

/* Tokens of a mean sample that are computed; 0: all. */
static int64_t real_tokens(const sc_job *job, const sc_model *model,
                           const sc_software *sw)
{
    int64_t seq = job->seq ? job->seq : model->t.max_seq;
    if (job->mean_tokens > 0) return job->mean_tokens;
    return model->t.encoder && sw->filled > 0
               ? (int64_t)ceil(sw->filled * (double)seq)
               : 0;
}

/* Keys of a mean token over the mean length, if samples of the fraction `filled`
 * of the longest length attend to themselves alone: E[n^2] / E[n]^2 for lengths
 * that are spread evenly up to the longest. */
static double attended(double filled)
{
    double least = fmax(0, 2 * filled - 1), most = fmin(1, 2 * filled);
    double squares = (least * least + least * most + most * most) / 3;
    return squares / (filled * filled);
}

/* Computes the tokens that are not padding. */
static sc_status without_padding(sc_job *job, const sc_model *model,
                                 const sc_software **sw, sc_arena *a,
                                 sc_err *err)
{
    int64_t seq = job->seq ? job->seq : model->t.max_seq;
    job->mean_tokens = real_tokens(job, model, *sw);
    if (job->mean_tokens <= 0) return SC_OK;
    job->seq = job->mean_tokens;
    if (seq <= job->seq) return SC_OK;
    sc_software *own = SC_NEW(a, sc_software);
    if (!own) return sc_error_nomem(err);
    *own = **sw;
    own->attended = attended((double)job->seq / (double)seq);
    *sw = own;
    return SC_OK;
}

/* Fine-tuned models get samples that are packed from short documents, if the
 * program packs them. */
static int64_t packed(const sc_job *job, const sc_model *model,
                      const sc_software *sw)
{
    bool tuned = job->fine_tune || model->t.lora > 0;
    if (job->document_tokens > 0 || model->t.encoder || !tuned)
        return job->document_tokens;
    return sw->tuned_tokens;
}

/* A token of a document of n tokens attends to n / 2 of them on average, as
 * many as a window of n / 2 has. */
static sc_status documents(const sc_job *job, sc_arena *a,
                           const sc_model **model, sc_err *err)
{
    sc_transformer t = (*model)->t;
    int64_t seq = job->seq ? job->seq : t.max_seq;
    if (job->document_tokens <= 0 || (*model)->net || t.window > 0 ||
        job->document_tokens >= seq)
        return SC_OK;
    t.window = (job->document_tokens + 1) / 2;
    t.window_every = 1;
    return sc_model_from_transformer(&t, sc_pos_file("--document-tokens"), a,
                                     model, err);
}

/* Applies the job's changes to the model and the program. */
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

/* Largest number of choices that are checked by the operator network. */
#define FITTINGS 8

/* Fraction of its memory that the fullest device needs by the operator
 * network. `out` is the step. */
static sc_status fullness(const sc_job *job, const sc_run *run, sc_arena *a,
                          double *full, sc_prediction *out, sc_err *err)
{
    sc_job quick = *job;
    sc_prediction q;
    quick.engine = SC_ENGINE_FAST;
    quick.fidelity = SC_FIDELITY_ANALYTIC;
    quick.brief = true;
    SC_TRY(predict_chosen(&quick, run, NULL, NULL, a, &q, err));
    *full = predict_stages_full(run->hw, q.memory, q.n_stages);
    *out = q;
    return SC_OK;
}

/* The state while choices by segments are checked by the operator network. */
typedef struct search {
    double light,
        heavy;  /* scales at which a choice did not fit, and at which none
                 * was left though one fits; 0: none */
    sc_run run; /* the fastest that fits by the operator network */
    sc_prediction asked; /* its step; n_stages 0: there is none */
    predict_notes notes;
    double scale;
    double most; /* predict_most_full() */
} search;

/* The scale at which segments need as much as the network does for the last
 * choice, limited to the range that is not tried yet. */
static double next_scale(search *s, double scale, double full, double segments)
{
    double next = scale * full / segments;
    if (full > s->most)
        s->light = fmax(s->light, scale);
    else
        s->heavy = s->heavy > 0 ? fmin(s->heavy, scale) : scale;
    if (s->light <= 0 || s->heavy <= s->light) return next;
    bool between = next > s->light && next < s->heavy;
    return between ? next : sqrt(s->light * s->heavy);
}

/* Keeps the last choice, which fits. */
static void keep(search *s, const sc_run *run, const sc_prediction *asked,
                 const predict_notes *notes, double scale)
{
    bool first = s->asked.n_stages == 0;
    if (!first && asked->step_time_s >= s->asked.step_time_s) return;
    s->run = *run;
    s->asked = *asked;
    s->notes = *notes;
    s->scale = scale;
}

/* Segments choose, and the operator network checks whether the choice fits.
 * If they disagree, the memory by segments is scaled to the network's and
 * they choose again. If they never agree, the fastest choice that fits by
 * the network is taken. `asked` is the step of the choice if the network
 * computed it. */
static sc_status choose(const sc_job *job, predict_memo *memo, sc_arena *a,
                        sc_prediction *p, predict_notes *assume,
                        sc_prediction *asked, sc_err *err)
{
    const sc_run open = p->run;
    const predict_notes before = *assume;
    search s = {.most = predict_most_full(p->run.cost)};
    uint32_t tried;
    memo->memory_scale = 1;
    p->n_candidates = 0;
    for (uint32_t k = 0; k < FITTINGS; k++) {
        predict_eval e;
        double full;
        *assume = before;
        p->run = open;
        SC_TRY(predict_infer(job, a, &p->run, assume, memo, &tried, err));
        p->n_candidates += tried;
        asked->n_stages = 0;
        /* the fast engine's result then follows from segments alone */
        bool alone = job->engine == SC_ENGINE_FAST && !predict_walks(job);
        if (tried == 1 || alone) return SC_OK;
        SC_TRY(predict_evaluate(&p->run, 0, INFINITY, memo, &e, err));
        SC_TRY(fullness(job, &p->run, a, &full, asked, err));
        bool slower =
            s.asked.n_stages > 0 && s.asked.step_time_s < asked->step_time_s;
        bool fits = full <= s.most;
        if (fits && e.fits && !slower) return SC_OK;
        if (fits == e.fits) break;
        if (fits)
            keep(&s, &p->run, asked, assume,
                 memo->memory_scale * full / e.full);
        memo->memory_scale = next_scale(&s, memo->memory_scale, full, e.full);
    }
    if (s.asked.n_stages > 0) {
        p->run = s.run;
        *asked = s.asked;
        *assume = s.notes;
        memo->memory_scale = s.scale;
        predict_note(assume, "this is the fastest of the choices that were "
                             "tried and fit; others that fit were not found");
    }
    return SC_OK;
}

/* Predicts the run by its operator network; all choices are made. */
static sc_status by_network(const state *x, const sc_prediction *asked,
                            predict_memo *memo, sc_arena *a, sc_prediction *p,
                            predict_notes *assume, predict_notes *warn,
                            sc_err *err)
{
    sc_prediction q = *asked;
    SC_TRY(predict_chosen(x->job, &p->run, memo,
                          asked->n_stages ? asked->net : NULL, a, &q, err));
    for (uint32_t i = 0; i < q.n_assumptions; i++)
        predict_note(assume, "%s", q.assumptions[i]);
    for (uint32_t i = 0; i < q.n_warnings; i++)
        predict_note(warn, "%s", q.warnings[i]);
    q.run = p->run;
    q.n_candidates = p->n_candidates;
    q.by_mesh = false;
    *p = q;
    return SC_OK;
}

/* Compares the contents, because a job may create its program more than
 * once. If only bytes between the fields differ, a new memo is made, which
 * changes no result. */
bool predict_same_program(const sc_software *x, const sc_software *y)
{
    /* NOLINTNEXTLINE(bugprone-suspicious-memory-comparison,cert-*) */
    return x == y || memcmp(x, y, sizeof *x) == 0;
}

/* Prices of exchanges that a memo keeps if it has none to share. */
#define PRICES 512

/* The memo if it belongs to this machine and program; else a new one, with
 * `prices` of exchanges, or its own if these are NULL. */
static predict_memo *memo_of(predict_memo *memo, const sc_hw *hw,
                             const sc_model *model, const sc_software **sw,
                             const sc_cost *cost, sc_coll_memo *prices,
                             sc_arena *a)
{
    if (memo && memo->hw == hw && memo->model == model &&
        predict_same_program(memo->sw, *sw)) {
        *sw = memo->sw;
        return memo;
    }
    memo = SC_NEW(a, predict_memo);
    if (!prices) prices = sc_coll_memo_new(a, cost, hw, PRICES);
    if (!memo || !prices) return NULL;
    *memo = (predict_memo){
        .a = a, .model = model, .sw = *sw, .hw = hw, .networks.prices = prices};
    return memo;
}

sc_status predict_check_fidelity(const sc_job *job, sc_err *err)
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

sc_status predict_open(const sc_job *job, sc_coll_memo *prices, sc_arena *a,
                       sc_run *inout, predict_memo **memo, sc_err *err)
{
    SC_TRY(change(job, inout->hw, &inout->model, &inout->sw, a, err));
    inout->strategy = job->tree;
    if (!memo) return SC_OK;
    *memo = memo_of(NULL, inout->hw, inout->model, &inout->sw, inout->cost,
                    prices, a);
    return *memo ? SC_OK : sc_error_nomem(err);
}

sc_status predict_again(const sc_job *job, const sc_run *of, predict_memo *memo,
                        sc_arena *a, sc_prediction *out, sc_err *err)
{
    const sc_hw *hw = of->hw;
    const sc_model *model = of->model;
    const sc_software *sw = of->sw;
    state x = {.job = job};
    sc_prediction p = {.analytic_s = NAN}, asked = {0};
    predict_notes assume = {.arena = a}, warn = {.arena = a};
    SC_TRY(predict_check_fidelity(job, err));
    if (predict_by_net(job, model))
        return predict_net(
            job,
            &(sc_run){.hw = hw, .model = model, .sw = sw, .cost = of->cost},
            NULL, NULL, a, out, err);
    SC_TRY(change(job, hw, &model, &sw, a, err));
    memo = memo_of(memo, hw, model, &sw, of->cost, NULL, a);
    if (!memo) return sc_error_nomem(err);
    p.run = (sc_run){.hw = hw,
                     .model = model,
                     .sw = sw,
                     .cost = of->cost,
                     .strategy = job->tree};
    SC_TRY(choose(job, memo, a, &p, &assume, &asked, err));
    SC_TRY(predict_layers(&p.run, memo, &x.layers, err));
    const predict_shape *layers = &x.layers;
    SC_TRY(predict_steps(&layers, 1, NULL, a, &x.fast_s, err));
    states_note(&x, &assume);
    stage_note(&x.layers.plan, &assume);
    predict_stalls(&x.layers.plan, &assume);
    SC_TRY(by_network(&x, &asked, memo, a, &p, &assume, &warn, err));
    /* other choices would give other micro-batches */
    bool dealt = p.run.ga * p.run.mbs * sc_run_dp(&p.run) != p.run.gbs;
    if (!job->brief && !dealt)
        SC_TRY(predict_suggest(job, x.fast_s, memo, a, &p, err));
    notes(job, &p, &assume, &warn);
    SC_TRY(predict_keep_notes(&assume, &warn, a, &p, err));
    *out = p;
    return SC_OK;
}

sc_status predict_by_segments(const sc_job *job, const sc_hw *hw,
                              const sc_run *of, predict_memo *memo, sc_arena *a,
                              predict_eval *out, sc_err *err)
{
    const sc_model *model = of->model;
    const sc_software *sw = of->sw;
    predict_notes unread = {.arena = a};
    double scale;
    uint32_t tried;
    SC_TRY(marked(job, a, &model, err));
    SC_TRY(change(job, hw, &model, &sw, a, err));
    memo = memo_of(memo, hw, model, &sw, of->cost, NULL, a);
    if (!memo) return sc_error_nomem(err);
    sc_run r = {.hw = hw,
                .model = model,
                .sw = sw,
                .cost = of->cost,
                .strategy = job->tree};
    scale = memo->memory_scale;
    memo->memory_scale = 1;
    sc_status s = predict_infer(job, a, &r, &unread, memo, &tried, err);
    if (s == SC_OK) s = predict_evaluate(&r, 0, INFINITY, memo, out, err);
    memo->memory_scale = scale;
    return s;
}

sc_status predict_samples(sc_job *job, sc_arena *a, sc_run *inout, sc_err *err)
{
    job->document_tokens = packed(job, inout->model, inout->sw);
    SC_TRY(documents(job, a, &inout->model, err));
    SC_TRY(without_padding(job, inout->model, &inout->sw, a, err));
    return marked(job, a, &inout->model, err);
}

sc_status sc_predict(const sc_job *job, const sc_hw *hw, const sc_model *model,
                     const sc_software *sw, const sc_cost *cost, sc_arena *a,
                     sc_prediction *out, sc_err *err)
{
    sc_job own = *job;
    sc_run of = {.hw = hw, .model = model, .sw = sw, .cost = cost};
    SC_TRY(predict_samples(&own, a, &of, err));
    SC_TRY(predict_again(&own, &of, NULL, a, out, err));
    if (!own.brief) SC_TRY(sc_predict_interval(out, a, err));
    if (!own.brief) SC_TRY(predict_anchor_note(out, a, err));
    SC_TRY(predict_purchase(&own, a, out, err));
    double tokens = (double)out->run.gbs * (double)out->run.seq;
    return predict_whole_run(&own, tokens, a, out, err);
}

sc_status sc_predict_job(const sc_job *job, sc_arena *a, sc_prediction *out,
                         sc_err *err)
{
    sc_inputs in = {0};
    SC_TRY(sc_predict_load(job, a, &in, err));
    return sc_predict(job, in.hw, in.model, in.sw, in.cost, a, out, err);
}
