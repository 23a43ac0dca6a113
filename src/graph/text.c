/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/text.h"

#include <stdio.h>
#include <string.h>

/* Blanks and what has a meaning of its own end a bare word. */
static bool bare_char(char c)
{
    unsigned char u = (unsigned char)c;
    return u > ' ' && u != 0x7f && !strchr(",=#\"\\", c);
}

sc_pos text_pos(const text_line *l, const text_token *t)
{
    return (sc_pos){l->file, l->line, t->col};
}

bool text_is(const text_token *t, const char *word)
{
    return t->len == strlen(word) && memcmp(t->s, word, t->len) == 0;
}

static int hex(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return -1;
}

static text_token bad(const text_line *l, text_token t, const char *what)
{
    sc_error(l->err, SC_EINPUT, SC_C_SYNTAX, text_pos(l, &t), NULL, "%s", what);
    t.kind = TEXT_BAD;
    return t;
}

/* After the opening quote.  \" \\ and \xHH are understood. */
static text_token quoted(text_line *l, text_token t)
{
    const char *from = l->p, *p = from;
    bool escapes = false;
    while (p < l->end && *p != '"') {
        if ((unsigned char)*p < ' ')
            return bad(l, t, "control character in a quoted name");
        if (*p == '\\') escapes = true, p++;
        if (p < l->end) p++;
    }
    if (p >= l->end) return bad(l, t, "a quoted name is not closed");
    l->p = p + 1;
    t.kind = TEXT_WORD;
    t.s = from;
    t.len = (uint32_t)(p - from);
    if (!escapes) return t;

    char *out = sc_alloc(l->arena, t.len + 1u, 1);
    if (!out) {
        sc_error_nomem(l->err);
        t.kind = TEXT_BAD;
        return t;
    }
    t.s = out;
    for (const char *q = from; q < p; q++) {
        if (*q != '\\') {
            *out++ = *q;
        } else if (q[1] == '"' || q[1] == '\\') {
            *out++ = *++q;
        } else if (q[1] == 'x' && p - q > 3 && hex(q[2]) >= 0 &&
                   hex(q[3]) >= 0 && hex(q[2]) + hex(q[3]) > 0) {
            *out++ = (char)(hex(q[2]) * 16 + hex(q[3]));
            q += 3;
        } else {
            return bad(l, t, "a quoted name knows only \\\", \\\\ and \\xHH");
        }
    }
    t.len = (uint32_t)(out - t.s);
    return t;
}

text_token text_next(text_line *l)
{
    while (l->p < l->end && (*l->p == ' ' || *l->p == '\t' || *l->p == '\r'))
        l->p++;
    text_token t = {TEXT_END, l->p, 0, (uint32_t)(l->p - l->start) + 1};
    if (l->p == l->end || *l->p == '#') return t;
    if (*l->p == ',' || *l->p == '=') {
        t.kind = *l->p++ == ',' ? TEXT_COMMA : TEXT_EQUALS;
        return t;
    }
    if (*l->p == '"') {
        l->p++;
        return quoted(l, t);
    }
    while (l->p < l->end && bare_char(*l->p)) l->p++;
    t.len = (uint32_t)(l->p - t.s);
    if (t.len == 0) return bad(l, t, "a character that needs a quoted name");
    t.kind = TEXT_WORD;
    return t;
}

/* ---- quantities ---------------------------------------------------------- */

typedef struct scale {
    const char *unit;
    uint64_t factor;
} scale;

static const scale time_scales[] = {{"ps", 1},
                                    {"ns", 1000},
                                    {"us", 1000000},
                                    {"ms", 1000000000},
                                    {"s", 1000000000000},
                                    {"min", 60000000000000},
                                    {"h", 3600000000000000},
                                    {"d", 86400000000000000},
                                    {NULL, 0}};

static const scale byte_scales[] = {{"B", 1},
                                    {"kB", 1000},
                                    {"KiB", 1ull << 10},
                                    {"MB", 1000000},
                                    {"MiB", 1ull << 20},
                                    {"GB", 1000000000},
                                    {"GiB", 1ull << 30},
                                    {"TB", 1000000000000},
                                    {"TiB", 1ull << 40},
                                    {NULL, 0}};

static bool range(const text_line *l, const text_token *t)
{
    sc_error(l->err, SC_EINPUT, SC_C_RANGE, text_pos(l, t), NULL,
             "%.*s is out of range", t->len < 80 ? (int)t->len : 80, t->s);
    return false;
}

/* Digits from *p; false beyond 2^64 - 1. */
static bool digits(const char **p, const char *end, uint64_t *out)
{
    for (*out = 0; *p < end && **p >= '0' && **p <= '9'; (*p)++) {
        uint64_t d = (uint64_t)(**p - '0');
        if (*out > (UINT64_MAX - d) / 10) return false;
        *out = *out * 10 + d;
    }
    return true;
}

/* 0.FRACTION * factor, rounded up; factor is below 2^60. */
static uint64_t fraction(const char *p, const char *end, uint64_t factor)
{
    uint64_t sum = 0;
    bool rest = false;
    const char *q = end;
    while (q > p) { /* Horner from the last digit: (d + tail) / 10 */
        uint64_t x = (uint64_t)(*--q - '0') * factor + sum;
        rest = rest || x % 10;
        sum = x / 10;
    }
    return sum + rest;
}

static bool scaled(const text_line *l, const text_token *t, const scale *scales,
                   const char *hint, uint64_t max, uint64_t *out)
{
    const char *p = t->s, *end = p + t->len;
    uint64_t whole;
    if (!digits(&p, end, &whole)) return range(l, t);
    bool number = p > t->s;
    const char *frac = p, *frac_end = p;
    if (p < end && *p == '.') {
        frac = ++p;
        while (p < end && *p >= '0' && *p <= '9') p++;
        frac_end = p;
        number = number || frac_end > frac;
    }
    const scale *s = scales;
    size_t left = (size_t)(end - p);
    while (s->unit &&
           (strlen(s->unit) != left || memcmp(s->unit, p, left) != 0))
        s++;
    if (!number || (!s->unit && !(left == 0 && whole == 0 && p == frac))) {
        sc_error(l->err, SC_EINPUT, SC_C_UNIT, text_pos(l, t), hint,
                 "\"%.*s\" is not a number with its unit",
                 t->len < 80 ? (int)t->len : 80, t->s);
        return false;
    }
    uint64_t factor = s->unit ? s->factor : 1;
    uint64_t part = fraction(frac, frac_end, factor);
    if (whole > (max - part) / factor) return range(l, t);
    *out = whole * factor + part;
    return true;
}

bool text_time(const text_line *l, const text_token *t, sc_time *out)
{
    uint64_t v;
    if (!scaled(l, t, time_scales, "write 10us", SC_TIME_MAX, &v)) return false;
    *out = (sc_time)v;
    return true;
}

bool text_bytes(const text_line *l, const text_token *t, uint64_t *out)
{
    return scaled(l, t, byte_scales, "write 4MiB", UINT64_MAX, out);
}

bool text_count(const text_line *l, const text_token *t, uint64_t max,
                uint64_t *out)
{
    const char *p = t->s, *end = p + t->len;
    if (!digits(&p, end, out) || *out > max) return range(l, t);
    if (p == end && t->len) return true;
    sc_error(l->err, SC_EINPUT, SC_C_TYPE, text_pos(l, t), NULL,
             "\"%.*s\" is not a whole number", t->len < 80 ? (int)t->len : 80,
             t->s);
    return false;
}

static bool number(const text_line *l, const text_token *t, bool flop,
                   double *out)
{
    char buf[64];
    if (t->len == 0 || t->len >= sizeof buf || t->s[t->len - 1] == '%')
        return range(l, t);
    memcpy(buf, t->s, t->len);
    buf[t->len] = '\0';
    double v;
    sc_unit unit = flop && buf[t->len - 1] == 'P' ? SC_U_FLOP : SC_U_NONE;
    if (sc_unit_parse(buf, unit, text_pos(l, t), &v, l->err)) return false;
    if (!(v >= 0)) return range(l, t);
    *out = v;
    return true;
}

bool text_flops(const text_line *l, const text_token *t, double *out)
{
    return number(l, t, true, out);
}

bool text_number(const text_line *l, const text_token *t, double *out)
{
    return number(l, t, false, out);
}

bool text_enum(const text_line *l, const text_token *t, const char *what,
               const char *const *names, uint32_t *out)
{
    for (uint32_t i = 0; names[i]; i++) {
        if (!text_is(t, names[i])) continue;
        *out = i;
        return true;
    }
    char word[64], hint[96] = "";
    size_t n = t->len < sizeof word ? t->len : sizeof word - 1;
    memcpy(word, t->s, n);
    word[n] = '\0';
    const char *near = sc_nearest(word, names);
    if (near) snprintf(hint, sizeof hint, "did you mean %s", near);
    sc_error(l->err, SC_EINPUT, SC_C_UNKNOWN_NAME, text_pos(l, t),
             near ? hint : NULL, "\"%s\" is no %s", word, what);
    return false;
}

/* ---- writing ------------------------------------------------------------- */

/* The unit with which the number is shortest and whole. */
static void put_scaled(sc_text *t, uint64_t v, const scale *s, uint64_t max)
{
    const scale *best = s;
    for (; s->unit; s++)
        if (v % s->factor == 0 && s->factor <= max) best = s;
    if (v == 0) {
        sc_text_add(t, "0");
        return;
    }
    sc_text_add(t, "%llu%s", (unsigned long long)(v / best->factor),
                best->unit);
}

void text_put_time(sc_text *t, sc_time ps)
{
    put_scaled(t, (uint64_t)ps, time_scales, 1000000000000);
}

void text_put_bytes(sc_text *t, uint64_t bytes)
{
    put_scaled(t, bytes, byte_scales, UINT64_MAX);
}

void text_put_number(sc_text *t, double v, sc_unit unit)
{
    char buf[40];
    sc_unit_print(v, unit, buf, sizeof buf);
    sc_text_add(t, "%s", buf);
}

bool text_is_bare(const char *s)
{
    if (!*s) return false;
    while (bare_char(*s)) s++;
    return !*s;
}

void text_put_word(sc_text *t, const char *s)
{
    if (text_is_bare(s)) {
        sc_text_add(t, "%s", s);
        return;
    }
    sc_text_add(t, "\"");
    for (; *s; s++) {
        unsigned char u = (unsigned char)*s;
        if (u == '"' || u == '\\')
            sc_text_add(t, "\\%c", u);
        else if (u < ' ' || u == 0x7f)
            sc_text_add(t, "\\x%02x", u);
        else
            sc_text_add(t, "%c", u);
    }
    sc_text_add(t, "\"");
}
