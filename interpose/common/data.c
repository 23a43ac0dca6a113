/* SPDX-License-Identifier: Apache-2.0 */
/* data.c - data of emulated ranks: random draws, and the buffers that were sent
 * last. */
#include "common/inside.h"

#include <stdlib.h>
#include <string.h>

sc_emu_data *live_data(live *l)
{
    static _Thread_local sc_emu_data data;
    static _Thread_local bool drawn;
    if (!drawn) {
        uint64_t thread = atomic_fetch_add(&l->n_threads, 1);
        uint64_t who[2] = {l->rank, thread};
        data.kind = l->config.data;
        data.sigma = l->config.sigma;
        data.state = sc_hash(who, sizeof who, l->config.seed);
        drawn = true;
    }
    return &data;
}

/* Programs send few different lengths; beyond this many bytes the least
 * recently used buffers are dropped. */
#define SENT_BYTES ((size_t)64 << 20)

struct sent {
    struct sent *next; /* latest first */
    size_t len;
    unsigned char data[];
};

static struct sent *sent_alloc(live *l, size_t len)
{
    for (struct sent **at = &l->sent; *at; at = &(*at)->next) {
        struct sent *s = *at;
        if (s->len != len) continue;
        *at = s->next;
        return s;
    }
    return NULL;
}

static void sent_trim(live *l)
{
    while (l->sent_bytes > SENT_BYTES && l->sent && l->sent->next) {
        struct sent **at = &l->sent;
        while ((*at)->next) at = &(*at)->next;
        l->sent_bytes -= (*at)->len;
        free(*at);
        *at = NULL;
    }
}

static void sent_keep(live *l, const void *data, size_t len)
{
    struct sent *s = sent_alloc(l, len);
    if (!s) {
        s = malloc(sizeof *s + len);
        if (!s) return; /* falls back to zeros */
        s->len = len;
        l->sent_bytes += len;
    }
    memcpy(s->data, data, len);
    s->next = l->sent;
    l->sent = s;
    sent_trim(l);
}

void live_sent(live *l, const void *data, size_t len)
{
    live_begin(l);
    sent_keep(l, data, len);
    live_end(l);
}

const void *live_last_sent(live *l, size_t len)
{
    live_begin(l);
    const struct sent *s = l->sent;
    while (s && s->len != len) s = s->next;
    live_end(l);
    return s ? s->data : NULL;
}
