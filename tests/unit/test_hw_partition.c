/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of machines on which jobs run side by side. */
#include "fixture.h"
#include "hw/hw_partition.h"

#include <stdlib.h>
#include <string.h>

static sc_hw_part p;

static sc_status part(const char *spec, uint32_t n, const uint32_t *unit)
{
    sc_err_init(&err);
    return sc_hw_part_of(machine(spec), unit, n, sc_pos_file("jobs.yml"),
                         &arena, &p, &err);
}

/* Nodes 0 to n - 1, and with a step. */
static const uint32_t *every(uint32_t n, uint32_t step, uint32_t first)
{
    uint32_t *u = SC_NEW_N(&arena, uint32_t, n);
    for (uint32_t i = 0; i < n; i++) u[i] = first + i * step;
    return u;
}

static bool same_dim(const sc_dim *a, const sc_dim *b)
{
    return a->kind == b->kind && a->size == b->size && a->bw == b->bw &&
           a->latency_s == b->latency_s && a->ports == b->ports &&
           a->port_bw == b->port_bw && a->oversub == b->oversub &&
           a->rails == b->rails && a->network == b->network;
}

/* A part is the machine that the catalogue has with as many nodes. */
static void as_the_catalogue(void **state)
{
    (void)state;

    static const struct {
        const char *whole, *part;
        uint32_t n;
    } rows[] = {{"dgx-h100:8", "dgx-h100:4", 4},
                {"dgx-h100:8", "dgx-h100:1", 1},
                {"dgx-h100:1", "h100-sxm:1", 1},
                {"tpu-v4:64", "tpu-v4:64", 64}};

    for (size_t i = 0; i < SC_COUNT(rows); i++) {
        const sc_hw *same = machine(rows[i].part);
        if (part(rows[i].whole, rows[i].n, every(rows[i].n, 1, 0))) no_error();
        assert_int_equal(p.hw->n_devices, same->n_devices);
        assert_int_equal(p.hw->node_size, same->node_size);
        assert_int_equal(p.hw->n_nodes, same->n_nodes);
        for (uint32_t d = 0; d < same->n_dims && same->n_devices > 1; d++)
            assert_true(same_dim(&p.hw->dim[d], &same->dim[d]));
        for (uint32_t r = 0; r < p.hw->n_devices; r++)
            assert_int_equal(p.device[r], r);
    }
}

static void nodes(void **state)
{
    (void)state;
    const char *spec = "dgx-h100:16; leaf=4; oversubscription=4";
    const uint32_t some[] = {9, 1, 3};
    if (part(spec, 3, some)) no_error();
    assert_int_equal(p.device[0], 72);
    assert_int_equal(p.device[8 + 7], 15);
    const sc_dim *net = &p.hw->dim[1], *apart = &p.apart->dim[1];
    assert_true(net->oversub == 4 && net->leaf == 4 && net->size == 3);
    assert_true(apart->oversub == 1 && apart->leaf == 2);
    assert_true(p.hw->hash != p.apart->hash);
    assert_int_equal(sc_hw_units(machine(spec)), 16);
    assert_int_equal(sc_hw_leaf_units(machine(spec)), 4);
    assert_int_equal(sc_hw_leaf_units(machine("dgx-h100:16")), 16);
    assert_string_equal(sc_hw_unit_name(machine("tpu-v4:64")), "device");
}

static void boxes(void **state)
{
    (void)state;
    if (part("tpu-v4:64", 32, every(32, 1, 32))) no_error();
    assert_int_equal(p.hw->n_dims, 3);
    assert_true(p.hw->dim[0].kind == SC_DIM_RING && p.hw->dim[0].size == 4);
    assert_true(p.hw->dim[2].kind == SC_DIM_MESH && p.hw->dim[2].size == 2);
    assert_int_equal(p.device[0], 32);
    if (part("tpu-v4:64", 4, every(4, 16, 5))) no_error();
    assert_true(p.hw->n_dims == 1 && p.hw->dim[0].kind == SC_DIM_RING);
    assert_int_equal(part("tpu-v4:64", 3, every(3, 5, 0)), SC_EINPUT);
    assert_true(strstr(err.d[0].msg, "fill a box") != NULL);
    assert_int_equal(part("dgx1-v100:1", 4, every(4, 1, 0)), SC_EINPUT);
}

static void kinds(void **state)
{
    (void)state;
    const sc_hw *hw = NULL;
    const char *path =
        sc_sprintf(&arena, "%s/examples/clusters/%s", getenv("STEPCAST_SOURCE"),
                   "h100-and-a100.yml");
    if (sc_hw_build(path, sc_pos_none(), &arena, &hw, &err)) no_error();
    assert_true(hw->n_groups == 2);
    const uint32_t second = hw->groups[1].first;
    if (part(path, hw->groups[1].n, every(hw->groups[1].n, 1, second)))
        no_error();
    assert_int_equal(p.hw->n_groups, 0);
    assert_string_equal(p.hw->device->name, hw->groups[1].device->name);
    assert_int_equal(part(path, 2, every(2, 1, second - 1)), SC_EINPUT);
    assert_true(strstr(err.d[0].msg, "several kinds") != NULL);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(as_the_catalogue), TEST(nodes),
                                       TEST(boxes), TEST(kinds)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
