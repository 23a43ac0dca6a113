/* SPDX-License-Identifier: Apache-2.0 */
/* schedule_run.c - properties of a run's schedule, built-in or from a file. */
#include "plan/internal.h"

sc_schedule sc_run_placement(const sc_run *r)
{
    return r->order ? r->order->placement : r->schedule;
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

bool sc_schedule_rounds(const sc_software *sw, uint64_t pp, uint64_t ga)
{
    uint64_t rounds = ga < pp ? 1 : ga / pp;
    return ga % pp == 0 || (sw->long_rounds && ga % rounds == 0);
}

/* A schedule file fits only its own numbers of devices and micro-batches. */
static sc_status check_file(const sc_run *r, sc_err *err)
{
    const sc_schedule_file *f = r->order;
    sc_pos pos = sc_pos_file(f ? f->file : "--schedule file");
    if (!f)
        return sc_error(err, SC_EINPUT, SC_C_MISSING, pos, NULL,
                        "the order of passes is missing");
    if (f->pp != r->size[SC_AX_PP])
        return sc_error(err, SC_EINPUT, SC_C_CONFLICT, pos, NULL,
                        "the schedule is for %u devices, but pp is %u", f->pp,
                        r->size[SC_AX_PP]);
    if (f->ga != r->ga)
        return sc_error(
            err, SC_EINPUT, SC_C_CONFLICT, pos,
            "change --global-batch or --micro-batch",
            "the schedule is for %u micro-batches, but there are %u", f->ga,
            r->ga);
    if (f->vpp == r->vpp) return SC_OK;
    return sc_error(err, SC_EINPUT, SC_C_CONFLICT, pos, NULL,
                    "the schedule is for %u chunks per device, not %u", f->vpp,
                    r->vpp);
}

sc_status plan_check_schedule(const sc_run *r, sc_err *err)
{
    uint32_t pp = r->size[SC_AX_PP], own = r->schedule == SC_SCH_ZB_V ? 2 : 1;
    if (r->schedule == SC_SCH_FILE) return check_file(r, err);
    if (r->schedule <= SC_SCH_INTERLEAVED) return SC_OK;
    if (r->vpp != own)
        return sc_error(err, SC_EINPUT, SC_C_CONFLICT, sc_pos_file("--vp"),
                        NULL,
                        "the %s schedule has %u chunks per device, not "
                        "%u",
                        sc_schedule_names[r->schedule], own, r->vpp);
    if (r->schedule == SC_SCH_DUALPIPE && pp % 2 != 0)
        return sc_error(
            err, SC_EINPUT, SC_C_DIVIDE, sc_pos_file("--schedule dualpipe"),
            NULL,
            "stages d and pp - 1 - d share a device, so pp %u must be even",
            pp);
    return SC_OK;
}

bool plan_ends_apart(const sc_run *r)
{
    sc_schedule s = sc_run_placement(r);
    return r->size[SC_AX_PP] > 1 && s != SC_SCH_ZB_V && s != SC_SCH_DUALPIPE;
}

void sc_schedule_ends(const sc_slot *order, uint32_t n, uint32_t chunk,
                      uint32_t *first, uint32_t *last)
{
    *first = *last = UINT32_MAX;
    for (uint32_t i = 0; i < n && *first == UINT32_MAX; i++)
        if (order[i].chunk == chunk && order[i].pass == SC_FWD)
            *first = order[i].mb;
    for (uint32_t i = n; i > 0 && *last == UINT32_MAX; i--)
        if (order[i - 1].chunk == chunk && order[i - 1].pass != SC_FWD &&
            order[i - 1].pass != SC_BWD_X)
            *last = order[i - 1].mb;
}

double sc_schedule_held(const sc_slot *order, uint32_t n, const double *kept,
                        const double *wgrad_held)
{
    double now = 0, most = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t c = order[i].chunk;
        if (order[i].pass == SC_FWD) now += kept[c];
        if (order[i].pass == SC_BWD) now -= kept[c];
        if (order[i].pass == SC_BWD_X) now -= kept[c] - wgrad_held[c];
        if (now > most) most = now;
        if (order[i].pass == SC_BWD_W) now -= wgrad_held[c];
    }
    return most;
}
