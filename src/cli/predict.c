/* SPDX-License-Identifier: Apache-2.0 */
/* predict.c - `stepcast predict`. */
#include "cli/predict.h"

#include "cli/cli.h"
#include "predict/predict.h"
#include "report/report.h"
#include "report/report_against.h"
#include "report/report_predict.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define MAX_INPUT    ((size_t)1 << 30)
#define FIXED_INPUTS 11
#define MAX_INPUTS   32

#define OFF(f) offsetof(predict_opts, f)

const sc_key cli_predict_keys[] = {
    {.name = "megatron",
     .group = "the job",
     .type = SC_T_STRING,
     .offset = OFF(megatron),
     .flag = "--megatron",
     .meta = "FILE",
     .help = "launch script or arguments of Megatron-LM, for options that are "
             "not given"},
    {.name = "from",
     .group = "the job",
     .type = SC_T_LIST,
     .offset = OFF(from),
     .flag = "--from",
     .meta = "FILE",
     .help = "configuration of a training program, for options that are not "
             "given: DeepSpeed, torchtitan, NeMo, Megatron, accelerate, "
             "HuggingFace Trainer"},
    {.name = "against",
     .group = "the answer",
     .type = SC_T_STRING,
     .offset = OFF(against),
     .flag = "--against",
     .meta = "TRACE",
     .help =
         "lay a profiler's trace of one rank beside the prediction: by pass, "
         "kind of kernel and layer"},
    {.name = "measured",
     .group = "the answer",
     .type = SC_T_STRING,
     .offset = OFF(measured),
     .flag = "--measured",
     .meta = "TIME|LOG",
     .help = "compare with a measured step (34.1s, train.log) and explain the "
             "difference"},
    {.name = "why",
     .group = "the answer",
     .type = SC_T_BOOL,
     .offset = OFF(why),
     .flag = "--why",
     .help = "print the time of every operation and the factors that it is "
             "computed from"},
    {.name = "explain",
     .group = "the answer",
     .type = SC_T_BOOL,
     .offset = OFF(explain),
     .flag = "--explain",
     .help = "print every inferred collective and the reason for it"},
    {.name = "trace",
     .group = "the answer",
     .type = SC_T_STRING,
     .offset = OFF(trace),
     .flag = "--trace",
     .meta = "FILE",
     .help = "write the timeline of the step as Chrome trace JSON; .gz: "
             "compressed"},
    {.name = "emit",
     .group = "the answer",
     .type = SC_T_LIST,
     .words = 2,
     .offset = OFF(emits),
     .flag = "--emit",
     .meta = "FORMAT DIR",
     .help = "write the job into a folder as megatron, nemo, deepspeed, "
             "torchtitan, strategy, job, cluster, astra-sim or chakra"},
    {.name = "emit-chakra",
     .group = "the answer",
     .type = SC_T_STRING,
     .offset = OFF(emit),
     .flag = "--emit-chakra",
     .meta = "DIR",
     .help = "write Chakra traces of all ranks, with the system and network "
             "files for ASTRA-sim"},
    {.name = "anchor",
     .group = "how it is computed",
     .type = SC_T_LIST,
     .offset = OFF(anchor),
     .flag = "--anchor",
     .meta = "TIME|LOG[=JOB.yml]",
     .help = "an own measured run (12.3s, train.log) of this job, or of the "
             "job in a --config file; moves parameters and levels"},
    {.name = "profile",
     .group = "how it is computed",
     .type = SC_T_STRING,
     .offset = OFF(profile),
     .flag = "--profile",
     .meta = "FILE",
     .help = "parameters as written by calibrate"},
    {0},
};

static sc_status write_trace(cli *c, const predict_opts *o,
                             const sc_prediction *p)
{
    sc_json j;
    sc_json_init(&j, false);
    sc_report_chrome_trace(&p->net->plan.step, &p->net->run, p->net->memory,
                           sc_time_from_s(p->net->fixed_s), &j);
    sc_status s = cli_write_json(c, o->trace, &j);
    sc_json_free(&j);
    return s;
}

static sc_status why(const sc_prediction *p, bool prices, cli *c, sc_text *out)
{
    if (!prices)
        return sc_net_plan_explain(&p->net->plan, c->arena, out, c->err);
    SC_TRY(sc_net_plan_prices(p->net->job, c->arena, out, c->err));
    sc_report_memory(p, out);
    return SC_OK;
}

bool cli_is_file(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

sc_status cli_add_input(cli *c, const char *option, const char *file,
                        sc_report_input *in, uint32_t *n)
{
    char *text = NULL;
    size_t len = 0;
    if (!file || !cli_is_file(file)) return SC_OK;
    sc_arena_mark mark = sc_arena_save(c->arena);
    SC_TRY(sc_file_read(file, MAX_INPUT, c->arena, &text, &len, c->err));
    in[(*n)++] = (sc_report_input){option, file, sc_hash(text, len, 0)};
    sc_arena_restore(c->arena, mark);
    return SC_OK;
}

static sc_status inputs(cli *c, const predict_opts *o, const sc_job *job,
                        sc_report_input in[MAX_INPUTS], uint32_t *n)
{
    const char *const file[FIXED_INPUTS][2] = {
        {"--model", job->model},       {"--cluster", job->cluster},
        {"--software", job->software}, {"--megatron", o->megatron},
        {"--measured", o->measured},   {"--profile", o->profile},
        {"--config", c->config},       {"--strategy", job->strategy},
        {"--op-times", job->op_times}, {"--failures", job->failure_table},
        {"--purchase", job->purchase}};
    *n = 0;
    for (uint32_t i = 0; i < FIXED_INPUTS; i++)
        SC_TRY(cli_add_input(c, file[i][0], file[i][1], in, n));
    for (const char *const *f = o->from; f && *f && *n < MAX_INPUTS; f++)
        SC_TRY(cli_add_input(c, "--from", *f, in, n));
    return SC_OK;
}

static sc_status more_json(cli *c, const predict_opts *o,
                           const sc_prediction *p, const cli_measured *m,
                           sc_json *j)
{
    static const char *const key[] = {"explain", "why"};
    const bool wanted[] = {o->explain, o->why};
    sc_json_begin(j, '{');
    if (!isnan(m->step_s)) SC_TRY(cli_measured_json(c, m, p, j));
    if (o->beside) sc_report_against_json(o->beside, j);
    if (o->emitted) cli_chakra_json(o->emitted, c->arena, j);
    if (o->emits) cli_emit_files_json(o, j);
    if (p->run.cost->anchors)
        SC_TRY(sc_report_anchors_json(p, c->arena, j, c->err));
    for (uint32_t i = 0; i < 2; i++) {
        sc_text t;
        if (!wanted[i]) continue;
        sc_text_init(&t);
        sc_status s = why(p, i == 1, c, &t);
        sc_json_key(j, key[i]);
        cli_lines_json(t.buf, c->arena, j);
        j->failed = j->failed || t.failed;
        sc_text_free(&t);
        SC_TRY(s);
    }
    sc_json_end(j, '}');
    return SC_OK;
}

static bool more(const predict_opts *o, const sc_prediction *p,
                 const cli_measured *m)
{
    return !isnan(m->step_s) || o->explain || o->why || o->emitted ||
           o->emits || o->beside || p->run.cost->anchors;
}

static sc_status print_json(cli *c, const predict_opts *o, const sc_job *job,
                            const sc_prediction *p, const cli_measured *m)
{
    sc_json j, rest;
    sc_report_input in[MAX_INPUTS];
    sc_report_origin origin = {.megatron = o->megatron,
                               .from = o->from,
                               .profile = o->profile,
                               .seed = (uint64_t)c->seed,
                               .input = in};
    SC_TRY(inputs(c, o, job, in, &origin.n_inputs));
    sc_json_init(&j, true);
    sc_json_init(&rest, true);
    sc_report_prediction_json(job, p, m->step_s, &origin, &j);
    sc_status s = more_json(c, o, p, m, &rest);
    if (s == SC_OK)
        s = more(o, p, m) ? cli_emit_joined(c, &j, &rest)
                          : cli_emit_json(c, &j);
    sc_json_free(&j);
    sc_json_free(&rest);
    return s;
}

static sc_status print(cli *c, const predict_opts *o, const sc_job *job,
                       const sc_prediction *p, const cli_measured *m)
{
    sc_text t;
    if (c->json) return print_json(c, o, job, p, m);
    cli_text_init(c, false, &t);
    sc_report_prediction(job, p, m->step_s, &t);
    if (o->emitted) cli_chakra_text(o->emitted, &t);
    cli_emit_files_text(o, &t);
    sc_status s = sc_report_anchors(p, c->arena, &t, c->err);
    if (s == SC_OK) s = cli_measured_text(c, m, p, &t);
    if (s == SC_OK && o->beside) sc_report_against_text(o->beside, &t);
    if (o->explain && s == SC_OK) s = why(p, false, c, &t);
    if (o->why && s == SC_OK) s = why(p, true, c, &t);
    if (s == SC_OK) s = cli_emit_text(c, &t);
    sc_text_free(&t);
    return s;
}

/* Moves an error at "--tp 7" to the line of --megatron's script that gave
 * the option. */
static void locate(const cli *c, const sc_import *m)
{
    for (uint32_t i = 0; m && i < c->err->n; i++) {
        sc_diag *d = &c->err->d[i];
        size_t len = strcspn(d->file, " ");
        const sc_key *k = sc_job_keys;
        while (k->name && (strncmp(k->flag, d->file, len) != 0 || k->flag[len]))
            k++;
        for (uint32_t j = 0; k->name && j < m->n_origins; j++) {
            const sc_origin *o = &m->origins[j];
            if (strcmp(o->key, k->name) != 0 || o->pos.line == 0) continue;
            snprintf(d->file, sizeof d->file, "%s", o->pos.file);
            d->line = o->pos.line;
            d->col = o->pos.col;
            break;
        }
    }
}

/* Loads like sc_predict_load(), but with a model that has no name. */
sc_status cli_predict_load(cli *c, const sc_job *job, const sc_model *model,
                           sc_inputs *in)
{
    sc_arena *a = c->arena;
    if (!model) return sc_predict_load(job, a, in, c->err);
    *in = (sc_inputs){.model = model, .cost = SC_NEW(a, sc_cost)};
    if (!in->cost) return sc_error_nomem(c->err);
    if (!job->cluster)
        return sc_error(
            c->err, SC_EUSAGE, SC_C_MISSING, sc_pos_file("--cluster"),
            "for example --cluster dgx-h100:16", "no cluster is given");
    SC_TRY(sc_job_machine(job, a, &in->hw, c->err));
    SC_TRY(sc_job_software(job, in->hw, a, &in->sw, c->err));
    return sc_cost_builtin(a, in->cost, c->err);
}

/* Puts the choices that the files leave open first among the assumptions. */
static sc_status add_assumptions(cli *c, const sc_import *m, bool model,
                                 sc_prediction *p)
{
    bool vocabulary = model && m->vocabulary;
    uint32_t n = m->n_assumptions + vocabulary;
    if (n == 0) return SC_OK;
    const char **all = SC_NEW_N(c->arena, const char *, n + p->n_assumptions);
    if (!all) return sc_error_nomem(c->err);
    if (vocabulary) all[0] = m->vocabulary;
    for (uint32_t i = 0; i < m->n_assumptions; i++)
        all[vocabulary + i] = m->assumptions[i];
    for (uint32_t i = 0; i < p->n_assumptions; i++)
        all[n + i] = p->assumptions[i];
    p->assumptions = all;
    p->n_assumptions += n;
    return SC_OK;
}

sc_status cli_predict_run(cli *c, const sc_job *job, const predict_opts *o,
                          sc_prediction *p)
{
    sc_inputs in;
    SC_TRY(cli_predict_load(c, job, o->model, &in));
    SC_TRY(sc_cost_profile(o->profile, c->arena, in.cost, c->err));
    SC_TRY(cli_anchors(c, job, o, &in));
    sc_status s =
        sc_predict(job, in.hw, in.model, in.sw, in.cost, c->arena, p, c->err);
    locate(c, o->import);
    SC_TRY(s);
    return o->import ? add_assumptions(c, o->import, o->model != NULL, p)
                     : SC_OK;
}

/* Reads the files that the options name. */
static sc_status complete(cli *c, sc_opt_set sets[2], sc_job *job,
                          predict_opts *o)
{
    SC_TRY(cli_import(c, &sets[0], job, o));
    return sc_job_strategy(job, &sets[0].given, c->arena, c->err);
}

static sc_status prepare(cli *c, int argc, char *const *argv,
                         sc_opt_set sets[2], sc_job *job, predict_opts *o)
{
    sc_words words = {0};
    sc_job_init(job);
    SC_TRY(cli_parse(c, argc, argv, sets, 2, &words));
    if (words.n)
        return sc_error(c->err, SC_EUSAGE, SC_C_OPTION, sc_pos_none(),
                        "`stepcast predict --help` lists the options",
                        "unexpected word \"%.60s\"", words.w[0]);
    return complete(c, sets, job, o);
}

/* Options that are given in `over` replace those of `set`. */
static void replace(const sc_opt_set *over, sc_opt_set *set)
{
    for (const sc_key *k = set->keys; k->name; k++) {
        if (!sc_given_has(&over->given, set->keys, k->name)) continue;
        sc_schema_copy(k, over->target, set->target);
        sc_given_set(&set->given, set->keys, k->name);
    }
}

sc_status cli_predict_job(cli *own, const char *option, const char *file,
                          const sc_opt_set over[2], sc_job *job,
                          predict_opts *o)
{
    sc_words words = {0};
    sc_arena *a = own->arena;
    char *argv[] = {sc_strdup(a, option), sc_strdup(a, file)};
    sc_opt_set sets[2] = {{sc_job_keys, job, {{0}}},
                          {cli_predict_keys, o, {{0}}}};
    if (!argv[0] || !argv[1]) return sc_error_nomem(own->err);
    own->config = NULL;
    own->file = own->file_words = NULL;
    sc_job_init(job);
    sc_status s = cli_parse(own, 2, argv, sets, 2, &words);
    for (uint32_t i = 0; over && i < 2; i++) replace(&over[i], &sets[i]);
    if (s == SC_OK) s = complete(own, sets, job, o);
    cli_locate(own);
    return s;
}

/* ---- several clusters */

bool cli_is_cluster(int argc, char *const *argv, int i, int *width)
{
    *width = 1;
    if (strncmp(argv[i], "--cluster=", 10) == 0) return true;
    if (strcmp(argv[i], "--cluster") != 0 || i + 1 >= argc) return false;
    *width = 2;
    return true;
}

uint32_t cli_count_clusters(int argc, char *const *argv)
{
    uint32_t n = 0;
    int width;
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i += width)
        n += cli_is_cluster(argc, argv, i, &width);
    return n;
}

/* The options with only the `k`-th cluster. */
static char **with_cluster(cli *c, int argc, char *const *argv, uint32_t k,
                           int *n)
{
    char **out = SC_NEW_N(c->arena, char *, (size_t)argc + 1);
    uint32_t seen = 0;
    *n = 0;
    for (int i = 0, width; out && i < argc; i += width) {
        bool other = cli_is_cluster(argc, argv, i, &width) && seen++ != k;
        for (int w = 0; w < width && !other; w++) out[(*n)++] = argv[i + w];
    }
    return out;
}

static sc_status one_at_a_time(cli *c, const predict_opts *o)
{
    const struct {
        const char *flag;
        bool given;
    } alone[] = {
        {"--measured", o->measured != NULL}, {"--why", o->why},
        {"--against", o->against != NULL},   {"--explain", o->explain},
        {"--trace", o->trace != NULL},       {"--emit-chakra", o->emit != NULL},
        {"--emit", o->emits != NULL},        {"--dump-config", c->dump_config},
        {"--anchor", o->anchor != NULL}};

    for (size_t i = 0; i < SC_COUNT(alone); i++)
        if (alone[i].given)
            return sc_error(
                c->err, SC_EUSAGE, SC_C_CONFLICT, sc_pos_file(alone[i].flag),
                "give one --cluster",
                "the option takes one cluster, but several are compared");
    return SC_OK;
}

static sc_status compare_json(cli *c, const predict_opts *o,
                              const sc_job *const *job, const sc_prediction *p,
                              uint32_t n)
{
    sc_json j;
    sc_json_init(&j, true);
    sc_json_begin(&j, '{');
    sc_json_put_string(&j, "schema", "stepcast.compare/1");
    sc_json_key(&j, "results");
    sc_json_begin(&j, '[');
    sc_status s = SC_OK;
    for (uint32_t i = 0; i < n && s == SC_OK; i++) {
        sc_report_input in[MAX_INPUTS];
        sc_report_origin origin = {.megatron = o->megatron,
                                   .from = o->from,
                                   .profile = o->profile,
                                   .seed = (uint64_t)c->seed,
                                   .input = in};
        s = inputs(c, o, job[i], in, &origin.n_inputs);
        sc_report_prediction_json(job[i], &p[i], NAN, &origin, &j);
    }
    sc_json_end(&j, ']');
    sc_json_end(&j, '}');
    if (s == SC_OK) s = cli_emit_json(c, &j);
    sc_json_free(&j);
    return s;
}

static sc_status compare(cli *c, int argc, char *const *argv, uint32_t n)
{
    sc_prediction *p = SC_NEW_N(c->arena, sc_prediction, n);
    sc_job *job = SC_NEW_N(c->arena, sc_job, n);
    const sc_job **jobs = SC_NEW_N(c->arena, const sc_job *, n);
    predict_opts o = {0};
    cli each = *c;
    bool fits = false;
    if (!p || !job || !jobs) return sc_error_nomem(c->err);
    for (uint32_t i = 0; i < n; i++) {
        int words;
        char **one = with_cluster(c, argc, argv, i, &words);
        sc_opt_set sets[2] = {{sc_job_keys, &job[i], {{0}}},
                              {cli_predict_keys, &o, {{0}}}};
        if (!one) return sc_error_nomem(c->err);
        each = *c;
        o = (predict_opts){0};
        SC_TRY(prepare(&each, words, one, sets, &job[i], &o));
        SC_TRY(one_at_a_time(&each, &o));
        job[i].progress = cli_progress(&each);
        SC_TRY(cli_predict_run(&each, &job[i], &o, &p[i]));
        fits = fits || p[i].fits;
        jobs[i] = &job[i];
    }
    sc_text t;
    sc_text_init(&t);
    sc_status s = each.json
                      ? compare_json(&each, &o, jobs, p, n)
                      : sc_report_compare(jobs, p, n, c->arena, &t, c->err);
    if (s == SC_OK && !each.json) s = cli_emit_text(&each, &t);
    sc_text_free(&t);
    return s != SC_OK ? s : fits ? SC_OK : SC_NO;
}

sc_status cli_predict(cli *c, int argc, char *const *argv)
{
    sc_job job;
    predict_opts o = {0};
    sc_prediction p;
    cli_measured measured;
    cli_emitted emitted;
    uint32_t clusters = cli_count_clusters(argc, argv);
    if (clusters > 1) return compare(c, argc, argv, clusters);
    sc_opt_set sets[2] = {{sc_job_keys, &job, {{0}}},
                          {cli_predict_keys, &o, {{0}}}};
    SC_TRY(prepare(c, argc, argv, sets, &job, &o));
    job.progress = cli_progress(c);
    SC_TRY(cli_measured_read(c, "--measured", o.measured, &measured));
    SC_TRY(cli_emit_formats(c, &o));
    if (c->dump_config) return cli_predict_dump(c, sets, &job, &o);
    /* only a step that is run completely has all operations */
    job.each = o.trace || o.explain || o.why || o.against;
    SC_TRY(cli_predict_run(c, &job, &o, &p));
    cli_measured_settle(c, &p, &measured);
    SC_TRY(cli_against_read(c, &o, &p, &o.beside));
    if (o.trace) SC_TRY(write_trace(c, &o, &p));
    if (o.emit) {
        SC_TRY(cli_chakra(c, o.emit, &p, &emitted));
        o.emitted = &emitted;
    }
    SC_TRY(cli_emit_files(c, &job, &p, &o));
    SC_TRY(print(c, &o, &job, &p, &measured));
    return p.fits ? SC_OK : SC_NO;
}
