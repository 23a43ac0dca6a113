/* SPDX-License-Identifier: Apache-2.0 */
/* Sums over the steps of a live run. */
#include "fixture.h"
#include "report/emulate_sum.h"

#include <math.h>

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
    /* on a device, computation is unknown */
    assert_true(isnan(sum.compute_s) && isnan(sum.compute_spread));
}

/* Five steps of 100 ps, of which each waits for longer; another rank computes
 * as long every time. */
static void computation(void **state)
{
    (void)state;
    sc_emu_record record[6] = {{0}};
    sc_emu_step step[6];
    for (uint32_t i = 0; i < 6; i++) {
        record[i].waited = 4 * (sc_time)i;
        step[i] = (sc_emu_step){100 * i, 100 * (i + 1), i, 1};
    }
    sc_emu_run varies = {.n_records = 6, .record = record};
    sc_emu_record even[6] = {{0}};
    sc_emu_run equal = {.n_records = 6, .record = even};
    sc_report_real rank[2] = {{.run = &varies, .n_steps = 6, .step = step},
                              {.run = &equal, .n_steps = 6, .step = step}};
    sc_report_emulation s = {.n = 2, .rank = rank};
    sc_report_emu_sum sum;
    assert_int_equal(sc_report_emulation_sum(&s, &arena, &sum, &err), SC_OK);
    assert_int_equal(sum.n_steps, 10);
    /* 80 84 88 92 96 of the first rank: quartiles 84 and 92 */
    assert_true(fabs(sum.compute_spread - 8.0 / 88) < 1e-12);
    assert_true(fabs(sum.compute_s - 98e-12) < 1e-15);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(in_flight, setup, teardown),
        cmocka_unit_test_setup_teardown(sums, setup, teardown),
        cmocka_unit_test_setup_teardown(computation, setup, teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
