/* SPDX-License-Identifier: Apache-2.0 */
/*
 * operators.c - predicts a run with all choices made by the network of its
 * operators.
 */
#include "predict/internal.h"

#include <math.h>

sc_status sc_predict_chosen(const sc_job *job, const sc_run *run, sc_arena *a,
                            sc_prediction *out, sc_err *err)
{
    predict_memo memo = {
        .a = a, .model = run->model, .sw = run->sw, .hw = run->hw};
    return predict_chosen(job, run, &memo, NULL, a, out, err);
}

/* Prices of segments do not include rules between kernels and exchanges,
 * prices of single operators, or pools of devices. */
bool predict_walks(const sc_job *job)
{
    const sc_strategy *s = job->tree;
    return job->compat || job->gamma >= 0 || job->op_times ||
           (s && (!isnan(s->gamma) || s->n_pools > 0));
}

bool predict_apart(const sc_job *job, const sc_model *model)
{
    return predict_by_net(job, model) || predict_walks(job) ||
           job->checkpoint_async || job->no_symmetry;
}

sc_status predict_searchable(const sc_job *job, const sc_model *model,
                             sc_arena *a, sc_err *err)
{
    if (job->compat)
        return sc_error(err, SC_EINPUT, SC_C_UNSUPPORTED,
                        sc_pos_option(a, "--compat", job->compat),
                        "use `stepcast predict` for each choice",
                        "choices of a compatible mode are not searched");
    if (job->gbs || !predict_by_net(job, model)) return SC_OK;
    return sc_error(err, SC_EINPUT, SC_C_MISSING, sc_pos_file("--global-batch"),
                    "for example --global-batch 256",
                    "without it, steps of %.60s have different batches",
                    model->name);
}

sc_status predict_chosen(const sc_job *job, const sc_run *run,
                         predict_memo *memo, const sc_net_step *known,
                         sc_arena *a, sc_prediction *out, sc_err *err)
{
    sc_strategy *tree = SC_NEW(a, sc_strategy);
    if (!tree) return sc_error_nomem(err);
    SC_TRY(sc_strategy_of_run(run, a, tree, err));
    if (run->strategy) { /* pools of replicas; pools of stages need rules */
        tree->pool = run->strategy->pool;
        tree->n_pools = run->strategy->n_pools;
    }
    sc_job own;
    sc_job_init(&own);
    own.model = job->model;
    own.cluster = job->cluster;
    own.software = run->sw->name;
    own.gbs = (int64_t)run->gbs;
    own.mbs = (int64_t)run->mbs;
    own.seq = (int64_t)run->seq;
    own.precision = (int)run->recipe;
    own.opts = run->opts;
    own.compress = job->compress;
    own.checkpoint_every = (int64_t)run->checkpoint_every;
    own.checkpoint_async = run->checkpoint_async;
    own.price = job->price;
    own.failure_table = job->failure_table;
    own.each = job->each;
    own.brief = job->brief;
    own.engine = job->engine;
    own.optimizer = job->optimizer;
    own.gamma = job->gamma;
    own.op_times = job->op_times;
    own.fidelity = job->fidelity;
    own.progress = job->progress;
    own.no_symmetry = job->no_symmetry;
    own.schedule_file = job->schedule_file;
    own.tree = tree;
    return predict_net(&own, run, memo, known, a, out, err);
}
