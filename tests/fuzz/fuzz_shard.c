/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as embedding tables, in CSV or YAML, and as row numbers of
 * look-ups: tables within their limits, or an error. */
#include "shard/shard.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_access(const sc_access *x)
{
    double sum = 0;
    sc_row_law law;
    const sc_row_law *one = &law;
    for (int i = 0; i < SC_REUSE_BINS; i++) sum += x->fraction[i];
    if (x->kind == SC_ACCESS_REUSE && !(sum > 0.999 && sum < 1.001)) abort();
    const sc_lookups l = {x, 1e6, 1, 4096, 256};
    double hit;
    sc_row_law_of(&l, &law);
    sc_lookup_hits(&one, 1, 1e6, &hit);
    if (!(hit >= 0 && hit <= 1)) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (int as = 0; as < 3; as++) {
        sc_arena a;
        sc_err err;
        sc_shard_tables t = {0, NULL};
        sc_access x;
        const char *text = (const char *)data;
        sc_arena_init(&a, (size_t)256 << 20);
        sc_err_init(&err);
        sc_status s =
            as == 2 ? sc_access_of_indices(text, size, "f", &a, &x, &err)
                    : sc_shard_read(text, size, "f", as == 1, &a, &t, &err);
        if (s == SC_OK && as == 2) check_access(&x);
        if (s == SC_OK && as < 2 && t.n == 0) abort();
        if (s != SC_OK && (err.n == 0 || t.n > 0)) abort();
        for (uint32_t i = 0; i < t.n && i < 64; i++) {
            const sc_shard_table *one = &t.table[i];
            if (!one->name || !(one->rows >= 1) || !(one->width >= 1) ||
                !(one->pooling > 0))
                abort();
            check_access(&one->access);
        }
        sc_arena_free(&a);
    }
    return 0;
}
