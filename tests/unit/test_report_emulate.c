/* SPDX-License-Identifier: Apache-2.0 */
/* Sums over the steps of a live run. */
#include "fixture.h"
#include "report/emulate_sum.h"

/* Of a step from 100 to 200 ps: 5 of what began before it, 20 of the next, 20
 * of one of which the first 10 are counted, nothing of one within that, 20 on a
 * device, from its post on, and 10 of the last one, which ends after the step. */
static sc_emu_record records[] = {
    {.post = 90, .begin = 95, .end = 105},
    {.post = 108, .begin = 110, .end = 130},
    {.post = 109, .begin = 120, .end = 150},
    {.post = 111, .begin = 140, .end = 145},
    {.flags = SC_EMU_DEVICE, .post = 160, .begin = 170, .end = 180},
    {.post = 185, .begin = 190, .end = 230}};

static const sc_emu_run run = {.n_records = SC_COUNT(records),
                               .record = records};

static const sc_emu_step steps[] = {{0, 100, 0, 0},
                                    {100, 200, 0, SC_COUNT(records)}};

static void in_flight(void **state)
{
    (void)state;
    assert_int_equal(report_emulate_in_flight(&run, &steps[1]),
                     5 + 20 + 20 + 0 + 20 + 10);
    assert_int_equal(report_emulate_in_flight(&run, &steps[0]), 0);
}

/* The first step of a rank is left out. */
static void sums(void **state)
{
    (void)state;
    sc_report_real rank = {.run = &run, .n_steps = 2, .step = steps};
    sc_report_emulation s = {.n = 1, .rank = &rank};
    sc_report_emu_sum sum;
    assert_int_equal(sc_report_emulation_sum(&s, &arena, &sum, &err), SC_OK);
    assert_int_equal(sum.n_steps, 1);
    assert_int_equal(sum.n_ops, 6);
    assert_true(sum.step_s == sc_time_to_s(100));
    assert_true(sum.in_flight_s == sc_time_to_s(75));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(in_flight, setup, teardown),
        cmocka_unit_test_setup_teardown(sums, setup, teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
