/* SPDX-License-Identifier: Apache-2.0 */
/* infer_groups.h - the communicators of exchanges and what they cost; shared by
 * infer_groups.c and infer_exchange.c. */
#ifndef PLAN_INFER_GROUPS_H
#define PLAN_INFER_GROUPS_H

#include "cost/cost_ring.h"
#include "plan/infer.h"

/* Communicators over the same axes on one pipeline device. */
struct infer_groups {
    struct infer_groups *next;
    uint32_t device, axes;
    uint32_t n, size;
    const uint32_t *rank; /* [n * size] */
    sc_place place;
    bool searched;
    sc_ring_group ring;
    struct asked_price **price; /* [SC_N_COLLS]; of other groups at an equal
                                 place, too */
};

typedef struct infer_exchange_price {
    double seconds, latency; /* latency: the part that no link limits */
    double link_s[2]; /* by sc_scope: what the bytes need on their links */
    uint32_t channels;
} infer_exchange_price;

/* As many ranks as these axes have, bit per axis. */
uint32_t infer_groups_size(const inference *f, uint32_t axes);

/* The communicators over `axes` on one pipeline device, over the ranks of
 * several devices with the same other coordinates, and of all devices.  NULL:
 * no memory. */
struct infer_groups *infer_groups_of(inference *f, uint32_t device,
                                     uint32_t axes);
struct infer_groups *infer_groups_across(inference *f, const uint32_t *device,
                                         uint32_t n);
struct infer_groups *infer_groups_all(inference *f);

/* Price of a collective that moves `bytes`; `ring`: part by part around a ring,
 * by point-to-point messages. */
sc_status infer_groups_price(inference *f, struct infer_groups *g, sc_coll coll,
                             bool ring, double bytes,
                             infer_exchange_price *out);

#endif
