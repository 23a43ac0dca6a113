/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_parts.c - any bytes as the power of a network's parts: no number is
 * negative, or an error says what is wrong. */
#include "hw/hw_parts.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sc_arena a;
    sc_err err;
    const sc_part_power *p = NULL;
    uint32_t n = 0;
    sc_arena_init(&a, (size_t)64 << 20);
    sc_err_init(&err);
    sc_status s =
        sc_part_power_read((const char *)data, size, "f.yml", &a, &p, &n, &err);
    if ((s == SC_OK) != (n > 0)) abort();
    if (s != SC_OK && err.n == 0) abort();
    for (uint32_t i = 0; i < n; i++)
        if (!(p[i].rate > 0 && p[i].switch_ports > 1 && p[i].adapter_w >= 0 &&
              p[i].switch_w >= 0 && p[i].link_w >= 0))
            abort();
    sc_arena_free(&a);
    return 0;
}
