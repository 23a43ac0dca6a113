/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stages.c - cuts the layers into virtual stages by the program's rule, by a
 * strategy's list, or so that the slowest stage is as fast as possible; and
 * finds the kind of device of each stage.
 */
#include "plan/internal.h"
#include "plan/plan_strategy.h"
#include "plan/program.h"

#include <string.h>

typedef struct cutter {
    const sc_plan *p;
    sc_arena *a;
    sc_err *err;
    uint32_t n;       /* virtual stages */
    uint32_t *blocks; /* [n] of each virtual stage */
} cutter;

static uint32_t n_blocks(const cutter *c)
{
    return c->p->run.model->n_blocks;
}

/* ---- the program's rule ---------------------------------------------- */

double plan_head_blocks(const sc_net *g)
{
    double block = 0, head = 0;
    const char *first = NULL;
    for (uint32_t i = 0; i < g->n_ops; i++) {
        const sc_net_op *o = &g->op[i];
        double sum = 0;
        for (uint32_t k = 0; k < o->n_weight; k++) {
            const sc_tensor *w = &g->tensor[o->weight[k].tensor];
            if (w->n_dim > 1) sum += sc_tensor_elements(w, 1);
        }
        bool inside = infer_in_block(o->path);
        if (inside && !first) first = o->path;
        if (inside && infer_same_unit(first, o->path)) block += sum;
        head = first && !inside ? head + sum : 0;
    }
    return block > 0 ? head / block : 0;
}

/* Norm, head, cast to FP32 and loss of nanotron's build_model(). */
#define PARTS_BEHIND 4

/* Assigns embedding, blocks and the parts behind them in order.  After a part
 * at which the cost of all so far reaches that of a stage and those before it,
 * the next stage begins, so that a part that costs more than one stage leaves
 * no stage out.  (build_model() says "exceeds", but memory and time of its runs
 * show that a tie ends a stage.)  Returns the number of stages behind the loss.  `each` may be
 * NULL. */
static uint32_t cut_by_cost(double head, uint32_t blocks, uint32_t stages,
                            uint32_t *each)
{
    double all = blocks + head, cost = 0;
    uint32_t at = 0, last = 0;
    for (uint32_t v = 0; v < stages && each; v++) each[v] = 0;
    for (uint32_t u = 0; u < 1 + blocks + PARTS_BEHIND; u++) {
        bool block = u > 0 && u <= blocks;
        if (block && each) each[at]++;
        if (block) cost++;
        if (u == blocks + 2) cost = all;
        last = at;
        if (at + 1 < stages && cost >= all * (at + 1) / stages) at++;
    }
    return stages - 1 - last;
}

void plan_even_cut(const sc_software *sw, bool ends, double head,
                   uint32_t blocks, uint32_t stages, uint32_t *each)
{
    uint32_t most = (blocks + stages - 1) / stages, left = blocks;
    if (ends && sw->stage_split == SC_SPLIT_COST) {
        (void)cut_by_cost(head, blocks, stages, each);
        return;
    }
    ends = ends && blocks % stages != 0 && (blocks + 2) % stages == 0;
    for (uint32_t v = 0; v < stages; left -= each[v++]) {
        uint32_t n = stages - v, room = left - n + 1;
        if (ends)
            each[v] = (blocks + 2) / stages - (v == 0) - (n == 1);
        else if (sw->stage_split == SC_SPLIT_CEIL)
            each[v] = room < most ? room : most;
        else
            each[v] = (left + n - 1) / n;
    }
}

uint32_t sc_run_idle_stages(const sc_run *r)
{
    const sc_net *g = r->model->kinds;
    uint32_t stages = sc_run_stages(r);
    if (!g || r->sw->stage_split != SC_SPLIT_COST || stages < 2) return 0;
    return cut_by_cost(plan_head_blocks(g), r->model->n_blocks, stages, NULL);
}

static void by_rule(cutter *c)
{
    const sc_net *g = c->p->run.model->kinds;
    bool counts = g && c->p->run.sw->stage_split == SC_SPLIT_COST;
    double head = counts ? plan_head_blocks(g) : 0;
    plan_even_cut(c->p->run.sw, true, head, n_blocks(c), c->n, c->blocks);
}

/* ---- as listed ------------------------------------------------------- */

/* The first block of a stage. */
static sc_status begins(cutter *c, const sc_strategy_cut *cut, uint32_t *out)
{
    const sc_model *m = c->p->run.model;
    for (*out = 0; *out < m->n_blocks; ++*out) {
        char path[128];
        const sc_layer *l = &m->layer[m->order[*out]];
        sc_kind_path(l, *out, &m->kinds->op[l->first], path, sizeof path);
        if (sc_rule_matches(cut->path, path)) return SC_OK;
    }
    return sc_error(c->err, SC_EINPUT, SC_C_UNKNOWN_NAME, cut->pos,
                    "stages begin with a block: layers.12",
                    "there is no block \"%s\"", cut->path);
}

static sc_status by_paths(cutter *c, const sc_strategy *s)
{
    uint32_t from = 0;
    if (s->n_cuts + 1 != c->n)
        return sc_error(c->err, SC_EINPUT, SC_C_CONFLICT, s->cut[0].pos, NULL,
                        "%u cuts make %u stages instead of %u", s->n_cuts,
                        s->n_cuts + 1, c->n);
    for (uint32_t i = 0; i < s->n_cuts; i++) {
        uint32_t at;
        SC_TRY(begins(c, &s->cut[i], &at));
        if (at < from || (at == from && i > 0))
            return sc_error(c->err, SC_EINPUT, SC_C_CONFLICT, s->cut[i].pos,
                            "write cuts in the order of the model",
                            "the stage before \"%s\" would be empty",
                            s->cut[i].path);
        c->blocks[i] = at - from;
        from = at;
    }
    c->blocks[c->n - 1] = n_blocks(c) - from;
    return SC_OK;
}

static sc_status by_list(cutter *c, const sc_strategy *s)
{
    uint64_t sum = 0;
    if (s->n_cuts == 0) {
        by_rule(c);
        return SC_OK;
    }
    if (s->cut[0].path) return by_paths(c, s);
    for (uint32_t i = 0; i < s->n_cuts; i++) sum += s->cut[i].blocks;
    if (s->n_cuts != c->n)
        return sc_error(c->err, SC_EINPUT, SC_C_CONFLICT, s->cut[0].pos, NULL,
                        "the cuts are for %u stages, but there are %u",
                        s->n_cuts, c->n);
    if (sum != n_blocks(c))
        return sc_error(c->err, SC_EINPUT, SC_C_CONFLICT, s->cut[0].pos, NULL,
                        "the cuts add up to %llu blocks, but the model has %u",
                        (unsigned long long)sum, n_blocks(c));
    for (uint32_t v = 0; v < c->n; v++) c->blocks[v] = s->cut[v].blocks;
    return SC_OK;
}

/* ---- balanced -------------------------------------------------------- */

/* Seconds of the first `n` blocks on the device of each stage. */
typedef struct balance {
    cutter *c;
    double *sum;    /* [kinds][blocks + 1] */
    double *best;   /* [n + 1][blocks + 1] time of the slowest stage if the
                       first stages hold the first blocks */
    uint32_t *from; /* [n + 1][blocks + 1] blocks before the last such stage */
} balance;

/* A DualPipe stage runs on two devices; returns the time of the slower one. */
static double stage_seconds(const balance *x, uint32_t v, uint32_t i,
                            uint32_t j)
{
    const sc_plan *p = x->c->p;
    uint32_t row = n_blocks(x->c) + 1, layers = p->run.model->n_layers;
    uint32_t all = sc_run_segments(&p->run);
    uint32_t last_mb = p->run.ga - 1;
    double most = 0;
    for (int k = 0; k < 2; k++) {
        uint32_t dev = sc_run_device(&p->run, v, k ? last_mb : 0);
        size_t kind = p->kind ? p->kind[dev] : 0;
        const double *s = &p->layer_s[kind * all];
        double t = x->sum[kind * row + j] - x->sum[kind * row + i];
        if (v == 0) t += s[0];
        if (v == x->c->n - 1) t += s[layers - 1];
        if (t > most) most = t;
    }
    return most;
}

static void fill(balance *x, uint32_t v, uint32_t least)
{
    uint32_t all = n_blocks(x->c), row = all + 1;
    for (uint32_t j = 0; j <= all; j++) {
        double *b = &x->best[(v + 1) * row + j];
        *b = -1;
        for (uint32_t i = 0; i + least <= j; i++) {
            double before = x->best[v * row + i];
            double t = stage_seconds(x, v, i, j);
            if (before < 0) continue;
            if (before > t) t = before;
            if (*b >= 0 && t >= *b) continue;
            *b = t;
            x->from[(v + 1) * row + j] = i;
        }
    }
}

/* Minimizes the time of the slowest stage by dynamic programming over blocks.
 * The end stages may hold only the embedding or the head. */
static sc_status balanced(cutter *c)
{
    const sc_plan *p = c->p;
    const sc_model *m = p->run.model;
    uint32_t row = n_blocks(c) + 1, kinds = p->n_kinds ? p->n_kinds : 1;
    uint32_t all = sc_run_segments(&p->run);
    sc_arena_mark mark = sc_arena_save(c->a);
    balance x = {c, SC_NEW_N(c->a, double, (size_t)row *kinds),
                 SC_NEW_N(c->a, double, (size_t)row *(c->n + 1)),
                 SC_NEW_N(c->a, uint32_t, (size_t)row * (c->n + 1))};
    if (!x.sum || !x.best || !x.from) return sc_error_nomem(c->err);
    for (uint32_t k = 0; k < kinds; k++)
        for (uint32_t i = 0; i + 1 < row; i++)
            x.sum[k * row + i + 1] =
                x.sum[k * row + i] + p->layer_s[k * all + m->order[i]];
    for (uint32_t j = 1; j < row; j++) x.best[j] = -1;
    for (uint32_t v = 0; v < c->n; v++)
        fill(&x, v, c->n > 1 && (v == 0 || v + 1 == c->n) ? 0 : 1);
    uint32_t at = row - 1;
    if (x.best[c->n * row + at] < 0)
        return sc_error(c->err, SC_EINPUT, SC_C_RANGE, sc_pos_file("--pp"),
                        NULL, "%u stages are too many for %u layers", c->n,
                        n_blocks(c));
    for (uint32_t v = c->n; v > 0; v--) {
        uint32_t i = x.from[v * row + at];
        c->blocks[v - 1] = at - i;
        at = i;
    }
    sc_arena_restore(c->a, mark);
    return SC_OK;
}

/* Stages on devices of different speed are balanced unless they are listed. */
static bool wants_balance(const sc_plan *p)
{
    const sc_strategy *s = p->run.strategy;
    if (s && s->cuts != SC_CUT_EVEN) return s->cuts == SC_CUT_BALANCED;
    for (uint32_t d = 1; p->kind && d < p->run.size[SC_AX_PP]; d++)
        if (p->kind[d] != p->kind[0]) return true;
    return false;
}

sc_status plan_cut_stages(sc_plan *p, sc_arena *a, sc_err *err)
{
    const sc_run *r = &p->run;
    const sc_strategy *s = r->strategy;
    uint32_t n = sc_run_stages(r), at = 0;
    uint32_t layers = r->model->n_layers, all = sc_run_segments(r);
    struct sc_stage *st = SC_NEW_N(a, struct sc_stage, n);
    cutter c = {.p = p, .a = a, .err = err, .n = n};
    c.blocks = SC_NEW_N(a, uint32_t, n);
    if (!st || !c.blocks) return sc_error_nomem(err);
    if (wants_balance(p)) {
        SC_TRY(plan_layer_seconds(p, a, err));
        SC_TRY(balanced(&c));
    } else if (s && s->cuts == SC_CUT_LIST) {
        SC_TRY(by_list(&c, s));
    } else {
        by_rule(&c);
    }
    p->uneven = wants_balance(p) || (s && s->cuts == SC_CUT_LIST);
    for (uint32_t v = 0; v < n; v++) {
        st[v] = (struct sc_stage){
            .blocks = c.blocks[v], .embed = v == 0, .head = v == n - 1};
        st[v].n[0] = st[v].embed;
        st[v].n[layers - 1] = st[v].head;
        for (uint32_t i = 0; i < c.blocks[v]; i++, at++) {
            bool kept = layers < all && i >= r->rc_first;
            st[v].n[r->model->order[at] + (kept ? layers : 0)]++;
        }
    }
    p->stage = st;
    p->n_stages = n;
    return SC_OK;
}
