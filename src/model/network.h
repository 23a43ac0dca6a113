/* SPDX-License-Identifier: Apache-2.0 */
/*
 * network.h - inside model/: builds the network of a transformer, layer by
 * layer.  Like those of net_build.h, functions return the value that they make;
 * after an error they accept and return SC_NONE.
 */
#ifndef MODEL_NETWORK_H
#define MODEL_NETWORK_H

#include "model/net_build.h"
#include "model/read.h"

/* Sequence length of a model's `kinds`: longer than any window, and 15 % of it
 * is a whole number. */
#define MODEL_KINDS_SEQ (UINT64_C(5) << 29)

/* Makes m->kinds from m->t and m->layer, and counts parameters.  SC_C_RANGE at
 * `pos` if the count exceeds 2^53. */
sc_status model_kinds(sc_model *m, sc_pos pos, sc_arena *a, sc_err *err);

/* Like sc_model_divide(), but without new paths and `kinds`. */
sc_status model_divide(const sc_model *from, const uint64_t *label, sc_pos pos,
                       sc_arena *a, sc_model *m, sc_err *err);

/* The stacks of an encoder-decoder; in T5 each learns its relative positions
 * once. */
enum { NETWORK_STACKS = 2 };

typedef struct network {
    const sc_model *m;
    const sc_transformer *t; /* of m */
    uint64_t seq;
    bool unfused;
    net_builder b;
    net_value ids;     /* token ids: multi-token prediction and decoders look
                          them up again */
    net_value table;   /* table of the vocabulary; a tied head uses it too */
    net_value head;    /* weight of the head; multi-token prediction uses it
                          too */
    net_value labels;  /* labels of all tokens */
    net_value encoded; /* the encoder's result */
    net_value relative[NETWORK_STACKS];
    unsigned stack;
} network;

/* The last dim of a value: its extent and the indivisible parts. */
typedef struct network_dim {
    const char *name;
    uint64_t extent;
    uint32_t units; /* 0: extent */
} network_dim;

static inline network_dim network_width(const char *name, int64_t extent,
                                        int64_t units)
{
    network_dim d = {name, (uint64_t)extent,
                     units == extent ? 0 : (uint32_t)units};
    return d;
}

static inline network_dim network_hidden(const network *n)
{
    return network_width("hidden", n->t->hidden, n->t->hidden);
}

static inline network_dim network_rank(int64_t extent)
{
    return network_width("rank", extent, extent);
}

static inline network_dim network_heads(int64_t heads, int64_t width,
                                        int64_t units)
{
    return network_width("head", heads * width, units);
}

/* Input of an MLP's activation: a gated one is twice as wide. */
static inline network_dim network_ffn(const network *n, int64_t ffn)
{
    return network_width("ffn", model_gated(n->t) ? 2 * ffn : ffn, ffn);
}

/* The operator that made a value, or NULL. */
sc_net_op *network_made(network *n, net_value v);

/* ---- layers */

net_value network_embedding(network *n);
/* The decoder of two stacks looks up tokens of its own. */
net_value network_decoder_embedding(network *n);
net_value network_block(network *n, const sc_layer *l, net_value x);
/* `later`: the results of the multi-token-prediction blocks. */
void network_head(network *n, net_value x, const net_value *later,
                  uint32_t n_later);

/* The routed experts that read `x`; then a Mamba mixer or a gated DeltaNet. */
net_value network_experts(network *n, net_value x);
net_value network_mamba(network *n, net_value x, bool delta);
/* The part of it between the norm and the sum. */
net_value network_mamba_of(network *n, net_value normed, bool delta);

/* ---- operators */

/* Name of a part of an operator, such as "attn_scores". */
const char *network_part(network *n, const char *name, const char *part);

/* A product; it uses `weight` if that is given. */
net_value network_product(network *n, const char *name, net_value x,
                          network_dim out, bool bias, net_value weight);

static inline net_value network_linear(network *n, const char *name,
                                       net_value x, network_dim out, bool bias)
{
    return network_product(n, name, x, out, bias, SC_NONE);
}

/* Marks a product that recipes with lower precision leave in 16 bits. */
net_value network_keep_bf16(network *n, net_value v);

/* Opens an operator whose last iteration dim is `dim`.  Its first input has the
 * shape of the result unless the caller changes it. */
sc_net_op *network_open(network *n, const char *name, sc_net_type type,
                        unsigned n_in, const net_value *in, network_dim dim,
                        sc_tensor *t);
net_value network_close(network *n, sc_net_op *op, const sc_tensor *t);

net_value network_norm(network *n, const char *name, net_value x);
/* A norm of the first elements; `each`: per head or group, with that many
 * weights. */
net_value network_norm_of(network *n, const char *name, net_value x,
                          network_dim dim, uint64_t each);
net_value network_act(network *n, const char *name, net_value x);
/* A residual sum, with dropout if the model has it. */
net_value network_sum(network *n, const char *name, net_value x, net_value y);
/* Looks tokens up in the vocabulary's table once more. */
net_value network_words_again(network *n, const char *name);
/* Attention with the model's heads; `w` gives q, k, seen, causal and cross. */
net_value network_attention(network *n, const char *name, build_attend w);

#endif
