/* SPDX-License-Identifier: Apache-2.0 */
/* mix.c - the best machine for several jobs. */
#include "predict/predict_jobs.h"
#include "search/search_mix.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- the file ------------------------------------------------------------- */

sc_status sc_search_mix_read(const char *text, size_t len, const char *file,
                             const sc_job *base, sc_arena *a, sc_mix_job **out,
                             uint32_t *n, sc_err *err)
{
    sc_jobs_entry *job = NULL;
    uint32_t n_jobs = 0;
    sc_status first = SC_OK;
    SC_TRY(sc_jobs_read(text, len, file, base, a, &job, &n_jobs, err));
    sc_mix_job *all = SC_NEW_N(a, sc_mix_job, n_jobs);
    if (!all) return sc_error_nomem(err);
    for (uint32_t i = 0; i < n_jobs; i++) {
        all[i] = (sc_mix_job){
            .name = job[i].name, .weight = job[i].weight, .job = job[i].job};
        if (!job[i].side) continue;
        sc_status s = sc_error(
            err, SC_EINPUT, SC_C_CONFLICT, job[i].side->key_pos,
            "`stepcast simulate --mix` runs jobs on parts of a machine",
            "every job of a search has the whole machine");
        if (first == SC_OK) first = s;
    }
    SC_TRY(first);
    *out = all;
    *n = n_jobs;
    return SC_OK;
}

/* ---- machines ------------------------------------------------------------- */

static const sc_machine_row *same_machine(const sc_search_machines *m,
                                          const sc_machine_row *row)
{
    for (uint32_t i = 0; i < m->n_best; i++)
        if (memcmp(m->best[i].digit, row->digit,
                   m->n_axes * sizeof *row->digit) == 0)
            return &m->best[i];
    return NULL;
}

static int by_mean(const void *a, const void *b)
{
    const sc_mix_row *x = a, *y = b;
    if (x->mean != y->mean) return x->mean < y->mean ? -1 : 1;
    return memcmp(x->of[0]->digit, y->of[0]->digit, sizeof x->of[0]->digit);
}

static bool join(const sc_mix_job *job, uint32_t n_jobs,
                 const sc_machine_row *first, sc_mix_row *out)
{
    double sum = 0, weights = 0;
    for (uint32_t i = 0; i < n_jobs; i++) {
        out->of[i] = same_machine(&job[i].found, first);
        if (!out->of[i]) return false;
        sum += job[i].weight * out->of[i]->score / job[i].found.best[0].score;
        weights += job[i].weight;
    }
    out->mean = sum / weights;
    return true;
}

sc_status sc_search_mix_run(const sc_search_question *q, sc_mix_job *job,
                            uint32_t n_jobs, const sc_machine_axis *axis,
                            uint32_t n_axes, sc_arena *a, sc_search_mix *out,
                            sc_err *err)
{
    sc_search_options o = *q->o;
    *out = (sc_search_mix){
        .n_jobs = n_jobs, .job = job, .machines = 1, .proved = true};
    for (uint32_t i = 0; i < n_axes; i++) out->machines *= axis[i].n;
    if (out->machines > SC_MIX_MACHINES)
        return sc_error(err, SC_EINPUT, SC_C_TOO_BIG, sc_pos_file("--mix"),
                        "give fewer values of the machine",
                        "every one of %.0f machines would be searched",
                        out->machines);
    o.top = (uint32_t)out->machines;
    for (uint32_t i = 0; i < n_jobs; i++) {
        sc_search_question own = *q;
        own.o = &o;
        own.job = &job[i].job;
        own.in = &job[i].in;
        SC_TRY(
            sc_search_machines_run(&own, axis, n_axes, a, &job[i].found, err));
        out->proved = out->proved && !(job[i].found.left > 0);
    }
    out->row = SC_NEW_N(a, sc_mix_row, (size_t)job[0].found.n_best + 1);
    if (!out->row) return sc_error_nomem(err);
    for (uint32_t i = 0; i < job[0].found.n_best; i++) {
        sc_mix_row *r = &out->row[out->n_rows];
        r->of = SC_NEW_N(a, const sc_machine_row *, n_jobs);
        if (!r->of) return sc_error_nomem(err);
        if (join(job, n_jobs, &job[0].found.best[i], r)) out->n_rows++;
    }
    qsort(out->row, out->n_rows, sizeof *out->row, by_mean);
    return SC_OK;
}
