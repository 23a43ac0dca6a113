/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model.h - a measured trace as what causes what, without its waits.
 *
 * A rank has items on threads of the host (launches, waits, boundaries of
 * steps) and device ops on streams.  What was recorded is split into work, which
 * a replay repeats, and waits, which follow from the order:
 *
 *   host:   the work between two items of a thread, or behind the item of
 *           another thread that handed over to this one
 *   launch: the latency until the kernel can start
 *   stream: the gap before a kernel, which follows the one before or what an
 *           event waits for
 *   queue:  a launch returns when there is room for it
 *
 * Times are picoseconds since the begin of the rank's window.
 */
#ifndef REPLAY_MODEL_H
#define REPLAY_MODEL_H

#include "replay/replay.h"

#define REPLAY_NONE UINT32_MAX

typedef enum replay_item_kind {
    REPLAY_LAUNCH,
    REPLAY_WAIT,       /* for device ops */
    REPLAY_RESUME,     /* the end of a gap, in which something may have ended */
    REPLAY_STEP_BEGIN, /* ProfilerStep */
    REPLAY_STEP_END,
} replay_item_kind;

/* A list of device ops in replay_rank.wait. */
typedef struct replay_waits {
    uint32_t first, n;
} replay_waits;

typedef struct replay_item {
    sc_time enter;   /* when the call begins */
    sc_time leave;   /* from when the work behind it counts */
    sc_time tail;    /* of leave: after everything that it waits for */
    uint32_t thread; /* index into replay_rank.thread */
    uint32_t before; /* the item of another thread that it follows */
    uint32_t device; /* LAUNCH: its first device op */
    uint32_t span;   /* of the call; REPLAY_NONE */
    uint32_t op;     /* innermost operator around it, a span; REPLAY_NONE */
    uint32_t comm;   /* annotation of a collective around it, the same */
    replay_waits waits;
    uint8_t kind;   /* replay_item_kind */
    uint8_t queued; /* returns only if the queue of launches has room */
} replay_item;

typedef struct replay_device_op {
    sc_time start, dur; /* recorded */
    sc_time latency;    /* from the begin of its launch */
    sc_time gap;        /* of its stream, before it starts */
    uint32_t stream;    /* index into replay_rank.stream */
    uint32_t item;      /* that launched it; REPLAY_NONE: unknown */
    uint32_t prev;      /* the op before it on the stream; REPLAY_NONE */
    uint32_t frees;     /* the op that has to end before its launch returns */
    uint32_t drains;    /* an op of another stream that fills the device, which
                           has to be dispatched first; REPLAY_NONE */
    sc_time drain;      /* from its start on */
    sc_time earliest;   /* of the op and its gap, in the window; 0: any time */
    uint32_t span;
    uint32_t coll; /* index into replay_model.coll; REPLAY_NONE */
    replay_waits waits;
} replay_device_op;

/* A device op reads what another one has written. */
typedef struct replay_flow {
    uint32_t before, after; /* device ops */
} replay_flow;

typedef struct replay_step {
    const char *name;
    uint32_t begin, end; /* items; REPLAY_NONE: the trace has no steps */
    sc_time from, to;
} replay_step;

typedef struct replay_rank {
    const sc_profiled *m;
    uint32_t rank;
    sc_time from, to; /* of the window, as in the trace */
    sc_time offset;   /* from the begin of the first window of all ranks to that
                         of this one */
    bool gpu_only;    /* no calls of the host */
    uint32_t n_threads, n_streams, n_items, n_ops, n_waits, n_steps;
    uint16_t *thread;      /* [n_threads] lane of the trace */
    uint16_t *stream;      /* [n_streams] */
    uint32_t *thread_head; /* [n_threads + 1] into item */
    uint32_t *stream_head; /* [n_streams + 1] into op */
    replay_item *item;     /* [n_items] by thread, then by enter */
    replay_device_op *op;  /* [n_ops] by stream, then by start */
    uint32_t *wait;        /* [n_waits] device ops */
    uint32_t *host; /* spans of the host by lane, start, falling duration */
    uint32_t *host_head; /* [lanes + 1] into it */
    uint32_t *parent;    /* [spans] operator or annotation around a span of the
                              host; REPLAY_NONE */
    replay_step *step;   /* [n_steps] */
    uint32_t n_flows;    /* 0 without an execution trace */
    replay_flow *flow;   /* [n_flows] */
    uint32_t queue;      /* launches that may be outstanding; 0: no limit */
    sc_time usual_latency, usual_gap;
    sc_time unrecorded;  /* gaps beside kernels of CUDA graphs */
    sc_time from_before; /* waits for work from before the trace */
} replay_rank;

/* One collective of several traced ranks. */
typedef struct replay_coll {
    uint32_t n;
    uint32_t *rank; /* [n] index into replay_model.rank */
    uint32_t *op;   /* [n] device op there */
    sc_time *lag;   /* [n] its end behind the first end */
    sc_time dur;    /* from the last arrival to the first end */
    bool message;   /* from one rank to another */
} replay_coll;

struct sc_replay_model {
    uint32_t n_ranks, n_colls;
    replay_rank *rank;
    replay_coll *coll;
    sc_time measured; /* until the last step ends */
    sc_time residual; /* largest difference of ends of one collective */
    sc_arena *a;
};

/* Fills everything of a rank but `offset` and what refers to collectives. */
sc_status replay_link(const sc_profiled *m, const sc_replay_steps *steps,
                      sc_arena *a, replay_rank *out, sc_err *err);

/* Spans of one stream overlap at most by what clocks differ, ps. */
#define REPLAY_OVERLAP 1500000

/* Sorts the spans of lanes whose spans overlap by queue (lanes.c). `order` [n] is
 * sorted by lane and start. */
sc_status replay_split_lanes(const sc_profiled *m, uint32_t *order, uint32_t n,
                             sc_arena *tmp, sc_err *err);

/* What devices wait for, and hosts for devices (waits.c). */
sc_status replay_find_waits(replay_rank *r, sc_arena *a, sc_err *err);
/* Latencies, gaps and the queue, from what is known to be waited for. */
sc_status replay_find_latencies(replay_rank *r, sc_arena *a, sc_err *err);
/* Which thread hands over to which (threads.c). */
sc_status replay_find_handovers(replay_rank *r, sc_arena *a, sc_err *err);

/* Which device ops hand data to which, by the tensors of an execution trace
 * (flows.c). */
sc_status replay_find_flows(replay_rank *r, sc_arena *a, sc_err *err);
/* Which flows of a rank a graph keeps: covered[i] if its reader waits for its
 * writer, be it through others. `node` [n_ops] are the ops of the graph that
 * device ops are. `owner` and `span` are those of sc_replay_result. */
sc_status replay_cover_flows(const sc_replay_model *m, uint32_t rank,
                             const sc_graph *g, const uint32_t *owner,
                             const uint32_t *span, sc_arena *a, sc_op *node,
                             bool *covered, sc_err *err);
/* Says which flows between streams nothing in the trace waits for. */
sc_status replay_check_flows(const sc_replay_model *m, const sc_graph *g,
                             const uint32_t *owner, const uint32_t *span,
                             sc_arena *a, sc_text *warnings, sc_err *err);

/* Aligns clocks and joins collectives (ranks.c). */
sc_status replay_join(sc_replay_model *m, sc_text *warnings, sc_err *err);

/* When a device op was launched; before the window if that is not known. */
static inline sc_time replay_launched(const replay_rank *r, uint32_t op)
{
    uint32_t i = r->op[op].item;
    return i == REPLAY_NONE ? -1 : r->item[i].enter;
}

/* The kind of the collective of a device op among `size` ranks, and its bytes as
 * nccl-tests counts them; SC_N_COLLS and 0 if the trace does not state them
 * (colls.c). */
sc_coll replay_coll_kind(const replay_rank *r, uint32_t op, uint32_t size,
                         uint64_t *bytes);

/* The ranks of its group: as stated, or else the traced members, or else the
 * world; 0 if nothing tells. */
uint32_t replay_coll_size(const sc_replay_model *m, const replay_rank *r,
                          uint32_t op);

/* The ranks of its group in `out` [*n], in the arena, by what the trace states: a
 * list, or a group of the file's metadata; else the first `size` ranks. False if
 * out of memory. */
bool replay_coll_ranks(const replay_rank *r, uint32_t op, uint32_t size,
                       sc_arena *a, uint32_t **out, uint32_t *n);

/* Whether a collective is a message; then its sender and its receiver are in
 * `peer`, as ranks of the job plus 1, 0: not stated.  A sender states only the
 * receiver, and the other way round. */
bool replay_message(const replay_rank *r, const sc_trace_span_args *x,
                    uint32_t peer[2]);

/* The arguments that describe the collective of a device op. */
const sc_trace_span_args *replay_comm_args(const replay_rank *r, uint32_t op);

/* Operators and annotations around something, from outside to inside, of which
 * `inner` is the innermost: "aten::linear > aten::addmm"; "" if there is none. */
void replay_path(const replay_rank *r, uint32_t inner, char *buf, size_t size);

/* The queue that runs an op of a graph, which all that it runs follow each other
 * in; SC_NONE for delays and collectives of several ranks. */
static inline uint32_t replay_queue(const sc_graph *g, sc_op i)
{
    if (g->kind[i] == SC_OP_MARK) return SC_NONE;
    return g->cls[sc_op_place(g, i)] * SC_N_STREAMS + g->stream[i];
}

static inline sc_time replay_end(const replay_rank *r, uint32_t op)
{
    return r->op[op].start + r->op[op].dur;
}

static inline const sc_trace_span *replay_span(const replay_rank *r, uint32_t i)
{
    return sc_trace_span_at(r->m, i);
}

#endif
