/* SPDX-License-Identifier: Apache-2.0 */
/* search_mix.c - `stepcast search --mix`: the best machine for several jobs. */
#include "cli/predict.h"
#include "cli/search.h"
#include "report/report_mix.h"

/* Options that belong to a search for one job. */
static sc_status check(cli *c, const search_opts *o, const search_machines *x)
{
    const struct {
        bool is;
        const char *flag;
    } alone[] = {{o->save != NULL, "--save"},
                 {o->resume, "--resume"},
                 {o->shard != NULL, "--shard"},
                 {o->merge, "--merge"},
                 {o->keep != NULL, "--keep"},
                 {o->emits != NULL, "--emit"},
                 {o->pareto, "--pareto"},
                 {o->tornado, "--tornado"},
                 {o->budget_s > 0, "--budget"},
                 {o->measured != NULL, "--measured"},
                 {o->explain_space, "--explain-space"}};

    for (size_t i = 0; i < SC_COUNT(alone); i++)
        if (alone[i].is)
            return sc_error(c->err, SC_EUSAGE, SC_C_CONFLICT,
                            sc_pos_file(alone[i].flag),
                            "search for one job of the mix",
                            "it does not apply to several jobs");
    if (c->host && c->host->ranks && c->host->ranks->n > 1)
        return sc_error(c->err, SC_EUSAGE, SC_C_CONFLICT, sc_pos_file("--mix"),
                        "start it without mpirun",
                        "several jobs run on one "
                        "rank");
    if (x->n > 0 || o->budget_of || o->nodes) return SC_OK;
    return sc_error(c->err, SC_EUSAGE, SC_C_CONFLICT, sc_pos_file("--mix"),
                    "add --machine KEY=VALUES, --nodes or --cluster-budget",
                    "there is only one machine");
}

static sc_status load(cli *c, const search_opts *o, const sc_job *base,
                      sc_mix_job **job, uint32_t *n)
{
    char *text;
    size_t len;
    SC_TRY(
        sc_file_read(o->mix, SC_DOC_MAX_BYTES, c->arena, &text, &len, c->err));
    SC_TRY(
        sc_search_mix_read(text, len, o->mix, base, c->arena, job, n, c->err));
    for (uint32_t i = 0; i < *n; i++) {
        sc_mix_job *j = &(*job)[i];
        const sc_given none = {{0}};
        if (j->job.strategy != base->strategy)
            SC_TRY(sc_job_strategy(&j->job, &none, c->arena, c->err));
        SC_TRY(cli_predict_load(c, &j->job, NULL, &j->in));
        SC_TRY(sc_search_goal_check((sc_search_goal)o->goal, &o->limits,
                                    &j->job, j->in.hw, c->err));
    }
    return SC_OK;
}

static sc_status print(cli *c, const search_opts *o, const sc_search_mix *m,
                       const sc_job *base)
{
    uint32_t top = (uint32_t)o->top;
    sc_status s;
    if (c->json) {
        sc_json j;
        sc_json_init(&j, true);
        s = sc_report_mix_json(m, top, (sc_search_goal)o->goal, base, c->arena,
                               &j, c->err);
        if (s == SC_OK) s = cli_emit_json(c, &j);
        sc_json_free(&j);
        return s;
    }
    sc_text t;
    cli_text_init(c, false, &t);
    sc_report_mix_text(m, top, &t);
    s = cli_emit_text(c, &t);
    sc_text_free(&t);
    return s;
}

sc_status search_mix(cli *c, const search_opts *o, const sc_search_question *q,
                     search_machines *x, sc_search_proposal *budget)
{
    sc_search_question own = *q;
    sc_mix_job *job;
    sc_search_mix m;
    uint32_t n;
    SC_TRY(check(c, o, x));
    SC_TRY(load(c, o, q->job, &job, &n));
    own.job = &job[0].job;
    own.in = &job[0].in;
    if (x->n == 0 && o->nodes) {
        const sc_node nodes = sc_search_word(
            o->nodes, sc_pos_option(c->arena, "--nodes", o->nodes));
        SC_TRY(search_machines_add(c, "nodes", &nodes, x));
    }
    SC_TRY(search_budget_units(c, &own, x, budget));
    SC_TRY(sc_search_mix_run(&own, job, n, x->of, x->n, c->arena, &m, c->err));
    SC_TRY(print(c, o, &m, q->job));
    return m.n_rows ? SC_OK : SC_NO;
}
