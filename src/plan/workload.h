/* SPDX-License-Identifier: Apache-2.0 */
/* workload.h - tasks of a pipeline device while they are collected, shared by
 * workload.c and workload_ranks.c. */
#ifndef PLAN_WORKLOAD_H
#define PLAN_WORKLOAD_H

#include "plan/lower.h"

typedef struct work_task {
    const char *name;
    sc_time duration;
    uint64_t size, ops;
    uint32_t group, peer, tag; /* slots */
    uint32_t pred, n_preds;    /* in work_side.pred */
    uint32_t reach; /* of the tasks that run one after the other on the compute
                       stream, the first `reach` are done before, itself
                       included */
    uint8_t kind, coll, flags;
} work_task;

/* Tasks that wait beside a stream for its next task to wait for them. */
#define WORK_BESIDE 16

typedef struct work_side {
    work_task *task;
    uint32_t *pred, *chain; /* chain: the tasks of the compute stream */
    uint32_t n, cap, n_preds, cap_preds, n_chain, cap_chain;
    uint32_t tail[SC_N_STREAMS];
    uint32_t posted; /* last of the chain that sends nothing */
    uint32_t beside[WORK_BESIDE], n_beside;
    uint32_t need;      /* `reach` that further communication needs */
    uint32_t *axes;     /* [n_groups] of the slots */
    uint32_t *peer;     /* [n_peers] device */
    uint32_t *tag;      /* [n_tags] */
    uint32_t *tag_slot; /* by tag; SC_NONE: not named yet */
    uint32_t n_groups, cap_groups, n_peers, cap_peers, n_tags, cap_tags;
} work_side;

/* Communicators over the axes of `axes` (LOWER_ENDS included), n members. */
uint32_t work_members(const sc_run *r, uint32_t axes);

/* Sides [pp] as a workload. */
sc_status work_finish(const sc_plan *p, const work_side *side, sc_arena *a,
                      sc_workload *out, sc_err *err);

#endif
