/* SPDX-License-Identifier: Apache-2.0 */
/* test_import_megatron_table.c - tables of Megatron-LM's arguments, and
 * strategies. */
#include "megatron_case.h"

static void test_table(void **state)
{
    (void)state;
    reading r;
    good(&r, "using world size: 16\n"
             "------------------ arguments ------------------\n"
             "  add_bias_linear ............... False\n"
             "  bf16 .......................... True\n"
             "  fp16 .......................... False\n"
             "  hidden_size ................... 1024\n"
             "  kv_channels ................... 64\n"
             "  max_position_embeddings ....... 2048\n"
             "  micro_batch_size .............. 2\n"
             "  num_attention_heads ........... 16\n"
             "  num_experts ................... None\n"
             "  num_layers .................... 24\n"
             "  padded_vocab_size ............. 50304\n"
             "  seq_length .................... 2048\n"
             "  some_new_thing ................ 7\n"
             "  tensor_model_parallel_size .... 2\n"
             "  world_size .................... 16\n"
             "-------------- end of arguments ---------------\n"
             "  hidden_size ................... 7\n");
    assert_int_equal(r.job.dp, 8);
    assert_int_equal(r.job.gbs, 16); /* micro-batch x dp */
    assert_int_equal(r.m.model.hidden, 1024);
    assert_int_equal(r.m.model.vocab, 50304);
    assert_int_equal(r.m.model.experts, 0);
    assert_false(r.m.model.bias);
    assert_int_equal(r.job.precision, SC_BF16);
    sc_arena_free(&r.a);
}

/* Options of strategies beyond degrees. */
static void test_strategy(void **state)
{
    (void)state;
    reading r;
    good(&r, WHOLE "--cp-comm-type a2a --fp8-format hybrid --fp8-recipe "
                   "blockwise --first-last-layers-bf16 "
                   "--num-layers-at-end-in-bf16 2 --bf16 "
                   "--moe-expert-capacity-factor 1.5 "
                   "--moe-pad-expert-input-to-capacity --world-size 16 "
                   "--use-distributed-optimizer "
                   "--num-distributed-optimizer-instances 4\n");
    assert_int_equal(r.job.cp_comm, SC_CP_ULYSSES);
    assert_int_equal(r.job.precision, SC_RECIPE_FP8_BLOCK);
    assert_string_equal(r.job.keep_bf16, "layers.0-0,layers.22-23");
    assert_true(r.job.capacity == 1.5);
    assert_int_equal(r.job.dp, 16);
    assert_int_equal(r.job.hsdp, 4);
    assert_int_equal(r.job.zero, 1);
    assert_string_equal(origin(&r, false, "cp-comm"),
                        "f:2:1: --cp-comm-type a2a");
    sc_arena_free(&r.a);
    good(&r, WHOLE "--cp-comm-type all_gather p2p --fp8-format hybrid "
                   "--fp8-recipe mxfp8 --moe-expert-capacity-factor 1.5\n");
    assert_int_equal(r.job.cp_comm, SC_CP_ALLGATHER);
    assert_int_equal(r.job.precision, SC_RECIPE_MXFP8);
    assert_true(r.job.capacity == 0); /* room for more than there are */
    assert_int_equal(r.job.hsdp, 0);
    sc_arena_free(&r.a);
    good(&r, WHOLE "--tensor-model-parallel-size 4 --tp-comm-overlap "
                   "--expert-tensor-parallel-size 1 --num-experts 8 "
                   "--overlap-moe-expert-parallel-comm "
                   "--optimizer-cpu-offload --moe-router-num-groups 4 "
                   "--moe-router-group-topk 2 --squared-relu "
                   "--moe-router-enable-expert-bias\n");
    assert_int_equal(r.job.etp, 1);
    assert_int_equal(r.job.tp_overlap, 1);
    assert_int_equal(r.job.ep_overlap, 1);
    assert_int_equal(r.job.optimizer_tier, SC_TIER_CPU);
    assert_int_equal(r.m.model.route_groups, 4);
    assert_int_equal(r.m.model.route_topk, 2);
    assert_true(r.m.model.router_bias);
    assert_int_equal(r.m.model.act, SC_ACT_RELU2);
    sc_arena_free(&r.a);
    good(&r, WHOLE "--tensor-model-parallel-size 4 "
                   "--expert-tensor-parallel-size 4\n");
    assert_int_equal(r.job.etp, 0); /* over all of tp */
    assert_int_equal(r.job.tp_overlap, SC_INFER);
    sc_arena_free(&r.a);
    good(&r, WHOLE "--cp-comm-type a2a+p2p\n");
    assert_int_equal(r.job.cp_comm, SC_CP_RING);
    bool warned = false;
    for (uint32_t i = 0; i < r.m.n_warnings; i++)
        warned = warned || strstr(r.m.warnings[i], "a2a+p2p is modelled");
    assert_true(warned);
    sc_arena_free(&r.a);
    good(&r, WHOLE);
    assert_int_equal(r.job.cp_comm, SC_INFER);
    assert_int_equal(r.job.prefetch, SC_INFER);
    sc_arena_free(&r.a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_strategy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
