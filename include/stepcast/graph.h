/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graph.h - an execution graph of your own, run by the engine that predicts.
 *
 * Operations are on one device or several at once.  A device has streams; an
 * operation occupies one stream of each of its devices, and a stream runs its
 * operations one after the other, in the order in which they were added.  An
 * operation starts when what it waits for has ended and it is first on its
 * streams.  Messages share the links of a machine: each gets its max-min fair
 * part.
 *
 *   stepcast_graph *g = stepcast_graph_new(2, machine, errors);
 *   uint32_t work = stepcast_graph_compute(g, "layer 0", 0, 5000000);
 *   uint32_t send = stepcast_graph_send(g, "activations", 0, 1, 1 << 20);
 *   stepcast_graph_wait(g, send, work);
 *   stepcast_graph_run(g, errors);
 *   printf("%lld ps\n", (long long)stepcast_graph_makespan(g));
 *
 * Adding fails only by returning STEPCAST_NONE; stepcast_graph_run() then fails
 * too and says why, so that a program may check there alone.
 *
 * Units: picoseconds, bytes.
 */
#ifndef STEPCAST_GRAPH_H
#define STEPCAST_GRAPH_H

#include <stepcast/machine.h>

#ifdef __cplusplus
extern "C" {
#endif

#define STEPCAST_NONE UINT32_MAX

typedef enum stepcast_kind {
    STEPCAST_KIND_COMPUTE,    /* kernels on the device */
    STEPCAST_KIND_COLLECTIVE, /* a collective operation of its devices */
    STEPCAST_KIND_TRANSFER,   /* a message */
    STEPCAST_KIND_COPY,       /* to or from another memory */
    STEPCAST_KIND_HOST,       /* the device waits for its host */
    STEPCAST_KIND_MARK        /* takes no time and no stream: joins waits */
} stepcast_kind;

typedef enum stepcast_stream {
    STEPCAST_STREAM_COMPUTE,   /* kernels, and what blocks them */
    STEPCAST_STREAM_COMM,      /* exchanges of activations and weights */
    STEPCAST_STREAM_GRADIENTS, /* exchanges of gradients */
    STEPCAST_STREAM_TRANSFER,  /* messages between stages of a pipeline */
    STEPCAST_STREAM_COPY,
    STEPCAST_STREAM_HOST,
    STEPCAST_STREAM_TRANSFER_ODD /* the same in a second queue, as for every other
                                    pair of neighbouring stages */
} stepcast_stream;

typedef struct stepcast_graph stepcast_graph;

/* A graph on the first `devices` devices of a machine, which must outlive it;
 * `machine` NULL: nothing is shared and nothing can be sent.  NULL: `errors`
 * says why. */
STEPCAST_API stepcast_graph *stepcast_graph_new(uint32_t devices,
                                                const stepcast_machine *machine,
                                                stepcast_errors *errors);
STEPCAST_API void stepcast_graph_free(stepcast_graph *graph);

/* An operation; all that it points to is copied. */
typedef struct stepcast_operation {
    size_t size;
    const char *name;
    stepcast_kind kind;
    stepcast_stream stream;
    uint32_t n_devices; /* that it is on; a mark may be on none */
    const uint32_t *devices;
    int64_t duration_ps; /* alone, with nothing beside it */
    int64_t latency_ps;  /* of that, at its start: what no link limits */
    uint64_t bytes;      /* that it moves */
    uint32_t n_links;    /* of the machine, that they cross */
    const uint64_t *links;
    const double *shares; /* bytes on each link per byte; NULL: all 1 */
} stepcast_operation;

/* Adds an operation.  Its number: 0, 1, 2 in the order added; or STEPCAST_NONE.
 */
STEPCAST_API uint32_t stepcast_graph_add(stepcast_graph *graph,
                                         const stepcast_operation *operation);

/* The same in short: a kernel; a message along the machine's route, as fast as
 * its slowest link, on the transfer stream of the sender. */
STEPCAST_API uint32_t stepcast_graph_compute(stepcast_graph *graph,
                                             const char *name, uint32_t device,
                                             int64_t duration_ps);
STEPCAST_API uint32_t stepcast_graph_send(stepcast_graph *graph,
                                          const char *name, uint32_t from,
                                          uint32_t to, uint64_t bytes);

/* Operation `operation` waits until `earlier` has ended, which has to have been
 * added before it.  STEPCAST_USAGE: it was not. */
STEPCAST_API stepcast_status stepcast_graph_wait(stepcast_graph *graph,
                                                 uint32_t operation,
                                                 uint32_t earlier);

/* Operations of kind `slowed` run at `rate`, over 0 and up to 1, while one of
 * kind `by` runs on the same device.  At first all rates are 1. */
STEPCAST_API stepcast_status stepcast_graph_slow(stepcast_graph *graph,
                                                 stepcast_kind slowed,
                                                 stepcast_kind by, double rate);

/* Runs all operations, once; nothing can be added afterwards.  STEPCAST_INPUT:
 * an operation that can't be, `errors` says which; STEPCAST_USAGE: it has run.
 */
STEPCAST_API stepcast_status stepcast_graph_run(stepcast_graph *graph,
                                                stepcast_errors *errors);

/* Of a graph that has run, else -1: when the last operation ends. */
STEPCAST_API int64_t stepcast_graph_makespan(const stepcast_graph *graph);

typedef struct stepcast_timing {
    size_t size;
    int64_t start_ps, end_ps;
    int64_t shared_ps;     /* longer than alone by messages on its links */
    int64_t overlapped_ps; /* longer than alone by what ran beside it */
    uint32_t cause;        /* whose end let it start; STEPCAST_NONE: time 0 */
} stepcast_timing;

/* STEPCAST_USAGE: the graph has not run, there is no such operation, or
 * `out->size` is not set. */
STEPCAST_API stepcast_status stepcast_graph_timing(const stepcast_graph *graph,
                                                   uint32_t operation,
                                                   stepcast_timing *out);

/* Picoseconds that a device's compute stream spends in operations of `kind`,
 * between 0 and the makespan.  -1: not run, or there is no such device. */
STEPCAST_API int64_t stepcast_graph_busy(const stepcast_graph *graph,
                                         uint32_t device, stepcast_kind kind);

/* Bytes that a link of the machine carried; 0: none, or not run. */
STEPCAST_API double stepcast_graph_carried(const stepcast_graph *graph,
                                           uint64_t link);

/* The run as Chrome trace events, for Perfetto; the caller owns `*out`.
 * STEPCAST_USAGE: not run. */
STEPCAST_API stepcast_status stepcast_graph_trace(const stepcast_graph *graph,
                                                  stepcast_document **out,
                                                  stepcast_errors *errors);

#ifdef __cplusplus
}
#endif
#endif
