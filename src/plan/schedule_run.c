/* SPDX-License-Identifier: Apache-2.0 */
/* schedule_run.c - what a run takes from its schedule, of either kind. */
#include <stepcast/plan_schedule.h>

sc_schedule sc_run_placement(const sc_run *r)
{
    return r->order ? r->order->like : r->schedule;
}

uint32_t sc_run_chunks(const sc_run *r)
{
    return sc_schedule_chunks(sc_run_placement(r), r->vpp);
}

uint32_t sc_run_stages(const sc_run *r)
{
    return sc_schedule_stages(sc_run_placement(r), r->size[SC_AX_PP], r->vpp);
}

bool sc_run_splits(const sc_run *r)
{
    return r->order ? r->order->splits : sc_schedule_splits(r->schedule);
}

uint32_t sc_run_slots(const sc_run *r)
{
    uint32_t most = 0;
    if (!r->order) return sc_schedule_slots(r->schedule, r->vpp, r->ga);
    for (uint32_t d = 0; d < r->order->pp; d++)
        most = r->order->n[d] > most ? r->order->n[d] : most;
    return most;
}

uint32_t sc_run_order(const sc_run *r, uint32_t dev, sc_slot *out)
{
    if (!r->order)
        return sc_schedule_order(r->schedule, r->size[SC_AX_PP], r->vpp, r->ga,
                                 dev, r->forward_only, out);
    uint32_t n = 0;
    for (uint32_t i = 0; i < r->order->n[dev]; i++)
        if (!r->forward_only || r->order->slot[dev][i].pass == SC_FWD)
            out[n++] = r->order->slot[dev][i];
    return n;
}

uint32_t sc_run_stage(const sc_run *r, uint32_t dev, uint32_t chunk)
{
    return sc_schedule_stage(sc_run_placement(r), r->size[SC_AX_PP], r->vpp,
                             dev, chunk);
}

uint32_t sc_run_device(const sc_run *r, uint32_t v, uint32_t mb)
{
    return sc_schedule_device(sc_run_placement(r), r->size[SC_AX_PP], r->vpp, v,
                              mb, r->ga);
}

double sc_schedule_held(const sc_slot *order, uint32_t n, const double *kept,
                        const double *late)
{
    double now = 0, most = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t c = order[i].chunk;
        if (order[i].pass == SC_FWD) now += kept[c];
        if (now > most) most = now;
        if (order[i].pass == SC_BWD) now -= kept[c];
        if (order[i].pass == SC_BWD_X) now -= kept[c] - late[c];
        if (order[i].pass == SC_BWD_W) now -= late[c];
    }
    return most;
}
