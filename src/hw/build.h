/* SPDX-License-Identifier: Apache-2.0 */
/* build.h - builds machines from descriptions. */
#ifndef HW_BUILD_H
#define HW_BUILD_H

#include "hw/cluster.h"

/* A rate of network adapters that replaces the machine's. */
typedef struct hw_adapters {
    double bw; /* 0: none */
    sc_pos at;
} hw_adapters;

/* The device of a spec, from its file or from the catalogue. */
sc_status hw_spec_device(const hw_spec *s, sc_arena *a, const sc_device **out,
                         sc_err *err);

/* What a name of the catalogue or a cluster file describes. */
sc_status hw_spec_find(const char *spec, sc_pos pos, const hw_adapters *nics,
                       sc_arena *a, hw_spec *out, sc_err *err);

/* Builds what a spec describes. */
sc_status hw_build_spec(const char *name, hw_spec *s, sc_arena *a,
                        const sc_hw **out, sc_err *err);

/* Builds a spec with groups of nodes that differ. */
sc_status hw_build_groups(const char *name, hw_spec *s, sc_arena *a,
                          const sc_hw **out, sc_err *err);

/* Text of a cluster file. */
sc_status hw_build_text(const char *text, size_t len, const char *file,
                        const hw_adapters *nics, sc_arena *a, const sc_hw **out,
                        sc_err *err);

/* Reads the one-line form; whether a text looks like one. */
bool hw_is_line(const char *text);
sc_status hw_build_line(const char *text, sc_pos pos, const hw_adapters *nics,
                        sc_arena *a, const sc_hw **out, sc_err *err);

/* Parses "; key=value" from byte `at` of a text. */
sc_status hw_line_options(const char *text, size_t at, sc_pos pos, hw_spec *s,
                          sc_given *given, sc_arena *a, sc_err *err);

/* Adds a dimension; too many dimensions or devices are an error at `pos`. */
sc_status hw_add_dim(sc_hw *hw, const sc_dim *dim, sc_pos pos, sc_err *err);

/* The network between nodes, as a dimension of `nodes` members. */
sc_status hw_net_dim(const hw_spec *s, uint32_t node_size, uint32_t nodes,
                     double latency, sc_dim *out, sc_err *err);

/* Computes totals, host and hash once device and dimensions are set. `net`: the
 * last dimension is the network between nodes. */
sc_status hw_finish(sc_hw *hw, const hw_spec *s, bool net, sc_err *err);

/* Sets the collective library: version, options, topology file, memo. Called
 * after hw_finish(). */
sc_status hw_library(const hw_spec *s, sc_hw *hw, sc_arena *a, sc_err *err);

/* Sets the power of the network between nodes. Called after hw_finish(). */
sc_status hw_network_power(sc_hw *hw, sc_arena *a, sc_err *err);

#endif
