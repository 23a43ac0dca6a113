/* SPDX-License-Identifier: Apache-2.0 */
/* report_predict.h - a prediction for people and for programs. */
#ifndef SC_REPORT_PREDICT_H
#define SC_REPORT_PREDICT_H

#include <stepcast/predict.h>

#ifdef __cplusplus
extern "C" {
#endif

/* `measured` seconds, NaN where nothing was measured. */
void sc_report_prediction(const sc_job *job, const sc_prediction *p,
                          double measured, sc_text *out);

/* What the fullest pipeline device holds at its worst moment (--why). */
void sc_report_memory(const sc_prediction *p, sc_text *out);

/* schema stepcast.result/1 (contract.md section 2). */
void sc_report_prediction_json(const sc_job *job, const sc_prediction *p,
                               double measured, sc_json *out);

#ifdef __cplusplus
}
#endif
#endif
