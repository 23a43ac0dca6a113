/* SPDX-License-Identifier: Apache-2.0 */
/* report_predict.h - reports of a prediction as text and as JSON. */
#ifndef SC_REPORT_PREDICT_H
#define SC_REPORT_PREDICT_H

#include "predict/predict.h"
#include "report/report.h"

/* `measured` is in seconds; NaN if nothing was measured. */
void sc_report_prediction(const sc_job *job, const sc_prediction *p,
                          double measured, sc_text *out);

/* Prints the memory of the fullest pipeline device at its peak (--why). */
void sc_report_memory(const sc_prediction *p, sc_text *out);

/* Prints memory over the step, the tensors at its peak, and the links that
 * carried most bytes, for an executed graph (--why). */
void sc_report_graph(const sc_prediction *p, sc_text *out);

/* Writes the execution in the text form of graphs, and for every device the
 * time that no operation explains. */
void sc_report_ops(const sc_net_step *g, sc_text *out);

/* Own runs that moved the parameters of `p`, what they moved, and their effect;
 * nothing if there are none. */
sc_status sc_report_anchors(const sc_prediction *p, sc_arena *a, sc_text *out,
                            sc_err *err);
/* The same as member "anchors" of an object; there must be some. */
sc_status sc_report_anchors_json(const sc_prediction *p, sc_arena *a,
                                 sc_json *out, sc_err *err);

/* Own runs and what they moved as members "runs" and "moved" of an object. */
sc_status sc_report_own_runs_json(const sc_anchors *s, sc_arena *a,
                                  sc_json *out, sc_err *err);

/* What is needed to repeat a result; all pointers are borrowed. */
typedef struct sc_report_origin {
    const char *megatron, *profile; /* files; NULL: none */
    const char *const *from;        /* files, NULL ends; NULL: none */
    uint64_t seed;
    uint32_t n_inputs;
    const sc_report_input *input; /* [n_inputs] */
} sc_report_origin;

/* Writes an object with the JSON schema stepcast.result/1. Its `config` has
 * every choice, under the keys of sc_job_keys with '_' for '-'. `origin` may
 * be NULL. */
void sc_report_prediction_json(const sc_job *job, const sc_prediction *p,
                               double measured, const sc_report_origin *origin,
                               sc_json *out);
/* Prints a table of one job on several clusters, a row for each: jobs[n],
 * p[n]. */
sc_status sc_report_compare(const sc_job *const *jobs, const sc_prediction *p,
                            uint32_t n, sc_arena *a, sc_text *out, sc_err *err);

#endif
