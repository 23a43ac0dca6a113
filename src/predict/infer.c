/* SPDX-License-Identifier: Apache-2.0 */
/*
 * infer.c - fills what the user left out: parallelism and micro-batch by the
 * fastest feasible choice, recompute the least that fits, precision the usual
 * one of the device.  The same code serves `predict`, empty cells of truth
 * tables and suggestions; no default depends on where a question came from.
 */
#include "predict/internal.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

void predict_note(predict_notes *n, const char *fmt, ...)
{
    char buf[320];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(buf, sizeof buf, fmt, ap);
    va_end(ap);
    if (n->n < SC_COUNT(n->text)) {
        const char *s = sc_strdup(n->arena, buf);
        if (s) n->text[n->n++] = s;
    }
}

double predict_passes(const sc_run *r)
{
    bool both = sc_run_placement(r) == SC_SCH_DUALPIPE;
    return both ? r->ga / 2.0 : r->ga;
}

/* ---- single values -------------------------------------------------------- */

/* The program's, if the device has it; else the widest fast format. */
static sc_recipe usual_recipe(const sc_device *d, const sc_software *sw)
{
    if (sw->recipe > 0) {
        sc_recipe r = (sc_recipe)(sw->recipe - 1);
        if (d->peak[sc_recipe_precision(r)] > 0) return r;
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

/* About four million tokens a step, as published runs of this size use, at least
 * a sample for eight devices; a multiple of what is odd in their number, so that
 * replicas need not leave a pipeline of three on three nodes. */
static uint64_t usual_batch(const sc_hw *hw, uint64_t seq)
{
    uint64_t odd = hw->n_devices;
    while (odd % 2 == 0) odd /= 2;
    uint64_t n = odd * pow2_below(4194304.0 / (double)seq / (double)odd);
    while (n < hw->n_devices / 8) n *= 2;
    return n;
}

void predict_precision(const sc_job *job, sc_run *r, predict_notes *notes)
{
    const sc_device *d = r->hw->device;
    r->recipe = job->precision >= 0 ? (sc_recipe)job->precision
                                    : usual_recipe(d, r->sw);
    r->precision = sc_recipe_precision(r->recipe);
    if (job->precision < 0)
        predict_note(notes, "precision %s: the usual one of %s",
                     sc_recipe_names[r->recipe],
                     r->sw->recipe ? r->sw->name : d->name);
}

static void settle_values(const sc_job *job, const sc_hw *hw,
                          const sc_model *model, sc_run *r,
                          predict_notes *notes)
{
    predict_precision(job, r, notes);
    r->seq = (uint64_t)job->seq;
    if (!job->seq) {
        r->seq = (uint64_t)(model->t.max_seq > 0 ? model->t.max_seq : 2048);
        if (r->seq > 8192) r->seq = 8192;
        predict_note(notes,
                     "sequence of %llu tokens: the model's length, at "
                     "most 8192",
                     (unsigned long long)r->seq);
    }
    r->gbs = (uint64_t)job->gbs;
    if (!job->gbs) {
        r->gbs = usual_batch(hw, r->seq);
        predict_note(notes, "global batch %llu: about 4 M tokens",
                     (unsigned long long)r->gbs);
    }
    r->capacity = job->capacity;
    r->imbalance = job->imbalance;
    r->forward_only = job->forward_only;
    r->launch_blocking = job->launch_blocking;
    r->numa_unbound = job->numa_unbound;
    r->optim_tier = job->optimizer_tier > 0 ? job->optimizer_tier : 0;
    r->checkpoint_every = (uint32_t)job->checkpoint_every;
    r->checkpoint_async = job->checkpoint_async;
    r->host_mem_bw = job->host_mem_bw;
    r->nvme_bw = job->nvme_bw;
    r->storage_bw = job->storage_bw;
}

static sc_status settle_format(const sc_job *job, sc_run *r, sc_err *err)
{
    char option[80];
    if (!job->compress) return SC_OK;
    snprintf(option, sizeof option, "--grad-compress %.40s", job->compress);
    return sc_compress_read(job->compress, sc_pos_file(option), &r->compress,
                            err);
}

static sc_status settle_schedule(const sc_job *job, sc_arena *a, sc_run *r,
                                 sc_err *err)
{
    if (job->schedule > SC_SCH_INTERLEAVED)
        r->schedule = (sc_schedule)job->schedule;
    if (!job->schedule_file) return SC_OK;
    r->schedule = SC_SCH_FILE;
    return sc_schedule_load(job->schedule_file, a, &r->order, err);
}

/* ---- the space of what is open ---------------------------------------------- */

typedef struct space {
    const sc_job *job;
    sc_run base;
    sc_arena *a;
    predict_eval best;  /* fastest that fits with room to spare */
    predict_eval tight; /* fastest that fits */
    predict_eval least; /* smallest of all */
    bool have_best, have_tight, have_least;
    bool wide; /* experts over nodes, stages of unequal length as well */
    uint32_t tried;
    predict_memo *memo;
    sc_err *err, refused; /* why the first illegal choice was refused */
} space;

static bool wanted(int64_t given, uint64_t value)
{
    return given == 0 || (uint64_t)given == value;
}

static int default_zero(const sc_run *r)
{
    if (r->compress.kind >= SC_GRAD_TOPK) return 0; /* sums whole gradients */
    if (r->sw->zero >= 0) return sc_run_dp(r) > 1 ? (int)r->sw->zero : 0;
    return sc_run_dp(r) > 1 && r->sw->grad_overlap ? 1 : 0;
}

static bool open_choice(const sc_job *j)
{
    return !j->tp || !j->pp || !j->mbs || j->recompute < 0;
}

static sc_status try_one(space *x, const sc_run *r, bool *done)
{
    predict_eval e;
    double beat = x->have_best ? x->best.step_s : INFINITY;
    sc_err why;
    sc_err_init(&why);
    sc_status s = predict_evaluate(r, beat, x->memo, &e, &why);
    if (s == SC_EINPUT) { /* another choice may be legal */
        if (!x->refused.n) x->refused = why;
        *done = true;
        return SC_OK;
    }
    if (s != SC_OK) {
        *x->err = why;
        return s;
    }
    x->tried++;
    if (!x->have_least || e.peak < x->least.peak) x->least = e;
    x->have_least = true;
    if (!e.fits) return SC_OK;
    /* Choices of ours leave 5 % for what the formulas do not know. */
    if (open_choice(x->job) && e.full > 0.95) {
        if (!x->have_tight || e.step_s < x->tight.step_s) x->tight = e;
        x->have_tight = true;
        return SC_OK;
    }
    if (!x->have_best || e.step_s < x->best.step_s) x->best = e;
    x->have_best = true;
    *done = true;
    return SC_OK;
}

/* Above what PCIe gives (64 GB/s): NVLink-C2C and its like. */
static const double coherent_link = 100e9;

/* Activations that wait in host memory, the least share that fits, where the
 * program can, nothing is made again, and the link is made for it. */
static sc_status try_offload(space *x, sc_run r)
{
    bool open = x->job->offload < 0 && r.sw->offload && !r.forward_only &&
                r.size[SC_AX_PP] == 1 && r.recompute == SC_RC_NONE &&
                r.hw->device->host_bw >= coherent_link;
    bool done = false;
    for (int i = 1; open && i <= 8 && !done; i++) {
        r.offload = i / 8.0;
        SC_TRY(try_one(x, &r, &done));
    }
    return SC_OK;
}

/* The least recomputation that fits. */
static sc_status try_recompute(space *x, sc_run r)
{
    int given = x->job->recompute;
    int lo = given >= 0 ? given : SC_RC_NONE;
    int hi = given >= 0 || r.forward_only ? lo : SC_RC_FULL;
    bool done = false;
    for (int rc = lo; rc <= hi && !done; rc++) {
        r.recompute = (sc_recompute)rc;
        r.offload = fmax(0, x->job->offload);
        SC_TRY(try_one(x, &r, &done));
        if (!done) SC_TRY(try_offload(x, r));
    }
    return SC_OK;
}

static bool chunks_legal(const space *x, const sc_run *r, uint32_t vpp)
{
    uint32_t pp = r->size[SC_AX_PP];
    uint64_t layers = (uint64_t)r->model->t.layers;
    if (!wanted(x->job->vpp, vpp)) return false;
    if (vpp == 1)
        return x->job->schedule != SC_SCH_INTERLEAVED || x->job->vpp == 1;
    if (x->job->schedule >= 0 && x->job->schedule != SC_SCH_INTERLEAVED)
        return false;
    if (pp < 2) return false;
    bool whole = layers % ((uint64_t)pp * vpp) == 0 ||
                 (layers + 2) % ((uint64_t)pp * vpp) == 0;
    bool own = r->ga % pp == 0 ||
               (x->job->vpp > 0 && sc_schedule_rounds(r->sw, pp, r->ga));
    return own && (whole || x->job->vpp > 0) &&
           (uint64_t)pp * vpp <= layers + 2;
}

/* Some programs cut the batch into as many micro-batches as stages. */
static bool usual_batches(const space *x, const sc_run *r, uint32_t vpp)
{
    uint32_t stages = r->size[SC_AX_PP] * vpp;
    bool open = r->sw->stage_batches && !x->job->mbs && stages > 1;
    return !open || r->ga == stages;
}

/* Schedules with a number of chunks of their own. */
static sc_status try_own(space *x, sc_run r)
{
    r.vpp = r.order ? r.order->vpp : r.schedule == SC_SCH_ZB_V ? 2 : 1;
    return try_recompute(x, r);
}

/* Given, and one that any number of devices can run. */
static bool plain(const sc_job *job)
{
    return job->schedule >= 0 && job->schedule <= SC_SCH_INTERLEAVED;
}

static sc_status try_chunks(space *x, sc_run r)
{
    static const uint32_t chunks[] = {1, 2, 3, 4, 5, 6, 8};
    uint32_t given = (uint32_t)x->job->vpp;
    if (r.schedule > SC_SCH_INTERLEAVED && r.size[SC_AX_PP] > 1)
        return try_own(x, r);
    for (size_t i = 0; i < SC_COUNT(chunks); i++) {
        uint32_t vpp = given ? given : chunks[i];
        if (given && i > 0) break;
        /* a given pipeline that can't run is for the checks to explain */
        if (!(given && x->job->pp) && !chunks_legal(x, &r, vpp)) continue;
        if (!usual_batches(x, &r, vpp)) continue;
        r.vpp = vpp;
        r.schedule = vpp > 1         ? SC_SCH_INTERLEAVED
                     : plain(x->job) ? (sc_schedule)x->job->schedule
                                     : SC_SCH_1F1B;
        r.order = NULL;
        SC_TRY(try_recompute(x, r));
    }
    return SC_OK;
}

static sc_status try_micro_batches(space *x, sc_run r)
{
    uint64_t replicas = sc_run_dp(&r);
    uint64_t per = r.gbs / replicas;
    if (r.gbs % replicas != 0) {
        if (x->job->mbs || x->job->dp) { /* let the checks say why */
            r.mbs = x->job->mbs ? (uint64_t)x->job->mbs : 1;
            r.ga = 1;
            r.vpp = 1;
            return try_recompute(x, r);
        }
        return SC_OK;
    }
    for (uint64_t mbs = 1; mbs <= 16 && mbs <= per; mbs *= 2) {
        uint64_t m = x->job->mbs ? (uint64_t)x->job->mbs : mbs;
        if (per % m != 0 && !x->job->mbs) continue;
        r.mbs = m;
        r.ga = (uint32_t)(per / m ? per / m : 1);
        SC_TRY(try_chunks(x, r));
        if (x->job->mbs) break;
    }
    return SC_OK;
}

static bool tp_legal(const space *x, uint64_t tp)
{
    const sc_transformer *t = &x->base.model->t;
    if (x->job->tp) return (uint64_t)x->job->tp == tp;
    return tp <= x->base.hw->node_size && (uint64_t)t->heads % tp == 0 &&
           (uint64_t)t->ffn % tp == 0;
}

static bool pp_legal(const space *x, uint64_t pp)
{
    uint64_t layers = (uint64_t)x->base.model->t.layers;
    if (x->job->pp) return (uint64_t)x->job->pp == pp;
    if (x->base.sw->no_pipeline) return pp == 1;
    return pp <= layers && pp <= 64 &&
           (x->wide || layers % pp == 0 || (layers + 2) % pp == 0);
}

/* Kept for the case that no choice is left. */
static sc_status refuse_experts(space *x, uint64_t tp, uint64_t dp)
{
    char option[32];
    snprintf(option, sizeof option, "--ep %lld", (long long)x->job->ep);
    if (x->refused.n == 0)
        (void)sc_error(&x->refused, SC_EINPUT, SC_C_DIVIDE, sc_pos_file(option),
                       "ep divides dp, or is a multiple of tp that divides "
                       "dp x tp",
                       "no group of %lld ranks with dp %llu and tp %llu",
                       (long long)x->job->ep, (unsigned long long)dp,
                       (unsigned long long)tp);
    return SC_OK;
}

static sc_status refuse_groups(space *x, uint64_t dp)
{
    char option[40];
    snprintf(option, sizeof option, "--hsdp %lld", (long long)x->job->hsdp);
    if (x->refused.n == 0)
        (void)sc_error(&x->refused, SC_EINPUT, SC_C_DIVIDE, sc_pos_file(option),
                       "groups of equal size, for example the ranks of a node",
                       "%lld does not divide dp %llu", (long long)x->job->hsdp,
                       (unsigned long long)dp);
    return SC_OK;
}

/* Ranks of dp among `ep` that share the experts; 0: no such group.  They take
 * in the ranks of tp first where they are a multiple of them, as those of
 * Megatron-Core's whole experts do. */
static uint64_t expert_axis(uint64_t ep, uint64_t tp, uint64_t dp, bool *over)
{
    *over = tp > 1 && ep > 1 && ep % tp == 0 && dp % (ep / tp) == 0;
    uint64_t axis = *over ? ep / tp : ep;
    return dp % axis == 0 ? axis : 0;
}

/* Given, or as many ranks of one node as can; any number in the wide search. */
static sc_status try_experts(space *x, sc_run r, uint64_t tp, uint64_t dp)
{
    uint64_t experts = (uint64_t)r.model->t.experts;
    uint64_t given = (uint64_t)x->job->ep, ep = given ? given : 1, axis;
    uint64_t shard = x->job->hsdp ? (uint64_t)x->job->hsdp : dp;
    if (dp % shard != 0) return refuse_groups(x, dp);
    for (uint64_t e = 2; !given && e <= r.hw->node_size; e++)
        if (experts && experts % e == 0 &&
            expert_axis(e, tp, shard, &r.experts_over_tp))
            ep = e;
    while ((axis = expert_axis(ep, tp, shard, &r.experts_over_tp))) {
        r.size[SC_AX_EP] = (uint32_t)axis;
        r.size[SC_AX_DP] = (uint32_t)(shard / axis);
        r.size[SC_AX_REP] = (uint32_t)(dp / shard);
        SC_TRY(try_micro_batches(x, r));
        ep *= 2;
        if (!x->wide || given || !experts || experts % ep != 0) return SC_OK;
    }
    return given ? refuse_experts(x, tp, shard) : SC_OK;
}

static sc_status try_mesh(space *x, uint64_t tp, uint64_t pp)
{
    uint64_t n = x->base.hw->n_devices;
    uint64_t cp = x->job->cp ? (uint64_t)x->job->cp : 1;
    uint64_t inner = tp * pp * cp;
    uint64_t dp = x->job->dp ? (uint64_t)x->job->dp : n / inner;
    bool closed = x->job->tp && x->job->pp;
    if ((dp == 0 || dp * inner != n) && !closed) return SC_OK;
    if (dp == 0) dp = 1;
    sc_run r = x->base;
    r.size[SC_AX_TP] = (uint32_t)tp;
    r.size[SC_AX_PP] = (uint32_t)pp;
    r.size[SC_AX_CP] = (uint32_t)cp;
    r.size[SC_AX_EP] = 1;
    r.size[SC_AX_DP] = (uint32_t)dp;
    r.sp = x->job->sp >= 0 ? x->job->sp : tp > 1;
    r.zero = x->job->fsdp        ? 3
             : x->job->zero >= 0 ? (int)x->job->zero
             : x->job->hsdp      ? 3
                                 : default_zero(&r);
    return try_experts(x, r, tp, dp);
}

static sc_status search(space *x)
{
    uint64_t n = x->base.hw->n_devices;
    uint64_t max_tp = x->job->tp ? (uint64_t)x->job->tp : n;
    uint64_t max_pp = x->job->pp ? (uint64_t)x->job->pp : n;
    if (!x->job->tp && max_tp > x->base.hw->node_size)
        max_tp = x->base.hw->node_size;
    if (!x->job->pp && max_pp > 64) max_pp = 64;
    for (uint64_t tp = x->job->tp ? max_tp : 1; tp <= max_tp; tp++) {
        if (!tp_legal(x, tp) || (!x->job->tp && n % tp != 0)) continue;
        for (uint64_t pp = x->job->pp ? max_pp : 1; pp <= max_pp; pp++) {
            if (!pp_legal(x, pp) || (!x->job->pp && n % (tp * pp) != 0))
                continue;
            SC_TRY(try_mesh(x, tp, pp));
        }
    }
    return SC_OK;
}

static void note_choice(const sc_job *job, const sc_run *r, bool fits,
                        predict_notes *notes)
{
    const char *how = fits ? "the fastest that fits" : "needs the least memory";
    if (!job->tp || !job->pp || (!job->dp && !(job->tp && job->pp)))
        predict_note(notes, "tp %u, pp %u, dp %u: %s", r->size[SC_AX_TP],
                     r->size[SC_AX_PP], sc_run_dp(r), how);
    if (!job->ep && r->model->t.experts)
        predict_note(notes, "ep %u: %s", sc_run_ep(r),
                     sc_run_ep(r) > r->hw->node_size ? how : "within one node");
    if (!job->mbs)
        predict_note(notes, "micro-batch %llu: %s", (unsigned long long)r->mbs,
                     how);
    if (!job->vpp && r->size[SC_AX_PP] > 1 && r->schedule <= SC_SCH_INTERLEAVED)
        predict_note(notes, "virtual stages %u: %s", r->vpp, how);
    if (job->recompute < 0)
        predict_note(notes, "recompute %s: %s",
                     sc_recompute_names[r->recompute],
                     fits ? "the least that fits" : how);
    if (job->offload < 0 && r->offload > 0)
        predict_note(notes,
                     "%.4g %% of the activations wait in host memory: else "
                     "they do not fit, and it is faster than recomputing",
                     100 * r->offload);
    if (job->zero < 0 && !job->fsdp && !job->hsdp && sc_run_dp(r) > 1)
        predict_note(notes, "ZeRO stage %d: usual with %s", r->zero,
                     r->sw->name);
    if (job->sp < 0 && r->size[SC_AX_TP] > 1)
        predict_note(notes, "sequence parallelism: on where tp > 1");
}

static bool all_given(const sc_job *j, const sc_hw *hw)
{
    return j->tp && j->pp && j->mbs && j->recompute >= 0 &&
           (j->vpp || j->pp == 1 ||
            (j->schedule >= 0 && j->schedule != SC_SCH_INTERLEAVED)) &&
           hw != NULL;
}

sc_status predict_infer(const sc_job *job, sc_arena *a, sc_run *run,
                        predict_notes *notes, predict_memo *memo,
                        uint32_t *n_tried, sc_err *err)
{
    const sc_hw *hw = run->hw;
    const sc_model *model = run->model;
    space x = {.job = job, .a = a, .memo = memo, .err = err};
    sc_err_init(&x.refused);
    x.base = (sc_run){.hw = hw,
                      .model = model,
                      .sw = run->sw,
                      .cost = run->cost,
                      .vpp = 1,
                      .strategy = run->strategy};
    settle_values(job, hw, model, &x.base, notes);
    SC_TRY(settle_format(job, &x.base, err));
    SC_TRY(settle_schedule(job, a, &x.base, err));
    SC_TRY(search(&x));
    /* Nothing fits: what one would rather not do. */
    x.wide = !x.have_best && !x.have_tight && (!job->pp || !job->ep);
    if (x.wide) SC_TRY(search(&x));
    *n_tried = x.tried;
    if (!x.have_least && x.refused.n) {
        *err = x.refused;
        return SC_EINPUT;
    }
    if (!x.have_least)
        return sc_error(err, SC_EINPUT, SC_C_CONFLICT, sc_pos_none(),
                        "change the number of devices, the global batch or a "
                        "given degree",
                        "no legal choice of parallelism: %u devices, global "
                        "batch %llu, %lld layers, %lld heads",
                        hw->n_devices, (unsigned long long)x.base.gbs,
                        (long long)model->t.layers, (long long)model->t.heads);
    *run = x.have_best ? x.best.run : x.have_tight ? x.tight.run : x.least.run;
    if (!all_given(job, hw) || x.tried > 1)
        note_choice(job, run, x.have_best || x.have_tight, notes);
    return SC_OK;
}
