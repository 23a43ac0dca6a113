/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_message.c - messages of TCPStore's clients, in three dialects.
 *
 * PyTorch 1.x and 2.1 do not say which dialect they use. They agree on the
 * first seven messages; a client of 1.x sends WATCH_KEY on a connection of its
 * own, and sends nothing while it waits.
 */
#include "emu/store_message.h"

#include <string.h>

static const uint8_t torch_1[] = {
    STORE_SET,  STORE_COMPARE_SET, STORE_GET,   STORE_ADD,   STORE_CHECK,
    STORE_WAIT, STORE_NUM_KEYS,    STORE_WATCH, STORE_DELETE};
static const uint8_t torch_21[] = {
    STORE_SET,    STORE_COMPARE_SET, STORE_GET,       STORE_ADD,
    STORE_CHECK,  STORE_WAIT,        STORE_NUM_KEYS,  STORE_DELETE,
    STORE_APPEND, STORE_MULTI_GET,   STORE_MULTI_SET, STORE_CANCEL_WAIT};
static const uint8_t torch_2[] = {
    STORE_VALIDATE,    STORE_SET,       STORE_COMPARE_SET, STORE_GET,
    STORE_ADD,         STORE_CHECK,     STORE_WAIT,        STORE_NUM_KEYS,
    STORE_DELETE,      STORE_APPEND,    STORE_MULTI_GET,   STORE_MULTI_SET,
    STORE_CANCEL_WAIT, STORE_PING,      STORE_QUEUE_PUSH,  STORE_QUEUE_POP,
    STORE_QUEUE_LEN,   STORE_LIST_KEYS, STORE_BARRIER};

/* k key, v value, w the second value, i 64 bits, u 32 bits, K list of keys, P
 * list of keys with values */
static const char *const layouts[STORE_N_ASKS] = {
    "u",  "kv", "kvw", "k", "ki", "K",  "K", "",  "k", "k",
    "kv", "K",  "P",   "",  "u",  "kv", "k", "k", "",  "ki"};

typedef struct cursor {
    store_bytes in;
    size_t at;
    size_t need; /* bytes that are needed, if there are too few */
    bool nonsense;
} cursor;

static bool enough(cursor *c, uint64_t n)
{
    if (c->nonsense) return false;
    if (n <= c->in.len - c->at) return true;
    c->need = c->at + (size_t)n;
    return false;
}

static bool number(cursor *c, void *out, size_t size)
{
    if (!enough(c, size)) return false;
    memcpy(out, c->in.at + c->at, size);
    c->at += size;
    return true;
}

static bool bytes(cursor *c, uint64_t most, store_bytes *out)
{
    uint64_t len;
    if (!number(c, &len, sizeof len)) return false;
    c->nonsense = len > most;
    if (!enough(c, len)) return false;
    *out = (store_bytes){c->in.at + c->at, (size_t)len};
    c->at += (size_t)len;
    return true;
}

static bool list(cursor *c, bool values, store_message *m)
{
    store_bytes x;
    if (!number(c, &m->n, sizeof m->n)) return false;
    c->nonsense = m->n > STORE_KEYS_MAX;
    size_t from = c->at;
    if (!enough(c, m->n * sizeof(uint64_t) * (values ? 2 : 1))) return false;
    for (uint64_t i = 0; i < m->n; i++)
        if (!bytes(c, STORE_KEY_MAX, &x) ||
            (values && !bytes(c, STORE_VALUE_MAX, &x)))
            return false;
    m->list = (store_bytes){c->in.at + from, c->at - from};
    return true;
}

static bool field(cursor *c, char kind, store_message *m)
{
    switch (kind) {
    case 'k': return bytes(c, STORE_KEY_MAX, &m->key);
    case 'v': return bytes(c, STORE_VALUE_MAX, &m->value);
    case 'w': return bytes(c, STORE_VALUE_MAX, &m->wanted);
    case 'i': return number(c, &m->amount, sizeof m->amount);
    case 'u': return number(c, &m->nonce, sizeof m->nonce);
    default: return list(c, kind == 'P', m);
    }
}

/* A new connection: whether the magic number follows. */
static bool validates(store_bytes in)
{
    uint32_t magic;
    memcpy(&magic, in.at + 1, sizeof magic);
    return magic == STORE_MAGIC;
}

/* STORE_N_ASKS: no message begins with this byte. */
static store_ask asked(uint8_t byte, bool first, bool waits,
                       store_dialect *dialect)
{
    if (*dialect == STORE_TORCH_2)
        return byte < sizeof torch_2 ? torch_2[byte] : STORE_N_ASKS;
    if (*dialect == STORE_UNKNOWN && byte >= 7) {
        if ((byte == 7 && !first) || byte > 8 || waits)
            *dialect = STORE_TORCH_21;
        else
            *dialect = STORE_TORCH_1;
    }
    if (*dialect == STORE_TORCH_21)
        return byte < sizeof torch_21 ? torch_21[byte] : STORE_N_ASKS;
    return byte < sizeof torch_1 ? torch_1[byte] : STORE_N_ASKS;
}

store_parsed store_parse(store_bytes in, bool first, bool waits,
                         store_dialect *dialect, store_message *out)
{
    *out = (store_message){.size = 1};
    if (in.len == 0) return STORE_MORE;
    if (first && in.at[0] == 0) {
        out->size = 1 + sizeof(uint32_t);
        if (in.len < out->size) return STORE_MORE;
        if (validates(in)) *dialect = STORE_TORCH_2;
    }
    cursor c = {.in = in, .at = 1};
    out->ask = asked(in.at[0], first, waits, dialect);
    if (out->ask == STORE_N_ASKS) return STORE_NONSENSE;
    for (const char *f = layouts[out->ask]; *f; f++)
        if (!field(&c, *f, out)) {
            out->size = c.need;
            return c.nonsense ? STORE_NONSENSE : STORE_MORE;
        }
    out->size = c.at;
    if (out->ask == STORE_VALIDATE && out->nonce != STORE_MAGIC)
        return STORE_NONSENSE;
    return STORE_WHOLE;
}

static store_bytes pop(store_bytes *list_)
{
    uint64_t len;
    memcpy(&len, list_->at, sizeof len);
    store_bytes out = {list_->at + sizeof len, (size_t)len};
    list_->at += sizeof len + (size_t)len;
    list_->len -= sizeof len + (size_t)len;
    return out;
}

store_bytes store_next(store_bytes *list_, store_bytes *value)
{
    store_bytes key = pop(list_);
    if (value) *value = pop(list_);
    return key;
}
