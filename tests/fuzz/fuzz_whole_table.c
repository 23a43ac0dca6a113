/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_whole_table.c - any bytes as a table of whole runs: its numbers are legal,
 * or an error says where they are not. */
#include "calib/whole_table.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sc_arena a;
    sc_err err;
    sc_csv t;
    sc_arena_init(&a, (size_t)64 << 20);
    sc_err_init(&err);
    if (sc_csv_parse((const char *)data, size, "f", &a, &t, &err) == SC_OK &&
        calib_whole_table(&t)) {
        sc_status s = calib_whole_check(&t, &err);
        if ((s == SC_OK) != (err.n == 0)) abort();
        if (s != SC_OK && s != SC_EINPUT) abort();
    }
    sc_arena_free(&a);
    return 0;
}
