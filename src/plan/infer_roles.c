/* SPDX-License-Identifier: Apache-2.0 */
/*
 * infer_roles.c - the role of each operator in tensor, sequence, expert and
 * context parallelism, from what it computes and how it is wired.
 *
 * Shoeybi et al. 2019: if only operators that treat columns separately
 * (functions, attention by heads, scans by groups) are between two products,
 * the first product is split by columns and the second by rows.  So each
 * product opens a group of the operators that depend on its columns; a product
 * that sums over such a dim closes the group.
 */
#include "plan/infer.h"

#include <string.h>

typedef struct roles {
    const sc_net *g;
    uint32_t *role;   /* [n_ops] */
    uint32_t *parent; /* [n_ops] of products: union-find; SC_NONE: no group */
    bool *closed;     /* [n_ops] of a group's root */
    uint32_t *group;  /* [n_tensors] product; SC_NONE: not split */
    uint8_t *dim;     /* [n_tensors] dim of the group's columns */
    uint64_t most_rows;
    bool split_experts; /* an expert is split as a dense MLP is */
} roles;

static uint64_t rows(const sc_net *g, const sc_net_op *o)
{
    return o->n_weight ? g->tensor[o->weight[0].tensor].dim[0].extent : 0;
}

/* Rows of the largest table.  Only tables as large as word embeddings are
 * split, not small ones of positions and types. */
static uint64_t most_rows(const sc_net *g)
{
    uint64_t most = 1;
    for (uint32_t i = 0; i < g->n_ops; i++) {
        uint64_t n = rows(g, &g->op[i]);
        if (g->op[i].type == SC_NET_EMBED && n > most) most = n;
    }
    return most;
}

static uint32_t root_of(roles *r, uint32_t op)
{
    while (r->parent[op] != op) {
        r->parent[op] = r->parent[r->parent[op]];
        op = r->parent[op];
    }
    return op;
}

static bool indexes(const sc_net_op *o, const sc_operand *p, uint8_t it)
{
    return it != SC_NO_ITER && it < o->n_iter &&
           memchr(p->at, it, SC_TENSOR_DIMS) != NULL;
}

/* Iteration dim of an input's columns; SC_NO_ITER: none. */
static uint8_t arrives_in(const roles *r, const sc_net_op *o, uint32_t k)
{
    uint32_t t = o->in[k].tensor;
    if (r->group[t] == SC_NONE) return SC_NO_ITER;
    return o->in[k].at[r->dim[t]];
}

static void open_group(roles *r, uint32_t op)
{
    const sc_net_op *o = &r->g->op[op];
    int out = sc_net_op_iter(o, "out");
    if (out < 0) return;
    const uint8_t *at = memchr(o->out.at, out, SC_TENSOR_DIMS);
    if (!at) return;
    r->parent[op] = op;
    r->group[o->out.tensor] = op;
    r->dim[o->out.tensor] = (uint8_t)(at - o->out.at);
}

/* Whether a product and the one before it are factors of a low-rank matrix.
 * The narrow dim between them stays unsplit. */
static bool factors(const roles *r, const sc_net_op *o)
{
    uint32_t made = r->g->tensor[o->in[0].tensor].op;
    return made != SC_NONE && r->g->op[made].type == SC_NET_LINEAR;
}

static void product(roles *r, uint32_t op)
{
    const sc_net_op *o = &r->g->op[op];
    uint8_t it = arrives_in(r, o, 0);
    bool sums = it != SC_NO_ITER && !indexes(o, &o->out, it) && o->n_weight;
    if (sums && !factors(r, o)) {
        r->closed[root_of(r, r->group[o->in[0].tensor])] = true;
        r->role[op] |= INFER_ROW;
        return;
    }
    open_group(r, op);
}

/* Continues a group through an operator if every input that has these columns
 * belongs to a group.  If the groups differ, they become one. */
static void passes(roles *r, uint32_t op)
{
    const sc_net_op *o = &r->g->op[op];
    uint8_t it = SC_NO_ITER;
    for (uint32_t k = 0; k < o->n_in && it == SC_NO_ITER; k++)
        it = arrives_in(r, o, k);
    if (it == SC_NO_ITER || o->iter[it].kind == SC_I_OPAQUE ||
        o->iter[it].batch || !indexes(o, &o->out, it))
        return;
    uint32_t all = SC_NONE;
    for (uint32_t k = 0; k < o->n_in; k++) {
        if (!indexes(o, &o->in[k], it)) continue;
        if (arrives_in(r, o, k) != it) return;
        uint32_t root = root_of(r, r->group[o->in[k].tensor]);
        if (all != SC_NONE) r->closed[root] |= r->closed[all];
        if (all != SC_NONE) r->parent[all] = root;
        all = root;
    }
    const uint8_t *at = memchr(o->out.at, it, SC_TENSOR_DIMS);
    r->group[o->out.tensor] = all;
    r->dim[o->out.tensor] = (uint8_t)(at - o->out.at);
}

/* A loss whose classes may be split closes its group, as a product does. */
static void loss(roles *r, uint32_t op)
{
    const sc_net_op *o = &r->g->op[op];
    uint8_t it = arrives_in(r, o, 0);
    if (it == SC_NO_ITER || o->iter[it].kind != SC_I_REDUCE) return;
    r->closed[root_of(r, r->group[o->in[0].tensor])] = true;
    r->role[op] |= INFER_LOSS;
}

static void visit(roles *r, uint32_t op)
{
    const sc_net_op *o = &r->g->op[op];
    bool routed = o->type != SC_NET_DISPATCH && o->type != SC_NET_COMBINE;
    if (o->experts && routed) r->role[op] |= INFER_EXPERTS;
    switch ((sc_net_type)o->type) {
    case SC_NET_LINEAR: product(r, op); break;
    case SC_NET_EXPERT:
        if (r->split_experts)
            product(r, op);
        else
            passes(r, op);
        break;
    case SC_NET_LOSS: loss(r, op); break;
    case SC_NET_EMBED:
        if (4 * rows(r->g, o) >= r->most_rows) r->role[op] |= INFER_TABLE;
        break;
    case SC_NET_ATTENTION: r->role[op] |= INFER_ATTENTION; /* fall through */
    default: passes(r, op); break;
    }
}

static uint64_t positions(const sc_net_op *o)
{
    for (uint32_t i = 0; i < o->n_iter; i++)
        if (strcmp(o->iter[i].name, "seq") == 0) return o->iter[i].extent;
    return 0;
}

/* Splits products inside closed groups by columns, and operators outside of
 * them by positions unless they have only some positions (masked words). */
static void rest(roles *r, uint32_t not_of)
{
    uint64_t most = 0;
    for (uint32_t op = 0; op < r->g->n_ops; op++)
        if (positions(&r->g->op[op]) > most) most = positions(&r->g->op[op]);
    for (uint32_t op = 0; op < r->g->n_ops; op++) {
        const sc_net_op *o = &r->g->op[op];
        bool all = positions(o) == most;
        uint32_t in = r->group[o->out.tensor];
        bool inside = in != SC_NONE && r->closed[root_of(r, in)];
        bool column = o->type == SC_NET_LINEAR || o->type == SC_NET_EXPERT;
        if (inside && column) r->role[op] |= INFER_COLUMN;
        if (!inside && all && !(r->role[op] & not_of))
            r->role[op] |= INFER_POSITIONS;
    }
}

sc_status infer_roles(inference *f)
{
    const sc_net *g = f->g;
    roles r = {.g = g, .most_rows = most_rows(g)};
    r.split_experts = !f->s->experts_over_tp && f->job->sw->etp != 1;
    r.role = SC_NEW_N(f->a, uint32_t, g->n_ops);
    r.parent = SC_NEW_N(f->a, uint32_t, g->n_ops);
    r.closed = SC_NEW_N(f->a, bool, g->n_ops);
    r.group = SC_NEW_N(f->a, uint32_t, g->n_tensors);
    r.dim = SC_NEW_N(f->a, uint8_t, g->n_tensors);
    if (!r.role || !r.parent || !r.closed || !r.group || !r.dim)
        return sc_error_nomem(f->err);
    for (uint32_t i = 0; i < g->n_ops; i++) r.parent[i] = SC_NONE;
    for (uint32_t i = 0; i < g->n_tensors; i++) r.group[i] = SC_NONE;
    for (uint32_t op = 0; op < g->n_ops; op++) visit(&r, op);
    uint32_t experts = f->s->experts_over_tp ? INFER_EXPERTS : 0;
    rest(&r, INFER_ROW | INFER_TABLE | INFER_LOSS | experts);
    f->role = r.role;
    return SC_OK;
}
