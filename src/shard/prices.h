/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prices.h - prices that plans of one job share: parts of tables, and
 * exchanges by their size.
 */
#ifndef SHARD_PRICES_H
#define SHARD_PRICES_H

#include "shard/shard.h"

/* How a table can be divided: whole, by rows into 2, 4, 8, by columns into 2,
 * 4, 8, or on every device. */
#define SHARD_VARIANTS 8
#define SHARD_VALUE    4.0 /* bytes of a value */
#define SHARD_INDEX    8.0 /* bytes of a row number */

typedef struct shard_part {
    double forward, backward; /* seconds without launches */
    double update;            /* seconds; used by DATA */
    double memory;            /* bytes of the table and its states */
    double sends;             /* bytes per sample of sums */
    double indices;           /* bytes per sample of row numbers */
    bool known;
} shard_part;

/* Seconds of a collective at powers of two, from SHARD_FIRST bytes on. */
#define SHARD_SIZES 40

typedef struct shard_curve {
    sc_coll coll;
    double seconds[SHARD_SIZES]; /* 0: not computed */
    double busy[SHARD_SIZES][2]; /* by sc_scope: part of these seconds in which
                                    the bytes occupy the fullest link */
} shard_curve;

struct sc_shard_prices {
    const sc_shard_job *job;
    sc_arena *a;
    sc_place at;      /* all devices */
    uint32_t n;       /* devices */
    shard_part *part; /* [n_tables][SHARD_VARIANTS] */
    shard_curve all_to_all, all_reduce;
    double launch[2]; /* seconds of launches: forward, backward */
};

uint32_t shard_variant(const sc_shard_place *x);
void shard_variant_of(uint32_t variant, sc_shard_place *out);

/* Whether the variant is possible with these devices and this table. */
bool shard_possible(const sc_shard_prices *p, uint32_t table, uint32_t variant);

/* One part of the variant, with the mean number of tables per device. */
const shard_part *shard_part_of(sc_shard_prices *p, uint32_t table,
                                uint32_t variant);

/* Seconds of the forward kernel if the cache serves `hit` of its reads. */
double shard_forward(const sc_shard_prices *p, uint32_t table, uint32_t variant,
                     double hit);
/* The part's look-ups as the cache sees them, and its samples. */
sc_lookups shard_lookups(const sc_shard_prices *p, uint32_t table,
                         uint32_t variant);

/* Seconds of a collective over all devices, interpolated between sizes. */
sc_status shard_exchange(sc_shard_prices *p, shard_curve *c, double bytes,
                         double *out, sc_err *err);

/* How much longer both take together than if each had the links alone, as a part
 * of the shorter one; `bytes` of an all-to-all and an all-reduce that
 * shard_exchange() has priced. */
double shard_sharing(const sc_shard_prices *p, double to_all, double reduced);

/* ---- estimates (estimate.c) */

/* Adds a placement of a table to the loads, or takes it off (`sign` -1). */
void shard_add(sc_shard_prices *p, uint32_t table, const sc_shard_place *x,
               double sign, sc_shard_load *load);

/* Loads of all devices, the estimated step, and whether it fits. */
sc_status shard_estimate(sc_shard_prices *p, sc_shard_plan *inout, sc_err *err);

/* The step from the loads alone. */
sc_status shard_step(sc_shard_prices *p, const sc_shard_load *load,
                     sc_shard_step *out, sc_err *err);

/* Bytes of a device: its tables, and the buffers of exchanges. `sums`: of
 * shard_sums(). */
double shard_memory(const sc_shard_prices *p, const sc_shard_load *load,
                    double sums);
/* Bytes of sums per sample of all devices together. */
double shard_sums(const sc_shard_prices *p, const sc_shard_load *load);

sc_status shard_plan_new(const sc_shard_prices *p, sc_arena *a,
                         sc_shard_plan *out, sc_err *err);
void shard_plan_copy(const sc_shard_prices *p, const sc_shard_plan *from,
                     sc_shard_plan *to);

/* ---- sharders (greedy.c, improve.c) */

sc_status shard_simple(sc_shard_prices *p, sc_sharder sharder,
                       sc_shard_plan *inout, sc_err *err);
sc_status shard_improve(sc_shard_prices *p, sc_arena *a, sc_shard_plan *inout,
                        sc_err *err);

#endif
