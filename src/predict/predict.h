/* SPDX-License-Identifier: Apache-2.0 */
/*
 * predict.h - one prediction: infers what was left out, compiles the operator
 * network, runs it by either engine, adds up memory and suggests changes.
 */
#ifndef SC_PREDICT_H
#define SC_PREDICT_H

#include "cost/cost_anchor.h"
#include "goodput/goodput.h"
#include "hw/hw_failures.h"
#include "hw/hw_prices.h"
#include "plan/plan.h"
#include "plan/plan_net.h"
#include "plan/plan_strategy.h"
#include "sim/sim.h"
#include "sim/sim_memory.h"

typedef enum sc_engine { SC_ENGINE_EVENT, SC_ENGINE_FAST } sc_engine;

/* How the network is modelled: by prices of exchanges, or by simulating
 * their messages on links, which queue them or divide their bandwidth. */
typedef enum sc_fidelity {
    SC_FIDELITY_ANALYTIC,
    SC_FIDELITY_CHUNK,
    SC_FIDELITY_FLOW
} sc_fidelity;

#define SC_INFER (-1) /* "not given" in every tri-state and enum */

/* How kernels reach tensors that are spread over two memories. */
typedef enum sc_access_order {
    SC_ACCESS_AT_ONCE,
    SC_ACCESS_IN_TURN
} sc_access_order;

extern const char *const sc_access_order_names[]; /* "at-once" "in-turn" */

/* The job that a user requests. Zero degrees and SC_INFER are inferred. */
typedef struct sc_job {
    const char *model, *cluster, *software; /* software: NULL = default */
    int64_t tp, pp, dp, cp, ep, vpp;        /* 0: infer */
    int64_t gbs, mbs, seq;                  /* 0: infer */
    int64_t accumulation;                   /* micro-batches of a replica */
    int64_t vocab;                          /* 0: the model's */
    int64_t zero;                           /* SC_INFER, 0..3 */
    int sp;                                 /* SC_INFER, 0, 1 */
    int recompute, schedule, precision;     /* SC_INFER or the enum */
    int rc_method;                          /* SC_INFER, sc_rc_method */
    int64_t rc_blocks;                      /* blocks it applies to; 0: 1 */
    SC_PROGRAM_OPTIONS;                     /* plan_software.h */
    int optimizer_tier;                     /* sc_tier; SC_INFER: the device */
    int64_t checkpoint_every;               /* steps; 0: no checkpoints */
    bool checkpoint_async;
    double nic_bw;            /* bytes/s of one adapter; 0: the cluster's */
    double power_cap;         /* W of a device; 0: the device's */
    double expanded_fraction; /* of every tensor, in expanded memory; 0 */
    int expanded_access;      /* sc_access_order; SC_INFER: at once */
    int64_t mean_tokens;      /* of a sample without its padding, which is not
                                computed; 0: all of `seq` */
    int64_t document_tokens;  /* mean length of packed documents; 0: one per
                                sample, but see fine_tune */
    bool fine_tune; /* as if the model had adapters: documents of the program's
                       usual length */
    SC_RUN_OPTIONS; /* plan.h */
    double offload; /* fraction of activations kept elsewhere; SC_INFER */
    double grad_bytes;  /* 0: the software's */
    double optim_bytes; /* 0: the software's */
    int64_t hsdp;       /* data-parallel ranks that shard together; 0: all */
    const char *schedule_file; /* orders of passes; NULL */
    const char *compress;      /* format of gradients; NULL: not compressed */
    const char *freeze;        /* patterns of operators that are not trained;
                            * NULL */
    const char *keep_bf16;     /* operators that stay in 16 bits; NULL */
    bool fsdp;
    int engine;   /* sc_engine */
    int fidelity; /* sc_fidelity */
    bool no_symmetry;
    double price;          /* USD per device and second; SC_INFER: unknown */
    const char *purchase;  /* a list of prices (hw_prices.h); NULL: none */
    double electricity;    /* USD/J, with `purchase`; SC_INFER: the list's */
    double grid_intensity; /* kg CO2e per J; SC_INFER: unknown */
    int64_t tokens;        /* of the whole run; 0: only one step */
    const char *failure_table; /* a table of them (hw_failures.h); NULL: none */
    double restart_s;          /* after a failure; 0: the table's */
    double repair_s;           /* of a node; 0: the table's */
    int64_t spares;            /* nodes; SC_INFER: as `availability` needs */
    double availability;     /* fraction of the time without waits for repairs;
                                0: the usual one */
    const char *strategy;    /* a file; NULL */
    const char *compat;      /* a row of sc_rules; NULL: our own */
    double gamma;            /* slowdown by overlap, see sc_sim_opts; SC_INFER:
                                rates */
    const char *op_times;    /* file of operators' times; NULL */
    const char *optimizer;   /* NULL: the usual one of the model */
    const sc_strategy *tree; /* the strategy after it was read; see
                                sc_job_strategy() */
    bool each;  /* every kernel is an operation of its own, as traces and
                 * graphs show it: the same prediction, slower */
    bool brief; /* only time and memory by the requested engine: no second
                 * engine, no suggestions (fits, sweeps) */
    const sc_progress *progress; /* reports progress of a simulation by
                                    messages; NULL: not reported */
} sc_job;

void sc_job_init(sc_job *job);
/* Reads the file named by `strategy` into `tree`, and copies into the job
 * what a job can express. If the command line contradicts the file, the
 * error is SC_C_CONFLICT. Does nothing without a file. */
sc_status sc_job_strategy(sc_job *job, const sc_given *given, sc_arena *a,
                          sc_err *err);
/* Options of `predict` and keys of its --config file. */
extern const sc_key sc_job_keys[];

/* Whether the field of a key differs from its value after sc_job_init(). */
bool sc_job_has(const sc_job *job, const sc_key *k);
/* Whether a key replaces what the training program does. */
bool sc_job_of_program(const sc_key *k);
/* Whether a key belongs to the machine, or changes what is loaded for a job. */
bool sc_job_loads(const sc_key *k);

/* What a key says of expanded memory, which keeps what does not fit elsewhere as
 * long as no such key has a value (docs/memory.md). */
typedef enum sc_job_away {
    SC_AWAY_NOTHING,
    SC_AWAY_LEARNS, /* whether a kind of data that only learning has is there */
    SC_AWAY_KIND,   /* whether another kind of data is there */
    SC_AWAY_TO,     /* the memory of weights and activations */
    SC_AWAY_SAID    /* something else that leaves none of this open */
} sc_job_away;

sc_job_away sc_job_keeps_away(const sc_key *k);
/* Sets the memory of weights and activations (sc_offload_to), or SC_INFER. */
void sc_job_move_to(sc_job *job, int to);
/* Whether any weights or activations are moved. */
bool sc_job_moves(const sc_job *job);

/* Whether a key changes only the end of a step; ZeRO does so below stage 2. */
bool sc_job_ends(const sc_key *k);
/* Fills every choice of `run`, a prediction of `job`. Predicting `out` gives
 * the same numbers. */
void sc_job_resolve(const sc_job *job, const sc_run *run, sc_job *out);
/* Whether a job uses features that the program does not have, by its
 * profile. */
bool sc_job_outside(const sc_job *job, const sc_software *sw);
/* The options that, appended to the command line of `from`, turn it into
 * that of `to`: "--zero 1 --no-fsdp". In `a`; NULL: out of memory. */
const char *sc_job_options(const sc_job *from, const sc_job *to, sc_arena *a);

/* Copies into `job` what a strategy and options can both set: mesh, batch,
 * presets, model ... `given` (NULL: none) are the command line's options. If
 * the file contradicts one, the error is SC_C_CONFLICT and names both; all
 * are reported in one pass. Axes: dp, rep, fsdp and ep multiply to dp. fsdp
 * alone is ZeRO 3 unless `zero` is given; beside dp (or rep), its ranks are
 * an HSDP group. */
sc_status sc_strategy_to_job(const sc_strategy *s, const sc_given *given,
                             sc_job *job, sc_arena *a, sc_err *err);

/* Whether steps of strategies that differ in this key can't be compared, or have
 * other machines or programs. */
bool sc_strategy_compares(const char *key);

/* The reverse for a network: options fill values that the strategy leaves
 * open. */
void sc_job_to_strategy(const sc_job *job, sc_strategy *s);

/* Applies settings of the strategy that belong to the program and not to a job:
 * gradient buckets, transfers that overlap compute. `*sw` is replaced if any is
 * set. */
sc_status sc_strategy_software(const sc_strategy *s, sc_arena *a,
                               const sc_software **sw, sc_err *err);

/* A run counts as fitting from this probability on: a refusal of a run that
 * would have fitted costs more than a trial that runs out of memory. */
#define SC_MAY_FIT 0.25

typedef struct sc_stage_memory {
    double weights, gradients, optimizer, activations, communication, other;
    double allocated;                   /* sum of the above */
    double peak;                        /* allocator-reserved plus context */
    double capacity;                    /* of the stage's device */
    double expanded, expanded_capacity; /* of one device; 0: none */
    const char *worst; /* the largest tensor when memory use is largest */
} sc_stage_memory;

/* For a transformer: the step by the fast engine, scaled by the predicted
 * step over the fast engine's step of the same run, and its memory. For
 * other networks, whose allocator only the event engine follows: both by the
 * requested engine. */
#define SC_SUGGESTIONS 3

typedef struct sc_suggestion {
    const char *change; /* "--tp 4": options to append */
    double step_time_s; /* this step */
    double peak;        /* memory after the change, bytes */
    bool fits;
} sc_suggestion;

/* The executed step of an operator network. */
typedef struct sc_net_step {
    const sc_net_run *job;
    sc_net_plan plan;
    sc_result run;
    sc_mem_device *memory;  /* [plan.step.n_classes] */
    sc_time cat[SC_N_CATS]; /* of the device that waits least */
    bool layers;            /* the fast engine composes the step from layers */
    uint32_t idle;          /* devices of the machine without work */
    double clock_s;         /* step by the fast engine; NAN: not computed */
    double slow[2];         /* extra time per time that kernels and exchanges
                     * overlap: gradient exchanges [1], others [0] */
    double fixed_s;         /* seconds of the step that no operation explains */
    double fixed_alone_s;   /* the same on a device that is not slowed */
    uint32_t low;       /* > 0: composed from a step of so many micro-batches
                         * (`plan.step`) and one of `pp` more */
    bool fast;          /* by the fast engine alone: `plan.step` has devices
                         * but no operations, memory has no tensors */
    sc_net_clock clock; /* if `fast`, its categories */
} sc_net_step;

/* A machine that is bought. Money of a step is its part of the service life and
 * its electricity. */
typedef struct sc_purchase {
    const sc_prices *prices;
    sc_hw_parts parts;
    double hosts_usd, switches_usd, links_usd, racks_usd, expanded_usd;
    double expanded_gb;    /* expanded memory of all devices */
    double usd;            /* all of it */
    double usd_per_s;      /* over the service life */
    double pue;            /* of the list, if the machine has none; else 1 */
    double usd_per_j;      /* electricity, for energy_j_per_step: with `pue` */
    double spare_host_usd; /* one more host, with its rack */
} sc_purchase;

/* A run with failures. */
typedef struct sc_failing_run {
    const sc_failures *table;
    sc_goodput_job job;
    sc_goodput expected;
    double steps_between; /* checkpoints */
    double days_without;  /* the same steps without failures, with the
                             checkpoints of job->checkpoint_every */
    double goodput;       /* training over the whole time */
    uint32_t host_size;   /* devices of a spare node */
    uint32_t simulated;   /* runs; 0: the job is brief, or it takes too long */
    double low_s, high_s; /* 80 % interval of their time; NaN: none */
} sc_failing_run;

/* What a machine draws on average in a step, in W. Hosts have no devices and
 * no adapters, switches no transceivers. */
typedef struct sc_power {
    double devices, hosts, adapters, switches, links;
    double pue;   /* at least 1, on all of them */
    double total; /* with it; NaN: not known */
} sc_power;

typedef struct sc_prediction {
    sc_run run;             /* every choice made */
    const sc_net_step *net; /* the step, operator by operator */
    bool by_mesh; /* choices are those of a strategy's mesh: `run` has no
                   * layers, and other axes than its own count as dp */
    double step_time_s, step_time_low_s, step_time_high_s;
    double level;  /* log of the factor on the step that own runs give; 0: none
                   * (run.cost->anchors) */
    double narrow; /* factor that they put on the interval; 1: none */
    sc_traits traits;      /* without shares, see sc_predict_shares() */
    double other_engine_s; /* step time by the engine that was not requested */
    double analytic_s;     /* by prices if messages were simulated; else NaN */
    double samples_per_s, tokens_per_s, tokens_per_s_per_device;
    double model_tflops_per_device, mfu, hfu;
    bool fits; /* with a probability of at least SC_MAY_FIT */
    double fits_probability;
    double memory_capacity_bytes;
    uint32_t n_stages;       /* pipeline devices */
    sc_stage_memory *memory; /* [n_stages] */
    double time_breakdown_s[SC_N_CATS];
    sc_power power;
    double energy_j_per_step;    /* NaN: not known */
    double cost_usd_per_step;    /* NaN: no price */
    const sc_purchase *purchase; /* NULL: none */
    double co2e_kg_per_step;     /* NaN: no energy or intensity */

    /* All steps of a run of job->tokens, with its failures; NaN if none are
     * given. Spare nodes count in device_hours and cost_usd. */
    struct {
        double steps, days, days_low, days_high, device_hours, energy_j,
            cost_usd;
        const sc_failing_run *failing; /* NULL: no failures are given */

        /* The same if it takes as much longer as published runs do
         * (cost_run_level.h); NaN: no level is known. */
        struct {
            double days, days_low, days_high, device_hours, energy_j, cost_usd;
        } published;
    } whole_run;

    uint32_t n_suggestions;
    sc_suggestion suggestion[SC_SUGGESTIONS];
    uint32_t n_assumptions, n_warnings;
    const char **assumptions, **warnings;
    uint32_t n_candidates; /* configurations tried for the open choices */
} sc_prediction;

/* Everything in `out` lives in `a`. The caller loads `hw`, `model`,
 * `software` and `cost`, once for many predictions. Errors: contradictions
 * and divisibility, SC_EINPUT; a result beyond a physical bound, SC_EBUG. */
sc_status sc_predict(const sc_job *job, const sc_hw *hw, const sc_model *model,
                     const sc_software *sw, const sc_cost *cost, sc_arena *a,
                     sc_prediction *out, sc_err *err);

/* Predicts a transformer's run whose choices are all made, with the
 * parameters of run->cost and without suggestions. */
sc_status sc_predict_chosen(const sc_job *job, const sc_run *run, sc_arena *a,
                            sc_prediction *out, sc_err *err);

extern const char *const sc_fidelity_names[]; /* "analytic" ...; NULL ends */

/* Whether a whole run has failures, so that its time is not in proportion to its
 * step. */
bool sc_job_fails(const sc_job *job);

/* The number of units of a cluster: nodes, racks, chips of a pod, the last
 * dimension of a one-line machine. 0: it has none, as a file. */
uint64_t sc_cluster_units(const char *spec);
/* The same cluster with that many units; NULL: out of memory. */
const char *sc_cluster_resized(const char *spec, uint64_t units, sc_arena *a);

/* The machine of a job whose cluster is given, with the job's changes. */
sc_status sc_job_machine(const sc_job *job, sc_arena *a, const sc_hw **out,
                         sc_err *err);
/* The same machine with the devices' options of a job: a limit of power, and
 * tensors that are spread over two memories. */
sc_status sc_job_devices(const sc_job *job, const sc_hw *hw, sc_arena *a,
                         const sc_hw **out, sc_err *err);

/* Replaces a model by one with the vocabulary that the job gives, if it does. */
sc_status sc_job_vocabulary(const sc_job *job, sc_arena *a,
                            const sc_model **inout, sc_err *err);

/* The program of a job, or the nearest one that is known; `hw`: NULL or the
 * job's machine. */
sc_status sc_job_software(const sc_job *job, const sc_hw *hw, sc_arena *a,
                          const sc_software **out, sc_err *err);

/* The rent of a device in USD per second, which a job or its machine states; NaN:
 * neither does. */
double sc_job_rent(const sc_job *job, const sc_hw *hw);

/* The loaded inputs of a job; `cost` may be changed before predicting. */
typedef struct sc_inputs {
    const sc_hw *hw;
    const sc_model *model;
    const sc_software *sw;
    sc_cost *cost;
} sc_inputs;

/* Replaces what follows from the machine of `job`: the machine, the program unless
 * the job names it, and a vocabulary that the job gives. */
sc_status sc_job_on_machine(const sc_job *job, sc_arena *a, sc_inputs *inout,
                            sc_err *err);

sc_status sc_predict_load(const sc_job *job, sc_arena *a, sc_inputs *out,
                          sc_err *err);

/* Loads, then predicts. */
sc_status sc_predict_job(const sc_job *job, sc_arena *a, sc_prediction *out,
                         sc_err *err);

/* A lower bound of the power that a run draws on average; NaN: the power of its
 * devices is not known. */
double sc_predict_least_watts(const sc_run *r);
/* The power that a run draws while all its devices are at their limit; NaN:
 * likewise. */
double sc_predict_most_watts(const sc_run *r);
/* Whether the machine of a job is bought by a list of prices. */
bool sc_job_buys(const sc_job *job);
/* What that machine costs, and what its energy does.  SC_EINPUT: the list, or
 * with SC_C_MISSING a device that has no price in it. */
sc_status sc_predict_purchase(const sc_job *job, const sc_hw *hw, sc_arena *a,
                              sc_purchase *out, sc_err *err);
/* A lower bound of what a second of a run costs: of the rent, or of the machine's
 * part of its service life and of its electricity.  SC_EINPUT: of job->purchase. */
sc_status sc_predict_least_usd(const sc_job *job, const sc_run *r, sc_arena *a,
                               double *per_s, sc_err *err);

/* What to change first if `job`, predicted as `p`, runs out of memory although
 * it should fit: changes of one choice or two after which it needs at most nine
 * tenths of the memory and fits, fewest changes first, then the fastest. */
sc_status sc_predict_smaller(const sc_job *job, const sc_prediction *p,
                             sc_arena *a, sc_suggestion out[SC_SUGGESTIONS],
                             uint32_t *n, sc_err *err);

/* Seconds of a step of a finished plan, composed from its segments by the
 * fast engine. */
sc_status sc_predict_fast(const sc_plan *p, const sc_segment *segments,
                          sc_arena *a, double *step_s, sc_err *err);

/* Fills the traits' shares: how the step depends on every fitted parameter and
 * on the network between nodes, by the fast engine with the same choices. */
sc_status sc_predict_shares(sc_prediction *p, sc_arena *a, sc_err *err);

/* Sets the 80 % interval of a prediction, its traits' shares, and how much own
 * runs (run.cost->anchors) narrow the interval. sc_predict() has done it unless
 * the job is brief. NaN: no errors of held-out runs are known. */
sc_status sc_predict_interval(sc_prediction *p, sc_arena *a, sc_err *err);

/* The anchor of a run that was measured as `measured_s` and is predicted as
 * `p`, whose traits get shares; `noise` as of sc_anchor, 0: the usual one. */
sc_status sc_anchor_of(sc_prediction *p, const char *id, double measured_s,
                       double noise, sc_arena *a, sc_anchor *out, sc_err *err);

/* By what fraction the step gets longer if one parameter grows by 10 %. */
typedef struct sc_sensitivity {
    const char *parameter;
    double change;
} sc_sensitivity;

#define SC_SENSITIVITY_MAX 5

/* The parameters that change the step of a configuration most, by the fast
 * engine, largest change first. Those with a change below 1e-4 are left out. */
sc_status sc_predict_sensitivity(const sc_prediction *p, sc_arena *a,
                                 sc_sensitivity out[SC_SENSITIVITY_MAX],
                                 uint32_t *n, sc_err *err);

/* The factor on the parameter `name`, or on the machine's property of that
 * name in sc_predict_inputs(), with which the step takes `ratio` times as
 * long by the fast engine. NaN: no factor from 1/4 to 4 within the
 * parameter's limits gives that, or the name is unknown. */
sc_status sc_predict_what_if(const sc_prediction *p, const char *name,
                             double ratio, sc_arena *a, double *factor,
                             sc_err *err);

/* A property of the machine: "memory bandwidth". */
typedef struct sc_input {
    const char *name;
    double change; /* of the step, as a fraction, if it were 10 % more */
    double factor; /* as sc_predict_what_if() */
} sc_input;

#define SC_INPUTS_MAX 4

/* Peak and bandwidths that affect the step, largest effect first; effects
 * below 1e-4 are left out. */
sc_status sc_predict_inputs(const sc_prediction *p, double ratio, sc_arena *a,
                            sc_input out[SC_INPUTS_MAX], uint32_t *n,
                            sc_err *err);

/* Memory of every pipeline device. */
sc_status sc_predict_memory(const sc_plan *p, const sc_segment *segments,
                            sc_arena *a, sc_stage_memory *out, sc_err *err);

/* The memory that the program would print, largest of all devices: the whole
 * peak, or the allocator's part (sc_software.memory_report). */
double sc_predict_reported_memory(const sc_prediction *p);

/* The kind of model, which selects the held-out errors that apply. */
sc_model_kind sc_predict_kind(const sc_model *m);
#endif
