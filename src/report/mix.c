/* SPDX-License-Identifier: Apache-2.0 */
/* mix.c - the machines that are best for several jobs. */
#include "report/report_mix.h"
#include "report/search.h"

#include <math.h>

static void jobs(const sc_search_mix *m, sc_text *out)
{
    const sc_mix_row *r = &m->row[0];
    sc_text_add(out, "\n");
    for (uint32_t i = 0; i < m->n_jobs; i++) {
        const sc_mix_job *j = &m->job[i];
        const sc_machine_row *own = &j->found.best[0];
        report_line(out, j->name, "weight %g: %s, regret %.1f %%: %s on %s",
                    j->weight, report_seconds(r->of[i]->best->step_time_s).s,
                    100 * (r->of[i]->score / own->score - 1),
                    report_seconds(own->best->step_time_s).s, own->job.cluster);
    }
}

void sc_report_mix_text(const sc_search_mix *m, uint32_t top, sc_text *out)
{
    report_line(out, "mix", "%u jobs: %u of %.0f machines run all of them",
                m->n_jobs, m->n_rows, m->machines);
    report_line(out, "best machine", "%s",
                !m->proved      ? "not known: give a larger --budget"
                : m->n_rows > 0 ? "proved: each was searched for each job"
                                : "none runs all jobs");
    if (m->n_rows == 0) return;
    sc_text_add(out, "\n  over the best of each job\n      mean");
    for (uint32_t i = 0; i < m->n_jobs; i++)
        sc_text_add(out, "  %10.10s", m->job[i].name);
    sc_text_add(out, "  machine\n");
    for (uint32_t k = 0; k < m->n_rows && k < top; k++) {
        const sc_mix_row *r = &m->row[k];
        sc_text_add(out, "  %8.3f", r->mean);
        for (uint32_t i = 0; i < m->n_jobs; i++)
            sc_text_add(out, "  %10.3f",
                        r->of[i]->score / m->job[i].found.best[0].score);
        sc_text_add(out, "  %s\n", r->of[0]->job.cluster);
    }
    jobs(m, out);
}

static sc_status job_json(const sc_mix_job *j, const sc_machine_row *r,
                          const sc_job *asked, sc_arena *a, sc_json *out,
                          sc_err *err)
{
    const char *options = sc_job_options(asked, &r->job, a);
    if (!options) return sc_error_nomem(err);
    sc_json_begin(out, '{');
    sc_json_put_string(out, "name", j->name);
    sc_json_put_double(out, "weight", j->weight);
    sc_json_put_double(out, "step_time_s", r->best->step_time_s);
    sc_json_put_double(out, "score", r->score);
    sc_json_put_double(out, "regret", r->score / j->found.best[0].score - 1);
    sc_json_put_string(out, "best_spec", j->found.best[0].job.cluster);
    sc_json_put_double(out, "best_score", j->found.best[0].score);
    sc_json_put_string(out, "options", options);
    sc_json_end(out, '}');
    return SC_OK;
}

sc_status sc_report_mix_json(const sc_search_mix *m, uint32_t top,
                             sc_search_goal goal, const sc_job *asked,
                             sc_arena *a, sc_json *out, sc_err *err)
{
    sc_json_begin(out, '{');
    sc_json_put_string(out, "schema", "stepcast.search/1");
    sc_json_put_string(out, "objective", sc_search_goal_names[goal]);
    sc_json_key(out, "mix");
    sc_json_begin(out, '{');
    sc_json_put_double(out, "number", m->machines);
    sc_json_put_uint(out, "run_all", m->n_rows);
    sc_json_key(out, "optimal");
    if (m->proved)
        sc_json_string(out, "proved");
    else
        sc_json_null(out);
    sc_json_key(out, "best");
    sc_json_begin(out, '[');
    for (uint32_t k = 0; k < m->n_rows && k < top; k++) {
        sc_json_begin(out, '{');
        sc_json_put_string(out, "spec", m->row[k].of[0]->job.cluster);
        sc_json_put_double(out, "mean", m->row[k].mean);
        sc_json_key(out, "of_jobs");
        sc_json_begin(out, '[');
        for (uint32_t i = 0; i < m->n_jobs; i++)
            SC_TRY(job_json(&m->job[i], m->row[k].of[i], asked, a, out, err));
        sc_json_end(out, ']');
        sc_json_end(out, '}');
    }
    sc_json_end(out, ']');
    sc_json_end(out, '}');
    sc_json_end(out, '}');
    return SC_OK;
}
