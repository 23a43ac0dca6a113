/* SPDX-License-Identifier: Apache-2.0 */
/* Axes of machines: their values, the machine of some values, and what is no
 * value. */
#include "fixture.h"
#include "search/search_machines.h"

#include <string.h>

static sc_status read(const char *key, const char *text, sc_machine_axis *out)
{
    const sc_node value = sc_search_word(text, sc_pos_file("--machine"));
    sc_err_init(&err);
    return sc_machine_axis_read(key, &value, &arena, out, &err);
}

static sc_machine_axis axis(const char *key, const char *text)
{
    sc_machine_axis x;
    if (read(key, text, &x) != SC_OK) fail_msg("%s: %s", text, err.d[0].msg);
    return x;
}

/* Values with an order are put from the worst to the best; equal ones count
 * once. */
static void values(void **state)
{
    (void)state;
    sc_machine_axis x = axis("nic_bw", "400Gb/s,100Gb/s,200Gb/s,100Gb/s");
    assert_int_equal(x.n, 3);
    assert_true(x.ordered);
    assert_string_equal(x.value[0], "100Gb/s");
    assert_string_equal(x.value[2], "400Gb/s");
    x = axis("nic_latency", "1us,5us");
    assert_true(x.ordered);
    assert_string_equal(x.value[0], "5us");
    x = axis("nodes", "8,2..4");
    assert_false(x.ordered);
    assert_int_equal(x.n, 4);
    assert_string_equal(x.value[0], "8");
    assert_string_equal(x.value[3], "4");
    x = axis("device", "h100-sxm*{peak=1,mem_bw=2}, h200-sxm");
    assert_int_equal(x.n, 2);
    assert_string_equal(x.value[0], "h100-sxm*{peak=1,mem_bw=2}");
    assert_string_equal(x.value[1], "h200-sxm");
}

static const char *spec_of(const char *cluster, const sc_machine_axis *x,
                           uint32_t n, const uint32_t *digit)
{
    sc_job job;
    const sc_hw *hw;
    sc_job_init(&job);
    job.cluster = cluster;
    sc_err_init(&err);
    if (sc_machine_set(x, n, digit, &arena, &job, &err) != SC_OK ||
        sc_job_machine(&job, &arena, &hw, &err) != SC_OK)
        fail_msg("%s: %s", job.cluster, err.d[0].msg);
    return job.cluster;
}

static void machines(void **state)
{
    (void)state;
    static const uint32_t digit[] = {1, 0, 0, 1, 0};
    const sc_machine_axis x[] = {
        axis("nodes", "4,16"), axis("nic_bw", "200Gb/s"), axis("peak", "2"),
        axis("mem_bw", "1,1.5"), axis("node", "dgx-a100-80g")};
    assert_string_equal(
        spec_of("dgx-h100:8; rails=1", x, 4, digit),
        "dgx-h100:16; rails=1; device=h100-sxm*{peak=2,mem_bw=1.5}; "
        "nic_bw=200Gb/s");
    assert_string_equal(spec_of("dgx-h100:8", x, 2, digit),
                        "dgx-h100:16; nic_bw=200Gb/s");
    assert_string_equal(spec_of("dgx-h100", &x[4], 1, &digit[4]),
                        "dgx-a100-80g");
    const sc_machine_axis own[] = {axis("device", "h200-sxm*{memory=2}"),
                                   axis("peak", "1,3")};
    static const uint32_t last[] = {0, 1};
    assert_string_equal(spec_of("dgx-h100:2", own, 2, last),
                        "dgx-h100:2; device=h200-sxm*{memory=2,peak=3}");
    /* a whole machine comes first, wherever its axis is */
    const sc_machine_axis all[] = {
        axis("nodes", "8"),
        axis("cluster", "ring4@300GB/s,50ns x switch2@25GB/s")};
    assert_string_equal(spec_of("dgx-h100:2", all, 2, (uint32_t[]){0, 0}),
                        "ring4@300GB/s,50ns x switch8@25GB/s");
}

/* Bandwidths of options of a job have their order too. */
static void options(void **state)
{
    (void)state;
    const sc_key *k = sc_job_keys;
    sc_search_option o;
    sc_machine_axis x;
    while (!sc_job_loads(k)) k++;
    assert_string_equal(k->flag, "--nic-bw");
    assert_int_equal(sc_search_option_read(k, "400Gb/s,100Gb/s",
                                           sc_pos_file("--axis"), &arena, &o,
                                           &err),
                     SC_OK);
    assert_int_equal(sc_machine_axis_of(&o, &arena, &x, &err), SC_OK);
    assert_true(x.ordered && x.n == 2);
    sc_job job;
    sc_job_init(&job);
    job.cluster = "dgx-h100:2";
    assert_int_equal(sc_machine_set(&x, 1, (uint32_t[]){1}, &arena, &job, &err),
                     SC_OK);
    assert_true(job.nic_bw == 50e9);
    assert_string_equal(job.cluster, "dgx-h100:2");
}

static void errors(void **state)
{
    (void)state;

    static const struct {
        const char *key, *text, *says;
    } cases[] = {{"nicbw", "1GB/s", "no key of a machine"},
                 {"nic_bw", "", "no values"},
                 {"nic_bw", "100Gb/s,1", "no unit"},
                 {"nodes", "4..2", "no range"},
                 {"nodes", "0", "out of range"},
                 {"device", "h100-sxm,h100-smx", "unknown device"},
                 {"device", "h100-sxm*{peek=2}", "no factor"},
                 {"node", "foo", "unknown"},
                 {"price", "2USD", "price"},
                 {"cpu", "amd,foo", "unknown cpu"},
                 {"peak", "0", "out of range"}};

    for (size_t i = 0; i < SC_COUNT(cases); i++) {
        sc_machine_axis x;
        if (read(cases[i].key, cases[i].text, &x) == SC_OK || err.n == 0)
            fail_msg("%s=%s is read", cases[i].key, cases[i].text);
        if (!strstr(err.d[0].msg, cases[i].says))
            fail_msg("%s=%s: %s", cases[i].key, cases[i].text, err.d[0].msg);
        assert_memory_equal(err.d[0].file, "--machine", 9);
    }
    const sc_machine_axis nodes = axis("nodes", "2");
    sc_job job;
    sc_job_init(&job);
    job.cluster = "my-cluster.yml";
    assert_int_equal(
        sc_machine_set(&nodes, 1, (uint32_t[]){0}, &arena, &job, &err),
        SC_EINPUT);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(values), TEST(machines),
                                       TEST(options), TEST(errors)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
