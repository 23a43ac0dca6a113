/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules.h - what a mode changes: one row for each mode.
 *
 * Code tests the fields of a row and never its name.
 */
#ifndef SC_BASE_RULES_H
#define SC_BASE_RULES_H

#include "base/units.h"

typedef struct sc_rules {
    const char *name;
    /* The command that has the mode: `simulate` (traces) or `predict` (steps). */
    bool of_traces, of_steps;
    /* Durations are cut to whole multiples of this; 1: kept. */
    sc_time quantum;
    /* Every link of a route receives a message as a whole before the next link
     * sends it. Otherwise its head goes on while its tail still leaves
     * (cut-through). */
    bool store_and_forward;
    /* Without links, a message pays only for the innermost dimension in which
     * its ends differ. */
    bool first_dim_only;
    /* Without links, a port can carry any number of messages at once. */
    bool ports_unlimited;
    /* A member of a subgroup pays this for entering the memory bus instead of
     * the system's own value; 0: the system's value. */
    sc_time subgroup_endpoint;
    /* A direct all-reduce starts its second exchange when every part has
     * arrived, although the last parts are still being reduced. */
    bool early_second_exchange;
    /* Halving-doubling reduces the message that it sends next, instead of the
     * one that has just arrived. */
    bool reduce_next_message;
    /* An all-to-all on a ring moves one part at a time, which takes n (n - 1) /
     * 2 steps instead of n - 1. */
    bool ring_all_to_all_single;
    /* Each rank starts a collective by itself and holds a slot for it.
     * Otherwise all members start together when the last one is ready. */
    bool collectives_start_alone;
    /* A task that becomes ready while a rank starts others is only tried when
     * the next of its tasks ends. */
    bool ready_waits;
    /* Chunks are cut without regard to the members, and the remainder is one
     * more whole chunk. Otherwise all chunks are equal and have a whole number
     * of bytes per member. */
    bool chunks_cut;
    /* Algorithms run on any number of members, even if they need a power of
     * two. Otherwise a ring replaces them. */
    bool unfit_runs;
    /* A subgroup runs a ring if several algorithms are listed. Otherwise it
     * runs that of the dimension in which its members lie; if they form a grid
     * along several dimensions, it runs all of theirs, one after the other. */
    bool subgroups_ring;
    /* If a list of algorithms is too short, the remaining dimensions are left
     * out; otherwise it is an error. */
    bool dims_left_out;
    /* Algorithms and splits have no default: the file has to give them. */
    bool all_given;
    /* A subgroup runs all collectives of one kind like its first one. */
    bool group_keeps_algorithm;
    /* A broadcast lasts as long as the trace recorded. */
    bool broadcast_replayed;
    /* Keys for the order of dimensions and of streams have no effect. */
    bool orders_ignored;
    /* No switch reduces or multicasts. */
    bool switches_only_forward;
    /* A kernel without FLOP or without bytes costs nothing. */
    bool empty_kernels_free;
    /* Recorded times are whole microseconds. */
    bool durations_in_micros;
    /* The group "0" contains all ranks, even if a file of groups defines it. */
    bool group_zero_is_world;
    /* All time that is not compute counts as exposed communication. */
    bool idle_is_exposed;

    /* ---- of operator networks and their executor ---- */

    /* Attention consists of separate products, softmax and dropout, whatever
     * the software does. */
    bool attention_unfused;
    /* Gradients are exchanged in the precision of weights. */
    bool gradients_as_weights;
    /* A step consists of its kernels and exchanges only; data loading and
     * logging take no time. */
    bool nothing_fixed;
    /* Time before the kernels of every operator. */
    sc_time launch_gap;
    /* A stream starts the operation that became ready first, not the first of
     * its order. Readiness is counted in rounds in which every stream starts
     * one operation. Links are then not shared, and no rate is reduced. */
    bool ready_order;
    /* A kernel that would overlap a gradient exchange is slowed for its
     * whole length, and so is that exchange while other work than gradients
     * is left. */
    bool overlap_whole;
    /* Gradient exchanges wait while a transfer between stages can start. */
    bool transfers_first;
    /* Operations never share the bandwidth of a link. */
    bool links_private;
    /* Collectives run as rings with the simple protocol at any size, with the
     * constants of NCCL 2.10.3. */
    bool ring_simple;
    /* The first bucket of gradients is closed beyond this size; 0: the size of
     * all others. */
    uint64_t first_bucket;
    /* Buckets are counted over all communicators, and are closed after the
     * gradient that fills them instead of before it. */
    bool buckets_counted_together;
    /* Buckets of gradients that are scattered are exchanged after all others,
     * even if they are full earlier. */
    bool scattered_last;
    /* The gradient of a bias is summed over axes that split a summed dim,
     * although all ranks along them have the whole gradient. */
    bool bias_partial;
    /* Gradients and optimizer states of all tables are as large as the
     * tables. */
    bool tables_dense;
    /* A loss over a divided vocabulary exchanges one sum per sample. Otherwise
     * it exchanges the maximum, the sum and the label's value of every row. */
    bool loss_per_sample;
    /* Exchanges of activations and of gradients have separate queues, whatever
     * the software does. */
    bool exchanges_overlap;
    /* Weights are gathered, and copied from another memory, this many operators
     * before their use. 0: as many operators that need it as the software has
     * layers. */
    uint32_t gather_ahead, copy_ahead;
} sc_rules;

/* Finds a row by its name; NULL: there is none. `sc_rules_find(NULL)` returns
 * our own rules. */
const sc_rules *sc_rules_find(const char *name);
/* All rows, our own first. */
const sc_rules *sc_rules_all(uint32_t *n);
#endif
