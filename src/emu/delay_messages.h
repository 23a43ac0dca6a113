/* SPDX-License-Identifier: Apache-2.0 */
/*
 * delay_messages.h - operations as messages between devices, by the schedules
 * of coll_schedule.h, and the messages in flight.
 */
#ifndef EMU_DELAY_MESSAGES_H
#define EMU_DELAY_MESSAGES_H

#include "coll/coll_schedule.h"
#include "emu/delay_flight.h"
#include "emu/delay_model.h"
#include "net/net_fabric.h"

/* The members of a group sorted by node, siblings one after the other. */
typedef struct msg_group {
    struct msg_line *lines; /* patterns seen before; used by model flow */
    uint32_t n, siblings;
    uint32_t *rank; /* [siblings][n] */
    uint32_t *at;   /* [n] place in that order, by position in the group */
    uint32_t m;     /* members in each node; 0: nodes have different numbers */
} msg_group;

/* The state of one member (model chunk) or of all members (model flow) in a
 * phase of a chunk. */
typedef struct msg_state {
    uint32_t sent, left_port, received;
    bool started, done;
} msg_state;

typedef struct msg_flight {
    struct msg_flight *next; /* next in the list of free flights, or of those in
                                flight */
    struct msg_flight *prev;
    uint64_t tag;
    msg_group *group;
    sc_coll_schedule schedule;
    uint64_t left, own; /* states that are not done: of all siblings, of the
                           group itself */
    uint32_t members;   /* members that have states: n; 1: one state for all; 0:
                           none */
    msg_state *state;   /* [siblings][chunks][n_phases][members] */
    uint64_t room;
    sc_time credit;   /* subtracted from the latency of the first messages */
    struct msg *msgs; /* messages in flight */
} msg_flight;

typedef struct msg {
    struct msg *next, *prev; /* messages of the flight, or free ones */
    msg_flight *flight;
    uint32_t id, flow; /* ids of flows; in model flow delay_flights numbers
                          them */
    uint32_t sibling, chunk, phase, src, dst;
    sc_time latency; /* latency that follows the bytes, if it does not precede
                        them */
    bool arrives;    /* only the latency is left */
} msg;

struct delay_messages {
    bool steps;            /* true: every message of every step (chunk); false:
                              steady flows */
    sc_fabric *fabric;     /* used if `steps` */
    delay_flights flights; /* used if not `steps` */
    msg **msg;             /* [n_msgs] by id */
    msg *free;
    uint32_t n_msgs, msg_cap;
    msg_flight *flight, *free_flight;
    uint32_t n_ends;
};

/* Adds a copy of `key` to the messages of the flight. */
msg *msg_record(emu_delay *d, msg_flight *f, const msg *key);

/* Sends a message of the flight, or a steady flow, at `t`. */
sc_status msg_send(emu_delay *d, msg_flight *f, const msg *key,
                   const sc_flow *flow, sc_time t, sc_err *err);

/* The latency of a message with what-ifs applied. */
sc_time msg_latency(const emu_delay *d, sc_time nominal);

/* ---- states */

/* Makes room for all states, none of them done; false when out of memory. */
bool msg_states(msg_flight *f, uint32_t siblings, uint32_t members,
                sc_arena *a);

static inline msg_state *msg_state_of(const msg_flight *f, const msg *at,
                                      uint32_t member)
{
    uint64_t k = (uint64_t)at->sibling * f->schedule.chunks + at->chunk;
    return &f->state[(k * f->schedule.n_phases + at->phase) * f->members +
                     member];
}

/* Whether the phase may start: its state exists, and both the phase before and
 * the chunk before are done. */
bool msg_ready(const msg_flight *f, const msg *at, uint32_t member);
void msg_done(msg_flight *f, const msg *at, uint32_t member);

/* ---- chunk and flow */

sc_status msg_flow_post(emu_delay *d, msg_flight *f, sc_time t, sc_err *err);
sc_status msg_flow_pair(emu_delay *d, msg_flight *f, const msg *m, sc_time t,
                        sc_err *err);
/* Handles the arrival of `m`. */
sc_status msg_flow_end(emu_delay *d, const msg *m, sc_time t, sc_err *err);

sc_status msg_steps_post(emu_delay *d, msg_flight *f, sc_time t, sc_err *err);
sc_status msg_steps_end(emu_delay *d, const msg *m, sc_time t, sc_err *err);

#endif
