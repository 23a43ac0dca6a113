/* SPDX-License-Identifier: Apache-2.0 */
/* Predictions as files, and the machine beside them. */
#include "emitted.h"
#include "graph/graph_scale.h"
#include "trace/trace.h"
#include "trace/trace_machine.h"

#include <dirent.h>
#include <stdlib.h>
#include <unistd.h>

static char dir[] = "/tmp/stepcast-test-XXXXXX";

static void empty_dir(void)
{
    char path[400];
    DIR *d = opendir(dir);
    for (struct dirent *e; d && (e = readdir(d)) != NULL;) {
        snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
        if (e->d_name[0] != '.') unlink(path);
    }
    if (d) closedir(d);
}

static int make_dir(void **state)
{
    (void)state;
    return mkdtemp(dir) == NULL;
}

static int remove_dir(void **state)
{
    (void)state;
    empty_dir();
    return rmdir(dir);
}

static int start(void **state)
{
    empty_dir();
    return set_up(state);
}

static sc_workload through_files(const sc_workload *w)
{
    char prefix[80];
    sc_workload back;
    sc_trace_opts o = {
        .names = true, .n_groups = w->n_groups, .groups = w->groups};
    snprintf(prefix, sizeof prefix, "%s/w", dir);
    assert_int_equal(sc_trace_write(w, prefix, &f.err), SC_OK);
    assert_int_equal(sc_trace_ranks(prefix), w->n_ranks);
    sc_status s = sc_trace_read(prefix, w->n_ranks, &o, &f.a, &back, &f.err);
    if (s != SC_OK) fail_msg("%s", f.err.d[0].msg);
    return back;
}

static sc_workload three_axes(uint32_t dp)
{
    sc_job j = f.job;
    char cluster[32];
    j.tp = j.pp = 2;
    j.dp = dp;
    j.vpp = 2;
    j.schedule = SC_SCH_INTERLEAVED;
    j.mbs = 1;
    j.gbs = 4 * dp;
    j.zero = 1;
    j.recompute = SC_RC_NONE;
    snprintf(cluster, sizeof cluster, "h100-sxm:%u", 4 * dp);
    return emitted(cluster, "megatron-core", false, &j);
}

static void read_back_equal(void **state)
{
    (void)state;
    sc_workload w = three_axes(2), back = through_files(&w);
    const char *why = unequal(&w, &back, true);
    if (why) fail_msg("%s differ", why);
    assert_int_equal(back.n_classes, w.n_classes);
}

/* Files of two replicas, made 128, are the workload of 128. */
static void files_made_larger(void **state)
{
    (void)state;
    sc_workload w = three_axes(2), want = three_axes(128), got;
    sc_workload back = through_files(&w);
    sc_text t;
    sc_text_init(&t);
    assert_int_equal(
        sc_workload_scale(&back, 512, NULL, &f.a, &t, &got, &f.err), SC_OK);
    const char *why = unequal(&got, &want, false);
    if (why) fail_msg("%s differ", why);
    assert_string_equal(
        t.buf,
        "2 replicas of 4 ranks, joined by \"1\" of 2 ranks, become 128\nthe "
        "rank at the same position of the next replica is 2 higher\nevery "
        "replica keeps its batch, so the global batch is 64 times as "
        "large\nall-gathers across replicas gather as many bytes as before: "
        "the part of a member is 1/64\nkernels after the last reduce-scatter "
        "across replicas work on shards: size, FLOP and recorded time are "
        "1/64\nrecorded times of collectives are kept\n");
    sc_text_free(&t);
}

/* ---- the machine --------------------------------------------------------------- */

static void written(const char *cluster, bool remote, const char *file,
                    const char *want, const char *notes)
{
    sc_trace_machine m = {.precision = SC_BF16,
                          .remote_bw = remote ? 32e9 : 0,
                          .remote_latency_s = remote ? 4e-7 : 0};
    sc_text t;
    char path[80], *text = NULL;
    size_t n = 0;
    sc_text_init(&t);
    assert_int_equal(sc_hw_build(cluster, sc_pos_none(), &f.a, &m.hw, &f.err),
                     SC_OK);
    assert_int_equal(sc_trace_machine_write(&m, dir, &f.a, &t, &f.err), SC_OK);
    snprintf(path, sizeof path, "%s/%s", dir, file);
    assert_int_equal(sc_file_read(path, 10000, &f.a, &text, &n, &f.err), SC_OK);
    if (!strstr(text, want)) fail_msg("no \"%s\" in\n%s", want, text);
    assert_string_equal(t.buf, notes);
    sc_text_free(&t);
}

static void links_carry_what_devices_have(void **state)
{
    (void)state;
    const char *three = "ring4@4GiB/s,50ns x fc8@14GiB/s,2ns x "
                        "switch2@8GiB/s,3us; device=h100-sxm";
    written(three, false, "network.yml",
            "topology: [ Ring, FullyConnected, Switch ]\n"
            "npus_count: [ 4, 8, 2 ]\n"
            "bandwidth: [ 2, 2, 8 ]",
            "");
    written(three, false, "network.yml", "latency: [ 50, 2, 1500 ]", "");
    written(three, false, "system.json", "\"peak-perf\": 989.4", "");
    written(three, false, "memory.json", "NO_MEMORY_EXPANSION", "");
    written("h100-sxm:8", true, "memory.json", "PER_NPU_MEMORY_EXPANSION", "");
    written("h100-sxm:8", true, "memory.json", "\"remote-mem-latency\": 400",
            "");
    written("mesh5@2GiB/s; device=h100-sxm", false, "network.yml",
            "topology: [ Ring ]",
            "mesh of 5: written as a Ring, whose ends are joined\n");
}

static void one_device(void **state)
{
    (void)state;
    sc_trace_machine m = {.precision = SC_BF16};
    sc_text t;
    sc_text_init(&t);
    assert_int_equal(
        sc_hw_build("h100-sxm:1", sc_pos_none(), &f.a, &m.hw, &f.err), SC_OK);
    assert_int_equal(sc_trace_machine_write(&m, dir, &f.a, &t, &f.err),
                     SC_EINPUT);
    assert_int_equal(f.err.d[0].code, SC_C_UNSUPPORTED);
    sc_text_free(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(read_back_equal, start, tear_down),
        cmocka_unit_test_setup_teardown(files_made_larger, start, tear_down),
        cmocka_unit_test_setup_teardown(links_carry_what_devices_have, start,
                                        tear_down),
        cmocka_unit_test_setup_teardown(one_device, start, tear_down),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
