/* SPDX-License-Identifier: Apache-2.0 */
/*
 * search.h - the best of many jobs.  Every one is evaluated as sc_predict()
 * does it with the fast engine (predict_points.h).
 */
#ifndef SEARCH_H
#define SEARCH_H

#include "predict/predict_points.h"
#include "search/search_space.h"

/* An option of a job and the values that it takes. */
typedef struct sc_search_option {
    const sc_key *key;      /* of sc_job_keys */
    sc_search_axis axis;    /* of a quantity: 0, 1, 2 ... */
    const double *quantity; /* [axis.n] of SC_T_QUANTITY; else NULL */
    const sc_job *job;      /* [axis.n] of `strategy`: jobs with all that its
                             * files say; else NULL */
    bool found;             /* its values were not given */
} sc_search_option;

/* A value that leaves an option as the job or its strategy has it. */
#define SC_SEARCH_AS_GIVEN (-1)

/* Reads values for an option of a job: "1,2,4", "0..3", "none,full".  The key
 * must be a number, a flag or a name.  SC_EUSAGE at `pos`. */
sc_status sc_search_option_read(const sc_key *key, const char *text, sc_pos pos,
                                sc_arena *a, sc_search_option *out,
                                sc_err *err);

/* The same from a word or a list of words of a file. */
sc_status sc_search_option_read_node(const sc_key *key, const sc_node *value,
                                     sc_arena *a, sc_search_option *out,
                                     sc_err *err);

/* Whether the values of a key are strategy files. */
bool sc_search_is_strategy(const sc_key *k);
/* Reads the strategy files of an axis: words "a.yml,b.yml"; `none` is no file.  All
 * that they say about model, machine, program, batch and sequence is equal and
 * goes into `job` too.  `given` are the options of the command line, which no
 * file may contradict. */
sc_status sc_search_strategies_read(const sc_node *value, const sc_given *given,
                                    sc_arena *a, sc_job *job,
                                    sc_search_option *out, sc_err *err);
/* A word of the command line as a value of a file. */
sc_node sc_search_word(const char *text, sc_pos pos);

/* The text of a value, as an option takes it. */
void sc_search_option_print(const sc_search_option *o, uint32_t digit,
                            char *buf, size_t size);
/* Sets the value in a job. */
void sc_search_option_set(const sc_search_option *o, uint32_t digit,
                          sc_job *job);

typedef struct sc_search_jobs {
    sc_job job; /* what all points share */
    const sc_inputs *in;
    sc_points *points;              /* of the job as it was given */
    uint32_t n;                     /* axes */
    const sc_search_option *option; /* [n] */
    uint32_t n_rules;
    const sc_search_rule *rule; /* [n_rules] */
    sc_search_space *space;
    uint32_t n_own;     /* first axes, whose points have their own sc_points */
    uint32_t n_mesh;    /* axes up to the last degree of parallelism */
    uint32_t n_passes;  /* axes before those that change only the end of a step
                        * (sc_job_ends()) */
    bool expands;       /* what expanded memory keeps is open: its options are
                         * axes that were not given */
    bool zero_ends;     /* the axis of ZeRO is one of these */
    uint64_t backwards; /* axes whose last values are visited first, because
                         * they bound the others: bits by index */
    uint64_t kind; /* axes that make points differ in kind: bits by index */
} sc_search_jobs;

/* The space of a job: the given options have the given values, each other
 * choice all that machine, model and program allow; expanded memory keeps none
 * or all of a kind of data.  SC_EINPUT: no point is
 * legal, or sc_points_new(). */
sc_status sc_search_jobs_open(const sc_job *job, const sc_inputs *in,
                              const sc_search_option *given, uint32_t n_given,
                              sc_arena *a, sc_search_jobs *out, sc_err *err);

/* ---- conditions ---------------------------------------------------------- */

/* Reads a condition over options of a job: numbers, names of options, devices,
 * nodes, node (devices of one), layers, heads, experts, + - * / %, comparisons,
 * words of options (full, fp8), and, or, not, parentheses.  `quoted`: a quoted
 * word of a file.  SC_EINPUT at the character. */
sc_status sc_search_where_read(const char *text, sc_pos pos, bool quoted,
                               sc_arena *a, const sc_search_where **out,
                               sc_err *err);
/* Whether a condition of a rule holds.  A value that is left open satisfies
 * every condition that reads it (search_space.h). */
bool sc_search_where_holds(const sc_search_where *w, const uint32_t *digit);
/* Leaves out points that do not satisfy all conditions.  SC_EINPUT: a name has
 * no value, or no point is left. */
sc_status sc_search_jobs_where(sc_search_jobs *jobs,
                               const sc_search_where *const *where, uint32_t n,
                               sc_arena *a, sc_err *err);

/* ---- files ---------------------------------------------------------------- */

/* What a file of --config says about the space. */
typedef struct sc_search_config {
    uint32_t n;

    struct {
        const sc_key *key;    /* of sc_job_keys */
        const sc_node *value; /* a list of words, or one word with several */
    } axis[SC_SEARCH_AXES];

    const sc_node *where;   /* one condition, or a list; NULL: none */
    const sc_node *machine; /* a map of axes of the machine; NULL: none */
    const sc_node
        *clusters; /* a list of machines; NULL: at most one is given */
} sc_search_config;

/* Takes options with several values, `where` and `machine` out of the map of a
 * file: "tp: [1, 2, 4]", "pp: 1..8".  SC_EINPUT at what is no word. */
sc_status sc_search_config_take(sc_node *root, sc_search_config *out,
                                sc_err *err);
/* Whether a word has several values of a key: "1,2,4", "1..8". */
bool sc_search_is_list(const sc_key *key, const char *word);

/* Whether all axes change only how the job is divided: neither the model, nor
 * the batch, nor the program. */
bool sc_search_jobs_divide(const sc_search_jobs *jobs);

/* For jobs that are divided over other machines too: `out` is `job` with the
 * global batch that it has on its own machine, `points` those of any division
 * there. */
sc_status sc_search_jobs_batch(const sc_job *job, const sc_inputs *in,
                               sc_arena *a, sc_job *out, sc_points **points,
                               sc_err *err);

/* The same without points: `job` itself if it states its batch, because its
 * options may need what its own machine lacks. */
sc_status sc_search_batch(const sc_job *job, const sc_inputs *in, sc_arena *a,
                          sc_job *out, sc_err *err);

/* Tokens of a step. */
double sc_search_tokens(const sc_run *run);

/* ---- the search ---------------------------------------------------------- */

/* Two points are of one kind if they have the same degrees of parallelism,
 * ZeRO stage, sharding groups, recomputation, offload, precision and strategy
 * file.  They may differ in what only tunes a configuration: virtual stages,
 * schedule, micro-batch, sequence parallelism, overlap. */

/* What a search makes small. */
typedef enum sc_search_goal {
    SC_GOAL_STEP_TIME,
    SC_GOAL_COST,           /* USD of a step, or of all tokens of the job */
    SC_GOAL_ENERGY,         /* J of a step, or of all tokens */
    SC_GOAL_TOKENS_PER_USD, /* USD per token */
    SC_GOAL_DAYS,           /* of all tokens */
    SC_N_GOALS
} sc_search_goal;

extern const char *const sc_search_goal_names[]; /* "step_time"; NULL ends */

/* What a run has to meet; 0: anything. */
typedef struct sc_search_limits {
    double until_s, usd;
} sc_search_limits;

/* SC_EINPUT: a job lacks the price or the tokens that the goal or the limits
 * need, or the power of the devices is not known. */
sc_status sc_search_goal_check(sc_search_goal goal,
                               const sc_search_limits *limits,
                               const sc_job *job, const sc_hw *hw, sc_err *err);
/* SC_EINPUT of the option `who`: a machine that is bought needs prices. */
sc_status sc_search_needs_prices(const char *who, sc_err *err);
/* Whether the score is not in proportion to the step, so that every row is
 * predicted: energy, money of a machine that is bought, failures. */
bool sc_search_goal_predicted(sc_search_goal goal, const sc_job *job);
/* The score of a prediction of such a goal. */
double sc_search_goal_score(sc_search_goal goal, const sc_job *job,
                            const sc_prediction *p);
/* The score of a step that takes a second, or a lower bound of it if rows are
 * predicted.  SC_EINPUT: the prices are not known. */
sc_status sc_search_goal_weight(sc_search_goal goal, const sc_job *job,
                                const sc_run *run, sc_arena *a, double *out,
                                sc_err *err);
/* The score as people read it: tokens per USD instead of its inverse. */
double sc_search_goal_value(sc_search_goal goal, double score);

/* An evaluated point. */
typedef struct sc_search_row {
    uint32_t digit[SC_SEARCH_AXES];
    sc_point point;
    double score; /* of the goal, less is better */
} sc_search_row;

/* Orders rows by score, then by the order of points. */
int sc_search_row_order(const sc_search_row *x, const sc_search_row *y,
                        uint32_t n);

/* Points that are not possible, by the option that is refused, or "memory". */
typedef struct sc_search_reason {
    char name[40];
    uint64_t n;
} sc_search_reason;

#define SC_SEARCH_REASONS 32

/* Steps are counted in four buckets for each power of two of seconds, from
 * 2^-24 s on. */
#define SC_SEARCH_BUCKETS 192

/* The shortest step of a bucket; the next bucket has the longer ones. */
double sc_search_bucket(uint32_t i);

struct sc_search_saved; /* search_saved.h */

/* How far a search is. */
typedef struct sc_search_sofar {
    uint64_t done, tasks, evaluated;
    double best, bound; /* scores; INFINITY: none, 0: not known */
    double from;        /* fraction of the tasks that were done at the start */
} sc_search_sofar;

/* Processes that run the same search with the same inputs.  Number 0 hands out
 * the tasks and joins their results; after sc_search_run() all have them. */
typedef struct sc_search_ranks {
    uint32_t rank, n;
    void *with;
    sc_status (*send)(void *with, uint32_t to, const sc_bytes *message,
                      sc_err *err);
    /* The next message, of any rank; `from` is `n` if none came for a while.
     * One thread of a rank calls these at a time. */
    sc_status (*receive)(void *with, sc_bytes *message, uint32_t *from,
                         sc_err *err);
} sc_search_ranks;

/* The message that tells rank 0 that the search of another rank has failed. */
void sc_search_ranks_fail(sc_status s, const sc_err *err, sc_bytes *message);

typedef struct sc_search_options {
    uint32_t top;     /* rows to keep */
    bool kinds;       /* rows are the best ones of different kinds */
    uint32_t threads; /* at least 1; no result depends on it */
    bool exhaustive;  /* without bounds */
    double keep_free; /* fraction of memory that rows leave free */
    sc_search_goal goal;
    double slowest;           /* seconds per token that rows may take; 0: any */
    bool only_best;           /* neither the front nor the best of each value */
    bool (*stop)(void *with); /* ends the search early; NULL: never */
    /* ends it with SC_EINTR and without a result; NULL: never */
    bool (*interrupted)(void *with);
    void *with;
    void (*tell)(void *with, const sc_search_sofar *s); /* NULL: nobody */
    uint32_t shard, shards;        /* searches part 1, 2 ... `shards`; 0: all */
    struct sc_search_saved *saved; /* goes on from it; NULL: from the start */
    /* `saved` has got further; called by one thread; NULL: nobody */
    sc_status (*save)(void *with, const struct sc_search_saved *s, sc_err *err);
    /* takes the rows of all evaluated points, as blocks of a log (store.h);
     * NULL: they are not kept */
    sc_status (*keep)(void *with, uint64_t rows, const uint8_t *bytes,
                      size_t len, sc_err *err);
    const sc_search_ranks *ranks; /* NULL: one process */
} sc_search_options;

typedef struct sc_search_result {
    uint64_t points;
    uint64_t evaluated; /* steps that were composed */
    uint64_t pruned;    /* points that a bound excludes */
    uint64_t left;      /* points that the search did not reach */
    double bound;       /* no point has a smaller score; 0: not known */
    uint64_t steps[SC_SEARCH_BUCKETS]; /* evaluated points by their step */
    uint32_t n_reasons;
    sc_search_reason reason[SC_SEARCH_REASONS];
    uint32_t n_best;
    sc_search_row *best; /* [n_best], smallest score first */
    uint32_t n_front;
    sc_search_row
        *front; /* [n_front] by score: each needs less memory than those
                        * before it */
    /* of each value of each axis the best row; step_s INFINITY: none */
    sc_search_row **per_axis; /* [n][axis.n] */
} sc_search_result;

sc_status sc_search_run(const sc_search_jobs *jobs, const sc_search_options *o,
                        sc_arena *a, sc_search_result *out, sc_err *err);

/* A lower bound of the steps of all points; 0: none is known. */
sc_status sc_search_least(const sc_search_jobs *jobs, sc_arena *a,
                          double *seconds, sc_err *err);

/* The job of a row: without the memory of weights and activations if an axis that
 * was not given leaves them all on the devices. */
void sc_search_row_job(const sc_search_jobs *jobs, const sc_search_row *row,
                       sc_job *out);

#endif
