/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fast_seen.c - what the rest of a pass depends on once the gathers that start
 * before it are issued, and what the pass changes in its device.
 */
#include "predict/fast_scene.h"

#include <math.h>

bool fast_same_view(const double *a, const double *b, uint32_t n)
{
    uint32_t i = 0;
    while (i < n && fabs(a[i] - b[i]) < FAST_SAME) i++;
    return i == n;
}

double *fast_queue_view(const fast_queue *q, double t, double past, double *v)
{
    double end = fast_larger(q->end - t, past);
    bool uses = end > past;
    *v++ = end;
    for (int k = 0; k < 2; k++) *v++ = uses ? q->use[k] : 0;
    *v++ = uses ? FAST_RATE * q->rate : 0;
    return v;
}

uint32_t fast_rest(const fast_scene *s, const fast_walk *w, double *v)
{
    const fast_engine *x = s->x;
    const fast_device *d = s->d;
    bool alike = !w->gets || (w->bwd ? s->l->alike_b : s->l->alike_f);
    double t = s->t, past = alike ? 0 : -x->long_ago, *at = v;
    at = fast_queue_view(&d->gathers, t, past, at);
    at = fast_queue_view(&d->grads, t, past, at);
    *at++ = fast_larger(d->left[d->next_buffer] - t, past);
    *at++ = fast_larger(d->left[!d->next_buffer] - t, past);
    for (uint32_t i = 0; w->gets && i < s->n_ready; i++)
        *at++ = fast_larger(s->ready[i] - t, 0);
    for (uint32_t i = 0; !alike && i < s->n_ready; i++)
        *at++ = fast_larger(fast_gate(d, s->n_ready - 1, i) - t, past);
    return (uint32_t)(at - v);
}

/* Numbers of a device that a pass changes: those of both queues, of which the
 * first is a time, and when buffers are free. */
enum { QUEUE = FAST_QUEUE_VIEW, NUMBERS = 2 * QUEUE + 2 };

static bool is_time(uint32_t i)
{
    return i >= 2 * QUEUE || i % QUEUE == 0;
}

static void numbers_of(fast_device *d, bool next, double *of[NUMBERS])
{
    fast_queue *queue[] = {&d->gathers, &d->grads};
    for (uint32_t i = 0; i < 2; i++) {
        *of++ = &queue[i]->end;
        *of++ = &queue[i]->use[0];
        *of++ = &queue[i]->use[1];
        *of++ = &queue[i]->rate;
    }
    *of++ = &d->left[next];
    *of++ = &d->left[!next];
}

void fast_keep_changes(const fast_device *was, fast_device *d, double start,
                       uint32_t n_ends, fast_seen *to)
{
    double *now[NUMBERS], *old[NUMBERS];
    fast_device before = *was;
    numbers_of(d, was->next_buffer, now);
    numbers_of(&before, was->next_buffer, old);
    to->changed = 0;
    for (uint32_t i = 0; i < NUMBERS; i++) {
        /* a queue gets the same use again with a new end */
        uint32_t of = is_time(i) ? i : i - i % QUEUE;
        if (*now[of] != *old[of]) to->changed |= 1u << i;
        to->after[i] = *now[i] - (is_time(i) ? start : 0);
    }
    to->n_ends = d->n - was->n;
    for (uint64_t i = 0; i < n_ends && i < to->n_ends; i++)
        to->after[NUMBERS + i] =
            d->end[(d->n - 1 - i) % SC_COUNT(d->end)] - start;
    to->next_buffer = d->next_buffer != was->next_buffer;
}

void fast_repeat_changes(const fast_seen *of, double start, uint32_t n_ends,
                         fast_device *d)
{
    double *now[NUMBERS];
    numbers_of(d, d->next_buffer, now);
    for (uint32_t i = 0; i < NUMBERS; i++)
        if (of->changed >> i & 1)
            *now[i] = of->after[i] + (is_time(i) ? start : 0);
    d->n += of->n_ends;
    for (uint64_t i = 0; i < n_ends && i < of->n_ends; i++)
        d->end[(d->n - 1 - i) % SC_COUNT(d->end)] =
            of->after[NUMBERS + i] + start;
    if (of->next_buffer) d->next_buffer = !d->next_buffer;
}
