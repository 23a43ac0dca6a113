/* SPDX-License-Identifier: Apache-2.0 */
/* test_plan_graph_vocabulary.c - a vocabulary split over the stages of a
 * pipeline. */
#include "net_plan.h"
#include "sim/sim.h"

#define LAYERS 4
#define HIDDEN 1024
#define VOCAB  50000 /* as wide as four layers of 12 HIDDEN^2 */
#define SEQ    1024
#define PP     4
#define VALUE  (2.0 * SEQ * HIDDEN)

static const sc_net *words_in(int64_t layers, bool tied)
{
    sc_transformer t = {.name = "small",
                        .layers = layers,
                        .hidden = HIDDEN,
                        .heads = 16,
                        .vocab = VOCAB,
                        .max_seq = SEQ,
                        .tied = tied};
    const sc_model *m = NULL;
    const sc_net *g = NULL;
    (void)sc_model_from_transformer(&t, sc_pos_none(), &arena, &m, &err);
    no_error();
    (void)sc_net_from_model(m, SEQ, false, &arena, &g, &err);
    no_error();
    return g;
}

static const sc_net *words_of(bool tied)
{
    return words_in(LAYERS, tied);
}

static const char table[] = "  - {match: embedding.embed, split: {in: pp}}\n";
static const char head[] = "  - {match: head, split: {vocab: pp}}\n";

static void prepare_split(planned *p, const char *first, const char *second,
                          const sc_net *g, uint32_t ga)
{
    const char *text = sc_sprintf(
        &arena,
        "mesh: {pp: %d}\nrules:\n  - {match: layers, recompute: no}\n%s%s", PP,
        first, second);
    assert_non_null(text);
    prepare(p, text, g, 1, ga);
    p->sw.capture = SC_CAPTURE_STEP; /* no time of the host */
}

static uint32_t stage_at(const planned *p, const char *path)
{
    const sc_net *g = p->plan.job->net;
    for (uint32_t i = 0; i < g->n_ops; i++)
        if (strcmp(g->op[i].path, path) == 0) return p->plan.stage_of[i];
    fail_msg("no %s", path);
    return 0;
}

/* Chunks of each device: its rows of the table, its layer, its classes. */
static void parts_on_all_devices(void **state)
{
    (void)state;
    planned p;
    prepare_split(&p, table, head, words_of(false), 8);
    (void)infer_only(&p);
    no_error();
    assert_int_equal(p.plan.n_stages, 3 * PP);
    assert_int_equal(stage_at(&p, "embedding.embed.pp1"), 1);
    assert_int_equal(stage_at(&p, "embedding.embed.sum"), PP);
    assert_int_equal(stage_at(&p, "layers.3.fc2"), PP + 3);
    assert_int_equal(stage_at(&p, "head.lm_head.pp2"), 2 * PP + 2);
    assert_int_equal(stage_at(&p, "head.loss.pp2"), 2 * PP + 2);
    assert_int_equal(stage_at(&p, "head.loss"), 3 * PP - 1);
    double most = 0, sum = 0;
    for (uint32_t i = 0; i < p.prog.n_values; i++) {
        const program_value *v = &p.prog.value[i];
        bool part = v->what == VALUE_WEIGHT && strstr(v->name, ".pp");
        if (part && v->bytes > most) most = v->bytes;
        if (part) sum += v->bytes;
    }
    near(most, 2.0 * VOCAB / PP * HIDDEN);
    near(sum, 2 * 2.0 * VOCAB * HIDDEN);
}

/* What the layers read is a sum of what all parts of the table give; what the
 * head reads goes to all parts, its gradient is a sum of theirs. */
static void exchanged(void **state)
{
    (void)state;
    planned p;
    uint32_t n[2][2] = {{0}};
    prepare_split(&p, table, head, words_in(32, false), 8); /* folded */
    (void)infer_only(&p);
    no_error();
    for (uint32_t i = 0; i < p.plan.n_exchanges; i++) {
        const sc_net_exchange *x = &p.plan.exchange[i];
        if (x->p2p || x->grad) continue;
        near(x->bytes, VALUE);
        assert_int_equal(x->size, PP);
        assert_true(x->coll == SC_REDUCE || x->coll == SC_BROADCAST);
        n[x->pass == SC_PASS_DGRAD][x->coll == SC_REDUCE]++;
    }
    for (int k = 0; k < 4; k++) assert_int_equal(n[k / 2][k % 2], 1);
    /* The sums over classes, 4 bytes a token, go between the stages. */
    const sc_net_exchange *x = exchange_of(&p.plan, "head.loss.pp0", "out");
    assert_true(x && x->p2p && x->bytes < 8.0 * SEQ);
}

/* Seconds of a micro-batch's kernels on the device that has most. */
static double busiest(const planned *p)
{
    double of[PP] = {0}, most = 0;
    for (uint32_t i = 0; i < p->prog.n_items; i++) {
        const program_item *it = &p->prog.item[i];
        bool sends = it->to != SC_NONE; /* in the queue of its kernels */
        if (it->once || (it->exchange != SC_NONE && !sends)) continue;
        of[it->stage % PP] += sends ? it->seconds : it->price.seconds;
    }
    for (uint32_t d = 0; d < PP; d++) most = fmax(most, of[d]);
    return most;
}

static double seconds(planned *p)
{
    const double none[2] = {0, 0};
    sc_net_clock clock = {0};
    sc_sim_opts o;
    sc_result r;
    (void)infer_only(p);
    no_error();
    (void)sc_net_plan_clock(&p->plan, none, false, &arena, &clock, &err);
    no_error();
    (void)sc_net_plan_lower(&p->plan, &arena, &err);
    no_error();
    sc_sim_opts_init(&o);
    (void)sc_sim_run(&p->plan.step, &o, &arena, &r, &err);
    no_error();
    assert_true(r.makespan == clock.makespan);
    return sc_time_to_s(r.makespan);
}

/* The head's product is as large as four layers: of these the last device runs
 * five, or two where the head is split over four.  A pipeline that is full takes
 * as long for a micro-batch as the device that has most to do. */
static void balanced(void **state)
{
    (void)state;
    planned p, q;
    double each[2];
    const char *const rules[2][2] = {{"", ""}, {table, head}};
    for (int k = 0; k < 2; k++) {
        prepare_split(&p, rules[k][0], rules[k][1], words_of(false), 40);
        prepare_split(&q, rules[k][0], rules[k][1], words_of(false), 24);
        each[k] = (seconds(&p) - seconds(&q)) / 16;
        assert_true(each[k] >= 0.999 * busiest(&p));
        assert_true(each[k] <= (k ? 1.1 : 1.001) * busiest(&p));
    }
    assert_true(each[1] < 0.6 * each[0]);
}

/* A shared table is split for both of its uses, and adds to one gradient. */
static void shared(void **state)
{
    (void)state;
    planned p;
    prepare_split(&p, table, head, words_of(true), 8);
    (void)seconds(&p);
    for (uint32_t i = 0; i < p.plan.n_exchanges; i++)
        assert_false(p.plan.exchange[i].grad);
}

static const sc_net *catalogued(const char *name, int64_t layers)
{
    const sc_model *m = NULL;
    const sc_net *g = NULL;
    (void)sc_model_load(name, sc_pos_none(), &arena, &m, &err);
    no_error();
    if (layers) {
        sc_transformer t = m->t;
        t.layers = layers;
        (void)sc_model_from_transformer(&t, sc_pos_none(), &arena, &m, &err);
        no_error();
    }
    (void)sc_net_from_model(m, 512, false, &arena, &g, &err);
    no_error();
    return g;
}

static double parts_of_weights(const planned *p)
{
    double sum = 0;
    for (uint32_t i = 0; i < p->prog.n_values; i++) {
        const program_value *v = &p->prog.value[i];
        if (v->what == VALUE_WEIGHT && strstr(v->name, ".pp")) sum += v->bytes;
    }
    return sum;
}

/* The words of a decoder are looked up with those of the encoder, and summed
 * behind its last block, the 6th of 12, on the second of four stages.  All have
 * one table: the stage of the words and that of the classes. */
static void two_stacks(void **state)
{
    (void)state;
    planned p;
    prepare_split(&p, "  - {match: embedding.embed*, split: {in: pp}}\n", head,
                  catalogued("t5-small", 0), 8);
    (void)infer_only(&p);
    no_error();
    assert_int_equal(p.plan.n_stages, 3 * PP);
    assert_int_equal(stage_at(&p, "embedding.embed.pp1"), 1);
    assert_int_equal(stage_at(&p, "embedding.embed_decoder.pp1"), 1);
    assert_int_equal(stage_at(&p, "embedding.embed.sum"), PP);
    assert_int_equal(stage_at(&p, "embedding.embed_decoder.sum"), PP + 1);
    near(parts_of_weights(&p), 2 * 2.0 * 32128 * 512);
    (void)seconds(&p);
    for (uint32_t i = 0; i < p.plan.n_exchanges; i++) {
        const sc_net_exchange *x = &p.plan.exchange[i];
        assert_false(x->grad && strstr(x->path, ".pp"));
    }
}

/* A prediction of the token after the next looks words up, and has a head, of its
 * own: both of the parts that are there. */
static void later_tokens(void **state)
{
    (void)state;
    planned p;
    const sc_net *g = catalogued("deepseek-v3-mtp", 7);
    prepare_split(&p, "  - {match: '*embed', split: {in: pp}}\n", head, g, 8);
    (void)infer_only(&p);
    no_error();
    assert_int_equal(p.plan.n_stages, 3 * PP);
    assert_int_equal(stage_at(&p, "embedding.embed.pp3"), 3);
    assert_int_equal(stage_at(&p, "layers.7.mtp_embed.pp3"), 3);
    assert_int_equal(stage_at(&p, "layers.7.mtp_embed.sum"), 2 * PP - 1);
    assert_int_equal(stage_at(&p, "head.mtp_norm"), 2 * PP - 1);
    assert_int_equal(stage_at(&p, "head.lm_head.pp1"), 2 * PP + 1);
    assert_int_equal(stage_at(&p, "head.mtp_lm_head.pp1"), 2 * PP + 1);
    assert_int_equal(stage_at(&p, "head.loss"), 3 * PP - 1);
    assert_int_equal(stage_at(&p, "head.mtp_loss"), 3 * PP - 1);
    near(parts_of_weights(&p), 2 * 2.0 * 129280 * 7168);
    (void)seconds(&p);
}

static void refused(const char *text, bool tied, const char *what)
{
    planned p;
    prepare(&p, text, words_of(tied), 1, 8);
    assert_int_equal(infer_only(&p), SC_EINPUT);
    assert_int_equal(err.d[0].code, SC_C_CONFLICT);
    if (!strstr(err.d[0].msg, what)) fail_msg("%s", err.d[0].msg);
    sc_err_init(&err);
}

static void refusals(void **state)
{
    (void)state;
    refused("mesh: {pp: 4}\nrules:\n"
            "  - {match: layers.1.fc1, split: {out: pp}}\n",
            false, "only a loss with the same split may read it");
    refused("mesh: {pp: 4}\nrules:\n  - {match: head, split: {vocab: pp}}\n",
            true, "it shares a table that is not split over pp");
    refused("mesh: {pp: 4}\nrules:\n"
            "  - {match: layers.1.attn, split: {out: pp}}\n",
            false, "it has no vocabulary");
    refused("mesh: {pp: 4}\npipeline: {schedule: gpipe}\nrules:\n"
            "  - {match: head, split: {vocab: pp}}\n",
            false, "this needs schedule 1f1b");
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(parts_on_all_devices),
        TEST(exchanged),
        TEST(balanced),
        TEST(shared),
        TEST(two_stacks),
        TEST(later_tokens),
        TEST(refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
