/* SPDX-License-Identifier: Apache-2.0 */
/*
 * infer_keep.c - layouts of tensors: as operators read and write them, and as
 * they are stored in between.
 */
#include "plan/infer.h"
#include "plan/internal.h"

#include <string.h>

/* The busiest rank's rows over the mean: routing makes the values between
 * dispatch and combine larger by this factor. */
static double routed(const inference *f, const sc_tensor *t)
{
    if (t->kind != SC_TENSOR_VALUE || f->g->op[t->op].topk == 0) return 1;
    for (uint32_t d = 0; d < t->n_dim; d++)
        if (strcmp(t->dim[d].name, "expert") == 0)
            return plan_rows(f->job->capacity, f->job->imbalance);
    return 1;
}

double infer_elements(const inference *f, const sc_tensor *t)
{
    double *known = f->elements ? &f->elements[t - f->g->tensor] : NULL;
    if (known && *known > 0) return *known;
    double n = routed(f, t) * sc_tensor_elements(t, f->samples);
    if (known) *known = n;
    return n;
}

double infer_bytes(const inference *f, const sc_tensor *t)
{
    double each = t->bytes ? t->bytes : sc_value_bytes(f->job->precision);
    return each * infer_elements(f, t);
}

double infer_rank_bytes(const inference *f, const sc_tensor *t, const layout *l)
{
    uint32_t index = (uint32_t)(t - f->g->tensor);
    return infer_bytes(f, t) *
           infer_fraction(f, index, l, (1u << SC_TENSOR_DIMS) - 1);
}

static uint32_t indexed(const sc_operand *p)
{
    uint32_t mask = 0;
    for (uint32_t d = 0; d < SC_TENSOR_DIMS; d++)
        if (p->at[d] != SC_NO_ITER) mask |= 1u << p->at[d];
    return mask;
}

static uint32_t sums(const inference *f, uint32_t op, uint32_t iters)
{
    uint32_t mask = 0;
    for (uint32_t i = 0; i < f->g->op[op].n_iter; i++)
        if ((iters >> i & 1) && f->node[op].split[i])
            mask |= sc_axes_mask(f->node[op].split[i]);
    return mask;
}

layout infer_port(const inference *f, uint32_t op, const sc_operand *p,
                  bool made)
{
    layout l = {.at = f->node[op].place};
    const infer_node *n = &f->node[op];
    uint32_t indexes = 0;
    for (uint32_t d = 0; d < f->g->tensor[p->tensor].n_dim; d++) {
        if (p->at[d] == SC_NO_ITER) continue;
        l.shard[d] = n->split[p->at[d]];
        indexes |= 1u << p->at[d];
    }
    l.shard[INFER_RR_DIM] = n->rr_axes;
    if (made) l.partial = sums(f, op, ~indexes);
    return l;
}

/* The layout of weight `k`'s gradient.  A bias is added after the product's
 * sum, so its gradient is not partial over the axes that split this sum. */
layout infer_weight_grad(const inference *f, uint32_t op, uint32_t k)
{
    const sc_net_op *o = &f->g->op[op];
    layout l = infer_port(f, op, &o->weight[k], true);
    if (k > 0 && !f->rules->bias_partial)
        l.partial = sums(f, op, indexed(&o->out) & ~indexed(&o->weight[k]));
    return l;
}

/* ---- placements by rules --------------------------------------------- */

static int dim_named(const sc_tensor *t, const char *name)
{
    for (uint32_t i = 0; i < t->n_dim; i++)
        if (strcmp(t->dim[i].name, name) == 0) return (int)i;
    if (strncmp(name, "dim", 3) != 0 || name[3] < '0' || name[3] > '9')
        return -1;
    int d = name[3] - '0';
    return !name[4] && d < t->n_dim ? d : -1;
}

sc_status infer_place(const inference *f, const sc_tensor *t,
                      const infer_rule *r, const layout *used, bool add,
                      layout *out)
{
    layout l = {.partial = 0};
    uint32_t taken = 0;
    if (add) {
        l = *used;
        for (uint32_t d = 0; d < LAYOUT_DIMS; d++)
            taken |= sc_axes_mask(l.shard[d]);
    }
    for (uint32_t i = 0; i < r->r->n_split; i++) {
        int d = dim_named(t, r->r->split[i].dim);
        if (d < 0) continue;
        for (sc_axes list = r->r->split[i].axes; list; list >>= 4) {
            uint32_t ax = (uint32_t)(list & 15) - 1;
            if (taken >> ax & 1) continue;
            if ((int)ax == f->pp)
                return sc_error(
                    f->err, SC_EINPUT, SC_C_CONFLICT, r->r->pos,
                    "axis pp divides the model into stages and nothing else",
                    "rule '%s' (%s) places a tensor over pp", r->r->match,
                    r->r->origin);
            taken |= 1u << ax;
            l.shard[d] = sc_axes_add(l.shard[d], ax);
        }
    }
    *out = l;
    return SC_OK;
}

/* ---- values between operators ---------------------------------------- */

static sc_status find_users(inference *f)
{
    uint32_t *count = SC_NEW_N(f->a, uint32_t, f->g->n_tensors);
    if (!count) return sc_error_nomem(f->err);
    for (uint32_t i = 0; i < f->g->n_ops; i++)
        for (uint32_t k = 0; k < f->g->op[i].n_in; k++)
            count[f->g->op[i].in[k].tensor]++;
    for (uint32_t t = 0; t < f->g->n_tensors; t++) {
        f->kept[t].reader = SC_NEW_N(f->a, uint32_t, count[t]);
        if (!f->kept[t].reader) return sc_error_nomem(f->err);
    }
    for (uint32_t i = 0; i < f->g->n_ops; i++)
        for (uint32_t k = 0; k < f->g->op[i].n_in; k++) {
            infer_kept *t = &f->kept[f->g->op[i].in[k].tensor];
            uint32_t *list = (uint32_t *)t->reader;
            if (t->n_readers && list[t->n_readers - 1] == i) continue;
            list[t->n_readers++] = i;
        }
    return SC_OK;
}

/* Finds the values that need a gradient: a weight before them is trained. */
static void find_learning(inference *f)
{
    for (uint32_t i = 0; i < f->g->n_ops; i++) {
        const sc_net_op *o = &f->g->op[i];
        bool learns = false;
        for (uint32_t k = 0; k < o->n_in; k++)
            learns |= f->kept[o->in[k].tensor].learns;
        for (uint32_t k = 0; k < o->n_weight; k++)
            learns |= f->g->tensor[o->weight[k].tensor].learns;
        f->kept[o->out.tensor].learns = learns && !f->job->forward_only;
    }
}

/* The dim that all readers split over axis `ax`.  Only asked while no rule has
 * decided the layout over `ax`. */
static uint32_t wanted(const inference *f, uint32_t tensor, uint32_t ax)
{
    const infer_kept *k = &f->kept[tensor];
    uint32_t dim = LAYOUT_DIMS;
    for (uint32_t i = 0; i < k->n_readers; i++) {
        const sc_net_op *r = &f->g->op[k->reader[i]];
        for (uint32_t in = 0; in < r->n_in; in++) {
            if (r->in[in].tensor != tensor) continue;
            layout l = infer_port(f, k->reader[i], &r->in[in], false);
            uint32_t d = layout_dim_of(&l, ax);
            if (d >= SC_TENSOR_DIMS || (dim < LAYOUT_DIMS && d != dim))
                return LAYOUT_DIMS;
            dim = d;
        }
    }
    return dim;
}

static void keep(inference *f, uint32_t op)
{
    const sc_net_op *o = &f->g->op[op];
    infer_kept *k = &f->kept[o->out.tensor];
    if (!k->origin) {
        layout l = infer_port(f, op, &o->out, true);
        uint32_t open = l.partial;
        l.partial = 0;
        if (!l.at) { /* else one rank keeps the tensor until it is read */
            open |= sc_axes_mask(l.shard[INFER_RR_DIM]);
            l.shard[INFER_RR_DIM] = 0;
        }
        for (uint32_t ax = 0; ax < f->mesh.n_axes; ax++) {
            if (!(open >> ax & 1)) continue;
            uint32_t d = wanted(f, o->out.tensor, ax);
            if (d < SC_TENSOR_DIMS) l.shard[d] = sc_axes_add(l.shard[d], ax);
        }
        k->l = l;
    }
    if (!k->grad_origin) k->grad = k->l;
}

static sc_status said(inference *f, uint32_t op)
{
    const sc_net_op *o = &f->g->op[op];
    const sc_tensor *t = &f->g->tensor[o->out.tensor];
    infer_kept *k = &f->kept[o->out.tensor];
    const infer_rule *r = infer_stated(f, op, SC_RT_OUT, 0);
    if (r) {
        SC_TRY(infer_place(f, t, r, NULL, false, &k->l));
        k->origin = r->r->origin;
    }
    r = infer_stated(f, op, SC_RT_OUT_GRAD, 0);
    if (r) {
        SC_TRY(infer_place(f, t, r, NULL, false, &k->grad));
        k->grad_origin = r->r->origin;
    }
    return SC_OK;
}

sc_status infer_keep(inference *f)
{
    f->kept = SC_NEW_N(f->a, infer_kept, f->g->n_tensors);
    if (!f->kept) return sc_error_nomem(f->err);
    SC_TRY(find_users(f));
    find_learning(f);
    for (uint32_t op = 0; op < f->g->n_ops; op++) SC_TRY(said(f, op));
    infer_spread(f);
    SC_TRY(infer_find_uneven(f));
    for (uint32_t op = 0; op < f->g->n_ops; op++) keep(f, op);
    return SC_OK;
}
