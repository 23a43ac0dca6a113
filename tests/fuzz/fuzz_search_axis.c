/* SPDX-License-Identifier: Apache-2.0 */
/* Values of an axis and any text: an error with its place, or different values
 * that the option takes, or a machine that they describe. */
#include "hw/hw_keys.h"
#include "search/search_machines.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *machine_key(uint8_t which)
{
    static const char *const own[] = {"nodes", "node", "mem_bw", "peak"};
    uint32_t n = 0;
    while (sc_hw_name_keys[n].name) n++;
    uint32_t i = which % (n + (uint32_t)SC_COUNT(own));
    return i < n ? sc_hw_name_keys[i].name : own[i - n];
}

static void machine(const char *key, const char *text)
{
    sc_arena a;
    sc_err err;
    sc_machine_axis axis;
    const sc_node value = sc_search_word(text, sc_pos_file("--machine"));
    sc_arena_init(&a, 0);
    sc_err_init(&err);
    sc_status s = sc_machine_axis_read(key, &value, &a, &axis, &err);
    if (s == SC_OK && (err.n != 0 || axis.n == 0)) abort();
    if (s != SC_OK && (err.n == 0 || !err.d[0].file[0])) abort();
    for (uint32_t i = 0; s == SC_OK && i < axis.n && i < 4; i++) {
        sc_job job;
        const sc_hw *hw;
        sc_job_init(&job);
        job.cluster = "dgx-h100:2";
        if (sc_machine_set(&axis, 1, &i, &a, &job, &err) != SC_OK) abort();
        (void)sc_job_machine(&job, &a, &hw, &err);
    }
    sc_arena_free(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint32_t n = 0;
    sc_arena a;
    sc_err err;
    sc_search_option o;
    if (size == 0) return 0;
    while (sc_job_keys[n].name) n++;
    const sc_key *k = &sc_job_keys[data[0] % n];
    char *text = malloc(size);
    if (text == NULL) return 0;
    memcpy(text, data + 1, size - 1);
    text[size - 1] = '\0';
    if (data[0] >= 128) {
        machine(machine_key(data[0] - 128), text);
        free(text);
        return 0;
    }
    sc_arena_init(&a, 0);
    sc_err_init(&err);
    sc_status s =
        sc_search_option_read(k, text, sc_pos_file("--axis"), &a, &o, &err);
    if (s == SC_OK && (err.n != 0 || o.axis.n == 0)) abort();
    if (s != SC_OK && (err.n == 0 || !err.d[0].file[0])) abort();
    for (uint32_t i = 0; s == SC_OK && i < o.axis.n; i++) {
        char buf[64];
        sc_job job;
        sc_job_init(&job);
        sc_search_option_set(&o, i, &job);
        sc_search_option_print(&o, i, buf, sizeof buf);
        if (!buf[0]) abort();
    }
    sc_arena_free(&a);
    free(text);
    return 0;
}
