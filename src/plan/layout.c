/* SPDX-License-Identifier: Apache-2.0 */
/* layout.c - layouts on mesh axes and the collectives between them. */
#include "plan/plan_internal.h"

const char *const sc_axis_names[] = {"pp", "dp", "ep", "cp", "tp", "rep", NULL};

const sc_axis plan_inner_first[SC_N_AX] = {SC_AX_TP, SC_AX_CP,  SC_AX_EP,
                                           SC_AX_DP, SC_AX_REP, SC_AX_PP};

sc_axlist sc_axlist_add(sc_axlist list, sc_axis ax)
{
    uint32_t shift = 0;
    while (list >> shift & 15) shift += 4;
    return list | ((uint32_t)ax + 1) << shift;
}

uint32_t sc_axlist_mask(sc_axlist list)
{
    uint32_t mask = 0;
    for (; list; list >>= 4) mask |= 1u << ((list & 15) - 1);
    return mask;
}

static uint32_t real_axes(uint32_t mask, const uint32_t size[SC_N_AX])
{
    uint32_t out = 0;
    for (uint32_t ax = 0; ax < SC_N_AX; ax++)
        if (mask >> ax & 1 && size[ax] > 1) out |= 1u << ax;
    return out;
}

double sc_layout_fraction(const sc_layout *l, uint32_t dims,
                          const uint32_t size[SC_N_AX])
{
    double f = 1;
    for (uint32_t d = 0; d < SC_N_DIMNAMES; d++) {
        if (!(dims >> d & 1)) continue;
        for (uint32_t list = l->shard[d]; list; list >>= 4)
            f /= size[(list & 15) - 1];
    }
    return f;
}

/* Where axis `ax` shards `l`; SC_N_DIMNAMES if nowhere. */
static sc_dimname dim_of(const sc_layout *l, uint32_t ax)
{
    for (uint32_t d = 0; d < SC_N_DIMNAMES; d++)
        if (sc_axlist_mask(l->shard[d]) >> ax & 1) return (sc_dimname)d;
    return SC_N_DIMNAMES;
}

static bool classify(const sc_layout *from, const sc_layout *to, uint32_t ax,
                     sc_move *m)
{
    sc_dimname a = dim_of(from, ax), b = dim_of(to, ax);
    bool partial = from->partial >> ax & 1 && !(to->partial >> ax & 1);
    m->dim = SC_N_DIMNAMES;
    if (partial && b == SC_N_DIMNAMES) {
        m->coll = SC_ALL_REDUCE;
    } else if (partial) {
        m->coll = SC_REDUCE_SCATTER;
        m->dim = b;
    } else if (a != SC_N_DIMNAMES && b == SC_N_DIMNAMES) {
        m->coll = SC_ALL_GATHER;
        m->dim = a;
    } else if (a != b && a != SC_N_DIMNAMES) {
        m->coll = SC_ALL_TO_ALL;
        m->dim = b;
    } else {
        return false; /* equal, or a slice of what is replicated */
    }
    return true;
}

static double total_fraction(const sc_layout *l, const uint32_t size[SC_N_AX])
{
    return sc_layout_fraction(l, (1u << SC_N_DIMNAMES) - 1, size);
}

/* Parts that reductions over axes inside of `ax` have left a tensor in: an
 * all-reduce over an outer axis moves one of them (HSDP). */
static double scattered_inside(const sc_layout *from, const sc_layout *to,
                               const uint32_t size[SC_N_AX], uint32_t ax)
{
    double parts = 1;
    for (uint32_t i = 0; plan_inner_first[i] != ax; i++) {
        sc_move m;
        uint32_t in = plan_inner_first[i];
        if (size[in] > 1 && classify(from, to, in, &m) &&
            m.coll == SC_REDUCE_SCATTER)
            parts *= size[in];
    }
    return parts;
}

/* Of one kind, and of one size where they are reductions. */
static bool one_communicator(const sc_move *a, const sc_move *b)
{
    if (a->coll != b->coll) return false;
    if (a->coll == SC_ALL_REDUCE) return a->fraction == b->fraction;
    return a->dim == b->dim || a->coll == SC_ALL_TO_ALL;
}

uint32_t sc_layout_moves(const sc_layout *from, const sc_layout *to,
                         const uint32_t size[SC_N_AX], sc_move out[SC_MOVES])
{
    uint32_t n = 0;
    for (uint32_t ax = 0; ax < SC_N_AX; ax++) {
        sc_move m;
        if (size[ax] <= 1 || !classify(from, to, ax, &m)) continue;
        /* V is what a rank holds before a reduction or an exchange, and after
         * a gather. */
        m.axes = 1u << ax;
        m.fraction = total_fraction(from, size);
        if (m.coll == SC_ALL_GATHER) m.fraction *= size[ax];
        if (m.coll == SC_ALL_REDUCE)
            m.fraction /= scattered_inside(from, to, size, ax);
        uint32_t same = 0;
        while (same < n && !one_communicator(&out[same], &m)) same++;
        if (same < n) { /* one communicator over several axes */
            out[same].axes |= m.axes;
            if (m.coll == SC_ALL_GATHER) out[same].fraction *= size[ax];
        } else if (n < SC_MOVES) {
            out[n++] = m;
        }
    }
    for (uint32_t i = 0; i < n; i++) out[i].axes = real_axes(out[i].axes, size);
    return n;
}
