/* SPDX-License-Identifier: Apache-2.0 */
/* calibrate.c - `stepcast calibrate --truth DIR | --nccl-tests LOG... |
 * --network TABLE | --kernels TABLE... | --runs TABLE | --whole-runs TABLE...`. */
#include "cli/calibrate.h"

#include <string.h>

typedef struct options {
    const char *truth, *into, *nccl_tests, *network, *cluster, *kernels,
        *levels, *runs, *whole, *list;
    int64_t ranks, nodes;
    int coll;
    bool held_out, alone;
} options;

const sc_key cli_calibrate_keys[] = {
    {.name = "truth",
     .type = SC_T_STRING,
     .offset = offsetof(options, truth),
     .flag = "--truth",
     .meta = "DIR",
     .help = "directory of truth tables (data/validation)"},
    {.name = "into",
     .type = SC_T_STRING,
     .offset = offsetof(options, into),
     .def = "data/fit",
     .flag = "--into",
     .meta = "DIR|FILE",
     .help =
         "directory for network.yml, step.yml, program.yml and graph.yml, "
         "kernels.yml or whole-run.yml; with --runs, the file of the profile"},
    {.name = "held-out",
     .type = SC_T_BOOL,
     .offset = offsetof(options, held_out),
     .def = "false",
     .flag = "--held-out",
     .help = "write errors of rows that a fit leaves out (held-out.yml) "
             "instead of a fit"},
    {.name = "nccl-tests",
     .type = SC_T_STRING,
     .offset = offsetof(options, nccl_tests),
     .flag = "--nccl-tests",
     .meta = "LOG",
     .help = "logs of nccl-tests, one or more, for a profile of --cluster"},
    {.name = "network",
     .type = SC_T_STRING,
     .offset = offsetof(options, network),
     .flag = "--network",
     .meta = "TABLE",
     .help = "table of collectives, for a profile of the clusters it names"},
    {.name = "kernels",
     .type = SC_T_STRING,
     .offset = offsetof(options, kernels),
     .flag = "--kernels",
     .meta = "TABLE",
     .help = "tables of measured kernels, one or more, for kernels.yml"},
    {.name = "alone",
     .type = SC_T_BOOL,
     .offset = offsetof(options, alone),
     .def = "false",
     .flag = "--alone",
     .help = "with --kernels: forms of single kernels of each device, which "
             "replay uses, for kernels-alone.yml"},
    {.name = "kernel-levels",
     .type = SC_T_STRING,
     .offset = offsetof(options, levels),
     .flag = "--kernel-levels",
     .meta = "TABLE",
     .help = "tables of a few kernels measured on own devices, for a profile"},
    {.name = "runs",
     .type = SC_T_STRING,
     .offset = offsetof(options, runs),
     .flag = "--runs",
     .meta = "TABLE",
     .help = "table of own training runs, for a profile that moves parameters "
             "and levels"},
    {.name = "whole-runs",
     .type = SC_T_STRING,
     .offset = offsetof(options, whole),
     .flag = "--whole-runs",
     .meta = "TABLE",
     .help =
         "table of published whole runs, for whole-run.yml: how much longer "
         "than predicted they took"},
    {.name = "measure-list",
     .type = SC_T_STRING,
     .offset = offsetof(options, list),
     .flag = "--measure-list",
     .meta = "PROGRAM.py",
     .help = "write a program that measures the operators of traces which no "
             "model covers, on somebody's device"},
    {.name = "cluster",
     .type = SC_T_STRING,
     .offset = offsetof(options, cluster),
     .flag = "--cluster",
     .meta = "SPEC",
     .help = "machine on which the logs were taken"},
    {.name = "collective",
     .type = SC_T_ENUM,
     .offset = offsetof(options, coll),
     .names = sc_priced_coll_names,
     .flag = "--collective",
     .help = "the collective, if the logs do not name it"},
    {.name = "ranks",
     .type = SC_T_INT,
     .unit = SC_U_COUNT,
     .offset = offsetof(options, ranks),
     .min = 1,
     .max = 1 << 24,
     .flag = "--ranks",
     .meta = "N",
     .help = "the number of devices, if the logs do not list them"},
    {.name = "nodes",
     .type = SC_T_INT,
     .unit = SC_U_COUNT,
     .offset = offsetof(options, nodes),
     .min = 1,
     .max = 1 << 24,
     .flag = "--nodes",
     .meta = "N",
     .help = "the number of nodes, if the logs do not list their devices"},
    {0},
};

sc_status cli_write_fit(const cli *c, const char *dir, const char *name,
                        const sc_text *text)
{
    const char *path = sc_sprintf(c->arena, "%s/%s", dir, name);
    if (!path) return sc_error_nomem(c->err);
    return sc_file_write(path, text->buf, text->len, c->err);
}

static void parameters_json(const sc_cost *cost, sc_json *j)
{
    sc_json_begin(j, '{');
    sc_json_put_string(j, "schema", "stepcast.calibrate/1");
    sc_json_key(j, "parameters");
    sc_json_begin(j, '{');
    for (int i = 0; i < (int)SC_N_PARAMS; i++) {
        if (!(sc_params[i].sd > 0)) continue;
        sc_json_put_double(j, sc_params[i].name, cost->p[i]);
    }
    sc_json_end(j, '}');
    sc_json_end(j, '}');
}

static sc_status print_json(cli *c, const sc_fit_files *f)
{
    sc_cost cost;
    const sc_text *const text[] = {&f->network, &f->step, &f->program,
                                   &f->graph};
    sc_cost_centres(&cost);
    for (size_t i = 0; i < SC_COUNT(text); i++)
        if (text[i]->len)
            SC_TRY(sc_cost_read(text[i]->buf, text[i]->len, "fit", c->arena,
                                &cost, c->err));
    sc_json j;
    sc_json_init(&j, true);
    parameters_json(&cost, &j);
    sc_status s = cli_emit_json(c, &j);
    sc_json_free(&j);
    return s;
}

static sc_status calibrate(cli *c, const options *o, sc_fit_files *f,
                           sc_text *report)
{
    SC_TRY(sc_calibrate_truth(o->truth, NULL, cli_progress(c), c->arena, f,
                              report, c->err));
    SC_TRY(cli_write_fit(c, o->into, "network.yml", &f->network));
    SC_TRY(cli_write_fit(c, o->into, "step.yml", &f->step));
    if (f->program.len)
        SC_TRY(cli_write_fit(c, o->into, "program.yml", &f->program));
    if (f->graph.len) SC_TRY(cli_write_fit(c, o->into, "graph.yml", &f->graph));
    SC_TRY(cli_write_fit(c, o->into, "covariance.yml", &f->covariance));
    return c->json ? print_json(c, f) : cli_emit_text(c, report);
}

static void held_out_json(const sc_held_out *h, sc_json *j)
{
    sc_json_begin(j, '{');
    sc_json_put_string(j, "schema", "stepcast.held-out/1");
    sc_json_key(j, "kinds");
    sc_json_begin(j, '{');
    for (int k = 0; k < (int)SC_N_KINDS; k++) {
        sc_json_key(j, sc_model_kind_names[k]);
        sc_json_begin(j, '{');
        sc_json_put_double(j, "low", h->kind[k].low);
        sc_json_put_double(j, "high", h->kind[k].high);
        sc_json_put_uint(j, "rows", h->kind[k].rows);
        sc_json_put_uint(j, "families", h->kind[k].families);
        sc_json_end(j, '}');
    }
    sc_json_end(j, '}');
    sc_json_put_double(j, "unseen", h->unseen);
    sc_json_end(j, '}');
}

/* Formats held-out.yml as text and, parsed again, as JSON. */
static sc_status held_out(cli *c, const options *o, sc_text *yml,
                          sc_text *report)
{
    SC_TRY(sc_calibrate_held_out(o->truth, o->into, cli_progress(c), c->arena,
                                 yml, report, c->err));
    SC_TRY(cli_write_fit(c, o->into, "held-out.yml", yml));
    if (!c->json) return cli_emit_text(c, report);
    sc_held_out h;
    sc_json j;
    SC_TRY(sc_held_out_read(yml->buf, yml->len, "held-out.yml", c->arena, &h,
                            c->err));
    sc_json_init(&j, true);
    held_out_json(&h, &j);
    sc_status s = cli_emit_json(c, &j);
    sc_json_free(&j);
    return s;
}

static sc_status truth(cli *c, const options *o)
{
    sc_fit_files fit;
    sc_text report;
    sc_fit_files_init(&fit);
    sc_text_init(&report);
    sc_status s = o->held_out ? held_out(c, o, &fit.step, &report)
                              : calibrate(c, o, &fit, &report);
    sc_fit_files_free(&fit);
    sc_text_free(&report);
    return s;
}

/* The first file is the option's value, the others follow it. */
static const char **files_of(const cli *c, const char *first,
                             const sc_words *more)
{
    const char **file = SC_NEW_N(c->arena, const char *, (size_t)more->n + 1);
    if (!file) return NULL;
    file[0] = first;
    for (uint32_t i = 0; i < more->n; i++) file[i + 1] = more->w[i];
    return file;
}

/* Fits to one or more tables. */
static sc_status tables(cli *c, const options *o, const sc_words *more)
{
    const char *first = o->levels ? o->levels : o->kernels;
    const char **file = files_of(c, first ? first : o->whole, more);
    uint32_t n = more->n + 1;
    if (!file) return sc_error_nomem(c->err);
    if (o->levels) return cli_calibrate_levels(c, file, n);
    return o->kernels ? cli_calibrate_kernels(c, file, n, o->into, o->alone)
                      : cli_calibrate_whole(c, file, n, o->into);
}

static sc_status nccl_tests(cli *c, const options *o, const sc_words *more)
{
    const char **file = files_of(c, o->nccl_tests, more);
    if (!file) return sc_error_nomem(c->err);
    if (!o->cluster)
        return sc_error(c->err, SC_EUSAGE, SC_C_MISSING, sc_pos_none(),
                        "for example --cluster dgx-h100:2",
                        "--nccl-tests needs --cluster");
    bool given = o->coll != SC_INFER;
    sc_nccl_opts opts = {.coll =
                             given ? (int)sc_priced_colls[o->coll] : SC_INFER,
                         .ranks = (uint32_t)o->ranks,
                         .nodes = (uint32_t)o->nodes};
    return cli_calibrate_nccl(c, o->cluster, &opts, file, more->n + 1);
}

static uint32_t times_given(int argc, char *const *argv, const char *flag)
{
    uint32_t n = 0;
    size_t len = strlen(flag);
    for (int i = 0; i < argc; i++)
        n += strncmp(argv[i], flag, len) == 0 &&
             (argv[i][len] == '\0' || argv[i][len] == '=');
    return n;
}

static sc_status one_fit(cli *c, const options *o)
{
    const struct {
        const char *flag, *value;
    } fits[] = {{"--truth", o->truth},          {"--nccl-tests", o->nccl_tests},
                {"--network", o->network},      {"--kernels", o->kernels},
                {"--kernel-levels", o->levels}, {"--runs", o->runs},
                {"--whole-runs", o->whole},     {"--measure-list", o->list}};

    const char *first = NULL;
    for (size_t i = 0; i < SC_COUNT(fits); i++) {
        if (!fits[i].value) continue;
        if (first)
            return sc_error(c->err, SC_EUSAGE, SC_C_CONFLICT, sc_pos_none(),
                            "give one of them",
                            "%s and %s are two different fits", first,
                            fits[i].flag);
        first = fits[i].flag;
    }
    bool own =
        o->list || o->network || o->runs || o->kernels || o->levels || o->whole;
    if (own && o->cluster)
        return sc_error(
            c->err, SC_EUSAGE, SC_C_CONFLICT, sc_pos_none(),
            "leave --cluster out", "every row of %s names its own %s", first,
            o->kernels || o->levels || o->list ? "device" : "cluster");
    return SC_OK;
}

sc_status cli_calibrate(cli *c, int argc, char *const *argv)
{
    options o = {.coll = SC_INFER};
    sc_opt_set set = {.keys = cli_calibrate_keys, .target = &o};
    sc_words words;
    SC_TRY(sc_schema_defaults(cli_calibrate_keys, &o, c->arena, c->err));
    SC_TRY(cli_parse(c, argc, argv, &set, 1, &words));
    if (c->dump_config) return cli_dump(c, &set, 1);
    SC_TRY(one_fit(c, &o));
    if (times_given(argc, argv, "--nccl-tests") > 1)
        return sc_error(c->err, SC_EUSAGE, SC_C_OPTION, sc_pos_none(),
                        "stepcast calibrate --nccl-tests a.log b.log",
                        "--nccl-tests is given twice");
    if (times_given(argc, argv, "--kernels") > 1)
        return sc_error(c->err, SC_EUSAGE, SC_C_OPTION, sc_pos_none(),
                        "stepcast calibrate --kernels gemm.csv moe.csv",
                        "--kernels is given twice");
    if (o.held_out && !o.truth)
        return sc_error(c->err, SC_EUSAGE, SC_C_MISSING, sc_pos_none(),
                        "stepcast calibrate --truth data/validation --held-out",
                        "--held-out needs --truth");
    if (o.list) return cli_measure_list(c, o.list, &words);
    if (o.nccl_tests) return nccl_tests(c, &o, &words);
    if (o.kernels || o.levels || o.whole) return tables(c, &o, &words);
    if (o.runs && words.n == 0)
        return cli_calibrate_runs(
            c, o.runs,
            sc_given_has(&set.given, cli_calibrate_keys, "into") ? o.into
                                                                 : NULL);
    if (o.network && words.n == 0) return cli_calibrate_table(c, o.network);
    if (!o.truth || words.n > 0)
        return sc_error(c->err, SC_EUSAGE, SC_C_MISSING, sc_pos_none(),
                        o.network ? "stepcast calibrate --network a.csv"
                        : o.runs  ? "stepcast calibrate --runs a.csv"
                                  : "stepcast calibrate --truth "
                                    "data/validation",
                        o.truth     ? "--truth takes no file names"
                        : o.network ? "--network takes one table"
                        : o.runs    ? "--runs takes one table"
                                    : "no measurements are given");
    return truth(c, &o);
}
