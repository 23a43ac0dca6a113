/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graph.c - graphs: each rank knows all edges (MPI_Graph_create) or its own.
 */
#include "common/split.h"
#include "mpi/mp.h"

#include <stdlib.h>
#include <string.h>

static int *copy_of(const int *v, int n)
{
    size_t size = (size_t)n * sizeof *v;
    return v && n > 0 ? memcpy(mp_alloc(size), v, size) : NULL;
}

static void copy_to(int *out, const int *v, int n)
{
    if (v && out && n > 0) memcpy(out, v, (size_t)n * sizeof *v);
}

void mp_comm_set_graph(mp_comm *c, const mp_graph *g)
{
    int n_edges = g->n_nodes > 0 ? g->index[g->n_nodes - 1] : 0;
    c->graph = *g;
    c->graph.in = copy_of(g->in, g->n_in);
    c->graph.out = copy_of(g->out, g->n_out);
    c->graph.in_weight = copy_of(g->in_weight, g->n_in);
    c->graph.out_weight = copy_of(g->out_weight, g->n_out);
    c->graph.index = copy_of(g->index, g->n_nodes);
    c->graph.edge = copy_of(g->edge, n_edges);
}

void mp_comm_free_graph(mp_comm *c)
{
    free(c->graph.in);
    free(c->graph.out);
    free(c->graph.in_weight);
    free(c->graph.out_weight);
    free(c->graph.index);
    free(c->graph.edge);
}

static bool are_members(const mp_comm *c, int n, const int *rank)
{
    for (int i = 0; i < n; i++)
        if (rank[i] != MPI_PROC_NULL &&
            (rank[i] < 0 || (uint32_t)rank[i] >= c->n))
            return false;
    return n >= 0;
}

/* The same members with a graph. */
static int with_graph(mp_comm *c, const mp_graph *g, MPI_Comm *out)
{
    int code = PMPI_Comm_dup(c->handle, out);
    if (code == MPI_SUCCESS) mp_comm_set_graph(mp_comm_twin(c, *out, false), g);
    return code;
}

static int no_graph(const mp_comm *c, const char *name)
{
    return mp_fail(c, MPI_ERR_TOPOLOGY,
                   "%s: the communicator has no such graph", name);
}

/* ---- each rank its own edges ------------------------------------------------ */

int MPI_Dist_graph_create_adjacent(MPI_Comm comm_old, int indegree,
                                   const int sources[],
                                   const int sourceweights[], int outdegree,
                                   const int destinations[],
                                   const int destweights[], MPI_Info info,
                                   int reorder, MPI_Comm *comm_dist_graph)
{
    mp_comm *c = mp_ours(comm_old);
    if (!c)
        return PMPI_Dist_graph_create_adjacent(
            comm_old, indegree, sources, sourceweights, outdegree, destinations,
            destweights, info, reorder, comm_dist_graph);
    if (!are_members(c, indegree, sources) ||
        !are_members(c, outdegree, destinations))
        return mp_fail(c, MPI_ERR_RANK,
                       "MPI_Dist_graph_create_adjacent: a neighbour is not "
                       "among the %u ranks",
                       c->n);
    bool weighted = sourceweights != MPI_UNWEIGHTED;
    mp_graph g = {.there = true,
                  .weighted = weighted,
                  .n_in = indegree,
                  .n_out = outdegree,
                  .in = (int *)sources,
                  .out = (int *)destinations};
    if (weighted && indegree) g.in_weight = (int *)sourceweights;
    if (weighted && outdegree) g.out_weight = (int *)destweights;
    live_enter(mp.l);
    int code = with_graph(c, &g, comm_dist_graph);
    live_leave(mp.l);
    return code;
}

int MPI_Dist_graph_neighbors_count(MPI_Comm comm, int *indegree, int *outdegree,
                                   int *weighted)
{
    const mp_comm *c = mp_ours(comm);
    if (!c)
        return PMPI_Dist_graph_neighbors_count(comm, indegree, outdegree,
                                               weighted);
    if (!c->graph.there || c->graph.n_nodes)
        return no_graph(c, "MPI_Dist_graph_neighbors_count");
    *indegree = c->graph.n_in;
    *outdegree = c->graph.n_out;
    *weighted = c->graph.weighted;
    return MPI_SUCCESS;
}

int MPI_Dist_graph_neighbors(MPI_Comm comm, int maxindegree, int sources[],
                             int sourceweights[], int maxoutdegree,
                             int destinations[], int destweights[])
{
    const mp_comm *c = mp_ours(comm);
    if (!c)
        return PMPI_Dist_graph_neighbors(comm, maxindegree, sources,
                                         sourceweights, maxoutdegree,
                                         destinations, destweights);
    const mp_graph *g = &c->graph;
    if (!g->there || g->n_nodes) return no_graph(c, "MPI_Dist_graph_neighbors");
    int n_in = maxindegree < g->n_in ? maxindegree : g->n_in;
    int n_out = maxoutdegree < g->n_out ? maxoutdegree : g->n_out;
    copy_to(sources, g->in, n_in);
    copy_to(destinations, g->out, n_out);
    if (!g->weighted) return MPI_SUCCESS;
    copy_to(sourceweights, g->in_weight, n_in);
    copy_to(destweights, g->out_weight, n_out);
    return MPI_SUCCESS;
}

/* ---- edges of others --------------------------------------------------------- */

/* Edges, three numbers each: from, to, weight. */
typedef struct edge_list {
    int *v;
    size_t n; /* edges */
} edge_list;

static void take_edges(void *x, uint32_t member, const void *p, size_t len)
{
    (void)member;
    edge_list *e = x;
    size_t n = len / (3 * sizeof *e->v);
    int *more = mp_alloc((e->n + n) * 3 * sizeof *more);
    if (e->n) memcpy(more, e->v, e->n * 3 * sizeof *more);
    if (n) memcpy(more + e->n * 3, p, n * 3 * sizeof *more);
    free(e->v);
    e->v = more;
    e->n += n;
}

/* The edges with `me` at `side` (0: from, 1: to); returns their number. */
static int own_edges(const edge_list *e, int side, int me, int *other,
                     int *weight)
{
    int n = 0;
    for (size_t i = 0; i < e->n; i++) {
        if (e->v[3 * i + (size_t)side] != me) continue;
        other[n] = e->v[3 * i + 1 - (size_t)side];
        weight[n++] = e->v[3 * i + 2];
    }
    return n;
}

static int from_all(mp_comm *c, const edge_list *mine, bool weighted,
                    MPI_Comm *out)
{
    edge_list all = {0};
    const live_members m = mp_members(c);
    live_tell_real(mp.l, &m, mine->v, mine->n * 3 * sizeof *mine->v, take_edges,
                   &all);
    int *at = mp_alloc((4 * all.n + 1) * sizeof *at), me = (int)c->me;
    mp_graph g = {.there = true,
                  .weighted = weighted,
                  .in = at,
                  .in_weight = at + all.n,
                  .out = at + 2 * all.n,
                  .out_weight = at + 3 * all.n};
    g.n_in = own_edges(&all, 1, me, g.in, g.in_weight);
    g.n_out = own_edges(&all, 0, me, g.out, g.out_weight);
    int code = with_graph(c, &g, out);
    free(at);
    free(all.v);
    return code;
}

int MPI_Dist_graph_create(MPI_Comm comm_old, int n, const int sources[],
                          const int degrees[], const int destinations[],
                          const int weights[], MPI_Info info, int reorder,
                          MPI_Comm *comm_dist_graph)
{
    mp_comm *c = mp_ours(comm_old);
    if (!c)
        return PMPI_Dist_graph_create(comm_old, n, sources, degrees,
                                      destinations, weights, info, reorder,
                                      comm_dist_graph);
    if (c->n_real < c->n)
        return mp_fail(c, MPI_ERR_UNSUPPORTED_OPERATION,
                       "MPI_Dist_graph_create: edges that emulated ranks name "
                       "are not known; MPI_Dist_graph_create_adjacent, or "
                       "--ranks all");
    int total = 0, code = MPI_SUCCESS;
    for (int i = 0; i < n; i++) total += degrees[i];
    if (!are_members(c, n, sources) || !are_members(c, total, destinations))
        return mp_fail(
            c, MPI_ERR_RANK,
            "MPI_Dist_graph_create: a node is not among the %u ranks", c->n);
    bool weighted = weights != MPI_UNWEIGHTED;
    edge_list mine = {mp_alloc((size_t)total * 3 * sizeof *mine.v), 0};
    for (int i = 0; i < n; i++)
        for (int k = 0; k < degrees[i]; k++, mine.n++) {
            mine.v[3 * mine.n] = sources[i];
            mine.v[3 * mine.n + 1] = destinations[mine.n];
            mine.v[3 * mine.n + 2] = weighted ? weights[mine.n] : 1;
        }
    live_enter(mp.l);
    code = from_all(c, &mine, weighted, comm_dist_graph);
    live_leave(mp.l);
    free(mine.v);
    return code;
}

/* ---- all edges ---------------------------------------------------------------- */

static int first_edge(const mp_graph *g, int node)
{
    return node > 0 ? g->index[node - 1] : 0;
}

int MPI_Graph_create(MPI_Comm comm_old, int nnodes, const int index[],
                     const int edges[], int reorder, MPI_Comm *comm_graph)
{
    mp_comm *c = mp_ours(comm_old);
    if (!c)
        return PMPI_Graph_create(comm_old, nnodes, index, edges, reorder,
                                 comm_graph);
    if (nnodes < 0 || (uint32_t)nnodes > c->n ||
        (nnodes > 0 && !are_members(c, index[nnodes - 1], edges)))
        return mp_fail(c, MPI_ERR_TOPOLOGY,
                       "MPI_Graph_create: %d nodes, or an edge, beyond the %u "
                       "ranks",
                       nnodes, c->n);
    uint32_t n = (uint32_t)nnodes;
    live_enter(mp.l);
    int code = mp_comm_make(c, NULL, n, 0, mp_context(c), comm_graph);
    if (code == MPI_SUCCESS && c->me < n) {
        mp_graph g = {.there = true,
                      .n_nodes = nnodes,
                      .index = (int *)index,
                      .edge = (int *)edges};
        int at = first_edge(&g, (int)c->me);
        g.n_in = g.n_out = index[c->me] - at;
        g.in = g.out = (int *)edges + at;
        mp_comm_set_graph(mp_find(*comm_graph), &g);
    }
    live_leave(mp.l);
    return code;
}

/* Fails if the communicator has no graph of all edges. */
#define GRAPH(comm, name, real)       \
    const mp_comm *c = mp_ours(comm); \
    if (!c) return real;              \
    const mp_graph *g = &c->graph;    \
    if (!g->n_nodes) return no_graph(c, name)

int MPI_Graphdims_get(MPI_Comm comm, int *nnodes, int *nedges)
{
    GRAPH(comm, "MPI_Graphdims_get", PMPI_Graphdims_get(comm, nnodes, nedges));
    *nnodes = g->n_nodes;
    *nedges = g->index[g->n_nodes - 1];
    return MPI_SUCCESS;
}

int MPI_Graph_get(MPI_Comm comm, int maxindex, int maxedges, int index[],
                  int edges[])
{
    GRAPH(comm, "MPI_Graph_get",
          PMPI_Graph_get(comm, maxindex, maxedges, index, edges));
    int n = g->index[g->n_nodes - 1];
    copy_to(index, g->index, maxindex < g->n_nodes ? maxindex : g->n_nodes);
    copy_to(edges, g->edge, maxedges < n ? maxedges : n);
    return MPI_SUCCESS;
}

int MPI_Graph_neighbors_count(MPI_Comm comm, int rank, int *nneighbors)
{
    GRAPH(comm, "MPI_Graph_neighbors_count",
          PMPI_Graph_neighbors_count(comm, rank, nneighbors));
    if (rank < 0 || rank >= g->n_nodes)
        return mp_fail(c, MPI_ERR_RANK, "MPI_Graph_neighbors_count: no rank %d",
                       rank);
    *nneighbors = g->index[rank] - first_edge(g, rank);
    return MPI_SUCCESS;
}

int MPI_Graph_neighbors(MPI_Comm comm, int rank, int maxneighbors,
                        int neighbors[])
{
    GRAPH(comm, "MPI_Graph_neighbors",
          PMPI_Graph_neighbors(comm, rank, maxneighbors, neighbors));
    if (rank < 0 || rank >= g->n_nodes)
        return mp_fail(c, MPI_ERR_RANK, "MPI_Graph_neighbors: no rank %d",
                       rank);
    int at = first_edge(g, rank), n = g->index[rank] - at;
    copy_to(neighbors, g->edge + at, maxneighbors < n ? maxneighbors : n);
    return MPI_SUCCESS;
}
