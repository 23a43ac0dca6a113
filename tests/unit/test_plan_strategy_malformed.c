/* SPDX-License-Identifier: Apache-2.0 */
/* Strategies that are none: every error of each file, at its place, as it is
 * printed. */
#include "fixture.h"
#include "plan/plan_strategy.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    const char *file, *errors;
} cases[] = {
    {"anchor.yml", "anchor.yml:1:7: error: YAML anchors are not supported; "
                   "write the value out, or put the text in quotes\n"},
    {"assign.yml",
     "assign.yml:3:30: error: assign needs the axes over whose ranks operators "
     "are distributed; over: dp\nassign.yml:4:30: error: unknown assign "
     "\"robin\"; did you mean round_robin?\nassign.yml:5:28: error: over needs "
     "assign; assign: round_robin\nassign.yml:6:49: error: over names no axis; "
     "over: dp\nassign.yml:7:60: error: split and assign are in one rule, but "
     "an operator is either divided or whole on one rank\n"},
    {"axes-many.yml", "axes-many.yml:1:7: error: the mesh has 13 axes; at most "
                      "12 are possible\n"},
    {"axis-name.yml",
     "axis-name.yml:1:8: error: \"Tp\" can't name an axis; write a small "
     "letter, then small letters, digits and _; at most "
     "15\naxis-name.yml:1:15: error: \"all\" is a word of rules and can't name "
     "an axis; choose another name\naxis-name.yml:1:23: error: \"2d\" can't "
     "name an axis; write a small letter, then small letters, digits and _; at "
     "most 15\naxis-name.yml:1:30: error: \"a_name_that_is_long\" can't name "
     "an axis; write a small letter, then small letters, digits and _; at most "
     "15\n"},
    {"axis-size.yml",
     "axis-size.yml:1:12: error: pp is out of range: 0; pp is from 1 to "
     "16777216\naxis-size.yml:1:19: error: \"x\" is not a unit of a count; a "
     "whole number, or 4K (1e3), 4M (1e6)\naxis-size.yml:1:27: error: tp is "
     "out of range: -2; tp is from 1 to 16777216\naxis-size.yml:1:35: error: "
     "cp is a string here: \"2\"; write it without quotes\n"},
    {"axis-twice.yml",
     "axis-twice.yml:3:48: error: axis dp splits both batch and out; an axis "
     "can split only one dimension\naxis-twice.yml:4:36: error: axis tp is "
     "twice in one list\n"},
    {"axis-unknown.yml", "axis-unknown.yml:3:53: error: the mesh has no axis "
                         "\"pt\"; did you mean pp?\n"
                         "axis-unknown.yml:4:31: error: the mesh has no axis "
                         "\"sequence\"; axes are pp, dp, tp\n"},
    {"batch.yml",
     "batch.yml:2:17: error: global batch 510 is not a multiple of micro-batch "
     "4; global batch = micro-batch x replicas x micro-batches\n"},
    {"checkpoint-never.yml", "checkpoint-never.yml:2:13: error: missing key "
                             "\"every\"; steps between checkpoints\n"},
    {"checkpoint.yml", "checkpoint.yml:2:21: error: every is out of range: 0; "
                       "every is from 1 to 1073741824\n"
                       "checkpoint.yml:2:28: error: unknown to \"tape\"; one "
                       "of device, expanded, cpu, nvme\n"},
    {"clash.yml",
     "clash.yml:5:48: error: axis dp splits both batch and out; an axis can "
     "split only one dimension\nclash.yml:5:48: error: rule 'layers.*.fc1' "
     "splits out differently at clash.yml:3:37; keep one of "
     "them\nclash.yml:6:37: error: rule 'layers.*.fc1' splits out differently "
     "at clash.yml:3:37; keep one of them\nclash.yml:6:37: error: rule "
     "'layers.*.fc1' splits out differently at clash.yml:5:48; keep one of "
     "them\nclash.yml:7:5: error: rule 'layers.0-3' gives another recompute at "
     "clash.yml:4:5; keep one of them\nclash.yml:9:5: error: rule 'emb' gives "
     "another place at clash.yml:8:5; keep one of them\n"},
    {"cut.yml", "cut.yml:2:6: error: bad YAML: did not find expected ',' or "
                "'}' while parsing a flow mapping\n"},
    {"cuts-count.yml", "cuts-count.yml:2:18: error: cuts make 3 stages, the "
                       "pipeline has 2; write a number for every stage\n"},
    {"cuts-mixed.yml", "cuts-mixed.yml:2:23: error: write the number of blocks "
                       "of every stage, or the paths at which the next ones "
                       "begin; [10, 14] or [layers.12, layers.24]\n"},
    {"cuts-paths.yml",
     "cuts-paths.yml:2:30: error: cuts make 5 stages, the pipeline has 4; "
     "write a path for every stage except the first\ncuts-paths.yml:2:52: "
     "error: two stages begin at layers.8\n"},
    {"cuts-word.yml",
     "cuts-word.yml:2:18: error: cuts have an unknown form; write even, "
     "balanced, [10, 14] or [layers.12, layers.24]\n"},
    {"devices.yml",
     "devices.yml:3:33: error: coordinate 2 is outside of axis pp, which has 0 "
     "to 1\ndevices.yml:4:40: error: coordinate -1 is outside of axis pp, "
     "which has 0 to 1\ndevices.yml:4:48: error: \"one\" is not a count; write "
     "it like 16\ndevices.yml:5:37: error: the mesh has no axis \"cp\"; did "
     "you mean pp?\ndevices.yml:6:33: error: \"gpu:3\" does not name devices; "
     "write {pp: 1} or pool.NAME\ndevices.yml:7:33: error: there is no pool "
     "\"h100\"; define it under pools:\ndevices.yml:8:49: error: out is split "
     "over tp, but `devices` selects one coordinate of it\ndevices.yml:9:32: "
     "error: devices must be coordinates on axes, or a pool; write {pp: 1} or "
     "pool.NAME\n"},
    {"empty.yml", "empty.yml:1:1: error: the strategy is empty; keys are mesh, "
                  "batch, preset, pipeline, overlap, rules ...\n"},
    {"in-flight-word.yml",
     "in-flight-word.yml:2:27: error: max_in_flight must be a list with a "
     "number per stage; write auto or [4, 3, 2, 1]\n"},
    {"in-flight.yml",
     "in-flight.yml:2:27: error: max_in_flight has 4 numbers for 2 stages; "
     "write a number for every stage, or auto\n"},
    {"json.json",
     "json.json:2:21: error: zero is a string here: \"1\"; write it "
     "without quotes\njson.json:1:17: error: dp is a string here: \"8\"; write "
     "it without quotes\njson.json:1:67: error: the mesh has no axis "
     "\"pd\"; did you mean dp?\n"},
    {"keys-twice.yml",
     "keys-twice.yml:2:30: error: key \"global\" occurs twice in this mapping; "
     "the first one is in line 2\nkeys-twice.yml:4:1: error: key \"preset\" "
     "occurs twice in this mapping; the first one is in line 3\n"},
    {"keys-unknown.yml", "keys-unknown.yml:2:1: error: unknown key "
                         "\"presets\"; did you mean \"preset\"?\n"
                         "keys-unknown.yml:3:9: error: unknown key \"globl\"; "
                         "did you mean \"global\"?\n"
                         "keys-unknown.yml:5:6: error: unknown key \"macth\"; "
                         "did you mean \"match\"?\n"
                         "keys-unknown.yml:5:5: error: missing key \"match\"; "
                         "pattern on module paths, such as layers.*.qkv\n"},
    {"list.yml",
     "list.yml:1:1: error: a strategy must be a mapping of keys; keys are "
     "mesh, batch, preset, pipeline, overlap, rules ...\n"},
    {"mesh-big.yml",
     "mesh-big.yml:1:7: error: the mesh has more than 4294967296 ranks\n"},
    {"mesh-empty.yml",
     "mesh-empty.yml:1:7: error: a mesh must be a mapping of axes to their "
     "sizes; mesh: {pp: 2, dp: 4, tp: 4}, outer to inner\n"},
    {"mesh-list.yml",
     "mesh-list.yml:1:7: error: a mesh must be a mapping of axes to their "
     "sizes; mesh: {pp: 2, dp: 4, tp: 4}, outer to inner\n"},
    {"mesh-none.yml", "mesh-none.yml:2:33: error: axis \"dp\" needs a mesh in "
                      "the strategy; add mesh: {dp: 4, tp: 4}\n"},
    {"negative.yml", "negative.yml:2:17: error: global is out of range: -8; "
                     "global is from 1 to 1099511627776\n"
                     "negative.yml:4:24: error: activations is out of range: "
                     "-0.5; activations is from 0 to 1\n"
                     "negative.yml:3:18: error: gamma is out of range: -0.3; "
                     "gamma is from 0 to 100\n"
                     "negative.yml:5:31: error: max_in_flight is out of range: "
                     "-1; max_in_flight is from 1 to 1048576\n"},
    {"order-none.yml", "order-none.yml:2:22: error: schedule `file` needs a "
                       "file; add order: FILE\n"},
    {"order.yml", "order.yml:2:22: error: schedule 1f1b contradicts the order "
                  "from passes.yml; remove one of them\n"},
    {"patterns.yml",
     "patterns.yml:3:13: error: \"\" is not a pattern on module paths; write "
     "one path such as layers.0-11.qkv, with *, ?, [0-4] and ranges of "
     "numbers\npatterns.yml:4:13: error: \"layers.0-3,head\" is not a pattern "
     "on module paths; write one path such as layers.0-11.qkv, with *, ?, "
     "[0-4] and ranges of numbers\npatterns.yml:5:13: error: a range in "
     "\"layers.11-4.*\" is empty; write ranges from small to large: "
     "0-11\npatterns.yml:6:13: error: match needs a value, this is a "
     "list\npatterns.yml:7:13: error: \"layers.[0-3\" is not a pattern on "
     "module paths; write one path such as layers.0-11.qkv, with *, ?, [0-4] "
     "and ranges of numbers\npatterns.yml:8:13: error: a range in "
     "\"layers.0-3/0\" is empty; write ranges from small to large: 0-11\n"},
    {"recompute.yml",
     "recompute.yml:4:34: error: recompute has an unknown form; write yes, no, "
     "{uniform: 2} or {block: 3}\nrecompute.yml:5:44: error: recompute is out "
     "of range: 0; recompute is from 1 to 1048576\nrecompute.yml:6:36: error: "
     "recompute has an unknown form; write yes, no, {uniform: 2} or {block: "
     "3}\nrecompute.yml:2:50: error: recompute_method does not apply to "
     "recompute: selective; recompute: full\n"},
    {"pools-kinds.yml",
     "pools-kinds.yml:3:3: error: some pools are by stages, some by replicas; "
     "give stages for all pools, or replicas for all\n"},
    {"pools-rows.yml",
     "pools-rows.yml:3:5: error: missing key \"device\"; of the catalogue, "
     "such as h100-sxm\npools-rows.yml:4:5: error: pool b has neither stages "
     "nor replicas; pools are ranges of stages or of "
     "replicas\npools-rows.yml:5:45: error: stages is out of range: 0; stages "
     "is from 1 to 1048576\npools-rows.yml:6:5: error: every stage runs all "
     "micro-batches; micro_batches applies to pools of "
     "replicas\npools-rows.yml:7:5: error: pool c has both stages and "
     "replicas; pools are ranges of stages or of replicas\npools-rows.yml:7:5: "
     "error: pool c is defined twice, first at "
     "pools-rows.yml:6:5\n"},
    {"pools.yml",
     "pools.yml:3:3: error: the pools have 3 stages, the mesh has pp: 2\n"},
    {"preset-axes.yml",
     "preset-axes.yml:2:27: error: tensor_parallel megatron-sp needs an axis "
     "tp; add tp: 2 to the mesh\npreset-axes.yml:2:67: error: context_parallel "
     "ulysses needs an axis cp; add cp: 2 to the mesh\npreset-axes.yml:2:46: "
     "error: zero 2 needs an axis to shard over; add dp to the mesh, or "
     "zero_axis\n"},
    {"presets.yml",
     "presets.yml:2:27: error: unknown tensor_parallel \"megatron-ps\"; did "
     "you mean megatron-sp?\n"
     "presets.yml:2:46: error: zero is out of range: 4; zero is from 0 to 3\n"
     "presets.yml:2:60: error: unknown recompute \"some\"; did you mean none?\n"
     "presets.yml:2:84: error: unknown context_parallel \"rings\"; did you "
     "mean ring?\n"},
    {"rules-map.yml", "rules-map.yml:2:8: error: rules must be a list; begin "
                      "each with \"- {match: ...\"\n"},
    {"rules-words.yml",
     "rules-words.yml:3:5: error: not a mapping; write \"key: value\" "
     "lines\nrules-words.yml:4:5: error: missing key \"match\"; pattern on "
     "module paths, such as layers.*.qkv\nrules-words.yml:5:5: error: the rule "
     "has no effect; add split, place, recompute, assign or "
     "devices\nrules-words.yml:6:32: error: split must be a mapping of "
     "dimensions to axes; {batch: dp, out: [tp, cp]}\n"},
    {"schedule.yml",
     "schedule.yml:2:22: error: unknown schedule \"1f1p\"; did you mean 1f1b?\n"
     "schedule.yml:2:37: error: virtual is out of range: 0; virtual is from 1 "
     "to 65536\n"},
    {"tensors.yml",
     "tensors.yml:3:26: error: \"weigth\" is not a tensor of an operator; one "
     "of weight, bias, grad, optim, out, out_grad, in\ntensors.yml:4:26: "
     "error: \"in:99\" is not a tensor of an operator; one of weight, bias, "
     "grad, optim, out, out_grad, in\ntensors.yml:5:25: error: place needs the "
     "tensor that it applies to; write tensor: weight, bias, grad, optim, out, "
     "out_grad or in\ntensors.yml:6:26: error: the rule names a tensor, but "
     "not its place; add place: {dim0: dp} or place: cpu\ntensors.yml:7:38: "
     "error: split divides operators, not their tensors; write place\n"},
    {"tiers.yml",
     "tiers.yml:3:40: error: \"gpu\" is not a place for a tensor; device, "
     "expanded, cpu, nvme, or {dim0: dp}\ntiers.yml:4:41: error: \"disk\" is "
     "not a place for "
     "a tensor; device, expanded, cpu, nvme, or {dim0: dp}\n"},
    {"types.yml",
     "types.yml:2:8: error: model needs a value, this is a list\n"
     "types.yml:3:12: error: precision needs a value, this is a mapping\n"
     "types.yml:5:8: error: not a mapping; write \"key: value\" lines\n"
     "types.yml:6:19: error: order needs a value, this is a mapping\n"
     "types.yml:4:17: error: grad is neither true nor false: \"maybe\"; write "
     "true or false\n"},
    {"units.yml",
     "units.yml:2:17: error: \"GB\" is not a unit of a count; a "
     "whole number, or 8K (1e3), 8M (1e6)\n"
     "units.yml:2:27: error: \"tokens\" is not a unit of a count; a "
     "whole number, or 1024K (1e3), 1024M (1e6)\n"
     "units.yml:3:24: error: \"25\" has no unit, a size needs "
     "one; write 25GB (1e9 bytes) or 25GiB (2^30)\n"
     "units.yml:3:35: error: \"s\" is not a unit of a number; a "
     "number without unit, or 30%\n"},
    {"virtual-alone.yml", "virtual-alone.yml:2:21: error: virtual stages need "
                          "a pipeline; add pp: 2 to the mesh\n"},
    {"zero-axis-idle.yml", "zero-axis-idle.yml:2:30: error: zero_axis is "
                           "given, but nothing is sharded; zero: 1, 2 or 3\n"},
    {"zero-axis.yml", "zero-axis.yml:2:30: error: the mesh has no axis "
                      "\"fsdp\"; did you mean dp?\n"},
};

static const char *folder(void)
{
    const char *root = getenv("STEPCAST_SOURCE");
    const char *path = sc_sprintf(
        &arena, "%s/tests/golden/malformed/in/strategy", root ? root : ".");
    assert_non_null(path);
    return path;
}

/* All diagnostics of a file that is refused, a line for each. */
static const char *errors_of(const char *name)
{
    char *text, line[800];
    const char *out = "", *path = sc_sprintf(&arena, "%s/%s", folder(), name);
    size_t len;
    sc_strategy s;
    assert_int_equal(
        sc_file_read(path, (size_t)1 << 20, &arena, &text, &len, &err), SC_OK);
    sc_err_init(&err);
    assert_int_equal(sc_strategy_read(text, len, name, &arena, &s, &err),
                     SC_EINPUT);
    assert_int_equal(err.n_more, 0);
    for (uint32_t i = 0; i < err.n; i++) {
        sc_diag_format(&err.d[i], line, sizeof line);
        out = sc_sprintf(&arena, "%s%s\n", out, line);
    }
    return out;
}

static void all_errors_of_a_file(void **state)
{
    (void)state;
    for (size_t i = 0; i < SC_COUNT(cases); i++)
        assert_string_equal(errors_of(cases[i].file), cases[i].errors);
}

/* Nothing is written where something is wrong. */
static void nothing_is_half_read(void **state)
{
    (void)state;
    static const char text[] = "mesh: {dp: 4}\npreset: {zero: 7}\n";
    sc_strategy s;
    sc_strategy_init(&s);
    assert_int_equal(
        sc_strategy_read(text, sizeof text - 1, "x.yml", &arena, &s, &err),
        SC_EINPUT);
    assert_int_equal(s.n_axes, 0);
    assert_null(s.file);
}

/* More errors than are kept are counted. */
static void a_file_of_errors(void **state)
{
    (void)state;
    const char *text = "mesh: {dp: 4}\nrules:\n";
    sc_strategy s;
    for (uint32_t i = 0; i < SC_ERR_MAX + 8; i++)
        text =
            sc_sprintf(&arena, "%s- {match: a%u, split: {out: q}}\n", text, i);
    assert_int_equal(
        sc_strategy_read(text, strlen(text), "x.yml", &arena, &s, &err),
        SC_EINPUT);
    assert_int_equal(err.n, SC_ERR_MAX);
    assert_int_equal(err.n_more, 8);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(all_errors_of_a_file),
        TEST(nothing_is_half_read),
        TEST(a_file_of_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
