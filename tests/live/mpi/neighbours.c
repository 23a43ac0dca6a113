/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives among neighbours, with all ranks real: on grids that wrap and do
 * not, also where one rank is both neighbours, and on graphs. Argument mirror:
 * with emulated neighbours. */
#include "check.h"

static int world, me;

/* What each rank sends along edge i. */
static int sent(int rank, int i)
{
    return 100 * rank + i;
}

/* The value that arrives at `rank` from below (side 0) or above (1) in
 * dimension d of the grid. */
static int arrives(MPI_Comm grid, int d, int side)
{
    int below, above;
    MPI_Cart_shift(grid, d, 1, &below, &above);
    int from = side ? above : below;
    return from == MPI_PROC_NULL ? -1 : sent(from, 2 * d + 1 - side);
}

static void on_grid(int nd, const int *dims, const int *wraps)
{
    MPI_Comm grid;
    MPI_Request r;
    int out[8], in[8], type;
    MPI_Cart_create(MPI_COMM_WORLD, nd, dims, wraps, 0, &grid);
    if (grid == MPI_COMM_NULL) return;
    MPI_Topo_test(grid, &type);
    CHECK_EQ(type, MPI_CART);
    for (int i = 0; i < 2 * nd; i++) out[i] = sent(me, i);
    for (int late = 0; late < 2; late++) {
        for (int i = 0; i < 2 * nd; i++) in[i] = -1;
        if (late) {
            MPI_Ineighbor_alltoall(out, 1, MPI_INT, in, 1, MPI_INT, grid, &r);
            MPI_Wait(&r, MPI_STATUS_IGNORE);
        } else {
            MPI_Neighbor_alltoall(out, 1, MPI_INT, in, 1, MPI_INT, grid);
        }
        for (int i = 0; i < 2 * nd; i++)
            CHECK_EQ(in[i], arrives(grid, i / 2, i % 2));
    }
    int n[8], at[8];
    MPI_Aint far[8];
    MPI_Datatype t[8];
    for (int i = 0; i < 2 * nd; i++) {
        n[i] = 1;
        at[i] = 2 * nd - 1 - i;
        far[i] = at[i] * (MPI_Aint)sizeof(int);
        t[i] = MPI_INT;
        in[i] = -1;
    }
    MPI_Neighbor_alltoallv(out, n, at, MPI_INT, in, n, at, MPI_INT, grid);
    for (int i = 0; i < 2 * nd; i++) {
        int v = arrives(grid, i / 2, i % 2);
        /* its part for edge k lies in place 2 * nd - 1 - k */
        CHECK_EQ(in[at[i]], v < 0 ? -1 : v / 100 * 100 + 2 * nd - 1 - v % 100);
        in[at[i]] = -1;
    }
    MPI_Neighbor_alltoallw(out, n, far, t, in, n, far, t, grid);
    for (int i = 0; i < 2 * nd; i++) {
        int v = arrives(grid, i / 2, i % 2);
        CHECK_EQ(in[at[i]], v < 0 ? -1 : v / 100 * 100 + 2 * nd - 1 - v % 100);
    }
    for (int i = 0; i < 2 * nd; i++) in[i] = -1;
    MPI_Ineighbor_allgather(&me, 1, MPI_INT, in, 1, MPI_INT, grid, &r);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    for (int i = 0; i < 2 * nd; i++) {
        int v = arrives(grid, i / 2, i % 2);
        CHECK_EQ(in[i], v < 0 ? -1 : v / 100);
    }
    MPI_Comm_free(&grid);
}

/* To the next two ranks. */
static void on_graph(void)
{
    MPI_Comm graph, again;
    int to[] = {(me + 1) % world, (me + 2) % world};
    int from[] = {(me + world - 2) % world, (me + world - 1) % world};
    int weight[] = {3, 4}, n_in, n_out, weighted, type;
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 2, from, weight, 2, to,
                                   weight, MPI_INFO_NULL, 0, &graph);
    MPI_Comm_dup(graph, &again);
    MPI_Topo_test(again, &type);
    CHECK_EQ(type, MPI_DIST_GRAPH);
    MPI_Dist_graph_neighbors_count(again, &n_in, &n_out, &weighted);
    CHECK(n_in == 2 && n_out == 2 && weighted);
    int f[2], t[2], v[2], w[2];
    MPI_Dist_graph_neighbors(again, 2, f, v, 2, t, w);
    for (int i = 0; i < 2; i++)
        CHECK(f[i] == from[i] && t[i] == to[i] && v[i] == weight[i]);
    int out[2] = {sent(me, 0), sent(me, 1)}, in[2] = {0};
    MPI_Neighbor_alltoall(out, 1, MPI_INT, in, 1, MPI_INT, again);
    for (int i = 0; i < 2; i++) CHECK_EQ(in[i], sent(from[i], 1 - i));
    int n[2] = {1, 1}, at[2] = {1, 0};
    MPI_Neighbor_allgatherv(&me, 1, MPI_INT, in, n, at, MPI_INT, graph);
    for (int i = 0; i < 2; i++) CHECK_EQ(in[at[i]], from[i]);
    MPI_Comm_free(&graph);
    MPI_Comm_free(&again);
}

/* A ring of which every rank knows all edges. */
static void on_known_graph(void)
{
    MPI_Comm graph;
    int *index = malloc(world * sizeof *index), in[2], n, nodes, type;
    int *edges = malloc(2 * world * sizeof *edges), edge;
    for (int r = 0; r < world; r++) {
        index[r] = 2 * (r + 1);
        edges[2 * r] = (r + world - 1) % world;
        edges[2 * r + 1] = (r + 1) % world;
    }
    MPI_Graph_create(MPI_COMM_WORLD, world, index, edges, 0, &graph);
    MPI_Topo_test(graph, &type);
    CHECK_EQ(type, MPI_GRAPH);
    MPI_Graphdims_get(graph, &nodes, &edge);
    CHECK(nodes == world && edge == 2 * world);
    MPI_Graph_neighbors_count(graph, world - 1, &n);
    CHECK_EQ(n, 2);
    MPI_Graph_neighbors(graph, world - 1, 2, in);
    CHECK(in[0] == (world - 2) % world && in[1] == 0);
    int *index2 = malloc(world * sizeof *index2);
    int *edges2 = malloc(2 * world * sizeof *edges2);
    MPI_Graph_get(graph, world, 2 * world, index2, edges2);
    CHECK(!memcmp(index, index2, world * sizeof *index));
    CHECK(!memcmp(edges, edges2, 2 * world * sizeof *edges));
    MPI_Neighbor_allgather(&me, 1, MPI_INT, in, 1, MPI_INT, graph);
    for (int i = 0; i < 2; i++) CHECK_EQ(in[i], edges[2 * me + i]);
    MPI_Comm_free(&graph);
    free(index);
    free(edges);
    free(index2);
    free(edges2);
}

/* The last rank names the edges of all: each rank to its double. */
static void on_told_graph(void)
{
    MPI_Comm graph;
    int all = me == world - 1 ? world : 0, n_in, n_out, weighted, in[8];
    int *from = malloc(world * sizeof *from),
        *one = malloc(world * sizeof *one);
    int *to = malloc(world * sizeof *to), *weight = malloc(world * sizeof *to);
    for (int r = 0; r < all; r++) {
        from[r] = r;
        one[r] = 1;
        to[r] = 2 * r % world;
        weight[r] = 10 + r;
    }
    MPI_Dist_graph_create(MPI_COMM_WORLD, all, from, one, to, weight,
                          MPI_INFO_NULL, 0, &graph);
    MPI_Dist_graph_neighbors_count(graph, &n_in, &n_out, &weighted);
    CHECK(n_out == 1 && weighted);
    int f[8], fw[8], t[8], tw[8];
    MPI_Dist_graph_neighbors(graph, 8, f, fw, 8, t, tw);
    CHECK(t[0] == 2 * me % world && tw[0] == 10 + me);
    for (int i = 0; i < n_in; i++)
        CHECK(2 * f[i] % world == me && fw[i] == 10 + f[i]);
    MPI_Neighbor_alltoall(&me, 1, MPI_INT, in, 1, MPI_INT, graph);
    for (int i = 0; i < n_in; i++) CHECK_EQ(in[i], f[i]);
    MPI_Comm_free(&graph);
    free(from);
    free(one);
    free(to);
    free(weight);
}

/* An emulated neighbour sends what this rank does, along any of its edges. */
static void on_mirrored_grid(int nd, const int *dims, const int *wraps)
{
    MPI_Comm grid;
    MPI_Request r;
    int out[8], in[8], all[8], later[8];
    MPI_Cart_create(MPI_COMM_WORLD, nd, dims, wraps, 0, &grid);
    for (int i = 0; i < 2 * nd; i++) {
        out[i] = sent(me, i);
        in[i] = all[i] = later[i] = -1;
    }
    MPI_Neighbor_alltoall(out, 1, MPI_INT, in, 1, MPI_INT, grid);
    MPI_Neighbor_allgather(&me, 1, MPI_INT, all, 1, MPI_INT, grid);
    MPI_Ineighbor_alltoall(out, 1, MPI_INT, later, 1, MPI_INT, grid, &r);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    for (int i = 0; i < 2 * nd; i++) {
        int there = arrives(grid, i / 2, i % 2) >= 0;
        CHECK_EQ(in[i], there ? sent(me, i ^ 1) : -1);
        CHECK_EQ(later[i], in[i]);
        CHECK_EQ(all[i], there ? me : -1);
    }
    MPI_Comm_free(&grid);
}

static void on_mirrored_graph(void)
{
    MPI_Comm graph;
    int to[] = {(me + 1) % world, (me + 2) % world}, in[2], all[2],
        weight[] = {1, 1};
    int from[] = {(me + world - 2) % world, (me + world - 1) % world};
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 2, from, weight, 2, to,
                                   weight, MPI_INFO_NULL, 0, &graph);
    int out[2] = {sent(me, 0), sent(me, 1)};
    MPI_Neighbor_alltoall(out, 1, MPI_INT, in, 1, MPI_INT, graph);
    MPI_Neighbor_allgather(&me, 1, MPI_INT, all, 1, MPI_INT, graph);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(in[i], sent(me, i));
        CHECK_EQ(all[i], me);
    }
    MPI_Comm_free(&graph);
}

static void mirrored(void)
{
    on_mirrored_grid(1, (int[]){world}, (int[]){1});
    on_mirrored_grid(1, (int[]){world}, (int[]){0});
    on_mirrored_grid(2, (int[]){2, world / 2}, (int[]){1, 0});
    on_mirrored_grid(3, (int[]){2, 1, world / 2}, (int[]){1, 1, 1});
    on_mirrored_graph();
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &world);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    if (argc > 1) {
        mirrored();
        MPI_Finalize();
        return verdict("neighbours");
    }
    on_grid(1, (int[]){world}, (int[]){1});
    on_grid(1, (int[]){world}, (int[]){0});
    /* As MPI 4.1 has it where both neighbours are one rank: what it sends down
     * arrives from above. MPICH 4.0 and Open MPI 4.1 swap the two. */
    if (world % 2 == 0) on_grid(2, (int[]){2, world / 2}, (int[]){1, 0});
    if (world % 2 == 0 && world > 2)
        on_grid(3, (int[]){2, 1, world / 2}, (int[]){1, 1, 1});
    if (world > 2) {
        on_graph();
        on_known_graph();
        on_told_graph();
    }
    MPI_Finalize();
    return verdict("neighbours");
}
