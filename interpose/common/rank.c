/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rank.c - which rank of the world this process is.
 *
 * STEPCAST_RANK names it if the launcher started the command for each rank.
 * Otherwise the command starts its ranks by itself (--start once): the
 * variables of its own launcher count, or what the program says when it
 * initializes its library. Process i of as many as there are real ranks is the
 * i-th real rank.
 */
#include "common/inside.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* torchrun comes first, because others may start one torchrun per node. */
static const struct {
    const char *rank, *size, *who;
} variables[] = {
    {"RANK", "WORLD_SIZE", "the environment (RANK, WORLD_SIZE)"},
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "mpirun of Open MPI"},
    {"PMI_RANK", "PMI_SIZE", "mpiexec (PMI)"},
    {"MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "mpirun of MVAPICH"},
    {"SLURM_PROCID", "SLURM_NTASKS", "srun"}};

/* What the program said. */
static struct {
    bool given;
    uint32_t rank, n;
} said;

static bool read_number(const char *name, uint32_t *out)
{
    const char *text = getenv(name);
    char *end = NULL;
    errno = 0;
    unsigned long v = text ? strtoul(text, &end, 10) : 0;
    if (!text || *text < '0' || *text > '9' || *end || errno || v >= UINT32_MAX)
        return false;
    *out = (uint32_t)v;
    return true;
}

/* Rank `rank` of `n` processes, by `who`. */
static uint32_t real_rank(const sc_emu_config *c, uint32_t rank, uint32_t n,
                          const char *who)
{
    if (n == c->world && sc_emu_is_real(c, rank)) return rank;
    if (n == c->world)
        live_die(NULL,
                 "%s: rank %u calls collectives, but is not among --ranks; "
                 "--ranks all makes all ranks real",
                 who, rank);
    if (n == c->n_real && rank < n) return c->real[rank];
    live_die(NULL,
             "%s has started %u processes, but --ranks names %u of %u ranks; "
             "start one for each of them",
             who, n, c->n_real, c->world);
    return 0;
}

/* The command was started for one rank. */
static uint32_t started_for(const sc_emu_config *c)
{
    uint32_t rank, n;
    if (!read_number("STEPCAST_RANK", &rank))
        live_die(NULL,
                 "STEPCAST_RANK: \"%s\" is not a rank; `stepcast emulate` "
                 "sets this variable",
                 getenv("STEPCAST_RANK"));
    if (!sc_emu_is_real(c, rank))
        live_die(NULL, "STEPCAST_RANK: %u is not among --ranks", rank);
    for (size_t i = 1; i < SC_COUNT(variables); i++)
        if (read_number(variables[i].size, &n) && n > 1 &&
            getenv(variables[i].rank))
            live_die(NULL,
                     "%s has started %u processes for rank %u alone; give "
                     "--start once, and it starts all real ranks",
                     variables[i].who, n, rank);
    if (said.given && said.n == c->world && said.rank != rank)
        live_die(NULL,
                 "the program says that this process is rank %u of %u, but "
                 "it was started as rank %u; if it starts its ranks by "
                 "itself, give --start once",
                 said.rank, said.n, rank);
    return rank;
}

uint32_t live_find_rank(const sc_emu_config *c)
{
    uint32_t rank, n;
    if (getenv("STEPCAST_RANK")) return started_for(c);
    for (size_t i = 0; i < SC_COUNT(variables); i++)
        if (read_number(variables[i].rank, &rank)) {
            if (!read_number(variables[i].size, &n)) n = c->world;
            return real_rank(c, rank, n, variables[i].who);
        }
    if (said.given) return real_rank(c, said.rank, said.n, "the program");
    if (c->n_real == 1) return c->real[0];
    live_die(NULL,
             "this process calls collectives, but nothing says which rank it "
             "is; with --start once its launcher has to set RANK "
             "(OMPI_COMM_WORLD_RANK, PMI_RANK, SLURM_PROCID)");
    return 0;
}

void live_say_rank(uint32_t rank, uint32_t n)
{
    if (said.given || live_is_open()) return;
    said.rank = rank;
    said.n = n;
    said.given = true;
}
