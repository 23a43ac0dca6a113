/* SPDX-License-Identifier: Apache-2.0 */
/*
 * infer_backward.c - operators in the backward pass: recomputes what was not
 * saved, converts the gradient of the result to the operator's layout, and adds
 * the products for inputs and for weights.
 */
#include "plan/infer.h"

#include <math.h>
#include <string.h>

static sc_status done(const inference *f)
{
    return f->no_memory ? sc_error_nomem(f->err) : SC_OK;
}

/* ---- inputs of the products ---------------------------------------------- */

static bool multiplies(const sc_net_op *o)
{
    return o->fn == SC_F_PRODUCT;
}

/* Whether a function's derivative follows from its result, so that programs
 * compute it in place and do not save its input. */
static bool reads_result(const sc_net_op *o)
{
    bool own =
        o->fn == SC_F_RELU || o->fn == SC_F_SIGMOID || o->fn == SC_F_TANH;
    if (o->type == SC_NET_ACT) return own && !o->gated;
    return sc_op_reads((sc_net_type)o->type) & SC_OP_READS_RESULT;
}

/* Fused attention recomputes its softmax from saved sums over rows (Dao et al.
 * 2022). */
static bool keeps_result(const inference *f, const sc_net_op *o)
{
    bool fused = f->job->sw->attention != SC_ATTN_UNFUSED;
    return reads_result(o) || (o->type == SC_NET_ATTENTION && fused);
}

/* Whether the product for the gradients of inputs reads the inputs. */
static bool reads_inputs(const sc_net_op *o)
{
    if (o->type == SC_NET_ELEMENTWISE) return multiplies(o);
    return sc_op_reads((sc_net_type)o->type) & SC_OP_READS_INPUTS &&
           !reads_result(o);
}

static bool reads_weight(const sc_net_op *o)
{
    return o->n_weight > 0 &&
           sc_op_reads((sc_net_type)o->type) & SC_OP_READS_WEIGHT;
}

/* Whether the product for the gradients of weights reads the first input. */
static bool weight_reads_input(const sc_net_op *o)
{
    return o->n_weight > 0 &&
           sc_op_reads((sc_net_type)o->type) & SC_OP_READS_FIRST;
}

static bool weights_learn(const inference *f, const sc_net_op *o)
{
    for (uint32_t k = 0; k < o->n_weight; k++)
        if (f->g->tensor[o->weight[k].tensor].learns) return true;
    return false;
}

static uint32_t inputs_learn(const inference *f, const sc_net_op *o)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < o->n_in; k++) n += f->kept[o->in[k].tensor].learns;
    return n;
}

/* ---- recomputation ------------------------------------------------------- */

static void need(const inference *f, uint32_t tensor, uint32_t first,
                 bool *needed)
{
    uint32_t from = f->g->tensor[tensor].op;
    if (f->g->tensor[tensor].kind == SC_TENSOR_VALUE && from >= first)
        needed[from - first] = true;
}

/* Finds the operators of first .. last that the backward pass recomputes. */
static void find_needed(const inference *f, uint32_t first, uint32_t last,
                        bool *needed)
{
    for (uint32_t op = last + 1; op-- > first;) {
        const sc_net_op *o = &f->g->op[op];
        bool learns = f->kept[o->out.tensor].learns;
        if (learns && (keeps_result(f, o) || f->saved[0][op].own[0]))
            needed[op - first] = true;
        bool reads = learns && inputs_learn(f, o) && reads_inputs(o);
        for (uint32_t k = 0; k < o->n_in; k++) {
            bool first_in =
                k == 0 && weight_reads_input(o) && weights_learn(f, o);
            if (needed[op - first] || reads || (learns && first_in))
                need(f, o->in[k].tensor, first, needed);
        }
    }
}

bool infer_dropped(const inference *f, uint32_t op, uint32_t reader)
{
    const sc_net_op *o = &f->g->op[op];
    const infer_kept *k = &f->kept[o->out.tensor];
    uint32_t segment = f->node[op].segment;
    if (segment == SC_NONE || o->type == SC_NET_ATTENTION ||
        f->node[reader].segment == segment)
        return false;
    for (uint32_t i = 0; i < k->n_readers; i++)
        if (!infer_same_unit(o->path, f->g->op[k->reader[i]].path) ||
            f->node[k->reader[i]].stage != f->node[op].stage)
            return false;
    return true;
}

static bool read_outside(const inference *f, uint32_t op)
{
    const infer_kept *k = &f->kept[f->g->op[op].out.tensor];
    for (uint32_t i = 0; i < k->n_readers; i++)
        if (infer_dropped(f, op, k->reader[i])) return true;
    return false;
}

sc_status infer_recompute(inference *f, uint32_t op)
{
    uint32_t segment = f->node[op].segment, first = op, last = op;
    if (segment == SC_NONE || f->node[op].recomputed) return SC_OK;
    while (first > 0 && f->node[first - 1].segment == segment) first--;
    while (last + 1 < f->g->n_ops && f->node[last + 1].segment == segment)
        last++;
    bool *needed = SC_NEW_N(f->a, bool, last - first + 1);
    if (!needed) return sc_error_nomem(f->err);
    for (uint32_t i = first; i <= last; i++)
        needed[i - first] = !f->job->sw->early_stop || read_outside(f, i);
    find_needed(f, first, last, needed);
    for (uint32_t i = first; i <= last; i++) {
        f->node[i].recomputed = true;
        if (!needed[i - first]) continue;
        infer_recompute_rule(f, i)->repeats = true;
        SC_TRY(infer_forward_op(f, i, true));
    }
    return SC_OK;
}

/* ---- the gradient of the result ------------------------------------------ */

static sc_status join(inference *f, infer_sum *sum, const infer_sum *more)
{
    for (uint32_t i = 0; i < more->n; i++)
        (void)infer_sum_add(f, sum, more->value[i]);
    return done(f);
}

/* Whether gradients `a` and `b` can be summed without an exchange.  A gradient
 * on several places is partial over their axes for operators on other ranks. */
static bool summed_with(const infer_kept *kept, const infer_form *a,
                        const infer_form *b)
{
    layout l = b->l;
    if (a->stage != b->stage) return false;
    if (a->l.at && l.at && !kept->grad.at) l.at = a->l.at;
    return layout_equal(&a->l, &l);
}

/* Sums gradients of one layout on one stage, converts the sum to the layout
 * that is kept, and sends it to the stage that made the tensor. */
static sc_status sum_gradients(inference *f, uint32_t tensor, infer_form *first,
                               infer_sum *out, infer_sum *elsewhere)
{
    const sc_tensor *t = &f->g->tensor[tensor];
    infer_kept *kept = &f->kept[tensor];
    infer_sum v = {0};
    infer_why w = {.path = f->g->op[first->by].path,
                   .tensor = "in grad",
                   .origin = kept->grad_origin ? kept->grad_origin
                                               : infer_by(f, first->by),
                   .pass = SC_PASS_DGRAD,
                   .op = first->by,
                   .stage = first->stage,
                   .of = tensor,
                   .what = VALUE_ACT_GRAD,
                   .phase = INFER_BACKWARD};
    layout l = first->l;
    uint32_t stage = first->stage;
    double part = first->part;
    for (infer_form *g = first; g; g = g->next) {
        if (g->value == SC_NONE || !summed_with(kept, first, g)) continue;
        if (!infer_sum_add(f, &v, g->value)) return done(f);
        g->value = SC_NONE;
        if (g->part > part) part = g->part;
        if (g->l.at == first->l.at) continue;
        l.partial |= sc_axes_mask(first->l.shard[INFER_RR_DIM]);
        l.shard[INFER_RR_DIM] = 0;
        l.at = 0;
    }
    SC_TRY(infer_convert(f, &w, &l, &kept->grad, part * infer_bytes(f, t), &v));
    if (stage != f->node[t->op].stage && t->on_all_stages)
        return join(f, elsewhere, &v);
    if (stage != f->node[t->op].stage)
        SC_TRY(infer_send(f, &w, f->node[t->op].stage, &kept->grad,
                          infer_rank_bytes(f, t, &kept->grad), &v));
    return join(f, out, &v);
}

/* The gradient of the result in the layout that `op` reads. */
static sc_status result_gradient(inference *f, uint32_t op, uint32_t n,
                                 infer_sum *v)
{
    const sc_net_op *o = &f->g->op[op];
    double bytes = infer_rr_bytes(f, op);
    infer_sum elsewhere = {0};
    *v = (infer_sum){0};
    for (uint32_t i = 0; i < n; i++) {
        uint32_t t = f->g->op[infer_rr_op(f, op, i)].out.tensor;
        for (infer_form *g = f->grad[t]; g; g = g->next)
            if (g->value != SC_NONE)
                SC_TRY(sum_gradients(f, t, g, v, &elsewhere));
    }
    infer_why w = {.path = o->path,
                   .tensor = "out grad",
                   .origin = infer_by(f, op),
                   .pass = SC_PASS_DGRAD,
                   .op = op,
                   .stage = f->node[op].stage,
                   .of = o->out.tensor,
                   .what = VALUE_ACT_GRAD,
                   .phase = INFER_BACKWARD};
    layout to = infer_port(f, op, &o->out, false);
    if (elsewhere.n > 0) {
        uint32_t sum;
        double held = infer_rank_bytes(f, &f->g->tensor[o->out.tensor],
                                       &f->kept[o->out.tensor].grad);
        SC_TRY(infer_over_stages(f, &w, SC_REDUCE, held, &elsewhere, &w.stage,
                                 1, &sum));
        if (!infer_sum_add(f, v, sum)) return done(f);
    }
    if (v->n == 0) return SC_OK;
    return infer_convert(f, &w, &f->kept[o->out.tensor].grad, &to, bytes, v);
}

/* ---- products ------------------------------------------------------------ */

typedef struct operands {
    uint32_t n;
    uint32_t *value;
} operands;

static sc_status start(inference *f, const sc_net_op *o, const infer_sum *dy,
                       operands *in)
{
    in->value = SC_NEW_N(f->a, uint32_t,
                         (size_t)dy->n + o->n_in + 3 + INFER_EXTRA + SC_OP_OWN);
    if (!in->value) return sc_error_nomem(f->err);
    if (dy->n) memcpy(in->value, dy->value, dy->n * sizeof *in->value);
    in->n = dy->n;
    return SC_OK;
}

static uint32_t gradient_value(inference *f, uint32_t tensor, const layout *l,
                               uint32_t op, value_kind what)
{
    const sc_tensor *t = &f->g->tensor[tensor];
    double each =
        f->job->grad_bytes > 0 && what == VALUE_WEIGHT_GRAD
            ? f->job->grad_bytes * infer_elements(f, t) / infer_bytes(f, t)
            : 1;
    bool rows = what == VALUE_WEIGHT_GRAD && infer_by_rows(f, op);
    if (what == VALUE_WEIGHT_GRAD) each *= infer_rr_fraction(f, op, true);
    program_value v = {.tensor = tensor,
                       .what = (uint8_t)what,
                       .stage = f->node[op].stage,
                       .bytes = each * infer_rank_bytes(f, t, l)};
    if (rows)
        v.bytes =
            fmin(v.bytes, infer_touched(f, op) * infer_grad_bytes(f, tensor) /
                              infer_elements(f, t));
    if (what == VALUE_ACT_GRAD) {
        v.word[0] = t->kind == SC_TENSOR_VALUE ? f->g->op[t->op].path : t->name;
        v.word[1] = "grad";
    } else {
        v.word[0] = f->g->op[op].path;
        v.word[1] = t->name;
        v.word[2] = "grad";
    }
    return infer_value(f, v);
}

static program_item product(const inference *f, uint32_t op, sc_op_pass pass,
                            const sc_price *price, const operands *in)
{
    program_item it = infer_kernels(op, f->node[op].stage, pass);
    it.price = *price;
    it.n_in = in->n;
    return it;
}

/* A value that is read twice in the same way has one gradient. */
static bool made_before(const inference *f, uint32_t op, uint32_t k,
                        const layout *l)
{
    const sc_net_op *o = &f->g->op[op];
    for (uint32_t i = 0; i < k; i++) {
        layout m = infer_port(f, op, &o->in[i], true);
        if (o->in[i].part > 0 && o->in[i].tensor == o->in[k].tensor &&
            layout_equal(&m, l))
            return true;
    }
    return false;
}

/* All values that the gradients of inputs are computed from. */
static sc_status read_for_inputs(inference *f, uint32_t op, const infer_sum *dy,
                                 operands *in)
{
    const sc_net_op *o = &f->g->op[op];
    SC_TRY(start(f, o, dy, in));
    for (uint32_t k = 0; k < o->n_in && reads_inputs(o); k++)
        SC_TRY(infer_recomputed_input(f, op, k, &in->value[in->n++]));
    infer_saved saved = infer_saved_of(f, op);
    for (uint32_t i = 0; i < SC_OP_OWN; i++)
        if (saved.own[i]) in->value[in->n++] = saved.own[i] - 1;
    if (reads_weight(o))
        SC_TRY(
            infer_weight_used(f, op, 0, INFER_BACKWARD, &in->value[in->n++]));
    infer_extra extra;
    SC_TRY(infer_neighbours(f, op, INFER_BACKWARD, false, dy->value, dy->n,
                            &extra));
    for (uint32_t k = 0; k < extra.n; k++) in->value[in->n++] = extra.value[k];
    if (keeps_result(f, o)) {
        bool recomputed = f->node[op].segment != SC_NONE;
        infer_form *list = (recomputed ? f->bwd : f->fwd)[o->out.tensor];
        infer_form *own =
            infer_find(list, f->node[op].stage, &f->kept[o->out.tensor].l);
        if (own) in->value[in->n++] = own->value;
    }
    if (f->node[op].unread) in->value[in->n++] = f->node[op].unread - 1;
    return SC_OK;
}

/* Adds gradients of the inputs that need one. */
static sc_status for_inputs(inference *f, uint32_t op, const infer_sum *dy,
                            const sc_price *price, double held, uint32_t *cast)
{
    const sc_net_op *o = &f->g->op[op];
    operands in = {0};
    SC_TRY(read_for_inputs(f, op, dy, &in));
    program_item it = product(f, op, SC_PASS_DGRAD, price, &in);
    for (uint32_t k = 0; k < o->n_in; k++) {
        uint32_t t = o->in[k].tensor;
        if (!f->kept[t].learns) continue;
        layout l = infer_port(f, op, &o->in[k], true);
        if (made_before(f, op, k, &l)) continue;
        double part = infer_part(f, op, k, true);
        uint32_t v = gradient_value(f, t, &l, op, VALUE_ACT_GRAD);
        if (v != SC_NONE)
            f->prog->value[v].bytes *= part * infer_ring_fraction(f, op, t, &l);
        infer_form *g =
            infer_remember(f, &f->grad[t], f->node[op].stage, v, &l);
        if (!g) return done(f);
        g->by = op;
        g->part = part;
        if (it.out == SC_NONE)
            it.out = v;
        else
            it.n_more++;
    }
    *cast = infer_hold(f, op, held, &it);
    (void)infer_item(f, it, in.value, INFER_BACKWARD);
    return done(f);
}

static sc_status for_weights(inference *f, uint32_t op, const infer_sum *dy,
                             const sc_price *price, double held, uint32_t cast)
{
    const sc_net_op *o = &f->g->op[op];
    operands in = {0};
    uint32_t value[4] = {SC_NONE, SC_NONE, SC_NONE, SC_NONE};
    SC_TRY(start(f, o, dy, &in));
    if (weight_reads_input(o))
        SC_TRY(infer_recomputed_input(f, op, 0, &in.value[in.n++]));
    if (f->node[op].around && o->n_weight > 0)
        in.value[in.n++] = f->node[op].around - 1;
    if (cast) in.value[in.n++] = cast - 1;
    program_item it = product(f, op, SC_PASS_WGRAD, price, &in);
    for (uint32_t k = 0; k < o->n_weight && k < SC_COUNT(value); k++) {
        uint32_t t = o->weight[k].tensor;
        if (!f->g->tensor[t].learns) continue;
        layout l = infer_weight_grad(f, op, k);
        value[k] = gradient_value(f, t, &l, op, VALUE_WEIGHT_GRAD);
        if (it.out == SC_NONE)
            it.out = value[k];
        else
            it.n_more++;
    }
    (void)infer_hold(f, op, held, &it);
    (void)infer_item(f, it, in.value, INFER_BACKWARD);
    for (uint32_t k = 0; k < SC_COUNT(value); k++)
        if (value[k] != SC_NONE) SC_TRY(infer_add_wgrad(f, op, k, value[k]));
    return done(f);
}

/* Prices of both products.  A measured time of the backward pass is divided
 * equally between them. */
static sc_status price_products(inference *f, uint32_t op, bool x, bool w,
                                sc_price *for_x, sc_price *for_w)
{
    if (!f->job->table) {
        if (x) SC_TRY(infer_compute_rr(f, op, SC_PASS_DGRAD, 0, 1, for_x));
        if (w) SC_TRY(infer_compute_rr(f, op, SC_PASS_WGRAD, 0, 1, for_w));
    } else {
        SC_TRY(infer_compute_rr(f, op, SC_PASS_BWD, 0, 1, for_x));
        if (x && w) {
            for_x->seconds /= 2;
            for_x->flops /= 2;
            for_x->bytes /= 2;
        }
        *for_w = *for_x;
    }
    return SC_OK;
}

/* Broadcasts the gradient of a sum over stages to each of these stages. */
static sc_status to_all_stages(inference *f, uint32_t op, const infer_sum *dy)
{
    const sc_net_op *o = &f->g->op[op];
    layout l = infer_port(f, op, &o->in[0], true);
    infer_why w = {.path = o->path,
                   .tensor = "in grad",
                   .pass = SC_PASS_DGRAD,
                   .op = op,
                   .stage = f->node[op].stage,
                   .of = o->out.tensor,
                   .what = VALUE_ACT_GRAD,
                   .phase = INFER_BACKWARD};
    uint32_t *stage = SC_NEW_N(f->a, uint32_t, o->n_in), value;
    if (!stage) return sc_error_nomem(f->err);
    for (uint32_t k = 0; k < o->n_in; k++)
        stage[k] = f->node[f->g->tensor[o->in[k].tensor].op].stage;
    SC_TRY(
        infer_over_stages(f, &w, SC_BROADCAST,
                          infer_rank_bytes(f, &f->g->tensor[o->out.tensor], &l),
                          dy, stage, o->n_in, &value));
    for (uint32_t k = 0; k < o->n_in; k++) {
        infer_form *g = infer_remember(f, &f->grad[o->in[k].tensor], stage[k],
                                       value + k, &l);
        if (g) g->by = op;
    }
    return done(f);
}

static sc_status backward_op(inference *f, uint32_t op)
{
    const sc_net_op *o = &f->g->op[op];
    uint32_t n = infer_rr_count(f, op), ranks = infer_rr_ranks(f, op);
    if (n == 0 || !f->kept[o->out.tensor].learns) return SC_OK;
    SC_TRY(infer_recompute(f, op));
    infer_sum dy;
    SC_TRY(result_gradient(f, op, n, &dy));
    if (o->on_all_stages) return to_all_stages(f, op, &dy);
    for (uint32_t i = 0; i < n; i += ranks) {
        uint32_t member = infer_rr_op(f, op, i);
        const sc_net_op *at = &f->g->op[member];
        bool x = inputs_learn(f, at) > 0, w = weights_learn(f, at);
        sc_price for_x = {0}, for_w = {0};
        SC_TRY(price_products(f, member, x, w, &for_x, &for_w));
        const sc_op_held *held = &f->kernel_memory[member];
        double last = held->operand + (x ? 0 : held->grad);
        uint32_t cast = 0;
        if (x) SC_TRY(for_inputs(f, member, &dy, &for_x, held->grad, &cast));
        f->hidden_s = for_x.seconds;
        if (w) SC_TRY(for_weights(f, member, &dy, &for_w, last, cast));
        f->hidden_s = 0;
    }
    return SC_OK;
}

/* Depth of each operator in the backward pass. */
static sc_status depths(inference *f)
{
    f->depth = SC_NEW_N(f->a, uint32_t, f->g->n_ops);
    if (!f->depth) return sc_error_nomem(f->err);
    for (uint32_t op = f->g->n_ops; op-- > 0;) {
        const infer_kept *k = &f->kept[f->g->op[op].out.tensor];
        for (uint32_t i = 0; i < k->n_readers; i++)
            if (f->depth[k->reader[i]] + 1 > f->depth[op])
                f->depth[op] = f->depth[k->reader[i]] + 1;
    }
    return SC_OK;
}

sc_status infer_backward(inference *f)
{
    SC_TRY(depths(f));
    uint32_t n = f->g->n_ops;
    for (uint32_t op = n; op-- > 0;) {
        infer_note_mark(f, INFER_BACKWARD, n - 1 - op);
        SC_TRY(backward_op(f, op));
    }
    infer_note_mark(f, INFER_BACKWARD, n);
    return SC_OK;
}
