/* SPDX-License-Identifier: Apache-2.0 */
/*
 * call.c - one operation from its post to its end, in a worker of c10d
 * (collectives) or in the program itself (send, receive).
 */
#include "inside.h"

#include <inttypes.h>

#define MS ((sc_time)1000000000) /* ps */

bool gloo_call_begin(gloo_call *c, const gloo_context *context, int64_t timeout)
{
    c->l = gloo_live();
    if (!c->l) return false;
    live_enter(c->l);
    c->g = gloo_group_of(c->l, context);
    c->timeout = timeout >= 0 ? timeout : context->timeout;
    return true;
}

/* c10d creates every buffer with our createUnboundBuffer(). */
char *gloo_call_memory(gloo_call *c, const gloo_buffer *b, size_t len)
{
    if (!gloo_buffer_ours(b) || b->size < len)
        live_die(c->l, "gloo: a buffer of %s has the wrong type or size",
                 sc_coll_names[c->op.coll]);
    return b->ptr;
}

void gloo_call_post(gloo_call *c, sc_coll coll, int root, uint64_t bytes)
{
    static _Atomic uint64_t posts;
    gloo_work *w = gloo_work_now();
    c->number = atomic_fetch_add(&posts, 1);
    c->op = (live_op){
        .coll = coll,
        .group = c->g->id,
        .peer = root < 0 ? 0 : c->g->world[root],
        .bytes = bytes,
        .stream = c->g->stream,
        .async = true,
    };
    if (w) gloo_work_enter(w);
    c->ticket = live_post(c->l, &c->op, gloo_work_time(c->l));
    if (w) gloo_work_leave(w);
}

void gloo_call_push(gloo_call *c, const void *data, size_t len)
{
    if (c->g->n_real > 1) live_push(c->l, c->ticket, data, len);
}

static _Noreturn void give_up(gloo_call *c)
{
    gloo_call_cancel(c);
    live_leave(c->l);
    gloo_throw("Timed out waiting %" PRId64 "ms for %s operation to complete "
               "(emulated)",
               c->timeout, sc_coll_names[c->op.coll]);
}

void gloo_call_cancel(gloo_call *c)
{
    live_cancel(c->l, c->ticket);
    gloo_virtual_forget(c->ticket);
}

void gloo_call_serve(gloo_call *c, bool worker)
{
    const bool virt = live_config(c->l)->clock == SC_EMU_VIRTUAL;
    sc_time by = live_now(c->l) + c->timeout * MS;
    bool done = true;
    if (virt || worker) done = live_serve_by(c->l, c->ticket, by);
    if (virt)
        done = gloo_virtual_wait(c, by);
    else if (!worker)
        done = live_wait_by(c->l, c->ticket, by);
    if (!done) give_up(c);
    if (virt && worker) gloo_work_ended(c->end);
}

uint32_t gloo_call_like(const gloo_call *c, uint32_t m)
{
    uint32_t before = 0;
    for (uint32_t i = 0; i < c->g->n_real && c->g->real[i] <= m; i++) {
        if (c->g->real[i] == m) return i;
        before++;
    }
    return (m - before) % c->g->n_real;
}

const void *gloo_call_peer(gloo_call *c, uint32_t member, const void *own,
                           size_t len, size_t *got)
{
    if (member == c->g->rank) {
        *got = len;
        return own;
    }
    uint32_t rank = c->g->world[member];
    const void *p = live_peer(c->l, c->ticket, rank, got);
    if (!p)
        live_die(c->l, "gloo: rank %u has contributed nothing to %s",
                 (unsigned)rank, sc_coll_names[c->op.coll]);
    if (len != SIZE_MAX && *got != len)
        live_die(c->l, "gloo: rank %u has %zu bytes in %s, rank %u %zu",
                 (unsigned)rank, *got, sc_coll_names[c->op.coll],
                 (unsigned)live_rank(c->l), len);
    return p;
}

void gloo_call_done(gloo_call *c)
{
    if (c->g->n_real > 1) live_drop(c->l, c->ticket);
}
