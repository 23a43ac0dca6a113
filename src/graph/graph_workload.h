/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graph_workload.h - what every rank does, message by message.
 *
 * The form in which execution traces (Chakra) enter and leave: nodes with
 * dependencies, whose communication is not priced yet.  Trace readers, the
 * lowering of a plan and the rewriting of traces to other sizes produce it;
 * sim/ runs it and the Chakra writer stores it.
 *
 * Rank classes.  Ranks whose nodes are equal up to the names of communicator
 * groups, of peers and of tags are one class, whose nodes are stored once.
 * In a class a node names its group, peer and tag by slot: the number of
 * distinct groups (peers, tags) its trace named before, in the order of its
 * nodes.  Each rank of the class translates slots by its own tables.
 *
 * Columns that are equal in two classes may be one array.
 *
 * Units: sizes bytes, work FLOP, time int64_t picoseconds.
 * Ownership: everything lives in the arena given to the producer and is
 * immutable afterwards.
 */
#ifndef SC_GRAPH_WORKLOAD_H
#define SC_GRAPH_WORKLOAD_H

#include "base/base.h"
#include "graph/graph_coll.h"

/* Values as in Chakra's schema (NodeType). */
typedef enum sc_task_kind {
    SC_TASK_INVALID,
    SC_TASK_METADATA,
    SC_TASK_LOAD,  /* remote memory -> device */
    SC_TASK_STORE, /* device -> remote memory */
    SC_TASK_COMP,
    SC_TASK_SEND,
    SC_TASK_RECV,
    SC_TASK_COLL,
    SC_N_TASK_KINDS
} sc_task_kind;

/* Sizes of a collective: what each member
 * puts in (all-reduce, reduce-scatter, all-to-all, reduce, scatter's root,
 * broadcast); all-gather and gather: one member's share. */

extern const char *const sc_task_kind_names[]; /* "invalid" ...; NULL ends */

enum {
    SC_TASK_CPU = 1,     /* runs on the host */
    SC_TASK_DIMS = 2,    /* `dims` was given; else all dimensions */
    SC_TASK_NO_SIZE = 4, /* neither tensor_size nor comm_size was given */
    SC_TASK_NO_OPS = 8,  /* num_ops was not given */
    SC_TASK_NO_COMM = 16 /* COLL without comm_type, SEND without comm_dst, RECV
                            without comm_src: can only be replayed */
};

/* The nodes of one class of ranks, by ascending id: of two ready nodes the
 * one of the smaller index is tried first.  Every array is [n_tasks]. */
typedef struct sc_task_list {
    uint32_t n_tasks, n_deps;
    /* hot */
    uint8_t *kind;       /* sc_task_kind */
    uint8_t *coll;       /* sc_coll of COLL */
    uint8_t *flags;      /* SC_TASK_* */
    uint32_t *n_preds;   /* distinct nodes it waits for */
    uint32_t *succ_head; /* [n_tasks + 1] CSR offsets into succ */
    uint32_t *succ;      /* [n_deps] ascending per node, none twice */
    sc_time *duration;   /* recorded; 0: none */
    uint64_t *size;      /* bytes: comm_size, or tensor_size of others */
    uint32_t *group;     /* slot of COLL; SC_TASK_WORLD: all ranks */
    uint32_t *peer;      /* slot of SEND's destination, RECV's source; of
                            rooted collectives the root's position in the
                            group itself, not a slot */
    uint32_t *tag;       /* slot of SEND and RECV */
    /* cold */
    uint64_t *id;  /* as in the file */
    uint64_t *ops; /* FLOP of COMP */
    uint32_t *priority;
    uint32_t *dims;    /* bit per dimension, where SC_TASK_DIMS */
    const char **name; /* may be ""; NULL where names were not asked for */
    uint32_t n_groups, n_peers, n_tags; /* slots */
    /* first tasks that are left out when the trace is repeated */
    uint32_t n_once;
    /* tensors that nodes read and write, where they were asked for; else 0 and
     * NULL.  Uses [use_head[i], use_out[i]) are the inputs of node i, from there
     * to use_head[i + 1] its outputs. */
    uint32_t n_tensors, n_uses;
    uint32_t *use_head;   /* [n_tasks + 1] */
    uint32_t *use_out;    /* [n_tasks] */
    uint32_t *use_tensor; /* [n_uses] number of the tensor, as first named */
    uint64_t *use_bytes;  /* [n_uses] */
    const char **tensor;  /* [n_tensors] names in the class's first rank */
} sc_task_list;

#define SC_TASK_WORLD UINT32_MAX /* `group`: all ranks of the job */

/* A communicator.  The order of `rank` is the order of its members. */
typedef struct sc_rank_group {
    const char *name; /* as in the file: "3", "tp_0" */
    uint32_t n;
    const uint32_t *rank; /* [n] distinct ranks */
} sc_rank_group;

/* One rank: its class and what the slots of the class mean for it. */
typedef struct sc_rank_trace {
    uint32_t cls;
    uint32_t job;           /* which of several workloads */
    const uint32_t *groups; /* [n_groups] index into sc_workload.groups */
    const uint32_t *peers;  /* [n_peers] rank */
    const uint32_t *tags;   /* [n_tags] */
    /* [n_tags] what each round of a trace that is repeated adds to them; NULL:
     * nothing */
    const int32_t *tag_steps;
    /* [n_groups] which of the communicators with these ranks, in the order in
     * which a rank makes them; NULL: unknown. SEND and RECV then have a group,
     * too (SC_TASK_WORLD: unknown). */
    const uint32_t *instances;
} sc_rank_trace;

/* Ranks [first, first + n) are one job: its SC_TASK_WORLD. */
typedef struct sc_rank_job {
    const char *name; /* prefix of its files */
    uint32_t first, n;
} sc_rank_job;

typedef struct sc_workload {
    uint32_t n_ranks, n_classes, n_groups, n_jobs;
    sc_task_list *classes; /* [n_classes] */
    sc_rank_trace *ranks;  /* [n_ranks] */
    sc_rank_group *groups; /* [n_groups] */
    sc_rank_job *jobs;     /* [n_jobs] */
} sc_workload;

/* Columns for `n_tasks` tasks and `n_deps` dependencies, zeroed; not those of
 * tensors. False if out of memory. */
bool sc_task_list_alloc(sc_task_list *l, sc_arena *a);

/* Checks the invariants above (order, slots, ranks in range, members that
 * appear once); SC_C_BUG names the first one broken. */
sc_status sc_workload_check(const sc_workload *w, sc_err *err);

/* Whether some task copies between a device and remote memory. */
bool sc_workload_has_copies(const sc_workload *w);
#endif
