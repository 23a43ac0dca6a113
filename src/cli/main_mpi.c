/* SPDX-License-Identifier: Apache-2.0 */
/* main_mpi.c - the ranks of `stepcast-mpi`: messages of a search by MPI. */
#include "cli/main.h"

#include <limits.h>
#include <mpi.h>
#include <stdio.h>
#include <time.h>

/* How long a rank sleeps before it looks for a message again, and how often it
 * looks before it says that none came. */
enum { SLEEP_NS = 100000, LOOKS = 200, TAG = 1 };

static sc_search_ranks ranks = {.rank = 0, .n = 1};

static sc_status failed(const char *what, sc_err *err)
{
    return sc_error(err, SC_EIO, SC_C_IO, sc_pos_none(), NULL,
                    "MPI can't %s a message", what);
}

static sc_status send(void *with, uint32_t to, const sc_bytes *m, sc_err *err)
{
    (void)with;
    if (m->len > INT_MAX || MPI_Send(m->buf, (int)m->len, MPI_BYTE, (int)to,
                                     TAG, MPI_COMM_WORLD) != MPI_SUCCESS)
        return failed("send", err);
    return SC_OK;
}

static sc_status receive(void *with, sc_bytes *m, uint32_t *from, sc_err *err)
{
    const struct timespec nap = {.tv_nsec = SLEEP_NS};
    MPI_Status at;
    int is = 0, n = 0;
    (void)with;
    *from = ranks.n;
    m->len = 0;
    for (int i = 0; i < LOOKS; i++) {
        if (MPI_Iprobe(MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD, &is, &at) !=
            MPI_SUCCESS)
            return failed("receive", err);
        if (is) break;
        nanosleep(&nap, NULL);
    }
    if (!is) return SC_OK;
    if (MPI_Get_count(&at, MPI_BYTE, &n) != MPI_SUCCESS || n < 0)
        return failed("receive", err);
    sc_bytes_reserve(m, (size_t)n);
    if (m->failed) return sc_error_nomem(err);
    if (MPI_Recv(m->buf, n, MPI_BYTE, at.MPI_SOURCE, TAG, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE) != MPI_SUCCESS)
        return failed("receive", err);
    m->len = (size_t)n;
    *from = (uint32_t)at.MPI_SOURCE;
    return SC_OK;
}

sc_status main_ranks_open(cli_host *host, int argc, char **argv, sc_err *err)
{
    int level, rank = 0, n = 1, here = 1;
    MPI_Comm node;
    if (MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &level) !=
            MPI_SUCCESS ||
        level < MPI_THREAD_SERIALIZED)
        return sc_error(err, SC_EIO, SC_C_IO, sc_pos_none(), NULL,
                        "MPI does not start with threads");
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    if (MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank,
                            MPI_INFO_NULL, &node) == MPI_SUCCESS) {
        MPI_Comm_size(node, &here);
        MPI_Comm_free(&node);
    }
    if (n < 2)
        return sc_error(err, SC_EINPUT, SC_C_UNSUPPORTED, sc_pos_none(),
                        "start it by mpirun, or by srun --mpi=pmix",
                        "MPI sees one rank alone");
    ranks = (sc_search_ranks){.rank = (uint32_t)rank,
                              .n = (uint32_t)n,
                              .send = send,
                              .receive = receive};
    host->ranks = &ranks;
    host->ranks_here = (uint32_t)here;
    return SC_OK;
}

static bool is_answer(sc_status s)
{
    return s == SC_OK || s == SC_NO || s == SC_EINTR;
}

/* Rank 0 prints what all ranks find wrong; what another one alone finds wrong
 * it is told, and prints that. */
bool main_ranks_close(sc_status s, const sc_err *err)
{
    if (ranks.rank == 0) return true;
    if (is_answer(s)) return false;
    sc_bytes m = {0};
    sc_search_ranks_fail(s, err, &m);
    if (!m.failed) send(NULL, 0, &m, NULL);
    sc_bytes_free(&m);
    return false;
}

/* mpirun ends a job if any rank returns something else than 0. */
int main_ranks_end(sc_status s)
{
    if (ranks.rank == 0 && !is_answer(s)) MPI_Abort(MPI_COMM_WORLD, (int)s);
    MPI_Finalize();
    return ranks.rank == 0 || !is_answer(s) ? (int)s : 0;
}
