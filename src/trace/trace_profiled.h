/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace_profiled.h - what a profiler recorded of one rank: operators and calls
 * on threads of the host, kernels and copies on streams of the device.
 *
 * The traces of PyTorch's profiler (Kineto) of every version are read: Chrome
 * trace JSON, plain or packed by gzip or zstd.  Real files are often not quite
 * JSON, so the reader accepts control characters, quotes that are not escaped,
 * invalid UTF-8, integers of any size, metadata in any place and a missing end;
 * it says in `warnings` what it had to leave out.
 *
 * Reports of Nsight Systems are read as the databases that `nsys export --type
 * sqlite` writes, of schemas since 2019; one has all ranks of a node.
 *
 * Memory: 32 bytes for each span, 40 for each change of memory, and each
 * distinct name and shape once.  The file itself is read piece by piece.
 *
 * Times are picoseconds since `origin_ns`, the whole microsecond of the first event
 * in nanoseconds of the recording clock.
 */
#ifndef SC_TRACE_PROFILED_H
#define SC_TRACE_PROFILED_H

#include "base/base.h"
#include "graph/graph_coll.h"

typedef enum sc_trace_span_kind {
    SC_SPAN_OP,   /* operator on the host */
    SC_SPAN_MARK, /* annotation by the program or the framework */
    SC_SPAN_STEP, /* ProfilerStep#N, "step N" */
    SC_SPAN_CALL, /* call of the runtime or the driver of the device */
    SC_SPAN_SYNC, /* a wait of the host or of a stream, as the device saw it */
    SC_SPAN_KERNEL, /* the kinds from here on occupy a stream */
    SC_SPAN_COLL,   /* kernel of a communication library */
    SC_SPAN_COPY,
    SC_SPAN_SET, /* memset */
    SC_N_SPAN_KINDS
} sc_trace_span_kind;

extern const char
    *const sc_trace_span_kind_names[]; /* "operator" ...; NULL ends */

/* What a call of the runtime does to the host and to streams. */
typedef enum sc_call_kind {
    SC_CALL_OTHER, /* launches, and calls that wait for nothing */
    SC_CALL_STREAM_SYNC,
    SC_CALL_DEVICE_SYNC,
    SC_CALL_EVENT_SYNC,
    SC_CALL_COPY,         /* may wait for its own copy */
    SC_CALL_RECORD,       /* an event is recorded on a stream */
    SC_CALL_STREAM_WAIT,  /* a stream waits for an event */
    SC_CALL_GRAPH_LAUNCH, /* kernels of a CUDA graph belong to it */
    SC_N_CALL_KINDS
} sc_call_kind;

typedef struct sc_trace_span {
    sc_time start, dur;
    uint32_t name;  /* index into `name` */
    uint32_t args;  /* index into `args`; 0: none */
    uint32_t id;    /* correlation of calls and device spans; of operators and
                       annotations the number of the record function, or else
                       the profiler's own; 0: none */
    uint16_t lane;  /* index into `lanes` */
    uint8_t kind;   /* sc_trace_span_kind */
    uint8_t detail; /* CALL: sc_call_kind; COLL: sc_coll, or SC_N_COLLS */
} sc_trace_span;

/* Arguments of a span.  Equal ones are stored once.  Texts are indices into
 * `name`, 0 for none, and as written in the file. */
typedef struct sc_trace_span_args { /* without padding */
    uint32_t dims, types, concrete; /* of operators */
    uint32_t stack;                 /* call stack */
    uint32_t group;                 /* name of the process group */
    uint32_t ranks;                 /* its ranks: "[0, 1]" */
    uint32_t coll, dtype;           /* as the framework names them */
    uint64_t in_elems, out_elems;   /* of collectives */
    uint64_t bytes;                 /* of copies and memsets */
    uint32_t group_size;            /* 0: not stated */
    uint32_t from,
        to; /* of messages: ranks of the job, plus 1; 0: not stated */
    uint32_t grid, block; /* of kernels: "[784, 1, 1]" */
    uint32_t record;      /* SYNC: correlation of the record */
    int32_t wait_stream;  /* SYNC: the stream that is waited for; -1 */
    int32_t stream;       /* device spans and SYNC; -1: not stated */
} sc_trace_span_args;

typedef struct sc_lane {
    int64_t pid;     /* host: process; device: its number */
    int64_t tid;     /* host: thread; device: stream */
    bool device;     /* a stream, not a thread */
    uint32_t thread; /* name of the thread, an index into `name`; 0: none */
    uint32_t n;      /* spans on the lane */
} sc_lane;

#define SC_NO_LANE UINT16_MAX /* not stated */

typedef struct sc_memory_change {
    sc_time at;
    int64_t bytes;    /* allocated, or negative: freed */
    uint64_t total;   /* bytes allocated after it; 0: not stated */
    uint64_t address; /* 0: not stated */
    uint16_t lane;    /* of the thread, an index into `lanes`; SC_NO_LANE */
    uint16_t device;  /* its number in the process */
} sc_memory_change;

/* A process group as the file's metadata state it. */
typedef struct sc_profiled_group {
    const char *name;
    uint32_t n;
    const uint32_t *rank; /* [n] */
} sc_profiled_group;

/* A part of a storage that an operator reads or writes. */
typedef struct sc_trace_use {
    uint64_t storage;
    uint64_t first, n; /* elements */
    bool read, written;
} sc_trace_use;

typedef struct sc_profiled {
    const char *file;
    int64_t rank;        /* -1: not stated */
    uint32_t world_size; /* 0: not stated */
    const char *backend; /* "nccl"; NULL: not stated */
    const char *device;  /* as the driver names it; NULL: not stated */
    int64_t origin_ns;

    uint64_t n_spans;
    sc_trace_span *
        *chunk; /* spans in chunks of SC_SPAN_CHUNK; sc_trace_span_at() */
    uint32_t n_lanes;
    sc_lane *lanes;
    uint32_t n_names;
    const char **name; /* [n_names]; the first is "" */
    uint32_t n_args;
    sc_trace_span_args *args; /* [n_args]; the first is empty */
    uint32_t n_changes;
    sc_memory_change *change; /* [n_changes] of device memory, as recorded */
    uint32_t n_groups;
    sc_profiled_group *group; /* [n_groups] */

    /* What operators read and write, if an execution trace was added
     * (trace_et.h). NULL: none was. */
    uint32_t *node;     /* [n_spans] its node there, plus 1; 0: none */
    uint32_t *use_head; /* [n_nodes + 1] */
    sc_trace_use *use;  /* those of node i are [use_head[i], use_head[i + 1]) */

    uint64_t n_python;  /* Python frames, which are not kept */
    uint64_t n_ignored; /* other events that carry nothing */
    uint64_t n_broken;  /* events that could not be read */
} sc_profiled;

#define SC_SPAN_CHUNK (1 << 14)

static inline sc_trace_span *sc_trace_span_at(const sc_profiled *m, uint64_t i)
{
    return &m->chunk[i / SC_SPAN_CHUNK][i % SC_SPAN_CHUNK];
}

static inline bool sc_trace_span_on_device(const sc_trace_span *s)
{
    return s->kind >= SC_SPAN_KERNEL;
}

/* Reads the ranks of a file: one, or in a report of Nsight Systems one for each
 * process that runs kernels, in the order of their devices.  `warnings` receives
 * lines without the name of the file.  Errors: a file without events, or only
 * with such that can't be read; files of other profilers by name, with a hint;
 * a report, where SQLite is missing. */
sc_status sc_profiled_read_all(const char *path, sc_arena *a, sc_text *warnings,
                               sc_profiled **out, uint32_t *n, sc_err *err);
/* The same from memory; `data` is borrowed. */
sc_status sc_profiled_read_all_memory(const char *data, size_t len,
                                      const char *file, sc_arena *a,
                                      sc_text *warnings, sc_profiled **out,
                                      uint32_t *n, sc_err *err);

/* The same for files of one rank; another number is an error. */
sc_status sc_profiled_read(const char *path, sc_arena *a, sc_text *warnings,
                           sc_profiled *out, sc_err *err);
sc_status sc_profiled_read_memory(const char *data, size_t len,
                                  const char *file, sc_arena *a,
                                  sc_text *warnings, sc_profiled *out,
                                  sc_err *err);

#endif
