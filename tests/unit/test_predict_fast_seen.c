/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_predict_fast_seen.c - passes that are taken from the engine's memory, and
 * periods of passes that are left out, leave all clocks as passes that are
 * computed each time.
 */
#include "predict/fast.h"
#include "prediction.h"

/* Passes that are equal by less than half a picosecond count as equal. */
enum { PASSES_MOST = 10000 };

static uint32_t with_period; /* orders */

static void sweep(const predict_shape *of, bool memory, bool skips, double *at)
{
    fast_engine *x;
    const fast_order *o;
    const sc_run *r = &of->plan.run;
    assert_int_equal(fast_engine_of(of, &f.a, &x, &f.err), SC_OK);
    if (!memory) x->seen = NULL;
    assert_int_equal(fast_order_of(r, NULL, &f.a, &o, &f.err), SC_OK);
    fast_order own = *o;
    with_period += own.period > 0;
    if (!skips) own.period = 0;
    assert_int_equal(fast_sweep(&x, 1, &own, &f.a, &f.err), SC_OK);
    assert_int_equal(x->status, SC_OK);
    for (uint32_t dev = 0; dev < r->size[SC_AX_PP]; dev++) {
        const fast_device *d = &x->device[dev];
        at[2 * dev] = x->at[dev];
        at[2 * dev + 1] = fmax(x->at[dev], d->grads.end);
    }
}

static void compare(const sc_run *r)
{
    double with[2 * 8], all[2 * 8], without[2 * 8];
    sc_arena_mark mark = sc_arena_save(&f.a);
    predict_shape of = {.plan = built(r)};
    assert_int_equal(sc_segments_price(&of.plan, &f.a, &of.segments, &f.err),
                     SC_OK);
    sweep(&of, true, true, with);
    sweep(&of, true, false, all);
    sweep(&of, false, false, without);
    for (uint32_t i = 0; i < 2 * r->size[SC_AX_PP]; i++) {
        assert_true(fabs(with[i] - without[i]) < PASSES_MOST * 5e-13);
        assert_true(fabs(with[i] - all[i]) < 1e-12 * all[i]);
    }
    sc_arena_restore(&f.a, mark);
}

static void of_program(const char *model, const char *cluster,
                       const char *software, uint64_t batch)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < 3 * 4 * 3 * 2 * 2; i++) {
        sc_run r = tp_run(cluster, model, software, i % 3 ? 2 : 1);
        uint32_t pp = 1u << i / 3 % 4;
        r.size[SC_AX_PP] = pp;
        r.size[SC_AX_DP] = r.hw->n_devices / (pp * r.size[SC_AX_TP]);
        r.zero = (int)(1 + i / 12 % 3);
        r.vpp = pp > 1 ? 1 + i / 36 % 2 : 1;
        r.schedule = r.vpp > 1 ? SC_SCH_INTERLEAVED : SC_SCH_1F1B;
        r.mbs = 1 + i / 72;
        r.gbs = batch;
        r.ga = (uint32_t)(batch / (r.mbs * r.size[SC_AX_DP]));
        if (r.ga < pp) continue;
        compare(&r);
        n++;
    }
    assert_true(n > 60);
    assert_true(with_period > n);
}

static void megatron(void **state)
{
    (void)state;
    of_program("gpt3-6.7b", "dgx-a100:4", "megatron-core", 512);
}

/* Gathers and exchanges of single layers take longer than their passes. */
static void slow_network(void **state)
{
    (void)state;
    of_program("gpt3-6.7b", "dgx1-v100:4", "megatron-core", 256);
}

static void torchtitan(void **state)
{
    (void)state;
    of_program("llama3-8b", "dgx-h100:4", "torchtitan", 512);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(megatron, set_up, tear_down),
        cmocka_unit_test_setup_teardown(slow_network, set_up, tear_down),
        cmocka_unit_test_setup_teardown(torchtitan, set_up, tear_down)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
