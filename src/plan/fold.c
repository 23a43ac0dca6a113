/* SPDX-License-Identifier: Apache-2.0 */
/* fold.c - finds runs of equal instances and keeps four instances of each. */
#include "plan/fold.h"

#include <string.h>

/* The most layers or stages in one instance.  Several are needed if kinds
 * alternate, such as a dense layer and one with experts. */
#define PERIOD 16

/* A range of operators that may be an instance: a layer, or a stage. */
typedef struct range {
    uint32_t first, n;
    uint32_t kind; /* the same for ranges that are equal except for wiring; 0:
                      unique */
} range;

typedef struct folding {
    inference *f;
    bool stages;
    uint32_t n;
    range *range; /* [n] */
    infer_fold *out;
} folding;

/* ---- instances ---------------------------------------------------------- */

static bool begins(const folding *d, uint32_t op)
{
    const inference *f = d->f;
    if (op == 0) return true;
    if (f->node[op].stage != f->node[op - 1].stage) return true;
    return !d->stages && f->unit[op - 1] != f->unit[op];
}

static uint64_t mixed(uint64_t h, uint64_t x)
{
    h ^= x + UINT64_C(0x9e3779b97f4a7c15) + (h << 6) + (h >> 2);
    return h * UINT64_C(0xff51afd7ed558ccd);
}

/* Hash of a range; 0: it is unique. */
static uint64_t hash_of(const inference *f, const range *r)
{
    uint64_t h = r->n;
    for (uint32_t op = r->first; op < r->first + r->n; op++) {
        const infer_node *n = &f->node[op];
        if (n->rr_rule || n->rr_axes) return 0;
        h = mixed(h, infer_equal_op(f, op));
    }
    return h ? h : 1;
}

static bool same_node(const inference *f, uint32_t x, uint32_t y)
{
    const infer_node *a = &f->node[x], *b = &f->node[y];
    return infer_equal_op(f, x) == infer_equal_op(f, y) &&
           memcmp(a->split, b->split, f->g->op[x].n_iter * sizeof *a->split) ==
               0;
}

/* Whether `op` is recomputed together with the one before it. */
static bool joins(const inference *f, uint32_t op)
{
    return op > 0 && f->node[op].segment != SC_NONE &&
           f->node[op].segment == f->node[op - 1].segment;
}

static bool same_segments(const inference *f, uint32_t x, uint32_t y)
{
    return (f->node[x].segment == SC_NONE) == (f->node[y].segment == SC_NONE) &&
           joins(f, x) == joins(f, y);
}

/* Whether rules, units and recomputed segments of two ranges are equal. */
static bool same_range(const folding *d, const range *a, const range *b)
{
    const inference *f = d->f;
    if (a->n != b->n) return false;
    if (d->stages && infer_slowest(f, f->node[a->first].stage) !=
                         infer_slowest(f, f->node[b->first].stage))
        return false;
    for (uint32_t i = 0; i < a->n; i++)
        if (!same_node(f, a->first + i, b->first + i) ||
            !same_segments(f, a->first + i, b->first + i) ||
            f->unit[a->first + i] - f->unit[a->first] !=
                f->unit[b->first + i] - f->unit[b->first])
            return false;
    return true;
}

/* Gives equal ranges the same kind. */
static sc_status find_kinds(folding *d)
{
    sc_map known = {0};
    for (uint32_t i = 0; i < d->n; i++) {
        range *r = &d->range[i];
        uint64_t hash = hash_of(d->f, r);
        uint32_t at = 0, equal;
        if (!hash) continue;
        do equal = sc_map_next(&known, hash, &at);
        while (equal != SC_MAP_END && !same_range(d, &d->range[equal], r));
        if (equal == SC_MAP_END) {
            equal = i;
            if (!sc_map_add(&known, d->f->a, hash, i))
                return sc_error_nomem(d->f->err);
        }
        r->kind = equal + 1;
    }
    return SC_OK;
}

static sc_status find_ranges(folding *d)
{
    const inference *f = d->f;
    d->range = SC_NEW_N(f->a, range, f->g->n_ops);
    if (!d->range) return sc_error_nomem(f->err);
    for (uint32_t op = 0; op < f->g->n_ops; op++) {
        if (begins(d, op)) d->range[d->n++].first = op;
        d->range[d->n - 1].n++;
    }
    return find_kinds(d);
}

/* ---- wiring ------------------------------------------------------------- */

static bool same_tensor(const sc_tensor *a, const sc_tensor *b)
{
    if (a->kind != b->kind || a->n_dim != b->n_dim || a->bytes != b->bytes ||
        a->learns != b->learns)
        return false;
    for (uint32_t i = 0; i < a->n_dim; i++)
        if (a->dim[i].extent != b->dim[i].extent ||
            a->dim[i].batch != b->dim[i].batch ||
            strcmp(a->dim[i].name, b->dim[i].name) != 0)
            return false;
    return true;
}

/* Whether two inputs have the same place relative to their instances, or are
 * the same tensor and no tensor that is sent to every stage. */
static bool same_input(const folding *d, uint32_t x, uint32_t y, uint32_t a,
                       uint32_t b)
{
    const inference *f = d->f;
    const sc_tensor *s = &f->g->tensor[a], *t = &f->g->tensor[b];
    if (a == b)
        return s->kind == SC_TENSOR_INPUT ||
               (s->kind == SC_TENSOR_VALUE && !d->stages);
    return s->kind == SC_TENSOR_VALUE && t->kind == SC_TENSOR_VALUE &&
           y - x == t->op - s->op &&
           (infer_equal_op(f, s->op) == infer_equal_op(f, t->op) ||
            same_tensor(s, t));
}

static bool same_wiring(const folding *d, uint32_t x, uint32_t y)
{
    const inference *f = d->f;
    const sc_net_op *a = &f->g->op[x], *b = &f->g->op[y];
    const sc_tensor *t = f->g->tensor;
    for (uint32_t i = 0; i < a->n_in; i++)
        if (!same_input(d, x, y, a->in[i].tensor, b->in[i].tensor))
            return false;
    for (uint32_t i = 0; i < a->n_weight; i++)
        if (t[a->weight[i].tensor].op != x || t[b->weight[i].tensor].op != y)
            return false;
    return true;
}

static bool wired_alike(const folding *d, uint32_t i, uint32_t k)
{
    const range *a = &d->range[i], *b = &d->range[k];
    for (uint32_t n = 0; n < a->n; n++)
        if (!same_wiring(d, a->first + n, b->first + n)) return false;
    return true;
}

/* ---- runs --------------------------------------------------------------- */

static uint32_t stage_of(const folding *d, uint32_t i)
{
    return d->f->node[d->range[i].first].stage;
}

/* Number of ranges from `i` on that have the kind and stage of the range
 * `period` later. */
static uint32_t equal_ones(const folding *d, uint32_t i, uint32_t period)
{
    uint32_t n = 0, stage = d->stages ? period : 0;
    while (i + n + period < d->n && d->range[i + n].kind &&
           d->range[i + n].kind == d->range[i + n + period].kind &&
           stage_of(d, i + n) + stage == stage_of(d, i + n + period))
        n++;
    return n;
}

/* Whether range `i` is recomputed together with the one before it. */
static bool joins_range(const folding *d, uint32_t i)
{
    return i < d->n && joins(d->f, d->range[i].first);
}

/* Number of repeats of `period` ranges from `i` on.  None of them is recomputed
 * together with operators outside of the repeats. */
static uint32_t repeats(const folding *d, uint32_t i, uint32_t period)
{
    uint32_t n = equal_ones(d, i, period), wired = 0;
    if (1 + n / period < INFER_FOLD || joins_range(d, i)) return 1;
    while (wired < n && wired_alike(d, i + wired, i + wired + period)) wired++;
    uint32_t count = 1 + wired / period;
    return count - joins_range(d, i + count * period);
}

static uint32_t operators(const folding *d, uint32_t i, uint32_t period)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < period; k++) n += d->range[i + k].n;
    return n;
}

static sc_status find_runs(folding *d)
{
    infer_fold *out = d->out;
    out->run = SC_NEW_N(d->f->a, infer_run, d->n / INFER_FOLD + 1);
    if (!out->run) return sc_error_nomem(d->f->err);
    for (uint32_t i = 0; i < d->n;) {
        uint32_t best = 0, count = 0;
        for (uint32_t p = 1; p <= PERIOD && i + p < d->n; p++) {
            uint32_t n = repeats(d, i, p);
            if (n < INFER_FOLD || n * p <= count * best) continue;
            best = p;
            count = n;
            break; /* the shortest period with enough repeats */
        }
        if (best) {
            uint32_t op = d->range[i].first;
            out->run[out->n_runs++] =
                (infer_run){.n_ops = operators(d, i, best),
                            .count = count,
                            .whole = op,
                            .stage = d->f->node[op].stage,
                            .stage_step = d->stages ? best : 0};
        }
        i += best ? best * count : 1;
    }
    return SC_OK;
}

/* ---- the folded network ------------------------------------------------- */

/* The run and instance to which an operator of the whole network belongs; NULL
 * and 0: it is in none. */
static const infer_run *run_at(const infer_fold *d, uint32_t op,
                               uint32_t *instance)
{
    uint32_t next = 0;
    *instance = 0;
    SC_FIRST(next, d->n_runs, mid, d->run[mid].whole > op);
    const infer_run *r = next ? &d->run[next - 1] : NULL;
    if (!r || op >= r->whole + r->count * r->n_ops) return NULL;
    *instance = (op - r->whole) / r->n_ops;
    return r;
}

static bool dropped(const infer_run *r, uint32_t instance)
{
    return r && instance > INFER_REP_MID2 && instance + 1 < r->count;
}

/* The operator that represents `op` in the folded network; SC_NONE if `reader`
 * must read `op` itself. */
static uint32_t stands_for(const infer_fold *d, uint32_t op, uint32_t reader)
{
    uint32_t i, k;
    const infer_run *r = run_at(d, op, &i);
    if (!dropped(r, i)) return op;
    if (run_at(d, reader, &k) != r || k + 1 != r->count || i + 2 != r->count)
        return SC_NONE;
    return op - (i - INFER_REP_MID2) * r->n_ops;
}

/* Drops the run of `op`, because operators outside of it read inner results. */
static void drop_run(infer_fold *d, uint32_t op)
{
    uint32_t i;
    const infer_run *r = run_at(d, op, &i);
    size_t k = (size_t)(r - d->run), n = d->n_runs - k - 1;
    memmove(&d->run[k], &d->run[k + 1], n * sizeof *d->run);
    d->n_runs--;
}

/* The first dropped operator whose result `op` reads. */
static uint32_t reads_dropped(const inference *f, const infer_fold *d,
                              uint32_t op)
{
    for (uint32_t k = 0; k < f->g->op[op].n_in; k++) {
        const sc_tensor *t = &f->g->tensor[f->g->op[op].in[k].tensor];
        if (t->kind == SC_TENSOR_VALUE && stands_for(d, t->op, op) == SC_NONE)
            return t->op;
    }
    return SC_NONE;
}

/* The first operator from `op` on that is kept. */
static uint32_t left_from(const infer_fold *d, uint32_t op)
{
    uint32_t i;
    const infer_run *r = run_at(d, op, &i);
    return dropped(r, i) ? r->whole + (r->count - 1) * r->n_ops : op;
}

static void check_readers(const inference *f, infer_fold *d)
{
    for (uint32_t op = 0; op < f->g->n_ops && d->n_runs;) {
        uint32_t hidden = reads_dropped(f, d, op);
        if (hidden != SC_NONE) {
            drop_run(d, hidden);
            op = 0;
        } else {
            op = left_from(d, op + 1);
        }
    }
}

typedef struct copying {
    inference *f;
    infer_fold *d;
    uint32_t *op, *tensor; /* by number in the whole network: new number + 1 */
} copying;

static uint32_t copy_tensor(copying *c, uint32_t t)
{
    infer_fold *d = c->d;
    if (!c->tensor[t]) {
        d->g.tensor[d->g.n_tensors] = c->f->g->tensor[t];
        d->tensor[d->g.n_tensors] = t;
        c->tensor[t] = ++d->g.n_tensors;
    }
    return c->tensor[t] - 1;
}

static sc_status copy_ports(copying *c, sc_operand **ports, uint32_t n)
{
    sc_operand *out = SC_RAW_N(c->f->a, sc_operand, n);
    if (!out) return sc_error_nomem(c->f->err);
    if (n) memcpy(out, *ports, n * sizeof *out);
    *ports = out;
    return SC_OK;
}

static sc_status copy_op(copying *c, uint32_t op)
{
    const sc_net *g = c->f->g;
    infer_fold *d = c->d;
    uint32_t i, now = d->g.n_ops++;
    sc_net_op *o = &d->g.op[now];
    *o = g->op[op];
    SC_TRY(copy_ports(c, &o->in, o->n_in));
    SC_TRY(copy_ports(c, &o->weight, o->n_weight));
    for (uint32_t k = 0; k < o->n_in; k++) {
        uint32_t t = o->in[k].tensor;
        if (g->tensor[t].kind == SC_TENSOR_VALUE)
            t = g->op[stands_for(d, g->tensor[t].op, op)].out.tensor;
        o->in[k].tensor = copy_tensor(c, t);
    }
    for (uint32_t k = 0; k < o->n_weight; k++) {
        uint32_t t = o->weight[k].tensor;
        bool first = !c->tensor[t];
        o->weight[k].tensor = copy_tensor(c, t);
        if (first) d->g.tensor[o->weight[k].tensor].op = now;
    }
    o->out.tensor = copy_tensor(c, o->out.tensor);
    d->g.tensor[o->out.tensor].op = now;
    d->op[now] = op;
    const infer_run *r = run_at(d, op, &i);
    d->run_of[now] = r ? (uint32_t)(r - d->run) : SC_NONE;
    if (r && op == r->whole) d->run[r - d->run].first = now;
    return SC_OK;
}

static sc_status copy_all(inference *f, infer_fold *d)
{
    uint32_t n = f->g->n_ops;
    d->g = *f->g;
    d->g.n_ops = d->g.n_tensors = 0;
    d->g.op = SC_RAW_N(f->a, sc_net_op, n);
    d->g.tensor = SC_RAW_N(f->a, sc_tensor, f->g->n_tensors);
    d->op = SC_RAW_N(f->a, uint32_t, n);
    d->run_of = SC_RAW_N(f->a, uint32_t, n);
    d->tensor = SC_RAW_N(f->a, uint32_t, f->g->n_tensors);
    copying c = {.f = f, .d = d};
    c.tensor = SC_NEW_N(f->a, uint32_t, f->g->n_tensors);
    if (!d->g.op || !d->g.tensor || !d->op || !d->run_of || !d->tensor ||
        !c.tensor)
        return sc_error_nomem(f->err);
    for (uint32_t op = 0; op < n; op = left_from(d, op + 1))
        SC_TRY(copy_op(&c, op));
    return SC_OK;
}

sc_status infer_fold_make(inference *f, bool stages, infer_fold **out)
{
    infer_fold *d = SC_NEW(f->a, infer_fold);
    folding x = {.f = f, .stages = stages, .out = d};
    *out = NULL;
    if (!d) return sc_error_nomem(f->err);
    SC_TRY(find_ranges(&x));
    SC_TRY(find_runs(&x));
    check_readers(f, d);
    if (!d->n_runs) return SC_OK;
    SC_TRY(copy_all(f, d));
    *out = d;
    return SC_OK;
}

sc_status infer_fold_within(inference *f, const infer_fold *layers,
                            const infer_fold *stages, infer_fold **out)
{
    infer_fold *d = SC_NEW(f->a, infer_fold);
    if (!d) return sc_error_nomem(f->err);
    *d = *stages;
    d->n_runs = 0;
    d->run = SC_NEW_N(f->a, infer_run, layers->n_runs);
    d->run_of = SC_NEW_N(f->a, uint32_t, d->g.n_ops);
    if (!d->run || !d->run_of) return sc_error_nomem(f->err);
    for (uint32_t op = 0; op < d->g.n_ops; op++) {
        uint32_t was = stages->op[op], of = layers->run_of[was];
        d->run_of[op] = SC_NONE;
        if (of == SC_NONE) continue;
        if (was == layers->run[of].first) {
            d->run[d->n_runs] = layers->run[of];
            d->run[d->n_runs++].first = op;
        }
        d->run_of[op] = d->n_runs - 1;
    }
    *out = d;
    return SC_OK;
}

/* Numbers the kept stages in order, so that neighbours in the folded pipeline
 * have successive numbers. */
static sc_status number_stages(inference *i)
{
    uint32_t *as = SC_NEW_N(i->a, uint32_t, i->n_stages), n = 0;
    if (!as) return sc_error_nomem(i->err);
    for (uint32_t op = 0; op < i->g->n_ops; op++) {
        uint32_t stage = i->node[op].stage;
        if (op > 0 && stage != i->node[op - 1].stage) n++;
        as[stage] = n;
    }
    i->stage_as = as;
    return SC_OK;
}

static sc_status new_marks(inference *i)
{
    for (size_t k = 0; k < SC_COUNT(i->mark); k++) {
        i->mark[k] = SC_NEW_N(i->a, infer_mark, (size_t)i->g->n_ops + 1);
        if (!i->mark[k]) return sc_error_nomem(i->err);
    }
    return SC_OK;
}

sc_status infer_fold_infer(const inference *f, const infer_fold *fold,
                           inference *out)
{
    inference i = *f;
    i.g = &fold->g;
    i.node = SC_NEW_N(f->a, infer_node, fold->g.n_ops);
    i.prog = SC_NEW(f->a, net_program);
    i.p = SC_NEW(f->a, sc_net_plan);
    uint32_t *whole = SC_NEW_N(f->a, uint32_t, fold->g.n_ops);
    uint32_t *unit = SC_NEW_N(f->a, uint32_t, fold->g.n_ops);
    if (!i.node || !i.prog || !i.p || !whole || !unit)
        return sc_error_nomem(f->err);
    *i.p = *f->p;
    for (uint32_t op = 0; op < fold->g.n_ops; op++) {
        uint32_t was = fold->op[op];
        i.node[op] = f->node[was];
        whole[op] = f->whole_op ? f->whole_op[was] : was;
        unit[op] = f->unit[was];
    }
    i.whole_op = whole;
    i.unit = unit;
    SC_TRY(number_stages(&i));
    SC_TRY(new_marks(&i));
    *out = i;
    return SC_OK;
}
