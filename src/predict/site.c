/* SPDX-License-Identifier: Apache-2.0 */
/* site.c - the step of a prediction on some nodes of a larger machine. */
#include "predict/net.h"
#include "predict/predict_site.h"

sc_status sc_predict_site(const sc_job *job, const sc_prediction *p,
                          const sc_hw *apart, const sc_net_site *site,
                          sc_arena *a, sc_site_step *out, sc_err *err)
{
    sc_site_step s = {.rest = 0};
    sc_net_plan plan;
    SC_TRY(predict_refuse_site(job, p->net->job->strategy->n_pools > 0, err));
    sc_net_run *run = SC_NEW(a, sc_net_run);
    if (!run) return sc_error_nomem(err);
    *run = *p->net->job;
    run->hw = apart;
    run->site = site;
    run->timed = true;
    run->kept = NULL; /* prices of another machine */
    if (!(run->links = sc_net_plan_links(a))) return sc_error_nomem(err);
    SC_TRY(sc_net_plan_compile(run, a, &plan, err));
    SC_TRY(sc_net_plan_lower(&plan, a, err));
    s.graph = plan.step;
    predict_net_opts(job, &plan, &s.opts);
    s.opts.hw = site->hw;
    s.opts.slow_above = true;
    double rest = p->step_time_s - sc_time_to_s(p->net->run.makespan);
    if (rest > 0) s.rest = sc_time_from_s(rest);
    *out = s;
    return SC_OK;
}
