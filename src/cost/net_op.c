/* SPDX-License-Identifier: Apache-2.0 */
/* net_op.c - the price of one network operator, from its kernels or a table. */
#include "cost/net_op.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

double net_op_length(const sc_net_work *w, const sc_operand *p, uint32_t i)
{
    const sc_tensor_dim *d = &w->net->tensor[p->tensor].dim[i];
    double all = (double)d->extent * (d->batch ? w->samples : 1);
    uint8_t at = p->at[i];
    if (at == SC_NO_ITER) return all;
    double space = sc_iter_dim_extent(&w->op->iter[at], w->samples);
    return all == space ? w->extent[at] : all * w->extent[at] / space;
}

double net_op_elements(const sc_net_work *w, const sc_operand *p)
{
    double n = 1;
    for (uint32_t i = 0; i < w->net->tensor[p->tensor].n_dim; i++)
        n *= net_op_length(w, p, i);
    return n;
}

double net_op_bytes(const sc_net_work *w, const sc_operand *p)
{
    const sc_tensor *t = &w->net->tensor[p->tensor];
    if (t->bytes > 0) return t->bytes;
    return sc_value_bytes(w->facts.precision);
}

double net_op_weight_elements(const sc_net_work *w)
{
    const sc_tensor *t = &w->net->tensor[w->op->weight[w->weight].tensor];
    return sc_tensor_elements(t, w->samples) / fmax(1, w->weight_parts);
}

bool net_op_input_learns(const sc_net_work *w)
{
    for (uint32_t i = 0; i < w->op->n_in; i++)
        if (w->net->tensor[w->op->in[i].tensor].learns) return true;
    return false;
}

bool net_op_weight_learns(const sc_net_work *w)
{
    for (uint32_t i = 0; i < w->op->n_weight; i++)
        if (w->net->tensor[w->op->weight[i].tensor].learns) return true;
    return false;
}

static bool has(const sc_net_work *w, const sc_operand *p, uint32_t iter)
{
    for (uint32_t i = 0; i < w->net->tensor[p->tensor].n_dim; i++)
        if (p->at[i] == iter) return true;
    return false;
}

/* A weight is (out, in per group, window); ports name one dim for group and
 * channel. */
static void channels(const sc_net_work *w, net_op_product *p)
{
    const sc_net_op *o = w->op;
    for (uint32_t i = 0; i < o->n_iter; i++)
        if (strcmp(o->iter[i].name, "group") == 0) p->groups = w->extent[i];
    p->n = net_op_length(w, &o->weight[0], 0) / p->groups;
    p->in = net_op_length(w, &o->weight[0], 1);
}

/* Iteration dims that index only the second operand give n; those that index
 * all three tensors give the groups.  The rest follows from elements and FLOP,
 * so that windows and strides need no rule of their own. */
net_op_product net_op_product_of(const sc_net_work *w)
{
    const sc_net_op *o = w->op;
    const sc_operand *b = o->n_weight > 0 ? &o->weight[0] : &o->in[1];
    net_op_product p = {.groups = 1, .m = 1, .n = 1, .k = 1, .in = 1};
    double part = 1, space = 1;
    bool conv = o->type == SC_NET_CONV || o->type == SC_NET_CONV_TRANSPOSED;
    if (conv) channels(w, &p);
    for (uint32_t i = 0; i < o->n_iter; i++) {
        part *= w->extent[i] / sc_iter_dim_extent(&o->iter[i], w->samples);
        space *= w->extent[i];
        if (conv || !has(w, b, i) || !has(w, &o->out, i)) continue;
        if (has(w, &o->in[0], i))
            p.groups *= w->extent[i];
        else
            p.n *= w->extent[i];
    }
    double flops = o->flops * w->samples * part;
    if (!(flops > 0)) flops = 2 * space;
    p.m = net_op_elements(w, &o->out) / (p.n * p.groups);
    p.k = flops / (2 * p.m * p.n * p.groups);
    return p;
}

static void list(const sc_cost *c, const sc_net_work *w, sc_op_kernels *out)
{
    sc_op_work work;
    out->n = 0;
    out->full = false;
    if (w->pass == SC_PASS_UPDATE) {
        net_op_list_update(w, out);
        return;
    }
    /* A view moves nothing unless it is a copy. */
    if (w->op->type == SC_NET_VIEW && !w->op->copy) return;
    net_op_work(w, &work);
    sc_op_list(c, &w->facts, &work, out);
}

/* A backward entry contains both gradients: each is half if both are
 * computed. */
static double share_of(const sc_net_work *w)
{
    bool in = net_op_input_learns(w), weight = net_op_weight_learns(w);
    if (w->pass == SC_PASS_DGRAD) return !in ? 0 : weight ? 0.5 : 1;
    if (w->pass == SC_PASS_WGRAD) return !weight ? 0 : in ? 0.5 : 1;
    return w->pass == SC_PASS_BWD && !in && !weight ? 0 : 1;
}

/* Views and slices move no data. */
static bool needs_entry(const sc_net_work *w)
{
    return w->op->type != SC_NET_VIEW && w->op->type != SC_NET_SLICE;
}

static sc_status look_up(const sc_net_work *w, sc_price *out, sc_err *err)
{
    char key[NET_OP_KEY], first[NET_OP_KEY] = "";
    double share = share_of(w);
    *out = (sc_price){.limit = "table"};
    if (share == 0) return SC_OK;
    for (uint32_t i = 0; net_op_table_key(w, i, key); i++) {
        double ms = net_op_table_ms(w->table, key);
        if (i == 0) memcpy(first, key, sizeof first);
        if (isnan(ms)) continue;
        out->seconds = share * ms * 1e-3;
        out->launches = 1;
        return SC_OK;
    }
    if (!needs_entry(w)) return SC_OK;
    return sc_error(err, SC_EINPUT, SC_C_UNKNOWN_NAME, sc_pos_file(w->op->path),
                    "every operator needs an entry; without a table all are "
                    "priced by the models",
                    "the table of times has no %s", first);
}

sc_price sc_cost_net_op_amount(const sc_net_work *w)
{
    sc_op_work work;
    if (w->op->type == SC_NET_VIEW && !w->op->copy) return (sc_price){0};
    net_op_work(w, &work);
    return sc_op_amount(&work);
}

void sc_cost_net_op_held(const sc_net_work *w, sc_op_held *out)
{
    sc_op_work work;
    *out = (sc_op_held){0};
    if (w->op->type == SC_NET_VIEW && !w->op->copy) return;
    net_op_work(w, &work);
    sc_op_hold(&w->facts, &work, out);
}

sc_status sc_cost_net_op(const sc_cost *c, const sc_device *d,
                         const sc_net_work *w, sc_price *out, sc_err *err)
{
    sc_op_kernels l;
    if (w->table) return look_up(w, out, err);
    list(c, w, &l);
    if (l.full)
        return sc_error(err, SC_EBUG, SC_C_BUG, sc_pos_file(w->op->path), NULL,
                        "an operator has more than %d kernels", SC_OP_KERNELS);
    *out = sc_op_price(c, d, &l);
    return SC_OK;
}

sc_status sc_cost_explain_net_op(const sc_cost *c, const sc_device *d,
                                 const sc_net_work *w, sc_text *out,
                                 sc_err *err)
{
    sc_op_kernels l;
    if (w->table) {
        sc_price p;
        SC_TRY(look_up(w, &p, err));
        char t[32];
        sc_unit_print_short(p.seconds, SC_U_TIME, t, sizeof t);
        sc_text_add(out, "  %-22s %9s  from a table of times\n",
                    sc_net_type_names[w->op->type], t);
        return SC_OK;
    }
    list(c, w, &l);
    sc_op_explain(c, d, &l, out);
    return SC_OK;
}
