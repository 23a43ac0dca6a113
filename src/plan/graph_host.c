/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graph_host.c - a program that issues kernels one by one runs beside them: of
 * a pass of g seconds of kernels, issued in c seconds, (g^p + c^p)^(1/p) is
 * seen, as of the layers of blocks; with blocking launches the device also
 * idles after each.  What is beyond g stands as an item of its own at the end
 * of the pass.
 */
#include "plan/graph_infer.h"

#include <math.h>

#define PHASES 3

typedef struct pass {
    double seconds, launches;
    uint32_t last; /* item */
} pass;

static void wait(infer *f, const pass *p, uint32_t phase)
{
    const sc_gjob *j = f->job;
    double c = p->launches * j->cost->p[SC_P_HOST_KERNEL], extra = 0;
    double power = j->cost->p[SC_P_HOST_POWER], g = p->seconds;
    if (g > 0 && c > 0 && j->sw->capture != SC_CAPTURE_STEP)
        extra = g * pow(1 + pow(c / g, power), 1 / power) - g;
    if (j->launch_blocking) extra += p->launches * j->cost->p[SC_P_BLOCKING];
    if (extra <= 0) return;
    const gp_item *last = &f->prog->item[p->last];
    gp_item it = {.pass = last->pass,
                  .cat = SC_CAT_HOST,
                  .stage = last->stage,
                  .to = SC_NONE,
                  .op = last->op,
                  .exchange = SC_NONE,
                  .once = last->once,
                  .out = SC_NONE};
    it.price.seconds = extra;
    (void)gi_item(f, it, NULL, phase);
}

static void add(const infer *f, uint32_t item, pass *all)
{
    const gp_item *it = &f->prog->item[item];
    pass *p = &all[it->stage * PHASES + f->order[item].phase];
    if (it->exchange != SC_NONE || it->copy) return;
    p->seconds += it->price.seconds;
    p->launches += it->price.launches;
    p->last = item;
}

/* Of what one instance makes from item `i` on: behind its last. */
static uint32_t block_end(const infer *f, uint32_t i)
{
    const gi_order *o = &f->order[i];
    uint32_t end = i + 1;
    while (o->times > 1 && end < f->prog->n_items &&
           f->order[end].block == o->block)
        end++;
    return end;
}

sc_status gi_host(infer *f)
{
    uint32_t n = f->prog->n_items;
    /* A table's times are whole. */
    if (f->job->table || f->rules->launch_gap) return SC_OK;
    pass *all = SC_NEW_N(f->a, pass, (size_t)f->n_stages * PHASES);
    if (!all) return sc_error_nomem(f->err);
    for (uint32_t i = 0; i < n;) {
        uint32_t end = block_end(f, i);
        for (uint32_t k = f->order[i].times; k > 0; k--)
            for (uint32_t at = i; at < end; at++) add(f, at, all);
        i = end;
    }
    for (uint32_t s = 0; s < f->n_stages; s++)
        for (uint32_t k = 0; k < PHASES; k++) wait(f, &all[s * PHASES + k], k);
    return f->no_memory ? sc_error_nomem(f->err) : SC_OK;
}
