/* SPDX-License-Identifier: Apache-2.0 */
/* util.c - hashes, growing text, name patterns. */
#include "base/util.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Little-endian on every machine. */
static uint64_t load(const unsigned char *p, size_t n)
{
    uint64_t v = 0;
    for (size_t i = 0; i < n; i++) v |= (uint64_t)p[i] << (8 * i);
    return v;
}

uint64_t sc_hash(const void *data, size_t len, uint64_t seed)
{
    const unsigned char *p = data;
    uint64_t h = sc_mix(seed + 0x9E3779B97F4A7C15u) ^ (uint64_t)len;
    for (; len >= 8; p += 8, len -= 8) h = sc_mix(h ^ load(p, 8)) + seed;
    return sc_mix(h ^ load(p, len) ^ ((uint64_t)(len + 1) << 56));
}

uint64_t sc_gcd(uint64_t a, uint64_t b)
{
    while (b != 0) {
        uint64_t r = a % b;
        a = b;
        b = r;
    }
    return a;
}

sc_pos sc_pos_option(sc_arena *a, const char *flag, const char *value)
{
    const char *both = value ? sc_sprintf(a, "%s %s", flag, value) : NULL;
    return sc_pos_file(both ? both : flag);
}

void sc_progress_tell(const sc_progress *p, const char *what, uint64_t done,
                      uint64_t total)
{
    if (p && p->tell) p->tell(p->ctx, what, done, total);
}

void sc_text_init(sc_text *t)
{
    t->buf = "";
    t->len = 0;
    t->cap = 0;
    t->width = 0;
    t->colour = false;
    t->failed = false;
}

void sc_text_free(sc_text *t)
{
    if (t->cap > 0) free(t->buf);
    sc_text_init(t);
}

static bool text_room(sc_text *t, size_t more)
{
    size_t need = t->len + more + 1;
    if (need <= t->cap) return true;
    size_t cap = need < 128 ? 256 : 2 * need;
    char *buf = realloc(t->cap > 0 ? t->buf : NULL, cap);
    if (buf == NULL) return false;
    if (t->cap == 0) buf[0] = '\0';
    t->buf = buf;
    t->cap = cap;
    return true;
}

void sc_text_add(sc_text *t, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    sc_text_add_v(t, fmt, ap);
    va_end(ap);
}

void sc_text_add_v(sc_text *t, const char *fmt, va_list ap)
{
    va_list again;
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    if (n < 0 || !text_room(t, (size_t)n)) {
        t->failed = true;
    } else {
        vsnprintf(t->buf + t->len, (size_t)n + 1, fmt, again);
        t->len += (size_t)n;
    }
    va_end(again);
}

void sc_text_put(sc_text *t, const char *bytes, size_t n)
{
    if (!text_room(t, n)) {
        t->failed = true;
        return;
    }
    memcpy(t->buf + t->len, bytes, n);
    t->len += n;
    t->buf[t->len] = '\0';
}

bool sc_glob(const char *pattern, const char *text)
{
    const char *star = NULL, *resume = NULL;
    size_t np = strlen(pattern), nt = strlen(text);
    char last = '\0';
    if (np) last = pattern[np - 1];
    /* Most patterns already differ in their last character. */
    if (last && last != '*' && last != '?' && (!nt || text[nt - 1] != last))
        return false;
    while (*text != '\0') {
        if (*pattern == '*') {
            star = ++pattern;
            resume = text;
        } else if (*pattern == '?' || *pattern == *text) {
            pattern++;
            text++;
        } else if (star != NULL) { /* let the last star take one more */
            pattern = star;
            text = ++resume;
        } else {
            return false;
        }
    }
    while (*pattern == '*') pattern++;
    return *pattern == '\0';
}

static int by_value(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

void sc_sort_numbers(uint32_t *list, uint32_t n)
{
    if (n > 1) qsort(list, n, sizeof *list, by_value);
}

uint32_t sc_find_rising(const uint32_t *list, uint32_t n, uint32_t number)
{
    uint32_t at = 0;
    SC_FIRST(at, n, mid, list[mid] >= number);
    return at < n && list[at] == number ? at : n;
}
