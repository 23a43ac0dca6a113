/* SPDX-License-Identifier: Apache-2.0 */
/* Which splits operators take that no rule mentions. */
#include "net_plan.h"

static const sc_net *net_of(const char *text)
{
    const sc_net *g = NULL;
    (void)sc_net_read(text, strlen(text), "net.yml", &arena, &g, &err);
    no_error();
    return g;
}

/* An activation takes the split of its input before that of its reader, so its
 * result is gathered, not its input, and each rank computes a quarter of it:
 * 8 samples of 256 values of 2 bytes. */
static void forward_before_backward(void **state)
{
    (void)state;
    planned p;
    plan_text(&p,
              "mesh: {tp: 4}\nrules:\n"
              "  - {match: up, split: {out: tp}}\n"
              "  - {match: down, split: {out: tp}}\n",
              net_of("name: two\n"
                     "inputs: {x: {batch: 1, width: 64}}\n"
                     "operators:\n"
                     "  - {path: up, type: linear, out: 256}\n"
                     "  - {path: act, type: act, kind: relu}\n"
                     "  - {path: down, type: linear, out: 64}\n"),
              8, 1);
    assert_null(exchange_of(&p.plan, "act", "in:0"));
    const sc_net_exchange *x = exchange_of(&p.plan, "down", "in:0");
    assert_true(x && x->coll == SC_ALL_GATHER && x->size == 4);
    assert_true(is_near(x->bytes, 8 * 256 * 2));
}

/* The input that is split over positions has as many values as the two that
 * are split over samples: either split exchanges the same, so that of the
 * largest input holds, wherever that stands, and the two small ones are
 * exchanged.  A rank has a quarter of 8 samples of 32 positions of 128 values
 * of 2 bytes. */
static void largest_of_equals(void **state)
{
    (void)state;
    static const char *const orders[] = {"[a, b, c]", "[b, a, c]", "[b, c, a]"};
    for (size_t i = 0; i < SC_COUNT(orders); i++) {
        planned p;
        const char *net =
            sc_sprintf(&arena,
                       "name: three\n"
                       "inputs: {x: {batch: 1, seq: 32, width: 64}}\n"
                       "operators:\n"
                       "  - {path: a, type: linear, out: 256, in: x}\n"
                       "  - {path: b, type: linear, out: 128, in: x}\n"
                       "  - {path: c, type: linear, out: 128, in: x}\n"
                       "  - {path: all, type: concat, along: width, in: %s}\n",
                       orders[i]);
        plan_text(&p,
                  "mesh: {x: 4}\npreset: {data_parallel: false}\nrules:\n"
                  "  - {match: a, split: {seq: x}}\n"
                  "  - {match: b, split: {batch: x}}\n"
                  "  - {match: c, split: {batch: x}}\n",
                  net_of(net), 2, 1);
        assert_int_equal(count(&p.plan, SC_PASS_FWD, -1), 2);
        assert_true(is_near(total(&p.plan, SC_PASS_FWD, SC_ALL_TO_ALL),
                            2 * (8 * 32 * 128 * 2 / 4)));
    }
}

/* Only one of the readers of `first` has a layout; the other needs all of it.
 * So every rank computes all of it, and the only exchange is the sum of what
 * the ranks make of their parts: 8 samples of 64 values of 2 bytes. */
static void all_readers_decide(void **state)
{
    (void)state;
    planned p;
    plan_text(&p,
              "mesh: {tp: 4}\nrules:\n  - {match: second, split: {in: tp}}\n",
              net_of("name: residual\n"
                     "inputs: {x: {batch: 1, width: 64}}\n"
                     "operators:\n"
                     "  - {path: first, type: linear, out: 64}\n"
                     "  - {path: second, type: linear, out: 64}\n"
                     "  - {path: add, type: elementwise, kind: sum,"
                     " in: [first, second]}\n"),
              8, 1);
    assert_int_equal(count(&p.plan, SC_PASS_FWD, -1), 1);
    assert_true(
        is_near(total(&p.plan, SC_PASS_FWD, SC_ALL_REDUCE), 8 * 64 * 2));
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(forward_before_backward),
                                       TEST(largest_of_equals),
                                       TEST(all_readers_decide)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
