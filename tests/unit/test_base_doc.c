/* SPDX-License-Identifier: Apache-2.0 */
/* YAML and JSON as events and trees: positions, limits, hostile files. */
#include "base/base.h"
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Events as text: "{@1:1 k:a@1:2 v:1@1:5 }@1:6". */
typedef struct trace {
    sc_text text;
    int left; /* stop with SC_NO after this many events */
} trace;

static sc_status on_event(void *ctx, const sc_event *ev, sc_err *err)
{
    static const char *const marks[] = {"{", "k:", "}", "[", "]", "v:"};
    trace *t = ctx;
    const char *quote = ev->quoted ? "\"" : "";
    (void)err;
    if (t->left-- == 0) return SC_NO;
    sc_text_add(&t->text, "%s%s%s%.*s%s@%u:%u", t->text.len == 0 ? "" : " ",
                marks[ev->kind], quote, (int)ev->len,
                ev->len == 0 ? "" : ev->text, quote, (unsigned)ev->pos.line,
                (unsigned)ev->pos.col);
    return SC_OK;
}

static void check_events(const char *text, sc_format fmt, const char *want)
{
    trace t = {.left = 1000000};
    sc_err err;
    sc_err_init(&err);
    sc_text_init(&t.text);
    sc_status s =
        sc_doc_events(text, strlen(text), fmt, "f", on_event, &t, &err);
    if (s != SC_OK) print_error("%s\n", err.d[0].msg);
    assert_int_equal(s, SC_OK);
    assert_string_equal(t.text.buf, want);
    sc_text_free(&t.text);
}

static void test_json_events(void **state)
{
    (void)state;
    check_events("{\"a\": 1}", SC_FMT_AUTO, "{@1:1 k:\"a\"@1:2 v:1@1:7 }@1:8");
    check_events(" [true,\n  null , \"x\\\"\\\\\",\n\t-1.50E+3,[]]",
                 SC_FMT_AUTO,
                 "[@1:2 v:true@1:3 v:null@2:3 v:\"x\"\\\"@2:10 v:-1.50E+3@3:2 "
                 "[@3:11 ]@3:12 ]@3:13");
    check_events("42", SC_FMT_JSON, "v:42@1:1");
    check_events("\n 42", SC_FMT_JSON, "v:42@2:2");
    check_events("\"\"", SC_FMT_JSON, "v:\"\"@1:1");
    check_events(
        "[\"\\u00e9\", \"\xC3\xA9\", 1]", SC_FMT_JSON,
        "[@1:1 v:\"\xC3\xA9\"@1:2 v:\"\xC3\xA9\"@1:12 v:1@1:17 ]@1:18");
    check_events("\xEF\xBB\xBF{}", SC_FMT_AUTO, "{@1:1 }@1:2");
    check_events("[123456789012345678901234567890.5]", SC_FMT_JSON,
                 "[@1:1 v:123456789012345678901234567890.5@1:2 ]@1:34");
}

static void test_yaml_events(void **state)
{
    (void)state;
    check_events("a: 1\nb: \"2\"\n", SC_FMT_AUTO,
                 "{@1:1 k:a@1:1 v:1@1:4 k:b@2:1 v:\"2\"@2:4 }@3:1");
    check_events("- 400Gb/s\n- [x, {y: z}]\n-\n", SC_FMT_AUTO,
                 "[@1:1 v:400Gb/s@1:3 [@2:3 v:x@2:4 {@2:7 k:y@2:8 v:z@2:11 "
                 "}@2:12 ]@2:13 v:@3:2 ]@4:1");
    check_events("k:\n  - a: [1]\n    b: c\n  - d\nl: e # comment\n",
                 SC_FMT_YAML,
                 "{@1:1 k:k@1:1 [@2:3 {@2:5 k:a@2:5 [@2:8 v:1@2:9 ]@2:10 "
                 "k:b@3:5 v:c@3:8 }@4:3 v:d@4:5 ]@5:1 k:l@5:1 v:e@5:4 }@6:1");
    check_events("# only a comment\n", SC_FMT_AUTO, "");
    check_events("", SC_FMT_AUTO, "");
    check_events("\xC3\xA9: 'x'\n", SC_FMT_AUTO,
                 "{@1:1 k:\xC3\xA9@1:1 v:\"x\"@1:4 }@2:1");
    check_events("{\"a\": 1}", SC_FMT_YAML, "{@1:1 k:\"a\"@1:2 v:1@1:7 }@1:8");
}

static void test_stop(void **state)
{
    (void)state;
    static const char *const texts[] = {"[1, 2, 3]", "- 1\n- 2\n- 3\n"};
    for (size_t i = 0; i < 2; i++) {
        trace t = {.left = 2};
        sc_err err;
        sc_err_init(&err);
        sc_text_init(&t.text);
        assert_int_equal(sc_doc_events(texts[i], strlen(texts[i]), SC_FMT_AUTO,
                                       "f", on_event, &t, &err),
                         SC_NO);
        assert_int_equal(t.left, -1);
        assert_int_equal(err.n, 0);
        sc_text_free(&t.text);
    }
}

typedef struct refused {
    const char *text;
    sc_format fmt;
    sc_code code;
    uint32_t line, col;
    const char *part; /* of the message */
} refused;

static void check_refused(const refused *r, size_t len)
{
    sc_arena a;
    sc_err err;
    sc_node *root = NULL;
    sc_arena_init(&a, 0);
    sc_err_init(&err);
    sc_status s = sc_doc_parse(r->text, len, r->fmt, "f", &a, &root, &err);
    if (s != SC_EINPUT || err.d[0].line != r->line || err.d[0].col != r->col ||
        err.d[0].code != r->code || strstr(err.d[0].msg, r->part) == NULL)
        print_error("%.60s: %u:%u %s\n", r->text, (unsigned)err.d[0].line,
                    (unsigned)err.d[0].col, err.d[0].msg);
    assert_int_equal(s, SC_EINPUT);
    assert_null(root);
    assert_int_equal(err.d[0].code, r->code);
    assert_int_equal(err.d[0].line, r->line);
    assert_int_equal(err.d[0].col, r->col);
    assert_string_equal(err.d[0].file, "f");
    assert_non_null(strstr(err.d[0].msg, r->part));
    sc_arena_free(&a);
}

static void test_refused(void **state)
{
    (void)state;
    static const refused cases[] = {
        {"{\"a\" 1}", SC_FMT_JSON, SC_C_SYNTAX, 1, 6, "bad JSON"},
        {"{\"a\": 1,}", SC_FMT_JSON, SC_C_SYNTAX, 1, 9, "bad JSON"},
        {"[1,\n 2\n 3]", SC_FMT_JSON, SC_C_SYNTAX, 3, 2, "bad JSON"},
        {"[1, nope]", SC_FMT_JSON, SC_C_SYNTAX, 1, 5, "bad JSON"},
        {"[NaN]", SC_FMT_JSON, SC_C_SYNTAX, 1, 2, "bad JSON"},
        {"[01]", SC_FMT_JSON, SC_C_SYNTAX, 1, 2, "bad JSON"},
        {"[\"a\nb\"]", SC_FMT_JSON, SC_C_SYNTAX, 1, 4, "bad JSON"},
        {"[\"a\\qb\"]", SC_FMT_JSON, SC_C_SYNTAX, 1, 4, "bad JSON"},
        {"[\"\\u00zz\"]", SC_FMT_JSON, SC_C_SYNTAX, 1, 7, "bad JSON"},
        {"[1] x", SC_FMT_JSON, SC_C_SYNTAX, 1, 5, "bad JSON"},
        {"{} {}", SC_FMT_JSON, SC_C_SYNTAX, 1, 4, "bad JSON"},
        {"{\"a\": [1,\n", SC_FMT_JSON, SC_C_SYNTAX, 2, 1, "too early"},
        {"\"abc", SC_FMT_JSON, SC_C_SYNTAX, 1, 5, "too early"},
        {"", SC_FMT_JSON, SC_C_SYNTAX, 1, 1, "too early"},
        {"[\"\\u0000\"]", SC_FMT_JSON, SC_C_SYNTAX, 1, 2, "NUL"},
        {"[1, \"\\udfac\"]", SC_FMT_JSON, SC_C_SYNTAX, 1, 5, "surrogate"},
        {"[\"\xC3\"]", SC_FMT_JSON, SC_C_SYNTAX, 1, 3, "UTF-8"},
        {"{1: 2}", SC_FMT_JSON, SC_C_SYNTAX, 1, 2, "bad JSON"},
        {"a: [1, 2\n", SC_FMT_YAML, SC_C_SYNTAX, 2, 1, "bad YAML"},
        {"a: b: c\n", SC_FMT_YAML, SC_C_SYNTAX, 1, 5, "bad YAML"},
        {"a: 1\n\tb: 2\n", SC_FMT_YAML, SC_C_SYNTAX, 2, 1, "bad YAML"},
        {"x: \"abc\n", SC_FMT_YAML, SC_C_SYNTAX, 2, 1, "bad YAML"},
        {"a: \x01\n", SC_FMT_YAML, SC_C_SYNTAX, 1, 4, "control"},
        {"a: \"\\0\"\n", SC_FMT_YAML, SC_C_SYNTAX, 1, 4, "NUL"},
        {"a: \xFF\n", SC_FMT_YAML, SC_C_SYNTAX, 1, 4, "UTF-8"},
        {"a: &x 1\nb: 2\n", SC_FMT_YAML, SC_C_UNSUPPORTED, 1, 4, "anchors"},
        {"a: *x\n", SC_FMT_YAML, SC_C_UNSUPPORTED, 1, 4, "aliases"},
        {"a: &x [1]\n", SC_FMT_YAML, SC_C_UNSUPPORTED, 1, 4, "anchors"},
        {"a: !!str 1\n", SC_FMT_YAML, SC_C_UNSUPPORTED, 1, 4, "tags"},
        {"a: 1\n---\nb: 1\n", SC_FMT_YAML, SC_C_UNSUPPORTED, 2, 1,
         "more than one"},
        {"? [a]\n: 1\n", SC_FMT_YAML, SC_C_TYPE, 1, 3, "key"},
        {"{\"a\": 1, \"b\": 2,\n \"a\": 3}", SC_FMT_JSON, SC_C_DUPLICATE, 2, 2,
         "\"a\" occurs twice"},
        {"a: 1\nb: 2\na: 3\n", SC_FMT_YAML, SC_C_DUPLICATE, 3, 1,
         "\"a\" occurs twice"},
    };
    for (size_t i = 0; i < SC_COUNT(cases); i++)
        check_refused(&cases[i], strlen(cases[i].text));
    refused nul = {"a: 1\nb: \0", SC_FMT_YAML, SC_C_SYNTAX, 2, 4, "NUL"};
    check_refused(&nul, 9);
}

static void test_nesting(void **state)
{
    (void)state;
    static const char *const opens[] = {"[", "{\"a\":", "- "};
    for (size_t i = 0; i < 3; i++) {
        size_t width = strlen(opens[i]), n = 100000;
        char *text = malloc(n * width + 1);
        for (size_t k = 0; k < n; k++)
            memcpy(text + k * width, opens[i], width);
        text[n * width] = '\0';
        refused r = {
            text,    SC_FMT_AUTO, SC_C_TOO_BIG, 1, (uint32_t)(128 * width + 1),
            "deeper"};
        check_refused(&r, n * width);
        free(text);
    }
}

static void test_depth_limit_is_legal(void **state)
{
    (void)state;
    char text[300];
    sc_arena a;
    sc_node *root = NULL;
    memset(text, '[', 128);
    memset(text + 128, ']', 128);
    sc_arena_init(&a, 0);
    for (int fmt = SC_FMT_YAML; fmt <= SC_FMT_JSON; fmt++) {
        assert_int_equal(
            sc_doc_parse(text, 256, (sc_format)fmt, "f", &a, &root, NULL),
            SC_OK);
        int depth = 0;
        for (const sc_node *n = root; n != NULL; n = n->child) depth++;
        assert_int_equal(depth, 128);
    }
    sc_arena_free(&a);
}

static void test_tree(void **state)
{
    (void)state;
    static const char text[] = "name: h100\n"
                               "list: [1, '2', ~]\n"
                               "none:\n"
                               "sub: {x: null, y: \"null\"}\n";
    sc_arena a;
    sc_node *root = NULL;
    char file[] = "f.yml"; /* need not outlive the call */
    sc_arena_init(&a, 0);
    assert_int_equal(
        sc_doc_parse(text, sizeof text - 1, SC_FMT_AUTO, file, &a, &root, NULL),
        SC_OK);
    memset(file, 'z', sizeof file - 1);
    assert_int_equal(root->kind, SC_N_MAP);
    assert_int_equal(root->n, 4);
    assert_null(root->key);
    const sc_node *name = sc_node_get(root, "name");
    assert_string_equal(name->text, "h100");
    assert_string_equal(name->pos.file, "f.yml");
    assert_int_equal(name->key_pos.col, 1);
    assert_int_equal(name->pos.col, 7);
    const sc_node *list = sc_node_get(root, "list");
    assert_int_equal(list->kind, SC_N_SEQ);
    assert_int_equal(list->n, 3);
    assert_false(list->child->quoted);
    assert_true(list->child->next->quoted);
    assert_null(list->child->key);
    assert_int_equal(list->child->next->next->kind, SC_N_NULL);
    assert_null(list->child->next->next->next);
    assert_int_equal(sc_node_get(root, "none")->kind, SC_N_NULL);
    const sc_node *sub = sc_node_get(root, "sub");
    assert_int_equal(sc_node_get(sub, "x")->kind, SC_N_NULL);
    assert_int_equal(sc_node_get(sub, "y")->kind, SC_N_SCALAR);
    assert_null(sc_node_get(root, "nope"));
    assert_null(sc_node_get(name, "x"));
    assert_null(sc_node_get(NULL, "x"));
    assert_int_equal(sc_doc_parse("", 0, SC_FMT_AUTO, "f", &a, &root, NULL),
                     SC_OK);
    assert_int_equal(root->kind, SC_N_NULL);
    sc_arena_free(&a);
}

static void test_many_duplicates(void **state)
{
    (void)state;
    static const char text[] = "a: 1\nb: {c: 1, c: 2, d: 3}\na: 4\na: 5\n";
    sc_arena a;
    sc_err err;
    sc_node *root = NULL;
    sc_arena_init(&a, 0);
    sc_err_init(&err);
    assert_int_equal(
        sc_doc_parse(text, sizeof text - 1, SC_FMT_AUTO, "f", &a, &root, &err),
        SC_EINPUT);
    assert_int_equal(err.n, 3);
    assert_int_equal(err.d[0].line, 2);
    assert_int_equal(err.d[0].col, 11);
    assert_int_equal(err.d[1].line, 3);
    assert_int_equal(err.d[2].line, 4);
    assert_string_equal(err.d[2].hint, "the first one is in line 1");
    sc_arena_free(&a);
}

static void test_memory_limit(void **state)
{
    (void)state;
    char text[4001];
    sc_node *root = NULL;
    memset(text, ' ', sizeof text);
    text[0] = '[';
    for (size_t i = 1; i < 3999; i += 2) memcpy(text + i, "1,", 2);
    memcpy(text + 3999, "1]", 2);
    for (size_t limit = 1; limit < 300000; limit = limit * 3 + 1) {
        sc_arena a;
        sc_err err;
        sc_err_init(&err);
        sc_arena_init(&a, limit);
        sc_status s =
            sc_doc_parse(text, sizeof text, SC_FMT_JSON, "f", &a, &root, &err);
        assert_int_equal(s, limit < 200000 ? SC_ENOMEM : SC_OK);
        sc_arena_free(&a);
    }
}

static void test_too_big(void **state)
{
    (void)state;
    sc_err err;
    sc_err_init(&err);
    trace t = {.left = 0};
    assert_int_equal(sc_doc_events("x", SC_DOC_MAX_BYTES + 1, SC_FMT_AUTO, "f",
                                   on_event, &t, &err),
                     SC_EINPUT);
    assert_int_equal(err.d[0].code, SC_C_TOO_BIG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_json_events),
        cmocka_unit_test(test_yaml_events),
        cmocka_unit_test(test_stop),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_nesting),
        cmocka_unit_test(test_depth_limit_is_legal),
        cmocka_unit_test(test_tree),
        cmocka_unit_test(test_many_duplicates),
        cmocka_unit_test(test_memory_limit),
        cmocka_unit_test(test_too_big),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
