/* SPDX-License-Identifier: Apache-2.0 */
/* search_sure.c - how sure the order of a search's rows is. */
#include "report/search.h"

#include <math.h>

void report_search_sure_row(const sc_report_search *r, uint32_t i, sc_text *out)
{
    if (!r->sure || r->sure->n < 2 || i >= r->sure->n) return;
    const sc_pick_row *row = &r->sure->row[i];
    report_line(out, "how sure",
                "best of these with %.0f %%, expected regret %.2g %%",
                100 * row->p_best, 100 * row->regret_expected);
}

void report_search_settle(const sc_report_search *r, sc_text *out)
{
    const sc_search_sure *x = r->sure;
    if (!x || x->n < 2) return;
    sc_text_add(out, "\n");
    if (x->pick.best != 0)
        report_line(out, "choose",
                    "%u: with own runs, its expected step is "
                    "the smallest",
                    x->pick.best + 1);
    if (x->pick.n_settle == 0) {
        report_line(out, "to settle it",
                    "no measurement of one of these would "
                    "save 0.01 %% of the step");
        return;
    }
    for (uint32_t i = 0; i < x->pick.n_settle; i++) {
        const sc_settle *s = &x->pick.settle[i];
        report_line(out, i ? "" : "to settle it",
                    "%s %u: expected regret %.2g %%, instead of %.2g %%",
                    i ? "then" : "measure", s->row + 1, 100 * s->regret,
                    100 * (i ? x->pick.settle[i - 1].regret : x->pick.regret));
    }
}

/* What own runs moved. */
sc_status report_search_learned(const sc_report_search *r, sc_arena *a,
                                sc_text *out, sc_err *err)
{
    if (r->found->n_best == 0 || !r->best[0].run.cost->anchors) return SC_OK;
    sc_text_add(out, "\n");
    return sc_report_anchors(&r->best[0], a, out, err);
}

void report_search_sure_row_json(const sc_report_search *r, uint32_t i,
                                 sc_json *j)
{
    bool known = r->sure && i < r->sure->n;
    sc_json_put_double(j, "p_best", known ? r->sure->row[i].p_best : NAN);
    sc_json_put_double(j, "regret_expected",
                       known ? r->sure->row[i].regret_expected : NAN);
}

sc_status report_search_settle_json(const sc_report_search *r, sc_arena *a,
                                    sc_json *j, sc_err *err)
{
    const sc_search_sure *x = r->sure;
    sc_json_key(j, "settle");
    sc_json_begin(j, '[');
    for (uint32_t i = 0; x && i < x->pick.n_settle; i++) {
        const sc_settle *s = &x->pick.settle[i];
        sc_json_begin(j, '{');
        sc_json_put_uint(j, "row", s->row + 1);
        sc_json_put_double(j, "regret_expected", s->regret);
        SC_TRY(report_search_row_json(r, r->jobs, &r->found->best[s->row], a, j,
                                      err));
        sc_json_end(j, '}');
    }
    sc_json_end(j, ']');
    if (r->found->n_best == 0 || !r->best[0].run.cost->anchors) return SC_OK;
    return sc_report_anchors_json(&r->best[0], a, j, err);
}
