/* SPDX-License-Identifier: Apache-2.0 */
/* emit_machine.c - writes the machine of a job. */
#include "import/emit.h"
#include "trace/trace_machine.h"

/* The command that predicts the job on the machine of the file. */
static sc_status cluster_command(emitter *e)
{
    sc_job none, with = *e->job;
    sc_job_init(&none);
    with.cluster = sc_sprintf(e->a, "%s/cluster.yml", e->dir);
    with.nic_bw = 0;
    if (!with.cluster) return sc_error_nomem(e->err);
    const char *options = sc_job_options(&none, &with, e->a);
    if (options) e->command = sc_sprintf(e->a, "stepcast predict %s", options);
    if (!options || !e->command) return sc_error_nomem(e->err);
    if (!e->job->model)
        e->out->note = "the model is in none of the files: give it, too";
    return SC_OK;
}

sc_status emit_cluster(emitter *e)
{
    const sc_job *j = e->job;
    sc_text t;
    SC_TRY(cluster_command(e));
    sc_text_init(&t);
    emit_comment(e, &t);
    sc_status s = sc_hw_yaml(j->cluster, sc_pos_file("--emit"), j->nic_bw, e->a,
                             &t, e->err);
    if (s == SC_OK) return emit_file(e, "cluster.yml", &t);
    sc_text_free(&t);
    return s;
}

sc_status emit_astra_sim(emitter *e)
{
    const sc_trace_machine m = {.hw = e->run->hw,
                                .precision = e->run->precision};
    sc_trace_file f[SC_TRACE_MACHINE_FILES];
    sc_text notes;
    if (m.hw->n_devices < 2)
        return sc_error(e->err, SC_EINPUT, SC_C_UNSUPPORTED,
                        sc_pos_file("--emit"), NULL,
                        "a single device has no network");
    sc_text_init(&notes);
    sc_status s = sc_trace_machine_files(&m, e->a, f, &notes, e->err);
    for (size_t i = 0; i < SC_COUNT(f) && s == SC_OK; i++)
        e->out->file[e->out->n_files++] =
            (sc_emitted_file){f[i].name, f[i].text};
    e->command = sc_sprintf(e->a,
                            "stepcast simulate --workload TRACES --system "
                            "%s/system.json --network %s/network.yml",
                            e->dir, e->dir);
    if (s == SC_OK && notes.len > 0)
        e->out->note = sc_strndup(e->a, notes.buf, notes.len - 1);
    if (s == SC_OK &&
        (notes.failed || !e->command || (notes.len > 0 && !e->out->note)))
        s = sc_error_nomem(e->err);
    sc_text_free(&notes);
    return s;
}
