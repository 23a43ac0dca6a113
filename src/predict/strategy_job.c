/* SPDX-License-Identifier: Apache-2.0 */
/*
 * strategy_job.c - copies from a strategy file what options can set too.
 *
 * The file becomes a job of its own with the keys that it gives. That job is
 * merged into the command line's job; both must agree on keys that both give.
 */
#include "predict/predict.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct said {
    const sc_strategy *s;
    sc_job job;
    sc_given given;
    sc_pos at[256]; /* by row of sc_job_keys, as sc_given */
    sc_status status;
} said;

static void say(said *w, const char *key, sc_pos at)
{
    for (uint32_t i = 0; sc_job_keys[i].name; i++) {
        sc_assert(i < SC_COUNT(w->at));
        if (strcmp(sc_job_keys[i].name, key) == 0) w->at[i] = at;
    }
    sc_given_set(&w->given, sc_job_keys, key);
}

static sc_pos place(const said *w, const char *section, const char *key)
{
    return sc_strategy_pos(w->s, section, key);
}

static void say_degree(said *w, const char *key, int64_t *field, uint64_t n,
                       sc_axis axis)
{
    int i = sc_strategy_axis(w->s, axis);
    *field = (int64_t)n;
    say(w, key, i < 0 ? w->s->mesh_pos : w->s->axis[i].pos);
}

/* A mesh is complete: a missing degree is 1. */
static void degrees(said *w)
{
    const sc_strategy *s = w->s;
    if (s->n_axes == 0) return;
    uint64_t tp = sc_strategy_degree(s, SC_AX_TP),
             ep = sc_strategy_degree(s, SC_AX_EP);
    uint64_t dp = sc_strategy_degree(s, SC_AX_DP);
    uint64_t fsdp = sc_strategy_degree(s, SC_AX_FSDP);
    uint64_t rep = sc_strategy_degree(s, SC_AX_REP), all = rep * dp * fsdp * ep;
    bool sharded = sc_strategy_axis(s, SC_AX_FSDP) >= 0;
    sc_axis shards = sharded ? SC_AX_FSDP : SC_AX_DP;
    uint64_t shard = (sharded ? fsdp : dp) * ep;
    bool over = tp > 1 && ep > 1 && ep % tp == 0;
    say_degree(w, "tp", &w->job.tp, tp, SC_AX_TP);
    say_degree(w, "pp", &w->job.pp, sc_strategy_degree(s, SC_AX_PP), SC_AX_PP);
    say_degree(w, "cp", &w->job.cp, sc_strategy_degree(s, SC_AX_CP), SC_AX_CP);
    say_degree(w, "dp", &w->job.dp, all, shards);
    if (ep > 1) /* experts include the ranks of tp if this holds */
        say_degree(w, "ep", &w->job.ep, over ? ep * tp : ep, SC_AX_EP);
    if (shard < all) say_degree(w, "hsdp", &w->job.hsdp, shard, shards);
    if (sharded && s->zero < 0) {
        w->job.zero = 3;
        say(w, "zero", s->axis[sc_strategy_axis(s, SC_AX_FSDP)].pos);
    }
}

static void numbers(said *w)
{
    const sc_strategy *s = w->s;

    const struct {
        const char *key, *section, *name;
        int64_t value, *field;
        int64_t none;
    } rows[] = {
        {"global-batch", "batch", "global", s->global, &w->job.gbs, 0},
        {"micro-batch", "batch", "micro", s->micro, &w->job.mbs, 0},
        {"seq", "batch", "seq", s->seq, &w->job.seq, 0},
        {"vp", "pipeline", s->virtual_stages ? "virtual" : "cuts",
         sc_strategy_chunks(s), &w->job.vpp, 0},
        {"zero", "preset", "zero", s->zero, &w->job.zero, -1},
        {"recompute-num-layers", "preset", "recompute_num_layers", s->rc_blocks,
         &w->job.rc_blocks, 0},
        {"checkpoint-every", "checkpoint", "every", s->checkpoint_every,
         &w->job.checkpoint_every, 0},
    };

    for (size_t i = 0; i < SC_COUNT(rows); i++) {
        if (rows[i].value == rows[i].none) continue;
        *rows[i].field = rows[i].value;
        say(w, rows[i].key, place(w, rows[i].section, rows[i].name));
    }
}

static void choices(said *w)
{
    const sc_strategy *s = w->s;
    const sc_pos none = sc_pos_none();
    /* A mesh is complete: the use of its ranks is not inferred. */
    bool tp = s->tensor_parallel >= 0 || s->n_axes > 0;

    const struct {
        const char *key;
        int value, *field;
        sc_pos at;
    } rows[] = {
        {"recompute", s->recompute, &w->job.recompute,
         place(w, "preset", "recompute")},
        {"recompute-method", s->rc_method, &w->job.rc_method,
         place(w, "preset", "recompute_method")},
        {"schedule", s->schedule, &w->job.schedule,
         place(w, "pipeline", "schedule")},
        {"precision", s->precision, &w->job.precision,
         place(w, NULL, "precision")},
        {"cp-comm", s->context_parallel, &w->job.cp_comm,
         place(w, "preset", "context_parallel")},
        {"sp", tp ? s->tensor_parallel == 2 : SC_INFER, &w->job.sp,
         place(w, "preset", "tensor_parallel")},
        {"overlap-grad-reduce", s->grad_overlap, &w->job.grad_overlap,
         place(w, "overlap", "grad")},
        {"offload-optimizer", s->optimizer_tier, &w->job.optimizer_tier,
         place(w, "offload", "optimizer")},
        {NULL, s->tp_overlap, &w->job.tp_overlap, none},
    };

    for (size_t i = 0; i < SC_COUNT(rows); i++) {
        if (rows[i].value < 0) continue;
        *rows[i].field = rows[i].value;
        if (rows[i].key) say(w, rows[i].key, rows[i].at);
    }
}

static void words(said *w)
{
    const sc_strategy *s = w->s;
    w->job.model = s->model;
    w->job.cluster = s->cluster;
    w->job.software = s->software;
    if (s->model) say(w, "model", s->model_pos);
    if (s->cluster) say(w, "cluster", s->cluster_pos);
    if (s->software) say(w, "software", place(w, NULL, "software"));
    w->job.schedule_file = s->schedule_file;
    if (s->schedule_file)
        say(w, "schedule-file", place(w, "pipeline", "order"));
    w->job.checkpoint_async = s->checkpoint_async;
    if (s->checkpoint_async)
        say(w, "checkpoint-async", place(w, "checkpoint", "async"));
    if (isnan(s->offload_activations)) return;
    w->job.offload = s->offload_activations;
    say(w, "offload", place(w, "offload", "activations"));
}

/* "--tp 4: error: strategy.yml:3:9 says tp 8". */
static void contradiction(said *w, const sc_key *k, const sc_job *job,
                          sc_pos at, sc_arena *a, sc_err *err)
{
    char mine[80], theirs[80];
    sc_schema_print(k, job, mine, sizeof mine);
    sc_schema_print(k, &w->job, theirs, sizeof theirs);
    bool flag = sc_key_is_flag(k);
    bool no = flag && strcmp(mine, "false") == 0;
    const char *option = sc_sprintf(a, "%s%s", no ? "--no-" : "--", k->name);
    if (!option) return;
    sc_status s = sc_error(err, SC_EINPUT, SC_C_CONFLICT,
                           sc_pos_option(a, option, flag ? NULL : mine),
                           "give one of them", "%s:%u:%u gives %s %s", at.file,
                           at.line, at.col, k->name, theirs);
    if (w->status == SC_OK) w->status = s;
}

/* --fsdp is ZeRO 3. */
static void check_fsdp(said *w, const sc_given *given, const sc_job *job,
                       sc_err *err)
{
    if (!given || !sc_given_has(given, sc_job_keys, "fsdp") || !job->fsdp ||
        !sc_given_has(&w->given, sc_job_keys, "zero") || w->job.zero == 3)
        return;
    uint32_t i = 0;
    while (strcmp(sc_job_keys[i].name, "zero") != 0) i++;
    sc_status s =
        sc_error(err, SC_EINPUT, SC_C_CONFLICT, sc_pos_file("--fsdp"),
                 "give one of them", "%s:%u:%u gives zero %lld", w->at[i].file,
                 w->at[i].line, w->at[i].col, (long long)w->job.zero);
    if (w->status == SC_OK) w->status = s;
}

sc_status sc_strategy_to_job(const sc_strategy *s, const sc_given *given,
                             sc_job *job, sc_arena *a, sc_err *err)
{
    said *w = SC_NEW(a, said);
    sc_job out = *job;
    if (!w) return sc_error_nomem(err);
    w->s = s;
    sc_job_init(&w->job);
    degrees(w);
    numbers(w);
    choices(w);
    words(w);
    for (uint32_t i = 0; sc_job_keys[i].name; i++) {
        const sc_key *k = &sc_job_keys[i];
        if (!sc_given_has(&w->given, sc_job_keys, k->name)) continue;
        bool both = given && sc_given_has(given, sc_job_keys, k->name);
        if (!both)
            sc_schema_copy(k, &w->job, &out);
        else if (!sc_schema_same(k, job, &w->job))
            contradiction(w, k, job, w->at[i], a, err);
    }
    check_fsdp(w, given, job, err);
    if (w->status != SC_OK) return w->status;
    if (w->job.tp_overlap >= 0) out.tp_overlap = w->job.tp_overlap;
    *job = out;
    return SC_OK;
}

sc_status sc_strategy_software(const sc_strategy *s, sc_arena *a,
                               const sc_software **sw, sc_err *err)
{
    if (s->grad_bucket <= 0 && s->p2p_overlap < 0) return SC_OK;
    sc_software *own = SC_NEW(a, sc_software);
    if (!own) return sc_error_nomem(err);
    *own = **sw;
    if (s->grad_bucket > 0) own->bucket_bytes = s->grad_bucket;
    if (s->p2p_overlap >= 0) own->p2p_overlap = s->p2p_overlap;
    *sw = own;
    return SC_OK;
}
