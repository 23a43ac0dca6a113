/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block.c - one layer entry of the model as priced pieces.
 *
 * Forward: operators in order, each behind the collectives that turn its
 * inputs' layouts into those it needs.  Backward: in reverse, first what is
 * recomputed, then for every operator the gradient of its output brought into
 * its layout, the product for the input, the product for the weight.
 */
#include "plan/block.h"

#include <math.h>
#include <string.h>

#define PIECES 320

/* Tokens to and from experts: the only exchanges over ep without dp. */
static bool is_dispatch(uint32_t axes)
{
    return axes >> SC_AX_EP & 1 && !(axes >> SC_AX_DP & 1);
}

static uint8_t cat_of_axes(uint32_t axes)
{
    if (is_dispatch(axes)) return SC_CAT_EP;
    if (axes >> SC_AX_TP & 1) return SC_CAT_TP;
    if (axes >> SC_AX_CP & 1) return SC_CAT_CP;
    if (axes >> SC_AX_DP & 1 || axes >> SC_AX_REP & 1) return SC_CAT_DP;
    return SC_CAT_PP;
}

/* A copy of a token costs more than its bytes: where it goes to, its weight,
 * its place among the others. */
static double row_cost(const sc_run *r)
{
    const sc_transformer *t = &r->model->t;
    double width = (double)(t->latent ? t->latent : t->hidden);
    return 1 + r->cost->p[SC_P_EP_ROW] / (2 * width);
}

/* Share of an exchange that the program does not hide. */
static double exposed(const emit *e, uint32_t axes, double seconds)
{
    const sc_run *r = &e->p->run;
    if (axes == 1u << SC_AX_TP && r->sw->tp_overlap && r->sp)
        return seconds * r->cost->p[SC_P_TP_EXPOSED];
    if (!is_dispatch(axes)) return seconds;
    /* Libraries made for it drive the NICs better than an all-to-all does. */
    if (r->sw->dedup_dispatch && e->p->place[axes].nodes > 1)
        seconds *= r->cost->p[SC_P_A2A_NET] / r->cost->p[SC_P_EP_NET];
    else
        seconds *= row_cost(r) / r->cost->p[SC_P_EP_RATE];
    return r->sw->ep_overlap ? seconds * r->cost->p[SC_P_EP_EXPOSED] : seconds;
}

/* What runs beside kernels is not seen, but slows both by what it takes. */
static double beside(double taken, double seconds, double hidden_s)
{
    double both = fmin(seconds, hidden_s);
    return seconds - both + both * taken;
}

static void push(emit *e, sc_piece p)
{
    if (e->n < PIECES) e->piece[e->n++] = p;
}

/* Appends one priced collective; `hidden_s` of it runs beside a kernel. */
static sc_status collective(emit *e, const char *name, sc_coll coll,
                            uint32_t axes, double bytes, double hidden_s)
{
    sc_coll_price cp;
    const sc_place *at = &e->p->place[axes];
    SC_TRY(sc_cost_coll(e->p->run.cost, e->p->run.hw, coll, bytes, at, -1, &cp,
                        e->err));
    push(e, (sc_piece){.name = name,
                       .kind = SC_OP_COLL,
                       .stream = SC_S_COMPUTE,
                       .cat = cat_of_axes(axes),
                       .axes = axes,
                       .coll = (uint8_t)coll,
                       .seconds = beside(
                           sc_plan_units(e->p->run.hw->device, cp.channels),
                           exposed(e, axes, cp.seconds), hidden_s),
                       .bytes = bytes,
                       .launches = 1});
    return SC_OK;
}

static sc_status moves(emit *e, const char *name, const sc_layout *from,
                       const sc_layout *to, double elements, double bytes_each,
                       double hidden_s)
{
    sc_move m[SC_MOVES];
    uint32_t n = sc_layout_moves(from, to, e->p->run.size, m);
    for (uint32_t i = 0; i < n; i++) {
        SC_TRY(collective(e, name, m[i].coll, m[i].axes,
                          m[i].fraction * elements * bytes_each, hidden_s));
    }
    return SC_OK;
}

/* Returns the seconds of the kernels pushed (of the input pass only). */
static double kernels(emit *e, const sc_placed *o, bool backward)
{
    const sc_run *r = &e->p->run;
    sc_op_facts facts = plan_facts(r);
    sc_op_work w = plan_work(r, o, backward ? SC_GP_BWD : SC_GP_FWD);
    sc_op_kernels k;
    sc_op_list(r->cost, &facts, &w, &k);
    bool captured =
        r->sw->capture == SC_CAPTURE_STEP ||
        (r->sw->capture == SC_CAPTURE_LAYERS && !plan_is_routed(o->op));
    double sum = 0;
    for (uint32_t i = 0; i < k.n; i++) {
        sc_price price = sc_op_kernel_price(r->cost, r->hw->device, &k, i);
        push(e, (sc_piece){.name = k.k[i].name,
                           .kind = SC_OP_COMPUTE,
                           .stream = SC_S_COMPUTE,
                           .cat = SC_CAT_COMPUTE,
                           .wgrad = k.wgrad[i],
                           .seconds = price.seconds,
                           .flops = price.flops,
                           .bytes = price.bytes,
                           .launches = captured ? 0 : price.launches});
        if (!k.wgrad[i]) sum += price.seconds;
    }
    return sum;
}

/* Layout in which operator `src` of the layer leaves its output; -1 is the
 * layer's input, made by the last operator of a block. */
static sc_layout made_by(const emit *e, int src, bool made)
{
    const sc_placed *o;
    if (src >= 0) {
        o = &e->placed[src];
    } else {
        uint32_t last = e->p->run.model->layer[1].n_ops - 1;
        o = &e->p->placed[1][last];
    }
    return plan_tensor(o, o->op->y, made);
}

/* A gather or scatter as a ring of point-to-point steps: in each a rank passes
 * one of the parts on while it works on another, so that only what a step takes
 * beyond its share of `beside_s` shows.  With the causal mask ranks have tokens
 * of both ends of the sequence (Brandon et al. 2023): equal shares. */
static sc_status ring(emit *e, const char *name, const sc_move *m, double bytes,
                      double beside_s)
{
    const sc_place *at = &e->p->place[m->axes];
    sc_coll_price step;
    double part = bytes / at->n, steps = at->n - 1.0;
    SC_TRY(sc_cost_coll(e->p->run.cost, e->p->run.hw, SC_SENDRECV, part, at, -1,
                        &step, e->err));
    push(e, (sc_piece){.name = name,
                       .kind = SC_OP_COLL,
                       .stream = SC_S_COMPUTE,
                       .cat = cat_of_axes(m->axes),
                       .axes = m->axes,
                       .coll = SC_SENDRECV,
                       .seconds =
                           steps * beside(sc_plan_units(e->p->run.hw->device,
                                                        step.channels),
                                          step.seconds, beside_s / at->n),
                       .bytes = steps * part,
                       .launches = (uint32_t)steps});
    return SC_OK;
}

/* Moves of keys and values; the program says how gathers are done. */
static sc_status pass_round(emit *e, const char *name, const sc_layout *from,
                            const sc_layout *to, double elements,
                            double beside_s)
{
    sc_move m[SC_MOVES];
    if (e->p->run.sw->cp_comm != SC_CP_RING)
        return moves(e, name, from, to, elements, 2, 0);
    uint32_t n = sc_layout_moves(from, to, e->p->run.size, m);
    for (uint32_t i = 0; i < n; i++) {
        SC_TRY(ring(e, name, &m[i], m[i].fraction * elements * 2, beside_s));
    }
    return SC_OK;
}

/* Every query of an attention needs all keys and values of its sequence.
 * Where queries are split along it, these are gathered in both passes (a rank
 * keeps its own), and their gradients summed and scattered; where attention
 * has some heads of all tokens (Ulysses), they change places once a pass. */
static sc_status keys_and_values(emit *e, const sc_placed *o, double beside_s,
                                 bool backward)
{
    const sc_run *r = &e->p->run;
    const sc_operator *op = o->op;
    sc_layout own = plan_tensor(o, op->x, false), need = own;
    double elements = (double)plan_batch(r) * (double)r->seq * op->kv_heads *
                      (op->qk_dim + op->v_dim);
    if (own.shard[SC_D_SEQ] == 0) {
        own = made_by(e, op->src, false);
        if (backward)
            return moves(e, "key gradients", &need, &own, elements, 2, 0);
        return moves(e, "keys and values", &own, &need, elements, 2, 0);
    }
    need.shard[SC_D_SEQ] = 0;
    if (backward) beside_s /= 2; /* the other half is beside the gradients */
    SC_TRY(pass_round(e, "keys and values", &own, &need, elements, beside_s));
    if (!backward) return SC_OK;
    need.partial |= sc_axlist_mask(own.shard[SC_D_SEQ]);
    return pass_round(e, "key gradients", &need, &own, elements, beside_s);
}

/* Elements of the inputs that operator `o` names: of attention the queries,
 * its keys and values come as keys_and_values() says. */
static double input_elements(const emit *e, const sc_placed *o)
{
    double n = plan_elements(&e->p->run, o->op, o->op->x);
    return o->op->type == SC_ATTENTION ? n * o->op->qk_dim / o->op->v_dim : n;
}

/* Ranks of `n` that hold one of the groups of experts a token is limited to:
 * route_topk of route_groups, none of them with the probability that all are
 * drawn among those of other ranks. */
static double ranks_in_reach(const sc_transformer *t, double n)
{
    double groups = (double)t->route_groups, own = groups / n, miss = 1;
    if (t->route_groups < 2) return n;
    if (own < 1) return n * (double)t->route_topk / groups;
    for (int64_t i = 0; i < t->route_topk; i++)
        miss *= fmax(0, groups - own - (double)i) / (groups - (double)i);
    return n * (1 - miss);
}

/* A token goes once to every rank that has one of its experts, not once to
 * every expert; over nodes once to every such node, which hands it on inside:
 * n (1 - (1 - 1/n)^k) of k copies reach n ranks or nodes. */
static double copies_sent(const emit *e, const sc_operator *op)
{
    const sc_run *r = &e->p->run;
    uint32_t axes = 1u << SC_AX_EP;
    if (r->experts_over_tp) axes |= 1u << SC_AX_TP;
    const sc_place *at = &e->p->place[axes];
    const sc_transformer *t = &r->model->t;
    double n = at->nodes > 1 ? at->nodes : at->n, k = (double)t->topk;
    if (!plan_is_routed(op) || !r->sw->dedup_dispatch || n <= 1 || k <= 0)
        return 1;
    double reach = ranks_in_reach(t, n);
    return reach * (1 - pow(1 - 1 / reach, k)) / k;
}

static bool same_layout(const sc_layout *a, const sc_layout *b)
{
    return a->partial == b->partial &&
           memcmp(a->shard, b->shard, sizeof a->shard) == 0;
}

/* An operator before `i` takes the same tensor in the same layout: what is
 * gathered for one serves both, and their gradients are summed before they
 * travel.  `weights`: of those whose weights learn. */
static bool shared_input(const emit *e, uint32_t i, bool backward, bool weights)
{
    const sc_placed *o = &e->placed[i];
    sc_layout mine = plan_tensor(o, o->op->x, backward);
    for (uint32_t j = 0; j < i; j++) {
        const sc_placed *p = &e->placed[j];
        bool learns = p->op->type == SC_LINEAR && !p->op->frozen;
        if (p->op->src != o->op->src || (weights && !learns)) continue;
        sc_layout its = plan_tensor(p, p->op->x, backward);
        if (same_layout(&mine, &its)) return true;
    }
    return false;
}

static sc_status forward_op(emit *e, uint32_t i)
{
    const sc_placed *o = &e->placed[i];
    const sc_operator *op = o->op;
    double n = input_elements(e, o);
    sc_layout to = plan_tensor(o, op->x, false);
    bool first = e->layer->kind == SC_LAYER_EMBED && op->src < 0;
    if (!first) {
        sc_layout from = made_by(e, op->src, true);
        if (!shared_input(e, i, false, false))
            SC_TRY(
                moves(e, op->name, &from, &to, n, 2 * copies_sent(e, op), 0));
        if (op->src2 > -2 && op->type != SC_ATTENTION) {
            from = made_by(e, op->src2, true);
            SC_TRY(moves(e, op->name, &from, &to, n, 2, 0));
        }
    }
    double s = kernels(e, o, false);
    return op->type == SC_ATTENTION ? keys_and_values(e, o, s, false) : SC_OK;
}

/* The embedding hands over in the layout that blocks take. */
static sc_status hand_over(emit *e, bool backward)
{
    if (e->layer->kind != SC_LAYER_EMBED) return SC_OK;
    const sc_placed *last = &e->placed[e->layer->n_ops - 1];
    sc_layout from = plan_tensor(last, last->op->y, !backward);
    sc_layout to = made_by(e, -1, false);
    double n = plan_elements(&e->p->run, last->op, last->op->y);
    return backward ? moves(e, "embedding gradient", &to, &from, n, 2, 0)
                    : moves(e, "embedding", &from, &to, n, 2, 0);
}

/* The saved input of `i` stays in its producer's layout where that is smaller;
 * the weight pass may need it gathered again, which runs beside the input
 * pass. */
static sc_status regather(emit *e, uint32_t i, double hidden_s)
{
    const sc_placed *o = &e->placed[i];
    if (!o->op->w || o->op->frozen || o->op->type != SC_LINEAR) return SC_OK;
    if (shared_input(e, i, false, true)) return SC_OK;
    sc_layout kept = made_by(e, o->op->src, false);
    sc_layout need = plan_tensor(o, o->op->x, false);
    sc_move m[SC_MOVES];
    uint32_t n = sc_layout_moves(&kept, &need, e->p->run.size, m);
    if (n > 0 && m[0].coll == SC_ALL_TO_ALL) return SC_OK;
    return moves(e, "regather input", &kept, &need,
                 plan_elements(&e->p->run, o->op, o->op->x), 2, hidden_s);
}

static sc_status backward_op(emit *e, uint32_t i)
{
    const sc_placed *o = &e->placed[i];
    const sc_operator *op = o->op;
    double s = kernels(e, o, true);
    if (op->type == SC_ATTENTION) SC_TRY(keys_and_values(e, o, s, true));
    SC_TRY(regather(e, i, s));
    bool first = e->layer->kind == SC_LAYER_EMBED && op->src < 0;
    if (first) return SC_OK;
    sc_layout from = plan_tensor(o, op->x, true);
    sc_layout to = made_by(e, op->src, false);
    double n = input_elements(e, o);
    if (!shared_input(e, i, true, false))
        SC_TRY(moves(e, op->name, &from, &to, n, 2 * copies_sent(e, op), 0));
    if (op->src2 <= -2 || op->type == SC_ATTENTION) return SC_OK;
    to = made_by(e, op->src2, false);
    return moves(e, op->name, &from, &to, n, 2, 0);
}

/* Forward work repeated in the backward pass.  With early stop the last
 * product and what follows it are left out: nobody needs their results. */
static sc_status recompute(emit *e, uint32_t *first_kept)
{
    uint32_t n = e->layer->n_ops, all = 0;
    for (uint32_t i = 0; i < n; i++) all += e->placed[i].recompute;
    *first_kept = all == n;
    if (all != n) return SC_OK;
    uint32_t end = n;
    if (e->p->run.sw->early_stop)
        while (end > 0 && e->layer->op[end - 1].type != SC_LINEAR) end--;
    if (e->p->run.sw->early_stop && end > 0) end--;
    for (uint32_t i = 0; i < end; i++) SC_TRY(forward_op(e, i));
    return SC_OK;
}

/* Kernels are issued by a program that runs beside them; with blocking
 * launches the device also idles after each. */
static void host(emit *e)
{
    const sc_run *r = &e->p->run;
    double g = 0, launches = 0;
    for (uint32_t i = 0; i < e->n; i++) {
        if (e->piece[i].kind == SC_OP_COMPUTE) g += e->piece[i].seconds;
        launches += e->piece[i].launches;
    }
    double extra = 0;
    if (r->sw->capture != SC_CAPTURE_STEP && g > 0) {
        double c = launches * r->cost->p[SC_P_HOST_KERNEL];
        double p = r->cost->p[SC_P_HOST_POWER];
        extra = g * pow(1 + pow(c / g, p), 1 / p) - g;
    }
    if (r->launch_blocking) extra += launches * r->cost->p[SC_P_BLOCKING];
    if (extra > 0)
        push(e, (sc_piece){.name = "host",
                           .kind = SC_OP_HOST,
                           .stream = SC_S_COMPUTE,
                           .cat = SC_CAT_HOST,
                           .seconds = extra});
}

/* Activations on their way to the host, or back, beside the layer. */
static void offload(emit *e, double bytes)
{
    const sc_device *d = e->p->run.hw->device;
    double beside_s = 0, rate = d->host_bw;
    /* Copy engines take memory bandwidth, no units. */
    double taken = rate / (d->mem_bw * e->p->run.cost->p[SC_P_MEM_EFF]);
    if (bytes <= 0 || rate <= 0) return;
    for (uint32_t i = 0; i < e->n; i++) beside_s += e->piece[i].seconds;
    push(e, (sc_piece){.name = "offload",
                       .kind = SC_OP_MEM,
                       .stream = SC_S_COMPUTE,
                       .cat = SC_CAT_OFFLOAD,
                       .seconds = beside(taken, bytes / rate, beside_s),
                       .bytes = bytes});
}

static sc_status freeze(emit *e, sc_arena *a, sc_piece **out, uint32_t *n,
                        double cat[SC_N_CATS], double *seconds, double *flops)
{
    if (e->n >= PIECES)
        return sc_error(e->err, SC_EBUG, SC_C_BUG, sc_pos_none(), NULL,
                        "a layer has more than %d pieces", PIECES);
    sc_piece *p = SC_NEW_N(a, sc_piece, e->n);
    if (!p) return sc_error_nomem(e->err);
    memcpy(p, e->piece, e->n * sizeof *p);
    memset(cat, 0, SC_N_CATS * sizeof *cat);
    *seconds = 0;
    for (uint32_t i = 0; i < e->n; i++) {
        cat[p[i].cat] += p[i].seconds;
        *seconds += p[i].seconds;
        *flops += p[i].flops;
    }
    *out = p;
    *n = e->n;
    return SC_OK;
}

static sc_status forward(emit *e)
{
    for (uint32_t i = 0; i < e->layer->n_ops; i++) SC_TRY(forward_op(e, i));
    SC_TRY(hand_over(e, false));
    host(e);
    return SC_OK;
}

static sc_status backward(emit *e)
{
    uint32_t whole = 0;
    SC_TRY(recompute(e, &whole));
    SC_TRY(hand_over(e, true));
    for (uint32_t i = e->layer->n_ops; i-- > 0;) {
        if (!whole && e->placed[i].recompute) kernels(e, &e->placed[i], false);
        SC_TRY(backward_op(e, i));
    }
    host(e);
    return SC_OK;
}

/* The part of the backward pass that may run later; the host issues it at the
 * same rate as the rest. */
static void weight_pass(const emit *e, sc_block *b)
{
    double host = b->bwd_cat[SC_CAT_HOST], kernels = 0;
    if (e->layer->kind != SC_LAYER_BLOCK) return;
    for (uint32_t i = 0; i < e->n; i++) {
        if (e->piece[i].kind == SC_OP_COMPUTE) kernels += e->piece[i].seconds;
        if (e->piece[i].wgrad) b->w_cat[SC_CAT_COMPUTE] += e->piece[i].seconds;
    }
    if (kernels > 0)
        b->w_cat[SC_CAT_HOST] = host * b->w_cat[SC_CAT_COMPUTE] / kernels;
    b->w_s = b->w_cat[SC_CAT_COMPUTE] + b->w_cat[SC_CAT_HOST];
}

static emit begin(const sc_plan *p, uint32_t layer, sc_piece *room, sc_err *err)
{
    return (emit){.p = p,
                  .layer = &p->run.model->layer[layer],
                  .placed = p->placed[layer],
                  .piece = room,
                  .err = err};
}

void sc_block_activations(const sc_plan *p, uint32_t layer, sc_block *inout)
{
    emit e = begin(p, layer, NULL, NULL);
    block_activations(&e, inout);
    inout->still = e.layer->still;
}

sc_status sc_block_weights(const sc_plan *p, uint32_t layer, sc_block *inout,
                           sc_err *err)
{
    emit e = begin(p, layer, NULL, err);
    return block_weights(&e, inout);
}

sc_status sc_block_passes(const sc_plan *p, uint32_t layer, sc_arena *a,
                          sc_block *inout, sc_err *err)
{
    sc_block b = *inout;
    sc_piece buf[PIECES];
    emit e = begin(p, layer, buf, err);
    SC_TRY(forward(&e));
    offload(&e, b.offloaded);
    SC_TRY(freeze(&e, a, &b.fwd, &b.n_fwd, b.fwd_cat, &b.fwd_s, &b.flops));
    if (!p->run.forward_only && !b.still) {
        e.n = 0;
        SC_TRY(backward(&e));
        offload(&e, b.offloaded);
        SC_TRY(freeze(&e, a, &b.bwd, &b.n_bwd, b.bwd_cat, &b.bwd_s, &b.flops));
        weight_pass(&e, &b);
    }
    *inout = b;
    return SC_OK;
}

sc_status sc_block_price(const sc_plan *p, uint32_t layer, sc_arena *a,
                         sc_block *out, sc_err *err)
{
    sc_block b = {0};
    sc_block_activations(p, layer, &b);
    SC_TRY(sc_block_passes(p, layer, a, &b, err));
    SC_TRY(sc_block_weights(p, layer, &b, err));
    *out = b;
    return SC_OK;
}
