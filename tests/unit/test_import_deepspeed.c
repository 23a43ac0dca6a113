/* SPDX-License-Identifier: Apache-2.0 */
/* test_import_deepspeed.c - configurations of DeepSpeed as jobs; several files
 * as one. */
#include "import_case.h"

#define DS SC_IMPORT_DEEPSPEED
/* What DeepSpeed does where a file says nothing. */
#define NONE "tp=1 pp=1 cp=1"

static void test_meaning(void **state)
{
    (void)state;

    static const struct {
        const char *text, *fields;
    } cases[] = {
        {"{}", "tp=1 pp=1 cp=1 zero=0 precision=fp32 overlap-grad-reduce=no"},
        {"{\"_comment\": \"see there\", \"zero_optimization\": {\"stage\": 1}}",
         "tp=1 pp=1 cp=1 zero=1 precision=fp32 overlap-grad-reduce=no"},
        {"{\"zero_optimization\": {\"stage\": 3}, \"bf16\": {\"enabled\": "
         "true}}",
         NONE " zero=3 precision=bf16 overlap-grad-reduce=yes"},
        {"{\"zero_optimization\": {\"stage\": 2, \"overlap_comm\": true, "
         "\"offload_optimizer\": {\"device\": \"nvme\"}}, \"fp16\": "
         "{\"enabled\": true}, \"data_types\": {\"grad_accum_dtype\": "
         "\"fp32\"}}",
         NONE " zero=2 offload-optimizer=nvme precision=fp16 "
              "overlap-grad-reduce=yes grad-bytes=4B"},
        /* "auto" is left to others, also the batch */
        {"{\"train_batch_size\": \"auto\", \"zero_optimization\": {\"stage\": "
         "\"auto\", \"overlap_comm\": \"auto\"}, \"bf16\": {\"enabled\": "
         "\"auto\"}}",
         NONE},
        {"{\"zero_optimization\": {\"offload_param\": null, "
         "\"offload_optimizer\": null}, \"activation_checkpointing\": null}",
         NONE " zero=0 precision=fp32 overlap-grad-reduce=no"},
        /* 512 = 4 x 8 x 16: 16 ranks */
        {"{\"train_batch_size\": 512, \"train_micro_batch_size_per_gpu\": 4, "
         "\"gradient_accumulation_steps\": 8}",
         "tp=1 pp=1 dp=16 cp=1 global-batch=512 micro-batch=4 zero=0 "
         "precision=fp32 overlap-grad-reduce=no"},
        {"{\"pipeline\": {\"stages\": 4, \"activation_checkpoint_interval\": "
         "2}, \"tensor_parallel\": {\"autotp_size\": 2}, "
         "\"sequence_parallel_size\": 8}",
         "tp=2 pp=4 cp=8 vp=1 zero=0 cp-comm=ulysses sp=no recompute=full "
         "recompute-method=uniform recompute-num-layers=2 schedule=1f1b "
         "precision=fp32 overlap-grad-reduce=no"},
        {"{\"zero_optimization\": {\"stage\": 3, \"mics_shard_size\": 8, "
         "\"stage3_prefetch_bucket_size\": 0}, \"activation_checkpointing\": "
         "{\"cpu_checkpointing\": true}}",
         NONE " zero=3 hsdp=8 prefetch=0 offload=1 precision=fp32 "
              "overlap-grad-reduce=yes"},
        {"{\"zero_optimization\": {\"stage\": 3, \"offload_param\": "
         "{\"device\": \"cpu\", \"pin_memory\": true}}}",
         NONE " zero=3 offload-weights=1 precision=fp32 "
              "overlap-grad-reduce=yes"},
        {"{\"zero_optimization\": {\"stage\": 3, \"offload_param\": "
         "{\"device\": \"nvme\", \"max_in_cpu\": 0}, "
         "\"offload_optimizer\": {\"device\": \"cpu\"}}}",
         NONE " zero=3 offload-weights=1 offload-to=nvme "
              "offload-optimizer=cpu precision=fp32 overlap-grad-reduce=yes"},
        /* the stage may be in another file: with this it is 3 */
        {"{\"zero_optimization\": {\"stage\": \"auto\", \"overlap_comm\": "
         "\"auto\", \"cpu_offload\": true, \"cpu_offload_params\": true}}",
         NONE " zero=3 offload-weights=1 offload-optimizer=cpu "
              "precision=fp32"},
    };

    for (size_t i = 0; i < SC_COUNT(cases); i++)
        import_gives(DS, cases[i].text, cases[i].fields);
}

static void test_findings(void **state)
{
    (void)state;

    static const struct {
        const char *text, *errors;
    } wrong[] = {
        {"{\"zero_optimization\": {\"stage\": 4}}", "range 1:33"},
        {"{\"zero_optimization\": {\"stage\": \"two\"}}", "type 1:33"},
        {"{\"zero_optimization\": {\"stge\": 2}}", "unknown-key 1:24"},
        {"{\"train_batchsize\": 2, \"frobnicate\": 1}",
         "unknown-key 1:2, unknown-key 1:24"},
        {"{\"zero_optimization\": {\"stage\": 2,\n \"offload_param\": "
         "{\"device\": \"cpu\"}}}",
         "unsupported 2:30"},
        {"{\"zero_optimization\": {\"stage\": 3, \"offload_param\": "
         "{\"device\": \"disk\"}}}",
         "unknown-name 1:64"},
        {"{\"zero_optimization\": {\"stage\": 3, \"offload_param\": "
         "{\"device\": \"nvme\"}},\n\"activation_checkpointing\": "
         "{\"cpu_checkpointing\": true}}",
         "unsupported 2:51"},
        {"{\"sparse_attention\": {\"mode\": \"fixed\"}}", "unsupported 1:2"},
        {"{\"fp16\": {\"enabled\": true}, \"bf16\": {\"enabled\": true}}",
         "conflict 1:22"},
        {"{\"train_batch_size\": [1]}", "type 1:22"},
        {"{\"fp17\": null, \"bf16\": true}",
         "unknown-key 1:2, unknown-key 1:16"},
        {"[1]", "type 1:1"},
        {"{\"bf16\": ", "syntax 1:10"},
    };

    for (size_t i = 0; i < SC_COUNT(wrong); i++)
        import_fails(DS, wrong[i].text, wrong[i].errors);
    import_warns(DS, "{\"optimizer\": {\"type\": \"Lamb\"}}",
                 "f:1:24: optimizer Lamb is modelled as Adam");
    import_warns(DS, "{\"zero_optimization\": {\"reduce_bucket_size\": 5e8}}",
                 "f:1:24: zero_optimization.reduce_bucket_size is not");
    import_warns(DS,
                 "{\"zero_optimization\": {\"stage\": 3, "
                 "\"offload_param\": {\"device\": \"nvme\"}}}",
                 "the 1e+09 elements of a rank that stay in host memory");
    import_warns(DS, "{\"flops_profiler\": {\"enabled\": true}}",
                 "flops_profiler is not modelled");
    import_warns(DS,
                 "{\"flops_profiler\": {\"enabled\": false}, \"amp\": "
                 "{\"enabled\": false}, \"elasticity\": null, \"seed\": 3, "
                 "\"optimizer\": {\"type\": \"AdamW\"}}",
                 NULL);
    import_warns(DS, "{\"train_micro_batch_size_per_gpu\": 1}",
                 "number of processes is not known");
}

static void read_two(import_case *r, const sc_import_file f[2])
{
    import_open(r);
    r->status = sc_import_read(f, 2, NULL, &r->a, &r->job, &r->out, &r->err);
}

#define SCRIPT                                                              \
    "torchrun --nproc_per_node 8 --nnodes 2 pretrain_gpt.py --num-layers "  \
    "24 --hidden-size 1024 --num-attention-heads 16 --seq-length 2048 "     \
    "--micro-batch-size 2 --max-position-embeddings 2048 --vocab-size "     \
    "50000 --tensor-model-parallel-size 2 --deepspeed --deepspeed_config x" \
    " --bf16 "

/* A script's tp replaces DeepSpeed's default, and the file's stage that of the
 * script; what both say must be equal. */
static void test_two_files(void **state)
{
    (void)state;
    const char *json = "{\"zero_optimization\": {\"stage\": 1}, \"bf16\": "
                       "{\"enabled\": true}, \"gradient_accumulation_steps\": "
                       "1}";
    const char *other = "{\"train_micro_batch_size_per_gpu\": 1}";
    import_case r;
    sc_import_file f[2] = {
        {"s.sh", SCRIPT "\n", strlen(SCRIPT "\n"), SC_IMPORT_MEGATRON},
        {"d.json", json, strlen(json), DS}};
    read_two(&r, f);
    none_found(&r.err, json);
    assert_int_equal(r.job.tp, 2);
    assert_int_equal(r.job.dp, 8); /* 16 / 2 */
    assert_int_equal(r.job.zero, 1);
    assert_int_equal(r.job.gbs, 16); /* Megatron-LM's default: 2 x 8 */
    assert_int_equal(r.out.n_warnings, 0);
    sc_arena_free(&r.a);

    f[1].text = other;
    f[1].len = strlen(other);
    read_two(&r, f);
    assert_int_equal(r.status, SC_EINPUT);
    assert_int_equal(r.err.n, 1);
    assert_int_equal(r.err.d[0].code, SC_C_CONFLICT);
    assert_string_equal(r.err.d[0].file, "s.sh");
    assert_string_equal(
        r.err.d[0].hint,
        "d.json:1:2: train_micro_batch_size_per_gpu 1 has another value");
    sc_arena_free(&r.a);
}

/* The batch of 64 is not 2 x 4 x 16, the ranks of the script. */
static void test_batch(void **state)
{
    (void)state;
    const char *json = "{\"train_batch_size\": 64,\n"
                       " \"gradient_accumulation_steps\": 4}";
    import_case r;
    sc_import_file f[2] = {{"d.json", json, strlen(json), DS},
                           {"s.sh", SCRIPT "--tensor-model-parallel-size 1\n",
                            strlen(SCRIPT "--tensor-model-parallel-size 1\n"),
                            SC_IMPORT_MEGATRON}};
    char found[FINDINGS];
    read_two(&r, f);
    findings(&r.err, found);
    assert_string_equal(found, "conflict 2:33");
    sc_arena_free(&r.a);
}

/* What the command line gives stays, and is no conflict. */
static void test_given(void **state)
{
    (void)state;
    const char *json = "{\"zero_optimization\": {\"stage\": 1}}";
    sc_import_file f = {"d.json", json, strlen(json), DS};
    import_case r;
    import_open(&r);
    r.job.zero = 3;
    r.job.tp = 4;
    assert_int_equal(sc_import_read(&f, 1, NULL, &r.a, &r.job, &r.out, &r.err),
                     SC_OK);
    assert_int_equal(r.job.zero, 3);
    assert_int_equal(r.job.tp, 4);
    assert_int_equal(r.job.pp, 1);
    sc_arena_free(&r.a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_meaning), cmocka_unit_test(test_findings),
        cmocka_unit_test(test_two_files), cmocka_unit_test(test_batch),
        cmocka_unit_test(test_given)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
