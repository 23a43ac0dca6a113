/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emu.h - the world around a few real ranks.
 *
 * A real rank is a live program; all other ranks of its world are emulated. The
 * interposer between the program and its collective library (NCCL, MPI or Gloo)
 * posts every operation here, with the time at which the program reached it,
 * and learns when it ends. An operation begins when all members have arrived:
 * real ranks by their own call, emulated ranks when their program, as
 * sc_emu_config.peers describes it, would have arrived. From then on it is in
 * flight together with all others; the delay model, which has one state for the
 * whole world, decides how long it takes.
 *
 * The world has no clock and no loop of its own (like net_flow.h):
 *
 *   sc_emu_post(e, &op, t, &ticket, err);
 *   while ((t = sc_emu_next(e)) <= now) { n = sc_emu_advance(e, t, &ends); ... }
 *
 * With one real rank the program's process owns the world; with several, their
 * launcher does. The idea is that of Peng et al., "Emulating distributed
 * training" (NeuronaBox), arXiv 2405.02969. That closed forms per operation are
 * not enough if operations overlap is measured in docs/emulate/index.md.
 *
 * Units: bytes; time is int64_t picoseconds of the emulation's clock, which
 * starts at 0. Ownership: everything lives in the arena of sc_emu_new(). Not
 * thread-safe: one world, one thread at a time.
 */
#ifndef SC_EMU_H
#define SC_EMU_H

#include <stepcast/delay_plugin.h>

#include "cost/cost.h"
#include "graph/graph_workload.h"
#include "hw/hw.h"

/* ---- options ------------------------------------------------------------- */

typedef enum sc_emu_api {
    SC_EMU_API_AUTO,
    SC_EMU_API_NCCL,
    SC_EMU_API_MPI, /* whichever the program loads */
    SC_EMU_API_GLOO,
    SC_EMU_API_OPENMPI,
    SC_EMU_API_MPICH
} sc_emu_api;

typedef enum sc_emu_clock {
    SC_EMU_REAL,   /* operations take their time on the machine's clock */
    SC_EMU_VIRTUAL /* CPU time of the program plus modelled waits */
} sc_emu_clock;

/* When operations in flight make progress. */
typedef enum sc_emu_progress {
    SC_EMU_PROGRESS_AUTO,   /* as the interposed library does */
    SC_EMU_PROGRESS_STRONG, /* always (NCCL, Gloo: threads of their own) */
    SC_EMU_PROGRESS_WEAK    /* only while the program is inside the library
                               (MPI without a progress thread) */
} sc_emu_progress;

/* Options of the command and keys of emulate.yml. */
typedef struct sc_emu_options {
    const char *cluster;      /* any form of sc_hw_build() */
    int64_t world_size;       /* ranks; rank r sits on device r */
    const char *profile;      /* file of parameters; NULL: the built-in ones */
    const char **ranks;       /* real ones: "0", "0,8", "0-3", "all" */
    int api, clock, progress; /* sc_emu_api ... */
    const char *delay_model;  /* alpha-beta:FILE table:FILE[,ranks=N]
                                  analytic host chunk flow ./plugin.so */
    const char **what_if;     /* see docs/emulate/index.md */
    const char *peer_data;    /* mirror noise:SIGMA none */
    const char *peers;        /* mirror, scout, scout:0,2-3, or PREFIX of Chakra
                                 traces; scout:/PREFIX: of those of scouts */
    /* groups of the same shape communicate at the same time */
    bool siblings;
    int64_t step_collectives; /* operations of one step; 0: inferred */
    int64_t seed;
} sc_emu_options;

/* What may follow the path in table:FILE, with a number. */
#define SC_EMU_TABLE_RANKS ",ranks="

extern const sc_key sc_emu_keys[]; /* of sc_emu_options; --seed is common */

/* ---- the parsed options -------------------------------------------------- */

typedef enum sc_emu_delay_kind {
    /* closed-form price (sc_cost_coll()); links are shared */
    SC_EMU_DELAY_ANALYTIC,
    /* price of an MPI library between hosts (sc_cost_host()) */
    SC_EMU_DELAY_HOST,
    /* seconds + bytes / rate by operation, from a file */
    SC_EMU_DELAY_ALPHA_BETA,
    SC_EMU_DELAY_TABLE, /* times by size and group, from a file */
    SC_EMU_DELAY_CHUNK, /* every message of every step */
    SC_EMU_DELAY_FLOW,  /* one steady flow per neighbour and phase */
    SC_EMU_DELAY_PLUGIN /* the user's three functions */
} sc_emu_delay_kind;

typedef enum sc_emu_data_kind {
    SC_EMU_DATA_MIRROR, /* emulated ranks have this rank's data */
    SC_EMU_DATA_NOISE,  /* this rank's data plus Gaussian noise */
    SC_EMU_DATA_NONE    /* buffers stay as they are */
} sc_emu_data_kind;

/* One --what-if each; several of one kind all apply. */
typedef enum sc_emu_what {
    SC_EMU_LATENCY_ADD,     /* value: seconds more per hop of an operation */
    SC_EMU_LATENCY_TIMES,   /* value: factor */
    SC_EMU_BANDWIDTH_TIMES, /* value: factor on every link's rate */
    SC_EMU_STRAGGLER, /* the rank's compute times are multiplied by value */
    SC_EMU_JITTER,    /* value: relative sigma of peers' compute times */
    /* the rank pauses for value seconds before its `at`-th operation */
    SC_EMU_STALL,
    /* the rank reaches neither its `at`-th operation nor any later one */
    SC_EMU_FAIL
} sc_emu_what;

typedef struct sc_emu_whatif {
    sc_emu_what what;
    uint32_t rank;
    uint64_t at; /* counted from 0, per rank */
    double value;
    sc_pos pos;
} sc_emu_whatif;

typedef struct sc_emu_config {
    const sc_hw *hw;
    const sc_cost *cost;
    uint32_t world;
    uint32_t n_real;
    const uint32_t *real; /* [n_real] rising */
    sc_emu_api api;
    sc_emu_clock clock;
    sc_emu_progress progress;
    sc_emu_delay_kind delay;
    const char *delay_file; /* path, for alpha-beta, table and plugin */
    uint32_t delay_ranks;   /* of table:FILE,ranks=N; 0: not given */
    /* set by the caller, who opened the plug-in */
    const stepcast_delay_plugin *plugin;
    uint32_t n_whatif;
    const sc_emu_whatif *whatif;
    sc_emu_data_kind data;
    double sigma;
    const sc_workload *peers; /* schedules of the ranks; NULL: mirror */
    bool peer_tags; /* tags of their messages are those of the program */
    /* the caller is to make the traces: of these emulated ranks (0: of those
     * that messages reach), and then to resolve again with their prefix */
    bool scouts;
    uint32_t n_scouts;
    const uint32_t *scout;        /* [n_scouts] rising */
    const double *compute_factor; /* [world] compute time on the rank's device
                                     over that on the first real rank's; NULL:
                                     all devices are equal */
    bool siblings;
    uint64_t step_collectives, seed;
} sc_emu_config;

/* Errors, each at its option (or at `file` if the options come from a file):
 * SC_C_MISSING, SC_C_RANGE, SC_C_SYNTAX, SC_C_CONFLICT (a real rank as
 * straggler on the real clock; more ranks than devices). */
sc_status sc_emu_resolve(const sc_emu_options *o, sc_arena *a,
                         sc_emu_config *out, sc_err *err);

/* Opens a plug-in for sc_emu_config.plugin (stepcast/delay_plugin.h); it stays
 * open for the process' life.  Errors at --delay-model: SC_C_IO, why it can't
 * be loaded; SC_C_MISSING for each function that it lacks. */
sc_status sc_emu_plugin_open(const char *path, sc_arena *a,
                             const stepcast_delay_plugin **out, sc_err *err);

bool sc_emu_is_real(const sc_emu_config *c, uint32_t rank);

/* Whether the trace of rank `from` has a message to rank `to`. */
bool sc_emu_sends(const sc_emu_config *c, uint32_t from, uint32_t to);

/* The factor of the what-ifs on the compute time of `rank`. The owner of a
 * real rank's virtual clock scales CPU time by it. */
double sc_emu_straggler(const sc_emu_config *c, uint32_t rank);

/* The machine with what the what-ifs change of its network: latency and
 * bandwidth of the dimensions.  NULL: out of memory. */
const sc_hw *sc_emu_network(const sc_emu_config *c, sc_arena *a);

/* ---- the world ----------------------------------------------------------- */

typedef struct sc_emu sc_emu;

sc_status sc_emu_new(const sc_emu_config *c, sc_arena *a, sc_emu **out,
                     sc_err *err);

/* The group of these ranks, in this order, and of this instance: communicators
 * with the same members are different groups, and `instance` says which of them
 * it is, equally on all members. Equal lists and instances give the same group.
 * `rank` NULL: the whole world (of instance 0: always group 0). The list is not
 * kept. */
sc_status sc_emu_group(sc_emu *e, const uint32_t *rank, uint32_t n,
                       uint64_t instance, uint32_t *out, sc_err *err);

/* The number of its real ranks. */
uint32_t sc_emu_group_real(const sc_emu *e, uint32_t group);

#define SC_EMU_ANY     UINT32_MAX /* `peer` of a receive: any source */
#define SC_EMU_ANY_TAG (-1)

/* What a RECV does with the first message that fits it: */
typedef enum sc_emu_take {
    SC_EMU_TAKE,   /* receives it */
    SC_EMU_PROBE,  /* ends when it has arrived, and leaves it */
    SC_EMU_CLAIM,  /* the same, but no later RECV fits it, except: */
    SC_EMU_CLAIMED /* receives the claimed message `seq` of `peer` */
} sc_emu_take;

typedef struct sc_emu_op {
    sc_coll coll;
    uint32_t group;
    uint32_t rank;  /* the posting rank, a real one */
    uint32_t peer;  /* rank: root of a rooted one, partner of SEND and RECV */
    uint64_t bytes; /* nccl-tests' V (coll.h); of gather and scatter, all
                       members together; parts that differ count as the
                       largest. RECV: the room for it */
    /* of messages between real ranks */
    uint64_t seq; /* SEND: a number for the receiver's sc_emu_end */
    int32_t tag;  /* 0 or more; RECV: or SC_EMU_ANY_TAG */
    uint8_t take; /* sc_emu_take */
    bool eager;   /* SEND: it does not wait for the receiver's call */
    bool cuts;    /* RECV: a message that is longer is no error */
} sc_emu_op;

/* The program of `rank` reached the operation at `t`. Collectives of one group
 * are matched in the order of each member's posts, so all real members must
 * post the same ones. A RECV takes the message that was sent first of those
 * with its group, source and tag. If `t` lies before the time last
 * advanced to, the delay is shortened by the difference, but not below 0.
 * Errors: SC_C_CONFLICT, members that call different operations of one group
 * (the message names both); SC_C_RANGE. */
sc_status sc_emu_post(sc_emu *e, const sc_emu_op *op, sc_time t,
                      uint64_t *ticket, sc_err *err);

/* The program of `rank` only waited from `from` to `to`: peers that mirror it
 * do not count that as compute time. */
void sc_emu_waited(sc_emu *e, uint32_t rank, sc_time from, sc_time to);

/* CPU time that the rank's host spends on the operation according to the delay
 * model's file; 0 if the file has none. */
sc_time sc_emu_cpu(const sc_emu *e, const sc_emu_op *op);

/* No operation ends before this time if nothing else is posted; SC_TIME_MAX:
 * nothing is in flight. */
sc_time sc_emu_next(sc_emu *e);

typedef struct sc_emu_end {
    uint64_t ticket;
    uint32_t rank;      /* who posted */
    sc_time begin, end; /* all members had arrived; it ended */
    /* the message, of SEND and RECV */
    uint32_t from;
    int32_t tag;
    uint64_t bytes, seq;
} sc_emu_end;

/* Returns the ends since the last call, like sc_flows_advance(): by time, then
 * by ticket, one per post of a real member. SC_FLOW_NONE (net_flow.h): the
 * delay model failed or memory ran out; sc_emu_failed() gives the error, and
 * all later calls fail as well. */
uint32_t sc_emu_advance(sc_emu *e, sc_time t, const sc_emu_end **ends);
sc_status sc_emu_failed(const sc_emu *e, sc_err *err);

/* Cancels the operation for all its members, at the time last advanced to. */
void sc_emu_cancel(sc_emu *e, uint64_t ticket);

/* Explains why an operation has not begun ("rank 5 never arrives: --what-if
 * fail=5@0", "real rank 8 has not called it"); "" if it has begun. */
void sc_emu_why(const sc_emu *e, uint64_t ticket, sc_text *out);

/* ---- which ranks to run for real ----------------------------------------- */

typedef struct sc_emu_role {
    uint32_t rank;    /* the first one of its kind */
    uint32_t n;       /* ranks with the same role */
    const char *text; /* "pipeline stage 0", "owner of tables 3-7" */
} sc_emu_role;

/* The smallest set of ranks that has one of every distinct role: classes of
 * the workload (what is computed, sizes exchanged, with whom by relative
 * position). */
sc_status sc_emu_real_ranks(const sc_workload *w, sc_arena *a,
                            sc_emu_role **out, uint32_t *n, sc_err *err);
#endif
