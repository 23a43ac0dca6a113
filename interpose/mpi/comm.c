/* SPDX-License-Identifier: Apache-2.0 */
/*
 * comm.c - communicators of the emulated world, by handle.
 */
#include "mpi/handle.h"

#include <stdlib.h>
#include <string.h>

static struct {
    sc_arena memory;
    sc_map by_handle; /* mp_comm */
} table;

static mp_comm *find(MPI_Comm c)
{
    uint32_t at = 0;
    return sc_map_next_ptr(&table.by_handle, sc_mix(handle_bits(c)), &at);
}

mp_comm *mp_find(MPI_Comm c)
{
    if (!mp.ready) return NULL;
    mp_lock();
    mp_comm *found = find(c);
    mp_unlock();
    return found;
}

mp_comm *mp_ours(MPI_Comm c)
{
    mp_comm *m = mp_find(c);
    return m && m->n > 1 ? m : NULL;
}

static void enter(mp_comm *m)
{
    if (!sc_map_add_ptr(&table.by_handle, &table.memory,
                        sc_mix(handle_bits(m->handle)), m))
        live_die(mp.l, "out of memory");
}

static void leave(const mp_comm *m)
{
    sc_map_remove_ptr(&table.by_handle, sc_mix(handle_bits(m->handle)), m);
}

void mp_comm_hold(mp_comm *c)
{
    mp_lock();
    c->refs++;
    mp_unlock();
}

void mp_comm_drop(mp_comm *c)
{
    mp_lock();
    uint32_t left = --c->refs;
    mp_unlock();
    if (left) return;
    free((uint32_t *)c->rank);
    free(c->real);
    free(c->cart.dims);
    free(c->cart.periods);
    mp_comm_free_graph(c);
    free(c);
}

/* Positions of the real ranks among the members. */
static void find_real(mp_comm *c)
{
    c->real = mp_alloc(live_config(mp.l)->n_real * sizeof *c->real);
    c->n_real = live_members_real(mp.l, c->rank, c->n, c->real);
}

/* `rank` [n] is copied; NULL: the world. */
static mp_comm *new_comm(MPI_Comm handle, const uint32_t *rank, uint32_t n,
                         uint32_t me, uint64_t context)
{
    size_t size = n * sizeof *rank;
    if (rank) rank = memcpy(mp_alloc(size), rank, size);
    mp_comm *c = mp_alloc(sizeof *c);
    *c = (mp_comm){.handle = handle,
                   .probed_tag = -1,
                   .n = n,
                   .me = me,
                   .rank = rank,
                   .context = context,
                   .refs = 1};
    find_real(c);
    c->group = n > 1 ? live_group(mp.l, rank, n, context) : 0;
    c->declared = n > 1 ? live_declare(mp.l, rank, n) : LIVE_ANY;
    mp_lock();
    enter(c);
    mp_unlock();
    return c;
}

void mp_comm_start(void)
{
    mp.world =
        new_comm(MPI_COMM_WORLD, NULL, live_world(mp.l), live_rank(mp.l), 0);
}

uint64_t mp_context(mp_comm *c)
{
    return sc_mix(c->context ^ sc_mix(++c->n_made));
}

int mp_comm_make(mp_comm *from, const uint32_t *rank, uint32_t n, uint32_t me,
                 uint64_t context, MPI_Comm *out)
{
    if (!n || (!rank && from->me >= n)) {
        *out = MPI_COMM_NULL;
        return MPI_SUCCESS;
    }
    int code = PMPI_Comm_split(from->handle, 0, 0, out);
    if (code != MPI_SUCCESS) return code;
    uint32_t *first = mp_alloc(n * sizeof *first);
    for (uint32_t i = 0; !rank && i < n; i++) first[i] = mp_world_rank(from, i);
    new_comm(*out, rank ? rank : first, n, rank ? me : from->me, context);
    free(first);
    return MPI_SUCCESS;
}

mp_comm *mp_comm_twin(mp_comm *from, MPI_Comm handle, bool topology)
{
    mp_comm *c =
        new_comm(handle, from->rank, from->n, from->me, mp_context(from));
    if (topology && from->graph.there) mp_comm_set_graph(c, &from->graph);
    if (topology && from->cart.there)
        mp_comm_set_cart(c, from->cart.n, from->cart.dims, from->cart.periods);
    return c;
}

void mp_comm_set_cart(mp_comm *c, int n, const int *dims, const int *periods)
{
    size_t size = (size_t)n * sizeof *dims;
    c->cart.there = true;
    c->cart.n = n;
    if (!n) return;
    c->cart.dims = memcpy(mp_alloc(size), dims, size);
    c->cart.periods = memcpy(mp_alloc(size), periods, size);
}

bool mp_is_real(const mp_comm *c, uint32_t member)
{
    const live_members m = mp_members(c);
    return live_members_is_real(&m, member);
}

/* For the size of the universe, MPICH would start a process manager. */
int MPI_Comm_get_attr(MPI_Comm comm, int comm_keyval, void *attribute_val,
                      int *flag)
{
    static int universe;
    if (comm_keyval != MPI_UNIVERSE_SIZE || !mp_find(comm))
        return PMPI_Comm_get_attr(comm, comm_keyval, attribute_val, flag);
    universe = (int)live_world(mp.l);
    *(int **)attribute_val = &universe;
    *flag = 1;
    return MPI_SUCCESS;
}

int MPI_Comm_free(MPI_Comm *comm)
{
    mp_comm *m = comm ? mp_find(*comm) : NULL;
    if (!m || m == mp.world) return PMPI_Comm_free(comm);
    if (m->messenger) MPI_Comm_free(&(MPI_Comm){m->messenger->handle});
    mp_lock();
    leave(m);
    mp_unlock();
    mp_comm_drop(m);
    return PMPI_Comm_free(comm);
}

int MPI_Comm_disconnect(MPI_Comm *comm)
{
    mp_comm *m = comm ? mp_find(*comm) : NULL;
    if (!m || m == mp.world) return PMPI_Comm_disconnect(comm);
    return MPI_Comm_free(comm);
}
