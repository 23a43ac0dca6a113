/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of MPI 4 with large counts: as those with ints, whose limits they
 * have in an emulated world. */
#include "check.h"

#if MPI_VERSION >= 4

static int world, me;

static void messages(void)
{
    int mine = 7, got = 0;
    MPI_Request r[2];
    MPI_Status s;
    MPI_Message m;
    int next = (me + 1) % world, last = (me + world - 1) % world;
    MPI_Sendrecv_c(&mine, 1, MPI_INT, next, 1, &got, 1, MPI_INT, last, 1,
                   MPI_COMM_WORLD, &s);
    CHECK_EQ(got, 7);
    got = 0;
    MPI_Irecv_c(&got, 1, MPI_INT, last, 2, MPI_COMM_WORLD, &r[0]);
    MPI_Isend_c(&mine, 1, MPI_INT, next, 2, MPI_COMM_WORLD, &r[1]);
    MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
    CHECK_EQ(got, 7);
    got = 0;
    MPI_Isend_c(&mine, 1, MPI_INT, me, 3, MPI_COMM_WORLD, &r[0]);
    MPI_Mprobe(me, 3, MPI_COMM_WORLD, &m, &s);
    MPI_Mrecv_c(&got, 1, MPI_INT, &m, &s);
    MPI_Wait(&r[0], MPI_STATUS_IGNORE);
    CHECK_EQ(got, 7);
}

/* Arrays are gone when the operation ends. */
static void collectives(void)
{
    MPI_Count *n = malloc(world * sizeof *n);
    MPI_Aint *at = malloc(world * sizeof *at);
    MPI_Datatype *t = malloc(world * sizeof *t);
    int *in = malloc(world * sizeof *in), *out = calloc(world, sizeof *out);
    MPI_Request r;
    int one = 1, sum = 0;
    MPI_Allreduce_c(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK_EQ(sum, world);
    for (int i = 0; i < world; i++) {
        n[i] = 1;
        at[i] = i;
        t[i] = MPI_INT;
        in[i] = 5;
    }
    MPI_Allgatherv_c(&one, 1, MPI_INT, out, n, at, MPI_INT, MPI_COMM_WORLD);
    CHECK_EQ(out[world - 1], 1);
    MPI_Alltoallv_c(in, n, at, MPI_INT, out, n, at, MPI_INT, MPI_COMM_WORLD);
    CHECK_EQ(out[world - 1], 5);
    MPI_Alltoallv_c(MPI_IN_PLACE, NULL, NULL, MPI_INT, out, n, at, MPI_INT,
                    MPI_COMM_WORLD);
    CHECK_EQ(out[0], 5);
    MPI_Gatherv_c(&one, 1, MPI_INT, out, me == 0 ? n : (void *)8,
                  me == 0 ? at : (void *)8, MPI_INT, 0, MPI_COMM_WORLD);
    if (me == 0) CHECK_EQ(out[world - 1], 1);
    for (int i = 0; i < world; i++) at[i] = i * (MPI_Aint)sizeof *in;
    MPI_Ialltoallw_c(in, n, at, t, out, n, at, t, MPI_COMM_WORLD, &r);
    free(n);
    free(at);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    CHECK_EQ(out[0], 5);
    free(t);
    free(in);
    free(out);
}

static void too_large(void)
{
    int code, class, x = 0;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    code = MPI_Bcast_c(&x, (MPI_Count)1 << 40, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Error_class(code, &class);
    CHECK_EQ(class, MPI_ERR_COUNT);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &world);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    messages();
    collectives();
    too_large();
    MPI_Finalize();
    return verdict("large");
}

#else

int main(void)
{
    CHECK(MPI_VERSION < 4); /* has no such functions */
    return verdict("large");
}

#endif
