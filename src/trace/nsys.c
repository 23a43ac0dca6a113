/* SPDX-License-Identifier: Apache-2.0 */
/* nsys.c - the tables of a report of Nsight Systems become ranks: each process
 * that runs kernels is one. */
#include "trace/nsys.h"

#include "base/utf8.h"

#ifdef STEPCAST_SQLITE

#include <stdlib.h>
#include <string.h>

#define THREAD_BITS 24 /* of a serialized number, behind those of its process */
#define THREAD_MASK ((INT64_C(1) << THREAD_BITS) - 1)
#define MAX_RANKS   1024

static int64_t process_of(int64_t serialized)
{
    return serialized & ~THREAD_MASK;
}

/* ---- ranks --------------------------------------------------------------- */

nsys_rank *nsys_rank_of(nsys *n, int64_t process)
{
    process = process_of(process);
    uint32_t i = sc_map_get(&n->by_process, (uint64_t)process);
    if (i != SC_MAP_END) return n->rank[i];
    if (n->n_ranks != 1 || n->rank[0]->process != 0) return NULL;
    n->several |= n->other && n->other != process;
    n->other = process;
    return n->rank[0];
}

sc_status nsys_rank_new(nsys *n, int64_t process, int64_t us, nsys_rank **out)
{
    nsys_rank **grown = sc_grow(n->a, (void *)n->rank, n->n_ranks,
                                &n->cap_ranks, 8, sizeof(nsys_rank *));
    nsys_rank *r = SC_NEW(n->a, nsys_rank);
    if (n->n_ranks == MAX_RANKS)
        return sc_error(n->err, SC_EINPUT, SC_C_TOO_BIG, sc_pos_file(n->d.file),
                        NULL, "more than %u processes run kernels", MAX_RANKS);
    if (!grown || !r) return sc_error_nomem(n->err);
    n->rank = grown;
    if (n->n_ranks == 0) n->origin_us = us;
    r->process = process = process_of(process);
    SC_TRY(profiled_start(&r->p, n->d.file, n->a, n->err));
    r->p.clock = (sc_profile_clock){true, n->origin_us}; /* one of all */
    if (!sc_map_set(&n->by_process, n->a, (uint64_t)process, n->n_ranks))
        return sc_error_nomem(n->err);
    n->rank[n->n_ranks++] = *out = r;
    return SC_OK;
}

bool nsys_thread(nsys_rank *r, int64_t thread, uint16_t *out)
{
    uint32_t lane =
        profiled_lane(&r->p, process_of(thread) >> THREAD_BITS & THREAD_MASK,
                      thread & THREAD_MASK, false);
    *out = (uint16_t)lane;
    return lane != UINT32_MAX;
}

/* ---- values -------------------------------------------------------------- */

int64_t nsys_us(int64_t ns)
{
    return ns / 1000 - (ns % 1000 < 0);
}

bool nsys_time(nsys_rank *r, int64_t ns, sc_time *out)
{
    int64_t rest = ns % 1000;
    return sc_profile_time(&r->p.clock, nsys_us(ns),
                           (rest < 0 ? rest + 1000 : rest) * 1000, out);
}

bool nsys_span_time(nsys_rank *r, const nsys_row *row, sc_trace_span *out)
{
    int64_t start, end, ns;
    if (!nsys_int(row, 0, &start) || !nsys_int(row, 1, &end)) return false;
    if (__builtin_sub_overflow(end, start, &ns) || ns < 0 ||
        ns > 4000000000000000)
        return false;
    out->dur = ns * 1000;
    return nsys_time(r, start, &out->start);
}

uint32_t nsys_name(nsys *n, nsys_rank *r, const char *text, size_t len)
{
    if (!text) return 0;
    if (len + 4 > n->text_cap) {
        size_t cap = 2 * len + 256;
        char *grown = SC_RAW_N(&n->tmp, char, cap);
        if (!grown) {
            r->p.out_of_memory = true;
            return 0;
        }
        n->text = grown;
        n->text_cap = cap;
    }
    char *to = n->text;
    for (const char *p = text, *end = text + len; p < end;)
        to += utf8_copy(&p, (size_t)(end - p), to);
    return profiled_name(&r->p, n->text, (size_t)(to - n->text));
}

/* "cudaFree_v3020" is called cudaFree. */
static size_t without_version(const char *text, size_t len)
{
    size_t n = len;
    if (len < 4 || memcmp(text, "cuda", 4) != 0) return len;
    while (n && text[n - 1] >= '0' && text[n - 1] <= '9') n--;
    return n < len && n > 2 && text[n - 1] == 'v' && text[n - 2] == '_' ? n - 2
                                                                        : len;
}

/* The name of a text of StringIds; 0 if it has none. */
sc_status nsys_string_name(nsys *n, nsys_rank *r, int64_t id, bool call,
                           uint32_t *out)
{
    const char *text;
    size_t len = 0;
    uint64_t key = 2 * (uint64_t)id + call;
    *out = sc_map_get(&r->strings, key);
    if (*out != SC_MAP_END) return SC_OK;
    SC_TRY(nsys_string(&n->d, id, &text, &len));
    if (text && call) len = without_version(text, len);
    *out = nsys_name(n, r, text, len);
    if (!sc_map_set(&r->strings, n->a, key, *out))
        return sc_error_nomem(n->err);
    return SC_OK;
}

uint32_t nsys_correlation(const nsys_row *row, int column)
{
    int64_t id = nsys_int_or(row, column, 0);
    return id > 0 && id <= UINT32_MAX ? (uint32_t)id : 0;
}

int32_t nsys_stream(const nsys_row *row, int column)
{
    int64_t id = nsys_int_or(row, column, -1);
    return id >= 0 && id < INT32_MAX ? (int32_t)id : -1;
}

sc_status nsys_keep(nsys *n, nsys_rank *r, sc_trace_span *span,
                    const sc_trace_span_args *args)
{
    span->args = profiled_args(&r->p, args);
    if (r->p.out_of_memory) return sc_error_nomem(n->err);
    return profiled_span(&r->p, span);
}

/* ---- calls --------------------------------------------------------------- */

static const char *const call_columns[] = {
    "start", "end", "globalTid", "correlationId", "nameId", NULL};

static sc_status call(void *ctx, const nsys_row *row)
{
    nsys *n = ctx;
    int64_t thread = nsys_int_or(row, 2, 0);
    nsys_rank *r = nsys_rank_of(n, thread);
    sc_trace_span span = {.kind = SC_SPAN_CALL, .id = nsys_correlation(row, 3)};
    if (!r) return SC_OK;
    if (!nsys_span_time(r, row, &span) || !nsys_thread(r, thread, &span.lane)) {
        n->n_broken++;
        return SC_OK;
    }
    SC_TRY(nsys_string_name(n, r, nsys_int_or(row, 4, -1), true, &span.name));
    if (r->p.out_of_memory) return sc_error_nomem(n->err);
    span.detail = (uint8_t)profiled_call_kind(r->p.m.name[span.name]);
    return profiled_span(&r->p, &span);
}

static const char *const thread_columns[] = {"globalTid", "nameId", NULL};

static sc_status thread_name(void *ctx, const nsys_row *row)
{
    nsys *n = ctx;
    uint16_t lane;
    uint32_t name;
    int64_t thread = nsys_int_or(row, 0, 0);
    nsys_rank *r = nsys_rank_of(n, thread);
    if (!r || !nsys_thread(r, thread, &lane)) return SC_OK;
    SC_TRY(nsys_string_name(n, r, nsys_int_or(row, 1, -1), false, &name));
    if (r->p.out_of_memory) return sc_error_nomem(n->err);
    r->p.m.lanes[lane].thread = name;
    return SC_OK;
}

/* ---- the whole ----------------------------------------------------------- */

static sc_status read_tables(nsys *n)
{
    bool any = false, found;
    SC_TRY(nsys_devices(n, &any));
    SC_TRY(nsys_rows(&n->d, "CUPTI_ACTIVITY_KIND_RUNTIME", call_columns, call,
                     n, &found));
    any |= found;
    if (n->n_ranks == 0)
        return sc_error(n->err, SC_EINPUT, SC_C_MISSING, sc_pos_file(n->d.file),
                        any ? "record with nsys profile --trace cuda,nvtx"
                            : "only reports of Nsight Systems and traces of "
                              "PyTorch's profiler are read",
                        any ? "the report has no kernel"
                            : "this database is not of Nsight Systems");
    SC_TRY(nsys_rows(&n->d, "ThreadNames", thread_columns, thread_name, n,
                     &found));
    SC_TRY(nsys_waits(n));
    SC_TRY(nsys_memory(n));
    return nsys_nvtx(n);
}

typedef struct device_list {
    nsys *n;
    profiled_device *device;
    uint32_t count, cap;
} device_list;

static const char *const gpu_columns[] = {"id", "name", NULL};

static sc_status gpu(void *ctx, const nsys_row *row)
{
    device_list *l = ctx;
    size_t len = 0;
    const char *name = nsys_text(row, 1, &len);
    profiled_device *grown =
        sc_grow(l->n->a, l->device, l->count, &l->cap, 8, sizeof *grown);
    uint32_t i = nsys_name(l->n, l->n->rank[0], name, len);
    if (!grown || l->n->rank[0]->p.out_of_memory)
        return sc_error_nomem(l->n->err);
    l->device = grown;
    l->device[l->count++] = (profiled_device){
        nsys_int_or(row, 0, -1), i ? l->n->rank[0]->p.m.name[i] : NULL};
    return SC_OK;
}

static const char *const session_columns[] = {"utcEpochNs", NULL};

static sc_status session(void *ctx, const nsys_row *row)
{
    int64_t *out = ctx;
    *out = nsys_int_or(row, 0, 0);
    return SC_OK;
}

/* What says nothing of events. */
static sc_status describe(nsys *n)
{
    bool found;
    int64_t since = 0, origin;
    device_list list = {.n = n};
    SC_TRY(
        nsys_rows(&n->d, "TARGET_INFO_GPU", gpu_columns, gpu, &list, &found));
    SC_TRY(nsys_rows(&n->d, "TARGET_INFO_SESSION_START_TIME", session_columns,
                     session, &since, &found));
    if (__builtin_mul_overflow(n->origin_us, 1000, &origin) ||
        __builtin_add_overflow(origin, since, &origin))
        origin = 0;
    for (uint32_t i = 0; i < n->n_ranks; i++) {
        profiled_name_device(&n->rank[i]->p, list.device, list.count);
        n->rank[i]->p.m.origin_ns = origin;
    }
    return SC_OK;
}

static void add_warnings(const nsys *n)
{
    if (n->several)
        sc_text_add(n->warnings, "kernels do not state their process: those of "
                                 "all processes are taken as one rank\n");
    if (n->n_broken)
        sc_text_add(n->warnings,
                    "%llu rows have no usable time and are left "
                    "out\n",
                    (unsigned long long)n->n_broken);
    if (n->n_open)
        sc_text_add(n->warnings,
                    "%llu ranges of NVTX have no end and are left "
                    "out\n",
                    (unsigned long long)n->n_open);
    if (n->n_overlap)
        sc_text_add(n->warnings,
                    "%llu ranges of NVTX overlap others and are "
                    "left out\n",
                    (unsigned long long)n->n_overlap);
}

/* The number of the device that most spans of a rank are on. */
static int64_t device_of(const nsys_rank *r)
{
    const sc_lane *most = NULL;
    for (uint32_t i = 0; i < r->p.m.n_lanes; i++) {
        const sc_lane *l = &r->p.m.lanes[i];
        if (l->device && (!most || l->n > most->n)) most = l;
    }
    return most ? most->pid : 0;
}

static int by_device(const void *x, const void *y)
{
    const nsys_rank *a = *(nsys_rank *const *)x, *b = *(nsys_rank *const *)y;
    int64_t i = device_of(a), k = device_of(b);
    if (i != k) return i < k ? -1 : 1;
    return (a->process > b->process) - (a->process < b->process);
}

static sc_status read_all(nsys *n, sc_profiled **out, uint32_t *n_out)
{
    SC_TRY(read_tables(n));
    SC_TRY(describe(n));
    qsort((void *)n->rank, n->n_ranks, sizeof *n->rank, by_device);
    *out = SC_NEW_N(n->a, sc_profiled, n->n_ranks);
    if (!*out) return sc_error_nomem(n->err);
    for (uint32_t i = 0; i < n->n_ranks; i++) (*out)[i] = n->rank[i]->p.m;
    (*out)[0].n_broken = n->n_broken + n->n_open + n->n_overlap;
    *n_out = n->n_ranks;
    add_warnings(n);
    return SC_OK;
}

sc_status nsys_read(const char *path, const char *data, size_t len, sc_arena *a,
                    sc_text *warnings, sc_profiled **out, uint32_t *n_out,
                    sc_err *err)
{
    nsys *n = SC_NEW(a, nsys);
    if (!n) return sc_error_nomem(err);
    *n = (nsys){.a = a, .warnings = warnings, .err = err};
    sc_arena_init(&n->tmp, a->limit);
    sc_status s = data ? nsys_db_open_memory(&n->d, data, len, path, err)
                       : nsys_db_open(&n->d, path, err);
    if (s == SC_OK) s = read_all(n, out, n_out);
    nsys_db_close(&n->d);
    sc_arena_free(&n->tmp);
    return s;
}

#else

sc_status nsys_read(const char *path, const char *data, size_t len, sc_arena *a,
                    sc_text *warnings, sc_profiled **out, uint32_t *n_out,
                    sc_err *err)
{
    (void)data;
    (void)len;
    (void)a;
    (void)warnings;
    (void)out;
    (void)n_out;
    return sc_sqlite_load(NULL, sc_pos_file(path), "", err);
}

#endif
