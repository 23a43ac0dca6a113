/* SPDX-License-Identifier: Apache-2.0 */
/* moves.c - the data of a collective, by one table. */
#include "common/moves.h"

#include <stdlib.h>
#include <string.h>

typedef enum source {
    NOTHING,
    ALL,    /* the block of every member, reduced */
    ROOT,   /* that of the root */
    MEMBER, /* the i-th result is from the i-th member */
} source;

/* The blocks of a result, by operation. */
static const struct {
    source from;
    bool mine; /* the source has a block for each member: this rank's */
    bool at_root;
} rules[] = {
    [SC_ALL_REDUCE] = {.from = ALL},
    [SC_REDUCE] = {.from = ALL, .at_root = true},
    [SC_REDUCE_SCATTER] = {.from = ALL, .mine = true},
    [SC_BROADCAST] = {.from = ROOT},
    [SC_SCATTER] = {.from = ROOT, .mine = true},
    [SC_ALL_GATHER] = {.from = MEMBER},
    [SC_GATHER] = {.from = MEMBER, .at_root = true},
    [SC_ALL_TO_ALL] = {.from = MEMBER, .mine = true},
    [SC_BARRIER] = {.from = NOTHING},
};

/* ---- members ------------------------------------------------------------- */

live_members *live_members_new(live *l, const uint32_t *rank, uint32_t n,
                               uint64_t instance)
{
    const sc_emu_config *c = live_config(l);
    live_members *m = calloc(1, sizeof *m);
    if (!m || !(m->rank = calloc(n, sizeof *m->rank)) ||
        !(m->real = calloc(c->n_real, sizeof *m->real)))
        live_die(l, "out of memory");
    m->n = n;
    m->me = n;
    for (uint32_t i = 0; i < n; i++) {
        m->rank[i] = rank[i];
        if (rank[i] == live_rank(l)) m->me = i;
        for (uint32_t k = 0; k < c->n_real; k++)
            if (c->real[k] == rank[i]) m->real[m->n_real++] = i;
    }
    if (m->me == n) {
        live_members_free(m);
        return NULL;
    }
    m->group = live_group(l, rank, n, instance);
    return m;
}

void live_members_free(live_members *m)
{
    if (!m) return;
    free(m->rank);
    free(m->real);
    free(m);
}

bool live_members_is_real(const live_members *m, uint32_t member)
{
    for (uint32_t i = 0; i < m->n_real; i++)
        if (m->real[i] == member) return true;
    return false;
}

/* The real member whose data a member has: itself, or the one it mirrors. */
static uint32_t like(const live_members *m, uint32_t member)
{
    uint32_t before = 0;
    for (uint32_t i = 0; i < m->n_real && m->real[i] <= member; i++) {
        if (m->real[i] == member) return member;
        before++;
    }
    return m->real[(member - before) % m->n_real];
}

/* Whose broadcast it is: an emulated root has the first real member's data. */
static uint32_t giver(const live_moves *x)
{
    return live_members_is_real(x->m, x->root) ? x->root : x->m->real[0];
}

/* ---- blocks of members ---------------------------------------------------- */

/* Several blocks are preceded by their lengths. */
typedef uint64_t part_len;

static void die_lengths(const live_moves *x, uint32_t member, size_t got,
                        size_t want)
{
    live_die(x->l, "rank %u has %zu bytes in %s, rank %u %zu",
             (unsigned)x->m->rank[member], got, sc_coll_names[x->coll],
             (unsigned)live_rank(x->l), want);
}

/* The blocks of this rank that others need; false: none. */
static bool gives(const live_moves *x)
{
    if (rules[x->coll].from == NOTHING) return false;
    if (rules[x->coll].from == ROOT) return giver(x) == x->m->me;
    return x->n_in > 0;
}

void live_moves_push(live_moves *x, live_ticket k)
{
    if (x->m->n_real < 2 || !gives(x)) return;
    const live_block *in = x->in;
    if (x->coll == SC_BROADCAST && x->n_in == 0) in = x->out;
    if (!rules[x->coll].mine) {
        if (in->len) live_push(x->l, k, in->at, in->len);
        return;
    }
    size_t len = x->n_in * sizeof(part_len);
    for (uint32_t i = 0; i < x->n_in; i++) len += in[i].len;
    char *message = malloc(len + 1);
    if (!message) live_die(x->l, "out of memory");
    char *to = message + x->n_in * sizeof(part_len);
    for (uint32_t i = 0; i < x->n_in; i++) {
        part_len n = in[i].len;
        memcpy(message + i * sizeof n, &n, sizeof n);
        if (n) memcpy(to, in[i].at, n);
        to += n;
    }
    live_push(x->l, k, message, len);
    free(message);
}

/* The block that a real member gives this rank. */
static live_block block_of(live_moves *x, live_ticket k, uint32_t member)
{
    const bool mine = rules[x->coll].mine;
    if (member == x->m->me) {
        const live_block *own = x->n_in ? x->in : x->out;
        return x->n_in && mine ? own[x->m->me] : own[0];
    }
    size_t got = 0;
    const void *p = live_peer(x->l, k, x->m->rank[member], &got);

    union {
        const void *in;
        char *out;
    } at = {p};

    if (!mine || !p) return (live_block){at.out, p ? got : 0};
    size_t before = x->m->n * sizeof(part_len);
    part_len n = 0;
    for (uint32_t i = 0; i <= x->m->me; i++) {
        before += n;
        memcpy(&n, at.out + i * sizeof n, sizeof n);
    }
    if (before + n > got) die_lengths(x, member, got, before + n);
    return (live_block){at.out + before, n};
}

/* ---- moving --------------------------------------------------------------- */

/* Integers are sizes, counts and text, which the program needs unchanged. */
static sc_emu_data *data_for(live_moves *x, sc_emu_data *mirror)
{
    const sc_emu_type t = x->type;
    *mirror = (sc_emu_data){.kind = SC_EMU_DATA_MIRROR};
    bool floats = t == SC_EMU_F16 || t == SC_EMU_BF16 || t == SC_EMU_F32 ||
                  t == SC_EMU_F64;
    return floats ? live_data(x->l) : mirror;
}

static void copy(live_moves *x, void *to, const void *from, size_t len)
{
    if (to == from || len == 0) return;
    if (x->mover)
        x->mover->copy(x, to, from, len);
    else
        memmove(to, from, len);
}

/* An emulated member's block: its source, cut or repeated to `len`. */
static void mirror(live_moves *x, live_block to, live_block from)
{
    sc_emu_data same, *d = data_for(x, &same);
    size_t size = sc_emu_type_size(x->type);
    if (from.len == 0) return;
    for (size_t i = 0; i < to.len; i += from.len) {
        size_t n = to.len - i < from.len ? to.len - i : from.len;
        char *at = (char *)to.at + i;
        if (x->mover)
            x->mover->mirror(x, at, from.at, n);
        else
            sc_emu_data_peer(d, from.at, n / size, x->type, at);
    }
}

static bool reduce_all(live_moves *x, live_ticket k)
{
    const live_members *m = x->m;
    const live_block *out = x->out;
    const void *few[8], **real = few;
    sc_emu_data same, *d = data_for(x, &same);
    size_t size = sc_emu_type_size(x->type);
    if (out->len == 0) return true;
    if (m->n_real > 8 && !(real = malloc(m->n_real * sizeof *real)))
        live_die(x->l, "out of memory");
    for (uint32_t i = 0; i < m->n_real; i++) {
        live_block b = block_of(x, k, m->real[i]);
        if (b.len != out->len) die_lengths(x, m->real[i], b.len, out->len);
        real[i] = b.at;
    }
    bool ok =
        x->mover ? x->mover->reduce(x, real, out->len, out->at)
                 : sc_emu_data_reduce(d, real, m->n_real, m->n, out->len / size,
                                      x->type, x->reduce, out->at);
    if (real != few) free(real);
    return ok;
}

static void from_member(live_moves *x, live_ticket k, uint32_t i)
{
    uint32_t peer = like(x->m, i);
    live_block out = x->out[i];
    if (out.len == 0 && !rules[x->coll].mine) return;
    live_block b = block_of(x, k, peer);
    if (peer != i)
        mirror(x, out, b);
    else if (b.len != out.len)
        die_lengths(x, i, b.len, out.len);
    else
        copy(x, out.at, b.at, b.len);
}

static void from_root(live_moves *x, live_ticket k)
{
    live_block out = x->out[0];
    if (rules[x->coll].mine && !live_members_is_real(x->m, x->root)) {
        const void *last = live_last_sent(x->l, out.len);
        if (last)
            copy(x, out.at, last, out.len);
        else if (!x->mover)
            memset(out.at, 0, out.len);
        return;
    }
    if (out.len == 0 && !rules[x->coll].mine) return;
    live_block b = block_of(x, k, giver(x));
    if (b.len != out.len) die_lengths(x, giver(x), b.len, out.len);
    copy(x, out.at, b.at, b.len);
}

bool live_moves_alone(const live_moves *x)
{
    return x->m->n_real == 1 || rules[x->coll].from == NOTHING;
}

bool live_moves_fill(live_moves *x, live_ticket k)
{
    bool ok = true;
    if (rules[x->coll].at_root && x->root != x->m->me) x->n_out = 0;
    if (x->n_out > 0) switch (rules[x->coll].from) {
        case ALL: ok = reduce_all(x, k); break;
        case ROOT: from_root(x, k); break;
        case MEMBER:
            for (uint32_t i = 0; i < x->n_out; i++) from_member(x, k, i);
            break;
        case NOTHING: break;
        }
    if (x->m->n_real > 1) live_drop(x->l, k);
    return ok;
}
