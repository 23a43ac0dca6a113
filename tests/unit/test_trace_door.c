/* SPDX-License-Identifier: Apache-2.0 */
/* Files of ranks that are taken or refused as a whole: limits, empty
 * workloads, names of groups. */
#include "chakra_bytes.h"
#include "fixture.h"
#include "trace/trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <zstd.h>

static char dir[] = "/tmp/stepcast-test-XXXXXX";
static char prefix[100];
static sc_workload w;
static ck file, node;

static const uint32_t r01[] = {0, 1};
static const sc_rank_group one[] = {{"1", 2, r01}};
static const sc_trace_opts with_one = {.n_groups = 1, .groups = one};

static int make_dir(void **state)
{
    (void)state;
    if (mkdtemp(dir) == NULL) return 1;
    snprintf(prefix, sizeof prefix, "%s/t", dir);
    return 0;
}

static const char *path_of(uint32_t rank, const char *suffix)
{
    static char path[200];
    snprintf(path, sizeof path, "%s.%u%s", prefix, rank, suffix);
    return path;
}

static int remove_dir(void **state)
{
    (void)state;
    for (uint32_t r = 0; r < 2; r++) {
        unlink(path_of(r, ".et"));
        unlink(path_of(r, ".et.zst"));
    }
    return rmdir(dir);
}

static void put(uint32_t rank, const char *suffix, const void *data, size_t n)
{
    assert_int_equal(sc_file_write(path_of(rank, suffix), data, n, &err),
                     SC_OK);
}

static void put_coll(uint32_t rank, const char *group)
{
    ck_file(&file);
    ck_node(&node, 0, SC_TASK_COLL);
    ck_attr(&node, "comm_type", 9, SC_ALL_REDUCE);
    ck_attr(&node, "comm_size", 9, 4096);
    ck_attr_text(&node, "pg_name", group);
    ck_message(&file, &node);
    put(rank, ".et", file.b, file.n);
}

static void reads(const sc_trace_opts *o)
{
    sc_err_init(&err);
    sc_trace_read(prefix, 2, o, &arena, &w, &err);
    no_error();
    sc_workload_check(&w, &err);
    no_error();
}

static void fails(const sc_trace_opts *o, const char *want)
{
    char text[600] = "";
    sc_err_init(&err);
    assert_int_not_equal(sc_trace_read(prefix, 2, o, &arena, &w, &err), SC_OK);
    sc_diag_format(&err.d[0], text, sizeof text);
    assert_memory_equal(text, dir, strlen(dir));
    assert_string_equal(text + strlen(dir) + 1, want);
}

/* Ranks may have nothing to do, but not all of them. */
static void empty(void **state)
{
    (void)state;
    ck_file(&file);
    put(0, ".et", file.b, file.n);
    put(1, ".et", file.b, file.n);
    fails(NULL, "t: error: an empty workload: no trace has a node");
    put_coll(0, "0");
    reads(NULL);
    assert_int_equal(w.classes[w.ranks[1].cls].n_tasks, 0);
}

/* Names that are numbers are the number, as std::stoi reads them. */
static void numbers_as_names(void **state)
{
    (void)state;
    static const char *const names[] = {"1", "01", "1.0", " +1.5 ", "0001"};
    static const char *const world[] = {"", "0", "00", "0.0"};
    for (size_t i = 0; i < SC_COUNT(names); i++) {
        put_coll(0, names[i]);
        put_coll(1, "1");
        reads(&with_one);
        assert_int_equal(w.n_classes, 1);
        assert_string_equal(w.groups[w.ranks[0].groups[0]].name, "1");
    }
    for (size_t i = 0; i < SC_COUNT(world); i++) {
        put_coll(0, world[i]);
        put_coll(1, "");
        reads(NULL);
        assert_int_equal(w.n_classes, 1);
        assert_int_equal(w.classes[0].group[0], SC_TASK_WORLD);
    }
    put_coll(0, "1a");
    fails(&with_one,
          "t.0.et:byte 9: error: communicator group \"1a\" is not defined; "
          "the nearest is \"1\"");
}

/* Newer types of nodes have a time and nothing else; one line says so. */
static void newer_types(void **state)
{
    (void)state;
    static const char text[] =
        "[{\"id\": 0, \"type\": 8, \"is_cpu_op\": false, "
        "\"duration_micros\": 7}, {\"id\": 1, \"type\": \"CHECKPOINT_NODE\", "
        "\"duration_micros\": 5}]";
    sc_text warnings;
    ck_file(&file);
    for (uint32_t id = 0; id < 2; id++) {
        ck_node(&node, id, 8 + 2 * id);
        ck_num(&node, 7, id ? 5 : 7);
        ck_message(&file, &node);
    }
    put(0, ".et", file.b, file.n);
    unlink(path_of(1, ".et"));
    put(1, ".json", text, strlen(text));
    sc_text_init(&warnings);
    reads(&(sc_trace_opts){.warnings = &warnings});
    assert_int_equal(w.n_classes, 1);
    assert_int_equal(w.classes[0].kind[1], SC_TASK_COMP);
    assert_true(w.classes[0].flags[1] & SC_TASK_CPU);
    assert_int_equal(w.classes[0].duration[0], 7000000);
    assert_int_equal(w.classes[0].duration[1], 5000000);
    const char *first = strchr(warnings.buf, '\n');
    assert_non_null(first);
    assert_string_equal(first, "\n");
    assert_non_null(strstr(warnings.buf, "t.0.et: warning: nodes for storage"));
    sc_text_free(&warnings);
    unlink(path_of(1, ".json"));
}

/* Files of ranks have the limit of files in memory. */
static void limit(void **state)
{
    (void)state;
    static uint8_t zeros[4 << 20];
    char z[1000], want[120];
    size_t n = ZSTD_compress(z, sizeof z, zeros, sizeof zeros, 3);
    assert_false(ZSTD_isError(n));
    put_coll(0, "0");
    unlink(path_of(1, ".et"));
    put(1, ".et.zst", z, n);
    snprintf(want, sizeof want,
             "t.1.et.zst: error: unpacks to more than the limit of %zu bytes",
             ((n + 1024) << 11) - 1);
    fails(NULL, want);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {T(empty), T(numbers_as_names),
                                       T(newer_types), T(limit)};
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
