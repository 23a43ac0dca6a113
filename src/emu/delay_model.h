/* SPDX-License-Identifier: Apache-2.0 */
/*
 * delay_model.h - shared by the delay models: what-ifs, the list of ends, and
 * the functions that delay.c calls.
 */
#ifndef EMU_DELAY_MODEL_H
#define EMU_DELAY_MODEL_H

#include "coll/coll.h"
#include "emu/delay.h"
#include "net/net_flow.h"

#define DELAY_LONGEST (1LL << 60) /* limit of a delay in ps, 13 days */

/* All what-ifs on the network combined. */
typedef struct delay_what {
    double latency;   /* factor of latencies */
    sc_time hop;      /* time added per sequential hop or message */
    double bandwidth; /* factor of bandwidths */
} delay_what;

typedef struct delay_closed delay_closed;
typedef struct delay_messages delay_messages;
typedef struct delay_plugin delay_plugin;

struct emu_delay {
    const sc_emu_config *c;
    sc_arena *a;
    delay_what what;
    emu_delay_end *end; /* [end_cap] result of advance() */
    uint32_t end_cap;
    sc_flows *flows; /* those of closed or messages */
    /* Only one of these is set. */
    delay_closed *closed;
    delay_messages *messages;
    delay_plugin *plugin;
};

/* Multiply a time by a factor or a count; the result is at most
 * DELAY_LONGEST. */
sc_time delay_scaled(sc_time t, double factor);
sc_time delay_sum(uint32_t n, sc_time t);

/* Makes room for `n` ends; false when out of memory. */
bool delay_ends(emu_delay *d, uint32_t n);

/* The world rank of the k-th member of a group. */
static inline uint32_t delay_rank(const emu_group *g, uint32_t k)
{
    return g->rank == NULL ? k : g->rank[k];
}

/* ---- closed models: a price alone, links that are shared */

sc_status delay_closed_new(emu_delay *d, sc_err *err);
sc_status delay_closed_post(emu_delay *d, const emu_flight *f, sc_time t,
                            sc_time credit, sc_err *err);
uint32_t delay_closed_advance(emu_delay *d, sc_time t,
                              const emu_delay_end **ends);
void delay_closed_cancel(emu_delay *d, uint64_t tag);
sc_time delay_closed_cpu(const emu_delay *d, const emu_group *g, sc_coll coll,
                         uint64_t bytes);

/* ---- messages between devices */

sc_status delay_messages_new(emu_delay *d, sc_err *err);
sc_status delay_messages_post(emu_delay *d, const emu_flight *f, sc_time t,
                              sc_time credit, sc_err *err);
uint32_t delay_messages_advance(emu_delay *d, sc_time t,
                                const emu_delay_end **ends);
void delay_messages_cancel(emu_delay *d, uint64_t tag);

/* ---- the user's functions */

sc_status delay_plugin_new(emu_delay *d, sc_err *err);
sc_status delay_plugin_post(emu_delay *d, const emu_flight *f, sc_time t,
                            sc_time credit, sc_err *err);
sc_time delay_plugin_next(emu_delay *d);
uint32_t delay_plugin_advance(emu_delay *d, sc_time t,
                              const emu_delay_end **ends);
void delay_plugin_cancel(emu_delay *d, uint64_t tag);

#endif
