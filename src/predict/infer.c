/* SPDX-License-Identifier: Apache-2.0 */
/*
 * infer.c - fills what the user left out: the fastest feasible parallelism and
 * micro-batch (space.c), the least recomputation that fits, and the device's
 * usual precision. Predictions, empty cells of truth tables and suggestions
 * share this code, so that all have the same defaults.
 */
#include "hw/hw_arch.h"
#include "predict/space.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

void predict_note(predict_notes *n, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    const char *text = sc_vsprintf(n->arena, fmt, ap);
    va_end(ap);
    const char **all =
        sc_grow(n->arena, n->text, n->n, &n->cap, 16, sizeof *all);
    if (all) n->text = all;
    if (all && text)
        all[n->n++] = text;
    else
        n->failed = true;
}

double predict_passes(const sc_run *r)
{
    bool both = sc_run_placement(r) == SC_SCH_DUALPIPE;
    return both ? r->ga / 2.0 : r->ga;
}

/* ---- single values ------------------------------------------------------- */

/* The program's recipe if the device supports it, else the widest fast format.
 * Ada has units for 8 bits, but the usual configurations use them only from
 * Hopper on (MLPerf submissions of BERT; NeMo's recipes). */
static sc_recipe usual_recipe(const sc_device *d, const sc_software *sw)
{
    if (sw->recipe > 0) {
        sc_recipe r = (sc_recipe)(sw->recipe - 1);
        bool low = sc_recipe_precision(r) >= SC_FP8;
        bool ada = sc_arch_of(d->arch)->fit == SC_FIT_ADA;
        if (d->peak[sc_recipe_precision(r)] > 0 && !(low && ada)) return r;
    }
    if (d->peak[SC_BF16] > 0) return SC_RECIPE_BF16;
    if (d->peak[SC_FP16] > 0) return SC_RECIPE_FP16;
    return SC_RECIPE_FP32;
}

static uint64_t pow2_below(double x)
{
    uint64_t n = 1;
    while ((double)(2 * n) <= x) n *= 2;
    return n;
}

/* About four million tokens, as in published runs of this size, and at least
 * one sample for eight devices. It is a multiple of the odd part of their
 * number, so that replicas divide it (a pipeline of three stages on three
 * nodes). */
static uint64_t usual_batch(const sc_hw *hw, uint64_t seq)
{
    uint64_t odd = hw->n_devices;
    while (odd % 2 == 0) odd /= 2;
    uint64_t n = odd * pow2_below(4194304.0 / (double)seq / (double)odd);
    while (n < hw->n_devices / 8) n *= 2;
    return n;
}

bool predict_states_open(const sc_job *job)
{
    return job->optimizer_tier < 0;
}

void predict_precision(const sc_job *job, sc_run *r, predict_notes *notes)
{
    const sc_device *d = r->hw->device;
    r->recipe = job->precision >= 0 ? (sc_recipe)job->precision
                                    : usual_recipe(d, r->sw);
    r->precision = sc_recipe_precision(r->recipe);
    if (job->precision < 0)
        predict_note(notes, "precision %s: usual on %s",
                     sc_recipe_names[r->recipe],
                     r->sw->recipe ? r->sw->name : d->name);
}

static void resolve_values(const sc_job *job, const sc_hw *hw,
                           const sc_model *model, sc_run *r,
                           predict_notes *notes)
{
    predict_precision(job, r, notes);
    r->seq = (uint64_t)job->seq;
    if (!job->seq) {
        r->seq = (uint64_t)(model->t.max_seq > 0 ? model->t.max_seq : 2048);
        if (r->seq > 8192) r->seq = 8192;
        predict_note(notes,
                     "sequence of %llu tokens: the model's maximum, but at "
                     "most 8192",
                     (unsigned long long)r->seq);
    }
    r->gbs = (uint64_t)job->gbs;
    if (!job->gbs) {
        r->gbs = usual_batch(hw, r->seq);
        predict_note(notes, "global batch %llu: about 4 million tokens",
                     (unsigned long long)r->gbs);
    }
    uint32_t blocks = job->rc_blocks ? (uint32_t)job->rc_blocks : 1;
    r->rc_group = job->rc_method == SC_RCM_UNIFORM ? blocks : 0;
    r->rc_first = job->rc_method == SC_RCM_BLOCK ? blocks : 0;
    r->opts = job->opts;
    r->optim_tier = job->optimizer_tier > 0 ? job->optimizer_tier : 0;
    r->checkpoint_every = (uint32_t)job->checkpoint_every;
    r->checkpoint_async = job->checkpoint_async;
}

sc_status predict_format(const sc_job *job, sc_run *r, sc_err *err)
{
    char option[80];
    if (!job->compress) return SC_OK;
    snprintf(option, sizeof option, "--grad-compress %.40s", job->compress);
    return sc_compress_read(job->compress, sc_pos_file(option), &r->compress,
                            err);
}

static sc_status resolve_schedule(const sc_job *job, sc_arena *a, sc_run *r,
                                  sc_err *err)
{
    if (job->schedule > SC_SCH_INTERLEAVED)
        r->schedule = (sc_schedule)job->schedule;
    if (!job->schedule_file) return SC_OK;
    r->schedule = SC_SCH_FILE;
    return sc_schedule_load(job->schedule_file, a, &r->order, err);
}

/* ---- notes on choices ---------------------------------------------------- */

static void note_sharding(const sc_job *job, const sc_run *r, const char *how,
                          predict_notes *notes)
{
    uint32_t levels = predict_law_of(job, r->sw).zero_stages;
    if (job->zero >= 0 || job->fsdp || sc_run_dp(r) == 1) return;
    if (levels == 1u << r->zero)
        predict_note(notes, "ZeRO stage %d: the only one of %s", r->zero,
                     r->sw->name);
    else
        predict_note(notes, "ZeRO stage %d: %s", r->zero, how);
}

static void note_degrees(const sc_job *job, const sc_run *r, const char *how,
                         predict_notes *notes)
{
    if (!job->tp || !job->pp || (!job->dp && !(job->tp && job->pp)))
        predict_note(notes, "tp %u%s, pp %u%s, dp %u%s: %s", r->size[SC_AX_TP],
                     job->tp ? " (given)" : "", r->size[SC_AX_PP],
                     job->pp ? " (given)" : "", sc_run_dp(r),
                     job->dp ? " (given)" : "", how);
    if (!job->cp && r->size[SC_AX_CP] > 1)
        predict_note(notes, "cp %u, %s: %s", r->size[SC_AX_CP],
                     sc_cp_comm_names[r->sw->cp_comm], how);
    if (!job->ep && r->model->t.experts)
        predict_note(notes, "ep %u: %s", sc_run_ep(r),
                     sc_run_ep(r) > r->hw->node_size ? how : "within one node");
}

static bool expands(const sc_run *r)
{
    return sc_run_offload_tier(r) == SC_TIER_EXPANDED ||
           r->optim_tier == SC_TIER_EXPANDED;
}

static void note_choice(const sc_job *job, const sc_run *r,
                        const predict_choice *c, predict_notes *notes)
{
    bool fits = c->have_best || c->have_tight, pipeline = r->size[SC_AX_PP] > 1;
    const char *how = fits ? "the fastest that fits" : "needs the least memory";
    note_degrees(job, r, how, notes);
    if (!job->mbs && job->accumulation)
        predict_note(notes, "micro-batch %llu: gives %u per step (given)",
                     (unsigned long long)r->mbs, r->ga);
    else if (!job->mbs && c->habit)
        predict_note(notes,
                     "micro-batch %llu: gives as many micro-batches as stages, "
                     "as is usual with %s",
                     (unsigned long long)r->mbs, r->sw->name);
    else if (!job->mbs)
        predict_note(notes, "micro-batch %llu: %s", (unsigned long long)r->mbs,
                     how);
    if (!job->vpp && pipeline && r->schedule <= SC_SCH_INTERLEAVED)
        predict_note(notes, "virtual stages %u: %s", r->vpp, how);
    if (job->schedule < 0 && pipeline && r->schedule > SC_SCH_INTERLEAVED)
        predict_note(notes, "schedule %s: %s", sc_schedule_names[r->schedule],
                     how);
    if (job->recompute < 0)
        predict_note(notes, "recompute %s: %s",
                     sc_recompute_names[r->recompute],
                     fits ? "the least recomputation that fits" : how);
    if (job->offload < 0 && expands(r))
        predict_note(notes,
                     "expanded memory keeps %s%.4g %% of the saved activations "
                     "and %.4g %% of the weights: what does not fit, least "
                     "often used bytes first",
                     r->optim_tier == SC_TIER_EXPANDED ? "optimizer states, "
                                                       : "",
                     100 * r->offload, 100 * r->offload_weights);
    else if (job->offload < 0 && r->offload > 0)
        predict_note(
            notes,
            "%.4g %% of the saved activations are kept in host memory: "
            "otherwise they do not fit, and recomputation would be "
            "slower",
            100 * r->offload);
    note_sharding(job, r, how, notes);
    if (job->sp < 0 && r->sp)
        predict_note(notes, "sequence parallelism: on because tp > 1");
    if (c->have_best && c->have_tight && c->tight.step_s < c->best.step_s)
        predict_note(notes,
                     "%.2g %% of the memory is kept free; without this reserve "
                     "a step could take %.2g %% less time",
                     100 * PREDICT_FREE,
                     100 * (1 - c->tight.step_s / c->best.step_s));
}

static bool all_given(const sc_job *j)
{
    return j->tp && j->pp && (j->mbs || j->accumulation) && j->recompute >= 0 &&
           (j->vpp || j->pp == 1 ||
            (j->schedule >= 0 && j->schedule != SC_SCH_INTERLEAVED));
}

sc_status predict_base(const sc_job *job, sc_arena *a, sc_run *base,
                       predict_notes *notes, sc_err *err)
{
    base->vpp = 1;
    resolve_values(job, base->hw, base->model, base, notes);
    SC_TRY(predict_format(job, base, err));
    return resolve_schedule(job, a, base, err);
}

sc_status predict_infer(const sc_job *job, sc_arena *a, sc_run *run,
                        predict_notes *notes, predict_memo *memo,
                        uint32_t *n_tried, sc_err *err)
{
    predict_choice *c = SC_NEW(a, predict_choice);
    sc_run base = {.hw = run->hw,
                   .model = run->model,
                   .sw = run->sw,
                   .cost = run->cost,
                   .strategy = run->strategy};
    if (!c) return sc_error_nomem(err);
    SC_TRY(predict_base(job, a, &base, notes, err));
    SC_TRY(predict_search(job, &base, memo, a, c, err));
    *n_tried = c->tried;
    if (!memo->variant) {
        memo->searched = c->have_best && c->tried > 1;
        memo->best = c->best.run;
    }
    *run = c->have_best    ? c->best.run
           : c->have_tight ? c->tight.run
                           : c->least.run;
    if (!all_given(job) || c->tried > 1) note_choice(job, run, c, notes);
    return SC_OK;
}
