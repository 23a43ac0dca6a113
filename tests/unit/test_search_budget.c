/* SPDX-License-Identifier: Apache-2.0 */
/* The budget of a machine: its words, the bill of a machine, and the nodes that
 * are proposed. */
#include "fixture.h"
#include "search/search_budget.h"

#include <math.h>
#include <string.h>

static sc_status read(const char *text, sc_search_budget *out)
{
    sc_err_init(&err);
    return sc_search_budget_read(text, sc_pos_file("--cluster-budget"), &arena,
                                 out, &err);
}

static void words(void **state)
{
    (void)state;
    sc_search_budget b;
    assert_int_equal(read("20MW", &b), SC_OK);
    assert_true(b.watts == 20e6 && b.usd == 0);
    assert_int_equal(read("50MUSD, 500kW", &b), SC_OK);
    assert_true(b.watts == 5e5 && b.usd == 5e7);

    static const struct {
        const char *text, *says;
    } bad[] = {{"", "no value"},
               {",", "no value"},
               {"20", "neither a power nor"},
               {"20MWh", "neither a power nor"},
               {"0W", "leaves nothing"},
               {"-3USD", "leaves nothing"},
               {"xUSD", "not a sum of money"},
               {"1MW,2MW", "second power"},
               {"1USD,2USD", "second sum of money"}};

    for (size_t i = 0; i < SC_COUNT(bad); i++) {
        if (read(bad[i].text, &b) == SC_OK || err.n == 0)
            fail_msg("\"%s\" is read", bad[i].text);
        if (!strstr(err.d[0].msg, bad[i].says))
            fail_msg("\"%s\": %s", bad[i].text, err.d[0].msg);
    }
}

static sc_machine_bill bill_of(const char *spec, const char *purchase)
{
    sc_job job;
    const sc_hw *hw = machine(spec);
    sc_cost cost = {0};
    sc_machine_bill bill;
    sc_job_init(&job);
    job.cluster = spec;
    job.purchase = purchase;
    cost.p[SC_P_HOST_WATTS] = 0.25;
    if (sc_machine_bill_of(&job, hw, &cost, &arena, &bill, &err) != SC_OK)
        fail_msg("%s: %s", spec, err.d[0].msg);
    return bill;
}

/* Devices at their limit and a part of what the datasheet leaves to the host,
 * times the PUE of the machine, or that of the list. */
static void bills(void **state)
{
    (void)state;
    sc_machine_bill b = bill_of("dgx-h100:2", NULL);
    /* one switch, and 16 links, of 400 Gb/s; adapters are the host's */
    double own = 2 * (8 * 700 + 0.25 * 4600) + 747 + 16 * 15.5;
    assert_true(fabs(b.watts / own - 1) < 1e-12 && isnan(b.usd) && !b.why);
    b = bill_of("dgx-h100:2; pue=1.25", "list-2024");
    assert_true(fabs(b.watts / (1.25 * own) - 1) < 1e-12 && b.usd > 620000);
    b = bill_of("dgx-h100:2", "list-2024");
    assert_true(fabs(b.watts / (1.56 * own) - 1) < 1e-12);
    b = bill_of("perlmutter:2", "list-2024");
    assert_true(isnan(b.watts) && b.usd > 0 && strstr(b.why, "host"));
    b = bill_of("dgx-h200:2", "list-2024");
    assert_true(isnan(b.usd) && b.watts > 0 && strstr(b.why, "price"));
}

static void nodes(void **state)
{
    (void)state;
    sc_job job;
    sc_search_node *node;
    uint32_t n, with, without = 0, priced = 0;
    sc_machine_axis axis;
    sc_job_init(&job);
    assert_int_equal(sc_search_nodes(&job, &arena, &node, &n, &err), SC_OK);
    for (uint32_t i = 0; i < n; i++) without += !node[i].why;
    job.purchase = "list-2024";
    assert_int_equal(sc_search_nodes(&job, &arena, &node, &n, &err), SC_OK);
    for (uint32_t i = 0; i < n; i++) {
        sc_machine_bill b =
            bill_of(sc_sprintf(&arena, "%s:1", node[i].name), job.purchase);
        bool known = !isnan(b.usd) && !isnan(b.watts);
        assert_true(known == !node[i].why);
        priced += known;
    }
    assert_true(priced > 0 && priced < without && without < n);
    assert_int_equal(sc_search_nodes_axis(node, n, &arena, &axis, &err), SC_OK);
    assert_int_equal(axis.n, priced);
    for (with = 0; node[with].why; with++) continue;
    assert_string_equal(axis.value[0], node[with].name);
    for (uint32_t i = 0; i < n; i++) node[i].why = "no";
    assert_int_equal(sc_search_nodes_axis(node, n, &arena, &axis, &err),
                     SC_EINPUT);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(words), TEST(bills), TEST(nodes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
