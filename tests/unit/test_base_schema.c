/* SPDX-License-Identifier: Apache-2.0 */
/* Key tables: reading maps, defaults, all errors in one pass, printing. */
#include "base/base.h"
#include "unit.h"

#include <float.h>
#include <string.h>

typedef struct device {
    double bandwidth, memory, price, ratio;
    int64_t sms, seed;
    bool ecc;
    int fast;
    const char *name;
    int kind;
    const sc_node *tiers;
} device;

static const char *const kinds[] = {"gpu", "tpu", "switch", NULL};

#define ROW(field) .name = #field, .offset = offsetof(device, field)
static const sc_key keys[] = {
    {ROW(name), .type = SC_T_STRING, .required = true, .help = "its name"},
    {ROW(bandwidth), .type = SC_T_QUANTITY, .unit = SC_U_RATE, .min = 1,
     .max = 1e15, .required = true},
    {ROW(memory), .type = SC_T_QUANTITY, .unit = SC_U_BYTES, .def = "80GiB"},
    {ROW(price), .type = SC_T_QUANTITY, .unit = SC_U_PRICE},
    {ROW(ratio), .type = SC_T_QUANTITY, .unit = SC_U_NONE, .min = 0, .max = 1,
     .def = "5%"},
    {ROW(sms), .type = SC_T_INT, .min = 1, .max = DBL_MAX, .def = "108"},
    {ROW(seed), .type = SC_T_INT},
    {ROW(ecc), .type = SC_T_BOOL, .def = "yes"},
    {ROW(fast), .type = SC_T_TRISTATE},
    {ROW(kind), .type = SC_T_ENUM, .names = kinds, .def = "gpu"},
    {ROW(tiers), .type = SC_T_NODE},
    {.name = NULL},
};

typedef struct fixture {
    sc_arena a;
    sc_err err;
    device d;
    sc_given given;
} fixture;

static sc_status read_text(fixture *f, const char *text)
{
    sc_node *root = NULL;
    memset(f, 0, sizeof *f);
    sc_arena_init(&f->a, 0);
    sc_err_init(&f->err);
    f->d.sms = 7;
    sc_status s = sc_doc_parse(text, strlen(text), SC_FMT_AUTO, "d.yml", &f->a,
                               &root, &f->err);
    assert_int_equal(s, SC_OK);
    return sc_schema_read(keys, root, &f->d, &f->given, &f->a, &f->err);
}

/* Neither yes nor no stays apart from both. */
static void test_tristate(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "name: a\nbandwidth: 1GB/s\n", "name: a\nbandwidth: 1GB/s\nfast: no\n",
        "name: a\nbandwidth: 1GB/s\nfast: on\n"};
    const sc_key *row = keys;
    while (row->offset != offsetof(device, fast)) row++;
    assert_true(sc_key_is_flag(row));
    for (int want = -1; want <= 1; want++) {
        fixture f;
        device old = {.fast = -1}, copy = {.fast = 5};
        assert_int_equal(read_text(&f, texts[want + 1]), SC_OK);
        if (!sc_given_has(&f.given, keys, "fast")) f.d.fast = -1;
        assert_int_equal(f.d.fast, want);
        assert_true(sc_schema_same(row, &f.d, &old) == (want == -1));
        sc_schema_copy(row, &f.d, &copy);
        assert_int_equal(copy.fast, want);
        char text[8];
        sc_schema_print(row, &f.d, text, sizeof text);
        assert_string_equal(text, want == 1 ? "true" : "false");
        sc_arena_free(&f.a);
    }
}

static void test_read(void **state)
{
    (void)state;
    fixture f;
    assert_int_equal(read_text(&f, "name: H100\n"
                                   "bandwidth: 400Gb/s\n"
                                   "price: $3.6/h\n"
                                   "ratio: 50%\n"
                                   "sms: 1.5K\n"
                                   "seed: -9223372036854775807\n"
                                   "ecc: off\n"
                                   "kind: tpu\n"
                                   "tiers:\n  - hbm\n  - dram\n"),
                     SC_OK);
    assert_string_equal(f.d.name, "H100");
    assert_true(f.d.bandwidth == 50e9);
    assert_true(f.d.price == 1e-3);
    assert_true(f.d.ratio == 0.5);
    assert_true(f.d.sms == 1500);
    assert_true(f.d.seed == -INT64_MAX);
    assert_false(f.d.ecc);
    assert_int_equal(f.d.kind, 1);
    assert_int_equal(f.d.tiers->n, 2);
    assert_true(f.d.memory == 0); /* not given: left alone */
    assert_true(sc_given_has(&f.given, keys, "sms"));
    assert_false(sc_given_has(&f.given, keys, "memory"));
    assert_false(sc_given_has(&f.given, keys, "no such key"));
    sc_arena_free(&f.a);
}

static void test_read_json(void **state)
{
    (void)state;
    fixture f;
    assert_int_equal(read_text(&f, "{\"name\": \"x\", \"bandwidth\": "
                                   "\"50GB/s\", \"ratio\": 0.25, \"sms\": 4,"
                                   " \"ecc\": true}"),
                     SC_OK);
    assert_true(f.d.bandwidth == 50e9);
    assert_true(f.d.ratio == 0.25);
    assert_true(f.d.ecc);
    sc_arena_free(&f.a);
}

/* Every line of the file is wrong; every line is reported. */
static void test_all_errors_in_one_pass(void **state)
{
    (void)state;

    static const struct {
        uint32_t line, col;
        sc_code code;
        const char *hint;
    } want[] = {
        {1, 1, SC_C_UNKNOWN_KEY, "did you mean \"bandwidth\"?"},
        {2, 9, SC_C_UNIT, "write 80GB (1e9 bytes) or 80GiB (2^30)"},
        {3, 8, SC_C_RANGE, "ratio is from 0 to 1"},
        {4, 6, SC_C_RANGE, "sms is at least 1"},
        {5, 7, SC_C_TYPE, "write it without quotes"},
        {6, 6, SC_C_TYPE, "write true or false"},
        {7, 7, SC_C_UNKNOWN_NAME, "did you mean tpu?"},
        {8, 8, SC_C_TYPE, NULL},
        {9, 1, SC_C_UNKNOWN_KEY, NULL},
        {1, 1, SC_C_MISSING, "its name"},
        {1, 1, SC_C_MISSING, NULL},
    };

    fixture f;
    assert_int_equal(read_text(&f, "bandwith: 50GB/s\n"
                                   "memory: 80\n"
                                   "ratio: 2\n"
                                   "sms: 0\n"
                                   "seed: \"8\"\n"
                                   "ecc: maybe\n"
                                   "kind: ttpu\n"
                                   "price: [1]\n"
                                   "xyzzy: 1\n"),
                     SC_EINPUT);
    assert_int_equal(f.err.n, SC_COUNT(want));
    for (size_t i = 0; i < SC_COUNT(want); i++) {
        const sc_diag *d = &f.err.d[i];
        assert_int_equal(d->code, want[i].code);
        assert_int_equal(d->line, want[i].line);
        assert_int_equal(d->col, want[i].col);
        assert_string_equal(d->file, "d.yml");
        assert_string_equal(d->hint, want[i].hint ? want[i].hint : "");
    }
    sc_arena_free(&f.a);
}

static void test_nothing_written_on_error(void **state)
{
    (void)state;
    fixture f;
    assert_int_equal(read_text(&f, "name: x\nsms: 5\nbandwidth: 0B/s\n"),
                     SC_EINPUT);
    assert_null(f.d.name);
    assert_true(f.d.sms == 7);
    assert_int_equal(f.given.bits[0], 0);
    assert_string_equal(f.err.d[0].hint, "bandwidth is from 1B/s to 1PB/s");
    sc_arena_free(&f.a);
}

static void test_not_a_map(void **state)
{
    (void)state;
    fixture f;
    assert_int_equal(read_text(&f, "- 1\n- 2\n"), SC_EINPUT);
    assert_int_equal(f.err.d[0].code, SC_C_TYPE);
    sc_arena_free(&f.a);
    assert_int_equal(read_text(&f, "just text\n"), SC_EINPUT);
    assert_int_equal(f.err.d[0].code, SC_C_TYPE);
    sc_arena_free(&f.a);
    assert_int_equal(read_text(&f, ""), SC_EINPUT); /* two keys missing */
    assert_int_equal(f.err.n, 2);
    assert_int_equal(f.err.d[1].code, SC_C_MISSING);
    sc_arena_free(&f.a);
    assert_int_equal(read_text(&f, "name: ~\nbandwidth: {a: 1}\n"), SC_EINPUT);
    assert_string_equal(f.err.d[0].msg, "name needs a value, this is nothing");
    assert_string_equal(f.err.d[1].msg,
                        "bandwidth needs a value, this is a mapping");
    sc_arena_free(&f.a);
}

static void test_int_limits(void **state)
{
    (void)state;

    static const struct {
        const char *text;
        sc_code code;
    } bad[] = {
        {"9223372036854775808", SC_C_RANGE},
        {"1e17", SC_C_RANGE},
        {"99999999999999999999999", SC_C_RANGE},
        {"1.5", SC_C_RANGE},
        {"8B", SC_C_UNIT},
        {"eight", SC_C_TYPE},
        {"nan", SC_C_RANGE},
        {"--5", SC_C_TYPE},
        {"", SC_C_TYPE},
        {"-", SC_C_TYPE},
    };

    fixture f = {.d.seed = 3};
    for (size_t i = 0; i < SC_COUNT(bad); i++) {
        sc_err_init(&f.err);
        assert_int_equal(sc_schema_set(&keys[6], bad[i].text, sc_pos_none(),
                                       &f.d, &f.a, &f.err),
                         SC_EINPUT);
        assert_int_equal(f.err.d[0].code, bad[i].code);
        assert_true(f.d.seed == 3);
    }
    assert_int_equal(sc_schema_set(&keys[6], "9223372036854775807",
                                   sc_pos_none(), &f.d, &f.a, NULL),
                     SC_OK);
    assert_true(f.d.seed == INT64_MAX);
}

static void test_defaults_and_print(void **state)
{
    (void)state;
    static const char *const want[] = {"x",     "0B/s", "80GiB", "0USD/s",
                                       "5%",    "108",  "0",     "true",
                                       "false", "gpu",  ""};
    fixture f = {.d.name = "x"};
    sc_arena_init(&f.a, 0);
    assert_int_equal(sc_schema_defaults(keys, &f.d, &f.a, NULL), SC_OK);
    for (size_t i = 0; keys[i].name != NULL; i++) {
        char buf[64];
        sc_schema_print(&keys[i], &f.d, buf, sizeof buf);
        assert_string_equal(buf, want[i]);
    }
    f.d.name = NULL;
    char buf[8] = "junk";
    sc_schema_print(&keys[0], &f.d, buf, sizeof buf);
    assert_string_equal(buf, "");
    sc_arena_free(&f.a);
}

static void test_bad_default(void **state)
{
    (void)state;
    static const sc_key bad[] = {{.name = "n", .type = SC_T_INT, .def = "x"},
                                 {.name = NULL}};
    sc_err err;
    int64_t target = 5;
    sc_err_init(&err);
    assert_int_equal(sc_schema_defaults(bad, &target, NULL, &err), SC_EINPUT);
    assert_true(target == 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tristate),
        cmocka_unit_test(test_read),
        cmocka_unit_test(test_read_json),
        cmocka_unit_test(test_all_errors_in_one_pass),
        cmocka_unit_test(test_nothing_written_on_error),
        cmocka_unit_test(test_not_a_map),
        cmocka_unit_test(test_int_limits),
        cmocka_unit_test(test_defaults_and_print),
        cmocka_unit_test(test_bad_default),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
