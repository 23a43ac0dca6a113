/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nsys_nvtx.c - ranges of NVTX become operators, annotations and steps.
 *
 * PyTorch's emit_nvtx() writes "aten::addmm, seq = 12, op_id = 3, sizes = [[64],
 * [32, 64]]" for an operator.  Pushed ranges of a thread nest.  Ranges that are
 * started and ended need not: those that overlap others are left out.
 */
#include "trace/nsys.h"

#ifdef STEPCAST_SQLITE

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- texts --------------------------------------------------------------- */

/* What the text of a range says. */
typedef struct label {
    const char *name, *sizes; /* sizes: NULL: not stated */
    size_t len, sizes_len;
    bool op; /* an operator, not an annotation */
    bool step;
} label;

static bool begins(const char *p, const char *end, const char *word)
{
    size_t n = strlen(word);
    return (size_t)(end - p) >= n && memcmp(p, word, n) == 0;
}

static bool digit(const char *p, const char *end)
{
    return p < end && *p >= '0' && *p <= '9';
}

/* Whether an argument of an operator is at `p`; `*value` is behind its name. */
static bool argument(const char *p, const char *end, const char **value)
{
    static const char *const names[] = {", seq = ", ", op_id = "};
    for (size_t i = 0; i < SC_COUNT(names); i++) {
        *value = p + strlen(names[i]);
        if (begins(p, end, names[i]) && digit(*value, end)) return true;
    }
    *value = p + strlen(", sizes = ");
    return begins(p, end, ", sizes = [");
}

/* The list at `p`, with its brackets. */
static size_t list_length(const char *p, const char *end)
{
    uint32_t depth = 0;
    for (const char *q = p; q < end; q++) {
        if (*q == '[') depth++;
        if (*q == ']' && --depth == 0) return (size_t)(q - p) + 1;
    }
    return 0;
}

static const char *without_case(const char *p, const char *end,
                                const char *word)
{
    size_t n = strlen(word);
    return (size_t)(end - p) >= n && strncasecmp(p, word, n) == 0 ? p + n
                                                                  : NULL;
}

static const char *separators(const char *p, const char *end)
{
    while (p < end && strchr(" _-#:=.", *p)) p++;
    return p;
}

/* "step 12", "train_step_3", "Iteration: 4", "iter7", "ProfilerStep#2": a word
 * for a step and a number, and nothing else. */
static bool is_step(const char *p, const char *end)
{
    static const char *const before[] = {"training", "train", "global",
                                         "profiler"};
    static const char *const words[] = {"step", "iteration", "iter"};
    const char *q = NULL;
    for (size_t i = 0; i < SC_COUNT(before) && !q; i++)
        q = without_case(p, end, before[i]);
    if (q) p = separators(q, end);
    q = NULL;
    for (size_t i = 0; i < SC_COUNT(words) && !q; i++)
        q = without_case(p, end, words[i]);
    if (!q) return false;
    p = separators(q, end);
    if (!digit(p, end)) return false;
    while (digit(p, end)) p++;
    return p == end;
}

static label label_of(const char *text, size_t len)
{
    const char *end = text + len, *value = text, *p = text;
    label l = {.name = text, .len = len};
    for (; p < end; p++) {
        bool found = *p == ',' && argument(p, end, &value);
        if (found && !l.op) l.len = (size_t)(p - text);
        l.op |= found;
        if (!found || value == end || *value != '[') continue;
        l.sizes_len = list_length(value, end);
        if (l.sizes_len) l.sizes = value;
        break;
    }
    /* operators without arguments */
    const char *colon = memchr(text, ':', len), *blank = memchr(text, ' ', len);
    l.op |= colon && colon > text && begins(colon, end, "::") &&
            (!blank || blank > colon);
    l.step = is_step(text, text + l.len);
    return l;
}

/* ---- rows ---------------------------------------------------------------- */

static const char *const columns[] = {"start",        "end",    "eventType",
                                      "text",         "textId", "globalTid",
                                      "endGlobalTid", NULL};

enum { TYPE = 2, TEXT, TEXT_ID, THREAD, END_THREAD };

/* Whether a range was pushed or started; of other types is what takes no time. */
static bool is_range(const nsys_row *row, bool *started)
{
    enum { PUSHED = 59, STARTED = 60, PUSHED_LATER = 70, STARTED_LATER = 71 };

    int64_t type = nsys_int_or(row, TYPE, PUSHED);
    *started = type == STARTED || type == STARTED_LATER;
    return *started || type == PUSHED || type == PUSHED_LATER;
}

static sc_status add_range(nsys *n, nsys_rank *r, const char *text, size_t len,
                           sc_trace_span *span)
{
    sc_trace_span_args args = profiled_no_args;
    label l = label_of(text, len);
    /* as Kineto has them, which also knows what the program's own are */
    bool mark = !l.op || begins(l.name, l.name + l.len, "nccl:");
    span->kind = l.step ? SC_SPAN_STEP : mark ? SC_SPAN_MARK : SC_SPAN_OP;
    span->name = nsys_name(n, r, l.name, l.len);
    args.dims = nsys_name(n, r, l.sizes, l.sizes_len);
    if (args.dims) span->args = profiled_args(&r->p, &args);
    sc_trace_span *grown = sc_grow_raw(&n->tmp, r->range, r->n_ranges,
                                       &r->cap_ranges, 256, sizeof *grown);
    if (!grown || r->p.out_of_memory) return sc_error_nomem(n->err);
    r->range = grown;
    r->range[r->n_ranges++] = *span;
    return SC_OK;
}

static sc_status range(void *ctx, const nsys_row *row)
{
    nsys *n = ctx;
    bool started;
    int64_t end, thread = nsys_int_or(row, THREAD, 0);
    nsys_rank *r = nsys_rank_of(n, thread);
    size_t len = 0;
    sc_trace_span span = {.start = 0};
    if (!r || !is_range(row, &started)) return SC_OK;
    if (!nsys_int(row, 1, &end)) {
        n->n_open++;
        return SC_OK;
    }
    int64_t there = nsys_int_or(row, END_THREAD, 0);
    if (started && there && there != thread) {
        n->n_overlap++;
        return SC_OK;
    }
    if (!nsys_span_time(r, row, &span) || !nsys_thread(r, thread, &span.lane)) {
        n->n_broken++;
        return SC_OK;
    }
    span.detail = started;
    const char *text = nsys_text(row, TEXT, &len);
    if (!text ||
        !len) /* older versions write an empty text beside the number */
        SC_TRY(nsys_string(&n->d, nsys_int_or(row, TEXT_ID, -1), &text, &len));
    return add_range(n, r, text ? text : "", len, &span);
}

/* ---- nesting ------------------------------------------------------------- */

static int outer_first(const void *x, const void *y)
{
    const sc_trace_span *a = x, *b = y;
    if (a->lane != b->lane) return a->lane < b->lane ? -1 : 1;
    if (a->start != b->start) return a->start < b->start ? -1 : 1;
    if (a->dur != b->dur) return a->dur > b->dur ? -1 : 1;
    return (a->detail > b->detail) - (a->detail < b->detail);
}

static sc_time end_of(const sc_trace_span *s)
{
    return s->start + s->dur;
}

/* Finds ranges that begin in another one and end behind it, and gives them kind
 * SC_N_SPAN_KINDS; of two, the one that was started. `stack` has room for all. */
static void find_overlaps(sc_trace_span *s, uint32_t n, uint32_t *stack)
{
    uint32_t depth = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (depth && s[stack[0]].lane != s[i].lane) depth = 0;
        while (depth && end_of(&s[stack[depth - 1]]) <= s[i].start) depth--;
        while (depth && end_of(&s[stack[depth - 1]]) < end_of(&s[i])) {
            sc_trace_span *around = &s[stack[depth - 1]];
            if (s[i].detail || !around->detail) break;
            around->kind = SC_N_SPAN_KINDS;
            depth--;
        }
        if (depth && end_of(&s[stack[depth - 1]]) < end_of(&s[i]))
            s[i].kind = SC_N_SPAN_KINDS;
        else
            stack[depth++] = i;
    }
}

/* The thread with most calls of those that have steps; UINT32_MAX. */
static uint32_t lane_of_steps(const nsys_rank *r)
{
    uint32_t lane = UINT32_MAX;
    for (uint32_t i = 0; i < r->n_ranges; i++) {
        uint32_t own = r->range[i].lane;
        if (r->range[i].kind != SC_SPAN_STEP) continue;
        if (lane == UINT32_MAX || r->p.m.lanes[own].n > r->p.m.lanes[lane].n)
            lane = own;
    }
    return lane;
}

/* Steps of one thread that are not in others; the rest are annotations. */
static void choose_steps(nsys_rank *r)
{
    uint32_t lane = lane_of_steps(r);
    sc_time until = 0;
    bool any = false;
    for (uint32_t i = 0; i < r->n_ranges; i++) {
        sc_trace_span *s = &r->range[i];
        if (s->kind != SC_SPAN_STEP) continue;
        if (s->lane == lane && (!any || s->start >= until)) {
            any = true;
            until = end_of(s);
        } else {
            s->kind = SC_SPAN_MARK;
        }
    }
}

static sc_status keep_ranges(nsys *n, nsys_rank *r)
{
    if (r->n_ranges == 0) return SC_OK;
    qsort(r->range, r->n_ranges, sizeof *r->range, outer_first);
    uint32_t *stack = SC_RAW_N(&n->tmp, uint32_t, r->n_ranges);
    if (!stack) return sc_error_nomem(n->err);
    find_overlaps(r->range, r->n_ranges, stack);
    choose_steps(r);
    for (uint32_t i = 0; i < r->n_ranges; i++) {
        sc_trace_span *s = &r->range[i];
        n->n_overlap += s->kind == SC_N_SPAN_KINDS;
        if (s->kind == SC_N_SPAN_KINDS) continue;
        s->detail = 0;
        SC_TRY(profiled_span(&r->p, s));
    }
    return SC_OK;
}

sc_status nsys_nvtx(nsys *n)
{
    bool found;
    SC_TRY(nsys_rows(&n->d, "NVTX_EVENTS", columns, range, n, &found));
    for (uint32_t i = 0; i < n->n_ranks; i++)
        SC_TRY(keep_ranges(n, n->rank[i]));
    return SC_OK;
}

#endif
