/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes of collectives on random groups: no algorithm moves less than the
 * collective needs, and what leaves the members arrives.
 */
#include "coll/coll.h"
#include "hw/hw_nccl.h"
#include "property.h"
#include "unit.h"

#include <math.h>

typedef struct random_case {
    sc_device device;
    sc_hw hw;
    sc_place at;
    sc_coll coll;
    double bytes;
    sc_phases ph;
} random_case;

static void draw(prop *p, random_case *c)
{
    uint32_t node = (uint32_t)prop_below(p, 16) + 1;
    uint32_t m = (uint32_t)prop_below(p, node) + 1;
    uint32_t nodes = (uint32_t)prop_below(p, 40) + 1;
    c->device = (sc_device){.name = "d", .arch = "hopper"};
    c->hw = (sc_hw){.name = "m", .device = &c->device, .n_dims = 2};
    c->hw.node_size = node;
    c->hw.n_nodes = nodes;
    c->hw.n_devices = node * nodes;
    c->hw.dim[0] =
        (sc_dim){.kind = SC_DIM_SWITCH, .size = node, .multicast = true};
    c->hw.dim[1] = (sc_dim){.kind = SC_DIM_SWITCH, .size = nodes, .ports = 1};
    c->at = (sc_place){.n = m * nodes, .m = m, .nodes = nodes, .peers = 1};
    for (int i = 0; i < SC_HW_DIMS; i++) c->at.dim_n[i] = 1;
    c->at.dim_n[0] = m;
    c->at.dim_n[1] = nodes;
    static const sc_nccl_options sharp = {.collnet = true};
    c->hw.nccl_options = prop_below(p, 2) ? &sharp : NULL;
    c->coll = sc_priced_colls[prop_below(p, SC_N_PRICED_COLLS)];
    c->bytes = 1 + (double)prop_below(p, 1u << 30);
}

static bool run(random_case *c, int algorithm)
{
    return sc_algorithm_phases(algorithm, c->coll, c->bytes, &c->at, &c->hw,
                               &c->ph);
}

/* What the busiest member must send or receive without help of a switch. */
static double least_bytes(const random_case *c, bool in_switch)
{
    double n = c->at.n, v = c->bytes;
    switch (c->coll) {
    case SC_ALL_REDUCE: return in_switch ? v : 2 * (n - 1) / n * v;
    case SC_ALL_GATHER:
    case SC_REDUCE_SCATTER:
    case SC_ALL_TO_ALL: return (n - 1) / n * v;
    default: break;
    }
    return v;
}

/* Through one node's NICs, by the same count with nodes for members; a
 * double tree of two nodes reduces on both at once, and SHARP sends the sum
 * back once. */
static double least_net_bytes(const random_case *c, bool in_network)
{
    double nodes = c->at.nodes, v = c->bytes;
    if (in_network && c->coll == SC_ALL_REDUCE) return v;
    switch (c->coll) {
    case SC_ALL_REDUCE: return 2 * (nodes - 1) / nodes * v;
    case SC_ALL_GATHER:
    case SC_REDUCE_SCATTER: return (nodes - 1) / nodes * v;
    case SC_ALL_TO_ALL: return (nodes - 1) / nodes * v * c->at.m;
    default: break;
    }
    return v;
}

static bool needs_are_met(prop *p, void *ctx)
{
    (void)ctx;
    random_case c;
    draw(p, &c);
    if (c.at.n <= 1) return true;
    for (int a = 0; a < SC_N_ALGOS; a++) {
        if (!run(&c, a)) continue;
        double node = sc_phases_bytes(&c.ph, SC_SCOPE_NODE);
        double net = sc_phases_bytes(&c.ph, SC_SCOPE_NET);
        bool in_switch = a == SC_ALGO_NVLS || a == SC_ALGO_NVLS_TREE;
        bool sharp = a == SC_ALGO_NVLS || a == SC_ALGO_COLLNET;
        double need = least_bytes(&c, in_switch);
        if (c.at.nodes > 1 && net < least_net_bytes(&c, sharp) * (1 - 1e-12))
            return false;
        if (c.at.nodes == 1 && node < need * (1 - 1e-12)) return false;
        if (!in_switch && !sharp && c.coll != SC_SENDRECV &&
            node + net < need * (1 - 1e-12))
            return false;
        if (c.at.m == 1 && node > 0) return false;
        if (c.at.nodes == 1 && net > 0) return false;
    }
    return true;
}

/* Rings and exchanges: a node's members together send what one member's share
 * of the collective is, times the members. */
static bool bytes_are_conserved(prop *p, void *ctx)
{
    (void)ctx;
    random_case c;
    draw(p, &c);
    if (c.at.n <= 1) return true;
    double all = c.at.m * least_bytes(&c, false);
    bool ring = run(&c, SC_ALGO_RING);
    if (ring) {
        double sum = c.at.m * sc_phases_bytes(&c.ph, SC_SCOPE_NODE) +
                     sc_phases_bytes(&c.ph, SC_SCOPE_NET);
        if (fabs(sum / all - 1) > 1e-12) return false;
    }
    bool exchange = c.coll <= SC_ALL_TO_ALL && run(&c, SC_ALGO_DIRECT);
    if (exchange) {
        double sum = c.at.m * sc_phases_bytes(&c.ph, SC_SCOPE_NODE) +
                     sc_phases_bytes(&c.ph, SC_SCOPE_NET);
        if (fabs(sum / all - 1) > 1e-12) return false;
    }
    return true;
}

/* V up and V / m down through each port. */
static bool switch_law_holds(prop *p, void *ctx)
{
    (void)ctx;
    random_case c;
    draw(p, &c);
    c.coll = SC_ALL_REDUCE;
    int a = c.at.nodes > 1 && c.hw.nccl_options == NULL ? SC_ALGO_NVLS_TREE
                                                        : SC_ALGO_NVLS;
    if (!run(&c, a)) return c.at.m < 2 || c.at.n < 3;
    double want = c.at.n > 1 ? c.bytes * (1 + 1.0 / c.at.m) : 0;
    return fabs(sc_phases_bytes(&c.ph, SC_SCOPE_NODE) - want) <= 1e-9 * want;
}

static void check(const char *name, bool (*fn)(prop *, void *))
{
    assert_true(prop_check(name, 3000, fn, NULL));
}

static void needs(void **state)
{
    (void)state;
    check("collectives move what they need", needs_are_met);
}

static void conservation(void **state)
{
    (void)state;
    check("rings conserve bytes", bytes_are_conserved);
}

static void switch_law(void **state)
{
    (void)state;
    check("in-switch reduction", switch_law_holds);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(needs),
        cmocka_unit_test(conservation),
        cmocka_unit_test(switch_law),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
