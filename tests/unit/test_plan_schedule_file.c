/* SPDX-License-Identifier: Apache-2.0 */
/* Schedules from files: what is read, and each error at its pass. */
#include "fixture.h"
#include "plan/plan_schedule.h"

#include <stdio.h>
#include <string.h>

static const sc_schedule_file *take(const char *text)
{
    const sc_schedule_file *f = NULL;
    if (sc_schedule_read(text, strlen(text), "s.yml", &arena, &f, &err) !=
        SC_OK)
        no_error();
    return f;
}

/* An order as a person would write it is the generated one. */
static void same_as_generated(void **state)
{
    (void)state;
    const sc_schedule_file *f =
        take("devices:\n"
             "  - F0 F1 F2 B0 W0 B1 W1 B2 W2\n"
             "  - [F0, F1, B0, F2, B1, W0, B2, W1, W2]\n"
             "  - F0 B0 F1 B1 F2 B2 W0 W1 W2\n");
    assert_int_equal(f->pp, 3);
    assert_int_equal(f->ga, 3);
    assert_int_equal(f->vpp, 1);
    assert_true(f->splits);
    for (uint32_t d = 0; d < 3; d++) {
        sc_slot want[9];
        assert_int_equal(
            sc_schedule_order(SC_SCH_ZB_H1, 3, 1, 3, d, false, want), 9);
        assert_int_equal(f->n[d], 9);
        for (uint32_t i = 0; i < 9; i++) {
            assert_int_equal(f->slot[d][i].pass, want[i].pass);
            assert_int_equal(f->slot[d][i].mb, want[i].mb);
        }
    }
}

static void placements(void **state)
{
    (void)state;
    const sc_schedule_file *v =
        take("placement: v\ndevices:\n  - F0 F0.1 B0.1 B0\n"
             "  - F0 F0.1 B0.1 B0\n");
    assert_int_equal(v->placement, SC_SCH_ZB_V);
    assert_int_equal(v->vpp, 2);
    assert_false(v->splits);
    const sc_schedule_file *both =
        take("placement: bidirectional\ndevices:\n  - F0 F1.1 B1.1 B0\n"
             "  - F1.1 F0 B0 B1.1\n");
    assert_int_equal(both->placement, SC_SCH_DUALPIPE);
    assert_int_equal(both->vpp, 1);
    assert_int_equal(both->ga, 2);
}

static void located(void **state)
{
    static const struct {
        const char *text;
        sc_code code;
        uint32_t line, col;
        const char *says;
    } wrong[] = {
        {"devices:\n  - F0 B0 B0\n", SC_C_DUPLICATE, 2, 11, "B0 runs twice"},
        {"devices:\n  - F0 G1 B0\n", SC_C_SYNTAX, 2, 8, "\"G1\" is not a pass"},
        {"devices:\n  - B0 F0\n", SC_C_CONFLICT, 2, 5,
         "B0 before its forward pass"},
        {"devices:\n  - F0 W0 B0\n", SC_C_CONFLICT, 2, 8,
         "W0 before its backward pass"},
        {"devices:\n  - F0 F1 B0 F1\n", SC_C_DUPLICATE, 2, 14, "F1 runs twice"},
        {"devices:\n  - F0 F1 B0 W0\n", SC_C_MISSING, 2, 5,
         "device 0 never runs B1"},
        {"devices:\n  - F0 B0\n  - F0\n", SC_C_MISSING, 3, 5,
         "device 1 has 1 passes"},
        {"devices:\n  - F0 B0 F1 B1\n  - F0 F1 B0 B1\n", SC_C_CYCLE, 2, 8,
         "B0 of device 0 waits for B0 of device 1"},
        {"devices: F0\n", SC_C_TYPE, 1, 10, "devices must be a list"},
        {"placement: v\ndevices:\n  - F0 F0.2 B0.2 B0\n", SC_C_CONFLICT, 3, 3,
         "chunks 0 and 1, not 2"},
        {"placement: bidirectional\ndevices:\n  - F0.1 F1 B1 B0.1\n",
         SC_C_CONFLICT, 3, 5, "at the wrong end"},
        {"placement: x\ndevices:\n  - F0 B0\n", SC_C_UNKNOWN_NAME, 1, 12, ""},
        {"placement: v\n", SC_C_MISSING, 1, 1, "devices"},
    };

    (void)state;
    for (size_t i = 0; i < SC_COUNT(wrong); i++) {
        const sc_schedule_file *f = NULL;
        sc_err_init(&err);
        sc_status s = sc_schedule_read(wrong[i].text, strlen(wrong[i].text),
                                       "s.yml", &arena, &f, &err);
        const sc_diag *d = &err.d[0];
        if (s != SC_EINPUT || d->code != wrong[i].code ||
            d->line != wrong[i].line || d->col != wrong[i].col ||
            !strstr(d->msg, wrong[i].says) || strcmp(d->file, "s.yml") != 0)
            fail_msg("%s%u:%u %s: %s", wrong[i].text, d->line, d->col,
                     sc_code_name(d->code), d->msg);
        assert_null(f);
    }
}

/* All of a file's errors in one pass. */
static void all_at_once(void **state)
{
    (void)state;
    const char *text = "devices:\n  - G0 F0 H1\n  - X\n";
    const sc_schedule_file *f = NULL;
    assert_int_equal(
        sc_schedule_read(text, strlen(text), "s.yml", &arena, &f, &err),
        SC_EINPUT);
    assert_int_equal(err.n, 3);
}

/* What waits for the weight pass is held longer. */
static void held(void **state)
{
    (void)state;
    const sc_schedule_file *f = take("devices:\n  - F0 B0 F1 B1 W0 W1\n");
    const double kept = 10, late = 4;
    const sc_run r = {.schedule = SC_SCH_FILE, .order = f, .vpp = 1, .ga = 2};
    sc_slot order[6];
    assert_int_equal(sc_run_order(&r, 0, order), 6);
    assert_true(sc_schedule_held(order, 6, &kept, &late) == 14);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(same_as_generated, setup, teardown),
        cmocka_unit_test_setup_teardown(placements, setup, teardown),
        cmocka_unit_test_setup_teardown(located, setup, teardown),
        cmocka_unit_test_setup_teardown(all_at_once, setup, teardown),
        cmocka_unit_test_setup_teardown(held, setup, teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
