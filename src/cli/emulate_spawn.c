/* SPDX-License-Identifier: Apache-2.0 */
/* emulate_spawn.c - starts one real rank: environment, streams, process. */
#define _DEFAULT_SOURCE /* environ's neighbours: prctl() */
#include "cli/emulate.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

extern char **environ;

#define VARIABLES 41

/* Variables of a launcher around stepcast. The program must not get them,
 * because its ranks are others. */
static const char *const dropped[] = {
    "OMPI_",     "PMI_",          "PMIX_",          "PMI2_",
    "MV2_COMM_", "SLURM_PROCID=", "SLURM_LOCALID=", NULL};
/* The same, if the program starts its ranks by itself. */
static const char *const dropped_once[] = {
    "RANK=",       "WORLD_SIZE=",       "LOCAL_RANK=",    "LOCAL_WORLD_SIZE=",
    "GROUP_RANK=", "GROUP_WORLD_SIZE=", "NODE_RANK=",     "ROLE_RANK=",
    "ROLE_NAME=",  "ROLE_WORLD_SIZE=",  "STEPCAST_RANK=", "TORCHELASTIC_",
    NULL};

typedef struct environment {
    cli *c;
    const char **v;
    uint32_t n;
    bool failed;
} environment;

static void put(environment *e, const char *name, const char *value)
{
    const char *entry = sc_sprintf(e->c->arena, "%s=%s", name, value);
    size_t len = strlen(name) + 1;
    if (!entry) {
        e->failed = true;
        return;
    }
    for (uint32_t i = 0; i < e->n; i++)
        if (strncmp(e->v[i], entry, len) == 0) {
            e->v[i] = entry;
            return;
        }
    e->v[e->n++] = entry;
}

static void put_number(environment *e, const char *name, uint64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%llu", (unsigned long long)value);
    put(e, name, text);
}

static bool is_among(const char *const *list, const char *entry)
{
    for (size_t i = 0; list[i]; i++)
        if (strncmp(entry, list[i], strlen(list[i])) == 0) return true;
    return false;
}

/* The variables of torchrun that do not depend on the rank; MPI programs need
 * none of them. */
static void put_run(environment *e, const emulate_run *r)
{
    put_number(e, "WORLD_SIZE", r->config.world);
    put_number(e, "ROLE_WORLD_SIZE", r->config.world);
    put(e, "MASTER_ADDR", "127.0.0.1");
    put_number(e, "MASTER_PORT", r->store.port);
    put(e, "TORCHELASTIC_USE_AGENT_STORE", "True");
    put(e, "TORCHELASTIC_RESTART_COUNT", "0");
    put(e, "TORCHELASTIC_MAX_RESTARTS", "0");
}

/* Those of a rank. */
static void put_rank(environment *e, const emulate_run *r, uint32_t i)
{
    uint32_t rank = r->rank[i].rank;
    uint32_t world = r->config.world, node = r->config.hw->node_size;
    if (node == 0 || node > world) node = world;
    uint32_t nodes = (world + node - 1) / node;
    uint32_t last = world - (nodes - 1) * node; /* ranks of the last node */
    put_number(e, "LOCAL_WORLD_SIZE", rank / node + 1 == nodes ? last : node);
    put_number(e, "GROUP_RANK", rank / node);
    put_number(e, "NODE_RANK", rank / node);
    put_number(e, "GROUP_WORLD_SIZE", nodes);
}

/* All variables for torchrun's workers, which interpose/common/env.c gives
 * them. */
static void put_saved(environment *e, const emulate_run *r, uint32_t i)
{
    environment saved = {.c = e->c};
    const char *text = "";
    saved.v = SC_NEW_N(e->c->arena, const char *, VARIABLES);
    if (!saved.v) {
        e->failed = true;
        return;
    }
    put_run(&saved, r);
    if (!r->once) put_rank(&saved, r, i);
    for (uint32_t k = 0; text && k < saved.n; k++)
        text =
            sc_sprintf(e->c->arena, "%s%s%s", text, k ? " " : "", saved.v[k]);
    e->failed = e->failed || saved.failed || !text;
    if (text) put(e, "STEPCAST_ENVIRONMENT", text);
}

/* The command is started for one rank. */
static void put_one(environment *e, const emulate_run *r, uint32_t i)
{
    uint32_t rank = r->rank[i].rank, node = r->config.hw->node_size;
    if (node == 0 || node > r->config.world) node = r->config.world;
    put_run(e, r);
    put_rank(e, r, i);
    put_number(e, "RANK", rank);
    put_number(e, "ROLE_RANK", rank);
    put_number(e, "LOCAL_RANK",
               r->o->local_given ? (uint64_t)r->o->local_rank + i
                                 : rank % node);
    put(e, "ROLE_NAME", "default");
    put(e, "TORCHELASTIC_RUN_ID", "stepcast");
    put_number(e, "STEPCAST_RANK", rank);
}

/* torchrun's own rendezvous: only one on this machine could use the usual port, of
 * this run's ranks and of other runs. */
static void put_torchrun(environment *e)
{
    uint16_t port = getenv("PET_MASTER_PORT") ? 0 : cli_emulate_free_port();
    if (port) put_number(e, "PET_MASTER_PORT", port);
}

/* The real ranks as ranges: "0-3,8". */
static void put_real(environment *e, const emulate_run *r)
{
    sc_text t;
    sc_text_init(&t);
    for (uint32_t i = 0; i < r->n;) {
        uint32_t first = r->rank[i].rank, last = first;
        while (++i < r->n && r->rank[i].rank == last + 1) last++;
        sc_text_add(&t, last > first ? "%s%u-%u" : "%s%u", t.len ? "," : "",
                    first, last);
    }
    if (t.failed)
        e->failed = true;
    else
        put(e, "STEPCAST_REAL", t.buf);
    sc_text_free(&t);
}

/* Python's start-up module (interpose/torch/python) before the user's. */
static void put_python(environment *e, const emulate_run *r)
{
    const char *own = getenv("PYTHONPATH");
    const char *path = r->program.python;
    if (own && *own) path = sc_sprintf(r->c->arena, "%s:%s", path, own);
    if (path)
        put(e, "PYTHONPATH", path);
    else
        e->failed = true;
}

static const char **environment_of(const emulate_run *r, uint32_t i)
{
    environment e = {.c = r->c};
    uint32_t n = 0;
    while (environ[n]) n++;
    e.v = SC_NEW_N(r->c->arena, const char *, (size_t)n + VARIABLES);
    if (!e.v) return NULL;
    for (uint32_t k = 0; k < n; k++)
        if (!is_among(dropped, environ[k]) &&
            !(r->once && is_among(dropped_once, environ[k])))
            e.v[e.n++] = environ[k];
    if (r->once) { /* a store of the program's own is replaced by ours */
        put(&e, "MASTER_ADDR", "127.0.0.1");
        put_number(&e, "MASTER_PORT", r->store.port);
        put(&e, "TORCHELASTIC_USE_AGENT_STORE", "True");
        put(&e, "TORCHELASTIC_RESTART_COUNT", "0");
    } else {
        put_one(&e, r, i);
    }
    put_torchrun(&e);
    put_saved(&e, r, i);
    put_real(&e, r);
    put(&e, "STEPCAST_EMULATE", r->folder);
    put_number(&e, "STEPCAST_WORLD_SIZE", r->config.world);
    put(&e, "STEPCAST_MASTER_ADDR", "127.0.0.1");
    put_number(&e, "STEPCAST_MASTER_PORT", r->store.port);
    if (r->config.api == SC_EMU_API_OPENMPI) put(&e, "STEPCAST_MPI", "openmpi");
    if (r->config.api == SC_EMU_API_MPICH) put(&e, "STEPCAST_MPI", "mpich");
    if (r->program.python) put_python(&e, r);
    if (*r->program.preload) put(&e, "LD_PRELOAD", r->program.preload);
    return e.failed ? NULL : e.v;
}

/* ---- the process --------------------------------------------------------- */

typedef struct child {
    const emulate_run *r;
    const char **env;
    pid_t launcher;
    int out, err;  /* its streams */
    int report[2]; /* errno if exec() failed; closed if it succeeded */
} child;

/* A scout reads nothing, and its output is not wanted. */
static bool no_streams(void)
{
    int fd = open("/dev/null", O_RDWR);
    return fd >= 0 && dup2(fd, STDIN_FILENO) >= 0 &&
           dup2(fd, STDOUT_FILENO) >= 0 && dup2(fd, STDERR_FILENO) >= 0;
}

/* Sets up the rank's streams; with --json our stdout is for the document. */
static bool streams(const child *x)
{
    if (x->r->scout.active) return no_streams();
    int out = x->out >= 0 ? x->out : STDOUT_FILENO;
    int err = x->err >= 0 ? x->err : STDERR_FILENO;
    if (x->out < 0 && x->r->c->json && !x->r->c->output) out = STDERR_FILENO;
    return dup2(out, STDOUT_FILENO) >= 0 && dup2(err, STDERR_FILENO) >= 0;
}

static void in_child(const child *x)
{
    int failed = 0;
    setpgid(0, 0);
    /* If the launcher is killed, the system kills the rank. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != x->launcher) _exit(127);
    if (x->r->terminal) tcsetpgrp(STDIN_FILENO, getpid());
    sigaction(SIGPIPE, &x->r->pipe_action, NULL);
    if (streams(x)) {
        union {
            const char **in;
            char *const *out;
        } env = {x->env};

        pthread_sigmask(SIG_SETMASK, &x->r->mask, NULL);
        execve(x->r->program.path, x->r->program.argv, env.out);
    }
    failed = errno;
    if (write(x->report[1], &failed, sizeof failed) < 0) _exit(126);
    _exit(127);
}

sc_status cli_emulate_cant(cli *c, const char *what)
{
    return sc_error(c->err, SC_EIO, SC_C_IO, sc_pos_none(), NULL,
                    "can't %s: %s", what, sc_errno_text(errno));
}

static void close_all(const int *fd, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (fd[i] >= 0) close(fd[i]);
}

/* Waits until the program runs, or exec() has failed. */
static sc_status started(emulate_run *r, int report)
{
    int error = 0;
    ssize_t n;
    do n = read(report, &error, sizeof error);
    while (n < 0 && errno == EINTR);
    if (n <= 0) return SC_OK;
    return sc_error(r->c->err, SC_EINPUT, SC_C_UNSUPPORTED,
                    sc_pos_file(r->program.path), NULL, "can't be run: %s",
                    sc_errno_text(error));
}

bool cli_emulate_pipe(int fd[2])
{
    fd[0] = fd[1] = -1;
    return pipe(fd) == 0 && fcntl(fd[0], F_SETFD, FD_CLOEXEC) == 0 &&
           fcntl(fd[1], F_SETFD, FD_CLOEXEC) == 0;
}

sc_status cli_emulate_spawn(emulate_run *r, uint32_t i)
{
    emulate_rank *k = &r->rank[i];
    int out[2] = {-1, -1}, err[2] = {-1, -1};
    child x = {.r = r, .launcher = getpid(), .report = {-1, -1}};
    x.env = environment_of(r, i);
    if (!x.env) return sc_error_nomem(r->c->err);
    bool piped = r->n_processes > 1;
    if (!cli_emulate_pipe(x.report) ||
        (piped && (!cli_emulate_pipe(out) || !cli_emulate_pipe(err))))
        return cli_emulate_cant(r->c, "open a pipe");
    x.out = out[1];
    x.err = err[1];
    fflush(NULL);
    pid_t pid = fork();
    if (pid < 0) return cli_emulate_cant(r->c, "start a process");
    if (pid == 0) in_child(&x);
    setpgid(pid, pid);
    k->pid = pid;
    close_all((const int[]){x.report[1], out[1], err[1]}, 3);
    bool apart = r->c->json && !r->c->output;
    k->pipe[0] = (emulate_pipe){.from = out[0],
                                .to = apart ? STDERR_FILENO : STDOUT_FILENO};
    k->pipe[1] = (emulate_pipe){.from = err[0], .to = STDERR_FILENO};
    sc_status s = started(r, x.report[0]);
    close(x.report[0]);
    return s;
}
