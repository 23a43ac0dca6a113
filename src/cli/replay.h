/* SPDX-License-Identifier: Apache-2.0 */
/* replay.h - what the files of `stepcast replay` share. */
#ifndef CLI_REPLAY_H
#define CLI_REPLAY_H

#include "cli/cli.h"
#include "replay/replay.h"

typedef struct replay_opts {
    const char *steps, *pattern, *trace, *device, *cluster, *chakra, *times;
    int64_t ranks;
    double batch;
    const char **scales, **against, **hosts;
    bool predict_kernels, drop_straggler, cuda_graphs, fuse, overlap, no_sync,
        findings;
} replay_opts;

/* Traces that are replayed together. */
typedef struct replay_set {
    const sc_profiled *const *m; /* [n] */
    uint32_t n;
    uint64_t n_events; /* of the files */
    sc_replay_model *model;
} replay_set;

typedef struct replay_run {
    sc_replay_steps steps;
    sc_replay_change change;
    const char **name; /* [n_names] changes as options */
    uint32_t n_names;
    replay_set set;
    sc_text warnings, assumptions;
} replay_run;

/* Reads `n` files of ranks and prepares them. The rank of a file is what it
 * states, or where `pattern` (NULL: none) has {rank} in its name. Execution traces
 * among the files are added to the profile of their rank; without one they are
 * an error. */
sc_status cli_replay_load(cli *c, const char *pattern,
                          const sc_replay_steps *steps,
                          const char *const *files, uint32_t n,
                          sc_text *warnings, sc_text *assumptions,
                          replay_set *out);

/* How many files of a list that NULL ends are a trace and the execution traces
 * behind it. */
uint32_t cli_replay_job(const char *const *files);

/* An error at the value of an option. */
sc_status cli_replay_bad(const cli *c, const char *flag, const char *value,
                         const char *hint, const char *what);

/* Reads the changes of durations and of the order, and lists them as the user would
 * write them. */
sc_status cli_replay_changes(cli *c, const replay_opts *o, replay_run *r);
/* Reads the device, machine, host and job of the replay; the traces are loaded. */
sc_status cli_replay_machines(cli *c, const replay_opts *o, replay_run *r);

/* Whether a device ran kernels. */
bool cli_has_kernels(const sc_profiled *m);

/* Reads a number at the begin of a text; `*end` is behind it. */
bool cli_whole(const char *text, char **end, uint32_t *out);

#endif
