/* SPDX-License-Identifier: Apache-2.0 */
/* replay.h - what the files of `stepcast replay` share. */
#ifndef CLI_REPLAY_H
#define CLI_REPLAY_H

#include "cli/cli.h"
#include "replay/replay.h"

typedef struct replay_opts {
    const char *steps, *pattern, *trace, *device, *cluster, *chakra;
    int64_t ranks;
    double batch;
    const char **scales, **against;
    bool predict_kernels, drop_straggler, cuda_graphs, fuse, overlap, no_sync,
        findings;
} replay_opts;

/* Traces that are replayed together. */
typedef struct replay_set {
    const sc_profiled **m; /* [n] */
    uint32_t n;
    sc_replay_model *model;
} replay_set;

typedef struct replay_run {
    sc_replay_steps steps;
    sc_replay_change change;
    const char **name; /* [n_names] changes as options */
    uint32_t n_names;
    replay_set set;
    uint64_t n_events;
    sc_text warnings, assumptions;
} replay_run;

#endif
