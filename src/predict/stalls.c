/* SPDX-License-Identifier: Apache-2.0 */
/* stalls.c - notes for waits of a program that were measured, not derived. */
#include "predict/internal.h"

void predict_stalls(const sc_plan *p, predict_notes *assume)
{
    const sc_run *r = &p->run;
    const sc_software *sw = r->sw;
    uint32_t pp = r->size[SC_AX_PP], tp = r->size[SC_AX_TP];
    bool apart = sc_plan_stages_apart(r->hw, pp, p->stride[SC_AX_PP]);
    if (apart && tp > 1 && sw->stages_apart_s > 0)
        predict_note(assume,
                     "the host needs %g us more per member of a "
                     "tensor-parallel exchange, because stages are on "
                     "different nodes (measured with %s)",
                     1e6 * sw->stages_apart_s, sw->name);
    if (apart && sc_plan_waits(sw, r->hw, tp))
        predict_note(
            assume,
            "a transfer between stages on different nodes takes %g s "
            "more (measured with %s in jobs of %lld nodes and more, or "
            "of tp %lld and more)",
            sw->transfer_wait_s, sw->name, (long long)sw->transfer_wait_nodes,
            (long long)sw->transfer_wait_tp);
}
