/* SPDX-License-Identifier: Apache-2.0 */
/* What strategy.yml says, as it is read; patterns on paths. */
#include "fixture.h"
#include "plan/plan.h"
#include "plan/plan_strategy.h"

#include <math.h>
#include <string.h>

static const sc_strategy *read(const char *text)
{
    sc_strategy *s = SC_NEW(&arena, sc_strategy);
    assert_non_null(s);
    (void)sc_strategy_read(text, strlen(text), "strategy.yml", &arena, s, &err);
    no_error();
    return s;
}

static sc_axes axes(const sc_strategy *s, const char *a, const char *b)
{
    sc_axes list = sc_strategy_axes(s, 1u << sc_axis_named(a));
    return b ? sc_axes_add(list,
                           (uint32_t)sc_strategy_axis(s, sc_axis_named(b)))
             : list;
}

static const char all_sections[] =
    "model: gpt2-xl\n"
    "cluster: dgx1-v100:4\n"
    "mesh: {pp: 2, dp: 4, tp: 4}\n"
    "batch: {global: 512, micro: 4, seq: 1024}\n"
    "precision: bf16\n"
    "optimizer: adam\n"
    "preset: {tensor_parallel: megatron-sp, zero: 1, zero_axis: dp,\n"
    "         recompute: selective, data_parallel: false}\n"
    "pipeline: {virtual: 2, cuts: [10, 14, 12, 12],\n"
    "           max_in_flight: [4, 3], order: order.yml}\n"
    "overlap: {grad_bucket: 25MB, grad: yes, p2p: off, gamma: 0.3}\n"
    "offload: {activations: 0.5, optimizer: cpu}\n"
    "checkpoint: {every: 100, async: true, to: nvme}\n"
    "pools: [{name: a, device: h100-sxm, stages: 1},\n"
    "        {name: b, device: a100-sxm-80g, stages: 1}]\n";

static void every_section(void **state)
{
    (void)state;
    const sc_strategy *s = read(all_sections);
    assert_string_equal(s->model, "gpt2-xl");
    assert_int_equal(s->model_pos.line, 1);
    assert_int_equal(s->cluster_pos.col, 10);
    assert_int_equal(s->n_axes, 3);
    assert_string_equal(s->axis[0].name, "pp");
    assert_int_equal(s->axis[2].size, 4);
    assert_int_equal(s->axis[2].pos.line, 3);
    assert_int_equal(s->axis[2].pos.col, 22);
    assert_int_equal(sc_strategy_ranks(s), 32);
    assert_int_equal(sc_strategy_degree(s, SC_AX_DP), 4);
    assert_int_equal(sc_strategy_degree(s, SC_AX_CP), 1);
    /* rank 22 = 16 * pp 1 + 4 * dp 1 + tp 2 */
    assert_int_equal(sc_strategy_stride(s, 0), 16);
    assert_int_equal(sc_strategy_stride(s, -1), 1);
    assert_int_equal(sc_strategy_coordinate(s, 0, 22), 1);
    assert_int_equal(sc_strategy_coordinate(s, 1, 22), 1);
    assert_int_equal(sc_strategy_coordinate(s, 2, 22), 2);
    assert_int_equal(sc_strategy_coordinate(s, -1, 22), 0);
    assert_int_equal(s->global, 512);
    assert_int_equal(s->micro, 4);
    assert_int_equal(s->seq, 1024);
    assert_int_equal(s->precision, SC_RECIPE_BF16);
    assert_string_equal(s->optimizer, "adam");
    assert_int_equal(s->tensor_parallel, 2);
    assert_int_equal(s->zero, 1);
    assert_int_equal(s->zero_axis, 1);
    assert_int_equal(s->recompute, SC_RC_SELECTIVE);
    assert_false(s->data_parallel);
    assert_int_equal(s->checkpoint_every, 100);
    assert_true(s->checkpoint_async);
    assert_int_equal(s->checkpoint_tier, SC_TIER_NVME);
    assert_true(s->offload_activations == 0.5);
    assert_int_equal(s->optimizer_tier, SC_TIER_CPU);
    assert_int_equal(s->n_pools, 2);
    assert_string_equal(s->pool[1].device, "a100-sxm-80g");
    assert_int_equal(s->pool[1].pos.line, 15);
}

static void pipeline_and_overlap(void **state)
{
    (void)state;
    const sc_strategy *s = read(all_sections);
    assert_int_equal(s->virtual_stages, 2);
    assert_string_equal(s->schedule_file, "order.yml");
    assert_int_equal(s->cuts, SC_CUT_LIST);
    assert_int_equal(s->n_cuts, 4);
    assert_int_equal(s->cut[1].blocks, 14);
    assert_null(s->cut[1].path);
    assert_int_equal(s->n_in_flight, 2);
    assert_int_equal(s->in_flight[1], 3);
    assert_true(s->grad_bucket == 25e6);
    assert_int_equal(s->grad_overlap, 1);
    assert_int_equal(s->p2p_overlap, 0);
    assert_int_equal(s->tp_overlap, -1);
    assert_true(s->gamma == 0.3);
    sc_pos at = sc_strategy_pos(s, "overlap", "gamma");
    assert_int_equal(at.line, 11);
    assert_int_equal(at.col, 58);
    at = sc_strategy_pos(s, "overlap", "tp"); /* not said */
    assert_int_equal(at.line, 0);
    s = read("mesh: {pp: 2}\npipeline: {schedule: gpipe, cuts: [layers.12]}\n");
    assert_int_equal(s->schedule, SC_SCH_GPIPE);
    assert_string_equal(s->cut[0].path, "layers.12");
    s = read("pipeline: {cuts: balanced, max_in_flight: auto}\n");
    assert_int_equal(s->cuts, SC_CUT_BALANCED);
    assert_int_equal(s->n_in_flight, 0);
}

static void what_is_not_said(void **state)
{
    (void)state;
    const sc_strategy *s = read("mesh: {dp: 8}\n");
    assert_null(s->model);
    assert_int_equal(s->precision, -1);
    assert_int_equal(s->context_parallel, -1);
    assert_true(s->data_parallel);
    assert_int_equal(s->tensor_parallel, -1);
    assert_int_equal(s->zero, -1);
    assert_int_equal(s->recompute, -1);
    assert_int_equal(s->schedule, -1);
    assert_int_equal(s->grad_overlap, -1);
    assert_int_equal(s->optimizer_tier, -1);
    assert_int_equal(s->cuts, SC_CUT_EVEN);
    assert_true(isnan(s->gamma));
    assert_true(s->offload_activations == -1);
    assert_int_equal(s->n_rules, 0);
}

static const char rules_text[] =
    "mesh: {pp: 2, dp: 4, tp: 4}\n"
    "pools: [{name: h100, device: h100-sxm, stages: 2}]\n"
    "rules:\n"
    "  - {match: 'layers.*.qkv', split: {batch: dp, out: [tp]}}\n"
    "  - {match: 'layers.*', tensor: weight, place: {dim0: dp}}\n"
    "  - {match: 'layers.*', tensor: optim, place: cpu}\n"
    "  - {match: 'layers.0-11', recompute: true}\n"
    "  - {match: 'emb.*', assign: round_robin, over: [dp, tp]}\n"
    "  - {match: head, devices: {pp: 1}, tensor: 'in:2', place: {}}\n"
    "  - {match: tail, devices: pool.h100, split: {seq: all, out: none}}\n";

static void rules(void **state)
{
    (void)state;
    const sc_strategy *s = read(rules_text);
    const sc_strategy_rule *r = s->rule;
    assert_int_equal(s->n_rules, 7);
    assert_string_equal(r[0].match, "layers.*.qkv");
    assert_string_equal(r[0].origin, "strategy.yml:4");
    assert_int_equal(r[0].n_split, 2);
    assert_string_equal(r[0].split[1].dim, "out");
    assert_true(r[0].split[1].axes == axes(s, "tp", NULL));
    assert_int_equal(r[0].split[1].pos.col, 48);
    assert_int_equal(r[0].recompute, -1);
    assert_int_equal(r[0].tier, -1);
    assert_int_equal(r[1].tensor, SC_RT_WEIGHT);
    assert_true(r[1].split[0].axes == axes(s, "dp", NULL));
    assert_int_equal(r[2].tier, SC_TIER_CPU);
    assert_false(r[2].has_split);
    assert_int_equal(r[3].recompute, 1);
    assert_true(r[4].round_robin);
    assert_true(r[4].assign == axes(s, "dp", "tp"));
    assert_int_equal(r[5].tensor, SC_RT_IN);
    assert_int_equal(r[5].input, 2);
    assert_true(r[5].has_split);
    assert_int_equal(r[5].n_split, 0);
    assert_int_equal(r[5].n_at, 1);
    assert_int_equal(r[5].at[0].coord, 1);
    assert_string_equal(r[6].pool, "h100");
    assert_true(r[6].split[0].axes == axes(s, "dp", "tp")); /* all but pp */
    assert_true(r[6].split[1].axes == 0);
}

static void json_is_the_same_tree(void **state)
{
    (void)state;
    const sc_strategy *s = read(
        "{\"mesh\": {\"dp\": 4, \"tp\": 2}, \"preset\": {\"zero\": 1},\n"
        " \"overlap\": {\"grad_bucket\": \"25MB\", \"grad\": true},\n"
        " \"rules\": [{\"match\": \"*\", \"split\": {\"out\": \"tp\"}}]}\n");
    assert_int_equal(s->n_axes, 2);
    assert_int_equal(s->zero, 1);
    assert_true(s->grad_bucket == 25e6);
    assert_int_equal(s->grad_overlap, 1);
    assert_int_equal(s->n_rules, 1);
    assert_true(s->rule[0].split[0].axes == axes(s, "tp", NULL));
}

/* Axes with a meaning are found once, whatever their order; others keep only
 * their names and places, for rules. */
static void meanings_of_axes(void **state)
{
    (void)state;
    const sc_strategy *s = read("mesh: {rows: 3, tp: 2, fsdp: 4, dp2: 5}\n"
                                "preset: {zero: 1, zero_axis: dp2}\n"
                                "rules: [{match: '*', split: {out: rows}}]\n");
    assert_int_equal(s->axis[0].is, SC_AX_OTHER);
    assert_int_equal(s->axis[1].is, SC_AX_TP);
    assert_int_equal(s->axis[2].is, SC_AX_FSDP);
    assert_int_equal(s->axis[3].is, SC_AX_OTHER);
    assert_int_equal(sc_strategy_axis(s, SC_AX_FSDP), 2);
    assert_int_equal(sc_strategy_axis(s, SC_AX_DP), -1);
    assert_int_equal(s->zero_axis, 3);
    assert_true(s->rule[0].split[0].axes == 1); /* axis 0, counted from 1 */
    assert_true(sc_strategy_samples(s) == 3);   /* fsdp alone */
    for (uint32_t ax = 0; ax < SC_N_AX_NAMES; ax++)
        assert_int_equal(sc_axis_named(sc_axis_names[ax]), ax);
    assert_int_equal(sc_axis_named("t"), SC_AX_OTHER);
}

static void lists_of_axes(void **state)
{
    (void)state;
    sc_axes list = 0;
    for (uint32_t i = SC_MESH_AXES; i-- > 0;) list = sc_axes_add(list, i);
    assert_int_equal(sc_axes_mask(list), (1u << SC_MESH_AXES) - 1);
    for (uint32_t i = SC_MESH_AXES; i-- > 0; list >>= 4)
        assert_int_equal((list & 15) - 1, i);
}

static void patterns(void **state)
{
    (void)state;

    static const struct {
        const char *glob, *path;
        bool match;
    } rows[] = {
        {"layers.*.qkv", "layers.3.qkv", true},
        {"layers.*.qkv", "layers.3.qkv.lora", true},
        {"layers.*.qkv", "layers.3.qkv_lora", false},
        {"layers.*.qkv", "layers.moe.3.qkv", true},
        {"layers", "layers.3.qkv", true},
        {"layer", "layers.3.qkv", false},
        {"layers.0-11", "layers.0.fc1", true},
        {"layers.0-11", "layers.11.fc1", true},
        {"layers.0-11", "layers.12.fc1", false},
        {"layers.1", "layers.11.fc1", false},
        {"layers.01", "layers.1.fc1", true},
        {"layers.0-1.fc1", "layers.1.fc2", false},
        {"layers.*1", "layers.11.fc2", true},
        {"*.2-3.conv?", "layer1.0.3.conv2", true},
        {"*.2-3.conv?", "layer1.3.0.conv2", false},
        {"*-3.x", "a-3.x", true},
        {"0-3", "0-3", true},
        {"0-3", "2.x", true},
        {"?", "ab", false},
        {"*", "", true},
        {"", "a", false},
        {"layers.*.a*.b", "layers.1.a.a.b.c", true},
        {"99999999999999999999-99999999999999999999", "7", false},
    };

    for (size_t i = 0; i < SC_COUNT(rows); i++)
        if (sc_rule_matches(rows[i].glob, rows[i].path) != rows[i].match)
            fail_msg("%s on %s", rows[i].glob, rows[i].path);
}

static void specificity(void **state)
{
    (void)state;
    static const char *const rising[] = {
        "*",           "layers.*",     "layers.0-11",
        "layers.5",    "layers.*.qkv", "layers.0-11.qkv",
        "layers.5.qkv"};
    for (size_t i = 1; i < SC_COUNT(rising); i++)
        assert_true(sc_rule_specificity(rising[i - 1]) <
                    sc_rule_specificity(rising[i]));
    assert_int_equal(sc_rule_specificity("layers.0-100.qkv"),
                     sc_rule_specificity("layers.0-3.qkv"));
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_section),         TEST(pipeline_and_overlap),
        TEST(what_is_not_said),      TEST(rules),
        TEST(json_is_the_same_tree), TEST(meanings_of_axes),
        TEST(lists_of_axes),         TEST(patterns),
        TEST(specificity),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
