/* SPDX-License-Identifier: Apache-2.0 */
/*
 * program.c - a rank of a job, linked with NCCL as programs are: 10 steps of an
 * all-reduce over the world and one over this rank and the one 4 after it.
 * Ranks agree on ids through the file that the only argument names.
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

/* Rank 0 writes it; the others wait for it. */
static ncclUniqueId share(const char *path, int rank)
{
    ncclUniqueId id;
    const struct timespec moment = {0, 10000000};
    FILE *f;
    if (rank == 0) {
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

int main(int argc, char **argv)
{
    CUcontext c;
    ncclComm_t world, pair;
    CUstream s;
    CUdeviceptr p;
    const char *rank_text = getenv("RANK"), *size_text = getenv("WORLD_SIZE");
    if (argc < 2 || !rank_text || !size_text) return 2;
    int rank = (int)strtol(rank_text, NULL, 10);
    int size = (int)strtol(size_text, NULL, 10);
    must(cuInit(0), "cuInit");
    must(cuDevicePrimaryCtxRetain(&c, 0), "context");
    must(cuCtxSetCurrent(c), "context");
    ncclUniqueId id = share(argv[1], rank);
    must(ncclCommInitRank(&world, size, id, rank), "world");
    must(ncclCommInitRank(&pair, 2, id, rank / 4), "pair");
    must(cuStreamCreate(&s, 1), "stream");
    must(cuMemAlloc_v2(&p, 1000000), "memory");
    void *at = (void *)(uintptr_t)p;
    for (int i = 0; i < 10; i++) {
        must(mock_work(s, 500000), "work");
        must(ncclAllReduce(at, at, 250000, NCCL_FLOAT32, NCCL_AVG, world, s),
             "all-reduce");
        must(ncclAllReduce(at, at, 1000, NCCL_FLOAT32, NCCL_MAX, pair, s),
             "all-reduce of two");
        must(cuStreamSynchronize(s), "synchronize");
    }
    must(ncclCommDestroy(pair), "destroy");
    must(ncclCommDestroy(world), "destroy");
    printf("rank %d done\n", rank);
    return 0;
}
