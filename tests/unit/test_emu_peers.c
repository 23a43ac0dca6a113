/* SPDX-License-Identifier: Apache-2.0 */
/* When emulated ranks come: arithmetic of factors, stalls, failures, jitter. */
#include "emu/world.h"
#include "emu_world.h"

#include <math.h>

static sc_emu_end reduce(sc_emu *e, sc_time t)
{
    return block(e, (sc_emu_op){.coll = SC_ALL_REDUCE}, t);
}

static void why_is(const sc_emu *e, uint64_t ticket, const char *want)
{
    sc_text t;
    sc_text_init(&t);
    sc_emu_why(e, ticket, &t);
    assert_string_equal(t.buf, want);
    sc_text_free(&t);
}

/* Blocking: the straggler is late by what it computes longer, each time. */
static void straggler(void **state)
{
    (void)state;
    sc_emu *e = world_of(&(asked){.whatif = {"straggler=5:1.5"}});
    sc_time t = 0;
    for (int i = 0; i < 5; i++) {
        sc_emu_end x = reduce(e, t + 100 * US);
        assert_true(x.begin == t + 150 * US);
        t = x.end;
        assert_true(t == x.begin + LATENCY);
    }
}

/* Without waits it falls behind; a long wait lets it catch up. */
static void asynchronous(void **state)
{
    (void)state;
    sc_emu *e = world_of(&(asked){.whatif = {"straggler=5:1.5"}});
    uint64_t k = all_reduce(e, 0, 0, 0, 100 * US);
    why_is(e, k, "rank 5 arrives at 150 us");
    assert_true(end_of(e, k).begin == 150 * US);
    k = all_reduce(e, 0, 0, 0, 200 * US);
    assert_true(end_of(e, k).begin == 300 * US); /* 2 * 150 */
    k = all_reduce(e, 0, 0, 200000, 300 * US);
    sc_emu_end x = end_of(e, k);
    assert_true(x.begin == 450 * US && x.end == 660 * US);
    sc_emu_waited(e, 0, 340 * US, 660 * US);
    /* 340 of the real one, 510 of the straggler; both at 660 now */
    k = all_reduce(e, 0, 0, 0, 700 * US);
    assert_true(end_of(e, k).begin == 720 * US);
}

/* A wait takes away as much as it is long. */
static void short_wait(void **state)
{
    (void)state;
    uint32_t pair[2] = {0, 1};
    sc_emu *e = world_of(&(asked){.whatif = {"straggler=5:2"}});
    uint32_t g = group_of(e, pair, 2); /* not with the straggler */
    sc_emu_end x =
        block(e, (sc_emu_op){.coll = SC_ALL_REDUCE, .group = g}, 100 * US);
    assert_true(x.begin == 100 * US && x.end == 110 * US);
    x = reduce(e, 110 * US); /* 200 of its own */
    assert_true(x.begin == 200 * US);
}

static void fast_peer(void **state)
{
    (void)state;
    sc_emu *e = world_of(&(asked){.whatif = {"straggler=5:0.5"}});
    assert_true(reduce(e, 100 * US).begin == 100 * US);
    assert_true(reduce(e, 300 * US).begin == 300 * US);
}

/* A real rank may be the straggler on the virtual clock; its peers are not. */
static void real_straggler(void **state)
{
    (void)state;
    sc_emu *e =
        world_of(&(asked){.whatif = {"straggler=0:2", "straggler=5:3"}});
    assert_true(reduce(e, 200 * US).begin == 300 * US);
}

static void two_factors(void **state)
{
    (void)state;
    sc_emu *e = world_of(&(asked){
        .whatif = {"straggler=5:1.5", "straggler=5:2", "straggler=6:2"}});
    uint64_t k = all_reduce(e, 0, 0, 0, 100 * US);
    why_is(e, k, "rank 5 arrives at 300 us");
    assert_true(end_of(e, k).begin == 300 * US);
}

static void devices(void **state)
{
    (void)state;
    static const double factor[8] = {1, 1, 1, 1, 1.25, 1.25, 2, 1};
    asked q = {.whatif = {"straggler=5:2"}};
    sc_emu_config c = config_of(&q);
    sc_emu *e;
    uint32_t few[3] = {0, 3, 4}, more[4] = {0, 3, 4, 5};
    c.compute_factor = factor;
    plug_n = 0;
    if (sc_emu_new(&c, &arena, &e, &err) != SC_OK) no_error();
    uint32_t g = group_of(e, few, 3), h = group_of(e, more, 4);
    assert_true(end_of(e, all_reduce(e, g, 0, 0, 100 * US)).begin == 125 * US);
    assert_true(end_of(e, all_reduce(e, h, 0, 0, 100 * US)).begin == 250 * US);
    assert_true(end_of(e, all_reduce(e, 0, 0, 0, 200 * US)).begin == 500 * US);
}

static void stalls(void **state)
{
    (void)state;
    sc_emu *e = world_of(&(asked){
        .whatif = {"stall=3:20us@1", "stall=3:5us@1", "stall=4:7us@3"}});
    static const sc_time late[5] = {0, 25, 0, 7, 0};
    sc_time t = 0;
    for (int i = 0; i < 5; i++) {
        sc_emu_end x = reduce(e, t + 100 * US);
        assert_true(x.begin == t + (100 + late[i]) * US);
        t = x.end;
    }
}

/* A stall lasts until somebody waits. */
static void stall_stays(void **state)
{
    (void)state;
    sc_emu *e = world_of(&(asked){.whatif = {"stall=3:30us@0"}});
    uint64_t a = all_reduce(e, 0, 0, 0, 0), b = all_reduce(e, 0, 0, 0, US);
    assert_true(end_of(e, a).begin == 30 * US);
    assert_true(end_of(e, b).begin == 31 * US);
    sc_emu_waited(e, 0, 2 * US, 12 * US); /* 10 of 30 */
    assert_true(end_of(e, all_reduce(e, 0, 0, 0, 50 * US)).begin == 70 * US);
}

static void failure(void **state)
{
    (void)state;
    uint32_t pair[2] = {0, 1};
    const sc_emu_end *end;
    sc_emu *e = world_of(&(asked){.whatif = {"fail=3@2", "fail=5@3"}});
    uint32_t g = group_of(e, pair, 2);
    reduce(e, US);
    reduce(e, 100 * US);
    uint64_t k = all_reduce(e, 0, 0, 0, 200 * US);
    assert_true(sc_emu_next(e) == SC_TIME_MAX);
    assert_int_equal(sc_emu_advance(e, 3600 * MS, &end), 0);
    why_is(e, k, "rank 3 never arrives: --what-if fail=3@2");
    sc_emu_op recv = {.coll = SC_RECV, .peer = 5};
    uint64_t m = call(e, recv, 7200 * MS);
    why_is(e, m, "rank 5 never arrives: --what-if fail=5@3");
    end_of(e, all_reduce(e, g, 0, 0, 7200 * MS)); /* others do */
    sc_emu_cancel(e, k);
    why_is(e, k, "");
}

/* A message from a straggler comes when it would have sent it. */
static void messages(void **state)
{
    (void)state;
    sc_emu *e = world_of(&(asked){.whatif = {"straggler=5:1.5"}});
    sc_emu_op op = {.coll = SC_RECV, .peer = 5};
    assert_true(block(e, op, 100 * US).begin == 150 * US);
    op.peer = 4;
    assert_true(block(e, op, 200 * US).begin == 200 * US);
}

/* Emulated ranks mirror the first real rank of the group; each its own
 * clock. */
static void several_real(void **state)
{
    (void)state;
    const sc_emu_end *end;
    uint32_t high[4] = {4, 5, 6, 7};
    sc_emu *e = world_of(&(asked){.ranks = "1,4", .whatif = {"straggler=6:2"}});
    uint32_t g = group_of(e, high, 4);
    all_reduce(e, g, 4, 0, 10 * US); /* mirrors 4 */
    assert_int_equal(ends_of(e, &end), 1);
    assert_true(end->begin == 20 * US);
    all_reduce(e, 0, 1, 0, 100 * US); /* mirrors 1 */
    all_reduce(e, 0, 4, 0, 90 * US);
    assert_int_equal(ends_of(e, &end), 2);
    assert_true(end[0].begin == 200 * US && end[1].begin == 200 * US);
}

/* ---- jitter ------------------------------------------------------------------ */

static double below(double z)
{
    return erfc(-z / sqrt(2)) / 2;
}

static void largest_of_many(void **state)
{
    (void)state;
    assert_true(fabs(sc_normal_max(0.5, 1)) < 1e-12);
    assert_true(fabs(sc_normal_max(0.975, 1) - 1.959963984540054) < 1e-12);
    for (double n = 1; n < 1e6; n = n * 7 + 1)
        for (double u = 1e-15; u < 1; u = u < 0.01 ? u * 10 : u + 0.0099) {
            double z = sc_normal_max(u, n);
            double back = n * log1p(-erfc(z / sqrt(2)) / 2);
            if (z < 0) back = n * log(below(z));
            if (fabs(back - log(u)) > 1e-9 * (1 + fabs(log(u))))
                fail_msg("%g of %g: %.17g", u, n, z);
        }
}

static double mean_late(uint32_t world, uint64_t seed)
{
    enum { N = 20000 };

    sc_emu *e = world_of(&(asked){.world = world,
                                  .whatif = {"jitter=0.03", "jitter=0.04"},
                                  .seed = seed});
    double sum = 0;
    sc_time t = 0;
    for (int i = 0; i < N; i++) {
        sc_emu_end x = reduce(e, t + MS);
        sum += sc_time_to_s(x.begin - t - MS) / (0.05 * 1e-3);
        t = x.end;
    }
    return sum / N;
}

/* Of max(0, largest of n normal deviations): 1 / sqrt(2 pi); by the table of
 * normal order statistics 1.35218 of 7, and 0.0005 for those below 0; 2.5942
 * of 127. */
static void jitter(void **state)
{
    (void)state;
    assert_true(fabs(mean_late(2, 1) - 0.39894) < 0.015);
    assert_true(fabs(mean_late(8, 1) - 1.3527) < 0.015);
    assert_true(fabs(mean_late(64, 1) - 2.3393) < 0.015);
    assert_true(mean_late(8, 1) == mean_late(8, 1));
    assert_true(mean_late(8, 1) != mean_late(8, 2));
}

/* Of other ranks the real one knows nothing: it is never early for itself. */
static void nothing_computed(void **state)
{
    (void)state;
    sc_emu *e = world_of(&(asked){.whatif = {"jitter=1"}});
    assert_true(reduce(e, 0).begin == 0);
    assert_true(reduce(e, 10 * US).begin == 10 * US); /* it only waited */
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(straggler),       T(asynchronous),   T(short_wait),
        T(fast_peer),       T(real_straggler), T(two_factors),
        T(devices),         T(stalls),         T(stall_stays),
        T(failure),         T(messages),       T(several_real),
        T(largest_of_many), T(jitter),         T(nothing_computed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
