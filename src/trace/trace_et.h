/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace_et.h - adds an execution trace of PyTorch to what a profiler recorded of
 * the same rank.
 *
 * The two name the same operators.  Their nodes and spans are linked by the
 * numbers of record functions where the profiler states these, else by their
 * order on each thread.  Times, launches and streams stay as the profiler has
 * them: spans only get what they lack, which is shapes, types and scalars of
 * inputs, kinds, sizes and groups of collectives, and the tensors that operators
 * read and write.
 */
#ifndef SC_TRACE_ET_H
#define SC_TRACE_ET_H

#include "trace/trace_profiled.h"

/* What a file says before its nodes. */
typedef struct sc_et_file {
    const char *path;
    int64_t pid; /* of the process; -1: not stated */
    bool is;     /* false: no execution trace, or it can't be read */
} sc_et_file;

/* Tells execution traces by their content. Pipes are none, because they can
 * be read once only. */
sc_et_file sc_et_file_look(const char *path);

/* How much of the two is linked. */
typedef struct sc_et_linked {
    uint32_t nodes, linked;       /* of the execution trace */
    uint32_t spans, spans_linked; /* of the profiler, on the host */
    uint32_t repeats; /* spans of steps after the recorded ones that call the
                         same operators in the same order */
    uint32_t shaped;  /* spans that had no shapes and have some now */
    uint32_t comms;   /* the same, of collectives and what they move */
    bool by_record;   /* by numbers of record functions */
} sc_et_linked;

/* Adds the execution trace to `m`, which was read into the arena. Errors: what
 * can't be read; traces of which less than half is linked, because they are not
 * of one run. */
sc_status sc_et_link(const char *path, sc_profiled *m, sc_arena *a,
                     sc_et_linked *out, sc_err *err);
/* The same from memory; `data` is borrowed. */
sc_status sc_et_link_memory(const char *data, size_t len, const char *file,
                            sc_profiled *m, sc_arena *a, sc_et_linked *out,
                            sc_err *err);

/* Whether a process has operators in `m`. */
bool sc_profiled_has_process(const sc_profiled *m, int64_t pid);

#endif
