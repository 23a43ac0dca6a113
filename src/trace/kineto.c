/* SPDX-License-Identifier: Apache-2.0 */
/* kineto.c - events of a profiler's trace become spans, and its metadata facts of
 * the rank. */
#include "trace/kineto.h"

#include "et/et_kineto.h"
#include "trace/profiled.h"

#include <string.h>

typedef struct kineto {
    scan s;
    profiled p;
    int64_t base_ns;
    uint32_t n_devices;
    profiled_device *device; /* [n_devices] of the file's metadata */
} kineto;

/* A string of the file in the arena; NULL if it is none. */
static const char *string(kineto *k, const scan_token *t)
{
    if (t->type != SCAN_STRING) return NULL;
    uint32_t i = profiled_token(&k->p, t);
    return i ? k->p.m.name[i] : NULL;
}

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
    if (SCAN_IS(key, "backend")) k->p.m.backend = string(k, value);
    if (SCAN_IS(key, "pg_config")) profiled_groups(&k->p, value);
}

static void device_member(kineto *k, const scan_token *key,
                          const scan_token *value, void *ctx)
{
    profiled_device *d = ctx;
    if (SCAN_IS(key, "id")) (void)scan_int(value, &d->id);
    if (SCAN_IS(key, "name")) d->name = string(k, value);
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

static void on_member(void *ctx, const scan_token *key, const scan_token *value)
{
    kineto *k = ctx;
    if (SCAN_IS(key, "distributedInfo"))
        members(k, value, NULL, distributed);
    else if (SCAN_IS(key, "deviceProperties"))
        devices(k, value);
    else if (SCAN_IS(key, "baseTimeNanoseconds"))
        (void)scan_int(value, &k->base_ns);
}

/* ---- arguments ----------------------------------------------------------- */

static uint32_t text_of(kineto *k, const scan_token *t)
{
    return t->type == SCAN_NONE ? 0 : profiled_token(&k->p, t);
}

static uint32_t number_of(const scan_token *t)
{
    uint64_t u;
    return scan_uint(t, &u) && u < UINT32_MAX ? (uint32_t)u : 0;
}

static int32_t stream_of(const scan_token *t)
{
    int64_t i;
    return scan_int(t, &i) && i >= 0 && i < INT32_MAX ? (int32_t)i : -1;
}

/* Plus 1; 0: none. */
static uint32_t rank_of(const scan_token *t)
{
    uint64_t u;
    return scan_uint(t, &u) && u < UINT32_MAX - 1 ? (uint32_t)u + 1 : 0;
}

/* The number of a span's arguments; 0 if it has none. */
static uint32_t args_of(kineto *k, const sc_kineto_args *from)
{
    sc_trace_span_args x = profiled_no_args;
    bool any = from->stream.type != SCAN_NONE;
    x.stream = stream_of(&from->stream);
    x.wait_stream = stream_of(&from->wait_stream);
    x.record = number_of(&from->wait_record);
    x.group_size = number_of(&from->group_size);
    x.from = rank_of(&from->from);
    x.to = rank_of(&from->to);
    any |= scan_uint(&from->bytes, &x.bytes);
    any |= scan_uint(&from->in_elems, &x.in_elems);
    any |= scan_uint(&from->out_elems, &x.out_elems);

    const struct {
        const scan_token *from;
        uint32_t *to;
    } texts[] = {{&from->dims, &x.dims},         {&from->types, &x.types},
                 {&from->concrete, &x.concrete}, {&from->stack, &x.stack},
                 {&from->group, &x.group},       {&from->ranks, &x.ranks},
                 {&from->coll, &x.coll},         {&from->dtype, &x.dtype},
                 {&from->grid, &x.grid},         {&from->block, &x.block}};

    for (size_t i = 0; i < SC_COUNT(texts); i++) {
        *texts[i].to = text_of(k, texts[i].from);
        any |= *texts[i].to != 0;
    }
    return any ? profiled_args(&k->p, &x) : 0;
}

/* ---- events -------------------------------------------------------------- */

static const uint8_t span_kinds[] = {
    [SC_KINETO_OP] = SC_SPAN_OP,     [SC_KINETO_MARK] = SC_SPAN_MARK,
    [SC_KINETO_STEP] = SC_SPAN_STEP, [SC_KINETO_CALL] = SC_SPAN_CALL,
    [SC_KINETO_SYNC] = SC_SPAN_SYNC, [SC_KINETO_KERNEL] = SC_SPAN_KERNEL,
    [SC_KINETO_COPY] = SC_SPAN_COPY, [SC_KINETO_SET] = SC_SPAN_SET,
};

static uint32_t thread_of(kineto *k, const sc_kineto_event *e)
{
    return profiled_lane(&k->p, sc_kineto_id(&e->pid), sc_kineto_id(&e->tid),
                         false);
}

/* The lane of a span; Gloo's workers run one collective after the other, as a
 * stream does. */
static uint32_t lane_of(kineto *k, const sc_kineto_event *e, bool on_device,
                        bool gloo)
{
    int64_t pid = sc_kineto_id(&e->pid), tid = sc_kineto_id(&e->tid);
    if (on_device) {
        int64_t device = -1;
        int32_t stream = stream_of(&e->args->stream);
        (void)scan_int(&e->args->device, &device);
        if (device >= 0) pid = device;
        if (stream >= 0) tid = stream;
    }
    return profiled_lane(&k->p, pid, tid, on_device || gloo);
}

/* Gives a span the kind and the detail that its name tells. */
static void refine(sc_trace_span *span, const char *name, bool gloo)
{
    if (span->kind == SC_SPAN_CALL)
        span->detail = (uint8_t)profiled_call_kind(name);
    if (span->kind == SC_SPAN_KERNEL && profiled_is_coll_kernel(name)) {
        span->kind = SC_SPAN_COLL;
        span->detail = (uint8_t)profiled_coll_of_kernel(name);
    }
    if (gloo) {
        span->kind = SC_SPAN_COLL;
        span->detail = (uint8_t)sc_coll_find(name + strlen("gloo:"));
    }
}

/* Of calls and device spans that of both; of operators the record function's. */
static uint32_t id_of(const sc_kineto_args *args, bool of_operator)
{
    uint64_t id = 0, other = 0;
    if (!of_operator) {
        (void)scan_uint(&args->correlation, &id);
        return (uint32_t)id;
    }
    (void)scan_uint(&args->record, &id);
    (void)scan_uint(&args->external, &other);
    return (uint32_t)(id ? id : other);
}

static sc_status keep_span(kineto *k, const sc_kineto_event *e)
{
    sc_trace_span span = {.kind = span_kinds[e->kind]};
    bool gloo = e->kind == SC_KINETO_MARK && scan_starts(&e->name, "gloo:");
    if (!sc_kineto_time(&k->p.clock, e, &span.start, &span.dur)) {
        k->p.m.n_broken++;
        return SC_OK;
    }
    if (span.kind != SC_SPAN_CALL) span.args = args_of(k, e->args);
    span.name = profiled_token(&k->p, &e->name);
    uint32_t lane = lane_of(k, e, span.kind >= SC_SPAN_SYNC, gloo);
    refine(&span, k->p.m.name[span.name], gloo);
    span.id = id_of(e->args, span.kind <= SC_SPAN_STEP);
    if (k->p.out_of_memory) return sc_error_nomem(k->p.err);
    if (lane == UINT32_MAX) {
        k->p.m.n_broken++;
        return SC_OK;
    }
    span.lane = (uint16_t)lane;
    return profiled_span(&k->p, &span);
}

static sc_status keep_memory(kineto *k, const sc_kineto_event *e)
{
    sc_memory_change c = {.bytes = 0};
    int64_t device_type = 0, device = 0;
    sc_time none;
    (void)scan_int(&e->args->device_type, &device_type);
    (void)scan_int(&e->args->device_id, &device);
    if (device_type == 0 || !sc_kineto_time(&k->p.clock, e, &c.at, &none))
        return SC_OK;
    (void)scan_int(&e->args->change, &c.bytes);
    (void)scan_uint(&e->args->total, &c.total);
    (void)scan_uint(&e->args->address, &c.address);
    uint32_t lane = thread_of(k, e);
    if (k->p.out_of_memory) return sc_error_nomem(k->p.err);
    if (lane == UINT32_MAX) {
        k->p.m.n_broken++;
        return SC_OK;
    }
    c.lane = (uint16_t)lane;
    c.device = (uint16_t)device;
    return profiled_change(&k->p, &c);
}

static void name_thread(kineto *k, const sc_kineto_event *e)
{
    uint32_t lane = thread_of(k, e);
    if (lane != UINT32_MAX)
        k->p.m.lanes[lane].thread = profiled_token(&k->p, &e->args->name);
}

static sc_status on_event(void *ctx, const sc_kineto_event *e)
{
    kineto *k = ctx;
    switch (e->kind) {
    case SC_KINETO_MEMORY: return keep_memory(k, e);
    case SC_KINETO_PYTHON: k->p.m.n_python++; return SC_OK;
    case SC_KINETO_THREAD: name_thread(k, e); break;
    case SC_KINETO_OTHER: break;
    default: return keep_span(k, e);
    }
    k->p.m.n_ignored++;
    return k->p.out_of_memory ? sc_error_nomem(k->p.err) : SC_OK;
}

/* ---- the whole ----------------------------------------------------------- */

static void add_warnings(const sc_profiled *m, const sc_kineto_damage *damage,
                         sc_text *warnings)
{
    if (damage->truncated)
        sc_text_add(warnings, "the file ends inside its list of events: the "
                              "events before are used\n");
    if (damage->n_broken)
        sc_text_add(warnings,
                    "%llu events can't be read and are left out, the first in "
                    "line %u, column %u\n",
                    (unsigned long long)m->n_broken, damage->broken.line,
                    damage->broken.col);
    else if (m->n_broken)
        sc_text_add(warnings,
                    "%llu events have no usable time or thread and are left "
                    "out\n",
                    (unsigned long long)m->n_broken);
}

static sc_status read_all(kineto *k, sc_kineto_damage *damage)
{
    const sc_kineto_sink to = {k, on_event, on_member};
    sc_profiled *m = &k->p.m;
    SC_TRY(sc_kineto_read(&k->s, &to, damage, k->p.err));
    if (k->p.out_of_memory) return sc_error_nomem(k->p.err);
    m->n_broken += damage->n_broken;
    if (m->n_broken && !m->n_spans && !m->n_ignored)
        return sc_error(k->p.err, SC_EINPUT, SC_C_SYNTAX,
                        scan_pos(&k->s, k->s.at), SC_KINETO_HINT,
                        "no event of the file can be read");
    return SC_OK;
}

sc_status kineto_read(sc_stream *in, const char *file, sc_arena *a,
                      sc_text *warnings, sc_profiled *out, sc_err *err)
{
    kineto *k = SC_NEW(a, kineto);
    sc_kineto_damage damage;
    if (!k) return sc_error_nomem(err);
    SC_TRY(profiled_start(&k->p, file, a, err));
    sc_status s = scan_open(&k->s, in, file, err);
    if (s == SC_OK) s = read_all(k, &damage);
    scan_close(&k->s);
    SC_TRY(s);
    profiled_name_device(&k->p, k->device, k->n_devices);
    add_warnings(&k->p.m, &damage, warnings);
    k->p.m.origin_ns = k->base_ns + k->p.clock.origin_us * 1000;
    *out = k->p.m;
    return SC_OK;
}
