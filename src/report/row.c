/* SPDX-License-Identifier: Apache-2.0 */
/* row.c - prints a title and its items, which continue on the next line. */
#include "report/report_row.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Adds a terminal's colour around a word if colours are allowed. */
static void coloured(sc_text *out, const char *code, const char *word)
{
    if (out->colour && *code)
        sc_text_add(out, "\033[%sm%s\033[0m", code, word);
    else
        sc_text_add(out, "%s", word);
}

report_row report_row_begin(const char *title, sc_text *out)
{
    bool alarm = strcmp(title, "warning") == 0;
    int gap = REPORT_INDENT - 2 - (int)strlen(title);
    sc_text_add(out, "  ");
    coloured(out, *title == '\0' ? "" : alarm ? "1;33" : "1", title);
    if (gap < 1 && *title) gap = 1;
    sc_text_add(out, "%*s", gap, "");
    return (report_row){out, 2 + strlen(title) + (size_t)gap};
}

static size_t row_width(const report_row *r)
{
    return r->out->width ? r->out->width : 80;
}

static void row_break(report_row *r)
{
    sc_text_add(r->out, "\n%*s", REPORT_INDENT, "");
    r->col = REPORT_INDENT;
}

void report_row_add(report_row *r, const char *gap, const char *item)
{
    size_t n = strlen(item);
    bool bad = strcmp(item, "NO") == 0, good = strcmp(item, "yes") == 0;
    if (r->col > REPORT_INDENT && r->col + strlen(gap) + n > row_width(r))
        row_break(r);
    if (r->col > REPORT_INDENT) {
        sc_text_add(r->out, "%s", gap);
        r->col += strlen(gap);
    }
    coloured(r->out, bad ? "1;31" : good ? "1;32" : "", item);
    r->col += n;
}

void report_row_words(report_row *r, const char *text)
{
    char word[256];
    for (text += strspn(text, " "); *text; text += strspn(text, " ")) {
        size_t n = strcspn(text, " ");
        snprintf(word, sizeof word, "%.*s", (int)n, text);
        report_row_add(r, " ", word);
        text += n < sizeof word ? n : sizeof word - 1;
    }
}

void report_row_end(report_row *r)
{
    sc_text_add(r->out, "\n");
}

void report_line(sc_text *out, const char *title, const char *fmt, ...)
{
    char text[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    report_row r = report_row_begin(title, out);
    report_row_words(&r, text);
    report_row_end(&r);
}

void report_value(sc_text *out, const char *title, const char *value,
                  const char *fmt, ...)
{
    char text[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    report_row r = report_row_begin(title, out);
    size_t n = strlen(value);
    report_row_add(&r, "", value);
    if (*text) {
        int gap = n < REPORT_VALUE - 1 ? REPORT_VALUE - 1 - (int)n : 0;
        sc_text_add(out, "%*s", gap, "");
        r.col += (size_t)gap;
        report_row_words(&r, text);
    }
    report_row_end(&r);
}

void report_row_list(const char *title, const char *const *text, uint32_t n,
                     sc_text *out)
{
    for (uint32_t i = 0; i < n; i++)
        report_line(out, i ? "" : title, "%s", text[i]);
}

report_word report_seconds(double s)
{
    report_word x;
    sc_unit_print_short(s, SC_U_TIME, x.s, sizeof x.s);
    return x;
}

report_word report_number(double v)
{
    report_word x;
    if (fabs(v) < 999.5)
        snprintf(x.s, sizeof x.s, "%.3g", v);
    else
        sc_unit_print_short(v, SC_U_COUNT, x.s, sizeof x.s);
    return x;
}

report_word report_bytes(uint64_t v)
{
    report_word x;
    sc_unit_print_short((double)v, SC_U_BYTES, x.s, sizeof x.s);
    return x;
}

report_word report_category(sc_cat c)
{
    report_word x;
    snprintf(x.s, sizeof x.s, "%s", sc_cat_names[c]);
    bool upper = strncmp(x.s, "exposed_", 8) == 0;
    for (size_t i = 0; x.s[i]; i++) {
        if (x.s[i] == '_') x.s[i] = ' ';
        if (upper && i >= 8) x.s[i] = (char)toupper((unsigned char)x.s[i]);
    }
    return x;
}
