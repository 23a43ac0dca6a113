/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of measured runs as jobs: what is read, what is left to infer, what is
 * refused with a reason. */
#include "calib/runs.h"
#include "fixture.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* A row that can be expressed; tests change some of its cells. */
static const char *const names[CALIB_N_COLUMNS] = {
#define NAME(id, name, role, lo, hi) name,
    CALIB_COLUMNS(NAME)
#undef NAME
};

typedef struct cell {
    calib_column col;
    const char *text;
} cell;

static const cell plain[] = {{C_ID, "r1"},       {C_FAMILY, "fam"},
                             {C_MODEL, "GPT-X"}, {C_CLASS, "dense-gpt"},
                             {C_LAYERS, "24"},   {C_HIDDEN, "2048"},
                             {C_HEADS, "16"},    {C_VOCAB, "51200"},
                             {C_SEQ, "2048"},    {C_GPU, "A100-SXM-80GB"},
                             {C_GPUS, "16"},     {C_PER_NODE, "8"},
                             {C_NODES, "2"},     {C_INTRA, "300"},
                             {C_INTER, "12.5"},  {C_SOFTWARE, "megatron-lm"},
                             {C_DATE, "2021"},   {C_PRECISION, "FP16"},
                             {C_GBS, "64"},      {C_MBS, "2"},
                             {C_TP, "2"},        {C_PP, "2"},
                             {C_DP, "4"},        {C_SP, "no"},
                             {C_SHARD, "DDP"},   {C_RECOMPUTE, "full"},
                             {C_ITER, "1.25"},   {C_QUALITY, "A"}};

static sc_status read_text(const char *text, calib_run **run, uint32_t *n)
{
    sc_csv t;
    char *copy = sc_strdup(&arena, text);
    assert_non_null(copy);
    assert_int_equal(
        sc_csv_parse(copy, strlen(copy), "t.csv", &arena, &t, &err), SC_OK);
    return calib_runs_read(&t, 1, &arena, run, n, &err);
}

/* The plain row with some cells changed, as a table of one row. */
static const char *table(const cell *change, size_t n)
{
    sc_text t;
    sc_text_init(&t);
    for (int c = 0; c < (int)CALIB_N_COLUMNS; c++)
        sc_text_add(&t, "%s%s", c ? "," : "", names[c]);
    sc_text_add(&t, "\n");
    for (int c = 0; c < (int)CALIB_N_COLUMNS; c++) {
        const char *v = "";
        for (size_t i = 0; i < SC_COUNT(plain); i++)
            if ((int)plain[i].col == c) v = plain[i].text;
        for (size_t i = 0; i < n; i++)
            if ((int)change[i].col == c) v = change[i].text;
        sc_text_add(&t, "%s%s", c ? "," : "", v);
    }
    const char *text = sc_strdup(&arena, t.buf);
    sc_text_free(&t);
    assert_non_null(text);
    return text;
}

#define CHANGE(...)                         \
    change_row((const cell[]){__VA_ARGS__}, \
               sizeof((const cell[]){__VA_ARGS__}) / sizeof(cell))

static const calib_run *change_row(const cell *change, size_t n)
{
    calib_run *run;
    uint32_t rows;
    if (read_text(table(change, n), &run, &rows) != SC_OK)
        fail_msg("%s", err.d[0].msg);
    assert_int_equal(rows, 1);
    return run;
}

static void every_cell(void **state)
{
    (void)state;
    const calib_run *r = CHANGE({C_KV_HEADS, "16"}, {C_FFN, "8192"},
                                {C_VPP, "3"}, {C_CP, "1"}, {C_MEM, "40"});
    assert_null(r->reason);
    assert_null(r->unscored);
    assert_string_equal(r->id, "r1");
    assert_string_equal(r->family, "fam");
    assert_string_equal(r->device, "A100-SXM-80GB");
    assert_true(r->measured == 1.25);
    assert_true(r->mem_measured == 40.0 * 1073741824);
    assert_int_equal(r->job.tp, 2);
    assert_int_equal(r->job.pp, 2);
    assert_int_equal(r->job.dp, 4);
    assert_int_equal(r->job.vpp, 3);
    assert_int_equal(r->job.gbs, 64);
    assert_int_equal(r->job.mbs, 2);
    assert_int_equal(r->job.seq, 2048);
    assert_int_equal(r->job.zero, 0);
    assert_int_equal(r->job.sp, 0);
    assert_int_equal(r->job.precision, SC_FP16);
    assert_int_equal(r->job.recompute, SC_RC_FULL);
    assert_false(r->job.fsdp || r->job.launch_blocking || r->job.numa_unbound);
    assert_int_equal(r->hw->n_devices, 16);
    assert_int_equal(r->hw->n_nodes, 2);
    const sc_transformer *t = &r->model->t;
    assert_int_equal(t->layers, 24);
    assert_int_equal(t->hidden, 2048);
    assert_int_equal(t->ffn, 8192);
    assert_int_equal(t->position, SC_POS_LEARNED);
    assert_true(t->tied && t->bias && t->norm_bias && t->dropout);
    assert_false(t->embed_norm);
    assert_string_equal(r->sw->name, "megatron-lm-2021");
    assert_int_equal(r->n_assumptions, 0);
}

/* What is not given stays open, for sc_predict to infer. */
static void nothing_is_guessed(void **state)
{
    (void)state;
    const calib_run *r = CHANGE({C_TP, ""}, {C_PP, "see recipe"}, {C_DP, ""},
                                {C_MBS, ""}, {C_SP, ""}, {C_SHARD, ""},
                                {C_RECOMPUTE, "see recipe"}, {C_PRECISION, ""});
    sc_job none;
    sc_job_init(&none);
    assert_null(r->reason);
    assert_int_equal(r->job.tp, 0);
    assert_int_equal(r->job.pp, 0);
    assert_int_equal(r->job.dp, 0);
    assert_int_equal(r->job.mbs, 0);
    assert_int_equal(r->job.vpp, 0);
    assert_int_equal(r->job.sp, SC_INFER);
    assert_int_equal(r->job.zero, none.zero);
    assert_int_equal(r->job.recompute, SC_INFER);
    assert_int_equal(r->job.precision, SC_INFER);
}

/* Two rows that differ in the family alone make the same job. */
static void family_changes_nothing(void **state)
{
    (void)state;
    const calib_run *a = CHANGE({C_FAMILY, "one"}, {C_VOCAB, ""});
    const calib_run *b = CHANGE({C_FAMILY, "two"}, {C_VOCAB, ""});
    sc_job one = a->job, two = b->job;
    one.model = one.cluster = one.software = NULL; /* equal, at other places */
    two.model = two.cluster = two.software = NULL;
    assert_memory_equal(&one, &two, sizeof one);
    assert_int_equal(a->model->hash, b->model->hash);
    assert_int_equal(a->hw->hash, b->hw->hash);
    assert_string_equal(a->sw->name, b->sw->name);
}

static void heads_and_vocabulary(void **state)
{
    (void)state;

    static const struct {
        const char *hidden, *tp;
        int heads;
    } cases[] = {
        {"2048", "2", 16},   {"14400", "8", 64}, /* 112.5 is not whole */
        {"13824", "8", 64},                      /* 108 is not divisible by 8 */
        {"13824", "4", 108}, {"14336", "8", 112}, {"12288", "", 96}};

    for (size_t i = 0; i < SC_COUNT(cases); i++) {
        const calib_run *r =
            CHANGE({C_HEADS, ""}, {C_HIDDEN, cases[i].hidden},
                   {C_TP, cases[i].tp}, {C_DP, ""}, {C_VOCAB, ""});
        assert_null(r->reason);
        assert_int_equal(r->model->t.heads, cases[i].heads);
        assert_int_equal(r->model->t.vocab, 51200);
        assert_int_equal(r->n_assumptions, 2);
        assert_non_null(strstr(r->assumptions[0], "heads"));
        assert_non_null(strstr(r->assumptions[1], "vocabulary"));
    }
}

static void kinds_of_models(void **state)
{
    (void)state;
    const sc_transformer *t = &CHANGE({C_MODEL, "BLOOM-like-1B"})->model->t;
    assert_int_equal(t->position, SC_POS_ALIBI);
    assert_true(t->embed_norm && t->tied && t->bias);
    t = &CHANGE({C_VOCAB, "250880"})->model->t;
    assert_false(t->embed_norm); /* a vocabulary says nothing */
    t = &CHANGE({C_MODEL, "MPT-1b"}, {C_SOFTWARE, "llm-foundry"})->model->t;
    assert_int_equal(t->position, SC_POS_LEARNED);
    assert_true(t->tied && t->bias);
    assert_false(t->dropout || t->embed_norm);
    const calib_run *r = CHANGE({C_CLASS, "moe-gqa"}, {C_EXPERTS, "8"},
                                {C_TOPK, "2"}, {C_MOE_FFN, "4096"});
    assert_null(r->reason); /* built from the sizes */
    assert_int_equal(r->model->t.experts, 8);
    r = CHANGE({C_MODEL, "LLAMA3_8B"}, {C_CLASS, "dense-gqa"}, {C_LAYERS, ""},
               {C_HIDDEN, ""}, {C_HEADS, ""}, {C_VOCAB, ""}, {C_TP, "1"},
               {C_DP, "8"});
    assert_null(r->reason); /* sizes of the published model */
    assert_int_equal(r->model->t.layers, 32);
    assert_int_equal(r->model->t.hidden, 4096);
    t = &CHANGE({C_CLASS, "dense-gqa"}, {C_KV_HEADS, "8"})->model->t;
    assert_int_equal(t->position, SC_POS_ROTARY);
    assert_int_equal(t->act, SC_ACT_SWIGLU);
    assert_int_equal(t->norm, SC_NORM_RMS);
    assert_int_equal(t->kv_heads, 8);
    assert_false(t->tied || t->bias || t->dropout);
}

static void sharding(void **state)
{
    (void)state;

    static const struct {
        const char *text;
        int zero;
        bool fsdp;
    } cases[] = {{"none (DP=1)", 0, false},
                 {"DDP (Megatron-DeepSpeed)", 0, false},
                 {"ZeRO-1", 1, false},
                 {"DistOpt(ZeRO-1)", 1, false},
                 {"FSDP (ZeRO-2-like)", 2, false},
                 {"FSDP-SHARD_GRAD_OP", 2, false},
                 {"ZeRO-3", 3, false},
                 {"FSDP-FULL_SHARD", 3, true},
                 {"FSDP2", 3, true}};

    for (size_t i = 0; i < SC_COUNT(cases); i++) {
        const calib_run *r = CHANGE({C_SHARD, cases[i].text});
        assert_null(r->reason);
        assert_int_equal(r->job.zero, cases[i].zero);
        assert_int_equal(r->job.fsdp, cases[i].fsdp);
    }
}

static void conditions(void **state)
{
    (void)state;
    const calib_run *r =
        CHANGE({C_CONDITIONS,
                "CUDA_LAUNCH_BLOCKING=1; before the PCIe/NUMA affinity fix"});
    assert_true(r->job.launch_blocking && r->job.numa_unbound);
    assert_true(r->job.grad_bytes == 0);
    r = CHANGE({C_CONDITIONS, "fp32 gradient accumulation"});
    assert_true(r->job.grad_bytes == 4);
    const char *software = "\"llm-foundry (composer, pytorch fsdp)\"";
    r = CHANGE({C_SOFTWARE, software}, {C_DATE, "2023"},
               {C_CONDITIONS, "mixed_precision=DEFAULT"});
    assert_null(r->reason);
    assert_string_equal(r->sw->name, "llm-foundry-2023");
    r = CHANGE({C_SOFTWARE, software}, {C_DATE, "2023"},
               {C_CONDITIONS, "mixed_precision=PURE"});
    assert_null(r->reason);
    assert_string_equal(r->sw->name, "llm-foundry-pure-2023");
}

static void reasons(void **state)
{
    (void)state;

    static const struct {
        cell change;
        const char *reason;
    } cases[] = {
        {{C_CLASS, "gnn"}, "no model is called"},
        {{C_QUALITY, "C"}, "quality C or D"},
        {{C_ITER, ""}, "no measured step time"},
        {{C_GPUS, "2e6"}, "devices"},
        {{C_HEADS, "17"}, "17"},
    };

    for (size_t i = 0; i < SC_COUNT(cases); i++) {
        const calib_run *r = CHANGE(cases[i].change);
        if (!r->reason || !strstr(r->reason, cases[i].reason))
            fail_msg("\"%s\" instead of \"%s\"",
                     r->reason ? r->reason : "(none)", cases[i].reason);
    }
}

/* What is not known is the nearest that is, with a warning. */
static void warnings(void **state)
{
    (void)state;

    static const struct {
        cell change;
        const char *warning;
    } cases[] = {
        {{C_PRECISION, "FP3"}, "precision \"FP3\" is not known"},
        {{C_RECOMPUTE, "sometimes"}, "recompute \"sometimes\""},
        {{C_SP, "maybe"}, "sequence parallelism \"maybe\""},
        {{C_SHARD, "by hand"}, "sharding \"by hand\""},
        {{C_CONDITIONS, "at night"}, "condition \"at night\""},
        {{C_SOFTWARE, "megatron-lm of ours"}, "the nearest name"},
        {{C_SOFTWARE, "no-such-program"}, "the newest program"},
        {{C_GPU, "A101-SXM-80GB"}, "a100-sxm-80g is the nearest name"},
        {{C_DP, "5"}, "the degrees are inferred"},
        {{C_CLASS, "dense-odd"}, NULL},
    };

    for (size_t i = 0; i < SC_COUNT(cases); i++) {
        const cell change[] = {cases[i].change, {C_GA, "8"}};
        const calib_run *r = change_row(change, 2);
        if (r->reason) fail_msg("%s", r->reason);
        if (!cases[i].warning) continue;
        if (r->n_warnings != 1 || !strstr(r->warnings[0], cases[i].warning))
            fail_msg("\"%s\" instead of \"%s\"",
                     r->n_warnings ? r->warnings[0] : "(none)",
                     cases[i].warning);
    }
}

/* Columns and cells as other people write them. */
static void other_spellings(void **state)
{
    (void)state;
    calib_run *r = NULL;
    uint32_t n = 0;
    assert_int_equal(
        read_text("Model Name,GPU Type,Num GPUs,Sequence Length,"
                  "Global Batch Size,micro_batch_size,dtype,tp_size,"
                  "Step Time (ms)\n"
                  "llama3-8b,8xH100,8,8k,\"1,024\",n/a,fp8_block,-,2500\n"
                  "DeepSeek V3 671B,Abacus 9000,12,4096,,1,bf16,1,2500\n",
                  &r, &n),
        SC_OK);
    assert_int_equal(n, 2);
    assert_null(r[0].reason);
    assert_string_equal(r[0].hw->device->name, "h100-sxm");
    assert_int_equal(r[0].job.seq, 8192);
    assert_int_equal(r[0].job.gbs, 1024);
    assert_int_equal(r[0].job.mbs, 0);
    assert_int_equal(r[0].job.precision, SC_RECIPE_FP8_BLOCK);
    assert_true(fabs(r[0].measured - 2.5) < 1e-12);
    assert_null(r[1].reason);
    assert_int_equal(r[1].hw->node_size, 6);
    assert_int_equal(r[1].model->t.layers, 61);
    assert_int_equal(r[1].n_warnings, 3);
}

/* Words count in conditions, overlap_notes and notes. */
static void words(void **state)
{
    (void)state;
    assert_int_equal(CHANGE({C_NOTES, "2D+AsyncTP"})->job.tp_overlap, 1);
    assert_int_equal(CHANGE({C_OVERLAP, "no TP overlap"})->job.tp_overlap, 0);
    assert_int_equal(CHANGE({C_CONDITIONS, "vanilla TP"})->job.tp_overlap, 0);
    assert_int_equal(CHANGE({C_NOTES, "the tp overlapping"})->job.tp_overlap,
                     SC_INFER);
    assert_int_equal(
        CHANGE({C_NOTES, "full-iteration CUDA graphs"})->job.capture,
        SC_CAPTURE_STEP);
    assert_int_equal(CHANGE({C_NOTES, "no CUDA graphs"})->job.capture,
                     SC_CAPTURE_NONE);
    assert_int_equal(CHANGE({C_MODEL, "X LoRA"})->model->t.lora, 16);
    assert_false(CHANGE({C_NOTES, "a; embeddings untied"})->model->t.tied);
    assert_int_equal(CHANGE({C_SHARD, "FSDP (HSDP: 8 ranks shard)"})->job.hsdp,
                     8);
}

/* Options of `predict` and keys of model.yml are columns, too. */
static void other_columns(void **state)
{
    (void)state;
    calib_run *run;
    uint32_t n;
    const char *text = table(NULL, 0), *line = strchr(text, '\n');
    const char *all = sc_sprintf(
        &arena,
        "%.*s,tp_overlap,cuda_graphs,power_cap,model.position,mean_tokens\n"
        "%.*s,yes,step,300W,alibi,512\n",
        (int)(line - text), text, (int)strlen(line + 1), line + 1);
    assert_int_equal(read_text(all, &run, &n), SC_OK);
    assert_null(run->reason);
    assert_int_equal(run->job.tp_overlap, 1);
    assert_int_equal(run->job.capture, SC_CAPTURE_STEP);
    assert_int_equal(run->job.mean_tokens, 512);
    assert_true(run->job.power_cap == 300);
    assert_true(run->hw->device->power_w == 300);
    assert_int_equal(run->model->t.position, SC_POS_ALIBI);
    assert_true(run->config_key != CHANGE({C_ID, "r1"})->config_key);
}

/* A row without step time, or a formula's figure, still has memory. */
static void memory_only(void **state)
{
    (void)state;
    const calib_run *r = CHANGE({C_ITER, ""}, {C_MEM, "31.5"});
    assert_null(r->reason);
    assert_non_null(r->unscored);
    assert_true(isnan(r->measured));
    assert_true(r->mem_measured == 31.5 * 1073741824);
    assert_false(r->mem_formula);
    r = CHANGE({C_NOTES, "analytic figure of a paper"}, {C_QUALITY, "C"},
               {C_ITER, ""}, {C_MEM, "31.5"});
    assert_null(r->reason);
    assert_true(r->mem_formula);
    r = CHANGE({C_FAMILY, "korthikanti-2022-mem"}, {C_QUALITY, "C"},
               {C_ITER, ""}, {C_MEM, "31.5"});
    assert_false(r->mem_formula); /* a family's name says nothing */
    assert_non_null(r->reason);
    r = CHANGE({C_QUALITY, "C"}, {C_MEM, "31.5"});
    assert_non_null(r->reason); /* ambiguous: memory is no better */
}

static void computed_dp(void **state)
{
    (void)state;
    const calib_run *r = CHANGE({C_DP, "8"});
    assert_null(r->reason);
    assert_int_equal(r->job.dp, 4);
    assert_int_equal(r->n_assumptions, 1);
    assert_non_null(strstr(r->assumptions[0], "dp 4"));
}

static void keys(void **state)
{
    (void)state;
    const calib_run *r = CHANGE({C_ID, "r1"});
    const calib_run *again = CHANGE({C_ID, "r2"}, {C_ITER, "9"});
    const calib_run *split = CHANGE({C_TP, "4"}, {C_DP, "2"}, {C_MBS, "1"});
    const calib_run *batch = CHANGE({C_GBS, "128"});
    assert_true(r->config_key == again->config_key);
    assert_true(r->group_key == again->group_key);
    assert_true(r->config_key != split->config_key);
    assert_true(r->group_key == split->group_key);
    assert_true(r->group_key != batch->group_key);
}

static void bad_cells_are_errors(void **state)
{
    (void)state;
    static const cell cases[] = {
        {C_GPUS, "many"},   {C_GPUS, "-8"},    {C_GPUS, "1e30"},
        {C_TP, "2.5"},      {C_TP, "0"},       {C_ITER, "nan"},
        {C_ITER, "1s"},     {C_LAYERS, "inf"}, {C_MEM, "-1"},
        {C_OUTCOME, "OOM"}, {C_HIDDEN, "0x10"}};
    for (size_t i = 0; i < SC_COUNT(cases); i++) {
        calib_run *run;
        uint32_t n;
        sc_err_init(&err);
        assert_int_equal(read_text(table(&cases[i], 1), &run, &n), SC_EINPUT);
        assert_int_equal(err.n, 1);
        assert_string_equal(err.d[0].file, "t.csv");
        assert_int_equal(err.d[0].line, 2);
        assert_non_null(strstr(err.d[0].msg, names[cases[i].col]));
    }
    calib_run *run;
    uint32_t n;
    const cell two[] = {{C_GPUS, "many"}, {C_TP, "x"}};
    sc_err_init(&err);
    assert_int_equal(read_text(table(two, 2), &run, &n), SC_EINPUT);
    assert_int_equal(err.n, 2); /* all of a file in one pass */
}

static void other_tables(void **state)
{
    (void)state;
    calib_run *run;
    uint32_t n;
    assert_int_equal(read_text("a,b\n1,2\n", &run, &n), SC_EINPUT);
    sc_csv t = {.n_cols = 0};
    assert_false(calib_runs_table(&t));
}

static void outcomes(void **state)
{
    (void)state;
    assert_int_equal(CHANGE({C_OUTCOME, ""})->outcome, CALIB_RAN);
    assert_int_equal(CHANGE({C_ITER, ""}, {C_OUTCOME, "ran"})->outcome,
                     CALIB_RAN);
    const calib_run *r = CHANGE({C_ITER, ""}, {C_OUTCOME, "oom"});
    assert_int_equal(r->outcome, CALIB_OOM);
    assert_null(r->reason);
    assert_null(r->unscored);
    assert_true(isnan(r->measured));
    r = CHANGE({C_QUALITY, "C"}, {C_MEM, "31.5"});
    assert_int_equal(r->outcome, CALIB_UNKNOWN);
}

/* The table of the Ultra-Scale Playbook states only what differs. */
static void out_of_memory(void **state)
{
    (void)state;
    calib_run *r = NULL;
    uint32_t n = 0;
    assert_int_equal(read_text("model,nodes,mbs,ga,dp,pp,tp,zero\n"
                               "1.34,2,4,8,4,2,2,1\n"
                               "8.86,1,1,2,1,1,8,0\n"
                               "5,1,1,2,1,1,8,0\n",
                               &r, &n),
                     SC_OK);
    assert_int_equal(n, 3);
    assert_null(r[0].reason);
    assert_int_equal(r[0].outcome, CALIB_OOM);
    assert_int_equal(r[0].hw->n_devices, 16);
    assert_int_equal(r[0].job.gbs, 128);
    assert_int_equal(r[0].job.zero, 1);
    assert_int_equal(r[0].job.sp, 1);
    assert_int_equal(r[0].model->t.layers, 16);
    assert_true(r[0].model->t.tied);
    assert_string_equal(r[0].sw->name, "nanotron-2025");
    assert_int_equal(r[1].model->t.hidden, 4096);
    assert_false(r[1].model->t.tied);
    assert_int_equal(r[1].job.zero, 0);
    assert_null(r[2].reason); /* no model of this size: the nearest one */
    assert_int_equal(r[2].n_warnings, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_cell, setup, teardown),
        cmocka_unit_test_setup_teardown(nothing_is_guessed, setup, teardown),
        cmocka_unit_test_setup_teardown(family_changes_nothing, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(heads_and_vocabulary, setup, teardown),
        cmocka_unit_test_setup_teardown(kinds_of_models, setup, teardown),
        cmocka_unit_test_setup_teardown(sharding, setup, teardown),
        cmocka_unit_test_setup_teardown(conditions, setup, teardown),
        cmocka_unit_test_setup_teardown(reasons, setup, teardown),
        cmocka_unit_test_setup_teardown(warnings, setup, teardown),
        cmocka_unit_test_setup_teardown(other_spellings, setup, teardown),
        cmocka_unit_test_setup_teardown(words, setup, teardown),
        cmocka_unit_test_setup_teardown(other_columns, setup, teardown),
        cmocka_unit_test_setup_teardown(memory_only, setup, teardown),
        cmocka_unit_test_setup_teardown(outcomes, setup, teardown),
        cmocka_unit_test_setup_teardown(out_of_memory, setup, teardown),
        cmocka_unit_test_setup_teardown(computed_dp, setup, teardown),
        cmocka_unit_test_setup_teardown(keys, setup, teardown),
        cmocka_unit_test_setup_teardown(bad_cells_are_errors, setup, teardown),
        cmocka_unit_test_setup_teardown(other_tables, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
