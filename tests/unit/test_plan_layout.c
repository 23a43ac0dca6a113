/* SPDX-License-Identifier: Apache-2.0 */
/* Layouts: the collective between two of them, rule by rule. */
#include <stepcast/plan.h>

#include "unit.h"

#include <math.h>

/* pp 1, dp 2, ep 1, cp 3, tp 4 */
static const uint32_t mesh[SC_N_AX] = {1, 2, 1, 3, 4};

#define BIT(ax) (1u << (ax))

static sc_layout shard(sc_layout l, sc_dimname d, sc_axis ax)
{
    l.shard[d] = sc_axlist_add(l.shard[d], ax);
    return l;
}

static sc_layout whole(void)
{
    return (sc_layout){{0}, 0};
}

static sc_layout partial(sc_layout l, sc_axis ax)
{
    l.partial |= BIT(ax);
    return l;
}

/* Exactly one move, as stated. */
static void one(const sc_layout *from, const sc_layout *to, sc_coll coll,
                uint32_t axes, sc_dimname dim, double fraction)
{
    sc_move m[SC_MOVES];
    assert_int_equal(sc_layout_moves(from, to, mesh, m), 1);
    assert_int_equal(m[0].coll, coll);
    assert_int_equal(m[0].axes, axes);
    assert_int_equal(m[0].dim, dim);
    assert_true(fabs(m[0].fraction - fraction) < 1e-15);
}

static void none(const sc_layout *from, const sc_layout *to)
{
    sc_move m[SC_MOVES];
    assert_int_equal(sc_layout_moves(from, to, mesh, m), 0);
}

static void rules(void **state)
{
    (void)state;
    sc_layout rep = whole(), sum = partial(whole(), SC_AX_TP);
    sc_layout seq = shard(whole(), SC_D_SEQ, SC_AX_TP);
    sc_layout head = shard(whole(), SC_D_HEAD, SC_AX_TP);
    /* V of an all-reduce and a reduce-scatter is what a rank holds before,
     * that of a gather what it holds after: the whole tensor each time; of
     * an exchange what it holds. */
    one(&sum, &rep, SC_ALL_REDUCE, BIT(SC_AX_TP), SC_N_DIMNAMES, 1);
    one(&sum, &seq, SC_REDUCE_SCATTER, BIT(SC_AX_TP), SC_D_SEQ, 1);
    one(&seq, &rep, SC_ALL_GATHER, BIT(SC_AX_TP), SC_D_SEQ, 1);
    one(&head, &seq, SC_ALL_TO_ALL, BIT(SC_AX_TP), SC_D_SEQ, 0.25);
    none(&rep, &seq);
    none(&seq, &seq);
    none(&sum, &sum);
}

static void other_axes_keep_their_shards(void **state)
{
    (void)state;
    sc_layout from = shard(whole(), SC_D_BATCH, SC_AX_DP);
    sc_layout to = from;
    from = partial(from, SC_AX_TP);
    /* each replica sums its half of the batch */
    one(&from, &to, SC_ALL_REDUCE, BIT(SC_AX_TP), SC_N_DIMNAMES, 0.5);
    from = shard(to, SC_D_SEQ, SC_AX_TP);
    one(&from, &to, SC_ALL_GATHER, BIT(SC_AX_TP), SC_D_SEQ, 0.5);
    to = shard(shard(whole(), SC_D_BATCH, SC_AX_DP), SC_D_HEAD, SC_AX_TP);
    one(&from, &to, SC_ALL_TO_ALL, BIT(SC_AX_TP), SC_D_HEAD, 0.125);
}

static void axes_of_one_rank_vanish(void **state)
{
    (void)state;
    sc_layout from = partial(whole(), SC_AX_PP), to = whole();
    none(&from, &to);
    from = shard(whole(), SC_D_SEQ, SC_AX_PP);
    none(&from, &to);
    from = partial(partial(whole(), SC_AX_PP), SC_AX_DP);
    one(&from, &to, SC_ALL_REDUCE, BIT(SC_AX_DP), SC_N_DIMNAMES, 1);
}

static void axes_fuse(void **state)
{
    (void)state;
    sc_layout to = whole();
    sc_layout from = partial(partial(whole(), SC_AX_DP), SC_AX_TP);
    one(&from, &to, SC_ALL_REDUCE, BIT(SC_AX_DP) | BIT(SC_AX_TP), SC_N_DIMNAMES,
        1);
    from = shard(shard(whole(), SC_D_SEQ, SC_AX_TP), SC_D_SEQ, SC_AX_CP);
    one(&from, &to, SC_ALL_GATHER, BIT(SC_AX_CP) | BIT(SC_AX_TP), SC_D_SEQ, 1);
    from = partial(partial(whole(), SC_AX_CP), SC_AX_TP);
    to = shard(shard(whole(), SC_D_SEQ, SC_AX_CP), SC_D_SEQ, SC_AX_TP);
    one(&from, &to, SC_REDUCE_SCATTER, BIT(SC_AX_CP) | BIT(SC_AX_TP), SC_D_SEQ,
        1);
}

/* Gathers of two dims are two collectives: their buffers differ. */
static void different_dims_do_not_fuse(void **state)
{
    (void)state;
    sc_move m[SC_MOVES];
    sc_layout to = whole();
    sc_layout from = shard(whole(), SC_D_SEQ, SC_AX_TP);
    from = shard(from, SC_D_BATCH, SC_AX_DP);
    assert_int_equal(sc_layout_moves(&from, &to, mesh, m), 2);
    for (int i = 0; i < 2; i++) {
        bool dp = m[i].axes == BIT(SC_AX_DP);
        assert_true(dp || m[i].axes == BIT(SC_AX_TP));
        assert_int_equal(m[i].dim, dp ? SC_D_BATCH : SC_D_SEQ);
        assert_true(fabs(m[i].fraction - (dp ? 1.0 / 4 : 1.0 / 2)) < 1e-15);
    }
    assert_int_not_equal(m[0].axes, m[1].axes);
}

static void fractions(void **state)
{
    (void)state;
    sc_layout l = shard(whole(), SC_D_BATCH, SC_AX_DP);
    l = shard(l, SC_D_SEQ, SC_AX_CP);
    l = shard(l, SC_D_SEQ, SC_AX_TP);
    uint32_t batch = BIT(SC_D_BATCH), seq = BIT(SC_D_SEQ);
    assert_true(sc_layout_fraction(&l, batch, mesh) == 0.5);
    assert_true(fabs(sc_layout_fraction(&l, seq, mesh) - 1.0 / 12) < 1e-16);
    assert_true(fabs(sc_layout_fraction(&l, batch | seq, mesh) - 1.0 / 24) <
                1e-16);
    assert_true(sc_layout_fraction(&l, BIT(SC_D_HIDDEN), mesh) == 1);
    l.partial = BIT(SC_AX_TP); /* partial sums are of full size */
    assert_true(sc_layout_fraction(&l, BIT(SC_D_HIDDEN), mesh) == 1);
}

static void axis_lists(void **state)
{
    (void)state;
    sc_axlist l = 0;
    assert_int_equal(sc_axlist_mask(l), 0);
    for (uint32_t ax = 0; ax < SC_N_AX; ax++) {
        l = sc_axlist_add(l, (sc_axis)ax);
        assert_int_equal(sc_axlist_mask(l), (2u << ax) - 1);
    }
    assert_int_equal(l & 15, SC_AX_PP + 1); /* the first stays lowest */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules),
        cmocka_unit_test(other_axes_keep_their_shards),
        cmocka_unit_test(axes_of_one_rank_vanish),
        cmocka_unit_test(axes_fuse),
        cmocka_unit_test(different_dims_do_not_fuse),
        cmocka_unit_test(fractions),
        cmocka_unit_test(axis_lists)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
