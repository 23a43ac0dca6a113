/* SPDX-License-Identifier: Apache-2.0 */
/* cap.c - a machine whose devices may use less power than their boards. */
#include "hw/hw.h"

#include <math.h>
#include <string.h>

/* The power of a chip grows with the cube of its clock, because voltage grows
 * with the clock too (P ~ C V^2 f). */
static double clock_of(double watts, double usual)
{
    return cbrt(watts / usual);
}

static bool has_less(const sc_device *d, double watts)
{
    return d->power_w > watts;
}

static sc_status cap_device(const sc_device *d, double watts, sc_arena *a,
                            const sc_device **out, sc_err *err)
{
    *out = d;
    if (!has_less(d, watts)) return SC_OK;
    sc_device *own = SC_NEW(a, sc_device);
    if (!own) return sc_error_nomem(err);
    *own = *d;
    own->vector_flops *= clock_of(watts, d->power_w);
    own->usual_power_w = d->power_w;
    own->power_w = watts;
    *out = own;
    return SC_OK;
}

/* The device of the whole machine has the lowest rate and the mean power. */
static sc_status cap_groups(const sc_hw *hw, double watts, sc_arena *a,
                            sc_hw *inout, sc_err *err)
{
    sc_node_group *g = SC_NEW_N(a, sc_node_group, hw->n_groups);
    sc_device *all = SC_NEW(a, sc_device);
    double sum = 0, nodes = 0;
    if (!g || !all) return sc_error_nomem(err);
    *all = *hw->device;
    for (uint32_t i = 0; i < hw->n_groups; i++) {
        g[i] = hw->groups[i];
        SC_TRY(cap_device(g[i].device, watts, a, &g[i].device, err));
        all->vector_flops = fmin(all->vector_flops, g[i].device->vector_flops);
        sum += g[i].n * g[i].device->power_w;
        nodes += g[i].n;
    }
    all->usual_power_w = all->power_w;
    all->power_w = sum / nodes;
    inout->device = all;
    inout->groups = g;
    return SC_OK;
}

sc_status sc_hw_cap(const sc_hw *hw, double watts, sc_arena *a,
                    const sc_hw **out, sc_err *err)
{
    bool any = has_less(hw->device, watts);
    for (uint32_t i = 0; i < hw->n_groups; i++)
        any = any || has_less(hw->groups[i].device, watts);
    *out = hw;
    if (watts <= 0 || !any) return SC_OK;
    sc_hw *own = SC_NEW(a, sc_hw);
    if (!own) return sc_error_nomem(err);
    *own = *hw;
    own->hash = sc_hash(&watts, sizeof watts, hw->hash);
    if (hw->n_groups > 0)
        SC_TRY(cap_groups(hw, watts, a, own, err));
    else
        SC_TRY(cap_device(hw->device, watts, a, &own->device, err));
    *out = own;
    return SC_OK;
}
