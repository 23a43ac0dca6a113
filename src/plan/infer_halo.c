/* SPDX-License-Identifier: Apache-2.0 */
/*
 * infer_halo.c - exchanges between parts of a spatial split.  A window at the
 * edge of a part reads positions of the neighbouring parts: kernel - stride of
 * them on both sides together.  They are exchanged before the forward pass, and
 * as many gradients before the backward pass.  Statistics over positions are
 * summed over parts.
 */
#include "plan/infer.h"

/* Axes that split iteration dim `it`, as a set; 0: none. */
static uint32_t axes_of(const inference *f, uint32_t op, uint32_t it)
{
    sc_axes split = f->node[op].split[it];
    return infer_parts(f, split) > 1 ? sc_axes_mask(split) : 0;
}

/* Bytes of the first input's positions along `it` that neighbours send. */
static double beyond(const inference *f, uint32_t op, uint32_t it)
{
    const sc_operand *p = &f->g->op[op].in[0];
    const sc_tensor *t = &f->g->tensor[p->tensor];
    layout l = infer_port(f, op, p, false);
    for (uint32_t d = 0; d < t->n_dim; d++) {
        if (p->at[d] != it) continue;
        double own = (double)t->dim[d].extent *
                     infer_fraction(f, p->tensor, &l, 1u << d);
        return infer_rank_bytes(f, t, &l) * f->g->op[op].iter[it].halo / own;
    }
    return 0;
}

/* Bytes of the statistics: an fp32 sum and sum of squares for each element of
 * the dims that they do not reduce. */
static double statistics(const inference *f, uint32_t op)
{
    const sc_net_op *o = &f->g->op[op];
    double n = 1;
    for (uint32_t i = 0; i < o->n_iter; i++) {
        const sc_iter_dim *it = &o->iter[i];
        double parts = infer_parts(f, f->node[op].split[i]);
        if (it->sums) continue;
        n *= it->batch ? sc_iter_dim_extent(it, f->samples) / parts
                       : (double)infer_units(it) / parts;
    }
    return 2 * 4 * n;
}

static sc_status exchange(inference *f, const infer_why *w, infer_coll *c,
                          infer_extra *extra)
{
    uint32_t item;
    if (c->bytes <= 0 || extra->n == SC_COUNT(extra->value)) return SC_OK;
    c->out_bytes = c->bytes;
    SC_TRY(infer_collective(f, w, c, &item));
    extra->value[extra->n++] = f->prog->item[item].out;
    return SC_OK;
}

sc_status infer_neighbours(inference *f, uint32_t op, uint32_t phase,
                           bool recomputed, const uint32_t *in, uint32_t n_in,
                           infer_extra *extra)
{
    const sc_net_op *o = &f->g->op[op];
    bool back = phase == INFER_BACKWARD && !recomputed;
    uint32_t summed = 0;
    extra->n = 0;
    /* Input data are loaded with the positions of their neighbours. */
    bool data =
        o->n_in == 0 || f->g->tensor[o->in[0].tensor].kind == SC_TENSOR_INPUT;
    infer_why w = {.path = o->path,
                   .tensor = back ? "halo grad" : "halo",
                   .origin = infer_by(f, op),
                   .pass = back ? SC_PASS_DGRAD : SC_PASS_FWD,
                   .op = op,
                   .stage = f->node[op].stage,
                   .of = o->out.tensor,
                   .what = back ? VALUE_ACT_GRAD : VALUE_ACT,
                   .phase = (uint8_t)phase,
                   .recomputed = recomputed};
    for (uint32_t i = 0; i < o->n_iter; i++) {
        uint32_t axes = axes_of(f, op, i);
        if (o->iter[i].sums) summed |= axes;
        if (!axes || !o->iter[i].halo || data) continue;
        infer_coll c = {.coll = SC_SENDRECV,
                        .axes = axes,
                        .bytes = beyond(f, op, i),
                        .reason = "halo from neighbouring ranks",
                        .in = in,
                        .n_in = n_in};
        SC_TRY(exchange(f, &w, &c, extra));
    }
    w.tensor = back ? "sums grad" : "sums";
    infer_coll c = {.coll = SC_ALL_REDUCE,
                    .axes = summed,
                    .bytes = summed ? statistics(f, op) : 0,
                    .reason = "statistics, partial to replicated",
                    .in = in,
                    .n_in = n_in};
    return exchange(f, &w, &c, extra);
}
