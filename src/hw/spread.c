/* SPDX-License-Identifier: Apache-2.0 */
/* spread.c - a machine whose tensors are spread over both of its memories. */
#include "hw/hw.h"

#include <math.h>

double sc_hw_hybrid_bw(double bw, double expanded_bw, double fraction,
                       bool in_turn)
{
    double own = (1 - fraction) / bw, other = fraction / expanded_bw;
    return 1 / (in_turn ? own + other : fmax(own, other));
}

sc_status sc_hw_spread(const sc_hw *hw, double fraction, bool in_turn,
                       sc_pos pos, sc_arena *a, const sc_hw **out, sc_err *err)
{
    *out = hw;
    if (fraction <= 0) return SC_OK;
    if (hw->expanded.bytes <= 0)
        return sc_error(err, SC_EINPUT, SC_C_CONFLICT, pos,
                        "give expanded_memory and expanded_bw behind the "
                        "machine's name",
                        "the machine has no expanded memory");
    if (hw->n_groups > 0)
        return sc_error(err, SC_EINPUT, SC_C_UNSUPPORTED, pos,
                        "describe a machine of one kind of nodes",
                        "tensors can't be spread on nodes that differ");
    sc_hw *own = SC_NEW(a, sc_hw);
    sc_device *d = SC_NEW(a, sc_device);
    if (!own || !d) return sc_error_nomem(err);
    *own = *hw;
    *d = *hw->device;
    double most = fmin((double)d->mem_bytes / (1 - fraction),
                       hw->expanded.bytes / fraction);
    d->mem_bytes = (uint64_t)llround(most);
    d->mem_bw = sc_hw_hybrid_bw(d->mem_bw, hw->expanded.bw, fraction, in_turn);
    own->device = d;
    own->expanded.spread = true;
    const double of[] = {fraction, in_turn};
    own->hash = sc_hash(of, sizeof of, hw->hash);
    *out = own;
    return SC_OK;
}
