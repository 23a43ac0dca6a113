/* SPDX-License-Identifier: Apache-2.0 */
/* lower_workload.h - converts a lowered network to tasks of ranks that exchange
 * messages: shared by lower_workload.c and lower_workload_ranks.c. */
#ifndef PLAN_LOWER_WORKLOAD_H
#define PLAN_LOWER_WORKLOAD_H

#include "plan/lower.h"
#include "plan/workload.h"

typedef enum work_role { WORK_MEMBER, WORK_SENDS, WORK_RECEIVES } work_role;

/* The role of one rank in a communicator of the notes. */
typedef struct work_part {
    uint32_t comm;
    uint32_t value; /* group of the workload or SC_TASK_WORLD; of a transfer the
                       peer */
    uint32_t first; /* the rank's first part with that value, in the list */
    uint8_t role;   /* work_role */
} work_part;

/* The ranks of the mesh. */
typedef struct work_sides {
    uint32_t n_ranks;
    uint32_t *head; /* [n_ranks + 1] CSR into part, rising by comm */
    work_part *part;
    uint32_t n_groups, cap_groups;
    sc_rank_group *group; /* [n_groups] unordered */
    uint32_t n, stride;   /* pipeline devices; ranks between two of them */
    work_side *side;      /* [n] */
} work_sides;

static inline uint32_t work_device(const work_sides *s, uint32_t rank)
{
    sc_assert(s->stride > 0 && s->n > 0);
    return rank / s->stride % s->n;
}

sc_status work_sides_of(const lower_notes *notes, uint32_t n_ranks,
                        uint32_t all, sc_arena *a, work_sides *out,
                        sc_err *err);

/* Finds the parts of a rank in a communicator: [*from, *to). */
void work_parts(const work_sides *s, uint32_t rank, uint32_t comm,
                uint32_t *from, uint32_t *to);

/* Writes the sides as a workload of `all` ranks; ranks outside of the mesh are
 * idle. */
sc_status work_finish(work_sides *s, uint32_t all, const char *name,
                      sc_arena *a, sc_workload *out, sc_err *err);

#endif
