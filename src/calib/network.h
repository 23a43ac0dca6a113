/* SPDX-License-Identifier: Apache-2.0 */
/*
 * network.h - rows of a network table as collectives on machines.
 */
#ifndef CALIB_NETWORK_H
#define CALIB_NETWORK_H

#include "calib/calib.h"

/* How the measuring program affects the time of a collective. */
typedef enum network_harness {
    NETWORK_NONE, /* one process per device, loops inside a stream */
    NETWORK_BENCH,
    NETWORK_HOST /* one process drives all devices */
} network_harness;

/* The reason why a row is not used. */
typedef enum network_skip {
    NETWORK_USED,
    NETWORK_SKIP_COLLECTIVE,
    NETWORK_SKIP_DEVICE,
    NETWORK_SKIP_NIC,
    NETWORK_SKIP_LINK,
    NETWORK_SKIP_NUMBERS,
    NETWORK_SKIP_PLACE,
    NETWORK_N_SKIPS
} network_skip;

extern const char *const network_skip_names[NETWORK_N_SKIPS];

typedef struct network_row {
    const sc_hw *hw;
    sc_place at;
    sc_coll coll;
    int algorithm; /* -1: the cheapest */
    network_harness harness;
    double bytes, seconds; /* measured */
    uint32_t group, line;
} network_row;

typedef struct network_group {
    const char *gpu, *source;
    uint32_t ranks, nodes, n;
    sc_coll coll;
} network_group;

/* Arrays live in the arena. */
typedef struct network_rows {
    uint32_t n, n_groups, n_table;
    network_row *row;
    network_group *group;
    uint32_t skipped[NETWORK_N_SKIPS];
} network_rows;

/* The place of the first devices of each of `nodes` nodes; no other device
 * communicates. */
sc_place network_place(const sc_hw *hw, uint32_t ranks, uint32_t nodes);

sc_status network_read(const sc_csv *table, const sc_cost *c, sc_arena *a,
                       network_rows *out, sc_err *err);

/* Only reports errors in cells. */
sc_status network_check(const sc_csv *table, sc_err *err);

/* The predicted seconds, including the time that the measuring program adds. */
double network_predict(const network_row *r, const sc_cost *c);

/* Fits the free `network` parameters to rows; `report` may be NULL. */
sc_status network_fit(network_rows *rows, sc_cost *inout, sc_fit_result *out,
                      sc_text *report, sc_arena *a, sc_err *err);

#endif
