/* SPDX-License-Identifier: Apache-2.0 */
/* where.c - reads and evaluates conditions: "tp * cp <= 8 and pp > 1". */
#include "search/where.h"

#include "base/number.h"

#include <math.h>
#include <string.h>

/* Most nodes, and levels of parentheses. */
enum { NODES = 4096, DEPTH = 64 };

typedef struct reader {
    sc_search_where *w;
    uint32_t at, depth;
    sc_arena *a;
    sc_err *err;
} reader;

sc_pos where_place(const sc_search_where *w, uint32_t at)
{
    sc_pos p = w->pos;
    if (p.line > 0) {
        p.col += at + w->quoted;
        return p;
    }
    p.line = 1;
    p.col = at + 1;
    return p;
}

/* ---- words --------------------------------------------------------------- */

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static const char *rest(reader *r)
{
    const char *s = r->w->text;
    while (s[r->at] == ' ' || s[r->at] == '\t') r->at++;
    return s + r->at;
}

/* A name such as micro-batch, zb-h1 or 1f1b, or a number: a minus belongs to
 * it only between letters. */
static size_t word_span(const char *s)
{
    size_t n = 0;
    bool name = is_letter(s[0]);
    while (is_letter(s[n]) || is_digit(s[n]) || (!name && s[n] == '.') ||
           (name && n > 0 && s[n] == '-' &&
            (is_letter(s[n + 1]) || is_digit(s[n + 1]))))
        n++;
    return n;
}

static sc_status wrong(reader *r, const char *what)
{
    return sc_error(r->err, SC_EINPUT, SC_C_TYPE, where_place(r->w, r->at),
                    "for example tp * cp <= 8 and zero != 3", "%s", what);
}

/* Whether a word such as "and" is next; then skips it. */
static bool takes_word(reader *r, const char *word)
{
    const char *s = rest(r);
    size_t n = strlen(word);
    if (word_span(s) != n || strncmp(s, word, n) != 0) return false;
    r->at += (uint32_t)n;
    return true;
}

typedef struct sign {
    const char *text;
    where_op op;
} sign;

/* Longer ones first. */
static const sign compares[] = {{"==", WHERE_EQUAL},   {"!=", WHERE_UNEQUAL},
                                {"<=", WHERE_AT_MOST}, {">=", WHERE_AT_LEAST},
                                {"=", WHERE_EQUAL},    {"<", WHERE_LESS},
                                {">", WHERE_MORE},     {NULL, WHERE_NUMBER}};
static const sign sums[] = {
    {"+", WHERE_PLUS}, {"-", WHERE_LESS_BY}, {NULL, WHERE_NUMBER}};
static const sign products[] = {{"*", WHERE_TIMES},
                                {"/", WHERE_OVER},
                                {"%", WHERE_REST},
                                {NULL, WHERE_NUMBER}};

static bool takes_sign(reader *r, const sign *of, where_op *op, uint32_t *at)
{
    const char *s = rest(r);
    for (; of->text; of++) {
        size_t n = strlen(of->text);
        if (strncmp(s, of->text, n) != 0) continue;
        *op = of->op;
        *at = r->at;
        r->at += (uint32_t)n;
        return true;
    }
    return false;
}

/* ---- the tree ------------------------------------------------------------ */

static sc_status add(reader *r, const where_node *n, uint32_t *out)
{
    sc_search_where *w = r->w;
    if (w->n == NODES) return wrong(r, "the condition is too long");
    where_node *all = sc_grow(r->a, w->node, w->n, &w->cap, 32, sizeof *all);
    if (!all) return sc_error_nomem(r->err);
    w->node = all;
    *out = w->n;
    all[w->n++] = *n;
    return SC_OK;
}

static sc_status join(reader *r, where_op op, uint32_t at, uint32_t right,
                      uint32_t *inout)
{
    return add(
        r, &(where_node){.op = op, .left = *inout, .right = right, .at = at},
        inout);
}

static sc_status read_or(reader *r, uint32_t *out);

static const sc_key *option_of(const char *word)
{
    for (const sc_key *k = sc_job_keys; k->name; k++)
        if (strcmp(k->name, word) == 0) return k;
    return NULL;
}

static sc_status read_word(reader *r, uint32_t *out)
{
    static const char *const constants[] = {
        "devices", "nodes", "node", "layers", "heads", "experts", NULL};
    const char *s = rest(r);
    size_t n = word_span(s);
    where_node x = {.op = WHERE_WORD, .at = r->at};
    if (n == 0)
        return wrong(r, *s ? "expected a number or the name of an option"
                           : "the condition ends too early");
    if (is_digit(s[0]) && number_span(s) == n) {
        x.op = WHERE_NUMBER;
        x.number = number_scaled(s, n, 0);
        r->at += (uint32_t)n;
        return add(r, &x, out);
    }
    x.word = sc_strndup(r->a, s, n);
    if (!x.word) return sc_error_nomem(r->err);
    x.key = option_of(x.word);
    if (x.key) x.op = WHERE_NAME;
    for (const char *const *c = constants; *c; c++)
        if (strcmp(*c, x.word) == 0) x.op = WHERE_NAME;
    r->at += (uint32_t)n;
    return add(r, &x, out);
}

static sc_status read_factor(reader *r, uint32_t *out)
{
    const char *s = rest(r);
    uint32_t at = r->at;
    if (*s != '(' && *s != '-') return read_word(r, out);
    if (++r->depth > DEPTH) return wrong(r, "too many parentheses");
    r->at++;
    if (*s == '-') {
        SC_TRY(read_factor(r, out));
        SC_TRY(join(r, WHERE_MINUS, at, 0, out));
    } else {
        SC_TRY(read_or(r, out));
        if (*rest(r) != ')') return wrong(r, "expected )");
        r->at++;
    }
    r->depth--;
    return SC_OK;
}

static sc_status read_product(reader *r, uint32_t *out)
{
    where_op op;
    uint32_t at, right;
    SC_TRY(read_factor(r, out));
    while (takes_sign(r, products, &op, &at)) {
        SC_TRY(read_factor(r, &right));
        SC_TRY(join(r, op, at, right, out));
    }
    return SC_OK;
}

static sc_status read_sum(reader *r, uint32_t *out)
{
    where_op op;
    uint32_t at, right;
    SC_TRY(read_product(r, out));
    while (takes_sign(r, sums, &op, &at)) {
        SC_TRY(read_product(r, &right));
        SC_TRY(join(r, op, at, right, out));
    }
    return SC_OK;
}

static sc_status read_compare(reader *r, uint32_t *out)
{
    where_op op;
    uint32_t at, right;
    SC_TRY(read_sum(r, out));
    if (!takes_sign(r, compares, &op, &at)) return SC_OK;
    SC_TRY(read_sum(r, &right));
    return join(r, op, at, right, out);
}

static sc_status read_not(reader *r, uint32_t *out)
{
    uint32_t at = r->at;
    if (!takes_word(r, "not")) return read_compare(r, out);
    if (++r->depth > DEPTH) return wrong(r, "too many negations");
    SC_TRY(read_not(r, out));
    r->depth--;
    return join(r, WHERE_NOT, at, 0, out);
}

static sc_status read_and(reader *r, uint32_t *out)
{
    uint32_t right;
    SC_TRY(read_not(r, out));
    while (takes_word(r, "and")) {
        uint32_t at = r->at;
        SC_TRY(read_not(r, &right));
        SC_TRY(join(r, WHERE_AND, at, right, out));
    }
    return SC_OK;
}

static sc_status read_or(reader *r, uint32_t *out)
{
    uint32_t right;
    SC_TRY(read_and(r, out));
    while (takes_word(r, "or")) {
        uint32_t at = r->at;
        SC_TRY(read_and(r, &right));
        SC_TRY(join(r, WHERE_OR, at, right, out));
    }
    return SC_OK;
}

/* Words are values of the option that they are compared with. */
static sc_status check_words(reader *r)
{
    const sc_search_where *w = r->w;
    for (uint32_t i = 0; i < w->n; i++) {
        const where_node *x = &w->node[i];
        bool used = false;
        if (x->op != WHERE_WORD) continue;
        for (uint32_t k = i + 1; k < w->n && !used; k++) {
            const where_node *c = &w->node[k];
            bool equal = c->op == WHERE_EQUAL || c->op == WHERE_UNEQUAL;
            if (!equal || (c->left != i && c->right != i)) continue;
            const where_node *o = &w->node[c->left == i ? c->right : c->left];
            used = o->op == WHERE_NAME && o->key;
        }
        if (used) continue;
        return sc_error(r->err, SC_EINPUT, SC_C_UNKNOWN_NAME,
                        where_place(w, x->at),
                        "put spaces around minus; compare values with == or "
                        "!=: schedule == zb-h1",
                        "\"%.40s\" is no option of a job", x->word);
    }
    return SC_OK;
}

sc_status sc_search_where_read(const char *text, sc_pos pos, bool quoted,
                               sc_arena *a, const sc_search_where **out,
                               sc_err *err)
{
    sc_search_where *w = SC_NEW(a, sc_search_where);
    if (!w) return sc_error_nomem(err);
    *w = (sc_search_where){.text = text, .pos = pos, .quoted = quoted};
    reader r = {.w = w, .a = a, .err = err};
    uint32_t root;
    SC_TRY(read_or(&r, &root));
    if (*rest(&r)) return wrong(&r, "expected and, or, or the end");
    SC_TRY(check_words(&r));
    *out = w;
    return SC_OK;
}

/* ---- evaluation ---------------------------------------------------------- */

static double side(where_op op, double x, double y)
{
    switch (op) {
    case WHERE_EQUAL: return x == y;
    case WHERE_UNEQUAL: return x != y;
    case WHERE_LESS: return x < y;
    case WHERE_AT_MOST: return x <= y;
    case WHERE_MORE: return x > y;
    case WHERE_AT_LEAST: return x >= y;
    case WHERE_PLUS: return x + y;
    case WHERE_LESS_BY: return x - y;
    case WHERE_TIMES: return x * y;
    case WHERE_OVER: return x / y;
    case WHERE_REST: return fmod(x, y);
    case WHERE_OR: return x != 0 || y != 0;
    case WHERE_AND: return x != 0 && y != 0;
    default: return 0;
    }
}

bool sc_search_where_holds(const sc_search_where *w, const uint32_t *digit)
{
    double v[NODES]; /* nodes follow their sides */
    for (uint32_t i = 0; i < w->n; i++) {
        const where_node *x = &w->node[i];
        if (x->op == WHERE_AXIS)
            v[i] = x->value[digit[x->axis]];
        else if (x->op == WHERE_NOT)
            v[i] = v[x->left] == 0;
        else if (x->op == WHERE_MINUS)
            v[i] = -v[x->left];
        else if (x->op < WHERE_NOT)
            v[i] = x->number;
        else
            v[i] = side(x->op, v[x->left], v[x->right]);
    }
    return v[w->n - 1] != 0 && !isnan(v[w->n - 1]);
}
