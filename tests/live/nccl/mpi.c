/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mpi.c - a rank of a job that makes communicators of NCCL from those of MPI. The
 * argument says which:
 *
 * split: of MPI_Comm_split(), by rank % 3, the highest rank first.
 * nccl: the same parts, of ncclCommSplit().
 * grid: rows and columns of 4, whose ids come when all communicators are made.
 * untold: a column; its members get the id in another way.
 */
#include "mock/cuda.h"
#include "nccl/api.h"

#include <mpi.h>
#include <stdio.h>
#include <string.h>

ncclResult_t ncclGetUniqueId(ncclUniqueId *);
ncclResult_t ncclCommInitRank(ncclComm_t *, int, ncclUniqueId, int);
ncclResult_t ncclCommSplit(ncclComm_t, int, int, ncclComm_t *, void *);
ncclResult_t ncclAllReduce(const void *, void *, size_t, int, int, ncclComm_t,
                           CUstream);

static void must(int rc, const char *what)
{
    if (!rc) return;
    fprintf(stderr, "%s: %d\n", what, rc);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static MPI_Comm part(int colour, int key)
{
    MPI_Comm c;
    MPI_Comm_split(MPI_COMM_WORLD, colour, key, &c);
    return c;
}

static ncclComm_t over(MPI_Comm c, int told)
{
    static ncclUniqueId id; /* an old one, if the root is emulated */
    ncclComm_t out;
    int rank, size;
    MPI_Comm_rank(c, &rank);
    MPI_Comm_size(c, &size);
    if (rank == 0) must(ncclGetUniqueId(&id), "id");
    if (told) MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, c);
    must(ncclCommInitRank(&out, size, id, rank), "ncclCommInitRank");
    return out;
}

static void steps(ncclComm_t a, ncclComm_t b)
{
    CUstream s;
    CUdeviceptr p;
    must(cuStreamCreate(&s, 1), "stream");
    must(cuMemAlloc_v2(&p, 1000000), "memory");
    void *at = (void *)(uintptr_t)p;
    for (int i = 0; i < 10; i++) {
        must(mock_work(s, 500000), "work");
        must(ncclAllReduce(at, at, 1000, NCCL_FLOAT32, NCCL_SUM, a, s), "a");
        must(ncclAllReduce(at, at, 900, NCCL_FLOAT32, NCCL_SUM, b, s), "b");
        must(cuStreamSynchronize(s), "synchronize");
    }
}

int main(int argc, char **argv)
{
    int r;
    CUcontext c;
    ncclComm_t a, b;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &r);
    must(cuInit(0), "cuInit");
    must(cuDevicePrimaryCtxRetain(&c, 0), "context");
    must(cuCtxSetCurrent(c), "context");
    const char *what = argc > 1 ? argv[1] : "";
    if (strcmp(what, "split") == 0) {
        a = b = over(part(r % 3, -r), 1);
    } else if (strcmp(what, "nccl") == 0) {
        a = over(MPI_COMM_WORLD, 1);
        must(ncclCommSplit(a, r % 3, -r, &b, NULL), "ncclCommSplit");
    } else {
        MPI_Comm rows = part(r / 4, r), columns = part(r % 4, r);
        int told = strcmp(what, "grid") == 0;
        b = over(columns, told);
        a = told ? over(rows, 1) : b;
    }
    steps(a, b);
    MPI_Finalize();
    return 0;
}
