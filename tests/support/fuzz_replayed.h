/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_replayed.h - what a fuzz target asks of any measured trace: the parts of its
 * steps add up, and the critical path is as long as the window. */
#ifndef TESTS_FUZZ_REPLAYED_H
#define TESTS_FUZZ_REPLAYED_H

#include "replay/replay_host.h"
#include "replay/replay_work.h"

#include <stdlib.h>

static inline void check_replay(const sc_replay_result *r)
{
    if (r->path.total != r->predicted) abort();
    for (uint32_t k = 0; k < r->n_ranks; k++)
        for (uint32_t i = 0; i < r->rank[k].n_steps; i++) {
            const sc_replay_step *s = &r->rank[k].step[i];
            const sc_replay_split *p = &s->split;
            if (s->predicted < 0) continue; /* steps that overlap */
            if (p->compute + p->exposed_comm + p->memory + p->host_bound +
                    p->idle !=
                s->predicted)
                abort();
        }
}

/* What else a report has of a model: memory, overheads, work by layers, and the
 * operators to measure; and a host and a batch that are others. */
static inline sc_status look_at(const sc_replay_model *x, uint32_t n_ranks,
                                sc_arena *a, sc_err *err)
{
    sc_replay_memory *memory;
    sc_host_overheads host;
    sc_step_work work;
    sc_replay_change c;
    sc_replay_result r;
    sc_err other; /* of changes that the trace does not allow */
    uint32_t n;
    SC_TRY(sc_replay_memory_of(x, a, &memory, &n, err));
    SC_TRY(sc_host_overheads_of(&x, 1, a, &host, err));
    for (uint32_t i = 0; i < n_ranks; i++)
        SC_TRY(sc_replay_work(x, i, 3, a, &work, err));
    for (int i = 0; i < 2; i++) {
        sc_replay_change_init(&c);
        if (i == 0)
            c.host = &host;
        else
            c.batch = 2.5;
        sc_err_init(&other);
        sc_status s = sc_replay_run(x, &c, a, &r, &other);
        if (s == SC_EBUG)
            return sc_error(err, s, SC_C_BUG, sc_pos_none(), NULL, "%s",
                            other.d[0].msg);
        if (s == SC_OK) check_replay(&r);
    }
    return SC_OK;
}

/* Replays `n` ranks and looks for findings. */
static inline sc_status replay(const sc_profiled *const *m, uint32_t n,
                               sc_arena *a, sc_text *notes, sc_err *err)
{
    sc_replay_model *x;
    sc_replay_result r;
    sc_replay_change c;
    sc_replay_finding *found;
    uint32_t n_found;
    sc_replay_change_init(&c);
    SC_TRY(sc_replay_prepare(m, n, &(sc_replay_steps){0, UINT32_MAX}, a, notes,
                             &x, err));
    SC_TRY(sc_replay_run(x, &c, a, &r, err));
    check_replay(&r);
    SC_TRY(look_at(x, n, a, err));
    SC_TRY(sc_replay_find(x, &r, &c, a, &found, &n_found, err));
    return SC_OK;
}

#endif
