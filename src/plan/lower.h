/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lower.h - state of the lowering of a program to an execution graph.
 *
 * A pipeline device is a coordinate of mesh axis pp.  It has `members` devices
 * in the execution graph: either one for all its ranks, or one for each rank.
 * A slot is one pass of one micro-batch through one stage.  The items of slots
 * become operations in order of the slots' estimated ends, so that a stream
 * which several devices share queues them about as they get ready.
 */
#ifndef PLAN_LOWER_H
#define PLAN_LOWER_H

#include "plan/program.h"

/* Passes of a schedule as bits, which say in which slots an item runs. */
typedef enum lower_part {
    LOWER_FWD = 1,
    LOWER_X = 2, /* gradients of inputs, and recomputation for them */
    LOWER_W = 4  /* gradients of weights */
} lower_part;

typedef struct lower_item {
    const char *name;
    sc_time work, latency;
    uint64_t bytes;
    double flops;
    uint8_t kind, stream, part;
    bool none;          /* takes no time: it is ready when item `as` is */
    bool prefetch_user; /* reads a prefetched value */
    bool closes;  /* the last item of its layer that reads a prefetched value */
    bool fills;   /* makes gradients that each micro-batch reduces, or does
                     the first exchange of them */
    bool empties; /* a buffer of such gradients is free after this item */
    bool source;  /* the first item of its slot on the compute stream */
    uint32_t back; /* of a prefetch: it waits for the end of the layer that ran
                      `back` layers ago; 0: no prefetch */
    uint32_t n_after;
    uint32_t *after; /* [n_after] items of the same micro-batch that made what
                        it reads, without those that the order of its stream
                        implies */
    bool once;       /* also reads values that are made once a step */
    uint32_t as;     /* item that made the last of its inputs; SC_NONE: none */
} lower_item;

/* Items of one stage in the order in which they are issued. */
typedef struct lower_list {
    uint32_t n;
    uint32_t *item;
} lower_list;

typedef struct lower_stage {
    lower_list fwd, bwd, once;
    sc_time span[3];  /* estimated compute time of passes F, X, W */
    uint32_t n_needs; /* slots of other stages that this stage waits for */

    struct lower_need {
        uint8_t part;   /* lower_part of this stage */
        uint8_t before; /* lower_part of the other stage */
        uint32_t stage;
        sc_time delay;
    } * needs;

    uint32_t n_arrivals;
    uint32_t *arrival;     /* [n_arrivals] items that receive values from other
                              stages */
    uint8_t *arrival_part; /* [n_arrivals] lower_part that reads the value */
} lower_stage;

/* A stage on a device.  In bidirectional schedules each stage is on two. */
typedef struct lower_instance {
    uint32_t dev, stage;
    uint32_t row;     /* for items that run once */
    uint32_t last[3]; /* micro-batch of the last slot F, X, W; SC_NONE */
    uint32_t left[3]; /* slots to come */
    bool begun;
    uint8_t ran; /* lower_part of the slots issued so far */
} lower_instance;

/* Ranks that an exchange spans, on the devices that run it. */
typedef struct lower_comm {
    uint8_t coll;
    uint32_t n_groups, size, n_dev;
    const uint32_t *rank;    /* [n_groups * size] */
    uint32_t *dev;           /* [n_dev] pipeline devices */
    uint32_t *traffic;       /* [1], or [n_groups] where ranks are devices */
    const sc_traffic *moves; /* loads of the last traffic; NULL: no link is
                                loaded */
} lower_comm;

typedef struct lower_comms {
    uint32_t n, cap;
    lower_comm *all;           /* [n] */
    sc_map by_ranks, by_place; /* by the ranks themselves, and by the address of
                                  the array in which inference keeps them */

    struct lower_asked {
        uint32_t comm, dev, to;
    } * asked; /* [n_items] result of the last query for an item; comm SC_NONE:
                  no query yet */
} lower_comms;

/* Data on an operation that workloads need and the graph does not have. */
typedef struct lower_note {
    const char *name; /* name of the operation */
    uint32_t comm; /* of exchanges: index in lower_notes.comm; else SC_NONE */
    double bytes; /* volume V of an exchange; of a transfer, that of one pair */
    bool hidden;  /* a part of it overlaps kernels */
    bool fills;   /* see lower_item */
    bool grad;    /* exchanges the gradient of one micro-batch */
    bool copy, load; /* copies between memories; copies to the device */
} lower_note;

typedef struct lower_notes {
    uint32_t n, cap;
    lower_note *at; /* [n] by operation */
    uint32_t n_comms;
    const lower_comm *comm; /* [n_comms] */
    uint32_t pp, stride;
    double slow; /* factor that is left out of the durations */
    bool failed;
    bool ahead; /* sends may be far ahead of the receiver's kernels */
} lower_notes;

typedef struct lower_slot {
    uint32_t dev, stage, mb, inst, seq;
    uint8_t parts;
    sc_time end;
} lower_slot;

/* The last operations issued on a device's compute stream; SC_NONE: none. */
typedef struct lower_tail {
    sc_op tail;   /* the last operation */
    sc_op before; /* the last of earlier slots */
} lower_tail;

struct lower_runs;
struct clock_kind;

/* Results that walks of one program share if they have more than one
 * micro-batch. */
struct sc_net_walks {
    bool made;
    net_program whole;
    lower_item *item; /* this and the next fields: see lowering */
    uint32_t *root, *use_head, *use, *new_weight;
    lower_stage *stage;
    uint32_t ahead;
    bool eager;
    lower_comms
        *comms[2]; /* [0] without a graph, [1] with one: traffics are equal in
                      all such graphs */
    const struct lower_runs *runs[2]; /* as above; NULL: not made yet */

    /* Slots that the fast sink knows (clock_slots.c) at the rates `slow`; NULL:
     * not made yet. */
    double slow[2];
    struct clock_kind *kinds;
    bool *read;
    uint32_t *named, *at, stamp;
};

typedef struct lowering {
    const sc_net_run *job;
    const sc_rules *rules;
    const net_program *prog;
    sc_net_plan *p;
    sc_arena *a;
    sc_err *err;
    sc_graph_builder *b;

    double slow; /* factor on every duration */
    uint32_t pp, chunks, ga, stride, members;
    uint32_t n_rows; /* micro-batches whose values get lifetimes */
    sc_schedule schedule;
    bool grads_overlap, p2p_overlaps, weights_overlap;
    bool eager; /* stages send and start whatever is ready, not pass by pass */

    lower_item *item; /* [n_items] */
    uint32_t *root; /* [n_values] the value whose memory it shares, or itself */
    uint32_t *use_head; /* [n_values + 1] CSR: items that read a value, or one
                           that shares its memory */
    uint32_t *use;
    bool *sum;     /* [n_values] a gradient that is not added to another one */
    uint8_t *span; /* [n_values] how long they live: `span` of lower_memory.c */
    uint32_t *shared; /* [n_values] of permanent values: the one before it of
                         the same tensor; SC_NONE: none */
    uint32_t
        *new_weight; /* [n_tensors] item that gathers the updated weight before
                        the first forward pass; SC_NONE */
    lower_stage *stage; /* [n_stages] */

    uint32_t n_inst;
    lower_instance *inst; /* [n_inst] */
    uint32_t *inst_of;    /* [pp * n_stages] */
    uint32_t *device;     /* [n_stages * ga] by stage and micro-batch */

    uint32_t n_slots;
    lower_slot *slot; /* [n_slots] in order of emission */

    sc_op **row; /* [rows][n_items][members] numbers of parts
                    (sc_part_first); a row is a micro-batch */
    uint32_t ahead;
    sc_op *past;      /* [pp][ahead + 2][members] ends of layers, a ring */
    uint32_t *n_past; /* [pp] */
    sc_op *reduced;   /* [pp][2][members] the last two operations that emptied
                         buffers of gradients */
    uint32_t *n_reduced; /* [pp] */
    sc_op *replica_sum; /* [n_stages][members] sum over both devices; SC_NONE */
    lower_tail *tail;   /* [pp][members] */
    const lower_slot *opening; /* slot whose first kernel is not issued yet;
                                  NULL: none */
    bool *issued;              /* [2][n_items] of items that run once */
    uint32_t *scratch;         /* [2 * members] */

    lower_notes *notes; /* NULL: not wanted */
    lower_comms *comms;
    struct lower_clock *clock; /* the fast sink; NULL: a graph is built */
    struct lower_runs *runs;   /* NULL: every part is an operation */
    bool failed;               /* out of memory */
} lowering;

/* Fills the fields of `g` that do not depend on the sink.  `whole` gets the
 * program with the items that lowering adds to it. */
sc_status lower_begin(lowering *g, net_program *whole);
/* lower_shared.c: results that walks of this program share (NULL: nothing is
 * shared); writes them; reads them. */
struct sc_net_walks *lower_shared(const lowering *g);
void lower_share(const lowering *g, struct sc_net_walks *x);
void lower_use_shared(lowering *g, const struct sc_net_walks *x);

/* Issues all slots and the operations that happen once a step. */
sc_status lower_walk(lowering *g);

/* lower_tiers.c: adds to `in` the copies to and from other memories. */
sc_status lower_tiers(const sc_net_run *job, const net_program *in, sc_arena *a,
                      net_program *out, sc_err *err);
/* Bytes/s between one device and a memory; a device's part of the host memory's
 * bytes/s. */
double lower_tier_bw(const sc_net_run *job, sc_tier tier);
double lower_host_bw(const sc_net_run *job);

/* lower_split.c: divides gathers of updated weights into buckets. */
sc_status lower_split(const sc_net_run *job, net_program *p, sc_arena *a,
                      sc_err *err);

/* lower_branches.c: sets g->eager if stages are branches and not a chain. */
sc_status lower_find_eager(lowering *g);

/* lower_items.c */
sc_status lower_items(lowering *g);
/* lower_implied.c: drops waits that the order of streams implies. */
void lower_find_implied(lowering *g);

/* lower_slots.c */
sc_status lower_slots(lowering *g);
/* Whether gradients of weights may have passes of their own. */
bool lower_splits(const lowering *g);
/* Fills the `needs` of g->stage. */
sc_status lower_needs(lowering *g);

/* lower_comm.c: sets g->comms, which earlier walks may have filled.  Call this
 * once devices and items are known. */
sc_status lower_comms_begin(lowering *g);
/* Finds the communicator of item `i` on device `dev` (`to`: the other end of a
 * transfer). */
sc_status lower_comm_of(lowering *g, uint32_t i, uint32_t dev, uint32_t to,
                        const lower_comm **out);
/* Finds an equal communicator or adds this one; `*out` is its number. */
sc_status lower_comm_add(lowering *g, const lower_comm *wanted, uint32_t *out);
uint32_t lower_rank(const lowering *g, uint32_t dev, uint32_t member);
void lower_place(const lowering *g, uint32_t rank, uint32_t *dev,
                 uint32_t *member);

static inline uint32_t lower_device(const lowering *g, uint32_t stage,
                                    uint32_t mb)
{
    return g->device[(size_t)stage * g->ga + mb];
}

/* Whether a stage is a part of a vocabulary: such stages exchange values at
 * once, in the middle of a pass. */
static inline bool lower_spread(const lowering *g, uint32_t stage)
{
    uint32_t layers = g->job->layers_chunk;
    return layers > 0 && stage / g->pp + 1 != layers;
}

/* lower.c: adds the operations of item `i` of micro-batch `mb` on `at`. */
sc_status lower_emit(lowering *g, const lower_instance *at, uint32_t mb,
                     uint32_t i);

static inline sc_op *lower_ops(const lowering *g, uint32_t row, uint32_t item)
{
    return g->row[row] + (size_t)item * g->members;
}

/* Adds an operation and returns its number; the numbers of its further parts
 * follow.  Dependencies refer to these numbers. */
sc_op lower_add(lowering *g, const lower_item *t, const sc_op_desc *o);
/* The queue of transfers between two pipeline devices that overlap kernels. */
uint8_t lower_transfer_stream(const lowering *g, uint32_t from, uint32_t to);
/* Records a note on an operation, if notes are wanted. */
void lower_report(lowering *g, sc_op op, const lower_note *note);
/* As sc_net_plan_lower(), but kernels are not joined, and with notes (NULL:
 * none). */
sc_status lower_lower(sc_net_plan *p, lower_notes *notes, sc_arena *a,
                      sc_err *err);
void lower_after(lowering *g, sc_op before, sc_op after);
/* Adds the waits of an operation of item `i` for what one member reads. */
void lower_after_values(lowering *g, const lower_instance *at, uint32_t mb,
                        uint32_t i, uint32_t member, sc_op op);

/* Adds all waits of the operation of item `i` that was added last. */
void lower_deps(lowering *g, const lower_instance *at, uint32_t mb, uint32_t i,
                uint32_t member, sc_op op);
void lower_ran(lowering *g, const lower_instance *at, uint32_t i,
               uint32_t member, sc_op op);

/* Whether an item sends to another stage. */
bool lower_is_transfer(const lowering *g, uint32_t i);

/* lower_runs.c: issues a slot with operations of several parts. */
sc_status lower_runs_prepare(lowering *g);
sc_status lower_runs_pass(lowering *g, const lower_instance *at,
                          const lower_slot *s, const lower_list *l, bool *done);
/* The operation of a part; numbers `n` new parts, returns the first number. */
sc_op lower_op_of(const lowering *g, uint32_t number);
uint32_t lower_number(lowering *g, sc_op op, uint32_t n);

/* lower_exchange.c */
void lower_exchange(lowering *g, const lower_instance *at, uint32_t mb,
                    uint32_t i, const lower_comm *c);

/* lower_once.c */
sc_status lower_first_pass(lowering *g, lower_instance *at);
sc_status lower_last_pass(lowering *g, lower_instance *at);
sc_status lower_finish(lowering *g);
bool lower_is_update(const program_item *it);

/* lower_dualpipe.c */
sc_status lower_dualpipe(lowering *g);

/* lower_memory.c */
sc_status lower_lifetimes(lowering *g);
/* Bytes that an exchange of the forward pass scatters, if the result is smaller
 * than its input; else 0. */
double lower_scattered(const net_program *p, const program_item *it);
/* Whether a gradient is moved into another value as soon as a micro-batch has
 * made it. */
bool lower_leaves(const lowering *g, uint32_t v);

#endif
