/* SPDX-License-Identifier: Apache-2.0 */
/* Arena: zeroed and aligned memory, limits, marks, reuse. */
#include <stepcast/base/arena.h>

#include "unit.h"

#include <string.h>

static bool is_zero(const unsigned char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (p[i] != 0) return false;
    return true;
}

static void test_zeroed_and_aligned(void **state)
{
    (void)state;
    sc_arena a;
    sc_arena_init(&a, 0);
    for (int round = 0; round < 3; round++) {
        for (size_t n = 0; n < 3000; n += 7) {
            unsigned char *p = sc_alloc(&a, n, 3);
            assert_non_null(p);
            assert_int_equal((uintptr_t)p % 16, 0);
            assert_true(is_zero(p, 3 * n));
            memset(p, 0xAB, 3 * n);
        }
        sc_arena_reset(&a);
        assert_int_equal(a.used, 0);
    }
    sc_arena_free(&a);
    assert_null(a.head);
}

static void test_limit(void **state)
{
    (void)state;
    sc_arena a;
    sc_arena_init(&a, 1000);
    assert_non_null(sc_alloc(&a, 1, 600));
    assert_null(sc_alloc(&a, 1, 401));
    assert_non_null(sc_alloc(&a, 4, 100));
    assert_int_equal(a.used, 1000);
    assert_null(sc_alloc(&a, 1, 1));
    assert_non_null(sc_alloc(&a, 0, 8));
    sc_arena_reset(&a);
    assert_non_null(sc_alloc(&a, 1, 1000));
    sc_arena_free(&a);
}

static void test_overflow(void **state)
{
    (void)state;
    sc_arena a;
    sc_arena_init(&a, 0);
    assert_null(sc_alloc(&a, SIZE_MAX, 2));
    assert_null(sc_alloc(&a, SIZE_MAX / 2, 2));
    assert_null(sc_alloc(&a, 2, SIZE_MAX / 2));
    assert_null(sc_alloc(&a, SIZE_MAX, 1));
    assert_int_equal(a.used, 0);
    sc_arena_free(&a);
}

static void test_marks(void **state)
{
    (void)state;
    sc_arena a;
    sc_arena_init(&a, 0);
    sc_arena_mark empty = sc_arena_save(&a);
    char *keep = sc_strdup(&a, "keep me");
    for (int i = 0; i < 100; i++) {
        sc_arena_mark m = sc_arena_save(&a);
        size_t used = a.used;
        for (size_t n = 1; n < 200000; n *= 3) {
            unsigned char *p = sc_alloc(&a, n, 1);
            assert_true(is_zero(p, n));
            memset(p, 1, n);
        }
        sc_arena_restore(&a, m);
        assert_int_equal(a.used, used);
    }
    assert_string_equal(keep, "keep me");
    sc_arena_restore(&a, empty);
    assert_int_equal(a.used, 0);
    assert_null(a.head);
}

static void test_reset_keeps_largest(void **state)
{
    (void)state;
    sc_arena a;
    sc_arena_init(&a, 0);
    void *big = sc_alloc(&a, 1, 5000000);
    for (int i = 0; i < 100; i++) assert_non_null(sc_alloc(&a, 1, 200000));
    assert_non_null(big);
    sc_arena_reset(&a);
    sc_arena_chunk *kept = a.head;
    assert_non_null(kept);
    assert_non_null(sc_alloc(&a, 1, 5000000));
    assert_ptr_equal(a.head, kept);
    sc_arena_free(&a);
}

static void test_strings(void **state)
{
    (void)state;
    sc_arena a;
    sc_arena_init(&a, 0);
    assert_string_equal(sc_strdup(&a, ""), "");
    assert_string_equal(sc_strndup(&a, "abcdef", 3), "abc");
    assert_string_equal(sc_strndup(&a, "ab", 100), "ab");
    assert_string_equal(sc_strndup(&a, NULL, 0), "");
    assert_string_equal(sc_sprintf(&a, "%d-%s", 42, "x"), "42-x");
    assert_int_equal(strlen(sc_sprintf(&a, "%5000d", 1)), 5000);
    sc_arena_free(&a);
    sc_arena_init(&a, 4);
    assert_null(sc_strdup(&a, "1234"));
    assert_null(sc_sprintf(&a, "%d", 1234));
    sc_arena_free(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_zeroed_and_aligned),
        cmocka_unit_test(test_limit),
        cmocka_unit_test(test_overflow),
        cmocka_unit_test(test_marks),
        cmocka_unit_test(test_reset_keeps_largest),
        cmocka_unit_test(test_strings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
