/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers and texts come back from their bytes; what is cut off or changed is
 * noticed at its place. */
#include "base/base.h"
#include "unit.h"

#include <math.h>
#include <string.h>

static const uint64_t numbers[] = {
    0,         1,     127,      128,        300,
    16383,     16384, 1u << 31, UINT32_MAX, UINT64_MAX - 1,
    UINT64_MAX};
static const double doubles[] = {0, -0.0, 1.5, -2e-300, INFINITY};

static void round_trip(void **state)
{
    sc_arena a;
    sc_bytes b = {0};
    (void)state;
    sc_arena_init(&a, 0);
    for (size_t i = 0; i < SC_COUNT(numbers); i++)
        sc_bytes_uint(&b, numbers[i]);
    for (size_t i = 0; i < SC_COUNT(doubles); i++)
        sc_bytes_double(&b, doubles[i]);
    sc_bytes_text(&b, "");
    sc_bytes_text(&b, "tp * pp");
    sc_bytes_seal(&b, 0);
    assert_false(b.failed);
    sc_bytes_in in = sc_bytes_from(b.buf, b.len);
    for (size_t i = 0; i < SC_COUNT(numbers); i++)
        assert_true(sc_bytes_get_uint(&in) == numbers[i]);
    for (size_t i = 0; i < SC_COUNT(doubles); i++) {
        double v = sc_bytes_get_double(&in);
        assert_memory_equal(&v, &doubles[i], sizeof v);
    }
    assert_string_equal(sc_bytes_get_text(&in, &a), "");
    assert_string_equal(sc_bytes_get_text(&in, &a), "tp * pp");
    assert_true(sc_bytes_sealed(&in, 0));
    assert_int_equal(in.at, in.n);
    sc_bytes_free(&b);
    sc_arena_free(&a);
}

/* The bytes are the same on every machine. */
static void form(void **state)
{
    static const uint8_t expected[] = {0xAC, 2, 0,  0, 0,   0,  0,
                                       0,    0, 64, 2, 'a', 'b'};
    sc_bytes b = {0};
    (void)state;
    sc_bytes_uint(&b, 300);
    sc_bytes_double(&b, 2);
    sc_bytes_text(&b, "ab");
    assert_int_equal(b.len, sizeof expected);
    assert_memory_equal(b.buf, expected, sizeof expected);
    sc_bytes_free(&b);
}

static void damaged(void **state)
{
    sc_bytes b = {0};
    sc_arena a;
    (void)state;
    sc_arena_init(&a, 0);
    sc_bytes_uint(&b, 5);
    sc_bytes_text(&b, "word");
    sc_bytes_seal(&b, 0);
    for (size_t n = 0; n < b.len; n++) { /* cut off */
        sc_bytes_in in = sc_bytes_from(b.buf, n);
        sc_bytes_get_uint(&in);
        sc_bytes_get_text(&in, &a);
        assert_false(sc_bytes_sealed(&in, 0));
        assert_true(in.bad);
        assert_true(in.bad_at <= n);
        assert_int_equal(sc_bytes_get_uint(&in), 0);
        assert_string_equal(sc_bytes_get_text(&in, &a), "");
    }
    for (size_t n = 0; n < b.len; n++) { /* changed */
        b.buf[n] ^= 4;
        sc_bytes_in in = sc_bytes_from(b.buf, b.len);
        sc_bytes_take(&in, b.len - 8);
        assert_false(sc_bytes_sealed(&in, 0));
        b.buf[n] ^= 4;
    }
    sc_bytes_free(&b);
    /* more than 64 bits, more than may be, a text with a NUL */
    static const uint8_t longest[] = {0xFF, 0xFF, 0xFF, 0xFF, 0xFF,
                                      0xFF, 0xFF, 0xFF, 0xFF, 2};
    sc_bytes_in in = sc_bytes_from(longest, sizeof longest);
    sc_bytes_get_uint(&in);
    assert_true(in.bad && in.bad_at == 0);
    in = sc_bytes_from("\7", 1);
    assert_int_equal(sc_bytes_get_most(&in, 6), 0);
    assert_true(in.bad);
    in = sc_bytes_from("\2a", 3);
    sc_bytes_get_text(&in, &a);
    assert_true(in.bad && in.bad_at == 0);
    sc_arena_free(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(round_trip),
                                       cmocka_unit_test(form),
                                       cmocka_unit_test(damaged)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
