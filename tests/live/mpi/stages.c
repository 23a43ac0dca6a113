/* SPDX-License-Identifier: Apache-2.0 */
/* stages.c MODE STEPS - ranks in a row, which sleep instead of computing. Prints
 * the mean time of a step in the second half, since the order in which ranks
 * arrive depends on the first steps.
 *
 * tags: every rank passes two messages on, and waits for the later one first.
 * probe: a rank learns tag and length of its message from a probe.
 * any: rank 0 receives from all ranks in the order in which they send.
 * choose: every rank waits for whichever neighbour is first. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define N 20000

static int world, me, below, above;
static char data[4][N];

static void work(int ms)
{
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

static void get(int from, int tag, char *p, MPI_Request *r)
{
    MPI_Irecv(p, N, MPI_CHAR, from, tag, MPI_COMM_WORLD, r);
}

static void put(int to, int tag)
{
    MPI_Send(data[3], N, MPI_CHAR, to, tag, MPI_COMM_WORLD);
}

static void tags(void)
{
    MPI_Request late, early;
    get(below, 2, data[0], &late);
    get(below, 1, data[1], &early);
    MPI_Wait(&late, MPI_STATUS_IGNORE);
    work(5);
    MPI_Wait(&early, MPI_STATUS_IGNORE);
    put(above, 1);
    work(20);
    put(above, 2);
}

static void probe(void)
{
    MPI_Status s;
    int n = 0;
    MPI_Probe(below, MPI_ANY_TAG, MPI_COMM_WORLD, &s);
    MPI_Get_count(&s, MPI_CHAR, &n);
    MPI_Recv(data[0], n, MPI_CHAR, below, s.MPI_TAG, MPI_COMM_WORLD,
             MPI_STATUS_IGNORE);
    work(7);
    put(above, 10 + me);
}

static void any(void)
{
    for (int i = 1; i < world; i++) {
        MPI_Status s;
        MPI_Recv(data[0], N, MPI_CHAR, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &s);
        work(4);
        put(s.MPI_SOURCE, 1);
    }
}

static void choose(void)
{
    MPI_Request r[2];
    int i;
    get(below, 0, data[0], &r[0]);
    get(above, 0, data[1], &r[1]);
    put(below, 0);
    put(above, 0);
    MPI_Waitany(2, r, &i, MPI_STATUS_IGNORE);
    work(3);
    MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
}

static void step(const char *mode)
{
    if (!strcmp(mode, "choose")) {
        choose();
    } else if (!strcmp(mode, "any")) {
        if (me == 0) {
            any();
            return;
        }
        work(3 * (world - me));
        put(0, 0);
        MPI_Recv(data[0], N, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (me == 0) { /* the first of the row has what the last one sent */
        put(above, 1);
        work(2);
        put(above, !strcmp(mode, "tags") ? 2 : 10);
        MPI_Recv(data[0], N, MPI_CHAR, below, MPI_ANY_TAG, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
        MPI_Recv(data[0], N, MPI_CHAR, below, MPI_ANY_TAG, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    } else if (!strcmp(mode, "tags")) {
        tags();
    } else {
        probe();
        probe();
    }
}

int main(int argc, char **argv)
{
    double begin = 0;
    if (argc < 3) return 2;
    int steps = atoi(argv[2]);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &world);
    below = (me + world - 1) % world;
    above = (me + 1) % world;
    for (int i = 0; i < steps; i++) {
        if (i == steps / 2) begin = MPI_Wtime();
        step(argv[1]);
    }
    printf("%s rank %d: median_ms %.4f\n", argv[1], me,
           1e3 * (MPI_Wtime() - begin) / (steps - steps / 2));
    MPI_Finalize();
    return 0;
}
