/* SPDX-License-Identifier: Apache-2.0 */
/*
 * infer_uneven.c - dims that axes do not divide evenly.  If P ranks share U
 * indivisible parts, the busiest has ceil(U / P).  Its kernels and bytes count,
 * and collectives move parts padded to its size (torch.chunk, GSPMD).
 */
#include "plan/infer.h"

#include <math.h>

uint64_t infer_units(const sc_iter_dim *it)
{
    return it->units ? it->units : it->extent;
}

double infer_busiest(uint64_t units, uint64_t parts)
{
    uint64_t most = (units + parts - 1) / parts;
    return (double)most / (double)units;
}

/* The largest part, divided by the mean. */
static double larger(const inference *f, const infer_uneven *u, sc_axes cut)
{
    uint64_t parts = 1;
    for (; cut; cut >>= 4) {
        uint32_t ax = (uint32_t)(cut & 15) - 1;
        if (u->axes >> ax & 1) parts *= f->mesh.size[ax];
    }
    return infer_busiest(u->units, parts) * (double)parts;
}

double infer_fraction(const inference *f, uint32_t tensor, const layout *l,
                      uint32_t dims)
{
    double fraction = layout_fraction(l, dims, &f->mesh);
    if (!f->uneven) return fraction;
    const infer_uneven *u = &f->uneven[(size_t)tensor * SC_TENSOR_DIMS];
    for (uint32_t d = 0; d < SC_TENSOR_DIMS; d++)
        if (dims >> d & 1 && u[d].units)
            fraction *= larger(f, &u[d], l->shard[d]);
    return fraction;
}

uint32_t infer_moves(const inference *f, uint32_t tensor, const layout *from,
                     const layout *to, layout_move *out)
{
    uint32_t n = infer_sequence(f, from, to, out);
    if (from->at && to->at && from->at != to->at) {
        uint32_t both = sc_axes_mask(from->shard[INFER_RR_DIM]) &
                        sc_axes_mask(to->shard[INFER_RR_DIM]);
        if (both) /* moves to another rank of these axes */
            out[n++] = (layout_move){SC_ALL_GATHER, both, INFER_RR_DIM,
                                     INFER_RR_DIM, 1};
    }
    uint32_t all = (1u << LAYOUT_DIMS) - 1;
    layout now = *from;
    for (uint32_t i = 0; f->uneven && i < n; i++) {
        double before = infer_fraction(f, tensor, &now, all) /
                        layout_fraction(&now, all, &f->mesh);
        layout_move_on(&now, to, &out[i]);
        double after = infer_fraction(f, tensor, &now, all) /
                       layout_fraction(&now, all, &f->mesh);
        out[i].fraction *= fmax(before, after);
    }
    return n;
}

/* Notes into how many indivisible units an operator cuts the dims of a tensor.
 * If operators differ, the smallest number counts. */
static void note(inference *f, uint32_t op, const sc_operand *p)
{
    for (uint32_t d = 0; d < f->g->tensor[p->tensor].n_dim; d++) {
        if (p->at[d] == SC_NO_ITER) continue;
        const sc_iter_dim *it = &f->g->op[op].iter[p->at[d]];
        sc_axes cut = f->node[op].split[p->at[d]];
        uint64_t units = infer_units(it), parts = infer_parts(f, cut);
        if (it->batch || parts <= 1 || units % parts == 0) continue;
        infer_uneven *u = &f->uneven[(size_t)p->tensor * SC_TENSOR_DIMS + d];
        if (u->units == 0 || units < u->units) u->units = (uint32_t)units;
        u->axes |= sc_axes_mask(cut);
    }
}

sc_status infer_find_uneven(inference *f)
{
    if (!f->ragged) return SC_OK;
    f->uneven =
        SC_NEW_N(f->a, infer_uneven, (size_t)f->g->n_tensors * SC_TENSOR_DIMS);
    if (!f->uneven) return sc_error_nomem(f->err);
    for (uint32_t i = 0; i < f->g->n_ops; i++) {
        const sc_net_op *o = &f->g->op[i];
        for (uint32_t k = 0; k < o->n_in; k++) note(f, i, &o->in[k]);
        for (uint32_t k = 0; k < o->n_weight; k++) note(f, i, &o->weight[k]);
        note(f, i, &o->out);
    }
    return SC_OK;
}
