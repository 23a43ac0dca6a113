/* SPDX-License-Identifier: Apache-2.0 */
/* search_tornado.c - how much the step of a search depends on the machine. */
#include "report/search.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* "+12.3 %" */
static report_word percent(double v)
{
    report_word w;
    snprintf(w.s, sizeof w.s, isnan(v) ? "no fit" : "%+.1f %%", 100 * v);
    return w;
}

enum { BAR = 24 };

/* Characters of a bar for a change, of which `most` is the largest. */
static int length(double v, double most)
{
    if (isnan(v)) return BAR;
    return most > 0 ? (int)lround(BAR * fmin(1, fabs(v) / most)) : 0;
}

void report_search_tornado_text(const sc_report_search *r, sc_text *out)
{
    const char *const bar = "########################";
    double most = 0;
    if (!r->swing) return;
    sc_text_add(out,
                "\nstep of %s with %.0f %% less and more of the machine, "
                "searched again\n",
                report_seconds(r->swing_base_s).s, 100 * r->swing_by);
    for (uint32_t i = 0; i < r->n_swings; i++)
        for (int k = 0; k < 2; k++) {
            double v = k ? r->swing[i].more : r->swing[i].less;
            if (!isnan(v)) most = fmax(most, fabs(v));
        }
    sc_text_add(out,
                "                        less      more  same configuration\n");
    for (uint32_t i = 0; i < r->n_swings; i++) {
        const sc_search_swing *s = &r->swing[i];
        double widest = isnan(s->less) || isnan(s->more)
                            ? NAN
                            : fmax(fabs(s->less), fabs(s->more));
        int n = length(widest, most);
        sc_text_add(out, "  %-16s  %8s  %8s  %8s  %8s%s%.*s\n", s->name,
                    percent(s->less).s, percent(s->more).s,
                    percent(s->same_less).s, percent(s->same_more).s,
                    n > 0 ? "  " : "", n, bar);
    }
    if (r->n_swings == 0) sc_text_add(out, "  nothing changes it\n");
}

void report_search_tornado_json(const sc_report_search *r, sc_json *j)
{
    if (!r->swing) return;
    sc_json_key(j, "tornado");
    sc_json_begin(j, '{');
    sc_json_put_double(j, "changed_by", r->swing_by);
    sc_json_put_double(j, "step_time_s", r->swing_base_s);
    sc_json_key(j, "swings");
    sc_json_begin(j, '[');
    for (uint32_t i = 0; i < r->n_swings; i++) {
        const sc_search_swing *s = &r->swing[i];
        sc_json_begin(j, '{');
        sc_json_put_string(j, "property", s->name);
        sc_json_put_double(j, "less", s->less);
        sc_json_put_double(j, "more", s->more);
        sc_json_put_double(j, "same_less", s->same_less);
        sc_json_put_double(j, "same_more", s->same_more);
        sc_json_end(j, '}');
    }
    sc_json_end(j, ']');
    sc_json_end(j, '}');
}
