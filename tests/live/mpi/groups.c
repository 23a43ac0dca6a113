/* SPDX-License-Identifier: Apache-2.0 */
/* groups.c - communicators, groups and grids; run as rank 5 of 8. */
#include "check.h"

static int n, me;

static void is(MPI_Comm c, int size, int rank, int first, int second)
{
    int got_n, got_me, two[2] = {0, 1}, world[2] = {-1, -1};
    MPI_Group g, all;
    CHECK(c != MPI_COMM_NULL);
    MPI_Comm_size(c, &got_n);
    MPI_Comm_rank(c, &got_me);
    CHECK_EQ(got_n, size);
    CHECK_EQ(got_me, rank);
    MPI_Comm_group(c, &g);
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_translate_ranks(g, size > 1 ? 2 : 1, two, all, world);
    CHECK_EQ(world[0], first);
    if (size > 1) CHECK_EQ(world[1], second);
    MPI_Group_free(&g);
    MPI_Group_free(&all);
    double x = 1, y = 0;
    MPI_Allreduce(&x, &y, 1, MPI_DOUBLE, MPI_SUM, c);
    CHECK_EQ(y, size);
}

static void splits(void)
{
    MPI_Comm c, d;
    MPI_Comm_split(MPI_COMM_WORLD, me / 4, me % 4, &c);
    is(c, 4, 1, 4, 5);
    MPI_Comm_split(c, me / 2 % 2, 0, &d); /* of that: members / 2 */
    MPI_Comm_free(&d);
    MPI_Comm_free(&c);
    MPI_Comm_split(MPI_COMM_WORLD, me % 4, me / 4, &c);
    is(c, 2, 1, 1, 5);
    MPI_Comm_free(&c);
    MPI_Comm_split(MPI_COMM_WORLD, 42, me, &c);
    is(c, n, me, 0, 1);
    MPI_Comm_free(&c);
    MPI_Comm_split(MPI_COMM_WORLD, MPI_UNDEFINED, 0, &c);
    CHECK(c == MPI_COMM_NULL);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL,
                        &c);
    is(c, 4, 1, 4, 5); /* hosts of four */
    MPI_Comm_free(&c);
    MPI_Request q;
    MPI_Comm_idup(MPI_COMM_WORLD, &c, &q);
    MPI_Wait(&q, MPI_STATUS_IGNORE);
    int same;
    MPI_Comm_compare(MPI_COMM_WORLD, c, &same);
    CHECK_EQ(same, MPI_CONGRUENT);
    MPI_Comm_compare(c, c, &same);
    CHECK_EQ(same, MPI_IDENT);
    MPI_Comm_compare(MPI_COMM_SELF, c, &same);
    CHECK_EQ(same, MPI_UNEQUAL);
    is(c, n, me, 0, 1);
    MPI_Comm_free(&c);
    CHECK(c == MPI_COMM_NULL);
    MPI_Comm_size(MPI_COMM_SELF, &same);
    CHECK_EQ(same, 1);
}

static void sets(void)
{
    MPI_Group all, odd, high, g;
    MPI_Comm c, d;
    int size, rank, same, odds[4] = {1, 3, 5, 7};
    int range[1][3] = {{7, 4, -1}}, back[1][3] = {{0, 6, 2}};
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_incl(all, 4, odds, &odd);
    MPI_Group_range_incl(all, 1, range, &high); /* 7 6 5 4 */
    MPI_Group_rank(high, &rank);
    CHECK_EQ(rank, 2);
    MPI_Group_intersection(odd, high, &g); /* 5 7 */
    MPI_Comm_create(MPI_COMM_WORLD, g, &c);
    is(c, 2, 0, 5, 7);
    MPI_Comm_free(&c);
    MPI_Group_free(&g);
    MPI_Group_union(odd, high, &g); /* 1 3 5 7 6 4 */
    MPI_Group_size(g, &size);
    CHECK_EQ(size, 6);
    MPI_Group_free(&g);
    MPI_Group_difference(all, odd, &g);
    MPI_Comm_create_group(MPI_COMM_WORLD, odd, 3, &c);
    is(c, 4, 2, 1, 3);
    MPI_Comm_create(c, g, &d); /* rank 5 is not in it */
    CHECK(d == MPI_COMM_NULL);
    MPI_Comm_free(&c);
    MPI_Group_free(&g);
    MPI_Group_range_excl(all, 1, back, &g);
    MPI_Group_compare(g, odd, &same);
    CHECK_EQ(same, MPI_IDENT);
    MPI_Group_free(&g);
    MPI_Group_excl(all, 4, odds, &g);
    MPI_Group_rank(g, &rank);
    CHECK_EQ(rank, MPI_UNDEFINED);
    MPI_Group_compare(g, odd, &same);
    CHECK_EQ(same, MPI_UNEQUAL);
    MPI_Group_free(&g);
    MPI_Group_incl(all, 0, NULL, &g);
    CHECK(g == MPI_GROUP_EMPTY);
    MPI_Group_incl(all, 1, &me, &g);
    MPI_Comm_create(MPI_COMM_WORLD, g, &c); /* alone: the library's own */
    is(c, 1, 0, me, -1);
    MPI_Comm_free(&c);
    MPI_Group_free(&g);
    MPI_Group_free(&odd);
    MPI_Group_free(&high);
    MPI_Group_free(&all);
    CHECK(all == MPI_GROUP_NULL);
}

static void grids(void)
{
    MPI_Comm grid, row;
    int dims[2] = {2, 4}, wraps[2] = {0, 1}, at[2], from, to,
        remain[2] = {0, 1};
    int topology, rank, d, there[2] = {0, -1};
    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, wraps, 0, &grid);
    MPI_Topo_test(grid, &topology);
    CHECK_EQ(topology, MPI_CART);
    MPI_Cart_coords(grid, me, 2, at);
    CHECK_EQ(at[0], 1);
    CHECK_EQ(at[1], 1);
    MPI_Cart_rank(grid, there, &rank);
    CHECK_EQ(rank, 3);
    MPI_Cart_shift(grid, 0, 1, &from, &to);
    CHECK_EQ(from, 1);
    CHECK_EQ(to, MPI_PROC_NULL);
    MPI_Cart_shift(grid, 1, 2, &from, &to);
    CHECK_EQ(from, 7);
    CHECK_EQ(to, 7);
    MPI_Cartdim_get(grid, &d);
    CHECK_EQ(d, 2);
    MPI_Cart_sub(grid, remain, &row);
    is(row, 4, 1, 4, 5);
    MPI_Cart_get(row, 1, dims, wraps, at);
    CHECK_EQ(dims[0], 4);
    CHECK_EQ(wraps[0], 1);
    CHECK_EQ(at[0], 1);
    MPI_Comm_free(&row);
    MPI_Comm_free(&grid);
}

/* Attributes, names and info stay the library's business. */
static int copied;

static int copy(MPI_Comm c, int key, void *extra, void *in, void *out,
                int *flag)
{
    (void)c, (void)key, (void)extra;
    *(void **)out = in;
    *flag = 1;
    copied++;
    return MPI_SUCCESS;
}

static void attributes(void)
{
    int *universe, known;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_UNIVERSE_SIZE, &universe, &known);
    CHECK(known && *universe == n);
    int key, flag, len;
    char name[MPI_MAX_OBJECT_NAME];
    void *value = NULL;
    MPI_Comm c;
    MPI_Comm_create_keyval(copy, MPI_COMM_NULL_DELETE_FN, &key, NULL);
    MPI_Comm_set_attr(MPI_COMM_WORLD, key, &copied);
    MPI_Comm_dup(MPI_COMM_WORLD, &c);
    CHECK_EQ(copied, 1);
    MPI_Comm_get_attr(c, key, &value, &flag);
    CHECK(flag && value == &copied);
    MPI_Comm_set_name(c, "mine");
    MPI_Comm_get_name(c, name, &len);
    CHECK(!strcmp(name, "mine"));
    MPI_Comm_get_attr(c, MPI_TAG_UB, &value, &flag);
    CHECK(flag && *(int *)value >= 32767);
    MPI_Comm_free(&c);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    CHECK_EQ(n, 8);
    CHECK_EQ(me, 5);
    splits();
    sets();
    grids();
    attributes();
    MPI_Finalize();
    return verdict("groups");
}
