/* SPDX-License-Identifier: Apache-2.0 */
/* split.h - which members a part of a split communicator has. */
#ifndef SPLIT_H
#define SPLIT_H

#include "mpi/mp.h"

typedef struct split_choice {
    int colour, key;
} split_choice;

/* `real` [c->n_real], this rank's colour defined; `member` [c->n] gets the
 * positions in `c`, rising, of the part that has this rank. */
uint32_t split_members(mp_comm *c, const split_choice *real, uint32_t *member);

#endif
