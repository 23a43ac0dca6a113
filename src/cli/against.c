/* SPDX-License-Identifier: Apache-2.0 */
/* against.c - `predict --against`: reads the trace that a prediction is compared
 * with. */
#include "cli/predict.h"
#include "cli/replay.h"
#include "report/report_against.h"

#include <string.h>

/* What the trace and the prediction do not have in common. */
static sc_status say_differences(cli *c, const sc_profiled *m,
                                 const sc_prediction *p, sc_text *warnings)
{
    const sc_hw *hw = p->net->job->hw;
    const sc_device *d = NULL;
    const char *why = NULL;
    if (!cli_has_kernels(m))
        sc_text_add(warnings,
                    "warning: the trace has no kernel of a device: only its "
                    "communication is compared\n");
    if (m->world_size && m->world_size != hw->n_devices)
        sc_text_add(warnings,
                    "warning: the traced job has %u ranks, the predicted one "
                    "%u devices\n",
                    m->world_size, hw->n_devices);
    if (!m->device) return SC_OK;
    SC_TRY(sc_device_nearest(m->device, c->arena, &d, &why, c->err));
    if (strcmp(d->name, hw->device->name) != 0)
        sc_text_add(warnings,
                    "warning: the trace is of %s, the prediction of %s\n",
                    m->device, hw->device->name);
    return SC_OK;
}

static sc_status compare(cli *c, const predict_opts *o, const sc_prediction *p,
                         sc_text *warnings, sc_text *assumptions,
                         sc_against *out)
{
    replay_set set;
    sc_replay_steps all = {0, UINT32_MAX};
    sc_replay_change none;
    sc_replay_result r;
    sc_step_work work;
    uint32_t n;
    sc_replay_change_init(&none);
    SC_TRY(cli_replay_load(c, NULL, &all, &o->against, 1, warnings, assumptions,
                           &set));
    SC_TRY(say_differences(c, set.m[0], p, warnings));
    SC_TRY(sc_replay_run(set.model, &none, c->arena, &r, c->err));
    SC_TRY(sc_against_layers(p, r.rank[0].rank, c->arena, &n, c->err));
    SC_TRY(sc_replay_work(set.model, 0, n, c->arena, &work, c->err));
    SC_TRY(sc_against_of(p, &r, 0, &work, c->arena, out, c->err));
    out->file = o->against;
    return SC_OK;
}

sc_status cli_against_read(cli *c, const predict_opts *o,
                           const sc_prediction *p, sc_against **out)
{
    sc_text warnings, assumptions;
    *out = NULL;
    if (!o->against) return SC_OK;
    sc_against *x = SC_NEW(c->arena, sc_against);
    if (!x) return sc_error_nomem(c->err);
    sc_text_init(&warnings);
    sc_text_init(&assumptions);
    sc_status s = compare(c, o, p, &warnings, &assumptions, x);
    if (s == SC_OK && warnings.len) cli_note(c, "%s", warnings.buf);
    if (s == SC_OK && assumptions.len) cli_note(c, "%s", assumptions.buf);
    sc_text_free(&warnings);
    sc_text_free(&assumptions);
    *out = x;
    return s;
}
