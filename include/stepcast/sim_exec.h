/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim_exec.h - the executor that knows topology: operations on streams of
 * devices, which slow each other down where they overlap and share the links
 * that they cross.
 *
 * An operation occupies one stream on each of its devices; it starts when what
 * it waits for has completed and it is first on all of them.  Streams are
 * queues in the order of operations' ids (or of readiness, by the rules).  An
 * operation is work and a rate: compute beside communication progresses at the
 * device's rates for that pair, communication at the smaller of that and its
 * weighted max-min fair share of every link that it crosses; both are timed
 * anew when what runs on a device or link changes.  An operation's own speed
 * alone (its price) is never exceeded, and alone it is kept: one that is
 * priced faster than a link fills that link.  Of operations that one link
 * limits all move their bytes (sc_exec.bytes, of one group) at the same rate.
 *
 * Devices are ranks, or classes of ranks that do the same: then the traffic of
 * an operation is that of all its siblings.
 *
 * Units: picoseconds, bytes, bytes/s.  Bit-identical everywhere.
 */
#ifndef SC_SIM_EXEC_H
#define SC_SIM_EXEC_H

#include <stepcast/base/rules.h>
#include <stepcast/graph_exec.h>
#include <stepcast/hw.h>
#include <stepcast/sim.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sc_exec_opts {
    const sc_hw *hw;       /* links; NULL: nothing is shared */
    const sc_rules *rules; /* NULL: our own */
    sc_sim_opts rates;     /* overlap on a device */
    double gamma;          /* >= 0: compute and gradient exchanges that overlap
                              both take 1 + gamma times as long, whatever
                              `rates` say; NaN: by the rates */
    double link_share[2];  /* by sc_scope, see sc_fabric_opts */
} sc_exec_opts;

void sc_exec_opts_init(sc_exec_opts *o);

typedef struct sc_exec_result {
    uint32_t n_ops;
    sc_time makespan;
    sc_time *start, *end; /* [n_ops] */
    sc_op *cause;         /* [n_ops] as sc_result */
    const sc_op *order;   /* [n_ops] such that every stream ran its own in that
                             order; NULL: by id */
    sc_time *finish;      /* [n_devices] */
    sc_time *shared;      /* [n_ops] longer than alone: waited on links */
    sc_time *overlapped;  /* [n_ops] longer than alone: beside others */
    uint32_t n_links;     /* links that were used */
    uint64_t *link;       /* [n_links] */
    double *link_bytes;   /* [n_links] carried */
    uint64_t n_events;
} sc_exec_result;

/* Where nothing overlaps or shares, one pass over the ids; else events; by
 * readiness (rules.ready_order) rounds.  Errors: SC_C_RANGE (an option, a link
 * that the machine does not have, an op that ends beyond sc_time),
 * SC_C_TOO_BIG, SC_C_MEMORY; SC_C_BUG for an execution not by
 * sc_exec_build(). */
sc_status sc_exec_run(const sc_exec *x, const sc_exec_opts *o, sc_arena *a,
                      sc_exec_result *out, sc_err *err);

/* As sc_result_breakdown(), of one device. */
void sc_exec_breakdown(const sc_exec *x, const sc_exec_result *r,
                       uint32_t device, sc_time until, sc_time out[SC_N_CATS]);

/* ---- memory by the lifetimes of tensors ---------------------------------- */

typedef struct sc_mem_opts {
    uint64_t capacity;           /* bytes of a device; 0: no limit */
    uint64_t context;            /* of the driver and libraries, on top */
    const uint64_t *capacity_of; /* [n_devices] where they differ; NULL */
} sc_mem_opts;

typedef struct sc_mem_point {
    sc_time t;
    uint64_t live;     /* tensors, rounded as the allocator does */
    uint64_t reserved; /* segments it holds: what a card shows less context */
} sc_mem_point;

typedef struct sc_mem_device {
    uint32_t n;
    sc_mem_point *at; /* [n] every change */
    sc_time peak_t;
    uint64_t peak_live, peak_reserved;
    uint64_t by_kind[SC_N_MEM_KINDS]; /* at the peak */
    uint32_t n_top;
    uint32_t *top; /* [n_top] tensors (indices) at the peak, largest first; at
                      most 16 */
    bool fits;
} sc_mem_device;

/* PyTorch's caching allocator: 512-byte blocks; segments of 2 MiB for what is
 * up to 1 MiB, of 20 MiB up to 10 MiB, of multiples of 2 MiB beyond; a free
 * block that is large enough is split, best fit first, and whole free segments
 * are given back only before a device would be full.  At one moment frees come
 * before allocations.  Errors: SC_C_TOO_BIG, SC_C_MEMORY; SC_C_BUG for a
 * tensor whose op or device does not exist. */
sc_status sc_memory_run(const sc_exec *x, const sc_exec_result *r,
                        const sc_lifetime *tensors, uint32_t n,
                        const sc_mem_opts *o, sc_arena *a,
                        sc_mem_device **out /* [n_devices] */, sc_err *err);

#ifdef __cplusplus
}
#endif
#endif
