/* SPDX-License-Identifier: Apache-2.0 */
/*
 * together.c - a second run for ranks that wait for each other only because
 * of the order in which they start collectives: in it all members start
 * together.
 */
#include "sim/compat/compat.h"

static const char *first_waits(sim_world *x, const sc_simulate_result *out)
{
    const char *text = "";
    uint32_t n = out->n_cycle ? out->n_cycle : 1;
    for (uint32_t i = 0; i < n && i < out->n_waits && i < 3; i++) {
        const sc_wait *k = &out->wait[i];
        text = sc_sprintf(x->a, "%s%srank %u waits for %s", text ? text : "",
                          i ? ", " : "", k->rank, k->why);
    }
    return text ? text : "";
}

sc_status sim_run_together(const sim_request *q, const sc_simulate_opts *o,
                           sc_arena *a, sim_world *x, sc_simulate_result *out,
                           sc_err *err)
{
    const char *why = x->disorder ? x->disorder : first_waits(x, out);
    sc_rules rules = *o->rules;
    sc_simulate_opts again = *o;
    rules.collectives_start_alone = false;
    rules.ready_waits = false;
    rules.unfit_runs = false;
    again.rules = &rules;
    sim_world *y = SC_NEW(a, sim_world);
    if (!y) return sc_error_nomem(err);
    SC_TRY(sim_run_apart(q, &again, a, y, out, err));
    out->together = true;
    if (sim_is_stuck(y, out)) return sim_deadlock(y, out);
    sim_warn(y, SIM_WARN_ORDER,
             "%s does not finish this workload (%s); the result here assumes "
             "that collectives start when all members have arrived",
             o->rules->name, why);
    out->warnings = y->warnings ? y->warnings : "";
    return SC_OK;
}
