/* SPDX-License-Identifier: Apache-2.0 */
/*
 * units.c - quantities as people write them.
 *
 * A decimal prefix is folded into the exponent of the number before it is
 * converted, so "1.2us" is exactly the double nearest to 1.2e-6.  Other
 * factors (2^10, 3600, 1/8) are applied afterwards, in one operation.
 */
#include "base/units.h"

#include "base/number.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct suffix {
    const char *text;
    int exp10;       /* decimal prefix */
    double mul, div; /* further factor; at most one differs from 1 */

    enum { PARSED, EXACT, SHOWN } use; /* printed at all; by print_short */
} suffix;

typedef struct kind {
    const char *name, *example, *hint; /* hint: suffixes for a bare number */
    const suffix *suffixes;            /* ascending; ends with NULL text */
    const char *base;                  /* suffix of the base unit */
} kind;

/* Ends of a row: mul, div, use. */
#define SHORT 1, 1, SHOWN
#define FULL  1, 1, EXACT
#define ALIAS 1, 1, PARSED
#define BITS  1, 8, EXACT
#define END   NULL, 0, 1, 1, PARSED
#define KIB   1024.0
#define MIB   (1024.0 * KIB)
#define GIB   (1024.0 * MIB)
#define TIB   (1024.0 * GIB)
#define PIB   (1024.0 * TIB)

static const suffix none[] = {{"", 0, SHORT}, {"%", -2, FULL}, {END}};
static const suffix count[] = {{"", 0, SHORT},
                               {"k", 3, ALIAS},
                               {"K", 3, SHORT},
                               {"M", 6, SHORT},
                               {"G", 9, SHORT},
                               {"T", 12, SHORT},
                               {END}};
static const suffix bytes[] = {{"B", 0, SHORT},           {"kB", 3, FULL},
                               {"KiB", 0, KIB, 1, SHOWN}, {"MB", 6, FULL},
                               {"MiB", 0, MIB, 1, SHOWN}, {"GB", 9, FULL},
                               {"GiB", 0, GIB, 1, SHOWN}, {"TB", 12, FULL},
                               {"TiB", 0, TIB, 1, SHOWN}, {"PB", 15, FULL},
                               {"PiB", 0, PIB, 1, SHOWN}, {END}};
static const suffix rate[] = {{"b/s", 0, BITS},
                              {"B/s", 0, SHORT},
                              {"kb/s", 3, BITS},
                              {"kB/s", 3, SHORT},
                              {"KiB/s", 0, KIB, 1, EXACT},
                              {"Mb/s", 6, BITS},
                              {"MB/s", 6, SHORT},
                              {"MiB/s", 0, MIB, 1, EXACT},
                              {"Gb/s", 9, BITS},
                              {"GB/s", 9, SHORT},
                              {"GiB/s", 0, GIB, 1, EXACT},
                              {"Tb/s", 12, BITS},
                              {"TB/s", 12, SHORT},
                              {"TiB/s", 0, TIB, 1, EXACT},
                              {"PB/s", 15, SHORT},
                              {END}};
static const suffix time_[] = {{"ps", -12, SHORT},
                               {"ns", -9, SHORT},
                               {"us", -6, SHORT},
                               {"ms", -3, SHORT},
                               {"s", 0, SHORT},
                               {"min", 0, 60, 1, SHOWN},
                               {"h", 0, 3600, 1, SHOWN},
                               {"d", 0, 86400, 1, SHOWN},
                               {END}};
static const suffix flops[] = {{"FLOP/s", 0, SHORT},
                               {"FLOPS", 0, ALIAS},
                               {"kFLOP/s", 3, SHORT},
                               {"kFLOPS", 3, ALIAS},
                               {"MFLOP/s", 6, SHORT},
                               {"MFLOPS", 6, ALIAS},
                               {"GFLOP/s", 9, SHORT},
                               {"GFLOPS", 9, ALIAS},
                               {"TFLOP/s", 12, SHORT},
                               {"TFLOPS", 12, ALIAS},
                               {"PFLOP/s", 15, SHORT},
                               {"PFLOPS", 15, ALIAS},
                               {"EFLOP/s", 18, SHORT},
                               {"EFLOPS", 18, ALIAS},
                               {"ZFLOP/s", 21, SHORT},
                               {"ZFLOPS", 21, ALIAS},
                               {END}};
static const suffix flop[] = {{"FLOP", 0, SHORT},   {"kFLOP", 3, SHORT},
                              {"MFLOP", 6, SHORT},  {"GFLOP", 9, SHORT},
                              {"TFLOP", 12, SHORT}, {"PFLOP", 15, SHORT},
                              {"EFLOP", 18, SHORT}, {"ZFLOP", 21, SHORT},
                              {"YFLOP", 24, SHORT}, {END}};
static const suffix hertz[] = {{"Hz", 0, SHORT},
                               {"kHz", 3, SHORT},
                               {"MHz", 6, SHORT},
                               {"GHz", 9, SHORT},
                               {END}};
static const suffix watt[] = {{"mW", -3, SHORT}, {"W", 0, SHORT},
                              {"kW", 3, SHORT},  {"MW", 6, SHORT},
                              {"GW", 9, SHORT},  {END}};
static const suffix joule[] = {
    {"mJ", -3, SHORT},          {"J", 0, SHORT},
    {"kJ", 3, SHORT},           {"Wh", 0, 3600, 1, EXACT},
    {"kWh", 3, 3600, 1, EXACT}, {"MJ", 6, SHORT},
    {"MWh", 6, 3600, 1, EXACT}, {"GJ", 9, SHORT},
    {"TJ", 12, SHORT},          {END}};
static const suffix usd[] = {{"USD", 0, SHORT},
                             {"kUSD", 3, ALIAS},
                             {"MUSD", 6, ALIAS},
                             {"GUSD", 9, ALIAS},
                             {END}};
static const suffix price[] = {
    {"USD/h", 0, 1, 3600, SHOWN}, {"USD/s", 0, FULL}, {END}};

static const suffix tariff[] = {
    {"USD/kWh", 0, 1, 3600000, SHOWN}, {"USD/J", 0, FULL}, {END}};
static const suffix carbon[] = {{"kg/kWh", 0, 1, 3600000, SHOWN},
                                {"g/kWh", -3, 1, 3600000, PARSED},
                                {"kg/J", 0, FULL},
                                {END}};

/* hint: a %s for each place of the number */
static const kind kinds[SC_N_UNITS] = {
    [SC_U_NONE] = {"number", "0.5", "a number without unit, or %s%%", none, ""},
    [SC_U_COUNT] = {"count", "16", "a whole number, or %sK (1e3), %sM (1e6)",
                    count, ""},
    [SC_U_BYTES] = {"size", "80GiB", "write %sGB (1e9 bytes) or %sGiB (2^30)",
                    bytes, "B"},
    [SC_U_RATE] = {"data rate", "400Gb/s",
                   "write %sGB/s (bytes) or %sGb/s (bits)", rate, "B/s"},
    [SC_U_TIME] = {"time", "1.2us", "write %sus, %sms or %ss", time_, "s"},
    [SC_U_FLOPS] = {"compute rate", "312TFLOP/s", "write %sTFLOP/s", flops,
                    "FLOP/s"},
    [SC_U_FLOP] = {"compute work", "2.5PFLOP", "write %sGFLOP or %sTFLOP", flop,
                   "FLOP"},
    [SC_U_HERTZ] = {"frequency", "1.41GHz", "write %sMHz or %sGHz", hertz,
                    "Hz"},
    [SC_U_WATT] = {"power", "700W", "write %sW or %skW", watt, "W"},
    [SC_U_JOULE] = {"energy", "3.6kJ", "write %sJ or %skWh", joule, "J"},
    [SC_U_USD] = {"sum of money", "3USD", "write %sUSD", usd, "USD"},
    [SC_U_PRICE] = {"price", "2.5USD/h", "write %sUSD/h", price, "USD/s"},
    [SC_U_TARIFF] = {"price of energy", "0.08USD/kWh", "write %sUSD/kWh",
                     tariff, "USD/J"},
    [SC_U_CARBON] = {"carbon intensity", "0.4kg/kWh", "write %skg/kWh", carbon,
                     "kg/J"},
};

const char *sc_unit_name(sc_unit unit)
{
    return (unsigned)unit < SC_N_UNITS ? kinds[unit].name : "";
}

const char *sc_unit_example(sc_unit unit)
{
    return (unsigned)unit < SC_N_UNITS ? kinds[unit].example : "";
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* With `money` the suffix is read as if "USD" preceded it ("$2.5/h"). */
static const suffix *find_suffix(const kind *k, const char *text, size_t len,
                                 bool money)
{
    for (const suffix *s = k->suffixes; s->text != NULL; s++) {
        const char *want = s->text;
        if (money && strncmp(want, "USD", 3) != 0) continue;
        if (money) want += 3;
        if (strlen(want) == len && memcmp(want, text, len) == 0) return s;
    }
    return NULL;
}

static bool is_not_finite_word(const char *s, size_t len)
{
    static const char *const words[] = {"nan",  "inf",  "infinity",
                                        ".nan", ".inf", NULL};
    if (len > 0 && (*s == '+' || *s == '-')) s++, len--;
    for (const char *const *w = words; *w != NULL; w++) {
        size_t i = 0;
        while (i < len && tolower((unsigned char)s[i]) == (*w)[i]) i++;
        if (i == len && (*w)[i] == '\0') return true;
    }
    return false;
}

static sc_status bad_unit(const kind *k, const char *number, size_t n_number,
                          const char *word, size_t n_word, sc_pos pos,
                          sc_err *err)
{
    char num[40], hint[200];
    snprintf(num, sizeof num, "%.*s", n_number < 32 ? (int)n_number : 32,
             number);
    size_t at = 0;
    for (const char *f = k->hint; *f != '\0' && at + 1 < sizeof hint; f++) {
        const char *put = f[0] == '%' && f[1] == 's' ? num : NULL;
        int n = snprintf(hint + at, sizeof hint - at, "%.*s",
                         put == NULL ? 1 : 40, put == NULL ? f : put);
        at += n < 0 ? 0 : (size_t)n;
        f += f[0] == '%'; /* %s and %% are two characters */
    }
    if (n_word == 0)
        return sc_error(err, SC_EINPUT, SC_C_UNIT, pos, hint,
                        "\"%s\" has no unit, a %s needs one", num, k->name);
    return sc_error(err, SC_EINPUT, SC_C_UNIT, pos, hint,
                    "\"%.*s\" is not a unit of a %s",
                    n_word < 32 ? (int)n_word : 32, word, k->name);
}

static sc_status not_number(const kind *k, const char *s, size_t len,
                            sc_pos pos, sc_err *err)
{
    char hint[64];
    int show = len < 48 ? (int)len : 48;
    if (is_not_finite_word(s, len))
        return sc_error(err, SC_EINPUT, SC_C_RANGE, pos,
                        "only finite numbers are legal",
                        "\"%.*s\" is not a finite number", show, s);
    snprintf(hint, sizeof hint, "write it like %s", k->example);
    return sc_error(err, SC_EINPUT, SC_C_TYPE, pos, hint,
                    "\"%.*s\" is not a %s", show, s, k->name);
}

/* Checks a value whose text is well-formed. */
static sc_status check_value(double v, sc_unit unit, const char *s, size_t len,
                             sc_pos pos, sc_err *err)
{
    int show = len < 48 ? (int)len : 48;
    if (!isfinite(v))
        return sc_error(err, SC_EINPUT, SC_C_RANGE, pos,
                        "only finite numbers are legal",
                        "\"%.*s\" is too large a number", show, s);
    if (unit == SC_U_COUNT && v != floor(v))
        return sc_error(err, SC_EINPUT, SC_C_RANGE, pos, NULL,
                        "\"%.*s\" is not a whole number", show, s);
    return SC_OK;
}

sc_status sc_unit_parse(const char *text, sc_unit unit, sc_pos pos, double *out,
                        sc_err *err)
{
    const kind *k = &kinds[unit];
    const char *s = text, *end = text + strlen(text);
    while (is_blank(*s)) s++;
    while (end > s && is_blank(end[-1])) end--;
    const char *start = s;
    size_t len = (size_t)(end - s);
    bool money = *s == '$' && (unit == SC_U_USD || unit == SC_U_PRICE);
    if (money) s++;
    size_t n = number_span(s);
    if (n == 0) return not_number(k, start, len, pos, err);
    const char *word = s + n;
    while (word < end && is_blank(*word)) word++;
    size_t n_word = (size_t)(end - word);
    const suffix *f = find_suffix(k, word, n_word, money);
    if (f == NULL) return bad_unit(k, s, n, word, n_word, pos, err);
    double v = number_scaled(s, n, f->exp10) * f->mul / f->div;
    SC_TRY(check_value(v, unit, start, len, pos, err));
    *out = v;
    return SC_OK;
}

/* The shortest number that gives `value` with suffix `f`; false if there is
 * none of at most 17 digits. */
static bool print_as(double value, const suffix *f, char *buf, size_t size)
{
    double x = number_shift(value / f->mul * f->div, -f->exp10);
    if (!isfinite(x)) return false;
    for (int digits = 15; digits <= 17; digits++) {
        number_print(x, digits, buf, size);
        double back = number_scaled(buf, strlen(buf), f->exp10);
        back = back * f->mul / f->div;
        if (back == value) return true;
    }
    return false;
}

void sc_unit_print(double value, sc_unit unit, char *buf, size_t size)
{
    const kind *k = &kinds[unit];
    char best[64] = "", num[40];
    for (const suffix *f = k->suffixes; f->text != NULL; f++) {
        if (f->use == PARSED) continue;
        bool base = strcmp(f->text, k->base) == 0;
        if (base)
            sc_double_print(value, num, sizeof num);
        else if (value == 0 || !print_as(value, f, num, sizeof num))
            continue;
        size_t len = strlen(num) + strlen(f->text);
        size_t least = strlen(best);
        if (least == 0 || len < least || (base && len == least))
            snprintf(best, sizeof best, "%s%s", num, f->text);
    }
    snprintf(buf, size, "%s", best);
}

static void print_three(double x, const char *gap, const char *unit, char *buf,
                        size_t size)
{
    char num[40];
    double abs = fabs(x);
    if (abs >= 999.5 || x == 0)
        snprintf(num, sizeof num, "%.0f", x);
    else
        snprintf(num, sizeof num, "%#.3g", x);
    number_fix_radix(num);
    size_t n = strlen(num);
    if (n > 0 && num[n - 1] == '.') num[n - 1] = '\0';
    snprintf(buf, size, "%s%s%s", num, gap, unit);
}

/* The suffix that leaves one to three digits before the point. */
static const suffix *suffix_for(double value, sc_unit unit)
{
    const suffix *pick =
        kinds[unit].suffixes; /* the smallest one that is shown */
    while (pick->use != SHOWN) pick++;
    for (const suffix *f = pick + 1; f->text != NULL; f++) {
        if (f->use != SHOWN) continue;
        double scale = f->mul / f->div * pow(10, f->exp10);
        /* 90 s reads better than 1.50 min */
        double from = unit == SC_U_TIME && f->mul != 1 ? 2 : 0.9995;
        if (fabs(value) >= from * scale) pick = f;
    }
    return pick;
}

void sc_unit_print_like(double value, double like, sc_unit unit, char *buf,
                        size_t size)
{
    const suffix *f = suffix_for(like, unit);
    bool bare = unit == SC_U_COUNT || unit == SC_U_NONE;
    const char *gap = bare ? "" : " ";
    if (value == 0) {
        snprintf(buf, size, "0%s%s", gap, kinds[unit].base);
    } else if (unit == SC_U_COUNT && fabs(like) < 999.5) {
        snprintf(buf, size, "%.0f", value);
    } else {
        double x = number_shift(value / f->mul * f->div, -f->exp10);
        print_three(x, gap, f->text, buf, size);
    }
}

void sc_unit_print_short(double value, sc_unit unit, char *buf, size_t size)
{
    sc_unit_print_like(value, value, unit, buf, size);
}

sc_time sc_time_from_s(double seconds)
{
    double ps = seconds * (double)SC_PS_PER_S;
    if (!(ps > 0)) return 0;
    if (ps >= 9223372036854775807.0) return SC_TIME_MAX;
    double whole = nearbyint(ps);
    /* a whole number of ps before it was rounded to a double */
    if (fabs(ps - whole) <= ps * 0x1p-51 && whole > 0) return (sc_time)whole;
    return (sc_time)ceil(ps);
}

double sc_time_to_s(sc_time t)
{
    return (double)t / (double)SC_PS_PER_S;
}
