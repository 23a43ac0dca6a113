/* SPDX-License-Identifier: Apache-2.0 */
/* anchors.c - what own runs changed in a prediction. */
#include "report/report_predict.h"
#include "report/report_row.h"

#include <math.h>
#include <string.h>

#define SHOWN 6 /* most rows of a list in the text */

static void run_text(const sc_anchor *x, const char *title, sc_text *out)
{
    report_line(
        out, title,
        "%s: measured %s, %s predicted without own runs (%+.1f %%)%s", x->id,
        report_seconds(x->measured_s).s, report_seconds(x->predicted_s).s,
        100 * (x->predicted_s / x->measured_s - 1),
        fabs(x->z) > SC_ANCHOR_FAR ? ", far from what is expected" : "");
}

static void effect_text(const sc_anchor_effect *e, const char *title,
                        sc_text *out)
{
    if (strcmp(e->what, "parameter") == 0)
        report_line(out, title,
                    "%s %.4g -> %.4g, standard error %.1f -> %.1f %%", e->name,
                    e->before, e->after, 100 * e->sd_before, 100 * e->sd_after);
    else
        report_line(out, title, "%s %s x %.3f, standard error %.1f -> %.1f %%",
                    e->what, e->name, e->after, 100 * e->sd_before,
                    100 * e->sd_after);
}

sc_status sc_report_anchors(const sc_prediction *p, sc_arena *a, sc_text *out,
                            sc_err *err)
{
    const sc_anchors *s = p->run.cost->anchors;
    sc_anchor_effect *e = NULL;
    uint32_t n = 0;
    if (!s) return SC_OK;
    SC_TRY(sc_anchors_list(s, a, &e, &n, err));
    for (uint32_t i = 0; i < s->n && i < SHOWN; i++)
        run_text(&s->a[i], i ? "" : "own runs", out);
    if (s->n > SHOWN) report_line(out, "", "and %u more", s->n - SHOWN);
    for (uint32_t i = 0; i < n && i < SHOWN; i++)
        effect_text(&e[i], i ? "" : "they move", out);
    if (n > SHOWN) report_line(out, "", "and %u more", n - SHOWN);
    report_line(out, "levels",
                "x %.3f on this step, the interval's logarithms x %.2f",
                exp(p->level), p->narrow);
    return SC_OK;
}

static void run_json(const sc_anchors *s, const sc_anchor *x, sc_json *j)
{
    double level = sc_anchors_level_of(s, &x->traits);
    sc_json_begin(j, '{');
    sc_json_put_string(j, "id", x->id);
    sc_json_put_double(j, "measured_s", x->measured_s);
    sc_json_put_double(j, "predicted_s", x->predicted_s);
    sc_json_put_double(j, "with_levels_s", x->moved_s * exp(level));
    sc_json_put_double(j, "z", x->z);
    sc_json_key(j, "far");
    sc_json_bool(j, fabs(x->z) > SC_ANCHOR_FAR);
    sc_json_end(j, '}');
}

static void effect_json(const sc_anchor_effect *e, sc_json *j)
{
    sc_json_begin(j, '{');
    sc_json_put_string(j, "what", e->what);
    sc_json_put_string(j, "name", e->name);
    sc_json_put_double(j, "before", e->before);
    sc_json_put_double(j, "after", e->after);
    sc_json_put_double(j, "sd_before", e->sd_before);
    sc_json_put_double(j, "sd_after", e->sd_after);
    sc_json_put_string(j, "reason", e->reason);
    sc_json_end(j, '}');
}

sc_status sc_report_own_runs_json(const sc_anchors *s, sc_arena *a, sc_json *j,
                                  sc_err *err)
{
    sc_anchor_effect *e = NULL;
    uint32_t n = 0;
    SC_TRY(sc_anchors_list(s, a, &e, &n, err));
    sc_json_key(j, "runs");
    sc_json_begin(j, '[');
    for (uint32_t i = 0; i < s->n; i++) run_json(s, &s->a[i], j);
    sc_json_end(j, ']');
    sc_json_key(j, "moved");
    sc_json_begin(j, '[');
    for (uint32_t i = 0; i < n; i++) effect_json(&e[i], j);
    sc_json_end(j, ']');
    return SC_OK;
}

sc_status sc_report_anchors_json(const sc_prediction *p, sc_arena *a,
                                 sc_json *j, sc_err *err)
{
    sc_json_key(j, "anchors");
    sc_json_begin(j, '{');
    SC_TRY(sc_report_own_runs_json(p->run.cost->anchors, a, j, err));
    sc_json_put_double(j, "level", exp(p->level));
    sc_json_put_double(j, "narrow", p->narrow);
    sc_json_end(j, '}');
    return SC_OK;
}
