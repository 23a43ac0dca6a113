/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store.c - the rendezvous store: the effect of each message, and the clients
 * that wait.
 *
 * A waiting client goes through its keys in order and stops at the first that
 * is not set and that no emulated rank would set. If all real ranks wait, no
 * real rank will set anything; programs create groups in the same order
 * everywhere, so the client that is furthest behind waits for an emulated rank.
 */
#include "emu/store_message.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    STOP_WAITING = 0,
    WAIT_CANCELED = 1,
    READY = 0,
    NOT_READY = 1,
    KEY_UPDATED = 0,
    KEY_CREATED = 1,
    KEY_DELETED = 2,
    KEY_REGISTERED = 3
};

#define SOON_MS 200
#define LATE_MS 10000

struct sc_store_client {
    sc_store_client *next, *prev;
    store_dialect dialect;
    bool heard;         /* a message has arrived */
    uint64_t offset;    /* offset of `in` in */
    store_buf in, out;  /* not yet understood; not yet sent */
    size_t need, taken; /* bytes of a message; of `out` already sent */
    store_buf keys;     /* it waits for; empty: it does not wait */
    store_bytes rest;   /* the remaining keys, from the first that is not set */
    int64_t barrier;   /* ranks that must come to this key; 0: it must be set */
    int64_t since;     /* limit of the wait for this key in ms; < 0: unknown */
    store_buf watched; /* keys, as in a list */
    /* counter of its last request; empty: another request */
    store_buf polled;
};

struct sc_store {
    sc_blocks pool;
    store_table table;
    store_world world;
    sc_store_client *first;
    sc_store_client *spare;
};

sc_status sc_store_new(uint32_t world, const uint32_t *real, uint32_t n_real,
                       sc_arena *a, sc_store **out, sc_err *err)
{
    for (uint32_t i = 0; i < n_real; i++)
        if (real[i] >= world || (i > 0 && real[i] <= real[i - 1]))
            return sc_error(err, SC_EINPUT, SC_C_RANGE, sc_pos_none(), NULL,
                            "rank %u of a world of %u", real[i], world);
    if (n_real == 0)
        return sc_error(err, SC_EINPUT, SC_C_RANGE, sc_pos_none(), NULL,
                        "a store without real ranks");
    sc_store *s = SC_NEW(a, sc_store);
    uint32_t *copy = SC_NEW_N(a, uint32_t, n_real);
    if (!s || !copy) return sc_error_nomem(err);
    memcpy(copy, real, n_real * sizeof *copy);
    s->pool = (sc_blocks){.a = a, .limit = STORE_BYTES_MAX};
    s->table.pool = &s->pool;
    s->world = (store_world){world, n_real, copy};
    *out = s;
    return SC_OK;
}

sc_store_client *sc_store_connect(sc_store *s)
{
    sc_store_client *c = s->spare;
    if (c)
        s->spare = c->next;
    else if ((c = SC_NEW(s->pool.a, sc_store_client)) == NULL)
        return NULL;
    *c = (sc_store_client){.next = s->first, .since = -1};
    if (s->first) s->first->prev = c;
    s->first = c;
    return c;
}

void sc_store_close(sc_store *s, sc_store_client *c)
{
    store_buf_free(&s->pool, &c->in);
    store_buf_free(&s->pool, &c->out);
    store_buf_free(&s->pool, &c->keys);
    store_buf_free(&s->pool, &c->watched);
    store_buf_free(&s->pool, &c->polled);
    if (c->prev)
        c->prev->next = c->next;
    else
        s->first = c->next;
    if (c->next) c->next->prev = c->prev;
    c->next = s->spare;
    s->spare = c;
}

bool sc_store_has_output(const sc_store_client *c)
{
    return c->out.len > c->taken;
}

size_t store_peek(const sc_store_client *c, void *buf, size_t cap)
{
    size_t n = c->out.len - c->taken;
    if (n > cap) n = cap;
    if (n != 0) memcpy(buf, c->out.at + c->taken, n);
    return n;
}

size_t sc_store_output(sc_store_client *c, void *buf, size_t cap)
{
    size_t n = store_peek(c, buf, cap);
    c->taken += n;
    if (c->taken == c->out.len) c->out.len = c->taken = 0;
    return n;
}

/* ---- answers ------------------------------------------------------------- */

static bool say(sc_store *s, sc_store_client *c, const void *data, size_t len)
{
    return store_buf_add(&s->pool, &c->out, data, len);
}

static bool say_byte(sc_store *s, sc_store_client *c, uint8_t v)
{
    return say(s, c, &v, sizeof v);
}

static bool say_number(sc_store *s, sc_store_client *c, int64_t v)
{
    return say(s, c, &v, sizeof v);
}

static bool say_bytes(sc_store *s, sc_store_client *c, store_bytes v)
{
    uint64_t len = v.len;
    return say(s, c, &len, sizeof len) && say(s, c, v.at, v.len);
}

static bool say_value(sc_store *s, sc_store_client *c, store_bytes key)
{
    const store_entry *e = store_find(&s->table, key);
    if (e && e->set)
        return say_bytes(s, c, (store_bytes){e->value.at, e->value.len});
    store_buf made = {0};
    bool ok = store_made_up(&s->world, &s->table, key, &s->pool, &made) &&
              say_bytes(s, c, (store_bytes){made.at, made.len});
    store_buf_free(&s->pool, &made);
    return ok;
}

/* ---- waiting ------------------------------------------------------------- */

static bool present(const sc_store *s, store_bytes key)
{
    const store_entry *e = store_find(&s->table, key);
    return e && (e->set || e->n_items != 0);
}

static store_bytes standing_at(const sc_store_client *c)
{
    store_bytes rest = c->rest;
    return store_next(&rest, NULL);
}

/* Whether a client need not wait for a key any longer: as many real ranks have
 * come to its barrier as may be among its members. */
static bool reached(const sc_store *s, const sc_store_client *c,
                    store_bytes key)
{
    if (c->barrier == 0) return present(s, key);
    const store_entry *e = store_find(&s->table, key);
    uint64_t all = (uint64_t)c->barrier, real = s->world.n_real;
    return e && e->ones >= (all < real ? all : real);
}

/* Of a barrier of a part of the world, not all real ranks are members. */
static store_author author(const sc_store *s, const sc_store_client *c,
                           store_bytes key)
{
    if (c->barrier == 0) return store_who(&s->world, &s->table, key);
    return c->barrier < s->world.world ? STORE_LATE : STORE_REAL;
}

static void wait_over(sc_store *s, sc_store_client *c)
{
    c->barrier = 0;
    store_buf_free(&s->pool, &c->keys);
    c->rest = (store_bytes){0};
    c->since = -1;
}

/* Continues through its keys, answering the first one in any case if `forced`;
 * reports completion. False: no memory. */
static bool go_on(sc_store *s, sc_store_client *c, bool forced)
{
    while (c->rest.len != 0) {
        store_bytes rest = c->rest, key = store_next(&rest, NULL);
        if (!forced && !reached(s, c, key) && author(s, c, key) != STORE_NOW)
            return true;
        forced = false;
        c->rest = rest;
        c->since = -1;
    }
    wait_over(s, c);
    return say_byte(s, c, STOP_WAITING);
}

/* PyTorch 1.x asks for a barrier's counter until it is complete. */
static bool polls(const sc_store *s, const sc_store_client *c)
{
    if (c->polled.len == 0) return false;
    const store_entry *e =
        store_find(&s->table, (store_bytes){c->polled.at, c->polled.len});
    return e && e->ones % s->world.n_real != 0;
}

/* The client to answer if all real ranks wait; NULL: some rank does not
 * wait. */
static sc_store_client *behind(const sc_store *s)
{
    sc_store_client *least = NULL;
    uint32_t n = 0;
    for (sc_store_client *c = s->first; c; c = c->next) {
        n += polls(s, c);
        if (c->rest.len == 0) continue;
        store_bytes key = standing_at(c);
        store_author who = author(s, c, key);
        if (who == STORE_NEVER) continue;
        n++;
        if (who == STORE_REAL) continue;
        if (!least || store_order(key, standing_at(least)) < 0) least = c;
    }
    return n >= s->world.n_real ? least : NULL;
}

/* Something was set, or a client began to wait. */
static bool resolve(sc_store *s)
{
    sc_store_client *c;
    for (c = s->first; c; c = c->next)
        if (c->rest.len != 0 && !go_on(s, c, false)) return false;
    while ((c = behind(s)) != NULL)
        if (!go_on(s, c, true)) return false;
    return true;
}

int store_tick(sc_store *s, int64_t now_ms)
{
    int64_t next = -1;
    for (sc_store_client *c = s->first; c; c = c->next) {
        while (c->rest.len != 0) {
            store_author who = author(s, c, standing_at(c));
            if (who != STORE_SOON && who != STORE_LATE) break;
            if (c->since < 0) c->since = now_ms;
            int64_t left =
                c->since - now_ms + (who == STORE_SOON ? SOON_MS : LATE_MS);
            if (left > 0) {
                if (next < 0 || left < next) next = left;
                break;
            }
            if (!go_on(s, c, true)) break;
        }
    }
    return (int)next;
}

/* ---- changes ------------------------------------------------------------- */

static bool watches(const sc_store_client *c, store_bytes key)
{
    store_bytes list = {c->watched.at, c->watched.len};
    while (list.len != 0) {
        store_bytes k = store_next(&list, NULL);
        if (k.len == key.len &&
            (k.len == 0 || memcmp(k.at, key.at, k.len) == 0))
            return true;
    }
    return false;
}

/* Notifies clients that asked for WATCH_KEY. */
static bool notify(sc_store *s, store_bytes key, uint8_t what, store_bytes old,
                   store_bytes now)
{
    for (sc_store_client *c = s->first; c; c = c->next)
        if (watches(c, key) && !(say_byte(s, c, what) && say_bytes(s, c, key) &&
                                 say_bytes(s, c, old) && say_bytes(s, c, now)))
            return false;
    return true;
}

static bool change(sc_store *s, store_bytes key, store_bytes value)
{
    store_entry *e = store_make(&s->table, key);
    if (!e) return false;
    uint8_t what = e->set ? KEY_UPDATED : KEY_CREATED;
    store_bytes old = {e->value.at, e->value.len};
    return notify(s, key, what, old, value) && store_set(&s->table, e, value) &&
           resolve(s);
}

static int64_t number_of(const store_entry *e)
{
    char text[24] = "";
    size_t n = e->value.len < sizeof text - 1 ? e->value.len : sizeof text - 1;
    if (!e->set || n == 0) return 0;
    memcpy(text, e->value.at, n);
    return strtoll(text, NULL, 10);
}

/* What a counter grows by if a real rank adds 1. */
static uint64_t add_one(const sc_store *s, store_entry *e)
{
    e->ones++;
    return (uint64_t)(store_share(&s->world, e->ones) -
                      store_share(&s->world, e->ones - 1));
}

static bool set_number(sc_store *s, store_bytes key, int64_t v)
{
    char text[24];
    int n = snprintf(text, sizeof text, "%" PRId64, v);
    return change(s, key, (store_bytes){(uint8_t *)text, (size_t)n});
}

static bool add(sc_store *s, sc_store_client *c, const store_message *m)
{
    store_entry *e = store_make(&s->table, m->key);
    if (!e) return false;
    uint64_t by = (uint64_t)m->amount;
    if (by == 0 && !store_buf_add(&s->pool, &c->polled, m->key.at, m->key.len))
        return false;
    if (m->amount == 1) by = add_one(s, e);
    int64_t sum = (int64_t)((uint64_t)number_of(e) + by);
    return say_number(s, c, sum) && set_number(s, m->key, sum);
}

static bool compare_set(sc_store *s, sc_store_client *c, const store_message *m)
{
    const store_entry *e = store_find(&s->table, m->key);
    store_bytes now = {0};
    if (e && e->set) {
        now = (store_bytes){e->value.at, e->value.len};
        if (now.len != m->value.len ||
            (now.len != 0 && memcmp(now.at, m->value.at, now.len) != 0))
            return say_bytes(s, c, now);
    } else if (m->value.len != 0) {
        return say_bytes(s, c, m->value);
    }
    return say_bytes(s, c, m->wanted) && change(s, m->key, m->wanted);
}

static bool append(sc_store *s, const store_message *m)
{
    store_buf all = {0};
    const store_entry *e = store_find(&s->table, m->key);
    bool ok = true;
    if (e && e->set)
        ok = store_buf_add(&s->pool, &all, e->value.at, e->value.len);
    ok = ok && store_buf_add(&s->pool, &all, m->value.at, m->value.len) &&
         change(s, m->key, (store_bytes){all.at, all.len});
    store_buf_free(&s->pool, &all);
    return ok;
}

static bool erase(sc_store *s, sc_store_client *c, store_bytes key)
{
    store_entry *e = store_find(&s->table, key);
    bool was = e && e->set;
    if (was) {
        store_bytes old = {e->value.at, e->value.len};
        if (!notify(s, key, KEY_DELETED, old, (store_bytes){0})) return false;
        store_unset(&s->table, e);
    }
    return say_number(s, c, was);
}

/* ---- queues -------------------------------------------------------------- */

static bool push(sc_store *s, const store_message *m)
{
    store_buf block = {0}, value = {0};
    store_entry *e = store_make(&s->table, m->key);
    store_item item = {0}, *at;
    if (!e || !store_buf_add(&s->pool, &value, m->value.at, m->value.len))
        return false;
    item.value = value;
    if (!store_buf_add(&s->pool, &block, &item, sizeof item)) return false;
    at = (store_item *)(void *)block.at;
    if (e->last)
        e->last->next = at;
    else
        e->first = at;
    e->last = at;
    e->n_items++;
    return resolve(s);
}

static bool pop(sc_store *s, sc_store_client *c, store_bytes key)
{
    store_entry *e = store_find(&s->table, key);
    if (!say_number(s, c, e ? (int64_t)e->n_items : 0)) return false;
    if (!e || e->n_items == 0) return true;
    store_item *i = e->first;
    store_buf value = i->value, block = {(uint8_t *)i, sizeof *i, sizeof *i};
    e->first = i->next;
    if (!e->first) e->last = NULL;
    e->n_items--;
    bool ok = say_bytes(s, c, (store_bytes){value.at, value.len});
    store_buf_free(&s->pool, &value);
    store_buf_free(&s->pool, &block);
    return ok;
}

static bool queue_len(sc_store *s, sc_store_client *c, store_bytes key)
{
    const store_entry *e = store_find(&s->table, key);
    return say_number(s, c, e ? (int64_t)e->n_items : 0);
}

/* ---- messages ------------------------------------------------------------ */

/* Whether the key exists, or a real rank's counterpart of an emulated rank's
 * key. */
static bool check(sc_store *s, sc_store_client *c, store_bytes list)
{
    bool all = true;
    while (list.len != 0 && all) {
        store_bytes key = store_next(&list, NULL);
        all = present(s, key) || store_mirrored(&s->world, &s->table, key);
    }
    return say_byte(s, c, all ? READY : NOT_READY);
}

static bool wait_for(sc_store *s, sc_store_client *c, store_bytes list)
{
    store_buf_free(&s->pool, &c->keys);
    if (!store_buf_add(&s->pool, &c->keys, list.at, list.len)) return false;
    c->rest = (store_bytes){c->keys.at, list.len};
    c->since = -1;
    return go_on(s, c, false) && resolve(s);
}

/* Counts the client, which waits until all have come. */
static bool barrier(sc_store *s, sc_store_client *c, const store_message *m)
{
    uint64_t len = m->key.len;
    store_entry *e = store_make(&s->table, m->key);
    store_buf_free(&s->pool, &c->keys);
    if (!e || !store_buf_add(&s->pool, &c->keys, &len, sizeof len) ||
        !store_buf_add(&s->pool, &c->keys, m->key.at, m->key.len))
        return false;
    c->rest = (store_bytes){c->keys.at, c->keys.len};
    c->since = -1;
    c->barrier = m->amount > 1 ? m->amount : 1;
    uint64_t sum = (uint64_t)number_of(e) + add_one(s, e);
    return set_number(s, m->key, (int64_t)sum);
}

static bool list_keys(sc_store *s, sc_store_client *c)
{
    const store_entry *e;
    uint32_t at = 0;
    if (!say_number(s, c, (int64_t)s->table.n_set)) return false;
    while ((e = sc_map_each_ptr(&s->table.by_key, &at)) != NULL)
        if (e->set && !say_bytes(s, c, (store_bytes){e->key.at, e->key.len}))
            return false;
    return true;
}

static bool multi_get(sc_store *s, sc_store_client *c, store_bytes list)
{
    while (list.len != 0)
        if (!say_value(s, c, store_next(&list, NULL))) return false;
    return true;
}

static bool multi_set(sc_store *s, store_bytes list)
{
    while (list.len != 0) {
        store_bytes value, key = store_next(&list, &value);
        if (!change(s, key, value)) return false;
    }
    return true;
}

static bool watch(sc_store *s, sc_store_client *c, store_bytes key)
{
    uint64_t len = key.len;
    return store_buf_add(&s->pool, &c->watched, &len, sizeof len) &&
           store_buf_add(&s->pool, &c->watched, key.at, key.len) &&
           say_byte(s, c, KEY_REGISTERED);
}

/* False: no memory. */
static bool answer(sc_store *s, sc_store_client *c, const store_message *m)
{
    switch (m->ask) {
    case STORE_SET: return change(s, m->key, m->value);
    case STORE_COMPARE_SET: return compare_set(s, c, m);
    case STORE_GET: return say_value(s, c, m->key);
    case STORE_ADD: return add(s, c, m);
    case STORE_CHECK: return check(s, c, m->list);
    case STORE_WAIT: return wait_for(s, c, m->list);
    case STORE_NUM_KEYS: return say_number(s, c, (int64_t)s->table.n_set);
    case STORE_WATCH: return watch(s, c, m->key);
    case STORE_DELETE: return erase(s, c, m->key);
    case STORE_APPEND: return append(s, m);
    case STORE_MULTI_GET: return multi_get(s, c, m->list);
    case STORE_MULTI_SET: return multi_set(s, m->list);
    case STORE_CANCEL_WAIT: return say_byte(s, c, WAIT_CANCELED);
    case STORE_PING: return say(s, c, &m->nonce, sizeof m->nonce);
    case STORE_QUEUE_PUSH: return push(s, m);
    case STORE_QUEUE_POP: return pop(s, c, m->key);
    case STORE_QUEUE_LEN: return queue_len(s, c, m->key);
    case STORE_LIST_KEYS: return list_keys(s, c);
    case STORE_BARRIER: return barrier(s, c, m);
    case STORE_VALIDATE:
    case STORE_N_ASKS: break;
    }
    return true;
}

static sc_status full(sc_store_client *c, sc_err *err)
{
    return sc_error(
        err, SC_EINPUT, SC_C_TOO_BIG, sc_pos_byte("store", c->offset), NULL,
        "more than %u MiB in the store", (unsigned)(STORE_BYTES_MAX >> 20));
}

/* Parses what has arrived as far as possible. */
static sc_status consume(sc_store *s, sc_store_client *c, sc_err *err)
{
    size_t done = 0;
    sc_status status = SC_OK;
    c->need = 1;
    while (done < c->in.len) {
        store_message m;
        store_bytes in = {c->in.at + done, c->in.len - done};
        store_parsed p =
            store_parse(in, !c->heard, c->rest.len != 0, &c->dialect, &m);
        c->need = m.size;
        if (p == STORE_MORE) break;
        if (p == STORE_NONSENSE)
            return sc_error(err, SC_EINPUT, SC_C_SYNTAX,
                            sc_pos_byte("store", c->offset), NULL,
                            "this is not a message of a TCPStore client");
        c->heard = true;
        /* a client that sends a new request no longer waits */
        if (c->rest.len != 0) wait_over(s, c);
        store_buf_free(&s->pool, &c->polled);
        if (!answer(s, c, &m)) {
            status = full(c, err);
            break;
        }
        done += m.size;
        c->offset += m.size;
        c->need = 1;
    }
    c->in.len -= done;
    if (c->in.len == 0)
        store_buf_free(&s->pool, &c->in);
    else if (done != 0)
        memmove(c->in.at, c->in.at + done, c->in.len);
    return status;
}

sc_status sc_store_input(sc_store *s, sc_store_client *c, const void *data,
                         size_t len, sc_err *err)
{
    if (!store_buf_add(&s->pool, &c->in, data, len)) return full(c, err);
    return c->in.len >= c->need ? consume(s, c, err) : SC_OK;
}
