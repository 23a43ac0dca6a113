/* SPDX-License-Identifier: Apache-2.0 */
/* Traces of profilers: any bytes are read or refused, and what is read is
 * replayed. */
#include "fuzz_replayed.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sc_arena a;
    sc_err err;
    sc_text notes;
    sc_profiled m;
    const sc_profiled *all = &m;
    sc_arena_init(&a, (size_t)256 << 20);
    sc_err_init(&err);
    sc_text_init(&notes);
    sc_status s = sc_profiled_read_memory((const char *)data, size, "fuzz.json",
                                          &a, &notes, &m, &err);
    if ((s == SC_OK) != (err.n == 0)) abort();
    if (s == SC_OK) s = replay(&all, 1, &a, &notes, &err);
    if (s == SC_EBUG) abort();
    if ((s == SC_OK) != (err.n == 0)) abort();
    sc_text_free(&notes);
    sc_arena_free(&a);
    return 0;
}
