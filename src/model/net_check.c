/* SPDX-License-Identifier: Apache-2.0 */
/* net_check.c - checks the invariants of operator networks and sums up their
 * parameters. */
#include "model/net_build.h"

#include <math.h>
#include <string.h>

const char *const sc_net_type_names[] = {
    "linear",     "matmul",      "conv",     "conv-transposed",
    "embed",      "attention",   "expert",   "scan",
    "batch-norm", "norm",        "act",      "softmax",
    "dropout",    "elementwise", "pool",     "upsample",
    "concat",     "slice",       "view",     "loss",
    "position",   "rope",        "dispatch", "combine",
    "conv1d",     NULL};

const char *const sc_net_fn_names[] = {"none",    "sum",   "product", "scale",
                                       "relu",    "relu2", "gelu",    "silu",
                                       "sigmoid", "tanh",  "other",   NULL};

double sc_tensor_elements(const sc_tensor *t, double samples)
{
    double n = 1.0;
    for (unsigned i = 0; i < t->n_dim; i++)
        n *= (double)t->dim[i].extent * (t->dim[i].batch ? samples : 1.0);
    return n;
}

double sc_iter_dim_extent(const sc_iter_dim *it, double samples)
{
    return (double)it->extent * (it->batch ? samples : 1.0);
}

/* The last weight dim that indexes the result (`made`), or that does not. */
static int of_weight(const sc_net_op *op, bool made)
{
    for (unsigned k = SC_TENSOR_DIMS; k-- > 0;) {
        uint8_t at = op->weight[0].at[k];
        if (at == SC_NO_ITER || op->iter[at].kind == SC_I_OPAQUE) continue;
        if ((memchr(op->out.at, at, SC_TENSOR_DIMS) != NULL) == made) return at;
    }
    return -1;
}

/* The channel dim, or else the last dim of the result. */
static int of_result(const sc_net_op *op)
{
    int last = -1;
    for (unsigned k = 0; k < SC_TENSOR_DIMS; k++) {
        uint8_t at = op->out.at[k];
        if (at == SC_NO_ITER) continue;
        last = op->iter[at].batch || op->iter[at].kind == SC_I_OPAQUE ? -1 : at;
        if (strcmp(op->iter[at].name, "c") == 0) break;
    }
    return last;
}

int sc_net_op_iter(const sc_net_op *op, const char *name)
{
    for (int i = 0; i < op->n_iter; i++)
        if (strcmp(op->iter[i].name, name) == 0) return i;
    if (strcmp(name, "in") == 0)
        return op->n_weight ? of_weight(op, false) : -1;
    if (strcmp(name, "out") != 0) return -1;
    return op->n_weight ? of_weight(op, true) : of_result(op);
}

/* Backward products per forward product: one each for values and weights that
 * learn.  Attention has two for each of its two products, whether q, k and v
 * are one value or three. */
static double backward_passes(const sc_net *g, const sc_net_op *op)
{
    double n = 0.0;
    for (unsigned i = 0; i < op->n_in; i++)
        n += g->tensor[op->in[i].tensor].learns ? 1.0 : 0.0;
    if (op->type == SC_NET_ATTENTION || op->type == SC_NET_SCAN)
        return n > 0.0 ? 2.0 : 0.0;
    bool weight = op->n_weight && g->tensor[op->weight[0].tensor].learns;
    return n + (weight ? 1.0 : 0.0);
}

double sc_net_flops(const sc_net *g, double samples, bool forward_only)
{
    double sum = 0.0;
    for (uint32_t i = 0; i < g->n_ops; i++) {
        const sc_net_op *op = &g->op[i];
        double passes = forward_only ? 1.0 : 1.0 + backward_passes(g, op);
        sum += passes * op->flops;
    }
    return sum * samples;
}

/* ---- checks */

typedef struct where {
    const sc_net *g;
    sc_err *err;
} where;

static sc_status broken(const where *w, const char *path, const char *what)
{
    return sc_error(w->err, SC_EBUG, SC_C_BUG, sc_pos_none(), NULL,
                    "network %.60s, %.100s: %s", w->g->name ? w->g->name : "?",
                    path ? path : "?", what);
}

static sc_status check_tensor(const where *w, const sc_tensor *t)
{
    if (!t->name) return broken(w, NULL, "a tensor without a name");
    if (t->kind > SC_TENSOR_VALUE) return broken(w, t->name, "kind of tensor");
    if (t->n_dim > SC_TENSOR_DIMS) return broken(w, t->name, "too many dims");
    if ((t->op == SC_NONE) != (t->kind == SC_TENSOR_INPUT))
        return broken(
            w, t->name,
            "an input has no operator that makes it, any other tensor has one");
    if (t->op != SC_NONE && t->op >= w->g->n_ops)
        return broken(w, t->name, "made by an operator that does not exist");
    if (t->kind == SC_TENSOR_INPUT && t->learns)
        return broken(w, t->name, "input data can't have gradients");
    for (unsigned i = 0; i < t->n_dim; i++) {
        if (!t->dim[i].name || t->dim[i].extent == 0)
            return broken(w, t->name, "a dim without a name or an extent");
        if (t->dim[i].batch && t->kind == SC_TENSOR_WEIGHT)
            return broken(w, t->name, "a weight per sample");
    }
    if (!isfinite(sc_tensor_elements(t, 1.0)))
        return broken(w, t->name, "too many elements");
    return SC_OK;
}

static sc_status check_port(const where *w, const sc_net_op *op,
                            const sc_operand *p, bool weight)
{
    if (p->tensor >= w->g->n_tensors)
        return broken(w, op->path, "uses a tensor that does not exist");
    const sc_tensor *t = &w->g->tensor[p->tensor];
    if (weight != (t->kind == SC_TENSOR_WEIGHT))
        return broken(w, op->path, "a weight among values, or the reverse");
    for (unsigned i = 0; i < SC_TENSOR_DIMS; i++) {
        uint8_t at = p->at[i];
        if (at == SC_NO_ITER) {
            if (i < t->n_dim && t->dim[i].batch)
                return broken(w, op->path, "a batch dim that nothing indexes");
            continue;
        }
        if (i >= t->n_dim || at >= op->n_iter)
            return broken(w, op->path, "a port has dims that do not exist");
        if (t->dim[i].batch != op->iter[at].batch)
            return broken(w, op->path, "batch dims do not match");
        if (memchr(p->at, at, i))
            return broken(w, op->path, "an iteration dim indexes two dims");
    }
    return SC_OK;
}

static sc_status check_op(const where *w, uint32_t i)
{
    const sc_net_op *op = &w->g->op[i];
    if (!op->path) return broken(w, NULL, "an operator needs a path");
    if (op->type >= SC_N_NET_TYPES) return broken(w, op->path, "type");
    if (op->n_iter > SC_ITER_DIMS) return broken(w, op->path, "iteration dims");
    bool routed = op->type == SC_NET_DISPATCH || op->type == SC_NET_EXPERT ||
                  op->type == SC_NET_COMBINE;
    if (op->topk > op->experts || (routed && !op->topk))
        return broken(w, op->path, "experts of a token");
    if (op->fn >= SC_N_NET_FNS) return broken(w, op->path, "function");
    for (unsigned k = 0; k < op->n_iter; k++) {
        const sc_iter_dim *it = &op->iter[k];
        if (!it->name || it->extent == 0 || it->kind > SC_I_OPAQUE)
            return broken(w, op->path, "an iteration dim is not complete");
        if (it->units > it->extent && !op->experts)
            return broken(w, op->path, "more parts than elements");
        for (unsigned j = 0; j < k; j++) {
            if (strcmp(op->iter[j].name, it->name) == 0)
                return broken(w, op->path, "two iteration dims of one name");
        }
    }
    for (unsigned k = 0; k < op->n_in; k++) {
        SC_TRY(check_port(w, op, &op->in[k], false));
        uint32_t made = w->g->tensor[op->in[k].tensor].op;
        if (made != SC_NONE && made >= i)
            return broken(w, op->path,
                          "an operator reads a tensor that is made later");
    }
    for (unsigned k = 0; k < op->n_weight; k++) {
        SC_TRY(check_port(w, op, &op->weight[k], true));
        if (w->g->tensor[op->weight[k].tensor].op > i)
            return broken(w, op->path, "a weight's first use is not this");
    }
    SC_TRY(check_port(w, op, &op->out, false));
    if (w->g->tensor[op->out.tensor].op != i)
        return broken(w, op->path, "its result is made by another");
    bool works = op->type <= SC_NET_SCAN;
    if (!(op->flops >= 0.0) || isinf(op->flops) || (op->flops > 0 && !works))
        return broken(w, op->path, "FLOP");
    return SC_OK;
}

static sc_status check_instances(const where *w)
{
    const sc_net *g = w->g;
    uint32_t at = 0, segments = 0;
    for (uint32_t i = 0; i < g->n_instances; i++) {
        const sc_net_instance *x = &g->instance[i];
        if (x->first != at || x->n_ops == 0 || x->segment > segments)
            return broken(w, x->path, "instances are not all operators");
        segments += x->segment == segments;
        at += x->n_ops;
    }
    if (at != g->n_ops || segments != g->n_segments)
        return broken(w, NULL, "instances are not all operators");
    return SC_OK;
}

/* Checks the operators of an instance, with their results and weights. */
static sc_status check_ops(const where *w, uint32_t first, uint32_t n)
{
    const sc_net *g = w->g;
    for (uint32_t i = first; i < first + n; i++) {
        const sc_net_op *op = &g->op[i];
        SC_TRY(check_op(w, i));
        SC_TRY(check_tensor(w, &g->tensor[op->out.tensor]));
        for (unsigned k = 0; k < op->n_weight; k++)
            SC_TRY(check_tensor(w, &g->tensor[op->weight[k].tensor]));
    }
    return SC_OK;
}

sc_status model_net_check(const sc_net *g, bool once, sc_err *err)
{
    where w = {g, err};
    if (!once) return sc_net_check(g, err);
    SC_TRY(check_instances(&w));
    for (uint32_t i = 0, segments = 0; i < g->n_instances; i++) {
        const sc_net_instance *x = &g->instance[i];
        if (x->segment < segments) continue;
        segments++;
        SC_TRY(check_ops(&w, x->first, x->n_ops));
    }
    return SC_OK;
}

sc_status sc_net_check(const sc_net *g, sc_err *err)
{
    where w = {g, err};
    uint32_t inputs = 0;
    double params = 0.0, learned = 0.0;
    for (uint32_t i = 0; i < g->n_tensors; i++) {
        const sc_tensor *t = &g->tensor[i];
        SC_TRY(check_tensor(&w, t));
        double n =
            t->kind == SC_TENSOR_WEIGHT ? sc_tensor_elements(t, 1.0) : 0.0;
        inputs += t->kind == SC_TENSOR_INPUT;
        params += n;
        learned += t->learns ? n : 0.0;
    }
    if (inputs != g->n_inputs) return broken(&w, NULL, "number of inputs");
    if (!(g->active >= 0 && g->active <= g->params))
        return broken(&w, NULL, "number of active parameters");
    if (fabs(params - g->params) > 0.5 || fabs(learned - g->learned) > 0.5)
        return broken(&w, NULL, "number of parameters");
    for (uint32_t i = 0; i < g->n_ops; i++) SC_TRY(check_op(&w, i));
    return check_instances(&w);
}
