/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay.h - measured traces are run again: with what was recorded the steps
 * last as long as measured; with changes they show what those would give.
 *
 * The rules follow Lin et al. (arXiv 2404.12674) where they suffice: host
 * timelines per thread, latencies of launches, order of streams.  Waits are
 * never repeated but follow from their causes: events, synchronizing calls, the
 * queue of launches, and collectives that start when their last rank arrives.
 */
#ifndef SC_REPLAY_H
#define SC_REPLAY_H

#include "cost/cost.h"
#include "graph/graph_workload.h"
#include "sim/sim.h"
#include "trace/trace_profiled.h"

typedef struct sc_replay_model sc_replay_model;

/* Steps that are replayed: numbers from 0 in the order of the trace. */
typedef struct sc_replay_steps {
    uint32_t first, last; /* last UINT32_MAX: to the end */
} sc_replay_steps;

/* Prepares traces of different ranks. `m` [n] is borrowed. Warnings are lines.
 * Errors: ranks that occur twice, a step that no trace has, nothing that could be
 * replayed. */
sc_status sc_replay_prepare(const sc_profiled *const *m, uint32_t n,
                            const sc_replay_steps *steps, sc_arena *a,
                            sc_text *warnings, sc_replay_model **out,
                            sc_err *err);

typedef enum sc_replay_class {
    SC_REPLAY_COMPUTE,
    SC_REPLAY_COMM,
    SC_REPLAY_MEMORY, /* copies and memsets */
    SC_REPLAY_HOST,
    SC_N_REPLAY_CLASSES
} sc_replay_class;

extern const char *const sc_replay_class_names[]; /* "compute" ...; NULL ends */

typedef struct sc_replay_glob {
    const char *pattern; /* of names of kernels, see sc_glob() */
    double factor;
} sc_replay_glob;

/* Changes of a replay; sc_replay_change_init() sets none. */
typedef struct sc_replay_change {
    double factor[SC_N_REPLAY_CLASSES]; /* on durations */
    uint32_t n_globs;
    const sc_replay_glob *glob; /* besides the factor of its class */
    const sc_cost *cost; /* with sc_cost_alone(), where one of these is set: */
    /* Kernels are those of another device: the ratio of their predicted times on
     * both is multiplied to what was measured. `to` NULL: the same device. */
    const sc_device *from, *to;
    /* Kernels take what is predicted for `to` (or `from`) alone, where the shapes
     * of their operator are known. */
    bool predict_kernels;
    /* Measured times of operators on that device (replay_measure.h), which replace
     * what is predicted, for the batch that was traced; NULL: none. */
    const struct sc_replay_times *times;
    /* Collectives whose sizes are known take what they take on this machine;
     * NULL: the same machine. */
    const sc_hw *hw;
    /* The job has this many ranks on `hw`; 0: as many as traced. Each has the work
     * of a traced one; groups of the whole job, and those that exchange parameters,
     * grow or shrink with it. A multiple or a divisor of the traced number. */
    uint32_t ranks;
    /* Times the samples of each rank: operators whose tensors grow with the batch
     * take what is predicted for that, relative to what was measured. Needs
     * shapes, and `from` if the trace has kernels. 1: none. */
    double batch;
    /* The host's overheads are those of other traces, by operator (replay_host.h);
     * NULL: of the trace itself. Of traces with kernels. */
    const struct sc_host_overheads *host;
    bool drop_straggler; /* kernels and host work of slow ranks take as long as
                            on the median rank */
    bool cuda_graphs; /* kernels between two waits of the host are one launch */
    bool fuse;        /* element-wise kernels in a row are one */
    bool overlap;     /* kernels do not wait for collectives */
    bool no_sync;     /* the host does not wait for the device inside a step */
} sc_replay_change;

void sc_replay_change_init(sc_replay_change *c);

/* How the time of a rank's step is spent. The parts sum up to the step. */
typedef struct sc_replay_split {
    sc_time compute;      /* a kernel runs */
    sc_time exposed_comm; /* else, a collective */
    sc_time memory;       /* else, a copy or memset */
    sc_time host_bound;   /* else, the next kernel waits for the host */
    sc_time idle;         /* else */
    sc_time waiting;      /* of exposed_comm: for other ranks */
} sc_replay_split;

typedef struct sc_replay_step {
    const char *name;
    sc_time measured, predicted;
    sc_replay_split split; /* predicted */
} sc_replay_step;

/* What the trace itself has in its window. */
typedef struct sc_replay_facts {
    uint64_t kernels; /* of all kinds on streams */
    uint32_t streams;
    sc_time busy_sum;   /* of all durations */
    sc_time busy_union; /* some stream was busy */
    uint64_t collectives;
    sc_time collective_sum;
    sc_time exposed_comm; /* a collective and nothing else ran */
} sc_replay_facts;

typedef struct sc_replay_rank {
    uint32_t rank, world_size;
    const char *device; /* NULL: not stated */
    sc_time offset;     /* of its window from the first of all ranks */
    uint32_t n_steps;
    sc_replay_step *step; /* [n_steps] */
    sc_replay_facts facts;
} sc_replay_rank;

/* Seconds of the critical path by what they were spent on. */
typedef struct sc_replay_path {
    sc_time compute, comm, memory, host, latency;
    sc_time later; /* until its first rank begins */
    sc_time total; /* the window exactly */
} sc_replay_path;

typedef struct sc_replay_result {
    /* The whole window: until the last step has ended, and devices have done what
     * they had done by then. */
    sc_time measured, predicted;
    uint32_t n_steps; /* in it */
    uint32_t n_ranks;
    sc_replay_rank *rank; /* [n_ranks] */
    sc_replay_path path;
    uint32_t n_ops; /* of the graph */
    const sc_graph *graph;
    const sc_result *run;
    sc_op end;             /* the op at which the window ends */
    const uint32_t *owner; /* [n_ops] rank index */
    const uint32_t *span;  /* [n_ops] span of the rank's trace; UINT32_MAX */
    const sc_time *busy;   /* [n_ops] the kernel of an op on a stream; 0 */
} sc_replay_result;

/* Runs with changes. Errors: changes that need what the traces do not state, which
 * are shapes for `batch`, and the number of ranks for `ranks`. */
sc_status sc_replay_run(const sc_replay_model *m, const sc_replay_change *c,
                        sc_arena *a, sc_replay_result *out, sc_err *err);

/* What the critical path consists of, by call path: operators around a call or a
 * launch, from outside to inside.  The entries add up to the path exactly. */
typedef struct sc_replay_entry {
    const char *path; /* "aten::linear > aten::addmm"; a kernel's or call's name
                         where no operator is around it */
    uint8_t class;    /* sc_replay_class; SC_N_REPLAY_CLASSES: latencies */
    uint32_t count;
    sc_time time;
} sc_replay_entry;

/* `*out` [*n] by falling time. */
sc_status sc_replay_entries(const sc_replay_model *m, const sc_replay_result *r,
                            sc_arena *a, sc_replay_entry **out, uint32_t *n,
                            sc_err *err);

typedef struct sc_replay_kernel {
    const char *name;
    uint8_t class; /* sc_replay_class */
    uint64_t count;
    sc_time total;     /* as recorded */
    sc_time predicted; /* with the changes, without waits */
    sc_time on_path;   /* on the critical path */
    sc_time slack;     /* the smallest of all */
} sc_replay_kernel;

/* Kernels of all ranks by name; `*out` [*n] by falling total. */
sc_status sc_replay_kernels(const sc_replay_model *m, const sc_replay_result *r,
                            sc_arena *a, sc_replay_kernel **out, uint32_t *n,
                            sc_err *err);

/* The most that was allocated on the device in a part of the window. */
typedef struct sc_replay_bytes {
    sc_time from; /* of the part, since the begin of the window */
    uint64_t most;
} sc_replay_bytes;

/* What was allocated under one call path and not freed at the peak. */
typedef struct sc_replay_holder {
    const char *path; /* "" where no operator is around it */
    uint64_t bytes;
    uint32_t count; /* allocations */
} sc_replay_holder;

#define SC_REPLAY_BYTES 200

/* Memory of a rank's device over its window, as recorded (profile_memory=True).
 * Profilers of 2021 state only changes: then `relative`, and all bytes count from
 * the begin of the trace. */
typedef struct sc_replay_memory {
    uint32_t rank, device; /* of several, the one with the highest peak */
    bool relative;
    uint64_t peak;
    sc_time peak_at;       /* since the begin of the window */
    const char *peak_step; /* NULL: between steps */
    const char *peak_path; /* operators that allocated then */
    uint32_t n_parts;
    sc_replay_bytes *part; /* [n_parts] equal parts of the window */
    uint32_t n_holders;
    sc_replay_holder *holder; /* [n_holders] by falling bytes */
    uint64_t before;          /* of the peak: allocated before the trace */
} sc_replay_memory;

/* `*out` [*n], of the ranks whose traces have it. */
sc_status sc_replay_memory_of(const sc_replay_model *m, sc_arena *a,
                              sc_replay_memory **out, uint32_t *n, sc_err *err);

/* A reason why the step takes as long as it does, and what it costs: the step is
 * simulated again without it. */
typedef struct sc_replay_finding {
    const char *kind; /* "straggler" ...: stable names */
    const char *text;
    const char *try; /* what may help; NULL */
    sc_time saves;   /* of the whole window */
} sc_replay_finding;

/* Findings that save at least 0.5 %, by falling savings. `c` are the changes of
 * `r`, to which those of a finding are added. */
sc_status sc_replay_find(const sc_replay_model *m, const sc_replay_result *r,
                         const sc_replay_change *c, sc_arena *a,
                         sc_replay_finding **out, uint32_t *n, sc_err *err);

/* The run as a workload: what `simulate` runs, and Chakra traces are written from.
 * Work of the host, kernels and copies have durations; collectives and messages of
 * which all ranks are given have kind, group and size, if the traces state them,
 * others durations.  Latencies of launches are left out, because a node is on the host,
 * the device or the network. `m` has to have all ranks from 0 on: SC_C_MISSING.
 * Warnings are lines. */
sc_status sc_replay_workload(const sc_replay_model *m,
                             const sc_replay_result *r, sc_arena *a,
                             sc_text *warnings, sc_workload *out, sc_err *err);

/* Largest difference of the ends of one collective after alignment of clocks. */
sc_time sc_replay_residual(const sc_replay_model *m);

#endif
