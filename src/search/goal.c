/* SPDX-License-Identifier: Apache-2.0 */
/* goal.c - what a search makes small. */
#include "search/search.h"

#include <math.h>
#include <stdio.h>

const char *const sc_search_goal_names[] = {"step_time",      "cost", "energy",
                                            "tokens_per_usd", "days", NULL};

/* An option that the job lacks. */
static sc_status lacks(const char *who, size_t offset, const char *value,
                       const char *what, sc_err *err)
{
    char hint[64];
    const sc_key *k = sc_job_keys;
    while (k->name && k->offset != offset) k++;
    snprintf(hint, sizeof hint, "for example %s %s", k->flag, value);
    return sc_error(err, SC_EINPUT, SC_C_MISSING, sc_pos_file(who), hint, "%s",
                    what);
}

sc_status sc_search_needs_prices(const char *who, sc_err *err)
{
    return lacks(who, offsetof(sc_job, purchase), "list-2024",
                 "the prices of machines are not given", err);
}

sc_status sc_search_goal_check(sc_search_goal goal,
                               const sc_search_limits *limits,
                               const sc_job *job, const sc_hw *hw, sc_err *err)
{
    static const char *const of[] = {
        "--objective step_time", "--objective cost", "--objective energy",
        "--objective tokens_per_usd", "--objective days"};
    const char *money = NULL, *run = NULL;
    if (goal == SC_GOAL_COST || goal == SC_GOAL_TOKENS_PER_USD)
        money = of[goal];
    if (goal == SC_GOAL_DAYS) run = of[goal];
    if (limits->until_s > 0) run = "--until";
    if (limits->usd > 0) run = money = "--cost-at-most";
    if (run && job->tokens == 0)
        return lacks(run, offsetof(sc_job, tokens), "15T",
                     "the tokens of the run are not given", err);
    if (money && isnan(sc_job_rent(job, hw)) && !job->purchase)
        return lacks(money, offsetof(sc_job, price), "2USD/h",
                     "no price is given", err);
    if (goal == SC_GOAL_ENERGY && !(hw->device->power_w > 0))
        return sc_error(err, SC_EINPUT, SC_C_MISSING, sc_pos_file(of[goal]),
                        "choose another objective",
                        "the power of %s is not known", hw->device->name);
    return SC_OK;
}

bool sc_search_goal_predicted(sc_search_goal goal, const sc_job *job)
{
    bool money = goal == SC_GOAL_COST || goal == SC_GOAL_TOKENS_PER_USD;
    if (goal == SC_GOAL_ENERGY) return true;
    if (money && job->purchase) return true;
    return sc_job_fails(job) && (money || goal == SC_GOAL_DAYS);
}

double sc_search_goal_score(sc_search_goal goal, const sc_job *job,
                            const sc_prediction *p)
{
    bool whole = job->tokens > 0;
    double tokens = whole ? (double)job->tokens : sc_search_tokens(&p->run);
    double usd = whole ? p->whole_run.cost_usd : p->cost_usd_per_step;
    switch (goal) {
    case SC_GOAL_COST: return usd;
    case SC_GOAL_TOKENS_PER_USD: return usd / tokens;
    case SC_GOAL_DAYS: return p->whole_run.days;
    case SC_GOAL_ENERGY:
        return whole ? p->whole_run.energy_j : p->energy_j_per_step;
    case SC_GOAL_STEP_TIME:
    case SC_N_GOALS: break;
    }
    return p->step_time_s;
}

sc_status sc_search_goal_weight(sc_search_goal goal, const sc_job *job,
                                const sc_run *run, sc_arena *a, double *out,
                                sc_err *err)
{
    const double day = 86400;
    double tokens = sc_search_tokens(run), usd = 0;
    double steps = job->tokens > 0 ? (double)job->tokens / tokens : 1;
    if (goal == SC_GOAL_COST || goal == SC_GOAL_TOKENS_PER_USD)
        SC_TRY(sc_predict_least_usd(job, run, a, &usd, err));
    *out = 1;
    switch (goal) {
    case SC_GOAL_COST: *out = usd * steps; break;
    case SC_GOAL_ENERGY: *out = sc_predict_least_watts(run) * steps; break;
    case SC_GOAL_TOKENS_PER_USD: *out = usd / tokens; break;
    case SC_GOAL_DAYS: *out = steps / day; break;
    case SC_GOAL_STEP_TIME:
    case SC_N_GOALS: break;
    }
    return SC_OK;
}

double sc_search_goal_value(sc_search_goal goal, double score)
{
    return goal == SC_GOAL_TOKENS_PER_USD ? 1 / score : score;
}
