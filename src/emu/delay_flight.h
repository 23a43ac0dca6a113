/* SPDX-License-Identifier: Apache-2.0 */
/*
 * delay_flight.h - bytes on their way over routes of delay_links.h, which may
 * become longer meanwhile.
 */
#ifndef EMU_DELAY_FLIGHT_H
#define EMU_DELAY_FLIGHT_H

#include "emu/delay_links.h"

typedef struct delay_flight {
    const delay_route *route;
    uint64_t tag, bytes;
    sc_time starts; /* latency is over */
    double weight;
    /* > 0: bytes are picoseconds of work, of which a link of its own lets it do
     * one per picosecond; it takes so many bytes per picosecond of its route,
     * of no link more than there is.  0: bytes are bytes of the route. */
    double per_ps;
    /* delay_flights' own. */
    uint32_t id, at, flow, version;
    uint32_t *link; /* [room] the first is its own */
    double *share;
    uint32_t room;
} delay_flight;

typedef struct delay_flights {
    sc_arena *a;
    sc_flows *flows;
    delay_links *links;
    sc_time now;           /* last advanced to */
    delay_flight **flight; /* [n_flights] by tag of their flows */
    uint32_t *moving;      /* [n_moving] ids under way ... */
    uint32_t *free;        /* [n_free] ... and those that are not */
    uint32_t n_flights, flight_cap, moving_cap, free_cap, n_moving, n_free;
} delay_flights;

/* Links carry `factor` of their rate. */
sc_status delay_flights_init(delay_flights *x, double factor, sc_arena *a,
                             sc_err *err);

/* Sends a flight at `t`, of which the fields above are given.  Its id;
 * SC_FLOW_NONE when out of memory. */
uint32_t delay_flights_send(delay_flights *x, const delay_flight *f, sc_time t);

/* After routes have become longer.  False when out of memory. */
bool delay_flights_reroute(delay_flights *x);

/* As sc_flows_advance(); ends' tags are ids, which the caller frees. */
uint32_t delay_flights_advance(delay_flights *x, sc_time t,
                               const sc_flow_end **ends);
void delay_flights_free(delay_flights *x, uint32_t id);

/* Forgets one that is under way, and frees it. */
void delay_flights_cancel(delay_flights *x, uint32_t id);

#endif
