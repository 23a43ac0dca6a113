/* SPDX-License-Identifier: Apache-2.0 */
/*
 * coll_nccltests.h - logs of nccl-tests as measurements of collectives.  See
 * docs/inputs.md.
 *
 * Units: bytes, seconds.
 */
#ifndef SC_COLL_NCCLTESTS_H
#define SC_COLL_NCCLTESTS_H

#include "coll/coll.h"

typedef struct sc_nccl_row {
    sc_coll coll;
    double bytes;      /* V, the column "size" */
    double time_s;     /* out of place; in place where only that was measured */
    double in_place_s; /* NaN: not measured */
    double algbw, busbw; /* bytes/s, of time_s, as printed */
    uint32_t ranks, nodes;
    const char *device; /* "NVIDIA H100 80GB HBM3" */
    const char *type;   /* "float" */
    uint32_t table;     /* number of the test in the log, from 0 */
    sc_pos pos;
} sc_nccl_row;

/* Values that a log does not contain. -1, 0 or NULL: taken from the log. */
typedef struct sc_nccl_opts {
    int coll; /* sc_coll */
    uint32_t ranks, nodes;
    const char *device;
} sc_nccl_opts;

typedef struct sc_nccl_log {
    uint32_t n_rows, n_tables, n_skipped, n_warnings;
    sc_nccl_row *rows;     /* [n_rows] */
    const char **warnings; /* [n_warnings] "all_reduce.log:14:1: ..." */
} sc_nccl_log;

/* Reads what nccl-tests (or rccl-tests) printed, or its JSON file (-J), with
 * what launchers and NCCL write between the lines.  Several tests may follow
 * each other.  The collective is the one that the log names, else the one in
 * the file's name, else the only one that the columns allow.  Rows of no
 * bytes, with wrong results or torn apart by other output are skipped and
 * counted.  `o` may be NULL; everything lives in `a`.  Errors, all in one
 * pass: SC_C_MISSING (no result rows; ranks, device or collective that the
 * log does not tell), SC_C_TYPE, SC_C_RANGE, SC_C_CONFLICT (bandwidths that
 * don't belong to the number of ranks; a test that ran without MPI),
 * SC_C_UNSUPPORTED (several kinds of devices). */
sc_status sc_nccl_tests_read(const char *text, size_t len, const char *file,
                             const sc_nccl_opts *o, sc_arena *a,
                             sc_nccl_log *out, sc_err *err);

#endif
