/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schedule.c - the order of passes on one pipeline device.
 *
 * 1F1B: Narayanan et al. 2021, section 2.2.1; interleaved: section 2.2.2, the
 * order of Megatron-LM (rounds of pp micro-batches per chunk).  If pp does not
 * divide the number of micro-batches ga, there are ga / pp rounds (rounded
 * down), and the first ones are longer.
 */
#include "plan/schedule.h"

const char *const sc_schedule_names[] = {
    "1f1b", "gpipe", "interleaved", "zb-h1", "zb-v", "dualpipe", "file", NULL};

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Rounds of `size` micro-batches; the first `longer` rounds have one more. */
typedef struct rounds {
    uint32_t size, longer, vpp;
} rounds;

/* The rounds of a schedule.  Without chunks a round is one micro-batch. */
static rounds rounds_of(uint32_t pp, uint32_t vpp, uint32_t ga)
{
    if (vpp == 1) return (rounds){1, 0, 1};
    uint32_t n = ga < pp ? 1 : ga / pp;
    return (rounds){ga / n, ga % n, vpp};
}

static sc_slot forward_slot(uint32_t k, const rounds *r)
{
    uint32_t size = r->size + 1, first = 0, round = k / (size * r->vpp);
    if (round >= r->longer) {
        k -= r->longer * size * r->vpp;
        first = r->longer * size;
        size = r->size;
        round = k / (size * r->vpp);
    }
    uint32_t in = k % (size * r->vpp);
    return (sc_slot){SC_FWD, (uint16_t)(in / size),
                     first + round * size + in % size};
}

static sc_slot backward_slot(uint32_t k, const rounds *r)
{
    sc_slot s = forward_slot(k, r);
    s.pass = SC_BWD;
    s.chunk = (uint16_t)(r->vpp - 1 - s.chunk);
    return s;
}

/* Number of forward passes that run before the first backward pass. */
static uint32_t warm_up(sc_schedule s, uint32_t pp, uint32_t vpp, uint32_t ga,
                        uint32_t stage)
{
    uint32_t total = ga * vpp;
    if (s == SC_SCH_GPIPE) return total;
    if (s == SC_SCH_INTERLEAVED && vpp > 1) {
        rounds r = rounds_of(pp, vpp, ga);
        uint32_t longest = r.size + (r.longer > 0);
        return least(total, (pp - stage - 1) * 2 + (vpp - 1) * longest);
    }
    return least(total, pp - stage - 1);
}

uint32_t sc_schedule_chunks(sc_schedule s, uint32_t vpp)
{
    return s == SC_SCH_ZB_V || s == SC_SCH_DUALPIPE ? 2 : vpp;
}

uint32_t sc_schedule_stages(sc_schedule s, uint32_t pp, uint32_t vpp)
{
    return s == SC_SCH_DUALPIPE ? pp : pp * sc_schedule_chunks(s, vpp);
}

bool sc_schedule_splits(sc_schedule s)
{
    return s == SC_SCH_ZB_H1 || s == SC_SCH_ZB_V || s == SC_SCH_DUALPIPE;
}

uint32_t sc_schedule_stage(sc_schedule s, uint32_t pp, uint32_t vpp,
                           uint32_t dev, uint32_t chunk)
{
    (void)vpp;
    if (chunk == 1 && s == SC_SCH_ZB_V) return 2 * pp - 1 - dev;
    if (chunk == 1 && s == SC_SCH_DUALPIPE) return pp - 1 - dev;
    return chunk * pp + dev;
}

uint32_t sc_schedule_chunk(sc_schedule s, uint32_t pp, uint32_t vpp, uint32_t v,
                           uint32_t mb, uint32_t ga)
{
    (void)vpp;
    if (s == SC_SCH_DUALPIPE) return mb >= (ga + 1) / 2;
    return v / pp;
}

uint32_t sc_schedule_device(sc_schedule s, uint32_t pp, uint32_t vpp,
                            uint32_t v, uint32_t mb, uint32_t ga)
{
    uint32_t chunk = sc_schedule_chunk(s, pp, vpp, v, mb, ga);
    if (chunk == 1 && s == SC_SCH_ZB_V) return 2 * pp - 1 - v;
    if (chunk == 1 && s == SC_SCH_DUALPIPE) return pp - 1 - v;
    return v % pp;
}

uint32_t sc_schedule_slots(sc_schedule s, uint32_t vpp, uint32_t ga)
{
    uint32_t both = s == SC_SCH_DUALPIPE ? 1 : sc_schedule_chunks(s, vpp);
    return (sc_schedule_splits(s) ? 3 : 2) * ga * both;
}

uint32_t sc_schedule_order(sc_schedule s, uint32_t pp, uint32_t vpp,
                           uint32_t ga, uint32_t stage, bool forward_only,
                           sc_slot *out)
{
    if (sc_schedule_splits(s)) {
        sch_writer w = {.out = out, .forward_only = forward_only};
        sch_zero_order(s, pp, ga, stage, &w);
        return w.n;
    }
    rounds r = rounds_of(pp, vpp, ga);
    uint32_t total = ga * vpp, n = 0, f = 0, b = 0;
    uint32_t warm = forward_only ? total : warm_up(s, pp, vpp, ga, stage);
    while (f < warm) out[n++] = forward_slot(f++, &r);
    if (forward_only) return n;
    while (b < total) {
        if (f < total) out[n++] = forward_slot(f++, &r);
        out[n++] = backward_slot(b++, &r);
    }
    return n;
}

uint32_t sc_schedule_in_flight(sc_schedule s, uint32_t pp, uint32_t vpp,
                               uint32_t ga, uint32_t stage)
{
    uint32_t total = ga * vpp;
    if (sc_schedule_splits(s)) {
        sch_writer w = {.forward_only = false};
        sch_zero_order(s, pp, ga, stage, &w);
        return w.most;
    }
    return least(total, warm_up(s, pp, vpp, ga, stage) + 1);
}
