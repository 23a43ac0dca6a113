/* SPDX-License-Identifier: Apache-2.0 */
/* fabric.c - the connection of a node's devices, as dimensions. */
#include "hw/fabric.h"

#include "base/util.h"

#include <math.h>
#include <stdio.h>

typedef struct sides {
    uint32_t n, size[SC_HW_DIMS];
} sides;

/* The links from the first `size` devices of a cube mesh to each other, for the
 * device that has fewest. A device has six links with doubled edges (V100) or
 * four (P100). */
static int part_of_cube(uint32_t size, uint32_t links)
{
    static const int of_six[] = {0, 0, 1, 2, 4}, of_four[] = {0, 0, 1, 2, 3};
    return links == 4 ? of_four[size] : of_six[size];
}

/* The dimension of NVLink without a switch. Eight P100 or V100 form the cube
 * mesh, and up to four of them a full graph in it. Other devices have links
 * between all pairs. */
static sc_status mesh_dim(const hw_spec *s, uint32_t links, sc_dim *d,
                          sc_err *err)
{
    d->kind = SC_DIM_FULL;
    if ((links != 4 && links != 6) || d->size > 8) return SC_OK;
    if (d->size == 8) {
        d->kind = SC_DIM_CUBE;
    } else if (d->size > 4) {
        return sc_error(err, SC_EINPUT, SC_C_UNSUPPORTED,
                        hw_spec_pos(s, "devices_per_node"), "use 1 to 4, or 8",
                        "a cube mesh has 8 devices, not %u", d->size);
    } else if (d->size > 1) {
        d->bw *= (double)part_of_cube(d->size, links) / links;
    }
    return SC_OK;
}

/* Cards that bridges join in groups, which the host's PCIe joins. */
static sc_status bridge_dims(const hw_spec *s, sc_dim d, sc_hw *hw, sc_err *err)
{
    sc_pos pos = hw_spec_pos(s, "devices_per_node");
    uint32_t all = d.size, whole = (uint32_t)s->bridge;
    d.kind = SC_DIM_FULL;
    uint32_t part = (uint32_t)sc_gcd(all, whole);
    if (part == 0) part = 1;
    d.size = part;
    if (d.size > 1) {
        double full = d.bw;
        d.bw *= (double)(d.size - 1) / (whole - 1);
        SC_TRY(hw_add_dim(hw, &d, pos, err));
        d.bw = full;
    }
    if (all == part && all > 1) return SC_OK;
    d.kind = SC_DIM_TREE;
    d.size = all / part;
    d.bw = hw->device->host_bw;
    if (d.bw <= 0)
        return sc_error(err, SC_EINPUT, SC_C_CONFLICT, pos, NULL,
                        "%.80s has no host link beside its bridge", s->device);
    return hw_add_dim(hw, &d, pos, err);
}

/* ---- torus and mesh ---- */

/* "4x4" */
static sc_status parse_shape(const hw_spec *s, sides *out, sc_err *err)
{
    sc_pos pos = hw_spec_pos(s, "shape");
    const char *p = s->shape == NULL ? "" : s->shape;
    uint64_t product = 1;
    *out = (sides){0, {0}};
    for (;;) {
        uint64_t side = 0;
        const char *start = p;
        for (; *p >= '0' && *p <= '9' && side < HW_MAX_DEVICES; p++)
            side = 10 * side + (uint64_t)(*p - '0');
        if (p == start || side < 1 || side > 65536 || product > HW_MAX_DEVICES)
            return sc_error(err, SC_EINPUT, SC_C_TYPE, pos, "write shape: 4x4",
                            "a torus needs a shape: \"%.40s\"",
                            s->shape == NULL ? "" : s->shape);
        if (out->n == SC_HW_DIMS)
            return sc_error(err, SC_EINPUT, SC_C_TOO_BIG, pos, NULL,
                            "there are more than %d dimensions", SC_HW_DIMS);
        product *= side;
        out->size[out->n++] = (uint32_t)side;
        if (*p == '\0') break;
        if (*p++ != 'x')
            return sc_error(err, SC_EINPUT, SC_C_TYPE, pos, "write shape: 4x4",
                            "not a shape: \"%.40s\"", s->shape);
    }
    if (product == (uint64_t)s->devices_per_node) return SC_OK;
    return sc_error(err, SC_EINPUT, SC_C_CONFLICT, pos, NULL,
                    "shape %.40s has %llu devices, devices_per_node is %lld",
                    s->shape, (unsigned long long)product,
                    (long long)s->devices_per_node);
}

/* Adds one ring for each side; a side that does not wrap is a line. */
static sc_status shape_dims(const hw_spec *s, sc_dim d, sc_hw *hw, sc_err *err)
{
    sides shape;
    SC_TRY(parse_shape(s, &shape, err));
    uint32_t first = hw->n_dims;
    /* A device's links are divided among all sides. */
    if (s->bandwidth <= 0) d.bw /= shape.n;
    for (uint32_t i = 0; i < shape.n; i++) {
        bool last = i + 1 == shape.n && hw->n_dims == first;
        if (shape.size[i] == 1 && !last) continue;
        d.size = shape.size[i];
        d.kind = s->fabric == HW_TORUS && d.size % s->wrap == 0 ? SC_DIM_RING
                                                                : SC_DIM_MESH;
        SC_TRY(hw_add_dim(hw, &d, hw_spec_pos(s, "shape"), err));
    }
    return SC_OK;
}

/* Finds the box of `n` devices with the smallest sum of sides that fits into
 * the first `left` sides of a whole. Sides are in ascending order in both. */
static void box(const sides *whole, uint32_t left, uint64_t n, uint64_t sum,
                sides *now, sides *best, uint64_t *best_sum)
{
    if (left == 0) {
        if (n == 1 && sum < *best_sum) {
            *best = *now;
            *best_sum = sum;
        }
        return;
    }
    uint64_t most = whole->size[left - 1];
    if (left < whole->n && now->size[left] < most) most = now->size[left];
    for (uint64_t side = 1; side <= most; side++) {
        if (n % side != 0) continue;
        now->size[left - 1] = (uint32_t)side;
        box(whole, left - 1, n / side, sum + side, now, best, best_sum);
    }
}

static sc_status slice(hw_spec *s, uint64_t n, sc_arena *a, sc_err *err)
{
    sides whole, best, now;
    uint64_t sum = UINT64_MAX;
    char text[16 * SC_HW_DIMS];
    SC_TRY(parse_shape(s, &whole, err));
    for (uint32_t i = 1; i < whole.n; i++)
        for (uint32_t j = i; j > 0 && whole.size[j - 1] > whole.size[j]; j--) {
            uint32_t t = whole.size[j];
            whole.size[j] = whole.size[j - 1];
            whole.size[j - 1] = t;
        }
    now = best = whole;
    box(&whole, whole.n, n, 0, &now, &best, &sum);
    if (sum == UINT64_MAX)
        return sc_error(err, SC_EINPUT, SC_C_DIVIDE, s->pos,
                        "use a product of small sides, for example 64",
                        "%.40s has no part with %llu devices", s->shape,
                        (unsigned long long)n);
    size_t at = 0;
    for (uint32_t i = 0; i < best.n; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, i ? "x%u" : "%u",
                               best.size[i]);
    s->shape = sc_strdup(a, text);
    return s->shape == NULL ? sc_error_nomem(err) : SC_OK;
}

sc_status hw_resize(hw_spec *s, uint64_t n, sc_arena *a, sc_err *err)
{
    int64_t usual = s->devices_per_node, nics = s->nics;
    if (n == (uint64_t)usual) return SC_OK;
    if ((s->fabric == HW_TORUS || s->fabric == HW_MESH) && s->shape != NULL) {
        if (n > (uint64_t)usual)
            return sc_error(err, SC_EINPUT, SC_C_TOO_BIG, s->pos, NULL,
                            "%llu devices do not fill a node of shape %.40s",
                            (unsigned long long)n, s->shape);
        SC_TRY(slice(s, n, a, err));
    }
    s->devices_per_node = (int64_t)n;
    /* the power of several hosts is that of those in use */
    if (s->host > 0 && s->host < usual)
        s->node_power *= fmax((double)n, (double)s->host) / (double)usual;
    if (nics < 1) return SC_OK;
    s->nics = (nics * (int64_t)n + usual - 1) / usual;
    s->rails = s->rails == nics
                   ? s->nics
                   : (int64_t)sc_gcd((uint64_t)s->rails, (uint64_t)s->nics);
    return SC_OK;
}

uint64_t hw_domain(const hw_spec *s, uint64_t n)
{
    uint64_t host = (uint64_t)s->host, most = (uint64_t)s->devices_per_node;
    if (host == 0 || n % host != 0) return 0;
    if (n <= most) return n;
    for (uint64_t m = most / host * host; m > host; m -= host)
        if (n % m == 0) return m;
    return 0;
}

/* ---- all of them ---- */

static sc_status check_fabric(const hw_spec *s, double bw, sc_err *err)
{
    if (s->devices_per_node == 0)
        return sc_error(err, SC_EINPUT, SC_C_MISSING, s->pos, NULL,
                        "missing key \"devices_per_node\"");
    if (s->fabric == HW_FABRIC_UNKNOWN)
        return sc_error(err, SC_EINPUT, SC_C_MISSING, s->pos,
                        "write fabric: nvswitch, pcie-tree, ...",
                        "missing key \"fabric\"");
    if (s->host > 0 && s->devices_per_node % s->host != 0 &&
        s->devices_per_node > s->host)
        return sc_error(err, SC_EINPUT, SC_C_DIVIDE, hw_spec_pos(s, "host"),
                        NULL, "hosts of %lld don't divide %lld devices",
                        (long long)s->host, (long long)s->devices_per_node);
    if (s->devices_per_node == 1) return SC_OK;
    if (s->fabric == HW_NONE)
        return sc_error(err, SC_EINPUT, SC_C_CONFLICT, hw_spec_pos(s, "fabric"),
                        "write fabric: pcie-tree",
                        "%lld devices in a node, "
                        "but no fabric joins them",
                        (long long)s->devices_per_node);
    if (bw <= 0)
        return sc_error(err, SC_EINPUT, SC_C_CONFLICT, hw_spec_pos(s, "fabric"),
                        "write fabric: pcie-tree, or give its bandwidth",
                        "%.80s has no scale-up links", s->device);
    return SC_OK;
}

sc_status hw_fabric_dims(const hw_spec *s, sc_hw *hw, sc_err *err)
{
    static const sc_dim_kind kinds[] = {
        [HW_NVSWITCH] = SC_DIM_SWITCH,  [HW_NVLINK_MESH] = SC_DIM_FULL,
        [HW_PCIE_TREE] = SC_DIM_TREE,   [HW_TORUS] = SC_DIM_RING,
        [HW_RING] = SC_DIM_RING,        [HW_FULL] = SC_DIM_FULL,
        [HW_NONE] = SC_DIM_SWITCH,      [HW_MESH] = SC_DIM_MESH,
        [HW_BRIDGE_PCIE] = SC_DIM_FULL, [HW_FABRIC_UNKNOWN] = SC_DIM_SWITCH};
    const sc_device *dev = hw->device;
    bool on_host = s->fabric == HW_PCIE_TREE || s->fabric == HW_NONE;
    double bw = s->bandwidth > 0 ? s->bandwidth
                : on_host        ? dev->host_bw
                                 : dev->link_bw;
    SC_TRY(check_fabric(s, bw, err));
    if (bw <= 0) bw = dev->host_bw; /* one device: it has no neighbours */
    sc_dim d = {.kind = kinds[s->fabric],
                .size = (uint32_t)s->devices_per_node,
                .bw = bw,
                .latency_s = s->fabric_latency,
                .oversub = 1,
                .rails = 1,
                .multicast = s->multicast};
    if (d.size == 1) {
        d.kind = SC_DIM_SWITCH;
        return hw_add_dim(hw, &d, hw_spec_pos(s, "devices_per_node"), err);
    }
    switch (s->fabric) {
    case HW_TORUS:
    case HW_MESH: return shape_dims(s, d, hw, err);
    case HW_BRIDGE_PCIE: return bridge_dims(s, d, hw, err);
    case HW_NVLINK_MESH: SC_TRY(mesh_dim(s, dev->links, &d, err)); break;
    default: break;
    }
    return hw_add_dim(hw, &d, hw_spec_pos(s, "devices_per_node"), err);
}
