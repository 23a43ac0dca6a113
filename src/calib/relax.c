/* SPDX-License-Identifier: Apache-2.0 */
/*
 * relax.c - a row of a table ran, whatever our tables of programs and devices
 * say.  What a row states and a prediction refuses is left open, one fact after
 * the other, with a warning.
 */
#include "calib/row.h"

#include <string.h>

/* Facts that are left open before a row is given up. */
#define TRIES 8

static const sc_key *key_of_flag(const char *flag, size_t len)
{
    for (const sc_key *k = sc_job_keys; k->name; k++)
        if (k->flag && strlen(k->flag) == len &&
            strncmp(k->flag, flag, len) == 0)
            return k;
    return NULL;
}

/* Leaves one option open, but not the batch; true if it was given. */
static bool leave_open(const char *flag, size_t len, sc_job *job)
{
    const sc_key *k = key_of_flag(flag, len);
    sc_job none;
    if (!k || !sc_job_has(job, k) || calib_of_batch(k)) return false;
    sc_job_init(&none);
    sc_schema_copy(k, &none, job);
    return true;
}

/* Leaves those options open that the place of an error names ("--tp 4 --pp 3");
 * true if one of them was given. */
static bool leave_named(const char *place, sc_job *job)
{
    bool any = false;
    for (const char *s = strstr(place, "--"); s; s = strstr(s, "--")) {
        size_t len = strcspn(s, " ,");
        if (leave_open(s, len, job)) any = true;
        s += len;
    }
    return any;
}

/* Lets the program have whatever the row states. */
static sc_status open_program(calib_run *run, sc_arena *a, sc_err *err)
{
    sc_software *own = SC_NEW(a, sc_software);
    if (!own) return sc_error_nomem(err);
    *own = *run->sw;
    own->open = true;
    run->sw = own;
    return SC_OK;
}

static sc_status relax(const sc_diag *why, sc_arena *a, calib_run *run,
                       bool *changed, sc_err *err)
{
    sc_job *job = &run->job;
    *changed = true;
    if (why->code == SC_C_UNSUPPORTED && !run->sw->open && !run->model->net) {
        SC_TRY(open_program(run, a, err));
        return calib_warn(run, a, err,
                          "%.160s, by its profile; the row is "
                          "predicted as if it had",
                          why->msg);
    }
    if (leave_named(why->file, job))
        return calib_warn(run, a, err, "%s is inferred, because %.160s",
                          why->file, why->msg);
    if (calib_leave_degrees(job))
        return calib_warn(run, a, err,
                          "the degrees and the micro-batch are inferred, "
                          "because %.160s",
                          why->msg);
    *changed = calib_round_batch(run->hw, job);
    if (!*changed) return SC_OK;
    return calib_warn(run, a, err,
                      "the global batch is rounded up to a multiple of the "
                      "devices, because %.160s",
                      why->msg);
}

sc_status calib_relax(const sc_err *why, sc_arena *a, calib_run *run,
                      bool *changed, sc_err *err)
{
    *changed = false;
    if (why->n == 0 || run->relaxed >= TRIES) return SC_OK;
    run->relaxed++;
    return relax(&why->d[0], a, run, changed, err);
}
