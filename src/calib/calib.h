/* SPDX-License-Identifier: Apache-2.0 */
/*
 * calib.h - fits, validation tables, leave-out.
 */
#ifndef SC_CALIB_H
#define SC_CALIB_H

#include "predict/predict.h"

/* ---- the fitter --------------------------------------------------------- */

/* Minimises sum_i w_i rho(r_i) + sum_j ((log p_j - log centre_j) / sd_j)^2
 * over the free parameters, r_i = log(predicted_i / measured_i), rho(r) =
 * 2 (sqrt(1 + (r / soft)^2) - 1): soft-L1, a row of weight 1 is a measurement
 * with standard deviation `soft`, outliers weigh less.  Levenberg-Marquardt
 * in log p with forward differences, steps clamped to [lo, hi]; steps that do
 * not lower the cost are refused, so the model may jump.  Starts at `inout`;
 * deterministic. */
typedef sc_status (*sc_fit_model)(void *ctx, const sc_cost *c, double *log_pred,
                                  sc_err *err); /* writes [n_rows] */

typedef struct sc_fit_problem {
    uint32_t n_rows, n_free;
    const sc_param *free;   /* [n_free] */
    const double *log_meas; /* [n_rows] */
    const double *weight;   /* [n_rows]; NULL: 1 */
    double soft;            /* scale of rho; 0.08 if 0 */
    double prior_weight;    /* multiplies the prior term; 1 if 0 */
    sc_fit_model model;
    void *ctx;
} sc_fit_problem;

typedef struct sc_fit_result {
    double value[SC_N_PARAMS];  /* fitted */
    double se_log[SC_N_PARAMS]; /* standard error of log p, with the prior */
    double rows[SC_N_PARAMS];   /* effective rows that determine it; 0: none,
                                   it stays at its centre */
    double cost_before, cost_after;
    uint32_t iterations;
    uint32_t n_free;
    const sc_param *free;     /* [n_free] the parameters of `covariance` */
    const double *covariance; /* [n_free * n_free] of log p, with the prior,
                                 both in the arena of the fit; NaN: singular */
} sc_fit_result;

sc_status sc_fit(const sc_fit_problem *p, sc_cost *inout, sc_fit_result *out,
                 sc_arena *a, sc_err *err);

/* A start for a fit: gives each parameter in turn the best of some values from
 * its centre up.  Where a step is the longer of two times, a parameter of the
 * shorter one has no derivative. */
sc_status sc_fit_scan(const sc_fit_problem *p, sc_cost *inout, sc_arena *a,
                      sc_err *err);

/* Fits the `network` set on a network table (header of network.csv); groups
 * of (device, ranks, nodes, collective) weigh the same.  `report` gets the
 * errors by group and what was skipped and why. */
sc_status sc_fit_network(const sc_csv *table, sc_cost *inout,
                         sc_fit_result *out, sc_text *report, sc_arena *a,
                         sc_err *err);

/* Mean over groups of the mean |predicted / measured - 1| of a group. */
typedef struct sc_network_score {
    uint32_t rows, skipped;      /* of the table */
    uint32_t groups[2], used[2]; /* [0] one node, [1] several: above 1 MiB */
    double error[2];             /* above 1 MiB */
    double error_small[2];       /* up to 1 MiB; groups that have such rows */
} sc_network_score;

/* Predicts every row of a network table; `report` as above, may be NULL. */
sc_status sc_network_check(const sc_csv *table, const sc_cost *c,
                           sc_network_score *out, sc_text *report, sc_arena *a,
                           sc_err *err);

/* ---- validation --------------------------------------------------------- */

typedef struct sc_validate_opts {
    int engine;          /* sc_engine */
    const char *family;  /* only this family; NULL: all */
    const char *where;   /* only rows whose id matches this glob; NULL */
    const sc_cost *cost; /* parameters; NULL: built in */
    uint32_t anchors;    /* of leave-out by family: each row is predicted with
                            so many others of its family as own runs; 0: none */
    const sc_progress *progress; /* reports progress after each row or group;
                                    NULL: not reported */
} sc_validate_opts;

typedef struct sc_valid_row {
    const char *id, *family, *device, *model;
    const char *reason; /* why it could not be predicted; NULL: predicted */
    double measured, predicted; /* seconds; NaN where there is none */
    double error;               /* predicted / measured - 1 */
    double median; /* of all measurements of this configuration, s */
    double mem_measured, mem_predicted; /* bytes; NaN */
    double low, high;                   /* 80 % interval, seconds */
    double sd; /* of log(median / predicted) by effects; only if left out */
    uint8_t outcome; /* 0: unknown, 1: it ran, 2: it ran out of memory */
    bool fits;       /* as predicted; undefined without a prediction */
    double fits_probability; /* NaN: not predicted */
    uint8_t kind;            /* sc_model_kind, of predicted rows */
    const char *hw_device; /* its name in the catalogue; NULL: not predicted */
    const char *dtype;     /* of kernels; NULL */
    const char *unit;      /* NULL: that of the table */
    const char *publisher; /* of whole runs; NULL */
    uint32_t n_assumptions, n_warnings;
    const char **assumptions;
    const char *const
        *warnings;       /* what the row states and is not known, so that
                                    the nearest known replaces it */
    uint64_t config_key; /* equal for repetitions of one configuration */
    uint64_t group_key;  /* rows that differ only in parallelization and
                              micro-batch share it */
    bool unfitted;       /* no fit uses it: its program's profile says so */
    bool counted;        /* in the errors of groups, with `median`; false:
                              not compared, or a repetition of one that is */
} sc_valid_row;

/* Rows of which it is known whether they fitted. */
#define SC_FITS_BINS 10

typedef struct sc_valid_fits {
    uint32_t rows, right; /* repetitions count once */
    uint32_t refused;     /* ran but were predicted not to fit */
    uint32_t accepted;    /* the opposite */
    double squares;       /* sum of (probability - 1 if it ran else 0)^2 */
    /* Rows by tenths of their probability, and those of them that ran. */
    uint32_t of_bin[SC_FITS_BINS], ran[SC_FITS_BINS];
} sc_valid_fits;

/* Stated probabilities of being the fastest of a set of rows that differ only in
 * parallelization, and of being faster than another row of it, and what was
 * measured; only set by leave-out. */
#define SC_PICK_BINS 10
extern const double sc_pick_edges[SC_PICK_BINS + 1];
#define SC_PAIR_BINS 8
extern const double sc_pair_edges[SC_PAIR_BINS + 1];

typedef struct sc_valid_pick {
    uint32_t sets, rows;
    double squares; /* sum of (probability - 1 if the fastest else 0)^2 */
    double blind;   /* the same if all rows of a set have one probability */
    double regret_stated, regret; /* sums over sets: of the choice */
    /* Rows by their probability (sc_pick_edges), the sum of it, and how many of
     * them were the fastest; equals share. */
    uint32_t of_bin[SC_PICK_BINS];
    double stated[SC_PICK_BINS], best[SC_PICK_BINS];
    /* Pairs of two rows of a set (sets of two count here): of the row that is
     * more likely the faster one, by that probability (sc_pair_edges), the sum
     * of it, and in how many it was; equals share. */
    uint32_t pairs, of_pair[SC_PAIR_BINS];
    double pair_squares, pair_stated[SC_PAIR_BINS], pair_right[SC_PAIR_BINS];
} sc_valid_pick;

typedef struct sc_valid_group {
    const char *family, *device;            /* device NULL: all devices */
    const char *dtype;                      /* of kernels; NULL */
    uint32_t rows, skipped;                 /* skipped: have a reason */
    double mape, median_ape, p90_ape, bias; /* fractions; NaN without rows */
    /* Over sets of rows that differ only in parallelization and micro-batch;
     * NaN where there is none: tau-b over all pairs, what the predicted best
     * costs over the measured best (mean over sets, worst set). */
    double kendall_tau, regret, regret_max;
    double mem_mape, mem_max; /* NaN where no memory was measured */
    double mem_bias;
    uint32_t mem_rows;
    sc_valid_fits fits;
    sc_valid_pick pick; /* of whole families */
    double coverage;    /* fraction of rows inside their 80 % interval */
} sc_valid_group;

/* Errors of rows that were left out together, or of one kind of model. */
typedef struct sc_valid_part {
    const char *name;
    bool is_kind;
    uint32_t rows; /* counted */
    double mape, bias, coverage;
} sc_valid_part;

typedef struct sc_validation {
    const char
        *unit;    /* unit of measured and predicted: "s", "us", "W" or "h" */
    bool kernels; /* rows are no training runs but kernels, collectives,
                         power or whole runs, whose order has no meaning */
    uint32_t n_rows, n_groups, skipped;
    sc_valid_row *rows;
    sc_valid_group *groups;
    double mape, median_ape, coverage;
    double mem_mape, mem_bias; /* NaN where no memory was measured */
    uint32_t mem_rows;
    sc_valid_fits fits;
    sc_valid_pick pick;
    uint32_t n_parts;
    sc_valid_part *parts; /* [n_parts]; only set by leave-out */
    const char *left_out; /* "family" ... if each row was predicted by a fit
                             without its group; NULL */
    uint32_t anchors;   /* own runs of each prediction; rows are then pairs of a
                         choice of them and a row */
    double family_mape; /* mean over families of their mean error; only set by
                           leave-out */
    bool nested; /* and the interval of a row comes from the other families
                    alone */
} sc_validation;

/* Predicts every row of the tables, which are recognised by their header:
 * training runs (columns of data/validation/README.md), network curves (unit
 * "us"), kernels, power of nodes (unit "W"), or whole runs (unit "h").  Runs of quality A and B are
 * compared; configurations measured several times under one software count
 * once, with their median.  Errors: tables that can't be read, or of different
 * kinds.  A row that can't be predicted is no error but has a reason. */
sc_status sc_validate(const sc_csv *tables, uint32_t n_tables,
                      const sc_validate_opts *o, sc_arena *a,
                      sc_validation *out, sc_err *err);

/* Only reports errors in the header and in cells. */
sc_status sc_table_check(const sc_csv *table, sc_arena *a, sc_err *err);

/* `--leave-out family|device|model`: refits the sets that have rows of a group
 * without them, from their centres, for each group in turn, and predicts it.
 * Tables of collectives: refits the network set, and the model is the network
 * between nodes.  `o->family` and
 * `o->where` choose which rows are printed, never which are fitted. */
sc_status sc_validate_leave_out(const sc_csv *tables, uint32_t n_tables,
                                const char *by, const sc_validate_opts *o,
                                sc_arena *a, sc_validation *out, sc_err *err);

/* Texts of the files of data/fit. */
typedef struct sc_fit_files {
    sc_text network, step, program, graph;
    sc_text covariance; /* of the parameters of all four */
} sc_fit_files;

void sc_fit_files_init(sc_fit_files *f);
void sc_fit_files_free(sc_fit_files *f);

/* `calibrate --truth DIR`: fits the network set on DIR's tables of collectives, then the
 * step set on the tables of runs among DIR's *.csv, the program set on those of
 * programs with fitted keys, and the graph set on the operator networks; appends the text of each file, and a report.
 * Steps and graphs start at their centres or, where `from` is not NULL, at the
 * fit in that directory, which stays as it is if it is one of these tables.  The
 * same tables and start give the same bytes.  Errors: more than one fitted
 * parameter per 20 rows, in a set or of one program. */
sc_status sc_calibrate_truth(const char *dir, const char *from,
                             const sc_progress *progress, sc_arena *a,
                             sc_fit_files *out, sc_text *report, sc_err *err);

/* `calibrate --kernels TABLE...`: fits a form to each class of generations and
 * kind of kernel that the tables have rows of (calib/kernel_table.h); appends
 * the text of data/fit/kernels.yml and a report.  The same tables give the same
 * bytes. */
sc_status sc_calibrate_kernels(const sc_csv *tables, uint32_t n_tables,
                               const char *from, sc_arena *a, sc_text *yml,
                               sc_text *report, sc_err *err);

/* `calibrate --kernels TABLE... --alone`: the same for single kernels of each
 * device of the tables, as text of data/fit/kernels-alone.yml.  The report has
 * the errors of each form, and those on its rows of the forms of the other
 * devices, without and with a level from 16 kernels (5 seeds). */
sc_status sc_calibrate_alone(const sc_csv *tables, uint32_t n_tables,
                             const char *from, sc_arena *a, sc_text *yml,
                             sc_text *report, sc_err *err);

/* `calibrate --kernel-levels TABLE...`: for each device and kind of kernel, the
 * measured time over that of the built-in form, as `kernel_levels` of a
 * profile.  A level from few rows stays near 1. */
sc_status sc_calibrate_levels(const sc_csv *tables, uint32_t n_tables,
                              const char *from, sc_arena *a, sc_text *yml,
                              sc_text *report, sc_err *err);

/* `calibrate --truth DIR --held-out`: with the fit of FIT_DIR's network.yml,
 * step.yml, program.yml and graph.yml, refits the set of a family without each family of the tables of runs in
 * turn and predicts it; appends the text of data/fit/held-out.yml, and a
 * report.  The same files give the same bytes. */
sc_status sc_calibrate_held_out(const char *dir, const char *fit_dir,
                                const sc_progress *progress, sc_arena *a,
                                sc_text *yml, sc_text *report, sc_err *err);

/* `calibrate --whole-runs TABLE...`: fits the level of published runs
 * (cost_run_level.h); appends the text of data/fit/whole-run.yml, and the rows,
 * each with the level of the other publishers. `from` is as for
 * calib_fit_write(). */
sc_status sc_calibrate_whole(const sc_csv *tables, uint32_t n_tables,
                             const char *from, sc_arena *a, sc_text *yml,
                             sc_text *report, sc_err *err);

/* `calibrate --runs TABLE`: own runs (columns of data/validation/README.md)
 * move parameters and levels; sc_anchors_write() writes `out` as a profile.
 * `base` are parameters without own runs. `report` gets a line for each row.
 * Errors: as of sc_table_check(), no row that can be used, more than
 * SC_ANCHORS_MAX. */
sc_status sc_calibrate_runs(const sc_csv *table, const sc_cost *base,
                            const sc_progress *progress, sc_arena *a,
                            sc_anchors *out, sc_text *report, sc_err *err);

/* Compares each family with a file of bars: its mean errors of step times
 * (`bars: {bloom-jz: 3.1%}`) and of memory (`memory: {...}`) and its mean
 * regret (`regret:`) may only fall, its order (`tau: {bloom-jz: 0.67}`) only
 * rise.  Appends a line per bar to `report`.  SC_NO: a figure is more than 0.05
 * points (tau: 0.0005) worse than its bar, or nothing of it was predicted. */
sc_status sc_validation_bars(const sc_validation *v, const char *text,
                             size_t len, const char *file, sc_arena *a,
                             sc_text *report, sc_err *err);

/* Writes such a file with the current errors. */
void sc_validation_bars_write(const sc_validation *v, sc_text *out);

/* The JSON object "stepcast.validate/1", and tables for people. */
void sc_validation_json(const sc_validation *v, sc_json *j);
void sc_validation_text(const sc_validation *v, bool rows, sc_text *out);
#endif
