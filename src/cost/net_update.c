/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net_update.c - an optimizer's update of one weight.
 *
 * Bytes per element: the gradient is read in its own precision; master weight,
 * moments and accumulators are fp32 and are read and written; a weight used in
 * 16 bits is also written.  Programs that process them several times state the
 * bytes that they move.  Optimizers process lists of weights, so one weight
 * adds traffic but no launch.  Of a table without a gradient as large as
 * itself, only the rows that were looked up are updated.
 */
#include "cost/cost_optimizer.h"
#include "cost/lookup.h"
#include "cost/net_op.h"

#include <math.h>

static bool touches_rows(const sc_net_work *w, const sc_optimizer *o)
{
    return w->op->type == SC_NET_EMBED && w->weight == 0 &&
           (o->by_rows || w->by_rows);
}

double sc_cost_net_op_touched(const sc_net_work *w)
{
    double l = w->op->lookups ? w->op->lookups : 1;
    double n =
        fmin(net_op_weight_elements(w), net_op_elements(w, &w->op->out) * l);
    sc_op_work work;
    if (!w->op->access) return n;
    net_op_work(w, &work);
    return fmin(n, lookup_unique(&work) * work.table_width);
}

void net_op_list_update(const sc_net_work *w, sc_op_kernels *out)
{
    const sc_tensor *t = &w->net->tensor[w->op->weight[w->weight].tensor];
    const sc_optimizer *o = sc_optimizer_of(w->optimizer);
    double n = net_op_weight_elements(w);
    double used = net_op_bytes(w, &w->op->weight[w->weight]);
    double grad = t->bytes > 0 ? t->bytes : used;
    double bytes = grad + 8 + o->state_bytes + (used < 4 ? used : 0);
    bool rows = touches_rows(w, o);
    if (!t->learns) return;
    if (w->update_bytes > 0 && t->bytes == 0)
        bytes = w->update_bytes + o->state_bytes -
                sc_optimizer_of(NULL)->state_bytes;
    if (rows) {
        double width = net_op_length(w, &w->op->weight[0], 1);
        n = sc_cost_net_op_touched(w);
        bytes = grad + 8 + o->row_state_bytes + 8 * o->row_values / width;
    }
    out->k[out->n] = (sc_kernel){.kind = rows ? SC_K_LOOKUP : SC_K_MEMORY,
                                 .name = w->optimizer ? w->optimizer : o->name,
                                 .precision = SC_FP32,
                                 .bytes = n * bytes};
    out->joined[out->n++] = true;
}
