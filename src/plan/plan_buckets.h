/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_buckets.h - gradients that are exchanged together.
 *
 * Gradients are added in the order in which the backward pass computes them.
 * Those with the same exchanges share a bucket, which is full when its first
 * exchange has the bytes of `full`.  The caller then closes it, and closes the
 * others when no gradient can follow.
 */
#ifndef PLAN_BUCKETS_H
#define PLAN_BUCKETS_H

#include "plan/plan.h"

typedef struct plan_bucket {
    uint64_t way; /* identifies the exchanges */
    uint32_t n;   /* gradients */
    double bytes[SC_WAY];
    double ready; /* when the last gradient is ready */
    void *own;    /* the caller's; NULL when the bucket opens */
} plan_bucket;

typedef struct plan_buckets {
    double full;       /* bytes; 0: buckets do not fill */
    bool beyond;       /* a bucket of just these bytes is not full */
    uint32_t n, room;  /* number of open buckets, and the most of them */
    plan_bucket *open; /* [room] in the order in which they opened */
} plan_buckets;

/* The exchanges of a gradient as a number. */
uint64_t plan_bucket_way(const sc_gradient *g);

/* The open bucket of `way`, or a new one; NULL: there is no room. */
plan_bucket *plan_bucket_of(plan_buckets *s, uint64_t way);

/* Adds a gradient: bytes of its `n` exchanges.  Returns whether the bucket is
 * now full. */
bool plan_bucket_add(const plan_buckets *s, plan_bucket *b, const double *bytes,
                     uint32_t n, double ready);

/* The open bucket whose last gradient is ready first; NULL: none is open. */
plan_bucket *plan_bucket_first(const plan_buckets *s);

plan_bucket plan_bucket_close(plan_buckets *s, plan_bucket *b);

#endif
