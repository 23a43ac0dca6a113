/* SPDX-License-Identifier: Apache-2.0 */
/* alonefit.c - the forms of data/fit/kernels-alone.yml, from tables of kernels. */
#include "base/random.h"
#include "calib/calib.h"
#include "calib/fitfile.h"
#include "calib/kernelfit.h"
#include "cost/cost_alone.h"

#include <math.h>
#include <string.h>

/* A form needs this many rows. */
#define LEAST_ROWS 40
/* Constants are fitted to so many rows at most, evenly chosen: they have few
 * degrees of freedom. */
#define CONSTANT_ROWS 1200
#define TILE_ROWS     200 /* to choose tiles, for which there are many choices */

#define DEVICES 64

typedef struct fitter {
    uint32_t n_devices;
    const sc_device *device[DEVICES];
    kernelfit_rows rows;
    sc_cost cost; /* stated forms of kernels alone: the shapes of rows */
    sc_forms forms;
    uint32_t cap;
    sc_form_own *own; /* [forms.n_own] */
    sc_arena *a;
    sc_arena scratch; /* of one form */
    sc_text *yml, *report;
} fitter;

/* ---- constants -------------------------------------------------------------------- */

static void set_tiles(kernelfit_sample *s, uint32_t n, uint32_t tiles)
{
    for (uint32_t i = 0; i < n; i++) s[i].use[0].product.tiles = tiles;
}

/* The library's batched kernels have one to three tiles, whatever the shape
 * (NeuSight's names of kernels), so the tiles are a property of the form. */
#define MOST_TILES 3

static bool candidate(sc_form_kind kind, uint32_t tiles)
{
    uint32_t n = 0;
    for (uint32_t t = tiles; t; t &= t - 1) n++;
    return tiles == 0 || (kind == SC_FORM_BMM_FP32 && n <= MOST_TILES);
}

/* Every n-th row of at most `most`. */
static kernelfit_sample *some_of(fitter *f, const kernelfit_sample *s,
                                 uint32_t n, uint32_t most, uint32_t *few)
{
    *few = n < most ? n : most;
    kernelfit_sample *out = SC_NEW_N(&f->scratch, kernelfit_sample, *few);
    for (uint32_t i = 0; out && i < *few; i++) out[i] = s[(size_t)i * n / *few];
    return out;
}

/* The tiles with which a few rows have the least loss. */
static sc_status choose_tiles(fitter *f, const kernelfit_sample *s, uint32_t n,
                              sc_form_kind kind, const sc_form_constants *start,
                              uint32_t *out, sc_err *err)
{
    uint32_t few;
    double least = INFINITY;
    kernelfit_sample *some = some_of(f, s, n, TILE_ROWS, &few);
    if (!some) return sc_error_nomem(err);
    for (uint32_t tiles = 0; tiles < 1U << SC_FORM_TILES; tiles++) {
        if (!candidate(kind, tiles)) continue;
        sc_form_constants c = *start;
        set_tiles(some, few, tiles);
        double loss = kernelfit_constants(some, few, &c);
        if (!(loss < least)) continue;
        least = loss;
        *out = tiles;
    }
    return SC_OK;
}

static sc_status constants(fitter *f, const kernelfit_sample *s, uint32_t n,
                           sc_form_kind kind, sc_form *form, sc_err *err)
{
    uint32_t few;
    kernelfit_sample *some = some_of(f, s, n, CONSTANT_ROWS, &few);
    if (!some) return sc_error_nomem(err);
    if (form->c.start <= 0) form->c.start = 1e-5; /* moved in its logarithm */
    if (sc_form_is_vector(kind)) {
        SC_TRY(choose_tiles(f, s, n, kind, &form->c, &form->tiles, err));
        set_tiles(some, few, form->tiles);
    }
    (void)kernelfit_constants(some, few, &form->c);
    return SC_OK;
}

/* A table that the host launched does not tell its time before the kernel from
 * the kernel's start-up, which is as stated. */
static void split_host(const sc_form_constants *stated, kernelfit_sample *s,
                       uint32_t *n, sc_form *form)
{
    uint32_t kept = 0;
    form->host = fmax(0, form->c.start - stated->start);
    form->c.start = fmin(form->c.start, stated->start);
    for (uint32_t i = 0; i < *n; i++) {
        s[i].seconds -= form->host;
        if (s[i].seconds > form->host) s[kept++] = s[i];
    }
    *n = kept;
}

/* ---- sizes that fit the kernels ----------------------------------------------------- */

/* How much longer rows with this side a multiple of 8 take than others, by what
 * the present table leaves. */
static sc_status whole_side(fitter *f, const kernelfit_sample *s, uint32_t n,
                            const kernelfit_fitted *v, int side, double *out,
                            sc_err *err)
{
    uint32_t many[2] = {0};
    double *rest[2];
    sc_form one = {.whole = {0}};
    one.whole[side] = 0.5;
    for (int i = 0; i < 2; i++)
        if (!(rest[i] = SC_NEW_N(&f->scratch, double, n)))
            return sc_error_nomem(err);
    for (uint32_t i = 0; i < n; i++) {
        int whole = sc_form_whole(&one, &s[i].use[0]) < 1;
        rest[whole][many[whole]++] =
            log(s[i].seconds) -
            kernelfit_log_time(&s[i], &v->form.table, v->log);
    }
    *out = 1;
    if (many[0] < LEAST_ROWS || many[1] < LEAST_ROWS) return SC_OK;
    *out = exp(sc_quantile(rest[1], many[1], 0.5) -
               sc_quantile(rest[0], many[0], 0.5));
    return SC_OK;
}

/* Finds what such sides save and takes it out of the samples, whose table is
 * fitted anew. */
static sc_status fit_whole(fitter *f, kernelfit_sample *s, uint32_t n,
                           kernelfit_fitted *v, sc_err *err)
{
    for (int side = 0; side < 2; side++)
        SC_TRY(whole_side(f, s, n, v, side, &v->form.whole[side], err));
    for (uint32_t i = 0; i < n; i++)
        s[i].seconds /= sc_form_whole(&v->form, &s[i].use[0]);
    return kernelfit_form(s, n, &f->scratch, v, err);
}

/* ---- one form ---------------------------------------------------------------------- */

static sc_status add(fitter *f, const sc_device *d, sc_form_kind kind,
                     const kernelfit_fitted *v, sc_err *err)
{
    f->own = sc_grow(f->a, f->own, f->forms.n_own, &f->cap, 64, sizeof *f->own);
    sc_form *kept = kernelfit_keep(v, f->a);
    if (!f->own || !kept) return sc_error_nomem(err);
    kept->device = d;
    f->own[f->forms.n_own++] = (sc_form_own){d, kind, kept};
    f->forms.own = f->own;
    return SC_OK;
}

static sc_status fit_kind(fitter *f, const sc_device *d, sc_form_kind kind,
                          sc_err *err)
{
    kernelfit_sample *s = NULL;
    uint32_t n = 0;
    double least;
    const sc_form *stated = sc_form_of(NULL, SC_FIT_AMPERE, kind);
    kernelfit_fitted v = {.form = *stated};
    SC_TRY(
        alonefit_samples(&f->rows, d, kind, &f->scratch, &s, &n, &least, err));
    if (n < LEAST_ROWS) return SC_OK;
    SC_TRY(constants(f, s, n, kind, &v.form, err));
    v.form.least = least;
    if (least > 0) split_host(&stated->c, s, &n, &v.form);
    if (n < LEAST_ROWS) return SC_OK;
    if (sc_form_is_vector(kind)) set_tiles(s, n, v.form.tiles);
    SC_TRY(kernelfit_form(s, n, &f->scratch, &v, err));
    if (sc_form_is_vector(kind)) SC_TRY(fit_whole(f, s, n, &v, err));
    sc_text_add(f->yml, "  - device: %s\n    kind: %s\n", d->name,
                sc_form_names[kind]);
    kernelfit_write(&v.form, v.log, f->yml);
    sc_text_add(
        f->report, "%-16s%-18s%6u  in sample %5.1f %%  other shapes %5.1f %%\n",
        d->name, sc_form_names[kind], n, 100 * v.in_sample, 100 * v.form.error);
    return add(f, d, kind, &v, err);
}

/* ---- a device that no form has seen -------------------------------------------------- */

#define SEEDS 5
#define GEMMS 16

/* A level of products comes from linear layers, another from its own kind. */
static sc_form_kind level_kind(sc_form_kind kind)
{
    bool product = sc_form_is_vector(kind) || kind == SC_FORM_CONV;
    return product ? SC_FORM_GEMM_FP32 : SC_FORM_ELEMENT;
}

static double level_of(const sc_cost *c, const sc_device *d,
                       const kernelfit_sample *s, uint32_t n, double host,
                       uint64_t *random)
{
    double ratio[GEMMS];
    for (uint32_t i = 0; i < GEMMS; i++) {
        kernelfit_sample one;
        do one = s[sc_random_below(random, n)];
        while (one.seconds <= 2 * host);
        one.seconds -= host;
        ratio[i] = alonefit_log_ratio(c, d, &one, false);
    }
    return kernelfit_level(ratio, GEMMS);
}

static const sc_form *own_form(const fitter *f, const sc_device *d,
                               sc_form_kind kind)
{
    for (uint32_t i = 0; i < f->forms.n_own; i++)
        if (f->own[i].kind == kind && f->own[i].device == d)
            return f->own[i].form;
    return NULL;
}

/* Errors on all rows of the device by the forms of the other ones; what its host
 * takes is known. */
static sc_status leave_out(fitter *f, const sc_device *d, sc_form_kind kind,
                           sc_err *err)
{
    kernelfit_sample *s = NULL, *few = NULL;
    uint32_t n = 0, n_few = 0;
    double least;
    const sc_form *own = own_form(f, d, kind);
    const sc_form *of = own_form(f, d, level_kind(kind));
    if (!own || !of) return SC_OK;
    sc_forms others = {0};
    sc_form_own *list = SC_NEW_N(&f->scratch, sc_form_own, f->forms.n_own);
    if (!list) return sc_error_nomem(err);
    for (uint32_t i = 0; i < f->forms.n_own; i++)
        if (f->own[i].device != d) list[others.n_own++] = f->own[i];
    others.own = list;
    sc_cost c = f->cost;
    c.alone = &others;
    SC_TRY(
        alonefit_samples(&f->rows, d, kind, &f->scratch, &s, &n, &least, err));
    SC_TRY(alonefit_samples(&f->rows, d, level_kind(kind), &f->scratch, &few,
                            &n_few, &least, err));
    double error[2] = {0};
    uint32_t rows = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        uint64_t random = seed + 1;
        double level = level_of(&c, d, few, n_few, of->host, &random);
        for (uint32_t i = 0; i < n; i++) {
            kernelfit_sample one = s[i];
            one.seconds -= own->host;
            if (seed == 0) rows += one.seconds > own->host;
            if (one.seconds <= own->host) continue;
            double r = -alonefit_log_ratio(&c, d, &one, false);
            error[0] += fabs(exp(r) - 1) / SEEDS;
            error[1] += fabs(exp(r + level) - 1) / SEEDS;
        }
    }
    sc_text_add(f->report,
                "%-16s%-18s%6u  unseen %5.1f %%  with %d %ss %5.1f %%\n",
                d->name, sc_form_names[kind], rows, 100 * error[0] / rows,
                GEMMS, sc_form_names[level_kind(kind)], 100 * error[1] / rows);
    return SC_OK;
}

typedef sc_status each(fitter *f, const sc_device *d, sc_form_kind kind,
                       sc_err *err);

static sc_status every(fitter *f, each *call, sc_err *err)
{
    for (int kind = SC_FORM_GEMM_FP32; kind < (int)SC_N_FORMS; kind++)
        for (uint32_t i = 0; i < f->n_devices; i++) {
            sc_arena_reset(&f->scratch);
            SC_TRY(call(f, f->device[i], (sc_form_kind)kind, err));
        }
    return SC_OK;
}

static void find_devices(fitter *f)
{
    for (uint32_t i = 0; i < f->rows.n; i++) {
        const sc_device *d = f->rows.row[i].device;
        uint32_t k = 0;
        while (k < f->n_devices && strcmp(f->device[k]->name, d->name) != 0)
            k++;
        if (k == f->n_devices && k < DEVICES) f->device[f->n_devices++] = d;
    }
}

static sc_status fit_all(fitter *f, sc_err *err)
{
    SC_TRY(every(f, fit_kind, err));
    if (f->report->len == 0)
        return sc_error(
            err, SC_EINPUT, SC_C_MISSING, sc_pos_none(), "give more tables",
            "no kind of kernel has %d rows on one device", LEAST_ROWS);
    SC_TRY(every(f, leave_out, err));
    return f->yml->failed || f->report->failed ? sc_error_nomem(err) : SC_OK;
}

sc_status sc_calibrate_alone(const sc_csv *tables, uint32_t n_tables,
                             const char *from, sc_arena *a, sc_text *yml,
                             sc_text *report, sc_err *err)
{
    fitter f = {.a = a, .yml = yml, .report = report};
    SC_TRY(kernelfit_read(tables, n_tables, a, &f.rows, err));
    find_devices(&f);
    sc_cost_centres(&f.cost);
    SC_TRY(sc_cost_forms(a, &f.cost, err));
    f.cost.burst = true;
    f.rows.cost = &f.cost;
    sc_text_add(yml,
                "# Only `stepcast calibrate --kernels --alone` writes this "
                "file.\n");
    calib_fit_comment(from, yml);
    sc_text_add(
        yml,
        "# Forms of single kernels, as in kernels.yml, each of one device; no "
        "step\n# depends on them.  host: what launching by the host added to "
        "a row, s; least:\n# no such row was shorter, s.\nkernels:\n");
    sc_arena_init(&f.scratch, a->limit);
    sc_status s = fit_all(&f, err);
    sc_arena_free(&f.scratch);
    return s;
}
