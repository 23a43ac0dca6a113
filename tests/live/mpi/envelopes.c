/* SPDX-License-Identifier: Apache-2.0 */
/*
 * envelopes.c - three real ranks, nobody else: which receive gets which message
 * is as MPI defines it, so that the program passes under mpirun, too.
 */
#include "check.h"

static int n, me;
static MPI_Comm w;

/* Rank 0 tells the others to go on, in this order. */
static void after(int rank)
{
    if (me == rank) MPI_Recv(NULL, 0, MPI_INT, 0, 99, w, MPI_STATUS_IGNORE);
    if (me == 0) MPI_Send(NULL, 0, MPI_INT, rank, 99, w);
}

/* Large and small ones, received in the other order. */
static void tags(void)
{
    static int large[20000], got[20000];
    int small = 7, x = 0;
    MPI_Request q[2];
    MPI_Status s;
    if (me == 1) {
        for (int i = 0; i < 20000; i++) large[i] = i;
        MPI_Isend(large, 20000, MPI_INT, 0, 1, w, &q[0]);
        MPI_Isend(&small, 1, MPI_INT, 0, 2, w, &q[1]);
        MPI_Waitall(2, q, MPI_STATUSES_IGNORE);
    }
    if (me == 0) {
        MPI_Recv(&x, 1, MPI_INT, 1, 2, w, &s);
        CHECK_EQ(x, 7);
        MPI_Irecv(got, 20000, MPI_INT, MPI_ANY_SOURCE, 1, w, q);
        MPI_Wait(q, &s);
        CHECK_EQ(s.MPI_SOURCE, 1);
        CHECK_EQ(got[19999], 19999);
    }
    MPI_Barrier(w);
}

/* The first message, not that of the first rank. */
static void anyone(void)
{
    int x = me, from[2];
    MPI_Status s;
    for (int first = 1; first < n; first++) {
        if (me == 3 - first) MPI_Recv(&x, 1, MPI_INT, first, 5, w, &s);
        if (me == first) {
            MPI_Ssend(&x, 1, MPI_INT, 0, 4, w);
            MPI_Send(&x, 1, MPI_INT, 3 - first, 5, w);
        }
        x = me;
        if (me == 3 - first) MPI_Send(&x, 1, MPI_INT, 0, 4, w);
        for (int i = 0; me == 0 && i < 2; i++) {
            MPI_Recv(&x, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, w, &s);
            CHECK_EQ(s.MPI_TAG, 4);
            CHECK_EQ(x, s.MPI_SOURCE);
            from[i] = s.MPI_SOURCE;
        }
        if (me == 0) CHECK_EQ(from[0], first);
        if (me == 0) CHECK_EQ(from[1], 3 - first);
        MPI_Barrier(w);
    }
}

static void probes(void)
{
    int count, flag = 0, x[3] = {0}, data[3] = {4, 5, 6};
    MPI_Status s;
    MPI_Message m;
    MPI_Request q;
    if (me == 1) {
        after(1);
        MPI_Send(data, 3, MPI_INT, 0, 6, w);
        MPI_Send(data, 2, MPI_INT, 0, 6, w);
        MPI_Send(data, 1, MPI_INT, 0, 7, w);
        MPI_Send(data, 0, MPI_INT, 0, 8, w);
    }
    if (me == 0) {
        MPI_Iprobe(MPI_ANY_SOURCE, 6, w, &flag, &s);
        CHECK(!flag);
        MPI_Improbe(1, MPI_ANY_TAG, w, &flag, &m, &s);
        CHECK(!flag && m == MPI_MESSAGE_NULL);
        after(1);
        MPI_Mprobe(MPI_ANY_SOURCE, 6, w, &m, &s);
        MPI_Get_count(&s, MPI_INT, &count);
        CHECK_EQ(count, 3);
        MPI_Probe(1, MPI_ANY_TAG, w, &s); /* not the claimed one */
        MPI_Get_count(&s, MPI_INT, &count);
        CHECK_EQ(count, 2);
        MPI_Recv(x, 3, MPI_INT, 1, 6, w, &s);
        MPI_Get_count(&s, MPI_INT, &count);
        CHECK_EQ(count, 2);
        MPI_Mrecv(x, 3, MPI_INT, &m, &s);
        MPI_Get_count(&s, MPI_INT, &count);
        CHECK(count == 3 && x[2] == 6 && m == MPI_MESSAGE_NULL);
        while (!flag) MPI_Improbe(1, 7, w, &flag, &m, &s);
        MPI_Imrecv(x, 3, MPI_INT, &m, &q);
        MPI_Wait(&q, &s);
        CHECK(s.MPI_TAG == 7 && x[0] == 4);
        MPI_Probe(1, 8, w, &s);
        MPI_Get_count(&s, MPI_INT, &count);
        CHECK_EQ(count, 0);
        MPI_Recv(x, 0, MPI_INT, 1, 8, w, &s);
        MPI_Mprobe(MPI_PROC_NULL, 0, w, &m, &s);
        CHECK(m == MPI_MESSAGE_NO_PROC && s.MPI_SOURCE == MPI_PROC_NULL);
    }
    MPI_Barrier(w);
}

/* A receive that is cancelled leaves its message to the next one. */
static void cancels(void)
{
    int x = 0, y = 11, flag, class, two[2] = {1, 2};
    MPI_Request q;
    MPI_Status s;
    if (me == 2) {
        MPI_Irecv(&x, 1, MPI_INT, 1, 3, w, &q);
        MPI_Cancel(&q);
        MPI_Wait(&q, &s);
        MPI_Test_cancelled(&s, &flag);
        CHECK(flag);
        MPI_Barrier(w);
        MPI_Recv(&x, 1, MPI_INT, 1, 3, w, &s);
        CHECK_EQ(x, 11);
        MPI_Comm_set_errhandler(w, MPI_ERRORS_RETURN);
        MPI_Error_class(MPI_Recv(&x, 1, MPI_INT, 1, 4, w, &s), &class);
        CHECK_EQ(class, MPI_ERR_TRUNCATE);
    } else {
        MPI_Barrier(w);
        if (me == 1) MPI_Send(&y, 1, MPI_INT, 2, 3, w);
        if (me == 1) MPI_Send(two, 2, MPI_INT, 2, 4, w);
    }
    MPI_Barrier(w);
}

/* Synchronous, to oneself: ends when its receive has been called. */
static void oneself(void)
{
    int x = 5, y = 0, flag;
    MPI_Request q;
    MPI_Issend(&x, 1, MPI_INT, me, 1, w, &q);
    MPI_Test(&q, &flag, MPI_STATUS_IGNORE);
    CHECK(!flag);
    MPI_Recv(&y, 1, MPI_INT, me, 1, w, MPI_STATUS_IGNORE);
    MPI_Wait(&q, MPI_STATUS_IGNORE);
    CHECK_EQ(y, 5);
}

/* Polling claims a message while it is on its way: none is lost. */
static void polls(void)
{
    for (int i = 0; i < 200 && me < 2; i++) {
        int x = me == 0 ? i : -1, flag = 0;
        MPI_Message m;
        if (me == i % 2) {
            x = i;
            MPI_Send(&x, 1, MPI_INT, 1 - me, i, w);
            continue;
        }
        while (!flag) MPI_Improbe(1 - me, i, w, &flag, &m, MPI_STATUS_IGNORE);
        MPI_Mrecv(&x, 1, MPI_INT, &m, MPI_STATUS_IGNORE);
        CHECK_EQ(x, i);
    }
    MPI_Barrier(w);
}

static void larger(void *in, void *out, int *count, MPI_Datatype *type)
{
    int *a = in, *b = out;
    (void)type;
    for (int i = 0; i < *count; i++)
        if (a[i] > b[i]) b[i] = a[i];
}

/* Lists, types and operations may change as soon as the call has returned. */
static void lists(void)
{
    enum { N = 3 };

    int mine[N], got[N], counts[N], at[N], bytes[N];
    MPI_Datatype pair, types[N];
    MPI_Op op;
    MPI_Request q[4];
    int most = -1, pairs[2 * N * 2], sent[2 * N * 2], all[N];
    for (int i = 0; i < N; i++) counts[i] = 1, at[i] = i, mine[i] = 10 * me + i;
    MPI_Ialltoallv(mine, counts, at, MPI_INT, got, counts, at, MPI_INT, w, q);
    MPI_Iallgatherv(&me, 1, MPI_INT, all, counts, at, MPI_INT, w, &q[1]);
    MPI_Type_vector(2, 1, 2, MPI_INT, &pair);
    for (int i = 0; i < N; i++) {
        types[i] = pair;
        bytes[i] = 4 * i * (int)sizeof(int);
    }
    for (int i = 0; i < 4 * N; i++) sent[i] = 100 * me + i, pairs[i] = -1;
    MPI_Type_commit(&pair);
    MPI_Ialltoallw(sent, counts, bytes, types, pairs, counts, bytes, types, w,
                   &q[2]);
    MPI_Type_free(&pair);
    MPI_Op_create(larger, 1, &op);
    MPI_Iallreduce(&me, &most, 1, MPI_INT, op, w, &q[3]);
    MPI_Op_free(&op);
    CHECK(op == MPI_OP_NULL);
    memset(counts, 0x7f, sizeof counts);
    memset(at, 0x7f, sizeof at);
    memset(bytes, 0x7f, sizeof bytes);
    memset(types, 0, sizeof types);
    MPI_Waitall(4, q, MPI_STATUSES_IGNORE);
    CHECK_EQ(most, N - 1);
    for (int i = 0; i < N; i++) {
        CHECK_EQ(got[i], 10 * i + me);
        CHECK_EQ(all[i], i);
        CHECK_EQ(pairs[4 * i], 100 * i + 4 * me);
        CHECK_EQ(pairs[4 * i + 1], -1);
        CHECK_EQ(pairs[4 * i + 2], 100 * i + 4 * me + 2);
    }
}

static void communicators(void)
{
    MPI_Comm c;
    int k = -1, is_not = 0;
    MPI_Comm_split_type(w, me == 1 ? MPI_UNDEFINED : MPI_COMM_TYPE_SHARED, -me,
                        MPI_INFO_NULL, &c);
    CHECK((c == MPI_COMM_NULL) == (me == 1));
    if (me != 1) {
        MPI_Comm_size(c, &k);
        CHECK_EQ(k, 2);
        MPI_Comm_rank(c, &k);
        CHECK_EQ(k, me == 0);
        MPI_Comm_free(&c);
    }
    MPI_Cart_map(w, 1, (int[]){2}, (int[]){0}, &k);
    if (me < 2) CHECK_EQ(k, me);
    MPI_Cart_create(w, 0, NULL, NULL, 0, &c);
    CHECK((c == MPI_COMM_NULL) == (me != 0));
    if (me == 0) {
        MPI_Cartdim_get(c, &k);
        CHECK_EQ(k, 0);
        MPI_Comm_free(&c);
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    is_not = MPI_Comm_compare(MPI_COMM_SELF, MPI_COMM_NULL, &k) != MPI_SUCCESS;
    CHECK(is_not);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    w = MPI_COMM_WORLD;
    MPI_Comm_size(w, &n);
    MPI_Comm_rank(w, &me);
    CHECK_EQ(n, 3);
    tags();
    anyone();
    probes();
    cancels();
    oneself();
    polls();
    lists();
    communicators();
    MPI_Finalize();
    return verdict("envelopes");
}
