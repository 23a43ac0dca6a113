/* SPDX-License-Identifier: Apache-2.0 */
/* points.c - evaluates jobs that leave nothing open. */
#include "predict/predict_points.h"
#include "predict/space_mesh.h"

#include <math.h>
#include <string.h>

struct sc_points {
    predict_memo *memo;
    sc_job job;     /* with its samples */
    sc_run checked; /* model and program before the job changes them */
    sc_run base;
    search_space given;
    predict_notes unread;
    /* the job that was filled last */
    predict_shape shape;
    predict_eval eval;
    sc_arena_mark mark;
    uint32_t known; /* parts of the memo before it */
    bool filled;
};

/* Keys that change the division of a job and nothing that jobs share. */
static const char *const shared[] = {
    "tp", "pp",   "dp",        "cp",       "ep",      "vp",   "micro-batch",
    "sp", "fsdp", "recompute", "schedule", "offload", "hsdp", NULL};

bool sc_points_shares(const sc_software *sw, const char *key)
{
    if (strcmp(key, "zero") == 0) return !sw->zero1;
    for (const char *const *k = shared; *k; k++)
        if (strcmp(*k, key) == 0) return true;
    return false;
}

static sc_status refused(const char *what, const char *name, sc_err *err)
{
    return sc_error(err, SC_EINPUT, SC_C_UNSUPPORTED, sc_pos_file("--model"),
                    "use `stepcast predict` for each choice",
                    "%.60s is %s, whose choices are not searched", name, what);
}

sc_status sc_points_new(const sc_job *job, const sc_inputs *in, sc_arena *a,
                        sc_points **out, sc_err *err)
{
    sc_points *x = SC_NEW(a, sc_points);
    if (!x) return sc_error_nomem(err);
    sc_job *own = &x->job;
    *own = *job;
    x->unread.arena = a;
    x->base = (sc_run){
        .hw = in->hw, .model = in->model, .sw = in->sw, .cost = in->cost};
    if (predict_by_net(job, in->model))
        return refused("a network of operators", in->model->name, err);
    SC_TRY(predict_samples(own, a, &x->base, err));
    x->checked = x->base;
    SC_TRY(predict_open(own, a, &x->base, &x->memo, err));
    SC_TRY(predict_base(own, a, &x->base, &x->unread, err));
    x->given = (search_space){
        .law = predict_law_of(own, x->base.sw), .base = x->base, .a = a};
    *out = x;
    return SC_OK;
}

const sc_run *sc_points_run(const sc_points *x)
{
    return &x->base;
}

const sc_law *sc_points_law(const sc_points *x)
{
    return &x->given.law;
}

sc_status sc_points_least(sc_points *x, double *seconds, sc_err *err)
{
    sc_run r = x->base;
    double flops = 0;
    uint32_t n = r.model->n_layers;
    *seconds = 0;
    if (r.hw->n_groups > 0) return SC_OK;
    for (uint32_t ax = 0; ax < SC_N_AX; ax++) r.size[ax] = 1;
    r.mbs = r.ga = 1;
    r.recompute = SC_RC_NONE;
    r.rc_first = r.rc_group = 0;
    sc_segment *b = SC_NEW_N(x->memo->a, sc_segment, n);
    if (!b) return sc_error_nomem(err);
    SC_TRY(sc_segment_passes(&r, &x->memo->networks, x->memo->a, b, err));
    for (uint32_t l = 0; l < n; l++)
        flops += r.model->layer[l].repeat * b[l].flops;
    *seconds = flops * (double)r.gbs / r.hw->n_devices /
               predict_best_peak(r.hw->device, r.precision);
    return SC_OK;
}

/* Frees what the last job needed, unless the memo grew since. */
static void forget(sc_points *x)
{
    if (x->filled && x->memo->parts.n == x->known)
        sc_arena_restore(x->memo->a, x->mark);
    x->filled = false;
}

sc_status sc_points_memory(sc_points *x, const sc_job *job, double most_full,
                           sc_point *out, sc_err *err)
{
    sc_run run;
    sc_job own = *job;
    search_space *g = &x->given;
    forget(x);
    own.seq = x->job.seq;
    own.mean_tokens = x->job.mean_tokens;
    own.document_tokens = x->job.document_tokens;
    SC_TRY(predict_check(&own, x->checked.hw, x->checked.model, x->checked.sw,
                         err));
    g->job = &own;
    g->err = err;
    sc_err_init(&g->refused);
    g->base.schedule = job->schedule > SC_SCH_INTERLEAVED && !g->base.order
                           ? (sc_schedule)job->schedule
                           : x->base.schedule;
    SC_TRY(predict_given(g, &run));
    x->mark = sc_arena_save(x->memo->a);
    x->known = x->memo->parts.n;
    x->filled = true;
    SC_TRY(predict_fill(&run, most_full, x->memo, &x->shape, &x->eval, err));
    *out = (sc_point){.peak = x->eval.peak,
                      .full = x->eval.full,
                      .fits = x->eval.fits && !x->shape.enough};
    return SC_OK;
}

sc_status sc_points_step(sc_points *x, double beat_s, sc_point *inout,
                         sc_err *err)
{
    SC_TRY(predict_compose(&x->shape, beat_s, x->memo, &x->eval, err));
    inout->step_s = x->eval.step_s;
    inout->slower = x->eval.slower;
    return SC_OK;
}
