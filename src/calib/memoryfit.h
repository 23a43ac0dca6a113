/* SPDX-License-Identifier: Apache-2.0 */
/* memoryfit.h - memory of rows by what other rows show. */
#ifndef CALIB_MEMORYFIT_H
#define CALIB_MEMORYFIT_H

#include "calib/calib.h"
#include "calib/runs.h"
#include "calib/stats.h"

/* Predicts memory and fits of the rows with the label `name` again, in
 * rows[0..n) of the same order as `run`. The interval of memory is that of the
 * other rows, and so are the numbers of a profile that were set on measured
 * memory (stage_reserve, ahead_tp, idle_stages); if no other row has the
 * profile, they and the allocator's reserve are those of its base. */
sc_status calib_memory_without(const calib_run *run, uint32_t n,
                               calib_label label, const char *name,
                               const sc_validate_opts *o, const sc_cost *cost,
                               sc_arena *a, sc_valid_row *rows, sc_err *err);

#endif
