/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench.c - how long collectives take, as `--delay-model table:FILE` reads it:
 *
 *   mpirun -np 2 bench > table.csv
 *
 * time_us is the median time of a call alone, of the slowest rank; cpu_us what
 * remains of it when there is as much to compute meanwhile: the time that a
 * non-blocking call takes away from the program. A send's time is half a round
 * trip, and its CPU time is left open: a receiver that comes late does not spend
 * the time that the message was on its way.
 *
 * -o operation (all without) -m largest size in bytes -r repetitions
 * -i 1: all-reduces in place, as gradients are; libraries can take another
 * algorithm then (Open MPI's non-blocking ones a slower one)
 * -n K: times of the non-blocking forms, K of them called before the first is
 * waited for, per call: what a program sees that has several in flight
 */
#include "bed.h"

#include <time.h>

#define AT_ONCE 64

typedef struct bench {
    int rank, ranks, nonblocking, in_place;
    size_t bytes; /* nccl-tests' size: the whole buffer */
    size_t room;  /* of one call's result */
    char *send, *recv;
    int *counts, *at;
} bench;

typedef void (*call)(bench *b, MPI_Request *r);

#define BLOCK(b)  ((int)((b)->bytes / (size_t)(b)->ranks))
#define FLOATS(b) ((int)((b)->bytes / sizeof(float)))
#define W         MPI_COMM_WORLD
#define F         MPI_FLOAT

/* The blocking form where the request is none. */
#define EITHER(f, i, ...)               \
    do {                                \
        if (r)                          \
            MPI_##i(__VA_ARGS__, W, r); \
        else                            \
            MPI_##f(__VA_ARGS__, W);    \
    } while (0)

static void all_reduce(bench *b, MPI_Request *r)
{
    const void *from = b->in_place ? MPI_IN_PLACE : b->send;
    EITHER(Allreduce, Iallreduce, from, b->recv, FLOATS(b), F, MPI_SUM);
}

static void all_gather(bench *b, MPI_Request *r)
{
    EITHER(Allgather, Iallgather, b->send, BLOCK(b), MPI_BYTE, b->recv,
           BLOCK(b), MPI_BYTE);
}

static void reduce_scatter(bench *b, MPI_Request *r)
{
    EITHER(Reduce_scatter_block, Ireduce_scatter_block, b->send, b->recv,
           FLOATS(b) / b->ranks, F, MPI_SUM);
}

static void all_to_all(bench *b, MPI_Request *r)
{
    EITHER(Alltoall, Ialltoall, b->send, BLOCK(b), MPI_BYTE, b->recv, BLOCK(b),
           MPI_BYTE);
}

static void broadcast(bench *b, MPI_Request *r)
{
    EITHER(Bcast, Ibcast, b->send, (int)b->bytes, MPI_BYTE, 0);
}

static void reduce(bench *b, MPI_Request *r)
{
    EITHER(Reduce, Ireduce, b->send, b->recv, FLOATS(b), F, MPI_SUM, 0);
}

static void gather(bench *b, MPI_Request *r)
{
    EITHER(Gather, Igather, b->send, BLOCK(b), MPI_BYTE, b->recv, BLOCK(b),
           MPI_BYTE, 0);
}

static void scatter(bench *b, MPI_Request *r)
{
    EITHER(Scatter, Iscatter, b->send, BLOCK(b), MPI_BYTE, b->recv, BLOCK(b),
           MPI_BYTE, 0);
}

static void scan(bench *b, MPI_Request *r)
{
    EITHER(Scan, Iscan, b->send, b->recv, FLOATS(b), F, MPI_SUM);
}

static void barrier(bench *b, MPI_Request *r)
{
    (void)b;
    if (r)
        MPI_Ibarrier(W, r);
    else
        MPI_Barrier(W);
}

/* There and back, between neighbours 0-1, 2-3 ...; an odd last rank rests. */
static void ping_pong(bench *b, MPI_Request *r)
{
    int peer = b->rank ^ 1;
    if (r) *r = MPI_REQUEST_NULL;
    if (peer >= b->ranks) return;
    if (b->rank < peer) MPI_Send(b->send, (int)b->bytes, MPI_BYTE, peer, 0, W);
    MPI_Recv(b->recv, (int)b->bytes, MPI_BYTE, peer, 0, W, MPI_STATUS_IGNORE);
    if (b->rank > peer) MPI_Send(b->send, (int)b->bytes, MPI_BYTE, peer, 0, W);
}

static const struct {
    const char *name;
    call call;
    int sized, split; /* has sizes; in blocks per rank */
} ops[] = {{"all_reduce", all_reduce, 1, 0},
           {"all_gather", all_gather, 1, 1},
           {"reduce_scatter", reduce_scatter, 1, 1},
           {"all_to_all", all_to_all, 1, 1},
           {"broadcast", broadcast, 1, 0},
           {"reduce", reduce, 1, 0},
           {"gather", gather, 1, 1},
           {"scatter", scatter, 1, 1},
           {"scan", scan, 1, 0},
           {"barrier", barrier, 0, 0},
           {"send", ping_pong, 1, 0}};

/* Keeps the processor busy: about `n` additions. */
static double spin(long n)
{
    volatile double x = 0;
    for (long i = 0; i < n; i++) x += 1;
    return x;
}

/* One call, with something to compute between its two halves. */
static double once(bench *b, call f, long work)
{
    MPI_Request r[AT_ONCE];
    int n = b->nonblocking > 1 ? b->nonblocking : 1;
    char *recv = b->recv;
    double t = MPI_Wtime();
    if (b->nonblocking || work) {
        for (int i = 0; i < n; i++, b->recv += b->room) f(b, &r[i]);
        b->recv = recv;
        if (work) spin(work);
        MPI_Waitall(n, r, MPI_STATUSES_IGNORE);
    } else {
        f(b, NULL);
    }
    return (MPI_Wtime() - t) / n;
}

/* The slowest rank's median. */
static double median(bench *b, call f, long work, int n)
{
    double *t = bed_alloc((size_t)n, sizeof *t), slowest;
    for (int i = 0; i < n / 4 + 1; i++) once(b, f, work);
    for (int i = 0; i < n; i++) {
        MPI_Barrier(W);
        t[i] = once(b, f, work);
    }
    qsort(t, (size_t)n, sizeof *t, bed_by_value);
    MPI_Allreduce(&t[n / 2], &slowest, 1, MPI_DOUBLE, MPI_MAX, W);
    free(t);
    return slowest;
}

static double spin_time(long n)
{
    double best = 1e9;
    for (int i = 0; i < 5; i++) {
        double t = MPI_Wtime();
        spin(n);
        t = MPI_Wtime() - t;
        if (t < best) best = t;
    }
    return best;
}

static void measure(bench *b, int op, size_t bytes, int n)
{
    b->bytes = bytes;
    double alone = median(b, ops[op].call, 0, n), taken = alone;
    int both_ways = ops[op].call == ping_pong;
    if (!both_ways) {
        int calls = b->nonblocking > 1 ? b->nonblocking : 1;
        long work =
            (long)(1.5 * calls * alone / spin_time(100000) * 100000) + 1;
        double computing = spin_time(work) / calls;
        MPI_Allreduce(MPI_IN_PLACE, &computing, 1, MPI_DOUBLE, MPI_MIN, W);
        MPI_Allreduce(MPI_IN_PLACE, &work, 1, MPI_LONG, MPI_MIN, W);
        taken = median(b, ops[op].call, work, n) - computing;
        if (taken < 0) taken = 0;
        if (taken > alone) taken = alone;
    }
    if (b->rank) return;
    if (both_ways)
        printf("%s,2,%zu,%.3f,\n", ops[op].name, bytes, 1e6 * alone / 2);
    else
        printf("%s,%d,%zu,%.3f,%.3f\n", ops[op].name, b->ranks, bytes,
               1e6 * alone, 1e6 * taken);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    bench b = {0};
    const char *only = NULL;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(W, &b.rank);
    MPI_Comm_size(W, &b.ranks);
    size_t most = (size_t)bed_option(argc, argv, "-m", 1 << 22);
    int n = (int)bed_option(argc, argv, "-r", 40);
    b.nonblocking = (int)bed_option(argc, argv, "-n", 0);
    b.in_place = (int)bed_option(argc, argv, "-i", 0);
    for (int i = 1; i + 1 < argc; i++)
        if (!strcmp(argv[i], "-o")) only = argv[i + 1];
    /* all-to-all's blocks and gathers' results: both of the whole size */
    b.send = bed_alloc(most + 64, 1);
    if (b.nonblocking > AT_ONCE) b.nonblocking = AT_ONCE;
    b.room = most + 64;
    b.recv =
        bed_alloc(b.room * (size_t)(b.nonblocking > 1 ? b.nonblocking : 1), 1);
    if (!b.rank) printf("op,ranks,bytes,time_us,cpu_us\n");
    for (int op = 0; op < (int)(sizeof ops / sizeof *ops); op++) {
        if (only && strcmp(only, ops[op].name)) continue;
        if (!ops[op].sized) measure(&b, op, 0, n);
        size_t unit = ops[op].split ? sizeof(float) * (size_t)b.ranks : 4;
        for (size_t s = 4; ops[op].sized && s <= most; s *= 4) {
            size_t bytes = (s + unit - 1) / unit * unit;
            if (bytes <= most && (s == 4 || bytes > s / 4))
                measure(&b, op, bytes, bytes > 1 << 18 ? n / 2 + 1 : n);
        }
    }
    MPI_Finalize();
    return 0;
}
