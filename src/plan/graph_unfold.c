/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graph_unfold.c - writes the program of a folded network out for the whole.
 *
 * What an instance in the middle of a run refers to is told by the two that
 * were compiled: what both made themselves is each instance's own; what the
 * second has of the first comes from the instance before; what the first has
 * of the second comes from the instance behind; what both have in common is
 * common to all.
 */
#include "plan/graph_fold.h"

#include <string.h>

enum { LOOPS = 2, PARTS = GI_REPS * LOOPS };

/* Values, or items, in the folded program and in the whole one. */
typedef struct numbering {
    uint32_t *at;    /* [n] part that made it; SC_NONE: no run */
    uint32_t *now;   /* [n] of no run: its number in the whole program */
    uint32_t *from;  /* [n_runs * PARTS] first that each part made */
    uint32_t **copy; /* [n_runs * LOOPS][count] first of each instance in the
                        whole program */
} numbering;

enum { VALUES, ITEMS, NUMBERED };

/* A gradient whose lists are filled in at the end. */
typedef struct pending {
    uint32_t first, second; /* templates: gradients of the folded program */
    uint32_t run, instance;
} pending;

typedef struct unfold {
    infer *f;
    const gi_fold *d;
    const infer *from;
    numbering of[NUMBERED];
    pending *pending; /* [n_pending] */
    uint32_t n_pending, cap_pending;
    uint32_t *list; /* scratch */
    uint32_t cap_list;
} unfold;

/* Where something is emitted: an instance of a run, or outside. */
typedef struct context {
    uint32_t run, instance; /* run SC_NONE: outside */
} context;

static const gi_run *run_of(const unfold *u, const context *c)
{
    return &u->d->run[c->run];
}

static bool is_middle(const unfold *u, const context *c)
{
    return c->run != SC_NONE && c->instance > 0 &&
           c->instance + 1 < run_of(u, c)->count;
}

/* ---- references ------------------------------------------------------------
 */

/* Something in the folded program: a run's representative, or outside. */
typedef struct where {
    uint32_t run, rep;
} where;

static where where_part(uint32_t p)
{
    if (p == SC_NONE) return (where){SC_NONE, 0};
    return (where){p / PARTS, p % PARTS / LOOPS};
}

static where where_op(const unfold *u, uint32_t op)
{
    uint32_t r = u->d->run_of[op];
    if (r == SC_NONE) return (where){SC_NONE, 0};
    return (where){r, (op - u->d->run[r].first) / u->d->run[r].n_ops};
}

/* As seen from outside the run, or from its ends. */
static uint32_t seen(const gi_run *r, uint32_t rep)
{
    return rep < GI_REP_MID2 ? rep : r->count - (GI_REPS - rep);
}

/* Whether the templates agree on what they refer to; `same`: it is one thing,
 * `alike`: it is the same place of different instances. */
static bool agree(uint32_t run, where a, where b, bool same, bool alike)
{
    bool in = a.run == run, too = b.run == run;
    if (!in || !too) return in == too && same;
    if (a.rep == GI_REP_MID1 && b.rep == GI_REP_MID2) return alike;
    if (a.rep == GI_REP_FIRST && b.rep == GI_REP_MID1) return true;
    if (a.rep == GI_REP_MID2 && b.rep == GI_REP_LAST) return true;
    return same && a.rep == b.rep &&
           (a.rep == GI_REP_FIRST || a.rep == GI_REP_LAST);
}

/* The instance that a reference means, and whether the first template is the
 * one to follow. */
static uint32_t instance_of(const unfold *u, const context *c, where a, where b,
                            bool same, bool *first)
{
    const gi_run *r = &u->d->run[b.run];
    uint32_t i = c->instance;
    *first = false;
    if (b.run != c->run || !is_middle(u, c)) return seen(r, b.rep);
    *first = i == 1;
    if (i == 1) return a.rep == GI_REP_LAST ? r->count - 1 : a.rep;
    if (same) return seen(r, b.rep);
    if (b.rep == GI_REP_MID2) return i;
    if (b.rep == GI_REP_MID1) return i - 1;
    if (i + 2 == r->count) return seen(r, b.rep);
    *first = true;
    return i + 1;
}

/* Number in the whole program of what the templates refer to. */
static uint32_t made_ref(const unfold *u, const context *c, const numbering *o,
                         uint32_t v, uint32_t w)
{
    where a = where_part(o->at[v]), b = where_part(o->at[w]);
    bool first;
    if (b.run == SC_NONE) return o->now[w];
    uint32_t i = instance_of(u, c, a, b, v == w, &first), x = first ? v : w;
    uint32_t part = o->at[x];
    return o->copy[b.run * LOOPS + part % LOOPS][i] + (x - o->from[part]);
}

static uint32_t value_ref(const unfold *u, const context *c, uint32_t v,
                          uint32_t w)
{
    return made_ref(u, c, &u->of[VALUES], v, w);
}

static uint32_t op_ref(const unfold *u, const context *c, uint32_t v,
                       uint32_t w)
{
    where a = where_op(u, v), b = where_op(u, w);
    bool first;
    if (b.run == SC_NONE) return u->d->op[w];
    const gi_run *r = &u->d->run[b.run];
    uint32_t i = instance_of(u, c, a, b, v == w, &first), x = first ? v : w;
    return r->whole + i * r->n_ops + (x - r->first) % r->n_ops;
}

static bool own_weight(const sc_opgraph *g, uint32_t op, uint32_t tensor,
                       uint32_t *k)
{
    for (*k = 0; *k < g->op[op].n_weight; ++*k)
        if (g->op[op].weight[*k].tensor == tensor) return true;
    return false;
}

static uint32_t tensor_ref(const unfold *u, const context *c, uint32_t v,
                           uint32_t w)
{
    const sc_opgraph *g = &u->d->g, *whole = u->f->g;
    uint32_t a = g->tensor[v].op, b = g->tensor[w].op, k;
    if (g->tensor[w].kind == SC_GT_INPUT) return u->d->tensor[w];
    if (where_op(u, b).run == SC_NONE) return u->d->tensor[w];
    const sc_gop *o = &whole->op[op_ref(u, c, a, b)];
    if (g->tensor[w].kind == SC_GT_VALUE) return o->out.tensor;
    return own_weight(g, b, w, &k) ? o->weight[k].tensor : u->d->tensor[w];
}

/* Stages of a run are its own, as its values are. */
static where where_stage(const unfold *u, uint32_t run, uint32_t stage)
{
    const gi_run *r = &u->d->run[run];
    for (uint32_t rep = 0; rep < GI_REPS && r->stage_step; rep++) {
        uint32_t begin = r->stage + seen(r, rep) * r->stage_step;
        if (rep == GI_REP_MID2) begin = r->stage + 2 * r->stage_step;
        if (stage >= begin && stage < begin + r->stage_step)
            return (where){run, rep};
    }
    return (where){SC_NONE, 0};
}

static uint32_t stage_ref(const unfold *u, const context *c, uint32_t v,
                          uint32_t w)
{
    if (c->run == SC_NONE || w == SC_NONE) return w;
    where a = where_stage(u, c->run, v), b = where_stage(u, c->run, w);
    bool first;
    if (b.run == SC_NONE) return w;
    const gi_run *r = run_of(u, c);
    uint32_t i = instance_of(u, c, a, b, v == w, &first);
    return r->stage + i * r->stage_step +
           ((first ? v : w) - r->stage) % r->stage_step;
}

/* ---- whether the middle is regular -----------------------------------------
 */

static gi_mark range(const infer *f, uint32_t loop, uint32_t op, gi_mark *end)
{
    uint32_t at = loop == GI_FORWARD ? op : f->g->n_ops - 1 - op;
    *end = f->mark[loop][at + 1];
    return f->mark[loop][at];
}

static bool refers_alike(const unfold *u, uint32_t run, uint32_t v, uint32_t w)
{
    const numbering *o = &u->of[VALUES];
    uint32_t p = o->at[v], q = o->at[w];
    bool alike = p != SC_NONE && q != SC_NONE && p % LOOPS == q % LOOPS &&
                 v - o->from[p] == w - o->from[q];
    return agree(run, where_part(p), where_part(q), v == w, alike);
}

static bool alike_ops(const unfold *u, uint32_t run, uint32_t v, uint32_t w)
{
    if (v == SC_NONE || w == SC_NONE) return v == w;
    const gi_run *r = &u->d->run[run];
    bool alike = (v - r->first) % r->n_ops == (w - r->first) % r->n_ops;
    return agree(run, where_op(u, v), where_op(u, w), v == w, alike);
}

static bool alike_tensors(const unfold *u, uint32_t run, uint32_t v, uint32_t w)
{
    const sc_gtensor *a = &u->d->g.tensor[v], *b = &u->d->g.tensor[w];
    if (a->kind != b->kind) return false;
    if (v == w) return true;
    return a->kind != SC_GT_INPUT && alike_ops(u, run, a->op, b->op);
}

static bool alike_stages(const unfold *u, uint32_t run, uint32_t v, uint32_t w)
{
    if (v == SC_NONE || w == SC_NONE) return v == w;
    return agree(run, where_stage(u, run, v), where_stage(u, run, w), v == w,
                 true);
}

static bool same_value(const unfold *u, uint32_t run, uint32_t v, uint32_t w)
{
    const gp_value *a = &u->from->prog->value[v], *b = a - v + w;
    return a->what == b->what && a->tier == b->tier && a->stays == b->stays &&
           a->bytes == b->bytes && a->copies == b->copies &&
           (a->made == SC_NONE) == (b->made == SC_NONE) &&
           alike_tensors(u, run, a->tensor, b->tensor) &&
           alike_stages(u, run, a->stage, b->stage);
}

static bool same_exchange(const unfold *u, const gp_item *a, const gp_item *b,
                          bool priced)
{
    if (a->exchange == SC_NONE || b->exchange == SC_NONE)
        return a->exchange == b->exchange;
    const sc_gexchange *x = &u->from->p->exchange[a->exchange];
    const sc_gexchange *y = &u->from->p->exchange[b->exchange];
    return x->coll == y->coll && x->axes == y->axes && x->bytes == y->bytes &&
           x->pass == y->pass && x->p2p == y->p2p &&
           (!priced || a->seconds == b->seconds);
}

static bool same_item(const unfold *u, uint32_t run, uint32_t v, uint32_t w)
{
    const gp_item *a = &u->from->prog->item[v], *b = a - v + w;
    if (a->pass != b->pass || a->recomputed != b->recomputed ||
        a->cat != b->cat || a->copy != b->copy || a->once != b->once ||
        a->n_in != b->n_in || a->n_more != b->n_more ||
        a->price.seconds != b->price.seconds ||
        a->price.flops != b->price.flops || a->price.bytes != b->price.bytes ||
        a->price.launches != b->price.launches || a->bytes != b->bytes ||
        u->from->order[v].phase != u->from->order[w].phase ||
        (a->out == SC_NONE) != (b->out == SC_NONE) ||
        !same_exchange(u, a, b, u->d->run[run].stage_step == 0) ||
        !alike_ops(u, run, a->op, b->op) ||
        !alike_stages(u, run, a->stage, b->stage) ||
        !alike_stages(u, run, a->to, b->to))
        return false;
    for (uint32_t k = 0; k < a->n_in; k++)
        if (!refers_alike(u, run, a->in[k], b->in[k])) return false;
    return a->out == SC_NONE || refers_alike(u, run, a->out, b->out);
}

static bool same_wgrad(const unfold *u, uint32_t run, uint32_t v, uint32_t w)
{
    const gi_wgrad *a = &u->from->wgrad[v], *b = a - v + w;
    return a->n_values == 1 && b->n_values == 1 && a->port == b->port &&
           a->once == b->once && a->origin == b->origin &&
           layout_equal(&a->used, &b->used) &&
           layout_equal(&a->made, &b->made) &&
           layout_equal(&a->want, &b->want) &&
           layout_equal(&a->state, &b->state) &&
           layout_equal(&a->kept, &b->kept) &&
           alike_ops(u, run, a->op, b->op) &&
           alike_stages(u, run, a->stage, b->stage) &&
           refers_alike(u, run, a->value[0], b->value[0]);
}

static bool same_made(const unfold *u, uint32_t run, uint32_t loop, uint32_t op)
{
    const gi_run *r = &u->d->run[run];
    gi_mark e, k, a = range(u->from, loop, op, &e);
    gi_mark b = range(u->from, loop, op + r->n_ops, &k);
    if (e.values - a.values != k.values - b.values ||
        e.items - a.items != k.items - b.items ||
        e.computes - a.computes != k.computes - b.computes ||
        e.wgrads - a.wgrads != k.wgrads - b.wgrads)
        return false;
    for (uint32_t i = 0; i < e.values - a.values; i++)
        if (!same_value(u, run, a.values + i, b.values + i)) return false;
    for (uint32_t i = 0; i < e.items - a.items; i++)
        if (!same_item(u, run, a.items + i, b.items + i)) return false;
    for (uint32_t i = 0; i < e.wgrads - a.wgrads; i++)
        if (!same_wgrad(u, run, a.wgrads + i, b.wgrads + i)) return false;
    return true;
}

static bool regular(const unfold *u, uint32_t loops)
{
    for (uint32_t i = 0; i < u->d->n_runs; i++) {
        const gi_run *r = &u->d->run[i];
        for (uint32_t k = 0; k < r->n_ops; k++)
            for (uint32_t loop = 0; loop < loops; loop++)
                if (!same_made(u, i, loop,
                               r->first + GI_REP_MID1 * r->n_ops + k))
                    return false;
    }
    return true;
}

/* ---- writing ---------------------------------------------------------------
 */

/* Two operators of the folded network that show what one of the whole does. */
typedef struct template_ops {
    uint32_t first, second;
} template_ops;

static const char *renamed(const unfold *u, const char *name, uint32_t was,
                           uint32_t is)
{
    const char *old = u->d->g.op[was].path, *now = u->f->g->op[is].path;
    size_t n = strlen(old), m = strlen(now), rest = strlen(name) - n;
    char *out = sc_alloc(u->f->a, m + rest + 1, 1);
    if (!out) return NULL;
    memcpy(out, now, m);
    memcpy(out + m, name + n, rest + 1);
    return out;
}

static bool named_after(const unfold *u, const char *name, uint32_t op)
{
    const char *path = u->d->g.op[op].path;
    size_t n = strlen(path);
    return strncmp(name, path, n) == 0 && (name[n] == ' ' || !name[n]);
}

static uint32_t maker(const unfold *u, const gp_value *v)
{
    return v->made == SC_NONE ? SC_NONE : u->from->prog->item[v->made].op;
}

/* Names begin with the path of an operator: the one at work, the one whose
 * item makes the value, or the one that makes the tensor. */
static const char *value_name(unfold *u, const context *c, template_ops t,
                              const gp_value *a, const gp_value *b)
{
    const sc_gtensor *tensor = u->d->g.tensor;
    const template_ops of[] = {t,
                               {maker(u, a), maker(u, b)},
                               {tensor[a->tensor].op, tensor[b->tensor].op}};
    for (size_t i = 0; i < SC_COUNT(of) && c->run != SC_NONE; i++) {
        uint32_t op = of[i].second;
        if (op == SC_NONE || !named_after(u, b->name, op)) continue;
        const char *name =
            renamed(u, b->name, op, op_ref(u, c, of[i].first, op));
        if (!name) u->f->no_memory = true;
        return name ? name : b->name;
    }
    return b->name;
}

static void write_value(unfold *u, const context *c, template_ops t, uint32_t v,
                        uint32_t w)
{
    const gp_value *a = &u->from->prog->value[v], *b = a - v + w;
    gp_value x = *b;
    x.name = value_name(u, c, t, a, b);
    x.tensor = tensor_ref(u, c, a->tensor, b->tensor);
    x.stage = stage_ref(u, c, a->stage, b->stage);
    uint32_t now = gi_value(u->f, x);
    if (c->run == SC_NONE) u->of[VALUES].now[w] = now;
}

static sc_status write_exchange(unfold *u, gp_item *it, const gp_item *was)
{
    infer *f = u->f;
    sc_gexchange x = u->from->p->exchange[was->exchange];
    if (x.path == u->d->g.op[was->op].path) x.path = f->g->op[it->op].path;
    x.stage = it->stage;
    bool moved = false;
    for (uint32_t i = 0; i < u->d->n_runs; i++)
        moved |= u->d->run[i].stage_step > 0;
    if (moved) SC_TRY(gi_exchange_at(f, it, &x));
    sc_gexchange *grown = sc_grow(f->a, f->p->exchange, f->p->n_exchanges,
                                  &f->cap_exchanges, 256, sizeof *grown);
    if (!grown) return sc_error_nomem(f->err);
    f->p->exchange = grown;
    it->exchange = f->p->n_exchanges;
    grown[f->p->n_exchanges++] = x;
    return SC_OK;
}

static sc_status room_for(unfold *u, uint32_t n)
{
    if (n <= u->cap_list) return SC_OK;
    u->cap_list = n + 64;
    u->list = SC_NEW_N(u->f->a, uint32_t, u->cap_list);
    return u->list ? SC_OK : sc_error_nomem(u->f->err);
}

static sc_status write_item(unfold *u, const context *c, uint32_t v, uint32_t w)
{
    const gp_item *a = &u->from->prog->item[v], *b = a - v + w;
    gp_item it = *b;
    it.op = op_ref(u, c, a->op, b->op);
    it.stage = stage_ref(u, c, a->stage, b->stage);
    it.to = stage_ref(u, c, a->to, b->to);
    if (b->exchange != SC_NONE) SC_TRY(write_exchange(u, &it, b));
    SC_TRY(room_for(u, b->n_in));
    for (uint32_t k = 0; k < b->n_in; k++)
        u->list[k] = value_ref(u, c, a->in[k], b->in[k]);
    if (b->out != SC_NONE) it.out = value_ref(u, c, a->out, b->out);
    uint32_t now = gi_item(u->f, it, u->list, u->from->order[w].phase);
    if (c->run == SC_NONE) u->of[ITEMS].now[w] = now;
    return SC_OK;
}

static sc_status write_compute(unfold *u, const context *c, uint32_t v,
                               uint32_t w)
{
    infer *f = u->f;
    const sc_gcompute *a = &u->from->p->compute[v], *b = a - v + w;
    uint32_t op = op_ref(u, c, a->op, b->op);
    SC_TRY(gi_note(f, op, (sc_gpass)b->pass, b->seconds));
    f->p->compute[f->p->n_computes - 1].stage =
        stage_ref(u, c, a->stage, b->stage);
    return SC_OK;
}

static sc_status write_wgrad(unfold *u, const context *c, uint32_t v,
                             uint32_t w)
{
    infer *f = u->f;
    const gi_wgrad *a = &u->from->wgrad[v], *b = a - v + w;
    gi_wgrad *grown =
        sc_grow(f->a, f->wgrad, f->n_wgrads, &f->cap_wgrads, 64, sizeof *grown);
    pending *later = sc_grow(f->a, u->pending, u->n_pending, &u->cap_pending,
                             64, sizeof *later);
    if (!grown || !later) return sc_error_nomem(f->err);
    f->wgrad = grown;
    u->pending = later;
    later[u->n_pending++] = (pending){v, w, c->run, c->instance};
    gi_wgrad *x = &grown[f->n_wgrads++];
    *x = *b;
    x->value = SC_NEW_N(f->a, uint32_t, b->n_values);
    if (!x->value) return sc_error_nomem(f->err);
    x->tensor = tensor_ref(u, c, a->tensor, b->tensor);
    x->op = op_ref(u, c, a->op, b->op);
    x->stage = stage_ref(u, c, a->stage, b->stage);
    return SC_OK;
}

/* Values of a gradient may be made behind it. */
static void fill_wgrads(unfold *u, uint32_t first)
{
    for (uint32_t i = 0; i < u->n_pending; i++) {
        const pending *p = &u->pending[i];
        const gi_wgrad *a = &u->from->wgrad[p->first];
        const gi_wgrad *b = &u->from->wgrad[p->second];
        gi_wgrad *x = &u->f->wgrad[first + i];
        context c = {p->run, p->instance};
        for (uint32_t k = 0; k < b->n_values; k++)
            x->value[k] = value_ref(u, &c, a->value[k], b->value[k]);
        x->last = made_ref(u, &c, &u->of[ITEMS], a->last, b->last);
    }
}

static sc_status write_op(unfold *u, const context *c, uint32_t loop,
                          template_ops t)
{
    const infer *from = u->from;
    gi_mark e, end, a = range(from, loop, t.first, &e);
    gi_mark b = range(from, loop, t.second, &end);
    uint32_t op = op_ref(u, c, t.first, t.second), n = u->f->g->n_ops;
    gi_note_mark(u->f, loop, loop == GI_FORWARD ? op : n - 1 - op);
    for (uint32_t i = 0; b.values + i < end.values; i++)
        write_value(u, c, t, a.values + i, b.values + i);
    for (uint32_t i = 0; b.items + i < end.items; i++)
        SC_TRY(write_item(u, c, a.items + i, b.items + i));
    for (uint32_t i = 0; b.computes + i < end.computes; i++)
        SC_TRY(write_compute(u, c, a.computes + i, b.computes + i));
    for (uint32_t i = 0; b.wgrads + i < end.wgrads; i++)
        SC_TRY(write_wgrad(u, c, a.wgrads + i, b.wgrads + i));
    u->f->node[op].decided = from->node[t.second].decided;
    memcpy(u->f->node[op].split, from->node[t.second].split,
           sizeof from->node[op].split);
    return u->f->no_memory ? sc_error_nomem(u->f->err) : SC_OK;
}

/* One instance, forward or backward. */
static sc_status write_instance(unfold *u, uint32_t run, uint32_t instance,
                                uint32_t loop)
{
    const gi_run *r = &u->d->run[run];
    context c = {run, instance};
    uint32_t rep = instance < 2               ? instance
                   : instance + 1 == r->count ? GI_REP_LAST
                                              : GI_REP_MID2;
    uint32_t other = is_middle(u, &c) ? GI_REP_MID1 : rep;
    if (is_middle(u, &c)) rep = GI_REP_MID2;
    uint32_t pass = run * LOOPS + loop;
    u->of[VALUES].copy[pass][instance] = u->f->prog->n_values;
    u->of[ITEMS].copy[pass][instance] = u->f->prog->n_items;
    for (uint32_t i = 0; i < r->n_ops; i++) {
        uint32_t k = loop == GI_FORWARD ? i : r->n_ops - 1 - i;
        template_ops t = {r->first + other * r->n_ops + k,
                          r->first + rep * r->n_ops + k};
        SC_TRY(write_op(u, &c, loop, t));
    }
    return SC_OK;
}

static sc_status write_run(unfold *u, uint32_t run, uint32_t loop)
{
    uint32_t n = u->d->run[run].count;
    for (uint32_t i = 0; i < n; i++)
        SC_TRY(
            write_instance(u, run, loop == GI_FORWARD ? i : n - 1 - i, loop));
    return SC_OK;
}

static sc_status write_loop(unfold *u, uint32_t loop)
{
    const gi_fold *d = u->d;
    const context outside = {SC_NONE, 0};
    for (uint32_t i = 0; i < d->g.n_ops;) {
        uint32_t op = loop == GI_FORWARD ? i : d->g.n_ops - 1 - i;
        uint32_t run = d->run_of[op];
        if (run == SC_NONE) {
            SC_TRY(write_op(u, &outside, loop, (template_ops){op, op}));
            i++;
        } else {
            SC_TRY(write_run(u, run, loop));
            i += GI_REPS * d->run[run].n_ops;
        }
    }
    gi_note_mark(u->f, loop, u->f->g->n_ops);
    return SC_OK;
}

/* ---- parts -----------------------------------------------------------------
 */

static void mark_parts(unfold *u, uint32_t loops)
{
    numbering *v = &u->of[VALUES], *t = &u->of[ITEMS];
    for (uint32_t i = 0; i < u->d->n_runs * PARTS; i++) {
        const gi_run *r = &u->d->run[i / PARTS];
        uint32_t rep = i % PARTS / LOOPS, loop = i % LOOPS;
        uint32_t first = r->first + rep * r->n_ops, last = first + r->n_ops - 1;
        gi_mark end, from;
        if (loop >= loops) continue;
        from = range(u->from, loop, loop == GI_FORWARD ? first : last, &end);
        (void)range(u->from, loop, loop == GI_FORWARD ? last : first, &end);
        v->from[i] = from.values;
        t->from[i] = from.items;
        for (uint32_t k = from.values; k < end.values; k++) v->at[k] = i;
        for (uint32_t k = from.items; k < end.items; k++) t->at[k] = i;
    }
}

static sc_status new_numbering(const unfold *u, uint32_t n, numbering *out)
{
    sc_arena *a = u->f->a;
    size_t runs = u->d->n_runs;
    *out = (numbering){.at = SC_NEW_N(a, uint32_t, n),
                       .now = SC_NEW_N(a, uint32_t, n),
                       .from = SC_NEW_N(a, uint32_t, runs * PARTS),
                       .copy = SC_NEW_N(a, uint32_t *, runs * LOOPS)};
    if (!out->at || !out->now || !out->from || !out->copy)
        return sc_error_nomem(u->f->err);
    memset(out->at, 0xff, n * sizeof *out->at);
    for (size_t i = 0; i < runs * LOOPS; i++) {
        out->copy[i] = SC_NEW_N(a, uint32_t, u->d->run[i / LOOPS].count);
        if (!out->copy[i]) return sc_error_nomem(u->f->err);
    }
    return SC_OK;
}

static sc_status prepare(unfold *u, uint32_t loops)
{
    const gp_program *p = u->from->prog;
    SC_TRY(new_numbering(u, p->n_values, &u->of[VALUES]));
    SC_TRY(new_numbering(u, p->n_items, &u->of[ITEMS]));
    mark_parts(u, loops);
    return SC_OK;
}

sc_status gi_unfold(infer *f, const gi_fold *fold, const infer *from, bool *ok)
{
    unfold u = {.f = f, .d = fold, .from = from};
    uint32_t loops = f->job->forward_only ? 1 : LOOPS, first = f->n_wgrads;
    SC_TRY(prepare(&u, loops));
    *ok = regular(&u, loops);
    if (!*ok) return SC_OK;
    for (uint32_t loop = 0; loop < loops; loop++) SC_TRY(write_loop(&u, loop));
    fill_wgrads(&u, first);
    return SC_OK;
}
