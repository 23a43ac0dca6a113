/* SPDX-License-Identifier: Apache-2.0 */
/*
 * buffer.c - transport::UnboundBuffer, on which c10d's send and recv operate.
 *
 * It is an object of C with the table of functions that C++ expects. A receive
 * from an emulated rank gets the last buffer of its length that this rank sent,
 * or zeros.
 */
#include "inside.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct buffer {
    gloo_buffer base;
    gloo_context *context;
    gloo_call call;
    size_t offset, len;
    uint64_t slot;    /* gloo's tag */
    uint32_t partner; /* position in the group */
    bool pending, receives;
} buffer;

/* Precedes data that real ranks exchange. */
typedef struct envelope {
    uint64_t slot, len;
} envelope;

/* ---- send and receive --------------------------------------------------------------- */

static void range(buffer *b, size_t offset, size_t len)
{
    if (offset > b->base.size)
        gloo_throw("gloo: the offset is beyond the buffer");
    b->offset = offset;
    b->len = b->base.size - offset;
    if (len == SIZE_MAX) return;
    if (len > b->len) gloo_throw("gloo: the range ends beyond the buffer");
    b->len = len;
}

/* Enters, but leaves before it throws. */
static void begin(buffer *b, sc_coll coll, int partner, uint64_t slot)
{
    gloo_call *c = &b->call;
    if (b->pending)
        gloo_throw("gloo: a buffer is used by two operations at once");
    c->timeout = b->context->timeout;
    c->g = gloo_group_of(c->l, b->context);
    if (partner < 0 || (uint32_t)partner >= c->g->size)
        gloo_throw("gloo: rank %d of a group of %u", partner,
                   (unsigned)c->g->size);
    b->partner = (uint32_t)partner;
    b->slot = slot;
    b->receives = coll == SC_RECV;
    live_enter(c->l);
    gloo_call_post(c, coll, partner, b->len);
    b->pending = true;
}

static bool is_real(const gloo_group *g, uint32_t member)
{
    for (uint32_t i = 0; i < g->n_real; i++)
        if (g->real[i] == member) return true;
    return false;
}

static void buffer_send(buffer *b, int to, uint64_t slot, size_t offset,
                        size_t len)
{
    live *l = b->call.l;
    range(b, offset, len);
    begin(b, SC_SEND, to, slot);
    char *from = (char *)b->base.ptr + b->offset;
    live_sent(l, from, b->len);
    if (is_real(b->call.g, b->partner)) {
        char *m = malloc(sizeof(envelope) + b->len);
        if (!m) live_die(l, "gloo: out of memory");
        memcpy(m, &(envelope){slot, b->len}, sizeof(envelope));
        memcpy(m + sizeof(envelope), from, b->len);
        live_push(l, b->call.ticket, m, sizeof(envelope) + b->len);
        free(m);
    }
    live_leave(l);
}

static void buffer_recv(buffer *b, int from, uint64_t slot, size_t offset,
                        size_t len)
{
    range(b, offset, len);
    begin(b, SC_RECV, from, slot);
    live_leave(b->call.l);
}

/* If several may send: the next in turn, emulated ones first, because they
 * always can. */
static int choose(const gloo_group *g, const int *rank, size_t n)
{
    static _Atomic uint32_t turn;
    uint32_t at = atomic_fetch_add(&turn, 1);
    int real = -1;
    for (size_t i = 0; i < n; i++) {
        int r = rank[(at + i) % n];
        if (r < 0 || (uint32_t)r == g->rank) continue;
        if (!is_real(g, (uint32_t)r)) return r;
        if (real < 0) real = r;
    }
    if (real < 0) gloo_throw("gloo: a receive names no other rank");
    return real;
}

static void buffer_recv_any(buffer *b, const cxx_vector *from, uint64_t slot,
                            size_t offset, size_t len)
{
    live *l = b->call.l;
    const gloo_group *g = gloo_group_of(l, b->context);
    if (g->n_real > 2 || (g->n_real == 2 && g->size > 2))
        live_warn(l,
                  "gloo: a receive from any of several ranks is matched "
                  "with %s only",
                  g->n_real < g->size ? "emulated ones" : "one at a time");
    int r = choose(g, from->begin, cxx_count(from, sizeof(int)));
    buffer_recv(b, r, slot, offset, len);
}

void gloo_sent_before(live *l, void *out, size_t len)
{
    const void *last = live_last_sent(l, len);
    if (last)
        memcpy(out, last, len);
    else
        memset(out, 0, len);
}

/* The contents of the sender's buffer. */
static void fill(buffer *b)
{
    gloo_call *c = &b->call;
    char *to = (char *)b->base.ptr + b->offset;
    if (!is_real(c->g, b->partner)) {
        gloo_sent_before(c->l, to, b->len);
        return;
    }
    size_t got = 0;
    const char *m = gloo_call_peer(c, b->partner, NULL, SIZE_MAX, &got);
    envelope e;
    if (got < sizeof(e)) live_die(c->l, "gloo: a message of %zu bytes", got);
    memcpy(&e, m, sizeof(e));
    if (e.slot != b->slot)
        live_die(c->l,
                 "gloo: rank %u receives from rank %u in a different order of "
                 "tags from the order of sending",
                 (unsigned)live_rank(c->l), (unsigned)c->g->world[b->partner]);
    if (e.len > b->len)
        gloo_throw("gloo: %" PRIu64 " bytes for a buffer of %zu", e.len,
                   b->len);
    memcpy(to, m + sizeof(e), (size_t)e.len);
}

static bool finish(buffer *b, int *rank, int64_t timeout, bool receives)
{
    gloo_call *c = &b->call;
    if (!b->pending || b->receives != receives)
        gloo_throw("gloo: wait for an operation that was not started");
    if (timeout >= 0) c->timeout = timeout;
    live_enter(c->l);
    b->pending = false;
    gloo_call_serve(c, false);
    if (receives) fill(b);
    gloo_call_done(c);
    live_leave(c->l);
    if (rank) *rank = (int)b->partner;
    return true;
}

static bool buffer_wait_recv(buffer *b, int *rank, int64_t timeout)
{
    return finish(b, rank, timeout, true);
}

static bool buffer_wait_send(buffer *b, int *rank, int64_t timeout)
{
    return finish(b, rank, timeout, false);
}

static void buffer_abort(buffer *b)
{
    if (b->pending) gloo_call_cancel(&b->call);
    b->pending = false;
}

/* ---- the object ------------------------------------------------------------------------ */

static void buffer_destroy(buffer *b)
{
    buffer_abort(b);
}

static void buffer_delete(buffer *b)
{
    buffer_destroy(b);
    free(b);
}

/* In the order of the class's virtual functions, after the offset to the whole
 * object and its type, which nobody uses. */
static const struct table {
    intptr_t to_top;
    const void *type;
    void (*destroy)(buffer *), (*delete)(buffer *);
    bool (*wait_recv)(buffer *, int *, int64_t);
    bool (*wait_send)(buffer *, int *, int64_t);
    void (*abort_recv)(buffer *), (*abort_send)(buffer *);
    void (*send)(buffer *, int, uint64_t, size_t, size_t);
    void (*recv)(buffer *, int, uint64_t, size_t, size_t);
    void (*recv_any)(buffer *, const cxx_vector *, uint64_t, size_t, size_t);
} table = {
    .destroy = buffer_destroy,
    .delete = buffer_delete,
    .wait_recv = buffer_wait_recv,
    .wait_send = buffer_wait_send,
    .abort_recv = buffer_abort,
    .abort_send = buffer_abort,
    .send = buffer_send,
    .recv = buffer_recv,
    .recv_any = buffer_recv_any,
};

gloo_buffer *gloo_buffer_new(gloo_context *c, void *ptr, size_t size)
{
    live *l = live_get();
    buffer *b = calloc(1, sizeof(*b));
    if (!b) live_die(l, "gloo: out of memory");
    b->base = (gloo_buffer){&table.destroy, ptr, size};
    b->context = c;
    b->call.l = l;
    return &b->base;
}

bool gloo_buffer_ours(const gloo_buffer *b)
{
    return b && b->vtable == (const void *)&table.destroy;
}

void gloo_buffer_free(gloo_buffer *b)
{
    buffer_delete((buffer *)b);
}

/* ---- what c10d and gloo call ---------------------------------------------------------- */

typedef void *make_buffer(void **, gloo_context *, void *, size_t);

void *gloo_make_buffer(void **out, gloo_context *c, void *ptr, size_t size)
    GLOO_HOOK("_ZN4gloo7Context19createUnboundBuf"
              "ferEPvm");

/* `out`: the place of the std::unique_ptr that it returns. */
void *gloo_make_buffer(void **out, gloo_context *c, void *ptr, size_t size)
{
    if (!live_get())
        return GLOO_REAL(make_buffer *, LIB_GLOO,
                         "_ZN4gloo7Context19createUnboundBufferEPvm")(
            out, c, ptr, size);
    *out = gloo_buffer_new(c, ptr, size);
    return out;
}
