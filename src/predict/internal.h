/* SPDX-License-Identifier: Apache-2.0 */
/* internal.h - types and functions that only files of predict/ use. */
#ifndef PREDICT_INTERNAL_H
#define PREDICT_INTERNAL_H

#include "plan/plan_schedule.h"
#include "plan/plan_strategy.h"
#include "predict/predict_points.h"

/* One evaluated configuration. */
typedef struct predict_eval {
    sc_run run;
    double step_s; /* by segments (sc_predict_fast) */
    double peak;   /* bytes on the fullest stage */
    double full;   /* fraction of the device's memory on the fullest stage */
    bool fits;
    bool slower; /* it fits but is not faster than required: `step_s` is a
                  * lower bound */
} predict_eval;

/* A step is clearly faster if it takes at most this fraction of the time. */
#define PREDICT_FASTER 0.97

/* Results that evaluations of one model, program and machine share: resolved
 * operators, and parts of layers by key (evaluate.c). */
typedef struct predict_memo {
    sc_arena *a;
    const sc_model *model;
    const sc_software *sw;
    const sc_hw *hw;
    double memory_scale; /* factor on memory by segments; 0 means 1 */
    double by_events;    /* step of the event engine over that of the fast
                          * engine; variants are assumed to have the same */
    bool searched;       /* `best` is the fastest by segments that fits */
    sc_run best;
    sc_arena *variant; /* of one variant at a time; NULL: no variants */
    double beat_s;     /* larger than 0: only choices faster than this by
                          segments are needed */
    sc_segment_memo networks;
    sc_map parts;           /* by their keys */
    sc_map batches;         /* by their keys without the micro-batch */
    uint32_t task;          /* bounds come from parts used in the same task */
    predict_orders *orders; /* NULL: none are kept */
} predict_memo;

/* Computes plan, memory, layers and step by segments. With `beat_s` > 0, a
 * run that does not fit or can't be faster is not composed, and step_s is a
 * lower bound. If the run needs `most` bytes before any layer is priced, its
 * peak is that lower bound. */
sc_status predict_evaluate(const sc_run *run, double beat_s, double most,
                           predict_memo *memo, predict_eval *out, sc_err *err);

struct predict_part;

/* A run with its plan and its priced layers. */
typedef struct predict_shape {
    sc_plan plan;
    sc_segment *segments;
    /* of the memo: the lists of weights, and what their states and exchanges
     * cost; NULL with devices of several kinds */
    const struct predict_part *lists, *weights;
    bool enough; /* a lower bound shows that it does not fit */
} predict_shape;

/* Decides whether to price the layers of a run.  Its segments have their
 * weights, and lower bounds of their activations. */
typedef sc_status predict_enough(predict_shape *x, void *with, bool *enough,
                                 sc_err *err);
/* The lower bound of the step of such a run by the passes of other
 * micro-batches; 0: none is known.  Segments then have these passes. */
double predict_shortest_unpriced(const predict_memo *m, predict_shape *x);

/* Makes the plan in `a`, and prices the layers with the memo, unless `enough`
 * (NULL: never) sets x->enough. */
sc_status predict_shape_of(const sc_run *run, predict_memo *m, sc_arena *a,
                           predict_enough *enough, void *with, predict_shape *x,
                           sc_err *err);
/* sc_run_set_end() of a shape on devices of one kind. */
sc_status predict_set_end(const sc_run *of, int zero, predict_memo *m,
                          predict_shape *x, sc_err *err);
/* Factor on the memory by segments. */
double predict_memory_scale(const predict_memo *m);

/* A lower bound of the step. */
double predict_shortest(const predict_shape *x);

/* Seconds of the compute streams for both passes of one micro-batch through
 * all layers; 0 if devices differ. */
sc_status predict_kernels(const sc_run *run, predict_memo *memo,
                          double *seconds, sc_err *err);

/* A lower bound of the step of `run`; 0 if `run` is not legal. */
sc_status predict_least_time(const sc_run *run, predict_memo *memo,
                             double *seconds, sc_err *err);

/* Makes the plan and prices its layers, with the memo where possible. */
sc_status predict_layers(const sc_run *run, predict_memo *memo,
                         predict_shape *out, sc_err *err);

/* Steps of `n` runs by the fast engine.  Neighbours with the same order of
 * passes are composed together.  `orders` may be NULL. */
sc_status predict_steps(const predict_shape *const *of, uint32_t n,
                        predict_orders *orders, sc_arena *a, double *step_s,
                        sc_err *err);
/* The step of a run by the fast engine, without the fixed part and without
 * counting slots. */
sc_status predict_clock(const predict_shape *of, sc_arena *a, sc_net_clock *out,
                        sc_err *err);

/* Micro-batches that each chunk of a device runs. If two devices hold the
 * chunk, each runs half of them on average. */
double predict_passes(const sc_run *r);

struct predict_notes;

/* Replicas on one kind of device. */
typedef struct predict_kind {
    const sc_strategy_pool *pool;
    sc_hw *hw;    /* the machine as if every node had this kind */
    double one_s; /* seconds per micro-batch */
    uint32_t mbs; /* micro-batches of each replica; some have one less */
} predict_kind;

typedef struct predict_spread {
    uint32_t n;
    predict_kind *k; /* [n] */
    uint64_t all;    /* micro-batches of a step */
} predict_spread;

/* Opens one kind: the replicas of a pool among `replicas`, from `first` on,
 * and their device. The caller computes `one_s`. */
sc_status predict_kind_open(const sc_hw *hw, uint32_t replicas,
                            const sc_strategy_pool *pool, uint32_t first,
                            predict_kind *k, sc_arena *a, sc_err *err);
/* Divides micro-batches as the pools specify, or so that the slowest replica
 * ends as early as possible. */
sc_status predict_deal(predict_spread *x, struct predict_notes *assume,
                       sc_err *err);
/* The kind that ends last, with the smallest memory of all kinds; NULL: out
 * of memory. */
predict_kind *predict_slowest_kind(const predict_spread *x, sc_arena *a);

/* Notes for a person, kept in the prediction. */
typedef struct predict_notes {
    sc_arena *arena;
    const char **text; /* [n] */
    uint32_t n, cap;
    bool failed; /* out of memory, so some notes are missing */
} predict_notes;

/* options.c: warns of options that have no effect on the run of a
 * transformer. */
/* Notes the waits that the profile of the program adds. */
void predict_stalls(const sc_plan *p, predict_notes *assume);
void predict_idle(const sc_job *job, const sc_run *r, predict_notes *warn);
/* Notes that overlap of exchanges over tp has no effect. */
void predict_tp_idle(const sc_strategy *s, predict_notes *warn);
/* Copies the program's own settings into a job that leaves them open, if they
 * have an effect there. */
void predict_resolve_program(const sc_run *run, sc_job *inout);

void predict_note(predict_notes *n, const char *fmt, ...) SC_PRINTF(2, 3);

/* Fills every open choice of `job` for the machine, model, software and
 * costs of `run`. `*n_tried` counts evaluations. */
sc_status predict_infer(const sc_job *job, sc_arena *a, sc_run *run,
                        predict_notes *notes, predict_memo *memo,
                        uint32_t *n_tried, sc_err *err);

/* Whether the fit has rows of the run's device generation and program. */
bool predict_seen(const sc_run *run);

/* Sets the traits of a prediction whose choices are made. */
void predict_traits(sc_prediction *p);

/* Scales a step by the level that own runs give it, but not below `least_s`. */
void predict_level(sc_prediction *p, double least_s, predict_notes *assume);

/* Notes where the 80 % interval comes from. */
void predict_interval_notes(const sc_prediction *p, predict_notes *assume,
                            predict_notes *warn);
/* Notes what own runs changed, beside the notes that `p` has. */
sc_status predict_anchor_note(sc_prediction *p, sc_arena *a, sc_err *err);

/* The place of errors of a job's machine. */
sc_pos predict_machine_pos(const sc_job *job, sc_arena *a);

/* A hint such as "needs 32 devices: --cluster dgx-h100:4"; it names no
 * cluster if that of `hw` is not a number of equal nodes. */
void predict_needs(const sc_hw *hw, uint64_t devices, char *buf, size_t size);

/* SC_C_UNKNOWN_NAME if the job names an optimizer that does not exist. */
sc_status predict_optimizer(const sc_job *job, sc_err *err);

/* Reports all contradictions between a job, its machine and its model. */
sc_status predict_check(const sc_job *job, const sc_hw *hw,
                        const sc_model *model, const sc_software *sw,
                        sc_err *err);

/* Messages are only simulated for the graph that our own rules execute. */
sc_status predict_check_fidelity(const sc_job *job, sc_err *err);

/* The subset of these checks that also applies to operator networks. */
sc_status predict_check_net(const sc_job *job, const sc_hw *hw,
                            const sc_model *model, const sc_software *sw,
                            sc_err *err);

/* The program with the job's changes; NULL: out of memory. */
const sc_software *predict_software(const sc_job *job, const sc_software *sw,
                                    sc_arena *a);

/* Suggests the three smallest changes that help job `job`, predicted as `p`.
 * The fast engine predicts `fast_s` for it. */
sc_status predict_suggest(const sc_job *job, double fast_s, predict_memo *memo,
                          sc_arena *a, sc_prediction *p, sc_err *err);

/* Changes `inout` option by option until it fits or no option saves memory.
 * Each change is the one that saves most by segments. `out` is as in
 * predict_variant(). */
bool predict_smallest(const sc_prediction *p, predict_memo *memo, sc_job *inout,
                      predict_eval *out);

/* Appends the smallest larger cluster on which `job` fits: more than `over`
 * and at most `most` times as many units. With `change`, other options may
 * change too; if that is not enough, sequences are halved. */
sc_status predict_larger(const sc_job *job, uint32_t over, uint32_t most,
                         bool change, predict_memo *memo, sc_arena *a,
                         sc_prediction *p, sc_err *err);

/* Bytes that the weights and optimizer states need once, on all devices
 * together, however they are split. 0 if the job has its own optimizer or
 * strategy. */
double predict_least_bytes(const sc_job *job, const sc_run *r);
/* Whether no open choice can make `job`, of which `r` is a run, fit on `hw`:
 * its devices can't hold the model and its states once. */
bool predict_too_small(const sc_job *job, const sc_run *r, const sc_hw *hw);

/* Infers what `next` leaves open, with the memo's machine and the model,
 * software and costs of `p`. Predicts memory and step by the fast engine,
 * the step scaled by memo->by_events. If it may or may not fit, the operator
 * network decides. False: it is impossible. */
bool predict_variant(const sc_job *next, const sc_prediction *p,
                     predict_memo *memo, predict_eval *out);
/* Refines a result of predict_guess() in the same way. */
bool predict_refine(const sc_job *job, predict_memo *memo, predict_eval *inout);
/* Step and memory of `next` by the fast engine. Also false if nothing is
 * faster than `beat_s`; 0: no such limit. */
bool predict_guess(const sc_job *next, const sc_prediction *p, double beat_s,
                   predict_memo *memo, predict_eval *out);
/* Factor on predict_most_full(). A run that needs more by segments does not
 * fit by the operator network either. */
#define PREDICT_TOO_FULL 1.1

/* Suggestions fit with at least this probability. */
#define PREDICT_LIKELY 0.5
/* Fraction of the memory that choices which a job leaves open keep free. */
#define PREDICT_FREE 0.02
/* Probability that a run fits whose fullest device needs `full` of its memory,
 * and the largest such fraction with which a run counts as fitting: that of
 * SC_MAY_FIT. */
double predict_fits_probability(const sc_cost *c, double full);
double predict_most_full(const sc_cost *c);
/* The probability that it runs: it fits, and its program does not fail because
 * stages are idle. */
double predict_fits_run(const sc_run *r, double full);
/* Whether a job leaves open where optimizer states are kept. */
bool predict_states_open(const sc_job *job);

/* The fraction of its memory that a device needs, above 2 if its expanded
 * memory is too small for `expanded` bytes; of the fullest of stages [n]. */
double predict_full(const sc_stage_memory *m, double expanded);
double predict_stages_full(const sc_hw *hw, const sc_stage_memory *m,
                           uint32_t n);
/* Whether all inferred choices are equal, on one machine. */
bool predict_same_run(const sc_run *x, const sc_run *y);
/* Infers and evaluates `job` by segments, with the model, software and costs
 * of `of`. `memo` and `a` are as in predict_again(). */
sc_status predict_by_segments(const sc_job *job, const sc_hw *hw,
                              const sc_run *of, predict_memo *memo, sc_arena *a,
                              predict_eval *out, sc_err *err);
/* sc_predict() with a memo and the machine, model, program and costs of `of`.
 * The memo is used if its model, program and machine match. `a` is not the
 * memo's arena. */
sc_status predict_again(const sc_job *job, const sc_run *of, predict_memo *memo,
                        sc_arena *a, sc_prediction *out, sc_err *err);

/* Appends the options that turn `job` into `next`, with their effect, unless
 * the suggestion exists. */
sc_status predict_keep(const sc_job *job, const sc_job *next,
                       const predict_eval *e, sc_arena *a, sc_prediction *p,
                       sc_err *err);

/* Applies the samples of the job to itself, and to the model and the program
 * of `inout`, and marks the operators that it names. */
sc_status predict_samples(sc_job *job, sc_arena *a, sc_run *inout, sc_err *err);
/* Whether two programs have the same features and figures. */
bool predict_same_program(const sc_software *x, const sc_software *y);
/* Then applies the job's other changes, and makes a memo for the result, unless
 * `memo` is NULL.  The memo keeps `prices` of exchanges on this machine; NULL:
 * its own. */
sc_status predict_open(const sc_job *job, sc_coll_memo *prices, sc_arena *a,
                       sc_run *inout, predict_memo **memo, sc_err *err);
/* Sets what does not depend on the division: precision, batch, schedule from a
 * file. `base` has a machine, a model, a program, costs and a strategy. */
sc_status predict_base(const sc_job *job, sc_arena *a, sc_run *base,
                       predict_notes *notes, sc_err *err);
/* Whether segments have nothing to choose: the model is an operator network,
 * or the strategy or mode is outside the search. */
bool predict_by_net(const sc_job *job, const sc_model *model);
/* The program of such a job: that of `run`, or the default for operator
 * networks, with the changes that the job and its strategy ask for. */
sc_status predict_net_software(const sc_job *job, const sc_run *run,
                               sc_arena *a, const sc_software **out,
                               sc_err *err);
/* sc_predict() of such a job with the machine, model, program and costs of
 * `run`. `memo` is that of `run`, with layers and all choices; the fast
 * engine then composes segments. If it is NULL, the fast engine walks the
 * program. `known` is an earlier step by the fast engine, or NULL. */
sc_status predict_net(const sc_job *job, const sc_run *run, predict_memo *memo,
                      const sc_net_step *known, sc_arena *a, sc_prediction *out,
                      sc_err *err);
/* Whether the job has settings that segments do not support. */
bool predict_walks(const sc_job *job);
/* Whether the fast engine's step of a job is more than its segments: networks
 * of operators, pools of replicas, waits for checkpoints, single ranks. */
bool predict_apart(const sc_job *job, const sc_model *model);
/* SC_EINPUT: choices of the job can't be searched, because it has a compatible
 * mode, or a network of operators and no batch. */
sc_status predict_searchable(const sc_job *job, const sc_model *model,
                             sc_arena *a, sc_err *err);
/* sc_predict_chosen() that need not compile a known step. Without a memo the
 * fast engine walks the program. */
sc_status predict_chosen(const sc_job *job, const sc_run *run,
                         predict_memo *memo, const sc_net_step *known,
                         sc_arena *a, sc_prediction *out, sc_err *err);
/* Finds the format in which gradients are exchanged. */
sc_status predict_format(const sc_job *job, sc_run *run, sc_err *err);
/* Sets the precision of a run, and adds a note on its source. */
void predict_precision(const sc_job *job, sc_run *run, predict_notes *notes);
/* Computes energy and cost of a step whose time by category is known. */
void predict_money(const sc_job *job, sc_prediction *p);
/* What the machine draws while its devices wait; NaN: not known. */
double predict_idle_watts(const sc_run *r);

/* Money of a machine that is bought, and CO2e. */
sc_status predict_purchase(const sc_job *job, sc_arena *a, sc_prediction *p,
                           sc_err *err);
/* What options of a whole run need each other. */
sc_status predict_check_run(const sc_job *job, sc_arena *a, sc_err *err);
/* Money of a run of so many seconds, whose energy is known; NaN: no price. */
double predict_run_usd(const sc_prediction *p, uint32_t spares, double seconds);

/* Sums over all steps of a run of job->tokens, with its failures; a step has
 * `tokens`. */
sc_status predict_whole_run(const sc_job *job, double tokens, sc_arena *a,
                            sc_prediction *p, sc_err *err);
/* Appends an assumption to a finished prediction; NULL: out of memory. */
sc_status predict_assume(sc_prediction *p, const char *text, sc_arena *a,
                         sc_err *err);
/* Moves notes to the prediction's arrays. */
sc_status predict_keep_notes(const predict_notes *assume,
                             const predict_notes *warn, sc_arena *a,
                             sc_prediction *p, sc_err *err);

/* FLOP/s that no kernel of this precision exceeds. */
double predict_best_peak(const sc_device *d, sc_precision p);

/* Reports an internal error if the result breaks a physical bound.
 * `flops_device` is for a device as slow as the machine's slowest. */
sc_status predict_bounds(const sc_prediction *p, double flops_device,
                         sc_err *err);

/* job.c: refuses a job whose step cannot run beside others on one machine. */
sc_status predict_refuse_site(const sc_job *job, bool pools, sc_err *err);

#endif
