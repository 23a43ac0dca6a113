/* SPDX-License-Identifier: Apache-2.0 */
/* graph_unfold.c - writes the program of a folded network out for the whole. */
#include "plan/graph_unfold.h"

#include <string.h>

static uint32_t value_ref(const unfold *u, const context *c, uint32_t v,
                          uint32_t w)
{
    return gi_made_ref(u, c, &u->of[VALUES], v, w);
}

/* Two operators of the folded network that show what one of the whole does. */
typedef struct template_ops {
    uint32_t first, second;
} template_ops;

static uint32_t maker(const unfold *u, const gp_value *v)
{
    return v->made == SC_NONE ? SC_NONE : u->from->prog->item[v->made].op;
}

/* Names begin with the path of an operator: the one at work, the one whose
 * item makes the value, or the one that makes the tensor. */
static const char *first_word(unfold *u, const context *c, template_ops t,
                              const gp_value *a, const gp_value *b)
{
    const sc_gtensor *tensor = u->d->g.tensor;
    const template_ops of[] = {t,
                               {maker(u, a), maker(u, b)},
                               {tensor[a->tensor].op, tensor[b->tensor].op}};
    for (size_t i = 0; i < SC_COUNT(of) && c->run != SC_NONE; i++) {
        uint32_t op = of[i].second;
        if (op != SC_NONE && b->word[0] == u->d->g.op[op].path)
            return u->f->g->op[gi_op_ref(u, c, of[i].first, op)].path;
    }
    return b->word[0];
}

static void write_value(unfold *u, const context *c, template_ops t, uint32_t v,
                        uint32_t w)
{
    const gp_value *a = &u->from->prog->value[v], *b = a - v + w;
    gp_value x = *b;
    x.word[0] = first_word(u, c, t, a, b);
    x.tensor = gi_tensor_ref(u, c, a->tensor, b->tensor);
    x.stage = gi_stage_ref(u, c, a->stage, b->stage);
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
    while (n > u->cap_list) {
        uint32_t *grown = sc_grow(u->f->a, u->list, u->cap_list, &u->cap_list,
                                  64, sizeof *grown);
        if (!grown) return sc_error_nomem(u->f->err);
        u->list = grown;
    }
    return SC_OK;
}

/* Values behind `v` that all instances in the middle of another run make of
 * what stands for them, as gradients of what all of these read. */
static uint32_t of_middle(const unfold *u, const context *c, const uint32_t *v,
                          uint32_t n)
{
    uint32_t k = 0, run = SC_NONE;
    for (; k < n; k++) {
        uint32_t part = u->of[VALUES].at[v[k]];
        if (part == SC_NONE || part % PARTS / LOOPS != GI_REP_MID2 ||
            part / PARTS == c->run || (k > 0 && part / PARTS != run))
            break;
        run = part / PARTS;
    }
    return k;
}

static sc_status list_middle(unfold *u, const uint32_t *v, uint32_t n,
                             uint32_t *at)
{
    const numbering *o = &u->of[VALUES];
    const gi_run *r = &u->d->run[o->at[v[0]] / PARTS];
    uint32_t middle = r->count - GI_REPS + 1;
    SC_TRY(room_for(u, *at + n * middle));
    for (uint32_t i = 0; i < middle; i++)
        for (uint32_t k = 0; k < n; k++) {
            uint32_t part = o->at[v[k]];
            uint32_t first =
                o->copy[part / PARTS * LOOPS + part % LOOPS][GI_REP_MID2 + i];
            u->list[(*at)++] = first + v[k] - o->from[part];
        }
    return SC_OK;
}

static sc_status list_inputs(unfold *u, const context *c, const gp_item *a,
                             const gp_item *b, uint32_t *n)
{
    *n = 0;
    for (uint32_t k = 0; k < b->n_in;) {
        uint32_t all = of_middle(u, c, b->in + k, b->n_in - k);
        if (all) {
            SC_TRY(list_middle(u, b->in + k, all, n));
            k += all;
            continue;
        }
        SC_TRY(room_for(u, *n + 1));
        u->list[(*n)++] = value_ref(u, c, a->in[k], b->in[k]);
        k++;
    }
    return SC_OK;
}

static sc_status write_item(unfold *u, const context *c, uint32_t v, uint32_t w)
{
    const gp_item *a = &u->from->prog->item[v], *b = a - v + w;
    gp_item it = *b;
    it.op = gi_op_ref(u, c, a->op, b->op);
    it.stage = gi_stage_ref(u, c, a->stage, b->stage);
    it.to = gi_stage_ref(u, c, a->to, b->to);
    if (b->exchange != SC_NONE) SC_TRY(write_exchange(u, &it, b));
    SC_TRY(list_inputs(u, c, a, b, &it.n_in));
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
    uint32_t op = gi_op_ref(u, c, a->op, b->op);
    SC_TRY(gi_note(f, op, (sc_gpass)b->pass, b->seconds));
    f->p->compute[f->p->n_computes - 1].stage =
        gi_stage_ref(u, c, a->stage, b->stage);
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
    x->times = 1;
    x->block = 0;
    x->value = SC_NEW_N(f->a, uint32_t, b->n_values);
    if (!x->value) return sc_error_nomem(f->err);
    x->tensor = gi_tensor_ref(u, c, a->tensor, b->tensor);
    x->op = gi_op_ref(u, c, a->op, b->op);
    x->stage = gi_stage_ref(u, c, a->stage, b->stage);
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
        x->last = gi_made_ref(u, &c, &u->of[ITEMS], a->last, b->last);
    }
}

static sc_status write_op(unfold *u, const context *c, uint32_t loop,
                          template_ops t)
{
    const infer *from = u->from;
    gi_mark e, end, a = gi_made(from, loop, t.first, &e);
    gi_mark b = gi_made(from, loop, t.second, &end);
    uint32_t op = gi_op_ref(u, c, t.first, t.second), n = u->f->g->n_ops;
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
    uint32_t other = gi_is_middle(u, &c) ? GI_REP_MID1 : rep;
    if (gi_is_middle(u, &c)) rep = GI_REP_MID2;
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

sc_status gi_unfold(infer *f, const gi_fold *fold, const infer *from)
{
    unfold u = {.f = f, .d = fold, .from = from};
    uint32_t loops = f->job->forward_only ? 1 : LOOPS, first = f->n_wgrads;
    SC_TRY(gi_number_parts(&u, loops));
    for (uint32_t loop = 0; loop < loops; loop++) SC_TRY(write_loop(&u, loop));
    fill_wgrads(&u, first);
    return SC_OK;
}
