/* SPDX-License-Identifier: Apache-2.0 */
/* Options of an emulated world: what they become, and what is wrong. */
#include "emu/emu.h"
#include "fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static sc_emu_options o;
static sc_emu_config c;

/* As the command line would have it. */
static sc_status resolve(const char *const *argv, int argc)
{
    sc_opt_set set = {.keys = sc_emu_keys, .target = &o};
    sc_words words = {0};
    o = (sc_emu_options){.seed = 7};
    sc_err_init(&err);
    assert_int_equal(sc_schema_defaults(sc_emu_keys, &o, &arena, &err), SC_OK);
    char *copy[32];
    assert_true(argc < 32);
    for (int i = 0; i < argc; i++) copy[i] = sc_strdup(&arena, argv[i]);
    if (sc_opt_parse(argc, copy, &set, 1, &words, &arena, &err) != SC_OK)
        no_error();
    return sc_emu_resolve(&o, &arena, &c, &err);
}

#define RESOLVE(...)                            \
    resolve((const char *const[]){__VA_ARGS__}, \
            (int)SC_COUNT(((const char *const[]){__VA_ARGS__})))
#define WORLD "--cluster", "dgx-h100:2", "--world-size", "16"

static void diag_is(uint32_t i, const char *want)
{
    char text[600];
    assert_true(i < err.n);
    sc_diag_format(&err.d[i], text, sizeof text);
    assert_string_equal(text, want);
}

static void defaults(void **state)
{
    (void)state;
    if (RESOLVE(WORLD) != SC_OK) no_error();
    assert_int_equal(c.world, 16);
    assert_int_equal(c.hw->n_devices, 16);
    assert_int_equal(c.n_real, 1);
    assert_int_equal(c.real[0], 0);
    assert_int_equal(c.api, SC_EMU_API_AUTO);
    assert_int_equal(c.clock, SC_EMU_REAL);
    assert_int_equal(c.progress, SC_EMU_PROGRESS_AUTO);
    assert_int_equal(c.delay, SC_EMU_DELAY_ANALYTIC);
    assert_int_equal(c.data, SC_EMU_DATA_MIRROR);
    assert_int_equal(c.n_whatif, 0);
    assert_null(c.peers);
    assert_null(c.compute_factor);
    assert_true(c.siblings);
    assert_true(c.seed == 7);
    assert_true(c.cost->hash != 0);
}

static void all_given(void **state)
{
    (void)state;
    if (RESOLVE(WORLD, "--ranks", "8,2-4", "--ranks", "0", "--api", "mpi",
                "--clock", "virtual", "--progress", "weak", "--delay-model",
                "table:times.csv", "--peer-data", "noise:10%", "--peers",
                "mirror", "--no-siblings", "--step-collectives", "12") != SC_OK)
        no_error();
    static const uint32_t real[5] = {0, 2, 3, 4, 8};
    assert_int_equal(c.n_real, 5);
    assert_memory_equal(c.real, real, sizeof real);
    assert_int_equal(c.api, SC_EMU_API_MPI);
    assert_int_equal(c.clock, SC_EMU_VIRTUAL);
    assert_int_equal(c.progress, SC_EMU_PROGRESS_WEAK);
    assert_int_equal(c.delay, SC_EMU_DELAY_TABLE);
    assert_string_equal(c.delay_file, "times.csv");
    assert_int_equal(c.data, SC_EMU_DATA_NOISE);
    assert_true(c.sigma == 0.1);
    assert_false(c.siblings);
    assert_true(c.step_collectives == 12);
}

static void delay_models(void **state)
{
    (void)state;

    static const struct {
        const char *text;
        sc_emu_delay_kind kind;
        const char *file;
    } m[] = {{"analytic", SC_EMU_DELAY_ANALYTIC, NULL},
             {"host", SC_EMU_DELAY_HOST, NULL},
             {"chunk", SC_EMU_DELAY_CHUNK, NULL},
             {"flow", SC_EMU_DELAY_FLOW, NULL},
             {"alpha-beta:a.yml", SC_EMU_DELAY_ALPHA_BETA, "a.yml"},
             {"table:a.log,ranks=16", SC_EMU_DELAY_TABLE, "a.log"},
             {"./mine.so", SC_EMU_DELAY_PLUGIN, "./mine.so"}};

    for (size_t i = 0; i < SC_COUNT(m); i++) {
        if (RESOLVE(WORLD, "--delay-model", m[i].text) != SC_OK) no_error();
        assert_int_equal(c.delay, m[i].kind);
        if (m[i].file)
            assert_string_equal(c.delay_file, m[i].file);
        else
            assert_null(c.delay_file);
    }
}

static void what_ifs(void **state)
{
    (void)state;
    if (RESOLVE(WORLD, "--what-if", "latency=+100us", "--what-if", "latency=x2",
                "--what-if", "bandwidth=x0.5", "--what-if", "straggler=5:1.2",
                "--what-if", "jitter=5%", "--what-if", "stall=6:20ms@100",
                "--what-if", "fail=15@0") != SC_OK)
        no_error();
    static const sc_emu_whatif want[] = {
        {SC_EMU_LATENCY_ADD, 0, 0, 1e-4, {0}},
        {SC_EMU_LATENCY_TIMES, 0, 0, 2, {0}},
        {SC_EMU_BANDWIDTH_TIMES, 0, 0, 0.5, {0}},
        {SC_EMU_STRAGGLER, 5, 0, 1.2, {0}},
        {SC_EMU_JITTER, 0, 0, 0.05, {0}},
        {SC_EMU_STALL, 6, 100, 0.02, {0}},
        {SC_EMU_FAIL, 15, 0, 0, {0}}};
    assert_int_equal(c.n_whatif, SC_COUNT(want));
    for (uint32_t i = 0; i < c.n_whatif; i++) {
        assert_int_equal(c.whatif[i].what, want[i].what);
        assert_int_equal(c.whatif[i].rank, want[i].rank);
        assert_true(c.whatif[i].at == want[i].at);
        assert_true(c.whatif[i].value == want[i].value);
    }
    assert_string_equal(c.whatif[3].pos.file, "--what-if straggler=5:1.2");
}

static void wrong_what_ifs(void **state)
{
    (void)state;

    static const struct {
        const char *text;
        sc_status status;
        const char *want;
    } w[] = {
        {"lateny=+1us", SC_EUSAGE,
         "there is no what-if \"lateny\"; did you mean latency?"},
        {"weather=bad", SC_EUSAGE,
         "there is no what-if \"weather\"; the kinds are latency, bandwidth, "
         "straggler, jitter, stall and fail"},
        {"latency", SC_EUSAGE,
         "this is not a value of latency; write latency=+100us or latency=x2"},
        {"latency=100us", SC_EUSAGE,
         "this is not a value of latency; write latency=+100us or latency=x2"},
        {"latency=+100", SC_EUSAGE,
         "\"100\" has no unit, a time needs one; write 100us, 100ms or 100s"},
        {"latency=+-1us", SC_EINPUT,
         "-1us is out of range; write latency=+100us or latency=x2"},
        {"bandwidth=0.5", SC_EUSAGE,
         "this is not a value of bandwidth; write bandwidth=x0.5"},
        {"bandwidth=x0", SC_EINPUT, "0 is out of range; write bandwidth=x0.5"},
        {"straggler=16:2", SC_EINPUT,
         "rank 16: ranks are 0 to 15; write straggler=RANK:FACTOR, for example "
         "straggler=5:1.2"},
        {"straggler=1.2", SC_EUSAGE,
         "this is not a value of straggler; write straggler=RANK:FACTOR, for "
         "example straggler=5:1.2"},
        {"straggler=99999999999:2", SC_EUSAGE,
         "this is not a value of straggler; write straggler=RANK:FACTOR, for "
         "example straggler=5:1.2"},
        {"stall=1:20ms", SC_EUSAGE,
         "this is not a value of stall; write stall=RANK:TIME@N, for example "
         "stall=5:20ms@100"},
        {"fail=1@", SC_EUSAGE,
         "this is not a value of fail; write fail=RANK@N, for example "
         "fail=5@100"},
        {"fail=0@3", SC_EINPUT,
         "rank 0 is real; let its program stop by itself, or name an emulated "
         "rank"},
        {"straggler=0:2", SC_EINPUT,
         "rank 0 is real, and on the real clock its speed is that of this "
         "machine; use --clock "
         "virtual, or name an emulated rank"},
    };

    for (size_t i = 0; i < SC_COUNT(w); i++) {
        char want[400];
        assert_int_equal(RESOLVE(WORLD, "--what-if", w[i].text), w[i].status);
        assert_int_equal(err.n, 1);
        assert_int_equal(err.status, w[i].status);
        snprintf(want, sizeof want, "--what-if %s: error: %s", w[i].text,
                 w[i].want);
        diag_is(0, want);
    }
    if (RESOLVE(WORLD, "--clock", "virtual", "--what-if", "straggler=0:2") !=
        SC_OK)
        no_error();
}

static void one_pass(void **state)
{
    (void)state;
    assert_int_equal(RESOLVE("--cluster", "dgx-h100:2", "--world-size", "32",
                             "--ranks", "0,40", "--delay-model", "flows",
                             "--what-if", "jitter=x", "--what-if", "fail=1",
                             "--peer-data", "noise", "--peers",
                             "nowhere/trace"),
                     SC_EINPUT);
    assert_int_equal(err.n, 7);
    diag_is(0, "--world-size 32: error: the cluster \"dgx-h100:2\" has 16 "
               "devices; choose a larger cluster, or --world-size 16 or less");
    diag_is(1, "--ranks 0,40: error: ranks are 0 to 31");
    diag_is(2, "--delay-model flows: error: there is no \"flows\"; did you "
               "mean flow?");
    diag_is(3, "--what-if jitter=x: error: \"x\" is not a number; write it "
               "like 0.5");
    diag_is(4, "--what-if fail=1: error: this is not a value of fail; write "
               "fail=RANK@N, for example fail=5@100");
    diag_is(5, "--peer-data noise: error: there is no \"noise\"; did you mean "
               "noise:SIGMA?");
    diag_is(6, "--peers nowhere/trace: error: there is no trace of ranks 0 to "
               "31; traces are PREFIX.<rank>.et, .et.gz, .et.zst or .json");
}

static void missing(void **state)
{
    (void)state;
    assert_int_equal(resolve(NULL, 0), SC_EUSAGE);
    assert_int_equal(err.n, 2);
    diag_is(0, "error: --cluster is missing; emulate needs --cluster and "
               "--world-size");
    diag_is(1, "error: --world-size is missing; emulate needs --cluster and "
               "--world-size");
}

static void wrong_ranks(void **state)
{
    (void)state;

    static const struct {
        const char *text, *want;
    } w[] = {{"", "not a list of ranks; write 0, 0,8, 0-3 or all"},
             {"0,", "not a list of ranks; write 0, 0,8, 0-3 or all"},
             {"3-1", "not a list of ranks; write 0, 0,8, 0-3 or all"},
             {"0;1", "not a list of ranks; write 0, 0,8, 0-3 or all"},
             {"-1", "not a list of ranks; write 0, 0,8, 0-3 or all"},
             {"0-16", "ranks are 0 to 15"},
             {"0-3,2", "rank 2 is named twice"}};

    for (size_t i = 0; i < SC_COUNT(w); i++) {
        char want[300], arg[40];
        snprintf(arg, sizeof arg, "--ranks=%s", w[i].text);
        assert_true(RESOLVE(WORLD, arg) != SC_OK);
        assert_int_equal(err.n, 1);
        snprintf(want, sizeof want, "--ranks %s: error: %s", w[i].text,
                 w[i].want);
        diag_is(0, want);
    }
}

/* Ranks on another device compute by as much longer as its prices say. */
static void mixed_devices(void **state)
{
    (void)state;
    static const char text[] = "groups:\n  - {node: dgx-a100-80g, nodes: 1}\n"
                               "  - {node: dgx-h100, nodes: 1}\n";
    char dir[] = "/tmp/stepcast-emu-XXXXXX";
    assert_non_null(mkdtemp(dir));
    char *file = sc_sprintf(&arena, "%s/mixed.yml", dir);
    assert_int_equal(sc_file_write(file, text, strlen(text), &err), SC_OK);
    if (RESOLVE("--cluster", file, "--world-size", "16") != SC_OK) no_error();
    assert_non_null(c.compute_factor);
    for (uint32_t i = 0; i < 8; i++) assert_true(c.compute_factor[i] == 1);
    for (uint32_t i = 8; i < 16; i++)
        assert_true(c.compute_factor[i] == c.compute_factor[8]);
    double f = c.compute_factor[8];
    assert_true(f > 0.3 && f < 0.7);
    if (RESOLVE("--cluster", file, "--world-size", "16", "--ranks", "8") !=
        SC_OK)
        no_error();
    assert_true(c.compute_factor[8] == 1);
    assert_true(c.compute_factor[0] > 1.4 && c.compute_factor[0] < 3);
    if (RESOLVE("--cluster", file, "--world-size", "8") != SC_OK) no_error();
    assert_null(c.compute_factor); /* the world is on the first node only */
    unlink(file);
    rmdir(dir);
}

static void profile(void **state)
{
    (void)state;
    const char *text = "parameters: {hop_simple: {value: 3.3e-6}}\n";
    char dir[] = "/tmp/stepcast-test-XXXXXX";
    assert_non_null(mkdtemp(dir));
    char *file = sc_sprintf(&arena, "%s/own.yml", dir);
    assert_int_equal(sc_file_write(file, text, strlen(text), &err), SC_OK);
    if (RESOLVE(WORLD) != SC_OK) no_error();
    double before = c.cost->p[sc_param_find("hop_simple")];
    if (RESOLVE(WORLD, "--profile", file) != SC_OK) no_error();
    assert_true(c.cost->p[sc_param_find("hop_simple")] == 3.3e-6);
    assert_true(before != 3.3e-6);
    unlink(file);
    assert_int_equal(RESOLVE(WORLD, "--profile", file), SC_EIO);
    rmdir(dir);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(defaults),       T(all_given), T(delay_models), T(what_ifs),
        T(wrong_what_ifs), T(one_pass),  T(missing),      T(wrong_ranks),
        T(mixed_devices),  T(profile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
