/* SPDX-License-Identifier: Apache-2.0 */
/* flops.c - the work of operators and of whole models. */
#include <stepcast/model.h>

uint64_t sc_iter_extent(const sc_iter *it, uint64_t batch, uint64_t seq)
{
    if (it->extent > 0) return it->extent;
    return it->name == SC_D_BATCH ? batch : seq;
}

double sc_operator_flops(const sc_operator *op, uint64_t batch, uint64_t seq)
{
    if (op->type != SC_LINEAR && op->type != SC_ATTENTION) return 0.0;

    double points = 1.0; /* of the iteration space */
    for (uint32_t i = 0; i < op->n_iter; i++) {
        points *= (double)sc_iter_extent(&op->iter[i], batch, seq);
    }
    if (op->type == SC_LINEAR) return 2.0 * points;

    /* two products, scores and context, over the positions seen */
    uint64_t seen = op->window && op->window < seq ? op->window : seq;
    return 4.0 * points * (double)seen;
}

double sc_model_flops(const sc_model *m, uint64_t batch, uint64_t seq,
                      bool forward_only)
{
    double sum = 0.0;
    for (uint32_t i = 0; i < m->n_layers; i++) {
        const sc_layer *l = &m->layer[i];
        double layer = 0.0;
        for (uint32_t k = 0; k < l->n_ops; k++) {
            double passes = forward_only ? 1.0 : l->op[k].frozen ? 2.0 : 3.0;
            layer += passes * sc_operator_flops(&l->op[k], batch, seq);
        }
        sum += layer * l->repeat;
    }
    return sum;
}
