/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay_host.h - what operators cost the host, as statistics: T1 to T5 of Lin et al.
 * (arXiv 2201.07821, section 4.3), which can be shared between traces.
 *
 *   T1  between two operators of a thread
 *   T2  from the begin of an operator to its first call of the runtime
 *   T3  from the end of its last call to its end
 *   T4  a call of the runtime, by its name; calls that wait have none
 *   T5  between two calls of an operator; of one without calls all of it
 *
 * Operators are those that no other operator calls.  A value is the mean of all
 * that are within 1.5 interquartile ranges of the quartiles; what is outside had
 * another reason, such as a library that was loaded.
 */
#ifndef SC_REPLAY_HOST_H
#define SC_REPLAY_HOST_H

#include "replay/replay.h"

typedef enum sc_host_part {
    SC_HOST_T1,
    SC_HOST_T2,
    SC_HOST_T3,
    SC_HOST_T4,
    SC_HOST_T5,
    SC_N_HOST_PARTS
} sc_host_part;

typedef struct sc_host_overhead {
    const char *name; /* of an operator; of T4 of a call; of T1 "" */
    uint8_t part;     /* sc_host_part */
    uint32_t n;       /* times it occurs */
    double mean;      /* ps */
    double most;      /* ps: what is longer is no such overhead */
    sc_time total;    /* of all, whatever they are */
} sc_host_overhead;

typedef struct sc_host_overheads {
    uint32_t n;
    sc_host_overhead *of; /* [n] by falling total */
    sc_map by_name;       /* by name and part */
} sc_host_overheads;

/* Of all ranks of all the models together. */
sc_status sc_host_overheads_of(const sc_replay_model *const *m, uint32_t n,
                               sc_arena *a, sc_host_overheads *out,
                               sc_err *err);

/* NULL: it does not occur. */
const sc_host_overhead *sc_host_overhead_of(const sc_host_overheads *o,
                                            sc_host_part part,
                                            const char *name);

#endif
