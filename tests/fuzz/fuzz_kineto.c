/* SPDX-License-Identifier: Apache-2.0 */
/* Traces of profilers: any bytes are read or refused; what is read is replayed, the
 * parts of its steps add up, and the critical path is as long as the window. */
#include "replay/replay.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const sc_replay_result *r)
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

static sc_status replay(const sc_profiled *m, sc_arena *a, sc_text *notes,
                        sc_err *err)
{
    sc_replay_model *x;
    sc_replay_result r;
    sc_replay_change c;
    sc_replay_finding *found;
    uint32_t n;
    sc_replay_change_init(&c);
    SC_TRY(sc_replay_prepare(&m, 1, &(sc_replay_steps){0, UINT32_MAX}, a, notes,
                             &x, err));
    SC_TRY(sc_replay_run(x, &c, a, &r, err));
    check(&r);
    SC_TRY(sc_replay_find(x, &r, &c, a, &found, &n, err));
    return SC_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sc_arena a;
    sc_err err;
    sc_text notes;
    sc_profiled m;
    sc_arena_init(&a, (size_t)256 << 20);
    sc_err_init(&err);
    sc_text_init(&notes);
    sc_status s = sc_profiled_read_memory((const char *)data, size, "fuzz.json",
                                          &a, &notes, &m, &err);
    if ((s == SC_OK) != (err.n == 0)) abort();
    if (s == SC_OK) s = replay(&m, &a, &notes, &err);
    if (s == SC_EBUG) abort();
    if ((s == SC_OK) != (err.n == 0)) abort();
    sc_text_free(&notes);
    sc_arena_free(&a);
    return 0;
}
