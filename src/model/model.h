/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model.h - a model: the numbers that a transformer is generated from and its
 * kinds of layers, or another network. model_net.h describes the operators.
 */
#ifndef SC_MODEL_H
#define SC_MODEL_H

#include "hw/hw.h" /* sc_precision */

typedef enum sc_layer_kind {
    SC_LAYER_EMBED, /* token (and position) embedding */
    SC_LAYER_BLOCK, /* one transformer block */
    SC_LAYER_HEAD   /* final norm, vocabulary projection, loss */
} sc_layer_kind;

typedef enum sc_mixer {
    SC_MIXER_NONE,
    SC_MIXER_ATTENTION,
    SC_MIXER_MAMBA,
    SC_MIXER_DELTA, /* gated DeltaNet */
    SC_MIXER_BOTH   /* attention and Mamba-2 side by side */
} sc_mixer;

typedef enum sc_mlp { SC_MLP_NONE, SC_MLP_DENSE, SC_MLP_EXPERTS } sc_mlp;

/* A kind of layers: all layers with the same operators. */
typedef struct sc_layer {
    const char *path;  /* "embedding", "layers.*" or "head"; if there are
                          several kinds of blocks "layers.dense.*",
                          "layers.moe.*" ... */
    uint8_t kind;      /* sc_layer_kind */
    uint32_t repeat;   /* number of layers of this kind */
    bool frozen_below; /* neither this layer nor one before it learns: it has no
                          backward pass */
    uint32_t first, n_ops; /* range of its operators in the model's `kinds` */
    /* the next fields are used by blocks only */
    uint32_t block;     /* index of the first block of this kind */
    uint8_t mixer, mlp; /* sc_mixer, sc_mlp */
    bool window;        /* its attention has the model's window */
    bool causal;
    bool cross;    /* has a second attention, to an encoder's output */
    bool mtp;      /* also reads the embedding of the next token */
    bool last_enc; /* is the last of an encoder and has its final norm */
} sc_layer;

typedef enum sc_position {
    SC_POS_LEARNED,
    SC_POS_ROTARY,
    SC_POS_ALIBI,
    SC_POS_NONE,
    SC_POS_RELATIVE /* T5: a learned bias per head and distance */
} sc_position;

typedef enum sc_act {
    SC_ACT_GELU,
    SC_ACT_RELU,
    SC_ACT_RELU2, /* ReLU squared (Nemotron) */
    SC_ACT_SWIGLU,
    SC_ACT_GEGLU
} sc_act;

typedef enum sc_norm { SC_NORM_LAYER, SC_NORM_RMS } sc_norm;

/* Where a block has norms: before its parts, after its parts and before the sum
 * (OLMo 2), both (Gemma 2), or after the sums (BERT, BART), with no norm after
 * the last block.  The default is after the sums for an encoder alone, and
 * before the parts for all others. */
typedef enum sc_norms {
    SC_NORMS_DEFAULT,
    SC_NORMS_AFTER,
    SC_NORMS_BOTH,
    SC_NORMS_BEFORE,
    SC_NORMS_SUMS
} sc_norms;

extern const char *const sc_position_names[]; /* ends with NULL */
extern const char *const sc_act_names[];
extern const char *const sc_norm_names[];
extern const char *const sc_norms_names[];

/* The numbers that a model is generated from; also the keys of model.yml. */
typedef struct sc_transformer {
    const char *name;
    int64_t layers, hidden, heads, kv_heads, head_dim, ffn, vocab, max_seq;
    int64_t positions;       /* rows of the learned position table (OPT: max_seq
                                + 2) */
    int64_t window;          /* sliding-window attention; 0: all positions */
    int position, act, norm; /* sc_position, sc_act, sc_norm */
    bool tied;               /* head shares the embedding's weight */
    bool bias;               /* linear layers have biases */
    bool qkv_bias;           /* qkv has a bias even without `bias` (Qwen) */
    bool norm_bias;          /* layer norm has a bias (always false for RMS) */
    bool embed_norm;         /* BLOOM: a norm after the embedding */
    bool dropout;            /* training uses dropout */
    bool parallel;           /* attention and MLP both read the block's input */
    bool qk_norm;            /* norms of queries and keys, per head (Qwen3) */
    int norms;               /* sc_norms */
    bool one_norm;           /* the parts of a `parallel` block share a norm
                                (GPT-J) */
    bool qk_norm_all;        /* `qk_norm` covers all heads together (OLMo 2) */
    bool proj_bias, mlp_bias, head_bias; /* biases of the projection after
                                            attention, of MLPs and of the head,
                                            even without `bias` */
    bool attn_gate;      /* a product of the block's input gates the result of
                        attention (Qwen3-Next) */
    bool plain_norm;     /* norms have no weights (OLMo) */
    int64_t embed_width; /* width of an encoder's tables, which a product widens
                            to `hidden` (ELECTRA); 0: hidden */
    bool replaced;       /* the head decides for each token whether it was
                            replaced (ELECTRA's discriminator) */
    bool relative_each;  /* each block has its own table of scores by distance
                           (umT5) */
    bool sinks;          /* attention has one more learned score per head */
    /* mixture of experts; experts 0: dense */
    int64_t experts, topk, moe_ffn;
    int64_t shared_ffn;  /* summed width of all shared experts */
    int64_t first_dense; /* leading blocks with a dense MLP of width ffn */
    int64_t moe_every;   /* every n-th block has experts (default 1) */
    int64_t latent;      /* width in which experts work; 0: hidden */
    /* The experts of a token are in route_topk of route_groups equal groups
     * (DeepSeek-V3 section 2.1.2, node-limited routing); 0: in any. */
    int64_t route_groups, route_topk;
    bool router_bias;     /* the router has a bias, even without `bias` */
    int64_t window_every; /* blocks 0, n, 2n ... have the window; 1: all
                             blocks */
    int64_t full_every;   /* blocks n - 1, 2n - 1 ... have no window; 0:
                             unused */
    /* W (window) or F (full attention) for each block, repeated; NULL:
     * unused */
    const char *window_pattern;
    /* multi-head latent attention; kv_rank 0: none */
    int64_t q_rank, kv_rank, qk_nope, qk_rope, v_dim;
    int64_t mtp; /* multi-token-prediction blocks after the last block */
    /* Hybrid stacks have one letter per block: M mamba, D gated DeltaNet, *
     * attention, B attention and Mamba-2 that read the same input, - MLP, E
     * experts; NULL: every block has attention and an MLP.
     * For D, ssm_state is the width of a key, ssm_heads and ssm_head_dim
     * describe the values, and ssm_groups is the number of key heads. */
    const char *pattern;
    int64_t ssm_state, ssm_heads, ssm_head_dim, ssm_groups, ssm_conv;
    int64_t ssm_rank;   /* Mamba-1: rank of the projection that computes the
                           time steps, one per channel (then ssm_head_dim is 1);
                           0: Mamba-2 */
    const char *frozen; /* patterns of the frozen operators; NULL: none */
    int64_t lora;       /* rank of the adapters of frozen linear layers; 0:
                           none */
    bool lora_mlp;      /* MLPs have adapters too, not only attention */
    bool encoder;       /* bidirectional, with a masked-language head (BERT) */
    int64_t decoder_layers;        /* T5: blocks with cross attention; 0 */
    int64_t image, patch, classes; /* ViT: pixels, pixels, outputs */
} sc_transformer;

struct sc_net;

/* A model has at most SC_LAYERS - 2 kinds of blocks. */
#define SC_LAYERS 8

typedef struct sc_model {
    const char *name;
    sc_transformer t;
    uint32_t n_layers; /* entries of layer[] */
    sc_layer *layer;   /* [n_layers]: embedding, kinds of blocks, head */
    /* One layer of each kind as a network, in this order, for sequences longer
     * than any window; NULL if the model was not generated. */
    const struct sc_net *kinds;
    uint32_t n_blocks;   /* number of blocks, those of multi-token prediction
                            included */
    uint8_t *order;      /* index into layer[] for each block, in order */
    uint64_t params;     /* parameters, tied weights counted once, without the
                            blocks of multi-token prediction */
    uint64_t mtp_params; /* parameters of the blocks of multi-token
                            prediction */
    uint64_t active_params;  /* of `params`, those that one token uses: top-k of
                                the experts, otherwise all */
    uint64_t trained_params; /* of all parameters, those that are not frozen */
    /* Patterns of further products that stay in 16 bits under recipes with
     * lower precision; NULL: none. */
    const char *keep_bf16;
    uint64_t hash;
    sc_source source; /* of the published sizes; `text` NULL: given by the
                         user */
    const char
        *note; /* for people: what was left out of the file; NULL: nothing */
    /* A network that was not generated (model_net.h): then `t`, `layer` and
     * `order` are empty.  NULL: generated from `t`. */
    const struct sc_net *net;
} sc_model;

/* Completes `t` and generates the model from it.  The operators of each kind
 * of layer, in this order; those in parentheses only if the model has them:
 *   embedding   embed (position) (token_type) (embed_norm) (embed_drop)
 *               (embed_proj); ViT
 *               patch class_token position; encoder-decoders also
 *               embed_decoder (position_decoder) (embed_decoder_norm)
 *               (embed_decoder_drop) before their decoder
 *   attention   norm1 qkv (qk_norm) (rope) attn (attn_gate attn_gate_act
 *               attn_gated) proj (norm1_out) add1; latent:
 *               norm1, q_down q_norm q_up or q_proj, kv_down kv_norm kv_up
 *               (rope) attn proj add1
 *   MLP         norm2 fc1 act fc2 (norm2_out) add2
 *   experts     norm2 router (moe_down) dispatch experts_fc1 experts_act
 *               experts_fc2 combine (moe_up) (shared_fc1 shared_act shared_fc2
 *               shared_add) add2
 *   Mamba-2     norm1 in_proj conv scan ssm_norm out_proj add1; also DeltaNet
 *   both        norm1, attention from qkv to proj, Mamba-2 from in_proj to
 *               out_proj, mixed add1
 *   T5 decoder  attention, cross_norm cross_q cross_kv cross_attn cross_proj
 *               cross_add, MLP
 *   mtp         mtp_norm_h mtp_embed mtp_norm_e mtp_join mtp_proj, attention,
 *               experts or MLP
 *   head        norm_f lm_head loss (mtp_norm mtp_lm_head mtp_loss); BERT
 *               chosen mlm_dense mlm_act mlm_norm lm_head loss; ViT norm_f
 *               chosen classifier loss
 * A linear NAME with an adapter is followed by NAME_lora_a, NAME_lora_b and
 * NAME_lora_add.  With SC_NORMS_SUMS norm1, norm2 and cross_norm come after the
 * sums, and norm_f is missing.
 * Zero fields of `t` that have an obvious value are filled: kv_heads = heads,
 * head_dim = hidden / heads, ffn = 4 hidden (8/3 rounded up to 256 if gated),
 * positions = max_seq, moe_ffn = ffn.  Reports all errors in one pass, at
 * `pos`: SC_C_RANGE, SC_C_DIVIDE, SC_C_MISSING, SC_C_CONFLICT. */
sc_status sc_model_from_transformer(const sc_transformer *t, sc_pos pos,
                                    sc_arena *a, const sc_model **out,
                                    sc_err *err);

/* Loads a catalogue name ("llama3-70b"), a HuggingFace config or PyTorch
 * execution trace (*.json, *.json.gz) or a model.yml (*.yml, *.yaml).  Errors
 * of names are reported at `pos`. */
sc_status sc_model_load(const char *spec, sc_pos pos, sc_arena *a,
                        const sc_model **out, sc_err *err);

/* The same model with some operators frozen.  `patterns`, separated by commas,
 * match paths with a block number ("layers.0-15.*", "embedding",
 * "layers.*.qkv").  A part may be a range of numbers, and everything below a
 * match matches too.  Blocks that are frozen differently become separate kinds;
 * those before the first that learns are `frozen_below`.  Errors at `pos`:
 * SC_C_UNKNOWN_NAME if a pattern matches no weight, SC_C_CONFLICT if nothing
 * learns, SC_C_TOO_BIG beyond SC_LAYERS kinds. */
sc_status sc_model_freeze(const sc_model *m, const char *patterns, sc_pos pos,
                          sc_arena *a, const sc_model **out, sc_err *err);

/* The same model with some products kept in bf16 ("layers.0,layers.31").  A
 * pattern that matches no product gives SC_C_UNKNOWN_NAME. */
sc_status sc_model_keep_bf16(const sc_model *m, const char *patterns,
                             sc_pos pos, sc_arena *a, const sc_model **out,
                             sc_err *err);

/* The vocabulary that `parts` ranks can divide, and the model with that
 * vocabulary.  Megatron-LM pads to a multiple of 128 rows per rank.  `*out` is
 * `m` if no padding is needed. */
int64_t sc_model_padded(const sc_model *m, uint64_t parts);
sc_status sc_model_pad(const sc_model *m, uint64_t parts, sc_arena *a,
                       const sc_model **out, sc_err *err);

/* The same model with kinds of blocks divided: only blocks with equal `label`
 * [n_blocks] share a kind.  SC_C_TOO_BIG at `pos` beyond SC_LAYERS kinds. */
sc_status sc_model_divide(const sc_model *m, const uint64_t *label, sc_pos pos,
                          sc_arena *a, const sc_model **out, sc_err *err);

/* Names of the catalogue without aliases, sorted. */
sc_status sc_model_list(sc_arena *a, const char ***names, uint32_t *n,
                        sc_err *err);

/* The keys of model.yml, for the reader and for `--help`; ends with name
 * NULL. */
extern const sc_key sc_transformer_keys[];

/* Model FLOP of one step: three times the forward pass of every layer (twice
 * for frozen weights), once for `forward_only`.  For a GPT this is 72 L h^2 s b
 * (1 + s / 6h + V / 12 L h), Narayanan et al. SC21 eq. 3 without
 * recomputation. */
double sc_model_flops(const sc_model *m, uint64_t batch, uint64_t seq,
                      bool forward_only);
#endif
