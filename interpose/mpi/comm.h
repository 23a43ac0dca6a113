/* SPDX-License-Identifier: Apache-2.0 */
/* comm.h - creation of communicators. */
#ifndef COMM_H
#define COMM_H

#include "mpi/mp.h"

/* The same members under a duplicate of the library's communicator, with or
 * without the grid or graph. */
int comm_twin(mp_comm *from, MPI_Comm handle, bool topology);
void comm_set_cart(mp_comm *c, int n, const int *dims, const int *periods);
void comm_set_graph(mp_comm *c, const mp_graph *g); /* copied */
void comm_free_graph(mp_comm *c);
/* Whom MPI_Cart_shift() by `by` reaches, or MPI_PROC_NULL. */
int cart_shifted(const mp_comm *c, int dim, int by);

#endif
