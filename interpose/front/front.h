/* SPDX-License-Identifier: Apache-2.0 */
/*
 * front.h - the functions of MPI in every process of a run.
 *
 * A launcher, a shell or an interpreter does not show which MPI library the
 * processes that it starts will load, and both interposers bring their library
 * with them. So none of them is preloaded. Preloaded is this library, which
 * needs no MPI: it has an entry for every function of either interposer. The
 * first call finds the MPI library that the process has loaded, opens the
 * interposer for it, and fills all slots through which the entries jump.
 */
#ifndef FRONT_H
#define FRONT_H

#include <stdint.h>

/* Made by front.awk; names rise. */
extern const uint32_t front_n;
extern const char *const front_name[]; /* [front_n] "MPI_Abort" ... */
extern void *front_slot[];             /* [front_n] where the entry jumps to */
extern void *const front_entry[];      /* [front_n] */

/* Fills all slots; returns that of the function `i`, which was called. */
void *front_resolve(uint32_t i);

/* The number of a function; UINT32_MAX: it has no entry. */
uint32_t front_find(const char *name);

/* The libraries for Fortran convert arguments and call PMPI_...: makes them
 * call the entries instead. Returns at once if none is loaded. */
void front_fortran(void);

/* "stepcast: error: ..."; the process ends with exit code 3. */
__attribute__((noreturn, format(printf, 1, 2))) void front_die(const char *fmt,
                                                               ...);

#endif
