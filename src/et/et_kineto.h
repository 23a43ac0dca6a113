/* SPDX-License-Identifier: Apache-2.0 */
/*
 * et_kineto.h - reads traces of PyTorch's profiler (Kineto) event by event: what
 * ran on which thread or stream and when, with shapes where they were recorded.
 *
 * Files that are not quite JSON, have broken events or end early are read as far
 * as possible.  What was left out is reported, and callers decide whether they
 * can do without.
 */
#ifndef SC_ET_KINETO_H
#define SC_ET_KINETO_H

#include "base/scan.h"

typedef enum sc_kineto_kind {
    SC_KINETO_OTHER,
    SC_KINETO_PYTHON, /* a frame of Python */
    SC_KINETO_OP,     /* operator on the host */
    SC_KINETO_MARK,   /* annotation by the program or the framework */
    SC_KINETO_STEP,   /* ProfilerStep#N */
    SC_KINETO_CALL,   /* of the runtime or the driver of the device */
    SC_KINETO_SYNC,   /* a wait of the host or of a stream */
    SC_KINETO_KERNEL,
    SC_KINETO_COPY,
    SC_KINETO_SET,    /* memset */
    SC_KINETO_MEMORY, /* memory is allocated or freed */
    SC_KINETO_THREAD  /* names a thread */
} sc_kineto_kind;

/* Arguments as written, of which an event has few. */
typedef struct sc_kineto_args {
    scan_token dims, types, concrete, stack; /* of operators: lists */
    scan_token record, external;             /* numbers of an operator */
    scan_token correlation, device, stream;
    scan_token grid, block, bytes;
    scan_token wait_stream, wait_record; /* what a stream waits for */
    scan_token group, ranks, coll, dtype, in_elems, out_elems, group_size;
    scan_token from, to;               /* of messages: ranks */
    scan_token change, total, address; /* of memory */
    scan_token device_type, device_id;
    scan_token name; /* of a thread */
} sc_kineto_args;

/* Valid until the next event is read; of a text in memory its tokens are valid as
 * long as that. */
typedef struct sc_kineto_event {
    sc_kineto_kind kind;
    scan_token ph, cat, name, pid, tid, ts, dur;
    const sc_kineto_args *args; /* of OTHER and PYTHON maybe not read */
} sc_kineto_event;

/* What could not be read. */
typedef struct sc_kineto_damage {
    uint64_t n_broken; /* events */
    sc_pos broken;     /* the first of them */
    bool truncated;    /* the file ends inside */
    sc_pos end;        /* where; behind is nothing that is whole */
} sc_kineto_damage;

#define SC_KINETO_HINT \
    "a trace of PyTorch's profiler is JSON with \"traceEvents\""

typedef struct sc_kineto_sink {
    void *ctx;
    /* Gets an event, which is at s->at.  A failure ends the reading. */
    sc_status (*event)(void *ctx, const sc_kineto_event *e);
    /* Gets the other members of the file's root, before and behind the events;
     * NULL: nothing is read behind these. */
    void (*member)(void *ctx, const scan_token *key, const scan_token *value);
} sc_kineto_sink;

/* Reads a trace from the begin of `s`. Errors: a file that is not JSON, or has no
 * list of events. */
sc_status sc_kineto_read(scan *s, const sc_kineto_sink *to,
                         sc_kineto_damage *out, sc_err *err);

/* The number of a process or thread: that of "7" and "stream 7" is 7, and that
 * of another text its hash. */
int64_t sc_kineto_id(const scan_token *t);

/* Times of a profile begin at the first whole microsecond that is asked for. */
typedef struct sc_profile_clock {
    bool started;
    int64_t origin_us;
} sc_profile_clock;

/* A time of the recording clock, `us` and `ps`, from the origin. False if they are
 * 46 days apart. */
bool sc_profile_time(sc_profile_clock *c, int64_t us, sc_time ps, sc_time *out);

/* When an event began and how long it took, at least 0. False if it has no usable
 * time. */
bool sc_kineto_time(sc_profile_clock *c, const sc_kineto_event *e,
                    sc_time *start, sc_time *dur);

#endif
