/* SPDX-License-Identifier: Apache-2.0 */
/* ops.c - each operator is its list of iteration dims and, as bits of that
 * list, which of them index input, weight and output. */
#include "model/ops.h"

#include <string.h>

sc_operator *model_op(sc_layer *l, const char *name, sc_op_type type)
{
    sc_operator *op = &l->op[l->n_ops];
    *op = (sc_operator){.name = name,
                        .type = (uint8_t)type,
                        .n_iter = 2,
                        .src = (int8_t)model_last(l),
                        .src2 = MODEL_NO_SRC};
    op->iter[0] = (sc_iter){SC_D_BATCH, SC_I_BATCH, 0, 0};
    op->iter[1] = (sc_iter){SC_D_SEQ, SC_I_BATCH, 0, 0};
    l->n_ops++;
    return op;
}

sc_iter model_dim(sc_dimname name, int64_t extent, int64_t units)
{
    sc_iter it = {(uint8_t)name, SC_I_FREE, (uint64_t)extent,
                  units == extent ? 0 : (uint32_t)units};
    return it;
}

sc_iter model_hidden(const sc_transformer *t)
{
    return model_dim(SC_D_HIDDEN, t->hidden, t->hidden);
}

void model_add_dim(sc_operator *op, sc_iter dim, sc_iter_kind kind)
{
    dim.kind = (uint8_t)kind;
    op->iter[op->n_iter++] = dim;
}

sc_operator *model_pointwise(sc_layer *l, const char *name, sc_op_type type,
                             sc_iter dim)
{
    sc_operator *op = model_op(l, name, type);
    op->iter[op->n_iter++] = dim;
    op->x = op->y = MODEL_TOKENS | MODEL_D2;
    return op;
}

sc_operator *model_norm(sc_layer *l, const char *name, sc_iter dim, bool bias)
{
    dim.kind = SC_I_OPAQUE;
    sc_operator *op = model_pointwise(l, name, SC_NORM, dim);
    op->w = MODEL_D2;
    op->bias = bias ? dim.extent : 0;
    op->params = dim.extent + op->bias;
    return op;
}

sc_operator *model_sum(sc_layer *l, const char *name, sc_iter dim, int other)
{
    sc_operator *op = model_pointwise(l, name, SC_DROPOUT_ADD, dim);
    op->src2 = (int8_t)other;
    return op;
}

sc_operator *model_linear(sc_layer *l, const char *name, sc_iter in,
                          sc_iter out, bool bias)
{
    sc_operator *op = model_op(l, name, SC_LINEAR);
    model_add_dim(op, in, SC_I_REDUCE);
    model_add_dim(op, out, SC_I_FREE);
    op->x = MODEL_TOKENS | MODEL_D2;
    op->w = MODEL_D2 | MODEL_D3;
    op->y = MODEL_TOKENS | MODEL_D3;
    op->bias = bias ? out.extent : 0;
    op->params = in.extent * out.extent + op->bias;
    return op;
}

/* The two products of an adapter and the sum with what they adapt. */
static const struct {
    const char *of, *a, *b, *add;
    bool mlp;
} adapters[] = {
    {"qkv", "qkv_lora_a", "qkv_lora_b", "qkv_lora_add", false},
    {"q_proj", "q_proj_lora_a", "q_proj_lora_b", "q_proj_lora_add", false},
    {"q_up", "q_up_lora_a", "q_up_lora_b", "q_up_lora_add", false},
    {"kv_up", "kv_up_lora_a", "kv_up_lora_b", "kv_up_lora_add", false},
    {"proj", "proj_lora_a", "proj_lora_b", "proj_lora_add", false},
    {"fc1", "fc1_lora_a", "fc1_lora_b", "fc1_lora_add", true},
    {"fc2", "fc2_lora_a", "fc2_lora_b", "fc2_lora_add", true},
};

void model_adapted(sc_layer *l, const sc_transformer *t, const char *name,
                   sc_iter in, sc_iter out, bool bias)
{
    int8_t src = model_linear(l, name, in, out, bias)->src;
    int base = model_last(l);
    for (size_t i = 0; t->lora && i < SC_COUNT(adapters); i++) {
        if (strcmp(name, adapters[i].of) != 0) continue;
        if (adapters[i].mlp && !t->lora_mlp) return;
        sc_iter rank = model_dim(SC_D_RANK, t->lora, t->lora);
        sc_operator *op = model_linear(l, adapters[i].a, in, rank, false);
        op->src = src;
        op->wide = true;
        model_linear(l, adapters[i].b, rank, out, false)->wide = true;
        model_sum(l, adapters[i].add, out, base);
        return;
    }
}
