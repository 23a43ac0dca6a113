/* SPDX-License-Identifier: Apache-2.0 */
/* test_model_kinds.c - models of several kinds of blocks: their operators,
 * order, dims and FLOP. */
#include <stepcast/report_model.h>

#include "fixture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const sc_layer *layer_at(const sc_model *m, const char *path)
{
    for (uint32_t i = 0; i < m->n_layers; i++) {
        if (strcmp(m->layer[i].path, path) == 0) return &m->layer[i];
    }
    fail_msg("%s has no %s", m->name, path);
    return NULL;
}

static int index_in(const sc_layer *l, const char *name)
{
    for (uint32_t k = 0; k < l->n_ops; k++) {
        if (strcmp(l->op[k].name, name) == 0) return (int)k;
    }
    fail_msg("%s has no %s", l->path, name);
    return -1;
}

static const sc_operator *op_in(const sc_layer *l, const char *name)
{
    return &l->op[index_in(l, name)];
}

typedef struct kind_case {
    const char *model, *path;
    uint32_t repeat;
    const char *ops;
} kind_case;

#define GQA "norm1 qkv rope attn proj add1 "
#define MLA \
    "norm1 q_down q_norm q_up kv_down kv_norm kv_up rope attn proj add1 "
#define DENSE  "norm2 fc1 act fc2 add2"
#define ROUTED "dispatch experts_fc1 experts_act experts_fc2 combine "
#define SHARED "shared_fc1 shared_act shared_fc2 shared_add "

static const kind_case kinds[] = {
    {"mixtral-8x7b", "layers.*", 32, GQA "norm2 router " ROUTED "add2"},
    {"qwen3-8b", "layers.*", 36,
     "norm1 qkv qk_norm rope attn proj add1 " DENSE},
    {"gpt-oss-120b", "layers.window.*", 18, GQA "norm2 router " ROUTED "add2"},
    {"gpt-oss-120b", "layers.moe.*", 18, GQA "norm2 router " ROUTED "add2"},
    {"deepseek-v3", "layers.dense.*", 3, MLA DENSE},
    {"deepseek-v3", "layers.moe.*", 58,
     MLA "norm2 router " ROUTED SHARED "add2"},
    {"deepseek-v3-mtp", "layers.mtp.*", 1,
     "mtp_norm_h mtp_norm_e mtp_proj " MLA "norm2 router " ROUTED SHARED
     "add2"},
    {"deepseek-v3-mtp", "head", 1,
     "norm_f lm_head loss mtp_norm mtp_lm_head mtp_loss"},
    {"deepseek-v2-lite", "layers.dense.*", 1,
     "norm1 q_proj kv_down kv_norm kv_up rope attn proj add1 " DENSE},
    {"nemotron-h-8b", "layers.mamba.*", 24,
     "norm1 in_proj conv scan ssm_norm out_proj add1"},
    {"nemotron-h-8b", "layers.attention.*", 4, "norm1 qkv attn proj add1"},
    {"nemotron-h-8b", "layers.mlp.*", 24, DENSE},
    {"nemotron-3-super", "layers.moe.*", 40,
     "norm2 router moe_down " ROUTED "moe_up " SHARED "add2"},
    {"llama2-70b-lora", "layers.*", 80,
     "norm1 qkv qkv_lora_a qkv_lora_b qkv_lora_add rope attn proj "
     "proj_lora_a proj_lora_b proj_lora_add add1 " DENSE},
    {"bert-large", "embedding", 1,
     "embed position token_type embed_norm embed_drop"},
    {"bert-large", "layers.*", 24,
     "qkv attn proj add1 norm1 fc1 act fc2 add2 norm2"},
    {"bert-large", "head", 1, "mlm_dense mlm_act mlm_norm lm_head loss"},
    {"t5-base", "layers.encoder.*", 11, "norm1 qkv attn proj add1 " DENSE},
    {"t5-base", "layers.encoder_last.*", 1,
     "norm1 qkv attn proj add1 " DENSE " norm_enc"},
    {"t5-base", "layers.decoder.*", 12,
     "norm1 qkv attn proj add1 cross_norm cross_q cross_kv cross_attn "
     "cross_proj cross_add " DENSE},
    {"vit-b-16", "embedding", 1, "patch class_token position"},
    {"vit-b-16", "head", 1, "norm_f classifier loss"},
};

static void test_operators(void **state)
{
    (void)state;
    for (size_t i = 0; i < SC_COUNT(kinds); i++) {
        const kind_case *c = &kinds[i];
        const sc_layer *l = layer_at(model(c->model), c->path);
        char text[512] = "";
        for (uint32_t k = 0; k < l->n_ops; k++) {
            strncat(text, l->op[k].name, sizeof text - strlen(text) - 1);
            if (k + 1 < l->n_ops) strncat(text, " ", 2);
        }
        if (strcmp(text, c->ops) != 0 || l->repeat != c->repeat) {
            fail_msg("%s %s: %u of %s", c->model, c->path, (unsigned)l->repeat,
                     text);
        }
    }
}

/* First letters of the paths of the blocks, after "layers.". */
static void check_order(const char *name, uint32_t n, const char *start)
{
    const sc_model *m = model(name);
    uint32_t seen[SC_LAYERS] = {0};
    assert_int_equal(m->n_blocks, n);
    for (uint32_t i = 0; i < n; i++) {
        const sc_layer *l = &m->layer[m->order[i]];
        assert_int_equal(l->kind, SC_LAYER_BLOCK);
        seen[m->order[i]]++;
        if (i < strlen(start)) {
            assert_int_equal(l->path[strlen("layers.")], start[i]);
        }
    }
    for (uint32_t i = 1; i + 1 < m->n_layers; i++) {
        assert_int_equal(seen[i], m->layer[i].repeat);
    }
    assert_int_equal(m->layer[0].kind, SC_LAYER_EMBED);
    assert_int_equal(m->layer[m->n_layers - 1].kind, SC_LAYER_HEAD);
}

static void test_order(void **state)
{
    (void)state;
    check_order("llama3-8b", 32, "");
    check_order("gpt-oss-20b", 24, "wmwmwm");
    check_order("deepseek-v3", 61, "dddmmm");
    check_order("deepseek-v3-mtp", 62, "dddm");
    /* mamba and moe share their letter */
    check_order("nemotron-3-nano", 52, "mmmmmammmmmma");
    check_order("t5-small", 12, "eeeeeedddddd");
}

static void test_windows(void **state)
{
    (void)state;
    const sc_model *m = model("gpt-oss-20b");
    const sc_operator *near = op_in(layer_at(m, "layers.window.*"), "attn");
    const sc_operator *far = op_in(layer_at(m, "layers.moe.*"), "attn");
    assert_int_equal(near->window, 128);
    assert_int_equal(far->window, 0);
    assert_int_equal(near->params, 64); /* sinks */
    assert_true(near->causal && !near->cross);
    assert_true(sc_operator_flops(far, 1, 4096) ==
                32 * sc_operator_flops(near, 1, 4096));

    assert_false(
        op_in(layer_at(model("bert-base"), "layers.*"), "attn")->causal);
    m = model("t5-small");
    const sc_layer *l = layer_at(m, "layers.decoder.*");
    assert_true(op_in(l, "attn")->causal);
    const sc_operator *cross = op_in(l, "cross_attn");
    assert_true(cross->cross && !cross->causal);
    assert_int_equal(cross->src, index_in(l, "cross_q"));
    assert_int_equal(cross->src2, index_in(l, "cross_kv"));
    assert_int_equal(op_in(l, "cross_kv")->src, -1);
}

static void check_iter(const sc_iter *it, sc_dimname name, sc_iter_kind kind,
                       uint64_t extent, uint32_t units)
{
    assert_int_equal(it->name, name);
    assert_int_equal(it->kind, kind);
    assert_int_equal(it->extent, extent);
    assert_int_equal(it->units, units);
}

static void test_experts(void **state)
{
    (void)state;
    const sc_layer *l = layer_at(model("qwen3-30b-a3b"), "layers.*");
    const sc_operator *op = op_in(l, "experts_fc1");
    assert_int_equal(op->type, SC_EXPERT);
    assert_int_equal(op->n_iter, 5);
    check_iter(&op->iter[2], SC_D_EXPERT, SC_I_BATCH, 8, 128);
    check_iter(&op->iter[3], SC_D_HIDDEN, SC_I_REDUCE, 2048, 0);
    check_iter(&op->iter[4], SC_D_FFN, SC_I_FREE, 1536, 768);
    assert_int_equal(op->x, 1 | 2 | 4 | 8);
    assert_int_equal(op->w, 4 | 8 | 16);
    assert_int_equal(op->y, 1 | 2 | 4 | 16);
    assert_int_equal(op->params, 128ull * 2048 * 1536);
    assert_true(sc_operator_flops(op, 2, 100) == 2.0 * 200 * 8 * 2048 * 1536);

    op = op_in(l, "router");
    assert_int_equal(op->type, SC_LINEAR);
    check_iter(&op->iter[3], SC_D_RANK, SC_I_FREE, 128, 0);
    op = op_in(l, "dispatch");
    assert_int_equal(op->src, index_in(l, "norm2"));
    assert_int_equal(op->src2, index_in(l, "router"));
    assert_int_equal(op->x, 1 | 2 | 8);
    assert_int_equal(op->y, 1 | 2 | 4 | 8);
    op = op_in(l, "combine");
    assert_int_equal(op->x, 1 | 2 | 4 | 8);
    assert_int_equal(op->y, 1 | 2 | 8);
    assert_int_equal(op_in(l, "add2")->src2, index_in(l, "add1"));

    /* experts in a narrow width; shared ones beside them in the whole */
    l = layer_at(model("nemotron-3-super"), "layers.moe.*");
    check_iter(&op_in(l, "experts_fc2")->iter[4], SC_D_HIDDEN, SC_I_FREE, 1024,
               0);
    assert_int_equal(op_in(l, "moe_down")->params, 4096 * 1024);
    assert_int_equal(op_in(l, "dispatch")->src, index_in(l, "moe_down"));
    assert_int_equal(op_in(l, "shared_fc1")->src, index_in(l, "norm2"));
    assert_int_equal(op_in(l, "shared_add")->src2, index_in(l, "moe_up"));
    assert_int_equal(op_in(l, "add2")->src2, -1);
}

static void test_latent_attention(void **state)
{
    (void)state;
    const sc_layer *l = layer_at(model("deepseek-v3"), "layers.moe.*");
    const sc_operator *op = op_in(l, "attn");
    assert_int_equal(op->qk_dim, 192);
    assert_int_equal(op->v_dim, 128);
    assert_int_equal(op->kv_heads, 128);
    check_iter(&op->iter[2], SC_D_HEAD, SC_I_FREE, 128 * 128, 128);
    assert_int_equal(op->src, index_in(l, "rope"));
    assert_int_equal(op->src2, index_in(l, "kv_up"));
    assert_int_equal(op_in(l, "rope")->src, index_in(l, "q_up"));
    assert_int_equal(op_in(l, "kv_down")->src, index_in(l, "norm1"));
    assert_int_equal(op_in(l, "kv_down")->params, 7168 * 576);
    assert_int_equal(op_in(l, "kv_up")->params, 512 * 128 * 256);
    assert_true(sc_operator_flops(op, 1, 1000) == 2.0 * 128 * 320 * 1e6);
}

static void test_mamba(void **state)
{
    (void)state;
    const sc_layer *l = layer_at(model("nemotron-h-8b"), "layers.mamba.*");
    /* 128 heads of 64 with a state of 128 in 8 groups */
    const sc_operator *op = op_in(l, "in_proj");
    check_iter(&op->iter[3], SC_D_STATE, SC_I_FREE, 2 * 8192 + 2048 + 128, 8);
    assert_int_equal(op_in(l, "conv")->params, (8192 + 2048) * 5);
    op = op_in(l, "scan");
    assert_int_equal(op->type, SC_SCAN);
    assert_true(sc_operator_flops(op, 1, 10) == 7.0 * 10 * 8192 * 128);
    assert_int_equal(op_in(l, "out_proj")->params, 8192 * 4096);
}

static void test_adapters(void **state)
{
    (void)state;
    const sc_model *m = model("llama2-70b-lora");
    const sc_layer *l = layer_at(m, "layers.*");
    const sc_operator *op = op_in(l, "qkv_lora_a");
    assert_int_equal(op->src, index_in(l, "norm1"));
    check_iter(&op->iter[3], SC_D_RANK, SC_I_FREE, 16, 0);
    op = op_in(l, "qkv_lora_add");
    assert_int_equal(op->type, SC_DROPOUT_ADD);
    assert_int_equal(op->src, index_in(l, "qkv_lora_b"));
    assert_int_equal(op->src2, index_in(l, "qkv"));
    assert_int_equal(op_in(l, "rope")->src, index_in(l, "qkv_lora_add"));
    for (uint32_t i = 0; i < m->n_layers; i++) {
        for (uint32_t k = 0; k < m->layer[i].n_ops; k++) {
            const sc_operator *o = &m->layer[i].op[k];
            bool learns = strstr(o->name, "_lora_") || !o->w;
            assert_int_equal(o->frozen, !learns);
        }
    }
    /* 4 per frozen weight, 6 per adapter's, attention as ever */
    const sc_model *whole = model("llama2-70b");
    double matrices = sc_model_flops(whole, 1, 1, true) - 4.0 * 80 * 8192;
    double want = 2 * matrices + 3 * 4.0 * 80 * 8192 + 6 * 44564480.0;
    assert_true(fabs(sc_model_flops(m, 1, 1, false) / want - 1) < 1e-12);

    sc_transformer t = whole->t;
    t.lora = 16;
    t.lora_mlp = true;
    assert_int_equal(
        sc_model_from_transformer(&t, sc_pos_none(), &arena, &m, &err), SC_OK);
    l = layer_at(m, "layers.*");
    assert_int_equal(op_in(l, "act")->src, index_in(l, "fc1_lora_add"));
    assert_int_equal(m->trained_params,
                     44564480 + 80 * 16 * (8192 + 3 * 28672 + 8192));
}

/* Everything at once still fits a layer. */
static void test_longest_block(void **state)
{
    (void)state;
    sc_transformer t = model("deepseek-v3-mtp")->t;
    const sc_model *m = NULL;
    t.lora = 8;
    t.lora_mlp = true;
    t.latent = 1024;
    assert_int_equal(
        sc_model_from_transformer(&t, sc_pos_none(), &arena, &m, &err), SC_OK);
    assert_int_equal(layer_at(m, "layers.mtp.*")->n_ops, 37);
    assert_true(37 <= SC_LAYER_OPS);
}

static void test_report(void **state)
{
    (void)state;
    static const char *const names[] = {"mixtral-8x7b",     "deepseek-v3-mtp",
                                        "nemotron-3-super", "llama2-70b-lora",
                                        "bert-base",        "t5-small",
                                        "vit-b-16",         "gpt-oss-20b"};
    for (size_t i = 0; i < SC_COUNT(names); i++) {
        sc_text text;
        sc_text_init(&text);
        const sc_model *m = model(names[i]);
        sc_report_layers(m, 1, 512, &arena, &text, &err);
        no_error();
        for (uint32_t k = 0; k < m->n_layers; k++) {
            assert_non_null(strstr(text.buf, m->layer[k].path));
        }
        assert_null(strstr(text.buf, "nan"));
        assert_null(strstr(text.buf, "inf "));
        sc_text_free(&text);
    }
    sc_text text;
    sc_text_init(&text);
    sc_report_model(model("gpt-oss-120b"), &text);
    assert_non_null(strstr(text.buf, "  topk         4\n"));
    assert_non_null(strstr(text.buf, "116829156672"));
    assert_non_null(strstr(text.buf, "active             5711982912"));
    sc_text_free(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_operators, setup, teardown),
        cmocka_unit_test_setup_teardown(test_order, setup, teardown),
        cmocka_unit_test_setup_teardown(test_windows, setup, teardown),
        cmocka_unit_test_setup_teardown(test_experts, setup, teardown),
        cmocka_unit_test_setup_teardown(test_latent_attention, setup, teardown),
        cmocka_unit_test_setup_teardown(test_mamba, setup, teardown),
        cmocka_unit_test_setup_teardown(test_adapters, setup, teardown),
        cmocka_unit_test_setup_teardown(test_longest_block, setup, teardown),
        cmocka_unit_test_setup_teardown(test_report, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
