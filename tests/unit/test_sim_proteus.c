/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The executor on the execution graphs that Proteus recorded: by its rules
 * task for task as its own, by ours within what links carry.
 */
#include "fixture.h"
#include "proteus_run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct row {
    const char *name, *machine;
    double ms; /* no start of a task is further off */
} row;

/* Feature exchanges of a backward graph wait for their device's kernels here,
 * not for its earlier exchanges alone. */
static const row rows[] = {
    {"vgg19_dp_v100_n1g1", NULL, 1e-5},
    {"vgg19_dp_v100_n1g2", NULL, 1e-5},
    {"vgg19_dp_v100_n1g4", NULL, 1e-5},
    {"vgg19_dp_v100_n1g8", NULL, 1e-5},
    {"vgg19_dp_v100_n2g8", NULL, 1e-5},
    {"vgg19_dp_v100_n4g8", NULL, 1e-5},
    {"vgg19_dp_1080_n1g8", NULL, 1e-5},
    {"vgg19_opshard_v100_n1g8", NULL, 1e-5},
    {"resnet50_dp_v100_n1g8", NULL, 1e-5},
    {"resnet50_opshard_v100_n1g8", NULL, 0.01},
    {"inception_dp_v100_n1g8", NULL, 1e-5},
    {"gpt2_dp_titanxp_n1g8", NULL, 1e-5},
    {"gpt2_dp_v100_n2g8", NULL, 1e-5},
    {"gpt2_dp2tp4_noshare_v100_n1g8", NULL, 1e-5},
    {"gpt2_dp4tp2_noshare_v100_n1g8", NULL, 1e-5},
    {"gpt2_dp4tp4_noshare_v100_n2g8", NULL, 1e-5},
    {"gpt2_pp4dp1tp1_mb8_v100_n1g4", NULL, 1e-5},
    {"dlrm_mp_v100_n1g8", NULL, 1e-5},
    {"gpt2_dp8_zero3_v100_n1g8", "dgx1-v100-1ib", 0},
    {"gpt2_dp2tp4_v100_n1g8", "dgx1-v100-1ib", 0},
    {"gpt2_dp4tp4_v100_n2g8", "dgx1-v100-1ib:2", 0},
    {"gpt2_pp2dp2tp2_v100_n1g8", "dgx1-v100-1ib", 0},
    {"gpt15b_layer8_dp4tp2_v100_n1g8", "dgx1-v100-1ib", 0},
    {"dlrm_mp_v100_n2g8", "dgx1-v100-1ib:2", 0}};

static const char *shared;

static void load(const row *k, proteus_run *run, sc_exec *x,
                 const double **start)
{
    const sc_hw *hw = k->machine ? machine(k->machine) : NULL;
    const char *dir =
        sc_sprintf(&arena, "%s/golden/proteus/%s", shared, k->name);
    if (!proteus_read(dir, &arena, run, &err) ||
        proteus_exec(run, hw, &arena, x, start, &err))
        no_error();
}

static double furthest(const sc_exec *x, const sc_exec_result *r,
                       const double *start, sc_op *which)
{
    double most = 0;
    for (sc_op i = 0; i < x->n_ops; i++) {
        if (isnan(start[i])) continue;
        double off = fabs(sc_time_to_s(r->start[i]) * 1e3 - start[i]);
        if (!(off > most)) continue;
        most = off;
        *which = i;
    }
    return most;
}

static void equals_record(const row *k)
{
    proteus_run run;
    sc_exec x;
    sc_exec_result r;
    sc_exec_opts o;
    const double *start;
    sc_op which = 0;
    load(k, &run, &x, &start);
    sc_exec_opts_init(&o);
    o.rules = sc_rules_find("proteus");
    o.gamma = run.gamma;
    if (sc_exec_run(&x, &o, &arena, &r, &err)) no_error();
    double ms = sc_time_to_s(r.makespan) * 1e3;
    double off = furthest(&x, &r, start, &which);
    printf("%-32s %10.4f ms, recorded %10.4f (%+.4f %%), starts within "
           "%.6f ms\n",
           k->name, ms, run.iter_ms, 100 * (ms / run.iter_ms - 1), off);
    if (proteus_shares(&run)) fail_msg("%s shares links", k->name);
    if (!(fabs(ms / run.iter_ms - 1) < 0.005) || !(off <= k->ms))
        fail_msg("%s: %s starts at %.6f ms, recorded %.6f", k->name,
                 x.name[which], sc_time_to_s(r.start[which]) * 1e3,
                 start[which]);
}

static void runs_as_recorded(void **state)
{
    (void)state;
    if (shared == NULL) skip();
    for (size_t k = 0; k < SC_COUNT(rows); k++) {
        if (rows[k].machine) continue;
        equals_record(&rows[k]);
        sc_arena_reset(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(runs_as_recorded, setup, teardown)};
    shared = getenv("STEPCAST_SHARED");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
