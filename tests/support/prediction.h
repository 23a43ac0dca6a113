/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prediction.h - what the tests of prices, plans and predictions have in
 * common: memory, errors and parameters that are new for each test, and runs
 * and segments made of them.
 *
 *   cmocka_unit_test_setup_teardown(overlaps, set_up, tear_down)
 */
#ifndef TESTS_PREDICTION_H
#define TESTS_PREDICTION_H

#include "predict/predict.h"
#include "unit.h"

#include <math.h>

static struct {
    sc_arena a;
    sc_err err;
    sc_cost cost;   /* the parameters before any fit */
    sc_software sw; /* a copy, where a test changes what a program does */
    sc_job job;
    sc_inputs in;
    sc_prediction p;
} f;

static inline int set_up(void **state)
{
    (void)state;
    sc_arena_init(&f.a, 0);
    sc_err_init(&f.err);
    sc_cost_centres(&f.cost);
    sc_job_init(&f.job);
    return 0;
}

static inline int tear_down(void **state)
{
    (void)state;
    sc_arena_free(&f.a);
    return 0;
}

/* The machine, the model and the software of `r`; NULL: the default one. */
static inline void load_run(sc_run *r, const char *cluster, const char *model,
                            const char *software)
{
    sc_pos at = sc_pos_none();
    r->cost = &f.cost;
    assert_int_equal(sc_hw_build(cluster, at, &f.a, &r->hw, &f.err), SC_OK);
    assert_int_equal(sc_model_load(model, at, &f.a, &r->model, &f.err), SC_OK);
    assert_int_equal(sc_software_find(software, NULL, at, &f.a, &r->sw, &f.err),
                     SC_OK);
}

/* A run of two samples of 2,048 tokens in bf16, split over tp alone. */
static inline sc_run tp_run(const char *cluster, const char *model,
                            const char *software, uint32_t tp)
{
    sc_run r = {.size = {1, 1, 1, 1, tp},
                .vpp = 1,
                .mbs = 2,
                .ga = 1,
                .gbs = 2,
                .seq = 2048,
                .precision = SC_BF16,
                .recipe = SC_RECIPE_BF16,
                .sp = tp > 1};
    load_run(&r, cluster, model, software);
    return r;
}

/* The plan of a run, and one of its segments. */
static inline sc_plan built(const sc_run *r)
{
    sc_plan p;
    sc_status s = sc_plan_build(r, &f.a, &p, &f.err);
    if (s != SC_OK) print_message("%s\n", f.err.d[0].msg);
    assert_int_equal(s, SC_OK);
    return p;
}

static inline sc_segment segment(const sc_run *r, uint32_t layer)
{
    sc_plan p = built(r);
    sc_segment *all = NULL;
    assert_int_equal(sc_segments_price(&p, &f.a, &all, &f.err), SC_OK);
    return all[layer];
}

/* A run of as many replicas as the machine has devices; its software is the
 * copy in f.sw, for tests to change. */
static inline sc_run replicas_of(const char *model, const char *cluster,
                                 const char *software)
{
    sc_run r = {.size = {1, 1, 1, 1, 1, 1},
                .vpp = 1,
                .mbs = 1,
                .ga = 1,
                .seq = 1024,
                .precision = SC_BF16,
                .recipe = SC_RECIPE_BF16};
    load_run(&r, cluster, model, software);
    f.sw = *r.sw;
    r.sw = &f.sw;
    r.size[SC_AX_DP] = r.hw->n_devices;
    r.gbs = r.hw->n_devices;
    return r;
}

/* The plan of a run and all of its segments. */
static inline sc_plan priced(const sc_run *r, sc_segment **segments)
{
    sc_plan p = built(r);
    assert_int_equal(sc_segments_price(&p, &f.a, segments, &f.err), SC_OK);
    return p;
}

static inline double fast_s(const sc_plan *p, const sc_segment *b)
{
    double s = 0;
    assert_int_equal(sc_predict_fast(p, b, &f.a, &s, &f.err), SC_OK);
    return s;
}

/* What goes over ranks of these axes: bytes, and by which collective. */
static inline double bytes_over(const sc_exchange *x, uint32_t axes)
{
    const sc_moved *m = sc_exchange_over(x, axes);
    return m ? m->bytes : 0;
}

static inline sc_coll coll_over(const sc_exchange *x, uint32_t axes)
{
    const sc_moved *m = sc_exchange_over(x, axes);
    return m ? m->coll : SC_ALL_REDUCE;
}

/* The step of a run by the network of its operators. */
static inline double network_s(const sc_run *r)
{
    sc_job job;
    sc_prediction p;
    sc_job_init(&job);
    job.brief = true;
    sc_status s = sc_predict_chosen(&job, r, &f.a, &p, &f.err);
    if (s != SC_OK) print_message("%s\n", f.err.d[0].msg);
    assert_int_equal(s, SC_OK);
    return p.step_time_s;
}

static inline void near_by(double got, double want, double share)
{
    if (!(fabs(got - want) <= share * fabs(want)))
        fail_msg("%.12g instead of %.12g", got, want);
}

static inline void near(double got, double want)
{
    near_by(got, want, 1e-9);
}

#endif
