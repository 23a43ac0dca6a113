/* SPDX-License-Identifier: Apache-2.0 */
/* partition.c - parts of a machine on which jobs run side by side. */
#include "hw/hw_memo.h"
#include "hw/hw_partition.h"

#include <stdlib.h>
#include <string.h>

static bool by_nodes(const sc_hw *hw)
{
    return hw->n_nodes > 1 && hw->dim[hw->n_dims - 1].ports > 0;
}

uint32_t sc_hw_units(const sc_hw *hw)
{
    return by_nodes(hw) ? hw->n_nodes : hw->n_devices;
}

const char *sc_hw_unit_name(const sc_hw *hw)
{
    return by_nodes(hw) ? "node" : "device";
}

uint32_t sc_hw_leaf_units(const sc_hw *hw)
{
    const sc_dim *d = &hw->dim[hw->n_dims - 1];
    bool leaves = by_nodes(hw) && d->leaf > 0 && d->leaf < hw->n_nodes;
    return leaves ? d->leaf : sc_hw_units(hw);
}

/* ---- nodes ---------------------------------------------------------------- */

/* The only group of the nodes; NULL: there are several. */
static const sc_node_group *group_of(const sc_hw *hw, const uint32_t *unit,
                                     uint32_t n)
{
    for (uint32_t g = 0; g < hw->n_groups; g++) {
        const sc_node_group *x = &hw->groups[g];
        uint32_t in = 0;
        for (uint32_t i = 0; i < n; i++)
            in += unit[i] >= x->first && unit[i] < x->first + x->n;
        if (in == n) return x;
    }
    return NULL;
}

static sc_status alike(const sc_hw *hw, const uint32_t *unit, uint32_t n,
                       sc_pos pos, sc_hw *own, sc_err *err)
{
    if (hw->n_groups == 0) return SC_OK;
    const sc_node_group *g = group_of(hw, unit, n);
    if (!g)
        return sc_error(err, SC_EINPUT, SC_C_UNSUPPORTED, pos,
                        "give it nodes of one kind",
                        "the nodes of one job are of several kinds");
    sc_dim *net = &own->dim[own->n_dims - 1];
    own->device = g->device;
    own->n_groups = 0;
    own->groups = NULL;
    net->ports = g->ports;
    net->port_bw = g->port_bw;
    net->bw = g->ports * g->port_bw / own->node_size;
    return SC_OK;
}

/* The most nodes that one leaf has. */
static sc_status fullest(const sc_hw *hw, const uint32_t *unit, uint32_t n,
                         sc_arena *a, uint32_t *out, sc_err *err)
{
    uint32_t leaf = sc_hw_leaf_units(hw), most = 0;
    uint32_t *in = SC_NEW_N(a, uint32_t, (size_t)hw->n_nodes / leaf + 1);
    if (!in) return sc_error_nomem(err);
    for (uint32_t i = 0; i < n; i++)
        if (++in[unit[i] / leaf] > most) most = in[unit[i] / leaf];
    *out = most;
    return SC_OK;
}

static sc_status of_nodes(const sc_hw *hw, const uint32_t *unit, uint32_t n,
                          sc_pos pos, sc_arena *a, sc_hw *own, sc_hw *apart,
                          uint32_t *device, sc_err *err)
{
    sc_dim *net = &own->dim[own->n_dims - 1];
    SC_TRY(alike(hw, unit, n, pos, own, err));
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < hw->node_size; k++)
            device[i * hw->node_size + k] = unit[i] * hw->node_size + k;
    net->size = own->n_nodes = n;
    own->n_devices = n * hw->node_size;
    if (n == 1 && own->n_dims > 1) own->n_dims--;
    *apart = *own;
    if (n == 1) return SC_OK;
    net = &apart->dim[apart->n_dims - 1];
    net->oversub = net->core_oversub = 1;
    net->pod = net->group = 0;
    return net->leaf ? fullest(hw, unit, n, a, &net->leaf, err) : SC_OK;
}

/* ---- devices -------------------------------------------------------------- */

/* Of each dimension, the number of coordinates that the devices have. */
static sc_status sides_of(const sc_hw *hw, const uint32_t *unit, uint32_t n,
                          sc_arena *a, uint32_t side[SC_HW_DIMS], sc_err *err)
{
    uint64_t inner = 1;
    for (uint32_t d = 0; d < hw->n_dims; d++) {
        uint32_t size = hw->dim[d].size;
        bool *has = SC_NEW_N(a, bool, size);
        if (!has) return sc_error_nomem(err);
        side[d] = 0;
        for (uint32_t i = 0; i < n; i++) {
            uint64_t at = unit[i] / inner % size;
            side[d] += !has[at];
            has[at] = true;
        }
        inner *= size;
    }
    return SC_OK;
}

static int by_number(const void *p, const void *q)
{
    const uint32_t *x = p, *y = q;
    return (*x > *y) - (*x < *y);
}

/* A ring is closed only if it is whole. */
static void cut(sc_dim *d, uint32_t side)
{
    if (side == d->size) return;
    if (d->kind == SC_DIM_RING) d->kind = SC_DIM_MESH;
    if (d->kind == SC_DIM_FULL && d->size > 1)
        d->bw *= (side - 1.0) / (d->size - 1.0);
    d->size = side;
}

/* Dimensions of one member are left out, as the catalogue does. */
static void drop_single(sc_hw *own)
{
    uint32_t kept = 0;
    for (uint32_t d = 0; d < own->n_dims; d++)
        if (own->dim[d].size > 1 || own->n_devices == 1)
            own->dim[kept++] = own->dim[d];
    own->n_dims = kept;
    if (own->n_devices == 1) own->n_dims = 1;
}

static sc_status of_devices(const sc_hw *hw, const uint32_t *unit, uint32_t n,
                            sc_pos pos, sc_arena *a, sc_hw *own,
                            uint32_t *device, sc_err *err)
{
    uint32_t side[SC_HW_DIMS], whole = 0;
    uint64_t box = 1;
    SC_TRY(sides_of(hw, unit, n, a, side, err));
    for (uint32_t d = 0; d < hw->n_dims; d++) {
        box *= side[d];
        whole += side[d] == hw->dim[d].size;
        if (side[d] < hw->dim[d].size && hw->dim[d].kind == SC_DIM_CUBE)
            return sc_error(err, SC_EINPUT, SC_C_UNSUPPORTED, pos,
                            "give it all devices of the node",
                            "a part of a hybrid cube mesh is no machine");
        cut(&own->dim[d], side[d]);
    }
    if (box != n)
        return sc_error(err, SC_EINPUT, SC_C_UNSUPPORTED, pos,
                        "give it the same coordinates along every side",
                        "%u devices of a torus or mesh do not fill a box", n);
    memcpy(device, unit, n * sizeof *device);
    qsort(device, n, sizeof *device, by_number);
    own->n_devices = own->node_size = n;
    if (whole < hw->n_dims) own->topo = NULL;
    if (own->host_size > n) own->host_size = n;
    drop_single(own);
    return SC_OK;
}

static void identify(sc_hw *own, sc_arena *a)
{
    own->hash = sc_hash(&own->n_devices, sizeof own->n_devices, own->hash);
    for (uint32_t d = 0; d < own->n_dims; d++) {
        const uint32_t key[] = {own->dim[d].size, own->dim[d].leaf,
                                own->dim[d].kind};
        own->hash = sc_hash(key, sizeof key, own->hash);
        own->hash = sc_hash(&own->dim[d].oversub, sizeof own->dim[d].oversub,
                            own->hash);
    }
    own->memo = hw_memo_new(a);
}

sc_status sc_hw_part_of(const sc_hw *hw, const uint32_t *unit, uint32_t n,
                        sc_pos pos, sc_arena *a, sc_hw_part *out, sc_err *err)
{
    uint32_t each = by_nodes(hw) ? hw->node_size : 1;
    sc_hw *own = SC_NEW(a, sc_hw), *apart = SC_NEW(a, sc_hw);
    uint32_t *device = SC_NEW_N(a, uint32_t, (size_t)n * each);
    if (!own || !apart || !device) return sc_error_nomem(err);
    *own = *hw;
    own->wiring = NULL;
    if (by_nodes(hw)) {
        SC_TRY(of_nodes(hw, unit, n, pos, a, own, apart, device, err));
    } else {
        SC_TRY(of_devices(hw, unit, n, pos, a, own, device, err));
        *apart = *own;
    }
    identify(own, a);
    identify(apart, a);
    *out = (sc_hw_part){own, apart, device};
    return SC_OK;
}
