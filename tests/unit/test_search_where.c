/* SPDX-License-Identifier: Apache-2.0 */
/* Conditions over axes: which points they leave, and what is no condition. */
#include "space_case.h"

static sc_arena a;
static sc_err e;
static sc_inputs in;
static sc_search_jobs jobs;

static int set_up(void **state)
{
    (void)state;
    const space_case c = {"gpt3-6.7b",
                          "dgx-a100:2",
                          NULL,
                          64,
                          0,
                          "cp=1 offload=0,0.5 prefetch=0..2",
                          0};
    sc_arena_init(&a, 0);
    sc_err_init(&e);
    assert_int_equal(space_open(&c, &a, &in, &jobs, &e), SC_OK);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    sc_arena_free(&a);
    return 0;
}

static sc_status read(const char *text, const sc_search_where **out)
{
    sc_err_init(&e);
    return sc_search_where_read(text, sc_pos_file("--where"), false, &a, out,
                                &e);
}

typedef bool keep_fn(const sc_job *j);

static bool narrow(const sc_job *j)
{
    return j->tp * j->pp <= 8 && j->zero != 3;
}

static bool either(const sc_job *j)
{
    return j->sp || !(j->recompute == SC_RC_FULL || j->offload > 0.25);
}

static bool odd(const sc_job *j)
{
    return (j->mbs + 3 * j->dp) % 5 == 2 - j->prefetch;
}

static bool ordered(const sc_job *j)
{
    return j->schedule != SC_SCH_INTERLEAVED || (double)j->vpp / 4 >= 1.5;
}

static bool sizes(const sc_job *j)
{
    return 16 / j->tp > 32 % 5 - -2 && j->pp < 96;
}

static const struct {
    const char *text;
    keep_fn *keep;
} conditions[] = {
    {"tp * pp <= 8 and zero != 3", narrow},
    {"not (tp*pp > 8 or zero == 3)", narrow},
    {"sp or not (recompute == full or offload > 0.25)", either},
    {"(micro-batch + 3 * dp) % 5 = 2 - prefetch", odd},
    {"interleaved != schedule or vp / 4 >= 1.5", ordered},
    {"devices / tp > layers % 5 - -nodes and pp < 3 * heads", sizes}};

static uint64_t kept(keep_fn *keep)
{
    uint64_t n = 0;
    for (uint64_t i = 0; i < sc_search_space_points(jobs.space); i++) {
        sc_search_row r = {.digit = {0}};
        sc_job job;
        sc_search_space_digits(jobs.space, i, r.digit);
        sc_search_row_job(&jobs, &r, &job);
        n += keep(&job);
    }
    return n;
}

/* As many points are left as satisfy the same condition in C, and each does. */
static void left(void **state)
{
    (void)state;
    uint64_t all = sc_search_space_points(jobs.space);
    const sc_search_jobs open = jobs;
    for (size_t i = 0; i < SC_COUNT(conditions); i++) {
        const sc_search_where *w;
        jobs = open;
        uint64_t n = kept(conditions[i].keep);
        assert_true(n > 0 && n < all);
        assert_int_equal(read(conditions[i].text, &w), SC_OK);
        assert_int_equal(sc_search_jobs_where(&jobs, &w, 1, &a, &e), SC_OK);
        assert_true(sc_search_space_points(jobs.space) == n);
        assert_true(kept(conditions[i].keep) == n);
    }
}

/* Several conditions must all hold; one that nothing satisfies is refused. */
static void several(void **state)
{
    (void)state;
    const sc_search_where *w[2];
    assert_int_equal(read("tp == 2", &w[0]), SC_OK);
    assert_int_equal(read("pp == 4", &w[1]), SC_OK);
    assert_int_equal(sc_search_jobs_where(&jobs, w, 2, &a, &e), SC_OK);
    sc_search_row r = {.digit = {0}};
    sc_job job;
    sc_search_space_digits(jobs.space, 0, r.digit);
    sc_search_row_job(&jobs, &r, &job);
    assert_int_equal(job.tp, 2);
    assert_int_equal(job.pp, 4);
    assert_int_equal(read("dp == 16", &w[0]), SC_OK);
    assert_int_equal(sc_search_jobs_where(&jobs, w, 1, &a, &e), SC_EINPUT);
}

static void refused(void **state)
{
    (void)state;

    static const struct {
        const char *text;
        uint32_t col;
    } wrong[] = {{"", 1},       {"tp >", 5},        {"tp > > 1", 6},
                 {"tp 1", 4},   {"(tp", 4},         {"tp)", 3},
                 {"full", 1},   {"1.2.3", 1},       {"not", 4},
                 {"tp and", 7}, {"tp == \"2\"", 7}, {"tp > fp8", 6}};

    const sc_search_where *w;
    for (size_t i = 0; i < SC_COUNT(wrong); i++) {
        assert_int_equal(read(wrong[i].text, &w), SC_EINPUT);
        assert_int_equal(e.d[0].col, wrong[i].col);
    }
    char deep[400];
    memset(deep, '(', sizeof deep);
    deep[sizeof deep - 1] = '\0';
    assert_int_equal(read(deep, &w), SC_EINPUT);
    for (size_t i = 0; i + 4 < sizeof deep; i += 4) memcpy(deep + i, "not ", 4);
    assert_int_equal(read(deep, &w), SC_EINPUT);
    static const char *const unknown[] = {"storage-bw > 1", "model == 1",
                                          "recompute == ful", "tp == full",
                                          "tp = tq"};
    for (size_t i = 0; i < SC_COUNT(unknown); i++) {
        assert_int_equal(read(unknown[i], &w), SC_OK);
        assert_true(sc_search_jobs_where(&jobs, &w, 1, &a, &e) != SC_OK);
    }
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(left), TEST(several),
                                       TEST(refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
