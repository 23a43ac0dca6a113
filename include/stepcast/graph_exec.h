/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graph_exec.h - an execution on devices with links: what sim_exec.h runs.
 *
 * Where sc_graph knows classes of ranks and prices, this knows which devices
 * an operation occupies at once and what it moves over which links of the
 * machine.  Devices are ranks, or classes of ranks that do the same: then the
 * traffic of an operation is that of all its siblings.
 *
 * Ids are a topological order.  Units: picoseconds, bytes.  Everything lives
 * in the arena given to sc_exec_build().
 */
#ifndef SC_GRAPH_EXEC_H
#define SC_GRAPH_EXEC_H

#include <stepcast/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What one operation moves: flows that all progress at one rate.  Shared by
 * operations over the same communicators. */
typedef struct sc_traffic {
    uint32_t n;
    const uint64_t *link; /* [n] links of the machine (sc_hw) */
    const double *share;  /* [n] bytes on the link per byte of the operation's
                             `bytes` (all siblings together) */
} sc_traffic;

typedef struct sc_exec {
    uint32_t n_ops, n_devices, n_traffic;
    /* [n_ops] */
    const char **name;
    sc_time *work;    /* alone */
    sc_time *latency; /* of work, at its start: what no link limits, nor an
                         exchange of gradients slows (rules.overlap_whole) */
    uint8_t *kind;    /* sc_op_kind */
    uint8_t *stream;  /* sc_stream */
    uint8_t *cat;     /* sc_cat */
    uint64_t *bytes;
    double *flops;
    uint32_t *traffic;  /* index, or SC_NONE */
    uint32_t *dev_head; /* [n_ops + 1] CSR into dev */
    uint32_t *dev;
    uint32_t *succ_head; /* [n_ops + 1] CSR; ids are a topological order */
    sc_op *succ;
    const sc_traffic *traffics; /* [n_traffic] */
    const char **device_name;   /* [n_devices] */
    uint32_t *device_rank;      /* [n_devices] a rank that it stands for */
    uint32_t *multiplicity;     /* [n_devices] ranks that it stands for */
} sc_exec;

typedef struct sc_exec_builder sc_exec_builder;

typedef struct sc_exec_op {
    const char *name; /* borrowed */
    sc_time work, latency;
    uint8_t kind, stream, cat;
    uint64_t bytes;
    double flops;
    uint32_t traffic;    /* SC_NONE: shares nothing */
    const uint32_t *dev; /* copied */
    uint32_t n_dev;
} sc_exec_op;

sc_exec_builder *sc_exec_builder_new(sc_arena *a); /* NULL: out of memory */
uint32_t sc_exec_add_device(sc_exec_builder *b, const char *name, uint32_t rank,
                            uint32_t multiplicity);
/* Arrays are borrowed. */
uint32_t sc_exec_add_traffic(sc_exec_builder *b, const sc_traffic *t);
sc_op sc_exec_add_op(sc_exec_builder *b, const sc_exec_op *op);
void sc_exec_add_dep(sc_exec_builder *b, sc_op before, sc_op after);
/* Errors as sc_graph_build(). */
sc_status sc_exec_build(sc_exec_builder *b, sc_arena *a, sc_exec *out,
                        sc_err *err);

/* ---- lifetimes of tensors ------------------------------------------------ */

typedef enum sc_mem_kind {
    SC_MEM_WEIGHT,
    SC_MEM_GRAD,
    SC_MEM_OPTIM,
    SC_MEM_ACTIVATION,
    SC_MEM_COMM,
    SC_MEM_OTHER,
    SC_N_MEM_KINDS
} sc_mem_kind;

extern const char *const sc_mem_kind_names[];

typedef struct sc_lifetime {
    const char *name; /* "layer3.0.conv2 output, micro-batch 4" */
    uint32_t device;
    uint8_t kind; /* sc_mem_kind */
    uint64_t bytes;
    sc_op first;       /* allocated when it starts; SC_NONE: always there */
    const sc_op *last; /* [n_last] freed when all have ended; n_last 0: kept */
    uint32_t n_last;
} sc_lifetime;

#ifdef __cplusplus
}
#endif
#endif
