/* SPDX-License-Identifier: Apache-2.0 */
/* kineto.c - reads the trace of a profiler: the root of the file, its metadata
 * and its list of events. */
#include "trace/kineto.h"

#include <string.h>

/* ---- metadata ------------------------------------------------------------ */

/* Calls `each` for the members of an object. */
static void members(kineto *k, const scan_token *object, void *ctx,
                    void (*each)(kineto *, const scan_token *,
                                 const scan_token *, void *))
{
    const char *p = object->at + 1, *end = object->at + object->len;
    scan_token key, value;
    bool last = false;
    if (object->type != SCAN_OBJECT) return;
    while (scan_member(&p, end, &key, &value, &last) == SCAN_OK && !last)
        each(k, &key, &value, ctx);
}

static void distributed(kineto *k, const scan_token *key,
                        const scan_token *value, void *ctx)
{
    uint64_t u;
    (void)ctx;
    if (SCAN_IS(key, "rank")) (void)scan_int(value, &k->p.m.rank);
    if (SCAN_IS(key, "world_size") && scan_uint(value, &u) && u < UINT32_MAX)
        k->p.m.world_size = (uint32_t)u;
    if (SCAN_IS(key, "backend")) k->p.m.backend = kineto_string(k, value);
    if (SCAN_IS(key, "pg_config")) profiled_groups(&k->p, value);
}

static void device_member(kineto *k, const scan_token *key,
                          const scan_token *value, void *ctx)
{
    profiled_device *d = ctx;
    if (SCAN_IS(key, "id")) (void)scan_int(value, &d->id);
    if (SCAN_IS(key, "name")) d->name = kineto_string(k, value);
}

static void devices(kineto *k, const scan_token *list)
{
    const char *end = list->at + list->len;
    scan_token e;
    uint32_t n = 0;
    if (list->type != SCAN_ARRAY) return;
    for (const char *p = list->at + 1; scan_element(&p, end, &e);) n++;
    k->n_devices = 0;
    k->device = SC_NEW_N(k->p.a, profiled_device, n);
    if (!k->device) {
        k->p.out_of_memory = true;
        return;
    }
    for (const char *p = list->at + 1; scan_element(&p, end, &e);)
        members(k, &e, &k->device[k->n_devices++], device_member);
}

void kineto_metadata(kineto *k, const scan_token *key, const scan_token *value)
{
    if (SCAN_IS(key, "distributedInfo"))
        members(k, value, NULL, distributed);
    else if (SCAN_IS(key, "deviceProperties"))
        devices(k, value);
    else if (SCAN_IS(key, "baseTimeNanoseconds"))
        (void)scan_int(value, &k->base_ns);
}

/* ---- events -------------------------------------------------------------- */

static bool names_event(const scan_token *key)
{
    return SCAN_IS(key, "ph") || SCAN_IS(key, "name") || SCAN_IS(key, "cat") ||
           SCAN_IS(key, "pid") || SCAN_IS(key, "ts") || SCAN_IS(key, "tid");
}

/* Whether an event may begin with the brace at `p`: arguments do not have these
 * keys behind a comma or the bracket of the list. */
static scan_status begins_event(const kineto *k, const char *p)
{
    const char *before = p, *q = p + 1;
    scan_token key;
    bool last;
    while (before > k->s.buf && (unsigned char)before[-1] <= ' ') before--;
    if (before == k->s.buf || (before[-1] != ',' && before[-1] != '['))
        return SCAN_BROKEN;
    scan_status s = scan_key(&q, k->s.end, &key, &last);
    if (s != SCAN_OK) return s;
    return !last && names_event(&key) ? SCAN_OK : SCAN_BROKEN;
}

/* Moves to the next event behind one that could not be read. */
static sc_status resynchronize(kineto *k)
{
    if (!k->p.m.n_broken++) k->broken = scan_pos(&k->s, k->s.at);
    const char *p = k->s.at + 1;
    for (;;) {
        p = memchr(p, '{', (size_t)(k->s.end - p));
        scan_status s = p ? begins_event(k, p) : SCAN_MORE;
        if (s == SCAN_OK) {
            k->s.at = p;
            return SC_OK;
        }
        if (s == SCAN_BROKEN) {
            p++;
            continue;
        }
        /* Some bytes before the brace stay, to see what is before it. */
        const char *keep = p ? p : k->s.end;
        size_t back =
            (size_t)(keep - k->s.at) > 64 ? 64 : (size_t)(keep - k->s.at);
        k->s.at = keep - back;
        SC_TRY(scan_more(&k->s));
        p = k->s.at + back;
    }
}

static void truncated(kineto *k)
{
    sc_text_add(k->warnings, "the file ends inside its list of events: the "
                             "events before are used\n");
}

/* Reads the list of events, whose bracket is at s->at; SC_NO: the file ends
 * inside. */
static sc_status events(kineto *k)
{
    k->s.at++;
    for (;;) {
        kineto_event e;
        const char *p = k->s.at;
        scan_status s = scan_blanks(&p, k->s.end);
        if (s == SCAN_OK && *p == ',') {
            k->s.at = p + 1;
            continue;
        }
        if (s == SCAN_OK && *p == ']') {
            k->s.at = p + 1;
            return SC_OK;
        }
        if (s == SCAN_OK) {
            k->s.at = p;
            s = *p == '{' ? kineto_event_read(k, &p, &e) : SCAN_BROKEN;
        }
        if (s == SCAN_MORE) SC_TRY(scan_more(&k->s));
        if (s == SCAN_BROKEN) SC_TRY(resynchronize(k));
        if (s != SCAN_OK) continue;
        k->s.at = p;
        SC_TRY(kineto_event_keep(k, &e));
    }
}

/* ---- the root ------------------------------------------------------------ */

static sc_status not_a_trace(kineto *k, const char *what, const char *hint)
{
    return sc_error(
        k->p.err, SC_EINPUT, SC_C_SYNTAX, scan_pos(&k->s, k->s.at),
        hint ? hint
             : "a trace of PyTorch's profiler is JSON with \"traceEvents\"",
        "%s", what);
}

/* Reads a member of the root; `*last` if the root ends. */
static sc_status root_member(kineto *k, bool *last, bool *has_events)
{
    for (;;) {
        scan_token key, value;
        const char *p = k->s.at;
        scan_status s = scan_key(&p, k->s.end, &key, last);
        if (s == SCAN_OK && *last) return SC_OK;
        if (s == SCAN_OK) s = scan_blanks(&p, k->s.end);
        if (s == SCAN_OK && SCAN_IS(&key, "traceEvents") && *p == '[') {
            *has_events = true;
            k->s.at = p;
            return events(k);
        }
        if (s == SCAN_OK) s = scan_value(&p, k->s.end, &value);
        if (s == SCAN_BROKEN) return not_a_trace(k, "this is not JSON", NULL);
        if (s == SCAN_MORE) {
            SC_TRY(scan_more(&k->s));
            continue;
        }
        if (SCAN_IS(&key, "nodes") && value.type == SCAN_ARRAY)
            return not_a_trace(k, "this is an execution trace, without times",
                               "give the trace of the profiler (Kineto)");
        kineto_metadata(k, &key, &value);
        k->s.at = p;
        return SC_OK;
    }
}

static sc_status root(kineto *k)
{
    bool last = false, has_events = false;
    sc_status s = SC_OK;
    while (s == SC_OK && scan_blanks(&k->s.at, k->s.end) != SCAN_OK)
        s = scan_more(&k->s);
    if (s != SC_OK && s != SC_NO) return s;
    if (s == SC_NO) return not_a_trace(k, "the file is empty", NULL);
    if (*k->s.at == '[') {
        has_events = true;
        s = events(k);
    } else if (*k->s.at == '{') {
        k->s.at++;
        while (s == SC_OK && !last) s = root_member(k, &last, &has_events);
    } else {
        return not_a_trace(k, "this is not JSON", NULL);
    }
    if (s == SC_NO && !has_events)
        return not_a_trace(k, "the file ends before its list of events", NULL);
    if (s == SC_NO) truncated(k);
    if (s != SC_OK && s != SC_NO) return s;
    if (!has_events)
        return not_a_trace(k, "the file has no list of events", NULL);
    return SC_OK;
}

/* ---- the whole ----------------------------------------------------------- */

static void add_warnings(kineto *k)
{
    const sc_profiled *m = &k->p.m;
    if (k->broken.line)
        sc_text_add(k->warnings,
                    "%llu events can't be read and are left out, the first in "
                    "line %u, column %u\n",
                    (unsigned long long)m->n_broken, k->broken.line,
                    k->broken.col);
    else if (m->n_broken)
        sc_text_add(k->warnings,
                    "%llu events have no usable time or thread and are left "
                    "out\n",
                    (unsigned long long)m->n_broken);
}

sc_status kineto_read(sc_stream *in, const char *file, sc_arena *a,
                      sc_text *warnings, sc_profiled *out, sc_err *err)
{
    kineto *k = SC_NEW(a, kineto);
    if (!k) return sc_error_nomem(err);
    *k = (kineto){.warnings = warnings};
    sc_status s = profiled_start(&k->p, file, a, err);
    if (s == SC_OK) s = scan_open(&k->s, in, file, err);
    if (s == SC_OK) s = root(k);
    if (s == SC_OK && k->p.out_of_memory) s = sc_error_nomem(err);
    if (s == SC_OK && k->p.m.n_broken && !k->p.m.n_spans && !k->p.m.n_ignored)
        s = not_a_trace(k, "no event of the file can be read", NULL);
    scan_close(&k->s);
    SC_TRY(s);
    profiled_name_device(&k->p, k->device, k->n_devices);
    add_warnings(k);
    k->p.m.origin_ns = k->base_ns + k->p.origin_us * 1000;
    *out = k->p.m;
    return SC_OK;
}
