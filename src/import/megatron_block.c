/* SPDX-License-Identifier: Apache-2.0 */
/* megatron_block.c - follows conditions, loops and functions of a launch
 * script. */
#include "import/megatron_shell.h"

#include <string.h>

static sc_status expect(sh *s, const sh_src *c, const char *word, uint32_t open,
                        const char *what)
{
    if (strcmp(s->stop, word) == 0) return SC_OK;
    if (*s->stop)
        return sc_error(s->err, SC_EINPUT, SC_C_SYNTAX,
                        sh_pos(s, sh_here(s, c)), NULL, "'%s' before '%s'",
                        s->stop, word);
    return sc_error(s->err, SC_EINPUT, SC_C_SYNTAX, sh_pos(s, open), NULL,
                    "'%s' without its '%s'", what, word);
}

/* Warns about skipped commands that a run might have executed. */
static sc_status tell_hidden(sh *s, uint32_t before, uint32_t open,
                             const char *why)
{
    if (s->hidden == before || !s->live || s->stopped) return SC_OK;
    return sh_warn(
        s, open,
        "%s: variables that it sets and programs that it launches are not read",
        why);
}

static sc_status if_command(sh *s, sh_src *c)
{
    uint32_t open = sh_here(s, c), before = s->hidden;
    bool live = s->live, taken = false, unknown = false, cond = true;
    c->i += 2;
    for (;;) {
        sh_truth t = taken || unknown ? SH_FALSE : SH_TRUE;
        s->live = live && t == SH_TRUE;
        if (cond) {
            SC_TRY(sh_commands(s, c));
            SC_TRY(expect(s, c, "then", open, "if"));
            if (s->live) t = s->truth;
        }
        if (s->live && t == SH_UNKNOWN) unknown = true;
        s->live = live && t == SH_TRUE;
        taken = taken || s->live;
        SC_TRY(sh_commands(s, c));
        s->live = live;
        if (strcmp(s->stop, "elif") == 0 || strcmp(s->stop, "else") == 0) {
            cond = s->stop[2] == 'i';
            continue;
        }
        SC_TRY(expect(s, c, "fi", open, "if"));
        break;
    }
    s->truth = SH_TRUE;
    if (!unknown) return SC_OK;
    return tell_hidden(s, before, open,
                       "a condition that is only known when the script runs");
}

/* Reads what follows "for": "x in a b c", or "((i=0; i<3; i++))". */
static sc_status loop_words(sh *s, sh_src *c, uint32_t open)
{
    sh_skip_blanks(c);
    if (sh_at(c, 0) == '(') {
        c->i++;
        return sh_match(s, c, '(', ')', open);
    }
    while (sh_at(c, 0) && !strchr(";\n", sh_at(c, 0))) {
        sh_list words = {0};
        if (strchr("&|<>()", sh_at(c, 0)))
            return sh_syntax(s, sh_here(s, c), "an operator follows 'for'");
        SC_TRY(sh_word(s, c, false, &words));
        sh_skip_blanks(c);
    }
    return SC_OK;
}

/* Reads for, while, until and select; their bodies are skipped. */
static sc_status loop(sh *s, sh_src *c)
{
    uint32_t open = sh_here(s, c), before = s->hidden;
    bool live = s->live;
    s->live = false;
    if (sh_next_is(c, "for") || sh_next_is(c, "select")) {
        c->i += sh_at(c, 0) == 'f' ? 3 : 6;
        SC_TRY(loop_words(s, c, open));
    } else {
        c->i += 5;
    }
    SC_TRY(sh_commands(s, c));
    SC_TRY(expect(s, c, "do", open, "loop"));
    SC_TRY(sh_commands(s, c));
    SC_TRY(expect(s, c, "done", open, "do"));
    s->live = live;
    s->truth = SH_TRUE;
    return tell_hidden(s, before, open, "a loop");
}

static sh_truth matches(sh *s, const sh_text *subject, const sh_text *pattern)
{
    if (sh_has_hole(subject) || sh_has_hole(pattern)) return SH_UNKNOWN;
    const char *t = sh_string(s, subject), *p = sh_string(s, pattern);
    return t && p && sc_glob(p, t) ? SH_TRUE : SH_FALSE;
}

/* Reads the patterns of one arm, up to its ')'. */
static sc_status arm(sh *s, sh_src *c, const sh_text *subject, uint32_t open,
                     sh_truth *out)
{
    *out = SH_FALSE;
    if (sh_at(c, 0) == '(') c->i++;
    for (;;) {
        sh_skip_blanks(c);
        if (!sh_at(c, 0))
            return sh_syntax(s, open, "'case' without its 'esac'");
        if (sh_at(c, 0) == ')') break;
        if (sh_at(c, 0) == '|') {
            c->i++;
            continue;
        }
        if (strchr("\n;&<>(", sh_at(c, 0)))
            return sh_syntax(s, sh_here(s, c), "'case' has no pattern");
        sh_list p = {0};
        SC_TRY(sh_word(s, c, true, &p));
        sh_truth t = s->live ? matches(s, subject, &p.t[0]) : SH_FALSE;
        if (t != SH_FALSE && *out != SH_TRUE) *out = t;
    }
    c->i++;
    return SC_OK;
}

static sc_status case_command(sh *s, sh_src *c)
{
    uint32_t open = sh_here(s, c), before = s->hidden;
    bool live = s->live, done = false, unknown = false;
    sh_list subject = {0};
    c->i += 4;
    sh_skip_blanks(c);
    if (!sh_at(c, 0) || strchr("\n;&|<>()", sh_at(c, 0)))
        return sh_syntax(s, open, "'case' has no word");
    SC_TRY(sh_word(s, c, true, &subject));
    sh_skip_lines(s, c);
    if (!sh_next_is(c, "in"))
        return sh_syntax(s, sh_here(s, c), "'case' needs 'in'");
    c->i += 2;
    for (;;) {
        sh_skip_lines(s, c);
        if (sh_next_is(c, "esac")) {
            c->i += 4;
            break;
        }
        sh_truth t;
        SC_TRY(arm(s, c, &subject.t[0], open, &t));
        unknown = unknown || (!done && t == SH_UNKNOWN);
        s->live = live && !done && !unknown && t == SH_TRUE;
        done = done || s->live;
        SC_TRY(sh_commands(s, c));
        s->live = live;
        if (strcmp(s->stop, "esac") == 0) break;
        SC_TRY(expect(s, c, ";;", open, "case"));
    }
    s->truth = SH_TRUE;
    if (!unknown) return SC_OK;
    return tell_hidden(s, before, open,
                       "a case that is only known when the script runs");
}

static sc_status group(sh *s, sh_src *c, const char *open_word,
                       const char *close)
{
    uint32_t open = sh_here(s, c);
    c->i++;
    SC_TRY(sh_commands(s, c));
    return expect(s, c, close, open, open_word);
}

/* Keeps a function "name() {" or "function name {" for its calls. */
static sc_status function(sh *s, sh_src *c, bool *is)
{
    char name[128];
    sh_src f = *c;
    *is = false;
    bool word = sh_next_is(&f, "function");
    if (word) {
        f.i += 8;
        sh_skip_blanks(&f);
    }
    size_t n = sh_plain(&f, name, sizeof name);
    if (n == 0 || n >= sizeof name) return SC_OK;
    f.i += (uint32_t)n;
    sh_skip_blanks(&f);
    bool brackets = sh_at(&f, 0) == '(' && sh_at(&f, 1) == ')';
    if (!word && !brackets) return SC_OK;
    if (brackets) f.i += 2;
    sh_skip_lines(s, &f);
    if (sh_at(&f, 0) != '{') return SC_OK;
    *is = true;
    *c = f;
    bool live = s->live;
    uint32_t hidden = s->hidden, from = c->i + 1;
    s->live = false;
    SC_TRY(group(s, c, "{", "}"));
    s->live = live;
    s->hidden = hidden;
    if (!live) return SC_OK;
    sh_function *fn = SC_NEW(s->a, sh_function);
    if (!fn) return sc_error_nomem(s->err);
    *fn = (sh_function){
        sc_strdup(s->a, name), {c->g, c->i - 1, from}, s->functions};
    if (!fn->name) return sc_error_nomem(s->err);
    s->functions = fn;
    return SC_OK;
}

static sc_status command(sh *s, sh_src *c)
{
    static const char *const loops[] = {"for", "while", "until", "select"};
    bool is;
    if (sh_at(c, 0) == '(' && sh_at(c, 1) == '(') {
        uint32_t open = sh_here(s, c);
        c->i++;
        s->truth = SH_UNKNOWN;
        c->i++;
        SC_TRY(sh_match(s, c, '(', ')', open));
        if (sh_at(c, 0) == ')') c->i++;
        return SC_OK;
    }
    if (sh_at(c, 0) == '(') return group(s, c, "(", ")");
    if (sh_next_is(c, "{")) return group(s, c, "{", "}");
    if (sh_next_is(c, "if")) return if_command(s, c);
    if (sh_next_is(c, "case")) return case_command(s, c);
    for (size_t i = 0; i < SC_COUNT(loops); i++)
        if (sh_next_is(c, loops[i])) return loop(s, c);
    SC_TRY(function(s, c, &is));
    return is ? SC_OK : sh_simple(s, c);
}

static sc_status deeper(sh *s, sh_src *c)
{
    if (++s->depth > SH_MAX_NESTING)
        return sc_error(
            s->err, SC_EINPUT, SC_C_TOO_BIG, sh_pos(s, sh_here(s, c)), NULL,
            "commands nested more than %d deep", (int)SH_MAX_NESTING);
    bool inverted = false;
    while (sh_next_is(c, "!")) {
        inverted = !inverted;
        c->i++;
        sh_skip_blanks(c);
    }
    bool live = s->live;
    s->live = live && !s->stopped;
    SC_TRY(command(s, c));
    s->live = live;
    if (inverted && s->truth != SH_UNKNOWN)
        s->truth = s->truth == SH_TRUE ? SH_FALSE : SH_TRUE;
    s->depth--;
    return SC_OK;
}

/* a && b || c, a | b */
static sc_status and_or(sh *s, sh_src *c)
{
    bool live = s->live;
    uint32_t open = sh_here(s, c), before = s->hidden;
    SC_TRY(deeper(s, c));
    bool unknown = false;
    for (;;) {
        while (sh_redirected(c)) { /* of a compound command */
            SC_TRY(sh_redirection(s, c));
            sh_skip_blanks(c);
        }
        sh_skip_blanks(c);
        bool both = sh_at(c, 0) == '&' && sh_at(c, 1) == '&';
        bool either = sh_at(c, 0) == '|' && sh_at(c, 1) == '|';
        if (!both && !either && sh_at(c, 0) != '|') break;
        c->i += both || either ? 2 : 1;
        sh_skip_lines(s, c);
        sh_truth t = s->truth;
        if (both) s->live = live && t == SH_TRUE;
        if (either) s->live = live && t == SH_FALSE;
        unknown = unknown || (t == SH_UNKNOWN && (both || either));
        bool ran = s->live;
        SC_TRY(deeper(s, c));
        s->live = live;
        if (!ran) s->truth = t;
    }
    return unknown ? tell_hidden(
                         s, before, open,
                         "a condition that is only known when the script runs")
                   : SC_OK;
}

/* Reads commands up to a closing word, which is consumed and stored in s->stop
 * ("" at the end). */
sc_status sh_commands(sh *s, sh_src *c)
{
    static const char *const closers[] = {"then", "elif", "else", "fi", "do",
                                          "done", "esac", "}",    "]]", NULL};
    for (;;) {
        sh_skip_lines(s, c);
        char ch = sh_at(c, 0);
        s->stop = "";
        if (!ch) return SC_OK;
        if (ch == ';' && sh_at(c, 1) == ';') s->stop = ";;";
        if (ch == ')') s->stop = ")";
        for (const char *const *w = closers; *w && !*s->stop; w++)
            if (sh_next_is(c, *w)) s->stop = *w;
        if (*s->stop) {
            c->i += (uint32_t)strlen(s->stop);
            return SC_OK;
        }
        if (ch == '&' && sh_redirected(c)) {
            SC_TRY(sh_redirection(s, c));
        } else if (ch == ';' || ch == '&') {
            c->i++;
        } else if (ch == '|') {
            return sh_syntax(s, sh_here(s, c), "'|' before any command");
        } else {
            SC_TRY(and_or(s, c));
        }
    }
}

/* ---- whole files ------------------------------------------------------------------- */

static sc_status bare_list(sh *s, sh_src *c)
{
    for (;;) {
        sh_skip_lines(s, c);
        if (!sh_at(c, 0)) break;
        if (strchr(";&|<>()", sh_at(c, 0)))
            return sh_syntax(s, sh_here(s, c),
                             "an operator in a list of options");
        SC_TRY(sh_word(s, c, false, &s->args));
    }
    s->found = true;
    return SC_OK;
}

sc_status sh_read(sh *s, bool bare)
{
    sh_glyph *g = SC_NEW_N(s->a, sh_glyph, s->len);
    if (!g) return sc_error_nomem(s->err);
    for (uint32_t i = 0; i < s->len; i++) {
        g[i] = (sh_glyph){i, s->text[i], false};
        if (g[i].c == SH_HOLE || g[i].c == SH_HOLE_END) g[i].c = '?';
    }
    sh_src c = {g, (uint32_t)s->len, 0};
    s->live = true;
    if (bare) return bare_list(s, &c);
    SC_TRY(sh_batch(s, &c));
    SC_TRY(sh_commands(s, &c));
    if (!*s->stop) return SC_OK;
    return sc_error(s->err, SC_EINPUT, SC_C_SYNTAX,
                    sh_pos(s, c.i ? c.g[c.i - 1].at : 0), NULL,
                    "'%s' without its beginning", s->stop);
}
