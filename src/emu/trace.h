/* SPDX-License-Identifier: Apache-2.0 */
/* trace.h - nodes of a run while they are collected by trace.c; trace_ranks.c
 * makes the workload of all ranks. */
#ifndef EMU_TRACE_H
#define EMU_TRACE_H

#include "emu/emu_log.h"

#define TRACE_STREAMS 64u                 /* queues whose order is kept */
#define TRACE_RECORDS ((uint64_t)1 << 28) /* operations of a rank */

typedef struct trace_node {
    sc_time duration;
    uint64_t size;
    uint32_t group, peer, tag; /* slots; the root's position */
    uint32_t dep, n_deps;      /* in trace_class.dep */
    uint8_t kind, coll;
} trace_node;

typedef struct trace_moment {
    sc_time t;
    uint64_t record;
    bool wait; /* it begins to wait for it; else it posts it */
    int late;  /* of moments at one time, the later ones */
} trace_moment;

typedef struct trace_class {
    const sc_emu_run *run;
    sc_arena *a;
    sc_err *err;
    sc_emu_step *step;    /* [n_steps]; trace_steps() */
    uint32_t n_steps;     /* 0: the whole run is the trace */
    uint64_t first, last; /* records */
    sc_time begin, until, now;
    trace_node *node;
    uint32_t *dep, *had; /* had: dependencies of the program's next node */
    uint32_t n, cap, n_deps, cap_deps, n_had, cap_had;
    /* by slot: group of the run; rank; tag */
    uint32_t *groups, *peers, *tags;
    int32_t *tag_steps;
    uint32_t n_groups, n_peers, n_tags, cap_tags, cap_steps;
    uint32_t n_once; /* nodes before the repetitions */
    sc_map tag_slots;
    bool tagged; /* messages have the program's tags */
    bool envelopes;
    uint32_t queue[TRACE_STREAMS]; /* last node + 1 of a queue; 0: none */
    sc_time queue_end[TRACE_STREAMS];
} trace_class;

/* Finds the steps, if the options limit the trace to them. */
sc_status trace_steps(trace_class *c, const sc_emu_trace_opts *o);

/* Makes the nodes of the last `n_steps` steps, at most c->n_steps. */
sc_status trace_nodes(trace_class *c, const sc_emu_trace_opts *o,
                      uint32_t n_steps);

#endif
