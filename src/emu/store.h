/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store.h - parts of the rendezvous store: its table, its answers for emulated
 * ranks, its messages.
 */
#ifndef EMU_STORE_H
#define EMU_STORE_H

#include "base/blocks.h"
#include "emu/emu_store.h"

#define STORE_KEY_MAX   ((uint64_t)8 << 10)
#define STORE_VALUE_MAX ((uint64_t)32 << 20)
#define STORE_KEYS_MAX  ((uint64_t)128 << 10) /* in one message */
#define STORE_BYTES_MAX ((uint64_t)256 << 20) /* of everything it holds */
#define STORE_UID       ((size_t)128)         /* of an ncclUniqueId */

/* Borrowed bytes. */
typedef struct store_bytes {
    const uint8_t *at;
    size_t len;
} store_bytes;

/* A growing buffer of bytes; its blocks are powers of two and return to the
 * pool. */
typedef struct store_buf {
    uint8_t *at;
    size_t len, cap;
} store_buf;

/* False: out of memory, or beyond STORE_BYTES_MAX. */
bool store_buf_add(sc_blocks *p, store_buf *b, const void *data, size_t len);
void store_buf_free(sc_blocks *p, store_buf *b);

/* An element of a queue. */
typedef struct store_item store_item;

struct store_item {
    store_item *next;
    store_buf value;
};

typedef struct store_entry {
    store_buf key, value;
    uint64_t ones; /* how often 1 was added to it */
    bool set;
    store_item *first, *last; /* a queue under that name */
    uint64_t n_items;
} store_entry;

typedef struct store_table {
    sc_blocks *pool;
    sc_map by_key; /* entries */
    size_t n_set;
} store_table;

uint64_t store_hash(store_bytes key);
/* NULL: the key is not set. */
store_entry *store_find(const store_table *t, store_bytes key);
/* Creates the entry; NULL: out of memory. Moves other entries. */
store_entry *store_make(store_table *t, store_bytes key);
/* False: out of memory. */
bool store_set(store_table *t, store_entry *e, store_bytes value);
void store_unset(store_table *t, store_entry *e);

/* ---- emulated ranks ------------------------------------------------------ */

typedef struct store_world {
    uint32_t world, n_real;
    const uint32_t *real; /* [n_real] rising */
} store_world;

/* The growth of a counter to which real ranks have added 1 `ones` times: all
 * ranks of the world for every n_real of them. */
int64_t store_share(const store_world *w, uint64_t ones);

typedef enum store_author {
    STORE_NEVER, /* reports a failure: never set for emulated ranks */
    STORE_REAL,  /* names a real rank, which will set it */
    STORE_SOON,  /* a real rank would set it at once */
    STORE_LATE,  /* a real rank may still set it */
    STORE_NOW    /* only emulated ranks would set it */
} store_author;

/* Whether a real rank has set the same key under its own number. */
bool store_mirrored(const store_world *w, const store_table *t,
                    store_bytes key);
/* The author of a key that does not exist; it decides how many milliseconds to
 * wait for a real rank. */
store_author store_who(const store_world *w, const store_table *t,
                       store_bytes key);
/* What an emulated rank would have set, appended to `out`.  False: no
 * memory. */
bool store_made_up(const store_world *w, const store_table *t, store_bytes key,
                   sc_blocks *p, store_buf *out);

/* Natural order: numbers by value. <0, 0, >0. */
int store_order(store_bytes x, store_bytes y);

/* Like sc_store_output(), but the bytes stay. */
size_t store_peek(const sc_store_client *c, void *buf, size_t cap);

/* For a server with a clock: answers waits that have lasted too long on behalf
 * of emulated ranks. Returns the milliseconds until the next call, -1: none is
 * needed. */
int store_tick(sc_store *s, int64_t now_ms);

#endif
