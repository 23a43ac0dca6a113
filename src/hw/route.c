/* SPDX-License-Identifier: Apache-2.0 */
/* route.c - the route from one device to another, by rule. Dimensions are
 * corrected one after another, innermost first. With rails, a message first
 * moves to the device of its node that is on the rail of the destination.
 * Without rails it leaves through its own NIC and arrives through the
 * destination's. */
#include "hw/hw_link.h"
#include "hw/hw_wiring.h"

typedef struct route {
    uint64_t *links;
    uint32_t n, cap;
    uint64_t random; /* state that picks among equal paths */
} route;

static void add(route *r, uint64_t link)
{
    if (r->n < r->cap) r->links[r->n] = link;
    r->n++;
}

static void ring_route(route *r, const hw_axis *x, uint64_t dev, uint64_t from,
                       uint64_t to)
{
    uint64_t n = x->size, forward = (to + n - from) % n;
    bool back = 2 * forward > n ||
                (2 * forward == n && sc_random_below(&r->random, 2) == 1);
    uint64_t rest = dev - from * x->inner;
    for (uint64_t c = from; c != to; c = (c + (back ? n - 1 : 1)) % n)
        add(r, x->base + 2 * (rest + c * x->inner) + back);
}

static void mesh_route(route *r, const hw_axis *x, uint64_t dev, uint64_t from,
                       uint64_t to)
{
    uint64_t n = x->size - 1;
    uint64_t instance = dev / (x->inner * x->size) * x->inner + dev % x->inner;
    for (uint64_t c = from; c < to; c++) add(r, x->base + 2 * instance * n + c);
    for (uint64_t c = from; c > to; c--)
        add(r, x->base + (2 * instance + 1) * n + c - 1);
}

static void tree_route(route *r, const sc_hw *hw, const hw_axis *x,
                       uint64_t dev, uint64_t from, uint64_t to)
{
    uint64_t b = (x->size + HW_BRIDGE - 1) / HW_BRIDGE;
    uint64_t here = from / HW_BRIDGE, there = to / HW_BRIDGE;
    uint64_t instance = dev / (x->inner * x->size) * x->inner + dev % x->inner;
    add(r, x->base + 2 * dev);
    if (here != there)
        add(r, x->base + 2 * (uint64_t)hw->n_devices + instance * b * (b - 1) +
                   here * (b - 1) + there - (there > here));
    add(r, x->base + 2 * (dev - from * x->inner + to * x->inner) + 1);
}

/* Takes one NVLink if there is one, otherwise two with the greatest width. */
static void cube_route(route *r, const hw_axis *x, uint64_t dev, uint32_t from,
                       uint32_t to)
{
    uint64_t rest = dev - from * x->inner;
    int edge = hw_cube_edge(from, to);
    if (edge >= 0) {
        add(r, x->base + HW_CUBE_DEGREE * dev + (uint64_t)edge);
        return;
    }
    int first[HW_CUBE_DEGREE], second[HW_CUBE_DEGREE], width = 0;
    uint64_t n = 0;
    for (int k = 0; k < HW_CUBE_DEGREE; k++) {
        int on = hw_cube_edge(hw_cube[from][k].to, to);
        if (on < 0) continue;
        int a = hw_cube[from][k].count;
        int b = hw_cube[hw_cube[from][k].to][on].count;
        int w = a < b ? a : b;
        if (w > width) n = 0;
        if (w < width) continue;
        width = w;
        first[n] = k;
        second[n++] = on;
    }
    uint64_t i = sc_random_below(&r->random, n);
    uint64_t via = rest + hw_cube[from][first[i]].to * x->inner;
    add(r, x->base + HW_CUBE_DEGREE * dev + (uint64_t)first[i]);
    add(r, x->base + HW_CUBE_DEGREE * via + (uint64_t)second[i]);
}

static void inner_route(route *r, const sc_hw *hw, uint32_t dim,
                        const hw_axis *x, uint64_t dev, uint64_t to)
{
    uint64_t from = dev / x->inner % x->size;
    switch (hw->dim[dim].kind) {
    case SC_DIM_SWITCH:
        add(r, x->base + 2 * dev);
        add(r, x->base + 2 * (dev - from * x->inner + to * x->inner) + 1);
        return;
    case SC_DIM_FULL:
        add(r, x->base + dev * (x->size - 1) + to - (to > from));
        return;
    case SC_DIM_RING: ring_route(r, x, dev, from, to); return;
    case SC_DIM_MESH: mesh_route(r, x, dev, from, to); return;
    case SC_DIM_TREE: tree_route(r, hw, x, dev, from, to); return;
    case SC_DIM_CUBE:
        cube_route(r, x, dev, (uint32_t)from, (uint32_t)to);
        return;
    }
}

/* One of a device's NICs, by the present random state: with rails both ends
 * choose the same. */
static uint64_t pick_nic(const hw_net *t, uint64_t n, uint64_t local,
                         uint64_t state)
{
    uint64_t count, first = hw_net_nic(t, n, local, &count);
    return count > 1 ? first + sc_random(&state) % count : first;
}

static void local_hop(route *r, const hw_net *t, uint64_t base, uint64_t from,
                      uint64_t to)
{
    uint64_t n = t->switches, other = to % n - (to > from);
    if (from != to) add(r, base + t->spine_base + from * (n - 1) + other);
}

/* A minimal route has at most one hop in each group, and one between groups. */
static void dragonfly_route(route *r, const hw_net *t, uint64_t base,
                            uint64_t from, uint64_t to)
{
    uint64_t n = t->switches, here = from / n, there = to / n;
    if (here == there) {
        local_hop(r, t, base, from, to);
        return;
    }
    uint64_t exit = sc_random_below(&r->random, n);
    uint64_t pair = here * (t->flies - 1) + there - (there > here);
    local_hop(r, t, base, from, here * n + exit);
    add(r, base + t->global_base + pair * n + exit);
    local_hop(r, t, base, there * n + exit, to);
}

/* The link from a spine of a pod up to a core; the link down is the next id. */
static uint64_t core_link(const hw_net *t, uint64_t pod, uint64_t rail,
                          uint64_t spine, uint64_t core)
{
    uint64_t plane = pod * t->rails + rail;
    return t->core_base + 2 * ((plane * t->spines + spine) * t->cores + core);
}

static void net_route(route *r, const hw_net *t, uint64_t base, uint64_t src,
                      uint64_t dst)
{
    uint64_t a = src / t->node_size, b = dst / t->node_size;
    uint64_t state = r->random;
    bool alike = t->hw->n_groups == 0;
    hw_nics here = alike ? hw_equal_nics(t, a) : hw_net_nics(t, a);
    hw_nics there = alike ? hw_equal_nics(t, b) : hw_net_nics(t, b);
    uint64_t up = pick_nic(t, here.n, src % t->node_size, state);
    uint64_t down = pick_nic(t, there.n, dst % t->node_size, state);
    if (here.n < t->node_size) add(r, base + 2 * src);
    add(r, base + t->nic_base + 2 * (here.first + up));
    uint64_t from = a / t->leaf * t->rails + up * t->rails / here.n;
    uint64_t to = b / t->leaf * t->rails + down * t->rails / there.n;
    if (t->flies > 0 || a / t->leaf != b / t->leaf) (void)sc_random(&r->random);
    if (t->flies > 0) {
        dragonfly_route(r, t, base, from, to);
    } else if (a / t->leaf != b / t->leaf) {
        uint64_t spine = sc_random_below(&r->random, t->spines);
        add(r, base + t->spine_base + 2 * (from * t->spines + spine));
        if (a / t->pod != b / t->pod) {
            uint64_t core = sc_random_below(&r->random, t->cores);
            add(r,
                base + core_link(t, a / t->pod, from % t->rails, spine, core));
            add(r, base + core_link(t, b / t->pod, to % t->rails, spine, core) +
                       1);
        }
        add(r, base + t->spine_base + 2 * (to * t->spines + spine) + 1);
    }
    add(r, base + t->nic_base + 2 * (there.first + down) + 1);
    if (there.n < t->node_size) add(r, base + 2 * dst + 1);
}

uint32_t hw_route(const hw_map *map, uint32_t src, uint32_t dst, uint64_t seed,
                  uint64_t *links, uint32_t cap)
{
    const sc_hw *hw = map->hw;
    if (hw->wiring != NULL)
        return sc_wiring_route(hw->wiring, src, dst, seed, links, cap);
    route r = {.cap = cap, .random = seed ^ ((uint64_t)src << 32 | dst)};
    r.links = links;
    uint32_t last = hw->n_dims - 1;
    bool net = hw->dim[last].ports > 0;
    bool leaves = net && src / hw->node_size != dst / hw->node_size;
    uint64_t at = src;
    for (uint32_t d = leaves && hw->dim[last].rails == 1 ? last : 0; d <= last;
         d++) {
        const hw_axis *x = &map->axis[d];
        uint64_t from = at / x->inner % x->size, to = dst / x->inner % x->size;
        if (from == to) continue;
        if (net && d == last) {
            net_route(&r, &map->net, x->base, at, dst);
            break;
        }
        inner_route(&r, hw, d, x, at, to);
        at = at - from * x->inner + to * x->inner;
    }
    return r.n;
}

uint32_t sc_hw_route(const sc_hw *hw, uint32_t src, uint32_t dst, uint64_t seed,
                     uint64_t *links, uint32_t cap)
{
    hw_map map = hw_map_of(hw);
    return hw_route(&map, src, dst, seed, links, cap);
}
