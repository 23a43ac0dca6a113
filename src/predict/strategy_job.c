/* SPDX-License-Identifier: Apache-2.0 */
/*
 * strategy_job.c - copies from a strategy file what options can set too.
 *
 * The file becomes a job of its own with the keys that it gives. That job is
 * merged into the command line's job; both must agree on keys that both give.
 */
#include "predict/predict.h"

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

/* Keys of a strategy file that options set too.  Their fields have the same
 * type, and the same value means "not given". */
static const struct pair {
    const char *key;            /* of sc_job_keys */
    const char *section, *name; /* in the file */
    size_t offset;              /* in sc_strategy */
    bool fills; /* the option fills what the file of a network leaves open */
} pairs[] = {

#define PAIR(key, section, name, field, fills)                  \
    {                                                           \
        key, section, name, offsetof(sc_strategy, field), fills \
    }
    PAIR("model", NULL, "model", model, false),
    PAIR("cluster", NULL, "cluster", cluster, false),
    PAIR("software", NULL, "software", software, false),
    PAIR("precision", NULL, "precision", precision, false),
    PAIR("global-batch", "batch", "global", global, false),
    PAIR("micro-batch", "batch", "micro", micro, false),
    PAIR("seq", "batch", "seq", seq, false),
    PAIR("zero", "preset", "zero", zero, true),
    PAIR("recompute", "preset", "recompute", recompute, true),
    PAIR("recompute-method", "preset", "recompute_method", rc_method, true),
    PAIR("recompute-num-layers", "preset", "recompute_num_layers", rc_blocks,
         true),
    PAIR("cp-comm", "preset", "context_parallel", context_parallel, true),
    PAIR("schedule", "pipeline", "schedule", schedule, true),
    PAIR("schedule-file", "pipeline", "order", schedule_file, false),
    PAIR("vp", "pipeline", "virtual", virtual_stages, true),
    PAIR("overlap-grad-reduce", "overlap", "grad", grad_overlap, true),
    PAIR("offload", "offload", "activations", offload_activations, true),
    PAIR("offload-weights", "offload", "weights", offload_weights, true),
    PAIR("offload-to", "offload", "to", offload_to, true),
    PAIR("offload-optimizer", "offload", "optimizer", optimizer_tier, true),
    PAIR("checkpoint-every", "checkpoint", "every", checkpoint_every, true),
    PAIR("checkpoint-async", "checkpoint", "async", checkpoint_async, true),
#undef PAIR
};

bool sc_strategy_compares(const char *key)
{
    static const char *const keys[] = {"model", "cluster", "software",
                                       "global-batch", "seq"};
    for (size_t i = 0; i < SC_COUNT(keys); i++)
        if (strcmp(keys[i], key) == 0) return true;
    return false;
}

static const sc_key *key_of(const char *name)
{
    const sc_key *k = sc_job_keys;
    while (k->name && strcmp(k->name, name) != 0) k++;
    sc_assert(k->name);
    return k;
}

static void single_keys(said *w)
{
    sc_strategy s = *w->s;
    /* cuts say how many stages a device has */
    s.virtual_stages = sc_strategy_chunks(w->s);
    for (size_t i = 0; i < SC_COUNT(pairs); i++) {
        const struct pair *p = &pairs[i];
        const sc_key *k = key_of(p->key);
        sc_schema_copy_from(k, &s, p->offset, &w->job);
        if (!sc_job_has(&w->job, k)) continue;
        bool cuts = p->offset == offsetof(sc_strategy, virtual_stages) &&
                    !w->s->virtual_stages;
        say(w, p->key, place(w, p->section, cuts ? "cuts" : p->name));
    }
    w->job.tp_overlap = s.tp_overlap;
    /* A mesh is complete: the use of its ranks is not inferred. */
    if (s.tensor_parallel < 0 && s.n_axes == 0) return;
    w->job.sp = s.tensor_parallel == 2;
    say(w, "sp", place(w, "preset", "tensor_parallel"));
}

void sc_job_to_strategy(const sc_job *job, sc_strategy *s)
{
    for (size_t i = 0; i < SC_COUNT(pairs); i++) {
        sc_key k = *key_of(pairs[i].key);
        size_t of_job = k.offset;
        if (!pairs[i].fills || !sc_job_has(job, &k)) continue;
        k.offset = pairs[i].offset;
        sc_schema_copy_from(&k, job, of_job, s);
    }
    if (job->fsdp) s->zero = 3;
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
    single_keys(w);
    degrees(w);
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
