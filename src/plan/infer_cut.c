/* SPDX-License-Identifier: Apache-2.0 */
/*
 * infer_cut.c - cuts the network into pipeline stages, and stages into segments
 * that are recomputed.
 *
 * A network is cut between units: blocks (paths up to the first number:
 * "layers.3", "layer1.0") and single modules, which stay with the block before
 * them.
 */
#include "plan/infer.h"
#include "plan/internal.h"

#include <string.h>

typedef struct unit {
    uint32_t first; /* operator */
    bool block;
} unit;

typedef struct cut {
    inference *f;
    uint32_t n;
    unit *unit;   /* [n] */
    uint32_t *at; /* [n_stages] operator that begins each */
} cut;

static sc_status find_units(cut *c)
{
    const sc_net *g = c->f->g;
    c->unit = SC_NEW_N(c->f->a, unit, g->n_ops);
    c->at = SC_NEW_N(c->f->a, uint32_t, c->f->n_stages);
    if (!c->unit || !c->at) return sc_error_nomem(c->f->err);
    for (uint32_t i = 0; i < g->n_ops; i++) {
        if (i > 0 && c->f->unit[i] == c->f->unit[i - 1]) continue;
        c->unit[c->n++] =
            (unit){.first = i, .block = infer_in_block(g->op[i].path)};
    }
    return SC_OK;
}

static sc_status too_few(const cut *c, uint32_t blocks)
{
    return sc_error(c->f->err, SC_EINPUT, SC_C_RANGE, c->f->s->mesh_pos, NULL,
                    "%u pipeline stages are too many for %u blocks of %s",
                    c->f->n_stages, blocks, c->f->g->name);
}

/* Records that stage `stage` begins at unit `u`.  Stages are cut in order. */
static void begin(cut *c, uint32_t stage, uint32_t u)
{
    c->at[stage] = c->unit[u].first;
}

/* Sets the stage of each operator. */
static void number_stages(cut *c)
{
    const inference *f = c->f;
    for (uint32_t i = 0, stage = 0; i < f->g->n_ops; i++) {
        while (stage + 1 < f->n_stages && i >= c->at[stage + 1]) stage++;
        f->node[i].stage = stage;
    }
}

/* Cuts stages with the given numbers of blocks. */
static sc_status by_blocks(cut *c, const uint32_t *blocks, bool single)
{
    uint32_t stage = 0, in = 0, left = 0;
    for (uint32_t s = 0; s < c->f->n_stages; s++) left += blocks[s];
    for (uint32_t u = 0; u < c->n; u++) {
        bool counts = c->unit[u].block || single;
        /* The last stages may hold nothing and the modules after all blocks. */
        if (!counts && (left > 0 || single)) continue;
        while ((!counts || in == blocks[stage]) && stage + 1 < c->f->n_stages) {
            in = 0;
            begin(c, ++stage, u);
        }
        in += counts;
        left -= counts;
    }
    for (uint32_t s = stage + 1; s < c->f->n_stages; s++)
        c->at[s] = c->f->g->n_ops;
    number_stages(c);
    return SC_OK;
}

static sc_status even(cut *c)
{
    uint32_t blocks = 0, stages = c->f->n_stages;
    for (uint32_t u = 0; u < c->n; u++) blocks += c->unit[u].block;
    bool empty = c->f->job->sw->stage_split == SC_SPLIT_COST;
    bool single = blocks < stages && !empty;
    bool ends = !single && !c->unit[0].block && !c->unit[c->n - 1].block;
    if (single) blocks = c->n;
    if (blocks < stages && !(empty && ends)) return too_few(c, blocks);
    uint32_t *each = SC_NEW_N(c->f->a, uint32_t, stages);
    if (!each) return sc_error_nomem(c->f->err);
    plan_even_cut(c->f->job->sw, ends, plan_head_blocks(c->f->g), blocks,
                  stages, each);
    return by_blocks(c, each, single);
}

static sc_status by_path(cut *c, uint32_t stage, const sc_strategy_cut *at)
{
    const sc_net *g = c->f->g;
    uint32_t i = 0;
    while (i < g->n_ops && !sc_rule_matches(at->path, g->op[i].path)) i++;
    if (i == g->n_ops)
        return sc_error(
            c->f->err, SC_EINPUT, SC_C_UNKNOWN_NAME, at->pos, NULL,
            "there is no operator '%s', at which a stage could begin",
            at->path);
    if (i == 0 || c->f->node[i].stage != stage - 1 ||
        (stage > 1 && c->f->node[i - 1].stage < stage - 1))
        return sc_error(c->f->err, SC_EINPUT, SC_C_RANGE, at->pos,
                        "write cuts in the order of the model",
                        "the stage before '%s' would be empty", at->path);
    for (; i < g->n_ops; i++) c->f->node[i].stage = stage;
    return SC_OK;
}

static sc_status by_list(cut *c)
{
    const sc_strategy *s = c->f->s;
    bool paths = s->n_cuts > 0 && s->cut[0].path;
    uint32_t want = c->f->n_stages - (paths ? 1 : 0);
    if (s->n_cuts != want)
        return sc_error(c->f->err, SC_EINPUT, SC_C_CONFLICT,
                        s->n_cuts ? s->cut[0].pos : s->mesh_pos, NULL,
                        "there are %u cuts; %u stages need %u", s->n_cuts,
                        c->f->n_stages, want);
    if (paths) {
        for (uint32_t i = 0; i < s->n_cuts; i++)
            SC_TRY(by_path(c, i + 1, &s->cut[i]));
        return SC_OK;
    }
    uint32_t blocks = 0, sum = 0;
    uint32_t *each = SC_NEW_N(c->f->a, uint32_t, s->n_cuts);
    if (!each) return sc_error_nomem(c->f->err);
    for (uint32_t u = 0; u < c->n; u++) blocks += c->unit[u].block;
    for (uint32_t i = 0; i < s->n_cuts; i++) sum += each[i] = s->cut[i].blocks;
    if (sum != blocks)
        return sc_error(c->f->err, SC_EINPUT, SC_C_CONFLICT, s->cut[0].pos,
                        NULL, "the cuts add up to %u blocks, but %s has %u",
                        sum, c->f->g->name, blocks);
    return by_blocks(c, each, false);
}

/* ---- balanced -------------------------------------------------------- */

/* Running sums of the units' seconds on the devices of stage `stage`. */
static sc_status price_units(cut *c, uint32_t stage, double *sum)
{
    inference *f = c->f;
    for (uint32_t op = 0; op < f->g->n_ops; op++) f->node[op].stage = stage;
    for (uint32_t u = 0; u < c->n; u++) {
        uint32_t end = u + 1 < c->n ? c->unit[u + 1].first : f->g->n_ops;
        double each = 0;
        for (uint32_t op = c->unit[u].first; op < end; op++) {
            sc_price p;
            SC_TRY(infer_compute(f, op, SC_PASS_FWD, 0, 1, &p));
            each += p.seconds;
            if (!f->kept[f->g->op[op].out.tensor].learns) continue;
            SC_TRY(infer_compute(f, op, SC_PASS_BWD, 0, 1, &p));
            each += p.seconds;
        }
        sum[u + 1] = sum[u] + each;
    }
    for (uint32_t op = 0; op < f->g->n_ops; op++) f->node[op].stage = 0;
    return SC_OK;
}

/* Prices the units for each stage; stages on equal devices share an array. */
static sc_status price_stages(cut *c, double **sum)
{
    inference *f = c->f;
    for (uint32_t s = 0; s < f->n_stages; s++) {
        uint32_t equal = 0;
        while (infer_slowest(f, equal) != infer_slowest(f, s)) equal++;
        sum[s] = sum[equal];
        if (equal < s) continue;
        sum[s] = SC_NEW_N(f->a, double, (size_t)c->n + 1);
        if (!sum[s]) return sc_error_nomem(f->err);
        SC_TRY(price_units(c, s, sum[s]));
    }
    return SC_OK;
}

/* Minimal time of the slowest of `s` stages that hold the first `i` units:
 * best[s][i] = min over j of max(best[s - 1][j], sum of j .. i). */
static sc_status balanced(cut *c)
{
    inference *f = c->f;
    uint32_t n = c->n, stages = f->n_stages;
    if (n < stages) return too_few(c, n);
    size_t row = (size_t)n + 1;
    double **sum = SC_NEW_N(f->a, double *, stages);
    double *best = SC_NEW_N(f->a, double, row *(stages + 1));
    uint32_t *from = SC_NEW_N(f->a, uint32_t, row * (stages + 1));
    if (!sum || !best || !from) return sc_error_nomem(f->err);
    SC_TRY(price_stages(c, sum));
    for (uint32_t i = 0; i <= n; i++) best[row + i] = sum[0][i];
    for (uint32_t s = 2; s <= stages; s++)
        for (uint32_t i = s; i <= n; i++) {
            double *b = &best[s * row + i];
            *b = -1;
            for (uint32_t j = i - 1; j + 1 >= s; j--) {
                double last = sum[s - 1][i] - sum[s - 1][j],
                       prev = best[(s - 1) * row + j];
                double worst = last > prev ? last : prev;
                if (*b >= 0 && worst >= *b && last > *b) break;
                if (*b < 0 || worst < *b) {
                    *b = worst;
                    from[s * row + i] = j;
                }
            }
        }
    uint32_t *at = SC_NEW_N(f->a, uint32_t, stages + 1);
    if (!at) return sc_error_nomem(f->err);
    for (uint32_t s = stages, i = n; s > 1; s--)
        at[s - 1] = i = from[s * row + i];
    for (uint32_t s = 1; s < stages; s++) begin(c, s, at[s]);
    number_stages(c);
    return SC_OK;
}

/* ---- by rules -------------------------------------------------------- */

/* Units that a rule distributes evenly, in order, over the stages of a pool. */
typedef struct dealt {
    uint32_t units, seen; /* all units; those that were reached so far */
    uint32_t last;        /* last operator; SC_NONE */
} dealt;

static uint32_t pool_stage(const inference *f, const char *name, const dealt *d)
{
    uint32_t first;
    const sc_strategy_pool *p = infer_pool(f, name, &first);
    uint64_t n = p ? p->stages : 1;
    return first + (uint32_t)((d->seen - 1) * n / d->units);
}

/* The rule that assigns a stage to an operator; NULL: none. */
static const sc_strategy_rule *placed(const inference *f, uint32_t op,
                                      dealt *all, uint32_t *stage)
{
    const infer_node *n = &f->node[op];
    for (uint32_t i = n->n_match; f->pp >= 0 && i-- > 0;) {
        const sc_strategy_rule *r = f->rule[n->match[i]].r;
        if (r->pool) {
            dealt *d = &all[n->match[i]];
            d->seen += d->last == SC_NONE || f->unit[d->last] != f->unit[op];
            d->last = op;
            if (d->units) *stage = pool_stage(f, r->pool, d);
            return r;
        }
        for (uint32_t k = 0; k < r->n_at; k++)
            if (r->at[k].axis == (uint32_t)f->pp) {
                *stage = r->at[k].coord;
                return r;
            }
    }
    return NULL;
}

/* The last stage that computes an input of the operator. */
static uint32_t made_on(const inference *f, uint32_t op)
{
    uint32_t stage = 0;
    for (uint32_t k = 0; k < f->g->op[op].n_in; k++) {
        uint32_t from = f->g->tensor[f->g->op[op].in[k].tensor].op;
        if (from != SC_NONE && f->node[from].stage > stage)
            stage = f->node[from].stage;
    }
    return stage;
}

/* Reports a stage without operators, because that is surely a mistake. */
static sc_status none_empty(const inference *f)
{
    uint32_t *ops = SC_NEW_N(f->a, uint32_t, f->n_stages);
    if (!ops) return sc_error_nomem(f->err);
    for (uint32_t op = 0; op < f->g->n_ops; op++) ops[f->node[op].stage]++;
    for (uint32_t s = 0; s < f->n_stages; s++)
        if (ops[s] == 0)
            return sc_error(f->err, SC_EINPUT, SC_C_CONFLICT, f->s->mesh_pos,
                            "put operators on it, or make the pipeline shorter",
                            "rules leave stage %u without operators", s);
    return SC_OK;
}

/* Assigns stages by rules.  Other operators stay on the stage of the one before
 * them, unless one of their inputs is made on a later stage. */
static sc_status by_rules(inference *f, bool *any)
{
    uint32_t stage = 0;
    bool places = false;
    for (uint32_t i = 0; i < f->n_rules; i++)
        places |= f->rule[i].r->pool || f->rule[i].r->n_at;
    if (!places) return SC_OK;
    dealt *all = SC_NEW_N(f->a, dealt, f->n_rules);
    if (!all) return sc_error_nomem(f->err);
    for (uint32_t i = 0; i < f->n_rules; i++) all[i].last = SC_NONE;
    for (uint32_t op = 0; op < f->g->n_ops; op++)
        *any |= placed(f, op, all, &stage) != NULL;
    f->p->branches = *any;
    for (uint32_t i = 0; i < f->n_rules; i++)
        all[i] = (dealt){.units = all[i].seen, .last = SC_NONE};
    stage = 0;
    for (uint32_t op = 0; *any && op < f->g->n_ops; op++) {
        const sc_strategy_rule *r = placed(f, op, all, &stage);
        if (!r && made_on(f, op) > stage) stage = made_on(f, op);
        f->node[op].stage = stage;
        for (uint32_t k = 0; r && k < f->g->op[op].n_in; k++) {
            uint32_t from = f->g->tensor[f->g->op[op].in[k].tensor].op;
            if (from == SC_NONE || f->node[from].stage <= stage) continue;
            return sc_error(f->err, SC_EINPUT, SC_C_CONFLICT, r->pos,
                            "stages must follow the order of the model",
                            "rule '%s' (%s) puts %s on stage %u, but its input "
                            "%s is made on a later stage",
                            r->match, r->origin, f->g->op[op].path, stage,
                            f->g->op[from].path);
        }
    }
    return *any ? none_empty(f) : SC_OK;
}

/* ---- recomputation ----------------------------------------------------- */

infer_rule *infer_recompute_rule(const inference *f, uint32_t op)
{
    const infer_node *n = &f->node[op];
    for (uint32_t i = n->n_match; i-- > 0;) {
        infer_rule *g = &f->rule[n->match[i]];
        if (g->r->recompute >= 0) return g->r->recompute ? g : NULL;
    }
    return NULL;
}

/* How far a rule has counted the units that it recomputes in a stage. */
typedef struct passed {
    uint32_t last;  /* last operator + 1; 0: none */
    uint32_t place; /* number of the rule's earlier units in the stage */
} passed;

static uint32_t place_of(const inference *f, passed *p, uint32_t op)
{
    uint32_t last = p->last - 1;
    bool same = p->last && f->node[last].stage == f->node[op].stage;
    if (!same)
        p->place = 0;
    else if (f->unit[last] != f->unit[op])
        p->place++;
    p->last = op + 1;
    return p->place;
}

/* Groups operators that are recomputed together.  These are neighbours in one
 * unit and stage, or in as many units as their rule groups. */
static sc_status segments(inference *f)
{
    uint32_t n = 0, group = 0;
    const infer_rule *before = NULL;
    passed *all = SC_NEW_N(f->a, passed, f->n_rules);
    if (!all) return sc_error_nomem(f->err);
    for (uint32_t op = 0; op < f->g->n_ops; op++) {
        const infer_rule *g =
            f->job->forward_only ? NULL : infer_recompute_rule(f, op);
        uint32_t place = g ? place_of(f, &all[g - f->rule], op) : 0;
        if (g && g->r->rc_first && place >= g->r->rc_first) g = NULL;
        uint32_t now = g && g->r->rc_group ? place / g->r->rc_group : place;
        bool joins = g && before &&
                     f->node[op - 1].stage == f->node[op].stage &&
                     (f->unit[op - 1] == f->unit[op] ||
                      (g == before && g->r->rc_group && now == group));
        if (g) f->node[op].segment = joins ? n - 1 : n++;
        before = g;
        group = now;
    }
    return SC_OK;
}

sc_status infer_cut(inference *f)
{
    cut c = {.f = f};
    bool ruled = false;
    SC_TRY(by_rules(f, &ruled));
    if (f->n_stages > 1 && !ruled) {
        SC_TRY(find_units(&c));
        switch (f->s->cuts) {
        case SC_CUT_EVEN: SC_TRY(even(&c)); break;
        case SC_CUT_LIST: SC_TRY(by_list(&c)); break;
        case SC_CUT_BALANCED: SC_TRY(balanced(&c)); break;
        }
    }
    SC_TRY(segments(f));
    uint32_t *stage = SC_NEW_N(f->a, uint32_t, f->g->n_ops);
    if (!stage) return sc_error_nomem(f->err);
    for (uint32_t op = 0; op < f->g->n_ops; op++) stage[op] = f->node[op].stage;
    f->p->stage_of = stage;
    f->p->n_stages = f->n_stages;
    return SC_OK;
}
