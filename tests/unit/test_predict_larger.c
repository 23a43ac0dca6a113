/* SPDX-License-Identifier: Apache-2.0 */
/* Every form in which a cluster can be written, with a job that fits on it and
 * one that does not: predictions of both end, and where an option can name a
 * larger cluster, one that is large enough is suggested. */
#include <stepcast/predict.h>

#include "fixture.h"

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
        cmocka_unit_test_setup_teardown(names, setup, teardown),
        cmocka_unit_test_setup_teardown(pods_and_racks, setup, teardown),
        cmocka_unit_test_setup_teardown(lines, setup, teardown),
        cmocka_unit_test_setup_teardown(files, setup, teardown),
        cmocka_unit_test_setup_teardown(topologies, setup, teardown)};
    return cmocka_run_group_tests(tests, with_folder, without);
}
