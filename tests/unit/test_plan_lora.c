/* SPDX-License-Identifier: Apache-2.0 */
/* Low-rank adapters (Hu et al. 2021): only they are trained. */
#include "kinds.h"
#include "network.h"

#include <stdio.h>
#include <string.h>

static const sc_model *model_of(int64_t rank, bool mlp)
{
    const sc_model *base, *m;
    assert_int_equal(
        sc_model_load("llama2-13b", sc_pos_none(), &f.a, &base, &f.err), 0);
    sc_transformer t = base->t;
    t.lora = rank;
    t.lora_mlp = mlp;
    assert_int_equal(
        sc_model_from_transformer(&t, sc_pos_none(), &f.a, &m, &f.err), 0);
    return m;
}

static sc_run run_of(const sc_model *m, uint32_t dp, uint32_t tp, int zero)
{
    sc_run r = {.size = {1, dp, 1, 1, tp},
                .vpp = 1,
                .mbs = 2,
                .ga = 2,
                .gbs = 4 * dp,
                .seq = 1024,
                .precision = SC_BF16,
                .recipe = SC_RECIPE_BF16,
                .zero = zero,
                .sp = tp > 1};
    char spec[32];
    snprintf(spec, sizeof spec, "h100-sxm:%u", dp * tp);
    load_run(&r, spec, "llama2-13b", "megatron-core");
    r.model = m;
    return r;
}

static bool is_adapter(const char *name)
{
    return strstr(name, "_lora_") != NULL;
}

static double params(const sc_model *m, bool adapters)
{
    double n = 0;
    for (uint32_t i = 0; i < m->layer[1].n_ops; i++)
        if (is_adapter(kind_op_name(m, 1, i)) == adapters)
            n += (double)kind_op_params(m, kind_op(m, 1, i));
    return n;
}

/* Ranks of adapters beside qkv and proj, or beside fc1 and fc2 too: elements
 * per unit of rank. */
static double per_rank(const sc_transformer *t, bool mlp)
{
    double h = (double)t->hidden, q = (double)(t->heads * t->head_dim);
    double kv = 2.0 * (double)(t->kv_heads * t->head_dim);
    double n = (h + q + kv) + (q + h);
    return mlp ? n + (h + 2.0 * (double)t->ffn) + ((double)t->ffn + h) : n;
}

/* Gradients and optimizer states are the adapters'. */
static void states(void **state)
{
    (void)state;
    for (int mlp = 0; mlp <= 1; mlp++)
        for (int64_t rank = 8; rank <= 64; rank *= 8)
            for (int z = 0; z <= 3; z++) {
                sc_run r = run_of(model_of(rank, mlp), 4, 1, z);
                sc_segment *b;
                (void)priced(&r, &b);
                double n = params(r.model, true);
                double all = n + params(r.model, false);
                near(n, (double)rank * per_rank(&r.model->t, mlp));
                near(b[1].params, all);
                near(b[1].params_kept, all / (z >= 3 ? 4 : 1));
                near(b[1].frozen_kept, (all - n) / (z >= 3 ? 4 : 1));
                near(b[1].grads_kept, n / (z >= 2 ? 4 : 1));
                near(b[1].optim_kept, n / (z >= 1 ? 4 : 1));
                near(b[1].grad.bytes, n * r.sw->reduce_bytes);
                near(b[1].update.bytes, z == 1 || z == 2 ? 2 * n : 0);
                near(b[1].gather.bytes, z == 3 ? 2 * all : 0);
            }
}

/* Nothing of the embedding and the head is trained. */
static void ends_are_frozen(void **state)
{
    (void)state;
    sc_run r = run_of(model_of(16, false), 4, 1, 1);
    sc_segment *b;
    (void)priced(&r, &b);
    for (uint32_t l = 0; l < 3; l += 2) {
        assert_true(b[l].params > 0);
        near(b[l].frozen_kept, b[l].params_kept);
        assert_true(b[l].grads_kept == 0 && b[l].optim_kept == 0);
        assert_true(b[l].grad.bytes == 0 && b[l].update.bytes == 0);
        assert_true(b[l].grad.seconds == 0 && b[l].update.seconds == 0);
    }
}

static double products(const sc_run *r, bool adapters)
{
    double n = 0;
    for (uint32_t i = 0; i < r->model->layer[1].n_ops; i++) {
        const sc_net_op *op = kind_op(r->model, 1, i);
        if (op->type == SC_NET_LINEAR && is_adapter(op->path) >= adapters)
            n += sc_kind_flops(op, r->mbs, r->seq);
    }
    return n;
}

/* Backward: one product per linear, for its input; a second, for the weight,
 * of adapters only. */
static void weight_products(void **state)
{
    (void)state;
    for (int mlp = 0; mlp <= 1; mlp++) {
        sc_run r = run_of(model_of(16, mlp), 1, 1, 0);
        network n = network_of(&r);
        double wgrad = 0, rest = 0, fwd = 0;
        for (uint32_t i = 0; i < n.prog.n_items; i++) {
            const program_item *it = &n.prog.item[i];
            if (it->price.flops <= 0 || strcmp(name_of(&n, it), "attn") == 0)
                continue;
            bool adapter = is_adapter(name_of(&n, it));
            if (in_layer(&n, it, 1, FORWARD)) fwd += it->price.flops;
            if (!in_layer(&n, it, 1, BACKWARD)) continue;
            assert_true(it->pass == SC_PASS_DGRAD || adapter);
            *(it->pass == SC_PASS_DGRAD ? &rest : &wgrad) += it->price.flops;
        }
        near(fwd, products(&r, false));
        near(rest, products(&r, false));
        near(wgrad, products(&r, true));
    }
}

/* Everything that depends on what is trained is less than of full training;
 * the time too. */
static void cheaper_than_full(void **state)
{
    (void)state;
    const sc_model *full;
    assert_int_equal(
        sc_model_load("llama2-13b", sc_pos_none(), &f.a, &full, &f.err), 0);
    sc_run a = run_of(model_of(16, false), 4, 2, 1), z = run_of(full, 4, 2, 1);
    sc_segment *x, *y;
    sc_step_costs cx, cy;
    sc_plan p = priced(&a, &x), q = priced(&z, &y);
    assert_true(x[1].params > y[1].params);
    assert_true(x[1].grads_kept < 0.01 * y[1].grads_kept);
    assert_true(x[1].optim_kept < 0.01 * y[1].optim_kept);
    assert_true(x[1].grad.bytes < 0.01 * y[1].grad.bytes);
    assert_true(x[1].bwd_s < y[1].bwd_s && x[1].fwd_s > y[1].fwd_s);
    assert_int_equal(sc_plan_step_costs(&p, x, 0, NULL, &cx, &f.err), SC_OK);
    assert_int_equal(sc_plan_step_costs(&q, y, 0, NULL, &cy, &f.err), SC_OK);
    assert_true(cx.optimizer_s < 0.1 * cy.optimizer_s);
}

/* A frozen product's input gradient needs its weight only; an adapter keeps
 * what it reads, which the frozen product beside it need not keep again. */
static void frozen_inputs_not_kept(void **state)
{
    (void)state;
    const sc_model *full;
    assert_int_equal(
        sc_model_load("llama2-13b", sc_pos_none(), &f.a, &full, &f.err), 0);
    for (int mlp = 0; mlp <= 1; mlp++) {
        sc_run a = run_of(model_of(16, mlp), 1, 1, 0),
               z = run_of(full, 1, 1, 0);
        sc_segment *x, *y;
        (void)priced(&a, &x);
        (void)priced(&z, &y);
        double inner = 2.0 * (double)(a.mbs * a.seq) * 16 * (mlp ? 4 : 2);
        assert_true(x[1].saved <= y[1].saved + inner);
    }
}

/* Tensor parallelism divides one product of each adapter. */
static void tensor_parallel(void **state)
{
    (void)state;
    sc_run r = run_of(model_of(16, true), 1, 2, 0);
    sc_segment *b;
    (void)priced(&r, &b);
    double want = 0;
    static const char *const divided[] = {"qkv_lora_b", "proj_lora_a",
                                          "fc1_lora_b", "fc2_lora_a"};
    for (uint32_t i = 0; i < r.model->layer[1].n_ops; i++) {
        const char *name = kind_op_name(r.model, 1, i);
        if (!is_adapter(name)) continue;
        double n = (double)kind_op_params(r.model, kind_op(r.model, 1, i));
        for (size_t k = 0; k < SC_COUNT(divided); k++)
            if (strcmp(name, divided[k]) == 0) n /= 2;
        want += n;
    }
    near(b[1].grads_kept, want);
    near(b[1].optim_kept, want);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

/* Collectives of whole activations; what adapters exchange is as wide as their
 * rank. */
static uint32_t large(const network *n, phase in, sc_coll coll)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < n->prog.n_items; i++) {
        const program_item *it = &n->prog.item[i];
        if (!in_layer(n, it, 1, in) || !moves_tokens(n, it)) continue;
        const sc_net_exchange *x = &n->plan.exchange[it->exchange];
        double all = 2.0 * (double)(n->job.micro * 1024 * 5120);
        found += x->coll == coll && x->bytes >= all;
    }
    return found;
}

/* A weight and its adapter share one gathered input, their sums one
 * reduce-scatter: adapters add no exchange of the size of the activations. */
static void shared_inputs(void **state)
{
    (void)state;
    for (int lora = 0; lora <= 1; lora++) {
        sc_run r = run_of(model_of(lora ? 16 : 0, lora), 1, 4, 0);
        network n = network_of(&r);
        assert_int_equal(large(&n, FORWARD, SC_ALL_GATHER), 2);
        assert_int_equal(large(&n, FORWARD, SC_REDUCE_SCATTER), 2);
        assert_int_equal(large(&n, FORWARD, SC_ALL_REDUCE), 0);
        assert_int_equal(large(&n, BACKWARD, SC_REDUCE_SCATTER), 2);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(states),          TEST(ends_are_frozen),
        TEST(weight_products), TEST(cheaper_than_full),
        TEST(tensor_parallel), TEST(frozen_inputs_not_kept),
        TEST(shared_inputs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
