/* SPDX-License-Identifier: Apache-2.0 */
/* delay.c - the common interface of the delay models. */
#include "emu/delay_model.h"

#include <math.h>

sc_time delay_scaled(sc_time t, double factor)
{
    if (factor == 1) return t < DELAY_LONGEST ? t : DELAY_LONGEST;
    double v = ceil((double)t * factor);
    return v < (double)DELAY_LONGEST ? (sc_time)v : DELAY_LONGEST;
}

sc_time delay_sum(uint32_t n, sc_time t)
{
    if (n > 0 && t > DELAY_LONGEST / n) return DELAY_LONGEST;
    return n * t;
}

static delay_what what_of(const sc_emu_config *c)
{
    delay_what w = {.latency = 1, .bandwidth = 1};
    for (uint32_t i = 0; i < c->n_whatif; i++) {
        double value = c->whatif[i].value;
        switch (c->whatif[i].what) {
        case SC_EMU_LATENCY_ADD:
            w.hop =
                delay_scaled(w.hop, 1) + delay_scaled(sc_time_from_s(value), 1);
            break;
        case SC_EMU_LATENCY_TIMES: w.latency *= value; break;
        case SC_EMU_BANDWIDTH_TIMES: w.bandwidth *= value; break;
        case SC_EMU_STRAGGLER:
        case SC_EMU_JITTER:
        case SC_EMU_STALL:
        case SC_EMU_FAIL: break; /* it applies to ranks, not to the network */
        }
    }
    w.hop = delay_scaled(w.hop, 1);
    return w;
}

const sc_hw *sc_emu_network(const sc_emu_config *c, sc_arena *a)
{
    delay_what w = what_of(c);
    sc_hw *hw = SC_NEW(a, sc_hw);
    if (hw == NULL) return NULL;
    *hw = *c->hw;
    for (uint32_t i = 0; i < hw->n_dims; i++) {
        sc_dim *d = &hw->dim[i];
        d->latency_s = d->latency_s * w.latency + sc_time_to_s(w.hop);
        d->bw *= w.bandwidth;
    }
    return hw;
}

bool delay_ends(emu_delay *d, uint32_t n)
{
    while (d->end == NULL || n > d->end_cap) {
        emu_delay_end *end =
            sc_grow(d->a, d->end, d->end_cap, &d->end_cap, 16, sizeof *end);
        if (end == NULL) return false;
        d->end = end;
    }
    return true;
}

sc_status emu_delay_new(const sc_emu_config *c, sc_arena *a, emu_delay **out,
                        sc_err *err)
{
    emu_delay *d = SC_NEW(a, emu_delay);
    if (d == NULL) return sc_error_nomem(err);
    *d = (emu_delay){.c = c, .a = a, .what = what_of(c)};
    switch (c->delay) {
    case SC_EMU_DELAY_CHUNK:
    case SC_EMU_DELAY_FLOW: SC_TRY(delay_messages_new(d, err)); break;
    case SC_EMU_DELAY_PLUGIN: SC_TRY(delay_plugin_new(d, err)); break;
    case SC_EMU_DELAY_ANALYTIC:
    case SC_EMU_DELAY_HOST:
    case SC_EMU_DELAY_ALPHA_BETA:
    case SC_EMU_DELAY_TABLE: SC_TRY(delay_closed_new(d, err)); break;
    }
    *out = d;
    return SC_OK;
}

sc_status emu_delay_post(emu_delay *d, const emu_flight *f, sc_time t,
                         sc_time credit, sc_err *err)
{
    if (d->closed) return delay_closed_post(d, f, t, credit, err);
    if (d->messages) return delay_messages_post(d, f, t, credit, err);
    return delay_plugin_post(d, f, t, credit, err);
}

sc_time emu_delay_next(emu_delay *d)
{
    return d->flows ? sc_flows_next(d->flows) : delay_plugin_next(d);
}

uint32_t emu_delay_advance(emu_delay *d, sc_time t, const emu_delay_end **ends)
{
    if (d->closed) return delay_closed_advance(d, t, ends);
    return d->messages ? delay_messages_advance(d, t, ends)
                       : delay_plugin_advance(d, t, ends);
}

void emu_delay_cancel(emu_delay *d, uint64_t tag)
{
    if (d->closed)
        delay_closed_cancel(d, tag);
    else if (d->messages)
        delay_messages_cancel(d, tag);
    else
        delay_plugin_cancel(d, tag);
}

sc_time emu_delay_cpu(const emu_delay *d, const emu_group *g, sc_coll coll,
                      uint64_t bytes)
{
    return d->closed ? delay_closed_cpu(d, g, coll, bytes) : 0;
}
