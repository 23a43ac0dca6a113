/* SPDX-License-Identifier: Apache-2.0 */
/*
 * predict_site.h - the step of a prediction on some nodes of a machine that other
 * jobs use at the same time.
 */
#ifndef SC_PREDICT_SITE_H
#define SC_PREDICT_SITE_H

#include "predict/predict.h"
#include "sim/sim.h"

typedef struct sc_site_step {
    sc_graph graph;   /* one step; links are those of the whole machine */
    sc_sim_opts opts; /* with which it runs alone on that machine */
    sc_time rest;     /* of a step, after its operations: what none explains */
} sc_site_step;

/* Lowers the step of `p`, a prediction of `job` by the event engine, for `site`.
 * Prices are those of `apart`, a machine of the same devices.  All in `a`.
 * Errors: SC_C_UNSUPPORTED for pools and steps of other modes or fidelities. */
sc_status sc_predict_site(const sc_job *job, const sc_prediction *p,
                          const sc_hw *apart, const sc_net_site *site,
                          sc_arena *a, sc_site_step *out, sc_err *err);

#endif
