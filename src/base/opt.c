/* SPDX-License-Identifier: Apache-2.0 */
/*
 * opt.c - reads the command line with the same tables as files.
 *
 * The words are read twice: once to find every error and then, if there was
 * none, to write the targets.
 */
#include "base/schema.h"
#include "base/util.h"

#include <stdio.h>
#include <string.h>

typedef struct parser {
    int argc;
    char *const *argv;
    sc_opt_set *sets;
    uint32_t n_sets;
    sc_arena *a;
    sc_err *err;
    bool store; /* second time */
} parser;

/* An option as the user wrote it. */
typedef struct option {
    sc_opt_set *set;
    const sc_key *key;
    const char *value; /* after '=', or NULL */
    bool negated;      /* --no-flag */
} option;

static bool same_flag(const char *flag, const char *word, size_t len)
{
    if (strlen(flag) == len && memcmp(flag, word, len) == 0) return true;
    if (len < 3 || memcmp(word, "--", 2) != 0) return false;
    const char *now = sc_key_renamed(word + 2, len - 2);
    return now && strcmp(flag + 2, now) == 0;
}

/* Whether the word is "--no-sp" and the row is that of "--sp". */
static bool is_negation(const sc_key *k, const char *word, size_t len)
{
    return sc_key_is_flag(k) && len > 5 && memcmp(word, "--no-", 5) == 0 &&
           strlen(k->flag) == len - 3 &&
           memcmp(k->flag + 2, word + 5, len - 5) == 0;
}

static bool find_option(const parser *p, const char *word, option *o)
{
    size_t len = strcspn(word, "=");
    for (uint32_t i = 0; i < p->n_sets; i++) {
        for (const sc_key *k = p->sets[i].keys; k->name != NULL; k++) {
            if (k->flag == NULL) continue;
            o->negated = is_negation(k, word, len);
            if (!o->negated && !same_flag(k->flag, word, len)) continue;
            o->set = &p->sets[i];
            o->key = k;
            o->value = word[len] == '=' ? word + len + 1 : NULL;
            return true;
        }
    }
    return false;
}

static sc_status unknown_option(const parser *p, const char *word)
{
    const char *names[512];
    char name[80], hint[120];
    size_t n = 0;
    for (uint32_t i = 0; i < p->n_sets; i++)
        for (const sc_key *k = p->sets[i].keys; k->name != NULL; k++)
            if (k->flag != NULL && n + 1 < SC_COUNT(names))
                names[n++] = k->flag;
    names[n] = NULL;
    snprintf(name, sizeof name, "%.*s", (int)strcspn(word, "="), word);
    const char *near = sc_nearest(name, names);
    snprintf(hint, sizeof hint, "did you mean %s?", near ? near : "");
    return sc_error(p->err, SC_EUSAGE, SC_C_OPTION, sc_pos_file(name),
                    near == NULL ? NULL : hint, "unknown option");
}

/* On the command line a value that can't be parsed is an error of usage. */
static sc_status set_value(const parser *p, const option *o, const char *text)
{
    const char *shown = sc_sprintf(p->a, "%s %s", o->key->flag, text);
    if (shown == NULL) return sc_error_nomem(p->err);
    bool first = p->err != NULL && p->err->status == SC_OK;
    sc_key check = *o->key; /* the first pass writes to a scratch field */

    union {
        double d;
        int64_t i;
        bool b;
        int e;
        const char *s;
        const char **list;
    } scratch = {0};

    check.offset = 0;
    sc_status s =
        sc_schema_set(p->store ? o->key : &check, text, sc_pos_file(shown),
                      p->store ? o->set->target : &scratch, p->a, p->err);
    if (s != SC_EINPUT) return s;
    if (first) p->err->status = SC_EUSAGE;
    return SC_EUSAGE;
}

/* Parses the option at argv[*i] and moves *i past its value if that is a
 * separate word. */
static sc_status one_option(const parser *p, int *i)
{
    option o;
    const char *word = p->argv[*i];
    if (!find_option(p, word, &o)) return unknown_option(p, word);
    if (p->store) sc_given_set(&o.set->given, o.set->keys, o.key->name);
    if (sc_key_is_flag(o.key)) {
        if (o.value != NULL && o.negated)
            return sc_error(p->err, SC_EUSAGE, SC_C_OPTION, sc_pos_file(word),
                            NULL, "this option takes no value");
        if (o.value != NULL) return set_value(p, &o, o.value);
        return set_value(p, &o, o.negated ? "false" : "true");
    }
    bool joined = o.value != NULL; /* "--flag=value" is one word of a list */
    if (!joined) {
        const char *next = *i + 1 < p->argc ? p->argv[*i + 1] : NULL;
        if (next == NULL || (next[0] == '-' && next[1] == '-'))
            return sc_error(p->err, SC_EUSAGE, SC_C_OPTION, sc_pos_file(word),
                            o.key->help, "this option needs a value");
        o.value = next;
        ++*i;
    }
    SC_TRY(set_value(p, &o, o.value));
    for (uint32_t n = 1; n < o.key->words && !joined; n++) {
        const char *next = *i + 1 < p->argc ? p->argv[*i + 1] : NULL;
        if (next == NULL || (next[0] == '-' && next[1] == '-'))
            return sc_error(p->err, SC_EUSAGE, SC_C_OPTION, sc_pos_file(word),
                            o.key->help, "this option needs %u words",
                            (unsigned)o.key->words);
        SC_TRY(set_value(p, &o, next));
        ++*i;
    }
    return SC_OK;
}

static sc_status go_through(const parser *p, sc_words *words)
{
    sc_status first = SC_OK;
    bool options = true;
    for (int i = 0; i < p->argc; i++) {
        const char *word = p->argv[i];
        if (options && strcmp(word, "--") == 0) {
            options = false;
        } else if (!options || word[0] != '-' || word[1] == '\0') {
            words->w[words->n++] = word;
        } else {
            sc_status s = one_option(p, &i);
            if (first == SC_OK) first = s;
        }
    }
    return first;
}

sc_status sc_opt_parse(int argc, char *const *argv, sc_opt_set *sets,
                       uint32_t n_sets, sc_words *positional, sc_arena *a,
                       sc_err *err)
{
    parser p = {argc, argv, sets, n_sets, a, err, false};
    sc_words words = {NULL, 0};
    words.w = SC_NEW_N(a, const char *, argc < 0 ? 0 : (size_t)argc + 1);
    if (words.w == NULL) return sc_error_nomem(err);
    SC_TRY(go_through(&p, &words));
    p.store = true;
    words.n = 0;
    SC_TRY(go_through(&p, &words));
    *positional = words;
    return SC_OK;
}

#define HELP_COLUMN 26
#define HELP_WIDTH  79

/* `text` from column HELP_COLUMN on, broken between words. */
static void add_wrapped(sc_text *t, const char *text)
{
    size_t most = t->width ? t->width : HELP_WIDTH;
    size_t col = HELP_COLUMN;
    while (*text != '\0') {
        size_t n = strcspn(text, " ");
        if (col > HELP_COLUMN && col + 1 + n > most) {
            sc_text_add(t, "\n%*s", HELP_COLUMN, "");
            col = HELP_COLUMN;
        }
        bool blank = col > HELP_COLUMN;
        sc_text_add(t, "%s%.*s", blank ? " " : "", (int)n, text);
        col += n + blank;
        text += n;
        text += strspn(text, " ");
    }
    sc_text_add(t, "\n");
}

void sc_schema_help_row(const sc_key *k, sc_text *t)
{
    sc_text left, right;
    sc_text_init(&left);
    sc_text_init(&right);
    sc_text_add(&left, "  %s", k->flag);
    if (k->meta != NULL) {
        sc_text_add(&left, " %s", k->meta);
    } else if (k->type == SC_T_ENUM) {
        for (int i = 0; k->names[i] != NULL; i++)
            sc_text_add(&left, "%s%s", i == 0 ? " " : "|", k->names[i]);
    } else if (!sc_key_is_flag(k)) {
        bool text = k->type == SC_T_STRING || k->type == SC_T_LIST;
        sc_text_add(&left, " %s", text ? "TEXT" : "N");
    }
    sc_text_add(&right, "%s", k->help == NULL ? "" : k->help);
    if (k->type == SC_T_LIST)
        sc_text_add(&right, "%s(may be repeated)", right.len ? " " : "");
    if (k->def != NULL && k->def[0] != '\0' && strcmp(k->def, "false") != 0)
        sc_text_add(&right, " [%s]", k->def);
    if (left.len + 2 > HELP_COLUMN)
        sc_text_add(t, "%s\n%*s", left.buf, HELP_COLUMN, "");
    else
        sc_text_add(t, "%-*s", HELP_COLUMN, left.buf);
    add_wrapped(t, right.buf);
    t->failed = t->failed || left.failed || right.failed;
    sc_text_free(&left);
    sc_text_free(&right);
}

char *sc_schema_help(const sc_key *keys, sc_arena *a)
{
    sc_text t;
    sc_text_init(&t);
    for (const sc_key *k = keys; k->name != NULL; k++)
        if (k->flag != NULL) sc_schema_help_row(k, &t);
    char *out = t.failed ? NULL : sc_strdup(a, t.buf);
    sc_text_free(&t);
    return out;
}
