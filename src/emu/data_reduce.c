/* SPDX-License-Identifier: Apache-2.0 */
/*
 * data_reduce.c - reductions in which most contributions are emulated.
 *
 * Rank k of n has the data of real[k % n_real], so each real buffer is weighted
 * by a count and the cost does not depend on n. The noise of several peers is
 * drawn as one number of the same distribution: that of their sum, or of their
 * largest.
 */
#include "emu/data.h"

#include <math.h>
#include <string.h>

/* One reduction. */
typedef struct sum {
    sc_emu_data *d;
    const void *const *real;
    uint32_t n_real, n;
    size_t count;
    sc_emu_type type;
    sc_emu_reduce op;
    void *out;
    /* standard deviation of the noise of a sum; of one peer for largest and
     * smallest */
    double amount;
} sum;

/* The number of ranks that have the data of real[i], including itself. */
static uint32_t times(const sum *s, uint32_t i)
{
    return s->n / s->n_real + (i < s->n % s->n_real);
}

static bool exists(sc_emu_type t, sc_emu_reduce op)
{
    bool bits = op == SC_EMU_BAND || op == SC_EMU_BOR || op == SC_EMU_BXOR;
    bool logic = op == SC_EMU_LAND || op == SC_EMU_LOR || op == SC_EMU_LXOR;
    if (t >= SC_N_EMU_TYPES || op >= SC_N_EMU_REDUCES) return false;
    if (t == SC_EMU_BYTES) return bits;
    return !data_is_float(t) || !(bits || logic);
}

/* ---- floating types ------------------------------------------------------ */

static double power(double x, uint32_t n)
{
    double y = 1;
    for (; n != 0; n >>= 1) {
        if (n & 1) y *= x;
        x *= x;
    }
    return y;
}

/* The largest (or smallest) elements of the emulated ranks that mirror
 * real[i]. */
static void reach(const sum *s, uint32_t i, double *x, size_t n)
{
    uint32_t peers = times(s, i) - 1;
    double sign = s->op == SC_EMU_MAX ? s->amount : -s->amount;
    for (size_t k = 0; peers != 0 && k < n; k++) {
        double far = data_normal_max(&s->d->state, peers);
        if (far > 0) x[k] += sign * far;
    }
}

static void fold_float(const sum *s, uint32_t i, const double *x, size_t n,
                       double *to)
{
    uint32_t c = times(s, i);
    switch (s->op) {
    case SC_EMU_PROD:
        for (size_t k = 0; k < n; k++)
            to[k] = (i == 0 ? 1 : to[k]) * power(x[k], c);
        break;
    case SC_EMU_MIN:
        for (size_t k = 0; k < n; k++)
            to[k] = i == 0 || x[k] < to[k] || isnan(x[k]) ? x[k] : to[k];
        break;
    case SC_EMU_MAX:
        for (size_t k = 0; k < n; k++)
            to[k] = i == 0 || x[k] > to[k] || isnan(x[k]) ? x[k] : to[k];
        break;
    default: /* sum, mean */
        for (size_t k = 0; k < n; k++)
            to[k] = (i == 0 ? 0 : to[k]) + (double)c * x[k];
    }
}

static void reduce_float(const sum *s)
{
    double x[DATA_BLOCK], to[DATA_BLOCK] = {0};
    bool ends = s->op == SC_EMU_MIN || s->op == SC_EMU_MAX;
    for (size_t at = 0; at < s->count; at += DATA_BLOCK) {
        size_t n = s->count - at < DATA_BLOCK ? s->count - at : DATA_BLOCK;
        for (uint32_t i = 0; i < s->n_real; i++) {
            data_load_float(s->type, s->real[i], at, n, x);
            if (s->amount > 0 && ends) reach(s, i, x, n);
            fold_float(s, i, x, n, to);
        }
        if (s->amount > 0 && !ends)
            data_add_noise(to, n, s->amount, &s->d->state);
        if (s->op == SC_EMU_AVG)
            for (size_t k = 0; k < n; k++) to[k] /= (double)s->n;
        data_store_float(s->type, s->out, at, n, to);
    }
}

/* ---- the others ---------------------------------------------------------- */

static uint64_t power_int(uint64_t x, uint32_t n)
{
    uint64_t y = 1;
    for (; n != 0; n >>= 1, x *= x)
        if (n & 1) y *= x;
    return y;
}

static bool below(const sum *s, uint64_t x, uint64_t y)
{
    return data_is_signed(s->type) ? (int64_t)x < (int64_t)y : x < y;
}

static uint64_t fold_int(const sum *s, uint64_t y, uint64_t x, uint32_t c)
{
    switch (s->op) {
    case SC_EMU_PROD: return y * power_int(x, c);
    case SC_EMU_MIN: return below(s, x, y) ? x : y;
    case SC_EMU_MAX: return below(s, y, x) ? x : y;
    case SC_EMU_BAND: return y & x;
    case SC_EMU_BOR: return y | x;
    case SC_EMU_BXOR: return y ^ (c & 1 ? x : 0);
    case SC_EMU_LAND: return y && x;
    case SC_EMU_LOR: return y || x;
    case SC_EMU_LXOR: return y ^ (c & 1 & (x != 0));
    default: return y + x * c;
    }
}

/* The initial values, before the first contribution. */
static uint64_t neutral(sc_emu_reduce op, uint64_t first)
{
    switch (op) {
    case SC_EMU_MIN:
    case SC_EMU_MAX: return first;
    case SC_EMU_BAND: return UINT64_MAX;
    case SC_EMU_PROD:
    case SC_EMU_LAND: return 1;
    default: return 0;
    }
}

static uint64_t mean(const sum *s, uint64_t x)
{
    if (data_is_signed(s->type)) return (uint64_t)((int64_t)x / (int64_t)s->n);
    return x / s->n;
}

static void reduce_int(const sum *s)
{
    uint64_t x[DATA_BLOCK], to[DATA_BLOCK];
    for (size_t at = 0; at < s->count; at += DATA_BLOCK) {
        size_t n = s->count - at < DATA_BLOCK ? s->count - at : DATA_BLOCK;
        for (uint32_t i = 0; i < s->n_real; i++) {
            uint32_t c = times(s, i);
            data_load_int(s->type, s->real[i], at, n, x);
            for (size_t k = 0; i == 0 && k < n; k++)
                to[k] = neutral(s->op, x[k]);
            for (size_t k = 0; k < n; k++) to[k] = fold_int(s, to[k], x[k], c);
        }
        if (s->op == SC_EMU_AVG)
            for (size_t k = 0; k < n; k++) to[k] = mean(s, to[k]);
        data_store_int(s->type, s->out, at, n, to);
    }
}

/* ---- both ---------------------------------------------------------------- */

/* The case in which all contributions are equal and without noise: at most one
 * pass. */
static bool shortcut(const sum *s)
{
    sc_emu_reduce op = s->op;
    if (s->n == 1 ||
        (s->n_real == 1 && !(s->amount > 0) &&
         (op == SC_EMU_MIN || op == SC_EMU_MAX || op == SC_EMU_AVG ||
          op == SC_EMU_BAND || op == SC_EMU_BOR))) {
        if (s->out != s->real[0])
            memmove(s->out, s->real[0], s->count * sc_emu_type_size(s->type));
        return true;
    }
    if (s->n_real != 1 || s->amount > 0 || s->type != SC_EMU_F32 ||
        op != SC_EMU_SUM || s->n >= 1u << 24)
        return false;
    const float *x = s->real[0];
    float *y = s->out, c = (float)s->n;
    for (size_t i = 0; i < s->count; i++) y[i] = c * x[i];
    return true;
}

/* Independent numbers of variances sigma^2 s^2, one per emulated rank, sum to
 * one of the sum of their variances. */
static double amount(const sum *s)
{
    double var = 0, emulated = (double)(s->n - s->n_real);
    for (uint32_t i = 0; i < s->n_real; i++) {
        double spread = data_spread(s->type, s->real[i], s->count);
        var += spread * spread * (double)(times(s, i) - 1);
    }
    if (s->op == SC_EMU_MIN || s->op == SC_EMU_MAX) var /= emulated;
    return s->d->sigma * sqrt(var);
}

bool sc_emu_data_reduce(sc_emu_data *d, const void *const *real,
                        uint32_t n_real, uint32_t n, size_t count,
                        sc_emu_type type, sc_emu_reduce op, void *out)
{
    sum s = {d, real, n_real, n, count, type, op, out, 0};
    if (!exists(type, op) || n_real == 0 || n < n_real) return false;
    if (d->kind == SC_EMU_DATA_NONE) return true;
    if (d->kind == SC_EMU_DATA_NOISE && data_is_float(type) &&
        op != SC_EMU_PROD && n > n_real && count > 1)
        s.amount = amount(&s);
    if (shortcut(&s)) return true;
    if (data_is_float(type))
        reduce_float(&s);
    else
        reduce_int(&s);
    return true;
}

void sc_emu_data_peer(sc_emu_data *d, const void *mine, size_t count,
                      sc_emu_type type, void *out)
{
    double x[DATA_BLOCK];
    if (d->kind == SC_EMU_DATA_NONE) return;
    double far = d->kind == SC_EMU_DATA_NOISE && data_is_float(type)
                     ? d->sigma * data_spread(type, mine, count)
                     : 0;
    if (!(far > 0)) {
        if (out != mine) memmove(out, mine, count * sc_emu_type_size(type));
        return;
    }
    for (size_t at = 0; at < count; at += DATA_BLOCK) {
        size_t n = count - at < DATA_BLOCK ? count - at : DATA_BLOCK;
        data_load_float(type, mine, at, n, x);
        data_add_noise(x, n, far, &d->state);
        data_store_float(type, out, at, n, x);
    }
}
