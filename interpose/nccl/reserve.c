/* SPDX-License-Identifier: Apache-2.0 */
/* reserve.c - device memory of communicators. */
#include "nccl/reserve.h"

#include "nccl/watch.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define KIB ((size_t)1024)
/* Bytes of a message at which all channels are used. */
#define LARGE 4e9
/* NCCL 2.30: lines per thread, threads, steps and bytes of a line */
#define LL_BYTES    (8 * 512 * 8 * (size_t)16)
#define LL128_BYTES (120 * 640 * 8 * (size_t)8)
/* A pool for messages over the network: steps per channel, bytes of a step. */
#define NET_STEPS 16
#define NET_CHUNK (128 * KIB)
#define STEPS     8

/* ---- memory ------------------------------------------------------------------ */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static device_memory *all_kept; /* could not be freed yet */

static void free_kept(void)
{
    if (!watch_idle()) return;
    pthread_mutex_lock(&lock);
    device_memory *k = all_kept;
    all_kept = NULL;
    pthread_mutex_unlock(&lock);
    while (k) {
        device_memory *next = k->next;
        bool entered = gpu_enter(k->g);
        k->g->d->free(k->at);
        gpu_leave(k->g, entered);
        free(k);
        k = next;
    }
}

CUresult reserve_alloc(struct ncclComm *c, size_t bytes, device_memory **list)
{
    gpu *g = c->g;
    CUdeviceptr at = 0;
    int mode = CU_CAPTURE_RELAXED;
    bool entered = gpu_enter(g);
    if (g->d->capture_mode) g->d->capture_mode(&mode);
    CUresult rc = g->d->alloc(&at, bytes);
    if (rc) {
        free_kept();
        rc = g->d->alloc(&at, bytes);
    }
    if (g->d->capture_mode) g->d->capture_mode(&mode);
    gpu_leave(g, entered);
    if (rc) return rc;
    device_memory *m = live_alloc(c->l, 1, sizeof *m);
    *m = (device_memory){*list, g, at, bytes};
    *list = m;
    return 0;
}

static void keep(device_memory **list)
{
    device_memory **end = list;
    while (*end) end = &(*end)->next;
    pthread_mutex_lock(&lock);
    *end = all_kept;
    all_kept = *list;
    pthread_mutex_unlock(&lock);
    *list = NULL;
}

/* ---- NCCL's buffers ---------------------------------------------------------- */

static size_t setting(const char *name, size_t usual)
{
    const char *text = getenv(name);
    char *end = NULL;
    long long v = text ? strtoll(text, &end, 10) : -1;
    return text && end != text && v >= 0 ? (size_t)v : usual;
}

static size_t large_buffers(void)
{
    return setting("NCCL_BUFFSIZE", 4096 * KIB) +
           setting("NCCL_LL128_BUFFSIZE", LL128_BYTES);
}

static size_t connection(void)
{
    return large_buffers() + setting("NCCL_LL_BUFFSIZE", LL_BYTES);
}

static size_t channels(const struct ncclComm *m, sc_coll coll, int algorithm)
{
    sc_coll_price out = {0};
    size_t n = price_channels(m, coll, LARGE, algorithm, &out);
    if (n < m->min_blocks) n = m->min_blocks;
    if (m->max_blocks && n > m->max_blocks) n = m->max_blocks;
    return n;
}

/* Receives from the one before; where the ring leaves the node, the buffers of
 * what is sent are here, too, except for LL's: on one channel per member. */
static size_t of_ring(const struct ncclComm *m, const sc_place *at)
{
    size_t n = channels(m, SC_ALL_REDUCE, SC_ALGO_RING);
    size_t out = at->nodes > 1 ? (n + at->m - 1) / at->m : 0;
    return n * connection() + out * large_buffers();
}

/* Receives from above and from below, one of which is the ring's neighbour
 * inside a node. */
static size_t of_tree(const struct ncclComm *m, const sc_place *at)
{
    size_t n = channels(m, SC_ALL_REDUCE, SC_ALGO_TREE);
    return n * connection() * (at->m > 1 ? 1 : 2);
}

/* For each member of the node, in both directions. */
static size_t of_nvls(const struct ncclComm *m, const sc_place *at)
{
    size_t chunk = setting("NCCL_NVLS_CHUNKSIZE", 128 * KIB);
    int algorithm = at->nodes > 1 ? SC_ALGO_NVLS_TREE : SC_ALGO_NVLS;
    return 2 * chunk * STEPS * at->m * channels(m, SC_ALL_REDUCE, algorithm);
}

/* To and from one node above and one below; of two nodes there is only one. */
static size_t of_nvls_tree(const struct ncclComm *m, const sc_place *at)
{
    size_t n = channels(m, SC_ALL_REDUCE, SC_ALGO_NVLS_TREE);
    size_t both = connection() + large_buffers();
    return n * both * (at->nodes > 2 ? 2 : at->nodes > 1);
}

static size_t of_algorithm(const struct ncclComm *m, int algorithm)
{
    sc_place at = price_place(m);
    switch (algorithm) {
    case SC_ALGO_RING: return of_ring(m, &at);
    case SC_ALGO_TREE: return of_tree(m, &at);
    case SC_ALGO_NVLS: return of_nvls(m, &at);
    case SC_ALGO_NVLS_TREE: return of_nvls_tree(m, &at);
    default: return 0;
    }
}

static bool counts(const struct ncclComm *c)
{
    const char *wish = getenv("STEPCAST_NCCL_MEMORY");
    const sc_emu_config *f = live_config(c->l);
    return c->n > 1 && c->g && !c->shares && f->hw && f->cost &&
           (!wish || strcmp(wish, "0") != 0);
}

static ncclResult_t take(struct ncclComm *m, size_t bytes)
{
    CUresult rc = bytes ? reserve_alloc(m, bytes, &m->reserved) : 0;
    if (rc)
        return comm_fail(
            ncclUnhandledCudaError,
            "CUDA: %s: NCCL's own buffers take %.1f MiB of device memory here "
            "(STEPCAST_NCCL_MEMORY=0: they are not counted)",
            driver_error(m->g->d, rc), (double)bytes / (1024 * 1024));
    return ncclSuccess;
}

static ncclResult_t take_algorithm(struct ncclComm *m, int algorithm)
{
    uint32_t bit = 1U << algorithm;
    if (m->connected & bit) return ncclSuccess;
    m->connected |= bit;
    return take(m, of_algorithm(m, algorithm));
}

/* ---- messages ------------------------------------------------------------------ */

static bool same_node(const struct ncclComm *m, uint32_t place)
{
    const sc_hw *hw = live_config(m->l)->hw;
    uint32_t node = hw->node_size ? hw->node_size : 1;
    return m->world[place] / node == m->world[m->rank] / node;
}

static size_t power_of_two(size_t n)
{
    size_t p = 1;
    while (p < n) p *= 2;
    return p;
}

/* Channels of a pair: as many as its links are worth; if there are several
 * nodes, as many as the network is worth (one per 14 GB/s), and so few that all
 * peers have channels at once, 8 peers on one. */
static size_t pair_channels(const struct ncclComm *m, size_t pool)
{
    const sc_hw *hw = live_config(m->l)->hw;
    sc_place at = price_place(m);
    size_t n = channels(m, SC_SEND, -1);
    for (uint32_t i = 0; i < hw->n_dims && at.nodes > 1; i++)
        if (hw->dim[i].ports) {
            n = power_of_two((size_t)(hw->dim[i].bw / 14e9) + 1);
            break;
        }
    while (at.nodes > 1 && n > 1 && n * ((m->n + 7) / 8) > pool) n /= 2;
    return n < pool ? n : pool;
}

/* Inside a node the receiver has a connection per channel of a pair; all
 * messages over the network share one pool in each direction. */
static ncclResult_t take_peer(struct ncclComm *m, uint32_t place)
{
    bool near = same_node(m, place);
    bool *known = near ? &m->peer[place] : &m->net_pool;
    if (*known || place == m->rank) return ncclSuccess;
    *known = true;
    size_t pool = power_of_two(channels(m, SC_ALL_REDUCE, SC_ALGO_RING));
    size_t bytes = near ? connection() * pair_channels(m, pool)
                        : 2 * pool * NET_STEPS * NET_CHUNK;
    return take(m, bytes);
}

static ncclResult_t take_messages(const nccl_call *c)
{
    struct ncclComm *m = c->comm;
    ncclResult_t rc = ncclSuccess;
    if (!m->peer) m->peer = calloc(m->n, sizeof *m->peer);
    if (!m->peer) return comm_fail(ncclSystemError, "out of memory");
    if (c->coll == SC_RECV || (c->coll == SC_SEND && !same_node(m, c->peer)))
        return take_peer(m, c->peer);
    if (c->coll == SC_SEND || (c->coll == SC_SCATTER && c->peer == m->rank))
        return ncclSuccess;
    if (c->coll == SC_SCATTER) return take_peer(m, c->peer);
    if (c->coll == SC_GATHER && c->peer != m->rank) return ncclSuccess;
    for (uint32_t i = 0; i < m->n && !rc; i++) rc = take_peer(m, i);
    return rc;
}

/* ---- calls of other files -------------------------------------------------------- */

ncclResult_t reserve_for(const nccl_call *c)
{
    if (!c->comm->counted) return ncclSuccess;
    switch (c->coll) {
    case SC_SEND:
    case SC_RECV:
    case SC_ALL_TO_ALL:
    case SC_GATHER:
    case SC_SCATTER: return take_messages(c);
    default: break;
    }
    int a = price_algorithm(c);
    ncclResult_t rc = ncclSuccess;
    if (a == SC_ALGO_NVLS_TREE) rc = take_algorithm(c->comm, SC_ALGO_NVLS);
    if (rc || a < 0) return rc;
    return take_algorithm(c->comm, a);
}

ncclResult_t reserve_new(struct ncclComm *c)
{
    static const int all[] = {SC_ALGO_RING, SC_ALGO_TREE, SC_ALGO_NVLS,
                              SC_ALGO_NVLS_TREE};
    ncclResult_t rc = ncclSuccess;
    c->counted = counts(c);
    if (version_get() >= 22200 || !c->counted) return rc;
    for (size_t i = 0; i < sizeof all / sizeof all[0] && !rc; i++)
        rc = take_algorithm(c, all[i]);
    return rc;
}

void reserve_drop(struct ncclComm *c)
{
    keep(&c->reserved);
    keep(&c->sent);
    free_kept();
}
