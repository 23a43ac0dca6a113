/* SPDX-License-Identifier: Apache-2.0 */
/* flops.c - the work of operators and of whole models. */
#include <stepcast/model_graph.h>

static uint64_t extent_of(const sc_iter *it, uint64_t batch, uint64_t seq)
{
    if (it->extent > 0) return it->extent;
    return it->name == SC_D_BATCH ? batch : seq;
}

/* Points of the iteration space of the tokens the operator runs on. */
static double points(const sc_operator *op, uint64_t batch, uint64_t seq)
{
    double n = op->share > 0 ? op->share : 1.0;
    for (uint32_t i = 0; i < op->n_iter; i++) {
        n *= (double)extent_of(&op->iter[i], batch, seq);
    }
    return n;
}

double sc_operator_flops(const sc_operator *op, uint64_t batch, uint64_t seq)
{
    uint64_t seen = op->window && op->window < seq ? op->window : seq;
    switch ((sc_op_type)op->type) {
    case SC_LINEAR:
    case SC_EXPERT:
    case SC_PATCH: return 2.0 * points(op, batch, seq);
    case SC_ATTENTION: /* scores and context; the space has v_dim per head */
        return 2.0 * points(op, batch, seq) / op->v_dim *
               (op->qk_dim + op->v_dim) * (double)seen;
    case SC_SCAN: return 7.0 * points(op, batch, seq);
    default: return 0.0;
    }
}

double sc_model_flops(const sc_model *m, uint64_t batch, uint64_t seq,
                      bool forward_only)
{
    double sum = 0.0;
    if (m->graph)
        return sc_opgraph_flops(m->graph, (double)batch, forward_only);
    for (uint32_t i = 0; i < m->n_layers; i++) {
        const sc_layer *l = &m->layer[i];
        double layer = 0.0;
        for (uint32_t k = 0; k < l->n_ops; k++) {
            double passes = forward_only || l->still ? 1.0
                            : l->op[k].frozen        ? 2.0
                                                     : 3.0;
            layer += passes * sc_operator_flops(&l->op[k], batch, seq);
        }
        sum += layer * l->repeat;
    }
    return sum;
}
