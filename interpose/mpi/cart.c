/* SPDX-License-Identifier: Apache-2.0 */
/* cart.c - Cartesian grids: the last dimension varies fastest. */
#include "mpi/mp.h"

#include <stdlib.h>

/* The communicator's grid; fails if it has none. */
static mp_comm *grid(mp_comm *c, const char *name, int *code)
{
    if (c->cart.there) return c;
    *code =
        mp_fail(c, MPI_ERR_TOPOLOGY, "%s: the communicator has no grid", name);
    return NULL;
}

static int coordinate(const mp_cart *g, uint32_t rank, int dim)
{
    uint32_t below = 1;
    for (int d = dim + 1; d < g->n; d++) below *= (uint32_t)g->dims[d];
    return (int)(rank / below % (uint32_t)g->dims[dim]);
}

/* False: the position is outside a dimension that does not wrap. */
static bool rank_at(const mp_cart *g, const int *at, int *rank)
{
    int64_t r = 0;
    for (int d = 0; d < g->n; d++) {
        int x = at[d], n = g->dims[d];
        if ((x < 0 || x >= n) && !g->periods[d]) return false;
        x %= n;
        r = r * n + (x < 0 ? x + n : x);
    }
    *rank = (int)r;
    return true;
}

int MPI_Cart_create(MPI_Comm old_comm, int ndims, const int dims[],
                    const int periods[], int reorder, MPI_Comm *comm_cart)
{
    mp_comm *c = mp_ours(old_comm);
    if (!c)
        return PMPI_Cart_create(old_comm, ndims, dims, periods, reorder,
                                comm_cart);
    uint64_t n = 1;
    for (int d = 0; d < ndims; d++) {
        if (dims[d] < 1)
            return mp_fail(c, MPI_ERR_DIMS,
                           "MPI_Cart_create: a "
                           "dimension of %d",
                           dims[d]);
        n *= (uint64_t)dims[d];
        if (n > c->n)
            return mp_fail(c, MPI_ERR_DIMS,
                           "MPI_Cart_create: more than the %u ranks", c->n);
    }
    int code = mp_comm_make(c, NULL, (uint32_t)n, 0, mp_context(c), comm_cart);
    if (code == MPI_SUCCESS && c->me < n)
        mp_comm_set_cart(mp_find(*comm_cart), ndims, dims, periods);
    return code;
}

/* A grid of one rank is handled here as well. */
#define GRID(comm, name, real)                            \
    int code_ = MPI_SUCCESS;                              \
    mp_comm *c = mp_find(comm);                           \
    if (!c || (c->n == 1 && !c->cart.there)) return real; \
    if (!grid(c, name, &code_)) return code_

int MPI_Cartdim_get(MPI_Comm comm, int *ndims)
{
    GRID(comm, "MPI_Cartdim_get", PMPI_Cartdim_get(comm, ndims));
    *ndims = c->cart.n;
    return MPI_SUCCESS;
}

int MPI_Cart_get(MPI_Comm comm, int maxdims, int dims[], int periods[],
                 int coords[])
{
    GRID(comm, "MPI_Cart_get",
         PMPI_Cart_get(comm, maxdims, dims, periods, coords));
    for (int d = 0; d < maxdims && d < c->cart.n; d++) {
        dims[d] = c->cart.dims[d];
        periods[d] = c->cart.periods[d];
        coords[d] = coordinate(&c->cart, c->me, d);
    }
    return MPI_SUCCESS;
}

int MPI_Cart_rank(MPI_Comm comm, const int coords[], int *rank)
{
    GRID(comm, "MPI_Cart_rank", PMPI_Cart_rank(comm, coords, rank));
    if (rank_at(&c->cart, coords, rank)) return MPI_SUCCESS;
    return mp_fail(c, MPI_ERR_ARG,
                   "MPI_Cart_rank: coordinates outside a "
                   "dimension that does not wrap");
}

int MPI_Cart_coords(MPI_Comm comm, int rank, int maxdims, int coords[])
{
    GRID(comm, "MPI_Cart_coords",
         PMPI_Cart_coords(comm, rank, maxdims, coords));
    if (rank < 0 || (uint32_t)rank >= c->n)
        return mp_fail(c, MPI_ERR_RANK, "MPI_Cart_coords: no rank %d of %u",
                       rank, c->n);
    for (int d = 0; d < maxdims && d < c->cart.n; d++)
        coords[d] = coordinate(&c->cart, (uint32_t)rank, d);
    return MPI_SUCCESS;
}

int mp_cart_shifted(const mp_comm *c, int dim, int by)
{
    const mp_cart *g = &c->cart;
    int *at = mp_alloc((size_t)g->n * sizeof *at), rank;
    for (int d = 0; d < g->n; d++) at[d] = coordinate(g, c->me, d);
    at[dim] += by;
    if (!rank_at(g, at, &rank)) rank = MPI_PROC_NULL;
    free(at);
    return rank;
}

int MPI_Cart_shift(MPI_Comm comm, int direction, int disp, int *rank_source,
                   int *rank_dest)
{
    GRID(comm, "MPI_Cart_shift",
         PMPI_Cart_shift(comm, direction, disp, rank_source, rank_dest));
    if (direction < 0 || direction >= c->cart.n)
        return mp_fail(c, MPI_ERR_DIMS, "MPI_Cart_shift: no dimension %d of %d",
                       direction, c->cart.n);
    *rank_source = mp_cart_shifted(c, direction, -disp);
    *rank_dest = mp_cart_shifted(c, direction, disp);
    return MPI_SUCCESS;
}

/* Members that differ only in the dimensions that remain. */
static uint32_t slice(const mp_comm *c, const int *remain, uint32_t *rank,
                      uint32_t *me)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->n; i++) {
        bool in = true;
        for (int d = 0; in && d < c->cart.n; d++)
            in = remain[d] ||
                 coordinate(&c->cart, i, d) == coordinate(&c->cart, c->me, d);
        if (!in) continue;
        if (i == c->me) *me = n;
        rank[n++] = mp_world_rank(c, i);
    }
    return n;
}

int MPI_Cart_sub(MPI_Comm comm, const int remain_dims[], MPI_Comm *new_comm)
{
    GRID(comm, "MPI_Cart_sub", PMPI_Cart_sub(comm, remain_dims, new_comm));
    uint32_t *rank = mp_alloc(c->n * sizeof *rank), me = 0;
    uint32_t n = slice(c, remain_dims, rank, &me);
    uint64_t context = sc_mix(mp_context(c) + rank[0]);
    int code = mp_comm_make(c, rank, n, me, context, new_comm);
    free(rank);
    if (code != MPI_SUCCESS) return code;
    size_t size = (size_t)c->cart.n * sizeof(int);
    int k = 0, *dims = mp_alloc(size), *periods = mp_alloc(size);
    for (int d = 0; d < c->cart.n; d++) {
        if (!remain_dims[d]) continue;
        dims[k] = c->cart.dims[d];
        periods[k++] = c->cart.periods[d];
    }
    mp_comm_set_cart(mp_find(*new_comm), k, dims, periods);
    free(dims);
    free(periods);
    return MPI_SUCCESS;
}

/* Ranks stay where they are. */
static int map(const mp_comm *c, uint64_t n, const char *name, int *newrank)
{
    if (n > c->n)
        return mp_fail(c, MPI_ERR_DIMS, "%s: more than the %u ranks", name,
                       c->n);
    *newrank = c->me < n ? (int)c->me : MPI_UNDEFINED;
    return MPI_SUCCESS;
}

int MPI_Cart_map(MPI_Comm comm, int ndims, const int dims[],
                 const int periods[], int *newrank)
{
    const mp_comm *c = mp_ours(comm);
    if (!c) return PMPI_Cart_map(comm, ndims, dims, periods, newrank);
    uint64_t n = 1;
    for (int d = 0; d < ndims && n <= c->n; d++) n *= (uint64_t)dims[d];
    return map(c, n, "MPI_Cart_map", newrank);
}

int MPI_Graph_map(MPI_Comm comm, int nnodes, const int index[],
                  const int edges[], int *newrank)
{
    const mp_comm *c = mp_ours(comm);
    if (!c) return PMPI_Graph_map(comm, nnodes, index, edges, newrank);
    return map(c, (uint64_t)nnodes, "MPI_Graph_map", newrank);
}

int MPI_Topo_test(MPI_Comm comm, int *status)
{
    const mp_comm *c = mp_find(comm);
    if (!c || (c->n == 1 && !c->cart.there))
        return PMPI_Topo_test(comm, status);
    *status = c->cart.there      ? MPI_CART
              : c->graph.n_nodes ? MPI_GRAPH
              : c->graph.there   ? MPI_DIST_GRAPH
                                 : MPI_UNDEFINED;
    return MPI_SUCCESS;
}
