/* SPDX-License-Identifier: Apache-2.0 */
/* stalls.c - notes for waits of a program that were measured, not derived. */
#include "predict/internal.h"

/* Shorter waits are those that a fit without rows assumes, s. */
#define NOTED 5e-6

void predict_stalls(const sc_plan *p, predict_notes *assume)
{
    const sc_run *r = &p->run;
    const sc_software *sw = r->sw;
    uint32_t pp = r->size[SC_AX_PP], tp = r->size[SC_AX_TP];
    double member =
        sc_software_value(sw, offsetof(sc_software, stages_apart_s), r->cost);
    double wait =
        sc_software_value(sw, offsetof(sc_software, transfer_wait_s), r->cost);
    bool apart = sc_plan_stages_apart(r->hw, pp, p->stride[SC_AX_PP]);
    if (apart && tp > 1 && member > NOTED)
        predict_note(assume,
                     "the host needs %g us more per member of a "
                     "tensor-parallel exchange, because stages are on "
                     "different nodes (measured with %s)",
                     1e6 * member, sw->name);
    if (apart && wait > NOTED && sc_plan_waits(sw, r->hw, tp))
        predict_note(
            assume,
            "a transfer between stages on different nodes takes %g s "
            "more (measured with %s in jobs of %lld nodes and more, or "
            "of tp %lld and more)",
            wait, sw->name, (long long)sw->transfer_wait_nodes,
            (long long)sw->transfer_wait_tp);
}
