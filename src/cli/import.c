/* SPDX-License-Identifier: Apache-2.0 */
/* import.c - completes a job from files of other programs, and
 * --dump-config. */
#include "cli/predict.h"

#include <string.h>

#define MAX_FILE ((size_t)64 << 20)

typedef struct script {
    uint32_t n;
    sc_import_file *file; /* [n] */
    sc_import *m;
} script;

/* ---- formats ------------------------------------------------------------- */

static const char *say(const cli *c, sc_import_format f, const char *file)
{
    const char *option = sc_import_format_option(f);
    if (!option) return NULL;
    return sc_sprintf(c->arena, "give it as %s %s", option, file);
}

static sc_status refuse(const cli *c, sc_import_format f, const char *option,
                        const char *file)
{
    return sc_error(c->err, SC_EINPUT, SC_C_TYPE, sc_pos_file(file),
                    say(c, f, file), "this is %s, which %s does not read",
                    sc_import_format_name(f), option);
}

/* stepcast's own formats have readers with better errors. */
static bool is_foreign(sc_import_format f)
{
    return f < SC_IMPORT_N_READ || f == SC_IMPORT_KINETO ||
           f == SC_IMPORT_HF_CONFIG || f == SC_IMPORT_EXECUTION_TRACE;
}

sc_status cli_check_format(const cli *c, const char *option, const char *file)
{
    char *text;
    size_t len;
    if (!file) return SC_OK;
    sc_arena_mark mark = sc_arena_save(c->arena);
    sc_import_format f = SC_IMPORT_UNKNOWN;
    if (cli_is_file(file) &&
        sc_file_read(file, MAX_FILE, c->arena, &text, &len, NULL) == SC_OK &&
        sc_unpack(text, len, MAX_FILE, file, c->arena, &text, &len, NULL) ==
            SC_OK)
        f = sc_import_recognise(text, len);
    sc_arena_restore(c->arena, mark);
    const char *takes = sc_import_format_option(f);
    if (!is_foreign(f) || (takes && strcmp(takes, option) == 0)) return SC_OK;
    return refuse(c, f, option, file);
}

/* ---- reading ------------------------------------------------------------- */

static sc_status add_file(cli *c, const char *option, const char *name,
                          script *x)
{
    sc_import_file *f = &x->file[x->n];
    char *text;
    SC_TRY(sc_file_read(name, MAX_FILE, c->arena, &text, &f->len, c->err));
    f->name = name;
    f->text = text;
    f->format = sc_import_recognise(text, f->len);
    bool only_scripts = strcmp(option, "--megatron") == 0;
    /* A JSON map is no script; a list may be the arguments of one. */
    if (f->format == SC_IMPORT_UNKNOWN && text[strspn(text, " \t\r\n")] == '{')
        return sc_error(c->err, SC_EINPUT, SC_C_UNSUPPORTED,
                        (sc_pos){name, 1, 1},
                        "DeepSpeed's, accelerate's, HuggingFace Trainer's and "
                        "NeMo's are read",
                        "this is no configuration that %s reads", option);
    if (f->format == SC_IMPORT_UNKNOWN) f->format = SC_IMPORT_MEGATRON;
    if (f->format >= SC_IMPORT_N_READ ||
        (only_scripts && f->format != SC_IMPORT_MEGATRON))
        return refuse(c, f->format, option, name);
    x->n++;
    return SC_OK;
}

static sc_status read_files(cli *c, const predict_opts *o, script *x)
{
    uint32_t n = 1;
    for (const char *const *f = o->from; f && *f; f++) n++;
    x->file = SC_NEW_N(c->arena, sc_import_file, n);
    if (!x->file) return sc_error_nomem(c->err);
    if (o->megatron) SC_TRY(add_file(c, "--megatron", o->megatron, x));
    for (const char *const *f = o->from; f && *f; f++)
        SC_TRY(add_file(c, "--from", *f, x));
    return SC_OK;
}

/* Fills `job` from `asked`, the options that the user gave, and the files. */
static sc_status fill(cli *c, const sc_opt_set *set, const sc_job *asked,
                      script *x, sc_job *job)
{
    *job = *asked;
    /* --fsdp is ZeRO stage 3, which replaces the stage of the files */
    if (job->fsdp && job->zero == SC_INFER) job->zero = 3;
    SC_TRY(sc_import_read(x->file, x->n, NULL, c->arena, job, x->m, c->err));
    if (sc_given_has(&set->given, sc_job_keys, "launch-blocking"))
        job->launch_blocking = asked->launch_blocking;
    return SC_OK;
}

/* Whether a cluster is a name without a number of nodes ("dgx-h100"), not a
 * file or a description. */
static bool is_bare(const char *cluster)
{
    return cluster[strcspn(cluster, ":@/.;, ")] == '\0';
}

/* A cluster without a number gets enough nodes for the processes that the
 * files start. */
static sc_status size_cluster(cli *c, const script *x, const sc_hw *hw,
                              sc_job *job)
{
    const sc_import *m = x->m;
    int64_t n = hw->n_devices, units = 0;
    if (m->world > 0 && m->world % n == 0)
        units = m->world / n;
    else if (m->world == 0 && n > 1)
        units = m->nodes;
    if (units == 0 && m->unset.text)
        return sc_error(
            c->err, SC_EINPUT, SC_C_MISSING, m->unset.pos,
            sc_sprintf(c->arena,
                       "give the cluster's size, as in --cluster %s:4, or "
                       "write a line NAME=value at the top of the file",
                       job->cluster),
            "%s %.80s: this file does not set it", m->unset.key, m->unset.text);
    if (units <= 1) return SC_OK;
    job->cluster =
        sc_sprintf(c->arena, "%s:%lld", job->cluster, (long long)units);
    if (!job->cluster) return sc_error_nomem(c->err);
    if (m->world > 0)
        cli_note(c, "note: --cluster %s: %s starts %lld processes\n",
                 job->cluster, x->m->starter, (long long)m->world);
    else
        cli_note(c, "note: --cluster %s: %s starts on %lld nodes\n",
                 job->cluster, x->m->starter, (long long)m->nodes);
    return SC_OK;
}

/* If the command line gives a cluster, it replaces the number of processes
 * in the files: dp, and a batch that follows from dp, are computed for the
 * cluster. */
static sc_status follow_cluster(cli *c, const sc_opt_set *set,
                                const sc_job *asked, script *x, sc_job *job)
{
    const sc_hw *hw = NULL;
    sc_job wish = *asked;
    wish.cluster = job->cluster;
    /* an error in the cluster is reported later, when it is needed */
    if (sc_hw_build(job->cluster, sc_pos_none(), c->arena, &hw, NULL) != SC_OK)
        return SC_OK;
    if (is_bare(job->cluster)) {
        SC_TRY(size_cluster(c, x, hw, job));
        wish.cluster = job->cluster;
        SC_TRY(sc_hw_build(job->cluster,
                           sc_pos_option(c->arena, "--cluster", job->cluster),
                           c->arena, &hw, c->err));
    }
    int64_t n = hw->n_devices, world = x->m->world;
    if (asked->dp != 0 || n == world) return SC_OK;
    int64_t part = job->tp * job->pp;
    if (part <= n) part *= job->cp;
    if (part <= 0 || part > n || n % part != 0) return SC_OK;
    wish.dp = n / part;
    if (world > 0)
        cli_note(c,
                 "note: dp %lld from the %lld devices of --cluster: %s starts "
                 "%lld processes\n",
                 (long long)wish.dp, (long long)n, x->m->starter,
                 (long long)world);
    return fill(c, set, &wish, x, job);
}

sc_status cli_import(cli *c, const sc_opt_set *set, sc_job *job,
                     predict_opts *o)
{
    script x = {0};
    sc_job asked = *job;
    SC_TRY(cli_check_format(c, "--model", job->model));
    SC_TRY(cli_check_format(c, "--cluster", job->cluster));
    SC_TRY(cli_check_format(c, "--strategy", job->strategy));
    if (!o->megatron && !o->from) return SC_OK;
    x.m = SC_NEW(c->arena, sc_import);
    if (!x.m) return sc_error_nomem(c->err);
    SC_TRY(read_files(c, o, &x));
    SC_TRY(fill(c, set, &asked, &x, job));
    if (job->cluster) SC_TRY(follow_cluster(c, set, &asked, &x, job));
    for (uint32_t i = 0; i < x.m->n_warnings; i++)
        cli_note(c, "%s\n", x.m->warnings[i]);
    o->import = x.m;
    if (job->model || (c->dump_config && !x.m->has_model)) return SC_OK;
    if (!x.m->has_model)
        return sc_error(c->err, SC_EINPUT, SC_C_MISSING,
                        sc_pos_file(x.file[0].name), "name it with --model",
                        "layers, hidden size and heads of the model are "
                        "not given");
    return sc_model_from_transformer(&x.m->model, sc_pos_file(x.file[0].name),
                                     c->arena, &o->model, c->err);
}

/* ---- --dump-config ------------------------------------------------------- */

/* The note that explains a choice begins with these words. */
static const struct {
    const char *key, *begins;
} reasons[] = {{"tp", "tp "},
               {"pp", "tp "},
               {"dp", "tp "},
               {"cp", "cp "},
               {"ep", "ep "},
               {"vp", "virtual stages "},
               {"zero", "ZeRO stage "},
               {"precision", "precision "},
               {"recompute", "recompute "},
               {"global-batch", "global batch "},
               {"micro-batch", "micro-batch "},
               {"seq", "sequence "},
               {"schedule", "schedule "}};

static const char *reason(const cli *c, const sc_key *k, const sc_prediction *p)
{
    for (size_t r = 0; r < SC_COUNT(reasons); r++) {
        size_t n = strlen(reasons[r].begins);
        for (uint32_t i = 0; i < p->n_assumptions; i++) {
            const char *a = p->assumptions[i], *why = strstr(a, ": ");
            if (strcmp(reasons[r].key, k->name) == 0 && why &&
                strncmp(a, reasons[r].begins, n) == 0)
                return sc_sprintf(c->arena, "inferred: %s", why + 2);
        }
    }
    if (sc_job_of_program(k)) return "what the software does";
    return strcmp(k->name, "software") == 0 ? "default" : "inferred";
}

/* The source of a value that is in no file of --from: the command line, a
 * file of --config, the cluster's number of devices, or inference. */
static const char *other_origin(const cli *c, const sc_opt_set *set,
                                const sc_job *job, const sc_key *k,
                                const sc_prediction *p)
{
    const sc_node *n = c->file ? sc_node_get(c->file, k->name) : NULL;
    if (n && n->pos.file)
        return sc_sprintf(c->arena, "%s:%u:%u", n->pos.file,
                          (unsigned)n->pos.line, (unsigned)n->pos.col);
    if (sc_given_has(&set->given, set->keys, k->name))
        return "the command line";
    if (!sc_job_has(job, k)) return reason(c, k, p);
    if (strcmp(k->name, "dp") == 0)
        return sc_sprintf(c->arena, "devices of %s / (tp pp cp)", job->cluster);
    return job->strategy ? job->strategy : "the command line";
}

/* Copies `m` and adds an origin for each value of `whole`, which is `job`
 * with the choices of `p`. */
static sc_status complete(cli *c, const sc_opt_set *set, const sc_job *job,
                          const sc_job *whole, const sc_prediction *p,
                          const sc_import *m, sc_import *out)
{
    uint32_t n = m->n_origins;
    for (const sc_key *k = sc_job_keys; k->name; k++) n++;
    sc_origin *all = SC_NEW_N(c->arena, sc_origin, n);
    if (!all) return sc_error_nomem(c->err);
    n = 0;
    for (uint32_t i = 0; i < m->n_origins; i++) all[n++] = m->origins[i];
    for (const sc_key *k = sc_job_keys; k->name; k++) {
        bool known = !sc_job_has(whole, k);
        for (uint32_t i = 0; i < m->n_origins; i++)
            known = known || strcmp(m->origins[i].key, k->name) == 0;
        if (known) continue;
        const char *text = other_origin(c, set, job, k, p);
        if (!text) return sc_error_nomem(c->err);
        all[n++] = (sc_origin){k->name, text, sc_pos_none()};
    }
    *out = *m;
    out->origins = all;
    out->n_origins = n;
    return SC_OK;
}

static sc_status dump_json(cli *c, const sc_opt_set sets[2], sc_job *whole)
{
    sc_opt_set all[2] = {sets[0], sets[1]};
    for (const sc_key *k = sc_job_keys; k->name; k++)
        if (sc_job_has(whole, k))
            sc_given_set(&all[0].given, sc_job_keys, k->name);
    all[0].target = whole;
    return cli_dump(c, all, 2);
}

/* Makes all choices of the run, as a prediction does, if model and cluster
 * are known. */
static sc_status resolve(cli *c, const sc_job *job, const predict_opts *o,
                         sc_job *whole, sc_prediction *p)
{
    sc_job brief = *job;
    *whole = *job;
    if (!job->cluster || (!job->model && !o->model)) return SC_OK;
    brief.brief = true;
    SC_TRY(cli_predict_run(c, &brief, o, p));
    sc_job_resolve(job, &p->run, whole);
    whole->model = job->model;
    whole->cluster = job->cluster;
    return SC_OK;
}

/* Turns "job.yml" into "job.model.yml". */
static sc_status write_model(cli *c, const sc_import *m, const char **file)
{
    size_t n = strlen(c->output);
    if (n > 4 && strcmp(c->output + n - 4, ".yml") == 0) n -= 4;
    if (n > 5 && strcmp(c->output + n - 5, ".yaml") == 0) n -= 5;
    *file = sc_sprintf(c->arena, "%.*s.model.yml", (int)n, c->output);
    if (!*file) return sc_error_nomem(c->err);
    sc_text t;
    sc_text_init(&t);
    sc_import_model_yaml(m, &t);
    sc_status s = t.failed ? sc_error_nomem(c->err)
                           : sc_file_write(*file, t.buf, t.len, c->err);
    sc_text_free(&t);
    return s;
}

sc_status cli_predict_dump(cli *c, const sc_opt_set sets[2], const sc_job *job,
                           const predict_opts *o)
{
    const sc_import none = {0}, *m = o->import ? o->import : &none;
    const char *model = NULL;
    sc_prediction *p = SC_NEW(c->arena, sc_prediction);
    sc_import all;
    sc_job whole;
    if (!p) return sc_error_nomem(c->err);
    SC_TRY(resolve(c, job, o, &whole, p));
    if (c->json) return dump_json(c, sets, &whole);
    if (!job->model && m->has_model && c->output)
        SC_TRY(write_model(c, m, &model));
    if (model) whole.vocab = 0; /* it is in the written model */
    SC_TRY(complete(c, &sets[0], job, &whole, p, m, &all));
    sc_text t;
    sc_text_init(&t);
    sc_text_add(&t, p->run.model
                        ? "# Every choice of the run and its origin.\n"
                        : "# Choices that are not listed are inferred.\n");
    sc_job_yaml(&whole, &all, model, &t);
    /* a job without a model needs the files again */
    static const char *const sources[] = {"megatron", "from", NULL};
    cli_dump_lines(&sets[1], job->model || model ? sources : NULL, &t);
    cli_dump_common(c, &t, NULL);
    sc_status s = t.failed ? sc_error_nomem(c->err) : cli_emit_text(c, &t);
    sc_text_free(&t);
    return s;
}
