/* SPDX-License-Identifier: Apache-2.0 */
/*
 * data_noise.c - normal numbers, and how much a tensor's elements vary.
 *
 * Ziggurat: Marsaglia and Tsang, J. Stat. Software 5(8), 2000; layer, sign and
 * place come from different bits of one draw (Doornik 2005).
 */
#include "emu/data.h"

#include <math.h>

#define TAIL     3.442619855899      /* where the tail begins */
#define AREA     9.91256303526217e-3 /* of every layer */
#define ROOT_2PI 2.5066282746310002

static double density(double x)
{
    return exp(-0.5 * x * x);
}

void data_ziggurat_build(data_ziggurat *z)
{
    z->x[0] = AREA / density(TAIL);
    z->x[1] = TAIL;
    for (int i = 2; i < DATA_LAYERS; i++)
        z->x[i] = sqrt(-2 * log(AREA / z->x[i - 1] + density(z->x[i - 1])));
    z->x[DATA_LAYERS] = 0;
}

/* From TAIL on: Marsaglia 1964. */
static double tail(uint64_t *state)
{
    double x, y;
    do {
        x = -log(1 - sc_random_unit(state)) / TAIL;
        y = -log(1 - sc_random_unit(state));
    } while (y + y < x * x);
    return TAIL + x;
}

double data_normal(const data_ziggurat *z, uint64_t *state)
{
    for (;;) {
        uint64_t draw = sc_random(state);
        uint32_t i = draw & (DATA_LAYERS - 1);
        /* of either sign, without a branch that can't be foreseen */
        double x =
            (double)(int64_t)(draw & ~(uint64_t)2047) * 0x1p-63 * z->x[i];
        if (fabs(x) < z->x[i + 1]) return x;
        if (i == 0) return copysign(tail(state), x);
        double low = density(z->x[i]), high = density(z->x[i + 1]);
        if (low + sc_random_unit(state) * (high - low) < density(x)) return x;
    }
}

/* The x above which a normal number lies with probability q: Abramowitz and
 * Stegun 26.2.23, made exact by steps of Newton's on erfc. */
static double upper_quantile(double q)
{
    if (q > 0.5) return -upper_quantile(1 - q);
    double t = sqrt(-2 * log(q));
    double x = t - (2.515517 + t * (0.802853 + t * 0.010328)) /
                       (1 + t * (1.432788 + t * (0.189269 + t * 0.001308)));
    for (int i = 0; i < 2; i++)
        x += (0.5 * erfc(x / sqrt(2)) - q) * ROOT_2PI / density(x);
    return x;
}

double data_normal_max(uint64_t *state, uint32_t n)
{
    /* all n lie below with probability u: each with u^(1/n) */
    double u = 1 - sc_random_unit(state);
    double q = -expm1(log(u) / n);
    return q > 0 ? upper_quantile(q) : upper_quantile(0x1p-60 / n);
}

/* Sums in lanes, so that they are vectors; the first element is taken off
 * before squaring. */
double data_spread(sc_emu_type t, const void *src, size_t count)
{
    enum { LANES = 8 };

    double block[DATA_BLOCK], sum[LANES] = {0}, square[LANES] = {0};
    double s = 0, q = 0, first = 0;
    if (count < 2) return 0;
    for (size_t at = 0; at < count; at += DATA_BLOCK) {
        size_t n = count - at < DATA_BLOCK ? count - at : DATA_BLOCK;
        data_load_float(t, src, at, n, block);
        if (at == 0) first = block[0];
        while (n % LANES != 0) block[n++] = first;
        for (size_t i = 0; i < n; i += LANES)
            for (size_t k = 0; k < LANES; k++) {
                double d = block[i + k] - first;
                sum[k] += d;
                square[k] += d * d;
            }
    }
    for (size_t k = 0; k < LANES; k++) {
        s += sum[k];
        q += square[k];
    }
    double mean = s / (double)count, var = q / (double)count - mean * mean;
    return isfinite(var) && var > 0 ? sqrt(var) : 0;
}
