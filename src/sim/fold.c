/* SPDX-License-Identifier: Apache-2.0 */
/* fold.c - which ranks stand for others. */
#include "sim/world.h"

sc_status sim_fold(sim_world *w)
{
    w->n_ranks = w->w->n_ranks;
    w->index = sc_alloc(w->a, w->n_npus, sizeof *w->index);
    if (!w->index) return sc_error_nomem(w->err);
    for (uint32_t i = 0; i < w->n_ranks; i++) w->index[i] = i;
    return SC_OK;
}
