/* SPDX-License-Identifier: Apache-2.0 */
/* Remote memory in tiers against its closed forms. */
#include "property.h"
#include "tiny_workload.h"
#include "unit.h"

#include <math.h>
#include <stdio.h>

#define CHUNK (1 << 20)

/* 4 nodes of 4 GPUs; memory of 2 groups. */
static void pool_of(tiny *t, double group, double out, double in)
{
    tiny_init(t);
    tiny_dim(t, SC_DIM_SWITCH, 16, 100, 700, SC_CCL_RING);
    t->pool = (sc_pool){.kind = SC_POOL_HIERARCHICAL,
                        .latency_ns = 500,
                        .bytes_per_ns = group,
                        .nodes = 4,
                        .npus_per_node = 4,
                        .groups = 2,
                        .in_node_bytes_per_ns = in,
                        .in_node_latency_ns = 100,
                        .out_node_bytes_per_ns = out,
                        .out_node_latency_ns = 300,
                        .chunk_bytes = CHUNK};
}

/* ns of W bytes that get these rates in the three stages. */
static double closed(double w, double memory, double out, double in)
{
    double first = w < CHUNK ? w : CHUNK;
    double slowest = fmin(memory, fmin(out, in));
    return 900 + first / memory + first / out + first / in +
           (w - first) / slowest;
}

static void near_ps(sc_time got, double ns)
{
    if (fabs((double)got - ns * 1000) <= 5) return;
    printf("%lld ps, expected %.1f\n", (long long)got, ns * 1000);
    fail();
}

/* The ranks in `mask` load or store `bytes`, the others compute. */
static void run(tiny *t, sc_task_kind kind, uint64_t bytes, uint32_t mask)
{
    tiny_task access = {.kind = kind, .size = bytes};
    tiny_task other = {.kind = SC_TASK_COMP, .us = 1e-6};
    tiny_class(t, &access, 1);
    tiny_class(t, &other, 1);
    tiny_ranks(t);
    for (uint32_t r = 0; r < 16; r++) t->w.ranks[r].cls = !(mask >> r & 1);
    assert_int_equal(tiny_run(t), SC_OK);
    assert_int_equal(t->r.n_finished, 16);
}

static void test_alone(void **state)
{
    (void)state;
    static const uint64_t sizes[] = {0, 1, 1000, CHUNK, CHUNK + 1, 64 * CHUNK};
    static const double rates[][3] = {
        {10, 40, 80}, {50, 7, 80}, {50, 40, 8}, {10, 20, 20}};
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < 6; i++)
            for (int b = 0; b < 4; b++) {
                tiny t;
                const double *r = rates[b];
                pool_of(&t, r[0], r[1], r[2]);
                run(&t, k ? SC_TASK_STORE : SC_TASK_LOAD, sizes[i], 1 << 5);
                double ns = closed((double)sizes[i], 2 * r[0], r[1], r[2]);
                near_ps(t.r.rank[5].finish, ns);
                assert_int_equal(t.r.rank[5].memory, t.r.rank[5].finish);
                tiny_free(&t);
            }
}

/* k readers of a stage get B / k each. */
static void test_shared(void **state)
{
    (void)state;
    static const uint32_t masks[] = {0x0001, 0x0011, 0x1111, 0x0003,
                                     0x000f, 0x3333, 0xffff};
    static const int all[] = {1, 2, 4, 2, 4, 8, 16};
    static const int of_node[] = {1, 1, 1, 2, 4, 2, 4};
    for (int i = 0; i < 7; i++) {
        tiny t;
        double w = 64 * CHUNK;
        pool_of(&t, 50, 40, 30);
        run(&t, SC_TASK_LOAD, (uint64_t)w, masks[i]);
        double ns = closed(w, 100. / all[i], 40. / of_node[i], 30);
        for (uint32_t r = 0; r < 16; r++)
            if (masks[i] >> r & 1) near_ps(t.r.rank[r].finish, ns);
        tiny_free(&t);
    }
}

/* Loads and stores have links of their own and one memory. */
static void test_both_ways(void **state)
{
    (void)state;
    for (int slow = 0; slow < 2; slow++) {
        tiny t;
        double memory = slow ? 5 : 500, w = 32 * CHUNK;
        pool_of(&t, memory, 40, 30);
        tiny_task load = {.kind = SC_TASK_LOAD, .size = 32 * CHUNK};
        tiny_task store = {.kind = SC_TASK_STORE, .size = 32 * CHUNK};
        tiny_task none = {.kind = SC_TASK_COMP, .us = 1e-6};
        tiny_class(&t, &none, 1);
        tiny_class(&t, &load, 1);
        tiny_class(&t, &store, 1);
        tiny_ranks(&t);
        t.w.ranks[0].cls = 1;
        t.w.ranks[1].cls = 2;
        assert_int_equal(tiny_run(&t), SC_OK);
        double alone = closed(w, 2 * memory, 40, 30);
        if (slow) /* the memory has twice the bytes to move */
            assert_true((double)t.r.makespan > 1800 * alone);
        else
            near_ps(t.r.makespan, alone);
        tiny_free(&t);
    }
}

/* One leaves, the other gets all; by hand: both share 40 B/ns until 6 chunks
 * are through. */
static void test_come_and_go(void **state)
{
    (void)state;
    tiny t;
    pool_of(&t, 5000, 40, 3000);
    tiny_task small = {.kind = SC_TASK_LOAD, .size = 6 * CHUNK};
    tiny_task large = {.kind = SC_TASK_LOAD, .size = 16 * CHUNK};
    tiny_task none = {.kind = SC_TASK_COMP, .us = 1e-6};
    tiny_class(&t, &none, 1);
    tiny_class(&t, &small, 1);
    tiny_class(&t, &large, 1);
    tiny_ranks(&t);
    t.w.ranks[0].cls = 1;
    t.w.ranks[1].cls = 2;
    assert_int_equal(tiny_run(&t), SC_OK);
    double c = CHUNK, fill = 900 + 2 * c / 10000 + c / 3000;
    /* the first chunks cross memory at half its rate */
    double first = fill + 6 * c / 20;
    near_ps(t.r.rank[0].finish, first);
    near_ps(t.r.rank[1].finish, first + 10 * c / 40);
    tiny_free(&t);
}

/* ---- in-switch collectives --------------------------------------------- */

static void test_multicast(void **state)
{
    (void)state;
    for (int k = 0; k < 2; k++) {
        sc_task_kind kind = k ? SC_TASK_STORE : SC_TASK_LOAD;
        tiny t;
        double w = 64 * CHUNK;
        pool_of(&t, 50, 40, 60);
        t.pool.in_switch_collectives = true;
        run(&t, kind, (uint64_t)w, 0x000f); /* a whole node: once */
        near_ps(t.r.makespan, closed(w, 100, 40, 60));
        tiny_free(&t);
        pool_of(&t, 50, 40, 60);
        t.pool.in_switch_collectives = true;
        run(&t, kind, (uint64_t)w, 0xffff); /* 4 nodes share the memory */
        near_ps(t.r.makespan, closed(w, 25, 40, 60));
        tiny_free(&t);
        pool_of(&t, 50, 40, 60);
        t.pool.in_switch_collectives = true;
        run(&t, kind, (uint64_t)w, 0x0007); /* not all: each by itself */
        near_ps(t.r.makespan, closed(w, 100. / 3, 40. / 3, 60));
        tiny_free(&t);
    }
}

/* GPU 1 sends to GPU 0 after its load, GPU 0 loads after it has received:
 * their loads can't be one. */
static void test_released(void **state)
{
    (void)state;
    tiny t;
    uint32_t zero[1] = {0}, one[1] = {1}, tag[1] = {0};
    pool_of(&t, 50, 40, 60);
    t.pool.npus_per_node = 2;
    t.pool.nodes = 8;
    t.pool.in_switch_collectives = true;
    tiny_task get[] = {{.kind = SC_TASK_RECV, .size = 100},
                       {.kind = SC_TASK_LOAD, .size = CHUNK}};
    tiny_task put[] = {{.kind = SC_TASK_LOAD, .size = CHUNK},
                       {.kind = SC_TASK_SEND, .size = 100}};
    tiny_task none = {.kind = SC_TASK_COMP, .us = 1e-6};
    tiny_class(&t, &none, 1);
    tiny_class(&t, get, 2);
    tiny_class(&t, put, 2);
    tiny_ranks(&t);
    for (uint32_t c = 1; c < 3; c++)
        t.w.classes[c].n_peers = t.w.classes[c].n_tags = 1;
    t.w.ranks[0] = (sc_rank_trace){.cls = 1, .peers = one, .tags = tag};
    t.w.ranks[1] = (sc_rank_trace){.cls = 2, .peers = zero, .tags = tag};
    assert_int_equal(tiny_run(&t), SC_OK);
    assert_int_equal(t.r.n_finished, 16);
    double each = closed(CHUNK, 100, 40, 60);
    assert_true((double)t.r.makespan > 2000 * each);
    tiny_free(&t);
}

/* ---- any workload ------------------------------------------------------ */

typedef struct sums {
    double memory, out[4][2], in[16][2], sequential;
} sums;

/* No stage carries more than it can, and together is never slower than one
 * after the other. */
static bool conserves(prop *p, void *ctx)
{
    (void)ctx;
    tiny t;
    sums s = {0};
    double group = 1 + (double)prop_below(p, 100);
    double out = 1 + (double)prop_below(p, 100);
    double in = 1 + (double)prop_below(p, 100);
    pool_of(&t, group, out, in);
    for (uint32_t r = 0; r < 16; r++) {
        tiny_task task[6];
        uint32_t n = (uint32_t)prop_below(p, 4);
        for (uint32_t i = 0; i < n; i++) {
            uint64_t bytes = prop_below(p, 8 * CHUNK);
            bool store = prop_below(p, 2);
            double b = (double)bytes, wait = (double)prop_below(p, 300);
            task[2 * i] = (tiny_task){.kind = SC_TASK_COMP, .us = wait};
            task[2 * i + 1] = (tiny_task){
                .kind = store ? SC_TASK_STORE : SC_TASK_LOAD, .size = bytes};
            s.memory += b / (2 * group);
            s.out[r / 4][store] += b / out;
            s.in[r][store] += b / in;
            s.sequential += closed(b, 2 * group, out, in) + wait * 1000;
        }
        tiny_class(&t, task, 2 * n);
    }
    tiny_ranks(&t);
    for (uint32_t r = 0; r < 16; r++) t.w.ranks[r].cls = r;
    bool ok = !tiny_run(&t) && t.r.n_finished == 16;
    double end = (double)t.r.makespan / 1000, most = s.memory;
    for (int r = 0; r < 16; r++)
        for (int k = 0; k < 2; k++)
            most = fmax(most, fmax(s.in[r][k], s.out[r / 4][k]));
    /* a wait of 0 us takes the least time there is */
    if (end < most * (1 - 1e-9) || end > s.sequential + 1) ok = false;
    if (!ok && prop_reporting(p))
        printf("%u finished at %g ns, a stage needs %g, one after the other "
               "%g\n",
               t.r.n_finished, end, most, s.sequential);
    tiny_free(&t);
    return ok;
}

static void test_conserves(void **state)
{
    (void)state;
    assert_true(prop_check("stages", 300, conserves, NULL));
}

static void test_refused(void **state)
{
    (void)state;
    tiny t;
    pool_of(&t, 50, 40, 60);
    t.pool.nodes = 3;
    tiny_task load = {.kind = SC_TASK_LOAD, .size = 1};
    tiny_class(&t, &load, 1);
    assert_int_equal(tiny_run(&t), SC_EINPUT);
    assert_int_equal(t.err.d[0].code, SC_C_CONFLICT);
    tiny_free(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alone),     cmocka_unit_test(test_shared),
        cmocka_unit_test(test_both_ways), cmocka_unit_test(test_come_and_go),
        cmocka_unit_test(test_multicast), cmocka_unit_test(test_released),
        cmocka_unit_test(test_conserves), cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
