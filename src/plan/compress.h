/* SPDX-License-Identifier: Apache-2.0 */
/* compress.h - gradients that an exchange sends in another format. */
#ifndef PLAN_COMPRESS_H
#define PLAN_COMPRESS_H

#include "plan/plan.h"

typedef struct compress_by {
    const sc_cost *cost;
    const sc_device *device;
    sc_compress format;
    double value_bytes; /* bytes per element that is not compressed */
    bool flat;    /* copied to a flat buffer, divided there, and copied back */
    sc_text *why; /* recorder of prices, or NULL */
} compress_by;

/* A weight on one rank: its product has `rows` outputs and sums over `cols`. */
typedef struct compress_matrix {
    double rows, cols, count;
} compress_matrix;

typedef struct compress_wire {
    sc_coll coll;
    double bytes;    /* V */
    double pack_s;   /* kernels that copy, compress and decompress */
    double residual; /* bytes of dropped values, kept for the next step */
} compress_wire;

/* An exchange `coll` of `local` elements of a matrix between `ranks`. */
compress_wire compress_gradient(const compress_by *by, const compress_matrix *m,
                                sc_coll coll, double local, double ranks);

#endif
