/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trainlog.c - reads step times from logs of training programs.
 *
 * Megatron-LM prints fields between bars on the last rank; torchtitan prints a
 * line per step on every rank. Both are mixed with other output, may follow
 * prefixes of launchers, and may have terminal colours. NeMo, nanotron,
 * DeepSpeed's pipeline engine and HuggingFace's Trainer print the time of a step,
 * or steps per second, after a key of their own.
 */
#include "base/number.h"
#include "base/utf8.h"
#include "import/import.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_STEPS = 1 << 22, MAX_WARMUP = 3 };

static const double outlier = 1.5;

typedef struct entry {
    int64_t step;
    double value; /* s per step, or tokens/s per device */
    double tflops;
    size_t at; /* byte offset of the value */
} entry;

typedef struct reader {
    const char *text, *file;
    size_t len;
    sc_arena *a;
    sc_err *err;
    sc_err *torn; /* errors of the lines that are dropped */
    bool bad;     /* the current line is dropped */
    uint32_t n_torn;
    bool decided;
    sc_trainlog_kind kind;
    entry *e;
    uint32_t n, cap;
    double memory;
    int64_t batch;
} reader;

/* ---- one line -------------------------------------------------------------------- */

typedef struct line {
    const char *s, *end;
    bool open; /* the log ends in this line */
} line;

/* The text after the first `key` of the line; NULL: it has none. */
static const char *after(line l, const char *key)
{
    size_t n = strlen(key);
    for (const char *s = l.s; (size_t)(l.end - s) >= n; s++)
        if (*s == key[0] && memcmp(s, key, n) == 0) return s + n;
    return NULL;
}

/* Blanks and terminal colours (ESC [ ... m). */
static const char *skip(line l, const char *s)
{
    while (s < l.end) {
        if (*s == ' ' || *s == '\t') {
            s++;
        } else if (*s == '\033' && s + 1 < l.end && s[1] == '[') {
            for (s += 2; s < l.end && *s != 'm' && *s != ' '; s++) continue;
            if (s < l.end && *s == 'm') s++;
        } else {
            break;
        }
    }
    return s;
}

static void fail(reader *r, sc_code code, const char *at, const char *key,
                 const char *what)
{
    sc_pos pos =
        utf8_position(r->text, r->len, (size_t)(at - r->text), r->file);
    (void)sc_error(r->torn, SC_EINPUT, code, pos, NULL, "'%s' %s", key, what);
    r->bad = true;
}

/* A number with thousands' separators: "6,023", "34100.2", "1.5E+01". */
static size_t number(line l, const char *s, double *out)
{
    char buf[64];
    size_t n = 0, used = 0;
    while (s + used < l.end && n + 1 < sizeof buf) {
        char c = s[used];
        bool comma = c == ',' && n > 0 && s + used + 1 < l.end &&
                     s[used + 1] >= '0' && s[used + 1] <= '9';
        if (!comma && !(c >= '0' && c <= '9') && (!c || !strchr("+-.eE", c)))
            break;
        if (!comma) buf[n++] = c;
        used++;
    }
    buf[n] = '\0';
    size_t span = number_span(buf);
    if (span == 0 || span != n) return 0;
    *out = number_scaled(buf, span, 0);
    return used;
}

/* The number after `key`; with `must` anything else is an error. */
static bool value(reader *r, line l, const char *key, bool must, double *out,
                  const char **at)
{
    const char *s = after(l, key);
    if (!s) return false;
    s = skip(l, s);
    double v = 0;
    size_t n = number(l, s, &v);
    if (at) *at = s;
    if (n == 0 || (l.open && s + n == l.end) ||
        (s + n < l.end && strchr("abcdfghijklmnopqrstuvwxyz_", s[n]) && s[n])) {
        if (must)
            fail(r, SC_C_TYPE, s < l.end ? s : l.end, key, "is not a number");
        return false;
    }
    if (!(v > 0) || !(v < 1e15)) {
        if (must) fail(r, SC_C_RANGE, s, key, "is not positive");
        return false;
    }
    *out = v;
    return true;
}

/* The largest distance in a log between lines of one step on all ranks. */
enum { BACK = 64 };

static bool seen(const reader *r, int64_t step)
{
    uint32_t from = r->n > BACK ? r->n - BACK : 0;
    for (uint32_t i = from; step > 0 && i < r->n; i++)
        if (r->e[i].step == step) return true;
    return false;
}

static sc_status keep(reader *r, entry e)
{
    if (r->bad || seen(r, e.step)) return SC_OK;
    if (r->n == MAX_STEPS)
        return sc_error(r->err, SC_EINPUT, SC_C_TOO_BIG, sc_pos_file(r->file),
                        NULL, "the log has more than %d lines of steps",
                        (int)MAX_STEPS);
    entry *new = sc_grow(r->a, r->e, r->n, &r->cap, 64, sizeof *new);
    if (!new) return sc_error_nomem(r->err);
    r->e = new;
    r->e[r->n++] = e;
    return SC_OK;
}

static bool kind_is(reader *r, sc_trainlog_kind kind)
{
    if (!r->decided) {
        r->decided = true;
        r->kind = kind;
    }
    return r->kind == kind;
}

static sc_status megatron_line(reader *r, line l)
{
    double ms, v;
    const char *at;
    entry e = {.tflops = NAN};
    if (!kind_is(r, SC_TRAINLOG_MEGATRON)) return SC_OK;
    bool per = value(r, l, "elapsed time per iteration (ms):", true, &ms, &at);
    if (!per) return SC_OK;
    e.value = ms * 1e-3;
    e.at = (size_t)(at - r->text);
    if (value(r, l, " iteration", false, &v, NULL)) e.step = (int64_t)v;
    if (value(r, l, "throughput per GPU (TFLOP/s/GPU):", true, &v, NULL))
        e.tflops = v;
    if (value(r, l, "global batch size:", true, &v, NULL))
        r->batch = (int64_t)v;
    return keep(r, e);
}

/* "... max allocated: 41234.5 | reserved: 45000.0 | max reserved: 46000.0",
 * in MB of 2^20 bytes. */
static void megatron_memory(reader *r, line l)
{
    double mb;
    if (value(r, l, "| max reserved:", false, &mb, NULL) ||
        value(r, l, "mem-max-reserved-bytes:", false, &mb, NULL) ||
        value(r, l, "| max allocated:", false, &mb, NULL)) {
        double bytes = after(l, "memory (MB)") ? mb * 1048576 : mb;
        if (bytes > r->memory) r->memory = bytes;
    }
}

static sc_status torchtitan_line(reader *r, line l)
{
    double v;
    const char *at;
    entry e = {.tflops = NAN};
    if (!kind_is(r, SC_TRAINLOG_TORCHTITAN)) return SC_OK;
    double memory = 0;
    if (value(r, l, "memory:", true, &v, &at)) {
        size_t n = number(l, at, &v);
        if ((size_t)(l.end - at) < n + 3 || memcmp(at + n, "GiB", 3) != 0)
            fail(r, SC_C_UNIT, at, "memory:", "is not in GiB");
        memory = v * 1073741824;
    }
    if (!value(r, l, after(l, "tps:") ? "tps:" : "wps:", true, &e.value, &at))
        return SC_OK;
    e.at = (size_t)(at - r->text);
    if (value(r, l, "step:", true, &v, NULL)) e.step = (int64_t)v;
    if (value(r, l, "tflops:", false, &v, NULL)) e.tflops = v;
    if (!r->bad && memory > r->memory) r->memory = memory;
    return keep(r, e);
}

/* Programs that print a step's time, or its inverse, after a key. */
typedef struct timed {
    const char *key;
    sc_trainlog_kind kind;
    double scale;       /* to seconds; of steps per second, negative */
    const char *number; /* key of the step's number; NULL: none */
} timed;

static const timed timed_keys[] = {
    {"train_step_timing in s:", SC_TRAINLOG_NEMO, 1, "global_step:"},
    {"train_step_timing in s=", SC_TRAINLOG_NEMO, 1, "global_step="},
    {"elapsed_time_per_iteration_ms:", SC_TRAINLOG_NANOTRON, 1e-3,
     " iteration:"},
    {"iter time (s):", SC_TRAINLOG_DEEPSPEED, 1, "steps:"},
    {"'train_steps_per_second':", SC_TRAINLOG_TRAINER, -1, NULL}};

static sc_status timed_line(reader *r, line l, const timed *k)
{
    double v;
    const char *at;
    entry e = {.tflops = NAN};
    if (!kind_is(r, k->kind)) return SC_OK;
    if (!value(r, l, k->key, true, &v, &at)) return SC_OK;
    e.at = (size_t)(at - r->text);
    size_t n = number(l, at, &e.value);
    if (at + n < l.end && at[n] == 'K') v *= 1e3; /* "1.2K" of nanotron */
    if (at + n < l.end && at[n] == 'M') v *= 1e6;
    e.value = k->scale > 0 ? v * k->scale : 1 / v;
    if (k->number && value(r, l, k->number, false, &v, NULL))
        e.step = (int64_t)v;
    return keep(r, e);
}

static sc_status read_line(reader *r, line l)
{
    r->bad = false;
    for (size_t i = 0; i < SC_COUNT(timed_keys); i++)
        if (after(l, timed_keys[i].key))
            return timed_line(r, l, &timed_keys[i]);
    if (after(l, "elapsed time per iteration (ms):"))
        return megatron_line(r, l);
    if (after(l, "memory (MB)") || after(l, "mem-max-reserved-bytes:"))
        megatron_memory(r, l);
    if (after(l, "step:") && (after(l, "tps:") || after(l, "wps:")))
        return torchtitan_line(r, l);
    return SC_OK;
}

/* ---- steady steps ------------------------------------------------------------------ */

static double middle_value(const entry *e, uint32_t n, double *buf)
{
    for (uint32_t i = 0; i < n; i++) buf[i] = e[i].value;
    sc_sort(buf, n);
    return buf[(n - 1) / 2]; /* an element of the list, so that it is no outlier
                                itself */
}

static double typical_tflops(const entry *e, uint32_t n, double *buf)
{
    uint32_t k = 0;
    for (uint32_t i = 0; i < n; i++)
        if (!isnan(e[i].tflops)) buf[k++] = e[i].tflops;
    return sc_quantile(buf, k, 0.5);
}

static sc_status summarise(reader *r, sc_trainlog *out)
{
    double *buf = SC_NEW_N(r->a, double, r->n);
    if (!buf) return sc_error_nomem(r->err);
    sc_trainlog t = {.kind = r->kind,
                     .step_time_s = NAN,
                     .tokens_per_s_per_device = NAN,
                     .memory_bytes = r->memory > 0 ? r->memory : NAN,
                     .global_batch = r->batch,
                     .n_lines = r->n,
                     .n_torn = r->n_torn};
    t.n_warmup = r->n / 3 < MAX_WARMUP ? r->n / 3 : MAX_WARMUP;
    entry *steady = r->e + t.n_warmup;
    uint32_t n = r->n - t.n_warmup;
    double middle = middle_value(steady, n, buf);
    for (uint32_t i = 0; i < n; i++)
        if (steady[i].value <= middle * outlier &&
            steady[i].value >= middle / outlier)
            steady[t.n_used++] = steady[i];
    t.n_outliers = n - t.n_used;
    double m = middle_value(steady, t.n_used, buf);
    double half = (sc_quantile_sorted(buf, t.n_used, 0.75) -
                   sc_quantile_sorted(buf, t.n_used, 0.25)) /
                  2;
    bool time = r->kind != SC_TRAINLOG_TORCHTITAN;
    t.spread_s = time ? half : NAN;
    if (time)
        t.step_time_s = m;
    else
        t.tokens_per_s_per_device = m;
    t.tflops_per_device = typical_tflops(steady, t.n_used, buf);
    t.first = utf8_position(r->text, r->len, steady[0].at, r->file);
    t.last = utf8_position(r->text, r->len, steady[t.n_used - 1].at, r->file);
    *out = t;
    return SC_OK;
}

sc_status sc_trainlog_read(const char *text, size_t len, const char *file,
                           sc_arena *a, sc_trainlog *out, sc_err *err)
{
    reader r = {.text = text, .file = file, .len = len, .a = a, .err = err};
    r.torn = SC_NEW(a, sc_err);
    if (!r.torn) return sc_error_nomem(err);
    sc_err_init(r.torn);
    uint32_t lines = 0;
    for (size_t i = 0; i < len;) {
        const char *nl = memchr(text + i, '\n', len - i);
        size_t end = nl ? (size_t)(nl - text) : len;
        SC_TRY(read_line(&r, (line){text + i, text + end, !nl}));
        r.n_torn += r.bad;
        i = end + 1;
        lines++;
    }
    if (r.n > 0) return summarise(&r, out);
    if (r.n_torn) {
        if (err) *err = *r.torn;
        return SC_EINPUT;
    }
    return sc_error(
        err, SC_EINPUT, SC_C_MISSING, sc_pos_file(file),
        "Megatron-LM prints 'elapsed time per iteration (ms): ...', "
        "torchtitan 'step: ... tps: ...', NeMo 'train_step_timing in s: ...'",
        "no step in %u lines", (unsigned)lines);
}

double sc_trainlog_step_s(const sc_trainlog *log, double tokens, double devices)
{
    if (!isnan(log->step_time_s)) return log->step_time_s;
    return tokens / devices / log->tokens_per_s_per_device;
}
