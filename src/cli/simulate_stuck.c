/* SPDX-License-Identifier: Apache-2.0 */
/* simulate_stuck.c - a run that does not end, explained. */
#include "cli/simulate.h"

#define SHOWN 16 /* edges of waiting */

static const char *name_of(const cli *c, const sc_workload *w, const sc_wait *e)
{
    const sc_task_list *l = &w->classes[w->ranks[e->rank].cls];
    if (e->task >= l->n_tasks) return "at its end";
    bool named = l->name && l->name[e->task][0];
    const char *name = sc_sprintf(c->arena, "task %llu \"%.60s\"",
                                  (unsigned long long)l->id[e->task],
                                  named ? l->name[e->task]
                                  : l->kind[e->task] == SC_TASK_COLL
                                      ? sc_task_coll_names[l->coll[e->task]]
                                      : sc_task_kind_names[l->kind[e->task]]);
    return name ? name : "";
}

sc_status cli_simulate_stuck(cli *c, simulate_run *r)
{
    const sc_simulate_result *x = &r->result;
    SC_TRY(cli_simulate_names(c, r));
    sc_status s = sc_error(
        c->err, SC_EINPUT, SC_C_CYCLE, sc_pos_file(r->o->workloads[0]), NULL,
        "%u of %u ranks never end: %s", x->n_ranks - x->n_finished, x->n_ranks,
        x->n_cycle ? "they wait for each other"
                   : "what they wait for never happens");
    uint32_t n = x->n_cycle ? x->n_cycle : x->n_waits;
    for (uint32_t i = 0; i < n && i < SHOWN; i++) {
        const sc_wait *e = &x->wait[i];
        (void)sc_error(c->err, SC_EINPUT, SC_C_CYCLE,
                       sc_pos_file(r->w.jobs[r->w.ranks[e->rank].job].name),
                       NULL, "rank %u, %s, waits for %s", e->rank,
                       name_of(c, &r->w, e), e->why);
    }
    return s;
}
