/* SPDX-License-Identifier: Apache-2.0 */
/* kineto_event.c - one event of a profiler's trace: its members and arguments, its
 * kind, its thread and its time. */
#include "et/et.h"
#include "et/kineto.h"

#include <string.h>

/* ---- arguments ----------------------------------------------------------- */

static scan_token *arg_slot(const scan_token *key, sc_kineto_args *a)
{
#define IS(literal, field) \
    if (SCAN_IS(key, literal)) return &a->field
    switch (key->len) {
    case 4:
        IS("grid", grid);
        IS("Addr", address);
        IS("name", name);
        break;
    case 5:
        IS("block", block);
        IS("bytes", bytes);
        IS("dtype", dtype);
        IS("Bytes", change);
        break;
    case 6:
        IS("device", device);
        IS("stream", stream);
        break;
    case 9: IS("Device Id", device_id); break;
    case 8:
        IS("Src Rank", from);
        IS("Dst Rank", to);
        break;
    case 10:
        IS("Input Dims", dims);
        IS("Input type", types);
        IS("Input dims", dims);
        IS("Call stack", stack);
        IS("Group size", group_size);
        break;
    case 11:
        IS("External id", external);
        IS("correlation", correlation);
        IS("Device Type", device_type);
        break;
    case 13: IS("In msg nelems", in_elems); break;
    case 14:
        IS("wait_on_stream", wait_stream);
        IS("Out msg nelems", out_elems);
        break;
    case 15:
        IS("Concrete Inputs", concrete);
        IS("Total Allocated", total);
        IS("Collective name", coll);
        break;
    case 18:
        IS("Record function id", record);
        IS("Process Group Name", group);
        break;
    case 19: IS("Process Group Ranks", ranks); break;
    case 33: IS("wait_on_cuda_event_record_corr_id", wait_record); break;
    default: break;
    }
#undef IS
    return NULL;
}

static scan_status read_args(const char **p, const char *end,
                             sc_kineto_args *out)
{
    scan_token key, value;
    bool last = false;
    scan_status s = scan_blanks(p, end);
    if (s != SCAN_OK) return s;
    if (**p != '{') return scan_value(p, end, &value);
    (*p)++;
    for (;;) {
        s = scan_member(p, end, &key, &value, &last);
        if (s != SCAN_OK || last) return s;
        scan_token *slot = arg_slot(&key, out);
        if (slot) *slot = value;
    }
}

/* ---- kinds --------------------------------------------------------------- */

typedef struct category {
    const char *name;
    uint32_t len;
    sc_kineto_kind kind;
} category;

#define CATEGORY(name, kind)                     \
    {                                            \
        name, sizeof(name) - 1, SC_KINETO_##kind \
    }

/* Categories of spans, of old and new versions. */
static const category categories[] = {
    CATEGORY("cpu_op", OP),
    CATEGORY("Operator", OP),
    CATEGORY("python_function", PYTHON),
    CATEGORY("user_annotation", MARK),
    CATEGORY("cuda_runtime", CALL),
    CATEGORY("Runtime", CALL),
    CATEGORY("cuda_driver", CALL),
    CATEGORY("hip_runtime", CALL),
    CATEGORY("mtia_runtime", CALL),
    CATEGORY("xpu_runtime", CALL),
    CATEGORY("privateuse1_runtime", CALL),
    CATEGORY("privateuse1_driver", CALL),
    CATEGORY("kernel", KERNEL),
    CATEGORY("Kernel", KERNEL),
    CATEGORY("concurrent_kernel", KERNEL),
    CATEGORY("mtia_ccp_events", KERNEL),
    CATEGORY("mtia_insight", KERNEL),
    CATEGORY("gpu_memcpy", COPY),
    CATEGORY("Memcpy", COPY),
    CATEGORY("gpu_memset", SET),
    CATEGORY("Memset", SET),
    CATEGORY("cuda_sync", SYNC),
};

static sc_kineto_kind kind_of_span(const sc_kineto_event *e)
{
    for (size_t i = 0; i < SC_COUNT(categories); i++) {
        const category *c = &categories[i];
        if (!scan_is(&e->cat, c->name, c->len)) continue;
        bool host = c->kind == SC_KINETO_OP || c->kind == SC_KINETO_MARK;
        return host && sc_et_is_step(e->name.at, e->name.len) ? SC_KINETO_STEP
                                                              : c->kind;
    }
    return SC_KINETO_OTHER;
}

static sc_kineto_kind kind_of(const sc_kineto_event *e)
{
    if (SCAN_IS(&e->ph, "X")) return kind_of_span(e);
    if (SCAN_IS(&e->ph, "i") && SCAN_IS(&e->name, "[memory]"))
        return SC_KINETO_MEMORY;
    if (SCAN_IS(&e->ph, "M") && SCAN_IS(&e->name, "thread_name"))
        return SC_KINETO_THREAD;
    return SCAN_IS(&e->cat, "python_function") ? SC_KINETO_PYTHON
                                               : SC_KINETO_OTHER;
}

/* ---- events -------------------------------------------------------------- */

static scan_token *slot_of(const scan_token *key, sc_kineto_event *e)
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
static bool skipped(const sc_kineto_event *e)
{
    return SCAN_IS(&e->cat, "python_function") || SCAN_IS(&e->ph, "s") ||
           SCAN_IS(&e->ph, "f") || SCAN_IS(&e->cat, "gpu_user_annotation");
}

scan_status kineto_event_read(const char **p, const char *end,
                              sc_kineto_args *args, sc_kineto_event *out)
{
    static const sc_kineto_args none;
    sc_kineto_event e = {.args = &none};
    scan_token key, rest;
    bool last;
    scan_status s;
    (*p)++;
    for (;;) {
        s = scan_key(p, end, &key, &last);
        if (s != SCAN_OK || last) break;
        scan_token *slot = slot_of(&key, &e);
        if (SCAN_IS(&key, "args") && !skipped(&e)) {
            *args = none;
            e.args = args;
            s = read_args(p, end, args);
        } else {
            s = scan_value(p, end, slot ? slot : &rest);
        }
        if (s != SCAN_OK) break;
    }
    if (s == SCAN_OK) e.kind = kind_of(&e);
    *out = e;
    return s;
}

/* ---- threads and times --------------------------------------------------- */

int64_t sc_kineto_id(const scan_token *t)
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

#define MOST_US 4000000000000 /* 46 days: sums of two are picoseconds, too */

bool sc_profile_time(sc_profile_clock *c, int64_t us, sc_time ps, sc_time *out)
{
    if (!c->started) c->origin_us = us;
    c->started = true;
    if (__builtin_sub_overflow(us, c->origin_us, &us)) return false;
    if (us > MOST_US || us < -MOST_US) return false;
    *out = us * 1000000 + ps;
    return true;
}

bool sc_kineto_time(sc_profile_clock *c, const sc_kineto_event *e,
                    sc_time *start, sc_time *dur)
{
    int64_t us, dur_us = 0;
    sc_time ps, dur_ps = 0;
    if (!scan_micros(&e->ts, &us, &ps)) return false;
    if (e->dur.type != SCAN_NONE && !scan_micros(&e->dur, &dur_us, &dur_ps))
        return false;
    if (dur_us > MOST_US || !sc_profile_time(c, us, ps, start)) return false;
    *dur = dur_us > 0 || dur_ps > 0 ? dur_us * 1000000 + dur_ps : 0;
    return true;
}
