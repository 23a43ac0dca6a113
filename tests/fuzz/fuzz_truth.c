/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a table of measured runs: every row a job that is in range, or
 * a reason; or located errors. */
#include "calib/runs.h"

#include <math.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_run(const calib_run *r)
{
    if (!r->id || !r->family || !r->device || !r->model_name) abort();
    if (r->reason) {
        if (r->reason[0] == '\0') abort();
        return;
    }
    if (!r->hw || !r->model || !r->sw) abort();
    /* a batch that is not stated is 0, with a warning */
    if (r->job.gbs < 0 || r->job.tp < 0 || r->job.dp < 0) abort();
    if (r->model->t.heads <= 0 || r->hw->n_devices == 0) abort();
    if (isnan(r->measured) && isnan(r->mem_measured) && !r->outcome) abort();
    if (r->measured <= 0 || r->mem_measured <= 0) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sc_arena a;
    sc_err err;
    sc_csv t;
    calib_run *run = NULL;
    uint32_t n = 0;
    /* each row may describe a machine and a model of its own */
    if (size > 16384) return 0;
    sc_arena_init(&a, (size_t)256 << 20);
    sc_err_init(&err);
    if (sc_csv_parse((const char *)data, size, "f", &a, &t, &err) == SC_OK) {
        sc_status s = calib_runs_read(&t, 1, &a, &run, &n, &err);
        if (s == SC_OK) {
            if (n != t.n_rows || err.n != 0) abort();
            for (uint32_t i = 0; i < n; i++) check_run(&run[i]);
        } else if ((s != SC_EINPUT && s != SC_ENOMEM) || err.n == 0 || run) {
            abort();
        }
    }
    sc_arena_free(&a);
    return 0;
}
