/* SPDX-License-Identifier: Apache-2.0 */
/* lower.h - state of lowering, shared by lower.c and finish.c. */
#ifndef PLAN_LOWER_H
#define PLAN_LOWER_H

#include <stepcast/plan.h>

/* Ends of the layers that a device has run, the latest ones. */
typedef struct lower_past {
    uint64_t n;
    sc_op end[SC_PREFETCH_MAX + 2];
} lower_past;

typedef struct lower {
    const sc_plan *p;
    const sc_block *blocks; /* [model->n_layers] */
    bool expand;
    double slow; /* factor on every duration */
    sc_graph_builder *b;
    uint32_t group[SC_N_AX];
    sc_slot **order;        /* [pp][n_order] */
    uint32_t *n_order, *at; /* [pp] */
    sc_op *fwd, *bwd;       /* [n_stages * ga] what the next stage waits for */
    sc_op *tail;            /* [pp] last op on the compute stream */
    sc_op *grad_tail;       /* [pp] last gradient exchange beside compute */
    sc_step_costs *costs;   /* [pp] */
    lower_past *past;       /* [pp] */
    uint32_t chunks;        /* of a device */
    uint32_t *first, *last; /* [pp * chunks] sc_schedule_ends() */
} lower;

typedef struct lower_op_desc {
    const char *name;
    double seconds, bytes, flops;
    uint32_t group, peer;
    uint8_t kind, stream, cat;
} lower_op_desc;

sc_op lower_op(lower *lw, uint32_t dev, const lower_op_desc *d);
void lower_after(lower *lw, sc_op before, sc_op after);
/* Gradient exchange, optimizer, gathers and the fixed part of the step. */
void lower_finish(lower *lw);

/* Seconds per category of a pass of one layer, and of virtual stage `v`. */
double plan_pass_cat(const sc_block *b, sc_pass pass, uint32_t cat);
void plan_stage_cats(const sc_plan *p, const sc_block *blocks, uint32_t v,
                     sc_pass pass, double cat[SC_N_CATS]);

#endif
