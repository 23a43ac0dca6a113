/* SPDX-License-Identifier: Apache-2.0 */
/* search_identity.c - what tells the checkpoint of one search from another. */
#include "cli/predict.h"
#include "cli/search.h"

#include <stepcast_version.h>

/* Options that change no result, or that are checked on their own. */
static const char *const no_matter[] = {
    "budget", "emit",  "row",           "save", "save-every", "resume",
    "shard",  "merge", "explain-space", "keep", "front",      NULL};

static void add_hash(sc_text *t, const char *what, uint64_t hash)
{
    sc_text_add(t, "%s %016llx\n", what, (unsigned long long)hash);
}

/* The contents of all files that a job names. */
static sc_status add_files(cli *c, const sc_job *job, sc_text *t)
{
    for (const sc_key *k = sc_job_keys; k->name; k++) {
        sc_report_input in[1];
        uint32_t n = 0;
        if (k->type != SC_T_STRING) continue;
        const char *file =
            *(const char *const *)((const char *)job + k->offset);
        SC_TRY(cli_add_input(c, k->flag, file, in, &n));
        if (n) add_hash(t, file, in[0].hash);
    }
    return SC_OK;
}

static sc_status add_axes(cli *c, const sc_search_option *axis, uint32_t n,
                          sc_text *t)
{
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; axis[i].job && k < axis[i].axis.n; k++)
            SC_TRY(add_files(c, &axis[i].job[k], t));
    return SC_OK;
}

sc_status search_identity(cli *c, const sc_opt_set sets[2], const sc_job *job,
                          const sc_inputs *in, const sc_search_option *axis,
                          uint32_t n, const char **out)
{
    sc_text t;
    sc_text_init(&t);
    sc_text_add(&t, "stepcast %s (%s)\n", STEPCAST_VERSION, STEPCAST_COMMIT);
    add_hash(&t, "fit", in->cost->hash);
    add_hash(&t, "model", in->model->hash);
    add_hash(&t, "machine", in->hw->hash);
    cli_dump_lines(&sets[0], NULL, &t);
    cli_dump_lines(&sets[1], no_matter, &t);
    sc_status s = add_files(c, job, &t);
    if (s == SC_OK) s = add_axes(c, axis, n, &t);
    const search_opts *o = sets[1].target;
    if (o->keep) sc_text_add(&t, "keep: all\n");
    *out = t.failed ? NULL : sc_strdup(c->arena, t.buf);
    sc_text_free(&t);
    if (s != SC_OK) return s;
    return *out ? SC_OK : sc_error_nomem(c->err);
}
