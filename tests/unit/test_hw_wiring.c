/* SPDX-License-Identifier: Apache-2.0 */
/* Networks link by link: what is read, refused, and which way messages go. */
#include "fixture.h"
#include "hw/build.h"
#include "hw/hw_wiring.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const sc_wiring *wiring(const char *text)
{
    const sc_wiring *w = NULL;
    if (sc_wiring_read(text, strlen(text), "w.yml", &arena, &w, &err) != SC_OK)
        no_error();
    return w;
}

static const char two_switches[] =
    "devices: [a, b, c]\n"
    "switches: 2\n"
    "links:\n"
    "  - {from: a, to: s0, bandwidth: 50GB/s, latency: 500ns}\n"
    "  - {from: b, to: s0, bandwidth: 25GB/s, latency: 700ns}\n"
    "  - {from: c, to: s1, bandwidth: 50GB/s, latency: 500ns}\n"
    "  - {from: s0, to: s1, bandwidth: 100GB/s, latency: 300ns}\n"
    "  - {from: s0, to: s1, bandwidth: 90GB/s, latency: 300ns}\n"
    "  - {from: a, to: c, bandwidth: 1GB/s, latency: 1us, both: false}\n";

static void reads(void **state)
{
    (void)state;
    uint64_t links[8], seen = 0;
    const sc_wiring *w = wiring(two_switches);
    assert_int_equal(w->n_devices, 3);
    assert_int_equal(w->n_vertices, 5);
    assert_int_equal(w->n_links, 11);
    assert_string_equal(w->name[1], "b");
    assert_string_equal(w->name[4], "s1");
    assert_true(w->link[2].bw == 25e9 && w->link[3].from == 3);
    assert_int_equal(sc_wiring_route(w, 0, 0, 1, links, 8), 0);
    /* straight there, around on the way back */
    assert_int_equal(sc_wiring_route(w, 0, 2, 1, links, 8), 1);
    assert_int_equal(links[0], 10);
    assert_int_equal(sc_wiring_route(w, 2, 0, 1, links, 8), 3);
    for (uint64_t seed = 0; seed < 50; seed++) {
        assert_int_equal(sc_wiring_route(w, 1, 2, seed, links, 8), 3);
        assert_true(links[0] == 2 && links[2] == 5);
        seen |= (uint64_t)1 << links[1];
    }
    assert_int_equal(seen, 1 << 6 | 1 << 8); /* both cables */
}

static void refuses(void **state)
{
    (void)state;

    static const struct {
        const char *text, *word;
        sc_code code;
        uint32_t line, col;
    } c[] = {
        {"", "devices", SC_C_MISSING, 1, 1},
        {"devices: 2\n", "links", SC_C_MISSING, 1, 1},
        {"devices: 2\nlinks: 3\n", "list", SC_C_TYPE, 2, 8},
        {"devices: {}\nlinks: []\n", "list", SC_C_TYPE, 1, 10},
        {"devices: 0\nlinks: []\n", "no devices", SC_C_RANGE, 1, 10},
        {"devices: 70000\nlinks: []\n", "70000", SC_C_TOO_BIG, 1, 10},
        {"devices: 60000\nlinks: []\n", "rule", SC_C_TOO_BIG, 1, 10},
        {"devices: [a, a]\nlinks: []\n", "another", SC_C_DUPLICATE, 1, 14},
        {"devices: [s0]\nswitches: 1\nlinks: []\n", "s0", SC_C_DUPLICATE, 2,
         11},
        {"devices: [a, [b]]\nlinks: []\n", "name", SC_C_TYPE, 1, 14},
        {"devices: 2\nlinks: []\n", "\"d1\" to \"d0\"", SC_C_REFERENCE, 2, 8},
        {"devices: 2\nlinks:\n"
         "  - {from: d0, to: d1, bandwidth: 1GB/s, latency: 0s, both: no}\n",
         "\"d1\" to \"d0\"", SC_C_REFERENCE, 3, 3},
        {"devices: 2\nlinks:\n"
         "  - {from: d0, to: d2, bandwidth: 1GB/s, latency: 0s}\n",
         "d2", SC_C_REFERENCE, 3, 20},
        {"devices: 2\nlinks:\n"
         "  - {from: d0, to: d0, bandwidth: 1GB/s, latency: 0s}\n",
         "itself", SC_C_CONFLICT, 3, 5},
        {"devices: 2\nlinks:\n"
         "  - {from: d0, to: d1, bandwidth: 1, latency: 0s}\n",
         "GB/s", SC_C_UNIT, 3, 35},
        {"devices: 2\nlinks:\n"
         "  - {from: d0, to: d1, bandwidth: 0GB/s, latency: 0s}\n",
         "", SC_C_RANGE, 3, 35},
        {"devices: 2\nlinks:\n  - {from: d0, to: d1, bandwidth: 1GB/s}\n",
         "latency", SC_C_MISSING, 3, 5},
        {"devices: 2\nlinks:\n"
         "  - {from: d0, to: d1, bandwith: 1GB/s, latency: 0s}\n",
         "bandwidth", SC_C_UNKNOWN_KEY, 3, 24},
    };

    for (size_t i = 0; i < SC_COUNT(c); i++) {
        const sc_wiring *w = NULL;
        char text[600];
        sc_err_init(&err);
        sc_status s = sc_wiring_read(c[i].text, strlen(c[i].text), "w.yml",
                                     &arena, &w, &err);
        sc_diag_format(&err.d[0], text, sizeof text);
        if (s != SC_EINPUT || w != NULL || err.d[0].code != c[i].code ||
            err.d[0].line != c[i].line || err.d[0].col != c[i].col ||
            strstr(text, c[i].word) == NULL)
            fail_msg("\"%s\": %s [%s]", c[i].text, text,
                     sc_code_name(err.d[0].code));
    }
}

/* Devices are passed through only where there is no way around, however
 * long. */
static void avoids_devices(void **state)
{
    (void)state;
    uint64_t links[8];
    const sc_wiring *w =
        wiring("devices: 4\nswitches: 3\nlinks:\n"
               "  - {from: d0, to: d1, bandwidth: 1GB/s, latency: 0s}\n"
               "  - {from: d1, to: d2, bandwidth: 1GB/s, latency: 0s}\n"
               "  - {from: d0, to: s0, bandwidth: 1GB/s, latency: 0s}\n"
               "  - {from: s0, to: s1, bandwidth: 1GB/s, latency: 0s}\n"
               "  - {from: s1, to: s2, bandwidth: 1GB/s, latency: 0s}\n"
               "  - {from: s2, to: d2, bandwidth: 1GB/s, latency: 0s}\n"
               "  - {from: d2, to: d3, bandwidth: 1GB/s, latency: 0s}\n");
    assert_int_equal(sc_wiring_route(w, 0, 1, 0, links, 8), 1);
    assert_int_equal(sc_wiring_route(w, 0, 2, 0, links, 8), 4);
    assert_int_equal(sc_wiring_route(w, 0, 3, 0, links, 8), 5);
    assert_int_equal(sc_wiring_route(w, 1, 3, 0, links, 8), 2);
    assert_int_equal(w->way[3 * 7 + 0], SC_WIRING_DEVICE + 5);
}

/* A cluster file names one for all its nodes. */
static void cluster(void **state)
{
    (void)state;
    static const char text[] = "node: dgx-h100\nnodes: 2\nnics: 2\n"
                               "nic_bw: 25GB/s\nrails: 1\ndevices_per_node: 2\n"
                               "wiring: two-switches.yml\n";
    static const char file[] = "tests/fuzz/corpus/wiring/c.yml";
    const sc_hw *hw = NULL;
    uint64_t links[8];
    char name[40];
    if (hw_build_text(text, strlen(text), file, NULL, &arena, &hw, &err) !=
        SC_OK)
        no_error();
    assert_int_equal(sc_hw_n_links(hw), 12);
    assert_int_equal(sc_hw_route(hw, 0, 3, 0, links, 8), 3);
    sc_hw_link_name(hw, links[2], name, sizeof name);
    assert_string_equal(name, "s1>d3");
    assert_true(sc_hw_link_bw(hw, links[2]) == 25e9);
    assert_true(sc_hw_link_latency(hw, links[2]) == 700e-9);
    assert_int_equal(sc_hw_link_scope(hw, links[2]), SC_SCOPE_NET);
    assert_true(sc_hw_link_bw(hw, 12) == 0);
    static const char more[] = "node: dgx-h100\nwiring: two-switches.yml\n";
    hw = NULL;
    assert_int_equal(
        hw_build_text(more, strlen(more), file, NULL, &arena, &hw, &err),
        SC_EINPUT);
    assert_int_equal(err.d[0].code, SC_C_CONFLICT);
    assert_int_equal(err.d[0].line, 2);
}

/* Ends of a link's name: "dim0:device1>switch0", the dimension kept. */
static void split(const char *name, char from[40], char to[40])
{
    unsigned dim;
    char a[30], b[30];
    assert_int_equal(sscanf(name, "dim%u:%29[^>]>%29s", &dim, a, b), 3);
    bool x = strncmp(a, "device", 6) == 0, y = strncmp(b, "device", 6) == 0;
    snprintf(from, 40, x ? "%s" : "%s.%u", a, dim);
    snprintf(to, 40, y ? "%s" : "%s.%u", b, dim);
}

/* The same network, written link by link. */
static const sc_wiring *written(const sc_hw *hw)
{
    sc_text t;
    char from[40], to[40], name[100], seen[64][40];
    uint32_t n = 0;
    sc_text_init(&t);
    sc_text_add(&t, "links:\n");
    for (uint64_t l = 0; l < sc_hw_n_links(hw); l++) {
        sc_hw_link_name(hw, l, name, sizeof name);
        split(name, from, to);
        sc_text_add(&t,
                    "  - {from: %s, to: %s, bandwidth: %.0fB/s, "
                    "latency: %.0fns, both: false}\n",
                    from, to, sc_hw_link_bw(hw, l),
                    sc_hw_link_latency(hw, l) * 1e9);
        uint32_t k = 0;
        while (k < n && strcmp(seen[k], from) != 0) k++;
        if (k < n || strncmp(from, "device", 6) == 0) continue;
        assert_true(n < 64);
        memcpy(seen[n++], from, sizeof from);
    }
    sc_text_add(&t, "devices: [device0");
    for (uint32_t d = 1; d < hw->n_devices; d++)
        sc_text_add(&t, ", device%u", d);
    sc_text_add(&t, "]\nswitches: [");
    for (uint32_t k = 0; k < n; k++) sc_text_add(&t, "%s, ", seen[k]);
    sc_text_add(&t, "]\n");
    const sc_wiring *w = wiring(t.buf);
    sc_text_free(&t);
    return w;
}

/* Routes by rule are as short as the shortest of the same links. */
static void rules_are_short(void **state)
{
    (void)state;
    static const char *const specs[] = {
        "switch8@450GB/s,1us",
        "ring9@300GB/s,50ns",
        "torus4x5@60GB/s,10ns",
        "mesh7@10GB/s x mesh3@10GB/s",
        "fc5@100GB/s",
        "switch1@9GB/s,1us x switch12@5GB/s,2us; leaf=3",
        "switch1@9GB/s,1us x switch12@5GB/s,2us; leaf=2; pod=4",
        "tree13@16GB/s"};
    uint64_t links[64];
    for (size_t i = 0; i < SC_COUNT(specs); i++) {
        const sc_hw *hw = machine(specs[i]);
        const sc_wiring *w = written(hw);
        assert_int_equal(w->n_links, sc_hw_n_links(hw));
        for (uint32_t a = 0; a < hw->n_devices; a++)
            for (uint32_t b = 0; b < hw->n_devices; b++) {
                double ours = 0, theirs = 0;
                uint32_t n = sc_hw_route(hw, a, b, 1, links, 64);
                for (uint32_t k = 0; k < n; k++)
                    ours += sc_hw_link_latency(hw, links[k]);
                assert_int_equal(sc_wiring_route(w, a, b, 1, links, 64), n);
                for (uint32_t k = 0; k < n; k++)
                    theirs += w->link[links[k]].latency_s;
                if (fabs(ours - theirs) > 1e-12)
                    fail_msg("%s: %u to %u", specs[i], a, b);
            }
    }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(reads), TEST(refuses),
                                       TEST(avoids_devices), TEST(cluster),
                                       TEST(rules_are_short)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
