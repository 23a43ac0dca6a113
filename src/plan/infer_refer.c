/* SPDX-License-Identifier: Apache-2.0 */
/* infer_refer.c - finds what the two compiled instances in the middle of a run
 * refer to, and whether they agree. */
#include "plan/unfold.h"

#include <string.h>

static const infer_run *run_of(const unfold *u, const context *c)
{
    return &u->d->run[c->run];
}

bool infer_is_middle(const unfold *u, const context *c)
{
    return c->run != SC_NONE && c->instance > 0 &&
           c->instance + 1 < run_of(u, c)->count;
}

/* ---- references ---------------------------------------------------------- */

/* A position in the folded program: in an instance of a run, or in no run. */
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

/* The instance of the whole run to which a representative corresponds. */
static uint32_t seen(const infer_run *r, uint32_t rep)
{
    return rep < INFER_REP_MID2 ? rep : r->count - (INFER_REPS - rep);
}

/* Whether references `a` and `b` of both templates describe one pattern.
 * `same`: they are equal; `alike`: they differ only in the instance. */
static bool agree(uint32_t run, where a, where b, bool same, bool alike)
{
    bool in = a.run == run, too = b.run == run;
    if (!in || !too) return in == too && same;
    if (a.rep == INFER_REP_MID1 && b.rep == INFER_REP_MID2) return alike;
    if (a.rep == INFER_REP_FIRST && b.rep == INFER_REP_MID1) return true;
    if (a.rep == INFER_REP_MID2 && b.rep == INFER_REP_LAST) return true;
    return same && a.rep == b.rep &&
           (a.rep == INFER_REP_FIRST || a.rep == INFER_REP_LAST);
}

/* The instance to which a reference points in the whole program.  `*first`: the
 * first template describes it, not the second. */
static uint32_t instance_of(const unfold *u, const context *c, where a, where b,
                            bool same, bool *first)
{
    const infer_run *r = &u->d->run[b.run];
    uint32_t i = c->instance;
    *first = false;
    if (b.run != c->run || !infer_is_middle(u, c)) return seen(r, b.rep);
    *first = i == 1;
    if (i == 1) return a.rep == INFER_REP_LAST ? r->count - 1 : a.rep;
    if (same) return seen(r, b.rep);
    if (b.rep == INFER_REP_MID2) return i;
    if (b.rep == INFER_REP_MID1) return i - 1;
    if (i + 2 == r->count) return seen(r, b.rep);
    *first = true;
    return i + 1;
}

/* The number, in the whole program, of what the templates' references `v` and
 * `w` point to. */
uint32_t infer_made_ref(const unfold *u, const context *c, const numbering *o,
                        uint32_t v, uint32_t w)
{
    where a = where_part(o->at[v]), b = where_part(o->at[w]);
    bool first;
    if (b.run == SC_NONE) return o->now[w];
    uint32_t i = instance_of(u, c, a, b, v == w, &first), x = first ? v : w;
    uint32_t part = o->at[x];
    return o->copy[b.run * LOOPS + part % LOOPS][i] + (x - o->from[part]);
}

uint32_t infer_op_ref(const unfold *u, const context *c, uint32_t v, uint32_t w)
{
    bool known = w == c->second && v == c->first && c->op != SC_NONE;
    if (known) return c->op;
    where a = where_op(u, v), b = where_op(u, w);
    bool first;
    if (b.run == SC_NONE) return u->d->op[w];
    const infer_run *r = &u->d->run[b.run];
    uint32_t i = instance_of(u, c, a, b, v == w, &first), x = first ? v : w;
    return r->whole + i * r->n_ops + (x - r->first) % r->n_ops;
}

static bool own_weight(const sc_net *g, uint32_t op, uint32_t tensor,
                       uint32_t *k)
{
    for (*k = 0; *k < g->op[op].n_weight; ++*k)
        if (g->op[op].weight[*k].tensor == tensor) return true;
    return false;
}

uint32_t infer_tensor_ref(const unfold *u, const context *c, uint32_t v,
                          uint32_t w)
{
    const sc_net *g = &u->d->g, *whole = u->f->g;
    uint32_t a = g->tensor[v].op, b = g->tensor[w].op, k;
    if (g->tensor[w].kind == SC_TENSOR_INPUT) return u->d->tensor[w];
    if (where_op(u, b).run == SC_NONE) return u->d->tensor[w];
    const sc_net_op *o = &whole->op[infer_op_ref(u, c, a, b)];
    if (g->tensor[w].kind == SC_TENSOR_VALUE) return o->out.tensor;
    return own_weight(g, b, w, &k) ? o->weight[k].tensor : u->d->tensor[w];
}

/* The position of a stage: the stages of a run repeat as its values do. */
static where where_stage(const unfold *u, uint32_t run, uint32_t stage)
{
    const infer_run *r = &u->d->run[run];
    for (uint32_t rep = 0; rep < INFER_REPS && r->stage_step; rep++) {
        uint32_t begin = r->stage + seen(r, rep) * r->stage_step;
        if (rep == INFER_REP_MID2) begin = r->stage + 2 * r->stage_step;
        if (stage >= begin && stage < begin + r->stage_step)
            return (where){run, rep};
    }
    return (where){SC_NONE, 0};
}

uint32_t infer_stage_ref(const unfold *u, const context *c, uint32_t v,
                         uint32_t w)
{
    if (c->run == SC_NONE || w == SC_NONE) return w;
    where a = where_stage(u, c->run, v), b = where_stage(u, c->run, w);
    bool first;
    if (b.run == SC_NONE) return w;
    const infer_run *r = run_of(u, c);
    uint32_t i = instance_of(u, c, a, b, v == w, &first);
    return r->stage + i * r->stage_step +
           ((first ? v : w) - r->stage) % r->stage_step;
}

/* ---- regularity of the middle -------------------------------------------- */

infer_mark infer_made(const inference *f, uint32_t loop, uint32_t op,
                      infer_mark *end)
{
    uint32_t at = loop == INFER_FORWARD ? op : f->g->n_ops - 1 - op;
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
    const infer_run *r = &u->d->run[run];
    bool alike = (v - r->first) % r->n_ops == (w - r->first) % r->n_ops;
    return agree(run, where_op(u, v), where_op(u, w), v == w, alike);
}

static bool alike_tensors(const unfold *u, uint32_t run, uint32_t v, uint32_t w)
{
    const sc_tensor *a = &u->d->g.tensor[v], *b = &u->d->g.tensor[w];
    if (a->kind != b->kind) return false;
    if (v == w) return true;
    return a->kind != SC_TENSOR_INPUT && alike_ops(u, run, a->op, b->op);
}

static bool alike_stages(const unfold *u, uint32_t run, uint32_t v, uint32_t w)
{
    if (v == SC_NONE || w == SC_NONE) return v == w;
    return agree(run, where_stage(u, run, v), where_stage(u, run, w), v == w,
                 true);
}

static bool same_value(const unfold *u, uint32_t run, uint32_t v, uint32_t w)
{
    const program_value *a = &u->from->prog->value[v], *b = a - v + w;
    return a->what == b->what && a->tier == b->tier && a->stays == b->stays &&
           a->bytes == b->bytes && a->copies == b->copies &&
           (a->made == SC_NONE) == (b->made == SC_NONE) &&
           alike_tensors(u, run, a->tensor, b->tensor) &&
           alike_stages(u, run, a->stage, b->stage);
}

static bool same_exchange(const unfold *u, const program_item *a,
                          const program_item *b, bool priced)
{
    if (a->exchange == SC_NONE || b->exchange == SC_NONE)
        return a->exchange == b->exchange;
    const sc_net_exchange *x = &u->from->p->exchange[a->exchange];
    const sc_net_exchange *y = &u->from->p->exchange[b->exchange];
    return x->coll == y->coll && x->axes == y->axes && x->bytes == y->bytes &&
           x->pass == y->pass && x->p2p == y->p2p &&
           (!priced || a->seconds == b->seconds);
}

static bool same_item(const unfold *u, uint32_t run, uint32_t v, uint32_t w)
{
    const program_item *a = &u->from->prog->item[v], *b = a - v + w;
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
    const infer_wgrad *a = &u->from->wgrad[v], *b = a - v + w;
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
    const infer_run *r = &u->d->run[run];
    infer_mark e, k, a = infer_made(u->from, loop, op, &e);
    infer_mark b = infer_made(u->from, loop, op + r->n_ops, &k);
    if (e.values - a.values != k.values - b.values ||
        e.items - a.items != k.items - b.items ||
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
        const infer_run *r = &u->d->run[i];
        for (uint32_t k = 0; k < r->n_ops; k++)
            for (uint32_t loop = 0; loop < loops; loop++)
                if (!same_made(u, i, loop,
                               r->first + INFER_REP_MID1 * r->n_ops + k))
                    return false;
    }
    return true;
}

/* ---- parts --------------------------------------------------------------- */

static void mark_parts(unfold *u, uint32_t loops)
{
    numbering *v = &u->of[VALUES], *t = &u->of[ITEMS];
    sc_assert(v->from && t->from && v->at && t->at);
    for (uint32_t i = 0; i < u->d->n_runs * PARTS; i++) {
        const infer_run *r = &u->d->run[i / PARTS];
        uint32_t rep = i % PARTS / LOOPS, loop = i % LOOPS;
        uint32_t first = r->first + rep * r->n_ops, last = first + r->n_ops - 1;
        infer_mark end, from;
        if (loop >= loops) continue;
        from = infer_made(u->from, loop, loop == INFER_FORWARD ? first : last,
                          &end);
        (void)infer_made(u->from, loop, loop == INFER_FORWARD ? last : first,
                         &end);
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

sc_status infer_number_parts(unfold *u, uint32_t loops)
{
    const net_program *p = u->from->prog;
    SC_TRY(new_numbering(u, p->n_values, &u->of[VALUES]));
    SC_TRY(new_numbering(u, p->n_items, &u->of[ITEMS]));
    mark_parts(u, loops);
    return SC_OK;
}

sc_status infer_regular(inference *f, const infer_fold *fold, bool *ok)
{
    unfold u = {.f = f, .d = fold, .from = f};
    uint32_t loops = f->job->forward_only ? 1 : LOOPS;
    SC_TRY(infer_number_parts(&u, loops));
    *ok = regular(&u, loops);
    return SC_OK;
}
