/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a table of times of operations or as a log of benchmarks: curves that never fall, or located
 * errors. */
#include "fuzz_delay.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sc_arena a;
    sc_err err;
    delay_file f = {0};
    if (size > 65536) return 0;
    bool log = delay_log_is((const char *)data, size);
    sc_arena_init(&a, (size_t)256 << 20);
    sc_err_init(&err);
    check_read(delay_table_read((const char *)data, size, "t.csv",
                                log && size % 2 ? 4 : 0, &a, &f, &err),
               &f, &err);
    sc_arena_free(&a);
    return 0;
}
