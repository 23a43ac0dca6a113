/* SPDX-License-Identifier: Apache-2.0 */
/* kernelfit.h - fits the forms of kernels to tables of measured kernels. */
#ifndef CALIB_KERNELFIT_H
#define CALIB_KERNELFIT_H

#include "calib/kernel_table.h"

#define KERNELFIT_PARTS 4
#define KERNELFIT_FOLDS 5

/* One measured row: the kernels of the kind that is fitted, and the seconds
 * that they took together, without those of other kinds. */
typedef struct kernelfit_sample {
    sc_form_use use[KERNELFIT_PARTS];
    uint32_t n;
    double seconds;
    double weight;
    uint8_t fold; /* rows with the same shape have the same fold */
    double physical[KERNELFIT_PARTS]; /* with the constants of the form */
} kernelfit_sample;

typedef struct kernelfit_rows {
    calib_kernel_row *row; /* [n] of all tables */
    uint32_t n;
    const sc_cost *cost; /* of what the rows contain beside their kernel */
} kernelfit_rows;

/* A fitted form. */
typedef struct kernelfit_fitted {
    sc_form form;
    double in_sample; /* mean |predicted / measured - 1| */
    double *log;      /* [of form.table] corrections, as logarithms */
} kernelfit_fitted;

/* Fits the table of corrections of `out->form`, whose constants are given, with
 * the errors of shapes that a fit lacks. */
sc_status kernelfit_form(kernelfit_sample *s, uint32_t n, sc_arena *a,
                         kernelfit_fitted *out, sc_err *err);
/* Appends everything of an entry of a file of forms behind its kind. */
void kernelfit_write(const sc_form *f, const double *log, sc_text *t);
/* Rounds the corrections as a file has them; NULL: out of memory. */
sc_form *kernelfit_keep(const kernelfit_fitted *v, sc_arena *a);

/* The level of a device from log(measured / predicted) of a few kernels: the
 * posterior mean around 0; kernels far from the others count less. */
double kernelfit_level(const double *log_ratio, uint32_t n);

/* Samples of a kind of kernel alone on one device, with `form` as the form that
 * they are for. Rows that the host launched and that take less than twice the
 * shortest time of their operator say nothing about the kernel and are left
 * out; `least` receives the shortest of those times, 0 if there are none. */
sc_status alonefit_samples(const kernelfit_rows *rows, const sc_device *d,
                           sc_form_kind kind, sc_arena *a,
                           kernelfit_sample **out, uint32_t *n, double *least,
                           sc_err *err);

/* Logarithm of measured over predicted time of such a sample, by the forms of
 * the parameters; `hosted`: the host launched it. */
double alonefit_log_ratio(const sc_cost *c, const sc_device *d,
                          const kernelfit_sample *s, bool hosted);

sc_status kernelfit_read(const sc_csv *tables, uint32_t n_tables, sc_arena *a,
                         kernelfit_rows *out, sc_err *err);

/* The rows whose first kernel has this class and kind (on one device, if it is
 * not NULL), without those that are mostly other kernels. */
sc_status kernelfit_samples(const kernelfit_rows *rows, sc_fit_class fit,
                            sc_form_kind kind, const sc_device *device,
                            sc_arena *a, kernelfit_sample **out, uint32_t *n,
                            sc_err *err);

/* Weight of a residual r = log(predicted / measured) of scale 0.08, so that
 * outliers count linearly (as in the fit of steps, calib.h). */
double kernelfit_robust(double r);

/* Lowers the loss over the samples, and returns it, by moving one constant after
 * another in the logarithm, by less and less.  Deterministic. */
double kernelfit_constants(const kernelfit_sample *s, uint32_t n,
                           sc_form_constants *inout);

/* Fits a table of corrections to the samples whose fold is not `without`
 * (negative: all): least squares with robust weights, and a penalty for second
 * differences.  `log` [product of t->count] receives logarithms. */
sc_status kernelfit_table(const kernelfit_sample *s, uint32_t n, int without,
                          const sc_form_table *t, double *log, sc_arena *a,
                          sc_err *err);

/* Changes `log` so that physical time times correction does not fall along any
 * axis.  `rise` [3 times the table] has, for each axis, the logarithm by which
 * the physical time rises at least from the first position of a line to each;
 * `weight` [the table] what the samples say there. */
void kernelfit_monotone(const sc_form_table *t, const double *rise,
                        const double *weight, double *log);

/* Logarithm of the predicted time of a sample with these corrections. */
double kernelfit_log_time(const kernelfit_sample *s, const sc_form_table *t,
                          const double *log);

#endif
