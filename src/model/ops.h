/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ops.h - inside model/: operators as rows of iteration dims, and the parts
 * that blocks are made of.
 */
#ifndef MODEL_OPS_H
#define MODEL_OPS_H

#include "model/read.h"

/* Bits of iteration dims; every operator starts with batch and seq. */
enum { MODEL_B = 1, MODEL_S = 2, MODEL_D2 = 4, MODEL_D3 = 8, MODEL_D4 = 16 };

#define MODEL_TOKENS (MODEL_B | MODEL_S)

#define MODEL_NO_SRC      (-2)
#define MODEL_LAYER_INPUT (-1)

typedef enum model_mixer {
    MODEL_NO_MIXER,
    MODEL_ATTENTION,
    MODEL_MAMBA
} model_mixer;

typedef enum model_mlp { MODEL_NO_MLP, MODEL_DENSE, MODEL_MOE } model_mlp;

/* What a kind of block consists of. */
typedef struct model_kind {
    const char *path;
    uint8_t mixer, mlp; /* model_mixer, model_mlp */
    bool window;        /* its attention has t->window */
    bool causal;
    bool cross;    /* a second attention, to an encoder's output */
    bool mtp;      /* starts from the next token's embedding too */
    bool last_enc; /* ends an encoder: its final norm */
} model_kind;

/* Elements of a dim, and the parts a parallel degree may not cut. */
sc_iter model_dim(sc_dimname name, int64_t extent, int64_t units);
sc_iter model_hidden(const sc_transformer *t);

/* Each appends an operator that reads the one before it (the layer's input,
 * if it is the first). */
sc_operator *model_op(sc_layer *l, const char *name, sc_op_type type);
void model_add_dim(sc_operator *op, sc_iter dim, sc_iter_kind kind);
/* One dim beside batch and seq that input and output share. */
sc_operator *model_pointwise(sc_layer *l, const char *name, sc_op_type type,
                             sc_iter dim);
sc_operator *model_norm(sc_layer *l, const char *name, sc_iter dim, bool bias);
sc_operator *model_sum(sc_layer *l, const char *name, sc_iter dim, int other);
sc_operator *model_linear(sc_layer *l, const char *name, sc_iter in,
                          sc_iter out, bool bias);
/* A linear, and its adapter where the model has adapters there. */
void model_adapted(sc_layer *l, const sc_transformer *t, const char *name,
                   sc_iter in, sc_iter out, bool bias);

static inline int model_last(const sc_layer *l)
{
    return (int)l->n_ops - 1;
}

/* Appends the operators of a block of kind `k`. */
void model_block(sc_layer *l, const sc_transformer *t, const model_kind *k);
void model_experts(sc_layer *l, const sc_transformer *t);
void model_mamba(sc_layer *l, const sc_transformer *t);

#endif
