/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a table of kernels: every row has a device and either a reason
 * or kernels or a collective with a finite price; or located errors. */
#include "calib/kernel_table.h"

#include <math.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_row(const calib_kernel_row *r, const sc_cost *c)
{
    if (!r->id || !r->operation || !r->device || !r->dtype || !r->software)
        abort();
    if (r->n_warnings > CALIB_KERNEL_WARNINGS) abort();
    for (uint32_t i = 0; i < r->n_warnings; i++)
        if (!r->warning[i] || r->warning[i][0] == '\0') abort();
    if (r->reason) {
        if (r->reason[0] == '\0') abort();
        return;
    }
    if (!(r->seconds > 0) || (r->n_parts == 0) != (r->coll != NULL)) abort();
    double s = calib_kernel_predict(r, c);
    if (r->coll == NULL && !(s > 0 && isfinite(s))) abort();
    if (r->coll != NULL && isfinite(s) && s < 0) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sc_arena a;
    sc_err err;
    sc_csv t;
    sc_cost cost;
    calib_kernel_row *row = NULL;
    uint32_t n = 0;
    /* each row may build a machine of its own */
    if (size > 16384) return 0;
    sc_arena_init(&a, (size_t)256 << 20);
    sc_err_init(&err);
    sc_cost_centres(&cost);
    if (sc_csv_parse((const char *)data, size, "network/a100_dgx/f.csv", &a, &t,
                     &err) == SC_OK) {
        sc_status s = calib_kernel_rows_read(&t, &a, &row, &n, &err);
        if (s == SC_OK) {
            if (err.n != 0) abort();
            for (uint32_t i = 0; i < n; i++) check_row(&row[i], &cost);
        } else if ((s != SC_EINPUT && s != SC_ENOMEM) || err.n == 0 || row) {
            abort();
        }
    }
    sc_arena_free(&a);
    return 0;
}
