/* SPDX-License-Identifier: Apache-2.0 */
/* against.c - `predict --against`: reads the trace that a prediction is compared
 * with. */
#include "cli/predict.h"
#include "cli/replay.h"
#include "report/report_against.h"

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
