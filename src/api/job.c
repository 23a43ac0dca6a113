/* SPDX-License-Identifier: Apache-2.0 */
/* job.c - jobs of the interface: options of a command, and a run with them. */
#include <stepcast/job.h>

#include "api/api.h"
#include "cli/cli.h"
#include "predict/predict.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RUN_BYTES ((size_t)8 << 30) /* largest memory of one run */

typedef struct command {
    const char *name;
    sc_status (*run)(cli *c, int argc, char *const *argv);
    const sc_key *keys[3];
} command;

static const command commands[] = {
    {"predict", cli_predict, {sc_job_keys, cli_predict_keys, NULL}},
    {"search", cli_search, {sc_job_keys, cli_search_keys, NULL}},
    {"simulate", cli_simulate, {cli_simulate_keys, NULL, NULL}},
    {"coll", cli_coll, {cli_coll_keys, NULL, NULL}},
    {"replay", cli_replay, {cli_replay_keys, NULL, NULL}},
    {"shard", cli_shard, {cli_shard_keys, NULL, NULL}},
    {"validate", cli_validate, {cli_validate_keys, NULL, NULL}},
    {"calibrate", cli_calibrate, {cli_calibrate_keys, NULL, NULL}},
    {"list", cli_list, {cli_list_keys, NULL, NULL}},
    {"show", cli_show, {cli_show_keys, sc_job_keys, cli_predict_keys}},
};

/* The common options of commands that jobs also have. */
static const char *const common[] = {"config", "jobs", "seed", NULL};

struct stepcast_job {
    sc_arena arena; /* holds the words */
    const command *command;
    char **option; /* [n_options] "--tp=8" */
    char **word;   /* [n_words] */
    uint32_t n_options, n_words, cap_options, cap_words;
    sc_err err; /* errors of refused options */
};

static const command *find(const char *name)
{
    for (size_t i = 0; name && i < SC_COUNT(commands); i++)
        if (strcmp(commands[i].name, name) == 0) return &commands[i];
    return NULL;
}

static bool among(const char *name, const char *const *names)
{
    for (; *names; names++)
        if (strcmp(name, *names) == 0) return true;
    return false;
}

/* Option `i` of a command; NULL after the last. */
static const sc_key *option(const command *c, uint32_t i)
{
    for (size_t t = 0; t < SC_COUNT(c->keys) && c->keys[t]; t++)
        for (const sc_key *k = c->keys[t]; k->name; k++)
            if (k->flag && i-- == 0) return k;
    for (const sc_key *k = cli_common_keys; k->name; k++)
        if (among(k->name, common) && i-- == 0) return k;
    return NULL;
}

stepcast_job *stepcast_job_new(const char *name)
{
    const command *c = find(name);
    stepcast_job *job = c ? calloc(1, sizeof *job) : NULL;
    if (!job) return NULL;
    sc_arena_init(&job->arena, 0);
    sc_err_init(&job->err);
    job->command = c;
    return job;
}

void stepcast_job_free(stepcast_job *job)
{
    if (!job) return;
    sc_arena_free(&job->arena);
    free(job);
}

static sc_status unknown(stepcast_job *job, const char *name, sc_err *err)
{
    const char *names[256];
    uint32_t n = 0;
    for (const sc_key *k; n < 255 && (k = option(job->command, n));)
        names[n++] = k->name;
    names[n] = NULL;
    const char *near = sc_nearest(name, names);
    const char *hint =
        near ? sc_sprintf(&job->arena, "did you mean \"%s\"?", near) : NULL;
    return sc_error(err, SC_EUSAGE, SC_C_OPTION, sc_pos_file(name), hint,
                    "`stepcast %s` has no such option", job->command->name);
}

/* Whether the option accepts the value; a run would report it too late. */
static sc_status check(stepcast_job *job, const sc_key *k, const char *value,
                       sc_err *err)
{
    double field[2] = {0, 0}; /* large enough for any field */
    sc_key alone = *k;
    alone.offset = 0;
    sc_pos pos = sc_pos_option(&job->arena, k->flag, value);
    sc_status s = sc_schema_set(&alone, value, pos, field, &job->arena, err);
    return s == SC_EINPUT ? (err->status = SC_EUSAGE) : s;
}

static sc_status push(stepcast_job *job, char ***words, uint32_t *n,
                      uint32_t *cap, char *word, sc_err *err)
{
    char **all = sc_grow(&job->arena, *words, *n, cap, 16, sizeof *all);
    if (!all || !word) return sc_error_nomem(err);
    *words = all;
    all[(*n)++] = word;
    return SC_OK;
}

/* Removes earlier values of an option. */
static void forget(stepcast_job *job, const sc_key *k)
{
    uint32_t n = 0;
    const char *bare = k->flag + 2;
    size_t len = strlen(bare);
    for (uint32_t i = 0; i < job->n_options; i++) {
        const char *at = job->option[i] + 2;
        if (sc_key_is_flag(k) && strncmp(at, "no-", 3) == 0) at += 3;
        bool same =
            strncmp(at, bare, len) == 0 && (at[len] == '\0' || at[len] == '=');
        if (!same) job->option[n++] = job->option[i];
    }
    job->n_options = n;
}

static sc_status set(stepcast_job *job, const char *name, const char *value,
                     sc_err *err)
{
    const char *bare = strncmp(name, "--", 2) == 0 ? name + 2 : name;
    const sc_key *k = NULL;
    for (uint32_t i = 0; (k = option(job->command, i)); i++)
        if (strcmp(k->flag + 2, bare) == 0) break;
    if (!k) return unknown(job, bare, err);
    SC_TRY(check(job, k, value, err));
    bool yes = false;
    const sc_key alone = {.name = k->name, .type = SC_T_BOOL};
    if (sc_key_is_flag(k))
        SC_TRY(sc_schema_set(&alone, value, sc_pos_none(), &yes, &job->arena,
                             err));
    char *word = sc_key_is_flag(k)
                     ? sc_sprintf(&job->arena, "--%s%s", yes ? "" : "no-", bare)
                     : sc_sprintf(&job->arena, "%s=%s", k->flag, value);
    if (k->type != SC_T_LIST) forget(job, k);
    return push(job, &job->option, &job->n_options, &job->cap_options, word,
                err);
}

/* Keeps an error, which the run reports again. */
static stepcast_status keep(stepcast_job *job, sc_status s, const sc_err *err)
{
    if (s == SC_OK) return STEPCAST_OK;
    if (job->err.n == 0) {
        job->err = *err;
        return api_status(s);
    }
    for (uint32_t i = 0; i < err->n && job->err.n < SC_ERR_MAX; i++)
        job->err.d[job->err.n++] = err->d[i];
    return api_status(s);
}

stepcast_status stepcast_job_set(stepcast_job *job, const char *name,
                                 const char *value, stepcast_errors *errors)
{
    sc_err own, *err = api_errors(errors, &own);
    if (!job || !name || !value)
        return api_misuse(err, "stepcast_job_set", "a parameter is NULL");
    return keep(job, set(job, name, value, err), err);
}

stepcast_status stepcast_job_add(stepcast_job *job, const char *word,
                                 stepcast_errors *errors)
{
    sc_err own, *err = api_errors(errors, &own);
    if (!job || !word)
        return api_misuse(err, "stepcast_job_add", "a parameter is NULL");
    sc_status s = push(job, &job->word, &job->n_words, &job->cap_words,
                       sc_strdup(&job->arena, word), err);
    return keep(job, s, err);
}

/* ---- running ------------------------------------------------------------- */

/* The words of the equivalent command line. */
static char **words(const stepcast_job *job, sc_arena *a, int *n)
{
    size_t all = (size_t)job->n_options + job->n_words + 1;
    char **argv = SC_NEW_N(a, char *, all + 1);
    if (!argv) return NULL;
    *n = 0;
    for (uint32_t i = 0; i < job->n_options; i++) argv[(*n)++] = job->option[i];
    if (job->n_words) argv[(*n)++] = sc_strdup(a, "--");
    for (uint32_t i = 0; i < job->n_words; i++) argv[(*n)++] = job->word[i];
    return argv;
}

static sc_status run(const stepcast_job *job, cli *c)
{
    int n = 0;
    char **argv = words(job, c->arena, &n);
    if (!argv) return sc_error_nomem(c->err);
    sc_status s = job->command->run(c, n, argv);
    cli_locate(c);
    return s;
}

stepcast_status stepcast_job_run(const stepcast_job *job,
                                 stepcast_document **out,
                                 stepcast_errors *errors)
{
    sc_err own, *err = api_errors(errors, &own);
    sc_arena arena;
    sc_text answer, notes;
    if (!job || !out)
        return api_misuse(err, "stepcast_job_run", "a parameter is NULL");
    if (job->err.n) {
        *err = job->err;
        return api_status(err->status);
    }
    sc_arena_init(&arena, RUN_BYTES);
    sc_text_init(&answer);
    sc_text_init(&notes);
    cli c = {.arena = &arena,
             .err = err,
             .command = job->command->name,
             .json = true,
             .answer = &answer,
             .notes = &notes};
    sc_status s = run(job, &c);
    stepcast_document *d = NULL;
    if (s == SC_OK || s == SC_NO)
        d = api_document(answer.buf, answer.len, notes.buf, err);
    if (d)
        *out = d;
    else if (err->n)
        s = err->status;
    else if (s <= SC_NO)
        s = SC_EBUG;
    sc_text_free(&answer);
    sc_text_free(&notes);
    sc_arena_free(&arena);
    return api_status(s);
}

stepcast_status api_run(const stepcast_job *job, const char *schema,
                        const char *function, stepcast_document **out,
                        stepcast_errors *errors)
{
    sc_err own;
    stepcast_document *d = NULL;
    stepcast_status s = stepcast_job_run(job, &d, errors);
    if (s > STEPCAST_NO) return s;
    if (!api_is(d, schema)) {
        stepcast_document_free(d);
        return api_misuse(api_errors(errors, &own), function,
                          "the job is of another command");
    }
    *out = d;
    return s;
}

stepcast_status api_no_struct(stepcast_errors *errors, const char *function)
{
    sc_err own;
    return api_misuse(api_errors(errors, &own), function,
                      "a parameter is NULL, or the size is not set");
}

/* ---- available options --------------------------------------------------- */

/* Writes the choices, separated by bars, cut off at `size`. */
static void choices(const sc_key *k, char *buffer, size_t size)
{
    size_t n = 0;
    for (const char *const *w = k->names; *w && n < size; w++)
        n += (size_t)snprintf(buffer + n, size - n, "%s%s",
                              w == k->names ? "" : "|", *w);
}

stepcast_status stepcast_job_option(const char *name, uint32_t i,
                                    stepcast_option *out, char *buffer,
                                    size_t buffer_size)
{
    const command *c = find(name);
    if (!c || !out || !buffer || buffer_size == 0) return STEPCAST_USAGE;
    const sc_key *k = option(c, i);
    if (!k) return STEPCAST_NO;
    bool unit = k->type == SC_T_QUANTITY && k->unit != SC_U_NONE;
    stepcast_option o = {.name = k->flag + 2,
                         .value = sc_key_is_flag(k) ? NULL : buffer,
                         .unit = unit ? sc_unit_name(k->unit) : NULL,
                         .initial = k->def,
                         .help = k->help,
                         .repeated = k->type == SC_T_LIST};
    snprintf(buffer, buffer_size, "%s", k->meta ? k->meta : "VALUE");
    if (k->type == SC_T_ENUM) choices(k, buffer, buffer_size);
    return api_copy(out, &o, sizeof o) ? STEPCAST_OK : STEPCAST_USAGE;
}
