/* SPDX-License-Identifier: Apache-2.0 */
/*
 * real.c - several real ranks among emulated ones: what they give each other is
 * true.  Run with real ranks 1 and 4 of 6; emulated ranks mirror them in turn:
 * 0, 3 have what 1 has, 2, 5 what 4 has.
 */
#include "check.h"

static int n, me, other;

static double of(int rank) /* what a rank's data is, in the end */
{
    return rank == 0 || rank == 1 || rank == 3 ? 1 : 4;
}

static void collectives(void)
{
    double x = me, y = 0, all[6], sum = 0, prefix = 0;
    for (int i = 0; i < n; i++) sum += of(i);
    for (int i = 0; i <= me; i++) prefix += of(i);
    MPI_Allreduce(&x, &y, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    CHECK_EQ(y, sum);
    MPI_Request q;
    MPI_Iallreduce(&x, &y, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD, &q);
    MPI_Wait(&q, MPI_STATUS_IGNORE);
    CHECK_EQ(y, 4);
    MPI_Allgather(&x, 1, MPI_DOUBLE, all, 1, MPI_DOUBLE, MPI_COMM_WORLD);
    for (int i = 0; i < n; i++) CHECK_EQ(all[i], of(i));
    y = me;
    MPI_Bcast(&y, 1, MPI_DOUBLE, 4, MPI_COMM_WORLD);
    CHECK_EQ(y, 4);
    double blocks[6], got[6];
    for (int i = 0; i < n; i++) blocks[i] = 10 * me + i;
    MPI_Alltoall(blocks, 1, MPI_DOUBLE, got, 1, MPI_DOUBLE, MPI_COMM_WORLD);
    for (int i = 0; i < n; i++) CHECK_EQ(got[i], 10 * of(i) + me);
    MPI_Scatter(blocks, 1, MPI_DOUBLE, &y, 1, MPI_DOUBLE, 1, MPI_COMM_WORLD);
    CHECK_EQ(y, 10 + me);
    MPI_Reduce_scatter_block(blocks, &y, 1, MPI_DOUBLE, MPI_SUM,
                             MPI_COMM_WORLD);
    sum = 0;
    for (int i = 0; i < n; i++) sum += 10 * of(i) + me;
    CHECK_EQ(y, sum);
    MPI_Scan(&x, &y, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    CHECK_EQ(y, me == 4 ? 4 : 1);
    (void)prefix;
}

/* Emulated roots, members without elements, and buffers in place. */
static void unusual(void)
{
    double x = me, y = me, all[6], got[6] = {0};
    int counts[6] = {2, 2, 0, 2, 0, 0}, at[6] = {0, 2, 4, 4, 6, 6};
    MPI_Bcast(&y, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    CHECK_EQ(y, 1); /* of the first real one */
    MPI_Scatter(NULL, 0, MPI_DOUBLE, got, 6, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    CHECK_EQ(got[0], 0); /* nothing of that length was sent */
    double two[2] = {x, x + 10};
    MPI_Gatherv(two, counts[me], MPI_DOUBLE, got, counts, at, MPI_DOUBLE, 1,
                MPI_COMM_WORLD);
    for (int i = 0; i < 6; i++) CHECK_EQ(got[i], me == 1 ? i % 2 * 10 + 1 : 0);
    for (int i = 0; i < n; i++) all[i] = 10 * me + i;
    MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, 1, MPI_DOUBLE,
                 MPI_COMM_WORLD);
    for (int i = 0; i < n; i++) CHECK_EQ(all[i], 10 * of(i) + me);
    for (int i = 0; i < n; i++) all[i] = me;
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, 1, MPI_DOUBLE,
                  MPI_COMM_WORLD);
    for (int i = 0; i < n; i++) CHECK_EQ(all[i], of(i));
    y = -1;
    MPI_Exscan(&x, &y, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    CHECK_EQ(y, me);
}

/* Tags and communicators keep messages apart, whatever their order. */
static void messages(void)
{
    int a = 100 + me, b = 200 + me, c = 300 + me, got[3] = {0};
    MPI_Comm d;
    MPI_Request q[3];
    MPI_Status s;
    MPI_Comm_dup(MPI_COMM_WORLD, &d);
    MPI_Isend(&a, 1, MPI_INT, other, 1, MPI_COMM_WORLD, &q[0]);
    MPI_Isend(&b, 1, MPI_INT, other, 2, MPI_COMM_WORLD, &q[1]);
    MPI_Isend(&c, 1, MPI_INT, other, 1, d, &q[2]);
    MPI_Recv(&got[2], 1, MPI_INT, other, 1, d, &s);
    CHECK_EQ(s.MPI_SOURCE, other);
    MPI_Recv(&got[1], 1, MPI_INT, other, 2, MPI_COMM_WORLD, &s);
    MPI_Probe(other, MPI_ANY_TAG, MPI_COMM_WORLD, &s);
    CHECK_EQ(s.MPI_TAG, 1);
    MPI_Recv(&got[0], 1, MPI_INT, other, MPI_ANY_TAG, MPI_COMM_WORLD, &s);
    CHECK_EQ(s.MPI_TAG, 1);
    MPI_Waitall(3, q, MPI_STATUSES_IGNORE);
    for (int i = 0; i < 3; i++) CHECK_EQ(got[i], 100 * (i + 1) + other);
    MPI_Sendrecv(&a, 1, MPI_INT, other, 5, got, 1, MPI_INT, other, 5, d, &s);
    CHECK_EQ(got[0], 100 + other);
    MPI_Irecv(&got[0], 1, MPI_INT, other, 8, d, &q[0]);
    MPI_Irecv(&got[1], 1, MPI_INT, other, 7, d, &q[1]);
    MPI_Send(&a, 1, MPI_INT, other, 7, d);
    MPI_Send(&b, 1, MPI_INT, other, 8, d);
    MPI_Waitall(2, q, MPI_STATUSES_IGNORE);
    CHECK_EQ(got[0], 200 + other);
    CHECK_EQ(got[1], 100 + other);
    MPI_Comm_free(&d);
}

/* Communicators with the same members are told apart, whatever the order. */
static void twins(void)
{
    MPI_Comm c[2] = {MPI_COMM_WORLD};
    MPI_Request q[2];
    double x[2] = {me, 100 * me}, y[2] = {0}, sum = 0;
    for (int i = 0; i < n; i++) sum += of(i);
    MPI_Comm_dup(MPI_COMM_WORLD, &c[1]);
    for (int i = 0; i < 2; i++) {
        int k = me == 1 ? i : 1 - i;
        MPI_Iallreduce(&x[k], &y[k], 1, MPI_DOUBLE, MPI_SUM, c[k], &q[k]);
    }
    MPI_Waitall(2, q, MPI_STATUSES_IGNORE);
    CHECK_EQ(y[0], sum);
    CHECK_EQ(y[1], 100 * sum);
    MPI_Comm_free(&c[1]);
}

/* True colours tell how to split: 1 and 4 differ by rank / 3, not rank % 3. */
static void splits(void)
{
    MPI_Comm c;
    int size, rank;
    MPI_Comm_split(MPI_COMM_WORLD, me % 3, me, &c);
    MPI_Comm_size(c, &size);
    MPI_Comm_rank(c, &rank);
    CHECK_EQ(size, 2);
    CHECK_EQ(rank, me / 3);
    double x = me, y = 0;
    MPI_Allreduce(&x, &y, 1, MPI_DOUBLE, MPI_SUM, c);
    CHECK_EQ(y, 5);
    MPI_Comm_free(&c);
    MPI_Comm_split(MPI_COMM_WORLD, me / 3, me, &c);
    MPI_Comm_size(c, &size);
    CHECK_EQ(size, 3);
    MPI_Allreduce(&x, &y, 1, MPI_DOUBLE, MPI_SUM, c);
    CHECK_EQ(y, 3 * me);
    MPI_Comm_free(&c);
}

/* A file that must be new fails for all ranks alike. */
static void files(const char *there)
{
    MPI_File f;
    int class, mode = MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_WRONLY;
    char path[4096];
    MPI_Error_class(
        MPI_File_open(MPI_COMM_WORLD, there, mode, MPI_INFO_NULL, &f), &class);
    CHECK_EQ(class, MPI_ERR_FILE_EXISTS);
    snprintf(path, sizeof path, "%s.new", there);
    CHECK_EQ(MPI_File_open(MPI_COMM_WORLD, path,
                           mode | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &f),
             MPI_SUCCESS);
    MPI_File_close(&f);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    CHECK_EQ(n, 6);
    CHECK(me == 1 || me == 4);
    other = 5 - me;
    collectives();
    unusual();
    messages();
    twins();
    splits();
    if (argc > 1) files(argv[1]);
    MPI_Finalize();
    return verdict("real");
}
