/* SPDX-License-Identifier: Apache-2.0 */
/* main.h - what the program and its form for several processes do apart. */
#ifndef CLI_MAIN_H
#define CLI_MAIN_H

#include "cli/cli.h"

/* Joins the ranks that mpirun or srun started, if the command uses several;
 * `host` gets them.  `stepcast` becomes `stepcast-mpi` for that, and returns
 * only if there is one process, or with an error. */
sc_status main_ranks_open(cli_host *host, int argc, char **argv, sc_err *err);
/* Leaves the other ranks, with the status of the command.  Whether this process
 * prints errors. */
bool main_ranks_close(sc_status s, const sc_err *err);
/* Ends all ranks if the command failed; the errors have been printed.  Returns
 * the exit code of this process. */
int main_ranks_end(sc_status s);

/* Whether SIGINT or SIGTERM came since the first call. */
bool main_interrupted(void);
/* The user's folder for such files, by the XDG Base Directory Specification; NULL:
 * there is none. */
const char *main_cache(char *buf, size_t size);
/* "3/16": this task of an array of jobs of Slurm; NULL: there is none. */
const char *main_shard(char *buf, size_t size);

#endif
