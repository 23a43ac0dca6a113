/* SPDX-License-Identifier: Apache-2.0 */
/* kineto.h - what the files of the reader of measured traces share. */
#ifndef TRACE_KINETO_H
#define TRACE_KINETO_H

#include "base/scan.h"
#include "trace/profiled.h"

/* One event of a Chrome trace, tokens of the window. */
typedef struct kineto_event {
    scan_token ph, cat, name, pid, tid, ts, dur;
    scan_token arg_name; /* of metadata events */
    sc_trace_span_args args;
    bool has_args;
    uint64_t correlation;
    uint64_t record, external; /* numbers of an operator; 0: not stated */
    int64_t device;            /* -1: not stated */
    int64_t device_type;       /* of memory events */
    int64_t bytes;             /* the same; negative: freed */
    uint64_t total, address;
} kineto_event;

typedef struct kineto {
    scan s;
    profiled p;
    sc_text *warnings;
    int64_t base_ns;
    sc_pos broken; /* of the first event that could not be read */

    uint32_t n_devices;
    profiled_device *device; /* [n_devices] of the file's metadata */
} kineto;

/* A string of the file in the arena; NULL if it is none. */
const char *kineto_string(kineto *k, const scan_token *t);

/* Reads the event whose brace is at `*p`, which moves behind it. */
scan_status kineto_event_read(kineto *k, const char **p, kineto_event *out);
/* Stores what it says. */
sc_status kineto_event_keep(kineto *k, kineto_event *e);

/* A member of the file's root other than the events. */
void kineto_metadata(kineto *k, const scan_token *key, const scan_token *value);

/* Reads the trace of one rank. */
sc_status kineto_read(sc_stream *in, const char *file, sc_arena *a,
                      sc_text *warnings, sc_profiled *out, sc_err *err);

#endif
