/* SPDX-License-Identifier: Apache-2.0 */
/* anchors.c - --anchor: own measured runs that move the parameters. */
#include "cli/predict.h"

#include <math.h>
#include <string.h>

/* One --anchor, with the job that was run. */
typedef struct own_run {
    const char *option, *id; /* the option and its value */
    sc_job job;
    predict_opts o;
    sc_inputs in; /* without costs */
    cli_measured measured;
    uint64_t key;
} own_run;

static const char *option_of(const predict_opts *o)
{
    return o->runs_of ? o->runs_of : "--anchor";
}

/* Splits "train.log=job.yml" at the last '=', unless the value as it stands is
 * a file. */
static sc_status split(cli *c, const char *option, const char *value,
                       const char **what, const char **job)
{
    const char *at = strrchr(value, '=');
    *what = value;
    *job = NULL;
    if (!at || cli_is_file(value)) return SC_OK;
    *what = sc_sprintf(c->arena, "%.*s", (int)(at - value), value);
    if (!*what) return sc_error_nomem(c->err);
    *job = at + 1;
    if (**job && **what) return SC_OK;
    return sc_error(
        c->err, SC_EUSAGE, SC_C_OPTION, sc_pos_option(c->arena, option, value),
        sc_sprintf(c->arena, "for example %s 12.3s=job.yml", option),
        "a time or log and a job are expected");
}

/* What the file of an anchor's job leaves open and a step needs is as in the
 * predicted job. */
static void inherit(const sc_job *job, const predict_opts *o, own_run *x)
{
    if (!x->job.model && !x->o.model) {
        x->job.model = job->model;
        x->o.model = o->model;
    }
    if (!x->job.cluster) x->job.cluster = job->cluster;
    if (!x->job.software) x->job.software = job->software;
}

static sc_status read_run(cli *c, const char *value, const sc_job *job,
                          const predict_opts *o, const sc_inputs *in,
                          own_run *x)
{
    const char *what, *file;
    *x = (own_run){.option = option_of(o), .id = value, .job = *job, .in = *in};
    x->o = (predict_opts){.model = o->model};
    SC_TRY(split(c, option_of(o), value, &what, &file));
    if (file) {
        cli own = *c;
        x->o = (predict_opts){0};
        SC_TRY(cli_predict_job(&own, "--config", file, NULL, &x->job, &x->o));
        inherit(job, o, x);
        SC_TRY(cli_predict_load(c, &x->job, x->o.model, &x->in));
    }
    x->job.brief = true;
    x->job.each = false;
    x->job.fidelity = SC_FIDELITY_ANALYTIC;
    x->job.progress = NULL;
    return cli_measured_read(c, option_of(o), what, &x->measured);
}

static sc_status predict(cli *c, const own_run *x, const sc_cost *cost,
                         sc_prediction *p)
{
    return sc_predict(&x->job, x->in.hw, x->in.model, x->in.sw, cost, c->arena,
                      p, c->err);
}

/* The noise of a log's median. */
static double noise(const cli_measured *m)
{
    if (!m->from_log || !(m->log.spread_s > 0) || !(m->step_s > 0)) return 0;
    return m->log.spread_s / m->step_s / sqrt(m->log.n_used);
}

static sc_status anchor(cli *c, own_run *x, const sc_cost *base, sc_anchor *out)
{
    sc_prediction p;
    SC_TRY(predict(c, x, base, &p));
    cli_measured_settle(c, &p, &x->measured);
    if (!(x->measured.step_s > 0))
        return sc_error(c->err, SC_EINPUT, SC_C_MISSING, sc_pos_file(x->id),
                        NULL, "the log states no step time");
    SC_TRY(sc_anchor_of(&p, x->id, x->measured.step_s, noise(&x->measured),
                        c->arena, out, c->err));
    x->key = out->traits.key;
    return SC_OK;
}

/* Predicts the runs again with the parameters that they moved. */
static sc_status again(cli *c, const own_run *x, uint32_t n,
                       const sc_cost *moved, sc_anchors *s)
{
    for (uint32_t i = 0; i < n; i++) {
        sc_prediction p;
        SC_TRY(predict(c, &x[i], moved, &p));
        sc_anchors_predicted(s, x[i].key, p.step_time_s);
    }
    return SC_OK;
}

/* Says which change of the machine alone would explain a far anchor. */
static sc_status far_from(cli *c, const sc_anchor *x, const own_run *run,
                          const sc_cost *base)
{
    sc_input in[SC_INPUTS_MAX];
    sc_prediction p;
    uint32_t n = 0;
    sc_text t;
    SC_TRY(predict(c, run, base, &p));
    SC_TRY(sc_predict_inputs(&p, x->measured_s / x->predicted_s, c->arena, in,
                             &n, c->err));
    sc_text_init(&t);
    for (uint32_t i = 0; i < n; i++)
        if (isfinite(in[i].factor))
            sc_text_add(&t, "%s %s x %.2f", t.len ? " or" : "; so would",
                        in[i].name, in[i].factor);
    cli_note(c,
             "warning: %s %s: the measured step is %.2f times the "
             "predicted one, %.1f standard deviations from what is expected; "
             "its effect on other jobs is bounded. Compare its options with "
             "the run's (precision, recompute, data loading, power limit)%s\n",
             run->option, x->id, x->measured_s / x->predicted_s, fabs(x->z),
             t.len ? t.buf : "");
    sc_text_free(&t);
    return SC_OK;
}

static sc_status warn(cli *c, const own_run *x, uint32_t n, const sc_cost *base,
                      const sc_anchors *s)
{
    for (uint32_t k = 0; k < s->n; k++) {
        if (fabs(s->a[k].z) <= SC_ANCHOR_FAR) continue;
        for (uint32_t i = 0; i < n; i++)
            if (s->a[k].traits.key == x[i].key) {
                SC_TRY(far_from(c, &s->a[k], &x[i], base));
                break;
            }
    }
    return SC_OK;
}

/* The parameters without the own runs of a profile, and these runs. */
static uint32_t without(const sc_cost *cost, sc_cost *base, sc_anchor *list)
{
    const sc_anchors *s = cost->anchors;
    *base = *cost;
    if (!s) return 0;
    for (uint32_t i = 0; i < s->n; i++) {
        list[i] = s->a[i];
        list[i].moved_s = NAN;
    }
    for (int k = 0; k < (int)SC_N_PARAMS; k++) base->p[k] = s->base[k];
    base->hash = s->base_hash;
    base->anchors = NULL;
    return s->n;
}

sc_status cli_anchors(cli *c, const sc_job *job, const predict_opts *o,
                      sc_inputs *in)
{
    uint32_t n = 0, known = in->cost->anchors ? in->cost->anchors->n : 0;
    sc_cost base;
    while (o->anchor && o->anchor[n]) n++;
    if (n == 0) return SC_OK;
    own_run *x = SC_NEW_N(c->arena, own_run, n);
    sc_anchor *list = SC_NEW_N(c->arena, sc_anchor, (size_t)n + known);
    sc_anchors *s = SC_NEW(c->arena, sc_anchors);
    if (!x || !list || !s) return sc_error_nomem(c->err);
    known = without(in->cost, &base, list);
    for (uint32_t i = 0; i < n; i++) {
        SC_TRY(read_run(c, o->anchor[i], job, o, in, &x[i]));
        SC_TRY(anchor(c, &x[i], &base, &list[known + i]));
    }
    SC_TRY(
        sc_anchors_fit(list, known + n, &base, base.cov, c->arena, s, c->err));
    *in->cost = base;
    sc_anchors_move(s, in->cost);
    SC_TRY(again(c, x, n, in->cost, s));
    SC_TRY(sc_anchors_level(s, c->arena, c->err));
    SC_TRY(warn(c, x, n, &base, s));
    in->cost->anchors = s;
    return SC_OK;
}
