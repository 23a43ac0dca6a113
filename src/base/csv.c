/* SPDX-License-Identifier: Apache-2.0 */
/* csv.c - tables with a header line (RFC 4180). */
#include "base/utf8.h"
#include "base/util.h"

#include <string.h>

typedef struct scan {
    const char *at, *end; /* the text that is not read yet */
    char *to;             /* where the next cell is written */
    const char *file;
    uint32_t line;
    const char *counted; /* column `col` of this line */
    uint32_t col;
    sc_err *err;
} scan;

/* Lines are counted once, because `at` never moves back. */
static sc_pos here(scan *s, const char *at)
{
    for (; s->counted < at; s->counted++)
        s->col += ((unsigned char)*s->counted & 0xC0) != 0x80;
    return (sc_pos){s->file, s->line, s->col};
}

static void new_line(scan *s, const char *start)
{
    s->line++;
    s->counted = start;
    s->col = 1;
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
    new_line(s, s->at);
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
            new_line(s, s->at + 1);
        }
        *s->to++ = *s->at;
    }
    if (!closed)
        return sc_error(s->err, SC_EINPUT, SC_C_SYNTAX, open, NULL,
                        "a quoted cell is not closed");
    if (!at_line_end(s) && *s->at != ',')
        return sc_error(s->err, SC_EINPUT, SC_C_SYNTAX, here(s, s->at),
                        "write a quote inside a quoted cell twice",
                        "text follows the closing quote of a cell");
    return SC_OK;
}

static sc_status plain_cell(scan *s)
{
    for (; !at_line_end(s) && *s->at != ','; s->at++) {
        if (*s->at == '"')
            return sc_error(s->err, SC_EINPUT, SC_C_SYNTAX, here(s, s->at),
                            "put the whole cell in quotes",
                            "a cell without quotes contains a quote");
        *s->to++ = *s->at;
    }
    return SC_OK;
}

/* Splits one line into cells[0..*n) and their places into at[0..*n); its cells
 * were counted before. After a wrong cell the rest of the line is skipped. */
static sc_status read_row(scan *s, const char **cells, sc_csv_at *at,
                          uint32_t *n)
{
    sc_status status = SC_OK;
    *n = 0;
    for (;;) {
        sc_pos pos = here(s, s->at);
        at[*n] = (sc_csv_at){pos.line, pos.col};
        cells[(*n)++] = s->to;
        bool quoted = s->at < s->end && *s->at == '"';
        status = quoted ? quoted_cell(s) : plain_cell(s);
        *s->to++ = '\0';
        if (status != SC_OK || at_line_end(s)) break;
        s->at++; /* the comma */
    }
    while (!at_line_end(s)) s->at++;
    skip_line_end(s);
    return status;
}

static void skip_blank_lines(scan *s)
{
    while (s->at < s->end && at_line_end(s)) skip_line_end(s);
}

static sc_status check_header(const sc_csv *t, const sc_csv_at *at, sc_err *err)
{
    sc_status first = SC_OK;
    for (uint32_t i = 0; i < t->n_cols; i++) {
        if (t->header[i][0] == '\0' ||
            sc_csv_col(t, t->header[i]) == (int)i) /* it is the first column of
                                                      its name */
            continue;
        sc_pos pos = {t->file, at[i].line, at[i].col};
        first =
            sc_error(err, SC_EINPUT, SC_C_DUPLICATE, pos, NULL,
                     "column \"%s\" occurs twice in the header", t->header[i]);
    }
    return first;
}

/* The position of the first surplus cell, or of the last cell if there are too
 * few. */
static sc_status wrong_count(const scan *s, const sc_csv *t, uint32_t n,
                             const sc_csv_at *at)
{
    const sc_csv_at *cell = &at[n > t->n_cols ? t->n_cols : n - 1];
    return sc_error(s->err, SC_EINPUT, SC_C_SYNTAX,
                    (sc_pos){s->file, cell->line, cell->col},
                    "every row needs as many cells as the header",
                    "%u cells in a row of a table of %u columns", (unsigned)n,
                    (unsigned)t->n_cols);
}

static sc_status read_rows(scan *s, sc_csv *t)
{
    sc_status first = SC_OK;
    for (skip_blank_lines(s); s->at < s->end; skip_blank_lines(s)) {
        uint32_t n, line = s->line;
        size_t at = (size_t)t->n_rows * t->n_cols;
        sc_status status = read_row(s, t->cells + at, t->at + at, &n);
        if (status == SC_OK && n == t->n_cols) {
            t->line[t->n_rows++] = line;
            continue;
        }
        if (status == SC_OK) status = wrong_count(s, t, n, t->at + at);
        if (first == SC_OK) first = status;
    }
    return first;
}

sc_status sc_csv_read(const char *text, size_t len, const char *file,
                      sc_arena *a, sc_csv *out, sc_err *err)
{
    if (len >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0) {
        text += 3;
        len -= 3;
    }
    sc_pos start = {file, 1, 1};
    if (len >= UINT32_MAX)
        return sc_error(err, SC_EINPUT, SC_C_TOO_BIG, start, NULL,
                        "the table is larger than 4 GB");
    SC_TRY(utf8_check(text, len, file, err));
    size_t n_lines = 1, n_cells = 1;
    for (size_t i = 0; i < len; i++) {
        n_lines += text[i] == '\n';
        n_cells += text[i] == '\n' || text[i] == ',';
    }
    sc_csv t = {.file = file};
    /* a cell and its terminator need no more room than in the text, where a
     * delimiter or the end follows it */
    scan s = {text, text + len, sc_alloc(a, len + 1, 1), file, 1, text, 1, err};
    t.header = SC_NEW_N(a, const char *, n_cells);
    t.at = SC_NEW_N(a, sc_csv_at, n_cells);
    t.line = SC_NEW_N(a, uint32_t, n_lines);
    if (s.to == NULL || t.header == NULL || t.line == NULL || t.at == NULL)
        return sc_error_nomem(err);
    skip_blank_lines(&s);
    if (s.at == s.end)
        return sc_error(err, SC_EINPUT, SC_C_SYNTAX, start,
                        "the first line names the columns",
                        "the table is empty");
    SC_TRY(read_row(&s, t.header, t.at, &t.n_cols));
    sc_status bad_header = check_header(&t, t.at, err);
    t.cells = t.header + t.n_cols;
    t.at += t.n_cols;
    sc_status bad_rows = read_rows(&s, &t);
    *out = t;
    return bad_header != SC_OK ? bad_header : bad_rows;
}

sc_status sc_csv_parse(const char *text, size_t len, const char *file,
                       sc_arena *a, sc_csv *out, sc_err *err)
{
    sc_csv t;
    SC_TRY(sc_csv_read(text, len, file, a, &t, err));
    *out = t;
    return SC_OK;
}

sc_pos sc_csv_pos(const sc_csv *t, uint32_t row, int col)
{
    if (col < 0) return (sc_pos){t->file, t->line[row], 0};
    const sc_csv_at *at = &t->at[(size_t)row * t->n_cols + (size_t)col];
    return (sc_pos){t->file, at->line, at->col};
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
