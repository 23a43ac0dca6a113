/* SPDX-License-Identifier: Apache-2.0 */
/* heldout.c - computes 80 % intervals from the errors of held-out families. */
#include "calib/heldout.h"

#include "base/number.h"
#include "calib/fitfile.h"
#include "calib/row.h"
#include "calib/runs.h"
#include "calib/stats.h"

#include <math.h>
#include <string.h>

#define ALL_KINDS (-1)

static double log_error(const sc_valid_row *r)
{
    return log(r->median / r->predicted);
}

/* In standard deviations of the job. */
static double standard_error(const sc_valid_row *r)
{
    return log_error(r) / r->sd;
}

/* ---- intervals --------------------------------------------------------------- */

typedef struct pool {
    const sc_valid_row *rows;
    uint32_t n;
    const char *without;
    sc_weighted *v; /* [n] room */
} pool;

static bool in_pool(const pool *p, const sc_valid_row *r, int kind)
{
    /* Operator networks are fitted and judged separately from transformers. */
    bool of_kind =
        kind == ALL_KINDS ? r->kind != SC_KIND_GRAPH : r->kind == kind;
    return r->counted && !r->unfitted && of_kind &&
           (!p->without || strcmp(r->family, p->without) != 0);
}

/* Weight of a row whose family has so many rows in the pool, as in the fit. */
static double weight(uint32_t rows)
{
    return fmin(1, rows / CALIB_FAMILY_FULL) / rows;
}

static void interval_of(const pool *p, int kind, sc_interval *out)
{
    uint32_t n = 0;
    sc_interval v = {0};
    for (uint32_t i = 0; i < p->n; i++) {
        const sc_valid_row *r = &p->rows[i];
        uint32_t family = 0;
        bool first = true;
        if (!in_pool(p, r, kind)) continue;
        for (uint32_t j = 0; j < p->n; j++) {
            if (!in_pool(p, &p->rows[j], kind) ||
                strcmp(p->rows[j].family, r->family) != 0)
                continue;
            family++;
            if (j < i) first = false;
        }
        v.families += first;
        p->v[n++] = (sc_weighted){fabs(standard_error(r)), weight(family)};
    }
    v.rows = n;
    v.high = fmax(0, sc_weighted_quantile(p->v, n, 0.8));
    v.low = -v.high;
    *out = v;
}

/* The interval of a kind with few rows is a weighted mean of its own and that
 * of all kinds. */
static void shrink(sc_interval *v, const sc_interval *all)
{
    double own = v->rows / (v->rows + CALIB_KIND_ROWS);
    if (v->rows < CALIB_KIND_ROWS) own = 0;
    v->low = own > 0 ? own * v->low + (1 - own) * all->low : all->low;
    v->high = own > 0 ? own * v->high + (1 - own) * all->high : all->high;
}

/* Figures of formulas are no measurements. No fit changes memory, so rows of
 * programs whose steps are not fitted count, too. */
static bool has_memory(const sc_valid_row *r)
{
    return r->outcome == CALIB_RAN &&
           isfinite(log(r->mem_measured / r->mem_predicted));
}

static uint32_t memory_rows(const sc_valid_row *rows, uint32_t n,
                            const sc_valid_row *like, bool *first)
{
    uint32_t same = 0;
    *first = true;
    for (uint32_t j = 0; j < n; j++) {
        if (!has_memory(&rows[j]) || strcmp(rows[j].family, like->family) != 0)
            continue;
        same++;
        if (&rows[j] < like) *first = false;
    }
    return same;
}

sc_status calib_memory_interval(const sc_valid_row *rows, uint32_t n,
                                sc_arena *a, sc_interval *inout, sc_err *err)
{
    sc_interval v = {0};
    sc_weighted *w = SC_NEW_N(a, sc_weighted, (size_t)n + 1);
    if (!w) return sc_error_nomem(err);
    for (uint32_t i = 0; i < n; i++) {
        const sc_valid_row *r = &rows[i];
        bool first;
        if (!has_memory(r)) continue;
        double each = weight(memory_rows(rows, n, r, &first));
        v.families += first;
        w[v.rows++] =
            (sc_weighted){log(r->mem_measured / r->mem_predicted), each};
    }
    if (v.rows < CALIB_KIND_ROWS) return SC_OK;
    v.low = fmin(0, sc_weighted_quantile(w, v.rows, 0.1));
    v.high = fmax(0, sc_weighted_quantile(w, v.rows, 0.9));
    *inout = v;
    return SC_OK;
}

sc_status calib_learn_memory(calib_run *run, uint32_t n, sc_arena *a,
                             sc_cost *inout, sc_err *err)
{
    sc_valid_row *rows = SC_NEW_N(a, sc_valid_row, (size_t)n + 1);
    uint32_t m = 0;
    sc_arena scratch;
    sc_status s = SC_OK;
    if (!rows) return sc_error_nomem(err);
    sc_arena_init(&scratch, a->limit);
    for (uint32_t i = 0; i < n && s == SC_OK; i++)
        if (isfinite(run[i].mem_measured))
            s = calib_row_predict(&run[i], inout, SC_ENGINE_FAST, a, &scratch,
                                  &rows[m++], (calib_row_also){0}, err);
    sc_arena_free(&scratch);
    SC_TRY(s);
    return calib_memory_interval(rows, m, a, &inout->held.memory, err);
}

sc_status calib_held_out_intervals(const sc_valid_row *rows, uint32_t n,
                                   const char *without, sc_arena *a,
                                   sc_held_out *out, sc_err *err)
{
    pool p = {rows, n, without, SC_NEW_N(a, sc_weighted, (size_t)n + 1)};
    if (!p.v) return sc_error_nomem(err);
    interval_of(&p, ALL_KINDS, &out->all);
    for (int k = 0; k < (int)SC_N_KINDS; k++) {
        interval_of(&p, k, &out->kind[k]);
        if (k != SC_KIND_GRAPH) shrink(&out->kind[k], &out->all);
    }
    out->unseen = CALIB_UNSEEN;
    return SC_OK;
}

void calib_deviations(const calib_held *h, uint32_t n, const sc_effects *e)
{
    for (uint32_t i = 0; i < n; i++)
        h[i].row->sd = sc_effects_deviation(e, 1, h[i].cov, &h[i].traits);
}

sc_status calib_nested_intervals(calib_held *h, uint32_t n, sc_valid_row *rows,
                                 uint32_t n_rows, sc_arena *a, sc_err *err)
{
    sc_held_out v;
    for (uint32_t i = 0; i < n; i++) {
        const char *name = h[i].row->family;
        sc_effects *e;
        bool first = !h[i].row->unfitted;
        for (uint32_t j = 0; j < i && first; j++)
            first = strcmp(h[j].row->family, name) != 0;
        if (!first) continue;
        e = SC_NEW(a, sc_effects);
        if (!e) return sc_error_nomem(err);
        SC_TRY(calib_effects_fit(h, n, name, a, e, err));
        calib_deviations(h, n, e);
        SC_TRY(calib_held_out_intervals(rows, n_rows, name, a, &v, err));
        if (v.all.rows < CALIB_KIND_ROWS) continue; /* the file's stay */
        for (uint32_t j = i; j < n; j++) {
            sc_valid_row *r = h[j].row;
            if (strcmp(r->family, name) != 0) continue;
            h[j].effects = e;
            r->low = r->predicted * exp(v.kind[r->kind].low * r->sd);
            r->high = r->predicted * exp(v.kind[r->kind].high * r->sd);
        }
    }
    return SC_OK;
}

/* ---- the file ------------------------------------------------------------------ */

static void put(sc_text *t, const char *key, double v)
{
    char buf[40];
    number_print(v, 3, buf, sizeof buf);
    sc_text_add(t, "%s: %s", key, isfinite(v) ? buf : "null");
}

static void put_interval(sc_text *t, const char *indent, const char *name,
                         const sc_interval *v)
{
    sc_text_add(t, "%s%s: {", indent, name);
    put(t, "low", v->low);
    put(t, ", high", v->high);
    sc_text_add(t, ", rows: %u, families: %u}\n", v->rows, v->families);
}

static void put_list(sc_text *t, const char *key, const sc_counted *list,
                     uint32_t n)
{
    sc_text_add(t, "%s:\n", key);
    for (uint32_t i = 0; i < n; i++)
        sc_text_add(t, "  %s: %u\n", list[i].name, list[i].rows);
}

static void put_measured(sc_text *t, const sc_held_out *h)
{
    if (h->n_measured == 0) return;
    sc_text_add(t, "# Measured rows of each program by generation of devices, "
                   "also of programs that no fit\n# of steps uses.\n"
                   "measured:\n");
    for (uint32_t i = 0; i < h->n_measured; i++) {
        const sc_measured *m = &h->measured[i], *last = i ? m - 1 : NULL;
        bool same = last && strcmp(last->program, m->program) == 0;
        bool more =
            i + 1 < h->n_measured && strcmp(m[1].program, m->program) == 0;
        if (!same) sc_text_add(t, "  %s: {", m->program);
        sc_text_add(t, "%s%s: %u%s", same ? ", " : "", m->generation, m->rows,
                    more ? "" : "}\n");
    }
}

typedef struct family_sum {
    uint32_t rows, inside;
    double log_error, size;
} family_sum;

/* False if an earlier row has the same family. */
static bool sum_family(const sc_valid_row *rows, uint32_t n, uint32_t i,
                       family_sum *out)
{
    family_sum s = {0};
    for (uint32_t j = 0; j < n; j++) {
        const sc_valid_row *r = &rows[j];
        if (!r->counted || r->unfitted ||
            strcmp(r->family, rows[i].family) != 0)
            continue;
        if (j < i) return false;
        s.rows++;
        s.inside += calib_inside(r);
        s.log_error += log_error(r);
        s.size += fabs(r->predicted / r->median - 1);
    }
    *out = s;
    return s.rows > 0;
}

static void put_families(const sc_valid_row *rows, uint32_t n, sc_text *t)
{
    sc_text_add(t, "# Errors of each family if the fit lacks it: mean of "
                   "log(measured / predicted), mean\n"
                   "# error, and the fraction of its rows inside the "
                   "intervals of the other families.\n"
                   "families:\n");
    for (uint32_t i = 0; i < n; i++) {
        family_sum s;
        if (!rows[i].counted || rows[i].unfitted || !sum_family(rows, n, i, &s))
            continue;
        sc_text_add(t, "  %s: {rows: %u", rows[i].family, s.rows);
        put(t, ", bias", s.log_error / s.rows);
        put(t, ", error", s.size / s.rows);
        put(t, ", covered", (double)s.inside / s.rows);
        sc_text_add(t, "}\n");
    }
}

void calib_held_out_write(const sc_held_out *h, const sc_valid_row *rows,
                          uint32_t n, const char *from, sc_text *out)
{
    char buf[40];
    sc_text_add(out,
                "# Only `stepcast calibrate --truth DIR --held-out` writes "
                "this file.\n");
    calib_fit_comment(from, out);
    sc_text_add(
        out,
        "# low and high are the quantiles 10 %% and 90 %% of log(measured "
        "/ predicted), in\n"
        "# standard deviations that the effects below give each job.  Each "
        "row was predicted by\n"
        "# a fit without its family.  Families of %g rows or more have "
        "equal weight; a smaller family weighs in proportion to its "
        "rows.  The quantiles of\n"
        "# a kind with n >= %g rows are means of its own, with weight "
        "n / (n + %g), and those\n"
        "# of all kinds.  A kind with fewer rows has the quantiles of "
        "all kinds.\n"
        "kinds:\n",
        CALIB_FAMILY_FULL, CALIB_KIND_ROWS, CALIB_KIND_ROWS);
    put_interval(out, "  ", "all", &h->all);
    for (int k = 0; k < (int)SC_N_KINDS; k++)
        put_interval(out, "  ", sc_model_kind_names[k], &h->kind[k]);
    sc_text_add(out, "# The quantiles of log(measured / predicted peak of "
                     "memory).\n");
    put_interval(out, "", "memory", &h->memory);
    sc_text_add(out, "# If no row of the fit has the device or the program, "
                     "the widest interval counts and the\n"
                     "# deviation is scaled by this factor, which is chosen "
                     "and not measured (src/calib/heldout.h).\n");
    put(out, "unseen", h->unseen);
    sc_text_add(out,
                "\n# Standard deviations of what errors have in common "
                "(docs/anchors.md): they make the\n# errors above most likely. "
                "`parameters` is a factor on the fit's standard errors.\n"
                "effects: {");
    for (int e = 0; e < (int)SC_N_EFFECTS; e++) {
        number_print(h->effects.sd[e], 2, buf, sizeof buf);
        sc_text_add(out, "%s%s: %s", e ? ", " : "", sc_effect_names[e], buf);
    }
    sc_text_add(out, "}\n");
    sc_text_add(
        out,
        "\n# Hash of network.yml, step.yml, program.yml and graph.yml.\n"
        "fit: \"%016llx\"\n# Number of rows in the fit.\n",
        (unsigned long long)h->fit);
    put_list(out, "architectures", h->arch, h->n_archs);
    put_list(out, "software", h->program, h->n_programs);
    put_measured(out, h);
    put_families(rows, n, out);
}

void calib_held_out_report(const sc_held_out *h, const sc_valid_row *rows,
                           uint32_t n, sc_text *out)
{
    sc_text_add(out, "\n%-10s%8s%10s%8s%8s%12s%12s\n", "kind", "rows",
                "families", "low", "high", "inside %", "nested %");
    for (int k = -1; k < (int)SC_N_KINDS; k++) {
        const sc_interval *v = k < 0 ? &h->all : &h->kind[k];
        uint32_t own = 0, nested = 0;
        for (uint32_t i = 0; i < n; i++) {
            const sc_valid_row *r = &rows[i];
            if (!r->counted || r->unfitted ||
                (k < 0 ? r->kind == SC_KIND_GRAPH : r->kind != k))
                continue;
            const sc_interval *u = &h->kind[r->kind];
            own += standard_error(r) >= u->low && standard_error(r) <= u->high;
            nested += calib_inside(r);
        }
        sc_text_add(out, "%-10s%8u%10u%+8.2f%+8.2f%12.1f%12.1f\n",
                    k < 0 ? "all" : sc_model_kind_names[k], v->rows,
                    v->families, v->low, v->high, 100.0 * own / v->rows,
                    100.0 * nested / v->rows);
    }
    sc_text_add(out, "low, high: in standard deviations; inside: in the "
                     "interval of their kind; nested: in the\none that the "
                     "other families give\n");
}
