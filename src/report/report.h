/* SPDX-License-Identifier: Apache-2.0 */
/* report.h - results as text and as files for other programs. */
#ifndef SC_REPORT_H
#define SC_REPORT_H

#include "sim/sim_memory.h"

/* A file that the user named. */
typedef struct sc_report_input {
    const char *option, *file; /* "--measured", "train.log" */
    uint64_t hash;             /* sc_hash() of its bytes, seed 0 */
} sc_report_input;

/* Writes the run as Chrome trace events, for Perfetto or chrome://tracing,
 * by appending one JSON object to `out`. A class is a process (pid = class
 * id) and a stream a thread (tid = sc_stream_kind). An op is a complete event on
 * each of its classes with ts and dur in microseconds; a mark is an instant
 * event. args are id, bytes, flops, group, peer, the id of the cause, and
 * the time added by shared links and by overlap, if any. Flow events (id =
 * op id) join a transfer to the ops of other classes that wait for it.
 * Memory is a counter per class ("live" and "reserved"); `memory`
 * [g->n_classes] may be NULL. `fixed` is the time after the run that no op
 * explains: the event "step". Out of memory sets out->failed. */
void sc_report_chrome_trace(const sc_graph *g, const sc_result *r,
                            const sc_mem_device *memory, sc_time fixed,
                            sc_json *out);
#endif
