/* SPDX-License-Identifier: Apache-2.0 */
/* net.h - shared by the files that predict the step of a network. */
#ifndef PREDICT_NET_H
#define PREDICT_NET_H

#include "predict/internal.h"

/* A run with layers, whose step the fast engine composes from segments. */
typedef struct net_layers {
    const sc_run *run;
    predict_memo *memo;
} net_layers;

typedef struct net_prediction {
    const sc_job *job;
    const sc_hw *hw;
    const sc_model *model;
    const sc_software *sw;
    const sc_cost *cost;
    const sc_rules *rules;
    const sc_net_step *known; /* step by the fast engine; NULL: none */
    const net_layers *layers; /* NULL: the fast engine walks the program */
    sc_arena *a;
    sc_strategy tree;   /* the job's strategy with a complete mesh */
    sc_net_run net_run; /* without the batch */
    uint32_t idle;      /* devices without work */
    uint32_t spatial;   /* ranks that a sample's positions may be split over;
                         * 0: the mesh is given */
    uint32_t tried;
    predict_notes assume, warn;
} net_prediction;

/* Infers, lowers and executes one batch, and computes its memory. */
sc_status predict_net_run(net_prediction *x, uint64_t micro, uint32_t ga,
                          sc_arena *a, sc_net_step *out, sc_err *err);
/* The step of `ga` micro-batches by the fast engine, without its fixed part. */
sc_status predict_net_layers(const net_layers *x, uint32_t ga, sc_arena *a,
                             sc_net_clock *out, sc_net_save *save, sc_err *err);
/* How the event engine runs a compiled step of a job. */
void predict_net_opts(const sc_job *job, const sc_net_plan *p, sc_sim_opts *o);
/* Divides the time of a computed step into categories. */
void predict_net_parts(sc_net_step *s);
/* Memory of one device of the execution: the least of all ranks that it
 * represents. */
uint64_t predict_net_capacity(const sc_net_step *s, uint32_t device);
/* Composes a step with all choices made from two computed ones: of `low`
 * micro-batches, and of `pp` more. Every further round of `pp` takes the
 * same time. */
void predict_net_compose(const net_prediction *x, uint32_t low,
                         const sc_net_step *one, sc_net_step *two,
                         sc_net_step *inout);
/* net_fidelity.c: simulates the same step message by message on the
 * machine's links. */
sc_status predict_net_simulate(net_prediction *x, sc_net_step *step,
                               sc_err *err);
/* Computes the memory of an executed step. */
sc_status predict_net_memory(const net_prediction *x, sc_arena *a,
                             sc_net_step *step, sc_err *err);
/* Bytes that a device reports: the allocator's reserve and the context. */
double predict_net_peak(const sc_net_step *s, uint32_t device);
bool predict_net_fits_on(const sc_net_step *s, uint32_t device);
bool predict_net_fits(const sc_net_step *s);

/* net_replicas.c: whether pools divide the replicas; then the step of
 * `samples` by the slowest pool. */
bool predict_net_mixed(const net_prediction *x);
sc_status predict_net_replicas(net_prediction *x, uint64_t samples,
                               uint64_t micro, sc_net_step *out, sc_err *err);

/* options.c: reports options that do not apply to a network as errors or warnings. */
sc_status predict_net_refuse(const net_prediction *x, sc_err *err);
void predict_net_idle(net_prediction *x, const sc_net_step *step);

/* Suggests the smallest changes that help. */
sc_status predict_net_suggest(net_prediction *x, const sc_net_step *now,
                              sc_prediction *p, sc_err *err);

/* Sets all members of `p` that follow from the step. */
sc_status predict_net_result(net_prediction *x, sc_net_step *step,
                             sc_prediction *p, sc_err *err);

/* Seconds of a step that no operator explains. */
double predict_net_fixed(const sc_run *r, const sc_rules *rules);

#endif
