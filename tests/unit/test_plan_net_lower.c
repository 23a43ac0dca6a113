/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lowering of operator networks: pipelines of equal stages against the bubble
 * formulas of their papers, lifetimes against what each schedule keeps in
 * flight, devices of classes against devices of ranks.
 */
#include "base/util.h"
#include "plan/plan_schedule.h"
#include "program.h"
#include "sim/sim_memory.h"

#include <stdlib.h>

static sc_result run(toy *t)
{
    sc_result r;
    sc_sim_opts o;
    sc_sim_opts_init(&o);
    toy_lower(t);
    if (sc_sim_run(&t->plan.step, &o, &arena, &r, &err) != SC_OK) no_error();
    return r;
}

static sc_time ps(double seconds)
{
    return sc_time_from_s(seconds);
}

static toy pipeline(sc_schedule s, uint32_t pp, uint32_t vpp, uint32_t ga)
{
    return (toy){.schedule = s,
                 .pp = pp,
                 .vpp = vpp,
                 .ga = ga,
                 .fwd = 1,
                 .dgrad = 1,
                 .wgrad = 1,
                 .act_bytes = 1000,
                 .weight_bytes = 128};
}

/* ---- bubbles -------------------------------------------------------------- */

/* Longest idle time of a device between its first and its last kernel. */
static sc_time bubble(toy *t)
{
    sc_result r = run(t);
    const sc_graph *x = &t->plan.step;
    sc_time most = 0;
    for (uint32_t d = 0; d < x->n_classes; d++) {
        sc_time from = r.makespan, to = 0, busy = 0;
        for (sc_op i = 0; i < x->n_ops; i++) {
            if (x->kind[i] != SC_OP_COMPUTE || x->cls[sc_op_place(x, i)] != d)
                continue;
            from = r.start[i] < from ? r.start[i] : from;
            to = r.end[i] > to ? r.end[i] : to;
            busy += r.end[i] - r.start[i];
        }
        most = to - from - busy > most ? to - from - busy : most;
    }
    return most;
}

/* Narayanan et al. 2021: (p - 1)(t_f + t_b) of ga (t_f + t_b); of v chunks a
 * v-th of it. */
static void whole_passes(void **state)
{
    (void)state;
    static const uint32_t shape[][3] = {{1, 1, 4},  {2, 1, 2},  {2, 1, 16},
                                        {4, 1, 8},  {8, 1, 64}, {4, 2, 8},
                                        {4, 3, 16}, {6, 4, 12}, {2, 12, 2}};
    for (size_t i = 0; i < SC_COUNT(shape); i++) {
        uint32_t pp = shape[i][0], vpp = shape[i][1], ga = shape[i][2];
        toy t =
            pipeline(vpp > 1 ? SC_SCH_INTERLEAVED : SC_SCH_1F1B, pp, vpp, ga);
        assert_int_equal(run(&t).makespan, ps(3.0 * (ga * vpp + pp - 1)));
        if (vpp > 1) continue;
        toy j = pipeline(SC_SCH_GPIPE, pp, 1, ga);
        j.joint = true; /* one item for both gradients */
        j.ops = 3;
        j.dgrad = j.wgrad = 3;
        j.fwd = 3;
        assert_int_equal(run(&j).makespan, ps(9.0 * (ga + pp - 1)));
    }
}

/* A gradient of weights that takes no time of its own comes with what its stream
 * made in the same pass: of three operators the first two are one operation
 * forward, and one backward.  That of the last reads forward results only: it
 * stays an operation, and so does each kernel around it. */
static void weights_beside_inputs(void **state)
{
    (void)state;
    toy t = pipeline(SC_SCH_1F1B, 1, 1, 4);
    t.ops = 3;
    t.wgrad = 0;
    t.update = 3;
    toy_build(&t);
    t.job.joined = true;
    sc_result r;
    sc_sim_opts o;
    sc_sim_opts_init(&o);
    if (sc_net_plan_lower(&t.plan, &arena, &err) != SC_OK ||
        sc_sim_run(&t.plan.step, &o, &arena, &r, &err) != SC_OK)
        no_error();
    const sc_graph *x = &t.plan.step;
    assert_int_equal(x->n_ops, 4 * (2 + 3) + 1);
    for (sc_op i = 0; i + 1 < x->n_ops; i++) {
        bool two = i % 5 == 0 || i % 5 == 4;
        assert_int_equal(x->parts[i] ? x->parts[i]->n : 1, two ? 2 : 1);
        assert_int_equal(x->kind[i] == SC_OP_MARK, i % 5 == 3);
    }
    assert_true(llabs(r.makespan - ps(4 * (1 + 1) + 3)) < 100);
}

/* Of eight micro-batches the slots in the middle are looked up.  The gradient of
 * weights, which takes no time and reads what the forward pass made, is there
 * with that of the last one, after 15 s; its exchange takes 2 s beside the rest. */
static void gradients_looked_up(void **state)
{
    (void)state;
    static const double slow[2] = {0, 0};
    toy t = pipeline(SC_SCH_1F1B, 1, 1, 8);
    sc_net_clock c;
    t.wgrad = 0;
    t.dp = 2;
    t.reduce = 2;
    t.grad_overlap = true;
    toy_build(&t);
    if (sc_net_plan_clock(&t.plan, slow, false, &arena, &c, &err) != SC_OK)
        no_error();
    assert_true(c.n_issued < c.n_slots);
    assert_int_equal(c.makespan, ps(15 + 2));
}

/* Qi et al. 2023, table 2: (p - 1)(t_f + t_b - t_w); ZB-V has none where all
 * are equal. */
static void zero_bubble(void **state)
{
    (void)state;
    for (uint32_t pp = 2; pp <= 12; pp++) {
        toy h = pipeline(SC_SCH_ZB_H1, pp, 1, 3 * pp);
        h.fwd = 2;
        h.dgrad = 2.5;
        h.wgrad = 1.5;
        h.ops = 2;
        assert_int_equal(bubble(&h), ps(3.0 * (pp - 1)));
        toy v = pipeline(SC_SCH_ZB_V, pp, 2, 3 * pp);
        assert_int_equal(bubble(&v), 0);
    }
}

/* DeepSeek-V3, table 2: at most (p / 2 - 1)(t_f&b + t_b - 3 t_w), t_b of a
 * whole backward pass. */
static void both_ways(void **state)
{
    (void)state;
    for (uint32_t pp = 2; pp <= 12; pp += 2) {
        toy t = pipeline(SC_SCH_DUALPIPE, pp, 1, 2 * pp);
        assert_true(bubble(&t) <= ps((pp / 2.0 - 1) * (3 + 2 - 3)));
        /* both devices of a stage learn */
        toy u = pipeline(SC_SCH_DUALPIPE, pp, 1, 2 * pp);
        u.update = 0.25;
        run(&u);
        uint32_t updates = 0;
        for (sc_op i = 0; i < u.plan.step.n_ops; i++)
            updates += u.plan.step.cat[i] == SC_CAT_OPTIMIZER;
        assert_int_equal(updates, pp);
    }
}

/* Both devices of a stage have the gradients of all micro-batches before they
 * update. */
static void both_ways_summed(void **state)
{
    (void)state;
    toy t = pipeline(SC_SCH_DUALPIPE, 4, 1, 8);
    t.update = 0.25;
    t.dp = 2;
    t.weight_bytes = 1e9;
    t.machine = "h100-sxm:8";
    toy u = t;
    sc_result r = run(&t);
    const sc_graph *x = &t.plan.step;
    uint32_t sums = 0;
    for (sc_op i = 0; i < x->n_ops; i++) {
        if (strcmp(x->name[i], "gradient sum of DualPipe replicas") != 0)
            continue;
        sums++;
        assert_int_equal(x->bytes[i], 1000000000);
        assert_int_equal(sc_op_place(x, i + 1) - sc_op_place(x, i), 2);
        assert_true(x->traffic[i] != SC_NONE);
        for (sc_op k = 0; k < x->n_ops; k++)
            if (x->cat[k] == SC_CAT_OPTIMIZER &&
                (x->cls[sc_op_place(x, k)] == x->cls[sc_op_place(x, i)] ||
                 x->cls[sc_op_place(x, k)] == x->cls[sc_op_place(x, i) + 1]))
                assert_true(r.start[k] >= r.end[i]);
    }
    assert_int_equal(sums, 4);
    u.unfold = true;
    assert_int_equal(run(&u).makespan, r.makespan);
}

static void forward_only(void **state)
{
    (void)state;
    toy t = pipeline(SC_SCH_1F1B, 4, 1, 10);
    t.forward_only = true;
    assert_int_equal(run(&t).makespan, ps(10 + 4 - 1));
}

/* Written by hand: ZB-H1 of three micro-batches on two devices. */
static void written(void **state)
{
    (void)state;
    static const char text[] = "devices:\n"
                               "  - F0 F1 B0 F2 B1 W0 B2 W1 W2\n"
                               "  - F0 B0 F1 B1 W0 F2 B2 W1 W2\n";
    toy t = pipeline(SC_SCH_INTERLEAVED, 2, 1, 3), w;
    w = pipeline(SC_SCH_1F1B, 2, 1, 3);
    (void)sc_schedule_read(text, sizeof text - 1, "mine.yml", &arena, &t.order,
                           &err);
    no_error();
    sc_time mine = run(&t).makespan;
    assert_int_equal(mine, ps(9 + 2)); /* device 0 waits twice */
    assert_int_equal(run(&w).makespan, ps(12));
    assert_int_equal(t.plan.step.n_ops, w.plan.step.n_ops);
    toy other = pipeline(SC_SCH_INTERLEAVED, 2, 1, 4);
    other.order = t.order; /* of three micro-batches */
    toy_build(&other);
    assert_int_equal(sc_net_plan_lower(&other.plan, &arena, &err), SC_EINPUT);
    assert_int_equal(err.d[0].code, SC_C_CONFLICT);
}

/* A limit as of 1F1B turns all-forward into it. */
static void limits(void **state)
{
    (void)state;
    static const uint32_t flight[] = {4, 3, 2, 1}, none[] = {1, 1, 1, 1};
    toy a = pipeline(SC_SCH_GPIPE, 4, 1, 8);
    a.in_flight = flight;
    sc_result got = run(&a);
    toy b = pipeline(SC_SCH_1F1B, 4, 1, 8);
    assert_int_equal(got.makespan, run(&b).makespan);
    assert_int_equal(a.plan.step.n_ops, b.plan.step.n_ops);
    toy c = pipeline(SC_SCH_1F1B, 4, 1, 8);
    c.in_flight = none; /* one after the other */
    assert_int_equal(run(&c).makespan, ps(8 * 12));
}

/* One of each way: a chunk of the second round before the first has come. */
static void too_few_in_flight(void **state)
{
    (void)state;
    static const uint32_t flight[] = {1, 1};
    toy t = pipeline(SC_SCH_INTERLEAVED, 2, 2, 4);
    t.in_flight = flight;
    toy_build(&t);
    assert_int_equal(sc_net_plan_lower(&t.plan, &arena, &err), SC_EINPUT);
    assert_int_equal(err.d[0].code, SC_C_CONFLICT);
}

/* ---- memory --------------------------------------------------------------- */

/* Of a micro-batch, and of a name that ends so. */
static bool is_micro(const sc_lifetime *l, uint32_t dev, const char *end)
{
    size_t n = strlen(l->name), len = strlen(end);
    return l->device == dev && l->batch && n >= len &&
           strcmp(l->name + n - len, end) == 0;
}

/* Most values of a name's end that a device holds at once. */
static uint32_t most_alive(const toy *t, const sc_result *r, uint32_t dev,
                           const char *part)
{
    const sc_net_plan *p = &t->plan;
    uint32_t most = 0;
    for (uint32_t i = 0; i < p->step.n_lifetimes; i++) {
        const sc_lifetime *l = &p->step.lifetime[i];
        if (!is_micro(l, dev, part)) continue;
        uint32_t n = 0;
        sc_time at = r->start[l->first];
        for (uint32_t k = 0; k < p->step.n_lifetimes; k++) {
            const sc_lifetime *m = &p->step.lifetime[k];
            if (!is_micro(m, dev, part)) continue;
            sc_time end = 0;
            for (uint32_t e = 0; e < m->n_last; e++)
                end = r->end[m->last[e]] > end ? r->end[m->last[e]] : end;
            n += r->start[m->first] <= at && at < end;
        }
        most = n > most ? n : most;
    }
    return most;
}

static void in_flight(void **state)
{
    (void)state;
    static const sc_schedule of[] = {SC_SCH_1F1B,     SC_SCH_GPIPE,
                                     SC_SCH_ZB_H1,    SC_SCH_ZB_V,
                                     SC_SCH_DUALPIPE, SC_SCH_INTERLEAVED};
    for (size_t s = 0; s < SC_COUNT(of); s++) {
        uint32_t vpp = of[s] == SC_SCH_INTERLEAVED ? 3 : 1;
        toy t = pipeline(of[s], 4, vpp, 12);
        t.ops = 2;
        t.fwd = t.dgrad = t.wgrad = 2;
        sc_result r = run(&t);
        for (uint32_t d = 0; d < 4; d++)
            assert_int_equal(most_alive(&t, &r, d, ".0 out"),
                             sc_schedule_in_flight(of[s], 4, vpp, 12, d));
    }
}

/* All values of a step go, but for what is kept between steps. */
static void all_freed(const toy *t)
{
    const sc_net_plan *p = &t->plan;
    assert_true(p->step.n_lifetimes > 0);
    for (uint32_t i = 0; i < p->step.n_lifetimes; i++) {
        const sc_lifetime *l = &p->step.lifetime[i];
        bool micro = l->batch > 0;
        assert_true(l->device < p->step.n_classes);
        assert_int_equal(micro, l->first != SC_NONE);
        assert_int_equal(micro, l->n_last > 0);
        for (uint32_t k = 0; k < l->n_last; k++)
            assert_true(l->last[k] >= l->first && l->last[k] < p->step.n_ops);
    }
}

static double always_there(const toy *t, uint32_t dev, sc_mem_kind kind)
{
    double sum = 0;
    for (uint32_t i = 0; i < t->plan.step.n_lifetimes; i++) {
        const sc_lifetime *l = &t->plan.step.lifetime[i];
        if (l->first == SC_NONE && l->device == dev && l->kind == kind)
            sum += (double)l->bytes;
    }
    return sum;
}

static void kept(void **state)
{
    (void)state;
    for (int zero = 0; zero <= 3; zero = zero ? zero + 2 : 1) {
        toy t = pipeline(SC_SCH_1F1B, 2, 1, 4);
        t.ops = 3;
        t.dp = 4;
        t.zero = zero;
        run(&t);
        all_freed(&t);
        double whole = 3 * 128, shard = whole / 4;
        assert_true(always_there(&t, 0, SC_MEM_WEIGHT) ==
                    (zero == 3 ? shard : whole));
        assert_true(always_there(&t, 1, SC_MEM_GRAD) ==
                    (zero == 3 ? shard : whole));
        assert_true(always_there(&t, 1, SC_MEM_OPTIM) ==
                    6 * (zero ? shard : whole));
    }
}

/* What is made again is not kept. */
static void made_again(void **state)
{
    (void)state;
    toy t = pipeline(SC_SCH_1F1B, 4, 1, 8);
    t.ops = 2;
    t.checkpoint = true;
    sc_result r = run(&t);
    assert_int_equal(r.makespan, ps(4.0 * (8 + 4 - 1)));
    all_freed(&t);
    for (uint32_t d = 0; d < 4; d++)
        assert_true(most_alive(&t, &r, d, ".o0 out") <= 2);
}

/* ---- exchanges ------------------------------------------------------------ */

/* Beside the last backward pass, or after it. */
static void gradients(void **state)
{
    (void)state;
    toy t = pipeline(SC_SCH_1F1B, 1, 1, 2);
    t.ops = 10;
    t.dp = 8;
    t.dgrad = t.wgrad = 10;
    t.reduce = 5;
    t.update = 1;
    assert_int_equal(run(&t).makespan, ps(2 * 21 + 5 + 1));
    toy b = t;
    b.n_stages = 0;
    b.grad_overlap = true;
    assert_int_equal(run(&b).makespan, ps(2 * 21 + 0.5 + 1));
}

/* Updated weights come beside the first forward pass of the next step. */
static void updated_weights(void **state)
{
    (void)state;
    toy t = pipeline(SC_SCH_1F1B, 1, 1, 2);
    t.ops = 10;
    t.dp = 8;
    t.zero = 1;
    t.gather = 0.05;
    t.fwd = t.dgrad = t.wgrad = 10;
    toy b = t;
    assert_int_equal(run(&t).makespan, ps(60.5));
    b.sw.param_overlap = true;
    toy whole = b, cut;
    assert_int_equal(run(&b).makespan, ps(60.05));
    whole.bucketed = true;
    cut = whole;
    assert_int_equal(run(&whole).makespan, ps(60.5));
    cut.sw.bucket_bytes = 2 * cut.weight_bytes; /* two at a time */
    assert_int_equal(run(&cut).makespan, ps(60.1));
    cut.gather_latency = 0.2; /* of 0.5; each of the five buckets has it */
    assert_int_equal(run(&cut).makespan, ps(60 + 0.2 + 0.3 / 5));
}

/* Gathers hide beside the operator before; as many weights are whole as the
 * software looks ahead, and the one at work. */
static void sharded_weights(void **state)
{
    (void)state;
    toy t = pipeline(SC_SCH_1F1B, 1, 1, 3);
    t.ops = 10;
    t.dp = 8;
    t.zero = 3;
    t.grad_overlap = true;
    t.fwd = t.dgrad = t.wgrad = 10;
    t.gather = 0.5;
    t.reduce = 5;
    sc_result r = run(&t);
    assert_int_equal(r.makespan, ps(90 + 0.5 + 0.5));
    assert_int_equal(most_alive(&t, &r, 0, "weight used"), 2);
    /* a gather longer than an operator: the exchanges are what limits */
    toy s = t;
    s.gather = 4;
    s.reduce = 0;
    s.dgrad = s.wgrad = 5;
    r = run(&s);
    assert_true(r.makespan >= ps(3 * 20 * 4) &&
                r.makespan <= ps(3 * 20 * 4 + 2));
}

/* A sender that blocks takes the transfer's time of its own. */
static void transfers(void **state)
{
    (void)state;
    toy t = pipeline(SC_SCH_1F1B, 2, 1, 16);
    t.send = 0.25;
    sc_time blocked = run(&t).makespan;
    toy b = pipeline(SC_SCH_1F1B, 2, 1, 16);
    b.send = 0.25;
    b.p2p_overlap = true;
    sc_time beside = run(&b).makespan;
    assert_true(blocked > beside);
    assert_true(beside >= ps(3.0 * 17 + 2 * 0.25));
    const sc_graph *x = &b.plan.step;
    for (sc_op i = 0; i < x->n_ops; i++)
        if (x->kind[i] == SC_OP_P2P) {
            /* two stages have a queue for each direction */
            uint32_t from = x->cls[sc_op_place(x, i)];
            assert_int_equal(x->stream[i], from ? SC_S_P2P_ODD : SC_S_P2P);
            assert_int_equal(sc_op_place(x, i + 1) - sc_op_place(x, i), 2);
        }
}

/* ---- other memories ------------------------------------------------------- */

/* Activations go when they have been copied out, and come back one operator
 * before their use. */
static void activations_away(void **state)
{
    (void)state;
    toy t = pipeline(SC_SCH_1F1B, 1, 1, 1);
    t.ops = 20;
    t.fwd = t.dgrad = t.wgrad = 20;
    t.act_bytes = 32e9; /* half a second at 64 GB/s */
    t.machine = "h100-sxm:1";
    toy away = t, half = t;
    sc_result r = run(&t);
    assert_int_equal(r.makespan, ps(60));
    assert_int_equal(most_alive(&t, &r, 0, " out"), 20);
    away.tier = SC_TIER_CPU;
    r = run(&away);
    all_freed(&away);
    uint32_t most = most_alive(&away, &r, 0, " out");
    assert_true(most >= 2 && most <= 5);
    assert_true(r.makespan >= ps(60) && r.makespan <= ps(62));
    half.offload = 0.5;
    r = run(&half);
    most = most_alive(&half, &r, 0, " out");
    assert_true(most >= 10 && most <= 13);
}

/* States on the host: gradients go there, weights come back, and the update
 * takes as long as the host's memory needs. */
static void optimizer_away(void **state)
{
    (void)state;
    toy t = pipeline(SC_SCH_1F1B, 1, 1, 2);
    t.ops = 4;
    t.weight_bytes = 16e9; /* four are a second at 64 GB/s */
    t.machine = "h100-sxm:1";
    t.states = SC_TIER_CPU;
    sc_result r = run(&t);
    all_freed(&t);
    assert_true(always_there(&t, 0, SC_MEM_OPTIM) == 0);
    assert_true(always_there(&t, 0, SC_MEM_WEIGHT) == 4 * 16e9);
    /* the last gradient out, all weights in */
    assert_true(r.makespan >= ps(6 + 0.25 + 1));
    assert_true(r.makespan <= ps(6 + 1 + 1 + 0.01));
    toy n = t;
    n.states = SC_TIER_NVME;
    n.update_bytes = 2 * 6 * 16e9; /* states are read and written */
    assert_true(run(&n).makespan > r.makespan + ps(4 * 6 * 16e9 / 25e9));
}

/* 64 GB at 64 GB/s in front of the update; storing them takes 2.56 s, for which
 * a step waits that is not beside it. */
static void checkpoints(void **state)
{
    (void)state;
    toy t = pipeline(SC_SCH_1F1B, 1, 1, 2);
    t.weight_bytes = 64e9 / 7;
    t.machine = "h100-sxm:1";
    t.checkpoint_every = 4;
    toy disk = t, away = t, often = t;
    assert_int_equal(run(&t).makespan, ps(6.25));
    disk.checkpoint_disk = true;
    assert_int_equal(run(&disk).makespan, ps(6.25 + 2.56 / 4));
    away.checkpoint_async = away.checkpoint_disk = true;
    assert_int_equal(run(&away).makespan, ps(6.25));
    often.checkpoint_async = true;
    assert_int_equal(run(&often).makespan, ps(6.25));
}

/* ---- ranks ---------------------------------------------------------------- */

static void unfolded(void **state)
{
    (void)state;
    for (int zero = 0; zero <= 3; zero = zero ? zero + 2 : 1) {
        toy t = pipeline(SC_SCH_1F1B, 4, 1, 6);
        t.ops = 2;
        t.dp = 4;
        t.zero = zero;
        t.gather = 0.125;
        t.reduce = 0.5;
        t.update = 0.25;
        t.send = 0.0625;
        t.grad_overlap = t.p2p_overlap = true;
        toy u = t;
        u.unfold = true;
        sc_time want = run(&t).makespan;
        assert_int_equal(run(&u).makespan, want);
        assert_int_equal(t.plan.step.n_classes, 4);
        assert_int_equal(u.plan.step.n_classes, 16);
        assert_int_equal(u.plan.step.n_lifetimes, 4 * t.plan.step.n_lifetimes);
        assert_int_equal(t.plan.step.classes[3].multiplicity, 4);
        assert_int_equal(u.plan.step.classes[15].multiplicity, 1);
        assert_int_equal(u.plan.step.classes[5].rank, 5);
        all_freed(&u);
    }
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(weights_beside_inputs),
        TEST(gradients_looked_up),
        TEST(whole_passes),
        TEST(zero_bubble),
        TEST(both_ways),
        TEST(both_ways_summed),
        TEST(forward_only),
        TEST(limits),
        TEST(written),
        TEST(too_few_in_flight),
        TEST(in_flight),
        TEST(kept),
        TEST(made_again),
        TEST(gradients),
        TEST(updated_weights),
        TEST(sharded_weights),
        TEST(transfers),
        TEST(unfolded),
        TEST(checkpoints),
        TEST(activations_away),
        TEST(optimizer_away),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
