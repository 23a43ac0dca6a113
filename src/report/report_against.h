/* SPDX-License-Identifier: Apache-2.0 */
/* report_against.h - a prediction and a measured trace side by side. */
#ifndef SC_REPORT_AGAINST_H
#define SC_REPORT_AGAINST_H

#include "predict/predict.h"
#include "replay/replay_work.h"

/* All pointers are borrowed. */
typedef struct sc_against {
    const char *file;
    uint32_t rank; /* of the trace, and of the prediction */
    uint32_t n_steps;
    sc_time step[2], kernels[2], exposed[2], idle[2]; /* predicted, measured */
    sc_step_work predicted, measured;
} sc_against;

/* How many equal layers the device of that rank has: what sc_replay_work() looks
 * for. The prediction has operations (p->net->fast is false). */
sc_status sc_against_layers(const sc_prediction *p, uint32_t rank, sc_arena *a,
                            uint32_t *out, sc_err *err);

/* Adds up the operations of the device of that rank. `measured` is the work of a
 * rank of `r`, with index `at`. */
sc_status sc_against_of(const sc_prediction *p, const sc_replay_result *r,
                        uint32_t at, const sc_step_work *measured, sc_arena *a,
                        sc_against *out, sc_err *err);

void sc_report_against_text(const sc_against *x, sc_text *out);
/* Writes a member `against` of a JSON object. */
void sc_report_against_json(const sc_against *x, sc_json *out);

#endif
