/* SPDX-License-Identifier: Apache-2.0 */
/*
 * infer_saved.c - memory that operators save for the backward pass besides
 * values of the network (masks of dropouts, sums of rows, operands in the
 * precision of their product), and temporary memory of kernels.
 */
#include "plan/infer.h"

/* Adds a value that the item makes besides its result. */
static uint32_t extra_value(inference *f, uint32_t op, const char *what,
                            uint32_t tensor, double bytes, program_item *it)
{
    if (bytes < 1) return 0;
    uint32_t v =
        infer_value(f, (program_value){.word = {f->g->op[op].path, what},
                                       .tensor = tensor,
                                       .what = VALUE_EXTRA,
                                       .stage = f->node[op].stage,
                                       .bytes = bytes});
    if (it->out == SC_NONE)
        it->out = v;
    else
        it->n_more++;
    return v + 1;
}

/* Experts keep the tokens that were gathered over tp for them: the gather is an
 * operator of Megatron's token dispatcher, not of the product. */
bool infer_keeps_input(const inference *f, uint32_t op)
{
    return f->job->sw->keep_gathered || (f->role[op] & INFER_EXPERTS);
}

layout infer_copy_layout(const inference *f, uint32_t op)
{
    const sc_operand *in = &f->g->op[op].in[0];
    uint32_t all = (1u << LAYOUT_DIMS) - 1;
    layout used = infer_port(f, op, in, false), kept = f->kept[in->tensor].l;
    /* Dispatch only moves tokens and gathers none. */
    bool gathered = layout_fraction(&used, all, &f->mesh) >
                    layout_fraction(&kept, all, &f->mesh);
    return gathered && !infer_keeps_input(f, op) ? kept : used;
}

static double copied(const inference *f, uint32_t op, double each)
{
    const sc_tensor *t = &f->g->tensor[f->g->op[op].in[0].tensor];
    layout l = infer_copy_layout(f, op);
    if (t->kind != SC_TENSOR_VALUE || !(each > 0)) return 0;
    return each * infer_elements(f, t) * infer_rank_bytes(f, t, &l) /
           infer_bytes(f, t);
}

sc_status infer_save(inference *f, uint32_t op, bool recomputed,
                     program_item *it)
{
    const sc_net_op *o = &f->g->op[op];
    /* Rules of other simulators count only tensors of the network. */
    if (!f->kept[o->out.tensor].learns || f->rules->nothing_fixed) return SC_OK;
    if (!recomputed) SC_TRY(infer_kernel_memory(f, op, &f->kernel_memory[op]));
    const sc_op_held *held = &f->kernel_memory[op];
    infer_saved *s = &f->saved[recomputed][op];
    double fraction = infer_rr_fraction(f, op, false);
    static const char *const name[SC_OP_OWN] = {"kept", "kept 2", "kept 3"};
    for (uint32_t i = 0; i < SC_OP_OWN; i++)
        s->own[i] = extra_value(f, op, name[i], o->out.tensor,
                                fraction * held->own[i], it);
    if (held->copy > 0)
        s->copy = extra_value(f, op, "kept in", o->in[0].tensor,
                              fraction * copied(f, op, held->copy), it);
    (void)extra_value(f, op, "working", o->out.tensor, fraction * held->forward,
                      it);
    return SC_OK;
}

infer_saved infer_saved_of(const inference *f, uint32_t op)
{
    return f->saved[f->node[op].segment != SC_NONE][op];
}

uint32_t infer_hold(inference *f, uint32_t op, double bytes, program_item *it)
{
    return extra_value(f, op, "working", f->g->op[op].out.tensor,
                       bytes * infer_rr_fraction(f, op, false), it);
}

/* ---- recomputation by operators -------------------------------------- */

/* Fractions of an operator's result that programs compute as separate products,
 * such as query, key and value, or gate and up.  Returns their number. */
static uint32_t products(const inference *f, uint32_t op, double fraction[3])
{
    const infer_kept *k = &f->kept[f->g->op[op].out.tensor];
    const sc_net_op *user = k->n_readers ? &f->g->op[k->reader[0]] : NULL;
    if (user && user->type == SC_NET_ROPE) {
        k = &f->kept[user->out.tensor];
        user = k->n_readers ? &f->g->op[k->reader[0]] : NULL;
    }
    fraction[0] = 1;
    if (user && user->type == SC_NET_ATTENTION && user->kv_heads > 0) {
        double kv = user->kv_heads, all = user->heads + 2 * kv;
        fraction[0] = user->heads / all;
        fraction[1] = fraction[2] = kv / all;
        return 3;
    }
    if (!user || user->type != SC_NET_ACT || !user->gated) return 1;
    fraction[0] = fraction[1] = 0.5;
    return 2;
}

/* torchtitan's per-operator checkpointing keeps the results of the first,
 * third, ... product of a block, in the order in which they run. */
static double every_second(const inference *f, uint32_t op)
{
    const char *path = f->g->op[op].path;
    uint32_t first = op, place = 0;
    double part = 0, fraction[3];
    if (f->s->recompute != SC_RC_OPS || f->g->op[op].type != SC_NET_LINEAR ||
        !infer_in_block(path))
        return 0;
    while (first > 0 && infer_same_unit(f->g->op[first - 1].path, path))
        first--;
    for (uint32_t i = first; i <= op; i++) {
        if (f->g->op[i].type != SC_NET_LINEAR) continue;
        uint32_t n = products(f, i, fraction);
        for (uint32_t k = 0; k < n; k++)
            if (++place % 2 == 1 && i == op) part += fraction[k];
    }
    return part;
}

double infer_spared(const inference *f, uint32_t op)
{
    return f->node[op].segment == SC_NONE ? 0 : every_second(f, op);
}

/* Fraction of a result that is saved although no backward pass reads it. */
double infer_unread(const inference *f, uint32_t op)
{
    const infer_kept *k = &f->kept[f->g->op[op].out.tensor];
    bool compiled = f->job->sw->single_pass || f->job->sw->fused;
    if (compiled || f->node[op].segment != SC_NONE || !k->learns) return 0;
    for (uint32_t i = 0; i < k->n_readers; i++)
        if (f->g->op[k->reader[i]].type != SC_NET_ELEMENTWISE ||
            f->g->op[k->reader[i]].fn == SC_F_PRODUCT)
            return 0;
    return every_second(f, op);
}

uint32_t infer_save_spared(inference *f, uint32_t op, double bytes,
                           program_item *it)
{
    return extra_value(f, op, "kept part", f->g->op[op].out.tensor, bytes, it);
}
