/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graph_routed.c - operators of tokens that are routed to experts.
 *
 * A routed value has a dim "expert" before its width, under which a token
 * stands once per expert that it goes to: its extent is top-k.
 */
#include "model/graph_build.h"

#include <string.h>

static sc_gop *open_routed(gb_graph *b, const char *name, sc_gtype type,
                           unsigned n_in, const gb_value *in, sc_gtensor *t)
{
    sc_gop *op = gb_open(b, name, type, n_in, in);
    if (!op) return NULL;
    *t = *gb_tensor(b, in[0]);
    if (t->n_dim >= 3 && t->n_dim < SC_G_DIMS) return op;
    (void)gb_wrong(b, name, "tokens of experts have too few or many dims");
    return NULL;
}

gb_value gb_dispatch(gb_graph *b, const char *name, gb_value x, gb_value scores,
                     uint64_t topk)
{
    const gb_value in[] = {x, scores};
    sc_gtensor t;
    sc_gop *op = open_routed(b, name, SC_G_DISPATCH, 2, in, &t);
    if (!op) return SC_NONE;
    unsigned last = t.n_dim++ - 1U;
    uint8_t at[SC_G_DIMS] = {0, 1, 2, 3, 4, 5};
    t.dim[last + 1] = (sc_gdim){"hidden", t.dim[last].extent, false};
    t.dim[last] = (sc_gdim){"expert", topk, false};
    gb_iters_of(op, &t);
    gb_port(&op->in[1], at, last); /* scores of all experts */
    at[last] = (uint8_t)(last + 1);
    gb_port(&op->in[0], at, last + 1);
    at[last] = (uint8_t)last;
    return gb_close(b, op, t.n_dim, t.dim, at);
}

gb_value gb_experts(gb_graph *b, const char *name, gb_value x, uint64_t experts,
                    const gb_product *p)
{
    sc_gtensor t;
    sc_gop *op = open_routed(b, name, SC_G_EXPERT, 1, &x, &t);
    if (!op) return SC_NONE;
    unsigned last = t.n_dim - 1U;
    sc_gtensor lead = t;
    lead.n_dim = (uint8_t)last;
    gb_iters_of(op, &lead);
    uint64_t in = t.dim[last].extent;
    const sc_gdim w[] = {{"expert", experts, false},
                         {p->out_name, p->out, false},
                         {t.dim[last].name, in, false}};
    uint8_t at[SC_G_DIMS] = {0, 1, 2, 3, 4, 5};
    at[last] = gb_iter(op, t.dim[last].name, SC_I_REDUCE, in);
    op->iter[at[last]].units = p->in_units;
    uint8_t to = gb_iter(op, p->out_name, SC_I_FREE, p->out);
    op->iter[to].units = p->out_units;
    const uint8_t ws[] = {(uint8_t)(last - 1), to, at[last]};
    gb_port(&op->in[0], at, t.n_dim);
    (void)gb_weight(b, op, "weight", 3, w, ws);
    if (p->bias) (void)gb_weight(b, op, "bias", 2, w, ws);
    op->flops = 2.0 * sc_gtensor_elements(&t, 1.0) * (double)p->out;
    t.dim[last] = (sc_gdim){p->out_name, p->out, false};
    at[last] = to;
    return gb_close(b, op, t.n_dim, t.dim, at);
}

/* The copies of a token are summed: over what splits them, partly. */
gb_value gb_combine(gb_graph *b, const char *name, gb_value x, gb_value scores)
{
    const gb_value in[] = {x, scores};
    sc_gtensor t;
    sc_gop *op = open_routed(b, name, SC_G_COMBINE, 2, in, &t);
    if (!op) return SC_NONE;
    unsigned last = t.n_dim - 1U;
    uint8_t at[SC_G_DIMS] = {0, 1, 2, 3, 4, 5};
    gb_iters_of(op, &t);
    op->iter[last - 1].kind = SC_I_REDUCE;
    gb_port(&op->in[0], at, t.n_dim);
    gb_port(&op->in[1], at, last - 1);
    t.dim[last - 1] = t.dim[last];
    at[last - 1] = (uint8_t)last;
    return gb_close(b, op, last, t.dim, at);
}
