/* SPDX-License-Identifier: Apache-2.0 */
/* Strategy presets: the collectives that follow from them, against what the
 * papers count.  b, s, h: samples of one micro-batch, tokens, width. */
#include "plan/plan_internal.h"
#include "prediction.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* gpt3-6.7b in Megatron's way on tp x dp devices, 2 samples a micro-batch. */
static sc_run run_of(uint32_t tp, uint32_t dp, bool sp, int zero)
{
    sc_run r = {.size = {1, dp, 1, 1, tp},
                .vpp = 1,
                .mbs = 2,
                .ga = 2,
                .gbs = 4 * dp,
                .seq = 1024,
                .precision = SC_FP16,
                .zero = zero,
                .sp = sp};
    char spec[32];
    snprintf(spec, sizeof spec, "a100-sxm-80g:%u", tp * dp);
    load_run(&r, spec, "gpt3-6.7b", "megatron-lm-2022");
    return r;
}

typedef struct count {
    uint32_t n, regathers;
    double bytes;
} count;

static count count_of(const sc_piece *p, uint32_t n, sc_coll coll,
                      uint32_t axes)
{
    count c = {0};
    for (uint32_t i = 0; i < n; i++) {
        if (p[i].kind != SC_OP_COLL) continue;
        assert_int_equal(p[i].axes, axes);
        if (p[i].coll != coll) continue;
        c.n++;
        c.regathers += strcmp(p[i].name, "regather input") == 0;
        c.bytes += p[i].bytes;
    }
    return c;
}

static void is(count c, uint32_t n, double bytes_each)
{
    assert_int_equal(c.n, n);
    assert_true(fabs(c.bytes - n * bytes_each) <= 1e-9 * bytes_each);
}

#define TP (1u << SC_AX_TP)

static double activation(const sc_run *r)
{
    return 2.0 * (double)(r->mbs * r->seq) * (double)r->model->t.hidden;
}

/* Shoeybi et al. 2019, figure 3: f and g, twice each. */
static void megatron(void **state)
{
    (void)state;
    for (uint32_t dp = 1; dp <= 4; dp *= 2) {
        sc_run r = run_of(8, dp, false, 0);
        sc_block b = block(&r, 1);
        double v = activation(&r);
        is(count_of(b.fwd, b.n_fwd, SC_ALL_REDUCE, TP), 2, v);
        is(count_of(b.bwd, b.n_bwd, SC_ALL_REDUCE, TP), 2, v);
        is(count_of(b.fwd, b.n_fwd, SC_ALL_GATHER, TP), 0, v);
        is(count_of(b.bwd, b.n_bwd, SC_ALL_GATHER, TP), 0, v);
        is(count_of(b.bwd, b.n_bwd, SC_REDUCE_SCATTER, TP), 0, v);
    }
    sc_run r = run_of(1, 8, false, 0);
    sc_block b = block(&r, 1);
    is(count_of(b.fwd, b.n_fwd, SC_ALL_REDUCE, TP), 0, 1);
    is(count_of(b.bwd, b.n_bwd, SC_ALL_REDUCE, TP), 0, 1);
}

/* Korthikanti et al. 2022, section 4.2.2: g and g-bar, twice each; the saved
 * inputs of the two column-parallel products are gathered again. */
static void sequence_parallel(void **state)
{
    (void)state;
    sc_run r = run_of(8, 2, true, 0);
    sc_block b = block(&r, 1);
    double v = activation(&r);
    is(count_of(b.fwd, b.n_fwd, SC_ALL_REDUCE, TP), 0, v);
    is(count_of(b.fwd, b.n_fwd, SC_ALL_GATHER, TP), 2, v);
    is(count_of(b.fwd, b.n_fwd, SC_REDUCE_SCATTER, TP), 2, v);
    is(count_of(b.bwd, b.n_bwd, SC_ALL_REDUCE, TP), 0, v);
    is(count_of(b.bwd, b.n_bwd, SC_REDUCE_SCATTER, TP), 2, v);
    count again = count_of(b.bwd, b.n_bwd, SC_ALL_GATHER, TP);
    is(again, 4, v);
    assert_int_equal(again.regathers, 2);
}

/* Recomputing all of a layer repeats its forward collectives. */
static void full_recompute_repeats(void **state)
{
    (void)state;
    sc_run r = run_of(8, 1, false, 0);
    r.recompute = SC_RC_FULL;
    sc_block b = block(&r, 1);
    is(count_of(b.fwd, b.n_fwd, SC_ALL_REDUCE, TP), 2, activation(&r));
    is(count_of(b.bwd, b.n_bwd, SC_ALL_REDUCE, TP), 4, activation(&r));
    sc_run plain = run_of(8, 1, false, 0);
    sc_block once = block(&plain, 1);
    double flops = 0;
    for (uint32_t i = 0; i < once.n_fwd; i++) flops += once.fwd[i].flops;
    assert_true(fabs(b.flops - once.flops - flops) < 1e-9 * flops);
}

/* The vocabulary is split: partial rows of the embedding are summed. */
static void embedding_and_head(void **state)
{
    (void)state;
    sc_run r = run_of(8, 2, false, 0);
    sc_block e = block(&r, 0), h = block(&r, 2);
    is(count_of(e.fwd, e.n_fwd, SC_ALL_REDUCE, TP), 1, activation(&r));
    is(count_of(e.bwd, e.n_bwd, SC_ALL_REDUCE, TP), 0, 1);
    is(count_of(h.fwd, h.n_fwd, SC_ALL_REDUCE, TP), 0, 1);
    is(count_of(h.bwd, h.n_bwd, SC_ALL_REDUCE, TP), 1, activation(&r));
    assert_true(e.params > 0 && h.params < e.params / 100); /* tied */
}

static double layer_params(const sc_model *m, uint32_t l)
{
    double n = 0;
    for (uint32_t i = 0; i < m->layer[l].n_ops; i++)
        n += (double)m->layer[l].op[i].params;
    return n;
}

static void data_parallel(void **state)
{
    (void)state;
    sc_run r = run_of(1, 8, false, 0);
    for (uint32_t l = 0; l < 3; l++) {
        sc_block b = block(&r, l);
        double n = layer_params(r.model, l);
        assert_true(b.params == n && b.params_kept == n);
        assert_true(b.grads_kept == n && b.optim_kept == n);
        assert_int_equal(b.grad.coll[1u << SC_AX_DP], SC_ALL_REDUCE);
        assert_true(fabs(b.grad_bytes - n * r.sw->reduce_bytes) < 1e-6 * n);
        assert_true(b.grad_s > 0);
        assert_true(b.gather_bytes == 0 && b.update_bytes == 0);
        assert_true(b.gather_s == 0 && b.update_s == 0);
    }
}

/* Tensor parallelism divides the products' weights, not the norms'. */
static void tensor_parallel_weights(void **state)
{
    (void)state;
    sc_run r = run_of(8, 1, false, 0);
    sc_block b = block(&r, 1);
    double h = (double)r.model->t.hidden, all = layer_params(r.model, 1);
    /* 12 h^2 products and the biases of qkv and fc1 (3 + 4) are divided; both
     * norms (4 h) and the biases of row-parallel products are whole. */
    double divided = 12 * h * h, least = divided / 8, most = least + 13 * h;
    assert_true(all == divided + 13 * h);
    assert_true(b.params >= least && b.params <= most);
    assert_true(b.grad_bytes == 0 && b.grad_s == 0);
}

static void zero_states(void **state)
{
    (void)state;
    const uint32_t dp = 8;
    for (int z = 0; z <= 3; z++) {
        sc_run r = run_of(1, dp, false, z);
        sc_block b = block(&r, 1);
        double n = layer_params(r.model, 1);
        double low = sc_precision_bytes(SC_BF16);
        assert_true(fabs(b.optim_kept - n / (z >= 1 ? dp : 1)) < 1e-6);
        assert_true(fabs(b.grads_kept - n / (z >= 2 ? dp : 1)) < 1e-6);
        assert_true(fabs(b.params_kept - n / (z >= 3 ? dp : 1)) < 1e-6);
        assert_true(b.params == n);
        assert_int_equal(b.grad.coll[1u << SC_AX_DP],
                         z ? SC_REDUCE_SCATTER : SC_ALL_REDUCE);
        assert_true(fabs(b.grad_bytes - n * r.sw->reduce_bytes) < 1);
        assert_true(fabs(b.update_bytes - (z == 1 || z == 2 ? n * low : 0)) <
                    1);
        assert_true(fabs(b.gather_bytes - (z == 3 ? n * low : 0)) < 1);
    }
}

/* Rajbhandari et al. 2020, section 7: stages 1 and 2 move what plain data
 * parallelism moves, stage 3 half as much again (gathers twice, for forward
 * and backward, instead of once) if all of it has the same width. */
static void zero_volume(void **state)
{
    (void)state;
    double port[4];
    for (int z = 0; z <= 3; z++) {
        sc_run r = run_of(1, 8, false, z);
        sc_software sw = *r.sw;
        sw.reduce_bytes = 2;
        r.sw = &sw;
        sc_block b = block(&r, 1);
        /* ring: an all-reduce moves twice its V, the others once */
        port[z] =
            b.grad_bytes * (z ? 1 : 2) + b.update_bytes + 2 * b.gather_bytes;
    }
    assert_true(fabs(port[1] / port[0] - 1) < 1e-9);
    assert_true(fabs(port[2] / port[0] - 1) < 1e-9);
    assert_true(fabs(port[3] / port[0] - 1.5) < 1e-9);
}

/* ---- rules --------------------------------------------------------------- */

static sc_rule split(const char *match, sc_dimname d, sc_axis ax,
                     const char *origin)
{
    return (sc_rule){.match = match,
                     .aspect = SC_R_SPLIT,
                     .dim = (uint8_t)d,
                     .axes = sc_axlist_add(0, ax),
                     .origin = origin};
}

static const sc_operator *op_named(const sc_model *m, const char *name)
{
    for (uint32_t i = 0; i < m->layer[1].n_ops; i++)
        if (strcmp(m->layer[1].op[i].name, name) == 0)
            return &m->layer[1].op[i];
    fail();
    return NULL;
}

static void most_specific_wins(void **state)
{
    (void)state;
    sc_rule rules[] = {
        split("layers.*.fc1", SC_D_FFN, SC_AX_TP, "exact"),
        split("*", SC_D_FFN, SC_AX_DP, "all"),
        split("layers.*", SC_D_FFN, SC_AX_CP, "subtree"),
        split("layers.*.fc2", SC_D_FFN, SC_AX_CP, "first of equals"),
        split("layers.*.fc2", SC_D_FFN, SC_AX_TP, "second of equals"),
    };
    sc_plan p = {.run = run_of(2, 2, false, 0),
                 .rules = rules,
                 .n_rules = SC_COUNT(rules)};

    const struct {
        const char *op;
        sc_axis ax;
    } want[] = {{"fc1", SC_AX_TP}, {"act", SC_AX_CP}, {"fc2", SC_AX_TP}};

    for (size_t i = 0; i < SC_COUNT(want); i++) {
        sc_placed o;
        assert_int_equal(
            plan_resolve(&p, 1, op_named(p.run.model, want[i].op), &o, &f.err),
            SC_OK);
        assert_int_equal(o.split.shard[SC_D_FFN], sc_axlist_add(0, want[i].ax));
    }
}

static void conflict_names_both(void **state)
{
    (void)state;
    sc_rule rules[] = {
        split("layers.*.fc1", SC_D_FFN, SC_AX_TP, "preset one"),
        split("layers.*", SC_D_SEQ, SC_AX_TP, "preset two"),
    };
    sc_plan p = {.run = run_of(2, 1, false, 0), .rules = rules, .n_rules = 2};
    sc_placed o;
    const sc_operator *fc1 = op_named(p.run.model, "fc1");
    assert_int_equal(plan_resolve(&p, 1, fc1, &o, &f.err), SC_EINPUT);
    assert_int_equal(f.err.n, 1);
    assert_int_equal(f.err.d[0].code, SC_C_CONFLICT);
    static const char *const parts[] = {"layers.*.fc1", "preset one",
                                        "'layers.*'", "preset two", "tp"};
    for (size_t i = 0; i < SC_COUNT(parts); i++)
        assert_non_null(strstr(f.err.d[0].msg, parts[i]));
    p.run.size[SC_AX_TP] = 1; /* nothing is split then */
    assert_int_equal(plan_resolve(&p, 1, fc1, &o, &f.err), SC_OK);
}

static void opaque_is_refused(void **state)
{
    (void)state;
    sc_rule rule = split("layers.*.norm1", SC_D_HIDDEN, SC_AX_TP, "preset x");
    sc_plan p = {.run = run_of(2, 1, false, 0), .rules = &rule, .n_rules = 1};
    sc_placed o;
    assert_int_equal(
        plan_resolve(&p, 1, op_named(p.run.model, "norm1"), &o, &f.err),
        SC_EINPUT);
    assert_int_equal(f.err.d[0].code, SC_C_CONFLICT);
    assert_non_null(strstr(f.err.d[0].msg, "layers.*.norm1"));
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(megatron),
                                       TEST(sequence_parallel),
                                       TEST(full_recompute_repeats),
                                       TEST(embedding_and_head),
                                       TEST(data_parallel),
                                       TEST(tensor_parallel_weights),
                                       TEST(zero_states),
                                       TEST(zero_volume),
                                       TEST(most_specific_wins),
                                       TEST(conflict_names_both),
                                       TEST(opaque_is_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
