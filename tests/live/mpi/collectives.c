/* SPDX-License-Identifier: Apache-2.0 */
/*
 * collectives.c - every collective, in all its forms, against what peers that
 * have this rank's data imply.
 */
#include "check.h"

static int n, me;

/* Runs blocking, non-blocking and (MPI 4) persistent form of one call: each
 * after `before`, each checked by `after`. */
#if MPI_VERSION >= 4
#define PERSISTENT(f, before, after, ...)               \
    do {                                                \
        MPI_Request q;                                  \
        MPI_##f##_init(__VA_ARGS__, MPI_INFO_NULL, &q); \
        for (int round = 0; round < 2; round++) {       \
            before;                                     \
            MPI_Start(&q);                              \
            MPI_Wait(&q, MPI_STATUS_IGNORE);            \
            CHECK(q != MPI_REQUEST_NULL);               \
            after;                                      \
        }                                               \
        MPI_Request_free(&q);                           \
        CHECK(q == MPI_REQUEST_NULL);                   \
    } while (0)
#else
#define PERSISTENT(f, before, after, ...) (void)0
#endif

#define FORMS(f, i, before, after, ...)                          \
    do {                                                         \
        MPI_Request r_;                                          \
        before;                                                  \
        CHECK_EQ(MPI_##f(__VA_ARGS__), MPI_SUCCESS);             \
        after;                                                   \
        before;                                                  \
        CHECK_EQ(MPI_##i(__VA_ARGS__, &r_), MPI_SUCCESS);        \
        CHECK_EQ(MPI_Wait(&r_, MPI_STATUS_IGNORE), MPI_SUCCESS); \
        CHECK(r_ == MPI_REQUEST_NULL);                           \
        after;                                                   \
        PERSISTENT(f, before, after, __VA_ARGS__);               \
    } while (0)

#define COUNT 5

static double send[COUNT], *all, *out;

static void fill(void)
{
    for (int i = 0; i < COUNT; i++) send[i] = i + 1.5;
    for (int i = 0; i < COUNT * n; i++) {
        all[i] = i + 0.25;
        out[i] = -1;
    }
}

static void same_as(double factor)
{
    for (int i = 0; i < COUNT; i++) CHECK_EQ(out[i], factor * send[i]);
}

static void reductions(void)
{
    MPI_Comm w = MPI_COMM_WORLD;
    FORMS(Allreduce, Iallreduce, fill(), same_as(n), send, out, COUNT,
          MPI_DOUBLE, MPI_SUM, w);
    FORMS(Allreduce, Iallreduce, fill(), same_as(1), send, out, COUNT,
          MPI_DOUBLE, MPI_MAX, w);
    FORMS(Reduce, Ireduce, fill(), same_as(n), send, out, COUNT, MPI_DOUBLE,
          MPI_SUM, me, w);
    FORMS(Reduce, Ireduce, fill(), CHECK_EQ(out[0], -1), send, out, COUNT,
          MPI_DOUBLE, MPI_SUM, (me + 1) % n, w);
    FORMS(Scan, Iscan, fill(), same_as(me + 1), send, out, COUNT, MPI_DOUBLE,
          MPI_SUM, w);
    FORMS(Exscan, Iexscan, fill(), me ? same_as(me) : CHECK_EQ(out[0], -1),
          send, out, COUNT, MPI_DOUBLE, MPI_SUM, w);
    FORMS(Reduce_scatter_block, Ireduce_scatter_block, fill(),
          CHECK_EQ(out[COUNT - 1], n * all[me * COUNT + COUNT - 1]), all, out,
          COUNT, MPI_DOUBLE, MPI_SUM, w);
    int *counts = malloc((size_t)n * sizeof *counts), first = 0;
    for (int i = 0; i < n; i++) counts[i] = i % COUNT;
    for (int i = 0; i < me; i++) first += counts[i];
    FORMS(Reduce_scatter, Ireduce_scatter, fill(),
          CHECK_EQ(out[0], counts[me] ? n * all[first] : -1), all, out, counts,
          MPI_DOUBLE, MPI_SUM, w);
    free(counts);
}

static void in_place(void)
{
    MPI_Comm w = MPI_COMM_WORLD;
    double *x = out;
#define SET \
    for (int i = 0; i < COUNT * n; i++) x[i] = i + 1
    FORMS(Allreduce, Iallreduce, SET, CHECK_EQ(x[2], 3 * n), MPI_IN_PLACE, x,
          COUNT, MPI_DOUBLE, MPI_SUM, w);
    FORMS(Reduce, Ireduce, SET, CHECK_EQ(x[2], 3 * n), MPI_IN_PLACE, x, COUNT,
          MPI_DOUBLE, MPI_SUM, me, w);
    FORMS(Reduce_scatter_block, Ireduce_scatter_block, SET,
          CHECK_EQ(x[1], n * (me * COUNT + 2.0)), MPI_IN_PLACE, x, COUNT,
          MPI_DOUBLE, MPI_SUM, w);
    FORMS(Allgather, Iallgather, SET,
          CHECK_EQ(x[COUNT * (n - 1)], me * COUNT + 1), MPI_IN_PLACE, 0,
          MPI_DATATYPE_NULL, x, COUNT, MPI_DOUBLE, w);
    FORMS(Gather, Igather, SET, CHECK_EQ(x[COUNT * (n - 1)], me * COUNT + 1),
          MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, x, COUNT, MPI_DOUBLE, me, w);
    FORMS(Alltoall, Ialltoall, SET,
          CHECK_EQ(x[COUNT * (n - 1)], me * COUNT + 1), MPI_IN_PLACE, 0,
          MPI_DATATYPE_NULL, x, COUNT, MPI_DOUBLE, w);
    FORMS(Scatter, Iscatter, SET, CHECK_EQ(x[COUNT], COUNT + 1), x, COUNT,
          MPI_DOUBLE, MPI_IN_PLACE, COUNT, MPI_DOUBLE, me, w);
    FORMS(Scan, Iscan, SET, CHECK_EQ(x[1], 2 * (me + 1)), MPI_IN_PLACE, x,
          COUNT, MPI_DOUBLE, MPI_SUM, w);
}

static void everyone_has_mine(void)
{
    for (int p = 0; p < n; p++)
        for (int i = 0; i < COUNT; i++) CHECK_EQ(out[p * COUNT + i], send[i]);
}

static void to_me(void) /* block `me` of all, of every peer */
{
    for (int p = 0; p < n; p++)
        for (int i = 0; i < COUNT; i++)
            CHECK_EQ(out[p * COUNT + i], all[me * COUNT + i]);
}

static void moves(void)
{
    MPI_Comm w = MPI_COMM_WORLD;
    int *counts = malloc((size_t)n * sizeof *counts);
    int *at = malloc((size_t)n * sizeof *at);
    MPI_Datatype *types = malloc((size_t)n * sizeof *types);
    int *bytes = malloc((size_t)n * sizeof *bytes);
    for (int i = 0; i < n; i++) {
        counts[i] = COUNT;
        at[i] = i * COUNT;
        bytes[i] = at[i] * (int)sizeof(double);
        types[i] = MPI_DOUBLE;
    }
    FORMS(Bcast, Ibcast, fill(), CHECK_EQ(send[1], 2.5), send, COUNT,
          MPI_DOUBLE, me, w);
    FORMS(Bcast, Ibcast, fill(), CHECK_EQ(send[1], 2.5), send, COUNT,
          MPI_DOUBLE, n - 1, w);
    FORMS(Allgather, Iallgather, fill(), everyone_has_mine(), send, COUNT,
          MPI_DOUBLE, out, COUNT, MPI_DOUBLE, w);
    FORMS(Allgatherv, Iallgatherv, fill(), everyone_has_mine(), send, COUNT,
          MPI_DOUBLE, out, counts, at, MPI_DOUBLE, w);
    FORMS(Gather, Igather, fill(), everyone_has_mine(), send, COUNT, MPI_DOUBLE,
          out, COUNT, MPI_DOUBLE, me, w);
    FORMS(Gather, Igather, fill(), CHECK_EQ(out[0], -1), send, COUNT,
          MPI_DOUBLE, out, COUNT, MPI_DOUBLE, (me + 1) % n, w);
    FORMS(Gatherv, Igatherv, fill(), everyone_has_mine(), send, COUNT,
          MPI_DOUBLE, out, counts, at, MPI_DOUBLE, me, w);
    FORMS(Scatter, Iscatter, fill(), CHECK_EQ(out[1], all[me * COUNT + 1]), all,
          COUNT, MPI_DOUBLE, out, COUNT, MPI_DOUBLE, me, w);
    FORMS(Scatterv, Iscatterv, fill(), CHECK_EQ(out[1], all[me * COUNT + 1]),
          all, counts, at, MPI_DOUBLE, out, COUNT, MPI_DOUBLE, me, w);
    FORMS(Alltoall, Ialltoall, fill(), to_me(), all, COUNT, MPI_DOUBLE, out,
          COUNT, MPI_DOUBLE, w);
    FORMS(Alltoallv, Ialltoallv, fill(), to_me(), all, counts, at, MPI_DOUBLE,
          out, counts, at, MPI_DOUBLE, w);
    FORMS(Alltoallw, Ialltoallw, fill(), to_me(), all, counts, bytes, types,
          out, counts, bytes, types, w);
    FORMS(Barrier, Ibarrier, fill(), CHECK_EQ(out[0], -1), w);
    free(counts);
    free(at);
    free(types);
    free(bytes);
}

/* From a root that is not there: as a message that was sent before. */
static void emulated_root(void)
{
    double x[3] = {7, 8, 9}, y[3] = {-1, -1, -1};
    int root = (me + 1) % n;
    MPI_Scatter(NULL, 0, MPI_DOUBLE, y, 3, MPI_DOUBLE, root, MPI_COMM_WORLD);
    CHECK_EQ(y[0], 0);
    MPI_Send(x, 3, MPI_DOUBLE, root, 0, MPI_COMM_WORLD);
    MPI_Scatter(NULL, 0, MPI_DOUBLE, y, 3, MPI_DOUBLE, root, MPI_COMM_WORLD);
    CHECK_EQ(y[2], 9);
}

static long power(long base, long to, long modulus)
{
    long v = 1;
    for (long i = 0; i < to; i++) v = v * base % modulus;
    return v;
}

/* Associative, and unlike any predefined one: the product modulo 1009. */
static void product(void *in, void *inout, int *len, MPI_Datatype *t)
{
    (void)t;
    for (int i = 0; i < *len; i++)
        ((long *)inout)[i] = ((long *)in)[i] * ((long *)inout)[i] % 1009;
}

static void operations(void)
{
    MPI_Op op;
    long x[3] = {2, 3, 5}, y[3] = {0};
    MPI_Op_create(product, 1, &op);
    MPI_Allreduce(x, y, 3, MPI_LONG, op, MPI_COMM_WORLD);
    for (int i = 0; i < 3; i++) CHECK_EQ(y[i], power(x[i], n, 1009));
    MPI_Op_free(&op);

    struct {
        double value;
        int rank;
    } in = {4.5, me}, best = {0};

    MPI_Allreduce(&in, &best, 1, MPI_DOUBLE_INT, MPI_MAXLOC, MPI_COMM_WORLD);
    CHECK_EQ(best.value, 4.5);
    CHECK_EQ(best.rank, me);

    unsigned char bits = 0x5a, xor = 1;
    MPI_Allreduce(&bits, &xor, 1, MPI_UNSIGNED_CHAR, MPI_BXOR, MPI_COMM_WORLD);
    CHECK_EQ(xor, n % 2 ? 0x5a : 0);
    int yes = 3, and = 0;
    MPI_Allreduce(&yes, &and, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    CHECK_EQ(and, 1);
    int8_t small = 100, wrapped = 0;
    MPI_Allreduce(&small, &wrapped, 1, MPI_INT8_T, MPI_SUM, MPI_COMM_WORLD);
    CHECK_EQ(wrapped, (int8_t)(unsigned char)(100 * n));
    long double ld = 0.5L, lsum = 0;
    MPI_Allreduce(&ld, &lsum, 1, MPI_LONG_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    CHECK_EQ(lsum, 0.5 * n);
    float c[2] = {1, 2}, csum[2] = {0};
    MPI_Allreduce(c, csum, 1, MPI_C_FLOAT_COMPLEX, MPI_SUM, MPI_COMM_WORLD);
    CHECK_EQ(csum[1], 2.0 * n);
}

static void sum_columns(void *in, void *inout, int *len, MPI_Datatype *t)
{
    MPI_Aint lb, extent;
    MPI_Type_get_extent(*t, &lb, &extent);
    for (int i = 0; i < *len; i++)
        for (int k = 0; k < 2; k++) {
            size_t at =
                (size_t)i * (size_t)extent / sizeof(int) + 2 * (size_t)k;
            ((int *)inout)[at] += ((int *)in)[at];
        }
}

/* Every other int of three, in gathers, and in a reduction of the user's. */
static void derived(void)
{
    MPI_Datatype t;
    MPI_Op op;
    int x[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    int *y = malloc((size_t)n * 4 * sizeof *y), z[8] = {0};
    MPI_Type_vector(2, 1, 2, MPI_INT, &t);
    MPI_Type_commit(&t);
    MPI_Allgather(x, 1, t, y, 2, MPI_INT, MPI_COMM_WORLD);
    for (int p = 0; p < n; p++) {
        CHECK_EQ(y[2 * p], 1);
        CHECK_EQ(y[2 * p + 1], 3);
    }
    MPI_Request r;
    for (int i = 0; i < 4 * n; i++) y[i] = -1;
    MPI_Iallgather(x, 2, MPI_INT, y, 1, t, MPI_COMM_WORLD, &r);
    MPI_Op_create(sum_columns, 1, &op);
    MPI_Allreduce(x, z, 2, t, op, MPI_COMM_WORLD);
    CHECK_EQ(z[0], 1 * n);
    CHECK_EQ(z[1], 0);
    CHECK_EQ(z[2], 3 * n);
    CHECK_EQ(z[3], 4 * n);
    CHECK_EQ(z[5], 6 * n);
    MPI_Op_free(&op);
    MPI_Type_free(&t);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    CHECK_EQ(y[3 * (n - 1)], 1);
    CHECK_EQ(y[3 * (n - 1) + 2], 2);
    CHECK_EQ(n > 1 ? y[1] : -1, -1);
    free(y);
}

static void wrong_arguments(void)
{
    double x[1] = {1}, y[1];
    MPI_Comm c;
    MPI_Comm_dup(MPI_COMM_WORLD, &c);
    MPI_Comm_set_errhandler(c, MPI_ERRORS_RETURN);
    int code, class;
#define FAILS(as, ...)                 \
    do {                               \
        code = __VA_ARGS__;            \
        MPI_Error_class(code, &class); \
        CHECK_EQ(class, as);           \
    } while (0)
    FAILS(MPI_ERR_ROOT, MPI_Bcast(x, 1, MPI_DOUBLE, n, c));
    FAILS(MPI_ERR_ROOT, MPI_Reduce(x, y, 1, MPI_DOUBLE, MPI_SUM, -1, c));
    FAILS(MPI_ERR_COUNT, MPI_Allreduce(x, y, -1, MPI_DOUBLE, MPI_SUM, c));
    FAILS(MPI_ERR_TYPE, MPI_Allreduce(x, y, 1, MPI_DATATYPE_NULL, MPI_SUM, c));
    FAILS(MPI_ERR_OP, MPI_Allreduce(x, y, 1, MPI_DOUBLE, MPI_OP_NULL, c));
    FAILS(MPI_ERR_RANK, MPI_Send(x, 1, MPI_DOUBLE, n, 0, c));
    FAILS(MPI_ERR_TAG, MPI_Send(x, 1, MPI_DOUBLE, 0, -5, c));
    FAILS(MPI_ERR_COUNT,
          MPI_Recv(x, -1, MPI_DOUBLE, 0, 0, c, MPI_STATUS_IGNORE));
    MPI_Win w;
    FAILS(MPI_ERR_UNSUPPORTED_OPERATION,
          MPI_Win_create(x, 8, 1, MPI_INFO_NULL, c, &w));
    MPI_Comm d;
    FAILS(MPI_ERR_UNSUPPORTED_OPERATION,
          MPI_Intercomm_create(c, 0, c, 1, 0, &d));
    FAILS(MPI_ERR_TOPOLOGY,
          MPI_Neighbor_allgather(x, 1, MPI_DOUBLE, y, 1, MPI_DOUBLE, c));
    MPI_Comm_free(&c);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    CHECK(argc < 2 || n == strtol(argv[1], NULL, 10));
    all = malloc((size_t)(COUNT * n) * sizeof *all);
    out = malloc((size_t)(COUNT * n) * sizeof *out);
    fill();
    emulated_root();
    reductions();
    in_place();
    moves();
    operations();
    derived();
    wrong_arguments();
    free(all);
    free(out);
    MPI_Finalize();
    return verdict("collectives");
}
