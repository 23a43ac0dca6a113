/* SPDX-License-Identifier: Apache-2.0 */
/* fold.c - wraps lines that are wider than the terminal, and indents the
 * rest. */
#include "report/report_row.h"

#include <string.h>

/* Columns of a text: escape sequences and the later bytes of a character
 * have none. */
static size_t columns(const char *text, size_t n)
{
    size_t at = 0, wide = 0;
    while (at < n) {
        if (text[at] == '\033') {
            while (at < n && text[at] != 'm') at++;
        } else if (((unsigned char)text[at] & 0xC0) != 0x80) {
            wide++;
        }
        at++;
    }
    return wide;
}

/* Bytes of the line that fit: up to the last blank within the width, else up
 * to the first blank. */
static size_t fitting(const char *text, size_t n, size_t width)
{
    size_t first = strspn(text, " "), best = 0;
    for (size_t at = first; at < n; at++) {
        if (text[at] != ' ') continue;
        if (best && columns(text, at) > width) break;
        best = at;
    }
    return best ? best : n;
}

/* Where folded text continues: below the last column that begins in the left
 * half, else four blanks further than the line. */
static size_t hanging(const char *text, size_t n, uint32_t width)
{
    size_t indent = strspn(text, " "), hang = 0, at = indent;
    while (at < n) {
        size_t gap = strspn(text + at, " ");
        at += gap;
        if (gap >= 2 && at < n && columns(text, at) <= width / 2)
            hang = columns(text, at);
        if (at < n) at += strcspn(text + at, " \n");
    }
    if (hang > 0) return hang;
    if (indent + 4 <= width / 2) return indent + 4;
    return indent < width / 2 ? indent : 0;
}

void report_fold(const char *text, uint32_t width, sc_text *out)
{
    while (*text) {
        size_t n = strcspn(text, "\n");
        size_t hang = hanging(text, n, width), room = width;
        while (columns(text, n) > room) {
            size_t part = fitting(text, n, room);
            if (part == n) break;
            size_t shown = part;
            while (shown > 0 && text[shown - 1] == ' ') shown--;
            sc_text_add(out, "%.*s\n", (int)shown, text);
            text += part;
            n -= part;
            size_t gap = strspn(text, " ");
            if (gap > n) gap = n;
            text += gap;
            n -= gap;
            sc_text_add(out, "%*s", (int)hang, "");
            room = width - hang;
        }
        sc_text_add(out, "%.*s%s", (int)n, text, text[n] ? "\n" : "");
        text += n + (text[n] == '\n');
    }
}
