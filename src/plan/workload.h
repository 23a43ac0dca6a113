/* SPDX-License-Identifier: Apache-2.0 */
/* workload.h - collects the tasks of a class of ranks and writes them as a
 * list. */
#ifndef PLAN_WORKLOAD_H
#define PLAN_WORKLOAD_H

#include "coll/coll.h"
#include "graph/graph.h"
#include "graph/graph_workload.h"

typedef struct work_task {
    const char *name;
    sc_time duration;
    uint64_t size, ops;
    uint32_t group, peer, tag; /* slots */
    uint32_t pred, n_preds;    /* in work_side.pred */
    uint32_t reach; /* number of tasks of the compute stream's chain, from its
                       start, that are done when this task is */
    uint32_t user;  /* of a receive: the first task of the chain that waits for
                       it, + 1; 0: none */
    uint8_t kind, coll, flags;
    uint8_t stream; /* of an exchange: the stream whose order it keeps */
} work_task;

/* The most tasks of other streams for which the next task of the compute stream
 * waits. */
#define WORK_OVERLAPS 16

typedef struct work_side {
    work_task *task;
    uint32_t *pred, *chain; /* chain: the tasks of the compute stream */
    uint32_t n, cap, n_preds, cap_preds, n_chain, cap_chain;
    uint32_t tail[SC_N_STREAMS];
    uint32_t posted; /* last task of the chain that is not a send */
    uint32_t overlap[WORK_OVERLAPS], n_overlaps;
    uint32_t need[SC_N_STREAMS]; /* least `reach` of further communication on
                                    the stream */
    uint32_t *group;    /* [n_groups] the producer's number of each slot */
    uint32_t *peer;     /* [n_peers] */
    uint32_t *tag;      /* [n_tags] */
    uint32_t *tag_slot; /* slot of each tag; SC_NONE: no slot yet */
    uint32_t n_groups, cap_groups, n_peers, cap_peers, n_tags, cap_tags;
} work_side;

/* Collects in `list` the tasks that the next task waits for. */
typedef struct work_build {
    sc_arena *a;
    sc_err *err;
    uint32_t *list, n_list, cap;
} work_build;

/* Collective of a workload's task.  SC_SENDRECV is a ring over all members
 * there, and so an all-gather. */
uint8_t work_coll_of(sc_coll coll);

/* workload_side.c */
sc_status work_side_init(work_build *w, work_side *s, uint32_t tags);
/* Adds a task to the list; ignores SC_NONE. */
sc_status work_wait(work_build *w, uint32_t task);
/* Finds the slot of a value or adds one. */
sc_status work_slot(work_build *w, uint32_t **array, uint32_t *n, uint32_t *cap,
                    uint32_t value, uint32_t *out);
sc_status work_tag(work_build *w, work_side *s, uint32_t tag, uint32_t *out);
/* Appends a task that waits for the list, which is not cleared. */
sc_status work_add(work_build *w, work_side *s, const work_task *what,
                   bool chain, uint32_t *out);
/* Appends a task to a stream. */
sc_status work_enqueue(work_build *w, work_side *s, const work_task *t,
                       uint8_t stream, uint32_t *out);
/* Appends a task that overlaps task `kernel` of the compute stream and has the
 * same waits.  `*done` is false if it cannot overlap that task. */
sc_status work_overlap(work_build *w, work_side *s, uint32_t kernel,
                       const work_task *t, uint32_t *out, bool *done);
/* Predecessors of each operation: head [n_ops + 1] is a CSR index into pred. */
sc_status work_preds(const sc_graph *g, sc_arena *a, uint32_t **head,
                     sc_op **pred, sc_err *err);

/* Rounds a size to whole bytes, at least 1. */
static inline uint64_t work_bytes(double bytes)
{
    return bytes < 1 ? 1 : (uint64_t)(bytes + 0.5);
}

/* Renumbers slots in the order in which tasks use them: `order` has the old
 * slot of each new one, `slot` the new slot of each old one. */
typedef struct work_renaming {
    uint32_t n, *slot, *order;
} work_renaming;

typedef struct work_slots {
    work_renaming group, peer, tag;
} work_slots;

/* workload_list.c */
sc_status work_list(const work_side *s, work_slots *x, sc_arena *a,
                    sc_task_list *l, sc_err *err);

#endif
