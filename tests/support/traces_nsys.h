/* SPDX-License-Identifier: Apache-2.0 */
/*
 * traces_nsys.h - databases as Nsight Systems exports them, by the schemas of its
 * user guide for 2021 and 2026: what replay reads of them, and some of the rest.
 *
 *   report r;
 *   report_open(&r, true);
 *   report_kernel(&r, 100, 0, 7, 20000, 30000, 1, "gemm");
 *   path = report_close(&r);     the file is removed by report_remove()
 */
#ifndef TESTS_TRACES_NSYS_H
#define TESTS_TRACES_NSYS_H

#include "base/sqlite.h"
#include "fixture.h"
#include "trace/trace_profiled.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef STEPCAST_SQLITE

typedef struct report {
    sc_sqlite lite;
    sqlite3 *db;
    bool newer;
    int strings;
} report;

static char report_path[512];

static inline void report_sql(report *r, const char *fmt, ...) SC_PRINTF(2, 3);

static inline void report_sql(report *r, const char *fmt, ...)
{
    sc_text t;
    va_list ap;
    sc_text_init(&t);
    va_start(ap, fmt);
    sc_text_add_v(&t, fmt, ap);
    va_end(ap);
    if (r->lite.exec(r->db, t.buf, NULL, NULL, NULL) != SQLITE_OK)
        fail_msg("%s: %s", r->lite.errmsg(r->db), t.buf);
    sc_text_free(&t);
}

static const char report_older[] =
    "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT NOT NULL);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INT NOT NULL, end INT NOT "
    "NULL, eventClass INT NOT NULL, globalTid INT NOT NULL, correlationId INT "
    "NOT NULL, nameId INT NOT NULL, returnValue INT NOT NULL);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT NOT NULL, end INT NOT "
    "NULL, deviceId INT NOT NULL, contextId INT NOT NULL, streamId INT NOT "
    "NULL, correlationId INT NOT NULL, globalPid INT NOT NULL, demangledName "
    "INT NOT NULL, shortName INT NOT NULL, gridX INT, gridY INT, gridZ INT, "
    "blockX INT, blockY INT, blockZ INT);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INT NOT NULL, end INT NOT "
    "NULL, deviceId INT NOT NULL, contextId INT NOT NULL, streamId INT NOT "
    "NULL, correlationId INT NOT NULL, globalPid INT NOT NULL, bytes INT NOT "
    "NULL, copyKind INT NOT NULL, srcKind INT NOT NULL, dstKind INT NOT NULL);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (start INT NOT NULL, end INT NOT "
    "NULL, deviceId INT NOT NULL, contextId INT NOT NULL, streamId INT NOT "
    "NULL, correlationId INT NOT NULL, globalPid INT NOT NULL, value INT NOT "
    "NULL, bytes INT NOT NULL, memKind INT NOT NULL);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION (start INT NOT NULL, end "
    "INT NOT NULL, deviceId INT NOT NULL, contextId INT NOT NULL, streamId INT "
    "NOT NULL, correlationId INT NOT NULL, globalPid INT NOT NULL, syncType "
    "INT NOT NULL, eventId INT NOT NULL);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_CUDA_EVENT (deviceId INT NOT NULL, "
    "contextId INT NOT NULL, streamId INT NOT NULL, correlationId INT NOT "
    "NULL, globalPid INT NOT NULL, eventId INT NOT NULL);"
    "CREATE TABLE NVTX_EVENTS (start INT NOT NULL, end INT NOT NULL, eventType "
    "INT NOT NULL, rangeId INT NOT NULL, text TEXT NOT NULL, globalTid INT NOT "
    "NULL, endGlobalTid INT NOT NULL, textId INT NOT NULL, domainId INT NOT "
    "NULL);"
    "CREATE TABLE TARGET_INFO_GPU (id INT NOT NULL, name TEXT NOT NULL);";

static const char report_newer[] =
    "CREATE TABLE StringIds (-- texts\n id INTEGER NOT NULL PRIMARY KEY, value "
    "TEXT NOT NULL);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER NOT NULL, end "
    "INTEGER NOT NULL, eventClass INTEGER NOT NULL, globalTid INTEGER, "
    "correlationId INTEGER, nameId INTEGER NOT NULL, returnValue INTEGER NOT "
    "NULL, callchainId INTEGER);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end "
    "INTEGER NOT NULL, deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, "
    "greenContextId INTEGER, streamId INTEGER NOT NULL, correlationId INTEGER, "
    "globalPid INTEGER, demangledName INTEGER NOT NULL, shortName INTEGER NOT "
    "NULL, mangledName INTEGER, gridX INTEGER NOT NULL, gridY INTEGER NOT "
    "NULL, gridZ INTEGER NOT NULL, blockX INTEGER NOT NULL, blockY INTEGER NOT "
    "NULL, blockZ INTEGER NOT NULL, graphNodeId INTEGER, graphId INTEGER);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INTEGER NOT NULL, end "
    "INTEGER NOT NULL, deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, "
    "streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, "
    "graphId INTEGER NOT NULL, graphExecId INTEGER NOT NULL);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER NOT NULL, end "
    "INTEGER NOT NULL, deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, "
    "greenContextId INTEGER, streamId INTEGER NOT NULL, correlationId INTEGER, "
    "globalPid INTEGER, bytes INTEGER NOT NULL, copyKind INTEGER NOT NULL, "
    "srcKind INTEGER, dstKind INTEGER, copyCount INTEGER);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (start INTEGER NOT NULL, end "
    "INTEGER NOT NULL, deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, "
    "greenContextId INTEGER, streamId INTEGER NOT NULL, correlationId INTEGER, "
    "globalPid INTEGER, value INTEGER NOT NULL, bytes INTEGER NOT NULL, "
    "graphNodeId INTEGER, memKind INTEGER);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION (start INTEGER NOT NULL, "
    "end INTEGER NOT NULL, deviceId INTEGER NOT NULL, contextId INTEGER NOT "
    "NULL, greenContextId INTEGER, streamId INTEGER NOT NULL, correlationId "
    "INTEGER, globalPid INTEGER, deprecatedSyncType INTEGER, syncType INTEGER "
    "NOT NULL, eventId INTEGER NOT NULL, eventSyncId INTEGER);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_CUDA_EVENT (timestamp INTEGER, deviceId "
    "INTEGER NOT NULL, contextId INTEGER NOT NULL, greenContextId INTEGER, "
    "streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, "
    "eventId INTEGER NOT NULL, eventSyncId INTEGER);"
    "CREATE TABLE CUDA_GPU_MEMORY_USAGE_EVENTS (start INTEGER NOT NULL, "
    "globalPid INTEGER NOT NULL, deviceId INTEGER NOT NULL, bytes INTEGER NOT "
    "NULL, memKind INTEGER NOT NULL, memoryOperationType INTEGER NOT NULL);"
    "CREATE TABLE NVTX_EVENTS (start INTEGER NOT NULL, end INTEGER, eventType "
    "INTEGER NOT NULL, rangeId INTEGER, category INTEGER, color INTEGER, text "
    "TEXT, globalTid INTEGER, endGlobalTid INTEGER, textId INTEGER, domainId "
    "INTEGER, jsonText TEXT);"
    "CREATE TABLE ThreadNames (nameId INTEGER NOT NULL, priority INTEGER, "
    "globalTid INTEGER);"
    "CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER, utcTime "
    "TEXT, localTime TEXT);"
    "INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (1000000000000, '', '');"
    "CREATE TABLE TARGET_INFO_GPU (vmId INTEGER NOT NULL, id INTEGER NOT NULL, "
    "name TEXT);";

static inline void report_remove(void)
{
    if (*report_path) unlink(report_path);
    *report_path = '\0';
}

static inline void report_open(report *r, bool newer)
{
    const char *tmp = getenv("TMPDIR");
    *r = (report){.newer = newer};
    sc_err_init(&err);
    sc_sqlite_load(&r->lite, sc_pos_file("report"), "", &err);
    no_error();
    report_remove();
    char name[480];
    snprintf(name, sizeof name, "%s/stepcast-XXXXXX", tmp ? tmp : "/tmp");
    int fd = mkstemp(name);
    assert_true(fd >= 0);
    close(fd);
    unlink(name);
    snprintf(report_path, sizeof report_path, "%s.sqlite", name);
    int got = r->lite.open_v2(report_path, &r->db,
                              SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL);
    assert_int_equal(got, SQLITE_OK);
    report_sql(r, "PRAGMA page_size = 512; PRAGMA journal_mode = off; BEGIN;");
    report_sql(r, "%s", newer ? report_newer : report_older);
}

static inline const char *report_close(report *r)
{
    report_sql(r, "COMMIT");
    assert_int_equal(r->lite.close(r->db), SQLITE_OK);
    return report_path;
}

static inline int report_string(report *r, const char *text)
{
    report_sql(r, "INSERT INTO StringIds VALUES (%d, '%s')", ++r->strings,
               text);
    return r->strings;
}

/* Serialized numbers of a process and of its thread. */
static inline long long report_pid(int pid)
{
    return (1LL << 48) + ((long long)pid << 24);
}

static inline long long report_tid(int pid, int tid)
{
    return report_pid(pid) + tid;
}

/* Times are nanoseconds. */
static inline void report_call(report *r, int pid, int tid, long long from,
                               long long to, int id, const char *name)
{
    report_sql(r,
               "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME (start, end, "
               "eventClass, globalTid, correlationId, nameId, returnValue) "
               "VALUES (%lld, %lld, 0, %lld, %d, %d, 0)",
               from, to, report_tid(pid, tid), id, report_string(r, name));
}

static inline void report_kernel(report *r, int pid, int device, int stream,
                                 long long from, long long to, int id,
                                 const char *name)
{
    int s = report_string(r, name);
    report_sql(r,
               "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, "
               "contextId, streamId, correlationId, globalPid, demangledName, "
               "shortName, gridX, gridY, gridZ, blockX, blockY, blockZ) VALUES "
               "(%lld, %lld, %d, 1, %d, %d, %lld, %d, %d, 4, 2, 1, 128, 1, 1)",
               from, to, device, stream, id, report_pid(pid), s, s);
}

static inline void report_copy(report *r, int pid, int device, int stream,
                               long long from, long long to, int id, int bytes)
{
    report_sql(r,
               "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY (start, end, deviceId, "
               "contextId, streamId, correlationId, globalPid, bytes, "
               "copyKind, srcKind, dstKind) VALUES (%lld, %lld, %d, 1, %d, %d, "
               "%lld, %d, 2, 2, 0)",
               from, to, device, stream, id, report_pid(pid), bytes);
}

static inline void report_set(report *r, int pid, int device, int stream,
                              long long from, long long to, int id, int bytes)
{
    report_sql(r,
               "INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET (start, end, deviceId, "
               "contextId, streamId, correlationId, globalPid, value, bytes, "
               "memKind) VALUES (%lld, %lld, %d, 1, %d, %d, %lld, 0, %d, 2)",
               from, to, device, stream, id, report_pid(pid), bytes);
}

/* The record of an event; only newer versions write `link`. */
static inline void report_record(report *r, int pid, int device, int stream,
                                 int id, int event, int link)
{
    report_sql(r,
               "INSERT INTO CUPTI_ACTIVITY_KIND_CUDA_EVENT (deviceId, "
               "contextId, streamId, correlationId, globalPid, eventId) VALUES "
               "(%d, 1, %d, %d, %lld, %d)",
               device, stream, id, report_pid(pid), event);
    if (r->newer)
        report_sql(r,
                   "UPDATE CUPTI_ACTIVITY_KIND_CUDA_EVENT SET eventSyncId = %d "
                   "WHERE rowid = last_insert_rowid()",
                   link);
}

/* A wait as the device saw it: 1 of an event, 2 of a stream for an event, 3 of
 * a stream, 4 of all. */
static inline void report_wait(report *r, int pid, int stream, long long from,
                               long long to, int id, int type, int event,
                               int link)
{
    report_sql(r,
               "INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION (start, end, "
               "deviceId, contextId, streamId, correlationId, globalPid, "
               "syncType, eventId) VALUES (%lld, %lld, 0, 1, %d, %d, %lld, %d, "
               "%d)",
               from, to, stream, id, report_pid(pid), type, event);
    if (r->newer)
        report_sql(r,
                   "UPDATE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION SET eventSyncId "
                   "= %d WHERE rowid = last_insert_rowid()",
                   link);
}

/* A range that was pushed (59) or started (60). */
static inline void report_range(report *r, int pid, int tid, long long from,
                                long long to, int type, const char *text)
{
    report_sql(r,
               "INSERT INTO NVTX_EVENTS (start, end, eventType, rangeId, text, "
               "globalTid, endGlobalTid, textId, domainId) VALUES (%lld, %lld, "
               "%d, 0, '%s', %lld, %lld, 0, 0)",
               from, to, type, text, report_tid(pid, tid),
               type == 60 ? report_tid(pid, tid) : 0);
}

static inline void report_gpu(report *r, int id, const char *name)
{
    report_sql(r,
               "INSERT INTO TARGET_INFO_GPU (%sid, name) VALUES (%s%d, '%s')",
               r->newer ? "vmId, " : "", r->newer ? "0, " : "", id, name);
}

/* ---- reading ------------------------------------------------------------- */

static sc_text notes;
static sc_profiled *ranks_read; /* [n_read] */
static uint32_t n_read;

static inline sc_status read_file(const char *path)
{
    sc_err_init(&err);
    sc_text_free(&notes);
    sc_text_init(&notes);
    ranks_read = NULL;
    return sc_profiled_read_all(path, &arena, &notes, &ranks_read, &n_read,
                                &err);
}

static inline void reads(report *r)
{
    read_file(report_close(r));
    no_error();
}

/* The k-th span of a kind, in the order of the file. */
static inline const sc_trace_span *span_of(const sc_profiled *x,
                                           sc_trace_span_kind kind, uint32_t k)
{
    for (uint64_t i = 0; i < x->n_spans; i++) {
        const sc_trace_span *s = sc_trace_span_at(x, i);
        if (s->kind == kind && k-- == 0) return s;
    }
    fail_msg("there is no such %s", sc_trace_span_kind_names[kind]);
    return NULL;
}

static inline uint32_t count(sc_trace_span_kind kind)
{
    uint32_t found = 0;
    for (uint64_t i = 0; i < ranks_read->n_spans; i++)
        found += sc_trace_span_at(ranks_read, i)->kind == kind;
    return found;
}

static inline const char *name_of(const sc_trace_span *s)
{
    return ranks_read->name[s->name];
}

static inline const sc_trace_span_args *args_of(const sc_trace_span *s)
{
    return &ranks_read->args[s->args];
}

static inline void launch(report *r, long long at, int id, const char *name)
{
    report_call(r, 100, 101, at, at + 5000, id, "cudaLaunchKernel_v7000");
    report_kernel(r, 100, 0, 7, at + 10000, at + 30500, id, name);
}

static inline void fill_usual(report *r)
{
    report_gpu(r, 0, "NVIDIA H100");
    launch(r, 1000500, 1, "void gemm<float>(float*)");
    launch(r, 1040000, 2,
           "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)");
    report_call(r, 100, 101, 1080000, 1090000, 3, "cudaMemcpyAsync_v3020");
    report_copy(r, 100, 0, 7, 1085000, 1089000, 3, 64);
    report_call(r, 100, 101, 1091000, 1092000, 4, "cuMemsetD8Async");
    report_set(r, 100, 0, 7, 1093000, 1094000, 4, 32);
    report_call(r, 100, 101, 1095000, 1099000, 5,
                "cudaStreamSynchronize_v3020");
    report_wait(r, 100, 7, 1095500, 1098000, 5, 3, 0, 0);
    report_range(r, 100, 101, 1000000, 1100000, 59, "step 4");
    report_range(r, 100, 101, 1000200, 1030000, 59,
                 "aten::addmm, seq = 12, op_id = 3, sizes = [[64], [8, 64]]");
    report_range(r, 100, 101, 1031000, 1033000, 59, "forward");
}

static inline int report_setup(void **state)
{
    sc_text_init(&notes);
    return setup(state);
}

static inline int report_teardown(void **state)
{
    report_remove();
    sc_text_free(&notes);
    return teardown(state);
}

#define TEST(fn) \
    cmocka_unit_test_setup_teardown(fn, report_setup, report_teardown)

#endif
#endif
