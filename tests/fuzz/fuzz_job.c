/* SPDX-License-Identifier: Apache-2.0 */
/* Configurations: any text is read or refused; whatever is read has a
 * physical prediction on a small machine, or a reason why not. */
#include "report/report_predict.h"

#include <math.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Graphs of millions of ops are legal, but not for a fuzzer. */
static bool small(const sc_job *j)
{
    return j->gbs <= 64 && j->seq <= 1 << 16 && !j->no_symmetry;
}

static void check(const sc_job *job, const sc_prediction *p)
{
    double sum = 0;
    for (uint32_t c = 0; c < SC_N_CATS; c++) sum += p->time_breakdown_s[c];
    if (!(p->step_time_s > 0) || !isfinite(p->step_time_s)) abort();
    if (fabs(sum - p->step_time_s) > 1e-6 * p->step_time_s) abort();
    if (!(p->mfu < 1)) abort();
    if (job->tp && p->run.size[SC_AX_TP] != (uint64_t)job->tp) abort();
    if (job->gbs && p->run.gbs != (uint64_t)job->gbs) abort();
    sc_json j;
    sc_json_init(&j, false);
    sc_report_prediction_json(job, p, NAN, NULL, &j);
    if (j.failed) abort();
    sc_json_free(&j);
}

static void predict(sc_job *job, sc_arena *a)
{
    static const sc_transformer tiny = {.name = "tiny",
                                        .layers = 4,
                                        .hidden = 256,
                                        .heads = 8,
                                        .vocab = 1000,
                                        .max_seq = 512};
    sc_inputs in;
    sc_prediction p;
    sc_err err;
    sc_err_init(&err);
    job->cluster = "dgx-h100:1";
    job->software = NULL;
    job->model = "gpt2";
    if (!job->gbs) job->gbs = 8;
    if (sc_predict_load(job, a, &in, &err) != SC_OK ||
        sc_model_from_transformer(&tiny, sc_pos_none(), a, &in.model, &err) !=
            SC_OK)
        abort();
    sc_status s = sc_predict(job, in.hw, in.model, in.sw, in.cost, a, &p, &err);
    if ((s == SC_OK) != (err.n == 0)) abort();
    if (s == SC_OK)
        check(job, &p);
    else if (s != SC_EINPUT && s != SC_ENOMEM)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sc_arena a;
    sc_err err;
    sc_node *root = NULL;
    sc_job job;
    sc_given given = {{0}};
    sc_arena_init(&a, (size_t)256 << 20);
    sc_err_init(&err);
    sc_job_init(&job);
    sc_status s = sc_doc_parse((const char *)data, size, SC_FMT_AUTO,
                               "fuzz.yml", &a, &root, &err);
    if (s == SC_OK)
        s = sc_schema_read(sc_job_keys, root, &job, &given, &a, &err);
    if ((s == SC_OK) != (err.n == 0)) abort();
    if (s == SC_OK) {
        if (small(&job)) predict(&job, &a);
    }
    sc_arena_free(&a);
    return 0;
}
