/* SPDX-License-Identifier: Apache-2.0 */
/* test_import_torchtitan.c - configurations of torchtitan as jobs. */
#include "import_case.h"

#define TT SC_IMPORT_TORCHTITAN

/* What torchtitan does where a file says nothing: FSDP over all ranks, a batch
 * of 8, bf16, recomputed operators. */
#define BEFORE \
    "software=torchtitan-eager-2024 tp=1 pp=1 cp=1 ep=1 micro-batch=8 "
#define AFTER " sp=no recompute=ops precision=bf16"

static void test_meaning(void **state)
{
    (void)state;

    static const struct {
        const char *text, *fields;
    } cases[] = {
        {"", BEFORE "zero=3 fsdp=true" AFTER},
        {"[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\nseq_len = "
         "4096\nbatch_size = 2\n[compile]\nenable = true\n",
         "model=llama3-8B software=torchtitan-2025 tp=1 pp=1 cp=1 ep=1 "
         "micro-batch=2 seq=4096 zero=3 fsdp=true" AFTER},
        {"[model]\nname = \"deepseek_v3\"\nflavor = \"671B\"\n[parallelism]\n"
         "expert_parallel_degree = 8\n",
         "model=deepseek-v3 tp=1 pp=1 cp=1 ep=8 micro-batch=8 zero=3 "
         "fsdp=true" AFTER},
        /* 2 replicas of 4 shards: groups of HSDP of 4, a batch of 8 x 8 */
        {"[parallelism]\ndata_parallel_replicate_degree = 2\n"
         "data_parallel_shard_degree = 4\ntensor_parallel_degree = 4\n"
         "context_parallel_degree = 2\n",
         "software=torchtitan-eager-2024 tp=4 pp=1 dp=8 cp=2 ep=1 "
         "global-batch=64 micro-batch=8 zero=3 fsdp=true hsdp=4 "
         "cp-comm=all-gather sp=yes recompute=ops precision=bf16"},
        /* DDP */
        {"[parallelism]\ndata_parallel_replicate_degree = 4\n"
         "data_parallel_shard_degree = 1\n[training]\nglobal_batch_size = 64\n",
         "software=torchtitan-eager-2024 tp=1 pp=1 dp=4 cp=1 ep=1 "
         "global-batch=64 micro-batch=8 zero=0" AFTER},
        {"[experimental]\npipeline_parallel_degree = 4\n"
         "pipeline_parallel_schedule = \"interleaved1f1b\"\n"
         "pipeline_parallel_microbatches = 4\n",
         "software=torchtitan-eager-2024 tp=1 pp=4 cp=1 ep=1 vp=2 "
         "micro-batch=2 zero=3 fsdp=true sp=no recompute=ops "
         "schedule=interleaved precision=bf16"},
        {"[parallelism]\npipeline_parallel_degree = 2\n"
         "pipeline_parallel_schedule = \"ZBVZeroBubble\"\n"
         "[activation_checkpoint]\nmode = \"none\"\n[model]\n"
         "converters = [\"float8\"]\n",
         "software=torchtitan-eager-2024 tp=1 pp=2 cp=1 ep=1 vp=2 "
         "micro-batch=1 zero=3 fsdp=true sp=no recompute=none schedule=zb-v "
         "precision=fp8"},
        {"[float8]\nenable_float8_linear = true\nrecipe_name = \"rowwise\"\n"
         "[activation_checkpoint]\nmode = \"selective\"\n"
         "selective_ac_option = \"1\"\n",
         BEFORE "zero=3 fsdp=true sp=no recompute=full precision=fp8-row"},
        {"[model]\nconverters = [\"quantize.linear.mx\"]\n[training]\n"
         "mixed_precision_param = \"bfloat16\"\n",
         BEFORE "zero=3 fsdp=true sp=no recompute=ops precision=mxfp8"},
        {"[training]\nenable_cpu_offload = true\n",
         BEFORE "zero=3 fsdp=true sp=no recompute=ops offload-weights=1 "
                "offload-optimizer=cpu precision=bf16"},
    };

    for (size_t i = 0; i < SC_COUNT(cases); i++)
        import_gives(TT, cases[i].text, cases[i].fields);
}

static void test_findings(void **state)
{
    (void)state;

    static const struct {
        const char *text, *errors;
    } wrong[] = {
        {"[parallelism]\ntensor_parallel_degre = 2\n", "unknown-key 2:1"},
        {"[parallelism]\ntensor_parallel_degree = 0\n"
         "pipeline_parallel_degree = \"4\"\ncontext_parallel_degree = 1.5\n",
         "range 2:26, type 4:27"},
        {"[frobnicate]\nx = 1\n", "unknown-key 2:1"},
        {"[parallelism]\npipeline_parallel_degree = 2\n"
         "pipeline_parallel_schedule = \"DualPipeV\"\n",
         "unsupported 3:30"},
        {"[parallelism]\npipeline_parallel_degree = 2\n"
         "pipeline_parallel_schedule = \"2F2B\"\n",
         "unknown-name 3:30"},
        {"[parallelism]\npipeline_parallel_degree = 2\n"
         "pipeline_parallel_microbatches = 3\n",
         "divide 3:34"},
        {"[training]\nenable_cpu_offload = true\n[parallelism]\n"
         "data_parallel_shard_degree = 1\n",
         "unsupported 2:22"},
        {"[training]\nenable_cpu_offload = true\n[parallelism]\n"
         "pipeline_parallel_degree = 2\n",
         "unsupported 2:22"},
        {"[activation_checkpoint]\nmode = \"memory_budget\"\n",
         "unsupported 2:8"},
        {"[model]\nname = llama3\n", "syntax 2:8"},
    };

    for (size_t i = 0; i < SC_COUNT(wrong); i++)
        import_fails(TT, wrong[i].text, wrong[i].errors);
    import_warns(TT, "[model]\nname = \"flux\"\nflavor = \"dev\"\n",
                 "f:3:10: model flux-dev is not in the catalogue");
    import_warns(TT, "[parallelism]\nenable_async_tensor_parallel = true\n",
                 "f:2:1: parallelism.enable_async_tensor_parallel is not");
    import_warns(TT,
                 "[job]\nx = 1\n[parallelism]\nenable_async_tensor_parallel = "
                 "false\ndata_parallel_shard_degree = 2\n[metrics]\ny = 2\n",
                 NULL);
    import_warns(TT,
                 "[parallelism]\npipeline_parallel_degree = 2\n"
                 "pipeline_parallel_split_points = [\"layers.4\"]\n",
                 "stages are balanced");
}

static void test_recognised(void **state)
{
    (void)state;
    const char *toml = "# x\n[job]\ndump_folder = \"a\"\n\n[model]\nname = 1\n";
    assert_int_equal(sc_import_recognise(toml, strlen(toml)), TT);
    const char *json = "[\n[model],\n 1]";
    assert_int_equal(sc_import_recognise(json, strlen(json)),
                     SC_IMPORT_UNKNOWN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_meaning),
                                       cmocka_unit_test(test_findings),
                                       cmocka_unit_test(test_recognised)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
