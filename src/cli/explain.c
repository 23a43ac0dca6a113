/* SPDX-License-Identifier: Apache-2.0 */
/* explain.c - `stepcast explain WORD`: explains terms of reports, fields and
 * errors. */
#include "cli/explain.h"

#include "cli/emulate.h"
#include "cli/predict.h"
#include "cli/simulate.h"
#include "predict/predict.h"

#include <ctype.h>
#include <string.h>

typedef struct explain_opts {
    bool glossary;
} explain_opts;

const sc_key cli_explain_keys[] = {
    {.name = "glossary",
     .type = SC_T_BOOL,
     .offset = offsetof(explain_opts, glossary),
     .flag = "--glossary",
     .help =
         "write the definitions of the words in reports, for docs/glossary.md"},
    {0},
};

static const cli_word *const fields[] = {cli_words, cli_words_of_runs};

typedef struct found {
    const char *kind, *name, *unit, *text;
} found;

enum { MEANINGS = 6 };

/* "global_batch" in a document is "global-batch" in a file, and "mfu" is
 * MFU. */
static bool same_key(const char *a, const char *b)
{
    for (; *a && *b; a++, b++) {
        int x = tolower((unsigned char)*a), y = tolower((unsigned char)*b);
        if (x != y && !(x == '_' && y == '-')) return false;
    }
    return *a == *b;
}

static const sc_key *find_option(const char *name)
{
    const sc_key *const tables[] = {
        sc_job_keys,      cli_predict_keys, cli_simulate_keys, sc_emu_keys,
        cli_emulate_keys, cli_search_keys,  cli_replay_keys,   cli_common_keys};
    for (size_t i = 0; i < SC_COUNT(tables); i++)
        for (const sc_key *k = tables[i]; k->name; k++)
            if (same_key(name, k->name)) return k;
    return NULL;
}

/* "TP8" means TP, "fits" means "fits?", "memory" means "memory (GiB)". */
static bool same_word(const char *name, const char *word)
{
    size_t n = strlen(name), len = strcspn(word, "?");
    if (same_key(name, word)) return true;
    if (word[len] == '?' && n == len) return strncmp(name, word, n) == 0;
    while (n > 2 && isdigit((unsigned char)name[n - 1])) n--;
    return n == len && name[n] && isupper((unsigned char)word[0]) &&
           strncmp(name, word, n) == 0;
}

static bool in_catalogue(cli *c, const char *name)
{
    const char **names = NULL;
    uint32_t n = 0;
    if (sc_software_list(c->arena, &names, &n, NULL) != SC_OK) return false;
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(names[i], name) == 0) return true;
    return false;
}

/* Finds all meanings of a name. Returns their number, at most MEANINGS. */
static uint32_t find(cli *c, const char *name, found out[MEANINGS])
{
    uint32_t n = 0;
    for (const cli_word *w = cli_glossary; w->name && n < 1; w++)
        if (same_word(name, w->name))
            out[n++] = (found){"word", w->name, w->unit, w->text};
    for (size_t i = 0; i < SC_COUNT(fields); i++)
        for (const cli_word *w = fields[i]; w->name; w++)
            if (same_key(name, w->name) && n < 2)
                out[n++] = (found){"field", w->name, w->unit, w->text};
    for (int k = 0; k < (int)SC_N_CODES; k++)
        if (strcmp(sc_code_name((sc_code)k), name) == 0)
            out[n++] = (found){"error", name, NULL, sc_code_help((sc_code)k)};
    int p = sc_param_find(name);
    if (p >= 0)
        out[n++] =
            (found){"parameter", name, sc_params[p].unit, sc_params[p].text};
    const sc_key *key = find_option(name);
    if (key && key->flag)
        out[n++] = (found){"option", key->flag, NULL, key->help};
    for (const sc_key *k = sc_transformer_keys; k->name && n < MEANINGS; k++)
        if (strcmp(k->name, name) == 0)
            out[n++] = (found){"key of model.yml", name, NULL, k->help};
    for (const char *const *w = cli_not_modelled; n == 0 && *w; w++)
        if (same_key(name, *w))
            out[n++] = (found){"topic", *w, NULL,
                               "not modelled: stepcast predicts training "
                               "steps"};
    if (n == 0 && in_catalogue(c, name))
        out[n++] = (found){"software", name, NULL,
                           "the profile of a training program; `stepcast show "
                           "NAME` prints it"};
    return n;
}

static void print_text(const found *f, sc_text *t)
{
    if (strcmp(f->kind, "field") != 0 && strcmp(f->kind, "word") != 0)
        sc_text_add(t, "%s ", f->kind);
    sc_text_add(t, "%s", f->name);
    if (f->unit) sc_text_add(t, " [%s]", f->unit);
    sc_text_add(t, "\n");
    cli_wrap(t, 2, f->text);
}

static void print_json(const found *f, sc_json *j)
{
    sc_json_begin(j, '{');
    sc_json_key(j, "name");
    sc_json_string(j, f->name);
    sc_json_key(j, "kind");
    sc_json_string(j, f->kind);
    sc_json_key(j, "unit");
    sc_json_string(j, f->unit);
    sc_json_key(j, "text");
    sc_json_string(j, f->text);
    sc_json_end(j, '}');
}

static uint32_t n_words(const cli_word *words)
{
    uint32_t n = 0;
    while (words[n].name) n++;
    return n;
}

static sc_status unknown(cli *c, const char *name)
{
    size_t n = 0,
           room = n_words(cli_glossary) + (size_t)SC_N_CODES + SC_N_PARAMS;
    for (size_t i = 0; i < SC_COUNT(fields); i++) room += n_words(fields[i]);
    for (const sc_key *k = sc_job_keys; k->name; k++) room++;
    const char **names = SC_NEW_N(c->arena, const char *, room + 1);
    if (!names) return sc_error_nomem(c->err);
    for (const cli_word *w = cli_glossary; w->name; w++) names[n++] = w->name;
    for (size_t i = 0; i < SC_COUNT(fields); i++)
        for (const cli_word *w = fields[i]; w->name; w++) names[n++] = w->name;
    for (int k = 0; k < (int)SC_N_CODES; k++)
        names[n++] = sc_code_name((sc_code)k);
    for (int i = 0; i < (int)SC_N_PARAMS; i++) names[n++] = sc_params[i].name;
    for (const sc_key *k = sc_job_keys; k->name; k++) names[n++] = k->name;
    return sc_error(
        c->err, SC_EINPUT, SC_C_UNKNOWN_NAME, sc_pos_none(),
        cli_hint(c, name, names, "`stepcast explain` lists the fields"),
        "nothing is called \"%.60s\"", name);
}

static void list(const char *kind, const cli_word *w, sc_text *t, sc_json *j)
{
    for (; w->name; w++) {
        found f = {kind, w->name, w->unit, w->text};
        print_text(&f, t);
        print_json(&f, j);
    }
}

/* Lists all terms: words, and with `both` fields, too. */
static void all(bool both, sc_text *t, sc_json *j)
{
    if (both) sc_text_add(t, "words of reports\n\n");
    list("word", cli_glossary, t, j);
    if (both) sc_text_add(t, "\nfields of documents (--json)\n\n");
    for (size_t i = 0; both && i < SC_COUNT(fields); i++)
        list("field", fields[i], t, j);
}

sc_status cli_explain(cli *c, int argc, char *const *argv)
{
    explain_opts o = {0};
    sc_opt_set set = {.keys = cli_explain_keys, .target = &o};
    sc_words words = {0};
    sc_status s = SC_OK;
    sc_text t;
    sc_json j;
    SC_TRY(cli_parse(c, argc, argv, &set, 1, &words));
    if (c->dump_config) return cli_dump(c, &set, 1);
    cli_text_init(c, false, &t);
    sc_json_init(&j, true);
    sc_json_begin(&j, '[');
    if (words.n == 0) all(!o.glossary, &t, &j);
    for (size_t i = 0; i < words.n; i++) {
        found f[MEANINGS];
        uint32_t known = find(c, words.w[i], f);
        for (uint32_t k = 0; k < known; k++) {
            print_text(&f[k], &t);
            print_json(&f[k], &j);
        }
        if (known == 0) s = unknown(c, words.w[i]);
    }
    sc_json_end(&j, ']');
    if (s == SC_OK) s = c->json ? cli_emit_json(c, &j) : cli_emit_text(c, &t);
    sc_text_free(&t);
    sc_json_free(&j);
    return s;
}
