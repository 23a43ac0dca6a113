/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a layer of a network keeps for its backward pass: against table 2 of
 * Korthikanti et al. 2022 (s tokens, b samples, h width, a heads, t tensor
 * parallel), and of every model against a list added up by
 * hand, also as its segment has it.
 */
#include "network.h"

#include <stdio.h>
#include <string.h>

static sc_run run_of(const char *model, const char *software, uint32_t tp)
{
    sc_run r = {.size = {1, 1, 1, 1, tp, 1},
                .vpp = 1,
                .mbs = 4,
                .ga = 1,
                .gbs = 4,
                .seq = 2048,
                .precision = SC_FP16,
                .recipe = SC_RECIPE_FP16};
    char spec[32];
    snprintf(spec, sizeof spec, "h100-sxm:%u", tp);
    load_run(&r, spec, model, software);
    return r;
}

static void program_of(const sc_run *r, net_program *prog)
{
    const sc_net *g = NULL;
    sc_net_run *job = SC_NEW(&f.a, sc_net_run);
    sc_net_plan plan = {0};
    assert_non_null(job);
    if (sc_net_from_model(r->model, r->seq, false, &f.a, &g, &f.err) != SC_OK)
        fail_msg("%s: %s", r->model->name, f.err.d[0].msg);
    *job = job_of(r, g);
    if (sc_net_plan_compile(job, &f.a, &plan, &f.err) != SC_OK ||
        program_name_values(plan.program, &f.a, &f.err) != SC_OK)
        fail_msg("%s: %s", r->model->name, f.err.d[0].msg);
    *prog = *plan.program;
}

static bool forward(const program_item *it)
{
    return it->pass == SC_PASS_FWD && !it->recomputed && !it->once;
}

/* Bytes that the forward pass of a layer makes and the backward pass reads. */
static double kept(const sc_run *r, uint32_t layer)
{
    net_program p;
    char path[32];
    double sum = 0;
    program_of(r, &p);
    bool *read = SC_NEW_N(&f.a, bool, p.n_values);
    assert_non_null(read);
    for (uint32_t i = 0; i < p.n_items; i++)
        for (uint32_t k = 0; k < p.item[i].n_in && !forward(&p.item[i]); k++)
            read[p.item[i].in[k]] = true;
    int n = snprintf(path, sizeof path, "layers.%u.", layer);
    for (uint32_t v = 0; v < p.n_values; v++) {
        const program_value *x = &p.value[v];
        bool act = x->what == VALUE_ACT || x->what == VALUE_EXTRA;
        if (!act || !read[v] || x->made == SC_NONE ||
            !forward(&p.item[x->made]) ||
            strncmp(x->name, path, (size_t)n) != 0)
            continue;
        sum += x->bytes;
    }
    return sum;
}

static void korthikanti(void **state)
{
    (void)state;
    static const uint32_t degree[] = {1, 2, 4, 8};
    for (size_t i = 0; i < SC_COUNT(degree); i++) {
        sc_run r = run_of("gpt3-6.7b", "megatron-lm-2022", degree[i]);
        double t = degree[i], s = 2048, b = 4;
        double h = (double)r.model->t.hidden, a = (double)r.model->t.heads;
        double sbh = s * b * h, as_h = a * s / h;
        near(kept(&r, 2), sbh * (10 + 24 / t + 5 * as_h / t));
        r.recompute = SC_RC_SELECTIVE;
        near(kept(&r, 2), sbh * (10 + 24 / t));
        r.recompute = SC_RC_FULL;
        near(kept(&r, 2), 2 * sbh);
        r.sp = true;
        r.recompute = SC_RC_NONE;
        near(kept(&r, 2), sbh / t * (34 + 5 * as_h));
        r.recompute = SC_RC_SELECTIVE;
        near(kept(&r, 2), 34 * sbh / t);
    }
}

/* ---- every model ------------------------------------------------------------ */

typedef struct how {
    const char *software;
    uint32_t tp;
    uint8_t precision, recipe;
} how;

/* Of a layer of a decoder, per token: the norms' inputs, those of products in
 * `c` bytes, queries, keys and values, a sum for each row of scores, what
 * attention made (fused, it needs it in 16 bits), masks of dropouts.  A layer
 * of experts has a router as well, and the rest for every copy of a token. */
static double by_hand(const sc_transformer *t, const how *w)
{
    double h = (double)t->hidden, d = (double)t->head_dim, a = (double)t->heads;
    double q = a * d, kv = (double)t->kv_heads * d, k = 1;
    double ffn = (double)t->ffn, in = 2, c = w->precision == SC_FP8 ? 1 : 2;
    double sum = 2 * h + c * h + 2 * (q + 2 * kv) + 4 * a + 2 * q;
    if (c < 2) sum += q;
    if (t->qk_norm) sum += 2 * (q + 2 * kv);
    if (t->experts) {
        sum += 2 * h;
        k = (double)t->topk;
        ffn = (double)t->moe_ffn;
    }
    if (c < 2 && strcmp(w->software, "mlperf-nemo") == 0) in = 1;
    if (t->act >= SC_ACT_SWIGLU) in *= 2;
    if (t->act == SC_ACT_RELU) in = c < 2 ? 2 : 0; /* its result serves */
    if (!t->parallel) sum += 2 * h;
    /* Megatron splits an expert over tp and gathers the tokens before it. */
    bool gathers = t->experts && strcmp(w->software, "megatron-core") == 0;
    sum += k * (c * h * (gathers ? w->tp : 1) + in * ffn + c * ffn);
    /* What one norm made serves both parts; each casts it to 8 bits itself. */
    if (t->one_norm && c == 2) sum -= c * h;
    if (t->norms == SC_NORMS_BOTH) sum += 4 * h;
    return sum + (t->dropout ? 2 * h : 0);
}

/* What has other operators. */
static bool is_plain(const sc_model *m)
{
    const sc_transformer *t = &m->t;
    return !m->net && !t->kv_rank && !t->pattern && !t->lora &&
           !t->decoder_layers && !t->shared_ffn && !t->image;
}

static void every_model(void **state)
{
    (void)state;
    static const how ways[] = {
        {"megatron-core", 1, SC_BF16, SC_RECIPE_BF16},
        {"megatron-core", 2, SC_BF16, SC_RECIPE_BF16},
        {"megatron-core", 1, SC_FP8, SC_RECIPE_FP8},
        {"mlperf-nemo", 2, SC_FP8, SC_RECIPE_FP8},
    };
    const char **names = NULL;
    uint32_t n = 0, seen = 0, priced_too = 0;
    assert_int_equal(sc_model_list(&f.a, &names, &n, &f.err), SC_OK);
    for (uint32_t i = 0; i < n * SC_COUNT(ways); i++) {
        const how *w = &ways[i % SC_COUNT(ways)];
        const char *name = names[i / SC_COUNT(ways)];
        sc_arena_mark mark = sc_arena_save(&f.a);
        sc_run r = run_of(name, w->software, w->tp);
        r.sp = true;
        r.precision = w->precision;
        r.recipe = w->recipe;
        if (is_plain(r.model) && r.model->t.heads % w->tp == 0) {
            double want = 4 * 2048 * by_hand(&r.model->t, w) / w->tp;
            double is = kept(&r, r.model->n_blocks - 2);
            if (fabs(is / want - 1) > 1e-6)
                fail_msg("%s, %s tp %u: %.0f kept, %.0f by hand", name,
                         w->software, w->tp, is, want);
            if (r.model->n_layers == 3) {
                near_by(segment(&r, 1).saved, want, 1e-6);
                priced_too++;
            }
            seen++;
        }
        sc_arena_restore(&f.a, mark);
    }
    assert_true(seen > 200 && priced_too > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(korthikanti, set_up, tear_down),
        cmocka_unit_test_setup_teardown(every_model, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
