/* SPDX-License-Identifier: Apache-2.0 */
/* search.c - `stepcast search`. */
#include "cli/search.h"

#include "cli/predict.h"
#include "predict/predict.h"
#include "report/report_search.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- axes ----------------------------------------------------------------- */

static const sc_key *job_key(const char *name, size_t len)
{
    for (const sc_key *k = sc_job_keys; k->name; k++)
        if (strlen(k->name) == len && strncmp(k->name, name, len) == 0)
            return k;
    return NULL;
}

static bool add_pair(cli *c, const char *flag, const char *key,
                     const char *value, char **out, int *n)
{
    out[(*n)++] = sc_strdup(c->arena, flag);
    out[(*n)++] = sc_sprintf(c->arena, "%s=%s", key, value);
    return out[*n - 2] && out[*n - 1];
}

/* Turns `--tp 1,2,4` and `--tp=1,2,4` into `--axis tp=1,2,4`, and several
 * `--cluster A` into `--machine cluster=A`. */
static char **with_axes(cli *c, int argc, char *const *argv, int *n)
{
    char **out = SC_NEW_N(c->arena, char *, 2 * (size_t)argc + 1);
    bool clusters = cli_count_clusters(argc, argv) > 1;
    int width;
    *n = 0;
    for (int i = 0; out && i < argc; i++) {
        const char *flag = argv[i], *eq = strchr(flag, '=');
        size_t len = eq ? (size_t)(eq - flag) : strlen(flag);
        const sc_key *k = NULL;
        if (len > 2 && strncmp(flag, "--", 2) == 0)
            k = job_key(flag + 2, len - 2);
        const char *value = eq ? eq + 1 : i + 1 < argc ? argv[i + 1] : "";
        if (clusters && cli_is_cluster(argc, argv, i, &width)) {
            if (!add_pair(c, "--machine", SC_MACHINE_AXIS_CLUSTER, value, out,
                          n))
                return NULL;
            i += !eq;
            continue;
        }
        if (!k || (!eq && sc_key_is_flag(k)) || !sc_search_is_list(k, value)) {
            out[(*n)++] = argv[i];
            continue;
        }
        if (!add_pair(c, "--axis", k->name, value, out, n)) return NULL;
        i += !eq;
    }
    return out;
}

/* The axes and conditions of options and of the file of --config. */
typedef struct space {
    sc_search_config file;
    sc_search_option given[SC_SEARCH_AXES];
    uint32_t n_given;
    const sc_search_where *where[SC_SEARCH_AXES];
    uint32_t n_where;
    search_machines machines;
    sc_search_proposal budget;
} space;

static const sc_search_option *axis_of(const space *x, const sc_key *k)
{
    for (uint32_t i = 0; i < x->n_given; i++)
        if (x->given[i].key == k) return &x->given[i];
    return NULL;
}

static sc_status read_axis(cli *c, const sc_key *k, const sc_node *value,
                           const sc_opt_set *set, sc_job *job, space *x)
{
    if (x->n_given == SC_SEARCH_AXES)
        return sc_error(c->err, SC_EUSAGE, SC_C_TOO_BIG, value->pos, NULL,
                        "there are more than %d axes", SC_SEARCH_AXES);
    sc_search_option *o = &x->given[x->n_given++];
    if (sc_search_is_strategy(k))
        return sc_search_strategies_read(value, &set->given, c->arena, job, o,
                                         c->err);
    SC_TRY(sc_search_option_read_node(k, value, c->arena, o, c->err));
    if (!sc_job_loads(k)) return SC_OK;
    x->n_given--;
    return search_machines_add_option(c, o, value->pos, &x->machines);
}

static sc_status read_axes(cli *c, const search_opts *o, const sc_opt_set *set,
                           sc_job *job, space *x)
{
    for (const char *const *w = o->axis; w && *w; w++) {
        const char *eq = strchr(*w, '=');
        sc_pos pos = sc_pos_option(c->arena, "--axis", *w);
        size_t len = eq ? (size_t)(eq - *w) : strlen(*w);
        const sc_key *k = job_key(*w, len);
        if (!k || !eq)
            return sc_error(c->err, SC_EUSAGE, SC_C_OPTION, pos,
                            "for example --axis tp=1,2,4",
                            "%.*s is no option of a job with values", (int)len,
                            *w);
        if (sc_given_has(&set->given, sc_job_keys, k->name))
            return sc_error(c->err, SC_EUSAGE, SC_C_CONFLICT, pos,
                            "leave one of them out",
                            "%s has a value and is an axis", k->flag);
        if (axis_of(x, k))
            return sc_error(c->err, SC_EUSAGE, SC_C_CONFLICT, pos,
                            "give all values at once", "%s is an axis twice",
                            k->flag);
        const sc_node value = sc_search_word(eq + 1, pos);
        SC_TRY(read_axis(c, k, &value, set, job, x));
    }
    /* the command line overrides the file */
    for (uint32_t i = 0; i < x->file.n; i++) {
        const sc_key *k = x->file.axis[i].key;
        if (axis_of(x, k) || sc_given_has(&set->given, sc_job_keys, k->name))
            continue;
        SC_TRY(read_axis(c, k, x->file.axis[i].value, set, job, x));
    }
    return SC_OK;
}

static sc_status read_condition(cli *c, const char *text, sc_pos pos,
                                bool quoted, space *x)
{
    if (x->n_where == SC_COUNT(x->where))
        return sc_error(c->err, SC_EUSAGE, SC_C_TOO_BIG, pos,
                        "join some of them by and",
                        "there are more than %d conditions", SC_SEARCH_AXES);
    return sc_search_where_read(text, pos, quoted, c->arena,
                                &x->where[x->n_where++], c->err);
}

static sc_status read_conditions(cli *c, const search_opts *o, space *x)
{
    const sc_node *list = o->where ? NULL : x->file.where;
    bool seq = list && list->kind == SC_N_SEQ;
    for (const char *const *w = o->where; w && *w; w++)
        SC_TRY(read_condition(c, *w, sc_pos_option(c->arena, "--where", *w),
                              false, x));
    for (const sc_node *n = seq ? list->child : list; n;
         n = seq ? n->next : NULL)
        SC_TRY(read_condition(c, n->text, n->pos, n->quoted, x));
    return SC_OK;
}

/* ---- the answer ----------------------------------------------------------- */

static double cpu_seconds(void)
{
    return (double)clock() / CLOCKS_PER_SEC;
}

static sc_status predict_best(cli *c, const sc_search_jobs *jobs,
                              const sc_search_result *found,
                              sc_prediction **out)
{
    const sc_inputs *in = jobs->in;
    *out = SC_NEW_N(c->arena, sc_prediction, found->n_best + 1);
    if (!*out) return sc_error_nomem(c->err);
    for (uint32_t i = 0; i < found->n_best; i++) {
        sc_job job;
        sc_search_row_job(jobs, &found->best[i], &job);
        job.engine = SC_ENGINE_FAST;
        job.brief = true;
        SC_TRY(sc_predict(&job, in->hw, in->model, in->sw, in->cost, c->arena,
                          &(*out)[i], c->err));
    }
    return SC_OK;
}

/* Rows that say what to change if they run out of memory. */
enum { SMALLER = 20 };

static sc_status find_smaller(cli *c, sc_report_search *r)
{
    uint32_t n = r->found->n_best < SMALLER ? r->found->n_best : SMALLER;
    sc_report_smaller *all = SC_NEW_N(c->arena, sc_report_smaller, n + 1);
    if (!all) return sc_error_nomem(c->err);
    for (uint32_t i = 0; i < n; i++) {
        sc_job job;
        sc_search_row_job(r->jobs, &r->found->best[i], &job);
        job.engine = SC_ENGINE_FAST;
        SC_TRY(sc_predict_smaller(&job, &r->best[i], c->arena, all[i].change,
                                  &all[i].n, c->err));
    }
    r->smaller = all;
    r->n_smaller = n;
    return SC_OK;
}

/* Writes the configuration of --row in the formats of --emit. */
static sc_status emit(cli *c, const search_opts *o, const sc_report_search *r,
                      predict_opts *files)
{
    uint32_t i = (uint32_t)o->row - 1;
    sc_job job;
    if (!o->emits || r->found->n_best == 0) return SC_OK;
    if (i >= r->found->n_best)
        return sc_error(
            c->err, SC_EINPUT, SC_C_RANGE,
            sc_pos_option(c->arena, "--row", sc_sprintf(c->arena, "%u", i + 1)),
            "give a larger --top", "only %u row%s found", r->found->n_best,
            r->found->n_best == 1 ? " was" : "s were");
    sc_search_row_job(r->jobs, &r->found->best[i], &job);
    job.engine = SC_ENGINE_FAST;
    if (files->emit) {
        cli_emitted *e = SC_NEW(c->arena, cli_emitted);
        if (!e) return sc_error_nomem(c->err);
        SC_TRY(cli_chakra(c, files->emit, &r->best[i], e));
        files->emitted = e;
    }
    return cli_emit_files(c, &job, &r->best[i], files);
}

static sc_status print_json(cli *c, const sc_report_search *r,
                            const predict_opts *files)
{
    const sc_report_origin origin = {.seed = (uint64_t)c->seed};
    sc_json j, rest;
    sc_json_init(&j, true);
    sc_json_init(&rest, true);
    sc_status s = sc_report_search_json(r, &origin, c->arena, &j, c->err);
    sc_json_begin(&rest, '{');
    if (files->emitted) cli_chakra_json(files->emitted, c->arena, &rest);
    if (files->written) cli_emit_files_json(files, &rest);
    sc_json_end(&rest, '}');
    if (s == SC_OK)
        s = files->emitted || files->written ? cli_emit_joined(c, &j, &rest)
                                             : cli_emit_json(c, &j);
    sc_json_free(&rest);
    sc_json_free(&j);
    return s;
}

static sc_status print(cli *c, const sc_report_search *r,
                       const predict_opts *files)
{
    sc_text t;
    if (c->json) return print_json(c, r, files);
    cli_text_init(c, false, &t);
    sc_status s = sc_report_search_text(r, c->arena, &t, c->err);
    if (files->emitted || files->written) sc_text_add(&t, "\nwritten\n");
    if (files->emitted) cli_chakra_text(files->emitted, &t);
    cli_emit_files_text(files, &t);
    if (s == SC_OK) s = cli_emit_text(c, &t);
    sc_text_free(&t);
    return s;
}

/* The values of --nodes; n 0: it was not given. */
static sc_status read_nodes(cli *c, const search_opts *o, sc_machine_axis *out)
{
    *out = (sc_machine_axis){.n = 0};
    if (!o->nodes) return SC_OK;
    const sc_node words =
        sc_search_word(o->nodes, sc_pos_option(c->arena, "--nodes", o->nodes));
    return sc_machine_axis_read("nodes", &words, c->arena, out, c->err);
}

/* The dimensions of --front as bits. */
static sc_status read_front(cli *c, const search_opts *o, uint32_t *dims)
{
    char *all = sc_strdup(c->arena, o->front), *next = NULL;
    *dims = 0;
    if (!all) return sc_error_nomem(c->err);
    for (char *w = strtok_r(all, ", ", &next); w;
         w = strtok_r(NULL, ", ", &next)) {
        uint32_t d = 0;
        while (d < SC_N_DIMS && strcmp(w, sc_search_dim_names[d]) != 0) d++;
        if (d == SC_N_DIMS)
            return sc_error(c->err, SC_EUSAGE, SC_C_OPTION,
                            sc_pos_option(c->arena, "--front", o->front),
                            cli_hint(c, w, sc_search_dim_names,
                                     "time, memory, devices, money, power, "
                                     "capital"),
                            "the front does not compare \"%.40s\"", w);
        *dims |= 1u << d;
    }
    if (*dims) return SC_OK;
    return sc_error(c->err, SC_EUSAGE, SC_C_MISSING, sc_pos_file("--front"),
                    "for example --front time,memory", "it has no names");
}

/* What is searched: `jobs`, or the numbers of units that `r->sizes` gets. */
typedef struct question {
    const sc_job *job;
    const sc_inputs *in;
    const space *space;
    const sc_machine_axis *nodes; /* NULL: one number of devices */
    sc_search_jobs jobs;
    sc_search_result none;
    const char *identity;
    sc_words parts;        /* files of --merge */
    uint32_t dims, pareto; /* of the fronts of configurations and machines */
} question;

static sc_status explain_space(cli *c, const question *q)
{
    sc_text t;
    const search_machines *m = &q->space->machines;
    cli_text_init(c, false, &t);
    if (m->n) sc_report_search_machines(m->of, m->n, &t);
    sc_report_search_space(&q->jobs, &t);
    sc_status s = cli_emit_text(c, &t);
    sc_text_free(&t);
    return s;
}

static sc_search_question ask(const question *q, const search_opts *o,
                              const sc_search_options *so)
{
    const space *x = q->space;
    return (sc_search_question){.job = q->job,
                                .in = q->in,
                                .given = x->given,
                                .n_given = x->n_given,
                                .where = x->where,
                                .n_where = x->n_where,
                                .limits = &o->limits,
                                .budget =
                                    o->budget_of ? &x->budget.budget : NULL,
                                .dims = q->pareto,
                                .o = so};
}

static sc_status search(cli *c, const question *q, const search_opts *o,
                        const sc_search_options *so, sc_report_search *r)
{
    const space *x = q->space;
    const sc_search_question on = ask(q, o, so);
    r->limits = o->limits;
    r->budget = o->budget_of ? &x->budget : NULL;
    if (x->machines.n > 0) {
        sc_search_machines *m = SC_NEW(c->arena, sc_search_machines);
        if (!m) return sc_error_nomem(c->err);
        SC_TRY(sc_search_machines_run(&on, x->machines.of, x->machines.n,
                                      c->arena, m, c->err));
        r->machines = m;
        r->jobs = m->chosen ? &m->chosen->jobs : NULL;
        r->found = m->chosen ? &m->chosen->found : &q->none;
        return SC_OK;
    }
    if (!q->nodes) {
        sc_search_result *found = SC_NEW(c->arena, sc_search_result);
        if (!found) return sc_error_nomem(c->err);
        r->jobs = &q->jobs;
        r->found = found;
        return sc_search_run(&q->jobs, so, c->arena, found, c->err);
    }
    sc_search_sizes *s = SC_NEW(c->arena, sc_search_sizes);
    if (!s) return sc_error_nomem(c->err);
    SC_TRY(sc_search_sizes_run(&on, q->nodes, c->arena, s, c->err));
    r->sizes = s;
    r->goal = s->goal;
    r->jobs = s->chosen ? &s->chosen->jobs : NULL;
    r->found = s->chosen ? &s->chosen->found : &q->none;
    return SC_OK;
}

/* How much the best machine of all matters, by its fastest configuration. */
static sc_status find_swings(cli *c, const question *q, const search_opts *o,
                             const sc_search_options *so, sc_report_search *r)
{
    const sc_search_question on = ask(q, o, so);
    const sc_job *job = r->machines ? &r->machines->chosen->job
                        : r->sizes  ? &r->sizes->chosen->job
                                    : q->job;
    sc_search_swing *swing =
        SC_NEW_N(c->arena, sc_search_swing, SC_N_HW_PROPERTIES);
    if (!swing) return sc_error_nomem(c->err);
    r->swing = swing;
    r->swing_by = 0.2;
    return sc_search_tornado(&on, job, r->jobs, &r->found->best[0], r->swing_by,
                             c->arena, swing, &r->n_swings, &r->swing_base_s,
                             c->err);
}

/* All cores, shared among the ranks of this machine. */
static uint32_t threads_of(const cli *c)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    uint32_t here = c->host ? c->host->ranks_here : 1;
    if (c->jobs) return (uint32_t)c->jobs;
    return cores > (long)here ? (uint32_t)cores / here : 1;
}

static sc_search_options options_of(const cli *c, const search_opts *o)
{
    return (sc_search_options){.top = (uint32_t)o->top,
                               .threads = threads_of(c),
                               .kinds = !o->neighbours,
                               .exhaustive = o->exhaustive,
                               .keep_free = o->margin,
                               .goal = (sc_search_goal)o->goal};
}

static sc_status answer(cli *c, const search_opts *o, sc_report_search *r,
                        predict_opts *files)
{
    sc_prediction *best = NULL;
    sc_search_sure sure;
    if (r->jobs) SC_TRY(predict_best(c, r->jobs, r->found, &best));
    r->best = best;
    SC_TRY(sc_search_judge(r->found, r->goal, best, c->arena, &sure, c->err));
    r->sure = &sure;
    SC_TRY(find_smaller(c, r));
    SC_TRY(emit(c, o, r, files));
    return print(c, r, files);
}

static sc_status find_relief(cli *c, const question *q, const search_opts *o,
                             const sc_search_options *so, sc_report_search *r)
{
    const sc_search_question on = ask(q, o, so);
    bool memory = false;
    for (uint32_t i = 0; i < r->found->n_reasons; i++)
        memory = memory || strcmp(r->found->reason[i].name, "memory") == 0;
    if (!memory || r->found->n_best || r->found->left) return SC_OK;
    return sc_search_relief(&on, c->arena, &r->relief, &r->relieved, c->err);
}

static sc_status run(cli *c, const search_opts *o, const question *q,
                     predict_opts *files)
{
    double begun = cli_now_s();
    double cpu = cpu_seconds();
    search_files kept = {
        .c = c, .o = o, .merge = q->parts, .identity = q->identity};
    sc_search_options so = options_of(c, o);
    so.ranks = c->host ? c->host->ranks : NULL;
    sc_report_search r = {.asked = q->job, .goal = so.goal};
    r.dims = q->dims;
    bool several = q->nodes || q->space->machines.n > 0;
    sc_status s = search_files_open(&kept, several ? NULL : &q->jobs, &so);
    if (s == SC_OK) s = search(c, q, o, &so, &r);
    SC_TRY(search_files_close(&kept, s));
    r.wall_s = cli_now_s() - begun;
    r.cpu_s = cpu_seconds() - cpu;
    if (kept.first && o->tornado && r.found->n_best)
        SC_TRY(find_swings(c, q, o, &so, &r));
    if (kept.first && !several) SC_TRY(find_relief(c, q, o, &so, &r));
    if (kept.first) SC_TRY(answer(c, o, &r, files));
    return r.found->n_best ? SC_OK : SC_NO;
}

static sc_status open_jobs(cli *c, question *q)
{
    const space *x = q->space;
    SC_TRY(sc_search_jobs_open(q->job, q->in, x->given, x->n_given, c->arena,
                               &q->jobs, c->err));
    return sc_search_jobs_where(&q->jobs, x->where, x->n_where, c->arena,
                                c->err);
}

/* Adds a list option with the place of the file that it is from. */
static sc_status from_file(cli *c, const sc_key *k, const char *text,
                           const sc_node *at, search_opts *o, sc_opt_set *set)
{
    sc_node *root = SC_NEW(c->arena, sc_node), *n = SC_NEW(c->arena, sc_node);
    if (!root || !n || !text) return sc_error_nomem(c->err);
    *root = *c->file;
    *n = (sc_node){
        .key = k->name, .pos = at->pos, .next = root->child, .text = ""};
    root->child = n;
    c->file = root;
    sc_given_set(&set->given, cli_search_keys, k->name);
    return sc_schema_set(k, text, at->pos, o, c->arena, c->err);
}

static const sc_key *option_key(size_t offset)
{
    const sc_key *k = cli_search_keys;
    while (k->offset != offset) k++;
    return k;
}

/* "tp=1,2,4" of a word or list; NULL: out of memory. */
static const char *text_of(cli *c, const sc_node *v)
{
    bool many = v->kind == SC_N_SEQ;
    const char *text = sc_sprintf(c->arena, "%s=", v->key);
    for (const sc_node *n = many ? v->child : v; n && text;
         n = many ? n->next : NULL)
        text = sc_sprintf(c->arena, "%s%s%s", text,
                          text[strlen(text) - 1] == '=' ? "" : ",", n->text);
    return text;
}

/* Adds axes and conditions of the file to the options, as --dump-config writes
 * them. */
static sc_status with_file(cli *c, search_opts *o, sc_opt_set *set,
                           const space *x)
{
    const sc_node *list = o->where ? NULL : x->file.where;
    bool seq = list && list->kind == SC_N_SEQ;
    const sc_key *axis = option_key(offsetof(search_opts, axis)),
                 *where = option_key(offsetof(search_opts, where)),
                 *machine = option_key(offsetof(search_opts, machine));
    for (uint32_t i = 0; i < x->file.n; i++) {
        const sc_node *v = x->file.axis[i].value;
        SC_TRY(from_file(c, axis, text_of(c, v), v, o, set));
    }
    for (const sc_node *n = seq ? list->child : list; n;
         n = seq ? n->next : NULL)
        SC_TRY(from_file(c, where, n->text, n, o, set));
    for (const sc_node *n = x->file.machine ? x->file.machine->child : NULL; n;
         n = n->next)
        SC_TRY(from_file(c, machine, text_of(c, n), n, o, set));
    list = x->file.clusters;
    for (const sc_node *n = list ? list->child : NULL; n; n = n->next)
        SC_TRY(from_file(
            c, machine,
            sc_sprintf(c->arena, SC_MACHINE_AXIS_CLUSTER "=%s", n->text), n, o,
            set));
    return SC_OK;
}

/* The axes and conditions of a file count as options. */
static sc_status identify(cli *c, search_opts *o, sc_opt_set sets[2],
                          const space *x, question *q)
{
    bool unnamed = c->host && c->host->cache;
    if (!o->save && !o->merge && !o->keep && !unnamed) return SC_OK;
    SC_TRY(with_file(c, o, &sets[1], x));
    return search_identity(c, sets, q->job, q->in, x->given, x->n_given,
                           &q->identity);
}

sc_status cli_search(cli *c, int argc, char *const *argv)
{
    search_opts o = {.top = 0};
    sc_job job;
    sc_inputs in;
    sc_machine_axis nodes;
    question q = {.job = &job, .in = &in};
    sc_words words = {0};
    sc_opt_set sets[2] = {{sc_job_keys, &job, {{0}}},
                          {cli_search_keys, &o, {{0}}}};
    int n = 0;
    char **own = with_axes(c, argc, argv, &n);
    space *x = SC_NEW(c->arena, space);
    if (!own || !x) return sc_error_nomem(c->err);
    sc_job_init(&job);
    c->space = &x->file;
    SC_TRY(sc_schema_defaults(cli_search_keys, &o, c->arena, c->err));
    SC_TRY(cli_parse(c, n, own, sets, 2, &words));
    if (words.n && !o.merge)
        return sc_error(c->err, SC_EUSAGE, SC_C_OPTION, sc_pos_none(),
                        "`stepcast search --help` lists the options",
                        "unexpected word \"%.60s\"", words.w[0]);
    predict_opts files = {.emits = o.emits};
    SC_TRY(cli_emit_formats(c, &files));
    if (c->dump_config) {
        SC_TRY(with_file(c, &o, &sets[1], x));
        return cli_dump(c, sets, 2);
    }
    job.engine = SC_ENGINE_FAST;
    SC_TRY(sc_job_strategy(&job, &sets[0].given, c->arena, c->err));
    SC_TRY(read_axes(c, &o, &sets[0], &job, x));
    SC_TRY(read_conditions(c, &o, x));
    SC_TRY(search_machines_read(c, &o, &x->file, &x->machines, &job));
    SC_TRY(search_budget_open(c, &o, &job, &x->machines, &x->budget));
    q.space = x;
    const sc_search_options so = options_of(c, &o);
    const sc_search_question on = ask(&q, &o, &so);
    if (o.mix) return search_mix(c, &o, &on, &x->machines, &x->budget);
    SC_TRY(cli_predict_load(c, &job, NULL, &in));
    const predict_opts runs = {.anchor = o.measured, .runs_of = "--measured"};
    SC_TRY(cli_anchors(c, &job, &runs, &in));
    SC_TRY(read_nodes(c, &o, &nodes));
    if (x->machines.n == 0)
        SC_TRY(sc_search_goal_check((sc_search_goal)o.goal, &o.limits, &job,
                                    in.hw, c->err));
    bool named = sc_given_has(&sets[1].given, cli_search_keys, "front");
    SC_TRY(read_front(c, &o, &q.dims));
    SC_TRY(search_budget_units(c, &on, &x->machines, &x->budget));
    SC_TRY(search_budget_front(c, &o, named ? q.dims : 0, &on, &x->machines,
                               &q.pareto));
    bool limited = o.limits.until_s > 0 || o.limits.usd > 0;
    if (x->machines.n == 0 && (nodes.n || limited)) q.nodes = &nodes;
    if ((x->machines.n == 0 && !q.nodes) || o.explain_space)
        SC_TRY(open_jobs(c, &q));
    if (o.explain_space) return explain_space(c, &q);
    q.parts = words;
    SC_TRY(identify(c, &o, sets, x, &q));
    return run(c, &o, &q, &files);
}
