/* SPDX-License-Identifier: Apache-2.0 */
/* nccltests.c - reads the text that nccl-tests prints. */
#include "calib/nccltests.h"

#include "base/utf8.h"

#include <math.h>
#include <string.h>

typedef struct token {
    const char *s;
    size_t n;
} token;

typedef struct line {
    const char *s, *end;
    bool last; /* the text ends with this line and without a newline */
} line;

static sc_pos position(const nccl_reader *r, const char *at)
{
    return utf8_position(r->text, r->len, (size_t)(at - r->text), r->file);
}

static bool blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static bool digits(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (s[i] < '0' || s[i] > '9') return false;
    return n > 0;
}

static bool is(token t, const char *word)
{
    return strlen(word) == t.n && memcmp(t.s, word, t.n) == 0;
}

static token next(line *l)
{
    while (l->s < l->end && blank(*l->s)) l->s++;
    token t = {l->s, 0};
    while (l->s < l->end && !blank(*l->s)) l->s++;
    t.n = (size_t)(l->s - t.s);
    return t;
}

static const char *find(line l, const char *word)
{
    size_t n = strlen(word);
    for (const char *s = l.s; (size_t)(l.end - s) >= n; s++)
        if (memcmp(s, word, n) == 0) return s;
    return NULL;
}

/* ---- lines that say where it ran ------------------------------------------------ */

/* Skips the prefixes "[1,0]<stdout>:" of mpirun and "12: " of srun -l. */
static void strip_label(line *l)
{
    line rest = *l;
    token t = next(&rest);
    const char *mark = t.n && t.s[0] == '[' ? find(*l, "<std") : NULL;
    if (mark && (size_t)(mark - t.s) < t.n) {
        const char *s = mark;
        while (s < l->end && *s != '>') s++;
        if (s < l->end) s++;
        if (s < l->end && *s == ':') s++;
        l->s = s;
        return;
    }
    size_t n = 0;
    while (n < t.n && t.s[n] >= '0' && t.s[n] <= '9') n++;
    if (n > 0 && n < t.n && t.s[n] == ':' &&
        (n + 1 == t.n || t.s[n + 1] == '#'))
        l->s = t.s + n + 1;
}

/* "#  Rank  0 Group  0 Pid 123 on host device  0 [0x07] NVIDIA H100 ..." */
static sc_status device_line(nccl_reader *r, line l, const char *at)
{
    char host[256] = "", name[128] = "";
    token rank = {NULL, 0};
    line rest = {at, l.end, false};
    (void)next(&rest);
    rank = next(&rest);
    for (token t = next(&rest); t.n > 0; t = next(&rest)) {
        if (is(t, "on") && !host[0]) {
            t = next(&rest);
            if (t.n < sizeof host) memcpy(host, t.s, t.n);
        } else if (t.s[0] == '[') {
            while (t.n > 0 && t.s[t.n - 1] != ']' && rest.s < l.end)
                t = next(&rest);
            while (rest.s < l.end && blank(*rest.s)) rest.s++;
            while (rest.end > rest.s && blank(rest.end[-1])) rest.end--;
            size_t n = (size_t)(rest.end - rest.s);
            if (n < sizeof name) memcpy(name, rest.s, n);
            break;
        }
    }
    if (!digits(rank.s, rank.n) || rank.n > 8 || !host[0] || !name[0])
        return SC_OK; /* other output interrupts the line */
    return nccl_device(r, (uint32_t)nccl_number(rank.s, rank.n), host, name,
                       position(r, at));
}

/* "#  size  count  type  redop  root  time  algbw  busbw  #wrong  time ..." */
static void table_header(nccl_reader *r, line l)
{
    r->n_cols = 0;
    r->cpu = false;
    r->redop = r->root = -1;
    for (int k = 0; k < 2; k++)
        r->time[k] = r->algbw[k] = r->busbw[k] = r->wrong[k] = -1;
    for (token t = next(&l); t.n > 0 && r->n_cols < NCCL_COLUMNS;
         t = next(&l)) {
        int c = (int)r->n_cols, k = r->time[0] >= 0 && r->time[0] != c;
        if (is(t, "timestamp")) break;
        bool cpu = is(t, "cputime"), time = cpu || is(t, "time");
        r->cpu = r->cpu || cpu;
        if (is(t, "redop")) r->redop = c;
        if (is(t, "root")) r->root = c;
        if (time && r->time[k] < 0) r->time[k] = c;
        k = r->time[1] >= 0;
        if (is(t, "algbw") && r->algbw[k] < 0) r->algbw[k] = c;
        if (is(t, "busbw") && r->busbw[k] < 0) r->busbw[k] = c;
        if ((is(t, "#wrong") || is(t, "error")) && r->wrong[k] < 0)
            r->wrong[k] = c;
        r->n_cols++;
    }
}

static sc_status comment(nccl_reader *r, line l)
{
    const char *at = find(l, "Collective test starting:");
    l.s++;
    if (at) {
        line rest = {at, l.end, false};
        for (int i = 0; i < 3; i++) (void)next(&rest);
        token t = next(&rest);
        nccl_begin_test(r);
        nccl_name_test(r, nccl_program(t.s, t.n));
        return SC_OK;
    }
    if (find(l, "nThread")) {
        if (r->test.header || r->test.rows) nccl_begin_test(r);
        r->test.header = r->test.begun = true;
        return SC_OK;
    }
    at = find(l, "Rank");
    if (at && find(l, "device") && find(l, "Pid")) return device_line(r, l, at);
    if (find(l, "size") && find(l, "algbw") && find(l, "busbw"))
        table_header(r, l);
    return SC_OK;
}

/* ---- rows ------------------------------------------------------------------------ */

static bool is_type(token t)
{
    static const char *const types[] = {
        "int8",        "uint8",    "int32",  "uint32", "int64",
        "uint64",      "half",     "float",  "double", "bfloat16",
        "fp8_e4m3",    "fp8_e5m2", "f8e4m3", "f8e5m2", "float8_e4m3",
        "float8_e5m2", "char",     "int",    NULL};
    for (const char *const *name = types; *name; name++)
        if (is(t, *name)) return true;
    return false;
}

static bool torn(line l)
{
    static const char *const noise[] = {"NCCL",       "INFO", "WARN", "srun",
                                        "slurmstepd", "PMIX", "<std", NULL};
    for (const char *const *w = noise; *w; w++)
        if (find(l, *w)) return true;
    return false;
}

/* The number in cell `col`; NaN if there is no such cell or it contains
 * "N/A". */
static double cell(nccl_reader *r, const token *t, uint32_t n, int col,
                   const char *name)
{
    if (col < 0 || (uint32_t)col >= n || is(t[col], "N/A")) return NAN;
    double v = nccl_number(t[col].s, t[col].n);
    if (isnan(v))
        nccl_error(r, SC_C_TYPE, position(r, t[col].s), NULL,
                   "column '%s' is not a number: '%.*s'", name,
                   (int)(t[col].n < 40 ? t[col].n : 40), t[col].s);
    else if (v < 0)
        nccl_error(r, SC_C_RANGE, position(r, t[col].s), NULL,
                   "column '%s' is negative", name);
    else
        return v;
    return NAN;
}

static sc_status row(nccl_reader *r, const token *t, uint32_t n, line l)
{
    nccl_result v = {.pos = position(r, t[0].s), .reduces = -1, .rooted = -1};
    if (r->n_cols == 0) {
        nccl_error(r, SC_C_SYNTAX, v.pos, "keep the log's header lines",
                   "a result row comes before any header");
        return SC_OK;
    }
    if (n < r->n_cols) {
        if (l.last) return nccl_warn(r, v.pos, "the last row is not complete");
        nccl_error(
            r, SC_C_MISSING, v.pos, "a row has as many columns as the header",
            "the row has %u of %u columns", (unsigned)n, (unsigned)r->n_cols);
        return SC_OK;
    }
    v.cpu[0] = v.cpu[1] = r->cpu;
    uint32_t errors = r->err ? r->err->n + r->err->n_more : 0;
    v.bytes = cell(r, t, n, 0, "size");
    v.type = sc_strndup(r->a, t[2].s, t[2].n);
    if (!v.type) return sc_error_nomem(r->err);
    if (r->redop >= 0) v.reduces = !is(t[r->redop], "none");
    if (r->root >= 0) v.rooted = !is(t[r->root], "-1");
    v.wrong = 0;
    for (int k = 0; k < 2; k++) {
        v.time[k] = cell(r, t, n, r->time[k], "time");
        v.algbw[k] = cell(r, t, n, r->algbw[k], "algbw");
        v.busbw[k] = cell(r, t, n, r->busbw[k], "busbw");
        double wrong = cell(r, t, n, r->wrong[k], "#wrong");
        if (wrong > v.wrong) v.wrong = wrong;
    }
    if (r->err && r->err->n + r->err->n_more != errors) return SC_OK;
    return nccl_add(r, &v);
}

/* Whether a line is a row: at least two of its size, count and type look right.
 * Before a header all three have to, because launchers print lines of their
 * own. */
static bool is_row(const nccl_reader *r, const token *t, uint32_t n)
{
    if (n < 4) return false;
    int like = digits(t[0].s, t[0].n) + digits(t[1].s, t[1].n) + is_type(t[2]);
    return like == 3 || (like == 2 && r->n_cols > 0 && n >= r->n_cols);
}

static sc_status read_line(nccl_reader *r, line l)
{
    token t[NCCL_COLUMNS + 4];
    uint32_t n = 0;
    strip_label(&l);
    line rest = l;
    for (token w = next(&rest); w.n > 0 && n < SC_COUNT(t); w = next(&rest))
        t[n++] = w;
    if (n == 0) return SC_OK;
    if (t[0].s[0] == '#') {
        l.s = t[0].s;
        return comment(r, l);
    }
    if (is_row(r, t, n)) {
        if (torn(l))
            return nccl_skip(r, position(r, t[0].s),
                             "a row torn apart by other output is skipped",
                             false);
        return row(r, t, n, l);
    }
    for (uint32_t i = 0; i < n; i++) {
        int c = nccl_program(t[i].s, t[i].n);
        if (c != -1) r->mentioned = c;
    }
    return SC_OK;
}

/* ---- files ------------------------------------------------------------------------- */

static sc_status read_text(nccl_reader *r)
{
    for (size_t i = 0; i < r->len;) {
        const char *nl = memchr(r->text + i, '\n', r->len - i);
        size_t end = nl ? (size_t)(nl - r->text) : r->len;
        SC_TRY(read_line(r, (line){r->text + i, r->text + end, !nl}));
        i = end + 1;
        r->lines++;
    }
    return SC_OK;
}

static bool is_json(const char *text, size_t len)
{
    size_t i = 0;
    while (i < len && (blank(text[i]) || text[i] == '\n')) i++;
    return i < len && text[i] == '{';
}

static sc_status no_rows(const nccl_reader *r)
{
    const char *nul = r->len ? memchr(r->text, '\0', r->len) : NULL;
    if (nul)
        return sc_error(r->err, SC_EINPUT, SC_C_SYNTAX, position(r, nul),
                        "is it a text file?", "the file has a NUL byte");
    if (r->out.n_skipped > 0)
        return sc_error(r->err, SC_EINPUT, SC_C_MISSING, r->skipped_at,
                        r->skipped, "no usable row of nccl-tests, %u skipped",
                        (unsigned)r->out.n_skipped);
    return sc_error(r->err, SC_EINPUT, SC_C_MISSING, sc_pos_file(r->file),
                    "did the job start? launchers often leave only their own "
                    "messages",
                    "no result rows of nccl-tests in %u lines",
                    (unsigned)r->lines);
}

sc_status sc_nccl_tests_read(const char *text, size_t len, const char *file,
                             const sc_nccl_opts *o, sc_arena *a,
                             sc_nccl_log *out, sc_err *err)
{
    static const sc_nccl_opts none = {.coll = SC_INFER};
    nccl_reader r = {.text = text,
                     .file = file,
                     .len = len,
                     .o = o ? o : &none,
                     .a = a,
                     .err = err,
                     .mentioned = -1};
    const char *slash = strrchr(file, '/');
    const char *name = slash ? slash + 1 : file;
    nccl_begin_test(&r);
    if (is_json(text, len)) {
        for (size_t i = 0; i < len; i++) r.lines += text[i] == '\n';
        SC_TRY(nccl_read_json(&r));
    } else {
        r.mentioned = nccl_program(name, strlen(name));
        SC_TRY(read_text(&r));
    }
    SC_TRY(r.status);
    if (r.out.n_rows == 0) return no_rows(&r);
    r.out.n_tables = r.tables;
    *out = r.out;
    return SC_OK;
}
