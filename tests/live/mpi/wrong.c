/* SPDX-License-Identifier: Apache-2.0 */
/* wrong.c - programs that do what they should not: one per argument. */
#include "check.h"

static int is(char **argv, const char *what)
{
    return !strcmp(argv[1], what);
}

int main(int argc, char **argv)
{
    double x = 1, y = 0;
    int rank, n;
    MPI_Request q;
    if (argc < 2) return 9;
    if (is(argv, "early"))
        MPI_Allreduce(&x, &y, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    MPI_Comm w = MPI_COMM_WORLD;
    if (is(argv, "abort")) MPI_Abort(w, 7);
    if (is(argv, "order")) {
        if (rank)
            MPI_Bcast(&x, 1, MPI_DOUBLE, 0, w);
        else
            MPI_Allreduce(&x, &y, 1, MPI_DOUBLE, MPI_SUM, w);
    }
    if (is(argv, "twice")) {
        MPI_Send_init(&x, 1, MPI_DOUBLE, (rank + 1) % n, 0, w, &q);
        MPI_Start(&q);
        MPI_Start(&q);
    }
    if (is(argv, "stale")) {
        MPI_Ibarrier(w, &q);
        MPI_Request copy = q;
        MPI_Wait(&q, MPI_STATUS_IGNORE);
        MPI_Wait(&copy, MPI_STATUS_IGNORE);
    }
    if (is(argv, "self")) {
        MPI_Recv(&x, 1, MPI_DOUBLE, rank, 0, w, MPI_STATUS_IGNORE);
    }
    if (is(argv, "window")) {
        MPI_Win win;
        MPI_Win_create(&x, sizeof x, 1, MPI_INFO_NULL, w, &win);
    }
    if (is(argv, "shared")) {
        MPI_File f;
        MPI_File_open(w, argv[0], MPI_MODE_RDONLY, MPI_INFO_NULL, &f);
        MPI_File_seek_shared(f, 0, MPI_SEEK_SET);
    }
    if (is(argv, "root")) MPI_Bcast(&x, 1, MPI_DOUBLE, n, w);
    if (is(argv, "pending"))
        MPI_Irecv(&x, 1, MPI_DOUBLE, (rank + 1) % n, 0, w, &q);
    MPI_Finalize();
    if (is(argv, "late")) MPI_Barrier(w);
    puts("came to its end");
    return 0;
}
