/* SPDX-License-Identifier: Apache-2.0 */
/* Memory over time on cases counted by hand. */
#include "fixture.h"
#include "graph/graph.h"
#include "graph_check.h"
#include "sim/sim_memory.h"

#include <string.h>

#define KIB 1024ull
#define MIB (1024 * KIB)
#define OPS 8

static sc_graph x;
static sc_result r;
static sc_lifetime tensor[64];
static uint32_t n;
static sc_mem_device *d;
static sc_mem_opts o;

/* Ops 0 to 7 run one after the other, 10 ps each. */
static void begin(void)
{
    static const uint32_t gpu[] = {0};
    sc_sim_opts eo;
    sc_graph_builder *b = sc_graph_builder_new(&arena);
    sc_graph_add_class(b, "gpu", 0, 1);
    sc_graph_add_class(b, "other", 1, 1);
    for (int i = 0; i < OPS; i++)
        sc_graph_add_op(b, &(sc_op_desc){.name = "op",
                                         .work = 10,
                                         .traffic = SC_NONE,
                                         .dev = gpu,
                                         .n_dev = 1});
    sc_sim_opts_init(&eo);
    assert_int_equal(sc_graph_build(b, &arena, &x, &err), SC_OK);
    assert_int_equal(sc_sim_run(&x, &eo, &arena, &r, &err), SC_OK);
    n = 0;
    o = (sc_mem_opts){0};
}

static const sc_op ops[] = {0, 1, 2, 3, 4, 5, 6, 7};

/* From the start of one op to the end of another; SC_NONE: always, kept. */
static void live(sc_op first, sc_op last, uint64_t bytes, sc_mem_kind kind)
{
    tensor[n++] = (sc_lifetime){.name = "t",
                                .kind = (uint8_t)kind,
                                .bytes = bytes,
                                .first = first,
                                .last = last == SC_NONE ? NULL : ops + last,
                                .n_last = last != SC_NONE};
}

static void run(void)
{
    x.lifetime = tensor;
    x.n_lifetimes = n;
    if (sc_memory_run(&x, &r, &o, &arena, &d, &err)) no_error();
}

static void point(uint32_t k, sc_time t, uint64_t alive, uint64_t reserved)
{
    assert_true(k < d[0].n);
    if (d[0].at[k].t != t || d[0].at[k].live != alive ||
        d[0].at[k].reserved != reserved)
        fail_msg("point %u is %lld: %llu of %llu", k, (long long)d[0].at[k].t,
                 (unsigned long long)d[0].at[k].live,
                 (unsigned long long)d[0].at[k].reserved);
}

/* 512-byte units, 2 MiB segments; what is freed at a moment is used again at
 * that moment. */
static void small(void **state)
{
    (void)state;
    begin();
    live(SC_NONE, SC_NONE, 1, SC_MEM_WEIGHT);
    live(0, 0, MIB, SC_MEM_ACTIVATION);
    live(1, 1, MIB - 600, SC_MEM_ACTIVATION);
    live(2, 2, 0, SC_MEM_COMM);
    run();
    assert_int_equal(d[0].n, 5);
    point(0, 0, 512, 2 * MIB);
    point(1, 0, 512 + MIB, 2 * MIB);
    point(2, 10, 512, 2 * MIB);
    point(3, 10, 512 + MIB - 512, 2 * MIB);
    point(4, 20, 512, 2 * MIB);
    assert_true(d[0].peak_live == 512 + MIB && d[0].peak_t == 0);
    assert_true(d[0].by_kind[SC_MEM_WEIGHT] == 512);
    assert_true(d[0].by_kind[SC_MEM_ACTIVATION] == MIB);
    assert_int_equal(d[0].n_top, 2);
    assert_true(d[0].top[0] == 1 && d[0].top[1] == 0);
    assert_true(d[0].fits);
    assert_true(d[1].n == 0 && d[1].peak_live == 0 && d[1].fits);
}

/* 20 MiB up to 10 MiB, then multiples of 2 MiB; never mixed with the small. */
static void large(void **state)
{
    (void)state;
    begin();
    live(SC_NONE, SC_NONE, MIB + 1, SC_MEM_WEIGHT);
    live(SC_NONE, SC_NONE, 9 * MIB, SC_MEM_GRAD);
    live(SC_NONE, SC_NONE, 9 * MIB, SC_MEM_OPTIM); /* 9 + 1 + 0.0005 left */
    live(SC_NONE, SC_NONE, 11 * MIB, SC_MEM_OPTIM);
    live(SC_NONE, SC_NONE, 600 * KIB, SC_MEM_OTHER);
    run();
    point(0, 0, MIB + 512, 20 * MIB);
    point(1, 0, 10 * MIB + 512, 20 * MIB);
    point(2, 0, 19 * MIB + 512, 20 * MIB);
    point(3, 0, 30 * MIB + 512, 32 * MIB);
    point(4, 0, 30 * MIB + 512 + 600 * KIB, 34 * MIB);
    assert_true(d[0].peak_reserved == 34 * MIB);
}

/* Among the large, what is left of up to 1 MiB stays with the block. */
static void splits(void **state)
{
    (void)state;
    begin();
    live(0, 0, 20 * MIB, SC_MEM_ACTIVATION); /* a segment of its own */
    live(1, 7, 19 * MIB, SC_MEM_ACTIVATION); /* takes all of it */
    live(2, 7, 1 * MIB + 512, SC_MEM_ACTIVATION);
    live(3, 3, 18 * MIB, SC_MEM_ACTIVATION);
    run();
    point(2, 10, 19 * MIB, 20 * MIB);
    point(3, 20, 20 * MIB + 512, 40 * MIB);
    point(4, 30, 38 * MIB + 512, 40 * MIB); /* behind the last */
}

/* Two neighbours that are free are one block; the best fit is taken. */
static void joins(void **state)
{
    (void)state;
    begin();
    live(0, 0, 4 * MIB, SC_MEM_ACTIVATION);
    live(0, 1, 6 * MIB, SC_MEM_ACTIVATION);
    live(0, 7, 5 * MIB, SC_MEM_ACTIVATION); /* 5 left behind it */
    live(1, 7, 4 * MIB, SC_MEM_ACTIVATION); /* in the 4 before, not the 5 */
    live(2, 7, 5 * MIB, SC_MEM_ACTIVATION);
    live(3, 7, 6 * MIB, SC_MEM_ACTIVATION);
    run();
    assert_true(d[0].peak_reserved == 20 * MIB && d[0].peak_live == 20 * MIB);
    begin();
    live(0, 0, 4 * MIB, SC_MEM_ACTIVATION);
    live(0, 1, 6 * MIB, SC_MEM_ACTIVATION);
    live(0, 7, 9 * MIB, SC_MEM_ACTIVATION);
    live(2, 7, 9900 * KIB, SC_MEM_ACTIVATION);
    run();
    assert_true(d[0].peak_reserved == 20 * MIB);
}

/* Cached segments are given back before a device is full. */
static void gives_back(void **state)
{
    (void)state;
    begin();
    o = (sc_mem_opts){.capacity = 110 * MIB, .context = 10 * MIB};
    live(0, 0, 60 * MIB, SC_MEM_ACTIVATION);
    live(1, 1, 80 * MIB, SC_MEM_ACTIVATION);
    run();
    point(2, 10, 80 * MIB, 80 * MIB);
    assert_true(d[0].fits && d[0].peak_reserved == 80 * MIB);
    o.context = 30 * MIB + 1;
    run();
    assert_true(!d[0].fits && d[0].peak_reserved == 80 * MIB);
    o.capacity = 0;
    run();
    assert_true(d[0].fits && d[0].peak_reserved == 140 * MIB);
}

/* The last of several uses counts; what lives for a moment only is counted at
 * that moment; the largest 16 are named. */
static void peak(void **state)
{
    (void)state;
    begin();
    for (uint32_t k = 0; k < 20; k++) live(2, 3, (k + 1) * 512, SC_MEM_COMM);
    tensor[0].last = ops + 3;
    tensor[0].n_last = 3; /* 3, 4, 5 */
    tensor[1].first = 6;  /* after its last use */
    run();
    assert_true(d[0].peak_t == 20 && d[0].n_top == 16);
    assert_int_equal(d[0].top[0], 19);
    assert_int_equal(d[0].top[15], 4);
    assert_true(d[0].peak_live == (20 * 21 / 2 - 2) * 512);
    uint32_t last = d[0].n - 1;
    assert_true(d[0].at[last].t == 60 && d[0].at[last].live == 0);
    assert_true(d[0].at[last - 1].live == 1024);
    assert_true(d[0].at[last - 2].t == 60 && d[0].at[last - 2].live == 0);
}

static void refuse(const char *text)
{
    sc_err_init(&err);
    x.lifetime = tensor;
    x.n_lifetimes = n;
    assert_int_equal(graph_check(&x, &err), SC_EBUG);
    if (!strstr(err.d[0].msg, text)) fail_msg("%s", err.d[0].msg);
}

static void refuses(void **state)
{
    (void)state;
    begin();
    live(0, 0, 1, SC_MEM_WEIGHT);
    tensor[0].device = 2;
    refuse("an unknown class");
    tensor[0].device = 0;
    tensor[0].kind = SC_N_MEM_KINDS;
    refuse("kind");
    tensor[0].kind = 0;
    tensor[0].first = OPS;
    refuse("that allocates it");
    static const sc_op beyond[] = {OPS};
    tensor[0].first = 0;
    tensor[0].last = beyond;
    refuse("uses it last");
    tensor[0].last = ops;
    tensor[0].bytes = UINT64_MAX;
    refuse("larger");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(small, setup, teardown),
        cmocka_unit_test_setup_teardown(large, setup, teardown),
        cmocka_unit_test_setup_teardown(splits, setup, teardown),
        cmocka_unit_test_setup_teardown(joins, setup, teardown),
        cmocka_unit_test_setup_teardown(gives_back, setup, teardown),
        cmocka_unit_test_setup_teardown(peak, setup, teardown),
        cmocka_unit_test_setup_teardown(refuses, setup, teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
