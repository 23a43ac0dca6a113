/* SPDX-License-Identifier: Apache-2.0 */
/*
 * group.c - groups of ranks, found by their members, and their places in the
 * machine.
 *
 * A group whose ranks are base + nested strides, like the axes of a mesh, has
 * siblings: the groups that the same axes form of all other ranks, if the axes
 * divide the world. Siblings communicate at the same time as the group: the
 * place counts them, and models that follow flows get their ranks.
 */
#include "emu/world.h"

#include <stdlib.h>
#include <string.h>

#define MAX_AXES      8
#define SIBLING_RANKS 16384 /* ranks of siblings on other nodes, in total */

typedef struct axes {
    uint32_t k; /* 0: no nested strides */
    uint32_t size[MAX_AXES], stride[MAX_AXES];
} axes;

uint32_t emu_group_rank_at(const emu_group *g, uint32_t member)
{
    return g->rank ? g->rank[member] : member;
}

uint32_t emu_real_number(const sc_emu_config *c, uint32_t rank)
{
    uint32_t i = sc_find_rising(c->real, c->n_real, rank);
    return i < c->n_real ? i : EMU_NONE;
}

/* ---- members ------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
    uint64_t x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return (x > y) - (x < y);
}

uint32_t emu_group_member(const emu_group *g, uint32_t rank)
{
    const emu_members *m = g->world;
    if (m->regular) {
        if (rank < m->base || (rank - m->base) % m->stride) return EMU_NONE;
        uint32_t i = (rank - m->base) / m->stride;
        return i < g->n ? i : EMU_NONE;
    }
    uint32_t at = 0;
    SC_FIRST(at, g->n, mid, m->order[mid] >> 32 >= rank);
    if (at == g->n || m->order[at] >> 32 != rank) return EMU_NONE;
    return (uint32_t)m->order[at];
}

/* Builds the lookup of members; ranks that occur twice are found on the way. */
static sc_status index_members(emu_group *g, sc_arena *a, sc_err *err)
{
    emu_members *m = g->world;
    m->base = emu_group_rank_at(g, 0);
    m->stride = 1;
    m->regular = true;
    for (uint32_t i = 1; g->rank && m->regular && i < g->n; i++) {
        if (i == 1 && g->rank[1] > g->rank[0])
            m->stride = g->rank[1] - g->rank[0];
        m->regular = g->rank[i] > g->rank[i - 1] &&
                     g->rank[i] - g->rank[i - 1] == m->stride;
    }
    if (m->regular) return SC_OK;
    m->order = SC_NEW_N(a, uint64_t, g->n);
    if (!m->order) return sc_error_nomem(err);
    for (uint32_t i = 0; i < g->n; i++)
        m->order[i] = (uint64_t)g->rank[i] << 32 | i;
    qsort(m->order, g->n, sizeof *m->order, by_value);
    for (uint32_t i = 1; i < g->n; i++)
        if (m->order[i] >> 32 == m->order[i - 1] >> 32)
            return sc_error(err, SC_EINPUT, SC_C_DUPLICATE, sc_pos_none(), NULL,
                            "rank %u is twice in a group of %u",
                            (uint32_t)(m->order[i] >> 32), g->n);
    return SC_OK;
}

static sc_status find_real(emu_group *g, const sc_emu_config *c, sc_arena *a,
                           sc_err *err)
{
    emu_members *m = g->world;
    for (uint32_t i = 0; i < c->n_real; i++)
        g->n_real += emu_group_member(g, c->real[i]) != EMU_NONE;
    uint32_t n = g->n_real, k = 0;
    g->real = SC_NEW_N(a, uint32_t, n);
    m->number = SC_NEW_N(a, uint32_t, n);
    m->next = SC_NEW_N(a, uint32_t, n);
    m->posts = SC_NEW_N(a, uint64_t, n);
    if (!g->real || !m->number || !m->next || !m->posts)
        return sc_error_nomem(err);
    for (uint32_t at = 0; k < n; at++) {
        uint32_t i = emu_real_number(c, emu_group_rank_at(g, at));
        if (i == EMU_NONE) continue;
        m->number[k] = i;
        g->real[k] = c->real[i];
        m->next[k++] = EMU_NONE;
    }
    m->tail = EMU_NONE;
    m->n_emulated = g->n - n;
    return SC_OK;
}

/* ---- shape --------------------------------------------------------------- */

/* Rank i of the list that the axes make. */
static uint32_t along(const axes *x, uint32_t base, uint32_t i)
{
    for (uint32_t d = 0; d < x->k; d++) {
        base += i % x->size[d] * x->stride[d];
        i /= x->size[d];
    }
    return base;
}

static bool nested(const axes *x)
{
    for (uint32_t d = 1; d < x->k; d++)
        if (x->stride[d] % ((uint64_t)x->size[d - 1] * x->stride[d - 1]) != 0)
            return false;
    return true;
}

/* Finds the longest runs of equal strides, first in the list, then in the
 * beginnings of the runs. */
static bool find_axes(const emu_group *g, axes *x)
{
    const uint32_t *r = g->rank;
    *x = (axes){.k = 0};
    if (!r) {
        *x = (axes){1, {g->n}, {1}};
        return g->n > 1;
    }
    for (uint64_t done = 1; done < g->n;) {
        uint64_t run = 1;
        if (x->k == MAX_AXES || r[done] <= r[0]) return false;
        uint32_t stride = r[done] - r[0];
        while (run * done < g->n && r[run * done] > r[0] &&
               r[run * done] - r[0] == run * stride)
            run++;
        x->size[x->k] = (uint32_t)run;
        x->stride[x->k++] = stride;
        done *= run;
        if (g->n % done != 0) return false;
    }
    if (x->k == 0 || !nested(x)) return false;
    for (uint32_t i = 0; i < g->n; i++)
        if (r[i] != along(x, r[0], i)) return false;
    return true;
}

/* The base of a group in a mesh of whole blocks is 0 along its own axes. */
static bool on_mesh(const axes *x, uint32_t base)
{
    for (uint32_t d = 0; d < x->k; d++)
        if (base / x->stride[d] % x->size[d] != 0) return false;
    return true;
}

static uint64_t block_of(const axes *x)
{
    return (uint64_t)x->size[x->k - 1] * x->stride[x->k - 1];
}

static sc_place counted(const emu_group *g, const sc_hw *hw, sc_arena *a)
{
    const emu_members *m = g->world;
    sc_arena_mark mark = sc_arena_save(a);
    uint32_t *up = SC_NEW_N(a, uint32_t, g->n);
    sc_place p = {.n = 0};
    for (uint32_t i = 0; up && i < g->n; i++)
        up[i] =
            m->order ? (uint32_t)(m->order[i] >> 32) : emu_group_rank_at(g, i);
    if (up) p = sc_hw_place_ranks(hw, g->n, up);
    sc_arena_restore(a, mark);
    return p;
}

static sc_status find_place(emu_group *g, const sc_emu_config *c, sc_arena *a,
                            sc_err *err)
{
    axes x;
    g->n_siblings = 1;
    if (!find_axes(g, &x) || !on_mesh(&x, emu_group_rank_at(g, 0)) ||
        c->world % block_of(&x) != 0) {
        g->place = counted(g, c->hw, a);
        return g->place.n ? SC_OK : sc_error_nomem(err);
    }
    g->place = sc_hw_place(c->hw, x.k, x.size, x.stride);
    if (c->siblings) g->n_siblings = c->world / g->n;
    if (g->place.peers > g->n_siblings) g->place.peers = g->n_siblings;
    return SC_OK;
}

/* ---- siblings ------------------------------------------------------------ */

typedef struct sib {
    axes x;
    uint32_t n, n_bases, own; /* `own` of `base` is the group's */
    uint32_t *base;
    uint8_t *taken;
} sib;

static sc_status find_bases(sib *s, const emu_group *g, uint32_t world,
                            sc_arena *a, sc_err *err)
{
    uint32_t first = emu_group_rank_at(g, 0);
    s->n = g->n;
    s->base = SC_NEW_N(a, uint32_t, g->n_siblings);
    s->taken = SC_NEW_N(a, uint8_t, g->n_siblings);
    if (!s->base || !s->taken) return sc_error_nomem(err);
    for (uint32_t r = 0; r < world; r++) {
        if (!on_mesh(&s->x, r)) continue;
        if (r == first) s->own = s->n_bases;
        s->base[s->n_bases++] = r;
    }
    return SC_OK;
}

/* Siblings on the group's nodes share its ports: all of them count. */
static sc_status add_near(sib *s, const sc_hw *hw, sc_arena *a, sc_err *err)
{
    uint8_t *node = SC_NEW_N(a, uint8_t, hw->n_nodes + 1);
    if (!node) return sc_error_nomem(err);
    for (uint32_t i = 0; i < s->n; i++)
        node[along(&s->x, s->base[s->own], i) / hw->node_size] = 1;
    for (uint32_t b = 0; b < s->n_bases; b++)
        for (uint32_t i = 0; i < s->n && !s->taken[b]; i++)
            s->taken[b] = node[along(&s->x, s->base[b], i) / hw->node_size];
    return SC_OK;
}

/* Of the other siblings, the nearest ones, as many as affect its flows. */
static uint32_t merge_far(sib *s)
{
    uint32_t left = SIBLING_RANKS / s->n, n = 0;
    for (uint32_t d = 1; d < s->n_bases && left > 0; d++) {
        uint32_t side[2] = {s->own + d, s->own - d};
        for (int k = 0; k < 2 && left > 0; k++)
            if (side[k] < s->n_bases && !s->taken[side[k]]) {
                s->taken[side[k]] = 1;
                left--;
            }
    }
    for (uint32_t b = 0; b < s->n_bases; b++) n += s->taken[b];
    return n;
}

static sc_status choose(emu_group *g, const sc_emu_config *c, sib *s,
                        sc_arena *tmp, sc_arena *a, sc_err *err)
{
    SC_TRY(find_bases(s, g, c->world, tmp, err));
    SC_TRY(add_near(s, c->hw, tmp, err));
    uint32_t n = merge_far(s), at = 0;
    uint32_t *v = SC_NEW_N(a, uint32_t, (size_t)n * g->n);
    if (!v) return sc_error_nomem(err);
    s->taken[s->own] = 0; /* it comes first */
    for (uint32_t i = 0; i < g->n; i++) v[at++] = emu_group_rank_at(g, i);
    for (uint32_t b = 0; b < s->n_bases; b++)
        for (uint32_t i = 0; s->taken[b] && i < g->n; i++)
            v[at++] = along(&s->x, s->base[b], i);
    g->siblings = v;
    g->n_siblings = n;
    return SC_OK;
}

sc_status emu_group_siblings(emu_group *g, const sc_emu_config *c, sc_arena *a,
                             sc_err *err)
{
    emu_members *m = g->world;
    sc_arena tmp;
    sib s = {.n = 0};
    m->siblings_known = true;
    bool used = c->delay == SC_EMU_DELAY_CHUNK ||
                c->delay == SC_EMU_DELAY_FLOW ||
                c->delay == SC_EMU_DELAY_ANALYTIC;
    if (!used || g->n_siblings < 2 || !find_axes(g, &s.x)) return SC_OK;
    sc_arena_init(&tmp, 0);
    sc_status status = choose(g, c, &s, &tmp, a, err);
    sc_arena_free(&tmp);
    return status;
}

/* ---- the table ----------------------------------------------------------- */

bool emu_group_is(const emu_group *g, const uint32_t *rank, uint32_t n)
{
    if (g->n != n) return false;
    if (!g->rank || !rank) return g->rank == rank;
    return memcmp(g->rank, rank, n * sizeof *rank) == 0;
}

/* NULL: the ranks from 0 to n - 1, in this order. */
static const uint32_t *unless_all(const uint32_t *rank, uint32_t n)
{
    for (uint32_t i = 0; rank && i < n; i++)
        if (rank[i] != i) return rank;
    return NULL;
}

static sc_status make(emu_groups *s, const sc_emu_config *c, emu_peers *p,
                      const uint32_t *rank, uint32_t n, uint64_t instance,
                      sc_arena *a, emu_group **out, sc_err *err)
{
    emu_group *g = SC_NEW(a, emu_group);
    emu_members *m = SC_NEW(a, emu_members);
    if (!g || !m) return sc_error_nomem(err);
    for (uint32_t i = 0; rank && i < n; i++)
        if (rank[i] >= c->world)
            return sc_error(err, SC_EINPUT, SC_C_RANGE, sc_pos_none(), NULL,
                            "a group has rank %u; ranks are 0 to %u", rank[i],
                            c->world - 1);
    m->instance = instance;
    *g = (emu_group){.id = s->n, .n = n, .world = m};
    if (rank) {
        uint32_t *copy = SC_NEW_N(a, uint32_t, n);
        if (!copy) return sc_error_nomem(err);
        g->rank = memcpy(copy, rank, n * sizeof *copy);
    }
    SC_TRY(index_members(g, a, err));
    SC_TRY(find_real(g, c, a, err));
    SC_TRY(find_place(g, c, a, err));
    if (g->n_real > 0 && m->n_emulated > 0)
        SC_TRY(emu_peers_count(p, g, m, err));
    *out = g;
    return SC_OK;
}

sc_status emu_groups_get(emu_groups *s, const sc_emu_config *c, emu_peers *p,
                         const uint32_t *rank, uint32_t n, uint64_t instance,
                         sc_arena *a, uint32_t *out, sc_err *err)
{
    if (n == 0 || n > c->world)
        return sc_error(err, SC_EINPUT, SC_C_RANGE, sc_pos_none(), NULL,
                        "a group of %u ranks in a world of %u", n, c->world);
    rank = unless_all(rank, n);
    uint64_t hash = rank ? sc_hash(rank, n * sizeof *rank, instance)
                         : sc_hash(&n, sizeof n, instance);
    uint32_t at = 0;
    while ((*out = sc_map_next(&s->by_ranks, hash, &at)) != SC_MAP_END) {
        const emu_members *m = s->v[*out]->world;
        if (m->instance == instance && emu_group_is(s->v[*out], rank, n))
            return SC_OK;
    }
    emu_group **v = sc_grow(a, s->v, s->n, &s->cap, 8, sizeof *v);
    if (!v) return sc_error_nomem(err);
    s->v = v;
    SC_TRY(make(s, c, p, rank, n, instance, a, &v[s->n], err));
    if (!sc_map_add(&s->by_ranks, a, hash, s->n)) return sc_error_nomem(err);
    *out = s->n++;
    return SC_OK;
}

uint64_t emu_scope(const uint32_t *rank, uint32_t n, uint32_t instance)
{
    uint64_t seed = (uint64_t)instance + 1;
    rank = unless_all(rank, n);
    return 1 | (rank ? sc_hash(rank, n * sizeof *rank, seed)
                     : sc_hash(&n, sizeof n, seed));
}

void emu_group_called(emu_groups *s, uint32_t group)
{
    const emu_group *g = s->v[group];
    emu_members *m = g->world;
    uint32_t before = 0;
    if (m->scope) return;
    for (uint32_t i = 0; i < s->n; i++) {
        const emu_members *other = s->v[i]->world;
        before += other->scope && emu_group_is(s->v[i], g->rank, g->n);
    }
    m->scope = emu_scope(g->rank, g->n, before);
}
