/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace.h - execution traces in and out: Chakra ET (binary, plain or
 * compressed by gzip or zstd) and its JSON form.
 */
#ifndef SC_TRACE_H
#define SC_TRACE_H

#include "graph/graph_workload.h"

typedef struct sc_trace_opts {
    bool names;                  /* keep names of nodes */
    bool tensors;                /* keep what nodes read and write */
    bool ids;                    /* ranks of a class have equal ids, too, and
                                    names where they are kept */
    bool zero_is_world;          /* group "0" is all ranks even where the
                                    groups below say otherwise; without a group
                                    of that name it always is */
    bool sparse;                 /* a rank without a file is idle */
    bool micros;                 /* durations as duration_micros has them,
                                    not as duration_ps */
    uint32_t n_groups;           /* of a communicator-group file */
    const sc_rank_group *groups; /* ranks relative to the job's first */
    sc_text *warnings;           /* receives lines; NULL: not wanted */
} sc_trace_opts;

/* How many ranks have a file, counted from 0 up to the first that has none. */
uint32_t sc_trace_ranks(const char *prefix);
/* Whether that rank has a file. */
bool sc_trace_exists(const char *prefix, uint32_t rank);

/* PREFIX.<rank>.et (.et.gz, .et.zst, .json) for rank 0 .. n_ranks - 1, folded
 * into classes.  Every file is parsed once, nothing is kept of a file whose
 * class is known.  Errors: missing file of a rank, malformed bytes (byte
 * offset), ids that occur twice, dependencies on missing nodes, cycles,
 * groups that no file defines, ranks out of range. */
sc_status sc_trace_read(const char *prefix, uint32_t n_ranks,
                        const sc_trace_opts *o, sc_arena *a, sc_workload *out,
                        sc_err *err);

/* One file in memory as a workload of one rank (fuzzing, custom
 * collectives): groups are not resolved, each name is a group without
 * members. */
sc_status sc_trace_read_one(const void *data, size_t len, const char *file,
                            const sc_trace_opts *o, sc_arena *a,
                            sc_workload *out, sc_err *err);

/* Jobs side by side: ranks, groups and classes of each shifted behind those
 * of the jobs before. */
sc_status sc_workload_join(const sc_workload *jobs, uint32_t n, sc_arena *a,
                           sc_workload *out, sc_err *err);

/* `n` idle ranks between jobs. */
sc_status sc_workload_idle(uint32_t n, sc_arena *a, sc_workload *out,
                           sc_err *err);

/* Hash of the tasks, groups and peers of all ranks, but not of names and ids. */
uint64_t sc_workload_hash(const sc_workload *w);

/* Writes PREFIX.<rank>.et for every rank, and PREFIX.json with the groups if
 * there are any.  What is written reads back as an equal workload. */
sc_status sc_trace_write(const sc_workload *w, const char *prefix, sc_err *err);
#endif
