/* SPDX-License-Identifier: Apache-2.0 */
/* test_import_megatron.c - launch scripts and argument lists of Megatron-LM: what
 * they mean, and every error with its place. */
#include "megatron_case.h"

static void test_list(void **state)
{
    (void)state;
    reading r;
    good(&r, "# a comment\n--num-layers 24 \\\n --hidden-size=1024\n"
             "--num_attention_heads 16 --bf16\n" RUN REST
             "--tensor-model-parallel-size 4 --sequence-parallel\n"
             "--pipeline-model-parallel-size 2\n"
             "--num-layers-per-virtual-pipeline-stage 3\n"
             "--use-distributed-optimizer --overlap-grad-reduce\n"
             "--global-batch-size 64 --recompute-activations\n"
             "--lr 3e-4 --tensorboard-dir /x --clip-grad 1.0\n");
    assert_int_equal(r.job.tp, 4);
    assert_int_equal(r.job.pp, 2);
    assert_int_equal(r.job.vpp, 4);
    assert_int_equal(r.job.cp, 1);
    assert_int_equal(r.job.dp, 0);
    assert_int_equal(r.job.gbs, 64);
    assert_int_equal(r.job.mbs, 2);
    assert_int_equal(r.job.seq, 2048);
    assert_int_equal(r.job.zero, 1);
    assert_int_equal(r.job.sp, 1);
    assert_int_equal(r.job.grad_overlap, 1);
    assert_int_equal(r.job.recompute, SC_RC_SELECTIVE);
    assert_int_equal(r.job.schedule, SC_SCH_INTERLEAVED);
    assert_int_equal(r.job.precision, SC_BF16);
    assert_true(r.job.grad_bytes == 4);
    assert_int_equal(r.m.n_warnings, 0);
    assert_true(r.m.has_model);
    assert_int_equal(r.m.model.layers, 24);
    assert_int_equal(r.m.model.ffn, 4096);
    assert_int_equal(r.m.model.vocab, 50176); /* multiple of 128 x 4 */
    assert_int_equal(r.m.model.position, SC_POS_LEARNED);
    assert_true(r.m.model.tied && r.m.model.bias && r.m.model.dropout);
    assert_string_equal(origin(&r, false, "tp"),
                        "f:6:1: --tensor-model-parallel-size 4");
    assert_string_equal(origin(&r, false, "cp"),
                        "default: no --context-parallel-size in f");
    assert_string_equal(origin(&r, true, "heads"),
                        "f:4:1: --num-attention-heads 16");
    sc_arena_free(&r.a);
}

static const char script[] =
    "#!/bin/bash\n"
    "#SBATCH --nodes=2 --ntasks-per-node=1\n"
    "export NCCL_ALGO=Ring NCCL_DEBUG=${NCCL_DEBUG:-WARN}\n"
    "GPUS=8\nNODES=4 # of them\n"
    "WORLD=$(( GPUS*$NODES )); TP=2\n"
    "DATA=${1:-\"data\"}; mkdir -p \"$(dirname \"$DATA\")\"\n"
    "LAUNCH=( --nproc_per_node $GPUS --nnodes \"$NODES\" )\n"
    "MODEL=(\n  --num-layers 32   # blocks\n  --hidden-size 4096\n"
    "  #--num-layers 99\n  --num-attention-heads 32 --swiglu\n"
    "  --group-query-attention --num-query-groups 8\n"
    "  '--normalization' \"RMSNorm\" --position-embedding-type rope\n"
    "  --untie-embeddings-and-output-weights --disable-bias-linear\n"
    "  --attention-dropout 0.0 --hidden-dropout 0 )\n"
    "if [[ \"$PRECISION\" == \"fp8\" || $TP -gt 1 ]]; then\n"
    "  EXTRA=\"--fp8-format hybrid\"\nelif false; then EXTRA=--fp16; else\n"
    "  EXTRA=--fp32\nfi\n"
    "case \"$TP\" in 1|2) MODEL+=( \"--vocab-size 32000\" );;\n"
    " *) MODEL+=( --vocab-size 1 ) ;; esac\n"
    "[ -f nothing ] || echo none\n"
    "cat <<EOT > $FILE\n{ \"a\" : $(( ) \" ' \nEOT\n"
    "usage() { echo usage; exit 1; }\n"
    "run() {\n  CUDA_LAUNCH_BLOCKING=1 torchrun ${LAUNCH[@]} \\\n"
    "   pretrain_gpt.py ${MODEL[@]} --bf16 ${EXTRA} $MORE \\\n"
    "   --tensor-model-parallel-size $TP --seq-length 4096 \\\n"
    "   --micro-batch-size 1 --global-batch-size $((WORLD * 4 / 2)) "
    "2>&1 | tee log\n}\nrun && echo done\n";

static void test_script(void **state)
{
    (void)state;
    reading r;
    good(&r, script);
    assert_int_equal(r.job.tp, 2);
    assert_int_equal(r.job.dp, 16);
    assert_int_equal(r.job.gbs, 64);
    assert_int_equal(r.job.precision, SC_FP8);
    assert_true(r.job.launch_blocking);
    assert_int_equal(r.m.world, 32);
    assert_int_equal(r.m.nodes, 4);
    assert_int_equal(r.m.per_node, 8);
    assert_int_equal(r.m.model.layers, 32);
    assert_int_equal(r.m.model.kv_heads, 8);
    assert_int_equal(r.m.model.vocab, 32000);
    assert_int_equal(r.m.model.ffn, 10880); /* 8/3 h, down to 64 */
    assert_int_equal(r.m.model.norm, SC_NORM_RMS);
    assert_int_equal(r.m.model.max_seq, 4096);
    assert_false(r.m.model.tied || r.m.model.bias || r.m.model.dropout);
    assert_int_equal(r.m.n_env, 2);
    /* an option that is not written on the line of its value */
    assert_string_equal(origin(&r, false, "tp"),
                        "f:33:4: --tensor-model-parallel-size 2 (line 6)");
    assert_string_equal(origin(&r, true, "layers"), "f:10:3: --num-layers 32");
    assert_string_equal(origin(&r, false, "precision"),
                        "f:19:10: --fp8-format hybrid");
    assert_int_equal(r.m.n_warnings, 1);
    assert_string_equal(r.m.warnings[0],
                        "f:32:48: $MORE is not set here and taken as empty");
    sc_arena_free(&r.a);
}

static void test_wrappers(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "srun -N 2 --ntasks-per-node=8 python pretrain_gpt.py " WHOLE,
        "A=\"python -u x/pretrain_gpt.py \\\n " SIZES "\\\n " RUN "\"\n"
        "srun -l --nodes 2 --ntasks-per-node=8 sh -c \"$A --vocab-size 50000 "
        "--max-position-embeddings 2048\" > o\n",
        "mpirun -np 16 --map-by node bash -lc 'python pretrain_gpt.py "
        "--num-layers 24 --hidden-size 1024 --num-attention-heads 16 "
        "--seq-length 2048 --micro-batch-size 2 --max-position-embeddings "
        "2048 --vocab-size 50000'\n",
        "C=\"torchrun --nnodes=2 --nproc-per-node=8 pretrain_gpt.py\"\n"
        "eval \"$C\" " WHOLE,
        "deepspeed --num_nodes 2 --num_gpus 8 pretrain_gpt.py $@ " WHOLE,
        "(\n{ [ -z \"$X\" ] && ! false && torchrun --nnodes=2 "
        "--nproc_per_node=8 -m pretrain_gpt " SIZES RUN
        "--vocab-size 50000 --max-position-embeddings 2048; }\n) &\nwait\n"};
    for (size_t i = 0; i < SC_COUNT(texts); i++) {
        reading r;
        good(&r, texts[i]);
        assert_int_equal(r.m.world, 16);
        assert_int_equal(r.job.dp, 16);
        assert_int_equal(r.m.model.hidden, 1024);
        assert_int_equal(r.m.model.vocab, 50048);
        sc_arena_free(&r.a);
    }
}

static void test_defines(void **state)
{
    (void)state;
    static const char *const define[] = {"NODES=2", "LAYERS=12", NULL};
    static const char *const wrong[] = {"NODES", NULL};
    static const char text[] =
        "torchrun --nnodes $NODES --nproc_per_node ${GPUS:=4} pretrain_gpt.py "
        "--num-layers ${LAYERS:-24} --hidden-size 64 --num-attention-heads "
        "4 " RUN REST;
    reading r;
    read_defined(&r, text, define);
    assert_int_equal(r.status, SC_OK);
    assert_int_equal(r.m.world, 8);
    assert_int_equal(r.m.model.layers, 12);
    sc_arena_free(&r.a);
    read_defined(&r, text, wrong);
    assert_int_equal(r.status, SC_EINPUT);
    sc_arena_free(&r.a);
    good(&r, text); /* the number of nodes stays open */
    assert_int_equal(r.m.world, 0);
    assert_int_equal(r.job.dp, 0);
    assert_int_equal(r.m.model.layers, 24);
    sc_arena_free(&r.a);
}

static void test_given_wins(void **state)
{
    (void)state;
    sc_arena a;
    sc_err err;
    sc_job job;
    sc_import m;
    static const char text[] =
        WHOLE "--tensor-model-parallel-size 4 --fp16 --zero-stage 2\n";
    sc_arena_init(&a, 0);
    sc_err_init(&err);
    sc_job_init(&job);
    job.tp = 8;
    job.precision = SC_BF16;
    assert_int_equal(
        sc_megatron_read(text, strlen(text), "f", NULL, &a, &job, &m, &err),
        SC_OK);
    assert_int_equal(job.tp, 8);
    assert_int_equal(job.precision, SC_BF16);
    assert_int_equal(job.zero, 2);
    assert_int_equal(m.model.vocab, 50176); /* padded for tp 8 */
    sc_arena_free(&a);
}

static void test_recompute(void **state)
{
    (void)state;
    reading r;
    good(&r, WHOLE "--recompute-granularity full --recompute-method block "
                   "--recompute-num-layers 2\n");
    assert_int_equal(r.job.recompute, SC_RC_FULL);
    assert_int_equal(r.job.rc_method, SC_RCM_BLOCK);
    assert_int_equal(r.job.rc_blocks, 2);
    sc_arena_free(&r.a);
    good(&r, WHOLE "--recompute-granularity full --recompute-method uniform\n");
    assert_int_equal(r.job.rc_method, SC_RCM_UNIFORM);
    assert_int_equal(r.job.rc_blocks, 1);
    sc_arena_free(&r.a);
    good(&r, WHOLE "--recompute-granularity selective\n");
    assert_int_equal(r.job.rc_method, SC_INFER);
    sc_arena_free(&r.a);
}

static void test_experts(void **state)
{
    (void)state;
    reading r;
    good(&r, WHOLE "--num-experts 64 --moe-router-topk 6 "
                   "--moe-ffn-hidden-size 1408 --moe-layer-freq "
                   "'([0]*1+[1]*23)' --expert-model-parallel-size 8 "
                   "--moe-shared-expert-intermediate-size 2816 "
                   "--moe-token-dispatcher-type alltoall --moe-grouped-gemm "
                   "--global-batch-size 64\n");
    assert_int_equal(r.job.ep, 8);
    assert_int_equal(r.m.model.experts, 64);
    assert_int_equal(r.m.model.topk, 6);
    assert_int_equal(r.m.model.moe_ffn, 1408);
    assert_int_equal(r.m.model.shared_ffn, 2816);
    assert_int_equal(r.m.model.first_dense, 1);
    if (r.m.n_warnings) fail_msg("%s", r.m.warnings[0]);
    sc_arena_free(&r.a);
}

/* The number of tokens by the tokenizer's name, padded to 128 x tp. */
static void test_tokenizers(void **state)
{
    (void)state;

    static const struct {
        const char *options;
        int64_t vocab;       /* before padding to a multiple of 128 */
        const char *assumed; /* part of the assumption */
    } cases[] = {
        {"", 50257, "vocabulary 50257: that of GPT2BPETokenizer, the default"},
        {"--tokenizer-type GPT2BPETokenizer", 50257, "GPT2BPETokenizer"},
        {"--tokenizer-type Llama2Tokenizer --tokenizer-model $X", 32000,
         "Llama2Tokenizer"},
        {"--tokenizer-type HuggingFaceTokenizer --tokenizer-model "
         "meta-llama/Meta-Llama-3-8B",
         128256, "Llama 3"},
        {"--tokenizer-type HuggingFaceTokenizer --tokenizer-model "
         "/models/Mixtral-8x7B-v0.1",
         32000, "Mixtral 8x7B"},
    };

    for (size_t i = 0; i < SC_COUNT(cases); i++) {
        reading r;
        char text[400];
        snprintf(text, sizeof text,
                 SIZES RUN "--max-position-embeddings 2048 %s\n",
                 cases[i].options);
        good(&r, text);
        assert_int_equal(r.m.model.vocab, (cases[i].vocab + 127) / 128 * 128);
        assert_non_null(r.m.vocabulary);
        if (!strstr(r.m.vocabulary, cases[i].assumed))
            fail_msg("case %zu: %s", i, r.m.vocabulary);
        sc_arena_free(&r.a);
    }
}

/* The job's own vocabulary wins over the script's, and is padded, too. */
static void test_vocabulary(void **state)
{
    (void)state;
    reading r;
    const char *text = WHOLE "--tensor-model-parallel-size 2\n";
    sc_arena_init(&r.a, 0);
    sc_err_init(&r.err);
    sc_job_init(&r.job);
    memset(&r.m, 0, sizeof r.m);
    r.job.vocab = 1000;
    assert_int_equal(sc_megatron_read(text, strlen(text), "f", NULL, &r.a,
                                      &r.job, &r.m, &r.err),
                     SC_OK);
    assert_int_equal(r.m.model.vocab, 1024); /* 4 x 256 */
    assert_string_equal(origin(&r, true, "vocab"),
                        "--vocab-size, padded to a multiple of 256");
    sc_arena_free(&r.a);
}

/* Which blocks have the window: Megatron-LM counts them from 1. */
static void test_windows(void **state)
{
    (void)state;

    static const struct {
        const char *options;
        int64_t window, window_every, full_every;
    } cases[] = {
        {"--window-size 127,0", 128, 0, 0},
        {"--window-size '(127,0)' --window-attn-skip-freq 2", 128, 0, 2},
        {"--window-size 127,0 --window-attn-skip-freq 1", 0, 0, 0},
        {"--window-size 127,0 --window-attn-skip-freq [1,1,1,1,1,0]*4", 128, 0,
         6},
        {"--window-size 127,0 --window-attn-skip-freq '([1]+3*[0])*6'", 128, 4,
         0},
        {"--window-size 127,0 --window-attn-skip-freq [1]*24", 128, 0, 0},
        {"--window-size 127,0 --window-attn-skip-freq [0]*24", 0, 0, 0},
    };

    for (size_t i = 0; i < SC_COUNT(cases); i++) {
        reading r;
        char text[400];
        snprintf(text, sizeof text, "%s--softmax-type learnable %s\n", WHOLE,
                 cases[i].options);
        good(&r, text);
        assert_int_equal(r.m.model.window, cases[i].window);
        assert_int_equal(r.m.model.window_every, cases[i].window_every);
        assert_int_equal(r.m.model.full_every, cases[i].full_every);
        assert_true(r.m.model.sinks);
        sc_arena_free(&r.a);
    }
}

static void test_warnings(void **state)
{
    (void)state;

    static const struct {
        const char *text, *warning;
    } cases[] = {
        {WHOLE "--rampup-batch-size 16 16 1000\n", "batch ramps up"},
        {WHOLE "--frobnicate-the-widgets\n", "not modelled"},
        {WHOLE "--deepspeed_config ds.json\n", "ds.json"},
        {WHOLE "--num-query-groups 4\n", "without --group-query-attention"},
        {WHOLE "word\n", "'word' belongs"},
        {"if [ -f x ]; then A=1; fi\npython pretrain_gpt.py " WHOLE,
         "f:1:1: a condition that is only known when the script runs"},
        {"for i in 1 2; do A=$i; done\npython pretrain_gpt.py " WHOLE,
         "f:1:1: a loop"},
        {"source env.sh\npython pretrain_gpt.py " WHOLE,
         "file 'env.sh' is not read"},
        {"python pretrain_gpt.py " WHOLE "python pretrain_gpt.py " WHOLE,
         "f:2:8: the script launches a second program"},
        {"torchrun --nnodes 1 --nproc_per_node 8 pretrain_gpt.py "
         "--tensor-model-parallel-size 8 --pipeline-model-parallel-size "
         "16 " WHOLE,
         "8 processes are fewer than tp 8 x pp 16"},
        {WHOLE "--pipeline-model-parallel-size 5\n",
         "f:2:32: Megatron-LM refuses 24 layers on pp 5"},
        {WHOLE "--pipeline-model-parallel-size 5 "
               "--decoder-first-pipeline-num-layers 4\n",
         "f:2:34: --decoder-first-pipeline-num-layers is not modelled"},
    };

    for (size_t i = 0; i < SC_COUNT(cases); i++) {
        reading r;
        read_defined(&r, cases[i].text, NULL);
        if (strncmp(cases[i].warning, "'word'", 6) == 0) {
            /* behind an option with its value it is an error */
            assert_int_equal(r.status, SC_EINPUT);
            assert_non_null(strstr(r.err.d[0].msg, cases[i].warning));
            sc_arena_free(&r.a);
            continue;
        }
        assert_int_equal(r.status, SC_OK);
        bool found = false;
        for (uint32_t k = 0; k < r.m.n_warnings; k++)
            found = found || strstr(r.m.warnings[k], cases[i].warning);
        if (!found) fail_msg("no warning '%s'", cases[i].warning);
        sc_arena_free(&r.a);
    }
}

static void test_errors(void **state)
{
    (void)state;

    static const struct {
        const char *text, *errors; /* CODE LINE:COL, ... */
    } cases[] = {
        {"", "missing 0:0"},
        {"echo hello\n", "missing 0:0"},
        {"python pretrain_bert.py " WHOLE, "unsupported 0:0"},
        {SIZES REST, "missing 0:0, missing 0:0"},
        {WHOLE "--tensor-model-parallel-size 2x\n", "type 2:30"},
        {WHOLE "--tensor-model-parallel-size 0\n", "range 2:30"},
        {WHOLE "--tensor-model-parallel-size 1.5\n", "type 2:30"},
        {WHOLE "--tensor-model-parallel-size\n", "missing 2:1"},
        {WHOLE "--bf16 true\n", "syntax 2:8"},
        {WHOLE "--zero-stage 1 2\n", "syntax 2:16"},
        {WHOLE "--tensor-model-paralel-size 2\n", "unknown-key 2:1"},
        {WHOLE "--hiden-dropout 0\n--num-layres 3\n",
         "unknown-key 2:1, unknown-key 3:1"},
        {WHOLE "--context-parallel-size $CP\n", "missing 2:25"},
        {WHOLE "--context-parallel-size $(nproc)\n", "missing 2:25"},
        {WHOLE "--bf16 --fp16\n", "conflict 2:8"},
        {WHOLE "--fp8-format int8\n", "unknown-name 2:14"},
        {WHOLE "--fp8-format e4m3 --fp8-recipe x\n", "unknown-name 2:32"},
        {WHOLE "--cp-comm-type ring\n", "unknown-name 2:16"},
        {WHOLE "--tensor-model-parallel-size 4 "
               "--expert-tensor-parallel-size 2\n",
         "unsupported 2:62"},
        {WHOLE "--expert-tensor-parallel-size two\n", "type 2:31"},
        {WHOLE "--moe-router-num-groups 0\n", "range 2:25"},
        {WHOLE "--tp-comm-overlap 1\n", "syntax 2:19"},
        {WHOLE "--moe-expert-capacity-factor -2\n", "range 2:30"},
        {WHOLE "--world-size 8 --num-distributed-optimizer-instances 3\n",
         "divide 2:54"},
        {WHOLE "--normalization Batch\n", "unknown-name 2:17"},
        {WHOLE "--position-embedding-type sine\n", "unknown-name 2:27"},
        {WHOLE "--recompute-granularity some\n", "unknown-name 2:25"},
        {WHOLE "--window-size x\n", "type 2:15"},
        {WHOLE "--group-query-attention --num-query-groups 5\n", "divide 2:44"},
        {WHOLE "--pipeline-model-parallel-size 5 "
               "--num-layers-per-virtual-pipeline-stage 2\n",
         "divide 2:74"},
        {WHOLE "--num-experts 8 --moe-router-topk 9\n", "conflict 2:35"},
        {WHOLE "--num-experts 8 --moe-layer-freq '([0]*2+[1]*3)'\n",
         "conflict 2:35"},
        {"--hidden-size 1024 --swiglu " RUN "\n", "missing 0:0, missing 0:0"},
        {"--num-layers 24 --hidden-size 1000 --num-attention-heads 16\n" RUN
             REST,
         "divide 1:58"},
        {SIZES RUN "--max-position-embeddings 2048 "
                   "--tokenizer-type TikTokenizer\n",
         "missing 1:148"},
        {WHOLE "--num-experts 4 --moe-layer-freq [1,2]\n", "unsupported 2:34"},
        {WHOLE "--num-experts 4 --moe-layer-freq [1]*3\n", "conflict 2:34"},
        {WHOLE "--window-size 127,0 --softmax-type sharp\n",
         "unknown-name 2:36"},
        {WHOLE "--window-size 127,0 --window-attn-skip-freq [1,1,0,0]*6\n",
         "unsupported 2:45"},
        {SIZES RUN "--vocab-size 50000\n", "missing 0:0"},
        /* of the shell */
        {"A='x\nB=2\n", "syntax 1:3"},
        {"A=2\nB=\"$(( A * ))\"\n", "syntax 2:4"},
        {"A=$((1 / 0))\n", "range 1:8"},
        {"A=$((3 + x y))\n", "syntax 1:12"},
        {"A=(1 2\npython x.py\n", "syntax 1:3"},
        {"if true; then\n A=1\n", "syntax 1:1"},
        {"A=1\nfi\n", "syntax 2:2"},
        {"A=${B\n", "syntax 1:4"},
        {"A=$(ls\n", "syntax 1:4"},
        {"case x in\n y) A=1 ;;\n", "syntax 1:1"},
        {"T=4x\npython pretrain_gpt.py --tensor-model-parallel-size $T " WHOLE,
         "type 1:3"},
        {"A=(\n --num-layers 24\n --seq-length 2k )\npython pretrain_gpt.py "
         "${A[@]} " SIZES "--micro-batch-size 1 " REST,
         "type 3:15"},
        {"--num-layers 24\xff\n", "syntax 1:16"},
    };

    for (size_t i = 0; i < SC_COUNT(cases); i++) {
        reading r;
        char got[FINDINGS];
        read_defined(&r, cases[i].text, NULL);
        findings(&r.err, got);
        if (r.status != SC_EINPUT || strcmp(got, cases[i].errors) != 0)
            fail_msg("case %zu: %s instead of %s\n%s\n%s", i, got,
                     cases[i].errors, cases[i].text,
                     r.err.n ? r.err.d[0].msg : "");
        assert_int_equal(r.job.tp, 0); /* nothing is written on errors */
        sc_arena_free(&r.a);
    }
}

/* The file that is written reads as the same job and model. */
static void test_yaml(void **state)
{
    (void)state;
    reading r;
    sc_text job, model;
    sc_node *root;
    sc_job again;
    sc_given given = {{0}};
    good(&r, script);
    sc_text_init(&job);
    sc_text_init(&model);
    sc_job_yaml(&r.job, &r.m, "my \"model\".yml", &job);
    sc_import_model_yaml(&r.m, &model);
    assert_non_null(strstr(job.buf,
                           "tp: 2                           # f:33:4: "
                           "--tensor-model-parallel-size 2 (line 6)\n"));
    sc_job_init(&again);
    assert_int_equal(
        sc_doc_parse(job.buf, job.len, SC_FMT_YAML, "j", &r.a, &root, &r.err),
        SC_OK);
    assert_int_equal(
        sc_schema_read(sc_job_keys, root, &again, &given, &r.a, &r.err), SC_OK);
    assert_string_equal(again.model, "my \"model\".yml");
    again.model = NULL;
    assert_int_equal(again.tp, r.job.tp);
    assert_int_equal(again.dp, r.job.dp);
    assert_int_equal(again.gbs, r.job.gbs);
    assert_int_equal(again.zero, r.job.zero);
    assert_int_equal(again.sp, r.job.sp);
    assert_int_equal(again.grad_overlap, r.job.grad_overlap);
    assert_int_equal(again.precision, r.job.precision);
    assert_int_equal(again.recompute, r.job.recompute);
    assert_int_equal(again.schedule, r.job.schedule);
    assert_true(again.grad_bytes == r.job.grad_bytes);
    assert_true(again.launch_blocking);
    sc_transformer t = {0};
    assert_int_equal(sc_doc_parse(model.buf, model.len, SC_FMT_YAML, "m", &r.a,
                                  &root, &r.err),
                     SC_OK);
    assert_int_equal(sc_schema_defaults(sc_transformer_keys, &t, &r.a, &r.err),
                     SC_OK);
    assert_int_equal(
        sc_schema_read(sc_transformer_keys, root, &t, NULL, &r.a, &r.err),
        SC_OK);
    const sc_model *a, *b;
    assert_int_equal(
        sc_model_from_transformer(&t, sc_pos_none(), &r.a, &a, &r.err), SC_OK);
    assert_int_equal(
        sc_model_from_transformer(&r.m.model, sc_pos_none(), &r.a, &b, &r.err),
        SC_OK);
    assert_true(a->hash == b->hash);
    assert_true(a->params == b->params);
    sc_text_free(&job);
    sc_text_free(&model);
    sc_arena_free(&r.a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_list),       cmocka_unit_test(test_script),
        cmocka_unit_test(test_wrappers),   cmocka_unit_test(test_defines),
        cmocka_unit_test(test_given_wins), cmocka_unit_test(test_recompute),
        cmocka_unit_test(test_experts),    cmocka_unit_test(test_tokenizers),
        cmocka_unit_test(test_vocabulary), cmocka_unit_test(test_windows),
        cmocka_unit_test(test_warnings),   cmocka_unit_test(test_errors),
        cmocka_unit_test(test_yaml)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
