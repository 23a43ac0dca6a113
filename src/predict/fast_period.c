/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fast_period.c - passes in the middle of a schedule repeat with a period.  Once
 * all clocks advance by the same time from one period to the next, further
 * periods need no passes.
 */
#include "predict/fast_period.h"

#include "predict/fast_scene.h"

#include <math.h>
#include <string.h>

/* ---- periods of an order --------------------------------------------------- */

/* How many slots before each one the pass ran that it waits for; 0: none. */
static uint32_t *waits_of(const fast_order *o, sc_arena *a)
{
    uint32_t *back = SC_RAW_N(a, uint32_t, o->n);
    uint32_t *writer = SC_NEW_N(a, uint32_t, o->n_places);
    if (!back || !writer) return NULL;
    for (uint32_t i = 0; i < o->n; i++) {
        const fast_slot *k = &o->slot[i];
        back[i] = k->in < FAST_PLACES ? 0 : i - writer[k->in];
        writer[k->out] = i;
    }
    return back;
}

static bool same_slot(const fast_order *o, const uint32_t *back, uint32_t i,
                      uint32_t j)
{
    const fast_slot *a = &o->slot[i], *b = &o->slot[j];
    return a->chunk == b->chunk && a->pass == b->pass && a->how == b->how &&
           back[i] == back[j];
}

/* The longest stretch of slots that are those one period later. */
static uint32_t stretch_of(const fast_order *o, const uint32_t *back,
                           uint32_t period, uint32_t *from)
{
    uint32_t longest = 0, n = 0;
    for (uint32_t i = 0; i + period < o->n; i++) {
        n = same_slot(o, back, i, i + period) ? n + 1 : 0;
        if (n <= longest) continue;
        longest = n;
        *from = i + 1 - n;
    }
    return longest;
}

/* Lists the slots, counted from the beginning of a period, that wait for passes
 * before it. */
static sc_status list_live(fast_order *o, const uint32_t *back, sc_arena *to,
                           sc_err *err)
{
    uint32_t n = o->to - o->from;
    for (uint32_t i = 0; i < o->period && i < n; i++)
        if (back[o->from + i] > o->ahead) o->ahead = back[o->from + i];
    if (o->ahead > n) o->ahead = n;
    o->live = SC_RAW_N(to, uint32_t, o->ahead);
    if (!o->live) return sc_error_nomem(err);
    for (uint32_t i = 0; i < o->ahead; i++)
        if (back[o->from + i] > i) o->live[o->n_live++] = i;
    return SC_OK;
}

sc_status fast_period_find(const sc_run *r, fast_order *o, sc_arena *a,
                           sc_arena *to, sc_err *err)
{
    uint32_t pp = r->size[SC_AX_PP];
    /* two, because gradients have two buffers; rounds if stages are virtual */
    const uint32_t micro_batches[] = {2, pp % 2 ? 2 * pp : pp};
    uint32_t each = o->n / r->ga, best = 0, *back = waits_of(o, a);
    if (!back) return sc_error_nomem(err);
    for (size_t i = 0; i < SC_COUNT(micro_batches); i++) {
        uint32_t from = 0, period = each * micro_batches[i];
        if (period == 0 || period > o->n / 4) continue;
        uint32_t n = stretch_of(o, back, period, &from);
        if (n < 3 * period || n - 3 * period <= best) continue;
        best = n - 3 * period;
        o->period = period;
        o->from = from;
        o->to = from + n + period;
    }
    return o->period ? list_live(o, back, to, err) : SC_OK;
}

/* ---- periods of a sweep ---------------------------------------------------- */

/* Seconds by which states one period later may differ: the rounding of clocks
 * of up to 100 s.  It is added once for each period that is left out, so it is
 * smaller than FAST_SAME. */
#define SAME 2e-14

/* Numbers of a device: two queues, two gradient buffers, the next of them, and
 * ends of layers. */
enum { DEVICE_VIEW = 2 * FAST_QUEUE_VIEW + 2 + 1 + SC_PREFETCH_MAX + 2 };

/* The state of a device relative to its clock. */
static double *device_view(const fast_engine *x, const fast_device *d,
                           double at, double *v)
{
    double past = -x->long_ago;
    v = fast_queue_view(&d->gathers, at, past, v);
    v = fast_queue_view(&d->grads, at, past, v);
    *v++ = fast_larger(d->left[0] - at, past);
    *v++ = fast_larger(d->left[1] - at, past);
    *v++ = d->next_buffer;
    for (uint64_t i = 1; i <= SC_COUNT(d->end); i++)
        *v++ = fast_larger(d->end[(d->n - i) % SC_COUNT(d->end)] - at, past);
    return v;
}

sc_status fast_period_open(const fast_engine *x, const fast_order *o,
                           sc_arena *a, fast_period *p, sc_err *err)
{
    uint32_t pp = x->p->run.size[SC_AX_PP];
    *p = (fast_period){.next = UINT32_MAX};
    if (o->period == 0 || !(x->shards || x->each) ||
        o->from + 2 * o->period + o->ahead > o->to)
        return SC_OK;
    p->next = o->from;
    p->n = o->n_live + pp * (1 + DEVICE_VIEW);
    p->view = SC_RAW_N(a, double, (size_t)2 * p->n);
    p->at = SC_RAW_N(a, double, pp);
    p->left = SC_RAW_N(a, double, pp);
    p->cat = x->cat ? sc_alloc(a, pp, sizeof *p->cat) : NULL;
    if (!p->view || !p->at || !p->left || (x->cat && !p->cat))
        return sc_error_nomem(err);
    return SC_OK;
}

static void look(const fast_engine *x, const fast_order *o, uint32_t slot,
                 const fast_clocks *c, double *v)
{
    for (uint32_t i = 0; i < o->n_live; i++)
        *v++ = c->end[o->slot[slot + o->live[i]].in] - c->at[0];
    for (uint32_t d = 0; d < x->p->run.size[SC_AX_PP]; d++) {
        *v++ = c->at[d] - c->at[0];
        v = device_view(x, &x->device[d], c->at[d], v);
    }
}

static void keep(const fast_engine *x, const fast_clocks *c, fast_period *p)
{
    uint32_t pp = x->p->run.size[SC_AX_PP];
    memcpy(p->at, c->at, pp * sizeof *p->at);
    if (c->left) memcpy(p->left, c->left, pp * sizeof *p->left);
    if (x->cat) memcpy(p->cat, x->cat, pp * sizeof *p->cat);
}

static void move_device(fast_device *d, double by)
{
    d->gathers.end += by;
    d->grads.end += by;
    d->left[0] += by;
    d->left[1] += by;
    for (size_t i = 0; i < SC_COUNT(d->end); i++) d->end[i] += by;
}

/* Lets `n` periods pass before `slot`, each as long as the last one. */
static void pass_by(fast_engine *x, const fast_order *o, uint32_t slot,
                    fast_clocks *c, const fast_period *p, uint32_t n)
{
    double by = n * (c->at[0] - p->at[0]);
    for (uint32_t d = 0; d < x->p->run.size[SC_AX_PP]; d++) {
        c->at[d] += by;
        c->busy[d] += by;
        move_device(&x->device[d], by);
        if (c->left) c->left[d] += n * (c->left[d] - p->left[d]);
        for (uint32_t k = 0; x->cat && k < SC_N_CATS; k++)
            x->cat[d][k] += n * (x->cat[d][k] - p->cat[d][k]);
    }
    for (uint32_t i = 0; i < o->n_live; i++)
        c->end[o->slot[slot + n * o->period + o->live[i]].in] =
            p->view[i] + c->at[0];
}

uint32_t fast_period_skip(fast_engine *x, const fast_order *o, uint32_t slot,
                          fast_clocks *c, fast_period *p)
{
    double *now = &p->view[p->known ? p->n : 0];
    uint32_t n = (o->to - o->ahead - slot) / o->period, same = 0;
    look(x, o, slot, c, now);
    while (p->known && same < p->n && fabs(now[same] - p->view[same]) < SAME)
        same++;
    if (same == p->n) {
        pass_by(x, o, slot, c, p, n);
        p->next = UINT32_MAX;
        return n * o->period;
    }
    if (p->known) memcpy(p->view, now, p->n * sizeof *now);
    keep(x, c, p);
    p->known = true;
    slot += o->period;
    p->next = slot + o->period + o->ahead <= o->to ? slot : UINT32_MAX;
    return 0;
}
