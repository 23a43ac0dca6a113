/* SPDX-License-Identifier: Apache-2.0 */
/* stages.c MODE STEPS - ranks in a row, which sleep instead of computing. Prints
 * the mean time of a step in the second half, since the order in which ranks
 * arrive depends on the first steps.
 *
 * tags: every rank passes two messages on, and waits for the later one first.
 * probe: a rank learns tag and length of its message from a probe.
 * any: rank 0 receives from all ranks in the order in which they send.
 * choose: every rank waits for whichever neighbour is first.
 * comms, rising: as tags, but the two messages have the same tag on two
 * communicators, or tags that rise from step to step.
 * poll: a ring that asks whether its message has come.
 * manager: rank 0 gives out 12 pieces of work; how long each takes is in it.
 * uneven: ranks compute for different times between collectives, whose parts
 * differ.
 * counts: ranks tell each other how much they send.
 * given: rank 0 works for as long as messages of the others say.
 * flight: four all-reduces at once. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define N 20000

static int world, me, below, above;
static char data[4][N];
static MPI_Comm comm[2];

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

/* Rank 0 sends both, the others pass them on. */
static void tags(MPI_Comm a, int first, MPI_Comm b, int second)
{
    MPI_Request late, early;
    if (me == 0) {
        MPI_Send(data[3], N, MPI_CHAR, above, first, a);
        work(2);
        MPI_Send(data[3], N, MPI_CHAR, above, second, b);
    }
    MPI_Irecv(data[0], N, MPI_CHAR, below, second, b, &late);
    MPI_Irecv(data[1], N, MPI_CHAR, below, first, a, &early);
    MPI_Wait(&late, MPI_STATUS_IGNORE);
    work(5);
    MPI_Wait(&early, MPI_STATUS_IGNORE);
    if (me == 0) return;
    MPI_Send(data[3], N, MPI_CHAR, above, first, a);
    work(20);
    MPI_Send(data[3], N, MPI_CHAR, above, second, b);
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
    work(2 + 5 * me);
    put(below, 0);
    put(above, 0);
    MPI_Waitany(2, r, &i, MPI_STATUS_IGNORE);
    work(i ? 12 : 3);
    MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
}

static void poll(void)
{
    MPI_Request r;
    int done = 0;
    get(below, 0, data[0], &r);
    work(2 + 4 * me);
    put(above, 0);
    while (!done) {
        nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL);
        MPI_Test(&r, &done, MPI_STATUS_IGNORE);
    }
}

static void manager(void)
{
    int piece = 0, out = 0, none = -1;
    if (me != 0) {
        for (;;) {
            MPI_Recv(&piece, 1, MPI_INT, 0, 1, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
            if (piece < 0) return;
            work(5 + piece % 3 * 10);
            MPI_Send(&piece, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
        }
    }
    for (int i = 1; i < world; i++, piece++, out++)
        MPI_Send(&piece, 1, MPI_INT, i, 1, MPI_COMM_WORLD);
    for (; out > 0; out--) {
        MPI_Status s;
        int result;
        MPI_Recv(&result, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &s);
        work(1);
        MPI_Send(piece < 12 ? &piece : &none, 1, MPI_INT, s.MPI_SOURCE, 1,
                 MPI_COMM_WORLD);
        if (piece < 12) piece++, out++;
    }
}

static void uneven(void)
{
    int counts[16], at[16], n = 1000 * (1 + me);
    for (int i = 0; i < world; i++) {
        counts[i] = 1000 * (1 + i);
        at[i] = i ? at[i - 1] + counts[i - 1] : 0;
    }
    work(5 + 10 * me);
    MPI_Allgatherv(data[3], n, MPI_CHAR, data[0], counts, at, MPI_CHAR,
                   MPI_COMM_WORLD);
    work(40 - 10 * me);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void counts(void)
{
    int out[16], in[16], to[16], from[16];
    for (int i = 0; i < world; i++) {
        out[i] = 10 * (1 + me) + i;
        to[i] = i ? to[i - 1] + out[i - 1] : 0;
    }
    MPI_Alltoall(out, 1, MPI_INT, in, 1, MPI_INT, MPI_COMM_WORLD);
    for (int i = 0; i < world; i++) from[i] = i ? from[i - 1] + in[i - 1] : 0;
    MPI_Alltoallv(data[0], out, to, MPI_CHAR, data[1], in, from, MPI_CHAR,
                  MPI_COMM_WORLD);
}

static void given(void)
{
    int ms = 5 * (1 + me);
    if (me != 0) {
        MPI_Send(&ms, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
        MPI_Recv(&ms, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        return;
    }
    for (int i = 1; i < world; i++) {
        MPI_Status s;
        MPI_Recv(&ms, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &s);
        work(ms);
        ms = 0;
        MPI_Send(&ms, 1, MPI_INT, s.MPI_SOURCE, 1, MPI_COMM_WORLD);
    }
}

static void flight(void)
{
    MPI_Request r[4];
    for (int i = 0; i < 4; i++)
        MPI_Iallreduce(MPI_IN_PLACE, data[i], 4, MPI_CHAR, MPI_SUM,
                       MPI_COMM_WORLD, &r[i]);
    for (int i = 0; i < 4; i++) MPI_Wait(&r[i], MPI_STATUS_IGNORE);
}

static void step(const char *mode, int i)
{
    if (!strcmp(mode, "choose")) {
        choose();
    } else if (!strcmp(mode, "tags")) {
        tags(MPI_COMM_WORLD, 1, MPI_COMM_WORLD, 2);
    } else if (!strcmp(mode, "comms")) {
        tags(comm[0], 1, comm[1], 1);
    } else if (!strcmp(mode, "rising")) {
        tags(MPI_COMM_WORLD, 2 * i, MPI_COMM_WORLD, 2 * i + 1);
    } else if (!strcmp(mode, "poll")) {
        poll();
    } else if (!strcmp(mode, "manager")) {
        manager();
    } else if (!strcmp(mode, "counts")) {
        counts();
    } else if (!strcmp(mode, "flight")) {
        flight();
    } else if (!strcmp(mode, "given")) {
        given();
    } else if (!strcmp(mode, "uneven")) {
        uneven();
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
        put(above, 10);
        MPI_Recv(data[0], N, MPI_CHAR, below, MPI_ANY_TAG, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
        MPI_Recv(data[0], N, MPI_CHAR, below, MPI_ANY_TAG, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
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
    MPI_Comm_dup(MPI_COMM_WORLD, &comm[0]);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm[1]);
    below = (me + world - 1) % world;
    above = (me + 1) % world;
    for (int i = 0; i < steps; i++) {
        if (i == steps / 2) begin = MPI_Wtime();
        step(argv[1], i);
    }
    printf("%s rank %d: median_ms %.4f\n", argv[1], me,
           1e3 * (MPI_Wtime() - begin) / (steps - steps / 2));
    MPI_Finalize();
    return 0;
}
