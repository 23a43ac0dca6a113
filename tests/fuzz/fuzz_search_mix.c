/* SPDX-License-Identifier: Apache-2.0 */
/* The jobs of a mix, and any text: an error with its place, or jobs with a weight
 * on the machine of all. */
#include "search/search_mix.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

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
    bool placed = err.n > 0 && err.d[0].file[0] && err.d[0].line > 0;
    if (s == SC_OK ? err.n != 0 || n == 0 : s != SC_ENOMEM && !placed) abort();
    for (uint32_t i = 0; i < n && s == SC_OK; i++)
        if (!(job[i].weight > 0) || job[i].job.cluster != base.cluster) abort();
    sc_arena_free(&a);
    return 0;
}
