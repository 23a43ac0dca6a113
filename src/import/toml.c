/* SPDX-License-Identifier: Apache-2.0 */
/* toml.c - reads lines, keys and tables of TOML; toml_value.c reads values. */
#include "import/toml.h"

#include "base/utf8.h"
#include "import/toml_value.h"

#include <string.h>

enum { MOST_KEYS = 10000 };

sc_pos toml_pos(const toml *t, size_t at)
{
    uint32_t line = t->line;
    if (at < t->line_at) return utf8_position(t->text, t->len, at, t->file);
    sc_pos p = utf8_position(t->text + t->line_at, t->len - t->line_at,
                             at - t->line_at, t->file);
    p.line += line - 1;
    return p;
}

bool toml_error(toml *t, sc_code code, size_t at, const char *hint,
                const char *what)
{
    sc_status s =
        sc_error(t->err, SC_EINPUT, code, toml_pos(t, at), hint, "%s", what);
    if (t->status == SC_OK) t->status = s;
    return false;
}

bool toml_nomem(toml *t)
{
    t->status = sc_error_nomem(t->err);
    return false;
}

void toml_blanks(toml *t)
{
    while (t->at < t->len && (t->text[t->at] == ' ' || t->text[t->at] == '\t'))
        t->at++;
}

/* ---- nodes --------------------------------------------------------------------- */

static sc_node *find(const sc_node *map, const char *key)
{
    for (sc_node *c = map->child; c; c = c->next)
        if (strcmp(c->key, key) == 0) return c;
    return NULL;
}

toml_node *toml_add(toml *t, sc_node *parent, const char *key, size_t at,
                    sc_node_kind kind)
{
    toml_node *p = (toml_node *)(void *)parent;
    toml_node *n = SC_NEW(t->a, toml_node);
    if (!n) {
        (void)toml_nomem(t);
        return NULL;
    }
    if (parent->n >= MOST_KEYS) {
        (void)toml_error(t, SC_C_TOO_BIG, at, NULL,
                         "more than 10000 values in one table or array");
        return NULL;
    }
    n->node = (sc_node){.kind = kind, .key = key, .text = ""};
    n->node.pos = n->node.key_pos = toml_pos(t, at);
    if (p->last)
        p->last->next = &n->node;
    else
        parent->child = &n->node;
    p->last = &n->node;
    parent->n++;
    return n;
}

/* ---- keys ---------------------------------------------------------------------- */

static bool is_bare(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9') || c == '_' || c == '-';
}

/* One part of a key: bare, "basic" or 'literal'. */
static const char *part(toml *t)
{
    char c = (char)(t->at < t->len ? t->text[t->at] : '\0');
    if (c == '"' || c == '\'') return toml_string(t, false);
    size_t from = t->at;
    while (t->at < t->len && is_bare(t->text[t->at])) t->at++;
    if (t->at == from) {
        (void)toml_error(t, SC_C_SYNTAX, from, NULL,
                         "a key is expected: letters, digits, _ and -, or "
                         "quotes");
        return NULL;
    }
    const char *key = sc_strndup(t->a, t->text + from, t->at - from);
    if (!key) (void)toml_nomem(t);
    return key;
}

/* Reads a dotted key.  Returns the table that all parts but the last lead to;
 * `*key` and `*at` are the last part and its place. */
static sc_node *walk(toml *t, sc_node *table, const char **key, size_t *at,
                     bool header)
{
    for (;;) {
        toml_blanks(t);
        *at = t->at;
        *key = part(t);
        if (!*key) return NULL;
        toml_blanks(t);
        if (t->at >= t->len || t->text[t->at] != '.') return table;
        t->at++;
        sc_node *n = find(table, *key);
        if (!n) {
            toml_node *made = toml_add(t, table, *key, *at, SC_N_MAP);
            if (!made) return NULL;
            made->open = true;
            made->dotted = !header;
            n = &made->node;
        } else if (n->kind == SC_N_SEQ && n->n &&
                   ((toml_node *)(void *)n)->tables) {
            n = ((toml_node *)(void *)n)->last;
        } else if (n->kind != SC_N_MAP ||
                   ((toml_node *)(void *)n)->inline_table) {
            (void)toml_error(t, SC_C_DUPLICATE, *at, NULL,
                             "this key has a value that is not a table");
            return NULL;
        }
        table = n;
    }
}

bool toml_pair(toml *t, sc_node *table)
{
    const char *key;
    size_t at;
    table = walk(t, table, &key, &at, false);
    if (!table) return false;
    if (t->at >= t->len || t->text[t->at] != '=')
        return toml_error(t, SC_C_SYNTAX, t->at, "write key = value",
                          "= is expected after a key");
    t->at++;
    toml_blanks(t);
    if (find(table, key))
        return toml_error(t, SC_C_DUPLICATE, at, NULL,
                          "this key occurs twice in its table");
    toml_node *n = toml_add(t, table, key, at, SC_N_SCALAR);
    return n && toml_value(t, n);
}

/* ---- tables -------------------------------------------------------------------- */

static sc_node *define(toml *t, sc_node *table, const char *key, size_t at)
{
    sc_node *old = find(table, key);
    toml_node *n = (toml_node *)(void *)old;
    if (!old) {
        n = toml_add(t, table, key, at, SC_N_MAP);
        return n ? &n->node : NULL;
    }
    if (old->kind != SC_N_MAP || !n->open || n->dotted || n->inline_table) {
        (void)toml_error(t, SC_C_DUPLICATE, at, NULL,
                         "this table is defined twice");
        return NULL;
    }
    n->open = false;
    return old;
}

static sc_node *append(toml *t, sc_node *table, const char *key, size_t at)
{
    sc_node *old = find(table, key);
    toml_node *list = (toml_node *)(void *)old;
    if (!old) {
        list = toml_add(t, table, key, at, SC_N_SEQ);
        if (!list) return NULL;
        list->tables = true;
    } else if (old->kind != SC_N_SEQ || !list->tables) {
        (void)toml_error(t, SC_C_DUPLICATE, at, NULL,
                         "this key is not an array of tables");
        return NULL;
    }
    toml_node *n = toml_add(t, &list->node, NULL, at, SC_N_MAP);
    return n ? &n->node : NULL;
}

static sc_node *header(toml *t, sc_node *root)
{
    const char *key;
    size_t at;
    bool list = t->at + 1 < t->len && t->text[t->at + 1] == '[';
    t->at += list ? 2 : 1;
    sc_node *table = walk(t, root, &key, &at, true);
    if (!table) return NULL;
    for (int i = 0; i <= (int)list; i++) {
        if (t->at < t->len && t->text[t->at] == ']') {
            t->at++;
            continue;
        }
        (void)toml_error(t, SC_C_SYNTAX, t->at, NULL,
                         list ? "]] is expected" : "] is expected");
        return NULL;
    }
    return list ? append(t, table, key, at) : define(t, table, key, at);
}

/* ---- lines --------------------------------------------------------------------- */

bool toml_newline(toml *t)
{
    size_t n = 0;
    if (t->at < t->len && t->text[t->at] == '\r') n = 1;
    if (t->at + n >= t->len || t->text[t->at + n] != '\n') return false;
    t->at += n + 1;
    t->line++;
    t->line_at = t->at;
    return true;
}

void toml_comment(toml *t)
{
    if (t->at >= t->len || t->text[t->at] != '#') return;
    while (t->at < t->len && t->text[t->at] != '\n') t->at++;
    if (t->at > 0 && t->text[t->at - 1] == '\r') t->at--;
}

static void skip_line(toml *t)
{
    while (t->at < t->len && t->text[t->at] != '\n') t->at++;
    (void)toml_newline(t);
}

static void lines(toml *t, sc_node *root)
{
    sc_node *table = root;
    while (t->at < t->len && t->status != SC_ENOMEM) {
        toml_blanks(t);
        bool good = true;
        char c = (char)(t->at < t->len ? t->text[t->at] : '\n');
        if (c == '[') {
            sc_node *next = header(t, root);
            good = next != NULL;
            /* keys of a wrong table are checked and then dropped */
            table = next ? next : &t->lost.node;
        } else if (c != '#' && c != '\n' && c != '\r') {
            good = toml_pair(t, table);
        }
        toml_blanks(t);
        toml_comment(t);
        if (good && t->at < t->len && !toml_newline(t))
            (void)toml_error(t, SC_C_SYNTAX, t->at, NULL,
                             "the line is expected to end here");
        else if (good)
            continue;
        skip_line(t);
    }
}

sc_status import_toml(const char *text, size_t len, const char *file,
                      sc_arena *a, sc_node **out, sc_err *err)
{
    toml t = {.text = text,
              .len = len,
              .line = 1,
              .file = file,
              .a = a,
              .err = err,
              .lost = {.node = {.kind = SC_N_MAP, .text = ""}}};
    toml_node *root = SC_NEW(a, toml_node);
    if (!root) return sc_error_nomem(err);
    root->node = (sc_node){.kind = SC_N_MAP, .text = "", .pos = {file, 1, 1}};
    lines(&t, &root->node);
    SC_TRY(t.status);
    *out = &root->node;
    return SC_OK;
}
