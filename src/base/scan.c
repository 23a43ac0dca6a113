/* SPDX-License-Identifier: Apache-2.0 */
/* scan.c - tokens of JSON that need not be quite JSON. */
#include "base/scan.h"

#include "base/number.h"
#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_WINDOW ((size_t)1 << 20)
#define MAX_WINDOW   ((size_t)1 << 28)

/* ---- the window ---------------------------------------------------------- */

sc_status scan_open(scan *s, sc_stream *in, const char *file, sc_err *err)
{
    *s = (scan){.in = in,
                .file = file,
                .cap = FIRST_WINDOW,
                .line = 1,
                .col = 1,
                .err = err};
    s->buf = malloc(s->cap + 1);
    if (!s->buf) return sc_error_nomem(err);
    s->at = s->end = s->known = s->buf;
    s->buf[0] = '\0';
    return SC_OK;
}

void scan_open_text(scan *s, const char *text, size_t len, const char *file,
                    sc_err *err)
{
    *s = (scan){.file = file,
                .at = text,
                .end = text + len,
                .eof = true,
                .known = text,
                .line = 1,
                .col = 1,
                .err = err};
}

void scan_close(scan *s)
{
    free(s->buf);
    s->buf = NULL;
}

static void place(const scan *s, const char *at, uint64_t *line, uint64_t *col)
{
    *line = s->line;
    *col = s->col + (uint64_t)(at - s->known);
    for (const char *p = s->known; p < at; p++) {
        if (*p != '\n') continue;
        ++*line;
        *col = (uint64_t)(at - p);
    }
}

sc_pos scan_pos(const scan *s, const char *at)
{
    uint64_t line, col;
    place(s, at, &line, &col);
    return (sc_pos){s->file, line < UINT32_MAX ? (uint32_t)line : UINT32_MAX,
                    col < UINT32_MAX ? (uint32_t)col : 0};
}

sc_pos scan_here(scan *s)
{
    place(s, s->at, &s->line, &s->col);
    s->known = s->at;
    return scan_pos(s, s->at);
}

sc_status scan_more(scan *s)
{
    if (s->eof) return SC_NO;
    size_t left = (size_t)(s->end - s->at), n;
    if (left == s->cap) {
        if (s->cap >= MAX_WINDOW)
            return sc_error(s->err, SC_EINPUT, SC_C_TOO_BIG, scan_pos(s, s->at),
                            NULL, "one value is larger than %zu bytes",
                            MAX_WINDOW);
        size_t from = (size_t)(s->at - s->buf);
        size_t known = (size_t)(s->known - s->buf);
        char *grown = realloc(s->buf, 2 * s->cap + 1);
        if (!grown) return sc_error_nomem(s->err);
        s->known = grown + known;
        s->buf = grown;
        s->at = grown + from;
        s->cap *= 2;
    }
    place(s, s->at, &s->line, &s->col); /* of the new window */
    memmove(s->buf, s->at, left);
    s->at = s->known = s->buf;
    s->end = s->buf + left;
    s->buf[left] = '\0';
    SC_TRY(sc_stream_read(s->in, s->buf + left, s->cap - left, &n, s->err));
    s->end += n;
    s->buf[left + n] = '\0';
    s->eof = n == 0;
    return s->eof ? SC_NO : SC_OK;
}

/* ---- tokens -------------------------------------------------------------- */

static inline bool is_blank(char c)
{
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

scan_status scan_blanks(const char **p, const char *end)
{
    while (*p < end && is_blank(**p)) (*p)++;
    return *p < end ? SCAN_OK : SCAN_MORE;
}

/* A quote ends a string only if something follows that may follow a string.  So
 * quotes inside that are not escaped do not end it. */
static bool closes(const char *quote, const char *end, scan_status *s)
{
    const char *p = quote + 1;
    *s = scan_blanks(&p, end);
    if (*s != SCAN_OK) return false;
    return *p == ',' || *p == ':' || *p == '}' || *p == ']';
}

static scan_status string_end(const char *first, const char *end,
                              const char **out)
{
    for (const char *p = first;; p++) {
        scan_status s;
        size_t slashes = 0;
        p = memchr(p, '"', (size_t)(end - p));
        if (!p) return SCAN_MORE;
        while (p - slashes > first && p[-1 - (ptrdiff_t)slashes] == '\\')
            slashes++;
        if (slashes % 2) continue;
        *out = p;
        if (closes(p, end, &s)) return SCAN_OK;
        if (s == SCAN_MORE) return s;
    }
}

/* Objects and arrays inside are skipped by counting brackets. */
static scan_status nested_end(const char *p, const char *end, const char **out)
{
    uint32_t depth = 0;
    for (; p < end; p++) {
        if (*p == '"') {
            scan_status s = string_end(p + 1, end, &p);
            if (s != SCAN_OK) return s;
        } else if (*p == '{' || *p == '[') {
            depth++;
        } else if (*p == '}' || *p == ']') {
            *out = p + 1;
            if (--depth == 0) return SCAN_OK;
        }
    }
    return SCAN_MORE;
}

static inline bool ends_word(char c)
{
    return c == ',' || c == '}' || c == ']' || is_blank(c);
}

static scan_status word_end(const char *p, const char *end, const char **out)
{
    const char *first = p;
    for (; p < end && !ends_word(*p); p++)
        if (*p == '"' || *p == '{' || *p == '[' || *p == ':')
            return SCAN_BROKEN;
    *out = p;
    if (p == end) return SCAN_MORE;
    return p == first ? SCAN_BROKEN : SCAN_OK;
}

scan_status scan_value(const char **p, const char *end, scan_token *out)
{
    scan_status s = scan_blanks(p, end);
    const char *first = *p, *behind;
    if (s != SCAN_OK) return s;
    switch (*first) {
    case '"':
        first++;
        s = string_end(first, end, &behind);
        out->type = SCAN_STRING;
        break;
    case '{':
    case '[':
        s = nested_end(first, end, &behind);
        out->type = *first == '{' ? SCAN_OBJECT : SCAN_ARRAY;
        break;
    default: s = word_end(first, end, &behind); out->type = SCAN_NUMBER;
    }
    if (s != SCAN_OK) return s;
    out->at = first;
    out->len = (uint32_t)(behind - first);
    *p = behind + (out->type == SCAN_STRING);
    return SCAN_OK;
}

scan_status scan_key(const char **p, const char *end, scan_token *key,
                     bool *last)
{
    scan_status s = scan_blanks(p, end);
    if (s != SCAN_OK) return s;
    if (**p == ',') {
        (*p)++;
        if ((s = scan_blanks(p, end)) != SCAN_OK) return s;
    }
    *last = **p == '}';
    if (*last) {
        (*p)++;
        return SCAN_OK;
    }
    if (**p != '"') return SCAN_BROKEN;
    if ((s = scan_value(p, end, key)) != SCAN_OK) return s;
    if ((s = scan_blanks(p, end)) != SCAN_OK) return s;
    if (**p != ':') return SCAN_BROKEN;
    (*p)++;
    return SCAN_OK;
}

scan_status scan_member(const char **p, const char *end, scan_token *key,
                        scan_token *value, bool *last)
{
    scan_status s = scan_key(p, end, key, last);
    if (s != SCAN_OK || *last) return s;
    return scan_value(p, end, value);
}

bool scan_element(const char **p, const char *end, scan_token *out)
{
    if (scan_blanks(p, end) != SCAN_OK) return false;
    if (**p == ',') (*p)++;
    if (scan_blanks(p, end) != SCAN_OK || **p == ']') return false;
    return scan_value(p, end, out) == SCAN_OK;
}

/* ---- contents ------------------------------------------------------------ */

static inline bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

bool scan_uint(const scan_token *t, uint64_t *out)
{
    uint64_t v = 0;
    uint32_t i = 0;
    if (t->type != SCAN_NUMBER && t->type != SCAN_STRING) return false;
    for (; i < t->len && is_digit(t->at[i]); i++) {
        uint64_t digit = (uint64_t)(t->at[i] - '0');
        v = v > (UINT64_MAX - digit) / 10 ? UINT64_MAX : 10 * v + digit;
    }
    *out = v;
    return i > 0;
}

bool scan_int(const scan_token *t, int64_t *out)
{
    uint64_t v;
    scan_token rest = *t;
    if (t->len == 0) return false;
    bool minus = t->len && t->at[0] == '-';
    rest.at += minus;
    rest.len -= minus;
    if (!scan_uint(&rest, &v)) return false;
    int64_t most = v > INT64_MAX ? INT64_MAX : (int64_t)v;
    *out = minus ? -most : most;
    return true;
}

/* Times are whole or decimal; other forms of numbers are rare. */
static bool micros_of_double(const scan_token *t, int64_t *us, sc_time *ps)
{
    char text[64];
    if (t->len >= sizeof text) return false;
    memcpy(text, t->at, t->len);
    text[t->len] = '\0';
    size_t n = number_span(text);
    if (!n) return false;
    double v = number_scaled(text, n, 0);
    if (!(v > -9e15 && v < 9e15)) return false;
    *us = (int64_t)v;
    *ps = (sc_time)((v - (double)*us) * 1e6);
    return true;
}

bool scan_micros(const scan_token *t, int64_t *us, sc_time *ps)
{
    uint64_t whole = 0;
    uint32_t i = 0, k = 0;
    sc_time part = 0;
    if (t->type != SCAN_NUMBER && t->type != SCAN_STRING) return false;
    bool minus = t->len && t->at[0] == '-';
    i += minus;
    uint32_t first = i;
    for (; i < t->len && i < first + 18 && is_digit(t->at[i]); i++)
        whole = 10 * whole + (uint64_t)(t->at[i] - '0');
    if (i == first) return false;
    if (i < t->len && t->at[i] == '.')
        for (i++; i < t->len && is_digit(t->at[i]); i++, k++)
            if (k < 6) part = 10 * part + (t->at[i] - '0');
    if (i < t->len) return micros_of_double(t, us, ps);
    for (; k < 6; k++) part *= 10;
    *us = minus ? -(int64_t)whole : (int64_t)whole;
    *ps = minus ? -part : part;
    return true;
}

static size_t put_utf8(uint32_t c, char *out)
{
    if (c < 0x80) {
        out[0] = c < ' ' ? ' ' : (char)c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (char)(0xC0 | c >> 6);
        out[1] = (char)(0x80 | (c & 0x3F));
        return 2;
    }
    if (c >= 0xD800 && c < 0xE000) c = 0xFFFD; /* half of a pair */
    out[0] = (char)(0xE0 | c >> 12);
    out[1] = (char)(0x80 | (c >> 6 & 0x3F));
    out[2] = (char)(0x80 | (c & 0x3F));
    return 3;
}

static int hex(const char *p, uint32_t *out)
{
    *out = 0;
    for (int i = 0; i < 4; i++) {
        char c = p[i];
        int v = is_digit(c)            ? c - '0'
                : c >= 'a' && c <= 'f' ? c - 'a' + 10
                : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                       : -1;
        if (v < 0) return -1;
        *out = 16 * *out + (uint32_t)v;
    }
    return 0;
}

static size_t put_escape(const char **p, const char *end, char *out)
{
    char c = *(*p)++;
    uint32_t code;
    if (c == 'u' && end - *p >= 4 && hex(*p, &code) == 0) {
        *p += 4;
        return put_utf8(code, out);
    }
    *out = c == 'n' || c == 't' || c == 'r' || c == 'b' || c == 'f' ? ' ' : c;
    return 1;
}

size_t scan_unescape(const scan_token *t, char *out)
{
    char *to = out;
    for (const char *p = t->at, *end = p + t->len; p < end;) {
        if (*p == '\\' && end - p > 1) {
            p++;
            to += put_escape(&p, end, to);
            continue;
        }
        to += utf8_copy(&p, (size_t)(end - p), to);
    }
    *to = '\0';
    return (size_t)(to - out);
}
