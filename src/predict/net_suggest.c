/* SPDX-License-Identifier: Apache-2.0 */
/* net_suggest.c - suggests the three smallest changes that make a network's
 * step fit, or clearly faster. */
#include "predict/net.h"

#include <math.h>

typedef struct variant {
    const char *text;
    bool micro; /* append the micro-batch to the text */
    int64_t zero;
    int recompute;
    uint32_t more_ga; /* factor on the number of micro-batches */
} variant;

/* Ordered from the smallest change to the largest. */
static const variant variants[] = {
    {"--zero 1", false, 1, -1, 1},
    {"--micro-batch", true, -1, -1, 2},
    {"--zero 3", false, 3, -1, 1},
    {"--recompute full", false, -1, SC_RC_FULL, 1},
    {"--zero 3 --recompute full", false, 3, SC_RC_FULL, 1},
    {"--zero 3 --recompute full --micro-batch", true, 3, SC_RC_FULL, 4},
};

static double peak_of(const sc_net_step *s)
{
    double most = 0;
    for (uint32_t d = 0; d < s->plan.step.n_classes; d++)
        most = fmax(most, predict_net_peak(s, d));
    return most;
}

static bool changes(const net_prediction *x, const variant *v,
                    const sc_net_step *now)
{
    int64_t zero = x->tree.zero > 0 ? x->tree.zero : 0;
    if (now->job->micro % v->more_ga != 0) return false;
    if (v->zero >= 0 && v->zero <= zero) return false;
    if (v->zero >= 0 && sc_strategy_replicas(&x->tree) < 2) return false;
    return v->recompute < 0 || x->tree.recompute != v->recompute;
}

static sc_status try_one(net_prediction *x, const variant *v,
                         const sc_net_step *now, sc_prediction *p, sc_err *err)
{
    sc_net_step s;
    sc_err why;
    sc_strategy keep = x->tree;
    uint64_t micro = now->job->micro / v->more_ga;
    if (v->zero >= 0) x->tree.zero = v->zero;
    if (v->recompute >= 0) x->tree.recompute = v->recompute;
    sc_err_init(&why);
    sc_status st =
        predict_net_run(x, micro, now->job->ga * v->more_ga, x->a, &s, &why);
    x->tree = keep;
    if (st != SC_OK) return st == SC_ENOMEM ? sc_error_nomem(err) : SC_OK;
    double t = p->step_time_s + exp(p->level) * sc_time_to_s(s.run.makespan) -
               exp(p->level) * sc_time_to_s(now->run.makespan);
    bool fits = predict_net_fits(&s);
    if (!fits || (p->fits && t > PREDICT_FASTER * p->step_time_s)) return SC_OK;
    const char *text = v->micro ? sc_sprintf(x->a, "%s %llu", v->text,
                                             (unsigned long long)micro)
                                : v->text;
    if (!text) return sc_error_nomem(err);
    p->suggestion[p->n_suggestions++] =
        (sc_suggestion){text, t, peak_of(&s), fits};
    return SC_OK;
}

sc_status predict_net_suggest(net_prediction *x, const sc_net_step *now,
                              sc_prediction *p, sc_err *err)
{
    /* An option can't change what a file sets. */
    if (x->job->tree || x->job->compat) return SC_OK;
    for (size_t i = 0; i < SC_COUNT(variants); i++) {
        if (p->n_suggestions == SC_COUNT(p->suggestion)) break;
        if (!changes(x, &variants[i], now)) continue;
        SC_TRY(try_one(x, &variants[i], now, p, err));
    }
    return SC_OK;
}
