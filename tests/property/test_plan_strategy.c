/* SPDX-License-Identifier: Apache-2.0 */
/* A file of presets, and rules that say what presets say, are the same as
 * options. */
#include "property.h"
#include "world.h"

#include <stdio.h>
#include <string.h>

#define PICK(p, list) ((list)[prop_below((p), SC_COUNT(list))])

typedef struct chosen {
    uint32_t tp, pp, dp, mbs, ga;
    int zero, recompute;
    bool sp, gpipe;
} chosen;

static chosen draw(prop *p)
{
    static const uint32_t tp[] = {1, 2, 4}, pp[] = {1, 2, 4};
    chosen c = {.tp = PICK(p, tp), .pp = PICK(p, pp)};
    c.dp = 16 / (c.tp * c.pp);
    c.mbs = 1 + (uint32_t)prop_below(p, 2);
    c.ga = c.pp * (1 + (uint32_t)prop_below(p, 3));
    c.zero = (int)prop_below(p, 4);
    c.recompute = (int)prop_below(p, 4);
    c.sp = prop_below(p, 2);
    c.gpipe = prop_below(p, 2);
    return c;
}

/* The same as options. */
static sc_job options(const chosen *c)
{
    sc_job j;
    sc_job_init(&j);
    j.tp = c->tp;
    j.pp = c->pp;
    j.dp = c->dp;
    j.cp = 1;
    j.mbs = c->mbs;
    j.gbs = (int64_t)c->mbs * c->dp * c->ga;
    j.seq = 1024;
    j.zero = c->zero;
    j.sp = c->sp;
    j.recompute = c->recompute;
    j.schedule = c->gpipe ? SC_SCH_GPIPE : SC_SCH_1F1B;
    return j;
}

static const char *file(const chosen *c, bool rules, sc_arena *a)
{
    static const char *const what[] = {"", "optim", "grad", "weight"};
    static const char bias[] =
        "  - {match: '*', tensor: bias, place: {dim0: dp}}\n";
    const char *zero = rules ? "" : sc_sprintf(a, "zero: %d, ", c->zero);
    const char *rule = rules && c->zero
                           ? sc_sprintf(a,
                                        "rules:\n  - {match: '*', tensor: %s, "
                                        "place: {dim0: dp}}\n%s",
                                        what[c->zero], c->zero == 3 ? bias : "")
                           : "";
    return sc_sprintf(a,
                      "mesh: {pp: %u, dp: %u, tp: %u}\n"
                      "batch: {global: %u, micro: %u, seq: 1024}\n"
                      "preset: {tensor_parallel: %s, %srecompute: %s}\n"
                      "pipeline: {schedule: %s}\n%s",
                      c->pp, c->dp, c->tp, c->mbs * c->dp * c->ga, c->mbs,
                      c->sp ? "megatron-sp" : "megatron", zero,
                      sc_recompute_names[c->recompute],
                      c->gpipe ? "gpipe" : "1f1b", rule);
}

/* Every row prints alike. */
static bool same_job(const sc_job *x, const sc_job *y)
{
    bool same = x->sp == y->sp;
    for (const sc_key *k = sc_job_keys; k->name; k++) {
        char a[200], b[200];
        if (!sc_job_has(x, k) && !sc_job_has(y, k)) continue;
        if (!sc_job_has(x, k) || !sc_job_has(y, k)) return false;
        sc_schema_print(k, x, a, sizeof a);
        sc_schema_print(k, y, b, sizeof b);
        same = same && strcmp(a, b) == 0;
    }
    return same;
}

static bool presets_are_options(prop *p, void *ctx)
{
    (void)ctx;
    sc_arena a;
    sc_err err;
    sc_strategy s;
    sc_job job, want;
    sc_arena_init(&a, 0);
    sc_err_init(&err);
    sc_job_init(&job);
    chosen c = draw(p);
    const char *text = file(&c, false, &a);
    want = options(&c);
    bool good =
        sc_strategy_read(text, strlen(text), "s.yml", &a, &s, &err) == SC_OK &&
        sc_strategy_to_job(&s, NULL, &job, &a, &err) == SC_OK &&
        same_job(&job, &want);
    if (!good && prop_reporting(p)) print_message("%s", text);
    sc_arena_free(&a);
    return good;
}

/* Step and memory of a run by the fast engine; false: it can't run. */
static bool measure(const sc_run *r, sc_arena *a, double *step, double *peak)
{
    sc_err err;
    sc_plan p;
    sc_segment *b;
    sc_stage_memory m[8];
    sc_err_init(&err);
    if (sc_plan_build(r, a, &p, &err) != SC_OK ||
        sc_segments_price(&p, a, &b, &err) != SC_OK ||
        sc_predict_fast(&p, b, a, step, &err) != SC_OK ||
        sc_predict_memory(&p, b, a, m, &err) != SC_OK)
        return false;
    *peak = m[0].peak;
    return true;
}

static bool rules_are_presets(prop *p, void *ctx)
{
    const world *w = ctx;
    sc_arena a;
    sc_err err;
    sc_strategy s;
    double step[2] = {0, 0}, peak[2] = {0, 0};
    sc_arena_init(&a, 0);
    sc_err_init(&err);
    chosen c = draw(p);
    c.sp = c.sp && c.tp > 1;
    sc_run r = {.hw = w->hw[0],
                .model = PICK(p, w->model),
                .sw = w->sw[prop_below(p, w->n_sw)],
                .cost = &w->cost,
                .size = {c.pp, c.dp, 1, 1, c.tp, 1},
                .vpp = 1,
                .mbs = c.mbs,
                .ga = c.ga,
                .gbs = (uint64_t)c.mbs * c.dp * c.ga,
                .seq = 1024,
                .precision = SC_BF16,
                .recipe = SC_RECIPE_BF16,
                .zero = c.zero,
                .sp = c.sp,
                .recompute = (sc_recompute)c.recompute,
                .schedule = c.gpipe ? SC_SCH_GPIPE : SC_SCH_1F1B};
    sc_run own = r;
    /* shards weights, too, but does not gather them twice: no rule says so */
    if (c.zero == 2 && r.sw->zero2_weights) {
        sc_arena_free(&a);
        return true;
    }
    const char *text = file(&c, true, &a);
    own.strategy = &s;
    own.zero = 0;
    bool good =
        sc_strategy_read(text, strlen(text), "s.yml", &a, &s, &err) == SC_OK &&
        sc_strategy_model(&s, r.model, &a, &own.model, &err) == SC_OK &&
        measure(&r, &a, &step[0], &peak[0]) &&
        measure(&own, &a, &step[1], &peak[1]) && step[0] == step[1] &&
        peak[0] == peak[1];
    if (!good && prop_reporting(p))
        print_message("%s%.9g %.9g s, %.9g %.9g bytes\n", text, step[0],
                      step[1], peak[0], peak[1]);
    sc_arena_free(&a);
    return good;
}

static void files_and_options(void **state)
{
    (void)state;
    static const char *const model[] = {"gpt3-xl", "llama3-8b", NULL};
    static const char *const hw[] = {"dgx-h100:2", NULL};
    static const char *const sw[] = {"megatron-core", "torchtitan-2024", NULL};
    world w;
    assert_true(world_load(&w, model, hw, sw));
    for (uint32_t i = w.n_models; i < WORLD_MOST; i++) w.model[i] = w.model[0];
    assert_true(
        prop_check("presets are options", 300, presets_are_options, &w));
    assert_true(prop_check("rules are presets", 100, rules_are_presets, &w));
    sc_arena_free(&w.load);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(files_and_options)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
