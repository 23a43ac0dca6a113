/* SPDX-License-Identifier: Apache-2.0 */
/* graph_exec.h - former names of graph.h, until their users have moved. */
#ifndef SC_GRAPH_EXEC_H
#define SC_GRAPH_EXEC_H

#include <stepcast/graph.h>

typedef sc_graph sc_exec;
typedef sc_graph_builder sc_exec_builder;
typedef sc_op_desc sc_exec_op;

#define sc_exec_builder_new sc_graph_builder_new
#define sc_exec_add_device  sc_graph_add_device
#define sc_exec_add_traffic sc_graph_add_traffic
#define sc_exec_add_dep     sc_graph_add_dep
#define sc_exec_build       sc_graph_build

/* Without group and peer. */
static inline sc_op sc_exec_add_op(sc_exec_builder *to, const sc_exec_op *desc)
{
    sc_exec_op own = *desc;
    own.group = own.peer = SC_NONE;
    if (own.n_dev == 0) own.cls = SC_NONE;
    if (own.n_dev == 0) own.dev = NULL;
    return sc_graph_add_op(to, &own);
}

#endif
