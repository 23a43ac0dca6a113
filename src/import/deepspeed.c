/* SPDX-License-Identifier: Apache-2.0 */
/* deepspeed.c - reads configurations of DeepSpeed (JSON). */
#include "import/keys.h"
#include "import/readers.h"
#include "plan/plan_strategy.h"

#include <string.h>
#include <strings.h>

typedef enum deepspeed_id {
    D_GBS,
    D_MBS,
    D_GA,
    D_STAGE,
    D_OVERLAP,
    D_FP16,
    D_BF16,
    D_OPTIMIZER,
    D_OFFLOAD,
    D_OFFLOAD_OLD,
    D_WEIGHTS,
    D_WEIGHTS_OLD,
    D_WEIGHTS_IN_CPU,
    D_PREFETCH,
    D_SHARD,
    D_GRAD_DTYPE,
    D_STAGES,
    D_INTERVAL,
    D_CPU_CHECKPOINTS,
    D_TP,
    D_SEQUENCE,
    D_N
} deepspeed_id;

#define ZERO "zero_optimization."
#define HUGE (1LL << 40)

static const import_key keys[] = {
    IMPORT_K_INT("train_batch_size", D_GBS, 1, HUGE),
    IMPORT_K_INT("train_micro_batch_size_per_gpu", D_MBS, 1, 1 << 30),
    IMPORT_K_INT("gradient_accumulation_steps", D_GA, 1, 1 << 30),
    IMPORT_K_INT(ZERO "stage", D_STAGE, 0, 3),
    IMPORT_K_BOOL(ZERO "overlap_comm", D_OVERLAP),
    IMPORT_K_WORD(ZERO "offload_optimizer.device", D_OFFLOAD),
    IMPORT_K_REPORTED(ZERO "offload_optimizer.ratio"),
    IMPORT_K_HARMLESS(ZERO "offload_optimizer.*"),
    IMPORT_K_BOOL(ZERO "cpu_offload", D_OFFLOAD_OLD),
    IMPORT_K_HARMLESS(ZERO "cpu_offload_use_pin_memory"),
    IMPORT_K_WORD(ZERO "offload_param.device", D_WEIGHTS),
    IMPORT_K_BOOL(ZERO "cpu_offload_params", D_WEIGHTS_OLD),
    IMPORT_K_REAL(ZERO "offload_param.max_in_cpu", D_WEIGHTS_IN_CPU, 0, 1e18),
    IMPORT_K_HARMLESS(ZERO "offload_param.*"),
    IMPORT_K_REAL(ZERO "stage3_prefetch_bucket_size", D_PREFETCH, 0, 1e18),
    IMPORT_K_INT(ZERO "mics_shard_size", D_SHARD, -1, 1 << 30),
    IMPORT_K_REPORTED(ZERO "mics_hierarchical_params_gather"),
    IMPORT_K_REPORTED(ZERO "zero_hpz_partition_size"),
    IMPORT_K_REPORTED(ZERO "zero_quantized_*"),
    IMPORT_K_REPORTED(ZERO "*_bucket_size"),
    IMPORT_K_REPORTED(ZERO "sub_group_size"),
    IMPORT_K_REPORTED(ZERO "stage3_max_live_parameters"),
    IMPORT_K_REPORTED(ZERO "stage3_max_reuse_distance"),
    IMPORT_K_REPORTED(ZERO "stage3_*_persistence_threshold"),
    IMPORT_K_REPORTED(ZERO "stage3_module_granularity_threshold"),
    IMPORT_K_HARMLESS(ZERO "stage3_gather_*_on_model_save"),
    IMPORT_K_HARMLESS(ZERO "allgather_partitions"),
    IMPORT_K_HARMLESS(ZERO "reduce_scatter"),
    IMPORT_K_HARMLESS(ZERO "contiguous_gradients"),
    IMPORT_K_HARMLESS(ZERO "round_robin_gradients"),
    IMPORT_K_HARMLESS(ZERO "load_from_fp32_weights"),
    IMPORT_K_HARMLESS(ZERO "grad_hooks"),
    IMPORT_K_HARMLESS(ZERO "ignore_unused_parameters"),
    IMPORT_K_HARMLESS(ZERO "legacy_stage1"),
    IMPORT_K_HARMLESS(ZERO "elastic_checkpoint"),
    IMPORT_K_HARMLESS(ZERO "memory_efficient_linear"),
    IMPORT_K_HARMLESS(ZERO "override_module_apply"),
    IMPORT_K_HARMLESS(ZERO "use_multi_rank_bucket_allreduce"),
    IMPORT_K_HARMLESS(ZERO "log_trace_cache_warnings"),
    IMPORT_K_HARMLESS(ZERO "leaf_module*"),
    IMPORT_K_BOOL("fp16.enabled", D_FP16),
    IMPORT_K_REPORTED("fp16.fp16_master_weights_and_grads"),
    IMPORT_K_HARMLESS("fp16.*"),
    IMPORT_K_BOOL("bf16.enabled", D_BF16),
    IMPORT_K_BOOL("bfloat16.enabled", D_BF16),
    IMPORT_K_REPORTED("bf16.bf16_master_weights_and_grads"),
    IMPORT_K_HARMLESS("bf16.*"),
    IMPORT_K_HARMLESS("bfloat16.*"),
    IMPORT_K_REPORTED("amp"),
    IMPORT_K_REPORTED("torch_autocast"),
    IMPORT_K_WORD("data_types.grad_accum_dtype", D_GRAD_DTYPE),
    IMPORT_K_REPORTED("communication_data_type"),
    IMPORT_K_REPORTED("seq_parallel_communication_data_type"),
    IMPORT_K_WORD("optimizer.type", D_OPTIMIZER),
    IMPORT_K_HARMLESS("optimizer.*"),
    IMPORT_K_HARMLESS("scheduler"),
    IMPORT_K_INT("pipeline.stages", D_STAGES, 1, 1 << 20),
    IMPORT_K_INT("pipeline.activation_checkpoint_interval", D_INTERVAL, 0,
                 100000),
    IMPORT_K_REPORTED("pipeline.partition"),
    IMPORT_K_HARMLESS("pipeline.*"),
    IMPORT_K_BOOL("activation_checkpointing.cpu_checkpointing",
                  D_CPU_CHECKPOINTS),
    IMPORT_K_REPORTED("activation_checkpointing.partition_activations"),
    IMPORT_K_REPORTED("activation_checkpointing.number_checkpoints"),
    IMPORT_K_HARMLESS("activation_checkpointing.*"),
    IMPORT_K_INT("tensor_parallel.autotp_size", D_TP, 0, 1 << 20),
    IMPORT_K_INT("tensor_parallel.tp_size", D_TP, 0, 1 << 20),
    IMPORT_K_HARMLESS("tensor_parallel.*"),
    IMPORT_K_HARMLESS("*_comment*"),
    IMPORT_K_INT("sequence_parallel_size", D_SEQUENCE, 1, 1 << 20),
    IMPORT_K_REFUSED("sparse_attention", "only dense attention is modelled"),
    IMPORT_K_REPORTED("sparse_gradients"),
    IMPORT_K_REPORTED("compression_training"),
    IMPORT_K_REPORTED("quantize_training"),
    IMPORT_K_REPORTED("progressive_layer_drop"),
    IMPORT_K_REPORTED("curriculum_learning"),
    IMPORT_K_REPORTED("data_efficiency"),
    IMPORT_K_REPORTED("elasticity"),
    IMPORT_K_REPORTED("compile"),
    IMPORT_K_REPORTED("disable_allgather"),
    IMPORT_K_REPORTED("flops_profiler"),
    IMPORT_K_REPORTED("wall_clock_breakdown"),
    IMPORT_K_HARMLESS("gradient_clipping"),
    IMPORT_K_HARMLESS("prescale_gradients"),
    IMPORT_K_HARMLESS("gradient_predivide_factor"),
    IMPORT_K_HARMLESS("zero_allow_untested_optimizer"),
    IMPORT_K_HARMLESS("zero_force_ds_cpu_optimizer"),
    IMPORT_K_HARMLESS("steps_per_print"),
    IMPORT_K_HARMLESS("dump_state"),
    IMPORT_K_HARMLESS("memory_breakdown"),
    IMPORT_K_HARMLESS("tensorboard"),
    IMPORT_K_HARMLESS("wandb"),
    IMPORT_K_HARMLESS("comet"),
    IMPORT_K_HARMLESS("csv_monitor"),
    IMPORT_K_HARMLESS("monitor_config"),
    IMPORT_K_HARMLESS("comms_logger"),
    IMPORT_K_HARMLESS("comms_config"),
    IMPORT_K_HARMLESS("checkpoint"),
    IMPORT_K_HARMLESS("load_universal_checkpoint"),
    IMPORT_K_HARMLESS("use_node_local_storage"),
    IMPORT_K_HARMLESS("aio"),
    IMPORT_K_HARMLESS("autotuning"),
    IMPORT_K_HARMLESS("nebula"),
    IMPORT_K_HARMLESS("hybrid_engine"),
    IMPORT_K_HARMLESS("eigenvalue"),
    IMPORT_K_HARMLESS("timers"),
    IMPORT_K_HARMLESS("seed"),
    IMPORT_K_HARMLESS("dataloader_drop_last"),
    IMPORT_K_HARMLESS("use_data_before_expert_parallelism"),
    IMPORT_K_HARMLESS("vocabulary_size"),
    IMPORT_K_HARMLESS("weight_quantization"),
    {NULL, 0, 0, 0, 0, 0, NULL},
};

static sc_status precision(import_sink *to, import_value *v)
{
    if (import_yes(&v[D_FP16]) && import_yes(&v[D_BF16]))
        import_error(to, SC_C_CONFLICT, v[D_FP16].at, "keep one of them",
                     "fp16 and bf16 are both enabled");
    if (import_yes(&v[D_BF16]))
        return import_put(to, "precision", SC_RECIPE_BF16, &v[D_BF16], NULL);
    if (import_yes(&v[D_FP16]))
        return import_put(to, "precision", SC_RECIPE_FP16, &v[D_FP16], NULL);
    if (v[D_FP16].open || v[D_BF16].open) return SC_OK;
    return import_put(
        to, "precision", SC_RECIPE_FP32, NULL,
        "default of DeepSpeed if neither bf16 nor fp16 is enabled");
}

static sc_status gradients(import_sink *to, import_value *v)
{
    static const char *const types[] = {"fp32", "fp16", "bf16", NULL};
    int i = import_choose(to, &v[D_GRAD_DTYPE], types, "fp32, fp16 or bf16");
    if (i < 0) return SC_OK;
    return import_put(to, "grad-bytes", i == 0 ? 4 : 2, &v[D_GRAD_DTYPE], NULL);
}

static const char *const devices[] = {"none", "cpu", "nvme", NULL};

enum { NONE, CPU, NVME };

static int device_of(import_sink *to, import_value *v)
{
    return import_choose(to, v, devices, "none, cpu or nvme");
}

/* Of weights on drives, a rank keeps the first max_in_cpu elements, 1e9 unless
 * given, in host memory. */
static sc_status weights_of(import_sink *to, import_value *device,
                            const import_value *in_cpu)
{
    int i = device_of(to, device);
    double kept = in_cpu ? import_number(in_cpu, 1e9) : 1e9;
    if (i == CPU) return import_weights_away(to, SC_OFFLOAD_CPU, device);
    if (i != NVME) return SC_OK;
    if (kept > 0)
        SC_TRY(import_warn(to, device->at,
                           "%s nvme: the %g elements of a rank that stay in "
                           "host memory (max_in_cpu) are modelled on drives",
                           device->name, kept));
    return import_weights_away(to, SC_OFFLOAD_NVME, device);
}

sc_status deepspeed_offload(import_sink *to, import_value *states,
                            import_value *weights, const import_value *in_cpu)
{
    int i = device_of(to, states);
    if (i > NONE)
        SC_TRY(import_put(to, "offload-optimizer",
                          i == CPU ? SC_TIER_CPU : SC_TIER_NVME, states, NULL));
    return weights_of(to, weights, in_cpu);
}

static sc_status offload(import_sink *to, import_value *v)
{
    const import_value *saved = &v[D_CPU_CHECKPOINTS];
    SC_TRY(deepspeed_offload(to, &v[D_OFFLOAD], &v[D_WEIGHTS],
                             &v[D_WEIGHTS_IN_CPU]));
    if (import_yes(&v[D_OFFLOAD_OLD]))
        SC_TRY(import_put(to, "offload-optimizer", SC_TIER_CPU,
                          &v[D_OFFLOAD_OLD], NULL));
    if (import_yes(&v[D_WEIGHTS_OLD]))
        SC_TRY(import_weights_away(to, SC_OFFLOAD_CPU, &v[D_WEIGHTS_OLD]));
    if (!import_yes(saved)) return SC_OK;
    if (to->job->offload_to == SC_OFFLOAD_NVME)
        import_error(to, SC_C_UNSUPPORTED, saved->at,
                     "write a strategy file with `memory` rules "
                     "(docs/strategy-file.md)",
                     "%s in host memory beside weights on drives is not "
                     "modelled: --offload-to is one memory for both",
                     saved->name);
    return import_put(to, "offload", 1, saved, NULL);
}

static sc_status zero(import_sink *to, import_value *v)
{
    const char *none = "default of DeepSpeed: no zero_optimization.stage";
    int64_t stage = (int64_t)import_number(&v[D_STAGE], 0);
    if (!v[D_STAGE].open)
        SC_TRY(import_put(to, "zero", (double)stage, &v[D_STAGE], none));
    if (!v[D_OVERLAP].open)
        SC_TRY(import_put(
            to, "overlap-grad-reduce", import_number(&v[D_OVERLAP], stage == 3),
            &v[D_OVERLAP], "default of DeepSpeed: only with stage 3"));
    if (import_good(&v[D_PREFETCH]) && v[D_PREFETCH].number == 0)
        SC_TRY(import_put(to, "prefetch", 0, &v[D_PREFETCH], NULL));
    if (import_number(&v[D_SHARD], -1) > 0)
        SC_TRY(import_put(to, "hsdp", v[D_SHARD].number, &v[D_SHARD], NULL));
    return offload(to, v);
}

static sc_status parallel(import_sink *to, import_value *v)
{
    if (import_number(&v[D_TP], 0) > 0)
        SC_TRY(import_put(to, "tp", v[D_TP].number, &v[D_TP], NULL));
    if (import_number(&v[D_TP], 0) > 1)
        SC_TRY(import_put(to, "sp", 0, NULL, "default of DeepSpeed"));
    if (import_good(&v[D_STAGES]))
        SC_TRY(import_put(to, "pp", v[D_STAGES].number, &v[D_STAGES], NULL));
    if (import_number(&v[D_STAGES], 1) > 1) {
        SC_TRY(import_put(to, "vp", 1, NULL, "default of DeepSpeed"));
        SC_TRY(import_put(to, "schedule", SC_SCH_1F1B, NULL,
                          "default of DeepSpeed"));
    }
    if (import_number(&v[D_SEQUENCE], 1) > 1) {
        SC_TRY(
            import_put(to, "cp", v[D_SEQUENCE].number, &v[D_SEQUENCE], NULL));
        SC_TRY(import_put(to, "cp-comm", SC_CP_ULYSSES, &v[D_SEQUENCE], NULL));
    }
    return import_no_parallelism(to, "DeepSpeed");
}

static sc_status batch(import_sink *to, import_value *v)
{
    if (import_good(&v[D_GBS]))
        SC_TRY(
            import_put(to, "global-batch", v[D_GBS].number, &v[D_GBS], NULL));
    if (import_good(&v[D_MBS]))
        SC_TRY(import_put(to, "micro-batch", v[D_MBS].number, &v[D_MBS], NULL));
    if (import_good(&v[D_GA])) {
        to->accumulation = (int64_t)v[D_GA].number;
        to->accumulation_v = v[D_GA];
    } else if (!v[D_GA].open && to->accumulation == 0 && !v[D_GBS].given) {
        to->accumulation = 1;
    }
    return SC_OK;
}

/* Optimizers other than Adam are modelled as Adam, with a warning. */
static sc_status optimizer(import_sink *to, const import_value *v)
{
    static const char *const adams[] = {"Adam", "AdamW", "FusedAdam",
                                        "DeepSpeedCPUAdam"};
    if (!import_good(v)) return SC_OK;
    for (size_t i = 0; i < SC_COUNT(adams); i++)
        if (strcasecmp(v->text, adams[i]) == 0) return SC_OK;
    return import_warn(to, v->at, "optimizer %.60s is modelled as Adam",
                       v->text);
}

static sc_status recompute(import_sink *to, import_value *v)
{
    double every = import_number(&v[D_INTERVAL], 0);
    if (every < 1) return SC_OK;
    SC_TRY(import_put(to, "recompute", SC_RC_FULL, &v[D_INTERVAL], NULL));
    SC_TRY(import_put(to, "recompute-method", SC_RCM_UNIFORM, &v[D_INTERVAL],
                      NULL));
    return import_put(to, "recompute-num-layers", every, &v[D_INTERVAL], NULL);
}

sc_status deepspeed_map(import_sink *to, const sc_node *root)
{
    import_value v[D_N] = {{0}};
    SC_TRY(import_keys_read(to, keys, root, v));
    SC_TRY(zero(to, v));
    SC_TRY(precision(to, v));
    SC_TRY(gradients(to, v));
    SC_TRY(optimizer(to, &v[D_OPTIMIZER]));
    SC_TRY(recompute(to, v));
    SC_TRY(parallel(to, v));
    return batch(to, v);
}

sc_status deepspeed_read(import_sink *to, const char *text, size_t len,
                         const char *const *define)
{
    sc_node *root;
    (void)define;
    SC_TRY(
        sc_doc_parse(text, len, SC_FMT_JSON, to->file, to->a, &root, to->err));
    return deepspeed_map(to, root);
}
