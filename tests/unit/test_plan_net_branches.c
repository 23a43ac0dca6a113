/* SPDX-License-Identifier: Apache-2.0 */
/* test_plan_graph_branches.c - branches that rules put on different ranks of a
 * stage, or on different stages, run side by side. */
#include "kernels.h"
#include "net_plan.h"
#include "sim/sim.h"

#define WIDTH 2048
#define ROWS  4096 /* samples of a micro-batch */
#define VALUE (2.0 * ROWS * WIDTH)

/* Two towers on one stem; the first is twice as wide. */
static const sc_net *towers(void)
{
    static const char net[] =
        "inputs: {x: {batch: 1, hidden: 2048}}\n"
        "operators:\n"
        "  - {path: stem, type: linear, out: 2048, bias: false}\n"
        "  - {path: a.0, type: linear, in: stem, out: 8192, bias: false}\n"
        "  - {path: a.1, type: linear, out: 2048, bias: false}\n"
        "  - {path: b.0, type: linear, in: stem, out: 4096, bias: false}\n"
        "  - {path: b.1, type: linear, out: 2048, bias: false}\n"
        "  - {path: join, type: elementwise, kind: add, in: [a.1, b.1]}\n"
        "  - {path: head, type: linear, out: 2048, bias: false}\n";
    const sc_net *g = NULL;
    (void)sc_net_read(net, strlen(net), "m.yml", &arena, &g, &err);
    no_error();
    return g;
}

static void plan_towers(planned *p, const char *a, const char *b)
{
    const char *text = sc_sprintf(
        &arena,
        "mesh: {d: 2, e: 2}\nrules:\n  - {match: '*', split: {batch: e}}\n"
        "  - {match: a, devices: %s}\n  - {match: b, devices: %s}\n",
        a, b);
    assert_non_null(text);
    plan_text(p, text, towers(), ROWS, 1);
}

/* Seconds of an operator's kernels in a pass; by themselves where no rule puts
 * them beside others. */
static double alone(const planned *p, const char *path, sc_op_pass pass)
{
    double s = kernel_seconds(&p->plan, &p->prog, path, pass);
    assert_true(s > 0);
    return s;
}

static double chain(const planned *p, char tower, sc_op_pass pass)
{
    char path[] = "?.0";
    path[0] = tower;
    double sum = alone(p, path, pass);
    path[2] = '1';
    return sum + alone(p, path, pass);
}

/* Seconds of all kernels of a pass as the stage's class runs them. */
static double kernels(const planned *p, bool backward)
{
    double sum = 0;
    for (uint32_t i = 0; i < p->prog.n_items; i++) {
        const program_item *it = &p->prog.item[i];
        bool is = it->pass == SC_PASS_DGRAD || it->pass == SC_PASS_WGRAD;
        if (it->exchange == SC_NONE && !it->once && is == backward &&
            it->cat == SC_CAT_COMPUTE)
            sum += it->price.seconds;
    }
    return sum;
}

static double rest(const planned *p, sc_op_pass pass)
{
    return alone(p, "stem", pass) + alone(p, "join", pass) +
           alone(p, "head", pass);
}

static double weights(const planned *p)
{
    double sum = 0;
    for (uint32_t i = 0; i < p->prog.n_values; i++)
        if (p->prog.value[i].what == VALUE_WEIGHT)
            sum += p->prog.value[i].bytes;
    return sum;
}

/* The step takes as long by either engine. */
static sc_time both_engines(planned *p)
{
    const double none[2] = {0, 0};
    sc_net_clock clock = {0};
    sc_sim_opts o;
    sc_result r;
    (void)sc_net_plan_clock(&p->plan, none, false, &arena, &clock, &err);
    no_error();
    (void)sc_net_plan_lower(&p->plan, &arena, &err);
    no_error();
    sc_sim_opts_init(&o);
    o.hw = p->job.hw;
    (void)sc_sim_run(&p->plan.step, &o, &arena, &r, &err);
    no_error();
    assert_true(r.makespan == clock.makespan);
    return r.makespan;
}

/* On different ranks a pass takes the longer tower; each place has its own
 * weights, of which 8192 + 8192 of 2048 + 2 * 2048 columns are the most. */
static void on_ranks_of_a_stage(void **state)
{
    (void)state;
    planned p, q;
    plan_towers(&p, "{d: 0}", "{d: 1}");
    plan_towers(&q, "{d: 0}", "{d: 0}");
    for (int back = 0; back < 2; back++) {
        sc_op_pass pass = back ? SC_PASS_BWD : SC_PASS_FWD;
        double a = chain(&q, 'a', pass), b = chain(&q, 'b', pass);
        assert_true(a > 1.5 * b);
        near(kernels(&p, back), rest(&q, pass) + a);
        near(kernels(&q, back), rest(&q, pass) + a + b);
    }
    near(weights(&p), 2.0 * WIDTH * (2 * 2048 + 2 * 8192));
    near(weights(&q), 2.0 * WIDTH * (2 * 2048 + 2 * 8192 + 2 * 4096));
    sc_time apart = both_engines(&p);
    assert_true(apart < both_engines(&q));
}

/* What a tower hands on inside itself stays where it is; its result goes to all
 * when they read it; the stem's gradient is a sum over both. */
static void exchanged(void **state)
{
    (void)state;
    planned p;
    plan_towers(&p, "{d: 0}", "{d: 1}");
    uint32_t n = 0;
    for (uint32_t i = 0; i < p.plan.n_exchanges; i++) {
        const sc_net_exchange *x = &p.plan.exchange[i];
        if (x->grad) continue;
        n++;
        near(x->bytes, VALUE);
        bool back = x->pass == SC_PASS_DGRAD;
        assert_int_equal(x->coll, back ? SC_ALL_REDUCE : SC_BROADCAST);
        assert_string_equal(x->path, back ? "a.0" : "join");
        assert_int_equal(x->axes, 1);
    }
    assert_int_equal(n, 3);
    /* Along e both divide samples: gradients are sums over it only. */
    for (uint32_t i = 0; i < p.plan.n_exchanges; i++)
        if (p.plan.exchange[i].grad && p.plan.exchange[i].path[1] == '.')
            assert_int_equal(p.plan.exchange[i].axes, 2);
}

/* From one rank to another there is an exchange; places that have ranks in
 * common do not run side by side. */
static void places_that_meet(void **state)
{
    (void)state;
    planned p, q;
    static const char text[] = "mesh: {d: 2}\nrules:\n"
                               "  - {match: a.0, devices: {d: 0}}\n"
                               "  - {match: a.1, devices: {d: 1}}\n";
    plan_text(&p, text, towers(), ROWS, 1);
    const sc_net_exchange *x = exchange_of(&p.plan, "a.1", "in:0");
    assert_true(x && x->coll == SC_BROADCAST);
    near(x->bytes, 4 * VALUE);
    assert_string_equal(x->why, "made on one rank, needed on another");
    x = exchange_of(&p.plan, "a.1", "in grad");
    assert_true(x && x->coll == SC_BROADCAST);
    plan_text(&q,
              "mesh: {d: 2}\nrules:\n"
              "  - {match: a, devices: {d: 0}}\n"
              "  - {match: b, devices: {d: 0}}\n",
              towers(), ROWS, 1);
    near(kernels(&p, false), kernels(&q, false));
    plan_text(&p,
              "mesh: {d: 2, e: 2}\nrules:\n"
              "  - {match: a, devices: {d: 0}}\n"
              "  - {match: b, devices: {e: 1}}\n",
              towers(), ROWS, 1);
    near(kernels(&p, false), kernels(&q, false));
}

static sc_op named(const sc_graph *g, const char *name)
{
    for (sc_op i = 0; i < g->n_ops; i++)
        if (g->name[i] && strcmp(g->name[i], name) == 0) return i;
    fail_msg("no %s", name);
    return SC_NONE;
}

/* On stages: the second begins with what it reads, not with all that comes. */
static void on_stages(void **state)
{
    (void)state;
    planned p;
    sc_sim_opts o;
    sc_result r;
    plan_text(&p,
              "mesh: {pp: 2}\nrules:\n"
              "  - {match: a, devices: {pp: 0}}\n"
              "  - {match: b, devices: {pp: 1}}\n",
              towers(), ROWS, 1);
    (void)both_engines(&p);
    sc_sim_opts_init(&o);
    o.hw = p.job.hw;
    (void)sc_sim_run(&p.plan.step, &o, &arena, &r, &err);
    no_error();
    const sc_graph *g = &p.plan.step;
    sc_op sent = named(g, "stem out send"), b0 = named(g, "b.0 forward");
    assert_true(r.start[sent] == r.end[named(g, "stem forward")]);
    assert_true(r.start[b0] == r.end[sent]);
    /* The shorter tower has ended when the result of the other one comes. */
    assert_true(r.start[named(g, "join forward")] ==
                r.end[named(g, "a.1 out send")]);
    /* The gradient of the first tower is on its way before the other one's
     * products begin. */
    assert_true(r.start[named(g, "a.1 input grad")] <
                r.end[named(g, "b.0 input grad")]);
    /* The join follows what it reads, wherever the branch before it is. */
    plan_text(&p,
              "mesh: {pp: 2}\nrules:\n"
              "  - {match: a, devices: {pp: 1}}\n"
              "  - {match: b, devices: {pp: 0}}\n",
              towers(), ROWS, 2);
    (void)both_engines(&p);
    assert_int_equal(p.plan.stage_of[5], 1);
}

/* A layer of which a rule cuts off the end: what the next stage reads is kept,
 * not made again when that stage has gone backward. */
static void cut_inside_a_layer(void **state)
{
    (void)state;
    planned p;
    plan_text(&p,
              "mesh: {pp: 2}\npreset: {recompute: full}\nrules:\n"
              "  - {match: layers.6.fc2, devices: {pp: 1}}\n",
              words("gpt2", 64), 1, 4);
    (void)both_engines(&p);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(on_ranks_of_a_stage), TEST(exchanged),
        TEST(places_that_meet),    TEST(on_stages),
        TEST(cut_inside_a_layer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
