/* SPDX-License-Identifier: Apache-2.0 */
/*
 * group.c - groups of world ranks, which are lists; while a world is emulated
 * all of the program's groups are handled here.
 */
#include "mpi/handle.h"

#include <stdlib.h>
#include <string.h>

static struct {
    mp_group **slot;
    uint32_t n, cap;
} table;

static const mp_group empty;

const mp_group *mp_group_of(MPI_Group g)
{
    if (!mp.ready) return NULL;
    if (g == MPI_GROUP_EMPTY) return &empty;
    uint32_t i;
    if (!handle_is(handle_bits(g), HANDLE_GROUP, &i)) return NULL;
    mp_lock();
    const mp_group *found = i < table.n ? table.slot[i] : NULL;
    mp_unlock();
    return found;
}

/* Takes `rank` over. */
static int make_group(uint32_t *rank, uint32_t n, MPI_Group *out)
{
    if (!n) {
        free(rank);
        *out = MPI_GROUP_EMPTY;
        return MPI_SUCCESS;
    }
    mp_group *g = mp_alloc(sizeof *g);
    *g = (mp_group){n, rank};
    mp_lock();
    uint32_t i = 0;
    while (i < table.n && table.slot[i]) i++;
    if (i == table.cap) {
        table.cap = table.cap ? 2 * table.cap : 16;
        mp_group **more = mp_alloc(table.cap * sizeof *more);
        if (table.n) memcpy(more, table.slot, table.n * sizeof *more);
        free(table.slot);
        table.slot = more;
    }
    if (i == table.n) table.n++;
    table.slot[i] = g;
    mp_unlock();
    *out = handle_make(MPI_Group, HANDLE_GROUP, i);
    return MPI_SUCCESS;
}

uint32_t mp_group_find(const mp_group *g, uint32_t rank)
{
    for (uint32_t i = 0; i < g->n; i++)
        if (g->rank[i] == rank) return i;
    return UINT32_MAX;
}

static int no_group(const char *name)
{
    return mp_fail(NULL, MPI_ERR_GROUP, "%s: no valid group", name);
}

int mp_group_of_comm(const mp_comm *c, MPI_Group *out)
{
    uint32_t n = c ? c->n : 1, *rank = mp_alloc(n * sizeof *rank);
    for (uint32_t i = 0; i < n; i++)
        rank[i] = c ? mp_world_rank(c, i) : live_rank(mp.l);
    return make_group(rank, n, out);
}

int MPI_Comm_group(MPI_Comm comm, MPI_Group *group)
{
    if (!mp.ready || comm == MPI_COMM_NULL) return PMPI_Comm_group(comm, group);
    return mp_group_of_comm(mp_find(comm), group);
}

int MPI_Group_free(MPI_Group *group)
{
    if (!mp.ready) return PMPI_Group_free(group);
    const mp_group *g = mp_group_of(*group);
    if (!g) return no_group("MPI_Group_free");
    uint32_t i;
    if (handle_is(handle_bits(*group), HANDLE_GROUP, &i)) {
        mp_lock();
        free(table.slot[i]->rank);
        free(table.slot[i]);
        table.slot[i] = NULL;
        mp_unlock();
    }
    *group = MPI_GROUP_NULL;
    return MPI_SUCCESS;
}

int MPI_Group_size(MPI_Group group, int *size)
{
    if (!mp.ready) return PMPI_Group_size(group, size);
    const mp_group *g = mp_group_of(group);
    if (!g) return no_group("MPI_Group_size");
    *size = (int)g->n;
    return MPI_SUCCESS;
}

int MPI_Group_rank(MPI_Group group, int *rank)
{
    if (!mp.ready) return PMPI_Group_rank(group, rank);
    const mp_group *g = mp_group_of(group);
    if (!g) return no_group("MPI_Group_rank");
    uint32_t i = mp_group_find(g, live_rank(mp.l));
    *rank = i == UINT32_MAX ? MPI_UNDEFINED : (int)i;
    return MPI_SUCCESS;
}

int MPI_Group_translate_ranks(MPI_Group group1, int n, const int ranks1[],
                              MPI_Group group2, int ranks2[])
{
    if (!mp.ready)
        return PMPI_Group_translate_ranks(group1, n, ranks1, group2, ranks2);
    const mp_group *a = mp_group_of(group1), *b = mp_group_of(group2);
    if (!a || !b) return no_group("MPI_Group_translate_ranks");
    for (int i = 0; i < n; i++) {
        int r = ranks1[i];
        ranks2[i] = r;
        if (r == MPI_PROC_NULL) continue;
        if (r < 0 || (uint32_t)r >= a->n)
            return mp_fail(NULL, MPI_ERR_RANK,
                           "MPI_Group_translate_ranks: no rank %d in a group "
                           "of %u",
                           r, a->n);
        /* Equal groups, the usual case of large ones, need no search. */
        uint32_t at = (uint32_t)r < b->n && b->rank[r] == a->rank[r]
                          ? (uint32_t)r
                          : mp_group_find(b, a->rank[r]);
        ranks2[i] = at == UINT32_MAX ? MPI_UNDEFINED : (int)at;
    }
    return MPI_SUCCESS;
}

static int compare(const mp_group *a, const mp_group *b)
{
    if (a->n != b->n) return MPI_UNEQUAL;
    if (!a->n || !memcmp(a->rank, b->rank, a->n * sizeof *a->rank))
        return MPI_IDENT;
    for (uint32_t i = 0; i < a->n; i++)
        if (mp_group_find(b, a->rank[i]) == UINT32_MAX) return MPI_UNEQUAL;
    return MPI_SIMILAR;
}

int MPI_Group_compare(MPI_Group group1, MPI_Group group2, int *result)
{
    if (!mp.ready) return PMPI_Group_compare(group1, group2, result);
    const mp_group *a = mp_group_of(group1), *b = mp_group_of(group2);
    if (!a || !b) return no_group("MPI_Group_compare");
    *result = compare(a, b);
    return MPI_SUCCESS;
}

int MPI_Comm_compare(MPI_Comm comm1, MPI_Comm comm2, int *result)
{
    if (comm1 == MPI_COMM_NULL || comm2 == MPI_COMM_NULL)
        return PMPI_Comm_compare(comm1, comm2, result);
    const mp_comm *a = mp_find(comm1), *b = mp_find(comm2);
    if (!a || !b || a == b || (a->n == 1 && b->n == 1))
        return a && b   ? PMPI_Comm_compare(comm1, comm2, result)
               : a || b ? (*result = (a ? a : b)->n == 1 ? MPI_CONGRUENT
                                                         : MPI_UNEQUAL,
                           MPI_SUCCESS)
                        : PMPI_Comm_compare(comm1, comm2, result);
    MPI_Group g1, g2;
    MPI_Comm_group(comm1, &g1);
    MPI_Comm_group(comm2, &g2);
    *result = compare(mp_group_of(g1), mp_group_of(g2));
    if (*result == MPI_IDENT) *result = MPI_CONGRUENT;
    MPI_Group_free(&g1);
    MPI_Group_free(&g2);
    return MPI_SUCCESS;
}

typedef enum joint { UNION, INTERSECTION, DIFFERENCE } joint;

/* The members of the first group, all or those that are (not) in the second, and
 * for a union the others of the second. */
static int combine(MPI_Group group1, MPI_Group group2, joint how,
                   const char *name, MPI_Group *newgroup)
{
    const mp_group *a = mp_group_of(group1), *b = mp_group_of(group2);
    if (!a || !b) return no_group(name);
    uint32_t *r = mp_alloc((a->n + b->n) * sizeof *r), n = 0;
    for (uint32_t i = 0; i < a->n; i++)
        if (how == UNION || (mp_group_find(b, a->rank[i]) != UINT32_MAX) ==
                                (how == INTERSECTION))
            r[n++] = a->rank[i];
    for (uint32_t i = 0; how == UNION && i < b->n; i++)
        if (mp_group_find(a, b->rank[i]) == UINT32_MAX) r[n++] = b->rank[i];
    return make_group(r, n, newgroup);
}

#define COMBINES(f, how)                                                 \
    int MPI_##f(MPI_Group group1, MPI_Group group2, MPI_Group *newgroup) \
    {                                                                    \
        if (!mp.ready) return PMPI_##f(group1, group2, newgroup);        \
        return combine(group1, group2, how, "MPI_" #f, newgroup);        \
    }

COMBINES(Group_union, UNION)
COMBINES(Group_intersection, INTERSECTION)
COMBINES(Group_difference, DIFFERENCE)

/* The members named by position, or all others. */
static int choose(const mp_group *g, const uint32_t *at, uint32_t n, bool in,
                  const char *name, MPI_Group *newgroup)
{
    bool *named = memset(mp_alloc(g->n), 0, g->n ? g->n : 1);
    uint32_t *r = mp_alloc((g->n > n ? g->n : n) * sizeof *r), k = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (at[i] >= g->n || named[at[i]]) {
            free(named);
            free(r);
            return mp_fail(NULL, MPI_ERR_RANK,
                           "%s: rank %d twice, or not in a group of %u", name,
                           (int)at[i], g->n);
        }
        named[at[i]] = true;
        if (in) r[k++] = g->rank[at[i]];
    }
    for (uint32_t i = 0; !in && i < g->n; i++)
        if (!named[i]) r[k++] = g->rank[i];
    free(named);
    return make_group(r, k, newgroup);
}

static int by_list(MPI_Group group, int n, const int *ranks, bool in,
                   const char *name, MPI_Group *newgroup)
{
    const mp_group *g = mp_group_of(group);
    if (!g || n < 0) return no_group(name);
    uint32_t *at = mp_alloc((size_t)n * sizeof *at);
    for (int i = 0; i < n; i++) at[i] = (uint32_t)ranks[i];
    int code = choose(g, at, (uint32_t)n, in, name, newgroup);
    free(at);
    return code;
}

/* Triplets (first, last, stride) -> positions. */
static int by_ranges(MPI_Group group, int n, int ranges[][3], bool in,
                     const char *name, MPI_Group *newgroup)
{
    const mp_group *g = mp_group_of(group);
    if (!g) return no_group(name);
    uint32_t *at = mp_alloc(((size_t)g->n + 1) * sizeof *at), k = 0;
    for (int i = 0; i < n; i++) {
        int step = ranges[i][2];
        for (int r = ranges[i][0];
             step && k <= g->n &&
             (step > 0 ? r <= ranges[i][1] : r >= ranges[i][1]);
             r += step)
            at[k++] = (uint32_t)r;
        if (!step || k > g->n) {
            free(at);
            return mp_fail(NULL, MPI_ERR_ARG,
                           "%s: a stride of 0, or ranks "
                           "twice",
                           name);
        }
    }
    int code = choose(g, at, k, in, name, newgroup);
    free(at);
    return code;
}

#define CHOOSES(f, list, by, in)                                   \
    int MPI_##f(MPI_Group group, int n, list, MPI_Group *newgroup) \
    {                                                              \
        if (!mp.ready) return PMPI_##f(group, n, ranks, newgroup); \
        return by(group, n, ranks, in, "MPI_" #f, newgroup);       \
    }

CHOOSES(Group_incl, const int ranks[], by_list, true)
CHOOSES(Group_excl, const int ranks[], by_list, false)
CHOOSES(Group_range_incl, int ranks[][3], by_ranges, true)
CHOOSES(Group_range_excl, int ranks[][3], by_ranges, false)
