/* SPDX-License-Identifier: Apache-2.0 */
/* test_plan_net_sharded.c - weights, gradients and states of operator networks
 * in parts, and in the widths that programs keep them in, by numbers derived by
 * hand. */
#include "net_plan.h"

#include <math.h>

static double elements(const planned *p, uint32_t v)
{
    const sc_net *g = p->job.net;
    return sc_tensor_elements(&g->tensor[p->prog.value[v].tensor], 1);
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
        const sc_net_exchange *x = exchange_of(&p.plan, "layers.3.fc2", "out");
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

    const sc_net *g = words("llama2-13b-lora", 512);
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
            const program_value *x = &p.prog.value[v];
            if (x->what != VALUE_WEIGHT) continue;
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

    const sc_net *g = words("gpt2", 128);
    for (size_t i = 0; i < SC_COUNT(rows); i++) {
        planned p;
        double bytes = 0, learned = 0;
        prepare(&p, "mesh: {dp: 8}\npreset: {zero: 1}\n", g, 1, 1);
        p.job.update_bytes = rows[i].of_program;
        if (rows[i].host) p.strategy.optimizer_tier = SC_TIER_CPU;
        (void)infer_only(&p);
        no_error();
        for (uint32_t k = 0; k < p.prog.n_items; k++) {
            const program_item *it = &p.prog.item[k];
            if (it->pass == SC_PASS_UPDATE && it->exchange == SC_NONE)
                bytes += it->price.bytes;
        }
        for (uint32_t v = 0; v < p.prog.n_values; v++)
            if (p.prog.value[v].what == VALUE_STATE) learned += elements(&p, v);
        assert_true(learned > 100e6);
        assert_true(fabs(bytes * 8 / learned - rows[i].each) < 1e-9);
    }
}

/* ---- groups --------------------------------------------------------------- */

/* Both tables of llama3-8b, and the norm behind the last layer. */
#define TABLE (128256.0 * 4096)
#define ROOT  (2 * TABLE + 4096)
/* Of a layer: q and o, k and v, three of the feed-forward net, two norms. */
#define LAYER (4096.0 * (2 * 4096 + 2 * 1024 + 3 * 14336) + 2 * 4096)

/* FSDP2 as torchtitan uses it, on llama3-8b with `ga` micro-batches. */
static void fsdp2(planned *p, const char *mesh, uint32_t ga)
{
    prepare(p, mesh, words("llama3-8b", 1024), 1, ga);
    p->sw.root_group = p->sw.stage_gather = p->sw.zero2_weights = true;
    p->sw.bucket_bytes = 0;
    p->sw.weight_bytes = p->sw.reduce_bytes = 4;
    p->sw.accum_bytes = 12;
    p->job.grad_bytes = 4;
    (void)infer_only(p);
    no_error();
    (void)sc_net_plan_lower(&p->plan, &arena, &err);
    no_error();
}

/* Operations whose names begin and end so. */
static uint32_t operations(const planned *p, const char *begin, const char *end)
{
    uint32_t n = 0;
    for (sc_op i = 0; i < p->plan.step.n_ops; i++) {
        const char *name = p->plan.step.name[i], *at = strstr(name, end);
        n += strncmp(name, begin, strlen(begin)) == 0 && at &&
             strcmp(at, end) == 0;
    }
    return n;
}

static double lives(const planned *p, const char *name)
{
    double most = 0;
    for (uint32_t i = 0; i < p->plan.step.n_lifetimes; i++) {
        const sc_lifetime *l = &p->plan.step.lifetime[i];
        if (strcmp(l->name, name) == 0) most = fmax(most, (double)l->bytes);
    }
    return most;
}

/* What no block has is gathered once for both passes, reduced as one behind all
 * layers, and its buffer is used for nothing else. */
static void one_root(void **state)
{
    (void)state;
    static const char gather[] = "weight all_gather (bucket)";
    planned p;
    fsdp2(&p, "mesh: {dp: 8}\npreset: {zero: 3}\n", 2);
    const sc_net_exchange *x =
        exchange_of(&p.plan, "embedding.embed", "weight");
    assert_true(x && x->bytes == 2 * ROOT);
    assert_int_equal(operations(&p, "embedding.embed", gather), 2);
    assert_int_equal(operations(&p, "head", gather), 0);
    assert_int_equal(operations(&p, "layers.5.", gather), 4);
    uint32_t last = 0, n = 0;
    for (uint32_t i = 0; i < p.plan.n_exchanges; i++)
        if (p.plan.exchange[i].grad) last = i;
    for (uint32_t i = 0; i < p.plan.n_exchanges; i++)
        n += p.plan.exchange[i].grad;
    assert_int_equal(n, 1 + 32);
    assert_true(p.plan.exchange[last].bytes == 4 * ROOT);
    assert_true(lives(&p, "all-gather buffers") == 2 * ROOT);
    /* Without the group each has its own, given up between the passes. */
    p.sw.root_group = false;
    (void)infer_only(&p);
    x = exchange_of(&p.plan, "embedding.embed", "weight");
    assert_true(x && x->bytes == 2 * TABLE);
    assert_non_null(exchange_of(&p.plan, "head.norm_f", "weight"));
}

/* Without resharding behind the forward pass a layer is gathered once in each of
 * two micro-batches, not twice. */
static void gathered_for_both_passes(void **state)
{
    (void)state;
    static const char gather[] = "weight all_gather (bucket)";
    planned p;
    fsdp2(&p, "mesh: {dp: 8}\npreset: {zero: 2}\n", 2);
    assert_int_equal(operations(&p, "layers.5.", gather), 2);
    for (uint32_t v = 0; v < p.prog.n_values; v++) {
        const program_value *x = &p.prog.value[v];
        if (x->what != VALUE_WEIGHT) continue;
        assert_true(x->bytes == p.sw.weight_bytes * elements(&p, v) / 8);
    }
}

/* With stages, weights are gathered and gradients reduced once a step; ends
 * have groups of their own.  On their streams is room for the next layer. */
static void whole_for_a_step(void **state)
{
    (void)state;
    static const char gather[] = "weight all_gather (bucket)";
    planned p;
    fsdp2(&p, "mesh: {pp: 2, dp: 4}\npreset: {zero: 3}\n", 8);
    assert_int_equal(operations(&p, "layers.5.", gather), 1);
    assert_int_equal(
        operations(&p, "layers.5.", "weight grad reduce_scatter (bucket)"), 1);
    const sc_net_exchange *x =
        exchange_of(&p.plan, "embedding.embed", "weight");
    assert_true(x && x->bytes == 2 * TABLE);
    assert_true(lives(&p, "all-gather buffers") ==
                2 * (TABLE + 4096) + 2 * LAYER);
    /* Summed over micro-batches in fp32, all the time. */
    for (uint32_t i = 0; i < p.plan.step.n_lifetimes; i++) {
        const sc_lifetime *l = &p.plan.step.lifetime[i];
        if (strncmp(l->name, "layers.5.", 9) != 0 ||
            (double)l->bytes != 4 * LAYER)
            continue;
        assert_int_equal(l->first, SC_NONE);
        assert_int_equal(l->kind, SC_MEM_GRAD);
        return;
    }
    fail_msg("no gradient of layer 5 is kept");
}

/* Gradients of which a rank keeps a part are made in 16 bits: cast for their
 * exchange 2 bytes are read and 4 written; added to what other micro-batches
 * left as many as the program moves for that. */
static void made_as_wide_as_values(void **state)
{
    (void)state;

    static const struct {
        const char *mesh;
        uint32_t ga;
        double moved;
    } rows[] = {{"mesh: {dp: 8}\npreset: {zero: 3}\n", 1, 6},
                {"mesh: {dp: 8}\npreset: {zero: 3}\n", 4, 6},
                {"mesh: {dp: 4, pp: 2}\npreset: {zero: 3}\n", 4, 12}};

    for (size_t i = 0; i < SC_COUNT(rows); i++) {
        planned p;
        double fresh = 0, wide = 0;
        fsdp2(&p, rows[i].mesh, rows[i].ga);
        for (uint32_t k = 0; k < p.prog.n_items; k++) {
            const program_item *it = &p.prog.item[k];
            const char *path = p.job.net->op[it->op].path;
            if (it->exchange != SC_NONE || it->pass != SC_PASS_WGRAD ||
                strncmp(path, "layers.5.", 9) != 0)
                continue;
            const program_value *v = &p.prog.value[it->out];
            if (v->what == VALUE_WEIGHT_GRAD) fresh += v->bytes;
            if (v->what != VALUE_GRAD_KEPT) continue;
            wide += v->bytes;
            assert_true(it->price.bytes == rows[i].moved * LAYER);
        }
        assert_true(fresh == 2 * LAYER && wide == 4 * LAYER);
    }
}

static double product_bytes(planned *p, const char *zero, uint32_t ga)
{
    char text[80];
    snprintf(text, sizeof text, "mesh: {dp: 8}\npreset: {zero: %s}\n", zero);
    fsdp2(p, text, ga);
    for (uint32_t k = 0; k < p->prog.n_items; k++) {
        const program_item *it = &p->prog.item[k];
        if (it->pass == SC_PASS_WGRAD && it->exchange == SC_NONE &&
            strcmp(p->job.net->op[it->op].path, "layers.5.fc2") == 0)
            return it->price.bytes;
    }
    return 0;
}

/* A whole gradient is added to what other micro-batches left, 12 bytes per
 * element; of a shard only a shard is. */
static void shards_are_summed_behind(void **state)
{
    (void)state;
    planned p;
    double once = product_bytes(&p, "3", 1);
    assert_true(product_bytes(&p, "3", 4) == once);
    assert_true(product_bytes(&p, "0", 1) == once);
    assert_true(product_bytes(&p, "0", 4) == once + 12 * 4096.0 * 14336);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(values_of_low_products),   TEST(widths_of_weights),
        TEST(bytes_of_updates),         TEST(one_root),
        TEST(gathered_for_both_passes), TEST(whole_for_a_step),
        TEST(made_as_wide_as_values),   TEST(shards_are_summed_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
