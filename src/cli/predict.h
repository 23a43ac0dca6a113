/* SPDX-License-Identifier: Apache-2.0 */
/* predict.h - declarations that the commands with predictions share. */
#ifndef CLI_PREDICT_H
#define CLI_PREDICT_H

#include "cli/cli.h"
#include "import/import.h"
#include "report/report.h"

/* The traces that --emit-chakra wrote. */
typedef struct cli_emitted {
    const char *dir, *name; /* files are dir/name.<rank>.et ... */
    uint32_t ranks, classes, groups;
    uint64_t tasks;    /* of all ranks */
    const char *notes; /* lines: properties that the machine's files lack */
} cli_emitted;

typedef struct predict_opts {
    const char *measured, *against, *trace, *emit, *profile, *megatron;
    const char **from;   /* NULL ends; NULL: none */
    const char **emits;  /* FORMAT DIR ...; NULL ends; NULL: none */
    const char **anchor; /* TIME|LOG[=JOB.yml]; NULL ends; NULL: none */
    const char *runs_of; /* the option that gives them; NULL: --anchor */
    bool why, explain;
    const sc_import *import;    /* of --from and --megatron; NULL: none */
    const sc_model *model;      /* from these files; NULL: the job names one */
    const cli_emitted *emitted; /* NULL: nothing */
    struct cli_emits *written;  /* by cli_emit_files() */
    struct sc_against *beside;  /* the trace of --against; NULL: none */
} predict_opts;

sc_status cli_predict_run(cli *c, const sc_job *job, const predict_opts *o,
                          sc_prediction *p);

/* Reads the job that `option` of predict ("--config") gives with this file, and
 * the files that it names. Options that are given in `over`, sets of
 * sc_job_keys and cli_predict_keys, replace those of the file; NULL: none. `own`
 * is a copy of the command's cli, which gets the contents of the file. */
sc_status cli_predict_job(cli *own, const char *option, const char *file,
                          const sc_opt_set over[2], sc_job *job,
                          predict_opts *o);

/* Loads the inputs of a job; `model` is from other programs' files or NULL. */
sc_status cli_predict_load(cli *c, const sc_job *job, const sc_model *model,
                           sc_inputs *in);

/* Moves the parameters of `in` by the runs of --anchor, which are of `job` or
 * of their own files. */
sc_status cli_anchors(cli *c, const sc_job *job, const predict_opts *o,
                      sc_inputs *in);

/* Adds the contents of a file that an option names to in[*n], if it is a
 * file. */
sc_status cli_add_input(cli *c, const char *option, const char *file,
                        sc_report_input *in, uint32_t *n);

/* Traces to write for every rank, and their place. */
typedef struct cli_traces {
    const char *flag, *dir; /* "--record", the folder; created if needed */
    const char *name;       /* of the files; invalid characters are replaced */
    const char *hint;       /* how to write fewer files */
    bool live; /* of a live program, for replay (sc_emu_trace_write()) */
    const sc_hw *hw;
    sc_precision precision;
    const sc_workload *workload;
    double remote_bw, remote_latency_s; /* of its copies, as sc_trace_machine */
} cli_traces;

/* Whether traces of `n` ranks can be written; `workload` is not read. */
sc_status cli_chakra_check(cli *c, const cli_traces *t, uint32_t n);
sc_status cli_chakra_write(cli *c, const cli_traces *t, cli_emitted *out);

/* Writes the step of `p` into folder `dir`, and creates the folder if
 * needed. */
sc_status cli_chakra(cli *c, const char *dir, const sc_prediction *p,
                     cli_emitted *out);
void cli_chakra_text(const cli_emitted *e, sc_text *out);
/* Writes a member of a JSON object. */
void cli_chakra_json(const cli_emitted *e, sc_arena *a, sc_json *out);

/* --emit: checks the names of formats; chakra becomes --emit-chakra. */
sc_status cli_emit_formats(cli *c, predict_opts *o);
/* Writes the job in each of them. */
sc_status cli_emit_files(cli *c, const sc_job *job, const sc_prediction *p,
                         predict_opts *o);
void cli_emit_files_text(const predict_opts *o, sc_text *out);
/* Writes a member of a JSON object. */
void cli_emit_files_json(const predict_opts *o, sc_json *out);

/* Reads the files of --from and --megatron, if any. Fills what `job` leaves
 * open, and the script and model in `o`. `set` is that of the job. */
sc_status cli_import(cli *c, const sc_opt_set *set, sc_job *job,
                     predict_opts *o);

/* --dump-config: writes the job with every choice and its origin, if model
 * and cluster are given. `sets` are those of the job and of
 * cli_predict_keys. With -o, a model from other programs' files is written
 * to a second file. */
sc_status cli_predict_dump(cli *c, const sc_opt_set sets[2], const sc_job *job,
                           const predict_opts *o);

/* Whether argv[i] names a cluster, which takes *width words, and how many do. */
bool cli_is_cluster(int argc, char *const *argv, int i, int *width);
uint32_t cli_count_clusters(int argc, char *const *argv);

/* The value of --measured. */
typedef struct cli_measured {
    double step_s; /* NaN: nothing was measured */
    double memory; /* bytes; NaN */
    bool from_log; /* `log` is valid */
    sc_trainlog log;
} cli_measured;

/* `text`, the value of option `flag`, is a time or names a log; NULL: nothing
 * measured. */
sc_status cli_measured_read(cli *c, const char *flag, const char *text,
                            cli_measured *out);

/* If a log prints only tokens per second, computes its step time from the
 * run. */
void cli_measured_settle(const cli *c, const sc_prediction *p, cli_measured *m);

/* Appends the gap and its possible causes, as text or as members of a JSON
 * object. */
sc_status cli_measured_text(cli *c, const cli_measured *m,
                            const sc_prediction *p, sc_text *out);
sc_status cli_measured_json(cli *c, const cli_measured *m,
                            const sc_prediction *p, sc_json *out);

/* --against: reads the trace and adds up what both have; NULL without it. */
sc_status cli_against_read(cli *c, const predict_opts *o,
                           const sc_prediction *p, struct sc_against **out);

#endif
