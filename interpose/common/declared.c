/* SPDX-License-Identifier: Apache-2.0 */
/* declared.c - groups whose members a binding of the program's language has
 * named, for a library that learns only their number. */
#include "common/live.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef struct declared {
    uint32_t n, place, *rank; /* place of this rank */
    bool taken;
} declared;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static declared *all;
static uint32_t n_all;
static _Thread_local uint32_t in_use; /* number + 1; 0: none */

uint32_t live_declare(live *l, const uint32_t *rank, uint32_t n)
{
    declared d = {.n = n, .place = n, .rank = malloc(n * sizeof *rank)};
    if (!d.rank) live_die(l, "out of memory");
    memcpy(d.rank, rank, n * sizeof *rank);
    for (uint32_t i = 0; i < n; i++)
        if (rank[i] == live_rank(l)) d.place = i;
    pthread_mutex_lock(&mutex);
    declared *more = realloc(all, (n_all + 1) * sizeof *all);
    if (!more) live_die(l, "out of memory");
    all = more;
    all[n_all++] = d;
    uint32_t k = n_all - 1;
    pthread_mutex_unlock(&mutex);
    return k;
}

void live_declared_use(uint32_t k)
{
    in_use = k == UINT32_MAX ? 0 : k + 1;
}

static bool fits(const declared *d, uint32_t n, uint32_t place)
{
    return d->n == n && d->place == place;
}

/* Whether the members of two groups are the same. */
static bool same(const declared *a, const declared *b)
{
    return memcmp(a->rank, b->rank, a->n * sizeof *a->rank) == 0;
}

bool live_declared(uint32_t n, uint32_t place, uint32_t *rank, bool *sure)
{
    declared *found = NULL;
    *sure = true;
    pthread_mutex_lock(&mutex);
    if (in_use) {
        /* Another one is for messages within the group in use. */
        declared *d = &all[in_use - 1];
        if (fits(d, n, place)) found = d;
    }
    for (uint32_t i = 0; i < n_all && !in_use; i++) {
        declared *d = &all[i];
        if (!fits(d, n, place)) continue;
        if (found && !same(d, found)) *sure = false;
        if (!found || (found->taken && !d->taken)) found = d;
    }
    if (found) {
        found->taken = true;
        memcpy(rank, found->rank, n * sizeof *rank);
    }
    pthread_mutex_unlock(&mutex);
    return found != NULL;
}
