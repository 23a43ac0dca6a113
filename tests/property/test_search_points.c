/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A search evaluates what `predict --engine fast` predicts: the same step to
 * the last bit and the same memory to the byte, for points drawn from spaces of
 * several kinds and for every option; and it refuses what `predict` refuses.
 */
#include "space_case.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const space_case spaces[] = {
    {"gpt3-175b", "dgx-a100:128", NULL, 1024, 0, NULL, 300},
    {"gpt3-175b", "dgx-a100:64", NULL, 512, 0,
     "zero=3 tp=16,32 recompute=full micro-batch=1,2,4,8", 100},
    {"gpt3-6.7b", "dgx-a100:2", NULL, 64, 0, "offload=0,0.5", 300},
    {"gpt3-6.7b", "dgx-a100:1; expanded_memory=400GB; expanded_bw=40GB/s", NULL,
     64, 0,
     "offload=0,0.5 offload-weights=0,0.5 offload-to=cpu,expanded "
     "offload-optimizer=device,expanded,cpu",
     200},
    /* what expanded memory keeps is open */
    {"gpt3-6.7b", "dgx-a100:1; expanded_memory=400GB; expanded_bw=40GB/s", NULL,
     64, 0, "cp=1 zero=0,3", 200},
    {"llama3-70b", "dgx-h100:16", NULL, 256, 32768, NULL, 200},
    {"llama3-8b", "dgx-h100:4", "torchtitan", 64, 0, "hsdp=8,16", 200},
    {"llama3-70b", "dgx-h100:16", "torchtitan", 128, 0, "prefetch=0..2", 200},
    {"mixtral-8x7b", "dgx-h100:8", NULL, 256, 0, NULL, 300},
    {"deepseek-v3", "dgx-h100:64", NULL, 1024, 0, "precision=bf16,fp8", 200},
    {"gpt3-13b", "dgx-a100:4", NULL, 64, 0,
     "schedule=1f1b,gpipe,interleaved,zb-h1", 200},
    {"bloom-176b", "dgx-a100:48", "megatron-deepspeed-2022", 2048, 0, NULL,
     100},
    {"llama3-8b", "examples/clusters/h100-and-a100.yml", NULL, 96, 4096, NULL,
     150},
    {NULL, NULL, NULL, 0, 0,
     "strategy=examples/strategies/pools-replicas.yml "
     "overlap-grad-reduce=yes,no",
     2},
    {NULL, NULL, NULL, 0, 0,
     "strategy=none,examples/strategies/tensor-2d.yml "
     "precision=bf16,fp16",
     60},
    {NULL, NULL, NULL, 0, 0,
     "strategy=examples/strategies/zero3.yml,none prefetch=0,1", 60},
    {NULL, NULL, NULL, 0, 0,
     "strategy=examples/strategies/megatron-3d.yml prefetch=0,1", 2},
    {NULL, NULL, NULL, 0, 0,
     "strategy=examples/strategies/offload.yml offload=0.25,0.5", 2},
    {"resnet50", "dgx-a100:2", NULL, 256, 0, "pp=1,2 precision=fp32,bf16", 120},
    {NULL, NULL, NULL, 0, 0,
     "strategy=none,examples/strategies/resnet50-opshard.yml", 60},
    {"dlrm", "dgx-a100:2", NULL, 2048, 0, "overlap-grad-reduce=yes,no", 120},
    {"llama3-8b", "dgx-h100:2", NULL, 64, 4096,
     "checkpoint-async=yes,no checkpoint-every=1,100", 120},
    {"gpt3-175b", "dgx-a100:64", NULL, 512, 0,
     "zero=0,1 cp=1 overlap-grad-reduce=yes,no offload-optimizer=device,cpu "
     "optimizer-bytes=8B,12B offload=0,0.5",
     400},
    {"mixtral-8x7b", "dgx-h100:8", NULL, 256, 0,
     "offload-optimizer=device,cpu,nvme nvme-bw=10GB/s,30GB/s zero=0,1", 200},
    {"llama3-8b", "dgx-h100:4", "torchtitan", 64, 0,
     "optimizer-bytes=6B,12B checkpoint-every=10,100 "
     "overlap-grad-reduce=yes,no",
     200},
    {"gpt3-13b", "dgx-a100:4", NULL, 64, 0,
     "zero=0,1 schedule=1f1b,zb-v,dualpipe offload-optimizer=device,cpu "
     "host-mem-bw=100GB/s,300GB/s",
     200}};

/* Points that follow each other. */
enum { NEXT = 5 };

static sc_arena keep, once;
static sc_err e;
static const sc_points_limit any = {.most_full = INFINITY};
static uint32_t predicted;

static double peak_of(const sc_prediction *p)
{
    double most = 0;
    for (uint32_t i = 0; i < p->n_stages; i++)
        most = fmax(most, p->memory[i].peak);
    return most;
}

/* The ends of steps that the points so far have. */
enum { ENDS = 128 };

static sc_points_room room;
static sc_points *points;
static uint32_t n_ends, end_digit[ENDS][SC_SEARCH_AXES];

/* Points that wait for their steps: each asks for all ends. */
static struct waits {
    sc_search_row row;
    uint32_t n, own; /* ends, and that of the row */
    sc_point_end end[ENDS];
} waits[SC_POINTS_WAIT];

static uint32_t n_waits;

static void same(const space_case *s, const sc_search_jobs *jobs,
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
        print_message("%s %s\n  %d %.17g s %.17g, predict %d %.17g s %.17g "
                      "%s\n",
                      s->model ? s->model : s->more, options, found, x->step_s,
                      x->peak, told, told ? 0 : p.step_time_s,
                      told ? 0 : peak_of(&p), told ? e.d[0].msg : "");
    assert_int_equal(found, told);
    if (told != SC_OK) return;
    predicted++;
    assert_true(x->step_s == p.step_time_s);
    assert_true(x->peak == peak_of(&p));
    assert_int_equal(x->fits, p.fits);
}

/* Steps of all ends, or lower bounds of them with a step to beat. */
static void steps(uint32_t n, const uint32_t *which, double beat)
{
    sc_point_ends of[SC_POINTS_TOGETHER];
    for (uint32_t i = 0; i < n; i++) {
        struct waits *w = &waits[which[i]];
        of[i] = (sc_point_ends){w->n, w->end};
        for (uint32_t k = 0; k < w->n; k++) w->end[k].beat_s = beat;
    }
    sc_err_init(&e);
    assert_int_equal(sc_points_steps(points, n, which, of, &e), SC_OK);
}

/* Composes the steps of all points that wait, several at once where they have
 * the same order of passes.  No step is shorter than its lower bound. */
static void compose(const space_case *s, const sc_search_jobs *jobs)
{
    uint32_t which[SC_POINTS_TOGETHER], n;
    double least[SC_POINTS_WAIT];
    if (n_waits == 0) return;
    while ((n = sc_points_take(points, which))) {
        steps(n, which, 1e-300);
        for (uint32_t i = 0; i < n; i++)
            least[which[i]] =
                waits[which[i]].end[waits[which[i]].own].point.step_s;
        steps(n, which, 0);
    }
    for (uint32_t i = 0; i < n_waits; i++) {
        struct waits *w = &waits[i];
        w->row.point = w->end[w->own].point;
        same(s, jobs, &w->row, SC_OK);
        assert_true(least[i] <= w->row.point.step_s);
    }
    n_waits = 0;
}

/* The end of a point; points that wait do not know new ones. */
static sc_status end_of(const space_case *s, const sc_search_jobs *jobs,
                        const uint32_t *digit, const sc_job *job, uint32_t *out)
{
    uint32_t from = jobs->n_passes, n = jobs->n - from;
    for (*out = 0; *out < n_ends; ++*out)
        if (memcmp(end_digit[*out], digit + from, n * sizeof *digit) == 0)
            return SC_OK;
    assert_true(n_ends < ENDS);
    compose(s, jobs);
    if (!points)
        SC_TRY(sc_points_new(job, jobs->in, &keep, &room, &points, &e));
    else
        SC_TRY(sc_points_add_end(points, job, jobs->zero_ends, out, &e));
    assert_int_equal(*out, n_ends);
    memcpy(end_digit[n_ends++], digit + from, n * sizeof *digit);
    return SC_OK;
}

static void add(const space_case *s, const sc_search_jobs *jobs,
                const uint32_t *digit)
{
    struct waits *w = &waits[n_waits];
    uint32_t own;
    sc_job job;
    memcpy(w->row.digit, digit, sizeof w->row.digit);
    const sc_search_row row = w->row;
    sc_search_row_job(jobs, &row, &job);
    /* all points of a search share it, also those that move nothing */
    if (jobs->expands) sc_job_move_to(&job, SC_OFFLOAD_EXPANDED);
    sc_err_init(&e);
    sc_status found = end_of(s, jobs, digit, &job, &own);
    if (found == SC_OK) {
        w = &waits[n_waits];
        w->row = row;
        w->own = own;
        w->n = n_ends;
        for (uint32_t i = 0; i < n_ends; i++) w->end[i].end = i;
        found = sc_points_memory(points, &job, &any, w->n, w->end, &e);
    }
    if (found != SC_OK) {
        same(s, jobs, &row, found);
        return;
    }
    assert_int_equal(sc_points_wait(points), n_waits);
    if (++n_waits == SC_POINTS_WAIT) compose(s, jobs);
}

/* Points are drawn uniformly, each with those that follow it; those of one
 * sc_points follow each other. */
static uint32_t draw(const space_case *s)
{
    sc_inputs in;
    sc_search_jobs jobs;
    uint32_t digit[SC_SEARCH_AXES], drawn = 0;
    points = NULL;
    n_ends = predicted = 0;
    sc_status opened = space_open(s, &keep, &in, &jobs, &e);
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
        if (key != slow) points = NULL, n_ends = 0;
        slow = key;
        add(s, &jobs, digit);
        drawn++;
    }
    compose(s, &jobs);
    assert_true(drawn > 0 && predicted > 0);
    print_message("%s: %u of %u points are legal\n",
                  s->model ? s->model : s->more, predicted, drawn);
    return drawn;
}

static void equal(void **state)
{
    (void)state;
    uint32_t drawn = 0;
    for (size_t i = 0; i < SC_COUNT(spaces); i++) {
        sc_arena_init(&keep, 0);
        sc_arena_init(&once, 0);
        sc_points_room_init(&room, 0);
        sc_err_init(&e);
        drawn += draw(&spaces[i]);
        sc_arena_free(&keep);
        sc_arena_free(&once);
        sc_points_room_free(&room);
    }
    assert_true(drawn >= 2000);
}

/* ---- every option -------------------------------------------------------- */

/* Jobs that leave nothing open, and what changes in each. */
static const char *const jobs_of[][2] = {{"llama3-8b", "dgx-h100:4"},
                                         {"mixtral-8x7b", "dgx-h100:4"},
                                         {"resnet50", "dgx-h100:4"}};

/* Values of the options that are quantities or numbers with few legal ones. */
static const struct {
    const char *key, *values;
} samples[] = {{"nic-bw", "25GB/s"},
               {"power-cap", "500W"},
               {"capacity-factor", "1,1.25"},
               {"expert-imbalance", "1.5"},
               {"offload", "0.5"},
               {"host-mem-bw", "100GB/s"},
               {"nvme-bw", "10GB/s"},
               {"storage-bw", "10GB/s"},
               {"grad-bytes", "2B"},
               {"optimizer-bytes", "8B"},
               {"price", "2USD/h"},
               {"gamma", "0.3"},
               {"vocab-size", "64000"},
               {"document-tokens", "1024"},
               {"mean-tokens", "1000"},
               {"tokens", "1000000"},
               {"zero", "0..3"},
               {"etp", "0,1,2"}};

static const char *sample_of(const sc_key *k)
{
    for (size_t i = 0; i < SC_COUNT(samples); i++)
        if (strcmp(samples[i].key, k->name) == 0) return samples[i].values;
    sc_text t;
    sc_text_init(&t);
    if (sc_key_is_flag(k)) sc_text_add(&t, "yes,no");
    if (k->type == SC_T_INT) sc_text_add(&t, "1,2,4");
    for (size_t i = 0; k->type == SC_T_ENUM && k->names[i]; i++)
        sc_text_add(&t, "%s%s", i ? "," : "", k->names[i]);
    const char *kept = t.len ? sc_strdup(&keep, t.buf) : NULL;
    sc_text_free(&t);
    return kept;
}

static void complete(sc_job *job, const char *model, const char *cluster)
{
    sc_job_init(job);
    job->model = model;
    job->cluster = cluster;
    job->gbs = 64;
    job->engine = SC_ENGINE_FAST;
    job->pp = 2;
    job->mbs = 1;
    job->recompute = SC_RC_NONE;
    job->zero = 1;
    job->dp = 16;
    if (strcmp(model, "resnet50") == 0) return;
    job->tp = job->ep = 2;
    job->cp = 1;
    job->dp = 8;
    job->seq = 2048;
    job->vpp = 1;
    job->sp = 1;
    if (strcmp(model, "llama3-8b") == 0) job->ep = 1;
}

/* The value of an option that the space fixes is that of `predict`, too. */
static void option_equal(const char *model, const char *cluster,
                         const sc_key *k)
{
    sc_search_option o;
    const char *values = sample_of(k);
    if (!values || strcmp(k->name, "engine") == 0) return;
    sc_status read =
        sc_search_option_read(k, values, sc_pos_none(), &keep, &o, &e);
    if (read != SC_OK) print_message("%s: %s\n", k->name, e.d[0].msg);
    assert_int_equal(read, SC_OK);
    for (uint32_t i = 0; i < o.axis.n; i++) {
        sc_job job;
        sc_inputs in;
        sc_search_jobs jobs = {.in = &in, .n_passes = 0};
        points = NULL;
        n_ends = 0;
        complete(&job, model, cluster);
        sc_search_option_set(&o, i, &job);
        sc_err_init(&e);
        if (sc_predict_load(&job, &keep, &in, &e) != SC_OK) continue;
        jobs.job = job;
        const space_case s = {.model = k->name};
        add(&s, &jobs, (const uint32_t[SC_SEARCH_AXES]){0});
        compose(&s, &jobs);
    }
}

static void options(void **state)
{
    (void)state;
    predicted = 0;
    for (size_t m = 0; m < SC_COUNT(jobs_of); m++)
        for (const sc_key *k = sc_job_keys; k->name; k++) {
            sc_arena_init(&keep, 0);
            sc_arena_init(&once, 0);
            sc_points_room_init(&room, 0);
            sc_err_init(&e);
            option_equal(jobs_of[m][0], jobs_of[m][1], k);
            sc_arena_free(&keep);
            sc_arena_free(&once);
            sc_points_room_free(&room);
        }
    print_message("%u legal\n", predicted);
    assert_true(predicted > 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(equal),
                                       cmocka_unit_test(options)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
