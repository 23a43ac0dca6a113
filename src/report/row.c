/* SPDX-License-Identifier: Apache-2.0 */
/* row.c - a title, and beside it items that go on in the next line. */
#include "report/row.h"

#include <stdio.h>
#include <string.h>

report_row report_row_begin(const char *title, sc_text *out)
{
    sc_text_add(out, "  %-*s", REPORT_INDENT - 2, title);
    return (report_row){out, REPORT_INDENT};
}

static void row_break(report_row *r)
{
    sc_text_add(r->out, "\n%*s", REPORT_INDENT, "");
    r->col = REPORT_INDENT;
}

void report_row_add(report_row *r, const char *gap, const char *item)
{
    size_t n = strlen(item);
    if (r->col > REPORT_INDENT && r->col + strlen(gap) + n > REPORT_WIDTH)
        row_break(r);
    if (r->col > REPORT_INDENT) {
        sc_text_add(r->out, "%s", gap);
        r->col += strlen(gap);
    }
    sc_text_add(r->out, "%s", item);
    r->col += n;
}

static void put_words(report_row *r, const char *text)
{
    char word[REPORT_WIDTH];
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

void report_row_list(const char *title, const char *const *text, uint32_t n,
                     sc_text *out)
{
    for (uint32_t i = 0; i < n; i++) {
        report_row r = report_row_begin(i ? "" : title, out);
        put_words(&r, text[i]);
        report_row_end(&r);
    }
}

report_word report_seconds(double s)
{
    report_word x;
    sc_unit_print_short(s, SC_U_TIME, x.s, sizeof x.s);
    return x;
}

report_word report_bytes(uint64_t v)
{
    report_word x;
    sc_unit_print_short((double)v, SC_U_BYTES, x.s, sizeof x.s);
    return x;
}

void report_texts_json(const char *key, const char *const *text, uint32_t n,
                       sc_json *j)
{
    sc_json_key(j, key);
    sc_json_begin(j, '[');
    for (uint32_t i = 0; i < n; i++) sc_json_string(j, text[i]);
    sc_json_end(j, ']');
}
