/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Traces of profilers as they are found: not quite JSON, of several versions, with
 * parts missing.  What can be read is read, and what is left out is said.
 */
#include "fixture.h"
#include "trace/trace_profiled.h"

#include <stdio.h>
#include <string.h>

static sc_text notes;
static sc_profiled m;

static sc_status read_text(const char *text, size_t len)
{
    sc_err_init(&err);
    sc_text_free(&notes);
    sc_text_init(&notes);
    return sc_profiled_read_memory(text, len, "t.json", &arena, &notes, &m,
                                   &err);
}

static void reads(const char *text)
{
    read_text(text, strlen(text));
    no_error();
}

static const sc_trace_span *only(sc_trace_span_kind kind)
{
    const sc_trace_span *found = NULL;
    for (uint64_t i = 0; i < m.n_spans; i++) {
        const sc_trace_span *s = sc_trace_span_at(&m, i);
        if (s->kind != kind) continue;
        if (found) fail_msg("there are several");
        found = s;
    }
    if (!found) fail_msg("there is none");
    return found;
}

static const char *name_of(const sc_trace_span *s)
{
    return m.name[s->name];
}

#define KERNEL                                                              \
    "{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"gemm\", \"pid\": 0, " \
    "\"tid\": 7, \"ts\": 1000.5, \"dur\": 2.25, \"args\": {\"device\": 0, " \
    "\"stream\": 7, \"correlation\": 42, \"grid\": [1, 2, 3]}}"
#define CALL                                                                  \
    "{\"ph\": \"X\", \"cat\": \"cuda_runtime\", \"name\": "                   \
    "\"cudaLaunchKernel\", \"pid\": 5, \"tid\": 6, \"ts\": 990, \"dur\": 4, " \
    "\"args\": {\"correlation\": 42}}"

static void usual(void **state)
{
    (void)state;
    reads("{\"schemaVersion\": 1, \"distributedInfo\": {\"rank\": 3, "
          "\"world_size\": 8, \"backend\": \"nccl\", \"pg_config\": "
          "[{\"pg_name\": \"0\", \"ranks\": [0, 3]}]}, "
          "\"deviceProperties\": [{\"id\": 0, \"name\": \"H100\"}], "
          "\"baseTimeNanoseconds\": 5000, \"traceEvents\": [" CALL "," KERNEL
          "]}");
    assert_int_equal(m.rank, 3);
    assert_int_equal(m.world_size, 8);
    assert_string_equal(m.device, "H100");
    assert_int_equal(m.n_groups, 1);
    assert_int_equal(m.group[0].rank[1], 3);
    assert_int_equal(m.origin_ns, 5000 + 990 * 1000);
    const sc_trace_span *k = only(SC_SPAN_KERNEL), *c = only(SC_SPAN_CALL);
    assert_int_equal(k->start, 10500000);
    assert_int_equal(k->dur, 2250000);
    assert_int_equal(k->id, 42);
    assert_int_equal(c->id, 42);
    assert_string_equal(m.name[m.args[k->args].grid], "[1, 2, 3]");
    assert_true(m.lanes[k->lane].device);
    assert_int_equal(m.lanes[k->lane].tid, 7);
    assert_int_equal(m.n_broken, 0);
}

/* Each is a defect of real files; the kernel is read all the same. */
static void forgiven(void **state)
{
    static const char *const text[] = {
        /* the list alone, as Chrome writes it */
        "[" KERNEL "]",
        /* metadata behind the events */
        "{\"traceEvents\": [" KERNEL "], \"distributedInfo\": {\"rank\": 1}}",
        /* control characters in names */
        "{\"traceEvents\": [{\"ph\": \"M\", \"name\": \"a\x01\tb\nc\"}," KERNEL
        "]}",
        /* quotes that are not escaped */
        "{\"traceEvents\": [{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"a "
        "\"b\" c\", \"pid\": 1, \"tid\": 1, \"ts\": 1, \"dur\": 1}," KERNEL
        "]}",
        /* invalid UTF-8 */
        "{\"traceEvents\": [{\"ph\": \"M\", \"name\": \"\xff\xfe\"}," KERNEL
        "]}",
        /* integers over 64 bits */
        "{\"traceEvents\": [{\"ph\": \"M\", \"name\": \"x\", \"args\": "
        "{\"id\": 340282366920938463463374607431768211456}}," KERNEL "]}",
        /* a file that was cut off inside an event */
        "{\"traceEvents\": [" KERNEL ", {\"ph\": \"X\", \"name\": \"cut",
        /* or behind one */
        "{\"traceEvents\": [" KERNEL ",",
        /* two commas, and one behind the last event */
        "{\"traceEvents\": [" KERNEL ",,]}",
        /* an event that is no object */
        "{\"traceEvents\": [17, " KERNEL "]}",
        /* an event whose braces do not match */
        "{\"traceEvents\": [{\"ph\": \"X\", \"args\": {\"a\": 1]},\n" KERNEL
        "]}",
        /* a time that is none */
        "{\"traceEvents\": [{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": "
        "\"k\", \"ts\": null, \"dur\": 1}," KERNEL "]}",
        /* NaN and infinity as Python writes them */
        "{\"overhead\": NaN, \"x\": -Infinity, \"traceEvents\": [" KERNEL "]}",
        /* text around numbers */
        "{\"traceEvents\": [{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"gemm\","
        "\"pid\":0,\"tid\":\"stream 7\",\"ts\":\"1000.5\",\"dur\":\"2.25\","
        "\"args\":{\"stream\":\"7\",\"correlation\":\"42\",\"grid\":[1,2,3]}}]"
        "}",
        /* a byte order mark is not JSON, but blanks before it are */
        "\n\n  {\"traceEvents\": [" KERNEL "]}",
        /* unknown keys of any form, also deep ones */
        "{\"a\": {\"b\": [[{\"c\": \"}]\"}]]}, \"traceEvents\": [" KERNEL
        "], \"z\": []}",
        /* an empty list of devices, a rank that is no number */
        "{\"deviceProperties\": [], \"distributedInfo\": {\"rank\": \"x\"}, "
        "\"traceEvents\": [" KERNEL "]}",
        /* no name, no process, no thread */
        "{\"traceEvents\": [{\"ph\": \"X\", \"cat\": \"cpu_op\", \"ts\": 5, "
        "\"dur\": 1}," KERNEL "]}",
        /* a negative duration */
        "{\"traceEvents\": [{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": "
        "\"n\", \"ts\": 5, \"dur\": -3}," KERNEL "]}",
        /* a time with an exponent */
        "{\"traceEvents\": [{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": "
        "\"n\", \"ts\": 1.0e3, \"dur\": 1e0}," KERNEL "]}",
    };
    (void)state;
    for (size_t i = 0; i < SC_COUNT(text); i++) {
        sc_status s = read_text(text[i], strlen(text[i]));
        if (s != SC_OK) fail_msg("text %zu: %s", i, err.d[0].msg);
        const sc_trace_span *k = only(SC_SPAN_KERNEL);
        if (strcmp(name_of(k), "gemm") != 0 || k->id != 42 ||
            k->dur != 2250000 || !k->args)
            fail_msg("text %zu: the kernel is not what was written", i);
    }
}

static void said(void **state)
{
    (void)state;
    reads("{\"traceEvents\": [" KERNEL ", {\"ph\": \"X\", \"name\": \"cut");
    assert_non_null(strstr(notes.buf, "the file ends inside"));
    reads("{\"traceEvents\": [\n17,\n" KERNEL "]}");
    assert_non_null(strstr(notes.buf, "1 events can't be read"));
    assert_non_null(strstr(notes.buf, "line 2, column 1"));
    assert_int_equal(m.n_broken, 1);
}

static void refuses(const char *text, const char *why)
{
    assert_int_equal(read_text(text, strlen(text)), SC_EINPUT);
    if (!strstr(err.d[0].msg, why)) fail_msg("\"%s\"", err.d[0].msg);
}

static void refused(void **state)
{
    (void)state;
    refuses("", "empty");
    refuses("  \n", "empty");
    refuses("{\"a\": 1,\n \"b\": }", "not JSON");
    assert_int_equal(err.d[0].line, 1); /* behind the member before */
    assert_int_equal(err.d[0].col, 8);
    refuses("hello", "not JSON");
    refuses("{\"a\" 1}", "ends before");
    refuses("{\"a\": }", "not JSON");
    refuses("{\"a\": 1}", "no list of events");
    refuses("{\"a\": 1", "ends before");
    refuses("{\"schema\": \"1.0.1\", \"nodes\": []}", "execution trace");
    refuses("{\"traceEvents\": [1, 2, 3]}", "no event");
    static const char *const others[] = {"a.xplane.pb", "b.nsys-rep", "c.rpd",
                                         "d.pftrace", "e.0.et"};
    for (size_t i = 0; i < SC_COUNT(others); i++) {
        sc_err_init(&err);
        assert_int_equal(sc_profiled_read(others[i], &arena, &notes, &m, &err),
                         SC_EINPUT);
        assert_int_equal(err.d[0].code, SC_C_UNSUPPORTED);
        assert_true(err.d[0].hint[0] != '\0');
    }
}

/* Versions name the same things differently. */
static void versions(void **state)
{
    (void)state;
    reads("{\"traceEvents\": ["
          "{\"ph\":\"X\",\"cat\":\"Operator\",\"name\":\"ProfilerStep#1\","
          "\"pid\":1,\"tid\":\"1\",\"ts\":1,\"dur\":9},"
          "{\"ph\":\"X\",\"cat\":\"Runtime\",\"name\":\"hipLaunchKernel\","
          "\"pid\":1,\"tid\":\"1\",\"ts\":2,\"dur\":1,\"args\":"
          "{\"correlation\":5,\"external id\":1}},"
          "{\"ph\":\"X\",\"cat\":\"Kernel\",\"name\":"
          "\"ncclDevKernel_AllReduce_Sum_f32_RING_LL\",\"pid\":0,\"tid\":"
          "\"stream 7\",\"ts\":3,\"dur\":1,\"args\":{\"device\":0,\"stream\":7,"
          "\"correlation\":5}},"
          "{\"ph\":\"X\",\"cat\":\"Memcpy\",\"name\":\"Memcpy HtoD\",\"pid\":0,"
          "\"tid\":\"stream 7\",\"ts\":5,\"dur\":1,\"args\":{\"bytes\":64}},"
          "{\"ph\":\"X\",\"cat\":\"Memset\",\"name\":\"Memset\",\"pid\":0,"
          "\"tid\":\"stream 7\",\"ts\":7,\"dur\":1}]}");
    assert_int_equal(only(SC_SPAN_COLL)->detail, SC_ALL_REDUCE);
    assert_int_equal(m.args[only(SC_SPAN_COPY)->args].bytes, 64);
    assert_int_equal(only(SC_SPAN_COPY)->lane, only(SC_SPAN_SET)->lane);
    only(SC_SPAN_STEP);
    reads("{\"traceEvents\": [{\"ph\":\"X\",\"cat\":\"cuda_sync\",\"name\":"
          "\"Stream Wait Event\",\"pid\":0,\"tid\":20,\"ts\":1,\"dur\":3,"
          "\"args\":{\"wait_on_stream\":7,\"wait_on_cuda_event_record_corr_id\""
          ":9,\"stream\":20,\"correlation\":10}},"
          "{\"ph\":\"i\",\"cat\":\"cpu_instant_event\",\"name\":\"[memory]\","
          "\"ts\":2,\"args\":{\"Total Allocated\":77,\"Bytes\":-5,\"Device "
          "Type\":1}}]}");
    const sc_trace_span_args *x = &m.args[only(SC_SPAN_SYNC)->args];
    assert_int_equal(x->wait_stream, 7);
    assert_int_equal(x->record, 9);
    assert_int_equal(m.n_changes, 1);
    assert_int_equal(m.change[0].bytes, -5);
    assert_int_equal(m.change[0].total, 77);
}

static void calls(void **state)
{
    static const struct {
        const char *name;
        sc_call_kind kind;
    } call[] = {{"cudaStreamSynchronize", SC_CALL_STREAM_SYNC},
                {"hipDeviceSynchronize", SC_CALL_DEVICE_SYNC},
                {"cudaFree", SC_CALL_DEVICE_SYNC},
                {"cudaFreeHost", SC_CALL_OTHER},
                {"cuMemcpyDtoH_v2", SC_CALL_COPY},
                {"cudaStreamWaitEvent", SC_CALL_STREAM_WAIT},
                {"cudaGraphLaunch", SC_CALL_GRAPH_LAUNCH},
                {"cuLaunchKernel", SC_CALL_OTHER},
                {"", SC_CALL_OTHER}};

    (void)state;
    for (size_t i = 0; i < SC_COUNT(call); i++) {
        char text[300];
        snprintf(text, sizeof text,
                 "[{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"%s\","
                 "\"pid\":1,\"tid\":1,\"ts\":1,\"dur\":1}]",
                 call[i].name);
        reads(text);
        if (only(SC_SPAN_CALL)->detail != call[i].kind)
            fail_msg("%s", call[i].name);
    }
}

/* Windows of the reader are a mebibyte, so events lie across their borders. */
static void large(void **state)
{
    (void)state;
    sc_text t;
    sc_text_init(&t);
    sc_text_add(&t, "{\"pad\": \"");
    for (int i = 0; i < 3 << 17; i++) sc_text_add(&t, "0123456789abcdef");
    sc_text_add(&t, "\", \"traceEvents\": [");
    for (int i = 0; i < 20000; i++)
        sc_text_add(
            &t,
            "%s{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"op %d\", "
            "\"pid\": 1, \"tid\": %d, \"ts\": %d.125, \"dur\": 1}\n",
            i ? "," : "", i % 97, i % 3, i);
    sc_text_add(&t, "]}");
    assert_false(t.failed);
    assert_int_equal(read_text(t.buf, t.len), SC_OK);
    assert_int_equal(m.n_spans, 20000);
    assert_int_equal(m.n_names, 98);
    assert_int_equal(m.n_lanes, 3);
    for (uint64_t i = 0; i < m.n_spans; i++) {
        const sc_trace_span *s = sc_trace_span_at(&m, i);
        assert_int_equal(s->start, (sc_time)i * 1000000 + 125000);
        assert_int_equal(m.lanes[s->lane].tid, i % 3);
    }
    /* any cut is read up to there, or refused */
    for (size_t cut = t.len - 3000; cut < t.len; cut += 37) {
        assert_int_equal(read_text(t.buf, cut), SC_OK);
        assert_true(m.n_spans >= 19950);
    }
    sc_text_free(&t);
}

static int open_notes(void **state)
{
    sc_text_init(&notes);
    return setup(state);
}

static int close_notes(void **state)
{
    sc_text_free(&notes);
    return teardown(state);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, open_notes, close_notes)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(usual),    TEST(forgiven), TEST(said), TEST(refused),
        TEST(versions), TEST(calls),    TEST(large)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
