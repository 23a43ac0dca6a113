/* SPDX-License-Identifier: Apache-2.0 */
/*
 * split.c - MPI_Comm_split: who is in a part.
 *
 * Real members exchange their colours and keys. The first of them asks scouts
 * for those of emulated members, and tells the other real ones.
 */
#include "mpi/split.h"

#include "common/scouts.h"
#include "mpi/comm.h"

#include <stdlib.h>
#include <string.h>

static void take_choice(void *x, uint32_t member, const void *p, size_t len)
{
    sc_emu_choice *all = x;
    if (len == sizeof *all) memcpy(&all[member], p, sizeof *all);
}

/* The first real member has found the choices of all. */
static void tell_all(const mp_comm *c, sc_emu_choice *all)
{
    if (c->n_real == 1) return;
    uint32_t root = mp_world_rank(c, c->real[0]);
    uint64_t len = sizeof *all * (uint64_t)c->n;
    live_op op = {.coll = SC_BROADCAST,
                  .group = c->group,
                  .peer = root,
                  .bytes = len,
                  .silent = true};
    live_ticket k = live_post(mp.l, &op, live_now(mp.l));
    if (c->me_real == 0) live_push(mp.l, k, all, len);
    live_wait(mp.l, k);
    size_t got = 0;
    const void *p = live_peer(mp.l, k, root, &got);
    if (c->me_real != 0 && p && got == len) memcpy(all, p, len);
    live_drop(mp.l, k);
}

/* ---- emulated members ----------------------------------------------------- */

typedef struct asked {
    const mp_comm *c;
    uint64_t split;
} asked;

static void ask_scouts(void *x, const uint32_t *at, uint32_t n,
                       sc_emu_choice *all)
{
    const asked *a = x;
    uint32_t *rank = mp_alloc(n * sizeof *rank);
    sc_emu_choice *told = mp_alloc(n * sizeof *told);
    for (uint32_t i = 0; i < n; i++) rank[i] = mp_world_rank(a->c, at[i]);
    live_scouts_ask(a->split, rank, n, told);
    for (uint32_t i = 0; i < n; i++)
        if (told[i].known) all[at[i]] = told[i];
    free(rank);
    free(told);
}

static void find_all(const mp_comm *c, uint64_t split, sc_emu_choice *all)
{
    asked a = {c, split};
    sc_emu_colours_found f;
    sc_err err;
    sc_err_init(&err);
    if (sc_emu_colours(all, c->n, ask_scouts, &a, &f, &err) != SC_OK)
        live_die(mp.l, "MPI_Comm_split: %s; %s", err.d[0].msg, err.d[0].hint);
    if (f.n_silent > 0)
        live_warn(mp.l,
                  "MPI_Comm_split: %u of %u members could not be asked which "
                  "colours they give; theirs are those of a rule that all "
                  "others follow",
                  f.n_silent, c->n);
}

uint32_t split_members(mp_comm *c, uint64_t split, sc_emu_choice mine,
                       uint32_t *member)
{
    sc_emu_choice *all = mp_alloc(c->n * sizeof *all);
    memset(all, 0, c->n * sizeof *all);
    mine.known = true;
    all[c->me] = mine;
    live_scouts_tell(mp.l, split, mine);
    if (c->n_real == c->n || !live_scouts_kept(split, all, c->n)) {
        comm_tell_real(c, &mine, sizeof mine, take_choice, all);
        if (c->n_real < c->n) {
            if (c->me_real == 0) find_all(c, split, all);
            tell_all(c, all);
            live_scouts_keep(split, all, c->n);
        }
    }
    uint32_t n = 0;
    sc_err err;
    sc_err_init(&err);
    if (mine.colour != MPI_UNDEFINED &&
        sc_emu_part(all, c->n, c->me, member, &n, &err) != SC_OK)
        live_die(mp.l, "%s", err.d[0].msg);
    free(all);
    return n;
}
