/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lowering of operator graphs: pipelines of equal stages against the bubble
 * formulas of their papers, lifetimes against what each schedule keeps in
 * flight, devices of classes against devices of ranks.
 */
#include <stepcast/base/util.h>

#include "program.h"

#include <math.h>

/* Streams in order of ids, each operation at its own speed: ids are a
 * topological order, so one pass is enough. */
typedef struct times {
    sc_time *start, *end, makespan;
} times;

static times run(const sc_exec *x)
{
    times t = {SC_NEW_N(&arena, sc_time, x->n_ops),
               SC_NEW_N(&arena, sc_time, x->n_ops), 0};
    sc_time *queue =
        SC_NEW_N(&arena, sc_time, (size_t)x->n_devices * SC_N_STREAMS);
    for (sc_op i = 0; i < x->n_ops; i++) {
        bool queued = x->kind[i] != SC_OP_MARK;
        uint32_t from = x->dev_head[i], to = x->dev_head[i + 1];
        assert_true(to > from);
        for (uint32_t k = from; queued && k < to; k++) {
            sc_time free = queue[x->dev[k] * SC_N_STREAMS + x->stream[i]];
            if (free > t.start[i]) t.start[i] = free;
        }
        t.end[i] = t.start[i] + x->work[i];
        for (uint32_t k = from; queued && k < to; k++)
            queue[x->dev[k] * SC_N_STREAMS + x->stream[i]] = t.end[i];
        for (uint32_t k = x->succ_head[i]; k < x->succ_head[i + 1]; k++) {
            assert_true(x->succ[k] > i);
            if (t.start[x->succ[k]] < t.end[i]) t.start[x->succ[k]] = t.end[i];
        }
        if (t.end[i] > t.makespan) t.makespan = t.end[i];
    }
    return t;
}

static sc_time lasts(toy *t)
{
    toy_lower(t);
    return run(&t->plan.exec).makespan;
}

static sc_time ps(double seconds)
{
    return sc_time_from_s(seconds);
}

static toy pipeline(sc_schedule s, uint32_t pp, uint32_t vpp, uint32_t ga)
{
    return (toy){.schedule = s,
                 .pp = pp,
                 .vpp = vpp,
                 .ga = ga,
                 .fwd = 1,
                 .dgrad = 1,
                 .wgrad = 1,
                 .act_bytes = 1000,
                 .weight_bytes = 100};
}

static void a_pipeline(void **state)
{
    (void)state;
    static const uint32_t shape[][2] = {{1, 4}, {2, 2},  {2, 16}, {4, 8},
                                        {8, 3}, {8, 64}, {12, 1}};
    for (size_t i = 0; i < SC_COUNT(shape); i++) {
        uint32_t pp = shape[i][0], ga = shape[i][1];
        toy t = pipeline(SC_SCH_1F1B, pp, 1, ga);
        assert_int_equal(lasts(&t), ps(3.0 * (ga + pp - 1)));
        toy j = pipeline(SC_SCH_GPIPE, pp, 1, ga);
        j.joint = true;
        assert_int_equal(lasts(&j), ps(3.0 * (ga + pp - 1)));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_pipeline, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
