/* SPDX-License-Identifier: Apache-2.0 */
/* declared.c - groups whose members another library or a binding of the
 * program's language has named, for a library that learns only their number. */
#include "common/inside.h"

#include <stdlib.h>
#include <string.h>

/* What a program tells a group at once, with an id in it. */
#define TOLD_LEAST 128u
#define TOLD_MOST  4096u

typedef struct declared {
    uint32_t n, place, *rank;      /* place of this rank; NULL: the world */
    uint32_t found;                /* how often */
    unsigned char told[TOLD_MOST]; /* the last bytes */
    size_t n_told;
    uint64_t declared_at, told_at; /* in the order of these events */
} declared;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static declared *all;
static uint32_t n_all;
static uint64_t events;
static _Thread_local uint32_t in_use[2] = {LIVE_ANY, LIVE_ANY};

static declared *find(const declared *d)
{
    for (uint32_t i = 0; i < n_all; i++) {
        declared *x = &all[i];
        if (x->n == d->n && !x->rank == !d->rank &&
            (!x->rank || memcmp(x->rank, d->rank, d->n * sizeof *d->rank) == 0))
            return x;
    }
    return NULL;
}

static declared *add(live *l, const declared *d)
{
    declared *more = realloc(all, (n_all + 1) * sizeof *all);
    if (!more) live_die(l, "out of memory");
    all = more;
    all[n_all] = *d;
    size_t size = sizeof *d->rank;
    if (d->rank)
        all[n_all].rank =
            memcpy(live_alloc(l, d->n, size), d->rank, d->n * size);
    return &all[n_all++];
}

uint32_t live_declare(live *l, const uint32_t *rank, uint32_t n)
{
    declared d = {.n = n, .place = n, .rank = (uint32_t *)rank};
    bool world = n == live_world(l);
    for (uint32_t i = 0; i < n && rank; i++) {
        if (rank[i] == live_rank(l)) d.place = i;
        world = world && rank[i] == i;
    }
    if (world) d.rank = NULL, d.place = live_rank(l);
    pthread_mutex_lock(&mutex);
    declared *x = find(&d);
    if (!x) x = add(l, &d);
    x->declared_at = ++events;
    uint32_t k = (uint32_t)(x - all);
    pthread_mutex_unlock(&mutex);
    return k;
}

void live_declared_use(uint32_t k, uint32_t or_this)
{
    in_use[0] = k;
    in_use[1] = or_this;
}

void live_declared_told(uint32_t k, const void *data, size_t len)
{
    if (len < TOLD_LEAST || len > TOLD_MOST) return;
    pthread_mutex_lock(&mutex);
    declared *d = &all[k];
    memcpy(d->told, data, len);
    d->n_told = len;
    d->told_at = ++events;
    pthread_mutex_unlock(&mutex);
}

static bool knows(const declared *d, const void *id, size_t len)
{
    return id && memmem(d->told, d->n_told, id, len);
}

static bool fits(const declared *d, uint32_t n, uint32_t place)
{
    return d->n == n && d->place == place;
}

/* Whether it is rather `a`. */
static bool before(const declared *a, const declared *b, const void *id,
                   size_t len)
{
    bool x = knows(a, id, len), y = knows(b, id, len);
    if (x || y) return x && (!y || a->told_at > b->told_at);
    if (!a->found != !b->found) return !a->found;
    return a->declared_at > b->declared_at;
}

static declared *choose(uint32_t n, uint32_t place, const void *id, size_t len,
                        bool *sure)
{
    declared *best = NULL;
    uint32_t n_fit = 0;
    *sure = true;
    for (int i = 0; i < 2; i++)
        if (in_use[i] != LIVE_ANY && fits(&all[in_use[i]], n, place))
            return &all[in_use[i]];
    for (uint32_t i = 0; i < n_all; i++) {
        declared *d = &all[i];
        if (!fits(d, n, place)) continue;
        n_fit++;
        if (!best || before(d, best, id, len)) best = d;
    }
    *sure = n_fit < 2 || knows(best, id, len);
    return best;
}

static uint32_t rank_at(const declared *d, uint32_t i)
{
    return d->rank ? d->rank[i] : i;
}

live_found live_declared(uint32_t n, uint32_t place, const void *id, size_t len,
                         uint32_t *rank)
{
    live_found out = {0};
    pthread_mutex_lock(&mutex);
    declared *d = choose(n, place, id, len, &out.sure);
    out.there = d != NULL;
    if (d) out.nth = d->found++;
    for (uint32_t i = 0; d && i < n; i++) rank[i] = rank_at(d, i);
    pthread_mutex_unlock(&mutex);
    return out;
}

uint32_t live_declared_among(const uint32_t *rank, uint32_t n, uint32_t *member)
{
    uint32_t k = 0;
    if (in_use[0] == LIVE_ANY) return LIVE_ANY;
    pthread_mutex_lock(&mutex);
    const declared *d = &all[in_use[0]];
    for (uint32_t i = 0; i < d->n && k < n && d->place < d->n; i++) {
        uint32_t at = 0;
        while (at < n && rank[at] != rank_at(d, i)) at++;
        if (at < n) member[k++] = at;
    }
    pthread_mutex_unlock(&mutex);
    return k;
}
