/* SPDX-License-Identifier: Apache-2.0 */
/*
 * messages.c - point-to-point messages with ranks that are not there, with
 * oneself, and requests of all kinds together.
 */
#include "check.h"

static int n, me, peer;
static MPI_Comm w;

static void status_is(MPI_Status s, int source, int tag, MPI_Datatype t,
                      int count)
{
    int got;
    MPI_Get_count(&s, t, &got);
    CHECK_EQ(s.MPI_SOURCE, source);
    CHECK_EQ(s.MPI_TAG, tag);
    CHECK_EQ(got, count);
}

static void emulated(void)
{
    int x[4] = {1, 2, 3, 4}, y[4] = {-1, -1, -1, -1}, z[3] = {5, 6, 7};
    MPI_Status s;
    MPI_Recv(y, 4, MPI_INT, peer, 3, w, &s);
    CHECK_EQ(y[3], 0); /* nothing of that shape was sent yet */
    status_is(s, peer, 3, MPI_INT, 4);
    MPI_Send(x, 4, MPI_INT, peer, 9, w);
    MPI_Ssend(z, 3, MPI_INT, peer, 9, w);
    MPI_Recv(y, 4, MPI_INT, peer, MPI_ANY_TAG, w, &s);
    CHECK_EQ(y[3], 4);
    status_is(s, peer, 9, MPI_INT, 4);
    MPI_Recv(y, 3, MPI_INT, peer, 1, w, MPI_STATUS_IGNORE);
    CHECK_EQ(y[2], 7);
    MPI_Sendrecv(x, 2, MPI_INT, peer, 0, y, 2, MPI_INT, peer, 0, w, &s);
    CHECK_EQ(y[1], 2);
    status_is(s, peer, 0, MPI_INT, 2);
    x[0] = 77;
    MPI_Sendrecv_replace(x, 4, MPI_INT, peer, 0, peer, 0, w, &s);
    CHECK_EQ(x[0], 77);
    MPI_Recv(y, 4, MPI_INT, MPI_PROC_NULL, 3, w, &s);
    status_is(s, MPI_PROC_NULL, MPI_ANY_TAG, MPI_INT, 0);
    int flag = 0;
    MPI_Send(z, 3, MPI_INT, peer, 5, w);
    MPI_Probe(peer, MPI_ANY_TAG, w, &s);
    status_is(s, peer, 5, MPI_INT, 3);
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, w, &flag, &s);
    CHECK(flag);
}

/* Who expects one message of each gets one of each. */
static void anyone(void)
{
    char *seen = calloc((size_t)n, 1);
    int x;
    MPI_Status s;
    for (int i = 0; i < n - 1; i++) {
        MPI_Recv(&x, 1, MPI_INT, MPI_ANY_SOURCE, 0, w, &s);
        CHECK(s.MPI_SOURCE >= 0 && s.MPI_SOURCE < n && s.MPI_SOURCE != me);
        seen[s.MPI_SOURCE]++;
    }
    for (int i = 0; i < n; i++) CHECK_EQ(seen[i], i != me);
    free(seen);
}

static void oneself(void)
{
    int a = 1, b = 2, c[4] = {0}, flag;
    MPI_Request q[3];
    MPI_Status s;
    MPI_Iprobe(me, 4, w, &flag, MPI_STATUS_IGNORE);
    CHECK(!flag);
    MPI_Irecv(&c[0], 1, MPI_INT, me, 7, w, &q[0]);
    MPI_Irecv(&c[1], 1, MPI_INT, me, MPI_ANY_TAG, w, &q[1]);
    MPI_Test(&q[0], &flag, &s);
    CHECK(!flag);
    MPI_Send(&a, 1, MPI_INT, me, 4, w); /* to the second */
    MPI_Isend(&b, 1, MPI_INT, me, 7, w, &q[2]);
    MPI_Waitall(3, q, MPI_STATUSES_IGNORE);
    CHECK_EQ(c[0], 2);
    CHECK_EQ(c[1], 1);
    MPI_Send(&a, 1, MPI_INT, me, 4, w);
    MPI_Probe(me, 4, w, &s);
    status_is(s, me, 4, MPI_INT, 1);
    MPI_Recv(c, 4, MPI_INT, MPI_ANY_SOURCE, 4, w, &s); /* shorter than room */
    status_is(s, me, 4, MPI_INT, 1);
    /* Not what was sent through another communicator. */
    MPI_Comm d;
    MPI_Comm_dup(w, &d);
    MPI_Send(&a, 1, MPI_INT, me, 4, d);
    MPI_Send(&b, 1, MPI_INT, me, 4, w);
    MPI_Recv(c, 1, MPI_INT, me, 4, w, &s);
    CHECK_EQ(c[0], 2);
    MPI_Recv(c, 1, MPI_INT, me, 4, d, &s);
    CHECK_EQ(c[0], 1);
    MPI_Comm_set_errhandler(d, MPI_ERRORS_RETURN);
    int class, two[2] = {1, 2};
    MPI_Send(two, 2, MPI_INT, me, 4, d);
    MPI_Error_class(MPI_Recv(c, 1, MPI_INT, me, 4, d, &s), &class);
    CHECK_EQ(class, MPI_ERR_TRUNCATE);
    MPI_Recv_init(c, 1, MPI_INT, me, 4, d, &q[0]);
    MPI_Start(&q[0]);
    MPI_Send(two, 2, MPI_INT, me, 4, d);
    MPI_Error_class(MPI_Wait(&q[0], &s), &class);
    CHECK_EQ(class, MPI_ERR_TRUNCATE);
    CHECK_EQ(MPI_Wait(&q[0], &s), MPI_SUCCESS); /* inactive again */
    MPI_Request_free(&q[0]);
    MPI_Comm_free(&d);
}

/* Ours, the library's own and none, in one wait. */
static void together(void)
{
    int x = 5, y = 0, own = 6, got = 0, sum = 0, flag, index, n_done, at[8];
    MPI_Request q[8];
    MPI_Status s[8];
    for (int how = 0; how < 6; how++) {
        for (int i = 0; i < 8; i++) q[i] = MPI_REQUEST_NULL;
        MPI_Irecv(&y, 1, MPI_INT, peer, 1, w, &q[0]);
        MPI_Irecv(&got, 1, MPI_INT, 0, 2, MPI_COMM_SELF, &q[2]);
        MPI_Iallreduce(&x, &sum, 1, MPI_INT, MPI_SUM, w, &q[3]);
        MPI_Isend(&x, 1, MPI_INT, peer, 1, w, &q[5]);
        MPI_Isend(&own, 1, MPI_INT, 0, 2, MPI_COMM_SELF, &q[6]);
        int left = 5;
        switch (how) {
        case 0:
            MPI_Waitall(8, q, s);
            status_is(s[2], 0, 2, MPI_INT, 1);
            status_is(s[0], peer, 1, MPI_INT, 1);
            break;
        case 1:
            for (; left; left--) {
                MPI_Waitany(8, q, &index, &s[0]);
                CHECK(index >= 0 && q[index] == MPI_REQUEST_NULL);
            }
            MPI_Waitany(8, q, &index, &s[0]);
            CHECK_EQ(index, MPI_UNDEFINED);
            break;
        case 2:
            while (left) {
                MPI_Waitsome(8, q, &n_done, at, s);
                CHECK(n_done > 0);
                left -= n_done;
            }
            MPI_Waitsome(8, q, &n_done, at, s);
            CHECK_EQ(n_done, MPI_UNDEFINED);
            break;
        case 3:
            do MPI_Testall(8, q, &flag, MPI_STATUSES_IGNORE);
            while (!flag);
            break;
        case 4:
            do {
                MPI_Testany(8, q, &index, &flag, MPI_STATUS_IGNORE);
                left -= flag && index != MPI_UNDEFINED;
            } while (left);
            break;
        default:
            do {
                MPI_Testsome(8, q, &n_done, at, MPI_STATUSES_IGNORE);
                left -= n_done;
            } while (left);
        }
        for (int i = 0; i < 8; i++) CHECK(q[i] == MPI_REQUEST_NULL);
        CHECK_EQ(sum, 5 * n);
        CHECK_EQ(got, 6);
    }
}

static void persistent(void)
{
    int x = 0, y = 0, flag = 0;
    MPI_Request q[2];
    MPI_Status s;
    MPI_Send_init(&x, 1, MPI_INT, peer, 0, w, &q[0]);
    MPI_Recv_init(&y, 1, MPI_INT, peer, 0, w, &q[1]);
    MPI_Wait(&q[1], &s); /* inactive: at once */
    status_is(s, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_INT, 0);
    for (x = 1; x < 4; x++) {
        MPI_Startall(2, q);
        MPI_Waitall(2, q, MPI_STATUSES_IGNORE);
        CHECK_EQ(y, x);
    }
    MPI_Start(&q[1]);
    while (!flag) MPI_Request_get_status(q[1], &flag, MPI_STATUS_IGNORE);
    CHECK(q[1] != MPI_REQUEST_NULL);
    MPI_Wait(&q[1], MPI_STATUS_IGNORE);
    MPI_Request_free(&q[0]);
    MPI_Request_free(&q[1]);
    CHECK(q[0] == MPI_REQUEST_NULL && q[1] == MPI_REQUEST_NULL);
    MPI_Isend(&x, 1, MPI_INT, peer, 0, w, &q[0]);
    MPI_Request_free(&q[0]);
    MPI_Irecv(&y, 1, MPI_INT, peer, 0, w, &q[0]);
    MPI_Request_free(&q[0]); /* a barrier may say that it has ended */
    MPI_Barrier(w);
    CHECK_EQ(y, x);
    MPI_Irecv(&y, 1, MPI_INT, me, 99, w, &q[0]);
    MPI_Cancel(&q[0]);
    MPI_Wait(&q[0], &s);
    MPI_Test_cancelled(&s, &flag);
    CHECK(flag);
}

/* Columns of a matrix, whose type is freed while they are under way. */
static void derived(void)
{
    MPI_Datatype t;
    MPI_Request q[2];
    int x[9] = {1, 2, 3, 4, 5, 6, 7, 8, 9}, y[9] = {0}, z[3] = {0};
    MPI_Status s;
    MPI_Type_vector(3, 1, 3, MPI_INT, &t);
    MPI_Type_commit(&t);
    MPI_Irecv(y, 1, t, peer, 0, w, &q[0]);
    MPI_Isend(x + 1, 1, t, peer, 0, w, &q[1]);
    MPI_Type_free(&t);
    MPI_Waitall(2, q, MPI_STATUSES_IGNORE);
    CHECK_EQ(y[3], 5);
    CHECK_EQ(y[1], 0);
    MPI_Recv(z, 3, MPI_INT, peer, 0, w, &s);
    CHECK_EQ(z[2], 8);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_dup(MPI_COMM_WORLD, &w);
    MPI_Comm_size(w, &n);
    MPI_Comm_rank(w, &me);
    peer = (me + 1) % n;
    emulated();
    anyone();
    oneself();
    together();
    persistent();
    derived();
    MPI_Comm_free(&w);
    MPI_Finalize();
    return verdict("messages");
}
