/* SPDX-License-Identifier: Apache-2.0 */
/* bench_search.c - points of a search per instruction: GPT-3 175B on 4,096
 * devices with and without bounds, the count of its whole space, and points that
 * differ in the end of their step. */
#include "bench.h"
#include "search/search.h"

#include <string.h>

typedef struct question {
    sc_job job;
    sc_inputs in;
    sc_search_jobs jobs;
    bool all;
    sc_arena load, run;
    sc_err err;
} question;

/* `n` searches; a repetition is a whole search. */
static void search(void *ctx, uint64_t n)
{
    question *q = ctx;
    const sc_search_options o = {
        .top = 5, .threads = 1, .exhaustive = q->all, .keep_free = 0.08};
    for (uint64_t i = 0; i < n; i++) {
        sc_search_result r;
        sc_arena_reset(&q->run);
        if (sc_search_run(&q->jobs, &o, &q->run, &r, &q->err) != SC_OK)
            bench_fail(q->err.d[0].msg);
        bench_keep((double)r.evaluated);
    }
}

static void count(void *ctx, uint64_t n)
{
    question *q = ctx;
    for (uint64_t i = 0; i < n; i++) {
        sc_arena_reset(&q->run);
        if (sc_search_jobs_open(&q->job, &q->in, NULL, 0, &q->run, &q->jobs,
                                &q->err) != SC_OK)
            bench_fail(q->err.d[0].msg);
        bench_keep((double)sc_search_space_points(q->jobs.space));
    }
}

/* Values of further options: 256 for each point. */
static const char *const more[][2] = {{"zero", "0,1"},
                                      {"overlap-grad-reduce", "yes,no"},
                                      {"offload-optimizer", "device,cpu"},
                                      {"optimizer-bytes", "6B,8B,12B,16B"},
                                      {"checkpoint-every", "50,100,500,1000"},
                                      {"storage-bw", "50GB/s,200GB/s"}};

static void with_more(question *q)
{
    sc_search_option axis[SC_COUNT(more)];
    for (size_t i = 0; i < SC_COUNT(more); i++) {
        const sc_key *k = sc_job_keys;
        while (strcmp(k->name, more[i][0]) != 0) k++;
        if (sc_search_option_read(k, more[i][1], sc_pos_none(), &q->load,
                                  &axis[i], &q->err) != SC_OK)
            bench_fail(q->err.d[0].msg);
    }
    if (sc_search_jobs_open(&q->job, &q->in, axis, SC_COUNT(more), &q->load,
                            &q->jobs, &q->err) != SC_OK)
        bench_fail(q->err.d[0].msg);
}

void bench_main(void)
{
    static question q;
    sc_job_init(&q.job);
    sc_arena_init(&q.load, 0);
    sc_arena_init(&q.run, 0);
    sc_err_init(&q.err);
    q.job.model = "gpt3-175b";
    q.job.cluster = "dgx-a100:512";
    q.job.gbs = 4096;
    q.job.cp = 1;
    if (sc_predict_load(&q.job, &q.load, &q.in, &q.err) != SC_OK)
        bench_fail(q.err.d[0].msg);
    bench_case("gpt3-175b on 4096 devices, count 18516 points", count, &q, 20);
    q.job.pp = 8;
    if (sc_search_jobs_open(&q.job, &q.in, NULL, 0, &q.load, &q.jobs, &q.err) !=
        SC_OK)
        bench_fail(q.err.d[0].msg);
    bench_case("gpt3-175b, pp 8: 3348 points by bounds", search, &q, 1);
    q.all = true;
    bench_case("gpt3-175b, pp 8: all 3348 points", search, &q, 1);
    with_more(&q);
    bench_case("gpt3-175b, pp 8: all 428544 points, 256 ends", search, &q, 1);
    sc_arena_free(&q.run);
    sc_arena_free(&q.load);
}
