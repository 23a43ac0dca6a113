/* SPDX-License-Identifier: Apache-2.0 */
/* toml_value.c - reads values of TOML. */
#include "import/toml_value.h"

#include <string.h>

/* ---- strings -------------------------------------------------------------------- */

static int hex(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static size_t put_utf8(char *out, uint32_t c)
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = n - 1; i > 0; i--, c >>= 6)
        out[i] = (char)(0x80 | (c & 0x3f));
    out[0] = (char)(lead[n] | c);
    return n;
}

/* Reads what follows a backslash; writes no more bytes than it reads. */
static bool escape(toml *t, bool lines, char *out, size_t *n)
{
    static const char from[] = "btnfre\"\\", to[] = "\b\t\n\f\r\033\"\\";
    char c = (char)(t->at < t->len ? t->text[t->at] : '\0');
    const char *known = c ? strchr(from, c) : NULL;
    if (known) {
        out[(*n)++] = to[known - from];
        t->at++;
        return true;
    }
    if (c == 'u' || c == 'U') {
        uint32_t code = 0;
        int digits = c == 'u' ? 4 : 8;
        t->at++;
        for (int i = 0; i < digits; i++, t->at++) {
            int d = t->at < t->len ? hex(t->text[t->at]) : -1;
            if (d < 0 || code > 0x10ffff)
                return toml_error(t, SC_C_SYNTAX, t->at, NULL,
                                  "hexadecimal digits are expected");
            code = 16 * code + (uint32_t)d;
        }
        if (code == 0 || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
            return toml_error(t, SC_C_SYNTAX, t->at - 1, NULL,
                              "there is no character with this number");
        *n += put_utf8(out + *n, code);
        return true;
    }
    if (lines) { /* a backslash at the end of a line joins lines */
        size_t back = t->at;
        toml_blanks(t);
        if (toml_newline(t)) {
            do toml_blanks(t);
            while (toml_newline(t));
            return true;
        }
        t->at = back;
    }
    return toml_error(t, SC_C_SYNTAX, t->at, "write \\\\ for a backslash",
                      "an unknown escape");
}

/* Whether the closing quotes start here; in a longer run of quotes they are the
 * last ones. */
static bool closes(const toml *t, char quote, bool three)
{
    if (t->text[t->at] != quote) return false;
    if (!three) return true;
    return t->at + 2 < t->len && t->text[t->at + 1] == quote &&
           t->text[t->at + 2] == quote &&
           (t->at + 3 >= t->len || t->text[t->at + 3] != quote);
}

/* An upper limit for the bytes of a string. It ends where toml_string() ends,
 * and an escape never becomes longer. */
static size_t most(const toml *t, char quote, bool three)
{
    toml u = *t;
    u.at += three ? 3 : 1;
    for (; u.at < u.len; u.at++) {
        if (closes(&u, quote, three)) break;
        if (u.text[u.at] == '\\' && quote == '"') u.at++;
        if (u.at < u.len && u.text[u.at] == '\n' && !three) break;
    }
    return u.at - t->at;
}

const char *toml_string(toml *t, bool lines)
{
    size_t from = t->at, n = 0;
    char quote = t->text[t->at];
    bool three = lines && t->at + 2 < t->len && t->text[t->at + 1] == quote &&
                 t->text[t->at + 2] == quote;
    char *out = sc_alloc(t->a, most(t, quote, three) + 1, 1);
    if (!out) {
        (void)toml_nomem(t);
        return NULL;
    }
    t->at += three ? 3 : 1;
    if (three) (void)toml_newline(t);
    while (t->at < t->len) {
        char c = t->text[t->at];
        if (closes(t, quote, three)) {
            t->at += three ? 3 : 1;
            return out;
        }
        if (c == '\n' && !three) break;
        if (c == '\\' && quote == '"') {
            t->at++;
            if (!escape(t, three, out, &n)) return NULL;
            continue;
        }
        out[n++] = c;
        if (c != '\n' || !toml_newline(t)) t->at++;
    }
    (void)toml_error(t, SC_C_SYNTAX, from, NULL, "a string that does not end");
    return NULL;
}

/* ---- numbers, dates -------------------------------------------------------------- */

static bool is_token(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9') || (c && strchr("+-_.:", c));
}

/* Hexadecimal, octal and binary numbers as decimal text. */
static bool based(toml *t, const char *s, size_t n, size_t at, char *out)
{
    unsigned base = s[1] == 'x' ? 16 : s[1] == 'o' ? 8 : 2;
    uint64_t v = 0;
    char digits[24];
    size_t k = 0;
    for (size_t i = 2; i < n; i++) {
        int d = hex(s[i]);
        if (d < 0 || (unsigned)d >= base || v >> 58)
            return toml_error(t, SC_C_SYNTAX, at, NULL, "this is not a number");
        v = base * v + (unsigned)d;
    }
    do digits[k++] = (char)('0' + v % 10);
    while ((v /= 10) != 0);
    while (k > 0) *out++ = digits[--k];
    *out = '\0';
    return true;
}

static bool is_number(const char *s)
{
    size_t digits = 0;
    s += *s == '+' || *s == '-';
    if (strcmp(s, "inf") == 0 || strcmp(s, "nan") == 0) return true;
    for (; *s; s++) {
        if (*s >= '0' && *s <= '9')
            digits++;
        else if (digits == 0 || !strchr(".eE+-", *s))
            return false;
    }
    return digits > 0;
}

static bool is_date(const char *s)
{
    size_t n = strlen(s);
    bool day = n >= 10 && s[4] == '-' && s[7] == '-';
    bool time = n >= 5 && s[2] == ':';
    return (day || time) && strspn(s, "0123456789-+:.TtZz") == n;
}

static bool token(toml *t, toml_node *out)
{
    size_t from = t->at, n = 0;
    while (t->at < t->len && is_token(t->text[t->at])) t->at++;
    size_t all = t->at - from;
    if (all == 0)
        return toml_error(t, SC_C_SYNTAX, from, "strings need quotes",
                          "a value is expected");
    char *s = sc_alloc(t->a, all + 24, 1);
    if (!s) return toml_nomem(t);
    for (size_t i = 0; i < all; i++)
        if (t->text[from + i] != '_') s[n++] = t->text[from + i];
    out->node.text = s + (s[0] == '+');
    if (strcmp(s, "true") == 0 || strcmp(s, "false") == 0) return true;
    if (n > 2 && s[0] == '0' && strchr("xob", s[1]))
        return based(t, s, n, from, s);
    if (is_number(s) || is_date(s)) return true;
    return toml_error(t, SC_C_SYNTAX, from, "strings need quotes",
                      "this is not a number, a date, true or false");
}

/* ---- arrays, inline tables ----------------------------------------------------------- */

static void between(toml *t)
{
    do {
        toml_blanks(t);
        toml_comment(t);
    } while (toml_newline(t));
}

static bool array(toml *t, toml_node *out)
{
    size_t from = t->at++;
    out->node.kind = SC_N_SEQ;
    for (;;) {
        between(t);
        if (t->at >= t->len) break;
        if (t->text[t->at] == ']') {
            t->at++;
            return true;
        }
        toml_node *n = toml_add(t, &out->node, NULL, t->at, SC_N_SCALAR);
        if (!n || !toml_value(t, n)) return false;
        between(t);
        if (t->at < t->len && t->text[t->at] == ',')
            t->at++;
        else if (t->at < t->len && t->text[t->at] != ']')
            return toml_error(t, SC_C_SYNTAX, t->at, NULL,
                              ", or ] is expected");
    }
    return toml_error(t, SC_C_SYNTAX, from, NULL,
                      "an array that does not end with ]");
}

static bool inline_table(toml *t, toml_node *out)
{
    size_t from = t->at++;
    out->node.kind = SC_N_MAP;
    toml_blanks(t);
    if (t->at < t->len && t->text[t->at] == '}') {
        t->at++;
        out->inline_table = true;
        return true;
    }
    while (t->at < t->len) {
        if (!toml_pair(t, &out->node)) return false;
        toml_blanks(t);
        char c = (char)(t->at < t->len ? t->text[t->at] : '\0');
        t->at++;
        if (c == '}') {
            out->inline_table = true;
            return true;
        }
        if (c != ',')
            return toml_error(t, SC_C_SYNTAX, t->at - 1, NULL,
                              ", or } is expected");
    }
    return toml_error(t, SC_C_SYNTAX, from, NULL,
                      "an inline table that does not end with }");
}

bool toml_value(toml *t, toml_node *out)
{
    char c = (char)(t->at < t->len ? t->text[t->at] : '\0');
    out->node.pos = toml_pos(t, t->at);
    if (t->depth >= SC_DOC_MAX_DEPTH && (c == '[' || c == '{'))
        return toml_error(t, SC_C_TOO_BIG, t->at, NULL, "nested too deeply");
    if (c == '"' || c == '\'') {
        out->node.quoted = true;
        out->node.text = toml_string(t, true);
        return out->node.text != NULL;
    }
    if (c != '[' && c != '{') return token(t, out);
    t->depth++;
    bool good = c == '[' ? array(t, out) : inline_table(t, out);
    t->depth--;
    return good;
}
