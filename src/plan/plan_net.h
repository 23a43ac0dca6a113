/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_net.h - a network of operators under a strategy: layouts of all tensors
 * on the named mesh, the collectives that follow, and the lowering to an
 * execution graph on streams of devices (graph.h).
 *
 * Every prediction is made here.  The segments (plan.h), which serve to choose
 * options that the user leaves open, are computed from such a plan.
 */
#ifndef SC_PLAN_NET_H
#define SC_PLAN_NET_H

#include "base/rules.h"
#include "cost/cost.h"
#include "cost/cost_net.h"
#include "graph/graph.h"
#include "graph/graph_workload.h"
#include "plan/plan.h"
#include "plan/plan_strategy.h"

/* Where the ranks of a run are, if others run on the same machine. */
typedef struct sc_net_site {
    const sc_hw *hw;        /* the whole machine */
    const uint32_t *device; /* [ranks] of it */
    uint64_t seed;          /* picks among equal routes ... */
    bool even;              /* ... of which all are used evenly */
} sc_net_site;

/* A training run in which every choice is made. */
typedef struct sc_net_run {
    const sc_hw *hw;
    const sc_net *net;
    const sc_strategy *strategy; /* its mesh has at most one rank per device */
    const sc_software *sw;
    const sc_cost *cost;
    const sc_rules *rules;   /* NULL: the default rules */
    const sc_optable *table; /* NULL */
    uint64_t micro;          /* samples of one micro-batch on one replica */
    uint32_t ga;             /* micro-batches of a replica per step */
    sc_precision precision;
    sc_recipe recipe; /* how low precision is scaled */
    const char *optimizer;
    double grad_bytes;   /* per gradient element in exchanges; 0: as weights */
    double update_bytes; /* bytes that an update on a device moves per weight
                            element; 0: the least possible */
    double reserve; /* memory that the allocator reserves but does not use, as a
                       fraction of the used; 0: computed from its segments */
    sc_compress compress; /* compression of gradients between replicas */
    SC_RUN_OPTIONS;
    const sc_net_site *site;     /* links that operations load are those of this
                                machine, some of which others use, too; NULL:
                                `hw` is the whole machine */
    bool unfold;                 /* one device per rank */
    struct infer_prices *prices; /* set by sc_net_plan_prices(); else NULL */
    sc_coll_memo *kept; /* prices of exchanges that several plans share; NULL:
                           none */
    struct sc_net_links *links; /* cache of link loads that several plans share;
                                   NULL: none */
    bool joined;    /* merges kernels and exchanges for which nothing else waits
                    into one operation; times stay equal; not with `unfold` */
    bool no_update; /* weights are not updated, so only passes are priced and no
                       once-a-step items */
    uint8_t layers_chunk; /* chunk of the layers, + 1, if pipeline devices hold
                             parts of a vocabulary as further chunks; else 0.
                             Callers leave it 0 */
    bool unrolled; /* compiles every layer separately, with the same result (for
                      tests) */
    bool timed;    /* only times are computed, no lifetimes */
    /* The order of passes if the schedule is SC_SCH_FILE (plan_schedule.h);
     * else NULL. */
    const struct sc_schedule_file *order;
} sc_net_run;

/* One inferred exchange, which runs in each micro-batch or once a step. */
typedef struct sc_net_exchange {
    const char *path;   /* operator */
    const char *tensor; /* "out" "weight" "in:0" ... */
    const char *why;    /* "partial to replicated" */
    const char *origin; /* rule that requires the layout */
    uint8_t pass;       /* sc_op_pass */
    uint8_t coll;       /* sc_coll */
    bool p2p;           /* between meshes: `group` is (source, destination) */
    bool grad;          /* moves the gradient of a weight */
    bool bucketed;      /* moves several gradients at once */
    bool ring;          /* point-to-point steps that move one part each */
    uint32_t stage;
    uint32_t axes; /* bit per mesh axis; 0 if `p2p` */
    uint32_t n_groups, size;
    const uint32_t *rank;  /* [n_groups * size] ranks */
    const sc_place *place; /* of each group */
    double bytes;          /* V */
    double seconds;
    double link_s[2];  /* by sc_scope: what its bytes need on the links */
    uint32_t channels; /* SMs or other units that it occupies on a device */
} sc_net_exchange;

/* A checkpoint. */
typedef struct sc_net_save {
    double every;           /* steps; 0: none is saved */
    double bytes;           /* of all ranks */
    double copy_s, write_s; /* to the host; from there to its storage */
    bool async; /* written in the background: steps wait only for the copy */
} sc_net_save;

/* Bytes/s and latency of the copies of a step between a device and other
 * memories: those of the slowest one that rules, offloaded data or the host's
 * optimizer use. */
double sc_net_copy_bw(const sc_net_run *job, double *latency_s);

typedef struct sc_net_plan {
    const sc_net_run *job;
    uint32_t n_rules;
    const sc_strategy_rule **rule; /* [n_rules] matching rules of presets and of
                                      the file, the weakest first */
    uint32_t n_idle;
    const sc_strategy_rule **idle; /* [n_idle] recomputation rules of the file
                                      that have no effect */
    uint32_t n_stages, n_ranks;
    const uint32_t *stage_of; /* [graph->n_ops] */
    bool branches; /* rules assign operators to stages, so stages may not be a
                      chain */
    uint32_t n_compiled; /* operators that were compiled: fewer than in the
                            network if layers or stages repeat */
    uint32_t n_exchanges;
    sc_net_exchange *exchange;         /* [n_exchanges] in order of execution */
    const struct net_program *program; /* of one micro-batch */
    struct sc_net_walks *shared; /* from sc_net_plan_share(); NULL: nothing is
                                    shared */
    sc_graph step;               /* set by sc_net_plan_lower() */
    sc_net_save save; /* set by sc_net_plan_lower() or sc_net_plan_clock() */
    double *expanded; /* the same: bytes in expanded memory of each pipeline
                         device; NULL: the machine has none */
    double samples;   /* of a step, over all replicas and micro-batches */
    double flops;     /* executed by all ranks in a step */
    double model_flops;
    double recomputed_flops; /* model FLOP of recomputation */
} sc_net_plan;

/* Memory of a pipeline device at its peak. */
typedef struct sc_net_memory {
    double live;                    /* sum over all kinds */
    double by_kind[SC_N_MEM_KINDS]; /* when `live` is largest */
} sc_net_memory;

/* Times and memory of a step from the fast sink. */
typedef struct sc_net_clock {
    sc_time makespan;
    sc_time cat[SC_N_CATS];     /* time of the device that waits least */
    uint32_t n_slots, n_issued; /* passes of micro-batches; passes among them
                                   that did not equal an earlier one */
    uint32_t n_devices;
    sc_net_memory *memory; /* [n_devices] pipeline devices */
    double *flops;         /* [n_devices] executed in passes of micro-batches */
    double *expanded;      /* [n_devices] by predict_clock(): bytes in expanded
                         memory; else NULL */
} sc_net_clock;

/* Checks the strategy against network and machine, infers layouts and
 * exchanges, and prices them.  Sets all of `out` but its step.  Errors:
 * SC_C_CONFLICT names both rules; SC_C_DIVIDE; SC_C_UNKNOWN_NAME if a rule
 * matches no operator. */
sc_status sc_net_plan_compile(const sc_net_run *job, sc_arena *a,
                              sc_net_plan *out, sc_err *err);

/* Makes sc_net_run.links in `a`, which must outlive all plans that share it.
 * Returns NULL if out of memory. */
struct sc_net_links *sc_net_plan_links(sc_arena *a);

/* Makes sc_net_plan.shared for plans that have more than one micro-batch and
 * differ only in that number.  All their walks use the arena `a`.  Returns
 * NULL if out of memory. */
struct sc_net_walks *sc_net_plan_share(sc_arena *a);

/* Builds the graph of a compiled plan's step by walking along its schedule. */
sc_status sc_net_plan_lower(sc_net_plan *p, sc_arena *a, sc_err *err);
/* Fraction of the activations of a pipeline stage that is freed late
 * (sc_software.stage_reserve); 0 without stages. */
double sc_net_freed_late(const sc_net_run *job);

/* Inputs of exchanges that the host of the first stage has issued ahead of the
 * device, if a forward pass of it scatters `each` times and `micro`
 * micro-batches are in flight. */
double sc_exchanges_ahead(const sc_software *sw, uint64_t tp, uint32_t pp,
                          uint32_t micro, double each);

/* The same walk without a graph.  Links are not shared; otherwise times equal
 * those of sc_sim_run() on the graph.  `slow` is the extra time for each second
 * during which kernels overlap exchanges: [1] of gradients, [0] of other
 * values.  `memory` also computes the memory of devices.  Rules whose streams
 * run operations in the order in which they are ready are not supported. */
sc_status sc_net_plan_clock(sc_net_plan *p, const double slow[2], bool memory,
                            sc_arena *a, sc_net_clock *out, sc_err *err);

/* The step as a workload of tasks.  The ranks of a pipeline device are one
 * class; its tasks are single kernels and exchanges with their communicators,
 * sizes and times.  Ranks outside of the mesh have no tasks.  Ids order the
 * communication of all ranks in the same way, and no exchange can start before
 * one with a smaller id, so ranks with a single slot for communication do not
 * deadlock. */
typedef struct sc_net_workload {
    sc_workload work;
    sc_net_plan plan; /* with one device for all ranks of a stage; its step has
                         the classes of the workload */
    double slow;      /* factor by which waiting for the slowest rank lengthens
                         durations; neither of the two contains it */
    /* Tasks that the step's operations became; SC_NONE: none. */
    uint32_t *task;     /* by place, see sc_op_place() */
    uint32_t *receive;  /* [n_ops] of a transfer: the task that receives it */
    uint32_t *receiver; /* [n_ops] and the class of that task */
} sc_net_workload;

/* Makes the workload of a run.  Each rank ends with a task of `fixed_s`, the
 * time of a step that belongs to no kernel or link; durations do not contain
 * `slow`.  `apart`: each stream has its own slot for communication. */
sc_status sc_net_plan_workload(const sc_net_run *job, double fixed_s,
                               bool apart, sc_arena *a, sc_net_workload *out,
                               sc_err *err);

/* Collectives of the step for which NCCL chooses an algorithm and protocol that
 * is priced much slower than others (sc_cost_coll_slow()). */
typedef struct sc_net_slow {
    const sc_net_exchange *exchange; /* the one that costs most */
    sc_coll_slow choice;             /* its choice */
    double seconds; /* more per step than with the faster pair, of all exchanges
                       with the same groups and choice; the busiest stage */
} sc_net_slow;

/* One per kind of collective, group and choice, in the order of execution. */
sc_status sc_net_plan_slow(const sc_net_plan *p, sc_arena *a,
                           const sc_net_slow **out, uint32_t *n, sc_err *err);

/* Explains every price of the step: kernels, exchanges, copies.  Lists prices
 * that several layers have in common once. */
sc_status sc_net_plan_prices(const sc_net_run *job, sc_arena *a, sc_text *out,
                             sc_err *err);

/* Writes the rules after expansion of presets, the stages, and every exchange
 * with its reason.  Equal exchanges of several layers are written once, with
 * their number. */
sc_status sc_net_plan_explain(const sc_net_plan *p, sc_arena *a, sc_text *out,
                              sc_err *err);
#endif
