/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Execution traces beside profiles: which operator is which span, what spans get
 * from it, and what is refused.
 */
#include "et_pair.h"
#include "fixture.h"
#include "trace/trace_et.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static sc_profiled m;
static sc_et_linked linked;

static void read_profile(const char *text)
{
    sc_text notes;
    sc_text_init(&notes);
    sc_profiled_read_memory(text, strlen(text), "k.json", &arena, &notes, &m,
                            &err);
    no_error();
    sc_text_free(&notes);
}

static sc_status link_text(const char *text)
{
    sc_err_init(&err);
    return sc_et_link_memory(text, strlen(text), "et.json", &m, &arena, &linked,
                             &err);
}

/* The n-th span of a name. */
static const sc_trace_span *span_of(const char *name, uint32_t n)
{
    for (uint64_t i = 0; i < m.n_spans; i++) {
        const sc_trace_span *s = sc_trace_span_at(&m, i);
        if (strcmp(m.name[s->name], name) == 0 && n-- == 0) return s;
    }
    fail_msg("no span %s", name);
    return NULL;
}

static const sc_trace_span_args *args_of(const char *name, uint32_t n)
{
    return &m.args[span_of(name, n)->args];
}

static void is(uint32_t text, const char *expected)
{
    assert_string_equal(m.name[text], expected);
}

static void begin(sc_text *profile, sc_text *nodes)
{
    sc_text_init(profile);
    sc_text_init(nodes);
}

static void link_pair(sc_text *profile, sc_text *nodes)
{
    read_profile(profile->buf);
    link_text(nodes->buf);
    no_error();
    sc_text_free(profile);
    sc_text_free(nodes);
}

/* Every generation says the same, and numbers have either name. */
static void schemas(void **state)
{
    (void)state;
    static const char *const keys[] = {"External id", "Record function id"};
    for (int schema = ET_1_0_1; schema <= ET_1_1_1; schema++) {
        sc_text profile, nodes;
        begin(&profile, &nodes);
        pair_profile(&profile, keys[schema % 2], false);
        pair_nodes(&nodes, (et_schema)schema);
        link_pair(&profile, &nodes);
        assert_int_equal(linked.nodes, 3);
        assert_int_equal(linked.linked, 3);
        assert_int_equal(linked.spans, 3);
        assert_int_equal(linked.shaped, 3);
        assert_true(linked.by_record);
        is(args_of("aten::mm", 0)->dims, "[[64, 64], [64, 64]]");
        is(args_of("aten::mm", 0)->types, "[\"c10::Half\", \"c10::Half\"]");
        is(args_of("aten::mm", 0)->concrete, "[\"\", \"\"]");
        is(args_of("aten::add_", 0)->dims, "[[64, 64], [], [], []]");
        is(args_of("aten::add_", 0)->types,
           "[\"c10::Half\", \"Scalar\", \"ScalarList\", \"\"]");
        is(args_of("aten::add_", 0)->concrete,
           "[\"\", \"1.5\", \"[1, 2]\", \"\"]");
    }
}

/* What operators read and write; the schema tells what is changed in place. */
static void uses(void **state)
{
    (void)state;

    static const struct {
        uint64_t storage;
        bool read, written;
    } expected[] = {{5, true, false},  {8, true, false},  {10, false, true},
                    {10, true, false}, {13, false, true}, {13, true, true}};

    sc_text profile, nodes;
    begin(&profile, &nodes);
    pair_profile(&profile, "External id", false);
    pair_nodes(&nodes, ET_1_1_0);
    link_pair(&profile, &nodes);
    assert_int_equal(m.use_head[3], SC_COUNT(expected));
    for (size_t i = 0; i < SC_COUNT(expected); i++) {
        assert_true(m.use[i].storage == expected[i].storage);
        assert_true(m.use[i].n == 4096);
        assert_int_equal(m.use[i].read, expected[i].read);
        assert_int_equal(m.use[i].written, expected[i].written);
    }
}

/* Arguments behind a '*', which is none, can be given by name only. */
static void changed(void **state)
{
    (void)state;
    static const char *const schemas[] = {
        "x(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
        "x(*, Tensor self, Tensor(a!)[] out) -> ()",
        "x(int[2] size, Tensor(a!) out)"};
    for (size_t i = 0; i < SC_COUNT(schemas); i++) {
        sc_text profile, nodes;
        begin(&profile, &nodes);
        pair_profile(&profile, "External id", false);
        pair_add(&nodes, ET_1_1_0,
                 &(pair_node){.name = "aten::mm",
                              .id = 3,
                              .record = 1,
                              .thread = 1,
                              .schema = schemas[i],
                              .in = PAIR_TENSOR(1, 1) ", " PAIR_TENSOR(2, 2),
                              .in_shapes = "[64, 64], [64, 64]",
                              .in_types = PAIR_HALF ", " PAIR_HALF});
        pair_close(&nodes, ET_1_1_0);
        link_pair(&profile, &nodes);
        assert_false(m.use[0].written);
        assert_true(m.use[1].written);
    }
}

/* What the profile states stays. */
static void stated_shapes(void **state)
{
    (void)state;
    sc_text nodes;
    sc_text_init(&nodes);
    pair_nodes(&nodes, ET_1_0_1);
    read_profile("[{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::mm\","
                 "\"pid\":7,\"tid\":7,\"ts\":1,\"dur\":2,\"args\":{\"External "
                 "id\":1,\"Input Dims\":[[2, 3], [3, 2]],\"Input type\":["
                 "\"float\", \"float\"]}}]");
    link_text(nodes.buf);
    no_error();
    sc_text_free(&nodes);
    assert_int_equal(linked.linked, 1);
    assert_int_equal(linked.spans_linked, 1);
    assert_int_equal(linked.shaped, 0);
    is(args_of("aten::mm", 0)->dims, "[[2, 3], [3, 2]]");
    is(args_of("aten::mm", 0)->types, "[\"float\", \"float\"]");
    is(args_of("aten::mm", 0)->concrete, "[\"\", \"\"]");
}

/* Of two nodes with one number, the first is linked. */
static void same_number(void **state)
{
    (void)state;
    sc_text profile, nodes;
    begin(&profile, &nodes);
    pair_profile(&profile, "External id", false);
    for (int i = 0; i < 2; i++)
        pair_add(
            &nodes, ET_1_0_1,
            &(pair_node){
                .name = "aten::mm", .id = 3 + i, .record = 1, .thread = 1});
    pair_close(&nodes, ET_1_0_1);
    link_pair(&profile, &nodes);
    assert_int_equal(linked.nodes, 2);
    assert_int_equal(linked.linked, 1);
    assert_int_equal(linked.spans_linked, 1);
}

/* ---- by order ------------------------------------------------------------ */

/* Names of a thread in one step. */
static const char *const first_thread[] = {
    "aten::linear", "aten::t",    "aten::addmm", "aten::relu",
    "aten::linear", "aten::t",    "aten::addmm", "aten::relu",
    "aten::linear", "aten::t",    "aten::addmm", "aten::relu",
    "aten::sum",    "aten::mul",  "aten::div",   "aten::mean",
    "aten::add",    "aten::copy_"};
static const char *const other_thread[] = {"MeanBackward0", "ReluBackward0",
                                           "aten::threshold_backward"};

/* Operators of a step one after the other; numbers of the profiler are its own,
 * and those of the other thread are larger. */
static void step_of_profile(sc_text *t, int step, bool annotated)
{
    int at = 1000 * step, id = 100 * step;
    if (annotated)
        pair_op(t, sc_sprintf(&arena, "ProfilerStep#%d", step), 7, at, 900,
                "External id", 900 + step);
    for (size_t i = 0; i < SC_COUNT(first_thread); i++)
        pair_op(t, first_thread[i], 7, at + 1 + (int)i, 1, "x", 0);
    for (size_t i = 0; i < SC_COUNT(other_thread); i++)
        pair_op(t, other_thread[i], 8, at + 100 + (int)i, 1, "External id",
                5000 + id + (int)i);
}

static void step_of_et(sc_text *t, int step)
{
    int id = 3 + 100 * step;
    for (size_t i = 0; i < SC_COUNT(first_thread); i++, id++) {
        const char *shape = sc_sprintf(&arena, "[%d]", id);
        pair_add(t, ET_1_1_0,
                 &(pair_node){.name = first_thread[i],
                              .id = id,
                              .record = id,
                              .thread = 1,
                              .in = "[1, 2, 0, 4, 4, \"cuda:0\"]",
                              .in_shapes = shape,
                              .in_types = "\"Tensor(float)\""});
    }
    for (size_t i = 0; i < SC_COUNT(other_thread); i++, id++)
        pair_add(
            t, ET_1_1_0,
            &(pair_node){
                .name = other_thread[i], .id = id, .record = id, .thread = 2});
}

static void profile_of_steps(sc_text *t, int n)
{
    for (int i = 0; i < n; i++) step_of_profile(t, i, true);
    sc_text all;
    sc_text_init(&all);
    sc_text_add(&all, "[%s]", t->buf);
    sc_text_free(t);
    *t = all;
}

/* Threads find their lanes, and annotations that only one has are left out. */
static void order(void **state)
{
    (void)state;
    sc_text profile, nodes;
    begin(&profile, &nodes);
    profile_of_steps(&profile, 1);
    step_of_et(&nodes, 0);
    pair_close(&nodes, ET_1_1_0);
    link_pair(&profile, &nodes);
    assert_false(linked.by_record);
    assert_int_equal(linked.nodes, 21);
    assert_int_equal(linked.linked, 21);
    assert_int_equal(linked.spans, 22);
    assert_int_equal(linked.repeats, 0);
    is(args_of("aten::linear", 1)->dims, "[[7]]");
    is(args_of("aten::copy_", 0)->dims, "[[20]]");
}

/* The execution trace of one step says the shapes of all that are like it. */
static void repeated(void **state)
{
    (void)state;
    sc_text profile, nodes;
    begin(&profile, &nodes);
    profile_of_steps(&profile, 4);
    step_of_et(&nodes, 0);
    pair_close(&nodes, ET_1_1_0);
    link_pair(&profile, &nodes);
    assert_int_equal(linked.linked, 21);
    assert_int_equal(linked.repeats, 3 * SC_COUNT(first_thread));
    is(args_of("aten::copy_", 0)->dims, "[[20]]");
    is(args_of("aten::copy_", 3)->dims, "[[20]]");
}

/* Of more steps than the profile has, the first is linked. */
static void longer(void **state)
{
    (void)state;
    sc_text profile, nodes;
    begin(&profile, &nodes);
    profile_of_steps(&profile, 1);
    for (int i = 0; i < 4; i++) step_of_et(&nodes, i);
    pair_close(&nodes, ET_1_1_0);
    link_pair(&profile, &nodes);
    assert_int_equal(linked.nodes, 84);
    assert_int_equal(linked.linked, 21);
    assert_int_equal(linked.spans_linked, 21);
}

/* What one of the two lacks is skipped. */
static void gaps(void **state)
{
    (void)state;
    sc_text profile, nodes;
    begin(&profile, &nodes);
    for (size_t i = 0; i < SC_COUNT(first_thread); i++) {
        if (i != 16) pair_op(&profile, first_thread[i], 7, (int)i, 1, "x", 0);
        if (i == 14) pair_op(&profile, "aten::relu", 7, 14, 1, "x", 0);
    }
    sc_text all;
    sc_text_init(&all);
    sc_text_add(&all, "[%s]", profile.buf);
    sc_text_free(&profile);
    step_of_et(&nodes, 0);
    pair_close(&nodes, ET_1_1_0);
    link_pair(&all, &nodes);
    assert_int_equal(linked.linked, 17);
    is(args_of("aten::mean", 0)->dims, "[[18]]");
    is(args_of("aten::copy_", 0)->dims, "[[20]]");
    assert_int_equal(args_of("aten::relu", 3)->dims, 0);
}

/* ---- collectives --------------------------------------------------------- */

#define COMM_PROFILE                                                     \
    "[{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"record_param_comms\"," \
    "\"pid\":7,\"tid\":7,\"ts\":1,\"dur\":2,\"args\":{\"External id\":4}}]"

/* Stated by attributes, or, before schema 1.1.0, by the inputs; before 1.0.3
 * without the group. */
static void collectives(void **state)
{
    (void)state;
    static const pair_node by_inputs = {
        .name = "record_param_comms",
        .id = 5,
        .record = 4,
        .thread = 1,
        .in = "[[434, 435, 0, 6144, 4, \"cuda:0\"]], 33, [\"2\", \"dp\"], 1, "
              "\"allreduce\", [], [], 4, 2, 3",
        .in_shapes = "[[6144]], [], [[], []], [], [], [], [], [], [], []",
        .in_types = "\"GenericList[Tensor(float)]\", \"Int\", "
                    "\"Tuple[String,String]\", \"Int\", \"String\", "
                    "\"GenericList[]\", \"GenericList[]\", \"Int\", \"Int\", "
                    "\"Int\"",
        .out = "[434, 435, 0, 12288, 4, \"cuda:0\"]",
        .out_shapes = "[12288]",
        .out_types = "\"Tensor(float)\""};
    static const pair_node by_attributes = {
        .name = "record_param_comms",
        .id = 5,
        .record = 4,
        .thread = 1,
        .attrs = "{\"name\": \"collective_name\", \"type\": \"string\", "
                 "\"value\": \"allreduce\"}, {\"name\": \"dtype\", \"type\": "
                 "\"string\", \"value\": \"float\"}, {\"name\": "
                 "\"in_msg_nelems\", \"type\": \"uint64\", \"value\": 6144}, "
                 "{\"name\": \"out_msg_nelems\", \"type\": \"uint64\", "
                 "\"value\": 12288}, {\"name\": \"pg_name\", \"type\": "
                 "\"string\", \"value\": \"2\"}, {\"name\": \"pg_size\", "
                 "\"type\": \"uint64\", \"value\": 3}, {\"name\": "
                 "\"global_rank_start\", \"type\": \"uint64\", \"value\": 4}, "
                 "{\"name\": \"global_rank_stride\", \"type\": \"uint64\", "
                 "\"value\": 2}"};
    for (int i = 0; i < 2; i++) {
        sc_text nodes;
        et_schema schema = i ? ET_1_1_0 : ET_1_0_3;
        sc_text_init(&nodes);
        pair_add(&nodes, schema, i ? &by_attributes : &by_inputs);
        pair_close(&nodes, schema);
        read_profile(COMM_PROFILE);
        link_text(nodes.buf);
        no_error();
        sc_text_free(&nodes);
        const sc_trace_span_args *x = args_of("record_param_comms", 0);
        assert_int_equal(linked.comms, 1);
        is(x->coll, "allreduce");
        is(x->dtype, "float");
        is(x->group, "2");
        is(x->ranks, "[4, 6, 8]");
        assert_true(x->in_elems == 6144 && x->out_elems == 12288);
        assert_int_equal(x->group_size, 3);
    }
}

static void groups(void **state)
{
    (void)state;
    sc_text nodes;
    sc_text_init(&nodes);
    pair_add(&nodes, ET_1_1_0,
             &(pair_node){.name = "## process_group:init ##",
                          .id = 3,
                          .record = 4,
                          .thread = 1,
                          .in = "\"[{\\\"pg_name\\\": \\\"0\\\", \\\"ranks\\\":"
                                " [], \\\"group_size\\\": 4}, {\\\"pg_name\\\":"
                                " \\\"5\\\", \\\"ranks\\\": [1, 3], "
                                "\\\"group_size\\\": 2}]\"",
                          .in_shapes = "[]",
                          .in_types = "\"String\""});
    pair_close(&nodes, ET_1_1_0);
    read_profile("[{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"## "
                 "process_group:init ##\",\"pid\":7,\"tid\":7,\"ts\":1,"
                 "\"dur\":2,\"args\":{\"External id\":4}}]");
    link_text(nodes.buf);
    no_error();
    sc_text_free(&nodes);
    assert_int_equal(m.n_groups, 2);
    assert_string_equal(m.group[0].name, "0");
    assert_int_equal(m.group[0].n, 4);
    assert_int_equal(m.group[0].rank[3], 3);
    assert_string_equal(m.group[1].name, "5");
    assert_int_equal(m.group[1].n, 2);
    assert_int_equal(m.group[1].rank[0], 1);
}

/* ---- what is refused ----------------------------------------------------- */

static void refuses(const char *text, uint32_t line, const char *says)
{
    if (link_text(text) != SC_EINPUT || err.n == 0)
        fail_msg("was read: %s", text);
    if (!strstr(err.d[0].msg, says) || err.d[0].line != line)
        fail_msg("%u %s, not %u %s", err.d[0].line, err.d[0].msg, line, says);
    assert_string_equal(err.d[0].file, "et.json");
}

static void errors(void **state)
{
    (void)state;
    sc_text profile;
    sc_text_init(&profile);
    pair_profile(&profile, "External id", false);
    read_profile(profile.buf);
    sc_text_free(&profile);
    refuses("", 1, "no list of nodes");
    refuses("x", 1, "not JSON");
    refuses("{\"nodes\": 3}", 1, "no list of nodes");
    refuses("{\"traceEvents\": [{}]}", 1, "no list of nodes");
    refuses("{\"nodes\": [", 1, "ends inside");
    refuses("{\"nodes\": [\n{\"id\": 1, \"na", 2, "ends inside");
    refuses("{\"nodes\": [\n\n{\"id\": 1, 3}]}", 3, "not JSON");
    refuses("{\"nodes\": [\n{\"id\": 1}]}", 2, "needs a name");
    refuses("{\"nodes\": [\n3]}", 2, "a mapping");
    refuses("{\"nodes\": []}", 0, "no operator");
    assert_null(m.node);
}

/* Another run: names are others, though numbers are the same. */
static void other_run(void **state)
{
    (void)state;
    sc_text profile, nodes;
    begin(&profile, &nodes);
    pair_profile(&profile, "External id", false);
    read_profile(profile.buf);
    step_of_et(&nodes, 0);
    pair_close(&nodes, ET_1_1_0);
    refuses(nodes.buf, 0, "of 21 operators are also in k.json");
    assert_non_null(strstr(err.d[0].hint, "recorded together"));
    assert_int_equal(args_of("aten::mm", 0)->dims, 0);
    sc_text_free(&profile);
    sc_text_free(&nodes);
}

/* By content, whatever the name. */
static void recognised(void **state)
{
    (void)state;

    static const struct {
        const char *text;
        bool is;
    } files[] = {{"{\"schema\": \"1.0.1\", \"pid\": 42, \"nodes\": [", true},
                 {"{\"traceEvents\": [], \"nodes\": []}", false},
                 {"[{\"ph\": \"X\"}]", false},
                 {"{\"nodes\": 1}", false},
                 {"", false}};

    char path[] = "/tmp/stepcast-et-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    for (size_t i = 0; i < SC_COUNT(files); i++) {
        sc_file_write(path, files[i].text, strlen(files[i].text), &err);
        no_error();
        sc_et_file f = sc_et_file_look(path);
        assert_int_equal(f.is, files[i].is);
        if (f.is) assert_int_equal(f.pid, 42);
    }
    remove(path);
    assert_false(sc_et_file_look(path).is);
    assert_false(sc_et_file_look("-").is);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(schemas),     TEST(uses),        TEST(stated_shapes),
        TEST(changed),     TEST(same_number), TEST(order),
        TEST(repeated),    TEST(longer),      TEST(gaps),
        TEST(collectives), TEST(groups),      TEST(errors),
        TEST(other_run),   TEST(recognised)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
