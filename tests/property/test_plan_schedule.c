/* SPDX-License-Identifier: Apache-2.0 */
/* Schedules: every pass once, no deadlock, and as many in flight as said. */
#include <stepcast/plan.h>

#include "property.h"
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_PP    12
#define MAX_SLOTS 4096

typedef struct pipe {
    sc_schedule s;
    uint32_t pp, vpp, ga;
    bool forward_only;
    uint32_t n[MAX_PP];
    sc_slot order[MAX_PP][MAX_SLOTS];
} pipe;

static void draw(prop *p, pipe *x)
{
    x->s = (sc_schedule)prop_below(p, 3);
    x->pp = 1 + (uint32_t)prop_below(p, MAX_PP);
    x->ga = 1 + (uint32_t)prop_below(p, 40);
    x->vpp = 1;
    if (x->s == SC_SCH_INTERLEAVED) {
        x->vpp = 1 + (uint32_t)prop_below(p, 5);
        x->ga = x->pp * (1 + (uint32_t)prop_below(p, 5));
    }
    x->forward_only = prop_below(p, 8) == 7;
    for (uint32_t d = 0; d < x->pp; d++)
        x->n[d] = sc_schedule_order(x->s, x->pp, x->vpp, x->ga, d,
                                    x->forward_only, x->order[d]);
}

/* Forward once, backward once after it; counts what is in flight. */
static bool complete(const pipe *x, uint32_t dev)
{
    uint8_t seen[MAX_SLOTS] = {0};
    uint32_t pairs = x->vpp * x->ga, flying = 0, most = 0;
    if (x->n[dev] != (x->forward_only ? 1 : 2) * pairs) return false;
    for (uint32_t i = 0; i < x->n[dev]; i++) {
        const sc_slot *o = &x->order[dev][i];
        if (o->chunk >= x->vpp || o->mb >= x->ga) return false;
        uint32_t k = o->chunk * x->ga + o->mb;
        if (seen[k] != (o->pass == SC_FWD ? 0 : 1)) return false;
        seen[k]++;
        flying += o->pass == SC_FWD ? 1 : 0;
        most = flying > most ? flying : most;
        flying -= o->pass == SC_FWD ? 0 : 1;
    }
    return x->forward_only ||
           most == sc_schedule_in_flight(x->s, x->pp, x->vpp, x->ga, dev);
}

static bool runnable(const pipe *x, const uint8_t *done, uint32_t dev,
                     const sc_slot *o)
{
    uint32_t v = o->chunk * x->pp + dev, n = x->pp * x->vpp;
    if (o->pass == SC_FWD) return v == 0 || done[(v - 1) * x->ga + o->mb] >= 1;
    return done[v * x->ga + o->mb] == 1 &&
           (v + 1 == n || done[(v + 1) * x->ga + o->mb] == 2);
}

/* Runs the orders against each other as far as they go. */
static bool terminates(const pipe *x)
{
    uint8_t *done = calloc((size_t)x->pp * x->vpp * x->ga, 1);
    uint32_t at[MAX_PP] = {0}, left = 0;
    if (!done) return false;
    for (bool moved = true; moved;) {
        moved = false;
        for (uint32_t d = 0; d < x->pp; d++)
            while (at[d] < x->n[d] &&
                   runnable(x, done, d, &x->order[d][at[d]])) {
                const sc_slot *o = &x->order[d][at[d]++];
                done[(o->chunk * x->pp + d) * x->ga + o->mb]++;
                moved = true;
            }
    }
    for (uint32_t d = 0; d < x->pp; d++) left += x->n[d] - at[d];
    free(done);
    return left == 0;
}

static bool legal(prop *p, void *ctx)
{
    pipe *x = ctx;
    draw(p, x);
    bool ok = terminates(x);
    for (uint32_t d = 0; ok && d < x->pp; d++) ok = complete(x, d);
    if (!ok && prop_reporting(p))
        print_message("%s pp %u vpp %u ga %u%s\n", sc_schedule_names[x->s],
                      x->pp, x->vpp, x->ga,
                      x->forward_only ? " forward only" : "");
    return ok;
}

static void test_legal(void **state)
{
    (void)state;
    pipe *x = malloc(sizeof *x);
    assert_non_null(x);
    bool ok = prop_check("schedules are legal", 3000, legal, x);
    free(x);
    assert_true(ok);
}

/* Narayanan et al. 2021: 1F1B holds at most pp - stage micro-batches, the
 * all-forward schedule all of them. */
static void test_in_flight(void **state)
{
    (void)state;
    for (uint32_t pp = 1; pp <= 16; pp++)
        for (uint32_t d = 0; d < pp; d++) {
            uint32_t want = pp - d < 5 ? pp - d : 5;
            assert_int_equal(sc_schedule_in_flight(SC_SCH_1F1B, pp, 1, 64, d),
                             pp - d);
            assert_int_equal(sc_schedule_in_flight(SC_SCH_1F1B, pp, 1, 5, d),
                             want);
            assert_int_equal(sc_schedule_in_flight(SC_SCH_GPIPE, pp, 1, 64, d),
                             64);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_legal),
                                       cmocka_unit_test(test_in_flight)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
