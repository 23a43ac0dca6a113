/* SPDX-License-Identifier: Apache-2.0 */
/* test_plan_buckets.c - when gradients that are exchanged together leave. */
#include "plan/plan_buckets.h"
#include "unit.h"

static const sc_gradient scattered = {
    .n = 2,
    .axes = {1, 2},
    .coll = {SC_REDUCE_SCATTER, SC_ALL_REDUCE},
    .bytes = {60, 6},
};
static const sc_gradient summed = {
    .n = 1,
    .axes = {1},
    .coll = {SC_ALL_REDUCE},
    .bytes = {50},
};

/* Whether the gradient fills its bucket, which it then closes. */
static bool adds(plan_buckets *s, const sc_gradient *g, double ready)
{
    plan_bucket *b = plan_bucket_of(s, plan_bucket_way(g));
    assert_non_null(b);
    bool full = plan_bucket_add(s, b, g->bytes, g->n, ready);
    if (full) plan_bucket_close(s, b);
    return full;
}

static void equal_exchanges_share_a_bucket(void **state)
{
    (void)state;
    plan_bucket room[2];
    plan_buckets s = {.full = 100, .room = 2, .open = room};
    assert_false(adds(&s, &scattered, 1));
    assert_false(adds(&s, &summed, 2));
    assert_int_equal(s.n, 2);
    assert_true(adds(&s, &scattered, 3)); /* 120 bytes */
    assert_int_equal(s.n, 1);
    assert_true(adds(&s, &summed, 4)); /* 100 bytes: full, not beyond */
    assert_int_equal(s.n, 0);
    s.beyond = true;
    assert_false(adds(&s, &summed, 5));
    assert_false(adds(&s, &summed, 6)); /* 100 */
    assert_true(adds(&s, &summed, 7));  /* 150 */
}

static void each_exchange_has_its_bytes(void **state)
{
    (void)state;
    plan_bucket room[1];
    plan_buckets s = {.room = 1, .open = room};
    assert_false(adds(&s, &scattered, 1));
    assert_false(adds(&s, &scattered, 8)); /* never full */
    plan_bucket b = plan_bucket_close(&s, plan_bucket_first(&s));
    assert_true(b.bytes[0] == 120);
    assert_true(b.bytes[1] == 12);
    assert_true(b.ready == 8);
    assert_int_equal(b.n, 2);
    assert_null(plan_bucket_first(&s));
}

/* The bucket whose last gradient is ready first leaves first; a full table
 * has no room for another. */
static void the_first_complete_leaves_first(void **state)
{
    (void)state;
    plan_bucket room[2];
    plan_buckets s = {.room = 2, .open = room};
    sc_gradient other = summed;
    other.axes[0] = 4;
    assert_false(adds(&s, &scattered, 1));
    assert_false(adds(&s, &summed, 2));
    assert_false(adds(&s, &scattered, 3));
    assert_null(plan_bucket_of(&s, plan_bucket_way(&other)));
    plan_bucket b = plan_bucket_close(&s, plan_bucket_first(&s));
    assert_true(b.way == plan_bucket_way(&summed));
    assert_non_null(plan_bucket_of(&s, plan_bucket_way(&other)));
    assert_int_equal(s.n, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_exchanges_share_a_bucket),
        cmocka_unit_test(each_exchange_has_its_bytes),
        cmocka_unit_test(the_first_complete_leaves_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
