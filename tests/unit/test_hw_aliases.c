/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every device that measurements name is in the catalogue.  Tables are judged by the project's own copies,
 * so that new ones beside the repository break nothing; reference data of other kinds is read where
 * STEPCAST_SHARED says it is.
 */
#include "fixture.h"
#include "hw/names.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned checked;
static bool not_read; /* part of the data is absent: reported as skipped */

/* A device or node of the catalogue. */
static void resolve(const char *name, const char *where)
{
    hw_name found;
    sc_arena_mark mark = sc_arena_save(&arena);
    sc_err_init(&err);
    sc_status s = hw_name_find(name, 1u << HW_DEVICE | 1u << HW_NODE,
                               sc_pos_none(), &arena, &found, &err);
    if (s != SC_OK)
        fail_msg("\"%s\" of %s: %s; add it to data/hw/aliases.yml", name, where,
                 err.d[0].msg);
    sc_arena_restore(&arena, mark);
    checked++;
}

/* Column gpu of a table; empty where a row has no device. */
static void resolve_table(const char *path)
{
    sc_csv t;
    char *text;
    size_t len;
    sc_arena_mark mark = sc_arena_save(&arena);
    sc_err_init(&err);
    if (sc_file_read(path, (size_t)64 << 20, &arena, &text, &len, &err) !=
            SC_OK ||
        sc_csv_parse(text, len, path, &arena, &t, &err) != SC_OK)
        fail_msg("%s: %s", path, err.d[0].msg);
    int col = sc_csv_col(&t, "gpu");
    const char *last = "";
    for (uint32_t r = 0; r < t.n_rows && col >= 0; r++) {
        const char *name = sc_csv_get(&t, r, col);
        if (name[0] == '\0' || strcmp(name, last) == 0) continue;
        resolve(name, path);
        last = name;
    }
    sc_arena_restore(&arena, mark);
}

static bool ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), m = strlen(end);
    return n > m && strcmp(s + n - m, end) == 0;
}

typedef void (*visit)(const char *folder, const char *name);

static unsigned each_file(const char *root, const char *folder, visit fn)
{
    char path[1024];
    unsigned n = 0;
    snprintf(path, sizeof path, "%s/%s", root, folder);
    DIR *dir = opendir(path);
    if (dir == NULL) fail_msg("%s can't be opened", path);
    for (struct dirent *e; (e = readdir(dir)) != NULL;) {
        if (e->d_name[0] == '.') continue;
        fn(path, e->d_name);
        n++;
    }
    closedir(dir);
    return n;
}

static void table(const char *folder, const char *name)
{
    char path[1400];
    if (!ends_with(name, ".csv")) return;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    resolve_table(path);
}

/* A file or folder named after a device. */
static void named(const char *folder, const char *name)
{
    char stem[256];
    snprintf(stem, sizeof stem, "%s", name);
    static const char *const ends[] = {".json", ".csv.gz"};
    for (size_t i = 0; i < SC_COUNT(ends); i++)
        if (ends_with(stem, ends[i]))
            stem[strlen(stem) - strlen(ends[i])] = '\0';
    if (strcmp(stem, "LICENSE") != 0) resolve(stem, folder);
}

/* "gpt2_dp_v100_n2g8": the device stands before the last '_'. */
static void run_folder(const char *folder, const char *name)
{
    char stem[256];
    snprintf(stem, sizeof stem, "%s", name);
    char *end = strrchr(stem, '_');
    if (end == NULL || end[1] != 'n' || ends_with(name, ".json")) return;
    *end = '\0';
    char *device = strrchr(stem, '_');
    assert_non_null(device);
    resolve(device + 1, folder);
}

static void own_tables(void **state)
{
    (void)state;
    const char *source = getenv("STEPCAST_SOURCE");
    if (source == NULL) {
        print_message("STEPCAST_SOURCE is not set: own tables not read\n");
        not_read = true;
        skip();
    }
    assert_true(each_file(source, "data/validation", table) >= 10);
    assert_true(checked > 50);
}

static void shared_names(void **state)
{
    (void)state;
    const char *shared = getenv("STEPCAST_SHARED");
    DIR *there = shared == NULL ? NULL : opendir(shared);
    if (there == NULL) {
        print_message("STEPCAST_SHARED names no folder: reference data not "
                      "read\n");
        not_read = true;
        skip();
    }
    closedir(there);
    static const char *const folders[] = {
        "data/neusight/device_configs",
        "data/neusight/label",
        "data/neusight/dataset/train/collect/bmm",
        "data/neusight/dataset/train/collect/conv",
        "data/neusight/dataset_amd/test/bmm",
        "data/vidur/compute",
        "data/vidur/network",
        "traces/tracelens/tests/traces",
        "golden/proteus/topo"};
    assert_true(each_file(shared, "golden/vtrain", table) >= 1);
    assert_true(each_file(shared, "golden/proteus", run_folder) > 10);
    for (size_t i = 0; i < SC_COUNT(folders); i++)
        assert_true(each_file(shared, folders[i], named) >= 2);
}

/* deviceProperties of the traces, and the device columns of kernel tables. */
static void names_inside_files(void **state)
{
    (void)state;
    static const char *const names[] = {"Tesla V100-DGXS-32GB",
                                        "NVIDIA A100-PG509-200",
                                        "NVIDIA A100-SXM4-80GB",
                                        "Tesla V100-SXM2-32GB",
                                        "AMD Radeon Graphics",
                                        "NVIDIA GeForce RTX 2080 Ti",
                                        "AMD Instinct MI210",
                                        "NVIDIA H100 80GB HBM3",
                                        "AMD Instinct MI300X",
                                        "AMD Instinct MI300X VF",
                                        "AMD Instinct MI100",
                                        "AMD Instinct MI250",
                                        "Tesla T4",
                                        "Tesla P100-PCIE-16GB",
                                        "Tesla V100-PCIE-32GB",
                                        "NVIDIA A100-PCIE-40GB",
                                        "Tesla P4",
                                        "NVIDIA A100 80GB PCIe",
                                        "NVIDIA L4",
                                        "NVIDIA A100-SXM4-40GB"};
    for (size_t i = 0; i < SC_COUNT(names); i++) resolve(names[i], "this test");
}

static void expect(const char *name, const char *meant)
{
    assert_string_equal(device(name)->name, meant);
}

static void what_they_mean(void **state)
{
    (void)state;
    expect("A100-SXM-80GB", "a100-sxm-80g");
    expect("NVIDIA A100-SXM4-40GB", "a100-sxm-40g");
    expect("NVIDIA A100-PG509-200", "a100-sxm-40g");
    expect("NVIDIA_A100_80GB_PCIe", "a100-pcie-80g");
    expect("nvidia h100 80gb hbm3", "h100-sxm");
    expect("Tesla V100-SXM2-32GB", "v100-sxm2-32g");
    expect("H100-PCIe+bridge", "h100-pcie");
    expect("H100-SXM-96GB-HBM2e-500W", "h100-sxm-96g");
    expect("NVIDIA H200-SXM5-141GB", "h200-sxm");
    expect("NVIDIA Blackwell GPU (B200-SXM-180GB)", "b200");
    expect("NVIDIA Blackwell GPU (GB200)", "gb200");
    expect("GB300-NVL72", "gb300");
    expect("AMD Instinct MI300X 192GB HBM3", "mi300x");
    expect("gfx950", "mi355x");
    expect("AMD Radeon Graphics", "mi250");
    expect("TPU-trillium", "tpu-v6e");
    expect("1080", "gtx-1080-ti");
}

/* Names mean one thing, and what they mean exists. */
static void tables_agree(void **state)
{
    (void)state;
    const sc_embedded *f = sc_embedded_find("hw/aliases.yml");
    const sc_embedded *g = sc_embedded_find("hw/not-yet.yml");
    static const char *const sections[] = {"devices", "nodes"};
    sc_node *aliases, *not_yet;
    sc_err_init(&err);
    assert_int_equal(sc_embedded_read(f, &arena, &aliases, &err), SC_OK);
    assert_int_equal(sc_embedded_read(g, &arena, &not_yet, &err), SC_OK);
    for (unsigned k = 0; k < 2; k++) {
        const sc_node *map = sc_node_get(aliases, sections[k]);
        for (const sc_node *row = map->child; row != NULL; row = row->next)
            for (const sc_node *c = row->child; c != NULL; c = c->next) {
                hw_name found;
                char stem[200];
                assert_int_equal(hw_name_find(c->text, 1u << k, sc_pos_none(),
                                              &arena, &found, &err),
                                 SC_OK);
                snprintf(stem, sizeof stem, "hw/%s/%s.yml", sections[k],
                         row->key);
                assert_string_equal(found.file->path, stem);
            }
        const sc_node *list = sc_node_get(not_yet, sections[k]);
        for (const sc_node *c = list->child; c != NULL; c = c->next) {
            hw_name found;
            sc_err_init(&err);
            if (hw_name_find(c->text, 1u << k, sc_pos_none(), &arena, &found,
                             &err) == SC_OK)
                fail_msg("%s is in the catalogue and in not-yet.yml", c->text);
            assert_int_equal(err.d[0].code, SC_C_UNSUPPORTED);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(own_tables, setup, teardown),
        cmocka_unit_test_setup_teardown(shared_names, setup, teardown),
        cmocka_unit_test_setup_teardown(names_inside_files, setup, teardown),
        cmocka_unit_test_setup_teardown(what_they_mean, setup, teardown),
        cmocka_unit_test_setup_teardown(tables_agree, setup, teardown)};
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return failed != 0 ? failed : not_read ? 77 : 0;
}
