/* SPDX-License-Identifier: Apache-2.0 */
/* memo.c - a small table that threads fill without waiting for each other. */
#include "hw/hw_memo.h"

#include <stdatomic.h>
#include <string.h>

enum { SLOTS = 32 };

typedef struct slot {
    atomic_uint_least64_t key; /* 0: free */
    atomic_bool ready;
    unsigned char data[HW_MEMO_BYTES];
} slot;

struct hw_memo {
    slot s[SLOTS];
};

struct hw_memo *hw_memo_new(sc_arena *a)
{
    struct hw_memo *m = SC_NEW(a, struct hw_memo);
    for (int i = 0; m != NULL && i < SLOTS; i++) {
        atomic_init(&m->s[i].key, 0);
        atomic_init(&m->s[i].ready, false);
    }
    return m;
}

bool hw_memo_get(struct hw_memo *memo, uint64_t key, void *out, size_t size)
{
    for (int i = 0; memo != NULL && i < SLOTS; i++) {
        slot *s = &memo->s[i];
        if (atomic_load_explicit(&s->key, memory_order_acquire) != key)
            continue;
        if (!atomic_load_explicit(&s->ready, memory_order_acquire))
            return false;
        memcpy(out, s->data, size);
        return true;
    }
    return false;
}

void hw_memo_put(struct hw_memo *memo, uint64_t key, const void *data,
                 size_t size)
{
    for (int i = 0; memo != NULL && size <= HW_MEMO_BYTES && i < SLOTS; i++) {
        slot *s = &memo->s[i];
        uint64_t free = 0;
        if (!atomic_compare_exchange_strong(&s->key, &free, key)) {
            if (free == key) return; /* another thread keeps the same result */
            continue;
        }
        memcpy(s->data, data, size);
        atomic_store_explicit(&s->ready, true, memory_order_release);
        return;
    }
}
