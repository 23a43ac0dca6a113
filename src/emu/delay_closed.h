/* SPDX-License-Identifier: Apache-2.0 */
/*
 * delay_closed.h - inside emu/: the kinds of operations of the closed models,
 * and their prices.
 */
#ifndef EMU_DELAY_CLOSED_H
#define EMU_DELAY_CLOSED_H

#include "cost/cost.h"
#include "emu/delay_file.h"
#include "emu/delay_flight.h"
#include "emu/delay_model.h"

/* An operation of a group, or between two of its members. */
typedef struct closed_kind {
    const emu_group *group;
    sc_coll coll;
    uint32_t from, to; /* positions of sender and receiver, for SEND and RECV */
    uint32_t n;        /* number of members that take part */
    sc_place place;
    delay_route *route;
    delay_fit fit; /* used by models that read a file */
} closed_kind;

typedef struct closed_price {
    const closed_kind *kind; /* NULL: unused entry */
    uint64_t bytes;
    sc_time latency, work;
} closed_price;

#define CLOSED_PRICES 512

struct delay_closed {
    delay_flights flights;
    bool ports;       /* operations load ports, not the machine's links */
    delay_file *file; /* NULL: prices of cost/ */

    sc_map pairs; /* the kinds of SEND and RECV */

    closed_price price[CLOSED_PRICES]; /* indexed by hash */
};

/* The kind of an operation; it is made at its first use.  `*longer`: routes of
 * other kinds have become longer. */
sc_status closed_kind_of(emu_delay *d, const emu_flight *f, closed_kind **out,
                         bool *longer, sc_err *err);

/* The time of an operation alone, what-ifs included; valid until the next
 * call. */
sc_status closed_price_of(emu_delay *d, const closed_kind *k, uint64_t bytes,
                          const closed_price **out, sc_err *err);

/* The bytes that sc_cost_coll() prices: barriers have bytes, too. */
double closed_bytes(sc_coll coll, uint64_t bytes);

#endif
