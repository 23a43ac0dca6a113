/* SPDX-License-Identifier: Apache-2.0 */
/* The command line: options of several tables, positional words, errors. */
#include "base/base.h"
#include "unit.h"

#include <string.h>

typedef struct common {
    bool json, quiet;
    const char *out;
    int64_t jobs;
} common;

typedef struct plan {
    int64_t tp, pp;
    bool sp;
    int schedule;
    double price;
} plan;

static const char *const schedules[] = {"1f1b", "gpipe", "interleaved", NULL};

static const sc_key common_keys[] = {
    {.name = "json",
     .type = SC_T_BOOL,
     .offset = offsetof(common, json),
     .flag = "--json",
     .help = "one JSON document on stdout"},
    {.name = "quiet",
     .type = SC_T_BOOL,
     .offset = offsetof(common, quiet),
     .flag = "--quiet",
     .def = "false",
     .help = "no talk"},
    {.name = "out",
     .type = SC_T_STRING,
     .offset = offsetof(common, out),
     .flag = "-o",
     .meta = "FILE",
     .help = "where to write"},
    {.name = "jobs",
     .type = SC_T_INT,
     .offset = offsetof(common, jobs),
     .flag = "--jobs",
     .min = 1,
     .max = 4096,
     .def = "1"},
    {.name = NULL},
};

static const sc_key plan_keys[] = {
    {.name = "tp",
     .type = SC_T_INT,
     .offset = offsetof(plan, tp),
     .flag = "--tp",
     .min = 1,
     .max = 1e9,
     .help = "tensor parallelism: across how many devices the matrices of "
             "one layer are split, which must divide the attention heads"},
    {.name = "pp",
     .type = SC_T_INT,
     .offset = offsetof(plan, pp),
     .flag = "--pp"},
    {.name = "sp",
     .type = SC_T_BOOL,
     .offset = offsetof(plan, sp),
     .flag = "--sp"},
    {.name = "schedule",
     .type = SC_T_ENUM,
     .names = schedules,
     .offset = offsetof(plan, schedule),
     .flag = "--schedule",
     .help = "order of the micro-batches"},
    {.name = "price",
     .type = SC_T_QUANTITY,
     .unit = SC_U_PRICE,
     .offset = offsetof(plan, price),
     .flag = "--price"},
    {.name = "file_only", .type = SC_T_INT, .offset = offsetof(plan, tp)},
    {.name = NULL},
};

typedef struct fixture {
    sc_arena a;
    sc_err err;
    common c;
    plan p;
    sc_opt_set sets[2];
    sc_words words;
} fixture;

/* `line` is split at blanks. */
static sc_status parse(fixture *f, const char *line)
{
    static char copy[400];
    char *argv[40];
    int argc = 0;
    memset(f, 0, sizeof *f);
    sc_arena_init(&f->a, 0);
    sc_err_init(&f->err);
    f->sets[0].keys = common_keys;
    f->sets[0].target = &f->c;
    f->sets[1].keys = plan_keys;
    f->sets[1].target = &f->p;
    strncpy(copy, line, sizeof copy - 1);
    for (char *w = copy; *w != '\0' && argc < 40;) {
        argv[argc++] = w;
        w += strcspn(w, " ");
        if (*w == ' ') *w++ = '\0';
    }
    return sc_opt_parse(argc, argv, f->sets, 2, &f->words, &f->a, &f->err);
}

static void test_good(void **state)
{
    (void)state;
    fixture f;
    assert_int_equal(parse(&f, "model --tp 8 --json -o out.json a=b --pp=4 - "
                               "--sp --schedule=gpipe --price 3.6USD/h "
                               "--jobs 2 --jobs 3 -- --tp -x"),
                     SC_OK);
    assert_true(f.p.tp == 8 && f.p.pp == 4 && f.p.sp);
    assert_true(f.c.json && !f.c.quiet && f.c.jobs == 3);
    assert_string_equal(f.c.out, "out.json");
    assert_int_equal(f.p.schedule, 1);
    assert_true(f.p.price == 1e-3);
    static const char *const words[] = {"model", "a=b", "-", "--tp", "-x"};
    assert_int_equal(f.words.n, SC_COUNT(words));
    for (size_t i = 0; i < SC_COUNT(words); i++)
        assert_string_equal(f.words.w[i], words[i]);
    assert_true(sc_given_has(&f.sets[1].given, plan_keys, "tp"));
    assert_false(sc_given_has(&f.sets[0].given, common_keys, "quiet"));
    sc_arena_free(&f.a);
}

static void test_bool(void **state)
{
    (void)state;
    fixture f;
    assert_int_equal(parse(&f, "--sp --no-sp --json=true --quiet=off"), SC_OK);
    assert_true(!f.p.sp && f.c.json && !f.c.quiet);
    assert_true(sc_given_has(&f.sets[1].given, plan_keys, "sp"));
    sc_arena_free(&f.a);
    assert_int_equal(parse(&f, "--sp false"), SC_OK); /* a positional word */
    assert_true(f.p.sp && f.words.n == 1);
    sc_arena_free(&f.a);
}

static void test_empty(void **state)
{
    (void)state;
    fixture f;
    assert_int_equal(parse(&f, ""), SC_OK);
    assert_int_equal(f.words.n, 0);
    sc_arena_free(&f.a);
}

static void test_bad(void **state)
{
    (void)state;

    static const struct {
        const char *line, *file, *msg, *hint;
        sc_code code;
    } bad[] = {
        {"--tpp 8", "--tpp", "unknown option", "did you mean --tp?",
         SC_C_OPTION},
        {"--zzzzzzz=8", "--zzzzzzz", "unknown option", "", SC_C_OPTION},
        {"-x", "-x", "unknown option", "", SC_C_OPTION},
        {"--no-tp", "--no-tp", "unknown option", NULL, SC_C_OPTION},
        {"--file_only 1", "--file_only", "unknown option", NULL, SC_C_OPTION},
        {"--tp", "--tp", "this option needs a value", NULL, SC_C_OPTION},
        {"--pp --json", "--pp", "this option needs a value", NULL, SC_C_OPTION},
        {"--no-sp=true", "--no-sp=true", "this option takes no value", NULL,
         SC_C_OPTION},
        {"--tp 0", "--tp 0", "tp is out of range: 0",
         "tp is from 1 to 1000000000", SC_C_RANGE},
        {"--tp=-4", "--tp -4", "tp is out of range: -4", NULL, SC_C_RANGE},
        {"--tp -4", "--tp -4", "tp is out of range: -4", NULL, SC_C_RANGE},
        {"--tp=", "--tp ", "\"\" is not a count", NULL, SC_C_TYPE},
        {"--tp eight", "--tp eight", "\"eight\" is not a count", NULL,
         SC_C_TYPE},
        {"--price 3", "--price 3", "\"3\" has no unit, a price needs one",
         "write 3USD/h", SC_C_UNIT},
        {"--sp=maybe", "--sp maybe", "sp is neither true nor false: \"maybe\"",
         NULL, SC_C_TYPE},
        {"--schedule 1f2b", "--schedule 1f2b", "unknown schedule \"1f2b\"",
         "did you mean 1f1b?", SC_C_UNKNOWN_NAME},
        {"--schedule none", "--schedule none", "unknown schedule \"none\"",
         "one of 1f1b, gpipe, interleaved", SC_C_UNKNOWN_NAME},
    };

    for (size_t i = 0; i < SC_COUNT(bad); i++) {
        fixture f;
        assert_int_equal(parse(&f, bad[i].line), SC_EUSAGE);
        assert_int_equal(f.err.n, 1);
        assert_int_equal(f.err.status, SC_EUSAGE);
        assert_string_equal(f.err.d[0].file, bad[i].file);
        assert_string_equal(f.err.d[0].msg, bad[i].msg);
        assert_int_equal(f.err.d[0].code, bad[i].code);
        if (bad[i].hint != NULL)
            assert_string_equal(f.err.d[0].hint, bad[i].hint);
        sc_arena_free(&f.a);
    }
}

static void test_all_errors_nothing_written(void **state)
{
    (void)state;
    fixture f;
    assert_int_equal(parse(&f, "--jobs 5 --tp x --frobnicate --price 3 --pp 2"),
                     SC_EUSAGE);
    assert_int_equal(f.err.n, 3);
    assert_int_equal(f.c.jobs, 0);
    assert_int_equal(f.p.pp, 0);
    assert_null(f.words.w);
    assert_false(sc_given_has(&f.sets[0].given, common_keys, "jobs"));
    sc_arena_free(&f.a);
}

static void test_help(void **state)
{
    (void)state;
    sc_arena a;
    sc_arena_init(&a, 0);
    assert_string_equal(
        sc_schema_help(common_keys, &a),
        "  --json                  one JSON document on stdout\n"
        "  --quiet                 no talk\n"
        "  -o FILE                 where to write\n"
        "  --jobs N                [1]\n");
    assert_string_equal(
        sc_schema_help(plan_keys, &a),
        "  --tp N                  tensor parallelism: across how many devices "
        "the\n"
        "                          matrices of one layer are split, which must "
        "divide\n"
        "                          the attention heads\n"
        "  --pp N                  \n"
        "  --sp                    \n"
        "  --schedule 1f1b|gpipe|interleaved\n"
        "                          order of the micro-batches\n"
        "  --price N               \n");
    sc_arena_free(&a);
}

/* Each of several equal options counts; a file has a word or a list. */
typedef struct lists {
    const char **jobs, **none;
} lists;

static const sc_key list_keys[] = {
    {.name = "job",
     .type = SC_T_LIST,
     .offset = offsetof(lists, jobs),
     .flag = "--job",
     .meta = "NAME",
     .help = "to run"},
    {.name = "none",
     .type = SC_T_LIST,
     .offset = offsetof(lists, none),
     .flag = "--none"},
    {.name = NULL},
};

static const sc_key pair_keys[] = {
    {.name = "job",
     .type = SC_T_LIST,
     .words = 2,
     .offset = offsetof(lists, jobs),
     .flag = "--job"},
    {.name = NULL},
};

/* An option that takes two words, or one behind each "=". */
static void test_pairs(void **state)
{
    char *const words[] = {"x", "--job", "a", "b@4", "y", "--job=c", "--job=d"};
    char *const bad[] = {"--job", "a", "--job"};
    sc_arena a;
    sc_err err;
    sc_words rest;
    lists l = {NULL, NULL};
    sc_opt_set set = {.keys = pair_keys, .target = &l};
    (void)state;
    sc_arena_init(&a, 0);
    sc_err_init(&err);
    assert_int_equal(sc_opt_parse(7, words, &set, 1, &rest, &a, &err), SC_OK);
    assert_string_equal(l.jobs[1], "b@4");
    assert_string_equal(l.jobs[3], "d");
    assert_null(l.jobs[4]);
    assert_int_equal(rest.n, 2);
    l = (lists){NULL, NULL};
    assert_int_equal(sc_opt_parse(3, bad, &set, 1, &rest, &a, &err), SC_EUSAGE);
    assert_string_equal(err.d[0].msg, "this option needs 2 words");
    assert_null(l.jobs);
    sc_arena_free(&a);
}

static void assert_jobs(const lists *l)
{
    assert_string_equal(l->jobs[0], "a");
    assert_string_equal(l->jobs[1], "b@4");
    assert_null(l->jobs[2]);
    assert_null(l->none);
}

static void test_list(void **state)
{
    (void)state;
    char *argv[] = {"--job", "a", "--job=b@4"};
    sc_arena a;
    sc_err err;
    sc_words words;
    lists l = {NULL, NULL};
    sc_opt_set set = {list_keys, &l, {{0}}};
    sc_arena_init(&a, 0);
    sc_err_init(&err);
    assert_int_equal(sc_opt_parse(3, argv, &set, 1, &words, &a, &err), SC_OK);
    assert_jobs(&l);
    assert_true(sc_given_has(&set.given, list_keys, "job"));
    assert_string_equal(sc_schema_help(&list_keys[0], &a),
                        "  --job NAME              to run (may be repeated)\n"
                        "  --none TEXT             (may be repeated)\n");
    static const char *const good[] = {"job: [a, b@4]", "job:\n- a\n- b@4"};
    for (size_t i = 0; i < SC_COUNT(good); i++) {
        sc_node *root;
        l = (lists){NULL, NULL};
        assert_int_equal(sc_doc_parse(good[i], strlen(good[i]), SC_FMT_YAML,
                                      "f.yml", &a, &root, &err),
                         SC_OK);
        assert_int_equal(sc_schema_read(list_keys, root, &l, NULL, &a, &err),
                         SC_OK);
        assert_jobs(&l);
    }
    static const char bad[] = "job: [a, {b: c}, [d]]";
    sc_node *root;
    assert_int_equal(
        sc_doc_parse(bad, strlen(bad), SC_FMT_YAML, "f.yml", &a, &root, &err),
        SC_OK);
    assert_int_equal(sc_schema_read(list_keys, root, &l, NULL, &a, &err),
                     SC_EINPUT);
    assert_int_equal(err.n, 2);
    assert_int_equal(err.d[1].col, 18);
    sc_arena_free(&a);
}

/* What an option and a key were called before they were renamed. */
static void test_former_name(void **state)
{
    (void)state;

    struct {
        const char *patterns;
    } t = {NULL};

    static const sc_key keys[] = {{.name = "keep-bf16",
                                   .type = SC_T_STRING,
                                   .offset = 0,
                                   .flag = "--keep-bf16"},
                                  {.name = NULL}};
    char *const words[] = {"--wide", "head", "--wider"};
    sc_opt_set set = {.keys = keys, .target = &t};
    sc_words rest;
    sc_arena a;
    sc_err err;
    sc_node *root;
    sc_arena_init(&a, 0);
    sc_err_init(&err);
    assert_int_equal(sc_opt_parse(2, words, &set, 1, &rest, &a, &err), SC_OK);
    assert_string_equal(t.patterns, "head");
    assert_true(sc_given_has(&set.given, keys, "keep-bf16"));
    assert_int_equal(sc_opt_parse(3, words, &set, 1, &rest, &a, &err),
                     SC_EUSAGE);
    sc_err_init(&err);
    assert_int_equal(
        sc_doc_parse("wide: x", 7, SC_FMT_YAML, "f.yml", &a, &root, &err),
        SC_OK);
    assert_int_equal(sc_schema_read(keys, root, &t, NULL, &a, &err), SC_OK);
    assert_string_equal(t.patterns, "x");
    sc_arena_free(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_former_name),
        cmocka_unit_test(test_good),
        cmocka_unit_test(test_bool),
        cmocka_unit_test(test_empty),
        cmocka_unit_test(test_bad),
        cmocka_unit_test(test_all_errors_nothing_written),
        cmocka_unit_test(test_help),
        cmocka_unit_test(test_list),
        cmocka_unit_test(test_pairs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
