/* SPDX-License-Identifier: Apache-2.0 */
/* Every form in which a cluster can be written, with a job that fits on it and
 * one that does not: predictions of both end, and where an option can name a
 * larger cluster, one that is large enough is suggested. */
#include "fixture.h"
#include "predict/internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[] = "/tmp/stepcast.XXXXXX";

/* A file of a cluster; its name, with the folder. */
static const char *file(const char *name, const char *text)
{
    const char *path = sc_sprintf(&arena, "%s/%s", folder, name);
    assert_non_null(path);
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    assert_true(fputs(text, out) >= 0);
    assert_int_equal(fclose(out), 0);
    return path;
}

static sc_prediction predict(const char *cluster, const char *model)
{
    sc_prediction p = {0};
    sc_job job;
    sc_job_init(&job);
    job.model = model;
    job.cluster = cluster;
    job.gbs = 64;
    if (sc_predict_job(&job, &arena, &p, &err) != SC_OK)
        fail_msg("%s: %s", cluster, err.d[0].msg);
    return p;
}

/* GPT-2 has 124 M parameters and fits on one device of any kind; the states of
 * megatron-1t take 16 bytes for each of 1.01e12 parameters, 16 TB in all, more
 * than any machine below has.  That many units of `larger` are enough for the
 * second; NULL: no option can name a larger cluster. */
static void both(const char *cluster, const char *larger)
{
    assert_true(predict(cluster, "gpt2").fits);
    sc_prediction p = predict(cluster, "megatron-1t");
    assert_false(p.fits);
    const char *found = NULL;
    for (uint32_t i = 0; i < p.n_suggestions; i++) {
        const char *c = strstr(p.suggestion[i].change, "--cluster ");
        if (c == NULL) continue;
        assert_true(p.suggestion[i].fits);
        found = c + strlen("--cluster ");
    }
    if (larger == NULL && found != NULL)
        fail_msg("%s: %s is suggested", cluster, found);
    if (larger == NULL) return;
    if (found == NULL) fail_msg("%s: no larger cluster is suggested", cluster);
    if (strncmp(found, larger, strlen(larger)) != 0)
        fail_msg("%s: %s instead of %s", cluster, found, larger);
}

static void names(void **state)
{
    (void)state;
    both("dgx-a100-80g", "dgx-a100-80g:");
    both("dgx-a100-80g:2", "dgx-a100-80g:");
    both("a100-sxm-80g:16", "a100-sxm-80g:");
    both("aws-p4d:2", "aws-p4d:");
}

static void pods_and_racks(void **state)
{
    (void)state;
    both("tpu-v5p:16", "tpu-v5p:");
    both("tpu-v5e-pod:32", "tpu-v5e-pod:");
    both("gb200-nvl72:1", "gb200-nvl72:");
    both("gb200-nvl72", "gb200-nvl72:");
}

static void lines(void **state)
{
    (void)state;
    both("switch8@300GB/s; device=a100-sxm-80g", "'switch");
    both("switch8@300GB/s x switch2@25GB/s; device=a100-sxm-80g",
         "'switch8@300GB/s x switch");
    both("torus4x4@50GB/s; device=a100-sxm-80g", "'torus");
}

static void files(void **state)
{
    (void)state;
    both(file("nodes.yml", "node: dgx-a100-80g\nnodes: 2\n"), NULL);
    both(file("one.yaml", "node: dgx-a100-80g\n"), NULL);
    both(file("nodes.json", "{\"node\": \"dgx-a100-80g\", \"nodes\": 2}\n"),
         NULL);
    both(file("groups.yml", "node: dgx-a100-80g\ngroups:\n"
                            "  - {nodes: 1}\n"
                            "  - {nodes: 1, nic_bw: 100Gb/s}\n"),
         NULL);
    both(file("own.yml", "device: h100-sxm\ndevices_per_node: 4\nnodes: 2\n"
                         "fabric: nvswitch\nnics: 4\nnic_bw: 400Gb/s\n"),
         NULL);
}

/* Files that say how devices are wired, which a cluster file names. */
static void topologies(void **state)
{
    (void)state;
    char text[1200];
    const char *root = getenv("STEPCAST_SOURCE");
    assert_non_null(root);
    snprintf(text, sizeof text,
             "node: dgx-a100-80g\nnodes: 2\ntopology: "
             "%s/tests/fuzz/corpus/topo_matrix/dgx_a100.txt\n",
             root);
    both(file("topology.yml", text), NULL);
    file("wires.yml",
         "devices: 2\nlinks:\n"
         "  - {from: d0, to: d1, bandwidth: 50GB/s, latency: 1us}\n"
         "  - {from: d1, to: d0, bandwidth: 50GB/s, latency: 1us}\n");
    both(file("wiring.yml", "device: a100-sxm-80g\ndevices_per_node: 2\n"
                            "fabric: ring\nbandwidth: 50GB/s\nnics: 0\n"
                            "wiring: wires.yml\n"),
         NULL);
}

/* What all devices hold of weights and optimizer states, a stage's times the
 * ranks that run it, over the least that any split needs. */
static double over_least(const sc_job *job, double params, double bytes)
{
    double held = 0;
    sc_prediction p = {0};
    if (sc_predict_job(job, &arena, &p, &err) != SC_OK)
        fail_msg("%s", err.d[0].msg);
    double ranks = p.run.hw->n_devices / (double)p.n_stages;
    for (uint32_t i = 0; i < p.n_stages; i++)
        held += ranks * (p.memory[i].weights + p.memory[i].optimizer);
    double least = predict_least_bytes(job, &p.run);
    if (params > 0) assert_true(fabs(least / (bytes * params) - 1) < 0.01);
    assert_true(least <= held);
    return held / least;
}

/* Of each parameter: 2 bytes of a bf16 weight, 4 of its master weight and 4 of
 * each of Adam's moments; in fp32 no master weight; forward only the weight.
 * ZeRO-3 holds all of it once, and a
 * layer that is gathered. */
static void least(void **state)
{
    (void)state;
    sc_job job;
    sc_job_init(&job);
    job.model = "llama2-7b";
    job.cluster = "dgx-h100";
    job.zero = 3;
    job.gbs = 16;
    assert_true(over_least(&job, 6.74e9, 14) < 1.1);
    job.zero = SC_INFER;
    assert_true(over_least(&job, 6.74e9, 14) > 1);
    job.precision = SC_RECIPE_FP32;
    assert_true(over_least(&job, 6.74e9, 12) > 1);
    job.precision = SC_INFER;
    job.optimizer_tier = SC_TIER_CPU;
    assert_true(over_least(&job, 6.74e9, 2) > 1);
    job.optimizer_tier = SC_INFER;
    job.forward_only = true;
    assert_true(over_least(&job, 6.74e9, 2) > 0.99);
    sc_job_init(&job);
    job.model = "mixtral-8x7b";
    job.cluster = "dgx-h100:2";
    job.precision = SC_RECIPE_FP8;
    assert_true(over_least(&job, 0, 0) > 1);
}

/* 16 devices of 80 GB are 1.37e12 bytes, 32 twice as many; GPT-3 takes 14 bytes
 * for each of 1.75e11 parameters, 2.45e12. */
static void too_small(void **state)
{
    (void)state;
    const sc_hw *hw = NULL;
    sc_prediction p = {0};
    sc_job job;
    sc_job_init(&job);
    job.model = "gpt3-175b";
    job.cluster = "dgx-h100:4";
    job.brief = true;
    assert_int_equal(sc_predict_job(&job, &arena, &p, &err), SC_OK);
    assert_false(predict_too_small(&job, &p.run, p.run.hw));
    assert_int_equal(
        sc_hw_build("dgx-h100:2", sc_pos_none(), &arena, &hw, &err), SC_OK);
    assert_true(predict_too_small(&job, &p.run, hw));
}

static int with_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) == NULL;
}

static int without(void **state)
{
    (void)state;
    static const char *const made[] = {
        "nodes.yml", "one.yaml",     "nodes.json", "groups.yml",
        "own.yml",   "topology.yml", "wires.yml",  "wiring.yml"};
    char path[64];
    for (size_t i = 0; i < SC_COUNT(made); i++) {
        snprintf(path, sizeof path, "%s/%s", folder, made[i]);
        (void)unlink(path);
    }
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(least, setup, teardown),
        cmocka_unit_test_setup_teardown(too_small, setup, teardown),
        cmocka_unit_test_setup_teardown(names, setup, teardown),
        cmocka_unit_test_setup_teardown(pods_and_racks, setup, teardown),
        cmocka_unit_test_setup_teardown(lines, setup, teardown),
        cmocka_unit_test_setup_teardown(files, setup, teardown),
        cmocka_unit_test_setup_teardown(topologies, setup, teardown)};
    return cmocka_run_group_tests(tests, with_folder, without);
}
