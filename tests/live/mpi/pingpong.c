/* SPDX-License-Identifier: Apache-2.0 */
/* pingpong.c - pingpong ROUNDS: ranks 0 and 1, 2 and 3, ... send a message to
 * and fro; the odd rank sends it back in two parts. Prints the mean time of a
 * round after the first. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define N 30000

int main(int argc, char **argv)
{
    static char data[N];
    int rank, rounds = argc > 1 ? atoi(argv[1]) : 20;
    double begin = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < rounds; i++) {
        if (i == 1) begin = MPI_Wtime();
        if (rank % 2 == 0) {
            MPI_Send(data, N, MPI_CHAR, rank + 1, 0, MPI_COMM_WORLD);
            for (int k = 0; k < 2; k++)
                MPI_Recv(data, N / 2, MPI_CHAR, rank + 1, 0, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(data, N, MPI_CHAR, rank - 1, 0, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
            for (int k = 0; k < 2; k++)
                MPI_Send(data, N / 2, MPI_CHAR, rank - 1, 0, MPI_COMM_WORLD);
        }
    }
    printf("pingpong rank %d: median_ms %.4f\n", rank,
           1e3 * (MPI_Wtime() - begin) / (rounds - 1));
    MPI_Finalize();
    return 0;
}
