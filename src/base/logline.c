/* SPDX-License-Identifier: Apache-2.0 */
/* logline.c - lines of logs, and the words in them. */
#include "base/logline.h"

#include "base/number.h"

#include <math.h>
#include <string.h>

bool log_is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

log_line log_line_next(const char *text, size_t len, size_t *at)
{
    const char *s = text + *at, *nl = memchr(s, '\n', len - *at);
    log_line l = {s, nl ? nl : text + len, nl == NULL};
    *at = (size_t)(l.end - text) + (nl != NULL);
    return l;
}

log_word log_next(log_line *l)
{
    while (l->s < l->end && log_is_blank(*l->s)) l->s++;
    log_word w = {l->s, 0};
    while (l->s < l->end && !log_is_blank(*l->s)) l->s++;
    w.n = (size_t)(l->s - w.s);
    return w;
}

bool log_is(log_word w, const char *word)
{
    return strlen(word) == w.n && memcmp(w.s, word, w.n) == 0;
}

bool log_is_digits(log_word w)
{
    for (size_t i = 0; i < w.n; i++)
        if (w.s[i] < '0' || w.s[i] > '9') return false;
    return w.n > 0;
}

const char *log_find(log_line l, const char *what)
{
    size_t n = strlen(what);
    for (const char *s = l.s; (size_t)(l.end - s) >= n; s++)
        if (memcmp(s, what, n) == 0) return s;
    return NULL;
}

void log_skip_label(log_line *l)
{
    log_line rest = *l;
    log_word w = log_next(&rest);
    const char *mark = w.n && w.s[0] == '[' ? log_find(*l, "<std") : NULL;
    if (mark && (size_t)(mark - w.s) < w.n) {
        const char *s = mark;
        while (s < l->end && *s != '>') s++;
        if (s < l->end) s++;
        if (s < l->end && *s == ':') s++;
        l->s = s;
        return;
    }
    size_t n = 0;
    while (n < w.n && w.s[n] >= '0' && w.s[n] <= '9') n++;
    if (n > 0 && n < w.n && w.s[n] == ':' &&
        (n + 1 == w.n || w.s[n + 1] == '#'))
        l->s = w.s + n + 1;
}

double log_number(log_word w)
{
    char buf[64];
    if (w.n == 0 || w.n >= sizeof buf) return NAN;
    memcpy(buf, w.s, w.n);
    buf[w.n] = '\0';
    if (number_span(buf) != w.n) return NAN;
    double v = number_scaled(buf, w.n, 0);
    return isfinite(v) ? v : NAN;
}
