/* SPDX-License-Identifier: Apache-2.0 */
/* kernellevel.c - levels of a device from a few kernels measured on it. */
#include "base/number.h"
#include "calib/calib.h"
#include "calib/fitfile.h"
#include "calib/kernelfit.h"
#include "cost/cost_alone.h"

#include <math.h>
#include <string.h>

/* Standard deviations of the logarithm: of a device around its class (B200
 * beside GB200, and FP8 beside 16 bits, differ by 5 to 15 %), and of one kernel
 * around its form (kernels.yml, `error`). */
#define DEVICE_SD 0.2
#define KERNEL_SD 0.08

typedef struct levels {
    kernelfit_rows rows;
    sc_cost cost; /* burst, built in */
    sc_arena *a;
    sc_text *yml, *report;
    uint32_t n; /* levels in `yml` */
} levels;

static double log_ratio(const levels *v, const kernelfit_sample *s)
{
    double t = 0;
    for (uint32_t j = 0; j < s->n; j++) {
        const sc_form_use *u = &s->use[j];
        const sc_form *f = sc_form_of(v->cost.forms, u->fit, u->kind);
        t += sc_form_physical(&f->c, u) * sc_form_factor(&f->table, u->at);
    }
    return log(s->seconds / t);
}

#define ROUNDS 8

double kernelfit_level(const double *log_ratio_, uint32_t n)
{
    double mean = 0;
    for (int round = 0; round < ROUNDS; round++) {
        double sum = 0, weight = 0;
        for (uint32_t i = 0; i < n; i++) {
            double r = log_ratio_[i];
            double w = round == 0 ? 1 : kernelfit_robust(r - mean);
            sum += w * r;
            weight += w;
        }
        double prior = KERNEL_SD * KERNEL_SD / (DEVICE_SD * DEVICE_SD);
        mean = sum / (weight + prior);
    }
    return mean;
}

static sc_status put_level(levels *v, const sc_device *d, sc_form_kind kind,
                           const double *ratio, uint32_t n, sc_err *err)
{
    char buf[40];
    if (v->n++ == SC_KERNEL_LEVELS)
        return sc_error(err, SC_EINPUT, SC_C_TOO_BIG, sc_pos_none(),
                        "give the tables of fewer devices",
                        "a profile has at most %d levels of kernels",
                        SC_KERNEL_LEVELS);
    /* the range that a profile may have */
    double factor = fmin(fmax(exp(kernelfit_level(ratio, n)), 0.05), 20);
    number_print(factor, 4, buf, sizeof buf);
    sc_text_add(v->yml, "  - {device: %s, kind: %s, factor: %s} # %u rows\n",
                d->name, sc_form_names[kind], buf, n);
    sc_text_add(v->report, "%-20s%-18s%6u rows  %+6.1f %%\n", d->name,
                sc_form_names[kind], n, 100 * (factor - 1));
    return SC_OK;
}

static sc_status level_of(levels *v, const sc_device *d, sc_fit_class fit,
                          sc_form_kind kind, sc_err *err)
{
    kernelfit_sample *s = NULL;
    uint32_t n = 0;
    SC_TRY(kernelfit_samples(&v->rows, fit, kind, d, v->a, &s, &n, err));
    if (n == 0) return SC_OK;
    double *ratio = SC_NEW_N(v->a, double, n);
    if (!ratio) return sc_error_nomem(err);
    for (uint32_t i = 0; i < n; i++) ratio[i] = log_ratio(v, &s[i]);
    return put_level(v, d, kind, ratio, n, err);
}

/* Of kernels alone; the host's part is that of the form. */
static sc_status level_alone(levels *v, const sc_device *d, sc_form_kind kind,
                             sc_err *err)
{
    kernelfit_sample *s = NULL;
    uint32_t n = 0;
    double least;
    SC_TRY(alonefit_samples(&v->rows, d, kind, v->a, &s, &n, &least, err));
    if (n == 0) return SC_OK;
    double *ratio = SC_NEW_N(v->a, double, n);
    if (!ratio) return sc_error_nomem(err);
    for (uint32_t i = 0; i < n; i++)
        ratio[i] = alonefit_log_ratio(&v->cost, d, &s[i], least > 0);
    return put_level(v, d, kind, ratio, n, err);
}

/* True if no earlier row has the same device. */
static bool first_of(const kernelfit_rows *r, uint32_t i)
{
    for (uint32_t j = 0; j < i; j++)
        if (strcmp(r->row[j].device->name, r->row[i].device->name) == 0)
            return false;
    return true;
}

enum { WARNINGS = 16 };

typedef struct warnings {
    const char *text[WARNINGS];
    uint32_t rows[WARNINGS], n;
} warnings;

static void count(const char *text, warnings *w)
{
    uint32_t i = 0;
    while (i < w->n && strcmp(w->text[i], text) != 0) i++;
    if (i == WARNINGS) return;
    if (i == w->n) w->text[w->n++] = text;
    w->rows[i]++;
}

/* What was read as something else. */
static void add_warnings(const kernelfit_rows *r, sc_text *report)
{
    warnings w = {.n = 0};
    for (uint32_t i = 0; i < r->n; i++)
        for (uint32_t k = 0; k < r->row[i].n_warnings; k++)
            count(r->row[i].warning[k], &w);
    for (uint32_t i = 0; i < w.n; i++)
        sc_text_add(report, "%-38s%6u rows  warning: %s\n", "", w.rows[i],
                    w.text[i]);
}

sc_status sc_calibrate_levels(const sc_csv *tables, uint32_t n_tables,
                              const char *from, sc_arena *a, sc_text *yml,
                              sc_text *report, sc_err *err)
{
    levels v = {.a = a, .yml = yml, .report = report};
    SC_TRY(kernelfit_read(tables, n_tables, a, &v.rows, err));
    SC_TRY(sc_cost_builtin(a, &v.cost, err));
    SC_TRY(sc_cost_alone(a, &v.cost, err));
    v.cost.burst = true;
    v.rows.cost = &v.cost;
    sc_text_add(yml, "# A profile for --profile, by `stepcast calibrate "
                     "--kernel-levels`.\n");
    calib_fit_comment(from, yml);
    sc_text_add(yml, "parameters: {}\nkernel_levels:\n");
    for (uint32_t i = 0; i < v.rows.n; i++) {
        if (!first_of(&v.rows, i)) continue;
        const sc_device *d = v.rows.row[i].device;
        for (int fit = 0; fit < (int)SC_N_FIT_CLASSES; fit++)
            for (int kind = 0; kind < SC_FORM_GEMM_FP32; kind++)
                SC_TRY(level_of(&v, d, (sc_fit_class)fit, (sc_form_kind)kind,
                                err));
        for (int kind = SC_FORM_GEMM_FP32; kind < (int)SC_N_FORMS; kind++)
            SC_TRY(level_alone(&v, d, (sc_form_kind)kind, err));
    }
    if (v.n == 0)
        return sc_error(err, SC_EINPUT, SC_C_MISSING, sc_pos_none(),
                        "data/validation/README.md lists the tables",
                        "the tables have no kernel that has a level");
    add_warnings(&v.rows, report);
    return yml->failed || report->failed ? sc_error_nomem(err) : SC_OK;
}
