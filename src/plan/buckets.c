/* SPDX-License-Identifier: Apache-2.0 */
/* buckets.c - gradients that are exchanged together. */
#include "plan/plan_buckets.h"

#include <string.h>

uint64_t plan_bucket_way(const sc_gradient *g)
{
    uint64_t way = 0;
    for (uint32_t k = 0; k < g->n; k++)
        way = way << 16 | (uint64_t)g->axes[k] << 8 | g->coll[k];
    return way;
}

plan_bucket *plan_bucket_of(plan_buckets *s, uint64_t way)
{
    uint32_t i = 0;
    while (i < s->n && s->open[i].way != way) i++;
    if (i < s->n) return &s->open[i];
    if (i == s->room) return NULL;
    s->open[s->n++] = (plan_bucket){.way = way};
    return &s->open[i];
}

bool plan_bucket_add(const plan_buckets *s, plan_bucket *b, const double *bytes,
                     uint32_t n, double ready)
{
    for (uint32_t k = 0; k < n; k++) b->bytes[k] += bytes[k];
    b->n++;
    b->ready = ready;
    if (s->full <= 0) return false;
    return s->beyond ? b->bytes[0] > s->full : b->bytes[0] >= s->full;
}

plan_bucket *plan_bucket_first(const plan_buckets *s)
{
    plan_bucket *first = s->n ? s->open : NULL;
    for (uint32_t i = 1; i < s->n; i++)
        if (s->open[i].ready < first->ready) first = &s->open[i];
    return first;
}

plan_bucket plan_bucket_close(plan_buckets *s, plan_bucket *b)
{
    plan_bucket closed = *b;
    size_t behind = (size_t)(s->open + s->n - (b + 1));
    memmove(b, b + 1, behind * sizeof *b);
    s->n--;
    return closed;
}
