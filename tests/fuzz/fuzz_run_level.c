/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_run_level.c - any bytes as the level of published runs: numbers within
 * their bounds, or an error says what is wrong. */
#include "cost/cost_run_level.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sc_arena a;
    sc_err err;
    sc_run_level l = {0};
    sc_arena_init(&a, (size_t)64 << 20);
    sc_err_init(&err);
    sc_status s =
        sc_run_level_read((const char *)data, size, "f.yml", &a, &l, &err);
    if (s != SC_OK && err.n == 0) abort();
    if (s == SC_OK && !(l.factor > 0 && l.low <= l.high && l.rows > 0)) abort();
    sc_arena_free(&a);
    return 0;
}
