/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shuffle.c - an external sort: every rank reads its numbers in rounds; each
 * round goes to the ranks that own the ranges (MPI_Alltoall of counts,
 * MPI_Alltoallv of numbers), is sorted there and spilled to a file; in the end
 * each rank merges its runs.  The figure printed as loss is the sum of all
 * numbers modulo 2^32, which sorting does not change.
 *
 * -n numbers per rank and round -s rounds
 */
#include "bed.h"

typedef struct sorter {
    int rank, ranks, n;
    uint64_t *in, *out;      /* [n], [cap] */
    uint64_t *splitter;      /* [ranks - 1] upper bounds of ranges */
    int *send, *recv, *sent; /* [ranks] counts; displacements */
    int *from;
    size_t cap;
    FILE *runs;
    long *length; /* [rounds] numbers of each run */
} sorter;

static int by_number(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static int owner(const sorter *s, uint64_t v)
{
    int low = 0, high = s->ranks - 1;
    while (low < high) {
        int mid = (low + high) / 2;
        if (v < s->splitter[mid])
            high = mid;
        else
            low = mid + 1;
    }
    return low;
}

/* Ranges that hold about as many each: from everyone's sample. */
static void find_ranges(sorter *s, uint64_t *seed)
{
    enum { SAMPLE = 32 };

    uint64_t mine[SAMPLE];
    size_t n = SAMPLE * (size_t)s->ranks;
    uint64_t *all = bed_alloc(n, sizeof *all);
    for (int i = 0; i < SAMPLE; i++) mine[i] = bed_next(seed);
    MPI_Allgather(mine, SAMPLE, MPI_UINT64_T, all, SAMPLE, MPI_UINT64_T,
                  MPI_COMM_WORLD);
    qsort(all, n, sizeof *all, by_number);
    for (int i = 0; i + 1 < s->ranks; i++)
        s->splitter[i] = all[SAMPLE * ((size_t)i + 1)];
    free(all);
}

/* Numbers by owner, in one pass over the counts and one over the numbers. */
static void partition(sorter *s, uint64_t *seed, uint64_t *sorted)
{
    memset(s->send, 0, (size_t)s->ranks * sizeof *s->send);
    for (int i = 0; i < s->n; i++) {
        s->in[i] = bed_next(seed);
        s->send[owner(s, s->in[i])]++;
    }
    for (int r = 0, at = 0; r < s->ranks; at += s->send[r++]) s->sent[r] = at;
    for (int i = 0; i < s->n; i++)
        sorted[s->sent[owner(s, s->in[i])]++] = s->in[i];
    for (int r = 0; r < s->ranks; r++) s->sent[r] -= s->send[r];
}

static uint64_t round_of(sorter *s, uint64_t *seed, uint64_t *sorted, int k)
{
    partition(s, seed, sorted);
    MPI_Alltoall(s->send, 1, MPI_INT, s->recv, 1, MPI_INT, MPI_COMM_WORLD);
    size_t n = 0;
    for (int r = 0; r < s->ranks; r++) {
        s->from[r] = (int)n;
        n += (size_t)s->recv[r];
    }
    if (n > s->cap) {
        free(s->out);
        s->cap = n + n / 4;
        s->out = bed_alloc(s->cap, sizeof *s->out);
    }
    MPI_Alltoallv(sorted, s->send, s->sent, MPI_UINT64_T, s->out, s->recv,
                  s->from, MPI_UINT64_T, MPI_COMM_WORLD);
    qsort(s->out, n, sizeof *s->out, by_number);
    if (fwrite(s->out, sizeof *s->out, n, s->runs) != n) {
        perror("shuffle");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    s->length[k] = (long)n;
    uint64_t sum = 0;
    for (int i = 0; i < s->n; i++) sum += sorted[i];
    return sum;
}

/* Reads the runs side by side; false: a number is out of order or of another's
 * range. */
static int merge(sorter *s, int rounds, uint64_t *sum)
{
    enum { AHEAD = 1024 };

    size_t nr = (size_t)rounds;
    uint64_t(*buf)[AHEAD] = bed_alloc(nr, sizeof *buf), last = 0;
    long *at = bed_alloc(nr, sizeof *at), *left = bed_alloc(nr, sizeof *left);
    int *i = bed_alloc(nr, sizeof *i), *n = bed_alloc(nr, sizeof *n);
    int sorted = 1;
    for (int k = 0, first = 0; k < rounds; first += (int)s->length[k++]) {
        at[k] = first;
        left[k] = s->length[k];
    }
    for (;;) {
        int best = -1;
        for (int k = 0; k < rounds; k++) {
            if (i[k] == n[k] && left[k]) {
                n[k] = (int)(left[k] < AHEAD ? left[k] : AHEAD);
                fseek(s->runs, at[k] * (long)sizeof(uint64_t), SEEK_SET);
                if (fread(buf[k], sizeof(uint64_t), (size_t)n[k], s->runs) !=
                    (size_t)n[k])
                    return 0;
                at[k] += n[k];
                left[k] -= n[k];
                i[k] = 0;
            }
            if (i[k] < n[k] && (best < 0 || buf[k][i[k]] < buf[best][i[best]]))
                best = k;
        }
        if (best < 0) break;
        uint64_t v = buf[best][i[best]++];
        sorted = sorted && v >= last && owner(s, v) == s->rank;
        last = v;
        *sum += v;
    }
    free(buf);
    free(at);
    free(left);
    free(i);
    free(n);
    return sorted;
}

int main(int argc, char **argv)
{
    sorter s = {0};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &s.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &s.ranks);
    s.n = (int)bed_option(argc, argv, "-n", 20000);
    int rounds = (int)bed_option(argc, argv, "-s", 20);
    size_t nr = (size_t)s.ranks;
    uint64_t seed = 5 + (uint64_t)s.rank, given = 0, got = 0;
    s.in = bed_alloc((size_t)s.n, sizeof *s.in);
    uint64_t *sorted = bed_alloc((size_t)s.n, sizeof *sorted);
    s.splitter = bed_alloc(nr, sizeof *s.splitter);
    s.send = bed_alloc(nr, sizeof *s.send);
    s.recv = bed_alloc(nr, sizeof *s.recv);
    s.sent = bed_alloc(nr, sizeof *s.sent);
    s.from = bed_alloc(nr, sizeof *s.from);
    s.length = bed_alloc((size_t)rounds, sizeof *s.length);
    s.runs = tmpfile();
    if (!s.runs) MPI_Abort(MPI_COMM_WORLD, 1);
    find_ranges(&s, &seed);
    double *t = bed_alloc((size_t)rounds, sizeof *t);
    for (int k = 0; k < rounds; k++) {
        double from = MPI_Wtime();
        given += round_of(&s, &seed, sorted, k);
        t[k] = MPI_Wtime() - from;
    }
    int ok = merge(&s, rounds, &got), all = 0;
    uint64_t mine[2] = {given, got}, sums[2];
    MPI_Allreduce(mine, sums, 2, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(&ok, &all, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    printf("shuffle rank %d of %d: %s, sums %s\n", s.rank, s.ranks,
           all ? "sorted" : "NOT SORTED",
           sums[0] == sums[1] ? "equal" : "differ (peers mirror this rank)");
    bed_report("shuffle", t, rounds, (double)(sums[1] & 0xffffffff));
    fclose(s.runs);
    MPI_Finalize();
    return !all;
}
