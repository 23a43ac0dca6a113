/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nccltests.h - one test of a log of nccl-tests while it is read.
 */
#ifndef COLL_NCCLTESTS_H
#define COLL_NCCLTESTS_H

#include "base/logline.h"
#include "coll/coll_nccltests.h"

#define NCCL_COLUMNS 32

typedef struct nccl_test {
    bool begun;       /* at least one line of it was read */
    bool rows;        /* a row was read */
    bool header;      /* its "# nThread" was read */
    int coll;         /* sc_coll; -1: not named */
    bool other;       /* a collective that is not modelled */
    uint32_t n_lines; /* of devices */
    uint32_t n_rank0; /* of these, rank 0 */
    uint32_t max_rank;
    uint32_t n_hosts, cap_hosts;
    const char **hosts; /* distinct */
    const char *device;
    bool mixed;
    sc_pos at;       /* of its first device line */
    sc_pos reported; /* line > 0: the error about its unknown ranks was
                        reported */
} nccl_test;

typedef struct nccl_reader {
    const char *text, *file;
    size_t len;
    const sc_nccl_opts *o;
    sc_arena *a;
    sc_err *err;
    sc_status status;
    nccl_test test;
    int mentioned; /* the last collective named outside of a test; -1 */
    uint32_t tables, lines;
    /* of the table's header: */
    uint32_t n_cols;
    int redop, root;
    bool cpu; /* "cputime" instead of "time" (-C) */
    int time[2], algbw[2], busbw[2], wrong[2]; /* -1: no such column */
    sc_nccl_log out;
    sc_pos skipped_at;   /* the first row that was skipped ... */
    const char *skipped; /* ... and why */
    uint32_t cap_rows, cap_warnings;
} nccl_reader;

/* A result whose test is not known yet. */
typedef struct nccl_result {
    double bytes;
    double time[2], algbw[2], busbw[2]; /* us, GB/s; NaN: not measured */
    double wrong;                       /* the larger of both; NaN: not
                                           checked */
    const char *type;
    bool cpu[2];         /* `time` is the CPU's time to start it (-C) */
    int reduces, rooted; /* 1: yes, 0: no, -1: the columns do not show it */
    sc_pos pos;
} nccl_result;

void nccl_error(nccl_reader *r, sc_code code, sc_pos pos, const char *hint,
                const char *fmt, ...) SC_PRINTF(5, 6);
sc_status nccl_warn(nccl_reader *r, sc_pos pos, const char *what);
/* Counts a row that is not used. Reports the reason, except of rows that
 * nccl-tests always prints (`quiet`). */
sc_status nccl_skip(nccl_reader *r, sc_pos pos, const char *why, bool quiet);

void nccl_begin_test(nccl_reader *r);
/* The collective of a program's name ("./build/all_reduce_perf"). -1: the name
 * contains none; -2: it is not modelled. */
int nccl_program(const char *s, size_t n);
void nccl_name_test(nccl_reader *r, int program);
sc_status nccl_device(nccl_reader *r, uint32_t rank, const char *host,
                      const char *device, sc_pos pos);
sc_status nccl_add(nccl_reader *r, const nccl_result *v);

sc_status nccl_read_json(nccl_reader *r);

#endif
