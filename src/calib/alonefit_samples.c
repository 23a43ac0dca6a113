/* SPDX-License-Identifier: Apache-2.0 */
/* alonefit_samples.c - rows of tables as samples of forms of kernels alone. */
#include "calib/kernelfit.h"
#include "cost/cost_alone.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A row that the host launched takes the longer of the host's own time and of
 * the kernel's with what comes before it.  Below this many times the shortest
 * row of the operator, the host may have hidden a part of the kernel. */
#define VISIBLE 2.0
/* The shortest operators of PyTorch (kernel_coll.c), if nothing else is known.
 */
#define EAGER 26e-6
/* The shortest rows are outliers. */
#define SHORTEST 0.01
/* Fewer rows do not show the shortest time; then that of the form counts. */
#define MANY 100

#define OPERATORS 32

typedef struct operator_rows {
    const char *name;
    uint32_t n;
    double *seconds; /* [n] */
    double least;
} operator_rows;

typedef struct operators {
    uint32_t n;
    operator_rows at[OPERATORS];
} operators;

static operator_rows *find(operators *o, const char *name)
{
    for (uint32_t i = 0; i < o->n; i++)
        if (strcmp(o->at[i].name, name) == 0) return &o->at[i];
    if (o->n == OPERATORS) return &o->at[OPERATORS - 1];
    o->at[o->n].name = name;
    return &o->at[o->n++];
}

static bool of_kind(const sc_cost *c, const calib_kernel_row *r,
                    const sc_device *d, sc_form_kind kind, sc_form_use *use)
{
    const sc_form *f;
    return !r->reason && r->n_parts == 1 && r->seconds > 0 &&
           r->launch != CALIB_LAUNCH_PROGRAM &&
           strcmp(r->device->name, d->name) == 0 &&
           sc_alone_use_of(c, d, &r->part[0], use, &f) && use->kind == kind;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static sc_status shortest(const kernelfit_sample *s, const uint32_t *of,
                          uint32_t n, double usual, operators *o, sc_arena *a,
                          sc_err *err)
{
    for (uint32_t i = 0; i < o->n; i++) o->at[i].n = 0;
    for (uint32_t i = 0; i < o->n; i++) {
        operator_rows *r = &o->at[i];
        r->seconds = SC_NEW_N(a, double, (size_t)n + 1);
        if (!r->seconds) return sc_error_nomem(err);
    }
    for (uint32_t i = 0; i < n; i++) {
        operator_rows *r = &o->at[of[i]];
        r->seconds[r->n++] = s[i].seconds;
    }
    for (uint32_t i = 0; i < o->n; i++) {
        operator_rows *r = &o->at[i];
        qsort(r->seconds, r->n, sizeof *r->seconds, ascending);
        r->least =
            r->n >= MANY ? r->seconds[(uint32_t)(SHORTEST * r->n)] : usual;
    }
    return SC_OK;
}

/* The same shape is in the same fold on every device. */
static uint8_t fold_of(const sc_kernel *k)
{
    const uint64_t shape[4] = {k->batch, k->m, k->n, k->k};
    uint64_t h = sc_hash(shape, sizeof shape, 0);
    h = sc_hash(&k->bytes, sizeof k->bytes, h);
    return (uint8_t)(h % KERNELFIT_FOLDS);
}

sc_status alonefit_samples(const kernelfit_rows *rows, const sc_device *d,
                           sc_form_kind kind, sc_arena *a,
                           kernelfit_sample **out, uint32_t *n, double *least,
                           sc_err *err)
{
    operators o = {0};
    uint32_t room = 1, all = 0;
    for (uint32_t i = 0; i < rows->n; i++)
        room += strcmp(rows->row[i].device->name, d->name) == 0;
    kernelfit_sample *s = SC_NEW_N(a, kernelfit_sample, room);
    uint32_t *of = SC_NEW_N(a, uint32_t, room);
    bool hosted = false;
    if (!s || !of) return sc_error_nomem(err);
    for (uint32_t i = 0; i < rows->n; i++) {
        const calib_kernel_row *r = &rows->row[i];
        sc_form_use use;
        if (!of_kind(rows->cost, r, d, kind, &use)) continue;
        hosted = hosted || r->launch == CALIB_LAUNCH_EAGER;
        of[all] = (uint32_t)(find(&o, r->operation) - o.at);
        s[all++] = (kernelfit_sample){.use = {use},
                                      .n = 1,
                                      .seconds = r->seconds,
                                      .weight = 1,
                                      .fold = fold_of(&r->part[0])};
    }
    *n = 0;
    *least = 0;
    double usual = sc_alone_form(rows->cost, d, kind)->least;
    if (hosted) SC_TRY(shortest(s, of, all, usual, &o, a, err));
    for (uint32_t i = 0; hosted && i < o.n; i++)
        if (*least <= 0 || o.at[i].least < *least) *least = o.at[i].least;
    if (hosted && *least <= 0) *least = EAGER;
    for (uint32_t i = 0; i < all; i++)
        if (!hosted || s[i].seconds > VISIBLE * o.at[of[i]].least)
            s[(*n)++] = s[i];
    *out = s;
    return SC_OK;
}

double alonefit_log_ratio(const sc_cost *c, const sc_device *d,
                          const kernelfit_sample *s, bool hosted)
{
    sc_form_use use = s->use[0];
    const sc_form *f = sc_alone_form(c, d, use.kind);
    if (sc_form_is_vector(use.kind)) use.product.tiles = f->tiles;
    double seconds = s->seconds - (hosted ? f->host : 0);
    return log(fmax(seconds, 0.1 * s->seconds) / sc_form_seconds(f, &use));
}
