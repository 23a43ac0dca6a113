/* SPDX-License-Identifier: Apache-2.0 */
/*
 * comm.c - communicators: creation, splits, and which emulated ranks they
 * contain. A program passes the number of members and its own place; other
 * libraries (live_declared()) and real ranks (live_join()) know the others.
 */
#include "nccl/comm.h"

#include "common/split.h"
#include "emu/emu_store.h"
#include "nccl/reserve.h"
#include "nccl/watch.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The beginning of an id that this library made. */
#define ID_TAG     SC_STORE_ID_TAG
#define ID_TAG_LEN 8

/* How long a rank waits for other real ranks with the same id: if all ranks are
 * real, and if it is not known which of them come. */
#define PATIENT_PS (600 * SC_PS_PER_S)
#define MOMENT_PS  (5 * SC_PS_PER_S)

#define PLACES 256

#define ONE_RANK                                                       \
    ": a process is one rank of the emulated world; start one per "    \
    "device, as torchrun does, each with ncclCommInitRank (`stepcast " \
    "emulate --ranks 0,1,...` makes several of them real)"

static _Thread_local char last_error[512];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Places that this process has joined, by id. */
typedef struct taken {
    ncclUniqueId id;
    uint32_t n, place;
} taken;

static taken places[PLACES];
static uint32_t n_places; /* number so far; the latest PLACES are stored */
static uint32_t n_ids;

ncclResult_t comm_fail(ncclResult_t rc, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(last_error, sizeof last_error, fmt, args);
    va_end(args);
    live *l = live_get();
    if (l) live_warn(l, "NCCL: %s", last_error);
    return rc;
}

NCCL_API(const char *, ncclGetLastError, ncclComm_t comm)
{
    (void)comm;
    return last_error;
}

ncclResult_t comm_usable(const struct ncclComm *c, const char *call)
{
    if (!c) return comm_fail(ncclInvalidArgument, "%s: no communicator", call);
    if (atomic_load(&c->aborted))
        return comm_fail(ncclInvalidUsage, "%s: the communicator is %s", call,
                         c->revoked ? "revoked" : "aborted");
    if (c->finalized || c->suspended)
        return comm_fail(ncclInvalidUsage, "%s: the communicator is %s", call,
                         c->finalized ? "finalized" : "suspended");
    return ncclSuccess;
}

void comm_hold(struct ncclComm *c)
{
    atomic_fetch_add(&c->refs, 1);
}

void comm_release(struct ncclComm *c)
{
    if (atomic_fetch_sub(&c->refs, 1) != 1) return;
    free(c->world);
    free(c->real);
    free(c->peer);
    free(c);
}

/* ---- making one ---------------------------------------------------------- */

/* Releases the communicator, which becomes NULL, if it fails. */
static ncclResult_t configure(struct ncclComm **out, const ncclConfig_t *f)
{
    struct ncclComm *c = *out;
    if (!f) return ncclSuccess;
    if (f->magic != NCCL_MAGIC) {
        comm_release(c);
        *out = NULL;
        return comm_fail(ncclInvalidArgument,
                         "a configuration was not initialized");
    }
    if (f->size >= offsetof(ncclConfig_t, net_name)) {
        if (f->blocking != NCCL_UNDEF) c->blocking = f->blocking != 0;
        if (f->min_ctas > 0) c->min_blocks = (uint32_t)f->min_ctas;
        if (f->max_ctas > 0) c->max_blocks = (uint32_t)f->max_ctas;
    }
    if (f->size >= offsetof(ncclConfig_t, traffic_class))
        c->split_share = f->split_share == 1;
    return ncclSuccess;
}

/* A communicator of n members, which the caller fills in. */
static ncclResult_t new_comm(live *l, gpu *g, uint32_t n, uint32_t rank,
                             struct ncclComm **out)
{
    struct ncclComm *c = calloc(1, sizeof *c);
    uint32_t *world = malloc(n * sizeof *world);
    if (!c || !world) {
        free(c);
        free(world);
        return comm_fail(ncclSystemError, "out of memory");
    }
    *c =
        (struct ncclComm){.l = l, .g = g, .n = n, .rank = rank, .world = world};
    c->blocking = true;
    atomic_store(&c->refs, 1);
    *out = c;
    return ncclSuccess;
}

static void join(struct ncclComm *c)
{
    c->group = live_group(c->l, c->world, c->n, c->instance);
    c->real = live_alloc(c->l, live_config(c->l)->n_real, sizeof *c->real);
    c->n_real = live_members_real(c->l, c->world, c->n, c->real);
}

/* A communicator whose members are known. */
static ncclResult_t joined(struct ncclComm *c, ncclComm_t *out)
{
    join(c);
    ncclResult_t rc = reserve_new(c);
    if (rc) {
        reserve_drop(c);
        comm_release(c);
        return rc;
    }
    *out = c;
    return c->blocking ? ncclSuccess : ncclInProgress;
}

/* ---- members ------------------------------------------------------------- */

static bool is_tagged(const ncclUniqueId *id)
{
    return id && memcmp(id, ID_TAG, ID_TAG_LEN) == 0;
}

/* Members that are not known (UINT32_MAX): emulated neighbours of the first one
 * that is. */
static void assume(struct ncclComm *c)
{
    const sc_emu_config *f = live_config(c->l);
    uint32_t n = c->n, first = 0, left = f->world - f->n_real;
    bool *used = live_alloc(c->l, f->world, sizeof *used);
    for (uint32_t i = 0; i < f->n_real; i++) used[f->real[i]] = true;
    while (c->world[first] == UINT32_MAX) first++;
    uint32_t base = c->world[first] + f->world - first;
    for (uint32_t i = 0; i < n; i++) {
        if (c->world[i] != UINT32_MAX) continue;
        if (left-- == 0)
            live_die(c->l,
                     "NCCL: a communicator of %u, in which rank %u is at place "
                     "%u, waits for real ranks that do not join it",
                     n, live_rank(c->l), c->rank);
        uint32_t r = (base + i) % f->world;
        while (used[r]) r = (r + 1) % f->world;
        c->world[i] = r;
        used[r] = true;
    }
    free(used);
    live_warn(c->l,
              "NCCL: nothing tells which ranks a communicator of %u joins, in "
              "which rank %u is at place %u; assumed: its neighbours, from "
              "rank %u to rank %u (--ranks all, or more real ranks, make them "
              "known)",
              n, live_rank(c->l), c->rank, c->world[0], c->world[n - 1]);
}

/* False: nothing was declared that fits. */
static bool declared(struct ncclComm *c, const ncclUniqueId *id)
{
    size_t len = id ? sizeof *id : 0;
    live_found f = live_declared(c->n, c->rank, id, len, c->world);
    c->number = f.nth;
    if (f.there && !f.sure)
        live_warn(c->l,
                  "NCCL: several groups of %u have rank %u at place %u; "
                  "assumed: the latest one that has no communicator",
                  c->n, live_rank(c->l), c->rank);
    return f.there;
}

/* Hashes of its members, and of what it was made as. */
static uint64_t hash_of(const struct ncclComm *c, uint64_t as)
{
    return sc_hash(c->world, c->n * sizeof *c->world, as);
}

/* What real ranks know that join with the same id; returns the number of known
 * members. */
static uint32_t joined_by_id(struct ncclComm *c, const ncclUniqueId *id,
                             sc_time at_most)
{
    uint64_t hash = sc_hash(id, sizeof *id, 0);
    return live_join(c->l, hash, c->n, c->rank, c->world, at_most);
}

/* False: this process has joined at another place already. */
static bool note_place(const ncclUniqueId *id, uint32_t n, uint32_t place)
{
    bool other = false, again = false;
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < n_places && i < PLACES; i++) {
        const taken *t = &places[i];
        if (t->n != n || memcmp(&t->id, id, sizeof *id) != 0) continue;
        *(t->place == place ? &again : &other) = true;
    }
    if (!again && !other) places[n_places++ % PLACES] = (taken){*id, n, place};
    pthread_mutex_unlock(&lock);
    return !other;
}

/* False: see note_place(). A group that was declared may have got an old id
 * again, from a root that is emulated. */
static bool find_members(struct ncclComm *c, const ncclUniqueId *id)
{
    const sc_emu_config *f = live_config(c->l);
    uint32_t r = live_rank(c->l), known = 1;
    bool tagged = is_tagged(id), all_real = f->n_real == f->world;
    if (!(tagged && all_real) && declared(c, id)) return true;
    if (tagged && !note_place(id, c->n, c->rank)) return false;
    for (uint32_t i = 0; i < c->n; i++) c->world[i] = UINT32_MAX;
    c->world[c->rank] = r;
    if (tagged && all_real)
        known = joined_by_id(c, id, PATIENT_PS);
    else if (c->n == f->world && c->rank == r)
        for (known = 0; known < c->n; known++) c->world[known] = known;
    else if (tagged)
        known = joined_by_id(c, id, MOMENT_PS);
    if (known < c->n) assume(c);
    return true;
}

static ncclResult_t environment(live **l, gpu **g, const char *call)
{
    const char *why = NULL;
    *l = live_get();
    if (!*l)
        return comm_fail(ncclInvalidUsage,
                         "%s: this NCCL only works under `stepcast emulate`",
                         call);
    *g = NULL; /* a scout launches nothing */
    if (live_is_scout()) return ncclSuccess;
    if (live_config(*l)->clock == SC_EMU_VIRTUAL)
        live_die(*l, "--clock virtual: device streams run in real time; use "
                     "--clock real");
    *g = gpu_get(&why);
    if (!*g || !watch_start(*l, &why))
        return comm_fail(ncclUnhandledCudaError, "%s: %s", call, why);
    if (!watch_calibrate(*l, *g))
        return comm_fail(ncclUnhandledCudaError,
                         "%s: the device does not run kernels", call);
    detect_bypass(*l);
    return ncclSuccess;
}

static ncclResult_t init(ncclComm_t *out, int n, int rank,
                         const ncclUniqueId *id, const ncclConfig_t *config,
                         const char *call)
{
    live *l;
    gpu *g = NULL;
    struct ncclComm *c = NULL;
    if (!out) return comm_fail(ncclInvalidArgument, "%s: no result", call);
    *out = NULL;
    if (n > 0 && rank >= 0) live_say_rank((uint32_t)rank, (uint32_t)n);
    ncclResult_t rc = environment(&l, &g, call);
    if (rc) return rc;
    if (n < 1 || rank < 0 || rank >= n || (uint32_t)n > live_world(l))
        return comm_fail(ncclInvalidArgument,
                         "%s: rank %d of %d, in a world of %u", call, rank, n,
                         live_world(l));
    live_uses(l, SC_EMU_API_NCCL);
    rc = new_comm(l, g, (uint32_t)n, (uint32_t)rank, &c);
    if (!rc) rc = configure(&c, config);
    if (rc) return rc;
    if (!find_members(c, id)) {
        comm_release(c);
        return comm_fail(ncclInvalidUsage,
                         "%s: rank %d of %d beside another one in this "
                         "process" ONE_RANK,
                         call, rank, n);
    }
    c->number = hash_of(c, c->number);
    c->instance = is_tagged(id) ? sc_hash(id, sizeof *id, 0) : c->number;
    return joined(c, out);
}

NCCL_API(ncclResult_t, ncclGetUniqueId, ncclUniqueId *id)
{
    live *l = live_get();
    if (!id)
        return comm_fail(ncclInvalidArgument, "ncclGetUniqueId: no result");
    memset(id, 0, sizeof *id);
    pthread_mutex_lock(&lock);
    uint32_t mine[2] = {l ? live_rank(l) : 0, ++n_ids};
    pthread_mutex_unlock(&lock);
    memcpy(id->internal, ID_TAG, ID_TAG_LEN);
    memcpy(id->internal + ID_TAG_LEN, mine, sizeof mine);
    return ncclSuccess;
}

NCCL_API(ncclResult_t, ncclCommInitRank, ncclComm_t *comm, int nranks,
         ncclUniqueId id, int rank)
{
    return group_note(init(comm, nranks, rank, &id, NULL, "ncclCommInitRank"));
}

NCCL_API(ncclResult_t, ncclCommInitRankConfig, ncclComm_t *comm, int nranks,
         ncclUniqueId id, int rank, ncclConfig_t *config)
{
    return group_note(
        init(comm, nranks, rank, &id, config, "ncclCommInitRankConfig"));
}

NCCL_API(ncclResult_t, ncclCommInitRankScalable, ncclComm_t *comm, int nranks,
         int rank, int n_ids_given, ncclUniqueId *ids, ncclConfig_t *config)
{
    if (n_ids_given < 1 || !ids)
        return comm_fail(ncclInvalidArgument,
                         "ncclCommInitRankScalable: no unique id");
    return group_note(
        init(comm, nranks, rank, ids, config, "ncclCommInitRankScalable"));
}

NCCL_API(ncclResult_t, ncclCommInitAll, ncclComm_t *comm, int ndev,
         const int *devices)
{
    (void)devices;
    if (ndev != 1)
        return comm_fail(ncclInvalidUsage,
                         "ncclCommInitAll of %d devices" ONE_RANK, ndev);
    return init(comm, 1, 0, NULL, NULL, "ncclCommInitAll");
}

/* ---- splits -------------------------------------------------------------- */

static ncclResult_t child(struct ncclComm *parent, uint32_t n, uint32_t rank,
                          const ncclConfig_t *config, struct ncclComm **out)
{
    ncclResult_t rc = new_comm(parent->l, parent->g, n, rank, out);
    if (rc) return rc;
    uint64_t made[2] = {parent->instance, parent->n_splits};
    (*out)->instance = sc_hash(made, sizeof made, 0);
    (*out)->blocking = parent->blocking;
    (*out)->min_blocks = parent->min_blocks;
    (*out)->max_blocks = parent->max_blocks;
    return configure(out, config);
}

/* The number of its last split. */
static uint64_t made_by(const struct ncclComm *parent)
{
    const uint64_t v[2] = {parent->number, parent->n_splits};
    return sc_hash(v, sizeof v, 0);
}

/* Positions in the parent of the part that contains this rank. */
static uint32_t part(const struct ncclComm *comm, int color, int key,
                     uint32_t *member)
{
    const live_members m = comm_members(comm, false);
    const sc_emu_choice mine = {.colour = color, .key = key};
    uint32_t n = live_declared_among(comm->world, comm->n, member);
    if (n != UINT32_MAX) return n;
    return live_split(comm->l, &m, "ncclCommSplit", made_by(comm), mine,
                      NCCL_NO_COLOR, member);
}

static ncclResult_t split(struct ncclComm *comm, int color, int key,
                          ncclComm_t *out, const ncclConfig_t *config)
{
    if (out) *out = NULL;
    ncclResult_t rc = comm_usable(comm, "ncclCommSplit");
    if (rc) return rc;
    comm->n_splits++; /* also on members that get no child */
    uint32_t *member = malloc(comm->n * sizeof *member), me = 0;
    if (!member) return comm_fail(ncclSystemError, "out of memory");
    live_enter(comm->l);
    uint32_t n = part(comm, color, key, member);
    live_leave(comm->l);
    struct ncclComm *c = NULL;
    while (n && member[me] != comm->rank) me++;
    if (n) rc = child(comm, n, me, config, &c);
    for (uint32_t i = 0; c && i < n; i++) c->world[i] = comm->world[member[i]];
    free(member);
    if (!n || rc) return rc;
    c->number = hash_of(c, made_by(comm));
    c->shares = comm->split_share;
    return joined(c, out);
}

NCCL_API(ncclResult_t, ncclCommSplit, ncclComm_t comm, int color, int key,
         ncclComm_t *out, ncclConfig_t *config)
{
    return group_note(split(comm, color, key, out, config));
}

NCCL_API(ncclResult_t, ncclCommShrink, ncclComm_t comm, int *exclude,
         int n_exclude, ncclComm_t *out, ncclConfig_t *config, int flags)
{
    if (!comm || !out || n_exclude < 0 || (n_exclude && !exclude))
        return comm_fail(ncclInvalidArgument, "ncclCommShrink: no list");
    *out = NULL;
    if (flags & NCCL_SHRINK_ABORT) watch_abort(comm);
    struct ncclComm *c = NULL;
    comm->n_splits++;
    ncclResult_t rc = child(comm, comm->n, 0, config, &c);
    if (rc) return rc;
    uint32_t n = 0;
    bool inside = false;
    for (uint32_t i = 0; i < comm->n; i++) {
        bool gone = false;
        for (int k = 0; k < n_exclude; k++) gone |= exclude[k] == (int)i;
        if (gone) continue;
        if (i == comm->rank) {
            c->rank = n;
            inside = true;
        }
        c->world[n++] = comm->world[i];
    }
    if (!inside) {
        comm_release(c);
        return comm_fail(ncclInvalidUsage,
                         "ncclCommShrink: called by an excluded rank");
    }
    c->n = n;
    c->number = hash_of(c, made_by(comm));
    return joined(c, out);
}

/* ---- its end ------------------------------------------------------------- */

NCCL_API(ncclResult_t, ncclCommFinalize, ncclComm_t comm)
{
    if (!comm)
        return comm_fail(ncclInvalidArgument,
                         "ncclCommFinalize: no communicator");
    if (comm->revoked || comm->finalized)
        return comm_fail(ncclInvalidUsage, "ncclCommFinalize: it is %s",
                         comm->revoked ? "revoked" : "finalized already");
    comm->finalized = true;
    const struct timespec t = {0, 50000};
    while (comm->blocking && atomic_load(&comm->open)) nanosleep(&t, NULL);
    return comm->blocking ? ncclSuccess : ncclInProgress;
}

NCCL_API(ncclResult_t, ncclCommDestroy, ncclComm_t comm)
{
    if (!comm) return ncclSuccess;
    reserve_drop(comm);
    comm_release(comm);
    return ncclSuccess;
}

NCCL_API(ncclResult_t, ncclCommAbort, ncclComm_t comm)
{
    if (!comm) return ncclSuccess;
    watch_abort(comm);
    reserve_drop(comm);
    comm_release(comm);
    return ncclSuccess;
}

NCCL_API(ncclResult_t, ncclCommRevoke, ncclComm_t comm, int flags)
{
    if (!comm || flags)
        return comm_fail(ncclInvalidArgument, "ncclCommRevoke: %s",
                         comm ? "unknown flags" : "no communicator");
    comm->revoked = true;
    watch_abort(comm);
    return comm->blocking ? ncclSuccess : ncclInProgress;
}

NCCL_API(ncclResult_t, ncclCommSuspend, ncclComm_t comm, int flags)
{
    (void)flags; /* there is no memory to return */
    ncclResult_t rc = comm_usable(comm, "ncclCommSuspend");
    if (!rc) comm->suspended = true;
    return rc;
}

NCCL_API(ncclResult_t, ncclCommResume, ncclComm_t comm)
{
    if (!comm || !comm->suspended)
        return comm_fail(ncclInvalidUsage,
                         "ncclCommResume: it is not suspended");
    comm->suspended = false;
    return ncclSuccess;
}

/* ---- queries ------------------------------------------------------------- */

NCCL_API(ncclResult_t, ncclCommMemStats, ncclComm_t comm, int stat,
         uint64_t *value)
{
    if (!comm || !value || stat < 0 || stat > 3)
        return comm_fail(ncclInvalidArgument,
                         "ncclCommMemStats: no such value");
    uint64_t total = 0;
    const device_memory *m;
    for (m = comm->sent; m; m = m->next) total += m->bytes;
    for (m = comm->reserved; m; m = m->next) total += m->bytes;
    *value = stat == 1 ? comm->suspended : stat == 0 ? 0 : total;
    return ncclSuccess;
}

NCCL_API(ncclResult_t, ncclCommGetAsyncError, ncclComm_t comm,
         ncclResult_t *error)
{
    if (!comm || !error)
        return comm_fail(ncclInvalidArgument,
                         "ncclCommGetAsyncError: no communicator or no result");
    *error = comm->finalized && atomic_load(&comm->open) ? ncclInProgress
                                                         : ncclSuccess;
    return ncclSuccess;
}

static ncclResult_t answer(const struct ncclComm *c, int *out, int value)
{
    if (!c || !out)
        return comm_fail(ncclInvalidArgument, "no communicator or no result");
    *out = value;
    return ncclSuccess;
}

NCCL_API(ncclResult_t, ncclCommCount, const ncclComm_t comm, int *count)
{
    return answer(comm, count, comm ? (int)comm->n : 0);
}

NCCL_API(ncclResult_t, ncclCommCuDevice, const ncclComm_t comm, int *device)
{
    return answer(comm, device, comm && comm->g ? comm->g->device : 0);
}

NCCL_API(ncclResult_t, ncclCommUserRank, const ncclComm_t comm, int *rank)
{
    return answer(comm, rank, comm ? (int)comm->rank : 0);
}
