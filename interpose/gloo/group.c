/* SPDX-License-Identifier: Apache-2.0 */
/*
 * group.c - gloo's contexts and their members.
 *
 * connectFullMesh() would wait for every member; emulated ones never connect,
 * and real ones exchange data another way (live_push()), so nothing is
 * connected at all.
 */
#include "inside.h"

#include <stdlib.h>
#include <string.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static gloo_group *groups;
static uint32_t n_groups;

/* ---- the ranks ------------------------------------------------------------------ */

/* Position `at` is this rank; the others are at equal distances. */
static void guess(const live *l, uint32_t at, uint32_t n, uint32_t *world)
{
    const int64_t me = live_rank(l), all = live_world(l), last = n - 1;
    int64_t step = all / n;
    if (me - at * step < 0 || me + (last - at) * step >= all) step = 1;
    int64_t first = me - at * step;
    if (first < 0) first = 0;
    if (first + last * step >= all) first = all - 1 - last * step;
    for (uint32_t i = 0; i < n; i++)
        world[i] = (uint32_t)(first + (int64_t)i * step);
}

static void find_ranks(live *l, const gloo_context *c, gloo_group *g)
{
    uint32_t n = g->size, world = live_world(l);
    bool whole = false, said = gloo_python_ranks(n, g->world, &whole);
    if (said && !whole) {
        if (g->world[g->rank] == live_rank(l)) return;
        live_die(l,
                 "gloo: member %d of a process group of %d is rank %u, not "
                 "this rank %u",
                 c->rank, c->size, (unsigned)g->world[g->rank],
                 (unsigned)live_rank(l));
    }
    if (n == world) {
        for (uint32_t i = 0; i < n; i++) g->world[i] = i;
        return;
    }
    if (whole)
        live_die(l,
                 "gloo: the program's world has %u ranks, the emulated one "
                 "%u",
                 (unsigned)n, (unsigned)world);
    guess(l, g->rank, n, g->world);
    live_warn(l,
              "gloo: the ranks of a process group of %u are not known; "
              "assumed: %u, %u, ... %u",
              (unsigned)n, (unsigned)g->world[0], (unsigned)g->world[n > 1],
              (unsigned)g->world[n - 1]);
}

static void find_real(live *l, gloo_group *g)
{
    const sc_emu_config *c = live_config(l);
    for (uint32_t i = 0; i < g->size; i++)
        for (uint32_t k = 0; k < c->n_real; k++)
            if (c->real[k] == g->world[i]) g->real[g->n_real++] = i;
}

/* Real ranks match operations by group, whichever communicator posts them, so
 * all communicators of a group share one queue. */
static gloo_queue *find_queue(const gloo_group *g, const void *owner)
{
    for (const gloo_group *o = groups; o; o = o->next)
        if (o->owner == owner || (o->n_real > 1 && o->id == g->id))
            return o->queue;
    gloo_queue *t = calloc(1, sizeof(*t));
    if (!t) return NULL;
    pthread_mutex_init(&t->mutex, NULL);
    pthread_cond_init(&t->moved, NULL);
    return t;
}

/* The number of earlier groups with these members, which all members make in
 * the same order. */
static uint64_t same_members(const gloo_group *g)
{
    uint64_t k = 0;
    for (const gloo_group *o = groups; o; o = o->next)
        k += o->size == g->size &&
             memcmp(o->world, g->world, g->size * sizeof *g->world) == 0;
    return k;
}

static void add(live *l, const gloo_context *c)
{
    gloo_group *g = calloc(1, sizeof(*g));
    uint32_t n = (uint32_t)c->size;
    if (g) {
        g->world = calloc(n, sizeof(*g->world));
        g->real = calloc(n, sizeof(*g->real));
    }
    if (!g || !g->world || !g->real) live_die(l, "gloo: out of memory");
    g->context = c;
    g->rank = (uint32_t)c->rank;
    g->size = n;
    g->owner = gloo_work_owner();
    find_ranks(l, c, g);
    find_real(l, g);
    pthread_mutex_lock(&mutex);
    uint64_t instance = same_members(g);
    pthread_mutex_unlock(&mutex);
    g->id = live_group(l, g->world, n, instance);
    pthread_mutex_lock(&mutex);
    for (gloo_group *o = groups; o; o = o->next)
        if (o->context == c) o->context = NULL; /* its memory was reused */
    g->queue = find_queue(g, g->owner);
    g->stream = n_groups++;
    g->next = groups;
    groups = g;
    pthread_mutex_unlock(&mutex);
    if (!g->queue) live_die(l, "gloo: out of memory");
}

static gloo_group *find(const gloo_context *c, const void *owner)
{
    pthread_mutex_lock(&mutex);
    gloo_group *g = groups;
    while (g && !(c ? g->context == c : g->owner == owner)) g = g->next;
    pthread_mutex_unlock(&mutex);
    return g;
}

gloo_group *gloo_group_of(live *l, const gloo_context *c)
{
    gloo_group *g = find(c, NULL);
    if (!g)
        live_die(l, "gloo: an operation of a communicator that was not set up "
                    "by connectFullMesh()");
    return g;
}

gloo_queue *gloo_group_queue(const void *owner)
{
    gloo_group *g = find(NULL, owner);
    return g ? g->queue : NULL;
}

bool gloo_group_emulated(const void *owner, int64_t member)
{
    const gloo_group *g = find(NULL, owner);
    if (!g) return false;
    for (uint32_t i = 0; i < g->n_real; i++)
        if (g->real[i] == member) return false;
    return true;
}

/* ---- what gloo calls -------------------------------------------------------------- */

typedef void connect_all(gloo_context *, void *, void *);

void gloo_connect(gloo_context *c, void *store, void *device) GLOO_HOOK(
    "_ZN4gloo10rendezvous7Context15connectFullMeshERNS0_5StoreERSt10shared_"
    "ptrINS_9transport6DeviceEE");

void gloo_connect(gloo_context *c, void *store, void *device)
{
    live *l = gloo_live();
    if (!l) {
        GLOO_REAL(connect_all *, LIB_GLOO,
                  "_ZN4gloo10rendezvous7Context15connectFullMeshERNS0_"
                  "5StoreERSt10shared_ptrINS_9transport6DeviceEE")
        (c, store, device);
        return;
    }
    live_enter(l);
    live_uses(l, SC_EMU_API_GLOO);
    add(l, c);
    live_leave(l);
}
