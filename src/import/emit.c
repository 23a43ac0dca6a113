/* SPDX-License-Identifier: Apache-2.0 */
/* emit.c - writes a job as files of a training program, reads them back, and
 * compares. */
#include "import/emit.h"

#include "plan/plan_strategy.h"

#include <stdio.h>
#include <string.h>

const char *const sc_emit_names[] = {"megatron",   "nemo",      "deepspeed",
                                     "torchtitan", "strategy",  "job",
                                     "cluster",    "astra-sim", NULL};

static const struct {
    const char *title;  /* in errors */
    const char *option; /* of predict, for its files; NULL: no job */
    sc_status (*write)(emitter *e);
    sc_import_format read[2]; /* of each file; SC_IMPORT_UNKNOWN: not by
                                 sc_import_read() */
} formats[SC_N_EMITS] = {
    [SC_EMIT_MEGATRON] = {"Megatron-LM",
                          "--from",
                          emit_megatron,
                          {SC_IMPORT_MEGATRON}},
    [SC_EMIT_NEMO] = {"NeMo", "--from", emit_nemo, {SC_IMPORT_NEMO}},
    [SC_EMIT_DEEPSPEED] = {"DeepSpeed",
                           "--from",
                           emit_deepspeed,
                           {SC_IMPORT_DEEPSPEED, SC_IMPORT_MEGATRON}},
    [SC_EMIT_TORCHTITAN] = {"torchtitan",
                            "--from",
                            emit_torchtitan,
                            {SC_IMPORT_TORCHTITAN}},
    [SC_EMIT_STRATEGY] = {"a strategy file",
                          "--strategy",
                          emit_strategy,
                          {SC_IMPORT_UNKNOWN}},
    [SC_EMIT_JOB] = {"a job file", "--config", emit_job, {SC_IMPORT_UNKNOWN}},
    [SC_EMIT_CLUSTER] = {.title = "a cluster file", .write = emit_cluster},
    [SC_EMIT_ASTRA_SIM] = {.title = "ASTRA-sim", .write = emit_astra_sim},
};

/* ---- files ------------------------------------------------------------------------- */

sc_status emit_file(emitter *e, const char *name, sc_text *text)
{
    sc_emitted_file *f = &e->out->file[e->out->n_files++];
    *f = (sc_emitted_file){name,
                           text->failed ? NULL : sc_strdup(e->a, text->buf)};
    sc_text_free(text);
    return f->text ? SC_OK : sc_error_nomem(e->err);
}

void emit_comment(const emitter *e, sc_text *out)
{
    sc_text_add(out, "# %s on %s, %u devices.\n", e->run->model->name,
                e->run->hw->name, e->run->hw->n_devices);
    if (e->command[0]) sc_text_add(out, "# %s\n", e->command);
}

sc_status sc_emit_write(const sc_emitted *e, const char *dir, sc_arena *a,
                        sc_err *err)
{
    SC_TRY(sc_folder_make(dir, err));
    for (uint32_t i = 0; i < e->n_files; i++) {
        const char *path = sc_sprintf(a, "%s/%s", dir, e->file[i].name);
        if (!path) return sc_error_nomem(err);
        SC_TRY(
            sc_file_write(path, e->file[i].text, strlen(e->file[i].text), err));
    }
    return SC_OK;
}

/* ---- what is given beside the files ---------------------------------------------- */

/* Properties of the run that no training program's file has, and ways to
 * predict it. */
static const char *const beside[] = {"model",
                                     "cluster",
                                     "software",
                                     "nic-bw",
                                     "power-cap",
                                     "expanded-fraction",
                                     "expanded-access",
                                     "vocab-size",
                                     "fine-tune",
                                     "mean-tokens",
                                     "document-tokens",
                                     "expert-imbalance",
                                     "host-mem-bw",
                                     "nvme-bw",
                                     "storage-bw",
                                     "checkpoint-every",
                                     "checkpoint-async",
                                     "numa-unbound",
                                     "launch-blocking",
                                     "engine",
                                     "fidelity",
                                     "no-symmetry",
                                     "price",
                                     "tokens",
                                     "compat",
                                     "gamma",
                                     "op-times",
                                     "optimizer",
                                     NULL};

static bool is_in(const char *const *list, const char *name)
{
    for (; *list; list++)
        if (strcmp(*list, name) == 0) return true;
    return false;
}

/* Without `--offload 0`, a prediction keeps in expanded memory what does not fit
 * (docs/memory.md). */
static void given_beside(const emitter *e, sc_job *out)
{
    const sc_job *j = e->job;
    const sc_expanded *x = &e->run->hw->expanded;
    sc_job_init(out);
    for (const sc_key *k = sc_job_keys; k->name; k++)
        if (is_in(beside, k->name)) sc_schema_copy(k, j, out);
    if (e->program && x->bytes > 0 && !x->spread && j->offload == 0 &&
        j->offload_weights == 0)
        out->offload = 0;
}

/* ---- reading ------------------------------------------------------------------------ */

static sc_status read_strategy(emitter *e, sc_job *got)
{
    const sc_emitted_file *f = &e->out->file[0];
    sc_strategy *s = SC_NEW(e->a, sc_strategy);
    if (!s) return sc_error_nomem(e->err);
    SC_TRY(
        sc_strategy_read(f->text, strlen(f->text), f->name, e->a, s, e->err));
    SC_TRY(sc_strategy_to_job(s, NULL, got, e->a, e->err));
    got->tree = s;
    return SC_OK;
}

/* Whether the model in the files is the run's. A longest sequence matters only
 * for a learned table of positions, and a vocabulary is padded. */
static bool same_model(emitter *e, const sc_import *m, const sc_job *got)
{
    const sc_model *x = NULL, *own = e->run->model;
    sc_status s =
        m->has_model ? sc_model_from_transformer(&m->model, sc_pos_none(), e->a,
                                                 &x, NULL)
        : got->model ? sc_model_load(got->model, sc_pos_none(), e->a, &x, NULL)
                     : SC_NO;
    e->missing = "";
    if (s != SC_OK || own->net) return false;
    sc_transformer want = own->t;
    if (want.window_every == 2 && x->t.full_every == 2) {
        want.window_every = x->t.window_every; /* two words for the same */
        want.full_every = 2;
    }
    for (const sc_key *k = sc_transformer_keys; k->name; k++) {
        bool name = strcmp(k->name, "name") == 0;
        bool length = strcmp(k->name, "max_seq") == 0 ||
                      strcmp(k->name, "positions") == 0;
        if (name || (length && own->t.position != SC_POS_LEARNED)) continue;
        bool rows = k->offset == offsetof(sc_transformer, vocab);
        e->missing = k->name;
        if (!rows && !sc_schema_same(k, &x->t, &want)) return false;
    }
    uint64_t tp = (uint64_t)e->job->tp;
    e->missing = "vocab";
    return sc_model_padded(x, tp) == sc_model_padded(own, tp);
}

/* Reads the sizes of a model.yml. */
static sc_status read_model(emitter *e, bool *same)
{
    const sc_emitted_file *f = &e->out->file[1];
    sc_node *root;
    sc_import m = {.has_model = true};
    sc_job none = {0};
    SC_TRY(sc_doc_parse(f->text, strlen(f->text), SC_FMT_YAML, f->name, e->a,
                        &root, e->err));
    SC_TRY(sc_schema_read(sc_transformer_keys, root, &m.model, NULL, e->a,
                          e->err));
    *same = same_model(e, &m, &none);
    return SC_OK;
}

static sc_status read_job(emitter *e, sc_job *got)
{
    const sc_emitted_file *f = &e->out->file[0];
    sc_node *root;
    SC_TRY(sc_doc_parse(f->text, strlen(f->text), SC_FMT_YAML, f->name, e->a,
                        &root, e->err));
    sc_job_init(got);
    SC_TRY(sc_schema_read(sc_job_keys, root, got, NULL, e->a, e->err));
    got->tree = e->job->tree;
    return SC_OK;
}

static sc_status read_import(emitter *e, sc_job *got, bool *model)
{
    sc_import_file f[2];
    sc_import m = {0};
    sc_job alone = *got;
    for (uint32_t i = 0; i < e->out->n_files; i++)
        f[i] = (sc_import_file){e->out->file[i].name, e->out->file[i].text,
                                strlen(e->out->file[i].text),
                                formats[e->format].read[i]};
    alone.model = NULL;
    SC_TRY(sc_import_read(f, e->out->n_files, NULL, e->a, &alone, &m, e->err));
    *model = same_model(e, &m, &alone);
    alone.model = got->model;
    *got = alone;
    return SC_OK;
}

/* What the files mean with the options that are given beside them. */
static sc_status read_back(emitter *e, sc_job *got, sc_job *options,
                           bool *model)
{
    given_beside(e, options);
    *got = *options;
    *model = false;
    if (e->format == SC_EMIT_STRATEGY) return read_strategy(e, got);
    if (e->format != SC_EMIT_JOB) return read_import(e, got, model);
    sc_job_init(options);
    *model = true;
    SC_TRY(read_job(e, got));
    return e->out->n_files > 1 ? read_model(e, model) : SC_OK;
}

/* Fills what is open as a prediction of the files would. */
static sc_status resolve(emitter *e, const sc_job *got, sc_job *out,
                         const sc_run **run)
{
    sc_job brief = *got;
    const sc_software *sw;
    sc_prediction *p = SC_NEW(e->a, sc_prediction);
    sc_err own;
    if (!p) return sc_error_nomem(e->err);
    sc_err_init(&own);
    brief.brief = true;
    brief.engine = SC_ENGINE_FAST;
    brief.fidelity = SC_FIDELITY_ANALYTIC;
    SC_TRY(sc_job_software(&brief, e->run->hw, e->a, &sw, e->err));
    sc_status s = sc_predict(&brief, e->run->hw, e->run->model, sw,
                             e->run->cost, e->a, p, &own);
    if (s != SC_OK && own.n)
        return sc_error(e->err, SC_EINPUT, SC_C_UNSUPPORTED,
                        sc_pos_file(own.d[0].file), own.d[0].hint,
                        "%s can't state this job: %.160s", e->title,
                        own.d[0].msg);
    SC_TRY(s);
    sc_job_resolve(got, &p->run, out);
    *run = &p->run;
    return SC_OK;
}

/* Options complete what a strategy leaves open: those that the run needs. */
static sc_status complete(emitter *e, sc_job *got, sc_job *options, sc_job *all,
                          const sc_run **run)
{
    bool more = false;
    for (const sc_key *k = sc_job_keys; k->name; k++) {
        if (emit_same(e, k, e->job, all, *run) || sc_job_has(got, k) ||
            k->offset == offsetof(sc_job, strategy))
            continue;
        sc_schema_copy(k, e->job, got);
        sc_schema_copy(k, e->job, options);
        more = true;
    }
    return more ? resolve(e, got, all, run) : SC_OK;
}

/* ---- the whole ------------------------------------------------------------------------ */

/* Jobs that only stepcast's own files can state. */
static sc_status check(const emitter *e)
{
    const sc_strategy *s = e->run->strategy;
    const char *what = NULL;
    bool own = e->format == SC_EMIT_JOB;
    if (e->run->model->net)
        what = "the division of a network of operators";
    else if (e->prediction->by_mesh)
        what = "the mesh of its strategy file";
    else if (s && (s->n_rules || s->n_cuts || s->n_pools || s->n_in_flight ||
                   s->cuts == SC_CUT_BALANCED))
        what = "rules, cuts or pools of its strategy file";
    if (own && !e->job->model && e->run->model->net)
        return sc_error(e->err, SC_EINPUT, SC_C_MISSING, sc_pos_file("--model"),
                        NULL, "a job file needs the name of a network");
    if (own || !what) return SC_OK;
    return sc_error(e->err, SC_EINPUT, SC_C_UNSUPPORTED,
                    e->job->strategy ? sc_pos_file(e->job->strategy)
                                     : sc_pos_file("--emit"),
                    "--emit job writes a file that names it",
                    "%s can't be stated by %s", what, e->title);
}

/* "stepcast predict --from DIR/FILE --cluster ..." */
static sc_status command(emitter *e, const char *dir, const sc_job *options,
                         bool model)
{
    sc_job empty, with = *options;
    sc_text t;
    sc_text_init(&t);
    sc_job_init(&empty);
    if (model) with.model = NULL;
    with.vocab = model ? 0 : with.vocab;
    const char *rest = sc_job_options(&empty, &with, e->a);
    if (!rest) return sc_error_nomem(e->err);
    sc_text_add(&t, "stepcast predict");
    uint32_t n = e->format == SC_EMIT_JOB ? 1 : e->out->n_files;
    for (uint32_t i = 0; i < n; i++)
        sc_text_add(&t, " %s %s/%s", formats[e->format].option, dir,
                    e->out->file[i].name);
    sc_text_add(&t, "%s%s", *rest ? " " : "", rest);
    e->command = t.failed ? NULL : sc_strdup(e->a, t.buf);
    sc_text_free(&t);
    return e->command ? SC_OK : sc_error_nomem(e->err);
}

static sc_status write(emitter *e)
{
    e->out->n_files = 0;
    return formats[e->format].write(e);
}

/* Writes the files and compares what they mean with the job. */
static sc_status verify(emitter *e, sc_job *options, bool *model)
{
    sc_job got, all;
    const sc_run *run;
    SC_TRY(write(e));
    SC_TRY(read_back(e, &got, options, model));
    SC_TRY(resolve(e, &got, &all, &run));
    if (e->format == SC_EMIT_STRATEGY)
        SC_TRY(complete(e, &got, options, &all, &run));
    return emit_compare(e, e->job, &all, run);
}

sc_status sc_emit(sc_emit_format format, const char *dir, const sc_job *job,
                  const sc_prediction *p, sc_arena *a, sc_emitted *out,
                  sc_err *err)
{
    sc_job want, options;
    sc_emitted result = {0};
    emitter *e = SC_NEW(a, emitter);
    bool model;
    if (!e) return sc_error_nomem(err);
    sc_job_resolve(job, &p->run, &want);
    want.model = job->model;
    *e = (emitter){.a = a,
                   .err = err,
                   .format = format,
                   .title = formats[format].title,
                   .program = format < SC_EMIT_STRATEGY,
                   .dir = dir,
                   .job = &want,
                   .run = &p->run,
                   .prediction = p,
                   .with_model = true,
                   .command = "",
                   .out = &result};
    if (!formats[format].option) {
        SC_TRY(write(e));
        result.command = e->command;
        *out = result;
        return SC_OK;
    }
    SC_TRY(check(e));
    sc_status expanded = e->program ? emit_expanded(e) : SC_OK;
    sc_status s = verify(e, &options, &model);
    SC_TRY(expanded);
    SC_TRY(s);
    if (e->with_model && !model && format == SC_EMIT_JOB)
        return sc_error(err, SC_EINPUT, SC_C_UNSUPPORTED,
                        sc_pos_file("--model"), NULL,
                        "a model file can't state %s of %s", e->missing,
                        p->run.model->name);
    if (e->with_model && !model) {
        result.note = sc_sprintf(
            a, "%s can't state %s%s%s: the files have no model", e->title,
            e->missing, e->missing[0] ? " of " : "", p->run.model->name);
        if (!result.note) return sc_error_nomem(err);
        e->with_model = false;
        SC_TRY(verify(e, &options, &model));
    }
    if (!model && !want.model && !result.note)
        result.note = "the model is in none of the files: give it, too";
    SC_TRY(command(e, dir, &options, model));
    SC_TRY(write(e));
    result.command = e->command;
    *out = result;
    return SC_OK;
}
