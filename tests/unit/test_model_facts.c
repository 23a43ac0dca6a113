/* SPDX-License-Identifier: Apache-2.0 */
/* Where norms, biases and windows of a block are: parameters by hand, and what
 * operators of the network read. */
#include "fixture.h"
#include "model/model_net.h"

#include <stdio.h>
#include <string.h>

/* Per block 64 (64 + 2 * 32) + 64 * 64 of attention, 3 * 64 * 96 of the MLP;
 * table and head 2 * 128 * 64. */
enum { H = 64, KV = 32, FFN = 96, VOCAB = 128, LAYERS = 4 };

#define PRODUCTS \
    ((H * (H + 2 * KV) + H * H + 3 * H * FFN) * LAYERS + 2 * VOCAB * H)

static sc_transformer small(void)
{
    sc_transformer t = {.name = "small",
                        .layers = LAYERS,
                        .hidden = H,
                        .heads = 4,
                        .kv_heads = 2,
                        .ffn = FFN,
                        .vocab = VOCAB,
                        .position = SC_POS_ROTARY,
                        .act = SC_ACT_SWIGLU,
                        .norm = SC_NORM_RMS};
    return t;
}

static const sc_net *network(const sc_transformer *t, uint64_t params)
{
    const sc_model *m = NULL;
    const sc_net *g = NULL;
    (void)sc_model_from_transformer(t, sc_pos_none(), &arena, &m, &err);
    no_error();
    (void)sc_net_from_model(m, 256, false, &arena, &g, &err);
    no_error();
    (void)sc_net_check(g, &err);
    no_error();
    assert_int_equal(m->params, params);
    assert_int_equal(g->params, params);
    return g;
}

static const sc_net_op *find(const sc_net *g, const char *path)
{
    for (uint32_t i = 0; i < g->n_ops; i++)
        if (strcmp(g->op[i].path, path) == 0) return &g->op[i];
    return NULL;
}

/* Whether `reader` reads what `maker` made. */
static bool reads(const sc_net *g, const char *reader, const char *maker)
{
    const sc_net_op *r = find(g, reader);
    const sc_net_op *m = find(g, maker);
    assert_non_null(r);
    assert_non_null(m);
    for (uint32_t i = 0; i < r->n_in; i++)
        if (r->in[i].tensor == m->out.tensor) return true;
    return false;
}

static void test_norms(void **state)
{
    (void)state;
    sc_transformer t = small();
    const sc_net *g = network(&t, PRODUCTS + (2 * LAYERS + 1) * H);
    assert_true(reads(g, "layers.1.qkv", "layers.1.norm1"));
    assert_null(find(g, "layers.1.norm1_out"));
    t.norms = SC_NORMS_AFTER;
    g = network(&t, PRODUCTS + (2 * LAYERS + 1) * H);
    assert_null(find(g, "layers.1.norm1"));
    assert_true(reads(g, "layers.1.qkv", "layers.0.add2"));
    assert_true(reads(g, "layers.1.norm1_out", "layers.1.proj"));
    assert_true(reads(g, "layers.1.add1", "layers.1.norm1_out"));
    assert_true(reads(g, "layers.1.add1", "layers.0.add2"));
    assert_true(reads(g, "layers.1.fc1", "layers.1.add1"));
    assert_true(reads(g, "layers.1.add2", "layers.1.norm2_out"));
    t.norms = SC_NORMS_BOTH;
    g = network(&t, PRODUCTS + (4 * LAYERS + 1) * H);
    assert_true(reads(g, "layers.1.fc1", "layers.1.norm2"));
    assert_true(reads(g, "layers.1.norm2_out", "layers.1.fc2"));
}

/* Parallel parts with a norm each, and with one for both. */
/* Per block of an encoder four products of attention and two of the MLP; a
 * block of a decoder has four more and a third norm.  Each stack has positions
 * and a norm after them. */
static void test_stacks(void **state)
{
    (void)state;

    enum { SEQ = 300, BLOCK = 4 * H * H + 2 * H * FFN };

    sc_transformer t = {.name = "stacks",
                        .layers = 2,
                        .decoder_layers = 3,
                        .hidden = H,
                        .heads = 4,
                        .ffn = FFN,
                        .vocab = VOCAB,
                        .max_seq = SEQ,
                        .tied = true,
                        .embed_norm = true};
    uint64_t products = 2 * BLOCK + 3 * (BLOCK + 4 * H * H);
    uint64_t ends = VOCAB * H + 2 * (SEQ + 1) * H;
    const sc_net *g = network(&t, products + ends + (2 * 2 + 3 * 3 + 2) * H);
    assert_true(reads(g, "layers.2.cross_q", "layers.2.cross_norm"));
    assert_true(reads(g, "layers.2.cross_kv", "layers.1.norm_enc"));
    t.norms = SC_NORMS_SUMS; /* and no norm at the end of a stack */
    g = network(&t, products + ends + (2 * 2 + 3 * 3) * H);
    assert_true(reads(g, "layers.2.cross_norm", "layers.2.cross_add"));
    assert_true(reads(g, "layers.2.cross_kv", "layers.1.norm2"));
    assert_true(reads(g, "layers.3.qkv", "layers.2.norm2"));
    assert_true(reads(g, "head.lm_head", "layers.4.norm2"));
    assert_true(reads(g, "layers.2.qkv", "embedding.embed_decoder_norm"));
}

/* Attention and Mamba-2 read one norm's result, and one sum adds both. */
static void test_both(void **state)
{
    (void)state;
    sc_transformer t = small();
    t.pattern = "B-B-";
    t.ssm_state = 16;
    t.ssm_heads = 8;
    t.ssm_head_dim = 8;
    /* x, B, C, gates and steps; 4 taps and a bias; decay, bias and skip */
    uint64_t d = 64, xbc = d + 2 * 16, attention = H * (H + 2 * KV) + H * H;
    uint64_t scan = H * (xbc + d + 8) + 5 * xbc + 3 * 8 + d + d * H;
    const sc_net *g = network(&t, 2 * (attention + scan + 3 * H * FFN) +
                                      2 * VOCAB * H + (2 * 2 + 1) * H);
    assert_true(reads(g, "layers.2.qkv", "layers.2.norm1"));
    assert_true(reads(g, "layers.2.in_proj", "layers.2.norm1"));
    assert_true(reads(g, "layers.2.mixed", "layers.2.proj"));
    assert_true(reads(g, "layers.2.mixed", "layers.2.out_proj"));
    assert_true(reads(g, "layers.2.add1", "layers.2.mixed"));
    assert_true(reads(g, "layers.2.add1", "layers.1.add2"));
    const sc_net_op *attn = find(g, "layers.2.attn");
    assert_true(attn && attn->causal);
}

/* An encoder with norms before its parts has a norm before its head, and no
 * types of tokens where positions are not learned. */
static void test_encoder(void **state)
{
    (void)state;
    sc_transformer t = small();
    t.encoder = t.tied = t.head_bias = true;
    t.norms = SC_NORMS_BEFORE;
    t.kv_heads = 4;
    t.act = SC_ACT_GEGLU;
    uint64_t ends = VOCAB * H + VOCAB + H * H + H; /* with the head's norm */
    uint64_t blocks = LAYERS * (4 * H * H + 3 * H * FFN);
    const sc_net *g = network(&t, blocks + ends + (2 * LAYERS + 1) * H);
    assert_true(reads(g, "layers.1.qkv", "layers.1.norm1"));
    assert_true(reads(g, "head.chosen", "head.norm_f"));
    assert_null(find(g, "embedding.token_type"));
    assert_false(find(g, "head.mlm_act")->gated);
    t.norms = SC_NORMS_DEFAULT; /* after the sums */
    g = network(&t, blocks + ends + 2 * LAYERS * H);
    assert_true(reads(g, "layers.1.norm1", "layers.1.add1"));
    assert_true(reads(g, "head.chosen", "layers.3.norm2"));
}

/* Tables of 16 elements that a product widens; the head narrows to them again,
 * or has one output for each token. */
static void test_narrow_tables(void **state)
{
    (void)state;

    enum { E = 16, SEQ = 300 };

    sc_transformer t = small();
    t.encoder = t.tied = t.embed_norm = true;
    t.position = SC_POS_LEARNED;
    t.max_seq = SEQ;
    t.embed_width = E;
    t.kv_heads = 4;
    uint64_t blocks = LAYERS * (4 * H * H + 3 * H * FFN + 2 * H);
    uint64_t tables = (VOCAB + SEQ + 2 + 1) * E + E * H;
    const sc_net *g = network(&t, blocks + tables + H * E + E);
    assert_true(reads(g, "embedding.embed_proj", "embedding.embed_norm"));
    assert_true(reads(g, "layers.0.qkv", "embedding.embed_proj"));
    t.replaced = true;
    g = network(&t, blocks + tables + H * H + H);
    assert_true(reads(g, "head.found_dense", "layers.3.norm2"));
    assert_null(find(g, "head.chosen"));
}

/* Scores by distance: 32 per head, once per stack or in each of five blocks. */
static void test_relative(void **state)
{
    (void)state;
    sc_transformer t = small();
    t.kv_heads = 4;
    t.layers = 2;
    t.decoder_layers = 3;
    t.position = SC_POS_RELATIVE;
    uint64_t block = 4 * H * H + 3 * H * FFN;
    uint64_t rest =
        5 * block + 3 * 4 * H * H + 2 * VOCAB * H + (2 * 2 + 3 * 3 + 2) * H;
    (void)network(&t, rest + 2 * 32 * 4);
    t.relative_each = true;
    (void)network(&t, rest + 5 * 32 * 4);
}

static void test_one_norm(void **state)
{
    (void)state;
    sc_transformer t = small();
    t.parallel = true;
    const sc_net *g = network(&t, PRODUCTS + (2 * LAYERS + 1) * H);
    assert_true(reads(g, "layers.1.fc1", "layers.1.norm2"));
    assert_true(reads(g, "layers.1.norm2", "layers.0.add2"));
    t.one_norm = true;
    g = network(&t, PRODUCTS + (LAYERS + 1) * H);
    assert_true(reads(g, "layers.1.fc1", "layers.1.norm1"));
    assert_true(reads(g, "layers.1.qkv", "layers.1.norm1"));
    assert_true(reads(g, "layers.1.add2", "layers.1.add1"));
    assert_true(reads(g, "layers.1.add1", "layers.0.add2"));
    t.parallel = false;
    const sc_model *m = NULL;
    assert_int_equal(
        sc_model_from_transformer(&t, sc_pos_none(), &arena, &m, &err),
        SC_EINPUT);
    assert_non_null(strstr(err.d[0].msg, "one_norm needs parallel"));
}

/* 16 elements a head: a norm for each of queries and keys, or of all 4 and
 * all 2 heads. */
static void test_qk_norm(void **state)
{
    (void)state;
    sc_transformer t = small();
    t.qk_norm = true;
    (void)network(&t, PRODUCTS + (2 * LAYERS + 1) * H + LAYERS * 2 * 16);
    t.qk_norm_all = true;
    const sc_net *g =
        network(&t, PRODUCTS + (2 * LAYERS + 1) * H + LAYERS * (64 + 32));
    /* values pass beside */
    const sc_net_op *op = find(g, "layers.0.qk_norm");
    assert_non_null(op);
    assert_int_equal(g->tensor[op->out.tensor].dim[2].extent, H + 2 * KV);
    /* layer norms have biases, here too (Persimmon) */
    t.qk_norm_all = false;
    t.norm = SC_NORM_LAYER;
    t.norm_bias = true;
    (void)network(&t, PRODUCTS + 2 * (2 * LAYERS + 1) * H + LAYERS * 4 * 16);
}

static void test_biases(void **state)
{
    (void)state;
    sc_transformer t = small();
    uint64_t none = PRODUCTS + (2 * LAYERS + 1) * H;
    t.proj_bias = true;
    (void)network(&t, none + LAYERS * H);
    t.mlp_bias = true;
    (void)network(&t, none + LAYERS * (H + 2 * FFN + H));
    t.head_bias = true;
    (void)network(&t, none + LAYERS * (H + 2 * FFN + H) + VOCAB);
    t.tied = true;
    (void)network(&t, none + LAYERS * (H + 2 * FFN + H) + VOCAB - VOCAB * H);
}

/* Mamba-1 with 128 channels, a state of 16 and steps of rank 4: in_proj 64 x
 * 256, taps and bias 5 x 128, x_proj 128 x 36, dt_proj 4 x 128 and bias, decay
 * and skip 128 x 17, out_proj 128 x 64, a norm. */
static void test_mamba1(void **state)
{
    (void)state;
    sc_transformer t = small();
    t.pattern = "MMMM";
    t.position = SC_POS_NONE;
    t.ssm_heads = 128;
    t.ssm_head_dim = 1;
    t.ssm_state = 16;
    t.ssm_rank = 4;
    uint64_t block =
        64 * 256 + 5 * 128 + 128 * 36 + 5 * 128 + 128 * 17 + 128 * 64 + 64;
    const sc_net *g = network(&t, 4 * block + 2 * VOCAB * H + H);
    assert_true(reads(g, "layers.1.scan", "layers.1.conv"));
    assert_true(reads(g, "layers.1.scan", "layers.1.dt_proj"));
    assert_true(reads(g, "layers.1.scan", "layers.1.x_proj"));
    assert_true(reads(g, "layers.1.scan", "layers.1.in_proj"));
    assert_true(reads(g, "layers.1.out_proj", "layers.1.scan"));
}

static uint64_t window(const sc_net *g, const char *path)
{
    const sc_net_op *op = find(g, path);
    assert_non_null(op);
    return op->window;
}

/* Of 4 blocks every second, or the last, sees all. */
static void test_windows(void **state)
{
    (void)state;
    sc_transformer t = small();
    t.window = 32;
    for (int every = 1; every <= 4; every *= 2) {
        t.full_every = every;
        const sc_net *g = network(&t, PRODUCTS + (2 * LAYERS + 1) * H);
        assert_int_equal(window(g, "layers.0.attn"), every > 1 ? 32 : 0);
        assert_int_equal(window(g, "layers.1.attn"), every > 2 ? 32 : 0);
        assert_int_equal(window(g, "layers.2.attn"), every > 1 ? 32 : 0);
        assert_int_equal(window(g, "layers.3.attn"), 0);
    }
}

/* Letters repeat: full first, as in GPT-Neo and CWM. */
static void test_window_pattern(void **state)
{
    (void)state;

    static const struct {
        const char *letters;
        int windows[LAYERS];
    } all[] = {{"FW", {0, 32, 0, 32}},
               {"FWWW", {0, 32, 32, 32}},
               {"WWF", {32, 32, 0, 32}},
               {"W", {32, 32, 32, 32}}};

    sc_transformer t = small();
    t.window = 32;
    for (size_t k = 0; k < SC_COUNT(all); k++) {
        t.window_pattern = all[k].letters;
        const sc_net *g = network(&t, PRODUCTS + (2 * LAYERS + 1) * H);
        for (int i = 0; i < LAYERS; i++) {
            char path[32];
            snprintf(path, sizeof path, "layers.%d.attn", i);
            assert_int_equal(window(g, path), all[k].windows[i]);
        }
    }
}

/* Norms without weights; a gate of 4 heads of 16 from 64 elements. */
static void test_plain_norm_and_gate(void **state)
{
    (void)state;
    sc_transformer t = small();
    t.plain_norm = true;
    (void)network(&t, PRODUCTS);
    t.plain_norm = false;
    t.attn_gate = true;
    const sc_net *g =
        network(&t, PRODUCTS + (2 * LAYERS + 1) * H + LAYERS * H * H);
    assert_true(reads(g, "layers.1.attn_gated", "layers.1.attn"));
    assert_true(reads(g, "layers.1.attn_gated", "layers.1.attn_gate_act"));
    assert_true(reads(g, "layers.1.attn_gate", "layers.1.norm1"));
    assert_true(reads(g, "layers.1.proj", "layers.1.attn_gated"));
}

/* A gated DeltaNet with 2 keys of 8 and 4 values of 16: in_proj 64 x (2 x 16
 * + 2 x 64 + 2 x 4), 4 taps of 96, decay and bias of 4 heads, a norm of 16,
 * out_proj 64 x 64, a norm.  The rule takes 7 FLOP per token, value and element
 * of a key. */
static void test_delta(void **state)
{
    (void)state;
    sc_transformer t = small();
    t.pattern = "DDDD";
    t.position = SC_POS_NONE;
    t.ssm_heads = 4;
    t.ssm_head_dim = 16;
    t.ssm_groups = 2;
    t.ssm_state = 8;
    uint64_t block = 64 * (32 + 128 + 8) + 4 * 96 + 2 * 4 + 16 + 64 * 64 + 64;
    const sc_net *g = network(&t, 4 * block + 2 * VOCAB * H + H);
    const sc_net_op *scan = find(g, "layers.0.scan");
    assert_non_null(scan);
    assert_true(scan->flops == 7.0 * 256 * 64 * 8);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(test_norms),          T(test_one_norm),
        T(test_qk_norm),        T(test_biases),
        T(test_windows),        T(test_mamba1),
        T(test_window_pattern), T(test_plain_norm_and_gate),
        T(test_delta),          T(test_stacks),
        T(test_relative),       T(test_both),
        T(test_encoder),        T(test_narrow_tables)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
