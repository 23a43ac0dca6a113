/* SPDX-License-Identifier: Apache-2.0 */
/* measure.h - operators by their inputs. */
#ifndef REPLAY_MEASURE_H
#define REPLAY_MEASURE_H

#include "replay/model.h"
#include "replay/replay_measure.h"

/* The operator with shapes around the launch of a device op; REPLAY_NONE. */
uint32_t replay_shaped_op(const replay_rank *r, uint32_t op);

/* What was measured of the operator that launched a device op, and the operator's
 * span; NULL. */
const sc_replay_operator *replay_time_of(const sc_replay_times *t,
                                         const replay_rank *r, uint32_t op,
                                         uint32_t *span);

/* The kernels of each operator with shapes by its span: `*out` [spans of r]. */
sc_status replay_sum_operators(const replay_rank *r, sc_arena *a, sc_time **out,
                               sc_err *err);

#endif
