/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cost_lookup.h - look-ups in embedding tables: the rows that they read, and
 * the fraction of these reads that a cache serves.
 *
 * The order of look-ups is random: either each look-up draws its row
 * independently (uniform, Zipf), or a histogram states how often each row
 * occurs in a batch and all orders are equally likely.  The cache evicts the
 * row that was not used for the longest time, and is empty at the start,
 * because other kernels use it between two passes.
 *
 * Within a window of t look-ups a row occurs with a known probability.  The
 * number of different rows in the window, which is concentrated around its
 * mean, equals the cache's size for one t, and a look-up hits if its row occurs
 * in the t look-ups before (Che, Tung and Wang, IEEE JSAC 20 (2002); Fagin,
 * JCSS 14 (1977)).  The first t look-ups of a batch see only those before them.
 */
#ifndef COST_LOOKUP_H
#define COST_LOOKUP_H

#include "model/model_access.h"

/* Look-ups of one batch in one table, or in the part of it on one device. */
typedef struct sc_lookups {
    const sc_access *access; /* of the whole table; NULL: uniform */
    double rows;             /* of the whole table */
    double parts;     /* equal parts of the rows, of which one is read; at
                                least 1 */
    double count;     /* look-ups of all parts */
    double row_bytes; /* that are read of each row */
} sc_lookups;

/* Rows with equal probabilities. */
typedef struct sc_row_group {
    double rows, weight; /* fraction of all look-ups; sum 1 */
    double decay;        /* a window misses the row with exp(-decay x), */
    double own;          /* before a look-up of the row with exp(-own x); */
    double rate;         /* look-ups of the row per look-up */
} sc_row_group;

#define SC_ROW_GROUPS 80

/* The same look-ups as a law of their rows.  The length x of a window of t
 * look-ups is t for drawn rows, otherwise -log(1 - t / lookups). */
typedef struct sc_row_law {
    uint32_t n;
    bool drawn;
    double count;     /* of the part */
    double row_bytes; /* in whole sectors of 32 bytes */
    sc_row_group group[SC_ROW_GROUPS];
} sc_row_law;

void sc_row_law_of(const sc_lookups *l, sc_row_law *out);

/* Expected number of different rows among the first `t` look-ups. */
double sc_row_law_unique(const sc_row_law *l, double t);

/* Fractions hit[i] of the reads of tables [n] that are looked up side by side
 * at rates that end them together, and share a cache of `bytes`. */
void sc_lookup_hits(const sc_row_law *const *law, uint32_t n, double bytes,
                    double *hit);

/* ---- kernels on a device */

/* Reads of rows by a kernel (sc_kernel.reads). */
typedef struct sc_row_reads {
    sc_lookups lookups; /* count 0: all bytes of the kernel come from memory */
    double samples;     /* results, each computed by one warp */
    uint32_t tables;    /* read by the same kernel; 0 counts as 1 */
    bool known;         /* the caller has computed `hit` */
    double hit;
} sc_row_reads;

/* The part of a device's last-level cache that keeps rows; 0: no cache. */
double sc_lookup_cache(uint64_t l2_bytes);

/* How many of the tables of one kernel are read at once, as its warps start in
 * the order of the tables. */
double sc_lookup_together(uint32_t units, double samples, uint32_t tables);

#endif
