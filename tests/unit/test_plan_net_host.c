/* SPDX-License-Identifier: Apache-2.0 */
/* test_plan_graph_host.c - what the program that issues kernels adds to a pass
 * of a network, by numbers derived by hand. */
#include "net_plan.h"

#include <math.h>

static void forward_of(planned *p, const char *mesh, const char *name,
                       uint64_t seq)
{
    prepare(p, mesh, words(name, seq), 1, 1);
    p->job.forward_only = true;
}

/* Of the kernels whose paths hold `part`, and of all host items. */
typedef struct sums {
    double seconds, launches, host;
} sums;

static sums sums_of(planned *p, const char *part)
{
    sums s = {0, 0, 0};
    (void)infer_only(p);
    no_error();
    for (uint32_t i = 0; i < p->prog.n_items; i++) {
        const program_item *it = &p->prog.item[i];
        if (it->cat == SC_CAT_HOST) s.host += it->price.seconds;
        if (it->cat == SC_CAT_HOST || it->exchange != SC_NONE) continue;
        if (!strstr(p->job.net->op[it->op].path, part)) continue;
        s.seconds += it->price.seconds;
        s.launches += it->price.launches;
    }
    return s;
}

/* A program that takes a second for each: nothing else counts.  Two sums over
 * the ranks of each of 12 layers, one of the words, three of the loss. */
static void exchanges_are_launched(void **state)
{
    (void)state;
    planned p;
    forward_of(&p, "mesh: {tp: 2}\npreset: {tensor_parallel: megatron}\n",
               "gpt2", 64);
    p.cost.p[SC_P_HOST_KERNEL] = 1e3;
    sums s = sums_of(&p, "");
    assert_int_equal(count(&p.plan, SC_PASS_FWD, -1), 2 * 12 + 1 + 3);
    near(s.host, 1e3 * (s.launches + 28));
    p.sw.capture = SC_CAPTURE_STEP;
    near(sums_of(&p, "").host, 0);
}

/* Graphs of layers hold all but what tokens have at their experts. */
static void layers_captured(void **state)
{
    (void)state;
    static const char *const routed[] = {"dispatch", "experts_", "combine"};
    planned p;
    double launches = 2 * 32; /* two exchanges a layer */
    forward_of(&p, "mesh: {ep: 4}\n", "mixtral-8x7b", 64);
    p.cost.p[SC_P_HOST_KERNEL] = 1e3;
    p.sw.capture = SC_CAPTURE_LAYERS;
    for (size_t i = 0; i < SC_COUNT(routed); i++)
        launches += sums_of(&p, routed[i]).launches;
    near(sums_of(&p, "").host, 1e3 * launches);
    forward_of(&p, "mesh: {dp: 4}\n", "gpt2", 64);
    p.sw.capture = SC_CAPTURE_LAYERS;
    near(sums_of(&p, "").host, 0);
}

/* A layer is issued 1 ms slower than it runs.  The program catches up at the
 * head, unless it waits in each layer for how many tokens each expert gets; then
 * of 48 spans that of the head has no loss. */
static void lead_lost_at_routers(void **state)
{
    (void)state;
    planned p;
    const double slower = 1e-3;
    forward_of(&p, "mesh: {ep: 4}\n", "qwen3-30b-a3b", 4096);
    p.cost.p[SC_P_HOST_POWER] = 256; /* the larger of both */
    sums one = sums_of(&p, "layers.5."), head = sums_of(&p, "head.");
    double each = (one.seconds + slower) / (one.launches + 2);
    assert_true(head.seconds > head.launches * each + slower);
    p.cost.p[SC_P_HOST_KERNEL] = each;
    near(sums_of(&p, "").host, 47 * slower);
    p.job.capacity = 1; /* rows are known beforehand */
    sums all = sums_of(&p, "");
    near(all.host, each * (all.launches + 2 * 48) - all.seconds);
    assert_true(all.host < 47 * slower);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(exchanges_are_launched),
        TEST(layers_captured),
        TEST(lead_lost_at_routers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
