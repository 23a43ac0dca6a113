/* SPDX-License-Identifier: Apache-2.0 */
/* access.c - reads and writes distributions of look-ups over rows. */
#include "model/model_access.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_EXPONENT 4.0
#define MAX_LOOKUPS  1e15
#define SUM_ERROR    0.03 /* 17 fractions of three digits, rounded */

static const char forms[] =
    "write uniform, \"zipf 1.05\" or \"reuse 887017: 0.07 0.04 ...\"";

static sc_status wrong(sc_err *err, sc_pos pos, const char *text)
{
    return sc_error(err, SC_EINPUT, SC_C_TYPE, pos, forms,
                    "\"%.60s\" is not a distribution of look-ups", text);
}

/* A plain number at `*at`, which moves behind it and the blanks that follow. */
static bool number(const char **at, double *out)
{
    static const char allowed[] = "0123456789.eE+-";
    char digits[40];
    size_t n = strspn(*at, allowed);
    if (n == 0 || n >= sizeof digits) return false;
    memcpy(digits, *at, n);
    digits[n] = '\0';
    sc_err none;
    sc_err_init(&none);
    if (sc_unit_parse(digits, SC_U_NONE, sc_pos_none(), out, &none) != SC_OK)
        return false;
    *at += n;
    *at += strspn(*at, " \t");
    return true;
}

static const char *behind_word(const char *text, const char *word)
{
    size_t n = strlen(word);
    if (strncmp(text, word, n) != 0) return NULL;
    if (text[n] != ' ' && text[n] != '\t') return NULL;
    return text + n + strspn(text + n, " \t");
}

static sc_status read_reuse(const char *at, sc_pos pos, sc_access *out,
                            sc_err *err)
{
    const char *text = at;
    sc_access x = {.kind = SC_ACCESS_REUSE};
    double sum = 0;
    uint32_t n = 0;
    if (!number(&at, &x.lookups) || *at != ':') return wrong(err, pos, text);
    at++;
    at += strspn(at, " \t");
    for (; *at && n < SC_REUSE_BINS; n++) {
        if (!number(&at, &x.fraction[n])) return wrong(err, pos, at);
        if (x.fraction[n] < 0 || x.fraction[n] > 1)
            return sc_error(err, SC_EINPUT, SC_C_RANGE, pos, NULL,
                            "the fraction of bin %u is not between 0 and 1",
                            (unsigned)n + 1);
        sum += x.fraction[n];
    }
    if (*at)
        return sc_error(err, SC_EINPUT, SC_C_RANGE, pos,
                        "the last bin is that of reuse factors above 32768",
                        "more than %d fractions", SC_REUSE_BINS);
    if (!(x.lookups >= 1) || x.lookups > MAX_LOOKUPS)
        return sc_error(err, SC_EINPUT, SC_C_RANGE, pos, NULL,
                        "a batch has 1 to 1e15 look-ups");
    if (fabs(sum - 1) > SUM_ERROR)
        return sc_error(err, SC_EINPUT, SC_C_RANGE, pos,
                        "they are fractions of all look-ups",
                        "the fractions add up to %.4g, not to 1", sum);
    for (n = 0; n < SC_REUSE_BINS; n++) x.fraction[n] /= sum;
    *out = x;
    return SC_OK;
}

sc_status sc_access_read(const char *text, sc_pos pos, sc_access *out,
                         sc_err *err)
{
    const char *at = behind_word(text, "zipf");
    if (strcmp(text, "uniform") == 0) {
        *out = (sc_access){.kind = SC_ACCESS_UNIFORM};
        return SC_OK;
    }
    if (at) {
        sc_access x = {.kind = SC_ACCESS_ZIPF};
        if (!number(&at, &x.exponent) || *at) return wrong(err, pos, text);
        if (x.exponent < 0 || x.exponent > MAX_EXPONENT)
            return sc_error(err, SC_EINPUT, SC_C_RANGE, pos, NULL,
                            "the exponent is not between 0 and %g",
                            MAX_EXPONENT);
        *out = x;
        return SC_OK;
    }
    at = behind_word(text, "reuse");
    return at ? read_reuse(at, pos, out, err) : wrong(err, pos, text);
}

/* ---- from row numbers */

static int by_number(const void *x, const void *y)
{
    uint64_t a = *(const uint64_t *)x, b = *(const uint64_t *)y;
    return (a > b) - (a < b);
}

static uint32_t bin_of(uint64_t reuse)
{
    uint32_t bin = 0;
    while (bin + 1 < SC_REUSE_BINS && reuse > (uint64_t)1 << bin) bin++;
    return bin;
}

static bool separates(char c)
{
    return c == ' ' || c == '\t' || c == ',' || c == '\n' || c == '\r';
}

/* Row numbers of the text; a wrong character is reported at its line. */
static sc_status read_indices(const char *text, size_t len, const char *file,
                              uint64_t *row, size_t *n, sc_err *err)
{
    uint32_t line = 1, col = 1;
    bool inside = false;
    for (size_t i = 0; i < len; i++, col++) {
        char c = text[i];
        bool digit = c >= '0' && c <= '9';
        if (digit && !inside) row[(*n)++] = 0;
        if (digit && row[*n - 1] > UINT64_MAX / 16)
            return sc_error(err, SC_EINPUT, SC_C_RANGE,
                            (sc_pos){file, line, col}, NULL,
                            "a row number is too large");
        if (digit) row[*n - 1] = row[*n - 1] * 10 + (uint64_t)(c - '0');
        inside = digit;
        if (digit) continue;
        if (!separates(c))
            return sc_error(err, SC_EINPUT, SC_C_SYNTAX,
                            (sc_pos){file, line, col},
                            "one row number per look-up, as in 17 4 17",
                            "this is not a row number");
        if (c == '\n') line++, col = 0;
    }
    return SC_OK;
}

sc_status sc_access_of_indices(const char *text, size_t len, const char *file,
                               sc_arena *a, sc_access *out, sc_err *err)
{
    size_t n = 0;
    uint64_t *row = SC_NEW_N(a, uint64_t, len / 2 + 1);
    if (!row) return sc_error_nomem(err);
    SC_TRY(read_indices(text, len, file, row, &n, err));
    if (n == 0)
        return sc_error(err, SC_EINPUT, SC_C_MISSING, (sc_pos){file, 1, 1},
                        "one row number per look-up",
                        "there are no row numbers");
    qsort(row, n, sizeof *row, by_number);
    sc_access x = {.kind = SC_ACCESS_REUSE, .lookups = (double)n};
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && row[end] == row[i];) end++;
        x.fraction[bin_of(end - i)] += (double)(end - i) / (double)n;
    }
    *out = x;
    return SC_OK;
}

/* ---- writing */

void sc_access_print(const sc_access *x, sc_text *out)
{
    uint32_t n = SC_REUSE_BINS;
    switch (x->kind) {
    case SC_ACCESS_UNIFORM: sc_text_add(out, "uniform"); return;
    case SC_ACCESS_ZIPF: sc_text_add(out, "zipf %.17g", x->exponent); return;
    case SC_ACCESS_REUSE: break;
    }
    while (n > 1 && x->fraction[n - 1] == 0) n--;
    sc_text_add(out, "reuse %.17g:", x->lookups);
    for (uint32_t i = 0; i < n; i++) sc_text_add(out, " %.6g", x->fraction[i]);
}

uint64_t sc_access_hash(const sc_access *x)
{
    uint64_t h = sc_hash(&x->exponent, sizeof x->exponent, x->kind);
    h = sc_hash(&x->lookups, sizeof x->lookups, h);
    return sc_hash(x->fraction, sizeof x->fraction, h);
}
