/* SPDX-License-Identifier: Apache-2.0 */
/*
 * infer_gradients.c - gradients of weights: their layouts, the sum over stages
 * that share a weight, the optimizer, and gathers of updated weights.
 */
#include "cost/cost_optimizer.h"
#include "plan/compress.h"
#include "plan/infer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ALL_DIMS ((1u << SC_TENSOR_DIMS) - 1)

/* Chooses the layout of a gradient after its exchange: that of the file's rule,
 * otherwise that of the optimizer's states, which follow their own rule, the
 * gradient or the weight. */
static sc_status destinations(inference *f, infer_wgrad *w)
{
    const sc_tensor *t = &f->g->tensor[w->tensor];
    const infer_rule *weight, *grad = infer_stated(f, w->op, SC_RT_GRAD, 0);
    const infer_rule *optim = infer_stated(f, w->op, SC_RT_OPTIM, 0);
    layout g;
    SC_TRY(infer_weight_kept(f, w->op, w->port, &w->kept, &weight));
    g = w->kept;
    const infer_rule *by = weight;
    if (grad && (!weight || grad > weight)) {
        SC_TRY(infer_place(f, t, grad, &w->used, true, &g));
        by = grad;
    }
    w->state = g;
    if (optim) SC_TRY(infer_place(f, t, optim, &w->used, true, &w->state));
    bool said = by && by->file;
    w->want = optim && !said ? w->state : g;
    w->origin = optim && !said ? optim->r->origin
                : by           ? by->r->origin
                               : infer_by(f, w->op);
    w->parts = layout_fraction(&g, ALL_DIMS, &f->mesh) <
               layout_fraction(&w->used, ALL_DIMS, &f->mesh);
    /* Gradients that the host sums are sent in each micro-batch. */
    bool host = f->s->zero >= 2 && infer_state_tier(f, w->op) >= SC_TIER_CPU;
    w->once = (!w->parts && !host) || infer_stays_gathered(f);
    w->cast = w->parts && !infer_sized_buckets(f) &&
              !f->rules->exchanges_overlap &&
              infer_grad_bytes(f, w->tensor) > infer_bytes(f, t);
    return SC_OK;
}

/* Whether the product that makes a gradient adds it to those of earlier
 * micro-batches.  Shards are summed after their exchange, or by a cast. */
sc_status infer_accumulates(inference *f, uint32_t op, bool *out)
{
    const sc_net_op *o = &f->g->op[op];
    *out = f->job->ga > 1;
    if (!*out || o->n_weight == 0) return SC_OK;
    infer_wgrad w = {.tensor = o->weight[0].tensor, .op = op};
    w.used = infer_port(f, op, &o->weight[0], false);
    SC_TRY(destinations(f, &w));
    bool shards = layout_fraction(&w.kept, ALL_DIMS, &f->mesh) <
                  layout_fraction(&w.used, ALL_DIMS, &f->mesh);
    *out = !w.cast && (w.once || !shards);
    return SC_OK;
}

sc_status infer_add_wgrad(inference *f, uint32_t op, uint32_t k, uint32_t value)
{
    const sc_operand *p = &f->g->op[op].weight[k];
    uint32_t stage = f->node[op].stage, i = f->wgrad_of[p->tensor];
    while (i && f->wgrad[i - 1].stage != stage) i = f->wgrad[i - 1].before;
    if (!i) {
        infer_wgrad *grown = sc_grow_raw(f->a, f->wgrad, f->n_wgrads,
                                         &f->cap_wgrads, 64, sizeof *grown);
        if (!grown) return sc_error_nomem(f->err);
        f->wgrad = grown;
        i = ++f->n_wgrads;
        grown[i - 1] = (infer_wgrad){.tensor = p->tensor,
                                     .stage = stage,
                                     .before = f->wgrad_of[p->tensor]};
        f->wgrad_of[p->tensor] = i;
    }
    infer_wgrad *w = &f->wgrad[i - 1];
    uint32_t *values = sc_grow_raw(f->a, w->value, w->n_values, &w->cap_values,
                                   1, sizeof *values);
    if (!values) return sc_error_nomem(f->err);
    w->value = values;
    w->op = op;
    w->port = k;
    w->used = infer_port(f, op, p, false);
    w->made = infer_weight_grad(f, op, k);
    w->value[w->n_values++] = value;
    w->last = f->prog->value[value].made;
    SC_TRY(destinations(f, w));
    if (w->cast)
        f->prog->value[value].bytes *=
            infer_bytes(f, &f->g->tensor[p->tensor]) /
            infer_grad_bytes(f, p->tensor);
    return SC_OK;
}

/* ---- weights of several stages --------------------------------------- */

static sc_status tie(inference *f, infer_wgrad **same, uint32_t n)
{
    infer_wgrad *w = same[0];
    uint32_t *stage = SC_NEW_N(f->a, uint32_t, n), n_in = 0, out;
    for (uint32_t i = 0; i < n; i++) n_in += same[i]->n_reduced;
    uint32_t *in = SC_NEW_N(f->a, uint32_t, n_in);
    uint32_t *sums = SC_NEW_N(f->a, uint32_t, n);
    if (!stage || !in || !sums) return sc_error_nomem(f->err);
    n_in = 0;
    for (uint32_t i = 0; i < n; i++) {
        const infer_wgrad *x = same[i];
        stage[i] = x->stage;
        for (uint32_t k = 0; k < x->n_reduced; k++) in[n_in++] = x->reduced[k];
    }
    infer_why why = {.path = f->g->op[w->op].path,
                     .tensor = "weight grad",
                     .origin = w->origin,
                     .pass = SC_PASS_UPDATE,
                     .op = w->op,
                     .stage = stage[0],
                     .of = w->tensor,
                     .what = VALUE_GRAD_KEPT,
                     .phase = INFER_ONCE,
                     .grad = true,
                     .once = true};
    /* Unsharded gradient buffers are summed in full, even if an optimizer reads
     * only a shard of each (Megatron-Core's finalize_model_grads). */
    double bytes =
        infer_grad_bytes(f, w->tensor) *
        infer_fraction(f, w->tensor, w->once ? &w->used : &w->want, ALL_DIMS);
    SC_TRY(infer_tie(f, &why, stage, n, bytes, in, n_in, &out));
    for (uint32_t i = 0; i < n; i++) {
        same[i]->tied = true;
        sums[i] = out + i;
        same[i]->n_reduced = 1;
        same[i]->reduced = &sums[i];
    }
    return SC_OK;
}

static int by_stage(const void *x, const void *y)
{
    const infer_wgrad *a = *(const infer_wgrad *const *)x;
    const infer_wgrad *b = *(const infer_wgrad *const *)y;
    return a->stage < b->stage ? -1 : a->stage > b->stage;
}

static sc_status tie_all(inference *f)
{
    infer_wgrad **same = SC_NEW_N(f->a, infer_wgrad *, f->n_stages);
    uint32_t *last = SC_NEW_N(f->a, uint32_t, f->g->n_tensors);
    if (!same || !last) return sc_error_nomem(f->err);
    for (uint32_t i = 0; i < f->n_wgrads; i++) {
        infer_wgrad *w = &f->wgrad[i];
        w->before = last[w->tensor];
        last[w->tensor] = i + 1;
    }
    for (uint32_t i = 0; i < f->n_wgrads && f->n_stages > 1; i++) {
        uint32_t n = 0, k = last[f->wgrad[i].tensor];
        if (f->wgrad[i].tied) continue;
        for (; k; k = f->wgrad[k - 1].before) same[n++] = &f->wgrad[k - 1];
        if (n < 2) continue;
        qsort(same, n, sizeof(infer_wgrad *), by_stage);
        SC_TRY(tie(f, same, n));
    }
    return SC_OK;
}

/* ---- the optimizer --------------------------------------------------- */

/* One gather of all updated weights that use the same communicator. */
typedef struct gathering {
    struct gathering *next;
    uint32_t stage, axes, n, cap;
    uint32_t *value;
    infer_why why;
    double bytes;
} gathering;

static sc_status gather_later(inference *f, gathering **list,
                              const infer_why *w, const layout_move *m,
                              double bytes, uint32_t v)
{
    gathering *g = *list;
    while (g && (g->stage != w->stage || g->axes != m->axes)) g = g->next;
    if (!g) {
        g = SC_NEW(f->a, gathering);
        if (!g) return sc_error_nomem(f->err);
        *g = (gathering){
            .next = *list, .stage = w->stage, .axes = m->axes, .why = *w};
        *list = g;
    }
    uint32_t *grown =
        sc_grow_raw(f->a, g->value, g->n, &g->cap, 16, sizeof *grown);
    if (!grown) return sc_error_nomem(f->err);
    g->value = grown;
    grown[g->n++] = v;
    g->bytes += bytes;
    return SC_OK;
}

/* Bytes of the optimizer states of one element: the moments that the optimizer
 * has (two for Adam) and fp32 master weights if the program keeps them. */
static double dense_state_bytes(const inference *f)
{
    bool two = sc_optimizer_of(f->job->optimizer)->moments == 2;
    bool low = sc_value_bytes(f->job->precision) < 4;
    if (infer_has_masters(f)) return f->job->sw->optim_bytes - (two ? 0 : 4);
    return (two ? 8 : 4) + (low ? 4 : 0);
}

/* A table that is updated row by row has the states of the fused optimizers
 * instead of the moments. */
static double state_bytes(const inference *f, const infer_wgrad *w)
{
    const sc_optimizer *o = sc_optimizer_of(f->job->optimizer);
    const sc_tensor *t = &f->g->tensor[w->tensor];
    double dense = dense_state_bytes(f);
    if (!infer_by_rows(f, w->op)) return dense;
    double columns = (double)t->dim[1].extent *
                     infer_fraction(f, w->tensor, &w->state, 1u << 1);
    return fmax(0, dense - 4.0 * o->moments) + 4.0 * o->table_moments +
           4.0 * o->row_values / columns;
}

int infer_state_tier(const inference *f, uint32_t op)
{
    bool said;
    int tier = infer_tier(f, op, SC_RT_OPTIM, &said);
    return said || f->s->optimizer_tier < 0 ? tier : f->s->optimizer_tier;
}

/* Fused optimizers update the rows in the backward pass of every micro-batch. */
static void each_micro_batch(const inference *f, sc_price *p)
{
    p->seconds *= f->job->ga;
    p->bytes *= f->job->ga;
}

static sc_status update(inference *f, const infer_wgrad *w, gathering **later)
{
    const sc_tensor *t = &f->g->tensor[w->tensor];
    const char *path = f->g->op[w->op].path;
    double fraction = infer_fraction(f, w->tensor, &w->state, ALL_DIMS);
    double state = state_bytes(f, w) * infer_elements(f, t) * fraction *
                   infer_rr_fraction(f, w->op, true);
    uint32_t *in = SC_NEW_N(f->a, uint32_t, (size_t)w->n_reduced + 1);
    int tier = infer_state_tier(f, w->op);
    sc_price price;
    if (!in) return sc_error_nomem(f->err);
    if (w->n_reduced) memcpy(in, w->reduced, w->n_reduced * sizeof *in);
    uint32_t kept =
        infer_value(f, (program_value){.word = {path, t->name, "state"},
                                       .tensor = w->tensor,
                                       .what = VALUE_STATE,
                                       .tier = (uint8_t)tier,
                                       .stays = true,
                                       .stage = w->stage,
                                       .bytes = state,
                                       .copies = infer_copies(f, &w->state),
                                       .made = SC_NONE});
    infer_why why = {.path = path,
                     .tensor = t->name,
                     .origin = w->origin,
                     .pass = SC_PASS_UPDATE,
                     .op = w->op,
                     .stage = w->stage,
                     .of = w->tensor,
                     .what = VALUE_STATE,
                     .phase = INFER_ONCE,
                     .once = true};
    in[w->n_reduced] = kept;
    SC_TRY(infer_compute_rr(f, w->op, SC_PASS_UPDATE, w->port, 1 / fraction,
                            &price));
    if (infer_by_rows(f, w->op)) each_micro_batch(f, &price);
    layout_move m[SC_MESH_AXES];
    uint32_t n = infer_moves(f, w->tensor, &w->state, &w->kept, m);
    program_item it = infer_kernels(w->op, w->stage, SC_PASS_UPDATE);
    it.cat = SC_CAT_OPTIMIZER;
    it.once = true;
    it.price = price;
    it.n_in = w->n_reduced + 1;
    if (n > 0)
        it.out = infer_value(
            f, (program_value){.word = {path},
                               .tensor = w->tensor,
                               .what = VALUE_WEIGHT_NEW,
                               .stage = w->stage,
                               .bytes = infer_rank_bytes(f, t, &w->state)});
    (void)infer_item(f, it, in, INFER_ONCE);
    why.what = VALUE_WEIGHT_NEW;
    for (uint32_t i = 0; i < n; i++)
        SC_TRY(gather_later(f, later, &why, &m[i],
                            m[i].fraction * infer_bytes(f, t) *
                                infer_low_gathered(f, w->tensor),
                            it.out));
    return f->no_memory ? sc_error_nomem(f->err) : SC_OK;
}

sc_status infer_gradients(inference *f)
{
    gathering *later = NULL;
    SC_TRY(infer_reduce(f));
    SC_TRY(tie_all(f));
    for (uint32_t i = 0; i < f->n_wgrads && !f->job->no_update; i++)
        SC_TRY(update(f, &f->wgrad[i], &later));
    for (; later; later = later->next) {
        uint32_t item;
        later->why.tensor = "new weights";
        /* Reverse the order: the forward pass needs the first layers first. */
        for (uint32_t i = 0, k = later->n; i + 1 < k; i++) {
            uint32_t v = later->value[i];
            later->value[i] = later->value[--k];
            later->value[k] = v;
        }
        infer_coll c = {.coll = SC_ALL_GATHER,
                        .axes = later->axes,
                        .bytes = later->bytes,
                        .out_bytes = later->bytes,
                        .reason = "updated in shards, kept replicated",
                        .in = later->value,
                        .n_in = later->n,
                        .bucketed = later->n > 1};
        SC_TRY(infer_collective(f, &later->why, &c, &item));
    }
    return SC_OK;
}
