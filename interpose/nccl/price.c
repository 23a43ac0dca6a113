/* SPDX-License-Identifier: Apache-2.0 */
/*
 * price.c - how many blocks NCCL's kernel would occupy and how long the
 * operation would take alone, by the cost model.
 */
#include "nccl/call.h"

/* Programs repeat the same sizes, so prices are cached. */
#define MEMO 256

typedef struct price {
    uint64_t bytes;
    uint32_t group;
    sc_coll coll;
    uint32_t blocks; /* 0: an empty entry */
    int algorithm;   /* of sc_algorithms(); -1: unknown */
    double seconds;
} price;

sc_place price_place(const struct ncclComm *m)
{
    uint32_t n = m->n, stride = 1;
    if (n > 1 && m->world[1] > m->world[0]) stride = m->world[1] - m->world[0];
    return sc_hw_place(live_config(m->l)->hw, 1, &n, &stride);
}

uint32_t price_channels(const struct ncclComm *m, sc_coll coll, double bytes,
                        int algorithm, sc_coll_price *out)
{
    const sc_emu_config *f = live_config(m->l);
    sc_err err = {0};
    if (m->n < 2 || !f->hw || !f->cost) return 0;
    sc_place at = price_place(m);
    if (sc_cost_coll(f->cost, f->hw, sc_coll_priced(coll), bytes, &at,
                     algorithm, out, &err))
        return 0;
    return out->channels ? out->channels : 1;
}

static const price *look_up(const nccl_call *c)
{
    static _Thread_local price memo[MEMO];
    uint64_t bytes = call_bytes(c);
    uint32_t group = c->comm->group;
    sc_coll coll = c->bytes ? SC_ALL_TO_ALL : c->coll;
    uint64_t h =
        bytes * 0x9e3779b97f4a7c15U + group * 31U + (uint64_t)coll * 7U;
    price *p = &memo[h >> 32 & (MEMO - 1)];
    if (p->blocks && p->bytes == bytes && p->group == group && p->coll == coll)
        return p;
    sc_coll_price out = {0};
    uint32_t n = price_channels(c->comm, coll, (double)bytes, -1, &out);
    *p = n ? (price){bytes, group, coll, n, out.algorithm, out.seconds}
           : (price){bytes, group, coll, 1, -1, 0};
    return p;
}

uint32_t price_blocks(const nccl_call *c)
{
    const struct ncclComm *m = c->comm;
    uint32_t blocks = look_up(c)->blocks;
    if (m->min_blocks > blocks) blocks = m->min_blocks;
    if (m->max_blocks && blocks > m->max_blocks) blocks = m->max_blocks;
    if (c->max_blocks && blocks > c->max_blocks) blocks = c->max_blocks;
    return blocks;
}

double price_seconds(const nccl_call *c)
{
    return look_up(c)->seconds;
}

int price_algorithm(const nccl_call *c)
{
    return look_up(c)->algorithm;
}
