/* SPDX-License-Identifier: Apache-2.0 */
/* options.c - options from the command line and from the file of --config. */
#include "cli/cli.h"
#include "report/report_difference.h"

#include <stdio.h>
#include <string.h>

const sc_key cli_common_keys[] = {
    {.name = "json",
     .type = SC_T_BOOL,
     .offset = offsetof(cli, json),
     .flag = "--json",
     .help = "one JSON document on stdout, nothing else"},
    {.name = "quiet",
     .type = SC_T_BOOL,
     .offset = offsetof(cli, quiet),
     .flag = "--quiet",
     .help = "no notes on stderr"},
    {.name = "output",
     .type = SC_T_STRING,
     .offset = offsetof(cli, output),
     .flag = "--output",
     .meta = "FILE",
     .help = "write to FILE (also -o FILE)"},
    {.name = "jobs",
     .type = SC_T_INT,
     .unit = SC_U_COUNT,
     .offset = offsetof(cli, jobs),
     .min = 1,
     .max = 4096,
     .flag = "--jobs",
     .meta = "N",
     .help = "maximum number of threads, for commands that use several"},
    {.name = "seed",
     .type = SC_T_INT,
     .unit = SC_U_COUNT,
     .offset = offsetof(cli, seed),
     .max = 0x1p53,
     .flag = "--seed",
     .meta = "N",
     .help = "seed of random numbers, for commands that use them"},
    {.name = "config",
     .type = SC_T_STRING,
     .offset = offsetof(cli, config),
     .flag = "--config",
     .meta = "FILE",
     .help = "options from a YAML or JSON file"},
    {.name = "dump-config",
     .type = SC_T_BOOL,
     .offset = offsetof(cli, dump_config),
     .flag = "--dump-config",
     .help = "write the options as such a file"},
    {.name = "words",
     .type = SC_T_NODE,
     .offset = offsetof(cli, file_words),
     .help = "words that are not options: names, files"},
    {0},
};

const char *cli_hint(const cli *c, const char *word, const char *const *names,
                     const char *other)
{
    const char *near = sc_nearest(word, names);
    const char *hint =
        near ? sc_sprintf(c->arena, "did you mean \"%s\"?", near) : NULL;
    return hint ? hint : other;
}

static uint32_t table_size(const sc_key *keys)
{
    uint32_t n = 0;
    while (keys[n].name) n++;
    return n;
}

/* Joins all tables into one, in which each key has its own field. */
static sc_key *joined(cli *c, const sc_opt_set *sets, uint32_t n_sets)
{
    uint32_t n = 0, at = 0;
    for (uint32_t i = 0; i < n_sets; i++) n += table_size(sets[i].keys);
    sc_key *keys = SC_NEW_N(c->arena, sc_key, (size_t)n + 1);
    for (uint32_t i = 0; keys && i < n_sets; i++)
        for (const sc_key *k = sets[i].keys; k->name; k++) {
            keys[at] = *k;
            keys[at].offset = at * sizeof(double);
            keys[at++].required = false;
        }
    return keys;
}

/* The command line overrides the file: given keys are removed from the
 * file's entry. */
static sc_status store(cli *c, sc_node *n, sc_opt_set *sets, uint32_t n_sets)
{
    for (uint32_t i = 0; i < n_sets; i++)
        for (const sc_key *k = sets[i].keys; k->name; k++) {
            if (strcmp(k->name, n->key) != 0) continue;
            if (sc_given_has(&sets[i].given, sets[i].keys, k->name)) {
                n->key = "";
                return SC_OK;
            }
            if (k->type == SC_T_NODE) {
                c->file_words = n;
                return SC_OK;
            }
            sc_given_set(&sets[i].given, sets[i].keys, k->name);
            return sc_schema_set_node(k, n, sets[i].target, c->arena, c->err);
        }
    return SC_OK;
}

static sc_status read_file(cli *c, sc_opt_set *sets, uint32_t n_sets)
{
    char *text = NULL;
    size_t len = 0;
    sc_node *root = NULL;
    SC_TRY(cli_check_format(c, "--config", c->config));
    if (!c->config_text)
        SC_TRY(sc_file_read(c->config, SC_DOC_MAX_BYTES, c->arena, &text, &len,
                            c->err));
    SC_TRY(sc_doc_parse(c->config_text ? c->config_text : text,
                        c->config_text ? c->config_len : len, SC_FMT_AUTO,
                        c->config, c->arena, &root, c->err));
    root = sc_result_config(root, c->arena);
    if (!root) return sc_error_nomem(c->err);
    if (c->space) SC_TRY(sc_search_config_take(root, c->space, c->err));
    sc_key *keys = joined(c, sets, n_sets);
    double *fields =
        keys ? SC_NEW_N(c->arena, double, table_size(keys) + 1) : NULL;
    if (!fields) return sc_error_nomem(c->err);
    SC_TRY(sc_schema_read(keys, root, fields, NULL, c->arena, c->err));
    for (sc_node *n = root->child; n; n = n->next)
        SC_TRY(store(c, n, sets, n_sets));
    c->file = root;
    return SC_OK;
}

/* A word, or a list of them. */
static sc_status words_of_file(cli *c, sc_words *out)
{
    const sc_node *list = c->file_words;
    if (!list || out->n) return SC_OK; /* the command line wins */
    bool seq = list->kind == SC_N_SEQ;
    const sc_node *first = seq ? list->child : list;
    out->w = SC_NEW_N(c->arena, const char *, seq ? list->n : 1);
    if (!out->w) return sc_error_nomem(c->err);
    for (const sc_node *n = first; n; n = seq ? n->next : NULL) {
        if (n->kind != SC_N_SCALAR)
            return sc_error(c->err, SC_EINPUT, SC_C_TYPE, n->pos,
                            "write a name, or a list of names",
                            "the value is not a word");
        out->w[out->n++] = n->text;
    }
    return SC_OK;
}

/* Finds the entry of --config's file that caused an error at "--tp 7"; NULL. */
static const sc_node *entry_of(const cli *c, const char *at)
{
    char key[64];
    for (; at; at = strstr(at, " --")) {
        at += strspn(at, " -");
        snprintf(key, sizeof key, "%.*s", (int)strcspn(at, " "), at);
        const sc_node *n = sc_node_get(c->file, key);
        if (n) return n;
    }
    return NULL;
}

void cli_locate(const cli *c)
{
    for (uint32_t i = 0; i < c->err->n; i++) {
        sc_diag *d = &c->err->d[i];
        if (!d->file[0] && c->command)
            snprintf(d->file, sizeof d->file, "stepcast %s", c->command);
        const sc_node *n =
            strncmp(d->file, "--", 2) == 0 ? entry_of(c, d->file) : NULL;
        if (!n || !n->pos.file) continue;
        uint32_t into = d->line == 1 && d->col > 1 ? d->col - 1 : 0;
        snprintf(d->file, sizeof d->file, "%s", n->pos.file);
        d->line = n->pos.line;
        d->col = n->pos.col + into + (into && n->quoted);
    }
}

/* Replaces "-o" by "--output". */
static char **spelled_out(cli *c, int argc, char *const *argv)
{
    char **words = SC_NEW_N(c->arena, char *, (size_t)argc + 1);
    for (int i = 0; words && i < argc; i++) {
        bool short_out = strcmp(argv[i], "-o") == 0;
        words[i] = short_out ? sc_strdup(c->arena, "--output") : argv[i];
        if (!words[i]) return NULL;
    }
    return words;
}

sc_status cli_parse(cli *c, int argc, char *const *argv, sc_opt_set *sets,
                    uint32_t n_sets, sc_words *positional)
{
    sc_opt_set all[CLI_SETS + 1] = {{cli_common_keys, c, {{0}}}};
    for (uint32_t i = 0; i < n_sets && i < CLI_SETS; i++) all[i + 1] = sets[i];
    char **words = spelled_out(c, argc, argv);
    if (!words) return sc_error_nomem(c->err);
    SC_TRY(sc_opt_parse(argc, words, all, n_sets + 1, positional, c->arena,
                        c->err));
    if (c->config) SC_TRY(read_file(c, all, n_sets + 1));
    SC_TRY(words_of_file(c, positional));
    c->words = *positional;
    c->given = all[0].given;
    if (c->output && strcmp(c->output, "-") == 0) c->output = NULL;
    for (uint32_t i = 0; i < n_sets && i < CLI_SETS; i++)
        sets[i].given = all[i + 1].given;
    return SC_OK;
}

sc_status cli_check_used(cli *c, const sc_opt_set *set, const char *const *used,
                         const char *hint)
{
    sc_status first = SC_OK;
    for (const sc_key *k = set->keys; k->name; k++) {
        bool acts = !sc_given_has(&set->given, set->keys, k->name);
        for (const char *const *u = used; u && *u; u++)
            acts = acts || strcmp(k->name, *u) == 0;
        if (acts) continue;
        sc_status s =
            sc_error(c->err, SC_EUSAGE, SC_C_OPTION, sc_pos_file(k->flag), hint,
                     "the option has no effect here");
        if (first == SC_OK) first = s;
    }
    return first;
}

/* ---- --dump-config ------------------------------------------------------- */

static void dump_value(const sc_key *k, const void *target, sc_json *j)
{
    const void *field = (const char *)target + k->offset;
    char buf[64];
    if (k->type == SC_T_STRING) {
        sc_json_string(j, *(const char *const *)field);
    } else if (k->type == SC_T_LIST) {
        sc_json_begin(j, '[');
        for (const char *const *s = *(const char *const *const *)field; s && *s;
             s++)
            sc_json_string(j, *s);
        sc_json_end(j, ']');
    } else if (k->type == SC_T_BOOL) {
        sc_json_bool(j, *(const bool *)field);
    } else if (k->type == SC_T_TRISTATE) {
        sc_json_bool(j, *(const int *)field > 0);
    } else if (k->type == SC_T_INT) {
        sc_json_int(j, *(const int64_t *)field);
    } else if (k->type == SC_T_QUANTITY && k->unit == SC_U_NONE) {
        sc_json_double(j, *(const double *)field);
    } else {
        sc_schema_print(k, target, buf, sizeof buf);
        sc_json_string(j, buf);
    }
}

void cli_dump_lines(const sc_opt_set *set, const char *const *but, sc_text *out)
{
    for (const sc_key *k = set->keys; k->name; k++) {
        if (!sc_given_has(&set->given, set->keys, k->name)) continue;
        bool skip = false;
        for (size_t i = 0; but && but[i]; i++)
            skip = skip || strcmp(but[i], k->name) == 0;
        if (skip) continue;
        sc_json one;
        sc_json_init(&one, false);
        dump_value(k, set->target, &one);
        sc_text_add(out, "%s: %s\n", k->name, one.buf);
        out->failed = out->failed || one.failed;
        sc_json_free(&one);
    }
}

void cli_config_json(const sc_opt_set *set, const char *const *but, sc_json *j)
{
    for (const sc_key *k = set->keys; k->name; k++) {
        char key[64];
        bool skip = !k->def && !sc_given_has(&set->given, set->keys, k->name);
        for (size_t i = 0; but && but[i]; i++)
            skip = skip || strcmp(but[i], k->name) == 0;
        if (skip) continue;
        snprintf(key, sizeof key, "%s", k->name);
        for (char *s = key; *s; s++)
            if (*s == '-') *s = '_';
        sc_json_key(j, key);
        dump_value(k, set->target, j);
    }
}

static void dump_words(const cli *c, sc_json *j)
{
    sc_json_begin(j, '[');
    for (uint32_t i = 0; i < c->words.n; i++) sc_json_string(j, c->words.w[i]);
    sc_json_end(j, ']');
}

void cli_dump_common(const cli *c, sc_text *t, sc_json *all)
{
    static const char *const keys[] = {"jobs", "seed"};
    const int64_t value[] = {c->jobs, c->seed};
    for (size_t i = 0; i < SC_COUNT(keys); i++) {
        if (!sc_given_has(&c->given, cli_common_keys, keys[i])) continue;
        sc_text_add(t, "%s: %lld\n", keys[i], (long long)value[i]);
        if (!all) continue;
        sc_json_key(all, keys[i]);
        sc_json_int(all, value[i]);
    }
    if (c->words.n == 0) return;
    sc_json line;
    sc_json_init(&line, false);
    dump_words(c, &line);
    sc_text_add(t, "words: %s\n", line.buf);
    t->failed = t->failed || line.failed;
    sc_json_free(&line);
    if (!all) return;
    sc_json_key(all, "words");
    dump_words(c, all);
}

/* Where a given option comes from: a file of --config, or the command line. */
static const char *origin(const cli *c, const char *key)
{
    const sc_node *n = c->file ? sc_node_get(c->file, key) : NULL;
    if (!n || !n->pos.file) return "the command line";
    return sc_sprintf(c->arena, "%s:%u:%u", n->pos.file, (unsigned)n->pos.line,
                      (unsigned)n->pos.col);
}

/* A line for each option: given ones with their origin, others as comments with
 * their default, so that the file means the same options. */
static void dump_set(const cli *c, const sc_opt_set *set, sc_text *t)
{
    for (const sc_key *k = set->keys; k->name; k++) {
        bool given = sc_given_has(&set->given, set->keys, k->name);
        if (!given && (!k->def || !*k->def)) continue;
        const char *from = given ? origin(c, k->name) : "default", *line;
        sc_json one;
        sc_json_init(&one, false);
        dump_value(k, set->target, &one);
        line = sc_sprintf(c->arena, "%s%s: %s", given ? "" : "# ", k->name,
                          one.buf ? one.buf : "");
        if (line && from) sc_text_add(t, "%-31s # %s\n", line, from);
        t->failed = t->failed || one.failed || !line || !from;
        sc_json_free(&one);
    }
}

/* With --json the options are one document (JSON is valid YAML), else a line
 * each. */
sc_status cli_dump(cli *c, const sc_opt_set *sets, uint32_t n_sets)
{
    sc_text t;
    sc_json all;
    sc_text_init(&t);
    sc_json_init(&all, true);
    sc_json_begin(&all, '{');
    for (uint32_t i = 0; i < n_sets; i++) {
        dump_set(c, &sets[i], &t);
        for (const sc_key *k = sets[i].keys; k->name; k++) {
            if (!sc_given_has(&sets[i].given, sets[i].keys, k->name)) continue;
            sc_json_key(&all, k->name);
            dump_value(k, sets[i].target, &all);
        }
    }
    cli_dump_common(c, &t, &all);
    sc_json_end(&all, '}');
    sc_status s = c->json ? cli_emit_json(c, &all) : cli_emit_text(c, &t);
    sc_text_free(&t);
    sc_json_free(&all);
    return s;
}
