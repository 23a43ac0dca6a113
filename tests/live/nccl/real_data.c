/* SPDX-License-Identifier: Apache-2.0 */
/*
 * real_data.c - two real ranks of a job see each other's data: on a communicator
 * of all, where they are the first and the middle one and the others mirror them
 * in turn, and on one of the two alone, of which there is a second one.  The only
 * argument names the file through which they agree on ids.
 */
#include "mock/cuda.h"
#include "nccl/api.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

ncclResult_t ncclGetUniqueId(ncclUniqueId *);
ncclResult_t ncclCommInitRank(ncclComm_t *, int, ncclUniqueId, int);
ncclResult_t ncclCommDestroy(ncclComm_t);
ncclResult_t ncclAllReduce(const void *, void *, size_t, int, int, ncclComm_t,
                           CUstream);
ncclResult_t ncclReduce(const void *, void *, size_t, int, int, int, ncclComm_t,
                        CUstream);
ncclResult_t ncclReduceScatter(const void *, void *, size_t, int, int,
                               ncclComm_t, CUstream);
ncclResult_t ncclAllGather(const void *, void *, size_t, int, ncclComm_t,
                           CUstream);
ncclResult_t ncclAlltoAll(const void *, void *, size_t, int, ncclComm_t,
                          CUstream);
ncclResult_t ncclScatter(const void *, void *, size_t, int, int, ncclComm_t,
                         CUstream);
ncclResult_t ncclGather(const void *, void *, size_t, int, int, ncclComm_t,
                        CUstream);
ncclResult_t ncclBroadcast(const void *, void *, size_t, int, int, ncclComm_t,
                           CUstream);
ncclResult_t ncclSend(const void *, size_t, int, int, ncclComm_t, CUstream);
ncclResult_t ncclRecv(void *, size_t, int, int, ncclComm_t, CUstream);
ncclResult_t ncclGroupStart(void);
ncclResult_t ncclGroupEnd(void);

#define N 1000 /* elements of a share */

#define MUST(x)                                                 \
    do {                                                        \
        if (x) break;                                           \
        fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x); \
        exit(1);                                                \
    } while (0)
#define OK(x) MUST((x) == 0)

/* One communicator: `me` is place 0 or n / 2. */
typedef struct with {
    ncclComm_t comm;
    CUstream s;
    int n, me, other;
    float *x, *y; /* n * N each */
} with;

/* Element i of share k that place `who` has; small and whole. */
static float value(int who, int k, int i)
{
    return (float)(1 + who + 2 * k + i % 5);
}

/* Whom a place mirrors. */
static int like(const with *t, int place)
{
    int before = place <= t->n / 2 ? 1 : 2; /* real places */
    bool real = place == 0 || place == t->n / 2;
    return real ? place : (place - before) % 2 ? t->n / 2 : 0;
}

static void fresh(const with *t)
{
    for (int k = 0; k < t->n; k++)
        for (int i = 0; i < N; i++) {
            t->x[k * N + i] = value(t->me, k, i);
            t->y[k * N + i] = -1;
        }
}

static void done(const with *t)
{
    OK(cuStreamSynchronize(t->s));
}

static float both(const with *t, int k, int i)
{
    return value(t->me, k, i) + value(t->other, k, i);
}

static void reductions(const with *t)
{
    float half = (float)t->n / 2;
    fresh(t);
    OK(ncclAllReduce(t->x, t->y, N, NCCL_FLOAT32, NCCL_SUM, t->comm, t->s));
    done(t);
    for (int i = 0; i < N; i++) MUST(t->y[i] == half * both(t, 0, i));
    OK(ncclAllReduce(t->x, t->x, N, NCCL_FLOAT32, NCCL_AVG, t->comm, t->s));
    OK(ncclAllReduce(t->x + N, t->x + N, N, NCCL_FLOAT32, NCCL_MAX, t->comm,
                     t->s));
    done(t);
    for (int i = 0; i < N; i++) {
        MUST(t->x[i] == both(t, 0, i) / 2);
        MUST(t->x[N + i] == value(t->n / 2, 1, i));
    }
    OK(ncclReduce(t->y, t->y, N, NCCL_FLOAT32, NCCL_MIN, t->n / 2, t->comm,
                  t->s));
    done(t);
    for (int i = 0; i < N; i++) MUST(t->y[i] == half * both(t, 0, i));
    fresh(t);
    OK(ncclReduceScatter(t->x, t->y, N, NCCL_FLOAT32, NCCL_SUM, t->comm, t->s));
    done(t);
    for (int i = 0; i < N; i++) MUST(t->y[i] == half * both(t, t->me, i));
}

static void types(const with *t)
{
    int32_t *w = (int32_t *)(void *)t->x;
    uint16_t *h = (uint16_t *)(void *)t->y;
    int half = t->n / 2;
    for (int i = 0; i < N; i++) {
        float v = value(t->me, 0, i);
        uint32_t bits;
        memcpy(&bits, &v, 4);
        w[i] = (int32_t)v;
        h[i] = (uint16_t)(bits >> 16); /* bf16 */
    }
    OK(ncclAllReduce(w, w, N, NCCL_INT32, NCCL_SUM, t->comm, t->s));
    OK(ncclAllReduce(h, h, N, NCCL_BFLOAT16, NCCL_SUM, t->comm, t->s));
    done(t);
    for (int i = 0; i < N; i++) {
        uint32_t bits = (uint32_t)h[i] << 16;
        float v;
        memcpy(&v, &bits, 4);
        MUST(w[i] == half * (int)both(t, 0, i));
        MUST(v == (float)half * both(t, 0, i));
    }
}

static void shares(const with *t)
{
    fresh(t);
    OK(ncclAllGather(t->x, t->y, N, NCCL_FLOAT32, t->comm, t->s));
    done(t);
    for (int k = 0; k < t->n; k++)
        for (int i = 0; i < N; i++)
            MUST(t->y[k * N + i] == value(like(t, k), 0, i));
    for (int root = 0; root < t->n; root += t->n / 2) {
        fresh(t);
        OK(ncclBroadcast(t->x, t->y, N, NCCL_FLOAT32, root, t->comm, t->s));
        OK(ncclScatter(t->x, t->y + N, N, NCCL_FLOAT32, root, t->comm, t->s));
        done(t);
        for (int i = 0; i < N; i++) {
            MUST(t->y[i] == value(root, 0, i));
            MUST(t->y[N + i] == value(root, t->me, i));
        }
    }
    fresh(t);
    if (t->n > 2) { /* an emulated root has the data of the first real one */
        OK(ncclBroadcast(t->x, t->x, N, NCCL_FLOAT32, 1, t->comm, t->s));
        done(t);
        for (int i = 0; i < N; i++) MUST(t->x[i] == value(0, 0, i));
        fresh(t);
    }
    OK(ncclGather(t->x, t->y, N, NCCL_FLOAT32, 0, t->comm, t->s));
    done(t);
    for (int i = 0; i < N; i++)
        MUST(t->y[t->n / 2 * N + i] == (t->me ? -1 : value(t->n / 2, 0, i)));
}

/* Both ways; `grouped`: by sends and receives, of which an emulated partner
 * sends what it gets. */
static void exchange_all(const with *t, bool grouped)
{
    fresh(t);
    if (grouped) OK(ncclGroupStart());
    for (int k = 0; grouped && k < t->n; k++) {
        OK(ncclSend(t->x + k * N, N, NCCL_FLOAT32, k, t->comm, t->s));
        OK(ncclRecv(t->y + k * N, N, NCCL_FLOAT32, k, t->comm, t->s));
    }
    if (grouped) OK(ncclGroupEnd());
    if (!grouped) OK(ncclAlltoAll(t->x, t->y, N, NCCL_FLOAT32, t->comm, t->s));
    done(t);
    for (int k = 0; k < t->n; k++)
        for (int i = 0; i < N; i++)
            MUST(t->y[k * N + i] == (grouped && k != t->other
                                         ? value(t->me, k, i)
                                         : value(like(t, k), t->me, i)));
}

static void messages(const with *t)
{
    fresh(t);
    for (int k = 0; k < 3; k++) {
        if (t->me == 0) {
            OK(ncclSend(t->x, N, NCCL_FLOAT32, t->other, t->comm, t->s));
            OK(ncclRecv(t->y, N, NCCL_FLOAT32, t->other, t->comm, t->s));
        } else {
            OK(ncclRecv(t->y, N, NCCL_FLOAT32, t->other, t->comm, t->s));
            OK(ncclSend(t->x, N, NCCL_FLOAT32, t->other, t->comm, t->s));
        }
        done(t);
        for (int i = 0; i < N; i++) MUST(t->y[i] == value(t->other, 0, i));
    }
}

/* Every replay is an exchange of its own. */
static void captured(const with *t)
{
    CUgraph g;
    CUgraphExec e;
    fresh(t);
    OK(cuStreamBeginCapture_v2(t->s, 0));
    OK(ncclAllReduce(t->x, t->x, N, NCCL_FLOAT32, NCCL_SUM, t->comm, t->s));
    OK(cuStreamEndCapture(t->s, &g));
    OK(cuGraphInstantiateWithFlags(&e, g, 0));
    float times = (float)t->n / 2;
    for (int k = 0; k < 3; k++, times *= (float)t->n) {
        OK(cuGraphLaunch(e, t->s));
        done(t);
        for (int i = 0; i < N; i++) MUST(t->x[i] == times * both(t, 0, i));
    }
}

static void every(const with *t)
{
    reductions(t);
    types(t);
    shares(t);
    exchange_all(t, false);
    exchange_all(t, true);
    messages(t);
    captured(t);
}

/* Rank 0 writes it; the others wait for it. */
static ncclUniqueId share_id(const char *path, int rank)
{
    ncclUniqueId id;
    const struct timespec moment = {0, 10000000};
    FILE *f;
    if (rank == 0) {
        char whole[600];
        OK(ncclGetUniqueId(&id));
        snprintf(whole, sizeof whole, "%s.part", path);
        MUST((f = fopen(whole, "wb")) && fwrite(&id, sizeof id, 1, f) == 1 &&
             fclose(f) == 0);
        OK(rename(whole, path));
        return id;
    }
    for (int i = 0; !(f = fopen(path, "rb")) && i < 1000; i++)
        nanosleep(&moment, NULL);
    MUST(f && fread(&id, sizeof id, 1, f) == 1 && fclose(f) == 0);
    return id;
}

/* Two communicators with the same members, which one rank uses in this order on
 * two streams, and the other rank in the other order. */
static void two_orders(with *t, const char *path)
{
    char second[600];
    ncclComm_t comm[2] = {t->comm, NULL};
    CUstream s[2] = {t->s, NULL};
    snprintf(second, sizeof second, "%s.%d", path, t->n);
    OK(ncclCommInitRank(&comm[1], t->n, share_id(second, t->me), t->me));
    OK(cuStreamCreate(&s[1], 1));
    fresh(t);
    for (int i = 0; i < 2; i++) {
        int k = t->me ? 1 - i : i;
        OK(ncclAllReduce(t->x + k * N, t->y + k * N, (size_t)(N - 100 * k),
                         NCCL_FLOAT32, NCCL_SUM, comm[k], s[k]));
        const struct timespec moment = {0, 20000000};
        nanosleep(&moment, NULL);
    }
    for (int k = 0; k < 2; k++) OK(cuStreamSynchronize(s[k]));
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < N - 100 * k; i++)
            MUST(t->y[k * N + i] == both(t, k, i));
    OK(ncclCommDestroy(comm[1]));
}

int main(int argc, char **argv)
{
    CUcontext c;
    CUdeviceptr p, q;
    const char *rank_text = getenv("RANK"), *size_text = getenv("WORLD_SIZE");
    if (argc < 2 || !rank_text || !size_text) return 2;
    int rank = (int)strtol(rank_text, NULL, 10);
    int size = (int)strtol(size_text, NULL, 10);
    OK(cuInit(0));
    OK(cuDevicePrimaryCtxRetain(&c, 0));
    OK(cuCtxSetCurrent(c));
    OK(cuMemAlloc_v2(&p, sizeof(float) * N * (size_t)size));
    OK(cuMemAlloc_v2(&q, sizeof(float) * N * (size_t)size));
    ncclUniqueId id = share_id(argv[1], rank);
    with t = {.n = size,
              .me = rank,
              .other = size / 2 - rank,
              .x = (float *)(uintptr_t)p,
              .y = (float *)(uintptr_t)q};
    OK(cuStreamCreate(&t.s, 1));
    OK(ncclCommInitRank(&t.comm, size, id, rank));
    every(&t);
    OK(ncclCommDestroy(t.comm));
    t.n = 2;
    t.me = rank ? 1 : 0;
    t.other = 1 - t.me;
    OK(ncclCommInitRank(&t.comm, 2, id, t.me));
    every(&t);
    two_orders(&t, argv[1]);
    OK(ncclCommDestroy(t.comm));
    printf("rank %d done\n", rank);
    return 0;
}
