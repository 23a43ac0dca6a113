/* SPDX-License-Identifier: Apache-2.0 */
/*
 * saved.c - the activations of a layer on one rank: what it keeps for its
 * backward pass, and what that pass holds beside at its worst moment.
 */
#include "plan/block.h"

#include <math.h>
#include <string.h>

#define ALL_DIMS ((1u << SC_N_DIMNAMES) - 1)

/* Elements of a tensor of operator `o` on one rank. */
static double on_rank(const emit *e, const sc_placed *o, uint8_t dims)
{
    sc_layout l = plan_tensor(o, dims, false);
    double share = o->op->share > 0 ? o->op->share : 1;
    return plan_elements(&e->p->run, o->op, dims) * share *
           sc_layout_fraction(&l, ALL_DIMS, e->p->run.size);
}

/* Elements of operator i's input in its producer's layout. */
static double made_input(const emit *e, uint32_t i)
{
    const sc_placed *o = &e->placed[i];
    uint32_t last = e->p->run.model->layer[1].n_ops - 1;
    const sc_placed *src =
        o->op->src >= 0 ? &e->placed[o->op->src] : &e->p->placed[1][last];
    sc_layout l = plan_tensor(src, src->op->y, false);
    return plan_elements(&e->p->run, o->op, o->op->x) *
           sc_layout_fraction(&l, ALL_DIMS, e->p->run.size);
}

/* As it is kept: some programs keep what a product gathered from there. */
static double kept_input(const emit *e, uint32_t i)
{
    const sc_placed *o = &e->placed[i];
    bool gathers = e->p->run.sw->keep_gathered && o->op->type == SC_LINEAR;
    return gathers ? on_rank(e, o, o->op->x) : made_input(e, i);
}

static bool whole_layer(const emit *e)
{
    for (uint32_t i = 0; i < e->layer->n_ops; i++)
        if (!e->placed[i].recompute) return false;
    return true;
}

/* The input is made again by a recomputed operator.  Attention's output is
 * kept all the same (Korthikanti et al. 2022). */
static bool made_again(const emit *e, const sc_placed *o)
{
    if (o->op->src < 0) return false;
    const sc_placed *src = &e->placed[o->op->src];
    return src->recompute && src->op->type != SC_ATTENTION;
}

/* ---- every second product kept --------------------------------------------- */

/* Shares of an operator's output that the program computes as products of
 * their own: query, key and value, gate and up. */
static uint32_t products(const sc_run *r, const sc_operator *op,
                         double share[3])
{
    const sc_transformer *t = &r->model->t;
    double kv = (double)t->kv_heads, all = (double)t->heads + 2 * kv;
    share[0] = 1;
    if (strcmp(op->name, "qkv") == 0) {
        share[0] = (double)t->heads / all;
        share[1] = share[2] = kv / all;
        return 3;
    }
    bool gated = t->act >= SC_ACT_SWIGLU && op->n_iter == 4 &&
                 op->iter[3].name == SC_D_FFN;
    if (!gated) return 1;
    share[0] = share[1] = 0.5;
    return 2;
}

static bool last_product(const emit *e, uint32_t i)
{
    for (uint32_t k = i + 1; k < e->layer->n_ops; k++)
        if (e->layer->op[k].type == SC_LINEAR) return false;
    return true;
}

/* torchtitan's per-operator checkpointing: in the order in which they run,
 * the outputs of the first, third, ... matrix product, of attention and of
 * the reductions over tp; all else is made again from these and the layer's
 * input.  A compiler drops the last one, which no backward pass reads. */
static double every_second(const emit *e)
{
    const sc_run *r = &e->p->run;
    double bytes = 2 * made_input(e, 0), share[3];
    uint32_t count = 0;
    for (uint32_t i = 0; i < e->layer->n_ops; i++) {
        const sc_placed *o = &e->placed[i];
        double y = 2 * on_rank(e, o, o->op->y);
        if (o->op->type == SC_ATTENTION) {
            sc_op_work w = plan_work(r, o, SC_GP_FWD);
            bytes += sc_op_kept_output(&w);
        }
        if (o->op->type != SC_LINEAR || o->op->frozen) continue;
        bool unread = r->sw->single_pass && last_product(e, i);
        uint32_t n = products(r, o->op, share);
        for (uint32_t k = 0; k < n; k++)
            if (++count % 2 == 1 && !unread) bytes += y * share[k];
        bool partial = plan_tensor(o, o->op->y, true).partial >> SC_AX_TP & 1;
        if (partial && r->size[SC_AX_TP] > 1 && !unread)
            bytes += r->sp ? y / r->size[SC_AX_TP] : y;
    }
    return bytes;
}

/* ---- the worst moment of the backward pass ---------------------------------- */

/* Bytes of the gradients of an operator's output and input, which lie side by
 * side while it runs backward.  8-bit products read both operands along the
 * summed dimension: the gradient is cast in both layouts, the input turned. */
static double two_gradients(const emit *e, const sc_placed *o)
{
    const sc_run *r = &e->p->run;
    double in = on_rank(e, o, o->op->x), out = on_rank(e, o, o->op->y);
    if (o->op->type == SC_ACT && r->model->t.act >= SC_ACT_SWIGLU) in *= 2;
    bool low = r->precision >= SC_FP8 && o->op->type == SC_LINEAR &&
               e->layer->kind == SC_LAYER_BLOCK;
    return 2 * (in + out) + (low ? in + 2 * out : 0);
}

/* What the loss holds beside the 4 bytes per logit that are counted as kept. */
static double loss_room(const emit *e, const sc_placed *o, double kept)
{
    const sc_run *r = &e->p->run;
    sc_layout l = plan_tensor(o, o->op->x, false);
    bool split = l.shard[SC_D_VOCAB] && r->size[SC_AX_TP] > 1;
    double each = split && r->sw->split_logit_bytes > 0
                      ? r->sw->split_logit_bytes
                      : r->sw->logit_bytes;
    return kept / 4 * (each - 4);
}

/* `kept[i]` is what operator i keeps once everything has been made again;
 * `again` is how much more that is in all than what the layer keeps.  Operators
 * behind the one that runs backward have let go of theirs. */
static double worst_moment(const emit *e, const double *kept, double again)
{
    double worst = 0;
    for (uint32_t i = e->layer->n_ops; i-- > 0;) {
        const sc_placed *o = &e->placed[i];
        if (e->layer->kind == SC_LAYER_EMBED && o->op->src < 0) continue;
        double grads = o->op->type == SC_LOSS ? loss_room(e, o, kept[i])
                                              : two_gradients(e, o);
        worst = fmax(worst, again + grads);
        again -= kept[i];
    }
    return worst;
}

/* A product whose weights wait for their gradient keeps its operand and the
 * gradient of its result. */
static double late(const emit *e, const sc_placed *o, double kept)
{
    const sc_operator *op = o->op;
    bool product = op->type == SC_LINEAR || op->type == SC_EXPERT;
    if (e->layer->kind != SC_LAYER_BLOCK || !product || op->frozen) return 0;
    return kept + (plan_low(&e->p->run, op) ? 1 : 2) * on_rank(e, o, op->y);
}

void block_activations(emit *e, sc_block *b)
{
    const sc_run *r = &e->p->run;
    double kept[SC_LAYER_OPS] = {0}, sum = 0, planned = 0, largest = 0;
    bool all = whole_layer(e);
    sc_op_facts facts = plan_facts(r);
    for (uint32_t i = 0; i < e->layer->n_ops; i++) {
        const sc_placed *o = &e->placed[i];
        if (e->layer->kind == SC_LAYER_EMBED && o->op->src < 0) continue;
        sc_op_work w = plan_work(r, o, SC_GP_FWD);
        double in = kept_input(e, i), held = sc_op_kept(&facts, &w, 2 * in);
        w.again = false;
        kept[i] = sc_op_kept(&facts, &w, 2 * in);
        sum += kept[i];
        if (!made_again(e, o)) planned += held;
        largest = fmax(largest, 2 * in);
        b->late += late(e, o, kept[i]);
        if (o->op->type == SC_LOSS) b->logits += kept[i] / 2;
    }
    if (r->forward_only || e->layer->still) {
        b->late = 0;
        b->working = 2 * largest;
        return;
    }
    bool block = e->layer->kind == SC_LAYER_BLOCK;
    b->saved = planned;
    if (block && r->recompute == SC_RC_OPS) b->saved = every_second(e);
    if (block && all) b->saved = 2 * made_input(e, 0);
    b->working = worst_moment(e, kept, sum - b->saved);
    if (!block) return;
    /* One layer's on their way between device and host. */
    b->offloaded = b->saved * r->offload;
    b->saved -= b->offloaded;
    b->working += b->offloaded;
}
