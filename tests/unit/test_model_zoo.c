/* SPDX-License-Identifier: Apache-2.0 */
/* test_model_zoo.c - parameters and work of the networks of the zoo equal the
 * published ones, and conversions of transformers equal their models. */
#include <stepcast/graph.h>
#include <stepcast/model_graph.h>

#include "fixture.h"

#include <math.h>
#include <string.h>

static const sc_opgraph *zoo(const char *name)
{
    const sc_zoo_entry *z = sc_zoo_find(name);
    const sc_opgraph *g = NULL;
    if (!z) fail_msg("the zoo has no %s", name);
    if (sc_zoo_build(z, &arena, &g, &err) != SC_OK)
        fail_msg("%s: %s", name, err.d[0].msg);
    return g;
}

/* Parameters exactly; multiplications of a forward pass as printed. */
static const struct {
    const char *name;
    double params, macs, rounding;
} published[] = {
    {"alexnet", 61100840, 0.71e9, 0.01e9},
    {"vgg19", 143667240, 19.63e9, 0.02e9},
    {"resnet50", 25557032, 4.089e9, 0.001e9},
    {"inception-v3", 27161264, 5.713e9, 0.01e9},
    {"inception-v3-224", 23834568, 2.838e9, 0.001e9},
    {"sd-unet", 865910724, 402.1e9, 0.1e9},
};

static void test_published(void **state)
{
    (void)state;
    for (size_t i = 0; i < SC_COUNT(published); i++) {
        const sc_opgraph *g = zoo(published[i].name);
        double macs = sc_opgraph_flops(g, 1.0, true) / 2.0;
        if (g->params != published[i].params)
            fail_msg("%s has %.0f parameters", g->name, g->params);
        if (fabs(macs - published[i].macs) > published[i].rounding)
            fail_msg("%s does %g multiplications", g->name, macs);
    }
}

/* ---- transformers */

static void same_work(const char *name, uint64_t seq, bool unfused, double rel)
{
    const sc_model *m = NULL;
    const sc_opgraph *g = NULL;
    sc_status s = sc_model_load(name, sc_pos_none(), &arena, &m, &err);
    if (s == SC_OK)
        s = sc_opgraph_from_model(m, seq, unfused, &arena, &g, &err);
    if (s != SC_OK) fail_msg("%s: %s", name, err.d[0].msg);
    if (g->params != (double)m->params)
        fail_msg("%s has %.0f parameters, not %.0f", name, g->params,
                 (double)m->params);
    for (int forward = 0; forward < 2; forward++) {
        double want = sc_model_flops(m, 3, seq, forward);
        double got = sc_opgraph_flops(g, 3.0, forward);
        if (fabs(got - want) > rel * want)
            fail_msg("%s does %g FLOP, not %g", name, got, want);
    }
}

static void test_transformers(void **state)
{
    (void)state;
    for (int unfused = 0; unfused < 2; unfused++) {
        same_work("gpt2", 1024, unfused, 1e-12);
        same_work("gpt3-175b", 2048, unfused, 1e-12);
        same_work("bloom-7b1", 2048, unfused, 1e-12);
        same_work("llama2-7b", 4096, unfused, 1e-12);
        same_work("llama3-70b", 8192, unfused, 1e-12);
        same_work("mistral-7b", 8192, unfused, 1e-12);
        same_work("qwen3-8b", 4096, unfused, 1e-12);
        same_work("gpt-neox-20b", 2048, unfused, 1e-12);
        same_work("bert-large", 512, unfused, 1e-3);
        same_work("vit-b-16", 197, unfused, 1e-2);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_published, setup, teardown),
        cmocka_unit_test_setup_teardown(test_transformers, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
