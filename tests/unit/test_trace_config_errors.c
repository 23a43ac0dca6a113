/* SPDX-License-Identifier: Apache-2.0 */
/* Malformed configuration files: each error has its code, its place and a
 * word that helps; all of a file are found in one pass. */
#include "findings.h"
#include "fixture.h"
#include "trace/config.h"

typedef struct bad {
    const char *text;
    const char *found; /* code line:column, ... */
    const char *word;  /* part of the first one's message or hint */
} bad;

typedef sc_status (*reader)(const char *text, size_t len);

static sc_status read_system(const char *text, size_t len)
{
    sc_system sys;
    trace_node_file nodes;
    return trace_system_text(text, len, "f", &arena, NULL, &sys, &nodes, &err);
}

static sc_status read_nodes(const char *text, size_t len)
{
    sc_system sys;
    return trace_node_text(text, len, "f", "f", &arena, &sys, &err);
}

static sc_status read_network(const char *text, size_t len)
{
    sc_network net;
    return trace_network_text(text, len, "f", &arena, &net, &err);
}

static sc_status read_pool(const char *text, size_t len)
{
    sc_pool pool;
    return trace_pool_text(text, len, "f", &arena, &pool, &err);
}

static sc_status read_groups(const char *text, size_t len)
{
    sc_rank_group *groups;
    uint32_t n;
    return trace_groups_text(text, len, "f", 8, &arena, &groups, &n, &err);
}

static void check_all(const bad *cases, size_t n, reader read)
{
    for (size_t i = 0; i < n; i++) {
        const bad *b = &cases[i];
        char got[FINDINGS], line[600];
        sc_err_init(&err);
        sc_status s = read(b->text, strlen(b->text));
        findings(&err, got);
        sc_diag_format(&err.d[0], line, sizeof line);
        if (s != SC_EINPUT || strcmp(got, b->found) != 0 ||
            strstr(line, b->word) == NULL)
            fail_msg("%s\nfound: %s\nfirst: %s", b->text, got, line);
    }
}

static void systems(void **state)
{
    (void)state;
    static const bad cases[] = {
        {"", "type 1:1", "empty"},
        {"[1]", "type 1:1", "mapping"},
        {"{\"endpoint-delay\": 1", "syntax 1:21", ""},
        {"{\"endpoint-dellay\": 1}", "unknown-key 1:2", "endpoint-delay"},
        {"{\"local_mem_bw\": 1}", "unknown-key 1:2", "local-mem-bw"},
        {"{\"endpoint-delay\": -1}", "range 1:20", "0"},
        {"{\"endpoint-delay\": 1, \"endpoint-delay\": 2}", "duplicate-key 1:23",
         "endpoint-delay"},
        {"{\"local-mem-bw\": 0}", "range 1:18", "local-mem-bw"},
        {"{\"local-mem-bw\": \"1600\"}", "type 1:18", "quotes"},
        {"local-mem-bw: .nan", "range 1:15", ""},
        {"{\"peak-perf\": 1e999}", "range 1:15", ""},
        {"{\"preferred-dataset-splits\": 0}", "range 1:30", "1"},
        {"{\"preferred-dataset-splits\": 2.5}", "range 1:30", "whole"},
        {"{\"active-chunks-per-dimension\": [1]}", "type 1:33", "list"},
        {"{\"scheduling-policy\": \"FIF0\"}", "unknown-name 1:23", "FIFO"},
        {"{\"collective-optimization\": \"localBwAware\"}", "unknown-name 1:29",
         "localBWAware"},
        {"{\"roofline-enabled\": 2}", "unknown-name 1:22", "0, 1"},
        {"{\"roofline-enabled\": 1}", "missing 1:22, missing 1:22",
         "peak-perf"},
        {"{\"all-reduce-implementation\": [\"rng\"]}", "unknown-name 1:32",
         "did you mean ring"},
        {"{\"all-reduce-implementation\": [\"ring2\"]}", "unknown-name 1:32",
         "did you mean ring"},
        {"{\"all-reduce-implementation\": [\"direct0\"]}", "range 1:32",
         "99999"},
        {"{\"all-reduce-implementation\": [\"direct123456\"]}", "range 1:32",
         "99999"},
        {"{\"all-reduce-implementation\": [\"direct-1\"]}", "unknown-name 1:32",
         "direct"},
        {"{\"all-reduce-implementation\": [\"ring\", [\"ring\"]]}", "type 1:40",
         "ring"},
        {"{\"all-reduce-implementation\": {}}", "type 1:31", "list"},
        {"{\"all-reduce-implementation\": [\"ring\", \"ring\", \"ring\", "
         "\"ring\", \"ring\", \"ring\", \"ring\", \"ring\", \"ring\"]}",
         "too-big 1:31", "8"},
        {"{\"all-reduce-implementation\": \"ring_drect\"}", "unknown-name 1:37",
         "direct"},
        {"{\"all-reduce-implementation-custom\": [\"a\", \"b\"]}",
         "conflict 1:38", "one prefix"},
        {"{\"all-reduce-implementation-custom\": \"a\"}", "type 1:38", "list"},
        {"{\"all-reduce-implementation-custom\": [\"\"]}", "missing 1:39",
         "prefix"},
        {"{\"per-node-custom-implementation\": [1]}", "type 1:36", "yml"},
        {"{\"inter-dimension-scheduling\": \"OnlinGreedy\"}",
         "unknown-name 1:32", "OnlineGreedy"},
        {"{\"intra-dimension-scheduling\": \"LIFO\"}", "unknown-name 1:32",
         "FIFO"},
        {"{\"communication-slots\": 0}", "range 1:25", "1"},
        {"{\"switching\": \"cutthrough\"}", "unknown-name 1:15", "cut-through"},
        {"{\"in-network-collectives\": [8]}", "range 1:29", "7"},
        {"{\"in-network-collectives\": [1, 1]}", "duplicate-key 1:32", "1"},
        {"{\"in-network-collectives\": [true, 1]}", "unknown-name 1:35",
         "false"},
        {"{\"in-network-collectives\": true}", "type 1:28", "list"},
        {"{\"port-limit\": \"maybe\"}", "unknown-name 1:16", "port-limit"},
        {"{\"endpoint-delay\": -1,\n\"boost\": 2, \"g\": -3,\n"
         "\"all-gather-implementation\": [\"x\", \"direct0\"],\n"
         "\"in-network-collectives\": [9]}",
         "range 1:20, unknown-key 2:1, range 2:18, unknown-name 3:31, "
         "range 3:36, range 4:28",
         "endpoint-delay"}};
    check_all(cases, SC_COUNT(cases), read_system);
}

static void node_files(void **state)
{
    (void)state;
    static const bad cases[] = {
        {"3: [a]\nx: b\n-1: c\n", "type 1:4, type 2:1, range 3:1", ""},
        {"1: a\n01: b\n", "duplicate-key 2:1", "twice"},
        {"1: \"\"\n", "missing 1:4", "prefix"}};
    check_all(cases, SC_COUNT(cases), read_nodes);
}

#define REST "npus_count: [8]\nbandwidth: [50]\nlatency: [1]\n"

static void networks(void **state)
{
    (void)state;
    static const bad cases[] = {
        {"topology: [Rnig]\n" REST, "unknown-name 1:12", "Ring"},
        {"topology: [ring]\n" REST, "unknown-name 1:12", "Ring"},
        {"topology: Ring\n" REST, "type 1:11", "list"},
        {"topology: []\n" REST,
         "missing 1:11, conflict 2:13, conflict 3:12, conflict 4:10", ""},
        {"topology: [Ring]\nnpus_count: [1]\nbandwidth: [50]\nlatency: [1]\n",
         "range 2:14", "2"},
        {"topology: [Ring]\nnpus_count: [8]\nbandwidth: [0]\nlatency: [1]\n",
         "range 3:13", "bandwidth"},
        {"topology: [Ring]\nnpus_count: [8]\nbandwidth: [.inf]\n"
         "latency: [-1]\n",
         "range 3:13, range 4:11", ""},
        {"topology: [Ring]\nnpus_count: [8]\nbandwidth: [\"50\"]\n"
         "latency: [1ns]\n",
         "type 3:13, unit 4:11", "quotes"},
        {"topology: [Ring]\nnpus_count: [8]\nbandwidht: [50]\nlatency: [1]\n",
         "unknown-key 3:1, missing 1:1", "bandwidth"},
        {"topology: [Ring, Ring]\nnpus_count: [8]\nbandwidth: [50, 50]\n"
         "latency: [1, 1]\n",
         "conflict 2:13", "topology has 2"},
        {"topology: [Ring, Ring]\nnpus_count: [65536, 65536]\n"
         "bandwidth: [50, 50]\nlatency: [1, 1]\n",
         "too-big 2:13", "NPUs"},
        {"topology: [Ring]\ntopology: [Ring]\n" REST, "duplicate-key 2:1",
         "topology"}};
    check_all(cases, SC_COUNT(cases), read_network);
}

static void pools(void **state)
{
    (void)state;
    static const bad cases[] = {
        {"{}", "missing 1:1", "memory-type"},
        {"{\"memory-type\": \"MEMORY_POL\"}", "unknown-name 1:17",
         "MEMORY_POOL"},
        {"{\"memory-type\": \"MEMORY_POOL\"}", "missing 1:1", "remote-mem-bw"},
        {"{\"memory-type\": \"MEMORY_POOL\", \"remote-mem-bw\": 0}",
         "range 1:49", "remote-mem-bw"},
        {"{\"memory-type\": \"MEMORY_POOL\", \"remote-mem-bw\": -1}",
         "range 1:49", "remote-mem-bw"},
        {"{\"memory-type\": \"PER_NODE_MEMORY_EXPANSION\",\n"
         "\"remote-mem-bw\": 1}",
         "missing 1:1, missing 1:1", "num-nodes"},
        {"{\"memory-type\": \"MEMORY_POOL\", \"remote-mem-bw\": 1,\n"
         "\"chunk-size\": 4096}",
         "conflict 2:1", "HIERARCHICAL_POOL"},
        {"{\"memory-type\": \"HIERARCHICAL_POOL\", \"remote-mem-bw\": 1,\n"
         "\"num-nodes\": 0, \"remote-mem-latncy\": 1}",
         "range 2:14, unknown-key 2:17, missing 1:1, missing 1:1, "
         "missing 1:1, missing 1:1",
         "num-nodes"}};
    check_all(cases, SC_COUNT(cases), read_pool);
}

static void groups(void **state)
{
    (void)state;
    static const bad cases[] = {
        {"{\"1\": [0, 8]}", "range 1:11", "7"},
        {"{\"1\": [-1]}", "range 1:8", "rank"},
        {"{\"1\": [0.5]}", "range 1:8", "whole"},
        {"{\"1\": [\"0\"]}", "type 1:8", "quotes"},
        {"{\"1\": [2, 1, 2]}", "duplicate-key 1:14", "rank 2 occurs twice"},
        {"{\"1\": []}", "missing 1:7", "no members"},
        {"{\"\": [0]}", "missing 1:2", "all ranks"},
        {"{\"1\": 0, \"1\": [1]}", "duplicate-key 1:10", "1"},
        {"{\"1\": [0], \"01\": [1]}", "duplicate-key 1:12", "whole numbers"},
        {"{\"1\": 0, \"2\": {}}", "type 1:7, type 1:15", "list"},
        {"[[0, 1]]", "type 1:1", "mapping"}};
    check_all(cases, SC_COUNT(cases), read_groups);
}

/* With one rank the only legal member is 0. */
static void one_rank(void **state)
{
    (void)state;
    sc_rank_group *g;
    uint32_t n;
    sc_status s =
        trace_groups_text("{\"1\": [1]}", 10, "f", 1, &arena, &g, &n, &err);
    assert_int_equal(s, SC_EINPUT);
    assert_int_equal(err.d[0].code, SC_C_RANGE);
}

static void no_files(void **state)
{
    (void)state;
    sc_system sys;
    sc_network net;
    sc_pool pool;
    sc_rank_group *g;
    uint32_t n;
    assert_int_equal(sc_system_read("no/such", &arena, NULL, &sys, &err),
                     SC_EIO);
    assert_int_equal(sc_network_read("no/such", &arena, &net, &err), SC_EIO);
    assert_int_equal(sc_pool_read("no/such", &arena, &pool, &err), SC_EIO);
    assert_int_equal(sc_groups_read("no/such", 1, &arena, &g, &n, &err),
                     SC_EIO);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(systems), TEST(node_files), TEST(networks), TEST(pools),
        TEST(groups),  TEST(one_rank),   TEST(no_files)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
