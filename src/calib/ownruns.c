/* SPDX-License-Identifier: Apache-2.0 */
/* ownruns.c - `calibrate --runs`: own measured runs as a profile of levels. */
#include "calib/effects.h"

#include <math.h>
#include <string.h>

typedef struct own {
    const calib_run *run;
    sc_anchor anchor;
} own;

typedef struct study {
    own *o; /* [n] runs with a measured and a predicted time */
    uint32_t n, n_rows;
    sc_arena *a, *scratch;
    const sc_progress *progress;
    const char *reason; /* why the first row that is left out is; or NULL */
    sc_pos at;          /* of that row */
} study;

static sc_status predict(const own *o, const sc_cost *cost, sc_arena *scratch,
                         sc_prediction *p, sc_err *err)
{
    const calib_run *r = o->run;
    sc_job job = r->job;
    job.engine = SC_ENGINE_FAST;
    job.brief = true;
    sc_arena_reset(scratch);
    return sc_predict(&job, r->hw, r->model, r->sw, cost, scratch, p, err);
}

static void skipped(study *x, const calib_run *r, const char *reason,
                    sc_text *report)
{
    sc_text_add(report, "%-28s  skipped: %s\n", r->id, reason);
    if (x->reason) return;
    x->reason = reason;
    x->at = (sc_pos){r->pos.file, r->pos.line, 1};
}

/* Makes an anchor of a run, unless it can't be predicted. */
static sc_status add(study *x, const calib_run *run, const sc_cost *base,
                     sc_text *report, sc_err *err)
{
    own *o = &x->o[x->n];
    sc_prediction p;
    sc_err why;
    const char *reason = run->reason ? run->reason : run->unscored;
    sc_err_init(&why);
    *o = (own){.run = run};
    if (!reason) {
        sc_status s = predict(o, base, x->scratch, &p, &why);
        SC_TRY(calib_row_reason(s, &why, x->a, &reason, err));
    }
    if (reason) {
        skipped(x, run, reason, report);
        return SC_OK;
    }
    for (uint32_t i = 0; i < run->n_warnings; i++)
        sc_text_add(report, "%-28s  warning: %s\n", run->id, run->warnings[i]);
    SC_TRY(sc_anchor_of(&p, run->id, run->measured, 0, x->scratch, &o->anchor,
                        err));
    SC_TRY(calib_keep_traits(&o->anchor.traits, x->a, &o->anchor.traits, err));
    x->n++;
    sc_progress_tell(x->progress, "runs predicted", x->n, x->n_rows);
    return SC_OK;
}

static sc_status again(study *x, const sc_cost *moved, sc_anchors *s,
                       sc_err *err)
{
    for (uint32_t i = 0; i < x->n; i++) {
        sc_prediction p;
        SC_TRY(predict(&x->o[i], moved, x->scratch, &p, err));
        sc_anchors_predicted(s, x->o[i].anchor.traits.key, p.step_time_s);
    }
    return SC_OK;
}

static void describe(const study *x, const sc_anchors *s, sc_text *out)
{
    sc_text_add(out, "%-28s%12s%12s%12s%8s\n", "run", "measured s",
                "predicted s", "with levels", "z");
    for (uint32_t i = 0; i < x->n; i++) {
        const sc_anchor *o = &x->o[i].anchor, *a = NULL;
        for (uint32_t k = 0; k < s->n; k++)
            if (s->a[k].traits.key == o->traits.key) a = &s->a[k];
        if (!a) continue;
        double with = a->moved_s * exp(sc_anchors_level_of(s, &a->traits));
        sc_text_add(out, "%-28s%12.4f%12.4f%12.4f%+8.1f%s\n", o->id,
                    o->measured_s, o->predicted_s, with, a->z,
                    fabs(a->z) > SC_ANCHOR_FAR
                        ? "  far from what is expected: its effect on other "
                          "jobs is bounded"
                        : "");
    }
}

static sc_status fit(study *x, const sc_cost *base, sc_anchors *s,
                     sc_text *report, sc_err *err)
{
    sc_cost moved = *base;
    sc_anchor *list = SC_NEW_N(x->a, sc_anchor, (size_t)x->n + 1);
    if (!list) return sc_error_nomem(err);
    if (x->n == 0)
        return sc_error(err, SC_EINPUT, SC_C_MISSING, x->at,
                        "a row needs iter_s and quality A or B",
                        "none of the %u rows can be used, the first because: "
                        "%s",
                        x->n_rows, x->reason ? x->reason : "there is none");
    for (uint32_t i = 0; i < x->n; i++) list[i] = x->o[i].anchor;
    SC_TRY(sc_anchors_fit(list, x->n, base, base->cov, x->a, s, err));
    sc_anchors_move(s, &moved);
    SC_TRY(again(x, &moved, s, err));
    SC_TRY(sc_anchors_level(s, x->a, err));
    describe(x, s, report);
    return SC_OK;
}

sc_status sc_calibrate_runs(const sc_csv *table, const sc_cost *base,
                            const sc_progress *progress, sc_arena *a,
                            sc_anchors *out, sc_text *report, sc_err *err)
{
    calib_run *run = NULL;
    sc_arena scratch;
    study x = {.a = a, .scratch = &scratch, .progress = progress};
    SC_TRY(calib_runs_read(table, 1, a, &run, &x.n_rows, err));
    x.o = SC_NEW_N(a, own, (size_t)x.n_rows + 1);
    if (!x.o) return sc_error_nomem(err);
    sc_arena_init(&scratch, a->limit);
    sc_status s = SC_OK;
    for (uint32_t i = 0; i < x.n_rows && s == SC_OK; i++)
        s = add(&x, &run[i], base, report, err);
    if (s == SC_OK) s = fit(&x, base, out, report, err);
    sc_arena_free(&scratch);
    return s;
}
