/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Boxes of machines: the best of a space, and the best with each value of its
 * axes, are those of a search of every machine and every point; and more of a
 * resource never makes the best step longer.
 */
#include "fixture.h"
#include "plan/plan_strategy.h"
#include "property.h"
#include "search/search_sizes.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static sc_job job;
static sc_inputs in;

static void open_job(const char *model, const char *cluster, int64_t batch)
{
    sc_job_init(&job);
    job.model = model;
    job.cluster = cluster;
    job.gbs = batch;
    job.cp = job.vpp = 1;
    if (!getenv("STEPCAST_LONG")) job.tp = 2; /* a fifth of the points */
    job.price = 2.0 / 3600;
    job.tokens = 1000000000000;
    job.engine = SC_ENGINE_FAST;
    if (sc_predict_load(&job, &arena, &in, &err) != SC_OK)
        fail_msg("%s", err.d[0].msg);
}

/* "nodes=1,2 nic_bw=100Gb/s" */
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

static sc_search_machines found(const sc_machine_axis *axis, uint32_t n,
                                sc_search_goal goal, sc_search_limits l,
                                bool exhaustive)
{
    sc_search_machines out;
    const sc_search_options o = {.top = 4,
                                 .threads = 1,
                                 .keep_free = 0.08,
                                 .goal = goal,
                                 .exhaustive = exhaustive};
    const sc_search_question q = {
        .job = &job, .in = &in, .limits = &l, .o = &o};
    if (sc_search_machines_run(&q, axis, n, &arena, &out, &err) != SC_OK)
        fail_msg("%s", err.d[0].msg);
    return out;
}

static bool same(double x, double y)
{
    return x == y || (isinf(x) && isinf(y));
}

static void compare(const char *machine, sc_search_goal goal,
                    sc_search_limits l)
{
    sc_machine_axis axis[SC_MACHINE_AXES];
    uint32_t n = axes_of(machine, axis);
    const sc_search_machines all = found(axis, n, goal, l, true),
                             got = found(axis, n, goal, l, false);
    assert_true(all.searched == (uint64_t)all.machines - all.illegal);
    assert_true(got.points == all.points && got.illegal == all.illegal);
    assert_true(got.left == 0 && all.left == 0);
    assert_int_equal(got.n_best, all.n_best);
    for (uint32_t i = 0; i < got.n_best; i++)
        if (!same(got.best[i].score, all.best[i].score))
            fail_msg("%s: %u is %.17g, not %.17g", machine, i,
                     got.best[i].score, all.best[i].score);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < axis[i].n; k++)
            if (!same(got.per_axis[i][k], all.per_axis[i][k]))
                fail_msg("%s=%s: %.17g, not %.17g", axis[i].name,
                         axis[i].value[k], got.per_axis[i][k],
                         all.per_axis[i][k]);
}

static void brute(void **state)
{
    (void)state;
    const sc_search_limits none = {0};
    open_job("gpt3-6.7b", "dgx-a100:2", 64);
    compare("nodes=1,2,3 nic_bw=50Gb/s,100Gb/s,200Gb/s mem_bw=1,2 "
            "device=a100-sxm-40g,a100-sxm-80g",
            SC_GOAL_STEP_TIME, none);
    compare("nodes=1,2,4 memory=0.5,1 oversubscription=1,4 rails=1,8",
            SC_GOAL_COST, none);
    compare("nodes=2,4 nic_bw=50Gb/s,200Gb/s peak=1,1.5", SC_GOAL_ENERGY, none);
    compare("nodes=1..4 bandwidth=100GB/s,300GB/s nic_latency=1us,9us",
            SC_GOAL_DAYS, (sc_search_limits){.until_s = 70 * 86400.0});
    compare("nodes=1..4 bandwidth=100GB/s,300GB/s link_bw=1,2",
            SC_GOAL_STEP_TIME, (sc_search_limits){.usd = 60000});
    job.price = SC_INFER;
    compare("nodes=1,2,4 price=1USD/h,3USD/h nic_bw=50Gb/s,200Gb/s",
            SC_GOAL_COST, none);
    job.optimizer_tier = SC_TIER_EXPANDED;
    job.offload = 0.5;
    job.offload_to = SC_OFFLOAD_EXPANDED;
    compare("nodes=1,2 expanded_memory=30GB,200GB expanded_bw=20GB/s,200GB/s "
            "expanded_latency=1us,100us",
            SC_GOAL_STEP_TIME, none);
    compare("expanded_memory=200GB expanded_bw=20GB/s,200GB/s "
            "expanded_pool=1,16 expanded_pool_bw=100GB/s,1TB/s",
            SC_GOAL_STEP_TIME, none);
    open_job("gpt3-6.7b", "dgx-a100:1", 64);
    job.cp = job.vpp = 1; /* what expanded memory keeps is open instead */
    job.zero = 3;
    compare("expanded_memory=0GB,200GB expanded_bw=20GB/s,200GB/s memory=0.5,1",
            SC_GOAL_STEP_TIME, none);
    open_job("mixtral-8x7b", "dgx-h100:4", 64);
    compare("node=dgx-h100,dgx-a100 devices_per_node=8,16 "
            "nic_bw=100Gb/s,400Gb/s",
            SC_GOAL_STEP_TIME, none);
}

/* Numbers of nodes are searched in two ways, with and without other axes: both find
 * the same, and each row is what `predict` says of it. */
static void nodes(void **state)
{
    (void)state;
    static const sc_search_goal goals[] = {SC_GOAL_STEP_TIME, SC_GOAL_COST,
                                           SC_GOAL_ENERGY};
    const sc_search_limits none = {0};
    sc_machine_axis axis[SC_MACHINE_AXES];
    open_job("gpt3-6.7b", "dgx-a100:2", 64);
    uint32_t n = axes_of("nodes=1,2,4", axis);
    for (size_t i = 0; i < SC_COUNT(goals); i++) {
        const sc_search_options o = {
            .top = 4, .threads = 1, .keep_free = 0.08, .goal = goals[i]};
        const sc_search_question q = {
            .job = &job, .in = &in, .limits = &none, .o = &o};
        sc_search_sizes sizes;
        const sc_search_machines m = found(axis, n, goals[i], none, false);
        assert_int_equal(sc_search_sizes_run(&q, axis, &arena, &sizes, &err),
                         SC_OK);
        assert_int_equal(sizes.n, 3);
        assert_true(sizes.chosen->found.best[0].score == m.best[0].score);
        assert_string_equal(sizes.chosen->job.cluster, m.best[0].job.cluster);
        assert_int_equal(m.n_best, 3);
        for (uint32_t k = 0; k < 3; k++) {
            const sc_machine_row *r = &m.best[k];
            const sc_search_machine *s = sizes.size[r->digit[0]];
            assert_true(s->found.best[0].score == r->score);
            assert_true(r->best->step_time_s == r->step_s);
        }
    }
}

/* Machines of different kinds: each row is the best of a search on that machine
 * alone, with its own program and price. */
static void clusters(void **state)
{
    (void)state;
    static const char *const specs[] = {
        "dgx-a100-80g:2; price=1USD/h", "dgx-b200:2; price=4USD/h",
        "torus4x4@300GB/s; device=h100-sxm; price=2USD/h", "dgx-h100:2",
        "tpu-v5p-pod:16; price=1.5USD/h"};
    const sc_machine_axis axis = {.kind = SC_MACHINE_CLUSTER,
                                  .name = "cluster",
                                  .n = SC_COUNT(specs),
                                  .value = specs};
    open_job("llama3-8b", specs[0], 64);
    job.price = SC_INFER;
    const sc_search_machines m =
        found(&axis, 1, SC_GOAL_COST, (sc_search_limits){0}, false);
    assert_true(m.illegal == 1 && strstr(m.why, "no price"));
    assert_int_equal(m.n_best, 4);
    for (uint32_t i = 0; i < m.n_best; i++) {
        const sc_machine_row *r = &m.best[i];
        const sc_search_options o = {
            .top = 1, .threads = 1, .keep_free = 0.08, .goal = SC_GOAL_COST};
        sc_search_jobs jobs;
        sc_search_result alone;
        assert_string_equal(r->job.cluster, specs[r->digit[0]]);
        job.cluster = r->job.cluster;
        assert_int_equal(sc_predict_load(&job, &arena, &in, &err), SC_OK);
        assert_string_equal(r->best->run.sw->name, in.sw->name);
        assert_int_equal(
            sc_search_jobs_open(&job, &in, NULL, 0, &arena, &jobs, &err),
            SC_OK);
        assert_int_equal(sc_search_run(&jobs, &o, &arena, &alone, &err), SC_OK);
        assert_true(alone.n_best == 1 && alone.best[0].score == r->score);
        assert_true(r->best->step_time_s == r->step_s);
    }
}

/* Scores that are not in proportion to the step: a machine that is bought, and
 * runs with failures. */
static void predicted(void **state)
{
    (void)state;
    const sc_search_limits none = {0};
    open_job("llama3-8b", "dgx-h100:2", 64);
    job.tp = 2;
    job.price = SC_INFER;
    job.purchase = "list-2024";
    compare("nodes=1,2,4 nic_bw=100Gb/s,400Gb/s nic_latency=1us,9us",
            SC_GOAL_COST, none);
    compare("nodes=1,2 oversubscription=1,4 leaf=1 nic_bw=100Gb/s,800Gb/s",
            SC_GOAL_TOKENS_PER_USD, none);
    job.failure_table = "llama3";
    job.pp = 1;
    compare("nodes=1,2,4 nic_bw=50Gb/s,400Gb/s", SC_GOAL_DAYS,
            (sc_search_limits){.until_s = 1000 * 86400.0});
}

/* The best step of a machine. */
static double best_of(const char *machine)
{
    sc_machine_axis axis[SC_MACHINE_AXES];
    uint32_t n = axes_of(machine, axis);
    const sc_search_machines m =
        found(axis, n, SC_GOAL_STEP_TIME, (sc_search_limits){0}, false);
    return m.n_best ? m.best[0].step_s : INFINITY;
}

typedef struct resources {
    uint32_t nodes;
    double nic, fabric, over, nic_us, fabric_us, factor[5];
    double expanded, expanded_bw, pool_bw; /* GB, GB/s */
    uint32_t pool;
} resources;

static double step_of(const resources *m)
{
    char text[500];
    snprintf(text, sizeof text,
             "nodes=%u nic_bw=%.0fGB/s bandwidth=%.0fGB/s oversubscription=%g "
             "nic_latency=%gus fabric_latency=%gus peak=%g memory=%g mem_bw=%g "
             "link_bw=%g host_bw=%g expanded_memory=%.0fGB "
             "expanded_bw=%.0fGB/s expanded_pool=%u expanded_pool_bw=%.0fGB/s",
             m->nodes, m->nic, m->fabric, m->over, m->nic_us, m->fabric_us,
             m->factor[0], m->factor[1], m->factor[2], m->factor[3],
             m->factor[4], m->expanded, m->expanded_bw, m->pool, m->pool_bw);
    return best_of(text);
}

/* Changes one resource of a machine for the better. */
static void improve(resources *m, prop *p)
{
    double by = 1 + 3 * prop_unit(p);
    double *more[] = {&m->nic,       &m->fabric,    &m->factor[0],
                      &m->factor[1], &m->factor[2], &m->factor[3],
                      &m->factor[4], &m->expanded,  &m->expanded_bw,
                      &m->pool_bw};
    double *less[] = {&m->nic_us, &m->fabric_us, &m->over};
    uint64_t n = SC_COUNT(more), which = prop_below(p, n + SC_COUNT(less));
    if (which < n)
        *more[which] *= by;
    else
        *less[which - n] = fmax(*less[which - n] / by, which == n + 2 ? 1 : 0);
    m->expanded = ceil(m->expanded);
    m->expanded_bw = ceil(m->expanded_bw);
    m->pool_bw = ceil(m->pool_bw);
    m->nic = ceil(m->nic);
    m->fabric = ceil(m->fabric);
}

static const struct {
    const char *model, *cluster;
    int64_t batch;
} jobs[] = {{"gpt3-6.7b", "dgx-a100:2", 64},
            {"llama3-8b", "dgx-h100:2", 64},
            {"mixtral-8x7b", "dgx-h100:2", 64},
            {"gpt3-13b", "dgx-a100:2", 48}};

static bool never_longer(prop *p, void *ctx)
{
    (void)ctx;
    uint64_t which = prop_below(p, SC_COUNT(jobs));
    sc_arena_reset(&arena);
    open_job(jobs[which].model, jobs[which].cluster, jobs[which].batch);
    resources m = {.nodes = 1 + (uint32_t)prop_below(p, 4),
                   .nic = ceil(5 + 45 * prop_unit(p)),
                   .fabric = ceil(50 + 400 * prop_unit(p)),
                   .over = 1 + 3 * prop_unit(p),
                   .nic_us = 1 + 9 * prop_unit(p),
                   .fabric_us = 0.5 + prop_unit(p),
                   .expanded = ceil(10 + 200 * prop_unit(p)),
                   .expanded_bw = ceil(5 + 200 * prop_unit(p)),
                   .pool_bw = ceil(20 + 1000 * prop_unit(p)),
                   .pool = 1u << prop_below(p, 5)};
    if (prop_below(p, 2)) job.optimizer_tier = SC_TIER_EXPANDED;
    if (prop_below(p, 2)) {
        job.offload = prop_unit(p);
        job.offload_weights = prop_unit(p);
        job.offload_to = SC_OFFLOAD_EXPANDED;
    }
    for (uint32_t k = 0; k < SC_COUNT(m.factor); k++)
        m.factor[k] = 0.5 + 1.5 * prop_unit(p);
    resources better = m;
    improve(&better, p);
    double before = step_of(&m), after = step_of(&better);
    bool holds = after <= before * (1 + 1e-5);
    if (!holds && prop_reporting(p))
        print_message("%s: %.17g s, with more %.17g s\n", jobs[which].model,
                      before, after);
    return holds;
}

static void monotone(void **state)
{
    (void)state;
    unsigned cases = getenv("STEPCAST_LONG") ? 200 : 12;
    assert_true(
        prop_check("more never takes longer", cases, never_longer, NULL));
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(brute), TEST(nodes), TEST(clusters),
                                       TEST(predicted), TEST(monotone)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
