/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shared_data.c - data that real ranks exchange.
 *
 * Each rank's memory begins with a table of its contents. An entry belongs to
 * its rank while its key is 0; afterwards others read it, and the last reader
 * returns it. Entries keep their place, because a training step pushes the same
 * sizes again.
 */
#include "emu/shared_rank.h"

#include <string.h>

#define DATA_ENTRIES 65536u
#define DATA_HEAD    ((size_t)4 << 20)
#define DATA_ALIGN   4096u

typedef struct data_entry {
    _Atomic uint64_t key; /* 0: nothing lies here */
    _Atomic uint32_t readers;
    size_t at, room, len;
} data_entry;

typedef struct data_head {
    _Atomic uint32_t n; /* entries that were ever used */
    size_t used;        /* end of the last one */
    data_entry entry[DATA_ENTRIES];
} data_head;

_Static_assert(sizeof(data_head) <= DATA_HEAD,
               "the table fits before the data");

static uint64_t key_hash(const sc_emu_key *k)
{
    uint64_t v[4] = {k->group, k->from, k->to, k->seq};
    uint64_t hash = sc_hash(v, sizeof v, 0);
    return hash ? hash : 1;
}

static data_head *data_of(sc_emu_port *p, uint32_t number)
{
    port_peer *x = &p->peer[number];
    if (!x->data) x->data = port_map(p->pid, x->fd, SHARED_ROOM);
    return (data_head *)(void *)x->data;
}

static data_entry *find(sc_emu_port *p, uint32_t rank, const sc_emu_key *key,
                        data_head **out)
{
    uint32_t i = 0;
    while (i < p->n_peers && p->peer[i].rank != rank) i++;
    data_head *h = i < p->n_peers ? data_of(p, i) : NULL;
    if (!h) return NULL;
    *out = h;
    uint64_t hash = key_hash(key);
    uint32_t n = atomic_load_explicit(&h->n, memory_order_acquire);
    for (uint32_t k = 0; k < n && k < DATA_ENTRIES; k++)
        if (atomic_load_explicit(&h->entry[k].key, memory_order_acquire) ==
            hash)
            return &h->entry[k];
    return NULL;
}

/* A free entry with enough room; NULL: there is none. */
static data_entry *alloc_entry(data_head *h, size_t len)
{
    data_entry *small = NULL;
    uint32_t n = atomic_load_explicit(&h->n, memory_order_relaxed);
    for (uint32_t k = 0; k < n; k++) {
        data_entry *e = &h->entry[k];
        if (atomic_load_explicit(&e->key, memory_order_acquire)) continue;
        if (e->room >= len && e->room / 4 <= len + DATA_ALIGN) return e;
        small = e;
    }
    data_entry *e = n < DATA_ENTRIES ? &h->entry[n] : small;
    size_t room = (len + DATA_ALIGN - 1) / DATA_ALIGN * DATA_ALIGN;
    if (h->used == 0) h->used = DATA_HEAD;
    if (!e || room < len || room > SHARED_ROOM - h->used) return NULL;
    e->at = h->used;
    e->room = room;
    h->used += room;
    if (e == &h->entry[n])
        atomic_store_explicit(&h->n, n + 1, memory_order_release);
    return e;
}

sc_status sc_emu_port_push(sc_emu_port *p, const sc_emu_key *key,
                           const void *data, size_t len, uint32_t readers,
                           sc_err *err)
{
    data_head *h = data_of(p, p->number);
    if (!h)
        return sc_error(
            err, SC_EIO, SC_C_IO, sc_pos_none(), NULL,
            "the memory for data of other real ranks cannot be mapped");
    data_entry *e = alloc_entry(h, len);
    if (!e)
        return sc_error(err, SC_EINPUT, SC_C_TOO_BIG, sc_pos_none(), NULL,
                        "more than %zu GiB, or %u buffers, wait for other real "
                        "ranks",
                        SHARED_ROOM >> 30, DATA_ENTRIES);
    memcpy((unsigned char *)h + e->at, data, len);
    e->len = len;
    atomic_store_explicit(&e->readers, readers, memory_order_relaxed);
    atomic_store_explicit(&e->key, key_hash(key), memory_order_release);
    return SC_OK;
}

const void *sc_emu_port_peek(sc_emu_port *p, uint32_t rank,
                             const sc_emu_key *key, size_t *len)
{
    data_head *h;
    const data_entry *e = find(p, rank, key, &h);
    if (!e) return NULL;
    *len = e->len;
    return (const unsigned char *)h + e->at;
}

bool sc_emu_port_drop(sc_emu_port *p, uint32_t rank, const sc_emu_key *key)
{
    data_head *h;
    data_entry *e = find(p, rank, key, &h);
    if (!e) return false;
    if (atomic_fetch_sub(&e->readers, 1) == 1)
        atomic_store_explicit(&e->key, 0, memory_order_release);
    return true;
}
