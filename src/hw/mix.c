/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mix.c - a cluster whose nodes differ in device or adapters.
 *
 * All nodes have equally many devices in fabrics of the same form, so that
 * places are coordinates as in other machines. If a price needs a rate of the
 * whole machine, it is that of the slowest node; each link has its own rate.
 */
#include "hw/build.h"
#include "hw/device.h"
#include "hw/fabric.h"

#include <string.h>

typedef struct mix {
    sc_hw *hw;
    sc_node_group *group;
    uint64_t nodes, ports;
    double device_power, node_power; /* sums over devices and over nodes */
} mix;

static double least(double a, double b)
{
    return a < b ? a : b;
}

static double rate(const sc_device *d)
{
    double best = d->vector_flops;
    for (int p = SC_TF32; p <= SC_BF16; p++)
        if (d->peak[p] > best) best = d->peak[p];
    return best;
}

/* Reduces a device to the lower rates and the smaller memory of two. */
static void slower(sc_device *of, const sc_device *d)
{
    sc_device a = *of, out = rate(d) < rate(of) ? *d : *of;
    for (int p = 0; p < SC_N_PRECISIONS; p++)
        out.peak[p] = least(a.peak[p], d->peak[p]);
    out.vector_flops = least(a.vector_flops, d->vector_flops);
    out.mem_bytes = a.mem_bytes < d->mem_bytes ? a.mem_bytes : d->mem_bytes;
    out.mem_bw = least(a.mem_bw, d->mem_bw);
    out.l2_bytes = a.l2_bytes < d->l2_bytes ? a.l2_bytes : d->l2_bytes;
    out.link_bw = least(a.link_bw, d->link_bw);
    out.host_bw = least(a.host_bw, d->host_bw);
    *of = out;
}

/* Joins the fabric of one more group, which must have the form of the first. */
static sc_status join_fabric(mix *x, const hw_spec *s, const sc_device *d,
                             sc_err *err)
{
    sc_hw one = {.device = d, .n_devices = 1}, *hw = x->hw;
    SC_TRY(hw_fabric_dims(s, &one, err));
    if (hw->n_dims == 0) {
        hw->n_dims = one.n_dims;
        hw->n_devices = one.n_devices;
        memcpy(hw->dim, one.dim, sizeof hw->dim);
        return SC_OK;
    }
    bool same = one.n_dims == hw->n_dims;
    for (uint32_t i = 0; i < one.n_dims && same; i++) {
        sc_dim *a = &hw->dim[i], *b = &one.dim[i];
        same = a->kind == b->kind && a->size == b->size;
        if (a->kind == SC_DIM_CUBE && d->links != x->group[0].device->links)
            same = false;
        a->bw = least(a->bw, b->bw);
        if (b->latency_s > a->latency_s) a->latency_s = b->latency_s;
        a->multicast = a->multicast && b->multicast;
    }
    if (same) return SC_OK;
    return sc_error(
        err, SC_EINPUT, SC_C_UNSUPPORTED, s->pos,
        "groups may differ in device, bandwidth and adapters",
        "a group has another fabric or size of node than the first");
}

static sc_status add_group(mix *x, const hw_spec *s, sc_dim *net,
                           sc_device *slowest, sc_arena *a, sc_err *err)
{
    const sc_device *d;
    sc_node_group *g = &x->group[x->hw->n_groups];
    sc_dim own = {.size = 1};
    if (s->device == NULL)
        return sc_error(err, SC_EINPUT, SC_C_MISSING, s->pos,
                        "name a device, or a node of the catalogue",
                        "missing key \"device\"");
    SC_TRY(hw_spec_device(s, a, &d, err));
    SC_TRY(join_fabric(x, s, d, err));
    SC_TRY(hw_net_dim(s, x->hw->n_devices, 1, s->nic_latency, &own, err));
    if (x->hw->n_devices % own.rails != 0)
        return sc_error(
            err, SC_EINPUT, SC_C_DIVIDE, hw_spec_pos(s, "rails"),
            "then rails connect the same devices of different nodes",
            "%u rails don't divide %u devices of a node", own.rails,
            x->hw->n_devices);
    *g = (sc_node_group){.first = (uint32_t)x->nodes,
                         .n = (uint32_t)s->nodes,
                         .device = d,
                         .ports = own.ports,
                         .port_bw = own.port_bw,
                         .first_port = x->ports};
    if (x->hw->n_groups++ == 0) {
        *slowest = *d;
        *net = own;
    } else {
        slower(slowest, d);
        if (own.bw < net->bw) *net = own;
    }
    x->nodes += (uint64_t)s->nodes;
    x->ports += (uint64_t)s->nodes * own.ports;
    x->device_power += (double)s->nodes * d->power_w;
    x->node_power += (double)s->nodes * s->node_power;
    if (x->nodes <= HW_MAX_DEVICES) return SC_OK;
    return sc_error(err, SC_EINPUT, SC_C_TOO_BIG, s->pos,
                    "a machine has at most 2147483648 devices",
                    "the groups have too many nodes");
}

sc_status hw_build_groups(const char *name, hw_spec *s, sc_arena *a,
                          const sc_hw **out, sc_err *err)
{
    sc_dim net = {.size = 1};
    const sc_node *list = s->groups;
    if (list->kind != SC_N_SEQ || list->n == 0)
        return sc_error(err, SC_EINPUT, SC_C_TYPE, list->pos,
                        "write groups: [{nodes: 4, device: ...}, ...]",
                        "groups must be a list of groups");
    if (s->map != NULL && sc_node_get(s->map, "nodes") != NULL)
        return sc_error(err, SC_EINPUT, SC_C_CONFLICT, hw_spec_pos(s, "nodes"),
                        "give nodes in each group",
                        "nodes and groups are both given");
    sc_hw *hw = SC_NEW(a, sc_hw);
    sc_device *slowest = SC_NEW(a, sc_device);
    mix x = {.hw = hw, .group = SC_NEW_N(a, sc_node_group, list->n)};
    if (hw == NULL || slowest == NULL || x.group == NULL ||
        (hw->name = sc_strdup(a, name)) == NULL)
        return sc_error_nomem(err);
    for (const sc_node *c = list->child; c != NULL; c = c->next) {
        hw_spec one;
        SC_TRY(hw_group_read(c, s, &one, a, err));
        SC_TRY(add_group(&x, &one, &net, slowest, a, err));
    }
    slowest->power_w = x.device_power / (double)x.nodes;
    s->node_power = x.node_power / (double)x.nodes;
    hw->device = slowest;
    hw->groups = x.group;
    net.size = (uint32_t)x.nodes;
    if (x.nodes > 1) SC_TRY(hw_add_dim(hw, &net, list->pos, err));
    SC_TRY(hw_finish(hw, s, x.nodes > 1, err));
    SC_TRY(hw_library(s, hw, a, err));
    SC_TRY(hw_network_power(hw, a, err));
    *out = hw;
    return SC_OK;
}
