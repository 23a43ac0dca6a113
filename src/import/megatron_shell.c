/* SPDX-License-Identifier: Apache-2.0 */
/*
 * megatron_shell.c - follows simple commands of a launch script: assignments
 * and the launch itself. Nothing is executed; other commands have no effect.
 */
#include "import/megatron_shell.h"

#include <stdio.h>
#include <string.h>

sc_status sh_syntax(sh *s, uint32_t at, const char *what)
{
    return sc_error(s->err, SC_EINPUT, SC_C_SYNTAX, sh_pos(s, at), NULL, "%s",
                    what);
}

char sh_at(const sh_src *c, uint32_t ahead)
{
    if (c->n - c->i <= ahead) return '\0';
    return c->g[c->i + ahead].c;
}

uint32_t sh_here(const sh *s, const sh_src *c)
{
    if (c->i < c->n) return c->g[c->i].at;
    return c->n ? c->g[c->n - 1].at + 1 : (uint32_t)s->len;
}

/* ---- between commands ---------------------------------------------------------- */

void sh_skip_line(sh_src *c)
{
    while (c->i < c->n && c->g[c->i].c != '\n') c->i++;
}

/* Skips lines up to the one that is `end`, ignoring leading tabs. */
static void skip_heredoc(sh_src *c, const sh_text *end)
{
    while (c->i < c->n) {
        while (sh_at(c, 0) == '\t') c->i++;
        uint32_t k = 0;
        while (k < end->n && sh_at(c, k) == end->g[k].c) k++;
        bool found = k == end->n && (c->n - c->i == k || sh_at(c, k) == '\n' ||
                                     sh_at(c, k) == '\r');
        sh_skip_line(c);
        if (c->i < c->n) c->i++;
        if (found) return;
    }
}

static void newline(sh *s, sh_src *c)
{
    c->i++;
    for (uint32_t i = 0; i < s->heredoc.n; i++)
        skip_heredoc(c, &s->heredoc.t[i]);
    s->heredoc.n = 0;
}

/* Blanks, continued lines and comments. */
void sh_skip_blanks(sh_src *c)
{
    for (;;) {
        if (sh_blank(sh_at(c, 0))) {
            c->i++;
        } else if (sh_at(c, 0) == '\\' && sh_at(c, 1) == '\n') {
            c->i += 2;
        } else if (sh_at(c, 0) == '\\' && sh_at(c, 1) == '\r' &&
                   sh_at(c, 2) == '\n') {
            c->i += 3;
        } else if (sh_at(c, 0) == '#' && !c->g[c->i].quoted) {
            sh_skip_line(c);
        } else {
            return;
        }
    }
}

void sh_skip_lines(sh *s, sh_src *c)
{
    for (sh_skip_blanks(c); sh_at(c, 0) == '\n'; sh_skip_blanks(c))
        newline(s, c);
}

/* Reads a run of plain characters at the cursor as one word. */
size_t sh_plain(const sh_src *c, char *buf, size_t size)
{
    size_t n = 0;
    for (;; n++) {
        char ch = sh_at(c, (uint32_t)n);
        if (ch == '\0' || sh_blank(ch) || strchr("\n;&|<>()", ch)) break;
        if (n + 1 < size) buf[n] = ch;
    }
    buf[n < size ? n : size - 1] = '\0';
    return n;
}

bool sh_next_is(const sh_src *c, const char *word)
{
    char buf[16];
    return sh_plain(c, buf, sizeof buf) == strlen(word) &&
           strcmp(buf, word) == 0;
}

/* ---- redirections ------------------------------------------------------------------ */

bool sh_redirected(const sh_src *c)
{
    uint32_t k = 0;
    while (sh_digit(sh_at(c, k))) k++;
    if (k == 0 && sh_at(c, 0) == '&' && sh_at(c, 1) == '>') return true;
    return sh_at(c, k) == '<' || sh_at(c, k) == '>';
}

sc_status sh_redirection(sh *s, sh_src *c)
{
    while (sh_digit(sh_at(c, 0)) || sh_at(c, 0) == '&') c->i++;
    bool heredoc =
        sh_at(c, 0) == '<' && sh_at(c, 1) == '<' && sh_at(c, 2) != '<';
    while (sh_at(c, 0) && strchr("<>&|-", sh_at(c, 0))) c->i++;
    if (sh_at(c, 0) == '(') { /* process substitution */
        uint32_t open = sh_here(s, c);
        c->i++;
        return sh_match(s, c, '(', ')', open);
    }
    sh_skip_blanks(c);
    sh_list target = {0};
    bool live = s->live;
    if (heredoc) s->live = true; /* its end must be found in any case */
    sc_status st = sh_word(s, c, true, heredoc ? &s->heredoc : &target);
    s->live = live;
    return st;
}

/* ---- assignments ------------------------------------------------------------------- */

/* Length of "NAME=", "NAME+=" or "NAME[...]=" at the cursor; 0: none. */
static uint32_t assignment(const sh_src *c, char *name, size_t size)
{
    uint32_t k = 0;
    if (!sh_letter(sh_at(c, 0))) return 0;
    while (sh_letter(sh_at(c, k)) || sh_digit(sh_at(c, k))) k++;
    if (k >= size) return 0;
    for (uint32_t i = 0; i < k; i++) name[i] = sh_at(c, i);
    name[k] = '\0';
    if (sh_at(c, k) == '[') {
        while (sh_at(c, k) && sh_at(c, k) != ']' && sh_at(c, k) != '\n') k++;
        if (sh_at(c, k) != ']') return 0;
        k++;
    }
    if (sh_at(c, k) == '+') k++;
    return sh_at(c, k) == '=' ? k + 1 : 0;
}

static sc_status array(sh *s, sh_src *c, sh_list *out)
{
    uint32_t open = sh_here(s, c);
    c->i++;
    for (;;) {
        sh_skip_lines(s, c);
        char ch = sh_at(c, 0);
        if (ch == ')') {
            c->i++;
            return SC_OK;
        }
        if (!ch) return sh_syntax(s, open, "'(' without its ')'");
        if (strchr(";&|<>(", ch))
            return sh_syntax(s, sh_here(s, c),
                             "an operator inside a list ( ... )");
        SC_TRY(sh_word(s, c, false, out));
    }
}

static sc_status assign(sh *s, sh_src *c, const char *name, uint32_t len)
{
    bool add = sh_at(c, len - 2) == '+', element = sh_at(c, len - 2) == ']';
    sh_list value = {0};
    c->i += len;
    bool is_array = sh_at(c, 0) == '(';
    if (is_array)
        SC_TRY(array(s, c, &value));
    else
        SC_TRY(sh_word(s, c, true, &value));
    if (!s->live) {
        s->hidden++;
        return SC_OK;
    }
    return sh_set(s, name, is_array || element, add || element, value);
}

/* ---- simple commands --------------------------------------------------------------- */

static bool equals(const sh_text *w, const char *text)
{
    size_t n = strlen(text);
    if (w->n != n) return false;
    for (size_t i = 0; i < n; i++)
        if (w->g[i].c != text[i]) return false;
    return true;
}

static bool ends_with(const sh_text *w, const char *text)
{
    size_t n = strlen(text);
    if (w->n < n) return false;
    for (size_t i = 0; i < n; i++)
        if (w->g[w->n - n + i].c != text[i]) return false;
    return true;
}

static bool one_of(const sh_text *w, const char *const *words)
{
    for (; *words; words++)
        if (equals(w, *words)) return true;
    return false;
}

static sc_status nested(sh *s, sh_src in)
{
    if (++s->depth > SH_MAX_NESTING)
        return sc_error(
            s->err, SC_EINPUT, SC_C_TOO_BIG, sh_pos(s, sh_here(s, &in)), NULL,
            "commands nested more than %d deep", (int)SH_MAX_NESTING);
    sh_list outer = s->heredoc;
    s->heredoc = (sh_list){0};
    SC_TRY(sh_commands(s, &in));
    if (*s->stop)
        return sh_syntax(s, sh_here(s, &in),
                         "a closing word without its beginning");
    s->heredoc = outer;
    s->depth--;
    return SC_OK;
}

/* Reads words from `from` on, joined by blanks, as commands. */
static sc_status eval(sh *s, const sh_list *w, uint32_t from, uint32_t to)
{
    sh_text t = {0};
    for (uint32_t i = from; i < to; i++) {
        for (uint32_t k = 0; k < w->t[i].n; k++) {
            sh_glyph g = w->t[i].g[k];
            g.quoted = false;
            SC_TRY(sh_push(s, &t, g));
        }
        if (t.n) SC_TRY(sh_push(s, &t, (sh_glyph){t.g[t.n - 1].at, ' ', 0}));
    }
    return nested(s, (sh_src){t.g, t.n, 0});
}

/* Index of the word after `bash -c`; 0: none. */
static uint32_t inline_script(const sh_list *w)
{
    for (uint32_t i = 0; i + 2 < w->n; i++) {
        const sh_text *t = &w->t[i], *o = &w->t[i + 1];
        if (!equals(t, "bash") && !equals(t, "sh") && !ends_with(t, "/bash") &&
            !ends_with(t, "/sh"))
            continue;
        if (o->n >= 2 && o->g[0].c == '-' && ends_with(o, "c")) return i + 2;
    }
    return 0;
}

/* Index of the training program; w->n: none. */
static uint32_t program(const sh_list *w)
{
    static const char *const quiet[] = {"echo", "printf", "cat", "cp", "rm",
                                        "ls",   "test",   "[",   NULL};
    static const char *const modules[] = {"-m", "--module", NULL};
    if (w->n == 0 || one_of(&w->t[0], quiet)) return w->n;
    for (uint32_t i = 0; i < w->n; i++)
        if (ends_with(&w->t[i], ".py")) return i;
    for (uint32_t i = 1; i + 1 < w->n; i++)
        if (one_of(&w->t[i], modules) &&
            ends_with(&w->t[i + 1], "pretrain_gpt"))
            return i + 1;
    return w->n;
}

static bool has_options(const sh_list *w, uint32_t from)
{
    for (uint32_t i = from; i < w->n; i++)
        if (w->t[i].n > 3 && w->t[i].g[0].c == '-' && w->t[i].g[1].c == '-')
            return true;
    return false;
}

static sc_status launch(sh *s, const sh_list *w)
{
    uint32_t p = program(w);
    if (p == w->n || !has_options(w, p + 1)) return SC_OK;
    uint32_t where = w->t[p].n ? w->t[p].g[0].at : 0;
    if (!s->live) {
        s->hidden++;
        return SC_OK;
    }
    if (s->found)
        return sh_warn(
            s, where,
            "the script launches a second program; only the first is read");
    s->found = true;
    s->script = sh_string(s, &w->t[p]);
    if (!s->script) return sc_error_nomem(s->err);
    for (uint32_t i = 0; i < w->n; i++)
        if (i != p)
            SC_TRY(sh_append(s, i < p ? &s->launcher : &s->args, w->t[i]));
    return SC_OK;
}

static sc_status call(sh *s, const sh_list *w)
{
    static const char *const sources[] = {"source", ".", NULL};
    static const char *const ends[] = {"exit", "return", NULL};
    s->truth = equals(&w->t[0], "false") ? SH_FALSE : SH_TRUE;
    if (s->live && one_of(&w->t[0], ends)) s->stopped = true;
    if (s->live && one_of(&w->t[0], sources) && w->n > 1 && w->t[0].n)
        return sh_warn(s, w->t[0].g[0].at, "the file '%.80s' is not read",
                       sh_string(s, &w->t[1]));
    if (equals(&w->t[0], "eval")) return eval(s, w, 1, w->n);
    for (const sh_function *f = s->functions; f && s->live; f = f->next) {
        if (!equals(&w->t[0], f->name)) continue;
        SC_TRY(nested(s, f->body));
        s->truth = SH_TRUE;
        return SC_OK;
    }
    uint32_t script = inline_script(w);
    if (script == 0) return launch(s, w);
    uint32_t outer = s->launcher.n;
    if (!s->found && s->live)
        for (uint32_t i = 0; i + 2 < script; i++)
            SC_TRY(sh_append(s, &s->launcher, w->t[i]));
    bool before = s->found;
    SC_TRY(eval(s, w, script, script + 1));
    if (!s->found && !before) s->launcher.n = outer;
    return SC_OK;
}

/* "set -- WORDS" sets the arguments of the script. */
static sc_status arguments(sh *s, const sh_list *w)
{
    if (!s->live || w->n < 2 || !equals(&w->t[1], "--")) return SC_OK;
    for (uint32_t i = 2; i < w->n && i < 100; i++) {
        sh_list value = {0};
        char name[8];
        snprintf(name, sizeof name, "%u", (unsigned)(i - 1));
        SC_TRY(sh_append(s, &value, w->t[i]));
        SC_TRY(sh_set(s, name, false, false, value));
    }
    return SC_OK;
}

static sc_status unset(sh *s, const sh_list *w)
{
    for (uint32_t i = 1; i < w->n && s->live; i++) {
        const char *name = sh_string(s, &w->t[i]);
        if (!name) return sc_error_nomem(s->err);
        for (sh_var **v = &s->vars; *v; v = &(*v)->next) {
            if (strcmp((*v)->name, name) != 0) continue;
            *v = (*v)->next;
            break;
        }
    }
    return SC_OK;
}

static bool is_test(const sh_list *w, bool *patterns)
{
    *patterns = equals(&w->t[0], "[[");
    return *patterns || equals(&w->t[0], "[") || equals(&w->t[0], "test");
}

static sc_status run(sh *s, sh_list *w)
{
    bool patterns;
    if (w->n == 0) {
        s->truth = SH_TRUE;
        return SC_OK;
    }
    if (is_test(w, &patterns)) {
        bool bracket = equals(&w->t[w->n - 1], patterns ? "]]" : "]");
        sh_list inner = {w->t + 1, w->n - 1, 0};
        if (bracket && inner.n) inner.n--;
        s->truth = sh_test(s, &inner, patterns);
        return SC_OK;
    }
    if (equals(&w->t[0], "unset")) return unset(s, w);
    if (equals(&w->t[0], "set")) return arguments(s, w);
    return call(s, w);
}

/* Reads the words of [[ ... ]], in which && || ( ) < > are words. */
static sc_status test_words(sh *s, sh_src *c, sh_list *w)
{
    uint32_t open = sh_here(s, c);
    for (;;) {
        sh_skip_lines(s, c);
        char ch = sh_at(c, 0);
        if (!ch) return sh_syntax(s, open, "'[[' without its ']]'");
        if (!strchr(";&|<>()", ch)) {
            bool end = sh_next_is(c, "]]");
            SC_TRY(sh_word(s, c, true, w));
            if (end) return SC_OK;
            continue;
        }
        sh_text op = {0};
        SC_TRY(sh_push(s, &op, c->g[c->i++]));
        if ((ch == '&' || ch == '|') && sh_at(c, 0) == ch)
            SC_TRY(sh_push(s, &op, c->g[c->i++]));
        op.g[0].quoted = false;
        SC_TRY(sh_append(s, w, op));
    }
}

sc_status sh_simple(sh *s, sh_src *c)
{
    static const char *const declarers[] = {"export", "declare",  "typeset",
                                            "local",  "readonly", NULL};
    sh_list w = {0};
    bool names = true; /* NAME= is an assignment at this place */
    char name[128];
    if (sh_next_is(c, "[[")) {
        SC_TRY(test_words(s, c, &w));
        if (!s->live) return SC_OK;
        return run(s, &w);
    }
    for (;;) {
        sh_skip_blanks(c);
        char ch = sh_at(c, 0);
        if (sh_redirected(c)) {
            SC_TRY(sh_redirection(s, c));
            continue;
        }
        if (!ch || strchr("\n;&|)", ch)) break;
        if (ch == '(')
            return sh_syntax(s, sh_here(s, c),
                             "'(' in the middle of a command");
        uint32_t len = names ? assignment(c, name, sizeof name) : 0;
        if (len) {
            SC_TRY(assign(s, c, name, len));
            continue;
        }
        uint32_t first = w.n;
        SC_TRY(sh_word(s, c, false, &w));
        if (names && w.n > first && first == 0)
            names = one_of(&w.t[0], declarers);
    }
    if (s->live) return run(s, &w);
    return launch(s, &w);
}
