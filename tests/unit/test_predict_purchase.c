/* SPDX-License-Identifier: Apache-2.0 */
/* Machines that are bought: their parts, and what a step and a run cost. */
#include "fixture.h"
#include "predict/predict.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void near(double got, double want)
{
    if (!(fabs(got - want) <= 1e-9 * fabs(want)))
        fail_msg("%.17g is not %.17g", got, want);
}

/* The sheet that list-2024 cites: 48 and 192 switches of 64 ports. */
static void parts(void **state)
{
    (void)state;
    sc_hw_parts n = sc_hw_count_parts(machine("dgx-h100:128"), 64);
    assert_true(n.switches == 48 && n.links == 2048 && n.hosts == 128);
    n = sc_hw_count_parts(machine("dgx-h100:512"), 64);
    assert_true(n.switches == 192 && n.links == 8192);
    n = sc_hw_count_parts(machine("dgx-h100:128; oversubscription=2"), 64);
    assert_true(n.switches == 24 + 8 && n.links == 1536);
    n = sc_hw_count_parts(machine("dgx-h100:128; pod=64"), 64);
    assert_true(n.switches == 32 + 32 + 16 && n.links == 3072);
    n = sc_hw_count_parts(machine("dgx-h100:1"), 64);
    assert_true(n.switches == 0 && n.links == 0 && n.hosts == 1);
}

static void money(void **state)
{
    (void)state;
    sc_job job;
    sc_prediction p;
    sc_job_init(&job);
    job.model = "llama3-8b";
    job.cluster = "dgx-h100:16";
    job.tp = 1;
    job.gbs = 256;
    job.brief = true;
    job.tokens = 1000000000000;
    job.purchase = "list-2024";
    job.electricity = 0.1 / 3.6e6;
    job.grid_intensity = 0.5 / 3.6e6;
    (void)sc_predict_job(&job, &arena, &p, &err);
    no_error();
    const sc_purchase *x = p.purchase;
    near(x->usd, 16 * 310e3 + 2 * 36e3 + 128 * 1280);
    double energy = p.energy_j_per_step * 0.1 / 3.6e6 * 1.56;
    near(p.cost_usd_per_step,
         x->usd / (2009 * 86400.0) * p.step_time_s + energy);
    near(p.whole_run.cost_usd, p.whole_run.steps * p.cost_usd_per_step);
    near(p.co2e_kg_per_step, p.energy_j_per_step * 0.5 / 3.6e6);
    job.failure_table = "llama3";
    job.spares = 1;
    sc_prediction f;
    (void)sc_predict_job(&job, &arena, &f, &err);
    no_error();
    near(f.whole_run.cost_usd,
         (x->usd + 310e3) / (2009 * 86400.0) * f.whole_run.days * 86400 +
             f.whole_run.energy_j * 0.1 / 3.6e6 * 1.56);
    job.price = 1;
    assert_int_equal(sc_predict_job(&job, &arena, &f, &err), SC_EINPUT);
}

/* Eight devices with 500 GB each, at 6 USD a GB. */
static void expanded(void **state)
{
    (void)state;
    sc_job job;
    sc_prediction p;
    char folder[] = "/tmp/stepcast-prices-XXXXXX", name[64];
    assert_non_null(mkdtemp(folder));
    snprintf(name, sizeof name, "%s/prices.yml", folder);
    FILE *own = fopen(name, "w");
    assert_non_null(own);
    fputs("base: list-2024\nexpanded_memory: 6USD\n", own);
    assert_int_equal(fclose(own), 0);
    sc_job_init(&job);
    job.model = "llama3-8b";
    job.cluster = "dgx-h100:1; expanded_memory=500GB; expanded_bw=60GB/s";
    job.gbs = 64;
    job.brief = true;
    job.purchase = name;
    (void)sc_predict_job(&job, &arena, &p, &err);
    assert_int_equal(remove(name), 0);
    assert_int_equal(rmdir(folder), 0);
    no_error();
    near(p.purchase->expanded_usd, 8 * 500 * 6);
    near(p.purchase->usd, 310e3 + 24e3);
    job.expanded_fraction = 0.25;
    job.purchase = "list-2024";
    assert_int_equal(sc_predict_job(&job, &arena, &p, &err), SC_EINPUT);
    assert_string_equal(err.d[0].msg, "no price of expanded memory is known");
}

static void files(void **state)
{
    (void)state;
    static const char own[] = "base: list-2024\nhosts: {h200-sxm: 340kUSD}\n"
                              "switch: 50kUSD\nrack: 4kUSD\n";
    const sc_prices *p = NULL;
    (void)sc_prices_read(own, strlen(own), "p.yml", &arena, &p, &err);
    no_error();
    near(sc_prices_host(p, "h200-sxm")->usd, 340e3);
    near(sc_prices_host(p, "h100-sxm")->usd, 310e3);
    assert_null(sc_prices_host(p, "t4"));
    near(p->switch_usd, 50e3);
    near(p->link_usd, 1280);
    near(p->rack_usd, 4e3);
    static const char bare[] = "switch: 1kUSD\n";
    assert_int_equal(
        sc_prices_read(bare, strlen(bare), "p.yml", &arena, &p, &err),
        SC_EINPUT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(parts, setup, teardown),
        cmocka_unit_test_setup_teardown(money, setup, teardown),
        cmocka_unit_test_setup_teardown(expanded, setup, teardown),
        cmocka_unit_test_setup_teardown(files, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
