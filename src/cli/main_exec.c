/* SPDX-License-Identifier: Apache-2.0 */
/* main_exec.c - `stepcast search` becomes `stepcast-mpi` among several ranks. */
#include "cli/main.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What launchers tell a process: the number of ranks, and its own. */
static const char *const launchers[][2] = {
    {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"},
    {"PMI_SIZE", "PMI_RANK"},
    {"SLURM_STEP_NUM_TASKS", "SLURM_PROCID"}};

static bool among_several(bool *first)
{
    for (size_t i = 0; i < SC_COUNT(launchers); i++) {
        const char *n = getenv(launchers[i][0]);
        const char *rank = getenv(launchers[i][1]);
        if (!n || !rank || strtol(n, NULL, 10) < 2) continue;
        *first = strtol(rank, NULL, 10) == 0;
        return true;
    }
    return false;
}

static bool says_first = true;

sc_status main_ranks_open(cli_host *host, int argc, char **argv, sc_err *err)
{
    char path[4096];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 16);
    (void)host;
    if (argc < 2 || strcmp(argv[1], "search") != 0 ||
        !among_several(&says_first))
        return SC_OK;
    if (n > 0) {
        path[n] = '\0';
        char *name = strrchr(path, '/');
        if (name) {
            memcpy(name, "/stepcast-mpi", sizeof "/stepcast-mpi");
            execv(path, argv);
        }
    }
    return sc_error(err, SC_EINPUT, SC_C_UNSUPPORTED,
                    sc_pos_file("stepcast search"),
                    "build stepcast where MPI is installed (libopenmpi-dev), "
                    "or give each process its --shard",
                    "several ranks need stepcast-mpi beside stepcast: %s",
                    sc_errno_text(errno));
}

bool main_ranks_close(sc_status s, const sc_err *err)
{
    (void)s;
    (void)err;
    return says_first;
}

int main_ranks_end(sc_status s)
{
    return (int)s;
}
