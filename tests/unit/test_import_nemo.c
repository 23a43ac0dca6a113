/* SPDX-License-Identifier: Apache-2.0 */
/* test_import_nemo.c - YAML of NeMo and Megatron-Bridge as jobs and models. */
#include "import_case.h"

#define NEMO   SC_IMPORT_NEMO
#define BRIDGE SC_IMPORT_BRIDGE

#define SIZES                                                        \
    "  num_layers: 4\n  hidden_size: 64\n  num_attention_heads: 8\n" \
    "  max_position_embeddings: 128\n  vocab_size: 1000\n"
#define RUN "  micro_batch_size: 2\n  encoder_seq_length: 128\n"

/* Megatron-Core's defaults around what the cases give. */
#define BEFORE "software=nemo-2024 tp=1 pp=1 cp=1 ep=1 vp=1 "
#define AFTER                                                    \
    " zero=0 sp=no recompute=none schedule=1f1b precision=fp32 " \
    "overlap-grad-reduce=no grad-bytes=4B"

static void test_jobs(void **state)
{
    (void)state;

    static const struct {
        sc_import_format format;
        const char *text, *fields;
    } cases[] = {
        {NEMO, "model:\n" RUN, BEFORE "micro-batch=2 seq=128" AFTER},
        {NEMO, "model:\n" RUN "  global_batch_size: 64\n",
         BEFORE "global-batch=64 micro-batch=2 seq=128" AFTER},
        {NEMO,
         "trainer: {devices: 8, num_nodes: 2, precision: 16}\nmodel:\n" RUN
         "  tensor_model_parallel_size: 4\n  sequence_parallel: true\n"
         "  pipeline_model_parallel_size: 2\n"
         "  virtual_pipeline_model_parallel_size: 2\n  num_layers: 4\n"
         "  hidden_size: 64\n  num_attention_heads: 8\n  vocab_size: 100\n"
         "  max_position_embeddings: 128\n  optim: {name: "
         "distributed_fused_adam, overlap_grad_sync: true}\n",
         "software=nemo-2024 tp=4 pp=2 dp=2 cp=1 ep=1 vp=2 global-batch=4 "
         "micro-batch=2 seq=128 zero=1 sp=yes recompute=none "
         "schedule=interleaved precision=fp16 overlap-grad-reduce=yes "
         "grad-bytes=2B"},
        /* NeMo 2: the strategy of the trainer, the data module */
        {NEMO,
         "trainer:\n  devices: 4\n  strategy:\n    tensor_model_parallel_size: "
         "2\n    ddp: {use_distributed_optimizer: true, grad_reduce_in_fp32: "
         "false}\n  plugins: {precision: bf16-mixed}\ndata: {seq_length: 256, "
         "micro_batch_size: 1, global_batch_size: 8}\n",
         "software=nemo-2024 tp=2 pp=1 dp=2 cp=1 ep=1 vp=1 global-batch=8 "
         "micro-batch=1 seq=256 zero=1 sp=no recompute=none schedule=1f1b "
         "precision=bf16 overlap-grad-reduce=no grad-bytes=2B"},
        {BRIDGE,
         "mixed_precision: bf16_with_mxfp8_mixed\ntrain: {micro_batch_size: 1, "
         "global_batch_size: 16}\nmodel: {seq_length: 512, "
         "recompute_granularity: full, recompute_method: block, "
         "recompute_num_layers: 2}\n",
         "software=megatron-bridge-2026 tp=1 pp=1 cp=1 ep=1 vp=1 "
         "global-batch=16 micro-batch=1 seq=512 zero=0 sp=no recompute=full "
         "recompute-method=block recompute-num-layers=2 schedule=1f1b "
         "precision=mxfp8 overlap-grad-reduce=no grad-bytes=4B"},
        /* interpolations: a value of the file, a default of the environment */
        {NEMO,
         "n: 2\nmodel:\n  micro_batch_size: ${n}\n  encoder_seq_length: "
         "${oc.env:SEQ, 128}\n  data:\n    seq_length: "
         "${model.encoder_seq_length}\n",
         BEFORE "micro-batch=2 seq=128" AFTER},
        /* in a file of the launcher, which is included as `training` */
        {NEMO,
         "model:\n  micro_batch_size: ${divide_ceil:${training.n}, 2}\n"
         "  encoder_seq_length: ${multiply:4, ${.part}}\n  part: 32\n"
         "  global_batch_size: ${divide_floor:${n},2}\n"
         "  activations_checkpoint_method: block\n"
         "  activations_checkpoint_num_layers: 0\nn: 5\n",
         BEFORE "global-batch=2 micro-batch=3 seq=128" AFTER},
    };

    for (size_t i = 0; i < SC_COUNT(cases); i++)
        import_gives(cases[i].format, cases[i].text, cases[i].fields);
}

static sc_transformer model_of(const char *more)
{
    import_case r;
    char text[800];
    snprintf(text, sizeof text, "model:\n" RUN SIZES "%s", more);
    import_text(&r, BRIDGE, text);
    none_found(&r.err, text);
    assert_true(r.out.has_model);
    sc_transformer t = r.out.model;
    sc_arena_free(&r.a);
    return t;
}

static void test_models(void **state)
{
    (void)state;
    sc_transformer t = model_of("");
    assert_int_equal(t.layers, 4);
    assert_int_equal(t.vocab, 1024); /* a multiple of 128 */
    assert_int_equal(t.ffn, 256);
    assert_int_equal(t.kv_heads, 8);
    assert_int_equal(t.act, SC_ACT_GELU);
    assert_int_equal(t.norm, SC_NORM_LAYER);
    assert_true(t.tied && t.bias && t.dropout);
    t = model_of("  num_query_groups: 2\n  gated_linear_unit: true\n"
                 "  activation_func: {_target_: torch.nn.functional.silu}\n"
                 "  normalization: RMSNorm\n  add_bias_linear: false\n"
                 "  add_qkv_bias: true\n  qk_layernorm: true\n"
                 "  share_embeddings_and_output_weights: false\n"
                 "  position_embedding_type: rope\n  hidden_dropout: 0\n"
                 "  attention_dropout: 0.0\n  window_size: [31, 0]\n"
                 "  window_attn_skip_freq: [1, 0, 1, 0]\n"
                 "  softmax_type: learnable\n");
    assert_int_equal(t.kv_heads, 2);
    assert_int_equal(t.act, SC_ACT_SWIGLU);
    assert_int_equal(t.norm, SC_NORM_RMS);
    assert_int_equal(t.position, SC_POS_ROTARY);
    assert_int_equal(t.window, 32);
    assert_int_equal(t.full_every, 2);
    assert_true(t.qkv_bias && t.qk_norm && t.sinks);
    assert_false(t.tied || t.bias || t.dropout);
    t = model_of("  activation: fast-swiglu\n  bias: false\n"
                 "  normalization: layernorm1p\n  num_moe_experts: 8\n"
                 "  moe_router_topk: 2\n  moe_ffn_hidden_size: 96\n"
                 "  moe_layer_freq: [0, 1, 1, 1]\n");
    assert_int_equal(t.act, SC_ACT_SWIGLU);
    assert_int_equal(t.norm, SC_NORM_LAYER);
    assert_int_equal(t.experts, 8);
    assert_int_equal(t.first_dense, 1);
    assert_int_equal(t.moe_ffn, 96);
    t = model_of("  gated_linear_unit: true\n  activation_func: "
                 "torch.nn.functional.gelu\n");
    assert_int_equal(t.act, SC_ACT_GEGLU);
    t = model_of("  ffn_hidden_size: ${multiply:3, ${.hidden_size}}\n"
                 "  position_embedding_type: ALiBi\n");
    assert_int_equal(t.ffn, 192);
    assert_int_equal(t.position, SC_POS_ALIBI);
}

static void test_findings(void **state)
{
    (void)state;

    static const struct {
        const char *text, *errors;
    } cases[] = {
        {"model: {}\n", "missing 0:0, missing 0:0"},
        {"model:\n" RUN "  tensor_model_paralel_size: 2\n", "unknown-key 4:3"},
        {"model:\n" RUN "  tensor_model_parallel_size: two\n", "type 4:31"},
        {"model:\n" RUN "  data: {seq_length: 64}\n", "conflict 4:22"},
        {"model:\n" RUN "  num_layers: ${subtract:2,3}\n",
         "type 4:15, missing 0:0, missing 0:0"},
        {"model:\n" RUN "  num_layers: ${divide_ceil:2, 0}\n",
         "type 4:15, missing 0:0, missing 0:0"},
        {"model:\n" RUN "  num_layers: ${multiply:2, ${.none}}\n",
         "type 4:15, missing 0:0, missing 0:0"},
        {"model:\n" RUN SIZES "  activation: mish\n", "unknown-name 9:15"},
        {"trainer: {precision: int8}\nmodel:\n" RUN, "unknown-name 1:22"},
        {"model:\n" RUN "  peft: {peft_scheme: lora}\n", "unsupported 4:23"},
        {"model:\n" RUN "  num_layers: 4\n", "missing 0:0, missing 0:0"},
        {"model: [\n", "syntax 2:1"},
    };

    for (size_t i = 0; i < SC_COUNT(cases); i++)

        import_fails(NEMO, cases[i].text, cases[i].errors);
    import_warns(NEMO, "model:\n" RUN "  a_new_switch: 3\n",
                 "f:4:3: model.a_new_switch is not modelled");
    import_warns(NEMO,
                 "exp_manager: {name: x}\ntrainer: {max_steps: 5}\nmodel:\n" RUN
                 "  global_batch_size: 8\n  init_method_std: 0.02\n  optim: "
                 "{name: adam, lr: 1}\n  a_new_switch: false\n  nsys_profile: "
                 "{enabled: true}\n",
                 NULL);
}

static void test_recognised(void **state)
{
    (void)state;
    const char *nemo = "trainer: {devices: 8}\nmodel: {num_layers: 2}\n";
    const char *bridge = "model: {}\ntrain: {global_batch_size: 2}\n";
    assert_int_equal(sc_import_recognise(nemo, strlen(nemo)), NEMO);
    assert_int_equal(sc_import_recognise(bridge, strlen(bridge)), BRIDGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_jobs), cmocka_unit_test(test_models),
        cmocka_unit_test(test_findings), cmocka_unit_test(test_recognised)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
