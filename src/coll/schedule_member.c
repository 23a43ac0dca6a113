/* SPDX-License-Identifier: Apache-2.0 */
/* schedule_member.c - computes what a member sends and receives in a phase. */
#include "base/assert.h"
#include "coll/coll_schedule.h"

#define TREE_BITS 32u

static uint32_t floor_log2(uint32_t n)
{
    uint32_t k = 0;
    while (n >>= 1) k++;
    return k;
}

static bool gathers(const sc_coll_phase *p)
{
    return p->coll == SC_ALL_GATHER;
}

/* ---- roots */

/* Distance from the root in the order of the line. */
static uint32_t distance(const sc_coll_schedule *s, const sc_coll_phase *p,
                         uint32_t place)
{
    return (place + p->n - sc_coll_place(p, s->root)) % p->n;
}

static uint32_t at_distance(const sc_coll_schedule *s, const sc_coll_phase *p,
                            uint32_t v)
{
    return (sc_coll_place(p, s->root) + v) % p->n;
}

/* Only the line of the root forwards data. */
static bool in_line(const sc_coll_schedule *s, const sc_coll_phase *p,
                    uint32_t member)
{
    return p->slices > 1 || member % p->stride == s->root % p->stride;
}

/* Children in a binomial tree: members whose lowest parent bit is v's
 * highest. */
static uint32_t children(uint32_t v, uint32_t n)
{
    uint32_t k = 0, from = v == 0 ? 0 : floor_log2(v) + 1;
    for (uint32_t r = from; r < TREE_BITS && v + (1u << r) < n; r++) k++;
    return k;
}

static uint32_t tree_children(const sc_tree_node *t)
{
    uint32_t first = t->child[0] != SC_COLL_NOBODY;
    return first + (t->child[1] != SC_COLL_NOBODY);
}

/* Messages to the root's side (`up`), or away from it. */
static uint32_t rooted(const sc_coll_schedule *s, const sc_coll_phase *p,
                       uint32_t member, bool up)
{
    uint32_t place = sc_coll_place(p, member), v = distance(s, p, place);
    if (!in_line(s, p, member)) return 0;
    switch (p->pattern) {
    case SC_COLL_STAR: return up ? v > 0 : v == 0 ? p->n - 1 : 0;
    case SC_COLL_BINOMIAL: return up ? v > 0 : children(v, p->n);
    case SC_COLL_TREE: {
        sc_tree_node t = sc_coll_tree_at(p->n, place, p->tree);
        return up ? t.parent != SC_COLL_NOBODY : tree_children(&t);
    }
    default: return (up ? v > 0 : v < p->n - 1) ? p->steps : 0;
    }
}

/* ---- messages */

uint32_t sc_coll_sends(const sc_coll_schedule *s, const sc_coll_phase *p,
                       uint32_t member)
{
    if (sc_coll_is_symmetric(p->pattern)) return p->steps;
    return rooted(s, p, member, sc_coll_to_root(p));
}

uint32_t sc_coll_expects(const sc_coll_schedule *s, const sc_coll_phase *p,
                         uint32_t member)
{
    if (sc_coll_is_symmetric(p->pattern)) return p->steps;
    return rooted(s, p, member, !sc_coll_to_root(p));
}

uint32_t sc_coll_needs(const sc_coll_schedule *s, const sc_coll_phase *p,
                       uint32_t member, uint32_t k)
{
    if (p->pattern == SC_COLL_DIRECT) return 0;
    if (sc_coll_is_symmetric(p->pattern)) return k;
    uint32_t all = sc_coll_expects(s, p, member);
    return p->pattern == SC_COLL_CHAIN && all > 0 ? k + 1 : all;
}

/* Bit of the partner's number in which it differs from one's own. */
static uint32_t halving_bit(const sc_coll_phase *p, uint32_t k)
{
    uint32_t levels = floor_log2(p->n);
    uint32_t out = p->coll == SC_ALL_GATHER ? 0 : levels;
    return k < out ? k : levels - 1 - (k - out);
}

/* The step itself, or the gather step that it reverses. */
static uint32_t round_of(const sc_coll_phase *p, uint32_t k)
{
    return p->coll == SC_REDUCE_SCATTER ? p->steps - 1 - k : k;
}

static uint32_t round_peer(const sc_coll_phase *p, uint32_t i, uint32_t k,
                           bool sends)
{
    uint64_t off = (uint64_t)1 << round_of(p, k);
    if (sends == (p->coll == SC_REDUCE_SCATTER)) off = p->n - off;
    return (uint32_t)((i + off) % p->n);
}

static uint32_t binomial_peer(const sc_coll_schedule *s, const sc_coll_phase *p,
                              uint32_t v, uint32_t k, bool up)
{
    if (up) return at_distance(s, p, v - (1u << floor_log2(v)));
    return at_distance(s, p, v + (1u << ((v ? floor_log2(v) + 1 : 0) + k)));
}

static uint32_t tree_peer(const sc_coll_phase *p, uint32_t i, uint32_t k,
                          bool up)
{
    sc_tree_node t = sc_coll_tree_at(p->n, i, p->tree);
    if (up) return t.parent;
    return t.child[t.child[0] == SC_COLL_NOBODY ? 1 : k];
}

/* The receiver of the k-th message, or (not `sends`) a sender. */
static uint32_t peer(const sc_coll_schedule *s, const sc_coll_phase *p,
                     uint32_t member, uint32_t k, bool sends)
{
    uint32_t i = sc_coll_place(p, member), v = distance(s, p, i), to = i;
    bool up = sc_coll_to_root(p) == sends;
    switch (p->pattern) {
    case SC_COLL_RING: to = (i + (sends ? 1 : p->n - 1)) % p->n; break;
    case SC_COLL_DIRECT:
        to = (uint32_t)(((uint64_t)i + (sends ? 1 + k : p->n - 1 - k)) % p->n);
        break;
    case SC_COLL_ROUNDS: to = round_peer(p, i, k, sends); break;
    case SC_COLL_HALVING: to = i ^ 1u << halving_bit(p, k); break;
    case SC_COLL_SWITCH: return SC_COLL_AT_SWITCH;
    case SC_COLL_CHAIN: to = at_distance(s, p, up ? v - 1 : v + 1); break;
    case SC_COLL_BINOMIAL: to = binomial_peer(s, p, v, k, up); break;
    case SC_COLL_TREE: to = tree_peer(p, i, k, up); break;
    case SC_COLL_STAR: to = at_distance(s, p, up ? 0 : k + 1); break;
    case SC_COLL_MESSAGE: break;
    }
    return member - i * p->stride + to * p->stride;
}

uint32_t sc_coll_to(const sc_coll_schedule *s, const sc_coll_phase *p,
                    uint32_t member, uint32_t k)
{
    return peer(s, p, member, k, true);
}

uint32_t sc_coll_from(const sc_coll_schedule *s, const sc_coll_phase *p,
                      uint32_t member, uint32_t k)
{
    return peer(s, p, member, k, false);
}

/* ---- data */

/* After a reduce-scatter member i has block i, with which a gather begins. */
static uint32_t ring_block(const sc_coll_phase *p, uint32_t i, uint32_t k)
{
    uint32_t back = p->coll == SC_REDUCE_SCATTER ? k + 1
                    : p->coll == SC_ALL_REDUCE   ? k + 2
                                                 : k;
    return (i + 2 * p->n - back % p->n) % p->n;
}

static sc_coll_blocks round_blocks(const sc_coll_phase *p, uint32_t i,
                                   uint32_t k)
{
    uint32_t off = 1u << round_of(p, k), rest = p->n - off;
    uint32_t count = off < rest ? off : rest;
    if (p->coll == SC_BARRIER) return (sc_coll_blocks){0, 1, 1};
    /* a reduce-scatter sends what the receiver would have sent in a gather */
    uint32_t last = p->coll == SC_REDUCE_SCATTER ? i + rest : i;
    return (sc_coll_blocks){(last + p->n + 1 - count) % p->n, 1, count};
}

/* Blocks whose numbers agree with the partner's (for a gather with the member's
 * own) in the bits that were exchanged. */
static sc_coll_blocks halving_blocks(const sc_coll_phase *p, uint32_t i,
                                     uint32_t k)
{
    uint32_t levels = floor_log2(p->n), bit = halving_bit(p, k);
    sc_assert(bit < levels);
    uint32_t of = 2u << bit;
    bool reduce = !gathers(p) && k < levels;
    uint32_t first = (reduce ? i ^ 1u << bit : i) % of;
    return (sc_coll_blocks){first, of, p->n / of};
}

sc_coll_blocks sc_coll_carries(const sc_coll_schedule *s,
                               const sc_coll_phase *p, uint32_t member,
                               uint32_t k)
{
    uint32_t i = sc_coll_place(p, member);
    switch (p->pattern) {
    case SC_COLL_RING:
        if (p->part == 1) break;
        return (sc_coll_blocks){ring_block(p, i, k), 1, 1};
    case SC_COLL_DIRECT:
    case SC_COLL_STAR:
        if (p->part == 1) break;
        if (gathers(p) || p->coll == SC_GATHER)
            return (sc_coll_blocks){i, 1, 1};
        return (sc_coll_blocks){sc_coll_place(p, sc_coll_to(s, p, member, k)),
                                1, 1};
    case SC_COLL_ROUNDS: return round_blocks(p, i, k);
    case SC_COLL_HALVING: return halving_blocks(p, i, k);
    case SC_COLL_SWITCH:
        if (gathers(p)) return (sc_coll_blocks){i, 1, 1};
        return (sc_coll_blocks){0, 1, p->part};
    case SC_COLL_CHAIN: return (sc_coll_blocks){k, 1, 1};
    default: break;
    }
    return (sc_coll_blocks){0, 1, 1};
}

uint64_t sc_coll_bytes(const sc_coll_schedule *s, const sc_coll_phase *p,
                       uint32_t chunk, uint32_t member, uint32_t k)
{
    uint64_t all = sc_coll_part(s->bytes, chunk, s->chunks), sum = 0;
    if (p->slices > 1) all = sc_coll_part(all, member % p->slices, p->slices);
    if (p->tree > 0) all = sc_coll_part(all, p->tree - 1, 2);
    sc_coll_blocks b = sc_coll_carries(s, p, member, k);
    for (uint32_t j = 0, at = b.first; j < b.count; j++, at += b.step)
        sum += sc_coll_part(all, at % p->part, p->part);
    return sum;
}

bool sc_coll_adds(const sc_coll_phase *p, uint32_t k)
{
    switch (p->coll) {
    case SC_REDUCE_SCATTER:
    case SC_REDUCE: return true;
    case SC_ALL_REDUCE: return k < p->steps / 2 || p->pattern == SC_COLL_SWITCH;
    default: return false;
    }
}
