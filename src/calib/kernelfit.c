/* SPDX-License-Identifier: Apache-2.0 */
/* kernelfit.c - the forms of data/fit/kernels.yml, from tables of kernels. */
#include "calib/kernelfit.h"

#include "base/number.h"
#include "calib/calib.h"
#include "calib/fitfile.h"
#include "calib/kernel_table.h"

#include <math.h>
#include <string.h>

/* A form needs this many rows. */
#define LEAST_ROWS 40

typedef struct fitter {
    kernelfit_rows rows;
    sc_cost cost; /* burst; its forms are those fitted so far */
    sc_forms forms;
    sc_arena *a;
    sc_text *yml, *report;
} fitter;

/* Casts are parts of other rows, and products of attention's, so they are
 * fitted first. */
static const sc_form_kind order[] = {
    SC_FORM_QUANTIZE,         SC_FORM_AMAX,          SC_FORM_GEMM,
    SC_FORM_GEMM_FP8,         SC_FORM_GEMM_BLOCK,    SC_FORM_GEMM_FP4,
    SC_FORM_GEMM_INT8,        SC_FORM_ATTENTION,     SC_FORM_ATTENTION_WINDOW,
    SC_FORM_ATTENTION_LATENT, SC_FORM_ATTENTION_FP8, SC_FORM_GROUPED,
    SC_FORM_GROUPED_FP8,      SC_FORM_GROUPED_BLOCK, SC_FORM_GROUPED_FP4};

/* ---- one form ------------------------------------------------------------------- */

static void frame(const kernelfit_sample *s, uint32_t n, sc_form_table *t)
{
    for (int axis = 0; axis < 3; axis++) {
        double lo = INFINITY, hi = -INFINITY;
        for (uint32_t i = 0; i < n; i++)
            for (uint32_t j = 0; j < s[i].n; j++) {
                lo = fmin(lo, s[i].use[j].at[axis]);
                hi = fmax(hi, s[i].use[j].at[axis]);
            }
        t->first[axis] = (int)floor(lo);
        t->count[axis] = (uint32_t)fmin(32, fmax(1, ceil(hi) - floor(lo) + 1));
    }
}

static uint32_t size_of(const sc_form_table *t)
{
    return t->count[0] * t->count[1] * t->count[2];
}

/* A shape of this size, like the sample's; the weights of experts are `aspect`
 * times as wide as deep. */
static void shape_at(const double at[3], double aspect, sc_form_use *use)
{
    double x[3] = {exp2(at[0]), exp2(at[1]), exp2(at[2])};
    if (sc_form_is_cast(use->kind)) {
        use->bytes = x[0];
    } else if (sc_form_is_rows(use->kind)) {
        use->rows.again *= x[0] / exp2(use->at[0]);
        use->rows.bytes *= x[0] / exp2(use->at[0]);
        use->rows.width = x[1];
    } else if (use->kind == SC_FORM_CONV) {
        sc_form_conv *p = &use->conv;
        p->seconds *= x[0] / p->m * (x[1] / p->n) * (x[2] / p->k);
        p->m = x[0], p->n = x[1], p->k = x[2];
    } else if (sc_form_is_attention(use->kind)) {
        sc_form_attention *p = &use->attention;
        p->queries = p->keys = x[0];
        p->heads = fmax(1, x[1] / ceil(x[0] / 128));
        p->size = p->values = sqrt(x[2]);
        p->bytes = 8 * p->heads * x[0] * p->size;
    } else {
        sc_form_product *p = &use->product;
        bool grouped = p->batch > 1 && !sc_form_is_vector(use->kind);
        double each =
            p->bytes / (p->batch * (p->m * p->k + p->n * p->k + p->m * p->n));
        p->m = x[0];
        p->n = grouped ? x[2] * sqrt(aspect) : x[1];
        p->k = grouped ? x[2] / sqrt(aspect) : x[2];
        if (!sc_form_is_vector(use->kind)) p->batch = grouped ? x[1] : 1;
        p->bytes = each * p->batch * (p->m * p->k + p->n * p->k + p->m * p->n);
    }
}

/* Devices of a class and precisions that use its form differ from those of the
 * tables by about these factors. */
static const struct {
    double flops, bandwidth, aspect;
} variant[] = {{1, 1, 1},     {0.5, 1, 1}, {2, 1, 1}, {1, 1.5, 1},
               {1.5, 1.5, 1}, {1, 1, 0.5}, {1, 1, 2}};

/* The least logarithm by which the physical time rises along `axis` up to each
 * position, whatever the device. */
static void rise_of(const kernelfit_sample *s, uint32_t n, const sc_form *f,
                    int axis, double *rise)
{
    const sc_form_table *t = &f->table;
    uint32_t stride = 1;
    for (int i = 2; i > axis; i--) stride *= t->count[i];
    for (uint32_t i = 0; i < size_of(t); i++) {
        const uint32_t position[3] = {i / t->count[2] / t->count[1],
                                      i / t->count[2] % t->count[1],
                                      i % t->count[2]};
        double at[3], below[3], least = INFINITY;
        for (int k = 0; k < 3; k++) {
            at[k] = t->first[k] + (double)position[k];
            below[k] = at[k] - (k == axis);
        }
        for (size_t v = 0; v < SC_COUNT(variant); v++) {
            sc_form_use here = s[n / 2].use[0], before = here;
            here.on.flops *= variant[v].flops;
            here.on.bandwidth *= variant[v].bandwidth;
            before.on = here.on;
            shape_at(at, variant[v].aspect, &here);
            shape_at(below, variant[v].aspect, &before);
            least = fmin(least, log(sc_form_physical(&f->c, &here) /
                                    sc_form_physical(&f->c, &before)));
        }
        bool first = i / stride % t->count[axis] == 0;
        rise[i] = first ? 0 : rise[i - stride] + fmax(0, least);
    }
}

/* How much the samples say at each position. */
static void weigh(const kernelfit_sample *s, uint32_t n, const sc_form_table *t,
                  double *weight)
{
    for (uint32_t i = 0; i < size_of(t); i++) weight[i] = 1e-3;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < s[i].n; j++) {
            uint32_t index[8];
            double w[8];
            sc_form_corners(t, s[i].use[j].at, index, w);
            for (int q = 0; q < 8; q++) weight[index[q]] += w[q];
        }
}

static double error_of(const kernelfit_sample *s, uint32_t n, int fold,
                       const sc_form_table *t, const double *log_)
{
    double sum = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (fold >= 0 && s[i].fold != fold) continue;
        sum += fabs(exp(kernelfit_log_time(&s[i], t, log_)) / s[i].seconds - 1);
    }
    return sum;
}

sc_status kernelfit_form(kernelfit_sample *s, uint32_t n, sc_arena *a,
                         kernelfit_fitted *out, sc_err *err)
{
    sc_form *form = &out->form;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < s[i].n; j++)
            s[i].physical[j] = sc_form_physical(&form->c, &s[i].use[j]);
    frame(s, n, &form->table);
    size_t size = size_of(&form->table);
    double *rise = SC_NEW_N(a, double, 3 * size);
    double *weight = SC_NEW_N(a, double, size);
    out->log = SC_NEW_N(a, double, size);
    if (!rise || !weight || !out->log) return sc_error_nomem(err);
    weigh(s, n, &form->table, weight);
    for (int axis = 0; axis < 3; axis++)
        rise_of(s, n, form, axis, rise + (size_t)axis * size);
    double held = 0;
    for (int fold = KERNELFIT_FOLDS - 1; fold >= -1; fold--) {
        SC_TRY(kernelfit_table(s, n, fold, &form->table, out->log, a, err));
        kernelfit_monotone(&form->table, rise, weight, out->log);
        if (fold >= 0) held += error_of(s, n, fold, &form->table, out->log);
    }
    form->rows = n;
    form->error = held / n;
    out->in_sample = error_of(s, n, -1, &form->table, out->log) / n;
    return SC_OK;
}

/* ---- file -------------------------------------------------------------------------- */

static void put(sc_text *t, const char *key, double v, int digits)
{
    char buf[40];
    number_print(v, digits, buf, sizeof buf);
    sc_text_add(t, "    %s: %s\n", key, buf);
}

void kernelfit_write(const sc_form *f, const double *log_, sc_text *t)
{
    const sc_form_table *table = &f->table;
    sc_text_add(t, "    rows: %u\n", f->rows);
    put(t, "error", f->error, 3);
    put(t, "start", f->c.start, 4);
    put(t, "memory", f->c.memory, 4);
    put(t, "blend", f->c.blend, 4);
    put(t, "depth", f->c.depth, 4);
    put(t, "large", f->c.rate[0], 4);
    put(t, "middle", f->c.rate[1], 4);
    put(t, "small", f->c.rate[2], 4);
    if (f->host > 0) put(t, "host", f->host, 3);
    if (f->least > 0) put(t, "least", f->least, 3);
    if (f->tiles) sc_text_add(t, "    tiles: %u\n", f->tiles);
    if (f->whole[0] > 0) put(t, "deep8", f->whole[0], 3);
    if (f->whole[1] > 0) put(t, "wide8", f->whole[1], 3);
    sc_text_add(t, "    first: [%d, %d, %d]\n    count: [%u, %u, %u]\n",
                table->first[0], table->first[1], table->first[2],
                table->count[0], table->count[1], table->count[2]);
    sc_text_add(t, "    log: >-\n");
    for (uint32_t i = 0; i < size_of(table); i++)
        sc_text_add(t, "%s%.0f",
                    i % 20 ? " "
                    : i    ? "\n      "
                           : "      ",
                    round(1e3 * log_[i]) + 0.0);
    sc_text_add(t, "\n");
}

sc_form *kernelfit_keep(const kernelfit_fitted *v, sc_arena *a)
{
    size_t n = size_of(&v->form.table);
    sc_form *form = SC_NEW(a, sc_form);
    int16_t *log_ = SC_NEW_N(a, int16_t, n);
    if (!form || !log_) return NULL;
    *form = v->form;
    for (size_t i = 0; i < n; i++)
        log_[i] = (int16_t)fmin(fmax(round(1e3 * v->log[i]), -5000), 5000);
    form->table.log = log_;
    return form;
}

static sc_status fit_kind(fitter *f, sc_fit_class fit, sc_form_kind kind,
                          sc_err *err)
{
    kernelfit_sample *s = NULL;
    uint32_t n = 0;
    kernelfit_fitted v = {.form = *sc_form_of(NULL, fit, kind)};
    sc_form_constants near = sc_form_of(&f->forms, fit, kind)->c;
    SC_TRY(kernelfit_samples(&f->rows, fit, kind, NULL, f->a, &s, &n, err));
    if (n < LEAST_ROWS) return SC_OK;
    /* from the stated constants and from those of the nearest kind */
    double loss = kernelfit_constants(s, n, &v.form.c);
    if (kernelfit_constants(s, n, &near) < loss) v.form.c = near;
    SC_TRY(kernelfit_form(s, n, f->a, &v, err));
    sc_text_add(f->yml, "  - class: %s\n    kind: %s\n",
                sc_fit_class_names[fit], sc_form_names[kind]);
    kernelfit_write(&v.form, v.log, f->yml);
    sc_text_add(f->report,
                "%-12s%-18s%6u  in sample %5.1f %%  other shapes %5.1f %%\n",
                sc_fit_class_names[fit], sc_form_names[kind], n,
                100 * v.in_sample, 100 * v.form.error);
    /* Later forms subtract the times of this one as the file will have it. */
    const sc_form *kept = kernelfit_keep(&v, f->a);
    if (!kept) return sc_error_nomem(err);
    f->forms.at[fit][kind] = kept;
    return SC_OK;
}

sc_status sc_calibrate_kernels(const sc_csv *tables, uint32_t n_tables,
                               const char *from, sc_arena *a, sc_text *yml,
                               sc_text *report, sc_err *err)
{
    fitter f = {.a = a, .yml = yml, .report = report};
    SC_TRY(kernelfit_read(tables, n_tables, a, &f.rows, err));
    sc_cost_centres(&f.cost);
    f.cost.burst = true;
    f.rows.cost = &f.cost;
    f.cost.forms = &f.forms;
    /* only for classes without a form of grouped products */
    f.cost.p[SC_P_GROUPED] = 1;
    sc_text_add(yml, "# Only `stepcast calibrate --kernels` writes this "
                     "file.\n");
    calib_fit_comment(from, yml);
    sc_text_add(
        yml,
        "# rows: measured kernels of the fit.  error: mean |predicted / "
        "measured - 1| of shapes\n# that the fit lacks (five folds by shape).  "
        "start in s, rates as fractions of the\n# datasheet's; log: "
        "thousandths "
        "of the logarithm of measured over physical time at\n# powers of two "
        "from 2^first (src/cost/cost_kernel.h).\nkernels:\n");
    for (size_t k = 0; k < SC_COUNT(order); k++)
        for (int fit = 0; fit < (int)SC_N_FIT_CLASSES; fit++)
            SC_TRY(fit_kind(&f, (sc_fit_class)fit, order[k], err));
    if (report->len == 0)
        return sc_error(err, SC_EINPUT, SC_C_MISSING, sc_pos_none(),
                        "give more tables",
                        "no kind of kernel has %d rows on devices of one class",
                        LEAST_ROWS);
    return yml->failed || report->failed ? sc_error_nomem(err) : SC_OK;
}
