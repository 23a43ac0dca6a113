/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace_machine.h - a machine as the files that run a workload: system.json,
 * network.yml and memory.json as ASTRA-sim reads them (trace_system.h).
 */
#ifndef SC_TRACE_MACHINE_H
#define SC_TRACE_MACHINE_H

#include "trace/trace_system.h"

typedef struct sc_trace_machine {
    const sc_hw *hw;
    sc_precision precision;             /* whose peak a roofline uses */
    double remote_bw, remote_latency_s; /* of tasks that load from or store to
                                           another memory, bytes/s; 0: none do */
    uint32_t at_once; /* chunks that share a link, and one chunk per collective
                       * if there is one dimension, as in an emulation; 0: as
                       * in the example systems of ASTRA-sim */
} sc_trace_machine;

typedef struct sc_trace_file {
    const char *name, *text;
} sc_trace_file;

#define SC_TRACE_MACHINE_FILES 3

/* The texts of the three files, in the arena.  A dimension becomes the building block
 * whose links carry what its devices have: Ring, FullyConnected or Switch, of
 * nominal bandwidth (1 GB/s there is 2^30 bytes/s); one hop through a Switch is
 * two links of half its latency.  What has no such block, or no place in the
 * file, is said in `notes`, a line each.  Errors: SC_C_UNSUPPORTED of a
 * machine of one device, which has no network; SC_C_IO. */
sc_status sc_trace_machine_files(const sc_trace_machine *m, sc_arena *a,
                                 sc_trace_file out[SC_TRACE_MACHINE_FILES],
                                 sc_text *notes, sc_err *err);

/* Writes them into `dir`. */
sc_status sc_trace_machine_write(const sc_trace_machine *m, const char *dir,
                                 sc_arena *a, sc_text *notes, sc_err *err);

/* What system.json and memory.json say, without the files. */
void sc_trace_machine_system(const sc_trace_machine *m, sc_system *out,
                             sc_pool *pool);

/* The same machine as a network of dimensions, those of one member left out:
 * links of nominal bandwidth, those of a ring of two as one.  Error:
 * SC_C_UNSUPPORTED at `pos` of a machine of one device. */
sc_status sc_trace_machine_network(const sc_hw *hw, sc_pos pos, sc_network *out,
                                   sc_err *err);

/* These links are all that there is to the machine: every dimension is a ring,
 * a mesh, a switch or fully connected, and its messages meet nowhere else. */
bool sc_trace_machine_is_network(const sc_hw *hw);
#endif
