/* SPDX-License-Identifier: Apache-2.0 */
/*
 * megatron_job.c - makes the job that options of Megatron-LM describe.
 *
 * Megatron-LM has a default for every option, so a script decides nearly all
 * fields of the job. Only fields that depend on the number of processes may
 * stay open.
 */
#include "import/megatron.h"

#include <stdio.h>
#include <string.h>

static bool equals(const megatron *m, megatron_id id, const char *text)
{
    return megatron_good(m, id) && strcmp(m->v[id].text, text) == 0;
}

/* Sets a field of the job from an option or its default. */
static sc_status put(megatron *m, const char *key, megatron_id id,
                     int64_t value)
{
    if (m->v[id].given)
        return import_put(m->to, key, (double)value, &m->v[id], NULL);
    const char *text = megatron_default(m, id);
    return text ? import_put(m->to, key, (double)value, NULL, text)
                : sc_error_nomem(m->to->err);
}

/* `given` is the value of option `option` and replaces that of the file; 0:
 * none. */
static void need(megatron *m, megatron_id id, int64_t given, const char *option)
{
    if (m->v[id].given || given > 0) return;
    char hint[80], name[64];
    snprintf(hint, sizeof hint, "add it to the file, or give %s", option);
    import_error(m->to, SC_C_MISSING, sc_pos_file(m->to->file), hint, "no %s",
                 megatron_name(m, id, name));
}

/* ---- parallelism -------------------------------------------------------------------- */

static sc_status virtual_stages(megatron *m)
{
    const import_value *per = &m->v[M_VPP_LAYERS], *v = &m->v[M_VPP];
    sc_job *j = m->to->job;
    if (per->given && v->given)
        import_error(m->to, SC_C_CONFLICT, v->pos, "keep one of them",
                     "%s and %s contradict each other", v->name, per->name);
    int64_t n = megatron_number(m, M_VPP, 1),
            layers = megatron_number(m, M_LAYERS, 0);
    megatron_id id = M_VPP;
    if (megatron_good(m, M_VPP_LAYERS) && layers > 0) {
        int64_t part = j->pp * megatron_number(m, M_VPP_LAYERS, 1);
        id = M_VPP_LAYERS;
        n = layers / part;
        if (layers % part)
            import_error(m->to, SC_C_DIVIDE, per->at, NULL,
                         "%lld layers are not a multiple of pp %lld x %lld",
                         (long long)layers, (long long)j->pp,
                         (long long)(part / j->pp));
    }
    if (j->pp == 1 && n > 1) {
        SC_TRY(import_warn(m->to, m->v[id].pos,
                           "virtual stages without a pipeline are ignored"));
        n = 1;
    }
    SC_TRY(put(m, "vp", id, n < 1 ? 1 : n));
    return put(m, "schedule", id,
               j->vpp > 1 ? SC_SCH_INTERLEAVED : SC_SCH_1F1B);
}

/* Megatron-LM needs equal stages unless one of these options is given. */
static sc_status equal_stages(megatron *m)
{
    static const megatron_id uneven[] = {M_FIRST_STAGE, M_LAST_STAGE, M_LAYOUT,
                                         M_WITH_EMBEDDING, M_WITH_LOSS};
    int64_t layers = megatron_number(m, M_LAYERS, 0);
    bool said = false;
    for (size_t i = 0; i < SC_COUNT(uneven); i++) {
        if (!m->v[uneven[i]].given) continue;
        said = true;
        SC_TRY(import_warn(m->to, m->v[uneven[i]].pos,
                           "%s is not modelled: stages are balanced",
                           m->v[uneven[i]].name));
    }
    if (said || layers == 0 || layers % m->to->job->pp == 0) return SC_OK;
    return import_warn(m->to, m->v[M_PP].given ? m->v[M_PP].at : sc_pos_none(),
                       "Megatron-LM refuses %lld layers on pp %lld, which "
                       "does not divide them",
                       (long long)layers, (long long)m->to->job->pp);
}

static sc_status parallel(megatron *m)
{
    sc_job *j = m->to->job;
    SC_TRY(put(m, "tp", M_TP, megatron_number(m, M_TP, 1)));
    SC_TRY(put(m, "pp", M_PP, megatron_number(m, M_PP, 1)));
    SC_TRY(put(m, "cp", M_CP, megatron_number(m, M_CP, 1)));
    SC_TRY(put(m, "ep", M_EP, megatron_number(m, M_EP, 1)));
    if (m->v[M_SP].given && j->tp == 1 && j->sp == SC_INFER)
        m->v[M_SP].name = "--sequence-parallel (no effect at tp 1)";
    SC_TRY(put(m, "sp", M_SP, m->v[M_SP].given && j->tp > 1));
    SC_TRY(equal_stages(m));
    SC_TRY(virtual_stages(m));
    return import_processes(m->to);
}

/* ---- sharding ----------------------------------------------------------------------- */

static int64_t sharding_stage(megatron *m, megatron_id *id)
{
    static const char *const names[] = {"no_shard", "optim", "optim_grads",
                                        "optim_grads_params", NULL};
    bool fsdp = m->v[M_MFSDP].given || m->v[M_CFSDP].given;
    *id = M_ZERO;
    if (m->v[M_ZERO].given) return megatron_number(m, M_ZERO, 0);
    if (m->v[M_FSDP2].given) {
        *id = M_FSDP2;
        return 3;
    }
    if (fsdp && m->v[M_SHARDING].given) {
        *id = M_SHARDING;
        for (int i = 0; names[i]; i++)
            if (equals(m, M_SHARDING, names[i])) return i;
        import_error(m->to, SC_C_UNKNOWN_NAME, m->v[M_SHARDING].at,
                     "no_shard, optim, optim_grads or optim_grads_params",
                     "%s '%.60s'", m->v[M_SHARDING].name,
                     m->v[M_SHARDING].text);
        return 0;
    }
    if (fsdp) { /* FSDP's default shards nothing */
        *id = m->v[M_MFSDP].given ? M_MFSDP : M_CFSDP;
        return 0;
    }
    *id = M_DIST_OPT;
    return m->v[M_DIST_OPT].given ? 1 : 0;
}

static sc_status sharding(megatron *m)
{
    megatron_id id;
    sc_job *j = m->to->job;
    int64_t zero = sharding_stage(m, &id);
    if (m->v[M_DS_CONFIG].given && !m->v[M_ZERO].given &&
        !import_is_explicit(m->to, "zero"))
        SC_TRY(import_warn(m->to, m->v[M_DS_CONFIG].at,
                           "DeepSpeed reads its ZeRO stage from '%.80s': give "
                           "this file with --from as well, or give --zero",
                           m->v[M_DS_CONFIG].text));
    if (zero == 3 && id != M_ZERO && j->zero == SC_INFER) {
        j->fsdp = true;
        SC_TRY(import_origin(m->to, false, "fsdp", &m->v[id], NULL));
    }
    SC_TRY(put(m, "zero", id, zero));
    return put(m, "overlap-grad-reduce", M_OVERLAP, m->v[M_OVERLAP].given);
}

/* ---- context, experts ------------------------------------------------------------------ */

static sc_status context(megatron *m)
{
    static const struct {
        const char *name;
        int comm;
    } types[] = {{"p2p", SC_CP_RING},
                 {"all_gather", SC_CP_ALLGATHER},
                 {"a2a", SC_CP_ULYSSES},
                 {"a2a+p2p", SC_CP_RING}};

    if (!megatron_good(m, M_CP_COMM)) return SC_OK;
    for (size_t i = 0; i < SC_COUNT(types); i++) {
        if (!equals(m, M_CP_COMM, types[i].name)) continue;
        if (strchr(types[i].name, '+'))
            SC_TRY(
                import_warn(m->to, m->v[M_CP_COMM].at,
                            "a2a+p2p is modelled as p2p over all ranks of cp"));
        return put(m, "cp-comm", M_CP_COMM, types[i].comm);
    }
    import_error(m->to, SC_C_UNKNOWN_NAME, m->v[M_CP_COMM].at,
                 "p2p, all_gather, a2a or a2a+p2p", "%s '%.60s'",
                 m->v[M_CP_COMM].name, m->v[M_CP_COMM].text);
    return SC_OK;
}

/* Experts are split over all ranks of tp, or over none. Without the option the
 * program's profile decides. */
static sc_status expert_parts(megatron *m)
{
    int64_t tp = m->to->job->tp, n = megatron_number(m, M_ETP, tp);
    if (!megatron_good(m, M_ETP)) return SC_OK;
    if (n == 1 || n == tp) return put(m, "etp", M_ETP, n == tp ? 0 : 1);
    import_error(m->to, SC_C_UNSUPPORTED, m->v[M_ETP].at,
                 "1, or the tensor parallel size", "%s %lld at tp %lld",
                 m->v[M_ETP].name, (long long)n, (long long)tp);
    return SC_OK;
}

/* Options that replace what the program's profile says. */
static sc_status overlaps(megatron *m)
{
    if (m->v[M_TP_OVERLAP].given) SC_TRY(put(m, "tp-overlap", M_TP_OVERLAP, 1));
    if (m->v[M_EP_OVERLAP].given) SC_TRY(put(m, "ep-overlap", M_EP_OVERLAP, 1));
    if (m->v[M_OPT_OFFLOAD].given)
        SC_TRY(put(m, "offload-optimizer", M_OPT_OFFLOAD, SC_TIER_CPU));
    return expert_parts(m);
}

/* Tokens beyond the capacity are dropped. If there are fewer, rows are only
 * added with padding. */
static sc_status experts(megatron *m)
{
    sc_job *j = m->to->job;
    if (!megatron_good(m, M_CAPACITY) || j->capacity > 0) return SC_OK;
    double f = m->v[M_CAPACITY].number;
    if (f <= 0 || (f > 1 && !m->v[M_PAD_CAPACITY].given)) return SC_OK;
    j->capacity = f;
    return import_origin(m->to, false, "capacity-factor", &m->v[M_CAPACITY],
                         NULL);
}

/* Several instances of the distributed optimizer: each group of replicas shards
 * its states. */
static sc_status instances(megatron *m)
{
    sc_job *j = m->to->job;
    const import_value *v = &m->v[M_DIST_OPT_N];
    int64_t n = megatron_number(m, M_DIST_OPT_N, 1);
    if (n == 1 || j->hsdp > 0) return SC_OK;
    if (j->dp == 0)
        return import_warn(m->to, v->pos,
                           "the number of processes is not known: give "
                           "--hsdp");
    if (j->dp % n != 0)
        import_error(m->to, SC_C_DIVIDE, v->at, NULL,
                     "%lld does not divide dp %lld", (long long)n,
                     (long long)j->dp);
    else
        j->hsdp = j->dp / n;
    return import_origin(m->to, false, "hsdp", v, NULL);
}

/* ---- precision ------------------------------------------------------------------------ */

/* --fp8-recipe: delayed and tensorwise have one scale for each tensor. */
static int fp8_recipe(megatron *m)
{
    static const struct {
        const char *name;
        int recipe;
    } recipes[] = {{"delayed", SC_RECIPE_FP8},
                   {"tensorwise", SC_RECIPE_FP8},
                   {"blockwise", SC_RECIPE_FP8_BLOCK},
                   {"mxfp8", SC_RECIPE_MXFP8}};

    if (!megatron_good(m, M_FP8_RECIPE)) return SC_RECIPE_FP8;
    for (size_t i = 0; i < SC_COUNT(recipes); i++)
        if (equals(m, M_FP8_RECIPE, recipes[i].name)) return recipes[i].recipe;
    import_error(m->to, SC_C_UNKNOWN_NAME, m->v[M_FP8_RECIPE].at,
                 "delayed, tensorwise, blockwise or mxfp8", "%s '%.60s'",
                 m->v[M_FP8_RECIPE].name, m->v[M_FP8_RECIPE].text);
    return SC_RECIPE_FP8;
}

/* Blocks at both ends whose products stay in bf16. */
static sc_status keep_ends(megatron *m)
{
    sc_job *j = m->to->job;
    int64_t first = megatron_number(m, M_WIDE_START, 1),
            last = megatron_number(m, M_WIDE_END, 1);
    int64_t layers = megatron_number(m, M_LAYERS, 0);
    if (!m->v[M_WIDE_ENDS].given || j->keep_bf16 || layers <= 0) return SC_OK;
    const char *head = first > 0 ? sc_sprintf(m->to->a, "layers.0-%lld",
                                              (long long)(first - 1))
                                 : "";
    const char *tail = last > 0 ? sc_sprintf(m->to->a, "layers.%lld-%lld",
                                             (long long)(layers - last),
                                             (long long)(layers - 1))
                                : "";
    if (!head || !tail) return sc_error_nomem(m->to->err);
    if (!head[0] && !tail[0]) return SC_OK;
    j->keep_bf16 = sc_sprintf(m->to->a, "%s%s%s", head,
                              head[0] && tail[0] ? "," : "", tail);
    if (!j->keep_bf16) return sc_error_nomem(m->to->err);
    return import_origin(m->to, false, "keep-bf16", &m->v[M_WIDE_ENDS], NULL);
}

static sc_status precision(megatron *m)
{
    static const char *const formats[] = {"hybrid", "e4m3", "1", "True", NULL};
    int p = SC_RECIPE_FP32;
    megatron_id id = M_BF16;
    if (m->v[M_BF16].given && m->v[M_FP16].given)
        import_error(m->to, SC_C_CONFLICT, m->v[M_FP16].pos, "keep one of them",
                     "--fp16 and --bf16 contradict each other");
    if (m->v[M_BF16].given) p = SC_RECIPE_BF16;
    if (m->v[M_FP16].given) p = SC_RECIPE_FP16, id = M_FP16;
    if (megatron_good(m, M_FP8)) {
        bool known = false;
        for (const char *const *f = formats; *f; f++)
            known = known || equals(m, M_FP8, *f);
        if (!known)
            import_error(m->to, SC_C_UNKNOWN_NAME, m->v[M_FP8].at,
                         "hybrid or e4m3", "%s '%.60s'", m->v[M_FP8].name,
                         m->v[M_FP8].text);
        id = M_FP8;
        p = fp8_recipe(m);
    }
    if (megatron_good(m, M_FP4)) {
        id = M_FP4;
        p = SC_RECIPE_NVFP4;
    }
    SC_TRY(put(m, "precision", id, p));
    SC_TRY(keep_ends(m));
    if (m->to->job->grad_bytes > 0) return SC_OK;
    /* with bf16, gradients are summed in fp32 by default */
    id = m->v[M_GRAD_BF16].given ? M_GRAD_BF16 : M_GRAD_FP32;
    bool wide = m->v[M_GRAD_FP32].given || !m->v[M_FP16].given;
    m->to->job->grad_bytes = wide && id != M_GRAD_BF16 ? 4 : 2;
    if (m->v[id].given)
        return import_origin(m->to, false, "grad-bytes", &m->v[id], NULL);
    return import_origin(m->to, false, "grad-bytes", NULL,
                         wide ? "default: summed in fp32"
                              : "default with --fp16");
}

/* ---- recomputation, batch -------------------------------------------------------------- */

static sc_status recompute_method(megatron *m)
{
    const import_value *method = &m->v[M_RC_METHOD];
    int found = SC_INFER;
    for (int i = 0; sc_rc_method_names[i]; i++)
        if (equals(m, M_RC_METHOD, sc_rc_method_names[i])) found = i;
    if (method->given && found < 0 && !method->bad)
        import_error(m->to, SC_C_UNKNOWN_NAME, method->at, "uniform or block",
                     "%s '%.60s'", method->name, method->text);
    if (found < 0 || m->to->job->recompute != SC_INFER) return SC_OK;
    SC_TRY(put(m, "recompute-method", M_RC_METHOD, found));
    return put(m, "recompute-num-layers", M_RC_LAYERS,
               megatron_number(m, M_RC_LAYERS, 1));
}

static sc_status recompute(megatron *m)
{
    int rc = SC_RC_NONE;
    megatron_id id = M_RC;
    if (m->v[M_CHECKPOINT].given) rc = SC_RC_FULL, id = M_CHECKPOINT;
    if (m->v[M_RC_ACT].given) rc = SC_RC_SELECTIVE, id = M_RC_ACT;
    if (megatron_good(m, M_RC)) {
        id = M_RC;
        if (equals(m, M_RC, "full")) {
            rc = SC_RC_FULL;
        } else if (equals(m, M_RC, "selective")) {
            rc = SC_RC_SELECTIVE;
        } else {
            import_error(m->to, SC_C_UNKNOWN_NAME, m->v[M_RC].at,
                         "full or selective", "%s '%.60s'", m->v[M_RC].name,
                         m->v[M_RC].text);
        }
    }
    if (rc == SC_RC_FULL) SC_TRY(recompute_method(m));
    if (m->v[M_RC_MODULES].given && rc == SC_RC_SELECTIVE &&
        strcmp(m->v[M_RC_MODULES].text, "core_attn") != 0)
        SC_TRY(import_warn(m->to, m->v[M_RC_MODULES].at,
                           "recomputed modules other than attention are not "
                           "modelled"));
    return put(m, "recompute", id, rc);
}

static sc_status batch(megatron *m)
{
    sc_job *j = m->to->job;
    need(m, M_MBS, m->to->job->mbs, "--micro-batch");
    need(m, M_SEQ, m->to->job->seq, "--seq");
    if (megatron_good(m, M_MBS))
        SC_TRY(put(m, "micro-batch", M_MBS, megatron_number(m, M_MBS, 0)));
    if (megatron_good(m, M_SEQ))
        SC_TRY(put(m, "seq", M_SEQ, megatron_number(m, M_SEQ, 0)));
    if (m->v[M_RAMPUP].given)
        SC_TRY(import_warn(m->to, m->v[M_RAMPUP].pos,
                           "the batch ramps up; a step of the full global "
                           "batch is predicted"));
    if (megatron_good(m, M_GBS))
        return put(m, "global-batch", M_GBS, megatron_number(m, M_GBS, 0));
    if (m->v[M_GBS].given || j->gbs != 0 || j->mbs == 0) return SC_OK;
    if (j->dp == 0)
        return import_warn(m->to, sc_pos_none(),
                           "no --global-batch-size, and the number of "
                           "processes is not known: give --global-batch");
    if (j->dp > (1LL << 40) / j->mbs) return SC_OK;
    j->gbs = j->mbs * j->dp;
    return import_origin(m->to, false, "global-batch", NULL,
                         "default: micro-batch x dp");
}

sc_status megatron_job(megatron *m)
{
    SC_TRY(parallel(m));
    SC_TRY(sharding(m));
    SC_TRY(instances(m));
    SC_TRY(context(m));
    SC_TRY(overlaps(m));
    SC_TRY(experts(m));
    SC_TRY(precision(m));
    SC_TRY(recompute(m));
    return batch(m);
}
