/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model.h - a network as layers of operators with named dimensions, before
 * any parallelism.
 *
 * Tensor dimensions are named, not numbered: the output of `qkv` is (batch,
 * seq, head), the input of `proj` is the same.  An operator is an iteration
 * space over named dims and a list saying which of them index its input,
 * weight and output; backward products use the same space with the roles
 * swapped (Proteus section 1.2).  Extents count elements, units what a
 * parallel degree must divide (heads, not head elements).  Batch and seq are
 * set by the run: their extent is 0 here.
 */
#ifndef SC_MODEL_H
#define SC_MODEL_H

#include <stepcast/hw.h> /* sc_precision */

#ifdef __cplusplus
extern "C" {
#endif

typedef enum sc_dimname {
    SC_D_BATCH,
    SC_D_SEQ,
    SC_D_HIDDEN,
    SC_D_HEAD,
    SC_D_FFN,
    SC_D_VOCAB,
    SC_D_EXPERT,
    SC_N_DIMNAMES
} sc_dimname;

extern const char *const sc_dimname_names[]; /* "batch" ...; NULL ends */

typedef enum sc_iter_kind {
    SC_I_BATCH,  /* indexes input and output, not the weight */
    SC_I_FREE,   /* indexes weight and output (or all of an elementwise op) */
    SC_I_REDUCE, /* summed over: a split leaves partial sums */
    SC_I_OPAQUE  /* can't be split */
} sc_iter_kind;

typedef enum sc_op_type {
    SC_EMBED,       /* table lookup: x (b,s) -> y (b,s,h), vocab is reduced */
    SC_POSITION,    /* learned position table, added */
    SC_NORM,        /* layer norm or RMS norm */
    SC_LINEAR,      /* matrix product with a weight */
    SC_ROPE,        /* rotary positions on q and k */
    SC_ATTENTION,   /* scores, softmax, dropout, context */
    SC_ACT,         /* gelu, relu; gated: silu(gate) * up */
    SC_DROPOUT_ADD, /* bias + dropout + residual add */
    SC_LOSS,        /* softmax cross entropy over the vocabulary */
    SC_N_OP_TYPES
} sc_op_type;

extern const char *const sc_op_type_names[];

typedef struct sc_iter {
    uint8_t name;    /* sc_dimname */
    uint8_t kind;    /* sc_iter_kind */
    uint64_t extent; /* elements; 0: batch or seq of the run */
    uint32_t units;  /* indivisible parts: heads; 0: extent */
} sc_iter;

#define SC_OP_ITERS 6

typedef struct sc_operator {
    const char *name; /* within the layer: "qkv" "proj" "fc1" ... */
    uint8_t type;     /* sc_op_type */
    uint8_t n_iter;
    sc_iter iter[SC_OP_ITERS];
    uint8_t x, w, y; /* bit per iter: which dims index input, weight,
                            output; w = 0: no weight; w != 0 and params = 0:
                            the weight is another operator's (a tied head
                            uses the table of `embed`) */
    int8_t src;      /* operator of this layer that makes the input;
                            -1: the layer's input */
    int8_t src2;     /* second input (residual, gate); -2: none */
    uint64_t params; /* weight and bias elements, whole */
    uint64_t bias;   /* of these, bias (split with the output dims) */
    uint64_t window; /* attention sees this many positions; 0: all */
    bool frozen;
} sc_operator;

typedef enum sc_layer_kind {
    SC_LAYER_EMBED, /* token (and position) embedding */
    SC_LAYER_BLOCK, /* one transformer block */
    SC_LAYER_HEAD   /* final norm, vocabulary projection, loss */
} sc_layer_kind;

#define SC_LAYER_OPS 20

typedef struct sc_layer {
    const char *path; /* "embedding", "layers.*", "head" */
    uint8_t kind;     /* sc_layer_kind */
    uint32_t repeat;  /* equal consecutive layers */
    uint32_t n_ops;
    sc_operator op[SC_LAYER_OPS]; /* execution order of the forward pass */
} sc_layer;

typedef enum sc_position {
    SC_POS_LEARNED,
    SC_POS_ROTARY,
    SC_POS_ALIBI,
    SC_POS_NONE
} sc_position;

typedef enum sc_act {
    SC_ACT_GELU,
    SC_ACT_RELU,
    SC_ACT_SWIGLU,
    SC_ACT_GEGLU
} sc_act;

typedef enum sc_norm { SC_NORM_LAYER, SC_NORM_RMS } sc_norm;

extern const char *const sc_position_names[]; /* NULL ends */
extern const char *const sc_act_names[];
extern const char *const sc_norm_names[];

/* What a dense transformer is generated from; also the keys of model.yml. */
typedef struct sc_transformer {
    const char *name;
    int64_t layers, hidden, heads, kv_heads, head_dim, ffn, vocab, max_seq;
    int64_t positions;       /* rows of a learned table (OPT: max_seq + 2) */
    int64_t window;          /* sliding-window attention; 0: all positions */
    int position, act, norm; /* sc_position, sc_act, sc_norm */
    bool tied;               /* head shares the embedding's weight */
    bool bias;               /* linear layers have biases */
    bool qkv_bias;           /* qkv has, even without bias (Qwen) */
    bool norm_bias;          /* layer norm has a bias (always false for RMS) */
    bool embed_norm;         /* BLOOM: a norm after the embedding */
    bool dropout;            /* trained with dropout */
    bool parallel;           /* attention and MLP both read the block's input */
} sc_transformer;

typedef struct sc_model {
    const char *name;
    sc_transformer t;
    uint32_t n_layers; /* entries of layer[] */
    sc_layer *layer;   /* [n_layers]: embedding, blocks, head */
    uint64_t params;   /* parameters, tied weights once */
    uint64_t hash;
    sc_source source; /* of the published sizes; text NULL: the user's */
} sc_model;

/* Operators, in this order: embedding {embed, position (if learned),
 * embed_norm (if any), embed_drop (if dropout)}; block {norm1, qkv, rope (if
 * rotary), attn, proj, add1, norm2, fc1, act, fc2, add2}; head {norm_f,
 * lm_head, loss}.
 * Zero fields of `t` that have an obvious value are filled: kv_heads = heads,
 * head_dim = hidden / heads, ffn = 4 hidden (8/3 rounded up to 256 if gated),
 * positions = max_seq.  All errors in one pass, at `pos`: SC_C_RANGE,
 * SC_C_DIVIDE, SC_C_MISSING. */
sc_status sc_model_from_transformer(const sc_transformer *t, sc_pos pos,
                                    sc_arena *a, const sc_model **out,
                                    sc_err *err);

/* A catalogue name ("llama3-70b"), a HuggingFace config (*.json) or a
 * model.yml (*.yml, *.yaml).  `pos` is used for names. */
sc_status sc_model_load(const char *spec, sc_pos pos, sc_arena *a,
                        const sc_model **out, sc_err *err);

/* Names of the catalogue without aliases, sorted. */
sc_status sc_model_list(sc_arena *a, const char ***names, uint32_t *n,
                        sc_err *err);

/* Keys of model.yml, for the reader and `--help` (ends with name NULL). */
extern const sc_key sc_transformer_keys[];

/* Extent of an iteration dim in a run of `batch` samples of `seq` tokens. */
uint64_t sc_iter_extent(const sc_iter *it, uint64_t batch, uint64_t seq);

/* FLOP of the forward pass of an operator over a whole (unsplit) batch:
 * 2 per weight and token of matrix products, 4 heads head_dim min(seq, window)
 * per token of attention (not halved for the causal mask), 0 for memory-bound
 * operators.  Backward is twice that. */
double sc_operator_flops(const sc_operator *op, uint64_t batch, uint64_t seq);

/* Model FLOP of one step: three times the forward pass of every layer (twice
 * for frozen weights), once for `forward_only`.  For a GPT this is
 * 72 L h^2 s b (1 + s / 6h + V / 12 L h), Narayanan et al. SC21 eq. 3 without
 * recomputation. */
double sc_model_flops(const sc_model *m, uint64_t batch, uint64_t seq,
                      bool forward_only);

#ifdef __cplusplus
}
#endif
#endif
