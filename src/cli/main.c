/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - calls the commands, and handles common options, errors and exit
 * codes. */
#include "cli/main.h"

#include <stdio.h>
#include <stepcast_version.h>
#include <string.h>

const cli_command cli_commands[] = {
    {"predict", cli_predict,
     "memory and time of one training step, and the causes"},
    {"search", cli_search,
     "the best of all ways to divide a training job over a machine"},
    {"query", cli_query, "the rows that a search kept, as CSV or SQLite"},
    {"compare", cli_compare,
     "the difference of two results or jobs, term by term"},
    {"simulate", cli_simulate,
     "run Chakra execution traces on a simulated system"},
    {"replay", cli_replay,
     "run measured traces of a profiler again: causes, and what changes give"},
    {"emulate", cli_emulate,
     "run a program as a few real ranks of a large emulated world"},
    {"validate", cli_validate, "predict every row of a table of measurements"},
    {"calibrate", cli_calibrate, "fit cost models to measurements"},
    {"coll", cli_coll,
     "time of one collective on one cluster for a range of sizes"},
    {"shard", cli_shard,
     "place embedding tables on devices by the predicted step"},
    {"list", cli_list,
     "names of models, devices, clusters, software, failures ..."},
    {"show", cli_show,
     "print a catalogue entry, a model's layers, a strategy or a graph"},
    {"explain", cli_explain,
     "define a word, a field, an error, a parameter or an option"},
    {"completion", cli_completion,
     "print the completion script for bash, zsh or fish"},
    {0},
};

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
        sc_json_uint(&j, d->line ? d->col : 0);
        if (d->line == 0 && d->col > 0)
            sc_json_put_uint(&j, "byte", d->col - 1);
        sc_json_key(&j, "message");
        sc_json_string(&j, d->msg);
        sc_json_key(&j, "hint");
        sc_json_string(&j, d->hint[0] ? d->hint : NULL);
        sc_json_end(&j, '}');
    }
    sc_json_end(&j, ']');
    if (err->n_more) {
        sc_json_key(&j, "more_errors");
        sc_json_uint(&j, err->n_more);
    }
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
    for (const cli_command *x = cli_commands; x->name; x++)
        fprintf(to, "  %-11s %s\n", x->name, x->help);
    fprintf(to, "\nstepcast COMMAND --help lists the options.  Try:\n"
                "  stepcast predict --model llama3-70b --cluster "
                "dgx-h100:16 --tp 8 --pp 4\n");
}

static void help(const cli *c, const cli_command *cmd)
{
    sc_text t;
    cli_text_init(c, false, &t);
    cli_help_page(cmd, &t);
    if (cli_is_first(c)) fputs(t.buf, stdout);
    sc_text_free(&t);
}

static const cli_command *find(const char *name)
{
    for (const cli_command *x = cli_commands; x->name; x++)
        if (strcmp(x->name, name) == 0) return x;
    return NULL;
}

static sc_status unknown(const cli *c, const char *name)
{
    const char *names[32];
    uint32_t n = 0;
    for (const cli_command *x = cli_commands; x->name && n < 31; x++)
        names[n++] = x->name;
    names[n] = NULL;
    return sc_error(
        c->err, SC_EUSAGE, SC_C_OPTION, sc_pos_file("stepcast"),
        cli_hint(c, name, names, "`stepcast --help` lists the commands"),
        "unknown command \"%.60s\"", name);
}

static bool wants(int argc, char **argv, const char *flag)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], flag) == 0) return true;
    return false;
}

static bool is_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 ||
           strcmp(word, "help") == 0;
}

static sc_status run(cli *c, int argc, char **argv)
{
    if (argc < 2) {
        usage(stderr);
        return SC_EUSAGE;
    }
    const char *word = argv[1];
    bool page = is_help(word);
    if (page && (argc < 3 || argv[2][0] == '-')) {
        usage(stdout);
        return SC_OK;
    }
    if (page) word = argv[2];
    if (strcmp(word, "--version") == 0) {
        printf("stepcast %s (%s)\n", STEPCAST_VERSION, STEPCAST_COMMIT);
        return SC_OK; /* main() checks whether it could be written */
    }
    if (strcmp(word, "--man") == 0 && argc == 3) /* used by the build */
        return cli_man(c, argv[2]);
    const cli_command *cmd = find(word);
    if (!cmd) return unknown(c, word);
    if (page || wants(argc, argv, "--help") || wants(argc, argv, "-h")) {
        help(c, cmd);
        return SC_OK;
    }
    c->command = cmd->name;
    return cmd->run(c, argc - 2, argv + 2);
}

int main(int argc, char **argv)
{
    sc_arena arena;
    sc_err err;
    char shard[64], cache[4096];
    cli_host host = {.ranks_here = 1,
                     .interrupted = main_interrupted,
                     .cache = main_cache(cache, sizeof cache),
                     .shard = main_shard(shard, sizeof shard)};
    sc_arena_init(&arena, (size_t)8 << 30);
    sc_err_init(&err);
    cli c = {.host = &host, .arena = &arena, .err = &err};
    c.json = wants(argc, argv, "--json");
    sc_status s = main_ranks_open(&host, argc, argv, &err);
    if (s == SC_OK) s = run(&c, argc, argv);
    cli_progress_end(&c);
    if (s == SC_OK && (fflush(stdout) != 0 || ferror(stdout)))
        s = sc_error(&err, SC_EIO, SC_C_IO, sc_pos_file("<stdout>"), NULL,
                     "can't write the result");
    cli_locate(&c);
    bool prints = main_ranks_close(s, &err);
    if (prints && err.n && c.json)
        errors_json(&err);
    else if (prints)
        errors_text(&err);
    fflush(stdout);
    sc_arena_free(&arena);
    return main_ranks_end(s == SC_ENOMEM ? SC_EIO : s);
}
