/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pair.c - sends and receives between two ranks.
 *
 * The k-th send of a (source, destination, tag, size) matches the k-th receive.
 * A send ends when its message has arrived, whether or not it was received.
 */
#include "sim/world.h"

#include <inttypes.h>

#define ASK_BYTES 8192
#define TAGS      500000000u

typedef struct waiting {
    struct waiting *next;
    void *owner; /* custom collective, or NULL: the rank's task */
    uint32_t task;
} waiting;

typedef struct list {
    waiting *head, *tail;
} list;

struct sim_pair {
    sim_pair_key key;
    int32_t balance; /* messages that arrived, or receives that wait (< 0) */
    int32_t permit;  /* rendezvous: requests, or sends that wait (< 0) */
    uint32_t flying; /* messages and deferred events that name it */
    list receives, sends;
};

struct sim_pairs {
    sc_map by_key; /* sim_pair */
};

static void append(sim_world *w, list *l, void *owner, uint32_t task)
{
    waiting *x = sim_mem_alloc(w, sizeof *x);
    x->owner = owner;
    x->task = task;
    if (l->tail)
        l->tail->next = x;
    else
        l->head = x;
    l->tail = x;
}

static waiting take_first(sim_world *w, list *l)
{
    waiting x = *l->head;
    sim_mem_free(w, l->head, sizeof x);
    l->head = x.next;
    if (!x.next) l->tail = NULL;
    return x;
}

uint32_t sim_tag(uint32_t tag)
{
    return tag % TAGS;
}

static uint64_t hash_of(const sim_pair_key *k)
{
    uint64_t h = (uint64_t)k->src << 32 | k->dst;
    h ^= (h >> 29) * 0xbf58476d1ce4e5b9u;
    h += (k->size ^ (uint64_t)k->tag << 40) * 0x9e3779b97f4a7c15u;
    h += (uint64_t)(uintptr_t)k->space >> 4;
    h = (h ^ h >> 30) * 0xbf58476d1ce4e5b9u;
    return h ^ h >> 31;
}

static bool same(const sim_pair_key *a, const sim_pair_key *b)
{
    return a->space == b->space && a->src == b->src && a->dst == b->dst &&
           a->tag == b->tag && a->size == b->size;
}

static sim_pair *find(sim_world *w, sim_pair_key key)
{
    sc_map *m = &w->pairs->by_key;
    uint64_t hash = hash_of(&key);
    uint32_t at = 0;
    sim_pair *x;
    while ((x = sc_map_next_ptr(m, hash, &at)))
        if (same(&x->key, &key)) return x;
    x = sim_mem_alloc(w, sizeof *x);
    if (w->status != SC_OK) return NULL;
    if (!sc_map_add_ptr(m, w->a, hash, x)) {
        w->status = sc_error_nomem(w->err);
        return NULL;
    }
    x->key = key;
    return x;
}

/* The pair is freed when no message is in flight and no task waits. */
static void release(sim_world *w, sim_pair *x)
{
    if (x->flying || x->balance || x->permit) return;
    sc_map_remove_ptr(&w->pairs->by_key, hash_of(&x->key), x);
    sim_mem_free(w, x, sizeof *x);
}

static void done(sim_world *w, uint32_t rank, const waiting *x)
{
    if (x->owner)
        sim_custom_done(w, x->owner, x->task);
    else
        sim_task_done(w, &w->rank[rank], x->task);
}

static void post(sim_world *w, sim_pair *x, waiting sender, bool ask)
{
    sim_message *m = sim_mem_alloc(w, sizeof *m);
    m->e.rank = w->index[ask ? x->key.src : x->key.dst];
    m->what = x;
    m->from = sender.owner;
    m->task = sender.task;
    m->load = 1;
    m->size = ask ? ASK_BYTES : x->key.size;
    m->src = ask ? x->key.dst : x->key.src;
    m->dst = ask ? x->key.src : x->key.dst;
    m->kind = ask ? SIM_MSG_PAIR_ASK : SIM_MSG_PAIR;
    if (w->status != SC_OK) return;
    x->flying++;
    sim_wire_send(w, m, sim_wire_time(w, m->src, m->dst, m->size));
}

static void defer(sim_world *w, sim_pair *x, uint32_t kind, const waiting *who)
{
    sim_deferred *k = sim_mem_alloc(w, sizeof *k);
    k->e.kind = SIM_EV_DEFERRED;
    k->what = x;
    k->kind = kind;
    k->owner = who->owner;
    k->slot = who->task;
    x->flying++;
    sim_push(w, &k->e, w->q.order.now);
}

void sim_pair_resume(sim_world *w, sim_deferred *k)
{
    sim_pair *x = k->what;
    waiting who = {NULL, k->owner, k->slot};
    uint32_t dst = w->index[x->key.dst];
    x->flying--;
    if (k->kind == SIM_DEFERRED_PAIR_SEND) {
        post(w, x, who, false);
        return;
    }
    release(w, x);
    done(w, dst, &who);
}

void sim_pair_send(sim_world *w, sim_pair_key key, void *owner, uint32_t task)
{
    key.tag = sim_tag(key.tag);
    sim_pair *x = find(w, key);
    if (!x) return;
    waiting who = {NULL, owner, task};
    if (!w->o->rendezvous)
        post(w, x, who, false);
    else if (--x->permit >= 0)
        defer(w, x, SIM_DEFERRED_PAIR_SEND, &who);
    else
        append(w, &x->sends, owner, task);
}

static void listen(sim_world *w, sim_pair *x, const waiting *who)
{
    if (--x->balance >= 0)
        defer(w, x, SIM_DEFERRED_PAIR, who);
    else
        append(w, &x->receives, who->owner, who->task);
}

void sim_pair_receive(sim_world *w, sim_pair_key key, void *owner,
                      uint32_t task)
{
    key.tag = sim_tag(key.tag);
    sim_pair *x = find(w, key);
    if (!x) return;
    waiting who = {NULL, owner, task};
    if (w->o->rendezvous)
        post(w, x, who, true);
    else
        listen(w, x, &who);
}

static void asked(sim_world *w, sim_pair *x, const waiting *receiver)
{
    listen(w, x, receiver);
    if (++x->permit <= 0) post(w, x, take_first(w, &x->sends), false);
}

void sim_pair_arrive(sim_world *w, sim_message *m)
{
    sim_pair *x = m->what;
    waiting sender = {NULL, m->from, m->task};
    uint32_t src = w->index[x->key.src], dst = w->index[x->key.dst];
    if (m->kind == SIM_MSG_PAIR_ASK) {
        x->flying--;
        asked(w, x, &sender);
        return;
    }
    bool wanted = x->balance < 0;
    done(w, src, &sender);
    x->flying--;
    x->balance++;
    if (!wanted) return;
    waiting receiver = take_first(w, &x->receives);
    release(w, x);
    done(w, dst, &receiver);
}

static void report(const sim_pair *x, const list *l, uint32_t kind,
                   sim_note *note, void *ctx)
{
    bool send = kind == SIM_WAITS_RECEIVE;
    sim_waiting is = {.rank = send ? x->key.src : x->key.dst,
                      .on = send ? x->key.dst : x->key.src,
                      .kind = kind,
                      .tag = x->key.tag,
                      .size = x->key.size};
    for (const waiting *k = l->head; k; k = k->next) {
        is.task = k->task;
        if (!k->owner) note(ctx, &is);
    }
}

void sim_pair_waiting(sim_world *w, sim_note *note, void *ctx)
{
    const sim_pair *x;
    for (uint32_t i = 0; (x = sc_map_each_ptr(&w->pairs->by_key, &i));) {
        report(x, &x->receives, SIM_WAITS_SEND, note, ctx);
        report(x, &x->sends, SIM_WAITS_RECEIVE, note, ctx);
    }
}

/* The number of ranks that a simulated one represents. */
static uint64_t representative(const sim_world *w, uint32_t rank)
{
    uint64_t n = 0;
    for (uint32_t i = 0; w->symmetric && i < w->w->n_ranks; i++)
        n += w->index[i] == w->index[rank];
    return w->symmetric ? n : 1;
}

static bool is_before(const sim_pair_key *a, const sim_pair_key *b)
{
    if (a->src != b->src) return a->src < b->src;
    if (a->dst != b->dst) return a->dst < b->dst;
    return a->tag != b->tag ? a->tag < b->tag : a->size < b->size;
}

void sim_pair_unreceived(sim_world *w)
{
    const sim_pair_key *first = NULL;
    uint64_t n = 0;
    const sim_pair *x;
    for (uint32_t i = 0; (x = sc_map_each_ptr(&w->pairs->by_key, &i));) {
        if (x->balance <= 0) continue;
        n += (uint64_t)x->balance * representative(w, x->key.src);
        if (!first || is_before(&x->key, first)) first = &x->key;
    }
    if (first)
        sim_warn(w, SIM_WARN_UNRECEIVED,
                 "nobody receives %" PRIu64 " of the messages sent; the first "
                 "has %" PRIu64 " bytes and tag %u, from rank %u to rank %u",
                 n, first->size, first->tag, first->src, first->dst);
}

sc_status sim_pair_init(sim_world *w)
{
    w->pairs = SC_NEW(w->a, sim_pairs);
    return w->pairs ? SC_OK : sc_error_nomem(w->err);
}
