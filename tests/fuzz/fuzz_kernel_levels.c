/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a table of a few measured kernels: a profile that can be read,
 * with levels in range and one for each device and kind; or located errors. */
#include "calib/calib.h"
#include "cost/cost.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const sc_text *yml, sc_arena *a, sc_err *err)
{
    sc_cost c;
    sc_cost_centres(&c);
    if (sc_cost_read(yml->buf, yml->len, "profile", a, &c, err) != SC_OK ||
        c.n_levels == 0)
        abort();
    for (uint32_t i = 0; i < c.n_levels; i++)
        for (uint32_t k = 0; k < i; k++)
            if (c.level[i].kind == c.level[k].kind &&
                strcmp(c.level[i].device, c.level[k].device) == 0)
                abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sc_arena a;
    sc_err err;
    sc_csv t;
    sc_text yml, report;
    /* each row may build a machine of its own */
    if (size > 16384) return 0;
    sc_arena_init(&a, (size_t)256 << 20);
    sc_err_init(&err);
    sc_text_init(&yml);
    sc_text_init(&report);
    if (sc_csv_parse((const char *)data, size, "f.csv", &a, &t, &err) ==
        SC_OK) {
        sc_status s =
            sc_calibrate_levels(&t, 1, "of f.csv", &a, &yml, &report, &err);
        if (s == SC_OK)
            check(&yml, &a, &err);
        else if ((s != SC_EINPUT && s != SC_ENOMEM) || err.n == 0)
            abort();
    }
    sc_text_free(&yml);
    sc_text_free(&report);
    sc_arena_free(&a);
    return 0;
}
