/* SPDX-License-Identifier: Apache-2.0 */
/* compare.c - `stepcast compare A B`: the difference of two results or jobs. */
#include "cli/predict.h"
#include "report/report_difference.h"

#include <string.h>

/* A word of the command: a result, or a job that is predicted. */
typedef struct side {
    const char *file, *name; /* `name` is for people */
    char *text;
    size_t len;
} side;

static sc_status read_result(cli *c, const side *x, sc_node *root,
                             sc_outcome *out)
{
    SC_TRY(sc_outcome_read(root, c->arena, out, c->err));
    out->name = x->name;
    return SC_OK;
}

/* The option of `predict` that takes the file. */
static sc_status option_of(cli *c, const side *x, const char **option)
{
    sc_import_format f = sc_import_recognise(x->text, x->len);
    *option = f == SC_IMPORT_UNKNOWN ? "--config" : sc_import_format_option(f);
    if (f >= SC_IMPORT_N_READ && f != SC_IMPORT_JOB &&
        f != SC_IMPORT_STRATEGY && f != SC_IMPORT_UNKNOWN)
        return sc_error(c->err, SC_EINPUT, SC_C_TYPE, sc_pos_file(x->file),
                        "give a result of `stepcast predict --json`, or a job",
                        "this is %s, which is no job",
                        sc_import_format_name(f));
    if (strcmp(x->file, "-") == 0 && strcmp(*option, "--config") != 0)
        return sc_error(c->err, SC_EINPUT, SC_C_UNSUPPORTED,
                        sc_pos_file("<stdin>"), "give it as a file",
                        "this is %s; of standard input, results and jobs of "
                        "stepcast are read",
                        sc_import_format_name(f));
    return SC_OK;
}

static sc_status predict(cli *c, const side *x, const sc_opt_set over[2],
                         sc_outcome *out)
{
    predict_opts o = {0};
    sc_job *job = SC_NEW(c->arena, sc_job);
    sc_prediction *p = SC_NEW(c->arena, sc_prediction);
    const char *option;
    if (!job || !p) return sc_error_nomem(c->err);
    SC_TRY(option_of(c, x, &option));
    cli own = *c;
    if (strcmp(option, "--config") == 0) {
        own.config_text = x->text;
        own.config_len = x->len;
    }
    SC_TRY(cli_predict_job(&own, option, x->file, over, job, &o));
    job->progress = cli_progress(c);
    sc_status s = cli_predict_run(&own, job, &o, p);
    cli_locate(&own);
    if (s == SC_OK) sc_outcome_of(x->name, job, p, out);
    return s;
}

static bool any_given(const sc_opt_set *s)
{
    for (const sc_key *k = s->keys; k->name; k++)
        if (sc_given_has(&s->given, s->keys, k->name)) return true;
    return false;
}

static sc_status outcome(cli *c, side *x, const sc_opt_set over[2],
                         sc_outcome *out)
{
    sc_node *root = NULL;
    const char *name = strcmp(x->file, "-") == 0 ? "<stdin>" : x->file;
    x->name = name;
    SC_TRY(sc_file_read(x->file, SC_DOC_MAX_BYTES, c->arena, &x->text, &x->len,
                        c->err));
    SC_TRY(sc_unpack(x->text, x->len, SC_DOC_MAX_BYTES, name, c->arena,
                     &x->text, &x->len, c->err));
    sc_import_format f = sc_import_recognise(x->text, x->len);
    if (f == SC_IMPORT_JOB || x->text[strspn(x->text, " \t\r\n")] == '{')
        SC_TRY(sc_doc_parse(x->text, x->len, SC_FMT_AUTO, name, c->arena, &root,
                            c->err));
    bool document =
        root && root->kind == SC_N_MAP && sc_node_get(root, "schema");
    if (!document) return predict(c, x, over, out);
    if (any_given(&over[0]) || any_given(&over[1]))
        return sc_error(c->err, SC_EINPUT, SC_C_CONFLICT, sc_pos_file(name),
                        "give the jobs, or no options",
                        "options of `predict` change jobs, and this is a "
                        "result");
    return read_result(c, x, root, out);
}

static sc_status print(cli *c, const sc_difference *d)
{
    sc_text t;
    sc_json j;
    cli_text_init(c, false, &t);
    sc_json_init(&j, true);
    sc_json_begin(&j, '{');
    sc_json_put_string(&j, "schema", "stepcast.difference/1");
    sc_report_difference_json(d, &j);
    sc_json_end(&j, '}');
    sc_report_difference(d, &t);
    sc_status s = c->json ? cli_emit_json(c, &j) : cli_emit_text(c, &t);
    sc_text_free(&t);
    sc_json_free(&j);
    return s;
}

sc_status cli_compare(cli *c, int argc, char *const *argv)
{
    static const char *const used[] = {"megatron", "from", "anchor", "profile",
                                       NULL};
    sc_job job;
    predict_opts o = {0};
    sc_words words = {0};
    sc_opt_set over[2] = {{sc_job_keys, &job, {{0}}},
                          {cli_predict_keys, &o, {{0}}}};
    sc_outcome *out = SC_NEW_N(c->arena, sc_outcome, 2);
    sc_difference d;
    if (!out) return sc_error_nomem(c->err);
    sc_job_init(&job);
    SC_TRY(cli_parse(c, argc, argv, over, 2, &words));
    SC_TRY(
        cli_check_used(c, &over[1], used, "it belongs to `stepcast predict`"));
    if (c->dump_config) return cli_dump(c, over, 2);
    if (words.n != 2)
        return sc_error(c->err, SC_EUSAGE, SC_C_OPTION, sc_pos_none(),
                        "for example stepcast compare a.json b.json",
                        "give two results or jobs, not %u", words.n);
    if (strcmp(words.w[0], "-") == 0 && strcmp(words.w[1], "-") == 0)
        return sc_error(c->err, SC_EUSAGE, SC_C_OPTION, sc_pos_none(),
                        "give a file as the other one",
                        "standard input can be read once");
    for (uint32_t i = 0; i < 2; i++) {
        side x = {.file = words.w[i]};
        SC_TRY(outcome(c, &x, over, &out[i]));
    }
    SC_TRY(sc_difference_of(&out[0], &out[1], c->arena, &d, c->err));
    return print(c, &d);
}
