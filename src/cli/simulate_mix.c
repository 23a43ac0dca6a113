/* SPDX-License-Identifier: Apache-2.0 */
/* simulate_mix.c - `stepcast simulate --mix`: jobs on parts of one machine. */
#include "cli/predict.h"
#include "cli/simulate.h"
#include "report/report_jobs.h"

static sc_status load(cli *c, const simulate_opts *o, sc_job *base,
                      sc_jobs_part **out, uint32_t *n)
{
    char *text;
    size_t len;
    sc_jobs_entry *of = NULL;
    SC_TRY(
        sc_file_read(o->mix, SC_DOC_MAX_BYTES, c->arena, &text, &len, c->err));
    SC_TRY(sc_jobs_read(text, len, o->mix, base, c->arena, &of, n, c->err));
    sc_jobs_part *job = SC_NEW_N(c->arena, sc_jobs_part, *n);
    if (!job) return sc_error_nomem(c->err);
    for (uint32_t i = 0; i < *n; i++) {
        const sc_given none = {{0}};
        job[i].of = &of[i];
        if (of[i].job.strategy != base->strategy)
            SC_TRY(sc_job_strategy(&of[i].job, &none, c->arena, c->err));
        SC_TRY(cli_predict_load(c, &of[i].job, NULL, &job[i].in));
    }
    *out = job;
    return SC_OK;
}

static sc_status print(cli *c, const sc_report_jobs *s)
{
    sc_status r = SC_OK;
    if (c->json) {
        sc_json j;
        sc_json_init(&j, true);
        r = sc_report_jobs_json(s, c->arena, &j, c->err);
        if (r == SC_OK) r = cli_emit_json(c, &j);
        sc_json_free(&j);
        return r;
    }
    sc_text t;
    cli_text_init(c, false, &t);
    sc_report_jobs_text(s, &t);
    r = cli_emit_text(c, &t);
    sc_text_free(&t);
    return r;
}

static void warn(const cli *c, const sc_jobs_result *r)
{
    for (uint32_t i = 0; i < r->n_jobs; i++)
        for (uint32_t k = 0; k < r->job[i].p.n_warnings; k++)
            cli_note(c, "%s: warning: %s\n", r->job[i].of->name,
                     r->job[i].p.warnings[k]);
}

sc_status cli_simulate_mix(cli *c, const simulate_opts *o,
                           const sc_opt_set *set)
{
    double begun = cli_now_s();
    bool given = sc_given_has(&set->given, set->keys, "adaptive-routing");
    const sc_jobs_opts opts = {.steps = (uint32_t)o->steps,
                               .even = !given || o->adaptive,
                               .seed = (uint64_t)c->seed};
    sc_job base;
    sc_jobs_part *job = NULL;
    sc_jobs_result r;
    sc_report_input in[2];
    uint32_t n = 0, n_inputs = 0;
    sc_job_init(&base);
    base.cluster = o->cluster;
    SC_TRY(load(c, o, &base, &job, &n));
    const sc_hw *hw = job[0].in.hw;
    SC_TRY(sc_jobs_place(job, n, hw, c->arena, c->err));
    SC_TRY(sc_jobs_run(job, n, hw, &opts, c->arena, &r, c->err));
    warn(c, &r);
    SC_TRY(cli_add_input(c, "--mix", o->mix, in, &n_inputs));
    SC_TRY(cli_add_input(c, "--config", c->config, in, &n_inputs));
    const sc_report_jobs s = {.r = &r,
                              .opts = &opts,
                              .machine = o->cluster,
                              .asked = &base,
                              .all_links = o->links == 1,
                              .wall_s = cli_now_s() - begun,
                              .peak_rss_bytes = cli_peak_rss(),
                              .input = in,
                              .n_inputs = n_inputs};
    return print(c, &s);
}
