/* SPDX-License-Identifier: Apache-2.0 */
/*
 * collective.h - collectives: their schedules, members and chunks in flight.
 */
#ifndef SIM_COLLECTIVE_H
#define SIM_COLLECTIVE_H

#include "coll/coll_schedule.h"
#include "sim/events.h"

/* One phase of a schedule: an algorithm over one dimension. */
typedef struct sim_phase {
    uint8_t op;         /* sc_coll */
    uint8_t kind;       /* sc_coll_pattern; SC_COLL_MESSAGE: custom.c */
    uint8_t port;       /* SC_COLL_SWITCH: dimension of the switch */
    uint8_t dim;        /* whose queues it uses */
    uint8_t queue_half; /* 0: any queue, 1: the first, 2: the second half */
    bool local;         /* of a subgroup */
    uint32_t n;         /* members */
    uint32_t stride;    /* between neighbours, in members of the group */
    uint32_t window;    /* direct: concurrent peers, <= n - 1 */
    uint64_t size;      /* of the chunk when it enters */
    uint64_t message;   /* ring, direct, rooted */
    /* [2] rooted: a schedule of this phase alone, and mirrored */
    const sc_coll_schedule *rooted;
    uint32_t n_steps;    /* halving-doubling: table of messages */
    uint64_t *step_size; /* [n_steps + 1] */
    uint64_t *step_off;  /* [n_steps + 1] distance to the partner */
    double *load;        /* loads.c: factors by distance, 0: not known yet;
                            NULL: all are 1 */
} sim_phase;

typedef struct sim_schedule {
    struct sim_schedule *next; /* schedules of one communicator shape */
    const sc_ccl *node;        /* algorithm of this task alone, or NULL */
    uint32_t coll;             /* sc_coll */
    uint32_t asked_root;       /* as the trace names it */
    uint32_t root;             /* position in the communicator */
    uint64_t size, chunk;
    uint32_t n_streams, n_phases;
    uint32_t n_lists; /* different orders of the dimensions */
    sim_phase *phase; /* [n_lists * n_phases] */
    uint32_t *list;   /* [n_streams] dimension order of each; NULL: the first */
    /* [n_streams * n_phases] place among all that start in the phase's
     * dimension; NULL: as they come */
    uint32_t *start_order;
    const sc_workload *custom; /* a rank per member */
} sim_schedule;

/* A communicator in use: a list of ranks, or the ranks of the whole network
 * that agree outside `mask`. */
typedef struct sim_comm {
    uint32_t n, mask, base;
    uint32_t group; /* index in the workload; SC_TASK_WORLD */
    bool flat;      /* one dimension: a ring of its own */
    /* members along each dimension; unused if flat */
    uint32_t along[SC_HW_DIMS];
    bool symmetric;          /* one member stands for all */
    const uint32_t *rank;    /* [n]; NULL: by mask */
    uint32_t n_live;         /* members simulated: n, or 1 if symmetric */
    uint32_t representative; /* symmetric: the member that is simulated */
    uint32_t *count;         /* [n_live] collectives each has begun */
    struct sim_coll *open;   /* instances by rising ordinal */
    sim_schedule *schedules;
    const sc_ccl *kept[SC_N_CCL_OPS]; /* see rules.group_keeps_algorithm */
    bool keeps[SC_N_CCL_OPS];
} sim_comm;

/* One collective: all its members, all its chunks. */
typedef struct sim_coll {
    struct sim_coll *next;
    sim_comm *comm;
    sim_schedule *schedule;
    uint32_t ordinal;
    uint32_t n_begun, n_ended;  /* members */
    uint32_t n_live;            /* streams that exist */
    struct sim_stream **stream; /* [n_live * n_streams] when first touched */
} sim_coll;

typedef struct sim_permit {
    int32_t count; /* requests, or messages that wait for one (< 0) */
    uint32_t to;
    uint64_t size; /* of such messages */
} sim_permit;

struct sim_gathering;

typedef struct sim_mailbox {
    struct sim_gathering *gathering; /* at the switch */
    int32_t *balance;                /* [n] arrived, or waited for (< 0) */
    sim_permit *permit;              /* [n] rendezvous */
} sim_mailbox;

/* The end of a member's collective. */
typedef struct sim_end {
    uint32_t task, left; /* streams to finish */
    uint32_t slot;       /* whose queues it uses */
    sc_time begun;
    sim_coll *coll;
    uint32_t started[SC_HW_DIMS]; /* next to start in each dimension */
} sim_end;

/* The route of a stream's latest message, cached. */
typedef struct sim_path {
    bool known;
    uint32_t phase, to;   /* position in the phase's ring */
    uint32_t member, dst; /* of the group; rank */
    uint32_t slot, back;  /* how mailboxes know the two ends */
    uint64_t size;
    sc_time delay; /* without links */
    double load;   /* as of a message */
} sim_path;

/* One chunk of a collective on one member. */
typedef struct sim_stream {
    struct sim_stream *next; /* in its queue */
    /* of its dimension order, [n_phases] of the schedule */
    const sim_phase *phases;
    sim_coll *coll;
    sim_rank *rank;
    sim_end *end;         /* NULL: the member has not begun */
    sim_mailbox *mailbox; /* [n_phases] made when first touched */
    uint32_t *queue;      /* [n_phases] queue of each phase */
    uint8_t *reverse;     /* [n_phases] other direction, or other tree */
    uint32_t index;       /* chunk */
    uint32_t member;      /* position in the group */
    uint32_t live;        /* among its members that are simulated */
    uint32_t phase;       /* the next one is phase + 1 */
    int32_t priority;
    bool running;
    /* the algorithm of the phase */
    uint32_t held; /* by messages in flight, or by messages that the receiver
                      has not requested */
    bool ended;    /* but may still be held by messages */
    uint32_t to_send, sent, inserted, received, left_bus;
    int32_t idle; /* packets that left the bus and may be sent */
    uint32_t fresh, rest;
    bool toggle;
    uint8_t state;
    uint32_t place; /* position in the phase's ring */
    sim_path path;
    void *custom;
} sim_stream;

#endif
