/* SPDX-License-Identifier: Apache-2.0 */
/* derive.c - communicators derived from communicators. */
#include "common/split.h"
#include "mpi/mp.h"

#include <stdlib.h>
#include <string.h>

int MPI_Comm_size(MPI_Comm comm, int *size)
{
    const mp_comm *c = mp_ours(comm);
    if (!c) return PMPI_Comm_size(comm, size);
    *size = (int)c->n;
    return MPI_SUCCESS;
}

int MPI_Comm_rank(MPI_Comm comm, int *rank)
{
    const mp_comm *c = mp_ours(comm);
    if (!c) return PMPI_Comm_rank(comm, rank);
    *rank = (int)c->me;
    return MPI_SUCCESS;
}

int MPI_Comm_dup(MPI_Comm comm, MPI_Comm *newcomm)
{
    mp_comm *c = mp_ours(comm);
    int code = PMPI_Comm_dup(comm, newcomm);
    if (c && code == MPI_SUCCESS) mp_comm_twin(c, *newcomm, true);
    return code;
}

int MPI_Comm_dup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm *newcomm)
{
    mp_comm *c = mp_ours(comm);
    int code = PMPI_Comm_dup_with_info(comm, info, newcomm);
    if (c && code == MPI_SUCCESS) mp_comm_twin(c, *newcomm, true);
    return code;
}

/* Completes at once, so its request is already done. */
int MPI_Comm_idup(MPI_Comm comm, MPI_Comm *newcomm, MPI_Request *request)
{
    mp_comm *c = mp_ours(comm);
    if (!c) return PMPI_Comm_idup(comm, newcomm, request);
    int code = MPI_Comm_dup(comm, newcomm);
    if (code != MPI_SUCCESS) return code;
    mp_request *r = mp_request_new(request);
    r->state = MP_DONE;
    r->msg = (mp_message){.c = c, .send = true, .peer = MPI_PROC_NULL};
    mp_comm_hold(c);
    return MPI_SUCCESS;
}

/* Makes a communicator of positions in `c`. */
static int part(mp_comm *c, uint32_t *member, uint32_t n, uint64_t context,
                MPI_Comm *out)
{
    uint32_t me = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (member[i] == c->me) me = i;
        member[i] = mp_world_rank(c, member[i]);
    }
    if (n) context = sc_mix(context + member[0]);
    return mp_comm_make(c, member, n, me, context, out);
}

static int split(mp_comm *c, int colour, int key, MPI_Comm *newcomm)
{
    live_enter(mp.l);
    uint32_t *member = mp_alloc(c->n * sizeof *member);
    uint64_t context = mp_context(c);
    const live_members m = mp_members(c);
    const sc_emu_choice mine = {.colour = colour, .key = key};
    uint32_t n = live_split(mp.l, &m, "MPI_Comm_split", context, mine,
                            MPI_UNDEFINED, member);
    int code = part(c, member, n, context, newcomm);
    free(member);
    live_leave(mp.l);
    return code;
}

int MPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm *newcomm)
{
    mp_comm *c = mp_ours(comm);
    if (!c) return PMPI_Comm_split(comm, color, key, newcomm);
    if (color < 0 && color != MPI_UNDEFINED)
        return mp_fail(c, MPI_ERR_ARG, "MPI_Comm_split: colour %d", color);
    return split(c, color, key, newcomm);
}

/* Hosts are colours. */
int MPI_Comm_split_type(MPI_Comm comm, int split_type, int key, MPI_Info info,
                        MPI_Comm *newcomm)
{
    mp_comm *c = mp_ours(comm);
    if (!c) return PMPI_Comm_split_type(comm, split_type, key, info, newcomm);
    if (split_type == MPI_UNDEFINED)
        return split(c, MPI_UNDEFINED, key, newcomm);
    if (split_type != MPI_COMM_TYPE_SHARED)
        return mp_refuse(
            comm,
            "MPI_Comm_split_type: only MPI_COMM_TYPE_SHARED is supported");
    const sc_hw *hw = live_config(mp.l)->hw;
    uint32_t size = hw->host_size ? hw->host_size : 1;
    return split(c, (int)(mp_world_rank(c, c->me) / size), key, newcomm);
}

/* Makes the communicator of a group's members in `c`. */
static int by_group(mp_comm *c, MPI_Group group, uint64_t context,
                    const char *name, MPI_Comm *newcomm)
{
    const mp_group *g = mp_group_of(group);
    if (!g) return mp_fail(c, MPI_ERR_GROUP, "%s: no valid group", name);
    uint32_t me = mp_group_find(g, live_rank(mp.l));
    if (me == UINT32_MAX) {
        *newcomm = MPI_COMM_NULL;
        return MPI_SUCCESS;
    }
    return mp_comm_make(c, g->rank, g->n, me, sc_mix(context + g->rank[0]),
                        newcomm);
}

/* A communicator of one rank, because groups are handled here. */
static int of_one(MPI_Comm comm, MPI_Group group, MPI_Comm *newcomm)
{
    const mp_group *g = mp_group_of(group);
    bool in = g && mp_group_find(g, live_rank(mp.l)) != UINT32_MAX;
    return PMPI_Comm_split(comm, in ? 0 : MPI_UNDEFINED, 0, newcomm);
}

int MPI_Comm_create(MPI_Comm comm, MPI_Group group, MPI_Comm *newcomm)
{
    if (!mp.ready) return PMPI_Comm_create(comm, group, newcomm);
    mp_comm *c = mp_ours(comm);
    if (!c) return of_one(comm, group, newcomm);
    return by_group(c, group, mp_context(c), "MPI_Comm_create", newcomm);
}

int MPI_Comm_create_group(MPI_Comm comm, MPI_Group group, int tag,
                          MPI_Comm *newcomm)
{
    if (!mp.ready) return PMPI_Comm_create_group(comm, group, tag, newcomm);
    mp_comm *c = mp_ours(comm);
    if (!c) return of_one(comm, group, newcomm);
    return by_group(c, group, sc_mix(c->context ^ sc_mix(~(uint64_t)tag)),
                    "MPI_Comm_create_group", newcomm);
}
