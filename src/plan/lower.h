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

/* What a graph does not say of an op, and a workload does. */
typedef struct lower_transfer {
    uint8_t coll; /* sc_coll */
    uint32_t axes;
    double bytes; /* V */
} lower_transfer;

typedef struct lower_note {
    const char *name;
    uint32_t n, beside; /* ops before it that it may run beside */
    bool load;          /* of a copy: back from the host */
    double traffic;     /* bytes of kernels that the graph does not state */
    const lower_transfer *t; /* [n], one after the other */
} lower_note;

typedef struct lower_notes {
    sc_arena *a;
    uint32_t n, cap;
    lower_note *at; /* [n] by op */
    bool failed;
} lower_notes;

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
    lower_notes *notes;     /* NULL: nobody asks */
    uint32_t chunks;        /* of a device */
    uint32_t *first, *last; /* [pp * chunks] sc_schedule_ends() */
} lower;

typedef struct lower_op_desc {
    const char *name;
    double seconds, bytes, flops;
    uint32_t group, peer;
    uint8_t kind, stream, cat;
    /* for notes */
    uint8_t coll;
    bool load;
    uint32_t axes; /* of one exchange; 0: none */
    uint32_t beside;
    double whole; /* its bytes V */
    double traffic;
    const sc_exchange *x; /* several; NULL */
} lower_op_desc;

/* The two ends of the pipeline only, beside bit SC_AX_PP. */
#define LOWER_ENDS (1u << SC_N_AX)
/* Devices d and pp - 1 - d only. */
#define LOWER_MIRROR (1u << (SC_N_AX + 1))

sc_op lower_op(lower *lw, uint32_t dev, const lower_op_desc *d);
void lower_after(lower *lw, sc_op before, sc_op after);
/* Keeps what `d` says of op `op`. */
void lower_note_op(lower_notes *notes, sc_op op, const lower_op_desc *d);
/* sc_lower(); with `notes` every op is noted, and durations are those of one
 * rank alone: nobody waits for the slowest. */
sc_status lower_graph(const sc_plan *p, const sc_block *blocks, bool expand,
                      lower_notes *notes, sc_arena *a, sc_graph *out,
                      sc_err *err);
/* Gradient exchange, optimizer, gathers and the fixed part of the step. */
void lower_finish(lower *lw);

/* Adds `of` times the exchange `x`. */
void plan_exchange_add(sc_exchange *sum, const sc_exchange *x, double of);
/* All of a device's gradients (or updated weights), once. */
void plan_exchange_sum(const sc_plan *p, const sc_block *blocks, uint32_t dev,
                       bool update, sc_exchange *out);

/* Seconds per category of a pass of one layer, and of virtual stage `v`. */
double plan_pass_cat(const sc_block *b, sc_pass pass, uint32_t cat);
void plan_stage_cats(const sc_plan *p, const sc_block *blocks, uint32_t v,
                     sc_pass pass, double cat[SC_N_CATS]);
/* Of sc_plan_slow_factor(), what slows a rank by itself. */
double plan_host_factor(const sc_run *r);
/* One exchange of all of a device's gradients (or updated weights) at once,
 * nothing beside it; 0 where it is overlapped or not needed. */
sc_status plan_exchange(const sc_plan *p, const sc_block *blocks, uint32_t dev,
                        bool update, double *seconds, double *bytes,
                        sc_err *err);
#endif
