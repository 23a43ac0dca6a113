/* SPDX-License-Identifier: Apache-2.0 */
/* Distributions of look-ups: their texts, and kernels whose reads the cache
 * serves. */
#include "cost/cost_op.h"
#include "fixture.h"

#include <math.h>
#include <string.h>

static void texts(void **state)
{
    (void)state;
    static const char *const good[] = {"uniform", "zipf 1.05",
                                       "reuse 1000: 0.25 0.5 0.25"};
    for (size_t i = 0; i < SC_COUNT(good); i++) {
        sc_access x, y;
        sc_text t;
        assert_int_equal(sc_access_read(good[i], sc_pos_none(), &x, &err),
                         SC_OK);
        sc_text_init(&t);
        sc_access_print(&x, &t);
        assert_string_equal(t.buf, good[i]);
        assert_int_equal(sc_access_read(t.buf, sc_pos_none(), &y, &err), SC_OK);
        assert_true(sc_access_hash(&x) == sc_access_hash(&y));
        sc_text_free(&t);
    }
}

static void wrong_texts(void **state)
{
    (void)state;

    static const struct {
        const char *text;
        sc_code code;
    } bad[] = {
        {"", SC_C_TYPE},
        {"zipf", SC_C_TYPE},
        {"zipf -1", SC_C_RANGE},
        {"zipf 1 2", SC_C_TYPE},
        {"zipf nan", SC_C_TYPE},
        {"reuse 10", SC_C_TYPE},
        {"reuse 10: 0.5", SC_C_RANGE},
        {"reuse 0: 1", SC_C_RANGE},
        {"reuse 10: 1.5", SC_C_RANGE},
        {"reuse 10: 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0.5 0.5", SC_C_RANGE},
        {"reuse 10: 1 x", SC_C_TYPE},
    };

    for (size_t i = 0; i < SC_COUNT(bad); i++) {
        sc_access x = {.kind = SC_ACCESS_UNIFORM, .exponent = 7};
        sc_err_init(&err);
        assert_int_equal(sc_access_read(bad[i].text, sc_pos_none(), &x, &err),
                         SC_EINPUT);
        assert_int_equal(err.d[0].code, bad[i].code);
        assert_true(x.exponent == 7);
    }
}

static void row_numbers(void **state)
{
    (void)state;
    static const char text[] = "4 4\n7, 9 9 9\n9 4 1\n";
    sc_access x;
    assert_int_equal(
        sc_access_of_indices(text, strlen(text), "f", &arena, &x, &err), SC_OK);
    assert_true(x.lookups == 9);
    assert_true(fabs(x.fraction[0] - 2.0 / 9) < 1e-15); /* 7 and 1 */
    assert_true(x.fraction[1] == 0);
    assert_true(fabs(x.fraction[2] - 7.0 / 9) < 1e-15); /* 4 and 9 */
    static const char *const bad[] = {"", "1 2\n 3 x", "99999999999999999999"};
    for (size_t i = 0; i < SC_COUNT(bad); i++)
        assert_int_equal(
            sc_access_of_indices(bad[i], strlen(bad[i]), "f", &arena, &x, &err),
            SC_EINPUT);
}

/* A table of 10 million rows of 128 values, 4096 samples of 20 look-ups. */
static sc_op_work work(const sc_access *x, sc_op_pass pass)
{
    double y = 4096 * 128;
    return (sc_op_work){.type = SC_NET_EMBED,
                        .pass = (uint8_t)pass,
                        .elements = y,
                        .each = 4,
                        .y = 4 * y,
                        .x = 8 * 4096 * 20,
                        .w = 4 * 1e7 * 128,
                        .lookups = 20,
                        .access = x,
                        .table_rows = 1e7,
                        .table_width = 128,
                        .row_parts = 1,
                        .tables = 1,
                        .weight_learns = true};
}

static sc_price price(const char *name, const sc_access *x, sc_op_pass pass)
{
    static const sc_op_facts facts = {.precision = SC_FP32, .fused = true};
    sc_cost c;
    sc_op_kernels l;
    sc_op_work w = work(x, pass);
    sc_cost_centres(&c);
    sc_op_list(&c, &facts, &w, &l);
    return sc_op_price(&c, device(name), &l);
}

/* More reuse reads less from memory and is faster, and bytes are never less
 * than those of the rows that occur. */
static void kernels(void **state)
{
    (void)state;
    static const char *const names[] = {"v100-sxm2-32g", "a100-sxm-80g",
                                        "h100-sxm", "mi300x"};
    sc_access uniform = {.kind = SC_ACCESS_UNIFORM};
    for (size_t i = 0; i < SC_COUNT(names); i++) {
        double rows = 4096 * 20 * 512.0, y = 4096 * 512, ids = 8 * 4096 * 20;
        sc_price none = price(names[i], NULL, SC_PASS_FWD);
        sc_price flat = price(names[i], &uniform, SC_PASS_FWD);
        sc_price before = flat,
                 backward = price(names[i], &uniform, SC_PASS_BWD);
        assert_true(none.bytes == rows + y + ids);
        assert_true(flat.bytes <= none.bytes && flat.bytes > 0.98 * none.bytes);
        for (double s = 0.6; s < 1.6; s += 0.1) {
            sc_access zipf = {.kind = SC_ACCESS_ZIPF, .exponent = s};
            sc_price p = price(names[i], &zipf, SC_PASS_FWD);
            sc_price b = price(names[i], &zipf, SC_PASS_BWD);
            assert_true(p.bytes < before.bytes && p.seconds <= before.seconds);
            assert_true(b.seconds < backward.seconds);
            assert_true(p.bytes > y + ids);
            before = p;
            backward = b;
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(texts, setup, teardown),
        cmocka_unit_test_setup_teardown(wrong_texts, setup, teardown),
        cmocka_unit_test_setup_teardown(row_numbers, setup, teardown),
        cmocka_unit_test_setup_teardown(kernels, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
