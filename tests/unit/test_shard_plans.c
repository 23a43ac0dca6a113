/* SPDX-License-Identifier: Apache-2.0 */
/* Plans of embedding tables: the search against all placements, memory, and
 * what a step is made of. */
#include "fixture.h"
#include "shard/prices.h"

#include <math.h>
#include <string.h>

static sc_cost cost;
static sc_shard_table table[64];
static sc_shard_job job;
static sc_shard_prices *prices;

static void start(const char *cluster, uint32_t n, double batch)
{
    assert_int_equal(sc_cost_builtin(&arena, &cost, &err), SC_OK);
    job =
        (sc_shard_job){machine(cluster), &cost, table, n, batch, 0.8, "sgd", 1};
    assert_int_equal(sc_shard_prices_new(&job, &arena, &prices, &err), SC_OK);
}

static sc_shard_plan plan_of(sc_sharder sharder)
{
    sc_shard_plan p;
    assert_int_equal(sc_shard_plan_of(prices, sharder, &arena, &p, &err),
                     SC_OK);
    assert_int_equal(sc_shard_simulate(prices, &arena, &p, &err), SC_OK);
    return p;
}

static void random_tables(uint32_t n, uint64_t seed)
{
    for (uint32_t i = 0; i < n; i++)
        table[i] = (sc_shard_table){
            .name = "t",
            .rows = 1000 + (double)sc_random_below(&seed, 5000000),
            .width = 32 * (1 + (double)sc_random_below(&seed, 8)),
            .pooling = 1 + (double)sc_random_below(&seed, 60),
            .access = {.kind = SC_ACCESS_ZIPF,
                       .exponent = 0.8 + 0.4 * sc_random_unit(&seed)}};
}

/* On three devices, of all 3^7 placements of whole tables none is faster. */
static void no_whole_placement_is_faster(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 6; seed++) {
        uint32_t n = 7, all = 2187;
        random_tables(n, seed);
        start("a100-sxm-80g:3", n, 4096);
        double least = INFINITY;
        sc_shard_plan p, best = plan_of(SC_SHARD_BEST);
        assert_int_equal(shard_plan_new(prices, &arena, &p, &err), SC_OK);
        for (uint32_t k = 0; k < all; k++) {
            uint32_t rest = k;
            for (uint32_t t = 0; t < n; t++, rest /= 3)
                p.place[t] = (sc_shard_place){
                    .split = SC_SHARD_TABLE, .parts = 1, .device = {rest % 3}};
            assert_int_equal(shard_estimate(prices, &p, &err), SC_OK);
            least = fmin(least, p.step.step);
        }
        assert_true(best.fits && best.step.step <= 1.02 * least);
        for (int i = 0; i < SC_SHARD_BEST; i++)
            assert_true(plan_of((sc_sharder)i).step.step >=
                        0.999 * best.step.step);
    }
}

/* Tables beyond one device are divided; beyond all devices nothing fits. */
static void memory_bounds_plans(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 3; i++)
        table[i] = (sc_shard_table){
            .name = "t", .rows = 6e7, .width = 128, .pooling = 2};
    start("v100-sxm2-32g:4", 3, 1024);
    sc_shard_plan best = plan_of(SC_SHARD_BEST);
    assert_false(plan_of(SC_SHARD_SIZE).fits);
    assert_true(best.fits);
    for (uint32_t d = 0; d < 4; d++)
        assert_true(best.load[d].memory <= sc_shard_room(prices));
    start("v100-sxm2-32g:2", 3, 1024);
    best = plan_of(SC_SHARD_BEST);
    assert_false(best.fits);
    assert_true(best.load[best.full].memory > sc_shard_room(prices));
}

/* Equal tables on as many devices: no sharder does better than one each, and
 * the step is the sum of its phases. */
static void equal_tables(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 8; i++)
        table[i] = (sc_shard_table){
            .name = "t", .rows = 1e6, .width = 128, .pooling = 20};
    start("dgx-h100:1", 8, 8192);
    sc_shard_plan naive = plan_of(SC_SHARD_NAIVE);
    const sc_shard_step *s = &naive.step;
    double sum =
        s->indices + s->forward + s->exchange + s->gradients + s->backward;
    assert_true(fabs(s->step / sum - 1) < 1e-12);
    assert_true(fabs(naive.simulated / sum - 1) < 0.01);
    for (uint32_t d = 0; d < 8; d++) {
        assert_int_equal(naive.load[d].parts, 1);
        assert_true(naive.load[d].forward == naive.load[0].forward);
    }
    sc_shard_plan best = plan_of(SC_SHARD_BEST);
    assert_true(best.step.step <= s->step && best.step.step > 0.7 * s->step);
}

/* One device exchanges nothing. */
static void one_device(void **state)
{
    (void)state;
    random_tables(5, 9);
    start("h100-sxm:1", 5, 2048);
    sc_shard_plan p = plan_of(SC_SHARD_BEST);
    assert_true(p.step.exchange == 0 && p.step.indices == 0);
    assert_true(fabs(p.simulated / (p.step.forward + p.step.backward) - 1) <
                0.05);
}

/* Small tables with many look-ups, whose sums are large, stay on every
 * device. */
static void small_tables_are_everywhere(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 16; i++)
        table[i] = (sc_shard_table){
            .name = "t", .rows = 100, .width = 512, .pooling = 1};
    start("dgx-a100-80g:4", 16, 65536);
    sc_shard_plan p = plan_of(SC_SHARD_BEST);
    uint32_t data = 0;
    for (uint32_t i = 0; i < 16; i++) data += p.place[i].split == SC_SHARD_DATA;
    assert_int_equal(data, 16);
    assert_true(p.step.reduce > 0 && p.step.exchange == 0);
    assert_true(fabs(p.simulated / p.step.step - 1) < 0.05);
}

static void reads_tables(void **state)
{
    (void)state;
    static const char csv[] = "rows,width,pooling,access,copies\n"
                              "100,64,2.5,zipf 1.1,2\n7,4,,,\n";
    static const char yml[] = "tables:\n"
                              "  - {rows: 100, width: 64, pooling: 2.5, "
                              "access: zipf 1.1, copies: 2}\n"
                              "  - {rows: 7, width: 4}\n";
    for (int as = 0; as < 2; as++) {
        sc_shard_tables t;
        const char *text = as ? csv : yml;
        sc_status s =
            sc_shard_read(text, strlen(text), "f", as == 1, &arena, &t, &err);
        no_error();
        assert_int_equal(s, SC_OK);
        assert_int_equal(t.n, 3);
        assert_true(t.table[1].rows == 100 && t.table[1].pooling == 2.5);
        assert_true(t.table[1].access.exponent == 1.1);
        assert_string_equal(t.table[1].name, "t1");
        assert_true(t.table[2].width == 4 && t.table[2].pooling == 1);
        assert_int_equal(t.table[2].access.kind, SC_ACCESS_UNIFORM);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(no_whole_placement_is_faster, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(memory_bounds_plans, setup, teardown),
        cmocka_unit_test_setup_teardown(equal_tables, setup, teardown),
        cmocka_unit_test_setup_teardown(one_device, setup, teardown),
        cmocka_unit_test_setup_teardown(small_tables_are_everywhere, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(reads_tables, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
