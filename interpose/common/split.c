/* SPDX-License-Identifier: Apache-2.0 */
/*
 * split.c - who is in a part of a split communicator.
 *
 * Real members exchange their colours and keys. The first of them asks scouts
 * for those of emulated members, and tells the other real ones.
 */
#include "common/split.h"

#include "common/scouts.h"

#include <stdlib.h>
#include <string.h>

/* An operation of the real members, whose data this rank pushes. */
static live_ticket meet(live *l, const live_op *op, const void *data,
                        size_t len)
{
    live_ticket k = live_post(l, op, live_now(l));
    if (data) live_push(l, k, data, len);
    live_wait(l, k);
    return k;
}

void live_tell_real(live *l, const live_members *m, const void *mine,
                    size_t len, live_taker *take, void *x)
{
    const live_op op = {.coll = SC_ALL_GATHER,
                        .group = m->group,
                        .bytes = m->n,
                        .silent = true};
    live_ticket k = 0;
    if (m->n_real > 1) k = meet(l, &op, len ? mine : "", len);
    for (uint32_t i = 0; i < m->n_real; i++) {
        size_t given = len;
        const void *p = mine;
        if (m->real[i] != m->me)
            p = live_peer(l, k, live_members_rank(m, m->real[i]), &given);
        if (p) take(x, m->real[i], p, given);
    }
    if (m->n_real > 1) live_drop(l, k);
}

static void take_choice(void *x, uint32_t member, const void *p, size_t len)
{
    sc_emu_choice *all = x;
    if (len == sizeof *all) memcpy(&all[member], p, sizeof *all);
}

/* The first real member has found the choices of all. */
static void tell_all(live *l, const live_members *m, sc_emu_choice *all)
{
    if (m->n_real == 1) return;
    bool mine = m->real[0] == m->me;
    size_t len = sizeof *all * m->n, got = 0;
    uint32_t root = live_members_rank(m, m->real[0]);
    const live_op op = {.coll = SC_BROADCAST,
                        .group = m->group,
                        .peer = root,
                        .bytes = len,
                        .silent = true};
    live_ticket k = meet(l, &op, mine ? all : NULL, len);
    const void *p = live_peer(l, k, root, &got);
    if (!mine && p && got == len) memcpy(all, p, len);
    live_drop(l, k);
}

/* ---- emulated members ------------------------------------------------------ */

typedef struct asked {
    live *l;
    const live_members *m;
    uint64_t split;
} asked;

static void ask_scouts(void *x, const uint32_t *at, uint32_t n,
                       sc_emu_choice *all)
{
    const asked *a = x;
    uint32_t *rank = live_alloc(a->l, n, sizeof *rank);
    sc_emu_choice *told = live_alloc(a->l, n, sizeof *told);
    for (uint32_t i = 0; i < n; i++) rank[i] = live_members_rank(a->m, at[i]);
    live_scouts_ask(a->split, rank, n, told);
    for (uint32_t i = 0; i < n; i++)
        if (told[i].known) all[at[i]] = told[i];
    free(rank);
    free(told);
}

static void find_all(live *l, const live_members *m, const char *call,
                     uint64_t split, sc_emu_choice *all)
{
    asked a = {l, m, split};
    sc_emu_colours_found f;
    sc_err err;
    sc_err_init(&err);
    if (sc_emu_colours(all, m->n, ask_scouts, &a, &f, &err) != SC_OK)
        live_die(l, "%s: %s; %s", call, err.d[0].msg, err.d[0].hint);
    if (f.n_silent > 0)
        live_warn(l,
                  "%s: %u of %u members could not be asked which colours they "
                  "give; theirs are those of a rule that all others follow "
                  "(more real ranks, or --ranks all, make them known)",
                  call, f.n_silent, m->n);
}

uint32_t live_split(live *l, const live_members *m, const char *call,
                    uint64_t split, sc_emu_choice mine, int32_t none,
                    uint32_t *member)
{
    sc_emu_choice *all = live_alloc(l, m->n, sizeof *all);
    mine.known = true;
    all[m->me] = mine;
    live_scouts_tell(l, split, mine);
    if (m->n_real == m->n || !live_scouts_kept(split, all, m->n)) {
        live_tell_real(l, m, &mine, sizeof mine, take_choice, all);
        if (m->n_real < m->n) {
            if (m->real[0] == m->me) find_all(l, m, call, split, all);
            tell_all(l, m, all);
            live_scouts_keep(split, all, m->n);
        }
    }
    uint32_t n = 0;
    sc_err err;
    sc_err_init(&err);
    if (mine.colour != none &&
        sc_emu_part(all, m->n, m->me, member, &n, &err) != SC_OK)
        live_die(l, "%s", err.d[0].msg);
    free(all);
    return n;
}
