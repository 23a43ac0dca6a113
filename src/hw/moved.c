/* SPDX-License-Identifier: Apache-2.0 */
/* moved.c - a machine one of whose properties has another value. */
#include "hw/hw_memo.h"
#include "hw/hw_moved.h"

#include <math.h>

const char *const sc_hw_property_names[] = {
    "device peak",      "memory bandwidth",
    "link bandwidth",   "NIC bandwidth",
    "memory",           "host bandwidth",
    "link latency",     "NIC latency",
    "oversubscription", NULL};

static void move_device(sc_device *d, sc_hw_property what, double by)
{
    if (what == SC_HW_PEAK) {
        for (int i = 0; i < (int)SC_N_PRECISIONS; i++) d->peak[i] *= by;
        d->vector_flops *= by;
    }
    if (what == SC_HW_MEM_BW) d->mem_bw *= by;
    if (what == SC_HW_LINK_BW) d->link_bw *= by;
    if (what == SC_HW_HOST_BW) d->host_bw *= by;
    if (what == SC_HW_MEMORY)
        d->mem_bytes = (uint64_t)((double)d->mem_bytes * by);
}

static void move_dim(sc_dim *d, sc_hw_property what, double by)
{
    bool net = d->ports > 0;
    if (!net && what == SC_HW_LINK_BW) d->bw *= by;
    if (!net && what == SC_HW_LINK_LATENCY) d->latency_s *= by;
    if (net && what == SC_HW_NIC_LATENCY) d->latency_s *= by;
    if (net && what == SC_HW_OVERSUB) d->oversub = fmax(1, d->oversub * by);
    if (!net || what != SC_HW_NIC_BW) return;
    d->bw *= by;
    d->port_bw *= by;
}

sc_status sc_hw_moved(const sc_hw *hw, sc_hw_property what, double by,
                      sc_arena *a, const sc_hw **out, sc_err *err)
{
    sc_hw *own = SC_NEW(a, sc_hw);
    sc_device *device = SC_NEW(a, sc_device);
    if (!own || !device) return sc_error_nomem(err);
    const double key[] = {(double)what, by};
    *own = *hw;
    *device = *hw->device;
    own->device = device;
    own->memo = hw_memo_new(a); /* the other holds results for other rates */
    own->hash = sc_hash(key, sizeof key, hw->hash);
    move_device(device, what, by);
    for (uint32_t i = 0; i < own->n_dims; i++) move_dim(&own->dim[i], what, by);
    *out = own;
    return SC_OK;
}
