/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sink.h - collects what readers of other programs' files find: fields of a
 * job with their origins, errors, warnings, assumptions.
 *
 * A field that the command line gives keeps its value.  If several files are
 * read, an explicit value replaces a program's default, and two explicit values
 * must be equal.
 */
#ifndef IMPORT_SINK_H
#define IMPORT_SINK_H

#include "import/import.h"

/* A value in a file, under the name that it has there. */
typedef struct import_value {
    bool given, bad; /* bad: an error was reported */
    bool open;       /* "auto": the value comes from elsewhere */
    sc_pos pos;      /* of the option or key */
    sc_pos at;       /* of the value */
    const char *text, *name;
    double number; /* of a number; 0 or 1 of a yes/no value */
    const sc_node *node;
} import_value;

typedef struct import_sink {
    sc_arena *a;
    sc_err *err;
    sc_status status; /* of the first error */
    const char *file;
    sc_job *job;
    sc_import *out;
    uint32_t cap_origins, cap_model, cap_warnings, cap_assumptions;
    /* Values that become fields only when all files are read; 0: not known.
     * They are samples of a data-parallel rank per step, micro-batches per step
     * and copies of a sharded model. */
    int64_t rank_batch, accumulation, copies;
    import_value accumulation_v;
    import_value away; /* keeps weights in another memory */
    bool accelerated;  /* a configuration of accelerate was read */
    bool few;          /* a warning about too few processes was reported */
} import_sink;

/* Records an error and goes on. */
void import_error(import_sink *s, sc_code code, sc_pos pos, const char *hint,
                  const char *fmt, ...) SC_PRINTF(5, 6);
sc_status import_warn(import_sink *s, sc_pos pos, const char *fmt, ...)
    SC_PRINTF(3, 4);
sc_status import_assume(import_sink *s, const char *fmt, ...) SC_PRINTF(2, 3);

/* Records the origin of field `key`: the value `v` followed by `text` (NULL:
 * nothing), or `text` alone if `v` is NULL or not given. */
sc_status import_origin(import_sink *s, bool of_model, const char *key,
                        const import_value *v, const char *text);

/* Sets field `key` of sc_job_keys: a number, yes/no or enum, or a text.  `v` is
 * the value in the file.  If it is NULL or not given, the field gets a
 * program's default, and `text` is its origin. */
sc_status import_put(import_sink *s, const char *key, double value,
                     const import_value *v, const char *text);
sc_status import_put_text(import_sink *s, const char *key, const char *value,
                          const import_value *v, const char *text);

/* Keeps all weights in memory `to` of sc_offload_to, as `v` says.  Every rank
 * has its own part of them there, so import_finish() reports `v` unless weights
 * are sharded (ZeRO-3, the default with this). */
sc_status import_weights_away(import_sink *s, int to, const import_value *v);

/* Sets tp, pp and cp to 1, the default of `program`, if no file gives them. */
sc_status import_no_parallelism(import_sink *s, const char *program);

/* Computes dp from the number of processes, if the other degrees are known. */
sc_status import_processes(import_sink *s);

/* Computes what follows from all files together: dp from the number of
 * processes, the global batch from its parts. */
sc_status import_finish(import_sink *s);

/* Whether the field has a value; whether this value is not just a default. */
bool import_has(const import_sink *s, const char *key);
bool import_is_explicit(const import_sink *s, const char *key);

#endif
