/* SPDX-License-Identifier: Apache-2.0 */
/* layout.c - layouts on mesh axes and the collectives between them. */
#include "plan/layout.h"

#include "plan/internal.h"

#include <string.h>

const sc_axis plan_inner_first[SC_N_AX] = {SC_AX_TP, SC_AX_CP,  SC_AX_EP,
                                           SC_AX_DP, SC_AX_REP, SC_AX_PP};

bool layout_equal(const layout *a, const layout *b)
{
    return a->partial == b->partial && a->at == b->at &&
           memcmp(a->shard, b->shard, sizeof a->shard) == 0;
}

double layout_fraction(const layout *l, uint32_t dims, const layout_mesh *mesh)
{
    double f = 1;
    for (uint32_t d = 0; d < LAYOUT_DIMS; d++) {
        if (!(dims >> d & 1)) continue;
        for (sc_axes list = l->shard[d]; list; list >>= 4)
            f /= mesh->size[(list & 15) - 1];
    }
    return f;
}

uint32_t layout_dim_of(const layout *l, uint32_t ax)
{
    for (uint32_t d = 0; d < LAYOUT_DIMS; d++)
        if (sc_axes_mask(l->shard[d]) >> ax & 1) return d;
    return LAYOUT_DIMS;
}

static bool classify(const layout *from, const layout *to, uint32_t ax,
                     layout_move *m)
{
    uint32_t a = layout_dim_of(from, ax), b = layout_dim_of(to, ax);
    bool partial = from->partial >> ax & 1 && !(to->partial >> ax & 1);
    m->dim = m->moved = LAYOUT_DIMS;
    if (partial && b == LAYOUT_DIMS) {
        m->coll = SC_ALL_REDUCE;
    } else if (partial) {
        m->coll = SC_REDUCE_SCATTER;
        m->dim = b;
    } else if (a != LAYOUT_DIMS && b == LAYOUT_DIMS) {
        m->coll = SC_ALL_GATHER;
        m->dim = a;
    } else if (a != b && a != LAYOUT_DIMS) {
        m->coll = SC_ALL_TO_ALL;
        m->dim = b;
        m->moved = a;
    } else {
        return false; /* equal, or each rank takes a slice of a replica */
    }
    return true;
}

/* Number of parts into which reduce-scatters over axes inside of `ax` split a
 * tensor.  An all-reduce over an outer axis moves one of the parts (HSDP). */
static double scattered_inside(const layout *from, const layout *to,
                               const layout_mesh *mesh, uint32_t ax)
{
    double parts = 1;
    for (uint32_t i = 0; mesh->inner_first[i] != ax; i++) {
        layout_move m;
        uint32_t in = mesh->inner_first[i];
        if (mesh->size[in] > 1 && classify(from, to, in, &m) &&
            m.coll == SC_REDUCE_SCATTER)
            parts *= mesh->size[in];
    }
    return parts;
}

/* Whether one collective over the axes of both moves can replace them: they are
 * of the same kind, and reductions have the same size. */
static bool one_communicator(const layout_move *a, const layout_move *b)
{
    if (a->coll != b->coll) return false;
    if (a->coll == SC_ALL_REDUCE) return a->fraction == b->fraction;
    return a->dim == b->dim || a->coll == SC_ALL_TO_ALL;
}

/* Axes that split a dim in both layouts, but in a different order, so that
 * blocks move between ranks. */
static uint32_t reordered(sc_axes from, sc_axes to, const layout_mesh *mesh)
{
    uint32_t both = sc_axes_mask(from) & sc_axes_mask(to), moved = 0;
    for (;;) {
        uint32_t a = SC_MESH_AXES, b = SC_MESH_AXES;
        for (; from && a == SC_MESH_AXES; from >>= 4) {
            uint32_t ax = (uint32_t)(from & 15) - 1;
            if (both >> ax & 1 && mesh->size[ax] > 1) a = ax;
        }
        for (; to && b == SC_MESH_AXES; to >>= 4) {
            uint32_t ax = (uint32_t)(to & 15) - 1;
            if (both >> ax & 1 && mesh->size[ax] > 1) b = ax;
        }
        if (a == SC_MESH_AXES || b == SC_MESH_AXES) return moved;
        if (a != b) moved |= 1u << a | 1u << b;
    }
}

uint32_t layout_moves(const layout *from, const layout *to,
                      const layout_mesh *mesh, layout_move *out)
{
    uint32_t n = 0;
    if ((from->partial & ~to->partial) == 0 &&
        memcmp(from->shard, to->shard, sizeof from->shard) == 0)
        return 0;
    double held = layout_fraction(from, (1u << LAYOUT_DIMS) - 1, mesh);
    for (uint32_t ax = 0; ax < mesh->n_axes; ax++) {
        layout_move m;
        if (mesh->size[ax] <= 1 || !classify(from, to, ax, &m)) continue;
        /* V is the size on a rank before a reduction or an all-to-all, and
         * after a gather. */
        m.axes = 1u << ax;
        m.fraction = held;
        if (m.coll == SC_ALL_GATHER) m.fraction *= mesh->size[ax];
        if (m.coll == SC_ALL_REDUCE)
            m.fraction /= scattered_inside(from, to, mesh, ax);
        uint32_t same = 0;
        while (same < n && !one_communicator(&out[same], &m)) same++;
        if (same < n) { /* one communicator over several axes */
            out[same].axes |= m.axes;
            if (m.coll == SC_ALL_GATHER) out[same].fraction *= mesh->size[ax];
        } else {
            out[n++] = m;
        }
    }
    for (uint32_t d = 0; d < LAYOUT_DIMS && n < SC_MESH_AXES; d++) {
        uint32_t axes = reordered(from->shard[d], to->shard[d], mesh);
        if (axes) out[n++] = (layout_move){SC_ALL_TO_ALL, axes, d, d, held};
    }
    return n;
}

/* Whether `a` comes before `b`. */
static bool earlier(const layout_move *a, const layout_move *b)
{
    static const int rank[SC_N_COLLS] = {[SC_ALL_REDUCE] = 0,
                                         [SC_REDUCE_SCATTER] = 0,
                                         [SC_ALL_TO_ALL] = 1,
                                         [SC_ALL_GATHER] = 2};
    if (rank[a->coll] != rank[b->coll]) return rank[a->coll] < rank[b->coll];
    if (rank[a->coll] > 0) return false;
    if (a->fraction != b->fraction) return a->fraction > b->fraction;
    return a->coll == SC_ALL_REDUCE && b->coll != SC_ALL_REDUCE;
}

uint32_t layout_sequence(const layout *from, const layout *to,
                         const layout_mesh *mesh, layout_move *out)
{
    uint32_t n = layout_moves(from, to, mesh, out);
    for (uint32_t i = 1; i < n; i++)
        for (uint32_t k = i; k > 0 && earlier(&out[k], &out[k - 1]); k--) {
            layout_move t = out[k];
            out[k] = out[k - 1];
            out[k - 1] = t;
        }
    layout now = *from; /* V of a move follows from the moves before it */
    for (uint32_t i = 0; i < n; i++) {
        double held = layout_fraction(&now, (1u << LAYOUT_DIMS) - 1, mesh);
        layout_move_on(&now, to, &out[i]);
        double after = layout_fraction(&now, (1u << LAYOUT_DIMS) - 1, mesh);
        out[i].fraction = out[i].coll == SC_ALL_GATHER ? after : held;
    }
    return n;
}

void layout_move_on(layout *l, const layout *to, const layout_move *m)
{
    for (uint32_t d = 0; d < LAYOUT_DIMS; d++) {
        sc_axes rest = 0;
        for (sc_axes list = l->shard[d]; list; list >>= 4)
            if (!(m->axes >> ((list & 15) - 1) & 1))
                rest = sc_axes_add(rest, (uint32_t)(list & 15) - 1);
        for (sc_axes list = to->shard[d]; list; list >>= 4)
            if (m->axes >> ((list & 15) - 1) & 1)
                rest = sc_axes_add(rest, (uint32_t)(list & 15) - 1);
        l->shard[d] = rest;
    }
    l->partial &= ~m->axes;
}
