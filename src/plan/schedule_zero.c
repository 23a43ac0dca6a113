/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schedule_zero.c - schedules that split the backward pass into one for inputs
 * (B), for which the stage below waits, and one for weights (W), which fills
 * idle time because no other pass waits for it.
 *
 * ZB-H1: Qi et al. 2023 (arXiv 2401.10241), section 2.3.  1F1B in which stage s
 *   delays weight passes by s micro-batches, so that no stage holds more than
 *   pp micro-batches.
 * ZB-V: the same, section 6, and Qi et al. 2024 (arXiv 2405.15362): device d
 *   holds stages d and 2 pp - 1 - d, so that activations pass down the devices
 *   and back.
 * DualPipe: DeepSeek-V3 (arXiv 2412.19437), section 3.2.1: micro-batches enter
 *   at both ends, device d holds stages d and pp - 1 - d.
 *
 * Every schedule is made for at least as many micro-batches as fill the
 * pipeline.  If a step has fewer, the passes of the others are left out; no
 * remaining pass waits for them.
 */
#include "plan/schedule.h"

static void add(sch_writer *w, sc_pass pass, uint32_t chunk)
{
    uint32_t i = w->done[pass == SC_BWD ? SC_BWD_X : pass][chunk]++;
    if (pass == SC_BWD) w->done[SC_BWD_W][chunk]++;
    if (i >= w->limit[chunk] || (w->forward_only && pass != SC_FWD)) return;
    if (w->out)
        w->out[w->n] =
            (sc_slot){(uint8_t)pass, (uint16_t)chunk, w->first[chunk] + i};
    w->n++;
    w->flying += pass == SC_FWD;
    if (w->flying > w->most) w->most = w->flying;
    w->flying -= pass == SC_BWD || pass == SC_BWD_W;
}

static void add_n(sch_writer *w, sc_pass pass, uint32_t chunk, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) add(w, pass, chunk);
}

static uint32_t most(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

static void zb_h1(uint32_t pp, uint32_t ga, uint32_t dev, sch_writer *w)
{
    uint32_t all = most(ga, pp);
    add_n(w, SC_FWD, 0, pp - 1 - dev);
    for (uint32_t b = 0; b < all; b++) {
        if (w->done[SC_FWD][0] < all) add(w, SC_FWD, 0);
        add(w, SC_BWD_X, 0);
        if (b >= dev) add(w, SC_BWD_W, 0);
    }
    add_n(w, SC_BWD_W, 0, dev);
}

static void zb_v(uint32_t pp, uint32_t ga, uint32_t dev, sch_writer *w)
{
    uint32_t all = most(ga, 2 * pp - 1), *f = w->done[SC_FWD];
    add_n(w, SC_FWD, 0, 2 * (pp - dev) - 1);
    for (uint32_t i = 0; i < dev; i++) {
        add(w, SC_FWD, 1);
        add(w, SC_FWD, 0);
    }
    for (uint32_t i = dev; i < pp; i++) {
        add(w, SC_FWD, 1);
        add(w, SC_BWD_X, 1);
        add(w, SC_BWD_W, 1);
    }
    while (f[1] < all) {
        if (f[0] < all) add(w, SC_FWD, 0);
        add(w, SC_BWD_X, 0);
        add(w, SC_BWD_W, 0);
        add(w, SC_FWD, 1);
        add(w, SC_BWD_X, 1);
        add(w, SC_BWD_W, 1);
    }
    for (uint32_t i = 0; i < dev; i++) {
        add(w, SC_BWD_X, 0);
        add(w, SC_BWD_X, 1);
    }
    for (uint32_t i = dev; i < pp; i++) {
        add(w, SC_BWD_X, 0);
        add(w, SC_BWD_W, 0);
    }
    add_n(w, SC_BWD_W, 1, all - w->done[SC_BWD_W][1]);
    add_n(w, SC_BWD_W, 0, all - w->done[SC_BWD_W][0]);
}

/* Adds the last backward passes of DualPipe: `n` of each chunk, far before
 * near, then `after` of the near one.  From the second half on, weight passes
 * are delayed; they follow in the same order. */
static void dual_end(sch_writer *w, uint32_t near, uint32_t n, uint32_t after)
{
    uint32_t waits = 0, first = 0, far = 1 - near;
    for (uint32_t i = 0; i < n; i++) {
        bool odd = n % 2 == 0; /* the device is the odd one of its half */
        bool split = i > n / 2 || (i == n / 2 && odd);
        if (split && waits++ == 0) first = far;
        add(w, split ? SC_BWD_X : SC_BWD, far);
        split = i >= n / 2;
        if (split && waits++ == 0) first = near;
        add(w, split ? SC_BWD_X : SC_BWD, near);
    }
    for (uint32_t i = 0; i < n + after; i++) {
        uint32_t chunk = i >= waits ? near : i % 2 ? 1 - first : first;
        add(w, SC_BWD_W, chunk);
        if (i < after) add(w, SC_BWD_X, near);
    }
}

static void dualpipe(uint32_t pp, uint32_t ga, uint32_t dev, sch_writer *w)
{
    uint32_t half = (pp + 1) / 2;
    uint32_t near = dev >= half, far = 1 - near; /* chunks, by their entry */
    uint32_t at = near ? pp - 1 - dev : dev, rest = half - 1 - at;
    uint32_t all = most(2 * pp, ga + ga % 2) / 2; /* from each end */
    add_n(w, SC_FWD, near, 2 * rest);
    for (uint32_t i = 0; i <= at; i++) {
        add(w, SC_FWD, near);
        add(w, SC_FWD, far);
    }
    for (uint32_t i = 0; i < rest; i++) {
        add(w, SC_BWD_X, far);
        add(w, SC_BWD_W, far);
        add(w, SC_FWD, far);
    }
    for (uint32_t i = 0; i + pp < all + at + 1; i++) {
        add(w, SC_FWD, near);
        add(w, SC_BWD, far);
        add(w, SC_FWD, far);
        add(w, SC_BWD, near);
    }
    for (uint32_t i = 0; i < rest; i++) {
        add(w, SC_BWD, far);
        add(w, SC_FWD, far);
        add(w, SC_BWD, near);
    }
    dual_end(w, near, at + 1, rest);
}

void sch_zero_order(sc_schedule s, uint32_t pp, uint32_t ga, uint32_t dev,
                    sch_writer *w)
{
    w->limit[0] = w->limit[1] = ga;
    if (s == SC_SCH_ZB_H1) zb_h1(pp, ga, dev, w);
    if (s == SC_SCH_ZB_V) zb_v(pp, ga, dev, w);
    if (s != SC_SCH_DUALPIPE) return;
    w->first[1] = w->limit[0] = (ga + 1) / 2;
    w->limit[1] = ga / 2;
    dualpipe(pp, ga, dev, w);
}
