/* SPDX-License-Identifier: Apache-2.0 */
/* file.c - files: the real rank's own part is really written. */
#include "mpi/mp.h"

int MPI_File_open(MPI_Comm comm, const char *filename, int amode, MPI_Info info,
                  MPI_File *fh)
{
    if (mp_ours(comm)) {
        live_warn(mp.l,
                  "MPI_File_open: %s only real ranks read and write it, and "
                  "this takes no emulated time",
                  filename);
        live_passed(mp.l);
    }
    return PMPI_File_open(comm, filename, amode, info, fh);
}
