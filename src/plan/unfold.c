/* SPDX-License-Identifier: Apache-2.0 */
/* unfold.c - expands a folded program to that of the whole network. */
#include "plan/unfold.h"

#include <string.h>

static uint32_t value_ref(const unfold *u, const context *c, uint32_t v,
                          uint32_t w)
{
    return infer_made_ref(u, c, &u->of[VALUES], v, w);
}

static uint32_t maker(const unfold *u, const program_value *v)
{
    return v->made == SC_NONE ? SC_NONE : u->from->prog->item[v->made].op;
}

/* The operator's path with which a value's name begins: that of the current
 * one, of the one whose item makes the value, or of the one that makes the
 * tensor. */
static const char *first_word(const unfold *u, const context *c,
                              const program_value *a, const program_value *b)
{
    const sc_tensor *tensor = u->d->g.tensor;
    const uint32_t of[][2] = {{c->first, c->second},
                              {maker(u, a), maker(u, b)},
                              {tensor[a->tensor].op, tensor[b->tensor].op}};
    for (size_t i = 0; i < SC_COUNT(of) && c->run != SC_NONE; i++) {
        uint32_t op = of[i][1];
        if (op != SC_NONE && b->word[0] == u->d->g.op[op].path)
            return u->f->g->op[infer_op_ref(u, c, of[i][0], op)].path;
    }
    return b->word[0];
}

static void write_value(unfold *u, const context *c, uint32_t v, uint32_t w)
{
    const program_value *a = &u->from->prog->value[v], *b = a - v + w;
    program_value x = *b;
    x.word[0] = first_word(u, c, a, b);
    x.tensor = infer_tensor_ref(u, c, a->tensor, b->tensor);
    x.stage = infer_stage_ref(u, c, a->stage, b->stage);
    uint32_t now = infer_value(u->f, x);
    if (c->run == SC_NONE) u->of[VALUES].now[w] = now;
}

static sc_status add_exchange(inference *f, const sc_net_exchange *x,
                              program_item *it)
{
    sc_net_exchange *grown =
        sc_grow_raw(f->a, f->p->exchange, f->p->n_exchanges, &f->cap_exchanges,
                    256, sizeof *grown);
    if (!grown) return sc_error_nomem(f->err);
    f->p->exchange = grown;
    it->exchange = f->p->n_exchanges;
    grown[f->p->n_exchanges++] = *x;
    return SC_OK;
}

/* Whether the runs consist of stages, which have different prices. */
static bool across_stages(const unfold *u)
{
    for (uint32_t i = 0; i < u->d->n_runs; i++)
        if (u->d->run[i].stage_step > 0) return true;
    return false;
}

static sc_status write_exchange(unfold *u, program_item *it,
                                const program_item *was)
{
    inference *f = u->f;
    sc_net_exchange x = u->from->p->exchange[was->exchange];
    if (x.path == u->d->g.op[was->op].path) x.path = f->g->op[it->op].path;
    x.stage = it->stage;
    if (across_stages(u)) SC_TRY(infer_exchange_at(f, it, &x));
    return add_exchange(f, &x, it);
}

static sc_status room_for(unfold *u, uint32_t n)
{
    while (n > u->cap_list) {
        uint32_t *grown = sc_grow_raw(u->f->a, u->list, u->cap_list,
                                      &u->cap_list, 64, sizeof *grown);
        if (!grown) return sc_error_nomem(u->f->err);
        u->list = grown;
    }
    return SC_OK;
}

/* Number of values from `v` on that represent those of all middle instances of
 * another run, such as gradients of a value that all of them read. */
static uint32_t of_middle(const unfold *u, const context *c, const uint32_t *v,
                          uint32_t n)
{
    uint32_t k = 0, run = SC_NONE;
    for (; k < n; k++) {
        uint32_t part = u->of[VALUES].at[v[k]];
        if (part == SC_NONE || part % PARTS / LOOPS != INFER_REP_MID2 ||
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
    const infer_run *r = &u->d->run[o->at[v[0]] / PARTS];
    uint32_t middle = r->count - INFER_REPS + 1;
    SC_TRY(room_for(u, *at + n * middle));
    for (uint32_t i = 0; i < middle; i++)
        for (uint32_t k = 0; k < n; k++) {
            uint32_t part = o->at[v[k]];
            uint32_t first = o->copy[part / PARTS * LOOPS + part % LOOPS]
                                    [INFER_REP_MID2 + i];
            u->list[(*at)++] = first + v[k] - o->from[part];
        }
    return SC_OK;
}

static sc_status list_inputs(unfold *u, const context *c, const program_item *a,
                             const program_item *b, uint32_t *n)
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
    const program_item *a = &u->from->prog->item[v], *b = a - v + w;
    program_item it = *b;
    it.op = infer_op_ref(u, c, a->op, b->op);
    it.stage = infer_stage_ref(u, c, a->stage, b->stage);
    it.to = infer_stage_ref(u, c, a->to, b->to);
    if (b->exchange != SC_NONE) SC_TRY(write_exchange(u, &it, b));
    SC_TRY(list_inputs(u, c, a, b, &it.n_in));
    if (b->out != SC_NONE) it.out = value_ref(u, c, a->out, b->out);
    uint32_t now = infer_item(u->f, it, u->list, u->from->order[w].phase);
    if (c->run == SC_NONE) u->of[ITEMS].now[w] = now;
    return SC_OK;
}

/* The next instance's reference: between middle instances references are
 * constant or rise by a fixed step. */
static uint32_t next_of(uint32_t last, uint32_t before)
{
    return 2 * last - before;
}

/* Derives an item from the same items of the two instances before. */
static sc_status repeat_item(unfold *u, const context *c)
{
    inference *f = u->f;
    uint32_t at = f->prog->n_items - c->n_items;
    const program_item *b = &f->prog->item[at], *a = b - c->n_items;
    program_item it = *b;
    uint32_t *in = SC_RAW_N(f->a, uint32_t, it.n_in), was = b->op;
    if (!in) return sc_error_nomem(f->err);
    for (uint32_t k = 0; k < it.n_in; k++) in[k] = next_of(b->in[k], a->in[k]);
    it.in = in;
    it.op = next_of(b->op, a->op);
    it.out = next_of(b->out, a->out);
    if (it.exchange != SC_NONE) {
        sc_net_exchange x = f->p->exchange[it.exchange];
        if (x.path == f->g->op[was].path) x.path = f->g->op[it.op].path;
        SC_TRY(add_exchange(f, &x, &it));
    }
    (void)infer_item_as_is(f, &it, f->order[at].phase);
    return SC_OK;
}

static sc_status write_wgrad(unfold *u, const context *c, uint32_t v,
                             uint32_t w)
{
    inference *f = u->f;
    const infer_wgrad *a = &u->from->wgrad[v], *b = a - v + w;
    infer_wgrad *grown = sc_grow_raw(f->a, f->wgrad, f->n_wgrads,
                                     &f->cap_wgrads, 64, sizeof *grown);
    pending *later = sc_grow_raw(f->a, u->pending, u->n_pending,
                                 &u->cap_pending, 64, sizeof *later);
    if (!grown || !later) return sc_error_nomem(f->err);
    f->wgrad = grown;
    u->pending = later;
    later[u->n_pending++] = (pending){v, w, c->run, c->instance};
    infer_wgrad *x = &grown[f->n_wgrads++];
    *x = *b;
    x->value = SC_NEW_N(f->a, uint32_t, b->n_values);
    if (!x->value) return sc_error_nomem(f->err);
    x->tensor = infer_tensor_ref(u, c, a->tensor, b->tensor);
    x->op = infer_op_ref(u, c, a->op, b->op);
    x->stage = infer_stage_ref(u, c, a->stage, b->stage);
    return SC_OK;
}

/* Fills in the values of gradients at the end, because some are made later. */
static void fill_wgrads(unfold *u, uint32_t first)
{
    for (uint32_t i = 0; i < u->n_pending; i++) {
        const pending *p = &u->pending[i];
        const infer_wgrad *a = &u->from->wgrad[p->first];
        const infer_wgrad *b = &u->from->wgrad[p->second];
        infer_wgrad *x = &u->f->wgrad[first + i];
        context c = {.run = p->run, .instance = p->instance, .op = SC_NONE};
        for (uint32_t k = 0; k < b->n_values; k++)
            x->value[k] = value_ref(u, &c, a->value[k], b->value[k]);
        x->last = infer_made_ref(u, &c, &u->of[ITEMS], a->last, b->last);
    }
}

/* Writes the operator whose templates are in `c`. */
static sc_status write_op(unfold *u, context *c, uint32_t loop)
{
    const inference *from = u->from;
    infer_mark e, end, a = infer_made(from, loop, c->first, &e);
    infer_mark b = infer_made(from, loop, c->second, &end);
    c->op = SC_NONE;
    c->op = infer_op_ref(u, c, c->first, c->second);
    uint32_t op = c->op, n = u->f->g->n_ops;
    infer_note_mark(u->f, loop, loop == INFER_FORWARD ? op : n - 1 - op);
    for (uint32_t i = 0; b.values + i < end.values; i++)
        write_value(u, c, a.values + i, b.values + i);
    for (uint32_t i = 0; b.items + i < end.items; i++)
        SC_TRY(c->n_items ? repeat_item(u, c)
                          : write_item(u, c, a.items + i, b.items + i));
    for (uint32_t i = 0; b.wgrads + i < end.wgrads; i++)
        SC_TRY(write_wgrad(u, c, a.wgrads + i, b.wgrads + i));
    u->f->node[op].decided = from->node[c->second].decided;
    memcpy(u->f->node[op].split, from->node[c->second].split,
           sizeof from->node[op].split);
    return u->f->no_memory ? sc_error_nomem(u->f->err) : SC_OK;
}

/* Whether the two instances written last are middle ones whose references do
 * not involve the ends of the run. */
static bool two_before(const unfold *u, const infer_run *r, uint32_t instance,
                       uint32_t loop)
{
    if (across_stages(u)) return false;
    return loop == INFER_FORWARD ? instance >= 4 && instance + 3 <= r->count
                                 : instance >= 2 && instance + 5 <= r->count;
}

/* Writes one instance, forward or backward. */
static sc_status write_instance(unfold *u, uint32_t run, uint32_t instance,
                                uint32_t loop)
{
    const infer_run *r = &u->d->run[run];
    context c = {.run = run, .instance = instance};
    uint32_t rep = instance < 2               ? instance
                   : instance + 1 == r->count ? INFER_REP_LAST
                                              : INFER_REP_MID2;
    uint32_t other = infer_is_middle(u, &c) ? INFER_REP_MID1 : rep;
    if (infer_is_middle(u, &c)) rep = INFER_REP_MID2;
    uint32_t pass = run * LOOPS + loop;
    uint32_t *items = u->of[ITEMS].copy[pass];
    u->of[VALUES].copy[pass][instance] = u->f->prog->n_values;
    items[instance] = u->f->prog->n_items;
    if (two_before(u, r, instance, loop))
        c.n_items = items[instance] -
                    items[loop == INFER_FORWARD ? instance - 1 : instance + 1];
    for (uint32_t i = 0; i < r->n_ops; i++) {
        uint32_t k = loop == INFER_FORWARD ? i : r->n_ops - 1 - i;
        c.first = r->first + other * r->n_ops + k;
        c.second = r->first + rep * r->n_ops + k;
        SC_TRY(write_op(u, &c, loop));
    }
    return SC_OK;
}

static sc_status write_run(unfold *u, uint32_t run, uint32_t loop)
{
    uint32_t n = u->d->run[run].count;
    for (uint32_t i = 0; i < n; i++)
        SC_TRY(write_instance(u, run, loop == INFER_FORWARD ? i : n - 1 - i,
                              loop));
    return SC_OK;
}

static sc_status write_loop(unfold *u, uint32_t loop)
{
    const infer_fold *d = u->d;
    for (uint32_t i = 0; i < d->g.n_ops;) {
        uint32_t op = loop == INFER_FORWARD ? i : d->g.n_ops - 1 - i;
        uint32_t run = d->run_of[op];
        if (run == SC_NONE) {
            context outside = {.run = SC_NONE, .first = op, .second = op};
            SC_TRY(write_op(u, &outside, loop));
            i++;
        } else {
            SC_TRY(write_run(u, run, loop));
            i += INFER_REPS * d->run[run].n_ops;
        }
    }
    infer_note_mark(u->f, loop, u->f->g->n_ops);
    return SC_OK;
}

/* Number of values and items of the instances that were not compiled. */
static infer_mark more_made(const unfold *u, uint32_t loops)
{
    infer_mark all = {0}, end;
    for (uint32_t i = 0; i < u->d->n_runs * loops; i++) {
        const infer_run *r = &u->d->run[i / loops];
        uint32_t loop = i % loops, n = r->count - INFER_REPS;
        uint32_t first = r->first + INFER_REP_MID2 * r->n_ops;
        uint32_t last = first + r->n_ops - 1;
        bool forward = loop == INFER_FORWARD;
        infer_mark begin =
            infer_made(u->from, loop, forward ? first : last, &end);
        (void)infer_made(u->from, loop, forward ? last : first, &end);
        all.values += n * (end.values - begin.values);
        all.items += n * (end.items - begin.items);
        all.exchanges += n * (end.exchanges - begin.exchanges);
        all.wgrads += n * (end.wgrads - begin.wgrads);
    }
    return all;
}

/* Reserves memory for the whole program and the end of the step. */
static sc_status reserve(unfold *u, uint32_t loops)
{
    inference *f = u->f;
    net_program *p = f->prog;
    infer_mark more = more_made(u, loops);
    uint32_t wgrads = u->from->n_wgrads + more.wgrads;
    uint32_t values = u->from->prog->n_values + more.values + 3 * wgrads;
    uint32_t items = u->from->prog->n_items + more.items + 3 * wgrads;
    uint32_t exchanges = u->from->p->n_exchanges + more.exchanges + wgrads;
    p->value = sc_reserve(f->a, p->value, p->n_values, &f->cap_values, values,
                          sizeof *p->value);
    p->item = sc_reserve(f->a, p->item, p->n_items, &f->cap_items, items,
                         sizeof *p->item);
    f->order = sc_reserve(f->a, f->order, p->n_items, &f->cap_order, items,
                          sizeof *f->order);
    f->wgrad = sc_reserve(f->a, f->wgrad, f->n_wgrads, &f->cap_wgrads, wgrads,
                          sizeof *f->wgrad);
    f->p->exchange =
        sc_reserve(f->a, f->p->exchange, f->p->n_exchanges, &f->cap_exchanges,
                   exchanges, sizeof *f->p->exchange);
    if (!p->value || !p->item || !f->order || !f->wgrad || !f->p->exchange)
        return sc_error_nomem(f->err);
    return SC_OK;
}

sc_status infer_unfold(inference *f, const infer_fold *fold,
                       const inference *from)
{
    unfold u = {.f = f, .d = fold, .from = from};
    uint32_t loops = f->job->forward_only ? 1 : LOOPS, first = f->n_wgrads;
    SC_TRY(infer_number_parts(&u, loops));
    SC_TRY(reserve(&u, loops));
    for (uint32_t loop = 0; loop < loops; loop++) SC_TRY(write_loop(&u, loop));
    fill_wgrads(&u, first);
    return SC_OK;
}
