/* SPDX-License-Identifier: Apache-2.0 */
#include "reference_flow.h"

#include <math.h>

static bool moves(const ref_flow *f, double now)
{
    return f->left > 0 && f->start <= now;
}

static double crossings(const ref_flow *f, uint32_t link)
{
    double times = 0;
    for (uint32_t k = 0; k < f->n; k++)
        if (f->link[k] == link) times += f->share[k];
    return times;
}

/* Rate per weight at which a link fills; infinite if no open flow is on it. */
static double fills_at(double bw, uint32_t link, const ref_flow *f, uint32_t n,
                       double now)
{
    double used = 0, weight = 0;
    for (uint32_t i = 0; i < n; i++) {
        double times = moves(&f[i], now) ? crossings(&f[i], link) : 0;
        if (times == 0) continue;
        if (f[i].rate < 0)
            weight += times * f[i].weight;
        else
            used += times * f[i].rate;
    }
    return weight > 0 ? fmax(bw - used, 0) / weight : INFINITY;
}

void reference_rates(const double *bw, uint32_t n_links, ref_flow *f,
                     uint32_t n, double now)
{
    for (uint32_t i = 0; i < n; i++) f[i].rate = moves(&f[i], now) ? -1 : 0;
    for (;;) {
        double least = INFINITY;
        uint32_t full = 0;
        for (uint32_t l = 0; l < n_links; l++) {
            double level = fills_at(bw[l], l, f, n, now);
            if (level < least) {
                least = level;
                full = l;
            }
        }
        if (isinf(least)) return;
        for (uint32_t i = 0; i < n; i++)
            if (f[i].rate < 0 && crossings(&f[i], full) > 0)
                f[i].rate = least * f[i].weight;
    }
}

void reference_flows(const double *bw, uint32_t n_links, ref_flow *f,
                     uint32_t n)
{
    double now = 0;
    for (uint32_t i = 0; i < n; i++) {
        f[i].left = f[i].bytes;
        f[i].end = f[i].bytes > 0 ? INFINITY : f[i].start;
    }
    for (;;) {
        double next = INFINITY;
        reference_rates(bw, n_links, f, n, now);
        for (uint32_t i = 0; i < n; i++) {
            if (f[i].left <= 0) continue;
            if (f[i].start > now)
                next = fmin(next, f[i].start);
            else if (f[i].rate > 0)
                next = fmin(next, now + f[i].left / f[i].rate);
        }
        if (isinf(next)) return;
        for (uint32_t i = 0; i < n; i++) {
            if (!moves(&f[i], now)) continue;
            bool ends = now + f[i].left / f[i].rate <= next * (1 + 1e-15);
            f[i].left -= f[i].rate * (next - now);
            if (!ends && f[i].left > 0) continue;
            f[i].left = 0;
            f[i].end = next;
        }
        now = next;
    }
}
