/* SPDX-License-Identifier: Apache-2.0 */
/* nccltests.c - reads the text that nccl-tests prints. */
#include "coll/nccltests.h"

#include "base/utf8.h"

#include <math.h>
#include <string.h>

static sc_pos position(const nccl_reader *r, const char *at)
{
    return utf8_position(r->text, r->len, (size_t)(at - r->text), r->file);
}

/* ---- lines that say where it ran ------------------------------------------------ */

/* "#  Rank  0 Group  0 Pid 123 on host device  0 [0x07] NVIDIA H100 ..." */
static sc_status device_line(nccl_reader *r, log_line l, const char *at)
{
    char host[256] = "", name[128] = "";
    log_word rank = {NULL, 0};
    log_line rest = {at, l.end, false};
    (void)log_next(&rest);
    rank = log_next(&rest);
    for (log_word t = log_next(&rest); t.n > 0; t = log_next(&rest)) {
        if (log_is(t, "on") && !host[0]) {
            t = log_next(&rest);
            if (t.n < sizeof host) memcpy(host, t.s, t.n);
        } else if (t.s[0] == '[') {
            while (t.n > 0 && t.s[t.n - 1] != ']' && rest.s < l.end)
                t = log_next(&rest);
            while (rest.s < l.end && log_is_blank(*rest.s)) rest.s++;
            while (rest.end > rest.s && log_is_blank(rest.end[-1])) rest.end--;
            size_t n = (size_t)(rest.end - rest.s);
            if (n < sizeof name) memcpy(name, rest.s, n);
            break;
        }
    }
    if (!log_is_digits(rank) || rank.n > 8 || !host[0] || !name[0])
        return SC_OK; /* other output interrupts the line */
    return nccl_device(r, (uint32_t)log_number(rank), host, name,
                       position(r, at));
}

/* "#  size  count  type  redop  root  time  algbw  busbw  #wrong  time ..." */
static void table_header(nccl_reader *r, log_line l)
{
    r->n_cols = 0;
    r->cpu = false;
    r->redop = r->root = -1;
    for (int k = 0; k < 2; k++)
        r->time[k] = r->algbw[k] = r->busbw[k] = r->wrong[k] = -1;
    for (log_word t = log_next(&l); t.n > 0 && r->n_cols < NCCL_COLUMNS;
         t = log_next(&l)) {
        int c = (int)r->n_cols, k = r->time[0] >= 0 && r->time[0] != c;
        if (log_is(t, "timestamp")) break;
        bool cpu = log_is(t, "cputime"), time = cpu || log_is(t, "time");
        r->cpu = r->cpu || cpu;
        if (log_is(t, "redop")) r->redop = c;
        if (log_is(t, "root")) r->root = c;
        if (time && r->time[k] < 0) r->time[k] = c;
        k = r->time[1] >= 0;
        if (log_is(t, "algbw") && r->algbw[k] < 0) r->algbw[k] = c;
        if (log_is(t, "busbw") && r->busbw[k] < 0) r->busbw[k] = c;
        if ((log_is(t, "#wrong") || log_is(t, "error")) && r->wrong[k] < 0)
            r->wrong[k] = c;
        r->n_cols++;
    }
}

static sc_status comment(nccl_reader *r, log_line l)
{
    const char *at = log_find(l, "Collective test starting:");
    l.s++;
    if (at) {
        log_line rest = {at, l.end, false};
        for (int i = 0; i < 3; i++) (void)log_next(&rest);
        log_word t = log_next(&rest);
        nccl_begin_test(r);
        nccl_name_test(r, nccl_program(t.s, t.n));
        return SC_OK;
    }
    if (log_find(l, "nThread")) {
        if (r->test.header || r->test.rows) nccl_begin_test(r);
        r->test.header = r->test.begun = true;
        return SC_OK;
    }
    at = log_find(l, "Rank");
    if (at && log_find(l, "device") && log_find(l, "Pid"))
        return device_line(r, l, at);
    if (log_find(l, "size") && log_find(l, "algbw") && log_find(l, "busbw"))
        table_header(r, l);
    return SC_OK;
}

/* ---- rows ------------------------------------------------------------------------ */

static bool is_type(log_word t)
{
    static const char *const types[] = {
        "int8",        "uint8",    "int32",  "uint32", "int64",
        "uint64",      "half",     "float",  "double", "bfloat16",
        "fp8_e4m3",    "fp8_e5m2", "f8e4m3", "f8e5m2", "float8_e4m3",
        "float8_e5m2", "char",     "int",    NULL};
    for (const char *const *name = types; *name; name++)
        if (log_is(t, *name)) return true;
    return false;
}

static bool torn(log_line l)
{
    static const char *const noise[] = {"NCCL",       "INFO", "WARN", "srun",
                                        "slurmstepd", "PMIX", "<std", NULL};
    for (const char *const *w = noise; *w; w++)
        if (log_find(l, *w)) return true;
    return false;
}

/* The number in cell `col`; NaN if there is no such cell or it contains
 * "N/A". */
static double cell(nccl_reader *r, const log_word *t, uint32_t n, int col,
                   const char *name)
{
    if (col < 0 || (uint32_t)col >= n || log_is(t[col], "N/A")) return NAN;
    double v = log_number(t[col]);
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

static sc_status row(nccl_reader *r, const log_word *t, uint32_t n, log_line l)
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
    if (r->redop >= 0) v.reduces = !log_is(t[r->redop], "none");
    if (r->root >= 0) v.rooted = !log_is(t[r->root], "-1");
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
static bool is_row(const nccl_reader *r, const log_word *t, uint32_t n)
{
    if (n < 4) return false;
    int like = log_is_digits(t[0]) + log_is_digits(t[1]) + is_type(t[2]);
    return like == 3 || (like == 2 && r->n_cols > 0 && n >= r->n_cols);
}

static sc_status read_line(nccl_reader *r, log_line l)
{
    log_word t[NCCL_COLUMNS + 4];
    uint32_t n = 0;
    log_skip_label(&l);
    log_line rest = l;
    for (log_word w = log_next(&rest); w.n > 0 && n < SC_COUNT(t);
         w = log_next(&rest))
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
        SC_TRY(read_line(r, log_line_next(r->text, r->len, &i)));
        r->lines++;
    }
    return SC_OK;
}

static bool is_json(const char *text, size_t len)
{
    size_t i = 0;
    while (i < len && (log_is_blank(text[i]) || text[i] == '\n')) i++;
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
    static const sc_nccl_opts none = {.coll = -1};
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
