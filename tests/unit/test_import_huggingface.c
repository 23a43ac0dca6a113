/* SPDX-License-Identifier: Apache-2.0 */
/* test_import_huggingface.c - configurations of accelerate, arguments of
 * Trainer as files and as options of a command. */
#include "import_case.h"

#define ACC SC_IMPORT_ACCELERATE
#define TR  SC_IMPORT_TRAINER
#define SH  SC_IMPORT_MEGATRON

static void test_accelerate(void **state)
{
    (void)state;

    static const struct {
        const char *text, *fields;
    } cases[] = {
        {"distributed_type: MULTI_GPU\nnum_processes: 8\n",
         "software=pytorch-ddp tp=1 pp=1 dp=8 cp=1 zero=0 precision=fp32"},
        {"distributed_type: FSDP\nmixed_precision: bf16\nnum_processes: 16\n"
         "num_machines: 2\nfsdp_config:\n  fsdp_sharding_strategy: "
         "HYBRID_SHARD\n  fsdp_backward_prefetch: NO_PREFETCH\n",
         "software=torchtitan-eager-2024 tp=1 pp=1 dp=16 cp=1 zero=3 fsdp=true "
         "hsdp=8 prefetch=0 precision=bf16"},
        {"distributed_type: FSDP\nfsdp_config:\n  fsdp_version: 2\n"
         "  fsdp_reshard_after_forward: false\n",
         "tp=1 pp=1 cp=1 zero=2 precision=fp32"},
        {"distributed_type: FSDP\nfsdp_config: {fsdp_sharding_strategy: 1}\n"
         "dynamo_config: {dynamo_backend: INDUCTOR}\n",
         "software=torchtitan-2025 tp=1 pp=1 cp=1 zero=3 fsdp=true "
         "precision=fp32"},
        {"distributed_type: DEEPSPEED\nnum_processes: 4\nmixed_precision: "
         "fp16\ndeepspeed_config:\n  zero_stage: 3\n"
         "  gradient_accumulation_steps: 4\n  offload_optimizer_device: cpu\n"
         "  offload_param_device: none\n",
         "tp=1 pp=1 dp=4 cp=1 zero=3 offload-optimizer=cpu precision=fp16"},
        {"distributed_type: DEEPSPEED\ndeepspeed_config:\n  zero_stage: 3\n"
         "  offload_optimizer_device: nvme\n  offload_param_device: nvme\n",
         "tp=1 pp=1 cp=1 zero=3 offload-weights=1 offload-to=nvme "
         "offload-optimizer=nvme precision=fp32"},
        {"distributed_type: FSDP\nmixed_precision: bf16\nfsdp_config:\n"
         "  fsdp_version: 2\n  fsdp_offload_params: true\n",
         "software=torchtitan-eager-2024 tp=1 pp=1 cp=1 zero=3 fsdp=true "
         "offload-weights=1 offload-optimizer=cpu precision=bf16"},
        {"distributed_type: MEGATRON_LM\nnum_processes: 16\n"
         "megatron_lm_config:\n  megatron_lm_tp_degree: 2\n"
         "  megatron_lm_pp_degree: 4\n  megatron_lm_sequence_parallelism: "
         "true\n  megatron_lm_recompute_activations: true\n"
         "  megatron_lm_use_distributed_optimizer: true\n",
         "tp=2 pp=4 dp=2 cp=1 zero=1 sp=yes recompute=selective "
         "precision=fp32"},
        {"parallelism_config:\n  parallelism_config_dp_replicate_size: 2\n"
         "  parallelism_config_dp_shard_size: 4\n"
         "  parallelism_config_tp_size: 2\nnum_processes: 16\n"
         "distributed_type: FSDP\n",
         "tp=2 pp=1 dp=8 cp=1 zero=3 fsdp=true hsdp=4 precision=fp32"},
    };

    for (size_t i = 0; i < SC_COUNT(cases); i++)
        import_gives(ACC, cases[i].text, cases[i].fields);
}

/* What Trainer does where nothing is said: 8 samples of a rank, fp32, DDP. */
static void test_trainer(void **state)
{
    (void)state;

    static const struct {
        sc_import_format format;
        const char *text, *fields;
    } cases[] = {
        {TR, "{}",
         "software=pytorch-ddp tp=1 pp=1 cp=1 micro-batch=8 zero=0 "
         "recompute=none precision=fp32"},
        {TR,
         "{\"per_device_train_batch_size\": 2, \"bf16\": true, \"fsdp\": "
         "\"full_shard auto_wrap\", \"gradient_checkpointing\": true, "
         "\"model_name_or_path\": \"meta-llama/Llama-2-7b-hf\"}",
         "model=meta-llama/Llama-2-7b-hf software=torchtitan-eager-2024 tp=1 "
         "pp=1 cp=1 micro-batch=2 zero=3 fsdp=true recompute=full "
         "precision=bf16"},
        {TR, "{\"fsdp\": [\"full_shard\", \"offload\"], \"bf16\": true}",
         "software=torchtitan-eager-2024 tp=1 pp=1 cp=1 micro-batch=8 zero=3 "
         "fsdp=true recompute=none offload-weights=1 offload-optimizer=cpu "
         "precision=bf16"},
        {TR,
         "{\"fsdp\": [\"shard_grad_op\", \"auto_wrap\"], \"fsdp_config\": "
         "{\"activation_checkpointing\": true}, \"tf32\": true}",
         "tp=1 pp=1 cp=1 micro-batch=8 zero=2 recompute=full precision=tf32"},
        {TR,
         "deepspeed:\n  zero_optimization: {stage: 1}\n  bf16: {enabled: "
         "auto}\nbf16: true\ncutoff_len: 1024\n",
         "tp=1 pp=1 cp=1 micro-batch=8 seq=1024 zero=1 recompute=none "
         "precision=bf16 overlap-grad-reduce=no"},
        {TR,
         "model_name_or_path: meta-llama/Meta-Llama-3-8B-Instruct\nfp16: "
         "true\n",
         "model=Llama-3-8B software=pytorch-ddp tp=1 pp=1 cp=1 micro-batch=8 "
         "zero=0 recompute=none precision=fp16"},
        /* 16 ranks, 2 x 4 samples each */
        {SH,
         "torchrun --nnodes 2 --nproc_per_node=8 run_clm.py "
         "--per-device-train-batch-size=2 --gradient_accumulation_steps 4 "
         "--bf16 --fsdp \"full_shard auto_wrap\" --torch_compile True "
         "--output_dir x --model_name_or_path gpt2 --block_size 1024\n",
         "model=gpt2 software=torchtitan-2025 tp=1 pp=1 dp=16 cp=1 "
         "global-batch=128 micro-batch=2 seq=1024 zero=3 fsdp=true "
         "recompute=none precision=bf16"},
        /* DeepSpeed's examples: the stage is an option, fp16 the default */
        {SH,
         "deepspeed --num_nodes 1 --num_gpus 4 main.py --model_name_or_path "
         "gpt2 "
         "--per_device_train_batch_size 2 --zero_stage 2 --deepspeed "
         "--lora_dim 0\n",
         "model=gpt2 tp=1 pp=1 dp=4 cp=1 global-batch=8 micro-batch=2 zero=2 "
         "recompute=none precision=fp16"},
        {SH,
         "deepspeed --num_nodes 1 --num_gpus 4 main.py "
         "--per_device_train_batch_size 2 "
         "--zero_stage 0 --dtype bf16\n",
         "software=pytorch-ddp tp=1 pp=1 dp=4 cp=1 global-batch=8 "
         "micro-batch=2 zero=0 recompute=none precision=bf16"},
        {SH,
         "accelerate launch --num_processes 4 train.py "
         "--gradient_checkpointing --per_gpu_train_batch_size 1\n",
         "software=pytorch-ddp tp=1 pp=1 dp=4 cp=1 global-batch=4 "
         "micro-batch=1 zero=0 recompute=full precision=fp32"},
    };

    for (size_t i = 0; i < SC_COUNT(cases); i++)
        import_gives(cases[i].format, cases[i].text, cases[i].fields);
}

static void test_errors(void **state)
{
    (void)state;

    static const struct {
        sc_import_format format;
        const char *text, *errors;
    } cases[] = {
        {ACC, "distributed_type: TPU\n", "unknown-name 1:19"},
        {ACC, "distributed_type: FSDP\nfsdp_confg: {}\nnum_procs: 2\n",
         "unknown-key 3:1"},
        {ACC, "num_processes: many\nmixed_precision: int4\n",
         "type 1:16, unknown-name 2:18"},
        {ACC,
         "distributed_type: FSDP\nfsdp_config:\n"
         "  fsdp_sharding_strategy: HALF_SHARD\n  fsdp_offload_params: true\n",
         "unknown-name 3:27"},
        /* accelerate's default is ZeRO-2 */
        {ACC,
         "distributed_type: DEEPSPEED\ndeepspeed_config:\n"
         "  offload_param_device: cpu\n",
         "unsupported 3:25"},
        {ACC,
         "distributed_type: FSDP\nfsdp_config:\n  fsdp_sharding_strategy: "
         "SHARD_GRAD_OP\n  fsdp_offload_params: true\n",
         "unsupported 4:24"},
        {TR, "fsdp: no_shard offload\n", "unsupported 1:7"},
        {ACC, "- a\n", "type 1:1"},
        {TR, "per_device_train_batch_sise: 2\n", "unknown-key 1:1"},
        {TR, "fsdp: sharded\n", "unknown-name 1:7"},
        {TR, "bf16: true\nfp16: true\n", "conflict 2:7"},
        {TR, "use_peft: true\n", "unsupported 1:1"},
        {TR, "finetuning_type: lora\nload_in_4bit: true\n",
         "unsupported 2:1, unsupported 1:18"},
        {SH, "python train.py --model_name_or_path gpt2 --block_size $N\n",
         "type 1:56"},
    };

    for (size_t i = 0; i < SC_COUNT(cases); i++)
        import_fails(cases[i].format, cases[i].text, cases[i].errors);
}

static void test_warnings(void **state)
{
    (void)state;
    import_warns(TR, "deepspeed: ds.json\n",
                 "f:1:12: the ZeRO stage is in ds.json");
    import_warns(TR, "my_own_flag: 3\nnum_processes_x: 1\n",
                 "f:1:1: my_own_flag is not modelled");
    import_warns(TR, "optim: adafactor\n", "adafactor is modelled as Adam");
    import_warns(TR, "model_name_or_path: ./out/checkpoint-5\n",
                 "checkpoint-5 is not in the catalogue");
    import_warns(ACC,
                 "distributed_type: FSDP\nnum_processes: 8\nfsdp_config: "
                 "{fsdp_sharding_strategy: HYBRID_SHARD}\n",
                 "the number of nodes is not known");
    import_warns(ACC,
                 "compute_environment: LOCAL_MACHINE\nuse_cpu: false\n"
                 "main_process_port: 29500\nfp8_config: null\n",
                 NULL);
    import_warns(SH,
                 "accelerate launch --config_file a.yaml train.py "
                 "--per_device_train_batch_size 1\n",
                 "f:1:19: a.yaml is another file");
}

/* accelerate says bf16 and how many; Trainer the batch.  Both give a number of
 * accumulated micro-batches, which must be equal. */
static void test_together(void **state)
{
    (void)state;
    const char *yaml = "distributed_type: DEEPSPEED\nmixed_precision: bf16\n"
                       "num_processes: 8\ndeepspeed_config: {zero_stage: 2, "
                       "gradient_accumulation_steps: 4}\n";
    const char *const args[] = {"gradient_accumulation_steps: 4\n",
                                "gradient_accumulation_steps: 2\n"};
    for (int i = 0; i < 2; i++) {
        import_case r;
        char found[FINDINGS];
        sc_import_file f[2] = {{"t.yaml", args[i], strlen(args[i]), TR},
                               {"a.yaml", yaml, strlen(yaml), ACC}};
        import_open(&r);
        (void)sc_import_read(f, 2, NULL, &r.a, &r.job, &r.out, &r.err);
        findings(&r.err, found);
        assert_string_equal(found, i == 0 ? "" : "conflict 1:30");
        if (i == 0) {
            assert_int_equal(r.job.zero, 2);
            assert_int_equal(r.job.precision, SC_RECIPE_BF16);
            assert_int_equal(r.job.gbs, 8 * 4 * 8);
        }
        sc_arena_free(&r.a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_accelerate), cmocka_unit_test(test_trainer),
        cmocka_unit_test(test_errors), cmocka_unit_test(test_warnings),
        cmocka_unit_test(test_together)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
