/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cost_host.h - the time of an operation of an MPI library between hosts.
 *
 * Messages of alpha + bytes / rate (Hockney), in the algorithms of Thakur,
 * Rabenseifner and Gropp, "Optimization of collective communication operations
 * in MPICH" (2005).  The constants are in host.c, and no measurement of
 * collectives is fitted: see docs/emulate/delay.md.
 *
 * Units: bytes (nccl-tests' V, coll.h), seconds.
 */
#ifndef SC_COST_HOST_H
#define SC_COST_HOST_H

#include "coll/coll.h"

typedef struct sc_host_price {
    double seconds, latency; /* latency: the part without bytes */
    uint32_t hops;           /* messages one after the other */
} sc_host_price;

/* The fastest of the algorithms, over a group placed `at`, whose siblings
 * (at->peers) share the adapters of its nodes.  n <= 1 costs nothing. */
sc_host_price sc_cost_host(const sc_hw *hw, sc_coll coll, double bytes,
                           const sc_place *at);

#endif
