/* SPDX-License-Identifier: Apache-2.0 */
/* net_work.c - describes a network operator for the list of kernels. */
#include "cost/cost_optimizer.h"
#include "cost/net_op.h"
#include "cost/ops.h"

#include <math.h>
#include <string.h>

/* Elements of a row that one block of a normalization keeps on the chip: 128
 * KiB in 16 bits (assumed: an SM has 256 KiB of registers).  For a longer row
 * it reads the input twice. */
#define NORM_ROW 65536.0

static double bytes_of(const sc_net_work *w, const sc_operand *p)
{
    return net_op_elements(w, p) * net_op_bytes(w, p);
}

/* The operator that made the first input of `o`, or NULL; views in between are
 * skipped. */
static const sc_net_op *producer(const sc_net *g, const sc_net_op *o)
{
    while (o->n_in > 0) {
        const sc_tensor *t = &g->tensor[o->in[0].tensor];
        if (t->kind != SC_TENSOR_VALUE || t->op >= g->n_ops) return NULL;
        o = &g->op[t->op];
        if (o->type != SC_NET_VIEW || o->copy) return o;
    }
    return NULL;
}

/* Whether its kernel can also compute element-wise operators after it. */
static bool takes_neighbours(const sc_net_op *p)
{
    if (!p) return false;
    switch ((sc_net_type)p->type) {
    case SC_NET_LINEAR:
    case SC_NET_CONV:
    case SC_NET_CONV_TRANSPOSED:
    case SC_NET_BATCH_NORM:
    case SC_NET_NORM: return true;
    default: return ops_elementwise((sc_net_type)p->type);
    }
}

/* Whether it is fused into a normalization's kernel with other operators. */
static bool behind_norm(const sc_net_work *w)
{
    const sc_net_op *p = producer(w->net, w->op);
    while (p && (p->type == SC_NET_ELEMENTWISE || p->type == SC_NET_DROPOUT ||
                 p->type == SC_NET_ACT))
        p = producer(w->net, p);
    return p && (p->type == SC_NET_BATCH_NORM || p->type == SC_NET_NORM);
}

static void neighbours(const sc_net_work *w, sc_op_work *out)
{
    const sc_net_op *p = producer(w->net, w->op);
    out->joins = takes_neighbours(p);
    out->behind_norm = behind_norm(w);
    out->behind_conv =
        p && (p->type == SC_NET_CONV || p->type == SC_NET_CONV_TRANSPOSED);
    /* consecutive tables */
    out->same_kernel = w->op > w->net->op && w->op[-1].type == SC_NET_EMBED;
}

/* Elements that share statistics: the extents that a norm covers, and at most a
 * group of channels. */
static double norm_row(const sc_net_work *w)
{
    double n = 1, all = 1;
    bool groups = false;
    for (uint32_t i = 0; i < w->op->n_iter; i++) {
        const sc_iter_dim *it = &w->op->iter[i];
        groups |= it->sums;
        if (it->kind != SC_I_BATCH) all *= w->extent[i];
        if (it->kind == SC_I_OPAQUE) n *= w->extent[i];
    }
    return groups ? all : n;
}

/* Heads are the units of the iteration dim that has units; the number of keys
 * follows from the FLOP. */
static void attention(const sc_net_work *w, sc_op_work *out)
{
    const sc_net_op *o = w->op;
    double heads = 1, width = 1, samples = 1, part = 1, y = out->elements;
    for (uint32_t i = 0; i < o->n_iter; i++) {
        double all = sc_iter_dim_extent(&o->iter[i], w->samples);
        part *= w->extent[i] / all;
        if (o->iter[i].units > 0) {
            heads = o->iter[i].units * w->extent[i] / all;
            width = all / o->iter[i].units;
        }
        if (o->iter[i].batch)
            samples *= w->extent[i] / (double)o->iter[i].extent;
    }
    if (o->qk_dim > 0) width = (o->qk_dim + o->v_dim) / 2.0;
    out->groups = samples * heads;
    out->m = y / (out->groups * (o->v_dim > 0 ? o->v_dim : width));
    out->k = width;
    out->n = o->flops * w->samples * part / (4 * out->groups * out->m * out->k);
    const sc_operand *keys = &o->in[o->n_in > 1 ? 1 : 0];
    out->keys = (double)w->net->tensor[keys->tensor].dim[1].extent;
    if (out->keys < out->n) out->keys = out->n;
}

/* Experts on this rank and the rows of each.  The dim's extent counts the
 * copies of a token, its units the experts. */
static void expert(const sc_net_work *w, sc_op_work *out)
{
    const sc_net_op *o = w->op;
    double experts = 1;
    for (uint32_t i = 0; i < o->n_iter; i++) {
        const sc_iter_dim *it = &o->iter[i];
        double all = sc_iter_dim_extent(it, w->samples);
        if (strcmp(it->name, "expert") == 0)
            experts = fmax(1, it->units * w->extent[i] / all);
    }
    out->groups = experts;
    out->n = net_op_length(w, &o->weight[0], 1);
    out->k = net_op_length(w, &o->weight[0], 2);
    out->m = out->elements / out->n / experts;
}

/* Width of a square window with stride 1: the result has as many positions as
 * the input, except at the border. */
static uint8_t window_of(const sc_net_work *w)
{
    const sc_net_op *o = w->op;
    const sc_tensor *k = &w->net->tensor[o->weight[0].tensor];
    const sc_tensor *x = &w->net->tensor[o->in[0].tensor];
    const sc_tensor *y = &w->net->tensor[o->out.tensor];
    if (o->type != SC_NET_CONV || k->n_dim != 4) return 0;
    uint64_t side = k->dim[2].extent;
    if (k->dim[3].extent != side || side > 255) return 0;
    for (uint32_t d = 2; d < 4; d++)
        if (x->dim[d].extent + side <= y->dim[d].extent ||
            y->dim[d].extent + side <= x->dim[d].extent)
            return 0;
    return (uint8_t)side;
}

static void product(const sc_net_work *w, sc_op_work *out)
{
    net_op_product p = net_op_product_of(w);
    out->groups = p.groups;
    out->m = p.m;
    out->n = p.n;
    out->k = p.k;
    out->channels = p.in;
}

static bool dense(const sc_net_work *w)
{
    return !w->by_rows && !sc_optimizer_of(w->optimizer)->by_rows;
}

static void embed(const sc_net_work *w, sc_op_work *out)
{
    const sc_operand *table = &w->op->weight[0];
    out->lookups = w->op->lookups ? w->op->lookups : 1;
    out->each = net_op_bytes(w, table);
    out->dense = dense(w);
    if (!w->op->access) return;
    out->access = w->op->access;
    out->table_rows = (double)w->net->tensor[table->tensor].dim[0].extent;
    out->row_parts = out->table_rows / net_op_length(w, table, 0);
    out->table_width = net_op_length(w, table, 1);
    out->tables = 1;
    if (!w->facts.fused) return;
    out->tables = 0;
    for (uint32_t i = 0; i < w->net->n_ops; i++)
        out->tables += w->net->op[i].type == SC_NET_EMBED;
}

/* The operator may use only a part of its input: of each head, or of the
 * channels. */
static void of_iteration(const sc_net_work *w, sc_op_work *out)
{
    out->elements = 1;
    for (uint32_t i = 0; i < w->op->n_iter; i++) out->elements *= w->extent[i];
    out->x = out->y = out->elements * out->each;
}

static void activation(const sc_net_work *w, sc_op_work *out)
{
    const sc_net_op *p = producer(w->net, w->op);
    out->gated = w->op->gated;
    out->expert_bias = p && p->type == SC_NET_EXPERT && p->n_weight > 1;
}

static void shape(const sc_net_work *w, sc_op_work *out)
{
    switch ((sc_net_type)w->op->type) {
    case SC_NET_CONV:
    case SC_NET_CONV_TRANSPOSED:
        out->window = window_of(w);
        product(w, out);
        if (out->window == 0) break;
        out->rows = net_op_length(w, &w->op->out, 2);
        out->cols = net_op_length(w, &w->op->out, 3);
        break;
    case SC_NET_LINEAR:
    case SC_NET_MATMUL: product(w, out); break;
    case SC_NET_EXPERT: expert(w, out); break;
    case SC_NET_ATTENTION: attention(w, out); break;
    case SC_NET_NORM:
        of_iteration(w, out);
        out->wide_rows = norm_row(w) > NORM_ROW;
        break;
    case SC_NET_ACT: activation(w, out); break;
    case SC_NET_ROPE: of_iteration(w, out); break;
    case SC_NET_LOSS:
        out->each = net_op_bytes(w, &w->op->in[0]);
        out->split = w->parts && w->parts[w->op->n_iter - 1] > 1;
        break;
    case SC_NET_POSITION: /* counts rows that are read; the table may have
                             more */
        out->w = fmin(out->w, out->y);
        break;
    case SC_NET_EMBED: embed(w, out); break;
    default: break;
    }
}

void net_op_work(const sc_net_work *w, sc_op_work *out)
{
    const sc_net_op *o = w->op;
    double elements = net_op_elements(w, &o->out);
    *out = (sc_op_work){.type = o->type,
                        .pass = (uint8_t)w->pass,
                        .y = elements * net_op_bytes(w, &o->out),
                        .elements = elements,
                        .each = sc_value_bytes(w->facts.precision),
                        .input_learns = net_op_input_learns(w),
                        .weight_learns = net_op_weight_learns(w),
                        .bias = o->n_weight > 1,
                        .low_precision = !o->keep_bf16,
                        .cast_input = w->cast_input,
                        .cast_gradient = w->cast_gradient,
                        .dropout = o->dropout,
                        .causal = o->causal};
    for (uint32_t i = 0; i < o->n_in; i++) {
        *(i ? &out->others : &out->x) += bytes_of(w, &o->in[i]);
        out->learns += w->net->tensor[o->in[i].tensor].learns;
    }
    if (o->n_weight > 0) out->w = bytes_of(w, &o->weight[0]);
    if (w->facts.fused) neighbours(w, out);
    shape(w, out);
}
