/* SPDX-License-Identifier: Apache-2.0 */
/* Which exchanges follow from a strategy: how many, over whom, of how much. */
#include "kernels.h"
#include "net_plan.h"

#include <math.h>

enum { LAYERS = 4, HIDDEN = 64, SEQ = 32, VOCAB = 512 };

static const sc_net *gpt_with(bool dropout)
{
    sc_transformer t = {.name = "small",
                        .layers = LAYERS,
                        .hidden = HIDDEN,
                        .heads = 4,
                        .vocab = VOCAB,
                        .max_seq = SEQ,
                        .tied = true,
                        .bias = true,
                        .qkv_bias = true,
                        .norm_bias = true,
                        .dropout = dropout};
    const sc_model *m = NULL;
    const sc_net *g = NULL;
    (void)sc_model_from_transformer(&t, sc_pos_none(), &arena, &m, &err);
    no_error();
    (void)sc_net_from_model(m, SEQ, true, &arena, &g, &err);
    no_error();
    return g;
}

static const sc_net *gpt(void)
{
    return gpt_with(true);
}

static const sc_net *zoo(const char *name)
{
    const sc_net *g = NULL;
    (void)sc_zoo_build(sc_zoo_find(name), &arena, &g, &err);
    no_error();
    return g;
}

/* Bytes of all learned weights. */
static double weight_bytes(const sc_net *g)
{
    return 2 * g->learned;
}

static void one_rank(void **state)
{
    (void)state;
    planned p;
    plan_text(&p, "mesh: {dp: 1, tp: 1}\npreset: {zero: 3}\n", gpt(), 2, 1);
    assert_int_equal(p.plan.n_exchanges, 0);
    plan_text(&p, "mesh: {dp: 1}\n", zoo("resnet50"), 2, 1);
    assert_int_equal(p.plan.n_exchanges, 0);
    assert_true(is_near(p.plan.flops, p.plan.model_flops));
}

static void data_parallel(void **state)
{
    (void)state;
    planned p;
    const sc_net *g = zoo("resnet50");
    plan_text(&p, "mesh: {dp: 8}\noverlap: {grad_bucket: 20MB}\n", g, 4, 2);
    assert_int_equal(count(&p.plan, SC_PASS_FWD, -1), 0);
    assert_int_equal(count(&p.plan, SC_PASS_UPDATE, -1), 0);
    assert_true(count(&p.plan, SC_PASS_BWD, SC_ALL_REDUCE) > 1);
    assert_true(
        is_near(total(&p.plan, SC_PASS_BWD, SC_ALL_REDUCE), weight_bytes(g)));
    for (uint32_t i = 0; i + 1 < p.plan.n_exchanges; i++)
        assert_true(p.plan.exchange[i].bytes >= 20e6 &&
                    p.plan.exchange[i].grad);
    assert_true(is_near(p.plan.samples, 4 * 8 * 2));
}

static void tensor_parallel(void **state)
{
    (void)state;
    planned p;
    plan_text(&p, "mesh: {tp: 4}\npreset: {tensor_parallel: megatron}\n", gpt(),
              2, 1);
    double act = 2.0 * SEQ * HIDDEN * 2;
    /* Two per layer, the embedding, three of the loss; no gradient is summed
     * over ranks that make it alike. */
    assert_int_equal(count(&p.plan, SC_PASS_FWD, SC_ALL_REDUCE),
                     2 * LAYERS + 4);
    assert_int_equal(count(&p.plan, SC_PASS_BWD, SC_ALL_REDUCE),
                     2 * LAYERS + 1);
    assert_int_equal(count(&p.plan, SC_PASS_BWD, -1), 2 * LAYERS + 1);
    const sc_net_exchange *x = exchange_of(&p.plan, "layers.1.proj", "out");
    assert_true(x && is_near(x->bytes, act) && x->n_groups == 1 &&
                x->size == 4);
    assert_string_equal(x->origin, "preset megatron-tp");
}

static void sequence_parallel(void **state)
{
    (void)state;
    planned p;
    plan_text(&p, "mesh: {tp: 4}\npreset: {tensor_parallel: megatron-sp}\n",
              gpt(), 2, 1);
    uint32_t n = 2 * LAYERS + 1;
    assert_int_equal(count(&p.plan, SC_PASS_FWD, SC_REDUCE_SCATTER), n);
    assert_int_equal(count(&p.plan, SC_PASS_FWD, SC_ALL_GATHER), n);
    assert_int_equal(count(&p.plan, SC_PASS_FWD, SC_ALL_REDUCE), 3);
    assert_int_equal(count(&p.plan, SC_PASS_BWD, SC_REDUCE_SCATTER), n);
    /* of gradients, and of inputs again for the weights */
    assert_int_equal(count(&p.plan, SC_PASS_BWD, SC_ALL_GATHER), 2 * n);
    p.sw.keep_gathered = true;
    (void)infer_only(&p);
    no_error();
    assert_int_equal(count(&p.plan, SC_PASS_BWD, SC_ALL_GATHER), n);
}

/* Sum of an exchange's seconds and of what of them stands between kernels, of
 * one pass and kind. */
static double shown_part(const planned *p, sc_op_pass pass, const char *tensor)
{
    double all = 0, shown = 0;
    for (uint32_t i = 0; i < p->prog.n_items; i++) {
        const program_item *it = &p->prog.item[i];
        if (it->exchange == SC_NONE || it->pass != pass) continue;
        const sc_net_exchange *x = &p->plan.exchange[it->exchange];
        if (strcmp(x->tensor, tensor) != 0) continue;
        all += x->seconds;
        shown += it->seconds;
    }
    return shown / all;
}

/* Nothing of an exchange is hidden in a program without overlap. */
static void nothing_overlaps(void **state)
{
    (void)state;
    planned p;
    prepare(&p, "mesh: {tp: 4}\npreset: {tensor_parallel: megatron-sp}\n",
            gpt(), 2, 1);
    p.sw.tp_overlap = p.sw.tp_async = false;
    (void)infer_only(&p);
    no_error();
    assert_true(is_near(shown_part(&p, SC_PASS_FWD, "out"), 1));
    assert_true(is_near(shown_part(&p, SC_PASS_FWD, "in:0"), 1));
    assert_true(is_near(shown_part(&p, SC_PASS_WGRAD, "in:0"), 1));
    assert_true(is_near(shown_part(&p, SC_PASS_DGRAD, "in grad"), 1));
}

/* Presets know operators by what they are, not by what they are called. */
static void other_names(void **state)
{
    (void)state;
    static const char text[] = "mesh: {dp: 2, tp: 4}\n"
                               "preset: {tensor_parallel: megatron-sp}\n";
    const sc_net *g = gpt();
    sc_net h = *g;
    planned p, q;
    h.op = SC_NEW_N(&arena, sc_net_op, g->n_ops);
    assert_non_null(h.op);
    memcpy(h.op, g->op, g->n_ops * sizeof *g->op);
    for (uint32_t i = 0; i < h.n_ops; i++)
        h.op[i].path = sc_sprintf(&arena, "h.%u.c_%u", i / 7, i);
    plan_text(&p, text, g, 2, 1);
    plan_text(&q, text, &h, 2, 1);
    assert_true(p.plan.n_exchanges > 0);
    assert_int_equal(p.plan.n_exchanges, q.plan.n_exchanges);
    for (uint32_t i = 0; i < p.plan.n_exchanges; i++) {
        assert_int_equal(p.plan.exchange[i].coll, q.plan.exchange[i].coll);
        assert_int_equal(p.plan.exchange[i].axes, q.plan.exchange[i].axes);
        assert_true(p.plan.exchange[i].bytes == q.plan.exchange[i].bytes);
    }
}

static void zero(void **state)
{
    (void)state;
    planned p;
    const sc_net *g = gpt();
    double w = weight_bytes(g);
    plan_text(&p, "mesh: {dp: 4}\npreset: {zero: 1}\n", g, 1, 2);
    assert_true(is_near(total(&p.plan, SC_PASS_BWD, SC_REDUCE_SCATTER), w));
    assert_true(is_near(total(&p.plan, SC_PASS_UPDATE, SC_ALL_GATHER), w));
    assert_int_equal(count(&p.plan, SC_PASS_UPDATE, -1), 1);
    assert_int_equal(count(&p.plan, SC_PASS_FWD, -1), 0);
    plan_text(&p, "mesh: {dp: 4}\npreset: {zero: 3}\n", g, 1, 2);
    assert_true(is_near(total(&p.plan, SC_PASS_BWD, SC_REDUCE_SCATTER), w));
    assert_int_equal(count(&p.plan, SC_PASS_UPDATE, -1), 0);
    /* The shared table is gathered for both of its uses. */
    assert_true(is_near(total(&p.plan, SC_PASS_FWD, SC_ALL_GATHER),
                        w + 2.0 * VOCAB * HIDDEN));
    for (uint32_t i = 0; i < p.prog.n_items; i++)
        if (p.prog.item[i].pass == SC_PASS_WGRAD)
            assert_false(p.prog.item[i].once);
    /* Ranks of fsdp shard, those of dp are replicas of each other. */
    plan_text(&p, "mesh: {dp: 2, fsdp: 4}\n", g, 1, 1);
    assert_true(is_near(total(&p.plan, SC_PASS_BWD, SC_REDUCE_SCATTER), w));
    assert_true(is_near(total(&p.plan, SC_PASS_BWD, SC_ALL_REDUCE), w / 4));
}

static void made_again(void **state)
{
    (void)state;
    planned p;
    static const char text[] =
        "mesh: {tp: 2}\npreset: {tensor_parallel: megatron, recompute: full}\n";
    prepare(&p, text, gpt_with(false), 1, 1);
    p.sw.early_stop = false;
    (void)infer_only(&p);
    no_error();
    assert_int_equal(count(&p.plan, SC_PASS_BWD, SC_ALL_REDUCE),
                     4 * LAYERS + 1);
    /* What follows the last product is not needed, nor its sum. */
    p.sw.early_stop = true;
    (void)infer_only(&p);
    no_error();
    assert_int_equal(count(&p.plan, SC_PASS_BWD, SC_ALL_REDUCE),
                     3 * LAYERS + 1);
    /* The mask of a dropout is. */
    prepare(&p, text, gpt(), 1, 1);
    p.sw.early_stop = true;
    (void)infer_only(&p);
    no_error();
    assert_int_equal(count(&p.plan, SC_PASS_BWD, SC_ALL_REDUCE),
                     4 * LAYERS + 1);
}

static uint32_t stage_at(const planned *p, const char *path)
{
    for (uint32_t i = 0; i < p->job.net->n_ops; i++)
        if (strcmp(p->job.net->op[i].path, path) == 0)
            return p->plan.stage_of[i];
    fail_msg("no %s", path);
    return 0;
}

static void stages(void **state)
{
    (void)state;
    planned p;
    const sc_net *g = gpt();
    plan_text(&p, "mesh: {pp: 2, dp: 2}\n", g, 1, 4);
    assert_int_equal(stage_at(&p, "layers.1.add2"), 0);
    assert_int_equal(stage_at(&p, "layers.2.norm1"), 1);
    assert_int_equal(count(&p.plan, SC_PASS_FWD, -2), 1);
    assert_int_equal(count(&p.plan, SC_PASS_BWD, -2), 1);
    /* The shared table's gradient is summed over both stages. */
    assert_int_equal(count(&p.plan, SC_PASS_UPDATE, SC_ALL_REDUCE), 1);
    const sc_net_exchange *x = exchange_of(&p.plan, "layers.1.add2", "out");
    assert_true(x && x->p2p && x->rank[0] == 0 && x->rank[1] == 2);
    plan_text(&p, "mesh: {pp: 2}\npipeline: {cuts: [layers.3]}\n", g, 1, 4);
    assert_int_equal(stage_at(&p, "layers.2.add2"), 0);
    assert_int_equal(stage_at(&p, "layers.3.norm1"), 1);
    plan_text(&p, "mesh: {pp: 2}\npipeline: {cuts: [3, 1]}\n", g, 1, 4);
    assert_int_equal(stage_at(&p, "layers.3.norm1"), 1);
    assert_int_equal(stage_at(&p, "layers.2.add2"), 0);
    plan_text(&p,
              "mesh: {pp: 2}\nrules:\n"
              "  - {match: layers.1, devices: {pp: 1}}\n",
              g, 1, 4);
    assert_int_equal(stage_at(&p, "layers.0.add2"), 0);
    assert_int_equal(stage_at(&p, "head.loss"), 1);
}

/* The first and the last of four stages share the table of words, and nobody
 * between them: rank 0 or 1 and rank 6 or 7 of two pipelines sum its gradient,
 * 512 x 64 values of two bytes; all of them where an optimizer reads a shard
 * (ZeRO-1), half where only that is kept (ZeRO-2). */
static void sum_of_the_table(const char *text, double part)
{
    planned p;
    plan_text(&p, text, gpt(), 1, 4);
    const sc_net_exchange *found = NULL;
    for (uint32_t i = 0; i < p.plan.n_exchanges; i++)
        if (strcmp(p.plan.exchange[i].why, "stages share the weight") == 0) {
            assert_null(found);
            found = &p.plan.exchange[i];
        }
    assert_non_null(found);
    assert_int_equal(found->n_groups, 2);
    assert_int_equal(found->size, 2);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(found->rank[2 * i], i);
        assert_int_equal(found->rank[2 * i + 1], 6 + i);
    }
    assert_true(is_near(found->bytes, part * 2.0 * VOCAB * HIDDEN));
    for (uint32_t i = 0; i < p.prog.n_items; i++) {
        const program_item *it = &p.prog.item[i];
        bool tie =
            it->exchange != SC_NONE && &p.plan.exchange[it->exchange] == found;
        if (tie) assert_int_equal(it->cat, SC_CAT_PP);
    }
}

static void ends_sum_the_table(void **state)
{
    (void)state;
    sum_of_the_table("mesh: {pp: 4, dp: 2}\n", 1);
    sum_of_the_table("mesh: {pp: 4, dp: 2}\npreset: {zero: 1}\n", 1);
    sum_of_the_table("mesh: {pp: 4, dp: 2}\npreset: {zero: 2}\n", 0.5);
}

/* What ranks of tensor parallelism all have, each sends a part of. */
static void sent_in_parts(void **state)
{
    (void)state;
    planned p;
    double act = 2.0 * SEQ * HIDDEN;
    for (int parts = 0; parts < 2; parts++) {
        prepare(&p,
                "mesh: {pp: 2, tp: 2}\npreset: {tensor_parallel: megatron}\n",
                gpt(), 1, 4);
        p.sw.p2p_scatter = parts;
        (void)infer_only(&p);
        no_error();
        assert_int_equal(count(&p.plan, SC_PASS_FWD, SC_ALL_GATHER), parts);
        assert_int_equal(count(&p.plan, SC_PASS_BWD, SC_ALL_GATHER), parts);
        const sc_net_exchange *x = exchange_of(&p.plan, "layers.1.add2", "out");
        assert_true(x && x->p2p && is_near(x->bytes, act / (1 + parts)));
    }
}

/* No other cut has a faster slowest stage. */
static void balanced(void **state)
{
    (void)state;
    planned p;
    const sc_net *g = zoo("vgg19");
    plan_text(&p, "mesh: {pp: 3}\npipeline: {cuts: balanced}\n", g, 8, 4);
    double sum[3] = {0}, *op = SC_NEW_N(&arena, double, g->n_ops);
    for (uint32_t i = 0; i < p.prog.n_items; i++) {
        const program_item *it = &p.prog.item[i];
        if (is_kernel(it) && kernel_pass(it) != SC_PASS_UPDATE)
            op[it->op] += it->price.seconds;
    }
    double worst = 0, best = HUGE_VAL;
    for (uint32_t k = 0; k < g->n_ops; k++) {
        sum[p.plan.stage_of[k]] += op[k];
        worst = fmax(worst, sum[p.plan.stage_of[k]]);
    }
    for (uint32_t a = 1; a < g->n_ops; a++)
        for (uint32_t b = a + 1; b < g->n_ops; b++) {
            double s[3] = {0};
            for (uint32_t k = 0; k < g->n_ops; k++)
                s[k >= b ? 2 : k >= a] += op[k];
            best = fmin(best, fmax(s[0], fmax(s[1], s[2])));
        }
    assert_true(worst <= best * 1.0001);
}

static void tables_in_turn(void **state)
{
    (void)state;
    planned p;
    const sc_net *g = zoo("dlrm");
    static const char text[] = "mesh: {dp: %d}\nrules:\n"
                               "  - {match: 'emb.*', assign: round_robin, "
                               "over: dp}\n";
    static const int ranks[] = {8, 4, 2};
    for (size_t i = 0; i < SC_COUNT(ranks); i++) {
        char s[200];
        snprintf(s, sizeof s, text, ranks[i]);
        plan_text(&p, s, g, 16, 1);
        assert_int_equal(count(&p.plan, SC_PASS_FWD, -1), 1);
        assert_int_equal(count(&p.plan, SC_PASS_BWD, SC_ALL_TO_ALL), 1);
        /* All of a rank's tables have rows for all samples. */
        double v = 8.0 / ranks[i] * 16 * ranks[i] * 64 * 2;
        assert_true(is_near(total(&p.plan, SC_PASS_FWD, SC_ALL_TO_ALL), v));
        assert_true(is_near(total(&p.plan, SC_PASS_BWD, SC_ALL_TO_ALL), v));
        assert_true(is_near(p.plan.flops, p.plan.model_flops));
    }
}

/* Shards of weights are gathered for use, activations split in two ways. */
static void two_dims(void **state)
{
    (void)state;
    planned p;
    const sc_net *g = gpt();
    plan_text(&p,
              "mesh: {x: 2, y: 2}\npreset: {data_parallel: false}\nrules:\n"
              "  - {match: '*', split: {batch: x}}\n"
              "  - {match: 'layers.*.fc1', split: {out: y}}\n"
              "  - {match: 'layers.*.fc1', tensor: weight, "
              "place: {dim0: y, dim1: x}}\n",
              g, 2, 1);
    assert_true(is_near(p.plan.samples, 4));
    const sc_net_exchange *x = exchange_of(&p.plan, "layers.0.fc1", "weight");
    assert_true(x && x->coll == SC_ALL_GATHER && x->size == 2);
    assert_true(is_near(x->bytes, 2.0 * HIDDEN * 4 * HIDDEN / 2));
    /* fc2 follows: its input is split, its sum partial. */
    x = exchange_of(&p.plan, "layers.0.fc2", "out");
    assert_true(x && x->coll == SC_ALL_REDUCE);
    assert_null(exchange_of(&p.plan, "layers.0.act", "in:0"));
}

/* An operator on one half of the mesh. */
static void somewhere(void **state)
{
    (void)state;
    planned p;
    const sc_net *g = gpt();
    double act = 2.0 * SEQ * HIDDEN * 2;
    plan_text(&p,
              "mesh: {dp: 2, x: 2}\nrules:\n"
              "  - {match: layers.1.fc2, devices: {x: 1}}\n",
              g, 2, 1);
    /* It goes to the others when they read it. */
    const sc_net_exchange *x =
        exchange_of(&p.plan, "layers.1.add2_dropout", "in:0");
    assert_true(x && x->coll == SC_BROADCAST && x->size == 2);
    assert_true(is_near(x->bytes, act));
    x = exchange_of(&p.plan, "layers.1.fc2", "in grad");
    assert_true(x && x->coll == SC_BROADCAST && is_near(x->bytes, 4 * act));
    assert_int_equal(count(&p.plan, SC_PASS_FWD, -1), 1);
    /* Its gradients are summed over samples only. */
    for (uint32_t i = 0; i < p.plan.n_exchanges; i++)
        if (p.plan.exchange[i].grad)
            assert_int_equal(p.plan.exchange[i].axes, 1);
}

/* What rules say of tensors between operators holds on the way. */
static void kept_as_said(void **state)
{
    (void)state;
    planned p;
    double act = 2.0 * 4 * SEQ * HIDDEN;
    plan_text(&p,
              "mesh: {dp: 2}\nrules:\n"
              "  - {match: layers.0.fc1, tensor: in:0, place: {}}\n"
              "  - {match: layers.2.add2, tensor: out, place: {}}\n"
              "  - {match: layers.2.add2, tensor: out_grad, "
              "place: {batch: dp}}\n",
              gpt(), 2, 1);
    const sc_net_exchange *x = exchange_of(&p.plan, "layers.0.fc1", "in:0");
    assert_true(x && x->coll == SC_ALL_GATHER && is_near(x->bytes, act));
    assert_string_equal(x->origin, "s.yml:3");
    x = exchange_of(&p.plan, "layers.2.add2", "out");
    assert_true(x && x->coll == SC_ALL_GATHER && is_near(x->bytes, act));
    assert_string_equal(x->origin, "s.yml:4");
    /* Gradients stay with the samples: of activations nothing is exchanged. */
    for (uint32_t i = 0; i < p.plan.n_exchanges; i++)
        assert_true(p.plan.exchange[i].pass != SC_PASS_DGRAD);
}

static void waits_elsewhere(void **state)
{
    (void)state;
    planned p;
    uint32_t out = 0, states = 0;
    plan_text(&p,
              "mesh: {dp: 2}\noffload: {optimizer: cpu}\nrules:\n"
              "  - {match: layers.0.fc1, tensor: weight, place: nvme}\n",
              gpt(), 1, 1);
    for (uint32_t i = 0; i < p.prog.n_values; i++) {
        const program_value *v = &p.prog.value[i];
        out += v->what == VALUE_WEIGHT && v->tier == SC_TIER_NVME;
        states += v->what == VALUE_STATE && v->tier == SC_TIER_CPU;
    }
    assert_int_equal(out, 1);
    assert_true(states > 10);
}

/* ---- errors -------------------------------------------------------------- */

static void refused(const char *text, const sc_net *g, sc_code code,
                    const char *a, const char *b)
{
    planned p;
    prepare(&p, text, g, 1, 1);
    assert_int_equal(infer_only(&p), SC_EINPUT);
    assert_int_equal(err.d[0].code, code);
    if (!strstr(err.d[0].msg, a) && !strstr(err.d[0].hint, a))
        fail_msg("%s (%s) lacks %s", err.d[0].msg, err.d[0].hint, a);
    if (!strstr(err.d[0].msg, b) && !strstr(err.d[0].hint, b))
        fail_msg("%s (%s) lacks %s", err.d[0].msg, err.d[0].hint, b);
    sc_err_init(&err);
}

static void errors(void **state)
{
    (void)state;
    const sc_net *g = gpt();
    refused("mesh: {tp: 2}\nrules:\n  - {match: 'layers.0.q*', split: {head: "
            "tp}}\n  - {match: 'layers.*.qk', split: {hidden: tp}}\n",
            g, SC_C_UNKNOWN_NAME, "layers.*.qk", "'layers.*.qkv'");
    refused("mesh: {tp: 2}\nrules:\n  - {match: '*ayers.0.qkv', split: {head: "
            "tp}}\n  - {match: 'layers.0.qk*', split: {hidden: tp}}\n",
            g, SC_C_CONFLICT, "s.yml:3", "s.yml:4");
    refused("mesh: {tp: 8}\npreset: {tensor_parallel: megatron}\n", g,
            SC_C_DIVIDE, "head", "preset megatron-tp");
    refused("mesh: {tp: 2}\nrules:\n  - {match: layers.0.norm1, split: "
            "{hidden: tp}}\n",
            g, SC_C_CONFLICT, "hidden", "can't be split");
    refused("mesh: {pp: 2}\nrules:\n  - {match: layers.0.fc1, split: "
            "{out: pp}}\n",
            g, SC_C_CONFLICT, "pp", "layers.0.fc1");
    refused("mesh: {tp: 2}\nrules:\n  - {match: layers.0.fc1, split: "
            "{width: tp}}\n",
            g, SC_C_UNKNOWN_NAME, "width", "layers.0.fc1");
    refused("mesh: {pp: 8}\n", g, SC_C_RANGE, "8 pipeline stages", "small");
    refused("mesh: {pp: 2}\npipeline: {cuts: [layers.9]}\n", g,
            SC_C_UNKNOWN_NAME, "layers.9", "stage");
    refused("mesh: {pp: 2}\nrules:\n  - {match: layers.2, devices: {pp: 0}}\n",
            g, SC_C_CONFLICT, "stage 1", "operators");
    refused("mesh: {pp: 2}\nrules:\n  - {match: layers.0, devices: {pp: 1}}\n"
            "  - {match: layers.2, devices: {pp: 0}}\n",
            g, SC_C_CONFLICT, "layers.2", "stage");
}

static void explained(void **state)
{
    (void)state;
    planned p;
    sc_text t;
    plan_text(&p,
              "mesh: {pp: 2, dp: 2, tp: 2}\npreset: {tensor_parallel: megatron,"
              " zero: 1}\nrules:\n  - {match: layers.3.act, recompute: true}\n",
              gpt(), 1, 2);
    sc_text_init(&t);
    assert_int_equal(sc_net_plan_explain(&p.plan, &arena, &t, &err), SC_OK);
    static const char *const lines[] = {
        "mesh  pp=2  dp=2  tp=2\n",
        ("column-parallel products split out over tp   (preset "
         "megatron-tp)\n"),
        "recompute   (s.yml:4)\n",
        "shard optimizer states dim0 over dp   (preset zero-1)\n",
        "partial to replicated",
        "made on another stage",
        "stages share the weight",
        "updated in shards, kept replicated"};
    for (size_t i = 0; i < SC_COUNT(lines); i++)
        if (!strstr(t.buf, lines[i])) fail_msg("no \"%s\"", lines[i]);
    sc_text_free(&t);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(ends_sum_the_table), TEST(one_rank),
        TEST(data_parallel),      TEST(tensor_parallel),
        TEST(sequence_parallel),  TEST(other_names),
        TEST(nothing_overlaps),   TEST(zero),
        TEST(made_again),         TEST(stages),
        TEST(balanced),           TEST(tables_in_turn),
        TEST(two_dims),           TEST(waits_elsewhere),
        TEST(somewhere),          TEST(kept_as_said),
        TEST(sent_in_parts),      TEST(errors),
        TEST(explained)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
