/* SPDX-License-Identifier: Apache-2.0 */
/* Units: parsing, printing, round trips, picoseconds. */
#include "base/units.h"
#include "property.h"
#include "unit.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void test_parse(void **state)
{
    (void)state;

    static const struct {
        const char *text;
        sc_unit unit;
        double want;
    } good[] = {
        {"0.5", SC_U_NONE, 0.5},
        {"5%", SC_U_NONE, 0.05},
        {" 5 % ", SC_U_NONE, 0.05},
        {".5", SC_U_NONE, 0.5},
        {"+1e-3", SC_U_NONE, 1e-3},
        {"16", SC_U_COUNT, 16},
        {"1.5K", SC_U_COUNT, 1500},
        {"2M", SC_U_COUNT, 2e6},
        {"1e3", SC_U_COUNT, 1000},
        {"80GiB", SC_U_BYTES, 80.0 * 1024 * 1024 * 1024},
        {"80 GB", SC_U_BYTES, 80e9},
        {"1kB", SC_U_BYTES, 1000},
        {"7B", SC_U_BYTES, 7},
        {"400Gb/s", SC_U_RATE, 50e9},
        {"50GB/s", SC_U_RATE, 50e9},
        {"1KiB/s", SC_U_RATE, 1024},
        {"8b/s", SC_U_RATE, 1},
        {"1.2us", SC_U_TIME, 1.2e-6},
        {"3ps", SC_U_TIME, 3e-12},
        {"0.1ms", SC_U_TIME, 1e-4},
        {"2min", SC_U_TIME, 120},
        {"1.5h", SC_U_TIME, 5400},
        {"2d", SC_U_TIME, 172800},
        {"-2s", SC_U_TIME, -2},
        {"312TFLOP/s", SC_U_FLOPS, 312e12},
        {"312TFLOPS", SC_U_FLOPS, 312e12},
        {"1EFLOP/s", SC_U_FLOPS, 1e18},
        {"1e2EFLOP/s", SC_U_FLOPS, 1e20},
        {"1ZFLOP", SC_U_FLOP, 1e21},
        {"1.41GHz", SC_U_HERTZ, 1.41e9},
        {"700W", SC_U_WATT, 700},
        {"10MW", SC_U_WATT, 1e7},
        {"10mW", SC_U_WATT, 1e-2},
        {"1kWh", SC_U_JOULE, 3.6e6},
        {"2MWh", SC_U_JOULE, 7.2e9},
        {"3USD", SC_U_USD, 3},
        {"0.36USD/kWh", SC_U_TARIFF, 1e-7},
        {"0.36kg/kWh", SC_U_CARBON, 1e-7},
        {"360g/kWh", SC_U_CARBON, 1e-7},
        {"$3", SC_U_USD, 3},
        {"2MUSD", SC_U_USD, 2e6},
        {"1.5 kUSD", SC_U_USD, 1500},
        {"3.6USD/h", SC_U_PRICE, 1e-3},
        {"$3.6/h", SC_U_PRICE, 1e-3},
    };

    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        double v = -1;
        sc_err err;
        sc_err_init(&err);
        sc_status s =
            sc_unit_parse(good[i].text, good[i].unit, sc_pos_none(), &v, &err);
        if (s != SC_OK || v != good[i].want)
            print_error("%s gives %.17g\n", good[i].text, v);
        assert_int_equal(s, SC_OK);
        assert_true(v == good[i].want);
    }
}

static void test_refuse(void **state)
{
    (void)state;

    static const struct {
        const char *text;
        sc_unit unit;
        sc_code code;
    } bad[] = {
        {"400", SC_U_RATE, SC_C_UNIT},
        {"0", SC_U_TIME, SC_C_UNIT},
        {"400Gbps", SC_U_RATE, SC_C_UNIT},
        {"400gb/s", SC_U_RATE, SC_C_UNIT},
        {"400GB", SC_U_RATE, SC_C_UNIT},
        {"80KB", SC_U_BYTES, SC_C_UNIT},
        {"80G", SC_U_BYTES, SC_C_UNIT},
        {"1.2uss", SC_U_TIME, SC_C_UNIT},
        {"1.2 u s", SC_U_TIME, SC_C_UNIT},
        {"1.2.3s", SC_U_TIME, SC_C_UNIT},
        {"0x10s", SC_U_TIME, SC_C_UNIT},
        {"1,000B", SC_U_BYTES, SC_C_UNIT},
        {"1e", SC_U_NONE, SC_C_UNIT},
        {"1e+", SC_U_NONE, SC_C_UNIT},
        {"5s", SC_U_NONE, SC_C_UNIT},
        {"5%%", SC_U_NONE, SC_C_UNIT},
        {"$3", SC_U_NONE, SC_C_TYPE},
        {"$ 3.5", SC_U_USD, SC_C_TYPE},
        {"$3USD", SC_U_USD, SC_C_UNIT},
        {"$3/h", SC_U_USD, SC_C_UNIT},
        {"3USD", SC_U_PRICE, SC_C_UNIT},
        {"GB", SC_U_BYTES, SC_C_TYPE},
        {"", SC_U_BYTES, SC_C_TYPE},
        {"   ", SC_U_NONE, SC_C_TYPE},
        {"-", SC_U_NONE, SC_C_TYPE},
        {".", SC_U_NONE, SC_C_TYPE},
        {"e5", SC_U_NONE, SC_C_TYPE},
        {"--5", SC_U_NONE, SC_C_TYPE},
        {"\xC2\xB5s", SC_U_TIME, SC_C_TYPE},
        {"nan", SC_U_NONE, SC_C_RANGE},
        {"NaN", SC_U_TIME, SC_C_RANGE},
        {"-inf", SC_U_NONE, SC_C_RANGE},
        {"Infinity", SC_U_BYTES, SC_C_RANGE},
        {".inf", SC_U_NONE, SC_C_RANGE},
        {"1e999", SC_U_NONE, SC_C_RANGE},
        {"1e300YFLOP", SC_U_FLOP, SC_C_RANGE},
        {"1e305d", SC_U_TIME, SC_C_RANGE},
        {"1e99999999999999999999s", SC_U_TIME, SC_C_RANGE},
        {"1.5", SC_U_COUNT, SC_C_RANGE},
        {"1.0001K", SC_U_COUNT, SC_C_RANGE},
    };

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        double v = 42;
        sc_err err;
        sc_err_init(&err);
        sc_pos pos = {"f.yml", 2, 5};
        sc_status s = sc_unit_parse(bad[i].text, bad[i].unit, pos, &v, &err);
        if (s != SC_EINPUT || err.d[0].code != bad[i].code)
            print_error("\"%s\": %d %s\n", bad[i].text, (int)s, err.d[0].msg);
        assert_int_equal(s, SC_EINPUT);
        assert_int_equal(err.n, 1);
        assert_int_equal(err.d[0].code, bad[i].code);
        assert_int_equal(err.d[0].line, 2);
        assert_true(v == 42);
    }
}

static void test_long_numbers(void **state)
{
    (void)state;
    char text[5000];
    double v = 42;
    memset(text, '9', sizeof text);
    memcpy(text + 4990, "s", 2);
    assert_int_equal(sc_unit_parse(text, SC_U_TIME, sc_pos_none(), &v, NULL),
                     SC_EINPUT);
    memcpy(text + 250, "s", 2);
    assert_int_equal(sc_unit_parse(text, SC_U_TIME, sc_pos_none(), &v, NULL),
                     SC_OK);
    assert_true(fabs(v / 1e250 - 1) < 1e-15);
    text[0] = '.';
    assert_int_equal(sc_unit_parse(text, SC_U_TIME, sc_pos_none(), &v, NULL),
                     SC_OK);
    assert_true(v == 1);
}

static void test_hints(void **state)
{
    (void)state;
    sc_err err;
    double v;
    sc_err_init(&err);
    sc_unit_parse("400", SC_U_RATE, sc_pos_none(), &v, &err);
    assert_string_equal(err.d[0].msg,
                        "\"400\" has no unit, a data rate needs one");
    assert_string_equal(err.d[0].hint,
                        "write 400GB/s (bytes) or 400Gb/s (bits)");
    sc_unit_parse("5 foo", SC_U_NONE, sc_pos_none(), &v, &err);
    assert_string_equal(err.d[1].msg, "\"foo\" is not a unit of a number");
    assert_string_equal(err.d[1].hint, "a number without unit, or 5%");
    sc_unit_parse("fast", SC_U_FLOPS, sc_pos_none(), &v, &err);
    assert_string_equal(err.d[2].hint, "write it like 312TFLOP/s");
}

static void test_examples(void **state)
{
    (void)state;
    for (int u = 0; u < SC_N_UNITS; u++) {
        double v;
        assert_true(strlen(sc_unit_name((sc_unit)u)) > 0);
        assert_int_equal(sc_unit_parse(sc_unit_example((sc_unit)u), (sc_unit)u,
                                       sc_pos_none(), &v, NULL),
                         SC_OK);
    }
}

static bool same(double a, double b)
{
    return a == b && (signbit(a) != 0) == (signbit(b) != 0);
}

static bool round_trip(prop *p, void *ctx)
{
    sc_unit unit = *(const sc_unit *)ctx;
    double v = prop_double(p), back = 0;
    char text[64] = "";
    if (unit == SC_U_COUNT) v = floor(v);
    sc_unit_print(v, unit, text, sizeof text);
    sc_status s = sc_unit_parse(text, unit, sc_pos_none(), &back, NULL);
    if (prop_reporting(p))
        print_error("%.17g prints as %s, back as %.17g\n", v, text, back);
    return s == SC_OK && same(v, back) && strlen(text) < 36;
}

static void test_round_trip(void **state)
{
    (void)state;
    for (int u = 0; u < SC_N_UNITS; u++) {
        sc_unit unit = (sc_unit)u;
        char name[64];
        snprintf(name, sizeof name, "%s survives printing", sc_unit_name(unit));
        assert_true(prop_check(name, 3000, round_trip, &unit));
    }
}

static bool double_round_trip(prop *p, void *ctx)
{
    (void)ctx;
    double v = prop_double(p);
    char text[64], shorter[400];
    sc_double_print(v, text, sizeof text);
    if (!same(strtod(text, NULL), v)) return false;
    /* no text with one digit less reads back */
    int digits = 0;
    for (const char *c = text; *c != '\0' && *c != 'e'; c++)
        digits += *c >= '0' && *c <= '9' && (digits > 0 || *c != '0');
    if (digits < 2 || fabs(v) >= 1e15 || v == floor(v)) return true;
    snprintf(shorter, sizeof shorter, "%.*g", digits - 1, v);
    return strtod(shorter, NULL) != v;
}

static void test_double_print(void **state)
{
    (void)state;

    static const struct {
        double v;
        const char *want;
    } cases[] = {
        {0, "0"},
        {-0.0, "-0"},
        {1, "1"},
        {0.1, "0.1"},
        {1e-7, "1e-7"},
        {1e22, "1e22"},
        {1.5e300, "1.5e300"},
        {5e-324, "5e-324"},
        {123456789, "123456789"},
        {1.0 / 3, "0.3333333333333333"},
        {-2.5, "-2.5"},
        {1e15, "1e15"},
        {999999999999999, "999999999999999"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char buf[64];
        sc_double_print(cases[i].v, buf, sizeof buf);
        assert_string_equal(buf, cases[i].want);
    }
    assert_true(
        prop_check("doubles survive printing", 20000, double_round_trip, NULL));
}

static void test_print(void **state)
{
    (void)state;

    static const struct {
        double v;
        sc_unit unit;
        const char *exact, *short_form;
    } cases[] = {
        {1.2e-6, SC_U_TIME, "1.2us", "1.20 us"},
        {34.1, SC_U_TIME, "34.1s", "34.1 s"},
        {0, SC_U_TIME, "0s", "0 s"},
        {90, SC_U_TIME, "90s", "90.0 s"},
        {7200, SC_U_TIME, "2h", "2.00 h"},
        {0.99999e-3, SC_U_TIME, "999990ns", "1.00 ms"},
        {999.4e-6, SC_U_TIME, "999.4us", "999 us"},
        {80.0 * 1073741824.0, SC_U_BYTES, "80GiB", "80.0 GiB"},
        {1000, SC_U_BYTES, "1kB", "1000 B"},
        {50e9, SC_U_RATE, "50GB/s", "50.0 GB/s"},
        {312e12, SC_U_FLOPS, "312TFLOP/s", "312 TFLOP/s"},
        {0.05, SC_U_NONE, "5%", "0.0500"},
        {12, SC_U_COUNT, "12", "12"},
        {1234567, SC_U_COUNT, "1234567", "1.23M"},
        {700, SC_U_WATT, "700W", "700 W"},
        {2.5 / 3600, SC_U_PRICE, "2.5USD/h", "2.50 USD/h"},
        {-3e-3, SC_U_TIME, "-3ms", "-3.00 ms"},
        {1e-15, SC_U_TIME, "1e-15s", "0.00100 ps"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char buf[64];
        sc_unit_print(cases[i].v, cases[i].unit, buf, sizeof buf);
        assert_string_equal(buf, cases[i].exact);
        sc_unit_print_short(cases[i].v, cases[i].unit, buf, sizeof buf);
        assert_string_equal(buf, cases[i].short_form);
    }
}

/* Numbers of one line in one unit: that of the second. */
static void test_print_like(void **state)
{
    (void)state;

    static const struct {
        double v, like;
        sc_unit unit;
        const char *text;
    } cases[] = {
        {100, 135.6, SC_U_TIME, "1.67 min"}, {198, 100, SC_U_TIME, "198 s"},
        {0.5, 100, SC_U_TIME, "0.500 s"},    {0, 100, SC_U_TIME, "0 s"},
        {1234, 12, SC_U_COUNT, "1234"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char buf[64];
        sc_unit_print_like(cases[i].v, cases[i].like, cases[i].unit, buf,
                           sizeof buf);
        assert_string_equal(buf, cases[i].text);
    }
}

/* A decimal comma in the locale changes nothing. */
static void test_locale(void **state)
{
    (void)state;
    static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8",
                                        "fr_FR.UTF-8", "de_DE"};
    bool found = false;
    for (size_t i = 0; i < 4 && !found; i++)
        found = setlocale(LC_NUMERIC, names[i]) != NULL;
    double v = 0;
    char buf[64];
    assert_int_equal(
        sc_unit_parse("1.25us", SC_U_TIME, sc_pos_none(), &v, NULL), SC_OK);
    assert_true(v == 1.25e-6);
    sc_double_print(0.5, buf, sizeof buf);
    assert_string_equal(buf, "0.5");
    sc_unit_print_short(0.5, SC_U_WATT, buf, sizeof buf);
    assert_string_equal(buf, "500 mW");
    sc_unit_print_short(1.5, SC_U_WATT, buf, sizeof buf);
    assert_string_equal(buf, "1.50 W");
    setlocale(LC_NUMERIC, "C");
    if (!found) print_message("no locale with a decimal comma here\n");
}

static bool time_is_rounded_up(prop *p, void *ctx)
{
    (void)ctx;
    double s = fabs(prop_double(p));
    sc_time t = sc_time_from_s(s);
    if (s >= 9223372.1) return t == SC_TIME_MAX || s < 9223372.2;
    double ps = s * 1e12, slack = ps * 0x1p-50;
    return (double)t >= ps - slack && (double)t <= ps + 1 + slack;
}

static bool time_round_trip(prop *p, void *ctx)
{
    (void)ctx;
    sc_time t = (sc_time)prop_below(p, (uint64_t)1 << 50);
    return sc_time_from_s(sc_time_to_s(t)) == t;
}

static void test_time(void **state)
{
    (void)state;
    assert_int_equal(sc_time_from_s(1), SC_PS_PER_S);
    assert_int_equal(sc_time_from_s(1.2e-6), 1200000);
    assert_int_equal(sc_time_from_s(1e-12), 1);
    assert_int_equal(sc_time_from_s(1.1e-12), 2);
    assert_int_equal(sc_time_from_s(1e-30), 1);
    assert_int_equal(sc_time_from_s(0), 0);
    assert_int_equal(sc_time_from_s(-1), 0);
    assert_int_equal(sc_time_from_s((double)NAN), 0);
    assert_int_equal(sc_time_from_s((double)INFINITY), SC_TIME_MAX);
    assert_int_equal(sc_time_from_s(1e9), SC_TIME_MAX);
    assert_true(
        prop_check("seconds are rounded up", 20000, time_is_rounded_up, NULL));
    assert_true(
        prop_check("picoseconds survive", 20000, time_round_trip, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse),        cmocka_unit_test(test_refuse),
        cmocka_unit_test(test_long_numbers), cmocka_unit_test(test_hints),
        cmocka_unit_test(test_examples),     cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_double_print), cmocka_unit_test(test_print),
        cmocka_unit_test(test_print_like),   cmocka_unit_test(test_locale),
        cmocka_unit_test(test_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
