/* SPDX-License-Identifier: Apache-2.0 */
/* megatron_word.c - expands words of a shell script: quotes, variables,
 * arrays. */
#include "base/utf8.h"
#include "import/megatron_shell.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* More than any script needs; it limits variables that double themselves. */
enum { MAX_GLYPHS = 1 << 20, MAX_VARS = 4096, MAX_DEPTH = 40 };

enum { IN_QUOTES = 1, TO_META = 2 };

typedef struct builder {
    sh_list *out;
    sh_text field;
    bool started, whole;
} builder;

/* ---- text -------------------------------------------------------------------- */

sc_pos sh_pos(const sh *s, uint32_t at)
{
    return utf8_position(s->text, s->len, at, s->file);
}

sc_status sh_push(sh *s, sh_text *t, sh_glyph g)
{
    if (s->work++ >= MAX_GLYPHS)
        return sc_error(s->err, SC_EINPUT, SC_C_TOO_BIG, sh_pos(s, g.at),
                        "a variable that contains itself many times?",
                        "the script expands to more than %d characters",
                        (int)MAX_GLYPHS);
    sh_glyph *new = sc_grow(s->a, t->g, t->n, &t->cap, 16, sizeof *new);
    if (!new) return sc_error_nomem(s->err);
    t->g = new;
    t->g[t->n++] = g;
    return SC_OK;
}

sc_status sh_append(sh *s, sh_list *l, sh_text t)
{
    if (s->work++ >= MAX_GLYPHS)
        return sc_error(s->err, SC_EINPUT, SC_C_TOO_BIG, sc_pos_file(s->file),
                        NULL, "the script expands to too many words");
    sh_text *new = sc_grow(s->a, l->t, l->n, &l->cap, 8, sizeof *new);
    if (!new) return sc_error_nomem(s->err);
    l->t = new;
    l->t[l->n++] = t;
    return SC_OK;
}

char *sh_string(const sh *s, const sh_text *t)
{
    char *buf = SC_NEW_N(s->a, char, t->n + 1);
    size_t n = 0;
    if (!buf) return NULL;
    for (uint32_t i = 0; i < t->n; i++) {
        char c = t->g[i].c;
        if (c == SH_HOLE) c = '$';
        if (c != SH_HOLE_END) buf[n++] = c;
    }
    buf[n] = '\0';
    return buf;
}

bool sh_has_hole(const sh_text *t)
{
    for (uint32_t i = 0; i < t->n; i++)
        if (t->g[i].c == SH_HOLE) return true;
    return false;
}

sc_status sh_warn(sh *s, uint32_t at, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    const char *text = sc_vsprintf(s->a, fmt, args);
    va_end(args);
    const char **new = sc_grow(s->a, s->warning, s->n_warnings,
                               &s->cap_warnings, 8, sizeof(char *));
    if (!new || !text) return sc_error_nomem(s->err);
    s->warning = new;
    sc_pos pos = sh_pos(s, at);
    const char *line = sc_sprintf(s->a, "%s:%u:%u: %s", s->file,
                                  (unsigned)pos.line, (unsigned)pos.col, text);
    if (!line) return sc_error_nomem(s->err);
    s->warning[s->n_warnings++] = line;
    return SC_OK;
}

/* ---- variables ------------------------------------------------------------------ */

sh_var *sh_find(const sh *s, const char *name)
{
    for (sh_var *v = s->vars; v; v = v->next)
        if (strcmp(v->name, name) == 0) return v;
    return NULL;
}

sc_status sh_set(sh *s, const char *name, bool array, bool add, sh_list v)
{
    sh_var *var = sh_find(s, name);
    if (!var) {
        if (++s->n_vars > MAX_VARS)
            return sc_error(s->err, SC_EINPUT, SC_C_TOO_BIG,
                            sc_pos_file(s->file), NULL,
                            "more than %d variables", (int)MAX_VARS);
        var = SC_NEW(s->a, sh_var);
        if (!var) return sc_error_nomem(s->err);
        var->name = sc_strdup(s->a, name);
        if (!var->name) return sc_error_nomem(s->err);
        var->next = s->vars;
        s->vars = var;
    }
    if (!add || var->v.n == 0) {
        var->array = array;
        var->v = v;
        return SC_OK;
    }
    if (array || var->array) {
        var->array = true;
        for (uint32_t i = 0; i < v.n; i++)
            SC_TRY(sh_append(s, &var->v, v.t[i]));
        return SC_OK;
    }
    for (uint32_t i = 0; v.n && i < v.t[0].n; i++)
        SC_TRY(sh_push(s, &var->v.t[0], v.t[0].g[i]));
    return SC_OK;
}

/* ---- fields ---------------------------------------------------------------------- */

static sc_status add(sh *s, builder *b, sh_glyph g, bool quoted)
{
    g.quoted = quoted;
    b->started = true;
    return s->live ? sh_push(s, &b->field, g) : SC_OK;
}

static sc_status flush(sh *s, builder *b)
{
    if (!b->started) return SC_OK;
    SC_TRY(sh_append(s, b->out, b->field));
    b->field = (sh_text){0};
    b->started = false;
    return SC_OK;
}

static sc_status emit(sh *s, builder *b, const sh_text *t, bool quoted)
{
    for (uint32_t i = 0; i < t->n; i++) {
        char c = t->g[i].c;
        if (!quoted && !b->whole && (sh_blank(c) || c == '\n'))
            SC_TRY(flush(s, b));
        else
            SC_TRY(add(s, b, t->g[i], quoted));
    }
    return SC_OK;
}

static sc_status hole(sh *s, builder *b, const char *name, uint32_t at)
{
    SC_TRY(add(s, b, (sh_glyph){at, SH_HOLE, true}, true));
    for (; *name; name++) SC_TRY(add(s, b, (sh_glyph){at, *name, true}, true));
    return add(s, b, (sh_glyph){at, SH_HOLE_END, true}, true);
}

static sc_status emit_all(sh *s, builder *b, const sh_var *v, bool quoted)
{
    for (uint32_t i = 0; i < v->v.n; i++) {
        if (i > 0 && b->whole) {
            uint32_t at = v->v.t[i].n ? v->v.t[i].g[0].at : 0;
            SC_TRY(add(s, b, (sh_glyph){at, ' ', true}, true));
        } else if (i > 0) {
            SC_TRY(flush(s, b));
        }
        SC_TRY(emit(s, b, &v->v.t[i], quoted));
        if (quoted) b->started = true;
    }
    return SC_OK;
}

/* ---- expansions -------------------------------------------------------------------- */

static sc_status parts(sh *s, sh_src *c, builder *b, int how);

static char first(const sh_src *c)
{
    if (c->i >= c->n) return '\0';
    return c->g[c->i].c;
}

static bool peek(const sh_src *c, uint32_t ahead, char ch)
{
    return c->n - c->i > ahead && c->g[c->i + ahead].c == ch;
}

sc_status sh_match(sh *s, sh_src *c, char open, char close, uint32_t at)
{
    uint32_t depth = 1;
    char quote = 0;
    for (; c->i < c->n; c->i++) {
        char ch = c->g[c->i].c;
        if (ch == '\\' && quote != '\'') {
            if (c->i + 1 < c->n) c->i++;
        } else if (quote) {
            if (ch == quote) quote = 0;
        } else if (ch == '\'' || ch == '"') {
            quote = ch;
        } else if (ch == open) {
            depth++;
        } else if (ch == close && --depth == 0) {
            c->i++;
            return SC_OK;
        }
    }
    return sc_error(s->err, SC_EINPUT, SC_C_SYNTAX, sh_pos(s, at), NULL,
                    "'%c' without its '%c'", open, close);
}

/* Expands $(( ... )); the cursor is after "$((". */
static sc_status arithmetic(sh *s, sh_src *c, builder *b, uint32_t at)
{
    sh_src in = {c->g, 0, c->i};
    SC_TRY(sh_match(s, c, '(', ')', at + 2));
    if (!peek(c, 0, ')'))
        return sc_error(s->err, SC_EINPUT, SC_C_SYNTAX, sh_pos(s, at), NULL,
                        "'$((' without its '))'");
    in.n = c->i - 1;
    c->i++;
    if (!s->live) return add(s, b, (sh_glyph){at, '0', true}, true);
    sh_list words = {0};
    builder inner = {.out = &words, .whole = true};
    SC_TRY(parts(s, &in, &inner, IN_QUOTES));
    int64_t v;
    bool known;
    SC_TRY(sh_arith(s, &inner.field, at, &v, &known));
    if (!known) return hole(s, b, "((...))", at);
    char buf[24];
    snprintf(buf, sizeof buf, "%lld", (long long)v);
    for (const char *p = buf; *p; p++)
        SC_TRY(add(s, b, (sh_glyph){at, *p, true}, true));
    return SC_OK;
}

typedef struct param {
    const char *name, *index; /* index NULL: none; "@", "0" */
    uint32_t at;
    bool length;
    sh_src rest; /* ":-default" */
} param;

static bool is_set(const sh_var *v)
{
    if (!v) return false;
    for (uint32_t i = 0; i < v->v.n; i++)
        if (v->v.t[i].n > 0) return true;
    return false;
}

/* Expands ${X:-word} and similar forms. */
static sc_status alternative(sh *s, builder *b, param *p, const sh_var *v,
                             bool quoted)
{
    sh_src *r = &p->rest;
    bool colon = peek(r, 0, ':');
    if (colon) r->i++;
    char op = first(r);
    bool have = colon ? is_set(v) : v != NULL;
    if (!strchr("-=+?", op) || !op) return hole(s, b, p->name, p->at);
    r->i++;
    if (have != (op == '+')) {
        if (op == '+') return SC_OK;
        if (have) return emit_all(s, b, v, quoted);
    }
    if (op == '?') return hole(s, b, p->name, p->at);
    if (op == '=') {
        sh_list value = {0};
        builder word = {.out = &value, .whole = true};
        SC_TRY(parts(s, r, &word, quoted ? IN_QUOTES : 0));
        SC_TRY(sh_append(s, &value, word.field));
        SC_TRY(sh_set(s, p->name, false, false, value));
        return emit(s, b, &value.t[0], quoted);
    }
    if (quoted) b->started = true;
    return parts(s, r, b, quoted ? IN_QUOTES : 0);
}

static sc_status element(sh *s, builder *b, const param *p, const sh_var *v,
                         bool quoted)
{
    uint32_t i = 0;
    for (const char *d = p->index; *d; d++) {
        if (!sh_digit(*d) || i > 100000) return hole(s, b, p->name, p->at);
        i = 10 * i + (uint32_t)(*d - '0');
    }
    return i < v->v.n ? emit(s, b, &v->v.t[i], quoted) : SC_OK;
}

static sc_status expand(sh *s, builder *b, param *p, bool quoted)
{
    if (!s->live) return add(s, b, (sh_glyph){p->at, '0', true}, true);
    const sh_var *v = sh_find(s, p->name);
    bool all = p->index && strchr("@*", p->index[0]);
    if (p->length) {
        if (!v) return hole(s, b, p->name, p->at);
        char buf[16];
        snprintf(buf, sizeof buf, "%u",
                 (unsigned)(all      ? v->v.n
                            : v->v.n ? v->v.t[0].n
                                     : 0));
        for (const char *d = buf; *d; d++)
            SC_TRY(add(s, b, (sh_glyph){p->at, *d, true}, true));
        return SC_OK;
    }
    if (p->rest.i < p->rest.n) return alternative(s, b, p, v, quoted);
    if (!v) return hole(s, b, p->name, p->at);
    if (quoted && !all) b->started = true;
    if (p->index && !all) return element(s, b, p, v, quoted);
    if (all) return emit_all(s, b, v, quoted);
    return v->v.n ? emit(s, b, &v->v.t[0], quoted) : SC_OK;
}

/* `braces`: ${10} is the tenth argument, but $10 is the first one and a 0. */
static sc_status name_at(sh *s, sh_src *c, bool braces, const char **out)
{
    char buf[128];
    size_t n = 0;
    char ch = first(c);
    if (sh_letter(ch)) {
        while (c->i < c->n && n + 1 < sizeof buf &&
               (sh_letter(c->g[c->i].c) || sh_digit(c->g[c->i].c)))
            buf[n++] = c->g[c->i++].c;
    } else if (ch && (sh_digit(ch) || strchr("@*#?$!-", ch))) {
        do buf[n++] = c->g[c->i++].c;
        while (braces && n < 4 && sh_digit(ch) && sh_digit(first(c)));
    }
    *out = sc_strndup(s->a, buf, n);
    return *out ? SC_OK : sc_error_nomem(s->err);
}

/* Expands "${...}"; the cursor is after "${". */
static sc_status braced(sh *s, sh_src *c, builder *b, uint32_t at, bool quoted)
{
    param p = {.at = at};
    sh_src in = *c;
    SC_TRY(sh_match(s, c, '{', '}', at + 1));
    in.n = c->i - 1;
    if (peek(&in, 0, '#') && in.i + 1 < in.n) {
        p.length = true;
        in.i++;
    }
    SC_TRY(name_at(s, &in, true, &p.name));
    if (!*p.name)
        return sc_error(s->err, SC_EINPUT, SC_C_SYNTAX, sh_pos(s, at),
                        "write ${NAME} or ${NAME:-default}",
                        "no variable name in '${'");
    if (peek(&in, 0, '[')) {
        uint32_t from = ++in.i;
        SC_TRY(sh_match(s, &in, '[', ']', c->g[from - 1].at));
        sh_text index = {0};
        for (uint32_t i = from; i + 1 < in.i; i++)
            SC_TRY(sh_push(s, &index, in.g[i]));
        p.index = sh_string(s, &index);
        if (!p.index) return sc_error_nomem(s->err);
    }
    p.rest = in;
    return expand(s, b, &p, quoted);
}

static sc_status dollar(sh *s, sh_src *c, builder *b, bool quoted)
{
    uint32_t at = c->g[c->i].at;
    if (peek(c, 1, '(') && peek(c, 2, '(')) {
        c->i += 3;
        return arithmetic(s, c, b, at);
    }
    if (peek(c, 1, '(')) {
        c->i += 2;
        SC_TRY(sh_match(s, c, '(', ')', at + 1));
        return hole(s, b, "(...)", at);
    }
    if (peek(c, 1, '{')) {
        c->i += 2;
        return braced(s, c, b, at, quoted);
    }
    param p = {.at = at};
    c->i++;
    SC_TRY(name_at(s, c, false, &p.name));
    if (!*p.name) return add(s, b, (sh_glyph){at, '$', quoted}, quoted);
    return expand(s, b, &p, quoted);
}

static sc_status single_quoted(sh *s, sh_src *c, builder *b)
{
    uint32_t at = c->g[c->i++].at;
    b->started = true;
    for (; c->i < c->n; c->i++) {
        if (c->g[c->i].c == '\'') {
            c->i++;
            return SC_OK;
        }
        SC_TRY(add(s, b, c->g[c->i], true));
    }
    return sc_error(s->err, SC_EINPUT, SC_C_SYNTAX, sh_pos(s, at), NULL,
                    "a quote that never ends");
}

static sc_status double_quoted(sh *s, sh_src *c, builder *b)
{
    uint32_t at = c->g[c->i++].at;
    /* "${LIST[@]}" of an empty list is no word at all */
    bool list = c->n - c->i > 4 && c->g[c->i].c == '$';
    if (!list) b->started = true;
    SC_TRY(parts(s, c, b, IN_QUOTES));
    if (c->i < c->n) {
        c->i++;
        return SC_OK;
    }
    return sc_error(s->err, SC_EINPUT, SC_C_SYNTAX, sh_pos(s, at), NULL,
                    "a quote that never ends");
}

static sc_status escaped(sh *s, sh_src *c, builder *b, int how)
{
    sh_glyph slash = c->g[c->i++];
    if (c->i == c->n) return add(s, b, slash, true);
    sh_glyph g = c->g[c->i++];
    if (g.c == '\n') return SC_OK;
    if (g.c == '\r' && peek(c, 0, '\n')) {
        c->i++;
        return SC_OK;
    }
    if ((how & IN_QUOTES) && !strchr("$`\"\\", g.c))
        SC_TRY(add(s, b, slash, true));
    return add(s, b, g, true);
}

static sc_status backtick(sh *s, sh_src *c, builder *b)
{
    uint32_t at = c->g[c->i++].at;
    while (c->i < c->n && c->g[c->i].c != '`')
        c->i += c->g[c->i].c == '\\' && c->i + 1 < c->n ? 2 : 1;
    if (c->i == c->n)
        return sc_error(s->err, SC_EINPUT, SC_C_SYNTAX, sh_pos(s, at), NULL,
                        "'`' without its '`'");
    c->i++;
    return hole(s, b, "(...)", at);
}

/* Reads a hole in a text that is parsed a second time (eval, bash -c). */
static sc_status hole_again(sh *s, sh_src *c, builder *b)
{
    for (bool end = false; c->i < c->n && !end; c->i++) {
        end = c->g[c->i].c == SH_HOLE_END;
        SC_TRY(add(s, b, c->g[c->i], true));
    }
    return SC_OK;
}

static sc_status part(sh *s, sh_src *c, builder *b, int how)
{
    char ch = c->g[c->i].c;
    bool quoted = (how & IN_QUOTES) != 0;
    if (ch == '\\') return escaped(s, c, b, how);
    if (ch == '$') return dollar(s, c, b, quoted);
    if (ch == '`') return backtick(s, c, b);
    if (ch == SH_HOLE) return hole_again(s, c, b);
    if (ch == '\'' && !quoted) return single_quoted(s, c, b);
    if (ch == '"' && !quoted) return double_quoted(s, c, b);
    return add(s, b, c->g[c->i++], quoted);
}

static sc_status parts(sh *s, sh_src *c, builder *b, int how)
{
    if (++s->depth > MAX_DEPTH)
        return sc_error(s->err, SC_EINPUT, SC_C_TOO_BIG,
                        sh_pos(s, c->i < c->n ? c->g[c->i].at : 0), NULL,
                        "nested more than %d deep", (int)MAX_DEPTH);
    while (c->i < c->n) {
        char ch = c->g[c->i].c;
        if ((how & TO_META) && (sh_blank(ch) || strchr("\n;&|<>()", ch))) break;
        if ((how & IN_QUOTES) && ch == '"') break;
        SC_TRY(part(s, c, b, how));
    }
    s->depth--;
    return SC_OK;
}

sc_status sh_word(sh *s, sh_src *c, bool whole, sh_list *out)
{
    builder b = {.out = out, .whole = whole};
    SC_TRY(parts(s, c, &b, TO_META));
    if (whole) b.started = true;
    return flush(s, &b);
}
