/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Machines within a budget of power and money, the front over machines, and limits
 * of money for machines that are bought: all are those of an enumeration of every
 * machine and every point.
 */
#include "fixture.h"
#include "search/search_budget.h"
#include "search/search_sizes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static sc_job job;
static sc_inputs in;

static void open_job(const char *model_name, const char *cluster, int64_t batch)
{
    sc_job_init(&job);
    job.model = model_name;
    job.cluster = cluster;
    job.gbs = batch;
    job.cp = job.vpp = 1;
    if (!getenv("STEPCAST_LONG")) job.tp = 2; /* a fifth of the points */
    job.tokens = 1000000000000;
    job.purchase = "list-2024";
    job.engine = SC_ENGINE_FAST;
    if (sc_predict_load(&job, &arena, &in, &err) != SC_OK)
        fail_msg("%s", err.d[0].msg);
}

static uint32_t axes_of(const char *text, sc_machine_axis *axis)
{
    uint32_t n = 0;
    char *all = sc_strdup(&arena, text), *next = NULL;
    for (char *w = strtok_r(all, " ", &next); w;
         w = strtok_r(NULL, " ", &next)) {
        char *eq = strchr(w, '=');
        *eq = '\0';
        const sc_node value = sc_search_word(eq + 1, sc_pos_file("--machine"));
        if (sc_machine_axis_read(w, &value, &arena, &axis[n++], &err) != SC_OK)
            fail_msg("%s", err.d[0].msg);
    }
    return n;
}

static sc_search_options options_of(sc_search_goal goal, bool all)
{
    return (sc_search_options){.top = all ? 10000 : 3,
                               .threads = 1,
                               .keep_free = 0.08,
                               .goal = goal,
                               .exhaustive = all};
}

static sc_search_machines found(const sc_machine_axis *axis, uint32_t n,
                                sc_search_goal goal, sc_search_limits l,
                                const sc_search_budget *budget, uint32_t dims,
                                bool all)
{
    sc_search_machines out;
    const sc_search_options o = options_of(goal, all);
    const sc_search_question q = {.job = &job,
                                  .in = &in,
                                  .limits = &l,
                                  .budget = budget,
                                  .dims = dims,
                                  .o = &o};
    if (sc_search_machines_run(&q, axis, n, &arena, &out, &err) != SC_OK)
        fail_msg("%s: %s", err.d[0].msg, err.d[0].hint);
    return out;
}

static sc_machine_bill bill_of(const sc_job *j)
{
    const sc_hw *hw;
    sc_machine_bill bill;
    assert_int_equal(sc_job_machine(j, &arena, &hw, &err), SC_OK);
    assert_int_equal(sc_machine_bill_of(j, hw, in.cost, &arena, &bill, &err),
                     SC_OK);
    return bill;
}

static bool within(const sc_machine_bill *bill, const sc_search_budget *b)
{
    return !(b->watts > 0 && !(bill->watts <= b->watts)) &&
           !(b->usd > 0 && !(bill->usd <= b->usd));
}

/* Machines of all digits that are beyond a budget. */
static double beyond(const sc_machine_axis *axis, uint32_t n, uint32_t *digit,
                     uint32_t i, const sc_search_budget *b)
{
    double sum = 0;
    if (i < n) {
        for (digit[i] = 0; digit[i] < axis[i].n; digit[i]++)
            sum += beyond(axis, n, digit, i + 1, b);
        return sum;
    }
    sc_job j = job;
    assert_int_equal(sc_machine_set(axis, n, digit, &arena, &j, &err), SC_OK);
    sc_machine_bill bill = bill_of(&j);
    return !within(&bill, b);
}

/* Without a budget every machine has a row, so that the rows within it are known. */
static void compare_budget(const char *machine, sc_search_goal goal,
                           sc_search_budget b)
{
    sc_machine_axis axis[SC_MACHINE_AXES];
    uint32_t digit[SC_MACHINE_AXES], n = axes_of(machine, axis), k = 0;
    const sc_search_limits none = {0};
    const sc_search_machines all = found(axis, n, goal, none, NULL, 0, true),
                             got = found(axis, n, goal, none, &b, 0, false);
    double out = got.beyond_watts + got.beyond_usd + got.not_known;
    assert_true(out == beyond(axis, n, digit, 0, &b));
    assert_true(out > 0 && out < got.machines && got.left == 0);
    for (uint32_t i = 0; i < all.n_best && k < got.n_best; i++) {
        sc_machine_bill bill = bill_of(&all.best[i].job);
        if (!within(&bill, &b)) continue;
        if (got.best[k].score != all.best[i].score)
            fail_msg("%s: %u is %.17g, not %.17g", machine, k,
                     got.best[k].score, all.best[i].score);
        assert_true(got.best[k].bill.usd <= b.usd || b.usd <= 0);
        k++;
    }
    assert_int_equal(k, got.n_best);
}

static void budgets(void **state)
{
    (void)state;
    open_job("gpt3-6.7b", "dgx-h100:2", 64);
    compare_budget("nodes=1,2,4 nic_bw=100Gb/s,400Gb/s oversubscription=1,2,4 "
                   "leaf=1",
                   SC_GOAL_STEP_TIME, (sc_search_budget){.usd = 700000});
    compare_budget("node=dgx-h100,dgx-a100-40g,dgx-b200 nodes=1,2,4",
                   SC_GOAL_COST, (sc_search_budget){.watts = 30000});
    compare_budget("nodes=1,2 nic_bw=100Gb/s,400Gb/s oversubscription=1,4",
                   SC_GOAL_COST,
                   (sc_search_budget){.watts = 25000, .usd = 645000});
}

/* ---- the front ------------------------------------------------------------ */

static double at(const sc_machine_row *r, uint32_t d)
{
    const sc_prediction *p = r->best;
    switch (d) {
    case SC_DIM_TIME: return p->whole_run.days;
    case SC_DIM_DEVICES: return p->run.hw->n_devices;
    case SC_DIM_MONEY: return p->whole_run.cost_usd;
    case SC_DIM_POWER: return r->bill.watts;
    default: return r->bill.usd;
    }
}

static bool covers(const sc_machine_row *x, const sc_machine_row *y,
                   uint32_t dims)
{
    for (uint32_t d = 0; d < SC_N_DIMS; d++)
        if (dims >> d & 1 && at(x, d) > at(y, d)) return false;
    return true;
}

/* Every machine with its fastest row, as an exhaustive search has them: each is
 * covered by one on the front, and those on it by none but equal ones. */
static void compare_front(const char *machine, sc_search_goal goal,
                          uint32_t dims)
{
    sc_machine_axis axis[SC_MACHINE_AXES];
    uint32_t n = axes_of(machine, axis);
    const sc_search_limits none = {0};
    const sc_search_machines all =
        found(axis, n, SC_GOAL_STEP_TIME, none, NULL, 0, true);
    const sc_search_machines got =
        found(axis, n, goal, none, NULL, dims, false);
    assert_true(got.left == 0 && got.n_front > 0);
    for (uint32_t i = 0; i < all.n_best; i++) {
        bool covered = false;
        for (uint32_t k = 0; k < got.n_front; k++) {
            const sc_machine_row *r = got.front[k].machine;
            covered = covered || covers(r, &all.best[i], dims);
            if (covers(&all.best[i], r, dims) && !covers(r, &all.best[i], dims))
                fail_msg("%s: %s is better than %s", machine,
                         all.best[i].job.cluster, r->job.cluster);
        }
        if (!covered)
            fail_msg("%s: %s is not on the front", machine,
                     all.best[i].job.cluster);
    }
    assert_true(got.n_front < all.n_best);
}

static void fronts(void **state)
{
    (void)state;
    const uint32_t time = 1u << SC_DIM_TIME, power = 1u << SC_DIM_POWER,
                   money = 1u << SC_DIM_MONEY, price = 1u << SC_DIM_CAPITAL,
                   devices = 1u << SC_DIM_DEVICES;
    const char *fabric = "nodes=1,2,4 nic_bw=100Gb/s,400Gb/s "
                         "oversubscription=1,4 leaf=1";
    open_job("gpt3-6.7b", "dgx-h100:2", 64);
    compare_front(fabric, SC_GOAL_STEP_TIME, time | power | price);
    compare_front(fabric, SC_GOAL_COST, time | money);
    compare_front(fabric, SC_GOAL_COST, time | price);
    compare_front("node=dgx-h100,dgx-a100-40g,dgx-b200 nodes=1,2",
                  SC_GOAL_ENERGY, time | power | price);
    compare_front("node=dgx-h100,dgx-a100-40g nodes=1..4", SC_GOAL_DAYS,
                  time | devices);
}

/* ---- limits of money ------------------------------------------------------ */

enum { ROWS = 4000 };

typedef struct priced {
    uint32_t units;
    double score, usd;
} priced;

/* All rows of all numbers of nodes with what the run costs. */
static uint32_t all_rows(const sc_machine_axis *nodes, priced *out)
{
    uint32_t n = 0;
    sc_search_sizes all;
    const sc_search_limits none = {0};
    const sc_search_options o = options_of(SC_GOAL_STEP_TIME, true);
    const sc_search_question q = {
        .job = &job, .in = &in, .limits = &none, .o = &o};
    assert_int_equal(sc_search_sizes_run(&q, nodes, &arena, &all, &err), SC_OK);
    for (uint32_t i = 0; i < all.n; i++)
        for (uint32_t k = 0; k < all.size[i]->found.n_best; k++) {
            sc_search_machine one = *all.size[i];
            sc_arena_mark mark = sc_arena_save(&arena);
            one.found.best = &all.size[i]->found.best[k];
            assert_int_equal(sc_search_machine_best(&q, &one, &arena, &err),
                             SC_OK);
            assert_true(n < ROWS);
            out[n++] = (priced){(uint32_t)one.units, one.found.best->score,
                                one.best->whole_run.cost_usd};
            sc_arena_restore(&arena, mark);
        }
    return n;
}

/* The least score and the fewest units of rows that cost at most so much. */
static priced best_below(const priced *row, uint32_t n, double usd)
{
    priced out = {.score = INFINITY};
    for (uint32_t i = 0; i < n; i++) {
        if (row[i].usd > usd) continue;
        out.score = fmin(out.score, row[i].score);
        if (out.units == 0 || row[i].units < out.units)
            out.units = row[i].units;
    }
    return out;
}

/* Steps that are cheaper than shorter ones decide, too. */
static void bought(void **state)
{
    (void)state;
    static priced row[ROWS];
    static const double over[] = {0.99,  1.0001, 1.002, 1.005, 1.01,
                                  1.015, 1.02,   1.03,  1.05,  1.1};
    sc_machine_axis nodes;
    double least = INFINITY;
    open_job("gpt3-6.7b", "dgx-h100:4", 32);
    job.tp = 2;
    job.pp = 1;
    assert_int_equal(axes_of("nodes=1,2,4", &nodes), 1);
    uint32_t n = all_rows(&nodes, row);
    for (uint32_t i = 0; i < n; i++) least = fmin(least, row[i].usd);
    for (size_t i = 0; i < SC_COUNT(over); i++) {
        sc_arena_mark mark = sc_arena_save(&arena);
        const sc_search_limits l = {.usd = least * over[i]};
        const sc_search_options o = options_of(SC_GOAL_STEP_TIME, false);
        const sc_search_question q = {
            .job = &job, .in = &in, .limits = &l, .o = &o};
        const priced want = best_below(row, n, l.usd);
        const sc_search_machines m =
            found(&nodes, 1, SC_GOAL_STEP_TIME, l, NULL, 0, false);
        assert_true(m.n_best ? m.best[0].score == want.score
                             : isinf(want.score));
        assert_true((m.n_best > 0) == (over[i] > 1));
        sc_search_sizes s;
        assert_int_equal(sc_search_sizes_run(&q, &nodes, &arena, &s, &err),
                         SC_OK);
        assert_int_equal(s.chosen ? s.chosen->units : 0, want.units);
        sc_arena_restore(&arena, mark);
    }
}

/* ---- proposals ------------------------------------------------------------ */

/* The largest numbers are within the budget, one more is not, and the job can be
 * divided over none between the number that is said and them. */
static void units(void **state)
{
    (void)state;
    sc_machine_axis axis[2], nodes;
    const sc_search_largest *l;
    uint32_t n_largest;
    const sc_search_budget b = {.watts = 300000, .usd = 9000000};
    const sc_search_options o = options_of(SC_GOAL_STEP_TIME, false);
    const sc_search_limits none = {0};
    open_job("llama3-8b", "dgx-h100:2", 96);
    const sc_search_question q = {
        .job = &job, .in = &in, .limits = &none, .budget = &b, .o = &o};
    uint32_t n = axes_of("node=dgx-h100,dgx-b200", axis);
    assert_int_equal(
        sc_search_units(&q, axis, n, &arena, &nodes, &l, &n_largest, &err),
        SC_OK);
    assert_int_equal(n_largest, 2);
    for (uint32_t i = 0; i < n_largest; i++) {
        bool listed = false;
        sc_job j = job;
        j.cluster = l[i].spec;
        sc_machine_bill bill = bill_of(&j);
        assert_true(within(&bill, &b));
        j.cluster = sc_cluster_resized(l[i].spec, l[i].units + 1, &arena);
        bill = bill_of(&j);
        assert_false(within(&bill, &b));
        for (uint64_t u = l[i].divides; u <= l[i].units; u++) {
            sc_search_machine m;
            bool legal;
            sc_err why;
            j = job;
            j.cluster = sc_cluster_resized(l[i].spec, u, &arena);
            assert_int_equal(
                sc_search_machine_open(&q, &j, &arena, &m, &legal, &why, &err),
                SC_OK);
            assert_true(legal == (u == l[i].divides));
        }
        for (uint32_t k = 0; k < nodes.n; k++)
            listed =
                listed || strtoull(nodes.value[k], NULL, 10) == l[i].divides;
        assert_true(listed);
    }
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(budgets), TEST(fronts),
                                       TEST(bought), TEST(units)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
