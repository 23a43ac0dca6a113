/* SPDX-License-Identifier: Apache-2.0 */
/* The jobs of a mix, and any text: an error with its place, or jobs with a weight
 * on the machine of all; side by side, with nodes of their own. */
#include "jobs/jobs.h"
#include "search/search_mix.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool placed(const sc_err *err)
{
    return err->n > 0 && err->d[0].file[0] && err->d[0].line > 0;
}

static void side_by_side(const char *text, size_t size, const sc_job *base,
                         sc_arena *a)
{
    sc_err err;
    sc_jobs_entry *of;
    const sc_hw *hw;
    uint32_t n = 0, used = 0;
    bool taken[16] = {false};
    sc_err_init(&err);
    if (sc_jobs_read(text, size, "jobs.yml", base, a, &of, &n, &err)) return;
    sc_jobs_part *job = SC_NEW_N(a, sc_jobs_part, n);
    if (!job || sc_hw_build("dgx-h100:16; leaf=4", sc_pos_none(), a, &hw, &err))
        return;
    for (uint32_t j = 0; j < n; j++) job[j].of = &of[j];
    sc_status s = sc_jobs_place(job, n, hw, a, &err);
    if (s != SC_OK && s != SC_ENOMEM && !placed(&err)) abort();
    for (uint32_t j = 0; j < n && s == SC_OK; j++) {
        if (job[j].n_units == 0 || !(of[j].start_s >= 0)) abort();
        for (uint32_t i = 0; i < job[j].n_units; i++, used++) {
            if (job[j].unit[i] >= 16 || taken[job[j].unit[i]]) abort();
            taken[job[j].unit[i]] = true;
        }
    }
    if (used > 16) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sc_arena a;
    sc_err err;
    sc_job base;
    sc_mix_job *job;
    uint32_t n = 0;
    sc_arena_init(&a, (size_t)256 << 20);
    sc_err_init(&err);
    sc_job_init(&base);
    base.cluster = "dgx-h100:2";
    sc_status s = sc_search_mix_read((const char *)data, size, "jobs.yml",
                                     &base, &a, &job, &n, &err);
    if (s == SC_OK ? err.n != 0 || n == 0 : s != SC_ENOMEM && !placed(&err))
        abort();
    for (uint32_t i = 0; i < n && s == SC_OK; i++)
        if (!(job[i].weight > 0) || job[i].job.cluster != base.cluster) abort();
    side_by_side((const char *)data, size, &base, &a);
    sc_arena_free(&a);
    return 0;
}
