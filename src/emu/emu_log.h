/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emu_log.h - the log of a real rank, operation by operation.
 *
 * It is written while the program runs, into mapped memory, so that nothing is
 * lost if the program is killed. The launcher reads it for results, steps and
 * traces.
 *
 * There is one file per real rank: a header, then records of 64 bytes in the
 * machine's byte order. The files are only read on the machine that wrote them.
 */
#ifndef SC_EMU_LOG_H
#define SC_EMU_LOG_H

#include "emu/emu.h"

/* An operation, as the program saw it. */
typedef struct sc_emu_record {
    uint8_t kind;   /* of the log's files */
    uint8_t coll;   /* sc_coll */
    uint8_t flags;  /* SC_EMU_ASYNC ... */
    uint8_t stream; /* of a device, from 1; 0: the host */
    uint32_t group; /* of the log's groups */
    uint32_t peer;  /* rank: root, partner */
    int32_t tag;    /* of a message; RECV: or SC_EMU_ANY_TAG */
    uint64_t bytes;
    sc_time post;  /* the program reached it */
    sc_time begin; /* all members had arrived */
    sc_time end;   /* SC_TIME_MAX: it had not ended when the log did */
    /* time in which the program only waited for it; SC_EMU_DEVICE: in which it
     * was in flight, without the time counted for an earlier operation */
    sc_time waited;
    sc_time resumed; /* the program continued: end of the (last) wait for it */
} sc_emu_record;

enum {
    SC_EMU_ASYNC = 1,    /* the program went on meanwhile */
    SC_EMU_CANCELED = 2, /* aborted */
    SC_EMU_DEVICE =
        /* a device's stream waited for it; what else the device did meanwhile
         * is unknown */
    4,
    SC_EMU_HELD = 8 /* weak progress: it began when the program was next inside
                     * the library */
};

typedef struct sc_emu_log sc_emu_log;

/* A writer; lives in the arena.  Thread-safe only from one thread at a time. */
sc_status sc_emu_log_open(const char *path, uint32_t rank, uint32_t world,
                          sc_arena *a, sc_emu_log **out, sc_err *err);
/* Names a group: `group` of the records that follow. Lists are stored as runs
 * (first, stride, n). False: the disk is full and the log ends there. */
bool sc_emu_log_group(sc_emu_log *l, uint32_t group, const uint32_t *rank,
                      uint32_t n);
/* Appends a record, which sc_emu_log_set() can complete later. UINT64_MAX: the
 * disk is full; sc_emu_log_set() accepts that value. */
uint64_t sc_emu_log_add(sc_emu_log *l, const sc_emu_record *r);
void sc_emu_log_set(sc_emu_log *l, uint64_t index, const sc_emu_record *r);
/* The program says that a step of its own has ended. */
void sc_emu_log_step(sc_emu_log *l, sc_time t);
/* Unmaps the file and truncates it. A process that ends without closing loses
 * nothing. */
void sc_emu_log_close(sc_emu_log *l);

/* Totals, kept up to date; in files as they are here. */
typedef struct sc_emu_totals {
    sc_time now;      /* of the emulation's clock, when last written */
    sc_time overhead; /* time that the interposer itself used */
    sc_time late;     /* sum over operations: released after their end */
    uint64_t n_late;  /* number of operations for which that is known */
    uint64_t passed;  /* calls passed on to the real library unmodelled */
    uint32_t ended;   /* the program ended by itself */
    uint32_t apis;    /* bit per sc_emu_api: the libraries that it called */
    /* Of the process, if it has ended by itself; the launcher knows them of the
     * processes that it started. */
    sc_time cpu;
    uint64_t peak_rss; /* bytes */
    uint64_t preemptions;
    /* 1: what it did depends on when messages of ranks arrive that mirror */
    uint64_t guessed;
    /* of sc_emu_loop_cut(): from record loop_from on, each `loop` of them are a
     * repetition; 0: not known */
    uint64_t loop, loop_from;
} sc_emu_totals;

void sc_emu_log_totals(sc_emu_log *l, const sc_emu_totals *t);
/* A warning or error of the interposer, for people; cut at 200 bytes. */
void sc_emu_log_say(sc_emu_log *l, bool error, const char *text);

/* The end of a step that the program itself said. */
typedef struct sc_emu_mark {
    sc_time at;
    uint64_t record; /* the first one of the next step */
} sc_emu_mark;

/* The whole log, read back. */
typedef struct sc_emu_run {
    uint32_t rank, world;
    sc_emu_totals totals;
    uint32_t n_groups;
    sc_rank_group *group; /* [n_groups] by number; n 0: never named */
    uint64_t n_records;
    sc_emu_record *record; /* [n_records] in the order of posts */
    uint64_t n_marks;
    sc_emu_mark *mark; /* [n_marks] rising */
    uint32_t n_texts;
    const char **text; /* [n_texts] "warning: ..." */
} sc_emu_run;

/* Errors: SC_C_SYNTAX with the byte's offset (not a log, an invalid record),
 * SC_C_RANGE.  A log that was cut off is read up to there. */
sc_status sc_emu_log_read(const void *data, size_t len, const char *file,
                          sc_arena *a, sc_emu_run *out, sc_err *err);

/* Reads a file. Errors also: SC_C_IO. */
sc_status sc_emu_log_load(const char *path, sc_arena *a, sc_emu_run *out,
                          sc_err *err);
/* Writes the groups, records and totals of a run as a log. */
sc_status sc_emu_log_save(const sc_emu_run *run, const char *path, sc_arena *a,
                          sc_err *err);

/* ---- steps --------------------------------------------------------------- */

typedef struct sc_emu_step {
    sc_time begin, end;
    uint64_t first, n; /* records */
} sc_emu_step;

/* The steps of a run. If the program marked at least three and `period` is 0,
 * they last from mark to mark. Otherwise they are the repeated sequence of
 * operations in the run: `period` operations. 0: that of
 * the longest repetition, with two refinements. If a shorter sequence of
 * different operations makes up all of it, except for operations of at most 4
 * KiB (e.g. a loss logged every tenth step), that sequence is taken. If
 * operations in flight and the program's own time repeat with several
 * sequences, each seen at least four times, these sequences together are a step
 * (steps_time.c). Operations before and after the repetitions are start-up and
 * the end. With `period` given, steps end where the repetition does if it has
 * that length, else with the run. A step lasts from the end of the last
 * operation of the previous step to the end of its own last one; the very first
 * therefore needs an operation before it. None found: *n = 0. *sure (may be
 * NULL): false if a multiple may also be the step. */
sc_status sc_emu_steps(const sc_emu_run *r, uint64_t period, sc_arena *a,
                       sc_emu_step **out, uint32_t *n, bool *sure, sc_err *err);

/* ---- repetitions --------------------------------------------------------- */

/* Repetitions of a sequence of operations near the end of a run. */
typedef struct sc_emu_loop {
    uint64_t from, each, n; /* records */
    bool tags;              /* tags repeat, too */
} sc_emu_loop;

/* The longest ones whose period is at least `least` operations, and which have
 * ended. n 0: there are none, or memory is out. */
sc_emu_loop sc_emu_loop_find(const sc_emu_run *run, uint64_t least,
                             sc_arena *a);
/* Leaves the run up to the last repetition, and says in its totals that it goes
 * on with all but the first one. Tags in these become SC_EMU_ANY_TAG unless they
 * repeat, or change by the same number from one repetition to the next. */
void sc_emu_loop_cut(sc_emu_run *run, const sc_emu_loop *x);

/* ---- workloads ----------------------------------------------------------- */

/* The runs of real ranks as a workload: operations become communication nodes
 * that last from post to end, and the computation between them becomes compute
 * nodes; in a replay every operation is posted and ends when it was recorded.
 * Ranks without a run follow `like` (world entries: index into runs), with
 * groups and partners shifted. `steps` limits it to whole steps. Sizes are
 * Chakra's (graph_workload.h). If no rank follows another, messages have their
 * tags, else none. SC_EMU_ANY_TAG is written as UINT32_MAX. */
typedef struct sc_emu_trace_opts {
    const uint32_t *like; /* [world]; NULL: only the real ranks do anything */
    bool steps; /* leave out start-up and what follows the last step */
    uint64_t period;
    /* Messages have their groups, and sc_rank_trace.tag_steps; the start of a
     * run with repetitions is sc_task_list.n_once. */
    bool envelopes;
} sc_emu_trace_opts;

sc_status sc_emu_workload(const sc_emu_run *runs, uint32_t n,
                          const sc_emu_trace_opts *o, sc_arena *a,
                          sc_workload *out, sc_err *err);

/* Writes into the folder `dir`: NAME.<rank>.et and NAME.json (groups), and
 * network.yml, memory.json of the machine `hw`; system.json, with which the
 * traces replay (recorded times, for as many operations at once as there were),
 * and system-simulate.json, with which operations are simulated on the network:
 * for --scale-to and other machines.  `notes`: as sc_trace_machine_write(). */
sc_status sc_emu_trace_write(const sc_workload *w, const sc_hw *hw,
                             sc_precision precision, const char *dir,
                             const char *name, sc_arena *a, sc_text *notes,
                             sc_err *err);
#endif
