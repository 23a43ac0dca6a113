/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hold.c - types, arrays and operations of collectives that end after their
 * calls: the program may free all of them at once, as mpi4py does.
 */
#include "mpi/mp.h"

#include <stdlib.h>
#include <string.h>

/* ---- user-defined operations --------------------------------------------- */

typedef struct used_op {
    MPI_Op op;
    uint32_t uses;
    bool freed; /* by the program; by us after the last use */
    struct used_op *next;
} used_op;

static used_op *ops;

static used_op *find_op(MPI_Op op)
{
    used_op *u = ops;
    while (u && u->op != op) u = u->next;
    return u;
}

static void hold_op(MPI_Op op)
{
    mp_lock();
    used_op *u = find_op(op);
    if (!u) {
        u = mp_alloc(sizeof *u);
        *u = (used_op){.op = op, .next = ops};
        ops = u;
    }
    u->uses++;
    mp_unlock();
}

static void release_op(MPI_Op op)
{
    mp_lock();
    used_op **at = &ops;
    while ((*at)->op != op) at = &(*at)->next;
    used_op *u = *at;
    if (--u->uses == 0) {
        *at = u->next;
        if (u->freed) PMPI_Op_free(&u->op);
        free(u);
    }
    mp_unlock();
}

int MPI_Op_free(MPI_Op *op)
{
    mp_lock();
    used_op *u = mp.ready && op ? find_op(*op) : NULL;
    if (u) u->freed = true;
    mp_unlock();
    if (!u) return PMPI_Op_free(op);
    *op = MPI_OP_NULL;
    return MPI_SUCCESS;
}

/* ---- types and arrays ---------------------------------------------------- */

static void hold_type(mp_call *k, MPI_Datatype *t)
{
    mp_type y;
    if (*t == MPI_DATATYPE_NULL || mp_type_of(*t, &y) != MPI_SUCCESS ||
        y.flat || mp_type_is_named(*t)) /* a copy is no operand of MPI_SUM */
        return;
    if (PMPI_Type_dup(*t, &k->held[k->n_held]) == MPI_SUCCESS)
        *t = k->held[k->n_held++];
}

/* Replaces an array of n elements by a copy. */
static void hold_list(mp_call *k, int at, const void *list, size_t size)
{
    if (list) k->lists[at] = memcpy(mp_alloc(size), list, size);
}

void mp_call_hold(mp_call *k)
{
    uint32_t n = k->c->n;
    bool rooted = k->kind == SC_GATHER || k->kind == SC_SCATTER;
    /* Arrays are significant only at the root, and not in place. */
    bool counts = !rooted || k->root == (int)k->c->me;
    size_t ints = n * sizeof(int), types = n * sizeof(MPI_Datatype);
    k->held =
        mp_alloc((2 + (k->recv_types ? 2 * (size_t)n : 0)) * sizeof *k->held);
    if (k->early) hold_op(k->op);
    if (!k->send_types) hold_type(k, &k->send_type);
    if (!k->recv_types) hold_type(k, &k->recv_type);
    if (counts && k->send != MPI_IN_PLACE) {
        hold_list(k, 0, k->sends, ints);
        hold_list(k, 1, k->send_at, ints);
        hold_list(k, 2, k->send_types, types);
        k->sends = k->lists[0], k->send_at = k->lists[1];
        k->send_types = k->lists[2];
    }
    if (counts) {
        hold_list(k, 3, k->recvs, ints);
        hold_list(k, 4, k->recv_at, ints);
        hold_list(k, 5, k->recv_types, types);
        k->recvs = k->lists[3], k->recv_at = k->lists[4];
        k->recv_types = k->lists[5];
    }
    for (int side = 2; side <= 5; side += 3)
        for (uint32_t i = 0; k->lists[side] && i < n; i++)
            hold_type(k, (MPI_Datatype *)k->lists[side] + i);
}

void mp_call_release(mp_call *k)
{
    if (!k->held) return; /* nothing was held */
    if (k->early) release_op(k->op);
    for (uint32_t i = 0; i < k->n_held; i++) PMPI_Type_free(&k->held[i]);
    free(k->held);
    for (int i = 0; i < 6; i++) free(k->lists[i]);
}
