/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model_access.h - how look-ups are distributed over the rows of a table.
 *
 * The text form, in model.yml and in tables of `stepcast shard`:
 *   uniform
 *   zipf 1.05               row i is read in proportion to i^-1.05
 *   reuse 887017: 0.07 ...  of 887017 look-ups of one batch, the fraction that
 *                           goes to rows with a reuse factor (number of
 *                           look-ups of the row in this batch) in (0, 1],
 *                           (1, 2], (2, 4] ... (16384, 32768], above 32768;
 *                           bins that are left out at the end are 0
 */
#ifndef MODEL_ACCESS_H
#define MODEL_ACCESS_H

#include "base/base.h"

#define SC_REUSE_BINS 17

typedef enum sc_access_kind {
    SC_ACCESS_UNIFORM,
    SC_ACCESS_ZIPF,
    SC_ACCESS_REUSE
} sc_access_kind;

typedef struct sc_access {
    sc_access_kind kind;
    double exponent;                /* used by ZIPF, 0 to 4 */
    double lookups;                 /* used by REUSE: those of the batch */
    double fraction[SC_REUSE_BINS]; /* used by REUSE; sum 1 */
} sc_access;

/* Reads the text form. The fractions may add up to 0.97 to 1.03 and are scaled
 * to 1. Errors at `pos`. */
sc_status sc_access_read(const char *text, sc_pos pos, sc_access *out,
                         sc_err *err);

/* The reuse histogram of a file's text with one row number per look-up of a
 * batch, separated by blanks, commas or line breaks. */
sc_status sc_access_of_indices(const char *text, size_t len, const char *file,
                               sc_arena *a, sc_access *out, sc_err *err);

/* Appends the text form. */
void sc_access_print(const sc_access *x, sc_text *out);

/* Equal distributions have equal hashes. */
uint64_t sc_access_hash(const sc_access *x);

#endif
