/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel_table.h - reads tables of measured kernels and collectives: the
 * columns of data/aiconfigurator, of NeuSight's and of Vidur's data sets
 * (data/validation/README.md, "Kernels").
 *
 * A row becomes the kernels that were inside the timed region, in the order in
 * which they run, or one collective.
 */
#ifndef CALIB_KERNEL_TABLE_H
#define CALIB_KERNEL_TABLE_H

#include "cost/cost.h"

typedef enum calib_kernel_table {
    CALIB_T_GEMM,
    CALIB_T_ATTENTION,
    CALIB_T_MLA,
    CALIB_T_MOE,
    CALIB_T_QUANT,
    CALIB_T_COMM,
    CALIB_T_DEEPEP,
    CALIB_T_OPERATOR, /* NeuSight: one operator of PyTorch in fp32 */
    CALIB_T_LAYER,    /* Vidur: the operators of a transformer layer */
    CALIB_T_VIDUR_COLL,
    CALIB_T_NETWORK, /* the operators of whole networks in PyTorch */
    CALIB_N_KERNEL_TABLES
} calib_kernel_table;

/* How kernels were launched while they were timed. */
typedef enum calib_launch {
    CALIB_LAUNCH_GRAPH,  /* a captured graph, or the kernel's own duration */
    CALIB_LAUNCH_EAGER,  /* by the host, between two events of the stream */
    CALIB_LAUNCH_PROGRAM /* many kernels, by a layer of a program */
} calib_launch;

/* One collective, or one dispatch of tokens to experts and back. */
typedef struct calib_kernel_coll {
    const sc_hw *hw;
    sc_place at;
    sc_coll coll;
    double bytes;    /* nccl-tests' V */
    uint32_t hidden; /* of tokens that are dispatched; 0: a collective */
    bool dedup;      /* a token is sent once per rank, not per expert */
    uint32_t sms;    /* that the kernel may use; 0: not stated */
} calib_kernel_coll;

#define CALIB_KERNEL_WARNINGS 4

typedef struct calib_kernel_row {
    sc_pos pos;
    const char *id; /* "gemm.csv:2", "mlp.csv.gz:2:add" */
    calib_kernel_table table;
    const char *operation;        /* "gemm", "quantize", "nccl all_reduce" */
    const char *device_text;      /* as in the table */
    const sc_device *device;      /* the nearest known; never NULL */
    const char *software, *dtype; /* as in the table */
    uint32_t n_warnings;
    const char *warning[CALIB_KERNEL_WARNINGS];
    const char *reason; /* why it can't be predicted; NULL: it can */
    calib_launch launch;
    double seconds;      /* measured */
    double cast_seconds; /* of the casts alone, part[1] on; NaN: not measured */
    uint32_t waits;      /* of the host for the device, between kernels */
    uint32_t n_parts;
    const sc_kernel *part;         /* [n_parts] */
    const double *times;           /* [n_parts] each runs; NULL: once */
    const calib_kernel_coll *coll; /* n_parts is 0; NULL: kernels */
} calib_kernel_row;

/* True if the header is that of a table of kernels or of their collectives. */
bool calib_kernel_is_table(const sc_csv *t);

/* Reads all rows, in order, [n] in the arena; a row of a layer becomes one row
 * per operator.  Unknown devices, precisions and programs are replaced by the
 * nearest known ones, with a warning.  Errors: cells that are no number or out
 * of range, all in one pass. */
sc_status calib_kernel_rows_read(const sc_csv *t, sc_arena *a,
                                 calib_kernel_row **out, uint32_t *n,
                                 sc_err *err);

/* Predicted seconds of a row without a reason; NaN if its collective can't run
 * there. */
double calib_kernel_predict(const calib_kernel_row *r, const sc_cost *c);

/* Expected number of token-expert pairs on the most loaded of `ep` ranks, over
 * the mean of all ranks, if the loads of `experts` experts follow a power law
 * with exponent `alpha`, and the largest load is `most` times the least. */
double calib_kernel_skew(double alpha, double most, double experts, double ep);

#endif
