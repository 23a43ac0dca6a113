/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cost_run_level.h - how much longer published runs took than predicted ones
 * (docs/whole-run.md). The data are in data/fit/whole-run.yml, which only
 * `stepcast calibrate --whole-runs` writes.
 */
#ifndef SC_COST_RUN_LEVEL_H
#define SC_COST_RUN_LEVEL_H

#include "base/base.h"

typedef struct sc_run_level {
    double factor; /* published over predicted device-hours */
    /* The quantiles 10 % and 90 % of log(published / (factor x predicted)), each
     * with the factor of other publishers. */
    double low, high;
    uint32_t rows, publishers; /* 0: there is no level, `factor` is 1 */
} sc_run_level;

/* Reads the text of such a file. */
sc_status sc_run_level_read(const char *text, size_t len, const char *file,
                            sc_arena *a, sc_run_level *out, sc_err *err);

/* Reads the built-in file; without one there is no level. */
sc_status sc_run_level_builtin(sc_arena *a, sc_run_level *out, sc_err *err);

#endif
