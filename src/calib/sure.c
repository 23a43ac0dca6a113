/* SPDX-License-Identifier: Apache-2.0 */
/* sure.c - whether stated probabilities of being the fastest are right, on runs
 * that differ only in parallelization. */
#include "calib/sure.h"

#include "calib/runs.h"
#include "calib/stats.h"
#include "cost/cost_pick.h"

#include <math.h>
#include <string.h>

const double sc_pick_edges[SC_PICK_BINS + 1] = {
    0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 0.9, 1};

typedef struct study {
    const calib_held *h;
    uint32_t n;
    const sc_cost *cost;
    sc_arena *a;
    const calib_held **m; /* [n] rows of one set */
    sc_pick_row *row;     /* [n] the same */
} study;

/* The rows that differ from row `i` only in parallelization; 0 if an earlier
 * row is among them. */
static uint32_t collect(study *x, uint32_t i)
{
    const sc_valid_row *like = x->h[i].row;
    uint32_t m = 0;
    for (uint32_t k = 0; k < x->n; k++) {
        const sc_valid_row *r = x->h[k].row;
        if (!r->counted || r->group_key != like->group_key ||
            strcmp(r->family, like->family) != 0)
            continue;
        if (k < i) return 0;
        x->m[m] = &x->h[k];
        x->row[m++] =
            (sc_pick_row){.step_s = r->predicted, .traits = &x->h[k].traits};
    }
    return m;
}

static uint32_t bin_of(double p)
{
    uint32_t b = 0;
    while (b + 1 < SC_PICK_BINS && p >= sc_pick_edges[b + 1]) b++;
    return b;
}

/* `won` is 1 for the row that really was the fastest; equals share it. */
static void count(sc_valid_pick *p, double stated, double won, uint32_t m)
{
    uint32_t b = bin_of(stated);
    p->rows++;
    p->squares += (stated - won) * (stated - won);
    p->blind += (1.0 / m - won) * (1.0 / m - won);
    p->of_bin[b]++;
    p->stated[b] += stated;
    p->best[b] += won;
}

static void judge(const study *x, uint32_t m, const sc_pick *pick,
                  sc_valid_pick *p)
{
    double least = INFINITY, ties = 0;
    for (uint32_t i = 0; i < m; i++) least = fmin(least, x->m[i]->row->median);
    for (uint32_t i = 0; i < m; i++) ties += x->m[i]->row->median == least;
    for (uint32_t i = 0; i < m; i++)
        count(p, x->row[i].p_best, x->m[i]->row->median == least ? 1 / ties : 0,
              m);
    p->sets++;
    p->regret_stated += pick->regret;
    p->regret += x->m[pick->best]->row->median / least - 1;
}

static void add(sc_valid_pick *sum, const sc_valid_pick *p)
{
    sum->sets += p->sets;
    sum->rows += p->rows;
    sum->squares += p->squares;
    sum->blind += p->blind;
    sum->regret_stated += p->regret_stated;
    sum->regret += p->regret;
    for (uint32_t b = 0; b < SC_PICK_BINS; b++) {
        sum->of_bin[b] += p->of_bin[b];
        sum->stated[b] += p->stated[b];
        sum->best[b] += p->best[b];
    }
}

static sc_status one_set(study *x, uint32_t i, sc_valid_pick *p, sc_err *err)
{
    const sc_pick_opts o = {.noise = SC_ANCHOR_NOISE};
    uint32_t m = collect(x, i);
    sc_pick pick;
    sc_cost cost = *x->cost;
    if (m < CALIB_ORDER_ROWS) return SC_OK;
    cost.anchors = NULL;
    cost.cov = x->h[i].cov;
    if (x->h[i].effects) cost.held.effects = *x->h[i].effects;
    SC_TRY(sc_pick_judge(&cost, x->row, m, &o, x->a, &pick, err));
    judge(x, m, &pick, p);
    return SC_OK;
}

sc_status calib_judge_picks(const calib_held *h, uint32_t n,
                            const sc_cost *cost, sc_arena *a,
                            sc_validation *inout, sc_err *err)
{
    study x = {h,
               n,
               cost,
               a,
               SC_NEW_N(a, const calib_held *, (size_t)n + 1),
               SC_NEW_N(a, sc_pick_row, (size_t)n + 1)};
    if (!x.m || !x.row) return sc_error_nomem(err);
    inout->pick = (sc_valid_pick){0};
    for (uint32_t k = 0; k < inout->n_groups; k++) {
        sc_valid_group *g = &inout->groups[k];
        g->pick = (sc_valid_pick){0};
        for (uint32_t i = 0; i < n && !g->device; i++)
            if (strcmp(h[i].row->family, g->family) == 0)
                SC_TRY(one_set(&x, i, &g->pick, err));
        add(&inout->pick, &g->pick);
    }
    return SC_OK;
}

/* ---- printing ------------------------------------------------------------ */

void calib_pick_json(const sc_valid_pick *p, sc_json *j)
{
    if (!p->sets) return;
    sc_json_key(j, "best");
    sc_json_begin(j, '{');
    sc_json_put_uint(j, "sets", p->sets);
    sc_json_put_uint(j, "rows", p->rows);
    sc_json_put_double(j, "brier", p->squares / p->rows);
    sc_json_put_double(j, "brier_of_equal", p->blind / p->rows);
    sc_json_put_double(j, "regret_expected", p->regret_stated / p->sets);
    sc_json_put_double(j, "regret", p->regret / p->sets);
    sc_json_key(j, "by_probability");
    sc_json_begin(j, '[');
    for (uint32_t b = 0; b < SC_PICK_BINS; b++) {
        if (!p->of_bin[b]) continue;
        sc_json_begin(j, '{');
        sc_json_put_double(j, "from", sc_pick_edges[b]);
        sc_json_put_double(j, "to", sc_pick_edges[b + 1]);
        sc_json_put_uint(j, "rows", p->of_bin[b]);
        sc_json_put_double(j, "stated", p->stated[b] / p->of_bin[b]);
        sc_json_put_double(j, "best", p->best[b] / p->of_bin[b]);
        sc_json_end(j, '}');
    }
    sc_json_end(j, ']');
    sc_json_end(j, '}');
}

void calib_pick_text(const sc_valid_pick *p, sc_text *t)
{
    if (!p->sets) return;
    sc_text_add(t,
                "\nprobability of being the fastest, of %u rows in %u sets "
                "that differ only in parallelization: Brier score %.4f "
                "(equal probabilities %.4f); regret of the choice %.2f %% "
                "expected, %.2f %% measured\n%12s%8s%10s%10s\n",
                p->rows, p->sets, p->squares / p->rows, p->blind / p->rows,
                100 * p->regret_stated / p->sets, 100 * p->regret / p->sets,
                "stated %", "rows", "mean %", "fastest %");
    for (uint32_t b = 0; b < SC_PICK_BINS; b++) {
        if (!p->of_bin[b]) continue;
        sc_text_add(t, "%6.0f-%-5.0f%8u%10.1f%10.1f\n", 100 * sc_pick_edges[b],
                    100 * sc_pick_edges[b + 1], p->of_bin[b],
                    100 * p->stated[b] / p->of_bin[b],
                    100 * p->best[b] / p->of_bin[b]);
    }
}
