/* SPDX-License-Identifier: Apache-2.0 */
/* accelerate.c - reads configurations of HuggingFace accelerate (YAML). */
#include "import/fsdp.h"
#include "import/readers.h"

#include <strings.h>

typedef enum accelerate_id {
    A_TYPE,
    A_MACHINES,
    A_PROCESSES,
    A_PRECISION,
    A_DYNAMO,
    A_ACCUMULATION,
    A_FSDP,
    A_DEEPSPEED,
    A_DS_FILE,
    A_DS_STAGE,
    A_DS_OFFLOAD,
    A_DS_WEIGHTS,
    A_LM_TP,
    A_LM_PP,
    A_LM_MICRO,
    A_LM_SP,
    A_LM_RECOMPUTE,
    A_LM_OPTIMIZER,
    A_TP,
    A_CP,
    A_SHARD,
    A_COPIES,
    A_N
} accelerate_id;

#define DS  "deepspeed_config."
#define LM  "megatron_lm_config.megatron_lm_"
#define PAR "parallelism_config.parallelism_config_"
#define DEG (1 << 20)

static const import_key keys[] = {
    IMPORT_K_WORD("distributed_type", A_TYPE),
    IMPORT_K_INT("num_machines", A_MACHINES, 1, DEG),
    IMPORT_K_INT("num_processes", A_PROCESSES, 1, 1 << 24),
    IMPORT_K_WORD("mixed_precision", A_PRECISION),
    IMPORT_K_WORD("dynamo_config.dynamo_backend", A_DYNAMO),
    IMPORT_K_WORD("dynamo_backend", A_DYNAMO),
    IMPORT_K_HARMLESS("dynamo_config.*"),
    IMPORT_K_INT("gradient_accumulation_steps", A_ACCUMULATION, 1, 1 << 24),
    IMPORT_K_NODE("fsdp_config", A_FSDP),
    IMPORT_K_WORD(DS "deepspeed_config_file", A_DS_FILE),
    IMPORT_K_INT(DS "zero_stage", A_DS_STAGE, 0, 3),
    IMPORT_K_INT(DS "gradient_accumulation_steps", A_ACCUMULATION, 1, 1 << 24),
    IMPORT_K_WORD(DS "offload_optimizer_device", A_DS_OFFLOAD),
    IMPORT_K_WORD(DS "offload_param_device", A_DS_WEIGHTS),
    IMPORT_K_HARMLESS(DS "offload_*_nvme_path"),
    IMPORT_K_HARMLESS(DS "gradient_clipping"),
    IMPORT_K_HARMLESS(DS "zero3_init_flag"),
    IMPORT_K_HARMLESS(DS "zero3_save_16bit_model"),
    IMPORT_K_HARMLESS(DS "deepspeed_*"),
    IMPORT_K_INT(LM "tp_degree", A_LM_TP, 1, DEG),
    IMPORT_K_INT(LM "pp_degree", A_LM_PP, 1, DEG),
    IMPORT_K_INT(LM "num_micro_batches", A_LM_MICRO, 1, 1 << 24),
    IMPORT_K_BOOL(LM "sequence_parallelism", A_LM_SP),
    IMPORT_K_BOOL(LM "recompute_activations", A_LM_RECOMPUTE),
    IMPORT_K_BOOL(LM "use_distributed_optimizer", A_LM_OPTIMIZER),
    IMPORT_K_HARMLESS(LM "gradient_clipping"),
    IMPORT_K_INT(PAR "tp_size", A_TP, 1, DEG),
    IMPORT_K_INT(PAR "cp_size", A_CP, 1, DEG),
    IMPORT_K_INT(PAR "dp_shard_size", A_SHARD, 1, DEG),
    IMPORT_K_INT(PAR "dp_replicate_size", A_COPIES, 1, DEG),
    IMPORT_K_REPORTED(PAR "cp_comm_strategy"),
    IMPORT_K_REPORTED("fp8_config"),
    IMPORT_K_REPORTED("ipex_config"),
    IMPORT_K_REPORTED("use_cpu"),
    IMPORT_K_HARMLESS("compute_environment"),
    IMPORT_K_HARMLESS("command_file"),
    IMPORT_K_HARMLESS("commands"),
    IMPORT_K_HARMLESS("debug"),
    IMPORT_K_HARMLESS("deepspeed_hostfile"),
    IMPORT_K_HARMLESS("downcast_bf16"),
    IMPORT_K_HARMLESS("enable_cpu_affinity"),
    IMPORT_K_HARMLESS("gpu_ids"),
    IMPORT_K_HARMLESS("machine_rank"),
    IMPORT_K_HARMLESS("main_process_ip"),
    IMPORT_K_HARMLESS("main_process_port"),
    IMPORT_K_HARMLESS("main_training_function"),
    IMPORT_K_HARMLESS("monitor_interval"),
    IMPORT_K_HARMLESS("mpirun_config"),
    IMPORT_K_HARMLESS("num_cpu_threads_per_process"),
    IMPORT_K_HARMLESS("rdzv_*"),
    IMPORT_K_HARMLESS("same_network"),
    IMPORT_K_HARMLESS("tpu_*"),
    {NULL, 0, 0, 0, 0, 0, NULL},
};

enum { NO, MULTI_GPU, FSDP, DEEPSPEED, MEGATRON_LM };

static const char *const types[] = {"NO",        "MULTI_GPU",   "FSDP",
                                    "DEEPSPEED", "MEGATRON_LM", NULL};

static sc_status precision(import_sink *to, import_value *v)
{
    static const char *const names[] = {"no", "fp16", "bf16", "fp8", NULL};
    static const int recipe[] = {SC_RECIPE_FP32, SC_RECIPE_FP16, SC_RECIPE_BF16,
                                 SC_RECIPE_FP8};
    int i = import_choose(to, &v[A_PRECISION], names, "no, fp16, bf16 or fp8");
    if (i > 0)
        return import_put(to, "precision", recipe[i], &v[A_PRECISION], NULL);
    return import_put(to, "precision", SC_RECIPE_FP32, NULL,
                      "default of accelerate");
}

static sc_status deepspeed(import_sink *to, import_value *v)
{
    SC_TRY(deepspeed_offload(to, &v[A_DS_OFFLOAD], &v[A_DS_WEIGHTS], NULL));
    if (import_good(&v[A_DS_FILE]) && !import_is_explicit(to, "zero"))
        return import_warn(
            to, v[A_DS_FILE].at,
            "the ZeRO stage is in %.100s: give this file with --from as well",
            v[A_DS_FILE].text);
    return import_put(to, "zero", import_number(&v[A_DS_STAGE], 2),
                      &v[A_DS_STAGE], "default of accelerate");
}

static sc_status megatron(import_sink *to, import_value *v)
{
    const char *none = "default of accelerate";
    double tp = import_number(&v[A_LM_TP], 1);
    bool sp = import_yes(&v[A_LM_SP]) && tp > 1;
    SC_TRY(import_put(to, "tp", tp, &v[A_LM_TP], none));
    SC_TRY(
        import_put(to, "pp", import_number(&v[A_LM_PP], 1), &v[A_LM_PP], none));
    SC_TRY(import_put(to, "sp", sp, &v[A_LM_SP], none));
    SC_TRY(import_put(to, "recompute",
                      import_yes(&v[A_LM_RECOMPUTE]) ? SC_RC_SELECTIVE
                                                     : SC_RC_NONE,
                      &v[A_LM_RECOMPUTE], none));
    if (import_good(&v[A_LM_MICRO]) && to->accumulation == 0) {
        to->accumulation = (int64_t)v[A_LM_MICRO].number;
        to->accumulation_v = v[A_LM_MICRO];
    }
    return import_put(to, "zero", import_yes(&v[A_LM_OPTIMIZER]),
                      &v[A_LM_OPTIMIZER], none);
}

static sc_status parallelism(import_sink *to, import_value *v)
{
    if (import_good(&v[A_TP]))
        SC_TRY(import_put(to, "tp", v[A_TP].number, &v[A_TP], NULL));
    if (import_good(&v[A_CP]))
        SC_TRY(import_put(to, "cp", v[A_CP].number, &v[A_CP], NULL));
    if (import_number(&v[A_COPIES], 1) > 1)
        to->copies = (int64_t)v[A_COPIES].number;
    if (import_number(&v[A_SHARD], 1) <= 1) return SC_OK;
    SC_TRY(import_fsdp(to, &v[A_SHARD], "FULL_SHARD"));
    if (to->copies <= 1) return SC_OK;
    return import_put(to, "hsdp", v[A_SHARD].number, &v[A_SHARD], NULL);
}

static sc_status distribution(import_sink *to, import_value *v, int type)
{
    const import_value *f = &v[A_FSDP];
    SC_TRY(parallelism(to, v));
    if (type == MEGATRON_LM) SC_TRY(megatron(to, v));
    if (type == DEEPSPEED) SC_TRY(deepspeed(to, v));
    if (type == FSDP && import_good(f)) SC_TRY(import_fsdp_map(to, f->node));
    if (type == FSDP && !import_has(to, "zero"))
        SC_TRY(import_fsdp(to, &(import_value){0}, ""));
    if (type == MULTI_GPU || type == NO)
        SC_TRY(import_put(to, "zero", 0, NULL, "default of accelerate"));
    return import_no_parallelism(to, "accelerate");
}

static void processes(import_sink *to, const import_value *v)
{
    sc_import *o = to->out;
    if (import_good(&v[A_PROCESSES])) o->world = (int64_t)v[A_PROCESSES].number;
    if (import_good(&v[A_MACHINES])) o->nodes = (int64_t)v[A_MACHINES].number;
    if (o->world > 0 && o->nodes > 0) o->per_node = o->world / o->nodes;
    if (o->world > 0 || o->nodes > 0) o->starter = to->file;
}

sc_status accelerate_read(import_sink *to, const char *text, size_t len,
                          const char *const *define)
{
    sc_node *root;
    import_value v[A_N] = {{0}};
    (void)define;
    SC_TRY(
        sc_doc_parse(text, len, SC_FMT_AUTO, to->file, to->a, &root, to->err));
    SC_TRY(import_keys_read(to, keys, root, v));
    int type = import_choose(
        to, &v[A_TYPE], types,
        "NO, MULTI_GPU, FSDP, DEEPSPEED or MEGATRON_LM is modelled");
    if (type < 0) type = v[A_FSDP].given ? FSDP : MULTI_GPU;
    processes(to, v);
    to->accelerated = true;
    if (import_good(&v[A_ACCUMULATION])) {
        to->accumulation = (int64_t)v[A_ACCUMULATION].number;
        to->accumulation_v = v[A_ACCUMULATION];
    }
    SC_TRY(distribution(to, v, type));
    SC_TRY(precision(to, v));
    bool compiled =
        import_good(&v[A_DYNAMO]) && strcasecmp(v[A_DYNAMO].text, "no") != 0;
    return type == DEEPSPEED || type == MEGATRON_LM
               ? SC_OK
               : import_pytorch(to, compiled, "accelerate");
}
