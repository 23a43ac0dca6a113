/* SPDX-License-Identifier: Apache-2.0 */
/* report_row.h - rows of a text report: a title, followed by its items. */
#ifndef SC_REPORT_ROW_H
#define SC_REPORT_ROW_H

#include "graph/graph.h"

#define REPORT_INDENT 17 /* columns of the title */
#define REPORT_VALUE  11 /* columns of the value at the start of a row */

/* A row of items. Items that do not fit in the columns of its text continue
 * on the next line. */
typedef struct report_row {
    sc_text *out;
    size_t col;
} report_row;

report_row report_row_begin(const char *title, sc_text *out);
void report_row_add(report_row *r, const char *gap, const char *item);
void report_row_words(report_row *r, const char *text);
void report_row_end(report_row *r);

/* Prints a row of text, or a row that begins with a value. */
void report_line(sc_text *out, const char *title, const char *fmt, ...)
    SC_PRINTF(3, 4);
void report_value(sc_text *out, const char *title, const char *value,
                  const char *fmt, ...) SC_PRINTF(4, 5);

/* Prints a row for each text. */
void report_row_list(const char *title, const char *const *text, uint32_t n,
                     sc_text *out);

/* Appends `text`. A line with more than `width` columns continues on the
 * next line, indented; nothing is cut off. */
void report_fold(const char *text, uint32_t width, sc_text *out);

/* Formats quantities as short texts. */
typedef struct report_word {
    char s[32];
} report_word;

report_word report_seconds(double s);
report_word report_bytes(uint64_t v);
report_word report_number(double v); /* 8.14, 139, 1.39K, 11.1M */

/* Formats "exposed_tp" as "exposed TP". */
report_word report_category(sc_cat c);

#endif
