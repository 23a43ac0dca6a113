/* SPDX-License-Identifier: Apache-2.0 */
/* Execution traces beside a profile: any bytes are read or refused, and whatever
 * they add, the replay takes the same time and can be written. */
#include "et_pair.h"
#include "replay/replay.h"
#include "trace/trace_et.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static sc_status replayed(const sc_profiled *m, sc_arena *a, sc_text *notes,
                          sc_time *out, sc_err *err)
{
    sc_replay_model *x;
    sc_replay_result r;
    sc_replay_change c;
    sc_workload w;
    sc_replay_change_init(&c);
    SC_TRY(sc_replay_prepare(&m, 1, &(sc_replay_steps){0, UINT32_MAX}, a, notes,
                             &x, err));
    SC_TRY(sc_replay_run(x, &c, a, &r, err));
    *out = r.predicted;
    return sc_replay_workload(x, &r, a, notes, &w, err);
}

static sc_status both(const char *data, size_t size, const sc_text *profile,
                      sc_arena *a, sc_text *notes, sc_err *err)
{
    sc_profiled m;
    sc_et_linked linked;
    sc_time plain, with;
    if (sc_profiled_read_memory(profile->buf, profile->len, "k.json", a, notes,
                                &m, err) != SC_OK ||
        replayed(&m, a, notes, &plain, err) != SC_OK)
        abort();
    SC_TRY(sc_et_link_memory(data, size, "et.json", &m, a, &linked, err));
    if (linked.linked > linked.nodes || linked.spans_linked > linked.spans)
        abort();
    if (replayed(&m, a, notes, &with, err) != SC_OK || with != plain) abort();
    return SC_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sc_arena a;
    sc_err err;
    sc_text notes, profile;
    sc_arena_init(&a, (size_t)256 << 20);
    sc_err_init(&err);
    sc_text_init(&notes);
    sc_text_init(&profile);
    pair_profile(&profile, "External id", size % 2);
    sc_status s = both((const char *)data, size, &profile, &a, &notes, &err);
    if (s == SC_EBUG || (s == SC_OK) != (err.n == 0)) abort();
    sc_text_free(&notes);
    sc_text_free(&profile);
    sc_arena_free(&a);
    return 0;
}
