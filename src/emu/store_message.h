/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_message.h - messages of PyTorch's TCPStore clients.
 *
 * A message is a byte for the kind, then its fields: keys and values are a
 * 64-bit length and as many bytes, lists have a 64-bit count before them;
 * numbers are in the machine's byte order. The first byte depends on the
 * dialect.
 */
#ifndef EMU_STORE_MESSAGE_H
#define EMU_STORE_MESSAGE_H

#include "emu/store.h"

typedef enum store_ask {
    STORE_VALIDATE,
    STORE_SET,
    STORE_COMPARE_SET,
    STORE_GET,
    STORE_ADD,
    STORE_CHECK,
    STORE_WAIT,
    STORE_NUM_KEYS,
    STORE_WATCH,
    STORE_DELETE,
    STORE_APPEND,
    STORE_MULTI_GET,
    STORE_MULTI_SET,
    STORE_CANCEL_WAIT,
    STORE_PING,
    STORE_QUEUE_PUSH,
    STORE_QUEUE_POP,
    STORE_QUEUE_LEN,
    STORE_LIST_KEYS,
    STORE_BARRIER,
    STORE_N_ASKS
} store_ask;

typedef enum store_dialect {
    STORE_UNKNOWN,
    STORE_TORCH_1,  /* to 2.0: WATCH_KEY 7, DELETE_KEY 8 */
    STORE_TORCH_21, /* before it was validated: DELETE_KEY 7 ... */
    STORE_TORCH_2   /* VALIDATE 0 and a magic number first */
} store_dialect;

#define STORE_MAGIC 0x3C85F7CEu

/* A whole message, in the bytes as received. */
typedef struct store_message {
    store_ask ask;
    store_bytes key, value, wanted; /* wanted: COMPARE_SET's new value */
    int64_t amount;                 /* ADD; BARRIER: how many must come */
    uint32_t nonce;                 /* VALIDATE, PING */
    uint64_t n;                     /* of a list */
    store_bytes list;               /* its elements, as they came */
    size_t size;                    /* bytes of the message */
} store_message;

typedef enum store_parsed {
    STORE_WHOLE,
    STORE_MORE,    /* `size`: at least that many bytes are needed */
    STORE_NONSENSE /* not a message; too long */
} store_parsed;

/* `first`: nothing arrived on the connection before; `waits`: its last WAIT is
 * not answered. *dialect keeps what distinguishes dialects. */
store_parsed store_parse(store_bytes in, bool first, bool waits,
                         store_dialect *dialect, store_message *out);

/* Removes the first key of a list; with a value behind it if `value` is not
 * NULL. */
store_bytes store_next(store_bytes *list, store_bytes *value);

#endif
