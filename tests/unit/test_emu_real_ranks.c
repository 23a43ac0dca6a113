/* SPDX-License-Identifier: Apache-2.0 */
/* Roles of a workload: which ranks to run for real. */
#include "emu/emu.h"
#include "fixture.h"
#include "small_workload.h"
#include "trace/trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static sw s;
static sc_emu_role *role;
static uint32_t n;

static void start(uint32_t n_ranks)
{
    memset(&s, 0, sizeof s);
    s.n_ranks = n_ranks;
}

/* By way of files, which are read as classes. */
static void plan(void)
{
    char dir[] = "/tmp/stepcast-emu-XXXXXX", prefix[60], path[80];
    sc_workload w;
    sc_trace_opts o = {.n_groups = s.n_groups, .groups = s.group};
    sw_build(&s, &arena);
    assert_non_null(mkdtemp(dir));
    snprintf(prefix, sizeof prefix, "%s/t", dir);
    sc_status st = sc_trace_write(&s.w, prefix, &err);
    if (st == SC_OK)
        st = sc_trace_read(prefix, s.n_ranks, &o, &arena, &w, &err);
    for (uint32_t r = 0; r < s.n_ranks; r++) {
        snprintf(path, sizeof path, "%s.%u.et", prefix, r);
        unlink(path);
    }
    snprintf(path, sizeof path, "%s.json", prefix);
    unlink(path);
    assert_int_equal(rmdir(dir), 0);
    if (st != SC_OK) no_error();
    if (sc_emu_real_ranks(&w, &arena, &role, &n, &err) != SC_OK) no_error();
}

static void role_is(uint32_t i, uint32_t rank, uint32_t ranks, const char *text)
{
    assert_true(i < n);
    assert_string_equal(role[i].text, text);
    assert_int_equal(role[i].rank, rank);
    assert_int_equal(role[i].n, ranks);
}

static const char *names[16] = {"0", "1", "2",  "3",  "4",  "5",  "6",  "7",
                                "8", "9", "10", "11", "12", "13", "14", "15"};

static uint32_t group(uint32_t size, const uint32_t *ranks)
{
    uint32_t g = sw_group(&s, size, ranks);
    s.group[g].name = names[g + 1]; /* "0" is all ranks */
    return g;
}

static void alike(void **state)
{
    (void)state;
    static const uint32_t low[4] = {0, 1, 2, 3}, high[4] = {4, 5, 6, 7};
    start(8);
    uint32_t g[2] = {group(4, low), group(4, high)};
    for (uint32_t r = 0; r < 8; r++) {
        sw_comp(&s, r, 1000);
        sw_coll(&s, r, SC_ALL_GATHER, 100, g[r / 4]);
        sw_pair(&s, r, SC_TASK_SEND, r / 4 * 4 + (r + 1) % 4, 64, 0);
        sw_pair(&s, r, SC_TASK_RECV, r / 4 * 4 + (r + 3) % 4, 64, 0);
    }
    plan(); /* rings in two groups */
    assert_int_equal(n, 1);
    role_is(0, 0, 8, "every rank does the same");
}

/* Four stages of two ranks; those in the middle do the same, but wait for
 * others. */
static void pipeline(void **state)
{
    (void)state;
    start(8);
    for (uint32_t r = 0; r < 8; r++) {
        uint32_t stage = r / 2;
        if (stage > 0) sw_pair(&s, r, SC_TASK_RECV, r - 2, 64, 0);
        sw_comp(&s, r, stage == 3 ? 1500000000 : 1000000000);
        if (stage < 3) sw_pair(&s, r, SC_TASK_SEND, r + 2, 64, 0);
        if (stage < 3) sw_pair(&s, r, SC_TASK_RECV, r + 2, 64, 0);
        if (stage > 0) sw_pair(&s, r, SC_TASK_SEND, r - 2, 64, 0);
    }
    plan();
    assert_int_equal(n, 4);
    role_is(0, 0, 2,
            "pipeline stage 0 of 4, computes 1.00 ms, exchanges 128 B in 2 "
            "operations");
    role_is(1, 2, 2,
            "pipeline stage 1 of 4, computes 1.00 ms, exchanges 256 B in 4 "
            "operations");
    role_is(2, 4, 2,
            "pipeline stage 2 of 4, computes 1.00 ms, exchanges 256 B in 4 "
            "operations");
    role_is(3, 6, 2,
            "pipeline stage 3 of 4, computes 1.50 ms, exchanges 128 B in 2 "
            "operations");
}

/* The last stage sends on to the first one. */
static void interleaved(void **state)
{
    (void)state;
    start(4);
    for (uint32_t r = 0; r < 4; r++) {
        sw_comp(&s, r, r == 3 ? 2000000000 : 1000000000);
        sw_pair(&s, r, SC_TASK_SEND, (r + 1) % 4, 64, 0);
        sw_pair(&s, r, SC_TASK_RECV, (r + 3) % 4, 64, 0);
    }
    plan();
    assert_int_equal(n, 4);
    role_is(0, 0, 1, "pipeline stage 0 of 4, computes 1.00 ms");
    role_is(2, 2, 1, "pipeline stage 2 of 4, computes 1.00 ms");
    role_is(3, 3, 1, "pipeline stage 3 of 4, computes 2.00 ms");
}

static void groups_of_two_sizes(void **state)
{
    (void)state;
    static const uint32_t most[6] = {0, 1, 2, 3, 4, 5}, rest[2] = {6, 7};
    start(8);
    uint32_t g[2] = {group(6, most), group(2, rest)};
    for (uint32_t r = 0; r < 8; r++) {
        sw_coll(&s, r, SC_ALL_REDUCE, 1000, g[r > 5]);
        sw_coll(&s, r, SC_ALL_REDUCE, 1000, SC_TASK_WORLD);
    }
    plan();
    assert_int_equal(n, 2);
    role_is(0, 0, 6, "in groups of 6 to 8");
    role_is(1, 6, 2, "in groups of 2 to 8");
}

static void other_partners(void **state)
{
    (void)state;
    start(6);
    for (uint32_t r = 0; r < 6; r++)
        for (uint32_t k = 1; k < 4; k++)
            sw_pair(&s, r, SC_TASK_SEND, (r + k + (k == 3 && r == 3)) % 6, 64,
                    0);
    plan();
    assert_int_equal(n, 2);
    role_is(0, 0, 5, "with different partners from rank 3");
    role_is(1, 3, 1, "with different partners from rank 0");
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(alike),          T(pipeline), T(interleaved), T(groups_of_two_sizes),
        T(other_partners),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
