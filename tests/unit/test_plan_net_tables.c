/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of embeddings on single ranks: the longest of a turn counts, or where
 * they are balanced what every rank has of all. */
#include "fixture.h"
#include "kernels.h"
#include "model/zoo.h"
#include "plan/plan_net.h"
#include "plan/plan_software.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { RANKS = 8, MICRO = 64, TABLES = 26, WIDTH = 128 };

static sc_cost cost;
static uint32_t micro_batches = 1;

typedef struct placed {
    sc_strategy strategy;
    sc_net_run job;
    sc_net_plan plan;
} placed;

static void place_with(placed *p, const char *how, const char *optimizer)
{
    const char *rule = how ? sc_sprintf(&arena,
                                        "rules:\n  - {match: \"emb.*\", "
                                        "assign: %s, over: dp}\n",
                                        how)
                           : "";
    const char *text = sc_sprintf(&arena, "mesh: {dp: %d}\n%s", RANKS, rule);
    const sc_zoo_entry *z = sc_zoo_find("dlrm-dcnv2");
    *p = (placed){.job = {.hw = machine("dgx-h100:1"),
                          .strategy = &p->strategy,
                          .cost = &cost,
                          .micro = MICRO,
                          .ga = micro_batches,
                          .precision = SC_FP16,
                          .optimizer = optimizer}};
    sc_cost_centres(&cost);
    sc_strategy_read(text, strlen(text), "tables.yml", &arena, &p->strategy,
                     &err);
    no_error();
    sc_zoo_build(z, &arena, &p->job.net, &err);
    no_error();
    sc_software_find("mlperf-hugectr", NULL, sc_pos_none(), &arena, &p->job.sw,
                     &err);
    no_error();
    p->job.rules = sc_rules_find(NULL);
    (void)sc_net_plan_compile(&p->job, &arena, &p->plan, &err);
    no_error();
    (void)sc_net_plan_lower(&p->plan, &arena, &err);
    no_error();
}

static void place(placed *p, const char *how)
{
    place_with(p, how, "adagrad");
}

static bool is_table(const char *path)
{
    return strncmp(path, "emb.", 4) == 0;
}

/* Of the pass, on one rank. */
static double seconds(const placed *p, sc_op_pass pass)
{
    double sum = 0;
    for (uint32_t i = 0; i < p->plan.program->n_items; i++) {
        const program_item *it = &p->plan.program->item[i];
        if (is_kernel(it) && kernel_pass(it) == pass &&
            is_table(op_of(&p->plan, it)->path))
            sum += it->price.seconds;
    }
    return sum;
}

/* Of all tables together, on the samples of all ranks. */
static double all_tables(const placed *p, sc_op_pass pass)
{
    double sum = 0, extent[SC_ITER_DIMS];
    for (uint32_t i = 0; i < p->job.net->n_ops; i++) {
        const sc_net_op *o = &p->job.net->op[i];
        sc_price price;
        if (!is_table(o->path)) continue;
        for (uint32_t k = 0; k < o->n_iter; k++)
            extent[k] = sc_iter_dim_extent(&o->iter[k], MICRO * RANKS);
        sc_net_work w = {.net = p->job.net,
                         .op = o,
                         .pass = pass,
                         .extent = extent,
                         .samples = MICRO * RANKS,
                         .weight_parts = 1,
                         .optimizer = "adagrad",
                         .facts = {.precision = SC_FP16,
                                   .fused = p->job.sw->fused,
                                   .single_pass = p->job.sw->single_pass}};
        sc_cost_net_op(&cost, p->job.hw->device, &w, &price, &err);
        no_error();
        sum += price.seconds;
    }
    return sum;
}

static double exchanged(const placed *p, uint8_t pass, uint32_t *n)
{
    double bytes = 0;
    *n = 0;
    for (uint32_t i = 0; i < p->plan.n_exchanges; i++) {
        const sc_net_exchange *x = &p->plan.exchange[i];
        if (x->coll != SC_ALL_TO_ALL || x->pass != pass) continue;
        bytes += x->bytes;
        (*n)++;
    }
    return bytes;
}

static double table_memory(const placed *p, uint8_t kind)
{
    double bytes = 0;
    for (uint32_t i = 0; i < p->plan.step.n_lifetimes; i++) {
        const sc_lifetime *l = &p->plan.step.lifetime[i];
        if (l->kind == kind && strstr(l->name, "emb."))
            bytes += (double)l->bytes;
    }
    return bytes;
}

static void evenly(void **state)
{
    (void)state;
    placed p;
    place(&p, "balanced");
    static const sc_op_pass passes[] = {SC_PASS_FWD, SC_PASS_UPDATE};
    for (size_t i = 0; i < SC_COUNT(passes); i++) {
        double want = all_tables(&p, passes[i]) / RANKS;
        double got = seconds(&p, passes[i]);
        if (!(fabs(got / want - 1) < 1e-9))
            fail_msg("pass %zu: %g s, not %g", i, got, want);
    }
    uint32_t n;
    assert_true(exchanged(&p, SC_PASS_FWD, &n) == 2.0 * MICRO * TABLES * WIDTH);
    assert_int_equal(n, 1);
}

/* A rank that has the largest tables does more than its share. */
static void in_turn(void **state)
{
    (void)state;
    placed even, turns;
    uint32_t n;
    place(&even, "balanced");
    place(&turns, "round_robin");
    static const sc_op_pass passes[] = {SC_PASS_FWD, SC_PASS_BWD,
                                        SC_PASS_UPDATE};
    for (size_t i = 0; i < SC_COUNT(passes); i++)
        assert_true(seconds(&turns, passes[i]) >
                    1.5 * seconds(&even, passes[i]));
    assert_true(exchanged(&turns, SC_PASS_FWD, &n) >
                exchanged(&even, SC_PASS_FWD, &n));
}

/* All tables are somewhere. */
static void memory(void **state)
{
    (void)state;
    placed p;
    double want = 0;
    place(&p, "balanced");
    for (uint32_t i = 0; i < p.job.net->n_ops; i++) {
        const sc_net_op *o = &p.job.net->op[i];
        if (is_table(o->path))
            want += 2 * sc_tensor_elements(
                            &p.job.net->tensor[o->weight[0].tensor], 1);
    }
    double got = table_memory(&p, SC_MEM_WEIGHT);
    if (!(fabs(got * RANKS / want - 1) < 1e-3))
        fail_msg("%g bytes of tables, not %g", got, want / RANKS);
}

/* Elements of all tables, and at most of the rows that are looked up. */
static double elements(const placed *p, double *touched)
{
    double sum = 0;
    *touched = 0;
    for (uint32_t i = 0; i < p->job.net->n_ops; i++) {
        const sc_net_op *o = &p->job.net->op[i];
        if (!is_table(o->path)) continue;
        double n =
            sc_tensor_elements(&p->job.net->tensor[o->weight[0].tensor], 1);
        sum += n;
        *touched += fmin(n, (double)MICRO * RANKS * o->lookups * WIDTH);
    }
    return sum;
}

static void near(const char *what, double got, double want)
{
    if (!(fabs(got - want) <= 1e-3 * want))
        fail_msg("%s: %g bytes, not %g", what, got, want);
}

/* States of fused optimizers, of a program without master weights, and gradients
 * of the rows that are looked up. */
static void states(void **state)
{
    (void)state;

    static const struct {
        const char *optimizer;
        double bytes;
    } row[] = {{"sgd", 0},
               {"adagrad", 4},
               {"rowwise-adagrad", 4.0 / WIDTH},
               {"adam", 8}};

    for (size_t i = 0; i < SC_COUNT(row); i++) {
        placed p;
        double touched;
        place_with(&p, "balanced", row[i].optimizer);
        double all = elements(&p, &touched);
        near(row[i].optimizer, table_memory(&p, SC_MEM_OPTIM),
             row[i].bytes * all / RANKS);
        near("gradients", table_memory(&p, SC_MEM_GRAD), 2 * touched / RANKS);
    }
}

/* Replicas sum the gradients of the tables that all of them have. */
static void replicated(void **state)
{
    (void)state;
    placed p;
    double touched;
    place_with(&p, NULL, "sgd");
    double all = elements(&p, &touched);
    near("gradients", table_memory(&p, SC_MEM_GRAD), 2 * all);
    near("states", table_memory(&p, SC_MEM_OPTIM), 4 * all);
}

/* Moments of rows that were not looked up stay as they are. */
static void adam(void **state)
{
    (void)state;
    placed sgd, full;
    place_with(&sgd, "balanced", "sgd");
    place_with(&full, "balanced", "adam");
    double few = seconds(&sgd, SC_PASS_UPDATE);
    assert_true(seconds(&full, SC_PASS_UPDATE) < 3 * few);
    assert_true(seconds(&full, SC_PASS_UPDATE) > 2 * few);
    assert_true(seconds(&full, SC_PASS_WGRAD) == seconds(&sgd, SC_PASS_WGRAD));
    assert_true(seconds(&full, SC_PASS_BWD) == seconds(&sgd, SC_PASS_BWD));
}

/* Each micro-batch updates its rows, and none waits with its gradients. */
static void accumulated(void **state)
{
    (void)state;
    placed one, three;
    place_with(&one, "balanced", "adagrad");
    micro_batches = 3;
    place_with(&three, "balanced", "adagrad");
    micro_batches = 1;
    double want = 3 * seconds(&one, SC_PASS_UPDATE);
    assert_true(fabs(seconds(&three, SC_PASS_UPDATE) / want - 1) < 1e-9);
    near("gradients", table_memory(&three, SC_MEM_GRAD),
         table_memory(&one, SC_MEM_GRAD));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(evenly, setup, teardown),
        cmocka_unit_test_setup_teardown(in_turn, setup, teardown),
        cmocka_unit_test_setup_teardown(memory, setup, teardown),
        cmocka_unit_test_setup_teardown(states, setup, teardown),
        cmocka_unit_test_setup_teardown(replicated, setup, teardown),
        cmocka_unit_test_setup_teardown(adam, setup, teardown),
        cmocka_unit_test_setup_teardown(accumulated, setup, teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
