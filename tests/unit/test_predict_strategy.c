/* SPDX-License-Identifier: Apache-2.0 */
/* What a strategy's file says that options say too; the examples. */
#include "prediction.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const sc_strategy *strategy(const char *text)
{
    sc_strategy *s = SC_NEW(&f.a, sc_strategy);
    assert_non_null(s);
    if (sc_strategy_read(text, strlen(text), "s.yml", &f.a, s, &f.err) != SC_OK)
        fail_msg("%s", f.err.d[0].msg);
    return s;
}

/* The job of a file alone. */
static sc_job job_of(const char *text)
{
    sc_job job;
    sc_job_init(&job);
    assert_int_equal(
        sc_strategy_to_job(strategy(text), NULL, &job, &f.a, &f.err), SC_OK);
    return job;
}

static void everything(void **state)
{
    (void)state;
    sc_job j = job_of(
        "model: gpt3-xl\ncluster: dgx-a100-80g:8\nsoftware: megatron\n"
        "mesh: {pp: 2, dp: 4, cp: 2, tp: 4}\n"
        "batch: {global: 64, micro: 2, seq: 2048}\nprecision: bf16\n"
        "preset: {tensor_parallel: megatron-sp, zero: 1, recompute: full,\n"
        "         context_parallel: all-gather}\n"
        "pipeline: {schedule: interleaved, virtual: 3}\n"
        "overlap: {grad: false, tp: true}\noffload: {activations: 25%}\n");
    assert_string_equal(j.model, "gpt3-xl");
    assert_string_equal(j.cluster, "dgx-a100-80g:8");
    assert_string_equal(j.software, "megatron");
    assert_int_equal(j.pp, 2);
    assert_int_equal(j.dp, 4);
    assert_int_equal(j.cp, 2);
    assert_int_equal(j.tp, 4);
    assert_int_equal(j.ep, 0);
    assert_int_equal(j.gbs, 64);
    assert_int_equal(j.mbs, 2);
    assert_int_equal(j.seq, 2048);
    assert_int_equal(j.vpp, 3);
    assert_int_equal(j.zero, 1);
    assert_int_equal(j.sp, 1);
    assert_int_equal(j.recompute, SC_RC_FULL);
    assert_int_equal(j.schedule, SC_SCH_INTERLEAVED);
    assert_int_equal(j.precision, SC_RECIPE_BF16);
    assert_int_equal(j.cp_comm, SC_CP_ALLGATHER);
    assert_int_equal(j.grad_overlap, 0);
    assert_int_equal(j.tp_overlap, 1);
    assert_true(j.offload == 0.25);
}

/* What is not said stays to be inferred, but for the mesh, which is whole. */
static void the_rest(void **state)
{
    (void)state;
    sc_job j = job_of("mesh: {dp: 8}\n");
    assert_int_equal(j.dp, 8);
    assert_int_equal(j.tp, 1);
    assert_int_equal(j.pp, 1);
    assert_int_equal(j.cp, 1);
    assert_int_equal(j.zero, SC_INFER);
    assert_int_equal(j.recompute, SC_INFER);
    assert_int_equal(j.gbs, 0);
    assert_int_equal(j.grad_overlap, SC_INFER);
    j = job_of("pipeline: {order: passes.yml}\n");
    assert_string_equal(j.schedule_file, "passes.yml");
    assert_int_equal(j.schedule, SC_INFER);
    j = job_of("preset: {zero: 2}\n");
    assert_int_equal(j.dp, 0);
    assert_int_equal(j.tp, 0);
    assert_int_equal(j.sp, SC_INFER);
    assert_int_equal(j.zero, 2);
}

/* So many chunks as cuts are for. */
static void chunks_of_cuts(void **state)
{
    (void)state;
    sc_job j = job_of("mesh: {pp: 2}\npipeline: {schedule: interleaved,"
                      " cuts: [4, 8, 8, 4]}\n");
    assert_int_equal(j.vpp, 2);
    j = job_of("mesh: {pp: 2}\npipeline: {cuts: [layers.10]}\n");
    assert_int_equal(j.vpp, 1);
    j = job_of("mesh: {pp: 2}\npipeline: {schedule: zb-v,"
               " cuts: [4, 8, 8, 4]}\n");
    assert_int_equal(j.vpp, 0);
}

static void replicas_of_groups(void **state)
{
    (void)state;
    sc_job j = job_of("mesh: {dp: 4, fsdp: 8}\n");
    assert_int_equal(j.dp, 32);
    assert_int_equal(j.hsdp, 8);
    assert_int_equal(j.zero, 3);
    j = job_of("mesh: {fsdp: 8}\npreset: {zero: 2}\n");
    assert_int_equal(j.dp, 8);
    assert_int_equal(j.hsdp, 0);
    assert_int_equal(j.zero, 2);
    j = job_of("mesh: {rep: 2, dp: 4, ep: 2}\npreset: {zero: 1}\n");
    assert_int_equal(j.dp, 16);
    assert_int_equal(j.hsdp, 8);
    assert_int_equal(j.ep, 2);
    j = job_of("mesh: {dp: 4, ep: 4, tp: 2}\n");
    assert_int_equal(j.dp, 16);
    assert_int_equal(j.ep, 8);
}

static sc_status beside(const char *text, int argc, char *const *argv,
                        sc_job *job)
{
    sc_opt_set set = {.keys = sc_job_keys, .target = job};
    sc_words words = {0};
    sc_job_init(job);
    assert_int_equal(sc_opt_parse(argc, argv, &set, 1, &words, &f.a, &f.err),
                     SC_OK);
    return sc_strategy_to_job(strategy(text), &set.given, job, &f.a, &f.err);
}

static void line(uint32_t i, const char *want)
{
    char text[600];
    assert_true(i < f.err.n);
    sc_diag_format(&f.err.d[i], text, sizeof text);
    assert_string_equal(text, want);
}

static void options_beside_a_file(void **state)
{
    (void)state;
    static const char text[] =
        "mesh: {pp: 2, dp: 4, tp: 4}\nmodel: gpt3-xl\n"
        "preset: {tensor_parallel: megatron-sp, zero: 1}\n"
        "overlap: {grad: true}\n";
    char *same[] = {"--tp", "4", "--seq", "512", "--sp", "--zero", "1"};
    sc_job job;
    assert_int_equal(beside(text, SC_COUNT(same), same, &job), SC_OK);
    assert_int_equal(job.seq, 512);
    assert_int_equal(job.tp, 4);
    assert_int_equal(job.sp, 1);
    char *other[] = {"--tp",
                     "8",
                     "--dp",
                     "2",
                     "--no-sp",
                     "--model",
                     "gpt2-xl",
                     "--fsdp",
                     "--seq",
                     "512",
                     "--no-overlap-grad-reduce"};
    assert_int_equal(beside(text, SC_COUNT(other), other, &job), SC_EINPUT);
    assert_int_equal(f.err.n, 6);
    line(0,
         "--model gpt2-xl: error: s.yml:2:8 gives model gpt3-xl; give one of "
         "them");
    line(1, "--tp 8: error: s.yml:1:22 gives tp 4; give one of them");
    line(2, "--dp 2: error: s.yml:1:15 gives dp 4; give one of them");
    line(3, "--no-sp: error: s.yml:3:27 gives sp true; give one of them");
    line(4, "--no-overlap-grad-reduce: error: s.yml:4:17 gives "
            "overlap-grad-reduce true; give one of them");
    line(5, "--fsdp: error: s.yml:3:46 gives zero 1; give one of them");
    assert_int_equal(job.tp, 8); /* as it was */
}

static void program(void **state)
{
    (void)state;
    const sc_software *sw = NULL, *was;
    assert_int_equal(
        sc_software_find(NULL, NULL, sc_pos_none(), &f.a, &sw, &f.err), SC_OK);
    was = sw;
    assert_int_equal(
        sc_strategy_software(strategy("mesh: {dp: 2}\n"), &f.a, &sw, &f.err),
        SC_OK);
    assert_ptr_equal(sw, was);
    assert_int_equal(sc_strategy_software(
                         strategy("overlap: {grad_bucket: 7MB, p2p: false}\n"),
                         &f.a, &sw, &f.err),
                     SC_OK);
    assert_true(sw->bucket_bytes == 7e6);
    assert_false(sw->p2p_overlap);
    assert_true(sw->weight_bytes == was->weight_bytes);
}

/* A file and the options that say the same predict the same. */
static void file_or_options(void **state)
{
    (void)state;
    sc_job j = job_of("model: gpt3-xl\ncluster: dgx-a100-80g:1\n"
                      "mesh: {pp: 2, dp: 2, tp: 2}\n"
                      "batch: {global: 16, micro: 1, seq: 2048}\n"
                      "preset: {tensor_parallel: megatron-sp, zero: 1,\n"
                      "         recompute: selective}\n"
                      "pipeline: {schedule: 1f1b}\n");
    sc_job o;
    sc_job_init(&o);
    o.model = "gpt3-xl";
    o.cluster = "dgx-a100-80g:1";
    o.tp = o.pp = o.dp = 2;
    o.gbs = 16;
    o.mbs = 1;
    o.seq = 2048;
    o.sp = 1;
    o.zero = 1;
    o.recompute = SC_RC_SELECTIVE;
    o.schedule = SC_SCH_1F1B;
    o.brief = j.brief = true;
    sc_prediction p, q;
    assert_int_equal(sc_predict_job(&j, &f.a, &p, &f.err), SC_OK);
    assert_int_equal(sc_predict_job(&o, &f.a, &q, &f.err), SC_OK);
    assert_true(p.step_time_s == q.step_time_s);
    assert_true(p.memory[0].peak == q.memory[0].peak);
}

/* ---- examples --------------------------------------------------------------- */

static const sc_strategy *example(const char *name)
{
    const char *root = getenv("STEPCAST_SOURCE");
    const char *path =
        sc_sprintf(&f.a, "%s/examples/strategies/%s", root ? root : ".", name);
    const sc_strategy *s = NULL;
    if (sc_strategy_load(path, &f.a, &s, &f.err) != SC_OK)
        fail_msg("%s: %s", name, f.err.d[0].msg);
    return s;
}

static bool is_strategy(const char *name)
{
    size_t n = strlen(name);
    return n > 4 && strcmp(name + n - 4, ".yml") == 0;
}

/* All are read, name a machine of their size, and micro-batches that fit. */
static void examples_hold(void **state)
{
    (void)state;
    const char *root = getenv("STEPCAST_SOURCE");
    DIR *d =
        opendir(sc_sprintf(&f.a, "%s/examples/strategies", root ? root : "."));
    uint32_t n = 0;
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        if (!is_strategy(e->d_name)) continue;
        const sc_strategy *s = example(e->d_name);
        const sc_hw *hw = NULL;
        if (sc_hw_build(s->cluster, s->cluster_pos, &f.a, &hw, &f.err) != SC_OK)
            fail_msg("%s: %s", e->d_name, f.err.d[0].msg);
        if (hw->n_devices != sc_strategy_ranks(s))
            fail_msg("%s: %u devices", e->d_name, hw->n_devices);
        assert_true(s->global > 0 && s->micro > 0);
        n++;
    }
    closedir(d);
    assert_true(n >= 15);
}

/* Those whose choices segments price meet their model, and are priced. */
static void examples_by_blocks(void **state)
{
    (void)state;
    static const char *const names[] = {
        "megatron-3d.yml", "zero3.yml",       "hsdp.yml",
        "offload.yml",     "moe-experts.yml", "recompute-subtrees.yml"};
    for (size_t i = 0; i < SC_COUNT(names); i++) {
        const sc_strategy *s = example(names[i]);
        sc_prediction p;
        sc_inputs in;
        sc_job job;
        sc_job_init(&job);
        assert_true(sc_strategy_searchable(s, NULL, NULL));
        assert_int_equal(sc_strategy_to_job(s, NULL, &job, &f.a, &f.err),
                         SC_OK);
        assert_int_equal(sc_predict_load(&job, &f.a, &in, &f.err), SC_OK);
        assert_int_equal(
            sc_strategy_model(s, in.model, &f.a, &in.model, &f.err), SC_OK);
        job.brief = true;
        job.engine = SC_ENGINE_FAST;
        sc_status status =
            sc_predict(&job, in.hw, in.model, in.sw, in.cost, &f.a, &p, &f.err);
        if (status != SC_OK) fail_msg("%s: %s", names[i], f.err.d[0].msg);
        p.run.strategy = s;
        sc_segment *b;
        sc_plan plan = priced(&p.run, &b);
        assert_true(fast_s(&plan, b) > 0);
    }
}

static void examples_beyond_search(void **state)
{
    (void)state;
    static const char *const names[] = {"tensor-2d.yml", "tensor-2.5d.yml",
                                        "tensor-3d.yml", "dlrm-tables.yml"};
    for (size_t i = 0; i < SC_COUNT(names); i++)
        assert_false(sc_strategy_searchable(example(names[i]), NULL, NULL));
}

/* The step of llama3-8b on 16 devices under a strategy. */
static sc_prediction under(const char *text)
{
    sc_strategy *s = SC_NEW(&f.a, sc_strategy);
    sc_prediction p;
    sc_inputs in;
    sc_job job;
    assert_non_null(s);
    sc_job_init(&job);
    job.model = "llama3-8b";
    job.cluster = "dgx-h100:2";
    job.gbs = 256;
    job.seq = 8192;
    job.brief = true;
    assert_int_equal(
        sc_strategy_read(text, strlen(text), "s.yml", &f.a, s, &f.err), SC_OK);
    assert_int_equal(sc_strategy_to_job(s, NULL, &job, &f.a, &f.err), SC_OK);
    job.tree = s;
    assert_int_equal(sc_predict_load(&job, &f.a, &in, &f.err), SC_OK);
    if (sc_predict(&job, in.hw, in.model, in.sw, in.cost, &f.a, &p, &f.err))
        fail_msg("%s: %s", text, f.err.d[0].msg);
    return p;
}

static void same_choices(const sc_run *a, const sc_run *b)
{
    assert_memory_equal(a->size, b->size, sizeof a->size);
    assert_int_equal(a->mbs, b->mbs);
    assert_int_equal(a->zero, b->zero);
    assert_int_equal(a->recompute, b->recompute);
}

/* An axis of one rank changes nothing at all; `gamma` what runs beside what,
 * and nothing else: without gradients' exchanges beside kernels, nothing. */
static void words_that_change_little(void **state)
{
    (void)state;
    sc_prediction plain = under("mesh: {dp: 16}\n");
    sc_prediction more = under("mesh: {x: 1, dp: 16}\n");
    sc_prediction gamma = under("mesh: {dp: 16}\noverlap: {gamma: 0}\n");
    same_choices(&plain.run, &more.run);
    assert_true(plain.step_time_s == more.step_time_s);
    assert_true(plain.memory[0].peak == more.memory[0].peak);
    same_choices(&plain.run, &gamma.run);
    assert_true(plain.memory[0].peak == gamma.memory[0].peak);
    assert_true(gamma.step_time_s < plain.step_time_s);
    assert_true(gamma.step_time_s > 0.9 * plain.step_time_s);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(everything),
        TEST(the_rest),
        TEST(replicas_of_groups),
        TEST(chunks_of_cuts),
        TEST(options_beside_a_file),
        TEST(program),
        TEST(file_or_options),
        TEST(examples_hold),
        TEST(examples_by_blocks),
        TEST(examples_beyond_search),
        TEST(words_that_change_little),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
