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

const double sc_pair_edges[SC_PAIR_BINS + 1] = {0.5,  0.6,  0.7,  0.8, 0.9,
                                                0.95, 0.98, 0.99, 1};

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

static uint32_t bin_of(double p, const double *edges, uint32_t n)
{
    uint32_t b = 0;
    while (b + 1 < n && p >= edges[b + 1]) b++;
    return b;
}

/* `won` is 1 for the row that really was the fastest; equals share it. */
static void count(sc_valid_pick *p, double stated, double won, uint32_t m)
{
    uint32_t b = bin_of(stated, sc_pick_edges, SC_PICK_BINS);
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

/* The pair of row `i` and row `k` of the set. */
static sc_status one_pair(const study *x, const sc_cost *cost, uint32_t i,
                          uint32_t k, sc_valid_pick *p, sc_err *err)
{
    const sc_pick_opts o = {.noise = SC_ANCHOR_NOISE};
    sc_pick_row two[2] = {x->row[i], x->row[k]};
    sc_pick pick;
    SC_TRY(sc_pick_judge(cost, two, 2, &o, x->a, &pick, err));
    uint32_t first = two[1].p_best > two[0].p_best;
    double stated = two[first].p_best;
    double behind =
        x->m[first ? i : k]->row->median - x->m[first ? k : i]->row->median;
    double right = behind > 0 ? 1 : behind < 0 ? 0 : 0.5;
    uint32_t b = bin_of(stated, sc_pair_edges, SC_PAIR_BINS);
    p->pairs++;
    p->pair_squares += (stated - right) * (stated - right);
    p->of_pair[b]++;
    p->pair_stated[b] += stated;
    p->pair_right[b] += right;
    return SC_OK;
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
    sum->pairs += p->pairs;
    sum->pair_squares += p->pair_squares;
    for (uint32_t b = 0; b < SC_PAIR_BINS; b++) {
        sum->of_pair[b] += p->of_pair[b];
        sum->pair_stated[b] += p->pair_stated[b];
        sum->pair_right[b] += p->pair_right[b];
    }
}

static sc_status one_set(study *x, uint32_t i, sc_valid_pick *p, sc_err *err)
{
    const sc_pick_opts o = {.noise = SC_ANCHOR_NOISE};
    uint32_t m = collect(x, i);
    sc_pick pick;
    sc_cost cost = *x->cost;
    cost.anchors = NULL;
    cost.cov = x->h[i].cov;
    if (x->h[i].effects) cost.held.effects = *x->h[i].effects;
    for (uint32_t k = 0; k < m; k++)
        for (uint32_t j = 0; j < k; j++)
            SC_TRY(one_pair(x, &cost, j, k, p, err));
    if (m < CALIB_ORDER_ROWS) return SC_OK;
    SC_TRY(sc_pick_judge(&cost, x->row, m, &o, x->a, &pick, err));
    judge(x, m, &pick, p);
    return SC_OK;
}

sc_status calib_judge_picks(const calib_held *h, uint32_t n,
                            const sc_cost *cost, sc_arena *a,
                            sc_validation *inout, sc_err *err)
{
    study x = {.h = h, .n = n, .cost = cost, .a = a};
    x.m = SC_NEW_N(a, const calib_held *, (size_t)n + 1);
    x.row = SC_NEW_N(a, sc_pick_row, (size_t)n + 1);
    if (!x.m || !x.row) return sc_error_nomem(err);
    inout->pick = (sc_valid_pick){0};
    for (uint32_t k = 0; k < inout->n_groups; k++) {
        sc_valid_group *g = &inout->groups[k];
        g->pick = (sc_valid_pick){0};
        if (g->device) continue;
        for (uint32_t i = 0; i < n; i++)
            if (strcmp(h[i].row->family, g->family) == 0)
                SC_TRY(one_set(&x, i, &g->pick, err));
        add(&inout->pick, &g->pick);
    }
    return SC_OK;
}

/* ---- printing ------------------------------------------------------------ */

static void pairs_json(const sc_valid_pick *p, sc_json *j)
{
    sc_json_key(j, "faster");
    sc_json_begin(j, '{');
    sc_json_put_uint(j, "pairs", p->pairs);
    sc_json_put_double(j, "brier", p->pair_squares / p->pairs);
    sc_json_put_double(j, "calibration_error", calib_pair_off(p));
    sc_json_key(j, "by_probability");
    sc_json_begin(j, '[');
    for (uint32_t b = 0; b < SC_PAIR_BINS; b++) {
        if (!p->of_pair[b]) continue;
        sc_json_begin(j, '{');
        sc_json_put_double(j, "from", sc_pair_edges[b]);
        sc_json_put_double(j, "to", sc_pair_edges[b + 1]);
        sc_json_put_uint(j, "pairs", p->of_pair[b]);
        sc_json_put_double(j, "stated", p->pair_stated[b] / p->of_pair[b]);
        sc_json_put_double(j, "faster", p->pair_right[b] / p->of_pair[b]);
        sc_json_end(j, '}');
    }
    sc_json_end(j, ']');
    sc_json_end(j, '}');
}

void calib_pick_json(const sc_valid_pick *p, sc_json *j)
{
    if (p->pairs) pairs_json(p, j);
    if (!p->sets) return;
    sc_json_key(j, "best");
    sc_json_begin(j, '{');
    sc_json_put_uint(j, "sets", p->sets);
    sc_json_put_uint(j, "rows", p->rows);
    sc_json_put_double(j, "brier", p->squares / p->rows);
    sc_json_put_double(j, "brier_of_equal", p->blind / p->rows);
    sc_json_put_double(j, "calibration_error", calib_pick_off(p));
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

/* The mean difference of what was stated and what was measured. */
static double off(uint32_t bins, const uint32_t *n, const double *stated,
                  const double *right)
{
    double sum = 0, all = 0;
    for (uint32_t b = 0; b < bins; b++) {
        sum += fabs(stated[b] - right[b]);
        all += n[b];
    }
    return all > 0 ? sum / all : NAN;
}

double calib_pick_off(const sc_valid_pick *p)
{
    return off(SC_PICK_BINS, p->of_bin, p->stated, p->best);
}

double calib_pair_off(const sc_valid_pick *p)
{
    return off(SC_PAIR_BINS, p->of_pair, p->pair_stated, p->pair_right);
}

static void pairs_text(const sc_valid_pick *p, sc_text *t)
{
    if (!p->pairs) return;
    sc_text_add(t,
                "\nprobability of being the faster of two, of %u pairs: Brier "
                "score %.4f; calibration error %.2f %%\n%12s%8s%10s%10s\n",
                p->pairs, p->pair_squares / p->pairs, 100 * calib_pair_off(p),
                "stated %", "pairs", "mean %", "faster %");
    for (uint32_t b = 0; b < SC_PAIR_BINS; b++) {
        if (!p->of_pair[b]) continue;
        sc_text_add(t, "%6.0f-%-5.0f%8u%10.1f%10.1f\n", 100 * sc_pair_edges[b],
                    100 * sc_pair_edges[b + 1], p->of_pair[b],
                    100 * p->pair_stated[b] / p->of_pair[b],
                    100 * p->pair_right[b] / p->of_pair[b]);
    }
}

static void best_text(const sc_valid_pick *p, sc_text *t)
{
    if (!p->sets) return;
    sc_text_add(t,
                "\nprobability of being the fastest, of %u rows in %u sets "
                "that differ only in parallelization: Brier score %.4f "
                "(equal probabilities %.4f); regret of the choice %.2f %% "
                "expected, %.2f %% measured; calibration error %.2f %%\n"
                "%12s%8s%10s%10s\n",
                p->rows, p->sets, p->squares / p->rows, p->blind / p->rows,
                100 * p->regret_stated / p->sets, 100 * p->regret / p->sets,
                100 * calib_pick_off(p), "stated %", "rows", "mean %",
                "fastest %");
    for (uint32_t b = 0; b < SC_PICK_BINS; b++) {
        if (!p->of_bin[b]) continue;
        sc_text_add(t, "%6.0f-%-5.0f%8u%10.1f%10.1f\n", 100 * sc_pick_edges[b],
                    100 * sc_pick_edges[b + 1], p->of_bin[b],
                    100 * p->stated[b] / p->of_bin[b],
                    100 * p->best[b] / p->of_bin[b]);
    }
}

void calib_pick_text(const sc_valid_pick *p, sc_text *t)
{
    best_text(p, t);
    pairs_text(p, t);
}
