/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_prices.c - any bytes as a list of prices: its numbers are not negative, or
 * an error says what is wrong. */
#include "hw/hw_prices.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sc_arena a;
    sc_err err;
    const sc_prices *p = NULL;
    sc_arena_init(&a, (size_t)64 << 20);
    sc_err_init(&err);
    sc_status s =
        sc_prices_read((const char *)data, size, "f.yml", &a, &p, &err);
    if ((s == SC_OK) != (p != NULL)) abort();
    if (s != SC_OK && err.n == 0) abort();
    if (p && (p->life_s <= 0 || p->switch_usd < 0 || p->switch_ports == 0))
        abort();
    for (uint32_t i = 0; p && i < p->n_hosts; i++)
        if (!p->host[i].device) abort();
    sc_arena_free(&a);
    return 0;
}
