/* SPDX-License-Identifier: Apache-2.0 */
/*
 * coll_schedule.h - which messages a collective consists of.
 *
 * A schedule is a list of phases.  In each phase lines of `n` members, which
 * are `stride` apart in the order of the group, exchange messages by one
 * pattern.  Everything else follows from the phases: the sender, receiver and
 * data of each message, the messages that a member must have received before,
 * and whether the receiver adds the data to its own.
 *
 * Members are in the order of their nodes: members 0 to m - 1 are in the
 * first node.  Sizes are those of coll.h.  Schedules are plain data.
 */
#ifndef SC_COLL_SCHEDULE_H
#define SC_COLL_SCHEDULE_H

#include "graph/graph_coll.h"

typedef enum sc_coll_pattern {
    SC_COLL_RING,     /* to the next member; each step passes on the data
                         received before */
    SC_COLL_DIRECT,   /* from every member to every other at once */
    SC_COLL_HALVING,  /* with the member whose number differs in one bit */
    SC_COLL_SWITCH,   /* a switch reduces what members send, and multicasts */
    SC_COLL_TREE,     /* all data, along one of two complementary binary
                         trees */
    SC_COLL_BINOMIAL, /* all data, along a binomial tree from the root or to
                         it */
    SC_COLL_MESSAGE,  /* single messages */
    SC_COLL_CHAIN,    /* pieces from the root to the next members, or back */
    SC_COLL_STAR,     /* between the root and all others */
    SC_COLL_ROUNDS    /* step k sends all received data to the 2^k-th next
                         member */
} sc_coll_pattern;

typedef struct sc_coll_phase {
    sc_coll_pattern pattern;
    sc_coll coll;       /* collective of the phase among the members of a
                           line */
    uint32_t n, stride; /* of a line */
    uint32_t steps;     /* messages that a member sends at most */
    uint32_t part;      /* number of blocks of the data of a line ... */
    uint32_t slices;    /* ... which are 1 / slices of all data: slice number
                           member % slices */
    uint32_t tree;      /* for SC_COLL_TREE: 1 or 2, the tree that has this half
                           of the data */
} sc_coll_phase;

#define SC_COLL_SCHEDULE_PHASES 6

typedef struct sc_coll_schedule {
    sc_coll coll;
    uint32_t n, root; /* members; the root's number */
    uint32_t chunks;  /* chunks that pass through the phases one after
                         another */
    uint64_t bytes;   /* V; for a barrier the bytes of one message */
    bool pipelined;   /* pieces are in all phases at the same time */
    uint32_t n_phases;
    sc_coll_phase phase[SC_COLL_SCHEDULE_PHASES];
} sc_coll_schedule;

/* Members of a group: `m` in each node; 0 if the numbers differ. */
typedef struct sc_coll_group {
    uint32_t n, m, root;
} sc_coll_group;

/* ---- schedules: n >= 2; false: the algorithm does not support this ------- */

/* One ring over all members: all-reduce, all-gather, reduce-scatter; a chain of
 * `pieces` blocks for broadcast and reduce. */
bool sc_coll_schedule_ring(sc_coll coll, sc_coll_group g, uint32_t pieces,
                           sc_coll_schedule *out);
/* Rings inside the nodes and, one for each member of a node, between nodes. */
bool sc_coll_schedule_hierarchical(sc_coll coll, sc_coll_group g,
                                   sc_coll_schedule *out);
/* From every member to every other; also gather and scatter. */
bool sc_coll_schedule_direct(sc_coll coll, sc_coll_group g,
                             sc_coll_schedule *out);
/* Chains inside the nodes, between nodes two complementary binary trees for an
 * all-reduce and a binomial tree for a broadcast or reduce. */
bool sc_coll_schedule_tree(sc_coll coll, sc_coll_group g,
                           sc_coll_schedule *out);
/* Recursive halving and doubling (Thakur et al., 2005): n is a power of 2. */
bool sc_coll_schedule_halving(sc_coll coll, sc_coll_group g,
                              sc_coll_schedule *out);
/* ceil(log2 n) rounds: barrier (Hensgen, Finkel and Manber, 1988), all-gather
 * (Bruck et al., 1997), and the reverse of that, reduce-scatter. */
bool sc_coll_schedule_rounds(sc_coll coll, sc_coll_group g,
                             sc_coll_schedule *out);
/* In the switch of a node and, between nodes, in the switches of the
 * network. */
bool sc_coll_schedule_in_network(sc_coll coll, sc_coll_group g,
                                 sc_coll_schedule *out);
/* In the switch of a node, along trees between nodes: all-reduce. */
bool sc_coll_schedule_in_network_tree(sc_coll coll, sc_coll_group g,
                                      sc_coll_schedule *out);
/* Directly in the node, in the switches of the network: all-reduce. */
bool sc_coll_schedule_direct_in_network(sc_coll coll, sc_coll_group g,
                                        sc_coll_schedule *out);

/* The default schedule of a collective: rings, in four chunks if there are
 * several phases; direct messages; chains, or binomial trees if pieces would be
 * small; stars; rounds. */
void sc_coll_schedule_usual(sc_coll coll, uint64_t bytes, sc_coll_group g,
                            sc_coll_schedule *out);

/* ---- the part of a member in a phase */

/* The messages that a member sends, in order, and those that it receives. */
uint32_t sc_coll_sends(const sc_coll_schedule *s, const sc_coll_phase *p,
                       uint32_t member);
uint32_t sc_coll_expects(const sc_coll_schedule *s, const sc_coll_phase *p,
                         uint32_t member);
/* The number of messages that a member must receive before it sends the
 * k-th. */
uint32_t sc_coll_needs(const sc_coll_schedule *s, const sc_coll_phase *p,
                       uint32_t member, uint32_t k);

/* The receiver of the k-th message that a member sends, and the sender of one
 * that it receives; SC_COLL_AT_SWITCH: the switch. */
#define SC_COLL_AT_SWITCH UINT32_MAX
uint32_t sc_coll_to(const sc_coll_schedule *s, const sc_coll_phase *p,
                    uint32_t member, uint32_t k);
uint32_t sc_coll_from(const sc_coll_schedule *s, const sc_coll_phase *p,
                      uint32_t member, uint32_t k);

/* Blocks first, first + step ... (modulo p->part) of the slice. */
typedef struct sc_coll_blocks {
    uint32_t first, step, count;
} sc_coll_blocks;

sc_coll_blocks sc_coll_carries(const sc_coll_schedule *s,
                               const sc_coll_phase *p, uint32_t member,
                               uint32_t k);
uint64_t sc_coll_bytes(const sc_coll_schedule *s, const sc_coll_phase *p,
                       uint32_t chunk, uint32_t member, uint32_t k);

/* Whether the receiver adds the k-th message to its data. */
bool sc_coll_adds(const sc_coll_phase *p, uint32_t k);

/* The k-th of n parts of `bytes`, and where it begins: the first parts are one
 * byte larger if the parts cannot be equal. */
static inline uint64_t sc_coll_part(uint64_t bytes, uint64_t k, uint32_t n)
{
    return bytes / n + (k < bytes % n);
}

static inline uint64_t sc_coll_part_begin(uint64_t bytes, uint64_t k,
                                          uint32_t n)
{
    uint64_t more = bytes % n;
    return k * (bytes / n) + (k < more ? k : more);
}

/* ---- positions in a line */

static inline uint32_t sc_coll_place(const sc_coll_phase *p, uint32_t member)
{
    return member / p->stride % p->n;
}

/* Whether messages go towards the root, and not away from it. */
static inline bool sc_coll_to_root(const sc_coll_phase *p)
{
    return p->coll == SC_REDUCE || p->coll == SC_GATHER;
}

/* Whether all members do the same. */
static inline bool sc_coll_is_symmetric(sc_coll_pattern p)
{
    return p <= SC_COLL_SWITCH || p == SC_COLL_ROUNDS;
}

/* Neighbours of a place in a binary tree over n places (Sanders, Speck and
 * Träff, 2009).  Places stand in order of the tree; its root is the last place
 * of tree 1 and the first of tree 2, so that a leaf of one works in the other.
 * SC_COLL_NOBODY: none. */
#define SC_COLL_NOBODY UINT32_MAX

typedef struct sc_tree_node {
    uint32_t parent, child[2];
} sc_tree_node;

/* Number i in the order of the tree is at place i - shift; number 0 is the
 * root.  Inline, because simulate calls it for every message of a tree. */
static inline sc_tree_node sc_coll_tree_at(uint32_t n, uint32_t place,
                                           uint32_t tree)
{
    uint32_t shift = tree == 1 ? 1 : 0;
    uint32_t i = place + shift < n ? place + shift : 0;
    uint32_t low = i & -i, right = low / 2;
    sc_tree_node t = {SC_COLL_NOBODY, {SC_COLL_NOBODY, SC_COLL_NOBODY}};
    if (i == 0) { /* above the largest power of 2 */
        for (low = 1; low < n - low; low *= 2) {
        }
        if (n > 1) t.child[0] = low - shift;
        return t;
    }
    uint32_t up = i ^ low;
    if ((up | 2 * low) < n) up |= 2 * low;
    t.parent = up >= shift ? up - shift : n - 1;
    if (low == 1) return t;
    t.child[0] = i - right - shift;
    while (right > 0 && i + right >= n) right /= 2;
    if (right > 0) t.child[1] = i + right - shift;
    return t;
}
#endif
