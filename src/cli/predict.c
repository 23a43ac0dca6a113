/* SPDX-License-Identifier: Apache-2.0 */
/* predict.c - `stepcast predict`. */
#include "cli/predict.h"

#include <stepcast/predict.h>
#include <stepcast/report.h>
#include <stepcast/report_predict.h>

#include "cli/cli.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define OFF(f) offsetof(predict_opts, f)

const sc_key cli_predict_keys[] = {
    {"measured", SC_T_QUANTITY, SC_U_TIME, OFF(measured), NULL, 1e-9, DBL_MAX,
     NULL, "--measured", "TIME", "print the gap to a measured step (34.1s)",
     false},
    {"why", SC_T_BOOL, SC_U_NONE, OFF(why), NULL, 0, 0, NULL, "--why", NULL,
     "every price and what made it", false},
    {"explain", SC_T_BOOL, SC_U_NONE, OFF(explain), NULL, 0, 0, NULL,
     "--explain", NULL, "every inferred collective and its reason", false},
    {"trace", SC_T_STRING, SC_U_NONE, OFF(trace), NULL, 0, 0, NULL, "--trace",
     "FILE", "the step's timeline as Chrome trace JSON", false},
    {"profile", SC_T_STRING, SC_U_NONE, OFF(profile), NULL, 0, 0, NULL,
     "--profile", "FILE", "parameters as written by calibrate", false},
    {0},
};

static sc_status write_trace(cli *c, const predict_opts *o,
                             const sc_prediction *p)
{
    sc_plan plan;
    sc_block *blocks = NULL;
    sc_graph g;
    sc_result r;
    sc_sim_opts so;
    sc_lower_opts lo = {.expand = true};
    SC_TRY(sc_plan_build(&p->run, c->arena, &plan, c->err));
    SC_TRY(sc_blocks_price(&plan, c->arena, &blocks, c->err));
    SC_TRY(sc_lower(&plan, blocks, &lo, c->arena, &g, c->err));
    sc_predict_rates(p->run.cost, &so);
    SC_TRY(sc_sim_run(&g, &so, c->arena, &r, c->err));
    sc_json j;
    sc_json_init(&j, false);
    sc_report_chrome_trace(&g, &r, &j);
    sc_status s = j.failed ? sc_error_nomem(c->err)
                           : sc_file_write(o->trace, j.buf, j.len, c->err);
    sc_json_free(&j);
    return s;
}

static sc_status why(const sc_prediction *p, bool prices, cli *c, sc_text *out)
{
    sc_plan plan;
    SC_TRY(sc_plan_build(&p->run, c->arena, &plan, c->err));
    if (!prices) {
        sc_plan_explain(&plan, out);
        return SC_OK;
    }
    for (uint32_t l = 0; l < p->run.model->n_layers; l++)
        sc_block_explain(&plan, l, out);
    return SC_OK;
}

static sc_status print(cli *c, const predict_opts *o, const sc_job *job,
                       const sc_prediction *p, double measured)
{
    sc_status s;
    if (c->json) {
        sc_json j;
        sc_json_init(&j, true);
        sc_report_prediction_json(job, p, measured, &j);
        s = cli_emit_json(c, &j);
        sc_json_free(&j);
        return s;
    }
    sc_text t;
    sc_text_init(&t);
    sc_report_prediction(job, p, measured, &t);
    s = SC_OK;
    if (o->explain) s = why(p, false, c, &t);
    if (o->why && s == SC_OK) s = why(p, true, c, &t);
    if (s == SC_OK) s = cli_emit_text(c, &t);
    sc_text_free(&t);
    return s;
}

/* What is wrong with "--tp 7" is wrong at a line of --config's file, if that
 * is where it was given. */
static void locate(const cli *c)
{
    for (uint32_t i = 0; c->file && i < c->err->n; i++) {
        sc_diag *d = &c->err->d[i];
        size_t len = strcspn(d->file, " ");
        const sc_key *k = sc_job_keys;
        while (k->name && (strncmp(k->flag, d->file, len) != 0 || k->flag[len]))
            k++;
        const sc_node *n = k->name ? sc_node_get(c->file, k->name) : NULL;
        if (!n) continue;
        snprintf(d->file, sizeof d->file, "%s", n->pos.file);
        d->line = n->pos.line;
        d->col = n->pos.col;
    }
}

sc_status cli_predict_run(cli *c, const sc_job *job, const predict_opts *o,
                          sc_prediction *p)
{
    sc_inputs in;
    SC_TRY(sc_predict_load(job, c->arena, &in, c->err));
    if (o->profile) {
        char *text = NULL;
        size_t len = 0;
        SC_TRY(sc_file_read(o->profile, (size_t)16 << 20, c->arena, &text, &len,
                            c->err));
        SC_TRY(sc_cost_read(text, len, o->profile, c->arena, in.cost, c->err));
    }
    sc_status s =
        sc_predict(job, in.hw, in.model, in.sw, in.cost, c->arena, p, c->err);
    locate(c);
    return s;
}

sc_status cli_predict(cli *c, int argc, char *const *argv)
{
    sc_job job;
    predict_opts o = {.measured = NAN};
    sc_prediction p;
    sc_words words = {0};
    sc_job_init(&job);
    sc_opt_set sets[2] = {{sc_job_keys, &job, {{0}}},
                          {cli_predict_keys, &o, {{0}}}};
    SC_TRY(cli_parse(c, argc, argv, sets, 2, &words));
    sc_job_given(&job, &sets[0].given);
    if (words.n)
        return sc_error(c->err, SC_EUSAGE, SC_C_OPTION, sc_pos_none(),
                        "`stepcast predict --help` lists the options",
                        "unexpected word \"%.60s\"", words.w[0]);
    if (c->dump_config) return cli_dump(c, sets, 2);
    SC_TRY(cli_predict_run(c, &job, &o, &p));
    if (o.trace) SC_TRY(write_trace(c, &o, &p));
    SC_TRY(print(c, &o, &job, &p, o.measured));
    return p.fits ? SC_OK : SC_NO;
}
