/* SPDX-License-Identifier: Apache-2.0 */
/* megatron_test.c - evaluates arithmetic and conditions of a shell script. */
#include "import/megatron_shell.h"

#include <string.h>

/* ---- arithmetic on whole numbers: + - * / % ( ), comparisons, && || ?: ------- */

/* A double is exact up to here, so an overflow is detected before it
 * happens. */
static const double limit = 9007199254740992.0;

enum { MAX_NESTING = 40 };

typedef struct expr {
    sh *s;
    const sh_text *t;
    uint32_t i, at;
    uint32_t depth;
    bool known;
} expr;

static sc_status whole_expr(expr *e, int64_t *out);

static char peek(expr *e)
{
    while (e->i < e->t->n &&
           (sh_blank(e->t->g[e->i].c) || e->t->g[e->i].c == '\n'))
        e->i++;
    if (e->i >= e->t->n) return '\0';
    return e->t->g[e->i].c;
}

static uint32_t place(const expr *e)
{
    return e->i < e->t->n ? e->t->g[e->i].at : e->at;
}

static sc_status number(expr *e, int64_t *out)
{
    uint32_t at = place(e);
    double v = 0;
    *out = 0;
    while (e->i < e->t->n && sh_digit(e->t->g[e->i].c) && v < limit) {
        *out = *out * 10 + (e->t->g[e->i].c - '0');
        v = v * 10 + (e->t->g[e->i++].c - '0');
    }
    if (v < limit) return SC_OK;
    return sc_error(e->s->err, SC_EINPUT, SC_C_RANGE, sh_pos(e->s, at), NULL,
                    "a number beyond 2^53");
}

static sc_status variable(expr *e, int64_t *out)
{
    char name[128];
    size_t n = 0;
    while (e->i < e->t->n && n + 1 < sizeof name &&
           (sh_letter(e->t->g[e->i].c) || sh_digit(e->t->g[e->i].c)))
        name[n++] = e->t->g[e->i++].c;
    name[n] = '\0';
    const sh_var *v = sh_find(e->s, name);
    *out = 0;
    if (!v || v->v.n == 0 || sh_has_hole(&v->v.t[0])) {
        e->known = false;
        return SC_OK;
    }
    bool known;
    sh *s = e->s;
    if (++s->depth > MAX_NESTING)
        return sc_error(s->err, SC_EINPUT, SC_C_CYCLE, sh_pos(s, e->at), NULL,
                        "variable '%s' depends on itself", name);
    SC_TRY(sh_arith(s, &v->v.t[0], e->at, out, &known));
    s->depth--;
    e->known = e->known && known;
    return SC_OK;
}

static sc_status primary(expr *e, int64_t *out)
{
    char c = peek(e);
    uint32_t at = place(e);
    if (++e->depth > MAX_NESTING)
        return sc_error(e->s->err, SC_EINPUT, SC_C_TOO_BIG, sh_pos(e->s, at),
                        NULL, "nested more than %d deep", (int)MAX_NESTING);
    sc_status st = SC_OK;
    *out = 0;
    if (c == '(') {
        e->i++;
        st = whole_expr(e, out);
        if (st == SC_OK && peek(e) != ')')
            st = sc_error(e->s->err, SC_EINPUT, SC_C_SYNTAX, sh_pos(e->s, at),
                          NULL, "'(' without its ')'");
        e->i++;
    } else if (c == '-' || c == '+') {
        e->i++;
        st = primary(e, out);
        if (c == '-') *out = -*out;
    } else if (sh_digit(c)) {
        st = number(e, out);
    } else if (sh_letter(c)) {
        st = variable(e, out);
    } else {
        st = sc_error(e->s->err, SC_EINPUT, SC_C_SYNTAX, sh_pos(e->s, at),
                      "whole numbers, variables, + - * / % and brackets",
                      "a number is expected in arithmetic");
    }
    e->depth--;
    return st;
}

static sc_status apply(expr *e, char op, int64_t b, uint32_t at, int64_t *a)
{
    if ((op == '/' || op == '%') && b == 0) {
        if (!e->known) return SC_OK;
        return sc_error(e->s->err, SC_EINPUT, SC_C_RANGE, sh_pos(e->s, at),
                        NULL, "division by zero");
    }
    double x = (double)*a, y = (double)b;
    double r = op == '+' ? x + y : op == '-' ? x - y : op == '*' ? x * y : 0;
    if (r >= limit || r <= -limit)
        return sc_error(e->s->err, SC_EINPUT, SC_C_RANGE, sh_pos(e->s, at),
                        NULL, "a number beyond 2^53");
    switch (op) {
    case '+': *a += b; break;
    case '-': *a -= b; break;
    case '*': *a *= b; break;
    case '/': *a /= b; break;
    default: *a %= b; break;
    }
    return SC_OK;
}

static sc_status product(expr *e, int64_t *out)
{
    SC_TRY(primary(e, out));
    for (char c = peek(e); c == '*' || c == '/' || c == '%'; c = peek(e)) {
        uint32_t at = place(e);
        int64_t b = 0;
        e->i++;
        SC_TRY(primary(e, &b));
        SC_TRY(apply(e, c, b, at, out));
    }
    return SC_OK;
}

static sc_status sum(expr *e, int64_t *out)
{
    SC_TRY(product(e, out));
    for (char c = peek(e); c == '+' || c == '-'; c = peek(e)) {
        uint32_t at = place(e);
        int64_t b = 0;
        e->i++;
        SC_TRY(product(e, &b));
        SC_TRY(apply(e, c, b, at, out));
    }
    return SC_OK;
}

static bool next_is(expr *e, const char *op)
{
    size_t n = strlen(op);
    (void)peek(e);
    for (size_t i = 0; i < n; i++)
        if (e->i + i >= e->t->n || e->t->g[e->i + i].c != op[i]) return false;
    e->i += (uint32_t)n;
    return true;
}

/* Comparisons bind tighter than ==, that than &&, that than ||. */
static sc_status logic(expr *e, int level, int64_t *out)
{
    static const char *const ops[][5] = {
        {"||", NULL}, {"&&", NULL}, {"==", "!=", NULL}, {"<=", ">=", "<", ">"}};

    enum { LEVELS = 4 };

    if (level == LEVELS) return sum(e, out);
    SC_TRY(logic(e, level + 1, out));
    for (bool again = true; again;) {
        again = false;
        for (int i = 0; ops[level][i] && !again; i++) {
            const char *op = ops[level][i];
            if (!next_is(e, op)) continue;
            int64_t a = *out, b = 0;
            again = true;
            SC_TRY(logic(e, level + 1, &b));
            bool same = a == b, less = a < b;
            *out = level == 0     ? a || b
                   : level == 1   ? a && b
                   : level == 2   ? same == (op[0] == '=')
                   : op[0] == '<' ? less || (op[1] && same)
                                  : !less && (op[1] || !same);
        }
    }
    return SC_OK;
}

static sc_status whole_expr(expr *e, int64_t *out)
{
    uint32_t at = place(e);
    if (++e->depth > MAX_NESTING)
        return sc_error(e->s->err, SC_EINPUT, SC_C_TOO_BIG, sh_pos(e->s, at),
                        NULL, "nested more than %d deep", (int)MAX_NESTING);
    SC_TRY(logic(e, 0, out));
    if (next_is(e, "?")) {
        int64_t yes = 0, no = 0;
        SC_TRY(whole_expr(e, &yes));
        if (!next_is(e, ":"))
            return sc_error(e->s->err, SC_EINPUT, SC_C_SYNTAX,
                            sh_pos(e->s, place(e)), NULL,
                            "'?' without its ':' in arithmetic");
        SC_TRY(whole_expr(e, &no));
        *out = *out ? yes : no;
    }
    e->depth--;
    return SC_OK;
}

sc_status sh_arith(sh *s, const sh_text *t, uint32_t at, int64_t *out,
                   bool *known)
{
    expr e = {.s = s, .t = t, .at = at, .known = true};
    *out = 0;
    *known = false;
    if (sh_has_hole(t)) return SC_OK;
    SC_TRY(whole_expr(&e, out));
    if (peek(&e))
        return sc_error(s->err, SC_EINPUT, SC_C_SYNTAX, sh_pos(s, place(&e)),
                        "whole numbers, variables, + - * / % and brackets",
                        "'%c' in arithmetic", peek(&e));
    *known = e.known;
    return SC_OK;
}

/* ---- conditions --------------------------------------------------------------------- */

typedef struct cond {
    sh *s;
    const sh_list *w;
    uint32_t i, depth;
    bool patterns;
} cond;

static sh_truth any(cond *t);

/* The text of a word. A variable that the script never sets is empty, and so is
 * an argument that the launch does not pass. NULL: the text can't be known. */
static const char *word(cond *t, const sh_text *w)
{
    char *buf = SC_NEW_N(t->s->a, char, w->n + 1);
    size_t n = 0;
    if (!buf) return NULL;
    for (uint32_t i = 0; i < w->n; i++) {
        if (w->g[i].c != SH_HOLE) {
            buf[n++] = w->g[i].c;
            continue;
        }
        if (++i >= w->n || !(sh_letter(w->g[i].c) || sh_digit(w->g[i].c)))
            return NULL;
        while (i < w->n && w->g[i].c != SH_HOLE_END) i++;
    }
    buf[n] = '\0';
    return buf;
}

static bool is(const cond *t, const char *text)
{
    if (t->i >= t->w->n) return false;
    const sh_text *w = &t->w->t[t->i];
    size_t n = strlen(text);
    if (w->n != n) return false;
    for (size_t i = 0; i < n; i++)
        if (w->g[i].c != text[i] || w->g[i].quoted) return false;
    return true;
}

static bool whole(const char *s, int64_t *out)
{
    bool minus = *s == '-';
    *out = 0;
    s += minus;
    if (!*s) return false;
    for (; *s; s++) {
        if (!sh_digit(*s) || *out > INT32_MAX) return false;
        *out = 10 * *out + (*s - '0');
    }
    if (minus) *out = -*out;
    return true;
}

static sh_truth compare(const char *a, const char *op, const char *b,
                        bool patterns)
{
    static const char *const ops[] = {"-eq", "-ne", "-lt", "-le", "-gt", "-ge"};
    if (strcmp(op, "=") == 0 || strcmp(op, "==") == 0)
        return (patterns ? sc_glob(b, a) : strcmp(a, b) == 0) ? SH_TRUE
                                                              : SH_FALSE;
    if (strcmp(op, "!=") == 0)
        return (patterns ? sc_glob(b, a) : strcmp(a, b) == 0) ? SH_FALSE
                                                              : SH_TRUE;
    int64_t x, y;
    if (!whole(a, &x) || !whole(b, &y)) return SH_UNKNOWN;
    const bool result[] = {x == y, x != y, x<y, x <= y, x> y, x >= y};
    for (size_t i = 0; i < SC_COUNT(ops); i++)
        if (strcmp(op, ops[i]) == 0) return result[i] ? SH_TRUE : SH_FALSE;
    return SH_UNKNOWN;
}

static sh_truth not(sh_truth t)
{
    return t == SH_UNKNOWN ? t : t == SH_TRUE ? SH_FALSE : SH_TRUE;
}

static bool ends_here(const cond *t, uint32_t i)
{
    cond at = *t;
    at.i = i;
    return i >= t->w->n || is(&at, "&&") || is(&at, "||") || is(&at, "-a") ||
           is(&at, "-o") || is(&at, ")");
}

static sh_truth simple(cond *t)
{
    const sh_text *w = t->w->t;
    const char *a = word(t, &w[t->i]);
    if (ends_here(t, t->i + 1)) {
        t->i++;
        return !a ? SH_UNKNOWN : *a ? SH_TRUE : SH_FALSE;
    }
    if (ends_here(t, t->i + 2)) {
        bool zero = is(t, "-z"), set = is(t, "-n");
        const char *b = word(t, &w[t->i + 1]);
        t->i += 2;
        if (!b || (!zero && !set)) return SH_UNKNOWN;
        return (*b == '\0') == zero ? SH_TRUE : SH_FALSE;
    }
    const char *op = word(t, &w[t->i + 1]), *b = word(t, &w[t->i + 2]);
    t->i += 3;
    return a && op && b ? compare(a, op, b, t->patterns) : SH_UNKNOWN;
}

static sh_truth one(cond *t)
{
    if (t->i >= t->w->n) return SH_FALSE;
    if (is(t, "!")) {
        bool odd = false;
        for (; is(t, "!"); t->i++) odd = !odd;
        sh_truth v = one(t);
        return odd ? not(v) : v;
    }
    if (!is(t, "(")) return simple(t);
    if (++t->depth > MAX_NESTING) {
        t->i = t->w->n;
        return SH_UNKNOWN;
    }
    t->i++;
    sh_truth v = any(t);
    if (is(t, ")")) t->i++;
    t->depth--;
    return v;
}

static sh_truth all(cond *t)
{
    sh_truth v = one(t);
    while (is(t, "&&") || is(t, "-a")) {
        t->i++;
        sh_truth b = one(t);
        v = v == SH_FALSE || b == SH_FALSE ? SH_FALSE : v == SH_TRUE ? b : v;
    }
    return v;
}

static sh_truth any(cond *t)
{
    sh_truth v = all(t);
    while (is(t, "||") || is(t, "-o")) {
        t->i++;
        sh_truth b = all(t);
        v = v == SH_TRUE || b == SH_TRUE ? SH_TRUE : v == SH_FALSE ? b : v;
    }
    return v;
}

sh_truth sh_test(sh *s, const sh_list *words, bool patterns)
{
    cond t = {.s = s, .w = words, .patterns = patterns};
    sh_truth v = any(&t);
    return t.i == words->n ? v : SH_UNKNOWN;
}
