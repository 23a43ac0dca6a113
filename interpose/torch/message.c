/* SPDX-License-Identifier: Apache-2.0 */
/*
 * message.c - send and receive.
 */
#include "torch.h"

#include <string.h>

/* The first message that comes, if messages of all members are known. If not,
 * every other member is the source in turn; real ones are not told apart. */
static uint32_t any_source(live *l, const live_members *m)
{
    static _Atomic uint32_t turn;
    uint32_t i = 0;
    while (i < m->n && (live_members_is_real(m, i) ||
                        live_is_scouted(l, live_members_rank(m, i))))
        i++;
    if (i == m->n) return TORCH_ANY;
    live_guess(l, "recv() without src");
    uint32_t r = turn++ % m->n;
    if (r == m->me) r = turn++ % m->n;
    return live_members_is_real(m, r) ? TORCH_ANY : r;
}

uint32_t torch_partner(live *l, const live_members *m, const torch_call *c)
{
    if (c->root >= 0 || m->n == 1) return (uint32_t)c->root;
    return c->coll == SC_RECV ? any_source(l, m) : 0;
}

void torch_send(torch_op *o)
{
    const live_block *b = o->data.in.list;
    live_sent(o->x.l, b->at, b->len);
    if (live_members_is_real(o->x.m, o->x.root))
        live_push(o->x.l, o->ticket, b->len ? b->at : "", b->len);
}

torch_status torch_receive(torch_op *o)
{
    live_moves *x = &o->x;
    const live_block *b = o->data.out.list;
    live_message m;
    bool known = live_matched(x->l, o->ticket, &m);
    for (uint32_t i = 0; known && i < x->m->n; i++)
        if (x->m->rank[i] == m.from) x->root = i;
    size_t got = 0;
    const void *p = known ? live_peer(x->l, o->ticket, m.from, &got) : NULL;
    if (!p)
        x->by->sent(x); /* from an emulated member */
    else if (got <= b->len && got)
        memcpy(b->at, p, got);
    live_drop(x->l, o->ticket);
    return got <= b->len ? TORCH_ENDED : TORCH_TOO_LONG;
}
