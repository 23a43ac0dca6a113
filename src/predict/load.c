/* SPDX-License-Identifier: Apache-2.0 */
/* load.c - the machine, model and program that the options of a job name. */
#include "predict/internal.h"

#include <stdio.h>
#include <string.h>

sc_status sc_job_vocabulary(const sc_job *job, sc_arena *a,
                            const sc_model **inout, sc_err *err)
{
    const sc_model *m = *inout;
    char option[48];
    if (job->vocab == 0 || job->vocab == m->t.vocab) return SC_OK;
    snprintf(option, sizeof option, "--vocab-size %lld", (long long)job->vocab);
    if (m->net || m->t.vocab == 0)
        return sc_error(err, SC_EINPUT, SC_C_CONFLICT, sc_pos_file(option),
                        "leave it out", "%s has no vocabulary", m->name);
    sc_transformer t = m->t;
    t.vocab = job->vocab;
    SC_TRY(sc_model_from_transformer(&t, sc_pos_file(option), a, inout, err));
    return SC_OK;
}

/* The cluster with the nearest known name, if it is a name with a number of
 * nodes or options after it. */
static sc_status known_cluster(const char *spec, sc_arena *a, const char **out,
                               const char **why, sc_err *err)
{
    size_t len = strcspn(spec, ":;");
    *out = spec;
    *why = NULL;
    if (len == 0 || sc_hw_is_file(spec) || strpbrk(spec, "/( ")) return SC_OK;
    if (memchr(spec, '{', len)) return SC_OK; /* a device with factors */
    const char *name = sc_strndup(a, spec, len), *near;
    if (!name) return sc_error_nomem(err);
    SC_TRY(sc_hw_nearest(name, false, a, &near, why, err));
    if (!*why) return SC_OK;
    *out = sc_sprintf(a, "%s%s", near, spec + len);
    return *out ? SC_OK : sc_error_nomem(err);
}

sc_pos predict_machine_pos(const sc_job *job, sc_arena *a)
{
    return sc_pos_option(a, "--cluster", job->cluster);
}

sc_status sc_job_devices(const sc_job *job, const sc_hw *hw, sc_arena *a,
                         const sc_hw **out, sc_err *err)
{
    SC_TRY(sc_hw_cap(hw, job->power_cap, a, &hw, err));
    return sc_hw_spread(hw, job->expanded_fraction,
                        job->expanded_access == SC_ACCESS_IN_TURN,
                        sc_pos_file("--expanded-fraction"), a, out, err);
}

sc_status sc_job_machine(const sc_job *job, sc_arena *a, const sc_hw **out,
                         sc_err *err)
{
    const char *spec, *why;
    const sc_hw *hw;
    SC_TRY(known_cluster(job->cluster, a, &spec, &why, err));
    SC_TRY(sc_hw_build_nics(spec, predict_machine_pos(job, a), job->nic_bw,
                            sc_pos_file("--nic-bw"), a, &hw, err));
    *out = hw;
    if (why) {
        sc_hw *own = SC_NEW(a, sc_hw);
        if (!own) return sc_error_nomem(err);
        *own = *hw;
        own->nearest = why;
        hw = own;
    }
    return sc_job_devices(job, hw, a, out, err);
}

sc_status sc_job_software(const sc_job *job, const sc_hw *hw, sc_arena *a,
                          const sc_software **out, sc_err *err)
{
    return sc_software_nearest(job->software, NULL, hw ? hw->device : NULL,
                               sc_pos_option(a, "--software", job->software), a,
                               out, err);
}

sc_status sc_job_on_machine(const sc_job *job, sc_arena *a, sc_inputs *inout,
                            sc_err *err)
{
    SC_TRY(sc_job_machine(job, a, &inout->hw, err));
    SC_TRY(sc_job_software(job, inout->hw, a, &inout->sw, err));
    return sc_job_vocabulary(job, a, &inout->model, err);
}

sc_status sc_predict_load(const sc_job *job, sc_arena *a, sc_inputs *out,
                          sc_err *err)
{
    sc_inputs in = {.cost = SC_NEW(a, sc_cost)};
    if (!in.cost) return sc_error_nomem(err);
    sc_status s = SC_OK, t;
    if (!job->model)
        s = sc_error(err, SC_EUSAGE, SC_C_MISSING, sc_pos_file("--model"),
                     "`stepcast list models` shows the catalogue",
                     "no model is given");
    else
        s = sc_model_load(job->model, sc_pos_option(a, "--model", job->model),
                          a, &in.model, err);
    if (!job->cluster)
        t = sc_error(err, SC_EUSAGE, SC_C_MISSING, sc_pos_file("--cluster"),
                     "for example --cluster dgx-h100:16",
                     "no cluster is given");
    else
        t = sc_job_machine(job, a, &in.hw, err);
    if (s == SC_OK) s = t;
    t = sc_job_software(job, in.hw, a, &in.sw, err);
    if (s == SC_OK) s = t;
    SC_TRY(s);
    SC_TRY(sc_job_vocabulary(job, a, &in.model, err));
    SC_TRY(sc_cost_builtin(a, in.cost, err));
    *out = in;
    return SC_OK;
}
