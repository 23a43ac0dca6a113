/* SPDX-License-Identifier: Apache-2.0 */
/* A cluster file that is written of any name of the catalogue, with any keys behind
 * it, reads back to the same machine. */
#include "fixture.h"
#include "hw/build.h"
#include "hw/hw_keys.h"
#include "property.h"

#include <stdio.h>
#include <string.h>

static const char **names;
static uint32_t n_names;

/* Values that most machines take. */
static const char *const keys[] = {"nic_bw=100Gb/s",
                                   "nic_bw=12.5GB/s",
                                   "oversubscription=2",
                                   "fabric_latency=1.5us",
                                   "nic_latency=3us",
                                   "bandwidth=123GB/s",
                                   "network=roce",
                                   "cpu=amd",
                                   "node_power=1.25kW",
                                   "pue=1.3",
                                   "leaf=2; oversubscription=4",
                                   "leaf=1; pod=2; core_oversubscription=3",
                                   "multicast=true",
                                   "device=h100-sxm*{mem_bw=1.5,memory=2}",
                                   "device=a100-sxm-40g"};

static bool same(const char *spec, double nic_bw, const prop *p)
{
    const sc_hw *want, *got;
    sc_text t;
    sc_err_init(&err);
    if (sc_hw_build_nics(spec, sc_pos_none(), nic_bw, sc_pos_none(), &arena,
                         &want, &err) != SC_OK)
        return true; /* this machine can't have such a value */
    sc_text_init(&t);
    sc_status s = sc_hw_yaml(spec, sc_pos_none(), nic_bw, &arena, &t, &err);
    bool ok = s == SC_OK && hw_build_text(t.buf, t.len, "c.yml", NULL, &arena,
                                          &got, &err) == SC_OK;
    ok = ok && got->hash == want->hash && got->n_devices == want->n_devices &&
         got->n_nodes == want->n_nodes && got->host_size == want->host_size;
    if (!ok && (!p || prop_reporting(p)))
        print_message("%s: %s\n%s\n", spec, err.n ? err.d[0].msg : "differs",
                      t.buf);
    sc_text_free(&t);
    return ok;
}

static bool reads_back(prop *p, void *ctx)
{
    (void)ctx;
    sc_arena_mark mark = sc_arena_save(&arena);
    const char *spec =
        sc_sprintf(&arena, "%s:%u", names[prop_below(p, n_names)],
                   1 + (unsigned)prop_below(p, prop_below(p, 2) ? 4 : 64));
    for (uint64_t n = prop_below(p, 4); n > 0; n--)
        spec = sc_sprintf(&arena, "%s; %s", spec,
                          keys[prop_below(p, SC_COUNT(keys))]);
    bool ok = same(spec, prop_below(p, 3) ? 0 : 25e9, p);
    sc_arena_restore(&arena, mark);
    return ok;
}

static void random_machines(void **state)
{
    (void)state;
    for (int devices = 0; devices < 2; devices++) {
        assert_int_equal(sc_hw_list(devices, &arena, &names, &n_names, &err),
                         SC_OK);
        assert_true(
            prop_check("a file is its machine", 3000, reads_back, NULL));
    }
}

static void every_name(void **state)
{
    (void)state;
    assert_int_equal(sc_hw_list(false, &arena, &names, &n_names, &err), SC_OK);
    for (uint32_t i = 0; i < n_names; i++) {
        const char *one = sc_sprintf(&arena, "%s:8", names[i]);
        assert_true(same(one, 0, NULL));
    }
}

static void refused(void **state)
{
    (void)state;
    sc_text t;
    sc_text_init(&t);
    assert_int_equal(
        sc_hw_yaml("ring4@1GB/s", sc_pos_file("--emit"), 0, &arena, &t, &err),
        SC_EINPUT);
    assert_non_null(strstr(err.d[0].msg, "dimensions of a line"));
    sc_text_free(&t);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(random_machines), TEST(every_name),
                                       TEST(refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
