/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_difference.h - the difference of two predictions, term by term.
 *
 * An outcome is what a difference needs of a prediction. It is taken from a
 * prediction or read from a document stepcast.result/1. Times are whole
 * picoseconds and sizes whole bytes, so the terms of a difference add up to it
 * exactly: what rounding leaves is in the terms `other` and `reserve`.
 */
#ifndef SC_REPORT_DIFFERENCE_H
#define SC_REPORT_DIFFERENCE_H

#include "predict/predict.h"

/* Parts of a device's memory. */
typedef enum sc_part {
    SC_PART_WEIGHTS,
    SC_PART_GRADIENTS,
    SC_PART_OPTIMIZER,
    SC_PART_ACTIVATIONS,
    SC_PART_COMMUNICATION,
    SC_PART_OTHER,
    SC_PART_RESERVE, /* of the allocator, and the context */
    SC_N_PARTS
} sc_part;

extern const char *const sc_part_names[]; /* "weights" ...; NULL ends */

/* Bytes of each part; they add up to the device's peak. */
void sc_stage_parts(const sc_stage_memory *m, double out[SC_N_PARTS]);

/* Other numbers of a result that a difference shows. */
typedef enum sc_figure {
    SC_FIG_TOKENS,
    SC_FIG_TOKENS_DEVICE,
    SC_FIG_SAMPLES,
    SC_FIG_MFU,
    SC_FIG_FITS,
    SC_FIG_ENERGY,
    SC_FIG_COST,
    SC_FIG_DAYS,
    SC_FIG_RUN_ENERGY,
    SC_FIG_RUN_COST,
    SC_N_FIGURES
} sc_figure;

/* Their fields in stepcast.result/1: "tokens_per_s" ... */
extern const char *const sc_figure_names[SC_N_FIGURES];

typedef struct sc_outcome {
    const char *name;  /* of the file, or of the row of a search */
    const char *model; /* as reports name it */
    sc_job job;        /* every choice of the run */
    uint32_t n_devices;
    sc_time step, time[SC_N_CATS]; /* of the slowest rank; add up to `step` */
    /* bytes of the fullest pipeline device; add up to `peak` */
    int64_t peak, memory[SC_N_PARTS];
    double capacity;          /* bytes; NaN: not known */
    uint32_t stage, n_stages; /* that device, and how many there are */
    bool fits;
    double figure[SC_N_FIGURES]; /* NaN: not known */
} sc_outcome;

/* The outcome of a prediction of `job`; strings are borrowed. */
void sc_outcome_of(const char *name, const sc_job *job, const sc_prediction *p,
                   sc_outcome *out);

/* Reads a document stepcast.result/1. All errors are reported in one pass. */
sc_status sc_outcome_read(sc_node *root, sc_arena *a, sc_outcome *out,
                          sc_err *err);

/* Whether a document is such a result. */
bool sc_outcome_is(const sc_node *root);

/* The `config` of a result of a command with the names of options, without
 * values that follow from others; `root` itself if it is no result. NULL: out
 * of memory. */
sc_node *sc_result_config(sc_node *root, sc_arena *a);

/* A term that both outcomes have: `of` is an sc_cat or an sc_part. */
typedef struct sc_term {
    int of;
    int64_t a, b; /* picoseconds or bytes */
} sc_term;

/* What distinguishes `b` from `a`. Terms without a difference are left out; the
 * others begin with the largest one. */
typedef struct sc_difference {
    const sc_outcome *a, *b;
    uint32_t n_time, n_memory, n_choices;
    sc_term time[SC_N_CATS], memory[SC_N_PARTS];
    const sc_key **choice; /* [n_choices] rows of sc_job_keys */
} sc_difference;

sc_status sc_difference_of(const sc_outcome *a, const sc_outcome *b,
                           sc_arena *arena, sc_difference *out, sc_err *err);

/* Prints choices, step time, memory and figures as a table in 80 columns. */
void sc_report_difference(const sc_difference *d, sc_text *out);

/* One line for a person: "bubble -120 ms, exposed TP +31 ms, ...", the terms of
 * the step that make up at least 9/10 of what changed. */
void sc_report_difference_line(const sc_difference *d, sc_text *out);

/* Writes members `choices` ... of a JSON object. */
void sc_report_difference_json(const sc_difference *d, sc_json *out);

#endif
