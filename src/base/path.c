/* SPDX-License-Identifier: Apache-2.0 */
/*
 * path.c - patterns on module paths.
 *
 * What a pattern element takes depends only on where it stands, so going back
 * to the last star suffices, as in sc_glob().
 */
#include <stepcast/base/util.h>

#include <stdlib.h>
#include <string.h>

/* Length of "3-11" at the beginning of a part that is nothing else, with its
 * ends; 0: it is no range.  A single number is one, so that 03 is 3. */
static size_t range_at(const char *p, const char *end, unsigned long *lo,
                       unsigned long *hi)
{
    char *at;
    if (p == end || *p < '0' || *p > '9') return 0;
    *lo = *hi = strtoul(p, &at, 10);
    if (at + 1 < end && *at == '-' && at[1] >= '0' && at[1] <= '9')
        *hi = strtoul(at + 1, &at, 10);
    if (at > end || (at < end && *at != '.')) return 0;
    return (size_t)(at - p);
}

/* Digits of a part that is a number; 0: it is none. */
static size_t number_at(const char *text, unsigned long *value)
{
    size_t n = strspn(text, "0123456789");
    if (n == 0 || (text[n] != '.' && text[n] != '\0')) return 0;
    *value = strtoul(text, NULL, 10);
    return n;
}

/* Takes one element of the pattern, if it fits; a star is none. */
static bool take(const char *begin, const char **p, const char *end,
                 const char *path, const char **text)
{
    unsigned long lo, hi, value;
    bool part = (*p == begin || (*p)[-1] == '.') &&
                (*text == path || (*text)[-1] == '.');
    size_t n = part ? range_at(*p, end, &lo, &hi) : 0;
    size_t digits = n ? number_at(*text, &value) : 0;
    if (digits) {
        if (value < lo || value > hi) return false;
        *p += n;
        *text += digits;
        return true;
    }
    if (*p == end || **text == '\0') return false;
    if (**p != '?' && **p != **text) return false;
    ++*p;
    ++*text;
    return true;
}

bool sc_path_match(const char *pattern, size_t len, const char *path)
{
    const char *p = pattern, *end = pattern + len, *text = path;
    const char *star = NULL, *resume = NULL;
    for (;;) {
        /* Most of it is letters. */
        while (p<end && * p == *text && * p> '9') p++, text++;
        if (p == end && (*text == '\0' || *text == '.')) return true;
        if (p < end && *p == '*') {
            star = ++p;
            resume = text;
        } else if (!take(pattern, &p, end, path, &text)) {
            if (star == NULL || *resume == '\0') return false;
            p = star; /* let the last star take more */
            text = ++resume;
            bool letter = p < end && *p != '?' && (*p < '0' || *p > '9');
            while (letter && *text != '\0' && *text != *p) text = ++resume;
        }
    }
}

size_t sc_path_specificity(const char *pattern)
{
    const char *end = pattern + strlen(pattern);
    size_t n = 0;
    for (const char *p = pattern; p < end;) {
        unsigned long lo, hi;
        bool part = p == pattern || p[-1] == '.';
        size_t range = part ? range_at(p, end, &lo, &hi) : 0;
        if (range && lo != hi) {
            n++;
            p += range;
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
        unsigned long lo, hi;
        if ((p == pattern || p[-1] == '.') && range_at(p, end, &lo, &hi) &&
            lo > hi)
            return true;
    }
    return false;
}
