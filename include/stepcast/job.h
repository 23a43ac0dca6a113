/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job.h - the options of a command, set one by one.
 *
 * A job holds the options and words of one command of the program.  Names and
 * values of options are those of the command line, so a new option of the
 * program needs no new function:
 *
 *   stepcast predict --model llama3-70b --cluster dgx-h100:16 --tp 8 --no-sp
 *
 *   stepcast_job *job = stepcast_job_new("predict");
 *   stepcast_job_set(job, "model", "llama3-70b", NULL);
 *   stepcast_job_set(job, "cluster", "dgx-h100:16", NULL);
 *   stepcast_job_set(job, "tp", "8", NULL);
 *   stepcast_job_set(job, "sp", "false", NULL);
 *   stepcast_job_run(job, &document, errors);
 */
#ifndef STEPCAST_JOB_H
#define STEPCAST_JOB_H

#include <stepcast/stepcast.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct stepcast_job stepcast_job;

/* A job of the command "predict", "search", "simulate", "replay", "coll", "shard",
 * "validate", "calibrate", "list" or "show".  NULL: there is no such command, or out
 * of memory. */
STEPCAST_API stepcast_job *stepcast_job_new(const char *command);
STEPCAST_API void stepcast_job_free(stepcast_job *job);

/* Sets an option: "tp" or "--tp" to the text "8".  Options without a value take
 * "true" or "false".  A value takes the place of an earlier one; an option that
 * may be given several times ("workload", stepcast_option.repeated) has them
 * all.  Both texts are copied.
 *
 * STEPCAST_USAGE: no such option, or a value it can't have.  The job remembers
 * that: stepcast_job_run() then fails with the same errors, so that a program
 * may check there alone. */
STEPCAST_API stepcast_status stepcast_job_set(stepcast_job *job,
                                              const char *option,
                                              const char *value,
                                              stepcast_errors *errors);

/* Adds a word that is not an option: the collective of "coll" ("all_reduce"),
 * the names for "list" or "show", a table of "validate", a trace of "replay".
 * Copies the word. */
STEPCAST_API stepcast_status stepcast_job_add(stepcast_job *job,
                                              const char *word,
                                              stepcast_errors *errors);

/* Finds the answer.  A job can run again, also after more options were set.
 *
 * STEPCAST_OK, or STEPCAST_NO where the answer is no (the step does not fit
 * into memory): `*out` is a document that the caller owns.  Otherwise there is
 * none, and `errors` says why. */
STEPCAST_API stepcast_status stepcast_job_run(const stepcast_job *job,
                                              stepcast_document **out,
                                              stepcast_errors *errors);

/* An option of a command. */
typedef struct stepcast_option {
    size_t size;
    const char *name;    /* "micro-batch" */
    const char *value;   /* what it takes: "N", "FILE", "auto|ring|tree"; NULL:
                          true or false */
    const char *unit;    /* "time", "data rate"; NULL: none */
    const char *initial; /* value if it is not set; NULL: none, or inferred */
    const char *help;    /* one line */
    int repeated;        /* it may be set several times */
} stepcast_option;

/* Option `i`, counted from 0, of a command.  All texts are static but `value`,
 * which is cut to what `buffer` holds; `buffer` is the caller's.  STEPCAST_NO
 * behind the last one; STEPCAST_USAGE: no such command. */
STEPCAST_API stepcast_status stepcast_job_option(const char *command,
                                                 uint32_t i,
                                                 stepcast_option *out,
                                                 char *buffer,
                                                 size_t buffer_size);

#ifdef __cplusplus
}
#endif
#endif
