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

static void load(const row *k, proteus_run *run, sc_graph *x,
                 const double **start)
{
    const sc_hw *hw = k->machine ? machine(k->machine) : NULL;
    const char *dir =
        sc_sprintf(&arena, "%s/golden/proteus/%s", shared, k->name);
    if (!proteus_read(dir, &arena, run, &err) ||
        proteus_exec(run, hw, &arena, x, start, &err))
        no_error();
}

static double furthest(const sc_graph *x, const sc_result *r,
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
    sc_graph x;
    sc_result r;
    sc_sim_opts o;
    const double *start;
    sc_op which = 0;
    load(k, &run, &x, &start);
    sc_sim_opts_init(&o);
    o.rules = sc_rules_find("proteus");
    o.gamma = run.gamma;
    if (sc_sim_run(&x, &o, &arena, &r, &err)) no_error();
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

/* ---- where it shares bandwidth ------------------------------------------- */

typedef struct crossing {
    sc_time from, to;
    double bytes;
} crossing;

static int by_time(const void *p, const void *q)
{
    const crossing *a = p, *b = q;
    return (a->from > b->from) - (a->from < b->from);
}

/* What crosses a link, by the time at which it may. */
static uint32_t crossings(const sc_graph *x, const sc_result *r, uint64_t link,
                          crossing *out)
{
    uint32_t n = 0;
    for (sc_op i = 0; i < x->n_ops; i++) {
        if (x->traffic[i] == SC_NONE) continue;
        const sc_traffic *t = &x->traffics[x->traffic[i]];
        for (uint32_t k = 0; k < t->n; k++)
            if (t->link[k] == link)
                out[n++] = (crossing){r->start[i] + x->latency[i], r->end[i],
                                      t->share[k] * (double)x->bytes[i]};
    }
    qsort(out, n, sizeof *out, by_time);
    return n;
}

/* Whenever something crosses a link, and until nothing does, it carries no more
 * than fits, and altogether what was sent.  Returns how full it was at most. */
static double check_link(const sc_graph *x, const sc_result *r, const sc_hw *hw,
                         uint32_t k, crossing *c)
{
    uint32_t n = crossings(x, r, r->link[k], c);
    double all = 0, bytes = 0, full = 0;
    sc_time from = 0, to = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (c[i].from >= to) {
            bytes = 0;
            from = c[i].from;
        }
        if (c[i].to > to) to = c[i].to;
        bytes += c[i].bytes;
        all += c[i].bytes;
        if (i + 1 < n && c[i + 1].from < to) continue;
        double fits = sc_hw_link_bw(hw, r->link[k]) * sc_time_to_s(to - from);
        full = fmax(full, bytes / fits);
    }
    assert_true(fabs(all / r->link_bytes[k] - 1) < 1e-9);
    return full;
}

static void shares_links(const row *k)
{
    proteus_run run;
    sc_graph x;
    sc_result r, alone;
    sc_sim_opts o;
    const double *start;
    char link[80] = "none";
    double full = 0, sent = 0, moved = 0;
    load(k, &run, &x, &start);
    sc_sim_opts_init(&o);
    o.gamma = run.gamma;
    if (sc_sim_run(&x, &o, &arena, &alone, &err)) no_error();
    o.hw = machine(k->machine);
    if (sc_sim_run(&x, &o, &arena, &r, &err)) no_error();
    crossing *c = SC_NEW_N(&arena, crossing, x.n_ops);
    for (uint32_t l = 0; l < r.n_links; l++) {
        double f = check_link(&x, &r, o.hw, l, c);
        moved += r.link_bytes[l];
        if (f <= full) continue;
        full = f;
        sc_hw_link_name(o.hw, r.link[l], link, sizeof link);
    }
    for (sc_op i = 0; i < x.n_ops; i++)
        for (uint32_t l = 0;
             x.traffic[i] != SC_NONE && l < x.traffics[x.traffic[i]].n; l++)
            sent += x.traffics[x.traffic[i]].share[l] * (double)x.bytes[i];
    printf("%-32s %10.4f ms, alone %10.4f, Proteus %10.4f; fullest link %s "
           "at %.3f\n",
           k->name, sc_time_to_s(r.makespan) * 1e3,
           sc_time_to_s(alone.makespan) * 1e3, run.iter_ms, link, full);
    assert_true(proteus_shares(&run));
    assert_true(fabs(moved / sent - 1) < 1e-9);
    assert_true(full <= 1 + 1e-9);
    assert_true(r.makespan >= alone.makespan);
}

static void carries_what_fits(void **state)
{
    (void)state;
    if (shared == NULL) skip();
    for (size_t k = 0; k < SC_COUNT(rows); k++) {
        if (!rows[k].machine) continue;
        shares_links(&rows[k]);
        sc_arena_reset(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(runs_as_recorded, setup, teardown),
        cmocka_unit_test_setup_teardown(carries_what_fits, setup, teardown)};
    shared = getenv("STEPCAST_SHARED");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
