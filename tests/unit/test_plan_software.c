/* SPDX-License-Identifier: Apache-2.0 */
/* The program that is assumed on a class of devices. */
#include "fixture.h"
#include "plan/plan.h"

#include <string.h>

static const char *on(const sc_held_out *h, const char *generation,
                      const char *date)
{
    const char *name = NULL;
    if (sc_software_default(h, generation, date, &arena, &name, &err))
        no_error();
    return name ? name : "";
}

/* Only programs with rows on the generation count, and of these the newest
 * with some rows more than a few, which is not of one benchmark, no variant and in a fit. */
static void newest_with_rows(void **state)
{
    (void)state;
    static const sc_measured rows[] = {
        {"llm-foundry-2023", "ampere", 30},
        {"megatron-lm-2021", "ampere", 11},
        {"torchtitan-2024", "hopper", 17},
        {"megatron-bridge-2026", "hopper", 2},
        {"primus-megatron-2026", "cdna4", 1},
        {"megatron-lm-2022", "volta", 2},
        {"nanotron-2025", "hopper", 260},
        {"mlperf-nemo", "ada", 5},
        {"megatron-bridge-25.11", "blackwell", 8},
        {"megatron-bridge-2026-mxfp8", "blackwell-ultra", 21},
        {"megatron-bridge-2025", "blackwell-ultra", 2}};
    sc_held_out h;
    sc_held_out_none(&h);
    assert_string_equal(on(&h, "ampere", NULL), "");
    h.measured = rows;
    h.n_measured = SC_COUNT(rows);
    assert_string_equal(on(&h, "ampere", NULL), "llm-foundry-2023");
    assert_string_equal(on(&h, "ampere", "2022-01"), "megatron-lm-2021");
    assert_string_equal(on(&h, "hopper", NULL), "torchtitan-2024");
    assert_string_equal(on(&h, "blackwell", ""), "megatron-bridge-25.11");
    /* rows of a variant are rows of the program that has it */
    assert_string_equal(on(&h, "blackwell-ultra", NULL),
                        "megatron-bridge-2026");
    assert_string_equal(on(&h, "cdna4", NULL), ""); /* in no fit */
    assert_string_equal(on(&h, "volta", NULL), "megatron-lm-2022");
    assert_string_equal(on(&h, "ada", NULL), "");
    assert_string_equal(on(&h, "cdna3", NULL), "");
}

/* With the built-in rows: a name, or its absence, for every device. */
static void every_device(void **state)
{
    (void)state;
    const char **names = NULL;
    uint32_t n = 0;
    sc_held_out h;
    if (sc_hw_list(true, &arena, &names, &n, &err) ||
        sc_held_out_builtin(&arena, &h, &err))
        no_error();
    for (uint32_t i = 0; i < n; i++) {
        const sc_device *d = device(names[i]);
        const sc_software *sw = NULL;
        const char *want = on(&h, d->arch, NULL);
        if (sc_software_nearest(NULL, NULL, d, sc_pos_none(), &arena, &sw,
                                &err))
            no_error();
        assert_true(sw->open); /* all options are allowed */
        assert_null(sw->nearest);
        if (want[0]) assert_string_equal(sw->name, want);
        if (strcmp(d->vendor, "google") == 0)
            assert_string_equal(sw->name, "maxtext-2025");
        if (want[0]) assert_true(sc_held_out_measured(&h, want, d->arch) > 0);
    }
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(newest_with_rows),
                                       TEST(every_device)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
