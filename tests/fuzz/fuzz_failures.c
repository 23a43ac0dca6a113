/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_failures.c - any bytes as a table of failures: its rates are numbers, and
 * a run with them ends or is refused. */
#include "goodput/goodput.h"
#include "hw/hw_failures.h"

#include <math.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const sc_failures *f, const sc_hw *hw)
{
    sc_goodput g;
    double all = sc_failures_rate(f, hw, false);
    double replaced = sc_failures_rate(f, hw, true);
    double planned = sc_failures_planned(f, hw);
    if (!f->name || !f->title || !(all >= replaced) || !(replaced >= 0))
        abort();
    if (!isfinite(all) || !isfinite(planned) || planned < 0) abort();
    sc_goodput_job j = {.work_s = 1e6,
                        .step_s = 1,
                        .failure_rate = all,
                        .replaced_rate = replaced,
                        .planned_rate = planned,
                        .save_s = 1,
                        .restart_s = f->restart_s,
                        .repair_s = f->repair_s,
                        .slow_rate = f->slow_rate,
                        .slow_s = f->slow_s,
                        .slowdown = f->slowdown};
    if (sc_goodput_expect(&j, &g) == SC_OK &&
        !(g.total_s >= 0.999999 * j.work_s && isfinite(g.total_s)))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sc_arena a;
    sc_err err;
    const sc_failures *f = NULL;
    const sc_hw *hw = NULL;
    sc_arena_init(&a, (size_t)64 << 20);
    sc_err_init(&err);
    if (sc_hw_build("dgx-h100:2", sc_pos_none(), &a, &hw, &err) != SC_OK)
        abort();
    sc_status s =
        sc_failures_read((const char *)data, size, "f.yml", &a, &f, &err);
    if ((s == SC_OK) != (f != NULL)) abort();
    if (s != SC_OK && err.n == 0) abort();
    if (f) check(f, hw);
    sc_arena_free(&a);
    return 0;
}
