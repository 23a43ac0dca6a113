/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place.c - where the members of a communicator are.
 *
 * If the axes of a group align with the dimensions, the place follows from
 * them. Otherwise the members of each node in each sibling group are
 * counted.
 */
#include "base/util.h"
#include "hw/hw.h"

#define MAX_AXES 16
#define MAX_WORK ((uint64_t)1 << 22) /* limit on the members that are counted */

typedef struct axis {
    uint64_t size, stride;
} axis;

/* Sorts the axes of more than one member by stride; false if they overlap. */
static bool sort_axes(uint32_t n, const uint32_t *size, const uint32_t *stride,
                      axis *out, uint32_t *n_out)
{
    uint32_t k = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (size[i] < 2) continue;
        if (k == MAX_AXES || stride[i] == 0) return false;
        uint32_t j = k++;
        for (; j > 0 && out[j - 1].stride > stride[i]; j--) out[j] = out[j - 1];
        out[j] = (axis){size[i], stride[i]};
    }
    *n_out = k;
    for (uint32_t i = 1; i < k; i++)
        if (out[i].stride % (out[i - 1].size * out[i - 1].stride) != 0)
            return false;
    return true;
}

/* Adds one axis to the dimensions it runs along; false if it does not align. */
static bool lay_axis(const sc_hw *hw, axis x, uint32_t *dim_n)
{
    uint64_t inner = 1, left = x.size, stride = x.stride;
    for (uint32_t d = 0; d < hw->n_dims && left > 1; d++) {
        uint64_t size = hw->dim[d].size, outer = inner * size;
        if (stride < outer) {
            if (stride % inner != 0) return false;
            uint64_t step = stride / inner;
            if (size % step != 0) return false;
            uint64_t room = size / step;
            uint64_t take = left < room ? left : room;
            if (room % take != 0 || left % take != 0) return false;
            dim_n[d] *= (uint32_t)take;
            left /= take;
            stride = outer;
        }
        inner = outer;
    }
    return left == 1;
}

/* The largest number that divides the number of members on every node, for the
 * group that starts at `base`. The axes are nested, so members are in ascending
 * order. */
static uint64_t share_of(const axis *x, uint32_t k, uint64_t n, uint64_t base,
                         uint64_t node_size, uint64_t share)
{
    uint64_t digit[MAX_AXES] = {0}, at = base, run = 0, node = base / node_size;
    for (uint64_t i = 0; i < n && share != 1; i++) {
        if (at / node_size != node) {
            share = sc_gcd(share, run);
            node = at / node_size;
            run = 0;
        }
        run++;
        for (uint32_t d = 0; d < k; d++) {
            at += x[d].stride;
            if (++digit[d] < x[d].size) break;
            at -= digit[d] * x[d].stride;
            digit[d] = 0;
        }
    }
    return sc_gcd(share, run);
}

/* The first members of the sibling groups, from the digits that no axis covers.
 * The members per node repeat with lcm(block, node_size), so one period is
 * counted. */
static uint64_t share_of_all(const axis *x, uint32_t k, uint64_t n,
                             uint64_t node_size, uint64_t n_devices)
{
    uint64_t block = x[k - 1].size * x[k - 1].stride;
    uint64_t period = node_size / sc_gcd(block, node_size);
    uint64_t siblings = block / n, share = 0;
    uint64_t blocks = n_devices / block;
    if (blocks == 0) blocks = 1; /* the caller's machine is larger: one block */
    if (blocks > period) blocks = period;
    if (siblings > MAX_WORK || blocks > MAX_WORK || n > MAX_WORK ||
        siblings * blocks > MAX_WORK || siblings * blocks * n > MAX_WORK)
        return 1;
    for (uint64_t b = 0; b < blocks; b++)
        for (uint64_t s = 0; s < siblings && share != 1; s++) {
            uint64_t base = b * block, rest = s, covered = 1;
            for (uint32_t d = 0; d < k; d++) {
                uint64_t gap = x[d].stride / covered;
                base += rest % gap * covered;
                rest /= gap;
                covered = x[d].stride * x[d].size;
            }
            share = share_of(x, k, n, base, node_size, share);
        }
    return share == 0 ? 1 : share;
}

/* The place of a counted group with `m` members in each node. A price needs no
 * more than the outermost dimension of the node and the network. */
static void lay_counted(const sc_hw *hw, uint64_t m, sc_place *p)
{
    uint32_t last = hw->n_dims - 1;
    bool net = hw->dim[last].ports > 0;
    p->m = net ? (uint32_t)m : p->n;
    p->nodes = p->n / p->m;
    for (uint32_t d = 0; d < SC_HW_DIMS; d++) p->dim_n[d] = 1;
    if (!net || last == 0) {
        p->dim_n[last] = p->n;
        return;
    }
    p->dim_n[last] = p->nodes;
    p->dim_n[last - 1] = p->m;
}

static void count_place(const sc_hw *hw, const axis *x, uint32_t k, bool nested,
                        sc_place *p)
{
    bool net = hw->dim[hw->n_dims - 1].ports > 0;
    uint64_t m = 1;
    if (net && nested)
        m = share_of_all(x, k, p->n, hw->node_size, hw->n_devices);
    lay_counted(hw, m, p);
}

/* Two members of a node are `distance` devices apart. */
static void come_near(sc_place *p, uint64_t distance)
{
    if (p->apart == 0 || distance < p->apart) p->apart = (uint32_t)distance;
}

sc_place sc_hw_place_ranks(const sc_hw *hw, uint32_t n, const uint32_t *rank)
{
    sc_place p = {.n = n, .m = 1, .nodes = 1, .peers = 1};
    uint64_t share = 0, run = 0;
    sc_assert(n > 0);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t reach =
            i > 0 ? rank[i] / hw->node_size - rank[i - 1] / hw->node_size : 0;
        if (reach > 0 && (p.reach == 0 || reach < p.reach)) p.reach = reach;
        if (reach > 0) {
            share = sc_gcd(share, run);
            run = 0;
        }
        if (run > 0) come_near(&p, rank[i] - rank[i - 1]);
        run++;
    }
    lay_counted(hw, sc_gcd(share, run), &p);
    return p;
}

/* ---- some members of every group along an axis ---------------------------- */

/* The outermost dimension along which two devices differ. */
static uint32_t dim_between(const sc_hw *hw, uint64_t a, uint64_t b)
{
    uint32_t last = 0;
    uint64_t inner = 1;
    for (uint32_t d = 0; d < hw->n_dims; d++) {
        uint64_t size = hw->dim[d].size;
        bool top = d + 1 == hw->n_dims;
        uint64_t x = top ? a / inner : a / inner % size;
        uint64_t y = top ? b / inner : b / inner % size;
        if (x != y) last = d;
        inner *= size;
    }
    return last;
}

/* Facts that hold for all groups seen so far. */
typedef struct worst {
    uint64_t share;    /* divides the number of members that a group has on any
                          node */
    uint32_t dim;      /* the outermost dimension between two neighbours */
    bool leaves;       /* a group is on several nodes */
    uint32_t reach;    /* the most nodes from one member's to the next one's */
    uint32_t *sharing; /* [nodes] number of groups that leave the node */
} worst;

static void look_at(const sc_hw *hw, uint64_t base, uint64_t stride, uint32_t n,
                    const uint32_t *at, worst *w)
{
    uint64_t node_size = hw->node_size, run = 0;
    bool leaves = false;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t here = base + at[i] * stride, node = here / node_size;
        uint64_t before = i ? base + at[i - 1] * stride : here;
        uint32_t dim = dim_between(hw, before, here);
        if (dim > w->dim) w->dim = dim;
        if (before / node_size != node) {
            uint64_t last = before / node_size;
            uint32_t reach =
                (uint32_t)(node > last ? node - last : last - node);
            if (reach > w->reach) w->reach = reach;
            w->share = sc_gcd(w->share, run);
            run = 0;
            leaves = true;
        }
        run++;
    }
    w->share = sc_gcd(w->share, run);
    w->leaves |= leaves;
    for (uint32_t i = 0; leaves && w->sharing && i < n; i++) {
        uint64_t node = (base + at[i] * stride) / node_size;
        bool again = i && (base + at[i - 1] * stride) / node_size == node;
        if (!again) w->sharing[node]++;
    }
}

/* Looks at groups until their pattern on the nodes repeats. */
static void look_at_all(const sc_hw *hw, uint64_t block, uint32_t stride,
                        uint32_t n, const uint32_t *at, worst *w)
{
    uint64_t blocks = hw->node_size / sc_gcd(block, hw->node_size);
    uint64_t there = hw->n_devices / block;
    if (blocks > there) blocks = there ? there : 1;
    for (uint64_t b = 0; b < blocks; b++)
        for (uint64_t i = 0; i < stride; i++)
            look_at(hw, b * block + i, stride, n, at, w);
}

sc_place sc_hw_place_axis(const sc_hw *hw, uint32_t size, uint32_t stride,
                          uint32_t n, const uint32_t *at)
{
    enum { MOST = 1024 };

    uint32_t sharing[MOST] = {0}, last = hw->n_dims - 1;
    uint64_t block = (uint64_t)size * stride;
    bool net = hw->dim[last].ports > 0 && hw->n_devices > hw->node_size;
    sc_place p = {.n = n, .m = n, .nodes = 1, .peers = 1};
    worst w = {0};
    for (uint32_t d = 0; d < SC_HW_DIMS; d++) p.dim_n[d] = 1;
    /* Two members of a group are then never on the same node. */
    bool apart = stride % hw->node_size == 0;
    if (!apart && block / sc_gcd(block, hw->node_size) <= MOST)
        w.sharing = sharing;
    if (apart)
        look_at(hw, 0, stride, n, at, &w);
    else
        look_at_all(hw, block, stride, n, at, &w);
    if (!net || !w.leaves) {
        p.dim_n[w.dim] = n;
        p.peers = hw->node_size > n ? (hw->node_size + n - 1) / n : 1;
        return p;
    }
    p.m = (uint32_t)w.share;
    p.reach = w.reach;
    for (uint32_t i = 1; i < n && p.m > 1; i++)
        come_near(&p, (uint64_t)stride * (at[i] - at[i - 1]));
    p.nodes = n / p.m;
    p.dim_n[w.dim] = p.nodes;
    if (p.m > 1 && w.dim > 0) p.dim_n[w.dim - 1] = p.m;
    p.peers = (hw->node_size + p.m - 1) / p.m;
    if (!w.sharing) return p;
    p.peers = 1;
    for (uint32_t i = 0; i < MOST; i++)
        if (sharing[i] > p.peers) p.peers = sharing[i];
    return p;
}

sc_place sc_hw_place(const sc_hw *hw, uint32_t n_axes, const uint32_t *size,
                     const uint32_t *stride)
{
    sc_place p = {.n = 1, .m = 1, .nodes = 1, .peers = 1};
    axis x[MAX_AXES];
    uint32_t k = 0;
    for (uint32_t i = 0; i < n_axes; i++)
        if (size[i] > 1) p.n *= size[i];
    for (uint32_t d = 0; d < SC_HW_DIMS; d++) p.dim_n[d] = 1;
    bool nested = sort_axes(n_axes, size, stride, x, &k), aligned = nested;
    for (uint32_t i = 0; i < k && aligned; i++)
        aligned = lay_axis(hw, x[i], p.dim_n);
    for (uint32_t d = 0; d < hw->n_dims && aligned; d++)
        aligned = p.dim_n[d] <= hw->dim[d].size;
    if (aligned) {
        uint32_t last = hw->n_dims - 1;
        p.nodes = hw->dim[last].ports > 0 ? p.dim_n[last] : 1;
        p.m = p.n / p.nodes;
    } else {
        count_place(hw, x, k, nested, &p);
    }
    if (p.m > 1 && k > 0) come_near(&p, x[0].stride);
    for (uint32_t i = 0; i < k && p.nodes > 1 && p.reach == 0; i++)
        if ((uint64_t)x[i].stride * x[i].size > hw->node_size)
            p.reach = (uint32_t)(x[i].stride / hw->node_size);
    p.peers = (hw->node_size + p.m - 1) / p.m;
    return p;
}
