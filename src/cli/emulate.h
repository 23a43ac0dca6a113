/* SPDX-License-Identifier: Apache-2.0 */
/* emulate.h - the parts of `stepcast emulate`. */
#ifndef CLI_EMULATE_H
#define CLI_EMULATE_H

#include "cli/cli.h"
#include "emu/emu.h"
#include "emu/emu_executable.h"
#include "emu/emu_shared.h"
#include "report/report_emulate.h"

#include <pthread.h>
#include <signal.h>
#include <sys/types.h>

/* Options of the command alone; those of the world are sc_emu_keys. */
typedef struct emulate_opts {
    const char *record;
    double timeout, grace; /* seconds; timeout 0: none */
    int64_t store_port;    /* 0: the kernel chooses */
    int64_t local_rank;    /* of the first real rank, if given */
    int start;             /* emulate_start */
    bool local_given, plan, keep;
} emulate_opts;

/* How often the command is started. */
typedef enum emulate_start {
    EMULATE_START_AUTO, /* once, if it is a launcher */
    EMULATE_START_ONCE, /* it starts all real ranks by itself */
    EMULATE_START_PER_RANK
} emulate_start;

/* ---- --plan -------------------------------------------------------------- */

struct predict_opts;
struct cli_emitted;

/* The input: a model as `predict` takes it, or traces. */
typedef struct emulate_plan {
    const sc_emu_options *emu;
    struct sc_job *job;
    sc_opt_set *job_set; /* of sc_job_keys */
    struct predict_opts *predict;
} emulate_plan;

sc_status cli_emulate_plan(cli *c, emulate_plan *x);

/* ---- the program --------------------------------------------------------- */

/* A library to preload. */
typedef enum emulate_lib {
    EMULATE_NCCL,
    EMULATE_TORCH,
    EMULATE_MPI, /* opens the interposer for the MPI that is loaded */
    EMULATE_CLOCK,
    EMULATE_N_LIBS
} emulate_lib;

typedef struct emulate_program {
    char *const *argv;   /* as the user wrote it; NULL ends */
    const char *path;    /* the file that is executed */
    const char *name;    /* the last part of the path */
    sc_executable file;  /* for a script, that of its interpreter */
    uint32_t libs;       /* bit per emulate_lib */
    bool launcher;       /* starts ranks by itself: mpirun, torchrun */
    const char *why;     /* the reason, for people */
    const char *lib_dir; /* the folder of these libraries */
    const char *preload; /* LD_PRELOAD: paths, joined by colons */
    const char *python;  /* first folder of PYTHONPATH */
} emulate_program;

/* Finds the program, and chooses the libraries to preload. */
sc_status cli_emulate_program(cli *c, const sc_emu_config *e, char *const *argv,
                              emulate_program *out);
/* Sets `lib_dir`. */
sc_status cli_emulate_lib_dir(cli *c, emulate_program *p);
/* Sets `preload` and `python`; `folder` names that of the libraries, without spaces. */
sc_status cli_emulate_preload(cli *c, const sc_emu_config *e,
                              const char *folder, emulate_program *p);

extern const char *const cli_emulate_libs[]; /* their files, by emulate_lib */

/* ---- the run ------------------------------------------------------------- */

/* A stream of a rank that is passed on with its name before each line. */
typedef struct emulate_pipe {
    int from, to;
    size_t len;
    char line[4096]; /* begun */
} emulate_pipe;

typedef struct emulate_rank {
    uint32_t rank;
    pid_t pid; /* 0: the launcher has not started it */
    bool ended;
    bool gone;  /* the world knows that it has ended */
    int status; /* as from waitpid(), once it has ended */
    double cpu_s;
    uint64_t preemptions;
    uint64_t peak_rss; /* bytes */
    emulate_pipe pipe[2];
} emulate_rank;

/* Reason for which a run was ended. */
typedef enum emulate_end {
    EMULATE_ITSELF,
    EMULATE_TIMEOUT,
    EMULATE_SIGNAL, /* stepcast received a signal */
    EMULATE_RANK,   /* another rank failed */
    EMULATE_ENOUGH  /* a scout has seen enough steps */
} emulate_end;

typedef struct emulate_store {
    int listener, stop[2];
    uint16_t port;
    bool started;
    pthread_t thread;
    struct sc_store *store;
    sc_arena arena; /* the thread's */
    sc_err err;
} emulate_store;

typedef struct emulate_world {
    sc_emu_shared *shared; /* NULL: the only real rank holds the world */
    bool serving;
    pthread_t thread;
    sc_arena arena; /* the thread's */
    sc_err err;
} emulate_world;

/* A run that is a scout (emulate_scout.c). */
typedef struct emulate_scout {
    bool active, soon;  /* few repetitions are enough */
    double next, began; /* seconds: the next look at its log; its first
                           operation was seen, NaN: none was */
} emulate_scout;

typedef struct emulate_run {
    cli *c;
    const emulate_opts *o;
    const sc_emu_options *e;
    const sc_opt_set *set; /* [2] of sc_emu_keys, of cli_emulate_keys */
    sc_emu_config config;
    emulate_program program;
    const char *folder; /* NULL: not made */
    emulate_store store;
    emulate_world world;
    uint32_t n;
    emulate_rank *rank;   /* [n] */
    bool once;            /* the only process that is started is rank[0]'s */
    uint32_t n_processes; /* started: those of rank[0] ... */
    emulate_end end;
    int signal;      /* if `end` is EMULATE_SIGNAL */
    uint32_t failed; /* if `end` is EMULATE_RANK: index of the first failure */
    uint32_t n_left; /* processes that the program left behind */
    double wall_s;
    bool terminal; /* the only rank is the foreground of our terminal */
    int guard;     /* pipe to the guard, which ends with it; -1: none */
    int signals;   /* signalfd, while signals are blocked */
    sigset_t mask; /* signal mask before that */
    struct sigaction pipe_action;
    sc_text warnings; /* lines */
    emulate_scout scout;
    const sc_emu_run *scouted; /* [n_scouted] what the scouts did */
    uint32_t n_scouted;
    const sc_emu_run *together; /* [n_together] real ranks beside their scouts;
                                   NULL: these ran alone */
    uint32_t n_together;
} emulate_run;

/* Creates the run's folder and what is in it, and runs the program to its end.
 * The caller stops the store, the world and the guard, and removes the
 * folder. */
sc_status cli_emulate_live(emulate_run *r);

/* Signals are read instead of delivered, from before the first resource is
 * created until all are released. */
sc_status cli_emulate_signals(emulate_run *r);
void cli_emulate_signals_back(emulate_run *r);

/* Creates the run's folder in TMPDIR with emulate.yml, and chooses the
 * libraries to preload. */
sc_status cli_emulate_folder(emulate_run *r);
void cli_emulate_folder_remove(const emulate_run *r);

/* If this process is killed, a guard ends all processes of the run and removes
 * its folder. Start it before any thread; the second function lets it go. */
sc_status cli_emulate_guard(emulate_run *r);
void cli_emulate_guard_stop(emulate_run *r);

/* Serves the rendezvous in a thread. */
sc_status cli_emulate_store(emulate_run *r);
void cli_emulate_store_stop(emulate_run *r);
/* A free port; 0: there is none. */
uint16_t cli_emulate_free_port(void);

/* Creates the world; if there are several real ranks, a thread serves it. */
sc_status cli_emulate_world(emulate_run *r);
void cli_emulate_world_gone(emulate_run *r, emulate_rank *k); /* has ended */
/* The same for ranks whose processes others have started and that do not hold
 * their locks any more (interpose/common/open.c). */
void cli_emulate_world_look(emulate_run *r);
void cli_emulate_world_stop(emulate_run *r);

/* Starts rank r->rank[i]; the caller owns `in` and the streams. */
sc_status cli_emulate_spawn(emulate_run *r, uint32_t i);
/* A pipe that programs do not inherit. */
bool cli_emulate_pipe(int fd[2]);
/* "can't WHAT: reason" by errno. */
sc_status cli_emulate_cant(cli *c, const char *what);

/* Starts all ranks and waits until they and all their processes have ended. */
sc_status cli_emulate_watch(emulate_run *r);

/* Ends all descendants of this process; returns how many it found. */
uint32_t cli_emulate_sweep(double grace_s);
/* Kills all processes whose environment names the run's folder, and their
 * descendants. */
void cli_emulate_sweep_folder(const char *folder);

/* Checks that --output and --record can be written. */
sc_status cli_emulate_outputs_check(emulate_run *r);

/* Writes the traces of --record. */
sc_status cli_emulate_record(emulate_run *r, const sc_report_real *real,
                             struct cli_emitted *out);

/* Runs the scouts of --peers scout, before the run's folder exists. Ranks
 * without a usable one are named in the warnings; `end` is that of a signal. */
sc_status cli_emulate_scouts(emulate_run *r);
/* Writes their traces into the run's folder, and sets the options and the
 * configuration of the run accordingly. */
sc_status cli_emulate_scouts_write(emulate_run *r);
/* Whether a scout's log has enough steps; looks only now and then. */
bool cli_emulate_scout_look(emulate_run *s);
/* What the result assumes about the scouted ranks; NULL: out of memory. */
const char *cli_emulate_scouts_text(const emulate_run *r);
/* A warning if a real rank received a message from a rank that mirrors; NULL:
 * none did. `real` [r->n]. */
const char *cli_emulate_mirrored(const emulate_run *r,
                                 const sc_report_real *real);

/* A warning if a real rank computes other things than it did with its scouts;
 * NULL: none does. */
const char *cli_emulate_other_work(const emulate_run *r,
                                   const sc_report_real *real);

/* Reads the log of a rank. *out stays as it is if there is no log. */
sc_status cli_emulate_log(const emulate_run *r, uint32_t rank,
                          const sc_emu_run **out);

/* The name of a signal, such as "SIGSEGV"; NULL: out of memory. */
const char *cli_emulate_signal(cli *c, int number);

/* Reads the logs and prints the result; SC_NO if the program failed. */
sc_status cli_emulate_result(emulate_run *r);

/* Why the run ended: "rank 8 was killed by SIGSEGV"; NULL: it ended well, or
 * memory is out. `real` [r->n]. */
const char *cli_emulate_failure(const emulate_run *r,
                                const sc_report_real *real);

#endif
