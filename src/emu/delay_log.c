/* SPDX-License-Identifier: Apache-2.0 */
/*
 * delay_log.c - logs of benchmarks as rows of a table: the OSU
 * micro-benchmarks, the Intel MPI Benchmarks (IMB), NetPIPE 3 and nccl-tests,
 * one after the other in one file.
 *
 * A title begins a section, whose lines of numbers are rows. Other lines, which
 * launchers write, are ignored.
 */
#include "base/logline.h"
#include "base/utf8.h"
#include "coll/coll_nccltests.h"
#include "emu/delay_file.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define COLUMNS   16
#define MAX_RANKS 1e9

typedef enum program { NO_PROGRAM, OSU, IMB, NETPIPE, NCCL_TESTS } program;

/* What a benchmark measures. */
typedef struct benchmark {
    const char *osu, *imb; /* its titles; NULL: the suite has none */
    sc_coll coll;
    bool per_rank; /* `bytes` are those that a rank, of all-to-all a pair of
                      ranks, exchanges: n times as many make nccl-tests' V */
} benchmark;

static const benchmark benchmarks[] = {
    {"Allreduce Latency", "Allreduce", SC_ALL_REDUCE, false},
    {"Allgather Latency", "Allgather", SC_ALL_GATHER, true},
    {"Reduce_scatter Latency", "Reduce_scatter", SC_REDUCE_SCATTER, false},
    {"All-to-All Personalized Exchange Latency", "Alltoall", SC_ALL_TO_ALL,
     true},
    {"Broadcast Latency", "Bcast", SC_BROADCAST, false},
    {"Reduce Latency", "Reduce", SC_REDUCE, false},
    {"Gather Latency", "Gather", SC_GATHER, true},
    {"Scatter Latency", "Scatter", SC_SCATTER, true},
    {"Barrier Latency", "Barrier", SC_BARRIER, false},
    {"Latency", "PingPong", SC_SEND, false},
    {NULL, "Reduce_scatter_block", SC_REDUCE_SCATTER, true},
};

typedef struct reader {
    const char *text, *file;
    size_t len;
    sc_arena *a;
    sc_err *err;
    sc_status first;
    uint32_t line;
    log_line at; /* the current line, whole */

    uint32_t given;   /* ranks=N of the option; 0: absent */
    uint32_t written; /* of the last line "# ranks: N"; 0: none yet */

    /* the section */
    program from;
    const benchmark *is; /* NULL: its rows are ignored */
    uint32_t ranks;      /* 0: not known */
    sc_pos title;
    int bytes, time; /* columns; -1: absent */
    uint32_t n_columns;
    bool reported; /* that its ranks are not known */

    bool nccl, nccl_ranks; /* there is a log of nccl-tests; it lists ranks */
    delay_row *row;
    uint32_t n, cap;
} reader;

static sc_pos position(const reader *r, const char *s)
{
    sc_pos p = utf8_position(r->at.s, (size_t)(r->at.end - r->at.s),
                             (size_t)(s - r->at.s), r->file);
    p.line = r->line;
    return p;
}

static void SC_PRINTF(5, 6) report(reader *r, sc_code code, sc_pos pos,
                                   const char *hint, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    sc_error_v(r->err, &r->first, SC_EINPUT, code, pos, hint, fmt, args);
    va_end(args);
}

/* ---- rows ---------------------------------------------------------------- */

static bool number(reader *r, log_word w, double high, bool whole, double *out)
{
    *out = log_number(w);
    const char *bad = NULL;
    if (isnan(*out))
        bad = "is not a number";
    else if (*out < 0 || *out > high)
        bad = "is out of range";
    else if (whole && *out != floor(*out))
        bad = "is not a whole number";
    if (bad == NULL) return true;
    report(r, isnan(*out) ? SC_C_TYPE : SC_C_RANGE, position(r, w.s), NULL,
           "'%.*s' %s", (int)(w.n < 40 ? w.n : 40), w.s, bad);
    return false;
}

static sc_status add(reader *r, const delay_row *row)
{
    void *rows = sc_grow(r->a, r->row, r->n, &r->cap, 64, sizeof *r->row);
    if (rows == NULL) return sc_error_nomem(r->err);
    r->row = rows;
    r->row[r->n++] = *row;
    return SC_OK;
}

static sc_status add_message(reader *r, double bytes, double seconds)
{
    delay_row row = {.op = SC_SEND, .ranks = 2, .bytes = bytes, .cpu = -1};
    row.time = seconds;
    return add(r, &row);
}

/* The number of ranks of the section; 0, after an error, if it is not known. */
static uint32_t ranks_of(reader *r)
{
    if (r->is->coll == SC_SEND) return 2;
    if (r->ranks > 0) return r->ranks;
    if (r->written > 0) return r->written;
    if (r->given > 0) return r->given;
    if (!r->reported)
        report(r, SC_C_MISSING, r->title,
               "write table:FILE,ranks=16, or a line '# ranks: 16' above it",
               "the log does not name the number of ranks");
    r->reported = true;
    return 0;
}

static sc_status row(reader *r, const log_word *w, uint32_t n)
{
    delay_row row = {.cpu = -1};
    /* IMB writes why it leaves out a size: "4194304 time-out.; ..." */
    if (r->from == IMB && n > 1 &&
        (log_is(w[1], "time-out.;") || log_is(w[1], "out-of-mem.;") ||
         log_is(w[1], "int.-overflow.;")))
        return SC_OK;
    if (r->n_columns == 0) {
        report(r, SC_C_SYNTAX, position(r, w[0].s), "keep the log's headers",
               "a row of numbers comes before the names of its columns");
        return SC_OK;
    }
    if (n < r->n_columns) {
        report(r, SC_C_MISSING, position(r, w[0].s),
               r->at.last ? "the log ends inside the row: remove the row"
                          : NULL,
               "the row has %u of %u columns", (unsigned)n,
               (unsigned)r->n_columns);
        return SC_OK;
    }
    uint32_t ranks = ranks_of(r);
    bool good = ranks > 0;
    if (r->bytes >= 0)
        good =
            number(r, w[r->bytes], DELAY_MAX_BYTES, true, &row.bytes) && good;
    if (!number(r, w[r->time], DELAY_MAX_US, false, &row.time) || !good)
        return SC_OK;
    /* a collective of no bytes returns at once, which is no latency */
    if (ranks < 2 ||
        (row.bytes == 0 && r->is->coll != SC_SEND && r->is->coll != SC_BARRIER))
        return SC_OK;
    row.op = r->is->coll;
    row.ranks = ranks;
    row.time *= 1e-6;
    if (r->is->per_rank) row.bytes *= ranks;
    if (row.bytes <= DELAY_MAX_BYTES) return add(r, &row);
    report(r, SC_C_RANGE, position(r, w[r->bytes].s), NULL,
           "%g bytes of all ranks together are out of range", row.bytes);
    return SC_OK;
}

/* ---- titles -------------------------------------------------------------- */

static void begin(reader *r, program from, const char *s)
{
    r->from = from;
    r->is = NULL;
    r->ranks = r->n_columns = 0;
    r->bytes = r->time = -1;
    r->reported = false;
    r->title = position(r, s);
}

static bool equals(const char *s, size_t n, const char *text)
{
    return text != NULL && log_is((log_word){s, n}, text);
}

/* "# OSU MPI-CUDA Allreduce Latency Test v5.3" */
static void osu_title(reader *r, const char *s)
{
    log_line l = {s, r->at.end, false};
    const char *end = log_find(l, " Test");
    begin(r, OSU, s);
    (void)log_next(&l);
    log_word library = log_next(&l);
    while (l.s < l.end && log_is_blank(*l.s)) l.s++;
    int n = end != NULL && end > l.s ? (int)(end - l.s) : 0;
    bool mpi = library.n >= 3 && memcmp(library.s, "MPI", 3) == 0;
    for (size_t k = 0; mpi && k < SC_COUNT(benchmarks); k++)
        if (equals(l.s, (size_t)n, benchmarks[k].osu)) r->is = &benchmarks[k];
    r->bytes = 0;
    r->time = 1;
    r->n_columns = 2;
    if (r->is != NULL) return;
    log_line name = {l.s, l.s + n, false};
    const char *hint = "the tests are osu_allreduce osu_allgather "
                       "osu_reduce_scatter osu_alltoall osu_bcast osu_reduce "
                       "osu_gather osu_scatter osu_barrier osu_latency";
    if (log_find(name, "Bandwidth"))
        hint = "it has many messages in flight; osu_latency measures the time "
               "of one";
    else if (log_find(name, "on-"))
        hint = "it measures overlap; use the test of the blocking operation";
    report(r, SC_C_UNSUPPORTED, r->title, hint,
           "'OSU %.*s %.*s Test' does not give the time of an operation",
           (int)(library.n < 40 ? library.n : 40), library.s, n < 80 ? n : 80,
           l.s);
}

/* "# Benchmarking Allreduce"; others than the known ones are ignored, because
 * IMB runs all of them by default. */
static void imb_title(reader *r, const char *s)
{
    log_line l = {s, r->at.end, false};
    begin(r, IMB, s);
    (void)log_next(&l);
    log_word name = log_next(&l);
    for (size_t k = 0; k < SC_COUNT(benchmarks); k++)
        if (equals(name.s, name.n, benchmarks[k].imb)) r->is = &benchmarks[k];
}

/* "#bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]" */
static void imb_columns(reader *r, log_line l)
{
    uint32_t n = 0;
    r->bytes = r->time = -1;
    for (log_word w = log_next(&l); w.n > 0 && n < COLUMNS; w = log_next(&l)) {
        if (log_is(w, "#bytes")) r->bytes = (int)n;
        if (log_is(w, "t_avg[usec]") || log_is(w, "t[usec]")) r->time = (int)n;
        n++;
    }
    r->n_columns = n;
    if (r->is == NULL || r->time >= 0) return;
    report(r, SC_C_MISSING, position(r, r->at.s), NULL,
           "there is no column t_avg[usec] or t[usec]");
    r->is = NULL;
}

/* The number behind "ranks:", "ranks =" or "#processes =". */
static void read_ranks(reader *r, log_line l, double low, uint32_t *out)
{
    double v = 0;
    while (l.s < l.end && (log_is_blank(*l.s) || *l.s == ':' || *l.s == '='))
        l.s++;
    log_word w = log_next(&l);
    while (w.n > 0 && w.s[w.n - 1] == ';') w.n--;
    if (!number(r, w, MAX_RANKS, true, &v)) return;
    if (v < low)
        report(r, SC_C_RANGE, position(r, w.s), "write '# ranks: 16'",
               "%g ranks", v);
    else
        *out = (uint32_t)v;
}

/* "# ranks: 16": what follows the word; NULL: another comment. */
static const char *user_ranks(log_line l)
{
    log_word w = log_next(&l);
    if (w.n < 5 || memcmp(w.s, "ranks", 5) != 0) return NULL;
    const char *s = w.s + 5;
    while (s < l.end && log_is_blank(*s)) s++;
    return s < l.end && (*s == ':' || *s == '=') ? s : NULL;
}

static bool nccl_begins(log_line l)
{
    return log_find(l, "# nThread") ||
           log_find(l, "Collective test starting:") ||
           (log_find(l, "algbw") && log_find(l, "busbw"));
}

static void comment(reader *r, log_line l)
{
    log_line rest = {l.s + 1, l.end, l.last};
    log_line word = rest;
    log_word w = log_next(&word);
    const char *at;
    if ((at = user_ranks(rest)) != NULL) {
        read_ranks(r, (log_line){at, l.end, l.last}, 2, &r->written);
    } else if (log_is(w, "OSU") && log_find(rest, " Test")) {
        osu_title(r, w.s);
    } else if (log_is(w, "Benchmarking")) {
        imb_title(r, w.s);
    } else if (nccl_begins(l)) {
        begin(r, NCCL_TESTS, l.s);
        r->nccl = true;
    } else if (r->from == IMB && (at = log_find(l, "#processes"))) {
        read_ranks(r, (log_line){at + 10, l.end, l.last}, 1, &r->ranks);
    } else if (r->from == IMB && (log_find(l, "#bytes") == l.s ||
                                  log_find(l, "#repetitions") == l.s)) {
        imb_columns(r, l);
    } else if (r->from == OSU && (log_is(w, "Avg") || log_is(w, "Latency"))) {
        r->bytes = -1;
        r->time = 0;
        r->n_columns = 1;
    } else if (log_find(l, "Rank") && log_find(l, "Pid")) {
        r->nccl_ranks = true;
    }
}

/* ---- NetPIPE ------------------------------------------------------------- */

/* "  0:       1 bytes  10000 times -->      2.34 Mbps in       3.26 usec" */
static sc_status netpipe(reader *r, log_line l)
{
    const char *start = l.s;
    log_word last = {start, 0}, bytes = last, time = last;
    for (log_word w = log_next(&l); w.n > 0; last = w, w = log_next(&l)) {
        if (log_is(w, "bytes")) bytes = last;
        if (log_is(w, "usec")) time = last;
    }
    double b = 0, us = 0;
    if (bytes.n == 0 || time.n == 0)
        report(
            r, SC_C_SYNTAX, position(r, start),
            "NetPIPE 3 prints: 0: 1 bytes 100 times --> 2.3 Mbps in 3.2 usec",
            "the line has no bytes or no usec");
    else if (number(r, bytes, DELAY_MAX_BYTES, true, &b) &&
             number(r, time, DELAY_MAX_US, false, &us))
        return add_message(r, b, us * 1e-6);
    return SC_OK;
}

/* A line of np.out: bytes, Mbit/s (of 2^20 bits) and seconds, which belong
 * together within the digits that are printed. */
static bool is_np_out(const log_word *w, uint32_t n)
{
    if (n != 3 || !log_is_digits(w[0])) return false;
    double b = log_number(w[0]), rate = log_number(w[1]), s = log_number(w[2]);
    if (!(b > 0 && rate > 0 && s > 0)) return false;
    return fabs(b * 8 / (rate * 1048576) - s) <= 1e-8 + 0.01 * s;
}

/* ---- lines --------------------------------------------------------------- */

static uint32_t words_of(log_line l, log_word *w)
{
    uint32_t n = 0;
    for (log_word x = log_next(&l); x.n > 0 && n < COLUMNS; x = log_next(&l))
        w[n++] = x;
    return n;
}

static sc_status read_line(reader *r)
{
    log_word w[COLUMNS];
    log_line l = r->at;
    double v;
    log_skip_label(&l);
    while (l.s < l.end && log_is_blank(*l.s)) l.s++;
    if (l.s == l.end) return SC_OK;
    if (*l.s == '#') {
        comment(r, l);
        return SC_OK;
    }
    if (log_find(l, " times -->")) {
        begin(r, NETPIPE, l.s);
        return netpipe(r, l);
    }
    uint32_t n = words_of(l, w);
    if (is_np_out(w, n)) {
        begin(r, NETPIPE, l.s);
        return number(r, w[0], DELAY_MAX_BYTES, true, &v)
                   ? add_message(r, v, log_number(w[2]))
                   : SC_OK;
    }
    if (r->is == NULL || isnan(log_number(w[0]))) return SC_OK;
    return row(r, w, n);
}

/* ---- nccl-tests ---------------------------------------------------------- */

static sc_status read_nccl(reader *r)
{
    sc_nccl_log log = {0};
    sc_nccl_opts o = {.coll = -1, .device = ""};
    if (r->given > 0 && !r->nccl_ranks) {
        o.ranks = r->given;
        o.nodes = 1;
    }
    SC_TRY(
        sc_nccl_tests_read(r->text, r->len, r->file, &o, r->a, &log, r->err));
    for (uint32_t k = 0; k < log.n_rows; k++) {
        const sc_nccl_row *x = &log.rows[k];
        delay_row row = {x->coll, x->ranks, x->bytes, x->time_s, -1};
        if (x->coll < SC_N_CALLED_COLLS) SC_TRY(add(r, &row));
    }
    return SC_OK;
}

/* ---- the file ------------------------------------------------------------ */

static bool is_title(log_line l)
{
    return (log_find(l, "OSU ") && log_find(l, " Test")) ||
           log_find(l, "# Benchmarking ") || nccl_begins(l);
}

static bool is_json(const char *text, size_t len)
{
    size_t i = 0;
    while (i < len && (log_is_blank(text[i]) || text[i] == '\n')) i++;
    return i < len && text[i] == '{';
}

bool delay_log_is(const char *text, size_t len)
{
    log_word w[COLUMNS];
    bool first = true, title = false;
    if (is_json(text, len)) return true;
    for (size_t i = 0; i < len;) {
        log_line l = log_line_next(text, len, &i);
        log_skip_label(&l);
        while (l.s < l.end && log_is_blank(*l.s)) l.s++;
        if (l.s == l.end) continue;
        if (*l.s == '#') {
            title = title || is_title(l);
            continue;
        }
        /* comments of a table may name the program that measured */
        if (first && log_find(l, "time_us")) return false;
        first = false;
        if (title || log_find(l, " times -->") || is_np_out(w, words_of(l, w)))
            return true;
    }
    return title;
}

sc_status delay_log_read(const char *text, size_t len, const char *file,
                         uint32_t ranks, sc_arena *a, delay_row **out,
                         uint32_t *n, sc_err *err)
{
    bool json = is_json(text, len);
    reader r = {.text = text,
                .file = file,
                .len = len,
                .a = a,
                .err = err,
                .given = ranks,
                .bytes = -1,
                .time = -1,
                .nccl = json};
    for (size_t i = 0; i < len && !json;) {
        r.line++;
        r.at = log_line_next(text, len, &i);
        SC_TRY(read_line(&r));
    }
    if (r.nccl) {
        sc_status s = read_nccl(&r);
        if (r.first == SC_OK) r.first = s;
    }
    SC_TRY(r.first);
    if (r.n == 0)
        return sc_error(err, SC_EINPUT, SC_C_MISSING, sc_pos_file(file),
                        "did the job start?",
                        "the log has no time of an operation");
    *out = r.row;
    *n = r.n;
    return SC_OK;
}
