/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader of profilers' traces that measured traces and models share: what an
 * event is, which events are broken, where a file ends, and what a file is.
 */
#include "et/et.h"
#include "et/et_kineto.h"
#include "fixture.h"

#include <string.h>

typedef struct seen {
    uint32_t n, n_members;
    sc_kineto_kind kind[8];
    char names[64]; /* first letters */
    sc_time start[8], dur[8];
    int64_t tid[8];
    bool timed[8];
    char dims[32]; /* of the last event */
    sc_profile_clock clock;
} seen;

static sc_kineto_damage damage;

static sc_status on_event(void *ctx, const sc_kineto_event *e)
{
    seen *x = ctx;
    uint32_t i = x->n++;
    assert_true(i < 8);
    x->kind[i] = e->kind;
    x->names[i] = e->name.len ? e->name.at[0] : '-';
    x->tid[i] = sc_kineto_id(&e->tid);
    x->timed[i] = sc_kineto_time(&x->clock, e, &x->start[i], &x->dur[i]);
    if (e->args->dims.type == SCAN_ARRAY && e->args->dims.len < sizeof x->dims)
        scan_unescape(&e->args->dims, x->dims);
    return SC_OK;
}

static void on_member(void *ctx, const scan_token *key, const scan_token *value)
{
    seen *x = ctx;
    assert_true(key->type == SCAN_STRING && value->type != SCAN_NONE);
    x->n_members++;
}

static sc_status read_from(scan *s, bool members, seen *out)
{
    const sc_kineto_sink to = {out, on_event, members ? on_member : NULL};
    *out = (seen){.n = 0};
    sc_status status = sc_kineto_read(s, &to, &damage, &err);
    scan_close(s);
    return status;
}

/* A file in pieces and a text in memory are read alike. */
static sc_status read_text(const char *text, bool members, seen *out)
{
    scan s;
    seen other;
    sc_stream *in;
    sc_kineto_damage first;
    size_t len = strlen(text);
    sc_err_init(&err);
    assert_int_equal(sc_stream_open_memory(text, len, "t.json", &in, &err),
                     SC_OK);
    assert_int_equal(scan_open(&s, in, "t.json", &err), SC_OK);
    sc_status status = read_from(&s, members, &other);
    sc_stream_close(in);
    first = damage;
    sc_err_init(&err);
    scan_open_text(&s, text, len, "t.json", &err);
    assert_int_equal(read_from(&s, members, out), status);
    assert_int_equal(out->n, other.n);
    assert_int_equal(damage.n_broken, first.n_broken);
    assert_int_equal(damage.broken.line, first.broken.line);
    assert_int_equal(damage.broken.col, first.broken.col);
    assert_int_equal(damage.truncated, first.truncated);
    assert_int_equal(damage.end.col, first.end.col);
    return status;
}

#define A                                                                \
    "{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"a\", \"tid\": 1, " \
    "\"ts\": 10.5, \"dur\": 2, \"args\": {\"Input dims\": [[1, 2]]}}"
#define B "{\"name\": \"b\"}"

/* What can be read is read, and what can't be is counted. */
static void broken(void **state)
{
    static const struct {
        const char *text, *names;
        uint64_t n_broken;
        uint32_t line, col; /* of the first broken event */
        bool truncated;
    } files[] = {
        {"{\"traceEvents\": [" A ", " B "]}", "ab", 0, 0, 0, false},
        {"[" A ",\n" B "]", "ab", 0, 0, 0, false},
        {"{\"traceEvents\": [" A ",," B ",]}", "ab", 0, 0, 0, false},
        {"{\"traceEvents\": [\n17, " A "]}", "a", 1, 2, 1, false},
        {"{\"traceEvents\": [\n " A ",\n {\"ph\": ]}, " B "]}", "ab", 1, 3, 2,
         false},
        {"{\"traceEvents\": [{\"args\": {\"x\": 1]},\n" A "]}", "a", 1, 1, 18,
         false},
        {"[1, " A ", 2, " B "]", "ab", 2, 1, 2, false},
        {"[" A ", {\"name\": \"b", "a", 0, 0, 0, true},
        {"[" A ",", "a", 0, 0, 0, true},
        {"[" A, "a", 0, 0, 0, true},
        {"[", "", 0, 0, 0, true},
        {"[1, 2", "", 1, 1, 2, true},
        {"[]", "", 0, 0, 0, false},
    };

    (void)state;
    for (size_t i = 0; i < SC_COUNT(files); i++) {
        seen x;
        if (read_text(files[i].text, true, &x) != SC_OK)
            fail_msg("%s: %s", files[i].text, err.d[0].msg);
        if (strcmp(x.names, files[i].names) != 0 ||
            damage.n_broken != files[i].n_broken ||
            damage.broken.line != files[i].line ||
            damage.broken.col != files[i].col ||
            damage.truncated != files[i].truncated)
            fail_msg("%s: \"%s\", %u broken from %u:%u, %d", files[i].text,
                     x.names, (unsigned)damage.n_broken, damage.broken.line,
                     damage.broken.col, damage.truncated);
    }
}

/* Members are read on both sides of the events, or only before these. */
static void members(void **state)
{
    (void)state;
    seen x;
    assert_int_equal(read_text("{\"a\": 1, \"traceEvents\": [" A
                               "], \"b\": [], \"nodes\": 1}",
                               true, &x),
                     SC_OK);
    assert_int_equal(x.n_members, 3);
    assert_string_equal(x.dims, "[[1, 2]]");
    assert_int_equal(
        read_text("{\"a\": 1, \"traceEvents\": [" A "], \"b\": ]", false, &x),
        SC_OK);
    assert_int_equal(x.n, 1);
    assert_false(damage.truncated);
    assert_int_equal(read_text("{\"traceEvents\": [" A "], \"b\": ]", true, &x),
                     SC_EINPUT);
    assert_int_equal(read_text("{\"traceEvents\": [" A "], \"b\"", true, &x),
                     SC_OK);
    assert_true(damage.truncated);
    assert_int_equal(read_text("{\"nodes\": [", true, &x), SC_EINPUT);
    assert_non_null(strstr(err.d[0].msg, "execution trace"));
}

#define SPAN(cat, name) \
    "{\"ph\": \"X\", \"cat\": \"" cat "\", \"name\": \"" name "\"}"

static void kinds(void **state)
{
    static const struct {
        const char *event;
        sc_kineto_kind kind;
    } all[] = {
        {SPAN("cpu_op", "aten::mm"), SC_KINETO_OP},
        {SPAN("Operator", "ProfilerStep#3"), SC_KINETO_STEP},
        {SPAN("user_annotation", "ProfilerStep"), SC_KINETO_STEP},
        {SPAN("user_annotation", "Profiler"), SC_KINETO_MARK},
        {SPAN("gpu_user_annotation", "ProfilerStep#3"), SC_KINETO_OTHER},
        {SPAN("cuda_runtime", "ProfilerStep#3"), SC_KINETO_CALL},
        {SPAN("python_function", "f"), SC_KINETO_PYTHON},
        {SPAN("kernel", "gemm"), SC_KINETO_KERNEL},
        {SPAN("cuda_sync", "Event Sync"), SC_KINETO_SYNC},
        {"{\"ph\": \"s\", \"cat\": \"cpu_op\", \"name\": \"x\"}",
         SC_KINETO_OTHER},
        {"{\"ph\": \"i\", \"name\": \"[memory]\"}", SC_KINETO_MEMORY},
        {"{\"ph\": \"M\", \"name\": \"thread_name\"}", SC_KINETO_THREAD},
        {"{}", SC_KINETO_OTHER},
    };

    (void)state;
    for (size_t i = 0; i < SC_COUNT(all); i++) {
        seen x;
        assert_int_equal(
            read_text(sc_sprintf(&arena, "[%s]", all[i].event), true, &x),
            SC_OK);
        assert_int_equal(x.n, 1);
        if (x.kind[0] != all[i].kind)
            fail_msg("%s is of kind %d", all[i].event, (int)x.kind[0]);
    }
}

#define AT(tid, ts, dur) "{\"tid\": " tid ", \"ts\": " ts ", \"dur\": " dur "}"

static void threads_and_times(void **state)
{
    (void)state;
    seen x;
    assert_int_equal(
        read_text("[{\"tid\": 7, \"ts\": 100.5}," AT("\"stream 7\"", "\"101\"",
                                                     "2.25")
                      AT("\"7\"", "99", "-4") AT("\"main\"", "null", "1")
                          AT("\"main\"", "1e20", "1") "]",
                  true, &x),
        SC_OK);
    assert_int_equal(x.n, 5);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(x.tid[i], 7);
        assert_true(x.timed[i]);
    }
    assert_true(x.tid[3] == x.tid[4] && x.tid[3] != 7);
    assert_false(x.timed[3] || x.timed[4]);
    assert_int_equal(x.start[0], 500000);
    assert_int_equal(x.dur[0], 0);
    assert_int_equal(x.start[1], 1000000);
    assert_int_equal(x.dur[1], 2250000);
    assert_int_equal(x.start[2], -1000000);
    assert_int_equal(x.dur[2], 0);
}

/* The first list says what a file is. */
static void recognised(void **state)
{
    static const struct {
        const char *text;
        sc_et_kind kind;
    } files[] = {
        {"{\"schema\": \"1.0.1\", \"pid\": 42, \"nodes\": [", SC_ET_NODES},
        {"{\"a\": {\"nodes\": []}, \"traceEvents\": [", SC_ET_EVENTS},
        {"{\"traceEvents\": [], \"nodes\": []}", SC_ET_EVENTS},
        {"{\"nodes\": [], \"traceEvents\": []}", SC_ET_NODES},
        {"{\"nodes\": 1, \"traceEvents\": {}}", SC_ET_OTHER},
        {"[{\"name\": \"x\", \"ph\": \"X\"}]", SC_ET_EVENTS},
        {"[{\"id\": 1, \"name\": \"x\"}]", SC_ET_OTHER},
        {"[1]", SC_ET_OTHER},
        {"[", SC_ET_OTHER},
        {"{\"a\": }", SC_ET_OTHER},
        {"", SC_ET_OTHER},
    };

    (void)state;
    for (size_t i = 0; i < SC_COUNT(files); i++) {
        sc_stream *in;
        sc_et_kind kind;
        sc_et_head head;
        sc_err_init(&err);
        assert_int_equal(sc_stream_open_memory(files[i].text,
                                               strlen(files[i].text), "t.json",
                                               &in, &err),
                         SC_OK);
        assert_int_equal(sc_et_recognise(in, "t.json", &kind, &head, &err),
                         SC_OK);
        sc_stream_close(in);
        if (kind != files[i].kind)
            fail_msg("%s is of kind %d", files[i].text, (int)kind);
        assert_int_equal(head.pid, i == 0 ? 42 : -1);
    }
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(broken), TEST(members), TEST(kinds),
                                       TEST(threads_and_times),
                                       TEST(recognised)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
