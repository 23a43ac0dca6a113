/* SPDX-License-Identifier: Apache-2.0 */
/*
 * actor.h - emulated ranks that run the program of a trace.
 *
 * An actor is a rank with a trace that real ranks reach by groups and messages,
 * directly or through other actors. It runs the nodes of its trace: computation
 * one after the other, in the order of ids among those that are ready; calls as
 * soon as what they depend on has ended. It waits for its own receives, and
 * messages and collectives between actors take their time like any other. At
 * the end of its trace it begins again.
 */
#ifndef EMU_ACTOR_H
#define EMU_ACTOR_H

#include "emu/rendezvous.h"

/* Decides which ranks are actors; call before emu_peers_new(). *out is NULL if
 * there are no traces. */
sc_status emu_actors_new(const sc_emu_config *c, sc_arena *a, emu_actors **out,
                         sc_err *err);

/* Its number; EMU_NONE: the rank is none. */
uint32_t emu_actor_number(const emu_actors *x, uint32_t rank);
uint32_t emu_actors_count(const emu_actors *x);

/* All begin their programs, at 0. */
sc_status emu_actors_start(sc_emu *e, sc_err *err);

/* Whether the rank is an actor whose trace has this call: a message of `peer`
 * in the other direction. */
bool emu_actor_meets(sc_emu *e, uint32_t rank, const sc_emu_op *call);

/* A real rank opened this collective: actors that have called it join, and
 * op->missing counts those that will. Actors whose traces have no such
 * collective are taken to be there. */
sc_status emu_actors_expect(sc_emu *e, uint32_t op, sc_err *err);
/* The operation no longer waits for actors. */
void emu_actors_forget(sc_emu *e, uint32_t op);

/* The computation of an actor ends; one of its calls ends. */
void emu_actor_computed(sc_emu *e, uint32_t op);
bool emu_actor_ended(sc_emu *e, const emu_posted *p, sc_time t);
/* Actors go on after what has ended. */
sc_status emu_actors_go_on(sc_emu *e, sc_err *err);

/* Why the operation waits for actors. */
void emu_actors_why(const sc_emu *e, const emu_op *o, sc_text *out);

#endif
