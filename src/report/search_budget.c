/* SPDX-License-Identifier: Apache-2.0 */
/* search_budget.c - the budget of a search, and what was proposed for it. */
#include "report/search.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void beyond(double n, const char *what, sc_text *t)
{
    if (n > 0) sc_text_add(t, "%s%.0f %s", t->len ? ", " : "", n, what);
}

static void budget_line(const sc_report_search *r, sc_text *out)
{
    const sc_search_machines *m = r->machines;
    const sc_search_budget *b = &r->budget->budget;
    char power[40] = "";
    sc_text t;
    sc_text_init(&t);
    if (b->watts > 0)
        sc_unit_print_short(b->watts, SC_U_WATT, power, sizeof power);
    beyond(m->beyond_watts, "machines need more power", &t);
    beyond(m->beyond_usd, "machines cost more", &t);
    beyond(m->not_known, "machines whose power or price is not known", &t);
    report_line(out, "budget", "%s%s%s%s%s", power,
                *power && b->usd > 0 ? " and " : "",
                b->usd > 0 ? report_usd(b->usd).s : "", t.len ? "; " : "",
                t.len ? t.buf : "");
    sc_text_free(&t);
    if (m->why_over) report_line(out, "", "first %s", m->why_over);
}

/* Reasons why nodes of the catalogue are not proposed, each with how many. */
static void left_out(const sc_search_proposal *p, sc_text *out)
{
    const char *said[8];
    uint32_t n_said = 0;
    for (uint32_t i = 0; i < p->n_nodes && n_said < SC_COUNT(said); i++) {
        const char *why = p->node[i].why;
        uint32_t n = 0, k = 0;
        if (!why) continue;
        while (k < n_said && strcmp(said[k], why) != 0) k++;
        if (k < n_said) continue;
        for (k = i; k < p->n_nodes; k++)
            n += p->node[k].why && strcmp(p->node[k].why, why) == 0;
        report_line(out, n_said ? "" : "not proposed", "%u nodes: %s", n, why);
        said[n_said++] = why;
    }
}

void report_search_budget_text(const sc_report_search *r, sc_text *out)
{
    const sc_search_proposal *p = r->budget;
    budget_line(r, out);
    left_out(p, out);
    for (uint32_t i = 0; i < p->n_largest; i++) {
        const sc_search_largest *l = &p->largest[i];
        const char *title = i ? "" : "largest";
        if (l->divides == l->units)
            report_line(out, title, "%s", l->spec);
        else if (l->divides)
            report_line(out, title, "%s; the job can be divided over %llu",
                        l->spec, (unsigned long long)l->divides);
        else
            report_line(out, title, "%s; the job can't be divided over it",
                        l->spec);
    }
}

/* ---- JSON ----------------------------------------------------------------- */

void report_search_budget_json(const sc_report_search *r, sc_json *j)
{
    const sc_search_machines *m = r->machines;
    const sc_search_proposal *p = r->budget;
    sc_json_key(j, "budget");
    sc_json_begin(j, '{');
    sc_json_put_double(j, "machine_power_w",
                       p->budget.watts > 0 ? p->budget.watts : NAN);
    sc_json_put_double(j, "purchase_usd",
                       p->budget.usd > 0 ? p->budget.usd : NAN);
    sc_json_put_double(j, "beyond_power", m->beyond_watts);
    sc_json_put_double(j, "beyond_money", m->beyond_usd);
    sc_json_put_double(j, "not_known", m->not_known);
    sc_json_put_string(j, "why_beyond", m->why_over);
    sc_json_key(j, "not_proposed");
    sc_json_begin(j, '[');
    for (uint32_t i = 0; i < p->n_nodes; i++) {
        if (!p->node[i].why) continue;
        sc_json_begin(j, '{');
        sc_json_put_string(j, "node", p->node[i].name);
        sc_json_put_string(j, "why_not", p->node[i].why);
        sc_json_end(j, '}');
    }
    sc_json_end(j, ']');
    sc_json_key(j, "largest");
    sc_json_begin(j, '[');
    for (uint32_t i = 0; i < p->n_largest; i++) {
        sc_json_begin(j, '{');
        sc_json_put_string(j, "spec", p->largest[i].spec);
        sc_json_put_uint(j, "number", p->largest[i].units);
        sc_json_put_uint(j, "divides_job", p->largest[i].divides);
        sc_json_end(j, '}');
    }
    sc_json_end(j, ']');
    sc_json_end(j, '}');
}
