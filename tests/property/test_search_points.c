/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A search evaluates what `predict --engine fast` predicts: the same step to
 * the last bit and the same memory to the byte, for points drawn from spaces of
 * several kinds; and it refuses what `predict` refuses.
 */
#include "search/search.h"
#include "unit.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct space {
    const char *model, *cluster, *software;
    int64_t gbs, seq;
    const char *more; /* an axis beside the usual ones: "offload=0,0.5" */
    uint32_t draws;
} space;

static const space spaces[] = {
    {"gpt3-175b", "dgx-a100:128", NULL, 1024, 0, NULL, 300},
    {"gpt3-6.7b", "dgx-a100:2", NULL, 64, 0, "offload=0,0.5", 300},
    {"llama3-70b", "dgx-h100:16", NULL, 256, 32768, NULL, 200},
    {"llama3-8b", "dgx-h100:4", "torchtitan", 64, 0, "hsdp=8,16", 200},
    {"llama3-70b", "dgx-h100:16", "torchtitan", 128, 0, "prefetch=0..2", 200},
    {"mixtral-8x7b", "dgx-h100:8", NULL, 256, 0, NULL, 300},
    {"deepseek-v3", "dgx-h100:64", NULL, 1024, 0, "precision=bf16,fp8", 200},
    {"gpt3-13b", "dgx-a100:4", NULL, 64, 0,
     "schedule=1f1b,gpipe,interleaved,zb-h1", 200},
    {"bloom-176b", "dgx-a100:48", "megatron-deepspeed-2022", 2048, 0, NULL,
     100}};

/* Points that follow each other. */
enum { NEXT = 5 };

static sc_arena keep, once;
static sc_err e;

static double peak_of(const sc_prediction *p)
{
    double most = 0;
    for (uint32_t i = 0; i < p->n_stages; i++)
        most = fmax(most, p->memory[i].peak);
    return most;
}

/* Points that wait for their steps. */
static sc_points_room room;
static sc_points *points;
static sc_search_row waits[SC_POINTS_WAIT];
static uint32_t n_waits;

static void same(const space *s, const sc_search_jobs *jobs,
                 const sc_search_row *row, sc_status found)
{
    sc_job job, none;
    sc_prediction p;
    sc_search_row_job(jobs, row, &job);
    job.brief = true;
    sc_err_init(&e);
    sc_arena_reset(&once);
    sc_status told = sc_predict(&job, jobs->in->hw, jobs->in->model,
                                jobs->in->sw, jobs->in->cost, &once, &p, &e);
    sc_job_init(&none);
    const char *options = sc_job_options(&none, &job, &once);
    const sc_point *x = &row->point;
    if (found != told ||
        (told == SC_OK && (x->step_s != p.step_time_s ||
                           x->peak != peak_of(&p) || x->fits != p.fits)))
        print_message("%s: %s\n  %d %.17g s %.17g, predict %d %.17g s %.17g "
                      "%s\n",
                      s->model, options, found, x->step_s, x->peak, told,
                      p.step_time_s, peak_of(&p), told ? e.d[0].msg : "");
    assert_int_equal(found, told);
    if (told != SC_OK) return;
    assert_true(x->step_s == p.step_time_s);
    assert_true(x->peak == peak_of(&p));
    assert_int_equal(x->fits, p.fits);
}

/* Composes the steps of all points that wait, several at once where they have
 * the same order of passes. */
static void compose(const space *s, const sc_search_jobs *jobs)
{
    static const double beat[SC_POINTS_TOGETHER];
    uint32_t which[SC_POINTS_TOGETHER], n;
    sc_point *of[SC_POINTS_TOGETHER];
    if (n_waits == 0) return;
    while ((n = sc_points_take(points, which))) {
        for (uint32_t i = 0; i < n; i++) of[i] = &waits[which[i]].point;
        sc_err_init(&e);
        assert_int_equal(sc_points_steps(points, n, which, beat, of, &e),
                         SC_OK);
    }
    for (uint32_t i = 0; i < n_waits; i++) same(s, jobs, &waits[i], SC_OK);
    n_waits = 0;
}

static void add(const space *s, const sc_search_jobs *jobs,
                const uint32_t *digit)
{
    sc_search_row row;
    sc_job job;
    memcpy(row.digit, digit, sizeof row.digit);
    sc_search_row_job(jobs, &row, &job);
    sc_err_init(&e);
    sc_status found = SC_OK;
    if (!points)
        found = sc_points_new(&job, jobs->in, &keep, &room, &points, &e);
    if (found == SC_OK)
        found = sc_points_memory(points, &job, INFINITY, &row.point, &e);
    if (found != SC_OK) {
        same(s, jobs, &row, found);
        return;
    }
    waits[sc_points_wait(points)] = row;
    if (++n_waits == SC_POINTS_WAIT) compose(s, jobs);
}

/* Points are drawn uniformly, each with those that follow it; those of one
 * sc_points follow each other. */
static void draw(const space *s)
{
    sc_job job;
    sc_inputs in;
    sc_search_jobs jobs;
    sc_search_option given[1];
    uint32_t n_given = 0, digit[SC_SEARCH_AXES];
    points = NULL;
    sc_job_init(&job);
    job.model = s->model;
    job.cluster = s->cluster;
    job.software = s->software;
    job.gbs = s->gbs;
    job.seq = s->seq;
    job.engine = SC_ENGINE_FAST;
    const char *eq = s->more ? strchr(s->more, '=') : NULL;
    const sc_key *k = sc_job_keys;
    while (eq && strncmp(k->name, s->more, (size_t)(eq - s->more)) != 0) k++;
    if (eq)
        assert_int_equal(sc_search_option_read(k, eq + 1, sc_pos_none(), &keep,
                                               &given[n_given++], &e),
                         SC_OK);
    assert_int_equal(sc_predict_load(&job, &keep, &in, &e), SC_OK);
    sc_status opened =
        sc_search_jobs_open(&job, &in, given, n_given, &keep, &jobs, &e);
    if (opened != SC_OK) print_message("%s: %s\n", s->model, e.d[0].msg);
    assert_int_equal(opened, SC_OK);
    uint64_t n = sc_search_space_points(jobs.space), slow = UINT64_MAX;
    uint64_t stretch = NEXT * n / s->draws + NEXT;
    for (uint64_t i = 0, from = 0; i < s->draws; i++) {
        if (i % NEXT == 0) {
            from = i / NEXT * stretch;
            if (from >= n) break;
            from += sc_mix(i) % (n - from < stretch ? n - from : stretch);
        }
        uint64_t at = from + i % NEXT;
        if (at >= n) continue;
        sc_search_space_digits(jobs.space, at, digit);
        uint64_t key = 0;
        for (uint32_t d = 0; d < jobs.n_own; d++) key = 64 * key + digit[d];
        if (key != slow) compose(s, &jobs);
        if (key != slow) points = NULL;
        slow = key;
        add(s, &jobs, digit);
    }
    compose(s, &jobs);
}

static void equal(void **state)
{
    (void)state;
    for (size_t i = 0; i < SC_COUNT(spaces); i++) {
        sc_arena_init(&keep, 0);
        sc_arena_init(&once, 0);
        sc_points_room_init(&room, 0);
        sc_err_init(&e);
        draw(&spaces[i]);
        sc_arena_free(&keep);
        sc_arena_free(&once);
        sc_points_room_free(&room);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(equal)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
