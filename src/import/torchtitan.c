/* SPDX-License-Identifier: Apache-2.0 */
/* torchtitan.c - reads configurations of torchtitan (TOML) of 2024 and 2025. */
#include "import/fsdp.h"
#include "import/keys.h"
#include "import/models.h"
#include "import/readers.h"
#include "import/toml.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

typedef enum titan_id {
    T_MODEL,
    T_FLAVOR,
    T_CONVERTERS,
    T_SEQ,
    T_LOCAL_BATCH,
    T_BATCH,
    T_GBS,
    T_PARAM,
    T_REDUCE,
    T_COMPILE,
    T_COMPILE_NEW,
    T_REPLICATE,
    T_SHARD,
    T_DP_OLD,
    T_RESHARD,
    T_TP,
    T_PP,
    T_CP,
    T_ROTATE,
    T_EP,
    T_SCHEDULE,
    T_SPLIT,
    T_STAGE_LAYERS,
    T_PASSES,
    T_PP_MBS,
    T_PP_PARTS,
    T_AC,
    T_AC_OPTION,
    T_FP8_OLD,
    T_FP8_LINEAR,
    T_FP8_RECIPE,
    T_MX_RECIPE,
    T_OFFLOAD,
    T_N
} titan_id;

#define P   "parallelism."
#define OLD "experimental."
#define DEG (1 << 20)

static const import_key keys[] = {
    IMPORT_K_HARMLESS("job"),
    IMPORT_K_HARMLESS("profiling"),
    IMPORT_K_HARMLESS("metrics"),
    IMPORT_K_HARMLESS("checkpoint"),
    IMPORT_K_HARMLESS("lr_scheduler"),
    IMPORT_K_HARMLESS("comm"),
    IMPORT_K_HARMLESS("memory_estimation"),
    IMPORT_K_HARMLESS("debug"),
    IMPORT_K_REPORTED("fault_tolerance"),
    IMPORT_K_REPORTED("validation"),
    IMPORT_K_WORD("model.name", T_MODEL),
    IMPORT_K_WORD("model.flavor", T_FLAVOR),
    IMPORT_K_NODE("model.converters", T_CONVERTERS),
    IMPORT_K_REPORTED("model.norm_type"),
    IMPORT_K_HARMLESS("model.tokenizer_path"),
    IMPORT_K_HARMLESS("model.hf_assets_path"),
    IMPORT_K_HARMLESS("model.print_after_conversion"),
    IMPORT_K_REPORTED("optimizer.early_step_in_backward"),
    IMPORT_K_HARMLESS("optimizer.*"),
    IMPORT_K_INT("training.seq_len", T_SEQ, 1, 1 << 30),
    IMPORT_K_INT("training.local_batch_size", T_LOCAL_BATCH, 1, 1 << 24),
    IMPORT_K_INT("training.batch_size", T_BATCH, 1, 1 << 24),
    IMPORT_K_INT("training.global_batch_size", T_GBS, -1, 1LL << 40),
    IMPORT_K_WORD("training.mixed_precision_param", T_PARAM),
    IMPORT_K_WORD("training.mixed_precision_reduce", T_REDUCE),
    IMPORT_K_WORD("training.dtype", T_PARAM),
    IMPORT_K_BOOL("training.compile", T_COMPILE),
    IMPORT_K_BOOL("training.enable_cpu_offload", T_OFFLOAD),
    IMPORT_K_BOOL("training.fp8_linear", T_FP8_OLD),
    IMPORT_K_BOOL("training.enable_fp8_linear", T_FP8_OLD),
    IMPORT_K_INT("training.data_parallel_degree", T_DP_OLD, -1, DEG),
    IMPORT_K_INT("training.data_parallel_replicate_degree", T_REPLICATE, 1,
                 DEG),
    IMPORT_K_INT("training.data_parallel_shard_degree", T_SHARD, -1, DEG),
    IMPORT_K_INT("training.tensor_parallel_degree", T_TP, 1, DEG),
    IMPORT_K_REPORTED("training.enable_async_tensor_parallel"),
    IMPORT_K_HARMLESS("training.*"),
    IMPORT_K_INT(P "data_parallel_replicate_degree", T_REPLICATE, 1, DEG),
    IMPORT_K_INT(P "data_parallel_shard_degree", T_SHARD, -1, DEG),
    IMPORT_K_WORD(P "fsdp_reshard_after_forward", T_RESHARD),
    IMPORT_K_INT(P "tensor_parallel_degree", T_TP, 1, DEG),
    IMPORT_K_INT(P "context_parallel_degree", T_CP, 1, DEG),
    IMPORT_K_WORD(P "context_parallel_rotate_method", T_ROTATE),
    IMPORT_K_INT(P "expert_parallel_degree", T_EP, 1, DEG),
    IMPORT_K_REPORTED(P "expert_parallel_comm_backend"),
    IMPORT_K_REPORTED(P "expert_parallel_a2a_impl"),
    IMPORT_K_HARMLESS(P "expert_tensor_parallel_degree"),
    IMPORT_K_INT(P "pipeline_parallel_degree", T_PP, 1, DEG),
    IMPORT_K_NODE(P "pipeline_parallel_split_points", T_SPLIT),
    IMPORT_K_NODE(P "module_fqns_per_model_part", T_SPLIT),
    IMPORT_K_INT(P "pipeline_parallel_layers_per_stage", T_STAGE_LAYERS, 1,
                 100000),
    IMPORT_K_REPORTED(P "pipeline_parallel_first_stage_less_layers"),
    IMPORT_K_REPORTED(P "pipeline_parallel_last_stage_less_layers"),
    IMPORT_K_WORD(P "pipeline_parallel_schedule", T_SCHEDULE),
    IMPORT_K_WORD(P "pipeline_parallel_schedule_csv", T_PASSES),
    IMPORT_K_INT(P "pipeline_parallel_microbatch_size", T_PP_MBS, 1, 1 << 24),
    IMPORT_K_INT(P "pipeline_parallel_microbatches", T_PP_PARTS, 1, 1 << 24),
    IMPORT_K_REPORTED(P "enable_async_tensor_parallel"),
    IMPORT_K_REPORTED(P "enable_compiled_autograd"),
    IMPORT_K_REPORTED(P "disable_loss_parallel"),
    IMPORT_K_INT(OLD "pipeline_parallel_degree", T_PP, 1, DEG),
    IMPORT_K_INT(OLD "context_parallel_degree", T_CP, 1, DEG),
    IMPORT_K_WORD(OLD "context_parallel_rotate_method", T_ROTATE),
    IMPORT_K_NODE(OLD "pipeline_parallel_split_points", T_SPLIT),
    IMPORT_K_WORD(OLD "pipeline_parallel_schedule", T_SCHEDULE),
    IMPORT_K_WORD(OLD "pipeline_parallel_schedule_csv", T_PASSES),
    IMPORT_K_INT(OLD "pipeline_parallel_microbatches", T_PP_PARTS, 1, 1 << 24),
    IMPORT_K_REPORTED(OLD "enable_async_tensor_parallel"),
    IMPORT_K_REPORTED(OLD "enable_compiled_autograd"),
    IMPORT_K_HARMLESS(OLD "custom_import"),
    IMPORT_K_HARMLESS(OLD "custom_args_module"),
    IMPORT_K_WORD("activation_checkpoint.mode", T_AC),
    IMPORT_K_WORD("activation_checkpoint.selective_ac_option", T_AC_OPTION),
    IMPORT_K_HARMLESS("activation_checkpoint.*"),
    IMPORT_K_BOOL("compile.enable", T_COMPILE_NEW),
    IMPORT_K_HARMLESS("compile.*"),
    IMPORT_K_BOOL("float8.enable_float8_linear", T_FP8_LINEAR),
    IMPORT_K_WORD("float8.recipe_name", T_FP8_RECIPE),
    IMPORT_K_WORD("quantize.*.float8.recipe_name", T_FP8_RECIPE),
    IMPORT_K_WORD("mx.recipe_name", T_MX_RECIPE),
    IMPORT_K_WORD("quantize.*.mx.recipe_name", T_MX_RECIPE),
    IMPORT_K_REPORTED("float8.enable_fsdp_float8_all_gather"),
    IMPORT_K_REPORTED("quantize.*.enable_fsdp_float8_all_gather"),
    IMPORT_K_HARMLESS("float8.*"),
    IMPORT_K_HARMLESS("quantize.*"),
    IMPORT_K_HARMLESS("mx.*"),
    {NULL, 0, 0, 0, 0, 0, NULL},
};

/* ---- model ----------------------------------------------------------------------- */

static sc_status model(import_sink *to, const import_value *v)
{
    char name[160];
    const import_value *m = &v[T_MODEL], *f = &v[T_FLAVOR];
    if (import_good(&v[T_SEQ]))
        SC_TRY(import_put(to, "seq", v[T_SEQ].number, &v[T_SEQ], NULL));
    if (!import_good(m)) return SC_OK;
    snprintf(name, sizeof name, "%.70s%s%.70s", m->text,
             import_good(f) ? "-" : "", import_good(f) ? f->text : "");
    return import_model(to, name, import_good(f) ? f : m);
}

/* ---- parallelism ----------------------------------------------------------------- */

/* FSDP shards over data_parallel_shard_degree ranks (-1: all that are left) and
 * is replicated data_parallel_replicate_degree times. */
static sc_status data_parallel(import_sink *to, import_value *v)
{
    const import_value *s = v[T_SHARD].given ? &v[T_SHARD] : &v[T_DP_OLD];
    int64_t shard = (int64_t)import_number(s, -1);
    int64_t copies = (int64_t)import_number(&v[T_REPLICATE], 1);
    if (shard == 0) shard = 1;
    if (shard > 0)
        SC_TRY(import_put(to, "dp", (double)(shard * copies), s, NULL));
    if (shard == 1) return import_put(to, "zero", 0, s, NULL);
    to->copies = copies;
    if (!import_has(to, "zero"))
        SC_TRY(import_put(to, "fsdp", 1, s, "default of torchtitan"));
    SC_TRY(import_put(to, "zero", 3, s, "default of torchtitan"));
    static const char *const when[] = {"default", "always", "never", NULL};
    int i = import_choose(to, &v[T_RESHARD], when, "default, always or never");
    if (i == 2)
        return import_warn(to, v[T_RESHARD].at,
                           "%s never is not modelled: weights are gathered "
                           "for each pass",
                           v[T_RESHARD].name);
    return SC_OK;
}

/* Stages of a pipeline keep what they have gathered (reshard_after_forward). */
static sc_status away(import_sink *to, const import_value *v)
{
    const import_value *o = &v[T_OFFLOAD], *pp = &v[T_PP];
    if (!import_yes(o)) return SC_OK;
    if (import_number(pp, 1) > 1)
        import_error(to, SC_C_UNSUPPORTED, o->at,
                     "leave out the pipeline, or the offload",
                     "%s with %s %s is not modelled: stages keep their weights "
                     "gathered during a step",
                     o->name, pp->name, pp->text);
    return import_fsdp_away(to, o);
}

static sc_status degree(import_sink *to, const char *key, const import_value *v)
{
    return import_put(to, key, import_number(v, 1), v, "default of torchtitan");
}

static sc_status parallel(import_sink *to, import_value *v)
{
    static const char *const rotate[] = {"allgather", "alltoall", NULL};
    SC_TRY(degree(to, "tp", &v[T_TP]));
    SC_TRY(degree(to, "pp", &v[T_PP]));
    SC_TRY(degree(to, "cp", &v[T_CP]));
    SC_TRY(degree(to, "ep", &v[T_EP]));
    SC_TRY(import_put(to, "sp", import_number(&v[T_TP], 1) > 1, &v[T_TP],
                      "default of torchtitan"));
    int i = import_choose(to, &v[T_ROTATE], rotate, "allgather or alltoall");
    if (import_number(&v[T_CP], 1) > 1)
        SC_TRY(import_put(to, "cp-comm", i == 1 ? SC_CP_RING : SC_CP_ALLGATHER,
                          &v[T_ROTATE], "default of torchtitan"));
    SC_TRY(data_parallel(to, v));
    return away(to, v);
}

/* Schedules with several stages per device have two, unless the number of layers
 * of a stage is given. */
static sc_status pipeline(import_sink *to, import_value *v)
{
    static const char *const names[] = {
        "1F1B",          "GPipe",     "Interleaved1F1B",
        "ZBVZeroBubble", "DualPipeV", "InterleavedZeroBubble",
        "LoopedBFS",     NULL};
    static const int schedules[] = {SC_SCH_1F1B, SC_SCH_GPIPE,
                                    SC_SCH_INTERLEAVED, SC_SCH_ZB_V};
    if (import_number(&v[T_PP], 1) < 2) return SC_OK;
    if (v[T_SPLIT].given &&
        !(v[T_SPLIT].node->kind == SC_N_SEQ && v[T_SPLIT].node->n == 0))
        SC_TRY(import_warn(to, v[T_SPLIT].pos,
                           "%s is not modelled: stages are balanced",
                           v[T_SPLIT].name));
    if (import_good(&v[T_STAGE_LAYERS]))
        SC_TRY(import_warn(to, v[T_STAGE_LAYERS].pos,
                           "%s is not modelled: give --vp",
                           v[T_STAGE_LAYERS].name));
    if (import_good(&v[T_PASSES]) && v[T_PASSES].text[0])
        import_error(to, SC_C_UNSUPPORTED, v[T_PASSES].at,
                     "write the passes for --schedule-file", "%s is not read",
                     v[T_PASSES].name);
    int i = import_choose(to, &v[T_SCHEDULE], names,
                          "1F1B, GPipe, Interleaved1F1B or ZBVZeroBubble");
    if (i >= (int)SC_COUNT(schedules)) {
        import_error(to, SC_C_UNSUPPORTED, v[T_SCHEDULE].at,
                     "1F1B, GPipe, Interleaved1F1B or ZBVZeroBubble",
                     "schedule %.60s is not modelled", v[T_SCHEDULE].text);
        return SC_OK;
    }
    SC_TRY(import_put(to, "schedule", i < 0 ? SC_SCH_1F1B : schedules[i],
                      &v[T_SCHEDULE], "default of torchtitan"));
    double chunks = i == 2 || i == 3 ? 2 : 1;
    return import_put(to, "vp", chunks, &v[T_SCHEDULE],
                      "default of torchtitan");
}

/* ---- batch ------------------------------------------------------------------------ */

/* Without a pipeline a rank's batch is one micro-batch. */
static sc_status batch(import_sink *to, import_value *v)
{
    const import_value *b =
        v[T_LOCAL_BATCH].given ? &v[T_LOCAL_BATCH] : &v[T_BATCH];
    int64_t local = (int64_t)import_number(b, 8), mbs = local;
    const import_value *m = b;
    if (import_number(&v[T_PP], 1) > 1) {
        mbs = 1;
        m = &v[T_PP_MBS];
        if (import_good(&v[T_PP_PARTS])) {
            m = &v[T_PP_PARTS];
            mbs = local / (int64_t)m->number;
            if (local % (int64_t)m->number)
                import_error(to, SC_C_DIVIDE, m->at, NULL,
                             "%s %.0f does not divide a batch of %lld", m->name,
                             m->number, (long long)local);
            if (mbs < 1) mbs = 1;
        } else if (import_good(m)) {
            mbs = (int64_t)m->number;
        }
    }
    to->rank_batch = local;
    SC_TRY(
        import_put(to, "micro-batch", (double)mbs, m, "default of torchtitan"));
    if (import_number(&v[T_GBS], -1) <= 0) return SC_OK;
    return import_put(to, "global-batch", v[T_GBS].number, &v[T_GBS], NULL);
}

/* ---- precision, recomputation ------------------------------------------------------- */

static bool converts(const import_value *v, const char *what)
{
    const sc_node *n = v->given ? v->node : NULL;
    for (const sc_node *c = n && n->kind == SC_N_SEQ ? n->child : n; c;
         c = n->kind == SC_N_SEQ ? c->next : NULL)
        if (c->kind == SC_N_SCALAR && strstr(c->text, what)) return true;
    return false;
}

static sc_status precision(import_sink *to, import_value *v)
{
    static const char *const types[] = {"bfloat16", "float32", "float16", NULL};
    static const int recipe[] = {SC_RECIPE_BF16, SC_RECIPE_FP32,
                                 SC_RECIPE_FP16};
    static const char *const recipes[] = {"tensorwise", "rowwise",
                                          "rowwise_with_gw_hp", NULL};
    static const char *const reduce[] = {"float32", "bfloat16", NULL};
    int i =
        import_choose(to, &v[T_PARAM], types, "bfloat16, float32 or float16");
    int r = import_choose(to, &v[T_FP8_RECIPE], recipes,
                          "tensorwise, rowwise or rowwise_with_gw_hp");
    if (import_choose(to, &v[T_REDUCE], reduce, "float32 or bfloat16") == 1)
        SC_TRY(import_warn(to, v[T_REDUCE].at,
                           "%s bfloat16 is not modelled: gradients are "
                           "reduced in float32",
                           v[T_REDUCE].name));
    if (converts(&v[T_CONVERTERS], "mx"))
        return import_put(to, "precision", SC_RECIPE_MXFP8, &v[T_CONVERTERS],
                          NULL);
    const import_value *fp8 = NULL;
    if (converts(&v[T_CONVERTERS], "float8")) fp8 = &v[T_CONVERTERS];
    if (import_yes(&v[T_FP8_LINEAR])) fp8 = &v[T_FP8_LINEAR];
    if (import_yes(&v[T_FP8_OLD])) fp8 = &v[T_FP8_OLD];
    if (fp8 && r > 0) fp8 = &v[T_FP8_RECIPE];
    if (fp8)
        return import_put(to, "precision",
                          r > 0 ? SC_RECIPE_FP8_ROW : SC_RECIPE_FP8, fp8, NULL);
    return import_put(to, "precision", i < 0 ? SC_RECIPE_BF16 : recipe[i],
                      &v[T_PARAM], "default of torchtitan");
}

/* "selective" recomputes cheap operators, or every n-th layer completely. */
static sc_status recompute(import_sink *to, import_value *v)
{
    static const char *const modes[] = {"none", "selective", "full",
                                        "memory_budget", NULL};
    const import_value *o = &v[T_AC_OPTION];
    int i = import_choose(to, &v[T_AC], modes, "none, selective or full");
    if (i == 3)
        import_error(to, SC_C_UNSUPPORTED, v[T_AC].at,
                     "none, selective or full", "%s %s is not modelled",
                     v[T_AC].name, v[T_AC].text);
    if (i == 0) return import_put(to, "recompute", SC_RC_NONE, &v[T_AC], NULL);
    if (i >= 2) return import_put(to, "recompute", SC_RC_FULL, &v[T_AC], NULL);
    bool layers = import_good(o) && strcmp(o->text, "op") != 0;
    if (layers && strcmp(o->text, "1") == 0)
        return import_put(to, "recompute", SC_RC_FULL, o, NULL);
    if (layers)
        SC_TRY(import_warn(to, o->at,
                           "%s %.20s, which recomputes every n-th layer, is "
                           "modelled as op",
                           o->name, o->text));
    return import_put(to, "recompute", SC_RC_OPS, &v[T_AC],
                      "default of torchtitan");
}

static sc_status program(import_sink *to, import_value *v)
{
    const import_value *c =
        v[T_COMPILE_NEW].given ? &v[T_COMPILE_NEW] : &v[T_COMPILE];
    const char *name =
        import_yes(c) ? "torchtitan-2025" : "torchtitan-eager-2024";
    if (import_number(&v[T_EP], 1) > 1 || import_has(to, "software"))
        return SC_OK;
    return import_put_text(to, "software", name, c,
                           "torchtitan without torch.compile");
}

sc_status torchtitan_read(import_sink *to, const char *text, size_t len,
                          const char *const *define)
{
    sc_node *root;
    import_value v[T_N] = {{0}};
    (void)define;
    SC_TRY(import_toml(text, len, to->file, to->a, &root, to->err));
    SC_TRY(import_keys_read(to, keys, root, v));
    SC_TRY(model(to, v));
    SC_TRY(parallel(to, v));
    SC_TRY(pipeline(to, v));
    SC_TRY(batch(to, v));
    SC_TRY(precision(to, v));
    SC_TRY(recompute(to, v));
    return program(to, v);
}
