/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graph.h - the execution graph: what runs where, after what, what it moves
 * over which links, and how long tensors live.
 *
 * The waist of the program: every producer (plan, trace readers) ends in an
 * sc_graph; engine, reports and emulator start from one.
 *
 * A graph is a set of parallel arrays indexed by op id, 0 <= id < n_ops.  Ids
 * are a topological order: every predecessor of op i is smaller than i.  Ops
 * on the same (class, stream) run in id order, one at a time: streams are
 * in-order queues.  Marks are in no queue: a mark is passed as soon as its
 * predecessors have completed, whatever its stream does.  A mark with work is a
 * delay that occupies nothing, such as the latency of a launch.
 *
 * Rank classes.  An op occupies a stream of one class of ranks, or of several
 * at once.  A class is a rank, or ranks that do the same: it names one of them
 * and says how many they are.  A collective op in class c stands for one
 * member op in every rank of c, and its traffic is that of all of them.
 * Producers state a rendezvous across classes with dependencies, or with one
 * op on all of them.  One class per rank is always legal, and nothing knows
 * whether a graph is folded.
 *
 * Units: time int64_t picoseconds, sizes bytes, work FLOP.
 * Ownership: a graph lives in the arena given to sc_graph_build() and is
 * immutable afterwards.
 */
#ifndef SC_GRAPH_H
#define SC_GRAPH_H

#include "base/base.h"

typedef uint32_t sc_op; /* op id */
#define SC_NONE UINT32_MAX

typedef enum sc_op_kind {
    SC_OP_COMPUTE, /* kernels on the device */
    SC_OP_COLL,    /* collective */
    SC_OP_P2P,     /* transfer */
    SC_OP_MEM,     /* copy to or from another memory tier */
    SC_OP_HOST,    /* the device waits for the host */
    SC_OP_MARK,    /* on no stream: join, phase or step boundary, delay */
    SC_N_OP_KINDS
} sc_op_kind;

extern const char *const sc_op_kind_names[]; /* "compute" ...; NULL ends */

typedef enum sc_stream_kind {
    SC_S_COMPUTE, /* kernels and everything that blocks them */
    SC_S_COMM,    /* activations and weights: TP, CP, FSDP gathers */
    SC_S_GRAD,    /* gradient buckets */
    SC_S_P2P,     /* pipeline transfers */
    SC_S_COPY,    /* offload */
    SC_S_HOST,
    SC_S_P2P_ODD, /* transfers in a second queue: those of odd pairs of stages */
    SC_N_STREAMS
} sc_stream_kind;

extern const char *const sc_stream_names[]; /* "compute" "comm" "grad" ... */

/* What the time of an op is reported as: members of a result's time_breakdown_s. */
typedef enum sc_cat {
    SC_CAT_COMPUTE,
    SC_CAT_TP,
    SC_CAT_PP,
    SC_CAT_DP,
    SC_CAT_CP,
    SC_CAT_EP,
    SC_CAT_BUBBLE, /* never the category of an op: idle time that nothing else explains */
    SC_CAT_HOST,
    SC_CAT_OFFLOAD,
    SC_CAT_OPTIMIZER,
    SC_CAT_OTHER,
    SC_N_CATS
} sc_cat;

extern const char *const sc_cat_names[]; /* "compute" "exposed_tp" ... */

typedef struct sc_class {
    const char *name;
    uint32_t rank;         /* one of the ranks that it represents */
    uint64_t multiplicity; /* number of ranks that it represents */
} sc_class;

/* What one operation moves: flows that all progress at one rate.  Shared by
 * operations over the same communicators. */
typedef struct sc_traffic {
    uint32_t n;
    const uint64_t *link; /* [n] links of the machine (sc_hw) */
    const double *share;  /* [n] bytes on the link per byte of the operation's
                             `bytes` (all siblings together) */
} sc_traffic;

/* What an op does, where it stands for several that nothing else waits for or
 * comes between: kernels, and exchanges over links that are only theirs.
 * Shared by ops of equal passes. */
typedef struct sc_parts {
    uint32_t n;
    const sc_time *end;  /* [n] since the op's start, alone; ascending */
    const uint8_t *kind; /* [n] sc_op_kind: COMPUTE or COLL */
    const uint8_t *cat;  /* [n] sc_cat */
    uint32_t kinds;      /* bit per kind */
    sc_time by_cat[SC_N_CATS];
    uint32_t n_moves;        /* what exchanges move, */
    const uint32_t *traffic; /* [n_moves] by traffic */
    const uint64_t *bytes;   /* [n_moves] */
} sc_parts;

typedef enum sc_mem_kind {
    SC_MEM_WEIGHT,
    SC_MEM_GRAD,
    SC_MEM_OPTIM,
    SC_MEM_ACTIVATION,
    SC_MEM_COMM,
    SC_MEM_OTHER,
    SC_N_MEM_KINDS
} sc_mem_kind;

extern const char *const sc_mem_kind_names[]; /* "weight" ...; NULL ends */

typedef struct sc_lifetime {
    const char *name; /* "layer3.0.conv2 output", without the micro-batch */
    uint32_t batch;   /* 1 + the micro-batch that makes it; 0: none */
    uint32_t device;  /* the class that holds it */
    uint8_t kind;     /* sc_mem_kind */
    uint64_t bytes;
    /* Of parts (sc_part_first), which are ops where none has parts: */
    sc_op first;       /* allocated when it starts; SC_NONE: always there */
    const sc_op *last; /* [n_last] freed when all have ended; n_last 0: kept */
    uint32_t n_last;
} sc_lifetime;

typedef struct sc_graph {
    uint32_t n_ops, n_deps, n_classes, n_traffic, n_lifetimes;

    /* hot: read by the engine for every op */
    sc_time *work;       /* [n_ops] duration at full rate */
    uint32_t *cls;       /* [places] rank classes, see sc_op_place() */
    uint32_t *cls_head;  /* [n_ops + 1] CSR offsets into cls; NULL: op i is on
                          * one class, cls[i] */
    uint8_t *kind;       /* [n_ops] sc_op_kind */
    uint8_t *stream;     /* [n_ops] sc_stream_kind */
    uint32_t *n_preds;   /* [n_ops] */
    uint32_t *succ_head; /* [n_ops + 1] CSR offsets into succ */
    sc_op *succ;         /* [n_deps] ops that wait for this one; each op's
                          * ascending, none twice */

    /* read where links are shared */
    sc_time *latency;  /* [n_ops] of work, at its start: what no link limits,
                        * nor an exchange of gradients slows
                        * (rules.overlap_whole) */
    uint32_t *traffic; /* [n_ops] index, or SC_NONE */
    uint64_t *bytes;   /* [n_ops] payload or traffic */

    /* cold: read by reports */
    uint8_t *cat;      /* [n_ops] sc_cat */
    double *flops;     /* [n_ops] FLOP executed; 0 for communication */
    const char **name; /* [n_ops] */

    /* Ops of several parts; both NULL: there are none. */
    const sc_parts **parts; /* [n_ops] NULL: it is one */
    uint32_t *part_head;    /* [n_ops + 1] number of the first part of an op */

    sc_class *classes;           /* [n_classes] */
    const sc_traffic *traffics;  /* [n_traffic] */
    const sc_lifetime *lifetime; /* [n_lifetimes] */
} sc_graph;

/* Op i is on cls[sc_op_place(g, i)] up to, not including,
 * cls[sc_op_place(g, i + 1)]. */
static inline uint32_t sc_op_place(const sc_graph *g, sc_op i)
{
    return g->cls_head ? g->cls_head[i] : i;
}

/* Parts are numbered through all ops; one without is one part. */
static inline uint32_t sc_part_first(const sc_graph *g, sc_op i)
{
    return g->part_head ? g->part_head[i] : i;
}

/* Collects ops in any order of dependencies (forward references allowed). */
typedef struct sc_graph_builder sc_graph_builder;

typedef struct sc_op_desc {
    const char *name; /* borrowed: must outlive the graph */
    sc_time work, latency;
    uint32_t cls;     /* where .dev is NULL; SC_NONE: on no class, as only a
                         mark may be */
    uint32_t traffic; /* SC_NONE where there is none */
    uint64_t bytes;
    double flops;
    uint8_t kind, stream, cat;
    const uint32_t *dev; /* [n_dev] the classes of an op on several; copied */
    uint32_t n_dev;
    const sc_parts *parts; /* NULL; borrowed.  Ids have to be topological then;
                              texts show the op without parts */
} sc_op_desc;

/* NULL when out of memory. */
sc_graph_builder *sc_graph_builder_new(sc_arena *a);
/* The first error of a builder (limit, memory) is kept and returned by
 * sc_graph_build(), so calls need no checks.  Names are borrowed and must
 * outlive the graph; those of classes must be unique. */
/* `multiplicity` ranks, one of them `rank`. */
uint32_t sc_graph_add_class(sc_graph_builder *b, const char *name,
                            uint32_t rank, uint32_t multiplicity);
/* Arrays are borrowed. */
uint32_t sc_graph_add_traffic(sc_graph_builder *b, const sc_traffic *t);
sc_op sc_graph_add_op(sc_graph_builder *b, const sc_op_desc *op);
void sc_graph_add_dep(sc_graph_builder *b, sc_op before, sc_op after);
/* All tensors, by ids as add_op gave them; borrowed. */
void sc_graph_set_lifetimes(sc_graph_builder *b, uint32_t n,
                            const sc_lifetime *all);

/* Freeze into `*out`, renumbering ops topologically where needed, smallest
 * given id first (ids given by add_op are kept if they already are a
 * topological order); in-stream order is the order of add_op and counts as
 * dependencies here.  Repeated dependencies are dropped.  At most 2^32 - 2
 * ops, places, dependencies and ranks.  The builder can't be used again.
 * Errors: SC_C_CYCLE (names ops of the cycle), SC_C_RANGE, SC_C_TOO_BIG,
 * SC_C_DUPLICATE, SC_C_REFERENCE, SC_C_MEMORY. */
sc_status sc_graph_build(sc_graph_builder *b, sc_arena *a, sc_graph *out,
                         sc_err *err);
/* The same. `*id` [n_ops] in `a` has the new id of each op by the one that
 * sc_graph_add_op() gave; NULL if all were kept. */
sc_status sc_graph_build_ids(sc_graph_builder *b, sc_arena *a, sc_graph *out,
                             sc_op **id, sc_err *err);

/* Appends "layer3.0.conv2 output, micro-batch 4". */
void sc_lifetime_name(const sc_lifetime *l, sc_text *out);

/* The text form (docs/dev/graph-text.md): all of a graph but its parts.  Out of
 * memory sets out->failed. */
void sc_graph_write(const sc_graph *g, sc_text *out);
#endif
