/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fast_queue.c - exchanges that run at the same time share links.
 *
 * They slow each other only if together they need more than the links in a
 * node, or those between nodes, have.
 */
#include "predict/fast.h"

static double smaller(double x, double y)
{
    return x < y ? x : y;
}

double fast_stretched(const fast_stretch *s, double t)
{
    if (t <= s->from) return t;
    return t + (s->longer - 1) * smaller(s->both, t - s->from);
}

/* The speeds, as fractions of those alone, of two exchanges that together need
 * more than links have: they move their bytes at the same rate, or one of them
 * at its own rate (net_flow.h). */
static void speeds(const sc_contender *own, const fast_queue *other,
                   double of[2])
{
    of[0] = of[1] = 1;
    for (int s = 0; s < 2; s++) {
        double a = own->use[s], b = other->use[s];
        if (a + b <= 1) continue;
        double rate = 1 / (a / own->rate + b / other->rate);
        double x = rate / own->rate, y = rate / other->rate;
        if (x > 1) x = 1, y = (1 - a) / b;
        if (y > 1) y = 1, x = (1 - b) / a;
        of[0] = smaller(of[0], x);
        of[1] = smaller(of[1], y);
    }
}

double fast_loses(const sc_contender *own, const fast_queue *other, double at,
                  fast_stretch *out)
{
    double of[2], moves = own->seconds - own->latency, left = other->end - at;
    *out = (fast_stretch){.from = at, .longer = 1};
    if (left <= 0 || moves <= 0 || !fast_conflict(own->use, other)) return 0;
    speeds(own, other, of);
    double both = smaller(moves / of[0], left / of[1]);
    out->both = both * of[1];
    out->longer = 1 / of[1];
    return both * (1 - of[0]);
}

double fast_beside(fast_queue *queue, const sc_contender *own, double at)
{
    fast_stretch s;
    double lost = fast_loses(own, queue, at, &s);
    queue->end = fast_stretched(&s, queue->end);
    return lost;
}

fast_stretch fast_adds(fast_queue *own, fast_queue *other, double from,
                       const sc_contender *load)
{
    double at = fast_larger(own->end, from), all = load->seconds, lost = 0;
    fast_stretch s = {.from = at, .longer = 1};
    if (all <= 0) return s;
    if (other->end > at) lost = fast_loses(load, other, at, &s);
    double part = all / (all + fast_larger(0, own->end - from));
    for (int k = 0; k < 2; k++)
        own->use[k] += part * (load->use[k] - own->use[k]);
    own->rate += part * (load->rate - own->rate);
    own->end = at + all + lost;
    if (lost > 0 || s.longer > 1) other->end = fast_stretched(&s, other->end);
    return s;
}
