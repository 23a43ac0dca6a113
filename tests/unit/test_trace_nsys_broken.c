/* SPDX-License-Identifier: Apache-2.0 */
/* Databases of Nsight Systems with parts missing, and files that are not what they
 * claim to be. */
#include "traces_nsys.h"

#ifdef STEPCAST_SQLITE

static void refuses(report *r, const char *why)
{
    assert_int_equal(read_file(report_close(r)), SC_EINPUT);
    if (!strstr(err.d[0].msg, why)) fail_msg("\"%s\"", err.d[0].msg);
    assert_true(err.d[0].hint[0] != '\0');
}

/* ---- missing parts ------------------------------------------------------- */

static void missing_tables(void **state)
{
    static const char *const tables[] = {"StringIds",
                                         "CUPTI_ACTIVITY_KIND_RUNTIME",
                                         "CUPTI_ACTIVITY_KIND_MEMCPY",
                                         "CUPTI_ACTIVITY_KIND_MEMSET",
                                         "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
                                         "CUPTI_ACTIVITY_KIND_CUDA_EVENT",
                                         "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
                                         "CUDA_GPU_MEMORY_USAGE_EVENTS",
                                         "NVTX_EVENTS",
                                         "ThreadNames",
                                         "TARGET_INFO_GPU",
                                         "TARGET_INFO_SESSION_START_TIME"};
    (void)state;
    for (size_t i = 0; i < SC_COUNT(tables); i++) {
        report r;
        report_open(&r, true);
        fill_usual(&r);
        report_sql(&r, "DROP TABLE %s", tables[i]);
        reads(&r);
        assert_int_equal(count(SC_SPAN_KERNEL) + count(SC_SPAN_COLL), 2);
        assert_int_equal(count(SC_SPAN_CALL), i == 1 ? 0 : 5);
        assert_int_equal(count(SC_SPAN_STEP), i == 8 ? 0 : 1);
    }
    report r;
    report_open(&r, true);
    report_call(&r, 100, 101, 1000, 9000, 1, "cudaFree");
    refuses(&r, "no kernel");
    report_open(&r, true);
    report_sql(&r, "DROP TABLE CUPTI_ACTIVITY_KIND_KERNEL;"
                   "DROP TABLE CUPTI_ACTIVITY_KIND_RUNTIME;"
                   "DROP TABLE CUPTI_ACTIVITY_KIND_MEMCPY;"
                   "DROP TABLE CUPTI_ACTIVITY_KIND_MEMSET;"
                   "DROP TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE;");
    refuses(&r, "not of Nsight Systems");
}

/* Values of other types than columns state; the rest is read. */
static void odd_values(void **state)
{
    report r;
    (void)state;
    report_open(&r, true);
    launch(&r, 1000, 1, "gemm");
    launch(&r, 101000, 2, "gemm");
    launch(&r, 201000, 3, "gemm");
    report_sql(&r, "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET streamId = 'x', "
                   "demangledName = x'00ff', shortName = 99999 WHERE "
                   "correlationId = 1;"
                   "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET start = 'soon' "
                   "WHERE correlationId = 2;"
                   "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET end = "
                   "9223372036854775807 WHERE correlationId = 3;"
                   "UPDATE CUPTI_ACTIVITY_KIND_RUNTIME SET start = "
                   "-9223372036854775807 - 1 WHERE correlationId = 3;"
                   "UPDATE CUPTI_ACTIVITY_KIND_RUNTIME SET correlationId = "
                   "-5, nameId = 'none' WHERE correlationId = 2;");
    reads(&r);
    const sc_trace_span *k = span_of(ranks_read, SC_SPAN_KERNEL, 0);
    assert_string_equal(name_of(k), "kernel");
    assert_int_equal(args_of(k)->stream, -1);
    assert_int_equal(count(SC_SPAN_KERNEL), 1);
    assert_int_equal(count(SC_SPAN_CALL), 2);
    assert_int_equal(span_of(ranks_read, SC_SPAN_CALL, 1)->id, 0);
    assert_non_null(strstr(notes.buf, "3 rows have no usable time"));
    /* numbers as texts, which columns without a type keep; texts that are none */
    report_open(&r, true);
    launch(&r, 1000, 1, "gemm");
    report_sql(&r, "CREATE TABLE k (start, end, streamId, correlationId, "
                   "globalPid, demangledName);"
                   "INSERT INTO k SELECT cast(start AS TEXT), cast(end AS "
                   "TEXT), cast(streamId AS TEXT), cast(correlationId AS "
                   "TEXT), globalPid, demangledName FROM "
                   "CUPTI_ACTIVITY_KIND_KERNEL;"
                   "DROP TABLE CUPTI_ACTIVITY_KIND_KERNEL;"
                   "ALTER TABLE k RENAME TO CUPTI_ACTIVITY_KIND_KERNEL;"
                   "UPDATE StringIds SET value = 'a' || char(7) || x'ff' || "
                   "'b' WHERE value = 'gemm'");
    reads(&r);
    k = span_of(ranks_read, SC_SPAN_KERNEL, 0);
    assert_int_equal(k->dur, 20500000);
    assert_int_equal(k->id, 1);
    assert_int_equal(args_of(k)->stream, 7);
    assert_string_equal(name_of(k), "a??b");
}

/* ---- files that are not what they claim to be ---------------------------- */

static void refused_objects(void **state)
{
    report r;
    (void)state;
    report_open(&r, true);
    launch(&r, 1000, 1, "gemm");
    report_sql(&r, "DROP TABLE NVTX_EVENTS;"
                   "CREATE VIEW NVTX_EVENTS AS WITH RECURSIVE c(x) AS (VALUES "
                   "(1) UNION ALL SELECT x + 1 FROM c) SELECT x AS start FROM "
                   "c");
    refuses(&r, "NVTX_EVENTS is not a plain table");
    report_open(&r, true);
    launch(&r, 1000, 1, "gemm");
    report_sql(&r, "CREATE TABLE s AS SELECT * FROM StringIds;"
                   "DROP TABLE StringIds;"
                   "ALTER TABLE s RENAME TO StringIds");
    refuses(&r, "StringIds has no key");
    /* what a file computes is not looked at */
    report_open(&r, true);
    launch(&r, 1000, 1, "gemm");
    report_sql(&r, "DROP TABLE ThreadNames;"
                   "CREATE TABLE ThreadNames (globalTid INTEGER, priority "
                   "INTEGER, nameId INTEGER AS (abs(priority)))");
    report_sql(&r, "INSERT INTO ThreadNames VALUES (%lld, -1)",
               report_tid(100, 101));
    reads(&r);
    const sc_trace_span *c = span_of(ranks_read, SC_SPAN_CALL, 0);
    assert_int_equal(ranks_read->lanes[c->lane].thread, 0);
}

static void change_bytes(char *bytes, size_t len, uint32_t *seed)
{
    for (int i = 0; i < 4; i++) {
        *seed = *seed * 1664525 + 1013904223;
        bytes[(size_t)(*seed >> 8) % len] ^= (char)(1 << (*seed & 7));
    }
}

/* Cut off anywhere or with bytes changed: read or refused. */
static void broken_files(void **state)
{
    report r;
    char *bytes;
    size_t len;
    uint32_t seed = 1, refused = 0;
    (void)state;
    report_open(&r, true);
    fill_usual(&r);
    sc_file_read(report_close(&r), 1 << 20, &arena, &bytes, &len, &err);
    no_error();
    char *copy = SC_NEW_N(&arena, char, len);
    for (size_t cut = 16; cut < len; cut += 512 + 7) {
        sc_err_init(&err);
        sc_status s = sc_profiled_read_all_memory(
            bytes, cut, "cut", &arena, &notes, &ranks_read, &n_read, &err);
        assert_true(s == SC_EINPUT || s == SC_OK);
        refused += s != SC_OK;
    }
    assert_true(refused > 10);
    for (int i = 0; i < 500; i++) {
        sc_err_init(&err);
        memcpy(copy, bytes, len);
        change_bytes(copy, len, &seed);
        sc_status s = sc_profiled_read_all_memory(
            copy, len, "changed", &arena, &notes, &ranks_read, &n_read, &err);
        assert_true(s == SC_EINPUT || s == SC_OK);
        assert_int_equal(s == SC_OK, err.n == 0);
    }
    sc_err_init(&err);
    sc_file_write(report_path, "SQLite format 3", 16, &err);
    no_error();
    assert_int_equal(read_file(report_path), SC_EINPUT);
    sc_file_write(report_path, "", 0, &err);
    assert_int_equal(read_file(report_path), SC_EINPUT);
    assert_int_equal(read_file("none.sqlite"), SC_EIO);
}

/* Characters that mean something else in the name that SQLite gets. */
static void odd_paths(void **state)
{
    static const char *const ends[] = {"a b", "50%25", "a?mode=rw", "a#b"};
    report r;
    char path[600];
    (void)state;
    report_open(&r, true);
    launch(&r, 1000, 1, "gemm");
    report_close(&r);
    for (size_t i = 0; i < SC_COUNT(ends); i++) {
        snprintf(path, sizeof path, "/%s%s", report_path, ends[i]);
        assert_int_equal(rename(report_path, path), 0);
        sc_status s = read_file(path);
        assert_int_equal(rename(path, report_path), 0);
        assert_int_equal(s, SC_OK);
    }
}

static uint32_t big_endian(const unsigned char *p, int bytes)
{
    uint32_t v = 0;
    for (int i = 0; i < bytes; i++) v = v << 8 | p[i];
    return v;
}

static void put_page(unsigned char *p, uint32_t page)
{
    for (int i = 0; i < 4; i++) p[i] = (unsigned char)(page >> (24 - 8 * i));
}

/* Inner pages of a tree that all lead to the next one: a small file with more
 * rows than could be read in years. */
static void endless_table(void **state)
{
    enum { PAGE = 512, INNER = 5, LEAF = 13 };

    report r;
    char *file;
    size_t len;
    uint32_t inner[8], n_inner = 0, leaf = 0;
    (void)state;
    report_open(&r, true);
    report_sql(&r, "WITH RECURSIVE c(x) AS (VALUES (1) UNION ALL SELECT x + 1 "
                   "FROM c WHERE x < 20000) INSERT INTO NVTX_EVENTS (start, "
                   "end, eventType) SELECT x, x, 34 FROM c");
    launch(&r, 1000, 1, "gemm");
    sc_file_read(report_close(&r), 8 << 20, &arena, &file, &len, &err);
    no_error();
    /* the pages of the only large table: its root is the first inner page */
    for (uint32_t page = 2; page <= len / PAGE && n_inner < 8; page++) {
        unsigned char *p = (unsigned char *)file + (page - 1) * PAGE;
        if (*p == INNER && big_endian(p + 3, 2) > 3) inner[n_inner++] = page;
        if (*p == LEAF && n_inner && !leaf) leaf = page;
    }
    assert_true(n_inner == 8 && leaf);
    for (uint32_t i = 0; i < n_inner; i++) {
        unsigned char *p = (unsigned char *)file + (inner[i] - 1) * PAGE;
        uint32_t next = i + 1 < n_inner ? inner[i + 1] : leaf;
        for (uint32_t k = 0; k < big_endian(p + 3, 2); k++)
            put_page(p + big_endian(p + 12 + 2 * k, 2), next);
        put_page(p + 8, next);
    }
    sc_err_init(&err);
    assert_int_equal(sc_profiled_read_all_memory(file, len, "endless", &arena,
                                                 &notes, &ranks_read, &n_read,
                                                 &err),
                     SC_EINPUT);
    assert_non_null(strstr(err.d[0].msg, "more rows than"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(missing_tables), TEST(odd_values), TEST(refused_objects),
        TEST(broken_files),   TEST(odd_paths),  TEST(endless_table)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
    printf("skipped: stepcast was built without SQLite\n");
    return 77;
}

#endif
