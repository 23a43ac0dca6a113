/* SPDX-License-Identifier: Apache-2.0 */
/* anchors.c - measures what own runs teach: rows of a held-out family are own
 * runs for its other rows. */
#include "calib/effects.h"

#include <math.h>
#include <string.h>

typedef struct family {
    const calib_held **m; /* [n] */
    uint32_t n;
} family;

typedef struct study {
    const sc_cost *cost;
    uint32_t anchors;
    sc_effects effects; /* of the other families */
    sc_arena *a;
    sc_valid_row *rows;
    uint32_t n, cap;
} study;

/* The anchors of a choice: `first` and rows at equal distances after it. */
static uint32_t member(const family *f, uint32_t first, uint32_t k,
                       uint32_t anchors)
{
    return (first + (uint32_t)((uint64_t)k * f->n / anchors)) % f->n;
}

static bool chosen(const family *f, uint32_t first, uint32_t anchors,
                   uint32_t i)
{
    for (uint32_t k = 0; k < anchors; k++)
        if (member(f, first, k, anchors) == i) return true;
    return false;
}

static sc_status keep(study *x, const calib_held *h, const sc_anchors *s,
                      sc_err *err)
{
    sc_valid_row r = *h->row;
    double by = exp(sc_anchors_effect(s, &h->traits));
    double narrow = sc_anchors_narrow(s, &h->traits, x->a);
    sc_valid_row *grown =
        sc_grow(x->a, x->rows, x->n, &x->cap, 256, sizeof *grown);
    if (!grown) return sc_error_nomem(err);
    x->rows = grown;
    r.low = r.predicted * by * pow(r.low / r.predicted, narrow);
    r.high = r.predicted * by * pow(r.high / r.predicted, narrow);
    r.predicted *= by;
    r.error = r.predicted / r.measured - 1;
    r.mem_measured = r.mem_predicted = NAN;
    r.group_key = x->n; /* rows of different choices have no common order */
    x->rows[x->n++] = r;
    return SC_OK;
}

static sc_status one_choice(study *x, const family *f, uint32_t first,
                            sc_err *err)
{
    sc_anchor *list = SC_NEW_N(x->a, sc_anchor, x->anchors);
    sc_anchors *s = SC_NEW(x->a, sc_anchors);
    sc_cost base = *x->cost;
    if (!list || !s) return sc_error_nomem(err);
    base.held.effects = x->effects;
    for (uint32_t k = 0; k < x->anchors; k++) {
        const calib_held *h = f->m[member(f, first, k, x->anchors)];
        list[k] = (sc_anchor){.id = h->row->id,
                              .measured_s = h->row->median,
                              .predicted_s = h->row->predicted,
                              .moved_s = NAN,
                              .noise = SC_ANCHOR_NOISE,
                              .traits = h->traits};
    }
    SC_TRY(sc_anchors_fit(list, x->anchors, &base, f->m[0]->cov, x->a, s, err));
    for (uint32_t i = 0; i < f->n; i++)
        if (!chosen(f, first, x->anchors, i)) SC_TRY(keep(x, f->m[i], s, err));
    return SC_OK;
}

static sc_status one_family(study *x, const family *f, sc_err *err)
{
    uint32_t sets = f->n < CALIB_ANCHOR_SETS ? f->n : CALIB_ANCHOR_SETS;
    if (f->n <= x->anchors) return SC_OK;
    for (uint32_t k = 0; k < sets; k++)
        SC_TRY(one_choice(x, f, (2 * k + 1) * f->n / (2 * sets), err));
    return SC_OK;
}

sc_status calib_with_anchors(const calib_held *h, uint32_t n, uint32_t anchors,
                             const sc_cost *cost, sc_arena *a,
                             sc_validation *out, sc_err *err)
{
    study x = {.cost = cost, .anchors = anchors, .a = a};
    for (uint32_t i = 0; i < n; i++) {
        const char *name = h[i].row->family;
        family f = {.m = SC_NEW_N(a, const calib_held *, n)};
        bool first = true;
        if (!f.m) return sc_error_nomem(err);
        for (uint32_t k = 0; k < n; k++) {
            if (strcmp(h[k].row->family, name) != 0) continue;
            if (k < i) first = false;
            f.m[f.n++] = &h[k];
        }
        if (!first) continue;
        SC_TRY(calib_effects_fit(h, n, name, a, &x.effects, err));
        SC_TRY(one_family(&x, &f, err));
    }
    out->rows = x.rows;
    out->n_rows = x.n;
    out->anchors = anchors;
    return SC_OK;
}
