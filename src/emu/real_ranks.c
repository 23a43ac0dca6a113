/* SPDX-License-Identifier: Apache-2.0 */
/*
 * real_ranks.c - which ranks to run for real: one of every role.
 *
 * Two ranks have the same role if they are of one class (they compute the same
 * and exchange as many bytes in the same order), their groups have the same
 * sizes, and their partners have the same positions relative to them: the same
 * cyclic distance in the smallest group that holds both, or in the world. Stages
 * of a pipeline have roles of their own even if they do the same, because each
 * of them waits for those before it.
 */
#include "emu/emu.h"

#include <string.h>

#define NO_STAGE   UINT32_MAX
#define MAX_STAGES 64u /* longer chains are lines of neighbours */

/* A role in numbers: class, sizes of groups, positions of partners. */
typedef struct signature {
    uint32_t *v;
    uint32_t n;
} signature;

typedef struct facts {
    sc_time compute;
    uint64_t flop, bytes;
    uint32_t exchanges, least, most; /* groups' sizes */
} facts;

typedef struct choice {
    const sc_workload *w;
    sc_arena *a;
    sc_err *err;
    uint8_t *rising; /* [n_groups] */
    uint32_t *of;    /* [n_ranks] role */
    /* [n_ranks] position along a chain of messages; NO_STAGE */
    uint32_t *stage;
    uint32_t *stages;     /* [n_ranks] length of the chain */
    uint8_t *pipeline;    /* [n_ranks] its stage is part of its role */
    sc_map by_signature;  /* roles */
    signature *signature; /* [cap_signatures] of each role */
    sc_emu_role *role;    /* [cap] */
    facts *facts;         /* [cap] */
    uint32_t n, cap, cap_facts, cap_signatures;
} choice;

/* ---- places in groups ---------------------------------------------------- */

static uint32_t place_in(const choice *p, uint32_t group, uint32_t rank)
{
    const sc_rank_group *g = &p->w->groups[group];
    uint32_t i = 0;
    if (p->rising[group]) return sc_find_rising(g->rank, g->n, rank);
    while (i < g->n && g->rank[i] != rank) i++;
    return i;
}

/* The position of `peer` relative to `rank`: size of the group, distance in
 * it. */
static void relative(const choice *p, uint32_t rank, uint32_t peer,
                     uint32_t *out)
{
    const sc_rank_trace *r = &p->w->ranks[rank];
    const sc_task_list *l = &p->w->classes[r->cls];
    out[0] = p->w->n_ranks;
    out[1] = (peer + out[0] - rank) % out[0];
    for (uint32_t i = 0; i < l->n_groups; i++) {
        uint32_t g = r->groups[i], n = p->w->groups[g].n;
        if (n >= out[0]) continue;
        uint32_t mine = place_in(p, g, rank), its = place_in(p, g, peer);
        if (mine >= n || its >= n) continue;
        out[0] = n;
        out[1] = (its + n - mine) % n;
    }
}

/* ---- roles --------------------------------------------------------------- */

static sc_status sign(choice *p, uint32_t rank, signature *s)
{
    const sc_rank_trace *r = &p->w->ranks[rank];
    const sc_task_list *l = &p->w->classes[r->cls];
    s->n = 1 + l->n_groups + 2 * l->n_peers;
    s->v = SC_NEW_N(p->a, uint32_t, s->n);
    if (!s->v) return sc_error_nomem(p->err);
    uint32_t *v = s->v;
    *v++ = r->cls;
    for (uint32_t i = 0; i < l->n_groups; i++)
        *v++ = p->w->groups[r->groups[i]].n;
    for (uint32_t i = 0; i < l->n_peers; i++, v += 2)
        relative(p, rank, r->peers[i], v);
    return SC_OK;
}

static uint64_t signature_hash(const signature *s)
{
    return sc_hash(s->v, s->n * sizeof *s->v, 0);
}

/* The role of a signature; SC_MAP_END: no rank has it so far. */
static uint32_t find(const choice *p, const signature *s)
{
    uint32_t at = 0, role;
    const signature *x;
    if (!p->role) return SC_MAP_END;
    sc_assert(p->signature != NULL);
    do {
        role = sc_map_next(&p->by_signature, signature_hash(s), &at);
        if (role == SC_MAP_END) break;
        x = &p->signature[role];
    } while (x->n != s->n || memcmp(x->v, s->v, s->n * sizeof *s->v) != 0);
    return role;
}

static sc_status add_role(choice *p, uint32_t rank, const signature *s)
{
    sc_emu_role *r = sc_grow(p->a, p->role, p->n, &p->cap, 8, sizeof *r);
    facts *f = sc_grow(p->a, p->facts, p->n, &p->cap_facts, 8, sizeof *f);
    signature *all =
        sc_grow(p->a, p->signature, p->n, &p->cap_signatures, 8, sizeof *all);
    if (!r || !f || !all) return sc_error_nomem(p->err);
    p->role = r;
    p->facts = f;
    p->signature = all;
    if (!sc_map_add(&p->by_signature, p->a, signature_hash(s), p->n))
        return sc_error_nomem(p->err);
    all[p->n] = *s;
    r[p->n] = (sc_emu_role){.rank = rank};
    f[p->n++] = (facts){.least = UINT32_MAX};
    return SC_OK;
}

typedef sc_status sign_fn(choice *p, uint32_t rank, signature *s);

static sc_status find_roles(choice *p, sign_fn *sign_it)
{
    p->by_signature = (sc_map){0};
    p->role = NULL;
    p->facts = NULL;
    p->signature = NULL;
    p->n = p->cap = p->cap_facts = p->cap_signatures = 0;
    for (uint32_t r = 0; r < p->w->n_ranks; r++) {
        sc_arena_mark mark = sc_arena_save(p->a);
        signature s = {.n = 0};
        SC_TRY(sign_it(p, r, &s));
        uint32_t role = find(p, &s);
        if (role == SC_MAP_END) {
            role = p->n;
            SC_TRY(add_role(p, r, &s));
        } else {
            sc_arena_restore(p->a, mark);
        }
        sc_assert(p->role && role < p->n);
        p->of[r] = role;
        p->role[role].n++;
    }
    return SC_OK;
}

/* ---- stages -------------------------------------------------------------- */

/* The partner of `rank` other than `from`; `rank` itself: there is none;
 * NO_STAGE: there are several. */
static uint32_t next_of(const choice *p, uint32_t rank, uint32_t from)
{
    const sc_rank_trace *r = &p->w->ranks[rank];
    uint32_t n = p->w->classes[r->cls].n_peers, next = rank;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t peer = r->peers[i];
        if (peer == from || peer == rank || peer == next) continue;
        if (next != rank) return NO_STAGE;
        next = peer;
    }
    return next;
}

/* Length of the chain from `end`, which was reached from `from`, to its other
 * end or back to `end`; 0: it is not a chain. */
static uint32_t chain_from(const choice *p, uint32_t end, uint32_t from)
{
    uint32_t at = end;
    for (uint32_t n = 1; n <= p->w->n_ranks; n++) {
        uint32_t next = next_of(p, at, from);
        if (next == NO_STAGE) return 0;
        if (next == at || next == end) return n;
        from = at;
        at = next;
    }
    return 0;
}

/* The larger partner of a rank with two, so that a ring starts towards the
 * smaller; else the rank itself. */
static uint32_t before(const choice *p, uint32_t rank)
{
    const sc_rank_trace *r = &p->w->ranks[rank];
    uint32_t n = p->w->classes[r->cls].n_peers, most = rank;
    if (next_of(p, rank, rank) != NO_STAGE) return rank;
    for (uint32_t i = 0; i < n; i++)
        if (most == rank || r->peers[i] > most) most = r->peers[i];
    return most;
}

/* Numbers the chain that begins at `end`, or the ring of which it is the lowest
 * rank. */
static void number_chain(choice *p, uint32_t end, bool ring)
{
    uint32_t from = before(p, end), at = end;
    if (p->stage[end] != NO_STAGE || (from != end) != ring) return;
    uint32_t n = chain_from(p, end, from), role = p->of[end];
    bool differ = false; /* a ring of equals has no first stage */
    for (uint32_t i = 0; n > 1 && i < n; i++) {
        p->stage[at] = i;
        p->stages[at] = n;
        differ = differ || p->of[at] != role;
        uint32_t next = next_of(p, at, from);
        from = at;
        at = next;
    }
    from = before(p, at = end);
    for (uint32_t i = 0; differ && n <= MAX_STAGES && i < n; i++) {
        p->pipeline[at] = 1;
        uint32_t next = next_of(p, at, from);
        from = at;
        at = next;
    }
}

/* The role so far, and the stage. */
static sc_status sign_stage(choice *p, uint32_t rank, signature *s)
{
    s->n = 2;
    s->v = SC_NEW_N(p->a, uint32_t, s->n);
    if (!s->v) return sc_error_nomem(p->err);
    s->v[0] = p->of[rank];
    s->v[1] = p->pipeline[rank] ? p->stage[rank] : NO_STAGE;
    return SC_OK;
}

/* ---- texts --------------------------------------------------------------- */

static void find_facts(const choice *p, uint32_t role, facts *f)
{
    const sc_rank_trace *r = &p->w->ranks[p->role[role].rank];
    const sc_task_list *l = &p->w->classes[r->cls];
    for (uint32_t i = 0; i < l->n_tasks; i++) {
        if (l->kind[i] == SC_TASK_COMP) {
            f->compute += l->duration[i];
            f->flop += l->ops[i];
        } else if (l->kind[i] == SC_TASK_COLL || l->kind[i] == SC_TASK_SEND ||
                   l->kind[i] == SC_TASK_RECV) {
            f->bytes += l->size[i];
            f->exchanges++;
        }
        if (l->kind[i] != SC_TASK_COLL) continue;
        uint32_t n = l->group[i] == SC_TASK_WORLD
                         ? p->w->n_ranks
                         : p->w->groups[r->groups[l->group[i]]].n;
        if (n < f->least) f->least = n;
        if (n > f->most) f->most = n;
    }
}

static void stage_text(const choice *p, uint32_t role, sc_text *t)
{
    uint32_t lo = NO_STAGE, hi = 0, n = 0;
    for (uint32_t r = 0; r < p->w->n_ranks; r++) {
        if (p->of[r] != role) continue;
        if (p->stage[r] == NO_STAGE) return;
        if (p->stage[r] < lo) lo = p->stage[r];
        if (p->stage[r] > hi) hi = p->stage[r];
        n = p->stages[r];
    }
    if (lo == hi)
        sc_text_add(t, "pipeline stage %u of %u", lo, n);
    else
        sc_text_add(t, "pipeline stages %u to %u of %u", lo, hi, n);
}

static void amount(sc_text *t, const char *what, double v, sc_unit unit)
{
    char s[32];
    sc_unit_print_short(v, unit, s, sizeof s);
    sc_text_add(t, "%s%s %s", t->len ? ", " : "", what, s);
}

/* Describes what distinguishes the role; properties that all share are left
 * out. */
static void role_text(const choice *p, uint32_t role, const facts *differ,
                      sc_text *t)
{
    const facts *f = &p->facts[role];
    if (p->n == 1) {
        sc_text_add(t, "every rank does the same");
        return;
    }
    stage_text(p, role, t);
    if (differ->compute)
        amount(t, "computes", sc_time_to_s(f->compute), SC_U_TIME);
    else if (differ->flop)
        amount(t, "computes", (double)f->flop, SC_U_FLOP);
    if (differ->bytes || differ->exchanges) {
        amount(t, "exchanges", (double)f->bytes, SC_U_BYTES);
        sc_text_add(t, " in %u operation%s", f->exchanges,
                    f->exchanges == 1 ? "" : "s");
    }
    if ((differ->least || differ->most) && f->most > 0) {
        sc_text_add(t, "%sin groups of %u", t->len ? ", " : "", f->least);
        if (f->least != f->most) sc_text_add(t, " to %u", f->most);
    }
    if (t->len == 0)
        sc_text_add(t, "with different partners from rank %u",
                    role == 0 ? p->role[1].rank : p->role[0].rank);
}

static facts differing(const choice *p)
{
    facts d = {0};
    for (uint32_t i = 1; i < p->n; i++) {
        const facts *x = &p->facts[i], *y = &p->facts[0];
        d.compute |= x->compute != y->compute;
        d.flop |= x->flop != y->flop;
        d.bytes |= x->bytes != y->bytes;
        d.exchanges |= x->exchanges != y->exchanges;
        d.least |= x->least != y->least;
        d.most |= x->most != y->most;
    }
    return d;
}

static sc_status write_texts(choice *p)
{
    for (uint32_t i = 0; i < p->n; i++) find_facts(p, i, &p->facts[i]);
    facts differ = differing(p);
    for (uint32_t i = 0; i < p->n; i++) {
        sc_text t;
        sc_text_init(&t);
        role_text(p, i, &differ, &t);
        p->role[i].text = t.failed ? NULL : sc_strdup(p->a, t.buf);
        sc_text_free(&t);
        if (!p->role[i].text) return sc_error_nomem(p->err);
    }
    return SC_OK;
}

/* ---- the choice ---------------------------------------------------------- */

static sc_status begin(choice *p)
{
    const sc_workload *w = p->w;
    p->rising = SC_NEW_N(p->a, uint8_t, w->n_groups);
    p->of = SC_NEW_N(p->a, uint32_t, w->n_ranks);
    p->stage = SC_NEW_N(p->a, uint32_t, w->n_ranks);
    p->stages = SC_NEW_N(p->a, uint32_t, w->n_ranks);
    p->pipeline = SC_NEW_N(p->a, uint8_t, w->n_ranks);
    if (!p->rising || !p->of || !p->stage || !p->stages || !p->pipeline)
        return sc_error_nomem(p->err);
    for (uint32_t r = 0; r < w->n_ranks; r++) p->stage[r] = NO_STAGE;
    for (uint32_t g = 0; g < w->n_groups; g++) {
        p->rising[g] = 1;
        for (uint32_t i = 1; i < w->groups[g].n; i++)
            if (w->groups[g].rank[i] <= w->groups[g].rank[i - 1])
                p->rising[g] = 0;
    }
    return SC_OK;
}

sc_status sc_emu_real_ranks(const sc_workload *w, sc_arena *a,
                            sc_emu_role **out, uint32_t *n, sc_err *err)
{
    choice p = {.w = w, .a = a, .err = err};
    SC_TRY(begin(&p));
    SC_TRY(find_roles(&p, sign));
    for (uint32_t i = 0; i < 2 && p.n > 1; i++) /* open chains first */
        for (uint32_t r = 0; r < w->n_ranks; r++) number_chain(&p, r, i == 1);
    if (p.n > 1) SC_TRY(find_roles(&p, sign_stage));
    SC_TRY(write_texts(&p));
    *out = p.role;
    *n = p.n;
    return SC_OK;
}
