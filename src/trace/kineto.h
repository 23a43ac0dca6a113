/* SPDX-License-Identifier: Apache-2.0 */
/* kineto.h - what the files of the reader of measured traces share. */
#ifndef TRACE_KINETO_H
#define TRACE_KINETO_H

#include "trace/scan.h"
#include "trace/trace_profiled.h"

/* One event of a Chrome trace, tokens of the window. */
typedef struct kineto_event {
    scan_token ph, cat, name, pid, tid, ts, dur;
    scan_token arg_name; /* of metadata events */
    sc_trace_span_args args;
    bool has_args;
    uint64_t correlation;
    int64_t device;      /* -1: not stated */
    int64_t device_type; /* of memory events */
    int64_t bytes;       /* the same; negative: freed */
    uint64_t total, address;
} kineto_event;

typedef struct kineto {
    scan s;
    sc_arena *a;
    sc_text *warnings;
    sc_err *err;
    sc_profiled m;
    sc_map names, args, lanes;
    uint32_t cap_names, cap_args, cap_lanes, cap_changes, cap_chunks;
    bool has_origin, out_of_memory;
    int64_t origin_us, base_ns;
    sc_pos broken; /* of the first event that could not be read */
    uint64_t n_out_of_range;

    struct kineto_device {
        int64_t id;
        const char *name;
    } * device; /* [n_devices] of the file's metadata */

    uint32_t n_devices;
    char *text; /* [text_cap] for one string without escapes */
    size_t text_cap;
} kineto;

/* The number of a text; 0 for an empty one. */
uint32_t kineto_name(kineto *k, const scan_token *t);
/* A string of the file in the arena; NULL if it is none. */
const char *kineto_string(kineto *k, const scan_token *t);

/* Reads the event whose brace is at `*p`, which moves behind it. */
scan_status kineto_event_read(kineto *k, const char **p, kineto_event *out);
/* Stores what it says. */
sc_status kineto_event_keep(kineto *k, kineto_event *e);

/* A member of the file's root other than the events. */
void kineto_metadata(kineto *k, const scan_token *key, const scan_token *value);

/* The kind of a call by its name, and of a collective by that of its kernel
 * (SC_N_COLLS if the name does not tell); whether a kernel is one. */
sc_call_kind kineto_call_kind(const char *name);
sc_coll kineto_coll_of_kernel(const char *name);
bool kineto_is_coll_kernel(const char *name);

#endif
