/* SPDX-License-Identifier: Apache-2.0 */
/* moves.c - the data of an operation, by one table. */
#include "common/moves.h"

#include <stdlib.h>
#include <string.h>

typedef enum source {
    NOTHING,
    ALL,     /* the block of every member, reduced */
    EARLIER, /* the same, of the members up to this rank */
    MEMBER,  /* the i-th block is from the i-th member */
    ROOT     /* the block is from the root */
} source;

typedef enum absent {
    UNUSED,
    FIRST, /* an emulated root has the data of the first real member */
    SENT   /* it sends what this rank sent last */
} absent;

/* The blocks of a result, by operation. */
typedef struct rule {
    source from;
    bool parts;   /* a member has a block for each other one */
    bool at_root; /* only the root receives */
    /* sizes differ between members, so that this rank may have none */
    bool ragged;
    absent root;
} rule;

static const rule rules[SC_N_COLLS] = {
    [SC_ALL_REDUCE] = {.from = ALL},
    [SC_REDUCE] = {.from = ALL, .at_root = true},
    [SC_REDUCE_SCATTER] = {.from = ALL, .parts = true},
    [SC_SCAN] = {.from = EARLIER},
    [SC_ALL_GATHER] = {.from = MEMBER},
    [SC_GATHER] = {.from = MEMBER, .at_root = true, .ragged = true},
    [SC_ALL_TO_ALL] = {.from = MEMBER, .parts = true, .ragged = true},
    [SC_BROADCAST] = {.from = ROOT, .root = FIRST},
    [SC_SCATTER] = {.from = ROOT, .parts = true, .ragged = true, .root = SENT},
    [SC_RECV] = {.from = ROOT, .root = SENT},
};

/* ---- members ------------------------------------------------------------- */

static bool contains(const uint32_t *rising, uint32_t n, uint32_t value)
{
    return sc_find_rising(rising, n, value) < n;
}

uint32_t live_members_real(live *l, const uint32_t *rank, uint32_t n,
                           uint32_t *real)
{
    const sc_emu_config *c = live_config(l);
    uint32_t found = 0;
    if (!rank) {
        memcpy(real, c->real, c->n_real * sizeof *real);
        return c->n_real;
    }
    for (uint32_t i = 0; i < n; i++)
        if (contains(c->real, c->n_real, rank[i])) real[found++] = i;
    return found;
}

live_members *live_members_new(live *l, const uint32_t *rank, uint32_t n,
                               uint64_t instance)
{
    uint32_t me = 0;
    while (me < n && rank[me] != live_rank(l)) me++;
    if (me == n) return NULL;
    live_members *m = live_alloc(l, 1, sizeof *m);
    uint32_t *copy = live_alloc(l, n, sizeof *copy);
    uint32_t *real = live_alloc(l, live_config(l)->n_real, sizeof *real);
    memcpy(copy, rank, n * sizeof *copy);
    *m = (live_members){.group = live_group(l, rank, n, instance),
                        .n = n,
                        .me = me,
                        .rank = copy,
                        .n_real = live_members_real(l, rank, n, real),
                        .real = real};
    return m;
}

bool live_members_is_real(const live_members *m, uint32_t member)
{
    return contains(m->real, m->n_real, member);
}

/* ---- who gives, who receives --------------------------------------------- */

#define NOBODY UINT32_MAX

/* Whose block comes from the root; positions or world ranks. In the order of a
 * group, world ranks need not rise. */
static uint32_t giver(const rule *r, uint32_t root, const uint32_t *real,
                      uint32_t n_real)
{
    for (uint32_t i = 0; i < n_real; i++)
        if (real[i] == root) return root;
    return r->root == FIRST ? real[0] : NOBODY;
}

static uint32_t giver_of(const live_moves *x)
{
    return giver(&rules[x->coll], x->root, x->m->real, x->m->n_real);
}

/* Nothing is given if no member has anything. */
static bool is_empty(const rule *r, uint64_t bytes)
{
    return r->from == NOTHING || (bytes == 0 && !r->ragged);
}

bool live_moves_gives(const live_op *op, const uint32_t *real, uint32_t n_real,
                      uint32_t from, uint32_t to)
{
    const rule *r = &rules[op->coll];
    if (is_empty(r, op->silent ? 1 : op->bytes)) return false;
    if (r->from == ROOT) return from == giver(r, op->peer, real, n_real);
    return !r->at_root || to == op->peer || from == to;
}

uint32_t live_moves_n_in(const live_moves *x)
{
    const rule *r = &rules[x->coll];
    if (x->coll == SC_SEND || r->at_root)
        return live_members_is_real(x->m, x->root);
    if (r->from == NOTHING || x->coll == SC_RECV) return 0;
    if (r->from == ROOT && giver_of(x) != x->m->me) return 0;
    return r->parts ? x->m->n : 1;
}

uint32_t live_moves_n_out(const live_moves *x)
{
    const rule *r = &rules[x->coll];
    if (r->from == NOTHING || (r->at_root && x->root != x->m->me)) return 0;
    return r->from == MEMBER ? x->m->n : 1;
}

bool live_moves_alone(const live_moves *x)
{
    if (x->m->n_real == 1 || live_moves_n_out(x) == 0) return true;
    if (rules[x->coll].from != ROOT) return false;
    uint32_t from = giver_of(x);
    return from == x->m->me || from == NOBODY;
}

/* ---- contributions ------------------------------------------------------- */

/* The blocks for real members, after the length of each. */
typedef uint64_t part_len;

static void *alloc(const live_moves *x, size_t len)
{
    void *p = malloc(len ? len : 1);
    if (!p) live_die(x->l, "out of memory");
    return p;
}

static bool push_parts(live_moves *x, live_ticket k)
{
    const live_members *m = x->m;
    const size_t head = m->n_real * sizeof(part_len);
    live_view *v = alloc(x, m->n_real * sizeof *v);
    size_t len = head;
    bool ok = true;
    for (uint32_t i = 0; i < m->n_real; i++) {
        v[i] = (live_view){0};
        if (m->real[i] != m->me) ok &= x->by->read(x, m->real[i], &v[i]);
        len += v[i].len;
    }
    char *message = alloc(x, len), *to = message + head;
    for (uint32_t i = 0; i < m->n_real; i++) {
        part_len n = v[i].len;
        memcpy(message + i * sizeof n, &n, sizeof n);
        if (n) memcpy(to, v[i].p, n);
        to += n;
        free(v[i].own);
    }
    if (ok) live_push(x->l, k, message, len);
    free(message);
    free(v);
    return ok;
}

bool live_moves_push(live_moves *x, live_ticket k)
{
    const rule *r = &rules[x->coll];
    if (x->m->n_real < 2 || live_moves_n_in(x) == 0) return true;
    if (r->parts) return push_parts(x, k);
    live_view v = {0};
    bool ok = x->by->read(x, x->m->me, &v);
    /* Others wait for it even if it is empty. */
    if (ok) live_push(x->l, k, v.len ? v.p : "", v.len);
    free(v.own);
    return ok;
}

/* This rank's block in a contribution with one for each real member. */
static void find_part(const live_moves *x, live_view *v)
{
    const live_members *m = x->m;
    const char *p = v->p;
    size_t before = m->n_real * sizeof(part_len);
    part_len n = 0;
    for (uint32_t i = 0; before <= v->len && i < m->n_real; i++) {
        before += n;
        memcpy(&n, p + i * sizeof n, sizeof n);
        if (m->real[i] == m->me) break;
    }
    *v = before + n <= v->len ? (live_view){p + before, n, NULL}
                              : (live_view){0};
}

/* What another real member gives this rank. */
static live_view ask(const live_moves *x, live_ticket k, uint32_t member)
{
    live_view v = {0};
    uint32_t rank = live_members_rank(x->m, member);
    v.p = live_peer(x->l, k, rank, &v.len);
    if (v.p && rules[x->coll].parts) find_part(x, &v);
    if (!v.p)
        live_warn(x->l,
                  "real rank %u has contributed no data to an operation "
                  "(%s); %s",
                  (unsigned)rank, sc_coll_names[x->coll],
                  rules[x->coll].from == ROOT
                      ? "zeros are received"
                      : "the data of this rank are used for it");
    return v;
}

/* ---- results ------------------------------------------------------------- */

#define FEW 8 /* real members, without allocation */

/* What the real members give this rank. */
typedef struct given {
    live_view mine;         /* of this rank itself */
    live_view few[FEW], *v; /* [n_real] */
} given;

static bool collect(live_moves *x, live_ticket k, given *g)
{
    const live_members *m = x->m;
    g->mine = (live_view){0};
    g->v = m->n_real > FEW ? alloc(x, m->n_real * sizeof *g->v) : g->few;
    if (!x->by->read(x, m->me, &g->mine)) return false;
    for (uint32_t i = 0; i < m->n_real; i++) {
        g->v[i] = g->mine;
        if (m->real[i] == m->me) continue;
        live_view other = ask(x, k, m->real[i]);
        if (other.p) g->v[i] = other;
    }
    return true;
}

static void release(given *g)
{
    free(g->mine.own);
    if (g->v != g->few) free(g->v);
}

static bool members(live_moves *x, const given *g)
{
    const live_members *m = x->m;
    uint32_t real = 0, i = 0; /* real members before i */
    bool ok = true;
    while (i < m->n && ok) {
        bool is_real = real < m->n_real && m->real[real] == i;
        uint32_t end = i + 1;
        if (is_real) {
            if (i != m->me || !x->in_place) ok = x->by->copy(x, i, &g->v[real]);
            real++;
        } else {
            if (m->n_real == 1) end = real ? m->n : m->real[0];
            ok = x->by->mirror(x, i, end - i, &g->v[(i - real) % m->n_real]);
        }
        i = end;
    }
    return ok;
}

/* Over members 0 .. n - 1. If none of them is real, they have this rank's
 * data. */
static bool reduce(live_moves *x, const given *g, uint32_t n)
{
    const live_members *m = x->m;
    const void *few[FEW], **real = few;
    const size_t len = g->mine.len;
    uint32_t n_real = 0;
    if (n == 0) return true;
    if (m->n_real > FEW) real = alloc(x, m->n_real * sizeof *real);
    for (uint32_t i = 0; i < m->n_real; i++) {
        if (g->v[i].len != len)
            live_die(x->l, "rank %u has %zu bytes in %s, rank %u %zu",
                     (unsigned)live_members_rank(m, m->real[i]), g->v[i].len,
                     sc_coll_names[x->coll], (unsigned)live_rank(x->l), len);
        if (m->real[i] < n) real[n_real++] = g->v[i].p;
    }
    if (n_real == 0) real[n_real++] = g->mine.p;
    bool ok = x->by->reduce(x, real, n_real, n, len);
    if (real != few) free(real);
    return ok;
}

static bool from_root(live_moves *x, live_ticket k)
{
    uint32_t from = giver_of(x);
    if (from == NOBODY) return x->by->sent(x);
    if (from != x->m->me) {
        live_view v = ask(x, k, from);
        return x->by->copy(x, 0, &v);
    }
    if (x->in_place) return true;
    live_view mine = {0};
    bool ok = x->by->read(x, x->m->me, &mine) && x->by->copy(x, 0, &mine);
    free(mine.own);
    return ok;
}

static bool from_members(live_moves *x, live_ticket k)
{
    const live_members *m = x->m;
    const source from = rules[x->coll].from;
    uint32_t n = from == EARLIER ? m->me + !x->exclusive : m->n;
    given g;
    bool ok = collect(x, k, &g);
    if (ok) ok = from == MEMBER ? members(x, &g) : reduce(x, &g, n);
    release(&g);
    return ok;
}

bool live_moves_fill(live_moves *x, live_ticket k)
{
    const rule *r = &rules[x->coll];
    bool several = x->m->n_real > 1, ok = true;
    if (live_moves_n_out(x) > 0 && !(several && is_empty(r, x->bytes)))
        ok = r->from == ROOT ? from_root(x, k) : from_members(x, k);
    if (several) live_drop(x->l, k);
    return ok;
}
