/* SPDX-License-Identifier: Apache-2.0 */
/* The fitter on data made from known parameters. */
#include "calib/calib.h"
#include "unit.h"

#include <math.h>

#define assert_near(a, b, eps) assert_true(fabs((a) - (b)) <= (eps))

enum { ROWS = 120 };

static const sc_param three[] = {SC_P_BASE_SIMPLE_AMPERE, SC_P_HOP_SIMPLE,
                                 SC_P_NVLS_BASE};

/* Seconds of row i: base + steps * hop, the third where i is odd. */
static double linear(const sc_cost *c, int i)
{
    double t = c->p[three[0]] + (1 + i % 7) * c->p[three[1]];
    return i % 2 ? t + c->p[three[2]] : t;
}

static sc_status linear_model(void *ctx, const sc_cost *c, double *log_pred,
                              sc_err *err)
{
    (void)ctx;
    (void)err;
    for (int i = 0; i < ROWS; i++) log_pred[i] = log(linear(c, i));
    return SC_OK;
}

/* The same rounded to whole microseconds: jumps everywhere. */
static sc_status jumpy_model(void *ctx, const sc_cost *c, double *log_pred,
                             sc_err *err)
{
    (void)ctx;
    (void)err;
    for (int i = 0; i < ROWS; i++)
        log_pred[i] = log(1e-6 * floor(1e6 * linear(c, i) + 0.5));
    return SC_OK;
}

/* Flat far from the truth: an undamped step leaps past it to the bound. */
static sc_status flat_model(void *ctx, const sc_cost *c, double *log_pred,
                            sc_err *err)
{
    (void)err;
    const sc_cost *truth = ctx;
    double x = log(c->p[three[1]] / truth->p[three[1]]);
    for (int i = 0; i < ROWS; i++) log_pred[i] = atan(5 * x);
    return SC_OK;
}

static sc_status nan_model(void *ctx, const sc_cost *c, double *log_pred,
                           sc_err *err)
{
    (void)ctx;
    (void)c;
    (void)err;
    for (int i = 0; i < ROWS; i++) log_pred[i] = NAN;
    return SC_OK;
}

typedef struct setup {
    sc_arena a;
    sc_err err;
    sc_cost truth, c;
    sc_fit_result res;
    double log_meas[ROWS], weight[ROWS];
    sc_fit_problem p;
} setup;

static void make(setup *s, sc_fit_model model)
{
    sc_arena_init(&s->a, 0);
    sc_err_init(&s->err);
    sc_cost_centres(&s->c);
    s->truth = s->c;
    s->truth.p[three[0]] *= 1.4;
    s->truth.p[three[1]] *= 0.7;
    s->truth.p[three[2]] *= 1.2;
    for (int i = 0; i < ROWS; i++) {
        s->log_meas[i] = log(linear(&s->truth, i));
        s->weight[i] = 1;
    }
    s->p = (sc_fit_problem){.n_rows = ROWS,
                            .n_free = 3,
                            .free = three,
                            .log_meas = s->log_meas,
                            .weight = s->weight,
                            .soft = 0.01,
                            .model = model};
}

static void fit(setup *s)
{
    assert_int_equal(sc_fit(&s->p, &s->c, &s->res, &s->a, &s->err), SC_OK);
    assert_true(s->res.cost_after <= s->res.cost_before);
}

static double miss(const setup *s, int j)
{
    return fabs(s->c.p[three[j]] / s->truth.p[three[j]] - 1);
}

static void recovers(void **state)
{
    (void)state;
    static setup s;
    make(&s, linear_model);
    fit(&s);
    for (int j = 0; j < 3; j++) {
        assert_true(miss(&s, j) < 0.01);
        assert_true(s.res.se_log[three[j]] > 0);
        assert_true(s.res.se_log[three[j]] < 0.05);
        assert_true(s.res.rows[three[j]] > 20);
        assert_true(s.res.value[three[j]] == s.c.p[three[j]]);
    }
    assert_true(s.c.p[SC_P_NVLS] == s.truth.p[SC_P_NVLS]);
    sc_arena_free(&s.a);
}

static void is_deterministic(void **state)
{
    (void)state;
    static setup s, t;
    make(&s, linear_model);
    make(&t, linear_model);
    fit(&s);
    fit(&t);
    for (int j = 0; j < 3; j++) assert_true(s.c.p[three[j]] == t.c.p[three[j]]);
    sc_arena_free(&s.a);
    sc_arena_free(&t.a);
}

static void survives_jumps(void **state)
{
    (void)state;
    static setup s;
    make(&s, jumpy_model);
    fit(&s);
    for (int j = 0; j < 3; j++) assert_true(miss(&s, j) < 0.06);
    sc_arena_free(&s.a);
}

static void damps_its_steps(void **state)
{
    (void)state;
    static setup s;
    make(&s, flat_model);
    s.truth.p[three[1]] = s.c.p[three[1]] * 0.5;
    for (int i = 0; i < ROWS; i++) s.log_meas[i] = 0;
    s.p.free = &three[1];
    s.p.n_free = 1;
    s.p.prior_weight = 1e-6;
    s.p.ctx = &s.truth;
    fit(&s);
    assert_true(miss(&s, 1) < 0.001);
    sc_arena_free(&s.a);
}

static void outliers_weigh_little(void **state)
{
    (void)state;
    static setup s;
    make(&s, linear_model);
    for (int i = 0; i < ROWS; i += 10) s.log_meas[i] += 1.5;
    fit(&s);
    for (int j = 0; j < 3; j++) assert_true(miss(&s, j) < 0.04);
    sc_arena_free(&s.a);
}

/* No row speaks of nvls_base: the prior keeps it at its centre. */
static void prior_holds(void **state)
{
    (void)state;
    static setup s;
    make(&s, linear_model);
    for (int i = 1; i < ROWS; i += 2) s.weight[i] = 0;
    s.c.p[three[2]] *= 1.5;
    fit(&s);
    sc_param p = three[2];
    assert_near(s.c.p[p] / sc_params[p].centre, 1, 1e-6);
    assert_near(s.res.se_log[p], sc_params[p].sd, 1e-6);
    assert_true(s.res.rows[p] == 0);
    assert_true(miss(&s, 0) < 0.01);
    sc_arena_free(&s.a);
}

static void bounds_hold(void **state)
{
    (void)state;
    static setup s;
    make(&s, linear_model);
    for (int i = 0; i < ROWS; i++) s.log_meas[i] += 6;
    fit(&s);
    for (int j = 0; j < 3; j++)
        assert_true(s.c.p[three[j]] <= sc_params[three[j]].hi * (1 + 1e-12));
    assert_near(s.c.p[three[1]] / sc_params[three[1]].hi, 1, 1e-9);
    sc_arena_free(&s.a);
}

static void refuses(void **state)
{
    (void)state;
    static setup s;
    make(&s, linear_model);
    const sc_param fixed[] = {SC_P_NVLS_CHANNELS};
    const sc_cost before = s.c;
    s.p.free = fixed;
    s.p.n_free = 1;
    assert_int_not_equal(sc_fit(&s.p, &s.c, &s.res, &s.a, &s.err), SC_OK);
    s.p.free = three;
    s.p.n_free = 3;
    s.p.n_rows = 0;
    assert_int_equal(sc_fit(&s.p, &s.c, &s.res, &s.a, &s.err), SC_EINPUT);
    s.p.n_rows = ROWS;
    s.p.model = nan_model;
    assert_int_not_equal(sc_fit(&s.p, &s.c, &s.res, &s.a, &s.err), SC_OK);
    assert_memory_equal(before.p, s.c.p, sizeof(before.p));
    sc_arena_free(&s.a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recovers),
        cmocka_unit_test(is_deterministic),
        cmocka_unit_test(survives_jumps),
        cmocka_unit_test(damps_its_steps),
        cmocka_unit_test(outliers_weigh_little),
        cmocka_unit_test(prior_holds),
        cmocka_unit_test(bounds_hold),
        cmocka_unit_test(refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
