/* SPDX-License-Identifier: Apache-2.0 */
/* profiled.h - how the readers of measured traces store what they find. */
#ifndef TRACE_PROFILED_H
#define TRACE_PROFILED_H

#include "base/scan.h"
#include "et/et_kineto.h"
#include "trace/trace_profiled.h"

typedef struct profiled {
    sc_profiled m;
    sc_arena *a;
    sc_err *err;
    sc_map names, args, lanes;
    uint32_t cap_names, cap_args, cap_lanes, cap_changes, cap_chunks;
    bool out_of_memory;
    sc_profile_clock clock;
    char *text; /* [text_cap] for one string without escapes */
    size_t text_cap;
} profiled;

extern const sc_trace_span_args profiled_no_args;

sc_status profiled_start(profiled *p, const char *file, sc_arena *a,
                         sc_err *err);
/* Begins with a rank that was read, to add names, arguments and groups only. What
 * comes of it is `p->m`. */
void profiled_resume(profiled *p, const sc_profiled *m, sc_arena *a,
                     sc_err *err);

/* The number of a text, which is printable UTF-8; 0 for an empty one. This and
 * the next four set `out_of_memory` if they fail. */
uint32_t profiled_name(profiled *p, const char *text, size_t len);
/* The same for a string as it is in the file. */
uint32_t profiled_token(profiled *p, const scan_token *token);
uint32_t profiled_args(profiled *p, const sc_trace_span_args *x);
/* Reads process groups: [{"pg_name": "1", "ranks": [0, 2]}, ...]. Of one
 * without ranks, `group_size` says how many it has, from rank 0 on. */
void profiled_groups(profiled *p, const scan_token *list);
/* The number of a lane; UINT32_MAX if there are too many. */
uint32_t profiled_lane(profiled *p, int64_t pid, int64_t tid, bool device);

sc_status profiled_span(profiled *p, const sc_trace_span *span);
sc_status profiled_change(profiled *p, const sc_memory_change *change);

/* A device as the file describes it. */
typedef struct profiled_device {
    int64_t id;
    const char *name; /* NULL: not stated */
} profiled_device;

/* Names the device that most spans ran on. */
void profiled_name_device(profiled *p, const profiled_device *device,
                          uint32_t n);

/* The kind of a call by its name, and of a collective by that of its kernel
 * (SC_N_COLLS if the name does not tell); whether a kernel is one. */
sc_call_kind profiled_call_kind(const char *name);
sc_coll profiled_coll_of_kernel(const char *name);
bool profiled_is_coll_kernel(const char *name);

#endif
