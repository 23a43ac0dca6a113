/* SPDX-License-Identifier: Apache-2.0 */
/* Databases of Nsight Systems: any bytes are read or refused, and what is read is
 * replayed, all ranks together. */
#include "fuzz_replayed.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static sc_status replay_all(sc_profiled *m, uint32_t n, sc_arena *a,
                            sc_text *notes, sc_err *err)
{
    const sc_profiled **all = SC_NEW_N(a, const sc_profiled *, n);
    if (!all) return sc_error_nomem(err);
    for (uint32_t i = 0; i < n; i++) {
        m[i].rank = i;
        all[i] = &m[i];
    }
    return replay(all, n, a, notes, err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sc_arena a;
    sc_err err;
    sc_text notes;
    sc_profiled *m;
    uint32_t n;
    sc_arena_init(&a, (size_t)256 << 20);
    sc_err_init(&err);
    sc_text_init(&notes);
    sc_status s = sc_profiled_read_all_memory(
        (const char *)data, size, "fuzz.sqlite", &a, &notes, &m, &n, &err);
    if ((s == SC_OK) != (err.n == 0)) abort();
    if (s == SC_OK) s = replay_all(m, n, &a, &notes, &err);
    if (s == SC_EBUG) abort();
    if ((s == SC_OK) != (err.n == 0)) abort();
    sc_text_free(&notes);
    sc_arena_free(&a);
    return 0;
}
