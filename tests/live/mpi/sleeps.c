/* SPDX-License-Identifier: Apache-2.0 */
/* sleeps.c FILE - rank 1 sleeps until it sees a file that rank 0 makes after a
 * long sleep and a call that asks for the world: on the virtual clock the
 * sleeper must not be far ahead of it then. */
#include "check.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int me;
    MPI_Comm more;
    if (argc < 2) return 2;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    double begin = MPI_Wtime();
    if (me == 0) {
        nanosleep(&(struct timespec){.tv_sec = 100}, NULL);
        MPI_Comm_dup(MPI_COMM_WORLD, &more);
        int fd = open(argv[1], O_CREAT | O_WRONLY, 0666);
        CHECK(fd >= 0);
        close(fd);
    } else {
        while (access(argv[1], F_OK) != 0 && MPI_Wtime() - begin < 200)
            nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
        double slept = MPI_Wtime() - begin;
        printf("slept %.3f s\n", slept);
        CHECK(slept > 99 && slept < 103);
        MPI_Comm_dup(MPI_COMM_WORLD, &more);
    }
    MPI_Barrier(more);
    MPI_Finalize();
    return verdict("sleeps");
}
