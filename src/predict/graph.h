/* SPDX-License-Identifier: Apache-2.0 */
/* graph.h - shared by the files that predict operator graphs. */
#ifndef PREDICT_GRAPH_H
#define PREDICT_GRAPH_H

#include "predict/internal.h"

/* A run of layers, whose step the fast engine composes of segments. */
typedef struct graph_layers {
    const sc_run *run;
    predict_memo *memo;
} graph_layers;

typedef struct graph_state {
    const sc_job *job;
    const sc_hw *hw;
    const sc_model *model;
    const sc_software *sw;
    const sc_cost *cost;
    const sc_rules *rules;
    const sc_graph_step *known; /* by the fast engine; NULL */
    const graph_layers *layers; /* NULL: the fast engine walks the program */
    sc_arena *a;
    sc_strategy tree; /* the job's, its mesh settled */
    sc_gjob gjob;     /* but for the batch */
    uint32_t idle;    /* devices */
    uint32_t spatial; /* ranks that a sample's positions may be split over; 0:
                         the mesh is given */
    uint32_t tried;
    predict_notes assume, warn;
} graph_state;

/* Inference, lowering, execution and memory of one batch. */
sc_status predict_graph_run(graph_state *x, uint64_t micro, uint32_t ga,
                            sc_arena *a, sc_graph_step *out, sc_err *err);
/* A step of so many micro-batches by the fast engine, but for its fixed part. */
sc_status predict_graph_layers(const graph_layers *x, uint32_t ga, sc_arena *a,
                               sc_gclock *out, sc_err *err);
/* Where the time of a step that has been run goes. */
void predict_graph_parts(sc_graph_step *s);
/* Memory of one device of the execution: the least of the ranks that it stands
 * for. */
uint64_t predict_graph_capacity(const sc_graph_step *s, uint32_t device);
/* A step, of which the choices are made, from one of `low` micro-batches and one
 * of `pp` more, both run: every further round takes as long. */
void predict_graph_compose(const graph_state *x, uint32_t low,
                           const sc_graph_step *one, sc_graph_step *two,
                           sc_graph_step *inout);
/* graph_fidelity.c: the same step message by message, on the machine's links. */
sc_status predict_graph_simulate(graph_state *x, sc_graph_step *step,
                                 sc_err *err);
/* Memory of an executed step. */
sc_status predict_graph_memory(const graph_state *x, sc_arena *a,
                               sc_graph_step *step, sc_err *err);
/* Bytes that a device shows: what its allocator holds, and the context. */
double predict_graph_peak(const sc_graph_step *s, uint32_t device);
bool predict_graph_fits_on(const sc_graph_step *s, uint32_t device);
bool predict_graph_fits(const sc_graph_step *s);

/* graph_replicas.c: whether pools divide the replicas; then the step of
 * `samples` by the slowest of them. */
bool predict_graph_mixed(const graph_state *x);
sc_status predict_graph_replicas(graph_state *x, uint64_t samples,
                                 uint64_t micro, sc_graph_step *out,
                                 sc_err *err);

/* graph_options.c: what options say that `s` can hold. */
void predict_graph_settle(const sc_job *job, sc_strategy *s);
/* Options that a graph of operators can't follow: errors, and warnings. */
sc_status predict_graph_refuse(const graph_state *x, sc_err *err);
void predict_graph_idle(graph_state *x, const sc_graph_step *step);

/* The smallest changes that help. */
sc_status predict_graph_suggest(graph_state *x, const sc_graph_step *now,
                                sc_prediction *p, sc_err *err);

/* Everything of `p` that follows from the step. */
sc_status predict_graph_result(graph_state *x, sc_graph_step *step,
                               sc_prediction *p, sc_err *err);

/* Seconds of a step beside everything that is run. */
double predict_graph_fixed(const sc_run *r, const sc_rules *rules);

#endif
