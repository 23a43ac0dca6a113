/* SPDX-License-Identifier: Apache-2.0 */
/* search_budget.c - the machines that `stepcast search --cluster-budget`
 * proposes. */
#include "cli/search.h"

#include <math.h>
#include <string.h>

/* The first of them is the machine of the job. */
static sc_status first_node(cli *c, const sc_search_proposal *p, sc_job *job)
{
    uint32_t i = 0;
    while (i < p->n_nodes && p->node[i].why) i++;
    if (i == p->n_nodes) return SC_OK;
    job->cluster = sc_sprintf(c->arena, "%s:1", p->node[i].name);
    return job->cluster ? SC_OK : sc_error_nomem(c->err);
}

static sc_status propose_nodes(cli *c, sc_job *job, sc_pos pos,
                               search_machines *x, sc_search_proposal *out)
{
    sc_search_node *node;
    sc_machine_axis axis;
    SC_TRY(sc_search_nodes(job, c->arena, &node, &out->n_nodes, c->err));
    SC_TRY(sc_search_nodes_axis(node, out->n_nodes, c->arena, &axis, c->err));
    out->node = node;
    SC_TRY(search_machines_add_axis(c, &axis, pos, x));
    return first_node(c, out, job);
}

sc_status search_budget_open(cli *c, const search_opts *o, sc_job *job,
                             search_machines *x, sc_search_proposal *out)
{
    const char *const flag = "--cluster-budget";
    *out = (sc_search_proposal){.n_nodes = 0};
    if (!o->budget_of) return SC_OK;
    sc_pos pos = sc_pos_option(c->arena, flag, o->budget_of);
    SC_TRY(sc_search_budget_read(o->budget_of, pos, c->arena, &out->budget,
                                 c->err));
    if (out->budget.usd > 0 && !sc_job_buys(job))
        return sc_search_needs_prices(flag, c->err);
    if (x->n == 0 && o->nodes) {
        const sc_node nodes = sc_search_word(
            o->nodes, sc_pos_option(c->arena, "--nodes", o->nodes));
        SC_TRY(search_machines_add(c, "nodes", &nodes, x));
    }
    if (job->cluster) return SC_OK;
    for (uint32_t i = 0; i < x->n; i++)
        if (strcmp(x->of[i].name, "node") == 0) {
            job->cluster = sc_sprintf(c->arena, "%s:1", x->of[i].value[0]);
            return job->cluster ? SC_OK : sc_error_nomem(c->err);
        }
    if (search_machines_have(x, "device"))
        return sc_error(c->err, SC_EINPUT, SC_C_MISSING, pos,
                        "for example --machine node=dgx-h100",
                        "devices are given, but no node for them");
    return propose_nodes(c, job, pos, x, out);
}

sc_status search_budget_units(cli *c, const sc_search_question *q,
                              search_machines *x, sc_search_proposal *inout)
{
    sc_machine_axis axis;
    const sc_search_largest *largest;
    if (!q->budget || search_machines_have(x, "nodes")) return SC_OK;
    SC_TRY(sc_search_units(q, x->of, x->n, c->arena, &axis, &largest,
                           &inout->n_largest, c->err));
    inout->largest = largest;
    return search_machines_add_axis(c, &axis, sc_pos_file("--cluster-budget"),
                                    x);
}

sc_status search_budget_front(cli *c, const search_opts *o, uint32_t given,
                              const sc_search_question *q,
                              const search_machines *x, uint32_t *dims)
{
    const sc_pos pos = sc_pos_file("--pareto");
    const sc_job *job = q->job;
    bool rent = search_machines_have(x, SC_MACHINE_AXIS_PRICE) ||
                !isnan(sc_job_rent(job, q->in->hw));
    uint32_t money = sc_job_buys(job) ? 1u << SC_DIM_CAPITAL
                     : rent           ? 1u << SC_DIM_MONEY
                                      : 1u << SC_DIM_DEVICES;
    *dims = 0;
    if (!o->pareto) return SC_OK;
    if (x->n == 0)
        return sc_error(c->err, SC_EUSAGE, SC_C_CONFLICT, pos,
                        "add --machine KEY=VALUES or --cluster-budget; --front "
                        "compares configurations",
                        "there is only one machine");
    if (given >> SC_DIM_MEMORY & 1)
        return sc_error(c->err, SC_EUSAGE, SC_C_CONFLICT,
                        sc_pos_option(c->arena, "--front", o->front),
                        "time, devices, money, power, capital",
                        "memory belongs to configurations, not to machines");
    if ((given >> SC_DIM_CAPITAL & 1 && !sc_job_buys(job)) ||
        (given >> SC_DIM_MONEY & 1 && !rent && !sc_job_buys(job)))
        return sc_search_needs_prices("--pareto", c->err);
    *dims = given ? given : 1u << SC_DIM_TIME | 1u << SC_DIM_POWER | money;
    return SC_OK;
}
