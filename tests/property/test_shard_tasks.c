/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The choice of a sharder by estimated steps against the best of all sharders
 * under simulation, on random tasks as Lin et al. draw them (arXiv 2404.12674):
 * about 13 tables per device +-30 %, half of the tasks with tables of 20
 * look-ups per sample or more, tables of at most 80 % of one device's memory,
 * batches of 512 to 4096 samples.  Reuse follows the histograms of
 * dlrm_datasets, with more or less of it in each table.
 *
 * With an argument, that many tasks are run, and each is printed with the
 * processor time of its choice: property_shard_tasks 200
 */
#include "fixture.h"
#include "reuse_stats.h"
#include "shard/shard.h"

#include <math.h>
#include <time.h>

#define TASKS       24 /* of a plain run */
#define PER_DEVICE  13
#define MOST_TABLES 400

static reuse_file files[2][REUSE_FILES];
static uint32_t n_files[2];
static uint32_t n_tasks = TASKS;
static bool verbose;

static const char *const clusters[] = {
    "v100-sxm2-32g:4", "dgx-a100-40g:1", "dgx-h100:1",
    "a100-sxm-80g:4",  "dgx-h100:2",
};

static double log_uniform(uint64_t *seed, double lo, double hi)
{
    return lo * pow(hi / lo, sc_random_unit(seed));
}

static sc_shard_table draw_table(uint64_t *seed, int year, bool heavy)
{
    static const double widths[] = {16, 32, 64, 96, 128, 192, 256};
    const reuse_file *f = &files[year][sc_random_below(seed, n_files[year])];
    sc_shard_table t = {.name = "t", .rows = log_uniform(seed, 1e3, 1e7)};
    t.rows = floor(t.rows);
    t.width = widths[sc_random_below(seed, SC_COUNT(widths))];
    t.pooling = heavy ? log_uniform(seed, 20, 80) : log_uniform(seed, 1, 20);
    t.access =
        (sc_access){.kind = SC_ACCESS_REUSE, .lookups = f->batch * t.pooling};
    double tilt = sc_random_unit(seed) * 0.4 - 0.2, sum = 0;
    for (int i = 0; i < SC_REUSE_BINS; i++)
        sum += t.access.fraction[i] = f->fraction[i] * exp(tilt * i);
    for (int i = 0; i < SC_REUSE_BINS; i++) t.access.fraction[i] /= sum;
    return t;
}

/* Redraws until the tables are small enough. */
static uint32_t draw_task(uint64_t *seed, uint32_t i, const sc_hw *hw,
                          sc_shard_table *out)
{
    double room = 0.8 * (double)hw->device->mem_bytes, sum;
    uint32_t n;
    do {
        double mean = PER_DEVICE * (double)hw->n_devices;
        n = (uint32_t)(mean * (0.7 + 0.6 * sc_random_unit(seed)));
        sum = 0;
        for (uint32_t t = 0; t < n; t++) {
            out[t] = draw_table(seed, (int)(i % 2), i / 2 % 2 == 1);
            sum += 4 * out[t].rows * out[t].width;
        }
    } while (sum > room);
    return n;
}

typedef struct tally {
    uint32_t n, equal;
    double regret, worst;
} tally;

/* The sharder below `end` with the least estimated, or simulated, step. */
static int least(const sc_shard_plan *plan, int end, bool simulated)
{
    int best = -1;
    for (int i = 0; i < end; i++) {
        double s = simulated ? plan[i].simulated : plan[i].step.step;
        double b = best < 0    ? INFINITY
                   : simulated ? plan[best].simulated
                               : plan[best].step.step;
        if (plan[i].fits && s < b) best = i;
    }
    return best;
}

static void count(tally *t, const sc_shard_plan *plan, int end)
{
    int chosen = least(plan, end, false), best = least(plan, end, true);
    assert_true(chosen >= 0 && best >= 0);
    double regret = plan[chosen].simulated / plan[best].simulated - 1;
    t->n++;
    t->equal += regret <= 1e-9;
    t->regret += regret;
    t->worst = fmax(t->worst, regret);
}

/* What holds for each plan, whoever made it. */
static void check_plan(const sc_shard_job *job, const sc_shard_plan *p)
{
    double tables = 0, placed = 0, error = p->step.step / p->simulated - 1;
    for (uint32_t t = 0; t < job->n_tables; t++) {
        const sc_shard_place *x = &p->place[t];
        double size = 4 * job->table[t].rows * job->table[t].width;
        tables += x->split == SC_SHARD_DATA ? size * job->hw->n_devices : size;
        for (uint32_t i = 0; i < x->parts; i++) {
            assert_true(x->device[i] < job->hw->n_devices);
            for (uint32_t k = 0; k < i; k++)
                assert_true(x->device[i] != x->device[k]);
        }
    }
    for (uint32_t d = 0; d < job->hw->n_devices; d++)
        placed += p->load[d].tables;
    assert_true(fabs(placed / tables - 1) < 1e-9);
    if (fabs(error) >= 0.15)
        fail_msg("estimated %.1f us, simulated %.1f us", 1e6 * p->step.step,
                 1e6 * p->simulated);
}

static void run_task(uint32_t i, tally *all, tally *simple, double *slowest)
{
    static sc_shard_table table[MOST_TABLES];
    uint64_t seed = 1000 + i;
    sc_cost cost;
    sc_shard_prices *prices;
    sc_shard_plan plan[SC_N_SHARDERS];
    const sc_hw *hw = machine(clusters[i % SC_COUNT(clusters)]);
    assert_int_equal(sc_cost_builtin(&arena, &cost, &err), SC_OK);
    uint32_t n = draw_task(&seed, i, hw, table);
    double batch = 512 * (double)(1u << sc_random_below(&seed, 4));
    sc_shard_job job = {hw, &cost, table, n, batch, 0.8, "sgd", i};
    clock_t begun = clock();
    assert_int_equal(sc_shard_prices_new(&job, &arena, &prices, &err), SC_OK);
    for (int k = 0; k < SC_N_SHARDERS; k++)
        assert_int_equal(
            sc_shard_plan_of(prices, (sc_sharder)k, &arena, &plan[k], &err),
            SC_OK);
    double ms = 1e3 * (double)(clock() - begun) / CLOCKS_PER_SEC;
    *slowest = fmax(*slowest, ms);
    for (int k = 0; k < SC_N_SHARDERS; k++) {
        assert_int_equal(sc_shard_simulate(prices, &arena, &plan[k], &err),
                         SC_OK);
        check_plan(&job, &plan[k]);
    }
    count(all, plan, SC_N_SHARDERS);
    count(simple, plan, SC_SHARD_PREDICTED);
    if (!verbose) return;
    int chosen = least(plan, SC_SHARD_PREDICTED, false);
    int best = least(plan, SC_SHARD_PREDICTED, true);
    print_message("%3u %-16s %3u tables, batch %4.0f: %-18s %8.1f us, best "
                  "%-18s %8.1f us; sharder best %8.1f us; %5.1f ms\n",
                  i, hw->name, n, batch, sc_sharder_names[chosen],
                  1e6 * plan[chosen].simulated, sc_sharder_names[best],
                  1e6 * plan[best].simulated,
                  1e6 * plan[SC_SHARD_BEST].simulated, ms);
}

static void say(const char *who, const tally *t)
{
    print_message("%u tasks, %s: the choice is the best in %.1f %%, mean "
                  "regret %.2f %%, largest %.2f %%\n",
                  t->n, who, 100.0 * t->equal / t->n, 100 * t->regret / t->n,
                  100 * t->worst);
}

static void tasks(void **state)
{
    (void)state;
    tally all = {0, 0, 0, 0}, simple = {0, 0, 0, 0};
    double slowest = 0;
    for (uint32_t i = 0; i < n_tasks; i++) {
        sc_arena_mark mark = sc_arena_save(&arena);
        run_task(i, &all, &simple, &slowest);
        sc_arena_restore(&arena, mark);
    }
    say("all sharders", &all);
    say("those of Lin et al.", &simple);
    if (verbose) print_message("the slowest choice took %.1f ms\n", slowest);
    assert_true(all.equal >= 0.85 * all.n && simple.equal >= 0.85 * simple.n);
    assert_true(all.regret <= 0.02 * all.n && simple.regret <= 0.02 * simple.n);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(tasks, setup, teardown),
    };
    const char *shared = getenv("STEPCAST_SHARED");
    if (shared && strlen(shared) < 300)
        for (int y = 0; y < 2; y++)
            n_files[y] = reuse_read(shared, 2021 + y, files[y]);
    if (!n_files[0] || !n_files[1]) {
        printf("skipped: STEPCAST_SHARED has no data/dlrm_datasets\n");
        return 77;
    }
    if (argc > 1) {
        n_tasks = (uint32_t)strtoul(argv[1], NULL, 10);
        verbose = true;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
