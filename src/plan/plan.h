/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan.h - a run whose choices are all made, the layers of its pipeline stages,
 * the order of their passes (schedule), and segments: one priced layer of each
 * kind, from which the times of runs are compared.
 */
#ifndef SC_PLAN_H
#define SC_PLAN_H

#include "cost/cost_op.h"
#include "graph/graph.h"
#include "graph/graph_workload.h"
#include "model/model.h"
#include "plan/plan_axes.h"
#include "plan/plan_software.h"

/* Values of `--precision`: the precision of matrix products and the way in
 * which low precision is scaled.  The first five are plain precisions. */
typedef enum sc_recipe {
    SC_RECIPE_FP32,
    SC_RECIPE_TF32,
    SC_RECIPE_FP16,
    SC_RECIPE_BF16,
    SC_RECIPE_FP8,   /* one scale per tensor */
    SC_RECIPE_NVFP4, /* blocks of 16 */
    SC_RECIPE_INT8,
    SC_RECIPE_MXFP8,     /* blocks of 32 */
    SC_RECIPE_FP8_BLOCK, /* 128 x 128 and 1 x 128 */
    SC_RECIPE_FP8_ROW,   /* one scale per row */
    SC_N_RECIPES
} sc_recipe;

extern const char *const sc_recipe_names[]; /* NULL ends */
sc_precision sc_recipe_precision(sc_recipe r);

typedef enum sc_recompute {
    SC_RC_NONE,
    SC_RC_SELECTIVE,
    SC_RC_FULL,
    SC_RC_OPS /* every operator but attention and every second product */
} sc_recompute;

typedef enum sc_schedule {
    SC_SCH_1F1B,
    SC_SCH_GPIPE,
    SC_SCH_INTERLEAVED,
    SC_SCH_ZB_H1,    /* splits backward passes; as much memory as 1F1B */
    SC_SCH_ZB_V,     /* the same with two chunks per device, placed as a V */
    SC_SCH_DUALPIPE, /* micro-batches enter at both ends; 2 copies of weights */
    SC_SCH_FILE,     /* orders read from a file (plan_schedule.h) */
    SC_N_SCHEDULES
} sc_schedule;

extern const char *const sc_recompute_names[];
extern const char *const sc_schedule_names[];

/* Format of gradients on the wire.  `arg` is the fraction of elements that
 * top-k sends (Aji and Heafield 2017), or the rank of PowerSGD's factors
 * (Vogels et al. 2019). */
typedef enum sc_compress_kind {
    SC_GRAD_PLAIN,
    SC_GRAD_FP16,
    SC_GRAD_BF16,
    SC_GRAD_FP8,
    SC_GRAD_INT8,
    SC_GRAD_TOPK,
    SC_GRAD_POWERSGD
} sc_compress_kind;

typedef struct sc_compress {
    sc_compress_kind kind;
    double arg;
} sc_compress;

/* "bf16", "topk:0.01", "powersgd:4"; SC_C_UNKNOWN_NAME, SC_C_RANGE at
 * `pos`. */
sc_status sc_compress_read(const char *text, sc_pos pos, sc_compress *out,
                           sc_err *err);
void sc_compress_print(const sc_compress *c, char *buf, size_t size);

/* Options that act as they are given: a prediction copies `opts` whole from
 * the job to its run and from there to the run of its network, and keys of
 * caches cover all of it.  A new one is a field here, a row of sc_job_keys, and
 * the code on which it acts. */
#define SC_RUN_OPTION_FIELDS                                                   \
    double capacity;  /* capacity factor: rows of each expert over the mean, \
                           reached by padding or dropping; 0: no limit */ \
    double imbalance; /* tokens of the busiest rank's experts over the mean; \
                           0 means 1 */ \
    double                                                                     \
        host_mem_bw; /* bytes/s of one host's memory; 0, here and below:    \
                           the defaults in docs/strategy.md */  \
    double nvme_bw;  /* of one host's drives, each way */                      \
    double storage_bw;      /* of all storage, writing */                      \
    double offload_weights; /* fraction kept in another memory */              \
    int offload_to; /* sc_offload_to of weights and activations; -1: cpu */    \
    bool forward_only;                                                         \
    bool launch_blocking; /* CUDA_LAUNCH_BLOCKING=1 */                         \
    bool numa_unbound; /* processes not bound to their device's NUMA node */   \
    bool reserved[1];  /* so that the bytes have no gaps */

typedef struct sc_run_options {
    SC_RUN_OPTION_FIELDS
} sc_run_options;

_Static_assert(sizeof(sc_run_options) == 6 * sizeof(double) + 8, "gaps");

/* Member of a struct that has these options, as `opts` and each by its name. */
#define SC_RUN_OPTIONS           \
    union {                      \
        sc_run_options opts;     \
        struct {                 \
            SC_RUN_OPTION_FIELDS \
        };                       \
    }

struct sc_strategy;
struct sc_schedule_file;

/* A training or inference job whose choices are all made. */
typedef struct sc_run {
    const sc_hw *hw;
    const sc_model *model;
    const sc_software *sw;
    const sc_cost *cost;
    uint32_t size[SC_N_AX];
    uint32_t vpp; /* virtual stages (chunks) per device */
    uint64_t gbs, mbs, seq;
    uint32_t ga;            /* micro-batches per step and replica */
    sc_precision precision; /* of the recipe */
    sc_recipe recipe;
    int zero;      /* 0..3 over dp; the highest stage of any weight */
    int zero_else; /* set by sc_plan_build(): stage of the weights for which the
                      strategy has no rule */
    bool sp;
    bool experts_over_tp; /* experts are split over tp too, not replicated */
    SC_RUN_OPTIONS;
    sc_compress compress;
    sc_recompute recompute;
    /* For SC_RC_FULL: number of blocks that are recomputed together (0: one by
     * one), and number of a stage's first blocks to recompute (0: all). */
    uint32_t rc_group, rc_first;
    double offload; /* fraction of saved activations kept in another memory */
    sc_schedule schedule;
    /* Further contents of a strategy file: rules, which override the presets,
     * cuts, a schedule from a file, pools; NULL: none. */
    const struct sc_strategy *strategy;
    const struct sc_schedule_file *order; /* of SC_SCH_FILE; else NULL */
    int optim_tier;            /* sc_tier: memory of the optimizer states */
    uint32_t checkpoint_every; /* steps; 0: none */
    bool checkpoint_async;
} sc_run;

/* The memory of offloaded weights and activations. */
int sc_run_offload_tier(const sc_run *run); /* sc_tier */

/* Writes a run as a strategy: its mesh, presets, pipeline and offload, and the
 * rules of its own strategy, renamed to the axes of that mesh. */
sc_status sc_strategy_of_run(const sc_run *run, sc_arena *a,
                             struct sc_strategy *out, sc_err *err);

/* Number of segments of a run: the model's entries [model->n_layers].  If only
 * some blocks of a stage are recomputed, the entries follow a second time for
 * the blocks that are not. */
uint32_t sc_run_segments(const sc_run *run);

/* The usual data-parallel degree: REP times DP times EP. */
uint32_t sc_run_dp(const sc_run *run);

/* Number of gradient exchanges in a step: one per micro-batch if ranks keep
 * only a shard of the gradients (ZeRO-2 and 3), else one. */
uint32_t sc_run_reductions(const sc_run *run);

/* Whether weights are kept in shards: with ZeRO-3, and with ZeRO-2 of programs
 * that gather weights once for both passes (sc_software.zero2_weights). */
bool sc_run_shards(const sc_run *run);

/* Whether pipeline stages of FSDP keep weights gathered and gradients unsharded
 * from the first to the last micro-batch of a step. */
bool sc_run_stays_gathered(const sc_run *run);

/* Ranks that share one set of experts. */
uint32_t sc_run_ep(const sc_run *run);

typedef struct sc_plan {
    sc_run run;
    uint32_t stride[SC_N_AX];
    sc_place place[1u << SC_N_AX]; /* by axis mask; [0] unused */
    uint32_t n_stages;             /* virtual stages, pp * vpp */
    sc_coll_memo *prices;          /* of exchanges; NULL: none are kept */

    struct sc_stage {
        uint32_t n[2 * SC_LAYERS]; /* layers of each segment */
        uint32_t blocks;           /* transformer blocks among them */
        bool embed, head;
    } * stage; /* [n_stages]; sc_schedule_device() gives the device of each */

    bool uneven; /* stages are listed or balanced */
    /* For pipeline devices of several kinds (different nodes): the cluster as
     * if all its devices were of one kind; kind 0 is the slowest.  NULL: all
     * devices are of one kind. */
    uint32_t n_kinds;
    const sc_hw **kind_hw; /* [n_kinds] */
    uint8_t *kind;         /* [pp] */
    const double *layer_s; /* [n_kinds * sc_run_segments()] seconds of both
                              passes of a layer; NULL: not computed */
} sc_plan;

/* Checks divisibility and contradictions, reports all errors at once, and cuts
 * stages.  If the run has a strategy, `run->model` is the result of
 * sc_strategy_model(), and out->run.zero includes the stage its rules imply. */
sc_status sc_plan_build(const sc_run *run, sc_arena *a, sc_plan *out,
                        sc_err *err);

/* Gives the run of a plan the end of the step of another run (its program, tier
 * of optimizer states, checkpoints and rates of the host) and a ZeRO stage. */
void sc_run_set_end(const sc_run *of, int zero, sc_run *inout);
/* Whether passes, and the exchanges beside them, are the same with two ends of
 * the same ZeRO stage; whether their states need the same memory. */
bool sc_run_same_passes(const sc_run *x, const sc_run *y);
bool sc_run_same_states(const sc_run *x, const sc_run *y);

/* Sets the i-th run that differs from `of` only in recomputation and sequence
 * parallelism, so that its blocks save less.  False: it would be the same, or
 * does not save less. */
enum { SC_RUNS_SAVING_LESS = 3 };

bool sc_run_saving_less(const sc_run *of, uint32_t i, sc_run *out);

/* Hashes of everything that layers depend on.  Runs with equal keys share the
 * results of sc_segment_passes(), its list of weights, or the results of
 * sc_segment_weights(). */
uint64_t sc_plan_pass_key(const sc_run *run);
uint64_t sc_plan_list_key(const sc_run *run);
uint64_t sc_plan_weight_key(const sc_run *run);

/* ---- schedules are data ---------------------------------------------- */

typedef enum sc_pass {
    SC_FWD,
    SC_BWD,   /* inputs and weights */
    SC_BWD_X, /* for inputs only (zero-bubble schedules) */
    SC_BWD_W, /* for weights only */
    SC_N_PASSES
} sc_pass;

typedef struct sc_slot {
    uint8_t pass; /* sc_pass */
    uint16_t chunk;
    uint32_t mb;
} sc_slot;

/* The following functions accept every schedule but SC_SCH_FILE, and any pp,
 * vpp and ga of at least 1 (also ga < pp).  ZB-V and DualPipe ignore vpp: their
 * number of chunks is fixed. */

/* Chunks of layers that a device holds: vpp, or two for ZB-V and DualPipe. */
uint32_t sc_schedule_chunks(sc_schedule s, uint32_t vpp);
/* Virtual stages that layers are cut into: pp * vpp; 2 pp for ZB-V; pp for
 * DualPipe, where two devices hold each stage. */
uint32_t sc_schedule_stages(sc_schedule s, uint32_t pp, uint32_t vpp);
/* Whether (some) backward passes are SC_BWD_X and SC_BWD_W. */
bool sc_schedule_splits(sc_schedule s);

/* The virtual stage in chunk `chunk` of device `dev`, and the device that runs
 * micro-batch `mb` of `ga` in virtual stage `v`.  In DualPipe the first
 * (ga + 1) / 2 micro-batches enter at device 0, chunk 0, and the others at
 * device pp - 1, chunk 1. */
uint32_t sc_schedule_stage(sc_schedule s, uint32_t pp, uint32_t vpp,
                           uint32_t dev, uint32_t chunk);
uint32_t sc_schedule_device(sc_schedule s, uint32_t pp, uint32_t vpp,
                            uint32_t v, uint32_t mb, uint32_t ga);
/* The chunk of that device that holds virtual stage `v`. */
uint32_t sc_schedule_chunk(sc_schedule s, uint32_t pp, uint32_t vpp, uint32_t v,
                           uint32_t mb, uint32_t ga);

/* Upper bound on the slots of a device: sc_schedule_order() needs this room. */
uint32_t sc_schedule_slots(sc_schedule s, uint32_t vpp, uint32_t ga);
/* Order of device `stage` of `pp`: returns the number of slots. */
uint32_t sc_schedule_order(sc_schedule s, uint32_t pp, uint32_t vpp,
                           uint32_t ga, uint32_t stage, bool forward_only,
                           sc_slot *out);
/* Largest number of (micro-batch, chunk) pairs of `stage` whose forward has
 * run and whose last backward pass has not finished. */
uint32_t sc_schedule_in_flight(sc_schedule s, uint32_t pp, uint32_t vpp,
                               uint32_t ga, uint32_t stage);

/* ---- segments -------------------------------------------------------- */

/* Traffic of one collective on one communicator. */
typedef struct sc_moved {
    uint32_t axes; /* a bit by sc_axis */
    sc_coll coll;
    double bytes;      /* V */
    double seconds;    /* if all bytes are sent at once */
    uint32_t channels; /* channels of that collective */
} sc_moved;

#define SC_MOVED 16
/* Most exchanges of one gradient. */
#define SC_WAY 3

/* Exchanges of weights or gradients, by communicator and collective. */
typedef struct sc_exchange {
    uint32_t n;
    double bytes, seconds; /* of all, one after the other */
    double latency;        /* part of `seconds` without bytes on links */
    double link_s[2];      /* by sc_scope: what the bytes need on the links */
    sc_moved moved[SC_MOVED];
} sc_exchange;

/* The traffic over these axes; NULL if there is none. */
const sc_moved *sc_exchange_over(const sc_exchange *x, uint32_t axes);

/* Seconds of kernels in a pass, and number of launches that the host issues. */
typedef struct sc_span {
    double kernels, launches;
    double members; /* of the groups of its TP exchanges, summed */
    double exposed; /* seconds of these exchanges beside no kernel */
} sc_span;

/* An exchange that shares links with those that run at the same time. */
typedef struct sc_contender {
    double from;    /* after the start of its pass */
    double seconds; /* alone */
    double latency; /* part of `seconds` in which no bytes move */
    double use[2];  /* by sc_scope: fraction of links used while they move */
    double rate;    /* bytes/s (of V) while they move */
} sc_contender;

/* `link_s`: what all `bytes` need on the links. */
static inline sc_contender sc_contender_of(double seconds, double latency,
                                           const double link_s[2], double bytes)
{
    sc_contender b = {.seconds = seconds, .latency = latency};
    double moving = seconds - latency;
    for (int s = 0; s < 2 && moving > 0; s++)
        b.use[s] = link_s[s] < moving ? link_s[s] / moving : 1;
    if (moving > 0) b.rate = bytes / moving;
    return b;
}

/* Launches of the host in a pass of a layer.  The host runs ahead of the device
 * until it waits for a value that the device computes (infer_host.c). */
typedef struct sc_issue {
    sc_span first, last; /* up to the first wait; after the last one */
    double between[2];   /* host seconds beyond kernels, [1] if stages are on
                            different nodes: in spans between two waits, and of
                            blocking launches */
    bool waits;          /* false: all of it is in `first` */
    bool weights;        /* the last kernel is of the pass for weights */
} sc_issue;

/* Exchanges of a weight's gradient.  Gradients with the same exchanges share
 * buckets. */
typedef struct sc_gradient {
    uint32_t weight; /* index into the segment's weights */
    uint32_t n;      /* exchanges, which run one after the other */
    uint8_t axes[SC_WAY], coll[SC_WAY];
    double bytes[SC_WAY]; /* V of each */
} sc_gradient;

/* Time in which a gradient is computed, as fractions of its layer's backward
 * pass. */
typedef struct sc_made {
    double from, to;
} sc_made;

/* A layer of one kind (embedding, block, head), priced. */
typedef struct sc_segment {
    /* seconds on the compute stream, summed over categories; without host time,
     * which is added per pass of a whole stage */
    double fwd_s, bwd_s;
    double flops; /* executed in both */
    sc_issue fwd_issue, bwd_issue;
    /* exchanges that kernels wait for, of both passes, in order of time */
    uint32_t n_contenders[2];
    sc_contender *contender[2]; /* [n_contenders] */
    double most_use[2][2]; /* the largest use of these, by pass and sc_scope */
    double fwd_cat[SC_N_CATS], bwd_cat[SC_N_CATS];
    /* weights of one layer on one rank, elements */
    double params;      /* in the compute layout (after gathers) */
    double gathered;    /* part of `params` that is gathered before use */
    double params_kept; /* in the layout between steps */
    double frozen_kept; /* part of `params_kept` that is never updated */
    double low_kept;    /* part of it that is cast to low precision */
    double grads_kept, optim_kept;
    double tables_kept; /* part of `optim_kept` of tables for look-ups */
    sc_exchange gather; /* weights, per use (ZeRO-3) */
    sc_exchange grad;   /* gradients, once a step or per use */
    sc_exchange once; /* gradients that are kept unsharded and exchanged once a
                         step, if others are exchanged per use */
    sc_exchange update; /* updated weights after the optimizer */
    /* buckets of sharded gradients: their number, and bytes on a rank of the
     * largest bucket, of the largest two in a row, of the first and the last */
    double buckets, bulk, pair, first, last;
    double pack_s;     /* kernels that copy, compress or cast gradients */
    double cast_s;     /* part of `pack_s` that casts them */
    double residual;   /* bytes of the values that compression dropped, kept for
                        the next step (error feedback) */
    bool frozen_below; /* its weights and all before it are frozen, so it has no
                          backward pass */
    /* activations of one micro-batch kept for the backward pass, bytes */
    double saved;       /* after recomputation and offload */
    double offloaded;   /* copied to the host and back */
    double out_s, in_s; /* seconds of that copy each way, while kernels run */
    /* weights that are copied in for each pass: bytes, and seconds in the
     * forward and in the backward pass */
    double fetched, fetch_s[2]; /* if all are; `away` of them are */
    double away;
    double working;    /* peak of temporary activations in its passes, beyond
                           those that it and the layers below save */
    double grads_held; /* `working` after its first weight gradient */
    /* if several blocks are recomputed together: bytes that one more holds */
    double recompute_held;
    double logits; /* of the head: its output, which the loss reads */
    double scatters, scattered; /* exchanges of the forward pass whose result is
                                   smaller than their input, and the largest
                                   input */
    /* of a split backward pass: seconds of the pass for weights, and bytes (of
     * `saved` and of gradients) that are kept until it runs */
    double w_s, w_cat[SC_N_CATS];
    double wgrad_held;
    uint32_t n_weights;
    struct segment_weight *weight; /* [n_weights] input of
                                      sc_segment_weights() */
    sc_made *made;                 /* [n_weights] from sc_segment_passes() */
    uint32_t n_gradients;
    sc_gradient *gradient; /* [n_gradients] of `grad`, in order of time */
} sc_segment;

/* Cache for further runs of the same model: operator networks, and prices of
 * exchanges.  The caller zeroes it; it is valid as long as the arena of the
 * calls. */
typedef struct sc_segment_memo {
    sc_coll_memo *prices; /* NULL: none are kept */
    uint32_t n, cap;
    struct segment_network *network; /* [n] */
} sc_segment_memo;

/* Computes passes, activations and weights of one layer of each kind (`out`
 * [sc_run_segments()]) from its operator network.  The results depend neither
 * on the pipeline nor on the number of replicas.  `memo` may be NULL. */
sc_status sc_segment_passes(const sc_run *run, sc_segment_memo *memo,
                            sc_arena *a, sc_segment *out, sc_err *err);
/* Adds weights, gradients, optimizer states and their exchanges to a layer
 * whose passes are known. */
sc_status sc_segment_weights(const sc_plan *p, sc_arena *a, sc_segment *inout,
                             sc_err *err);

/* What the host needs to issue kernels, seconds. */
typedef struct sc_host_rate {
    double launch; /* a kernel or exchange */
    double member; /* more for an exchange over TP, per member of its group */
    double power;  /* exponent of the norm of host and device time */
    bool apart;    /* pipeline stages are on different nodes */
} sc_host_rate;

/* Seconds per step of data, clipping, logging, launching it, and slices of
 * weights that the host makes. */
double sc_plan_step_fixed(const sc_run *r);

/* `apart`: stages of the pipeline are on different nodes. */
sc_host_rate sc_plan_host_rate(const sc_cost *cost, const sc_software *sw,
                               bool apart);
/* Whether neighbouring stages of `pp`, whose ranks are `stride` apart, are on
 * different nodes. */
bool sc_plan_stages_apart(const sc_hw *hw, uint32_t pp, uint32_t stride);

/* Whether the program adds transfer_wait to transfers between nodes. */
bool sc_plan_waits(const sc_software *sw, const sc_hw *hw, uint32_t tp);

/* Seconds that the host adds to a pass over these layers, in which it also
 * issues `more`. */
double sc_plan_host_seconds(const sc_host_rate *host,
                            const sc_issue *const *layer, uint32_t n,
                            const sc_span *more);

/* Layers of a virtual stage in forward order: their number, and the segment of
 * the i-th. */
uint32_t sc_plan_stage_layers(const sc_plan *p, uint32_t v);
uint32_t sc_plan_stage_entry(const sc_plan *p, uint32_t v, uint32_t i);

/* Sum of a property of segments [sc_run_segments()] over all layers of a
 * pipeline device. */
typedef double (*sc_segment_property)(const sc_segment *);
double sc_plan_device_sum(const sc_plan *p, const sc_segment *segments,
                          uint32_t dev, sc_segment_property of);

/* The hardware of a pipeline device's kind, and the segments priced for it. */
const sc_hw *sc_plan_hw(const sc_plan *p, uint32_t dev);
const sc_segment *sc_plan_segments(const sc_plan *p, const sc_segment *segments,
                                   uint32_t dev);

/* Prices all segments of a run for every kind of device: *out has
 * [n_kinds * sc_run_segments()].  Functions with a parameter `segments` expect
 * this whole array. */
sc_status sc_segments_price(const sc_plan *p, sc_arena *a, sc_segment **out,
                            sc_err *err);

/* Prices one exchange of weights or gradients over ranks of these axes.
 * `*latency` is the part of its seconds without bytes on links. */
sc_status sc_plan_move_price(const sc_plan *p, uint32_t axes, sc_coll coll,
                             double bytes, sc_coll_price *out, double *latency,
                             sc_err *err);

/* Step-level costs, seconds. */
typedef struct sc_step_costs {
    sc_contender send; /* one activation transfer between stages */
    bool send_blocks;
    sc_contender join;  /* gather over TP of a transfer that arrives in parts */
    double optimizer_s; /* update of the device's weights */
    double tied_s;      /* all-reduce of a tied embedding between stages */
    double grad_s;      /* exchanges that no kernel overlaps */
    double pack_s;      /* kernels that compress their gradients */
    double update_s;    /* gathers of updated weights */
    double fixed_s;     /* data, logging, clipping, launch of the step */
    /* DualPipe: all-reduce of gradients between both copies of a stage */
    double dualpipe_sum_s;
    /* optimizer states on the host: the rest of the gradient copies to it, the
     * update, and the copies of weights back */
    double host_out_s, host_update_s, host_in_s;
    double host_copy_s, host_last_s; /* all gradient copies to the host; that of
                                        the last gradient */
    double
        keep_s; /* copies of weights that the device has updated to the memory
                      that keeps them */
    /* checkpoints, per step: the copy to the host, and the part of writing that
     * training waits for */
    double save_copy_s, save_write_s;
} sc_step_costs;

/* Seconds of the backward passes of a device that hide copies of gradients to
 * the host, and host_out_s: what they leave of all `copies` of a reduction, of
 * which nothing hides the `last`. */
double sc_plan_hides_copies(const sc_plan *p, const sc_segment *segments,
                            uint32_t dev);
double sc_plan_host_out(const sc_run *r, double copies, double last,
                        double behind);

/* Slowdown of kernels that overlap with exchanges of weights or gradients, as
 * extra time per second: channels occupy units, on average over the time of
 * all exchanges of gradients.  Measured mean over A100, H100,
 * MI210 and MI250: 18.9 % (arXiv 2507.03114); 24 channels of 132 units give
 * 18.2 %. */
double sc_plan_overlap(const sc_plan *p, const sc_segment *segments);

/* Fraction of a device's units that a collective with `channels` channels takes
 * from kernels (a channel is a block of NCCL's kernel on one unit). */
double sc_plan_units(const sc_device *d, double channels);

/* Channels of several exchanges, weighted by their seconds. */
typedef struct sc_units {
    double seconds, channels;
} sc_units;

static inline void sc_units_add(sc_units *u, double seconds, double channels)
{
    u->seconds += seconds;
    u->channels += seconds * channels;
}

/* sc_plan_units() of all of them on average; 0: there are none. */
double sc_units_mean(const sc_units *u, const sc_device *d);

/* Factor on every duration for waiting on the slowest rank and for host
 * settings that slow all ranks. */
double sc_plan_slow_factor(const sc_run *r);

/* Bytes of optimizer states that a device keeps on its host. */
double sc_plan_host_states(const sc_plan *p, const sc_segment *segments,
                           uint32_t dev);

/* Bytes that a rank sends to the next stage per micro-batch. */
double sc_run_send_bytes(const sc_run *r);
/* Whether ranks of TP send a transfer between stages in parts, which the
 * receivers gather. */
bool sc_run_gathers_sent(const sc_run *r);

/* Whether two virtual stages have the same layers. */
bool sc_plan_stages_alike(const sc_plan *p, uint32_t v, uint32_t w);
/* Whether two pipeline devices are of one kind and their stages are alike. */
bool sc_plan_devices_alike(const sc_plan *p, uint32_t x, uint32_t y);

/* `alike`: costs of a device that is alike, from which only transfers differ;
 * NULL: none is known. */
sc_status sc_plan_step_costs(const sc_plan *p, const sc_segment *segments,
                             uint32_t device, const sc_step_costs *alike,
                             sc_step_costs *out, sc_err *err);
#endif
