/* SPDX-License-Identifier: Apache-2.0 */
/*
 * match.c - messages of this rank to itself and of other real ranks.
 *
 * The emulated world matches the k-th receive from a rank with the k-th send of
 * that rank; tags and communicators are matched here. A receive therefore
 * accepts whatever message of that rank arrives next, and continues until its
 * own is there; early ones are kept.
 */
#include "mpi/mp.h"

#include <stdlib.h>
#include <string.h>

/* Receives in flight from one real rank, oldest first. */
typedef struct expected {
    struct expected *next;
    uint32_t from;
    live_ticket ticket;
} expected;

static struct {
    mp_note *kept; /* oldest first */
    mp_request *posted;
    expected *expected;
} mailbox;

mp_note *mp_note_new(uint64_t context, uint32_t from, int tag, size_t len)
{
    mp_note *n = mp_alloc(sizeof *n + len);
    *n = (mp_note){NULL, context, from, tag, len};
    return n;
}

static bool matches(const mp_note *n, const mp_comm *c, uint32_t from, int tag)
{
    return n->context == c->context && n->from == from &&
           (tag == MPI_ANY_TAG || tag == n->tag);
}

void mp_note_arrive(mp_note *n)
{
    mp_lock();
    mp_request **at = &mailbox.posted;
    for (; *at; at = &(*at)->next) {
        mp_message *m = &(*at)->msg;
        if (!matches(n, m->c, mp_world_rank(m->c, m->member), m->tag)) continue;
        m->note = n;
        *at = (*at)->next;
        mp_unlock();
        return;
    }
    mp_note **last = &mailbox.kept;
    while (*last) last = &(*last)->next;
    *last = n;
    mp_unlock();
}

mp_note *mp_note_kept(const mp_comm *c, uint32_t from, int tag, bool remove)
{
    mp_lock();
    mp_note **at = &mailbox.kept;
    while (*at && !matches(*at, c, from, tag)) at = &(*at)->next;
    mp_note *n = *at;
    if (n && remove) *at = n->next;
    mp_unlock();
    return n;
}

void mp_post_receive(mp_request *r)
{
    mp_lock();
    mp_request **last = &mailbox.posted;
    while (*last) last = &(*last)->next;
    r->next = NULL;
    *last = r;
    mp_unlock();
}

void mp_unpost(mp_request *r)
{
    mp_lock();
    mp_request **at = &mailbox.posted;
    while (*at && *at != r) at = &(*at)->next;
    if (*at) *at = r->next;
    mp_unlock();
}

void mp_expect(const mp_comm *c, uint32_t from, size_t bytes)
{
    live_op op = {.coll = SC_RECV,
                  .group = c->group,
                  .peer = from,
                  .bytes = bytes,
                  .async = true};
    expected *e = mp_alloc(sizeof *e);
    *e = (expected){NULL, from, live_post(mp.l, &op, live_now(mp.l))};
    mp_lock();
    expected **last = &mailbox.expected;
    while (*last) last = &(*last)->next;
    *last = e;
    mp_unlock();
}

/* Removes the oldest receive in flight from that rank; NULL: none. */
static expected *oldest(uint32_t from)
{
    mp_lock();
    expected **at = &mailbox.expected, *e;
    while (*at && (*at)->from != from) at = &(*at)->next;
    e = *at;
    if (e) *at = e->next;
    mp_unlock();
    return e;
}

static void restore(expected *e)
{
    mp_lock();
    e->next = mailbox.expected;
    mailbox.expected = e;
    mp_unlock();
}

bool mp_pump(const mp_comm *c, uint32_t from, size_t bytes, bool wait)
{
    expected *e = oldest(from);
    if (!e) {
        mp_expect(c, from, bytes);
        e = oldest(from);
    }
    if (wait) {
        live_wait(mp.l, e->ticket);
    } else if (!live_test(mp.l, e->ticket)) {
        restore(e);
        return false;
    }
    size_t len = 0;
    const unsigned char *p = live_peer(mp.l, e->ticket, from, &len);
    uint64_t context = 0;
    int tag = 0;
    size_t head = sizeof context + sizeof tag;
    if (!p || len < head)
        live_die(mp.l,
                 "a message of rank %u to rank %u arrived without its data",
                 from, live_rank(mp.l));
    memcpy(&context, p, sizeof context);
    memcpy(&tag, p + sizeof context, sizeof tag);
    mp_note *n = mp_note_new(context, from, tag, len - head);
    memcpy(n->data, p + head, len - head);
    live_drop(mp.l, e->ticket);
    free(e);
    mp_note_arrive(n);
    return true;
}
