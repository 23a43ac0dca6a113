/* SPDX-License-Identifier: Apache-2.0 */
/* nsys_waits.c - events, waits and memory of a report of Nsight Systems. */
#include "trace/nsys.h"

#ifdef STEPCAST_SQLITE

#include <stdlib.h>
#include <string.h>

/* ---- events and waits ---------------------------------------------------- */

/* Newer versions number the records of an event (eventSyncId); in older ones a
 * wait is for the last record before it. */
static uint64_t event_of(const nsys_row *row, int context)
{
    int64_t link = nsys_int_or(row, context + 2, 0);
    if (link > 0) return sc_mix((uint64_t)link);
    return sc_mix(sc_mix((uint64_t)nsys_int_or(row, context, 0)) ^
                  (uint64_t)nsys_int_or(row, context + 1, 0)) |
           1;
}

static const char *const record_columns[] = {
    "globalPid", "correlationId", "streamId", "contextId",
    "eventId",   "eventSyncId",   NULL};

static sc_status record(void *ctx, const nsys_row *row)
{
    nsys *n = ctx;
    nsys_rank *r = nsys_rank_of(n, nsys_int_or(row, 0, 0));
    if (!r || !nsys_correlation(row, 1) || nsys_stream(row, 2) < 0)
        return SC_OK;
    nsys_record *grown = sc_grow_raw(&n->tmp, r->record, r->n_records,
                                     &r->cap_records, 64, sizeof *grown);
    if (!grown) return sc_error_nomem(n->err);
    r->record = grown;
    r->record[r->n_records++] = (nsys_record){
        event_of(row, 3), nsys_correlation(row, 1), nsys_stream(row, 2)};
    return SC_OK;
}

static int by_event(const void *x, const void *y)
{
    const nsys_record *a = x, *b = y;
    if (a->event != b->event) return a->event < b->event ? -1 : 1;
    return (a->correlation > b->correlation) -
           (a->correlation < b->correlation);
}

/* The last record of an event before a wait; NULL. */
static const nsys_record *record_before(const nsys_rank *r, uint64_t event,
                                        uint32_t wait)
{
    uint32_t i = 0;
    const nsys_record key = {event, wait, 0};
    SC_FIRST(i, r->n_records, mid, by_event(&r->record[mid], &key) >= 0)
    return i > 0 && r->record[i - 1].event == event ? &r->record[i - 1] : NULL;
}

static const char *const wait_columns[] = {NSYS_DEVICE_COLUMNS, "contextId",
                                           "eventId",           "eventSyncId",
                                           "syncType",          NULL};

/* Of a stream that waits for an event whose record is missing nothing is kept:
 * then the replay finds the reason in the order of calls. */
static sc_status wait_row(void *ctx, const nsys_row *row)
{
    static const char *const names[] = {"Unknown Sync", "Event Sync",
                                        "Stream Wait Event", "Stream Sync",
                                        "Context Sync"};

    nsys *n = ctx;
    int64_t type = nsys_int_or(row, NSYS_OWN + 3, 0);
    nsys_rank *r = nsys_rank_of(n, nsys_int_or(row, NSYS_PROCESS, 0));
    sc_trace_span span = {.kind = SC_SPAN_SYNC,
                          .id = nsys_correlation(row, NSYS_CORRELATION)};
    sc_trace_span_args args = profiled_no_args;
    if (!r || !nsys_span_time(r, row, &span)) return SC_OK;
    if (type < 0 || type >= (int64_t)SC_COUNT(names)) type = 0;
    args.stream = nsys_stream(row, NSYS_STREAM);
    if (type == 2) {
        const nsys_record *x =
            record_before(r, event_of(row, NSYS_OWN), span.id);
        if (!x || args.stream < 0) return SC_OK;
        args.wait_stream = x->stream;
        args.record = x->correlation;
    }
    span.name = nsys_name(n, r, names[type], strlen(names[type]));
    uint32_t lane = profiled_lane(&r->p, nsys_int_or(row, NSYS_DEVICE, 0),
                                  args.stream, true);
    if (r->p.out_of_memory) return sc_error_nomem(n->err);
    if (lane == UINT32_MAX) return SC_OK;
    span.lane = (uint16_t)lane;
    return nsys_keep(n, r, &span, &args);
}

/* ---- memory -------------------------------------------------------------- */

static const char *const memory_columns[] = {
    "start",    "globalPid", "bytes", "memKind", "memoryOperationType",
    "deviceId", NULL};

static sc_status memory(void *ctx, const nsys_row *row)
{
    nsys *n = ctx;
    int64_t start, bytes, kind = nsys_int_or(row, 3, 2);
    nsys_rank *r = nsys_rank_of(n, nsys_int_or(row, 1, 0));
    sc_memory_change c = {.lane = SC_NO_LANE};
    if (!r || kind < 2 || kind > 6) return SC_OK; /* of the host */
    if (!nsys_int(row, 0, &start) || !nsys_int(row, 2, &bytes) || bytes <= 0 ||
        !nsys_time(r, start, &c.at))
        return SC_OK;
    c.bytes = nsys_int_or(row, 4, 0) == 1 ? -bytes : bytes;
    c.device = (uint16_t)nsys_int_or(row, 5, 0);
    return profiled_change(&r->p, &c);
}

static int by_time(const void *x, const void *y)
{
    const sc_memory_change *a = x, *b = y;
    if (a->at != b->at) return a->at < b->at ? -1 : 1;
    return (a->bytes > b->bytes) - (a->bytes < b->bytes); /* frees first */
}

/* Sums of the changes of each device; what was there before the report is not in
 * it. */
static void sum_memory(sc_profiled *m)
{
    uint64_t totals[64] = {0};
    if (m->n_changes)
        qsort(m->change, m->n_changes, sizeof *m->change, by_time);
    for (uint32_t i = 0; i < m->n_changes; i++) {
        sc_memory_change *c = &m->change[i];
        uint64_t bytes = (uint64_t)(c->bytes < 0 ? -c->bytes : c->bytes);
        uint64_t *total = &totals[c->device % SC_COUNT(totals)];
        if (c->bytes > 0 && *total + bytes >= *total)
            *total += bytes;
        else if (c->bytes < 0)
            *total -= bytes < *total ? bytes : *total;
        c->total = *total;
    }
}

sc_status nsys_waits(nsys *n)
{
    bool found;
    SC_TRY(nsys_rows(&n->d, "CUPTI_ACTIVITY_KIND_CUDA_EVENT", record_columns,
                     record, n, &found));
    for (uint32_t i = 0; i < n->n_ranks; i++)
        if (n->rank[i]->n_records)
            qsort(n->rank[i]->record, n->rank[i]->n_records,
                  sizeof(nsys_record), by_event);
    return nsys_rows(&n->d, "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", wait_columns,
                     wait_row, n, &found);
}

sc_status nsys_memory(nsys *n)
{
    bool found;
    SC_TRY(nsys_rows(&n->d, "CUDA_GPU_MEMORY_USAGE_EVENTS", memory_columns,
                     memory, n, &found));
    for (uint32_t i = 0; i < n->n_ranks; i++) sum_memory(&n->rank[i]->p.m);
    return SC_OK;
}

#endif
