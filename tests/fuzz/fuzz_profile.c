/* SPDX-License-Identifier: Apache-2.0 */
/* Fit files: any text is read or refused; what is read is in range, and levels
 * of own runs are numbers. */
#include "cost/cost_anchor.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sc_arena a;
    sc_err err;
    sc_cost c, before;
    sc_arena_init(&a, (size_t)64 << 20);
    sc_err_init(&err);
    sc_cost_centres(&c);
    before = c;
    sc_status s =
        sc_cost_read((const char *)data, size, "fuzz.yml", &a, &c, &err);
    if ((s == SC_OK) != (err.n == 0)) abort();
    if (s != SC_OK && memcmp(&c, &before, sizeof c) != 0) abort();
    for (int i = 0; i < (int)SC_N_PARAMS; i++)
        if (!(c.p[i] >= sc_params[i].lo && c.p[i] <= sc_params[i].hi)) abort();
    for (uint32_t i = 0; c.anchors && i < c.anchors->n; i++) {
        const sc_traits *t = &c.anchors->a[i].traits;
        if (!isfinite(sc_anchors_level_of(c.anchors, t))) abort();
        if (!(sc_anchors_narrow(c.anchors, t, &a) >= 0)) abort();
    }
    sc_arena_free(&a);
    return 0;
}
