/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - dispatch, common options, errors, exit codes. */
#include "cli/cli.h"

#include <stdarg.h>
#include <stdio.h>
#include <stepcast_version.h>
#include <string.h>

static const sc_key common_keys[] = {
    {"json", SC_T_BOOL, SC_U_NONE, offsetof(cli, json), NULL, 0, 0, NULL,
     "--json", NULL, "one JSON document on stdout, nothing else", false},
    {"quiet", SC_T_BOOL, SC_U_NONE, offsetof(cli, quiet), NULL, 0, 0, NULL,
     "--quiet", NULL, "no notes on stderr", false},
    {"output", SC_T_STRING, SC_U_NONE, offsetof(cli, output), NULL, 0, 0, NULL,
     "--output", "FILE", "write to FILE (also -o FILE)", false},
    {"config", SC_T_STRING, SC_U_NONE, offsetof(cli, config), NULL, 0, 0, NULL,
     "--config", "FILE", "options from a YAML or JSON file", false},
    {"dump-config", SC_T_BOOL, SC_U_NONE, offsetof(cli, dump_config), NULL, 0,
     0, NULL, "--dump-config", NULL, "write the resolved configuration", false},
    {0},
};

typedef struct command {
    const char *name;
    sc_status (*run)(cli *c, int argc, char *const *argv);
    const char *help;
} command;

static const command commands[] = {
    {"predict", cli_predict, "one configuration: fits? how long? why?"},
    {"validate", cli_validate, "predict every measured row of a table"},
    {"calibrate", cli_calibrate, "fit cost models to measurements"},
    {"coll", cli_coll, "one collective on one cluster over sizes"},
    {"list", cli_list, "models, devices, clusters, software, parameters"},
    {"show", cli_show,
     "one entry of the catalogue, a model's layers, a "
     "configuration's strategy or graph"},
    {"explain", cli_explain,
     "definition, formula and unit of a field; an "
     "error"},
};

sc_status cli_parse(cli *c, int argc, char *const *argv, sc_opt_set *sets,
                    uint32_t n_sets, sc_words *positional)
{
    sc_opt_set all[5] = {{common_keys, c, {{0}}}};
    for (uint32_t i = 0; i < n_sets && i < 4; i++) all[i + 1] = sets[i];
    char **words = SC_NEW_N(c->arena, char *, (size_t)argc + 1);
    if (!words) return sc_error_nomem(c->err);
    for (int i = 0; i < argc; i++) {
        bool short_out = strcmp(argv[i], "-o") == 0;
        words[i] = short_out ? sc_strdup(c->arena, "--output") : argv[i];
        if (!words[i]) return sc_error_nomem(c->err);
    }
    SC_TRY(sc_opt_parse(argc, words, all, n_sets + 1, positional, c->arena,
                        c->err));
    for (uint32_t i = 0; i < n_sets && i < 4; i++)
        sets[i].given = all[i + 1].given;
    return SC_OK;
}

sc_status cli_config(cli *c, const sc_key *keys, void *target, sc_given *given)
{
    char *text = NULL;
    size_t len = 0;
    sc_node *root = NULL;
    if (!c->config) return SC_OK;
    SC_TRY(sc_file_read(c->config, SC_DOC_MAX_BYTES, c->arena, &text, &len,
                        c->err));
    SC_TRY(sc_doc_parse(text, len, SC_FMT_AUTO, c->config, c->arena, &root,
                        c->err));
    return sc_schema_read(keys, root, target, given, c->arena, c->err);
}

sc_status cli_emit_text(cli *c, const sc_text *t)
{
    return cli_emit(c, t->buf, t->len);
}

sc_status cli_emit_json(cli *c, const sc_json *j)
{
    if (j->failed) return sc_error_nomem(c->err);
    char *text = sc_sprintf(c->arena, "%s\n", j->buf);
    return text ? cli_emit(c, text, j->len + 1) : sc_error_nomem(c->err);
}

void cli_note(const cli *c, const char *fmt, ...)
{
    if (c->quiet) return;
    va_list ap;
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
}

static void errors_json(const sc_err *err)
{
    sc_json j;
    sc_json_init(&j, false);
    sc_json_begin(&j, '{');
    sc_json_key(&j, "errors");
    sc_json_begin(&j, '[');
    for (uint32_t i = 0; i < err->n; i++) {
        const sc_diag *d = &err->d[i];
        sc_json_begin(&j, '{');
        sc_json_key(&j, "code");
        sc_json_string(&j, sc_code_name(d->code));
        sc_json_key(&j, "file");
        sc_json_string(&j, d->file[0] ? d->file : NULL);
        sc_json_key(&j, "line");
        sc_json_uint(&j, d->line);
        sc_json_key(&j, "column");
        sc_json_uint(&j, d->col);
        sc_json_key(&j, "message");
        sc_json_string(&j, d->msg);
        sc_json_key(&j, "hint");
        sc_json_string(&j, d->hint[0] ? d->hint : NULL);
        sc_json_end(&j, '}');
    }
    sc_json_end(&j, ']');
    sc_json_end(&j, '}');
    if (!j.failed) printf("%s\n", j.buf);
    sc_json_free(&j);
}

static void errors_text(const sc_err *err)
{
    for (uint32_t i = 0; i < err->n; i++) {
        char line[800];
        sc_diag_format(&err->d[i], line, sizeof line);
        fprintf(stderr, "%s\n", line);
    }
    if (err->n_more)
        fprintf(stderr, "and %u more errors\n", (unsigned)err->n_more);
}

static void usage(FILE *to)
{
    fprintf(to,
            "stepcast %s: what one training step of a distributed "
            "deep-learning job costs\n\nusage: stepcast COMMAND "
            "[options]\n\n",
            STEPCAST_VERSION);
    for (size_t i = 0; i < SC_COUNT(commands); i++)
        fprintf(to, "  %-10s %s\n", commands[i].name, commands[i].help);
    fprintf(to, "\nstepcast COMMAND --help lists the options.  Try:\n"
                "  stepcast predict --model llama3-70b --cluster "
                "dgx-h100:16 --tp 8 --pp 4\n");
}

static void help(cli *c, const command *cmd)
{
    printf("stepcast %s: %s\n\n%s\n", cmd->name, cmd->help,
           cli_help_usage(cmd->name));
    const sc_key *own = cli_help_keys(cmd->name, 0);
    if (own) printf("options\n");
    for (uint32_t i = 0; own; own = cli_help_keys(cmd->name, ++i)) {
        char *text = sc_schema_help(own, c->arena);
        if (text) fputs(text, stdout);
    }
    char *text = sc_schema_help(common_keys, c->arena);
    if (text) printf("\ncommon options\n%s", text);
}

static const command *find(const char *name)
{
    for (size_t i = 0; i < SC_COUNT(commands); i++)
        if (strcmp(commands[i].name, name) == 0) return &commands[i];
    return NULL;
}

static sc_status unknown(const char *name, sc_err *err)
{
    const char *names[SC_COUNT(commands) + 1];
    for (size_t i = 0; i < SC_COUNT(commands); i++) names[i] = commands[i].name;
    names[SC_COUNT(commands)] = NULL;
    const char *near = sc_nearest(name, names);
    char hint[80] = "`stepcast --help` lists the commands";
    if (near) snprintf(hint, sizeof hint, "did you mean '%s'?", near);
    return sc_error(err, SC_EUSAGE, SC_C_OPTION, sc_pos_none(), hint,
                    "unknown command '%s'", name);
}

static bool wants(int argc, char **argv, const char *flag)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], flag) == 0) return true;
    return false;
}

static sc_status run(cli *c, int argc, char **argv)
{
    if (argc < 2) {
        usage(stderr);
        return SC_EUSAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        strcmp(argv[1], "help") == 0) {
        usage(stdout);
        return SC_OK;
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("stepcast %s (%s)\n", STEPCAST_VERSION, STEPCAST_COMMIT);
        return SC_OK;
    }
    const command *cmd = find(argv[1]);
    if (!cmd) return unknown(argv[1], c->err);
    if (wants(argc, argv, "--help")) {
        help(c, cmd);
        return SC_OK;
    }
    return cmd->run(c, argc - 2, argv + 2);
}

int main(int argc, char **argv)
{
    sc_arena arena;
    sc_err err;
    sc_arena_init(&arena, (size_t)8 << 30);
    sc_err_init(&err);
    cli c = {.arena = &arena, .err = &err};
    c.json = wants(argc, argv, "--json");
    sc_status s = run(&c, argc, argv);
    if (err.n && c.json)
        errors_json(&err);
    else
        errors_text(&err);
    sc_arena_free(&arena);
    return s == SC_ENOMEM ? SC_EIO : (int)s;
}
