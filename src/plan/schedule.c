/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schedule.c - the order of passes on one pipeline device.
 *
 * 1F1B: Narayanan et al. 2021, section 2.2.1; interleaved: section 2.2.2, the
 * order of Megatron-LM (rounds of pp micro-batches per chunk).
 */
#include <stepcast/plan.h>

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static sc_slot forward_slot(uint32_t k, uint32_t pp, uint32_t vpp)
{
    uint32_t round = k / (pp * vpp), in = k % (pp * vpp);
    return (sc_slot){SC_FWD, (uint16_t)(in / pp), round * pp + in % pp};
}

static sc_slot backward_slot(uint32_t k, uint32_t pp, uint32_t vpp)
{
    sc_slot s = forward_slot(k, pp, vpp);
    s.pass = SC_BWD;
    s.chunk = (uint16_t)(vpp - 1 - s.chunk);
    return s;
}

/* Forward passes that run before the first backward pass. */
static uint32_t warm_up(sc_schedule s, uint32_t pp, uint32_t vpp, uint32_t ga,
                        uint32_t stage)
{
    uint32_t total = ga * vpp;
    if (s == SC_SCH_GPIPE) return total;
    if (s == SC_SCH_INTERLEAVED && vpp > 1)
        return least(total, (pp - stage - 1) * 2 + (vpp - 1) * pp);
    return least(total, pp - stage - 1);
}

uint32_t sc_schedule_stage(sc_schedule s, uint32_t pp, uint32_t vpp,
                           uint32_t dev, uint32_t chunk)
{
    (void)s;
    (void)vpp;
    return chunk * pp + dev;
}

uint32_t sc_schedule_device(sc_schedule s, uint32_t pp, uint32_t vpp,
                            uint32_t v, uint32_t mb, uint32_t ga)
{
    (void)s;
    (void)vpp;
    (void)mb;
    (void)ga;
    return v % pp;
}

uint32_t sc_schedule_order(sc_schedule s, uint32_t pp, uint32_t vpp,
                           uint32_t ga, uint32_t stage, bool forward_only,
                           sc_slot *out)
{
    /* Without chunks a round has no meaning: micro-batches in order. */
    uint32_t round = vpp > 1 ? pp : 1, total = ga * vpp, n = 0;
    uint32_t warm = forward_only ? total : warm_up(s, pp, vpp, ga, stage);
    uint32_t f = 0, b = 0;
    while (f < warm) out[n++] = forward_slot(f++, round, vpp);
    if (forward_only) return n;
    while (b < total) {
        if (f < total) out[n++] = forward_slot(f++, round, vpp);
        out[n++] = backward_slot(b++, round, vpp);
    }
    return n;
}

uint32_t sc_schedule_in_flight(sc_schedule s, uint32_t pp, uint32_t vpp,
                               uint32_t ga, uint32_t stage)
{
    uint32_t total = ga * vpp;
    return least(total, warm_up(s, pp, vpp, ga, stage) + 1);
}
