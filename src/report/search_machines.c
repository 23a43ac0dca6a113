/* SPDX-License-Identifier: Apache-2.0 */
/* search_machines.c - the best machines of a search. */
#include "report/search.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

void sc_report_search_machines(const sc_machine_axis *axis, uint32_t n,
                               sc_text *out)
{
    double all = 1;
    for (uint32_t i = 0; i < n; i++) all *= axis[i].n;
    sc_text_add(out, "%.0f machines\n\naxes\n", all);
    for (uint32_t i = 0; i < n; i++) {
        sc_text t;
        sc_text_init(&t);
        for (uint32_t k = 0; k < axis[i].n; k++)
            sc_text_add(&t, "%s%s", k ? " " : "", axis[i].value[k]);
        report_line(out, axis[i].name, "%.900s", t.buf);
        sc_text_free(&t);
    }
    sc_text_add(
        out, "\neach with its own divisions; the machine as it was given has ");
}

/* Power and price are printed if they decide which machines there are. */
static bool with_bills(const sc_report_search *r)
{
    return r->budget || r->machines->n_front > 0;
}

/* Whether the machines have different programs. */
static bool several_programs(const sc_search_machines *m)
{
    const sc_software *sw = m->n_best ? m->best[0].best->run.sw : NULL;
    for (uint32_t i = 1; i < m->n_best; i++)
        if (strcmp(m->best[i].best->run.sw->name, sw->name) != 0) return true;
    for (uint32_t i = 0; i < m->n_front; i++)
        if (strcmp(m->front[i].machine->best->run.sw->name, sw->name) != 0)
            return true;
    return false;
}

static void rows_begin(const sc_report_search *r, sc_text *out)
{
    sc_text_add(out, "  devices       step         run        cost     MFU  ");
    if (with_bills(r)) sc_text_add(out, "   power     price  ");
    sc_text_add(out, "machine%s\n",
                several_programs(r->machines) ? ", program" : "");
}

static void row(const sc_report_search *r, const sc_machine_row *m,
                sc_text *out)
{
    const sc_prediction *p = m->best;
    bool run = !isnan(p->whole_run.days);
    char energy[40] = "", power[40] = "";
    if (r->goal == SC_GOAL_ENERGY)
        sc_unit_print_short(run ? p->whole_run.energy_j : p->energy_j_per_step,
                            SC_U_JOULE, energy, sizeof energy);
    sc_text_add(
        out, "  %7u  %9s  %10s  %10s  %4.1f %%  ", p->run.hw->n_devices,
        report_seconds(p->step_time_s).s,
        run ? report_days(p->whole_run.days).s : "",
        isnan(report_search_usd(p)) ? "" : report_usd(report_search_usd(p)).s,
        100 * p->mfu);
    if (!isnan(m->bill.watts))
        sc_unit_print_short(m->bill.watts, SC_U_WATT, power, sizeof power);
    if (with_bills(r))
        sc_text_add(out, "%8s %9s  ", power,
                    isnan(m->bill.usd) ? "" : report_usd(m->bill.usd).s);
    sc_text_add(out, "%s%s%s", energy, *energy ? "  " : "", m->job.cluster);
    for (uint32_t i = 0; i < r->machines->n_axes; i++) {
        const sc_machine_axis *x = &r->machines->axis[i];
        if (x->option)
            sc_text_add(out, " %s %s", x->option->key->flag,
                        x->value[m->digit[i]]);
    }
    if (several_programs(r->machines))
        sc_text_add(out, ", %s", p->run.sw->name);
    sc_text_add(out, "\n");
}

static void per_axis(const sc_report_search *r, sc_text *out)
{
    const sc_search_machines *m = r->machines;
    double least = m->best[0].score;
    sc_text_add(out, "\nmachines with each value, over the best of all\n");
    for (uint32_t i = 0; i < m->n_axes; i++) {
        const sc_machine_axis *x = &m->axis[i];
        sc_text t;
        if (x->n < 2) continue;
        sc_text_init(&t);
        for (uint32_t k = 0; k < x->n; k++) {
            double s = m->per_axis[i][k];
            if (isinf(s)) continue;
            sc_text_add(&t, "%s%s:%.3f", t.len ? "  " : "", x->value[k],
                        s / least);
        }
        report_line(out, x->name, "%.900s", t.buf);
        sc_text_free(&t);
    }
}

/* "1.23 billion" is not clearer than digits up to a million. */
static report_word many(double n)
{
    report_word w;
    snprintf(w.s, sizeof w.s, n < 1e7 ? "%.0f" : "%.3g", n);
    return w;
}

/* Machines of the front in the text; --json has all. */
enum { FRONT_ROWS = 16 };

static void front(const sc_report_search *r, sc_text *out)
{
    const sc_search_machines *m = r->machines;
    if (m->n_front == 0) return;
    sc_text_add(out, "\nno machine is better in ");
    report_search_dims(m->dims, out);
    sc_text_add(out, ", each with its fastest configuration\n");
    rows_begin(r, out);
    for (uint32_t i = 0; i < m->n_front && i < FRONT_ROWS; i++)
        row(r, m->front[i].machine, out);
    if (m->n_front > FRONT_ROWS)
        report_line(out, "", "%u more with --json", m->n_front - FRONT_ROWS);
}

static bool proved(const sc_search_machines *m)
{
    return !(m->left > 0);
}

void report_search_machines_text(const sc_report_search *r, sc_text *out)
{
    const sc_search_machines *m = r->machines;
    report_line(out, "machines", "%s: %llu searched, %llu not possible",
                many(m->machines).s, (unsigned long long)m->searched,
                (unsigned long long)m->illegal);
    if (m->why) report_line(out, "", "first %s", m->why);
    if (r->budget) report_search_budget_text(r, out);
    report_line(out, "points", "%s: %s evaluated", many(m->points).s,
                many(m->evaluated).s);
    if (proved(m))
        report_line(out, "best machine",
                    m->n_best ? "proved"
                              : "none: nothing fits, or meets the limits");
    else if (m->n_best && m->bound > 0)
        report_line(out, "best machine",
                    "no other is more than %.3g %% better; %s points were not "
                    "reached",
                    100 * (m->best[0].score / m->bound - 1), many(m->left).s);
    else
        report_line(out, "best machine", "not known: give a larger --budget");
    if (m->n_best == 0) return;
    sc_text_add(out, "\n");
    rows_begin(r, out);
    for (uint32_t i = 0; i < m->n_best; i++) row(r, &m->best[i], out);
    per_axis(r, out);
    front(r, out);
    sc_text_add(out, "\n");
}

/* ---- JSON ----------------------------------------------------------------- */

static void values_json(const sc_search_machines *m, const uint32_t *digit,
                        sc_json *j)
{
    sc_json_key(j, "machine");
    sc_json_begin(j, '{');
    for (uint32_t i = 0; i < m->n_axes; i++)
        sc_json_put_string(j, m->axis[i].name, m->axis[i].value[digit[i]]);
    sc_json_end(j, '}');
}

static sc_status row_json(const sc_report_search *r, const sc_machine_row *row,
                          sc_arena *a, sc_json *j, sc_err *err)
{
    const sc_prediction *p = row->best;
    const char *options = sc_job_options(r->asked, &row->job, a);
    if (!options) return sc_error_nomem(err);
    sc_json_begin(j, '{');
    values_json(r->machines, row->digit, j);
    sc_json_put_string(j, "spec", row->job.cluster);
    sc_json_put_string(j, "software", p->run.sw->name);
    sc_json_put_uint(j, "devices", p->run.hw->n_devices);
    sc_json_put_double(j, "step_time_s", p->step_time_s);
    sc_json_put_double(j, "days", p->whole_run.days);
    sc_json_put_double(j, "cost_usd", report_search_usd(p));
    sc_json_put_double(j, "energy_j",
                       isnan(p->whole_run.days) ? p->energy_j_per_step
                                                : p->whole_run.energy_j);
    sc_json_put_double(j, "mfu", p->mfu);
    sc_json_put_double(j, "machine_power_w", row->bill.watts);
    sc_json_put_double(j, "purchase_usd", row->bill.usd);
    sc_json_put_double(j, "score", row->score);
    sc_json_put_string(j, "options", options);
    sc_json_put_strings(j, "assumptions", p->assumptions, p->n_assumptions);
    sc_json_end(j, '}');
    return SC_OK;
}

static sc_status front_json(const sc_report_search *r, sc_arena *a, sc_json *j,
                            sc_err *err)
{
    const sc_search_machines *m = r->machines;
    sc_json_key(j, "front");
    sc_json_begin(j, '[');
    for (uint32_t i = 0; i < m->n_front; i++)
        SC_TRY(row_json(r, m->front[i].machine, a, j, err));
    sc_json_end(j, ']');
    return SC_OK;
}

sc_status report_search_machines_json(const sc_report_search *r, sc_arena *a,
                                      sc_json *j, sc_err *err)
{
    const sc_search_machines *m = r->machines;
    sc_json_key(j, "machines");
    sc_json_begin(j, '{');
    sc_json_put_double(j, "number", m->machines);
    sc_json_put_uint(j, "searched", m->searched);
    sc_json_put_uint(j, "not_possible", m->illegal);
    if (m->why) sc_json_put_string(j, "why_not", m->why);
    sc_json_put_double(j, "points", m->points);
    sc_json_put_double(j, "evaluated", m->evaluated);
    sc_json_put_double(j, "not_reached", m->left);
    sc_json_key(j, "optimal");
    if (proved(m))
        sc_json_string(j, "proved");
    else if (m->n_best && m->bound > 0)
        sc_json_double(j, m->best[0].score / m->bound - 1);
    else
        sc_json_null(j);
    sc_json_key(j, "best");
    sc_json_begin(j, '[');
    for (uint32_t i = 0; i < m->n_best; i++)
        SC_TRY(row_json(r, &m->best[i], a, j, err));
    sc_json_end(j, ']');
    if (m->dims) SC_TRY(front_json(r, a, j, err));
    if (r->budget) report_search_budget_json(r, j);
    sc_json_key(j, "per_axis");
    sc_json_begin(j, '[');
    for (uint32_t i = 0; i < m->n_axes; i++)
        for (uint32_t k = 0; k < m->axis[i].n; k++) {
            double s = m->per_axis[i][k];
            sc_json_begin(j, '{');
            sc_json_put_string(j, "axis", m->axis[i].name);
            sc_json_put_string(j, "value", m->axis[i].value[k]);
            sc_json_put_double(j, "best_score", isinf(s) ? NAN : s);
            sc_json_end(j, '}');
        }
    sc_json_end(j, ']');
    sc_json_end(j, '}');
    return SC_OK;
}
