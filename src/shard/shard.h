/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shard.h - places the embedding tables of a recommendation model on devices.
 *
 * A table is whole on one device, or divided by rows or by columns over 2, 4 or
 * 8 devices, or on every device (data parallel).  A step sends row numbers to
 * the devices of their tables (all-to-all), looks up and sums rows, sends the
 * sums back to the devices of their samples, sends gradients the other way,
 * and updates the rows that were looked up.  Row parts send sums of their rows
 * for the whole width, column parts sums for their columns.  Tables on every
 * device look up their own samples, and sum gradients by an all-reduce.
 *
 * Two ways compute a step.  The estimate, by which placements are chosen, adds
 * up times of parts and takes the slowest device of each phase.  The simulation
 * runs a graph with one class per device (sim.h): exchanges share links with
 * each other, and tables that a kernel looks up at once share the cache with
 * exactly those of their device.
 */
#ifndef SHARD_H
#define SHARD_H

#include "cost/cost.h"

typedef struct sc_shard_table {
    const char *name;
    double rows, width; /* of fp32 values */
    double pooling;     /* mean look-ups per sample */
    sc_access access;   /* uniform where it is not known */
} sc_shard_table;

typedef struct sc_shard_tables {
    uint32_t n;
    const sc_shard_table *table; /* [n] */
} sc_shard_tables;

/* Keys of a table, in YAML and as columns of a CSV table. */
extern const sc_key sc_shard_table_keys[];

/* Reads a CSV table with a header (`csv`), or YAML or JSON with a list
 * `tables`. */
sc_status sc_shard_read(const char *text, size_t len, const char *file,
                        bool csv, sc_arena *a, sc_shard_tables *out,
                        sc_err *err);

typedef enum sc_shard_split {
    SC_SHARD_TABLE,
    SC_SHARD_ROWS,
    SC_SHARD_COLUMNS,
    SC_SHARD_DATA /* on every device */
} sc_shard_split;

extern const char *const sc_shard_split_names[]; /* "table" ...; NULL ends */

#define SC_SHARD_PARTS 8

typedef struct sc_shard_place {
    uint8_t split;                   /* sc_shard_split */
    uint8_t parts;                   /* used; 0 for DATA */
    uint32_t device[SC_SHARD_PARTS]; /* of each part, all different */
} sc_shard_place;

/* X(enumerator, name, text) */
#define SC_SHARDERS(X)                                                      \
    X(SC_SHARD_NAIVE, "naive", "table i on device i modulo their number")   \
    X(SC_SHARD_CHUNK, "naive_chunk", "equal numbers of consecutive tables") \
    X(SC_SHARD_RANDOM, "random", "any device with room")                    \
    X(SC_SHARD_SIZE, "size_greedy", "largest first, by rows x width")       \
    X(SC_SHARD_LOOKUP, "lookup_greedy", "by width x pooling")               \
    X(SC_SHARD_NORM, "norm_lookup_greedy",                                  \
      "by width x different rows per sample")                               \
    X(SC_SHARD_SIZE_LOOKUP, "size_lookup_greedy",                           \
      "by width x pooling x log10(rows)")                                   \
    X(SC_SHARD_BALANCED, "balanced", "by predicted time of both look-ups")  \
    X(SC_SHARD_BEST, "best",                                                \
      "the best of these, improved by moves, exchanges and splits")

#define SC_SHARDER_ENUM(id, name, text) id,

typedef enum sc_sharder {
    SC_SHARDERS(SC_SHARDER_ENUM) SC_N_SHARDERS
} sc_sharder;

#undef SC_SHARDER_ENUM

extern const char *const sc_sharder_names[], *const sc_sharder_texts[];

/* Sharders from here on use predictions; those before are those of Lin et al.
 * (arXiv 2404.12674). */
#define SC_SHARD_PREDICTED SC_SHARD_BALANCED

typedef struct sc_shard_job {
    const sc_hw *hw;
    const sc_cost *cost;
    const sc_shard_table *table; /* [n_tables] */
    uint32_t n_tables;
    double batch;          /* samples of all devices */
    double memory;         /* part of each device's memory for tables */
    const char *optimizer; /* a name of cost_optimizer.h */
    uint64_t seed;         /* of random */
} sc_shard_job;

/* One device: seconds of its kernels, bytes. */
typedef struct sc_shard_load {
    double forward, backward; /* kernels of parts that others' samples use */
    double data_forward, data_backward, data_update; /* of tables on all */
    double sends;   /* bytes of sums per sample */
    double indices; /* bytes of row numbers per sample */
    double reduced; /* bytes of the gradients of tables on all devices */
    double tables;  /* bytes of tables and optimizer states */
    double memory;  /* the same and buffers of exchanges */
    uint32_t parts, data_parts;
} sc_shard_load;

/* A step, in seconds. */
typedef struct sc_shard_step {
    double indices;   /* all-to-all of row numbers */
    double forward;   /* slowest device */
    double exchange;  /* all-to-all of sums */
    double gradients; /* all-to-all of gradients */
    double backward;  /* slowest device */
    double reduce;    /* all-reduce of tables on every device */
    double step;
} sc_shard_step;

typedef struct sc_shard_plan {
    sc_shard_place *place; /* [n_tables] */
    sc_shard_load *load;   /* [n_devices] */
    sc_shard_step step;    /* as estimated */
    double simulated;      /* seconds; NaN: not run */
    bool fits;
    uint32_t full; /* if it does not fit, a device with too little memory */
} sc_shard_plan;

/* Prices that are shared by all plans of a job. */
typedef struct sc_shard_prices sc_shard_prices;

/* `job` is borrowed. Errors: SC_C_UNSUPPORTED, more devices than
 * SC_SHARD_DEVICES; those of prices. */
#define SC_SHARD_DEVICES 1024
sc_status sc_shard_prices_new(const sc_shard_job *job, sc_arena *a,
                              sc_shard_prices **out, sc_err *err);

/* The plan of one sharder with its estimate.  `best` starts from all others and
 * fits if any placement that was found does. */
sc_status sc_shard_plan_of(sc_shard_prices *p, sc_sharder sharder, sc_arena *a,
                           sc_shard_plan *out, sc_err *err);

/* Runs the plan's graph, and sets `simulated`. */
sc_status sc_shard_simulate(sc_shard_prices *p, sc_arena *a,
                            sc_shard_plan *inout, sc_err *err);

/* Room for tables on each device, bytes. */
double sc_shard_room(const sc_shard_prices *p);

#endif
