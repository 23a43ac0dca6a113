/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as the checkpoint of a search, with a seal that fits: an error with
 * its byte, or what is written again as the same bytes and joined as a part. */
#include "search/search_saved.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct world {
    sc_arena a;
    sc_job job;
    sc_inputs in;
    sc_search_jobs jobs;
    sc_search_options o;
} world;

/* The search of the seeds. */
static world *open_world(void)
{
    static world w;
    sc_err err;
    if (w.jobs.points) return &w;
    sc_arena_init(&w.a, 0);
    sc_err_init(&err);
    sc_job_init(&w.job);
    w.job.model = "gpt3-6.7b";
    w.job.cluster = "dgx-a100:1";
    w.job.gbs = 8;
    w.job.engine = SC_ENGINE_FAST;
    w.o = (sc_search_options){.top = 3, .threads = 1, .keep_free = 0.08};
    w.o.kinds = true;
    if (sc_predict_load(&w.job, &w.a, &w.in, &err) != SC_OK ||
        sc_search_jobs_open(&w.job, &w.in, NULL, 0, &w.a, &w.jobs, &err) !=
            SC_OK)
        abort();
    return &w;
}

static void join(const sc_search_saved *s)
{
    world *w = open_world();
    sc_err err;
    sc_search_saved all = {.n = 0};
    sc_arena_mark mark = sc_arena_save(&w->a);
    sc_err_init(&err);
    sc_status st =
        sc_search_saved_join(&w->jobs, &w->o, s, 1, &w->a, &all, &err);
    if ((st == SC_OK) != (err.n == 0)) abort();
    if (st == SC_OK && !sc_search_saved_done(&all)) abort();
    sc_search_saved_free(&all);
    sc_arena_restore(&w->a, mark);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sc_arena a;
    sc_err err;
    sc_search_saved s;
    sc_bytes sealed = {0}, again = {0};
    sc_bytes_add(&sealed, data, size > 8 ? size - 8 : size);
    sc_bytes_seal(&sealed, 0);
    if (sealed.failed) return 0;
    sc_arena_init(&a, (size_t)256 << 20);
    sc_err_init(&err);
    sc_status st =
        sc_search_saved_read(sealed.buf, sealed.len, "state", &a, &s, &err);
    if ((st == SC_OK) != (err.n == 0)) abort();
    if (st == SC_OK) {
        sc_search_saved_write(&s, &again);
        /* a number may have been written longer than it needs */
        if (!again.failed && again.len > sealed.len) abort();
        if (sc_search_saved_check(&s, s.identity, &err) != SC_OK) abort();
        join(&s);
        sc_search_saved_free(&s);
    }
    sc_bytes_free(&again);
    sc_bytes_free(&sealed);
    sc_arena_free(&a);
    return 0;
}
