/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cost_held_out.h - how far measured steps were from predictions that were
 * fitted without them, by facts that a user knows: the kind of model, the
 * device generation and the training program.  The data are in
 * data/fit/held-out.yml, which only `stepcast calibrate --held-out` writes;
 * docs/validation.md describes the method.
 */
#ifndef SC_COST_HELD_OUT_H
#define SC_COST_HELD_OUT_H

#include "base/base.h"

/* Kinds of models with separate intervals; the first that applies is used. */
typedef enum sc_model_kind {
    SC_KIND_ADAPTERS, /* low-rank adapters and frozen weights */
    SC_KIND_ENCODER,  /* bidirectional */
    SC_KIND_EXPERTS,  /* mixture of experts */
    SC_KIND_DENSE,
    SC_KIND_GRAPH, /* operator networks: counted separately from transformers */
    SC_N_KINDS
} sc_model_kind;

extern const char *const sc_model_kind_names[]; /* "adapters" ...; NULL ends */

/* The quantiles 10 % and 90 % of log(measured / predicted); of steps in units
 * of the standard deviation that the effects give the job
 * (sc_effects_deviation). */
typedef struct sc_interval {
    double low, high;        /* NaN: unknown */
    uint32_t rows, families; /* held-out rows of the kind */
} sc_interval;

/* What moves measured steps away from predictions, in common for some of them
 * (cost/cost_anchor.h): standard deviations of the logarithm; of parameters,
 * the factor on the standard errors of the fit. */
typedef enum sc_effect {
    SC_EFFECT_PARAMETERS,
    SC_EFFECT_NETWORK, /* of the time of the network between nodes */
    SC_EFFECT_SITE,    /* all runs of one family, or of one user */
    SC_EFFECT_RELEASE, /* software profile */
    SC_EFFECT_DEVICE,
    SC_EFFECT_SIMILAR, /* falls with the distance of the jobs */
    SC_EFFECT_JOB,     /* only runs of the same job */
    SC_N_EFFECTS
} sc_effect;

extern const char *const sc_effect_names[]; /* "parameters" ...; NULL ends */

typedef struct sc_effects {
    double sd[SC_N_EFFECTS];
} sc_effects;

/* Values before any estimate, which also hold where a file has none. */
extern const sc_effects sc_effects_usual;

typedef struct sc_counted {
    const char *name;
    uint32_t rows;
} sc_counted;

/* Measured rows of a program on a generation of devices. */
typedef struct sc_measured {
    const char *program, *generation; /* profile, sc_device.arch */
    uint32_t rows;
} sc_measured;

typedef struct sc_held_out {
    sc_interval all, kind[SC_N_KINDS];
    sc_interval memory; /* of peaks of memory: log(measured / predicted) */
    sc_effects effects;
    double unseen; /* factor on a job's standard deviation if no row has its
                      device or program */
    uint64_t fit;  /* hash of the fit files that it belongs to */
    uint32_t n_archs, n_programs;
    const sc_counted *arch;    /* [n_archs] device generations (sc_device .arch)
                                  with rows in the fit */
    const sc_counted *program; /* [n_programs] software profiles with rows in
                                  the fit */
    uint32_t n_measured;
    const sc_measured *measured; /* [n_measured] of any table of runs, also of
                                    programs that no fit of steps uses */
} sc_held_out;

/* Sets `out` to no interval and no rows. */
void sc_held_out_none(sc_held_out *out);

/* Reads the text of such a file; strings and lists are in `a`.  Reports all
 * errors in one pass: keys and numbers that are missing, unknown or out of
 * range. */
sc_status sc_held_out_read(const char *text, size_t len, const char *file,
                           sc_arena *a, sc_held_out *out, sc_err *err);
/* The same from a parsed tree, which must live as long as the result. */
sc_status sc_held_out_tree(const sc_node *root, sc_arena *a, sc_held_out *out,
                           sc_err *err);

/* The number of rows of `name` in a list; 0 if it is not in the list. */
uint32_t sc_held_out_rows(const sc_counted *list, uint32_t n, const char *name);

/* The number of measured rows of a program on a generation (NULL: on all). */
uint32_t sc_held_out_measured(const sc_held_out *h, const char *program,
                              const char *generation);

/* Reads the built-in file; without one there is no interval and no row. */
sc_status sc_held_out_builtin(sc_arena *a, sc_held_out *out, sc_err *err);
#endif
