/* SPDX-License-Identifier: Apache-2.0 */
/* bytes.c - writes and reads numbers and texts as bytes. */
#include "base/bytes.h"

#include "base/util.h"

#include <stdlib.h>
#include <string.h>

void sc_bytes_free(sc_bytes *b)
{
    free(b->buf);
    *b = (sc_bytes){0};
}

static bool has_room(sc_bytes *b, size_t len)
{
    if (b->failed) return false;
    if (len <= b->cap - b->len) return true;
    size_t cap = 2 * b->cap + len + 64;
    uint8_t *all = realloc(b->buf, cap);
    if (!all) {
        b->failed = true;
        return false;
    }
    b->buf = all;
    b->cap = cap;
    return true;
}

void sc_bytes_reserve(sc_bytes *b, size_t len)
{
    if (len > b->len) has_room(b, len - b->len);
}

void sc_bytes_add(sc_bytes *b, const void *data, size_t len)
{
    if (len == 0 || !has_room(b, len)) return;
    memcpy(b->buf + b->len, data, len);
    b->len += len;
}

void sc_bytes_uint(sc_bytes *b, uint64_t v)
{
    uint8_t buf[10];
    size_t n = 0;
    for (; v >= 0x80; v >>= 7) buf[n++] = (uint8_t)(v | 0x80);
    buf[n++] = (uint8_t)v;
    sc_bytes_add(b, buf, n);
}

static void add_fixed(sc_bytes *b, uint64_t v)
{
    uint8_t buf[8];
    for (int i = 0; i < 8; i++) buf[i] = (uint8_t)(v >> (8 * i));
    sc_bytes_add(b, buf, sizeof buf);
}

void sc_bytes_double(sc_bytes *b, double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    add_fixed(b, bits);
}

void sc_bytes_text(sc_bytes *b, const char *text)
{
    size_t n = strlen(text);
    sc_bytes_uint(b, n);
    sc_bytes_add(b, text, n);
}

void sc_bytes_seal(sc_bytes *b, size_t from)
{
    if (!b->failed)
        add_fixed(b, sc_hash(b->buf ? b->buf + from : NULL, b->len - from, 0));
}

/* ---- reading -------------------------------------------------------------- */

sc_bytes_in sc_bytes_from(const void *data, size_t n)
{
    return (sc_bytes_in){.data = data, .n = n};
}

void sc_bytes_reject(sc_bytes_in *in, size_t at)
{
    if (in->bad) return;
    in->bad = true;
    in->bad_at = at;
}

const uint8_t *sc_bytes_take(sc_bytes_in *in, uint64_t n)
{
    if (n > in->n - in->at) sc_bytes_reject(in, in->at);
    if (in->bad) return NULL;
    const uint8_t *p = in->data + in->at;
    in->at += (size_t)n;
    return p;
}

uint64_t sc_bytes_get_uint(sc_bytes_in *in)
{
    size_t at = in->at;
    uint64_t v = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
        const uint8_t *p = sc_bytes_take(in, 1);
        if (!p) break;
        if (shift == 63 && *p > 1) break;
        v |= (uint64_t)(*p & 0x7F) << shift;
        if (*p < 0x80) return v;
    }
    sc_bytes_reject(in, at);
    return 0;
}

uint64_t sc_bytes_get_most(sc_bytes_in *in, uint64_t most)
{
    size_t at = in->at;
    uint64_t v = sc_bytes_get_uint(in);
    if (v <= most) return v;
    sc_bytes_reject(in, at);
    return 0;
}

static uint64_t get_fixed(sc_bytes_in *in)
{
    const uint8_t *p = sc_bytes_take(in, 8);
    uint64_t v = 0;
    for (int i = 0; p && i < 8; i++) v |= (uint64_t)p[i] << (8 * i);
    return v;
}

double sc_bytes_get_double(sc_bytes_in *in)
{
    uint64_t bits = get_fixed(in);
    double v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

const char *sc_bytes_get_text(sc_bytes_in *in, sc_arena *a)
{
    size_t at = in->at;
    uint64_t n = sc_bytes_get_uint(in);
    const uint8_t *p = sc_bytes_take(in, n);
    if (!p || memchr(p, 0, (size_t)n)) {
        sc_bytes_reject(in, at);
        return "";
    }
    char *text = sc_strndup(a, (const char *)p, (size_t)n);
    if (!text) sc_bytes_reject(in, at);
    return text ? text : "";
}

bool sc_bytes_sealed(sc_bytes_in *in, size_t from)
{
    size_t end = in->at;
    uint64_t seal = get_fixed(in);
    return !in->bad && seal == sc_hash(in->data + from, end - from, 0);
}
