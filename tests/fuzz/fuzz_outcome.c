/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a result for `stepcast compare`: terms that add up, or located
 * errors. */
#include "report/report_difference.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const sc_outcome *o, sc_arena *a)
{
    sc_difference d;
    sc_outcome zero = *o;
    sc_time step = 0;
    int64_t peak = 0;
    sc_text t;
    sc_json j;
    memset(zero.time, 0, sizeof zero.time);
    memset(zero.memory, 0, sizeof zero.memory);
    zero.step = zero.peak = 0;
    if (sc_difference_of(&zero, o, a, &d, NULL) != SC_OK) return;
    for (uint32_t i = 0; i < d.n_time; i++) step += d.time[i].b;
    for (uint32_t i = 0; i < d.n_memory; i++) peak += d.memory[i].b;
    if (step != o->step || peak != o->peak || d.n_choices) abort();
    sc_text_init(&t);
    sc_json_init(&j, false);
    sc_json_begin(&j, '{');
    sc_report_difference(&d, &t);
    sc_report_difference_json(&d, &j);
    sc_json_end(&j, '}');
    if (t.failed || j.failed) abort();
    sc_text_free(&t);
    sc_json_free(&j);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sc_arena a;
    sc_err err;
    sc_node *root = NULL;
    sc_outcome o = {0};
    if (size > 65536) return 0;
    sc_arena_init(&a, (size_t)64 << 20);
    sc_err_init(&err);
    sc_status s = sc_doc_parse((const char *)data, size, SC_FMT_AUTO, "f.json",
                               &a, &root, &err);
    if (s == SC_OK) s = sc_outcome_read(root, &a, &o, &err);
    if (s == SC_OK) check(&o, &a);
    if ((s == SC_OK) != (err.n == 0)) abort();
    sc_arena_free(&a);
    return 0;
}
