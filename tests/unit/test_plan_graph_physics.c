/* SPDX-License-Identifier: Apache-2.0 */
/* test_plan_graph_physics.c - what operator graphs exchange, keep and wait
 * for, by numbers derived by hand. */
#include <stepcast/sim_exec.h>

#include "graph_plan.h"

static const sc_opgraph *words(const char *name, uint64_t seq)
{
    const sc_opgraph *g = NULL;
    (void)sc_opgraph_from_model(model(name), seq, false, &arena, &g, &err);
    no_error();
    return g;
}

static void plan_on(planned *p, const char *cluster, const char *text,
                    const sc_opgraph *g, uint64_t micro, uint32_t ga)
{
    prepare(p, text, g, micro, ga);
    p->job.hw = machine(cluster);
    (void)infer_only(p);
    no_error();
}

/* Seconds of transfers between stages, of `bytes` each, that leave the node,
 * or stay inside. */
static void transfers(const planned *p, double bytes, double *leave,
                      double *stay)
{
    *leave = *stay = 0;
    for (uint32_t i = 0; i < p->plan.n_exchanges; i++) {
        const sc_gexchange *x = &p->plan.exchange[i];
        if (!x->p2p) continue;
        assert_true(x->bytes == bytes);
        bool leaves = x->rank[0] / 8 != x->rank[1] / 8;
        *(leaves ? leave : stay) = x->seconds;
    }
}

/* Four stages of four ranks on two nodes of eight: of three borders the one in
 * the middle is between nodes, and four ranks cross it at once. */
static void transfers_by_their_ranks(void **state)
{
    (void)state;
    planned p;
    double leave, stay, act = 1024.0 * 1600 * 2;
    static const char text[] = "mesh: {pp: 4, dp: 4}\n";
    const sc_opgraph *g = words("gpt2-xl", 1024);
    /* One NIC of 50 GB/s for each: at least 3,276,800 / 50e9 = 65.5 us; inside
     * at 450 GB/s 7.3 us. */
    plan_on(&p, "dgx-h100:2", text, g, 1, 4);
    transfers(&p, act, &leave, &stay);
    assert_true(leave > 65.5e-6 && leave < 131e-6);
    assert_true(stay > 7.3e-6 && stay < 65.5e-6);
    /* One NIC of 12.5 GB/s for four: 4 * 3,276,800 / 12.5e9 = 1049 us. */
    plan_on(&p, "dgx1-v100-1ib:2", text, g, 1, 4);
    transfers(&p, act, &leave, &stay);
    assert_true(leave > 1049e-6 && leave < 1600e-6);
    assert_true(stay < 400e-6);
    /* So is the sum of the shared table's gradient over stages 0 and 3: four
     * at once have two NICs each. */
    plan_on(&p, "dgx-h100:2", text, g, 1, 4);
    const sc_gexchange *x = NULL;
    for (uint32_t i = 0; i < p.plan.n_exchanges; i++)
        if (strcmp(p.plan.exchange[i].why, "stages share the weight") == 0)
            x = &p.plan.exchange[i];
    assert_true(x && x->seconds > x->bytes / 100e9);
}

/* ---- gradients ----------------------------------------------------------- */

/* With sequence parallelism norms' gradients are sums over tp, too: a queue of
 * their own, ready as late as the first layer's. */
static void norms_hold_nobody_up(void **state)
{
    (void)state;
    planned p;
    prepare(&p,
            "mesh: {dp: 2, tp: 4}\n"
            "preset: {tensor_parallel: megatron-sp, zero: 1}\n"
            "overlap: {grad_bucket: 4MB}\n",
            words("gpt2", 256), 1, 1);
    for (int last = 0; last < 2; last++) {
        sc_rules r = *sc_rules_find(NULL);
        r.scattered_last = last;
        p.job.rules = &r;
        (void)infer_only(&p);
        no_error();
        uint32_t n = 0, norms = 0;
        for (uint32_t i = 0; i < p.plan.n_exchanges; i++) {
            const sc_gexchange *x = &p.plan.exchange[i];
            if (!x->grad) continue;
            if (x->coll == SC_ALL_REDUCE) norms = n;
            n++;
        }
        assert_true(n > 5);
        /* Its sum over tp, then its parts over dp. */
        assert_int_equal(norms, last ? 0 : n - 2);
    }
}

/* `n` equal products of 8 MiB of weights each. */
static const sc_opgraph *products(uint32_t n)
{
    const sc_opgraph *g = NULL;
    sc_text t;
    sc_text_init(&t);
    sc_text_add(&t, "inputs:\n  x: {batch: 1, hidden: 2048}\noperators:\n");
    for (uint32_t i = 0; i < n; i++)
        sc_text_add(&t,
                    "  - {path: l.%u.fc, type: linear, out: 2048, bias: "
                    "false}\n",
                    i);
    (void)sc_opgraph_read(t.buf, t.len, "m.yml", &arena, &g, &err);
    no_error();
    sc_text_free(&t);
    return g;
}

/* Runs what was inferred. */
static void run(planned *p, sc_exec_result *r)
{
    sc_exec_opts o;
    (void)gp_lower(&p->prog, &arena, &p->plan, &err);
    no_error();
    sc_exec_opts_init(&o);
    o.hw = p->job.hw;
    (void)sc_exec_run(&p->plan.exec, &o, &arena, r, &err);
    no_error();
}

static sc_time ends(const sc_exec_result *r, const sc_lifetime *l)
{
    sc_time t = 0;
    for (uint32_t k = 0; k < l->n_last; k++)
        if (r->end[l->last[k]] > t) t = r->end[l->last[k]];
    return t;
}

/* Most gradients of single micro-batches that are there at once. */
static uint32_t most_gradients(const planned *p, const sc_exec_result *r)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < p->plan.n_lifetimes; i++) {
        const sc_lifetime *l = &p->plan.lifetime[i];
        uint32_t n = 0;
        if (l->kind != SC_MEM_GRAD || l->first == SC_NONE) continue;
        sc_time t = r->start[l->first];
        for (uint32_t k = 0; k < p->plan.n_lifetimes; k++) {
            const sc_lifetime *m = &p->plan.lifetime[k];
            if (m->kind != SC_MEM_GRAD || m->first == SC_NONE) continue;
            n += r->start[m->first] <= t && ends(r, m) > t;
        }
        if (n > most) most = n;
    }
    return most;
}

/* A network that takes far longer than the products: a rank fills one buffer
 * while another is reduced, and no third. */
static void two_buffers(void **state)
{
    (void)state;
    planned p;
    sc_exec_result r;
    prepare(&p,
            "mesh: {dp: 16}\npreset: {zero: 2}\n"
            "overlap: {grad: true, grad_bucket: 8MiB}\n",
            products(12), 1, 4);
    p.job.hw = machine("dgx1-v100-1ib:2");
    (void)infer_only(&p);
    no_error();
    run(&p, &r);
    assert_int_equal(most_gradients(&p, &r), 2);
}

/* ---- weights ------------------------------------------------------------- */

/* Two products in each of `n` layers. */
static const sc_opgraph *layers(uint32_t n)
{
    const sc_opgraph *g = NULL;
    sc_text t;
    sc_text_init(&t);
    sc_text_add(&t,
                "inputs:\n  x: {batch: 1, hidden: 1024}\noperators:\n"
                "  - module: l\n    repeat: %u\n    operators:\n"
                "      - {path: a, type: linear, out: 1024, bias: false}\n"
                "      - {path: b, type: linear, out: 1024, bias: false}\n",
                n);
    (void)sc_opgraph_read(t.buf, t.len, "m.yml", &arena, &g, &err);
    no_error();
    sc_text_free(&t);
    return g;
}

static sc_op named(const planned *p, const char *name)
{
    for (sc_op i = 0; i < p->plan.exec.n_ops; i++)
        if (strcmp(p->plan.exec.name[i], name) == 0) return i;
    fail_msg("no %s", name);
    return SC_NONE;
}

/* Weights of layer 3 are gathered when layer 2 - prefetch has ended, both of
 * them, with 0 when the layer before it has. */
static void gathered_by_layers(void **state)
{
    (void)state;
    planned p;
    sc_exec_result r;
    for (int ahead = 0; ahead < 3; ahead++) {
        char before[40];
        prepare(&p, "mesh: {dp: 8}\npreset: {zero: 3}\n", layers(5), 65536, 1);
        p.sw.prefetch = ahead;
        (void)infer_only(&p);
        no_error();
        run(&p, &r);
        snprintf(before, sizeof before, "l.%d.b forward", 2 - ahead);
        sc_time end = r.end[named(&p, before)];
        sc_op a = named(&p, "l.3.a weight all_gather");
        sc_op b = named(&p, "l.3.b weight all_gather");
        assert_int_equal(r.start[a], end);
        assert_int_equal(r.start[b], r.end[a]);
    }
}

/* 12 weights of 4 Mi elements of 2 bytes and states of 12: 704,643,072 bytes,
 * each saved once by the eight ranks: at 2 GB/s of a node 352.3 ms, and 88.1 MB
 * of each to the host.  One of ten steps does. */
static void saved_once(void **state)
{
    (void)state;
    static const char *const zero[] = {"0", "1", "3"};
    for (size_t i = 0; i < SC_COUNT(zero); i++) {
        planned p;
        sc_exec_result r;
        char text[120];
        snprintf(text, sizeof text,
                 "mesh: {dp: 8}\npreset: {zero: %s}\n"
                 "checkpoint: {every: 10}\n",
                 zero[i]);
        plan_text(&p, text, products(12), 1, 1);
        run(&p, &r);
        sc_op op = named(&p, "checkpoint");
        double copy = 704643072.0 / 8 / p.job.hw->device->host_bw;
        double want = (704643072.0 / 2e9 + copy) / 10;
        double is = sc_time_to_s(p.plan.exec.work[op]);
        if (is < want * 0.9999 || is > want * 1.0001)
            fail_msg("ZeRO-%s: %g s, not %g", zero[i], is, want);
    }
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(transfers_by_their_ranks),
        TEST(norms_hold_nobody_up),
        TEST(two_buffers),
        TEST(gathered_by_layers),
        TEST(saved_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
