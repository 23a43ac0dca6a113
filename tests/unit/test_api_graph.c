/* SPDX-License-Identifier: Apache-2.0 */
/* Execution graphs of the installed interface, counted by hand. */
#include <stepcast/graph.h>

#include "unit.h"

#include <string.h>

#define US ((int64_t)1000000) /* ps */

static stepcast_errors *errors;
static stepcast_machine *machine; /* 100 GB/s and 0.5 us on each link */
static stepcast_graph *g;

static int setup(void **state)
{
    (void)state;
    errors = stepcast_errors_new();
    machine = stepcast_machine_new("switch4@100GB/s,1us", errors);
    g = stepcast_graph_new(4, machine, errors);
    return g ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    stepcast_graph_free(g);
    stepcast_machine_free(machine);
    stepcast_errors_free(errors);
    return 0;
}

static void at(uint32_t op, int64_t start, int64_t end)
{
    stepcast_timing t = {.size = sizeof t};
    assert_int_equal(stepcast_graph_timing(g, op, &t), STEPCAST_OK);
    if (t.start_ps != start || t.end_ps != end)
        fail_msg("operation %u runs [%lld, %lld)", op, (long long)t.start_ps,
                 (long long)t.end_ps);
}

static void run(void)
{
    if (stepcast_graph_run(g, errors) != STEPCAST_OK)
        fail_msg("%s", stepcast_errors_text(errors));
}

/* 1 MB at 100 GB/s is 10 us, and 1 us for both links. */
static void sends(void **state)
{
    (void)state;
    uint32_t work = stepcast_graph_compute(g, "forward", 0, 5 * US);
    uint32_t send = stepcast_graph_send(g, "activations", 0, 1, 1000000);
    uint32_t next = stepcast_graph_compute(g, "forward", 1, 7 * US);
    assert_int_equal(stepcast_graph_wait(g, send, work), STEPCAST_OK);
    assert_int_equal(stepcast_graph_wait(g, next, send), STEPCAST_OK);
    assert_true(stepcast_graph_makespan(g) == -1);
    run();
    at(work, 0, 5 * US);
    at(send, 5 * US, 16 * US);
    at(next, 16 * US, 23 * US);
    assert_true(stepcast_graph_makespan(g) == 23 * US);
    assert_true(stepcast_graph_busy(g, 1, STEPCAST_KIND_COMPUTE) == 7 * US);
    assert_true(stepcast_graph_busy(g, 2, STEPCAST_KIND_COMPUTE) == 0);
    uint64_t links[4];
    assert_int_equal(stepcast_machine_route(machine, 0, 1, links, 4), 2);
    assert_true(stepcast_graph_carried(g, links[1]) == 1e6);
    stepcast_timing t = {.size = sizeof t};
    assert_int_equal(stepcast_graph_timing(g, next, &t), STEPCAST_OK);
    assert_int_equal(t.cause, send);
    assert_int_equal(stepcast_graph_timing(g, 3, &t), STEPCAST_USAGE);
    /* it runs once */
    assert_int_equal(stepcast_graph_run(g, errors), STEPCAST_USAGE);
    assert_int_equal(stepcast_graph_compute(g, "late", 0, 1), STEPCAST_NONE);
}

/* Two messages into one device have half of its link each. */
static void shares(void **state)
{
    (void)state;
    uint32_t a = stepcast_graph_send(g, "a", 0, 2, 1000000);
    uint32_t b = stepcast_graph_send(g, "b", 1, 2, 1000000);
    run();
    stepcast_timing t = {.size = sizeof t};
    stepcast_graph_timing(g, a, &t);
    at(a, 0, 21 * US);
    at(b, 0, 21 * US);
    assert_true(t.shared_ps == 10 * US);
}

/* An exchange of all starts when the last is there; beside it kernels run at
 * half their rate: 4 of 6 us take 8. */
static void slows(void **state)
{
    (void)state;
    static const uint32_t both[] = {0, 1};
    stepcast_operation o = {.size = sizeof o,
                            .name = "all_reduce",
                            .kind = STEPCAST_KIND_COLLECTIVE,
                            .stream = STEPCAST_STREAM_GRADIENTS,
                            .n_devices = 2,
                            .devices = both,
                            .duration_ps = 8 * US};
    assert_int_equal(stepcast_graph_slow(g, STEPCAST_KIND_COMPUTE,
                                         STEPCAST_KIND_COLLECTIVE, 0.5),
                     STEPCAST_OK);
    uint32_t first = stepcast_graph_compute(g, "backward", 1, 3 * US);
    uint32_t all = stepcast_graph_add(g, &o);
    stepcast_graph_wait(g, all, first);
    uint32_t beside = stepcast_graph_compute(g, "backward", 1, 6 * US);
    run();
    at(all, 3 * US, 11 * US);
    at(beside, 3 * US, 13 * US);
    assert_true(stepcast_graph_busy(g, 1, STEPCAST_KIND_COMPUTE) == 13 * US);
    stepcast_document *d = NULL;
    uint32_t n = 0;
    assert_int_equal(stepcast_graph_trace(g, &d, errors), STEPCAST_OK);
    assert_int_equal(stepcast_document_count(d, "traceEvents", &n),
                     STEPCAST_OK);
    assert_true(n >= 4);
    assert_non_null(strstr(stepcast_document_json(d), "all_reduce"));
    stepcast_document_free(d);
}

/* What is wrong is said when it runs, all of it. */
static void refuses(void **state)
{
    (void)state;
    static const uint32_t none[] = {4};
    static const uint64_t far[] = {1000};
    stepcast_operation o = {.size = sizeof o,
                            .name = "bad device",
                            .n_devices = 1,
                            .devices = none,
                            .duration_ps = 1};
    assert_int_equal(stepcast_graph_add(g, &o), STEPCAST_NONE);
    o.devices = &(uint32_t){0};
    o.latency_ps = 2;
    assert_int_equal(stepcast_graph_add(g, &o), STEPCAST_NONE);
    o.latency_ps = 0;
    o.n_links = 1;
    o.links = far;
    assert_int_equal(stepcast_graph_add(g, &o), STEPCAST_NONE);
    o.size = 0;
    assert_int_equal(stepcast_graph_add(g, &o), STEPCAST_NONE);
    uint32_t a = stepcast_graph_compute(g, "a", 0, 1);
    assert_int_equal(a, 0);
    assert_int_equal(stepcast_graph_wait(g, a, a), STEPCAST_USAGE);
    assert_int_equal(stepcast_graph_send(g, "self", 1, 1, 1), STEPCAST_NONE);
    assert_int_equal(stepcast_graph_slow(g, 0, 1, 0), STEPCAST_USAGE);
    assert_int_equal(stepcast_graph_run(g, errors), STEPCAST_INPUT);
    assert_int_equal(stepcast_errors_count(errors), 7);
    assert_non_null(
        strstr(stepcast_errors_text(errors),
               "operation \"bad device\": error: the device does not exist\n"));
    assert_true(stepcast_graph_makespan(g) == -1);
    assert_null(stepcast_graph_new(5, machine, errors));
    assert_int_equal(stepcast_errors_count(errors), 1);
    assert_null(stepcast_graph_new(0, NULL, errors));
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {CASE(sends), CASE(shares), CASE(slows),
                                       CASE(refuses)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
