/* SPDX-License-Identifier: Apache-2.0 */
/*
 * path.c - patterns on module paths.
 *
 * The length that a pattern element matches depends only on its position, so
 * going back to the last star suffices, as in sc_glob().
 */
#include "base/util.h"

#include <stdlib.h>
#include <string.h>

/* A range "3-11", or with a step "3-11/2": 3, 5, 7 ... */
typedef struct range {
    unsigned long lo, hi, step;
} range;

static bool digit_at(const char *p, const char *end)
{
    return p < end && *p >= '0' && *p <= '9';
}

/* The length of a range if a whole part is a range, else 0. A single number is
 * a range, so that 03 equals 3. */
static size_t range_at(const char *p, const char *end, range *r)
{
    char *at;
    if (!digit_at(p, end)) return 0;
    r->lo = r->hi = strtoul(p, &at, 10);
    r->step = 1;
    if (at < end && *at == '-' && digit_at(at + 1, end)) {
        r->hi = strtoul(at + 1, &at, 10);
        if (at < end && *at == '/' && digit_at(at + 1, end))
            r->step = strtoul(at + 1, &at, 10);
    }
    if (at > end || (at < end && *at != '.')) return 0;
    return (size_t)(at - p);
}

/* Length of a class of characters, "[02-4]", and whether `c` is one of them; 0:
 * none begins here. */
static size_t class_at(const char *p, const char *end, char c, bool *in)
{
    const char *close =
        p < end && *p == '[' ? memchr(p, ']', (size_t)(end - p)) : NULL;
    const char *begin = p;
    *in = false;
    if (!close) return 0;
    for (p++; p < close; p++) {
        bool span = p + 2 < close && p[1] == '-';
        *in = *in || (span ? c >= p[0] && c <= p[2] : c == *p);
        if (span) p += 2;
    }
    return (size_t)(close + 1 - begin);
}

/* The number of digits of a part that is a number, else 0. */
static size_t number_at(const char *text, unsigned long *value)
{
    size_t n = strspn(text, "0123456789");
    if (n == 0 || (text[n] != '.' && text[n] != '\0')) return 0;
    *value = strtoul(text, NULL, 10);
    return n;
}

/* Matches one element of the pattern; a star is not an element. */
static bool take(const char *begin, const char **p, const char *end,
                 const char *path, const char **text)
{
    range r;
    unsigned long value;
    bool in, part = (*p == begin || (*p)[-1] == '.') &&
                    (*text == path || (*text)[-1] == '.');
    size_t n = part ? range_at(*p, end, &r) : 0;
    size_t digits = n ? number_at(*text, &value) : 0;
    if (digits) {
        if (value < r.lo || value > r.hi || !r.step || (value - r.lo) % r.step)
            return false;
        *p += n;
        *text += digits;
        return true;
    }
    if (*p == end || **text == '\0') return false;
    size_t length = class_at(*p, end, **text, &in);
    if (length ? !in : **p != '?' && **p != **text) return false;
    *p += length ? length : 1;
    ++*text;
    return true;
}

bool sc_path_match(const char *pattern, size_t len, const char *path)
{
    const char *p = pattern, *end = pattern + len, *text = path;
    const char *star = NULL, *resume = NULL;
    for (;;) {
        /* The common case: a letter. */
        while (p < end && *p == *text && *p >= 'a') p++, text++;
        if (p == end && (*text == '\0' || *text == '.')) return true;
        if (p < end && *p == '*') {
            star = ++p;
            resume = text;
        } else if (!take(pattern, &p, end, path, &text)) {
            if (star == NULL || *resume == '\0') return false;
            p = star; /* let the last star take more */
            text = ++resume;
            bool letter =
                p < end && *p != '?' && *p != '[' && (*p < '0' || *p > '9');
            while (letter && *text != '\0' && *text != *p) text = ++resume;
        }
    }
}

size_t sc_path_specificity(const char *pattern)
{
    const char *end = pattern + strlen(pattern);
    size_t n = 0;
    for (const char *p = pattern; p < end;) {
        range r;
        bool in, part = p == pattern || p[-1] == '.';
        size_t length = part ? range_at(p, end, &r) : 0;
        if (!length || r.lo == r.hi) length = class_at(p, end, '\0', &in);
        if (length) {
            n++;
            p += length;
        } else {
            n += *p != '*' && *p != '?' ? 2 : 0;
            p++;
        }
    }
    return n;
}

bool sc_path_empty(const char *pattern)
{
    const char *end = pattern + strlen(pattern);
    for (const char *p = pattern; p < end; p++) {
        range r;
        if ((p == pattern || p[-1] == '.') && range_at(p, end, &r) &&
            (r.lo > r.hi || r.step == 0))
            return true;
    }
    return false;
}
