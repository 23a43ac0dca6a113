/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nccl_graph.h - builds NCCL's graph of a node.
 *
 * The order of nodes and links is part of the result: NCCL takes the first of
 * equal paths, and its search tries GPUs in this order.
 */
#ifndef HW_NCCL_GRAPH_H
#define HW_NCCL_GRAPH_H

#include "hw/hw_nccl.h"

#define HW_LOCAL_WIDTH 5000.0F /* GB/s of a link without a limit */

typedef struct hw_topo {
    sc_topo *t;
    uint32_t cap; /* nodes */
    sc_arena *arena;
    sc_err *err;
} hw_topo;

sc_status hw_topo_init(hw_topo *b, sc_nccl version, uint32_t max_nodes,
                       sc_arena *a, sc_err *err);

/* `pos` is the position of the error if there are too many nodes of a kind. */
sc_status hw_topo_add(hw_topo *b, sc_topo_kind kind, uint64_t id, sc_pos pos,
                      uint32_t *out);

/* The node, or UINT32_MAX. */
uint32_t hw_topo_find(const sc_topo *t, sc_topo_kind kind, uint64_t id);

/* Sets a CPU as the kernel names it; an unknown or NULL vendor counts as no
 * vendor. */
void hw_topo_cpu(sc_topo_node *cpu, const char *arch, const char *vendor,
                 uint32_t model);

/* Adds a directed link; if the link exists, its width grows. */
sc_status hw_topo_link(hw_topo *b, uint32_t from, uint32_t to, sc_wire wire,
                       float width);
/* Both directions. */
sc_status hw_topo_join(hw_topo *b, uint32_t x, uint32_t y, sc_wire wire,
                       float width);

/* Joins the CPUs, merges the two levels that some switches falsely show, and
 * puts the upward link of every node last. */
sc_status hw_topo_finish(hw_topo *b);

/* The rate of one NVLink of a generation, GB/s. */
float hw_topo_nvlink(sc_nccl version, uint32_t sm);

#endif
