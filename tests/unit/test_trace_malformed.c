/* SPDX-License-Identifier: Apache-2.0 */
/* Traces that are wrong: each gives an error that says where. */
#include "chakra_bytes.h"
#include "fixture.h"
#include "trace/trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <zstd.h>

enum { FIRST = 8, BODY = 9 }; /* length and body of the first node */

static sc_workload w;
static ck file, node;

/* In memory of exactly that size, so that a sanitizer sees more. */
static void fails_bytes(const void *data, size_t n, const char *name,
                        const char *want)
{
    char text[600] = "";
    void *copy = malloc(n ? n : 1);
    assert_non_null(copy);
    if (n > 0) memcpy(copy, data, n);
    sc_err_init(&err);
    sc_status s = sc_trace_read_one(copy, n, name, NULL, &arena, &w, &err);
    free(copy);
    assert_int_equal(s, SC_EINPUT);
    if (err.n > 0) sc_diag_format(&err.d[0], text, sizeof text);
    assert_string_equal(text, want);
}

static void fails(const char *want)
{
    fails_bytes(file.b, file.n, "t.et", want);
}

static void node_fails(const char *want)
{
    ck_file(&file);
    ck_message(&file, &node);
    fails(want);
}

static void framing(void **state)
{
    (void)state;
    fails_bytes("", 0, "t.et", "t.et:byte 0: error: the file is empty");
    fails_bytes("\xFF", 1, "t.et",
                "t.et:byte 0: error: the data end inside a number");
    fails_bytes("\x05\x0A", 2, "t.et",
                "t.et:byte 0: error: a message of 5 bytes where 1 are left; "
                "the file is truncated or not a Chakra trace");
    ck_file(&file);
    ck_varint(&file, UINT64_MAX);
    fails("t.et:byte 8: error: a message of 18446744073709551615 bytes where "
          "0 are left; the file is truncated or not a Chakra trace");
    ck_file(&file);
    ck_raw(&file, "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01", 11);
    fails("t.et:byte 8: error: a number of more than 10 bytes");
    file.n = 0;
    ck_node(&node, 0, SC_TASK_COMP);
    ck_message(&file, &node);
    fails("t.et:byte 1: error: the first message is not GlobalMetadata; a "
          "trace begins with GlobalMetadata");
}

static void wire(void **state)
{
    (void)state;
    node.n = 0;
    ck_raw(&node, "\x08\xFF", 2);
    node_fails("t.et:byte 10: error: the data end inside a number");
    node.n = 0;
    ck_raw(&node, "\x12\x7F", 2);
    node_fails("t.et:byte 10: error: a field longer than the message that "
               "holds it");
    node.n = 0;
    ck_text(&node, 1, "id");
    node_fails("t.et:byte 9: error: field 1 of a node has wire type 2");
    node.n = 0;
    ck_fixed(&node, 5, 8, 1);
    node_fails("t.et:byte 9: error: field 5 of a node has wire type 1");
    node.n = 0;
    ck_tag(&node, 77, 3);
    node_fails("t.et:byte 11: error: a Protocol Buffers wire type that Chakra "
               "does not use");
    node.n = 0;
    ck_varint(&node, 0);
    node_fails("t.et:byte 9: error: a field number out of range");
    node.n = 0;
    ck_fixed(&node, 99, 4, 1);
    node.n--;
    node_fails("t.et:byte 11: error: the data end inside a number");
    ck ids = {.n = 0};
    ck_varint(&ids, 300);
    ids.n--;
    node.n = 0;
    ck_inside(&node, 5, &ids);
    node_fails("t.et:byte 11: error: the data end inside a number");
}

static void attributes(void **state)
{
    (void)state;
    ck a = {.n = 0};
    ck_text(&a, 1, "comm_size");
    ck_text(&a, 9, "5");
    node.n = 0;
    ck_inside(&node, 10, &a);
    node_fails("t.et:byte 22: error: field 9 of an attribute has wire type 2");
    a.n = 0;
    ck_text(&a, 1, "comm_size");
    ck_fixed(&a, 3, 8, 0x4014000000000000);
    node.n = 0;
    ck_inside(&node, 10, &a);
    node_fails("t.et:byte 11: error: comm_size holds a float, not an integer");
    node.n = 0;
    ck_attr_text(&node, "num_ops", "5");
    node_fails("t.et:byte 11: error: num_ops holds a text, not an integer");
    node.n = 0;
    ck_attr(&node, "comm_tag", 9, (uint64_t)1 << 32);
    node_fails("t.et:byte 11: error: comm_tag is 4294967296, more than "
               "4294967295");
    node.n = 0;
    ck_attr(&node, "comm_type", 9, 10);
    node_fails("t.et:byte 11: error: comm_type is 10, more than 9");
    node.n = 0;
    ck_attr(&node, "involved_dim", 27, 1);
    node_fails("t.et:byte 11: error: involved_dim holds an integer, not a "
               "list of bool");
}

static void values(void **state)
{
    (void)state;
    ck_node(&node, 0, 11);
    node_fails("t.et:byte 11: error: a node of type 11; types go to 10");
    ck_node(&node, 4, SC_TASK_COMP);
    ck_num(&node, 7, (uint64_t)1 << 62);
    node_fails("t.et:byte 9: error: node 4: duration of 4611686018427387904 us "
               "is beyond 106 days");
}

static void add(uint64_t id, uint64_t after)
{
    ck_node(&node, id, SC_TASK_COMP);
    ck_num(&node, 5, after);
    ck_message(&file, &node);
}

static void graph(void **state)
{
    (void)state;
    ck_node(&node, 1, SC_TASK_COMP);
    ck_file(&file);
    ck_message(&file, &node);
    ck_message(&file, &node);
    fails("t.et:byte 14: error: node 1 occurs twice");
    ck_file(&file);
    ck_message(&file, &node);
    add(2, 1);
    ck_node(&node, 1, SC_TASK_COMP);
    ck_message(&file, &node);
    fails("t.et:byte 21: error: node 1 occurs twice");
    ck_file(&file);
    add(1, 7);
    fails("t.et:byte 9: error: node 1 depends on node 7, which is not in the "
          "file");
    ck_file(&file);
    add(1, 1);
    fails("t.et:byte 9: error: nodes wait for each other: 1 <- 1");
    ck_file(&file);
    add(1, 3);
    add(2, 1);
    add(3, 2);
    add(4, 3);
    fails("t.et:byte 30: error: nodes wait for each other: 3 <- 2 <- 1 <- 3");
}

/* Every error of values and of references is told. */
static void all_of_them(void **state)
{
    (void)state;
    ck_file(&file);
    add(1, 7);
    add(2, 8);
    sc_trace_read_one(file.b, file.n, "t.et", NULL, &arena, &w, &err);
    assert_int_equal(err.n, 2);
}

static void packed_files(void **state)
{
    (void)state;
    fails_bytes("\x1F\x8B\x08", 3, "t.et.gz",
                "t.et.gz: error: compressed data ends too early");
    fails_bytes("\x1F\x8Bxxxxxxxxxxxxxxxx", 18, "t.et.gz",
                "t.et.gz: error: compressed data is damaged");
    fails_bytes("\x28\xB5\x2F\xFD", 4, "t.et.zst",
                "t.et.zst: error: compressed data ends too early");
    fails_bytes("\x28\xB5\x2F\xFD\x20\x05\x07\x00\x00xxxxxx", 15, "t.et.zst",
                "t.et.zst: error: compressed data is damaged");
    static uint8_t zeros[4 << 20], z[1000];
    size_t n = ZSTD_compress(z, sizeof z, zeros, sizeof zeros, 3);
    assert_false(ZSTD_isError(n));
    char want[100];
    snprintf(want, sizeof want,
             "t.et.zst: error: unpacks to more than the limit of %zu bytes",
             ((n + 1024) << 11) - 1);
    fails_bytes(z, n, "t.et.zst", want);
}

static void json_fails(const char *text, const char *want)
{
    fails_bytes(text, strlen(text), "t.json", want);
}

static void json(void **state)
{
    (void)state;
    json_fails("[1]", "t.json:1:2: error: a node has to be an object");
    json_fails("{\"schema\": \"1.0.2-chakra.0.0.4\", \"nodes\": []}",
               "t.json:1:12: error: this is a PyTorch execution trace, not a "
               "Chakra trace");
    json_fails("{\"version\": \"1\"}\n{\"id\": -1, \"type\": 4}",
               "t.json:2:8: error: id needs a whole number from 0");
    json_fails("{\"nodes\": [{\"id\": 1, \"type\": \"NO_NODE\"}]}",
               "t.json:1:30: error: type needs a whole number from 0");
    json_fails("[{\"id\": 1, \"type\": 4, \"dataDeps\": [5]}]",
               "t.json:1:2: error: node 1 depends on node 5, which is not in "
               "the file");
    json_fails("[{\"id\": 0, \"type\": 7, \"attr\": [{\"name\": "
               "\"comm_size\", \"doubleVal\": 1}]}]",
               "t.json:1:67: error: comm_size holds a float, not an integer");
}

/* JSON of other programs is not taken for a trace in which nothing happens. */
static void other_json(void **state)
{
    (void)state;
    static const char none[] =
        "t.json:1:1: error: not a Chakra trace: there is no node; a Chakra "
        "trace in JSON is a list of nodes, each with id and type";
    static const char timeline[] =
        "t.json:1:1: error: this is a timeline of Kineto or Chrome, not a "
        "Chakra trace; chakra_trace_link and chakra_converter convert it and "
        "the execution trace to a Chakra trace";
    json_fails("{}", none);
    json_fails("[]", none);
    json_fails("{\"nodes\": []}", none);
    json_fails(
        "{\"foo\": 1}",
        "t.json:1:1: error: not a node of a Chakra trace: it has no type; "
        "a Chakra trace in JSON is a list of nodes, each with id and "
        "type");
    json_fails("[{\"id\": 0, \"type\": 4}, {\"id\": 1}]",
               "t.json:1:24: error: not a node of a Chakra trace: it has no "
               "type; a Chakra trace in JSON is a list of nodes, each with id "
               "and type");
    json_fails("{\"traceEvents\": []}", timeline);
    json_fails("{\"schemaVersion\": 1, \"traceEvents\": [{\"ph\": \"X\"}]}",
               timeline);
    json_fails("[{\"ph\": \"X\", \"name\": \"a\", \"ts\": 1}]", timeline);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(framing),     T(wire),         T(attributes), T(values),     T(graph),
        T(all_of_them), T(packed_files), T(json),       T(other_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
