/* SPDX-License-Identifier: Apache-2.0 */
/* kineto_event.c - one event of a Chrome trace becomes a span. */
#include "trace/kineto.h"

#include <string.h>

/* ---- texts --------------------------------------------------------------- */

const char *kineto_string(kineto *k, const scan_token *t)
{
    if (t->type != SCAN_STRING) return NULL;
    uint32_t i = profiled_token(&k->p, t);
    return i ? k->p.m.name[i] : NULL;
}

/* ---- reading ------------------------------------------------------------- */

/* Arguments that are texts, as written, and where they go. */
#define TEXT_ARGS(X)                \
    X("Input Dims", dims)           \
    X("Input dims", dims)           \
    X("Input type", types)          \
    X("Concrete Inputs", concrete)  \
    X("Call stack", stack)          \
    X("Process Group Name", group)  \
    X("Process Group Ranks", ranks) \
    X("Collective name", coll)      \
    X("dtype", dtype)               \
    X("grid", grid)                 \
    X("block", block)

static bool text_arg(kineto *k, const scan_token *key, const scan_token *v,
                     kineto_event *e)
{
#define X(literal, field)                         \
    if (SCAN_IS(key, literal)) {                  \
        e->args.field = profiled_token(&k->p, v); \
        e->has_args |= e->args.field != 0;        \
        return true;                              \
    }
    TEXT_ARGS(X)
#undef X
    return false;
}

static int32_t stream_of(const scan_token *v)
{
    int64_t i;
    return scan_int(v, &i) && i >= 0 && i < INT32_MAX ? (int32_t)i : -1;
}

/* Plus 1; 0: none. */
static uint32_t rank_of(const scan_token *v)
{
    uint64_t u;
    return scan_uint(v, &u) && u < UINT32_MAX - 1 ? (uint32_t)u + 1 : 0;
}

static void arg(kineto *k, const scan_token *key, const scan_token *v,
                kineto_event *e)
{
    uint64_t u = 0;
    if (SCAN_IS(key, "correlation")) {
        scan_uint(v, &e->correlation);
    } else if (SCAN_IS(key, "stream")) {
        e->args.stream = stream_of(v);
        e->has_args = true;
    } else if (SCAN_IS(key, "device")) {
        (void)scan_int(v, &e->device);
    } else if (SCAN_IS(key, "bytes")) {
        e->has_args |= scan_uint(v, &e->args.bytes);
    } else if (SCAN_IS(key, "wait_on_stream")) {
        e->args.wait_stream = stream_of(v);
    } else if (SCAN_IS(key, "wait_on_cuda_event_record_corr_id")) {
        if (scan_uint(v, &u) && u < UINT32_MAX) e->args.record = (uint32_t)u;
    } else if (SCAN_IS(key, "In msg nelems")) {
        e->has_args |= scan_uint(v, &e->args.in_elems);
    } else if (SCAN_IS(key, "Out msg nelems")) {
        e->has_args |= scan_uint(v, &e->args.out_elems);
    } else if (SCAN_IS(key, "Group size")) {
        if (scan_uint(v, &u) && u < UINT32_MAX)
            e->args.group_size = (uint32_t)u;
    } else if (SCAN_IS(key, "Src Rank")) {
        e->args.from = rank_of(v);
    } else if (SCAN_IS(key, "Dst Rank")) {
        e->args.to = rank_of(v);
    } else if (SCAN_IS(key, "Device Type")) {
        (void)scan_int(v, &e->device_type);
    } else if (SCAN_IS(key, "Bytes")) {
        (void)scan_int(v, &e->bytes);
    } else if (SCAN_IS(key, "Total Allocated")) {
        (void)scan_uint(v, &e->total);
    } else if (SCAN_IS(key, "Addr")) {
        (void)scan_uint(v, &e->address);
    } else if (SCAN_IS(key, "name")) {
        e->arg_name = *v;
    } else if (SCAN_IS(key, "Record function id")) {
        (void)scan_uint(v, &e->record);
    } else if (SCAN_IS(key, "External id")) {
        (void)scan_uint(v, &e->external);
    } else {
        text_arg(k, key, v, e);
    }
}

static scan_status read_args(kineto *k, const char **p, kineto_event *e)
{
    const char *end = k->s.end;
    scan_token key, value;
    bool last = false;
    scan_status s = scan_blanks(p, end);
    if (s != SCAN_OK) return s;
    if (**p != '{') return scan_value(p, end, &value);
    (*p)++;
    for (;;) {
        s = scan_member(p, end, &key, &value, &last);
        if (s != SCAN_OK || last) return s;
        arg(k, &key, &value, e);
    }
}

static scan_token *slot_of(const scan_token *key, kineto_event *e)
{
    switch (key->len) {
    case 2:
        if (SCAN_IS(key, "ph")) return &e->ph;
        return SCAN_IS(key, "ts") ? &e->ts : NULL;
    case 3:
        if (SCAN_IS(key, "cat")) return &e->cat;
        if (SCAN_IS(key, "pid")) return &e->pid;
        if (SCAN_IS(key, "tid")) return &e->tid;
        return SCAN_IS(key, "dur") ? &e->dur : NULL;
    case 4: return SCAN_IS(key, "name") ? &e->name : NULL;
    default: return NULL;
    }
}

/* Frames of Python, flows and the device's copies of annotations are most of a
 * large file; nothing of their arguments is used. */
static bool skipped(const kineto_event *e)
{
    return SCAN_IS(&e->cat, "python_function") || SCAN_IS(&e->ph, "s") ||
           SCAN_IS(&e->ph, "f") || SCAN_IS(&e->cat, "gpu_user_annotation");
}

scan_status kineto_event_read(kineto *k, const char **p, kineto_event *out)
{
    kineto_event e = {.device = -1, .args = profiled_no_args};
    const char *end = k->s.end;
    scan_token key, rest;
    bool last;
    scan_status s;
    (*p)++;
    for (;;) {
        s = scan_key(p, end, &key, &last);
        if (s != SCAN_OK || last) break;
        scan_token *slot = slot_of(&key, &e);
        if (SCAN_IS(&key, "args") && !skipped(&e))
            s = read_args(k, p, &e);
        else
            s = scan_value(p, end, slot ? slot : &rest);
        if (s != SCAN_OK) break;
    }
    *out = e;
    return s;
}

/* ---- keeping ------------------------------------------------------------- */

/* A number, or the digits at the end of a text such as "stream 7", or else the
 * hash of the text. */
static int64_t id_of(const scan_token *t)
{
    int64_t id = 0;
    scan_token rest = *t;
    if (t->len == 0) return 0;
    if (scan_int(t, &id)) return id;
    uint32_t n = 0;
    while (n < t->len && t->at[t->len - n - 1] >= '0' &&
           t->at[t->len - n - 1] <= '9')
        n++;
    rest.at += t->len - n;
    rest.len = n;
    if (n && scan_int(&rest, &id)) return id;
    return (int64_t)(sc_hash(t->at, t->len, 2) >> 1);
}

/* False if the event has no time, or one that is 46 days from the first. */
static bool time_of(kineto *k, const kineto_event *e, sc_time *start,
                    sc_time *dur)
{
    int64_t us, dur_us = 0;
    sc_time ps, dur_ps = 0;
    if (!scan_micros(&e->ts, &us, &ps)) return false;
    if (e->dur.type != SCAN_NONE && !scan_micros(&e->dur, &dur_us, &dur_ps))
        return false;
    if (dur_us > 4000000000000 || !profiled_time(&k->p, us, ps, start))
        return false;
    *dur = dur_us * 1000000 + dur_ps;
    if (*dur < 0) *dur = 0;
    return true;
}

typedef struct category {
    const char *name;
    int kind;
} category;

/* Categories of Kineto's events, of old and new versions. */
static const category categories[] = {
    {"cpu_op", SC_SPAN_OP},
    {"Operator", SC_SPAN_OP},
    {"user_annotation", SC_SPAN_MARK},
    {"cuda_runtime", SC_SPAN_CALL},
    {"Runtime", SC_SPAN_CALL},
    {"cuda_driver", SC_SPAN_CALL},
    {"hip_runtime", SC_SPAN_CALL},
    {"mtia_runtime", SC_SPAN_CALL},
    {"xpu_runtime", SC_SPAN_CALL},
    {"privateuse1_runtime", SC_SPAN_CALL},
    {"privateuse1_driver", SC_SPAN_CALL},
    {"kernel", SC_SPAN_KERNEL},
    {"Kernel", SC_SPAN_KERNEL},
    {"concurrent_kernel", SC_SPAN_KERNEL},
    {"mtia_ccp_events", SC_SPAN_KERNEL},
    {"mtia_insight", SC_SPAN_KERNEL},
    {"gpu_memcpy", SC_SPAN_COPY},
    {"Memcpy", SC_SPAN_COPY},
    {"gpu_memset", SC_SPAN_SET},
    {"Memset", SC_SPAN_SET},
    {"cuda_sync", SC_SPAN_SYNC},
};

static int kind_of(const kineto_event *e)
{
    for (size_t i = 0; i < SC_COUNT(categories); i++)
        if (scan_is(&e->cat, categories[i].name, strlen(categories[i].name)))
            return categories[i].kind;
    return -1;
}

static bool starts(const scan_token *t, const char *prefix)
{
    size_t n = strlen(prefix);
    return t->len >= n && memcmp(t->at, prefix, n) == 0;
}

static sc_status keep_span(kineto *k, kineto_event *e, int kind)
{
    sc_trace_span span = {.kind = (uint8_t)kind};
    bool device = kind >= SC_SPAN_SYNC;
    int64_t pid = id_of(&e->pid), tid = id_of(&e->tid);
    if (!time_of(k, e, &span.start, &span.dur)) {
        k->p.m.n_broken++;
        return SC_OK;
    }
    if (device && e->device >= 0) pid = e->device;
    if (device && e->args.stream >= 0) tid = e->args.stream;
    if (kind <= SC_SPAN_MARK && starts(&e->name, "ProfilerStep"))
        span.kind = SC_SPAN_STEP;
    /* Gloo's workers run one collective after the other, as a stream does */
    bool gloo = kind == SC_SPAN_MARK && starts(&e->name, "gloo:");
    device |= gloo;
    span.name = profiled_token(&k->p, &e->name);
    const char *name = k->p.m.name[span.name];
    if (kind == SC_SPAN_CALL) span.detail = (uint8_t)profiled_call_kind(name);
    if (kind == SC_SPAN_KERNEL && profiled_is_coll_kernel(name)) {
        span.kind = SC_SPAN_COLL;
        span.detail = (uint8_t)profiled_coll_of_kernel(name);
    }
    if (gloo) {
        sc_coll coll = sc_coll_find(name + strlen("gloo:"));
        span.kind = SC_SPAN_COLL;
        span.detail = (uint8_t)coll;
    }
    if (kind == SC_SPAN_CALL) e->has_args = false;
    if (e->has_args) span.args = profiled_args(&k->p, &e->args);
    span.id = (uint32_t)e->correlation;
    if (span.kind <= SC_SPAN_STEP)
        span.id = (uint32_t)(e->record ? e->record : e->external);
    uint32_t lane = profiled_lane(&k->p, pid, tid, device);
    if (k->p.out_of_memory) return sc_error_nomem(k->p.err);
    if (lane == UINT32_MAX) {
        k->p.m.n_broken++;
        return SC_OK;
    }
    span.lane = (uint16_t)lane;
    return profiled_span(&k->p, &span);
}

static sc_status keep_memory(kineto *k, const kineto_event *e)
{
    sc_memory_change c = {
        .bytes = e->bytes, .total = e->total, .address = e->address};
    sc_time none;
    if (e->device_type == 0 || !time_of(k, e, &c.at, &none)) return SC_OK;
    uint32_t lane = profiled_lane(&k->p, id_of(&e->pid), id_of(&e->tid), false);
    if (k->p.out_of_memory) return sc_error_nomem(k->p.err);
    if (lane == UINT32_MAX) {
        k->p.m.n_broken++;
        return SC_OK;
    }
    c.lane = (uint16_t)lane;
    return profiled_change(&k->p, &c);
}

sc_status kineto_event_keep(kineto *k, kineto_event *e)
{
    int kind = kind_of(e);
    if (SCAN_IS(&e->ph, "X") && kind >= 0) return keep_span(k, e, kind);
    if (SCAN_IS(&e->ph, "i") && SCAN_IS(&e->name, "[memory]"))
        return keep_memory(k, e);
    if (SCAN_IS(&e->ph, "M") && SCAN_IS(&e->name, "thread_name")) {
        uint32_t lane =
            profiled_lane(&k->p, id_of(&e->pid), id_of(&e->tid), false);
        if (lane != UINT32_MAX)
            k->p.m.lanes[lane].thread = profiled_token(&k->p, &e->arg_name);
    }
    if (k->p.out_of_memory) return sc_error_nomem(k->p.err);
    k->p.m.n_python += SCAN_IS(&e->cat, "python_function");
    k->p.m.n_ignored += !SCAN_IS(&e->cat, "python_function");
    return SC_OK;
}
