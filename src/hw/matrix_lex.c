/* SPDX-License-Identifier: Apache-2.0 */
/* matrix_lex.c - splits the output of `nvidia-smi topo -m` into columns, rows
 * and cells. */
#include "hw/matrix_lex.h"

#include "base/utf8.h"

#include <stdio.h>
#include <string.h>

typedef struct word {
    size_t at, len;
    uint32_t tabs; /* tabs between this word and the previous one */
} word;

/* GPUs, adapters, and the last three columns. */
#define MAX_WORDS (HW_MATRIX_SIDE + 16)

typedef struct line {
    size_t at; /* offset of its start */
    uint32_t n, left_out;
    word *word; /* [n] */
} line;

typedef struct reader {
    hw_matrix *m;
    size_t at; /* next line */
    line now;
    bool *seen;       /* [n] rows */
    uint32_t n_extra; /* columns after the names: CPU, NUMA, GPU NUMA */
    sc_arena *arena;
    sc_err *err;
    sc_status status; /* status of the first error; reading continues */
} reader;

static void note(reader *r, sc_status s)
{
    if (r->status == SC_OK) r->status = s;
}

static sc_pos place(const reader *r, size_t at)
{
    return utf8_position(r->m->text, r->m->len, at, r->m->file);
}

/* ---- words ---- */

/* The length of an escape sequence at the offset: ESC [ parameters letter. */
static size_t escape(const hw_matrix *m, size_t at)
{
    if (m->text[at] != '\033') return 0;
    size_t end = at + 1;
    if (end >= m->len || m->text[end] != '[') return 1;
    end++;
    while (end < m->len && strchr("0123456789;:?", m->text[end]) != NULL &&
           m->text[end] != '\0')
        end++;
    int last = end < m->len ? m->text[end] : '\n';
    bool letter = (last >= 'a' && last <= 'z') || (last >= 'A' && last <= 'Z');
    return end - at + (letter ? 1 : 0);
}

static size_t blank(const hw_matrix *m, size_t at, uint32_t *tabs)
{
    char c = m->text[at];
    if (c == '\t') ++*tabs;
    if (c == ' ' || c == '\t' || c == '\r') return 1;
    return escape(m, at);
}

/* Splits the next line into words; false at the end of the text. */
static bool next_line(reader *r)
{
    const hw_matrix *m = r->m;
    line *l = &r->now;
    size_t at = r->at;
    uint32_t tabs = 0;
    if (at >= m->len) return false;
    l->at = at;
    l->n = l->left_out = 0;
    while (at < m->len && m->text[at] != '\n') {
        size_t skip = blank(m, at, &tabs);
        if (skip > 0) {
            at += skip;
            continue;
        }
        uint32_t none = 0;
        word w = {at, 0, tabs};
        while (at < m->len && m->text[at] != '\n' && blank(m, at, &none) == 0)
            at++;
        w.len = at - w.at;
        tabs = 0;
        if (l->n < MAX_WORDS)
            l->word[l->n++] = w;
        else
            l->left_out++;
    }
    r->at = at + 1;
    return true;
}

static bool is(const reader *r, const word *w, const char *text)
{
    return w->len == strlen(text) &&
           memcmp(r->m->text + w->at, text, w->len) == 0;
}

/* The number behind a prefix: "GPU12", "NV4". */
static bool numbered(const reader *r, const word *w, const char *prefix,
                     uint32_t *out)
{
    size_t skip = strlen(prefix);
    *out = 0;
    if (w->len <= skip || w->len > skip + 4 ||
        memcmp(r->m->text + w->at, prefix, skip) != 0)
        return false;
    for (size_t i = skip; i < w->len; i++) {
        char c = r->m->text[w->at + i];
        if (c < '0' || c > '9') return false;
        *out = *out * 10 + (uint32_t)(c - '0');
    }
    return true;
}

static const char *copy(const reader *r, const word *w)
{
    return sc_strndup(r->arena, r->m->text + w->at, w->len);
}

/* ---- cells ---- */

static const struct {
    const char *text;
    hw_near near;
} nears[] = {{"X", HW_NEAR_SELF},  {"PIX", HW_NEAR_PIX},   {"PXB", HW_NEAR_PXB},
             {"PHB", HW_NEAR_PHB}, {"NODE", HW_NEAR_NODE}, {"SYS", HW_NEAR_SYS},
             {"SOC", HW_NEAR_SYS}};

/* The last row is how SYS was called before 2017. */
static bool cell_of(const reader *r, const word *w, hw_cell *out)
{
    uint32_t links;
    *out = (hw_cell){HW_NEAR_SYS, 0};
    for (size_t i = 0; i < SC_COUNT(nears); i++)
        if (is(r, w, nears[i].text)) {
            out->near = (uint8_t)nears[i].near;
            return true;
        }
    if (!numbered(r, w, "NV", &links) || links == 0 || links > UINT8_MAX)
        return false;
    *out = (hw_cell){HW_NEAR_NVLINK, (uint8_t)links};
    return true;
}

/* ---- the header ---- */

/* Whether a line starts with a GPU and continues with a name, not a cell. */
static bool is_header(const reader *r)
{
    const line *l = &r->now;
    uint32_t dev;
    hw_cell c;
    return l->n > 0 && numbered(r, &l->word[0], "GPU", &dev) &&
           (l->n == 1 || !cell_of(r, &l->word[1], &c));
}

/* Names end where "CPU Affinity", "NUMA Affinity" or "GPU NUMA ID" start. */
static uint32_t count_names(reader *r)
{
    const line *l = &r->now;
    uint32_t n = 0;
    while (n < l->n && !is(r, &l->word[n], "CPU") &&
           !is(r, &l->word[n], "NUMA") && !is(r, &l->word[n], "GPU"))
        n++;
    for (uint32_t i = n; i < l->n; i++)
        r->n_extra +=
            is(r, &l->word[i], "Affinity") || is(r, &l->word[i], "ID");
    return n;
}

static sc_status make_room(reader *r, uint32_t n)
{
    hw_matrix *m = r->m;
    m->n = n;
    m->name = SC_NEW_N(r->arena, const char *, n + 1);
    m->gpu = SC_NEW_N(r->arena, bool, n);
    m->dev = SC_NEW_N(r->arena, uint32_t, n);
    m->row = SC_NEW_N(r->arena, sc_pos, n);
    m->cell = SC_NEW_N(r->arena, hw_cell, (size_t)n * n);
    m->offset = SC_NEW_N(r->arena, size_t, (size_t)n * n);
    m->numa = SC_NEW_N(r->arena, const char *, n);
    r->seen = SC_NEW_N(r->arena, bool, n);
    if (m->name == NULL || m->gpu == NULL || m->dev == NULL || m->row == NULL ||
        m->cell == NULL || m->offset == NULL || m->numa == NULL ||
        r->seen == NULL)
        return sc_error_nomem(r->err);
    return SC_OK;
}

static sc_status read_header(reader *r)
{
    const line *l = &r->now;
    uint32_t n = count_names(r);
    if (l->left_out > 0 || n > HW_MATRIX_SIDE)
        return sc_error(r->err, SC_EINPUT, SC_C_TOO_BIG, place(r, l->at), NULL,
                        "the table has more than %u columns", HW_MATRIX_SIDE);
    SC_TRY(make_room(r, n));
    for (uint32_t i = 0; i < n; i++) {
        const word *w = &l->word[i];
        hw_matrix *m = r->m;
        m->name[i] = copy(r, w);
        if (m->name[i] == NULL) return sc_error_nomem(r->err);
        m->gpu[i] = numbered(r, w, "GPU", &m->dev[i]);
        for (uint32_t k = 0; k < i; k++)
            if (strcmp(m->name[k], m->name[i]) == 0)
                note(r, sc_error(r->err, SC_EINPUT, SC_C_DUPLICATE,
                                 place(r, w->at), NULL,
                                 "column %.40s is there twice", m->name[i]));
    }
    return SC_OK;
}

/* ---- rows ---- */

/* Finds the columns after the cells. An empty CPU affinity is two tabs in a
 * row, so the line has one word less than columns. */
static sc_status read_affinity(reader *r, uint32_t row)
{
    const line *l = &r->now;
    uint32_t first = r->m->n + 1, rest = l->n - first;
    const word *w = &l->word[first];
    if (rest == 0) return SC_OK;
    bool skipped = w->tabs > 1 ||
                   (w->tabs == 0 && rest + 1 == r->n_extra && r->n_extra == 3);
    if (!skipped && rest > 1 && r->n_extra > 1) w++;
    if (is(r, w, "N/A")) w = &l->word[first];
    if (is(r, w, "N/A")) return SC_OK;
    r->m->numa[row] = copy(r, w);
    return r->m->numa[row] == NULL ? sc_error_nomem(r->err) : SC_OK;
}

static void read_cell(reader *r, uint32_t row, uint32_t col)
{
    static const char *const words[] = {"X",    "PIX", "PXB", "PHB",
                                        "NODE", "SYS", NULL};
    hw_matrix *m = r->m;
    size_t i = (size_t)row * m->n + col;
    const word *w = &r->now.word[col + 1];
    m->offset[i] = w->at;
    if (cell_of(r, w, &m->cell[i])) {
        bool self = m->cell[i].near == HW_NEAR_SELF;
        if (self == (row == col)) return;
        note(r, sc_error(r->err, SC_EINPUT, SC_C_CONFLICT, place(r, w->at),
                         "write X where row and column are the same device",
                         "%.40s and %.40s are %s device", m->name[row],
                         m->name[col], self ? "no single" : "the same"));
        return;
    }
    char text[24], hint[64];
    snprintf(text, sizeof text, "%.*s", w->len < 20 ? (int)w->len : 20,
             m->text + w->at);
    const char *near = sc_nearest(text, words);
    if (near != NULL) snprintf(hint, sizeof hint, "did you mean %s?", near);
    note(r, sc_error(r->err, SC_EINPUT, SC_C_UNKNOWN_NAME, place(r, w->at),
                     near != NULL ? hint
                                  : "a cell is X, NV#, PIX, PXB, PHB, NODE or "
                                    "SYS",
                     "\"%s\" is not a connection", text));
}

static sc_status read_row(reader *r, uint32_t row)
{
    const line *l = &r->now;
    hw_matrix *m = r->m;
    m->row[row] = place(r, l->word[0].at);
    if (r->seen[row])
        note(r, sc_error(r->err, SC_EINPUT, SC_C_DUPLICATE, m->row[row], NULL,
                         "row %.40s is there twice", m->name[row]));
    r->seen[row] = true;
    if (l->n < m->n + 1) {
        note(r, sc_error(r->err, SC_EINPUT, SC_C_MISSING, m->row[row], NULL,
                         "row %.40s has only %u of %u cells", m->name[row],
                         l->n - 1, m->n));
        return SC_OK;
    }
    for (uint32_t c = 0; c < m->n; c++) read_cell(r, row, c);
    return m->gpu[row] ? read_affinity(r, row) : SC_OK;
}

static uint32_t row_of(const reader *r)
{
    uint32_t row = 0;
    while (row < r->m->n && !is(r, &r->now.word[0], r->m->name[row])) row++;
    return row;
}

/* Ends with the last row, because the rest of the text is a legend. */
static sc_status read_rows(reader *r)
{
    uint32_t n = 0;
    while (n < r->m->n && next_line(r)) {
        if (r->now.n == 0) continue;
        if (is(r, &r->now.word[0], "Legend:")) break;
        uint32_t row = row_of(r);
        if (row == r->m->n) {
            note(r, sc_error(r->err, SC_EINPUT, SC_C_REFERENCE,
                             place(r, r->now.word[0].at), NULL,
                             "no column has the name of this row"));
            continue;
        }
        n += !r->seen[row];
        SC_TRY(read_row(r, row));
    }
    for (uint32_t i = 0; i < r->m->n; i++)
        if (!r->seen[i])
            note(r, sc_error(r->err, SC_EINPUT, SC_C_MISSING,
                             sc_pos_file(r->m->file), NULL,
                             "column %.40s has no row", r->m->name[i]));
    return SC_OK;
}

/* Checks that the table is symmetric. */
static void check_symmetry(reader *r)
{
    const hw_matrix *m = r->m;
    for (uint32_t i = 0; i < m->n; i++)
        for (uint32_t k = 0; k < i; k++) {
            hw_cell x = m->cell[i * m->n + k], y = m->cell[k * m->n + i];
            if (x.near == y.near && x.links == y.links) continue;
            note(r, sc_error(r->err, SC_EINPUT, SC_C_CONFLICT,
                             hw_matrix_pos(m, i, k), NULL,
                             "%.40s to %.40s differs from %.40s to %.40s",
                             m->name[i], m->name[k], m->name[k], m->name[i]));
        }
}

sc_pos hw_matrix_pos(const hw_matrix *m, uint32_t row, uint32_t col)
{
    return utf8_position(m->text, m->len, m->offset[row * m->n + col], m->file);
}

#define MAX_BYTES ((size_t)4 << 20)

sc_status hw_matrix_parse(const char *text, size_t len, const char *file,
                          sc_arena *a, hw_matrix *out, sc_err *err)
{
    *out = (hw_matrix){.file = file, .text = text, .len = len};
    reader r = {.m = out, .arena = a, .err = err};
    if (len > MAX_BYTES)
        return sc_error(err, SC_EINPUT, SC_C_TOO_BIG, sc_pos_file(file), NULL,
                        "%zu bytes are too many for a table of a node", len);
    SC_TRY(utf8_check(text, len, file, err));
    r.now.word = SC_NEW_N(a, word, MAX_WORDS);
    if (r.now.word == NULL) return sc_error_nomem(err);
    bool found = false;
    while (!found && next_line(&r)) found = is_header(&r);
    if (!found)
        return sc_error(err, SC_EINPUT, SC_C_SYNTAX, sc_pos_file(file),
                        "write it with nvidia-smi topo -m",
                        "no line starts with GPU0 and names the columns");
    SC_TRY(read_header(&r));
    SC_TRY(read_rows(&r));
    if (r.status == SC_OK) check_symmetry(&r);
    return r.status;
}
