/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fewest devices that meet limits, the best by each objective, and the
 * front over numbers of devices are those of exhaustive searches.
 */
#include "search/search_sizes.h"
#include "unit.h"

#include <math.h>
#include <string.h>

static sc_arena a;
static sc_err e;
static sc_job job;
static sc_inputs in;

static int set_up(void **state)
{
    (void)state;
    sc_arena_init(&a, 0);
    sc_err_init(&e);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    sc_arena_free(&a);
    return 0;
}

enum { UNITS = 7 };

static void open_job(void)
{
    sc_job_init(&job);
    job.model = "gpt3-13b";
    job.cluster = "dgx-a100:7";
    job.gbs = 240;
    job.cp = job.vpp = 1;
    job.price = 2.0 / 3600;
    job.tokens = 1000000000000;
    job.engine = SC_ENGINE_FAST;
    assert_int_equal(sc_predict_load(&job, &a, &in, &e), SC_OK);
}

static const sc_search_options usual = {
    .top = 5, .threads = 1, .keep_free = 0.08, .kinds = true};

static sc_status run_sizes(const int64_t *units, uint32_t n,
                           const sc_search_limits *l,
                           const sc_search_options *o, sc_search_sizes *out)
{
    const sc_search_question q = {.job = &job, .in = &in, .limits = l, .o = o};
    const char *text[UNITS + 1];
    assert_true(n <= SC_COUNT(text));
    for (uint32_t i = 0; i < n; i++)
        text[i] = sc_sprintf(&a, "%lld", (long long)units[i]);
    const sc_machine_axis nodes = {
        .kind = SC_MACHINE_UNITS, .name = "nodes", .n = n, .value = text};
    return sc_search_sizes_run(&q, &nodes, &a, out, &e);
}

static sc_search_sizes sizes_of(const int64_t *units, uint32_t n,
                                sc_search_limits l, sc_search_options o)
{
    sc_search_sizes s;
    sc_status r = run_sizes(units, n, &l, &o, &s);
    if (r != SC_OK) print_message("%s\n", e.d[0].msg);
    assert_int_equal(r, SC_OK);
    return s;
}

/* Every number of units, by points without bounds. */
static sc_search_sizes all_sizes(const int64_t *units, uint32_t n,
                                 sc_search_goal goal)
{
    sc_search_options o = usual;
    o.exhaustive = true;
    o.goal = goal;
    o.kinds = false;
    o.top = 4000;
    sc_search_sizes s = sizes_of(units, n, (sc_search_limits){0}, o);
    for (uint32_t i = 0; i < s.n; i++)
        assert_int_equal(s.size[i]->found.n_best, s.size[i]->found.evaluated);
    return s;
}

static const int64_t every[] = {1, 2, 3, 4, 5, 6, 7};

static double run_s(const sc_search_machine *s, const sc_search_row *row)
{
    double tokens = (double)s->job.gbs * (double)s->best->run.seq;
    return row->point.step_s * (double)job.tokens / tokens;
}

static double run_usd(const sc_search_machine *s, const sc_search_row *row)
{
    return run_s(s, row) * job.price * s->in.hw->n_devices;
}

static uint64_t fewest_of(const sc_search_sizes *all, sc_search_limits l)
{
    for (uint32_t i = 0; i < all->n; i++)
        for (uint32_t k = 0; k < all->size[i]->found.n_best; k++) {
            const sc_search_row *row = &all->size[i]->found.best[k];
            bool soon =
                !(l.until_s > 0) || run_s(all->size[i], row) <= l.until_s;
            bool cheap = !(l.usd > 0) || run_usd(all->size[i], row) <= l.usd;
            if (soon && cheap) return all->size[i]->units;
        }
    return 0;
}

static void fewest(void **state)
{
    (void)state;
    open_job();
    sc_search_sizes all = all_sizes(every, UNITS, SC_GOAL_STEP_TIME);
    uint32_t none = 0, found = 0;
    assert_true(all.n >= 5);
    for (uint32_t i = 0; i < all.n; i++)
        for (uint32_t k = i % 4; k < 4; k += 3) {
            const sc_search_machine *s = all.size[i];
            double t = run_s(s, s->found.best), usd = run_usd(s, s->found.best);
            const sc_search_limits l = {
                k < 3 ? t * (k == 1 ? 0.999 : 1.001) : 0,
                k >= 2 ? usd * (k == 2 ? 0.9999 : 1.0001) : 0};
            sc_search_sizes got = sizes_of(NULL, 0, l, usual);
            uint64_t want = fewest_of(&all, l);
            assert_int_equal(got.chosen ? got.chosen->units : 0, want);
            assert_true(got.proved);
            none += want == 0;
            found += want > 0;
            for (uint32_t m = 0; want && m < got.chosen->found.n_best; m++) {
                const sc_search_row *row = &got.chosen->found.best[m];
                assert_true(!(l.until_s > 0) ||
                            run_s(got.chosen, row) <= l.until_s * (1 + 1e-9));
                assert_true(!(l.usd > 0) ||
                            run_usd(got.chosen, row) <= l.usd * (1 + 1e-9));
            }
        }
    assert_true(none > 0 && found > 3);
}

/* Bounds change nothing, and a score is that of the row's prediction. */
static void goals(void **state)
{
    (void)state;
    open_job();
    sc_search_jobs jobs;
    job.cluster = "dgx-a100:2";
    assert_int_equal(sc_predict_load(&job, &a, &in, &e), SC_OK);
    assert_int_equal(sc_search_jobs_open(&job, &in, NULL, 0, &a, &jobs, &e),
                     SC_OK);
    for (int g = 0; g < (int)SC_N_GOALS; g++) {
        sc_search_options o = usual;
        sc_search_result all, few;
        o.goal = (sc_search_goal)g;
        assert_int_equal(sc_search_run(&jobs, &o, &a, &few, &e), SC_OK);
        o.exhaustive = true;
        o.threads = 2;
        assert_int_equal(sc_search_run(&jobs, &o, &a, &all, &e), SC_OK);
        assert_int_equal(all.n_best, few.n_best);
        assert_int_equal(all.n_front, few.n_front);
        for (uint32_t i = 0; i < all.n_best; i++) {
            sc_job own;
            sc_prediction p;
            const sc_search_row *row = &few.best[i];
            assert_memory_equal(row->digit, all.best[i].digit,
                                jobs.n * sizeof *row->digit);
            assert_true(row->score == all.best[i].score);
            assert_true(few.bound > 0 && few.bound <= row->score);
            sc_search_row_job(&jobs, row, &own);
            own.brief = true;
            assert_int_equal(
                sc_predict(&own, in.hw, in.model, in.sw, in.cost, &a, &p, &e),
                SC_OK);
            const double want[] = {
                p.step_time_s, p.whole_run.cost_usd, p.whole_run.energy_j,
                p.cost_usd_per_step / (p.tokens_per_s * p.step_time_s),
                p.whole_run.days};
            assert_true(fabs(row->score / want[g] - 1) < 1e-12);
        }
    }
}

static void front_is(const sc_search_sizes *all, uint32_t dims)
{
    sc_search_member *m;
    uint32_t n = 0;
    assert_int_equal(
        sc_search_front((const sc_search_machine *const *)all->size, all->n,
                        SC_GOAL_STEP_TIME, dims, &a, &m, &n, &e),
        SC_OK);
    assert_true(n > 0);
    for (uint32_t i = 0; i < all->n; i++)
        for (uint32_t k = 0; k < all->size[i]->found.n_best; k++) {
            const sc_search_machine *s = all->size[i];
            const sc_search_row *row = &s->found.best[k];
            double devices = s->in.hw->n_devices;
            const double at[SC_N_DIMS] = {row->point.step_s, row->point.peak,
                                          devices, devices * row->point.step_s,
                                          sc_predict_most_watts(&s->best->run)};
            bool covered = false;
            for (uint32_t j = 0; j < n; j++) {
                bool less = false, more = false;
                for (uint32_t d = 0; d < SC_N_DIMS; d++) {
                    if (!(dims >> d & 1)) continue;
                    less = less || at[d] < m[j].at[d];
                    more = more || at[d] > m[j].at[d];
                }
                assert_false(less && !more); /* a member is dominated */
                covered = covered || !less;
            }
            assert_true(covered);
        }
}

static void fronts(void **state)
{
    (void)state;
    open_job();
    sc_search_sizes all = all_sizes(every, UNITS, SC_GOAL_STEP_TIME);
    for (uint32_t dims = 1; dims < 1u << SC_DIM_POWER; dims++)
        front_is(&all, dims);
    front_is(&all, 1u << SC_DIM_TIME | 1u << SC_DIM_POWER);
}

/* Rows are those of the size alone; energy and money may choose other ones
 * within a deadline. */
static void answers(void **state)
{
    (void)state;
    open_job();
    const int64_t units = 3;
    sc_search_sizes all = all_sizes(&units, 1, SC_GOAL_ENERGY);
    const sc_search_machine *s = all.size[0];
    double soonest = INFINITY;
    for (uint32_t k = 0; k < s->found.n_best; k++)
        soonest = fmin(soonest, run_s(s, &s->found.best[k]));
    const sc_search_limits l = {soonest * 1.01, 0};
    sc_search_options o = usual;
    o.goal = SC_GOAL_ENERGY;
    sc_search_sizes got = sizes_of(&units, 1, l, o);
    assert_non_null(got.chosen);
    assert_false(got.proved);
    double least = INFINITY;
    for (uint32_t k = 0; k < s->found.n_best; k++)
        if (run_s(s, &s->found.best[k]) <= l.until_s)
            least = fmin(least, s->found.best[k].score);
    assert_true(got.chosen->found.best[0].score == least);
}

static bool later(void *with)
{
    return ++*(uint32_t *)with > 40;
}

/* A search that is stopped has rows if its first part found some, and claims no
 * proof. */
static void stopped(void **state)
{
    (void)state;
    uint32_t asked = 0;
    open_job();
    sc_search_options o = usual;
    o.stop = later;
    o.with = &asked;
    o.exhaustive = true;
    o.goal = SC_GOAL_COST;
    const int64_t units = 6;
    sc_search_sizes all = all_sizes(&units, 1, SC_GOAL_STEP_TIME);
    const sc_search_limits l = {2 * run_s(all.size[0], all.size[0]->found.best),
                                0};
    sc_search_sizes got = sizes_of(&units, 1, l, o);
    assert_true(got.size[0]->found.left > 0);
    assert_false(got.proved);
    assert_non_null(got.chosen);
    assert_int_equal(got.goal, SC_GOAL_DAYS);
    for (uint32_t i = 0; i < got.chosen->found.n_best; i++)
        assert_true(run_s(got.chosen, &got.chosen->found.best[i]) <=
                    l.until_s * (1 + 1e-9));
}

static void refused(void **state)
{
    (void)state;
    static const int64_t units[] = {5, 7};
    const sc_search_limits l = {86400, 1};
    sc_search_sizes s;
    open_job();
    job.tokens = 0;
    assert_int_equal(run_sizes(NULL, 0, &l, &usual, &s), SC_EINPUT);
    job.tokens = 1;
    job.price = SC_INFER;
    assert_int_equal(run_sizes(NULL, 0, &l, &usual, &s), SC_EINPUT);
    job.tp = job.pp = 1;
    job.gbs = 3;
    sc_err_init(&e);
    assert_int_equal(run_sizes(units, 2, &(sc_search_limits){0}, &usual, &s),
                     SC_EINPUT);
    assert_non_null(strstr(e.d[0].msg, "divided"));
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(fewest),  TEST(goals),
                                       TEST(fronts),  TEST(answers),
                                       TEST(stopped), TEST(refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
