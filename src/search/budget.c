/* SPDX-License-Identifier: Apache-2.0 */
/* budget.c - power and money of machines, and what is beyond a budget. */
#include "search/budget.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- the budget ----------------------------------------------------------- */

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), k = strlen(end);
    return n >= k && strcmp(text + n - k, end) == 0;
}

static sc_status read_sum(const char *text, sc_pos pos, sc_unit unit,
                          double *out, sc_err *err)
{
    if (*out > 0)
        return sc_error(err, SC_EUSAGE, SC_C_CONFLICT, pos,
                        "for example 20MW,50MUSD", "\"%.40s\" is a second %s",
                        text, unit == SC_U_WATT ? "power" : "sum of money");
    SC_TRY(sc_unit_parse(text, unit, pos, out, err));
    if (*out > 0) return SC_OK;
    return sc_error(err, SC_EUSAGE, SC_C_RANGE, pos, "for example 20MW,50MUSD",
                    "\"%.40s\" leaves nothing for a machine", text);
}

sc_status sc_search_budget_read(const char *text, sc_pos pos, sc_arena *a,
                                sc_search_budget *out, sc_err *err)
{
    sc_search_budget b = {0};
    char *all = sc_strdup(a, text), *next = NULL;
    if (!all) return sc_error_nomem(err);
    for (char *w = strtok_r(all, ", ", &next); w;
         w = strtok_r(NULL, ", ", &next)) {
        if (ends_with(w, "USD"))
            SC_TRY(read_sum(w, pos, SC_U_USD, &b.usd, err));
        else if (ends_with(w, "W"))
            SC_TRY(read_sum(w, pos, SC_U_WATT, &b.watts, err));
        else
            return sc_error(err, SC_EUSAGE, SC_C_OPTION, pos,
                            "for example 20MW, 50MUSD or 20MW,50MUSD",
                            "\"%.40s\" is neither a power nor a sum of money",
                            w);
    }
    if (b.watts <= 0 && b.usd <= 0)
        return sc_error(err, SC_EUSAGE, SC_C_MISSING, pos,
                        "for example 20MW, 50MUSD or 20MW,50MUSD",
                        "the budget has no value");
    *out = b;
    return SC_OK;
}

/* ---- one machine ---------------------------------------------------------- */

/* Why the power of a machine is not known; NULL: it is. */
static const char *powerless(const sc_hw *hw)
{
    if (!(hw->device->power_w > 0))
        return "the power of its device is not known";
    if (!(hw->node_power_w > 0)) return "the power of its host is not known";
    return NULL;
}

sc_status sc_machine_bill_of(const sc_job *job, const sc_hw *hw,
                             const sc_cost *cost, sc_arena *a,
                             sc_machine_bill *out, sc_err *err)
{
    const sc_run run = {.hw = hw, .cost = cost};
    sc_purchase bought = {.pue = 1};
    sc_machine_bill b = {.watts = NAN, .usd = NAN};
    sc_err why;
    sc_err_init(&why);
    if (sc_job_buys(job)) {
        sc_status s = sc_predict_purchase(job, hw, a, &bought, &why);
        bool known = s != SC_EINPUT || why.d[0].code != SC_C_MISSING;
        if (s != SC_OK && known) *err = why;
        if (s != SC_OK && known) return s;
        if (known)
            b.usd = bought.usd;
        else
            b.why = "the price of its device is not known";
    }
    const char *no_power = powerless(hw);
    if (no_power)
        b.why = no_power;
    else
        b.watts = sc_predict_most_watts(&run) * bought.pue;
    *out = b;
    return SC_OK;
}

/* "dgx-b200:512: 5.2 MW" */
static const char *beyond(const char *spec, double v, sc_unit unit, sc_arena *a)
{
    char text[40];
    sc_unit_print_short(v, unit, text, sizeof text);
    return sc_sprintf(a, "%s: %s", spec, text);
}

sc_status search_budget_over(const sc_search_question *q, const sc_job *job,
                             sc_arena *a, search_over *out, sc_err *err)
{
    const sc_search_budget *b = q->budget;
    const sc_hw *hw;
    sc_machine_bill bill;
    sc_err why;
    sc_err_init(&why);
    *out = (search_over){0};
    sc_status s = sc_job_machine(job, a, &hw, &why);
    if (s == SC_EINPUT) return SC_OK;
    if (s != SC_OK) return sc_error_nomem(err);
    SC_TRY(sc_machine_bill_of(job, hw, q->in->cost, a, &bill, err));
    out->unknown =
        (b->watts > 0 && isnan(bill.watts)) || (b->usd > 0 && isnan(bill.usd));
    out->watts = b->watts > 0 && bill.watts > b->watts;
    out->usd = b->usd > 0 && bill.usd > b->usd;
    out->is = out->unknown || out->watts || out->usd;
    if (!out->is) return SC_OK;
    out->why = out->unknown ? sc_sprintf(a, "%s: %s", job->cluster, bill.why)
               : out->watts ? beyond(job->cluster, bill.watts, SC_U_WATT, a)
                            : beyond(job->cluster, bill.usd, SC_U_USD, a);
    return out->why ? SC_OK : sc_error_nomem(err);
}

sc_status search_budget_count(const search_over *over, double n, sc_arena *a,
                              sc_search_machines *out, sc_err *err)
{
    if (over->unknown)
        out->not_known += n;
    else if (over->watts)
        out->beyond_watts += n;
    else
        out->beyond_usd += n;
    if (out->why_over) return SC_OK;
    out->why_over = sc_strdup(a, over->why);
    return out->why_over ? SC_OK : sc_error_nomem(err);
}

/* ---- nodes of the catalogue ----------------------------------------------- */

static sc_status judge(const sc_job *job, sc_arena *a, sc_search_node *node,
                       sc_err *err)
{
    const sc_hw *hw;
    sc_cost none = {0}; /* whether a power is known does not depend on fits */
    sc_machine_bill bill;
    sc_job own = *job;
    own.cluster = sc_sprintf(a, "%s:1", node->name);
    own.nic_bw = 0;
    if (!own.cluster) return sc_error_nomem(err);
    SC_TRY(sc_job_machine(&own, a, &hw, err));
    SC_TRY(sc_machine_bill_of(&own, hw, &none, a, &bill, err));
    node->why = bill.why;
    return SC_OK;
}

sc_status sc_search_nodes(const sc_job *job, sc_arena *a, sc_search_node **out,
                          uint32_t *n, sc_err *err)
{
    const char **names;
    SC_TRY(sc_hw_list(false, a, &names, n, err));
    *out = SC_NEW_N(a, sc_search_node, *n + 1);
    if (!*out) return sc_error_nomem(err);
    for (uint32_t i = 0; i < *n; i++) {
        (*out)[i].name = names[i];
        SC_TRY(judge(job, a, &(*out)[i], err));
    }
    return SC_OK;
}

sc_status sc_search_nodes_axis(const sc_search_node *node, uint32_t n,
                               sc_arena *a, sc_machine_axis *out, sc_err *err)
{
    const char *text = "";
    for (uint32_t i = 0; i < n && text; i++)
        if (!node[i].why)
            text =
                sc_sprintf(a, "%s%s%s", text, *text ? "," : "", node[i].name);
    if (!text) return sc_error_nomem(err);
    const sc_pos pos = sc_pos_file("--cluster-budget");
    if (!*text)
        return sc_error(err, SC_EINPUT, SC_C_MISSING, pos,
                        "give --machine node=NAME, and its price in a list of "
                        "prices",
                        "power and price of no node of the catalogue are "
                        "known");
    const sc_node values = sc_search_word(text, pos);
    return sc_machine_axis_read("node", &values, a, out, err);
}
