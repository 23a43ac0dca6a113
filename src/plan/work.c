/* SPDX-License-Identifier: Apache-2.0 */
/* work.c - operators of blocks as the list of kernels (cost_op.h) takes them. */
#include "plan/work.h"

#include <math.h>
#include <string.h>

static double local(const sc_run *r, const sc_placed *o, sc_dimname d)
{
    for (uint32_t i = 0; i < o->op->n_iter; i++) {
        const sc_iter *it = &o->op->iter[i];
        if (it->name != d) continue;
        double n = (double)sc_iter_extent(it, plan_batch(r), r->seq);
        for (sc_axlist l = o->split.shard[d]; l; l >>= 4)
            n /= r->size[(l & 15) - 1];
        bool part = d == SC_D_BATCH && o->op->share > 0;
        if (d == SC_D_EXPERT) n *= plan_routed(r);
        return part ? n * o->op->share : n;
    }
    return 1;
}

/* Elements of an element-wise operator's output on one rank. */
static double volume(const sc_run *r, const sc_placed *o)
{
    double n = 1;
    for (uint32_t i = 0; i < o->op->n_iter; i++)
        n *= local(r, o, (sc_dimname)o->op->iter[i].name);
    return n;
}

/* Attention heads on one rank. */
static double heads_of(const sc_run *r, const sc_placed *o)
{
    double n = (double)r->model->t.heads;
    for (sc_axlist l = o->split.shard[SC_D_HEAD]; l; l >>= 4)
        n /= r->size[(l & 15) - 1];
    return n;
}

bool plan_is_routed(const sc_operator *op)
{
    for (uint32_t i = 0; i < op->n_iter; i++)
        if (op->iter[i].name == SC_D_EXPERT) return true;
    return false;
}

/* ---- the run ---------------------------------------------------------------- */

/* Each micro-batch but the first adds to what the others left; ZeRO-2 moves as
 * much into the buckets that are scattered after each. */
static bool accumulates(const sc_run *r)
{
    return r->zero < 3 && r->ga > 1;
}

sc_op_facts plan_facts(const sc_run *r)
{
    return plan_software_facts(r->sw, r->hw->device, r->precision, r->recipe,
                               accumulates(r));
}

/* ---- kinds -------------------------------------------------------------------- */

/* Rows, columns and depth of a product by the kinds of its dims; of experts a
 * weight each, and as many rows. */
static void product(const sc_run *r, const sc_placed *o, sc_op_work *w)
{
    const sc_operator *op = o->op;
    double in = 1, columns = 1, rows = 1, experts = 1;
    for (uint32_t i = 0; i < op->n_iter; i++) {
        const sc_iter *it = &op->iter[i];
        double e = local(r, o, (sc_dimname)it->name);
        if (it->kind == SC_I_BATCH) rows *= e;
        if (it->kind == SC_I_REDUCE) in *= e;
        if (it->kind == SC_I_FREE) columns *= e;
        if (it->name == SC_D_EXPERT)
            experts = it->units * (e / plan_routed(r) / (double)it->extent);
    }
    if (experts < 1) experts = 1;
    w->groups = experts;
    w->m = rows / experts;
    w->n = columns;
    w->k = in;
    w->x = w->each * rows * in;
    w->y = w->each * rows * columns;
    w->w = w->each * experts * in * columns;
    w->elements = rows * columns;
}

static void attention(const sc_run *r, const sc_placed *o, sc_op_work *w)
{
    const sc_operator *op = o->op;
    double b = local(r, o, SC_D_BATCH), s = local(r, o, SC_D_SEQ);
    double all = (double)r->model->t.heads, seq = (double)r->seq;
    w->groups = b * heads_of(r, o);
    w->m = s;
    w->keys = seq;
    w->n = op->window && op->window < r->seq ? (double)op->window : seq;
    w->k = (op->qk_dim + op->v_dim) / 2.0;
    w->x = w->each * w->groups * s *
           (op->qk_dim + (op->qk_dim + op->v_dim) * (double)op->kv_heads / all);
    w->y = w->each * w->groups * s * op->v_dim;
    w->causal = op->causal;
    w->again = o->recompute;
}

static uint8_t kind_of(const sc_operator *op)
{
    static const uint8_t kinds[SC_N_OP_TYPES] = {
        [SC_EMBED] = SC_G_EMBED,     [SC_POSITION] = SC_G_POSITION,
        [SC_NORM] = SC_G_NORM,       [SC_LINEAR] = SC_G_LINEAR,
        [SC_ROPE] = SC_G_ROPE,       [SC_ATTENTION] = SC_G_ATTENTION,
        [SC_ACT] = SC_G_ACT,         [SC_DROPOUT_ADD] = SC_G_ELEMENTWISE,
        [SC_LOSS] = SC_G_LOSS,       [SC_DISPATCH] = SC_G_DISPATCH,
        [SC_COMBINE] = SC_G_COMBINE, [SC_EXPERT] = SC_G_EXPERT,
        [SC_CONV1D] = SC_G_CONV1D,   [SC_SCAN] = SC_G_SCAN,
        [SC_PATCH] = SC_G_LINEAR};
    if (op->type == SC_DROPOUT_ADD && op->src2 < -1) return SC_G_DROPOUT;
    return kinds[op->type];
}

/* Element by element: input and output are of one size. */
static void pointwise(const sc_run *r, const sc_placed *o, sc_op_work *w)
{
    const sc_operator *op = o->op;
    w->x = w->y = w->each * w->elements;
    switch ((sc_op_type)op->type) {
    case SC_ACT:
        w->name = "act";
        w->gated = r->model->t.act >= SC_ACT_SWIGLU;
        if (w->gated) w->x *= 2;
        w->expert_bias = plan_is_routed(op) && r->model->t.bias;
        break;
    case SC_DROPOUT_ADD:
        if (w->type == SC_G_ELEMENTWISE) w->others = w->x;
        w->dropout = r->model->t.dropout;
        break;
    case SC_POSITION: /* the samples' rows are the same */
        w->name = "position";
        w->w = w->y / fmax(1, local(r, o, SC_D_BATCH));
        break;
    default: break;
    }
}

sc_op_work plan_work(const sc_run *r, const sc_placed *o, sc_gpass pass)
{
    const sc_operator *op = o->op;
    sc_op_work w = {.type = kind_of(op),
                    .pass = (uint8_t)pass,
                    .name = op->name,
                    .elements = volume(r, o),
                    .each = sc_value_bytes(r->precision),
                    .input_learns = op->type != SC_EMBED,
                    .weight_learns = !op->frozen,
                    .learns = 1,
                    .bias = op->bias > 0,
                    .low = plan_low(r, op),
                    .lookups = 1,
                    .dense = true};
    double rows = local(r, o, SC_D_BATCH) * local(r, o, SC_D_SEQ);
    double width = local(r, o, SC_D_HIDDEN), v = local(r, o, SC_D_VOCAB);
    switch ((sc_op_type)op->type) {
    case SC_LINEAR:
    case SC_PATCH:
    case SC_EXPERT: product(r, o, &w); break;
    case SC_ATTENTION:
        attention(r, o, &w);
        w.dropout = r->model->t.dropout;
        break;
    case SC_EMBED:
        w.elements = rows * width;
        w.x = 8 * rows;
        w.y = w.each * w.elements;
        w.w = w.each * v * width;
        break;
    case SC_LOSS: w.x = w.each * rows * v; break;
    case SC_CONV1D:
    case SC_SCAN: /* what goes through it, not its state */
        w.elements =
            local(r, o, SC_D_BATCH) * (double)r->seq * local(r, o, SC_D_STATE);
        pointwise(r, o, &w);
        break;
    default: pointwise(r, o, &w); break;
    }
    return w;
}

sc_op_work sc_operator_work(const sc_model *m, const sc_operator *op,
                            sc_gpass pass, uint64_t batch, uint64_t seq)
{
    sc_run r = {.model = m,
                .mbs = batch,
                .seq = seq,
                .precision = SC_BF16,
                .recipe = SC_RECIPE_BF16};
    for (int i = 0; i < SC_N_AX; i++) r.size[i] = 1;
    sc_placed o = {.op = op};
    return plan_work(&r, &o, pass);
}
