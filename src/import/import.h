/* SPDX-License-Identifier: Apache-2.0 */
/*
 * import.h - files of other programs, read as jobs and measurements: launch
 * scripts, configurations of training programs, logs of training runs.  See
 * docs/inputs.md.
 */
#ifndef SC_IMPORT_H
#define SC_IMPORT_H

#include "predict/predict.h"

/* Where a value comes from. */
typedef struct sc_origin {
    const char *key;  /* of sc_job_keys or sc_transformer_keys: "tp" */
    const char *text; /* "train.sh:12:3: --tensor-model-parallel-size 8" */
    sc_pos pos;       /* of the value; line 0: the program's default */
} sc_origin;

/* What files of other programs give beyond the fields of a job. */
typedef struct sc_import {
    bool has_model;       /* layers, hidden size and heads were given */
    sc_transformer model; /* valid if has_model; named after the file */
    int64_t world, nodes, per_node; /* processes; 0: not known */
    const char *starter;            /* the file that gives them; NULL */
    sc_origin unset; /* a missing number that only a run determines: key
                        "--nnodes", text "$NNODES"; text NULL: none */
    uint32_t n_origins, n_model_origins;
    sc_origin *origins;       /* [n_origins] of fields of the job */
    sc_origin *model_origins; /* [n_model_origins] of fields of the model */
    uint32_t n_warnings, n_assumptions, n_env;
    const char **warnings;    /* [n_warnings] "train.sh:14:5: ..." */
    const char **assumptions; /* [n_assumptions] values the files lack */
    const char *vocabulary;   /* the assumed vocabulary; NULL: none was */
    const char **env; /* [n_env] "NCCL_ALGO=Ring" as the script sets them */
} sc_import;

/* Formats of files, which are recognised by their content. */
typedef enum sc_import_format {
    SC_IMPORT_MEGATRON, /* a launch script, options, or a table of arguments */
    SC_IMPORT_DEEPSPEED,
    SC_IMPORT_TORCHTITAN,
    SC_IMPORT_ACCELERATE,
    SC_IMPORT_TRAINER, /* of HuggingFace */
    SC_IMPORT_NEMO,
    SC_IMPORT_BRIDGE, /* Megatron-Bridge */
    SC_IMPORT_N_READ, /* those before it are read by sc_import_read() */
    /* Formats that have another reader, or none: */
    SC_IMPORT_JOB = SC_IMPORT_N_READ, /* a file of --config, or a result */
    SC_IMPORT_MODEL,                  /* model.yml */
    SC_IMPORT_HF_CONFIG,              /* config.json of HuggingFace */
    SC_IMPORT_EXECUTION_TRACE,        /* of PyTorch */
    SC_IMPORT_STRATEGY,
    SC_IMPORT_CLUSTER,
    SC_IMPORT_KINETO, /* a profiler's trace */
    SC_IMPORT_UNKNOWN
} sc_import_format;

/* Recognises a format from the first bytes of a file, or all of it. */
sc_import_format sc_import_recognise(const char *text, size_t len);
/* The format's name for people: "a DeepSpeed configuration"; NULL: unknown. */
const char *sc_import_format_name(sc_import_format f);
/* The option that takes a file of this format: "--from"; NULL: none does. */
const char *sc_import_format_option(sc_import_format f);

typedef struct sc_import_file {
    const char *name, *text;
    size_t len;
    sc_import_format format;
} sc_import_file;

/* Reads `n` files that describe one run.  Sets the fields of `inout` that are
 * not given yet (0 or SC_INFER), including those that a program's default
 * decides.  An explicit value replaces another file's default; two different
 * explicit values are SC_C_CONFLICT.  `define` as of sc_megatron_read().
 * Everything lives in `a`.  All errors of a file are reported in one pass with
 * their places; then nothing is written. */
sc_status sc_import_read(const sc_import_file *file, uint32_t n,
                         const char *const *define, sc_arena *a, sc_job *inout,
                         sc_import *out, sc_err *err);

/* ---- Megatron-LM ------------------------------------------------------------ */

/* Reads the options that a shell script (or a bare list of options, or the
 * table of arguments at the start of a training log) passes to
 * Megatron-LM or Megatron-DeepSpeed.  Nothing is executed.  Variables that
 * only an environment sets and the output of commands are not known; an option
 * that needs one is an error that names it.  `define`: variables that are set
 * before the script starts, "NAME=value", NULL ends; may be NULL.
 *
 * Fills the fields of `inout` that are not given yet (0 or SC_INFER), also
 * those that the program's defaults decide; data parallelism where the number
 * of processes is known.  Everything lives in `a`.  Errors, all of the options
 * in one pass, located: SC_C_SYNTAX of the script, SC_C_MISSING, SC_C_TYPE,
 * SC_C_RANGE, SC_C_UNKNOWN_KEY (a misspelt option), SC_C_UNKNOWN_NAME,
 * SC_C_CONFLICT, SC_C_DIVIDE, SC_C_UNSUPPORTED. */
sc_status sc_megatron_read(const char *text, size_t len, const char *file,
                           const char *const *define, sc_arena *a,
                           sc_job *inout, sc_import *out, sc_err *err);

/* Appends `job` as a file for `predict --config`, each value with its origin as
 * a comment.  Fields without a value are left out.  `model` is written as the
 * model if the job names none (the file that sc_import_model_yaml() was written
 * to); NULL: left out.  `m` may be NULL. */
void sc_job_yaml(const sc_job *job, const sc_import *m, const char *model,
                 sc_text *out);

/* Appends sizes as a model.yml; 0 is left out. */
void sc_transformer_yaml(const sc_transformer *t, sc_text *out);

/* Appends the model as a model.yml. */
void sc_import_model_yaml(const sc_import *m, sc_text *out);

/* ---- logs ---------------------------------------------------------------------- */

typedef enum sc_trainlog_kind {
    SC_TRAINLOG_MEGATRON,
    SC_TRAINLOG_TORCHTITAN,
    SC_TRAINLOG_NEMO,
    SC_TRAINLOG_NANOTRON,
    SC_TRAINLOG_DEEPSPEED, /* of its pipeline engine */
    SC_TRAINLOG_TRAINER    /* of HuggingFace: the summary at its end */
} sc_trainlog_kind;

/* The steady steps of a log; NaN or 0: the log does not contain the value. */
typedef struct sc_trainlog {
    sc_trainlog_kind kind;
    double step_time_s;             /* median of the steady steps */
    double spread_s;                /* half the distance of their quartiles */
    double tokens_per_s_per_device; /* median; torchtitan prints only this */
    double tflops_per_device;       /* median, as printed */
    double memory_bytes;            /* largest */
    int64_t global_batch;           /* of the last line */
    uint32_t n_lines;               /* lines with a measurement */
    uint32_t n_used;                /* of these, steady */
    uint32_t n_warmup, n_outliers;  /* dropped */
    uint32_t n_torn;                /* lines whose numbers are not whole */
    sc_pos first, last;             /* lines used */
} sc_trainlog;

/* Reads a log of one of these programs; other lines are skipped.  A step
 * that several ranks print counts once.  The first steps are dropped (up to 3,
 * at most a third), and so are steps that differ from the median of the rest by
 * more than a factor of 1.5: evaluation, checkpoints, profiling.  Lines whose
 * measurement is no positive number (torn by other output, or cut at the end of
 * the log) are dropped if there are complete ones.  Errors: SC_C_MISSING if no
 * line has a measurement; SC_C_TYPE, SC_C_RANGE or SC_C_UNIT at each line if
 * all are incomplete. */
sc_status sc_trainlog_read(const char *text, size_t len, const char *file,
                           sc_arena *a, sc_trainlog *out, sc_err *err);

/* The step time in seconds of a log that prints only tokens per second, for a
 * run of `tokens` per step on `devices`; step_time_s where it is known. */
double sc_trainlog_step_s(const sc_trainlog *log, double tokens,
                          double devices);
#endif
