/* SPDX-License-Identifier: Apache-2.0 */
/*
 * program.c - a rank of a job, linked with NCCL as programs are: 10 steps of an
 * all-reduce over the world and one over each list of ranks ("0,4") that is an
 * argument and has this rank. Members agree on ids through files, whose names
 * begin with the first argument and which the first member writes.
 */
#include "mock/cuda.h"
#include "nccl/api.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

ncclResult_t ncclGetUniqueId(ncclUniqueId *);
ncclResult_t ncclCommInitRank(ncclComm_t *, int, ncclUniqueId, int);
ncclResult_t ncclAllReduce(const void *, void *, size_t, int, int, ncclComm_t,
                           CUstream);
ncclResult_t ncclCommDestroy(ncclComm_t);

static void must(int rc, const char *what)
{
    if (!rc) return;
    fprintf(stderr, "%s: %d\n", what, rc);
    exit(1);
}

/* The member at place 0 writes it; the others wait for it. */
static ncclUniqueId share(const char *prefix, int number, int place)
{
    ncclUniqueId id;
    const struct timespec moment = {0, 10000000};
    FILE *f;
    char path[500];
    snprintf(path, sizeof path, "%s.%d", prefix, number);
    if (place == 0) {
        char whole[600];
        must(ncclGetUniqueId(&id), "id");
        snprintf(whole, sizeof whole, "%s.part", path);
        f = fopen(whole, "wb");
        must(!f || fwrite(&id, sizeof id, 1, f) != 1 || fclose(f), "write");
        must(rename(whole, path), "rename");
        return id;
    }
    for (int i = 0; !(f = fopen(path, "rb")) && i < 1000; i++)
        nanosleep(&moment, NULL);
    must(!f || fread(&id, sizeof id, 1, f) != 1 || fclose(f), "read");
    return id;
}

/* The number of ranks in the list, and where `rank` is; -1: nowhere. */
static int members(const char *list, int rank, int *place)
{
    int n = 0;
    *place = -1;
    for (char *end = NULL; !end || *end; list = end + 1, n++)
        if (strtol(list, &end, 10) == rank) *place = n;
    return n;
}

static void reduce(void *at, size_t n, ncclComm_t c, CUstream s)
{
    must(ncclAllReduce(at, at, n, NCCL_FLOAT32, NCCL_AVG, c, s), "all-reduce");
}

int main(int argc, char **argv)
{
    CUcontext c;
    ncclComm_t world, part[16];
    CUstream s;
    CUdeviceptr p;
    int n_parts = 0, place;
    const char *rank_text = getenv("RANK"), *size_text = getenv("WORLD_SIZE");
    if (argc < 2 || argc > 18 || !rank_text || !size_text) return 2;
    int rank = (int)strtol(rank_text, NULL, 10);
    int size = (int)strtol(size_text, NULL, 10);
    must(cuInit(0), "cuInit");
    must(cuDevicePrimaryCtxRetain(&c, 0), "context");
    must(cuCtxSetCurrent(c), "context");
    ncclUniqueId id = share(argv[1], 0, rank);
    must(ncclCommInitRank(&world, size, id, rank), "world");
    for (int i = 2; i < argc; i++) {
        int n = members(argv[i], rank, &place);
        if (place < 0) continue;
        id = share(argv[1], i, place);
        must(ncclCommInitRank(&part[n_parts++], n, id, place), argv[i]);
    }
    must(cuStreamCreate(&s, 1), "stream");
    must(cuMemAlloc_v2(&p, 1000000), "memory");
    void *at = (void *)(uintptr_t)p;
    for (int i = 0; i < 10; i++) {
        must(mock_work(s, 500000), "work");
        reduce(at, 250000, world, s);
        for (int k = 0; k < n_parts; k++) reduce(at, 1000, part[k], s);
        must(cuStreamSynchronize(s), "synchronize");
    }
    while (n_parts > 0) must(ncclCommDestroy(part[--n_parts]), "destroy");
    must(ncclCommDestroy(world), "destroy");
    printf("rank %d done\n", rank);
    return 0;
}
