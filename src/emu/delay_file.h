/* SPDX-License-Identifier: Apache-2.0 */
/*
 * delay_file.h - measured or stated times of operations, as curves over bytes.
 * docs/emulate/delay.md describes formats and rules.
 *
 * Units: bytes, seconds.
 */
#ifndef EMU_DELAY_FILE_H
#define EMU_DELAY_FILE_H

#include "emu/delay.h"

/* A value over bytes.  It is linear on logarithmic axes between points, and
 * linear on plain axes before the first and after the last.  It never falls. */
typedef struct delay_curve {
    uint32_t n;
    const double *bytes, *value; /* [n] in increasing order */
    double head, tail;           /* slope per byte before the first point and
                                    after the last */
} delay_curve;

/* An operation over this many ranks; 0: its time does not depend on them. */
typedef struct delay_rows {
    uint32_t ranks;
    delay_curve time, cpu; /* cpu.n 0: the file has no CPU time */
} delay_rows;

typedef struct delay_op_rows {
    delay_rows *at; /* [n] by increasing number of ranks */
    uint32_t n;
} delay_op_rows;

typedef struct delay_file {
    const char *name;
    bool table;                   /* rows come from lines of a table */
    delay_op_rows op[SC_N_COLLS]; /* n 0: not in the file */
    delay_op_rows other;          /* for all operations that the file does not
                                     name */
} delay_file;

/* Read a file; report all its errors, with their positions, in one pass.
 * `ranks`: the number of ranks of logs that do not name it; 0: not given. */
sc_status delay_table_read(const char *text, size_t len, const char *file,
                           uint32_t ranks, sc_arena *a, delay_file *out,
                           sc_err *err);
sc_status delay_alpha_beta_read(const char *text, size_t len, const char *file,
                                sc_arena *a, delay_file *out, sc_err *err);

/* ---- rows of a table, before they are curves */

#define DELAY_MAX_US    1e12
#define DELAY_MAX_BYTES 1e18

typedef struct delay_row {
    uint32_t op, ranks;
    double bytes, time, cpu; /* seconds; cpu < 0: not given */
} delay_row;

/* Whether a text is a log of OSU, IMB, NetPIPE or nccl-tests. */
bool delay_log_is(const char *text, size_t len);
/* Its rows, [*n] in `a`, in the order of the log; at least one. */
sc_status delay_log_read(const char *text, size_t len, const char *file,
                         uint32_t ranks, sc_arena *a, delay_row **out,
                         uint32_t *n, sc_err *err);

/* ---- curves */

double delay_curve_at(const delay_curve *c, double bytes);

/* The rows that are used for an operation over `n` ranks, and the factors for
 * their time at 0 bytes and for the rest. */
typedef struct delay_fit {
    const delay_rows *rows;
    double latency, work;
    uint32_t hops; /* sequential hops of its ring or tree */
} delay_fit;

/* SC_C_MISSING if the file has no rows that can be used for the operation. */
sc_status delay_file_fit(const delay_file *f, sc_coll coll, uint32_t n,
                         delay_fit *out, sc_err *err);

#endif
