/* SPDX-License-Identifier: Apache-2.0 */
/* jsonwrite.c - streaming JSON writer. */
#include "base/json.h"
#include "base/units.h"
#include "base/utf8.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void sc_json_init(sc_json *j, bool pretty)
{
    memset(j, 0, sizeof *j);
    j->buf = "";
    j->pretty = pretty;
}

void sc_json_free(sc_json *j)
{
    if (j->cap > 0) free(j->buf);
    sc_json_init(j, j->pretty);
}

static void put(sc_json *j, const char *s, size_t n)
{
    size_t need = j->len + n + 1;
    if (need > j->cap) {
        size_t cap = need < 512 ? 1024 : 2 * need;
        char *buf = realloc(j->cap > 0 ? j->buf : NULL, cap);
        if (buf == NULL) {
            j->failed = true;
            return;
        }
        j->buf = buf;
        j->cap = cap;
    }
    memcpy(j->buf + j->len, s, n);
    j->len += n;
    j->buf[j->len] = '\0';
}

static void put_line(sc_json *j)
{
    if (!j->pretty) return;
    put(j, "\n", 1);
    for (unsigned i = 0; i < j->depth; i++) put(j, "  ", 2);
}

static bool in_object(const sc_json *j)
{
    return j->depth > 0 && j->stack[j->depth - 1] == '{';
}

static void separate(sc_json *j)
{
    if (j->need_comma) put(j, ",", 1);
    if (j->depth > 0) put_line(j);
}

/* Writes the comma or line break before a value; false if no value is allowed
 * here. */
static bool begin_value(sc_json *j)
{
    bool second = j->depth == 0 && j->need_comma;
    if (second || in_object(j) != j->after_key) j->failed = true;
    if (j->failed) return false;
    if (!j->after_key) separate(j);
    j->after_key = false;
    j->need_comma = true;
    return true;
}

static void value(sc_json *j, const char *s, size_t n)
{
    if (begin_value(j)) put(j, s, n);
}

void sc_json_begin(sc_json *j, char bracket)
{
    if (j->depth == sizeof j->stack || (bracket != '{' && bracket != '['))
        j->failed = true;
    if (!begin_value(j)) return;
    j->stack[j->depth++] = bracket;
    put(j, &bracket, 1);
    j->need_comma = false;
}

void sc_json_end(sc_json *j, char bracket)
{
    char open = bracket == '}' ? '{' : '[';
    if (j->depth == 0 || j->stack[j->depth - 1] != open || j->after_key ||
        (bracket != '}' && bracket != ']'))
        j->failed = true;
    if (j->failed) return;
    j->depth--;
    if (j->need_comma) put_line(j);
    put(j, &bracket, 1);
    j->need_comma = true;
}

static void put_escaped(sc_json *j, unsigned char c)
{
    static const char shorts[] = "\"\"\\\\\bb\ff\nn\rr\tt"; /* pairs */
    for (const char *s = shorts; *s != '\0'; s += 2)
        if ((unsigned char)*s == c) {
            char two[2] = {'\\', s[1]};
            put(j, two, 2);
            return;
        }
    char hex[8];
    int n = snprintf(hex, sizeof hex, "\\u%04x", c);
    put(j, hex, (size_t)n);
}

static size_t length_at(const char *s, const char *end)
{
    return (unsigned char)*s < 0x80 ? 1 : utf8_length(s, (size_t)(end - s));
}

static void put_string(sc_json *j, const char *s)
{
    const char *end = s + strlen(s);
    put(j, "\"", 1);
    while (s < end) {
        const char *run =
            s; /* a run of bytes that need no escape is copied at once */
        size_t n = 0;
        while (s < end && (unsigned char)*s >= 0x20 && *s != '"' &&
               *s != '\\' && (n = length_at(s, end)) > 0)
            s += n;
        put(j, run, (size_t)(s - run));
        if (s == end) break;
        if ((unsigned char)*s < 0x80)
            put_escaped(j, (unsigned char)*s);
        else
            put(j, "\xEF\xBF\xBD", 3); /* U+FFFD */
        s++;
    }
    put(j, "\"", 1);
}

void sc_json_key(sc_json *j, const char *key)
{
    if (!in_object(j) || j->after_key) j->failed = true;
    if (j->failed) return;
    separate(j);
    put_string(j, key);
    put(j, ": ", j->pretty ? 2 : 1);
    j->after_key = true;
}

void sc_json_string(sc_json *j, const char *s)
{
    if (s == NULL)
        value(j, "null", 4);
    else if (begin_value(j))
        put_string(j, s);
}

static const sc_json_number *number(sc_json *j, double v)
{
    uint64_t bits,
        kept; /* compared as bits: -0 is written differently from 0 */
    memcpy(&bits, &v, sizeof bits);
    sc_json_number *n = &j->number[bits * 0x9E3779B97F4A7C15u >> 58 & 63];
    memcpy(&kept, &n->v, sizeof kept);
    if (n->len > 0 && kept == bits) return n;
    sc_double_print(v, n->text, sizeof n->text);
    n->v = v;
    n->len = (uint8_t)strlen(n->text);
    return n;
}

void sc_json_double(sc_json *j, double v)
{
    if (!isfinite(v)) {
        sc_json_null(j);
        return;
    }
    const sc_json_number *n = number(j, v);
    value(j, n->text, n->len);
}

static void whole(sc_json *j, uint64_t v, bool negative)
{
    char num[24], *at = num + sizeof num;
    do {
        *--at = (char)('0' + v % 10);
        v /= 10;
    } while (v);
    if (negative) *--at = '-';
    value(j, at, (size_t)(num + sizeof num - at));
}

void sc_json_int(sc_json *j, int64_t v)
{
    whole(j, v < 0 ? 0 - (uint64_t)v : (uint64_t)v, v < 0);
}

void sc_json_uint(sc_json *j, uint64_t v)
{
    whole(j, v, false);
}

void sc_json_bool(sc_json *j, bool v)
{
    value(j, v ? "true" : "false", v ? 4 : 5);
}

void sc_json_null(sc_json *j)
{
    value(j, "null", 4);
}

void sc_json_put_string(sc_json *j, const char *key, const char *v)
{
    sc_json_key(j, key);
    sc_json_string(j, v);
}

void sc_json_put_double(sc_json *j, const char *key, double v)
{
    sc_json_key(j, key);
    sc_json_double(j, v);
}

void sc_json_put_uint(sc_json *j, const char *key, uint64_t v)
{
    sc_json_key(j, key);
    sc_json_uint(j, v);
}

void sc_json_put_strings(sc_json *j, const char *key, const char *const *v,
                         uint32_t n)
{
    sc_json_key(j, key);
    sc_json_begin(j, '[');
    for (uint32_t i = 0; i < n; i++) sc_json_string(j, v[i]);
    sc_json_end(j, ']');
}
