/* SPDX-License-Identifier: Apache-2.0 */
/* build.h - the graph of a replay, and where what is in it. */
#ifndef REPLAY_BUILD_H
#define REPLAY_BUILD_H

#include "replay/batch.h"

typedef struct replay_built_rank {
    sc_op *enter;  /* [n_items] ends when the item is entered */
    sc_op *leave;  /* [n_items] ends when it is left */
    sc_op *op;     /* [n_ops] ends with the device op */
    sc_op *arrive; /* [n_ops] ends when a member of a collective arrives; else
                      SC_NONE */
    sc_time *dur;  /* [n_ops] of the device op, without gap and waits */
} replay_built_rank;

typedef struct replay_built {
    sc_graph graph;
    replay_built_rank *rank; /* [n_ranks] */
    sc_op end;
    sc_time *busy;          /* [ops] kernels of ops on streams */
    uint32_t *owner, *span; /* [ops] see sc_replay_result */
} replay_built;

sc_status replay_build(const sc_replay_model *m, const sc_replay_change *c,
                       sc_arena *a, replay_built *out, sc_err *err);

/* Durations of device ops and host work with changes. */
typedef struct replay_durations {
    sc_time *op;     /* [n_ops] */
    uint8_t *merged; /* [n_ops] runs inside an earlier one */
    uint8_t *priced; /* [n_ops] a collective whose time is predicted */
    double host;     /* factor */
    replay_pace
        *pace; /* [n_threads] what another batch adds to the host; NULL */
} replay_durations;

sc_status replay_durations_of(const sc_replay_model *m, uint32_t rank,
                              const sc_replay_change *c, sc_arena *a,
                              replay_durations *out, sc_err *err);

/* The name of the delay until the window of a rank begins. */
extern const char replay_later[];

sc_replay_class replay_class_of(const sc_trace_span *s);

#endif
