/* SPDX-License-Identifier: Apache-2.0 */
/* test_plan_graph_sharded.c - weights, gradients and states of operator graphs
 * in parts, and in the widths that programs keep them in, by numbers derived by
 * hand. */
#include "graph_plan.h"

#include <math.h>

static const sc_opgraph *words(const char *name, uint64_t seq)
{
    const sc_opgraph *g = NULL;
    (void)sc_opgraph_from_model(model(name), seq, false, &arena, &g, &err);
    no_error();
    return g;
}

static double elements(const planned *p, uint32_t v)
{
    const sc_opgraph *g = p->job.graph;
    return sc_gtensor_elements(&g->tensor[p->prog.value[v].tensor], 1);
}

/* Products in 8 bits read and write values of 16: what is gathered and what is
 * exchanged is as wide as in bf16.  4096 samples x 4096 x 2 bytes = 32 MiB. */
static void values_of_low_products(void **state)
{
    (void)state;
    static const sc_precision of[] = {SC_BF16, SC_FP8, SC_FP4, SC_INT8};
    for (size_t i = 0; i < SC_COUNT(of); i++) {
        planned p;
        prepare(&p,
                "mesh: {dp: 2, tp: 4}\n"
                "preset: {tensor_parallel: megatron, zero: 3}\n",
                words("llama3-8b", 4096), 1, 1);
        p.job.precision = of[i];
        (void)infer_only(&p);
        no_error();
        const sc_gexchange *x = exchange_of(&p.plan, "layers.3.fc2", "out");
        assert_true(x && x->bytes == 4096.0 * 4096 * 2);
        x = exchange_of(&p.plan, "layers.3.norm1", "weight");
        double each = 4096 * (4096 * 2 + 1024 * 2 + 14336 * 3);
        assert_true(x && x->bytes == 2 * (each / 4 + 2 * 4096));
    }
}

/* What never learns waits in the width of products, what learns in that of the
 * program, without a backward pass in 16 bits. */
static void widths_of_weights(void **state)
{
    (void)state;

    static const struct {
        sc_precision precision;
        bool forward;
        double learns, frozen;
    } rows[] = {{SC_BF16, false, 4, 2},
                {SC_FP8, false, 4, 1},
                {SC_FP8, true, 2, 1},
                {SC_FP32, false, 4, 4}};

    const sc_opgraph *g = words("llama2-13b-lora", 512);
    for (size_t i = 0; i < SC_COUNT(rows); i++) {
        planned p;
        uint32_t n[2] = {0, 0};
        prepare(&p, "mesh: {dp: 2}\n", g, 1, 1);
        p.job.precision = rows[i].precision;
        p.job.forward_only = rows[i].forward;
        p.sw.weight_bytes = 4;
        (void)infer_only(&p);
        no_error();
        for (uint32_t v = 0; v < p.prog.n_values; v++) {
            const gp_value *x = &p.prog.value[v];
            if (x->what != GP_WEIGHT) continue;
            bool learns = g->tensor[x->tensor].learns;
            double each = learns ? rows[i].learns : rows[i].frozen;
            assert_true(x->bytes == each * elements(&p, v));
            n[learns]++;
        }
        assert_true(n[0] > 100 && n[1] > 100);
    }
}

/* An update moves what the program moves, by the host what has to move: of each
 * element a gradient of 2 bytes, 8 of the master, 16 of moments, 2 of the weight
 * in 16 bits.  One of eight ranks updates an eighth. */
static void bytes_of_updates(void **state)
{
    (void)state;

    static const struct {
        double of_program;
        bool host;
        double each;
    } rows[] = {{60, false, 60}, {60, true, 28}, {0, false, 28}};

    const sc_opgraph *g = words("gpt2", 128);
    for (size_t i = 0; i < SC_COUNT(rows); i++) {
        planned p;
        double bytes = 0, learned = 0;
        prepare(&p, "mesh: {dp: 8}\npreset: {zero: 1}\n", g, 1, 1);
        p.job.update_bytes = rows[i].of_program;
        if (rows[i].host) p.strategy.optimizer_tier = SC_TIER_CPU;
        (void)infer_only(&p);
        no_error();
        for (uint32_t k = 0; k < p.prog.n_items; k++) {
            const gp_item *it = &p.prog.item[k];
            if (it->pass == SC_GP_UPDATE && it->exchange == SC_NONE)
                bytes += it->price.bytes;
        }
        for (uint32_t v = 0; v < p.prog.n_values; v++)
            if (p.prog.value[v].what == GP_STATE) learned += elements(&p, v);
        assert_true(learned > 100e6);
        assert_true(fabs(bytes * 8 / learned - rows[i].each) < 1e-9);
    }
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(values_of_low_products),
        TEST(widths_of_weights),
        TEST(bytes_of_updates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
