/* SPDX-License-Identifier: Apache-2.0 */
/* kernelfit_constants.c - the constants of the physical model of a form. */
#include "calib/kernelfit.h"

#include <math.h>
#include <string.h>

#define FIRST_STEP 0.4
#define LAST_STEP  0.004
#define SCALE      0.1

/* Bounds in which a constant still means what it says. */
static const sc_form_constants least = {1e-7, 0.2, 1, 1e-3, {.1, .02, .02}};
static const sc_form_constants most = {3e-4, 1.2, 12, 3000, {1.2, 4, 30}};

/* Weight of the squared logarithm of a constant over where it started: one that
 * the samples say nothing about stays there. */
#define PRIOR 1.0

/* Soft-L1 (calib.h). */
static double loss(const kernelfit_sample *s, uint32_t n,
                   const sc_form_constants *start, const sc_form_constants *c)
{
    double sum = 0, v[SC_FORM_CONSTANTS], v0[SC_FORM_CONSTANTS];
    memcpy(v, c, sizeof v);
    memcpy(v0, start, sizeof v0);
    for (int i = 0; i < SC_FORM_CONSTANTS; i++)
        if (v0[i] > 0) sum += PRIOR * pow(log(v[i] / v0[i]), 2);
    for (uint32_t i = 0; i < n; i++) {
        double t = 0;
        for (uint32_t j = 0; j < s[i].n; j++)
            t += sc_form_physical(c, &s[i].use[j]);
        double r = log(t / s[i].seconds) / SCALE;
        sum += s[i].weight * (sqrt(1 + r * r) - 1);
    }
    return sum;
}

typedef struct search {
    const kernelfit_sample *s;
    uint32_t n;
    sc_form_constants start;
} search;

static bool move(const search *x, int which, double step,
                 sc_form_constants *inout, double *best)
{
    double v[SC_FORM_CONSTANTS], lo[SC_FORM_CONSTANTS], hi[SC_FORM_CONSTANTS];
    sc_form_constants c;
    memcpy(v, inout, sizeof v);
    memcpy(lo, &least, sizeof lo);
    memcpy(hi, &most, sizeof hi);
    v[which] = fmin(fmax(v[which] * exp(step), lo[which]), hi[which]);
    memcpy(&c, v, sizeof c);
    double l = loss(x->s, x->n, &x->start, &c);
    if (!(l < *best)) return false;
    *best = l;
    *inout = c;
    return true;
}

enum {
    ISSUE = 4,
    EXPONENTIALS = 5
}; /* rate[0] of rows, rate[1] of attention */

/* Heads of one size say nothing about the exponentials, whose time then only
 * scales all rows.  The instructions of a softmax are counted, and most rows of
 * its tables wait for memory. */
static bool unknown(const kernelfit_sample *s, uint32_t n, int which)
{
    if (s[0].use[0].kind == SC_FORM_SOFTMAX && which == ISSUE) return true;
    if (!sc_form_is_attention(s[0].use[0].kind) || which != EXPONENTIALS)
        return false;
    for (uint32_t i = 1; i < n; i++)
        if (s[i].use[0].attention.size != s[0].use[0].attention.size)
            return false;
    return true;
}

double kernelfit_constants(const kernelfit_sample *s, uint32_t n,
                           sc_form_constants *inout)
{
    search x = {s, n, *inout};
    double best = loss(s, n, inout, inout);
    for (double step = FIRST_STEP; step > LAST_STEP;) {
        bool moved = false;
        for (int i = 0; i < SC_FORM_CONSTANTS; i++) {
            if (unknown(s, n, i)) continue;
            moved = move(&x, i, step, inout, &best) ||
                    move(&x, i, -step, inout, &best) || moved;
        }
        if (!moved) step /= 2;
    }
    return best;
}
