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
 * Units: sizes bytes, work FLOP, time int64_t picoseconds.
 * Ownership: everything lives in the arena given to the producer and is
 * immutable afterwards.
 */
#ifndef SC_GRAPH_WORKLOAD_H
#define SC_GRAPH_WORKLOAD_H

#include <stepcast/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Values as in Chakra's schema (NodeType). */
typedef enum sc_node_kind {
    SC_NODE_INVALID,
    SC_NODE_METADATA,
    SC_NODE_LOAD,  /* remote memory -> device */
    SC_NODE_STORE, /* device -> remote memory */
    SC_NODE_COMP,
    SC_NODE_SEND,
    SC_NODE_RECV,
    SC_NODE_COLL,
    SC_N_NODE_KINDS
} sc_node_kind;

/* Values as in Chakra's schema (CollectiveCommType).  Sizes: what each member
 * puts in (all-reduce, reduce-scatter, all-to-all, reduce, scatter's root,
 * broadcast); all-gather and gather: one member's share. */
typedef enum sc_node_coll {
    SC_NC_ALL_REDUCE,
    SC_NC_REDUCE,
    SC_NC_ALL_GATHER,
    SC_NC_GATHER,
    SC_NC_SCATTER,
    SC_NC_BROADCAST,
    SC_NC_ALL_TO_ALL,
    SC_NC_REDUCE_SCATTER,
    SC_NC_REDUCE_SCATTER_BLOCK,
    SC_NC_BARRIER,
    SC_N_NODE_COLLS
} sc_node_coll;

extern const char *const sc_node_kind_names[]; /* "invalid" ...; NULL ends */
extern const char *const sc_node_coll_names[]; /* "all_reduce" ...; NULL ends */

enum {
    SC_NODE_CPU = 1,     /* runs on the host */
    SC_NODE_DIMS = 2,    /* `dims` was given; else all dimensions */
    SC_NODE_NO_SIZE = 4, /* neither tensor_size nor comm_size was given */
    SC_NODE_NO_OPS = 8   /* num_ops was not given */
};

/* The nodes of one class of ranks, by ascending id: of two ready nodes the
 * one of the smaller index is tried first.  Every array is [n_nodes]. */
typedef struct sc_node_list {
    uint32_t n_nodes, n_deps;
    /* hot */
    uint8_t *kind;       /* sc_node_kind */
    uint8_t *coll;       /* sc_node_coll of COLL */
    uint8_t *flags;      /* SC_NODE_* */
    uint32_t *n_preds;   /* distinct nodes it waits for */
    uint32_t *succ_head; /* [n_nodes + 1] CSR offsets into succ */
    uint32_t *succ;      /* [n_deps] ascending per node, none twice */
    sc_time *duration;   /* recorded; 0: none */
    uint64_t *size;      /* bytes: comm_size, or tensor_size of others */
    uint32_t *group;     /* slot of COLL; SC_NODE_WORLD: all ranks */
    uint32_t *peer;      /* slot of SEND's destination, RECV's source; of
                            rooted collectives the root's position in the
                            group itself, not a slot */
    uint32_t *tag;       /* slot of SEND and RECV */
    /* cold */
    uint64_t *id;  /* as in the file */
    uint64_t *ops; /* FLOP of COMP */
    uint32_t *priority;
    uint32_t *dims;    /* bit per dimension, where SC_NODE_DIMS */
    const char **name; /* may be ""; NULL where names were not asked for */
    uint32_t n_groups, n_peers, n_tags; /* slots */
} sc_node_list;

#define SC_NODE_WORLD UINT32_MAX /* `group`: all ranks of the job */

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
} sc_rank_trace;

/* Ranks [first, first + n) are one job: its SC_NODE_WORLD. */
typedef struct sc_rank_job {
    const char *name; /* prefix of its files */
    uint32_t first, n;
} sc_rank_job;

typedef struct sc_workload {
    uint32_t n_ranks, n_classes, n_groups, n_jobs;
    sc_node_list *classes; /* [n_classes] */
    sc_rank_trace *ranks;  /* [n_ranks] */
    sc_rank_group *groups; /* [n_groups] */
    sc_rank_job *jobs;     /* [n_jobs] */
} sc_workload;

/* Checks the invariants above (order, slots, ranks in range, members that
 * appear once); SC_C_BUG names the first one broken. */
sc_status sc_workload_check(const sc_workload *w, sc_err *err);

#ifdef __cplusplus
}
#endif
#endif
