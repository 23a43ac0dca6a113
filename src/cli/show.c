/* SPDX-License-Identifier: Apache-2.0 */
/* show.c - `stepcast show`: prints catalogue entries, and the strategy or
 * graph of a configuration. */
#include "base/name.h"
#include "cli/catalogue.h"
#include "cli/predict.h"
#include "report/report_model.h"
#include "report/report_predict.h"

#include <stdio.h>
#include <string.h>

typedef struct show_opts {
    bool layers, strategy, graph;
} show_opts;

const sc_key cli_show_keys[] = {
    {.name = "layers",
     .type = SC_T_BOOL,
     .offset = offsetof(show_opts, layers),
     .flag = "--layers",
     .help = "print FLOP, bytes and arithmetic intensity per layer and pass"},
    {.name = "strategy",
     .type = SC_T_BOOL,
     .offset = offsetof(show_opts, strategy),
     .flag = "--strategy",
     .help = "print the rules and inferred collectives of a configuration"},
    {.name = "graph",
     .type = SC_T_BOOL,
     .offset = offsetof(show_opts, graph),
     .flag = "--graph",
     .help = "print the execution graph of a configuration as text"},
    {0},
};

static void device_text(const sc_device *d, sc_text *out)
{
    sc_text_add(out, "%s  %s (%s, %s)\n", d->name, d->title, d->vendor,
                d->arch);
    show_values(d->values, d->n_values, out);
}

static void hw_text(const sc_hw *hw, sc_text *out)
{
    sc_text_add(out, "%s  %u devices in %u node%s of %u\n", hw->name,
                hw->n_devices, hw->n_nodes, hw->n_nodes == 1 ? "" : "s",
                hw->node_size);
    for (uint32_t i = 0; i < hw->n_dims; i++) {
        const sc_dim *d = &hw->dim[i];
        char bw[32], lat[32], port[32];
        sc_unit_print_short(d->bw, SC_U_RATE, bw, sizeof bw);
        sc_unit_print_short(d->latency_s, SC_U_TIME, lat, sizeof lat);
        sc_unit_print_short(d->port_bw, SC_U_RATE, port, sizeof port);
        sc_text_add(out, "  %s of %u, %s per device, %s",
                    sc_dim_kind_names[d->kind], d->size, bw, lat);
        if (d->ports)
            sc_text_add(out, ", %u NICs of %s per node", d->ports, port);
        if (d->oversub > 1)
            sc_text_add(out, ", oversubscribed %g:1 above %u nodes", d->oversub,
                        d->leaf);
        if (d->pod > 0)
            sc_text_add(out, ", cores above pods of %u nodes, %g:1", d->pod,
                        d->core_oversub);
        sc_text_add(out, "\n");
    }
    if (hw->device) device_text(hw->device, out);
}

/* The value of a fitted key is that of its parameter. */
static void fitted_text(const sc_key *k, int param, const sc_cost *cost,
                        sc_text *out)
{
    char buf[40];
    sc_unit_print_short(cost->p[param], k->unit, buf, sizeof buf);
    sc_text_add(out, "  %-16s %-14s %s; fitted: %s of data/fit\n", k->name, buf,
                k->help, sc_params[param].name);
}

static sc_status software_text(cli *c, const sc_software *sw, sc_text *out)
{
    sc_cost cost;
    SC_TRY(sc_cost_builtin(c->arena, &cost, c->err));
    sc_text_add(out, "%s\n", sw->name);
    for (const sc_key *k = sc_software_keys; k->name; k++) {
        char buf[512];
        int param = sc_software_fitted(sw, k->offset);
        sc_schema_print(k, sw, buf, sizeof buf);
        if (param >= 0)
            fitted_text(k, param, &cost, out);
        else if (k->type == SC_T_STRING)
            cli_wrap(out, 2, buf);
        else if (k->type == SC_T_LIST)
            sc_text_add(out, "  %-16s %s: %s\n", k->name, k->help,
                        buf[0] ? buf : "none");
        else
            sc_text_add(out, "  %-16s %-14s %s\n", k->name, buf, k->help);
    }
    return SC_OK;
}

static sc_status parameters_text(cli *c, sc_text *out)
{
    static const char *const sets[] = {"kernel", "network", "step", "program",
                                       "graph"};
    uint32_t n[SC_COUNT(sets)][SC_N_PARAM_ORIGINS] = {{0}};
    sc_covariance cov;
    sc_cost cost;
    SC_TRY(sc_cost_builtin(c->arena, &cost, c->err));
    SC_TRY(sc_covariance_builtin(c->arena, &cov, c->err));
    for (int i = 0; i < (int)SC_N_PARAMS; i++) {
        const sc_param_info *p = &sc_params[i];
        sc_param_origin from = sc_param_origin_of(p);
        n[p->set][from]++;
        sc_text_add(out, "%-8s %-22s %-12.5g %-9s %-16s", sets[p->set], p->name,
                    cost.p[i], p->unit, sc_param_origin_names[from]);
        if (from == SC_PARAM_FITTED)
            sc_text_add(out, " from %g, error %.2g of %.2g", p->centre,
                        sc_covariance_error(&cov, (sc_param)i), p->sd);
        sc_text_add(out, " %s\n", p->text);
    }
    sc_text_add(out, "\n%-8s %12s %18s %10s %10s\n", "set", "fitted",
                "fitted elsewhere", "assumed", "source");
    for (size_t k = 0; k < SC_COUNT(sets); k++)
        sc_text_add(out, "%-8s %12u %18u %10u %10u\n", sets[k],
                    n[k][SC_PARAM_FITTED], n[k][SC_PARAM_ELSEWHERE],
                    n[k][SC_PARAM_ASSUMED], n[k][SC_PARAM_SOURCED]);
    return SC_OK;
}

static sc_status no_layers(cli *c, const char *name)
{
    return sc_error(c->err, SC_EINPUT, SC_C_CONFLICT, sc_pos_file("--layers"),
                    "name a model", "\"%.60s\" is not a model", name);
}

static sc_status unknown(cli *c, const char *name)
{
    const char **set[4], **all;
    uint32_t n[4] = {0}, at = 0;
    SC_TRY(sc_model_list(c->arena, &set[0], &n[0], c->err));
    SC_TRY(sc_hw_list(true, c->arena, &set[1], &n[1], c->err));
    SC_TRY(sc_hw_list(false, c->arena, &set[2], &n[2], c->err));
    SC_TRY(sc_software_list(c->arena, &set[3], &n[3], c->err));
    all =
        SC_NEW_N(c->arena, const char *, (size_t)n[0] + n[1] + n[2] + n[3] + 2);
    if (!all) return sc_error_nomem(c->err);
    for (uint32_t k = 0; k < 4; k++)
        for (uint32_t i = 0; i < n[k]; i++) all[at++] = set[k][i];
    all[at++] = "parameters";
    const char *near = sc_nearest_numbered(name, all);
    /* another letter names another chip: only a missing ending is a typing
     * error */
    for (uint32_t k = 1; near && k <= 2; k++)
        for (uint32_t i = 0; near && i < n[k]; i++)
            if (near == set[k][i] && !name_slip(name, near)) near = NULL;
    const char *hint = "`stepcast list models` (devices, clusters, software, "
                       "failures, prices) shows all";
    if (near) hint = sc_sprintf(c->arena, "did you mean \"%s\"?", near);
    return sc_error(c->err, SC_EINPUT, SC_C_UNKNOWN_NAME, sc_pos_none(), hint,
                    "nothing in the catalogue is called \"%.60s\"", name);
}

static bool ends(const char *text, const char *suffix)
{
    size_t n = strlen(text), k = strlen(suffix);
    return n > k && strcmp(text + n - k, suffix) == 0;
}

/* Members of `show --json` besides the lines. */
typedef struct shown {
    const sc_model *model;
    const sc_device *device;
    const sc_hw *hw;
    const sc_software *software;
    const sc_failures *failures;
    const sc_prices *prices;
} shown;

/* `layers` uses one sequence unless the user gives a batch. */
static sc_status model_text(cli *c, const sc_model *m, const show_opts *o,
                            const sc_job *job, sc_text *out)
{
    uint64_t seq = 8192;
    if (m->t.max_seq > 0 && m->t.max_seq < 8192) seq = (uint64_t)m->t.max_seq;
    if (job->seq) seq = (uint64_t)job->seq;
    if (o->layers)
        return sc_report_layers(m, job->mbs ? (uint64_t)job->mbs : 1, seq,
                                c->arena, out, c->err);
    sc_report_model(m, out);
    return SC_OK;
}

/* Reads a file or a one-line machine and reports its errors. If it could be
 * a model or a machine, the errors of the better match are reported. */
static sc_status described(cli *c, const char *name, const show_opts *o,
                           const sc_job *job, shown *x, sc_text *out)
{
    const sc_model *m = NULL;
    const sc_hw *hw = NULL;
    sc_err *as = SC_NEW_N(c->arena, sc_err, 2);
    sc_pos pos = sc_pos_option(c->arena, "stepcast show", name);
    if (!as) return sc_error_nomem(c->err);
    sc_err_init(&as[0]);
    sc_err_init(&as[1]);
    bool file = !strpbrk(name, "@;");
    bool model = file && !ends(name, ".xml"), machine = !ends(name, ".json");
    if (model && sc_model_load(name, pos, c->arena, &m, &as[0]) == SC_OK) {
        x->model = m;
        return model_text(c, m, o, job, out);
    }
    if (machine && sc_hw_build(name, pos, c->arena, &hw, &as[1]) == SC_OK) {
        if (o->layers) return no_layers(c, name);
        x->hw = hw;
        hw_text(hw, out);
        return SC_OK;
    }
    bool second = !model || (machine && as[1].n < as[0].n);
    *c->err = as[second];
    return c->err->status;
}

static bool is_description(const char *name)
{
    static const char *const suffix[] = {".json", ".yml", ".yaml", ".xml"};
    for (size_t i = 0; i < SC_COUNT(suffix); i++)
        if (ends(name, suffix[i])) return true;
    return strpbrk(name, "@;") != NULL;
}

/* Tries the catalogues in turn. Their errors are dropped; the final error
 * replaces them. */
static sc_status entry(cli *c, const char *name, const show_opts *o,
                       const sc_job *job, shown *x, sc_text *out)
{
    const sc_model *m = NULL;
    const sc_device *d = NULL;
    const sc_hw *hw = NULL;
    const sc_software *sw = NULL;
    const sc_failures *f = NULL;
    const sc_prices *p = NULL;
    sc_err e;
    sc_pos pos = sc_pos_none();
    if (is_description(name)) return described(c, name, o, job, x, out);
    sc_err_init(&e);
    if (sc_model_load(name, pos, c->arena, &m, &e) == SC_OK) {
        x->model = m;
        return model_text(c, m, o, job, out);
    }
    bool known = strcmp(name, "parameters") == 0;
    known = known || sc_device_find(name, c->arena, &d, &e) == SC_OK;
    known = known || sc_hw_build(name, pos, c->arena, &hw, &e) == SC_OK;
    known =
        known || sc_software_find(name, NULL, pos, c->arena, &sw, &e) == SC_OK;
    known = known || sc_failures_find(name, pos, c->arena, &f, &e) == SC_OK;
    known = known || sc_prices_find(name, pos, c->arena, &p, &e) == SC_OK;
    if (!known) return unknown(c, name);
    if (o->layers) return no_layers(c, name);
    *x = (shown){NULL, d, d ? NULL : hw, sw, f, p};
    if (d)
        device_text(d, out);
    else if (hw)
        hw_text(hw, out);
    else if (sw)
        return software_text(c, sw, out);
    else if (f)
        show_failures(f, out);
    else if (p)
        show_prices(p, out);
    else
        return parameters_text(c, out);
    return SC_OK;
}

static sc_status configuration(cli *c, const sc_job *job,
                               const predict_opts *po, const show_opts *o,
                               sc_text *out)
{
    sc_prediction p;
    sc_job each = *job;
    each.each = o->graph;
    each.engine = SC_ENGINE_EVENT; /* it has operations to show */
    SC_TRY(cli_predict_run(c, &each, po, &p));
    if (o->strategy)
        SC_TRY(sc_net_plan_explain(&p.net->plan, c->arena, out, c->err));
    if (o->graph) sc_report_ops(p.net, out);
    return SC_OK;
}

/* Writes the lines of a text as JSON. */
static sc_status lines_json(cli *c, const char *name, const char *text,
                            const shown *x, const sc_cost *cost, sc_json *j)
{
    sc_json_begin(j, '{');
    sc_json_put_string(j, "schema", "stepcast.show/1");
    sc_json_put_string(j, "name", name);
    const char *kind = x->model      ? "model"
                       : x->device   ? "device"
                       : x->hw       ? "cluster"
                       : x->software ? "software"
                       : x->failures ? "failures"
                       : x->prices   ? "prices"
                                     : NULL;
    if (kind) sc_json_put_string(j, "kind", kind);
    if (x->model) catalogue_of_model(x->model, j);
    if (x->device) catalogue_of_device(x->device, cost, j);
    if (x->hw) catalogue_of_cluster(x->hw, j);
    if (x->software) catalogue_of_software(x->software, cost, j);
    if (x->failures) SC_TRY(catalogue_failures_json(c, name, cost, j));
    if (x->prices) SC_TRY(catalogue_prices_json(c, name, cost, j));
    sc_json_key(j, "lines");
    cli_lines_json(text, c->arena, j);
    sc_json_end(j, '}');
    return SC_OK;
}

static sc_status emit(cli *c, const char *name, const shown *x,
                      const sc_text *t)
{
    sc_cost cost;
    if (t->failed) return sc_error_nomem(c->err);
    if (!c->json) return cli_emit_text(c, t);
    SC_TRY(sc_cost_builtin(c->arena, &cost, c->err));
    sc_json j;
    sc_json_init(&j, true);
    sc_status s = lines_json(c, name, t->buf, x, &cost, &j);
    if (s == SC_OK) s = cli_emit_json(c, &j);
    sc_json_free(&j);
    return s;
}

static sc_status check_options(cli *c, const show_opts *o,
                               const sc_opt_set sets[3])
{
    static const char *const none[] = {NULL};
    static const char *const of_layers[] = {"seq", "micro-batch", NULL};
    static const char *const of_config[] = {"from", "megatron", "profile",
                                            NULL};
    bool config = o->strategy || o->graph;
    sc_status first = SC_OK, s;
    if (config && o->layers)
        first = sc_error(c->err, SC_EUSAGE, SC_C_CONFLICT,
                         sc_pos_file("--layers"), "give one of them",
                         "--strategy and --graph show a configuration");
    if (!config)
        first = cli_check_used(c, &sets[1], o->layers ? of_layers : none,
                               "it belongs to --strategy or --graph");
    s = cli_check_used(c, &sets[2], config ? of_config : none,
                       config ? "it belongs to `stepcast predict`"
                              : "it belongs to --strategy or --graph");
    return first != SC_OK ? first : s;
}

/* A word names the model. A file is the strategy if the model is named as
 * well, or in the file. */
static void named(cli *c, const char *word, sc_job *job)
{
    const sc_strategy *s = NULL;
    sc_err quiet;
    sc_err_init(&quiet);
    bool strategy =
        job->model ||
        (is_description(word) &&
         sc_strategy_load(word, c->arena, &s, &quiet) == SC_OK && s->model);
    if (strategy)
        job->strategy = word;
    else
        job->model = word;
}

sc_status cli_show(cli *c, int argc, char *const *argv)
{
    show_opts o = {0};
    predict_opts po = {0};
    sc_job job;
    sc_words words = {0};
    sc_job_init(&job);
    sc_opt_set sets[3] = {{cli_show_keys, &o, {{0}}},
                          {sc_job_keys, &job, {{0}}},
                          {cli_predict_keys, &po, {{0}}}};
    SC_TRY(cli_parse(c, argc, argv, sets, 3, &words));
    bool config = o.strategy || o.graph;
    if (config && words.n == 1) named(c, words.w[0], &job);
    if (c->dump_config) return cli_dump(c, sets, 3);
    SC_TRY(check_options(c, &o, sets));
    if (config) {
        SC_TRY(cli_import(c, &sets[1], &job, &po));
        SC_TRY(sc_job_strategy(&job, &sets[1].given, c->arena, c->err));
    }
    if (words.n > 1 || (!config && words.n == 0))
        return sc_error(c->err, SC_EUSAGE, SC_C_MISSING, sc_pos_none(),
                        "for example stepcast show dgx-a100-80g",
                        "show needs one name");
    sc_text t;
    shown x = {0};
    cli_text_init(c, false, &t);
    sc_status s = config ? configuration(c, &job, &po, &o, &t)
                         : entry(c, words.w[0], &o, &job, &x, &t);
    const char *name = !config    ? words.w[0]
                       : po.model ? po.model->name
                                  : job.model;
    if (s == SC_OK) s = emit(c, name, &x, &t);
    sc_text_free(&t);
    return s;
}
