/* SPDX-License-Identifier: Apache-2.0 */
/* Sharding of states on random runs: what is kept in smaller parts is never
 * faster, what is gathered further ahead never slower, and no more layers are
 * gathered than memory is counted for. */
#include "property.h"
#include "world.h"

#include <math.h>
#include <string.h>

#define PICK(p, list) ((list)[prop_below((p), SC_COUNT(list))])

static bool load(world *w)
{
    static const char *const model[] = {"gpt2", "llama3-8b", "mixtral-8x7b",
                                        NULL};
    static const char *const hw[] = {
        "dgx-h100:2", "dgx-a100-80g:4",
        "switch8@450GB/s,1us x switch2@5GB/s,5us; device=h100-sxm",
        "switch4@50GB/s,1us; device=a100-sxm-80g", NULL};
    static const char *const sw[] = {"megatron-core", "torchtitan-2024",
                                     "megatron-lm-2022", NULL};
    return world_load(w, model, hw, sw);
}

typedef struct times {
    double event, fast, weights;
    bool ahead; /* more layers gathered than counted */
} times;

/* The i-th gather may start when all but `depth` layers before it are done. */
static bool too_far_ahead(const sc_graph *g, const sc_result *r, uint32_t depth)
{
    sc_time end[4096];
    uint32_t layers = 0, gathers = 0;
    for (uint32_t i = 0; i < g->n_ops; i++) {
        const char *name = g->name[i];
        bool layer = g->kind[i] == SC_OP_COMPUTE &&
                     (!strcmp(name, "forward") || !strcmp(name, "backward"));
        if (layer && layers < SC_COUNT(end)) end[layers++] = r->end[i];
    }
    for (uint32_t i = 0; i < g->n_ops; i++) {
        if (strcmp(g->name[i], "gather weights") != 0) continue;
        if (gathers > depth && gathers - depth - 1 < layers &&
            r->start[i] < end[gathers - depth - 1])
            return true;
        gathers++;
    }
    return gathers > 0 && gathers != layers;
}

static bool evaluate(const sc_run *r, sc_arena *a, times *t)
{
    sc_plan p;
    sc_block *b;
    sc_graph g;
    sc_result res;
    sc_sim_opts o;
    sc_stage_memory m[8];
    sc_err err;
    sc_err_init(&err);
    if (sc_plan_build(r, a, &p, &err) || sc_blocks_price(&p, a, &b, &err)) {
        print_message("%s\n", err.d[0].msg);
        return false;
    }
    sc_predict_rates(&p, b, &o);
    if (sc_lower(&p, b, NULL, a, &g, &err) ||
        sc_sim_run(&g, &o, a, &res, &err) ||
        sc_predict_fast(&p, b, a, &t->fast, &err) ||
        sc_predict_memory(&p, b, a, m, &err)) {
        print_message("%s\n", err.d[0].msg);
        return false;
    }
    t->event = sc_time_to_s(res.makespan);
    t->weights = m[0].weights;
    t->ahead = r->zero == 3 && r->size[SC_AX_PP] == 1 &&
               too_far_ahead(&g, &res, (uint32_t)r->sw->prefetch);
    return true;
}

static sc_run draw(prop *p, const world *w)
{
    static const uint32_t two[] = {1, 2};
    sc_run r = {.cost = &w->cost,
                .model = w->model[prop_below(p, w->n_models)],
                .hw = w->hw[prop_below(p, w->n_hw)],
                .sw = w->sw[prop_below(p, w->n_sw)],
                .size = {1, 1, 1, 1, 1, 1},
                .vpp = 1,
                .precision = SC_BF16,
                .recipe = SC_RECIPE_BF16};
    r.mbs = PICK(p, two);
    r.seq = 256u << prop_below(p, 4);
    r.size[SC_AX_TP] = PICK(p, two);
    r.size[SC_AX_PP] = PICK(p, two);
    r.size[SC_AX_REP] = PICK(p, two);
    if (r.size[SC_AX_TP] * r.size[SC_AX_PP] * 2 > r.hw->n_devices)
        r.size[SC_AX_REP] = 1;
    r.ga = 1 + (uint32_t)prop_below(p, 4);
    r.size[SC_AX_DP] = r.hw->n_devices / (r.size[SC_AX_TP] * r.size[SC_AX_PP] *
                                          r.size[SC_AX_REP]);
    r.gbs = r.mbs * r.ga * sc_run_dp(&r);
    r.sp = prop_below(p, 2);
    r.recompute = prop_below(p, 2) ? SC_RC_FULL : SC_RC_NONE;
    return r;
}

static void report(const prop *p, const sc_run *r, const times *a,
                   const times *b)
{
    if (!prop_reporting(p)) return;
    print_message("%s on %s with %s: tp %u pp %u dp %u rep %u mbs %d ga %u seq "
                  "%d sp %d rc %d zero %d prefetch %d: event %.9g, %.9g; fast "
                  "%.9g, %.9g; weights %g, %g; %d\n",
                  r->model->name, r->hw->name, r->sw->name, r->size[SC_AX_TP],
                  r->size[SC_AX_PP], r->size[SC_AX_DP], r->size[SC_AX_REP],
                  (int)r->mbs, r->ga, (int)r->seq, r->sp, r->recompute, r->zero,
                  (int)r->sw->prefetch, a->event, b->event, a->fast, b->fast,
                  a->weights, b->weights, b->ahead);
}

/* ZeRO-2 scatters after each micro-batch what ZeRO-1 does once. */
static bool two_after_one(prop *p, void *ctx)
{
    sc_arena a;
    times one, two;
    sc_run r = draw(p, ctx);
    if (r.ga == 1) return true;
    sc_arena_init(&a, 0);
    r.zero = 1;
    bool ok = evaluate(&r, &a, &one);
    r.zero = 2;
    ok = ok && evaluate(&r, &a, &two);
    bool right = ok && two.event >= one.event * (1 - 1e-9) &&
                 two.fast >= one.fast * (1 - 1e-9);
    if (ok && !right) report(p, &r, &one, &two);
    sc_arena_free(&a);
    return right;
}

/* A gather that moves from beside a wait for the host to beside kernels slows
 * them. */
#define SHIFTED 2e-3

static bool ahead(prop *p, void *ctx)
{
    sc_arena a;
    times before = {0}, now = {0};
    sc_run r = draw(p, ctx);
    sc_software sw = *r.sw;
    sc_arena_init(&a, 0);
    r.zero = 3;
    r.sw = &sw;
    bool right = true;
    for (int64_t depth = 0; right && depth <= 6; depth++) {
        sw.prefetch = depth;
        right = evaluate(&r, &a, &now) && !now.ahead;
        right = right && fabs(now.fast / now.event - 1) < 0.02;
        if (right && depth > 0)
            right = now.event <= before.event * (1 + SHIFTED) &&
                    now.fast <= before.fast * (1 + SHIFTED) &&
                    now.weights >= before.weights;
        if (!right) report(p, &r, &before, &now);
        before = now;
    }
    sc_arena_free(&a);
    return right;
}

static void check(const char *name, bool (*fn)(prop *, void *), unsigned cases)
{
    world w;
    assert_true(load(&w));
    bool ok = prop_check(name, cases, fn, &w);
    sc_arena_free(&w.load);
    assert_true(ok);
}

static void test_two_after_one(void **state)
{
    (void)state;
    check("zero 2 is never faster than zero 1", two_after_one, 300);
}

static void test_ahead(void **state)
{
    (void)state;
    check("prefetch never costs time", ahead, 120);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_two_after_one),
                                       cmocka_unit_test(test_ahead)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
