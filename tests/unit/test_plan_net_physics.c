/* SPDX-License-Identifier: Apache-2.0 */
/* test_plan_net_physics.c - what operator networks exchange, keep and wait
 * for, by numbers derived by hand. */
#include "net_plan.h"
#include "sim/sim_memory.h"

static void plan_on(planned *p, const char *cluster, const char *text,
                    const sc_net *g, uint64_t micro, uint32_t ga)
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
        const sc_net_exchange *x = &p->plan.exchange[i];
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
    const sc_net *g = words("gpt2-xl", 1024);
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
    const sc_net_exchange *x = NULL;
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
            const sc_net_exchange *x = &p.plan.exchange[i];
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
static const sc_net *products(uint32_t n)
{
    const sc_net *g = NULL;
    sc_text t;
    sc_text_init(&t);
    sc_text_add(&t, "inputs:\n  x: {batch: 1, hidden: 2048}\noperators:\n");
    for (uint32_t i = 0; i < n; i++)
        sc_text_add(&t,
                    "  - {path: l.%u.fc, type: linear, out: 2048, bias: "
                    "false}\n",
                    i);
    (void)sc_net_read(t.buf, t.len, "m.yml", &arena, &g, &err);
    no_error();
    sc_text_free(&t);
    return g;
}

/* Runs what was inferred. */
static void run(planned *p, sc_result *r)
{
    sc_sim_opts o;
    (void)sc_net_plan_lower(&p->plan, &arena, &err);
    no_error();
    sc_sim_opts_init(&o);
    o.hw = p->job.hw;
    (void)sc_sim_run(&p->plan.step, &o, &arena, r, &err);
    no_error();
}

static sc_time ends(const sc_result *r, const sc_lifetime *l)
{
    sc_time t = 0;
    for (uint32_t k = 0; k < l->n_last; k++)
        if (r->end[l->last[k]] > t) t = r->end[l->last[k]];
    return t;
}

/* Most gradients of single micro-batches that are there at once. */
static uint32_t most_gradients(const planned *p, const sc_result *r)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < p->plan.step.n_lifetimes; i++) {
        const sc_lifetime *l = &p->plan.step.lifetime[i];
        uint32_t n = 0;
        if (l->kind != SC_MEM_GRAD || l->first == SC_NONE) continue;
        sc_time t = r->start[l->first];
        for (uint32_t k = 0; k < p->plan.step.n_lifetimes; k++) {
            const sc_lifetime *m = &p->plan.step.lifetime[k];
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
    sc_result r;
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

/* Gradients that go to the host: the link to it takes far longer than all else,
 * and a buffer is free when its copy has ended.  Each of `dp` ranks copies 12
 * products of 2048 * 2048 / dp elements, 4 bytes each in each of four
 * micro-batches and 2 of the new weights: 27 s / dp. */
static void buffers_wait_for_the_host(void **state)
{
    (void)state;
    for (uint32_t dp = 1; dp <= 8; dp += 7) {
        planned p;
        sc_result r;
        char text[160];
        snprintf(text, sizeof text,
                 "mesh: {dp: %u}\npreset: {zero: 2}\n"
                 "overlap: {grad: true, grad_bucket: 16MiB}\n"
                 "offload: {optimizer: cpu}\n",
                 dp);
        prepare(&p, text, products(12), 1, 4);
        sc_device slow = *p.job.hw->device;
        sc_hw hw = *p.job.hw;
        slow.host_bw = 33554432;
        hw.device = &slow;
        p.job.hw = &hw;
        p.job.grad_bytes = 4;
        (void)infer_only(&p);
        no_error();
        run(&p, &r);
        /* two buffers, the shard that one of them is reduced to */
        assert_true(most_gradients(&p, &r) == (dp == 1 ? 2 : 3));
        double step = sc_time_to_s(r.makespan) * dp;
        if (step < 27 || step > 27 * 1.05) fail_msg("%g s", step);
    }
}

/* Two products of 2048 * 2048 parameters fill a bucket of up to 40 replicas, four
 * that of 80. */
static void buckets_by_parameters(void **state)
{
    (void)state;
    for (uint32_t dp = 8; dp <= 80; dp += 72) {
        planned p;
        char text[80];
        uint32_t n = 0;
        snprintf(text, sizeof text, "mesh: {dp: %u}\noverlap: {grad: true}\n",
                 dp);
        prepare(&p, text, products(12), 1, 1);
        p.sw.bucket_params = 2 * 2048 * 2048;
        (void)infer_only(&p);
        no_error();
        for (uint32_t i = 0; i < p.plan.n_exchanges; i++)
            n += p.plan.exchange[i].grad;
        assert_int_equal(n, dp == 8 ? 6 : 3);
    }
}

/* ---- weights ------------------------------------------------------------- */

/* Two products in each of `n` layers. */
static const sc_net *layers(uint32_t n)
{
    const sc_net *g = NULL;
    sc_text t;
    sc_text_init(&t);
    sc_text_add(&t,
                "inputs:\n  x: {batch: 1, hidden: 1024}\noperators:\n"
                "  - module: l\n    repeat: %u\n    operators:\n"
                "      - {path: a, type: linear, out: 1024, bias: false}\n"
                "      - {path: b, type: linear, out: 1024, bias: false}\n",
                n);
    (void)sc_net_read(t.buf, t.len, "m.yml", &arena, &g, &err);
    no_error();
    sc_text_free(&t);
    return g;
}

static sc_op named(const planned *p, const char *name)
{
    for (sc_op i = 0; i < p->plan.step.n_ops; i++)
        if (strcmp(p->plan.step.name[i], name) == 0) return i;
    fail_msg("no %s", name);
    return SC_NONE;
}

/* Both weights of layer 3 are gathered by one exchange of twice their bytes,
 * when layer 2 - prefetch has ended, with 0 when the layer before it has. */
static void gathered_by_layers(void **state)
{
    (void)state;
    planned p;
    sc_result r;
    for (int ahead = 0; ahead < 3; ahead++) {
        char before[40];
        prepare(&p, "mesh: {dp: 8}\npreset: {zero: 3}\n", layers(5), 65536, 1);
        p.sw.prefetch = ahead;
        (void)infer_only(&p);
        no_error();
        run(&p, &r);
        snprintf(before, sizeof before, "l.%d.b forward", 2 - ahead);
        sc_time end = r.end[named(&p, before)];
        sc_op a = named(&p, "l.3.a weight all_gather (bucket)");
        assert_int_equal(r.start[a], end);
        assert_int_equal(p.plan.step.bytes[a], 2 * 1024 * 1024 * 2);
    }
}

/* 12 weights of 4 Mi elements of 2 bytes and states of 12: 704,643,072 bytes,
 * each saved once by the eight ranks: 88.1 MB of each to the host, and all at
 * 2 GB/s of a node in 352.3 ms.  One of ten steps does. */
static void saved_once(void **state)
{
    (void)state;
    static const char *const zero[] = {"0", "1", "3"};
    for (size_t i = 0; i < SC_COUNT(zero); i++) {
        planned p;
        sc_result r;
        char text[120];
        snprintf(text, sizeof text,
                 "mesh: {dp: 8}\npreset: {zero: %s}\n"
                 "checkpoint: {every: 10}\n",
                 zero[i]);
        plan_text(&p, text, products(12), 1, 1);
        run(&p, &r);
        sc_op copied = named(&p, "copy of the checkpoint to the host");
        sc_op written = named(&p, "write of the checkpoint");
        double host_bw = p.job.hw->device->host_bw;
        double want[] = {704643072.0 / 8 / host_bw / 10,
                         704643072.0 / 2e9 / 10};
        double is[] = {sc_time_to_s(p.plan.step.work[copied]),
                       sc_time_to_s(p.plan.step.work[written])};
        for (size_t k = 0; k < SC_COUNT(want); k++)
            if (is[k] < want[k] * 0.9999 || is[k] > want[k] * 1.0001)
                fail_msg("ZeRO-%s: %g s, not %g", zero[i], is[k], want[k]);
    }
}

/* ---- members that differ ------------------------------------------------- */

static const sc_net *read_graph(sc_text *t)
{
    const sc_net *g = NULL;
    (void)sc_net_read(t->buf, t->len, "m.yml", &arena, &g, &err);
    no_error();
    sc_text_free(t);
    return g;
}

/* `n` tables of `rows` x `width`, but for the `odd`-th. */
static const sc_net *tables(uint32_t n, uint32_t odd, uint32_t rows,
                            uint32_t width)
{
    sc_text t;
    sc_text_init(&t);
    sc_text_add(&t, "inputs:\n  x: {dims: {batch: 1, pos: 1}, bytes: 8}\n"
                    "operators:\n");
    for (uint32_t i = 0; i < n; i++)
        sc_text_add(&t,
                    "  - {path: emb.%u, type: embed, in: x, rows: %u, width: "
                    "%u}\n",
                    i, i == odd ? rows : 1000, i == odd ? width : 256);
    sc_text_add(&t, "  - {path: all, type: concat, along: hidden, in: [emb.0");
    for (uint32_t i = 1; i < n && i < 60; i++) sc_text_add(&t, ", emb.%u", i);
    sc_text_add(&t, "]}\n");
    return read_graph(&t);
}

static double most_of(const planned *p, value_kind what)
{
    double most = 0;
    for (uint32_t i = 0; i < p->prog.n_values; i++)
        if (p->prog.value[i].what == what && p->prog.value[i].bytes > most)
            most = p->prog.value[i].bytes;
    return most;
}

/* Each of 8 ranks has one table: the exchange is that of the widest, 16,384
 * samples x 256 x 2 bytes = 8 MiB, wherever the narrow one stands, on both
 * ways; memory has to hold the longest, 10,000 x 16 x 2 bytes and 12 of states
 * for each, or 1000 x 256. */
static void tables_by_the_worst(void **state)
{
    (void)state;
    static const char text[] = "mesh: {dp: 8}\nrules:\n"
                               "  - {match: 'emb.*', assign: round_robin, "
                               "over: dp}\n";
    for (uint32_t odd = 0; odd < 8; odd++) {
        planned p;
        plan_text(&p, text, tables(8, odd, 10000, 16), 2048, 1);
        double mib = 1024.0 * 1024;
        assert_true(total(&p.plan, SC_PASS_FWD, SC_ALL_TO_ALL) == 8 * mib);
        assert_true(total(&p.plan, SC_PASS_BWD, SC_ALL_TO_ALL) == 8 * mib);
        assert_true(most_of(&p, VALUE_WEIGHT) == 256000 * 2);
        assert_true(most_of(&p, VALUE_STATE) == 256000 * 12);
        plan_text(&p, text, tables(8, odd, 80000000, 256), 2, 1);
        assert_true(most_of(&p, VALUE_WEIGHT) == 80e6 * 256 * 2);
        assert_true(most_of(&p, VALUE_STATE) == 80e6 * 256 * 12);
    }
}

/* Tables of a node's devices, each for the samples of its node: of 16 x 2048
 * samples half, 8 tables on 8 devices. */
static void tables_by_nodes(void **state)
{
    (void)state;
    planned p;
    plan_text(&p,
              "mesh: {node: 2, gpu: 8}\npreset: {data_parallel: false}\n"
              "rules:\n  - {match: '*', split: {batch: [node, gpu]}}\n"
              "  - {match: 'emb.*', assign: round_robin, over: gpu}\n",
              tables(8, 9, 0, 0), 2048, 1);
    const sc_net_exchange *x = NULL;
    for (uint32_t i = 0; i < p.plan.n_exchanges; i++)
        if (p.plan.exchange[i].coll == SC_ALL_TO_ALL) x = &p.plan.exchange[i];
    assert_true(x && x->size == 8);
    assert_true(x->bytes == 2048.0 * 8 * 256 * 2);
    /* Gradients of a table are summed over nodes. */
    bool summed = false;
    for (uint32_t i = 0; i < p.plan.n_exchanges; i++)
        summed |= p.plan.exchange[i].grad && p.plan.exchange[i].size == 2;
    assert_true(summed);
}

/* No number of tables, and of uses of a weight or a value, is too large. */
static void many(void **state)
{
    (void)state;
    planned p;
    plan_text(&p,
              "mesh: {dp: 8}\nrules:\n"
              "  - {match: 'emb.*', assign: round_robin, over: dp}\n",
              tables(1000, 0, 1000, 256), 2, 1);
    sc_text t;
    sc_text_init(&t);
    sc_text_add(&t, "inputs:\n  x: {batch: 1, hidden: 64}\noperators:\n"
                    "  - {path: l.0, type: linear, out: 64, in: x}\n");
    for (uint32_t i = 1; i < 200; i++)
        sc_text_add(&t,
                    "  - {path: l.%u, type: linear, out: 64, weight: l.0, "
                    "in: %s}\n",
                    i, i < 100 ? "x" : "l.0");
    const sc_net *g = read_graph(&t);
    for (int pp = 1; pp <= 2; pp++) {
        uint32_t grads = 0, uses = 0;
        plan_text(&p, pp == 1 ? "mesh: {dp: 8}\n" : "mesh: {dp: 4, pp: 2}\n", g,
                  1, 2);
        for (uint32_t i = 0; i < p.prog.n_items; i++) {
            const program_item *it = &p.prog.item[i];
            if (it->pass != SC_PASS_WGRAD || it->exchange == SC_NONE) continue;
            grads++;
            uses += it->n_in;
        }
        assert_true(grads >= 1 && uses >= 199);
    }
}

/* ---- what waits for the backward pass ------------------------------------ */

static const char *const chain =
    "inputs:\n  x: {batch: 1, c: 64, h: 8, w: 8}\noperators:\n"
    "  - module: l\n    repeat: 3\n    operators:\n"
    "      - {path: conv, type: conv, out: 64, kernel: 3, pad: same}\n"
    "      - {path: bn, type: batch-norm}\n"
    "      - {path: act, type: act, kind: %s}\n";

/* A ReLU's derivative follows from its result, which the next convolution
 * keeps anyhow: of three operators' results two wait.  A GELU needs its input
 * again. */
static void computed_in_place(void **state)
{
    (void)state;
    static const char *const kind[] = {"relu", "gelu"};
    for (uint32_t k = 0; k < 2; k++) {
        planned p;
        sc_text t;
        sc_text_init(&t);
        sc_text_add(&t, chain, kind[k]);
        plan_text(&p, "mesh: {dp: 1}\n", read_graph(&t), 4, 1);
        bool *waits = SC_NEW_N(&arena, bool, p.prog.n_values);
        uint32_t n = 0;
        for (uint32_t i = 0; i < p.prog.n_items; i++) {
            const program_item *it = &p.prog.item[i];
            for (uint32_t v = 0; v < it->n_in; v++)
                if (it->pass != SC_PASS_FWD &&
                    p.prog.value[it->in[v]].what == VALUE_ACT)
                    waits[it->in[v]] = true;
        }
        for (uint32_t v = 0; v < p.prog.n_values; v++) n += waits[v];
        /* conv, act; conv, bn and, but for the last, act */
        assert_int_equal(n, k ? 8 : 6);
    }
}

/* ---- what says nothing --------------------------------------------------- */

static uint32_t refused(const char *text, const sc_net *g, sc_code code,
                        const char *says)
{
    planned p;
    prepare(&p, text, g, 4, 1);
    assert_int_equal(infer_only(&p), SC_EINPUT);
    assert_int_equal(err.d[0].code, code);
    if (!strstr(err.d[0].msg, says))
        fail_msg("%s lacks %s", err.d[0].msg, says);
    uint32_t n = err.n;
    sc_err_init(&err);
    return n;
}

static void nothing_silent(void **state)
{
    (void)state;
    planned p;
    const sc_net *g = products(3);
    refused("mesh: {dp: 4, foo: 2}\n", g, SC_C_CONFLICT,
            "axis foo divides nothing");
    refused("mesh: {dp: 4, tp: 2}\n", g, SC_C_CONFLICT, "axis tp");
    plan_text(&p, "mesh: {dp: 4, foo: 1}\n", g, 4, 1);
    /* One rule, one error, whatever it matches. */
    assert_int_equal(
        refused("mesh: {x: 4096}\nrules:\n  - {match: '*', split: {out: x}}\n",
                g, SC_C_DIVIDE, "4096 parts"),
        1);
}

/* A dim split over p and q in the other order: all blocks change places, of
 * 16 x 2048 elements of 2 bytes on 4 ranks 16 KiB each. */
static void order_of_axes(void **state)
{
    (void)state;
    planned p;
    plan_text(&p,
              "mesh: {p: 2, q: 2}\npreset: {data_parallel: false}\nrules:\n"
              "  - {match: l.0.fc, split: {out: [p, q]}}\n"
              "  - {match: l.1.fc, split: {in: [q, p]}}\n"
              "  - {match: l.2.fc, split: {out: [q, p]}}\n",
              products(3), 16, 1);
    const sc_net_exchange *x = exchange_of(&p.plan, "l.1.fc", "in:0");
    assert_true(x && x->coll == SC_ALL_TO_ALL && x->size == 4);
    assert_true(x->bytes == 16384);
    plan_text(&p,
              "mesh: {p: 2, q: 2}\npreset: {data_parallel: false}\nrules:\n"
              "  - {match: l.0.fc, split: {out: [q, p]}}\n"
              "  - {match: l.1.fc, split: {in: [q, p]}}\n",
              products(2), 16, 1);
    assert_null(exchange_of(&p.plan, "l.1.fc", "in:0"));
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(transfers_by_their_ranks),
        TEST(norms_hold_nobody_up),
        TEST(two_buffers),
        TEST(buffers_wait_for_the_host),
        TEST(buckets_by_parameters),
        TEST(gathered_by_layers),
        TEST(saved_once),
        TEST(tables_by_the_worst),
        TEST(tables_by_nodes),
        TEST(many),
        TEST(computed_in_place),
        TEST(nothing_silent),
        TEST(order_of_axes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
