/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of a strategy's file in the layers of generated models. */
#include "network.h"

#include <stdio.h>
#include <string.h>

static const sc_strategy *strategy(const char *text)
{
    sc_strategy *s = SC_NEW(&f.a, sc_strategy);
    assert_non_null(s);
    if (sc_strategy_read(text, strlen(text), "s.yml", &f.a, s, &f.err) != SC_OK)
        fail_msg("%s", f.err.d[0].msg);
    return s;
}

/* tp 2, dp 4 of a small model. */
static sc_run run_of(const char *model, uint32_t tp, uint32_t dp)
{
    sc_run r = {.size = {1, dp, 1, 1, tp},
                .vpp = 1,
                .mbs = 1,
                .ga = 4,
                .gbs = 4 * dp,
                .seq = 1024,
                .precision = SC_BF16,
                .recipe = SC_RECIPE_BF16,
                .sp = false};
    char spec[64];
    snprintf(spec, sizeof spec, "switch%u@450GB/s,1us; device=h100-sxm",
             tp * dp);
    load_run(&r, spec, model, NULL);
    return r;
}

/* The run under a strategy. */
static sc_run under(const sc_run *r, const char *text)
{
    sc_run own = *r;
    own.strategy = strategy(text);
    if (sc_strategy_model(own.strategy, r->model, &f.a, &own.model, &f.err) !=
        SC_OK)
        fail_msg("%s", f.err.d[0].msg);
    return own;
}

static double memory_of(const sc_plan *p, const sc_segment *b)
{
    sc_stage_memory m[8];
    assert_true(p->run.size[SC_AX_PP] <= 8);
    assert_int_equal(sc_predict_memory(p, b, &f.a, m, &f.err), SC_OK);
    return m[0].peak;
}

/* Two runs take the same time and the same memory. */
static void alike(const sc_run *a, const sc_run *b)
{
    sc_segment *x, *y;
    sc_plan p = priced(a, &x), q = priced(b, &y);
    assert_true(fast_s(&p, x) == fast_s(&q, y));
    assert_true(network_s(a) == network_s(b));
    assert_true(memory_of(&p, x) == memory_of(&q, y));
}

static void refused(const sc_run *r, sc_code code, uint32_t line, uint32_t col,
                    const char *text)
{
    sc_plan p;
    sc_err_init(&f.err);
    assert_int_not_equal(sc_plan_build(r, &f.a, &p, &f.err), SC_OK);
    assert_int_equal(f.err.d[0].code, code);
    assert_int_equal(f.err.d[0].line, line);
    assert_int_equal(f.err.d[0].col, col);
    if (!strstr(f.err.d[0].msg, text))
        fail_msg("no '%s' in '%s'", text, f.err.d[0].msg);
}

/* ---- rules say what presets say -------------------------------------------- */

static void presets_alone(void **state)
{
    (void)state;
    sc_run r = run_of("gpt3-xl", 2, 4), own;
    r.zero = 1;
    own = under(&r, "mesh: {dp: 4, tp: 2}\n"
                    "preset: {tensor_parallel: megatron, zero: 1}\n");
    assert_ptr_equal(own.model, r.model);
    alike(&r, &own);
    own =
        under(&r, "preset: {recompute: none}\n"); /* no mesh: as options say */
    alike(&r, &own);
}

static void megatron_by_hand(void **state)
{
    (void)state;
    sc_run r = run_of("llama3-8b", 2, 4);
    sc_run own = under(&r, "mesh: {dp: 4, tp: 2}\n"
                           "preset: {tensor_parallel: none}\n"
                           "rules:\n"
                           "  - {match: embedding.embed, split: {in: tp}}\n"
                           "  - {match: 'layers.*.qkv', split: {out: tp}}\n"
                           "  - {match: 'layers.*.rope', split: {head: tp}}\n"
                           "  - {match: 'layers.*.attn', split: {head: tp}}\n"
                           "  - {match: 'layers.*.proj', split: {in: tp}}\n"
                           "  - {match: 'layers.*.fc1', split: {out: tp}}\n"
                           "  - {match: 'layers.*.act', split: {out: tp}}\n"
                           "  - {match: 'layers.*.fc2', split: {in: tp}}\n"
                           "  - {match: head.lm_head, split: {out: tp}}\n"
                           "  - {match: head.loss, split: {vocab: tp}}\n");
    alike(&r, &own);
}

static void zero_by_hand(void **state)
{
    (void)state;
    static const char *const what[] = {"optim", "grad", "weight"};
    for (int stage = 1; stage <= 3; stage++) {
        sc_run r = run_of("llama3-8b", 1, 8), bare = r;
        r.zero = stage;
        const char *text =
            sc_sprintf(&f.a,
                       "mesh: {dp: 8}\nrules:\n"
                       "  - {match: '*', tensor: %s, place: {dim0: dp}}\n",
                       what[stage - 1]);
        sc_run own = under(&bare, text);
        alike(&r, &own);
        sc_plan p = built(&own);
        assert_int_equal(p.run.zero, stage);
    }
}

/* ---- recomputation by subtree ---------------------------------------------- */

static void all_blocks_again(void **state)
{
    (void)state;
    sc_run r = run_of("llama3-8b", 2, 4), full = r;
    full.recompute = SC_RC_FULL;
    sc_run own = under(&r, "rules:\n  - {match: layers, recompute: true}\n");
    alike(&full, &own);
    sc_run not = under(&full, "rules:\n  - {match: layers, recompute: no}\n");
    alike(&r, &not );
    /* A file's rule holds before the more specific ones of presets. */
    sc_run some = r;
    some.recompute = SC_RC_SELECTIVE;
    not = under(&some, "rules:\n  - {match: layers, recompute: no}\n");
    alike(&r, &not );
}

static void some_blocks_again(void **state)
{
    (void)state;
    sc_run r = run_of("llama3-8b", 2, 4), full = r;
    sc_segment *b[3];
    full.recompute = SC_RC_FULL;
    sc_run own = under(&r, "rules:\n"
                           "  - {match: layers.0-15, recompute: true}\n"
                           "  - {match: layers.3, recompute: false}\n");
    assert_int_equal(own.model->n_layers, 5);
    assert_string_equal(own.model->layer[1].path, "layers.0+.*");
    assert_int_equal(own.model->layer[1].repeat, 15);
    assert_string_equal(own.model->layer[2].path, "layers.3.*");
    assert_string_equal(own.model->layer[3].path, "layers.16-31.*");
    sc_plan none = priced(&r, &b[0]), some = priced(&own, &b[1]),
            all = priced(&full, &b[2]);
    assert_true(b[1][1].bwd_s == b[2][1].bwd_s);
    assert_true(b[1][2].bwd_s == b[0][1].bwd_s);
    assert_true(b[1][3].bwd_s == b[0][1].bwd_s);
    assert_true(fast_s(&some, b[1]) > fast_s(&none, b[0]));
    assert_true(fast_s(&some, b[1]) < fast_s(&all, b[2]));
    assert_true(memory_of(&some, b[1]) < memory_of(&none, b[0]));
    assert_true(memory_of(&some, b[1]) > memory_of(&all, b[2]));
}

/* ---- kinds of blocks ------------------------------------------------------- */

static void kinds_by_range(void **state)
{
    (void)state;
    sc_run r = run_of("gpt3-xl", 1, 8);
    sc_run own = under(&r, "rules:\n"
                           "  - {match: layers.0-7, recompute: true}\n"
                           "  - {match: 'layers.23.fc?', recompute: true}\n");
    const sc_model *m = own.model;
    assert_int_equal(m->n_layers, 5);
    assert_string_equal(m->layer[1].path, "layers.0-7.*");
    assert_string_equal(m->layer[2].path, "layers.8-22.*");
    assert_string_equal(m->layer[3].path, "layers.23.*");
    assert_int_equal(m->layer[4].kind, SC_LAYER_HEAD);
    assert_int_equal(m->order[7], 1);
    assert_int_equal(m->order[22], 2);
    assert_int_equal(m->order[23], 3);
    assert_true(m->hash != r.model->hash);
    network n = network_of(&own);
    uint32_t again[3] = {0, 0, 0};
    for (uint32_t i = 0; i < n.prog.n_items; i++) {
        const program_item *it = &n.prog.item[i];
        for (uint32_t k = 1; k <= 3; k++)
            if (in_layer(&n, it, k, BACKWARD) && it->recomputed) {
                again[k - 1]++;
                assert_true(k == 1 || strncmp(name_of(&n, it), "fc", 2) == 0);
            }
    }
    assert_true(again[0] > again[2] && again[1] == 0 && again[2] > 0);
    /* the kinds of the model itself do not follow such rules */
    own.model = r.model;
    refused(&own, SC_C_BUG, 2, 5, "layers of one kind");
}

static sc_status meets(const char *model, const char *text)
{
    const sc_model *m = NULL;
    sc_run r = {0};
    load_run(&r, "switch2@1GB/s,1us; device=h100-sxm", model, NULL);
    sc_err_init(&f.err);
    return sc_strategy_model(strategy(text), r.model, &f.a, &m, &f.err);
}

static void too_many_kinds(void **state)
{
    (void)state;
    assert_int_equal(meets("gpt3-xl",
                           "rules:\n"
                           "  - {match: layers, recompute: true}\n"
                           "  - {match: layers.0.qkv, recompute: true}\n"
                           "  - {match: layers.1.proj, recompute: true}\n"
                           "  - {match: layers.2.fc1, recompute: true}\n"
                           "  - {match: layers.3.fc2, recompute: true}\n"
                           "  - {match: layers.4.act, recompute: true}\n"
                           "  - {match: layers.5.attn, recompute: true}\n"),
                     SC_EINPUT);
    assert_int_equal(f.err.d[0].code, SC_C_TOO_BIG);
    assert_string_equal(f.err.d[0].msg,
                        "there are more than 6 kinds of layers");
    assert_int_equal(f.err.d[0].line, 3);
}

static void diagnosed(uint32_t i, sc_code code, uint32_t line, uint32_t col,
                      const char *msg, const char *hint)
{
    const sc_diag *d = &f.err.d[i];
    assert_true(i < f.err.n);
    assert_string_equal(d->msg, msg);
    assert_string_equal(d->hint, hint);
    assert_int_equal(d->code, code);
    assert_int_equal(d->line, line);
    assert_int_equal(d->col, col);
}

/* All rules in one pass. */
static void matches_nothing(void **state)
{
    (void)state;
    static const char text[] =
        "mesh: {tp: 2}\nrules:\n"
        "  - {match: 'layers.*.qvk', split: {out: tp}}\n"
        "  - {match: layers.24, recompute: true}\n"
        "  - {match: 'layers.*.norm1', split: {seq: tp, ffn: none}}\n"
        "  - {match: 'layers.*.act', split: {in: tp}}\n";
    assert_int_equal(meets("gpt3-xl", text), SC_EINPUT);
    assert_int_equal(f.err.n, 4);
    diagnosed(0, SC_C_UNKNOWN_NAME, 3, 5,
              "rule 'layers.*.qvk' matches no operator of gpt3-xl",
              "did you mean 'layers.*.qkv'?");
    diagnosed(1, SC_C_UNKNOWN_NAME, 4, 5,
              "rule 'layers.24' matches no operator of gpt3-xl",
              "did you mean 'layers.*'?");
    static const char dims[] =
        "dims are batch, seq, hidden, head, ffn, vocab, expert, state; or out "
        "and in";
    diagnosed(2, SC_C_UNKNOWN_NAME, 5, 48,
              "no operator that 'layers.*.norm1' matches has a dim ffn", dims);
    diagnosed(3, SC_C_UNKNOWN_NAME, 6, 37,
              "no operator that 'layers.*.act' matches has a dim in", dims);
}

/* ---- which rule holds ------------------------------------------------------ */

static void most_specific(void **state)
{
    (void)state;
    sc_run r = run_of("gpt3-xl", 2, 4);
    sc_run own = under(&r, "mesh: {dp: 4, tp: 2}\n"
                           "preset: {tensor_parallel: megatron}\n"
                           "rules:\n"
                           "  - {match: 'layers.*.fc1', split: {out: none}}\n"
                           "  - {match: 'layers', split: {ffn: tp}}\n"
                           "  - {match: 'layers.*.qkv', split: {in: tp}}\n"
                           "  - {match: 'layers.*.attn', split: {}}\n"
                           "  - {match: '*.proj', split: {seq: tp}}\n"
                           "  - {match: 'layers.*.proj', split: {in: tp}}\n");
    network n = network_of(&own);
    double h = 2048, rows = 1024, each = own.sw->weight_bytes;
    near(bytes_of(&n, 1, "fc1", VALUE_WEIGHT), 4 * h * h * each);
    near(bytes_of(&n, 1, "act", VALUE_ACT), 2 * rows * 4 * h / 2);
    /* The preset lets go of an axis that the file uses on another dim. */
    near(bytes_of(&n, 1, "qkv", VALUE_WEIGHT), 3 * h * h / 2 * each);
    near(bytes_of(&n, 1, "qkv", VALUE_ACT), 2 * rows * 3 * h);
    /* A general rule gives way to a specific one. */
    near(bytes_of(&n, 1, "proj", VALUE_WEIGHT), h * h / 2 * each);
    /* An empty rule leaves whole what all else divides: of four replicas each
     * has the samples of all. */
    near(bytes_of(&n, 1, "attn", VALUE_ACT), 4 * 2 * rows * h);
}

/* ---- what is not chosen ----------------------------------------------------- */

/* What only networks of operators can do names the place of the first such
 * thing. */
static void beyond_search(void **state)
{
    (void)state;

    static const struct {
        const char *text, *why;
        uint32_t line, col;
    } rows[] = {
        {"mesh: {dp: 4, x: 2}\n",
         "the search supports the axes pp, rep, dp, fsdp, ep, cp and tp", 1,
         15},
        {"mesh: {tp: 2, dp: 4}\n",
         "the search needs axes in the order pp, rep, dp, ep, cp, tp", 1, 15},
        {"mesh: {rep: 2, dp: 2, fsdp: 2}\n",
         "the search supports one axis of replicas of groups that shard", 1,
         16},
        {"mesh: {dp: 8}\nrules:\n"
         "  - {match: head, assign: round_robin, over: dp}\n",
         "the search does not support operators on single ranks", 3, 5},
        {"mesh: {dp: 8}\nrules:\n"
         "  - {match: head, tensor: optim, place: cpu}\n",
         "the search keeps single tensors on devices; `offload` moves states",
         3, 5},
        {"mesh: {dp: 8}\nrules:\n"
         "  - {match: head, tensor: out, place: {dim0: dp}}\n",
         "the search places weights, grads and optim only", 3, 5},
        {"mesh: {dp: 8}\nrules:\n"
         "  - {match: head, tensor: grad, place: {dim1: dp}}\n",
         "the search shards the first dim of a tensor, dim0", 3, 41},
        {"mesh: {dp: 8}\nrules:\n  - {match: head, split: {cin: dp}}\n",
         "dims of layers are batch, seq, hidden, head, ffn, vocab, expert, "
         "state, out and in",
         3, 27},
        {"mesh: {pp: 2, dp: 8}\nrules:\n"
         "  - {match: head, split: {batch: pp}}\n",
         "layers are not split over pp", 3, 27},
        {"mesh: {pp: 2, dp: 8}\nrules:\n"
         "  - {match: head, devices: {pp: 1}}\n",
         "the search does not support rules that place operators on devices", 3,
         5},
        {"mesh: {pp: 2}\npipeline: {cuts: [head]}\n",
         "stages are cut between blocks: layers.12", 2, 19},
        {"mesh: {dp: 2, fsdp: 4}\npreset: {zero: 3, zero_axis: dp}\n",
         "weights are sharded over fsdp, over dp where there is none", 2, 30},
        {"preset: {recompute: ops}\nrules:\n"
         "  - {match: layers.0, recompute: no}\n",
         "recompute: ops keeps every other product of all blocks", 3, 5},
        {"mesh: {dp: 8}\npreset: {data_parallel: false}\n",
         "replicas split the samples", 2, 25},
    };

    sc_pos at;
    const char *why;
    for (size_t i = 0; i < SC_COUNT(rows); i++) {
        assert_false(sc_strategy_searchable(strategy(rows[i].text), &why, &at));
        assert_string_equal(why, rows[i].why);
        assert_int_equal(at.line, rows[i].line);
        assert_int_equal(at.col, rows[i].col);
    }
    /* axes of one rank are in nobody's way, nor is what changes no choice */
    static const char *const held[] = {"mesh: {tp: 1, pp: 2, dp: 2, cp: 2}\n",
                                       "mesh: {x: 1, dp: 8}\n",
                                       "mesh: {rep: 1, dp: 1, fsdp: 8}\n",
                                       "mesh: {tp: 2, x: 1, dp: 1}\n",
                                       "overlap: {gamma: 0.3}\n",
                                       "optimizer: sgd\n"};
    for (size_t i = 0; i < SC_COUNT(held); i++) {
        assert_true(sc_strategy_searchable(strategy(held[i]), &why, &at));
        assert_null(why);
    }
}

/* Step of a run by segments and by the network, and the memory of its first stage. */
static void agree(const sc_run *r)
{
    sc_segment *b;
    sc_plan p = priced(r, &b);
    sc_job job;
    sc_prediction q;
    sc_job_init(&job);
    job.engine = SC_ENGINE_FAST;
    job.brief = true;
    assert_int_equal(sc_predict_chosen(&job, r, &f.a, &q, &f.err), SC_OK);
    near_by(fast_s(&p, b), q.step_time_s, 0.06);
    near_by(memory_of(&p, b), q.memory[0].peak, 0.04);
}

/* fc1 of a layer of h = 2048 has 4 h^2 weights.  Whole under ZeRO-3: it is not
 * gathered for use but after the update, and its gradients are summed once a step;
 * the optimizer keeps a shard still.  In parts where all others are whole: all
 * that follows from it is in parts. */
static void single_weights(void **state)
{
    (void)state;
    sc_run r = run_of("gpt3-xl", 1, 8), own;
    double h = (double)r.model->t.hidden, fc1 = 4 * h * h;
    double n = segment(&r, 1).params, wide = r.sw->reduce_bytes;
    r.zero = 3;
    own = under(&r, "mesh: {dp: 8}\nrules:\n  - {match: layers.*.fc1, tensor: "
                    "weight, place: {}}\n");
    sc_segment b = segment(&own, 1);
    near(b.params, n);
    near(b.gathered, n - fc1);
    near(b.params_kept, (n - fc1) / 8 + fc1);
    near(b.grads_kept, (n - fc1) / 8 + fc1);
    near(b.optim_kept, n / 8);
    near(b.gather.bytes, 2 * (n - fc1));
    near(b.grad.bytes, wide * (n - fc1));
    near(b.once.bytes, wide * fc1);
    near(b.update.bytes, 2 * fc1);
    agree(&own);
    r.zero = 0;
    own = under(&r, "mesh: {dp: 8}\nrules:\n  - {match: layers.*.fc1, tensor: "
                    "weight, place: {dim0: dp}}\n");
    b = segment(&own, 1);
    near(b.gathered, fc1);
    near(b.params_kept, n - fc1 + fc1 / 8);
    near(b.optim_kept, n - fc1 + fc1 / 8);
    near(b.grad.bytes, wide * fc1);
    near(b.once.bytes, wide * (n - fc1));
    near(b.update.bytes, 0);
    agree(&own);
}

static void keys_differ(void **state)
{
    (void)state;
    sc_run r = run_of("gpt3-xl", 1, 8);
    sc_run a = under(&r, "rules:\n  - {match: layers, recompute: true}\n");
    sc_run b = under(&r, "rules:\n  - {match: layers, recompute: no}\n");
    assert_true(sc_plan_pass_key(&a) == sc_plan_pass_key(&a));
    assert_true(sc_plan_pass_key(&a) != sc_plan_pass_key(&b));
    assert_true(sc_plan_pass_key(&a) != sc_plan_pass_key(&r));
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(presets_alone),    TEST(megatron_by_hand),  TEST(zero_by_hand),
        TEST(all_blocks_again), TEST(some_blocks_again), TEST(kinds_by_range),
        TEST(too_many_kinds),   TEST(matches_nothing),   TEST(most_specific),
        TEST(beyond_search),    TEST(keys_differ),       TEST(single_weights),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
