/* SPDX-License-Identifier: Apache-2.0 */
/* The property-test helper finds, shrinks and reports. */
#include "property.h"
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct seen {
    uint64_t runs, reported, sum;
    size_t len;
} seen;

static bool always(prop *p, void *ctx)
{
    seen *s = ctx;
    s->runs++;
    return prop_below(p, 10) < 10 && prop_unit(p) < 1;
}

static bool below_1000(prop *p, void *ctx)
{
    seen *s = ctx;
    uint64_t v = prop_below(p, 1000000);
    if (prop_reporting(p)) s->reported = v;
    return v < 1000;
}

/* Fails where the sum of a list is large. */
static bool small_sum(prop *p, void *ctx)
{
    seen *s = ctx;
    uint64_t n = prop_below(p, 20), sum = 0;
    for (uint64_t i = 0; i < n; i++) sum += prop_below(p, 1000);
    if (prop_reporting(p)) {
        s->sum = sum;
        s->len = (size_t)n;
    }
    return sum < 777;
}

static void test_passes(void **state)
{
    (void)state;
    seen s = {0, 0, 0, 0};
    assert_true(prop_check("always", 500, always, &s));
    assert_int_equal(s.runs, 500);
}

static void test_shrinks(void **state)
{
    (void)state;
    seen s = {0, 0, 0, 0};
    assert_false(
        prop_check("below 1000 (fails on purpose)", 500, below_1000, &s));
    assert_int_equal(s.reported, 1000);
    assert_false(
        prop_check("small sum (fails on purpose)", 500, small_sum, &s));
    assert_int_equal(s.sum, 777);
    assert_in_range(s.len, 1, 2); /* two may share the sum */
}

static bool collect(prop *p, void *ctx)
{
    seen *s = ctx;
    s->sum = s->sum * 31 + prop_below(p, 1u << 30);
    return true;
}

static void test_same_seed_same_cases(void **state)
{
    (void)state;
    seen a = {0, 0, 0, 0}, b = a, c = a;
    assert_int_equal(setenv("STEPCAST_SEED", "17", 1), 0);
    prop_check("collect", 50, collect, &a);
    prop_check("collect", 50, collect, &b);
    assert_int_equal(setenv("STEPCAST_SEED", "18", 1), 0);
    prop_check("collect", 50, collect, &c);
    unsetenv("STEPCAST_SEED");
    assert_int_equal(a.sum, b.sum);
    assert_int_not_equal(a.sum, c.sum);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_passes),
        cmocka_unit_test(test_shrinks),
        cmocka_unit_test(test_same_seed_same_cases),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
