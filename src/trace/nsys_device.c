/* SPDX-License-Identifier: Apache-2.0 */
/* nsys_device.c - kernels, graphs, copies and memsets of a report of Nsight
 * Systems. */
#include "trace/nsys.h"

#ifdef STEPCAST_SQLITE

#include <stdio.h>

/* Finds the rank of a row, which its first kernel makes, and fills in what the
 * tables have in common. `*rank`: NULL if the row can't be used. */
static sc_status device_span(nsys *n, const nsys_row *row, nsys_rank **rank,
                             sc_trace_span *span, sc_trace_span_args *args)
{
    int64_t start, process = nsys_int_or(row, NSYS_PROCESS, 0);
    nsys_rank *r = nsys_rank_of(n, process);
    *rank = NULL;
    if (!r && n->complete) return SC_OK;
    n->n_broken++;
    if (!nsys_int(row, NSYS_START, &start)) return SC_OK;
    if (!r) SC_TRY(nsys_rank_new(n, process, nsys_us(start), &r));
    *args = profiled_no_args;
    args->stream = nsys_stream(row, NSYS_STREAM);
    span->id = nsys_correlation(row, NSYS_CORRELATION);
    if (!nsys_span_time(r, row, span)) return SC_OK;
    uint32_t lane = profiled_lane(&r->p, nsys_int_or(row, NSYS_DEVICE, 0),
                                  args->stream, true);
    if (r->p.out_of_memory) return sc_error_nomem(n->err);
    if (lane == UINT32_MAX) return SC_OK;
    span->lane = (uint16_t)lane;
    n->n_broken--;
    *rank = r;
    return SC_OK;
}

static const char *const kernel_columns[] = {NSYS_DEVICE_COLUMNS,
                                             "demangledName",
                                             "shortName",
                                             "mangledName",
                                             "gridX",
                                             "gridY",
                                             "gridZ",
                                             "blockX",
                                             "blockY",
                                             "blockZ",
                                             NULL};

static uint32_t size_of(nsys *n, nsys_rank *r, const nsys_row *row, int column)
{
    char text[80];
    int64_t x;
    if (!nsys_int(row, column, &x)) return 0;
    int len = snprintf(text, sizeof text, "[%lld, %lld, %lld]", (long long)x,
                       (long long)nsys_int_or(row, column + 1, 1),
                       (long long)nsys_int_or(row, column + 2, 1));
    return nsys_name(n, r, text, (size_t)len);
}

static sc_status kernel(void *ctx, const nsys_row *row)
{
    nsys *n = ctx;
    nsys_rank *r;
    int64_t id;
    sc_trace_span span = {.kind = SC_SPAN_KERNEL};
    sc_trace_span_args args;
    SC_TRY(device_span(n, row, &r, &span, &args));
    if (!r) return SC_OK;
    for (int i = NSYS_OWN; i < NSYS_OWN + 3 && !span.name; i++)
        if (nsys_int(row, i, &id))
            SC_TRY(nsys_string_name(n, r, id, false, &span.name));
    if (!span.name) span.name = nsys_name(n, r, "kernel", 6);
    args.grid = size_of(n, r, row, NSYS_OWN + 3);
    args.block = size_of(n, r, row, NSYS_OWN + 6);
    if (r->p.out_of_memory) return sc_error_nomem(n->err);
    const char *name = r->p.m.name[span.name];
    if (profiled_is_coll_kernel(name)) {
        span.kind = SC_SPAN_COLL;
        span.detail = (uint8_t)profiled_coll_of_kernel(name);
    }
    return nsys_keep(n, r, &span, &args);
}

static const char *const graph_columns[] = {NSYS_DEVICE_COLUMNS, "graphId",
                                            NULL};

/* A whole CUDA graph, where its kernels were not recorded one by one. */
static sc_status graph(void *ctx, const nsys_row *row)
{
    nsys *n = ctx;
    nsys_rank *r;
    char text[60];
    sc_trace_span span = {.kind = SC_SPAN_KERNEL};
    sc_trace_span_args args;
    SC_TRY(device_span(n, row, &r, &span, &args));
    if (!r) return SC_OK;
    int len = snprintf(text, sizeof text, "CUDA graph %lld",
                       (long long)nsys_int_or(row, NSYS_OWN, 0));
    span.name = nsys_name(n, r, text, (size_t)len);
    return nsys_keep(n, r, &span, &args);
}

/* As Kineto names them. */
static const char *memory_kind(int64_t kind)
{
    static const char *const names[] = {
        "Pageable", "Pinned",        "Device",        "Array",
        "Managed",  "Device Static", "Managed Static"};
    return kind >= 0 && kind < (int64_t)SC_COUNT(names) ? names[kind]
                                                        : "Unknown";
}

static const char *const copy_columns[] = {
    NSYS_DEVICE_COLUMNS, "bytes", "copyKind", "srcKind", "dstKind", NULL};

static sc_status copy(void *ctx, const nsys_row *row)
{
    static const char *const ways[] = {
        "Unknown", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA", "AtoD",
        "DtoA",    "DtoD", "HtoH", "PtoP", "HtoD", "DtoH", "DtoD"};

    nsys *n = ctx;
    nsys_rank *r;
    char text[80];
    int64_t bytes, from;
    sc_trace_span span = {.kind = SC_SPAN_COPY};
    sc_trace_span_args args;
    SC_TRY(device_span(n, row, &r, &span, &args));
    if (!r) return SC_OK;
    int64_t way = nsys_int_or(row, NSYS_OWN + 1, 0);
    if (way < 0 || way >= (int64_t)SC_COUNT(ways)) way = 0;
    int len = snprintf(text, sizeof text, "Memcpy %s", ways[way]);
    if (nsys_int(row, NSYS_OWN + 2, &from))
        len += snprintf(text + len, sizeof text - (size_t)len, " (%s -> %s)",
                        memory_kind(from),
                        memory_kind(nsys_int_or(row, NSYS_OWN + 3, -1)));
    span.name = nsys_name(n, r, text, (size_t)len);
    if (nsys_int(row, NSYS_OWN, &bytes) && bytes > 0)
        args.bytes = (uint64_t)bytes;
    return nsys_keep(n, r, &span, &args);
}

static const char *const set_columns[] = {NSYS_DEVICE_COLUMNS, "bytes",
                                          "memKind", NULL};

static sc_status set(void *ctx, const nsys_row *row)
{
    nsys *n = ctx;
    nsys_rank *r;
    char text[60];
    int64_t bytes;
    sc_trace_span span = {.kind = SC_SPAN_SET};
    sc_trace_span_args args;
    SC_TRY(device_span(n, row, &r, &span, &args));
    if (!r) return SC_OK;
    int len = snprintf(text, sizeof text, "Memset (%s)",
                       memory_kind(nsys_int_or(row, NSYS_OWN + 1, -1)));
    span.name = nsys_name(n, r, text, (size_t)len);
    if (nsys_int(row, NSYS_OWN, &bytes) && bytes > 0)
        args.bytes = (uint64_t)bytes;
    return nsys_keep(n, r, &span, &args);
}

sc_status nsys_devices(nsys *n, bool *any)
{
    bool kernels, graphs, copies, sets;
    SC_TRY(nsys_rows(&n->d, "CUPTI_ACTIVITY_KIND_KERNEL", kernel_columns,
                     kernel, n, &kernels));
    SC_TRY(nsys_rows(&n->d, "CUPTI_ACTIVITY_KIND_GRAPH_TRACE", graph_columns,
                     graph, n, &graphs));
    n->complete = true;
    SC_TRY(nsys_rows(&n->d, "CUPTI_ACTIVITY_KIND_MEMCPY", copy_columns, copy, n,
                     &copies));
    SC_TRY(nsys_rows(&n->d, "CUPTI_ACTIVITY_KIND_MEMSET", set_columns, set, n,
                     &sets));
    *any |= kernels || graphs || copies || sets;
    return SC_OK;
}

#endif
