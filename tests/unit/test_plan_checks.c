/* SPDX-License-Identifier: Apache-2.0 */
/* What can't run is refused, all of it at once; stages are cut by rule. */
#include "plan/plan.h"
#include "plan/plan_schedule.h"
#include "prediction.h"

#include <stdio.h>
#include <string.h>

static sc_run run_of(const char *model, uint32_t tp, uint32_t pp, uint32_t dp)
{
    sc_run r = {.size = {pp, dp, 1, 1, tp},
                .vpp = 1,
                .mbs = 1,
                .ga = 16,
                .gbs = 16 * dp,
                .seq = 1024,
                .precision = SC_BF16};
    char spec[64];
    snprintf(spec, sizeof spec, "switch%u@450GB/s,1us; device=h100-sxm",
             tp * dp * pp);
    load_run(&r, spec, model, NULL);
    return r;
}

/* Refused with this many diagnostics; one of them has `code` and `text` in
 * its message or position. */
static void refused(const sc_run *r, uint32_t n, sc_code code, const char *text)
{
    sc_plan p;
    sc_err_init(&f.err);
    assert_int_equal(sc_plan_build(r, &f.a, &p, &f.err), SC_EINPUT);
    assert_int_equal(f.err.n, n);
    bool found = false;
    for (uint32_t i = 0; i < n; i++)
        found |= f.err.d[i].code == code && (strstr(f.err.d[i].msg, text) ||
                                             strstr(f.err.d[i].file, text));
    if (!found) print_message("no '%s' in '%s'\n", text, f.err.d[0].msg);
    assert_true(found);
}

static void single_errors(void **state)
{
    (void)state;
    sc_run r = run_of("llama3-8b", 8, 2, 2);
    sc_plan p;
    assert_int_equal(sc_plan_build(&r, &f.a, &p, &f.err), SC_OK);
    sc_run bad = r;
    bad.gbs = 33;
    refused(&bad, 1, SC_C_DIVIDE, "global batch 33");
    bad = r;
    bad.size[SC_AX_DP] = 4;
    bad.gbs = 64;
    refused(&bad, 1, SC_C_CONFLICT, "cluster has 32 devices");
    bad = r;
    bad.vpp = 2;
    refused(&bad, 1, SC_C_CONFLICT, "--vp");
    bad.schedule = SC_SCH_INTERLEAVED;
    assert_int_equal(sc_plan_build(&bad, &f.a, &p, &f.err), SC_OK);
    bad.ga = 15;
    bad.gbs = 30;
    refused(&bad, 1, SC_C_DIVIDE, "15 micro-batches");
    bad = run_of("llama3-8b", 1, 64, 1);
    refused(&bad, 1, SC_C_RANGE,
            "64 pipeline stages are too many for 32 layers");
}

/* gpt3-xl has 16 heads and an ffn of 8192: 3 divides neither. */
static void all_in_one_pass(void **state)
{
    (void)state;
    sc_run r = run_of("gpt3-xl", 3, 25, 2);
    r.gbs = 7;
    r.vpp = 2;
    refused(&r, 5, SC_C_DIVIDE, "attention heads 16");
    refused(&r, 5, SC_C_DIVIDE, "ffn width 8192");
    refused(&r, 5, SC_C_DIVIDE, "global batch 7");
    refused(&r, 5, SC_C_RANGE, "50 pipeline stages are too many for 24 layers");
    refused(&r, 5, SC_C_CONFLICT, "--vp");
    /* the hint lists what would divide */
    for (uint32_t i = 0; i < f.err.n; i++)
        if (strstr(f.err.d[i].msg, "heads"))
            assert_non_null(strstr(f.err.d[i].hint, "1, 2, 4, 8, 16"));
}

/* ---- stages --------------------------------------------------------------- */

static sc_plan plan_of(const char *model, uint32_t pp, uint32_t vpp, int rule)
{
    sc_run r = run_of(model, 1, pp, 1);
    sc_software *sw = SC_NEW(&f.a, sc_software);
    assert_non_null(sw);
    *sw = *r.sw;
    sw->stage_split = rule;
    r.sw = sw;
    r.vpp = vpp;
    r.ga = pp;
    r.gbs = pp;
    r.schedule = vpp > 1 ? SC_SCH_INTERLEAVED : SC_SCH_1F1B;
    sc_plan p;
    assert_int_equal(sc_plan_build(&r, &f.a, &p, &f.err), SC_OK);
    return p;
}

static void blocks_are(const sc_plan *p, const uint32_t *want, uint32_t n)
{
    assert_int_equal(p->n_stages, n);
    for (uint32_t v = 0; v < n; v++) {
        assert_int_equal(p->stage[v].blocks, want[v]);
        assert_int_equal(p->stage[v].embed, v == 0);
        assert_int_equal(p->stage[v].head, v == n - 1);
    }
}

/* Llama 3, section 3.3.2: one layer less on the first and the last stage. */
static void llama_405b(void **state)
{
    (void)state;
    sc_plan p = plan_of("llama3-405b", 16, 1, SC_SPLIT_BALANCED);
    uint32_t want[16];
    for (uint32_t v = 0; v < 16; v++) want[v] = v % 15 ? 8 : 7;
    blocks_are(&p, want, 16);
    p = plan_of("llama3-405b", 16, 4, SC_SPLIT_CEIL);
    for (uint32_t v = 0; v < 64; v++)
        assert_int_equal(p.stage[v].blocks, v % 63 ? 2 : 1);
}

/* gpt2-xl has 48 blocks. */
static void ceil_and_balanced(void **state)
{
    (void)state;
    sc_plan even = plan_of("gpt2-xl", 4, 1, SC_SPLIT_CEIL);
    blocks_are(&even, (const uint32_t[]){12, 12, 12, 12}, 4);
    sc_plan up = plan_of("gpt2-xl", 7, 1, SC_SPLIT_CEIL);
    blocks_are(&up, (const uint32_t[]){7, 7, 7, 7, 7, 7, 6}, 7);
    sc_plan fair = plan_of("gpt2-xl", 9, 1, SC_SPLIT_BALANCED);
    uint32_t lo = 99, hi = 0;
    for (uint32_t v = 0; v < 9; v++) {
        lo = fair.stage[v].blocks < lo ? fair.stage[v].blocks : lo;
        hi = fair.stage[v].blocks > hi ? fair.stage[v].blocks : hi;
    }
    assert_true(hi - lo <= 1);
    sc_plan rest = plan_of("gpt2-xl", 9, 1, SC_SPLIT_CEIL);
    blocks_are(&rest, (const uint32_t[]){6, 6, 6, 6, 6, 6, 6, 5, 1}, 9);
}

/* Llama 3 8B has 32 blocks of 218 M parameters, and a head of 525 M, which
 * counts as 2.4 of them: of 34.4, a stage has 17.2, 8.6 or 4.3. */
static void by_cost(void **state)
{
    (void)state;
    sc_plan p = plan_of("llama3-8b", 2, 1, SC_SPLIT_COST);
    blocks_are(&p, (const uint32_t[]){18, 14}, 2);
    p = plan_of("llama3-8b", 4, 1, SC_SPLIT_COST);
    blocks_are(&p, (const uint32_t[]){9, 9, 8, 6}, 4);
    p = plan_of("llama3-8b", 8, 1, SC_SPLIT_COST);
    blocks_are(&p, (const uint32_t[]){5, 4, 4, 5, 4, 4, 5, 1}, 8);
    assert_int_equal(sc_run_idle_stages(&p.run), 0);
}

/* With 16 stages each has 2.15 blocks, so the last one gets the loss alone. With
 * 64 each part needs one of its own: 32 blocks, norm, head, cast and loss. */
static void by_cost_without_blocks(void **state)
{
    (void)state;
    sc_plan p = plan_of("llama3-8b", 16, 1, SC_SPLIT_COST);
    blocks_are(
        &p, (const uint32_t[]){3, 2, 2, 2, 2, 2, 3, 2, 2, 2, 2, 2, 2, 3, 1, 0},
        16);
    assert_int_equal(sc_run_idle_stages(&p.run), 0);
    p = plan_of("llama3-8b", 64, 1, SC_SPLIT_COST);
    assert_int_equal(p.n_stages, 64);
    for (uint32_t v = 0; v < 64; v++)
        assert_int_equal(p.stage[v].blocks, v < 32);
    assert_int_equal(sc_run_idle_stages(&p.run), 64 - 36);
    p = plan_of("llama3-8b", 16, 1, SC_SPLIT_BALANCED);
    assert_int_equal(sc_run_idle_stages(&p.run), 0);
}

static void sums_equal_layers(void **state)
{
    (void)state;
    for (int rule = SC_SPLIT_BALANCED; rule <= SC_SPLIT_CEIL; rule++)
        for (uint32_t pp = 1; pp <= 24; pp++)
            for (uint32_t vpp = 1; pp * vpp <= 24; vpp++) {
                sc_plan p = plan_of("gpt3-xl", pp, vpp, rule);
                uint32_t sum = 0;
                for (uint32_t v = 0; v < p.n_stages; v++) {
                    assert_true(p.stage[v].blocks >= 1);
                    sum += p.stage[v].blocks;
                }
                assert_int_equal(p.n_stages, pp * vpp);
                assert_int_equal(sum, 24);
            }
}

/* Whatever changes the price of a segment changes a key. */
static void keys_differ(void **state)
{
    (void)state;
    sc_run r = run_of("gpt3-xl", 2, 4, 2);
    sc_run v[11];
    for (size_t i = 0; i < SC_COUNT(v); i++) v[i] = r;
    v[0].size[SC_AX_DP] = 4;
    v[1].size[SC_AX_TP] = 4;
    v[2].size[SC_AX_PP] = 1;
    v[3].mbs = 2;
    v[4].seq = 512;
    v[5].ga = 1;
    v[6].precision = SC_FP16;
    v[7].zero = 1;
    v[8].sp = true;
    v[9].recompute = SC_RC_FULL;
    v[10].launch_blocking = true;
    for (size_t i = 0; i < SC_COUNT(v); i++)
        assert_true(sc_plan_pass_key(&v[i]) != sc_plan_pass_key(&r) ||
                    sc_plan_weight_key(&v[i]) != sc_plan_weight_key(&r));
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(single_errors),     TEST(all_in_one_pass),
        TEST(llama_405b),        TEST(ceil_and_balanced),
        TEST(by_cost),           TEST(by_cost_without_blocks),
        TEST(sums_equal_layers), TEST(keys_differ)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
