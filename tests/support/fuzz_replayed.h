/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_replayed.h - what a fuzz target asks of any measured trace: the parts of its
 * steps add up, and the critical path is as long as the window. */
#ifndef TESTS_FUZZ_REPLAYED_H
#define TESTS_FUZZ_REPLAYED_H

#include "replay/replay.h"

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
    SC_TRY(sc_replay_find(x, &r, &c, a, &found, &n_found, err));
    return SC_OK;
}

#endif
