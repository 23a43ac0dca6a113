/* SPDX-License-Identifier: Apache-2.0 */
/* csv.c - tables with a header line (RFC 4180). */
#include <stepcast/base/util.h>

#include "base/utf8.h"

#include <string.h>

typedef struct scan {
    const char *at, *end; /* what is left of the text */
    char *to;             /* where the next cell is written */
    const char *file;
    const char *line_start;
    uint32_t line;
    sc_err *err;
} scan;

static sc_pos here(const scan *s, const char *at)
{
    size_t n = (size_t)(at - s->line_start);
    sc_pos pos = utf8_position(s->line_start, n, n, s->file);
    pos.line = s->line;
    return pos;
}

static bool at_line_end(const scan *s)
{
    if (s->at == s->end || *s->at == '\n') return true;
    return *s->at == '\r' && (s->at + 1 == s->end || s->at[1] == '\n');
}

static void skip_line_end(scan *s)
{
    if (s->at < s->end && *s->at == '\r') s->at++;
    if (s->at == s->end) return;
    s->at++;
    s->line++;
    s->line_start = s->at;
}

static sc_status quoted_cell(scan *s)
{
    sc_pos open = here(s, s->at++);
    bool closed = false;
    for (; s->at < s->end; s->at++) {
        if (*s->at == '"') {
            closed = s->at + 1 == s->end || s->at[1] != '"';
            s->at++;
            if (closed) break;
        } else if (*s->at == '\n') {
            s->line++;
            s->line_start = s->at + 1;
        }
        *s->to++ = *s->at;
    }
    if (!closed)
        return sc_error(s->err, SC_EINPUT, SC_C_SYNTAX, open, NULL,
                        "a quoted cell that never ends");
    if (!at_line_end(s) && *s->at != ',')
        return sc_error(s->err, SC_EINPUT, SC_C_SYNTAX, here(s, s->at),
                        "write a quote inside a quoted cell twice",
                        "text after the closing quote of a cell");
    return SC_OK;
}

static sc_status plain_cell(scan *s)
{
    for (; !at_line_end(s) && *s->at != ','; s->at++) {
        if (*s->at == '"')
            return sc_error(s->err, SC_EINPUT, SC_C_SYNTAX, here(s, s->at),
                            "put the whole cell in quotes",
                            "a quote inside a cell without quotes");
        *s->to++ = *s->at;
    }
    return SC_OK;
}

/* One line into cells[0..*n); the cells it needs were counted before. */
static sc_status read_row(scan *s, const char **cells, uint32_t *n)
{
    *n = 0;
    for (;;) {
        cells[(*n)++] = s->to;
        bool quoted = s->at < s->end && *s->at == '"';
        SC_TRY(quoted ? quoted_cell(s) : plain_cell(s));
        *s->to++ = '\0';
        if (at_line_end(s)) break;
        s->at++; /* the comma */
    }
    skip_line_end(s);
    return SC_OK;
}

static void skip_blank_lines(scan *s)
{
    while (s->at < s->end && at_line_end(s)) skip_line_end(s);
}

static sc_status check_header(const sc_csv *t, uint32_t line, sc_err *err)
{
    sc_status first = SC_OK;
    for (uint32_t i = 0; i < t->n_cols; i++) {
        if (t->header[i][0] == '\0' ||
            sc_csv_col(t, t->header[i]) == (int)i) /* the first of its name */
            continue;
        sc_pos pos = {t->file, line, 0};
        first =
            sc_error(err, SC_EINPUT, SC_C_DUPLICATE, pos, NULL,
                     "column \"%s\" stands twice in the header", t->header[i]);
    }
    return first;
}

static sc_status read_rows(scan *s, sc_csv *t)
{
    sc_status first = SC_OK;
    for (skip_blank_lines(s); s->at < s->end; skip_blank_lines(s)) {
        uint32_t n, line = s->line;
        const char **row = t->cells + (size_t)t->n_rows * t->n_cols;
        SC_TRY(read_row(s, row, &n));
        if (n == t->n_cols) {
            t->line[t->n_rows++] = line;
            continue;
        }
        sc_pos pos = {s->file, line, 0};
        first = sc_error(s->err, SC_EINPUT, SC_C_SYNTAX, pos,
                         "every row has as many cells as the header",
                         "%u cells in a row of a table of %u columns",
                         (unsigned)n, (unsigned)t->n_cols);
    }
    return first;
}

sc_status sc_csv_parse(const char *text, size_t len, const char *file,
                       sc_arena *a, sc_csv *out, sc_err *err)
{
    if (len >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0) {
        text += 3;
        len -= 3;
    }
    sc_pos start = {file, 1, 1};
    if (len >= UINT32_MAX)
        return sc_error(err, SC_EINPUT, SC_C_TOO_BIG, start, NULL,
                        "a table of more than 4 GB");
    SC_TRY(utf8_check(text, len, file, err));
    size_t n_lines = 1, n_cells = 1;
    for (size_t i = 0; i < len; i++) {
        n_lines += text[i] == '\n';
        n_cells += text[i] == '\n' || text[i] == ',';
    }
    sc_csv t = {.file = file};
    /* each cell is followed by a delimiter or the end, so with its
     * terminator it needs no more room than it has in the text */
    scan s = {text, text + len, sc_alloc(a, len + 1, 1), file, text, 1, err};
    t.header = SC_NEW_N(a, const char *, n_cells);
    t.line = SC_NEW_N(a, uint32_t, n_lines);
    if (s.to == NULL || t.header == NULL || t.line == NULL)
        return sc_error_nomem(err);
    skip_blank_lines(&s);
    if (s.at == s.end)
        return sc_error(err, SC_EINPUT, SC_C_SYNTAX, start,
                        "the first line names the columns", "an empty table");
    uint32_t line = s.line;
    SC_TRY(read_row(&s, t.header, &t.n_cols));
    t.cells = t.header + t.n_cols;
    sc_status bad_header = check_header(&t, line, err);
    sc_status bad_rows = read_rows(&s, &t);
    if (bad_header != SC_OK || bad_rows != SC_OK) return SC_EINPUT;
    *out = t;
    return SC_OK;
}

int sc_csv_col(const sc_csv *t, const char *name)
{
    for (uint32_t i = 0; i < t->n_cols; i++)
        if (strcmp(t->header[i], name) == 0) return (int)i;
    return -1;
}

const char *sc_csv_get(const sc_csv *t, uint32_t row, int col)
{
    if (col < 0) return "";
    return t->cells[(size_t)row * t->n_cols + (size_t)col];
}
