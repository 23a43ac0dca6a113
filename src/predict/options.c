/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options.c - states on which runs an option has an effect: one row for each
 * option that does not act on all. Options that do not apply are errors if they
 * would change a network of operators or its mesh, and warnings otherwise.
 */
#include "predict/net.h"

#include <stdio.h>
#include <string.h>

/* ---- which options apply ------------------------------------------------- */

typedef bool acts_fn(const net_prediction *x, const sc_net_step *step);

static bool never(const net_prediction *x, const sc_net_step *step)
{
    (void)x;
    (void)step;
    return false;
}

/* The strategy defines the mesh, so an option can only repeat it. */
static bool mesh_said(const net_prediction *x, const sc_net_step *step)
{
    (void)step;
    return x->job->tree && x->job->tree->n_axes > 0;
}

static bool mesh_said_or_no_sp(const net_prediction *x, const sc_net_step *step)
{
    return x->job->sp != 1 || mesh_said(x, step);
}

static bool generated(const net_prediction *x, const sc_net_step *step)
{
    (void)step;
    return x->model->net == NULL;
}

static bool replicas(const net_prediction *x, const sc_net_step *step)
{
    (void)step;
    return sc_strategy_replicas(&x->tree) > 1;
}

/* Whether weights are gathered, or data copied from another memory. */
static bool gathers(const net_prediction *x, const sc_net_step *step)
{
    if (x->tree.offload_weights > 0 || x->tree.offload_activations > 0)
        return true;
    for (uint32_t i = 0; i < step->plan.n_exchanges; i++) {
        const sc_net_exchange *e = &step->plan.exchange[i];
        if (!e->grad && e->coll == SC_ALL_GATHER &&
            strcmp(e->tensor, "weight") == 0)
            return true;
    }
    return false;
}

static bool has_cp(const net_prediction *x, const sc_net_step *step)
{
    (void)step;
    return sc_strategy_degree(&x->tree, SC_AX_CP) > 1;
}

static bool has_tp(const net_prediction *x, const sc_net_step *step)
{
    (void)step;
    return sc_strategy_degree(&x->tree, SC_AX_TP) > 1;
}

static bool repeats(const net_prediction *x, const sc_net_step *step)
{
    bool any = x->job->recompute <= SC_RC_NONE;
    for (uint32_t i = 0; i < step->plan.n_rules; i++)
        any = any || step->plan.rule[i]->recompute == 1;
    return any;
}

static bool repeats_blocks(const net_prediction *x, const sc_net_step *step)
{
    for (uint32_t i = 0; i < step->plan.n_rules; i++)
        if (step->plan.rule[i]->rc_group || step->plan.rule[i]->rc_first)
            return true;
    (void)x;
    return false;
}

static bool routes(const net_prediction *x, const sc_net_step *step)
{
    (void)step;
    const sc_net *g = x->net_run.net;
    for (uint32_t i = 0; i < g->n_ops; i++)
        if (g->op[i].topk) return true;
    return false;
}

/* Whether the optimizer, checkpoints or any tensors use `tier` or a slower
 * memory. */
static bool waits(const net_prediction *x, const sc_net_step *step, int tier)
{
    if (x->tree.optimizer_tier >= tier || x->tree.checkpoint_tier >= tier)
        return true;
    for (uint32_t i = 0; i < step->plan.n_rules; i++)
        if (step->plan.rule[i]->tier >= tier) return true;
    return false;
}

static bool host_updates(const net_prediction *x, const sc_net_step *step)
{
    return waits(x, step, SC_TIER_CPU);
}

static bool drives(const net_prediction *x, const sc_net_step *step)
{
    return waits(x, step, SC_TIER_NVME);
}

/* Whether checkpoints are written to a separate storage. */
static bool stores(const net_prediction *x, const sc_net_step *step)
{
    (void)step;
    return (x->tree.checkpoint_every > 0 || x->job->failure_table) &&
           x->tree.checkpoint_tier == SC_TIER_DEVICE;
}

/* Modes that start ready work first, and runs rank by rank, have only one
 * engine. */
static bool has_engines(const net_prediction *x, const sc_net_step *step)
{
    return x->job->engine == SC_ENGINE_EVENT || step->fast;
}

/* ---- runs of transformers ------------------------------------------------ */

static bool splits_products(const sc_job *job, const sc_run *r)
{
    (void)job;
    return r->size[SC_AX_TP] > 1;
}

static bool splits_experts(const sc_job *job, const sc_run *r)
{
    return splits_products(job, r) && r->model->t.experts > 0;
}

static bool has_experts(const sc_job *job, const sc_run *r)
{
    (void)job;
    return r->model->t.experts > 0;
}

static bool sends_tokens(const sc_job *job, const sc_run *r)
{
    (void)job;
    return sc_run_ep(r) > 1;
}

static bool splits_context(const sc_job *job, const sc_run *r)
{
    (void)job;
    return r->size[SC_AX_CP] > 1;
}

static bool orders_passes(const sc_job *job, const sc_run *r)
{
    return job->schedule <= SC_SCH_1F1B || r->size[SC_AX_PP] > 1;
}

static bool repeats_all(const sc_job *job, const sc_run *r)
{
    (void)job;
    return r->recompute == SC_RC_FULL;
}

static bool low_precision(const sc_job *job, const sc_run *r)
{
    (void)job;
    return r->precision >= SC_FP8;
}

static bool sums_gradients(const sc_job *job, const sc_run *r)
{
    (void)job;
    return r->compress.kind == SC_GRAD_PLAIN ||
           sc_run_dp(r) * r->size[SC_AX_CP] > 1;
}

/* ---- the table ----------------------------------------------------------- */

static bool moves_away(const sc_job *job, const sc_run *r)
{
    (void)job;
    return r->offload > 0 || r->offload_weights > 0;
}

static bool fetches(const sc_job *job, const sc_run *r)
{
    return sc_run_shards(r) || moves_away(job, r);
}

static bool spreads(const sc_job *job, const sc_run *r)
{
    (void)job;
    return r->hw->expanded.spread;
}

static bool net_spreads(const net_prediction *x, const sc_net_step *step)
{
    (void)step;
    return x->hw->expanded.spread;
}

typedef struct option {
    const char *key; /* of sc_job_keys */
    /* Whether it has an effect on a transformer's run; NULL: always, or it is
     * an error elsewhere. */
    bool (*acts_on_run)(const sc_job *job, const sc_run *r);
    const char *but;  /* when it has no effect: "at cp 1" */
    acts_fn *acts;    /* whether it has an effect on a network of operators;
                         NULL: always */
    const char *hint; /* hint of the error there; NULL: it is a warning */
} option;

static const char by_rules[] = "write its rules in a --strategy file";
static const char by_mesh[] = "write dp and fsdp as axes of a --strategy file";

static const option options[] = {
    {"tp", NULL, NULL, mesh_said, by_rules},
    {"cp", NULL, NULL, mesh_said, by_rules},
    {"ep", NULL, NULL, mesh_said, by_rules},
    {"hsdp", NULL, NULL, mesh_said, by_mesh},
    {"prefetch", fetches, "below ZeRO-3", gathers, NULL},
    {"tp-overlap", splits_products, "at tp 1", has_tp, NULL},
    {"document-tokens", NULL, NULL, generated, NULL},
    {"mean-tokens", NULL, NULL, generated, NULL},
    {"fine-tune", NULL, NULL, generated, NULL},
    {"etp", splits_experts, "at tp 1 or without experts", routes, NULL},
    {"ep-overlap", sends_tokens, "at ep 1", routes, NULL},
    {"cp-comm", splits_context, "at cp 1", has_cp, NULL},
    {"schedule", orders_passes, "at pp 1", NULL, NULL},
    {"offload-to", moves_away, "if nothing is offloaded", NULL, NULL},
    {"expanded-access", spreads, "without --expanded-fraction", net_spreads,
     NULL},
    {"recompute", NULL, NULL, repeats, NULL},
    {"recompute-method", repeats_all, "without --recompute full",
     repeats_blocks, NULL},
    {"recompute-num-layers", NULL, NULL, repeats_blocks, NULL},
    {"keep-bf16", low_precision, "without a recipe of low precision", never,
     NULL},
    {"fp8-attention", low_precision, "without a recipe of low precision", never,
     NULL},
    {"low-params", low_precision, "without a recipe of low precision", never,
     NULL},
    {"fused-experts", has_experts, "without experts", routes, NULL},
    {"grad-compress", sums_gradients, "at dp 1", replicas, NULL},
    {"freeze", NULL, NULL, generated, "leave it out"},
    {"seq", NULL, NULL, generated, NULL},
    {"sp", NULL, NULL, mesh_said_or_no_sp, NULL},
    {"capacity-factor", NULL, NULL, routes, NULL},
    {"expert-imbalance", NULL, NULL, routes, NULL},
    {"host-mem-bw", NULL, NULL, host_updates, NULL},
    {"nvme-bw", NULL, NULL, drives, NULL},
    {"storage-bw", NULL, NULL, stores, NULL},
    {"engine", NULL, NULL, has_engines, NULL},
};

static const sc_key *key_of(const char *name)
{
    const sc_key *k = sc_job_keys;
    while (k->name && strcmp(k->name, name) != 0) k++;
    return k;
}

/* A degree of 1 divides nothing. */
static bool given(const sc_job *job, const sc_key *k)
{
    const void *field = (const char *)job + k->offset;
    if (!sc_job_has(job, k)) return false;
    return strlen(k->name) > 2 || k->type != SC_T_INT ||
           *(const int64_t *)field > 1;
}

sc_status predict_net_refuse(const net_prediction *x, sc_err *err)
{
    for (size_t i = 0; i < SC_COUNT(options); i++) {
        const option *o = &options[i];
        const sc_key *k = key_of(o->key);
        if (!o->hint || !given(x->job, k) || o->acts(x, NULL)) continue;
        return sc_error(err, SC_EINPUT, SC_C_CONFLICT, sc_pos_file(k->flag),
                        o->hint,
                        "this does not apply to %s, a network of operators",
                        x->model->name);
    }
    return SC_OK;
}

/* Whether results of products are scattered over tp, which their parts can
 * overlap. */
static bool scatters_over_tp(const sc_strategy *s, const sc_net_plan *p)
{
    int tp = sc_strategy_axis(s, SC_AX_TP);
    for (uint32_t i = 0; tp >= 0 && i < p->n_exchanges; i++) {
        const sc_net_exchange *x = &p->exchange[i];
        if (x->coll == SC_REDUCE_SCATTER && !x->grad && x->axes == 1u << tp)
            return true;
    }
    return false;
}

void predict_tp_idle(const sc_strategy *s, predict_notes *warn)
{
    sc_pos at = sc_strategy_pos(s, "overlap", "tp");
    predict_note(warn,
                 "%s:%u:%u: overlap of tp exchanges changes nothing without "
                 "megatron-sp",
                 at.file, at.line, at.col);
}

void predict_net_idle(net_prediction *x, const sc_net_step *step)
{
    const sc_strategy *s = x->job->tree;
    if (s && s->tp_overlap > 0 && !scatters_over_tp(s, &step->plan))
        predict_tp_idle(s, &x->warn);
    for (uint32_t i = 0; i < step->plan.n_idle; i++) {
        const sc_strategy_rule *r = step->plan.idle[i];
        predict_note(&x->warn,
                     "%s:%u:%u: recompute changes nothing: no operator of '%s' "
                     "is recomputed",
                     r->pos.file, r->pos.line, r->pos.col, r->match);
    }
    for (size_t i = 0; i < SC_COUNT(options); i++) {
        const option *o = &options[i];
        const sc_key *k = key_of(o->key);
        char place[120] = "";
        if (o->hint || !o->acts) continue;
        if (!given(x->job, k) || o->acts(x, step)) continue;
        if (s && s->seq && strcmp(o->key, "seq") == 0) {
            sc_pos at = sc_strategy_pos(s, "batch", "seq");
            snprintf(place, sizeof place, "%.80s:%u:%u: ", at.file, at.line,
                     at.col);
        }
        predict_note(&x->warn, "%s%s changes nothing for this network", place,
                     place[0] ? k->name : k->flag);
    }
}

void predict_idle(const sc_job *job, const sc_run *r, predict_notes *warn)
{
    for (size_t i = 0; i < SC_COUNT(options); i++) {
        const option *o = &options[i];
        const sc_key *k = key_of(o->key);
        if (!o->acts_on_run || !sc_job_has(job, k) || o->acts_on_run(job, r))
            continue;
        predict_note(warn, "%s changes nothing %s", k->flag, o->but);
    }
}

bool sc_job_of_program(const sc_key *k)
{
    size_t first = offsetof(sc_job, program);
    return k->offset >= first && k->offset < first + sizeof(sc_program_options);
}

/* Whether an option acts on a network only where its mesh has an axis, which
 * its rules may call otherwise. */
static bool splits_by_axis(acts_fn *acts)
{
    return acts == has_tp || acts == routes;
}

static bool acts_on(const sc_key *k, const sc_job *job, const sc_run *r)
{
    for (size_t i = 0; i < SC_COUNT(options); i++)
        if (options[i].acts_on_run && key_of(options[i].key) == k)
            return options[i].acts_on_run(job, r) &&
                   !(r->model->net && splits_by_axis(options[i].acts));
    return true;
}

void predict_resolve_program(const sc_run *run, sc_job *inout)
{
    const sc_job of_program = {.program = run->sw->program};
    for (const sc_key *k = sc_job_keys; k->name; k++)
        if (sc_job_of_program(k) && acts_on(k, inout, run))
            sc_schema_copy(k, &of_program, inout);
}
