/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Moves between random layouts against a tiny tensor held element by element:
 * who has what, who needs what, who could give it.
 */
#include <stepcast/plan.h>

#include "property.h"
#include "unit.h"

#include <math.h>
#include <string.h>

#define DIMS 2
#define AXES SC_N_AX

static const sc_dimname dims[DIMS] = {SC_D_SEQ, SC_D_HEAD};

typedef struct world {
    uint32_t size[SC_N_AX], extent, ranks;
    sc_layout from, to;
} world;

/* What an axis does in a layout: dims[role] from 0 on. */
enum { NOTHING = -2, SUM = -1 };

static uint32_t real(const world *w, uint32_t mask)
{
    uint32_t out = 0;
    for (uint32_t ax = 0; ax < AXES; ax++)
        if (mask >> ax & 1 && w->size[ax] > 1) out |= 1u << ax;
    return out;
}

/* An axis leaves the inner end of a dim's list and joins at the inner end:
 * blocks are then cut or put together, never renumbered. */
static void draw(prop *p, world *w)
{
    bool open[DIMS] = {true, true};
    int was[AXES], is[AXES];
    memset(w, 0, sizeof *w);
    for (uint32_t ax = 0; ax < SC_N_AX; ax++) w->size[ax] = 1;
    w->extent = w->ranks = 1;
    for (uint32_t ax = 0; ax < AXES; ax++) {
        w->size[ax] = 1 + (uint32_t)prop_below(p, w->extent > 16  ? 1
                                                  : w->extent > 6 ? 2
                                                                  : 3);
        w->extent *= w->size[ax];
        was[ax] = (int)prop_below(p, 2 + DIMS) + NOTHING;
        is[ax] = (int)prop_below(p, 2 + DIMS) + NOTHING;
        if (is[ax] == SUM && was[ax] != SUM) is[ax] = NOTHING;
    }
    w->ranks = w->extent;
    for (uint32_t ax = 0; ax < AXES; ax++) {
        int d = was[ax];
        if (d == SUM) w->from.partial |= 1u << ax;
        if (d < 0) continue;
        sc_axlist *list = &w->from.shard[dims[d]];
        *list = sc_axlist_add(*list, (sc_axis)ax);
        open[d] = open[d] && is[ax] == d;
        if (open[d])
            w->to.shard[dims[d]] =
                sc_axlist_add(w->to.shard[dims[d]], (sc_axis)ax);
        else if (is[ax] == d)
            is[ax] = NOTHING;
    }
    for (uint32_t ax = 0; ax < AXES; ax++) {
        int d = is[ax];
        if (d == SUM) w->to.partial |= 1u << ax;
        if (d < 0 || d == was[ax]) continue;
        sc_axlist *list = &w->to.shard[dims[d]];
        *list = sc_axlist_add(*list, (sc_axis)ax);
    }
}

static uint32_t coord(const world *w, uint32_t rank, uint32_t ax)
{
    for (uint32_t i = 0; i < ax; i++) rank /= w->size[i];
    return rank % w->size[ax];
}

/* Rank holds element i of a dim: its block under the list, outermost first. */
static bool holds(const world *w, const sc_layout *l, uint32_t rank, uint32_t d,
                  uint32_t i)
{
    uint32_t width = w->extent;
    for (sc_axlist list = l->shard[dims[d]]; list; list >>= 4) {
        uint32_t ax = (list & 15) - 1;
        width /= w->size[ax];
        if (i / width % w->size[ax] != coord(w, rank, ax)) return false;
    }
    return true;
}

static bool has(const world *w, const sc_layout *l, uint32_t rank, uint32_t e)
{
    return holds(w, l, rank, 0, e / w->extent) &&
           holds(w, l, rank, 1, e % w->extent);
}

/* Some rank of the communicator of `rank` over `axes` has element e. */
static bool group_has(const world *w, uint32_t axes, uint32_t rank, uint32_t e)
{
    for (uint32_t r = 0; r < w->ranks; r++) {
        bool member = true;
        for (uint32_t ax = 0; ax < AXES; ax++)
            member = member &&
                     (axes >> ax & 1 || coord(w, r, ax) == coord(w, rank, ax));
        if (member && has(w, &w->from, r, e)) return true;
    }
    return false;
}

static bool needs_others(const world *w)
{
    if (real(w, w->from.partial & ~w->to.partial)) return true;
    for (uint32_t r = 0; r < w->ranks; r++)
        for (uint32_t e = 0; e < w->extent * w->extent; e++)
            if (has(w, &w->to, r, e) && !has(w, &w->from, r, e)) return true;
    return false;
}

/* From neighbours outwards (plan.h). */
static const sc_axis inner_first[AXES] = {SC_AX_TP, SC_AX_CP,  SC_AX_EP,
                                          SC_AX_DP, SC_AX_REP, SC_AX_PP};

/* Parts that reductions inside of an all-reduce have left. */
static double scattered(const world *w, const sc_move *m)
{
    double parts = 1;
    if (m->coll != SC_ALL_REDUCE) return 1;
    for (uint32_t i = 0; !(m->axes >> inner_first[i] & 1); i++) {
        uint32_t ax = inner_first[i], cut = 0;
        bool sum = w->from.partial >> ax & 1 && !(w->to.partial >> ax & 1);
        for (uint32_t d = 0; d < DIMS; d++)
            cut |= sc_axlist_mask(w->to.shard[dims[d]]) >> ax & 1;
        if (sum && cut) parts *= w->size[ax];
    }
    return parts;
}

/* V: what one rank holds before a reduction or an exchange, what the
 * communicator holds together where blocks are gathered. */
static bool volume_right(const world *w, const sc_move *m)
{
    bool own = m->coll != SC_ALL_GATHER;
    uint32_t n = 0, all = w->extent * w->extent;
    for (uint32_t e = 0; e < all; e++)
        n += group_has(w, own ? 0 : m->axes, 0, e);
    return fabs(m->fraction * scattered(w, m) - (double)n / all) < 1e-12;
}

static bool enough(const world *w, uint32_t axes)
{
    for (uint32_t e = 0; e < w->extent * w->extent; e++)
        if (has(w, &w->to, w->ranks - 1, e) &&
            !group_has(w, axes, w->ranks - 1, e))
            return false;
    return true;
}

static bool moves_right(prop *p, void *ctx)
{
    (void)ctx;
    world w;
    sc_move m[SC_MOVES];
    draw(p, &w);
    uint32_t n = sc_layout_moves(&w.from, &w.to, w.size, m);
    uint32_t axes = 0, summed = 0;
    bool ok = (n > 0) == needs_others(&w);
    for (uint32_t i = 0; i < n; i++) {
        bool reduces =
            m[i].coll == SC_ALL_REDUCE || m[i].coll == SC_REDUCE_SCATTER;
        ok = ok && m[i].axes && m[i].axes == real(&w, m[i].axes);
        ok = ok && !(axes & m[i].axes); /* no axis twice */
        ok = ok && volume_right(&w, &m[i]);
        axes |= m[i].axes;
        if (reduces) summed |= m[i].axes;
    }
    ok = ok && summed == real(&w, w.from.partial & ~w.to.partial);
    ok = ok && enough(&w, axes);
    double f = sc_layout_fraction(&w.to, (1u << SC_N_DIMNAMES) - 1, w.size);
    uint32_t held = 0;
    for (uint32_t e = 0; e < w.extent * w.extent; e++)
        held += has(&w, &w.to, 0, e);
    ok = ok && fabs(f - (double)held / (w.extent * w.extent)) < 1e-12;
    if (!ok && prop_reporting(p))
        for (uint32_t d = 0; d < DIMS; d++)
            print_message("%s: %x (sum %x) -> %x (sum %x), %u moves\n",
                          sc_dimname_names[dims[d]], w.from.shard[dims[d]],
                          w.from.partial, w.to.shard[dims[d]], w.to.partial, n);
    return ok;
}

static void test_moves(void **state)
{
    (void)state;
    assert_true(prop_check("layout moves", 800, moves_right, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_moves)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
