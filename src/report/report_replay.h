/* SPDX-License-Identifier: Apache-2.0 */
/* report_replay.h - reports of replayed traces as text and as JSON. */
#ifndef SC_REPORT_REPLAY_H
#define SC_REPORT_REPLAY_H

#include "replay/replay.h"
#include "replay/replay_host.h"
#include "report/report.h"

/* One reason why two traces differ. The times add up to the difference. */
typedef struct sc_report_cause {
    const char *path;
    uint8_t class;       /* as sc_replay_entry.class */
    sc_time here, there; /* per step */
} sc_report_cause;

/* All pointers are borrowed. */
typedef struct sc_report_replay {
    const sc_replay_result *r;
    const sc_replay_result *unchanged; /* NULL: `r` has no changes */
    uint32_t n_changes;
    const char *const *change; /* "--scale compute=2" */
    uint32_t n_entries, n_kernels, n_findings, n_causes;
    const sc_replay_entry *entry;
    const sc_replay_kernel *kernel;
    const sc_replay_finding *finding;
    const sc_report_cause *cause; /* with `against` */
    const sc_replay_result *against;
    const sc_host_overheads *host; /* of the traces as recorded */
    sc_time residual;              /* of clocks after alignment */
    uint64_t n_events;
    uint32_t n_memory;
    const sc_replay_memory *memory; /* [n_memory] of ranks that have it */
    double wall_s;
    uint64_t peak_rss_bytes;
    uint32_t n_assumptions, n_warnings, n_inputs;
    const char *const *assumptions, *const *warnings; /* lines */
    const sc_report_input *input;
} sc_report_replay;

void sc_report_replay_text(const sc_report_replay *s, sc_text *out);

/* Writes an object with the JSON schema stepcast.replay/1. */
void sc_report_replay_json(const sc_report_replay *s, sc_json *out);

/* Explains the difference of two replays by at most `most` causes, the last of
 * which is everything else; `*n` of them in the arena. */
sc_status sc_report_causes(const sc_replay_entry *a, uint32_t n_a,
                           uint32_t steps_a, const sc_replay_entry *b,
                           uint32_t n_b, uint32_t steps_b, uint32_t most,
                           sc_arena *arena, sc_report_cause **out, uint32_t *n,
                           sc_err *err);

#endif
